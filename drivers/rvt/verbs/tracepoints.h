/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * tracepoints.h - the tracepoints of the system "rvt": what trace.h tells.
 *
 * The kernel reads this file several times, each time with other meanings of
 * its macros.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rvt

#if !defined(RVT_TRACEPOINTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define RVT_TRACEPOINTS_H

#include <linux/tracepoint.h>

#include <rvt/trace.h>

/* --- names of numbers ------------------------------------------------------- */

#define RVT_WR_OPCODES						\
	NAME(RVT_WR_RDMA_WRITE, "WRITE")			\
	NAME(RVT_WR_RDMA_WRITE_WITH_IMM, "WRITE_WITH_IMM")	\
	NAME(RVT_WR_SEND, "SEND")				\
	NAME(RVT_WR_SEND_WITH_IMM, "SEND_WITH_IMM")		\
	NAME(RVT_WR_RDMA_READ, "READ")				\
	NAME(RVT_WR_ATOMIC_CMP_AND_SWP, "CMP_SWAP")		\
	NAME(RVT_WR_ATOMIC_FETCH_AND_ADD, "FETCH_ADD")		\
	NAME(RVT_WR_LOCAL_INV, "LOCAL_INV")			\
	NAME(RVT_WR_SEND_WITH_INV, "SEND_WITH_INV")		\
	LAST(RVT_WR_REG_MR, "REG_MR")

#define RVT_WC_OPCODES						\
	NAME(RVT_WC_SEND, "SEND")				\
	NAME(RVT_WC_RDMA_WRITE, "WRITE")			\
	NAME(RVT_WC_RDMA_READ, "READ")				\
	NAME(RVT_WC_COMP_SWAP, "CMP_SWAP")			\
	NAME(RVT_WC_FETCH_ADD, "FETCH_ADD")			\
	NAME(RVT_WC_LOCAL_INV, "LOCAL_INV")			\
	NAME(RVT_WC_REG_MR, "REG_MR")				\
	NAME(RVT_WC_RECV, "RECV")				\
	LAST(RVT_WC_RECV_RDMA_WITH_IMM, "RECV_WRITE_WITH_IMM")

#define RVT_WC_STATUSES						\
	NAME(RVT_WC_SUCCESS, "SUCCESS")				\
	NAME(RVT_WC_LOC_LEN_ERR, "LOC_LEN_ERR")			\
	NAME(RVT_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR")		\
	NAME(RVT_WC_LOC_PROT_ERR, "LOC_PROT_ERR")		\
	NAME(RVT_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR")		\
	NAME(RVT_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR")		\
	NAME(RVT_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR")		\
	NAME(RVT_WC_REM_OP_ERR, "REM_OP_ERR")			\
	NAME(RVT_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR")		\
	LAST(RVT_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR")

#define RVT_QP_STATES						\
	NAME(RVT_QPS_RESET, "RESET")				\
	NAME(RVT_QPS_INIT, "INIT")				\
	NAME(RVT_QPS_RTR, "RTR")				\
	NAME(RVT_QPS_RTS, "RTS")				\
	NAME(RVT_QPS_SQD, "SQD")				\
	NAME(RVT_QPS_SQE, "SQE")				\
	LAST(RVT_QPS_ERR, "ERR")

#define RVT_WAITS						\
	NAME(RVT_TRACE_WAIT_RNR, "rnr")				\
	LAST(RVT_TRACE_WAIT_ANSWER, "answer")

#define RVT_CAUSES						\
	NAME(RVT_TRACE_CAUSE_MODIFY, "modify")			\
	NAME(RVT_TRACE_CAUSE_SEND, "send")			\
	NAME(RVT_TRACE_CAUSE_RECV, "receive")			\
	NAME(RVT_TRACE_CAUSE_REGION, "region")			\
	LAST(RVT_TRACE_CAUSE_OVERRUN, "overrun")

#define RVT_MR_EVENTS						\
	NAME(RVT_TRACE_MR_REGISTER, "register")			\
	NAME(RVT_TRACE_MR_DEREGISTER, "deregister")		\
	NAME(RVT_TRACE_MR_ENABLE, "enable")			\
	LAST(RVT_TRACE_MR_INVALIDATE, "invalidate")

#define RVT_CQ_EVENTS						\
	NAME(RVT_TRACE_CQ_ARM, "arm")				\
	NAME(RVT_TRACE_CQ_ARM_SOLICITED, "arm_solicited")	\
	NAME(RVT_TRACE_CQ_RESIZE, "resize")			\
	LAST(RVT_TRACE_CQ_OVERRUN, "overrun")

