// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting: what is refused at once, with which errno and which bad_wr, and
 * how much fits.
 */
#include "harness.h"
#include "suites.h"

static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };

/* A queue pair that holds back what is posted: in SQD. */
static struct rig_pair held(struct rig *rig, enum ib_qp_type type, const struct rig_qp_opt *opt)
{
	struct rig_pair pair = rig_pair(rig, type, opt);

	rig_step(pair.a, IB_QPS_SQD, pair.b);
	return pair;
}

static int post_expecting(struct rig_qp *qp, struct rig_wr *wr, const struct ib_send_wr *bad)
{
	const struct ib_send_wr *got = (void *)1;
	int ret = ib_post_send(qp->qp, &wr->wr, &got);

	if (ret)
		KUNIT_EXPECT_PTR_EQ(qp->rig->test, (const void *)got, (const void *)bad);
	return ret;
}

static void case_037_empty_list(struct kunit *test)
{
	struct rig_pair pair = rig_pair(rig_of(test), IB_QPT_RC, NULL);
	const struct ib_send_wr *bad_send;
	const struct ib_recv_wr *bad_recv;

	KUNIT_EXPECT_EQ(test, 0, ib_post_send(pair.a->qp, NULL, &bad_send));
	KUNIT_EXPECT_EQ(test, 0, ib_post_recv(pair.a->qp, NULL, &bad_recv));
}

/* CASES 38 and the one bad_wr that the original forgets. */
static void case_038_states_that_refuse(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	int i, state, again;
	struct rig_wr wr;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (state = IB_QPS_RESET; state <= IB_QPS_RTR; state++) {
			struct rig_qp *qp = rig_qp(rig, types[i], NULL);

			rig_bring(qp, state, qp);
			for (again = 0; again < 2; again++) {
				struct ib_recv_wr recv = { .wr_id = 1 };
				const struct ib_recv_wr *bad = NULL;
				int ret;

				rig_wr(qp, &wr, IB_WR_SEND, 1, NULL, 0);
				KUNIT_EXPECT_EQ_MSG(test, post_expecting(qp, &wr, &wr.wr), -EINVAL,
						    "%s post_send in %s", rig_type_name(types[i]),
						    rig_state_name(state));
				ret = ib_post_recv(qp->qp, &recv, &bad);
				if (state == IB_QPS_RESET) {
					KUNIT_EXPECT_EQ(test, ret, -EINVAL);
					KUNIT_EXPECT_PTR_EQ(test, (const void *)bad,
							    (const void *)&recv);
				} else {
					KUNIT_EXPECT_EQ(test, ret, 0);
				}
			}
		}
	}
}

/* CASES 107: exactly max_send_wr fit; one signalled completion frees all. */
static void case_107_send_queue_full(struct kunit *test)
{
	static const u32 depth[] = { 1, 2, 7, 16, 33 };
	struct rig *rig = rig_of(test);
	struct rig_wr wr;
	int i, round;
	u32 n;

	for (i = 0; i < ARRAY_SIZE(depth); i++) {
		struct rig_qp_opt opt = { .send_wr = depth[i] };
		struct rig_pair pair = held(rig, IB_QPT_RC, &opt);

		for (round = 0; round < 5; round++) {
			for (n = 0; n < depth[i]; n++) {
				rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, n, NULL, 0);
				if (n < depth[i] - 1)
					wr.wr.send_flags = 0;
				KUNIT_ASSERT_EQ_MSG(test, rig_post(pair.a, &wr), 0,
						    "%u of %u, round %d", n, depth[i], round);
			}
			rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 99, NULL, 0);
			KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -ENOMEM);
			KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
			rig_expect_wc(pair.a->scq, depth[i] - 1, IB_WC_SUCCESS);
			rig_expect_empty(pair.a->scq);
			KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
		}
	}
}

