// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * post.c - posting work requests.
 *
 * A send request is written once: into its slot of the core's send ring.
 * The pieces of a message (struct ib_sge) have the layout of the core's.
 */
#include <linux/uaccess.h>

#include "rvt.h"

static_assert(sizeof(struct ib_sge) == sizeof(struct rvt_sge));
static_assert(offsetof(struct ib_sge, addr) == offsetof(struct rvt_sge, addr));
static_assert(offsetof(struct ib_sge, length) == offsetof(struct rvt_sge, length));
static_assert(offsetof(struct ib_sge, lkey) == offsetof(struct rvt_sge, lkey));

static const struct rvt_sge *core_sge(const struct ib_sge *sge)
{
	return (const struct rvt_sge *)sge;
}

/**
 * struct posting - a list of sends on its way into the ring
 * @qp: where to
 * @scope: what the core took
 * @posted: requests committed since the lock was taken
 * @locked: the producer lock is held
 */
struct posting {
	struct rvt_ib_qp *qp;
	struct rvt_send_scope scope;
	unsigned int posted;
	bool locked;
};

/* So many requests of a process are posted without a pause. */
#define POSTING_BATCH 32

static int posting_begin(struct posting *p)
{
	int ret = rvt_core_send_begin(p->qp->core, &p->scope);

	p->posted = 0;
	p->locked = !ret;
	return ret;
}

static void posting_end(struct posting *p)
{
	if (p->locked)
		rvt_core_send_end(p->qp->core, &p->scope, p->posted);
	p->locked = false;
}

static bool is_datagram(const struct ib_qp *ibqp)
{
	return ibqp->qp_type == IB_QPT_UD || ibqp->qp_type == IB_QPT_GSI ||
	       ibqp->qp_type == IB_QPT_SMI;
}

static int fill_datagram(struct rvt_swqe *slot, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (!ud->ah)
		return -EINVAL;
	slot->ud.ah = &to_rvt_ah(ud->ah)->attr;
	slot->ud.ah_pd = to_rvt_pd(ud->ah->pd)->core;
	slot->ud.remote_qpn = ud->remote_qpn;
	slot->ud.remote_qkey = ud->remote_qkey;
	slot->ud.pkey_index = ud->pkey_index;
	return 0;
}

/* The kind of request, which the opcode tells, says what surrounds @wr. */
static int fill_slot(struct rvt_swqe *slot, const struct ib_qp *ibqp, const struct ib_send_wr *wr)
{
	slot->wr_id = wr->wr_id;
	slot->opcode = wr->opcode;
	slot->flags = wr->send_flags;
	slot->imm = (__force u32)wr->ex.imm_data;

	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		return is_datagram(ibqp) ? fill_datagram(slot, wr) : 0;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		slot->remote_addr = rdma_wr(wr)->remote_addr;
		slot->rkey = rdma_wr(wr)->rkey;
		return 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		slot->remote_addr = atomic_wr(wr)->remote_addr;
		slot->rkey = atomic_wr(wr)->rkey;
		slot->atomic.compare_add = atomic_wr(wr)->compare_add;
		slot->atomic.swap = atomic_wr(wr)->swap;
		return 0;
	case IB_WR_LOCAL_INV:
		slot->rkey = wr->ex.invalidate_rkey;
		return 0;
	case IB_WR_REG_MR:
		slot->reg.mr = to_rvt_mr(reg_wr(wr)->mr)->core;
		slot->reg.key = reg_wr(wr)->key;
		slot->reg.access = reg_wr(wr)->access;
		return 0;
	default:
		return -EINVAL;
	}
}

static int post_one(struct posting *p, const struct ib_send_wr *wr, const void *inline_data)
{
	struct rvt_core_qp *core = p->qp->core;
	int ret;

	if (wr->num_sge < 0)
		return -EINVAL;
	ret = fill_slot(rvt_core_send_slot(core), &p->qp->ibqp, wr);
	if (!ret)
		ret = rvt_post_one_wr(core, core_sge(wr->sg_list), wr->num_sge, inline_data);
	if (!ret)
		p->posted++;
	return ret;
}

/* --- inline data -------------------------------------------------------------- */

/* Where the pieces of an inline request are, and whether reading may sleep. */
enum gather { GATHER_KERNEL, GATHER_USER, GATHER_USER_NOFAULT };

static int gather_piece(u8 *to, const struct ib_sge *sge, enum gather how)
{
	switch (how) {
	case GATHER_KERNEL:
		memcpy(to, (const void *)(uintptr_t)sge->addr, sge->length);
		return 0;
	case GATHER_USER:
		return copy_from_user(to, u64_to_user_ptr(sge->addr), sge->length) ? -EFAULT : 0;
	case GATHER_USER_NOFAULT:
		return copy_from_user_nofault(to, u64_to_user_ptr(sge->addr), sge->length);
	}
	return -EINVAL;
}

static int gather(u8 *to, const struct ib_send_wr *wr, enum gather how)
{
	size_t at = 0;
	int i, ret;

	for (i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		ret = gather_piece(to + at, &wr->sg_list[i], how);
		if (ret)
			return ret;
		at += wr->sg_list[i].length;
	}
	return 0;
}

