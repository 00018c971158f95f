// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The loopback of connected queue pairs: what the responder does with a
// message, and what the requester is told (InfiniBand 9.7 and 9.8 without a
// wire in between).
#include <algorithm>

#include "cq/cq.h"
#include "device.h"
#include "mr/bind.h"
#include "outbox.h"
#include "transport/engine.h"
#include "wq/recv.h"

namespace rvt
{

namespace
{

// What is wrong with a request, as the responder sees it.
enum class Fault : uint8_t {
	none,
	rnr,	  // no receive posted
	receive,  // the receive at the head is no good; it is completed already
	invalid,  // not allowed on this queue pair
	too_long, // longer than the receive
	access,	  // the key does not grant it
	faults
};

struct FaultInfo {
	rvt_wc_status requester;
	rvt_wc_status receive; // of the receive in use, if there is one
	bool raises;
	rvt_event event;
};

// InfiniBand tables 59 and 60: classes of responder errors.
constexpr std::array<FaultInfo, static_cast<size_t>(Fault::faults)> faults = {{
	/* none */ {RVT_WC_SUCCESS, RVT_WC_SUCCESS, false, {}},
	/* rnr */ {RVT_WC_SUCCESS, RVT_WC_SUCCESS, false, {}},
	/* receive */ {RVT_WC_REM_OP_ERR, RVT_WC_LOC_QP_OP_ERR, false, {}},
	/* invalid */
	{RVT_WC_REM_INV_REQ_ERR, RVT_WC_LOC_QP_OP_ERR, true, RVT_EVENT_QP_REQ_ERR},
	/* too_long */
	{RVT_WC_REM_INV_REQ_ERR, RVT_WC_LOC_LEN_ERR, true, RVT_EVENT_QP_REQ_ERR},
	/* access */
	{RVT_WC_REM_ACCESS_ERR, RVT_WC_LOC_PROT_ERR, true, RVT_EVENT_QP_ACCESS_ERR},
}};

// A message in flight, and both its ends.
struct Message {
	Qp &req;
	Qp &resp;
	rvt_swqe &wqe;
	const WrInfo &info;
	Outbox &out;
};

// Nobody takes the message: UC does not notice, RC waits for an answer.
Verdict lost(const Qp &req)
{
	return req.type == QpType::rc ? Verdict::no_answer() : Verdict::done(RVT_WC_SUCCESS);
}

// Move a message from one list to another. Its bytes move once: the caller
// releases both lists, wherever they are afterwards.
[[gnu::always_inline]] inline void transfer(SgeState &to, SgeState &from, uint32_t length,
					    bool copy_last)
{
	// Most messages are short, and each end is in one row.
	const char *data = from.row(length);
	char *row = data ? to.row(length) : nullptr;

	if (row)
		copy_row(row, data, length, copy_last);
	else
		copy_list(to, from, length, true, copy_last);
}

// One piece of remote memory as a list. Key 0 is nobody's to give away.
class RemoteMemory
{
public:
	[[gnu::always_inline]] RemoteMemory(const Message &m, uint32_t length, uint32_t access)
		: piece_{nullptr, m.wqe.remote_addr, length, m.wqe.rkey}
	{
		state_.sge = &piece_;
		if (m.wqe.rkey && bind_sge(m.resp.pd, piece_, access))
			state_.set(1);
	}
	~RemoteMemory() { state_.release(); }
	RemoteMemory(const RemoteMemory &) = delete;
	RemoteMemory &operator=(const RemoteMemory &) = delete;

