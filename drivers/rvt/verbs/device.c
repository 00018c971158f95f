// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* device.c - the device, its port, and the table of its verbs */
#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_mad.h>

#include "numbers.h"
#include "rvt.h"

/* --- what the device says of itself -------------------------------------------- */

static int rvt_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;

	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = ibdev->node_guid;
	/* Programs take vendor 0 for an error; "RVT" is a locally administered OUI. */
	attr->vendor_id = 0x525654;
	attr->vendor_part_id = 1;
	attr->hw_ver = 1;
	attr->fw_ver = 1;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = PAGE_MASK;
	attr->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
				 IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SRQ_RESIZE |
				 IB_DEVICE_MEM_MGT_EXTENSIONS;
	/* "rdma link delete" removes one device, whoever uses it. */
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	attr->max_qp = RVT_MAX_QP;
	attr->max_qp_wr = RVT_MAX_QP_WR;
	attr->max_send_sge = RVT_MAX_SGE;
	attr->max_recv_sge = RVT_MAX_SGE;
	attr->max_sge_rd = RVT_MAX_SGE;
	attr->max_cq = RVT_MAX_CQ;
	attr->max_cqe = RVT_MAX_CQE;
	attr->max_mr = RVT_MAX_MR;
	attr->max_pd = RVT_MAX_PD;
	attr->max_qp_rd_atom = RVT_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = RVT_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = RVT_MAX_RD_ATOMIC * RVT_MAX_QP;
	/* Loopback atomics are the processor's own. */
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->max_mcast_grp = RVT_MAX_MCAST_GRP;
	attr->max_mcast_qp_attach = RVT_MAX_MCAST_QP;
	attr->max_total_mcast_qp_attach = RVT_MAX_MCAST_GRP * RVT_MAX_MCAST_QP;
	attr->max_ah = RVT_MAX_AH;
	attr->max_srq = RVT_MAX_SRQ;
	attr->max_srq_wr = RVT_MAX_SRQ_WR;
	attr->max_srq_sge = RVT_MAX_SGE;
	attr->max_fast_reg_page_list_len = RVT_MAX_FAST_REG_PAGES;
	attr->max_pkeys = RVT_MAX_PKEYS;
	return 0;
}

static void rvt_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "1");
}

static int rvt_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *modify)
{
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (mask & IB_DEVICE_MODIFY_NODE_DESC)
		memcpy(ibdev->node_desc, modify->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

/* --- the port ---------------------------------------------------------------------- */

/* ib_core has checked the port number; the result is zeroed. */
int rvt_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct rvt_ib_dev *dev = to_rvt_dev(ibdev);
	unsigned long flags;
	union ib_gid gid;
	int ret;

	ret = rvt_core_gid_get(dev->core, 0, gid.raw);
	if (ret)
		return ret;
	/* No subnet manager is needed: the port is up as long as it exists. */
	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->phys_mtu = ib_mtu_enum_to_int(IB_MTU_4096);
	attr->subnet_prefix = be64_to_cpu(gid.global.subnet_prefix);
	attr->gid_tbl_len = RVT_MAX_GIDS;
	attr->pkey_tbl_len = RVT_MAX_PKEYS;
	attr->max_msg_sz = RVT_MAX_MSG_SIZE;
	attr->lid = dev->lid;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	attr->bad_pkey_cntr = min_t(u64, U32_MAX,
				     rvt_core_violations(dev->core, RVT_CNT_DROP_PKEY));
	attr->qkey_viol_cntr = min_t(u64, U32_MAX,
				     rvt_core_violations(dev->core, RVT_CNT_DROP_QKEY));
	spin_lock_irqsave(&dev->port_lock, flags);
	attr->port_cap_flags = dev->port_cap_flags;
	attr->sm_lid = dev->sm_lid;
	attr->sm_sl = dev->sm_sl;
	attr->subnet_timeout = dev->subnet_timeout;
	spin_unlock_irqrestore(&dev->port_lock, flags);
	return 0;
}

static int rvt_modify_port(struct ib_device *ibdev, u32 port, int mask,
			   struct ib_port_modify *modify)
{
	struct rvt_ib_dev *dev = to_rvt_dev(ibdev);
	unsigned long flags;

	/* ib_core sets no bit of the mask to change capabilities. */
	if (mask & ~IB_PORT_INIT_TYPE)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&dev->port_lock, flags);
	dev->port_cap_flags |= modify->set_port_cap_mask;
	dev->port_cap_flags &= ~modify->clr_port_cap_mask;
	spin_unlock_irqrestore(&dev->port_lock, flags);
	return 0;
}

