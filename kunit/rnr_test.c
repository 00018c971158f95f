// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receiver not ready: how often it is tried again, and what ends the wait.
 *
 * Time is only ever a lower bound here: a machine may be slow, a timer may
 * not be early.
 */
#include <linux/ktime.h>

#include "harness.h"
#include "suites.h"

/* @retry for the sender, @timer for the receiver. */
static struct rig_pair rnr_pair(struct rig *rig, u8 retry, u8 timer)
{
	struct rig_pair pair = { .a = rig_qp(rig, IB_QPT_RC, NULL),
				 .b = rig_qp(rig, IB_QPT_RC, NULL) };
	struct ib_qp_attr attr;
	int mask;

	rig_bring(pair.a, IB_QPS_RTR, pair.b);
	mask = rig_attr(pair.a, IB_QPS_RTS, pair.b, &attr);
	attr.rnr_retry = retry;
	KUNIT_ASSERT_EQ(rig->test, 0, ib_modify_qp(pair.a->qp, &attr, mask));
	rig_bring(pair.b, IB_QPS_INIT, pair.a);
	mask = rig_attr(pair.b, IB_QPS_RTR, pair.a, &attr);
	attr.min_rnr_timer = timer;
	KUNIT_ASSERT_EQ(rig->test, 0, ib_modify_qp(pair.b->qp, &attr, mask));
	rig_step(pair.b, IB_QPS_RTS, pair.a);
	return pair;
}

static int send_empty(struct rig_qp *qp, u64 id)
{
	struct rig_wr wr;

	rig_wr(qp, &wr, IB_WR_SEND, id, NULL, 0);
	return rig_post(qp, &wr);
}

/* CASES 84, 85: n retries, each not before its time. */
static void case_084_count_and_least_time(struct kunit *test)
{
	static const struct {
		u8 code;
		u32 us;
	} timers[] = { { 1, 10 }, { 12, 640 }, { 18, 5120 } };
	struct rig *rig = rig_of(test);
	int i, retry;

	for (i = 0; i < ARRAY_SIZE(timers); i++) {
		for (retry = 0; retry <= 6; retry++) {
			struct rig_pair pair = rnr_pair(rig, retry, timers[i].code);
			struct ib_qp_attr attr;
			ktime_t start = ktime_get();
			s64 us;

			KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
			rig_expect_wc(pair.a->scq, 1, IB_WC_RNR_RETRY_EXC_ERR);
			us = ktime_us_delta(ktime_get(), start);
			KUNIT_EXPECT_GE_MSG(test, us, (s64)retry * timers[i].us,
					    "%d retries, timer code %d", retry, timers[i].code);
			/* Asked for, not counted down (CASES 63). */
			rig_query(pair.a, &attr, NULL);
			KUNIT_EXPECT_EQ(test, attr.rnr_retry, (u8)retry);
			KUNIT_EXPECT_EQ(test, (int)attr.qp_state, (int)IB_QPS_ERR);
			KUNIT_EXPECT_EQ(test, (int)rig_state(pair.b), (int)IB_QPS_RTS);
			rig_expect_empty(pair.b->rcq);
			KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
			KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
		}
	}
}

/* 7 means for ever: long after seven retries a receive still helps. */
static void case_084_seven_is_endless(struct kunit *test)
{
	struct rig_pair pair = rnr_pair(rig_of(test), 7, 1);
	unsigned long end = jiffies + 3;

	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	/* Time for hundreds of tries of 10 us. */
	while (time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	rig_expect_empty(pair.a->scq);
	KUNIT_EXPECT_EQ(test, (int)rig_state(pair.a), (int)IB_QPS_RTS);
	KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 2, NULL, 0));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	rig_expect_wc(pair.b->rcq, 2, IB_WC_SUCCESS);
}

/* Code 0 is the longest time, 655 ms, and not none. */
static void case_085_code_zero(struct kunit *test)
{
	struct rig_pair pair = rnr_pair(rig_of(test), 1, 0);
	ktime_t start = ktime_get();

	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	rig_expect_wc(pair.a->scq, 1, IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_GE(test, ktime_us_delta(ktime_get(), start), (s64)655360);
}

/* CASES 83: the acknowledgement timeout does not run during the wait. */
static void case_083_timeout_does_not_count(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rnr_pair(rig, 7, 16);
	struct ib_qp_attr attr;
	unsigned long end = jiffies + 4;

	/* The shortest timeout, one retry: it would be over at once. */
	rig_step(pair.a, IB_QPS_SQD, pair.b);
	rig_attr(pair.a, IB_QPS_SQD, pair.b, &attr);
	attr.timeout = 1;
	attr.retry_cnt = 1;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr,
					      IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT));
	rig_step(pair.a, IB_QPS_RTS, pair.b);
	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	while (time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 2, NULL, 0));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
}

/* The count begins anew with each message. */
static void counter_is_reloaded(struct kunit *test)
{
	struct rig_pair pair = rnr_pair(rig_of(test), 6, 16);
	int n;

	for (n = 0; n < 6; n++) {
		KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, n));
		rig_expect_empty(pair.a->scq);
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, n, NULL, 0));
		rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
		rig_expect_wc(pair.b->rcq, n, IB_WC_SUCCESS);
	}
}

/* What was posted behind the waiting request keeps its place. */
static void order_is_kept_while_waiting(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rnr_pair(rig, 7, 12);
	u64 *src = rig_buf(rig, 8), *dst = rig_buf(rig, 8);
	struct rig_wr wr;

	*src = 1;
	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 2, src, 8);
	rig_remote(pair.a, &wr, dst, NULL);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_empty(pair.a->scq);
	KUNIT_EXPECT_EQ(test, *dst, 0ull);
	KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 3, NULL, 0));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	rig_expect_wc(pair.a->scq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *dst, 1ull);
}

/* CASES 88: half a second is pending; ERR, RESET and destroy do not wait. */
static void case_088_end_while_waiting(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rnr_pair(rig, 7, 31);
	struct rig_wr wr;

	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 2));
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_ERR));
	rig_expect_wc(pair.a->scq, 1, IB_WC_WR_FLUSH_ERR);
	rig_expect_wc(pair.a->scq, 2, IB_WC_WR_FLUSH_ERR);

	pair = rnr_pair(rig, 7, 31);
	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RESET));
	rig_expect_empty(pair.a->scq);
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_RESET));
	rig_bring(pair.a, IB_QPS_RTS, pair.b);
	rig_bring(pair.b, IB_QPS_RTS, pair.a);
	rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, 3, NULL, 0);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 3, IB_WC_SUCCESS);

	pair = rnr_pair(rig, 7, 31);
	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
	rig_expect_empty(pair.a->scq);

	/* The receiver goes away under the wait. */
	pair = rnr_pair(rig, 7, 1);
	KUNIT_ASSERT_EQ(test, 0, send_empty(pair.a, 1));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	rig_expect_wc(pair.a->scq, 1, IB_WC_RETRY_EXC_ERR);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(case_084_count_and_least_time),
	KUNIT_CASE(case_084_seven_is_endless),
	KUNIT_CASE(case_085_code_zero),
	KUNIT_CASE(case_083_timeout_does_not_count),
	KUNIT_CASE(counter_is_reloaded),
	KUNIT_CASE(order_is_kept_while_waiting),
	KUNIT_CASE(case_088_end_while_waiting),
	{}
};

RIG_SUITE(rvt_rnr, cases);
