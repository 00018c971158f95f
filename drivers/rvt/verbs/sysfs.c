// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * sysfs.c - what the device adds to its folder in sysfs.
 *
 *	hca_type, hw_rev, board_id	what ibstat and ibv_devinfo show
 *	ports/1/admin_gids/N		entry N of the GID table, to be read and
 *	ports/1/admin_pkeys/N		written; the same of the P_Key table
 *
 * Beside them ib_core has its own files, gids/N and pkeys/N, to be read only.
 */
#include <linux/inet.h>
#include <rdma/ib_sysfs.h>

#include "rvt.h"

/* --- the device ------------------------------------------------------------------ */

static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "rvt\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "rvt\n");
}
static DEVICE_ATTR_RO(board_id);

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct rvt_ib_dev *dev = rdma_device_to_drv_device(device, struct rvt_ib_dev, ibdev);

	return sysfs_emit(buf, "%x\n", dev->ibdev.attrs.hw_ver);
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *device_attrs[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_board_id.attr,
	&dev_attr_hw_rev.attr,
	NULL,
};

const struct attribute_group rvt_device_group = {
	.attrs = device_attrs,
};

/* --- the tables of the port --------------------------------------------------------- */

/* One entry's file. Entry 0 is the port's own and has none. */
struct entry {
	struct ib_port_attribute attr;
	unsigned int index;
	char name[4];
};

/* Wait until ib_core has read the tables again: who wrote an entry may use it at once. */
static void table_changed(struct ib_device *ibdev, enum ib_event_type what)
{
	rvt_port_event(to_rvt_dev(ibdev), what);
	flush_workqueue(ib_wq);
}

static ssize_t gid_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr,
			char *buf)
{
	struct entry *entry = container_of(attr, struct entry, attr);
	union ib_gid gid;

	rvt_core_gid_get(to_rvt_dev(ibdev)->core, entry->index, gid.raw);
	return sysfs_emit(buf, "%pI6\n", gid.raw);
}

/* An address as IPv6 writes it; "::" empties the entry. */
static ssize_t gid_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr,
			 const char *buf, size_t count)
{
	/* Two that look whether the same GID is free must not do so at once. */
	static DEFINE_MUTEX(lock);
	struct entry *entry = container_of(attr, struct entry, attr);
	union ib_gid gid;
	const char *end;
	int ret;

	if (!in6_pton(buf, count, gid.raw, '\n', &end) || end + (*end == '\n') != buf + count)
		return -EINVAL;
	mutex_lock(&lock);
	ret = rvt_core_gid_set(to_rvt_dev(ibdev)->core, entry->index, gid.raw);
	mutex_unlock(&lock);
	if (ret)
		return ret;
	table_changed(ibdev, IB_EVENT_GID_CHANGE);
	return count;
}

static ssize_t pkey_show(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr,
			 char *buf)
{
	struct entry *entry = container_of(attr, struct entry, attr);
	u16 pkey;

	rvt_core_pkey_get(to_rvt_dev(ibdev)->core, entry->index, &pkey);
	return sysfs_emit(buf, "0x%04x\n", pkey);
}

/* 0x8000 set: a full member of the partition, else a limited one; 0 empties the entry. */
static ssize_t pkey_store(struct ib_device *ibdev, u32 port, struct ib_port_attribute *attr,
			  const char *buf, size_t count)
{
	struct entry *entry = container_of(attr, struct entry, attr);
	u16 pkey;
	int ret;

	ret = kstrtou16(buf, 0, &pkey);
	if (ret)
		return ret;
	/* A full member, but of none. */
	if (pkey == 0x8000)
		return -EINVAL;
	rvt_core_pkey_set(to_rvt_dev(ibdev)->core, entry->index, pkey);
	table_changed(ibdev, IB_EVENT_PKEY_CHANGE);
	return count;
}

static struct entry gid_entries[RVT_MAX_GIDS - 1], pkey_entries[RVT_MAX_PKEYS - 1];
/* They end with a NULL. */
static struct attribute *gid_attrs[RVT_MAX_GIDS], *pkey_attrs[RVT_MAX_PKEYS];

static const struct attribute_group gid_group = {
	.name = "admin_gids",
	.attrs = gid_attrs,
};

static const struct attribute_group pkey_group = {
	.name = "admin_pkeys",
	.attrs = pkey_attrs,
};

const struct attribute_group *rvt_port_groups[] = { &gid_group, &pkey_group, NULL };

static void fill(struct entry *entries, struct attribute **attrs, unsigned int n,
		 const struct ib_port_attribute *kind)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct entry *entry = &entries[i];

		entry->index = i + 1;
		snprintf(entry->name, sizeof(entry->name), "%u", entry->index);
		entry->attr = *kind;
		entry->attr.attr.name = entry->name;
		attrs[i] = &entry->attr.attr;
	}
}

/* Once, before the first device. */
void rvt_sysfs_init(void)
{
	static const struct ib_port_attribute gid = __ATTR(gid, 0644, gid_show, gid_store);
	static const struct ib_port_attribute pkey = __ATTR(pkey, 0644, pkey_show, pkey_store);

	fill(gid_entries, gid_attrs, ARRAY_SIZE(gid_entries), &gid);
	fill(pkey_entries, pkey_attrs, ARRAY_SIZE(pkey_entries), &pkey);
}
