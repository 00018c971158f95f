// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A completion queue: its ring, who waits for it, what happens when it is
// full. Completions go straight into the ring that the poller reads.
#ifndef RVT_CQ_CQ_H
#define RVT_CQ_CQ_H

#include <rvt/trace.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/object.h"
#include "base/shared.h"
#include "outbox.h"

struct rvt_core_cq : rvt::Object {
	rvt_core_cq(rvt::Device &device, void *context, uint32_t entries, rvt_cq_ring *user_ring,
		    rvt::Array<rvt_kernel_wc> &&kernel_ring);
	~rvt_core_cq();

	// Put a completion in. False: the queue is (or now became) overrun, the
	// entry is lost and the caller moves its QP to ERR once it may.
	// Locks: any of the QP's. The upcall, if armed, goes into the outbox.
	[[nodiscard]] bool enter(const rvt_wc &wc, void *qp_ctx, bool solicited, rvt::Outbox &out);

	int poll(int n, rvt_kernel_wc *wc);
	// Ask for an upcall. True: entries are waiting. Locks: none.
	bool arm(bool solicited_only, rvt::Outbox &out);
	rvt::Errno resize(uint32_t entries, rvt_cq_ring *user_ring);
	rvt_cq_stat stat();
	uint32_t cqe() const { return cqe_.load(std::memory_order_relaxed); }

private:
	// What to tell of; told: nothing more, and the newest entry has been told of.
	enum class Notify : uint8_t { none, told, solicited, next };

	// The poller's index. A user's nonsense equals no index, so at worst the
	// user overwrites his own completions.
	uint32_t tail() const RVT_REQUIRES(lock_)
	{
		return user_ ? rvt::load_acquire(user_ring_->tail) : tail_;
	}
	void publish(uint32_t head) RVT_REQUIRES(lock_)
	{
		head_ = head;
		if (user_)
			rvt::store_release(user_ring_->head, head);
	}
	void trace(rvt_trace_cq_event what);
	void trace_complete(rvt_wc wc);
	// Nothing is entered any more; says so once. False.
	bool overrun(rvt::Outbox &out) RVT_REQUIRES(lock_);

	rvt::SpinLock lock_{RVT_LOCK_CQ};
	const bool user_;
	bool overrun_ RVT_GUARDED_BY(lock_) = false;
	Notify notify_ RVT_GUARDED_BY(lock_) = Notify::none;
	std::atomic<uint32_t> cqe_;
	// The device's own indices; what user space writes over its copy of the
	// head is never read back.
	uint32_t head_ RVT_GUARDED_BY(lock_) = 0;
	uint32_t tail_ RVT_GUARDED_BY(lock_) = 0;
	rvt_cq_ring *user_ring_ RVT_GUARDED_BY(lock_);
	rvt::Array<rvt_kernel_wc> kernel_ring_ RVT_GUARDED_BY(lock_);
};

// Part of its callers, so that the entry is made in the ring and nowhere else.
[[gnu::always_inline]] inline bool rvt_core_cq::enter(const rvt_wc &wc, void *qp_ctx,
						      bool solicited, rvt::Outbox &out)
{
	rvt::SpinGuard guard(lock_);
	const uint32_t at = head_;
	const uint32_t next = rvt::ring_next(at, cqe() + 1);

	if (overrun_ || next == tail()) [[unlikely]]
		return overrun(out);
	if (user_)
		user_ring_->entry[at] = wc;
	else
		kernel_ring_[at] = {wc, qp_ctx};
	if (rvt_traced(RVT_TRACE_COMPLETE))
		trace_complete(wc);
	publish(next);

	if (notify_ == Notify::next ||
	    (notify_ == Notify::solicited && (solicited || wc.status != RVT_WC_SUCCESS))) {
		notify_ = Notify::told;
		out.wake(*this);
	} else if (notify_ == Notify::told) {
		notify_ = Notify::none;
	}
	return true;
}

#endif
