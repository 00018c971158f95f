// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Making and ending queue pairs.
#include <algorithm>

#include "base/shared.h"
#include "cq/cq.h"
#include "device.h"
#include "outbox.h"
#include "pd.h"
#include "qp/qp.h"
#include "transport/engine.h"
#include "wq/srq.h"

using namespace rvt;

rvt_core_qp::rvt_core_qp(const rvt_qp_init &init)
	: Object(init.pd->dev, init.ctx, Kind::qp), type(static_cast<QpType>(init.type)),
	  user(init.user), sig_all(init.sq_sig_all), max_inline(init.cap.max_inline_data),
	  pd(*init.pd), send_cq(*init.send_cq), recv_cq(*init.recv_cq), srq(init.srq),
	  rq(init.srq ? init.srq->rq.max_sge : init.cap.max_recv_sge, false), s_timer{{}, this},
	  s_work{{}, this}
{
	rvt_os_timer_init(&s_timer.raw, send_timer_expired);
	rvt_os_work_init(&s_work.raw, send_work);
	attr.cap = init.cap;
	attr.port_num = init.port_num;
}

rvt_core_qp::~rvt_core_qp() = default;

void rvt_core_qp::add_counters(uint64_t *value) const
{
	for (unsigned int i = 0; i < RVT_COUNTERS; i++)
		value[i] += counters_[i].load(std::memory_order_relaxed);
}

void rvt_core_qp::fold_counters()
{
	for (unsigned int i = 0; i < RVT_COUNTERS; i++)
		dev.past_counters[i].fetch_add(counters_[i].exchange(0), std::memory_order_relaxed);
}

namespace
{

Errno check_cap(const rvt_qp_init &init)
{
	const rvt_qp_cap &cap = init.cap;

	switch (init.type) {
	case RVT_QPT_SMI:
	case RVT_QPT_GSI:
		if (init.port_num != 1)
			return Errno::inval;
		break;
	case RVT_QPT_RC:
	case RVT_QPT_UC:
	case RVT_QPT_UD:
		break;
	default:
		return Errno::opnotsupp;
	}
	if (cap.max_send_wr > RVT_MAX_QP_WR || cap.max_send_sge > RVT_MAX_SGE ||
	    cap.max_inline_data > RVT_MAX_INLINE)
		return Errno::inval;
	if (!init.srq) {
		if (cap.max_recv_wr > RVT_MAX_QP_WR || cap.max_recv_sge > RVT_MAX_SGE)
			return Errno::inval;
		if (!(cap.max_send_wr | cap.max_send_sge | cap.max_recv_wr | cap.max_recv_sge))
			return Errno::inval;
	}
	return init.pd && init.send_cq && init.recv_cq ? Errno::ok : Errno::inval;
}

// Both rings and the lists that go with them.
Errno make_rings(Qp &qp, const rvt_qp_init &init)
{
	const rvt_qp_cap &cap = init.cap;
	const size_t payload = std::max<size_t>(cap.max_send_sge * sizeof(rvt_sge),
						(cap.max_inline_data + 15u) & ~15u);

	qp.sq.size = cap.max_send_wr + 1;
	qp.sq.max_sge = cap.max_send_sge;
	qp.sq.stride = sizeof(rvt_swqe) + payload;
	if (!qp.sq_memory.allocate(qp.sq.size * qp.sq.stride) ||
	    !qp.s_bound.allocate(std::max(1u, cap.max_send_sge)) ||
	    !qp.r_bound.allocate(qp.rq.max_sge))
		return Errno::nomem;
	qp.sq.memory = qp.sq_memory.get();
	qp.s_sge.sge = qp.s_bound.get();

	if (!init.srq && cap.max_recv_wr) {
		RqMemory memory;
		Errno e = rvt_alloc_rq(&memory, cap.max_recv_wr, cap.max_recv_sge, init.rq_ring);

		if (failed(e))
			return e;
		qp.rq.init(std::move(memory));
	}
	return alloc_ud_wq_attr(&qp);
}

} // namespace

extern "C" {

uint8_t get_allowed_ops(QpType type)
{
	switch (type) {
	case QpType::rc:
		return 0x00;
	case QpType::uc:
		return 0x20;
	default:
		return 0x60;
	}
}

Errno alloc_ud_wq_attr(Qp *qp)
{
	if (!is_datagram(qp->type))
		return Errno::ok;
	return qp->ud_ah.allocate(qp->sq.size) ? Errno::ok : Errno::nomem;
}

void free_ud_wq_attr(Qp *qp)
{
	qp->ud_ah.reset();
}

int rvt_core_qp_check_cap(const struct rvt_qp_init *init)
{
	return to_int(check_cap(*init));
}

int rvt_core_qp_create(struct rvt_core_dev *dev, struct rvt_qp_init *init,
		       struct rvt_core_qp **result)
{
	if (Errno e = check_cap(*init); failed(e))
		return to_int(e);

	// First of all: nothing is made that the limit forbids.
	CountedSlot slot(dev->n_qps, RVT_MAX_QP);
	Owned<Qp> qp(slot ? create<Qp>(*init) : nullptr);
	if (!qp)
		return to_int(Errno::nomem);
	if (Errno e = make_rings(*qp, *init); failed(e))
		return to_int(e);
	if (Errno e = alloc_qpn(dev, &dev->qpns, qp->type, init->port_num, &qp->qpn); failed(e))
		return to_int(e);
	{
		QpLocks locks(*qp);

		qp->r_sge.sge = qp->r_bound.get();
		if (init->srq)
			qp->attr.cap.max_recv_wr = qp->attr.cap.max_recv_sge = 0;
		rvt_init_qp(qp.get());
	}
	qp->pd.add(*qp);
	slot.keep();
	*result = qp.release();
	return 0;
}

void rvt_core_qp_destroy(struct rvt_core_qp *qp)
{
	Device &dev = qp->dev;

	qp->pd.remove(*qp);
	{
		MutexGuard modify(qp->modify_lock);

		qp->dying = true;
		rvt_reset_qp(qp);
	}
	rvt_os_work_cancel_sync(&qp->s_work.raw);
	// A receive posted while the reset ran may have put it on again.
	dev.errors.remove(*qp);
	// Readers that found it in the table, then those who hold a reference.
	rvt_os_read_synchronize();
	if (!qp->drain("queue pair"))
		return;
	qp->fold_counters();
	rvt_free_qpn(&dev.qpns, qp->qpn);
	free_ud_wq_attr(qp);
	destroy(qp);
	dev.n_qps.fetch_sub(1);
}

uint32_t rvt_core_qp_num(const struct rvt_core_qp *qp)
{
	return qp->qpn.value();
}

uint32_t rvt_core_qp_max_inline(const struct rvt_core_qp *qp)
{
	return qp->max_inline;
}
}
