// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * look.c - queue pairs for people who look: "rdma resource show qp -d" and
 * the file queue_pairs of each device in debugfs.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <net/netlink.h>
#include <rdma/restrack.h>

#include "rvt.h"

static struct dentry *look_root;

/* --- rdma resource --------------------------------------------------------- */

int rvt_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct rvt_qp_stat stat;
	struct nlattr *table;

	rvt_core_qp_stat(to_rvt_qp(ibqp)->core, &stat);
	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	if (rdma_nl_put_driver_u32(msg, "sq_size", stat.sq_size) ||
	    rdma_nl_put_driver_u32(msg, "sq_head", stat.sq_head) ||
	    rdma_nl_put_driver_u32(msg, "sq_cur", stat.sq_cur) ||
	    rdma_nl_put_driver_u32(msg, "sq_last", stat.sq_last) ||
	    rdma_nl_put_driver_u32(msg, "rq_size", stat.rq_size) ||
	    rdma_nl_put_driver_u32(msg, "rq_head", stat.rq_head) ||
	    rdma_nl_put_driver_u32(msg, "rq_tail", stat.rq_tail) ||
	    rdma_nl_put_driver_u32_hex(msg, "s_flags", stat.s_flags)) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
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
		   stat.rq_head, stat.rq_tail, stat.rq_size,
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
