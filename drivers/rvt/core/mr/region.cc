// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Memory regions: range and access checks, address to memory, and core.h's
// face of them.
#include "mr/mr.h"

#include "device.h"
#include "pd.h"
#include "qp/qp.h"

using namespace rvt;

bool rvt_core_mr::pin_fast(uint32_t wanted_key)
{
	// Against invalidate(): count first, then look; it clears first, then counts.
	pins_.fetch_add(1, std::memory_order_seq_cst);
	if (live_key_.load(std::memory_order_seq_cst) == wanted_key)
		return true;
	unpin_fast();
	return false;
}

void rvt_core_mr::unpin_fast()
{
	Device &dev = pd().dev;
	if (pins_.fetch_sub(1, std::memory_order_seq_cst) == 1 && !usable())
		rvt_os_wake(&dev.waitq);
}

bool rvt_core_mr::contiguous(uint32_t npages, uint32_t page_shift) const
{
	for (uint32_t i = 1; i < npages; i++) {
		if (pages[i] != pages[i - 1] + (1ull << page_shift))
			return false;
	}
	return true;
}

Errno rvt_core_mr::map(uint64_t iova, uint64_t length, uint32_t npages, uint32_t page_shift)
{
	if (page_shift < PageList::min_shift || page_shift > 40 || npages > pages.size() ||
	    npages == 0)
		return Errno::inval;
	const uint64_t page_size = 1ull << page_shift;
	const uint64_t room = page_size * npages - (iova & (page_size - 1));

	if (length == 0 || length > room || iova + (length - 1) < iova)
		return Errno::inval;
	iova_ = iova;
	length_ = length;
	page_mask_ = page_size - 1;
	first_page_ = iova & ~page_mask_;
	page_shift_ = page_shift;
	one_piece_ = contiguous(npages, page_shift) ? reinterpret_cast<char *>(pages[0]) : nullptr;
	return Errno::ok;
}

void rvt_core_mr::trace(rvt_trace_mr_event what, uint32_t of_key) const
{
	if (rvt_traced(RVT_TRACE_MR))
		rvt_trace_mr(pd().dev.lid.value(), what, of_key, iova_, length_, access_);
}

Errno rvt_core_mr::publish(uint64_t iova, uint64_t length, uint32_t npages, uint32_t page_shift,
			   uint32_t access)
{
	if (kind == RVT_MR_FAST || usable())
		return Errno::inval;
	if (kind == RVT_MR_DMA) {
		iova_ = 0;
		length_ = UINT64_MAX;
	} else if (Errno e = map(iova, length, npages, page_shift); failed(e)) {
		return e;
	}
	access_ = access;
	trace(RVT_TRACE_MR_REGISTER, key);
	live_key_.store(key, std::memory_order_release);
	return Errno::ok;
}

Errno rvt_core_mr::enable(const Pd &pd, uint32_t new_key, uint32_t access)
{
	if (&this->pd() != &pd)
		return Errno::acces;
	if (kind != RVT_MR_FAST || (new_key ^ key) & ~Key::consumer_mask || length_ == 0 ||
	    usable())
		return Errno::inval;
	access_ = access;
	trace(RVT_TRACE_MR_ENABLE, new_key);
	live_key_.store(new_key, std::memory_order_release);
	return Errno::ok;
}

Errno rvt_core_mr::invalidate(const Pd &pd, uint32_t old_key)
{
	if (kind != RVT_MR_FAST || &this->pd() != &pd || (old_key ^ key) & ~Key::consumer_mask)
		return Errno::inval;

	uint32_t expected = old_key;
	if (!live_key_.compare_exchange_strong(expected, 0, std::memory_order_seq_cst) &&
	    expected != 0)
		return Errno::inval;

	// Those who pinned are in the middle of a copy and wait for nothing.
	auto unused = [](void *arg) {
		return static_cast<Mr *>(arg)->pins_.load(std::memory_order_seq_cst) == 0;
	};
	while (!rvt_os_wait(&pd.dev.waitq, unused, this, 1'000'000'000)) {
	}
	if (expected)
		trace(RVT_TRACE_MR_INVALIDATE, old_key);
	return Errno::ok;
}

rvt_mr_stat rvt_core_mr::stat() const
{
	const uint32_t live = live_key_.load(std::memory_order_acquire);

	return {kind, live != 0, live ? live : key, iova_, length_, page_shift_, access_};
}

void rvt_core_mr::unpublish()
{
	const uint32_t gone = live_key_.exchange(0, std::memory_order_seq_cst);

	pd().dev.keys.end_era();
	pd().mr_clean(gone ? gone : key);
	rvt_os_read_synchronize();
	if (gone)
		trace(RVT_TRACE_MR_DEREGISTER, gone);
}

extern "C" {

int rvt_core_mr_create(struct rvt_core_pd *pd, enum rvt_mr_kind kind, uint32_t max_pages,
		       struct rvt_core_mr **result)
{
	if (kind == RVT_MR_DMA ? max_pages != 0 || pd->user : max_pages == 0)
		return to_int(Errno::inval);
	if (kind == RVT_MR_FAST && max_pages > RVT_MAX_FAST_REG_PAGES)
		return to_int(Errno::inval);

	Owned<Mr> mr(create<Mr>(*pd, kind));
	if (!mr || !mr->pages.allocate(max_pages, kind == RVT_MR_FAST))
		return to_int(Errno::nomem);
	if (Errno e = pd->dev.keys.insert(*mr); failed(e))
		return to_int(e);
	*result = mr.release();
	return 0;
}

int rvt_core_mr_set_page(struct rvt_core_mr *mr, uint32_t i, uint64_t address)
{
	return to_int(mr->pages.set(i, address));
}

uint32_t rvt_core_mr_key(const struct rvt_core_mr *mr)
{
	return mr->key;
}

int rvt_core_mr_publish(struct rvt_core_mr *mr, uint64_t iova, uint64_t length, uint32_t npages,
			uint32_t page_shift, uint32_t access)
{
	return to_int(mr->publish(iova, length, npages, page_shift, access));
}

int rvt_core_mr_map(struct rvt_core_mr *mr, uint64_t iova, uint64_t length, uint32_t npages,
		    uint32_t page_shift)
{
	if (mr->kind != RVT_MR_FAST)
		return to_int(Errno::inval);
	return to_int(mr->map(iova, length, npages, page_shift));
}

void rvt_core_mr_stat(const struct rvt_core_mr *mr, struct rvt_mr_stat *stat)
{
	*stat = mr->stat();
}

void rvt_core_mr_unpublish(struct rvt_core_mr *mr)
{
	mr->unpublish();
}

void rvt_core_mr_destroy(struct rvt_core_mr *mr)
{
	// Out of the table first: then the grace period covers both.
	mr->pd().dev.keys.remove(*mr);
	mr->unpublish();
	destroy(mr);
}

void rvt_core_mr_set_pd(struct rvt_core_mr *mr, struct rvt_core_pd *pd)
{
	mr->set_pd(*pd);
}

int rvt_core_mr_set_max_pages(struct rvt_core_mr *mr, uint32_t max_pages)
{
	PageList pages;

	if (mr->usable() || max_pages == 0)
		return to_int(Errno::inval);
	if (!pages.allocate(max_pages, false))
		return to_int(Errno::nomem);
	mr->pages = std::move(pages);
	return 0;
}
}
