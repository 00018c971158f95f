// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rvt_kbench.ko: what a kernel consumer pays for a message, without system
 * calls; and what memcpy takes for the same bytes. It measures when it is
 * loaded and says so in the kernel's log, one figure a line:
 *
 *	rvt_kbench: value NAME DEVICE NANOSECONDS
 *
 *	insmod rvt_kbench.ko device=rvt0
 */
#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

static char *device = "rvt0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "which device to measure; none: only memcpy");

static unsigned int rounds = 2000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "messages of each small kind, times LIST");

#define LIST 64
#define MOST_BYTES SZ_1M
#define PATIENCE (60 * HZ)

struct side {
	struct ib_cq *cq;
	struct ib_qp *qp;
};

static struct {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_mr *mr; /* all of memory */
	struct side a, b;
	struct completion done;
	void *from, *to;
	u64 from_dma, to_dma;
} bench;

/* --- the device ------------------------------------------------------------------ */

static int client_add(struct ib_device *dev)
{
	if (!strcmp(dev_name(&dev->dev), device))
		bench.dev = dev;
	return 0;
}

static void client_remove(struct ib_device *dev, void *data)
{
}

static struct ib_client client = {
	.name = "rvt_kbench",
	.add = client_add,
	.remove = client_remove,
};

static void on_completion(struct ib_cq *cq, void *context)
{
	complete(&bench.done);
}

static void end(struct side *s)
{
	if (s->qp)
		ib_destroy_qp(s->qp);
	if (s->cq)
		ib_destroy_cq(s->cq);
	s->qp = NULL;
	s->cq = NULL;
}

static int begin(struct side *s)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 4 * LIST };
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = LIST, .max_recv_wr = LIST,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq = ib_create_cq(bench.dev, on_completion, NULL, NULL, &cq_attr);
	struct ib_qp *qp;

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	s->cq = cq;
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ib_create_qp(bench.pd, &attr);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	s->qp = qp;
	return 0;
}

static int connect_to(struct ib_qp *qp, struct ib_qp *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_ATOMIC,
		.dest_qp_num = peer->qp_num,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	struct ib_port_attr port;
	union ib_gid gid = {};
	int ret = ib_query_port(bench.dev, 1, &port);

	if (ret)
		return ret;
	attr.path_mtu = port.active_mtu;
	attr.ah_attr.type = rdma_ah_find_type(bench.dev, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	if (attr.ah_attr.type == RDMA_AH_ATTR_TYPE_IB) {
		rdma_ah_set_dlid(&attr.ah_attr, port.lid);
	} else {
		/* Entry 0 is RoCE v1. */
		rdma_query_gid(bench.dev, 1, 1, &gid);
		rdma_ah_set_grh(&attr.ah_attr, &gid, 0, 1, 64, 0);
	}
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
				      IB_QP_ACCESS_FLAGS);
	attr.qp_state = IB_QPS_RTR;
	ret = ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
					     IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					     IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	attr.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					      IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					      IB_QP_MAX_QP_RD_ATOMIC);
}

/* --- messages ------------------------------------------------------------------------ */

static int post_receives(u32 bytes, int list)
{
	struct ib_sge sge = { bench.to_dma, bytes, bench.mr->lkey };
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	int ret = 0;

	while (list-- && !ret)
		ret = ib_post_recv(bench.b.qp, &wr, NULL);
	return ret;
}

/* Each by a post of its own; only the last completes. */
static int post_sends(enum ib_wr_opcode op, u32 bytes, int list)
{
	struct ib_sge sge = { bench.from_dma, bytes, bench.mr->lkey };
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
	} u = {};
	int ret = 0;

	if (op == IB_WR_ATOMIC_FETCH_AND_ADD) {
		u.atomic.remote_addr = bench.to_dma;
		u.atomic.rkey = bench.mr->rkey;
		u.atomic.compare_add = 1;
	} else {
		u.rdma.remote_addr = bench.to_dma;
		u.rdma.rkey = bench.mr->rkey;
	}
	u.wr.opcode = op;
	u.wr.sg_list = &sge;
	u.wr.num_sge = 1;
	while (list && !ret) {
		if (!--list)
			u.wr.send_flags = IB_SEND_SIGNALED;
		ret = ib_post_send(bench.a.qp, &u.wr, NULL);
	}
	return ret;
}

static int collect(struct ib_cq *cq, int n)
{
	struct ib_wc wc;

	while (n) {
		if (ib_poll_cq(cq, 1, &wc) != 1)
			return -EIO;
		if (wc.status) {
			pr_err("rvt_kbench: %s\n", ib_wc_status_msg(wc.status));
			return -EIO;
		}
		n--;
	}
	return 0;
}

static int messages(enum ib_wr_opcode op, u32 bytes, int list)
{
	int ret = 0;

	reinit_completion(&bench.done);
	if (op == IB_WR_SEND)
		ret = post_receives(bytes, list);
	ib_req_notify_cq(bench.a.cq, IB_CQ_NEXT_COMP);
	ret = ret ?: post_sends(op, bytes, list);
	if (!ret && !wait_for_completion_timeout(&bench.done, PATIENCE))
		ret = -ETIMEDOUT;
	ret = ret ?: collect(bench.a.cq, 1);
	if (op == IB_WR_SEND)
		ret = ret ?: collect(bench.b.cq, list);
	return ret;
}

/* --- figures --------------------------------------------------------------------------- */

