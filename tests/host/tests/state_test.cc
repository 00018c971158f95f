// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The state machine against an oracle written down here once more, and
 * modify on live queue pairs: what is allowed, what each refusal says, and
 * that a refusal changes nothing.
 */
#include "util.h"

#include <map>
#include <set>
#include <sstream>

namespace
{

/* --- the oracle: one line per transition and type, as text --------------------- */

const char *const oracle_text[] = {
	/* from to type : required : optional */
	"RESET INIT RC,UC : PKEY_INDEX PORT ACCESS_FLAGS :",
	"RESET INIT UD : PKEY_INDEX PORT QKEY :",
	"RESET INIT SMI,GSI : PKEY_INDEX QKEY :",
	"INIT INIT RC,UC : : PKEY_INDEX PORT ACCESS_FLAGS",
	"INIT INIT UD : : PKEY_INDEX PORT QKEY",
	"INIT INIT SMI,GSI : : PKEY_INDEX QKEY",
	"INIT RTR RC : AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER"
	" : ALT_PATH ACCESS_FLAGS PKEY_INDEX",
	"INIT RTR UC : AV PATH_MTU DEST_QPN RQ_PSN : ALT_PATH ACCESS_FLAGS PKEY_INDEX",
	"INIT RTR UD,SMI,GSI : : PKEY_INDEX QKEY",
	"RTR RTS RC : TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC"
	" : CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE",
	"RTR RTS UC : SQ_PSN : CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE",
	"RTR RTS UD,SMI,GSI : SQ_PSN : CUR_STATE QKEY",
	"RTS RTS RC : : CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER",
	"RTS RTS UC : : CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE",
	"RTS RTS UD,SMI,GSI : : CUR_STATE QKEY",
	"RTS SQD RC,UC,UD,SMI,GSI : : EN_SQD_ASYNC_NOTIFY",
	"SQD RTS RC : : CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE",
	"SQD RTS UC : : CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE",
	"SQD RTS UD,SMI,GSI : : CUR_STATE QKEY",
	"SQD SQD RC : : PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC"
	" MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE",
	"SQD SQD UC : : AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE",
	"SQD SQD UD,SMI,GSI : : PKEY_INDEX QKEY",
	"SQE RTS RC : :",
	"SQE RTS UC : : CUR_STATE ACCESS_FLAGS",
	"SQE RTS UD,SMI,GSI : : CUR_STATE QKEY",
};

const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
const char *const types[] = {"SMI", "GSI", "RC", "UC", "UD"};
const char *const bits[] = {
	"STATE",
	"CUR_STATE",
	"EN_SQD_ASYNC_NOTIFY",
	"ACCESS_FLAGS",
	"PKEY_INDEX",
	"PORT",
	"QKEY",
	"AV",
	"PATH_MTU",
	"TIMEOUT",
	"RETRY_CNT",
	"RNR_RETRY",
	"RQ_PSN",
	"MAX_QP_RD_ATOMIC",
	"ALT_PATH",
	"MIN_RNR_TIMER",
	"SQ_PSN",
	"MAX_DEST_RD_ATOMIC",
	"PATH_MIG_STATE",
	"CAP",
	"DEST_QPN",
};

template <size_t n>
int index_of(const char *const (&names)[n], const std::string &name)
{
	for (size_t i = 0; i < n; i++)
		if (name == names[i])
			return static_cast<int>(i);
	ADD_FAILURE() << "the oracle has a spelling mistake: " << name;
	return 0;
}

struct Row {
	bool valid = false;
	uint32_t required = 0;
	uint32_t optional = 0;
};

using Oracle = std::map<std::tuple<int, int, int>, Row>;

const Oracle &oracle()
{
	static Oracle table;

	if (!table.empty())
		return table;
	for (int type = 0; type < 5; type++) {
		for (int from = 0; from < 7; from++) {
			table[{from, RVT_QPS_RESET, type}].valid = true;
			if (from != RVT_QPS_RESET)
				table[{from, RVT_QPS_ERR, type}].valid = true;
		}
	}
	for (const char *line : oracle_text) {
		std::istringstream in(line);
		std::string from, to, type_list, word;
		uint32_t masks[2] = {};
		int part = -1;

		in >> from >> to >> type_list;
		while (in >> word) {
			if (word == ":")
				part++;
			else
				masks[part] |= 1u << index_of(bits, word);
		}
		std::istringstream list(type_list);
		while (std::getline(list, word, ','))
			table[{index_of(states, from), index_of(states, to),
			       index_of(types, word)}] = {true, masks[0], masks[1]};
	}
	return table;
}

bool oracle_ok(int from, int to, int type, uint32_t mask)
{
	auto it = oracle().find({from, to, type});

	if (mask & RVT_QP_CUR_STATE && (from < RVT_QPS_RTR || from > RVT_QPS_SQE))
		return false;
	if (it == oracle().end() || !it->second.valid)
		return false;
	return (mask & it->second.required) == it->second.required &&
	       (mask & ~(it->second.required | it->second.optional | RVT_QP_STATE)) == 0;
}

TEST(StateMachine, EqualsTheOracleForEveryDeviation)
{
	size_t compared = 0;
	uint32_t rng = 1;

	for (int type = 0; type < 5; type++) {
		for (int from = 0; from < 7; from++) {
			for (int to = 0; to < 7; to++) {
				auto it = oracle().find({from, to, type});
				Row row = it == oracle().end() ? Row{} : it->second;
				std::vector<uint32_t> masks;

				for (uint32_t base :
				     {row.required, row.required | row.optional, 0u, ~0u}) {
					masks.push_back(base);
					for (int i = 0; i < 32; i++) {
						masks.push_back(base ^ 1u << i);
						for (int j = 0; j < i; j++)
							masks.push_back(base ^ 1u << i ^ 1u << j);
					}
				}
				for (int i = 0; i < 2000; i++) {
					rng = rng * 1664525 + 1013904223;
					masks.push_back(row.required | ((rng >> 3) & row.optional));
					masks.push_back(rng >> 3);
				}
				for (uint32_t mask : masks) {
					ASSERT_EQ(rvt_core_modify_is_ok(from, to, type, mask),
						  oracle_ok(from, to, type, mask))
						<< types[type] << " " << states[from] << " -> "
						<< states[to] << " mask " << std::hex << mask;
					compared++;
				}
			}
		}
	}
	RecordProperty("compared", static_cast<int>(compared));
}

TEST(StateMachine, Case052_NumbersOutOfRange)
{
	for (int bad : {-1, 7, 8, 100, 0x7fffffff, -0x7fffffff - 1}) {
		EXPECT_EQ(rvt_core_modify_is_ok(bad, RVT_QPS_RESET, RVT_QPT_RC, 1), 0);
		EXPECT_EQ(rvt_core_modify_is_ok(RVT_QPS_RTS, bad, RVT_QPT_RC, 1), 0);
	}
	for (int bad : {-1, 5, 8, 9, 10, 255, 0x7fffffff, -0x7fffffff - 1})
		EXPECT_EQ(rvt_core_modify_is_ok(RVT_QPS_RTS, RVT_QPS_RTS, bad, 1), 0);
}

/* --- live queue pairs ----------------------------------------------------------------- */

class Live : public testing::TestWithParam<rvt_qp_type>
{
protected:
	rvt_qp_type type = GetParam();
	/* SMI, GSI and what local errors need exist for the kernel only. */
	World w{false};
	Qp *peer = nullptr;

