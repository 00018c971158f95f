// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A queue pair: its state, its two sides, and the functions of its life.
//
// Locks, outermost first: modify_lock (one modify or reset at a time),
// r_lock (responder), s_hlock (producer side of the send ring), s_lock
// (requester). A change of state holds r_lock and s_lock; so holding either
// is enough to see it stand still. r_lock is a mutex: data is copied under
// it, with other tasks free to run. The responder's r_lock is never taken
// with the requester's s_lock held; while that one is dropped, the flag
// "busy" keeps the send engine to one thread.
#ifndef RVT_QP_QP_H
#define RVT_QP_QP_H

#include <array>
#include <atomic>

#include <rvt/trace.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/object.h"
#include "mr/sge.h"
#include "wq/opcodes.h"
#include "wq/rq.h"

namespace rvt
{

class Outbox;
class QpLocks;

// What a state allows (InfiniBand 10.3.1). Of a size that is quick to multiply by.
struct alignas(8) StateInfo {
	bool post_recv, process_recv, post_send, start_send, continue_send, flush_send, flush_recv;
};

inline constexpr std::array<StateInfo, 7> state_table = {{
	// clang-format off
	//          post   process post   start  go on  flush  flush
	//          recv   recv    send   send   send   send   recv
	/* RESET */ {false, false, false, false, false, false, false},
	/* INIT  */ {true,  false, false, false, false, false, false},
	/* RTR   */ {true,  true,  false, false, false, false, false},
	/* RTS   */ {true,  true,  true,  true,  true,  false, false},
	/* SQD   */ {true,  true,  true,  false, true,  false, false},
	/* SQE   */ {true,  true,  true,  false, false, true,  false},
	/* ERR   */ {true,  false, true,  false, false, true,  true},
	// clang-format on
}};

constexpr const StateInfo &state_info(QpState s)
{
	return state_table[static_cast<unsigned int>(s)];
}

// What the send engine is doing or waiting for.
enum SendFlag : uint32_t {
	s_busy = 1,	     // a thread is in the engine
	s_wait_rnr = 2,	     // the responder had no receive
	s_wait_retry = 4,    // the responder did not answer
	s_wanted_idle = 8,   // somebody waits for busy to clear
	s_drain_notify = 16, // SQ_DRAINED is owed
	s_timed_out = 32,    // a wait for an answer is over: one retry less
	s_flush_some = 64,   // requests up to s_flush_end are flushed in any state
};
inline constexpr uint32_t s_waiting = s_wait_rnr | s_wait_retry;

// Send ring positions, cyclic order last <= cur <= head. cur == last: idle;
// cur one further: the request at last is being carried out.
struct SendRing {
	uint8_t *memory = nullptr;
	size_t stride = 0;
	uint32_t size = 0; // entries, one always empty
	uint32_t max_sge = 0;
};

void trace_state(const Qp &qp, QpState from, QpState to);

} // namespace rvt

struct rvt_core_qp : rvt::Object {
	explicit rvt_core_qp(const rvt_qp_init &init);
	~rvt_core_qp();

	rvt_swqe &swqe(uint32_t index) const
	{
		return *reinterpret_cast<rvt_swqe *>(sq.memory + index * sq.stride);
	}
	// The pieces of a request follow it in the slot.
	rvt_sge *swqe_sge(rvt_swqe &wqe) const { return reinterpret_cast<rvt_sge *>(&wqe + 1); }

