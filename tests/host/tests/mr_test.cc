// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory regions: ranges, rights, keys, fast registration, taking away. */
#include "util.h"

#include "device.h"
#include "mr/sge.h"

#include <deque>
#include <set>

namespace
{

class Regions : public testing::Test
{
protected:
	World w;
	std::pair<Qp *, Qp *> p = w.pair(RVT_QPT_RC);
	Qp *a = p.first, *b = p.second;
	Mr &local = w.add_mr(8192);

	void again()
	{
		ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
		w.connect(*a, *b);
		a->scq->poll_all();
		a->rcq->poll_all();
		b->rcq->poll_all();
		b->scq->poll_all();
	}
	/* Does the responder allow it? Leaves the pair working. */
	bool allowed(const Wr &wr, uint32_t refusal = RVT_WC_REM_ACCESS_ERR)
	{
		EXPECT_EQ(a->post(wr), 0);
		auto wc = a->scq->poll();

		if (!wc) {
			ADD_FAILURE() << "no completion";
			return false;
		}
		if (wc->status == RVT_WC_SUCCESS)
			return true;
		EXPECT_STREQ(status_name(wc->status), status_name(refusal));
		expect_state(*a, RVT_QPS_ERR);
		expect_state(*b, RVT_QPS_ERR);
		again();
		return false;
	}
};

TEST_F(Regions, Case113_RemoteRangeAtTheEdges)
{
	const uint64_t top = ~0ull;

	for (uint64_t iova : {uint64_t(0x10000), uint64_t(0x7f0000001234), top - 4095 - 4096 * 4,
			      uint64_t(4096), uint64_t(1)}) {
		Mr &mr = w.add_mr(4096, access_all, nullptr, iova);

		SCOPED_TRACE(testing::Message() << std::hex << iova);
		for (uint64_t at : {iova, iova + 1, iova + 4095, iova + 4088, iova + 4096,
				    iova + 4097, iova - 1, iova - 8, top, top - 7, top - 15,
				    uint64_t(0), iova + (uint64_t(1) << 32), iova - 4096}) {
			for (uint32_t n : {1u, 8u, 16u, 4096u, 4097u, 8192u}) {
				SCOPED_TRACE(testing::Message() << std::hex << at << " + " << n);
				bool inside = at >= iova && n <= 4096 && at - iova <= 4096 - n;

				EXPECT_EQ(allowed(wr_write(1, {local.sge(0, n)}, at, mr.key)),
					  inside);
				EXPECT_EQ(allowed(wr_read(1, {local.sge(0, n)}, at, mr.key)),
					  inside);
				if (n == 8 && at % 8 == 0) {
					EXPECT_EQ(
						allowed(wr_faa(1, local.sge(0, 8), at, mr.key, 1)),
						inside);
				}
				/* The same for local access: refused when posted. */
				EXPECT_EQ(a->post(wr_write(2, {{at, n, mr.key}}, local.iova,
							   local.key)),
					  inside ? 0 : einval);
				a->scq->poll_all();
			}
		}
		mr.destroy();
	}
}

TEST_F(Regions, PublishRefusesNonsense)
{
	rvt_core_mr *mr;

	ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, 2, &mr), 0);
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(
			rvt_core_mr_set_page(mr, i, reinterpret_cast<uint64_t>(local.mem->page(i))),
			0);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0x1000, 8193, 2, 12, access_all), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0x1001, 8192, 2, 12, access_all), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0x1fff, 4097 + 1, 2, 12, access_all), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0x1000, 4097, 1, 12, access_all), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0x1000, 4096, 3, 12, access_all), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, ~0ull - 7, 16, 2, 12, access_all), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0x1000, ~0ull, 2, 12, access_all), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0xfff, ~0ull - 0x800, 2, 12, access_all), einval);
	/* Nothing of this made it usable. */
	EXPECT_EQ(a->post(wr_send(1, {{0x1000, 8, rvt_core_mr_key(mr)}})), einval);
	EXPECT_EQ(rvt_core_mr_publish(mr, 0x1001, 8191, 2, 12, access_all), 0);
	EXPECT_TRUE(allowed(wr_write(1, {local.sge(0, 8)}, 0x1001, rvt_core_mr_key(mr))));
	rvt_core_mr_destroy(mr);
}

TEST_F(Regions, NotUsableBeforePublishAndAfterUnpublish)
{
	rvt_core_mr *mr;

	ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, 1, &mr), 0);
	uint32_t key = rvt_core_mr_key(mr);

	ASSERT_EQ(rvt_core_mr_set_page(mr, 0, reinterpret_cast<uint64_t>(local.mem->page(0))), 0);
	EXPECT_FALSE(allowed(wr_write(1, {local.sge(0, 8)}, 0x5000, key)));
	ASSERT_EQ(rvt_core_mr_publish(mr, 0x5000, 4096, 1, 12, access_all), 0);
	EXPECT_TRUE(allowed(wr_write(1, {local.sge(0, 8)}, 0x5000, key)));
	rvt_core_mr_unpublish(mr);
	expect_state(*a, RVT_QPS_RTS);
	EXPECT_FALSE(allowed(wr_write(1, {local.sge(0, 8)}, 0x5000, key)));
	EXPECT_EQ(a->post(wr_send(1, {{0x5000, 8, key}})), einval);
	/* rereg_mr: other address, other rights, other length. */
	ASSERT_EQ(rvt_core_mr_publish(mr, 0x9000, 100, 1, 12, RVT_ACCESS_REMOTE_READ), 0);
	EXPECT_EQ(rvt_core_mr_key(mr), key);
	EXPECT_FALSE(allowed(wr_read(1, {local.sge(0, 8)}, 0x5000, key)));
	EXPECT_TRUE(allowed(wr_read(1, {local.sge(0, 8)}, 0x9000, key)));
	EXPECT_FALSE(allowed(wr_write(1, {local.sge(0, 8)}, 0x9000, key)));
	EXPECT_FALSE(allowed(wr_read(1, {local.sge(0, 8)}, 0x9000 + 93, key)));
	rvt_core_mr_destroy(mr);
}

TEST_F(Regions, ReregisterToAnotherPdAndAnotherPageList)
{
	Pd &other = w.add_pd();
	auto [c, d] = w.pair(RVT_QPT_RC, {.pd = &other}, {.pd = &other});
	Mr &far = w.add_mr(64, access_all, &other);
	Mr &mr = w.add_mr(4096);

	(void)d;
	EXPECT_TRUE(allowed(wr_write(1, {local.sge(0, 8)}, mr.iova, mr.key)));
	rvt_core_mr_unpublish(mr.raw);
	rvt_core_mr_set_pd(mr.raw, other.raw);
	ASSERT_EQ(rvt_core_mr_set_max_pages(mr.raw, 3), 0);
	Mem &mem = w.add_mem(3 * 4096);
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(rvt_core_mr_set_page(mr.raw, i, reinterpret_cast<uint64_t>(mem.page(i))),
			  0);
	ASSERT_EQ(rvt_core_mr_publish(mr.raw, 0x770000, 3 * 4096, 3, 12, access_all), 0);
	EXPECT_FALSE(allowed(wr_write(1, {local.sge(0, 8)}, 0x770000, mr.key)));
	far.write(0, "otherpd!");
	ASSERT_EQ(c->post(wr_write(1, {far.sge(0, 8)}, 0x770000 + 8190, mr.key)), 0);
	expect_wc(*c->scq, {.id = 1});
	EXPECT_EQ(mem.read(8190, 8), "otherpd!");
	w.m.fail_allocation(1);
	rvt_core_mr_unpublish(mr.raw);
	EXPECT_EQ(rvt_core_mr_set_max_pages(mr.raw, 500), enomem);
	ASSERT_EQ(rvt_core_mr_publish(mr.raw, 0x770000, 3 * 4096, 3, 12, access_all), 0);
	ASSERT_EQ(c->post(wr_write(2, {far.sge(0, 8)}, 0x770000, mr.key)), 0);
	expect_wc(*c->scq, {.id = 2});
}

