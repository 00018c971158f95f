// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The map of queue pair numbers, to exhaustion and around its end. */
#include "device.h"
#include "qp/qp.h"
#include "qp/qp_table.h"
#include "qp/qpn.h"

#include "util.h"

namespace
{

using rvt::Errno;
using rvt::Qpn;
using rvt::QpnMap;
using rvt::QpType;

class Numbers : public testing::Test
{
protected:
	Numbers() { EXPECT_EQ(init_qpn_table(nullptr, &map, 0, 0, 0), Errno::ok); }
	~Numbers() override { free_qpn_table(&map); }

	Errno take(uint32_t *number = nullptr, QpType type = QpType::rc)
	{
		Qpn qpn;
		Errno e = alloc_qpn(nullptr, &map, type, 1, &qpn);

		if (number)
			*number = qpn.value();
		return e;
	}

	sim::Machine m;
	QpnMap map;
};

TEST_F(Numbers, EvenOnesFirstThenOdd)
{
	uint32_t n = 0;

	for (uint32_t want : {2u, 4u, 6u, 8u}) {
		ASSERT_EQ(take(&n), Errno::ok);
		EXPECT_EQ(n, want);
	}
	/* A freed one is not used again before the space has wrapped. */
	rvt_free_qpn(&map, Qpn(4));
	ASSERT_EQ(take(&n), Errno::ok);
	EXPECT_EQ(n, 10u);
}

TEST_F(Numbers, ToExhaustionAndBack)
{
	std::vector<bool> seen(1u << 24);
	uint32_t n = 0, count = 0;
	bool odd = false;

	while (take(&n) == Errno::ok) {
		ASSERT_GT(n, 1u);
		ASSERT_LT(n, 1u << 24);
		ASSERT_FALSE(seen[n]);
		if (n % 2)
			odd = true;
		else
			ASSERT_FALSE(odd) << "an even number after the odd ones began";
		seen[n] = true;
		count++;
	}
	/* All but QP0, QP1 and the number that stands for a multicast group. */
	EXPECT_EQ(count, (1u << 24) - 3);
	EXPECT_FALSE(seen[0xffffff]);
	EXPECT_EQ(take(), Errno::nomem);
	for (uint32_t back : {2u, 3u, 0xfffffdu, 0x800000u, 12345u}) {
		rvt_free_qpn(&map, Qpn(back));
		ASSERT_EQ(take(&n), Errno::ok);
		EXPECT_EQ(n, back);
		EXPECT_EQ(take(), Errno::nomem);
	}
}

TEST_F(Numbers, Specials)
{
	uint32_t n = 9;

	ASSERT_EQ(take(&n, QpType::smi), Errno::ok);
	EXPECT_EQ(n, 0u);
	EXPECT_EQ(take(&n, QpType::smi), Errno::inval);
	ASSERT_EQ(take(&n, QpType::gsi), Errno::ok);
	EXPECT_EQ(n, 1u);
	EXPECT_EQ(take(&n, QpType::gsi), Errno::inval);
	rvt_free_qpn(&map, Qpn(0));
	EXPECT_EQ(take(&n, QpType::smi), Errno::ok);
	EXPECT_EQ(take(&n, QpType::gsi), Errno::inval);
	Qpn qpn;
	EXPECT_EQ(alloc_qpn(nullptr, &map, QpType::gsi, 0, &qpn), Errno::inval);
	EXPECT_EQ(alloc_qpn(nullptr, &map, QpType::gsi, 2, &qpn), Errno::inval);
}

TEST_F(Numbers, FreeingWhatIsNotInUseIsIgnored)
{
	rvt_free_qpn(&map, Qpn(0x700000));
	rvt_free_qpn(&map, Qpn(2));
	uint32_t n;
	ASSERT_EQ(take(&n), Errno::ok);
	EXPECT_EQ(n, 2u);
	rvt_free_qpn(&map, Qpn(2));
	rvt_free_qpn(&map, Qpn(2));
}

TEST(NumbersInit, ReservedRangeAndFailures)
{
	sim::Machine m;
	{
		QpnMap map;

		EXPECT_EQ(init_qpn_table(nullptr, &map, 0, 10, 9), Errno::inval);
		free_qpn_table(&map);
	}
	{
		QpnMap map;
		Qpn qpn;

		ASSERT_EQ(init_qpn_table(nullptr, &map, 0, 4, 9), Errno::ok);
		for (uint32_t want : {2u, 10u, 12u}) {
			ASSERT_EQ(alloc_qpn(nullptr, &map, QpType::uc, 1, &qpn), Errno::ok);
			EXPECT_EQ(qpn.value(), want);
		}
		free_qpn_table(&map);
	}
	{
		QpnMap map;
		Qpn qpn;

		ASSERT_EQ(init_qpn_table(nullptr, &map, 0, 0, 0), Errno::ok);
		m.fail_allocation(1);
		EXPECT_EQ(alloc_qpn(nullptr, &map, QpType::uc, 1, &qpn), Errno::nomem);
		EXPECT_EQ(alloc_qpn(nullptr, &map, QpType::uc, 1, &qpn), Errno::ok);
		free_qpn_table(&map);
	}
}

/* Queue pairs whose numbers fall into one place of the table. */
TEST(Table, ManyInOneBucket)
{
	World w;
	std::vector<std::pair<Qp *, Qp *>> pairs;

	for (int i = 0; i < 4; i++) {
		pairs.push_back(w.pair(RVT_QPT_RC));
		/* As if so many others had come and gone. */
		for (uint32_t n = 0; n < 65536 - 2; n++) {
			Qpn qpn;

			ASSERT_EQ(alloc_qpn(w.dev().raw, &w.dev().raw->qpns, QpType::rc, 1, &qpn),
				  Errno::ok);
			rvt_free_qpn(&w.dev().raw->qpns, qpn);
		}
	}
	EXPECT_EQ(pairs[1].first->num - pairs[0].first->num, 131072u);
	for (auto [a, b] : pairs) {
		expect_works(*a, *b);
		expect_works(*b, *a);
	}
	auto seen = [&] {
		std::vector<uint32_t> nums;

		rvt_core_qp_for_each(
			w.dev().raw,
			[](rvt_core_qp *qp, void *arg) {
				static_cast<std::vector<uint32_t> *>(arg)->push_back(
					rvt_core_qp_num(qp));
			},
			&nums);
		std::sort(nums.begin(), nums.end());
		return nums;
	};
	EXPECT_EQ(seen().size(), 8u);
	/* Out of the middle, the end and the beginning. */
	for (int gone : {2, 0, 3}) {
		pairs[gone].first->destroy();
		ASSERT_EQ(pairs[gone].second->to(RVT_QPS_RESET), 0);
		auto nums = seen();
		EXPECT_EQ(std::count(nums.begin(), nums.end(), pairs[gone].first->num), 0);
		EXPECT_EQ(std::unique(nums.begin(), nums.end()), nums.end());
	}
	expect_works(*pairs[1].first, *pairs[1].second);
	EXPECT_EQ(seen().size(), 2u);
}

TEST(Table, TheIterators)
{
	World w(false);
	Qp &gsi = w.add_qp(RVT_QPT_GSI);
	auto [a, b] = w.pair(RVT_QPT_RC);
	std::vector<uint32_t> nums;

	ASSERT_EQ(gsi.to_init(), 0);
	rvt_qp_iter(w.dev().raw, reinterpret_cast<uint64_t>(&nums), [](rvt::Qp *qp, uint64_t v) {
		reinterpret_cast<std::vector<uint32_t> *>(v)->push_back(qp->qpn.value());
	});
	std::sort(nums.begin(), nums.end());
	EXPECT_EQ(nums, (std::vector<uint32_t>{1, a->num, b->num}));

	rvt::QpIter *iter = rvt_qp_iter_init(w.dev().raw, 0, nullptr);
	std::vector<uint32_t> again;

	ASSERT_TRUE(iter);
	int cookie = rvt_os_read_lock();
	while (rvt_qp_iter_next(iter) == 0)
		again.push_back(iter->qp->qpn.value());
	rvt_os_read_unlock(cookie);
	rvt_qp_iter_free(iter);
	std::sort(again.begin(), again.end());
	EXPECT_EQ(again, nums);
	w.m.fail_allocation(1);
	EXPECT_EQ(rvt_qp_iter_init(w.dev().raw, 0, nullptr), nullptr);
}

TEST(NumbersInterleaved, NoNumberTwice)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		sim::Machine m(seed);
		QpnMap map;
		std::vector<uint32_t> got;

		ASSERT_EQ(init_qpn_table(nullptr, &map, 0, 0, 0), Errno::ok);
		for (int t = 0; t < 3; t++)
			m.spawn("t", [&] {
				for (int i = 0; i < 5; i++) {
					Qpn qpn;

					EXPECT_EQ(alloc_qpn(nullptr, &map, QpType::rc, 1, &qpn),
						  Errno::ok);
					got.push_back(qpn.value());
					if (i == 2)
						rvt_free_qpn(&map, qpn);
				}
			});
		m.run();
		std::sort(got.begin(), got.end());
		EXPECT_EQ(std::unique(got.begin(), got.end()), got.end());
		free_qpn_table(&map);
	}
}

} // namespace
