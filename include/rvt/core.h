/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * core.h - what the device's core offers to the verbs shims and to the tests.
 *
 * Numbers (states, opcodes, statuses, masks, access flags) are the verbs'
 * own; verbs/ checks at compile time that they agree with the kernel's.
 * Every function returns 0 or a negative errno unless it says otherwise.
 * Contexts are those of os.h: "process" may sleep, "any" includes interrupts.
 * The core never calls out (struct rvt_core_ops) with a lock held.
 */
#ifndef RVT_CORE_H
#define RVT_CORE_H

#include <rvt/abi.h>
#include <rvt/os.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- numbers ------------------------------------------------------------- */

enum rvt_qp_type { RVT_QPT_SMI = 0, RVT_QPT_GSI = 1, RVT_QPT_RC = 2, RVT_QPT_UC = 3, RVT_QPT_UD = 4 };

enum rvt_qp_state {
	RVT_QPS_RESET = 0,
	RVT_QPS_INIT = 1,
	RVT_QPS_RTR = 2,
	RVT_QPS_RTS = 3,
	RVT_QPS_SQD = 4,
	RVT_QPS_SQE = 5,
	RVT_QPS_ERR = 6
};

enum rvt_wr_opcode {
	RVT_WR_RDMA_WRITE = 0,
	RVT_WR_RDMA_WRITE_WITH_IMM = 1,
	RVT_WR_SEND = 2,
	RVT_WR_SEND_WITH_IMM = 3,
	RVT_WR_RDMA_READ = 4,
	RVT_WR_ATOMIC_CMP_AND_SWP = 5,
	RVT_WR_ATOMIC_FETCH_AND_ADD = 6,
	RVT_WR_LOCAL_INV = 7,
	RVT_WR_SEND_WITH_INV = 9,
	RVT_WR_REG_MR = 0x20
};

enum rvt_send_flags {
	RVT_SEND_FENCE = 1,
	RVT_SEND_SIGNALED = 2,
	RVT_SEND_SOLICITED = 4,
	RVT_SEND_INLINE = 8
};

enum rvt_wc_status {
	RVT_WC_SUCCESS = 0,
	RVT_WC_LOC_LEN_ERR = 1,
	RVT_WC_LOC_QP_OP_ERR = 2,
	RVT_WC_LOC_PROT_ERR = 4,
	RVT_WC_WR_FLUSH_ERR = 5,
	RVT_WC_REM_INV_REQ_ERR = 9,
	RVT_WC_REM_ACCESS_ERR = 10,
	RVT_WC_REM_OP_ERR = 11,
	RVT_WC_RETRY_EXC_ERR = 12,
	RVT_WC_RNR_RETRY_EXC_ERR = 13
};

/* As user space sees them; REG_MR completes only on kernel queue pairs. */
enum rvt_wc_opcode {
	RVT_WC_SEND = 0,
	RVT_WC_RDMA_WRITE = 1,
	RVT_WC_RDMA_READ = 2,
	RVT_WC_COMP_SWAP = 3,
	RVT_WC_FETCH_ADD = 4,
	RVT_WC_LOCAL_INV = 6,
	RVT_WC_REG_MR = 0x40,
	RVT_WC_RECV = 128,
	RVT_WC_RECV_RDMA_WITH_IMM = 129
};

enum rvt_wc_flags { RVT_WC_GRH = 1, RVT_WC_WITH_IMM = 2, RVT_WC_WITH_INV = 8 };

enum rvt_event {
	RVT_EVENT_CQ_ERR = 0,
	RVT_EVENT_QP_FATAL = 1,
	RVT_EVENT_QP_REQ_ERR = 2,
	RVT_EVENT_QP_ACCESS_ERR = 3,
	RVT_EVENT_COMM_EST = 4,
	RVT_EVENT_SQ_DRAINED = 5,
	RVT_EVENT_PATH_MIG = 6,
	RVT_EVENT_SRQ_LIMIT_REACHED = 15,
	RVT_EVENT_QP_LAST_WQE_REACHED = 16
};

enum rvt_access {
	RVT_ACCESS_LOCAL_WRITE = 1,
	RVT_ACCESS_REMOTE_WRITE = 2,
	RVT_ACCESS_REMOTE_READ = 4,
	RVT_ACCESS_REMOTE_ATOMIC = 8
};

