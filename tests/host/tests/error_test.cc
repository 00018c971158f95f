// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What goes wrong: both completions, both final states, the events; flushing;
 * draining; the send queue error state; connections that do not match.
 */
#include "util.h"

namespace
{

using testing::ElementsAre;

/* --- the error table ----------------------------------------------------------------- */

enum class Fault {
	no_qp, /* the peer was destroyed */
	rnr,   /* no receive, no retries */
	too_long,
	recv_key, /* the receive names a wrong key */
	recv_readonly,
	no_write_right, /* of the queue pair */
	no_write_right_imm,
	no_read_right,
	no_atomic_right,
	misaligned_atomic,
	write_key,
	write_imm_key,
	write_range,
	write_mr_right,
	read_key,
	read_mr_right,
	atomic_mr_right,
};

struct Entry {
	const char *name;
	Fault fault;
	bool uc;	    /* applies to UC too */
	uint32_t requester; /* of RC; UC always says SUCCESS */
	int responder;	    /* status of the first receive; -1: none is in use */
	bool responder_err;
	int event; /* at the responder; -1: not looked at */
};

constexpr int none = -1;
constexpr int flushed = RVT_WC_WR_FLUSH_ERR;

const Entry entries[] = {
	{"NoQp", Fault::no_qp, true, RVT_WC_RETRY_EXC_ERR, none, false, none},
	{"Rnr", Fault::rnr, true, RVT_WC_RNR_RETRY_EXC_ERR, none, false, none},
	{"TooLong", Fault::too_long, true, RVT_WC_REM_INV_REQ_ERR, RVT_WC_LOC_LEN_ERR, true,
	 RVT_EVENT_QP_REQ_ERR},
	{"ReceiveKey", Fault::recv_key, true, RVT_WC_REM_OP_ERR, RVT_WC_LOC_PROT_ERR, true, none},
	{"ReceiveReadOnly", Fault::recv_readonly, true, RVT_WC_REM_OP_ERR, RVT_WC_LOC_PROT_ERR,
	 true, none},
	{"NoWriteRight", Fault::no_write_right, true, RVT_WC_REM_INV_REQ_ERR, flushed, true,
	 RVT_EVENT_QP_REQ_ERR},
	{"NoWriteRightImm", Fault::no_write_right_imm, true, RVT_WC_REM_INV_REQ_ERR, flushed, true,
	 RVT_EVENT_QP_REQ_ERR},
	{"NoReadRight", Fault::no_read_right, false, RVT_WC_REM_INV_REQ_ERR, flushed, true,
	 RVT_EVENT_QP_REQ_ERR},
	{"NoAtomicRight", Fault::no_atomic_right, false, RVT_WC_REM_INV_REQ_ERR, flushed, true,
	 RVT_EVENT_QP_REQ_ERR},
	{"MisalignedAtomic", Fault::misaligned_atomic, false, RVT_WC_REM_INV_REQ_ERR, flushed, true,
	 RVT_EVENT_QP_REQ_ERR},
	{"WriteKey", Fault::write_key, true, RVT_WC_REM_ACCESS_ERR, flushed, true,
	 RVT_EVENT_QP_ACCESS_ERR},
	{"WriteImmKey", Fault::write_imm_key, true, RVT_WC_REM_ACCESS_ERR, RVT_WC_LOC_PROT_ERR,
	 true, RVT_EVENT_QP_ACCESS_ERR},
	{"WriteRange", Fault::write_range, true, RVT_WC_REM_ACCESS_ERR, flushed, true,
	 RVT_EVENT_QP_ACCESS_ERR},
	{"WriteMrRight", Fault::write_mr_right, true, RVT_WC_REM_ACCESS_ERR, flushed, true,
	 RVT_EVENT_QP_ACCESS_ERR},
	{"ReadKey", Fault::read_key, false, RVT_WC_REM_ACCESS_ERR, flushed, true,
	 RVT_EVENT_QP_ACCESS_ERR},
	{"ReadMrRight", Fault::read_mr_right, false, RVT_WC_REM_ACCESS_ERR, flushed, true,
	 RVT_EVENT_QP_ACCESS_ERR},
	{"AtomicMrRight", Fault::atomic_mr_right, false, RVT_WC_REM_ACCESS_ERR, flushed, true,
	 RVT_EVENT_QP_ACCESS_ERR},
};

/* Entry, UC instead of RC, with an SRQ, a user's. */
using Case = std::tuple<Entry, bool, bool, bool>;

class ErrorTable : public testing::TestWithParam<Case>
{
};

std::vector<Case> all_cases()
{
	std::vector<Case> cases;

	for (const Entry &entry : entries)
		for (bool uc : {false, true})
			for (bool srq : {false, true})
				for (bool user : {false, true})
					if (!uc || entry.uc)
						cases.emplace_back(entry, uc, srq, user);
	return cases;
}

std::string case_name(const testing::TestParamInfo<Case> &info)
{
	auto [entry, uc, srq, user] = info.param;

	return std::string(entry.name) + (uc ? "Uc" : "Rc") + (srq ? "Srq" : "") +
	       (user ? "User" : "Kernel");
}

INSTANTIATE_TEST_SUITE_P(Spec53, ErrorTable, testing::ValuesIn(all_cases()), case_name);

TEST_P(ErrorTable, Case080_BothSides)
{
	auto [entry, uc, with_srq, user] = GetParam();
	World w(user);
	Srq *srq = with_srq ? &w.add_srq(16, 2) : nullptr;
	rvt_qp_type type = uc ? RVT_QPT_UC : RVT_QPT_RC;
	Qp &a = w.add_qp(type), &b = w.add_qp(type, {.srq = srq});
	Mr &local = w.add_mr(4096), &remote = w.add_mr(4096);
	Mr &read_only = w.add_mr(64, RVT_ACCESS_REMOTE_READ);
	Mr &no_remote = w.add_mr(64, RVT_ACCESS_LOCAL_WRITE);
	auto recv = [&](uint64_t id, std::vector<rvt_sge> sge) {
		ASSERT_EQ(srq ? srq->recv(id, sge) : b.recv(id, sge), 0);
	};
	uint32_t bad_key = remote.key ^ 0x4000;
	Wr wr = wr_write(1, {local.sge(0, 8)}, remote.iova, remote.key);

	a.attr.rnr_retry = 0;
	a.attr.retry_cnt = 1;
	a.attr.timeout = 5;
	switch (entry.fault) {
	case Fault::no_write_right:
	case Fault::no_write_right_imm:
	case Fault::no_read_right:
	case Fault::no_atomic_right:
		b.attr.access_flags = entry.fault == Fault::no_read_right ? RVT_ACCESS_REMOTE_WRITE
				      : entry.fault == Fault::no_atomic_right
					      ? RVT_ACCESS_REMOTE_READ
					      : RVT_ACCESS_REMOTE_READ | RVT_ACCESS_REMOTE_ATOMIC;
		break;
	default:
		break;
	}
	w.connect(a, b);

	switch (entry.fault) {
	case Fault::no_qp:
	case Fault::rnr:
		wr = wr_send(1, {local.sge(0, 8)});
		break;
	case Fault::too_long:
		wr = wr_send(1, {local.sge(0, 65)});
		recv(100, {remote.sge(0, 64)});
		break;
	case Fault::recv_key:
		wr = wr_send(1, {local.sge(0, 8)});
		recv(100, {{remote.iova, 64, bad_key}});
		break;
	case Fault::recv_readonly:
		wr = wr_send(1, {local.sge(0, 8)});
		recv(100, {read_only.sge()});
		break;
	case Fault::no_write_right:
		break;
	case Fault::no_write_right_imm:
		wr = wr_write_imm(1, {local.sge(0, 8)}, remote.iova, remote.key, 1);
		break;
	case Fault::no_read_right:
		wr = wr_read(1, {local.sge(0, 8)}, remote.iova, remote.key);
		break;
	case Fault::no_atomic_right:
		wr = wr_faa(1, local.sge(0, 8), remote.iova, remote.key, 1);
		break;
	case Fault::misaligned_atomic:
		wr = wr_faa(1, local.sge(0, 8), remote.iova + 4, remote.key, 1);
		break;
	case Fault::write_key:
		wr.rkey = bad_key;
		break;
	case Fault::write_imm_key:
		wr = wr_write_imm(1, {local.sge(0, 8)}, remote.iova, bad_key, 1);
		recv(100, {});
		break;
	case Fault::write_range:
		wr.raddr = remote.iova + 4089;
		break;
	case Fault::write_mr_right:
		wr.raddr = read_only.iova;
		wr.rkey = read_only.key;
		break;
	case Fault::read_key:
		wr = wr_read(1, {local.sge(0, 8)}, remote.iova, bad_key);
		break;
	case Fault::read_mr_right:
		wr = wr_read(1, {local.sge(0, 8)}, no_remote.iova, no_remote.key);
		break;
	case Fault::atomic_mr_right:
		wr = wr_faa(1, local.sge(0, 8), no_remote.iova, no_remote.key, 1);
		break;
	}
	bool has_first = entry.responder != none && entry.responder != flushed;
	bool posts_receives = entry.fault != Fault::rnr;

	if (posts_receives) {
		recv(101, {remote.sge(64, 64)});
		recv(102, {remote.sge(128, 64)});
	}
	if (entry.fault == Fault::no_qp)
		b.destroy();

	/* A receive of the requester's own, and sends behind the faulty one. */
	ASSERT_EQ(a.recv(50, {local.sge(0, 8)}), 0);
	local.fill('L');
	remote.fill('R');
	read_only.fill('O');
	no_remote.fill('N');
	size_t posted;
	ASSERT_EQ(a.post({wr, wr_write(2, {local.sge(8, 8)}, remote.iova + 3000, remote.key, 0),
			  wr_write(3, {local.sge(8, 8)}, remote.iova + 3000, remote.key)},
			 &posted),
		  0);
	w.m.advance(uc || entry.fault != Fault::no_qp ? 0 : 2 * timeout_ns(5));

	uint32_t wc_opcode = wr.op == RVT_WR_SEND		    ? RVT_WC_SEND
			     : wr.op == RVT_WR_RDMA_READ	    ? RVT_WC_RDMA_READ
			     : wr.op == RVT_WR_ATOMIC_FETCH_AND_ADD ? RVT_WC_FETCH_ADD
								    : RVT_WC_RDMA_WRITE;
	bool b_alive = entry.fault != Fault::no_qp;

	if (uc) {
		/* Case 179: the sender notices nothing, whatever happens there. */
		expect_wc(*a.scq, {.id = 1, .status = RVT_WC_SUCCESS, .opcode = wc_opcode});
		expect_wc(*a.scq, {.id = 3, .status = RVT_WC_SUCCESS});
		expect_none(*a.scq);
		expect_none(*a.rcq);
		expect_state(a, RVT_QPS_RTS);
	} else {
		expect_wc(
			*a.scq,
			{.id = 1, .status = entry.requester, .opcode = wc_opcode, .qp_num = a.num});
		/* Unsignalled ones too, in order. */
		expect_run(*a.scq, {2, 3}, RVT_WC_WR_FLUSH_ERR);
		expect_none(*a.scq);
		expect_wc(*a.rcq, {.id = 50, .status = RVT_WC_WR_FLUSH_ERR, .opcode = RVT_WC_RECV});
		expect_state(a, RVT_QPS_ERR);
	}
	EXPECT_THAT(a.events, ElementsAre());

	if (b_alive) {
		expect_state(b, entry.responder_err ? RVT_QPS_ERR : RVT_QPS_RTS);
		if (has_first)
			expect_wc(*b.rcq, {.id = 100,
					   .status = static_cast<uint32_t>(entry.responder),
					   .opcode = {},
					   .qp_num = b.num});
		if (entry.responder_err && posts_receives && !with_srq)
			expect_run(*b.rcq, {101, 102}, RVT_WC_WR_FLUSH_ERR);
		expect_none(*b.rcq);
		if (entry.event != none) {
			EXPECT_EQ(b.count(static_cast<rvt_event>(entry.event)), 1u);
		}
		EXPECT_EQ(b.count(RVT_EVENT_QP_LAST_WQE_REACHED),
			  with_srq && entry.responder_err ? 1u : 0u);
		EXPECT_EQ(b.count(RVT_EVENT_QP_FATAL), 0u);
	}
	/* Case 71: nothing was written, nothing after the failure executed. */
	if (!uc || entry.responder_err) {
		EXPECT_EQ(remote.read(3000, 8), "RRRRRRRR");
	}
	if (entry.fault != Fault::recv_key || entry.responder_err) {
		EXPECT_EQ(read_only.read(0, 64), std::string(64, 'O'));
		EXPECT_EQ(no_remote.read(0, 64), std::string(64, 'N'));
		EXPECT_EQ(remote.read(0, 8), "RRRRRRRR");
	}
	/* Nothing comes later. */
	w.m.advance(10 * sim::second);
	expect_none(*a.scq);
	if (b_alive)
		expect_none(*b.rcq);

	/* Both can be used again. */
	if (b_alive) {
		ASSERT_EQ(a.to(RVT_QPS_RESET), 0);
		ASSERT_EQ(b.to(RVT_QPS_RESET), 0);
		a.events.clear();
		w.connect(a, b);
		if (!with_srq)
			expect_works(a, b);
		expect_works(b, a);
	}
}

/* --- flushing -------------------------------------------------------------------------- */

class Flush : public testing::TestWithParam<std::tuple<rvt_qp_type, bool>>
{
protected:
	World w{std::get<1>(GetParam())};
	rvt_qp_type type = std::get<0>(GetParam());
	Mr &mr = w.add_mr(4096);

