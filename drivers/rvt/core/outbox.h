// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// What must be told to the consumer once the locks are dropped. Nothing is
// called out of the core with a lock held: whoever holds one puts the event
// or the completion upcall here, and the scope's end delivers it.
#ifndef RVT_OUTBOX_H
#define RVT_OUTBOX_H

#include "base/object.h"

namespace rvt
{

class Outbox
{
public:
	Outbox() = default;
	Outbox(const Outbox &) = delete;
	Outbox &operator=(const Outbox &) = delete;
	// No lock is held here, and no read section: a handler may modify the QP.
	~Outbox()
	{
		completions();
		events();
	}

	// Any lock may be held for these.
	void wake(Cq &cq);
	void event(Cq &cq, rvt_event what);
	void event(Srq &srq, rvt_event what);
	void event(Qp &qp, rvt_event what);

	// Deliver the completion upcalls. No lock held; the queues are still alive
	// (a read section, or a queue pair that uses them).
	void completions()
	{
		if (first_wake_)
			deliver_completions();
	}
	// Deliver the events. No lock held, no read section.
	void events()
	{
		if (first_event_)
			deliver_events();
	}
	bool has_events() const { return first_event_ != nullptr; }

private:
	void add(Object &object, rvt_event what);
	void deliver_completions();
	void deliver_events();

	// Chains through the objects themselves: there is always room. An object
	// that is in another thread's outbox already is told by that one.
	Object *first_event_ = nullptr;
	Object *first_wake_ = nullptr;
};

} // namespace rvt

#endif
