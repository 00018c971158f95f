// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* qp.c - queue pairs: create, modify, query, destroy */
#include "rvt.h"

/* --- attributes in ib_core's and in the core's form --------------------------- */

static void cap_from_ib(struct rvt_qp_cap *cap, const struct ib_qp_cap *ibcap)
{
	cap->max_send_wr = ibcap->max_send_wr;
	cap->max_recv_wr = ibcap->max_recv_wr;
	cap->max_send_sge = ibcap->max_send_sge;
	cap->max_recv_sge = ibcap->max_recv_sge;
	cap->max_inline_data = ibcap->max_inline_data;
}

static void cap_to_ib(struct ib_qp_cap *ibcap, const struct rvt_qp_cap *cap)
{
	ibcap->max_send_wr = cap->max_send_wr;
	ibcap->max_recv_wr = cap->max_recv_wr;
	ibcap->max_send_sge = cap->max_send_sge;
	ibcap->max_recv_sge = cap->max_recv_sge;
	ibcap->max_inline_data = cap->max_inline_data;
}

/* Only what @mask names is meaningful in @ibattr, and only that is looked at. */
static int attr_from_ib(struct rvt_qp_attr *attr, const struct ib_qp_attr *ibattr, u32 mask)
{
	int ret;

	memset(attr, 0, sizeof(*attr));
	/* Wider in ib_core than in the core: nothing may be cut off. */
	if ((mask & IB_QP_PORT && ibattr->port_num > U8_MAX) ||
	    (mask & IB_QP_ALT_PATH && ibattr->alt_port_num > U8_MAX) ||
	    (mask & IB_QP_PATH_MTU && (unsigned int)ibattr->path_mtu > U8_MAX) ||
	    (mask & IB_QP_PATH_MIG_STATE && (unsigned int)ibattr->path_mig_state > U8_MAX) ||
	    (mask & IB_QP_STATE && (unsigned int)ibattr->qp_state > IB_QPS_ERR) ||
	    (mask & IB_QP_CUR_STATE && (unsigned int)ibattr->cur_qp_state > IB_QPS_ERR))
		return -EINVAL;

	if (mask & IB_QP_STATE)
		attr->state = (enum rvt_qp_state)ibattr->qp_state;
	if (mask & IB_QP_CUR_STATE)
		attr->cur_state = (enum rvt_qp_state)ibattr->cur_qp_state;
	if (mask & IB_QP_AV) {
		ret = rvt_ah_from_ib(&attr->ah, &ibattr->ah_attr);
		if (ret)
			return ret;
	}
	if (mask & IB_QP_ALT_PATH) {
		ret = rvt_ah_from_ib(&attr->alt_ah, &ibattr->alt_ah_attr);
		if (ret)
			return ret;
		attr->alt_pkey_index = ibattr->alt_pkey_index;
		attr->alt_port_num = ibattr->alt_port_num;
		attr->alt_timeout = ibattr->alt_timeout;
	}
	if (mask & IB_QP_CAP)
		cap_from_ib(&attr->cap, &ibattr->cap);
	attr->path_mtu = ibattr->path_mtu;
	attr->path_mig_state = ibattr->path_mig_state;
	attr->qkey = ibattr->qkey;
	attr->rq_psn = ibattr->rq_psn;
	attr->sq_psn = ibattr->sq_psn;
	attr->dest_qpn = ibattr->dest_qp_num;
	attr->access_flags = ibattr->qp_access_flags;
	attr->pkey_index = ibattr->pkey_index;
	attr->en_sqd_async_notify = ibattr->en_sqd_async_notify;
	attr->max_rd_atomic = ibattr->max_rd_atomic;
	attr->max_dest_rd_atomic = ibattr->max_dest_rd_atomic;
	attr->min_rnr_timer = ibattr->min_rnr_timer;
	attr->port_num = ibattr->port_num;
	attr->timeout = ibattr->timeout;
	attr->retry_cnt = ibattr->retry_cnt;
	attr->rnr_retry = ibattr->rnr_retry;
	return 0;
}

