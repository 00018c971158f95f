// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Management datagrams: what the port's agents answer when asked directly,
 * and the same through ib_core's queue pairs 0 and 1.
 */
#include <linux/completion.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include <rdma/ib_smi.h>

#include "../drivers/rvt/verbs/rvt.h"
#include "harness.h"
#include "suites.h"

enum {
	GRH = 40,
	SUBN = IB_MGMT_CLASS_SUBN_LID_ROUTED,
	DIRECTED = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE,
	PERF = IB_MGMT_CLASS_PERF_MGMT,
	GET = IB_MGMT_METHOD_GET,
	SET = IB_MGMT_METHOD_SET,
	GET_RESP = IB_MGMT_METHOD_GET_RESP,
	REPLIED = IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY,
	DATA = 64, /* where the attribute begins, in both classes */
};

/* A question and its answer. */
struct mads {
	struct ib_mad in, out;
};

static struct mads *mads_of(struct kunit *test)
{
	struct mads *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, m);
	return m;
}

static void *data_of(struct ib_mad *mad)
{
	return (u8 *)mad + DATA;
}

static void mad_head(struct ib_mad *mad, u8 mgmt_class, u8 method, __be16 attr, u32 modifier)
{
	mad->mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	mad->mad_hdr.mgmt_class = mgmt_class;
	mad->mad_hdr.class_version = 1;
	mad->mad_hdr.method = method;
	mad->mad_hdr.tid = cpu_to_be64(0x0123456789abcdef);
	mad->mad_hdr.attr_id = attr;
	mad->mad_hdr.attr_mod = cpu_to_be32(modifier);
}

/* Give m->in to the device, as it is. */
static int process(struct rig *rig, struct mads *m, u32 bytes)
{
	struct ib_wc wc = { .byte_len = GRH + bytes, .port_num = rig->port };
	size_t size = sizeof(m->out);
	u16 pkey_index = 0;

	memset(&m->out, 0xa5, sizeof(m->out));
	return rig->dev->ops.process_mad(rig->dev, 0, rig->port, &wc, NULL, &m->in, &m->out, &size,
					 &pkey_index);
}

/* Ask with the attribute that is in m->in; the status of the answer. */
static u16 ask(struct rig *rig, struct mads *m, u8 mgmt_class, u8 method, __be16 attr,
	       u32 modifier)
{
	struct kunit *test = rig->test;
	u16 status;

	mad_head(&m->in, mgmt_class, method, attr, modifier);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)REPLIED);
	KUNIT_EXPECT_EQ(test, m->out.mad_hdr.tid, m->in.mad_hdr.tid);
	KUNIT_EXPECT_EQ(test, m->out.mad_hdr.attr_id, attr);
	KUNIT_EXPECT_EQ(test, m->out.mad_hdr.attr_mod, m->in.mad_hdr.attr_mod);
	KUNIT_EXPECT_EQ(test, m->out.mad_hdr.mgmt_class, mgmt_class);
	if (method == GET || method == SET)
		KUNIT_EXPECT_EQ(test, (int)m->out.mad_hdr.method, (int)GET_RESP);
	status = be16_to_cpu(m->out.mad_hdr.status);
	if (mgmt_class == DIRECTED) {
		/* On its way back. */
		KUNIT_EXPECT_TRUE(test, status & 0x8000);
		status &= 0x7fff;
	}
	return status;
}

/* The same with a request that is zero but for its head; the answer's attribute. */
static void *get(struct rig *rig, struct mads *m, u8 mgmt_class, __be16 attr, u32 modifier)
{
	memset(&m->in, 0, sizeof(m->in));
	KUNIT_EXPECT_EQ(rig->test, ask(rig, m, mgmt_class, GET, attr, modifier), (u16)0);
	return data_of(&m->out);
}

/* --- subnet management ---------------------------------------------------------- */

static void node_info(struct kunit *test)
{
	static const u8 classes[] = { SUBN, DIRECTED };
	struct rig *rig = rig_of(test);
	struct mads *m = mads_of(test);
	const struct ib_node_info *info;
	union ib_gid gid;
	int i;

	KUNIT_ASSERT_EQ(test, 0, rdma_query_gid(rig->dev, rig->port, 0, &gid));
	for (i = 0; i < ARRAY_SIZE(classes); i++) {
		info = get(rig, m, classes[i], IB_SMP_ATTR_NODE_INFO, 0);
		KUNIT_EXPECT_EQ(test, (int)info->base_version, 1);
		KUNIT_EXPECT_EQ(test, (int)info->class_version, 1);
		KUNIT_EXPECT_EQ(test, (int)info->node_type, (int)RDMA_NODE_IB_CA);
		KUNIT_EXPECT_EQ(test, (int)info->num_ports, 1);
		KUNIT_EXPECT_EQ(test, info->node_guid, rig->dev->node_guid);
		KUNIT_EXPECT_EQ(test, info->sys_guid, rig->attr.sys_image_guid);
		KUNIT_EXPECT_EQ(test, info->port_guid, gid.global.interface_id);
		KUNIT_EXPECT_EQ(test, be16_to_cpu(info->partition_cap), rig->attr.max_pkeys);
		KUNIT_EXPECT_EQ(test, (u32)be16_to_cpu(info->device_id), rig->attr.vendor_part_id);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(info->revision), rig->attr.hw_ver);
		KUNIT_EXPECT_EQ(test, (u32)info->local_port_num, rig->port);
		KUNIT_EXPECT_EQ(test,
				(u32)(info->vendor_id[0] << 16 | info->vendor_id[1] << 8 |
				      info->vendor_id[2]),
				rig->attr.vendor_id);
	}
	KUNIT_EXPECT_EQ(test, 0, memcmp(get(rig, m, SUBN, IB_SMP_ATTR_NODE_DESC, 0),
					rig->dev->node_desc, IB_DEVICE_NODE_DESC_MAX));
}

