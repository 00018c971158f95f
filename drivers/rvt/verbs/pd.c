// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* pd.c - protection domains */
#include <linux/module.h>

#include "rvt.h"

/*
 * A kernel consumer that holds a protection domain uses the module. Those that
 * come to every device by themselves, and go with it, do not count.
 */
static bool pd_is_a_use(const struct ib_pd *ibpd)
{
	static const char *const by_themselves[] = { "ib_core", "ib_ipoib" };
	unsigned int i;

	for (i = 0; ibpd->res.kern_name && i < ARRAY_SIZE(by_themselves); i++) {
		if (!strcmp(ibpd->res.kern_name, by_themselves[i]))
			return false;
	}
	return true;
}

int rvt_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct rvt_ib_pd *pd = to_rvt_pd(ibpd);

	pd->user = udata;
	/* A process is counted by its context. */
	pd->holds_module = !pd->user && pd_is_a_use(ibpd);
	if (pd->holds_module && !try_module_get(THIS_MODULE))
		return -ENODEV;
	pd->core = rvt_core_pd_create(to_rvt_dev(ibpd->device)->core, pd->user);
	if (pd->core)
		return 0;
	if (pd->holds_module)
		module_put(THIS_MODULE);
	return -ENOMEM;
}

int rvt_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct rvt_ib_pd *pd = to_rvt_pd(ibpd);

	rvt_core_pd_destroy(pd->core);
	if (pd->holds_module)
		module_put(THIS_MODULE);
	return 0;
}
