// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * query_qp tells what was set (CASES 63), at every step of a queue pair's life.
 */
#include <rdma/ib_cache.h>

#include "harness.h"
#include "suites.h"

static void modify(struct rig_qp *qp, struct ib_qp_attr *attr, int mask)
{
	KUNIT_ASSERT_EQ(qp->rig->test, 0, ib_modify_qp(qp->qp, attr, mask));
}

static void created_as_asked(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp_opt opt = { .send_wr = 13, .recv_wr = 7, .send_sge = 3, .recv_sge = 5,
				  .inline_data = 64 };
	static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_qp *qp;

		opt.sig_all = i == 1;
		qp = rig_qp(rig, types[i], &opt);
		rig_query(qp, &attr, &init);
		KUNIT_EXPECT_EQ(test, (int)attr.qp_state, (int)IB_QPS_RESET);
		KUNIT_EXPECT_EQ(test, (int)attr.cur_qp_state, (int)IB_QPS_RESET);
		KUNIT_EXPECT_EQ(test, attr.cap.max_send_wr, 13u);
		KUNIT_EXPECT_EQ(test, attr.cap.max_recv_wr, 7u);
		KUNIT_EXPECT_EQ(test, attr.cap.max_send_sge, 3u);
		KUNIT_EXPECT_EQ(test, attr.cap.max_recv_sge, 5u);
		KUNIT_EXPECT_GE(test, attr.cap.max_inline_data, 64u);
		KUNIT_EXPECT_EQ(test, attr.cap.max_inline_data, qp->cap.max_inline_data);
		KUNIT_EXPECT_EQ(test, memcmp(&init.cap, &attr.cap, sizeof(init.cap)), 0);
		KUNIT_EXPECT_PTR_EQ(test, init.send_cq, qp->scq->cq);
		KUNIT_EXPECT_PTR_EQ(test, init.recv_cq, qp->rcq->cq);
		KUNIT_EXPECT_NULL(test, init.srq);
		KUNIT_EXPECT_EQ(test, (int)init.qp_type, (int)types[i]);
		KUNIT_EXPECT_EQ(test, (int)init.sq_sig_type,
				(int)(opt.sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR));
	}
}

static void created_with_an_srq(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_srq *srq = rig_srq(rig, 8, 2, 0);
	struct rig_qp_opt opt = { .srq = srq };
	struct rig_qp *qp = rig_qp(rig, IB_QPT_RC, &opt);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	rig_query(qp, &attr, &init);
	KUNIT_EXPECT_PTR_EQ(test, init.srq, srq->srq);
	KUNIT_EXPECT_EQ(test, attr.cap.max_recv_wr, 0u);
}

/* Values unlike the usual ones, and unlike each other. */
static void set_odd(struct rig_qp *qp, struct rig_qp *peer, struct ib_qp_attr *attr,
		    enum ib_qp_state state, int *mask)
{
	*mask = rig_attr(qp, state, peer, attr);
	attr->qp_access_flags = IB_ACCESS_REMOTE_READ;
	attr->qkey = 0x1234567;
	attr->path_mtu = IB_MTU_512;
	attr->rq_psn = 0xfedcba;
	attr->sq_psn = 0x123456;
	attr->max_dest_rd_atomic = 3;
	attr->max_rd_atomic = 5;
	attr->min_rnr_timer = 13;
	attr->timeout = 11;
	attr->retry_cnt = 2;
	attr->rnr_retry = 6;
	rdma_ah_set_sl(&attr->ah_attr, 3);
}