	Qp &make()
	{
		Qp &qp = w.add_qp(type);

		if (type == RVT_QPT_RC || type == RVT_QPT_UC) {
			if (!peer) {
				peer = &w.add_qp(type);
				peer->aim(qp);
				EXPECT_EQ(peer->to_init(), 0);
				EXPECT_EQ(peer->to_rtr(), 0);
				EXPECT_EQ(peer->to_rts(), 0);
			}
			qp.aim(*peer);
		}
		return qp;
	}
	/* From RESET to any state that modify leads to. */
	bool bring(Qp &qp, int state)
	{
		if (qp.state() != RVT_QPS_RESET)
			EXPECT_EQ(qp.to(RVT_QPS_RESET), 0);
		if (state == RVT_QPS_RESET)
			return true;
		EXPECT_EQ(qp.to_init(), 0);
		if (state == RVT_QPS_ERR) {
			EXPECT_EQ(qp.to(RVT_QPS_ERR), 0);
			return true;
		}
		if (state >= RVT_QPS_RTR) {
			EXPECT_EQ(qp.to_rtr(), 0);
		}
		if (state >= RVT_QPS_RTS) {
			EXPECT_EQ(qp.to_rts(), 0);
		}
		if (state == RVT_QPS_SQD) {
			EXPECT_EQ(qp.to(RVT_QPS_SQD), 0);
		}
		if (state == RVT_QPS_SQE) {
			if (type != RVT_QPT_UC)
				return false;
			/* A local error of a UC send: an invalidation of nothing. */
			EXPECT_EQ(qp.post(wr_local_inv(1, 0x1234)), 0);
			w.m.settle();
			qp.scq->poll_all();
		}
		EXPECT_EQ(qp.state(), state);
		return qp.state() == state;
	}
	/* All attributes with good values other than what bring() set. */
	void other_values(Qp &qp)
	{
		rvt_qp_attr &a = qp.attr;

		a.pkey_index = 1;
		a.access_flags = RVT_ACCESS_REMOTE_READ;
		a.qkey = 0x2222;
		a.path_mtu = 2;
		a.rq_psn = 0x777777;
		a.sq_psn = 0x888888;
		a.ah.sl = 3;
		a.alt_ah = a.ah;
		a.alt_ah.sl = 5;
		a.alt_port_num = 1;
		a.alt_pkey_index = 2;
		a.alt_timeout = 9;
		a.max_rd_atomic = 4;
		a.max_dest_rd_atomic = 5;
		a.min_rnr_timer = 7;
		a.timeout = 11;
		a.retry_cnt = 3;
		a.rnr_retry = 2;
		a.path_mig_state = RVT_MIG_REARM;
		a.en_sqd_async_notify = true;
	}
	void expect_values(const rvt_qp_attr &q, const rvt_qp_attr &a, uint32_t mask)
	{
		if (mask & RVT_QP_ACCESS_FLAGS)
			EXPECT_EQ(q.access_flags, a.access_flags);
		if (mask & RVT_QP_PKEY_INDEX)
			EXPECT_EQ(q.pkey_index, a.pkey_index);
		if (mask & RVT_QP_PORT)
			EXPECT_EQ(q.port_num, a.port_num);
		if (mask & RVT_QP_QKEY)
			EXPECT_EQ(q.qkey, a.qkey);
		if (mask & RVT_QP_AV) {
			EXPECT_EQ(q.ah.dlid, a.ah.dlid);
			EXPECT_EQ(q.ah.sl, a.ah.sl);
		}
		if (mask & RVT_QP_PATH_MTU)
			EXPECT_EQ(q.path_mtu, a.path_mtu);
		if (mask & RVT_QP_TIMEOUT)
			EXPECT_EQ(q.timeout, a.timeout);
		if (mask & RVT_QP_RETRY_CNT)
			EXPECT_EQ(q.retry_cnt, a.retry_cnt);
		if (mask & RVT_QP_RNR_RETRY)
			EXPECT_EQ(q.rnr_retry, a.rnr_retry);
		if (mask & RVT_QP_RQ_PSN)
			EXPECT_EQ(q.rq_psn, a.rq_psn);
		if (mask & RVT_QP_SQ_PSN)
			EXPECT_EQ(q.sq_psn, a.sq_psn);
		if (mask & RVT_QP_MAX_QP_RD_ATOMIC)
			EXPECT_EQ(q.max_rd_atomic, a.max_rd_atomic);
		if (mask & RVT_QP_MAX_DEST_RD_ATOMIC)
			EXPECT_EQ(q.max_dest_rd_atomic, a.max_dest_rd_atomic);
		if (mask & RVT_QP_ALT_PATH) {
			EXPECT_EQ(q.alt_ah.sl, a.alt_ah.sl);
			EXPECT_EQ(q.alt_pkey_index, a.alt_pkey_index);
			EXPECT_EQ(q.alt_timeout, a.alt_timeout);
			EXPECT_EQ(q.alt_port_num, a.alt_ah.port_num);
		}
		if (mask & RVT_QP_MIN_RNR_TIMER)
			EXPECT_EQ(q.min_rnr_timer, a.min_rnr_timer);
		if (mask & RVT_QP_PATH_MIG_STATE)
			EXPECT_EQ(q.path_mig_state, a.path_mig_state);
		if (mask & RVT_QP_DEST_QPN)
			EXPECT_EQ(q.dest_qpn, a.dest_qpn);
		if (mask & RVT_QP_EN_SQD_ASYNC_NOTIFY)
			EXPECT_EQ(q.en_sqd_async_notify, a.en_sqd_async_notify);
	}
};
INSTANTIATE_TEST_SUITE_P(Types, Live,
			 testing::Values(RVT_QPT_SMI, RVT_QPT_GSI, RVT_QPT_RC, RVT_QPT_UC,
					 RVT_QPT_UD),
			 [](const auto &info) { return std::string(types[info.param]); });

/* Every legal transition with required and with all attributes; values arrive. */
TEST_P(Live, LegalTransitionsSetWhatTheySay)
{
	for (int from = 0; from < 7; from++) {
		for (int to = 0; to < 7; to++) {
			auto it = oracle().find({from, to, type});

			if (it == oracle().end())
				continue;
			for (bool all : {false, true}) {
				SCOPED_TRACE(testing::Message() << states[from] << " -> "
								<< states[to] << " all " << all);
				Qp &qp = make();

				if (!bring(qp, from)) {
					qp.destroy();
					continue;
				}
				uint32_t mask = it->second.required | RVT_QP_STATE;

				if (all)
					mask |= it->second.optional;
				rvt_qp_attr before = qp.query();

				other_values(qp);
				qp.attr.cur_state = static_cast<rvt_qp_state>(from);
				if (to != RVT_QPS_RTS)
					qp.attr.path_mig_state = RVT_MIG_MIGRATED;
				qp.attr.state = static_cast<rvt_qp_state>(to);
				/* The management QPs have their port from the start. */
				ASSERT_EQ(qp.modify(mask), 0);
				expect_state(qp, static_cast<rvt_qp_state>(to));
				rvt_qp_attr after = qp.query();

				expect_values(after, qp.attr, mask);
				if (to == RVT_QPS_RESET) {
					EXPECT_EQ(after.qkey, 0u);
					EXPECT_EQ(after.dest_qpn, 0u);
					EXPECT_EQ(after.access_flags, 0u);
					EXPECT_EQ(after.rq_psn, 0u);
					EXPECT_EQ(after.sq_psn, 0u);
				} else {
					/* What was not named is as it was. */
					rvt_qp_attr rest = before;

					expect_values(after, rest,
						      ((1u << 21) - 2) &
							      ~(mask | RVT_QP_EN_SQD_ASYNC_NOTIFY));
				}
				EXPECT_EQ(after.cap.max_send_wr, qp.init.cap.max_send_wr);
				EXPECT_EQ(after.cap.max_recv_wr, qp.init.cap.max_recv_wr);
				EXPECT_EQ(after.cap.max_send_sge, qp.init.cap.max_send_sge);
				EXPECT_EQ(after.cap.max_recv_sge, qp.init.cap.max_recv_sge);
				qp.destroy();
			}
		}
	}
}

TEST_P(Live, Case055_MissingAndForbiddenAttributesChangeNothing)
{
	for (int from = 0; from < 7; from++) {
		Qp &qp = make();

		if (!bring(qp, from)) {
			qp.destroy();
			continue;
		}
		rvt_qp_attr before = qp.query();
		qp.events.clear();

		for (int to = 0; to < 7; to++) {
			auto it = oracle().find({from, to, type});
			Row row = it == oracle().end() ? Row{} : it->second;

			for (int bit = 1; bit < 21; bit++) {
				uint32_t mask = (row.required ^ 1u << bit) | RVT_QP_STATE;

				if (oracle_ok(from, to, type, mask))
					continue;
				SCOPED_TRACE(testing::Message()
					     << states[from] << " -> " << states[to] << " with "
					     << bits[bit]);
				Qp copy_of_attr = {};

				other_values(qp);
				qp.attr.cur_state = static_cast<rvt_qp_state>(from);
				qp.attr.state = static_cast<rvt_qp_state>(to);
				ASSERT_EQ(qp.modify(mask), einval);
				expect_same(qp.query(), before);
				/* Without STATE: the same state is meant. */
				if (from == to) {
					ASSERT_EQ(qp.modify(mask & ~RVT_QP_STATE), einval);
					expect_same(qp.query(), before);
				}
				(void)copy_of_attr;
			}
			/* Transitions that do not exist at all. */
			if (!row.valid) {
				qp.attr.state = static_cast<rvt_qp_state>(to);
				ASSERT_EQ(qp.modify(RVT_QP_STATE), einval);
				expect_same(qp.query(), before);
			}
		}
		for (int bit = 21; bit < 32; bit++) {
			qp.attr.state = RVT_QPS_RESET;
			ASSERT_EQ(qp.modify(RVT_QP_STATE | 1u << bit), eopnotsupp);
			expect_same(qp.query(), before);
		}
		for (int bad : {7, 8, 255, -1}) {
			qp.attr.state = static_cast<rvt_qp_state>(bad);
			ASSERT_EQ(qp.modify(RVT_QP_STATE), einval);
			expect_same(qp.query(), before);
		}
		EXPECT_TRUE(qp.events.empty());
		w.m.settle();
		qp.destroy();
	}
}

TEST_P(Live, Case053_FalseCurState)
{
	for (int from = 0; from < 7; from++) {
		for (int claim = 0; claim < 7; claim++) {
			if (claim == from)
				continue;
			Qp &qp = make();

			if (!bring(qp, from)) {
				qp.destroy();
				continue;
			}
			rvt_qp_attr before = qp.query();

			for (int to = 0; to < 7; to++) {
				auto it = oracle().find({claim, to, type});
				uint32_t mask = RVT_QP_STATE | RVT_QP_CUR_STATE;

				if (it != oracle().end())
					mask |= it->second.required;
				qp.attr.cur_state = static_cast<rvt_qp_state>(claim);
				qp.attr.state = static_cast<rvt_qp_state>(to);
				ASSERT_EQ(qp.modify(mask), einval)
					<< states[from] << " claimed " << states[claim] << " to "
					<< states[to];
				expect_same(qp.query(), before);
			}
			for (int bad : {7, -1, 100}) {
				qp.attr.cur_state = static_cast<rvt_qp_state>(bad);
				qp.attr.state = RVT_QPS_RTS;
				EXPECT_EQ(qp.modify(RVT_QP_STATE | RVT_QP_CUR_STATE), einval);
			}
			qp.destroy();
		}
	}
}

/* --- the checks of values ------------------------------------------------------------ */

class Values : public testing::Test
{
protected:
	World w{false};
	std::pair<Qp *, Qp *> p = w.pair(RVT_QPT_RC);
	Qp *a = p.first, *b = p.second;

