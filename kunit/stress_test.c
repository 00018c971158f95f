// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Many at once: work on every CPU that is cut short by changes of state, by
 * destroying and by deregistering.
 *
 * The tests check that each request completes at most once and in order, and
 * otherwise leave the judgement to KASAN and lockdep.
 */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/random.h>

#include "harness.h"
#include "suites.h"

enum {
	RUN_MS = 700,
	DEPTH = 16,
};

/* A thread that works until it is told to stop, and what it has to report. */
struct worker {
	struct list_head node;
	struct task_struct *task;
	struct rig *rig;
	struct rig_qp *qp;
	int (*step)(struct worker *w); /* < 0 ends it */
	u64 done;
	int error;
	const char *where;
	void *priv;
};

static int worker_main(void *arg)
{
	struct worker *w = arg;

	while (!kthread_should_stop()) {
		if (!w->error)
			w->error = w->step(w);
		if (w->error)
			schedule_timeout_interruptible(1);
		else
			w->done++;
		cond_resched();
	}
	return 0;
}

/* Those at work: an assertion must not leave them behind. */
static LIST_HEAD(at_work);

static void worker_start(struct worker *w, int cpu)
{
	w->task = kthread_create(worker_main, w, "rvt_kunit/%d", cpu);
	KUNIT_ASSERT_FALSE(w->rig->test, IS_ERR(w->task));
	kthread_bind(w->task, cpu);
	list_add(&w->node, &at_work);
	wake_up_process(w->task);
}

static void worker_stop(struct worker *w)
{
	list_del(&w->node);
	kthread_stop(w->task);
}

static void stress_exit(struct kunit *test)
{
	struct worker *w, *next;

	list_for_each_entry_safe(w, next, &at_work, node)
		worker_stop(w);
	rig_exit(test);
}

static void run_for(unsigned int ms)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);

	while (time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
}

static int nth_cpu(int n)
{
	return cpumask_nth(n % num_online_cpus(), cpu_online_mask);
}

/* --- work that is cut short --------------------------------------------------------- */

/* Posts whatever is possible and takes what completes; checks the order. */
struct storm {
	u64 next_send, next_recv; /* wr_ids to be given */
	u64 seen_send, seen_recv; /* greatest that completed, plus one */
	u8 *buf;
	u32 rkey;
	u64 addr;
};

static int step_failed(struct worker *w, const char *where, int ret)
{
	w->where = where;
	return ret;
}

static int take(struct worker *w, struct rig_cq *cq, u64 *seen)
{
	struct ib_wc wc;

	while (ib_poll_cq(cq->cq, 1, &wc) == 1) {
		if (wc.wr_id < *seen)
			return step_failed(w, "a completion came twice or late", -EBADMSG);
		*seen = wc.wr_id + 1;
	}
	return 0;
}

static int storm_step(struct worker *w)
{
	static const enum ib_wr_opcode ops[] = { IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
						 IB_WR_ATOMIC_FETCH_AND_ADD, IB_WR_SEND_WITH_IMM,
						 IB_WR_RDMA_WRITE_WITH_IMM };
	struct storm *s = w->priv;
	u32 dice = get_random_u32();
	struct rig_wr wr;
	int ret;

	if (!rig_post_recv(w->qp, s->next_recv, s->buf, 256))
		s->next_recv++;
	rig_wr(w->qp, &wr, ops[dice % ARRAY_SIZE(ops)], s->next_send, s->buf + 256,
	       8 + (dice >> 8) % 8 * 16);
	if (wr.wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		wr.atomic.remote_addr = s->addr;
		wr.atomic.rkey = s->rkey;
		wr.sge.length = 8;
	} else if (wr.wr.opcode != IB_WR_SEND && wr.wr.opcode != IB_WR_SEND_WITH_IMM) {
		wr.rdma.remote_addr = s->addr;
		wr.rdma.rkey = s->rkey;
	}
	if (dice & 0x80000000)
		wr.wr.send_flags = 0;
	if (!rig_post(w->qp, &wr))
		s->next_send++;
	ret = take(w, w->qp->scq, &s->seen_send);
	return ret ?: take(w, w->qp->rcq, &s->seen_recv);
}

