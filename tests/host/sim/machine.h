/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * machine.h - the simulated machine that the core runs on in the tests.
 *
 * It supplies all of os.h. Time is virtual: it passes only when a test says
 * so or when everybody waits for it. Tasks are fibers of one thread, so a run
 * depends on nothing but the seed. With seed 0 a task runs until it blocks;
 * with another seed every call of os.h that synchronizes is a place where the
 * machine may go on with another task, as if there were as many CPUs as tasks.
 * Timer callbacks are tasks too, which may not sleep (interrupts).
 *
 * The machine ends the program with a report when the core breaks a rule of
 * os.h: lock order, sleeping where that is not allowed, a wait that can never
 * end, memory freed with a timer pending in it, memory not freed, and so on.
 */
#ifndef RVT_SIM_MACHINE_H
#define RVT_SIM_MACHINE_H

#include <rvt/os.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sim
{

constexpr uint64_t us = 1000;
constexpr uint64_t ms = 1000 * us;
constexpr uint64_t second = 1000 * ms;

struct Task;
struct Lock;
struct Work;
struct Timer;

class Machine
{
public:
	/* Only one machine exists at a time. */
	explicit Machine(uint64_t seed = 0);
	/* Lets everything come to rest and checks that all memory was freed. */
	~Machine();
	Machine(const Machine &) = delete;
	Machine &operator=(const Machine &) = delete;

	/* Another task, runnable at once. */
	void spawn(std::string name, std::function<void()> fn);
	/* Until every spawned task has ended; time passes as needed. Then settle(). */
	void run();
	/* Until nothing can run without time passing. */
	void settle();
	/* Let time pass. What falls due meanwhile, and at the last instant, happens. */
	void advance(uint64_t ns);
	uint64_t now() const { return now_; }

	/* Run a function in interrupt context and wait for its end. */
	void in_interrupt(std::function<void()> fn);
	/* Let a task of the test wait for time to pass. */
	void sleep(uint64_t ns);
	/* A place where another task may go on, for code of the tests. */
	void maybe_switch();
	/* A number below @n that the seed determines; 0 in a machine with seed 0. */
	uint64_t choose(uint64_t n);

	/* Let the n-th allocation from now on fail (1 is the next one); 0: none. */
	void fail_allocation(uint64_t n) { fail_in_ = n; }
	bool allocation_failed() const { return failed_once_; }
	uint64_t allocations() const { return allocations_; }
	size_t live_allocations() const { return memory_.size(); }
	size_t live_bytes() const;

	/* How often rvt_os_leak() may report before the test is over with. */
	void expect_leaks(unsigned int n) { leaks_allowed_ = n; }
	unsigned int leaks_seen() const { return leaks_seen_; }

	/* Timers that are pending. */
	size_t pending_timers() const { return timers_.size(); }
	/* When the next timer falls due; ~0 if none does. */
	uint64_t next_timer() const;

	/* Locks that the running task holds, and whether it is an interrupt. */
	size_t locks_held() const;
	bool in_interrupt() const;

	/* Time may jump to the next event while tasks could run (with a seed). */
	void set_time_jumps(bool on) { time_jumps_ = on; }
	uint64_t seed() const { return seed_; }
	uint64_t switches() const { return switches_; }

	static Machine *current();
	/* End the program with a report. */
	[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 2, 3)));
	/* Said with every report: how to see the same run again. */
	void set_replay_hint(std::string hint) { replay_hint_ = std::move(hint); }

	/* --- for the implementation of os.h ---------------------------------- */

	struct Memory {
		size_t size;
		uint64_t serial;
	};

	void *zalloc(size_t size);
	void free(void *mem);
	void lock(Lock *lock);
	void unlock(Lock *lock);
	void must_be_process(const char *what);
	int read_lock();
	void read_unlock(int cookie);
	void read_synchronize();
	void work_queue(Work *work);
	void work_cancel_sync(Work *work);
	void timer_start(Timer *timer, uint64_t ns);
	void timer_try_cancel(Timer *timer);
	void timer_cancel_sync(Timer *timer);
	bool wait(void *waitq, bool (*done)(void *), void *arg, uint64_t timeout_ns);
	void wake(void *waitq);
	void resched();
	/* How often the core offered that others run. */
	unsigned long offers() const { return offers_; }
	void leak(const char *what, unsigned long count);

private:
	friend struct Task;

	Task *new_task(std::string name, std::function<void()> fn, bool interrupt);
	void fiber_body();
	void retire(Task *task);
	void block(const char *why, const void *on, uint64_t deadline = ~0ull);
	void wake_blocked(const void *on);
	void schedule();
	Task *pick();
	bool next_event(uint64_t *when) const;
	void fire_due();
	void start_timer_callback(Timer *timer);
	void idle_until(uint64_t when);
	void switch_point(unsigned int weight);
	uint64_t random();
	std::string describe_tasks() const;
	void check_nothing_inside(void *mem, size_t size);

	uint64_t seed_;
	uint64_t rng_;
	unsigned int switch_shift_ = 0;
	bool priorities_ = false;
	bool time_jumps_ = true;
	uint64_t now_ = 0;
	uint64_t switches_ = 0;
	uint64_t steps_at_instant_ = 0;
	uint64_t events_in_run_ = 0;

	std::vector<Task *> tasks_;
	Task *main_ = nullptr;
	Task *current_ = nullptr;
	size_t spawned_alive_ = 0;
	bool main_idle_ = false;
	bool main_runs_free_ = false;
	uint64_t main_idle_until_ = 0;
	uint64_t task_serial_ = 0;

	std::vector<Timer *> timers_;
	std::vector<Timer *> callbacks_;
	std::vector<Work *> works_;
	std::map<char *, Memory> memory_;
	unsigned long offers_ = 0;
	uint64_t allocations_ = 0;
	uint64_t fail_in_ = 0;
	bool failed_once_ = false;
	unsigned int leaks_allowed_ = 0;
	unsigned int leaks_seen_ = 0;
	uint64_t epoch_ = 1;
	int next_cookie_ = 1;
	std::string replay_hint_;
	bool trace_ = false;
};

} // namespace sim

#endif
