// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queues: capacity, limit event, resize, and the event that
 * tells that a queue pair will take no more of it.
 */
#include "harness.h"
#include "suites.h"

static struct rig_pair srq_pair(struct rig *rig, struct rig_srq *srq)
{
	struct rig_qp_opt opt = { .srq = srq };
	struct rig_pair pair = { .a = rig_qp(rig, IB_QPT_RC, NULL),
				 .b = rig_qp(rig, IB_QPT_RC, &opt) };

	rig_bring(pair.a, IB_QPS_RTS, pair.b);
	rig_bring(pair.b, IB_QPS_RTS, pair.a);
	return pair;
}

static void send_one(struct rig_pair *pair, u64 id)
{
	struct rig_wr wr;

	rig_wr(pair->a, &wr, IB_WR_SEND, id, NULL, 0);
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_post(pair->a, &wr));
	rig_expect_wc(pair->a->scq, id, IB_WC_SUCCESS);
}

static int limit_events(struct rig_srq *srq)
{
	return atomic_read(&srq->events[IB_EVENT_SRQ_LIMIT_REACHED]);
}

static u32 limit_of(struct rig_srq *srq)
{
	struct ib_srq_attr attr = {};

	KUNIT_ASSERT_EQ(srq->rig->test, 0, ib_query_srq(srq->srq, &attr));
	return attr.srq_limit;
}

static int set_limit(struct rig_srq *srq, u32 limit)
{
	struct ib_srq_attr attr = { .srq_limit = limit };

	return ib_modify_srq(srq->srq, &attr, IB_SRQ_LIMIT);
}

/* CASES 26, 32. */
static void case_032_capacity(struct kunit *test)
{
	static const u32 size[] = { 1, 3, 16 };
	struct rig *rig = rig_of(test);
	struct ib_recv_wr wr[18] = {};
	const struct ib_recv_wr *bad;
	struct ib_srq_attr attr;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(size); i++) {
		struct rig_srq *srq = rig_srq(rig, size[i], 2, 0);

		KUNIT_ASSERT_EQ(test, 0, ib_query_srq(srq->srq, &attr));
		KUNIT_EXPECT_EQ(test, attr.max_wr, size[i]);
		KUNIT_EXPECT_EQ(test, attr.max_sge, 2u);
		KUNIT_EXPECT_EQ(test, attr.srq_limit, 0u);
		for (n = 0; n <= size[i]; n++) {
			wr[n].wr_id = n;
			wr[n].next = n < size[i] ? &wr[n + 1] : NULL;
		}
		bad = NULL;
		KUNIT_EXPECT_EQ(test, ib_post_srq_recv(srq->srq, wr, &bad), -ENOMEM);
		KUNIT_EXPECT_PTR_EQ(test, (const void *)bad, (const void *)&wr[size[i]]);
		wr[0].next = NULL;
		wr[0].num_sge = 3;
		KUNIT_EXPECT_EQ(test, ib_post_srq_recv(srq->srq, wr, &bad), -EINVAL);
		wr[0].num_sge = 0;
	}
}

/* CASES 28, 34. */
static void case_034_creation_limits(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	const struct {
		u32 max_wr, max_sge, limit;
	} bad[] = {
		{ 0, 1, 0 },
		{ 1, 0, 0 },
		{ rig->attr.max_srq_wr + 1, 1, 0 },
		{ 1, rig->attr.max_srq_sge + 1, 0 },
		{ 4, 1, 5 },
		{ U32_MAX, U32_MAX, 0 },
	};
	struct ib_srq *srq;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		struct ib_srq_init_attr attr = {
			.attr = { .max_wr = bad[i].max_wr, .max_sge = bad[i].max_sge,
				  .srq_limit = bad[i].limit },
			.srq_type = IB_SRQT_BASIC,
		};

		srq = ib_create_srq(rig->pd, &attr);
		KUNIT_EXPECT_EQ_MSG(test, (long)PTR_ERR_OR_ZERO(srq), (long)-EINVAL,
				    "row %d", i);
		if (!IS_ERR(srq))
			ib_destroy_srq(srq);
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, set_limit(rig_srq(rig, 4, 1, 0), 5));
}

