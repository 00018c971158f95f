// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mad.c - the port's management agents: subnet management (SMA) and
 * performance management (PMA).
 *
 * ib_core receives the management datagrams on QP 0 and 1 and asks here for
 * the answer. Attributes and status codes are those of the InfiniBand
 * specification, volume 1, chapters 13, 14 and 16.
 */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include <rdma/ib_smi.h>

#include "rvt.h"

/* Where the attribute lies in a datagram of either class. */
#define MAD_DATA 64

static_assert(offsetof(struct ib_smp, data) == MAD_DATA);
static_assert(offsetof(struct ib_pma_mad, data) == MAD_DATA);

/* The fields of PortInfo behind struct ib_port_info: speeds beyond 10 Gb/s a lane. */
#define PORT_INFO_EXT_ACTIVE_SUPPORTED 62
#define PORT_INFO_EXT_ENABLED 63

#define WIDTH_1X_4X 3
#define SPEED_SDR_DDR_QDR 7
#define SPEED_QDR 4
#define SPEED_EXT_FDR_EDR 3
#define SPEED_EXT_EDR 2
#define LINK_DOWN_POLLING 2
#define OPERATIONAL_VL0 1
#define PORT_STATE_NO_CHANGE 0

/* A management agent answers within 4.096 us * 2^18, about a second. */
#define RESPONSE_TIME 18

#define GUIDS_IN_BLOCK 8
#define PKEYS_IN_BLOCK 32

/* --- subnet management -------------------------------------------------------- */

static u16 get_node_desc(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	if (modifier)
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	memcpy(data, dev->ibdev.node_desc, IB_DEVICE_NODE_DESC_MAX);
	return 0;
}

static u16 get_node_info(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	const struct ib_device_attr *attr = &dev->ibdev.attrs;
	struct ib_node_info *info = data;

	if (modifier)
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	info->node_type = RDMA_NODE_IB_CA;
	info->num_ports = dev->ibdev.phys_port_cnt;
	info->sys_guid = attr->sys_image_guid;
	info->node_guid = dev->ibdev.node_guid;
	info->port_guid = cpu_to_be64(dev->port_guid);
	info->partition_cap = cpu_to_be16(RVT_MAX_PKEYS);
	info->device_id = cpu_to_be16(attr->vendor_part_id);
	info->revision = cpu_to_be32(attr->hw_ver);
	info->local_port_num = RVT_PORT;
	info->vendor_id[0] = attr->vendor_id >> 16;
	info->vendor_id[1] = attr->vendor_id >> 8;
	info->vendor_id[2] = attr->vendor_id;
	return 0;
}

static u16 get_guid_info(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	__be64 *guid = data;
	unsigned int i;

	if (modifier >= RVT_MAX_GIDS / GUIDS_IN_BLOCK)
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	for (i = 0; i < GUIDS_IN_BLOCK; i++) {
		union ib_gid gid;

		rvt_core_gid_get(dev->core, modifier * GUIDS_IN_BLOCK + i, gid.raw);
		guid[i] = gid.global.interface_id;
	}
	return 0;
}

/* Which port of a channel adapter a modifier means: 0 is the one that was asked. */
static bool is_this_port(u32 modifier)
{
	/* The highest bit says that the subnet manager knows extended speeds. */
	modifier &= ~BIT(31);
	return modifier == 0 || modifier == RVT_PORT;
}

static __be16 violations(u32 count)
{
	return cpu_to_be16(min_t(u32, count, U16_MAX));
}

