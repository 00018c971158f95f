// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Changing a queue pair: every check first, then every change. A refusal
// leaves no trace.
#include <algorithm>

#include "device.h"
#include "outbox.h"
#include "pd.h"
#include "qp/qp.h"
#include "qp/state_machine.h"
#include "transport/engine.h"

using namespace rvt;

namespace
{

constexpr uint32_t known_bits = (RVT_QP_DEST_QPN << 1) - 1;
constexpr uint8_t mtu_max = 5; // 4096 bytes, the port's

constexpr uint8_t mtu_shift(uint8_t mtu)
{
	return static_cast<uint8_t>(mtu + 7);
}

static_assert(1u << mtu_shift(1) == 256 && 1u << mtu_shift(mtu_max) == 4096);

// One attribute's rule: when the bit is there, the value must be good.
struct Check {
	uint32_t mask;
	bool failed = false;

	void operator()(uint32_t bit, bool good) { failed |= (mask & bit) != 0 && !good; }
};

// InfiniBand 17.2.8: what may be asked of path migration, and where.
bool migration_ok(uint8_t wanted, MigState current, QpState next)
{
	switch (wanted) {
	case RVT_MIG_REARM:
		return current != MigState::armed && next == QpState::rts;
	case RVT_MIG_MIGRATED:
		return current != MigState::rearm && (next == QpState::rts || next == QpState::sqd);
	default:
		return false;
	}
}

bool address_ok(Device &dev, const rvt_ah_attr &ah)
{
	return ah.dlid < RVT_MCAST_LID_BASE && rvt_core_ah_check(&dev, &ah, false) == 0;
}

bool attributes_ok(const Qp &qp, const rvt_qp_attr &attr, uint32_t mask, QpState next)
	RVT_REQUIRES(qp.s_lock)
{
	const bool management = is_management(qp.type);
	Check check{mask};

	check(RVT_QP_AV, address_ok(qp.dev, attr.ah));
	check(RVT_QP_ALT_PATH, address_ok(qp.dev, attr.alt_ah) &&
				       attr.alt_pkey_index < RVT_MAX_PKEYS &&
				       attr.alt_timeout <= 31);
	check(RVT_QP_PKEY_INDEX, attr.pkey_index < RVT_MAX_PKEYS);
	check(RVT_QP_MIN_RNR_TIMER, attr.min_rnr_timer <= 31);
	check(RVT_QP_PORT, !management && attr.port_num == 1);
	check(RVT_QP_DEST_QPN, attr.dest_qpn < Qpn::limit);
	check(RVT_QP_RETRY_CNT, attr.retry_cnt <= 7);
	check(RVT_QP_RNR_RETRY, attr.rnr_retry <= 7);
	check(RVT_QP_TIMEOUT, attr.timeout <= 31);
	check(RVT_QP_PATH_MTU, attr.path_mtu >= 1 && attr.path_mtu <= mtu_max);
	check(RVT_QP_PATH_MIG_STATE, migration_ok(attr.path_mig_state, qp.mig.load(), next));
	check(RVT_QP_MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic <= RVT_MAX_RD_ATOMIC);
	check(RVT_QP_MAX_QP_RD_ATOMIC, attr.max_rd_atomic <= RVT_MAX_RD_ATOMIC);
	return !check.failed;
}

Errno check(const Qp &qp, const rvt_qp_attr &attr, uint32_t mask, QpState &next)
	RVT_REQUIRES(qp.s_lock)
{
	const QpState cur = qp.state();

	if (mask & ~known_bits)
		return Errno::opnotsupp;
	// A C enum promotes to int here: a negative number is out of range too.
	if ((mask & RVT_QP_STATE && static_cast<uint32_t>(attr.state) > RVT_QPS_ERR) ||
	    (mask & RVT_QP_CUR_STATE && attr.cur_state != static_cast<rvt_qp_state>(cur)))
		return Errno::inval;
	next = mask & RVT_QP_STATE ? static_cast<QpState>(attr.state) : cur;
	if (!transition_ok(cur, next, qp.type, mask) || !attributes_ok(qp, attr, mask, next))
		return Errno::inval;
	return Errno::ok;
}

// The requester's and the configured values.
void apply_requester(Qp &qp, const rvt_qp_attr &from, uint32_t mask)
	RVT_REQUIRES(qp.r_lock, qp.s_hlock, qp.s_lock)
{
	rvt_qp_attr &to = qp.attr;

	if (mask & RVT_QP_EN_SQD_ASYNC_NOTIFY)
		to.en_sqd_async_notify = from.en_sqd_async_notify;
	if (mask & RVT_QP_PORT)
		to.port_num = from.port_num;
	if (mask & RVT_QP_SQ_PSN)
		qp.s_next_psn.store(Psn(from.sq_psn).value());
	if (mask & RVT_QP_ALT_PATH) {
		to.alt_ah = from.alt_ah;
		to.alt_pkey_index = from.alt_pkey_index;
		to.alt_port_num = from.alt_ah.port_num;
		to.alt_timeout = from.alt_timeout;
	}
	if (mask & RVT_QP_RETRY_CNT)
		to.retry_cnt = qp.s_retry = from.retry_cnt;
	if (mask & RVT_QP_RNR_RETRY)
		to.rnr_retry = qp.s_rnr_retry = from.rnr_retry;
	if (mask & RVT_QP_TIMEOUT)
		to.timeout = from.timeout;
	if (mask & RVT_QP_MAX_QP_RD_ATOMIC)
		to.max_rd_atomic = qp.s_max_rd_atomic = from.max_rd_atomic;
}

// What the responder looks at too; attr keeps the configured value.
void apply_responder(Qp &qp, const rvt_qp_attr &from, uint32_t mask)
	RVT_REQUIRES(qp.r_lock, qp.s_hlock, qp.s_lock)
{
	rvt_qp_attr &to = qp.attr;

	if (mask & RVT_QP_ACCESS_FLAGS)
		to.access_flags = qp.r_access = from.access_flags & 0xff;
	if (mask & RVT_QP_PKEY_INDEX)
		to.pkey_index = qp.r_pkey_index = from.pkey_index;
	if (mask & RVT_QP_QKEY)
		to.qkey = qp.r_qkey = from.qkey;
	if (mask & RVT_QP_AV)
		to.ah = qp.r_peer_ah = from.ah;
	if (mask & RVT_QP_PATH_MTU) {
		to.path_mtu = std::min(from.path_mtu, mtu_max);
		qp.s_mtu_shift = mtu_shift(to.path_mtu);
	}
	if (mask & RVT_QP_RQ_PSN)
		qp.r_psn.store(Psn(from.rq_psn).value());
	if (mask & RVT_QP_MIN_RNR_TIMER)
		to.min_rnr_timer = qp.r_min_rnr_timer = from.min_rnr_timer;
	if (mask & RVT_QP_MAX_DEST_RD_ATOMIC)
		to.max_dest_rd_atomic = qp.r_max_rd_atomic = from.max_dest_rd_atomic;
	if (mask & RVT_QP_DEST_QPN) {
		to.dest_qpn = from.dest_qpn;
		qp.r_peer_qpn = Qpn(from.dest_qpn);
	}
}

// A request to go over to the alternate path, or to arm it.
void apply_migration(Qp &qp, const rvt_qp_attr &from, uint32_t mask, Outbox &out)
	RVT_REQUIRES(qp.r_lock, qp.s_hlock, qp.s_lock)
{
	if (!(mask & RVT_QP_PATH_MIG_STATE))
		return;
	if (from.path_mig_state == RVT_MIG_MIGRATED && qp.mig.load() == MigState::armed)
		migrate(qp, out);
	else
		qp.mig.store(static_cast<MigState>(from.path_mig_state));
}

// What is left for finish_error(), if the new state is ERR.
int change_state(Qp &qp, const rvt_qp_attr &attr, uint32_t mask, QpState next, QpLocks &locks,
		 Outbox &out) RVT_REQUIRES(qp.r_lock, qp.s_hlock, qp.s_lock)
{
	int last_wqe = 0;

	switch (next) {
	case QpState::reset:
		_rvt_reset_qp(&qp, locks);
		break;
	case QpState::err:
		last_wqe = rvt_error_qp(&qp, RVT_WC_WR_FLUSH_ERR, RVT_TRACE_CAUSE_MODIFY, out);
		break;
	case QpState::rtr:
		qp.r_comm_est = false;
		qp.set_state(next);
		break;
	case QpState::sqd:
		if (mask & RVT_QP_EN_SQD_ASYNC_NOTIFY && attr.en_sqd_async_notify)
			qp.s_flags |= s_drain_notify;
		qp.set_state(next);
		note_drained(qp, out);
		break;
	default:
		qp.s_flags &= ~s_drain_notify;
		qp.set_state(next);
		break;
	}
	return last_wqe;
}

Errno modify(Qp &qp, const rvt_qp_attr &attr, uint32_t mask, Outbox &out)
{
	MutexGuard one_at_a_time(qp.modify_lock);
	QpState cur, next;
	int last_wqe;

	if (qp.dying)
		return Errno::inval;
	{
		QpLocks locks(qp);

		cur = qp.state();
		if (Errno e = check(qp, attr, mask, next); failed(e))
			return e;
		last_wqe = change_state(qp, attr, mask, next, locks, out);
		apply_requester(qp, attr, mask);
		apply_responder(qp, attr, mask);
		apply_migration(qp, attr, mask, out);
	}
	if (cur == QpState::reset && next == QpState::init)
		qp.dev.qps.insert(qp);
	if (next == QpState::err) {
		MutexGuard r(qp.r_lock);

		finish_error(qp, last_wqe, out);
	}
	return Errno::ok;
}

} // namespace

