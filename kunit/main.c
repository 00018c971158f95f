// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rvt_kunit.ko: runs the suites when it is loaded.
 *
 * The suites are handed to KUnit from here, not by kunit_test_suites(): then
 * they run after module parameters are known on every kernel (6.1 runs a
 * module's own suites before), so that they can be chosen:
 *
 *	insmod rvt_kunit.ko filter='rvt_modify'
 *	insmod rvt_kunit.ko filter='rvt_*.case_0*'
 */
#include <linux/glob.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>

#include "harness.h"
#include "suites.h"

static char *filter = "*";
module_param(filter, charp, 0444);
MODULE_PARM_DESC(filter, "which to run: SUITE or SUITE.CASE, both may be patterns");

char *rig_device_name = "rvt0";
module_param_named(device, rig_device_name, charp, 0444);
MODULE_PARM_DESC(device, "name of the device under test");

static struct kunit_suite *const all[] = { RVT_SUITES };
static struct kunit_suite *chosen[ARRAY_SIZE(all)];
static int nr_chosen;

/* The cases of a suite that match, in place. */
static int choose_cases(struct kunit_suite *suite, const char *pattern)
{
	struct kunit_case *from = suite->test_cases, *to = from;
	int n = 0;

	for (; from->run_case; from++) {
		if (!glob_match(pattern, from->name))
			continue;
		if (to != from)
			*to = *from;
		to++;
		n++;
	}
	memset(to, 0, sizeof(*to));
	return n;
}

static int choose(void)
{
	char *suites = kstrdup(filter, GFP_KERNEL), *cases;
	int i;

	if (!suites)
		return -ENOMEM;
	cases = strchr(suites, '.');
	if (cases)
		*cases++ = '\0';
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		if (!glob_match(suites, all[i]->name))
			continue;
		if (!choose_cases(all[i], cases ?: "*"))
			continue;
		chosen[nr_chosen++] = all[i];
	}
	kfree(suites);
	return 0;
}

static int __init rvt_kunit_init(void)
{
	int ret = choose();

	if (ret)
		return ret;
	pr_info("KTAP version 1\n");
	pr_info("1..%d\n", nr_chosen);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
	ret = __kunit_test_suites_init(chosen, nr_chosen);
#else
	ret = __kunit_test_suites_init(chosen, nr_chosen, true);
#endif
	return ret;
}

static void __exit rvt_kunit_exit(void)
{
	__kunit_test_suites_exit(chosen, nr_chosen);
}

module_init(rvt_kunit_init);
module_exit(rvt_kunit_exit);

MODULE_DESCRIPTION("KUnit suites of the rvt device");
MODULE_LICENSE("Dual BSD/GPL");
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(RVT_KUNIT);
#else
MODULE_IMPORT_NS("RVT_KUNIT");
#endif