/* User space, which prints the records, knows the numbers of enums by this. */
#undef NAME
#undef LAST
#define NAME(number, text) TRACE_DEFINE_ENUM(number);
#define LAST(number, text) TRACE_DEFINE_ENUM(number);

RVT_WR_OPCODES
RVT_WC_OPCODES
RVT_WC_STATUSES
RVT_QP_STATES
RVT_WAITS
RVT_CAUSES
RVT_MR_EVENTS
RVT_CQ_EVENTS

#undef NAME
#undef LAST
#define NAME(number, text) { number, text },
#define LAST(number, text) { number, text }

/* --- requests ------------------------------------------------------------------ */

TRACE_EVENT_FN(rvt_post_send,
	TP_PROTO(u16 lid, u32 qpn, const struct rvt_swqe *wqe),
	TP_ARGS(lid, qpn, wqe),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, opcode)
		__field(u32, flags)
		__field(u32, bytes)
		__field(u32, psn)
		__field(u16, lid)
	),
	TP_fast_assign(
		__entry->wr_id = wqe->wr_id;
		__entry->qpn = qpn;
		__entry->opcode = wqe->opcode;
		__entry->flags = wqe->flags;
		__entry->bytes = wqe->length;
		__entry->psn = wqe->psn;
		__entry->lid = lid;
	),
	TP_printk("lid=%u qpn=0x%06x wr_id=0x%llx opcode=%s bytes=%u flags=0x%x psn=0x%06x",
		  __entry->lid, __entry->qpn, __entry->wr_id,
		  __print_symbolic(__entry->opcode, RVT_WR_OPCODES),
		  __entry->bytes, __entry->flags, __entry->psn),
	rvt_watch_post_send, rvt_unwatch_post_send
);

TRACE_EVENT_FN(rvt_post_recv,
	TP_PROTO(u16 lid, u32 qpn, u64 wr_id, u32 num_sge),
	TP_ARGS(lid, qpn, wr_id, num_sge),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, num_sge)
		__field(u16, lid)
	),
	TP_fast_assign(
		__entry->wr_id = wr_id;
		__entry->qpn = qpn;
		__entry->num_sge = num_sge;
		__entry->lid = lid;
	),
	TP_printk("lid=%u qpn=0x%06x wr_id=0x%llx num_sge=%u",
		  __entry->lid, __entry->qpn, __entry->wr_id, __entry->num_sge),
	rvt_watch_post_recv, rvt_unwatch_post_recv
);

TRACE_EVENT_FN(rvt_execute,
	TP_PROTO(u16 lid, u32 qpn, const struct rvt_swqe *wqe, u32 dest_qpn),
	TP_ARGS(lid, qpn, wqe, dest_qpn),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, opcode)
		__field(u32, bytes)
		__field(u32, psn)
		__field(u32, dest_qpn)
		__field(u16, lid)
	),
	TP_fast_assign(
		__entry->wr_id = wqe->wr_id;
		__entry->qpn = qpn;
		__entry->opcode = wqe->opcode;
		__entry->bytes = wqe->length;
		__entry->psn = wqe->psn;
		__entry->dest_qpn = dest_qpn;
		__entry->lid = lid;
	),
	TP_printk("lid=%u qpn=0x%06x wr_id=0x%llx opcode=%s bytes=%u psn=0x%06x dest=0x%06x",
		  __entry->lid, __entry->qpn, __entry->wr_id,
		  __print_symbolic(__entry->opcode, RVT_WR_OPCODES),
		  __entry->bytes, __entry->psn, __entry->dest_qpn),
	rvt_watch_execute, rvt_unwatch_execute
);

TRACE_EVENT_FN(rvt_wait,
	TP_PROTO(u16 lid, u32 qpn, enum rvt_trace_wait_for what, u64 wr_id, u64 ns, u32 left),
	TP_ARGS(lid, qpn, what, wr_id, ns, left),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(u64, ns)
		__field(u32, qpn)
		__field(u32, left)
		__field(u16, lid)
		__field(u8, what)
	),
	TP_fast_assign(
		__entry->wr_id = wr_id;
		__entry->ns = ns;
		__entry->qpn = qpn;
		__entry->left = left;
		__entry->lid = lid;
		__entry->what = what;
	),
	TP_printk("lid=%u qpn=0x%06x wr_id=0x%llx for=%s ns=%llu left=%u",
		  __entry->lid, __entry->qpn, __entry->wr_id,
		  __print_symbolic(__entry->what, RVT_WAITS), __entry->ns, __entry->left),
	rvt_watch_wait, rvt_unwatch_wait
);