/* Does it fit, and is there data to carry? The core checks the rest. */
static int inline_check(const struct rvt_ib_qp *qp, const struct ib_send_wr *wr)
{
	u64 length = 0;
	int i;

	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		break;
	default:
		return -EINVAL;
	}
	if (wr->num_sge < 0 || wr->num_sge > RVT_MAX_SGE)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	return length <= rvt_core_qp_max_inline(qp->core) ? 0 : -EINVAL;
}

/* The data has to be brought into memory, with the producer lock free. */
static noinline int post_inline_faulting(struct posting *p, const struct ib_send_wr *wr)
{
	u8 data[RVT_MAX_INLINE];
	int ret;

	posting_end(p);
	ret = gather(data, wr, GATHER_USER);
	if (!ret)
		ret = posting_begin(p);
	return ret ? ret : post_one(p, wr, data);
}

/*
 * The poster's buffer is its own again when the call returns, so the data
 * goes into the ring now. Reading a process's memory may fault, which must
 * not happen under the producer lock: first try without, and only if that
 * fails let go of the lock, which ends the part of the list before.
 */
static int post_inline(struct posting *p, const struct ib_send_wr *wr)
{
	bool user = p->qp->ibqp.uobject;
	u8 *data;
	int ret;

	ret = inline_check(p->qp, wr);
	if (ret)
		return ret;
	data = rvt_swqe_inline(rvt_core_send_slot(p->qp->core));
	if (gather(data, wr, user ? GATHER_USER_NOFAULT : GATHER_KERNEL))
		return post_inline_faulting(p, wr);
	return post_one(p, wr, data);
}

/* --- verbs ------------------------------------------------------------------------ */

/**
 * rvt_post_send - post a list of send work requests
 * @ibqp: the queue pair
 * @wr: the list; NULL is an empty one
 * @bad_wr: result on an error: the first request that was not posted
 *
 * Requests before the bad one are posted and will complete. A process's
 * requests are executed before the call returns, as far as the budget goes;
 * a kernel consumer's always later, on the work queue.
 *
 * Locks: takes the producer lock of the queue pair (s_hlock).
 * Context: any for a kernel consumer's queue pair, process for a process's.
 * Return: 0; -EINVAL (state, opcode, pieces, key, length); -ENOMEM (the send
 * queue is full); -EFAULT (inline data cannot be read).
 */
int rvt_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct posting p = { .qp = to_rvt_qp(ibqp) };
	int ret;

	if (!wr)
		return 0;
	ret = posting_begin(&p);
	while (!ret && wr) {
		/* A process's list may be long, and interrupts are off. */
		if (p.posted == POSTING_BATCH && ibqp->uobject) {
			posting_end(&p);
			ret = posting_begin(&p);
			if (ret)
				break;
		}
		if (unlikely(wr->send_flags & IB_SEND_INLINE))
			ret = post_inline(&p, wr);
		else
			ret = post_one(&p, wr, NULL);
		if (!ret)
			wr = wr->next;
	}
	posting_end(&p);
	if (ret)
		*bad_wr = wr;
	return ret;
}

/**
 * rvt_post_recv - post a list of receive work requests to a queue pair
 * @ibqp: the queue pair; a process's has a mapped ring and is refused
 * @wr: the list; NULL is an empty one
 * @bad_wr: result on an error: the first request that was not posted
 *
 * In ERR a request completes as flushed.
 *
 * Locks: takes the producer lock of the receive queue for each request.
 * Context: any.
 * Return: 0; -EINVAL (RESET, queue pair with an SRQ, mapped ring, too many
 * pieces); -ENOMEM (the receive queue is full).
 */
int rvt_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct rvt_core_qp *core = to_rvt_qp(ibqp)->core;
	int ret;

	for (; wr; wr = wr->next) {
		ret = wr->num_sge < 0 ? -EINVAL :
		      rvt_core_recv_post(core, wr->wr_id, core_sge(wr->sg_list), wr->num_sge);
		if (ret) {
			*bad_wr = wr;
			return ret;
		}
	}
	return 0;
}

/**
 * rvt_post_srq_recv - post a list of receive work requests to an SRQ
 * @ibsrq: the SRQ; a process's has a mapped ring and is refused
 * @wr: the list; NULL is an empty one
 * @bad_wr: result on an error: the first request that was not posted
 *
 * Locks: takes the producer lock of the SRQ for each request. Context: any.
 * Return: 0; -EINVAL (mapped ring, too many pieces); -ENOMEM (full).
 */
int rvt_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct rvt_core_srq *core = to_rvt_srq(ibsrq)->core;
	int ret;

	for (; wr; wr = wr->next) {
		ret = wr->num_sge < 0 ? -EINVAL :
		      rvt_core_srq_post(core, wr->wr_id, core_sge(wr->sg_list), wr->num_sge);
		if (ret) {
			*bad_wr = wr;
			return ret;
		}
	}
	return 0;
}
