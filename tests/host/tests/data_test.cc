// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Every opcode from end to end: the bytes and both completions. */
#include "util.h"

#include <set>

namespace
{

struct Param {
	rvt_qp_type type;
	bool user;
};

class Data : public testing::TestWithParam<Param>
{
protected:
	World w{GetParam().user};
	rvt_qp_type type = GetParam().type;
	std::pair<Qp *, Qp *> p = w.pair(type, {.max_send_sge = 8, .max_recv_sge = 8},
					 {.max_send_sge = 8, .max_recv_sge = 8});
	Qp *a = p.first, *b = p.second;

	void expect_sent(uint64_t id, uint32_t opcode, uint32_t len)
	{
		expect_wc(*a->scq, {.id = id,
				    .opcode = opcode,
				    .byte_len = len,
				    .flags = 0,
				    .qp_num = a->num});
	}
	void expect_received(uint64_t id, uint32_t opcode, uint32_t len, uint32_t flags,
			     uint32_t imm)
	{
		rvt_wc wc = expect_wc(*b->rcq, {.id = id,
						.opcode = opcode,
						.byte_len = len,
						.flags = flags,
						.qp_num = b->num,
						.src_qp = a->num,
						.slid = w.dev().lid,
						.port = 1});
		if (flags) {
			EXPECT_EQ(wc.imm_data, imm);
		}
		EXPECT_EQ(wc.pkey_index, 0);
		EXPECT_EQ(wc.sl, b->attr.ah.sl);
		EXPECT_EQ(wc.dlid_path_bits, 0);
	}
};
INSTANTIATE_TEST_SUITE_P(Types, Data,
			 testing::Values(Param{RVT_QPT_RC, true}, Param{RVT_QPT_UC, true},
					 Param{RVT_QPT_RC, false}, Param{RVT_QPT_UC, false}),
			 [](const auto &info) {
				 return std::string(info.param.type == RVT_QPT_RC ? "RC" : "UC") +
					(info.param.user ? "User" : "Kernel");
			 });

const uint32_t sizes[] = {0,	1,    7,    8,	  9,	255,   256,   257,    1023,
			  1024, 1025, 4095, 4096, 4097, 12289, 65536, 1048579};

TEST_P(Data, SendOfEverySize)
{
	Mr &from = w.add_mr(1 << 21), &to = w.add_mr(1 << 21);
	uint64_t id = 1;

	for (uint32_t n : sizes) {
		SCOPED_TRACE(n);
		std::string text = pattern(n, static_cast<unsigned int>(id));

		from.write(5, text);
		to.fill('.');
		ASSERT_EQ(b->recv(id, {to.sge(3, n + 10)}), 0);
		ASSERT_EQ(a->post(wr_send(id + 1, {from.sge(5, n)})), 0);
		expect_sent(id + 1, RVT_WC_SEND, n);
		expect_received(id, RVT_WC_RECV, n, 0, 0);
		EXPECT_EQ(to.read(3, n), text);
		EXPECT_EQ(to.read(0, 3), "...");
		EXPECT_EQ(to.read(3 + n, 16), std::string(16, '.'));
		id += 2;
	}
}

TEST_P(Data, SendWithImmediate)
{
	Mr &from = w.add_mr(100), &to = w.add_mr(100);

	from.write(0, pattern(100));
	ASSERT_EQ(b->recv(1, {to.sge()}), 0);
	ASSERT_EQ(a->post(wr_send_imm(2, {from.sge()}, 0x12345678)), 0);
	expect_sent(2, RVT_WC_SEND, 100);
	expect_received(1, RVT_WC_RECV, 100, RVT_WC_WITH_IMM, 0x12345678);
	EXPECT_EQ(to.read(0, 100), pattern(100));
}

TEST_P(Data, WriteOfEverySize)
{
	Mr &from = w.add_mr(1 << 21), &to = w.add_mr(1 << 21);
	uint64_t id = 1;

	for (uint32_t n : sizes) {
		SCOPED_TRACE(n);
		std::string text = pattern(n, static_cast<unsigned int>(id));

		from.write(4090, text);
		to.fill('.');
		ASSERT_EQ(a->post(wr_write(id, {from.sge(4090, n)}, to.iova + 17, to.key)), 0);
		expect_sent(id, RVT_WC_RDMA_WRITE, n);
		expect_none(*b->rcq);
		EXPECT_EQ(to.read(17, n), text);
		EXPECT_EQ(to.read(0, 17), std::string(17, '.'));
		EXPECT_EQ(to.read(17 + n, 16), std::string(16, '.'));
		id++;
	}
}

TEST_P(Data, Case140_WriteWithImmediate)
{
	Mr &from = w.add_mr(5000), &to = w.add_mr(5000);

	from.write(0, pattern(5000));
	/* The receive's own buffer is not used, not even looked at. */
	ASSERT_EQ(b->recv(1, {{0xdead000, 8, 0xbad}}), 0);
	ASSERT_EQ(b->recv(2, {}), 0);
	ASSERT_EQ(a->post(wr_write_imm(3, {from.sge()}, to.iova, to.key, 0xcafe)), 0);
	expect_sent(3, RVT_WC_RDMA_WRITE, 5000);
	expect_received(1, RVT_WC_RECV_RDMA_WITH_IMM, 5000, RVT_WC_WITH_IMM, 0xcafe);
	EXPECT_EQ(to.read(0, 5000), pattern(5000));
	ASSERT_EQ(a->post(wr_write_imm(4, {}, 0, 0, 1)), 0);
	expect_sent(4, RVT_WC_RDMA_WRITE, 0);
	expect_received(2, RVT_WC_RECV_RDMA_WITH_IMM, 0, RVT_WC_WITH_IMM, 1);
}

TEST_P(Data, ReadOfEverySize)
{
	if (type != RVT_QPT_RC)
		return;
	Mr &from = w.add_mr(1 << 21), &to = w.add_mr(1 << 21);
	uint64_t id = 1;

	for (uint32_t n : sizes) {
		SCOPED_TRACE(n);
		std::string text = pattern(n, static_cast<unsigned int>(id));

		from.write(100, text);
		to.fill('.');
		ASSERT_EQ(a->post(wr_read(id, {to.sge(50, n)}, from.iova + 100, from.key)), 0);
		expect_sent(id, RVT_WC_RDMA_READ, n);
		EXPECT_EQ(to.read(50, n), text);
		EXPECT_EQ(to.read(0, 50), std::string(50, '.'));
		EXPECT_EQ(to.read(50 + n, 16), std::string(16, '.'));
		id++;
	}
	expect_none(*b->rcq);
}

TEST_P(Data, CompareAndSwap)
{
	if (type != RVT_QPT_RC)
		return;
	Mr &local = w.add_mr(64), &remote = w.add_mr(64);

	remote.set_word(8, 42);
	local.fill('.');
	ASSERT_EQ(a->post(wr_cas(1, local.sge(16, 8), remote.iova + 8, remote.key, 42, 43)), 0);
	expect_sent(1, RVT_WC_COMP_SWAP, 8);
	EXPECT_EQ(local.word(16), 42u);
	EXPECT_EQ(remote.word(8), 43u);
	ASSERT_EQ(a->post(wr_cas(2, local.sge(16, 8), remote.iova + 8, remote.key, 42, 99)), 0);
	expect_sent(2, RVT_WC_COMP_SWAP, 8);
	EXPECT_EQ(local.word(16), 43u);
	EXPECT_EQ(remote.word(8), 43u);
	EXPECT_EQ(remote.word(0), 0u);
	EXPECT_EQ(remote.word(16), 0u);
	EXPECT_EQ(local.read(0, 16), std::string(16, '.'));
	EXPECT_EQ(local.read(24, 16), std::string(16, '.'));
}

TEST_P(Data, FetchAndAddIsModulo64Bits)
{
	if (type != RVT_QPT_RC)
		return;
	Mr &local = w.add_mr(64), &remote = w.add_mr(64);

	remote.set_word(0, ~0ull);
	ASSERT_EQ(a->post(wr_faa(1, local.sge(0, 8), remote.iova, remote.key, 3)), 0);
	expect_sent(1, RVT_WC_FETCH_ADD, 8);
	EXPECT_EQ(local.word(0), ~0ull);
	EXPECT_EQ(remote.word(0), 2u);
	ASSERT_EQ(a->post(wr_faa(2, local.sge(0, 8), remote.iova, remote.key, 0)), 0);
	expect_sent(2, RVT_WC_FETCH_ADD, 8);
	EXPECT_EQ(local.word(0), 2u);
	EXPECT_EQ(remote.word(8), 0u);
}

TEST_P(Data, Case134_AtomicResultBuffer)
{
	if (type != RVT_QPT_RC)
		return;
	Mr &local = w.add_mr(64), &remote = w.add_mr(64);
	Wr wr = wr_faa(1, local.sge(0, 8), remote.iova, remote.key, 1);

	wr.sge.clear();
	EXPECT_EQ(a->post(wr), einval);
	wr.sge = {local.sge(0, 7)};
	EXPECT_EQ(a->post(wr), einval);
	wr.sge = {local.sge(4, 8)};
	EXPECT_EQ(a->post(wr), einval);
	wr.sge = {local.sge(0, 8)};
	wr.sge[0].lkey ^= 0x10000;
	if (GetParam().user)
		EXPECT_EQ(a->post(wr), einval);
	EXPECT_EQ(remote.word(0), 0u);
	expect_none(*a->scq);
	/* A longer buffer: at most 8 bytes of it are written. */
	local.fill('.');
	wr.sge = {local.sge(0, 64)};
	if (a->post(wr) == 0) {
		expect_sent(1, RVT_WC_FETCH_ADD, 8);
		EXPECT_EQ(local.read(8, 56), std::string(56, '.'));
	}
}

TEST_P(Data, Case133_AtomicsAreAligned)
{
	if (type != RVT_QPT_RC)
		return;
	Mr &local = w.add_mr(64), &remote = w.add_mr(64);

	for (unsigned int off = 1; off < 8; off++) {
		ASSERT_EQ(a->post(wr_faa(1, local.sge(0, 8), remote.iova + off, remote.key, 1)), 0);
		expect_wc(*a->scq, {.id = 1, .status = RVT_WC_REM_INV_REQ_ERR});
		EXPECT_EQ(remote.word(0), 0u);
		EXPECT_EQ(remote.word(8), 0u);
		expect_state(*a, RVT_QPS_ERR);
		expect_state(*b, RVT_QPS_ERR);
		ASSERT_EQ(a->to(RVT_QPS_RESET), 0);
		ASSERT_EQ(b->to(RVT_QPS_RESET), 0);
		w.connect(*a, *b);
	}
}

/* Any split of the pieces on both sides gives the same bytes. */
TEST_P(Data, ScatterGatherAnySplit)
{
	Mr &from = w.add_mr(40000), &to = w.add_mr(40000), &third = w.add_mr(40000);
	uint32_t rng = 12345;
	auto rnd = [&](uint32_t n) {
		rng = rng * 1664525 + 1013904223;
		return (rng >> 8) % n;
	};

	for (int round = 0; round < 300; round++) {
		SCOPED_TRACE(round);
		uint32_t total = rnd(12000);
		std::string text = pattern(total, static_cast<unsigned int>(round));
		std::vector<rvt_sge> out, in;
		std::vector<std::pair<uint32_t, uint32_t>> in_at;
		uint32_t left = total, where = rnd(50), at = 0;

		while (left || out.empty()) {
			uint32_t n = out.size() == 7 ? left : rnd(left + 1);

			Mr &mr = out.size() % 2 ? from : third;
			mr.write(where, text.substr(at, n));
			out.push_back(mr.sge(where, n));
			where += n + rnd(3) * rnd(100);
			at += n;
			left -= n;
		}
		left = total + rnd(2) * rnd(500);
		where = rnd(50);
		at = 0;
		while (left || in.empty()) {
			uint32_t n = in.size() == 7 ? left : rnd(left + 1);

			in.push_back(to.sge(where, n));
			in_at.emplace_back(where, n);
			where += n + rnd(2) * rnd(100);
			left -= n;
		}
		to.fill('.');
		ASSERT_EQ(b->recv(1, in), 0);
		ASSERT_EQ(a->post(wr_send(2, out)), 0);
		expect_sent(2, RVT_WC_SEND, total);
		expect_received(1, RVT_WC_RECV, total, 0, 0);

		std::string got;

		for (auto [off, n] : in_at)
			got += to.read(off, n);
		ASSERT_EQ(got.substr(0, total), text);
		EXPECT_EQ(got.substr(total), std::string(got.size() - total, '.'));
	}
}

TEST_P(Data, Case101_NoPieces)
{
	auto post_poison = [&](Wr wr) {
		/* World::post passes whatever pointer an empty list has. */
		ASSERT_EQ(a->post(wr), 0);
	};

	ASSERT_EQ(b->recv(1, {}), 0);
	post_poison(wr_send(2, {}));
	expect_sent(2, RVT_WC_SEND, 0);
	expect_received(1, RVT_WC_RECV, 0, 0, 0);
	post_poison(wr_write(3, {}, 0x1234, 0x5678));
	expect_sent(3, RVT_WC_RDMA_WRITE, 0);
	if (type == RVT_QPT_RC) {
		post_poison(wr_read(4, {}, 0x1234, 0x5678));
		expect_sent(4, RVT_WC_RDMA_READ, 0);
	}
}

TEST_P(Data, Case102_EmptyPiecesAreSkippedUnchecked)
{
	Mr &from = w.add_mr(64), &to = w.add_mr(64);
	rvt_sge nothing = {0xbad, 0, 0xbad};

	from.write(0, pattern(16));
	ASSERT_EQ(b->recv(1, {nothing, to.sge(0, 8), nothing, to.sge(8, 20)}), 0);
	ASSERT_EQ(a->post(wr_send(2, {from.sge(0, 8), nothing, from.sge(8, 8), nothing})), 0);
	expect_sent(2, RVT_WC_SEND, 16);
	expect_received(1, RVT_WC_RECV, 16, 0, 0);
	EXPECT_EQ(to.read(0, 16), pattern(16));
}

TEST_P(Data, Case103_EmptyRdmaWithInvalidKey)
{
	Mr &mr = w.add_mr(8);

	ASSERT_EQ(a->post(wr_write(1, {mr.sge(0, 0)}, ~0ull, 0xbadbad)), 0);
	expect_sent(1, RVT_WC_RDMA_WRITE, 0);
	if (type == RVT_QPT_RC) {
		ASSERT_EQ(a->post(wr_read(2, {mr.sge(0, 0)}, ~0ull, 0xbadbad)), 0);
		expect_sent(2, RVT_WC_RDMA_READ, 0);
	}
	mr.destroy();
	expect_state(*a, RVT_QPS_RTS);
	expect_state(*b, RVT_QPS_RTS);
}

TEST_P(Data, Case145_ToItself)
{
	Qp &self = w.add_qp(type);
	Mr &mr = w.add_mr(256);

	w.connect(self, self);
	mr.write(0, "to myself!");
	ASSERT_EQ(self.recv(1, {mr.sge(100, 50)}), 0);
	ASSERT_EQ(self.post(wr_send(2, {mr.sge(0, 10)})), 0);
	expect_wc(*self.scq, {.id = 2, .opcode = RVT_WC_SEND});
	expect_wc(*self.rcq, {.id = 1, .byte_len = 10, .qp_num = self.num, .src_qp = self.num});
	EXPECT_EQ(mr.read(100, 10), "to myself!");
	ASSERT_EQ(self.post(wr_write(3, {mr.sge(0, 10)}, mr.iova + 200, mr.key)), 0);
	expect_wc(*self.scq, {.id = 3});
	EXPECT_EQ(mr.read(200, 10), "to myself!");
}

TEST_P(Data, UnsignalledSendsDoNotComplete)
{
	Mr &mr = w.add_mr(8);

	for (uint64_t i = 0; i < 5; i++)
		ASSERT_EQ(a->post(wr_write(i, {mr.sge()}, mr.iova, mr.key, 0)), 0);
	ASSERT_EQ(a->post(wr_write(5, {mr.sge()}, mr.iova, mr.key)), 0);
	expect_wc(*a->scq, {.id = 5});
	expect_none(*a->scq);
}

TEST_P(Data, SqSigAllMakesAllComplete)
{
	auto [c, d] = w.pair(type, {.sq_sig_all = true}, {});
	Mr &mr = w.add_mr(8);

	(void)d;
	for (uint64_t i = 0; i < 5; i++)
		ASSERT_EQ(c->post(wr_write(i, {mr.sge()}, mr.iova, mr.key, 0)), 0);
	expect_run(*c->scq, {0, 1, 2, 3, 4}, RVT_WC_SUCCESS);
}

TEST_P(Data, Case097_ABadRequestInAChain)
{
	Mr &mr = w.add_mr(64);
	size_t posted = 0;
	Wr bad = wr_write(3, {mr.sge()}, mr.iova, mr.key);

	bad.op = 99;
	EXPECT_EQ(a->post({wr_write(1, {mr.sge()}, mr.iova, mr.key),
			   wr_write(2, {mr.sge()}, mr.iova, mr.key), bad,
			   wr_write(4, {mr.sge()}, mr.iova, mr.key)},
			  &posted),
		  einval);
	EXPECT_EQ(posted, 2u);
	expect_run(*a->scq, {1, 2}, RVT_WC_SUCCESS);
	expect_none(*a->scq);
	/* The slot that was filled and given up leaves no trace. */
	ASSERT_EQ(a->post(wr_write(5, {mr.sge()}, mr.iova, mr.key)), 0);
	expect_wc(*a->scq, {.id = 5});
	expect_state(*a, RVT_QPS_RTS);
}

TEST_P(Data, LongChainInOneCall)
{
	auto [c, d] = w.pair(type, {.max_send_wr = 200, .send_cq = &w.add_cq(400)}, {});
	Mr &mr = w.add_mr(64);
	std::vector<Wr> chain;
	size_t posted = 0;

	(void)d;
	for (uint64_t i = 0; i < 201; i++)
		chain.push_back(wr_write(i, {mr.sge()}, mr.iova, mr.key));
	EXPECT_EQ(c->post(chain, &posted), enomem);
	EXPECT_EQ(posted, 200u);
	for (uint64_t i = 0; i < 200; i++)
		expect_wc(*c->scq, {.id = i});
}

TEST_P(Data, PostErrors)
{
	Mr &mr = w.add_mr(64), &read_only = w.add_mr(64, RVT_ACCESS_REMOTE_READ);
	Wr wr = wr_send(1, {});

	for (int i = 0; i < 9; i++)
		wr.sge.push_back(mr.sge(0, 1));
	EXPECT_EQ(a->post(wr), einval);
	for (uint32_t op : {8u, 10u, 11u, 12u, 31u, 33u, 255u, 0x80000000u, ~0u}) {
		wr = wr_send(1, {mr.sge()});
		wr.op = op;
		EXPECT_EQ(a->post(wr), einval) << op;
	}
	if (type == RVT_QPT_UC) {
		EXPECT_EQ(a->post(wr_read(1, {mr.sge()}, mr.iova, mr.key)), einval);
		EXPECT_EQ(a->post(wr_faa(1, mr.sge(0, 8), mr.iova, mr.key, 1)), einval);
		EXPECT_EQ(a->post(wr_cas(1, mr.sge(0, 8), mr.iova, mr.key, 1, 2)), einval);
		EXPECT_EQ(a->post(wr_send_inv(1, {mr.sge()}, mr.key)), einval);
	}
	/* A user's keys are looked at when posted, the kernel's when run. */
	if (!GetParam().user)
		return;
	for (rvt_sge sge : {rvt_sge{mr.iova, 65, mr.key}, rvt_sge{mr.iova - 1, 8, mr.key},
			    rvt_sge{mr.iova + 60, 5, mr.key}, rvt_sge{mr.iova, 8, 0},
			    rvt_sge{mr.iova, 8, ~0u}, rvt_sge{~0ull - 3, 8, mr.key}}) {
		EXPECT_EQ(a->post(wr_send(1, {sge})), einval);
	}
	/* A read writes into local memory; a send only reads it. */
	if (type == RVT_QPT_RC) {
		EXPECT_EQ(a->post(wr_read(1, {read_only.sge()}, mr.iova, mr.key)), einval);
		EXPECT_EQ(a->post(wr_faa(1, read_only.sge(0, 8), mr.iova, mr.key, 1)), einval);
	}
	expect_none(*a->scq);
	ASSERT_EQ(b->recv(1, {mr.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(1, {read_only.sge()})), 0);
	expect_wc(*a->scq, {.id = 1});
}

TEST_P(Data, Case104_SendFromReadOnlyMemory)
{
	if (type != RVT_QPT_RC || GetParam().user)
		return;
	Mr &from = w.add_mr(8, 0), &to = w.add_mr(8), &fast = w.add_fast_mr(4096);

	ASSERT_EQ(b->post(wr_reg(1, fast.raw, fast.key, access_all)), 0);
	ASSERT_EQ(b->recv(1, {to.sge()}), 0);
	ASSERT_EQ(a->post(wr_send_inv(2, {from.sge()}, fast.key)), 0);
	expect_wc(*a->scq, {.id = 2});
}

TEST_P(Data, StatesThatForbidPosting)
{
	Qp &qp = w.add_qp(type);
	Mr &mr = w.add_mr(8);

	qp.aim(*b);
	EXPECT_EQ(qp.post(wr_send(1, {mr.sge()})), einval);
	ASSERT_EQ(qp.to_init(), 0);
	EXPECT_EQ(qp.post(wr_send(1, {mr.sge()})), einval);
	ASSERT_EQ(qp.to_rtr(), 0);
	EXPECT_EQ(qp.post(wr_send(1, {mr.sge()})), einval);
	expect_none(*qp.scq);
	ASSERT_EQ(qp.to(RVT_QPS_ERR), 0);
	EXPECT_EQ(qp.post(wr_send(1, {mr.sge()})), 0);
	expect_wc(*qp.scq, {.id = 1, .status = RVT_WC_WR_FLUSH_ERR, .opcode = RVT_WC_SEND});
}

TEST_P(Data, Case106_Inline)
{
	auto [c, d] = w.pair(type, {.max_inline = 512}, {});
	Mr &to = w.add_mr(2048);
	uint32_t max = c->init.cap.max_inline_data;

	ASSERT_GE(max, 512u);
	EXPECT_EQ(rvt_core_qp_max_inline(c->raw), max);
	EXPECT_EQ(c->query().cap.max_inline_data, max);
	for (uint32_t n : {0u, 1u, 63u, 64u, 65u, 511u, 512u}) {
		SCOPED_TRACE(n);
		Wr wr = wr_send(n, {});

		/* Addresses that are nobody's: only the bytes count. */
		if (n)
			wr.sge = {{0x1000, n / 2, 0}, {0x5000, n - n / 2, 0xffff}};
		wr.flags |= RVT_SEND_INLINE;
		wr.inline_data = pattern(n);
		ASSERT_EQ(d->recv(1, {to.sge()}), 0);
		ASSERT_EQ(c->post(wr), 0);
		std::fill(wr.inline_data.begin(), wr.inline_data.end(), '?');
		expect_wc(*c->scq, {.id = n, .opcode = RVT_WC_SEND, .byte_len = n});
		expect_wc(*d->rcq, {.id = 1, .byte_len = n});
		EXPECT_EQ(to.read(0, n), pattern(n));

		wr.op = RVT_WR_RDMA_WRITE;
		wr.inline_data = pattern(n, 3);
		wr.raddr = to.iova + 1000;
		wr.rkey = to.key;
		ASSERT_EQ(c->post(wr), 0);
		expect_wc(*c->scq, {.id = n, .opcode = RVT_WC_RDMA_WRITE, .byte_len = n});
		EXPECT_EQ(to.read(1000, n), pattern(n, 3));
	}
	Wr wr = wr_send(1, {{0, max + 1, 0}});

	wr.flags |= RVT_SEND_INLINE;
	wr.inline_data = pattern(max + 1);
	EXPECT_EQ(c->post(wr), einval);
	/* Lengths whose 32-bit sum would be small. */
	wr.sge = {{0, 0xffffffff, 0}, {0, 9, 0}};
	EXPECT_EQ(c->post(wr), einval);
	/* A queue pair without inline room. */
	wr = wr_send(1, {{0, rvt_core_qp_max_inline(a->raw) + 1, 0}});
	wr.flags |= RVT_SEND_INLINE;
	wr.inline_data = pattern(rvt_core_qp_max_inline(a->raw) + 1);
	EXPECT_EQ(a->post(wr), einval);
	expect_none(*c->scq);
}

TEST_P(Data, Case106_InlineIsKeptWhileQueued)
{
	if (type != RVT_QPT_RC)
		return;
	auto [c, d] = w.pair(type, {.max_inline = 64}, {});
	Mr &to = w.add_mr(64);
	Wr wr = wr_send(1, {{0, 64, 0}});

	wr.flags |= RVT_SEND_INLINE;
	d->attr.min_rnr_timer = 1;
	wr.inline_data = pattern(64, 1);
	ASSERT_EQ(c->post(wr), 0);
	wr.inline_data = pattern(64, 2);
	ASSERT_EQ(c->post(wr), 0);
	wr.inline_data.assign(64, '?');
	ASSERT_EQ(d->recv(1, {to.sge()}), 0);
	w.m.advance(sim::second);
	EXPECT_EQ(to.read(0, 64), pattern(64, 1));
	ASSERT_EQ(d->recv(2, {to.sge()}), 0);
	w.m.advance(sim::second);
	EXPECT_EQ(to.read(0, 64), pattern(64, 2));
}

TEST_P(Data, Case125_FencedAfterReads)
{
	if (type != RVT_QPT_RC)
		return;
	Mr &local = w.add_mr(64), &remote = w.add_mr(64);

	remote.write(0, "REMOTE01");
	ASSERT_EQ(b->recv(9, {remote.sge(32, 8)}), 0);
	size_t posted;
	ASSERT_EQ(a->post({wr_read(1, {local.sge(0, 8)}, remote.iova, remote.key),
			   wr_send(2, {local.sge(0, 8)}, RVT_SEND_SIGNALED | RVT_SEND_FENCE)},
			  &posted),
		  0);
	expect_run(*a->scq, {1, 2}, RVT_WC_SUCCESS);
	expect_wc(*b->rcq, {.id = 9});
	EXPECT_EQ(remote.read(32, 8), "REMOTE01");
}

TEST_P(Data, MessageLengthsDoNotWrap)
{
	/* 2^31 is the longest; sums must not wrap in 32 bits. The memory is one
	 * page named very often. */
	rvt_core_mr *mr;
	constexpr uint32_t npages = 0x80001;
	Mem &page = w.add_mem(4096);

	ASSERT_EQ(rvt_core_mr_create(w.pd().raw, RVT_MR_MEM, npages, &mr), 0);
	for (uint32_t i = 0; i < npages; i++)
		ASSERT_EQ(rvt_core_mr_set_page(mr, i, reinterpret_cast<uint64_t>(page.page(0))), 0);
	uint64_t iova = 0x100000000000;
	ASSERT_EQ(rvt_core_mr_publish(mr, iova, 0x80001000, npages, 12, access_all), 0);
	uint32_t key = rvt_core_mr_key(mr);

	EXPECT_EQ(a->post(wr_write(1, {{iova, 0x80000001, key}}, iova, key)), einval);
	EXPECT_EQ(a->post(wr_write(1, {{iova, 0x80000000, key}, {iova, 1, key}}, iova, key)),
		  einval);
	EXPECT_EQ(
		a->post(wr_write(1, {{iova, 0x80000000, key}, {iova, 0x80000000, key}}, iova, key)),
		einval);
	EXPECT_EQ(a->post(wr_write(
			  1, {{iova, 0x80000000, key}, {iova, 0x80000000, key}, {iova, 8, key}},
			  iova, key)),
		  einval);
	expect_none(*a->scq);
	/* A receive buffer of 4 GiB + 8 takes a short message. */
	ASSERT_EQ(b->recv(2, {{iova, 0x80000000, key}, {iova, 0x80000000, key}, {iova, 8, key}}),
		  0);
	ASSERT_EQ(a->post(wr_send(3, {{iova, 100, key}})), 0);
	expect_wc(*a->scq, {.id = 3});
	expect_wc(*b->rcq, {.id = 2, .byte_len = 100});
	rvt_core_mr_destroy(mr);
}

/* --- counters --------------------------------------------------------------------- */

TEST_P(Data, CountersOfTraffic)
{
	Mr &from = w.add_mr(10000), &to = w.add_mr(10000);
	uint64_t pkts = w.dev().counter(RVT_CNT_LOOP_PKTS);
	uint64_t bytes = w.dev().counter(RVT_CNT_LOOP_BYTES);

	ASSERT_EQ(b->recv(1, {to.sge()}), 0);
	ASSERT_EQ(a->post(wr_send(2, {from.sge(0, 2049)})), 0); /* MTU 1024: 3 packets */
	w.m.settle();
	EXPECT_EQ(w.dev().counter(RVT_CNT_LOOP_PKTS), pkts + 3);
	EXPECT_EQ(w.dev().counter(RVT_CNT_LOOP_BYTES), bytes + 2049);
	EXPECT_EQ(w.dev().counter(RVT_CNT_SENDS), 1u);
	EXPECT_EQ(w.dev().counter(RVT_CNT_RECVS), 1u);
	ASSERT_EQ(a->post(wr_write(3, {}, 0, 0)), 0);
	w.m.settle();
	EXPECT_EQ(w.dev().counter(RVT_CNT_LOOP_PKTS), pkts + 4);
	EXPECT_EQ(w.dev().counter(RVT_CNT_SENDS), 2u);
	/* They outlive the queue pair. */
	a->destroy();
	b->destroy();
	EXPECT_EQ(w.dev().counter(RVT_CNT_LOOP_PKTS), pkts + 4);
	EXPECT_EQ(w.dev().counter(RVT_CNT_SENDS), 2u);
	EXPECT_EQ(w.dev().counter(RVT_CNT_RECVS), 1u);
}

TEST(Counters, EveryOneHasAName)
{
	std::set<std::string> names;

	for (int i = 0; i < RVT_COUNTERS; i++) {
		const char *name = rvt_core_counter_name(static_cast<rvt_counter>(i));

		ASSERT_TRUE(name);
		EXPECT_TRUE(*name);
		EXPECT_TRUE(names.insert(name).second) << name;
	}
}

} // namespace
