// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Owning by scope on top of rvt_os_zalloc(): one object, or an array.
#ifndef RVT_BASE_MEMORY_H
#define RVT_BASE_MEMORY_H

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include <rvt/os.h>

namespace rvt
{

// Make a T; null when memory is short.
template <class T, class... Args>
[[nodiscard]] T *create(Args &&...args)
{
	void *room = rvt_os_zalloc(sizeof(T));

	return room ? new (room) T(std::forward<Args>(args)...) : nullptr;
}

template <class T>
void destroy(T *object)
{
	if (!object)
		return;
	object->~T();
	rvt_os_free(object);
}

// Owns one object from create().
template <class T>
class Owned
{
public:
	Owned() = default;
	explicit Owned(T *object) : object_(object) {}
	Owned(Owned &&other) noexcept : object_(other.release()) {}
	Owned &operator=(Owned &&other) noexcept
	{
		destroy(object_);
		object_ = other.release();
		return *this;
	}
	~Owned() { destroy(object_); }

	explicit operator bool() const { return object_ != nullptr; }
	T *operator->() const { return object_; }
	T &operator*() const { return *object_; }
	T *get() const { return object_; }
	[[nodiscard]] T *release() { return std::exchange(object_, nullptr); }

private:
	T *object_ = nullptr;
};

// Owns a zeroed array of a plain type.
template <class T>
class Array
{
	static_assert(std::is_trivially_destructible_v<T>);

public:
	Array() = default;
	Array(Array &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
	Array &operator=(Array &&other) noexcept
	{
		rvt_os_free(data_);
		data_ = std::exchange(other.data_, nullptr);
		return *this;
	}
	~Array() { rvt_os_free(data_); }

	// Whether the memory was had; nothing is needed for no elements.
	[[nodiscard]] bool allocate(size_t n)
	{
		if (n)
			data_ = static_cast<T *>(rvt_os_zalloc(n * sizeof(T)));
		return !n || data_;
	}
	void reset()
	{
		rvt_os_free(data_);
		data_ = nullptr;
	}
	T *get() const { return data_; }
	T &operator[](size_t i) const { return data_[i]; }
	explicit operator bool() const { return data_ != nullptr; }

private:
	T *data_ = nullptr;
};

// One of the machine's timers or work items, and whose it is: the callback
// gets the raw part and finds its owner.
template <class Raw, class T>
struct WithOwner {
	Raw raw;
	T *owner;

	static T &of(Raw *raw)
	{
		static_assert(std::is_standard_layout_v<WithOwner>);
		return *reinterpret_cast<WithOwner *>(raw)->owner;
	}
};

} // namespace rvt

#endif