/* CASES 27: once, when the count falls below, and not again until re-armed. */
static void case_027_limit_event(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_srq *srq = rig_srq(rig, 16, 1, 0);
	struct rig_pair pair = srq_pair(rig, srq);
	int n;

	for (n = 0; n < 12; n++)
		KUNIT_ASSERT_EQ(test, 0, rig_post_srq(srq, n, NULL, 0));
	send_one(&pair, 0);
	send_one(&pair, 1);
	KUNIT_EXPECT_EQ(test, 0, set_limit(srq, 8));
	KUNIT_EXPECT_EQ(test, limit_of(srq), 8u);
	/* 10 are left; 8 are not fewer than 8. */
	send_one(&pair, 2);
	send_one(&pair, 3);
	KUNIT_EXPECT_EQ(test, limit_events(srq), 0);
	send_one(&pair, 4);
	wait_event_timeout(srq->wait, limit_events(srq) > 0, RIG_PATIENCE);
	KUNIT_EXPECT_EQ(test, limit_events(srq), 1);
	KUNIT_EXPECT_EQ(test, limit_of(srq), 0u);
	send_one(&pair, 5);
	send_one(&pair, 6);
	/* Armed with too few posted already: at the next one at the latest. */
	KUNIT_EXPECT_EQ(test, 0, set_limit(srq, 10));
	send_one(&pair, 7);
	wait_event_timeout(srq->wait, limit_events(srq) > 1, RIG_PATIENCE);
	KUNIT_EXPECT_EQ(test, limit_events(srq), 2);
	for (n = 0; n < 8; n++)
		rig_expect_wc(pair.b->rcq, n, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	KUNIT_ASSERT_EQ(test, 0, rig_srq_destroy(srq));
	KUNIT_EXPECT_EQ(test, limit_events(srq), 2);
}

static void case_027_no_limit_no_event(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_srq *srq = rig_srq(rig, 4, 1, 0);
	struct rig_pair pair = srq_pair(rig, srq);
	int n;

	for (n = 0; n < 4; n++)
		KUNIT_ASSERT_EQ(test, 0, rig_post_srq(srq, n, NULL, 0));
	for (n = 0; n < 4; n++)
		send_one(&pair, n);
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	KUNIT_ASSERT_EQ(test, 0, rig_srq_destroy(srq));
	KUNIT_EXPECT_EQ(test, limit_events(srq), 0);
}

/* CASES 35, by modify and by error; RESET and a queue pair without SRQ: none. */
static void case_035_last_wqe_reached(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_srq *srq = rig_srq(rig, 8, 1, 0);
	struct rig_pair pair = srq_pair(rig, srq);
	u64 *word = rig_buf(rig, 8);
	struct rig_wr wr;

	KUNIT_ASSERT_EQ(test, 0, rig_post_srq(srq, 1, NULL, 0));
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_ERR));
	rig_wait_event(pair.b, IB_EVENT_QP_LAST_WQE_REACHED, 1);
	/* Nobody's receive was flushed: it is shared. */
	rig_expect_empty(pair.b->rcq);
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_ERR));
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_RESET));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.b, IB_EVENT_QP_LAST_WQE_REACHED, 1));

	pair = srq_pair(rig, srq);
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 2, word, 8);
	rig_remote(pair.a, &wr, word, NULL);
	wr.rdma.rkey ^= 0x100;
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 2, IB_WC_REM_ACCESS_ERR);
	rig_wait_event(pair.b, IB_EVENT_QP_LAST_WQE_REACHED, 1);
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.b, IB_EVENT_QP_LAST_WQE_REACHED, 1));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
	KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.a, IB_EVENT_QP_LAST_WQE_REACHED, 0));

	pair = srq_pair(rig, srq);
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_RESET));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.b, IB_EVENT_QP_LAST_WQE_REACHED, 0));
}

