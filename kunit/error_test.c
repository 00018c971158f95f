// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What goes wrong, and what both sides see of it: statuses, states, events,
 * and the order in which the rest is flushed.
 */
#include "harness.h"
#include "suites.h"

enum { NOTHING = -1 };

/**
 * struct fault - one way to fail
 * @set_up: makes it fail; gets the request and the responder
 * @requester, @receiver: completion statuses; NOTHING: none comes
 * @a, @b: states afterwards
 * @event: what the responder's consumer is told, NOTHING for nothing
 */
struct fault {
	const char *what;
	enum ib_qp_type type;
	enum ib_wr_opcode op;
	void (*set_up)(struct rig_pair *pair, struct rig_wr *wr);
	int requester, receiver;
	enum ib_qp_state a, b;
	int event;
	u32 size;
	bool recv; /* a receive of 64 bytes is posted */
	u32 access; /* of the responder */
};

/* Room for the data of a case: 0: local, 1: remote. */
static u8 *data[2];

static void as_is(struct rig_pair *pair, struct rig_wr *wr)
{
}

static void wrong_rkey(struct rig_pair *pair, struct rig_wr *wr)
{
	if (wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	    wr->wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		wr->atomic.rkey ^= 0x100;
	else
		wr->rdma.rkey ^= 0x100;
}

static void key_byte_off(struct rig_pair *pair, struct rig_wr *wr)
{
	wr->rdma.rkey++;
}

static void misaligned(struct rig_pair *pair, struct rig_wr *wr)
{
	wr->atomic.remote_addr += 4;
}

static void region_without_rights(struct rig_pair *pair, struct rig_wr *wr)
{
	struct rig *rig = pair->a->rig;
	struct ib_mr *mr = rig_dma_mr(rig, rig->pd, IB_ACCESS_LOCAL_WRITE);

	KUNIT_ASSERT_NOT_NULL(rig->test, mr);
	rig_remote(pair->a, wr, data[1], mr);
}

/* Every right but the one that is needed. */
static void region_with_the_other_rights(struct rig_pair *pair, struct rig_wr *wr)
{
	struct rig *rig = pair->a->rig;
	int access = RIG_ALL_ACCESS;
	struct ib_mr *mr;

	switch (wr->wr.opcode) {
	case IB_WR_RDMA_READ:
		access &= ~IB_ACCESS_REMOTE_READ;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		access &= ~IB_ACCESS_REMOTE_ATOMIC;
		break;
	default:
		access &= ~IB_ACCESS_REMOTE_WRITE;
	}
	mr = rig_dma_mr(rig, rig->pd, access);
	KUNIT_ASSERT_NOT_NULL(rig->test, mr);
	rig_remote(pair->a, wr, data[1], mr);
}

static void bad_receive_key(struct rig_pair *pair, struct rig_wr *wr)
{
	struct ib_sge sge = { .addr = (uintptr_t)data[1], .length = 64, .lkey = 0xdeadbeef };
	struct ib_recv_wr recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, ib_post_recv(pair->b->qp, &recv, &bad));
}

static void no_retries(struct rig_pair *pair, struct rig_wr *wr)
{
	struct ib_qp_attr attr;

	rig_step(pair->a, IB_QPS_SQD, pair->b);
	rig_attr(pair->a, IB_QPS_SQD, pair->b, &attr);
	attr.rnr_retry = 0;
	attr.retry_cnt = 1;
	attr.timeout = 1;
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0,
			ib_modify_qp(pair->a->qp, &attr,
				     IB_QP_STATE | IB_QP_RNR_RETRY | IB_QP_RETRY_CNT |
					     IB_QP_TIMEOUT));
	rig_step(pair->a, IB_QPS_RTS, pair->b);
}

static void peer_in_init(struct rig_pair *pair, struct rig_wr *wr)
{
	no_retries(pair, wr);
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_set_state(pair->b, IB_QPS_RESET));
	rig_bring(pair->b, IB_QPS_INIT, pair->a);
}

static void peer_in_err(struct rig_pair *pair, struct rig_wr *wr)
{
	no_retries(pair, wr);
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_set_state(pair->b, IB_QPS_ERR));
}

