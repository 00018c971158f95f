// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* pairs.c - connected queue pairs: what they say of themselves, events, atomics */
#include "abi.h"

#include <poll.h>

/* --- what they say of themselves --------------------------------------------------- */

static struct ibv_qp_attr attributes(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	is(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	is(memcmp(&attr.cap, &init.cap, sizeof(attr.cap)), 0);
	is(init.qp_type, qp->qp_type);
	is(init.sq_sig_all, sq_sig_all);
	return attr;
}

TEST(case_183_query)
{
	struct ibv_qp_attr attr;
	struct ends e;

	sq_sig_all = 0;
	first_psn = 0xfffffe;
	e = make_ends(&usual, NULL);
	attr = attributes(e.a);
	is(attr.qp_state, IBV_QPS_RTS);
	is(attr.cap.max_send_wr, 40);
	is(attr.cap.max_recv_wr, 40);
	is(attr.cap.max_send_sge, 4);
	is(attr.cap.max_recv_sge, 4);
	is(attr.cap.max_inline_data, 512);
	is(attr.dest_qp_num, e.b->qp_num);
	is(attr.qp_access_flags, ALL_ACCESS);
	is(attr.path_mtu, IBV_MTU_4096);
	is(attr.port_num, 1);
	is(attr.pkey_index, 0);
	is(attr.ah_attr.dlid, lid_of(ctx));
	is(attr.timeout, timeout);
	is(attr.retry_cnt, retry_cnt);
	is(attr.rnr_retry, rnr_retry);
	is(attr.min_rnr_timer, 14);
	is(attr.max_rd_atomic, 4);
	is(attr.max_dest_rd_atomic, 4);
	is(attr.sq_psn, 0xfffffe);
	is(attr.rq_psn, 0);

	/* Numbers go on by packets, and begin again at 24 bits. */
	to_state(e.b, IBV_QPS_RESET);
	to_init(e.b);
	first_psn = 0;
	is(ibv_modify_qp(e.b, &(struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = e.a->qp_num,
		.ah_attr = { .dlid = lid_of(ctx), .port_num = 1 },
		.rq_psn = 0xfffffe,
		.max_dest_rd_atomic = 4,
	}, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
	   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	for (int i = 0; i < 3; i++)
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8193, (uintptr_t)buf + BUF_BYTES / 2,
			     mr->rkey), 0);
	is(attributes(e.a).sq_psn, (0xfffffe + 9) & 0xffffff);
	is(attributes(e.b).rq_psn, (0xfffffe + 9) & 0xffffff);
	is(attributes(e.b).qp_state, IBV_QPS_RTR);
	end_ends(&e);
}

/* The most of everything that query_device tells, and one more. */
TEST(case_131_limits)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq_init = { 0 };
	struct ibv_device_attr device;
	struct ibv_srq *srq;
	struct ibv_cq *cq;

	is(ibv_query_device(ctx, &device), 0);
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	yes(cq);
	init.send_cq = init.recv_cq = cq;
	for (int over = 0; over < 5; over++) {
		struct ibv_qp *qp;

		init.cap = (struct ibv_qp_cap){
			.max_send_wr = device.max_qp_wr + (over == 1),
			.max_recv_wr = device.max_qp_wr + (over == 2),
			.max_send_sge = over ? 1 + (over == 3) * device.max_sge : 1,
			.max_recv_sge = over ? 1 + (over == 4) * device.max_sge : 1,
		};
		if (over) {
			fails(ibv_create_qp(pd, &init), EINVAL);
			continue;
		}
		qp = ibv_create_qp(pd, &init);
		yes(qp);
		is(init.cap.max_send_wr, device.max_qp_wr);
		is(init.cap.max_recv_wr, device.max_qp_wr);
		is(ibv_destroy_qp(qp), 0);
	}
	is(ibv_destroy_cq(cq), 0);
	for (int over = 0; over < 3; over++) {
		srq_init.attr.max_wr = device.max_srq_wr + (over == 1);
		srq_init.attr.max_sge = over ? 1 + (over == 2) * device.max_srq_sge : 1;
		if (over) {
			fails(ibv_create_srq(pd, &srq_init), EINVAL);
			continue;
		}
		srq = ibv_create_srq(pd, &srq_init);
		yes(srq);
		is(srq_init.attr.max_wr, device.max_srq_wr);
		is(ibv_destroy_srq(srq), 0);
	}
}

