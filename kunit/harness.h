/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * harness.h - what the suites stand on: a device, objects that clean up
 * after themselves, queue pairs brought to a state, waiting for completions
 * and events by condition.
 *
 * A rig belongs to one test case. Whatever it made it destroys when the case
 * ends, also when an assertion ended it, and expects each destroy to work.
 */
#ifndef RVT_KUNIT_HARNESS_H
#define RVT_KUNIT_HARNESS_H

#include <kunit/test.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

/* How long something that must happen may take: a debug kernel, emulated. */
#define RIG_PATIENCE (20 * HZ)

#define RIG_EVENTS 32
#define RIG_QKEY 0x11111111u
#define RIG_PSN 0x000100u

enum {
	RIG_ALL_ACCESS = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC,
	RIG_QP_ACCESS = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |
			IB_ACCESS_REMOTE_ATOMIC,
};

struct rig;

struct rig_cq {
	struct list_head node;
	struct rig *rig;
	struct ib_cq *cq;
	wait_queue_head_t wait;
	atomic_t upcalls; /* of the completion handler */
	atomic_t errors; /* IB_EVENT_CQ_ERR */
	void (*handler)(struct rig_cq *cq); /* runs inside the upcall */
	void *priv;
};

struct rig_srq {
	struct list_head node;
	struct rig *rig;
	struct ib_srq *srq;
	wait_queue_head_t wait;
	atomic_t events[RIG_EVENTS];
};

struct rig_qp {
	struct list_head node;
	struct rig *rig;
	struct ib_qp *qp;
	enum ib_qp_type type;
	struct rig_cq *scq;
	struct rig_cq *rcq;
	wait_queue_head_t wait;
	atomic_t events[RIG_EVENTS];
	struct ib_qp_cap cap; /* as the device returned it */
	u32 num; /* stays after destroy */
	bool stray; /* an event came with somebody else's pointer */
};

struct rig {
	struct kunit *test;
	struct ib_device *dev;
	u32 port;
	struct ib_port_attr port_attr;
	struct ib_device_attr attr;
	struct ib_pd *pd;
	struct ib_mr *mr; /* all of memory, every access */
	struct list_head qps, cqs, srqs, bufs, mrs;
};

/* --- the suite: struct kunit_suite's four hooks --------------------------- */

/* The name of the device under test. */
extern char *rig_device_name;

int rig_suite_init(struct kunit_suite *suite);
void rig_suite_exit(struct kunit_suite *suite);
int rig_init(struct kunit *test);
void rig_exit(struct kunit *test);

static inline struct rig *rig_of(struct kunit *test)
{
	return test->priv;
}

/* A suite whose cases stand on a rig; main.c lists it. */
#define RIG_SUITE(label, cases)			\
	struct kunit_suite label##_suite = {		\
		.name = #label,				\
		.suite_init = rig_suite_init,		\
		.suite_exit = rig_suite_exit,		\
		.init = rig_init,			\
		.exit = rig_exit,			\
		.test_cases = cases,			\
	}

/* --- objects ---------------------------------------------------------------- */

void *rig_buf(struct rig *rig, size_t size);
void rig_fill(void *buf, size_t size, u32 seed);

/* A memory region over all kernel memory. */
struct ib_mr *rig_dma_mr(struct rig *rig, struct ib_pd *pd, int access);
int rig_mr_destroy(struct rig *rig, struct ib_mr *mr);

struct rig_cq *rig_cq(struct rig *rig, int cqe);
int rig_cq_destroy(struct rig_cq *cq);

struct rig_srq *rig_srq(struct rig *rig, u32 max_wr, u32 max_sge, u32 limit);
int rig_srq_destroy(struct rig_srq *srq);

/**
 * struct rig_qp_opt - how a queue pair differs from the usual one
 *
 * Zero means: 16 work requests, 4 pieces each, two queues of its own, sends
 * signalled one by one.
 */