enum rvt_qp_attr_mask {
	RVT_QP_STATE = 1 << 0,
	RVT_QP_CUR_STATE = 1 << 1,
	RVT_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	RVT_QP_ACCESS_FLAGS = 1 << 3,
	RVT_QP_PKEY_INDEX = 1 << 4,
	RVT_QP_PORT = 1 << 5,
	RVT_QP_QKEY = 1 << 6,
	RVT_QP_AV = 1 << 7,
	RVT_QP_PATH_MTU = 1 << 8,
	RVT_QP_TIMEOUT = 1 << 9,
	RVT_QP_RETRY_CNT = 1 << 10,
	RVT_QP_RNR_RETRY = 1 << 11,
	RVT_QP_RQ_PSN = 1 << 12,
	RVT_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	RVT_QP_ALT_PATH = 1 << 14,
	RVT_QP_MIN_RNR_TIMER = 1 << 15,
	RVT_QP_SQ_PSN = 1 << 16,
	RVT_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	RVT_QP_PATH_MIG_STATE = 1 << 18,
	RVT_QP_CAP = 1 << 19,
	RVT_QP_DEST_QPN = 1 << 20
};

enum rvt_mig_state { RVT_MIG_MIGRATED = 0, RVT_MIG_REARM = 1, RVT_MIG_ARMED = 2 };

/* What a device can do; query_device reports these, and they are true. */
enum rvt_limits {
	RVT_MAX_DEVICES = 64,
	RVT_MAX_QP = 1 << 17,
	RVT_MAX_CQ = 1 << 17,
	RVT_MAX_SRQ = 1 << 16,
	RVT_MAX_PD = 1 << 16,
	RVT_MAX_AH = 1 << 16,
	RVT_MAX_MR = (1 << 18) - 1,
	RVT_MAX_QP_WR = 0x3fff,
	RVT_MAX_SRQ_WR = 0x1ffff,
	RVT_MAX_SGE = 96,
	RVT_MAX_CQE = 0x2ffff,
	RVT_MAX_INLINE = 512,
	RVT_MAX_RD_ATOMIC = 16,
	RVT_MAX_MCAST_GRP = 16384,
	RVT_MAX_MCAST_QP = 128,
	RVT_MAX_PKEYS = 16,
	RVT_MAX_GIDS = 16,
	RVT_MAX_FAST_REG_PAGES = 4096
};

/* Messages longer than this many bytes are refused. */
#define RVT_MAX_MSG_SIZE (1u << 31)

/* The P_Key of a port's entry 0; the first multicast LID, and the one behind the last. */
#define RVT_DEFAULT_PKEY 0xffff
#define RVT_MCAST_LID_BASE 0xc000
#define RVT_PERMISSIVE_LID 0xffff

/* --- objects --------------------------------------------------------------- */

struct rvt_core_dev;
struct rvt_core_pd;
struct rvt_core_cq;
struct rvt_core_srq;
struct rvt_core_qp;
struct rvt_core_mr;

/**
 * struct rvt_core_ops - where the core calls out
 * @cq_comp: an armed completion queue got an entry. Context: any.
 * @cq_event: asynchronous event of a completion queue. Context: process.
 * @qp_event: asynchronous event of a queue pair. Context: process.
 * @srq_event: asynchronous event of an SRQ. Context: process.
 *
 * @ctx is what the object's create function was given. No core lock is held,
 * and the object stays until the call returns.
 */
struct rvt_core_ops {
	void (*cq_comp)(void *ctx);
	void (*cq_event)(void *ctx, enum rvt_event event);
	void (*qp_event)(void *ctx, enum rvt_event event);
	void (*srq_event)(void *ctx, enum rvt_event event);
};

/* --- module ------------------------------------------------------------------ */

/* Once, before the first device and after the last. Context: process. */
int rvt_core_init(void);
void rvt_core_exit(void);

/* --- device -------------------------------------------------------------------- */

/**
 * rvt_core_dev_create - make a device with one port in the fabric
 * @ops: where to call out
 * @guid: the port's GUID, host order
 * @lid: result, the LID the port was given (the first device gets 1)
 *
 * Port GID 0 is fe80::/64 + @guid; P_Key 0 is 0xffff.
 * Context: process. Return: the device; NULL if out of memory or LIDs.
 */