	rvt::QpState state() const { return state_.load(std::memory_order_acquire); }
	void set_state(rvt::QpState s) RVT_REQUIRES(r_lock, s_lock)
	{
		if (rvt_traced(RVT_TRACE_QP_STATE))
			rvt::trace_state(*this, state_.load(std::memory_order_relaxed), s);
		state_.store(s, std::memory_order_release);
	}
	// Send requests not yet completed; for a look without the locks.
	bool sends_pending() const
	{
		return s_head.load(std::memory_order_acquire) !=
		       s_last.load(std::memory_order_acquire);
	}
	// For whoever alone writes a counter: the engine, or the holder of r_lock.
	void count(rvt_counter which, uint64_t n = 1)
	{
		auto &c = counters_[which];

		c.store(c.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
	}
	// For those that both sides write.
	void count_shared(rvt_counter which, uint64_t n = 1)
	{
		counters_[which].fetch_add(n, std::memory_order_relaxed);
	}
	void add_counters(uint64_t *value) const;
	// Hand the counts over to the device.
	void fold_counters();

	// --- fixed at creation
	rvt::Qpn qpn;
	const rvt::QpType type;
	const bool user;
	const bool sig_all;
	const uint32_t max_inline;
	rvt::Pd &pd;
	rvt::Cq &send_cq;
	rvt::Cq &recv_cq;
	rvt::Srq *const srq;
	rvt::SendRing sq;
	rvt::Array<uint8_t> sq_memory;
	rvt::Array<rvt_ah_attr> ud_ah;	   // one per slot: AHs may go while requests wait
	rvt::Array<rvt::BoundSge> s_bound; // room for s_sge
	rvt::Array<rvt::BoundSge> r_bound; // room for r_sge
	rvt::rvt_rq rq;

	// --- links
	std::atomic<rvt::Qp *> next{nullptr};		  // QpTable's chain
	rvt::Qp *pd_next = nullptr, *pd_prev = nullptr;	  // Pd's list, under its lock
	rvt::Qp *err_next = nullptr, *err_prev = nullptr; // ErrorWatch's list, under its lock
	bool err_listed = false;
	unsigned int err_pass = 0;

	rvt::Mutex modify_lock{RVT_LOCK_QP_MODIFY};
	bool dying RVT_GUARDED_BY(modify_lock) = false; // being destroyed

	// --- responder
	rvt::Mutex r_lock{RVT_LOCK_QP_R};
	rvt::SgeState r_sge RVT_GUARDED_BY(r_lock);
	uint64_t r_wr_id RVT_GUARDED_BY(r_lock) = 0;
	bool r_wrid_valid RVT_GUARDED_BY(r_lock) = false; // a receive is in use
	bool r_comm_est RVT_GUARDED_BY(r_lock) = false;	  // COMM_EST was raised
	uint32_t r_ack_key RVT_GUARDED_BY(r_lock) = 0; // rkey of the READ or atomic being answered
	// Written under r_lock; queries read it without.
	std::atomic<uint32_t> r_psn{0};
	uint32_t r_msn RVT_GUARDED_BY(r_lock) = 0;
	// The responder's copies of attributes (modify holds all locks).
	uint32_t r_access RVT_GUARDED_BY(r_lock) = 0;
	uint32_t r_qkey RVT_GUARDED_BY(r_lock) = 0;
	rvt::Qpn r_peer_qpn RVT_GUARDED_BY(r_lock);
	rvt_ah_attr r_peer_ah RVT_GUARDED_BY(r_lock){};
	uint16_t r_pkey_index RVT_GUARDED_BY(r_lock) = 0;
	uint8_t r_min_rnr_timer RVT_GUARDED_BY(r_lock) = 0;
	uint8_t r_max_rd_atomic RVT_GUARDED_BY(r_lock) = 0;

	// --- producer of the send ring
	rvt::SpinLock s_hlock{RVT_LOCK_QP_SH};
	std::atomic<uint32_t> s_head{0};	      // written under s_hlock
	uint32_t s_avail RVT_GUARDED_BY(s_hlock) = 0; // free slots, at least
	uint32_t s_ssn RVT_GUARDED_BY(s_hlock) = 1;
	std::atomic<uint32_t> s_next_psn{0}; // written under s_hlock
	uint8_t s_mtu_shift RVT_GUARDED_BY(s_hlock) = 0;
	uint8_t s_max_rd_atomic RVT_GUARDED_BY(s_hlock) = 0;

	// --- requester
	rvt::SpinLock s_lock{RVT_LOCK_QP_S};
	uint32_t s_flags RVT_GUARDED_BY(s_lock) = 0;
	std::atomic<uint32_t> s_last{0}; // written under s_lock
	uint32_t s_cur RVT_GUARDED_BY(s_lock) = 0;
	uint32_t s_flush_end RVT_GUARDED_BY(s_lock) = 0;
	uint8_t s_retry RVT_GUARDED_BY(s_lock) = 0;	// what is left of attr.retry_cnt
	uint8_t s_rnr_retry RVT_GUARDED_BY(s_lock) = 0; // what is left of attr.rnr_retry
	rvt_qp_attr attr RVT_GUARDED_BY(s_lock){};	// as configured
	// Path migration; the loopback looks at it without the lock.
	std::atomic<rvt::MigState> mig{rvt::MigState::migrated};
	rvt::SgeState s_sge;			       // of the engine only: busy guards it
	rvt::WithOwner<rvt_os_timer, rvt::Qp> s_timer; // RNR or retry; RC only
	rvt::WithOwner<rvt_os_work, rvt::Qp> s_work;

private:
	std::atomic<rvt::QpState> state_{rvt::QpState::reset};
	std::array<std::atomic<uint64_t>, RVT_COUNTERS> counters_{};
};

namespace rvt
{

// The three locks of a change of state, in order, for a scope.
class RVT_SCOPED_CAPABILITY QpLocks
{
public:
	explicit QpLocks(Qp &qp) RVT_ACQUIRE(qp.r_lock, qp.s_hlock, qp.s_lock) : qp_(qp) { take(); }
	~QpLocks() RVT_RELEASE() { drop(); }
	QpLocks(const QpLocks &) = delete;
	QpLocks &operator=(const QpLocks &) = delete;

