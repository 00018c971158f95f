// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The producer side of the send ring: check a request, commit it, start the
// engine. A request is written once, in its slot.
#include "device.h"
#include "mr/bind.h"
#include "pd.h"
#include "qp/qp.h"
#include "transport/engine.h"

using namespace rvt;

namespace
{

// Packets a message takes (InfiniBand 9.7.2): none is empty, but for one.
constexpr uint32_t packets(uint32_t length, uint8_t mtu_shift)
{
	return length ? ((length - 1) >> mtu_shift) + 1 : 1;
}

static_assert(packets(0, 8) == 1 && packets(256, 8) == 1 && packets(257, 8) == 2);

bool valid_operation(const Qp &qp, const WrInfo &info, const rvt_sge *sge, uint32_t num_sge)
	RVT_REQUIRES(qp.s_hlock)
{
	if (info.kind == WrKind::none || !info.allows(qp.type))
		return false;
	if (info.kernel_only && qp.pd.user)
		return false;
	if (info.needs_rd_atomic() && !qp.s_max_rd_atomic)
		return false;
	return info.kind != WrKind::atomic ||
	       (num_sge && sge[0].length >= atomic_size && sge[0].addr % atomic_size == 0);
}

bool is_avail(Qp &qp) RVT_REQUIRES(qp.s_hlock)
{
	if (qp.s_avail) [[likely]]
		return true;
	const uint32_t head = qp.s_head.load(std::memory_order_relaxed);
	const uint32_t last = qp.s_last.load(std::memory_order_acquire);

	qp.s_avail = qp.sq.size - 1 - ring_count(head, last, qp.sq.size);
	return qp.s_avail != 0;
}

uint64_t total_length(const rvt_sge *sge, uint32_t num_sge)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < num_sge; i++)
		sum += sge[i].length;
	return sum;
}

// Put the pieces into the slot. Of a user's, each that has bytes must be granted
// by its key; what was found is kept if one is all. In a read section, for a
// user. False: a key does not grant it.
bool take_pieces(const Qp &qp, const WrInfo &info, rvt_swqe &wqe, const rvt_sge *sge,
		 uint32_t num_sge)
{
	const uint32_t access = info.writes_local ? RVT_ACCESS_LOCAL_WRITE : 0;
	const uint64_t era = qp.pd.dev.keys.era();
	rvt_sge *slot = qp.swqe_sge(wqe);
	const Mr *mr = nullptr;

	for (uint32_t i = 0; i < num_sge; i++) {
		slot[i] = sge[i];
		if (!qp.user || !slot[i].length)
			continue;
		mr = granting(qp.pd, slot[i], access);
		if (!mr)
			return false;
	}
	const bool one_row = mr && mr->kind == RVT_MR_MEM && num_sge == 1;

	wqe.row = one_row ? mr->row(slot->addr, slot->length) : nullptr;
	wqe.row_era = era;
	wqe.num_sge = num_sge;
	return true;
}

// A datagram's address goes into the ring: the AH may be destroyed at once.
bool take_address(Qp &qp, rvt_swqe &wqe, uint32_t slot)
{
	const rvt_ah_attr *ah = wqe.ud.ah;

	if (!ah || wqe.ud.ah_pd != &qp.pd || wqe.ud.remote_qpn >= Qpn::limit)
		return false;
	// Others send with the P_Key of their queue pair.
	if (is_management(qp.type) && wqe.ud.pkey_index >= RVT_MAX_PKEYS)
		return false;
	qp.ud_ah[slot] = *ah;
	wqe.ud.ah = &qp.ud_ah[slot];
	if (Lid(ah->dlid).is_multicast())
		wqe.ud.remote_qpn = Qpn::multicast;
	return true;
}

// Sequence numbers: by packets of the path MTU; local requests have none.
void number(Qp &qp, rvt_swqe &wqe, const WrInfo &info) RVT_REQUIRES(qp.s_hlock)
{
	if (info.is_local()) {
		wqe.ssn = wqe.psn = wqe.lpsn = 0;
		return;
	}
	const Psn first(qp.s_next_psn.load(std::memory_order_relaxed));
	const uint32_t n = is_datagram(qp.type) ? 1 : packets(wqe.length, qp.s_mtu_shift);

	wqe.ssn = qp.s_ssn++;
	wqe.psn = first.value();
	wqe.lpsn = (first + (n - 1)).value();
	qp.s_next_psn.store((first + n).value(), std::memory_order_relaxed);
}