struct rvt_core_dev *rvt_core_dev_create(const struct rvt_core_ops *ops, uint64_t guid,
					 uint16_t *lid);

/**
 * rvt_core_dev_destroy - take a device out of the fabric and free it
 *
 * Reports (rvt_os_leak) what is still there and frees it not.
 * Context: process. Return: the number of objects left, expected 0.
 */
unsigned int rvt_core_dev_destroy(struct rvt_core_dev *dev);

/*
 * Another GID or P_Key of the port; index 0 of the GIDs is fixed. @gid NULL or zero: remove.
 * Return: 0; -EINVAL (index, a multicast GID); -EEXIST (the fabric has the GID already;
 * one caller at a time, or this may be missed).
 */
int rvt_core_gid_set(struct rvt_core_dev *dev, unsigned int index, const uint8_t *gid);
int rvt_core_gid_get(struct rvt_core_dev *dev, unsigned int index, uint8_t *gid);
int rvt_core_pkey_set(struct rvt_core_dev *dev, unsigned int index, uint16_t pkey);
int rvt_core_pkey_get(struct rvt_core_dev *dev, unsigned int index, uint16_t *pkey);

/* Counters of a device, in the order of rvt_core_counter_name(). */
enum rvt_counter {
	RVT_CNT_LOOP_PKTS, /* packets (path MTU) moved within the device */
	RVT_CNT_LOOP_BYTES,
	RVT_CNT_SENT_PKTS, /* to other devices of the fabric */
	RVT_CNT_SENT_BYTES,
	RVT_CNT_RCVD_PKTS, /* from other devices */
	RVT_CNT_RCVD_BYTES,
	RVT_CNT_SENDS, /* send work requests completed with success */
	RVT_CNT_RECVS, /* receive completions with success */
	RVT_CNT_RNR_NAKS,
	RVT_CNT_RETRIES, /* attempts repeated because the peer did not answer */
	RVT_CNT_DROP_NO_QP, /* no such queue pair, or not ready, or not connected back */
	RVT_CNT_DROP_PSN,
	RVT_CNT_DROP_PKEY, /* this and the next: of messages that came to the port */
	RVT_CNT_DROP_QKEY,
	RVT_CNT_DROP_NO_RWQE, /* UC, UD: no receive posted */
	RVT_CNT_DROP_LEN, /* UD: receive too small */
	RVT_CNT_ERR_LOCAL, /* send completions LOC_* */
	RVT_CNT_ERR_REMOTE, /* send completions REM_* */
	RVT_CNT_ERR_RETRY, /* RETRY_EXC and RNR_RETRY_EXC */
	RVT_CNT_FLUSHED, /* completions WR_FLUSH_ERR */
	RVT_CNT_CQ_OVERRUNS,
	RVT_COUNTERS
};

const char *rvt_core_counter_name(enum rvt_counter counter);
/* Sums over living and past queue pairs; they never go back. Context: process. */
void rvt_core_counters_read(struct rvt_core_dev *dev, uint64_t value[RVT_COUNTERS]);
/* DROP_PKEY or DROP_QKEY alone, which cost nothing to read. Context: any. */
uint64_t rvt_core_violations(struct rvt_core_dev *dev, enum rvt_counter which);

/*
 * A ring, for people who look: positions run from 0 to @size - 1, and one
 * entry is always empty. A process may have written any number over its head
 * of a receive ring, or tail of a completion ring. @size 0: there is none.
 */
struct rvt_ring_stat {
	uint32_t size, head, tail;
};

/* --- protection domain ------------------------------------------------------------ */

/* @user: a user's PD: privileged operations and key 0 are refused. NULL: out of memory or PDs. */
struct rvt_core_pd *rvt_core_pd_create(struct rvt_core_dev *dev, bool user);
void rvt_core_pd_destroy(struct rvt_core_pd *pd);

/* --- memory region ------------------------------------------------------------------ */

enum rvt_mr_kind {
	RVT_MR_DMA, /* all kernel memory: address == kernel virtual address */
	RVT_MR_MEM, /* pages registered once (user memory) */
	RVT_MR_FAST /* pages mapped by map_mr_sg, made valid by REG_MR */
};

