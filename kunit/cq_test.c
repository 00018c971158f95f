// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues: overrun, resize, arming.
 */
#include "harness.h"
#include "suites.h"

/* A pair whose sender completes into @scq. */
static struct rig_pair pair_on(struct rig *rig, struct rig_cq *scq, struct rig_cq *rcq)
{
	struct rig_qp_opt opt = { .scq = scq, .send_wr = 64, .recv_wr = 64 };
	struct rig_pair pair;

	pair.a = rig_qp(rig, IB_QPT_RC, &opt);
	opt.scq = NULL;
	opt.rcq = rcq;
	pair.b = rig_qp(rig, IB_QPT_RC, &opt);
	rig_bring(pair.a, IB_QPS_RTS, pair.b);
	rig_bring(pair.b, IB_QPS_RTS, pair.a);
	return pair;
}

static int write_empty(struct rig_qp *qp, u64 id)
{
	struct rig_wr wr;

	rig_wr(qp, &wr, IB_WR_RDMA_WRITE, id, NULL, 0);
	return rig_post(qp, &wr);
}

static int send(struct rig_qp *qp, u64 id, int flags)
{
	struct rig_wr wr;

	rig_wr(qp, &wr, IB_WR_SEND, id, NULL, 0);
	wr.wr.send_flags = flags;
	return rig_post(qp, &wr);
}

/*
 * Waits until all that was posted has completed, without a completion in the
 * queue under test: requests complete in order, and the receiver of the last
 * one tells.
 */
static void settle(struct rig_pair *pair)
{
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, rig_post_recv(pair->b, 0x5e77, NULL, 0));
	KUNIT_ASSERT_EQ(pair->a->rig->test, 0, send(pair->a, 0x5e77, 0));
	rig_expect_wc(pair->b->rcq, 0x5e77, IB_WC_SUCCESS);
}

/* CASES 1: exactly cqe fit; one more is an error, once, for good. */
static void case_001_overrun_by_sends(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct rig_pair pair = pair_on(rig, cq, NULL), other = pair_on(rig, cq, NULL);
	int n;

	KUNIT_EXPECT_EQ(test, cq->cq->cqe, 4);
	for (n = 0; n < 4; n++)
		KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
	KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, 4));
	wait_event_timeout(cq->wait, atomic_read(&cq->errors), RIG_PATIENCE);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->errors), 1);
	rig_wait_state(pair.a, IB_QPS_ERR);
	/* The four are whole. */
	for (n = 0; n < 4; n++)
		rig_expect_wc(cq, n, IB_WC_SUCCESS);
	/* Emptied, it is still unusable: the next to complete falls too. */
	KUNIT_ASSERT_EQ(test, 0, write_empty(other.a, 5));
	rig_wait_state(other.a, IB_QPS_ERR);
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(other.a));
	KUNIT_ASSERT_EQ(test, 0, rig_cq_destroy(cq));
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->errors), 1);
}

static void case_001_overrun_by_receives(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 2);
	struct rig_pair pair = pair_on(rig, NULL, cq);
	int n;

	for (n = 0; n < 4; n++)
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, n, NULL, 0));
	for (n = 0; n < 3; n++)
		KUNIT_ASSERT_EQ(test, 0, send(pair.a, n, IB_SEND_SIGNALED));
	wait_event_timeout(cq->wait, atomic_read(&cq->errors), RIG_PATIENCE);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->errors), 1);
	rig_wait_state(pair.b, IB_QPS_ERR);
	rig_expect_wc(cq, 0, IB_WC_SUCCESS);
	rig_expect_wc(cq, 1, IB_WC_SUCCESS);
}

/* CASES 2: a queue of one entry under every way to complete. */
static void case_002_one_entry(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	int way;

	for (way = 0; way < 4; way++) {
		struct rig_cq *scq = rig_cq(rig, 1), *rcq = rig_cq(rig, 1);
		struct rig_pair pair = pair_on(rig, scq, rcq);
		int n;

		for (n = 0; n < 3; n++) {
			KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, n, NULL, 0));
			KUNIT_ASSERT_EQ(test, 0, send(pair.a, n, IB_SEND_SIGNALED));
		}
		switch (way) {
		case 0:
			break;
		case 1:
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_ERR));
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_ERR));
			break;
		case 2:
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_RESET));
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RESET));
			break;
		case 3:
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_ERR));
			rig_wait_state(pair.a, IB_QPS_ERR);
			break;
		}
		KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
		KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	}
}

/* The ring at every fill level and start position. */
static void every_fill_level(struct kunit *test)
{
	enum { SIZE = 3 };
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, SIZE);
	struct rig_pair pair = pair_on(rig, cq, NULL);
	int start, k, n;

	for (start = 0; start <= SIZE; start++) {
		for (k = 0; k <= SIZE; k++) {
			for (n = 0; n < k; n++)
				KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
			for (n = 0; n < k; n++)
				rig_expect_wc(cq, n, IB_WC_SUCCESS);
			rig_expect_empty(cq);
		}
		KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, 9));
		rig_expect_wc(cq, 9, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->errors), 0);
}