/* CASES 161, 164: the same for receives, also with a ring of odd size. */
static void case_161_receive_queue_full(struct kunit *test)
{
	static const u32 depth[] = { 1, 2, 5, 16, 31 };
	struct rig *rig = rig_of(test);
	struct rig_wr wr;
	int i, round;
	u32 n;

	for (i = 0; i < ARRAY_SIZE(depth); i++) {
		struct rig_qp_opt opt = { .recv_wr = depth[i] };
		struct rig_pair pair = rig_pair(rig, IB_QPT_RC, &opt);

		for (round = 0; round < 4; round++) {
			for (n = 0; n < depth[i]; n++)
				KUNIT_ASSERT_EQ(test, rig_post_recv(pair.b, n, NULL, 0), 0);
			KUNIT_EXPECT_EQ(test, rig_post_recv(pair.b, n, NULL, 0), -ENOMEM);
			for (n = 0; n < depth[i]; n++) {
				rig_wr(pair.a, &wr, IB_WR_SEND, n, NULL, 0);
				KUNIT_ASSERT_EQ(test, rig_post(pair.a, &wr), 0);
				rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
				rig_expect_wc(pair.b->rcq, n, IB_WC_SUCCESS);
			}
		}
	}
}

/* CASES 32 for a queue pair's own ring: bad_wr in the middle of a chain. */
static void chain_longer_than_the_receive_queue(struct kunit *test)
{
	struct rig_qp_opt opt = { .recv_wr = 3 };
	struct rig_qp *qp = rig_qp(rig_of(test), IB_QPT_RC, &opt);
	struct ib_recv_wr wr[5] = {};
	const struct ib_recv_wr *bad = NULL;
	int i;

	rig_bring(qp, IB_QPS_INIT, qp);
	for (i = 0; i < 5; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	KUNIT_EXPECT_EQ(test, ib_post_recv(qp->qp, wr, &bad), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, (const void *)bad, (const void *)&wr[3]);
	/* The first three are there. */
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(qp, IB_QPS_ERR));
	for (i = 0; i < 3; i++)
		rig_expect_wc(qp->rcq, i, IB_WC_WR_FLUSH_ERR);
	rig_expect_empty(qp->rcq);
}

static void case_097_bad_in_the_middle(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *src = rig_buf(rig, 8), *dst = rig_buf(rig, 4 * sizeof(*dst));
	struct rig_wr wr[4];
	int i;

	*src = 0x0123456789abcdefull;
	for (i = 0; i < 4; i++) {
		rig_wr(pair.a, &wr[i], IB_WR_RDMA_WRITE, i, src, 8);
		rig_remote(pair.a, &wr[i], &dst[i], NULL);
		wr[i].wr.next = i < 3 ? &wr[i + 1].wr : NULL;
	}
	wr[2].wr.num_sge = pair.a->cap.max_send_sge + 1;
	KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr[0], &wr[2].wr), -EINVAL);
	rig_expect_wc(pair.a->scq, 0, IB_WC_SUCCESS);
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	rig_expect_empty(pair.a->scq);
	KUNIT_EXPECT_EQ(test, dst[0], *src);
	KUNIT_EXPECT_EQ(test, dst[1], *src);
	KUNIT_EXPECT_EQ(test, dst[2], 0ull);
	KUNIT_EXPECT_EQ(test, dst[3], 0ull);
}

/* CASES 98, 100, 112: opcodes that a type does not have. */
static void case_100_opcode_of_another_type(struct kunit *test)
{
	static const struct {
		enum ib_qp_type type;
		int op;
	} bad[] = {
		{ IB_QPT_UC, IB_WR_RDMA_READ },
		{ IB_QPT_UC, IB_WR_ATOMIC_CMP_AND_SWP },
		{ IB_QPT_UC, IB_WR_ATOMIC_FETCH_AND_ADD },
		{ IB_QPT_UC, IB_WR_SEND_WITH_INV },
		{ IB_QPT_UD, IB_WR_RDMA_WRITE },
		{ IB_QPT_UD, IB_WR_RDMA_WRITE_WITH_IMM },
		{ IB_QPT_UD, IB_WR_RDMA_READ },
		{ IB_QPT_UD, IB_WR_ATOMIC_CMP_AND_SWP },
		{ IB_QPT_UD, IB_WR_ATOMIC_FETCH_AND_ADD },
		{ IB_QPT_UD, IB_WR_SEND_WITH_INV },
		{ IB_QPT_UD, IB_WR_LOCAL_INV },
		{ IB_QPT_RC, IB_WR_LSO },
		{ IB_QPT_RC, IB_WR_RDMA_READ_WITH_INV },
		{ IB_QPT_RC, IB_WR_MASKED_ATOMIC_CMP_AND_SWP },
		{ IB_QPT_RC, IB_WR_MASKED_ATOMIC_FETCH_AND_ADD },
		{ IB_QPT_RC, 0x1f },
		{ IB_QPT_RC, 0x40 },
		{ IB_QPT_RC, 0xff },
		{ IB_QPT_RC, INT_MAX },
		{ IB_QPT_RC, -1 },
	};
	struct rig *rig = rig_of(test);
	u64 *word = rig_buf(rig, sizeof(*word));
	struct rig_wr wr;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rig_pair pair = rig_pair(rig, bad[i].type, NULL);

		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 1, word, 8);
		/* What surrounds a send to a datagram is something else. */
		if (bad[i].op != IB_WR_SEND_WITH_INV)
			rig_remote(pair.a, &wr, word, NULL);
		wr.wr.opcode = bad[i].op;
		ret = post_expecting(pair.a, &wr, &wr.wr);
		KUNIT_EXPECT_EQ_MSG(test, ret, -EINVAL, "%s opcode %d", rig_type_name(bad[i].type),
				    bad[i].op);
		rig_expect_empty(pair.a->scq);
	}
}