/* As many pieces as may be, from here to there, in sizes that do not fit each other. */
TEST(most_pieces)
{
	unsigned char *from = buf + BUF_BYTES / 2;
	struct ibv_sge source[128], target[128];
	struct ibv_recv_wr recv = { .sg_list = target }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = source, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_qp_cap cap = usual;
	struct ibv_device_attr device;
	uint32_t length = 0, room = 0;
	struct ends e;
	int most;

	is(ibv_query_device(ctx, &device), 0);
	most = device.max_sge;
	yes(most >= 2 && most <= 128);
	cap.max_send_sge = cap.max_recv_sge = most;
	e = make_ends(&cap, NULL);
	for (int i = 0; i < most; i++) {
		source[i] = (struct ibv_sge){ (uintptr_t)from + length, i % 7 + 1, mr->lkey };
		length += source[i].length;
		target[i] = (struct ibv_sge){ (uintptr_t)buf + room, 11 - i % 5, mr->lkey };
		room += target[i].length;
	}
	yes(room > length);
	for (uint32_t i = 0; i < length; i++)
		from[i] = i * 3 + 1;
	recv.num_sge = send.num_sge = most;
	is(ibv_post_recv(e.b, &recv, &bad_recv), 0);
	is(ibv_post_send(e.a, &send, &bad), 0);
	is(next_wc(e.rcq).byte_len, length);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(memcmp(buf, from, length), 0);
	is(buf[length], 0);
	recv.num_sge = send.num_sge = most + 1;
	is(ibv_post_recv(e.b, &recv, &bad_recv), EINVAL);
	is(ibv_post_send(e.a, &send, &bad), EINVAL);
	end_ends(&e);
}

/* Sends are posted in RTS and later; what was refused is not there then. */
TEST(posted_too_early)
{
	struct ends e = make_ends(&usual, NULL);

	to_state(e.a, IBV_QPS_RESET);
	is(post_send(e.a, 1, buf, 8, 0), EINVAL);
	to_init(e.a);
	is(post_send(e.a, 2, buf, 8, 0), EINVAL);
	to_rtr(e.a, e.b);
	is(post_send(e.a, 3, buf, 8, 0), EINVAL);
	to_rts(e.a);
	post_receives(e.b, NULL, 0, 2);
	is(post_send(e.a, 4, buf, 8, 0), 0);
	completes(e.scq, 4, IBV_WC_SUCCESS);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	nothing_more(e.scq);
	nothing_more(e.rcq);
	end_ends(&e);
}

/* RESET forgets what was posted, without a completion. */
TEST(reset_forgets)
{
	struct ends e = make_ends(&usual, NULL);

	is(post_send(e.a, 1, buf, 8, 0), 0);
	post_receives(e.a, NULL, 2, 3);
	to_state(e.a, IBV_QPS_RESET);
	nothing_more(e.scq);
	to_state(e.b, IBV_QPS_RESET);
	connect_ends(&e);
	post_receives(e.b, NULL, 5, 1);
	is(post_send(e.a, 4, buf, 8, 0), 0);
	completes(e.scq, 4, IBV_WC_SUCCESS);
	completes(e.rcq, 5, IBV_WC_SUCCESS);
	/* The receives, too: the peer finds none. */
	is(post_send(e.b, 6, buf, 8, 0), 0);
	nothing_more(e.rcq);
	post_receives(e.a, NULL, 7, 1);
	completes(e.rcq, 7, IBV_WC_SUCCESS);
	completes(e.scq, 6, IBV_WC_SUCCESS);
	end_ends(&e);
}

