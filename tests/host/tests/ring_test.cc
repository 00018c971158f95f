// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Send rings, receive rings and completion rings at every fill and offset. */
#include "util.h"

namespace
{

/* Both kinds of consumers: a user with mapped rings, and the kernel. */
class Rings : public testing::TestWithParam<bool>
{
protected:
	World w{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Consumers, Rings, testing::Bool(),
			 [](const auto &info) { return info.param ? "User" : "Kernel"; });

/* With k receives posted exactly k messages arrive, for every k and offset. */
TEST_P(Rings, Case019_ExactlyThePostedReceivesAreConsumed)
{
	constexpr uint32_t size = 5;
	QpOpts opts = {.max_send_wr = 8, .max_recv_wr = size};
	auto [a, b] = w.pair(RVT_QPT_UC, opts, opts);
	Mr &mr = w.add_mr(64);
	uint64_t id = 1;

	for (uint32_t offset = 0; offset <= size; offset++) {
		for (uint32_t k = 0; k <= size; k++) {
			SCOPED_TRACE(testing::Message() << "offset " << offset << " k " << k);
			for (uint32_t i = 0; i < k; i++)
				ASSERT_EQ(b->recv(id + i, {mr.sge()}), 0);
			if (k == size) {
				EXPECT_EQ(b->recv(99, {mr.sge()}), enomem);
			}
			/* One message more than there are receives: UC loses it. */
			for (uint32_t i = 0; i <= k; i++) {
				ASSERT_EQ(a->post(wr_send(i, {mr.sge()})), 0);
				expect_wc(*a->scq, {.id = i});
			}
			for (uint32_t i = 0; i < k; i++)
				expect_wc(*b->rcq, {.id = id + i, .opcode = RVT_WC_RECV});
			expect_none(*b->rcq);
			id += k;
		}
		/* Move the ring on by one. */
		ASSERT_EQ(b->recv(1000, {mr.sge()}), 0);
		ASSERT_EQ(a->post(wr_send(0, {mr.sge()})), 0);
		expect_wc(*a->scq, {.id = 0});
		expect_wc(*b->rcq, {.id = 1000});
	}
}

TEST_P(Rings, Case107_SendRingHoldsExactlyMaxSendWr)
{
	constexpr uint32_t size = 7;
	QpOpts opts = {.max_send_wr = size};
	auto [a, b] = w.pair(RVT_QPT_RC, opts, opts);
	Mr &mr = w.add_mr(8);

	b->attr.min_rnr_timer = 1;
	for (uint32_t offset = 0; offset <= size + 1; offset++) {
		SCOPED_TRACE(offset);
		/* No receive: the first waits for RNR and the others behind it. */
		for (uint32_t i = 0; i < size; i++)
			ASSERT_EQ(a->post(wr_send(i, {mr.sge()},
						  i == size - 1 ? RVT_SEND_SIGNALED : 0)),
				  0)
				<< i;
		EXPECT_EQ(a->post(wr_send(99, {mr.sge()})), enomem);
		for (uint32_t i = 0; i < size; i++)
			ASSERT_EQ(b->recv(i, {mr.sge()}), 0);
		w.m.advance(sim::second);
		/* The one signalled completion frees all before it. */
		expect_wc(*a->scq, {.id = size - 1});
		expect_none(*a->scq);
		for (uint32_t i = 0; i < size; i++)
			expect_wc(*b->rcq, {.id = i});
		/* Move on by one. */
		ASSERT_EQ(b->recv(7, {mr.sge()}), 0);
		ASSERT_EQ(a->post(wr_send(8, {mr.sge()})), 0);
		expect_wc(*a->scq, {.id = 8});
		expect_wc(*b->rcq, {.id = 7});
	}
}

TEST_P(Rings, CompletionRingAtEveryFillAndOffset)
{
	constexpr uint32_t cqe = 5;
	Cq &scq = w.add_cq(cqe);
	QpOpts opts = {.max_send_wr = 16, .send_cq = &scq};
	auto [a, b] = w.pair(RVT_QPT_RC, opts, {});
	Mr &mr = w.add_mr(8);

	EXPECT_EQ(rvt_core_cq_cqe(scq.raw), cqe);
	for (uint32_t offset = 0; offset <= cqe; offset++) {
		for (uint32_t k = 0; k <= cqe; k++) {
			for (uint32_t i = 0; i < k; i++)
				ASSERT_EQ(a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key)), 0);
			w.m.settle();
			for (uint32_t i = 0; i < k; i++)
				expect_wc(scq, {.id = i, .opcode = RVT_WC_RDMA_WRITE});
			expect_none(scq);
		}
		ASSERT_EQ(a->post(wr_write(0, {mr.sge()}, mr.iova, mr.key)), 0);
		expect_wc(scq, {.id = 0});
	}
	expect_state(*a, RVT_QPS_RTS);
	EXPECT_TRUE(scq.events.empty());
}