TEST_F(Regions, Case114_EveryCombinationOfRights)
{
	for (uint32_t access = 0; access < 16; access++) {
		SCOPED_TRACE(access);
		Mr &mr = w.add_mr(64, access);
		bool lw = access & RVT_ACCESS_LOCAL_WRITE;

		EXPECT_EQ(allowed(wr_write(1, {local.sge(0, 8)}, mr.iova, mr.key)),
			  (access & RVT_ACCESS_REMOTE_WRITE) != 0);
		EXPECT_EQ(allowed(wr_read(1, {local.sge(0, 8)}, mr.iova, mr.key)),
			  (access & RVT_ACCESS_REMOTE_READ) != 0);
		EXPECT_EQ(allowed(wr_faa(1, local.sge(0, 8), mr.iova, mr.key, 1)),
			  (access & RVT_ACCESS_REMOTE_ATOMIC) != 0);
		EXPECT_EQ(allowed(wr_cas(1, local.sge(0, 8), mr.iova, mr.key, 1, 1)),
			  (access & RVT_ACCESS_REMOTE_ATOMIC) != 0);
		EXPECT_EQ(a->post(wr_read(1, {mr.sge(0, 8)}, local.iova, local.key)),
			  lw ? 0 : einval);
		EXPECT_EQ(a->post(wr_write(1, {mr.sge(0, 8)}, local.iova, local.key)), 0);
		a->scq->poll_all();
		/* As a receive buffer. */
		ASSERT_EQ(b->recv(5, {mr.sge(0, 8)}), 0);
		ASSERT_EQ(a->post(wr_send(6, {local.sge(0, 8)})), 0);
		if (lw) {
			expect_wc(*a->scq, {.id = 6});
			expect_wc(*b->rcq, {.id = 5});
		} else {
			expect_wc(*a->scq, {.id = 6, .status = RVT_WC_REM_OP_ERR});
			expect_wc(*b->rcq, {.id = 5, .status = RVT_WC_LOC_PROT_ERR});
			again();
		}
		mr.destroy();
	}
}

TEST_F(Regions, Case136_RightsOfTheQueuePair)
{
	Mr &mr = w.add_mr(64);

	for (uint32_t access = 0; access < 16; access += 2) {
		SCOPED_TRACE(access);
		b->attr.access_flags = access;
		again();
		EXPECT_EQ(b->query().access_flags, access);
		EXPECT_EQ(allowed(wr_write(1, {local.sge(0, 8)}, mr.iova, mr.key),
				  RVT_WC_REM_INV_REQ_ERR),
			  (access & RVT_ACCESS_REMOTE_WRITE) != 0);
		EXPECT_EQ(allowed(wr_read(1, {local.sge(0, 8)}, mr.iova, mr.key),
				  RVT_WC_REM_INV_REQ_ERR),
			  (access & RVT_ACCESS_REMOTE_READ) != 0);
		EXPECT_EQ(allowed(wr_faa(1, local.sge(0, 8), mr.iova, mr.key, 1),
				  RVT_WC_REM_INV_REQ_ERR),
			  (access & RVT_ACCESS_REMOTE_ATOMIC) != 0);
	}
}

TEST_F(Regions, Case116_KeysOfAnotherPd)
{
	Pd &other = w.add_pd();
	Mr &foreign = w.add_mr(64, access_all, &other);

	EXPECT_EQ(a->post(wr_send(1, {foreign.sge()})), einval);
	EXPECT_FALSE(allowed(wr_write(1, {local.sge(0, 8)}, foreign.iova, foreign.key)));
	EXPECT_FALSE(allowed(wr_read(1, {local.sge(0, 8)}, foreign.iova, foreign.key)));
	EXPECT_FALSE(allowed(wr_faa(1, local.sge(0, 8), foreign.iova, foreign.key, 1)));
	ASSERT_EQ(b->recv(5, {foreign.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(6, {local.sge(0, 8)})), 0);
	expect_wc(*a->scq, {.id = 6, .status = RVT_WC_REM_OP_ERR});
	expect_wc(*b->rcq, {.id = 5, .status = RVT_WC_LOC_PROT_ERR, .opcode = RVT_WC_RECV});
}

TEST_F(Regions, Case116_AnSrqsBuffersAreOfItsOwnPd)
{
	Pd &other = w.add_pd();
	Srq &srq = w.add_srq(8, 2, 0, &other);
	auto [c, d] = w.pair(RVT_QPT_RC, {}, {.srq = &srq});
	Mr &of_srq = w.add_mr(64, access_all, &other), &of_qp = w.add_mr(64);

	ASSERT_EQ(srq.recv(1, {of_srq.sge()}), 0);
	ASSERT_EQ(c->post(wr_send(2, {local.sge(0, 8)})), 0);
	expect_wc(*c->scq, {.id = 2});
	expect_wc(*d->rcq, {.id = 1});
	ASSERT_EQ(srq.recv(3, {of_qp.sge()}), 0);
	ASSERT_EQ(c->post(wr_send(4, {local.sge(0, 8)})), 0);
	expect_wc(*c->scq, {.id = 4, .status = RVT_WC_REM_OP_ERR});
	expect_wc(*d->rcq, {.id = 3, .status = RVT_WC_LOC_PROT_ERR});
}

/* As adapters do: perftest's receives from an SRQ reach over the end of their region. */
TEST_F(Regions, OnlyWhatAMessageWritesOfAReceiveHasToBeGranted)
{
	Srq &srq = w.add_srq();
	Mr &into = w.add_mr(4096), &unwritable = w.add_mr(64, 0);
	const rvt_sge over_the_end = {into.iova + 4096 - 32, 4096, into.key};

	for (bool shared : {false, true}) {
		auto [c, d] = w.pair(RVT_QPT_RC, {}, {.srq = shared ? &srq : nullptr});
		auto receives = [&, c = c, d = d](std::vector<rvt_sge> pieces, uint32_t bytes,
						  rvt_wc_status status) {
			const bool ok = status == RVT_WC_SUCCESS;

			into.fill('.');
			ASSERT_EQ(shared ? srq.recv(5, pieces) : d->recv(5, pieces), 0);
			ASSERT_EQ(c->post(wr_send(6, {local.sge(0, bytes)})), 0);
			expect_wc(*c->scq,
				  {.id = 6, .status = ok ? RVT_WC_SUCCESS : RVT_WC_REM_OP_ERR});
			expect_wc(*d->rcq, {.id = 5, .status = status, .opcode = RVT_WC_RECV});
			if (ok)
				return;
			ASSERT_EQ(c->to(RVT_QPS_RESET), 0);
			ASSERT_EQ(d->to(RVT_QPS_RESET), 0);
			w.connect(*c, *d);
		};

		SCOPED_TRACE(shared);
		local.write(0, pattern(64, 1));
		receives({over_the_end}, 32, RVT_WC_SUCCESS);
		EXPECT_EQ(into.read(4096 - 33, 33), "." + pattern(64, 1).substr(0, 32));
		receives({over_the_end}, 33, RVT_WC_LOC_PROT_ERR);
		EXPECT_EQ(into.read(4096 - 32, 1), ".");
		receives({into.sge(0, 8), over_the_end}, 8, RVT_WC_SUCCESS);
		receives({into.sge(0, 8), over_the_end}, 40, RVT_WC_SUCCESS);
		receives({into.sge(0, 8), over_the_end}, 41, RVT_WC_LOC_PROT_ERR);
		receives({over_the_end, into.sge(0, 8)}, 0, RVT_WC_SUCCESS);
		/* What is not reached has to name a place nevertheless. */
		receives({into.sge(0, 8), {into.iova + 4097, 8, into.key}}, 8, RVT_WC_LOC_PROT_ERR);
		receives({into.sge(0, 8), unwritable.sge(0, 8)}, 8, RVT_WC_LOC_PROT_ERR);
		receives({into.sge(0, 8), {into.iova, 8, into.key + 1}}, 8, RVT_WC_LOC_PROT_ERR);
		receives({into.sge(0, 8), {into.iova, 8, 0}}, 8, RVT_WC_LOC_PROT_ERR);
	}
}

TEST_F(Regions, Case118_KeysAreUniqueAndNeverZero)
{
	std::set<uint32_t> live;
	std::deque<rvt_core_mr *> mrs;
	const int rounds = getenv("RVT_NIGHTLY") ? 1 << 19 : 20000;

	for (int i = 0; i < rounds; i++) {
		rvt_core_mr *mr;

		ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, 1, &mr), 0);
		ASSERT_NE(rvt_core_mr_key(mr), 0u);
		ASSERT_TRUE(live.insert(rvt_core_mr_key(mr)).second);
		mrs.push_back(mr);
		if (mrs.size() > 5) {
			live.erase(rvt_core_mr_key(mrs.front()));
			rvt_core_mr_destroy(mrs.front());
			mrs.pop_front();
		}
	}
	for (rvt_core_mr *mr : mrs)
		rvt_core_mr_destroy(mr);
}

