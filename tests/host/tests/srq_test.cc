// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Shared receive queues. */
#include "util.h"

namespace
{

using testing::ElementsAre;

class Shared : public testing::TestWithParam<bool>
{
protected:
	World w{GetParam()};
	Mr &mr = w.add_mr(4096);
};
INSTANTIATE_TEST_SUITE_P(Consumers, Shared, testing::Bool(),
			 [](const auto &info) { return info.param ? "User" : "Kernel"; });

TEST_P(Shared, ManyQueuePairsTakeInOrder)
{
	Srq &srq = w.add_srq(16);
	std::vector<std::pair<Qp *, Qp *>> pairs;

	for (int i = 0; i < 4; i++)
		pairs.push_back(w.pair(i % 2 ? RVT_QPT_UC : RVT_QPT_RC, {}, {.srq = &srq}));
	for (int i = 0; i < 16; i++)
		ASSERT_EQ(srq.recv(i, {mr.sge()}), 0);
	EXPECT_EQ(srq.recv(99, {mr.sge()}), enomem);
	for (int i = 0; i < 16; i++) {
		auto [a, b] = pairs[i % 4];

		ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)})), 0);
		expect_wc(*a->scq, {.id = 1});
		expect_wc(*b->rcq, {.id = uint64_t(i), .qp_num = b->num});
	}
	/* Now it is empty. */
	auto [a, b] = pairs[0];
	ASSERT_EQ(a->post(wr_send(2, {mr.sge(0, 8)})), 0);
	expect_none(*a->scq);
	ASSERT_EQ(srq.recv(50, {mr.sge()}), 0);
	w.m.advance(sim::second);
	expect_wc(*a->scq, {.id = 2});
	expect_wc(*b->rcq, {.id = 50});
}

TEST_P(Shared, Case027_LimitOnce)
{
	Srq &srq = w.add_srq(16);
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});
	auto send = [&, a = a, b = b] {
		ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)})), 0);
		expect_wc(*a->scq, {.id = 1});
		ASSERT_TRUE(b->rcq->poll());
	};

	for (int i = 0; i < 10; i++)
		ASSERT_EQ(srq.recv(i, {mr.sge()}), 0);
	for (int i = 0; i < 3; i++)
		send();
	EXPECT_TRUE(srq.events.empty()); /* (a) 7 left, never armed */
	ASSERT_EQ(rvt_core_srq_set_limit(srq.raw, 5), 0);
	EXPECT_EQ(srq.limit(), 5u);
	send();
	send();
	EXPECT_TRUE(srq.events.empty()); /* 5 left: not below */
	EXPECT_EQ(srq.limit(), 5u);
	send();
	EXPECT_THAT(srq.events, ElementsAre(RVT_EVENT_SRQ_LIMIT_REACHED)); /* (b) */
	EXPECT_EQ(srq.limit(), 0u);					   /* (c) */
	send();
	send();
	EXPECT_EQ(srq.events.size(), 1u);
	/* (d) armed above what is posted: the next consumption tells. */
	ASSERT_EQ(rvt_core_srq_set_limit(srq.raw, 10), 0);
	send();
	EXPECT_EQ(srq.events.size(), 2u);
	EXPECT_EQ(srq.limit(), 0u);
	send();
	EXPECT_EQ(srq.events.size(), 2u);
}

TEST_P(Shared, LimitFromCreation)
{
	Srq &srq = w.add_srq(16, 2, 2);
	auto [a, b] = w.pair(RVT_QPT_UC, {}, {.srq = &srq});

	(void)b;
	EXPECT_EQ(srq.limit(), 2u);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(srq.recv(i, {mr.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)})), 0);
	w.m.settle();
	EXPECT_TRUE(srq.events.empty());
	ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)})), 0);
	w.m.settle();
	EXPECT_EQ(srq.events.size(), 1u);
}

TEST_P(Shared, Case028_SizesAndLimitsOutOfRange)
{
	Srq *srq = nullptr;
	rvt_core_srq *raw = nullptr;
	rvt_rq_ring dummy = {};

	EXPECT_EQ(rvt_core_srq_create(w.pd().raw, 0, 1, 0, &dummy, nullptr, &raw), einval);
	EXPECT_EQ(rvt_core_srq_create(w.pd().raw, 1, 0, 0, &dummy, nullptr, &raw), einval);
	EXPECT_EQ(rvt_core_srq_create(w.pd().raw, RVT_MAX_SRQ_WR + 1, 1, 0, &dummy, nullptr, &raw),
		  einval);
	EXPECT_EQ(rvt_core_srq_create(w.pd().raw, 1, RVT_MAX_SGE + 1, 0, &dummy, nullptr, &raw),
		  einval);
	EXPECT_EQ(rvt_core_srq_create(w.pd().raw, 8, 1, 9, &dummy, nullptr, &raw), einval);
	ASSERT_EQ(w.try_srq(8, 1, 8, nullptr, &srq), 0);
	EXPECT_EQ(rvt_core_srq_set_limit(srq->raw, 9), einval);
	EXPECT_EQ(srq->limit(), 8u);
	EXPECT_EQ(rvt_core_srq_set_limit(srq->raw, 8), 0);
	ASSERT_EQ(w.try_srq(RVT_MAX_SRQ_WR, 1, 0, nullptr, &srq), 0);
	ASSERT_EQ(w.try_srq(1, RVT_MAX_SGE, 0, nullptr, &srq), 0);
}

