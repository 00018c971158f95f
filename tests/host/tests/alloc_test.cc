// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Every allocation of every create path fails in turn: the call says so,
 * nothing stays behind, and the next try succeeds.
 */
#include "util.h"

namespace
{

/*
 * Run @attempt with the 1st, 2nd, 3rd... allocation failing until it succeeds
 * without one having failed. It returns 0 or an errno and leaves nothing on
 * failure; @undo takes back a success.
 */
void sweep_once(sim::Machine &m, const std::function<int()> &attempt,
		const std::function<void()> &undo, unsigned int at_least, bool strict)
{
	for (unsigned int n = 1;; n++) {
		SCOPED_TRACE(testing::Message() << "allocation " << n << " fails");
		size_t live = m.live_allocations();
		uint64_t before = m.allocations();

		ASSERT_LT(n, 200u) << "it never succeeds";
		m.fail_allocation(n);
		int rc = attempt();

		m.fail_allocation(0);
		bool none_failed = m.allocations() - before < n;

		if (none_failed) {
			EXPECT_EQ(rc, 0);
			EXPECT_GE(n, at_least + 1) << "nothing was allocated";
		} else if (rc) {
			EXPECT_EQ(rc, enomem);
		}
		if (rc == 0)
			undo();
		m.settle();
		if (strict) {
			EXPECT_EQ(m.live_allocations(), live);
		}
		if (none_failed)
			return;
	}
}

/* Tables may keep the pages that the first round made; the second leaves nothing. */
void sweep(sim::Machine &m, const std::function<int()> &attempt, const std::function<void()> &undo,
	   unsigned int at_least = 1)
{
	sweep_once(m, attempt, undo, at_least, false);
	sweep_once(m, attempt, undo, at_least, true);
}

class Failing : public testing::TestWithParam<bool>
{
protected:
	World w{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Consumers, Failing, testing::Bool(),
			 [](const auto &info) { return info.param ? "User" : "Kernel"; });

TEST(FailingModule, InitAndDevice)
{
	sim::Machine m;
	const rvt_core_ops ops = {};
	rvt_core_dev *dev = nullptr;
	uint16_t lid;

	sweep(
		m, [] { return rvt_core_init(); }, [] { rvt_core_exit(); }, 0);
	ASSERT_EQ(rvt_core_init(), 0);
	sweep(
		m,
		[&] {
			dev = rvt_core_dev_create(&ops, 1, &lid);
			return dev ? 0 : enomem;
		},
		[&] { EXPECT_EQ(rvt_core_dev_destroy(dev), 0u); });
	rvt_core_exit();
}

TEST_P(Failing, Case016_CompletionQueues)
{
	Cq *cq = nullptr;

	for (uint32_t cqe : {1u, 100u})
		sweep(
			w.m, [&] { return w.try_cq(cqe, nullptr, &cq); }, [&] { cq->destroy(); });
	cq = &w.add_cq(10);
	if (!w.user)
		sweep(
			w.m, [&] { return cq->resize(20); }, [&] { EXPECT_EQ(cq->resize(10), 0); });
}

TEST_P(Failing, ProtectionDomainsAndRegions)
{
	rvt_core_pd *pd = nullptr;
	rvt_core_mr *mr = nullptr;

	sweep(
		w.m,
		[&] {
			pd = rvt_core_pd_create(w.dev().raw, w.user);
			return pd ? 0 : enomem;
		},
		[&] { rvt_core_pd_destroy(pd); });
	for (rvt_mr_kind kind : {RVT_MR_MEM, RVT_MR_FAST})
		for (uint32_t pages : {1u, 1000u})
			sweep(
				w.m,
				[&] { return rvt_core_mr_create(w.pd().raw, kind, pages, &mr); },
				[&] { rvt_core_mr_destroy(mr); });
}

/* A page list asks for more memory only where its pages are far apart, and a
   fast region's never: it is written where nobody may wait. */
TEST_P(Failing, PagesFarApart)
{
	constexpr uint64_t far = uint64_t(1) << 44;

	for (rvt_mr_kind kind : {RVT_MR_MEM, RVT_MR_FAST}) {
		rvt_core_mr *mr = nullptr;

		ASSERT_EQ(rvt_core_mr_create(w.pd().raw, kind, 3, &mr), 0);
		w.m.fail_allocation(1);
		EXPECT_EQ(rvt_core_mr_set_page(mr, 0, far), 0);
		EXPECT_EQ(rvt_core_mr_set_page(mr, 1, far + 0x1000), 0);
		EXPECT_EQ(rvt_core_mr_set_page(mr, 2, 2 * far), kind == RVT_MR_FAST ? 0 : enomem);
		w.m.fail_allocation(0);
		EXPECT_EQ(rvt_core_mr_set_page(mr, 2, 2 * far), 0);
		rvt_core_mr_destroy(mr);
	}
}

TEST_P(Failing, SharedReceiveQueues)
{
	Srq *srq = nullptr;

	sweep(
		w.m, [&] { return w.try_srq(8, 4, 0, nullptr, &srq); }, [&] { srq->destroy(); });
	srq = &w.add_srq(8, 2);
	Mr &mr = w.add_mr(64);

	for (int i = 0; i < 5; i++)
		ASSERT_EQ(srq->recv(i, {mr.sge()}), 0);
	if (!w.user)
		sweep(
			w.m, [&] { return srq->resize(9); }, [&] { EXPECT_EQ(srq->resize(8), 0); });
}

TEST_P(Failing, Case040_QueuePairs)
{
	Qp *qp = nullptr;
	Cq &cq = w.add_cq();
	Srq &srq = w.add_srq();

	for (rvt_qp_type type : {RVT_QPT_RC, RVT_QPT_UC, RVT_QPT_UD, RVT_QPT_GSI}) {
		if (type == RVT_QPT_GSI && w.user)
			continue;
		for (Srq *with : {static_cast<Srq *>(nullptr), &srq}) {
			if (type == RVT_QPT_GSI && with)
				continue;
			for (uint32_t max_inline : {0u, 512u})
				sweep(
					w.m,
					[&] {
						return w.try_qp(type,
								{.max_inline = max_inline,
								 .srq = with,
								 .send_cq = &cq,
								 .recv_cq = &cq},
								nullptr, &qp);
					},
					[&] { qp->destroy(); });
		}
	}
}

TEST_P(Failing, MulticastAttach)
{
	const uint8_t mgid[16] = {0xff, 0x12, 1};
	Qp &a = w.add_ud(), &b = w.add_ud();

	sweep(
		w.m, [&] { return rvt_core_mcast_attach(a.raw, mgid, 0xc001); },
		[&] { EXPECT_EQ(rvt_core_mcast_detach(a.raw, mgid, 0xc001), 0); });
	ASSERT_EQ(rvt_core_mcast_attach(a.raw, mgid, 0xc001), 0);
	sweep(
		w.m, [&] { return rvt_core_mcast_attach(b.raw, mgid, 0xc001); },
		[&] { EXPECT_EQ(rvt_core_mcast_detach(b.raw, mgid, 0xc001), 0); });
	ASSERT_EQ(rvt_core_mcast_detach(a.raw, mgid, 0xc001), 0);
}

/* Moving data, changing state and tearing down need no memory. */
TEST_P(Failing, NothingElseAllocates)
{
	auto [a, b] = w.pair(RVT_QPT_RC);
	Qp &ud = w.add_ud();
	Mr &mr = w.add_mr(4096);
	uint64_t before = w.m.allocations();

	for (int i = 0; i < 5; i++) {
		ASSERT_EQ(b->recv(i, {mr.sge(0, 100)}), 0);
		ASSERT_EQ(a->post(wr_send(i, {mr.sge(200, 100)})), 0);
		ASSERT_EQ(a->post(wr_write(i, {mr.sge(0, 8)}, mr.iova + 1000, mr.key)), 0);
		ASSERT_EQ(a->post(wr_read(i, {mr.sge(0, 8)}, mr.iova + 1000, mr.key)), 0);
		ASSERT_EQ(ud.recv(i, {mr.sge(0, 100)}), 0);
		ASSERT_EQ(ud.post(w.ud_to(ud, ud, i, {mr.sge(200, 8)})), 0);
		w.m.settle();
	}
	ASSERT_EQ(a->to(RVT_QPS_ERR), 0);
	ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
	ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
	w.connect(*a, *b);
	EXPECT_EQ(w.m.allocations(), before);
}

} // namespace
