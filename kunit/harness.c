// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the suites stand on; see harness.h.
 *
 * The device is found through ib_core's client interface, suite by suite: a
 * suite that runs keeps the device, and the module can be unloaded between.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "harness.h"

static struct ib_device *the_device;

/* --- suite and case ---------------------------------------------------------- */

static int client_add(struct ib_device *dev)
{
	if (!strcmp(dev_name(&dev->dev), rig_device_name))
		the_device = dev;
	return 0;
}

static void client_remove(struct ib_device *dev, void *data)
{
	if (the_device == dev)
		the_device = NULL;
}

static struct ib_client client = {
	.name = "rvt_kunit",
	.add = client_add,
	.remove = client_remove,
};

int rig_suite_init(struct kunit_suite *suite)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	if (!the_device) {
		pr_err("rvt_kunit: there is no device %s\n", rig_device_name);
		ib_unregister_client(&client);
		return -ENODEV;
	}
	return 0;
}

void rig_suite_exit(struct kunit_suite *suite)
{
	/* A suite whose init failed is exited too. */
	if (!the_device)
		return;
	ib_unregister_client(&client);
	the_device = NULL;
}

int rig_init(struct kunit *test)
{
	struct rig *rig;

	if (!the_device)
		return -ENODEV;
	rig = kzalloc(sizeof(*rig), GFP_KERNEL);
	if (!rig)
		return -ENOMEM;
	rig->test = test;
	rig->dev = the_device;
	rig->attr = rig->dev->attrs;
	rig->port = rdma_start_port(rig->dev);
	INIT_LIST_HEAD(&rig->qps);
	INIT_LIST_HEAD(&rig->cqs);
	INIT_LIST_HEAD(&rig->srqs);
	INIT_LIST_HEAD(&rig->bufs);
	INIT_LIST_HEAD(&rig->mrs);
	test->priv = rig;

	if (ib_query_port(rig->dev, rig->port, &rig->port_attr))
		return -EIO;
	rig->pd = ib_alloc_pd(rig->dev, 0);
	if (IS_ERR(rig->pd)) {
		rig->pd = NULL;
		return -EIO;
	}
	rig->mr = rig_dma_mr(rig, rig->pd, RIG_ALL_ACCESS);
	return rig->mr ? 0 : -EIO;
}

struct rig_block {
	struct list_head node;
	u64 data[];
};

struct rig_region {
	struct list_head node;
	struct ib_mr *mr;
};

void rig_exit(struct kunit *test)
{
	struct rig *rig = test->priv;
	struct rig_region *region, *next_region;
	struct rig_block *block, *next_block;
	struct rig_srq *srq, *next_srq;
	struct rig_qp *qp, *next_qp;
	struct rig_cq *cq, *next_cq;

	if (!rig)
		return;
	list_for_each_entry_safe(qp, next_qp, &rig->qps, node) {
		KUNIT_EXPECT_EQ(test, rig_qp_destroy(qp), 0);
		KUNIT_EXPECT_FALSE_MSG(test, qp->stray, "an event of another QP");
		kfree(qp);
	}
	list_for_each_entry_safe(srq, next_srq, &rig->srqs, node) {
		KUNIT_EXPECT_EQ(test, rig_srq_destroy(srq), 0);
		kfree(srq);
	}
	list_for_each_entry_safe(cq, next_cq, &rig->cqs, node) {
		KUNIT_EXPECT_EQ(test, rig_cq_destroy(cq), 0);
		kfree(cq);
	}
	list_for_each_entry_safe(region, next_region, &rig->mrs, node)
		KUNIT_EXPECT_EQ(test, rig_mr_destroy(rig, region->mr), 0);
	if (rig->pd)
		ib_dealloc_pd(rig->pd);
	list_for_each_entry_safe(block, next_block, &rig->bufs, node)
		kfree(block);
	kfree(rig);
	test->priv = NULL;
}

/* --- memory --------------------------------------------------------------------- */

