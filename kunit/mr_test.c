// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory regions: deregistration in use, fast registration, invalidation.
 */
#include "harness.h"
#include "suites.h"

/* --- a region that a queued request still uses -------------------------------- */

/* The queue pair that holds it goes to ERR; its requests are flushed. */
static void deregister_while_queued(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct ib_mr *mr = rig_dma_mr(rig, rig->pd, RIG_ALL_ACCESS);
	u64 *word = rig_buf(rig, 16);
	struct rig_wr wr;
	struct ib_wc wc;
	int n;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	word[0] = 7;
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
	for (n = 0; n < 3; n++) {
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, n, word, 8);
		rig_remote(pair.a, &wr, word + 1, NULL);
		wr.sge.lkey = mr->lkey;
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	}
	KUNIT_EXPECT_EQ(test, 0, rig_mr_destroy(rig, mr));
	rig_wait_state(pair.a, IB_QPS_ERR);
	for (n = 0; n < 3; n++) {
		rig_wc(pair.a->scq, &wc);
		KUNIT_EXPECT_EQ(test, wc.wr_id, (u64)n);
		KUNIT_EXPECT_NE(test, (int)wc.status, (int)IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, word[1], 0ull);
	KUNIT_EXPECT_EQ(test, (int)rig_state(pair.b), (int)IB_QPS_RTS);
}

/* Who does not use it is left alone. */
static void deregister_of_another(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct ib_mr *mr = rig_dma_mr(rig, rig->pd, RIG_ALL_ACCESS);
	u64 *word = rig_buf(rig, 16);
	struct rig_wr wr;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	word[0] = 7;
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 1, word, 8);
	rig_remote(pair.a, &wr, word + 1, NULL);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	KUNIT_EXPECT_EQ(test, 0, rig_mr_destroy(rig, mr));
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, word[1], 7ull);
}

/* A receive's key is looked at when a message wants it. */
static void deregister_under_a_receive(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct ib_mr *mr = rig_dma_mr(rig, rig->pd, RIG_ALL_ACCESS);
	u64 *word = rig_buf(rig, 16);
	struct ib_sge sge = { .addr = (uintptr_t)word, .length = 8 };
	struct ib_recv_wr recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;
	struct rig_wr wr;

	KUNIT_ASSERT_NOT_NULL(test, mr);
	sge.lkey = mr->lkey;
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(pair.b->qp, &recv, &bad));
	KUNIT_EXPECT_EQ(test, 0, rig_mr_destroy(rig, mr));
	word[1] = 5;
	rig_wr(pair.a, &wr, IB_WR_SEND, 1, word + 1, 8);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 1, IB_WC_REM_OP_ERR);
	rig_expect_wc(pair.b->rcq, 2, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, word[0], 0ull);
}

/* CASES 118, 119: keys differ, are never 0, and the old one is dead. */
static void case_119_keys_of_the_past(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *word = rig_buf(rig, 16);
	u32 first = 0, last = 0;
	struct rig_wr wr;
	int n;

	for (n = 0; n < 1000; n++) {
		struct ib_mr *mr = rig_dma_mr(rig, rig->pd, RIG_ALL_ACCESS);

		KUNIT_ASSERT_NOT_NULL(test, mr);
		KUNIT_EXPECT_NE(test, mr->rkey, 0u);
		KUNIT_EXPECT_NE(test, mr->rkey, rig->mr->rkey);
		KUNIT_EXPECT_NE(test, mr->rkey, last);
		last = mr->rkey;
		if (!n)
			first = last;
		KUNIT_ASSERT_EQ(test, 0, rig_mr_destroy(rig, mr));
	}
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 1, word, 8);
	rig_remote(pair.a, &wr, word + 1, NULL);
	wr.rdma.rkey = first;
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 1, IB_WC_REM_ACCESS_ERR);
}

/* --- fast registration ------------------------------------------------------------ */

enum { PAGES = 4 };

struct fast {
	struct ib_mr *mr;
	u8 *buf;
	struct scatterlist sg;
};