TEST_F(Regions, Case119_AnOldKeyDoesNotComeBackSoon)
{
	Mr &first = w.add_mr(64);
	uint32_t old = first.key;

	first.destroy();
	EXPECT_EQ(a->post(wr_send(1, {{first.iova, 8, old}})), einval);
	EXPECT_FALSE(allowed(wr_write(1, {local.sge(0, 8)}, first.iova, old)));
	for (int i = 0; i < 5000; i++) {
		rvt_core_mr *mr;

		ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, 1, &mr), 0);
		ASSERT_NE(rvt_core_mr_key(mr), old);
		rvt_core_mr_destroy(mr);
	}
	Mr &second = w.add_mr(64, access_all, nullptr, first.iova);
	EXPECT_FALSE(allowed(wr_write(1, {local.sge(0, 8)}, second.iova, old)));
	for (unsigned int bit = 0; bit < 32; bit++)
		EXPECT_FALSE(allowed(
			wr_write(1, {local.sge(0, 8)}, second.iova, second.key ^ (1u << bit))));
}

TEST_F(Regions, Case128_PagesOfAnySize)
{
	for (uint32_t shift : {12u, 13u, 16u, 20u}) {
		SCOPED_TRACE(shift);
		const size_t size = size_t(1) << shift;
		std::vector<std::unique_ptr<uint8_t, decltype(&free)>> pages;
		rvt_core_mr *mr;
		constexpr uint32_t n = 5;

		ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, n, &mr), 0);
		for (uint32_t i = 0; i < n; i++) {
			void *mem;

			ASSERT_EQ(posix_memalign(&mem, size < 4096 ? 4096 : size, size), 0);
			memset(mem, 0, size);
			pages.emplace_back(static_cast<uint8_t *>(mem), &free);
		}
		for (uint32_t i = 0; i < n; i++)
			ASSERT_EQ(rvt_core_mr_set_page(
					  mr, i,
					  reinterpret_cast<uint64_t>(pages[(i * 3) % n].get())),
				  0);
		uint64_t iova = 0x40000000 + 5;
		uint64_t length = n * size - 5;

		ASSERT_EQ(rvt_core_mr_publish(mr, iova, length, n, shift, access_all), 0);
		uint32_t chunk = 100;

		for (uint64_t at = 0; at + chunk <= length; at += size / 2 - 3) {
			std::string text = pattern(chunk, static_cast<unsigned int>(at));

			local.write(0, text);
			ASSERT_EQ(a->post(wr_write(1, {local.sge(0, chunk)}, iova + at,
						   rvt_core_mr_key(mr))),
				  0);
			expect_wc(*a->scq, {.id = 1});
			for (uint32_t i = 0; i < chunk; i++) {
				uint64_t pos = 5 + at + i;

				ASSERT_EQ(pages[(pos >> shift) * 3 % n].get()[pos & (size - 1)],
					  static_cast<uint8_t>(text[i]));
			}
		}
		EXPECT_FALSE(allowed(
			wr_write(1, {local.sge(0, 8)}, iova + length - 7, rvt_core_mr_key(mr))));
		rvt_core_mr_destroy(mr);
	}
}

/* Runs of adjacent pages are copied in one go; their ends must be right. */
TEST_F(Regions, PagesInRunsOfAnyLength)
{
	for (uint32_t run : {1u, 2u, 3u, 7u, 100u}) {
		constexpr uint32_t n = 300;
		void *mem;
		rvt_core_mr *mr;

		SCOPED_TRACE(run);
		ASSERT_EQ(posix_memalign(&mem, 4096, n * 4096), 0);
		auto *bytes = static_cast<uint8_t *>(mem);
		ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, n, &mr), 0);
		std::vector<uint32_t> order;

		/* The runs from the last to the first, each of them ascending. */
		for (uint32_t begin = n / run * run;; begin -= run) {
			for (uint32_t i = begin; i < begin + run && i < n; i++)
				order.push_back(i);
			if (!begin)
				break;
		}
		ASSERT_EQ(order.size(), n);
		for (uint32_t i = 0; i < n; i++)
			ASSERT_EQ(rvt_core_mr_set_page(
					  mr, i,
					  reinterpret_cast<uint64_t>(bytes + 4096ull * order[i])),
				  0);
		const uint64_t iova = 0x50000000 + 100;
		const uint32_t key = rvt_core_mr_key(mr);

		ASSERT_EQ(rvt_core_mr_publish(mr, iova, n * 4096 - 100, n, 12, access_all), 0);
		Mr &plain = w.add_mr(n * 4096);
		auto expect_bytes = [&](uint64_t at, const std::string &text) {
			for (size_t i = 0; i < text.size(); i++) {
				uint64_t pos = 100 + at + i;

				ASSERT_EQ(bytes[4096ull * order[pos / 4096] + pos % 4096],
					  static_cast<uint8_t>(text[i]))
					<< at << " + " << i;
			}
		};

		for (auto [at, len] :
		     std::initializer_list<std::pair<uint32_t, uint32_t>>{{0, 1},
									  {0, 3996},
									  {3990, 20},
									  {0, 12000},
									  {5000, 40000},
									  {4096 * 6 - 100, 8192},
									  {1, n * 4096 - 200},
									  {0, n * 4096 - 100}}) {
			std::string text = pattern(len, at + len);

			memset(mem, '.', n * 4096);
			plain.write(0, text);
			ASSERT_EQ(a->post(wr_write(1, {plain.sge(0, len)}, iova + at, key)), 0);
			expect_wc(*a->scq, {.id = 1});
			expect_bytes(at, text);
			plain.fill('?');
			ASSERT_EQ(a->post(wr_read(2, {plain.sge(5, len)}, iova + at, key)), 0);
			expect_wc(*a->scq, {.id = 2});
			EXPECT_EQ(plain.read(5, len), text);
			plain.fill('?');
			ASSERT_EQ(b->recv(3, {plain.sge(0, n * 4096)}), 0);
			ASSERT_EQ(a->post(wr_send(4, {{iova + at, len, key}})), 0);
			expect_wc(*a->scq, {.id = 4});
			expect_wc(*b->rcq, {.id = 3, .byte_len = len});
			EXPECT_EQ(plain.read(0, len), text);
		}
		rvt_core_mr_destroy(mr);
		plain.destroy();
		free(mem);
	}
}