TRACE_EVENT_FN(rvt_complete,
	TP_PROTO(u16 lid, u32 cqn, const struct rvt_wc *wc),
	TP_ARGS(lid, cqn, wc),
	TP_STRUCT__entry(
		__field(u64, wr_id)
		__field(u32, cqn)
		__field(u32, qpn)
		__field(u32, opcode)
		__field(u32, status)
		__field(u32, bytes)
		__field(u16, lid)
	),
	TP_fast_assign(
		__entry->wr_id = wc->wr_id;
		__entry->cqn = cqn;
		__entry->qpn = wc->qp_num;
		__entry->opcode = wc->opcode;
		__entry->status = wc->status;
		__entry->bytes = wc->byte_len;
		__entry->lid = lid;
	),
	TP_printk("lid=%u qpn=0x%06x wr_id=0x%llx opcode=%s bytes=%u status=%s cqn=%u",
		  __entry->lid, __entry->qpn, __entry->wr_id,
		  __print_symbolic(__entry->opcode, RVT_WC_OPCODES), __entry->bytes,
		  __print_symbolic(__entry->status, RVT_WC_STATUSES), __entry->cqn),
	rvt_watch_complete, rvt_unwatch_complete
);

/* --- objects --------------------------------------------------------------------- */

TRACE_EVENT_FN(rvt_qp_state,
	TP_PROTO(u16 lid, u32 qpn, enum rvt_qp_state from, enum rvt_qp_state to),
	TP_ARGS(lid, qpn, from, to),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u16, lid)
		__field(u8, from)
		__field(u8, to)
	),
	TP_fast_assign(
		__entry->qpn = qpn;
		__entry->lid = lid;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("lid=%u qpn=0x%06x from=%s to=%s", __entry->lid, __entry->qpn,
		  __print_symbolic(__entry->from, RVT_QP_STATES),
		  __print_symbolic(__entry->to, RVT_QP_STATES)),
	rvt_watch_qp_state, rvt_unwatch_qp_state
);

TRACE_EVENT_FN(rvt_qp_error,
	TP_PROTO(u16 lid, u32 qpn, enum rvt_trace_cause cause, enum rvt_wc_status status),
	TP_ARGS(lid, qpn, cause, status),
	TP_STRUCT__entry(
		__field(u32, qpn)
		__field(u32, status)
		__field(u16, lid)
		__field(u8, cause)
	),
	TP_fast_assign(
		__entry->qpn = qpn;
		__entry->status = status;
		__entry->lid = lid;
		__entry->cause = cause;
	),
	TP_printk("lid=%u qpn=0x%06x cause=%s status=%s", __entry->lid, __entry->qpn,
		  __print_symbolic(__entry->cause, RVT_CAUSES),
		  __print_symbolic(__entry->status, RVT_WC_STATUSES)),
	rvt_watch_qp_error, rvt_unwatch_qp_error
);

TRACE_EVENT_FN(rvt_mr,
	TP_PROTO(u16 lid, enum rvt_trace_mr_event what, u32 key, u64 iova, u64 length, u32 access),
	TP_ARGS(lid, what, key, iova, length, access),
	TP_STRUCT__entry(
		__field(u64, iova)
		__field(u64, length)
		__field(u32, key)
		__field(u32, access)
		__field(u16, lid)
		__field(u8, what)
	),
	TP_fast_assign(
		__entry->iova = iova;
		__entry->length = length;
		__entry->key = key;
		__entry->access = access;
		__entry->lid = lid;
		__entry->what = what;
	),
	TP_printk("lid=%u what=%s key=0x%08x iova=0x%llx length=%llu access=0x%x", __entry->lid,
		  __print_symbolic(__entry->what, RVT_MR_EVENTS), __entry->key,
		  __entry->iova, __entry->length, __entry->access),
	rvt_watch_mr, rvt_unwatch_mr
);

TRACE_EVENT_FN(rvt_cq,
	TP_PROTO(u16 lid, u32 cqn, enum rvt_trace_cq_event what, u32 cqe),
	TP_ARGS(lid, cqn, what, cqe),
	TP_STRUCT__entry(
		__field(u32, cqn)
		__field(u32, cqe)
		__field(u16, lid)
		__field(u8, what)
	),
	TP_fast_assign(
		__entry->cqn = cqn;
		__entry->cqe = cqe;
		__entry->lid = lid;
		__entry->what = what;
	),
	TP_printk("lid=%u cqn=%u what=%s cqe=%u", __entry->lid, __entry->cqn,
		  __print_symbolic(__entry->what, RVT_CQ_EVENTS), __entry->cqe),
	rvt_watch_cq, rvt_unwatch_cq
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tracepoints
#include <trace/define_trace.h>