/* A region of PAGES pages, mapped but not yet registered. */
static void fast_init(struct rig *rig, struct fast *fast)
{
	struct kunit *test = rig->test;

	fast->mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_MEM_REG, PAGES + 1);
	if (IS_ERR(fast->mr)) {
		KUNIT_EXPECT_EQ(test, PTR_ERR(fast->mr), 0l);
		kunit_skip(test, "no fast registration");
	}
	fast->buf = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, get_order(PAGES * PAGE_SIZE));
	sg_init_one(&fast->sg, fast->buf, PAGES * PAGE_SIZE);
	sg_dma_address(&fast->sg) = (uintptr_t)fast->buf;
	sg_dma_len(&fast->sg) = PAGES * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, 1, ib_map_mr_sg(fast->mr, &fast->sg, 1, NULL, PAGE_SIZE));
}

static void fast_exit(struct rig *rig, struct fast *fast)
{
	KUNIT_EXPECT_EQ(rig->test, 0, ib_dereg_mr(fast->mr));
	free_pages((unsigned long)fast->buf, get_order(PAGES * PAGE_SIZE));
}

static int post_reg(struct rig_qp *qp, struct fast *fast, u64 id, u32 key, int access)
{
	struct ib_reg_wr reg = {
		.wr = { .wr_id = id, .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = fast->mr,
		.key = key,
		.access = access,
	};
	const struct ib_send_wr *bad;

	return ib_post_send(qp->qp, &reg.wr, &bad);
}

static int post_inv(struct rig_qp *qp, u64 id, u32 key, int flags)
{
	struct ib_send_wr inv = {
		.wr_id = id,
		.opcode = IB_WR_LOCAL_INV,
		.send_flags = IB_SEND_SIGNALED | flags,
		.ex.invalidate_rkey = key,
	};
	const struct ib_send_wr *bad;

	return ib_post_send(qp->qp, &inv, &bad);
}

/* One WRITE from the first to the second of a pair, with this outcome. */
static void write_with(struct rig_pair *pair, u64 *src, u64 addr, u32 rkey,
		       enum ib_wc_status status)
{
	struct rig_wr wr;

	rig_wr(pair->a, &wr, IB_WR_RDMA_WRITE, 9, src, 8);
	wr.rdma.remote_addr = addr;
	wr.rdma.rkey = rkey;
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_post(pair->a, &wr));
	rig_expect_wc(pair->a->scq, 9, status);
}

/* Register, use, invalidate, register under a new key: a storage driver's day. */
static void case_122_register_use_invalidate(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *src = rig_buf(rig, 8);
	struct fast fast;
	struct ib_wc wc;
	int round;

	fast_init(rig, &fast);
	for (round = 0; round < 20; round++) {
		u64 at = fast.mr->iova + 8 * round;

		*src = 0x1000 + round;
		KUNIT_EXPECT_EQ(test, 0, post_reg(pair.b, &fast, 1, fast.mr->rkey, RIG_ALL_ACCESS));
		rig_wc(pair.b->scq, &wc);
		KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, (int)wc.opcode, (int)IB_WC_REG_MR);
		write_with(&pair, src, at, fast.mr->rkey, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, *(u64 *)(fast.buf + 8 * round), *src);
		KUNIT_EXPECT_EQ(test, 0, post_inv(pair.b, 2, fast.mr->rkey, round % 2 ?
						  IB_SEND_FENCE : 0));
		rig_wc(pair.b->scq, &wc);
		KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, (int)wc.opcode, (int)IB_WC_LOCAL_INV);
		/* The next life has another low byte. */
		ib_update_fast_reg_key(fast.mr, round + 1);
		KUNIT_EXPECT_EQ(test, 1, ib_map_mr_sg(fast.mr, &fast.sg, 1, NULL, PAGE_SIZE));
	}
	/* Invalidated: nobody gets in. */
	write_with(&pair, src, fast.mr->iova, fast.mr->rkey, IB_WC_REM_ACCESS_ERR);
	fast_exit(rig, &fast);
}