static void each_step_of_rc(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp *qp = rig_qp(rig, IB_QPT_RC, NULL), *peer = rig_qp(rig, IB_QPT_RC, NULL);
	struct ib_qp_attr attr, got;
	int mask;

	set_odd(qp, peer, &attr, IB_QPS_INIT, &mask);
	modify(qp, &attr, mask);
	rig_query(qp, &got, NULL);
	KUNIT_EXPECT_EQ(test, (int)got.qp_state, (int)IB_QPS_INIT);
	KUNIT_EXPECT_EQ(test, (int)got.cur_qp_state, (int)IB_QPS_INIT);
	KUNIT_EXPECT_EQ(test, got.port_num, (u8)rig->port);
	KUNIT_EXPECT_EQ(test, got.pkey_index, (u16)0);
	KUNIT_EXPECT_EQ(test, got.qp_access_flags, (int)IB_ACCESS_REMOTE_READ);

	set_odd(qp, peer, &attr, IB_QPS_RTR, &mask);
	modify(qp, &attr, mask);
	rig_query(qp, &got, NULL);
	KUNIT_EXPECT_EQ(test, (int)got.qp_state, (int)IB_QPS_RTR);
	KUNIT_EXPECT_EQ(test, (int)got.path_mtu, (int)IB_MTU_512);
	KUNIT_EXPECT_EQ(test, got.dest_qp_num, peer->num);
	KUNIT_EXPECT_EQ(test, got.rq_psn, 0xfedcbau);
	KUNIT_EXPECT_EQ(test, got.max_dest_rd_atomic, (u8)3);
	KUNIT_EXPECT_EQ(test, got.min_rnr_timer, (u8)13);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_dlid(&got.ah_attr), (u32)rig->port_attr.lid);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&got.ah_attr), (u8)3);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_port_num(&got.ah_attr), rig->port);
	KUNIT_EXPECT_EQ(test, (int)got.path_mig_state, (int)IB_MIG_MIGRATED);

	set_odd(qp, peer, &attr, IB_QPS_RTS, &mask);
	modify(qp, &attr, mask);
	rig_query(qp, &got, NULL);
	KUNIT_EXPECT_EQ(test, (int)got.qp_state, (int)IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, got.timeout, (u8)11);
	KUNIT_EXPECT_EQ(test, got.retry_cnt, (u8)2);
	KUNIT_EXPECT_EQ(test, got.rnr_retry, (u8)6);
	KUNIT_EXPECT_EQ(test, got.sq_psn, 0x123456u);
	KUNIT_EXPECT_EQ(test, got.max_rd_atomic, (u8)5);
	/* What was set before is still there. */
	KUNIT_EXPECT_EQ(test, got.rq_psn, 0xfedcbau);
	KUNIT_EXPECT_EQ(test, got.min_rnr_timer, (u8)13);
	KUNIT_EXPECT_EQ(test, got.sq_draining, (u8)0);
}

static void each_attribute_in_sqd(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct ib_qp_attr attr, got;

	rig_attr(pair.a, IB_QPS_SQD, pair.b, &attr);
	attr.en_sqd_async_notify = 1;
	modify(pair.a, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY);
	rig_query(pair.a, &got, NULL);
	KUNIT_EXPECT_EQ(test, got.en_sqd_async_notify, (u8)1);
	KUNIT_EXPECT_EQ(test, got.sq_draining, (u8)0);

	attr.timeout = 17;
	attr.retry_cnt = 1;
	attr.rnr_retry = 3;
	attr.max_rd_atomic = 2;
	attr.max_dest_rd_atomic = 1;
	attr.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC;
	attr.min_rnr_timer = 31;
	rdma_ah_set_sl(&attr.ah_attr, 5);
	rdma_ah_set_sl(&attr.alt_ah_attr, 6);
	attr.alt_timeout = 19;
	modify(pair.a, &attr,
	       IB_QP_STATE | IB_QP_PORT | IB_QP_AV | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
		       IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC |
		       IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX |
		       IB_QP_MIN_RNR_TIMER);
	rig_query(pair.a, &got, NULL);
	KUNIT_EXPECT_EQ(test, got.timeout, (u8)17);
	KUNIT_EXPECT_EQ(test, got.retry_cnt, (u8)1);
	KUNIT_EXPECT_EQ(test, got.rnr_retry, (u8)3);
	KUNIT_EXPECT_EQ(test, got.max_rd_atomic, (u8)2);
	KUNIT_EXPECT_EQ(test, got.max_dest_rd_atomic, (u8)1);
	KUNIT_EXPECT_EQ(test, got.qp_access_flags,
			(int)(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC));
	KUNIT_EXPECT_EQ(test, got.min_rnr_timer, (u8)31);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&got.ah_attr), (u8)5);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_sl(&got.alt_ah_attr), (u8)6);
	KUNIT_EXPECT_EQ(test, rdma_ah_get_dlid(&got.alt_ah_attr), (u32)rig->port_attr.lid);
	KUNIT_EXPECT_EQ(test, got.alt_port_num, (u8)rig->port);
	KUNIT_EXPECT_EQ(test, got.alt_pkey_index, (u16)0);
}