static void attr_to_ib(struct ib_device *ibdev, struct ib_qp_attr *ibattr,
		       const struct rvt_qp_attr *attr)
{
	ibattr->qp_state = (enum ib_qp_state)attr->state;
	ibattr->cur_qp_state = (enum ib_qp_state)attr->cur_state;
	ibattr->path_mtu = attr->path_mtu;
	ibattr->path_mig_state = attr->path_mig_state;
	ibattr->qkey = attr->qkey;
	ibattr->rq_psn = attr->rq_psn;
	ibattr->sq_psn = attr->sq_psn;
	ibattr->dest_qp_num = attr->dest_qpn;
	ibattr->qp_access_flags = attr->access_flags;
	cap_to_ib(&ibattr->cap, &attr->cap);
	rvt_ah_to_ib(ibdev, &attr->ah, &ibattr->ah_attr);
	rvt_ah_to_ib(ibdev, &attr->alt_ah, &ibattr->alt_ah_attr);
	ibattr->pkey_index = attr->pkey_index;
	ibattr->alt_pkey_index = attr->alt_pkey_index;
	ibattr->en_sqd_async_notify = attr->en_sqd_async_notify;
	ibattr->sq_draining = attr->sq_draining;
	ibattr->max_rd_atomic = attr->max_rd_atomic;
	ibattr->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	ibattr->min_rnr_timer = attr->min_rnr_timer;
	ibattr->port_num = attr->port_num;
	ibattr->timeout = attr->timeout;
	ibattr->retry_cnt = attr->retry_cnt;
	ibattr->rnr_retry = attr->rnr_retry;
	ibattr->alt_port_num = attr->alt_port_num;
	ibattr->alt_timeout = attr->alt_timeout;
}

/* --- life cycle ------------------------------------------------------------------ */

/**
 * rvt_create_qp - make a queue pair in RESET
 * @ibqp: ib_core's part, zeroed, with protection domain, queues and handler set
 * @init_attr: type and sizes; the sizes are returned as granted, which is as
 *             asked
 * @udata: a process's call: the receive ring is made to be mapped and its
 *         offset is written to the response (0 with an SRQ); NULL for a
 *         kernel consumer
 *
 * Context: process.
 * Return: 0; -EOPNOTSUPP (type, creation flags); -EINVAL (sizes over the
 * limits, no room for the response, QP0 or QP1 of the port taken); -ENOMEM;
 * -EFAULT. On an error nothing is left behind.
 */
int rvt_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init_attr, struct ib_udata *udata)
{
	struct rvt_ib_qp *qp = to_rvt_qp(ibqp);
	struct rvt_qp_init init = {
		.sq_sig_all = init_attr->sq_sig_type == IB_SIGNAL_ALL_WR,
		.user = udata,
		.pd = to_rvt_pd(ibqp->pd)->core,
		.ctx = ibqp,
	};
	int ret;

	/* A number that is none of ours must not become an enum rvt_qp_type. */
	if (init_attr->create_flags || init_attr->rwq_ind_tbl ||
	    (unsigned int)init_attr->qp_type > IB_QPT_UD)
		return -EOPNOTSUPP;
	if (init_attr->port_num > U8_MAX || !init_attr->send_cq || !init_attr->recv_cq)
		return -EINVAL;
	if (udata && !init_attr->srq && !rvt_ring_wanted(udata))
		return -EINVAL;

	init.type = (enum rvt_qp_type)init_attr->qp_type;
	init.port_num = init_attr->port_num;
	init.send_cq = to_rvt_cq(init_attr->send_cq)->core;
	init.recv_cq = to_rvt_cq(init_attr->recv_cq)->core;
	init.srq = init_attr->srq ? to_rvt_srq(init_attr->srq)->core : NULL;
	cap_from_ib(&init.cap, &init_attr->cap);
	ret = rvt_core_qp_check_cap(&init);
	if (ret)
		return ret;

	if (udata && !init.srq) {
		qp->ring = rvt_ring_create(udata, rvt_rq_ring_size(init.cap.max_recv_wr,
								   init.cap.max_recv_sge));
		if (IS_ERR(qp->ring))
			return PTR_ERR(qp->ring);
		init.rq_ring = rvt_ring_memory(qp->ring);
	}

	ret = rvt_core_qp_create(to_rvt_dev(ibqp->device)->core, &init, &qp->core);
	if (ret)
		goto err_ring;
	if (udata && rvt_ring_wanted(udata)) {
		ret = rvt_ring_respond(udata, qp->ring);
		if (ret)
			goto err_core;
	}

	qp->sq_sig_type = init_attr->sq_sig_type;
	ibqp->qp_num = rvt_core_qp_num(qp->core);
	cap_to_ib(&init_attr->cap, &init.cap);
	ibdev_dbg(ibqp->device, "QP 0x%06x: created, type %d, sends %u of %u, receives %u of %u\n",
		  ibqp->qp_num, init.type, init.cap.max_send_wr, init.cap.max_send_sge,
		  init.cap.max_recv_wr, init.cap.max_recv_sge);
	return 0;

err_core:
	rvt_core_qp_destroy(qp->core);
err_ring:
	rvt_ring_destroy(qp->ring);
	return ret;
}

