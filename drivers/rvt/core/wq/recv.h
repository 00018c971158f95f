// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Completing receives.
#ifndef RVT_WQ_RECV_H
#define RVT_WQ_RECV_H

#include "cq/cq.h"
#include "qp/qp.h"

namespace rvt
{

// Complete a receive. False: the queue is overrun, the QP has to go to ERR.
[[nodiscard, gnu::always_inline]] inline bool complete_recv(Qp &qp, const rvt_wc &wc,
							    bool solicited, Outbox &out)
	RVT_REQUIRES(qp.r_lock)
{
	if (wc.status == RVT_WC_SUCCESS)
		qp.count(RVT_CNT_RECVS);
	else if (wc.status == RVT_WC_WR_FLUSH_ERR)
		qp.count_shared(RVT_CNT_FLUSHED);
	if (qp.recv_cq.enter(wc, qp.ctx, solicited, out)) [[likely]]
		return true;
	qp.count_shared(RVT_CNT_CQ_OVERRUNS);
	return false;
}

} // namespace rvt

#endif