void *rig_buf(struct rig *rig, size_t size)
{
	struct rig_block *block = kzalloc(sizeof(*block) + size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(rig->test, block);
	list_add(&block->node, &rig->bufs);
	return block->data;
}

void rig_fill(void *buf, size_t size, u32 seed)
{
	u8 *byte = buf;
	size_t i;

	for (i = 0; i < size; i++) {
		seed = seed * 1664525 + 1013904223;
		byte[i] = seed >> 24;
	}
}

struct ib_mr *rig_dma_mr(struct rig *rig, struct ib_pd *pd, int access)
{
	struct rig_region *region = kzalloc(sizeof(*region), GFP_KERNEL);
	struct ib_mr *mr;

	if (!region)
		return NULL;
	/* ib_core keeps this one for itself, so do what it does. */
	mr = pd->device->ops.get_dma_mr(pd, access);
	if (IS_ERR(mr)) {
		kfree(region);
		return NULL;
	}
	mr->device = pd->device;
	mr->pd = pd;
	mr->type = IB_MR_TYPE_DMA;
	mr->uobject = NULL;
	atomic_inc(&pd->usecnt);
	region->mr = mr;
	list_add(&region->node, &rig->mrs);
	return mr;
}

int rig_mr_destroy(struct rig *rig, struct ib_mr *mr)
{
	struct rig_region *region;
	int ret;

	list_for_each_entry(region, &rig->mrs, node) {
		if (region->mr != mr)
			continue;
		ret = ib_dereg_mr(mr);
		list_del(&region->node);
		kfree(region);
		return ret;
	}
	return -ENOENT;
}

/* --- completion queues ------------------------------------------------------------ */

static void on_completion(struct ib_cq *cq, void *context)
{
	struct rig_cq *rcq = context;

	atomic_inc(&rcq->upcalls);
	if (rcq->handler)
		rcq->handler(rcq);
	wake_up_all(&rcq->wait);
}

static void on_cq_event(struct ib_event *event, void *context)
{
	struct rig_cq *rcq = context;

	if (event->event == IB_EVENT_CQ_ERR)
		atomic_inc(&rcq->errors);
	wake_up_all(&rcq->wait);
}

struct rig_cq *rig_cq(struct rig *rig, int cqe)
{
	struct ib_cq_init_attr attr = { .cqe = cqe };
	struct rig_cq *cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	struct ib_cq *made;

	KUNIT_ASSERT_NOT_NULL(rig->test, cq);
	cq->rig = rig;
	init_waitqueue_head(&cq->wait);
	made = ib_create_cq(rig->dev, on_completion, on_cq_event, cq, &attr);
	if (IS_ERR(made)) {
		kfree(cq);
		KUNIT_ASSERT_FALSE_MSG(rig->test, true, "create_cq: %ld", PTR_ERR(made));
	}
	cq->cq = made;
	list_add_tail(&cq->node, &rig->cqs);
	return cq;
}

int rig_cq_destroy(struct rig_cq *cq)
{
	struct ib_cq *gone = cq->cq;

	if (!gone)
		return 0;
	if (atomic_read(&gone->usecnt))
		return -EBUSY;
	cq->cq = NULL;
	ib_destroy_cq(gone);
	return 0;
}

/* --- shared receive queues --------------------------------------------------------- */

static void on_srq_event(struct ib_event *event, void *context)
{
	struct rig_srq *srq = context;

	if (event->event < RIG_EVENTS)
		atomic_inc(&srq->events[event->event]);
	wake_up_all(&srq->wait);
}

struct rig_srq *rig_srq(struct rig *rig, u32 max_wr, u32 max_sge, u32 limit)
{
	struct rig_srq *srq = kzalloc(sizeof(*srq), GFP_KERNEL);
	struct ib_srq_init_attr attr = {
		.event_handler = on_srq_event,
		.srq_context = srq,
		.attr = { .max_wr = max_wr, .max_sge = max_sge, .srq_limit = limit },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_srq *made;

	KUNIT_ASSERT_NOT_NULL(rig->test, srq);
	srq->rig = rig;
	init_waitqueue_head(&srq->wait);
	made = ib_create_srq(rig->pd, &attr);
	if (IS_ERR(made)) {
		kfree(srq);
		KUNIT_ASSERT_FALSE_MSG(rig->test, true, "create_srq: %ld", PTR_ERR(made));
	}
	srq->srq = made;
	list_add_tail(&srq->node, &rig->srqs);
	return srq;
}

int rig_srq_destroy(struct rig_srq *srq)
{
	int ret;

	if (!srq->srq)
		return 0;
	ret = ib_destroy_srq_user(srq->srq, NULL);
	if (!ret)
		srq->srq = NULL;
	return ret;
}

/* --- queue pairs -------------------------------------------------------------------- */

static void on_qp_event(struct ib_event *event, void *context)
{
	struct rig_qp *qp = context;

	if (event->element.qp != qp->qp)
		qp->stray = true;
	if (event->event < RIG_EVENTS)
		atomic_inc(&qp->events[event->event]);
	wake_up_all(&qp->wait);
}

struct rig_qp *rig_try_qp(struct rig *rig, enum ib_qp_type type, const struct rig_qp_opt *opt)
{
	static const struct rig_qp_opt usual;
	struct ib_qp_init_attr attr = {};
	struct rig_qp *qp;
	struct ib_qp *made;

	if (!opt)
		opt = &usual;
	qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(rig->test, qp);
	qp->rig = rig;
	qp->type = type;
	init_waitqueue_head(&qp->wait);
	list_add_tail(&qp->node, &rig->qps);
	qp->scq = opt->scq ?: rig_cq(rig, 64);
	qp->rcq = opt->rcq ?: rig_cq(rig, 64);

	attr.event_handler = on_qp_event;
	attr.qp_context = qp;
	attr.send_cq = qp->scq->cq;
	attr.recv_cq = qp->rcq->cq;
	attr.srq = opt->srq ? opt->srq->srq : NULL;
	attr.cap.max_send_wr = opt->send_wr ?: 16;
	attr.cap.max_send_sge = opt->send_sge ?: 4;
	if (!attr.srq) {
		attr.cap.max_recv_wr = opt->recv_wr ?: 16;
		attr.cap.max_recv_sge = opt->recv_sge ?: 4;
	}
	attr.cap.max_inline_data = opt->inline_data;
	attr.sq_sig_type = opt->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	attr.qp_type = type;
	if (type == IB_QPT_SMI || type == IB_QPT_GSI)
		attr.port_num = rig->port;

	made = ib_create_qp(opt->pd ?: rig->pd, &attr);
	if (IS_ERR(made)) {
		list_del(&qp->node);
		kfree(qp);
		return ERR_CAST(made);
	}
	qp->qp = made;
	qp->num = made->qp_num;
	qp->cap = attr.cap;
	return qp;
}

struct rig_qp *rig_qp(struct rig *rig, enum ib_qp_type type, const struct rig_qp_opt *opt)
{
	struct rig_qp *qp = rig_try_qp(rig, type, opt);

	KUNIT_ASSERT_FALSE_MSG(rig->test, IS_ERR(qp), "create_qp: %ld", PTR_ERR(qp));
	return qp;
}

int rig_qp_destroy(struct rig_qp *qp)
{
	int ret;

	if (!qp->qp)
		return 0;
	ret = ib_destroy_qp(qp->qp);
	if (!ret)
		qp->qp = NULL;
	return ret;
}

/* --- states -------------------------------------------------------------------------- */

void rig_ah_attr(struct rig *rig, struct rdma_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->type = rdma_ah_find_type(rig->dev, rig->port);
	rdma_ah_set_port_num(ah, rig->port);
	rdma_ah_set_sl(ah, 0);
	if (ah->type == RDMA_AH_ATTR_TYPE_IB) {
		rdma_ah_set_dlid(ah, rig->port_attr.lid);
	} else {
		union ib_gid gid = {};

		/* Entry 0 is RoCE v1 where there are both. */
		rdma_query_gid(rig->dev, rig->port, 1, &gid);
		rdma_ah_set_grh(ah, &gid, 0, 1, 64, 0);
	}
}

int rig_attr(struct rig_qp *qp, enum ib_qp_state state, struct rig_qp *peer,
	     struct ib_qp_attr *attr)
{
	bool connected = qp->type == IB_QPT_RC || qp->type == IB_QPT_UC;
	bool special = qp->type == IB_QPT_SMI || qp->type == IB_QPT_GSI;
	struct rig *rig = qp->rig;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	attr->pkey_index = 0;
	attr->port_num = rig->port;
	attr->qp_access_flags = RIG_QP_ACCESS;
	attr->qkey = RIG_QKEY;
	rig_ah_attr(rig, &attr->ah_attr);
	attr->alt_ah_attr = attr->ah_attr;
	attr->alt_pkey_index = 0;
	attr->alt_port_num = rig->port;
	attr->alt_timeout = 9;
	attr->path_mtu = min_t(enum ib_mtu, IB_MTU_1024, rig->port_attr.active_mtu);
	attr->dest_qp_num = peer ? peer->num : 0;
	attr->rq_psn = RIG_PSN;
	attr->sq_psn = RIG_PSN;
	attr->max_dest_rd_atomic = 4;
	attr->max_rd_atomic = 4;
	attr->min_rnr_timer = 1;
	/* 4.096 us * 2^8 = 1 ms, eight times: enough for a busy machine to answer. */
	attr->timeout = 8;
	attr->retry_cnt = 7;
	attr->rnr_retry = 7;
	attr->path_mig_state = IB_MIG_MIGRATED;

	switch (state) {
	case IB_QPS_INIT:
		if (special)
			return IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY;
		return IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
		       (connected ? IB_QP_ACCESS_FLAGS : IB_QP_QKEY);
	case IB_QPS_RTR:
		if (qp->type == IB_QPT_RC)
			return IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			       IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			       IB_QP_MIN_RNR_TIMER;
		if (qp->type == IB_QPT_UC)
			return IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			       IB_QP_RQ_PSN;
		return IB_QP_STATE;
	case IB_QPS_RTS:
		if (qp->type == IB_QPT_RC)
			return IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			       IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC;
		return IB_QP_STATE | IB_QP_SQ_PSN;
	default:
		return IB_QP_STATE;
	}
}

void rig_step(struct rig_qp *qp, enum ib_qp_state state, struct rig_qp *peer)
{
	struct ib_qp_attr attr;
	int mask = rig_attr(qp, state, peer, &attr);
	int ret;

	/* Coming back from SQD, nothing is required. */
	if (state == IB_QPS_RTS && rig_state(qp) != IB_QPS_RTR)
		mask = IB_QP_STATE;
	ret = ib_modify_qp(qp->qp, &attr, mask);
	KUNIT_ASSERT_EQ_MSG(qp->rig->test, ret, 0, "%s to %s", rig_type_name(qp->type),
			    rig_state_name(state));
}

static void fail_a_send(struct rig_qp *qp, struct rig_qp *peer)
{
	struct kunit *test = qp->rig->test;
	struct rdma_ah_attr attr;
	struct rig_wr wr;
	struct ib_ah *ah;

	rig_ah_attr(qp->rig, &attr);
	ah = rdma_create_ah(qp->rig->pd, &attr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ah));
	rig_wr(qp, &wr, IB_WR_SEND, 1, qp, 8);
	wr.sge.lkey = 0xdeadbe00;
	if (qp->type == IB_QPT_UD) {
		wr.ud.ah = ah;
		wr.ud.remote_qpn = peer->num;
		wr.ud.remote_qkey = RIG_QKEY;
	}
	KUNIT_ASSERT_EQ(test, 0, rig_post(qp, &wr));
	rig_expect_wc(qp->scq, 1, IB_WC_LOC_PROT_ERR);
	rig_wait_state(qp, IB_QPS_SQE);
	rdma_destroy_ah(ah, 0);
}

void rig_bring(struct rig_qp *qp, enum ib_qp_state state, struct rig_qp *peer)
{
	static const enum ib_qp_state way[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS,
						IB_QPS_SQD };
	int i;

	if (state == IB_QPS_RESET)
		return;
	if (state == IB_QPS_ERR) {
		rig_step(qp, IB_QPS_INIT, peer);
		rig_step(qp, IB_QPS_ERR, peer);
		return;
	}
	if (state == IB_QPS_SQE) {
		rig_bring(qp, IB_QPS_RTS, peer);
		fail_a_send(qp, peer);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(way); i++) {
		rig_step(qp, way[i], peer);
		if (way[i] == state)
			return;
	}
	KUNIT_ASSERT_FALSE_MSG(qp->rig->test, true, "no way to %s", rig_state_name(state));
}

int rig_set_state(struct rig_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp->qp, &attr, IB_QP_STATE);
}

