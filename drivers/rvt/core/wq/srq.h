// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A shared receive queue: a ring of receives, and the limit below which its
// owner wants to be told, once.
#ifndef RVT_WQ_SRQ_H
#define RVT_WQ_SRQ_H

#include "base/object.h"
#include "pd.h"
#include "wq/rq.h"

struct rvt_core_srq : rvt::Object {
	rvt_core_srq(rvt::Pd &owner, uint32_t max_sge, uint32_t srq_limit, void *context)
		: Object(owner.dev, context, Kind::srq), pd(owner), rq(max_sge, true),
		  limit(srq_limit)
	{
	}

	// A receive was taken: does that bring it below the limit? True once.
	bool limit_reached()
	{
		uint32_t armed = limit.load(std::memory_order_relaxed);

		return armed && rq.count() < armed && limit.compare_exchange_strong(armed, 0);
	}

	rvt::Pd &pd;
	rvt::rvt_rq rq;
	std::atomic<uint32_t> limit; // 0: not armed
};

#endif
