// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// Which changes of state exist, and which attributes each needs and allows
// (InfiniBand 11.2.5.2, table 91 and the verbs built on it), as data.
#ifndef RVT_QP_STATE_MACHINE_H
#define RVT_QP_STATE_MACHINE_H

#include <array>

#include "base/types.h"

namespace rvt
{

struct Transition {
	bool valid = false;
	// By QpType.
	std::array<uint32_t, 5> required{};
	std::array<uint32_t, 5> optional{};
};

namespace detail
{

constexpr uint32_t pkey_port = RVT_QP_PKEY_INDEX | RVT_QP_PORT;
constexpr uint32_t path = RVT_QP_ALT_PATH | RVT_QP_ACCESS_FLAGS;
constexpr uint32_t to_rts = RVT_QP_CUR_STATE | path | RVT_QP_PATH_MIG_STATE;
constexpr uint32_t qkey_cur = RVT_QP_CUR_STATE | RVT_QP_QKEY;

// One row: the masks of RC, UC, UD, and of the management QPs.
constexpr std::array<uint32_t, 5> row(uint32_t for_rc, uint32_t for_uc, uint32_t for_ud,
				      uint32_t for_management)
{
	std::array<uint32_t, 5> r{};

	r[RVT_QPT_RC] = for_rc;
	r[RVT_QPT_UC] = for_uc;
	r[RVT_QPT_UD] = for_ud;
	r[RVT_QPT_SMI] = r[RVT_QPT_GSI] = for_management;
	return r;
}

using TransitionTable = std::array<std::array<Transition, 7>, 7>;

constexpr TransitionTable make_transitions()
{
	constexpr uint32_t connected = pkey_port | RVT_QP_ACCESS_FLAGS;
	constexpr uint32_t connect = RVT_QP_AV | RVT_QP_PATH_MTU | RVT_QP_DEST_QPN | RVT_QP_RQ_PSN;
	constexpr uint32_t rtr = path | RVT_QP_PKEY_INDEX;
	constexpr uint32_t pkey_qkey = RVT_QP_PKEY_INDEX | RVT_QP_QKEY;
	constexpr uint32_t uc_sqd = RVT_QP_AV | path | RVT_QP_PKEY_INDEX | RVT_QP_PATH_MIG_STATE;
	constexpr uint32_t rc_timers = RVT_QP_TIMEOUT | RVT_QP_RETRY_CNT | RVT_QP_RNR_RETRY |
				       RVT_QP_MAX_QP_RD_ATOMIC;
	TransitionTable t{};

	for (unsigned int from = 0; from < t.size(); from++) {
		t[from][RVT_QPS_RESET].valid = true;
		t[from][RVT_QPS_ERR].valid = from != RVT_QPS_RESET;
	}
	t[RVT_QPS_RESET][RVT_QPS_INIT] = {
		true, row(connected, connected, pkey_port | RVT_QP_QKEY, pkey_qkey),
		row(0, 0, 0, 0)};
	t[RVT_QPS_INIT][RVT_QPS_INIT] = {
		true, row(0, 0, 0, 0),
		row(connected, connected, pkey_port | RVT_QP_QKEY, pkey_qkey)};
	t[RVT_QPS_INIT][RVT_QPS_RTR] = {
		true,
		row(connect | RVT_QP_MAX_DEST_RD_ATOMIC | RVT_QP_MIN_RNR_TIMER, connect, 0, 0),
		row(rtr, rtr, pkey_qkey, pkey_qkey)};
	t[RVT_QPS_RTR][RVT_QPS_RTS] = {
		true, row(rc_timers | RVT_QP_SQ_PSN, RVT_QP_SQ_PSN, RVT_QP_SQ_PSN, RVT_QP_SQ_PSN),
		row(to_rts | RVT_QP_MIN_RNR_TIMER, to_rts, qkey_cur, qkey_cur)};
	t[RVT_QPS_RTS][RVT_QPS_RTS] = {
		true, row(0, 0, 0, 0),
		row(to_rts | RVT_QP_MIN_RNR_TIMER, to_rts, qkey_cur, qkey_cur)};
	t[RVT_QPS_RTS][RVT_QPS_SQD] = {true, row(0, 0, 0, 0),
				       row(RVT_QP_EN_SQD_ASYNC_NOTIFY, RVT_QP_EN_SQD_ASYNC_NOTIFY,
					   RVT_QP_EN_SQD_ASYNC_NOTIFY, RVT_QP_EN_SQD_ASYNC_NOTIFY)};
	t[RVT_QPS_SQD][RVT_QPS_RTS] = t[RVT_QPS_RTS][RVT_QPS_RTS];
	t[RVT_QPS_SQD][RVT_QPS_SQD] = {true, row(0, 0, 0, 0),
				       row(uc_sqd | RVT_QP_PORT | rc_timers |
						   RVT_QP_MAX_DEST_RD_ATOMIC | RVT_QP_MIN_RNR_TIMER,
					   uc_sqd, pkey_qkey, pkey_qkey)};
	t[RVT_QPS_SQE][RVT_QPS_RTS] = {
		true, row(0, 0, 0, 0),
		row(0, RVT_QP_CUR_STATE | RVT_QP_ACCESS_FLAGS, qkey_cur, qkey_cur)};
	return t;
}

} // namespace detail

inline constexpr auto transitions = detail::make_transitions();

static_assert(!transitions[RVT_QPS_RTR][RVT_QPS_RTR].valid);
static_assert(!transitions[RVT_QPS_RESET][RVT_QPS_ERR].valid);

// Whether the change exists, all required attributes are there, and no
// others than the optional ones.
constexpr bool transition_ok(QpState from, QpState to, QpType type, uint32_t mask)
{
	const Transition &t =
		transitions[static_cast<unsigned int>(from)][static_cast<unsigned int>(to)];
	const uint32_t required = t.required[static_cast<unsigned int>(type)];
	const uint32_t optional = t.optional[static_cast<unsigned int>(type)];

	// A claimed current state can only be one a consumer might be unsure of.
	if (mask & RVT_QP_CUR_STATE && from != QpState::rtr && from != QpState::rts &&
	    from != QpState::sqd && from != QpState::sqe)
		return false;
	return t.valid && (mask & required) == required &&
	       (mask & ~(required | optional | RVT_QP_STATE)) == 0;
}

static_assert(transition_ok(QpState::reset, QpState::init, QpType::rc,
			    RVT_QP_STATE | RVT_QP_PKEY_INDEX | RVT_QP_PORT | RVT_QP_ACCESS_FLAGS));
static_assert(!transition_ok(QpState::reset, QpState::init, QpType::ud,
			     RVT_QP_STATE | RVT_QP_PKEY_INDEX | RVT_QP_PORT));

} // namespace rvt

#endif
