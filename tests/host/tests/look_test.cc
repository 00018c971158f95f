// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What people who look are shown of rings, regions and ports is true. */
#include "util.h"

namespace
{

/* A ring's place: entries in it, and its size. */
std::pair<uint32_t, uint32_t> filled(const rvt_ring_stat &ring)
{
	return {(ring.head + ring.size - ring.tail) % ring.size, ring.size};
}

TEST(Look, RingsOfAQueuePair)
{
	World w;
	auto [a, b] = w.pair(RVT_QPT_RC, {.max_send_wr = 6}, {.max_recv_wr = 5});
	Mr &mem = w.add_mr(64);

	for (int round = 0; round < 9; round++) {
		ASSERT_EQ(a->to(RVT_QPS_SQD), 0);
		for (uint64_t id = 0; id < 3; id++) {
			ASSERT_EQ(a->post(wr_send(id, {mem.sge(0, 8)})), 0);
			ASSERT_EQ(b->recv(id, {mem.sge(0, 8)}), 0);
		}
		rvt_qp_stat sender = a->stat(), receiver = b->stat();

		EXPECT_EQ(sender.sq_size, 7u);
		EXPECT_EQ((sender.sq_head + 7 - sender.sq_last) % 7, 3u);
		EXPECT_EQ(filled(receiver.rq), std::pair(3u, 6u));
		ASSERT_EQ(a->to(RVT_QPS_RTS), 0);
		expect_run(*a->scq, {0, 1, 2}, RVT_WC_SUCCESS);
		expect_run(*b->rcq, {0, 1, 2}, RVT_WC_SUCCESS);
	}
	EXPECT_EQ(w.add_qp(RVT_QPT_RC, {.srq = &w.add_srq()}).stat().rq.size, 0u);
}

TEST(Look, SharedReceiveQueue)
{
	for (bool user : {true, false}) {
		World w(user);
		Srq &srq = w.add_srq(5);
		rvt_ring_stat ring;

		for (uint64_t id = 0; id < 4; id++)
			ASSERT_EQ(srq.recv(id, {}), 0);
		rvt_core_srq_stat(srq.raw, &ring);
		EXPECT_EQ(filled(ring), std::pair(4u, 6u));
		ASSERT_EQ(srq.resize(9), 0);
		rvt_core_srq_stat(srq.raw, &ring);
		EXPECT_EQ(filled(ring), std::pair(4u, 10u));
	}
}

TEST(Look, CompletionQueue)
{
	for (bool user : {true, false}) {
		World w(user);
		Cq &cq = w.add_cq(2);
		auto [a, b] = w.pair(RVT_QPT_RC, {.send_cq = &cq});
		auto stat = [&cq] {
			rvt_cq_stat now;

			rvt_core_cq_stat(cq.raw, &now);
			return now;
		};

		EXPECT_EQ(filled(stat().ring), std::pair(0u, 3u));
		EXPECT_FALSE(stat().armed);
		cq.arm(true);
		EXPECT_TRUE(stat().armed && stat().solicited);
		cq.arm();
		EXPECT_TRUE(stat().armed && !stat().solicited);
		ASSERT_EQ(a->post(wr_write(1, {}, 0, 0)), 0);
		w.m.settle();
		EXPECT_EQ(filled(stat().ring), std::pair(1u, 3u));
		EXPECT_FALSE(stat().armed || stat().overrun);
		expect_wc(cq, {.id = 1});
		EXPECT_EQ(filled(stat().ring), std::pair(0u, 3u));
		for (uint64_t id = 2; id < 5; id++)
			(void)a->post(wr_write(id, {}, 0, 0));
		w.m.settle();
		EXPECT_EQ(filled(stat().ring), std::pair(2u, 3u));
		EXPECT_TRUE(stat().overrun);
		(void)b;
	}
}

TEST(Look, Regions)
{
	World w(false);
	auto [a, b] = w.pair();
	Mr &mr = w.add_mr(5000, RVT_ACCESS_REMOTE_READ), &fast = w.add_fast_mr(4096);
	rvt_mr_stat stat;

	rvt_core_mr_stat(mr.raw, &stat);
	EXPECT_TRUE(stat.usable && stat.kind == RVT_MR_MEM && stat.key == mr.key);
	EXPECT_TRUE(stat.iova == mr.iova && stat.length == 5000 && stat.page_shift == 12);
	EXPECT_EQ(stat.access, uint32_t(RVT_ACCESS_REMOTE_READ));

	rvt_core_mr_stat(fast.raw, &stat);
	EXPECT_TRUE(!stat.usable && stat.kind == RVT_MR_FAST);
	ASSERT_EQ(a->post(wr_reg(1, fast.raw, fast.key + 7, access_all)), 0);
	w.m.settle();
	rvt_core_mr_stat(fast.raw, &stat);
	EXPECT_TRUE(stat.usable && stat.key == fast.key + 7);
	EXPECT_EQ(stat.access, access_all);
	ASSERT_EQ(a->post(wr_local_inv(2, fast.key + 7)), 0);
	w.m.settle();
	rvt_core_mr_stat(fast.raw, &stat);
	EXPECT_FALSE(stat.usable);
	(void)b;
}

/* Not even to who reads while queue pairs leave, whose counts go elsewhere. */
TEST(Look, CountersNeverGoBack)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		World w(true, 1, seed);
		std::pair<Qp *, Qp *> pairs[3];

		for (auto &[a, b] : pairs) {
			std::tie(a, b) = w.pair(RVT_QPT_RC);
			EXPECT_EQ(a->post(wr_write(1, {}, 0, 0)), 0);
		}
		EXPECT_EQ(w.dev().counter(RVT_CNT_SENDS), 3u);
		w.m.spawn("leaver", [&] {
			for (auto &[a, b] : pairs)
				EXPECT_EQ(a->to(RVT_QPS_RESET), 0);
		});
		w.m.spawn("reader", [&] {
			for (int looks = 0; looks < 10; looks++)
				EXPECT_EQ(w.dev().counter(RVT_CNT_SENDS), 3u) << "seed " << seed;
		});
		w.m.run();
	}
}

/* InfiniBand 14.2.5.6: a port counts the bad keys that came to it. */
TEST(Look, ViolationsCountAtTheReceivingPort)
{
	World w(true, 2);
	Pd &far = w.add_pd(*w.devs[1], true);
	Qp &a = w.add_ud(1), &b = w.add_ud(2, {}, &far);
	Mr &mem = w.add_mr(64);
	Wr wr = w.ud_to(a, b, 1, {mem.sge(0, 8)});

	wr.qkey = 3;
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(a.post(wr), 0);
	w.m.settle();
	EXPECT_EQ(rvt_core_violations(w.devs[0]->raw, RVT_CNT_DROP_QKEY), 0u);
	EXPECT_EQ(rvt_core_violations(w.devs[1]->raw, RVT_CNT_DROP_QKEY), 2u);
	EXPECT_EQ(w.devs[1]->counter(RVT_CNT_DROP_QKEY), 2u);

	rvt_core_pkey_set(w.devs[1]->raw, 0, 0x8123);
	wr.qkey = 2;
	ASSERT_EQ(a.post(wr), 0);
	w.m.settle();
	EXPECT_EQ(rvt_core_violations(w.devs[0]->raw, RVT_CNT_DROP_PKEY), 0u);
	EXPECT_EQ(rvt_core_violations(w.devs[1]->raw, RVT_CNT_DROP_PKEY), 1u);
	EXPECT_EQ(w.devs[1]->counter(RVT_CNT_DROP_QKEY), 2u);
}

} // namespace