/* A queue pair may be its own peer. */
TEST(case_145_itself)
{
	struct ends e = { .scq = ibv_create_cq(ctx, 10, NULL, NULL, 0),
			  .rcq = ibv_create_cq(ctx, 10, NULL, NULL, 0) };

	yes(e.scq && e.rcq);
	e.a = make_qp(&e, &usual, NULL);
	e.b = make_qp(&e, &usual, NULL);
	to_init(e.a);
	to_rtr(e.a, e.a);
	to_rts(e.a);
	for (int i = 0; i < 20; i++) {
		*(uint64_t *)(buf + BUF_BYTES / 2) = 100 + i;
		post_receives(e.a, NULL, i, 1);
		is(post_send(e.a, i, buf + BUF_BYTES / 2, 8, 0), 0);
		completes(e.scq, i, IBV_WC_SUCCESS);
		completes(e.rcq, i, IBV_WC_SUCCESS);
		is(*(uint64_t *)(buf + i * 1024), 100 + i);
	}
	end_ends(&e);
}

/* --- events --------------------------------------------------------------------------- */

static void event_is(enum ibv_event_type type, const struct ibv_qp *qp)
{
	struct ibv_async_event event = next_event(ctx);

	is(event.event_type, type);
	yes(event.element.qp == qp);
	ibv_ack_async_event(&event);
}

static void no_more_events(void)
{
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };

	is(poll(&fd, 1, 0), 0);
}

TEST(events_of_pairs)
{
	struct ibv_qp_attr drain = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ends e = make_ends(&usual, NULL);

	/* A request that may not be: the responder's program is told why it ends. */
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)buf, ~mr->rkey), 0);
	completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
	event_is(IBV_EVENT_QP_ACCESS_ERR, e.b);
	end_ends(&e);

	e = make_ends(&usual, NULL);
	post_receives(e.b, NULL, 0, 1);
	is(post_send(e.a, 0, buf, 1025, 0), 0);
	completes(e.scq, 0, IBV_WC_REM_INV_REQ_ERR);
	event_is(IBV_EVENT_QP_REQ_ERR, e.b);
	end_ends(&e);

	/* The first message reaches one that is not ready to send. */
	e = make_ends(&usual, NULL);
	to_state(e.b, IBV_QPS_RESET);
	to_init(e.b);
	to_rtr(e.b, e.a);
	no_more_events();
	for (int i = 0; i < 3; i++)
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 0, 0, 0), 0);
	event_is(IBV_EVENT_COMM_EST, e.b);
	no_more_events();

	/* Stopped between two requests: what is posted then waits. */
	is(ibv_modify_qp(e.a, &drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	event_is(IBV_EVENT_SQ_DRAINED, e.a);
	is(state_of(e.a), IBV_QPS_SQD);
	for (int i = 0; i < 3; i++)
		completes(e.scq, 0, IBV_WC_SUCCESS);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 0, 0, 0), 0);
	nothing_more(e.scq);
	to_state(e.a, IBV_QPS_RTS);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	no_more_events();
	end_ends(&e);
}

/* --- memory taken away ------------------------------------------------------------------- */

/* A request that waits loses its memory: it is flushed, and nothing is sent of what is there now. */
TEST(deregistered_while_posted)
{
	struct ibv_mr *mine = ibv_reg_mr(pd, buf + BUF_BYTES / 2, PAGE, ALL_ACCESS), *whole = mr;
	struct ends e = make_ends(&usual, NULL), other = make_ends(&usual, NULL);

	yes(mine);
	mr = mine;
	is(post_send(e.a, 1, mine->addr, 8, 0), 0);
	mr = whole;
	is(post_send(e.a, 2, buf, 8, 0), 0);
	is(post_send(other.a, 3, buf, 8, 0), 0);
	is(ibv_dereg_mr(mine), 0);
	completes(e.scq, 1, IBV_WC_WR_FLUSH_ERR);
	completes(e.scq, 2, IBV_WC_WR_FLUSH_ERR);
	is(state_of(e.a), IBV_QPS_ERR);
	is(state_of(e.b), IBV_QPS_RTS);
	post_receives(e.b, NULL, 0, 1);
	nothing_more(e.rcq);
	/* Who does not use it notices nothing. */
	post_receives(other.b, NULL, 0, 1);
	completes(other.scq, 3, IBV_WC_SUCCESS);
	end_ends(&other);
	end_ends(&e);
}