static void too_many_pieces(struct kunit *test)
{
	struct rig_pair pair = rig_pair(rig_of(test), IB_QPT_RC, NULL);
	struct ib_recv_wr recv = {};
	const struct ib_recv_wr *bad;
	struct ib_sge sge[8] = {};
	struct rig_wr wr;
	int n;

	for (n = 5; n < 8; n++) {
		rig_wr(pair.a, &wr, IB_WR_SEND, 1, NULL, 0);
		wr.wr.sg_list = sge;
		wr.wr.num_sge = n;
		KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -EINVAL);
		recv.sg_list = sge;
		recv.num_sge = n;
		KUNIT_EXPECT_EQ(test, ib_post_recv(pair.a->qp, &recv, &bad), -EINVAL);
	}
	/* As unsigned, these are many. */
	wr.wr.num_sge = -1;
	recv.num_sge = -1;
	KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_post_recv(pair.a->qp, &recv, &bad), -EINVAL);
}

/* CASES 101, 103: no pieces, so nobody looks at the list, the key, the address. */
static void case_101_zero_pieces_of_poison(struct kunit *test)
{
	static const enum ib_wr_opcode op[] = { IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ };
	struct rig_pair pair = rig_pair(rig_of(test), IB_QPT_RC, NULL);
	struct rig_wr wr;
	int i;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		if (op[i] == IB_WR_SEND)
			KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 7, NULL, 0));
		rig_wr(pair.a, &wr, op[i], i, NULL, 0);
		wr.wr.sg_list = (struct ib_sge *)0xdead000000000000ul;
		if (op[i] != IB_WR_SEND) {
			wr.rdma.remote_addr = 0xdead000000000000ull;
			wr.rdma.rkey = 0xdeadbeef;
		}
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, i, IB_WC_SUCCESS);
	}
	rig_expect_wc(pair.b->rcq, 7, IB_WC_SUCCESS);
}

static void case_102_empty_piece_in_the_middle(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u8 *src = rig_buf(rig, 32), *dst = rig_buf(rig, 32);
	struct ib_sge sge[3] = {
		{ .addr = (uintptr_t)src, .length = 8, .lkey = rig->mr->lkey },
		{ .addr = 0xdead, .length = 0, .lkey = 0xdeadbeef },
		{ .addr = (uintptr_t)src + 16, .length = 8, .lkey = rig->mr->lkey },
	};
	struct ib_recv_wr recv = { .wr_id = 5, .num_sge = 3 };
	struct ib_sge into[3] = {
		{ .addr = (uintptr_t)dst, .length = 4, .lkey = rig->mr->lkey },
		{ .addr = 0xdead, .length = 0, .lkey = 0xdeadbeef },
		{ .addr = (uintptr_t)dst + 4, .length = 12, .lkey = rig->mr->lkey },
	};
	const struct ib_recv_wr *bad;
	struct rig_wr wr;
	struct ib_wc wc;

	rig_fill(src, 32, 1);
	recv.sg_list = into;
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(pair.b->qp, &recv, &bad));
	rig_wr(pair.a, &wr, IB_WR_SEND, 4, NULL, 0);
	wr.wr.sg_list = sge;
	wr.wr.num_sge = 3;
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 4, IB_WC_SUCCESS);
	rig_wc(pair.b->rcq, &wc);
	KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.byte_len, 16u);
	KUNIT_EXPECT_EQ(test, memcmp(dst, src, 8), 0);
	KUNIT_EXPECT_EQ(test, memcmp(dst + 8, src + 16, 8), 0);
}