static u16 get_port_info(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	struct ib_port_info *info = data;
	struct ib_port_attr attr = {};

	if (!is_this_port(modifier) || rvt_query_port(&dev->ibdev, RVT_PORT, &attr))
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	info->gid_prefix = cpu_to_be64(attr.subnet_prefix);
	info->lid = cpu_to_be16(attr.lid);
	info->sm_lid = cpu_to_be16(attr.sm_lid);
	info->cap_mask = cpu_to_be32(attr.port_cap_flags);
	info->local_port_num = RVT_PORT;
	info->link_width_enabled = WIDTH_1X_4X;
	info->link_width_supported = WIDTH_1X_4X;
	info->link_width_active = attr.active_width;
	info->linkspeed_portstate = SPEED_SDR_DDR_QDR << 4 | attr.state;
	info->portphysstate_linkdown = attr.phys_state << 4 | LINK_DOWN_POLLING;
	info->mkeyprot_resv_lmc = attr.lmc;
	info->linkspeedactive_enabled = SPEED_QDR << 4 | SPEED_SDR_DDR_QDR;
	info->neighbormtu_mastersmsl = attr.active_mtu << 4 | attr.sm_sl;
	info->vlcap_inittype = attr.max_vl_num << 4;
	info->inittypereply_mtucap = attr.max_mtu;
	info->operationalvl_pei_peo_fpi_fpo = OPERATIONAL_VL0 << 4;
	info->pkey_violations = violations(attr.bad_pkey_cntr);
	info->qkey_violations = violations(attr.qkey_viol_cntr);
	info->guid_cap = attr.gid_tbl_len;
	info->clientrereg_resv_subnetto = attr.subnet_timeout;
	info->resv_resptimevalue = RESPONSE_TIME;
	((u8 *)data)[PORT_INFO_EXT_ACTIVE_SUPPORTED] = SPEED_EXT_EDR << 4 | SPEED_EXT_FDR_EDR;
	((u8 *)data)[PORT_INFO_EXT_ENABLED] = SPEED_EXT_FDR_EDR;
	return 0;
}

/*
 * What a subnet manager may set: where it is, how long answers take, and that
 * it wants everybody to register again. LID, prefix and state belong to the
 * fabric; everything else has one value, which the answer shows.
 */
static u16 set_port_info(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	const struct ib_port_info *info = data;
	const u8 state = info->linkspeed_portstate & 0xf;
	const u8 phys_state = info->portphysstate_linkdown >> 4;
	const u16 sm_lid = be16_to_cpu(info->sm_lid);
	const u8 sm_sl = info->neighbormtu_mastersmsl & 0xf;
	unsigned long flags;
	union ib_gid gid;
	bool moved;

	rvt_core_gid_get(dev->core, 0, gid.raw);
	if (!is_this_port(modifier) || be16_to_cpu(info->lid) != dev->lid ||
	    info->gid_prefix != gid.global.subnet_prefix || info->mkeyprot_resv_lmc & 7 ||
	    (state != PORT_STATE_NO_CHANGE && state != IB_PORT_ACTIVE) ||
	    (phys_state != PORT_STATE_NO_CHANGE && phys_state != IB_PORT_PHYS_STATE_LINK_UP) ||
	    !sm_lid || sm_lid >= RVT_MCAST_LID_BASE)
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;

	spin_lock_irqsave(&dev->port_lock, flags);
	moved = dev->sm_lid != sm_lid || dev->sm_sl != sm_sl;
	dev->sm_lid = sm_lid;
	dev->sm_sl = sm_sl;
	dev->subnet_timeout = info->clientrereg_resv_subnetto & 0x1f;
	spin_unlock_irqrestore(&dev->port_lock, flags);
	if (moved)
		rvt_port_event(dev, IB_EVENT_SM_CHANGE);
	if (info->clientrereg_resv_subnetto & BIT(7))
		rvt_port_event(dev, IB_EVENT_CLIENT_REREGISTER);
	return 0;
}

static u16 get_pkey_table(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	__be16 *pkey = data;
	unsigned int i;

	static_assert(RVT_MAX_PKEYS <= PKEYS_IN_BLOCK);
	if (modifier)
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	for (i = 0; i < RVT_MAX_PKEYS; i++) {
		u16 value;

		rvt_core_pkey_get(dev->core, i, &value);
		pkey[i] = cpu_to_be16(value);
	}
	return 0;
}

