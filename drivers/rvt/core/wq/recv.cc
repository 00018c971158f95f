// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The receive side of a queue pair: taking receives, completing them,
// flushing them.
#include "cq/cq.h"
#include "device.h"
#include "mr/bind.h"
#include "outbox.h"
#include "pd.h"
#include "qp/qp.h"
#include "wq/srq.h"

namespace rvt
{

bool complete_recv(Qp &qp, const rvt_wc &wc, bool solicited, Outbox &out)
{
	if (wc.status == RVT_WC_SUCCESS)
		qp.count(RVT_CNT_RECVS);
	else if (wc.status == RVT_WC_WR_FLUSH_ERR)
		qp.count_shared(RVT_CNT_FLUSHED);
	if (qp.recv_cq.enter(wc, qp.ctx, solicited, out))
		return true;
	qp.count_shared(RVT_CNT_CQ_OVERRUNS);
	return false;
}

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

// Find the region of each piece; empty pieces are gone already. In a read
// section. False: a key does not grant writing there; nothing stays pinned.
bool bind_receive(Qp &qp) RVT_REQUIRES(qp.r_lock)
{
	const Pd &pd = qp.srq ? qp.srq->pd : qp.pd;
	SgeState &list = qp.r_sge;

	for (uint32_t i = 0; i < list.num; i++) {
		if (!bind_sge(pd, list.sge[i], RVT_ACCESS_LOCAL_WRITE)) {
			list.num = i;
			list.release();
			return false;
		}
	}
	return true;
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

int rvt_get_rwqe(Qp *qp, int wr_id_only, uint64_t need, Outbox &out)
{
	rvt_rq &rq = qp->srq ? qp->srq->rq : qp->rq;
	uint64_t wr_id;

	if (!state_info(qp->state()).process_recv)
		return 0;

	const Take take = rq.take(wr_id, wr_id_only ? nullptr : &qp->r_sge, need);
	if (take == Take::empty)
		return 0;
	if (take == Take::too_small)
		return -2;
	if (qp->srq && qp->srq->limit_reached())
		out.event(*qp->srq, RVT_EVENT_SRQ_LIMIT_REACHED);
	if (take == Take::malformed) {
		fail_recv(*qp, wr_id, RVT_WC_LOC_QP_OP_ERR, out);
		return -1;
	}
	if (!wr_id_only && !bind_receive(*qp)) {
		fail_recv(*qp, wr_id, RVT_WC_LOC_PROT_ERR, out);
		return -1;
	}
	qp->r_wr_id = wr_id;
	qp->r_wrid_valid = true;
	return 1;
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
