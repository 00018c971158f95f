// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Looking at the device from inside: iteration over queue pairs, ring
 * positions, counters. With the counters attempts can be counted exactly.
 */
#include <linux/kthread.h>

#include "../drivers/rvt/verbs/rvt.h"
#include "harness.h"
#include "suites.h"

static struct rvt_core_dev *core_of(struct rig *rig)
{
	return to_rvt_dev(rig->dev)->core;
}

/* --- iteration ------------------------------------------------------------------ */

enum { MANY = 64 };

struct visit {
	u32 num[MANY];
	int seen[MANY];
	int others;
	bool slow;
};

static void visit_one(struct rvt_core_qp *qp, void *arg)
{
	struct visit *v = arg;
	u32 num = rvt_core_qp_num(qp);
	int i;

	for (i = 0; i < MANY; i++) {
		if (v->num[i] == num) {
			v->seen[i]++;
			break;
		}
	}
	if (i == MANY)
		v->others++;
	/* Nothing is held, so this may sleep. */
	if (v->slow && i % 16 == 0)
		schedule_timeout_uninterruptible(1);
}

/* Each that is in the table once, and none that is in RESET. */
static void each_queue_pair_once(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct rig_qp_opt opt = { .scq = cq, .rcq = cq };
	struct visit *v = kunit_kzalloc(test, sizeof(*v), GFP_KERNEL);
	struct rig_qp *qp[MANY];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, v);
	for (i = 0; i < MANY; i++) {
		qp[i] = rig_qp(rig, i % 2 ? IB_QPT_RC : IB_QPT_UD, &opt);
		v->num[i] = qp[i]->num;
		if (i % 4)
			rig_bring(qp[i], IB_QPS_INIT, NULL);
	}
	v->slow = true;
	rvt_core_qp_for_each(core_of(rig), visit_one, v);
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ_MSG(test, v->seen[i], i % 4 ? 1 : 0, "number %d", i);
	/* Back in RESET it is not found any more. */
	memset(v->seen, 0, sizeof(v->seen));
	KUNIT_EXPECT_EQ(test, 0, rig_set_state(qp[1], IB_QPS_RESET));
	KUNIT_EXPECT_EQ(test, 0, rig_set_state(qp[2], IB_QPS_ERR));
	rvt_core_qp_for_each(core_of(rig), visit_one, v);
	KUNIT_EXPECT_EQ(test, v->seen[1], 0);
	KUNIT_EXPECT_EQ(test, v->seen[2], 1);
	KUNIT_EXPECT_EQ(test, v->seen[3], 1);
}

static int iterate(void *arg)
{
	struct rig *rig = arg;
	struct visit *v = kzalloc(sizeof(*v), GFP_KERNEL);

	while (!kthread_should_stop()) {
		if (v)
			rvt_core_qp_for_each(core_of(rig), visit_one, v);
		cond_resched();
	}
	kfree(v);
	return 0;
}

/* CASES 64, 152: queue pairs come and go under the iterator. */
static void case_152_iteration_against_destroy(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct rig_qp_opt opt = { .scq = cq, .rcq = cq };
	struct task_struct *task = kthread_run(iterate, rig, "rvt_kunit/iter");
	struct rig_qp *qp;
	int i, bad = 0;

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	/* No assertion while the thread runs. */
	for (i = 0; i < 300; i++) {
		struct ib_qp_attr attr;
		int mask;

		qp = rig_try_qp(rig, IB_QPT_RC, &opt);
		if (IS_ERR(qp)) {
			bad++;
			continue;
		}
		mask = rig_attr(qp, IB_QPS_INIT, NULL, &attr);
		bad += !!ib_modify_qp(qp->qp, &attr, mask);
		if (i % 3 == 0)
			bad += !!rig_set_state(qp, IB_QPS_RESET);
		bad += !!rig_qp_destroy(qp);
		list_del(&qp->node);
		kfree(qp);
		cond_resched();
	}
	kthread_stop(task);
	KUNIT_EXPECT_EQ(test, bad, 0);
}

/* --- ring positions ---------------------------------------------------------------- */

static void ring_positions(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp_opt opt = { .send_wr = 6, .recv_wr = 5 };
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, &opt);
	struct rvt_qp_stat stat;
	struct rig_wr wr;
	int round, n;

	for (round = 0; round < 9; round++) {
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
		for (n = 0; n < 3; n++) {
			rig_wr(pair.a, &wr, IB_WR_SEND, n, NULL, 0);
			KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
			KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, n, NULL, 0));
		}
		rvt_core_qp_stat(to_rvt_qp(pair.a->qp)->core, &stat);
		KUNIT_EXPECT_EQ(test, stat.qpn, pair.a->num);
		KUNIT_EXPECT_EQ(test, stat.dest_qpn, pair.b->num);
		KUNIT_EXPECT_EQ(test, (int)stat.type, (int)RVT_QPT_RC);
		KUNIT_EXPECT_EQ(test, (int)stat.state, (int)RVT_QPS_SQD);
		KUNIT_EXPECT_FALSE(test, stat.user);
		KUNIT_EXPECT_EQ(test, stat.sq_size, 7u);
		KUNIT_EXPECT_EQ(test, (stat.sq_head + stat.sq_size - stat.sq_last) % stat.sq_size,
				3u);
		KUNIT_EXPECT_EQ(test, stat.sq_cur, stat.sq_last);
		rvt_core_qp_stat(to_rvt_qp(pair.b->qp)->core, &stat);
		KUNIT_EXPECT_EQ(test, stat.rq.size, 6u);
		KUNIT_EXPECT_EQ(test, (stat.rq.head + 6 - stat.rq.tail) % 6, 3u);
		KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
		for (n = 0; n < 3; n++) {
			rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
			rig_expect_wc(pair.b->rcq, n, IB_WC_SUCCESS);
		}
	}
}

