// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "machine.h"
#include "fiber.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define RVT_SIM_STACK_TRACE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RVT_SIM_STACK_TRACE 1
#endif
#endif
#ifdef RVT_SIM_STACK_TRACE
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define ASAN_POISON_MEMORY_REGION(mem, size) ((void)(mem), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(mem, size) ((void)(mem), (void)(size))
#endif

namespace sim
{

namespace
{

constexpr uint64_t never = ~0ull;
constexpr size_t stack_bytes = 512 * 1024;
/* More than any run needs; beyond it something turns in a circle. */
constexpr uint64_t steps_limit = 4 * 1000 * 1000;
constexpr uint64_t events_limit = 2 * 1000 * 1000;

constexpr uint64_t spin_magic = 0x5350494e4c4f434bull;
constexpr uint64_t mutex_magic = 0x4d555445584c4f43ull;
constexpr uint64_t work_magic = 0x574f524b4954454dull;
constexpr uint64_t timer_magic = 0x54494d4552525654ull;
constexpr uint64_t waitq_magic = 0x5741495451554555ull;

/* No default: the compiler says when os.h has another class. */
const char *class_name(rvt_os_lock_class cls)
{
	switch (cls) {
	case RVT_LOCK_DEVICE:
		return "DEVICE";
	case RVT_LOCK_PD:
		return "PD";
	case RVT_LOCK_QP_MODIFY:
		return "QP_MODIFY";
	case RVT_LOCK_QP_R:
		return "QP_R";
	case RVT_LOCK_QP_SH:
		return "QP_SH";
	case RVT_LOCK_QP_S:
		return "QP_S";
	case RVT_LOCK_RQ_CONSUMER:
		return "RQ_CONSUMER";
	case RVT_LOCK_RQ_PRODUCER:
		return "RQ_PRODUCER";
	case RVT_LOCK_CQ:
		return "CQ";
	case RVT_LOCK_TABLE:
		return "TABLE";
	case RVT_LOCK_CLASSES:
		break;
	}
	return "(no class)";
}

Machine *the_machine;
std::vector<std::unique_ptr<Fiber>> all_fibers;
std::vector<Fiber *> free_fibers;
Fiber main_fiber;

/*
 * Large blocks are kept for the next machine: getting them from the system
 * anew costs more than everything else in a short run.
 */
constexpr size_t large_block = 64 * 1024;
std::multimap<size_t, void *> free_blocks;

void *get_block(size_t size)
{
	auto it = free_blocks.find(size);

	if (size < large_block || it == free_blocks.end())
		return calloc(1, size);
	void *mem = it->second;

	free_blocks.erase(it);
	ASAN_UNPOISON_MEMORY_REGION(mem, size);
	return memset(mem, 0, size);
}

void put_block(void *mem, size_t size)
{
	if (size < large_block || size > 16 * 1024 * 1024) {
		/* For builds without AddressSanitizer. */
		memset(mem, 0xdb, std::min(size, large_block));
		free(mem);
		return;
	}
	ASAN_POISON_MEMORY_REGION(mem, size);
	free_blocks.emplace(size, mem);
}

/*
 * Over all machines of this program: locks that were taken in a read section,
 * and locks that were held while waiting for the end of all read sections. A
 * lock that is both is a deadlock that waits for its day.
 */
bool taken_by_readers[RVT_LOCK_CLASSES];
bool held_at_synchronize[RVT_LOCK_CLASSES];
/* The same for interrupts and who waits for the end of a timer callback. */
bool taken_in_interrupts[RVT_LOCK_CLASSES];
bool held_at_timer_cancel[RVT_LOCK_CLASSES];
/* And for work items and who waits for their end. */
bool taken_in_work[RVT_LOCK_CLASSES];
bool held_at_work_cancel[RVT_LOCK_CLASSES];

} // namespace

/*
 * So long a task that could run may have to wait for its CPU. Timers of the
 * transport are shorter; waits of seconds are for those who do not come back.
 */
constexpr uint64_t longest_jump = second;

/*
 * Locks that may be taken while one spinlock is held: a measure for how long
 * interrupts are off. The send engine completes 128 requests at a time.
 */
constexpr uint32_t most_with_spin = 200;

struct Lock {
	uint64_t magic;
	uint64_t cls;
	Task *owner;

	bool is_spin() const { return magic == spin_magic; }
	const char *name() const { return class_name(static_cast<rvt_os_lock_class>(cls)); }
};
static_assert(sizeof(Lock) <= RVT_OS_LOCK_BYTES);

struct Work {
	uint64_t magic;
	void (*fn)(rvt_os_work *);
	Task *runner;
	bool queued;
	uint32_t cancelling;
};
static_assert(sizeof(Work) <= RVT_OS_WORK_BYTES);

struct Timer {
	uint64_t magic;
	void (*fn)(rvt_os_timer *);
	Task *runner;
	bool pending;
	uint64_t due;
	uint64_t serial;
};
static_assert(sizeof(Timer) <= RVT_OS_TIMER_BYTES);

struct Task {
	uint64_t serial = 0;
	std::string name;
	std::function<void()> fn;
	Fiber *fiber = nullptr;
	bool interrupt = false;
	bool spawned = false;
	bool work = false;
	enum { RUNNABLE, BLOCKED, ENDED } state = RUNNABLE;
	const char *why = "";
	const void *on = nullptr;
	uint64_t deadline = never;
	bool timed_out = false;
	bool timed_out_idle = false;
	bool signalled = false;
	const void *waitq = nullptr;
	uint64_t priority = 0;
	std::vector<Lock *> locks;
	uint32_t taken_with_spin = 0;
	struct Section {
		int cookie;
		uint64_t epoch;
	};
	std::vector<Section> sections;

	bool holds_spin() const
	{
		return std::any_of(locks.begin(), locks.end(),
				   [](const Lock *l) { return l->is_spin(); });
	}
};

/* --- the machine itself --------------------------------------------------- */

Machine::Machine(uint64_t seed) : seed_(seed), rng_(seed * 0x9e3779b97f4a7c15ull + 1)
{
	if (the_machine) {
		fprintf(stderr, "sim: there is a machine already\n");
		abort();
	}
	the_machine = this;
	trace_ = getenv("RVT_SIM_TRACE") != nullptr;
	main_ = new Task;
	main_->name = "main";
	main_->fiber = &main_fiber;
	main_->priority = 1;
	tasks_.push_back(main_);
	current_ = main_;
	if (seed_) {
		for (int i = 0; i < 4; i++)
			random();
		switch_shift_ = 1 + static_cast<unsigned int>(random() % 5);
		priorities_ = random() % 2;
	}
}

Machine::~Machine()
{
	settle();
	for (const Task *task : tasks_)
		if (task != main_)
			fail("at the end, task %s has not ended", task->name.c_str());
	if (!timers_.empty())
		fail("at the end, %zu timers are pending", timers_.size());
	if (!main_->locks.empty() || !main_->sections.empty())
		fail("at the end, main holds %zu locks and is in %zu read sections",
		     main_->locks.size(), main_->sections.size());
	if (!memory_.empty()) {
		fprintf(stderr, "sim: not freed:");
		for (const auto &[mem, info] : memory_)
			fprintf(stderr, " %zu bytes (allocation %llu)", info.size,
				static_cast<unsigned long long>(info.serial));
		fprintf(stderr, "\n");
		fail("at the end, %zu allocations were not freed", memory_.size());
	}
	delete main_;
	the_machine = nullptr;
}

Machine *Machine::current()
{
	return the_machine;
}

std::string Machine::describe_tasks() const
{
	std::string text;

	for (const Task *task : tasks_) {
		text += "  " + task->name + (task->interrupt ? " (interrupt)" : "");
		if (task->state == Task::BLOCKED)
			text += std::string(": waits for ") + task->why;
		else
			text += task == current_ ? ": running" : ": could run";
		if (task->state == Task::BLOCKED && task->on) {
			for (const Task *other : tasks_)
				for (const Lock *lock : other->locks)
					if (lock == task->on)
						text += std::string(" ") + lock->name() + " that " +
							other->name + " holds";
		}
		if (!task->locks.empty()) {
			text += "; holds";
			for (const Lock *lock : task->locks)
				text += std::string(" ") + lock->name();
		}
		if (!task->sections.empty())
			text += "; in a read section";
		text += "\n";
	}
	return text;
}

void Machine::fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "\nsim: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\nsim: seed %llu, time %llu ns, %llu switches\n%s",
		static_cast<unsigned long long>(seed_), static_cast<unsigned long long>(now_),
		static_cast<unsigned long long>(switches_), describe_tasks().c_str());
	if (!replay_hint_.empty())
		fprintf(stderr, "sim: to see it again: %s\n", replay_hint_.c_str());
#ifdef RVT_SIM_STACK_TRACE
	__sanitizer_print_stack_trace();
#endif
	fflush(stdout);
	fflush(stderr);
	if (getenv("RVT_SIM_ABORT"))
		abort();
	_exit(1);
}

