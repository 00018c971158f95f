// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The send engine: it takes requests off a send ring one after the other,
// has a transport carry each out, and completes it. What a transport is, is
// one function; loopback is the only one so far.
#ifndef RVT_TRANSPORT_ENGINE_H
#define RVT_TRANSPORT_ENGINE_H

#include "device.h"
#include "pd.h"
#include "qp/qp.h"

namespace rvt
{

// How a queue pair sends, read under s_lock; the first two are a connected one's.
struct Path {
	Qpn dest;
	Device *dev; // null: nobody has that address
	uint16_t pkey_index;
	uint32_t qkey;
};

// What became of a request.
struct Verdict {
	enum class Kind : uint8_t {
		done,	   // with status
		rnr,	   // the responder has no receive: wait for rnr_timer, try again
		no_answer, // try again after the timeout
	};
	Kind kind;
	rvt_wc_status status = RVT_WC_SUCCESS;
	uint8_t rnr_timer = 0;

	static constexpr Verdict done(rvt_wc_status s) { return {Kind::done, s, 0}; }
	static constexpr Verdict rnr(uint8_t code) { return {Kind::rnr, RVT_WC_SUCCESS, code}; }
	static constexpr Verdict no_answer() { return {Kind::no_answer, RVT_WC_SUCCESS, 0}; }
};

// Carry one request out. In a read section, the engine busy, no lock held.
using Transport = Verdict (*)(Qp &qp, rvt_swqe &wqe, const Path &path, Outbox &out);

Verdict carry_connected(Qp &qp, rvt_swqe &wqe, const Path &path, Outbox &out);
Verdict carry_datagram(Qp &qp, rvt_swqe &wqe, const Path &path, Outbox &out);

// Process the send ring until it is empty, has to wait, or the budget is
// spent; the rest then goes to the work queue. No lock held, may sleep.
// @section: from rvt_os_read_lock(), ends here.
void run_engine(Qp &qp, int section);

// Find the regions of a request's pieces, or its inline bytes. False: a key
// does not grant it. In a read section, the engine busy.
[[nodiscard]] bool bind_pieces(Qp &qp, rvt_swqe &wqe, const WrInfo &info);
// The same, quickly if the post has found the bytes already.
[[nodiscard]] inline bool bind_send(Qp &qp, rvt_swqe &wqe, const WrInfo &info)
{
	if (!wqe.row || wqe.row_era != qp.pd.dev.keys.era())
		return bind_pieces(qp, wqe, info);
	qp.s_sge.sge[0] = {nullptr, reinterpret_cast<uint64_t>(wqe.row), wqe.length, 0};
	qp.s_sge.set(1);
	return true;
}
// Count a message that went from @from to @to, on two devices.
void count_between(Qp &from, Qp &to, uint32_t packets, uint32_t bytes);
// Count a message that went from @from to @to because of @req, one of the two.
inline void count_moved(Qp &req, Qp &from, Qp &to, uint32_t packets, uint32_t bytes)
{
	if (&from.dev != &to.dev) [[unlikely]] {
		count_between(from, to, packets, bytes);
		return;
	}
	req.count(RVT_CNT_LOOP_PKTS, packets);
	req.count(RVT_CNT_LOOP_BYTES, bytes);
}
// LOCAL_INV and REG_MR: no peer is asked.
Verdict do_local(Qp &qp, const rvt_swqe &wqe);
// SQ_DRAINED, if it is owed and the send queue is drained.
void note_drained(Qp &qp, Outbox &out) RVT_REQUIRES(qp.s_lock);
void send_timer_expired(rvt_os_timer *timer);
void send_work(rvt_os_work *work);

} // namespace rvt

extern "C" {

// Run the engine here and now: RC and UC by rvt_ruc_loopback(), others by
// rvt_ud_loopback(). Context: process, no lock held.
void rvt_do_send(rvt::Qp *qp);

/**
 * rvt_ruc_loopback - carry out the queued requests of an RC or UC queue pair
 * @qp: the requester
 *
 * The responder is another queue pair of this machine's fabric. Runs until
 * the ring is empty, the queue pair may not start more, an RNR or retry wait
 * begins, an error ends the run or the budget is spent (then the work queue
 * goes on). One thread at a time; others return at once.
 * Context: process. Locks: none held; takes the requester's s_lock and the
 * responder's r_lock in turns, never together.
 */
void rvt_ruc_loopback(rvt::Qp *qp);

// The same for UD, SMI and GSI.
void rvt_ud_loopback(rvt::Qp *qp);
}

#endif