/**
 * rvt_core_mr_create - reserve a key and room for pages
 * @pd: the protection domain
 * @kind: see above
 * @max_pages: entries of the page list; 0 for RVT_MR_DMA
 * @mr: result
 *
 * The region cannot be used until rvt_core_mr_publish() (MEM, DMA) or a
 * REG_MR work request (FAST). Context: process.
 * Return: 0, -ENOMEM (memory or keys), -EINVAL.
 */
int rvt_core_mr_create(struct rvt_core_pd *pd, enum rvt_mr_kind kind, uint32_t max_pages,
		       struct rvt_core_mr **mr);

/**
 * rvt_core_mr_set_page - one entry of the page list
 * @i: its place, from 0 in rising order
 * @address: kernel virtual address, a multiple of 4096
 *
 * Of a region that is not usable now. Context: process; any for RVT_MR_FAST.
 * Return: 0; -EINVAL (place or address); -ENOMEM (not for RVT_MR_FAST).
 */
int rvt_core_mr_set_page(struct rvt_core_mr *mr, uint32_t i, uint64_t address);
/* lkey == rkey */
uint32_t rvt_core_mr_key(const struct rvt_core_mr *mr);

/**
 * rvt_core_mr_publish - make a region of registered pages usable
 * @iova: address of its first byte, for local and remote access alike
 * @length: bytes
 * @npages: pages of the list in use
 * @page_shift: log2 of the page size; byte i of the region lies at offset
 *              (@iova & (page size - 1)) + i of the pages put in a row
 * @access: enum rvt_access, other bits are ignored
 *
 * May be called again after rvt_core_mr_unpublish() (rereg_mr).
 * Return: 0, -EINVAL (@npages does not cover @length, iova wraps).
 */
int rvt_core_mr_publish(struct rvt_core_mr *mr, uint64_t iova, uint64_t length, uint32_t npages,
			uint32_t page_shift, uint32_t access);

/* As above for RVT_MR_FAST: what a later REG_MR will make valid. */
int rvt_core_mr_map(struct rvt_core_mr *mr, uint64_t iova, uint64_t length, uint32_t npages,
		    uint32_t page_shift);

/**
 * rvt_core_mr_unpublish - end the use of a region
 *
 * Queue pairs of the PD that still have a use for the key go to ERR
 * (rvt_qp_mr_clean). When it returns no byte of the region changes any more
 * through the device. Context: process.
 */
void rvt_core_mr_unpublish(struct rvt_core_mr *mr);

/* For people who look. @usable: published or enabled, under @key. */
struct rvt_mr_stat {
	enum rvt_mr_kind kind;
	bool usable;
	uint32_t key;
	uint64_t iova, length;
	uint32_t page_shift;
	uint32_t access;
};
void rvt_core_mr_stat(const struct rvt_core_mr *mr, struct rvt_mr_stat *stat);

/* rvt_core_mr_unpublish(), then free key and region. */
void rvt_core_mr_destroy(struct rvt_core_mr *mr);

/* rereg_mr: move an unpublished region to another PD of the device. */
void rvt_core_mr_set_pd(struct rvt_core_mr *mr, struct rvt_core_pd *pd);
/* rereg_mr: exchange the page list of an unpublished region. -ENOMEM leaves the old one. */
int rvt_core_mr_set_max_pages(struct rvt_core_mr *mr, uint32_t max_pages);

/* --- completion queue ------------------------------------------------------------------ */

/**
 * rvt_core_cq_create - make a completion queue
 * @cqe: exactly so many completions fit; 1..RVT_MAX_CQE else -EINVAL
 * @ring: zeroed, mapped memory of rvt_cq_ring_size(@cqe) bytes that the
 *        caller owns and keeps until after destroy (or resize); NULL for a
 *        kernel queue, whose ring the core owns
 * @ctx: for the upcalls
 * @cq: result
 *
 * Context: process. Return: 0, -EINVAL, -ENOMEM (memory, RVT_MAX_CQ).
 */
int rvt_core_cq_create(struct rvt_core_dev *dev, uint32_t cqe, struct rvt_cq_ring *ring, void *ctx,
		       struct rvt_core_cq **cq);