struct pool {
	int n; /* queue pairs; each the peer of its neighbour */
	struct rig_qp **qp;
	struct worker *w;
	struct storm *s;
};

static void pool_init(struct rig *rig, struct pool *p, int n, u32 rkey)
{
	struct kunit *test = rig->test;
	int i;

	p->n = n;
	p->qp = kunit_kzalloc(test, n * sizeof(*p->qp), GFP_KERNEL);
	p->w = kunit_kzalloc(test, n * sizeof(*p->w), GFP_KERNEL);
	p->s = kunit_kzalloc(test, n * sizeof(*p->s), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, p->qp && p->w && p->s);
	for (i = 0; i < n; i++) {
		struct rig_qp_opt opt = { .send_wr = DEPTH, .recv_wr = DEPTH,
					  .scq = rig_cq(rig, 4096), .rcq = rig_cq(rig, 4096) };

		p->qp[i] = rig_qp(rig, IB_QPT_RC, &opt);
		p->s[i].buf = rig_buf(rig, 1024);
		p->s[i].rkey = rkey;
		p->s[i].addr = (uintptr_t)rig_buf(rig, 1024);
		p->w[i] = (struct worker){ .rig = rig, .qp = p->qp[i], .step = storm_step,
					   .priv = &p->s[i] };
	}
	for (i = 0; i < n; i++)
		rig_bring(p->qp[i], IB_QPS_RTS, p->qp[i ^ 1]);
	for (i = 0; i < n; i++)
		worker_start(&p->w[i], nth_cpu(i));
}

/* Return: how many sends were posted. */
static u64 pool_stop(struct pool *p)
{
	struct kunit *test = p->w[0].rig->test;
	u64 sends = 0;
	int i;

	for (i = 0; i < p->n; i++) {
		worker_stop(&p->w[i]);
		KUNIT_EXPECT_EQ_MSG(test, p->w[i].error, 0, "%s", p->w[i].where);
		KUNIT_EXPECT_LE(test, p->s[i].seen_send, p->s[i].next_send);
		KUNIT_EXPECT_LE(test, p->s[i].seen_recv, p->s[i].next_recv);
		sends += p->s[i].next_send;
	}
	return sends;
}

/* CASES 73, 79, 88, 150: every change of state, under load, on both sides. */
static void states_change_under_load(struct kunit *test)
{
	static const enum ib_qp_state ends[] = { IB_QPS_ERR, IB_QPS_RESET, IB_QPS_SQD };
	struct rig *rig = rig_of(test);
	unsigned long end = jiffies + msecs_to_jiffies(RUN_MS);
	int changes = 0;
	struct pool p;
	u64 sends;

	pool_init(rig, &p, 4, rig->mr->rkey);
	while (time_before(jiffies, end)) {
		u32 dice = get_random_u32();
		int i = dice % p.n;
		enum ib_qp_state to = ends[(dice >> 8) % 3];
		enum ib_qp_state now = rig_state(p.qp[i]);

		changes++;
		if (now == IB_QPS_RTS && to != IB_QPS_RESET) {
			/* The device may be faster on its way to ERR. */
			rig_set_state(p.qp[i], to);
		} else if (now == IB_QPS_SQD && to != IB_QPS_RESET) {
			rig_set_state(p.qp[i], IB_QPS_RTS);
		} else {
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(p.qp[i], IB_QPS_RESET));
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(p.qp[i ^ 1], IB_QPS_RESET));
			/* What RESET threw away does not count as missing. */
			rig_bring(p.qp[i], IB_QPS_RTS, p.qp[i ^ 1]);
			rig_bring(p.qp[i ^ 1], IB_QPS_RTR, p.qp[i]);
			if (rig_state(p.qp[i ^ 1]) == IB_QPS_RTR) {
				struct ib_qp_attr attr;
				int mask = rig_attr(p.qp[i ^ 1], IB_QPS_RTS, p.qp[i], &attr);

				ib_modify_qp(p.qp[i ^ 1]->qp, &attr, mask);
			}
		}
		schedule_timeout_uninterruptible(changes % 4 == 0);
	}
	sends = pool_stop(&p);
	kunit_info(test, "%llu sends, %d changes of state\n", sends, changes);
}