/* However small or large the pieces are, a long message is not one long run. */
TEST_F(Regions, ALongMessageLetsOthersRun)
{
	constexpr uint32_t bytes = 4 << 20;
	void *mem;

	ASSERT_EQ(posix_memalign(&mem, 4096, 2 * bytes), 0);
	/* No page is next to its neighbours. */
	auto scattered = [&](uint64_t from, uint32_t shift) {
		const uint32_t n = bytes >> shift;
		rvt_core_mr *mr = nullptr;

		EXPECT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, n, &mr), 0);
		for (uint64_t i = 0; i < n; i++)
			EXPECT_EQ(rvt_core_mr_set_page(mr, static_cast<uint32_t>(i),
						       reinterpret_cast<uint64_t>(mem) + from +
							       ((n - 1 - i) << shift)),
				  0);
		EXPECT_EQ(rvt_core_mr_publish(mr, bytes, bytes, n, shift, access_all), 0);
		return mr;
	};

	for (uint32_t shift : {12u, 16u, 21u}) {
		rvt_core_mr *local_mr = scattered(0, shift), *remote_mr = scattered(bytes, shift);
		const rvt_sge all = {bytes, bytes, rvt_core_mr_key(local_mr)};
		const uint32_t key = rvt_core_mr_key(remote_mr);

		SCOPED_TRACE(shift);
		for (bool read : {false, true}) {
			const unsigned long before = w.m.offers();

			ASSERT_EQ(a->post(read ? wr_read(1, {all}, bytes, key)
					       : wr_write(1, {all}, bytes, key)),
				  0);
			expect_wc(*a->scq, {.id = 1, .byte_len = bytes});
			EXPECT_GE(w.m.offers() - before, 15u);
		}
		rvt_core_mr_destroy(local_mr);
		rvt_core_mr_destroy(remote_mr);
	}
	free(mem);
}

/* --- the list of pages ------------------------------------------------------------- */

TEST_F(Regions, PageListsKeepAnyAddressesInAnyOrder)
{
	constexpr uint64_t direct_map = 0xffff888000000000, window = uint64_t(1) << 44;
	const std::vector<std::vector<uint64_t>> lists = {
		{direct_map},
		{direct_map, direct_map + 0x1000, direct_map + 0xfff000},
		{0x7ffffffff000, 0x1000, 0},
		/* To and fro across a border of 16 TiB. */
		{window - 0x1000, window, window - 0x2000, window + 0x1000},
		{direct_map, direct_map + 5 * window, 0xfffffffffffff000, direct_map + 0x3000},
		{0, window, 2 * window, 3 * window},
		{window, 0, window},
	};

	for (bool anywhere : {false, true}) {
		for (const auto &addresses : lists) {
			rvt::PageList list;
			uint32_t n = 0;

			ASSERT_TRUE(
				list.allocate(static_cast<uint32_t>(addresses.size()), anywhere));
			for (uint64_t address : addresses)
				EXPECT_EQ(list.set(n++, address), rvt::Errno::ok);
			EXPECT_EQ(list.set(n, direct_map), rvt::Errno::inval);
			EXPECT_EQ(list.set(0, addresses[0] + 8), rvt::Errno::inval);
			EXPECT_EQ(list.size(), n);
			for (uint32_t i = 0; i < n; i++)
				EXPECT_EQ(list[i], addresses[i]) << i;
		}
	}
}

/* Rows end where pages do not follow one another, and when enough bytes are there. */
TEST_F(Regions, AWalkAlongPages)
{
	rvt::PageList list;
	uint32_t n = 0;
	auto expect_row = [](rvt::PageWalk &walk, size_t enough, uint64_t begin, size_t size) {
		const rvt::Piece row = walk.row(enough);

		EXPECT_EQ(reinterpret_cast<uint64_t>(row.data), begin);
		EXPECT_EQ(row.size, size);
	};

	ASSERT_TRUE(list.allocate(5, false));
	for (uint64_t address : {0x10000, 0x11000, 0x12000, 0x20000, 0x21000})
		ASSERT_EQ(list.set(n++, address), rvt::Errno::ok);

	rvt::PageWalk whole(list, 12, 0x234);
	expect_row(whole, 1 << 20, 0x10234, 0x3000 - 0x234);
	expect_row(whole, 1 << 20, 0x20000, 0x2000);

	rvt::PageWalk little(list, 12, 0x1000);
	expect_row(little, 1, 0x11000, 0x1000);
	expect_row(little, 0x1000, 0x12000, 0x1000);
	expect_row(little, 0x1001, 0x20000, 0x2000);

	/* Only what comes after the beginning counts. */
	rvt::PageWalk inside(list, 12, 0x800);
	expect_row(inside, 0x801, 0x10800, 0x1800);

	/* Behind the end there is only the last page. */
	rvt::PageWalk beyond(list, 12, 0x7000008);
	expect_row(beyond, 1 << 20, 0x21008, 0xff8);
	expect_row(beyond, 1 << 20, 0x21000, 0x1000);

	/* Adjacent pages of which the list notes the upper bits apart. */
	rvt::PageList high;
	constexpr uint64_t edge = 0xffff'9000'0000'0000;

	ASSERT_TRUE(high.allocate(3, false));
	for (uint32_t i = 0; i < 3; i++)
		ASSERT_EQ(high.set(i, edge + i * 0x1000 - 0x1000), rvt::Errno::ok);
	rvt::PageWalk over(high, 12, 8);
	expect_row(over, 1 << 20, edge - 0x1000 + 8, 0x3000 - 8);
}

/* As who looks at the last byte needs it: each byte is there before the next. */
TEST_F(Regions, TheLastBytesOfAWriteMoveOneByOne)
{
	for (uint32_t n = 1; n <= 8; n++) {
		for (uint32_t at : {0u, 1u, 7u, 100u}) {
			local.write(at, "ABCDEFGHI");
			ASSERT_EQ(a->post(wr_write(1, {local.sge(at, n)}, local.iova + at + 1,
						   local.key)),
				  0);
			expect_wc(*a->scq, {.id = 1, .byte_len = n});
			EXPECT_EQ(local.read(at, 9),
				  std::string(n + 1, 'A') + std::string("BCDEFGHI").substr(n));
		}
	}
}

/* --- taking memory away ------------------------------------------------------------- */

TEST_F(Regions, DestroyWhileASendWaits)
{
	Mr &mr = w.add_mr(64);

	b->attr.min_rnr_timer = 31;
	again();
	ASSERT_EQ(a->post(wr_send(1, {local.sge(0, 8)})), 0); /* waits: RNR */
	ASSERT_EQ(a->post(wr_send(2, {mr.sge(0, 8)})), 0);
	ASSERT_EQ(a->post(wr_send(3, {local.sge(0, 8)})), 0);
	w.m.settle();
	mr.destroy();
	expect_state(*a, RVT_QPS_ERR);
	for (uint64_t id : {1, 2, 3}) {
		auto wc = a->scq->poll();

		ASSERT_TRUE(wc);
		EXPECT_EQ(wc->wr_id, id);
		EXPECT_NE(wc->status, uint32_t(RVT_WC_SUCCESS));
	}
	expect_none(*a->scq);
	expect_state(*b, RVT_QPS_RTS);
	w.m.advance(10 * sim::second);
	expect_none(*a->scq);
}

