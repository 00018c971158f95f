// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Creating and destroying: limits, refusals, QP numbers.
 */
#include "harness.h"
#include "suites.h"

static int try(struct rig *rig, enum ib_qp_type type, struct rig_qp_opt *opt)
{
	struct rig_qp *qp = rig_try_qp(rig, type, opt);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	KUNIT_EXPECT_EQ(rig->test, rig_qp_destroy(qp), 0);
	return 0;
}

/* CASES 46: the limit is granted, one more is refused. */
static void case_046_capacities(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct rig_qp_opt base = { .scq = cq, .rcq = cq }, opt;

	opt = base;
	opt.send_wr = rig->attr.max_qp_wr;
	KUNIT_EXPECT_EQ(test, 0, try(rig, IB_QPT_RC, &opt));
	opt.send_wr++;
	KUNIT_EXPECT_EQ(test, -EINVAL, try(rig, IB_QPT_RC, &opt));
	opt = base;
	opt.recv_wr = rig->attr.max_qp_wr;
	KUNIT_EXPECT_EQ(test, 0, try(rig, IB_QPT_RC, &opt));
	opt.recv_wr++;
	KUNIT_EXPECT_EQ(test, -EINVAL, try(rig, IB_QPT_RC, &opt));
	opt = base;
	opt.send_sge = rig->attr.max_send_sge;
	KUNIT_EXPECT_EQ(test, 0, try(rig, IB_QPT_RC, &opt));
	opt.send_sge++;
	KUNIT_EXPECT_EQ(test, -EINVAL, try(rig, IB_QPT_RC, &opt));
	opt = base;
	opt.recv_sge = rig->attr.max_recv_sge;
	KUNIT_EXPECT_EQ(test, 0, try(rig, IB_QPT_RC, &opt));
	opt.recv_sge++;
	KUNIT_EXPECT_EQ(test, -EINVAL, try(rig, IB_QPT_RC, &opt));
	opt = base;
	opt.inline_data = 512;
	KUNIT_EXPECT_EQ(test, 0, try(rig, IB_QPT_RC, &opt));
	opt.inline_data = 513;
	KUNIT_EXPECT_EQ(test, -EINVAL, try(rig, IB_QPT_RC, &opt));
	opt.inline_data = U32_MAX;
	KUNIT_EXPECT_EQ(test, -EINVAL, try(rig, IB_QPT_RC, &opt));
}

static int try_init(struct rig *rig, struct ib_qp_init_attr *init)
{
	struct ib_qp *qp = ib_create_qp(rig->pd, init);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ib_destroy_qp(qp);
	return 0;
}

/* CASES 44. */
static void case_044_types_and_flags(struct kunit *test)
{
	static const enum ib_qp_type odd[] = { IB_QPT_RAW_IPV6, IB_QPT_RAW_ETHERTYPE,
					       IB_QPT_RAW_PACKET, IB_QPT_DRIVER };
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct ib_qp_init_attr usual = {
		.send_cq = cq->cq,
		.recv_cq = cq->cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = rig->port,
	};
	struct ib_qp_init_attr init;
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(odd); i++) {
		init = usual;
		init.qp_type = odd[i];
		ret = try_init(rig, &init);
		KUNIT_EXPECT_EQ_MSG(test, ret, -EOPNOTSUPP, "type %d", odd[i]);
	}
	for (i = 0; i < 32; i++) {
		init = usual;
		init.create_flags = 1u << i;
		/* ib_core takes these two for itself. */
		if (init.create_flags & (IB_QP_CREATE_INTEGRITY_EN | IB_QP_CREATE_NETDEV_USE))
			continue;
		ret = try_init(rig, &init);
		KUNIT_EXPECT_TRUE_MSG(test, ret == -EOPNOTSUPP || ret == -EINVAL,
				      "create flag 0x%x: %d", 1u << i, ret);
	}
	init = usual;
	memset(&init.cap, 0, sizeof(init.cap));
	KUNIT_EXPECT_EQ(test, -EINVAL, try_init(rig, &init));
	init = usual;
	KUNIT_EXPECT_EQ(test, 0, try_init(rig, &init));
}

/* CASES 13. */
static void case_013_cq_sizes(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_cq_init_attr attr = { .cqe = 1 };
	struct ib_cq *cq;

	attr.cqe = rig->attr.max_cqe + 1;
	cq = ib_create_cq(rig->dev, NULL, NULL, NULL, &attr);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(cq), -EINVAL);
	/* ib_core warns of cqe 0 itself, so ask the device. */
	attr.cqe = 1;
	cq = ib_create_cq(rig->dev, NULL, NULL, NULL, &attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	KUNIT_EXPECT_EQ(test, cq->cqe, 1);
	ib_destroy_cq(cq);
}

