// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Key -> region. Readers are inside a read section and take no lock.
#ifndef RVT_MR_KEY_TABLE_H
#define RVT_MR_KEY_TABLE_H

#include <array>
#include <atomic>

#include "base/lock.h"
#include "mr/mr.h"

namespace rvt
{

class KeyTable
{
public:
	KeyTable() = default;
	~KeyTable();

	// Give the region a key that no living region has, and that the last
	// holder of the slot did not have. nomem: memory, or RVT_MAX_MR reached.
	Errno insert(Mr &mr) RVT_EXCLUDES(lock_);
	void remove(Mr &mr) RVT_EXCLUDES(lock_);

	// The region in the key's slot; whether the key is right only
	// Mr::grants() tells. Caller: inside a read section.
	Mr *slot(uint32_t key) const
	{
		const uint32_t index = Key::index(key);
		const Leaf *leaf = leaves_[index / leaf_size].load(std::memory_order_acquire);

		return leaf ? leaf->region[index % leaf_size].load(std::memory_order_acquire)
			    : nullptr;
	}
	uint32_t count() const { return count_.load(std::memory_order_relaxed); }

	// What a region's key granted, and where, holds as long as no region of
	// registered pages has ended since: so long the era is the same. A new
	// one begins after the key has gone, and before unpublish() waits for the
	// read sections. Ask before the look-up, and again in a read section
	// before use.
	uint64_t era() const { return era_.load(std::memory_order_acquire); }
	void end_era() { era_.fetch_add(1, std::memory_order_release); }

private:
	static constexpr uint32_t leaf_size = 512;
	static constexpr uint32_t slots = 1u << Key::index_bits;

	struct Leaf {
		std::array<std::atomic<Mr *>, leaf_size> region;
		std::array<uint16_t, leaf_size> generation;
	};

	Mutex lock_{RVT_LOCK_DEVICE};
	std::array<std::atomic<Leaf *>, slots / leaf_size> leaves_{};
	uint32_t next_ RVT_GUARDED_BY(lock_) = 1;
	std::atomic<uint32_t> count_{0};
	std::atomic<uint64_t> era_{0};
};

} // namespace rvt

#endif