/* Waits for upcalls in flight. No queue pair uses @cq any more. Context: process. */
void rvt_core_cq_destroy(struct rvt_core_cq *cq);

/**
 * rvt_core_cq_resize - exchange the ring
 *
 * Entries not yet polled move to the new ring in order. On success the old
 * user ring is no longer touched. The overrun mark of a queue stays.
 * Return: 0, -EINVAL (range, or more entries waiting than @cqe; nothing has
 * changed then), -ENOMEM.
 */
int rvt_core_cq_resize(struct rvt_core_cq *cq, uint32_t cqe, struct rvt_cq_ring *ring);

/* For people who look. @armed: for the next completion, or only a @solicited one. */
struct rvt_cq_stat {
	struct rvt_ring_stat ring;
	bool armed, solicited;
	bool overrun;
};
void rvt_core_cq_stat(struct rvt_core_cq *cq, struct rvt_cq_stat *stat);

/* A completion for kernel consumers: the entry and the QP's ctx. */
struct rvt_kernel_wc {
	struct rvt_wc wc;
	void *qp_ctx;
};

/* Context: any. Return: entries taken, 0..n; -EINVAL for a user queue. */
int rvt_core_cq_poll(struct rvt_core_cq *cq, int n, struct rvt_kernel_wc *wc);

/**
 * rvt_core_cq_arm - ask for one upcall
 * @solicited_only: only for a solicited or failed completion; never weakens
 *                  an earlier request for any completion
 * @report_missed: return whether entries are waiting
 *
 * A user queue in which entries wait that no upcall has told of gets its upcall
 * at once, unless @solicited_only: a process has no @report_missed.
 *
 * Context: any. Return: 1 if @report_missed and the queue is not empty, else 0.
 */
int rvt_core_cq_arm(struct rvt_core_cq *cq, bool solicited_only, bool report_missed);
uint32_t rvt_core_cq_cqe(const struct rvt_core_cq *cq);

/* --- shared receive queue ------------------------------------------------------------------ */

/**
 * rvt_core_srq_create - make a shared receive queue
 * @ring: as for rvt_core_cq_create(), rvt_rq_ring_size(@max_wr, @max_sge) bytes
 *
 * Return: 0, -EINVAL (max_wr, max_sge zero or over the limit, limit > max_wr), -ENOMEM.
 */
int rvt_core_srq_create(struct rvt_core_pd *pd, uint32_t max_wr, uint32_t max_sge, uint32_t limit,
			struct rvt_rq_ring *ring, void *ctx, struct rvt_core_srq **srq);
void rvt_core_srq_destroy(struct rvt_core_srq *srq);
/* One-shot limit event. -EINVAL if @limit > max_wr. */
int rvt_core_srq_set_limit(struct rvt_core_srq *srq, uint32_t limit);
/**
 * rvt_core_srq_resize - exchange the ring
 * @new_limit: NULL to keep the limit
 *
 * Return: 0, -EINVAL (range; limit > @max_wr; more posted than @max_wr; the
 * user's indices are out of range), -ENOMEM. Nothing has changed on error.
 */
int rvt_core_srq_resize(struct rvt_core_srq *srq, uint32_t max_wr, const uint32_t *new_limit,
			struct rvt_rq_ring *ring);
void rvt_core_srq_query(struct rvt_core_srq *srq, uint32_t *max_wr, uint32_t *max_sge,
			uint32_t *limit);
/* The ring, for people who look. */
void rvt_core_srq_stat(struct rvt_core_srq *srq, struct rvt_ring_stat *stat);
/* Kernel rings only (-EINVAL). -EINVAL num_sge, -ENOMEM full. Context: any. */
int rvt_core_srq_post(struct rvt_core_srq *srq, uint64_t wr_id, const struct rvt_sge *sge,
		      uint32_t num_sge);

/* --- queue pair -------------------------------------------------------------------------------- */

/* An address vector. */
struct rvt_ah_attr {
	uint16_t dlid;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t port_num;
	bool has_grh;
	uint8_t sgid_index;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint8_t dgid[16];
};

/* 0 or -EINVAL: the checks of create_ah and of modify_qp's AV. @multicast: DLID may be one. */
int rvt_core_ah_check(struct rvt_core_dev *dev, const struct rvt_ah_attr *ah, bool multicast);