/* Either refused at once or a local protection error; never success. */
static void expect_key_refused(struct rig_qp *qp, struct rig_wr *wr, const char *what)
{
	struct kunit *test = qp->rig->test;
	int ret = post_expecting(qp, wr, &wr->wr);

	if (ret) {
		KUNIT_EXPECT_EQ_MSG(test, ret, -EINVAL, "%s", what);
		rig_expect_empty(qp->scq);
	} else {
		rig_expect_wc(qp->scq, wr->wr.wr_id, IB_WC_LOC_PROT_ERR);
	}
}

/* CASES 116, and keys that nobody has. */
static void case_116_foreign_and_wrong_keys(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_pd *other = ib_alloc_pd(rig->dev, 0);
	u64 *word = rig_buf(rig, sizeof(*word));
	struct rig_pair pair;
	struct ib_mr *foreign;
	struct rig_wr wr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	foreign = rig_dma_mr(rig, other, RIG_ALL_ACCESS);
	KUNIT_EXPECT_NOT_NULL(test, foreign);
	if (foreign) {
		pair = rig_pair(rig, IB_QPT_RC, NULL);
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 1, word, 8);
		rig_remote(pair.a, &wr, word, NULL);
		wr.sge.lkey = foreign->lkey;
		expect_key_refused(pair.a, &wr, "lkey of another PD");

		pair = rig_pair(rig, IB_QPT_RC, NULL);
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 2, word, 8);
		rig_remote(pair.a, &wr, word, foreign);
		KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 2, IB_WC_REM_ACCESS_ERR);
		rig_wait_state(pair.b, IB_QPS_ERR);
		KUNIT_EXPECT_EQ(test, 0, rig_mr_destroy(rig, foreign));
	}
	ib_dealloc_pd(other);

	pair = rig_pair(rig, IB_QPT_RC, NULL);
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 3, word, 8);
	rig_remote(pair.a, &wr, word, NULL);
	wr.sge.lkey = rig->mr->lkey + 1;
	expect_key_refused(pair.a, &wr, "wrong low byte");
	pair = rig_pair(rig, IB_QPT_RC, NULL);
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 4, word, 8);
	rig_remote(pair.a, &wr, word, NULL);
	wr.sge.lkey = ~rig->mr->lkey;
	expect_key_refused(pair.a, &wr, "no such key");
}

/* CASES 104: what is written to locally must allow it, what is read need not. */
static void case_104_read_only_region(struct kunit *test)
{
	static const enum ib_wr_opcode into[] = { IB_WR_RDMA_READ, IB_WR_ATOMIC_FETCH_AND_ADD };
	struct rig *rig = rig_of(test);
	struct ib_mr *mr = rig_dma_mr(rig, rig->pd, IB_ACCESS_REMOTE_READ);
	u64 *word = rig_buf(rig, sizeof(*word)), *to = rig_buf(rig, sizeof(*to));
	struct rig_pair pair;
	struct rig_wr wr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	*word = 5;
	pair = rig_pair(rig, IB_QPT_RC, NULL);
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 1, word, 8);
	rig_remote(pair.a, &wr, to, NULL);
	wr.sge.lkey = mr->lkey;
	KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *to, 5ull);
	for (i = 0; i < ARRAY_SIZE(into); i++) {
		pair = rig_pair(rig, IB_QPT_RC, NULL);
		rig_wr(pair.a, &wr, into[i], 2, word, 8);
		rig_remote(pair.a, &wr, to, NULL);
		wr.sge.lkey = mr->lkey;
		expect_key_refused(pair.a, &wr, rig_op_name(into[i]));
	}
	KUNIT_EXPECT_EQ(test, *word, 5ull);
}