/* CASES 121: a region goes away under those who write to it. */
static void deregister_under_load(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	u64 sends = 0;
	int round, i;

	for (round = 0; round < 20; round++) {
		struct ib_mr *mr = rig_dma_mr(rig, rig->pd, RIG_ALL_ACCESS);
		u64 before[4];
		struct pool p;

		KUNIT_ASSERT_NOT_NULL(test, mr);
		pool_init(rig, &p, 4, mr->rkey);
		run_for(10);
		KUNIT_EXPECT_EQ(test, 0, rig_mr_destroy(rig, mr));
		/* From here on nothing changes through it. */
		for (i = 0; i < 4; i++)
			before[i] = READ_ONCE(*(u64 *)(uintptr_t)p.s[i].addr);
		run_for(4);
		for (i = 0; i < 4; i++)
			KUNIT_EXPECT_EQ(test, before[i],
					READ_ONCE(*(u64 *)(uintptr_t)p.s[i].addr));
		sends += pool_stop(&p);
		for (i = 0; i < 4; i++)
			KUNIT_EXPECT_EQ(test, 0, rig_qp_destroy(p.qp[i]));
	}
	kunit_info(test, "%llu sends\n", sends);
}

/* A queue pair is destroyed while its peer floods it, and the other way. */
static void destroy_under_load(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	int round;

	for (round = 0; round < 20; round++) {
		struct pool p;

		pool_init(rig, &p, 2, rig->mr->rkey);
		run_for(8);
		/* Nobody posts to it any more; its peer goes on. */
		worker_stop(&p.w[1]);
		KUNIT_EXPECT_EQ_MSG(test, p.w[1].error, 0, "%s", p.w[1].where);
		KUNIT_EXPECT_EQ(test, 0, rig_qp_destroy(p.qp[1]));
		run_for(4);
		worker_stop(&p.w[0]);
		KUNIT_EXPECT_EQ_MSG(test, p.w[0].error, 0, "%s", p.w[0].where);
		/* With requests still queued. */
		KUNIT_EXPECT_EQ(test, 0, rig_qp_destroy(p.qp[0]));
	}
}

/* CASES 146, 182: who never stops posting to himself does not stop the others. */
static int flood_step(struct worker *w)
{
	struct storm *s = w->priv;
	struct rig_wr wr;

	rig_wr(w->qp, &wr, IB_WR_RDMA_WRITE, s->next_send, s->buf, 512);
	wr.rdma.remote_addr = s->addr;
	wr.rdma.rkey = s->rkey;
	if (!rig_post(w->qp, &wr))
		s->next_send++;
	return take(w, w->qp->scq, &s->seen_send);
}

static void case_182_flood_to_oneself(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct rig_qp_opt opt = { .send_wr = 512, .scq = rig_cq(rig, 1024) };
	struct worker *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct storm *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u64 answered = 0;
	unsigned long end;
	struct rig_wr wr;

	KUNIT_ASSERT_TRUE(test, w && s);
	s->buf = rig_buf(rig, 512);
	s->addr = (uintptr_t)rig_buf(rig, 512);
	s->rkey = rig->mr->rkey;
	w->rig = rig;
	w->step = flood_step;
	w->priv = s;
	w->qp = rig_qp(rig, IB_QPT_RC, &opt);
	rig_bring(w->qp, IB_QPS_RTS, w->qp);
	worker_start(w, nth_cpu(0));
	end = jiffies + msecs_to_jiffies(RUN_MS);
	while (time_before(jiffies, end)) {
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, answered, NULL, 0);
		KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, answered++, IB_WC_SUCCESS);
	}
	worker_stop(w);
	KUNIT_EXPECT_EQ_MSG(test, w->error, 0, "%s", w->where);
	KUNIT_EXPECT_GT(test, answered, 1ull);
	kunit_info(test, "%llu posted by the flood, %llu by the other\n", s->next_send, answered);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(states_change_under_load),
	KUNIT_CASE(deregister_under_load),
	KUNIT_CASE(destroy_under_load),
	KUNIT_CASE(case_182_flood_to_oneself),
	{}
};

struct kunit_suite rvt_stress_suite = {
	.name = "rvt_stress",
	.suite_init = rig_suite_init,
	.suite_exit = rig_suite_exit,
	.init = rig_init,
	.exit = stress_exit,
	.test_cases = cases,
};