/* CASES 186. */
static void case_186_alternate_timeout(struct kunit *test)
{
	struct rig_pair pair = rig_pair(rig_of(test), IB_QPT_RC, NULL);
	struct ib_qp_attr attr;

	rig_attr(pair.a, IB_QPS_RTS, pair.b, &attr);
	attr.alt_timeout = 23;
	modify(pair.a, &attr, IB_QP_ALT_PATH);
	rig_query(pair.a, &attr, NULL);
	KUNIT_EXPECT_EQ(test, attr.alt_timeout, (u8)23);
}

static void address_with_a_grh(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp *qp = rig_qp(rig, IB_QPT_RC, NULL), *peer = rig_qp(rig, IB_QPT_RC, NULL);
	const struct ib_global_route *grh;
	struct ib_qp_attr attr;
	union ib_gid gid;
	int mask;

	KUNIT_ASSERT_EQ(test, 0, rdma_query_gid(rig->dev, rig->port, 0, &gid));
	rig_bring(qp, IB_QPS_INIT, peer);
	mask = rig_attr(qp, IB_QPS_RTR, peer, &attr);
	rdma_ah_set_grh(&attr.ah_attr, &gid, 0x12345, 0, 77, 0x6a);
	modify(qp, &attr, mask);
	rig_query(qp, &attr, NULL);
	KUNIT_ASSERT_TRUE(test, rdma_ah_get_ah_flags(&attr.ah_attr) & IB_AH_GRH);
	grh = rdma_ah_read_grh(&attr.ah_attr);
	KUNIT_EXPECT_EQ(test, memcmp(&grh->dgid, &gid, sizeof(gid)), 0);
	KUNIT_EXPECT_EQ(test, grh->flow_label, 0x12345u);
	KUNIT_EXPECT_EQ(test, grh->sgid_index, (u8)0);
	KUNIT_EXPECT_EQ(test, grh->hop_limit, (u8)77);
	KUNIT_EXPECT_EQ(test, grh->traffic_class, (u8)0x6a);
}

static void each_step_of_ud(struct kunit *test)
{
	struct rig_qp *qp = rig_qp(rig_of(test), IB_QPT_UD, NULL);
	struct ib_qp_attr attr, got;
	int mask;

	set_odd(qp, NULL, &attr, IB_QPS_INIT, &mask);
	modify(qp, &attr, mask);
	rig_query(qp, &got, NULL);
	KUNIT_EXPECT_EQ(test, got.qkey, 0x1234567u);
	mask = rig_attr(qp, IB_QPS_RTR, NULL, &attr);
	attr.qkey = 0x7654321;
	modify(qp, &attr, mask | IB_QP_QKEY);
	rig_query(qp, &got, NULL);
	KUNIT_EXPECT_EQ(test, got.qkey, 0x7654321u);
	set_odd(qp, NULL, &attr, IB_QPS_RTS, &mask);
	modify(qp, &attr, mask);
	rig_query(qp, &got, NULL);
	KUNIT_EXPECT_EQ(test, got.sq_psn, 0x123456u);
	KUNIT_EXPECT_EQ(test, got.qkey, 0x7654321u);
}