struct rvt_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data; /* bytes */
};

/**
 * struct rvt_qp_init - what rvt_create_qp asks for
 * @cap: in and out
 * @port_num: SMI and GSI only
 * @sq_sig_all: every send completes with an entry
 * @user: a user's: posts run the engine at once, the receive ring is mapped
 * @rq_ring: user's receive ring (see rvt_core_qp_check_cap() for its size), or NULL
 */
struct rvt_qp_init {
	enum rvt_qp_type type;
	struct rvt_qp_cap cap;
	uint8_t port_num;
	bool sq_sig_all;
	bool user;
	struct rvt_core_pd *pd;
	struct rvt_core_cq *send_cq;
	struct rvt_core_cq *recv_cq;
	struct rvt_core_srq *srq;
	struct rvt_rq_ring *rq_ring;
	void *ctx;
};

/* The attributes of modify and query; units and ranges are the verbs'. */
struct rvt_qp_attr {
	enum rvt_qp_state state;
	enum rvt_qp_state cur_state;
	uint8_t path_mtu; /* enum ib_mtu: 1 = 256 .. 5 = 4096 */
	uint8_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access_flags;
	struct rvt_qp_cap cap; /* query only */
	struct rvt_ah_attr ah;
	struct rvt_ah_attr alt_ah;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	bool en_sqd_async_notify;
	bool sq_draining; /* query only */
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout; /* 4.096 us * 2^timeout; 0: no limit */
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
};

/**
 * rvt_core_qp_check_cap - are type and sizes acceptable?
 *
 * To be called before a receive ring of rvt_rq_ring_size(max_recv_wr,
 * max_recv_sge) is made. Return: 0, -EINVAL, -EOPNOTSUPP (type).
 */
int rvt_core_qp_check_cap(const struct rvt_qp_init *init);

/**
 * rvt_core_qp_create - make a queue pair in RESET
 *
 * Context: process. Return: 0, the errors of rvt_core_qp_check_cap(),
 * -ENOMEM (memory, RVT_MAX_QP), -EINVAL (QP0/QP1 of the port taken).
 */
int rvt_core_qp_create(struct rvt_core_dev *dev, struct rvt_qp_init *init,
		       struct rvt_core_qp **qp);

/* From any state, with traffic in flight. Context: process, not from an upcall. */
void rvt_core_qp_destroy(struct rvt_core_qp *qp);

/**
 * rvt_core_qp_modify - change state and attributes, all or nothing
 * @mask: enum rvt_qp_attr_mask
 *
 * Context: process. Return: 0, -EINVAL, -EOPNOTSUPP (a bit above DEST_QPN).
 */
int rvt_core_qp_modify(struct rvt_core_qp *qp, const struct rvt_qp_attr *attr, uint32_t mask);
void rvt_core_qp_query(struct rvt_core_qp *qp, struct rvt_qp_attr *attr);
uint32_t rvt_core_qp_num(const struct rvt_core_qp *qp);

/* Does the state machine allow it? Any numbers may be asked. Return: 1 or 0. */
int rvt_core_modify_is_ok(int cur_state, int new_state, int qp_type, uint32_t mask);

/* For people who look (debugfs, restrack). */
struct rvt_qp_stat {
	uint32_t qpn;
	enum rvt_qp_type type;
	enum rvt_qp_state state;
	uint32_t dest_qpn;
	uint32_t sq_head, sq_last, sq_cur, sq_size;
	struct rvt_ring_stat rq;
	uint32_t s_flags;
	uint32_t sq_psn, rq_psn;
	bool user;
};
void rvt_core_qp_stat(struct rvt_core_qp *qp, struct rvt_qp_stat *stat);
/* Visit every QP that is in the table (not those in RESET); @fn may sleep. Process. */
void rvt_core_qp_for_each(struct rvt_core_dev *dev, void (*fn)(struct rvt_core_qp *qp, void *arg),
			  void *arg);

/* --- posting ------------------------------------------------------------------------------------ */

/**
 * struct rvt_swqe - a send work request in its slot of the send ring
 *
 * The shim fills the first part in place; rvt_post_one_wr() checks and adds
 * the rest. @imm is in network order, or the rkey to invalidate.
 */
