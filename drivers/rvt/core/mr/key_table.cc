// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Next-fit allocation of key slots: a freed slot rests until all others
// have had their turn, and then has another generation.
#include "mr/key_table.h"

namespace rvt
{

KeyTable::~KeyTable()
{
	for (auto &leaf : leaves_)
		destroy(leaf.load(std::memory_order_relaxed));
}

Errno KeyTable::insert(Mr &mr)
{
	MutexGuard guard(lock_);

	if (count() >= RVT_MAX_MR)
		return Errno::nomem;
	for (uint32_t tries = 0; tries < slots; tries++) {
		const uint32_t index = next_;

		next_ = index + 1 == slots ? 1 : index + 1;
		auto &place = leaves_[index / leaf_size];
		Leaf *leaf = place.load(std::memory_order_relaxed);
		if (!leaf) {
			leaf = create<Leaf>();
			if (!leaf)
				return Errno::nomem;
			place.store(leaf, std::memory_order_release);
		}
		auto &region = leaf->region[index % leaf_size];
		if (region.load(std::memory_order_relaxed))
			continue;
		mr.key = Key::make(index, ++leaf->generation[index % leaf_size]);
		region.store(&mr, std::memory_order_release);
		count_.fetch_add(1, std::memory_order_relaxed);
		return Errno::ok;
	}
	return Errno::nomem;
}

void KeyTable::remove(Mr &mr)
{
	MutexGuard guard(lock_);
	const uint32_t index = Key::index(mr.key);
	Leaf *leaf = leaves_[index / leaf_size].load(std::memory_order_relaxed);

	leaf->region[index % leaf_size].store(nullptr, std::memory_order_release);
	count_.fetch_sub(1, std::memory_order_relaxed);
}

} // namespace rvt
