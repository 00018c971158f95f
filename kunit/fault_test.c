// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Each allocation fails in turn (CASES 16, 23, 40, 41, 42): the caller gets a
 * negative errno, and nothing is left behind. What would be left is seen by
 * KASAN, kmemleak and the device's own count of objects when it goes.
 *
 * Needs a kernel with fault injection; the guest's program sets it up so that
 * sleeping allocations fail too.
 */
#include <linux/sched.h>
#include <rdma/ib_cache.h>

#include "harness.h"
#include "suites.h"

#ifdef CONFIG_FAULT_INJECTION

static void fail_at(int nth)
{
	current->fail_nth = nth;
}

/* Whether the failure has been had. */
static bool failed(void)
{
	bool had = !current->fail_nth;

	current->fail_nth = 0;
	return had;
}

struct attempt {
	struct rig *rig;
	struct rig_cq *cq;
	struct rig_qp *qp;
	struct rig_srq *srq;
};

/* Each makes one thing and, if that worked, removes it. Return: the errno. */

static int make_pd(struct attempt *a)
{
	struct ib_pd *pd = ib_alloc_pd(a->rig->dev, 0);
	bool had = failed();

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ib_dealloc_pd(pd);
	return had;
}

static int make_cq(struct attempt *a)
{
	struct ib_cq_init_attr attr = { .cqe = 100 };
	struct ib_cq *cq = ib_create_cq(a->rig->dev, NULL, NULL, NULL, &attr);
	bool had = failed();

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ib_destroy_cq(cq);
	return had;
}

static int make_srq(struct attempt *a)
{
	struct ib_srq_init_attr attr = { .attr = { .max_wr = 50, .max_sge = 3 },
					 .srq_type = IB_SRQT_BASIC };
	struct ib_srq *srq = ib_create_srq(a->rig->pd, &attr);
	bool had = failed();

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	ib_destroy_srq(srq);
	return had;
}

static int make_qp(struct attempt *a, enum ib_qp_type type, bool with_srq)
{
	struct ib_qp_init_attr attr = {
		.send_cq = a->cq->cq,
		.recv_cq = a->cq->cq,
		.srq = with_srq ? a->srq->srq : NULL,
		.cap = { .max_send_wr = 20, .max_recv_wr = with_srq ? 0 : 20, .max_send_sge = 3,
			 .max_recv_sge = with_srq ? 0 : 3, .max_inline_data = 64 },
		.qp_type = type,
	};
	struct ib_qp *qp = ib_create_qp(a->rig->pd, &attr);
	bool had = failed();

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ib_destroy_qp(qp);
	return had;
}

static int make_rc(struct attempt *a)
{
	return make_qp(a, IB_QPT_RC, false);
}

static int make_rc_on_srq(struct attempt *a)
{
	return make_qp(a, IB_QPT_RC, true);
}

static int make_uc(struct attempt *a)
{
	return make_qp(a, IB_QPT_UC, false);
}

static int make_ud(struct attempt *a)
{
	return make_qp(a, IB_QPT_UD, false);
}

static int make_dma_mr(struct attempt *a)
{
	struct ib_mr *mr = a->rig->dev->ops.get_dma_mr(a->rig->pd, IB_ACCESS_LOCAL_WRITE);
	bool had = failed();

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	a->rig->dev->ops.dereg_mr(mr, NULL);
	return had;
}

static int make_fast_mr(struct attempt *a)
{
	struct ib_mr *mr = ib_alloc_mr(a->rig->pd, IB_MR_TYPE_MEM_REG, 600);
	bool had = failed();

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	ib_dereg_mr(mr);
	return had;
}

static int make_ah(struct attempt *a)
{
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	bool had;

	rig_ah_attr(a->rig, &attr);
	ah = rdma_create_ah(a->rig->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	had = failed();
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return had;
}

static int resize_cq(struct attempt *a)
{
	int size = a->cq->cq->cqe == 200 ? 100 : 200;
	int ret = ib_resize_cq(a->cq->cq, size);
	bool had = failed();

	if (ret) {
		KUNIT_EXPECT_NE(a->rig->test, a->cq->cq->cqe, size);
		return ret;
	}
	KUNIT_EXPECT_EQ(a->rig->test, a->cq->cq->cqe, size);
	return had;
}

/* CASES 23: the old ring stays usable. */
static int resize_srq(struct attempt *a)
{
	struct ib_srq_attr attr = {}, after;
	u32 old;
	bool had;
	int ret;

	KUNIT_EXPECT_EQ(a->rig->test, 0, ib_query_srq(a->srq->srq, &attr));
	old = attr.max_wr;
	attr.max_wr = old == 40 ? 20 : 40;
	ret = ib_modify_srq(a->srq->srq, &attr, IB_SRQ_MAX_WR);
	had = failed();
	KUNIT_EXPECT_EQ(a->rig->test, 0, ib_query_srq(a->srq->srq, &after));
	KUNIT_EXPECT_EQ(a->rig->test, after.max_wr, ret ? old : attr.max_wr);
	return ret ?: had;
}

static int attach(struct attempt *a)
{
	union ib_gid gid = { .raw = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 9 } };
	int ret = ib_attach_mcast(a->qp->qp, &gid, 0xc009);
	bool had = failed();

	if (ret)
		return ret;
	KUNIT_EXPECT_EQ(a->rig->test, 0, ib_detach_mcast(a->qp->qp, &gid, 0xc009));
	return had;
}

struct target {
	const char *what;
	int (*make)(struct attempt *a);
};

static const struct target targets[] = {
	{ "alloc_pd", make_pd },
	{ "create_cq", make_cq },
	{ "create_srq", make_srq },
	{ "create_qp RC", make_rc },
	{ "create_qp RC with SRQ", make_rc_on_srq },
	{ "create_qp UC", make_uc },
	{ "create_qp UD", make_ud },
	{ "get_dma_mr", make_dma_mr },
	{ "alloc_mr", make_fast_mr },
	{ "create_ah", make_ah },
	{ "resize_cq", resize_cq },
	{ "modify_srq", resize_srq },
	{ "attach_mcast", attach },
};

static void target_describe(const struct target *target, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s", target->what);
}

KUNIT_ARRAY_PARAM(target, targets, target_describe);

static void case_040_each_allocation_fails(struct kunit *test)
{
	const struct target *target = test->param_value;
	struct rig *rig = rig_of(test);
	struct attempt a = { .rig = rig };
	int nth, ret, failures = 0;

	a.cq = rig_cq(rig, 100);
	a.srq = rig_srq(rig, 20, 1, 0);
	a.qp = rig_qp(rig, IB_QPT_UD, NULL);
	rig_bring(a.qp, IB_QPS_RTS, NULL);

	/* Until the call works with the failure still ahead. */
	for (nth = 1; nth < 500; nth++) {
		fail_at(nth);
		ret = target->make(&a);
		if (!ret)
			break;
		/* 1: it failed, and the call found a way without. */
		if (ret < 0) {
			failures++;
			KUNIT_EXPECT_EQ_MSG(test, ret, -ENOMEM, "allocation %d", nth);
		}
	}
	KUNIT_EXPECT_EQ_MSG(test, ret, 0, "it never worked");
	kunit_info(test, "%s: %d allocations failed, %d of them fatal\n", target->what, nth - 1,
		   failures);
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(case_040_each_allocation_fails, target_gen_params),
	{}
};

RIG_SUITE(rvt_fault, cases);

#endif