TEST_P(Rings, Case001_OverrunRaisesCqErrOnceAndQpsGoToErr)
{
	Cq &scq = w.add_cq(3);
	QpOpts opts = {.send_cq = &scq};
	auto [a, b] = w.pair(RVT_QPT_RC, opts, {});
	auto [c, d] = w.pair(RVT_QPT_RC, opts, {});
	Mr &mr = w.add_mr(8);
	uint8_t before[3 * sizeof(rvt_wc)];

	for (uint32_t i = 0; i < 3; i++)
		ASSERT_EQ(a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key)), 0);
	w.m.settle();
	EXPECT_TRUE(scq.events.empty());
	expect_state(*a, RVT_QPS_RTS);
	if (scq.ring)
		memcpy(before, scq.ring->entry, sizeof(before));

	ASSERT_EQ(a->post(wr_write(3, {mr.sge()}, mr.iova, mr.key)), 0);
	w.m.settle();
	EXPECT_THAT(scq.events, testing::ElementsAre(RVT_EVENT_CQ_ERR));
	expect_state(*a, RVT_QPS_ERR);
	expect_state(*c, RVT_QPS_RTS);
	EXPECT_GE(w.dev().counter(RVT_CNT_CQ_OVERRUNS), 1u);
	if (scq.ring) {
		EXPECT_EQ(memcmp(before, scq.ring->entry, sizeof(before)), 0);
	}

	/* What was in the ring can be polled; afterwards it stays unusable. */
	expect_run(scq, {0, 1, 2}, RVT_WC_SUCCESS);
	expect_none(scq);
	ASSERT_EQ(c->post(wr_write(4, {mr.sge()}, mr.iova, mr.key)), 0);
	expect_none(scq);
	expect_state(*c, RVT_QPS_ERR);
	EXPECT_THAT(scq.events, testing::ElementsAre(RVT_EVENT_CQ_ERR));
	expect_state(*b, RVT_QPS_RTS);
	expect_state(*d, RVT_QPS_RTS);
}

TEST_P(Rings, Case001_OverrunOfTheReceiveQueuesCq)
{
	Cq &rcq = w.add_cq(1);
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.recv_cq = &rcq});
	Mr &mr = w.add_mr(8);

	for (int i = 0; i < 4; i++)
		ASSERT_EQ(b->recv(i, {mr.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	expect_wc(*a->scq, {.id = 1});
	ASSERT_EQ(a->post(wr_send(2, {mr.sge()})), 0);
	w.m.settle();
	expect_state(*b, RVT_QPS_ERR);
	EXPECT_THAT(rcq.events, testing::ElementsAre(RVT_EVENT_CQ_ERR));
	/* The message was carried out before its receive could not complete. */
	EXPECT_TRUE(a->scq->poll().has_value());
	expect_wc(rcq, {.id = 0, .opcode = RVT_WC_RECV});
	expect_none(rcq);
}

TEST_P(Rings, Case001_OverrunByFlushing)
{
	Cq &rcq = w.add_cq(2);
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.recv_cq = &rcq});
	Mr &mr = w.add_mr(8);

	for (int i = 0; i < 6; i++)
		ASSERT_EQ(b->recv(i, {mr.sge()}), 0);
	ASSERT_EQ(b->to(RVT_QPS_ERR), 0);
	w.m.settle();
	EXPECT_THAT(rcq.events, testing::ElementsAre(RVT_EVENT_CQ_ERR));
	expect_run(rcq, {0, 1}, RVT_WC_WR_FLUSH_ERR);
	expect_none(rcq);
	expect_state(*b, RVT_QPS_ERR);
	EXPECT_EQ(b->to(RVT_QPS_RESET), 0);
}