uint64_t Machine::random()
{
	/* splitmix64 */
	uint64_t z = (rng_ += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint64_t Machine::choose(uint64_t n)
{
	return seed_ && n ? random() % n : 0;
}

size_t Machine::live_bytes() const
{
	size_t bytes = 0;

	for (const auto &[mem, info] : memory_)
		bytes += info.size;
	return bytes;
}

size_t Machine::locks_held() const
{
	return current_->locks.size();
}

bool Machine::in_interrupt() const
{
	return current_->interrupt;
}

uint64_t Machine::next_timer() const
{
	uint64_t when = never;

	for (const Timer *timer : timers_)
		when = std::min(when, timer->due);
	return when;
}

/* --- tasks ------------------------------------------------------------------- */

Task *Machine::new_task(std::string name, std::function<void()> fn, bool interrupt)
{
	Task *task = new Task;

	task->serial = ++task_serial_;
	task->name = std::move(name);
	task->fn = std::move(fn);
	task->interrupt = interrupt;
	task->priority = seed_ ? random() % 1000 : 1;
	if (free_fibers.empty()) {
		all_fibers.push_back(std::make_unique<Fiber>(stack_bytes));
		free_fibers.push_back(all_fibers.back().get());
		free_fibers.back()->set_body([] { the_machine->fiber_body(); });
	}
	task->fiber = free_fibers.back();
	free_fibers.pop_back();
	tasks_.push_back(task);
	return task;
}

void Machine::fiber_body()
{
	Task *task = current_;

	task->fn();
	if (!task->locks.empty())
		fail("task %s ends with lock %s held", task->name.c_str(),
		     task->locks.back()->name());
	if (!task->sections.empty())
		fail("task %s ends in a read section", task->name.c_str());
	if (task->spawned) {
		spawned_alive_--;
		wake_blocked(&spawned_alive_);
	}
	task->state = Task::ENDED;
	schedule();
}

void Machine::spawn(std::string name, std::function<void()> fn)
{
	Task *task = new_task(std::move(name), std::move(fn), false);

	task->spawned = true;
	spawned_alive_++;
}

void Machine::retire(Task *task)
{
	tasks_.erase(std::find(tasks_.begin(), tasks_.end(), task));
	free_fibers.push_back(task->fiber);
	delete task;
}

void Machine::block(const char *why, const void *on, uint64_t deadline)
{
	current_->state = Task::BLOCKED;
	current_->why = why;
	current_->on = on;
	current_->deadline = deadline;
	current_->timed_out = false;
	schedule();
}

void Machine::wake_blocked(const void *on)
{
	for (Task *task : tasks_) {
		if (task->state == Task::BLOCKED && task->on == on) {
			task->state = Task::RUNNABLE;
			task->deadline = never;
		}
	}
}

bool Machine::next_event(uint64_t *when) const
{
	uint64_t first = never;

	for (const Timer *timer : timers_)
		if (!timer->runner)
			first = std::min(first, timer->due);
	for (const Task *task : tasks_)
		if (task->state == Task::BLOCKED)
			first = std::min(first, task->deadline);
	*when = first;
	return first != never;
}

void Machine::start_timer_callback(Timer *timer)
{
	timer->pending = false;
	timers_.erase(std::find(timers_.begin(), timers_.end(), timer));
	callbacks_.push_back(timer);
	timer->runner = new_task(
		"timer",
		[this, timer] {
			timer->fn(reinterpret_cast<rvt_os_timer *>(timer));
			/* The callback may not have freed its timer: free() looks. */
			callbacks_.erase(std::find(callbacks_.begin(), callbacks_.end(), timer));
			timer->runner = nullptr;
			wake_blocked(timer);
		},
		true);
}

/* Whatever is due at this instant becomes runnable, the earliest first. */
void Machine::fire_due()
{
	for (;;) {
		Timer *due = nullptr;

		for (Timer *timer : timers_)
			if (timer->due <= now_ && !timer->runner &&
			    (!due || timer->due < due->due ||
			     (timer->due == due->due && timer->serial < due->serial)))
				due = timer;
		if (!due)
			break;
		start_timer_callback(due);
	}
	for (Task *task : tasks_) {
		if (task->state == Task::BLOCKED && task->deadline <= now_) {
			task->state = Task::RUNNABLE;
			task->deadline = never;
			task->timed_out = true;
		}
	}
}

/* Who runs next. Lets time pass when nobody can. */
Task *Machine::pick()
{
	for (;;) {
		Task *chosen = nullptr;
		size_t runnable = 0;
		uint64_t when = never;

		for (const Task *task : tasks_)
			runnable += task->state == Task::RUNNABLE;
		if (runnable) {
			if (++steps_at_instant_ > steps_limit)
				fail("%llu switches and no time has passed: a livelock?",
				     static_cast<unsigned long long>(steps_at_instant_));
			size_t n = seed_ && !priorities_ ? random() % runnable : 0;

			for (Task *task : tasks_) {
				if (task->state != Task::RUNNABLE)
					continue;
				if (seed_ && priorities_) {
					if (!chosen || task->priority > chosen->priority)
						chosen = task;
				} else if (!n--) {
					return task;
				}
			}
			return chosen;
		}

		next_event(&when);
		if (main_idle_ && when > main_idle_until_) {
			now_ = std::max(now_, main_idle_until_);
			main_idle_ = false;
			main_->state = Task::RUNNABLE;
			steps_at_instant_ = 0;
			continue;
		}
		if (when == never)
			fail("deadlock: nobody can run and nothing is timed");
		if (++events_in_run_ > events_limit)
			fail("%llu timed events and no end of the run",
			     static_cast<unsigned long long>(events_in_run_));
		now_ = std::max(now_, when);
		steps_at_instant_ = 0;
		fire_due();
		for (Task *task : tasks_)
			task->timed_out_idle = task->timed_out;
	}
}

void Machine::schedule()
{
	Task *from = current_;
	Task *to = pick();

	if (to == from)
		return;
	switches_++;
	if (trace_)
		fprintf(stderr, "sim: %10llu %s -> %s\n", static_cast<unsigned long long>(now_),
			from->name.c_str(), to->name.c_str());
	current_ = to;

	Fiber *from_fiber = from->fiber;

	if (from->state == Task::ENDED)
		retire(from);
	Fiber::switch_to(*from_fiber, *to->fiber);
	/*
	 * Back on this stack. If the task that left it had ended, this is a new
	 * one that was given its fiber, perhaps in another machine: touch nothing.
	 */
}

void Machine::switch_point(unsigned int weight)
{
	if (!seed_)
		return;
	/* Time may pass while a task is under way. */
	if (time_jumps_ && (main_runs_free_ || main_idle_) && random() % 64 == 0) {
		uint64_t when;

		if (next_event(&when) && when <= now_ + longest_jump &&
		    (main_runs_free_ || when <= main_idle_until_)) {
			if (++events_in_run_ > events_limit)
				fail("too many timed events in one run");
			now_ = std::max(now_, when);
			fire_due();
		}
	}
	if (priorities_) {
		/* Now and then another order of importance. */
		if (random() % 16 < weight)
			current_->priority = random() % 1000;
		schedule();
	} else if (!(random() & ((1u << switch_shift_) - 1)) || weight > 1) {
		schedule();
	}
}

void Machine::sleep(uint64_t ns)
{
	must_be_process("sleep");
	block("time", nullptr, now_ + ns);
}

void Machine::maybe_switch()
{
	switch_point(1);
}

void Machine::idle_until(uint64_t when)
{
	if (current_ != main_)
		fail("only main may let time pass");
	main_idle_ = true;
	main_idle_until_ = when;
	events_in_run_ = 0;
	block("time", nullptr);
	main_idle_ = false;
}

void Machine::settle()
{
	idle_until(now_);
}

void Machine::advance(uint64_t ns)
{
	idle_until(now_ + ns);
}

void Machine::run()
{
	if (current_ != main_)
		fail("only main may run the machine");
	events_in_run_ = 0;
	main_runs_free_ = true;
	while (spawned_alive_)
		block("the spawned tasks", &spawned_alive_);
	main_runs_free_ = false;
	settle();
}

void Machine::in_interrupt(std::function<void()> fn)
{
	bool ended = false;

	new_task(
		"interrupt",
		[&] {
			fn();
			ended = true;
			wake_blocked(&ended);
		},
		true);
	while (!ended)
		block("an interrupt", &ended);
}

void Machine::must_be_process(const char *what)
{
	if (current_->interrupt)
		fail("%s in interrupt context", what);
	if (current_->holds_spin())
		fail("%s with spinlock %s held", what, current_->locks.back()->name());
}

/* --- memory -------------------------------------------------------------------- */

void *Machine::zalloc(size_t size)
{
	must_be_process("rvt_os_zalloc");
	switch_point(1);
	allocations_++;
	if (fail_in_ && --fail_in_ == 0) {
		failed_once_ = true;
		return nullptr;
	}
	if (!size)
		fail("rvt_os_zalloc of 0 bytes");

	/* Not one byte more than asked for, and at least aligned to 16. */
	void *mem = get_block(size);

	if (!mem)
		return nullptr;
	memory_[static_cast<char *>(mem)] = {size, allocations_};
	return mem;
}

void Machine::check_nothing_inside(void *mem, size_t size)
{
	auto inside = [&](const void *p) {
		return p >= mem && p < static_cast<char *>(mem) + size;
	};

	for (const Timer *timer : timers_)
		if (inside(timer))
			fail("memory freed with a pending timer in it");
	for (const Timer *timer : callbacks_)
		if (inside(timer))
			fail("memory freed while a timer of it has its callback running");
	for (const Work *work : works_)
		if (inside(work))
			fail("memory freed with queued or running work in it");
	for (const Task *task : tasks_) {
		for (const Lock *lock : task->locks)
			if (inside(lock))
				fail("memory freed with lock %s in it, held by %s", lock->name(),
				     task->name.c_str());
		if (task->state == Task::BLOCKED && task->on && inside(task->on))
			fail("memory freed while %s waits for something in it (%s)",
			     task->name.c_str(), task->why);
	}
}

void Machine::free(void *mem)
{
	if (!mem)
		return;
	must_be_process("rvt_os_free");
	switch_point(1);

	auto it = memory_.find(static_cast<char *>(mem));

	if (it == memory_.end())
		fail("rvt_os_free of %p, which was never allocated or is freed already", mem);
	check_nothing_inside(mem, it->second.size);
	put_block(mem, it->second.size);
	memory_.erase(it);
}

/* --- locks ----------------------------------------------------------------------- */

void Machine::lock(Lock *lock)
{
	if (lock->magic != spin_magic && lock->magic != mutex_magic)
		fail("a lock is taken that was not initialised (or freed)");
	if (!lock->is_spin())
		must_be_process("a mutex taken");
	for (const Lock *held : current_->locks)
		if (held->cls >= lock->cls)
			fail("lock order: %s taken with %s held", lock->name(), held->name());
	if (!current_->holds_spin())
		current_->taken_with_spin = 0;
	else if (++current_->taken_with_spin > most_with_spin)
		fail("interrupts are off for too long: %s taken, the %uth lock while one spinlock is held",
		     lock->name(), current_->taken_with_spin);
	if (!current_->sections.empty()) {
		taken_by_readers[lock->cls] = true;
		if (held_at_synchronize[lock->cls])
			fail("%s is taken in a read section, and elsewhere held while waiting for read sections",
			     lock->name());
	}
	if (current_->interrupt) {
		taken_in_interrupts[lock->cls] = true;
		if (held_at_timer_cancel[lock->cls])
			fail("%s is taken in an interrupt, and elsewhere held while waiting for a timer callback",
			     lock->name());
	}
	if (current_->work) {
		taken_in_work[lock->cls] = true;
		if (held_at_work_cancel[lock->cls])
			fail("%s is taken in work, and elsewhere held while waiting for work",
			     lock->name());
	}
	switch_point(1);
	while (lock->owner) {
		if (lock->owner == current_)
			fail("%s taken twice", lock->name());
		block("lock", lock);
	}
	lock->owner = current_;
	current_->locks.push_back(lock);
}

void Machine::unlock(Lock *lock)
{
	if (lock->magic != spin_magic && lock->magic != mutex_magic)
		fail("a lock is released that was not initialised (or freed)");
	if (lock->owner != current_)
		fail("%s released by who does not hold it", lock->name());

	auto &locks = current_->locks;

	locks.erase(std::find(locks.begin(), locks.end(), lock));
	lock->owner = nullptr;
	wake_blocked(lock);
	switch_point(1);
}

/* --- read sections ------------------------------------------------------------------ */

int Machine::read_lock()
{
	switch_point(1);
	int cookie = next_cookie_++ & 0x7fffffff;

	current_->sections.push_back({cookie, epoch_});
	switch_point(1);
	return cookie;
}

void Machine::read_unlock(int cookie)
{
	auto &sections = current_->sections;
	auto it = std::find_if(sections.begin(), sections.end(),
			       [&](const Task::Section &s) { return s.cookie == cookie; });

	if (it == sections.end())
		fail("rvt_os_read_unlock with a cookie that this task does not have");
	sections.erase(it);
	wake_blocked(&epoch_);
	switch_point(1);
}

void Machine::read_synchronize()
{
	must_be_process("rvt_os_read_synchronize");
	if (!current_->sections.empty())
		fail("rvt_os_read_synchronize in a read section");
	for (const Lock *held : current_->locks) {
		held_at_synchronize[held->cls] = true;
		if (taken_by_readers[held->cls])
			fail("rvt_os_read_synchronize with %s held, which readers take",
			     held->name());
	}
	switch_point(1);

	const uint64_t mine = epoch_++;
	auto others = [&] {
		for (const Task *task : tasks_)
			for (const Task::Section &section : task->sections)
				if (section.epoch <= mine)
					return true;
		return false;
	};

	while (others())
		block("the end of read sections", &epoch_);
	switch_point(1);
}

/* --- work -------------------------------------------------------------------------------- */

void Machine::work_queue(Work *work)
{
	if (work->magic != work_magic)
		fail("work is queued that was not initialised (or freed)");
	switch_point(1);
	if (work->magic != work_magic)
		fail("work is queued that was freed meanwhile");
	if (work->queued || work->cancelling)
		return;
	work->queued = true;
	if (!work->runner) {
		works_.push_back(work);
		work->runner = new_task(
			"work",
			[this, work] {
				while (work->queued) {
					work->queued = false;
					work->fn(reinterpret_cast<rvt_os_work *>(work));
					if (!current_->locks.empty() || !current_->sections.empty())
						fail("work ends with a lock held or in a read section");
					switch_point(1);
				}
				works_.erase(std::find(works_.begin(), works_.end(), work));
				work->runner = nullptr;
				wake_blocked(work);
			},
			false);
		work->runner->work = true;
	}
	switch_point(1);
}

void Machine::work_cancel_sync(Work *work)
{
	must_be_process("rvt_os_work_cancel_sync");
	if (work->magic != work_magic)
		fail("work is cancelled that was not initialised (or freed)");
	if (work->runner == current_)
		fail("work waits for its own end");
	for (const Lock *held : current_->locks) {
		held_at_work_cancel[held->cls] = true;
		if (taken_in_work[held->cls])
			fail("rvt_os_work_cancel_sync with %s held, which work takes",
			     held->name());
	}
	switch_point(1);
	work->cancelling++;
	work->queued = false;
	while (work->runner)
		block("the end of work", work);
	work->cancelling--;
	switch_point(1);
}

/* --- time ----------------------------------------------------------------------------------- */

void Machine::timer_start(Timer *timer, uint64_t ns)
{
	if (timer->magic != timer_magic)
		fail("a timer is started that was not initialised (or freed)");
	switch_point(1);
	if (timer->magic != timer_magic)
		fail("a timer is started that was freed meanwhile");
	if (!timer->pending) {
		timer->pending = true;
		timers_.push_back(timer);
	}
	timer->due = now_ + ns;
	timer->serial = ++task_serial_;
	if (!ns)
		fire_due();
	switch_point(1);
}

void Machine::timer_try_cancel(Timer *timer)
{
	if (timer->magic != timer_magic)
		fail("a timer is cancelled that was not initialised (or freed)");
	if (timer->pending) {
		timer->pending = false;
		timers_.erase(std::find(timers_.begin(), timers_.end(), timer));
	}
	switch_point(1);
}

void Machine::timer_cancel_sync(Timer *timer)
{
	must_be_process("rvt_os_timer_cancel_sync");
	for (const Lock *held : current_->locks) {
		held_at_timer_cancel[held->cls] = true;
		if (taken_in_interrupts[held->cls])
			fail("rvt_os_timer_cancel_sync with %s held, which interrupts take",
			     held->name());
	}
	do {
		timer_try_cancel(timer);
		while (timer->runner)
			block("the end of a timer callback", timer);
	} while (timer->pending);
	switch_point(1);
}

/* --- waiting ----------------------------------------------------------------------------------- */

bool Machine::wait(void *waitq, bool (*done)(void *), void *arg, uint64_t timeout_ns)
{
	const uint64_t deadline = timeout_ns > never - 1 - now_ ? never : now_ + timeout_ns;
	Task *task = current_;

	must_be_process("rvt_os_wait");
	if (*static_cast<uint64_t *>(waitq) != waitq_magic)
		fail("rvt_os_wait on what was not initialised (or freed)");
	for (;;) {
		/* Who wakes from here on is noticed, also while done() runs. */
		task->signalled = false;
		task->waitq = waitq;
		task->timed_out_idle = false;
		if (done(arg))
			break;
		if (!task->signalled)
			block("a wake", waitq, deadline);
		if (task->timed_out) {
			bool idle = task->timed_out_idle;

			task->timed_out = false;
			if (done(arg)) {
				if (idle && !task->signalled)
					fail("a condition came true and nobody woke who waits for it");
				break;
			}
			task->waitq = nullptr;
			return false;
		}
		switch_point(1);
	}
	task->waitq = nullptr;
	return true;
}

void Machine::wake(void *waitq)
{
	switch_point(1);
	if (*static_cast<uint64_t *>(waitq) != waitq_magic)
		fail("rvt_os_wake on what was not initialised (or freed)");
	for (Task *task : tasks_)
		if (task->waitq == waitq)
			task->signalled = true;
	wake_blocked(waitq);
	switch_point(1);
}

void Machine::resched()
{
	must_be_process("rvt_os_resched");
	offers_++;
	switch_point(2);
}

void Machine::leak(const char *what, unsigned long count)
{
	leaks_seen_++;
	if (leaks_seen_ > leaks_allowed_)
		fail("leak: %lu x %s", count, what);
}

} // namespace sim

/* --- os.h ------------------------------------------------------------------------------------------ */

using sim::the_machine;

namespace
{

template <class To, class From>
To *as(From *from)
{
	return reinterpret_cast<To *>(from);
}

void init_lock(void *room, size_t bytes, uint64_t magic, rvt_os_lock_class cls)
{
	auto *lock = static_cast<sim::Lock *>(room);

	if (cls >= RVT_LOCK_CLASSES)
		the_machine->fail("lock of class %d", static_cast<int>(cls));
	memset(room, 0, bytes);
	lock->magic = magic;
	lock->cls = cls;
}

} // namespace

extern "C" {

/* The machine counts what the core allocates; it keeps fibers and blocks itself. */
const char *__asan_default_options();
const char *__asan_default_options()
{
	return "detect_leaks=0";
}

void *rvt_os_zalloc(size_t size)
{
	return the_machine->zalloc(size);
}

void rvt_os_free(void *mem)
{
	the_machine->free(mem);
}

void rvt_os_spin_init(rvt_os_spin *lock, rvt_os_lock_class cls)
{
	init_lock(lock, sizeof(*lock), sim::spin_magic, cls);
}

unsigned long rvt_os_spin_lock(rvt_os_spin *lock)
{
	the_machine->lock(as<sim::Lock>(lock));
	return 0x246;
}

void rvt_os_spin_unlock(rvt_os_spin *lock, unsigned long flags)
{
	if (flags != 0x246)
		the_machine->fail(
			"rvt_os_spin_unlock with flags that are not from rvt_os_spin_lock");
	the_machine->unlock(as<sim::Lock>(lock));
}

void rvt_os_mutex_init(rvt_os_mutex *lock, rvt_os_lock_class cls)
{
	init_lock(lock, sizeof(*lock), sim::mutex_magic, cls);
}

void rvt_os_mutex_lock(rvt_os_mutex *lock)
{
	the_machine->lock(as<sim::Lock>(lock));
}

void rvt_os_mutex_unlock(rvt_os_mutex *lock)
{
	the_machine->unlock(as<sim::Lock>(lock));
}

int rvt_os_read_lock(void)
{
	return the_machine->read_lock();
}

void rvt_os_read_unlock(int cookie)
{
	the_machine->read_unlock(cookie);
}

void rvt_os_read_synchronize(void)
{
	the_machine->read_synchronize();
}

void rvt_os_work_init(rvt_os_work *work, void (*fn)(rvt_os_work *))
{
	memset(work, 0, sizeof(*work));
	as<sim::Work>(work)->magic = sim::work_magic;
	as<sim::Work>(work)->fn = fn;
}

void rvt_os_work_queue(rvt_os_work *work)
{
	the_machine->work_queue(as<sim::Work>(work));
}

void rvt_os_work_cancel_sync(rvt_os_work *work)
{
	the_machine->work_cancel_sync(as<sim::Work>(work));
}

void rvt_os_timer_init(rvt_os_timer *timer, void (*fn)(rvt_os_timer *))
{
	memset(timer, 0, sizeof(*timer));
	as<sim::Timer>(timer)->magic = sim::timer_magic;
	as<sim::Timer>(timer)->fn = fn;
}

void rvt_os_timer_start(rvt_os_timer *timer, uint64_t ns)
{
	the_machine->timer_start(as<sim::Timer>(timer), ns);
}

void rvt_os_timer_try_cancel(rvt_os_timer *timer)
{
	the_machine->timer_try_cancel(as<sim::Timer>(timer));
}

void rvt_os_timer_cancel_sync(rvt_os_timer *timer)
{
	the_machine->timer_cancel_sync(as<sim::Timer>(timer));
}

void rvt_os_waitq_init(rvt_os_waitq *waitq)
{
	memset(waitq, 0, sizeof(*waitq));
	*as<uint64_t>(waitq) = sim::waitq_magic;
}

bool rvt_os_wait(rvt_os_waitq *waitq, bool (*done)(void *), void *arg, uint64_t timeout_ns)
{
	return the_machine->wait(waitq, done, arg, timeout_ns);
}

void rvt_os_wake(rvt_os_waitq *waitq)
{
	the_machine->wake(waitq);
}

void rvt_os_resched(void)
{
	the_machine->resched();
}

void rvt_os_leak(const char *what, unsigned long count)
{
	the_machine->leak(what, count);
}

} // extern "C"
