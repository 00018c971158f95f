// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The loopback of datagram queue pairs (UD, SMI, GSI), to one queue pair or
// to the members of a multicast group. A sender learns nothing of what
// becomes of its message (InfiniBand 9.8.3).
#include <array>

#include "cq/cq.h"
#include "device.h"
#include "outbox.h"
#include "transport/engine.h"
#include "wq/recv.h"

namespace rvt
{

namespace
{

// The space before the payload of every received datagram.
constexpr uint32_t grh_size = 40;

// A datagram on its way.
struct Datagram {
	Qp &req;
	const rvt_swqe &wqe;
	const rvt_ah_attr &ah;
	const Path &path;
	Outbox &out;

	bool has_imm() const { return wr_info(wqe.opcode).imm; }
	bool managed() const { return is_management(req.type); }
	uint16_t pkey_index() const { return managed() ? wqe.ud.pkey_index : path.pkey_index; }
	// A Q_Key with the high bit stands for the sender's own (10.2.5).
	uint32_t qkey() const
	{
		return wqe.ud.remote_qkey & 0x80000000 ? path.qkey : wqe.ud.remote_qkey;
	}
};

void put_be16(uint8_t *to, uint32_t value)
{
	to[0] = static_cast<uint8_t>(value >> 8);
	to[1] = static_cast<uint8_t>(value);
}

// The global route header as a wire would have carried it (InfiniBand 8.3).
std::array<uint8_t, grh_size> make_grh(const Datagram &d)
{
	constexpr uint32_t bth = 12, deth = 8, immediate = 4, icrc = 4;
	const uint32_t payload = (d.wqe.length + 3) & ~3u;
	const uint32_t first = 6u << 28 | static_cast<uint32_t>(d.ah.traffic_class) << 20 |
			       (d.ah.flow_label & 0xfffff);
	std::array<uint8_t, grh_size> grh{};

	put_be16(&grh[0], first >> 16);
	put_be16(&grh[2], first);
	put_be16(&grh[4], bth + deth + (d.has_imm() ? immediate : 0) + payload + icrc);
	grh[6] = 0x1b;
	grh[7] = d.ah.hop_limit;
	d.req.dev.gid(d.ah.sgid_index).to_bytes(&grh[8]);
	__builtin_memcpy(&grh[24], d.ah.dgid, sizeof(d.ah.dgid));
	return grh;
}

// SMI talks to SMI only; GSI counts as UD.
bool types_match(QpType a, QpType b)
{
	return (a == QpType::smi) == (b == QpType::smi) && is_datagram(a) && is_datagram(b);
}

// Is the message for this queue pair? Counts why not.
bool accepts(const Datagram &d, Qp &to) RVT_REQUIRES(to.r_lock)
{
	if (!state_info(to.state()).process_recv || !types_match(d.req.type, to.type)) {
		d.req.count(RVT_CNT_DROP_NO_QP);
		return false;
	}
	if (!to.qpn.is_special() &&
	    !pkeys_match(d.req.dev.pkey(d.pkey_index()), to.dev.pkey(to.r_pkey_index))) {
		to.dev.count(RVT_CNT_DROP_PKEY);
		return false;
	}
	if (to.qpn.value() != 0 && d.qkey() != to.r_qkey) {
		to.dev.count(RVT_CNT_DROP_QKEY);
		return false;
	}
	return true;
}

void stop_receiver(Qp &to, rvt_trace_cause cause, Outbox &out) RVT_REQUIRES(to.r_lock)
{
	int last_wqe;
	{
		SpinGuard s(to.s_lock);

		last_wqe = rvt_error_qp(&to, RVT_WC_LOC_QP_OP_ERR, cause, out);
	}
	finish_error(to, last_wqe, out);
}

rvt_wc describe(const Datagram &d, const Qp &to) RVT_REQUIRES(to.r_lock)
{
	rvt_wc wc{};

	wc.wr_id = to.r_wr_id;
	wc.status = RVT_WC_SUCCESS;
	wc.opcode = RVT_WC_RECV;
	wc.byte_len = d.wqe.length + grh_size;
	if (d.has_imm()) {
		wc.imm_data = d.wqe.imm;
		wc.wc_flags |= RVT_WC_WITH_IMM;
	}
	if (d.ah.has_grh)
		wc.wc_flags |= RVT_WC_GRH;
	wc.qp_num = to.qpn.value();
	wc.src_qp = d.req.qpn.value();
	if (is_management(to.type))
		wc.pkey_index = d.pkey_index();
	wc.slid = d.req.dev.lid.value();
	wc.sl = d.ah.sl;
	wc.port_num = 1;
	return wc;
}

void copy_payload(const Datagram &d, Qp &to) RVT_REQUIRES(to.r_lock)
{
	// Each receiver reads the source from its beginning.
	SgeState from = d.req.s_sge;

	if (d.ah.has_grh) {
		const auto grh = make_grh(d);

		rvt_copy_sge(&to, &to.r_sge, grh.data(), grh_size, true, false);
	} else {
		for (uint32_t skip = grh_size; skip;) {
			const auto size = static_cast<uint32_t>(to.r_sge.extent(skip).size);

			to.r_sge.advance(size, true);
			skip -= size;
		}
	}
	for (uint32_t left = d.wqe.length; left;) {
		const Piece piece = from.piece(left);

		rvt_copy_sge(&to, &to.r_sge, piece.data, static_cast<uint32_t>(piece.size), true,
			     false);
		from.advance(piece.size, false);
		left -= static_cast<uint32_t>(piece.size);
	}
	to.r_sge.release();
}

void deliver_to(const Datagram &d, Qp &to)
{
	MutexGuard r(to.r_lock);

	if (!accepts(d, to))
		return;
	switch (rvt_get_rwqe(&to, 0, {d.wqe.length + grh_size, true}, d.out)) {
	case 1:
		break;
	case 0:
		d.req.count(RVT_CNT_DROP_NO_RWQE);
		return;
	case -2:
		d.req.count(RVT_CNT_DROP_LEN);
		return;
	default:
		stop_receiver(to, RVT_TRACE_CAUSE_RECV, d.out);
		return;
	}
	copy_payload(d, to);
	to.r_wrid_valid = false;
	if (!complete_recv(to, describe(d, to), d.wqe.flags & RVT_SEND_SOLICITED, d.out)) {
		stop_receiver(to, RVT_TRACE_CAUSE_OVERRUN, d.out);
		return;
	}
	count_moved(d.req, d.req, to, 1, d.wqe.length);
}

// Every member on every device gets a copy, but not the sender itself.
void deliver_multicast(const Datagram &d)
{
	const Gid group = Gid::from_bytes(d.ah.dgid);

	if (!d.ah.has_grh)
		return;
	for (unsigned int i = 0; i < RVT_MAX_DEVICES; i++) {
		Device *dev = fabric.at(i);

		if (!dev)
			continue;
		dev->mcast.for_members(group, Lid(d.ah.dlid), [&d](Qp &member) {
			if (&member == &d.req)
				return;
			deliver_to(d, member);
			d.out.completions();
			rvt_os_resched();
		});
	}
}

void deliver_unicast(const Datagram &d)
{
	Device *dev = fabric.route(d.ah);
	Qp *to = dev ? dev->qps.find(Qpn(d.wqe.ud.remote_qpn)) : nullptr;

	if (to)
		deliver_to(d, *to);
	else
		d.req.count(RVT_CNT_DROP_NO_QP);
}

} // namespace

Verdict carry_datagram(Qp &req, rvt_swqe &wqe, const Path &path, Outbox &out)
{
	const Datagram d = {req, wqe, *wqe.ud.ah, path, out};

	if (!bind_send(req, wqe, wr_info(wqe.opcode)))
		return Verdict::done(RVT_WC_LOC_PROT_ERR);
	if (Lid(d.ah.dlid).is_multicast())
		deliver_multicast(d);
	else
		deliver_unicast(d);
	req.s_sge.release();
	out.completions();
	return Verdict::done(RVT_WC_SUCCESS);
}

} // namespace rvt