/* CASES 3, 4, 5. */
static void case_003_resize(struct kunit *test)
{
	static const int fill[] = { 0, 1, 5, 7, 8 };
	struct rig *rig = rig_of(test);
	int i, n;

	for (i = 0; i < ARRAY_SIZE(fill); i++) {
		struct rig_cq *cq = rig_cq(rig, 8);
		struct rig_pair pair = pair_on(rig, cq, NULL);

		/* Not at the start of the ring. */
		for (n = 0; n < 5; n++) {
			KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
			rig_expect_wc(cq, n, IB_WC_SUCCESS);
		}
		for (n = 0; n < fill[i]; n++)
			KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
		settle(&pair);
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
		if (fill[i] > 1)
			KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(cq->cq, fill[i] - 1));
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(cq->cq, 0));
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(cq->cq, rig->attr.max_cqe + 1));
		KUNIT_EXPECT_EQ(test, cq->cq->cqe, 8);
		KUNIT_EXPECT_EQ(test, 0, ib_resize_cq(cq->cq, max(fill[i], 1)));
		KUNIT_EXPECT_EQ(test, 0, ib_resize_cq(cq->cq, 32));
		KUNIT_EXPECT_EQ(test, cq->cq->cqe, 32);
		for (n = 0; n < fill[i]; n++)
			rig_expect_wc(cq, n, IB_WC_SUCCESS);
		rig_expect_empty(cq);
		/* And it works on. */
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
		for (n = 0; n < 32; n++)
			KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
		for (n = 0; n < 32; n++)
			rig_expect_wc(cq, n, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, atomic_read(&cq->errors), 0);
	}
}

/* CASES 3: with a producer at work. */
static void case_003_resize_under_load(struct kunit *test)
{
	enum { COUNT = 400, WINDOW = 16 };
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, WINDOW);
	struct rig_pair pair = pair_on(rig, cq, NULL);
	int posted = 0, seen = 0;

	while (seen < COUNT) {
		while (posted < COUNT && posted - seen < WINDOW)
			KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, posted++));
		KUNIT_ASSERT_EQ(test, 0, ib_resize_cq(cq->cq, WINDOW + seen % 7));
		rig_expect_wc(cq, seen++, IB_WC_SUCCESS);
		rig_expect_wc(cq, seen++, IB_WC_SUCCESS);
	}
	rig_expect_empty(cq);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->errors), 0);
}

static bool upcalls_are(struct rig_cq *cq, int count)
{
	return wait_event_timeout(cq->wait, atomic_read(&cq->upcalls) >= count, RIG_PATIENCE) &&
	       atomic_read(&cq->upcalls) == count;
}

/* One request, one upcall; none without a request. */
static void one_upcall_per_request(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 64);
	struct rig_pair pair = pair_on(rig, cq, NULL);
	struct ib_wc wc;
	int n;

	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP));
	for (n = 0; n < 4; n++)
		KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
	KUNIT_EXPECT_TRUE(test, upcalls_are(cq, 1));
	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP));
	KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
	KUNIT_EXPECT_TRUE(test, upcalls_are(cq, 2));
	/* Destroying waits for an upcall in flight, so after it the count is final. */
	while (ib_poll_cq(cq->cq, 1, &wc) > 0)
		;
	KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.a));
	KUNIT_ASSERT_EQ(test, 0, rig_cq_destroy(cq));
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->upcalls), 2);
}

/* CASES 8. */
static void case_008_missed_events(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 8);
	struct rig_pair pair = pair_on(rig, cq, NULL);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP |
								  IB_CQ_REPORT_MISSED_EVENTS));
	KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, 1));
	KUNIT_EXPECT_TRUE(test, upcalls_are(cq, 1));
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP |
							       IB_CQ_REPORT_MISSED_EVENTS), 0);
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(cq->cq, IB_CQ_SOLICITED |
							       IB_CQ_REPORT_MISSED_EVENTS), 0);
	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP));
	KUNIT_EXPECT_EQ(test, ib_poll_cq(cq->cq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP |
								  IB_CQ_REPORT_MISSED_EVENTS));
}