/* CASES 183: PSNs count packets of the path MTU; a READ's responses too. */
static void case_183_psns_advance_by_packets(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	static const u32 size[] = { 0, 1, 1024, 1025, 5000 };
	static const u32 packets[] = { 1, 1, 1, 2, 5 };
	u8 *from = rig_buf(rig, 8192), *to = rig_buf(rig, 8192);
	u32 psn = RIG_PSN;
	struct ib_qp_attr a, b;
	struct rig_wr wr;
	int i;

	for (i = 0; i < ARRAY_SIZE(size); i++) {
		rig_wr(pair.a, &wr, IB_WR_RDMA_WRITE, i, from, size[i]);
		rig_remote(pair.a, &wr, to, NULL);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
		rig_expect_wc(pair.a->scq, i, IB_WC_SUCCESS);
		psn += packets[i];
		rig_query(pair.a, &a, NULL);
		rig_query(pair.b, &b, NULL);
		KUNIT_EXPECT_EQ_MSG(test, a.sq_psn, psn, "sender, %u bytes", size[i]);
		KUNIT_EXPECT_EQ_MSG(test, b.rq_psn, psn, "receiver, %u bytes", size[i]);
		/* Nothing went the other way. */
		KUNIT_EXPECT_EQ(test, a.rq_psn, RIG_PSN);
		KUNIT_EXPECT_EQ(test, b.sq_psn, RIG_PSN);
	}
	rig_wr(pair.a, &wr, IB_WR_RDMA_READ, 9, from, 5000);
	rig_remote(pair.a, &wr, to, NULL);
	KUNIT_ASSERT_EQ(test, 0, rig_post(pair.a, &wr));
	rig_expect_wc(pair.a->scq, 9, IB_WC_SUCCESS);
	rig_query(pair.a, &a, NULL);
	rig_query(pair.b, &b, NULL);
	KUNIT_EXPECT_EQ(test, a.sq_psn, psn + 5);
	KUNIT_EXPECT_EQ(test, b.rq_psn, psn + 5);
}

/* CASES 92: over the end of 24 bits. */
static void case_092_psn_wraps(struct kunit *test)
{
	static const u32 start[] = { 0xfffffe, 0xffffff, 0x7fffff, 0 };
	struct rig *rig = rig_of(test);
	u8 *from = rig_buf(rig, 4096), *to = rig_buf(rig, 4096);
	struct ib_qp_attr attr;
	struct rig_wr wr;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(start); i++) {
		struct rig_qp *a = rig_qp(rig, IB_QPT_RC, NULL), *b = rig_qp(rig, IB_QPT_RC, NULL);
		int mask;

		rig_bring(a, IB_QPS_RTR, b);
		mask = rig_attr(a, IB_QPS_RTS, b, &attr);
		attr.sq_psn = start[i];
		modify(a, &attr, mask);
		rig_bring(b, IB_QPS_INIT, a);
		mask = rig_attr(b, IB_QPS_RTR, a, &attr);
		attr.rq_psn = start[i];
		modify(b, &attr, mask);
		for (n = 0; n < 10; n++) {
			rig_wr(a, &wr, IB_WR_RDMA_WRITE, n, from, 3000);
			rig_remote(a, &wr, to, NULL);
			KUNIT_ASSERT_EQ(test, 0, rig_post(a, &wr));
			rig_expect_wc(a->scq, n, IB_WC_SUCCESS);
		}
		rig_query(a, &attr, NULL);
		KUNIT_EXPECT_EQ(test, attr.sq_psn, (start[i] + 30) & 0xffffff);
		rig_query(b, &attr, NULL);
		KUNIT_EXPECT_EQ(test, attr.rq_psn, (start[i] + 30) & 0xffffff);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(created_as_asked),
	KUNIT_CASE(created_with_an_srq),
	KUNIT_CASE(each_step_of_rc),
	KUNIT_CASE(each_attribute_in_sqd),
	KUNIT_CASE(case_186_alternate_timeout),
	KUNIT_CASE(address_with_a_grh),
	KUNIT_CASE(each_step_of_ud),
	KUNIT_CASE(case_183_psns_advance_by_packets),
	KUNIT_CASE(case_092_psn_wraps),
	{}
};

RIG_SUITE(rvt_query, cases);