/* --- atomics --------------------------------------------------------------------------------- */

static int post_atomic(struct ends *e, enum ibv_wr_opcode opcode, uint64_t *result, uint32_t bytes,
		       uint64_t remote, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = { (uintptr_t)result, bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = bytes ? 1 : 0,
		.opcode = opcode,
		.wr.atomic = { remote, compare_add, swap, mr->rkey },
	}, *bad;

	return ibv_post_send(e->a, &wr, &bad);
}

TEST(atomics)
{
	uint64_t *word = (uint64_t *)(buf + BUF_BYTES / 2), *result = word + 100;
	const uint64_t at = (uintptr_t)word;
	struct ends e = make_ends(&usual, NULL);
	struct ibv_wc wc;

	*word = ~0ULL - 1;
	is(post_atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, result, 8, at, 5, 0), 0);
	wc = next_wc(e.scq);
	is(wc.status, IBV_WC_SUCCESS);
	is(wc.opcode, IBV_WC_FETCH_ADD);
	is(wc.byte_len, 8);
	is(*result, ~0ULL - 1);
	is(*word, 3);
	is(post_atomic(&e, IBV_WR_ATOMIC_CMP_AND_SWP, result, 8, at, 4, 99), 0);
	wc = next_wc(e.scq);
	is(wc.opcode, IBV_WC_COMP_SWAP);
	is(*result, 3);
	is(*word, 3);
	is(post_atomic(&e, IBV_WR_ATOMIC_CMP_AND_SWP, result, 8, at, 3, 1ULL << 63), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(*result, 3);
	is(*word, 1ULL << 63);

	is(post_atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, NULL, 0, at, 1, 0), EINVAL);
	is(post_atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, result, 7, at, 1, 0), EINVAL);
	is(post_atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, (uint64_t *)((char *)result + 4), 8, at, 1,
		       0), EINVAL);
	is(post_atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, result, 8, at + 4, 1, 0), 0);
	completes(e.scq, 0, IBV_WC_REM_INV_REQ_ERR);
	is(*word, 1ULL << 63);
	end_ends(&e);
}

struct adder {
	struct ends e;
	uint64_t *word, *result;
	pthread_t thread;
};

#define ADDITIONS	1000

static void *add_many(void *arg)
{
	struct adder *a = arg;

	for (int i = 0; i < ADDITIONS; i++) {
		is(post_atomic(&a->e, IBV_WR_ATOMIC_FETCH_AND_ADD, a->result, 8,
			       (uintptr_t)a->word, 1, 0), 0);
		completes(a->e.scq, 0, IBV_WC_SUCCESS);
	}
	return NULL;
}

/* Two queue pairs and a processor add to one word: nothing is lost. */
TEST(case_135_atomics_are_atomic)
{
	uint64_t *word = (uint64_t *)(buf + BUF_BYTES / 2);
	struct adder adders[2];
	uint64_t mine = 0;

	for (int i = 0; i < 2; i++) {
		adders[i] = (struct adder){ make_ends(&usual, NULL), word, word + 100 + i, 0 };
		is(pthread_create(&adders[i].thread, NULL, add_many, &adders[i]), 0);
	}
	while (__atomic_load_n(word, __ATOMIC_RELAXED) - mine < 2 * ADDITIONS) {
		for (int i = 0; i < 100; i++, mine++)
			__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
		sched_yield();
	}
	for (int i = 0; i < 2; i++) {
		is(pthread_join(adders[i].thread, NULL), 0);
		end_ends(&adders[i].e);
	}
	is(*word, mine + 2 * ADDITIONS);
}