void rvt::migrate(Qp &qp, Outbox &out)
{
	qp.attr.ah = qp.r_peer_ah = qp.attr.alt_ah;
	qp.attr.port_num = qp.attr.alt_port_num;
	qp.attr.pkey_index = qp.r_pkey_index = qp.attr.alt_pkey_index;
	qp.mig.store(MigState::migrated);
	out.event(qp, RVT_EVENT_PATH_MIG);
}

extern "C" {

int rvt_core_modify_is_ok(int cur_state, int new_state, int qp_type, uint32_t mask)
{
	if (cur_state < 0 || cur_state > RVT_QPS_ERR || new_state < 0 || new_state > RVT_QPS_ERR ||
	    qp_type < 0 || qp_type > RVT_QPT_UD)
		return 0;
	return transition_ok(static_cast<QpState>(cur_state), static_cast<QpState>(new_state),
			     static_cast<QpType>(qp_type), mask);
}

int rvt_core_qp_modify(struct rvt_core_qp *qp, const struct rvt_qp_attr *attr, uint32_t mask)
{
	{
		Outbox out;

		if (Errno e = modify(*qp, *attr, mask, out); failed(e))
			return to_int(e);
	}
	// Sends may go on (SQD, SQE -> RTS) or have to be flushed (-> ERR).
	if (qp->sends_pending())
		rvt_do_send(qp);
	return 0;
}

void rvt_core_qp_query(struct rvt_core_qp *qp, struct rvt_qp_attr *attr)
{
	SpinGuard s(qp->s_lock);
	const QpState state = qp->state();

	*attr = qp->attr;
	attr->state = attr->cur_state = static_cast<rvt_qp_state>(state);
	attr->path_mig_state = static_cast<uint8_t>(qp->mig.load());
	attr->rq_psn = qp->r_psn.load();
	attr->sq_psn = qp->s_next_psn.load();
	attr->sq_draining = state == QpState::sqd && qp->s_cur != qp->s_last.load();
}

void rvt_core_qp_stat(struct rvt_core_qp *qp, struct rvt_qp_stat *stat)
{
	SpinGuard s(qp->s_lock);

	*stat = {};
	stat->qpn = qp->qpn.value();
	stat->type = static_cast<rvt_qp_type>(qp->type);
	stat->state = static_cast<rvt_qp_state>(qp->state());
	stat->dest_qpn = qp->attr.dest_qpn;
	stat->sq_head = qp->s_head.load();
	stat->sq_last = qp->s_last.load();
	stat->sq_cur = qp->s_cur;
	stat->sq_size = qp->sq.size;
	stat->rq = qp->rq.stat();
	stat->s_flags = qp->s_flags;
	stat->sq_psn = qp->s_next_psn.load();
	stat->rq_psn = qp->r_psn.load();
	stat->user = qp->user;
}
}