/* Tell whoever listens; ib_core reads what it keeps of the port again. Context: any. */
void rvt_port_event(struct rvt_ib_dev *dev, enum ib_event_type what)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = RVT_PORT,
		.event = what,
	};

	ib_dispatch_event(&event);
}

static int rvt_get_port_immutable(struct ib_device *ibdev, u32 port,
				  struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = RVT_MAX_GIDS;
	immutable->pkey_tbl_len = RVT_MAX_PKEYS;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer rvt_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_INFINIBAND;
}

static int rvt_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	return rvt_core_gid_get(to_rvt_dev(ibdev)->core, index, gid->raw);
}

static int rvt_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	return rvt_core_pkey_get(to_rvt_dev(ibdev)->core, index, pkey);
}

/* --- life ------------------------------------------------------------------------------ */

/* The device has its name, and nobody can remove it yet. */
static int rvt_enable_driver(struct ib_device *ibdev)
{
	rvt_look_add(to_rvt_dev(ibdev));
	return 0;
}

/* The last thing ib_core asks of a device, whoever removed it. */
static void rvt_dealloc_driver(struct ib_device *ibdev)
{
	struct rvt_ib_dev *dev = to_rvt_dev(ibdev);

	rvt_look_remove(dev);
	rvt_core_dev_destroy(dev->core);
}

static const struct rvt_core_ops core_ops = {
	.cq_comp = rvt_cq_comp,
	.cq_event = rvt_cq_event,
	.qp_event = rvt_qp_event,
	.srq_event = rvt_srq_event,
};

static const struct ib_device_ops dev_ops = {
	.owner = THIS_MODULE,
	/* rdma-core's stock provider for this user ABI goes by the driver's number. */
	.driver_id = RDMA_DRIVER_HFI1,
	.uverbs_abi_ver = 2,

	.alloc_hw_port_stats = rvt_alloc_hw_port_stats,
	.alloc_mr = rvt_alloc_mr,
	.alloc_pd = rvt_alloc_pd,
	.alloc_ucontext = rvt_alloc_ucontext,
	.attach_mcast = rvt_attach_mcast,
	.create_ah = rvt_create_ah,
	.create_qp = rvt_create_qp,
	.create_srq = rvt_create_srq,
	.create_user_ah = rvt_create_ah,
	.dealloc_driver = rvt_dealloc_driver,
	.dealloc_pd = rvt_dealloc_pd,
	.dealloc_ucontext = rvt_dealloc_ucontext,
	.dereg_mr = rvt_dereg_mr,
	.destroy_ah = rvt_destroy_ah,
	.destroy_cq = rvt_destroy_cq,
	.destroy_qp = rvt_destroy_qp,
	.destroy_srq = rvt_destroy_srq,
	.detach_mcast = rvt_detach_mcast,
	.device_group = &rvt_device_group,
	.disassociate_ucontext = rvt_disassociate_ucontext,
	.enable_driver = rvt_enable_driver,
	.fill_res_cq_entry = rvt_fill_res_cq_entry,
	.fill_res_mr_entry = rvt_fill_res_mr_entry,
	.fill_res_qp_entry = rvt_fill_res_qp_entry,
	.get_dev_fw_str = rvt_get_dev_fw_str,
	.get_dma_mr = rvt_get_dma_mr,
	.get_hw_stats = rvt_get_hw_stats,
	.get_link_layer = rvt_get_link_layer,
	.get_port_immutable = rvt_get_port_immutable,
	.map_mr_sg = rvt_map_mr_sg,
	.mmap = rvt_mmap,
	.modify_ah = rvt_modify_ah,
	.modify_device = rvt_modify_device,
	.modify_port = rvt_modify_port,
	.modify_qp = rvt_modify_qp,
	.modify_srq = rvt_modify_srq,
	.poll_cq = rvt_poll_cq,
	.port_groups = rvt_port_groups,
	.post_recv = rvt_post_recv,
	.post_send = rvt_post_send,
	.post_srq_recv = rvt_post_srq_recv,
	.process_mad = rvt_process_mad,
	.query_ah = rvt_query_ah,
	.query_device = rvt_query_device,
	.query_gid = rvt_query_gid,
	.query_pkey = rvt_query_pkey,
	.query_port = rvt_query_port,
	.query_qp = rvt_query_qp,
	.query_srq = rvt_query_srq,
	.req_notify_cq = rvt_req_notify_cq,
	.rereg_user_mr = rvt_rereg_user_mr,

	INIT_RDMA_OBJ_SIZE(ib_ah, rvt_ib_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, rvt_ib_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, rvt_ib_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, rvt_ib_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, rvt_ib_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, rvt_ib_ucontext, ibuc),
};