TEST_P(Rings, Case003_ResizeKeepsWaitingEntriesInOrder)
{
	constexpr uint32_t cqe = 6;

	for (uint32_t offset = 0; offset <= cqe; offset++) {
		for (uint32_t waiting = 0; waiting <= cqe; waiting++) {
			for (uint32_t to : {waiting ? waiting : 1u, waiting + 1, 20u}) {
				SCOPED_TRACE(testing::Message()
					     << "offset " << offset << " waiting " << waiting
					     << " to " << to);
				Cq &scq = w.add_cq(cqe);
				auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &scq}, {});
				Mr &mr = w.add_mr(8);

				for (uint32_t i = 0; i < offset; i++) {
					ASSERT_EQ(a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key)),
						  0);
					expect_wc(scq, {.id = i});
				}
				for (uint32_t i = 0; i < waiting; i++)
					ASSERT_EQ(a->post(wr_write(100 + i, {mr.sge()}, mr.iova,
								   mr.key)),
						  0);
				w.m.settle();
				if (waiting > 1) {
					EXPECT_EQ(scq.resize(waiting - 1), einval);
				}
				ASSERT_EQ(scq.resize(to), 0);
				EXPECT_EQ(rvt_core_cq_cqe(scq.raw), to);
				for (uint32_t i = 0; i < waiting; i++)
					expect_wc(scq, {.id = 100 + i});
				for (uint32_t i = 0; i < to && i < 16; i++)
					ASSERT_EQ(a->post(wr_write(200 + i, {mr.sge()}, mr.iova,
								   mr.key)),
						  0);
				for (uint32_t i = 0; i < to && i < 16; i++)
					expect_wc(scq, {.id = 200 + i});
				EXPECT_TRUE(scq.events.empty());
				a->destroy();
				b->destroy();
				scq.destroy();
				mr.destroy();
			}
		}
	}
}

TEST_P(Rings, Case005_ResizeBelowOccupancyChangesNothing)
{
	Cq &scq = w.add_cq(8);
	auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &scq}, {});
	Mr &mr = w.add_mr(8);

	for (int i = 0; i < 5; i++)
		ASSERT_EQ(a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key)), 0);
	w.m.settle();
	EXPECT_EQ(scq.resize(4), einval);
	EXPECT_EQ(scq.resize(0), einval);
	EXPECT_EQ(rvt_core_cq_cqe(scq.raw), 8u);
	expect_run(scq, {0, 1, 2, 3, 4}, RVT_WC_SUCCESS);
	expect_none(scq);
}

TEST_P(Rings, ResizeLeavesTheOverrunMark)
{
	Cq &scq = w.add_cq(1);
	auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &scq}, {});
	auto [c, d] = w.pair(RVT_QPT_RC, {.send_cq = &scq}, {});
	Mr &mr = w.add_mr(8);

	for (int i = 0; i < 2; i++)
		ASSERT_EQ(a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key)), 0);
	w.m.settle();
	ASSERT_EQ(scq.events.size(), 1u);
	ASSERT_EQ(scq.resize(10), 0);
	expect_wc(scq, {.id = 0});
	ASSERT_EQ(c->post(wr_write(5, {mr.sge()}, mr.iova, mr.key)), 0);
	expect_none(scq);
	expect_state(*c, RVT_QPS_ERR);
	EXPECT_EQ(scq.events.size(), 1u);
}

TEST_P(Rings, Case013_CqSizesOutOfRange)
{
	Cq *cq = nullptr;
	rvt_core_cq *raw = nullptr;
	rvt_cq_ring dummy = {};

	(void)cq;
	EXPECT_EQ(rvt_core_cq_create(w.dev().raw, 0, &dummy, nullptr, &raw), einval);
	EXPECT_EQ(rvt_core_cq_create(w.dev().raw, RVT_MAX_CQE + 1, &dummy, nullptr, &raw), einval);
	EXPECT_EQ(rvt_core_cq_create(w.dev().raw, ~0u, &dummy, nullptr, &raw), einval);
}

TEST_P(Rings, LargestCqCanBeMadeAndResizedTo)
{
	Cq &cq = w.add_cq(RVT_MAX_CQE);

	EXPECT_EQ(rvt_core_cq_cqe(cq.raw), static_cast<uint32_t>(RVT_MAX_CQE));
	EXPECT_EQ(cq.resize(1), 0);
	EXPECT_EQ(cq.resize(RVT_MAX_CQE), 0);
}

