// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The simulated machine itself: does it notice what it says it notices? */
#include "sim/machine.h"

#include <gtest/gtest.h>
#include <set>

using sim::Machine;

namespace
{

struct SimDeath : testing::Test {
	SimDeath() { GTEST_FLAG_SET(death_test_style, "fast"); }
};

TEST(Sim, TasksRunOneAfterTheOtherWithoutASeed)
{
	Machine m;
	std::string order;
	rvt_os_mutex mutex;

	rvt_os_mutex_init(&mutex, RVT_LOCK_DEVICE);
	for (char c : {'a', 'b', 'c'})
		m.spawn(std::string(1, c), [&, c] {
			for (int i = 0; i < 3; i++) {
				rvt_os_mutex_lock(&mutex);
				order += c;
				rvt_os_mutex_unlock(&mutex);
			}
		});
	m.run();
	EXPECT_EQ(order, "aaabbbccc");
}

std::string interleave(uint64_t seed)
{
	Machine m(seed);
	std::string order;
	rvt_os_spin lock;

	rvt_os_spin_init(&lock, RVT_LOCK_CQ);
	for (char c : {'a', 'b', 'c'})
		m.spawn(std::string(1, c), [&, c] {
			for (int i = 0; i < 3; i++) {
				unsigned long flags = rvt_os_spin_lock(&lock);

				order += c;
				rvt_os_spin_unlock(&lock, flags);
			}
		});
	m.run();
	return order;
}

TEST(Sim, SeedsGiveManyOrdersAndEachReplays)
{
	std::set<std::string> seen;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		std::string order = interleave(seed);

		EXPECT_EQ(order, interleave(seed));
		seen.insert(order);
	}
	EXPECT_GT(seen.size(), 50u);
}

TEST(Sim, MutexExcludesInEverySchedule)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		Machine m(seed);
		rvt_os_mutex mutex;
		int inside = 0, total = 0;

		rvt_os_mutex_init(&mutex, RVT_LOCK_DEVICE);
		for (int t = 0; t < 4; t++)
			m.spawn("t", [&] {
				for (int i = 0; i < 5; i++) {
					rvt_os_mutex_lock(&mutex);
					EXPECT_EQ(inside++, 0);
					m.maybe_switch();
					rvt_os_resched();
					total++;
					inside--;
					rvt_os_mutex_unlock(&mutex);
				}
			});
		m.run();
		EXPECT_EQ(total, 20);
	}
}

struct TimerBox {
	rvt_os_timer timer; /* first: the callback gets it */
	Machine *m;
	std::vector<uint64_t> fired;
	bool again;
};

void timer_fires(rvt_os_timer *timer)
{
	auto *box = reinterpret_cast<TimerBox *>(timer);

	EXPECT_TRUE(box->m->in_interrupt());
	box->fired.push_back(box->m->now());
	if (box->again) {
		box->again = false;
		rvt_os_timer_start(timer, 5);
	}
}

TEST(Sim, TimersFireAtTheirInstant)
{
	Machine m;
	TimerBox box = {{}, &m, {}, true};

	rvt_os_timer_init(&box.timer, timer_fires);
	rvt_os_timer_start(&box.timer, 1000);
	m.advance(999);
	EXPECT_TRUE(box.fired.empty());
	m.advance(1);
	ASSERT_EQ(box.fired, (std::vector<uint64_t>{1000}));
	m.advance(100);
	EXPECT_EQ(box.fired, (std::vector<uint64_t>{1000, 1005}));
	EXPECT_EQ(m.now(), 1100u);
	rvt_os_timer_start(&box.timer, 10);
	rvt_os_timer_start(&box.timer, 50);
	m.advance(40);
	EXPECT_EQ(box.fired.size(), 2u);
	rvt_os_timer_cancel_sync(&box.timer);
	m.advance(100);
	EXPECT_EQ(box.fired.size(), 2u);
}

struct WorkBox {
	rvt_os_work work;
	int runs;
	int again;
};

void work_runs(rvt_os_work *work)
{
	auto *box = reinterpret_cast<WorkBox *>(work);

	box->runs++;
	if (box->again-- > 0)
		rvt_os_work_queue(work);
	rvt_os_resched();
}

