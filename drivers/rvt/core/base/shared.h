// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Access to indices that another party writes at the same time: user space
// through a mapping, or another CPU.
#ifndef RVT_BASE_SHARED_H
#define RVT_BASE_SHARED_H

#include <atomic>
#include <cstdint>

namespace rvt
{

inline uint32_t load_acquire(uint32_t &shared)
{
	return std::atomic_ref<uint32_t>(shared).load(std::memory_order_acquire);
}

inline void store_release(uint32_t &shared, uint32_t value)
{
	std::atomic_ref<uint32_t>(shared).store(value, std::memory_order_release);
}

// Raise a maximum that others raise as well; returns what it is then.
inline uint64_t raise(std::atomic<uint64_t> &most, uint64_t value)
{
	uint64_t seen = most.load(std::memory_order_relaxed);

	while (seen < value)
		if (most.compare_exchange_weak(seen, value, std::memory_order_relaxed))
			return value;
	return seen;
}

// One of a limited number of objects: taken by the constructor, given back
// unless kept.
class CountedSlot
{
public:
	CountedSlot(std::atomic<uint32_t> &count, uint32_t limit) : count_(count)
	{
		taken_ = count_.fetch_add(1) < limit;
		if (!taken_)
			count_.fetch_sub(1);
	}
	~CountedSlot()
	{
		if (taken_)
			count_.fetch_sub(1);
	}
	CountedSlot(const CountedSlot &) = delete;
	CountedSlot &operator=(const CountedSlot &) = delete;

	explicit operator bool() const { return taken_; }
	void keep() { taken_ = false; }

private:
	std::atomic<uint32_t> &count_;
	bool taken_;
};

} // namespace rvt

#endif