/* Wherever the request stands among many, in a ring that has wrapped around. */
TEST_F(Regions, DestroyWhileOneOfManySendsUsesIt)
{
	constexpr uint32_t many = 300;

	for (uint32_t place : {0u, 1u, 63u, 64u, 65u, 200u, many - 1, many}) {
		Mr &mr = w.add_mr(64);
		Cq &cq = w.add_cq(many + 1);
		Qp &from = w.add_qp(RVT_QPT_RC, {.max_send_wr = many, .send_cq = &cq});
		Qp &to = w.add_qp(RVT_QPT_RC);

		to.attr.min_rnr_timer = 31;
		w.connect(from, to);
		for (uint32_t i = 0; i < 100; i++)
			ASSERT_EQ(from.post(wr_write(i, {}, 0, 0, 0)), 0);
		w.m.settle();
		for (uint32_t i = 0; i < many; i++) {
			Mr &used = i == place ? mr : local;

			ASSERT_EQ(from.post(wr_send(i, {used.sge(0, 8)})), 0);
		}
		w.m.settle();
		mr.destroy();
		expect_state(from, place == many ? RVT_QPS_RTS : RVT_QPS_ERR);
	}
}

/* Where the bytes of a waiting request lie was found when it was posted; it is
   looked up again once any region has ended, and then is the same. */
TEST_F(Regions, DestroyOfAnotherWhileASendWaits)
{
	Mr &to = w.add_mr(64), &other = w.add_mr(64);

	b->attr.min_rnr_timer = 1;
	again();
	local.write(0, "the bytes");
	ASSERT_EQ(a->post(wr_send(1, {local.sge(0, 9)})), 0); /* waits: RNR */
	other.destroy();
	/* Wherever its memory is now: this takes the place of the old. */
	w.add_mr(64).fill('?');
	local.write(4, "BYTES");
	ASSERT_EQ(b->recv(2, {to.sge()}), 0);
	w.m.advance(sim::second);
	expect_wc(*a->scq, {.id = 1, .opcode = RVT_WC_SEND, .byte_len = 9});
	expect_wc(*b->rcq, {.id = 2, .byte_len = 9});
	EXPECT_EQ(to.read(0, 9), "the BYTES");
}

/* Even when nobody has stopped the queue pair: here another's PD is asked. */
TEST_F(Regions, AWaitingRequestIsLookedUpAgainAfterAnEnd)
{
	Mr &mr = w.add_mr(64), &elsewhere = w.add_mr(64), &to = w.add_mr(64);

	b->attr.min_rnr_timer = 1;
	again();
	mr.write(0, "old");
	elsewhere.write(0, "new");
	ASSERT_EQ(a->post(wr_send(1, {mr.sge(0, 3)})), 0); /* waits: RNR */
	rvt_core_mr_set_pd(mr.raw, w.add_pd().raw);
	rvt_core_mr_unpublish(mr.raw);
	rvt_core_mr_set_pd(mr.raw, w.pd().raw);
	ASSERT_EQ(
		rvt_core_mr_set_page(mr.raw, 0, reinterpret_cast<uint64_t>(elsewhere.mem->page(0))),
		0);
	ASSERT_EQ(rvt_core_mr_publish(mr.raw, mr.iova, 64, 1, 12, access_all), 0);
	ASSERT_EQ(b->recv(2, {to.sge()}), 0);
	w.m.advance(sim::second);
	expect_wc(*a->scq, {.id = 1, .opcode = RVT_WC_SEND, .byte_len = 3});
	EXPECT_EQ(to.read(0, 3), "new");
}

/* Who may still use what he found is waited for; whoever comes then must know. */
TEST_F(Regions, AnEraEndsBeforeItsReadersAreWaitedFor)
{
	const rvt::KeyTable &keys = w.dev().raw->keys;
	const uint64_t era = keys.era();
	Mr &mr = w.add_mr(64);
	bool gone = false;

	EXPECT_EQ(keys.era(), era) << "a region that begins ends nothing";
	w.m.spawn("reader", [&] {
		const int section = rvt_os_read_lock();

		w.m.sleep(sim::ms);
		EXPECT_FALSE(gone);
		EXPECT_NE(keys.era(), era);
		rvt_os_read_unlock(section);
	});
	w.m.spawn("owner", [&] {
		mr.destroy();
		gone = true;
	});
	w.m.run();
	EXPECT_TRUE(gone);
}

/* The same key, other pages: no request finds the old ones. */
TEST_F(Regions, ReregisteredBetweenTwoRequests)
{
	Mr &mr = w.add_mr(4096), &elsewhere = w.add_mr(4096), &to = w.add_mr(64);
	auto point_to = [&](const Mr &memory) {
		return rvt_core_mr_set_page(mr.raw, 0,
					    reinterpret_cast<uint64_t>(memory.mem->page(0)));
	};

	mr.write(0, "old");
	elsewhere.write(0, "new");
	ASSERT_EQ(a->post(wr_write(1, {mr.sge(0, 3)}, to.iova, to.key)), 0);
	expect_wc(*a->scq, {.id = 1, .opcode = RVT_WC_RDMA_WRITE, .byte_len = 3});
	EXPECT_EQ(to.read(0, 3), "old");
	rvt_core_mr_unpublish(mr.raw);
	ASSERT_EQ(point_to(elsewhere), 0);
	ASSERT_EQ(rvt_core_mr_publish(mr.raw, mr.iova, 4096, 1, 12, access_all), 0);
	ASSERT_EQ(a->post(wr_write(2, {mr.sge(0, 3)}, to.iova, to.key)), 0);
	expect_wc(*a->scq, {.id = 2, .opcode = RVT_WC_RDMA_WRITE, .byte_len = 3});
	EXPECT_EQ(to.read(0, 3), "new");
	rvt_core_mr_unpublish(mr.raw);
	ASSERT_EQ(point_to(mr), 0);
	ASSERT_EQ(rvt_core_mr_publish(mr.raw, mr.iova, 4096, 1, 12, access_all), 0);
}

/* A request of every form where one of one piece was: none finds what that left. */
TEST_F(Regions, OneSlotForRequestsOfEveryForm)
{
	Qp *c = w.pair(RVT_QPT_RC, {.max_send_wr = 1, .max_inline = 64}, {}).first;
	constexpr int slots = 2; /* a ring for one request: one slot is always empty */
	Mr &to = w.add_mr(64);
	const struct {
		std::vector<rvt_sge> sge;
		std::string inline_data, result;
	} forms[] = {
		{{{1, 8, 1}}, "inlined!", "inlined!"},
		{{local.sge(100, 4), local.sge(200, 4)}, "", "bbbbcccc"},
		{{}, "", "........"},
		{{local.sge(0, 0)}, "", "........"},
		{{local.sge(200, 4), local.sge(0, 0)}, "", "cccc...."},
		{{local.sge(100, 4)}, "", "bbbb...."},
	};
	auto write = [&](std::vector<rvt_sge> sge, const std::string &inline_data) {
		Wr wr = wr_write(1, std::move(sge), to.iova, to.key);

		if (!inline_data.empty()) {
			wr.flags |= RVT_SEND_INLINE;
			wr.inline_data = inline_data;
		}
		to.fill('.');
		EXPECT_EQ(c->post(wr), 0);
		expect_wc(*c->scq, {.id = 1, .opcode = RVT_WC_RDMA_WRITE});
		return to.read(0, 8);
	};

	local.write(0, "AAAAAAAA");
	local.write(100, "bbbb");
	local.write(200, "cccc");
	for (const auto &form : forms) {
		for (int i = 0; i < slots; i++)
			EXPECT_EQ(write({local.sge(0, 8)}, ""), "AAAAAAAA");
		for (int i = 0; i < slots; i++)
			EXPECT_EQ(write(form.sge, form.inline_data), form.result);
	}
}