	Qp &make(const QpOpts &opts = {})
	{
		if (type == RVT_QPT_UD)
			return w.add_ud(0x11111111, opts);
		auto [a, b] = w.pair(type, opts, {});

		b->attr.min_rnr_timer = 31;
		return *a;
	}
	Wr send(Qp &qp, uint64_t id, uint32_t flags)
	{
		Wr wr = type == RVT_QPT_UD ? w.ud_to(qp, qp, id, {mr.sge(0, 8)})
					   : wr_send(id, {mr.sge(0, 8)});

		wr.flags = flags;
		return wr;
	}
};
INSTANTIATE_TEST_SUITE_P(Types, Flush,
			 testing::Combine(testing::Values(RVT_QPT_RC, RVT_QPT_UC, RVT_QPT_UD),
					  testing::Bool()),
			 [](const auto &info) {
				 rvt_qp_type type = std::get<0>(info.param);

				 return std::string(type == RVT_QPT_RC	 ? "Rc"
						    : type == RVT_QPT_UC ? "Uc"
									 : "Ud") +
					(std::get<1>(info.param) ? "User" : "Kernel");
			 });

TEST_P(Flush, Case069_EveryReceiveInOrder)
{
	for (uint32_t offset = 0; offset < 5; offset++) {
		for (uint32_t k = 0; k <= 4; k++) {
			Qp &qp = make({.max_recv_wr = 4});

			for (uint32_t i = 0; i < offset; i++) {
				ASSERT_EQ(qp.recv(i, {mr.sge()}), 0);
				if (type == RVT_QPT_UD) {
					ASSERT_EQ(qp.post(send(qp, 1, 0)), 0);
					w.m.settle();
				} else {
					/* Its peer sends. */
					Qp &peer = **std::prev(w.qps.end());

					ASSERT_EQ(peer.post(wr_send(1, {mr.sge(0, 8)}, 0)), 0);
					w.m.settle();
				}
				expect_wc(*qp.rcq, {.id = i});
			}
			for (uint32_t i = 0; i < k; i++)
				ASSERT_EQ(qp.recv(100 + i, {mr.sge()}), 0);
			ASSERT_EQ(qp.to(RVT_QPS_ERR), 0);
			for (uint32_t i = 0; i < k; i++)
				expect_wc(*qp.rcq, {.id = 100 + i,
						    .status = RVT_WC_WR_FLUSH_ERR,
						    .opcode = RVT_WC_RECV,
						    .byte_len = 0,
						    .qp_num = qp.num});
			expect_none(*qp.rcq);
			ASSERT_EQ(qp.to(RVT_QPS_ERR), 0);
			expect_none(*qp.rcq);
			EXPECT_TRUE(qp.events.empty());
		}
	}
}

/* The machine ends the test if interrupts are off meanwhile. */
TEST_P(Flush, AsManyReceivesAsThereMayBe)
{
	Cq &cq = w.add_cq(RVT_MAX_QP_WR);
	Qp &qp = make({.max_recv_wr = RVT_MAX_QP_WR, .recv_cq = &cq});

	for (uint32_t i = 0; i < RVT_MAX_QP_WR; i++)
		ASSERT_EQ(qp.recv(i, {mr.sge()}), 0);
	ASSERT_EQ(qp.to(RVT_QPS_ERR), 0);
	for (uint32_t i = 0; i < RVT_MAX_QP_WR; i++)
		expect_wc(cq, {.id = i,
			       .status = RVT_WC_WR_FLUSH_ERR,
			       .opcode = RVT_WC_RECV,
			       .byte_len = 0,
			       .qp_num = qp.num});
	expect_none(cq);
}

TEST_P(Flush, Case075_PostingInErr)
{
	Qp &qp = make();

	ASSERT_EQ(qp.to(RVT_QPS_ERR), 0);
	for (int i = 0; i < 40; i++) {
		ASSERT_EQ(qp.post(send(qp, i, i % 2 ? RVT_SEND_SIGNALED : 0)), 0);
		expect_wc(
			*qp.scq,
			{.id = uint64_t(i), .status = RVT_WC_WR_FLUSH_ERR, .opcode = RVT_WC_SEND});
	}
	/* A malformed request is still refused. */
	Wr bad = send(qp, 1, 0);

	for (int i = 0; i < 5; i++)
		bad.sge.push_back(bad.sge[0]);
	EXPECT_EQ(qp.post(bad), einval);
	expect_none(*qp.scq);
}

TEST_P(Flush, Case075_ReceivesPostedInErr)
{
	Qp &qp = make({.max_recv_wr = 3});

	ASSERT_EQ(qp.recv(1, {mr.sge()}), 0);
	ASSERT_EQ(qp.to(RVT_QPS_ERR), 0);
	ASSERT_EQ(qp.recv(2, {mr.sge()}), 0);
	ASSERT_EQ(qp.recv(3, {mr.sge()}), 0);
	/* A user's are found within 10 ms, the kernel's at once. */
	w.m.advance(10 * sim::ms);
	expect_run(*qp.rcq, {1, 2, 3}, RVT_WC_WR_FLUSH_ERR);
	expect_none(*qp.rcq);
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(qp.recv(10 + i, {mr.sge()}), 0);
		w.m.advance(10 * sim::ms);
		expect_wc(*qp.rcq, {.id = uint64_t(10 + i), .status = RVT_WC_WR_FLUSH_ERR});
	}
	/* A long pause does not make it forget. */
	w.m.advance(100 * sim::second);
	ASSERT_EQ(qp.recv(50, {mr.sge()}), 0);
	w.m.advance(10 * sim::ms);
	expect_wc(*qp.rcq, {.id = 50, .status = RVT_WC_WR_FLUSH_ERR});
}