/* Solicited arming: only for a solicited receive or an error. */
static void solicited_only(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *rcq = rig_cq(rig, 64), *scq = rig_cq(rig, 64);
	struct rig_pair pair = pair_on(rig, scq, rcq);
	struct ib_wc wc;
	int n;

	for (n = 0; n < 8; n++)
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, n, NULL, 0));
	ib_req_notify_cq(rcq->cq, IB_CQ_SOLICITED);
	/* Both queues have been served when the sender's completion is there. */
	KUNIT_ASSERT_EQ(test, 0, send(pair.a, 0, IB_SEND_SIGNALED));
	rig_expect_wc(scq, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(rcq->cq, 1, &wc), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&rcq->upcalls), 0);
	KUNIT_ASSERT_EQ(test, 0, send(pair.a, 1, IB_SEND_SIGNALED | IB_SEND_SOLICITED));
	KUNIT_EXPECT_TRUE(test, upcalls_are(rcq, 1));
	rig_expect_wc(scq, 1, IB_WC_SUCCESS);
	/* NEXT is not weakened by SOLICITED. */
	ib_req_notify_cq(rcq->cq, IB_CQ_NEXT_COMP);
	ib_req_notify_cq(rcq->cq, IB_CQ_SOLICITED);
	KUNIT_ASSERT_EQ(test, 0, send(pair.a, 2, IB_SEND_SIGNALED));
	KUNIT_EXPECT_TRUE(test, upcalls_are(rcq, 2));
	rig_expect_wc(scq, 2, IB_WC_SUCCESS);
	/* SOLICITED is strengthened by NEXT. */
	ib_req_notify_cq(rcq->cq, IB_CQ_SOLICITED);
	ib_req_notify_cq(rcq->cq, IB_CQ_NEXT_COMP);
	KUNIT_ASSERT_EQ(test, 0, send(pair.a, 3, IB_SEND_SIGNALED));
	KUNIT_EXPECT_TRUE(test, upcalls_are(rcq, 3));
	rig_expect_wc(scq, 3, IB_WC_SUCCESS);
	/* A flushed receive is an error, so it is told. */
	ib_req_notify_cq(rcq->cq, IB_CQ_SOLICITED);
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_ERR));
	KUNIT_EXPECT_TRUE(test, upcalls_are(rcq, 4));
}

/* CASES 9: the handler may poll and arm. */
static void poll_in_handler(struct rig_cq *cq)
{
	struct ib_wc wc;
	int *seen = cq->priv;

	do {
		while (ib_poll_cq(cq->cq, 1, &wc) == 1)
			WRITE_ONCE(*seen, *seen + 1);
	} while (ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static void case_009_handler_polls_and_arms(struct kunit *test)
{
	enum { COUNT = 200 };
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 64);
	struct rig_pair pair = pair_on(rig, cq, NULL);
	int *seen = rig_buf(rig, sizeof(*seen)), n;

	cq->priv = seen;
	cq->handler = poll_in_handler;
	ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	for (n = 0; n < COUNT; n++) {
		KUNIT_ASSERT_EQ(test, 0, write_empty(pair.a, n));
		if (n % 32 == 31)
			wait_event_timeout(cq->wait, READ_ONCE(*seen) == n + 1, RIG_PATIENCE);
	}
	wait_event_timeout(cq->wait, READ_ONCE(*seen) == COUNT, RIG_PATIENCE);
	KUNIT_EXPECT_EQ(test, READ_ONCE(*seen), (int)COUNT);
	KUNIT_EXPECT_EQ(test, atomic_read(&cq->errors), 0);
}

/* ib_core's own queues, in each of its poll contexts. */
struct counted {
	struct ib_cqe cqe;
	struct completion done;
	int status;
};

static void counted_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct counted *c = container_of(wc->wr_cqe, struct counted, cqe);

	c->status = wc->status;
	complete(&c->done);
}

static void poll_contexts(struct kunit *test)
{
	static const enum ib_poll_context contexts[] = { IB_POLL_SOFTIRQ, IB_POLL_WORKQUEUE,
							 IB_POLL_UNBOUND_WORKQUEUE };
	struct rig *rig = rig_of(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(contexts); i++) {
		struct ib_cq *cq = ib_alloc_cq(rig->dev, NULL, 16, 0, contexts[i]);
		struct counted c = { .cqe.done = counted_done, .status = -1 };
		struct rig_qp qp = { .rig = rig, .type = IB_QPT_RC };
		struct ib_qp_init_attr init = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
				 .max_recv_sge = 1 },
			.qp_type = IB_QPT_RC,
		};
		struct rig_wr wr;

		init_completion(&c.done);
		KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
		qp.qp = ib_create_qp(rig->pd, &init);
		KUNIT_ASSERT_FALSE(test, IS_ERR(qp.qp));
		qp.num = qp.qp->qp_num;
		rig_bring(&qp, IB_QPS_RTS, &qp);
		rig_wr(&qp, &wr, IB_WR_RDMA_WRITE, 0, NULL, 0);
		wr.wr.wr_cqe = &c.cqe;
		KUNIT_EXPECT_EQ(test, 0, rig_post(&qp, &wr));
		KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&c.done, RIG_PATIENCE) > 0);
		KUNIT_EXPECT_EQ(test, c.status, (int)IB_WC_SUCCESS);
		ib_destroy_qp(qp.qp);
		ib_free_cq(cq);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(case_001_overrun_by_sends),
	KUNIT_CASE(case_001_overrun_by_receives),
	KUNIT_CASE(case_002_one_entry),
	KUNIT_CASE(every_fill_level),
	KUNIT_CASE(case_003_resize),
	KUNIT_CASE(case_003_resize_under_load),
	KUNIT_CASE(one_upcall_per_request),
	KUNIT_CASE(case_008_missed_events),
	KUNIT_CASE(solicited_only),
	KUNIT_CASE(case_009_handler_polls_and_arms),
	KUNIT_CASE(poll_contexts),
	{}
};

RIG_SUITE(rvt_cq, cases);