TEST_F(Regions, DestroyOfMemoryThatNobodyUses)
{
	Mr &mr = w.add_mr(64);

	ASSERT_EQ(a->post(wr_write(1, {mr.sge()}, mr.iova, mr.key)), 0);
	expect_wc(*a->scq, {.id = 1});
	mr.destroy();
	expect_state(*a, RVT_QPS_RTS);
	expect_works(*a, *b);
}

TEST_F(Regions, QueuePairsOfAnotherPdAreLeftAlone)
{
	Pd &other = w.add_pd();
	Mr &mr = w.add_mr(64, access_all, &other);

	ASSERT_EQ(a->post(wr_send(1, {local.sge(0, 8)})), 0); /* waits */
	mr.destroy();
	expect_state(*a, RVT_QPS_RTS);
}

TEST_F(Regions, AReceiveWhoseMemoryIsGone)
{
	Mr &mr = w.add_mr(64);

	ASSERT_EQ(b->recv(1, {mr.sge()}), 0);
	mr.destroy();
	ASSERT_EQ(a->post(wr_send(2, {local.sge(0, 8)})), 0);
	expect_wc(*a->scq, {.id = 2, .status = RVT_WC_REM_OP_ERR});
	expect_wc(*b->rcq, {.id = 1, .status = RVT_WC_LOC_PROT_ERR});
	expect_state(*b, RVT_QPS_ERR);
}

/* --- the kernel's regions -------------------------------------------------------------- */

class KernelRegions : public testing::Test
{
protected:
	World w{false};
	std::pair<Qp *, Qp *> p = w.pair(RVT_QPT_RC);
	Qp *a = p.first, *b = p.second;
	Mr &local = w.add_mr(8192);
	Mr &fast = w.add_fast_mr(8192);

	void again()
	{
		ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
		w.connect(*a, *b);
		for (Cq *cq : {a->scq, a->rcq, b->scq, b->rcq})
			cq->poll_all();
	}
	/* Refused when posted, or completed with an error. Leaves b working. */
	void expect_refused(const Wr &wr)
	{
		int rc = b->post(wr);

		if (rc == 0) {
			expect_wc(*b->scq, {.id = wr.id, .status = RVT_WC_LOC_PROT_ERR});
			expect_state(*b, RVT_QPS_ERR);
		} else {
			EXPECT_EQ(rc, einval);
			expect_none(*b->scq);
		}
		again();
	}
	bool usable(uint32_t key)
	{
		EXPECT_EQ(a->post(wr_write(77, {local.sge(0, 8)}, fast.iova, key)), 0);
		auto wc = a->scq->poll();

		if (wc && wc->status == RVT_WC_SUCCESS)
			return true;
		EXPECT_TRUE(wc && wc->status == RVT_WC_REM_ACCESS_ERR);
		again();
		return false;
	}
};

TEST_F(KernelRegions, DmaRegionAndKeyZero)
{
	rvt_core_mr *mr;
	alignas(8) char here[64] = "some kernel memory";
	alignas(8) char there[64] = {};

	ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_DMA, 0, &mr), 0);
	ASSERT_EQ(rvt_core_mr_publish(mr, 0, ~0ull, 0, 12, access_all), 0);
	uint32_t key = rvt_core_mr_key(mr);
	auto va = [](void *mem) { return reinterpret_cast<uint64_t>(mem); };

	ASSERT_EQ(a->post(wr_write(1, {{va(here), 64, key}}, va(there), key)), 0);
	expect_wc(*a->scq, {.id = 1});
	EXPECT_STREQ(there, "some kernel memory");
	memset(there, 0, sizeof(there));
	ASSERT_EQ(b->recv(2, {{va(there), 64, 0}}), 0);
	ASSERT_EQ(a->post(wr_send(3, {{va(here), 64, 0}})), 0);
	expect_wc(*a->scq, {.id = 3});
	EXPECT_STREQ(there, "some kernel memory");
	rvt_core_mr_destroy(mr);
}

TEST_F(KernelRegions, UsersGetNeitherDmaNorKeyZero)
{
	Pd &user = w.add_pd(w.dev(), true);
	rvt_core_mr *mr = nullptr;

	EXPECT_LT(rvt_core_mr_create(user.raw, RVT_MR_DMA, 0, &mr), 0);
	w.user = true;
	auto [c, d] = w.pair(RVT_QPT_RC, {.pd = &user}, {.pd = &user});
	Mr &mine = w.add_mr(64, access_all, &user);

	EXPECT_EQ(c->post(wr_write(1, {{mine.iova, 8, 0}}, mine.iova, mine.key)), einval);
	ASSERT_EQ(c->post(wr_write(1, {mine.sge(0, 8)}, mine.iova, 0)), 0);
	expect_wc(*c->scq, {.id = 1, .status = RVT_WC_REM_ACCESS_ERR});
	(void)d;
}

TEST_F(KernelRegions, Case112_UsersGetNoFastRegistration)
{
	Pd &user = w.add_pd(w.dev(), true);

	w.user = true;
	auto [c, d] = w.pair(RVT_QPT_RC, {.pd = &user}, {.pd = &user});

	(void)d;
	EXPECT_EQ(c->post(wr_reg(1, fast.raw, fast.key, access_all)), einval);
	EXPECT_EQ(c->post(wr_local_inv(1, fast.key)), einval);
	expect_none(*c->scq);
	w.user = false;
}

TEST_F(KernelRegions, RegUseInvalidate)
{
	EXPECT_FALSE(usable(fast.key));
	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 1, .opcode = RVT_WC_REG_MR});
	local.write(0, "fastreg!");
	EXPECT_TRUE(usable(fast.key));
	EXPECT_EQ(fast.read(0, 8), "fastreg!");
	ASSERT_EQ(b->post(wr_local_inv(2, fast.key)), 0);
	expect_wc(*b->scq, {.id = 2, .opcode = RVT_WC_LOCAL_INV});
	EXPECT_FALSE(usable(fast.key));
	/* And again. */
	ASSERT_EQ(b->post(wr_reg(3, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 3});
	EXPECT_TRUE(usable(fast.key));
}

TEST_F(KernelRegions, Case122_KeyComesFromTheRequest)
{
	uint32_t key = (fast.key & ~0xffu) | ((fast.key + 1) & 0xff);

	ASSERT_EQ(b->post(wr_reg(1, fast.raw, key, access_all)), 0);
	expect_wc(*b->scq, {.id = 1});
	EXPECT_TRUE(usable(key));
	EXPECT_FALSE(usable(fast.key));
	EXPECT_TRUE(usable(key));
	ASSERT_EQ(b->post(wr_local_inv(2, key)), 0);
	expect_wc(*b->scq, {.id = 2});
	/* Only the low byte is the consumer's. */
	expect_refused(wr_reg(3, fast.raw, key ^ 0x10000, access_all));
	EXPECT_FALSE(usable(key));
	EXPECT_FALSE(usable(key ^ 0x10000));
}

TEST_F(KernelRegions, RightsComeFromTheRequest)
{
	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, RVT_ACCESS_REMOTE_READ)), 0);
	expect_wc(*b->scq, {.id = 1});
	EXPECT_FALSE(usable(fast.key));
	ASSERT_EQ(a->post(wr_read(1, {local.sge(0, 8)}, fast.iova, fast.key)), 0);
	expect_wc(*a->scq, {.id = 1});
}

