// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* srq.c - shared receive queues */
#include "rvt.h"

static bool srq_size_ok(u32 max_wr, u32 max_sge)
{
	return max_wr && max_wr <= RVT_MAX_SRQ_WR && max_sge && max_sge <= RVT_MAX_SGE;
}

int rvt_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct rvt_ib_srq *srq = to_rvt_srq(ibsrq);
	struct ib_srq_attr *attr = &init->attr;
	struct rvt_rq_ring *memory = NULL;
	int ret;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!srq_size_ok(attr->max_wr, attr->max_sge))
		return -EINVAL;
	mutex_init(&srq->resize);

	if (udata) {
		if (!rvt_ring_wanted(udata))
			return -EINVAL;
		srq->ring = rvt_ring_create(udata, rvt_rq_ring_size(attr->max_wr, attr->max_sge));
		if (IS_ERR(srq->ring))
			return PTR_ERR(srq->ring);
		memory = rvt_ring_memory(srq->ring);
	}

	ret = rvt_core_srq_create(to_rvt_pd(ibsrq->pd)->core, attr->max_wr, attr->max_sge,
				  attr->srq_limit, memory, ibsrq, &srq->core);
	if (ret)
		goto err_ring;
	if (udata) {
		ret = rvt_ring_respond(udata, srq->ring);
		if (ret)
			goto err_core;
	}
	ibdev_dbg(ibsrq->device, "SRQ %p: created, %u receives of %u, limit %u\n", ibsrq,
		  attr->max_wr, attr->max_sge, attr->srq_limit);
	return 0;

err_core:
	rvt_core_srq_destroy(srq->core);
err_ring:
	rvt_ring_destroy(srq->ring);
	return ret;
}

/*
 * The process gives, in place of a response, the address where it wants the
 * new ring's offset.
 */
static int srq_tell_offset(u64 __user *where, const struct rvt_ring *ring)
{
	u64 offset = ring ? rvt_ring_offset(ring) : 0;

	return copy_to_user(where, &offset, sizeof(offset)) ? -EFAULT : 0;
}

static int srq_resize(struct rvt_ib_srq *srq, u32 max_wr, const u32 *limit,
		      struct ib_udata *udata)
{
	u64 __user *where = NULL;
	struct rvt_ring *ring = NULL;
	u32 old_wr, max_sge, old_limit;
	u64 addr;
	int ret;

	rvt_core_srq_query(srq->core, &old_wr, &max_sge, &old_limit);
	if (!srq_size_ok(max_wr, max_sge))
		return -EINVAL;

	if (udata) {
		if (udata->inlen < sizeof(addr))
			return -EINVAL;
		if (ib_copy_from_udata(&addr, udata, sizeof(addr)))
			return -EFAULT;
		where = u64_to_user_ptr(addr);
		/* Can it be written at all? Ask before anything is made. */
		ret = srq_tell_offset(where, NULL);
		if (ret)
			return ret;
		ring = rvt_ring_create(udata, rvt_rq_ring_size(max_wr, max_sge));
		if (IS_ERR(ring))
			return PTR_ERR(ring);
		ret = srq_tell_offset(where, ring);
		if (ret)
			goto err_ring;
	}

	mutex_lock(&srq->resize);
	ret = rvt_core_srq_resize(srq->core, max_wr, limit, ring ? rvt_ring_memory(ring) : NULL);
	if (!ret)
		swap(srq->ring, ring);
	mutex_unlock(&srq->resize);
	/* The error says it all; this is only tidy. */
	if (ret && where)
		srq_tell_offset(where, NULL);

err_ring:
	/* The old one, or the new one that nobody wanted. */
	rvt_ring_destroy(ring);
	return ret;
}

int rvt_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct rvt_ib_srq *srq = to_rvt_srq(ibsrq);
	int ret = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR)
		ret = srq_resize(srq, attr->max_wr, mask & IB_SRQ_LIMIT ? &attr->srq_limit : NULL,
				 udata);
	else if (mask & IB_SRQ_LIMIT)
		ret = rvt_core_srq_set_limit(srq->core, attr->srq_limit);
	ibdev_dbg(ibsrq->device, "SRQ %p: modify, mask 0x%x, receives %u, limit %u: %d\n", ibsrq,
		  mask, attr->max_wr, attr->srq_limit, ret);
	return ret;
}

int rvt_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	rvt_core_srq_query(to_rvt_srq(ibsrq)->core, &attr->max_wr, &attr->max_sge,
			   &attr->srq_limit);
	return 0;
}

int rvt_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct rvt_ib_srq *srq = to_rvt_srq(ibsrq);

	rvt_core_srq_destroy(srq->core);
	rvt_ring_destroy(srq->ring);
	ibdev_dbg(ibsrq->device, "SRQ %p: destroyed\n", ibsrq);
	return 0;
}

void rvt_srq_event(void *ctx, enum rvt_event event)
{
	struct ib_srq *ibsrq = ctx;
	struct ib_event ev = {
		.device = ibsrq->device,
		.element.srq = ibsrq,
		.event = (enum ib_event_type)event,
	};

	ibdev_dbg(ibsrq->device, "SRQ %p: %s\n", ibsrq, ib_event_msg(ev.event));
	if (ibsrq->event_handler)
		ibsrq->event_handler(&ev, ibsrq->srq_context);
}