/* The user's copy of the indices is only his own harm. */
TEST(PoisonedRings, Case007_CqIndices)
{
	static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 6, 0x7fffffff, 0x80000000, 0xffffffff};

	for (uint32_t head : values) {
		for (uint32_t tail : values) {
			World w;
			Cq &scq = w.add_cq(4);
			auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &scq}, {});
			Mr &mr = w.add_mr(8);

			for (int i = 0; i < 7; i++) {
				scq.ring->head = head;
				scq.ring->tail = tail;
				a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key));
				w.m.settle();
				scq.arm(false, true);
			}
			scq.ring->head = head;
			scq.ring->tail = tail;
			scq.resize(9);
			scq.ring->head = head;
			scq.ring->tail = tail;
			scq.resize(2);
			EXPECT_LE(scq.events.size(), 1u);
		}
	}
}

TEST(PoisonedRings, Case022_ReceiveIndices)
{
	static const uint32_t values[] = {0, 1, 2, 3, 4, 5, 6, 0x7fffffff, 0x80000000, 0xffffffff};

	for (bool shared : {false, true}) {
		for (uint32_t head : values) {
			for (uint32_t tail : values) {
				World w;
				Srq *srq = shared ? &w.add_srq(4, 2) : nullptr;
				Cq &rcq = w.add_cq(1000);
				auto [a, b] = w.pair(RVT_QPT_UC, {},
						     {.max_recv_wr = 4,
						      .max_recv_sge = 2,
						      .srq = srq,
						      .recv_cq = &rcq});
				Mr &mr = w.add_mr(8);
				RecvRing &ring = shared ? srq->ring : b->ring;

				for (uint32_t i = 0; i < ring.size; i++) {
					ring.entry(i)->num_sge = 1;
					ring.entry(i)->sge[0] = mr.sge();
				}
				for (int i = 0; i < 7; i++) {
					ring.ring->head = head;
					ring.ring->tail = tail;
					a->post(wr_send(i, {mr.sge()}));
					w.m.settle();
				}
				ring.ring->head = head;
				ring.ring->tail = tail;
				if (shared)
					srq->resize(9);
				rvt_qp_stat stat = b->stat();

				(void)stat;
				b->to(RVT_QPS_ERR);
				w.m.advance(50 * sim::ms);
				b->to(RVT_QPS_RESET);
			}
		}
	}
}

TEST(PoisonedRings, Case020_NumSgeIsNotBelieved)
{
	for (bool shared : {false, true}) {
		for (unsigned int num : {3u, 4u, 97u, 128u, 255u}) {
			World w;
			Srq *srq = shared ? &w.add_srq(4, 2) : nullptr;
			auto [a, b] = w.pair(RVT_QPT_RC, {},
					     {.max_recv_wr = 4, .max_recv_sge = 2, .srq = srq});
			Mr &mr = w.add_mr(8);
			RecvRing &ring = shared ? srq->ring : b->ring;

			ASSERT_EQ(ring.post(1, {mr.sge(), mr.sge()}), 0);
			ASSERT_EQ(ring.post(2, {mr.sge()}), 0);
			ring.entry(0)->num_sge = static_cast<uint8_t>(num);
			ASSERT_EQ(a->post(wr_send(7, {mr.sge()})), 0);
			expect_wc(*a->scq, {.id = 7, .status = RVT_WC_REM_OP_ERR});
			std::optional<rvt_wc> wc = b->rcq->poll();
			ASSERT_TRUE(wc);
			EXPECT_EQ(wc->wr_id, 1u);
			EXPECT_NE(wc->status, static_cast<uint32_t>(RVT_WC_SUCCESS));
			EXPECT_NE(wc->status, static_cast<uint32_t>(RVT_WC_WR_FLUSH_ERR));
			if (!shared)
				expect_wc(*b->rcq, {.id = 2, .status = RVT_WC_WR_FLUSH_ERR});
			expect_state(*a, RVT_QPS_ERR);
			expect_state(*b, RVT_QPS_ERR);
		}
	}
}

TEST(PoisonedRings, RwqeChangedAfterPostingIsReadAsItIs)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC);
	Mr &mr = w.add_mr(64);

	ASSERT_EQ(b->recv(1, {mr.sge(0, 8)}), 0);
	b->ring.entry(0)->wr_id = 77;
	b->ring.entry(0)->sge[0] = mr.sge(32, 8);
	mr.write(0, "ABCDEFGH");
	ASSERT_EQ(a->post(wr_send(7, {mr.sge(0, 8)})), 0);
	expect_wc(*b->rcq, {.id = 77, .byte_len = 8});
	EXPECT_EQ(mr.read(32, 8), "ABCDEFGH");
}

