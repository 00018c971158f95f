// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Waiting and retrying: exact instants of the virtual clock. */
#include "util.h"

namespace
{

class Timers : public testing::Test
{
protected:
	World w;
	std::pair<Qp *, Qp *> p = w.pair(RVT_QPT_RC);
	Qp *a = p.first, *b = p.second;
	Mr &mr = w.add_mr(4096);

	void again()
	{
		ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
		w.connect(*a, *b);
		for (Cq *cq : {a->scq, a->rcq, b->scq, b->rcq})
			cq->poll_all();
	}
};

TEST_F(Timers, Case085_EveryRnrCodeAtItsInstant)
{
	for (unsigned int code = 0; code < 32; code++) {
		SCOPED_TRACE(code);
		b->attr.min_rnr_timer = static_cast<uint8_t>(code);
		again();
		ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
		expect_none(*a->scq);
		ASSERT_EQ(b->recv(2, {mr.sge()}), 0);
		w.m.advance(rnr_ns(code) - 1);
		expect_none(*a->scq);
		expect_none(*b->rcq);
		w.m.advance(1);
		expect_wc(*a->scq, {.id = 1});
		expect_wc(*b->rcq, {.id = 2});
		EXPECT_EQ(w.m.pending_timers(), 0u);
	}
}

TEST_F(Timers, Case084_RnrRetryCounts)
{
	const uint64_t period = rnr_ns(10);

	b->attr.min_rnr_timer = 10;
	for (unsigned int n = 0; n <= 6; n++) {
		SCOPED_TRACE(n);
		a->attr.rnr_retry = static_cast<uint8_t>(n);
		again();
		uint64_t naks = w.dev().counter(RVT_CNT_RNR_NAKS);

		ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
		w.m.settle();
		if (n) {
			w.m.advance(period * n - 1);
			expect_none(*a->scq);
			expect_state(*a, RVT_QPS_RTS);
			EXPECT_EQ(w.dev().counter(RVT_CNT_RNR_NAKS), naks + n);
			w.m.advance(1);
		}
		expect_wc(*a->scq,
			  {.id = 1, .status = RVT_WC_RNR_RETRY_EXC_ERR, .opcode = RVT_WC_SEND});
		expect_state(*a, RVT_QPS_ERR);
		expect_state(*b, RVT_QPS_RTS);
		EXPECT_EQ(w.dev().counter(RVT_CNT_RNR_NAKS), naks + n + 1);
		EXPECT_EQ(a->query().rnr_retry, n);
		expect_none(*b->rcq);
	}
}

TEST_F(Timers, Case084_SevenIsEndless)
{
	a->attr.rnr_retry = 7;
	a->attr.retry_cnt = 0;
	b->attr.min_rnr_timer = 0;
	again();
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	w.m.advance(1000 * sim::second);
	expect_none(*a->scq);
	ASSERT_EQ(b->recv(2, {mr.sge()}), 0);
	w.m.advance(rnr_ns(0));
	expect_wc(*a->scq, {.id = 1});
	expect_wc(*b->rcq, {.id = 2});
}

TEST_F(Timers, RnrCounterStartsAnewAfterEachMessage)
{
	a->attr.rnr_retry = 2;
	b->attr.min_rnr_timer = 10;
	again();
	for (int i = 0; i < 10; i++) {
		ASSERT_EQ(a->post(wr_send(i, {mr.sge()})), 0);
		w.m.advance(2 * rnr_ns(10) - 1);
		ASSERT_EQ(b->recv(i, {mr.sge()}), 0);
		w.m.advance(1);
		expect_wc(*a->scq, {.id = uint64_t(i)});
		expect_wc(*b->rcq, {.id = uint64_t(i)});
		EXPECT_EQ(a->query().rnr_retry, 2);
	}
}

TEST_F(Timers, Case083_RnrWaitIsNotCutShort)
{
	/* The ack timeout is far shorter than the RNR wait, and retries are few. */
	a->attr.timeout = 1;
	a->attr.retry_cnt = 1;
	a->attr.rnr_retry = 1;
	b->attr.min_rnr_timer = 0;
	again();
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	w.m.advance(rnr_ns(0) - 1);
	expect_none(*a->scq);
	ASSERT_EQ(b->recv(2, {mr.sge()}), 0);
	w.m.advance(1);
	expect_wc(*a->scq, {.id = 1});
}

TEST_F(Timers, PostingDuringAnRnrWaitOnlyQueues)
{
	b->attr.min_rnr_timer = 20;
	again();
	uint64_t naks = w.dev().counter(RVT_CNT_RNR_NAKS);

	for (int i = 0; i < 5; i++)
		ASSERT_EQ(a->post(wr_send(i, {mr.sge()})), 0);
	w.m.settle();
	EXPECT_EQ(w.dev().counter(RVT_CNT_RNR_NAKS), naks + 1);
	for (int i = 0; i < 5; i++)
		ASSERT_EQ(b->recv(i, {mr.sge()}), 0);
	expect_none(*a->scq);
	w.m.advance(rnr_ns(20));
	expect_run(*a->scq, {0, 1, 2, 3, 4}, RVT_WC_SUCCESS);
}

TEST_F(Timers, Case086_OnlyReceivesAreMissed)
{
	a->attr.rnr_retry = 0;
	again();
	ASSERT_EQ(a->post(wr_write(1, {mr.sge()}, mr.iova, mr.key)), 0);
	ASSERT_EQ(a->post(wr_read(2, {mr.sge()}, mr.iova, mr.key)), 0);
	ASSERT_EQ(a->post(wr_faa(3, mr.sge(0, 8), mr.iova, mr.key, 1)), 0);
	expect_run(*a->scq, {1, 2, 3}, RVT_WC_SUCCESS);
	ASSERT_EQ(a->post(wr_write_imm(4, {mr.sge()}, mr.iova, mr.key, 1)), 0);
	expect_wc(*a->scq, {.id = 4, .status = RVT_WC_RNR_RETRY_EXC_ERR});
}

TEST_F(Timers, WriteWithImmediateWaitsWithoutWriting)
{
	Mr &to = w.add_mr(64);

	b->attr.min_rnr_timer = 5;
	again();
	mr.write(0, pattern(64));
	to.fill('.');
	ASSERT_EQ(a->post(wr_write_imm(1, {mr.sge(0, 64)}, to.iova, to.key, 7)), 0);
	w.m.settle();
	ASSERT_EQ(b->recv(2, {}), 0);
	w.m.advance(rnr_ns(5));
	expect_wc(*a->scq, {.id = 1});
	expect_wc(*b->rcq, {.id = 2, .opcode = RVT_WC_RECV_RDMA_WITH_IMM, .byte_len = 64});
	EXPECT_EQ(to.read(0, 64), pattern(64));
}

/* --- timeout and retry_cnt: a peer that is not there ----------------------------------- */

TEST_F(Timers, AbsentPeerEveryTimeoutAndCount)
{
	for (unsigned int timeout = 1; timeout < 32; timeout++) {
		for (unsigned int retries : {0u, 1u, 3u, 7u}) {
			SCOPED_TRACE(testing::Message()
				     << "timeout " << timeout << " retry_cnt " << retries);
			a->attr.timeout = static_cast<uint8_t>(timeout);
			a->attr.retry_cnt = static_cast<uint8_t>(retries);
			again();
			ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
			uint64_t repeated = w.dev().counter(RVT_CNT_RETRIES);

			ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
			ASSERT_EQ(a->post(wr_send(2, {mr.sge()})), 0);
			w.m.settle();
			w.m.advance((retries + 1) * timeout_ns(timeout) - 1);
			expect_none(*a->scq);
			expect_state(*a, RVT_QPS_RTS);
			EXPECT_EQ(w.dev().counter(RVT_CNT_RETRIES), repeated + retries);
			w.m.advance(1);
			expect_wc(*a->scq,
				  {.id = 1, .status = RVT_WC_RETRY_EXC_ERR, .opcode = RVT_WC_SEND});
			expect_wc(*a->scq, {.id = 2, .status = RVT_WC_WR_FLUSH_ERR});
			expect_none(*a->scq);
			expect_state(*a, RVT_QPS_ERR);
			EXPECT_EQ(a->query().retry_cnt, retries);
			EXPECT_EQ(a->query().timeout, timeout);
		}
	}
}

TEST_F(Timers, TimeoutZeroIsEndless)
{
	a->attr.timeout = 0;
	a->attr.retry_cnt = 0;
	again();
	ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	w.m.advance(5000 * sim::second);
	expect_none(*a->scq);
	expect_state(*a, RVT_QPS_RTS);
	ASSERT_EQ(b->to_init(), 0);
	ASSERT_EQ(b->recv(2, {mr.sge()}), 0);
	ASSERT_EQ(b->to_rtr(), 0);
	w.m.advance(20 * sim::second);
	expect_wc(*a->scq, {.id = 1});
	expect_wc(*b->rcq, {.id = 2});
}

TEST_F(Timers, Case177_ALatePeerGetsTheMessage)
{
	/* The peer becomes ready between the k-th and the next attempt. */
	for (unsigned int k = 0; k <= 7; k++) {
		SCOPED_TRACE(k);
		a->attr.timeout = 10;
		a->attr.retry_cnt = 7;
		again();
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
		ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
		w.m.advance(k * timeout_ns(10) + timeout_ns(10) / 2);
		expect_none(*a->scq);
		ASSERT_EQ(b->to_init(), 0);
		ASSERT_EQ(b->recv(2, {mr.sge()}), 0);
		ASSERT_EQ(b->to_rtr(), 0);
		if (k == 7) {
			/* All attempts were made: too late. */
			w.m.advance(timeout_ns(10));
			expect_wc(*a->scq, {.id = 1, .status = RVT_WC_RETRY_EXC_ERR});
			expect_none(*b->rcq);
			break;
		}
		w.m.advance(timeout_ns(10) / 2 - 1);
		expect_none(*b->rcq);
		w.m.advance(1);
		expect_wc(*a->scq, {.id = 1});
		expect_wc(*b->rcq, {.id = 2});
		ASSERT_EQ(b->to_rts(), 0);
		expect_works(*b, *a);
	}
}

TEST_F(Timers, APeerInInitIsNotReady)
{
	a->attr.timeout = 5;
	a->attr.retry_cnt = 2;
	again();
	ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	ASSERT_EQ(b->to_init(), 0);
	ASSERT_EQ(b->recv(2, {mr.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	w.m.advance(3 * timeout_ns(5) - 1);
	expect_none(*a->scq);
	w.m.advance(1);
	expect_wc(*a->scq, {.id = 1, .status = RVT_WC_RETRY_EXC_ERR});
	expect_none(*b->rcq);
}

TEST_F(Timers, APeerInErrOrDestroyed)
{
	for (bool destroyed : {false, true}) {
		a->attr.timeout = 5;
		a->attr.retry_cnt = 2;
		again();
		if (destroyed)
			b->destroy();
		else
			ASSERT_EQ(b->to(RVT_QPS_ERR), 0);
		ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
		w.m.advance(3 * timeout_ns(5) - 1);
		expect_none(*a->scq);
		w.m.advance(1);
		expect_wc(*a->scq, {.id = 1, .status = RVT_WC_RETRY_EXC_ERR});
	}
}

TEST_F(Timers, RetryCounterStartsAnewAfterProgress)
{
	a->attr.timeout = 5;
	a->attr.retry_cnt = 2;
	again();
	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
		b->attr.rq_psn = a->query().sq_psn;
		ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
		/* Just before the last attempt, each time. */
		w.m.advance(2 * timeout_ns(5) - 1);
		ASSERT_EQ(b->to_init(), 0);
		ASSERT_EQ(b->recv(2, {mr.sge()}), 0);
		ASSERT_EQ(b->to_rtr(), 0);
		ASSERT_EQ(b->to_rts(), 0);
		w.m.advance(1);
		expect_wc(*b->rcq, {.id = 2});
		expect_wc(*a->scq, {.id = 1});
	}
}

/* --- ending with a timer pending ------------------------------------------------------ */

struct End {
	const char *name;
	int kind; /* 0 RESET, 1 ERR, 2 destroy, 3 SQD then ERR */
	bool rnr; /* else the retry timer is pending */
};

class TimerPending : public testing::TestWithParam<End>
{
};
INSTANTIATE_TEST_SUITE_P(Ends, TimerPending,
			 testing::Values(End{"ResetRnr", 0, true}, End{"ErrRnr", 1, true},
					 End{"DestroyRnr", 2, true}, End{"SqdErrRnr", 3, true},
					 End{"ResetRetry", 0, false}, End{"ErrRetry", 1, false},
					 End{"DestroyRetry", 2, false},
					 End{"SqdErrRetry", 3, false}),
			 [](const auto &info) { return std::string(info.param.name); });

TEST_P(TimerPending, Case088_NothingHappensAfterwards)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC);
	Mr &mr = w.add_mr(64);

	b->attr.min_rnr_timer = 20;
	a->attr.timeout = 12;
	ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
	ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	w.connect(*a, *b);
	if (!GetParam().rnr) {
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	}
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	ASSERT_EQ(a->post(wr_send(2, {mr.sge()})), 0);
	w.m.settle();
	ASSERT_EQ(w.m.pending_timers(), 1u);
	switch (GetParam().kind) {
	case 0:
		ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
		break;
	case 1:
		ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
		break;
	case 2:
		a->destroy();
		break;
	case 3:
		ASSERT_EQ(a->to(RVT_QPS_SQD), 0);
		EXPECT_TRUE(a->query().sq_draining);
		ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
		break;
	}
	w.m.settle();
	if (GetParam().kind == 1 || GetParam().kind == 3) {
		expect_run(*a->scq, {1, 2}, RVT_WC_WR_FLUSH_ERR);
		/* Later posts are flushed without waiting for a timer. */
		ASSERT_EQ(a->post(wr_send(3, {mr.sge()})), 0);
		expect_run(*a->scq, {3}, RVT_WC_WR_FLUSH_ERR);
	} else {
		EXPECT_EQ(w.m.pending_timers(), 0u);
	}
	if (GetParam().rnr) {
		ASSERT_EQ(b->recv(9, {mr.sge()}), 0);
	}
	uint64_t naks = w.dev().counter(RVT_CNT_RNR_NAKS);
	w.m.advance(100 * sim::second);
	expect_none(*a->scq);
	expect_none(*b->rcq);
	EXPECT_EQ(w.dev().counter(RVT_CNT_RNR_NAKS), naks);
	EXPECT_EQ(w.dev().counter(RVT_CNT_ERR_RETRY), 0u);
}

TEST_F(Timers, ResetAndReconnectDuringAnRnrWait)
{
	b->attr.min_rnr_timer = 20;
	again();
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
		w.m.advance(rnr_ns(20) / 2);
		again();
		expect_works(*a, *b);
		EXPECT_EQ(w.m.pending_timers(), 0u);
	}
}

} // namespace