static void peer_of_uc_in_err(struct rig_pair *pair, struct rig_wr *wr)
{
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_set_state(pair->b, IB_QPS_ERR));
}

static void peer_of_somebody_else(struct rig_pair *pair, struct rig_wr *wr)
{
	struct rig_qp *third = rig_qp(pair->a->rig, pair->b->type, NULL);

	if (pair->a->type == IB_QPT_RC)
		no_retries(pair, wr);
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_set_state(pair->b, IB_QPS_RESET));
	rig_bring(pair->b, IB_QPS_RTS, third);
}

static void another_psn(struct rig_pair *pair, struct rig_wr *wr)
{
	struct ib_qp_attr attr;
	int mask;

	if (pair->a->type == IB_QPT_RC)
		no_retries(pair, wr);
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_set_state(pair->b, IB_QPS_RESET));
	rig_bring(pair->b, IB_QPS_INIT, pair->a);
	mask = rig_attr(pair->b, IB_QPS_RTR, pair->a, &attr);
	attr.rq_psn = RIG_PSN + 5;
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, ib_modify_qp(pair->b->qp, &attr, mask));
	if (wr->wr.opcode == IB_WR_SEND)
		KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_post_recv(pair->b, 2, data[1], 64));
}

#define ALL (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)
#define FAULT(text, y, o, how, rq, rv, sa, sb, ev, sz, rc, ac)                                  \
	{ .what = text, .type = IB_QPT_##y, .op = IB_WR_##o, .set_up = how,                     \
	  .requester = rq, .receiver = rv, .a = IB_QPS_##sa, .b = IB_QPS_##sb, .event = ev,     \
	  .size = sz, .recv = rc, .access = ac }
#define ACCESS_ERR IB_EVENT_QP_ACCESS_ERR
#define REQ_ERR IB_EVENT_QP_REQ_ERR
#define WC(s) IB_WC_##s

