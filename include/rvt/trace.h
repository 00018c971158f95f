/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * trace.h - what the core tells those who watch it work.
 *
 * In the kernel each event is a tracepoint of the system "rvt"
 * (drivers/rvt/verbs/trace.c); tests/host records them. While nobody watches
 * an event it costs the core one load of a word that is hardly ever written,
 * and a branch. Events are told where they happen, also with locks held: a
 * watcher does nothing but take note. Context: any.
 *
 * A queue pair is named by its device's LID and its number. Plain C.
 */
#ifndef RVT_TRACE_H
#define RVT_TRACE_H

#include <rvt/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* So that the compiler moves the calls out of the way. */
#define RVT_COLD __attribute__((__cold__))

enum rvt_trace_event {
	RVT_TRACE_POST_SEND,
	RVT_TRACE_POST_RECV,
	RVT_TRACE_EXECUTE,
	RVT_TRACE_WAIT,
	RVT_TRACE_COMPLETE,
	RVT_TRACE_QP_STATE,
	RVT_TRACE_QP_ERROR,
	RVT_TRACE_MR,
	RVT_TRACE_CQ,
	RVT_TRACE_EVENTS
};

/* A bit for each event that is watched. Whoever supplies the functions below keeps it. */
extern unsigned int rvt_trace_watched;

static inline bool rvt_traced(enum rvt_trace_event event)
{
	return __builtin_expect(*(const volatile unsigned int *)&rvt_trace_watched & 1u << event,
				0);
}

/* --- requests ---------------------------------------------------------------- */

/* A send was committed to the ring. @wqe as rvt_post_one_wr() left it. */
RVT_COLD void rvt_trace_post_send(uint16_t lid, uint32_t qpn, const struct rvt_swqe *wqe);

/*
 * A kernel consumer posted a receive; @qpn 0: to an SRQ. A process writes its
 * receives into the mapped ring, and nobody sees that.
 */
RVT_COLD void rvt_trace_post_recv(uint16_t lid, uint32_t qpn, uint64_t wr_id, uint32_t num_sge);

/* The engine begins an attempt to carry out a send. @dest_qpn 0: nobody is asked. */
RVT_COLD void rvt_trace_execute(uint16_t lid, uint32_t qpn, const struct rvt_swqe *wqe,
				uint32_t dest_qpn);

enum rvt_trace_wait_for {
	RVT_TRACE_WAIT_RNR, /* the responder has no receive */
	RVT_TRACE_WAIT_ANSWER /* the responder does not answer */
};

/* An attempt came to nothing; the next one in @ns, after which @left may follow. */
RVT_COLD void rvt_trace_wait(uint16_t lid, uint32_t qpn, enum rvt_trace_wait_for what,
			     uint64_t wr_id, uint64_t ns, uint32_t left);

/* A completion entered a queue. @cq_ctx: the queue's, see rvt_core_cq_create(). */
RVT_COLD void rvt_trace_complete(uint16_t lid, const void *cq_ctx, const struct rvt_wc *wc);

/* --- objects ------------------------------------------------------------------- */

RVT_COLD void rvt_trace_qp_state(uint16_t lid, uint32_t qpn, enum rvt_qp_state from,
				 enum rvt_qp_state to);

/* Why a queue pair goes to ERR. */
enum rvt_trace_cause {
	RVT_TRACE_CAUSE_MODIFY, /* it was asked to */
	RVT_TRACE_CAUSE_SEND, /* a send failed with @status */
	RVT_TRACE_CAUSE_RECV, /* a message could not be taken; @status of the receive in use */
	RVT_TRACE_CAUSE_REGION, /* a region it needs was taken away */
	RVT_TRACE_CAUSE_OVERRUN /* a completion queue is full */
};

RVT_COLD void rvt_trace_qp_error(uint16_t lid, uint32_t qpn, enum rvt_trace_cause cause,
				 enum rvt_wc_status status);

enum rvt_trace_mr_event {
	RVT_TRACE_MR_REGISTER,
	RVT_TRACE_MR_DEREGISTER,
	RVT_TRACE_MR_ENABLE, /* REG_MR */
	RVT_TRACE_MR_INVALIDATE /* LOCAL_INV, SEND_WITH_INV */
};

RVT_COLD void rvt_trace_mr(uint16_t lid, enum rvt_trace_mr_event what, uint32_t key, uint64_t iova,
			   uint64_t length, uint32_t access);

enum rvt_trace_cq_event {
	RVT_TRACE_CQ_ARM,
	RVT_TRACE_CQ_ARM_SOLICITED,
	RVT_TRACE_CQ_RESIZE, /* to @cqe */
	RVT_TRACE_CQ_OVERRUN
};

RVT_COLD void rvt_trace_cq(uint16_t lid, const void *cq_ctx, enum rvt_trace_cq_event what,
			   uint32_t cqe);

#ifdef __cplusplus
}
#endif

#endif