TEST_P(Shared, Case026_AsManyAsAsked)
{
	Srq &srq = w.add_srq(7, 3);
	uint32_t max_wr, max_sge, limit;

	rvt_core_srq_query(srq.raw, &max_wr, &max_sge, &limit);
	EXPECT_EQ(max_wr, 7u);
	EXPECT_EQ(max_sge, 3u);
	for (int i = 0; i < 7; i++)
		ASSERT_EQ(srq.recv(i, {mr.sge(), mr.sge(), mr.sge()}), 0);
	EXPECT_EQ(srq.recv(7, {}), enomem);
}

TEST_P(Shared, Case025_ResizeKeepsWhatIsPosted)
{
	constexpr uint32_t size = 5;

	for (uint32_t offset = 0; offset <= size; offset++) {
		for (uint32_t k = 0; k <= size; k++) {
			for (uint32_t to : {k ? k : 1, k + 1, 17u}) {
				SCOPED_TRACE(testing::Message()
					     << "offset " << offset << " k " << k << " to " << to);
				Srq &srq = w.add_srq(size, 2, 0);
				auto [a, b] = w.pair(RVT_QPT_UC, {}, {.srq = &srq});
				auto send = [&, a = a, b = b](uint64_t id) {
					ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)}, 0)), 0);
					expect_wc(*b->rcq, {.id = id});
				};

				for (uint32_t i = 0; i < offset; i++) {
					ASSERT_EQ(srq.recv(i, {mr.sge()}), 0);
					send(i);
				}
				for (uint32_t i = 0; i < k; i++)
					ASSERT_EQ(srq.recv(100 + i, {mr.sge()}), 0);
				if (k > 1) {
					EXPECT_EQ(srq.resize(k - 1), einval);
				}
				ASSERT_EQ(srq.resize(to), 0);
				for (uint32_t i = k; i < to; i++)
					ASSERT_EQ(srq.recv(100 + i, {mr.sge()}), 0);
				EXPECT_EQ(srq.recv(999, {mr.sge()}), enomem);
				for (uint32_t i = 0; i < to; i++)
					send(100 + i);
				a->destroy();
				b->destroy();
				srq.destroy();
			}
		}
	}
}

TEST_P(Shared, Case023_AFailedResizeChangesNothing)
{
	Srq &srq = w.add_srq(8, 2, 3);
	auto [a, b] = w.pair(RVT_QPT_UC, {}, {.srq = &srq});
	uint32_t limit;

	for (int i = 0; i < 6; i++)
		ASSERT_EQ(srq.recv(i, {mr.sge()}), 0);
	EXPECT_EQ(srq.resize(5), einval); /* fewer than posted */
	limit = 20;
	EXPECT_EQ(srq.resize(10, &limit), einval); /* limit above the size */
	EXPECT_EQ(rvt_core_srq_resize(srq.raw, RVT_MAX_SRQ_WR + 1, nullptr, srq.ring.ring), einval);
	EXPECT_EQ(rvt_core_srq_resize(srq.raw, 0, nullptr, srq.ring.ring), einval);
	if (!w.user) {
		w.m.fail_allocation(1);
		EXPECT_EQ(srq.resize(12), enomem);
	}
	EXPECT_EQ(srq.limit(), 3u);
	for (int i = 0; i < 6; i++) {
		ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)}, 0)), 0);
		expect_wc(*b->rcq, {.id = uint64_t(i)});
	}
	EXPECT_EQ(srq.events.size(), 1u);
	limit = 4;
	ASSERT_EQ(srq.resize(12, &limit), 0);
	EXPECT_EQ(srq.limit(), 4u);
	EXPECT_EQ(srq.resize(3), 0 + (limit > 3 ? einval : 0)); /* the kept limit must fit */
}

TEST_P(Shared, Case024_ResizeUnderTraffic)
{
	Srq &srq = w.add_srq(4, 2);
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});
	uint64_t next = 0, got = 0;

	for (int round = 0; round < 300; round++) {
		while (srq.recv(next, {mr.sge()}) == 0)
			next++;
		for (int i = 0; i < round % 5; i++) {
			if (got == next)
				break;
			ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)}, 0)), 0);
			expect_wc(*b->rcq, {.id = got++});
		}
		ASSERT_EQ(srq.resize(static_cast<uint32_t>(next - got) + 1 + round % 7), 0);
	}
}

TEST_P(Shared, ABadReceiveHitsOnlyTheQueuePairThatTookIt)
{
	Srq &srq = w.add_srq(8, 2);
	auto [a, b] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});
	auto [c, d] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});

	ASSERT_EQ(srq.recv(1, {{mr.iova, 8, mr.key ^ 0x4000}}), 0);
	ASSERT_EQ(srq.recv(2, {mr.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(5, {mr.sge(0, 8)})), 0);
	expect_wc(*a->scq, {.id = 5, .status = RVT_WC_REM_OP_ERR});
	expect_wc(*b->rcq, {.id = 1, .status = RVT_WC_LOC_PROT_ERR});
	expect_state(*b, RVT_QPS_ERR);
	EXPECT_EQ(b->count(RVT_EVENT_QP_LAST_WQE_REACHED), 1u);
	ASSERT_EQ(c->post(wr_send(6, {mr.sge(0, 8)})), 0);
	expect_wc(*c->scq, {.id = 6});
	expect_wc(*d->rcq, {.id = 2});
}

TEST_P(Shared, Case029_DestroyIsFinal)
{
	for (int i = 0; i < 50; i++) {
		Srq &srq = w.add_srq(4, 2, 4);
		auto [a, b] = w.pair(RVT_QPT_UC, {}, {.srq = &srq});

		ASSERT_EQ(srq.recv(1, {mr.sge()}), 0);
		ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 8)})), 0);
		a->destroy();
		b->destroy();
		srq.destroy();
	}
}

} // namespace