static const struct fault faults[] = {
	/* RC: receives. */
	FAULT("no receive, no retries", RC, SEND, no_retries, WC(RNR_RETRY_EXC_ERR), NOTHING, ERR,
	      RTS, NOTHING, 8, false, ALL),
	FAULT("no receive for WRITE_WITH_IMM", RC, RDMA_WRITE_WITH_IMM, no_retries,
	      WC(RNR_RETRY_EXC_ERR), NOTHING, ERR, RTS, NOTHING, 8, false, ALL),
	FAULT("receive too small", RC, SEND, as_is, WC(REM_INV_REQ_ERR), WC(LOC_LEN_ERR), ERR, ERR,
	      REQ_ERR, 65, true, ALL),
	FAULT("receive with a bad key", RC, SEND, bad_receive_key, WC(REM_OP_ERR),
	      WC(LOC_PROT_ERR), ERR, ERR, NOTHING, 8, false, ALL),
	/* RC: rights of the queue pair. */
	FAULT("WRITE not allowed", RC, RDMA_WRITE, as_is, WC(REM_INV_REQ_ERR), NOTHING, ERR, ERR,
	      REQ_ERR, 8, false, ALL & ~IB_ACCESS_REMOTE_WRITE),
	FAULT("READ not allowed", RC, RDMA_READ, as_is, WC(REM_INV_REQ_ERR), NOTHING, ERR, ERR,
	      REQ_ERR, 8, false, ALL & ~IB_ACCESS_REMOTE_READ),
	FAULT("atomic not allowed", RC, ATOMIC_FETCH_AND_ADD, as_is, WC(REM_INV_REQ_ERR), NOTHING,
	      ERR, ERR, REQ_ERR, 8, false, ALL & ~IB_ACCESS_REMOTE_ATOMIC),
	FAULT("swap not allowed", RC, ATOMIC_CMP_AND_SWP, as_is, WC(REM_INV_REQ_ERR), NOTHING, ERR,
	      ERR, REQ_ERR, 8, false, ALL & ~IB_ACCESS_REMOTE_ATOMIC),
	FAULT("WRITE_WITH_IMM not allowed", RC, RDMA_WRITE_WITH_IMM, as_is, WC(REM_INV_REQ_ERR),
	      WC(WR_FLUSH_ERR), ERR, ERR, REQ_ERR, 8, true, ALL & ~IB_ACCESS_REMOTE_WRITE),
	/* RC: keys and rights of the region. */
	FAULT("WRITE, no such key", RC, RDMA_WRITE, wrong_rkey, WC(REM_ACCESS_ERR), NOTHING, ERR,
	      ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("WRITE, key byte", RC, RDMA_WRITE, key_byte_off, WC(REM_ACCESS_ERR), NOTHING, ERR,
	      ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("READ, no such key", RC, RDMA_READ, wrong_rkey, WC(REM_ACCESS_ERR), NOTHING, ERR,
	      ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("FETCH_AND_ADD, no such key", RC, ATOMIC_FETCH_AND_ADD, wrong_rkey,
	      WC(REM_ACCESS_ERR), NOTHING, ERR, ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("CMP_AND_SWP, no such key", RC, ATOMIC_CMP_AND_SWP, wrong_rkey, WC(REM_ACCESS_ERR),
	      NOTHING, ERR, ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("WRITE to a local region", RC, RDMA_WRITE, region_without_rights, WC(REM_ACCESS_ERR),
	      NOTHING, ERR, ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("WRITE, other rights (CASES 114)", RC, RDMA_WRITE, region_with_the_other_rights,
	      WC(REM_ACCESS_ERR), NOTHING, ERR, ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("READ, other rights (CASES 114)", RC, RDMA_READ, region_with_the_other_rights,
	      WC(REM_ACCESS_ERR), NOTHING, ERR, ERR, ACCESS_ERR, 8, false, ALL),
	FAULT("atomic, other rights (CASES 136)", RC, ATOMIC_FETCH_AND_ADD,
	      region_with_the_other_rights, WC(REM_ACCESS_ERR), NOTHING, ERR, ERR, ACCESS_ERR, 8,
	      false, ALL),
	FAULT("misaligned atomic (CASES 133)", RC, ATOMIC_FETCH_AND_ADD, misaligned,
	      WC(REM_INV_REQ_ERR), NOTHING, ERR, ERR, REQ_ERR, 8, false, ALL),
	FAULT("misaligned swap (CASES 133)", RC, ATOMIC_CMP_AND_SWP, misaligned,
	      WC(REM_INV_REQ_ERR), NOTHING, ERR, ERR, REQ_ERR, 8, false, ALL),
	/* RC: nobody answers. */
	FAULT("peer in INIT", RC, SEND, peer_in_init, WC(RETRY_EXC_ERR), NOTHING, ERR, INIT,
	      NOTHING, 8, false, ALL),
	FAULT("peer in ERR", RC, SEND, peer_in_err, WC(RETRY_EXC_ERR), NOTHING, ERR, ERR, NOTHING,
	      8, false, ALL),
	FAULT("peer of another (CASES 176)", RC, RDMA_WRITE, peer_of_somebody_else,
	      WC(RETRY_EXC_ERR), NOTHING, ERR, RTS, NOTHING, 8, false, ALL),
	FAULT("another PSN expected", RC, RDMA_WRITE, another_psn, WC(RETRY_EXC_ERR), NOTHING, ERR,
	      RTR, NOTHING, 8, false, ALL),
	/* UC: the requester never knows (CASES 179). */
	FAULT("no receive", UC, SEND, as_is, WC(SUCCESS), NOTHING, RTS, RTS, NOTHING, 8, false,
	      ALL),
	FAULT("receive with a bad key", UC, SEND, bad_receive_key, WC(SUCCESS), WC(LOC_PROT_ERR),
	      RTS, ERR, NOTHING, 8, false, ALL),
	FAULT("receive too small", UC, SEND, as_is, WC(SUCCESS), WC(LOC_LEN_ERR), RTS, ERR,
	      REQ_ERR, 65, true, ALL),
	FAULT("WRITE not allowed", UC, RDMA_WRITE, as_is, WC(SUCCESS), NOTHING, RTS, ERR, REQ_ERR,
	      8, false, ALL & ~IB_ACCESS_REMOTE_WRITE),
	FAULT("WRITE, no such key", UC, RDMA_WRITE, wrong_rkey, WC(SUCCESS), NOTHING, RTS, ERR,
	      ACCESS_ERR, 8, false, ALL),
	FAULT("peer in ERR", UC, SEND, peer_of_uc_in_err, WC(SUCCESS), NOTHING, RTS, ERR, NOTHING,
	      8, false, ALL),
	FAULT("peer of another (CASES 176)", UC, RDMA_WRITE, peer_of_somebody_else, WC(SUCCESS),
	      NOTHING, RTS, RTS, NOTHING, 8, false, ALL),
	FAULT("another PSN expected", UC, SEND, another_psn, WC(SUCCESS), WC(SUCCESS), RTS, RTR,
	      NOTHING, 8, false, ALL),
};

static void fault_describe(const struct fault *fault, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s: %s", rig_type_name(fault->type),
		 rig_op_name(fault->op), fault->what);
}

KUNIT_ARRAY_PARAM(fault, faults, fault_describe);

static bool is_rdma(enum ib_wr_opcode op)
{
	return op != IB_WR_SEND && op != IB_WR_SEND_WITH_IMM;
}

static void set_access(struct rig_pair *pair, u32 access)
{
	struct ib_qp_attr attr;

	rig_attr(pair->b, IB_QPS_RTS, pair->a, &attr);
	attr.qp_access_flags = access;
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0,
			ib_modify_qp(pair->b->qp, &attr, IB_QP_ACCESS_FLAGS));
}

/* CASES 70, 71, 80, 81, 82: one fault, then two good requests behind it. */
static void each_fault(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, fault->type, NULL);
	u8 *later = rig_buf(rig, 8);
	struct rig_wr wr, next;
	int n;

	data[0] = rig_buf(rig, 4096);
	data[1] = rig_buf(rig, 4096);
	rig_fill(data[0], 4096, 9);
	set_access(&pair, fault->access);
	rig_wr(pair.a, &wr, fault->op, 1, data[0], fault->size);
	if (is_rdma(fault->op))
		rig_remote(pair.a, &wr, data[1], NULL);
	if (fault->recv)
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 2, data[1], 64));
	fault->set_up(&pair, &wr);

	/* Held back until all are posted: then the later ones are surely queued. */
	rig_step(pair.a, IB_QPS_SQD, pair.b);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	for (n = 0; n < 2; n++) {
		rig_wr(pair.a, &next, IB_WR_RDMA_WRITE, 10 + n, data[0], 8);
		rig_remote(pair.a, &next, later, NULL);
		if (n == 0)
			next.wr.send_flags = 0;
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &next));
	}
	rig_step(pair.a, IB_QPS_RTS, pair.b);

	rig_expect_wc(pair.a->scq, 1, fault->requester);
	if (fault->receiver != NOTHING)
		rig_expect_wc(pair.b->rcq, 2, fault->receiver);
	if (fault->a == IB_QPS_ERR) {
		/* Flushed in order, the unsignalled one too. */
		rig_expect_wc(pair.a->scq, 10, IB_WC_WR_FLUSH_ERR);
		rig_expect_wc(pair.a->scq, 11, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ_MSG(test, *(u64 *)later, 0ull, "a later request was executed");
	} else {
		rig_expect_wc(pair.a->scq, 11, IB_WC_SUCCESS);
	}
	rig_wait_state(pair.a, fault->a);
	rig_wait_state(pair.b, fault->b);
	if (fault->event != NOTHING)
		rig_wait_event(pair.b, fault->event, 1);
	rig_expect_empty(pair.a->scq);
	rig_expect_empty(pair.b->rcq);
	/* After destroy no event can come any more: so none was wrong. */
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	for (n = 0; n < RIG_EVENTS; n++) {
		KUNIT_EXPECT_TRUE_MSG(test, rig_saw_event(pair.a, n, 0), "requester got %s",
				      ib_event_msg(n));
		if (n == IB_EVENT_COMM_EST)
			continue;
		KUNIT_EXPECT_TRUE_MSG(test, rig_saw_event(pair.b, n, n == fault->event),
				      "responder got %s %d times", ib_event_msg(n),
				      atomic_read(&pair.b->events[n]));
	}
}

/* An RC requester whose peer is gone altogether. */
static void peer_that_never_was(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct rig_wr wr;

	no_retries(&pair, &wr);
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	rig_wr(pair.a, &wr, IB_WR_SEND, 1, NULL, 0);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 1, IB_WC_RETRY_EXC_ERR);
	rig_wait_state(pair.a, IB_QPS_ERR);
}

