// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Protection domains.
#include "pd.h"

#include "base/memory.h"
#include "base/shared.h"
#include "device.h"
#include "outbox.h"
#include "qp/qp.h"

using namespace rvt;

void rvt_core_pd::add(Qp &qp)
{
	MutexGuard guard(lock_);

	qp.pd_prev = nullptr;
	qp.pd_next = first_;
	if (first_)
		first_->pd_prev = &qp;
	first_ = &qp;
}

void rvt_core_pd::remove(Qp &qp)
{
	MutexGuard guard(lock_);

	(qp.pd_prev ? qp.pd_prev->pd_next : first_) = qp.pd_next;
	if (qp.pd_next)
		qp.pd_next->pd_prev = qp.pd_prev;
}

void rvt_core_pd::mr_clean(uint32_t key)
{
	// A queue pair stays in the list, and so alive, while the lock is held;
	// events keep their queue pair alive and are delivered without the lock.
	// The read section keeps the completion queues until their upcalls; it ends
	// before the events are told.
	Outbox out;
	ReadSection alive;
	{
		MutexGuard guard(lock_);

		for (Qp *qp = first_; qp; qp = qp->pd_next)
			rvt_qp_mr_clean(qp, key, out);
	}
	out.completions();
}

extern "C" {

struct rvt_core_pd *rvt_core_pd_create(struct rvt_core_dev *dev, bool user)
{
	CountedSlot slot(dev->n_pds, RVT_MAX_PD);
	Pd *pd = slot ? create<Pd>(*dev, user) : nullptr;

	if (pd)
		slot.keep();
	return pd;
}

void rvt_core_pd_destroy(struct rvt_core_pd *pd)
{
	Device &dev = pd->dev;

	destroy(pd);
	dev.n_pds.fetch_sub(1);
}
}
