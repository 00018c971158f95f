// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// core.h's face of shared receive queues.
#include "wq/srq.h"

#include <rvt/trace.h>

#include "base/shared.h"
#include "device.h"

using namespace rvt;

extern "C" {

int rvt_core_srq_create(struct rvt_core_pd *pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit,
			struct rvt_rq_ring *ring, void *ctx, struct rvt_core_srq **result)
{
	Device &dev = pd->dev;
	RqMemory memory;

	if (max_wr == 0 || max_wr > RVT_MAX_SRQ_WR || max_sge == 0 || max_sge > RVT_MAX_SGE ||
	    limit > max_wr)
		return to_int(Errno::inval);
	CountedSlot slot(dev.n_srqs, RVT_MAX_SRQ);
	if (!slot)
		return to_int(Errno::nomem);
	if (Errno e = rvt_alloc_rq(&memory, max_wr, max_sge, ring); failed(e))
		return to_int(e);

	Srq *srq = create<Srq>(*pd, max_sge, limit, ctx);
	if (!srq)
		return to_int(Errno::nomem);
	srq->rq.init(std::move(memory));
	slot.keep();
	*result = srq;
	return 0;
}

void rvt_core_srq_destroy(struct rvt_core_srq *srq)
{
	Device &dev = srq->dev;

	rvt_os_read_synchronize();
	if (!srq->drain("shared receive queue"))
		return;
	destroy(srq);
	dev.n_srqs.fetch_sub(1);
}

int rvt_core_srq_set_limit(struct rvt_core_srq *srq, uint32_t limit)
{
	if (limit > srq->rq.max_wr())
		return to_int(Errno::inval);
	srq->limit.store(limit);
	return 0;
}

int rvt_core_srq_resize(struct rvt_core_srq *srq, uint32_t max_wr, const uint32_t *new_limit,
			struct rvt_rq_ring *ring)
{
	const uint32_t limit = new_limit ? *new_limit : srq->limit.load();
	RqMemory memory;

	if (max_wr == 0 || max_wr > RVT_MAX_SRQ_WR || limit > max_wr)
		return to_int(Errno::inval);
	if (Errno e = rvt_alloc_rq(&memory, max_wr, srq->rq.max_sge, ring); failed(e))
		return to_int(e);
	// Afterwards memory holds the old ring and frees it if it was the core's.
	if (Errno e = srq->rq.exchange(memory); failed(e))
		return to_int(e);
	if (new_limit)
		srq->limit.store(limit);
	return 0;
}

void rvt_core_srq_query(struct rvt_core_srq *srq, uint32_t *max_wr, uint32_t *max_sge,
			uint32_t *limit)
{
	*max_wr = srq->rq.max_wr();
	*max_sge = srq->rq.max_sge;
	*limit = srq->limit.load();
}

void rvt_core_srq_stat(struct rvt_core_srq *srq, struct rvt_ring_stat *stat)
{
	*stat = srq->rq.stat();
}

int rvt_core_srq_post(struct rvt_core_srq *srq, uint64_t wr_id, const struct rvt_sge *sge,
		      uint32_t num_sge)
{
	if (Errno e = srq->rq.post(wr_id, sge, num_sge); failed(e))
		return to_int(e);
	if (rvt_traced(RVT_TRACE_POST_RECV))
		rvt_trace_post_recv(srq->dev.lid.value(), 0, wr_id, num_sge);
	return 0;
}
}