TEST_F(KernelRegions, RegRefusesOtherRegions)
{
	Pd &other = w.add_pd();
	Mr &foreign = w.add_fast_mr(4096, &other);

	expect_refused(wr_reg(1, foreign.raw, foreign.key, access_all));
	expect_refused(wr_reg(1, local.raw, local.key, access_all));
	/* One that is valid already. */
	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 1});
	expect_refused(wr_reg(1, fast.raw, fast.key, access_all));
	EXPECT_TRUE(usable(fast.key));
}

TEST_F(KernelRegions, UnsignalledRegAndInvLeaveNothing)
{
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all, 0)), 0) << i;
		ASSERT_EQ(b->post(wr_local_inv(2, fast.key, 0)), 0) << i;
		w.m.settle();
	}
	expect_none(*b->scq);
	ASSERT_EQ(b->post(wr_reg(3, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 3});
}

TEST_F(KernelRegions, LocalOperationsNeedNoPeer)
{
	b->destroy();
	ASSERT_EQ(a->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	ASSERT_EQ(a->post(wr_local_inv(2, fast.key)), 0);
	expect_run(*a->scq, {1, 2}, RVT_WC_SUCCESS);
}

TEST_F(KernelRegions, Case089_LocalOperationsAreNotRepeated)
{
	size_t posted;

	b->attr.min_rnr_timer = 1;
	again();
	ASSERT_EQ(a->post({wr_reg(1, fast.raw, fast.key, access_all),
			   wr_send(2, {local.sge(0, 8)}), /* waits again and again */
			   wr_local_inv(3, fast.key)},
			  &posted),
		  0);
	w.m.advance(sim::ms);
	expect_wc(*a->scq, {.id = 1});
	expect_none(*a->scq);
	ASSERT_EQ(b->recv(9, {local.sge(100, 100)}), 0);
	w.m.advance(sim::ms);
	expect_run(*a->scq, {2, 3}, RVT_WC_SUCCESS);
	expect_none(*a->scq);
	expect_wc(*b->rcq, {.id = 9});
}

TEST_F(KernelRegions, RegAfterInvalidateOfOneKeyKeepsTheOrder)
{
	size_t posted;
	uint32_t key = (fast.key & ~0xffu) | ((fast.key + 7) & 0xff);

	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	ASSERT_EQ(b->post({wr_local_inv(2, fast.key, RVT_SEND_SIGNALED | RVT_SEND_FENCE),
			   wr_reg(3, fast.raw, key, access_all)},
			  &posted),
		  0);
	expect_run(*b->scq, {1, 2, 3}, RVT_WC_SUCCESS);
	EXPECT_TRUE(usable(key));
	EXPECT_FALSE(usable(fast.key));
}

TEST_F(KernelRegions, Case123_LocalInvalidateOfTheWrongThing)
{
	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 1});
	for (uint32_t key : {0u, local.key, fast.key ^ 1, fast.key ^ 0x1000000, ~0u}) {
		SCOPED_TRACE(key);
		expect_refused(wr_local_inv(2, key));
		EXPECT_TRUE(usable(fast.key));
	}
}

TEST_F(KernelRegions, Case124_SendWithInvalidate)
{
	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 1});
	ASSERT_EQ(b->recv(2, {local.sge(100, 50)}), 0);
	ASSERT_EQ(a->post(wr_send_inv(3, {local.sge(0, 8)}, fast.key)), 0);
	expect_wc(*a->scq, {.id = 3, .opcode = RVT_WC_SEND, .byte_len = 8});
	expect_wc(*b->rcq, {.id = 2,
			    .opcode = RVT_WC_RECV,
			    .byte_len = 8,
			    .flags = RVT_WC_WITH_INV,
			    .imm = fast.key});
	EXPECT_FALSE(usable(fast.key));
}

TEST_F(KernelRegions, Case178_SendWithInvalidateOfTheWrongKey)
{
	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 1});
	for (uint32_t key : {0u, local.key, fast.key ^ 1, fast.key ^ 0x1000000, ~0u}) {
		SCOPED_TRACE(key);
		ASSERT_EQ(b->recv(2, {local.sge(100, 50)}), 0);
		ASSERT_EQ(a->post(wr_send_inv(3, {local.sge(0, 8)}, key)), 0);
		auto wc = a->scq->poll();

		ASSERT_TRUE(wc);
		EXPECT_TRUE(wc->status == RVT_WC_REM_ACCESS_ERR || wc->status == RVT_WC_REM_OP_ERR)
			<< status_name(wc->status);
		wc = b->rcq->poll();
		ASSERT_TRUE(wc);
		EXPECT_EQ(wc->wr_id, 2u);
		EXPECT_NE(wc->status, uint32_t(RVT_WC_SUCCESS));
		EXPECT_EQ(wc->wc_flags & RVT_WC_WITH_INV, 0u);
		expect_none(*b->rcq);
		expect_state(*a, RVT_QPS_ERR);
		expect_state(*b, RVT_QPS_ERR);
		again();
		EXPECT_TRUE(usable(fast.key));
	}
}

/* The kernel's requests are checked when they run: a REG_MR may be before them. */
TEST_F(KernelRegions, LocalKeysAreCheckedWhenRun)
{
	Pd &other = w.add_pd();
	Mr &foreign = w.add_mr(64, access_all, &other);
	Mr &read_only = w.add_mr(64, RVT_ACCESS_REMOTE_READ);

	for (const Wr &wr :
	     {wr_send(1, {{local.iova, 8, local.key ^ 0x4000}}),
	      wr_write(1, {{local.iova - 1, 8, local.key}}, local.iova, local.key),
	      wr_write(1, {{~0ull - 3, 8, local.key}}, local.iova, local.key),
	      wr_write(1, {{local.iova + 8185, 8, local.key}}, local.iova, local.key),
	      wr_send(1, {foreign.sge()}), wr_send(1, {fast.sge(0, 8)}),
	      wr_read(1, {read_only.sge()}, local.iova, local.key),
	      wr_faa(1, read_only.sge(0, 8), local.iova, local.key, 1)}) {
		ASSERT_EQ(a->recv(9, {local.sge()}), 0);
		ASSERT_EQ(b->recv(8, {local.sge()}), 0);
		ASSERT_EQ(a->post(wr), 0);
		expect_wc(*a->scq, {.id = 1, .status = RVT_WC_LOC_PROT_ERR});
		expect_wc(*a->rcq, {.id = 9, .status = RVT_WC_WR_FLUSH_ERR});
		expect_state(*a, RVT_QPS_ERR);
		expect_state(*b, RVT_QPS_RTS);
		expect_none(*b->rcq);
		again();
	}
	size_t posted;
	ASSERT_EQ(a->post({wr_reg(1, fast.raw, fast.key, access_all),
			   wr_write(2, {fast.sge(0, 8)}, local.iova, local.key),
			   wr_local_inv(3, fast.key),
			   wr_write(4, {fast.sge(0, 8)}, local.iova, local.key)},
			  &posted),
		  0);
	expect_run(*a->scq, {1, 2, 3}, RVT_WC_SUCCESS);
	expect_wc(*a->scq, {.id = 4, .status = RVT_WC_LOC_PROT_ERR});
}

TEST_F(KernelRegions, DestroyOfAValidFastRegion)
{
	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	expect_wc(*b->scq, {.id = 1});
	EXPECT_TRUE(usable(fast.key));
	uint32_t key = fast.key;

	fast.destroy();
	EXPECT_FALSE(usable(key));
}