	bool granted() const { return state_.num != 0; }
	SgeState &state() { return state_; }

private:
	BoundSge piece_;
	SgeState state_;
};

// A send with invalidate: only once no byte moves any more, its own neither.
Fault invalidate(Qp &req, Qp &resp, uint32_t key) RVT_REQUIRES(resp.r_lock)
{
	req.s_sge.release();
	resp.r_sge.release();

	Mr *mr = resp.dev.keys.slot(key);

	return mr && !failed(mr->invalidate(resp.pd, key)) ? Fault::none : Fault::access;
}

Fault take_receive(const Message &m, bool id_only) RVT_REQUIRES(m.resp.r_lock)
{
	switch (rvt_get_rwqe(&m.resp, id_only, {m.wqe.length, false}, m.out)) {
	case 1:
		return Fault::none;
	case 0:
		return Fault::rnr;
	case -2:
		return Fault::too_long;
	default:
		return Fault::receive;
	}
}

Fault do_send(const Message &m) RVT_REQUIRES(m.resp.r_lock)
{
	if (Fault f = take_receive(m, false); f != Fault::none)
		return f;
	transfer(m.resp.r_sge, m.req.s_sge, m.wqe.length, false);
	m.resp.r_sge.release();
	return m.info.inv ? invalidate(m.req, m.resp, m.wqe.imm) : Fault::none;
}

Fault do_write(const Message &m) RVT_REQUIRES(m.resp.r_lock)
{
	if (!(m.resp.r_access & RVT_ACCESS_REMOTE_WRITE))
		return Fault::invalid;
	if (m.info.imm) {
		if (Fault f = take_receive(m, true); f != Fault::none)
			return f;
	}
	// No bytes, no key (InfiniBand 9.7.4.1.4).
	if (!m.wqe.length)
		return Fault::none;
	RemoteMemory to(m, m.wqe.length, RVT_ACCESS_REMOTE_WRITE);
	if (!to.granted())
		return Fault::access;
	// A program may wait by looking at the last byte.
	transfer(to.state(), m.req.s_sge, m.wqe.length, m.resp.user);
	return Fault::none;
}

Fault do_read(const Message &m) RVT_REQUIRES(m.resp.r_lock)
{
	if (!(m.resp.r_access & RVT_ACCESS_REMOTE_READ) || !m.resp.r_max_rd_atomic)
		return Fault::invalid;
	if (!m.wqe.length)
		return Fault::none;
	RemoteMemory from(m, m.wqe.length, RVT_ACCESS_REMOTE_READ);
	if (!from.granted())
		return Fault::access;
	m.resp.r_ack_key = m.wqe.rkey;
	transfer(m.req.s_sge, from.state(), m.wqe.length, false);
	m.resp.r_ack_key = 0;
	return Fault::none;
}

// Atomic against every CPU, and against other devices' atomics.
uint64_t operate(uint64_t &word, const rvt_swqe &wqe)
{
	std::atomic_ref<uint64_t> target(word);

	if (wqe.opcode == RVT_WR_ATOMIC_FETCH_AND_ADD)
		return target.fetch_add(wqe.atomic.compare_add);
	uint64_t old = wqe.atomic.compare_add;

	target.compare_exchange_strong(old, wqe.atomic.swap);
	return old;
}

[[gnu::always_inline]] inline Fault do_atomic(const Message &m) RVT_REQUIRES(m.resp.r_lock)
{
	if (!(m.resp.r_access & RVT_ACCESS_REMOTE_ATOMIC) || !m.resp.r_max_rd_atomic ||
	    m.wqe.remote_addr % atomic_size)
		return Fault::invalid;
	RemoteMemory at(m, atomic_size, RVT_ACCESS_REMOTE_ATOMIC);
	if (!at.granted())
		return Fault::access;

	const Piece word = at.state().piece(atomic_size);

	// The address in its region is aligned; the memory below may not be.
	if (word.size < atomic_size || reinterpret_cast<uint64_t>(word.data) % atomic_size)
		return Fault::invalid;
	const uint64_t old = operate(*reinterpret_cast<uint64_t *>(word.data), m.wqe);

	rvt_copy_sge(&m.req, &m.req.s_sge, &old, atomic_size, true, false);
	return Fault::none;
}

Fault perform(const Message &m) RVT_REQUIRES(m.resp.r_lock)
{
	switch (m.info.kind) {
	case WrKind::send:
		return do_send(m);
	case WrKind::write:
		return do_write(m);
	case WrKind::read:
		return do_read(m);
	case WrKind::atomic:
		return do_atomic(m);
	default:
		return Fault::invalid;
	}
}

// Would the message get as far as this queue pair's transport on a wire?
bool reaches(const Message &m, const Path &path) RVT_REQUIRES(m.resp.r_lock)
{
	if (!state_info(m.resp.state()).process_recv || m.resp.type != m.req.type ||
	    m.resp.r_peer_qpn != m.req.qpn || fabric.route(m.resp.r_peer_ah) != &m.req.dev) {
		m.req.count(RVT_CNT_DROP_NO_QP);
		return false;
	}
	if (!pkeys_match(m.req.dev.pkey(path.pkey_index), m.resp.dev.pkey(m.resp.r_pkey_index))) {
		m.resp.dev.count(RVT_CNT_DROP_PKEY);
		return false;
	}
	// UC takes over the PSN with which a message begins (InfiniBand 9.8.2.1).
	if (m.req.type == QpType::rc && m.resp.r_psn.load(std::memory_order_relaxed) != m.wqe.psn) {
		m.req.count(RVT_CNT_DROP_PSN);
		return false;
	}
	return true;
}

// Both ends have loaded an alternate path and met: now both can use it
// (InfiniBand 17.2.8.1).
void arm_migration(const Message &m)
{
	auto loaded = [](const Qp &qp) {
		return qp.mig.load(std::memory_order_relaxed) != MigState::migrated;
	};
	auto arm = [](Qp &qp) {
		MigState rearm = MigState::rearm;

		qp.mig.compare_exchange_strong(rearm, MigState::armed);
	};

	if (loaded(m.req) && loaded(m.resp)) {
		arm(m.req);
		arm(m.resp);
	}
}

void fail_responder(Qp &resp, const FaultInfo &fault, rvt_trace_cause cause, Outbox &out)
	RVT_REQUIRES(resp.r_lock)
{
	int last_wqe;
	{
		SpinGuard s(resp.s_lock);

		last_wqe = rvt_error_qp(&resp, fault.receive, cause, out);
	}
	finish_error(resp, last_wqe, out);
	if (fault.raises)
		out.event(resp, fault.event);
}

void complete_receive(const Message &m) RVT_REQUIRES(m.resp.r_lock)
{
	rvt_wc wc{};

	if (!m.resp.r_wrid_valid)
		return;
	m.resp.r_wrid_valid = false;
	wc.wr_id = m.resp.r_wr_id;
	wc.status = RVT_WC_SUCCESS;
	wc.opcode = m.info.kind == WrKind::write ? RVT_WC_RECV_RDMA_WITH_IMM : RVT_WC_RECV;
	wc.byte_len = m.wqe.length;
	if (m.info.imm || m.info.inv) {
		wc.imm_data = m.wqe.imm;
		wc.wc_flags = m.info.imm ? RVT_WC_WITH_IMM : RVT_WC_WITH_INV;
	}
	wc.qp_num = m.resp.qpn.value();
	wc.src_qp = m.resp.r_peer_qpn.value();
	wc.slid = m.req.dev.lid.value();
	wc.sl = m.resp.r_peer_ah.sl;
	wc.port_num = 1;
	if (!complete_recv(m.resp, wc, m.wqe.flags & RVT_SEND_SOLICITED, m.out))
		fail_responder(m.resp, faults[static_cast<size_t>(Fault::receive)],
			       RVT_TRACE_CAUSE_OVERRUN, m.out);
}

Verdict deliver(const Message &m, const Path &path)
{
	MutexGuard r(m.resp.r_lock);

	// Only now: who has bound a fast region waits for no lock any more.
	if (!bind_send(m.req, m.wqe, m.info))
		return Verdict::done(RVT_WC_LOC_PROT_ERR);
	if (!reaches(m, path))
		return lost(m.req);
	if (m.resp.state() == QpState::rtr && !m.resp.r_comm_est)
		rvt_comm_est(&m.resp, m.out);

	const Fault fault = perform(m);

	if (fault == Fault::rnr) {
		if (m.req.type == QpType::rc)
			return Verdict::rnr(m.resp.r_min_rnr_timer);
		m.req.count(RVT_CNT_DROP_NO_RWQE);
	}
	m.resp.r_psn.store((Psn(m.wqe.lpsn) + 1).value(), std::memory_order_relaxed);
	m.resp.r_msn++;
	if (fault == Fault::rnr)
		return Verdict::done(RVT_WC_SUCCESS);
	if (fault != Fault::none) {
		const FaultInfo &info = faults[static_cast<size_t>(fault)];

		fail_responder(m.resp, info, RVT_TRACE_CAUSE_RECV, m.out);
		return Verdict::done(m.req.type == QpType::rc ? info.requester : RVT_WC_SUCCESS);
	}
	complete_receive(m);
	arm_migration(m);
	const uint32_t packets = ((m.wqe.lpsn - m.wqe.psn) & Psn::mask) + 1;
	if (m.info.kind == WrKind::read)
		count_moved(m.req, m.resp, m.req, packets, m.wqe.length);
	else
		count_moved(m.req, m.req, m.resp, packets, m.wqe.length);
	return Verdict::done(RVT_WC_SUCCESS);
}

// Without a peer, an error of the requester's own still comes first.
Verdict nobody_there(Qp &req, rvt_swqe &wqe)
{
	if (!bind_send(req, wqe, wr_info(wqe.opcode)))
		return Verdict::done(RVT_WC_LOC_PROT_ERR);
	req.count(RVT_CNT_DROP_NO_QP);
	return lost(req);
}

} // namespace

Verdict carry_connected(Qp &req, rvt_swqe &wqe, const Path &path, Outbox &out)
{
	const WrInfo &info = wr_info(wqe.opcode);

	if (info.is_local())
		return do_local(req, wqe);

	Qp *resp = path.dev ? path.dev->qps.find(path.dest) : nullptr;
	const Verdict verdict = resp ? deliver({req, *resp, wqe, info, out}, path)
				     : nobody_there(req, wqe);

	req.s_sge.release();
	out.completions();
	return verdict;
}

} // namespace rvt