/* CASES 177: a peer that becomes ready in time gets the message. */
static void case_177_peer_that_is_late(struct kunit *test)
{
	static const enum ib_qp_state before[] = { IB_QPS_RESET, IB_QPS_INIT };
	struct rig *rig = rig_of(test);
	struct ib_qp_attr attr;
	struct rig_wr wr;
	int i, mask;

	for (i = 0; i < ARRAY_SIZE(before); i++) {
		struct rig_qp *a = rig_qp(rig, IB_QPT_RC, NULL), *b = rig_qp(rig, IB_QPT_RC, NULL);
		u64 *src = rig_buf(rig, 8), *dst = rig_buf(rig, 8);

		*src = 0x55aa;
		rig_bring(a, IB_QPS_RTR, b);
		mask = rig_attr(a, IB_QPS_RTS, b, &attr);
		/* No limit: it is not the time that this is about. */
		attr.timeout = 0;
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(a->qp, &attr, mask));
		rig_bring(b, before[i], a);
		rig_wr(a, &wr, IB_WR_RDMA_WRITE, 1, src, 8);
		rig_remote(a, &wr, dst, NULL);
		KUNIT_ASSERT_EQ(test, 0, rig_post(a, &wr));
		rig_expect_empty(a->scq);
		if (before[i] == IB_QPS_RESET)
			rig_step(b, IB_QPS_INIT, a);
		rig_step(b, IB_QPS_RTR, a);
		rig_expect_wc(a->scq, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, *dst, 0x55aaull);
	}
}

