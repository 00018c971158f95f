// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Delivery of events and completion upcalls, and the references that keep
// their objects alive until then.
#include "outbox.h"

#include <bit>

#include "base/lock.h"
#include "cq/cq.h"
#include "device.h"
#include "qp/qp.h"
#include "wq/srq.h"

namespace rvt
{

namespace
{
constexpr uint64_t drain_step_ns = 5'000'000'000;
constexpr unsigned int drain_steps = 6;
} // namespace

void Object::put()
{
	// Once the count is down the object may be freed: keep what is needed. The
	// device stays for the read section.
	Device &device = dev;
	ReadSection alive;

	if (refs_.fetch_sub(1, std::memory_order_acq_rel) == (dying | 1))
		rvt_os_wake(&device.waitq);
}

bool Object::drain(const char *what)
{
	auto gone = [](void *arg) {
		return static_cast<Object *>(arg)->refs_.load(std::memory_order_acquire) == dying;
	};

	refs_.fetch_or(dying);
	for (unsigned int i = 0; i < drain_steps; i++) {
		if (rvt_os_wait(&dev.waitq, gone, this, drain_step_ns))
			return true;
	}
	rvt_os_leak(what, refs_.load() & ~dying);
	return false;
}

void Object::tell(uint32_t events)
{
	// In the order of the numbers; LAST_WQE_REACHED has the highest.
	while (events) {
		const auto what = static_cast<rvt_event>(std::countr_zero(events));

		events &= events - 1;
		switch (kind) {
		case Kind::cq:
			dev.ops.cq_event(ctx, what);
			break;
		case Kind::srq:
			dev.ops.srq_event(ctx, what);
			break;
		case Kind::qp:
			dev.ops.qp_event(ctx, what);
			break;
		}
	}
}

void Outbox::wake(Cq &cq)
{
	if (cq.wake_.exchange(true))
		return;
	cq.next_wake_ = first_wake_;
	first_wake_ = &cq;
}

void Outbox::add(Object &object, rvt_event what)
{
	if (object.events_.fetch_or(1u << what))
		return;
	object.ref();
	object.next_event_ = first_event_;
	first_event_ = &object;
}

void Outbox::event(Cq &cq, rvt_event what)
{
	add(cq, what);
}

void Outbox::event(Srq &srq, rvt_event what)
{
	add(srq, what);
}

void Outbox::event(Qp &qp, rvt_event what)
{
	add(qp, what);
}

void Outbox::deliver_completions()
{
	while (first_wake_) {
		Object &cq = *first_wake_;

		first_wake_ = cq.next_wake_;
		// From here on a new entry makes a new upcall.
		cq.wake_.store(false);
		cq.dev.ops.cq_comp(cq.ctx);
	}
}

void Outbox::deliver_events()
{
	while (first_event_) {
		Object &object = *first_event_;

		first_event_ = object.next_event_;
		object.tell(object.events_.exchange(0));
		object.put();
	}
}

} // namespace rvt
