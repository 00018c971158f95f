// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The lock rules as attributes that clang checks (-Wthread-safety); for gcc
// they vanish.
#ifndef RVT_BASE_ANNOTATIONS_H
#define RVT_BASE_ANNOTATIONS_H

#if defined(__clang__)
#define RVT_TSA(x) __attribute__((x))
#else
#define RVT_TSA(x)
#endif

#define RVT_CAPABILITY(name) RVT_TSA(capability(name))
#define RVT_SCOPED_CAPABILITY RVT_TSA(scoped_lockable)
#define RVT_GUARDED_BY(lock) RVT_TSA(guarded_by(lock))
#define RVT_PT_GUARDED_BY(lock) RVT_TSA(pt_guarded_by(lock))
#define RVT_REQUIRES(...) RVT_TSA(requires_capability(__VA_ARGS__))
#define RVT_EXCLUDES(...) RVT_TSA(locks_excluded(__VA_ARGS__))
#define RVT_ACQUIRE(...) RVT_TSA(acquire_capability(__VA_ARGS__))
#define RVT_RELEASE(...) RVT_TSA(release_capability(__VA_ARGS__))
// For the rare function whose locking the analysis cannot follow; say why.
#define RVT_NO_TSA RVT_TSA(no_thread_safety_analysis)

#endif