/* CASES 113, and both ends of the range. */
static void case_113_range_of_a_region(struct kunit *test)
{
	static const struct {
		s64 at;
		u32 length;
		bool ok;
	} rows[] = {
		{ 0, 8, true },
		{ PAGES * PAGE_SIZE - 8, 8, true },
		{ 0, PAGES * PAGE_SIZE, true },
		{ PAGE_SIZE - 4, 8, true },
		{ -1, 8, false },
		{ -8, 8, false },
		{ PAGES * PAGE_SIZE - 7, 8, false },
		{ PAGES * PAGE_SIZE, 8, false },
		{ 1, PAGES * PAGE_SIZE, false },
		{ S64_MAX, 8, false },
		{ S64_MIN, 16, false },
	};
	struct rig *rig = rig_of(test);
	/* Registers and invalidates; the others fall over what is out of range. */
	struct rig_qp *owner = rig_pair(rig, IB_QPT_RC, NULL).a;
	u8 *src = rig_buf(rig, PAGES * PAGE_SIZE);
	struct fast fast;
	struct rig_wr wr;
	int i;

	fast_init(rig, &fast);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);

		KUNIT_EXPECT_EQ(test, 0, post_reg(owner, &fast, 1, fast.mr->rkey, RIG_ALL_ACCESS));
		rig_expect_wc(owner->scq, 1, IB_WC_SUCCESS);
		rig_fill(src, rows[i].length, i);
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 2, src, rows[i].length);
		wr.rdma.remote_addr = fast.mr->iova + rows[i].at;
		wr.rdma.rkey = fast.mr->rkey;
		KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 2, rows[i].ok ? IB_WC_SUCCESS : IB_WC_REM_ACCESS_ERR);
		if (rows[i].ok)
			KUNIT_EXPECT_EQ(test, memcmp(fast.buf + rows[i].at, src, rows[i].length),
					0);
		KUNIT_EXPECT_EQ(test, 0, post_inv(owner, 3, fast.mr->rkey, 0));
		rig_expect_wc(owner->scq, 3, IB_WC_SUCCESS);
		ib_update_fast_reg_key(fast.mr, i + 1);
		KUNIT_EXPECT_EQ(test, 1, ib_map_mr_sg(fast.mr, &fast.sg, 1, NULL, PAGE_SIZE));
	}
	fast_exit(rig, &fast);
}

/* CASES 124: the receiver learns which key was invalidated. */
static void case_124_send_with_invalidate(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u64 *src = rig_buf(rig, 8);
	struct fast fast;
	struct rig_wr wr;
	struct ib_wc wc;

	fast_init(rig, &fast);
	KUNIT_EXPECT_EQ(test, 0, post_reg(pair.b, &fast, 1, fast.mr->rkey, RIG_ALL_ACCESS));
	rig_expect_wc(pair.b->scq, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 2, NULL, 0));
	rig_wr(pair.a, &wr, IB_WR_SEND_WITH_INV, 3, NULL, 0);
	wr.wr.ex.invalidate_rkey = fast.mr->rkey;
	KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 3, IB_WC_SUCCESS);
	rig_wc(pair.b->rcq, &wc);
	KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, (int)IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, fast.mr->rkey);
	write_with(&pair, src, fast.mr->iova, fast.mr->rkey, IB_WC_REM_ACCESS_ERR);
	fast_exit(rig, &fast);
}

/* CASES 123, 178: only fast-registered regions, and a wrong key is an error. */
static void case_178_invalidate_what_may_not(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair;
	u64 *src = rig_buf(rig, 16);
	struct rig_wr wr;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		pair = rig_pair(rig, IB_QPT_RC, NULL);
		KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 2, NULL, 0));
		rig_wr(pair.a, &wr, IB_WR_SEND_WITH_INV, 3, NULL, 0);
		wr.wr.ex.invalidate_rkey = i ? 0xdeadbeef : rig->mr->rkey;
		KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_wc(pair.a->scq, &wc);
		KUNIT_EXPECT_TRUE_MSG(test,
				      wc.status == IB_WC_REM_ACCESS_ERR ||
					      wc.status == IB_WC_REM_OP_ERR,
				      "sender: %s", ib_wc_status_msg(wc.status));
		rig_wc(pair.b->rcq, &wc);
		KUNIT_EXPECT_NE(test, (int)wc.status, (int)IB_WC_SUCCESS);
		rig_wait_state(pair.b, IB_QPS_ERR);
	}
	/* The region still works. */
	pair = rig_pair(rig, IB_QPT_RC, NULL);
	src[0] = 3;
	write_with(&pair, src, (uintptr_t)(src + 1), rig->mr->rkey, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, src[1], 3ull);
}

