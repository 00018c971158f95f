// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// What every object with upcalls has in common: its device, the consumer's
// context, and a count of those who still have a use for it.
#ifndef RVT_BASE_OBJECT_H
#define RVT_BASE_OBJECT_H

#include <atomic>

#include "base/types.h"

namespace rvt
{

class Object
{
public:
	enum class Kind : uint8_t { cq, srq, qp };

	Object(Device &device, void *context, Kind what) : dev(device), ctx(context), kind(what) {}

	// The caller knows that the object is alive (a lock, a read section).
	void ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
	void put();
	// Wait until nobody has a reference; false (and a report) if that takes
	// unreasonably long: then the object must not be freed. May sleep.
	[[nodiscard]] bool drain(const char *what);

	Device &dev;
	void *const ctx;
	const Kind kind;

private:
	friend class Outbox;

	// Tell the consumer of each event whose bit is set.
	void tell(uint32_t events);

	// Set in the count by drain(), so that the last put knows of the waiter.
	static constexpr uint32_t dying = 1u << 31;

	std::atomic<uint32_t> refs_{0};

	// For the outbox. Whoever sets the first bit puts the object in its own
	// chain; whoever takes the bits delivers them.
	std::atomic<uint32_t> events_{0}; // bit per rvt_event
	std::atomic<bool> wake_{false};
	Object *next_event_ = nullptr;
	Object *next_wake_ = nullptr;
};

// A counted reference that an early return cannot leak.
template <class T>
class Ref
{
public:
	Ref() = default;
	explicit Ref(T *object) : object_(object)
	{
		if (object_)
			object_->ref();
	}
	Ref(Ref &&other) noexcept : object_(other.object_) { other.object_ = nullptr; }
	Ref &operator=(Ref &&other) noexcept
	{
		reset();
		object_ = other.object_;
		other.object_ = nullptr;
		return *this;
	}
	~Ref() { reset(); }

	void reset()
	{
		if (object_)
			object_->put();
		object_ = nullptr;
	}
	explicit operator bool() const { return object_ != nullptr; }
	T *operator->() const { return object_; }
	T &operator*() const { return *object_; }
	T *get() const { return object_; }

private:
	T *object_ = nullptr;
};

} // namespace rvt

#endif