/* CASES 134: where the answer of an atomic goes. */
static void case_134_result_buffer_of_atomics(struct kunit *test)
{
	static const enum ib_wr_opcode op[] = { IB_WR_ATOMIC_CMP_AND_SWP,
						IB_WR_ATOMIC_FETCH_AND_ADD };
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *word = rig_buf(rig, 4 * sizeof(*word));
	struct rig_wr wr;
	int i;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		rig_wr(pair.a, &wr, op[i], 1, NULL, 0);
		rig_remote(pair.a, &wr, word, NULL);
		KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -EINVAL);
		rig_wr(pair.a, &wr, op[i], 2, word + 1, 7);
		rig_remote(pair.a, &wr, word, NULL);
		KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -EINVAL);
		rig_wr(pair.a, &wr, op[i], 3, (u8 *)(word + 1) + 4, 8);
		rig_remote(pair.a, &wr, word, NULL);
		KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -EINVAL);
	}
	rig_expect_empty(pair.a->scq);
	KUNIT_EXPECT_EQ(test, *word, 0ull);
}

/* CASES 57, 181: no READ and no atomic without room for them, on either side. */
static void case_057_no_rd_atomic(struct kunit *test)
{
	static const enum ib_wr_opcode op[] = { IB_WR_RDMA_READ, IB_WR_ATOMIC_CMP_AND_SWP,
						IB_WR_ATOMIC_FETCH_AND_ADD };
	struct rig *rig = rig_of(test);
	u64 *word = rig_buf(rig, 2 * sizeof(*word));
	struct ib_qp_attr attr;
	struct rig_wr wr;
	int i, mask;

	for (i = 0; i < ARRAY_SIZE(op); i++) {
		struct rig_qp *a = rig_qp(rig, IB_QPT_RC, NULL), *b = rig_qp(rig, IB_QPT_RC, NULL);
		struct rig_pair pair;

		rig_bring(a, IB_QPS_RTR, b);
		mask = rig_attr(a, IB_QPS_RTS, b, &attr);
		attr.max_rd_atomic = 0;
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(a->qp, &attr, mask));
		rig_bring(b, IB_QPS_RTS, a);
		rig_wr(a, &wr, op[i], 1, word, 8);
		rig_remote(a, &wr, word + 1, NULL);
		KUNIT_EXPECT_EQ_MSG(test, post_expecting(a, &wr, &wr.wr), -EINVAL, "%s",
				    rig_op_name(op[i]));

		/* The responder's side. */
		pair.a = rig_qp(rig, IB_QPT_RC, NULL);
		pair.b = rig_qp(rig, IB_QPT_RC, NULL);
		rig_bring(pair.b, IB_QPS_INIT, pair.a);
		mask = rig_attr(pair.b, IB_QPS_RTR, pair.a, &attr);
		attr.max_dest_rd_atomic = 0;
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(pair.b->qp, &attr, mask));
		rig_bring(pair.a, IB_QPS_RTS, pair.b);
		rig_wr(pair.a, &wr, op[i], 2, word, 8);
		rig_remote(pair.a, &wr, word + 1, NULL);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 2, IB_WC_REM_INV_REQ_ERR);
		rig_wait_state(pair.b, IB_QPS_ERR);
	}
}

/* CASES 106. */
static void case_106_inline(struct kunit *test)
{
	static const u32 max[] = { 1, 64, 100, 512 };
	struct rig *rig = rig_of(test);
	u8 *src = rig_buf(rig, 1024), *dst = rig_buf(rig, 1024), *want = rig_buf(rig, 1024);
	struct ib_sge sge[3];
	struct rig_wr wr;
	int i;

	for (i = 0; i < ARRAY_SIZE(max); i++) {
		struct rig_qp_opt opt = { .inline_data = max[i] };
		struct rig_pair pair = rig_pair(rig, IB_QPT_RC, &opt);
		u32 size = pair.a->cap.max_inline_data;

		KUNIT_ASSERT_GE(test, size, max[i]);
		KUNIT_ASSERT_LE(test, size, 1000u);
		rig_fill(src, 1024, i);
		memcpy(want, src, 1024);
		memset(dst, 0, 1024);
		/* Held back, so that the buffer surely changes before the copy. */
		rig_step(pair.a, IB_QPS_SQD, pair.b);
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 1, src, size);
		rig_remote(pair.a, &wr, dst, NULL);
		wr.wr.send_flags |= IB_SEND_INLINE;
		wr.sge.lkey = 0xdeadbeef; /* not looked at */
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		memset(src, 0xee, 1024);
		rig_step(pair.a, IB_QPS_RTS, pair.b);
		rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(dst, want, size), 0, "%u bytes inline", size);
		KUNIT_EXPECT_EQ(test, dst[size], (u8)0);

		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 2, src, size + 1);
		rig_remote(pair.a, &wr, dst, NULL);
		wr.wr.send_flags |= IB_SEND_INLINE;
		KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -EINVAL);
	}
	/* Several pieces make one message. */
	{
		struct rig_qp_opt opt = { .inline_data = 64 };
		struct rig_pair pair = rig_pair(rig, IB_QPT_RC, &opt);

		rig_fill(src, 64, 77);
		for (i = 0; i < 3; i++)
			sge[i] = (struct ib_sge){ .addr = (uintptr_t)(src + 16 * i), .length = 5 };
		memset(dst, 0, 64);
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 3, NULL, 0);
		rig_remote(pair.a, &wr, dst, NULL);
		wr.wr.send_flags |= IB_SEND_INLINE;
		wr.wr.sg_list = sge;
		wr.wr.num_sge = 3;
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 3, IB_WC_SUCCESS);
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, memcmp(dst + 5 * i, src + 16 * i, 5), 0);
	}
}

