// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * ah.c - address handles, and address vectors in ib_core's and in our form.
 *
 * An address handle is nothing but its attributes. Posting copies them, so a
 * handle may be destroyed while requests that used it are queued.
 */
#include "rvt.h"

/**
 * rvt_ah_from_ib - address vector of ib_core to the core's form
 * @ah: result
 * @ibah: source
 *
 * Context: any. Return: 0; -EINVAL if it is not an InfiniBand address or its
 * port number fits no port.
 */
int rvt_ah_from_ib(struct rvt_ah_attr *ah, const struct rdma_ah_attr *ibah)
{
	u32 port = rdma_ah_get_port_num(ibah);

	memset(ah, 0, sizeof(*ah));
	if (ibah->type != RDMA_AH_ATTR_TYPE_IB || port > U8_MAX)
		return -EINVAL;

	ah->dlid = ibah->ib.dlid;
	ah->src_path_bits = ibah->ib.src_path_bits;
	ah->sl = rdma_ah_get_sl(ibah);
	ah->static_rate = rdma_ah_get_static_rate(ibah);
	ah->port_num = port;
	ah->has_grh = rdma_ah_get_ah_flags(ibah) & IB_AH_GRH;
	if (ah->has_grh) {
		const struct ib_global_route *grh = rdma_ah_read_grh(ibah);

		ah->sgid_index = grh->sgid_index;
		ah->traffic_class = grh->traffic_class;
		ah->hop_limit = grh->hop_limit;
		ah->flow_label = grh->flow_label;
		memcpy(ah->dgid, grh->dgid.raw, sizeof(ah->dgid));
	}
	return 0;
}

/**
 * rvt_ah_to_ib - address vector of the core to ib_core's form
 * @ibdev: the device
 * @ah: source
 * @ibah: result; holds no reference to a GID
 *
 * Context: any.
 */
void rvt_ah_to_ib(struct ib_device *ibdev, const struct rvt_ah_attr *ah, struct rdma_ah_attr *ibah)
{
	memset(ibah, 0, sizeof(*ibah));
	ibah->type = rdma_ah_find_type(ibdev, RVT_PORT);
	rdma_ah_set_dlid(ibah, ah->dlid);
	rdma_ah_set_path_bits(ibah, ah->src_path_bits);
	rdma_ah_set_sl(ibah, ah->sl);
	rdma_ah_set_static_rate(ibah, ah->static_rate);
	rdma_ah_set_port_num(ibah, ah->port_num);
	if (ah->has_grh) {
		union ib_gid dgid;

		memcpy(dgid.raw, ah->dgid, sizeof(dgid.raw));
		rdma_ah_set_grh(ibah, &dgid, ah->flow_label, ah->sgid_index, ah->hop_limit,
				ah->traffic_class);
	}
}

static int ah_set(struct rvt_ib_ah *ah, const struct rdma_ah_attr *attr)
{
	struct rvt_ah_attr new;
	int ret;

	ret = rvt_ah_from_ib(&new, attr);
	if (!ret)
		ret = rvt_core_ah_check(to_rvt_dev(ah->ibah.device)->core, &new, true);
	if (!ret)
		ah->attr = new;
	return ret;
}

/* May be called from atomic context. */
int rvt_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	return ah_set(to_rvt_ah(ibah), init->ah_attr);
}

int rvt_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	return ah_set(to_rvt_ah(ibah), attr);
}

int rvt_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	rvt_ah_to_ib(ibah->device, &to_rvt_ah(ibah)->attr, attr);
	return 0;
}

int rvt_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
