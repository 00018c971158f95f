// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The loopback of connected queue pairs: every opcode, with its data and both
 * completions.
 */
#include "harness.h"
#include "suites.h"

struct move {
	enum ib_qp_type type;
	enum ib_wr_opcode op;
	enum ib_wc_opcode wc_op, recv_op; /* recv_op 0 when none is used up... */
	bool receives; /* ...which this says */
	bool imm;
};

static const struct move moves[] = {
	{ IB_QPT_RC, IB_WR_SEND, IB_WC_SEND, IB_WC_RECV, true, false },
	{ IB_QPT_RC, IB_WR_SEND_WITH_IMM, IB_WC_SEND, IB_WC_RECV, true, true },
	{ IB_QPT_RC, IB_WR_RDMA_WRITE, IB_WC_RDMA_WRITE, 0, false, false },
	{ IB_QPT_RC, IB_WR_RDMA_WRITE_WITH_IMM, IB_WC_RDMA_WRITE, IB_WC_RECV_RDMA_WITH_IMM, true,
	  true },
	{ IB_QPT_RC, IB_WR_RDMA_READ, IB_WC_RDMA_READ, 0, false, false },
	{ IB_QPT_UC, IB_WR_SEND, IB_WC_SEND, IB_WC_RECV, true, false },
	{ IB_QPT_UC, IB_WR_SEND_WITH_IMM, IB_WC_SEND, IB_WC_RECV, true, true },
	{ IB_QPT_UC, IB_WR_RDMA_WRITE, IB_WC_RDMA_WRITE, 0, false, false },
	{ IB_QPT_UC, IB_WR_RDMA_WRITE_WITH_IMM, IB_WC_RDMA_WRITE, IB_WC_RECV_RDMA_WITH_IMM, true,
	  true },
};

static const u32 sizes[] = { 0, 1, 7, 8, 9, 1023, 1024, 1025, 4096, 4097, 65536 + 3, 1 << 20 };

static void move_describe(const struct move *move, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s", rig_type_name(move->type),
		 rig_op_name(move->op));
}

KUNIT_ARRAY_PARAM(move, moves, move_describe);

/* Both completions of one message of @size bytes. */
static void check_completions(struct rig_pair *pair, const struct move *move, u64 id, u32 size)
{
	struct rig *rig = pair->a->rig;
	struct kunit *test = rig->test;
	struct ib_wc wc;

	rig_wc(pair->a->scq, &wc);
	KUNIT_EXPECT_STREQ(test, ib_wc_status_msg(wc.status), "success");
	KUNIT_EXPECT_EQ(test, wc.wr_id, id);
	KUNIT_EXPECT_EQ(test, (int)wc.opcode, (int)move->wc_op);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, pair->a->qp);
	if (!move->receives) {
		rig_expect_empty(pair->b->rcq);
		return;
	}
	rig_wc(pair->b->rcq, &wc);
	KUNIT_EXPECT_STREQ(test, ib_wc_status_msg(wc.status), "success");
	KUNIT_EXPECT_EQ(test, wc.wr_id, ~id);
	KUNIT_EXPECT_EQ(test, (int)wc.opcode, (int)move->recv_op);
	KUNIT_EXPECT_EQ(test, wc.byte_len, size); /* CASES 140 */
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, pair->b->qp);
	KUNIT_EXPECT_EQ(test, wc.src_qp, pair->a->num);
	KUNIT_EXPECT_EQ(test, wc.slid, rig->port_attr.lid);
	KUNIT_EXPECT_EQ(test, (u32)wc.port_num, rig->port);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, move->imm ? (int)IB_WC_WITH_IMM : 0);
	if (move->imm)
		KUNIT_EXPECT_EQ(test, (__force u32)wc.ex.imm_data, 0xa1b2c3d4u ^ (u32)id);
}

static void one_message(struct rig_pair *pair, const struct move *move, u64 id, u8 *src, u8 *dst,
			u32 size)
{
	struct kunit *test = pair->a->rig->test;
	struct rig_wr wr;

	rig_fill(src, size, id);
	memset(dst, 0xa5, size + 1);
	if (move->op == IB_WR_RDMA_READ) {
		rig_wr(pair->a, &wr, move->op, id, dst, size);
		rig_remote(pair->a, &wr, src, NULL);
	} else {
		rig_wr(pair->a, &wr, move->op, id, src, size);
		if (move->op != IB_WR_SEND && move->op != IB_WR_SEND_WITH_IMM)
			rig_remote(pair->a, &wr, dst, NULL);
	}
	if (move->imm)
		wr.wr.ex.imm_data = (__force __be32)(0xa1b2c3d4u ^ (u32)id);
	if (move->receives) {
		bool send = move->recv_op == IB_WC_RECV;

		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair->b, ~id, send ? dst : NULL,
						       send ? size : 0));
	}
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair->a, &wr));
	check_completions(pair, move, id, size);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(src, dst, size), 0, "%s, %u bytes",
			    rig_op_name(move->op), size);
	KUNIT_EXPECT_EQ_MSG(test, dst[size], (u8)0xa5, "wrote beyond %u bytes", size);
}