/* CASES 14, 40, 163: a thousand lives. */
static void case_163_many_lives(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct rig_qp_opt opt = { .scq = cq, .rcq = cq };
	struct ib_cq_init_attr attr = { .cqe = 32 };
	int i;

	for (i = 0; i < 1000; i++) {
		struct rig_qp *qp = rig_qp(rig, types[i % 3], &opt);
		struct ib_cq *other = ib_create_cq(rig->dev, NULL, NULL, NULL, &attr);

		rig_bring(qp, i % 5 ? IB_QPS_RTS : IB_QPS_INIT, qp);
		KUNIT_ASSERT_EQ(test, rig_qp_destroy(qp), 0);
		list_del(&qp->node);
		kfree(qp);
		KUNIT_ASSERT_FALSE(test, IS_ERR(other));
		ib_destroy_cq(other);
	}
}

/* CASES 151: from every state. */
static void case_151_destroy_in_every_state(struct kunit *test)
{
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };
	struct rig *rig = rig_of(test);
	int i, state;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (state = IB_QPS_RESET; state <= IB_QPS_ERR; state++) {
			struct rig_qp *qp, *peer;

			if (state == IB_QPS_SQE && types[i] == IB_QPT_RC)
				continue;
			qp = rig_qp(rig, types[i], NULL);
			peer = rig_qp(rig, types[i], NULL);
			rig_bring(qp, state, peer);
			if (state != IB_QPS_RESET)
				KUNIT_EXPECT_EQ(test, 0, rig_post_recv(qp, 1, NULL, 0));
			KUNIT_EXPECT_EQ(test, rig_qp_destroy(qp), 0);
		}
	}
}

/* A number is not given again at once: late messages find nobody. */
static void qpn_is_not_reused_at_once(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct rig_qp_opt opt = { .scq = cq, .rcq = cq };
	u32 last = 0;
	int i;

	for (i = 0; i < 100; i++) {
		struct rig_qp *qp = rig_qp(rig, IB_QPT_RC, &opt);

		KUNIT_EXPECT_GT(test, qp->num, 1u);
		KUNIT_EXPECT_LT(test, qp->num, 1u << 24);
		KUNIT_EXPECT_NE(test, qp->num, last);
		last = qp->num;
		KUNIT_ASSERT_EQ(test, rig_qp_destroy(qp), 0);
		list_del(&qp->node);
		kfree(qp);
	}
}

static void qpns_of_the_living_differ(struct kunit *test)
{
	enum { COUNT = 200 };
	struct rig *rig = rig_of(test);
	struct rig_cq *cq = rig_cq(rig, 4);
	struct rig_qp_opt opt = { .scq = cq, .rcq = cq };
	u32 *num = kunit_kzalloc(test, COUNT * sizeof(*num), GFP_KERNEL);
	int i, k;

	KUNIT_ASSERT_NOT_NULL(test, num);
	for (i = 0; i < COUNT; i++) {
		num[i] = rig_qp(rig, IB_QPT_UC, &opt)->num;
		for (k = 0; k < i; k++)
			KUNIT_ASSERT_NE(test, num[i], num[k]);
	}
}

/* What query_device says of its own limits (CASES 131, 160). */
static void case_160_attributes_of_device_and_port(struct kunit *test)
{
	struct rig *rig = rig_of(test);

	KUNIT_EXPECT_NE(test, rig->dev->node_guid, cpu_to_be64(0));
	KUNIT_EXPECT_NE(test, rig->attr.sys_image_guid, cpu_to_be64(0));
	KUNIT_EXPECT_EQ(test, (int)rig->port_attr.state, (int)IB_PORT_ACTIVE);
	KUNIT_EXPECT_LE(test, (int)rig->port_attr.active_mtu, (int)rig->port_attr.max_mtu);
	KUNIT_EXPECT_NE(test, rig->port_attr.lid, 0u);
	KUNIT_EXPECT_GT(test, rig->port_attr.gid_tbl_len, 0);
	KUNIT_EXPECT_GT(test, (int)rig->port_attr.pkey_tbl_len, 0);
	KUNIT_EXPECT_GT(test, rig->attr.max_mr, 0);
	KUNIT_EXPECT_GT(test, rig->attr.max_qp, 0);
	KUNIT_EXPECT_GT(test, rig->attr.max_cq, 0);
	KUNIT_EXPECT_GT(test, rig->attr.max_pd, 0);
	KUNIT_EXPECT_GT(test, rig->attr.max_ah, 0);
	KUNIT_EXPECT_GT(test, rig->attr.max_srq, 0);
	KUNIT_EXPECT_TRUE(test, ib_uses_virt_dma(rig->dev));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(case_160_attributes_of_device_and_port),
	KUNIT_CASE(case_046_capacities),
	KUNIT_CASE(case_044_types_and_flags),
	KUNIT_CASE(case_013_cq_sizes),
	KUNIT_CASE(case_151_destroy_in_every_state),
	KUNIT_CASE(case_163_many_lives),
	KUNIT_CASE(qpn_is_not_reused_at_once),
	KUNIT_CASE(qpns_of_the_living_differ),
	{}
};

RIG_SUITE(rvt_create, cases);
