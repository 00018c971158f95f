// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mishaps.c - what goes wrong for the faithful, on purpose: a message that is too
 * long, a flush, a reset. Each request of it is completed once, and as it should be.
 *
 * Two queue pairs that nobody else knows, a shared receive queue behind the second
 * one, one completion queue for all.
 */
#include "faithful.h"

#include <time.h>

/* The cookies: four shared receives, three of the first queue pair's own, its sends. */
enum {
	SHARED, OWN = 4, GOOD = 7, TOO_LONG, TOO_LATE, AGAIN, AND_AGAIN, COOKIES,
};

struct mishap {
	struct faithful *f;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *from, *to;
	unsigned int completed;
	bool seen[COOKIES];
};

static void to_state(struct mishap *m, struct ibv_qp *qp, enum ibv_qp_state state, uint32_t peer)
{
	static const int masks[] = {
		[IBV_QPS_RESET] = IBV_QP_STATE,
		[IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				 IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.ah_attr = { .dlid = m->f->mine->lid, .port_num = 1 },
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.timeout = 14,
		.retry_cnt = 7,
	};

	must(m->f, !ibv_modify_qp(qp, &attr, masks[state]));
}

static void connect_both(struct mishap *m)
{
	for (enum ibv_qp_state state = IBV_QPS_RESET; state <= IBV_QPS_RTS; state++) {
		to_state(m, m->from, state, m->to->qp_num);
		to_state(m, m->to, state, m->from->qp_num);
	}
}

static void post_empty_receive(struct mishap *m, uint64_t cookie)
{
	struct ibv_recv_wr wr = { .wr_id = cookie }, *failed;

	if (cookie < OWN)
		must(m->f, !ibv_post_srq_recv(m->srq, &wr, &failed));
	else
		must(m->f, !ibv_post_recv(m->from, &wr, &failed));
}

static void post_inline(struct mishap *m, uint64_t cookie, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)&cookie, bytes, 0 };
	struct ibv_send_wr wr = {
		.wr_id = cookie, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};
	struct ibv_send_wr *failed;

	must(m->f, !ibv_post_send(m->from, &wr, &failed));
}

static enum ibv_wc_status expected(uint64_t cookie)
{
	switch (cookie) {
	case SHARED + 1:
		return IBV_WC_LOC_LEN_ERR;
	case TOO_LONG:
		return IBV_WC_REM_INV_REQ_ERR;
	case OWN ... GOOD - 1:
	case TOO_LATE:
		return IBV_WC_WR_FLUSH_ERR;
	default:
		return IBV_WC_SUCCESS;
	}
}

/* Nobody else is there to wait for; but the machine may be slow. */
static void await_completions(struct mishap *m, unsigned int count)
{
	const time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	int n;

	while (m->completed < count) {
		n = ibv_poll_cq(m->cq, 1, &wc);
		must(m->f, n >= 0);
		if (!n) {
			if (time(NULL) > end)
				bad(m->f, "%u completions of a mishap, not %u", m->completed, count);
			sched_yield();
			continue;
		}
		if (wc.wr_id >= COOKIES || m->seen[wc.wr_id] ||
		    wc.status != expected(wc.wr_id))
			bad(m->f, "completion %llu of a mishap: %s", (unsigned long long)wc.wr_id,
			    ibv_wc_status_str(wc.status));
		m->seen[wc.wr_id] = true;
		m->completed++;
	}
	must(m->f, !ibv_poll_cq(m->cq, 1, &wc));
}

static void make(struct mishap *m)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = OWN, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = GOOD - OWN, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = 16 },
		.qp_type = IBV_QPT_RC,
	};

	m->cq = ibv_create_cq(m->f->ctx, 2 * COOKIES, NULL, NULL, 0);
	must(m->f, m->cq);
	m->srq = ibv_create_srq(m->f->pd, &shared);
	must(m->f, m->srq);
	init.send_cq = init.recv_cq = m->cq;
	m->from = ibv_create_qp(m->f->pd, &init);
	must(m->f, m->from);
	init.srq = m->srq;
	m->to = ibv_create_qp(m->f->pd, &init);
	must(m->f, m->to);
}

static void end(struct mishap *m)
{
	must(m->f, !ibv_destroy_qp(m->from));
	must(m->f, !ibv_destroy_qp(m->to));
	must(m->f, !ibv_destroy_srq(m->srq));
	must(m->f, !ibv_destroy_cq(m->cq));
}

void have_mishaps(struct faithful *f)
{
	struct mishap m = { .f = f };

	make(&m);
	connect_both(&m);
	for (uint64_t i = 0; i < GOOD; i++)
		post_empty_receive(&m, i);
	post_inline(&m, GOOD, 0);
	await_completions(&m, 2);
	/* Ends both; what the first one still wants is flushed. */
	post_inline(&m, TOO_LONG, 8);
	await_completions(&m, 4 + GOOD - OWN);
	post_inline(&m, TOO_LATE, 0);
	await_completions(&m, 5 + GOOD - OWN);
	/* The shared receives that nobody took are there for whoever comes. */
	connect_both(&m);
	post_inline(&m, AGAIN, 0);
	post_inline(&m, AND_AGAIN, 0);
	await_completions(&m, COOKIES);
	end(&m);
}