/* The data-path commands that a driver has to ask for. */
#define UVERBS_DATA_PATH (BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |	\
			  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |	\
			  BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV) |	\
			  BIT_ULL(IB_USER_VERBS_CMD_POLL_CQ) |		\
			  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ) |	\
			  BIT_ULL(IB_USER_VERBS_CMD_PEEK_CQ) |		\
			  BIT_ULL(IB_USER_VERBS_CMD_MODIFY_AH) |	\
			  BIT_ULL(IB_USER_VERBS_CMD_QUERY_AH))

/**
 * rvt_dev_create - make and register a device
 * @index: its number in this module
 * @guid_base: GUIDs of this module's devices begin here
 *
 * Return: the device with a reference that rvt_dev_remove() drops, or an
 * ERR_PTR.
 */
struct rvt_ib_dev *rvt_dev_create(unsigned int index, u64 guid_base)
{
	struct rvt_ib_dev *dev;
	struct ib_device *ibdev;
	int ret;

	dev = ib_alloc_device(rvt_ib_dev, ibdev);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	ibdev = &dev->ibdev;
	dev->index = index;
	dev->port_guid = guid_base + 2 * index + 1;
	dev->port_cap_flags = IB_PORT_SYS_IMAGE_GUID_SUP | IB_PORT_EXTENDED_SPEEDS_SUP |
			      IB_PORT_CLIENT_REG_SUP;
	spin_lock_init(&dev->port_lock);

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_online_cpus();
	ibdev->node_guid = cpu_to_be64(guid_base + 2 * index);
	ibdev->local_dma_lkey = 0;
	ibdev->uverbs_cmd_mask |= UVERBS_DATA_PATH;
	snprintf(ibdev->node_desc, sizeof(ibdev->node_desc), "rvt software channel adapter %u",
		 index);

	dev->core = rvt_core_dev_create(&core_ops, dev->port_guid, &dev->lid);
	if (!dev->core) {
		ib_dealloc_device(ibdev);
		return ERR_PTR(-ENOMEM);
	}
	/*
	 * Without a subnet manager, who asks for one asks the port itself, and
	 * is told at once that it is none.
	 */
	dev->sm_lid = dev->lid;
	dev->subnet_timeout = 18;
	/* From here on ib_dealloc_device() ends the core's part, too. */
	ib_set_device_ops(ibdev, &dev_ops);
	rvt_compat_set_ops(ibdev);

	/*
	 * Once registered, the device may be removed by anybody. This
	 * reference keeps the structure until the module ends.
	 */
	get_device(&ibdev->dev);
	ret = ib_register_device(ibdev, "rvt%d", NULL);
	if (ret) {
		ib_dealloc_device(ibdev);
		put_device(&ibdev->dev);
		return ERR_PTR(ret);
	}
	return dev;
}

/*
 * Unregisters the device unless somebody else has, and returns when that is
 * done: ib_core lets nobody through while another is at it.
 */
void rvt_dev_remove(struct rvt_ib_dev *dev)
{
	ib_unregister_device(&dev->ibdev);
	put_device(&dev->ibdev.dev);
}
