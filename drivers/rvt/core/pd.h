// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A protection domain: who belongs together. It knows its queue pairs, so
// that the end of a region finds those that still use it.
#ifndef RVT_PD_H
#define RVT_PD_H

#include "base/lock.h"
#include "base/object.h"

struct rvt_core_pd {
	rvt_core_pd(rvt::Device &device, bool is_user) : dev(device), user(is_user) {}

	void add(rvt::Qp &qp) RVT_EXCLUDES(lock_);
	void remove(rvt::Qp &qp) RVT_EXCLUDES(lock_);
	// A region's key ends: rvt_qp_mr_clean() for each queue pair. May sleep.
	void mr_clean(uint32_t key) RVT_EXCLUDES(lock_);

	rvt::Device &dev;
	const bool user;

private:
	rvt::Mutex lock_{RVT_LOCK_PD};
	rvt::Qp *first_ RVT_GUARDED_BY(lock_) = nullptr;
};

#endif