static u16 set_pkey_table(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	const __be16 *pkey = data;
	unsigned int i;

	if (modifier)
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	for (i = 0; i < RVT_MAX_PKEYS; i++)
		rvt_core_pkey_set(dev->core, i, be16_to_cpu(pkey[i]));
	rvt_port_event(dev, IB_EVENT_PKEY_CHANGE);
	return 0;
}

/* --- performance management --------------------------------------------------- */

#define ALL_PORTS 0xff

/* The four counters that move, as they are and as they were when last set. */
enum { XMIT_DATA, RCV_DATA, XMIT_PACKETS, RCV_PACKETS };
static_assert(RCV_PACKETS + 1 == RVT_PORT_COUNTERS);

/* In the order above; data in words of four bytes. */
static void port_totals(struct rvt_ib_dev *dev, u64 total[RVT_PORT_COUNTERS])
{
	u64 counter[RVT_COUNTERS];

	rvt_core_counters_read(dev->core, counter);
	total[XMIT_DATA] = (counter[RVT_CNT_LOOP_BYTES] + counter[RVT_CNT_SENT_BYTES]) / 4;
	total[RCV_DATA] = (counter[RVT_CNT_LOOP_BYTES] + counter[RVT_CNT_RCVD_BYTES]) / 4;
	total[XMIT_PACKETS] = counter[RVT_CNT_LOOP_PKTS] + counter[RVT_CNT_SENT_PKTS];
	total[RCV_PACKETS] = counter[RVT_CNT_LOOP_PKTS] + counter[RVT_CNT_RCVD_PKTS];
}

static void port_counters_read(struct rvt_ib_dev *dev, u64 value[RVT_PORT_COUNTERS])
{
	unsigned long flags;
	unsigned int i;

	port_totals(dev, value);
	spin_lock_irqsave(&dev->port_lock, flags);
	for (i = 0; i < RVT_PORT_COUNTERS; i++) {
		const s64 since = value[i] - dev->port_counter_base[i];

		/* A queue pair that goes meanwhile may be missed once. */
		value[i] = max_t(s64, since, 0);
	}
	spin_unlock_irqrestore(&dev->port_lock, flags);
}

/* Bit i of @which: counter i goes on from value[i]. */
static void port_counters_set(struct rvt_ib_dev *dev, unsigned int which,
			      const u64 value[RVT_PORT_COUNTERS])
{
	u64 total[RVT_PORT_COUNTERS];
	unsigned long flags;
	unsigned int i;

	port_totals(dev, total);
	spin_lock_irqsave(&dev->port_lock, flags);
	for (i = 0; i < RVT_PORT_COUNTERS; i++) {
		if (which & BIT(i))
			dev->port_counter_base[i] = total[i] - value[i];
	}
	spin_unlock_irqrestore(&dev->port_lock, flags);
}

static u16 get_class_port_info(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	struct ib_class_port_info *info = data;

	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	info->capability_mask = IB_PMA_CLASS_CAP_ALLPORTSELECT | IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF;
	ib_set_cpi_resp_time(info, RESPONSE_TIME);
	return 0;
}

static bool is_port_selected(u8 select)
{
	return select == RVT_PORT || select == ALL_PORTS;
}

/* What counts errors of a link stays zero: there is no link. */
static u16 get_port_counters(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	struct ib_pma_portcounters *counters = data;
	u64 value[RVT_PORT_COUNTERS];
	u32 full[RVT_PORT_COUNTERS];
	unsigned int i;

	if (!is_port_selected(counters->port_select))
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	port_counters_read(dev, value);
	/* They stop at their greatest value. */
	for (i = 0; i < RVT_PORT_COUNTERS; i++)
		full[i] = min_t(u64, value[i], U32_MAX);
	counters->port_xmit_data = cpu_to_be32(full[XMIT_DATA]);
	counters->port_rcv_data = cpu_to_be32(full[RCV_DATA]);
	counters->port_xmit_packets = cpu_to_be32(full[XMIT_PACKETS]);
	counters->port_rcv_packets = cpu_to_be32(full[RCV_PACKETS]);
	return 0;
}

