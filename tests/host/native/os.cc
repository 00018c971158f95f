// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * os.h on this very machine: real threads, real locks, the real clock. For
 * benchmarks and for ThreadSanitizer; it checks nothing. Read sections work
 * as the kernel's SRCU does: a counter of the thread's own and a full barrier.
 */
#include <rvt/os.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace
{

using Clock = std::chrono::steady_clock;

/* ThreadSanitizer knows no fences; what is done to one word it understands. */
void full_barrier()
{
#ifdef __SANITIZE_THREAD__
	static std::atomic<unsigned int> word;

	word.fetch_add(1, std::memory_order_seq_cst);
#else
	std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

template <class T, class Room>
T &in(Room *room)
{
	static_assert(sizeof(T) <= sizeof(Room));
	return *reinterpret_cast<T *>(room);
}

template <class T, class Room>
T &make(Room *room)
{
	memset(static_cast<void *>(room), 0, sizeof(*room));
	return *new (room) T;
}

/* --- read sections ------------------------------------------------------ */

struct alignas(64) Slot {
	/* Entered and left, by the phase in which the section began. */
	std::atomic<uint64_t> entered[2] = {};
	std::atomic<uint64_t> left[2] = {};
};

std::atomic<unsigned int> phase;
std::mutex slots_lock;
std::vector<Slot *> slots;

Slot &new_slot(Slot *&mine)
{
	std::lock_guard guard(slots_lock);

	mine = new Slot;
	slots.push_back(mine);
	return *mine;
}

Slot &my_slot()
{
	constinit thread_local Slot *mine = nullptr;

	return mine ? *mine : new_slot(mine);
}

void bump(std::atomic<uint64_t> &count)
{
	count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

bool readers_left(unsigned int which)
{
	uint64_t entered = 0, left = 0;

	for (Slot *slot : slots)
		left += slot->left[which].load(std::memory_order_acquire);
	full_barrier();
	for (Slot *slot : slots)
		entered += slot->entered[which].load(std::memory_order_acquire);
	return entered != left;
}

/* --- work and timers --------------------------------------------------------- */

struct Work {
	void (*fn)(rvt_os_work *) = nullptr;
	bool queued = false;
	bool running = false;
	unsigned int cancelling = 0;
};

struct Timer {
	void (*fn)(rvt_os_timer *) = nullptr;
	Clock::time_point due;
	bool pending = false;
	bool running = false;
};

/* One thread for the work, one for the timers; they end with the program. */
class Background
{
public:
	void start()
	{
		std::call_once(started_, [this] {
			std::thread([this] { work(); }).detach();
			std::thread([this] { time(); }).detach();
		});
	}

	void queue(Work &work)
	{
		start();
		std::lock_guard guard(lock_);

		if (work.queued || work.cancelling)
			return;
		work.queued = true;
		queue_.push_back(&work);
		changed_.notify_all();
	}

	void cancel(Work &work)
	{
		std::unique_lock guard(lock_);

		work.cancelling++;
		if (work.queued) {
			work.queued = false;
			queue_.erase(std::find(queue_.begin(), queue_.end(), &work));
		}
		changed_.wait(guard, [&] { return !work.running; });
		work.cancelling--;
	}

	void set(Timer &timer, uint64_t ns)
	{
		start();
		std::lock_guard guard(lock_);

		timer.due = Clock::now() + std::chrono::nanoseconds(ns);
		if (!timer.pending)
			timers_.push_back(&timer);
		timer.pending = true;
		changed_.notify_all();
	}

	void unset(Timer &timer, bool wait)
	{
		std::unique_lock guard(lock_);

		do {
			if (timer.pending) {
				timer.pending = false;
				timers_.erase(std::find(timers_.begin(), timers_.end(), &timer));
			}
			if (wait)
				changed_.wait(guard, [&] { return !timer.running; });
		} while (wait && timer.pending);
	}

private:
	void work()
	{
		std::unique_lock guard(lock_);

		for (;;) {
			changed_.wait(guard, [&] { return !queue_.empty(); });
			Work &next = *queue_.front();

			queue_.pop_front();
			next.queued = false;
			next.running = true;
			guard.unlock();
			next.fn(reinterpret_cast<rvt_os_work *>(&next));
			guard.lock();
			next.running = false;
			changed_.notify_all();
		}
	}

	void time()
	{
		std::unique_lock guard(lock_);

		for (;;) {
			auto first = std::min_element(
				timers_.begin(), timers_.end(),
				[](const Timer *a, const Timer *b) { return a->due < b->due; });

			if (first == timers_.end()) {
				changed_.wait(guard);
				continue;
			}
			if ((*first)->due > Clock::now()) {
				changed_.wait_until(guard, (*first)->due);
				continue;
			}
			Timer &timer = **first;

			timers_.erase(first);
			timer.pending = false;
			timer.running = true;
			guard.unlock();
			timer.fn(reinterpret_cast<rvt_os_timer *>(&timer));
			guard.lock();
			timer.running = false;
			changed_.notify_all();
		}
	}

	std::once_flag started_;
	std::mutex lock_;
	std::condition_variable changed_;
	std::deque<Work *> queue_;
	std::vector<Timer *> timers_;
};

/* Never destroyed: its threads outlive main(). */
Background &background()
{
	static auto *one = new Background;

	return *one;
}

/* --- waiting -------------------------------------------------------------------- */

struct Waiters {
	std::mutex lock;
	std::condition_variable woken;
	std::atomic<unsigned int> count{0};
	uint64_t wakes = 0;
};

Waiters &waiters()
{
	static auto *one = new Waiters;

	return *one;
}

/* Locks whose quick way is as short as that of the kernel's. */

struct Spin {
	std::atomic<bool> taken{false};

	[[gnu::noinline]] void wait()
	{
		do {
			while (taken.load(std::memory_order_relaxed))
				std::this_thread::yield();
		} while (taken.exchange(true, std::memory_order_acquire));
	}
};

class Mutex
{
public:
	void lock()
	{
		unsigned int old = free;

		if (!state_.compare_exchange_strong(old, taken, std::memory_order_acquire))
			[[unlikely]]
			wait();
	}
	void unlock()
	{
		if (state_.exchange(free, std::memory_order_release) == waited_for) [[unlikely]]
			state_.notify_one();
	}

private:
	enum : unsigned int { free, taken, waited_for };

	[[gnu::noinline]] void wait()
	{
		while (state_.exchange(waited_for, std::memory_order_acquire) != free)
			state_.wait(waited_for, std::memory_order_relaxed);
	}

	std::atomic<unsigned int> state_{free};
};

} // namespace

extern "C" {

void *rvt_os_zalloc(size_t size)
{
	return calloc(1, size);
}

void rvt_os_free(void *mem)
{
	free(mem);
}

void rvt_os_spin_init(rvt_os_spin *lock, rvt_os_lock_class)
{
	make<Spin>(lock);
}

unsigned long rvt_os_spin_lock(rvt_os_spin *lock)
{
	Spin &spin = in<Spin>(lock);

	if (spin.taken.exchange(true, std::memory_order_acquire)) [[unlikely]]
		spin.wait();
	return 0;
}

void rvt_os_spin_unlock(rvt_os_spin *lock, unsigned long)
{
	in<Spin>(lock).taken.store(false, std::memory_order_release);
}

void rvt_os_mutex_init(rvt_os_mutex *lock, rvt_os_lock_class)
{
	make<Mutex>(lock);
}

void rvt_os_mutex_lock(rvt_os_mutex *lock)
{
	in<Mutex>(lock).lock();
}

void rvt_os_mutex_unlock(rvt_os_mutex *lock)
{
	in<Mutex>(lock).unlock();
}

int rvt_os_read_lock(void)
{
	const unsigned int which = phase.load(std::memory_order_relaxed) & 1;

	bump(my_slot().entered[which]);
	full_barrier();
	return static_cast<int>(which);
}

void rvt_os_read_unlock(int cookie)
{
	full_barrier();
	bump(my_slot().left[cookie]);
}

void rvt_os_read_synchronize(void)
{
	static std::mutex one_at_a_time;
	std::lock_guard guard(one_at_a_time);

	full_barrier();
	/* Twice: a reader may have read the phase and not yet entered. */
	for (int i = 0; i < 2; i++) {
		const unsigned int old = phase.fetch_add(1, std::memory_order_seq_cst) & 1;

		for (;;) {
			{
				std::lock_guard slots_guard(slots_lock);

				if (!readers_left(old))
					break;
			}
			std::this_thread::yield();
		}
	}
}

void rvt_os_work_init(rvt_os_work *work, void (*fn)(rvt_os_work *))
{
	make<Work>(work).fn = fn;
}

void rvt_os_work_queue(rvt_os_work *work)
{
	background().queue(in<Work>(work));
}

void rvt_os_work_cancel_sync(rvt_os_work *work)
{
	background().cancel(in<Work>(work));
}

void rvt_os_timer_init(rvt_os_timer *timer, void (*fn)(rvt_os_timer *))
{
	make<Timer>(timer).fn = fn;
}

void rvt_os_timer_start(rvt_os_timer *timer, uint64_t ns)
{
	background().set(in<Timer>(timer), ns);
}

void rvt_os_timer_try_cancel(rvt_os_timer *timer)
{
	background().unset(in<Timer>(timer), false);
}

void rvt_os_timer_cancel_sync(rvt_os_timer *timer)
{
	background().unset(in<Timer>(timer), true);
}

void rvt_os_waitq_init(rvt_os_waitq *) {}

bool rvt_os_wait(rvt_os_waitq *, bool (*done)(void *), void *arg, uint64_t timeout_ns)
{
	/* Far enough, and no overflow of the clock. */
	const auto limit = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, 1ull << 60));
	const auto deadline = Clock::now() + limit;
	Waiters &w = waiters();
	bool result;

	w.count.fetch_add(1, std::memory_order_seq_cst);
	for (;;) {
		uint64_t seen;
		{
			std::lock_guard guard(w.lock);

			seen = w.wakes;
		}
		result = done(arg);
		if (result || Clock::now() >= deadline)
			break;
		std::unique_lock guard(w.lock);

		w.woken.wait_until(guard, deadline, [&] { return w.wakes != seen; });
	}
	w.count.fetch_sub(1, std::memory_order_seq_cst);
	return result;
}

void rvt_os_wake(rvt_os_waitq *)
{
	Waiters &w = waiters();

	full_barrier();
	if (!w.count.load(std::memory_order_relaxed))
		return;
	std::lock_guard guard(w.lock);

	w.wakes++;
	w.woken.notify_all();
}

void rvt_os_resched(void) {}

void rvt_os_leak(const char *what, unsigned long count)
{
	fprintf(stderr, "leak: %lu x %s\n", count, what);
	abort();
}

} // extern "C"
