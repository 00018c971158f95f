// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Asynchronous events that are not about errors, and the drained send queue.
 */
#include "harness.h"
#include "suites.h"

static void write_empty(struct rig_qp *qp, u64 id)
{
	struct rig_wr wr;

	rig_wr(qp, &wr, IB_WR_RDMA_WRITE, id, NULL, 0);
	KUNIT_ASSERT_EQ(qp->rig->test, 0, rig_post(qp, &wr));
}

static void send_empty(struct rig_pair *pair, u64 id)
{
	struct rig_wr wr;

	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_post_recv(pair->b, id, NULL, 0));
	rig_wr(pair->a, &wr, IB_WR_SEND, id, NULL, 0);
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_post(pair->a, &wr));
	rig_expect_wc(pair->a->scq, id, IB_WC_SUCCESS);
	rig_expect_wc(pair->b->rcq, id, IB_WC_SUCCESS);
}

/* CASES 68: once, at the first message in RTR; again only after a new RTR. */
static void case_068_comm_est(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC };
	struct rig *rig = rig_of(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_pair pair = { .a = rig_qp(rig, types[i], NULL),
					 .b = rig_qp(rig, types[i], NULL) };

		rig_bring(pair.a, IB_QPS_RTS, pair.b);
		rig_bring(pair.b, IB_QPS_RTR, pair.a);
		KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.b, IB_EVENT_COMM_EST, 0));
		send_empty(&pair, 1);
		rig_wait_event(pair.b, IB_EVENT_COMM_EST, 1);
		send_empty(&pair, 2);
		rig_step(pair.b, IB_QPS_RTS, pair.a);
		send_empty(&pair, 3);
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_RESET));
		KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.b, IB_EVENT_COMM_EST, 1));
		rig_bring(pair.a, IB_QPS_RTS, pair.b);
		rig_bring(pair.b, IB_QPS_RTR, pair.a);
		send_empty(&pair, 4);
		rig_wait_event(pair.b, IB_EVENT_COMM_EST, 2);
		KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
		KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
		KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.b, IB_EVENT_COMM_EST, 2));
		KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.a, IB_EVENT_COMM_EST, 0));
	}
}

/* In RTS nobody is told: it was the consumer who said that it is established. */
static void no_comm_est_in_rts(struct kunit *test)
{
	struct rig_pair pair = rig_pair(rig_of(test), IB_QPT_RC, NULL);

	send_empty(&pair, 1);
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.b, IB_EVENT_COMM_EST, 0));
}

static int to_sqd(struct rig_qp *qp, bool notify)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD, .en_sqd_async_notify = notify };

	return ib_modify_qp(qp->qp, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY);
}

static void sq_drained_when_asked_for(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };
	struct rig *rig = rig_of(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_pair pair = rig_pair(rig, types[i], NULL);

		KUNIT_ASSERT_EQ(test, 0, to_sqd(pair.a, true));
		rig_wait_event(pair.a, IB_EVENT_SQ_DRAINED, 1);
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
		/* Not asked for: not told. */
		KUNIT_ASSERT_EQ(test, 0, to_sqd(pair.a, false));
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
		KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
		KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.a, IB_EVENT_SQ_DRAINED, 1));
	}
}

/* With a request in progress the queue is drained when that has ended. */
static void sq_drained_waits_for_the_request(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct ib_qp_attr attr;
	struct rig_wr wr;

	/* It waits for a receive; the timer is long. */
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_RESET));
	rig_bring(pair.b, IB_QPS_INIT, pair.a);
	rig_step(pair.b, IB_QPS_RTR, pair.a);
	rig_wr(pair.a, &wr, IB_WR_SEND, 1, NULL, 0);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	/* COMM_EST tells that it has been tried. */
	rig_wait_event(pair.b, IB_EVENT_COMM_EST, 1);
	write_empty(pair.a, 2);
	KUNIT_ASSERT_EQ(test, 0, to_sqd(pair.a, true));
	rig_query(pair.a, &attr, NULL);
	KUNIT_EXPECT_EQ(test, attr.sq_draining, (u8)1);
	KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.a, IB_EVENT_SQ_DRAINED, 0));
	KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 3, NULL, 0));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	rig_wait_event(pair.a, IB_EVENT_SQ_DRAINED, 1);
	rig_query(pair.a, &attr, NULL);
	KUNIT_EXPECT_EQ(test, attr.sq_draining, (u8)0);
	/* The one behind it was not begun. */
	rig_expect_empty(pair.a->scq);
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
	rig_expect_wc(pair.a->scq, 2, IB_WC_SUCCESS);
}

/* SQD holds back, RTS goes on; receives are served meanwhile. */
static void sqd_holds_and_rts_restarts(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC };
	struct rig *rig = rig_of(test);
	struct rig_wr wr;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_pair pair = rig_pair(rig, types[i], NULL);

		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
		for (n = 0; n < 5; n++)
			write_empty(pair.a, n);
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.a, 50, NULL, 0));
		rig_wr(pair.b, &wr, IB_WR_SEND, 51, NULL, 0);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.b, &wr));
		rig_expect_wc(pair.b->scq, 51, IB_WC_SUCCESS);
		rig_expect_wc(pair.a->rcq, 50, IB_WC_SUCCESS);
		rig_expect_empty(pair.a->scq);
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
		for (n = 0; n < 5; n++)
			rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(case_068_comm_est),
	KUNIT_CASE(no_comm_est_in_rts),
	KUNIT_CASE(sq_drained_when_asked_for),
	KUNIT_CASE(sq_drained_waits_for_the_request),
	KUNIT_CASE(sqd_holds_and_rts_restarts),
	{}
};

RIG_SUITE(rvt_event, cases);
