/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The suites of rvt_kunit.ko, in the order in which they run. */
#ifndef RVT_KUNIT_SUITES_H
#define RVT_KUNIT_SUITES_H

#include <kunit/test.h>

extern struct kunit_suite rvt_create_suite;
extern struct kunit_suite rvt_modify_suite;
extern struct kunit_suite rvt_query_suite;
extern struct kunit_suite rvt_post_suite;
extern struct kunit_suite rvt_ruc_suite;
extern struct kunit_suite rvt_ud_suite;
extern struct kunit_suite rvt_rnr_suite;
extern struct kunit_suite rvt_error_suite;
extern struct kunit_suite rvt_event_suite;
extern struct kunit_suite rvt_cq_suite;
extern struct kunit_suite rvt_srq_suite;
extern struct kunit_suite rvt_mr_suite;
extern struct kunit_suite rvt_look_suite;
extern struct kunit_suite rvt_mad_suite;
extern struct kunit_suite rvt_fault_suite;
extern struct kunit_suite rvt_storage_suite;
extern struct kunit_suite rvt_stress_suite;

#ifdef CONFIG_FAULT_INJECTION
#define RVT_FAULT_SUITE &rvt_fault_suite,
#else
#define RVT_FAULT_SUITE
#endif

/* clang-format off */
#define RVT_SUITES				\
	&rvt_create_suite,			\
	&rvt_modify_suite,			\
	&rvt_query_suite,			\
	&rvt_post_suite,			\
	&rvt_ruc_suite,				\
	&rvt_ud_suite,				\
	&rvt_rnr_suite,				\
	&rvt_error_suite,			\
	&rvt_event_suite,			\
	&rvt_cq_suite,				\
	&rvt_srq_suite,				\
	&rvt_mr_suite,				\
	&rvt_look_suite,			\
	&rvt_mad_suite,				\
	RVT_FAULT_SUITE				\
	&rvt_storage_suite,			\
	&rvt_stress_suite
/* clang-format on */

#endif