/* Two queue pairs of different peers drink from one queue. */
static void shared_by_two(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_srq *srq = rig_srq(rig, 8, 1, 0);
	struct rig_pair one = srq_pair(rig, srq), two = srq_pair(rig, srq);
	u32 *in = rig_buf(rig, 8 * sizeof(*in)), *out = rig_buf(rig, 8 * sizeof(*out));
	struct rig_wr wr;
	struct ib_wc wc;
	int n;

	for (n = 0; n < 8; n++) {
		KUNIT_ASSERT_EQ(test, 0, rig_post_srq(srq, n, &in[n], 4));
		out[n] = 100 + n;
	}
	for (n = 0; n < 8; n++) {
		struct rig_pair *pair = n % 2 ? &two : &one;

		rig_wr(pair->a, &wr, IB_WR_SEND, n, &out[n], 4);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair->a, &wr));
		rig_expect_wc(pair->a->scq, n, IB_WC_SUCCESS);
		rig_wc(pair->b->rcq, &wc);
		KUNIT_EXPECT_EQ(test, wc.wr_id, (u64)n);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, pair->b->qp);
		KUNIT_EXPECT_EQ(test, wc.src_qp, pair->a->num);
		KUNIT_EXPECT_EQ(test, in[n], out[n]);
	}
}

/* A queue pair with an SRQ has no receive queue of its own. */
static void post_recv_is_refused(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = srq_pair(rig, rig_srq(rig, 4, 1, 0));

	KUNIT_EXPECT_EQ(test, -EINVAL, rig_post_recv(pair.b, 1, NULL, 0));
}

/* CASES 25 and resize in both directions with receives in it. */
static void case_025_resize(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_srq *srq = rig_srq(rig, 8, 1, 0);
	struct rig_pair pair = srq_pair(rig, srq);
	struct ib_srq_attr attr = { .max_wr = 4 };
	int n, ret;

	for (n = 0; n < 6; n++)
		KUNIT_ASSERT_EQ(test, 0, rig_post_srq(srq, n, NULL, 0));
	ret = ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR);
	if (ret == -EOPNOTSUPP || ret == -ENOSYS)
		kunit_skip(test, "this device does not resize kernel SRQs");
	KUNIT_EXPECT_EQ(test, ret, -EINVAL);
	attr.max_wr = rig->attr.max_srq_wr + 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR));
	attr.max_wr = 6;
	KUNIT_EXPECT_EQ(test, 0, ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR));
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_post_srq(srq, 9, NULL, 0));
	attr.max_wr = 20;
	KUNIT_EXPECT_EQ(test, 0, ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR));
	for (n = 6; n < 20; n++)
		KUNIT_ASSERT_EQ(test, 0, rig_post_srq(srq, n, NULL, 0));
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_post_srq(srq, 9, NULL, 0));
	for (n = 0; n < 20; n++) {
		send_one(&pair, n);
		rig_expect_wc(pair.b->rcq, n, IB_WC_SUCCESS);
	}
	/* A limit beyond the new size. */
	attr.max_wr = 4;
	attr.srq_limit = 5;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			ib_modify_srq(srq->srq, &attr, IB_SRQ_MAX_WR | IB_SRQ_LIMIT));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(case_032_capacity),
	KUNIT_CASE(case_034_creation_limits),
	KUNIT_CASE(case_027_limit_event),
	KUNIT_CASE(case_027_no_limit_no_event),
	KUNIT_CASE(case_035_last_wqe_reached),
	KUNIT_CASE(shared_by_two),
	KUNIT_CASE(post_recv_is_refused),
	KUNIT_CASE(case_025_resize),
	{}
};

RIG_SUITE(rvt_srq, cases);
