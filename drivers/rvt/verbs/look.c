// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * look.c - for people who look: the details of "rdma -dd resource show", and the
 * file queue_pairs of each device in debugfs.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <net/netlink.h>
#include <rdma/restrack.h>

#include "rvt.h"

static struct dentry *look_root;

/* --- rdma resource --------------------------------------------------------- */

/**
 * struct look_value - one line of an object's details
 * @name: as shown
 * @value: shown in decimal
 */
struct look_value {
	const char *name;
	u64 value;
};

/*
 * Where 64 bits have to be aligned, ib_core puts a gap before them, at which the
 * rdma program stops: only what needs them is sent so.
 */
static int look_put_one(struct sk_buff *msg, const struct look_value *value)
{
	if (value->value > U32_MAX)
		return rdma_nl_put_driver_u64(msg, value->name, value->value);
	return rdma_nl_put_driver_u32(msg, value->name, value->value);
}

/* The list ends with a value that has no name. */
static int look_put(struct sk_buff *msg, const struct look_value *values)
{
	struct nlattr *table;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (; values->name; values++) {
		if (look_put_one(msg, values)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

int rvt_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct rvt_qp_stat stat;

	rvt_core_qp_stat(to_rvt_qp(ibqp)->core, &stat);
	return look_put(msg, (const struct look_value[]){
		{ "sq_size", stat.sq_size },
		{ "sq_head", stat.sq_head },
		{ "sq_cur", stat.sq_cur },
		{ "sq_last", stat.sq_last },
		{ "rq_size", stat.rq.size },
		{ "rq_head", stat.rq.head },
		{ "rq_tail", stat.rq.tail },
		{ "s_flags", stat.s_flags },
		{}
	});
}

int rvt_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct rvt_cq_stat stat;

	rvt_core_cq_stat(to_rvt_cq(ibcq)->core, &stat);
	return look_put(msg, (const struct look_value[]){
		{ "size", stat.ring.size },
		{ "head", stat.ring.head },
		{ "tail", stat.ring.tail },
		{ "armed", stat.armed },
		{ "solicited", stat.solicited },
		{ "overrun", stat.overrun },
		{}
	});
}

int rvt_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct rvt_core_srq *core = to_rvt_srq(ibsrq)->core;
	u32 max_wr, max_sge, limit;
	struct rvt_ring_stat ring;

	rvt_core_srq_query(core, &max_wr, &max_sge, &limit);
	rvt_core_srq_stat(core, &ring);
	return look_put(msg, (const struct look_value[]){
		{ "size", ring.size },
		{ "head", ring.head },
		{ "tail", ring.tail },
		{ "max_sge", max_sge },
		{ "limit", limit },
		{}
	});
}

int rvt_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct rvt_mr_stat stat;

	rvt_core_mr_stat(to_rvt_mr(ibmr)->core, &stat);
	return look_put(msg, (const struct look_value[]){
		{ "usable", stat.usable },
		{ "iova", stat.iova },
		{ "page_size", BIT_ULL(stat.page_shift) },
		{ "pages", to_rvt_mr(ibmr)->npages },
		{ "access", stat.access },
		{}
	});
}

/* --- debugfs ------------------------------------------------------------------ */

static const char *look_type(enum rvt_qp_type type)
{
	static const char *const name[] = { "SMI", "GSI", "RC", "UC", "UD" };

	return type < ARRAY_SIZE(name) ? name[type] : "?";
}

static const char *look_state(enum rvt_qp_state state)
{
	static const char *const name[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < ARRAY_SIZE(name) ? name[state] : "?";
}

static void look_one_qp(struct rvt_core_qp *qp, void *arg)
{
	struct seq_file *file = arg;
	struct rvt_qp_stat stat;

	rvt_core_qp_stat(qp, &stat);
	seq_printf(file, "0x%06x %-4s %-5s 0x%06x %6u/%u/%u/%u %6u/%u/%u 0x%06x 0x%06x 0x%x %s\n",
		   stat.qpn, look_type(stat.type), look_state(stat.state), stat.dest_qpn,
		   stat.sq_head, stat.sq_cur, stat.sq_last, stat.sq_size,
		   stat.rq.head, stat.rq.tail, stat.rq.size,
		   stat.sq_psn, stat.rq_psn, stat.s_flags, stat.user ? "user" : "kernel");
}

static int queue_pairs_show(struct seq_file *file, void *unused)
{
	struct rvt_ib_dev *dev = file->private;

	seq_puts(file, "qpn type state dest sq:head/cur/last/size rq:head/tail/size sq_psn rq_psn flags owner\n");
	rvt_core_qp_for_each(dev->core, look_one_qp, file);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queue_pairs);

/* The device is registered and has its name. */
void rvt_look_add(struct rvt_ib_dev *dev)
{
	dev->debugfs = debugfs_create_dir(dev_name(&dev->ibdev.dev), look_root);
	debugfs_create_file("queue_pairs", 0400, dev->debugfs, dev, &queue_pairs_fops);
}

/* Waits for readers; the core's device may go afterwards. */
void rvt_look_remove(struct rvt_ib_dev *dev)
{
	debugfs_remove_recursive(dev->debugfs);
	dev->debugfs = NULL;
}

void rvt_look_init(void)
{
	look_root = debugfs_create_dir("rvt", NULL);
}

void rvt_look_exit(void)
{
	debugfs_remove_recursive(look_root);
}