TEST_P(Flush, Case070_SendsThatWait)
{
	Qp &qp = make();

	if (type == RVT_QPT_RC) {
		/* Nothing was posted at the peer: the first waits for RNR. */
		for (int i = 0; i < 5; i++)
			ASSERT_EQ(qp.post(send(qp, i, i % 2 ? RVT_SEND_SIGNALED : 0)), 0);
	} else {
		ASSERT_EQ(qp.to(RVT_QPS_SQD), 0);
		for (int i = 0; i < 5; i++)
			ASSERT_EQ(qp.post(send(qp, i, i % 2 ? RVT_SEND_SIGNALED : 0)), 0);
	}
	w.m.settle();
	ASSERT_EQ(qp.to(RVT_QPS_ERR), 0);
	expect_run(*qp.scq, {0, 1, 2, 3, 4}, RVT_WC_WR_FLUSH_ERR);
	expect_none(*qp.scq);
	EXPECT_EQ(w.dev().counter(RVT_CNT_FLUSHED), 5u);
}

TEST_P(Flush, ResetDiscardsSilently)
{
	Qp &qp = make();

	ASSERT_EQ(qp.to(RVT_QPS_SQD), 0);
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(qp.post(send(qp, i, RVT_SEND_SIGNALED)), 0);
		ASSERT_EQ(qp.recv(i, {mr.sge()}), 0);
	}
	ASSERT_EQ(qp.to(RVT_QPS_RESET), 0);
	w.m.advance(sim::second);
	expect_none(*qp.scq);
	expect_none(*qp.rcq);
	rvt_qp_stat stat = qp.stat();

	EXPECT_EQ(stat.sq_head, stat.sq_last);
	EXPECT_EQ(stat.rq.head, stat.rq.tail);
	EXPECT_EQ(stat.state, RVT_QPS_RESET);
}

TEST_P(Flush, Case095_TheSendRingIsWholeAfterManyErrors)
{
	Qp &qp = make({.max_send_wr = 5});

	for (int round = 0; round < 1000; round++) {
		ASSERT_EQ(qp.to(RVT_QPS_SQD), 0);
		for (int i = 0; i < 5; i++)
			ASSERT_EQ(qp.post(send(qp, i, 0)), 0) << round;
		ASSERT_EQ(qp.post(send(qp, 9, 0)), enomem);
		ASSERT_EQ(qp.to(round % 2 ? RVT_QPS_ERR : RVT_QPS_RESET), 0);
		w.m.settle();
		qp.scq->poll_all();
		ASSERT_EQ(qp.to(RVT_QPS_RESET), 0);
		ASSERT_EQ(qp.to_init(), 0);
		ASSERT_EQ(qp.to_rtr(), 0);
		ASSERT_EQ(qp.to_rts(), 0);
	}
}