/* --- counters ------------------------------------------------------------------------ */

struct reading {
	u64 value[RVT_COUNTERS];
};

static void start_counting(struct rig *rig, struct reading *r)
{
	rvt_core_counters_read(core_of(rig), r->value);
}

static u64 counted(struct rig *rig, struct reading *r, enum rvt_counter counter)
{
	u64 now[RVT_COUNTERS];

	rvt_core_counters_read(core_of(rig), now);
	return now[counter] - r->value[counter];
}

/* CASES 84: n retries are n + 1 attempts, exactly. */
static void case_084_attempts(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_qp_attr attr;
	struct reading r;
	struct rig_wr wr;
	int retry;

	for (retry = 0; retry <= 6; retry++) {
		struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);

		rig_step(pair.a, IB_QPS_SQD, pair.b);
		rig_attr(pair.a, IB_QPS_SQD, pair.b, &attr);
		attr.rnr_retry = retry;
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr,
						      IB_QP_STATE | IB_QP_RNR_RETRY));
		rig_step(pair.a, IB_QPS_RTS, pair.b);
		start_counting(rig, &r);
		rig_wr(pair.a, &wr, IB_WR_SEND, 1, NULL, 0);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 1, IB_WC_RNR_RETRY_EXC_ERR);
		KUNIT_EXPECT_EQ_MSG(test, counted(rig, &r, RVT_CNT_RNR_NAKS), (u64)retry + 1,
				    "rnr_retry %d", retry);
		KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_ERR_RETRY), 1ull);
	}
}

/* The same for a peer that does not answer: retry_cnt retries. */
static void retries_of_an_absent_peer(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_qp_attr attr;
	struct reading r;
	struct rig_wr wr;
	int retry;

	for (retry = 0; retry <= 7; retry++) {
		struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);

		rig_step(pair.a, IB_QPS_SQD, pair.b);
		rig_attr(pair.a, IB_QPS_SQD, pair.b, &attr);
		attr.retry_cnt = retry;
		attr.timeout = 1;
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr,
						      IB_QP_STATE | IB_QP_RETRY_CNT |
							      IB_QP_TIMEOUT));
		rig_step(pair.a, IB_QPS_RTS, pair.b);
		KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
		start_counting(rig, &r);
		rig_wr(pair.a, &wr, IB_WR_SEND, 1, NULL, 0);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, 1, IB_WC_RETRY_EXC_ERR);
		KUNIT_EXPECT_EQ_MSG(test, counted(rig, &r, RVT_CNT_RETRIES), (u64)retry,
				    "retry_cnt %d", retry);
		rig_query(pair.a, &attr, NULL);
		KUNIT_EXPECT_EQ(test, attr.retry_cnt, (u8)retry);
	}
}

static void counters_of_traffic(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	u8 *buf = rig_buf(rig, 8192);
	struct reading r;
	struct rig_wr wr;
	int n;

	start_counting(rig, &r);
	for (n = 0; n < 5; n++) {
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, n, buf + 4096, 4096));
		rig_wr(pair.a, &wr, IB_WR_SEND, n, buf, 3000);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, n, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_SENDS), 5ull);
	KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_RECVS), 5ull);
	KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_LOOP_BYTES), 15000ull);
	/* Path MTU 1024: three packets each. */
	KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_LOOP_PKTS), 15ull);
	KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_RNR_NAKS), 0ull);
	/* Flushed ones count as such, also after their queue pair has gone. */
	KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair.b, 9, buf, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_set_state(pair.b, IB_QPS_ERR));
	KUNIT_ASSERT_EQ(test, 0, rig_qp_destroy(pair.b));
	KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_FLUSHED), 1ull);
	KUNIT_EXPECT_EQ(test, counted(rig, &r, RVT_CNT_RECVS), 5ull);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(each_queue_pair_once),
	KUNIT_CASE(case_152_iteration_against_destroy),
	KUNIT_CASE(ring_positions),
	KUNIT_CASE(case_084_attempts),
	KUNIT_CASE(retries_of_an_absent_peer),
	KUNIT_CASE(counters_of_traffic),
	{}
};

RIG_SUITE(rvt_look, cases);