	/* In SQD an RC queue pair accepts nearly every attribute. */
	void refuse(uint32_t mask, auto &&change, bool good = false, Where where = Where::here())
	{
		testing::ScopedTrace trace(where.file_name(), where.line(), "this value");
		rvt_qp_attr keep = a->attr;

		if (a->state() != RVT_QPS_SQD) {
			ASSERT_EQ(a->to(RVT_QPS_SQD), 0);
		}
		rvt_qp_attr before = a->query();

		change(a->attr);
		EXPECT_EQ(a->modify(mask), good ? 0 : einval);
		if (!good)
			expect_same(a->query(), before);
		a->attr = keep;
	}
	void accept(uint32_t mask, auto &&change, Where where = Where::here())
	{
		refuse(mask, change, true, where);
	}
};

TEST_F(Values, Case056_Ranges)
{
	for (unsigned int v : {32u, 33u, 128u, 255u})
		refuse(RVT_QP_MIN_RNR_TIMER, [&](auto &at) { at.min_rnr_timer = uint8_t(v); });
	accept(RVT_QP_MIN_RNR_TIMER, [](auto &at) { at.min_rnr_timer = 31; });
	for (unsigned int v : {8u, 9u, 128u, 255u}) {
		refuse(RVT_QP_RETRY_CNT, [&](auto &at) { at.retry_cnt = uint8_t(v); });
		refuse(RVT_QP_RNR_RETRY, [&](auto &at) { at.rnr_retry = uint8_t(v); });
	}
	accept(RVT_QP_RETRY_CNT, [](auto &at) { at.retry_cnt = 7; });
	accept(RVT_QP_RNR_RETRY, [](auto &at) { at.rnr_retry = 7; });
	for (unsigned int v : {32u, 64u, 255u})
		refuse(RVT_QP_TIMEOUT, [&](auto &at) { at.timeout = uint8_t(v); });
	accept(RVT_QP_TIMEOUT, [](auto &at) { at.timeout = 31; });
	accept(RVT_QP_TIMEOUT, [](auto &at) { at.timeout = 0; });
	for (unsigned int v : {16u, 17u, 0x8000u, 0xffffu})
		refuse(RVT_QP_PKEY_INDEX, [&](auto &at) { at.pkey_index = uint16_t(v); });
	accept(RVT_QP_PKEY_INDEX, [](auto &at) { at.pkey_index = 15; });
	for (unsigned int v : {0u, 2u, 255u})
		refuse(RVT_QP_PORT, [&](auto &at) { at.port_num = uint8_t(v); });
	accept(RVT_QP_PORT, [](auto &at) { at.port_num = 1; });
	for (unsigned int v : {17u, 128u, 255u}) {
		refuse(RVT_QP_MAX_DEST_RD_ATOMIC,
		       [&](auto &at) { at.max_dest_rd_atomic = uint8_t(v); });
		refuse(RVT_QP_MAX_QP_RD_ATOMIC, [&](auto &at) { at.max_rd_atomic = uint8_t(v); });
	}
	for (unsigned int v : {0u, 1u, 16u}) {
		accept(RVT_QP_MAX_DEST_RD_ATOMIC,
		       [&](auto &at) { at.max_dest_rd_atomic = uint8_t(v); });
		accept(RVT_QP_MAX_QP_RD_ATOMIC, [&](auto &at) { at.max_rd_atomic = uint8_t(v); });
	}
}

TEST_F(Values, Case056_AddressVectors)
{
	for (unsigned int dlid : {0xc000u, 0xc001u, 0xfffeu, 0xffffu, 0u})
		refuse(RVT_QP_AV, [&](auto &at) { at.ah.dlid = uint16_t(dlid); });
	accept(RVT_QP_AV, [](auto &at) { at.ah.dlid = 0xbfff; });
	for (unsigned int port : {0u, 2u, 255u})
		refuse(RVT_QP_AV, [&](auto &at) { at.ah.port_num = uint8_t(port); });
	refuse(RVT_QP_AV, [](auto &at) { at.ah.sl = 16; });
	refuse(RVT_QP_AV, [](auto &at) {
		at.ah.has_grh = true;
		at.ah.sgid_index = RVT_MAX_GIDS;
	});
	/* Case 62: an index whose entry is empty. */
	refuse(RVT_QP_AV, [](auto &at) {
		at.ah.has_grh = true;
		at.ah.sgid_index = 3;
	});
	accept(RVT_QP_AV, [&](auto &at) {
		at.ah.has_grh = true;
		at.ah.sgid_index = 0;
		memcpy(at.ah.dgid, w.dev().gid, 16);
	});
	for (unsigned int dlid : {0xc000u, 0xffffu, 0u})
		refuse(RVT_QP_ALT_PATH, [&](auto &at) {
			at.alt_ah = at.ah;
			at.alt_ah.dlid = uint16_t(dlid);
		});
	refuse(RVT_QP_ALT_PATH, [&](auto &at) {
		at.alt_ah = at.ah;
		at.alt_pkey_index = 16;
	});
	refuse(RVT_QP_ALT_PATH, [&](auto &at) { at.alt_ah.port_num = 2; });
	accept(RVT_QP_ALT_PATH, [&](auto &at) {
		at.alt_ah = at.ah;
		at.alt_pkey_index = 15;
		at.alt_timeout = 31;
	});
	EXPECT_EQ(a->query().alt_timeout, 31); /* case 186 */
	/* One bad value among good ones: nothing of it all is taken over. */
	refuse(RVT_QP_TIMEOUT | RVT_QP_RETRY_CNT | RVT_QP_AV | RVT_QP_MIN_RNR_TIMER, [](auto &at) {
		at.timeout = 3;
		at.retry_cnt = 2;
		at.ah.sl = 7;
		at.min_rnr_timer = 32;
	});
}

TEST_F(Values, Case056_ConnectionAttributes)
{
	Qp &qp = w.add_qp(RVT_QPT_RC);
	rvt_qp_attr good;

	qp.aim(*b);
	good = qp.attr;
	ASSERT_EQ(qp.to_init(), 0);
	rvt_qp_attr before = qp.query();

	for (uint32_t qpn : {0x1000000u, 0x80000000u, ~0u}) {
		qp.attr.dest_qpn = qpn;
		EXPECT_EQ(qp.to_rtr(), einval);
		expect_same(qp.query(), before);
	}
	qp.attr = good;
	for (unsigned int mtu : {0u, 6u, 7u, 255u}) {
		qp.attr.path_mtu = uint8_t(mtu);
		EXPECT_EQ(qp.to_rtr(), einval);
		expect_same(qp.query(), before);
	}
	qp.attr = good;
	/* PSNs are masked, not refused. */
	qp.attr.rq_psn = 0xab000001;
	qp.attr.dest_qpn = 0xffffff;
	ASSERT_EQ(qp.to_rtr(), 0);
	EXPECT_EQ(qp.query().rq_psn, 1u);
	EXPECT_EQ(qp.query().dest_qpn, 0xffffffu);
	qp.attr.sq_psn = 0xff000002;
	ASSERT_EQ(qp.to_rts(), 0);
	EXPECT_EQ(qp.query().sq_psn, 2u);
}

TEST_F(Values, EveryPathMtu)
{
	for (uint8_t mtu = 1; mtu <= 5; mtu++) {
		Qp &qp = w.add_qp(RVT_QPT_RC);

		qp.aim(*b);
		qp.attr.path_mtu = mtu;
		ASSERT_EQ(qp.to_init(), 0);
		ASSERT_EQ(qp.to_rtr(), 0);
		EXPECT_EQ(qp.query().path_mtu, mtu);
	}
}

TEST_F(Values, Case061_PathMigration)
{
	/* ARMED is never asked for; MIGRATED in RTS and SQD; REARM in RTS only. */
	a->attr.path_mig_state = RVT_MIG_ARMED;
	EXPECT_EQ(a->modify(RVT_QP_PATH_MIG_STATE), einval);
	for (unsigned int v : {3u, 255u}) {
		a->attr.path_mig_state = uint8_t(v);
		EXPECT_EQ(a->modify(RVT_QP_PATH_MIG_STATE), einval);
	}
	a->attr.path_mig_state = RVT_MIG_MIGRATED;
	EXPECT_EQ(a->modify(RVT_QP_PATH_MIG_STATE), 0);
	ASSERT_EQ(a->to(RVT_QPS_SQD), 0);
	EXPECT_EQ(a->modify(RVT_QP_PATH_MIG_STATE), 0);
	a->attr.path_mig_state = RVT_MIG_REARM;
	EXPECT_EQ(a->modify(RVT_QP_PATH_MIG_STATE), einval);
	ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
	EXPECT_EQ(a->modify(RVT_QP_PATH_MIG_STATE), 0);
	EXPECT_EQ(a->query().path_mig_state, RVT_MIG_REARM);
	a->attr.path_mig_state = RVT_MIG_MIGRATED;
	EXPECT_EQ(a->modify(RVT_QP_PATH_MIG_STATE), einval);
	EXPECT_EQ(a->count(RVT_EVENT_PATH_MIG), 0u);
}

TEST_F(Values, Case057_NoReadsOutstandingAllowed)
{
	Mr &mr = w.add_mr(64);
	auto [c, d] = w.pair(RVT_QPT_RC);

	EXPECT_EQ(c->to(RVT_QPS_RESET), 0);
	c->attr.max_rd_atomic = 0;
	EXPECT_EQ(d->to(RVT_QPS_RESET), 0);
	w.connect(*c, *d);
	EXPECT_EQ(c->post(wr_read(1, {mr.sge(0, 8)}, mr.iova, mr.key)), einval);
	EXPECT_EQ(c->post(wr_faa(1, mr.sge(0, 8), mr.iova, mr.key, 1)), einval);
	EXPECT_EQ(c->post(wr_write(1, {mr.sge(0, 8)}, mr.iova, mr.key)), 0);
	expect_wc(*c->scq, {.id = 1});
}

TEST_F(Values, Case058_MaxDestRdAtomicOfALiveQueuePair)
{
	Mr &mr = w.add_mr(64);
	auto [c, d] = w.pair(RVT_QPT_RC);

	for (uint8_t depth : {16, 1, 7, 16}) {
		ASSERT_EQ(c->post(wr_read(1, {mr.sge(0, 8)}, mr.iova + 16, mr.key)), 0);
		ASSERT_EQ(d->to(RVT_QPS_SQD), 0);
		d->attr.max_dest_rd_atomic = depth;
		ASSERT_EQ(d->modify(RVT_QP_MAX_DEST_RD_ATOMIC), 0);
		ASSERT_EQ(c->post(wr_faa(2, mr.sge(0, 8), mr.iova + 16, mr.key, 1)), 0);
		ASSERT_EQ(d->to(RVT_QPS_RTS), 0);
		expect_run(*c->scq, {1, 2}, RVT_WC_SUCCESS);
		EXPECT_EQ(d->query().max_dest_rd_atomic, depth);
	}
	EXPECT_EQ(mr.word(16), 4u);
}

TEST_F(Values, Case181_ResponderWithoutReadResources)
{
	Mr &mr = w.add_mr(64);
	auto [c, d] = w.pair(RVT_QPT_RC);

	for (int op : {0, 1}) {
		EXPECT_EQ(c->to(RVT_QPS_RESET), 0);
		EXPECT_EQ(d->to(RVT_QPS_RESET), 0);
		d->attr.max_dest_rd_atomic = 0;
		w.connect(*c, *d);
		mr.set_word(0, 5);
		ASSERT_EQ(c->post(op ? wr_faa(1, mr.sge(8, 8), mr.iova, mr.key, 1)
				     : wr_read(1, {mr.sge(8, 8)}, mr.iova, mr.key)),
			  0);
		expect_wc(*c->scq, {.id = 1, .status = RVT_WC_REM_INV_REQ_ERR});
		EXPECT_EQ(mr.word(0), 5u);
		expect_state(*d, RVT_QPS_ERR);
	}
}

/* --- creation -------------------------------------------------------------------------- */

TEST(Create, Case046_CapsAtAndAboveTheLimits)
{
	World w;
	Qp *qp = nullptr;
	Cq &cq = w.add_cq();
	auto with = [&](QpOpts o) {
		o.send_cq = o.recv_cq = &cq;
		return w.try_qp(RVT_QPT_RC, o, nullptr, &qp);
	};

	EXPECT_EQ(with({.max_send_wr = RVT_MAX_QP_WR + 1}), einval);
	EXPECT_EQ(with({.max_recv_wr = RVT_MAX_QP_WR + 1}), einval);
	EXPECT_EQ(with({.max_send_sge = RVT_MAX_SGE + 1}), einval);
	EXPECT_EQ(with({.max_recv_sge = RVT_MAX_SGE + 1}), einval);
	EXPECT_EQ(with({.max_inline = RVT_MAX_INLINE + 1}), einval);
	for (uint32_t v : {0x80000000u, ~0u}) {
		EXPECT_EQ(with({.max_send_wr = v}), einval);
		EXPECT_EQ(with({.max_recv_wr = v}), einval);
		EXPECT_EQ(with({.max_send_sge = v}), einval);
		EXPECT_EQ(with({.max_recv_sge = v}), einval);
		EXPECT_EQ(with({.max_inline = v}), einval);
	}
	EXPECT_EQ(with({.max_send_wr = 0, .max_recv_wr = 0, .max_send_sge = 0, .max_recv_sge = 0}),
		  einval);
	ASSERT_EQ(with({.max_send_wr = RVT_MAX_QP_WR}), 0);
	EXPECT_EQ(qp->query().cap.max_send_wr, uint32_t(RVT_MAX_QP_WR));
	ASSERT_EQ(with({.max_recv_wr = RVT_MAX_QP_WR, .max_recv_sge = 1}), 0);
	EXPECT_EQ(qp->query().cap.max_recv_wr, uint32_t(RVT_MAX_QP_WR));
	ASSERT_EQ(with({.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = RVT_MAX_SGE,
			.max_recv_sge = RVT_MAX_SGE}),
		  0);
	ASSERT_EQ(with({.max_send_wr = 0, .max_recv_wr = 1, .max_send_sge = 0, .max_recv_sge = 1}),
		  0);
	ASSERT_EQ(with({.max_send_wr = 1, .max_recv_wr = 0, .max_send_sge = 1, .max_recv_sge = 0}),
		  0);
	ASSERT_EQ(with({.max_inline = RVT_MAX_INLINE}), 0);
}

TEST(Create, MostPiecesAreUsable)
{
	World w;
	QpOpts o = {.max_send_sge = RVT_MAX_SGE, .max_recv_sge = RVT_MAX_SGE};
	auto [a, b] = w.pair(RVT_QPT_RC, o, o);
	Mr &from = w.add_mr(96 * 64), &to = w.add_mr(96 * 64);
	std::vector<rvt_sge> out, in;

	from.write(0, pattern(96 * 10));
	for (uint32_t i = 0; i < 96; i++) {
		out.push_back(from.sge(i * 10, 10));
		in.push_back(to.sge(i * 20, 10));
	}
	ASSERT_EQ(b->recv(1, in), 0);
	ASSERT_EQ(a->post(wr_send(2, out)), 0);
	expect_wc(*a->scq, {.id = 2, .byte_len = 960});
	expect_wc(*b->rcq, {.id = 1, .byte_len = 960});
	for (uint32_t i = 0; i < 96; i++)
		ASSERT_EQ(to.read(i * 20, 10), pattern(960).substr(i * 10, 10));
}

TEST(Create, Case044_TypesThatDoNotExist)
{
	World w;
	Qp *qp = nullptr;

	for (int type : {5, 6, 8, 9, 10, 255, -1})
		EXPECT_EQ(w.try_qp(static_cast<rvt_qp_type>(type), {}, nullptr, &qp), eopnotsupp)
			<< type;
}

TEST(Create, Case049_ManagementQueuePairs)
{
	World w(false);
	Qp *qp = nullptr;
	Qp &smi = w.add_qp(RVT_QPT_SMI);
	Qp &gsi = w.add_qp(RVT_QPT_GSI);

	EXPECT_EQ(smi.num, 0u);
	EXPECT_EQ(gsi.num, 1u);
	EXPECT_EQ(w.try_qp(RVT_QPT_SMI, {}, nullptr, &qp), einval);
	EXPECT_EQ(w.try_qp(RVT_QPT_GSI, {}, nullptr, &qp), einval);
	/* They can be made again. */
	smi.destroy();
	gsi.destroy();
	EXPECT_EQ(w.add_qp(RVT_QPT_SMI).num, 0u);
	EXPECT_EQ(w.add_qp(RVT_QPT_GSI).num, 1u);
	/* Every device has its own. */
	Device &second = w.add_device();
	Pd &pd = w.add_pd(second, false);
	EXPECT_EQ(w.add_qp(RVT_QPT_GSI, {}, &pd).num, 1u);
	rvt_qp_init init = smi.init;
	for (uint8_t port : {0, 2, 255}) {
		init.type = RVT_QPT_SMI;
		init.port_num = port;
		EXPECT_EQ(rvt_core_qp_check_cap(&init), einval);
	}
}

TEST(Create, Case047_NumbersAreFreshAndNeverSpecial)
{
	World w;
	Cq &cq = w.add_cq();
	std::vector<uint32_t> seen;
	const int n = 3000;

	for (int i = 0; i < n; i++) {
		Qp *qp = nullptr;

		ASSERT_EQ(w.try_qp(RVT_QPT_RC, {.send_cq = &cq, .recv_cq = &cq}, nullptr, &qp), 0);
		EXPECT_GT(qp->num, 1u);
		EXPECT_LT(qp->num, 1u << 24);
		seen.push_back(qp->num);
		qp->destroy();
	}
	std::sort(seen.begin(), seen.end());
	EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end())
		<< "a number was used again at once";
}