TEST(FlushKernel, Case095_ReservedSlotsAreNotLost)
{
	World w(false);
	auto [a, b] = w.pair(RVT_QPT_RC, {.max_send_wr = 4}, {});
	Mr &mr = w.add_mr(64), &fast = w.add_fast_mr(4096);

	for (int round = 0; round < 200; round++) {
		ASSERT_EQ(a->to(RVT_QPS_SQD), 0);
		for (int i = 0; i < 4; i++)
			ASSERT_EQ(a->post(wr_send(i, {mr.sge()})), 0) << round;
		a->post(wr_local_inv(7, fast.key));
		ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
		w.m.settle();
		a->scq->poll_all();
		ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
		a->aim(*b);
		ASSERT_EQ(a->to_init(), 0);
		ASSERT_EQ(a->to_rtr(), 0);
		ASSERT_EQ(a->to_rts(), 0);
	}
}

TEST(FlushKernel, Case076_ADrainMarkerComesLast)
{
	World w(false);
	auto [a, b] = w.pair(RVT_QPT_RC);
	Mr &mr = w.add_mr(64);

	(void)b;
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(a->post(wr_send(i, {mr.sge()})), 0); /* waits */
		ASSERT_EQ(a->recv(i, {mr.sge()}), 0);
	}
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	ASSERT_EQ(a->post(wr_write(99, {}, 0, 0)), 0);
	ASSERT_EQ(a->recv(99, {}), 0);
	w.m.advance(10 * sim::ms);
	expect_run(*a->scq, {0, 1, 2, 3, 4, 99}, RVT_WC_WR_FLUSH_ERR);
	expect_run(*a->rcq, {0, 1, 2, 3, 4, 99}, RVT_WC_WR_FLUSH_ERR);
}

TEST(FlushKernel, Case078_ADrainMarkerOfADatagramQueuePair)
{
	World w(false);
	Qp &ud = w.add_ud();
	Mr &mr = w.add_mr(64);

	EXPECT_EQ(ud.post(wr_write(1, {}, 0, 0)), einval);
	ASSERT_EQ(ud.to(RVT_QPS_SQD), 0);
	ASSERT_EQ(ud.post(w.ud_to(ud, ud, 2, {mr.sge(0, 8)})), 0);
	ASSERT_EQ(ud.to(RVT_QPS_ERR), 0);
	ASSERT_EQ(ud.post(wr_write(3, {}, 0, 0)), 0);
	expect_run(*ud.scq, {2, 3}, RVT_WC_WR_FLUSH_ERR);
	Wr nonsense = wr_send(4, {});

	nonsense.op = 99;
	EXPECT_EQ(ud.post(nonsense), einval);
}

TEST(FlushKernel, Case077_FlushedOnesKeepTheirOpcode)
{
	World w(false);
	auto [a, b] = w.pair(RVT_QPT_RC, {.max_send_wr = 32}, {});
	Mr &mr = w.add_mr(64), &fast = w.add_fast_mr(4096);

	(void)b;
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	struct {
		Wr wr;
		uint32_t opcode;
	} all[] = {
		{wr_send(1, {mr.sge()}), RVT_WC_SEND},
		{wr_send_imm(2, {mr.sge()}, 1), RVT_WC_SEND},
		{wr_send_inv(3, {mr.sge()}, 1), RVT_WC_SEND},
		{wr_write(4, {mr.sge()}, 0, 0), RVT_WC_RDMA_WRITE},
		{wr_write_imm(5, {mr.sge()}, 0, 0, 0), RVT_WC_RDMA_WRITE},
		{wr_read(6, {mr.sge()}, 0, 0), RVT_WC_RDMA_READ},
		{wr_cas(7, mr.sge(0, 8), 0, 0, 0, 0), RVT_WC_COMP_SWAP},
		{wr_faa(8, mr.sge(0, 8), 0, 0, 0), RVT_WC_FETCH_ADD},
		{wr_local_inv(9, fast.key), RVT_WC_LOCAL_INV},
		{wr_reg(10, fast.raw, fast.key, access_all), RVT_WC_REG_MR},
	};
	for (auto &one : all) {
		SCOPED_TRACE(one.wr.op);
		ASSERT_EQ(a->post(one.wr), 0);
		expect_wc(*a->scq, {.id = one.wr.id,
				    .status = RVT_WC_WR_FLUSH_ERR,
				    .opcode = one.opcode,
				    .qp_num = a->num});
	}
}

/* --- last receive of an SRQ's queue pair ------------------------------------------------- */

TEST(LastWqe, Case035_OnceAndOnlyWithAnSrq)
{
	World w;
	Srq &srq = w.add_srq();
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});
	Mr &mr = w.add_mr(64);

	ASSERT_EQ(srq.recv(1, {mr.sge()}), 0);
	ASSERT_EQ(srq.recv(2, {mr.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	expect_wc(*b->rcq, {.id = 1});
	ASSERT_EQ(b->to(RVT_QPS_ERR), 0);
	w.m.settle();
	EXPECT_THAT(b->events, ElementsAre(RVT_EVENT_QP_LAST_WQE_REACHED));
	expect_none(*b->rcq); /* the SRQ's receives are not this QP's */
	EXPECT_EQ(srq.ring.fill(), 1u);
	ASSERT_EQ(b->to(RVT_QPS_ERR), 0);
	EXPECT_EQ(b->events.size(), 1u);
	ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	EXPECT_EQ(b->events.size(), 1u);
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	EXPECT_TRUE(a->events.empty());
	/* From INIT as well; RESET raises none. */
	b->aim(*a);
	ASSERT_EQ(b->to_init(), 0);
	ASSERT_EQ(b->to(RVT_QPS_ERR), 0);
	w.m.settle();
	EXPECT_EQ(b->events.size(), 2u);
}

TEST(LastWqe, ComesAfterTheLastCompletion)
{
	World w;
	Srq &srq = w.add_srq();
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});
	Mr &mr = w.add_mr(64);
	bool had_completion = false;

	b->on_event = [&, b = b](rvt_event event) {
		if (event == RVT_EVENT_QP_LAST_WQE_REACHED)
			had_completion = b->rcq->waiting() == 1;
	};
	ASSERT_EQ(srq.recv(1, {mr.sge(0, 4)}), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0); /* too long */
	w.m.settle();
	EXPECT_TRUE(had_completion);
	EXPECT_EQ(b->count(RVT_EVENT_QP_LAST_WQE_REACHED), 1u);
}

TEST(Events, Case187_HandlersMayModifyAndQuery)
{
	World w;
	Srq &srq = w.add_srq();
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});
	Mr &mr = w.add_mr(64);

	b->on_event = [&, b = b](rvt_event event) {
		if (event != RVT_EVENT_QP_LAST_WQE_REACHED)
			return;
		EXPECT_EQ(b->state(), RVT_QPS_ERR);
		EXPECT_EQ(b->to(RVT_QPS_RESET), 0);
	};
	ASSERT_EQ(srq.recv(1, {mr.sge(0, 4)}), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	expect_wc(*a->scq, {.id = 1, .status = RVT_WC_REM_INV_REQ_ERR});
	w.m.settle();
	EXPECT_GE(b->events.size(), 1u);
}

