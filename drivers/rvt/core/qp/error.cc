// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Reset, error, and what a queue pair gives back then.
#include "cq/cq.h"
#include "device.h"
#include "outbox.h"
#include "qp/qp.h"
#include "transport/engine.h"

namespace rvt
{

namespace
{

// Wait until no thread is in the engine; the state keeps others out.
void wait_idle(Qp &qp)
{
	auto idle = [](void *arg) {
		Qp &waited = *static_cast<Qp *>(arg);
		SpinGuard s(waited.s_lock);

		if (!(waited.s_flags & s_busy))
			return true;
		waited.s_flags |= s_wanted_idle;
		return false;
	};
	// The engine is in one request at most; its copy lets this wait go on.
	while (!rvt_os_wait(&qp.dev.waitq, idle, &qp, 1'000'000'000)) {
	}
}

} // namespace

void trace_state(const Qp &qp, QpState from, QpState to)
{
	if (from != to)
		rvt_trace_qp_state(qp.dev.lid.value(), qp.qpn.value(),
				   static_cast<rvt_qp_state>(from), static_cast<rvt_qp_state>(to));
}

void finish_error(Qp &qp, int last_wqe, Outbox &out)
{
	if (last_wqe)
		out.event(qp, RVT_EVENT_QP_LAST_WQE_REACHED);
	if (qp.srq || qp.state() != QpState::err)
		return;
	flush_receives(qp, out);
	if (qp.rq.mapped())
		qp.dev.errors.add(qp);
}

} // namespace rvt

using namespace rvt;

extern "C" {

void rvt_init_qp(Qp *qp)
{
	const rvt_qp_cap cap = qp->attr.cap;
	const uint8_t port = is_management(qp->type) ? qp->attr.port_num : 0;

	qp->attr = {};
	qp->attr.cap = cap;
	qp->attr.port_num = port;
	qp->mig.store(MigState::migrated);

	qp->s_flags &= s_busy | s_wanted_idle;
	qp->s_head.store(0);
	qp->s_last.store(0);
	qp->s_cur = 0;
	qp->s_retry = qp->s_rnr_retry = 0;
	qp->s_avail = qp->sq.size - 1;
	qp->s_ssn = 1;
	qp->s_next_psn.store(0);
	qp->s_mtu_shift = 12;
	qp->s_max_rd_atomic = 0;

	qp->r_wrid_valid = qp->r_comm_est = false;
	qp->r_psn.store(0);
	qp->r_msn = qp->r_ack_key = 0;
	qp->r_access = qp->r_qkey = 0;
	qp->r_peer_qpn = Qpn();
	qp->r_peer_ah = {};
	qp->r_pkey_index = 0;
	qp->r_min_rnr_timer = qp->r_max_rd_atomic = 0;
	qp->rq.empty();
}

// The analysis cannot follow a scope that the caller made.
void _rvt_reset_qp(Qp *qp, QpLocks &locks) RVT_NO_TSA
{
	if (qp->state() != QpState::reset) {
		// From here on nothing new begins.
		qp->set_state(QpState::reset);
		rvt_stop_rc_timers(qp);
		qp->s_flags &= s_busy;
		locks.drop();

		wait_idle(*qp);
		rvt_del_timers_sync(qp);
		qp->dev.errors.remove(*qp);
		rvt_remove_qp(&qp->dev, qp);

		locks.take();
		rvt_clear_mr_refs(qp, 1);
	}
	rvt_init_qp(qp);
}

void rvt_reset_qp(Qp *qp)
{
	QpLocks locks(*qp);

	_rvt_reset_qp(qp, locks);
}

int rvt_error_qp(Qp *qp, rvt_wc_status err, rvt_trace_cause cause, Outbox &out)
{
	if (qp->state() == QpState::err || qp->state() == QpState::reset)
		return 0;
	if (rvt_traced(RVT_TRACE_QP_ERROR))
		rvt_trace_qp_error(qp->dev.lid.value(), qp->qpn.value(), cause, err);
	qp->set_state(QpState::err);
	// Against a receive posted now, see rvt_core_recv_post().
	std::atomic_thread_fence(std::memory_order_seq_cst);
	rvt_stop_rc_timers(qp);
	qp->s_flags &= ~s_drain_notify;
	if (qp->sends_pending())
		schedule_send(*qp);

	qp->r_sge.release();
	if (qp->r_wrid_valid) {
		qp->r_wrid_valid = false;
		fail_recv(*qp, qp->r_wr_id, err, out);
	}
	return qp->srq != nullptr;
}

void rvt_clear_mr_refs(Qp *qp, int clr_sends)
{
	qp->r_sge.release();
	qp->r_wrid_valid = false;
	qp->r_ack_key = 0;
	if (clr_sends) {
		qp->s_last.store(qp->s_head.load(), std::memory_order_release);
		qp->s_cur = qp->s_head.load();
	}
}

bool rvt_swqe_has_lkey(Qp *qp, rvt_swqe *wqe, uint32_t lkey)
{
	const rvt_sge *sge = qp->swqe_sge(*wqe);

	if (wqe->flags & RVT_SEND_INLINE)
		return false;
	for (uint32_t i = 0; i < wqe->num_sge; i++) {
		if (sge[i].lkey == lkey)
			return true;
	}
	return false;
}

bool rvt_qp_sends_has_lkey(Qp *qp, uint32_t lkey)
{
	constexpr uint32_t at_once = 64; // with interrupts off
	uint32_t at = qp->s_last.load();

	// The whole ring at most, whatever is posted meanwhile: that is checked
	// when it is carried out.
	for (uint32_t left = qp->sq.size; left;) {
		SpinGuard h(qp->s_hlock);
		SpinGuard s(qp->s_lock);
		const uint32_t last = qp->s_last.load();
		const uint32_t pending = ring_count(qp->s_head.load(), last, qp->sq.size);

		// The engine may have come past this place.
		if (ring_count(at, last, qp->sq.size) >= pending)
			at = last;
		for (uint32_t n = 0; n < at_once && left; n++, left--) {
			if (at == qp->s_head.load())
				return false;
			if (rvt_swqe_has_lkey(qp, &qp->swqe(at), lkey))
				return true;
			at = ring_next(at, qp->sq.size);
		}
	}
	return false;
}

bool rvt_qp_acks_has_lkey(Qp *qp, uint32_t lkey)
{
	return qp->type == QpType::rc && qp->r_ack_key && qp->r_ack_key == lkey;
}

namespace
{

bool recv_has_lkey(Qp &qp, uint32_t lkey) RVT_REQUIRES(qp.r_lock)
{
	for (uint32_t i = qp.r_sge.cur; i < qp.r_sge.num; i++) {
		if (qp.r_sge.sge[i].key == lkey)
			return true;
	}
	return false;
}

} // namespace

void rvt_qp_mr_clean(Qp *qp, uint32_t lkey, Outbox &out)
{
	if (is_management(qp->type))
		return;

	MutexGuard r(qp->r_lock);
	int last_wqe;

	if (qp->state() == QpState::err || qp->state() == QpState::reset)
		return;
	if (!recv_has_lkey(*qp, lkey) && !rvt_qp_acks_has_lkey(qp, lkey) &&
	    !rvt_qp_sends_has_lkey(qp, lkey))
		return;
	{
		SpinGuard s(qp->s_lock);

		last_wqe = rvt_error_qp(qp, RVT_WC_LOC_PROT_ERR, RVT_TRACE_CAUSE_REGION, out);
	}
	finish_error(*qp, last_wqe, out);
}
}
