// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include "util.h"

namespace
{

std::string at(const Where &where)
{
	return std::string(where.file_name()) + ":" + std::to_string(where.line());
}

} // namespace

const char *status_name(uint32_t status)
{
	switch (status) {
	case RVT_WC_SUCCESS:
		return "SUCCESS";
	case RVT_WC_LOC_LEN_ERR:
		return "LOC_LEN_ERR";
	case RVT_WC_LOC_QP_OP_ERR:
		return "LOC_QP_OP_ERR";
	case RVT_WC_LOC_PROT_ERR:
		return "LOC_PROT_ERR";
	case RVT_WC_WR_FLUSH_ERR:
		return "WR_FLUSH_ERR";
	case RVT_WC_REM_INV_REQ_ERR:
		return "REM_INV_REQ_ERR";
	case RVT_WC_REM_ACCESS_ERR:
		return "REM_ACCESS_ERR";
	case RVT_WC_REM_OP_ERR:
		return "REM_OP_ERR";
	case RVT_WC_RETRY_EXC_ERR:
		return "RETRY_EXC_ERR";
	case RVT_WC_RNR_RETRY_EXC_ERR:
		return "RNR_RETRY_EXC_ERR";
	}
	return "?";
}

rvt_wc expect_wc(Cq &cq, const Want &want, Where where)
{
	testing::ScopedTrace trace(where.file_name(), where.line(), "completion expected here");
	std::optional<rvt_wc> got = cq.poll();

	if (!got) {
		ADD_FAILURE() << at(where) << ": no completion; wanted wr_id " << want.id << " "
			      << status_name(want.status);
		return {};
	}
	EXPECT_EQ(got->wr_id, want.id);
	EXPECT_STREQ(status_name(got->status), status_name(want.status));
	if (want.opcode) {
		EXPECT_EQ(got->opcode, *want.opcode);
	}
	if (want.byte_len) {
		EXPECT_EQ(got->byte_len, *want.byte_len);
	}
	if (want.flags) {
		EXPECT_EQ(got->wc_flags, *want.flags);
	}
	if (want.imm) {
		EXPECT_EQ(got->imm_data, *want.imm);
	}
	if (want.qp_num) {
		EXPECT_EQ(got->qp_num, *want.qp_num);
	}
	if (want.src_qp) {
		EXPECT_EQ(got->src_qp, *want.src_qp);
	}
	if (want.slid) {
		EXPECT_EQ(got->slid, *want.slid);
	}
	if (want.port) {
		EXPECT_EQ(got->port_num, *want.port);
	}
	EXPECT_EQ(got->vendor_err, 0u);
	EXPECT_EQ(got->reserved, 0u);
	return *got;
}

void expect_none(Cq &cq, Where where)
{
	std::optional<rvt_wc> got = cq.poll();

	if (got)
		ADD_FAILURE() << at(where) << ": unexpected completion of wr_id " << got->wr_id
			      << ", " << status_name(got->status);
}

void expect_run(Cq &cq, const std::vector<uint64_t> &ids, uint32_t status, Where where)
{
	for (uint64_t id : ids)
		expect_wc(cq, {.id = id, .status = status}, where);
}

void expect_state(Qp &qp, rvt_qp_state state, Where where)
{
	rvt_qp_attr now = qp.query();

	EXPECT_EQ(now.state, state) << at(where);
	EXPECT_EQ(now.cur_state, state) << at(where);
	EXPECT_EQ(qp.stat().state, state) << at(where);
}

void expect_works(Qp &a, Qp &b, Where where)
{
	testing::ScopedTrace trace(where.file_name(), where.line(), "the pair should work here");
	Mr &from = a.world->add_mr(64, access_all, a.pd);
	Mr &to = b.world->add_mr(64, access_all, b.pd);
	std::string text = pattern(64, 99);

	from.write(0, text);
	ASSERT_EQ(b.recv(0xbbbb, {to.sge()}), 0);
	ASSERT_EQ(a.post(wr_send(0xaaaa, {from.sge()})), 0);
	expect_wc(*a.scq, {.id = 0xaaaa, .opcode = RVT_WC_SEND}, where);
	expect_wc(*b.rcq, {.id = 0xbbbb, .opcode = RVT_WC_RECV, .byte_len = 64}, where);
	EXPECT_EQ(to.read(0, 64), text);
}

void expect_same(const rvt_qp_attr &a, const rvt_qp_attr &b, Where where)
{
	testing::ScopedTrace trace(where.file_name(), where.line(), "attributes compared here");

	EXPECT_EQ(a.state, b.state);
	EXPECT_EQ(a.cur_state, b.cur_state);
	EXPECT_EQ(a.path_mtu, b.path_mtu);
	EXPECT_EQ(a.path_mig_state, b.path_mig_state);
	EXPECT_EQ(a.qkey, b.qkey);
	EXPECT_EQ(a.rq_psn, b.rq_psn);
	EXPECT_EQ(a.sq_psn, b.sq_psn);
	EXPECT_EQ(a.dest_qpn, b.dest_qpn);
	EXPECT_EQ(a.access_flags, b.access_flags);
	EXPECT_EQ(a.ah.dlid, b.ah.dlid);
	EXPECT_EQ(a.ah.sl, b.ah.sl);
	EXPECT_EQ(a.ah.has_grh, b.ah.has_grh);
	EXPECT_EQ(memcmp(a.ah.dgid, b.ah.dgid, 16), 0);
	EXPECT_EQ(a.ah.port_num, b.ah.port_num);
	EXPECT_EQ(a.alt_ah.dlid, b.alt_ah.dlid);
	EXPECT_EQ(a.alt_ah.sl, b.alt_ah.sl);
	EXPECT_EQ(a.pkey_index, b.pkey_index);
	EXPECT_EQ(a.alt_pkey_index, b.alt_pkey_index);
	EXPECT_EQ(a.en_sqd_async_notify, b.en_sqd_async_notify);
	EXPECT_EQ(a.sq_draining, b.sq_draining);
	EXPECT_EQ(a.max_rd_atomic, b.max_rd_atomic);
	EXPECT_EQ(a.max_dest_rd_atomic, b.max_dest_rd_atomic);
	EXPECT_EQ(a.min_rnr_timer, b.min_rnr_timer);
	EXPECT_EQ(a.port_num, b.port_num);
	EXPECT_EQ(a.timeout, b.timeout);
	EXPECT_EQ(a.retry_cnt, b.retry_cnt);
	EXPECT_EQ(a.rnr_retry, b.rnr_retry);
	EXPECT_EQ(a.alt_port_num, b.alt_port_num);
	EXPECT_EQ(a.alt_timeout, b.alt_timeout);
}

/* InfiniBand table 45, in units of 10 microseconds; code 0 is the longest. */
uint64_t rnr_ns(unsigned int code)
{
	static const uint32_t tens_of_us[32] = {
		65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
		48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return tens_of_us[code] * 10000ull;
}