/* --- drained -------------------------------------------------------------------------------- */

class Drain : public testing::TestWithParam<bool>
{
protected:
	World w{GetParam()};
	std::pair<Qp *, Qp *> p = w.pair(RVT_QPT_RC);
	Qp *a = p.first, *b = p.second;
	Mr &mr = w.add_mr(64);

	int sqd(bool notify)
	{
		a->attr.en_sqd_async_notify = notify;
		return a->to(RVT_QPS_SQD, notify ? RVT_QP_EN_SQD_ASYNC_NOTIFY : 0);
	}
};
INSTANTIATE_TEST_SUITE_P(Consumers, Drain, testing::Bool(),
			 [](const auto &info) { return info.param ? "User" : "Kernel"; });

TEST_P(Drain, IdleQueueIsDrainedAtOnce)
{
	ASSERT_EQ(sqd(true), 0);
	w.m.settle();
	EXPECT_THAT(a->events, ElementsAre(RVT_EVENT_SQ_DRAINED));
	EXPECT_FALSE(a->query().sq_draining);
	ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
	ASSERT_EQ(sqd(false), 0);
	w.m.settle();
	EXPECT_EQ(a->events.size(), 1u);
	ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
	expect_works(*a, *b);
	EXPECT_EQ(a->events.size(), 1u);
}

TEST_P(Drain, TheRequestUnderWayEndsThenTheEvent)
{
	for (bool notify : {true, false}) {
		a->events.clear();
		ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0); /* waits for a receive */
		ASSERT_EQ(a->post(wr_send(2, {mr.sge()})), 0);
		w.m.settle();
		ASSERT_EQ(sqd(notify), 0);
		ASSERT_EQ(a->post(wr_send(3, {mr.sge()})), 0);
		w.m.settle();
		EXPECT_TRUE(a->query().sq_draining);
		EXPECT_TRUE(a->events.empty());
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(b->recv(10 + i, {mr.sge()}), 0);
		w.m.advance(sim::second);
		/* Only the one that was under way. */
		expect_wc(*a->scq, {.id = 1});
		expect_none(*a->scq);
		EXPECT_FALSE(a->query().sq_draining);
		EXPECT_EQ(a->count(RVT_EVENT_SQ_DRAINED), notify ? 1u : 0u);
		expect_state(*a, RVT_QPS_SQD);
		/* It still receives. */
		ASSERT_EQ(a->recv(5, {mr.sge()}), 0);
		ASSERT_EQ(b->post(wr_send(6, {mr.sge()})), 0);
		expect_wc(*a->rcq, {.id = 5});
		expect_wc(*b->scq, {.id = 6});
		/* Back to work: the rest goes out by itself. */
		ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
		expect_run(*a->scq, {2, 3}, RVT_WC_SUCCESS);
		expect_run(*b->rcq, {10, 11, 12}, RVT_WC_SUCCESS);
		w.m.settle();
		EXPECT_EQ(a->events.size(), notify ? 1u : 0u);
	}
}

TEST_P(Drain, AttributesChangeWhileDrained)
{
	ASSERT_EQ(sqd(true), 0);
	a->attr.timeout = 5;
	a->attr.retry_cnt = 2;
	ASSERT_EQ(a->modify(RVT_QP_TIMEOUT | RVT_QP_RETRY_CNT), 0);
	w.m.settle();
	EXPECT_EQ(a->count(RVT_EVENT_SQ_DRAINED), 1u) << "once per draining";
	ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
	b->destroy();
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	w.m.advance(3 * timeout_ns(5) - 1);
	expect_none(*a->scq);
	w.m.advance(1);
	expect_wc(*a->scq, {.id = 1, .status = RVT_WC_RETRY_EXC_ERR});
}

TEST_P(Drain, ErrorWhileDrainingRaisesNoDrained)
{
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	w.m.settle();
	ASSERT_EQ(sqd(true), 0);
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	expect_wc(*a->scq, {.id = 1, .status = RVT_WC_WR_FLUSH_ERR});
	EXPECT_EQ(a->count(RVT_EVENT_SQ_DRAINED), 0u);
}

TEST_P(Drain, QueryTellsEnSqdAsyncNotify)
{
	ASSERT_EQ(sqd(true), 0);
	EXPECT_TRUE(a->query().en_sqd_async_notify);
}

/* --- send queue error: UC and UD --------------------------------------------------------------- */

class SendQueueError : public testing::Test
{
protected:
	World w{false};
	std::pair<Qp *, Qp *> p = w.pair(RVT_QPT_UC);
	Qp *a = p.first, *b = p.second;
	Mr &mr = w.add_mr(64);
};

TEST_F(SendQueueError, Case180_LocalErrorAndRecovery)
{
	for (int round = 0; round < 3; round++) {
		size_t posted;

		/* Held back, so that requests are behind the failing one. */
		ASSERT_EQ(a->to(RVT_QPS_SQD), 0);
		ASSERT_EQ(a->post({wr_write(1, {mr.sge()}, mr.iova, mr.key),
				   wr_local_inv(2, 0x1234, RVT_SEND_FENCE),
				   wr_write(3, {mr.sge()}, mr.iova, mr.key, 0),
				   wr_write(4, {mr.sge()}, mr.iova, mr.key)},
				  &posted),
			  0);
		ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
		expect_wc(*a->scq, {.id = 1});
		auto wc = a->scq->poll();
		ASSERT_TRUE(wc);
		EXPECT_EQ(wc->wr_id, 2u);
		EXPECT_TRUE(wc->status == RVT_WC_LOC_PROT_ERR || wc->status == RVT_WC_LOC_QP_OP_ERR)
			<< status_name(wc->status);
		expect_run(*a->scq, {3, 4}, RVT_WC_WR_FLUSH_ERR);
		expect_none(*a->scq);
		expect_state(*a, RVT_QPS_SQE);
		/* Sends are flushed, receives go on. */
		ASSERT_EQ(a->post(wr_write(5, {mr.sge()}, mr.iova, mr.key)), 0);
		expect_wc(*a->scq, {.id = 5, .status = RVT_WC_WR_FLUSH_ERR});
		expect_works(*b, *a);
		expect_state(*a, RVT_QPS_SQE);
		if (round == 1) {
			a->attr.cur_state = RVT_QPS_SQE;
			ASSERT_EQ(a->to(RVT_QPS_RTS, RVT_QP_CUR_STATE), 0);
		} else {
			ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
		}
		expect_works(*a, *b);
		expect_works(*b, *a);
	}
}

TEST_F(SendQueueError, FromSqeToErrAndReset)
{
	ASSERT_EQ(a->post(wr_local_inv(1, 0x1234)), 0);
	w.m.settle();
	expect_state(*a, RVT_QPS_SQE);
	ASSERT_EQ(a->recv(9, {mr.sge()}), 0);
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	expect_wc(*a->rcq, {.id = 9, .status = RVT_WC_WR_FLUSH_ERR});
	ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
	b->to(RVT_QPS_RESET);
	w.connect(*a, *b);
	a->scq->poll_all();
	expect_works(*a, *b);
}

TEST_F(SendQueueError, AConnectedReliableOneGoesToErr)
{
	auto [c, d] = w.pair(RVT_QPT_RC);

	(void)d;
	int rc = c->post(wr_local_inv(1, 0x1234));

	w.m.settle();
	if (rc == 0)
		expect_state(*c, RVT_QPS_ERR);
	else
		EXPECT_EQ(rc, einval);
}