TEST(Sim, WorkRunsOncePerQueueingAndMayQueueItself)
{
	Machine m;
	WorkBox box = {{}, 0, 2};

	rvt_os_work_init(&box.work, work_runs);
	rvt_os_work_queue(&box.work);
	rvt_os_work_queue(&box.work);
	EXPECT_EQ(box.runs, 0);
	m.settle();
	EXPECT_EQ(box.runs, 3);
	rvt_os_work_queue(&box.work);
	rvt_os_work_cancel_sync(&box.work);
	m.settle();
	EXPECT_LE(box.runs, 4);
}

TEST(Sim, SynchronizeWaitsForSectionsThatBeganBefore)
{
	for (uint64_t seed = 0; seed <= 200; seed++) {
		Machine m(seed);
		int *shared = new int(1);
		int *published = shared;

		for (int t = 0; t < 3; t++)
			m.spawn("reader", [&] {
				for (int i = 0; i < 3; i++) {
					int cookie = rvt_os_read_lock();
					int *p = published;

					rvt_os_resched();
					if (p) {
						EXPECT_EQ(*p, 1);
					}
					rvt_os_read_unlock(cookie);
				}
			});
		m.spawn("writer", [&] {
			rvt_os_resched();
			published = nullptr;
			rvt_os_read_synchronize();
			*shared = 2;
			delete shared;
		});
		m.run();
	}
}

struct Flag {
	rvt_os_waitq waitq;
	bool set;
};

bool flag_is_set(void *arg)
{
	return static_cast<Flag *>(arg)->set;
}

TEST(Sim, WaitEndsByWakeOrTimeout)
{
	for (uint64_t seed = 0; seed <= 100; seed++) {
		Machine m(seed);
		Flag flag = {};
		bool result = false;

		m.set_time_jumps(false);
		rvt_os_waitq_init(&flag.waitq);
		EXPECT_FALSE(rvt_os_wait(&flag.waitq, flag_is_set, &flag, 100));
		EXPECT_EQ(m.now(), 100u);
		m.spawn("waiter", [&] {
			result = rvt_os_wait(&flag.waitq, flag_is_set, &flag, sim::second);
		});
		m.spawn("waker", [&] {
			flag.set = true;
			rvt_os_wake(&flag.waitq);
		});
		m.run();
		EXPECT_TRUE(result);
		EXPECT_EQ(m.now(), 100u);
	}
}

/* A wait of seconds ends by itself only when nobody is left who could wake. */
TEST(Sim, TimeDoesNotJumpFarWhileTasksCanRun)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		Machine m(seed);
		rvt_os_waitq queue;
		bool done = false;

		rvt_os_waitq_init(&queue);
		m.spawn("waiter", [&] {
			auto is_done = [](void *arg) { return *static_cast<bool *>(arg); };

			EXPECT_TRUE(rvt_os_wait(&queue, is_done, &done, 5 * sim::second)) << seed;
		});
		m.spawn("worker", [&] {
			for (int i = 0; i < 200; i++)
				m.maybe_switch();
			done = true;
			rvt_os_wake(&queue);
		});
		m.run();
	}
}

TEST(Sim, TheNthAllocationFails)
{
	Machine m;

	m.fail_allocation(2);
	void *a = rvt_os_zalloc(16), *b = rvt_os_zalloc(16), *c = rvt_os_zalloc(16);

	EXPECT_TRUE(a);
	EXPECT_FALSE(b);
	EXPECT_TRUE(c);
	EXPECT_TRUE(m.allocation_failed());
	rvt_os_free(a);
	rvt_os_free(c);
}

TEST_F(SimDeath, MemoryNotFreed)
{
	EXPECT_EXIT(
		{
			Machine m;
			rvt_os_zalloc(24);
		},
		testing::ExitedWithCode(1), "not freed");
}

TEST_F(SimDeath, LockOrder)
{
	EXPECT_EXIT(
		{
			Machine m;
			rvt_os_spin a;
			rvt_os_spin b;

			rvt_os_spin_init(&a, RVT_LOCK_QP_S);
			rvt_os_spin_init(&b, RVT_LOCK_CQ);
			rvt_os_spin_lock(&b);
			rvt_os_spin_lock(&a);
		},
		testing::ExitedWithCode(1), "lock order: QP_S taken with CQ held");
}

TEST_F(SimDeath, TwoLocksOfOneClass)
{
	EXPECT_EXIT(
		{
			Machine m;
			rvt_os_mutex a;
			rvt_os_mutex b;

			rvt_os_mutex_init(&a, RVT_LOCK_QP_R);
			rvt_os_mutex_init(&b, RVT_LOCK_QP_R);
			rvt_os_mutex_lock(&b);
			rvt_os_mutex_lock(&a);
		},
		testing::ExitedWithCode(1), "lock order");
}

