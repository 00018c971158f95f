// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* cq.c - completion queues */
#include "rvt.h"

/* Entries that a kernel consumer's poll takes at a time. */
#define CQ_POLL_BATCH 8

static bool cqe_ok(u32 cqe)
{
	return cqe >= 1 && cqe <= RVT_MAX_CQE;
}

int rvt_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct rvt_ib_dev *dev = to_rvt_dev(ibcq->device);
	struct rvt_ib_cq *cq = to_rvt_cq(ibcq);
	struct rvt_cq_ring *memory = NULL;
	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!cqe_ok(attr->cqe))
		return -EINVAL;
	mutex_init(&cq->resize);

	if (udata) {
		if (!rvt_ring_wanted(udata))
			return -EINVAL;
		cq->ring = rvt_ring_create(udata, rvt_cq_ring_size(attr->cqe));
		if (IS_ERR(cq->ring))
			return PTR_ERR(cq->ring);
		memory = rvt_ring_memory(cq->ring);
	}

	ret = rvt_core_cq_create(dev->core, attr->cqe, memory, ibcq, &cq->core);
	if (ret)
		goto err_ring;
	if (udata) {
		ret = rvt_ring_respond(udata, cq->ring);
		if (ret)
			goto err_core;
	}
	ibcq->cqe = attr->cqe;
	ibdev_dbg(ibcq->device, "CQ %p: created, %u entries, vector %u\n", ibcq, attr->cqe,
		  attr->comp_vector);
	return 0;

err_core:
	rvt_core_cq_destroy(cq->core);
err_ring:
	rvt_ring_destroy(cq->ring);
	return ret;
}

/* The process learns the new ring's offset before the rings are exchanged. */
int rvt_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	struct rvt_ib_cq *cq = to_rvt_cq(ibcq);
	struct rvt_ring *ring = NULL;
	int ret;

	if (!cqe_ok(cqe))
		return -EINVAL;

	if (udata) {
		if (!rvt_ring_wanted(udata))
			return -EINVAL;
		ret = rvt_ring_respond(udata, NULL);
		if (ret)
			return ret;
		ring = rvt_ring_create(udata, rvt_cq_ring_size(cqe));
		if (IS_ERR(ring))
			return PTR_ERR(ring);
		ret = rvt_ring_respond(udata, ring);
		if (ret)
			goto err_ring;
	}

	mutex_lock(&cq->resize);
	ret = rvt_core_cq_resize(cq->core, cqe, ring ? rvt_ring_memory(ring) : NULL);
	if (!ret) {
		swap(cq->ring, ring);
		ibcq->cqe = cqe;
	}
	mutex_unlock(&cq->resize);
	ibdev_dbg(ibcq->device, "CQ %p: resize to %u entries: %d\n", ibcq, cqe, ret);

err_ring:
	/* The old one, or the new one that nobody wanted. */
	rvt_ring_destroy(ring);
	return ret;
}

int rvt_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct rvt_ib_cq *cq = to_rvt_cq(ibcq);

	rvt_core_cq_destroy(cq->core);
	rvt_ring_destroy(cq->ring);
	ibdev_dbg(ibcq->device, "CQ %p: destroyed\n", ibcq);
	return 0;
}

/*
 * Numbers of the user's interface to the kernel's, which differ for the
 * opcodes and flags below.
 */
static enum ib_wc_opcode wc_opcode(u32 opcode)
{
	switch (opcode) {
	case RVT_WC_SEND:
	case RVT_WC_RDMA_WRITE:
	case RVT_WC_RDMA_READ:
	case RVT_WC_COMP_SWAP:
	case RVT_WC_FETCH_ADD:
	case RVT_WC_LOCAL_INV:
	case RVT_WC_RECV:
	case RVT_WC_RECV_RDMA_WITH_IMM:
		return opcode;
	case RVT_WC_REG_MR:
		return IB_WC_REG_MR;
	default:
		WARN_ONCE(1, "rvt: completion with opcode %u\n", opcode);
		return IB_WC_SEND;
	}
}

static enum ib_wc_status wc_status(u32 status)
{
	if (WARN_ONCE(status > IB_WC_GENERAL_ERR, "rvt: completion with status %u\n", status))
		return IB_WC_GENERAL_ERR;
	return status;
}

static void wc_to_ib(struct ib_wc *to, const struct rvt_kernel_wc *from)
{
	const struct rvt_wc *wc = &from->wc;

	memset(to, 0, sizeof(*to));
	to->wr_id = wc->wr_id;
	to->status = wc_status(wc->status);
	to->opcode = wc_opcode(wc->opcode);
	to->vendor_err = wc->vendor_err;
	to->byte_len = wc->byte_len;
	to->qp = from->qp_ctx;
	to->src_qp = wc->src_qp;
	to->slid = wc->slid;
	to->pkey_index = wc->pkey_index;
	to->sl = wc->sl;
	to->dlid_path_bits = wc->dlid_path_bits;
	to->port_num = wc->port_num;
	if (wc->wc_flags & RVT_WC_GRH)
		to->wc_flags |= IB_WC_GRH;
	if (wc->wc_flags & RVT_WC_WITH_IMM) {
		to->wc_flags |= IB_WC_WITH_IMM;
		to->ex.imm_data = (__force __be32)wc->imm_data;
	} else if (wc->wc_flags & RVT_WC_WITH_INV) {
		to->wc_flags |= IB_WC_WITH_INVALIDATE;
		to->ex.invalidate_rkey = wc->imm_data;
	}
}

int rvt_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct rvt_ib_cq *cq = to_rvt_cq(ibcq);
	struct rvt_kernel_wc batch[CQ_POLL_BATCH];
	int total = 0;
	int want, got, i;

	do {
		want = min(num_entries - total, CQ_POLL_BATCH);
		got = rvt_core_cq_poll(cq->core, want, batch);
		if (got < 0)
			return got;
		for (i = 0; i < got; i++)
			wc_to_ib(&wc[total++], &batch[i]);
	} while (got == want && total < num_entries);
	return total;
}

int rvt_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct rvt_ib_cq *cq = to_rvt_cq(ibcq);

	return rvt_core_cq_arm(cq->core, (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED,
			       flags & IB_CQ_REPORT_MISSED_EVENTS);
}

/* The core's upcall: an armed queue got an entry. Context: any. */
void rvt_cq_comp(void *ctx)
{
	struct ib_cq *ibcq = ctx;

	if (ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

void rvt_cq_event(void *ctx, enum rvt_event event)
{
	struct ib_cq *ibcq = ctx;
	struct ib_event ev = {
		.device = ibcq->device,
		.element.cq = ibcq,
		.event = (enum ib_event_type)event,
	};

	ibdev_dbg(ibcq->device, "CQ %p: %s\n", ibcq, ib_event_msg(ev.event));
	if (ibcq->event_handler)
		ibcq->event_handler(&ev, ibcq->cq_context);
}