static void each_opcode_at_each_size(struct kunit *test)
{
	const struct move *move = test->param_value;
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, move->type, NULL);
	u32 largest = sizes[ARRAY_SIZE(sizes) - 1];
	u8 *src = rig_buf(rig, largest + 16), *dst = rig_buf(rig, largest + 16);
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		one_message(&pair, move, 1000 + i, src, dst, sizes[i]);
		/* And from and to addresses that are not aligned. */
		one_message(&pair, move, 2000 + i, src + 3, dst + 5, sizes[i]);
	}
	rig_expect_empty(pair.a->rcq);
	rig_expect_empty(pair.b->scq);
}

/* CASES 145: a queue pair that is its own peer. */
static void case_145_to_itself(struct kunit *test)
{
	const struct move *move = test->param_value;
	struct rig *rig = rig_of(test);
	struct rig_qp *qp = rig_qp(rig, move->type, NULL);
	struct rig_pair pair = { .a = qp, .b = qp };
	u8 *src = rig_buf(rig, 8192), *dst = rig_buf(rig, 8192);
	int i;

	rig_bring(qp, IB_QPS_RTS, qp);
	for (i = 0; i < 4; i++)
		one_message(&pair, move, i, src, dst, 1500 * i);
}

/* A message of many pieces into a receive of others. */
static void scatter_and_gather(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	static const u32 out[4] = { 1, 4096, 17, 1000 }, in[4] = { 2000, 3, 5000, 1 };
	static const u32 place[4] = { 8001, 11, 1000, 15000 };
	u8 *src = rig_buf(rig, 16384), *dst = rig_buf(rig, 16384);
	u8 *flat_src = rig_buf(rig, 16384), *flat_dst = rig_buf(rig, 16384);
	struct ib_sge from[4], into[4];
	struct ib_recv_wr recv = { .wr_id = 2, .sg_list = into, .num_sge = 4 };
	const struct ib_recv_wr *bad;
	u32 at = 0, total = 0, left;
	struct rig_wr wr;
	struct ib_wc wc;
	int i;

	rig_fill(src, 16384, 3);
	for (i = 0; i < 4; i++) {
		from[i] = (struct ib_sge){ .addr = (uintptr_t)(src + 4100 * i),
					   .length = out[i],
					   .lkey = rig->mr->lkey };
		into[i] = (struct ib_sge){ .addr = (uintptr_t)(dst + place[i]),
					   .length = in[i],
					   .lkey = rig->mr->lkey };
	}
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(pair.b->qp, &recv, &bad));
	rig_wr(pair.a, &wr, IB_WR_SEND, 1, NULL, 0);
	wr.wr.sg_list = from;
	wr.wr.num_sge = 4;
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	rig_wc(pair.b->rcq, &wc);
	for (i = 0; i < 4; i++) {
		memcpy(flat_src + total, src + 4100 * i, out[i]);
		total += out[i];
	}
	KUNIT_EXPECT_EQ(test, wc.byte_len, total);
	for (i = 0, left = total; i < 4 && left; i++) {
		u32 n = min(left, in[i]);

		memcpy(flat_dst + at, (u8 *)(uintptr_t)into[i].addr, n);
		at += n;
		left -= n;
	}
	KUNIT_EXPECT_EQ(test, memcmp(flat_src, flat_dst, total), 0);
}

static void atomic(struct rig_pair *pair, struct rig_wr *wr, enum ib_wr_opcode op, u64 id,
		   u64 *result, u64 *word, u64 a, u64 b)
{
	struct ib_wc wc;

	rig_wr(pair->a, wr, op, id, result, 8);
	rig_remote(pair->a, wr, word, NULL);
	wr->atomic.compare_add = a;
	wr->atomic.swap = b;
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_post(pair->a, wr));
	rig_wc(pair->a->scq, &wc);
	KUNIT_EXPECT_STREQ(pair->a->rig->test, ib_wc_status_msg(wc.status), "success");
	KUNIT_EXPECT_EQ(pair->a->rig->test, (int)wc.opcode,
			op == IB_WR_ATOMIC_CMP_AND_SWP ? (int)IB_WC_COMP_SWAP :
							 (int)IB_WC_FETCH_ADD);
	KUNIT_EXPECT_EQ(pair->a->rig->test, wc.byte_len, 8u);
}

