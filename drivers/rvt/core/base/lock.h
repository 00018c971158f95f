// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Locks and read sections as scopes: what is taken is given back on every
// way out. The order of the lock classes is in <rvt/os.h>.
#ifndef RVT_BASE_LOCK_H
#define RVT_BASE_LOCK_H

#include <rvt/os.h>

#include "base/annotations.h"

namespace rvt
{

class RVT_CAPABILITY("spinlock") SpinLock
{
public:
	explicit SpinLock(rvt_os_lock_class cls) { rvt_os_spin_init(&raw_, cls); }
	SpinLock(const SpinLock &) = delete;
	SpinLock &operator=(const SpinLock &) = delete;

	[[nodiscard]] unsigned long lock() RVT_ACQUIRE() { return rvt_os_spin_lock(&raw_); }
	void unlock(unsigned long flags) RVT_RELEASE() { rvt_os_spin_unlock(&raw_, flags); }

private:
	rvt_os_spin raw_;
};

class RVT_CAPABILITY("mutex") Mutex
{
public:
	explicit Mutex(rvt_os_lock_class cls) { rvt_os_mutex_init(&raw_, cls); }
	Mutex(const Mutex &) = delete;
	Mutex &operator=(const Mutex &) = delete;

	void lock() RVT_ACQUIRE() { rvt_os_mutex_lock(&raw_); }
	void unlock() RVT_RELEASE() { rvt_os_mutex_unlock(&raw_); }

private:
	rvt_os_mutex raw_;
};

// Holds a spinlock for a scope; may be dropped and retaken inside it.
class RVT_SCOPED_CAPABILITY SpinGuard
{
public:
	explicit SpinGuard(SpinLock &lock) RVT_ACQUIRE(lock) : lock_(lock), flags_(lock.lock()) {}
	~SpinGuard() RVT_RELEASE()
	{
		if (held_)
			lock_.unlock(flags_);
	}
	SpinGuard(const SpinGuard &) = delete;
	SpinGuard &operator=(const SpinGuard &) = delete;

	void unlock() RVT_RELEASE()
	{
		held_ = false;
		lock_.unlock(flags_);
	}
	void lock() RVT_ACQUIRE()
	{
		flags_ = lock_.lock();
		held_ = true;
	}

private:
	SpinLock &lock_;
	unsigned long flags_;
	bool held_ = true;
};

class RVT_SCOPED_CAPABILITY MutexGuard
{
public:
	explicit MutexGuard(Mutex &lock) RVT_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
	~MutexGuard() RVT_RELEASE()
	{
		if (held_)
			lock_.unlock();
	}
	MutexGuard(const MutexGuard &) = delete;
	MutexGuard &operator=(const MutexGuard &) = delete;

	void unlock() RVT_RELEASE()
	{
		held_ = false;
		lock_.unlock();
	}
	void lock() RVT_ACQUIRE()
	{
		lock_.lock();
		held_ = true;
	}

private:
	Mutex &lock_;
	bool held_ = true;
};

// What a look-up inside the section found stays alive until its end.
class ReadSection
{
public:
	ReadSection() : ReadSection(rvt_os_read_lock()) {}
	// One that rvt_os_read_lock() began elsewhere ends here.
	explicit ReadSection(int cookie) : cookie_(cookie) {}
	~ReadSection() { rvt_os_read_unlock(cookie_); }
	ReadSection(const ReadSection &) = delete;
	ReadSection &operator=(const ReadSection &) = delete;

private:
	int cookie_;
};

} // namespace rvt

#endif
