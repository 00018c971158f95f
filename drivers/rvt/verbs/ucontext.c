// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* ucontext.c - a process opens the device */
#include <linux/module.h>

#include "rvt.h"

int rvt_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata)
{
	struct rvt_ib_ucontext *uc = to_rvt_uc(ibuc);

	/*
	 * uverbs takes no reference to a module that can disassociate. The
	 * device is in use all the same: rmmod has to wait for its users.
	 */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	xa_init_flags(&uc->rings, XA_FLAGS_ACCOUNT);
	return 0;
}

void rvt_dealloc_ucontext(struct ib_ucontext *ibuc)
{
	struct rvt_ib_ucontext *uc = to_rvt_uc(ibuc);

	/* Every ring belongs to an object, and these are gone by now. */
	WARN_ON(!xa_empty(&uc->rings));
	xa_destroy(&uc->rings);
	module_put(THIS_MODULE);
}

/*
 * The device goes away under an open context. uverbs has the objects
 * destroyed; pages of rings that are still mapped belong to the mappings.
 */
void rvt_disassociate_ucontext(struct ib_ucontext *ibuc)
{
}