TEST(Create, IterationSeesExactlyTheLiveOnes)
{
	World w(false);
	std::set<uint32_t> want;

	for (int i = 0; i < 50; i++) {
		Qp &qp = w.add_qp(i % 2 ? RVT_QPT_RC : RVT_QPT_UD);

		if (i % 3) {
			ASSERT_EQ(qp.to_init(), 0);
			want.insert(qp.num);
		}
	}
	Qp &gsi = w.add_qp(RVT_QPT_GSI);
	ASSERT_EQ(gsi.to_init(), 0);
	want.insert(1);

	struct Seen {
		std::multiset<uint32_t> nums;
	} seen;
	rvt_core_qp_for_each(
		w.dev().raw,
		[](rvt_core_qp *qp, void *arg) {
			sim::Machine::current()->must_be_process("the visit of a queue pair");
			static_cast<Seen *>(arg)->nums.insert(rvt_core_qp_num(qp));
		},
		&seen);
	EXPECT_EQ(seen.nums, (std::multiset<uint32_t>(want.begin(), want.end())));
}

TEST(Create, LeakIsReportedNotFreed)
{
	World w(false);
	Device &second = w.add_device();
	Pd &pd = w.add_pd(second, false);
	rvt_core_dev *raw = second.raw;

	w.m.expect_leaks(100);
	EXPECT_GT(rvt_core_dev_destroy(raw), 0u);
	EXPECT_GT(w.m.leaks_seen(), 0u);
	/* The program would be over with now; give back what it kept. */
	(void)pd;
	_exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(Create, Case163_ManyLives)
{
	World w;
	Cq &cq = w.add_cq();
	Mr &mr = w.add_mr(8);

	for (int i = 0; i < 2000; i++) {
		auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &cq, .recv_cq = &cq},
				     {.send_cq = &cq, .recv_cq = &cq});

		ASSERT_EQ(a->post(wr_write(1, {mr.sge()}, mr.iova, mr.key)), 0);
		expect_wc(cq, {.id = 1});
		a->destroy();
		b->destroy();
	}
}

TEST(Create, Case067_ANewLifeAfterReset)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC);
	Mr &mr = w.add_mr(64);

	for (int round = 0; round < 3; round++) {
		b->attr.min_rnr_timer = 20;
		for (int i = 0; i < 5; i++)
			ASSERT_EQ(a->post(wr_send(i, {mr.sge()})), 0); /* waits */
		for (int i = 0; i < 7; i++)
			ASSERT_EQ(a->recv(i, {mr.sge()}), 0);
		w.m.settle();
		ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
		/* Nothing completes, nothing is left, no timer fires. */
		w.m.advance(100 * sim::second);
		expect_none(*a->scq);
		expect_none(*a->rcq);
		EXPECT_EQ(a->ring.head(), a->ring.tail());
		a->attr.sq_psn += 0x1234;
		b->attr.sq_psn += 0x4321;
		w.connect(*a, *b);
		expect_works(*a, *b);
		expect_works(*b, *a);
	}
}

} // namespace