/* CASES 69: every receive that waits is flushed, in order, once. */
static void case_069_receives_are_flushed(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS,
						   IB_QPS_SQD };
	struct rig *rig = rig_of(test);
	struct ib_wc wc;
	int i, s, n;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (s = 0; s < ARRAY_SIZE(states); s++) {
			struct rig_qp *qp = rig_qp(rig, types[i], NULL);

			rig_bring(qp, states[s], qp);
			for (n = 0; n < 7; n++)
				KUNIT_ASSERT_EQ(test, 0, rig_post_recv(qp, n, NULL, 0));
			KUNIT_ASSERT_EQ(test, 0, rig_set_state(qp, IB_QPS_ERR));
			for (n = 0; n < 7; n++) {
				rig_wc(qp->rcq, &wc);
				KUNIT_EXPECT_EQ(test, wc.wr_id, (u64)n);
				KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_WR_FLUSH_ERR);
				KUNIT_EXPECT_PTR_EQ(test, wc.qp, qp->qp);
			}
			/* Another ERR flushes nothing again. */
			KUNIT_ASSERT_EQ(test, 0, rig_set_state(qp, IB_QPS_ERR));
			rig_expect_empty(qp->rcq);
			KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(qp));
			KUNIT_EXPECT_TRUE(test,
					  rig_saw_event(qp, IB_EVENT_QP_LAST_WQE_REACHED, 0));
		}
	}
}

/* CASES 72, 76, 77: sends that wait, then ERR; a marker posted in ERR is last. */
static void case_076_sends_are_flushed(struct kunit *test)
{
	static const enum ib_wr_opcode op[] = { IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
						IB_WR_ATOMIC_FETCH_AND_ADD };
	static const enum ib_wc_opcode wc_op[] = { IB_WC_SEND, IB_WC_RDMA_WRITE, IB_WC_RDMA_READ,
						   IB_WC_FETCH_ADD };
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *word = rig_buf(rig, 16);
	struct rig_wr wr;
	struct ib_wc wc;
	int n;

	rig_step(pair.a, IB_QPS_SQD, pair.b);
	for (n = 0; n < 8; n++) {
		rig_wr(pair.a, &wr, op[n % 4], n, word, 8);
		if (n % 4)
			rig_remote(pair.a, &wr, word + 1, NULL);
		wr.wr.send_flags = n % 2 ? 0 : IB_SEND_SIGNALED;
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	}
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_ERR));
	rig_wr(pair.a, &wr, IB_WR_SEND, 99, NULL, 0);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	for (n = 0; n < 8; n++) {
		rig_wc(pair.a->scq, &wc);
		KUNIT_EXPECT_EQ(test, wc.wr_id, (u64)n);
		KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, (int)wc.opcode, (int)wc_op[n % 4]);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, pair.a->qp);
	}
	rig_expect_wc(pair.a->scq, 99, IB_WC_WR_FLUSH_ERR);
	rig_expect_empty(pair.a->scq);
	rig_expect_empty(pair.b->rcq);
}