/* --- communication established ------------------------------------------------------------------ */

TEST(CommEst, Case068_OnceInRtr)
{
	for (rvt_qp_type type : {RVT_QPT_RC, RVT_QPT_UC}) {
		World w;
		Qp &a = w.add_qp(type), &b = w.add_qp(type);
		Mr &mr = w.add_mr(64);

		for (int life = 1; life <= 2; life++) {
			a.aim(b);
			b.aim(a);
			ASSERT_EQ(b.to_init(), 0);
			for (int i = 0; i < 4; i++)
				ASSERT_EQ(b.recv(i, {mr.sge()}), 0);
			ASSERT_EQ(b.to_rtr(), 0);
			ASSERT_EQ(a.to_init(), 0);
			ASSERT_EQ(a.to_rtr(), 0);
			ASSERT_EQ(a.to_rts(), 0);
			EXPECT_EQ(b.count(RVT_EVENT_COMM_EST), size_t(life - 1));
			ASSERT_EQ(a.post(wr_send(1, {mr.sge()})), 0);
			expect_wc(*a.scq, {.id = 1});
			expect_wc(*b.rcq, {.id = 0});
			EXPECT_EQ(b.count(RVT_EVENT_COMM_EST), size_t(life));
			ASSERT_EQ(a.post(wr_write(2, {mr.sge()}, mr.iova, mr.key)), 0);
			expect_wc(*a.scq, {.id = 2});
			ASSERT_EQ(b.to_rts(), 0);
			ASSERT_EQ(a.post(wr_send(3, {mr.sge()})), 0);
			expect_wc(*a.scq, {.id = 3});
			expect_wc(*b.rcq, {.id = 1});
			EXPECT_EQ(b.count(RVT_EVENT_COMM_EST), size_t(life));
			ASSERT_EQ(a.to(RVT_QPS_RESET), 0);
			ASSERT_EQ(b.to(RVT_QPS_RESET), 0);
		}
		EXPECT_TRUE(a.events.empty());
	}
}

TEST(CommEst, NotWhenAlreadyInRts)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC);

	expect_works(*a, *b);
	expect_works(*b, *a);
	EXPECT_TRUE(a->events.empty());
	EXPECT_TRUE(b->events.empty());
}

TEST(CommEst, TheHandlerMayMoveTheQueuePair)
{
	World w;
	Qp &a = w.add_qp(RVT_QPT_RC), &b = w.add_qp(RVT_QPT_RC);
	Mr &mr = w.add_mr(64);

	a.aim(b);
	b.aim(a);
	b.on_event = [&](rvt_event event) {
		EXPECT_EQ(event, RVT_EVENT_COMM_EST);
		EXPECT_EQ(b.to_rts(), 0);
	};
	ASSERT_EQ(b.to_init(), 0);
	ASSERT_EQ(b.recv(1, {mr.sge()}), 0);
	ASSERT_EQ(b.to_rtr(), 0);
	ASSERT_EQ(a.to_init(), 0);
	ASSERT_EQ(a.to_rtr(), 0);
	ASSERT_EQ(a.to_rts(), 0);
	ASSERT_EQ(a.post(wr_send(2, {mr.sge()})), 0);
	expect_wc(*b.rcq, {.id = 1});
	expect_state(b, RVT_QPS_RTS);
}

/* --- who is connected to whom -------------------------------------------------------------------- */

class Connected : public testing::TestWithParam<rvt_qp_type>
{
protected:
	World w;
	rvt_qp_type type = GetParam();
	Mr &mr = w.add_mr(4096);

	/* The message does not arrive; what the sender sees fits its type. */
	void expect_lost(Qp &a, Qp &b, rvt_counter why, bool write = false)
	{
		uint64_t dropped = w.dev().counter(why);

		mr.fill('.');
		ASSERT_EQ(b.recv(5, {mr.sge(0, 64)}), 0);
		a.attr.timeout = 5;
		ASSERT_EQ(a.post(write ? wr_write(1, {mr.sge(64, 8)}, mr.iova, mr.key)
				       : wr_send(1, {mr.sge(64, 8)})),
			  0);
		w.m.advance(10 * sim::second);
		expect_wc(*a.scq,
			  {.id = 1,
			   .status = type == RVT_QPT_RC ? RVT_WC_RETRY_EXC_ERR : RVT_WC_SUCCESS});
		expect_none(*b.rcq);
		expect_state(b, RVT_QPS_RTS);
		EXPECT_TRUE(b.events.empty());
		EXPECT_GT(w.dev().counter(why), dropped);
	}
};
INSTANTIATE_TEST_SUITE_P(Types, Connected, testing::Values(RVT_QPT_RC, RVT_QPT_UC),
			 [](const auto &info) { return info.param == RVT_QPT_RC ? "Rc" : "Uc"; });

TEST_P(Connected, Case176_NotConnectedBack)
{
	Qp &a = w.add_qp(type), &b = w.add_qp(type), &c = w.add_qp(type);

	a.aim(b);
	b.aim(c);
	c.aim(b);
	b.attr.rq_psn = a.attr.sq_psn = c.attr.sq_psn;
	for (Qp *qp : {&a, &b, &c}) {
		qp->attr.timeout = 5;
		ASSERT_EQ(qp->to_init(), 0);
		ASSERT_EQ(qp->to_rtr(), 0);
		ASSERT_EQ(qp->to_rts(), 0);
	}
	expect_lost(a, b, RVT_CNT_DROP_NO_QP);
	if (type == RVT_QPT_UC)
		expect_lost(a, b, RVT_CNT_DROP_NO_QP, true);
	b.to(RVT_QPS_RESET);
	b.attr.rq_psn = c.query().sq_psn;
	ASSERT_EQ(b.to_init(), 0);
	ASSERT_EQ(b.to_rtr(), 0);
	ASSERT_EQ(b.to_rts(), 0);
	expect_works(c, b);
}

TEST_P(Connected, Case176_TheAddressSaysSomeoneElse)
{
	Device &other = w.add_device();
	Qp &a = w.add_qp(type), &b = w.add_qp(type);

	a.aim(b);
	b.aim(a);
	b.attr.ah.dlid = other.lid;
	for (Qp *qp : {&a, &b}) {
		qp->attr.timeout = 5;
		ASSERT_EQ(qp->to_init(), 0);
		ASSERT_EQ(qp->to_rtr(), 0);
		ASSERT_EQ(qp->to_rts(), 0);
	}
	expect_lost(a, b, RVT_CNT_DROP_NO_QP);
}

TEST_P(Connected, ALidThatNobodyHas)
{
	Qp &a = w.add_qp(type), &b = w.add_qp(type);

	a.aim(b);
	b.aim(a);
	a.attr.ah.dlid = 0x1234;
	for (Qp *qp : {&a, &b}) {
		qp->attr.timeout = 5;
		ASSERT_EQ(qp->to_init(), 0);
		ASSERT_EQ(qp->to_rtr(), 0);
		ASSERT_EQ(qp->to_rts(), 0);
	}
	expect_lost(a, b, RVT_CNT_DROP_NO_QP);
}