static void guid_info(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct mads *m = mads_of(test);
	union ib_gid gid;
	__be64 *guid;
	int i;

	KUNIT_ASSERT_EQ(test, 0, rdma_query_gid(rig->dev, rig->port, 0, &gid));
	guid = get(rig, m, SUBN, IB_SMP_ATTR_GUID_INFO, 0);
	KUNIT_EXPECT_EQ(test, guid[0], gid.global.interface_id);
	for (i = 1; i < 8; i++)
		KUNIT_EXPECT_EQ(test, guid[i], (__be64)0);
	guid = get(rig, m, SUBN, IB_SMP_ATTR_GUID_INFO, 1);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, guid[i], (__be64)0);
	KUNIT_EXPECT_EQ(test, ask(rig, m, SUBN, GET, IB_SMP_ATTR_GUID_INFO, 2),
			(u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
}

static void port_info(struct kunit *test)
{
	/* Either way of naming it, and with the bit for extended speeds. */
	static const u32 modifiers[] = { 0, 1, 0x80000000, 0x80000001 };
	struct rig *rig = rig_of(test);
	struct mads *m = mads_of(test);
	const struct ib_port_info *info;
	struct ib_port_attr attr;
	const u8 *raw;
	int i;

	KUNIT_ASSERT_EQ(test, 0, ib_query_port(rig->dev, rig->port, &attr));
	for (i = 0; i < ARRAY_SIZE(modifiers); i++) {
		info = get(rig, m, SUBN, IB_SMP_ATTR_PORT_INFO, modifiers[i]);
		KUNIT_EXPECT_EQ(test, be16_to_cpu(info->lid), (u16)attr.lid);
		KUNIT_EXPECT_EQ(test, be16_to_cpu(info->sm_lid), (u16)attr.sm_lid);
		KUNIT_EXPECT_EQ(test, be64_to_cpu(info->gid_prefix), attr.subnet_prefix);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(info->cap_mask), attr.port_cap_flags);
		KUNIT_EXPECT_EQ(test, info->linkspeed_portstate & 0xf, (int)IB_PORT_ACTIVE);
		KUNIT_EXPECT_EQ(test, info->portphysstate_linkdown >> 4,
				(int)IB_PORT_PHYS_STATE_LINK_UP);
		KUNIT_EXPECT_EQ(test, info->link_width_active, attr.active_width);
		KUNIT_EXPECT_EQ(test, info->neighbormtu_mastersmsl >> 4, (int)attr.active_mtu);
		KUNIT_EXPECT_EQ(test, info->inittypereply_mtucap & 0xf, (int)attr.max_mtu);
		KUNIT_EXPECT_EQ(test, info->vlcap_inittype >> 4, (int)attr.max_vl_num);
		KUNIT_EXPECT_EQ(test, (int)info->guid_cap, attr.gid_tbl_len);
		KUNIT_EXPECT_EQ(test, info->clientrereg_resv_subnetto & 0x1f,
				(int)attr.subnet_timeout);
		/* EDR is an extended speed: bit 1 of its own field. */
		raw = data_of(&m->out);
		KUNIT_EXPECT_EQ(test, raw[62] >> 4, 2);
		KUNIT_EXPECT_EQ(test, (int)attr.active_speed, (int)IB_SPEED_EDR);
		KUNIT_EXPECT_TRUE(test, attr.port_cap_flags & IB_PORT_EXTENDED_SPEEDS_SUP);
	}
	KUNIT_EXPECT_EQ(test, ask(rig, m, SUBN, GET, IB_SMP_ATTR_PORT_INFO, 2),
			(u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
}

struct listener {
	struct ib_event_handler handler;
	struct completion seen[IB_EVENT_WQ_FATAL + 1];
};

static void listen(struct ib_event_handler *handler, struct ib_event *event)
{
	struct listener *l = container_of(handler, struct listener, handler);

	if (event->element.port_num == RVT_PORT && event->event < ARRAY_SIZE(l->seen))
		complete(&l->seen[event->event]);
}

static struct listener *listener_of(struct kunit *test)
{
	struct listener *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	for (i = 0; i < ARRAY_SIZE(l->seen); i++)
		init_completion(&l->seen[i]);
	INIT_IB_EVENT_HANDLER(&l->handler, rig_of(test)->dev, listen);
	ib_register_event_handler(&l->handler);
	return l;
}

static void expect_event(struct kunit *test, struct listener *l, enum ib_event_type event)
{
	KUNIT_EXPECT_NE_MSG(test, 0ul, wait_for_completion_timeout(&l->seen[event], RIG_PATIENCE),
			    "event %d does not come", event);
}

/* A subnet manager may say where it is; the LID and the state are not its own. */
static void port_info_set(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct mads *m = mads_of(test);
	struct ib_port_info now, *info = data_of(&m->in);
	struct listener *l = listener_of(test);
	struct ib_port_attr attr;
	int row;

	now = *(struct ib_port_info *)get(rig, m, SUBN, IB_SMP_ATTR_PORT_INFO, 0);
	now.linkspeed_portstate &= 0xf0;
	now.portphysstate_linkdown &= 0x0f;
	for (row = 0; row < 8; row++) {
		*info = now;
		info->sm_lid = cpu_to_be16(0x17);
		switch (row) {
		case 0:
			info->lid = cpu_to_be16(rig->port_attr.lid + 1);
			break;
		case 1:
			info->lid = 0;
			break;
		case 2:
			info->gid_prefix = cpu_to_be64(0xfec0ull << 48);
			break;
		case 3:
			info->linkspeed_portstate |= IB_PORT_DOWN;
			break;
		case 4:
			info->portphysstate_linkdown |= IB_PORT_PHYS_STATE_DISABLED << 4;
			break;
		case 5:
			info->sm_lid = 0;
			break;
		case 6:
			info->sm_lid = IB_MULTICAST_LID_BASE;
			break;
		case 7:
			info->mkeyprot_resv_lmc |= 1;
			break;
		}
		KUNIT_EXPECT_EQ_MSG(test, ask(rig, m, SUBN, SET, IB_SMP_ATTR_PORT_INFO, 1),
				    (u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE, "row %d", row);
		KUNIT_EXPECT_EQ(test, 0, ib_query_port(rig->dev, rig->port, &attr));
		KUNIT_EXPECT_EQ_MSG(test, attr.sm_lid, rig->port_attr.sm_lid, "row %d", row);
	}

	*info = now;
	info->sm_lid = cpu_to_be16(0x17);
	info->neighbormtu_mastersmsl |= 3;
	info->clientrereg_resv_subnetto = 0x80 | 11;
	KUNIT_EXPECT_EQ(test, ask(rig, m, SUBN, SET, IB_SMP_ATTR_PORT_INFO, 1), (u16)0);
	/* The answer shows what holds now. */
	KUNIT_EXPECT_EQ(test, be16_to_cpu(((struct ib_port_info *)data_of(&m->out))->sm_lid),
			(u16)0x17);
	KUNIT_EXPECT_EQ(test, 0, ib_query_port(rig->dev, rig->port, &attr));
	KUNIT_EXPECT_EQ(test, attr.sm_lid, 0x17u);
	KUNIT_EXPECT_EQ(test, (int)attr.sm_sl, 3);
	KUNIT_EXPECT_EQ(test, (int)attr.subnet_timeout, 11);
	KUNIT_EXPECT_EQ(test, (int)attr.state, (int)IB_PORT_ACTIVE);
	expect_event(test, l, IB_EVENT_SM_CHANGE);
	expect_event(test, l, IB_EVENT_CLIENT_REREGISTER);

	*info = now;
	KUNIT_EXPECT_EQ(test, ask(rig, m, SUBN, SET, IB_SMP_ATTR_PORT_INFO, 1), (u16)0);
	expect_event(test, l, IB_EVENT_SM_CHANGE);
	KUNIT_EXPECT_EQ(test, 0, ib_query_port(rig->dev, rig->port, &attr));
	KUNIT_EXPECT_EQ(test, attr.sm_lid, rig->port_attr.sm_lid);
	KUNIT_EXPECT_EQ(test, attr.subnet_timeout, rig->port_attr.subnet_timeout);
	ib_unregister_event_handler(&l->handler);
}

static void pkey_table(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct mads *m = mads_of(test);
	struct listener *l = listener_of(test);
	__be16 *pkey = data_of(&m->in), *answer;
	u16 value, index;
	int i;

	answer = get(rig, m, DIRECTED, IB_SMP_ATTR_PKEY_TABLE, 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(answer[0]), (u16)0xffff);
	for (i = 1; i < 32; i++)
		KUNIT_EXPECT_EQ(test, be16_to_cpu(answer[i]), (u16)0);

	memcpy(pkey, answer, 64);
	pkey[3] = cpu_to_be16(0x8123);
	/* Beyond the table: of no effect, and not shown. */
	pkey[16] = cpu_to_be16(0x8456);
	KUNIT_EXPECT_EQ(test, ask(rig, m, SUBN, SET, IB_SMP_ATTR_PKEY_TABLE, 0), (u16)0);
	answer = data_of(&m->out);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(answer[3]), (u16)0x8123);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(answer[16]), (u16)0);
	KUNIT_EXPECT_EQ(test, 0, ib_query_pkey(rig->dev, rig->port, 3, &value));
	KUNIT_EXPECT_EQ(test, value, (u16)0x8123);
	/* By then ib_core's copy is the new one. */
	expect_event(test, l, IB_EVENT_PKEY_CHANGE);
	KUNIT_EXPECT_EQ(test, 0, ib_find_cached_pkey(rig->dev, rig->port, 0x8123, &index));
	KUNIT_EXPECT_EQ(test, index, (u16)3);

	pkey[3] = 0;
	KUNIT_EXPECT_EQ(test, ask(rig, m, SUBN, SET, IB_SMP_ATTR_PKEY_TABLE, 0), (u16)0);
	expect_event(test, l, IB_EVENT_PKEY_CHANGE);
	KUNIT_EXPECT_NE(test, 0, ib_find_cached_pkey(rig->dev, rig->port, 0x8123, &index));
	KUNIT_EXPECT_EQ(test, ask(rig, m, SUBN, SET, IB_SMP_ATTR_PKEY_TABLE, 1),
			(u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	ib_unregister_event_handler(&l->handler);
}

/* --- performance management -------------------------------------------------------- */

static void class_port_info(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_class_port_info *info;

	info = get(rig, mads_of(test), PERF, IB_PMA_CLASS_PORT_INFO, 0);
	KUNIT_EXPECT_EQ(test, (int)info->base_version, 1);
	KUNIT_EXPECT_EQ(test, (int)info->class_version, 1);
	KUNIT_EXPECT_TRUE(test, info->capability_mask & IB_PMA_CLASS_CAP_ALLPORTSELECT);
	KUNIT_EXPECT_TRUE(test, info->capability_mask & IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF);
	KUNIT_EXPECT_EQ(test, (int)ib_get_cpi_resp_time(info), 18);
}

static void read_counters(struct rig *rig, struct mads *m, u64 value[4])
{
	struct ib_pma_portcounters_ext *wide;
	struct ib_pma_portcounters *narrow;
	int i;

	memset(&m->in, 0, sizeof(m->in));
	((struct ib_pma_portcounters_ext *)data_of(&m->in))->port_select = rig->port;
	KUNIT_EXPECT_EQ(rig->test, ask(rig, m, PERF, GET, IB_PMA_PORT_COUNTERS_EXT, 0), (u16)0);
	wide = data_of(&m->out);
	KUNIT_EXPECT_EQ(rig->test, (u32)wide->port_select, rig->port);
	value[0] = be64_to_cpu(wide->port_xmit_data);
	value[1] = be64_to_cpu(wide->port_rcv_data);
	value[2] = be64_to_cpu(wide->port_xmit_packets);
	value[3] = be64_to_cpu(wide->port_rcv_packets);

	/* The narrow ones are the same, up to their greatest value. */
	((struct ib_pma_portcounters *)data_of(&m->in))->port_select = 0xff;
	KUNIT_EXPECT_EQ(rig->test, ask(rig, m, PERF, GET, IB_PMA_PORT_COUNTERS, 0), (u16)0);
	narrow = data_of(&m->out);
	KUNIT_EXPECT_EQ(rig->test, (int)narrow->port_select, 0xff);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(rig->test, (u64)be32_to_cpu((&narrow->port_xmit_data)[i]),
				min_t(u64, value[i], U32_MAX));
	KUNIT_EXPECT_EQ(rig->test, be32_to_cpu(narrow->port_xmit_wait), 0u);
}

static void expect_counters(struct rig *rig, struct mads *m, u64 xmit_data, u64 rcv_data,
			    u64 xmit_packets, u64 rcv_packets)
{
	u64 value[4];

	read_counters(rig, m, value);
	KUNIT_EXPECT_EQ(rig->test, value[0], xmit_data);
	KUNIT_EXPECT_EQ(rig->test, value[1], rcv_data);
	KUNIT_EXPECT_EQ(rig->test, value[2], xmit_packets);
	KUNIT_EXPECT_EQ(rig->test, value[3], rcv_packets);
}

static void send_some(struct rig_pair *pair, u8 *buf, int n)
{
	struct kunit *test = pair->a->rig->test;
	struct rig_wr wr;

	while (n--) {
		KUNIT_ASSERT_EQ(test, 0, rig_post_recv(pair->b, n, buf + 4096, 4096));
		rig_wr(pair->a, &wr, IB_WR_SEND, n, buf, 3000);
		KUNIT_ASSERT_EQ(test, 0, rig_post(pair->a, &wr));
		rig_expect_wc(pair->a->scq, n, IB_WC_SUCCESS);
		rig_expect_wc(pair->b->rcq, n, IB_WC_SUCCESS);
	}
}

/* They grow by what was sent, are set to any value, and only where selected. */
static void port_counters(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_RC, NULL);
	struct mads *m = mads_of(test);
	struct ib_pma_portcounters_ext *wide = data_of(&m->in);
	struct ib_pma_portcounters *narrow = data_of(&m->in);
	u8 *buf = rig_buf(rig, 8192);

	narrow->port_select = rig->port;
	narrow->counter_select = cpu_to_be16(0xffff);
	KUNIT_EXPECT_EQ(test, ask(rig, m, PERF, SET, IB_PMA_PORT_COUNTERS, 0), (u16)0);
	expect_counters(rig, m, 0, 0, 0, 0);

	/* Of 3000 bytes each: 750 words, and three packets of the path MTU of 1024. */
	send_some(&pair, buf, 5);
	expect_counters(rig, m, 3750, 3750, 15, 15);

	memset(&m->in, 0, sizeof(m->in));
	narrow->port_select = 0xff;
	narrow->counter_select = IB_PMA_SEL_PORT_RCV_DATA | IB_PMA_SEL_PORT_XMIT_PACKETS;
	narrow->port_xmit_data = cpu_to_be32(7);
	narrow->port_rcv_data = cpu_to_be32(100);
	KUNIT_EXPECT_EQ(test, ask(rig, m, PERF, SET, IB_PMA_PORT_COUNTERS, 0), (u16)0);
	expect_counters(rig, m, 3750, 100, 0, 15);
	send_some(&pair, buf, 1);
	expect_counters(rig, m, 4500, 850, 3, 18);

	memset(&m->in, 0, sizeof(m->in));
	wide->port_select = rig->port;
	wide->counter_select = IB_PMA_SELX_PORT_XMIT_DATA | IB_PMA_SELX_PORT_RCV_PACKETS;
	wide->port_xmit_data = cpu_to_be64(U32_MAX - 1);
	KUNIT_EXPECT_EQ(test, ask(rig, m, PERF, SET, IB_PMA_PORT_COUNTERS_EXT, 0), (u16)0);
	send_some(&pair, buf, 1);
	expect_counters(rig, m, U32_MAX + 749ull, 1600, 6, 3);

	/* There is no second port. */
	memset(&m->in, 0, sizeof(m->in));
	narrow->port_select = 2;
	narrow->counter_select = cpu_to_be16(0xffff);
	KUNIT_EXPECT_EQ(test, ask(rig, m, PERF, SET, IB_PMA_PORT_COUNTERS, 0),
			(u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	KUNIT_EXPECT_EQ(test, ask(rig, m, PERF, GET, IB_PMA_PORT_COUNTERS, 0),
			(u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	KUNIT_EXPECT_EQ(test, ask(rig, m, PERF, GET, IB_PMA_PORT_COUNTERS_EXT, 0),
			(u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	KUNIT_EXPECT_EQ(test, ask(rig, m, PERF, SET, IB_PMA_PORT_COUNTERS_EXT, 0),
			(u16)IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE);
	expect_counters(rig, m, U32_MAX + 749ull, 1600, 6, 3);
}

/* --- what is refused ------------------------------------------------------------------ */

static void refused(struct kunit *test)
{
	static const struct {
		u8 mgmt_class, version, method;
		__be16 attr;
		u32 modifier;
		u16 status;
	} rows[] = {
		{ SUBN, 2, GET, IB_SMP_ATTR_NODE_INFO, 0, IB_MGMT_MAD_STATUS_BAD_VERSION },
		{ DIRECTED, 0, GET, IB_SMP_ATTR_NODE_INFO, 0, IB_MGMT_MAD_STATUS_BAD_VERSION },
		{ PERF, 2, GET, IB_PMA_PORT_COUNTERS, 0, IB_MGMT_MAD_STATUS_BAD_VERSION },
		{ SUBN, 1, 0x12, IB_SMP_ATTR_NODE_INFO, 0, IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD },
		{ PERF, 1, 0x03, IB_PMA_PORT_COUNTERS, 0, IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD },
		/* One virtual lane: no tables for it. Not a switch. No subnet manager. */
		{ SUBN, 1, GET, IB_SMP_ATTR_SL_TO_VL_TABLE, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ SUBN, 1, GET, IB_SMP_ATTR_VL_ARB_TABLE, 1 << 16,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ SUBN, 1, GET, IB_SMP_ATTR_SWITCH_INFO, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ DIRECTED, 1, GET, IB_SMP_ATTR_SM_INFO, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ SUBN, 1, GET, cpu_to_be16(0xff77), 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ PERF, 1, GET, IB_PMA_PORT_SAMPLES_CONTROL, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		/* Of the other class. */
		{ PERF, 1, GET, IB_SMP_ATTR_NODE_INFO, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		/* Read only. */
		{ SUBN, 1, SET, IB_SMP_ATTR_NODE_INFO, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ SUBN, 1, SET, IB_SMP_ATTR_NODE_DESC, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ SUBN, 1, SET, IB_SMP_ATTR_GUID_INFO, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ PERF, 1, SET, IB_PMA_CLASS_PORT_INFO, 0,
		  IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB },
		{ SUBN, 1, GET, IB_SMP_ATTR_NODE_INFO, 1,
		  IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE },
		{ SUBN, 1, GET, IB_SMP_ATTR_NODE_DESC, 1,
		  IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE },
		{ SUBN, 1, GET, IB_SMP_ATTR_PKEY_TABLE, 1,
		  IB_MGMT_MAD_STATUS_INVALID_ATTRIB_VALUE },
	};
	struct rig *rig = rig_of(test);
	struct mads *m = mads_of(test);
	u16 status;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		memset(&m->in, 0, sizeof(m->in));
		mad_head(&m->in, rows[i].mgmt_class, rows[i].method, rows[i].attr,
			 rows[i].modifier);
		m->in.mad_hdr.class_version = rows[i].version;
		KUNIT_EXPECT_EQ_MSG(test, process(rig, m, sizeof(m->in)), (int)REPLIED, "row %d",
				    i);
		status = be16_to_cpu(m->out.mad_hdr.status);
		if (rows[i].mgmt_class == DIRECTED)
			status ^= 0x8000;
		KUNIT_EXPECT_EQ_MSG(test, status, rows[i].status, "row %d", i);
		KUNIT_EXPECT_TRUE_MSG(test, m->out.mad_hdr.method & IB_MGMT_METHOD_RESP, "row %d",
				      i);
	}
}

/* What is for somebody else is left to ib_core, and what is no datagram to nobody. */
static void not_answered(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_port_modify manager = { .set_port_cap_mask = IB_PORT_SM };
	struct mads *m = mads_of(test);

	mad_head(&m->in, IB_MGMT_CLASS_SUBN_ADM, GET, IB_PMA_CLASS_PORT_INFO, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)IB_MAD_RESULT_SUCCESS);
	mad_head(&m->in, 0x77, GET, IB_PMA_CLASS_PORT_INFO, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)IB_MAD_RESULT_SUCCESS);
	mad_head(&m->in, SUBN, GET_RESP, IB_SMP_ATTR_NODE_INFO, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)IB_MAD_RESULT_SUCCESS);
	mad_head(&m->in, PERF, GET_RESP, IB_PMA_PORT_COUNTERS, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)IB_MAD_RESULT_SUCCESS);
	mad_head(&m->in, SUBN, IB_MGMT_METHOD_TRAP, IB_SMP_ATTR_NOTICE, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)IB_MAD_RESULT_SUCCESS);
	mad_head(&m->in, SUBN, IB_MGMT_METHOD_TRAP_REPRESS, IB_SMP_ATTR_NOTICE, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)IB_MAD_RESULT_SUCCESS);

	/* With a subnet manager on the port, what asks for one is its. */
	KUNIT_EXPECT_EQ(test, 0, ib_modify_port(rig->dev, rig->port, 0, &manager));
	mad_head(&m->in, SUBN, GET, IB_SMP_ATTR_SM_INFO, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)IB_MAD_RESULT_SUCCESS);
	manager.clr_port_cap_mask = IB_PORT_SM;
	manager.set_port_cap_mask = 0;
	KUNIT_EXPECT_EQ(test, 0, ib_modify_port(rig->dev, rig->port, 0, &manager));
	KUNIT_EXPECT_EQ(test, process(rig, m, sizeof(m->in)), (int)REPLIED);

	mad_head(&m->in, SUBN, GET, IB_SMP_ATTR_NODE_INFO, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, 24),
			(int)(IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED));
	KUNIT_EXPECT_EQ(test, process(rig, m, 255),
			(int)(IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED));
	/* Whosever it is. */
	mad_head(&m->in, 0x77, GET, IB_PMA_CLASS_PORT_INFO, 0);
	KUNIT_EXPECT_EQ(test, process(rig, m, 24),
			(int)(IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED));
}

/* --- through queue pairs 0 and 1 -------------------------------------------------------- */

struct talk {
	struct ib_mad_agent *agent;
	struct completion answered, sent;
	struct ib_mad answer;
	enum ib_wc_status status;
};

static void talk_received(struct ib_mad_agent *agent, struct ib_mad_send_buf *send,
			  struct ib_mad_recv_wc *received)
{
	struct talk *talk = agent->context;

	memcpy(&talk->answer, received->recv_buf.mad, sizeof(talk->answer));
	ib_free_recv_mad(received);
	complete(&talk->answered);
}

static void talk_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct talk *talk = agent->context;

	talk->status = wc->status;
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
	complete(&talk->sent);
}

