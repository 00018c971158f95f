// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Completion queues: polling, arming, resizing, and core.h's face of them.
#include "cq/cq.h"

#include <atomic>

#include "device.h"

using namespace rvt;

rvt_core_cq::rvt_core_cq(Device &device, void *context, uint32_t entries, rvt_cq_ring *user_ring,
			 Array<rvt_kernel_wc> &&kernel_ring)
	: Object(device, context, Kind::cq), user_(user_ring != nullptr), cqe_(entries),
	  user_ring_(user_ring), kernel_ring_(std::move(kernel_ring))
{
}

rvt_core_cq::~rvt_core_cq() = default;

void rvt_core_cq::trace(rvt_trace_cq_event what)
{
	if (rvt_traced(RVT_TRACE_CQ))
		rvt_trace_cq(dev.lid.value(), ctx, what, cqe());
}

void rvt_core_cq::trace_complete(rvt_wc wc)
{
	rvt_trace_complete(dev.lid.value(), ctx, &wc);
}

bool rvt_core_cq::overrun(Outbox &out)
{
	if (!overrun_) {
		overrun_ = true;
		trace(RVT_TRACE_CQ_OVERRUN);
		out.event(*this, RVT_EVENT_CQ_ERR);
	}
	return false;
}

int rvt_core_cq::poll(int n, rvt_kernel_wc *wc)
{
	if (user_)
		return to_int(Errno::inval);

	SpinGuard guard(lock_);
	int taken = 0;

	for (; taken < n && tail_ != head_; taken++) {
		wc[taken] = kernel_ring_[tail_];
		tail_ = ring_next(tail_, cqe() + 1);
	}
	return taken;
}

bool rvt_core_cq::arm(bool solicited_only, Outbox &out)
{
	SpinGuard guard(lock_);
	const uint32_t from = tail();
	const bool waiting = from != head_;
	const bool told = notify_ == Notify::told && ring_next(from, cqe() + 1) == head_;

	if (!solicited_only)
		notify_ = Notify::next;
	else if (notify_ != Notify::next)
		notify_ = Notify::solicited;
	trace(solicited_only ? RVT_TRACE_CQ_ARM_SOLICITED : RVT_TRACE_CQ_ARM);

	// A process cannot ask whether it missed entries. Adapters tell it of those
	// that were there before it asked, and programs rely on that. Only the
	// one entry that an upcall has just told of needs no second one.
	if (user_ && !solicited_only && waiting && !told) {
		notify_ = Notify::none;
		out.wake(*this);
	}
	return waiting;
}

rvt_cq_stat rvt_core_cq::stat()
{
	SpinGuard guard(lock_);

	return {{cqe() + 1, head_, tail()},
		notify_ == Notify::next || notify_ == Notify::solicited,
		notify_ == Notify::solicited,
		overrun_};
}

Errno rvt_core_cq::resize(uint32_t entries, rvt_cq_ring *user_ring)
{
	Array<rvt_kernel_wc> fresh;

	if (entries < 1 || entries > RVT_MAX_CQE || user_ != (user_ring != nullptr))
		return Errno::inval;
	if (!user_ && !fresh.allocate(entries + 1))
		return Errno::nomem;

	// The old kernel ring, now in fresh, is freed after the lock is dropped.
	SpinGuard guard(lock_);
	const uint32_t size = cqe() + 1;
	uint32_t from = tail();

	if (from >= size || ring_count(head_, from, size) > entries)
		return Errno::inval;
	uint32_t n = 0;
	for (; from != head_; from = ring_next(from, size), n++) {
		if (user_)
			user_ring->entry[n] = user_ring_->entry[from];
		else
			fresh[n] = kernel_ring_[from];
	}
	if (user_) {
		user_ring_ = user_ring;
		user_ring_->tail = 0;
	} else {
		std::swap(kernel_ring_, fresh);
		tail_ = 0;
	}
	cqe_.store(entries, std::memory_order_relaxed);
	publish(n);
	trace(RVT_TRACE_CQ_RESIZE);
	return Errno::ok;
}

extern "C" {

int rvt_core_cq_create(struct rvt_core_dev *dev, uint32_t cqe, struct rvt_cq_ring *ring, void *ctx,
		       struct rvt_core_cq **cq)
{
	Array<rvt_kernel_wc> kernel_ring;

	if (cqe < 1 || cqe > RVT_MAX_CQE)
		return to_int(Errno::inval);
	CountedSlot slot(dev->n_cqs, RVT_MAX_CQ);
	if (!slot || (!ring && !kernel_ring.allocate(cqe + 1)))
		return to_int(Errno::nomem);
	*cq = create<Cq>(*dev, ctx, cqe, ring, std::move(kernel_ring));
	if (!*cq)
		return to_int(Errno::nomem);
	slot.keep();
	return 0;
}

void rvt_core_cq_destroy(struct rvt_core_cq *cq)
{
	Device &dev = cq->dev;

	// Upcalls run inside read sections, events hold a reference.
	rvt_os_read_synchronize();
	if (!cq->drain("completion queue"))
		return;
	destroy(cq);
	dev.n_cqs.fetch_sub(1);
}

int rvt_core_cq_resize(struct rvt_core_cq *cq, uint32_t cqe, struct rvt_cq_ring *ring)
{
	return to_int(cq->resize(cqe, ring));
}

void rvt_core_cq_stat(struct rvt_core_cq *cq, struct rvt_cq_stat *stat)
{
	*stat = cq->stat();
}

int rvt_core_cq_poll(struct rvt_core_cq *cq, int n, struct rvt_kernel_wc *wc)
{
	return cq->poll(n, wc);
}

int rvt_core_cq_arm(struct rvt_core_cq *cq, bool solicited_only, bool report_missed)
{
	Outbox out;

	return cq->arm(solicited_only, out) && report_missed;
}

uint32_t rvt_core_cq_cqe(const struct rvt_core_cq *cq)
{
	return cq->cqe();
}
}
