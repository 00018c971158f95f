// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * os.c - the services of os.h, on top of the Linux kernel.
 *
 * Each object lives in room that the core owns: the kernel's own object sits
 * at its beginning, together with the callback where there is one. What
 * differs between kernel versions in these services differs here only.
 */
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <rvt/os.h>

#include "os_init.h"

struct os_work {
	struct work_struct work;
	void (*fn)(struct rvt_os_work *work);
};

struct os_timer {
	struct hrtimer timer;
	void (*fn)(struct rvt_os_timer *timer);
};

#define ASSERT_ROOM(inner, room)						\
	static_assert(sizeof(inner) <= sizeof(room) &&				\
		      __alignof__(inner) <= __alignof__(room),			\
		      "raise RVT_OS_LOCK_BYTES: " #inner " does not fit " #room)

ASSERT_ROOM(spinlock_t, struct rvt_os_spin);
ASSERT_ROOM(struct mutex, struct rvt_os_mutex);
ASSERT_ROOM(struct os_work, struct rvt_os_work);
ASSERT_ROOM(struct os_timer, struct rvt_os_timer);
ASSERT_ROOM(wait_queue_head_t, struct rvt_os_waitq);

/* Addresses are kept in 64 bits and pages are always mapped (no highmem). */
static_assert(sizeof(long) == 8, "rvt needs a 64-bit kernel");

static struct workqueue_struct *os_wq;

/* --- memory --------------------------------------------------------------- */

void *rvt_os_zalloc(size_t size)
{
	/*
	 * The slab caches for 96 and 192 bytes align to less than 16; the
	 * power of two above them aligns to itself.
	 */
	if (size <= 192)
		size = roundup_pow_of_two(max_t(size_t, size, 16));
	/* kvmalloc() takes a request beyond INT_MAX for a bug. */
	if (size > INT_MAX)
		return __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	return kvzalloc(size, GFP_KERNEL_ACCOUNT);
}

void rvt_os_free(void *mem)
{
	kvfree(mem);
}

/* --- locks ------------------------------------------------------------------ */

/*
 * One lockdep class for each class of os.h, not one for each place where
 * such a lock is initialised.
 */
static struct lock_class_key os_lock_key[RVT_LOCK_CLASSES];

static const char *const os_lock_name[RVT_LOCK_CLASSES] = {
	[RVT_LOCK_DEVICE] = "rvt_device",
	[RVT_LOCK_PD] = "rvt_pd",
	[RVT_LOCK_QP_MODIFY] = "rvt_qp_modify",
	[RVT_LOCK_QP_R] = "rvt_qp_r",
	[RVT_LOCK_QP_SH] = "rvt_qp_sh",
	[RVT_LOCK_QP_S] = "rvt_qp_s",
	[RVT_LOCK_RQ_CONSUMER] = "rvt_rq_consumer",
	[RVT_LOCK_RQ_PRODUCER] = "rvt_rq_producer",
	[RVT_LOCK_CQ] = "rvt_cq",
	[RVT_LOCK_TABLE] = "rvt_table",
};

static spinlock_t *to_spin(struct rvt_os_spin *lock)
{
	return (spinlock_t *)lock->room;
}

static struct mutex *to_mutex(struct rvt_os_mutex *lock)
{
	return (struct mutex *)lock->room;
}

void rvt_os_spin_init(struct rvt_os_spin *lock, enum rvt_os_lock_class cls)
{
	spinlock_t *spin = to_spin(lock);

	spin_lock_init(spin);
	lockdep_set_class_and_name(spin, &os_lock_key[cls], os_lock_name[cls]);
}

unsigned long rvt_os_spin_lock(struct rvt_os_spin *lock)
{
	unsigned long flags;

	spin_lock_irqsave(to_spin(lock), flags);
	/* For sparse, which does not see past the functions of os.h. */
	__release(lock);
	return flags;
}

void rvt_os_spin_unlock(struct rvt_os_spin *lock, unsigned long flags)
{
	__acquire(lock);
	spin_unlock_irqrestore(to_spin(lock), flags);
}

void rvt_os_mutex_init(struct rvt_os_mutex *lock, enum rvt_os_lock_class cls)
{
	struct mutex *mutex = to_mutex(lock);

	mutex_init(mutex);
	lockdep_set_class_and_name(mutex, &os_lock_key[cls], os_lock_name[cls]);
}

void rvt_os_mutex_lock(struct rvt_os_mutex *lock)
{
	mutex_lock(to_mutex(lock));
}

void rvt_os_mutex_unlock(struct rvt_os_mutex *lock)
{
	mutex_unlock(to_mutex(lock));
}

/* --- read sections ------------------------------------------------------------- */

DEFINE_STATIC_SRCU(os_srcu);

int rvt_os_read_lock(void)
{
	int cookie = srcu_read_lock(&os_srcu);

	__release(&os_srcu);
	return cookie;
}

void rvt_os_read_unlock(int cookie)
{
	__acquire(&os_srcu);
	srcu_read_unlock(&os_srcu, cookie);
}

void rvt_os_read_synchronize(void)
{
	synchronize_srcu_expedited(&os_srcu);
}

/* --- work ------------------------------------------------------------------------ */

static void os_work_fn(struct work_struct *work)
{
	struct os_work *item = container_of(work, struct os_work, work);

	/* The callback may free the item: nothing may touch it afterwards. */
	item->fn((struct rvt_os_work *)item);
}

void rvt_os_work_init(struct rvt_os_work *work, void (*fn)(struct rvt_os_work *work))
{
	struct os_work *item = (struct os_work *)work->room;

	INIT_WORK(&item->work, os_work_fn);
	item->fn = fn;
}

void rvt_os_work_queue(struct rvt_os_work *work)
{
	struct os_work *item = (struct os_work *)work->room;

	queue_work(os_wq, &item->work);
}

void rvt_os_work_cancel_sync(struct rvt_os_work *work)
{
	struct os_work *item = (struct os_work *)work->room;

	cancel_work_sync(&item->work);
}

/* --- time -------------------------------------------------------------------------- */

static enum hrtimer_restart os_timer_fn(struct hrtimer *timer)
{
	struct os_timer *item = container_of(timer, struct os_timer, timer);

	item->fn((struct rvt_os_timer *)item);
	return HRTIMER_NORESTART;
}

void rvt_os_timer_init(struct rvt_os_timer *timer, void (*fn)(struct rvt_os_timer *timer))
{
	struct os_timer *item = (struct os_timer *)timer->room;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&item->timer, os_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(&item->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	item->timer.function = os_timer_fn;
#endif
	item->fn = fn;
}

void rvt_os_timer_start(struct rvt_os_timer *timer, uint64_t ns)
{
	struct os_timer *item = (struct os_timer *)timer->room;

	hrtimer_start(&item->timer, ns_to_ktime(min_t(u64, ns, KTIME_MAX)), HRTIMER_MODE_REL);
}

void rvt_os_timer_try_cancel(struct rvt_os_timer *timer)
{
	struct os_timer *item = (struct os_timer *)timer->room;

	hrtimer_try_to_cancel(&item->timer);
}

void rvt_os_timer_cancel_sync(struct rvt_os_timer *timer)
{
	struct os_timer *item = (struct os_timer *)timer->room;

	hrtimer_cancel(&item->timer);
}

/* --- waiting -------------------------------------------------------------------------- */

static wait_queue_head_t *to_waitq(struct rvt_os_waitq *waitq)
{
	return (wait_queue_head_t *)waitq->room;
}

void rvt_os_waitq_init(struct rvt_os_waitq *waitq)
{
	init_waitqueue_head(to_waitq(waitq));
}

bool rvt_os_wait(struct rvt_os_waitq *waitq, bool (*done)(void *arg), void *arg,
		 uint64_t timeout_ns)
{
	unsigned long timeout = nsecs_to_jiffies(timeout_ns);

	/* One more: the present jiffy is already partly over. */
	timeout = min_t(unsigned long, timeout, MAX_SCHEDULE_TIMEOUT - 2) + 1;
	return wait_event_timeout(*to_waitq(waitq), done(arg), timeout) != 0;
}

void rvt_os_wake(struct rvt_os_waitq *waitq)
{
	wake_up_all(to_waitq(waitq));
}

void rvt_os_resched(void)
{
	cond_resched();
}

/* --- reports ------------------------------------------------------------------------------ */

void rvt_os_leak(const char *what, unsigned long count)
{
	pr_err("rvt: leaked %lu %s\n", count, what);
}

/* --- start and end ---------------------------------------------------------------------------- */

int rvt_os_init(void)
{
	/* One request may copy 2 GiB: other work of the CPU must not wait for that. */
	unsigned int flags = WQ_MEM_RECLAIM | WQ_CPU_INTENSIVE;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
	flags |= WQ_PERCPU;
#endif
	os_wq = alloc_workqueue("rvt", flags, 0);
	return os_wq ? 0 : -ENOMEM;
}

void rvt_os_exit(void)
{
	destroy_workqueue(os_wq);
}