TEST_P(Connected, AnotherTypeOfQueuePair)
{
	Qp &a = w.add_qp(type), &b = w.add_qp(type == RVT_QPT_RC ? RVT_QPT_UC : RVT_QPT_RC);
	Qp &ud = w.add_ud();

	w.connect(a, b);
	a.attr.timeout = 5;
	ASSERT_EQ(a.to(RVT_QPS_RESET), 0);
	ASSERT_EQ(a.to_init(), 0);
	ASSERT_EQ(a.to_rtr(), 0);
	ASSERT_EQ(a.to_rts(), 0);
	expect_lost(a, b, RVT_CNT_DROP_NO_QP);
	if (type == RVT_QPT_RC)
		return;
	Qp &c = w.add_qp(type);
	c.aim(ud);
	ASSERT_EQ(c.to_init(), 0);
	ASSERT_EQ(c.to_rtr(), 0);
	ASSERT_EQ(c.to_rts(), 0);
	expect_lost(c, ud, RVT_CNT_DROP_NO_QP);
}

TEST_P(Connected, PsnMismatch)
{
	for (uint32_t off : {1u, 0xffffffu, 0x800000u, 0x7fffffu}) {
		SCOPED_TRACE(off);
		Qp &a = w.add_qp(type), &b = w.add_qp(type);

		a.aim(b);
		b.aim(a);
		b.attr.rq_psn = (a.attr.sq_psn + off) & 0xffffff;
		for (Qp *qp : {&a, &b}) {
			qp->attr.timeout = 5;
			ASSERT_EQ(qp->to_init(), 0);
			ASSERT_EQ(qp->to_rtr(), 0);
			ASSERT_EQ(qp->to_rts(), 0);
		}
		if (type == RVT_QPT_RC) {
			expect_lost(a, b, RVT_CNT_DROP_PSN);
			EXPECT_EQ(b.query().rq_psn, b.attr.rq_psn);
		} else {
			/* UC takes over the PSN with which the message begins. */
			expect_works(a, b);
			EXPECT_EQ(b.query().rq_psn, a.query().sq_psn);
			expect_works(a, b);
		}
	}
}

TEST_P(Connected, Case183_PsnsAdvanceByPackets)
{
	for (uint8_t mtu = 1; mtu <= 5; mtu++) {
		SCOPED_TRACE(int(mtu));
		Qp &a = w.add_qp(type), &b = w.add_qp(type);
		uint32_t bytes = 128u << mtu;
		Mr &big = w.add_mr(4 * 4096);

		a.attr.path_mtu = b.attr.path_mtu = mtu;
		w.connect(a, b);
		uint32_t psn = a.attr.sq_psn;

		EXPECT_EQ(a.query().sq_psn, psn);
		for (uint32_t n :
		     {0u, 1u, bytes - 1, bytes, bytes + 1, 2 * bytes, 2 * bytes + 1, 3 * bytes}) {
			uint32_t packets = n ? (n + bytes - 1) / bytes : 1;

			ASSERT_EQ(a.post(wr_write(1, {big.sge(0, n)}, big.iova, big.key)), 0);
			psn += packets;
			expect_wc(*a.scq, {.id = 1});
			EXPECT_EQ(a.query().sq_psn, psn);
			EXPECT_EQ(b.query().rq_psn, psn);
			ASSERT_EQ(b.recv(2, {big.sge()}), 0);
			ASSERT_EQ(a.post(wr_send(2, {big.sge(0, n)})), 0);
			psn += packets;
			expect_wc(*a.scq, {.id = 2});
			EXPECT_EQ(a.query().sq_psn, psn);
			EXPECT_EQ(b.query().rq_psn, psn);
			if (type != RVT_QPT_RC)
				continue;
			ASSERT_EQ(a.post(wr_read(3, {big.sge(0, n)}, big.iova, big.key)), 0);
			psn += packets;
			expect_wc(*a.scq, {.id = 3});
			EXPECT_EQ(a.query().sq_psn, psn);
			EXPECT_EQ(b.query().rq_psn, psn);
			ASSERT_EQ(a.post(wr_faa(4, big.sge(0, 8), big.iova, big.key, 1)), 0);
			psn += 1;
			expect_wc(*a.scq, {.id = 4});
			EXPECT_EQ(a.query().sq_psn, psn);
			EXPECT_EQ(b.query().rq_psn, psn);
		}
		/* The other direction has not moved. */
		EXPECT_EQ(b.query().sq_psn, b.attr.sq_psn);
		EXPECT_EQ(a.query().rq_psn, b.attr.sq_psn);
	}
}

TEST_P(Connected, Case092_PsnWrap)
{
	for (uint32_t start : {0xfffffeu, 0xffffffu, 0x7fffffu, 0u}) {
		SCOPED_TRACE(start);
		Qp &a = w.add_qp(type), &b = w.add_qp(type);

		a.attr.sq_psn = start;
		w.connect(a, b);
		for (int i = 1; i <= 10; i++) {
			ASSERT_EQ(b.recv(i, {mr.sge()}), 0);
			ASSERT_EQ(a.post(wr_send(i, {mr.sge(0, 3000)})), 0);
			expect_wc(*a.scq, {.id = uint64_t(i)});
			expect_wc(*b.rcq, {.id = uint64_t(i), .byte_len = 3000});
			EXPECT_EQ(a.query().sq_psn, (start + 3 * i) & 0xffffff);
			EXPECT_EQ(b.query().rq_psn, (start + 3 * i) & 0xffffff);
		}
	}
}

TEST_P(Connected, PKeysOfAnotherPartition)
{
	Qp &a = w.add_qp(type), &b = w.add_qp(type);

	rvt_core_pkey_set(w.dev().raw, 5, 0x8123);
	b.attr.pkey_index = 5;
	a.attr.timeout = 5;
	w.connect(a, b);
	expect_lost(a, b, RVT_CNT_DROP_PKEY);
	rvt_core_pkey_set(w.dev().raw, 5, 0x7fff);
	if (type == RVT_QPT_UC) {
		b.recv(7, {mr.sge(0, 64)});
		ASSERT_EQ(a.post(wr_send(1, {mr.sge(64, 8)})), 0);
		expect_wc(*b.rcq, {.id = 5});
	}
}

TEST_P(Connected, ALostUcMessageStillMovesThePsns)
{
	if (type != RVT_QPT_UC)
		return;
	auto [a, b] = w.pair(type);

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)})), 0); /* no receive: lost */
		expect_wc(*a->scq, {.id = 1});
	}
	EXPECT_EQ(w.dev().counter(RVT_CNT_DROP_NO_RWQE), 3u);
	EXPECT_EQ(a->query().sq_psn, a->attr.sq_psn + 3);
	expect_works(*a, *b);
}

/* --- path migration ------------------------------------------------------------------------------- */