static void atomics(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *word = rig_buf(rig, 8), *result = rig_buf(rig, 8);
	struct rig_wr wr;

	*word = 0xfffffffffffffff0ull;
	atomic(&pair, &wr, IB_WR_ATOMIC_FETCH_AND_ADD, 1, result, word, 0x20, 0);
	KUNIT_EXPECT_EQ(test, *result, 0xfffffffffffffff0ull);
	KUNIT_EXPECT_EQ(test, *word, 0x10ull);
	atomic(&pair, &wr, IB_WR_ATOMIC_CMP_AND_SWP, 2, result, word, 0x11, 0x77);
	KUNIT_EXPECT_EQ(test, *result, 0x10ull);
	KUNIT_EXPECT_EQ(test, *word, 0x10ull);
	atomic(&pair, &wr, IB_WR_ATOMIC_CMP_AND_SWP, 3, result, word, 0x10, 0x0123456789abcdefull);
	KUNIT_EXPECT_EQ(test, *result, 0x10ull);
	KUNIT_EXPECT_EQ(test, *word, 0x0123456789abcdefull);
	rig_expect_empty(pair.b->rcq);
}

/* CASES 135: several queue pairs, one word, nothing is lost. */
static void case_135_atomics_are_atomic(struct kunit *test)
{
	enum { PAIRS = 4, EACH = 64 };
	struct rig *rig = rig_of(test);
	struct rig_qp_opt opt = { .send_wr = EACH };
	u64 *word = rig_buf(rig, 8), *result = rig_buf(rig, 8 * PAIRS);
	struct rig_pair pair[PAIRS];
	struct rig_wr wr;
	int i, n;

	for (i = 0; i < PAIRS; i++)
		pair[i] = rig_pair(rig, IB_QPT_RC, &opt);
	for (n = 0; n < EACH; n++) {
		for (i = 0; i < PAIRS; i++) {
			rig_wr(pair[i].a, &wr, IB_WR_ATOMIC_FETCH_AND_ADD, n, &result[i], 8);
			rig_remote(pair[i].a, &wr, word, NULL);
			wr.atomic.compare_add = 1;
			if (n < EACH - 1)
				wr.wr.send_flags = 0;
			KUNIT_ASSERT_EQ(test, 0, rig_post(pair[i].a, &wr));
		}
	}
	for (i = 0; i < PAIRS; i++)
		rig_expect_wc(pair[i].a->scq, EACH - 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *word, (u64)PAIRS * EACH);
}

/* Only what is signalled completes, and the order is kept. */
static void signalling(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp_opt all = { .sig_all = true };
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct rig_wr wr;
	int n;

	for (n = 0; n < 12; n++) {
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, n, NULL, 0);
		wr.wr.send_flags = n % 3 == 2 ? IB_SEND_SIGNALED : 0;
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	}
	for (n = 2; n < 12; n += 3)
		rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
	rig_expect_empty(pair.a->scq);

	pair = rig_pair(rig, IB_QPT_UC, &all);
	for (n = 0; n < 4; n++) {
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, n, NULL, 0);
		wr.wr.send_flags = 0;
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	}
	for (n = 0; n < 4; n++)
		rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
}

