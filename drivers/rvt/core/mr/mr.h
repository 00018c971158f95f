// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A memory region: which bytes a key names, and who may do what with them.
//
// Life: reserved (a key, no bytes) -> usable (publish, or REG_MR) ->
// reserved again (unpublish, invalidate). A look-up succeeds only while
// usable. Regions of registered pages need no count on the data path: their
// users are inside a read section, and unpublish waits for those. A fast
// region is invalidated by the engine itself, which cannot wait for read
// sections, so its users are counted.
#ifndef RVT_MR_MR_H
#define RVT_MR_MR_H

#include <algorithm>
#include <atomic>

#include <rvt/trace.h>

#include "base/memory.h"
#include "base/types.h"
#include "mr/page_list.h"

namespace rvt
{

// A key is index, generation and a low byte: 18 + 6 + 8 bits. The low byte
// belongs to the consumer of a fast region; elsewhere it is 8 more bits of
// generation.
struct Key {
	static constexpr unsigned int index_bits = 18;
	static constexpr unsigned int index_shift = 32 - index_bits;
	static constexpr uint32_t consumer_mask = 0xff;

	static constexpr uint32_t index(uint32_t key) { return key >> index_shift; }
	static constexpr uint32_t make(uint32_t index, uint32_t generation)
	{
		return index << index_shift | (generation & 0x3f) << 8 | (generation >> 6 & 0xff);
	}
};

static_assert((1u << Key::index_bits) - 1 == RVT_MAX_MR, "index 0 is not used: no key is 0");

// Kernel memory in one piece.
struct Piece {
	char *data;
	size_t size;
};

// Goes along the pages of a region, from one row of memory to the next.
class PageWalk
{
public:
	PageWalk() = default;
	// Begin @offset bytes behind the beginning of the first page. A fast region's
	// list may be exchanged under a careless consumer: stay inside it whatever the
	// offset says.
	PageWalk(const PageList &pages, unsigned int page_shift, uint64_t offset)
		: pages_(&pages), page_size_(1ull << page_shift), last_(pages.size() - 1),
		  index_(std::min<uint64_t>(offset >> page_shift, last_)), next_(pages[index_]),
		  skip_(offset & (page_size_ - 1))
	{
	}
	// The next row. Pages that follow in memory belong to it, as long as it has
	// less than @enough bytes.
	Piece row(size_t enough)
	{
		const uint64_t start = next_ + skip_;
		size_t size = page_size_ - skip_;

		skip_ = 0;
		for (;;) {
			index_ = std::min(index_ + 1, last_);
			next_ = (*pages_)[index_];
			if (next_ != start + size || size >= enough)
				break;
			size += page_size_;
		}
		return {reinterpret_cast<char *>(start), size};
	}

private:
	const PageList *pages_ = nullptr;
	uint64_t page_size_ = 0;
	uint64_t last_ = 0;
	uint64_t index_ = 0;
	uint64_t next_ = 0; // the address of page index_
	size_t skip_ = 0;   // bytes of it before the next row
};

} // namespace rvt

struct rvt_core_mr {
	rvt_core_mr(rvt::Pd &owner, rvt_mr_kind region_kind) : kind(region_kind), pd_(&owner) {}

	// A usable region that grants all of @access over all the bytes? The key's
	// slot led here, thus the key is not 0, which an unusable region has.
	bool grants(const rvt::Pd &pd, uint32_t wanted_key, uint64_t addr, uint64_t length,
		    uint32_t access) const
	{
		if (live_key_.load(std::memory_order_acquire) != wanted_key)
			return false;
		if (pd_.load(std::memory_order_relaxed) != &pd || (access_ & access) != access)
			return false;
		// An address below the first wraps to an offset beyond the last, since
		// no region does.
		const uint64_t offset = addr - iova_;
		return offset <= length_ && length <= length_ - offset;
	}

	// For fast regions only: as long as pinned, invalidate() does not return.
	// False: not usable under this key any more.
	[[nodiscard]] bool pin(uint32_t wanted_key)
	{
		return kind != RVT_MR_FAST || pin_fast(wanted_key);
	}
	void unpin()
	{
		if (kind == RVT_MR_FAST)
			unpin_fast();
	}

	// All of kernel memory is one row: where an address in it is. Null: the region
	// has pages.
	char *flat(uint64_t addr) const
	{
		return kind == RVT_MR_DMA ? reinterpret_cast<char *>(addr) : nullptr;
	}
	// The pages from an address on that grants() allowed. Where all of them follow one
	// another, row() has found that before; but those of a fast region may be exchanged
	// meanwhile.
	rvt::PageWalk walk(uint64_t addr) const { return {pages, page_shift_, addr - first_page_}; }
	// Of registered pages, granted: the bytes, if they lie in one row; else null.
	char *row(uint64_t addr, uint64_t length) const
	{
		const uint64_t offset = addr - first_page_;

		if (one_piece_)
			return one_piece_ + offset;
		const uint64_t in_page = offset & page_mask_;

		if (length > page_mask_ + 1 - in_page)
			return nullptr;
		return reinterpret_cast<char *>(pages[offset >> page_shift_]) + in_page;
	}

	rvt::Errno publish(uint64_t iova, uint64_t length, uint32_t npages, uint32_t page_shift,
			   uint32_t access);
	rvt::Errno map(uint64_t iova, uint64_t length, uint32_t npages, uint32_t page_shift);
	// REG_MR: valid under @key, which differs from the region's at most in the
	// low byte.
	rvt::Errno enable(const rvt::Pd &pd, uint32_t key, uint32_t access);
	// LOCAL_INV, SEND_WITH_INV: waits until nobody moves bytes through it.
	rvt::Errno invalidate(const rvt::Pd &pd, uint32_t key);
	void unpublish();

	rvt_mr_stat stat() const;
	bool usable() const { return live_key_.load(std::memory_order_acquire) != 0; }

	const rvt_mr_kind kind;
	uint32_t key = 0; // as given by the key table
	rvt::PageList pages;

	rvt::Pd &pd() const { return *pd_.load(std::memory_order_relaxed); }
	void set_pd(rvt::Pd &pd) { pd_.store(&pd, std::memory_order_relaxed); }

private:
	bool pin_fast(uint32_t wanted_key);
	void unpin_fast();
	bool contiguous(uint32_t npages, uint32_t page_shift) const;
	void trace(rvt_trace_mr_event what, uint32_t key) const;

	std::atomic<rvt::Pd *> pd_;
	// 0: not usable. Stored last, loaded first: it publishes the rest.
	std::atomic<uint32_t> live_key_{0};
	std::atomic<uint32_t> pins_{0};
	uint32_t access_ = 0;
	uint64_t iova_ = 0;
	uint64_t length_ = 0;
	uint64_t first_page_ = 0; // address where it begins
	uint64_t page_mask_ = 0;  // page size - 1
	uint32_t page_shift_ = 0;
	char *one_piece_ = nullptr; // all pages are adjacent: the first
};

#endif
