// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// The work request opcodes as a table: who may post them, what they need,
// how they complete (InfiniBand 10.8.2, table 96; verbs).
#ifndef RVT_WQ_OPCODES_H
#define RVT_WQ_OPCODES_H

#include <array>

#include "base/types.h"

namespace rvt
{

constexpr uint64_t atomic_size = 8;

// How a request is carried out.
enum class WrKind : uint8_t { none, send, write, read, atomic, local_inv, reg_mr };

struct WrInfo {
	WrKind kind = WrKind::none;
	uint8_t types = 0; // bit per QpType
	rvt_wc_opcode wc = RVT_WC_SEND;
	bool imm = false; // carries immediate data
	bool inv = false; // invalidates a key at the responder
	bool kernel_only = false;
	bool writes_local = false; // its pieces are written, not read
	bool may_be_inline = false;

	constexpr bool allows(QpType t) const { return types & 1u << static_cast<unsigned int>(t); }
	constexpr bool is_local() const
	{
		return kind == WrKind::local_inv || kind == WrKind::reg_mr;
	}
	constexpr bool needs_rd_atomic() const
	{
		return kind == WrKind::read || kind == WrKind::atomic;
	}
};

namespace detail
{
constexpr uint8_t bit(QpType t)
{
	return static_cast<uint8_t>(1u << static_cast<unsigned int>(t));
}
constexpr uint8_t rc = bit(QpType::rc);
constexpr uint8_t rc_uc = rc | bit(QpType::uc);
constexpr uint8_t all = rc_uc | bit(QpType::ud) | bit(QpType::smi) | bit(QpType::gsi);

constexpr std::array<WrInfo, RVT_WR_REG_MR + 1> make_wr_table()
{
	std::array<WrInfo, RVT_WR_REG_MR + 1> t{};

	t[RVT_WR_RDMA_WRITE] = {.kind = WrKind::write,
				.types = rc_uc,
				.wc = RVT_WC_RDMA_WRITE,
				.may_be_inline = true};
	t[RVT_WR_RDMA_WRITE_WITH_IMM] = {.kind = WrKind::write,
					 .types = rc_uc,
					 .wc = RVT_WC_RDMA_WRITE,
					 .imm = true,
					 .may_be_inline = true};
	t[RVT_WR_SEND] = {
		.kind = WrKind::send, .types = all, .wc = RVT_WC_SEND, .may_be_inline = true};
	t[RVT_WR_SEND_WITH_IMM] = {.kind = WrKind::send,
				   .types = all,
				   .wc = RVT_WC_SEND,
				   .imm = true,
				   .may_be_inline = true};
	t[RVT_WR_SEND_WITH_INV] = {.kind = WrKind::send,
				   .types = rc,
				   .wc = RVT_WC_SEND,
				   .inv = true,
				   .may_be_inline = true};
	t[RVT_WR_RDMA_READ] = {
		.kind = WrKind::read, .types = rc, .wc = RVT_WC_RDMA_READ, .writes_local = true};
	t[RVT_WR_ATOMIC_CMP_AND_SWP] = {
		.kind = WrKind::atomic, .types = rc, .wc = RVT_WC_COMP_SWAP, .writes_local = true};
	t[RVT_WR_ATOMIC_FETCH_AND_ADD] = {
		.kind = WrKind::atomic, .types = rc, .wc = RVT_WC_FETCH_ADD, .writes_local = true};
	t[RVT_WR_LOCAL_INV] = {.kind = WrKind::local_inv,
			       .types = rc_uc,
			       .wc = RVT_WC_LOCAL_INV,
			       .kernel_only = true};
	t[RVT_WR_REG_MR] = {
		.kind = WrKind::reg_mr, .types = rc_uc, .wc = RVT_WC_REG_MR, .kernel_only = true};
	return t;
}
} // namespace detail

inline constexpr auto wr_table = detail::make_wr_table();

// Any number may be asked; kind none means: no such request.
constexpr const WrInfo &wr_info(uint32_t opcode)
{
	constexpr uint32_t gap = 8; // a number that no request has
	static_assert(wr_table[gap].kind == WrKind::none);

	return wr_table[opcode < wr_table.size() ? opcode : gap];
}

static_assert(wr_info(RVT_WR_SEND).allows(QpType::ud));
static_assert(!wr_info(RVT_WR_RDMA_READ).allows(QpType::uc));
static_assert(!wr_info(RVT_WR_SEND_WITH_INV).writes_local, "its source may be read-only");
static_assert(wr_info(~0u).kind == WrKind::none);

} // namespace rvt

#endif
