// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* module.c - start and end of the module */
#include <linux/module.h>
#include <linux/random.h>

#include "../os/os_init.h"
#include "rvt.h"

MODULE_DESCRIPTION("RDMA device in software: the fabric is this machine's memory");
MODULE_LICENSE("Dual BSD/GPL");

static unsigned int devices = 1;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "number of devices, all in one fabric (default 1)");

static struct rvt_ib_dev *rvt_devs[RVT_MAX_DEVICES];

/*
 * A random locally administered EUI-64; devices count up from it. Its last
 * byte is zero and has room for two GUIDs of each device.
 */
static u64 make_guid_base(void)
{
	u64 guid = get_random_u64();

	static_assert(2 * RVT_MAX_DEVICES <= 256);
	guid &= ~GENMASK_ULL(7, 0);
	guid &= ~BIT_ULL(56); /* not a group */
	guid |= BIT_ULL(57); /* locally administered */
	return guid;
}

static void remove_devices(void)
{
	unsigned int i;

	for (i = 0; i < RVT_MAX_DEVICES && rvt_devs[i]; i++)
		rvt_dev_remove(rvt_devs[i]);
}

static int __init rvt_init(void)
{
	u64 guid_base = make_guid_base();
	unsigned int i;
	int ret;

	if (!devices || devices > RVT_MAX_DEVICES) {
		pr_err("rvt: devices=%u, but 1 to %u are possible\n", devices, RVT_MAX_DEVICES);
		return -EINVAL;
	}
	ret = rvt_os_init();
	if (ret)
		return ret;
	ret = rvt_core_init();
	if (ret)
		goto err_os;
	rvt_counters_init();
	rvt_sysfs_init();
	rvt_look_init();

	for (i = 0; i < devices; i++) {
		struct rvt_ib_dev *dev = rvt_dev_create(i, guid_base);

		if (IS_ERR(dev)) {
			ret = PTR_ERR(dev);
			goto err_devices;
		}
		rvt_devs[i] = dev;
	}
	return 0;

err_devices:
	remove_devices();
	rvt_look_exit();
	rvt_core_exit();
err_os:
	rvt_os_exit();
	return ret;
}

static void __exit rvt_exit(void)
{
	remove_devices();
	rvt_look_exit();
	rvt_core_exit();
	rvt_os_exit();
}

module_init(rvt_init);
module_exit(rvt_exit);