/* A program that posts receives by system call to a mapped ring is refused. */
TEST(RingRules, MappedRingRefusesKernelPosts)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC);
	Srq &srq = w.add_srq();
	Mr &mr = w.add_mr(8);
	rvt_sge sge = mr.sge();

	EXPECT_EQ(rvt_core_recv_post(a->raw, 1, &sge, 1), einval);
	EXPECT_EQ(rvt_core_srq_post(srq.raw, 1, &sge, 1), einval);
	rvt_kernel_wc wc;

	EXPECT_EQ(rvt_core_cq_poll(a->scq->raw, 1, &wc), einval);
}

TEST(RingRules, Case038_KernelPostErrors)
{
	World w(false);
	Qp &qp = w.add_qp(RVT_QPT_RC, {.max_recv_wr = 2, .max_recv_sge = 1});
	Mr &mr = w.add_mr(8);
	Srq &srq = w.add_srq(2, 1);
	Qp &on_srq = w.add_qp(RVT_QPT_RC, {.srq = &srq});

	EXPECT_EQ(qp.recv(1, {mr.sge()}), einval); /* RESET */
	EXPECT_EQ(qp.recv(1, {mr.sge()}), einval); /* and no lock is left behind */
	ASSERT_EQ(qp.to_init(), 0);
	EXPECT_EQ(qp.recv(1, {mr.sge(), mr.sge()}), einval);
	EXPECT_EQ(qp.recv(1, {mr.sge()}), 0);
	EXPECT_EQ(qp.recv(2, {}), 0);
	EXPECT_EQ(qp.recv(3, {mr.sge()}), enomem);
	EXPECT_EQ(srq.recv(1, {mr.sge(), mr.sge()}), einval);
	EXPECT_EQ(srq.recv(1, {mr.sge()}), 0);
	EXPECT_EQ(srq.recv(2, {mr.sge()}), 0);
	EXPECT_EQ(srq.recv(3, {mr.sge()}), enomem);
	ASSERT_EQ(on_srq.to_init(), 0);
	EXPECT_EQ(on_srq.recv(1, {mr.sge()}), einval);
}

TEST(RingRules, KernelPollTakesManyAndTellsTheQp)
{
	World w(false);
	Cq &cq = w.add_cq(32);
	auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &cq}, {});
	Mr &mr = w.add_mr(8);
	rvt_kernel_wc wc[8];

	for (int i = 0; i < 5; i++)
		ASSERT_EQ(a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key)), 0);
	w.m.settle();
	EXPECT_EQ(rvt_core_cq_poll(cq.raw, 0, wc), 0);
	EXPECT_EQ(rvt_core_cq_poll(cq.raw, 3, wc), 3);
	EXPECT_EQ(wc[2].wc.wr_id, 2u);
	EXPECT_EQ(wc[2].qp_ctx, a);
	EXPECT_EQ(rvt_core_cq_poll(cq.raw, 8, wc), 2);
	EXPECT_EQ(rvt_core_cq_poll(cq.raw, 8, wc), 0);
	/* Polling is allowed in interrupts. */
	ASSERT_EQ(a->post(wr_write(9, {mr.sge()}, mr.iova, mr.key)), 0);
	w.m.settle();
	w.m.in_interrupt([&] {
		rvt_kernel_wc one;

		EXPECT_EQ(rvt_core_cq_poll(cq.raw, 1, &one), 1);
		EXPECT_EQ(rvt_core_cq_arm(cq.raw, false, true), 0);
	});
}

/* --- arming ---------------------------------------------------------------- */

class Arming : public Rings
{
protected:
	Cq &rcq = w.add_cq(32);
	std::pair<Qp *, Qp *> p = w.pair(RVT_QPT_RC, {}, {.recv_cq = &rcq});
	Qp *a = p.first, *b = p.second;
	Mr &mr = w.add_mr(8);

	void message(uint32_t flags)
	{
		ASSERT_EQ(b->recv(1, {mr.sge()}), 0);
		ASSERT_EQ(a->post(wr_send(1, {mr.sge()}, flags)), 0);
		w.m.settle();
		a->scq->poll_all();
	}
};
INSTANTIATE_TEST_SUITE_P(Consumers, Arming, testing::Bool(),
			 [](const auto &info) { return info.param ? "User" : "Kernel"; });

TEST_P(Arming, NotArmedNoUpcall)
{
	message(RVT_SEND_SOLICITED);
	EXPECT_EQ(rcq.upcalls, 0u);
}