TEST_F(SimDeath, SleepingUnderASpinlock)
{
	EXPECT_EXIT(
		{
			Machine m;
			rvt_os_spin a;

			rvt_os_spin_init(&a, RVT_LOCK_CQ);
			rvt_os_spin_lock(&a);
			rvt_os_zalloc(8);
		},
		testing::ExitedWithCode(1), "rvt_os_zalloc with spinlock CQ held");
}

TEST_F(SimDeath, ManyLocksUnderOneSpinlock)
{
	EXPECT_EXIT(
		{
			Machine m;
			rvt_os_spin outer;
			rvt_os_spin inner;

			rvt_os_spin_init(&outer, RVT_LOCK_QP_S);
			rvt_os_spin_init(&inner, RVT_LOCK_CQ);
			rvt_os_spin_lock(&outer);
			for (int i = 0; i < 1000; i++)
				rvt_os_spin_unlock(&inner, rvt_os_spin_lock(&inner));
		},
		testing::ExitedWithCode(1), "interrupts are off for too long");
}

TEST_F(SimDeath, MutexInAnInterrupt)
{
	EXPECT_EXIT(
		{
			Machine m;
			rvt_os_mutex a;

			rvt_os_mutex_init(&a, RVT_LOCK_DEVICE);
			m.in_interrupt([&] { rvt_os_mutex_lock(&a); });
		},
		testing::ExitedWithCode(1), "a mutex taken in interrupt context");
}

TEST_F(SimDeath, DeadlockSaysWhoWaitsForWhat)
{
	EXPECT_EXIT(
		{
			Machine m;
			Flag flag = {};
			rvt_os_mutex a;

			rvt_os_mutex_init(&a, RVT_LOCK_DEVICE);
			rvt_os_waitq_init(&flag.waitq);
			m.spawn("first", [&] {
				rvt_os_mutex_lock(&a);
				rvt_os_wait(&flag.waitq, flag_is_set, &flag, ~0ull);
			});
			m.spawn("second", [&] { rvt_os_mutex_lock(&a); });
			m.run();
		},
		testing::ExitedWithCode(1),
		"deadlock(.|\n)*second: waits for lock DEVICE that first holds");
}

TEST_F(SimDeath, SynchronizeInAReadSection)
{
	EXPECT_EXIT(
		{
			Machine m;

			rvt_os_read_lock();
			rvt_os_read_synchronize();
		},
		testing::ExitedWithCode(1), "in a read section");
}

TEST_F(SimDeath, SynchronizeWithALockThatReadersTake)
{
	EXPECT_EXIT(
		{
			Machine m;
			rvt_os_mutex a;

			rvt_os_mutex_init(&a, RVT_LOCK_DEVICE);
			int cookie = rvt_os_read_lock();
			rvt_os_mutex_lock(&a);
			rvt_os_mutex_unlock(&a);
			rvt_os_read_unlock(cookie);
			rvt_os_mutex_lock(&a);
			rvt_os_read_synchronize();
		},
		testing::ExitedWithCode(1), "which readers take");
}

TEST_F(SimDeath, TimerInFreedMemory)
{
	EXPECT_EXIT(
		{
			Machine m;
			auto *timer =
				static_cast<rvt_os_timer *>(rvt_os_zalloc(sizeof(rvt_os_timer)));

			rvt_os_timer_init(timer, timer_fires);
			rvt_os_timer_start(timer, 10);
			rvt_os_free(timer);
		},
		testing::ExitedWithCode(1), "freed with a pending timer");
}

TEST_F(SimDeath, ConditionTrueButNobodyWoke)
{
	EXPECT_EXIT(
		{
			Machine m;
			Flag flag = {};

			rvt_os_waitq_init(&flag.waitq);
			m.spawn("waiter",
				[&] { rvt_os_wait(&flag.waitq, flag_is_set, &flag, sim::second); });
			m.spawn("forgets to wake", [&] { flag.set = true; });
			m.run();
		},
		testing::ExitedWithCode(1), "nobody woke");
}

TEST_F(SimDeath, DoubleFree)
{
	EXPECT_EXIT(
		{
			Machine m;
			void *mem = rvt_os_zalloc(8);

			rvt_os_free(mem);
			rvt_os_free(mem);
		},
		testing::ExitedWithCode(1), "freed already");
}

} // namespace