struct rig_qp_opt {
	u32 send_wr, recv_wr, send_sge, recv_sge, inline_data;
	struct rig_cq *scq, *rcq;
	struct rig_srq *srq;
	struct ib_pd *pd;
	bool sig_all;
};

struct rig_qp *rig_qp(struct rig *rig, enum ib_qp_type type, const struct rig_qp_opt *opt);
/* May fail: the result is an ERR_PTR then. */
struct rig_qp *rig_try_qp(struct rig *rig, enum ib_qp_type type, const struct rig_qp_opt *opt);
int rig_qp_destroy(struct rig_qp *qp);

/* --- states ------------------------------------------------------------------- */

/**
 * rig_attr - the usual attributes for going to @state
 * @peer: who to connect to; NULL leaves the address out of account (UD)
 * @attr: filled with a legal value for every attribute
 *
 * Return: the mask that the transition from the state before requires.
 */
int rig_attr(struct rig_qp *qp, enum ib_qp_state state, struct rig_qp *peer,
	     struct ib_qp_attr *attr);

/* A legal address vector for the rig's own port. */
void rig_ah_attr(struct rig *rig, struct rdma_ah_attr *ah);

/* One step, asserted. */
void rig_step(struct rig_qp *qp, enum ib_qp_state state, struct rig_qp *peer);
/*
 * From RESET by the shortest way to @state, connected to @peer. To SQE, which
 * RC does not know, a send with a bad key leads; its completion is taken.
 */
void rig_bring(struct rig_qp *qp, enum ib_qp_state state, struct rig_qp *peer);
int rig_set_state(struct rig_qp *qp, enum ib_qp_state state);
enum ib_qp_state rig_state(struct rig_qp *qp);
void rig_query(struct rig_qp *qp, struct ib_qp_attr *attr, struct ib_qp_init_attr *init);
void rig_wait_state(struct rig_qp *qp, enum ib_qp_state state);

struct rig_pair {
	struct rig_qp *a, *b;
};

/* Two queue pairs in RTS, each other's peer. */
struct rig_pair rig_pair(struct rig *rig, enum ib_qp_type type, const struct rig_qp_opt *opt);

/* --- work --------------------------------------------------------------------- */

struct rig_wr {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_ud_wr ud;
	};
	struct ib_sge sge;
};

/* A signalled send work request with one piece (none if @len is 0). */
void rig_wr(struct rig_qp *qp, struct rig_wr *wr, enum ib_wr_opcode op, u64 wr_id, void *buf,
	    u32 len);
/* Where an RDMA operation or atomic goes; @mr NULL: the rig's. */
void rig_remote(struct rig_qp *qp, struct rig_wr *wr, void *remote, struct ib_mr *mr);

int rig_post(struct rig_qp *qp, struct rig_wr *wr);
int rig_post_recv(struct rig_qp *qp, u64 wr_id, void *buf, u32 len);
int rig_post_srq(struct rig_srq *srq, u64 wr_id, void *buf, u32 len);

/* --- waiting ------------------------------------------------------------------ */

/* Waits for one completion; asserts that it comes. */
void rig_wc(struct rig_cq *cq, struct ib_wc *wc);
/* For threads that may not assert: whether one came. */
bool rig_try_wc(struct rig_cq *cq, struct ib_wc *wc);
/* The same as rig_wc(), and that it has this cookie and this status. */
void rig_expect_wc(struct rig_cq *cq, u64 wr_id, enum ib_wc_status status);
/* Nothing is in the queue now. */
void rig_expect_empty(struct rig_cq *cq);
/* Waits until @event was raised @count times in all. */
void rig_wait_event(struct rig_qp *qp, enum ib_event_type event, int count);
bool rig_saw_event(struct rig_qp *qp, enum ib_event_type event, int count);

const char *rig_state_name(enum ib_qp_state state);
const char *rig_type_name(enum ib_qp_type type);
const char *rig_op_name(enum ib_wr_opcode op);

#endif
