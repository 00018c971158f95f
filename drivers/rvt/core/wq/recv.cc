// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The receive side of a queue pair: taking receives, completing them,
// flushing them.
#include "wq/recv.h"

#include "device.h"
#include "outbox.h"
#include "pd.h"
#include "wq/srq.h"

namespace rvt
{

namespace
{

rvt_wc failed_recv(const Qp &qp, uint64_t wr_id, rvt_wc_status status)
{
	rvt_wc wc{};

	wc.wr_id = wr_id;
	wc.status = status;
	wc.opcode = RVT_WC_RECV;
	wc.qp_num = qp.qpn.value();
	return wc;
}

[[gnu::noinline]] Take take_shared(Qp &qp, Srq &srq, SgeState *pieces, Incoming message,
				   Outbox &out) RVT_REQUIRES(qp.r_lock)
{
	const Take take = srq.rq.take(qp.r_wr_id, pieces, &srq.pd, message);

	if (take != Take::empty && !(take == Take::too_small && message.keep) &&
	    srq.limit_reached())
		out.event(srq, RVT_EVENT_SRQ_LIMIT_REACHED);
	return take;
}

} // namespace

void fail_recv(Qp &qp, uint64_t wr_id, rvt_wc_status status, Outbox &out)
{
	// An overrun queue loses it; the QP is on its way to ERR in any case.
	(void)complete_recv(qp, failed_recv(qp, wr_id, status), true, out);
}

void flush_receives(Qp &qp, Outbox &out)
{
	uint64_t wr_id;

	// Bounded, whatever a user does to the head meanwhile.
	for (uint32_t n = qp.rq.max_wr(); n && qp.rq.take_id(wr_id); n--)
		fail_recv(qp, wr_id, RVT_WC_WR_FLUSH_ERR, out);
}

void flush_late_receives(Qp &qp)
{
	Outbox out;
	MutexGuard r(qp.r_lock);

	if (qp.state() == QpState::err)
		flush_receives(qp, out);
}

} // namespace rvt

using namespace rvt;

extern "C" {

int rvt_get_rwqe(Qp *qp, int wr_id_only, Incoming message, Outbox &out)
{
	SgeState *pieces = wr_id_only ? nullptr : &qp->r_sge;

	if (!state_info(qp->state()).process_recv)
		return 0;
	switch (qp->srq ? take_shared(*qp, *qp->srq, pieces, message, out)
			: qp->rq.take(qp->r_wr_id, pieces, &qp->pd, message)) {
	case Take::got:
		qp->r_wrid_valid = true;
		return 1;
	case Take::empty:
		return 0;
	case Take::too_small:
		qp->r_wrid_valid = !message.keep;
		return -2;
	case Take::malformed:
		fail_recv(*qp, qp->r_wr_id, RVT_WC_LOC_QP_OP_ERR, out);
		return -1;
	case Take::denied:
		fail_recv(*qp, qp->r_wr_id, RVT_WC_LOC_PROT_ERR, out);
		return -1;
	}
	return 0;
}

void rvt_comm_est(Qp *qp, Outbox &out)
{
	qp->r_comm_est = true;
	out.event(*qp, RVT_EVENT_COMM_EST);
}

int rvt_core_recv_post(struct rvt_core_qp *qp, uint64_t wr_id, const struct rvt_sge *sge,
		       uint32_t num_sge)
{
	if (!state_info(qp->state()).post_recv || qp->srq)
		return to_int(Errno::inval);
	if (Errno e = qp->rq.post(wr_id, sge, num_sge); failed(e))
		return to_int(e);
	if (rvt_traced(RVT_TRACE_POST_RECV))
		rvt_trace_post_recv(qp->dev.lid.value(), qp->qpn.value(), wr_id, num_sge);
	// Behind whatever is in the ring, so that the order stays. Against
	// rvt_error_qp(): here the head first, then the state; there the reverse.
	std::atomic_thread_fence(std::memory_order_seq_cst);
	if (qp->state() == QpState::err)
		qp->dev.errors.add(*qp);
	return 0;
}
}
