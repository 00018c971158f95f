// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kunit_exports.c - what the suites of kunit/ reach of the core directly
 *
 * In a namespace of its own, so that nobody else takes it for an interface.
 */
#include <linux/module.h>
#include <linux/version.h>

#include <rvt/core.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
EXPORT_SYMBOL_NS_GPL(rvt_core_modify_is_ok, RVT_KUNIT);
#else
EXPORT_SYMBOL_NS_GPL(rvt_core_modify_is_ok, "RVT_KUNIT");
#endif
