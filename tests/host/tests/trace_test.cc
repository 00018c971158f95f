// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the core tells those who watch: each thing once, in the order in which
 * it happens, with the right numbers; and nothing that nobody watches.
 */
#include "trace.h"
#include "util.h"

namespace
{

using testing::ElementsAre;
using testing::IsEmpty;

/* The beginning of every line about a queue pair. */
std::string of(const char *event, const Qp &qp)
{
	return std::string(event) + " lid=" + std::to_string(qp.dev->lid) +
	       " qpn=" + std::to_string(qp.num) + " ";
}

std::string num(uint64_t n)
{
	return std::to_string(n);
}

const std::initializer_list<rvt_trace_event> requests = {
	RVT_TRACE_POST_SEND, RVT_TRACE_POST_RECV, RVT_TRACE_EXECUTE,
	RVT_TRACE_WAIT,	     RVT_TRACE_COMPLETE,
};

TEST(Trace, AMessageFromPostToCompletion)
{
	for (bool user : {true, false}) {
		World w(user);
		auto [a, b] = w.pair();
		Mr &from = w.add_mr(256), &to = w.add_mr(256);
		TraceRecorder trace(requests);

		ASSERT_EQ(b->recv(0x77, {to.sge()}), 0);
		ASSERT_EQ(a->post(wr_send(0x123456789a, {from.sge(0, 100)})), 0);
		w.m.settle();
		auto lines = trace.take();
		if (!user) {
			ASSERT_FALSE(lines.empty());
			EXPECT_EQ(lines[0], of("post_recv", *b) + "wr_id=119 num_sge=1");
			lines.erase(lines.begin());
		}
		EXPECT_THAT(
			lines,
			ElementsAre(
				of("post_send", *a) + "wr_id=78187493530 opcode=2 bytes=100",
				of("execute", *a) +
					"wr_id=78187493530 opcode=2 bytes=100 dest=" + num(b->num),
				of("complete", *b) + "wr_id=119 opcode=128 status=0 bytes=100",
				of("complete", *a) +
					"wr_id=78187493530 opcode=0 status=0 bytes=100"));
	}
}

TEST(Trace, OnlyWhatEntersAQueueCompletes)
{
	World w;
	auto [a, b] = w.pair();
	Mr &mem = w.add_mr(64);
	TraceRecorder trace({RVT_TRACE_COMPLETE, RVT_TRACE_EXECUTE});

	ASSERT_EQ(a->post(wr_write(1, {mem.sge(0, 8)}, mem.iova, mem.key, 0)), 0);
	w.m.settle();
	EXPECT_THAT(trace.take(), ElementsAre(of("execute", *a) +
					      "wr_id=1 opcode=0 bytes=8 dest=" + num(b->num)));
}

TEST(Trace, DatagramsNameTheirOwnDestination)
{
	World w;
	Qp &a = w.add_ud(), &b = w.add_ud();
	Mr &from = w.add_mr(64), &to = w.add_mr(256);
	TraceRecorder trace({RVT_TRACE_EXECUTE});

	ASSERT_EQ(b.recv(1, {to.sge()}), 0);
	ASSERT_EQ(a.post(w.ud_to(a, b, 2, {from.sge(0, 24)})), 0);
	w.m.settle();
	EXPECT_THAT(trace.take(),
		    ElementsAre(of("execute", a) + "wr_id=2 opcode=2 bytes=24 dest=" + num(b.num)));
}

TEST(Trace, EachRnrWaitAndItsEnd)
{
	World w;
	auto [a, b] = w.pair();
	Mr &mem = w.add_mr(64);

	/* Two waits, three attempts. */
	a->attr.rnr_retry = 2;
	b->attr.min_rnr_timer = 5;
	ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
	ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	w.connect(*a, *b);
	TraceRecorder trace({RVT_TRACE_EXECUTE, RVT_TRACE_WAIT, RVT_TRACE_COMPLETE,
			     RVT_TRACE_QP_ERROR, RVT_TRACE_QP_STATE});

	ASSERT_EQ(a->post(wr_send(7, {mem.sge(0, 8)})), 0);
	w.m.settle();
	w.m.advance(sim::second);
	const std::string attempt = of("execute", *a) +
				    "wr_id=7 opcode=2 bytes=8 dest=" + num(b->num);
	const std::string wait = of("wait", *a) + "for=0 wr_id=7 ns=" + num(rnr_ns(5)) + " left=";

	EXPECT_THAT(trace.take(),
		    ElementsAre(attempt, wait + "2", attempt, wait + "1", attempt,
				of("complete", *a) + "wr_id=7 opcode=0 status=13 bytes=8",
				of("qp_error", *a) + "cause=1 status=13",
				of("qp_state", *a) + "from=3 to=6"));
}

TEST(Trace, EachWaitForAnAnswer)
{
	World w;
	auto [a, b] = w.pair();
	Mr &mem = w.add_mr(64);

	a->attr.retry_cnt = 1;
	a->attr.timeout = 5;
	ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
	ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	w.connect(*a, *b);
	b->destroy();
	TraceRecorder trace({RVT_TRACE_WAIT, RVT_TRACE_COMPLETE});

	ASSERT_EQ(a->post(wr_send(7, {mem.sge(0, 8)})), 0);
	w.m.advance(sim::second);
	const std::string wait = of("wait", *a) + "for=1 wr_id=7 ns=" + num(timeout_ns(5)) +
				 " left=";

	EXPECT_THAT(trace.take(),
		    ElementsAre(wait + "1", wait + "0",
				of("complete", *a) + "wr_id=7 opcode=0 status=12 bytes=8"));
}

TEST(Trace, EachChangeOfState)
{
	World w;
	Qp &a = w.add_qp(RVT_QPT_RC);
	TraceRecorder trace({RVT_TRACE_QP_STATE, RVT_TRACE_QP_ERROR});

	w.connect(a, a);
	/* A modify that is refused, or that changes no state, is none. */
	EXPECT_EQ(a.to(RVT_QPS_INIT), einval);
	a.attr.state = RVT_QPS_RTS;
	EXPECT_EQ(a.modify(RVT_QP_STATE | RVT_QP_MIN_RNR_TIMER), 0);
	EXPECT_EQ(a.to(RVT_QPS_SQD), 0);
	EXPECT_EQ(a.to(RVT_QPS_ERR), 0);
	EXPECT_EQ(a.to(RVT_QPS_ERR), 0);
	EXPECT_EQ(a.to(RVT_QPS_RESET), 0);
	EXPECT_THAT(
		trace.take(),
		ElementsAre(of("qp_state", a) + "from=0 to=1", of("qp_state", a) + "from=1 to=2",
			    of("qp_state", a) + "from=2 to=3", of("qp_state", a) + "from=3 to=4",
			    of("qp_error", a) + "cause=0 status=5",
			    of("qp_state", a) + "from=4 to=6", of("qp_state", a) + "from=6 to=0"));
	a.destroy();
	EXPECT_THAT(trace.take(), IsEmpty());
}

TEST(Trace, WhyAQueuePairWentToErr)
{
	World w;
	auto [a, b] = w.pair();
	Mr &from = w.add_mr(64), &to = w.add_mr(64);
	TraceRecorder trace({RVT_TRACE_QP_ERROR});

	/* Longer than the receive: both sides end, the responder first. */
	ASSERT_EQ(b->recv(1, {to.sge(0, 8)}), 0);
	ASSERT_EQ(a->post(wr_send(2, {from.sge(0, 16)})), 0);
	w.m.settle();
	EXPECT_THAT(trace.take(), ElementsAre(of("qp_error", *b) + "cause=2 status=1",
					      of("qp_error", *a) + "cause=1 status=9"));

	/* Memory taken away under a request that waits for a receive. */
	auto [c, d] = w.pair();
	ASSERT_EQ(c->post(wr_send(3, {from.sge(0, 16)})), 0);
	w.m.settle();
	from.destroy();
	EXPECT_THAT(trace.take(), ElementsAre(of("qp_error", *c) + "cause=3 status=4"));

	/* A queue for one completion gets a second. */
	auto [e, f] = w.pair(RVT_QPT_RC, {.send_cq = &w.add_cq(1)});
	ASSERT_EQ(e->post(wr_write(4, {}, 0, 0)), 0);
	ASSERT_EQ(e->post(wr_write(5, {}, 0, 0)), 0);
	w.m.settle();
	EXPECT_THAT(trace.take(), ElementsAre(of("qp_error", *e) + "cause=4 status=5"));
	(void)d;
	(void)f;
}

TEST(Trace, TheLifeOfRegions)
{
	World w(false);
	auto [a, b] = w.pair();
	TraceRecorder trace({RVT_TRACE_MR});
	Mr &mr = w.add_mr(100, RVT_ACCESS_LOCAL_WRITE | RVT_ACCESS_REMOTE_READ);
	const std::string what = "mr lid=1 what=";
	auto region = [](const Mr &r, uint32_t access) {
		return " key=" + num(r.key) + " iova=" + num(r.iova) + " length=" + num(r.length) +
		       " access=" + num(access);
	};

	mr.destroy();
	EXPECT_THAT(trace.take(),
		    ElementsAre(what + "0" + region(mr, 5), what + "1" + region(mr, 5)));

	Mr &fast = w.add_fast_mr(8192);
	EXPECT_THAT(trace.take(), IsEmpty());
	ASSERT_EQ(a->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	ASSERT_EQ(a->post(wr_local_inv(2, fast.key)), 0);
	w.m.settle();
	EXPECT_THAT(trace.take(), ElementsAre(what + "2" + region(fast, access_all),
					      what + "3" + region(fast, access_all)));
	/* Nothing to invalidate any more, and nothing to end. */
	ASSERT_EQ(a->post(wr_local_inv(3, fast.key)), 0);
	w.m.settle();
	fast.destroy();
	EXPECT_THAT(trace.take(), IsEmpty());
	(void)b;
}

TEST(Trace, CompletionQueuesArmedResizedOverrun)
{
	World w;
	Cq &cq = w.add_cq(1);
	auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &cq});
	TraceRecorder trace({RVT_TRACE_CQ});

	cq.arm();
	cq.arm(true);
	ASSERT_EQ(cq.resize(2), 0);
	ASSERT_EQ(cq.resize(0), einval);
	for (uint64_t id = 0; id < 4; id++)
		(void)a->post(wr_write(id, {}, 0, 0));
	w.m.settle();
	EXPECT_THAT(trace.take(), ElementsAre("cq lid=1 what=0 cqe=1", "cq lid=1 what=1 cqe=1",
					      "cq lid=1 what=2 cqe=2", "cq lid=1 what=3 cqe=2"));
	(void)b;
}

TEST(Trace, WhatNobodyWatchesIsNotTold)
{
	World w;
	auto [a, b] = w.pair();
	{
		TraceRecorder trace(requests);
	}
	TraceRecorder trace({});
	expect_works(*a, *b);
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	w.m.settle();
	EXPECT_THAT(trace.take(), IsEmpty());
}

} // namespace
