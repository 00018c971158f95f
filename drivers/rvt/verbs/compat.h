/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * compat.h, compat.c - where kernels differ in their verbs interface.
 *
 * The rest of verbs/ is written against one interface: this one. Nothing
 * else in verbs/ asks for the kernel's version.
 */
#ifndef RVT_VERBS_COMPAT_H
#define RVT_VERBS_COMPAT_H

#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

/* Set the operations of @ops whose prototypes differ between kernels. */
void rvt_compat_set_ops(struct ib_device *ibdev);

static inline struct ib_umem *rvt_compat_umem_get(struct ib_device *ibdev, unsigned long addr,
						  size_t size, int access)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	return ib_umem_get_va(ibdev, addr, size, access);
#else
	return ib_umem_get(ibdev, addr, size, access);
#endif
}

#endif