	// For a reset, which waits in the middle.
	void take() RVT_NO_TSA
	{
		qp_.r_lock.lock();
		h_flags_ = qp_.s_hlock.lock();
		s_flags_ = qp_.s_lock.lock();
	}
	void drop() RVT_NO_TSA
	{
		qp_.s_lock.unlock(s_flags_);
		qp_.s_hlock.unlock(h_flags_);
		qp_.r_lock.unlock();
	}

private:
	Qp &qp_;
	unsigned long h_flags_;
	unsigned long s_flags_;
};

} // namespace rvt

extern "C" {

/**
 * get_allowed_ops - the family of packet opcodes of a queue pair type
 * @type: the type
 *
 * Context: any. Return: 0x00 RC, 0x20 UC, 0x60 all others (InfiniBand 9.2.1).
 */
uint8_t get_allowed_ops(rvt::QpType type);

/**
 * alloc_ud_wq_attr - room for the address of each request in the send ring
 * @qp: a queue pair whose send ring has its size; others than UD, SMI and
 *      GSI need none
 *
 * Context: process. Return: ok, nomem.
 */
rvt::Errno alloc_ud_wq_attr(rvt::Qp *qp);

/**
 * free_ud_wq_attr - give that room back; null or partly filled is fine
 * @qp: its queue pair
 *
 * Context: process.
 */
void free_ud_wq_attr(rvt::Qp *qp);

/**
 * rvt_init_qp - put the soft state of a queue pair to what RESET means
 * @qp: the queue pair
 *
 * Rings empty, PSNs and attributes 0; sizes, signalling and completion
 * queues stay. Context: process.
 * Locks: r_lock, s_hlock, s_lock held.
 */
void rvt_init_qp(rvt::Qp *qp) RVT_REQUIRES(qp->r_lock, qp->s_hlock, qp->s_lock);

/**
 * rvt_reset_qp - bring a queue pair to RESET from any state
 * @qp: the queue pair
 *
 * Queued requests vanish without completions; timers are off, the engine is
 * out, the table does not have it any more when this returns.
 * Context: process. Locks: modify_lock held by the caller or the queue pair
 * is being destroyed; takes the others.
 */
void rvt_reset_qp(rvt::Qp *qp) RVT_EXCLUDES(qp->r_lock, qp->s_hlock, qp->s_lock);

/**
 * _rvt_reset_qp - the same for one who holds the three locks
 * @qp: the queue pair
 * @locks: the scope that holds them
 *
 * Drops and takes them again, so it may sleep and what the caller read
 * before is stale.
 */
void _rvt_reset_qp(rvt::Qp *qp, rvt::QpLocks &locks)
	RVT_REQUIRES(qp->r_lock, qp->s_hlock, qp->s_lock);

/**
 * rvt_error_qp - bring a queue pair to ERR
 * @qp: the queue pair
 * @err: why; a receive that is in use completes with it
 * @cause: who began, for those who watch
 * @out: upcalls to deliver after unlocking
 *
 * Nothing happens in RESET and ERR. Waiting sends are flushed by the engine,
 * which is started, waiting receives by finish_error(), which the caller calls
 * once it has dropped s_lock. Receives of an SRQ stay where they are.
 * Context: process. Locks: r_lock and s_lock held.
 * Return: 1 when LAST_WQE_REACHED has to be raised, which finish_error() does
 * as well; else 0.
 */
int rvt_error_qp(rvt::Qp *qp, rvt_wc_status err, rvt_trace_cause cause, rvt::Outbox &out)
	RVT_REQUIRES(qp->r_lock, qp->s_lock);

/**
 * rvt_clear_mr_refs - drop what a queue pair still holds of regions
 * @qp: the queue pair
 * @clr_sends: 1: also throw away the queued sends
 *
 * Context: process. Locks: r_lock, s_hlock, s_lock held.
 */
void rvt_clear_mr_refs(rvt::Qp *qp, int clr_sends)
	RVT_REQUIRES(qp->r_lock, qp->s_hlock, qp->s_lock);

/**
 * rvt_swqe_has_lkey - does a send request use a key?
 * @qp: the request's queue pair
 * @wqe: the request
 * @lkey: the key
 *
 * Context: any. Locks: s_hlock and s_lock of its queue pair held.
 */
bool rvt_swqe_has_lkey(rvt::Qp *qp, rvt_swqe *wqe, uint32_t lkey)
	RVT_REQUIRES(qp->s_hlock, qp->s_lock);

/**
 * rvt_qp_sends_has_lkey - does any queued send use a key?
 * @qp: the queue pair
 * @lkey: the key
 *
 * What is posted or carried out meanwhile may be missed.
 * Context: process. Locks: takes s_hlock and s_lock, for some requests at a
 * time.
 */
bool rvt_qp_sends_has_lkey(rvt::Qp *qp, uint32_t lkey) RVT_EXCLUDES(qp->s_hlock, qp->s_lock);

/**
 * rvt_qp_acks_has_lkey - does an RC responder answer from a key's region?
 * @qp: the responder
 * @lkey: the key
 *
 * Responses are made at once, so there is at most one. Locks: r_lock held.
 */
bool rvt_qp_acks_has_lkey(rvt::Qp *qp, uint32_t lkey) RVT_REQUIRES(qp->r_lock);

/**
 * rvt_qp_mr_clean - a region ends: does the queue pair still use its key?
 * @qp: the queue pair
 * @lkey: the key
 * @out: upcalls to deliver after unlocking
 *
 * If so it goes to ERR (LOC_PROT_ERR). SMI and GSI are left alone.
 * Context: process. Locks: takes r_lock, s_hlock, s_lock.
 */
void rvt_qp_mr_clean(rvt::Qp *qp, uint32_t lkey, rvt::Outbox &out)
	RVT_EXCLUDES(qp->r_lock, qp->s_hlock, qp->s_lock);

/**
 * rvt_qp_valid_operation - may this request be posted here?
 * @qp: where it is posted
 * @wqe: opcode and its fields filled in
 * @sge: its pieces
 * @num_sge: how many
 *
 * Context: any. Locks: s_hlock held. Return: ok, inval.
 */
rvt::Errno rvt_qp_valid_operation(rvt::Qp *qp, const rvt_swqe *wqe, const rvt_sge *sge,
				  uint32_t num_sge) RVT_REQUIRES(qp->s_hlock);

/**
 * rvt_qp_is_avail - is there a free slot in the send ring?
 * @qp: the queue pair
 *
 * Context: any. Locks: s_hlock held. Return: ok, nomem.
 */
rvt::Errno rvt_qp_is_avail(rvt::Qp *qp) RVT_REQUIRES(qp->s_hlock);

/**
 * rvt_get_rwqe - take the next receive for an incoming message
 * @qp: the responder
 * @wr_id_only: 1: only its cookie is wanted (RDMA WRITE with immediate)
 * @message: how much it writes there, a datagram's header included
 * @out: SRQ_LIMIT_REACHED and completion upcalls to deliver after unlocking
 *
 * Sets r_wr_id, r_wrid_valid, r_sge, which reaches as far as the message does. A
 * receive with a bad key completes here with LOC_PROT_ERR, one that makes no sense
 * with LOC_QP_OP_ERR. One that is too small is taken, unless @message lets it stay.
 * Context: process, in a read section. Locks: r_lock held.
 * Return: 1 got one, 0 none, -1 a local error, -2 too small.
 */
int rvt_get_rwqe(rvt::Qp *qp, int wr_id_only, rvt::Incoming message, rvt::Outbox &out)
	RVT_REQUIRES(qp->r_lock);

/**
 * rvt_comm_est - the first message reached a queue pair in RTR
 * @qp: the responder
 * @out: takes the event, to be delivered after unlocking
 *
 * Raises COMM_EST once per entry to RTR. Locks: r_lock held.
 */
void rvt_comm_est(rvt::Qp *qp, rvt::Outbox &out) RVT_REQUIRES(qp->r_lock);

/**
 * rvt_add_rnr_timer - wait because the responder has no receive
 * @qp: the requester
 * @aeth: the responder's timer code in bits 28:24 (InfiniBand 9.7.5.2.8)
 *
 * Context: any. Locks: s_lock held.
 */
void rvt_add_rnr_timer(rvt::Qp *qp, uint32_t aeth) RVT_REQUIRES(qp->s_lock);

/**
 * rvt_stop_rc_timers - forget RNR and retry waits
 * @qp: the requester
 *
 * A callback that runs already finds the flags cleared.
 * Context: any. Locks: s_lock held.
 */
void rvt_stop_rc_timers(rvt::Qp *qp) RVT_REQUIRES(qp->s_lock);

/**
 * rvt_stop_rnr_timer - the wait is over; for the timer's callback
 * @qp: the requester
 *
 * Context: any. Locks: s_lock held.
 */
void rvt_stop_rnr_timer(rvt::Qp *qp) RVT_REQUIRES(qp->s_lock);

/**
 * rvt_del_timers_sync - wait until no timer callback runs
 * @qp: the requester
 *
 * Context: process. Locks: none of the queue pair's.
 */
void rvt_del_timers_sync(rvt::Qp *qp) RVT_EXCLUDES(qp->r_lock, qp->s_hlock, qp->s_lock);
}

namespace rvt
{

// Go over to the alternate path.
void migrate(Qp &qp, Outbox &out) RVT_REQUIRES(qp.r_lock, qp.s_lock);
// Let the engine run soon on the work queue. Any lock may be held.
void schedule_send(Qp &qp);
// What rvt_error_qp() leaves to do without s_lock, since it may take long: flush
// the receives, or raise LAST_WQE_REACHED if it returned so.
void finish_error(Qp &qp, int last_wqe, Outbox &out) RVT_REQUIRES(qp.r_lock)
	RVT_EXCLUDES(qp.s_lock);
// Flush what the user wrote into the mapped ring after ERR.
void flush_late_receives(Qp &qp);
// Complete a receive with an error.
void fail_recv(Qp &qp, uint64_t wr_id, rvt_wc_status status, Outbox &out) RVT_REQUIRES(qp.r_lock);
// Complete what waits in the QP's own ring as flushed.
void flush_receives(Qp &qp, Outbox &out) RVT_REQUIRES(qp.r_lock);
// Nanoseconds of an RNR timer code.
uint64_t rnr_ns(uint32_t code);

} // namespace rvt

#endif