static struct talk *talk_begin(struct rig *rig, enum ib_qp_type type)
{
	struct talk *talk = kunit_kzalloc(rig->test, sizeof(*talk), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(rig->test, talk);
	init_completion(&talk->answered);
	init_completion(&talk->sent);
	talk->agent = ib_register_mad_agent(rig->dev, rig->port, type, NULL, 0, talk_sent,
					    talk_received, talk, 0);
	KUNIT_ASSERT_FALSE(rig->test, IS_ERR(talk->agent));
	return talk;
}

/* Send @mad to @lid and wait for what comes of it: whether an answer did. */
static bool talk(struct rig *rig, struct talk *talk, const struct ib_mad *mad, u16 lid)
{
	struct ib_mad_send_buf *send;
	struct rdma_ah_attr attr;
	u64 tid;

	send = ib_create_send_mad(talk->agent, talk->agent->qp->qp_num, 0, 0, IB_MGMT_MAD_HDR,
				  IB_MGMT_MAD_DATA, GFP_KERNEL, IB_MGMT_BASE_VERSION);
	KUNIT_ASSERT_FALSE(rig->test, IS_ERR(send));
	memcpy(send->mad, mad, sizeof(*mad));
	/* The upper half says whose answer it is. */
	tid = (u64)talk->agent->hi_tid << 32 | 0x1234;
	((struct ib_mad_hdr *)send->mad)->tid = cpu_to_be64(tid);
	rig_ah_attr(rig, &attr);
	rdma_ah_set_dlid(&attr, lid);
	send->ah = rdma_create_ah(talk->agent->qp->pd, &attr, 0);
	KUNIT_ASSERT_FALSE(rig->test, IS_ERR(send->ah));
	send->timeout_ms = 500;
	send->retries = 0;
	KUNIT_ASSERT_EQ(rig->test, 0, ib_post_send_mad(send, NULL));
	KUNIT_ASSERT_NE(rig->test, 0ul, wait_for_completion_timeout(&talk->sent, RIG_PATIENCE));
	return talk->status == IB_WC_SUCCESS && try_wait_for_completion(&talk->answered);
}

static void through_queue_pair_0(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct talk *t = talk_begin(rig, IB_QPT_SMI);
	struct mads *m = mads_of(test);
	struct ib_node_info *info = data_of(&t->answer);
	struct ib_smp *smp = (struct ib_smp *)&m->in;

	/* By LID: out of queue pair 0 and into it. */
	mad_head(&m->in, SUBN, GET, IB_SMP_ATTR_NODE_INFO, 0);
	KUNIT_EXPECT_TRUE(test, talk(rig, t, &m->in, rig->port_attr.lid));
	KUNIT_EXPECT_EQ(test, (int)be16_to_cpu(t->answer.mad_hdr.status), 0);
	KUNIT_EXPECT_EQ(test, info->node_guid, rig->dev->node_guid);
	mad_head(&m->in, SUBN, GET, IB_SMP_ATTR_SM_INFO, 0);
	KUNIT_EXPECT_TRUE(test, talk(rig, t, &m->in, rig->port_attr.lid));
	KUNIT_EXPECT_EQ(test, (int)be16_to_cpu(t->answer.mad_hdr.status),
			IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);

	/* A directed route of no hop ends here. */
	memset(&t->answer, 0, sizeof(t->answer));
	mad_head(&m->in, DIRECTED, GET, IB_SMP_ATTR_NODE_INFO, 0);
	smp->dr_slid = IB_LID_PERMISSIVE;
	smp->dr_dlid = IB_LID_PERMISSIVE;
	KUNIT_EXPECT_TRUE(test, talk(rig, t, &m->in, be16_to_cpu(IB_LID_PERMISSIVE)));
	KUNIT_EXPECT_EQ(test, (int)be16_to_cpu(t->answer.mad_hdr.status), 0x8000);
	KUNIT_EXPECT_EQ(test, info->node_guid, rig->dev->node_guid);

	/* One hop leads to nobody. */
	memset(&m->in, 0, sizeof(m->in));
	mad_head(&m->in, DIRECTED, GET, IB_SMP_ATTR_NODE_INFO, 0);
	smp->dr_slid = IB_LID_PERMISSIVE;
	smp->dr_dlid = IB_LID_PERMISSIVE;
	smp->hop_cnt = 1;
	smp->initial_path[1] = rig->port;
	KUNIT_EXPECT_FALSE(test, talk(rig, t, &m->in, be16_to_cpu(IB_LID_PERMISSIVE)));
	KUNIT_EXPECT_EQ(test, (int)t->status, (int)IB_WC_RESP_TIMEOUT_ERR);
	ib_unregister_mad_agent(t->agent);
}

static void through_queue_pair_1(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct talk *t = talk_begin(rig, IB_QPT_GSI);
	struct mads *m = mads_of(test);
	struct ib_class_port_info *info = data_of(&t->answer);

	mad_head(&m->in, PERF, GET, IB_PMA_CLASS_PORT_INFO, 0);
	KUNIT_EXPECT_TRUE(test, talk(rig, t, &m->in, rig->port_attr.lid));
	KUNIT_EXPECT_EQ(test, (int)be16_to_cpu(t->answer.mad_hdr.status), 0);
	KUNIT_EXPECT_TRUE(test, info->capability_mask & IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF);
	m->in.mad_hdr.class_version = 7;
	KUNIT_EXPECT_TRUE(test, talk(rig, t, &m->in, rig->port_attr.lid));
	KUNIT_EXPECT_EQ(test, (int)be16_to_cpu(t->answer.mad_hdr.status),
			IB_MGMT_MAD_STATUS_BAD_VERSION);
	/* Nobody has this class: ib_core says so. */
	mad_head(&m->in, IB_MGMT_CLASS_SUBN_ADM, GET, cpu_to_be16(0x35), 0);
	m->in.mad_hdr.class_version = 2;
	KUNIT_EXPECT_TRUE(test, talk(rig, t, &m->in, rig->port_attr.sm_lid));
	KUNIT_EXPECT_EQ(test, (int)be16_to_cpu(t->answer.mad_hdr.status),
			IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	/* No port has this LID. */
	mad_head(&m->in, PERF, GET, IB_PMA_CLASS_PORT_INFO, 0);
	KUNIT_EXPECT_FALSE(test, talk(rig, t, &m->in, 0x4711));
	KUNIT_EXPECT_EQ(test, (int)t->status, (int)IB_WC_RESP_TIMEOUT_ERR);
	ib_unregister_mad_agent(t->agent);
}

/* A datagram that is too short is dropped; a whole one behind it is answered. */
static void too_short(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp *qp = rig_qp(rig, IB_QPT_UD, NULL);
	struct ib_mad *mad = rig_buf(rig, sizeof(*mad));
	u8 *in = rig_buf(rig, GRH + sizeof(*mad));
	const struct ib_mad_hdr *answer = (void *)(in + GRH);
	struct ib_qp_attr qp_attr;
	struct rdma_ah_attr attr;
	struct rig_wr wr;
	struct ib_wc wc;
	struct ib_ah *ah;
	int mask, id;

	mask = rig_attr(qp, IB_QPS_INIT, NULL, &qp_attr);
	qp_attr.qkey = IB_QP1_QKEY;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp->qp, &qp_attr, mask));
	rig_step(qp, IB_QPS_RTR, NULL);
	rig_step(qp, IB_QPS_RTS, NULL);
	KUNIT_ASSERT_EQ(test, 0, rig_post_recv(qp, 9, in, GRH + sizeof(*mad)));
	rig_ah_attr(rig, &attr);
	ah = rdma_create_ah(rig->pd, &attr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ah));
	for (id = 0; id < 3; id++) {
		/* Nobody has class 0x77, to which ib_core would answer. */
		mad_head(mad, id == 1 ? 0x77 : PERF, GET, IB_PMA_CLASS_PORT_INFO, 0);
		/* The number of the one that is answered. */
		mad->mad_hdr.tid = cpu_to_be64(id);
		rig_wr(qp, &wr, IB_WR_SEND, id, mad, id == 2 ? sizeof(*mad) : 24 + id);
		wr.ud.ah = ah;
		wr.ud.remote_qpn = 1;
		wr.ud.remote_qkey = IB_QP1_QKEY;
		KUNIT_ASSERT_EQ(test, 0, rig_post(qp, &wr));
		rig_expect_wc(qp->scq, id, IB_WC_SUCCESS);
	}
	rig_wc(qp->rcq, &wc);
	KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.src_qp, 1u);
	KUNIT_EXPECT_EQ(test, wc.byte_len, (u32)(GRH + sizeof(*mad)));
	KUNIT_EXPECT_EQ(test, be64_to_cpu(answer->tid), 2ull);
	KUNIT_EXPECT_EQ(test, (int)answer->method, (int)GET_RESP);
	rdma_destroy_ah(ah, 0);
}

/* The last one: it sets ib_sa to looking for a subnet manager, which makes traffic. */
static struct kunit_case cases[] = {
	KUNIT_CASE(node_info),
	KUNIT_CASE(guid_info),
	KUNIT_CASE(port_info),
	KUNIT_CASE(pkey_table),
	KUNIT_CASE(class_port_info),
	KUNIT_CASE(port_counters),
	KUNIT_CASE(refused),
	KUNIT_CASE(not_answered),
	KUNIT_CASE(through_queue_pair_0),
	KUNIT_CASE(through_queue_pair_1),
	KUNIT_CASE(too_short),
	KUNIT_CASE(port_info_set),
	{}
};

RIG_SUITE(rvt_mad, cases);