static void say(const char *name, u32 bytes, int list, u64 ns, u32 n)
{
	char what[48];
	u64 tenths = div_u64(10 * ns, n);
	u32 tenth;

	snprintf(what, sizeof(what), list > 1 ? "%s-%u-list-%d" : "%s-%u", name, bytes, list);
	tenths = div_u64_rem(tenths, 10, &tenth);
	pr_info("rvt_kbench: value %s %s %llu.%u\n", what, device, tenths, tenth);
}

static int measure(const char *name, enum ib_wr_opcode op, u32 bytes, int list)
{
	/* Large ones fewer times. */
	u32 n = max_t(u32, rounds / (1 + bytes / SZ_4K), 20), i;
	int ret = messages(op, bytes, list);
	u64 start = ktime_get_ns();

	for (i = 0; i < n && !ret; i++) {
		ret = messages(op, bytes, list);
		cond_resched();
	}
	if (ret)
		pr_err("rvt_kbench: %s of %u bytes: error %d\n", name, bytes, ret);
	else
		say(name, bytes, list, ktime_get_ns() - start, n * list);
	return ret;
}

/* The kernel's function, not what the compiler makes of a copy in its place. */
static void *(*volatile copy)(void *to, const void *from, size_t n) = memcpy;

static void measure_memcpy(u32 bytes)
{
	u32 n = max_t(u32, LIST * rounds / (1 + bytes / SZ_4K), 20), i;
	u64 start = ktime_get_ns();

	for (i = 0; i < n; i++) {
		copy(bench.to, bench.from, bytes);
		if (!(i % 64))
			cond_resched();
	}
	say("memcpy", bytes, 1, ktime_get_ns() - start, n);
}

static int measure_device(void)
{
	static const struct {
		const char *name;
		enum ib_wr_opcode op;
	} ops[] = {
		{ "send", IB_WR_SEND },
		{ "write", IB_WR_RDMA_WRITE },
		{ "read", IB_WR_RDMA_READ },
		{ "fetch-add", IB_WR_ATOMIC_FETCH_AND_ADD },
	};
	static const u32 large[] = { SZ_4K, SZ_64K, SZ_1M };
	int i, ret = 0;

	for (i = 0; i < ARRAY_SIZE(ops) && !ret; i++) {
		ret = measure(ops[i].name, ops[i].op, 8, 1);
		ret = ret ?: measure(ops[i].name, ops[i].op, 8, LIST);
	}
	for (i = 0; i < ARRAY_SIZE(large) && !ret; i++)
		ret = measure("write", IB_WR_RDMA_WRITE, large[i], large[i] == SZ_4K ? LIST : 4);
	return ret;
}

/* ib_core's own key for all of memory allows no atomics. */
static struct ib_mr *all_of_memory(void)
{
	struct ib_mr *mr = bench.dev->ops.get_dma_mr(bench.pd, IB_ACCESS_LOCAL_WRITE |
						IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
						IB_ACCESS_REMOTE_ATOMIC);

	if (IS_ERR(mr))
		return mr;
	mr->device = bench.dev;
	mr->pd = bench.pd;
	mr->type = IB_MR_TYPE_DMA;
	mr->uobject = NULL;
	atomic_inc(&bench.pd->usecnt);
	return mr;
}

static int with_pairs(void)
{
	int ret;

	bench.from_dma = ib_dma_map_single(bench.dev, bench.from, MOST_BYTES, DMA_TO_DEVICE);
	bench.to_dma = ib_dma_map_single(bench.dev, bench.to, MOST_BYTES, DMA_FROM_DEVICE);
	ret = begin(&bench.a);
	ret = ret ?: begin(&bench.b);
	ret = ret ?: connect_to(bench.a.qp, bench.b.qp);
	ret = ret ?: connect_to(bench.b.qp, bench.a.qp);
	ret = ret ?: measure_device();
	end(&bench.a);
	end(&bench.b);
	ib_dma_unmap_single(bench.dev, bench.to_dma, MOST_BYTES, DMA_FROM_DEVICE);
	ib_dma_unmap_single(bench.dev, bench.from_dma, MOST_BYTES, DMA_TO_DEVICE);
	return ret;
}

static int with_memory(void)
{
	int ret;

	bench.pd = ib_alloc_pd(bench.dev, 0);
	if (IS_ERR(bench.pd))
		return PTR_ERR(bench.pd);
	bench.mr = all_of_memory();
	if (IS_ERR(bench.mr)) {
		ret = PTR_ERR(bench.mr);
	} else {
		ret = with_pairs();
		ib_dereg_mr(bench.mr);
	}
	ib_dealloc_pd(bench.pd);
	return ret;
}

static int with_device(void)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	ret = bench.dev ? with_memory() : -ENODEV;
	ib_unregister_client(&client);
	return ret;
}

static int __init rvt_kbench_init(void)
{
	static const u32 bytes[] = { SZ_4K, SZ_64K, SZ_1M };
	int i, ret = -ENOMEM;

	init_completion(&bench.done);
	bench.from = kzalloc(MOST_BYTES, GFP_KERNEL);
	bench.to = kzalloc(MOST_BYTES, GFP_KERNEL);
	if (bench.from && bench.to) {
		for (i = 0; i < ARRAY_SIZE(bytes); i++)
			measure_memcpy(bytes[i]);
		ret = strcmp(device, "none") ? with_device() : 0;
	}
	kfree(bench.to);
	kfree(bench.from);
	return ret;
}

static void __exit rvt_kbench_exit(void)
{
}

module_init(rvt_kbench_init);
module_exit(rvt_kbench_exit);

MODULE_DESCRIPTION("What a kernel consumer of an RDMA device pays");
MODULE_LICENSE("Dual BSD/GPL");
