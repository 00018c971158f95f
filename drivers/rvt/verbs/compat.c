// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "rvt.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static int compat_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	return rvt_create_cq(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}
#else
static int compat_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			    struct ib_udata *udata)
{
	return rvt_create_cq(ibcq, attr, udata);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
static int compat_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	return rvt_resize_cq(ibcq, cqe, udata);
}
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
static struct ib_mr *compat_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					int access, struct ib_dmah *dmah, struct ib_udata *udata)
{
	/* Hints for a bus that is not there. */
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return rvt_reg_user_mr(ibpd, start, length, iova, access, udata);
}
#else
static struct ib_mr *compat_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova,
					int access, struct ib_udata *udata)
{
	return rvt_reg_user_mr(ibpd, start, length, iova, access, udata);
}
#endif

static const struct ib_device_ops compat_ops = {
	.create_cq = compat_create_cq,
	.reg_user_mr = compat_reg_user_mr,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	.fill_res_srq_entry = rvt_fill_res_srq_entry,
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
	.resize_user_cq = rvt_resize_cq,
#else
	.resize_cq = compat_resize_cq,
#endif
};

void rvt_compat_set_ops(struct ib_device *ibdev)
{
	ib_set_device_ops(ibdev, &compat_ops);
}