/**
 * rvt_modify_qp - change state and attributes of a queue pair
 * @ibqp: the queue pair
 * @attr: new values; units and ranges are those of struct ib_qp_attr (timeout:
 *        4.096 us * 2^timeout; min_rnr_timer: the RNR timer code, 0..31)
 * @attr_mask: enum ib_qp_attr_mask: which values of @attr to take
 * @udata: a process's call; holds nothing
 *
 * Either every value is taken or, on an error, none.
 *
 * Locks: takes those of the queue pair; none may be held.
 * Context: process.
 * Return: 0; -EINVAL (transition, a missing or extra attribute, a value out
 * of range, a current state that is not the real one); -EOPNOTSUPP (an
 * attribute this device does not have).
 */
int rvt_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		  struct ib_udata *udata)
{
	struct rvt_qp_attr core_attr;
	int ret;

	/* Before anything of @attr is looked at. */
	if ((u32)attr_mask & ~(u32)IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	ret = attr_from_ib(&core_attr, attr, attr_mask);
	if (ret)
		return ret;
	ret = rvt_core_qp_modify(to_rvt_qp(ibqp)->core, &core_attr, attr_mask);
	ibdev_dbg(ibqp->device, "QP 0x%06x: modify, mask 0x%x, state %d: %d\n", ibqp->qp_num,
		  attr_mask, attr_mask & IB_QP_STATE ? (int)attr->qp_state : -1, ret);
	return ret;
}

/**
 * rvt_query_qp - read state and attributes of a queue pair
 * @ibqp: the queue pair
 * @attr: result; retry counts are those configured, PSNs are the next ones
 * @attr_mask: what the caller asks for; all of @attr is filled anyway
 * @init_attr: result: what it was created with
 *
 * Locks: takes those of the queue pair; none may be held.
 * Context: process. Return: 0.
 */
int rvt_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		 struct ib_qp_init_attr *init_attr)
{
	struct rvt_ib_qp *qp = to_rvt_qp(ibqp);
	struct rvt_qp_attr core_attr;

	rvt_core_qp_query(qp->core, &core_attr);
	attr_to_ib(ibqp->device, attr, &core_attr);

	init_attr->event_handler = ibqp->event_handler;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->cap = attr->cap;
	init_attr->sq_sig_type = qp->sq_sig_type;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->port_num = attr->port_num;
	return 0;
}

/**
 * rvt_destroy_qp - end a queue pair
 * @ibqp: the queue pair, in any state, also with traffic in flight
 * @udata: unused
 *
 * When it returns, no completion, event or timer of it is still to come. A
 * mapping of its receive ring stays valid memory.
 *
 * Locks: none may be held. Context: process, not from one of its events.
 * Return: 0.
 */
int rvt_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct rvt_ib_qp *qp = to_rvt_qp(ibqp);

	rvt_core_qp_destroy(qp->core);
	rvt_ring_destroy(qp->ring);
	ibdev_dbg(ibqp->device, "QP 0x%06x: destroyed\n", ibqp->qp_num);
	return 0;
}

void rvt_qp_event(void *ctx, enum rvt_event event)
{
	struct ib_qp *ibqp = ctx;
	struct ib_event ev = {
		.device = ibqp->device,
		.element.qp = ibqp,
		.event = (enum ib_event_type)event,
	};

	ibdev_dbg(ibqp->device, "QP 0x%06x: %s\n", ibqp->qp_num, ib_event_msg(ev.event));
	if (ibqp->event_handler)
		ibqp->event_handler(&ev, ibqp->qp_context);
}