static u16 set_port_counters(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	const struct ib_pma_portcounters *counters = data;
	const u64 value[RVT_PORT_COUNTERS] = {
		[XMIT_DATA] = be32_to_cpu(counters->port_xmit_data),
		[RCV_DATA] = be32_to_cpu(counters->port_rcv_data),
		[XMIT_PACKETS] = be32_to_cpu(counters->port_xmit_packets),
		[RCV_PACKETS] = be32_to_cpu(counters->port_rcv_packets),
	};

	if (!is_port_selected(counters->port_select))
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	port_counters_set(dev, be16_to_cpu(counters->counter_select) >> 12, value);
	return 0;
}

static u16 get_port_counters_ext(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	struct ib_pma_portcounters_ext *counters = data;
	u64 value[RVT_PORT_COUNTERS];

	if (!is_port_selected(counters->port_select))
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	port_counters_read(dev, value);
	counters->port_xmit_data = cpu_to_be64(value[XMIT_DATA]);
	counters->port_rcv_data = cpu_to_be64(value[RCV_DATA]);
	counters->port_xmit_packets = cpu_to_be64(value[XMIT_PACKETS]);
	counters->port_rcv_packets = cpu_to_be64(value[RCV_PACKETS]);
	return 0;
}

static u16 set_port_counters_ext(struct rvt_ib_dev *dev, u32 modifier, void *data)
{
	const struct ib_pma_portcounters_ext *counters = data;
	const u64 value[RVT_PORT_COUNTERS] = {
		[XMIT_DATA] = be64_to_cpu(counters->port_xmit_data),
		[RCV_DATA] = be64_to_cpu(counters->port_rcv_data),
		[XMIT_PACKETS] = be64_to_cpu(counters->port_xmit_packets),
		[RCV_PACKETS] = be64_to_cpu(counters->port_rcv_packets),
	};

	if (!is_port_selected(counters->port_select))
		return IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE;
	port_counters_set(dev, be16_to_cpu(counters->counter_select), value);
	return 0;
}

/* --- the agents ---------------------------------------------------------------- */

/**
 * struct mad_attr - an attribute that the port has
 * @mgmt_class: the class it belongs to
 * @id: its number there
 * @keep: so many of its first bytes select something, and an answer repeats them
 * @get: write it; what is not kept is zero
 * @set: take it; NULL if it can only be read
 *
 * Both return a status, IB_MGMT_MAD_STATUS_*.
 */
struct mad_attr {
	u8 mgmt_class;
	__be16 id;
	u8 keep;
	u16 (*get)(struct rvt_ib_dev *dev, u32 modifier, void *data);
	u16 (*set)(struct rvt_ib_dev *dev, u32 modifier, void *data);
};

#define SUBN IB_MGMT_CLASS_SUBN_LID_ROUTED
#define PERF IB_MGMT_CLASS_PERF_MGMT

static const struct mad_attr mad_attrs[] = {
	{ SUBN, IB_SMP_ATTR_NODE_DESC, 0, get_node_desc },
	{ SUBN, IB_SMP_ATTR_NODE_INFO, 0, get_node_info },
	{ SUBN, IB_SMP_ATTR_GUID_INFO, 0, get_guid_info },
	{ SUBN, IB_SMP_ATTR_PORT_INFO, 0, get_port_info, set_port_info },
	{ SUBN, IB_SMP_ATTR_PKEY_TABLE, 0, get_pkey_table, set_pkey_table },
	{ PERF, IB_PMA_CLASS_PORT_INFO, 0, get_class_port_info },
	{ PERF, IB_PMA_PORT_COUNTERS, offsetof(struct ib_pma_portcounters, symbol_error_counter),
	  get_port_counters, set_port_counters },
	{ PERF, IB_PMA_PORT_COUNTERS_EXT, offsetof(struct ib_pma_portcounters_ext, reserved1),
	  get_port_counters_ext, set_port_counters_ext },
};

