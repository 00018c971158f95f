// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The pages of a region: their kernel addresses in 4 bytes each, since pages
// are 4 KiB at least and nearly always lie within the same 16 TiB. Where they
// do not, another 4 bytes of each say so.
#ifndef RVT_MR_PAGE_LIST_H
#define RVT_MR_PAGE_LIST_H

#include "base/memory.h"
#include "base/types.h"

namespace rvt
{

class PageList
{
public:
	static constexpr unsigned int min_shift = 12;

	// Room for @n pages. @anywhere: set() never needs memory.
	[[nodiscard]] bool allocate(uint32_t n, bool anywhere)
	{
		size_ = n;
		return low_.allocate(n) && (!anywhere || high_.allocate(n));
	}
	uint32_t size() const { return size_; }

	uint64_t operator[](uint64_t i) const
	{
		const uint64_t high = high_ ? static_cast<uint64_t>(high_[i]) << high_shift : base_;

		return high | static_cast<uint64_t>(low_[i]) << min_shift;
	}

	// inval: no such place, or no page begins there; nomem.
	Errno set(uint32_t i, uint64_t address)
	{
		const uint64_t base = address >> high_shift << high_shift;

		if (i >= size_ || address & ((1u << min_shift) - 1))
			return Errno::inval;
		if (!high_ && base != base_) {
			if (i == 0)
				base_ = base;
			else if (!widen())
				return Errno::nomem;
		}
		if (high_)
			high_[i] = static_cast<uint32_t>(address >> high_shift);
		low_[i] = static_cast<uint32_t>(address >> min_shift);
		return Errno::ok;
	}

private:
	static constexpr unsigned int high_shift = 32 + min_shift;

	bool widen()
	{
		if (!high_.allocate(size_))
			return false;
		for (uint32_t i = 0; i < size_; i++)
			high_[i] = static_cast<uint32_t>(base_ >> high_shift);
		return true;
	}

	Array<uint32_t> low_;  // bits 43:12 of each address
	Array<uint32_t> high_; // bits 63:44 of each, if they differ
	uint64_t base_ = 0;    // bits 63:44 of all
	uint32_t size_ = 0;
};

} // namespace rvt

#endif
