/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rvt.h - what the verbs shims share among themselves.
 *
 * Each verbs object wraps ib_core's object and points to the core's. A shim
 * converts arguments, calls the core and copies results out; rules of the
 * device live in the core.
 */
#ifndef RVT_VERBS_H
#define RVT_VERBS_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include <rvt/core.h>

#include "compat.h"

#define RVT_PORT 1

/* Counters of the port that a performance manager may set. */
#define RVT_PORT_COUNTERS 4

/**
 * struct rvt_ib_dev - a device
 * @ibdev: ib_core's part
 * @core: the core's part
 * @index: number of the device in this module, from 0
 * @port_guid: host order
 * @lid: given by the core's fabric
 * @port_lock: protects what follows it
 * @port_cap_flags: what consumers announced with modify_port
 * @sm_lid: the port's subnet manager: nobody's but its own until one says so
 * @sm_sl: service level to it
 * @subnet_timeout: as the subnet manager set it
 * @port_counter_base: by so much the port's counters are behind the device's
 * @debugfs: directory of the device
 */
struct rvt_ib_dev {
	struct ib_device ibdev;
	struct rvt_core_dev *core;
	unsigned int index;
	u64 port_guid;
	u16 lid;
	spinlock_t port_lock;
	u32 port_cap_flags;
	u16 sm_lid;
	u8 sm_sl;
	u8 subnet_timeout;
	u64 port_counter_base[RVT_PORT_COUNTERS];
	struct dentry *debugfs;
};

/**
 * struct rvt_ib_ucontext - a process's open device
 * @rings: rings not mapped yet, by page offset of their cookie
 */
struct rvt_ib_ucontext {
	struct ib_ucontext ibuc;
	struct xarray rings;
};

/**
 * struct rvt_ib_pd - protection domain
 * @user: belongs to a process
 * @holds_module: counts as a use of the module
 */
struct rvt_ib_pd {
	struct ib_pd ibpd;
	struct rvt_core_pd *core;
	bool user;
	bool holds_module;
};

struct rvt_ib_ah {
	struct ib_ah ibah;
	struct rvt_ah_attr attr;
};

/**
 * struct rvt_ib_cq - completion queue
 * @ring: the mapped ring; NULL for a kernel queue
 * @resize: one at a time exchanges @ring
 */
struct rvt_ib_cq {
	struct ib_cq ibcq;
	struct rvt_core_cq *core;
	struct rvt_ring *ring;
	struct mutex resize; /* ring */
};

/* As struct rvt_ib_cq. */
struct rvt_ib_srq {
	struct ib_srq ibsrq;
	struct rvt_core_srq *core;
	struct rvt_ring *ring;
	struct mutex resize; /* ring */
};

/**
 * struct rvt_ib_qp - queue pair
 * @ring: mapped receive ring; NULL for a kernel's and with an SRQ
 * @sq_sig_type: as created, for query
 */
struct rvt_ib_qp {
	struct ib_qp ibqp;
	struct rvt_core_qp *core;
	struct rvt_ring *ring;
	enum ib_sig_type sq_sig_type;
};

/**
 * struct rvt_ib_mr - memory region
 * @umem: pinned user memory, or NULL
 * @access: enum ib_access_flags
 * @npages: entries of the core's page list that are filled
 * @page_shift: log2 of the size of these pages
 * @max_pages: entries of the core's page list (fast registration)
 */
struct rvt_ib_mr {
	struct ib_mr ibmr;
	struct rvt_core_mr *core;
	struct ib_umem *umem;
	int access;
	u32 npages;
	u32 page_shift;
	u32 max_pages;
};

static inline struct rvt_ib_dev *to_rvt_dev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct rvt_ib_dev, ibdev);
}

static inline struct rvt_ib_ucontext *to_rvt_uc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct rvt_ib_ucontext, ibuc);
}

static inline struct rvt_ib_pd *to_rvt_pd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct rvt_ib_pd, ibpd);
}

static inline struct rvt_ib_ah *to_rvt_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct rvt_ib_ah, ibah);
}

static inline struct rvt_ib_cq *to_rvt_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct rvt_ib_cq, ibcq);
}

static inline struct rvt_ib_srq *to_rvt_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct rvt_ib_srq, ibsrq);
}

static inline struct rvt_ib_qp *to_rvt_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct rvt_ib_qp, ibqp);
}

static inline struct rvt_ib_mr *to_rvt_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct rvt_ib_mr, ibmr);
}

/* device.c */
int rvt_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
void rvt_port_event(struct rvt_ib_dev *dev, enum ib_event_type what);
struct rvt_ib_dev *rvt_dev_create(unsigned int index, u64 guid_base);
void rvt_dev_remove(struct rvt_ib_dev *dev);

/* ucontext.c */
int rvt_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
void rvt_dealloc_ucontext(struct ib_ucontext *ibuc);
void rvt_disassociate_ucontext(struct ib_ucontext *ibuc);

/* mmap.c */
struct rvt_ring;
struct rvt_ring *rvt_ring_create(struct ib_udata *udata, size_t bytes);
void rvt_ring_destroy(struct rvt_ring *ring);
void *rvt_ring_memory(const struct rvt_ring *ring);
u64 rvt_ring_offset(const struct rvt_ring *ring);
bool rvt_ring_wanted(const struct ib_udata *udata);
int rvt_ring_respond(struct ib_udata *udata, const struct rvt_ring *ring);
int rvt_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);

/* pd.c */
int rvt_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int rvt_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* ah.c */
int rvt_ah_from_ib(struct rvt_ah_attr *ah, const struct rdma_ah_attr *ibah);
void rvt_ah_to_ib(struct ib_device *ibdev, const struct rvt_ah_attr *ah, struct rdma_ah_attr *ibah);
int rvt_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int rvt_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int rvt_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int rvt_destroy_ah(struct ib_ah *ibah, u32 flags);

/* mr.c */
struct ib_mr *rvt_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *rvt_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
			      struct ib_udata *udata);
struct ib_mr *rvt_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 iova,
				int access, struct ib_pd *new_ibpd, struct ib_udata *udata);
struct ib_mr *rvt_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_num_sg);
int rvt_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		  unsigned int *sg_offset);
int rvt_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* cq.c */
int rvt_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct ib_udata *udata);
int rvt_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata);
int rvt_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int rvt_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int rvt_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void rvt_cq_comp(void *ctx);
void rvt_cq_event(void *ctx, enum rvt_event event);

/* srq.c */
int rvt_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int rvt_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int rvt_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int rvt_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
void rvt_srq_event(void *ctx, enum rvt_event event);

/* qp.c */
int rvt_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init_attr, struct ib_udata *udata);
int rvt_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		  struct ib_udata *udata);
int rvt_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int attr_mask,
		 struct ib_qp_init_attr *init_attr);
int rvt_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void rvt_qp_event(void *ctx, enum rvt_event event);

/* post.c */
int rvt_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
int rvt_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);
int rvt_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);

/* mcast.c */
int rvt_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int rvt_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* mad.c */
int rvt_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
		    const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index);

/* sysfs.c */
extern const struct attribute_group rvt_device_group;
extern const struct attribute_group *rvt_port_groups[];
void rvt_sysfs_init(void);

/* counters.c */
void rvt_counters_init(void);
struct rdma_hw_stats *rvt_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int rvt_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);

/* look.c */
int rvt_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int rvt_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int rvt_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);
int rvt_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
void rvt_look_init(void);
void rvt_look_exit(void);
void rvt_look_add(struct rvt_ib_dev *dev);
void rvt_look_remove(struct rvt_ib_dev *dev);

#endif