class Migration : public testing::Test
{
protected:
	World w;
	uint8_t extra[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
	Qp &a = w.add_qp(RVT_QPT_RC), &b = w.add_qp(RVT_QPT_RC);

	/* Both have an alternate path loaded; a's primary one needs the extra GID. */
	void load()
	{
		ASSERT_EQ(rvt_core_gid_set(w.dev().raw, 4, extra), 0);
		a.aim(b);
		b.aim(a);
		for (Qp *qp : {&a, &b}) {
			qp->attr.alt_ah = qp->attr.ah;
			qp->attr.alt_ah.sl = 7;
			qp->attr.alt_port_num = 1;
			qp->attr.alt_pkey_index = 0;
			qp->attr.alt_timeout = 6;
			qp->attr.timeout = 5;
			qp->attr.retry_cnt = 2;
			qp->attr.path_mig_state = RVT_MIG_REARM;
		}
		a.attr.ah.has_grh = true;
		memcpy(a.attr.ah.dgid, extra, 16);
		for (Qp *qp : {&a, &b}) {
			ASSERT_EQ(qp->to_init(), 0);
			ASSERT_EQ(qp->to_rtr(), 0);
			ASSERT_EQ(qp->to_rts(), 0);
			ASSERT_EQ(qp->modify(RVT_QP_ALT_PATH | RVT_QP_PATH_MIG_STATE), 0);
			EXPECT_EQ(qp->query().path_mig_state, RVT_MIG_REARM);
			EXPECT_EQ(qp->query().alt_timeout, 6);
		}
	}
};

TEST_F(Migration, ArmedByTheFirstMessage)
{
	load();
	expect_works(a, b);
	EXPECT_EQ(a.query().path_mig_state, RVT_MIG_ARMED);
	EXPECT_EQ(b.query().path_mig_state, RVT_MIG_ARMED);
	EXPECT_TRUE(a.events.empty());
	/* ARMED cannot be asked to rearm. */
	a.attr.path_mig_state = RVT_MIG_REARM;
	EXPECT_EQ(a.modify(RVT_QP_PATH_MIG_STATE), einval);
}

TEST_F(Migration, OnlyOneEndLoadedStaysUnarmed)
{
	load();
	ASSERT_EQ(b.to(RVT_QPS_RESET), 0);
	b.attr.rq_psn = a.query().sq_psn;
	ASSERT_EQ(b.to_init(), 0);
	ASSERT_EQ(b.to_rtr(), 0);
	ASSERT_EQ(b.to_rts(), 0);
	expect_works(a, b);
	EXPECT_EQ(a.query().path_mig_state, RVT_MIG_REARM);
	EXPECT_EQ(b.query().path_mig_state, RVT_MIG_MIGRATED);
}

TEST_F(Migration, Case061_AskedFor)
{
	load();
	expect_works(a, b);
	a.attr.path_mig_state = RVT_MIG_MIGRATED;
	ASSERT_EQ(a.modify(RVT_QP_PATH_MIG_STATE), 0);
	w.m.settle();
	EXPECT_THAT(a.events, ElementsAre(RVT_EVENT_PATH_MIG));
	EXPECT_EQ(a.query().path_mig_state, RVT_MIG_MIGRATED);
	EXPECT_EQ(a.query().ah.sl, 7);
	EXPECT_FALSE(a.query().ah.has_grh);
	expect_works(a, b);
	ASSERT_EQ(a.modify(RVT_QP_PATH_MIG_STATE), 0);
	w.m.settle();
	EXPECT_EQ(a.events.size(), 1u);
}

TEST_F(Migration, ByItselfWhenTheRetriesAreUsedUp)
{
	load();
	expect_works(a, b);
	ASSERT_EQ(rvt_core_gid_set(w.dev().raw, 4, nullptr), 0);
	Mr &mr = w.add_mr(64);

	ASSERT_EQ(b.recv(1, {mr.sge()}), 0);
	ASSERT_EQ(a.post(wr_send(2, {mr.sge()})), 0);
	w.m.advance(3 * timeout_ns(5) - 1);
	EXPECT_TRUE(a.events.empty());
	expect_none(*b.rcq);
	w.m.advance(1);
	expect_wc(*a.scq, {.id = 2});
	expect_wc(*b.rcq, {.id = 1});
	EXPECT_THAT(a.events, ElementsAre(RVT_EVENT_PATH_MIG));
	EXPECT_EQ(a.query().path_mig_state, RVT_MIG_MIGRATED);
	expect_works(a, b);
}

TEST_F(Migration, WithoutAnArmedPathTheSendFails)
{
	load();
	ASSERT_EQ(rvt_core_gid_set(w.dev().raw, 4, nullptr), 0);
	Mr &mr = w.add_mr(64);

	ASSERT_EQ(a.post(wr_send(2, {mr.sge()})), 0);
	w.m.advance(3 * timeout_ns(5));
	expect_wc(*a.scq, {.id = 2, .status = RVT_WC_RETRY_EXC_ERR});
	EXPECT_TRUE(a.events.empty());
}

/* --- what may run at once ----------------------------------------------------------------------- */

TEST(Many, Case146_AQueuePairCannotStarveOthers)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC, {.max_send_wr = 2000, .send_cq = &w.add_cq(4000)}, {});
	auto [c, d] = w.pair(RVT_QPT_RC);
	Mr &mr = w.add_mr(1 << 20);
	std::vector<Wr> chain;
	size_t posted;

	(void)b;
	(void)d;
	for (int i = 0; i < 2000; i++)
		chain.push_back(wr_write(i, {mr.sge()}, mr.iova, mr.key));
	/* 2 GB of copying: one call does not do it all. */
	ASSERT_EQ(a->post(chain, &posted), 0);
	EXPECT_LT(a->scq->waiting(), 2000u);
	ASSERT_EQ(c->post(wr_write(1, {mr.sge(0, 8)}, mr.iova, mr.key)), 0);
	EXPECT_TRUE(c->scq->poll_now());
	a->destroy();
}

TEST(Many, MutualTraffic)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC);
	Mr &mr = w.add_mr(4096);

	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(a->recv(i, {mr.sge(0, 100)}), 0);
		ASSERT_EQ(b->recv(i, {mr.sge(100, 100)}), 0);
		ASSERT_EQ(a->post(wr_send(i, {mr.sge(200, 100)})), 0);
		ASSERT_EQ(b->post(wr_send(i, {mr.sge(300, 100)})), 0);
		for (Cq *cq : {a->scq, a->rcq, b->scq, b->rcq})
			expect_wc(*cq, {.id = uint64_t(i)});
	}
}

TEST(Many, Case151_DestroyInEveryState)
{
	for (int state = 0; state < 7; state++) {
		World w(false);
		rvt_qp_type type = state == RVT_QPS_SQE ? RVT_QPT_UC : RVT_QPT_RC;
		Qp &a = w.add_qp(type), &b = w.add_qp(type);
		Mr &mr = w.add_mr(64);

		a.aim(b);
		b.aim(a);
		ASSERT_EQ(b.to_init(), 0);
		ASSERT_EQ(b.to_rtr(), 0);
		ASSERT_EQ(b.to_rts(), 0);
		if (state >= RVT_QPS_INIT)
			ASSERT_EQ(a.to_init(), 0);
		if (state >= RVT_QPS_INIT)
			ASSERT_EQ(a.recv(1, {mr.sge()}), 0);
		if (state >= RVT_QPS_RTR)
			ASSERT_EQ(a.to_rtr(), 0);
		if (state >= RVT_QPS_RTS) {
			ASSERT_EQ(a.to_rts(), 0);
			ASSERT_EQ(a.post(wr_send(1, {mr.sge()})), 0);
			w.m.settle();
		}
		if (state == RVT_QPS_SQD)
			ASSERT_EQ(a.to(RVT_QPS_SQD), 0);
		if (state == RVT_QPS_SQE)
			ASSERT_EQ(a.post(wr_local_inv(1, 0x1234)), 0);
		if (state == RVT_QPS_ERR)
			ASSERT_EQ(a.to(RVT_QPS_ERR), 0);
		a.destroy();
		w.m.advance(sim::second);
	}
}

} // namespace