// Make the request in the slot visible to the engine.
[[gnu::always_inline]] inline void commit(Qp &qp, uint32_t head) RVT_REQUIRES(qp.s_hlock)
{
	qp.s_avail--;
	if (rvt_traced(RVT_TRACE_POST_SEND))
		rvt_trace_post_send(qp.dev.lid.value(), qp.qpn.value(), &qp.swqe(head));
	// Everything before is seen by whoever sees the new head.
	qp.s_head.store(ring_next(head, qp.sq.size), std::memory_order_release);
}

// In ERR a kernel consumer may post what its type cannot do: it is only
// flushed. ib_drain_sq() does that with a datagram queue pair.
Errno post_marker(Qp &qp, rvt_swqe &wqe, uint32_t head) RVT_REQUIRES(qp.s_hlock)
{
	if (!is_avail(qp))
		return Errno::nomem;
	wqe.length = wqe.num_sge = 0;
	wqe.row = nullptr;
	wqe.psn = wqe.lpsn = wqe.ssn = 0;
	commit(qp, head);
	return Errno::ok;
}

Errno post_one(Qp &qp, const rvt_sge *sge, uint32_t num_sge, const void *inline_data)
	RVT_REQUIRES(qp.s_hlock)
{
	const uint32_t head = qp.s_head.load(std::memory_order_relaxed);
	rvt_swqe &wqe = qp.swqe(head);
	const WrInfo &info = wr_info(wqe.opcode);

	if (num_sge > qp.sq.max_sge && !(inline_data && num_sge <= RVT_MAX_SGE))
		return Errno::inval;
	if (!qp.user && qp.state() == QpState::err && info.kind != WrKind::none &&
	    !info.allows(qp.type))
		return post_marker(qp, wqe, head);
	if (!valid_operation(qp, info, sge, num_sge))
		return Errno::inval;
	if (!is_avail(qp))
		return Errno::nomem;

	const uint64_t length = info.kind == WrKind::atomic ? atomic_size
							    : total_length(sge, num_sge);
	const bool datagram = is_datagram(qp.type);
	const uint64_t most = datagram ? 4096 : RVT_MAX_MSG_SIZE;
	if (length > most)
		return Errno::inval;
	wqe.length = static_cast<uint32_t>(length);
	if (wqe.flags & RVT_SEND_INLINE) {
		if (!info.may_be_inline || length > qp.max_inline || (length && !inline_data))
			return Errno::inval;
		if (inline_data != rvt_swqe_inline(&wqe))
			__builtin_memcpy(rvt_swqe_inline(&wqe), inline_data, length);
		wqe.num_sge = 0;
		wqe.row = nullptr;
	} else if (!take_pieces(qp, info, wqe, sge, num_sge)) {
		return Errno::inval;
	}
	if (datagram && !take_address(qp, wqe, head))
		return Errno::inval;
	number(qp, wqe, info);
	commit(qp, head);
	return Errno::ok;
}

} // namespace

extern "C" {

Errno rvt_qp_valid_operation(Qp *qp, const rvt_swqe *wqe, const rvt_sge *sge, uint32_t num_sge)
{
	return valid_operation(*qp, wr_info(wqe->opcode), sge, num_sge) ? Errno::ok : Errno::inval;
}

Errno rvt_qp_is_avail(Qp *qp)
{
	return is_avail(*qp) ? Errno::ok : Errno::nomem;
}

int rvt_post_one_wr(struct rvt_core_qp *qp, const struct rvt_sge *sge, uint32_t num_sge,
		    const void *inline_data) RVT_REQUIRES(qp->s_hlock)
{
	return to_int(post_one(*qp, sge, num_sge, inline_data));
}

// Begin and end are two calls of the shim: the analysis sees each alone.
int rvt_core_send_begin(struct rvt_core_qp *qp, struct rvt_send_scope *scope) RVT_NO_TSA
{
	if (qp->user)
		scope->section = rvt_os_read_lock();
	scope->flags = qp->s_hlock.lock();
	if (state_info(qp->state()).post_send)
		return 0;
	rvt_core_send_end(qp, scope, 0);
	return to_int(Errno::inval);
}

struct rvt_swqe *rvt_core_send_slot(struct rvt_core_qp *qp)
{
	return &qp->swqe(qp->s_head.load(std::memory_order_relaxed));
}

void rvt_core_send_end(struct rvt_core_qp *qp, const struct rvt_send_scope *scope,
		       unsigned int posted) RVT_NO_TSA
{
	qp->s_hlock.unlock(scope->flags);
	if (qp->user && posted)
		run_engine(*qp, scope->section);
	else if (qp->user)
		rvt_os_read_unlock(scope->section);
	else if (posted)
		schedule_send(*qp);
}
}