/* A local invalidation that fails: refused at once, or an error of the sender. */
static void local_invalidate_of_a_wrong_key(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC };
	struct rig *rig = rig_of(test);
	int i, fence, ret;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (fence = 0; fence <= 1; fence++) {
			struct rig_pair pair = rig_pair(rig, types[i], NULL);
			struct rig_wr wr;

			ret = post_inv(pair.a, 1, 0xdeadbe00, fence ? IB_SEND_FENCE : 0);
			if (ret) {
				KUNIT_EXPECT_EQ(test, ret, -EINVAL);
				continue;
			}
			rig_expect_wc(pair.a->scq, 1, IB_WC_LOC_PROT_ERR);
			if (types[i] == IB_QPT_RC) {
				rig_wait_state(pair.a, IB_QPS_ERR);
				continue;
			}
			/* CASES 180: UC stops its sends, and modify brings it back. */
			rig_wait_state(pair.a, IB_QPS_SQE);
			rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 2, NULL, 0);
			KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
			rig_expect_wc(pair.a->scq, 2, IB_WC_WR_FLUSH_ERR);
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
			rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 3, NULL, 0);
			KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
			rig_expect_wc(pair.a->scq, 3, IB_WC_SUCCESS);
		}
	}
}

/* Refused when posted, or executed in its turn and failed. */
static void expect_no_registration(struct rig_qp *qp, struct fast *fast, u32 key, const char *what)
{
	struct kunit *test = qp->rig->test;
	struct ib_wc wc;

	if (post_reg(qp, fast, 1, key, RIG_ALL_ACCESS)) {
		rig_expect_empty(qp->scq);
		return;
	}
	rig_wc(qp->scq, &wc);
	KUNIT_EXPECT_NE_MSG(test, (int)wc.status, (int)IB_WC_SUCCESS, "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, (int)wc.opcode, (int)IB_WC_REG_MR, "%s", what);
}

/* REG_MR: what may not be registered. */
static void registrations_refused(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_pd *other = ib_alloc_pd(rig->dev, 0);
	struct fast fast, foreign;
	struct rig_qp *qp;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	fast_init(rig, &fast);
	swap(rig->pd, other);
	fast_init(rig, &foreign);
	swap(rig->pd, other);

	qp = rig_pair(rig, IB_QPT_RC, NULL).a;
	expect_no_registration(qp, &fast, fast.mr->rkey ^ 0x100, "another region's key");
	qp = rig_pair(rig, IB_QPT_RC, NULL).a;
	expect_no_registration(qp, &foreign, foreign.mr->rkey, "another PD");
	/* One that is valid must be invalidated first. */
	qp = rig_pair(rig, IB_QPT_RC, NULL).a;
	KUNIT_EXPECT_EQ(test, 0, post_reg(qp, &fast, 1, fast.mr->rkey, RIG_ALL_ACCESS));
	rig_expect_wc(qp->scq, 1, IB_WC_SUCCESS);
	expect_no_registration(qp, &fast, fast.mr->rkey, "registered twice");

	fast_exit(rig, &foreign);
	fast_exit(rig, &fast);
	ib_dealloc_pd(other);
}

static void alloc_mr_limits(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_mr *mr;

	mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_SG_GAPS, 4);
	KUNIT_EXPECT_TRUE(test, IS_ERR(mr));
	mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_MEM_REG, rig->attr.max_fast_reg_page_list_len);
	KUNIT_EXPECT_FALSE(test, IS_ERR(mr));
	if (!IS_ERR(mr))
		KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	mr = ib_alloc_mr(rig->pd, IB_MR_TYPE_MEM_REG, rig->attr.max_fast_reg_page_list_len + 1);
	KUNIT_EXPECT_TRUE(test, IS_ERR(mr));
	if (!IS_ERR(mr))
		KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(deregister_while_queued),
	KUNIT_CASE(deregister_of_another),
	KUNIT_CASE(deregister_under_a_receive),
	KUNIT_CASE(case_119_keys_of_the_past),
	KUNIT_CASE(case_122_register_use_invalidate),
	KUNIT_CASE(case_113_range_of_a_region),
	KUNIT_CASE(case_124_send_with_invalidate),
	KUNIT_CASE(case_178_invalidate_what_may_not),
	KUNIT_CASE(local_invalidate_of_a_wrong_key),
	KUNIT_CASE(registrations_refused),
	KUNIT_CASE(alloc_mr_limits),
	{}
};

RIG_SUITE(rvt_mr, cases);
