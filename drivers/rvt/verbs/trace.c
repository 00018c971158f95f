// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* trace.c - what the core tells of itself, as tracepoints */
#include <linux/atomic.h>
#include <rdma/ib_verbs.h>

#include <rvt/trace.h>

/* The core reads it for each event, so it shares no cache line with what changes. */
unsigned int rvt_trace_watched __read_mostly;

/*
 * The kernel calls these when the first one begins to watch an event and when
 * the last one has ended, one at a time. A kernel without tracepoints never does.
 */
#define WATCH(name, event)					\
	static int __maybe_unused rvt_watch_##name(void)	\
	{							\
		WRITE_ONCE(rvt_trace_watched,			\
			   rvt_trace_watched | BIT(event));	\
		return 0;					\
	}							\
								\
	static void __maybe_unused rvt_unwatch_##name(void)	\
	{							\
		WRITE_ONCE(rvt_trace_watched,			\
			   rvt_trace_watched & ~BIT(event));	\
	}

WATCH(post_send, RVT_TRACE_POST_SEND)
WATCH(post_recv, RVT_TRACE_POST_RECV)
WATCH(execute, RVT_TRACE_EXECUTE)
WATCH(wait, RVT_TRACE_WAIT)
WATCH(complete, RVT_TRACE_COMPLETE)
WATCH(qp_state, RVT_TRACE_QP_STATE)
WATCH(qp_error, RVT_TRACE_QP_ERROR)
WATCH(mr, RVT_TRACE_MR)
WATCH(cq, RVT_TRACE_CQ)

#define CREATE_TRACE_POINTS
#include "tracepoints.h"

/* The number that "rdma resource show cq" has. */
static u32 cqn(const void *cq_ctx)
{
	const struct ib_cq *ibcq = cq_ctx;

	return ibcq->res.id;
}

void rvt_trace_post_send(u16 lid, u32 qpn, const struct rvt_swqe *wqe)
{
	trace_rvt_post_send(lid, qpn, wqe);
}

void rvt_trace_post_recv(u16 lid, u32 qpn, u64 wr_id, u32 num_sge)
{
	trace_rvt_post_recv(lid, qpn, wr_id, num_sge);
}

void rvt_trace_execute(u16 lid, u32 qpn, const struct rvt_swqe *wqe, u32 dest_qpn)
{
	trace_rvt_execute(lid, qpn, wqe, dest_qpn);
}

void rvt_trace_wait(u16 lid, u32 qpn, enum rvt_trace_wait_for what, u64 wr_id, u64 ns, u32 left)
{
	trace_rvt_wait(lid, qpn, what, wr_id, ns, left);
}

void rvt_trace_complete(u16 lid, const void *cq_ctx, const struct rvt_wc *wc)
{
	trace_rvt_complete(lid, cqn(cq_ctx), wc);
}

void rvt_trace_qp_state(u16 lid, u32 qpn, enum rvt_qp_state from, enum rvt_qp_state to)
{
	trace_rvt_qp_state(lid, qpn, from, to);
}

void rvt_trace_qp_error(u16 lid, u32 qpn, enum rvt_trace_cause cause, enum rvt_wc_status status)
{
	trace_rvt_qp_error(lid, qpn, cause, status);
}

void rvt_trace_mr(u16 lid, enum rvt_trace_mr_event what, u32 key, u64 iova, u64 length, u32 access)
{
	trace_rvt_mr(lid, what, key, iova, length, access);
}

void rvt_trace_cq(u16 lid, const void *cq_ctx, enum rvt_trace_cq_event what, u32 cqe)
{
	trace_rvt_cq(lid, cqn(cq_ctx), what, cqe);
}