struct rvt_swqe {
	uint64_t wr_id;
	uint32_t opcode;
	uint32_t flags;
	uint32_t imm;
	uint32_t rkey; /* RDMA, atomics; LOCAL_INV: the key */
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add;
			uint64_t swap;
		} atomic;
		struct {
			const struct rvt_ah_attr *ah; /* the post replaces it by a copy */
			const struct rvt_core_pd *ah_pd;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
			uint16_t pkey_index;
		} ud;
		struct {
			struct rvt_core_mr *mr;
			uint32_t key;
			uint32_t access;
		} reg;
	};
	/* rvt_post_one_wr() fills these. */
	uint32_t length;
	uint32_t psn;
	uint32_t lpsn;
	uint32_t ssn;
	uint32_t num_sge;
	/* One piece in one row of memory: where, until a region ends. Else NULL. */
	char *row;
	uint64_t row_era;
};

/* Where the bytes of an inline request lie in its slot; the QP's most fit. */
static inline uint8_t *rvt_swqe_inline(struct rvt_swqe *slot)
{
	return (uint8_t *)(slot + 1);
}

/**
 * struct rvt_send_scope - what rvt_core_send_begin() took
 * @flags: of the producer lock
 * @section: the read section in which a user's requests are checked and run
 */
struct rvt_send_scope {
	unsigned long flags;
	int section;
};

/**
 * rvt_core_send_begin - begin to post: takes the producer lock
 * @scope: result, for rvt_core_send_end()
 *
 * Context: any; until rvt_core_send_end() nothing may sleep.
 * Return: 0; -EINVAL when the state forbids posting (no lock is held then).
 */
int rvt_core_send_begin(struct rvt_core_qp *qp, struct rvt_send_scope *scope);

/* The slot for the next request, to be filled. It may be filled and given up. */
struct rvt_swqe *rvt_core_send_slot(struct rvt_core_qp *qp);

/**
 * rvt_post_one_wr - check the request in the slot and commit it
 * @qp: the queue pair
 * @sge: its pieces; not looked at if @num_sge is 0
 * @num_sge: how many
 * @inline_data: RVT_SEND_INLINE: the bytes of all pieces in a row, which may
 *               be in their place in the slot already; else NULL
 *
 * A user's keys are checked here; a kernel consumer's when the request is
 * executed, because a REG_MR posted before it may be what makes them valid.
 *
 * Locks: the producer lock (rvt_core_send_begin()).
 * Return: 0; -EINVAL (opcode for this QP, num_sge, key, length, inline too
 * long, AH of another PD); -ENOMEM (ring full).
 */
int rvt_post_one_wr(struct rvt_core_qp *qp, const struct rvt_sge *sge, uint32_t num_sge,
		    const void *inline_data);

/**
 * rvt_core_send_end - end of posting: unlocks, then moves data
 * @posted: requests committed since rvt_core_send_begin()
 *
 * A user's requests run here, within the budget; a kernel consumer's always
 * on the work queue.
 */
void rvt_core_send_end(struct rvt_core_qp *qp, const struct rvt_send_scope *scope,
		       unsigned int posted);

/* The most bytes this QP takes inline. */
uint32_t rvt_core_qp_max_inline(const struct rvt_core_qp *qp);

/**
 * rvt_core_recv_post - post one receive to a kernel queue pair's own ring
 *
 * In ERR the request completes as flushed, behind those posted before it.
 * Context: any. Return: 0; -EINVAL (state RESET, SRQ, mapped ring, num_sge);
 * -ENOMEM (full).
 */
int rvt_core_recv_post(struct rvt_core_qp *qp, uint64_t wr_id, const struct rvt_sge *sge,
		       uint32_t num_sge);

/* --- multicast ------------------------------------------------------------------------------------ */

/* UD only. -EINVAL (state RESET, MLID of another group), -ENOMEM (limits). Twice is 0. */
int rvt_core_mcast_attach(struct rvt_core_qp *qp, const uint8_t gid[16], uint16_t lid);
/* -EINVAL: not attached. */
int rvt_core_mcast_detach(struct rvt_core_qp *qp, const uint8_t gid[16], uint16_t lid);

#ifdef __cplusplus
}
#endif

#endif