/* RESET throws away what waits, without completions. */
static void case_067_reset_discards(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct rig_wr wr;
	int round, n;

	for (round = 0; round < 3; round++) {
		rig_step(pair.a, IB_QPS_SQD, pair.b);
		for (n = 0; n < 16; n++) {
			rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, n, NULL, 0);
			KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
			KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.a, n, NULL, 0));
		}
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_RESET));
		rig_expect_empty(pair.a->scq);
		rig_expect_empty(pair.a->rcq);
		/* Empty means that all of it can be filled again. */
		rig_bring(pair.a, IB_QPS_RTS, pair.b);
		rig_bring(pair.b, IB_QPS_RTS, pair.a);
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.a, 77, NULL, 0));
		rig_wr(pair.b, &wr, IB_WR_SEND, 78, NULL, 0);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.b, &wr));
		rig_expect_wc(pair.b->scq, 78, IB_WC_SUCCESS);
		rig_expect_wc(pair.a->rcq, 77, IB_WC_SUCCESS);
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 79, NULL, 0);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 79, IB_WC_SUCCESS);
	}
}

/* CASES 95: errors and resets do not eat slots. */
static void case_095_slots_come_back(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp_opt opt = { .send_wr = 4 };
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, &opt);
	struct rig_wr wr;
	int round, n;

	for (round = 0; round < 200; round++) {
		rig_step(pair.a, IB_QPS_SQD, pair.b);
		for (n = 0; n < 4; n++) {
			rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, n, NULL, 0);
			KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		}
		KUNIT_ASSERT_EQ(test, -ENOMEM, rig_post(pair.a, &wr));
		if (round % 2) {
			KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_ERR));
			for (n = 0; n < 4; n++)
				rig_expect_wc(pair.a->scq, n, IB_WC_WR_FLUSH_ERR);
		}
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RESET));
		rig_bring(pair.a, IB_QPS_RTS, pair.b);
	}
}

/* CASES 76, 78: ib_core's own drain, in every state it is used in. */
static void case_076_ib_drain_qp(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_cq *cq = ib_alloc_cq(rig->dev, NULL, 64, 0, IB_POLL_WORKQUEUE);
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS,
						   IB_QPS_SQD, IB_QPS_ERR };
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		struct rig_qp qp = { .rig = rig, .type = IB_QPT_RC };

		qp.qp = ib_create_qp(rig->pd, &init);
		if (IS_ERR(qp.qp)) {
			KUNIT_EXPECT_EQ(test, PTR_ERR(qp.qp), 0l);
			break;
		}
		qp.num = qp.qp->qp_num;
		rig_bring(&qp, states[i], &qp);
		ib_drain_qp(qp.qp);
		KUNIT_EXPECT_EQ(test, (int)rig_state(&qp), (int)IB_QPS_ERR);
		ib_destroy_qp(qp.qp);
	}
	ib_free_cq(cq);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(each_fault, fault_gen_params),
	KUNIT_CASE(peer_that_never_was),
	KUNIT_CASE(case_177_peer_that_is_late),
	KUNIT_CASE(case_069_receives_are_flushed),
	KUNIT_CASE(case_076_sends_are_flushed),
	KUNIT_CASE(case_067_reset_discards),
	KUNIT_CASE(case_095_slots_come_back),
	KUNIT_CASE(case_076_ib_drain_qp),
	{}
};

RIG_SUITE(rvt_error, cases);