void rig_query(struct rig_qp *qp, struct ib_qp_attr *attr, struct ib_qp_init_attr *init)
{
	struct ib_qp_init_attr unwanted;

	memset(attr, 0, sizeof(*attr));
	memset(init ?: &unwanted, 0, sizeof(unwanted));
	KUNIT_ASSERT_EQ(qp->rig->test, 0,
			ib_query_qp(qp->qp, attr, (IB_QP_DEST_QPN << 1) - 1, init ?: &unwanted));
}

enum ib_qp_state rig_state(struct rig_qp *qp)
{
	struct ib_qp_attr attr;

	rig_query(qp, &attr, NULL);
	KUNIT_EXPECT_EQ(qp->rig->test, attr.qp_state, attr.cur_qp_state);
	return attr.qp_state;
}

static bool state_is(struct rig_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};

	return !ib_query_qp(qp->qp, &attr, IB_QP_STATE, &init) && attr.qp_state == state;
}

/* A change of state by the device has no upcall of its own: look again. */
void rig_wait_state(struct rig_qp *qp, enum ib_qp_state state)
{
	unsigned long end = jiffies + RIG_PATIENCE;

	while (!state_is(qp, state) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_STREQ(qp->rig->test, rig_state_name(rig_state(qp)), rig_state_name(state));
}

struct rig_pair rig_pair(struct rig *rig, enum ib_qp_type type, const struct rig_qp_opt *opt)
{
	struct rig_pair pair = { .a = rig_qp(rig, type, opt), .b = rig_qp(rig, type, opt) };

	rig_bring(pair.a, IB_QPS_RTS, pair.b);
	rig_bring(pair.b, IB_QPS_RTS, pair.a);
	return pair;
}

/* --- work ------------------------------------------------------------------------------ */

void rig_wr(struct rig_qp *qp, struct rig_wr *wr, enum ib_wr_opcode op, u64 wr_id, void *buf,
	    u32 len)
{
	memset(wr, 0, sizeof(*wr));
	wr->sge.addr = (uintptr_t)buf;
	wr->sge.length = len;
	wr->sge.lkey = qp->rig->mr->lkey;
	wr->wr.wr_id = wr_id;
	wr->wr.opcode = op;
	wr->wr.send_flags = IB_SEND_SIGNALED;
	wr->wr.sg_list = len ? &wr->sge : NULL;
	wr->wr.num_sge = len ? 1 : 0;
}

void rig_remote(struct rig_qp *qp, struct rig_wr *wr, void *remote, struct ib_mr *mr)
{
	u32 rkey = (mr ?: qp->rig->mr)->rkey;

	if (wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	    wr->wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		wr->atomic.remote_addr = (uintptr_t)remote;
		wr->atomic.rkey = rkey;
	} else {
		wr->rdma.remote_addr = (uintptr_t)remote;
		wr->rdma.rkey = rkey;
	}
}

int rig_post(struct rig_qp *qp, struct rig_wr *wr)
{
	const struct ib_send_wr *bad = NULL;

	return ib_post_send(qp->qp, &wr->wr, &bad);
}

int rig_post_recv(struct rig_qp *qp, u64 wr_id, void *buf, u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)buf,
		.length = len,
		.lkey = qp->rig->mr->lkey,
	};
	struct ib_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = len ? &sge : NULL,
		.num_sge = len ? 1 : 0,
	};
	const struct ib_recv_wr *bad = NULL;

	return ib_post_recv(qp->qp, &wr, &bad);
}