static const struct mad_attr *find_attr(u8 mgmt_class, __be16 id)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(mad_attrs); i++) {
		if (mad_attrs[i].mgmt_class == mgmt_class && mad_attrs[i].id == id)
			return &mad_attrs[i];
	}
	return NULL;
}

/* Carry out the request that is in @mad, and put the attribute's value there. */
static u16 answer(struct rvt_ib_dev *dev, u8 mgmt_class, struct ib_mad *mad)
{
	const size_t size = mgmt_class == SUBN ? IB_SMP_DATA_SIZE : IB_MGMT_MAD_SIZE - MAD_DATA;
	const u32 modifier = be32_to_cpu(mad->mad_hdr.attr_mod);
	const struct mad_attr *attr;
	u8 *data = (u8 *)mad + MAD_DATA;
	u16 status;

	if (mad->mad_hdr.class_version != 1)
		return IB_MGMT_MAD_STATUS_BAD_VERSION;
	if (mad->mad_hdr.method != IB_MGMT_METHOD_GET && mad->mad_hdr.method != IB_MGMT_METHOD_SET)
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD;
	attr = find_attr(mgmt_class, mad->mad_hdr.attr_id);
	if (!attr || (mad->mad_hdr.method == IB_MGMT_METHOD_SET && !attr->set))
		return IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	if (mad->mad_hdr.method == IB_MGMT_METHOD_SET) {
		status = attr->set(dev, modifier, data);
		if (status)
			return status;
	}
	memset(data + attr->keep, 0, size - attr->keep);
	return attr->get(dev, modifier, data);
}

/* Is it for a manager that runs on this port, and not for the port's agents? */
static bool is_for_manager(struct rvt_ib_dev *dev, const struct ib_mad_hdr *hdr)
{
	unsigned long irq;
	bool has_sm;

	if (ib_response_mad(hdr) || hdr->method == IB_MGMT_METHOD_TRAP)
		return true;
	if (hdr->mgmt_class == PERF || hdr->attr_id != IB_SMP_ATTR_SM_INFO)
		return false;
	spin_lock_irqsave(&dev->port_lock, irq);
	has_sm = dev->port_cap_flags & IB_PORT_SM;
	spin_unlock_irqrestore(&dev->port_lock, irq);
	return has_sm;
}

/**
 * rvt_process_mad - answer a management datagram
 * @ibdev: the device
 * @flags: whether keys are to be ignored; there are none
 * @port: the port
 * @wc: how it came; NULL when the kernel itself asks
 * @grh: its global route header, if it had one
 * @in: the request
 * @out: the answer
 * @out_size: room for the answer
 * @out_pkey_index: not written: answers go out with the request's P_Key
 *
 * Context: any. Locks: takes the port's lock.
 * Return: IB_MAD_RESULT_*: replied, consumed, or neither, then ib_core goes on
 * to look for another agent.
 */
int rvt_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
		    const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index)
{
	struct rvt_ib_dev *dev = to_rvt_dev(ibdev);
	bool directed = in->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
	u16 status;

	/*
	 * A datagram of another length is none. ib_core would take what the buffer
	 * held before for its rest, and might send that back.
	 */
	if (wc && wc->byte_len != sizeof(struct ib_grh) + sizeof(*in))
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED;
	if (!directed && in->mad_hdr.mgmt_class != SUBN && in->mad_hdr.mgmt_class != PERF)
		return IB_MAD_RESULT_SUCCESS;
	if (is_for_manager(dev, &in->mad_hdr))
		return IB_MAD_RESULT_SUCCESS;

	*out = *in;
	status = answer(dev, directed ? SUBN : in->mad_hdr.mgmt_class, out);
	out->mad_hdr.status = cpu_to_be16(status);
	if (directed)
		out->mad_hdr.status |= IB_SMP_DIRECTION;
	/* Set, too, is answered with GetResp. */
	out->mad_hdr.method = in->mad_hdr.method == IB_MGMT_METHOD_SET ?
				      IB_MGMT_METHOD_GET_RESP :
				      in->mad_hdr.method | IB_MGMT_METHOD_RESP;
	*out_size = sizeof(*out);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