TEST_F(KernelRegions, InvalidateWhileASendFromItWaits)
{
	ASSERT_EQ(a->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	expect_wc(*a->scq, {.id = 1});
	ASSERT_EQ(a->post(wr_send(2, {fast.sge(0, 8)})), 0); /* waits: RNR */
	w.m.settle();
	fast.destroy();
	expect_state(*a, RVT_QPS_ERR);
	auto wc = a->scq->poll();
	ASSERT_TRUE(wc);
	EXPECT_EQ(wc->wr_id, 2u);
	EXPECT_NE(wc->status, uint32_t(RVT_WC_SUCCESS));
	expect_none(*a->scq);
}

/* Whether a send or a receive comes to nothing, and why: nobody who invalidates
   a region afterwards waits for it. */
TEST_F(KernelRegions, WhatComesToNothingHoldsNoRegion)
{
	const rvt_sge bad = {local.iova, 8, local.key ^ 0x4000};
	const struct {
		rvt_qp_type type;
		rvt_sge send;
		std::vector<rvt_sge> recv;
		std::optional<uint32_t> status; /* of the receive, if it is taken */
	} cases[] = {
		{RVT_QPT_UD, local.sge(0, 8), {fast.sge(0, 8)}, {}},
		{RVT_QPT_UD, local.sge(0, 8), {fast.sge(0, 8), fast.sge(8, 8)}, {}},
		/* Too small comes first: the key is nobody's error. */
		{RVT_QPT_UD, local.sge(0, 8), {fast.sge(0, 8), bad}, {}},
		{RVT_QPT_UD, local.sge(0, 8), {fast.sge(0, 48), bad}, RVT_WC_LOC_PROT_ERR},
		{RVT_QPT_UD, local.sge(0, 8), {bad, fast.sge(0, 48)}, RVT_WC_LOC_PROT_ERR},
		{RVT_QPT_RC, local.sge(0, 8), {fast.sge(0, 8), bad}, RVT_WC_LOC_PROT_ERR},
		{RVT_QPT_RC, local.sge(0, 8), {bad, fast.sge(0, 8)}, RVT_WC_LOC_PROT_ERR},
		{RVT_QPT_RC, local.sge(0, 8), {fast.sge(0, 4)}, RVT_WC_LOC_LEN_ERR},
		{RVT_QPT_RC, local.sge(0, 8), {fast.sge(0, 4), fast.sge(4, 3)}, RVT_WC_LOC_LEN_ERR},
		{RVT_QPT_RC, bad, {fast.sge(0, 8)}, {}},
		{RVT_QPT_RC, fast.sge(0, 8), {}, {}}, /* no receive: the send waits */
		{RVT_QPT_UD, fast.sge(0, 8), {}, {}},
	};

	for (bool shared : {false, true}) {
		for (const auto &c : cases) {
			SCOPED_TRACE(std::to_string(shared) + ", " + std::to_string(&c - cases));
			Srq *srq = shared ? &w.add_srq() : nullptr;
			auto [from, to] = c.type == RVT_QPT_RC
						  ? w.pair(RVT_QPT_RC, {}, {.srq = srq})
						  : std::pair(&w.add_ud(),
							      &w.add_ud(0x11111111, {.srq = srq}));

			ASSERT_EQ(a->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
			expect_wc(*a->scq, {.id = 1});
			if (!c.recv.empty())
				ASSERT_EQ(srq ? srq->recv(2, c.recv) : to->recv(2, c.recv), 0);
			ASSERT_EQ(from->post(c.type == RVT_QPT_RC
						     ? wr_send(3, {c.send})
						     : w.ud_to(*from, *to, 3, {c.send})),
				  0);
			if (c.status)
				expect_wc(*to->rcq, {.id = 2, .status = *c.status});
			expect_none(*to->rcq);
			ASSERT_EQ(a->post(wr_local_inv(4, fast.key)), 0);
			expect_wc(*a->scq, {.id = 4, .opcode = RVT_WC_LOCAL_INV});
		}
	}
}

/* Entries and pages end at different places at the two ends; all pins are given back. */
TEST_F(KernelRegions, FastRegionsInListsThatEndElsewhere)
{
	Mr &other = w.add_fast_mr(8192);
	auto [from, to] = w.pair(RVT_QPT_RC, {}, {});

	for (Mr *mr : {&fast, &other}) {
		ASSERT_EQ(a->post(wr_reg(1, mr->raw, mr->key, access_all)), 0);
		expect_wc(*a->scq, {.id = 1});
	}
	for (uint32_t first : {1u, 100u, 2500u}) {
		const std::string text = pattern(5000, first);

		SCOPED_TRACE(first);
		fast.fill('?');
		other.fill('.');
		fast.write(1000, text.substr(0, 4000));
		fast.write(6000, text.substr(4000));
		ASSERT_EQ(to->recv(2, {other.sge(3000, first), other.sge(4, 9),
				       other.sge(3000 + first, 4991 - first)}),
			  0);
		ASSERT_EQ(from->post(wr_send(3, {fast.sge(1000, 4000), fast.sge(6000, 1000)})), 0);
		expect_wc(*from->scq, {.id = 3});
		expect_wc(*to->rcq, {.id = 2, .byte_len = 5000});
		EXPECT_EQ(other.read(3000, first), text.substr(0, first));
		EXPECT_EQ(other.read(4, 9), text.substr(first, 9));
		EXPECT_EQ(other.read(3000 + first, 4991 - first), text.substr(first + 9));
		EXPECT_EQ(other.read(0, 4), "....");
		EXPECT_EQ(other.read(7991, 1), ".");
	}
	for (Mr *mr : {&fast, &other}) {
		ASSERT_EQ(a->post(wr_local_inv(4, mr->key)), 0);
		expect_wc(*a->scq, {.id = 4, .opcode = RVT_WC_LOCAL_INV});
	}
}

/* Mapped anew while bytes move: they go to pages that it has, not behind them. */
TEST_F(KernelRegions, AFastRegionThatIsMappedAnewInUse)
{
	Mem &mem = w.add_mem(4096);
	rvt_core_mr *mr;
	void *row;

	ASSERT_EQ(posix_memalign(&row, 4096, 3 * 4096), 0);
	ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_FAST, 3, &mr), 0);
	for (uint64_t i = 0; i < 3; i++)
		ASSERT_EQ(rvt_core_mr_set_page(mr, i, reinterpret_cast<uint64_t>(row) + i * 4096),
			  0);
	ASSERT_EQ(rvt_core_mr_map(mr, 0x10000, 3 * 4096, 3, 12), 0);
	const rvt::Extent granted = {mr, 0x10000, 3 * 4096};

	EXPECT_EQ(granted.piece().size, 3u * 4096);
	ASSERT_EQ(rvt_core_mr_set_page(mr, 0, reinterpret_cast<uint64_t>(mem.page(0))), 0);
	ASSERT_EQ(rvt_core_mr_map(mr, 0x10000, 4096, 1, 12), 0);
	EXPECT_EQ(granted.piece().data, reinterpret_cast<char *>(mem.page(0)));
	EXPECT_EQ(granted.piece().size, 4096u);
	rvt_core_mr_destroy(mr);
	free(row);
}

TEST_F(KernelRegions, LimitsAndBadArguments)
{
	rvt_core_mr *mr = nullptr;

	EXPECT_EQ(rvt_core_mr_map(fast.raw, 0x1000, 8193, 2, 12), einval);
	EXPECT_EQ(rvt_core_mr_map(fast.raw, ~0ull - 100, 8192, 2, 12), einval);
	EXPECT_EQ(rvt_core_mr_map(fast.raw, fast.iova, 8192, 3, 12), einval);
	EXPECT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_FAST, RVT_MAX_FAST_REG_PAGES + 1, &mr),
		  einval);
	ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_FAST, RVT_MAX_FAST_REG_PAGES, &mr), 0);
	rvt_core_mr_destroy(mr);
}

} // namespace