/* Lengths are summed without wrapping: two halves of 4 GiB are too much. */
static void message_beyond_two_gigabytes(struct kunit *test)
{
	static const u32 length[][4] = {
		{ 0x80000000, 1, 0, 0 },
		{ 0x80000000, 0x80000000, 0, 0 },
		{ 0xffffffff, 0xffffffff, 2, 0 },
		{ 0x40000000, 0x40000000, 0x40000000, 0x40000000 },
	};
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u8 *buf = rig_buf(rig, 64);
	struct ib_sge sge[4];
	struct rig_wr wr;
	int i, k;

	for (i = 0; i < ARRAY_SIZE(length); i++) {
		for (k = 0; k < 4; k++)
			sge[k] = (struct ib_sge){ .addr = (uintptr_t)buf,
						  .length = length[i][k],
						  .lkey = rig->mr->lkey };
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 1, NULL, 0);
		rig_remote(pair.a, &wr, buf, NULL);
		wr.wr.sg_list = sge;
		wr.wr.num_sge = 4;
		KUNIT_EXPECT_EQ(test, post_expecting(pair.a, &wr, &wr.wr), -EINVAL);
	}
	rig_expect_empty(pair.a->scq);
}

/* CASES 75, 98: in ERR everything well formed is taken and flushed. */
static void case_075_posting_in_err(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_wr wr;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_pair pair = rig_pair(rig, types[i], NULL);

		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_ERR));
		for (n = 0; n < 3; n++) {
			if (types[i] == IB_QPT_UD)
				break;
			rig_wr(pair.a, &wr, IB_WR_SEND, n, NULL, 0);
			wr.wr.send_flags = n ? 0 : IB_SEND_SIGNALED;
			KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
		}
		for (n = 0; n < 3; n++)
			KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.a, 10 + n, NULL, 0));
		for (n = 0; n < 3; n++) {
			if (types[i] != IB_QPT_UD)
				rig_expect_wc(pair.a->scq, n, IB_WC_WR_FLUSH_ERR);
			rig_expect_wc(pair.a->rcq, 10 + n, IB_WC_WR_FLUSH_ERR);
		}
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(case_037_empty_list),
	KUNIT_CASE(case_038_states_that_refuse),
	KUNIT_CASE(case_107_send_queue_full),
	KUNIT_CASE(case_161_receive_queue_full),
	KUNIT_CASE(chain_longer_than_the_receive_queue),
	KUNIT_CASE(case_097_bad_in_the_middle),
	KUNIT_CASE(case_100_opcode_of_another_type),
	KUNIT_CASE(too_many_pieces),
	KUNIT_CASE(case_101_zero_pieces_of_poison),
	KUNIT_CASE(case_102_empty_piece_in_the_middle),
	KUNIT_CASE(case_116_foreign_and_wrong_keys),
	KUNIT_CASE(case_104_read_only_region),
	KUNIT_CASE(case_134_result_buffer_of_atomics),
	KUNIT_CASE(case_057_no_rd_atomic),
	KUNIT_CASE(case_106_inline),
	KUNIT_CASE(message_beyond_two_gigabytes),
	KUNIT_CASE(case_075_posting_in_err),
	{}
};

RIG_SUITE(rvt_post, cases);
