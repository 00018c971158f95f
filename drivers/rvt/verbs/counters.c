// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* counters.c - the port's counters for "rdma statistic" and sysfs */
#include "rvt.h"

static struct rdma_stat_desc counter_desc[RVT_COUNTERS];

/* Names come from the core, so the table is filled once, at start. */
void rvt_counters_init(void)
{
	unsigned int i;

	for (i = 0; i < RVT_COUNTERS; i++)
		counter_desc[i].name = rvt_core_counter_name(i);
}

struct rdma_hw_stats *rvt_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(counter_desc, RVT_COUNTERS,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

int rvt_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	static_assert(sizeof(stats->value[0]) == sizeof(uint64_t));

	if (!port || !stats)
		return -EINVAL;
	rvt_core_counters_read(to_rvt_dev(ibdev)->core, stats->value);
	return RVT_COUNTERS;
}