TEST_P(Arming, OneUpcallPerArm)
{
	rcq.arm();
	EXPECT_EQ(rcq.upcalls, 0u);
	message(0);
	EXPECT_EQ(rcq.upcalls, 1u);
	message(0);
	EXPECT_EQ(rcq.upcalls, 1u);
	rcq.arm();
	message(0);
	EXPECT_EQ(rcq.upcalls, 2u);
}

TEST_P(Arming, SolicitedOnly)
{
	rcq.arm(true);
	message(0);
	EXPECT_EQ(rcq.upcalls, 0u);
	message(RVT_SEND_SOLICITED);
	EXPECT_EQ(rcq.upcalls, 1u);
	message(RVT_SEND_SOLICITED);
	EXPECT_EQ(rcq.upcalls, 1u);
}

TEST_P(Arming, SolicitedNeverWeakensNext)
{
	rcq.arm(false);
	rcq.arm(true);
	message(0);
	EXPECT_EQ(rcq.upcalls, 1u);
	rcq.arm(true);
	rcq.arm(false);
	message(0);
	EXPECT_EQ(rcq.upcalls, 2u);
}

TEST_P(Arming, AFailedCompletionIsSolicited)
{
	ASSERT_EQ(b->recv(1, {mr.sge()}), 0);
	rcq.arm(true);
	a->scq->arm(true);
	ASSERT_EQ(b->to(RVT_QPS_ERR), 0);
	w.m.settle();
	EXPECT_EQ(rcq.upcalls, 1u);
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()})), 0);
	w.m.settle();
	EXPECT_EQ(a->scq->upcalls, 1u);
}

TEST_P(Arming, ASuccessfulSendIsNeverSolicited)
{
	a->scq->arm(true);
	ASSERT_EQ(b->recv(1, {mr.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge()}, RVT_SEND_SOLICITED | RVT_SEND_SIGNALED)), 0);
	w.m.settle();
	EXPECT_EQ(a->scq->upcalls, 0u);
	expect_wc(*a->scq, {.id = 1});
}

TEST_P(Arming, Case008_ReportMissed)
{
	EXPECT_EQ(rcq.arm(false, true), 0);
	message(0);
	EXPECT_EQ(rcq.arm(false, true), 1);
	EXPECT_EQ(rcq.arm(false, false), 0);
	EXPECT_EQ(rcq.arm(true, true), 1);
	EXPECT_TRUE(rcq.poll());
	EXPECT_EQ(rcq.arm(false, true), 0);
}

// perftest's bandwidth programs take 16 entries for each event and stop when no
// further event comes.
TEST_P(Arming, AUserIsToldOfWhatHeLeftUnread)
{
	const unsigned int at_once = GetParam() ? 1 : 0;

	rcq.arm();
	for (int i = 0; i < 4; i++)
		message(0);
	EXPECT_EQ(rcq.upcalls, 1u);
	for (int left = 4; left > 0; left--) {
		const unsigned int before = rcq.upcalls;

		rcq.arm();
		EXPECT_EQ(rcq.upcalls, before + at_once) << left << " unread";
		EXPECT_TRUE(rcq.poll());
	}
	const unsigned int before = rcq.upcalls;

	rcq.arm();
	EXPECT_EQ(rcq.upcalls, before);
	message(0);
	EXPECT_EQ(rcq.upcalls, before + 1);
}

// The usual loop: wait, arm, poll. It wakes once for each message.
TEST_P(Arming, NoSecondUpcallForTheEntryThatWasTold)
{
	rcq.arm();
	for (unsigned int i = 1; i <= 5; i++) {
		message(0);
		rcq.arm();
		EXPECT_EQ(rcq.upcalls, i);
		EXPECT_TRUE(rcq.poll());
	}
}

TEST_P(Arming, SolicitedArmingDoesNotTellOfWhatIsThere)
{
	message(RVT_SEND_SOLICITED);
	rcq.arm(true);
	EXPECT_EQ(rcq.upcalls, 0u);
	message(RVT_SEND_SOLICITED);
	EXPECT_EQ(rcq.upcalls, 1u);
}

TEST_P(Arming, Case009_PollAndArmInTheUpcall)
{
	unsigned int seen = 0;

	rcq.on_upcall = [&] {
		while (rcq.poll_now())
			seen++;
		rcq.arm();
	};
	rcq.arm();
	for (int i = 0; i < 5; i++)
		message(0);
	EXPECT_EQ(seen, 5u);
	EXPECT_EQ(rcq.upcalls, 5u);
}

} // namespace
