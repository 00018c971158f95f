/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * os.h - the few services that the core asks of the machine it runs on.
 *
 * In the kernel drivers/rvt/os/ supplies them; in the tests tests/host/
 * supplies them on a simulated machine with a virtual clock and a seeded
 * scheduler. The core knows nothing else of either. Plain C, readable alone.
 *
 * Contexts: "process" may sleep; "any" includes hard interrupts.
 */
#ifndef RVT_OS_H
#define RVT_OS_H

#include <rvt/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Room for one of the machine's locks, timers, work items. A kernel with
 * lock debugging needs more: its build says so. os/ checks at compile time
 * that the room is enough.
 */
#ifndef RVT_OS_LOCK_BYTES
#define RVT_OS_LOCK_BYTES 64
#endif
#define RVT_OS_TIMER_BYTES (RVT_OS_LOCK_BYTES + 64)
#define RVT_OS_WORK_BYTES (RVT_OS_LOCK_BYTES + 64)

#define RVT_OS_ROOM(bytes) unsigned long room[(bytes) / sizeof(unsigned long)]

/*
 * What a lock protects; also its place in the order. A thread that holds a
 * lock takes only locks further down this list (and never two of one class).
 */
enum rvt_os_lock_class {
	RVT_LOCK_DEVICE, /* mutex: device tables (keys, QPNs, multicast, fabric) */
	RVT_LOCK_PD, /* mutex: the list of QPs of a protection domain */
	RVT_LOCK_QP_MODIFY, /* mutex: one modify or reset of a QP at a time */
	RVT_LOCK_QP_R, /* mutex: responder state, and state changes */
	RVT_LOCK_QP_SH, /* spin: producer side of the send ring */
	RVT_LOCK_QP_S, /* spin: requester state, send engine */
	RVT_LOCK_RQ_CONSUMER, /* spin: consumer side of a receive ring */
	RVT_LOCK_RQ_PRODUCER, /* spin: producer side of a receive ring */
	RVT_LOCK_CQ, /* spin: a completion ring */
	RVT_LOCK_TABLE, /* spin: writers of the QP hash and of the QPN map */
	RVT_LOCK_CLASSES
};

/* --- memory ---------------------------------------------------------- */

/**
 * rvt_os_zalloc - allocate zeroed memory
 * @size: bytes; may be large, the memory need not be physically contiguous
 *
 * Context: process. Return: the memory, aligned to 16 bytes, or NULL.
 */
void *rvt_os_zalloc(size_t size);

/**
 * rvt_os_free - free memory of rvt_os_zalloc(); NULL is allowed
 *
 * Context: process.
 */
void rvt_os_free(void *mem);

/* --- locks ----------------------------------------------------------- */

struct rvt_os_spin {
	RVT_OS_ROOM(RVT_OS_LOCK_BYTES);
};

struct rvt_os_mutex {
	RVT_OS_ROOM(RVT_OS_LOCK_BYTES);
};

void rvt_os_spin_init(struct rvt_os_spin *lock, enum rvt_os_lock_class cls);

/**
 * rvt_os_spin_lock - take a spinlock and disable interrupts on this CPU
 *
 * Context: any. Return: what rvt_os_spin_unlock() needs to restore.
 */
unsigned long rvt_os_spin_lock(struct rvt_os_spin *lock);
void rvt_os_spin_unlock(struct rvt_os_spin *lock, unsigned long flags);

void rvt_os_mutex_init(struct rvt_os_mutex *lock, enum rvt_os_lock_class cls);
/* Context: process, no spinlock held. */
void rvt_os_mutex_lock(struct rvt_os_mutex *lock);
void rvt_os_mutex_unlock(struct rvt_os_mutex *lock);

/* --- read sections ----------------------------------------------------- */

/*
 * A read section keeps alive whatever a look-up inside it found. It may
 * sleep. Entering costs no atomic operation on a shared cache line. One
 * domain for the whole module (SRCU in the kernel).
 */

/* Context: any. Return: a cookie for rvt_os_read_unlock(). Sections nest. */
int rvt_os_read_lock(void);
void rvt_os_read_unlock(int cookie);

/**
 * rvt_os_read_synchronize - wait until every read section that had begun
 * before the call has ended
 *
 * Context: process, no lock held that a reader takes, not in a read section.
 */
void rvt_os_read_synchronize(void);

/* --- work -------------------------------------------------------------- */

struct rvt_os_work {
	RVT_OS_ROOM(RVT_OS_WORK_BYTES);
};

/* @fn runs in process context; one item never runs twice at a time. */
void rvt_os_work_init(struct rvt_os_work *work, void (*fn)(struct rvt_os_work *work));

/**
 * rvt_os_work_queue - have the item run soon, on this CPU's worker
 *
 * Context: any. An item that is running may be queued again, by itself too.
 */
void rvt_os_work_queue(struct rvt_os_work *work);

/**
 * rvt_os_work_cancel_sync - take the item off the queue and wait for its end
 *
 * Afterwards it neither runs nor is queued, also if it queues itself.
 * Context: process, not from the item itself.
 */
void rvt_os_work_cancel_sync(struct rvt_os_work *work);

/* --- time -------------------------------------------------------------- */

struct rvt_os_timer {
	RVT_OS_ROOM(RVT_OS_TIMER_BYTES);
};

/* @fn runs once per start, in hard interrupt context. */
void rvt_os_timer_init(struct rvt_os_timer *timer, void (*fn)(struct rvt_os_timer *timer));

/**
 * rvt_os_timer_start - let the timer expire once
 * @ns: nanoseconds from now; not earlier than that
 *
 * Restarts a timer that is pending. Context: any.
 */
void rvt_os_timer_start(struct rvt_os_timer *timer, uint64_t ns);

/* Cancel without waiting: a callback may be running. Context: any. */
void rvt_os_timer_try_cancel(struct rvt_os_timer *timer);

/* Cancel and wait for a running callback. Context: process, no spinlock held. */
void rvt_os_timer_cancel_sync(struct rvt_os_timer *timer);

/* --- waiting ------------------------------------------------------------ */

struct rvt_os_waitq {
	RVT_OS_ROOM(RVT_OS_LOCK_BYTES + 32);
};

void rvt_os_waitq_init(struct rvt_os_waitq *waitq);

/**
 * rvt_os_wait - sleep until a condition holds
 * @waitq: who makes the condition true wakes this
 * @done: the condition; called in process context, may take spinlocks
 * @arg: its argument
 * @timeout_ns: give up after so many nanoseconds
 *
 * Context: process. Return: whether the condition held at the end.
 */
bool rvt_os_wait(struct rvt_os_waitq *waitq, bool (*done)(void *arg), void *arg,
		 uint64_t timeout_ns);

/* Context: any. */
void rvt_os_wake(struct rvt_os_waitq *waitq);

/**
 * rvt_os_resched - let another task run if one is due
 *
 * Context: process, no spinlock held; mutexes and read sections are fine.
 */
void rvt_os_resched(void);

/* --- reports ------------------------------------------------------------ */

/**
 * rvt_os_leak - report an object that should have been gone
 * @what: the kind of object
 * @count: how many
 *
 * A line in the kernel log; the tests treat it as fatal. Context: any.
 */
void rvt_os_leak(const char *what, unsigned long count);

#ifdef __cplusplus
}
#endif

#endif