/* A chain of many, executed in order, both ways at once. */
static void both_ways_in_order(struct kunit *test)
{
	enum { COUNT = 100 };
	struct rig *rig = rig_of(test);
	struct rig_qp_opt opt = { .send_wr = COUNT, .recv_wr = COUNT };
	struct rig_pair pair;
	struct rig_wr *wr = kunit_kzalloc(test, COUNT * sizeof(*wr), GFP_KERNEL);
	u32 *out = rig_buf(rig, COUNT * sizeof(*out)), *in = rig_buf(rig, 2 * COUNT * sizeof(*in));
	struct rig_qp *side[2];
	const struct ib_send_wr *bad;
	int i, s;

	KUNIT_ASSERT_NOT_NULL(test, wr);
	opt.scq = rig_cq(rig, COUNT * 2);
	opt.rcq = rig_cq(rig, COUNT * 2);
	pair.a = rig_qp(rig, IB_QPT_RC, &opt);
	opt.scq = rig_cq(rig, COUNT * 2);
	opt.rcq = rig_cq(rig, COUNT * 2);
	pair.b = rig_qp(rig, IB_QPT_RC, &opt);
	rig_bring(pair.a, IB_QPS_RTS, pair.b);
	rig_bring(pair.b, IB_QPS_RTS, pair.a);
	side[0] = pair.a;
	side[1] = pair.b;
	for (s = 0; s < 2; s++)
		for (i = 0; i < COUNT; i++)
			KUNIT_ASSERT_EQ(test, 0, rig_post_recv(side[s], i, &in[s * COUNT + i], 4));
	for (i = 0; i < COUNT; i++)
		out[i] = i * 3;
	for (s = 0; s < 2; s++) {
		for (i = 0; i < COUNT; i++) {
			rig_wr(side[s], &wr[i], IB_WR_SEND, i, &out[i], 4);
			wr[i].wr.next = i < COUNT - 1 ? &wr[i + 1].wr : NULL;
		}
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(side[s]->qp, &wr[0].wr, &bad));
	}
	for (s = 0; s < 2; s++) {
		for (i = 0; i < COUNT; i++) {
			rig_expect_wc(side[s]->scq, i, IB_WC_SUCCESS);
			rig_expect_wc(side[s]->rcq, i, IB_WC_SUCCESS);
			KUNIT_EXPECT_EQ(test, in[s * COUNT + i], (u32)i * 3);
		}
	}
}

/* CASES 86: what uses no receive does not wait for one. */
static void case_086_no_receive_needed(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *word = rig_buf(rig, 8), *result = rig_buf(rig, 8);
	static const enum ib_wr_opcode op[] = { IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
						IB_WR_ATOMIC_CMP_AND_SWP,
						IB_WR_ATOMIC_FETCH_AND_ADD };
	struct ib_qp_attr attr;
	struct rig_wr wr;
	int i;

	/* The first refusal would be fatal. */
	rig_step(pair.a, IB_QPS_SQD, pair.b);
	rig_attr(pair.a, IB_QPS_SQD, pair.b, &attr);
	attr.rnr_retry = 0;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr, IB_QP_STATE | IB_QP_RNR_RETRY));
	rig_step(pair.a, IB_QPS_RTS, pair.b);
	for (i = 0; i < ARRAY_SIZE(op); i++) {
		rig_wr(pair.a, &wr, op[i], i, result, 8);
		rig_remote(pair.a, &wr, word, NULL);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, i, IB_WC_SUCCESS);
	}
}

/* CASES 19: with k receives posted, k messages arrive, from any ring position. */
static void case_019_as_many_as_posted(struct kunit *test)
{
	enum { DEPTH = 5 };
	struct rig *rig = rig_of(test);
	struct rig_qp_opt opt = { .recv_wr = DEPTH, .send_wr = DEPTH + 1 };
	struct rig_pair pair = rig_pair(rig, IB_QPT_UC, &opt);
	struct rig_wr wr;
	int k, n, start;

	for (start = 0; start <= DEPTH; start++) {
		for (k = 0; k <= DEPTH; k++) {
			for (n = 0; n < k; n++)
				KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, n, NULL, 0));
			/* UC: the one too many is lost, without an error. */
			for (n = 0; n <= k; n++) {
				rig_wr(pair.a, &wr, IB_WR_SEND, n, NULL, 0);
				KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
				rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
			}
			for (n = 0; n < k; n++)
				rig_expect_wc(pair.b->rcq, n, IB_WC_SUCCESS);
			rig_expect_empty(pair.b->rcq);
		}
		/* One further. */
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 50, NULL, 0));
		rig_wr(pair.a, &wr, IB_WR_SEND, 51, NULL, 0);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 51, IB_WC_SUCCESS);
		rig_expect_wc(pair.b->rcq, 50, IB_WC_SUCCESS);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(each_opcode_at_each_size, move_gen_params),
	KUNIT_CASE_PARAM(case_145_to_itself, move_gen_params),
	KUNIT_CASE(scatter_and_gather),
	KUNIT_CASE(atomics),
	KUNIT_CASE(case_135_atomics_are_atomic),
	KUNIT_CASE(signalling),
	KUNIT_CASE(both_ways_in_order),
	KUNIT_CASE(case_086_no_receive_needed),
	KUNIT_CASE(case_019_as_many_as_posted),
	{}
};

RIG_SUITE(rvt_ruc, cases);