int rig_post_srq(struct rig_srq *srq, u64 wr_id, void *buf, u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)buf,
		.length = len,
		.lkey = srq->rig->mr->lkey,
	};
	struct ib_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = len ? &sge : NULL,
		.num_sge = len ? 1 : 0,
	};
	const struct ib_recv_wr *bad = NULL;

	return ib_post_srq_recv(srq->srq, &wr, &bad);
}

/* --- waiting ------------------------------------------------------------------------------ */

/* Poll, and arm before believing that there is nothing. */
static bool next_wc(struct rig_cq *cq, struct ib_wc *wc)
{
	if (ib_poll_cq(cq->cq, 1, wc) == 1)
		return true;
	ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	return ib_poll_cq(cq->cq, 1, wc) == 1;
}

bool rig_try_wc(struct rig_cq *cq, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	return wait_event_timeout(cq->wait, next_wc(cq, wc), RIG_PATIENCE) > 0;
}

void rig_wc(struct rig_cq *cq, struct ib_wc *wc)
{
	KUNIT_ASSERT_TRUE_MSG(cq->rig->test, rig_try_wc(cq, wc), "no completion came");
}

void rig_expect_wc(struct rig_cq *cq, u64 wr_id, enum ib_wc_status status)
{
	struct ib_wc wc;

	rig_wc(cq, &wc);
	KUNIT_EXPECT_EQ(cq->rig->test, wc.wr_id, wr_id);
	KUNIT_EXPECT_STREQ(cq->rig->test, ib_wc_status_msg(wc.status), ib_wc_status_msg(status));
}

