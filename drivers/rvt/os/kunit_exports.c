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
#define FOR_KUNIT(symbol) EXPORT_SYMBOL_NS_GPL(symbol, RVT_KUNIT)
#else
#define FOR_KUNIT(symbol) EXPORT_SYMBOL_NS_GPL(symbol, "RVT_KUNIT")
#endif

FOR_KUNIT(rvt_core_modify_is_ok);
FOR_KUNIT(rvt_core_qp_for_each);
FOR_KUNIT(rvt_core_qp_stat);
FOR_KUNIT(rvt_core_qp_num);
FOR_KUNIT(rvt_core_counters_read);