void rig_expect_empty(struct rig_cq *cq)
{
	struct ib_wc wc = {};
	int n = ib_poll_cq(cq->cq, 1, &wc);

	KUNIT_EXPECT_EQ_MSG(cq->rig->test, n, 0, "wr_id %llu, %s", wc.wr_id,
			    ib_wc_status_msg(wc.status));
}

bool rig_saw_event(struct rig_qp *qp, enum ib_event_type event, int count)
{
	return atomic_read(&qp->events[event]) == count;
}

void rig_wait_event(struct rig_qp *qp, enum ib_event_type event, int count)
{
	wait_event_timeout(qp->wait, atomic_read(&qp->events[event]) >= count, RIG_PATIENCE);
	KUNIT_EXPECT_EQ_MSG(qp->rig->test, atomic_read(&qp->events[event]), count, "event %s",
			    ib_event_msg(event));
}

const char *rig_state_name(enum ib_qp_state state)
{
	static const char *const name[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < ARRAY_SIZE(name) ? name[state] : "?";
}

const char *rig_type_name(enum ib_qp_type type)
{
	static const char *const name[] = { "SMI", "GSI", "RC", "UC", "UD" };

	return type < ARRAY_SIZE(name) ? name[type] : "?";
}

const char *rig_op_name(enum ib_wr_opcode op)
{
	switch (op) {
	case IB_WR_SEND:
		return "SEND";
	case IB_WR_SEND_WITH_IMM:
		return "SEND_WITH_IMM";
	case IB_WR_SEND_WITH_INV:
		return "SEND_WITH_INV";
	case IB_WR_RDMA_WRITE:
		return "RDMA_WRITE";
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return "RDMA_WRITE_WITH_IMM";
	case IB_WR_RDMA_READ:
		return "RDMA_READ";
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return "CMP_AND_SWP";
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return "FETCH_AND_ADD";
	default:
		return "?";
	}
}
