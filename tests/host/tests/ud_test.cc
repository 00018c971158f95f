// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Datagrams: addresses, keys, the global routing header, multicast. */
#include "util.h"

#include <set>

namespace
{

class Ud : public testing::TestWithParam<bool>
{
protected:
	World w{GetParam()};
	Qp &a = w.add_ud(), &b = w.add_ud();
	Mr &mr = w.add_mr(8192), &to = w.add_mr(8192);

	Wr wr(uint32_t n = 100, uint64_t id = 1) { return w.ud_to(a, b, id, {mr.sge(0, n)}); }
	void expect_lost(const Wr &wr, rvt_counter why)
	{
		uint64_t before = w.dev().counter(why);

		ASSERT_EQ(a.post(wr), 0);
		expect_wc(*a.scq, {.id = wr.id, .status = RVT_WC_SUCCESS, .opcode = RVT_WC_SEND});
		expect_none(*b.rcq);
		EXPECT_EQ(w.dev().counter(why), before + 1) << rvt_core_counter_name(why);
		expect_state(b, RVT_QPS_RTS);
	}
};
INSTANTIATE_TEST_SUITE_P(Consumers, Ud, testing::Bool(),
			 [](const auto &info) { return info.param ? "User" : "Kernel"; });

TEST_P(Ud, Case139_PayloadBehind40Bytes)
{
	for (uint32_t n : {0u, 1u, 3u, 4u, 1000u, 4095u, 4096u}) {
		SCOPED_TRACE(n);
		std::string text = pattern(n, n);
		Wr send = wr(n);

		mr.write(0, text);
		to.fill('.');
		send.ah->sl = 5;
		ASSERT_EQ(b.recv(7, {to.sge(0, n + 40)}), 0);
		ASSERT_EQ(a.post(send), 0);
		expect_wc(*a.scq, {.id = 1, .opcode = RVT_WC_SEND, .byte_len = n, .qp_num = a.num});
		rvt_wc wc = expect_wc(*b.rcq, {.id = 7,
					       .opcode = RVT_WC_RECV,
					       .byte_len = n + 40,
					       .flags = 0,
					       .qp_num = b.num,
					       .src_qp = a.num,
					       .slid = w.dev().lid,
					       .port = 1});
		EXPECT_EQ(wc.sl, 5);
		EXPECT_EQ(wc.pkey_index, 0);
		EXPECT_EQ(wc.dlid_path_bits, 0);
		EXPECT_EQ(to.read(40, n), text);
		EXPECT_EQ(to.read(40 + n, 8), "........");
	}
}

/* The header counts as written. */
TEST_P(Ud, AReceiveOverTheEndOfItsRegion)
{
	Mr &small = w.add_mr(4096);
	const rvt_sge over_the_end = {small.iova + 4096 - 140, 1000, small.key};

	mr.write(0, pattern(100, 3));
	ASSERT_EQ(b.recv(7, {over_the_end}), 0);
	ASSERT_EQ(a.post(wr(100)), 0);
	expect_wc(*a.scq, {.id = 1, .opcode = RVT_WC_SEND});
	expect_wc(*b.rcq, {.id = 7, .opcode = RVT_WC_RECV, .byte_len = 140});
	EXPECT_EQ(small.read(4096 - 100, 100), pattern(100, 3));

	ASSERT_EQ(b.recv(8, {over_the_end}), 0);
	ASSERT_EQ(a.post(wr(101)), 0);
	expect_wc(*a.scq, {.id = 1, .opcode = RVT_WC_SEND});
	expect_wc(*b.rcq, {.id = 8, .status = RVT_WC_LOC_PROT_ERR});
	expect_state(b, RVT_QPS_ERR);
}

TEST_P(Ud, Immediate)
{
	Wr send = wr();

	send.op = RVT_WR_SEND_WITH_IMM;
	send.imm = 0x11223344;
	ASSERT_EQ(b.recv(7, {to.sge()}), 0);
	ASSERT_EQ(a.post(send), 0);
	expect_wc(*a.scq, {.id = 1, .opcode = RVT_WC_SEND});
	expect_wc(*b.rcq, {.id = 7,
			   .opcode = RVT_WC_RECV,
			   .byte_len = 140,
			   .flags = RVT_WC_WITH_IMM,
			   .imm = 0x11223344});
}

TEST_P(Ud, TheGlobalRoutingHeader)
{
	for (bool imm : {false, true}) {
		for (uint32_t n : {0u, 1u, 2u, 3u, 4u, 100u, 4096u}) {
			SCOPED_TRACE(n);
			Wr send = wr(n);

			if (imm)
				send.op = RVT_WR_SEND_WITH_IMM;
			send.ah->has_grh = true;
			send.ah->sgid_index = 0;
			send.ah->traffic_class = 0xa5;
			send.ah->flow_label = 0xbcdef;
			send.ah->hop_limit = 64;
			memcpy(send.ah->dgid, w.dev().gid, 16);
			mr.write(0, pattern(n));
			to.fill('.');
			ASSERT_EQ(b.recv(7, {to.sge(0, 20), to.sge(100, 30), to.sge(200, 5000)}),
				  0);
			ASSERT_EQ(a.post(send), 0);
			expect_wc(*a.scq, {.id = 1});
			expect_wc(*b.rcq,
				  {.id = 7,
				   .byte_len = n + 40,
				   .flags = RVT_WC_GRH | (imm ? uint32_t(RVT_WC_WITH_IMM) : 0u)});
			std::string all = to.read(0, 20) + to.read(100, 30) + to.read(200, 5000);
			const auto *grh = reinterpret_cast<const uint8_t *>(all.data());
			uint32_t payload = 12 + 8 + (imm ? 4 : 0) + (n + 3) / 4 * 4 + 4;

			EXPECT_EQ(grh[0], 0x6a); /* version 6, traffic class a5, */
			EXPECT_EQ(grh[1], 0x5b); /* flow label bcdef */
			EXPECT_EQ(grh[2], 0xcd);
			EXPECT_EQ(grh[3], 0xef);
			EXPECT_EQ(grh[4] << 8 | grh[5], static_cast<int>(payload));
			EXPECT_EQ(grh[6], 0x1b);
			EXPECT_EQ(grh[7], 64);
			EXPECT_EQ(memcmp(grh + 8, w.dev().gid, 16), 0);
			EXPECT_EQ(memcmp(grh + 24, send.ah->dgid, 16), 0);
			EXPECT_EQ(all.substr(40, n), pattern(n));
		}
	}
}

TEST_P(Ud, WithoutAGrhTheFirst40BytesStay)
{
	to.fill('.');
	ASSERT_EQ(b.recv(7, {to.sge()}), 0);
	ASSERT_EQ(a.post(wr()), 0);
	expect_wc(*b.rcq, {.id = 7});
	EXPECT_EQ(to.read(0, 40), std::string(40, '.'));
}

TEST_P(Ud, Case142_QKeys)
{
	Wr send = wr();

	send.qkey ^= 1;
	ASSERT_EQ(b.recv(7, {to.sge()}), 0);
	expect_lost(send, RVT_CNT_DROP_QKEY);
	/* The high bit: the sender's own Q_Key is used. */
	send.qkey = 0x80000000;
	ASSERT_EQ(a.post(send), 0);
	expect_wc(*b.rcq, {.id = 7});
	Qp &other = w.add_ud(0x2222);
	ASSERT_EQ(other.recv(8, {to.sge()}), 0);
	send = w.ud_to(a, other, 2, {mr.sge(0, 8)});
	ASSERT_EQ(a.post(send), 0);
	expect_wc(*other.rcq, {.id = 8});
	ASSERT_EQ(other.recv(9, {to.sge()}), 0);
	send.qkey = 0x80000000;
	ASSERT_EQ(a.post(send), 0);
	expect_none(*other.rcq);
}

TEST_P(Ud, QKeyCanBeChangedInRts)
{
	b.attr.qkey = 0x777;
	ASSERT_EQ(b.modify(RVT_QP_QKEY), 0);
	ASSERT_EQ(b.recv(7, {to.sge()}), 0);
	Wr send = wr();
	send.qkey = 0x777;
	ASSERT_EQ(a.post(send), 0);
	expect_wc(*b.rcq, {.id = 7});
}

TEST_P(Ud, PKeys)
{
	struct {
		uint16_t from, to;
		bool arrives;
	} const all[] = {
		{0xffff, 0xffff, true},	 {0x8123, 0x8123, true},  {0x8123, 0x0123, true},
		{0x0123, 0x8123, true},	 {0x0123, 0x0123, false}, {0x8123, 0x8124, false},
		{0x8000, 0x8000, false}, {0x0000, 0x0000, false}, {0x8000, 0xffff, false},
		{0x7fff, 0xffff, true},	 {0x7fff, 0x7fff, false},
	};

	for (const auto &one : all) {
		SCOPED_TRACE(testing::Message() << std::hex << one.from << " " << one.to);
		rvt_core_pkey_set(w.dev().raw, 3, one.from);
		rvt_core_pkey_set(w.dev().raw, 4, one.to);
		for (auto [qp, index] : {std::pair(&a, 3), std::pair(&b, 4)}) {
			qp->attr.pkey_index = static_cast<uint16_t>(index);
			ASSERT_EQ(qp->to(RVT_QPS_RESET), 0);
			ASSERT_EQ(qp->to_init(), 0);
			ASSERT_EQ(qp->to_rtr(), 0);
			ASSERT_EQ(qp->to_rts(), 0);
		}
		ASSERT_EQ(b.recv(7, {to.sge()}), 0);
		if (one.arrives) {
			ASSERT_EQ(a.post(wr()), 0);
			expect_wc(*a.scq, {.id = 1});
			expect_wc(*b.rcq, {.id = 7});
		} else {
			expect_lost(wr(), RVT_CNT_DROP_PKEY);
		}
	}
}

TEST_P(Ud, ATooSmallReceiveIsKept)
{
	ASSERT_EQ(b.recv(7, {to.sge(0, 139)}), 0);
	ASSERT_EQ(b.recv(8, {to.sge(1000, 500)}), 0);
	expect_lost(wr(100), RVT_CNT_DROP_LEN);
	expect_lost(wr(200), RVT_CNT_DROP_LEN);
	mr.write(0, pattern(99));
	ASSERT_EQ(a.post(wr(99)), 0);
	expect_wc(*b.rcq, {.id = 7, .byte_len = 139});
	EXPECT_EQ(to.read(40, 99), pattern(99));
	ASSERT_EQ(a.post(wr(100)), 0);
	expect_wc(*b.rcq, {.id = 8, .byte_len = 140});
	/* A kept one is flushed like the others, and first. */
	ASSERT_EQ(b.recv(9, {to.sge(0, 10)}), 0);
	ASSERT_EQ(b.recv(10, {to.sge(0, 10)}), 0);
	ASSERT_EQ(a.post(wr(100)), 0);
	expect_none(*b.rcq);
	ASSERT_EQ(b.to(RVT_QPS_ERR), 0);
	expect_run(*b.rcq, {9, 10}, RVT_WC_WR_FLUSH_ERR);
	expect_none(*b.rcq);
}

TEST_P(Ud, AKeptReceiveIsForgottenByReset)
{
	ASSERT_EQ(b.recv(7, {to.sge(0, 10)}), 0);
	expect_lost(wr(100), RVT_CNT_DROP_LEN);
	ASSERT_EQ(b.to(RVT_QPS_RESET), 0);
	ASSERT_EQ(b.to_init(), 0);
	ASSERT_EQ(b.to_rtr(), 0);
	expect_none(*b.rcq);
	ASSERT_EQ(b.recv(8, {to.sge()}), 0);
	ASSERT_EQ(a.post(wr(100)), 0);
	expect_wc(*b.rcq, {.id = 8});
}

TEST_P(Ud, ReceiveShorterThanTheHeader)
{
	for (uint32_t n : {0u, 1u, 39u}) {
		ASSERT_EQ(b.recv(7, {to.sge(0, n)}), 0);
		expect_lost(wr(0), RVT_CNT_DROP_LEN);
		ASSERT_EQ(b.to(RVT_QPS_ERR), 0);
		expect_wc(*b.rcq, {.id = 7, .status = RVT_WC_WR_FLUSH_ERR});
		ASSERT_EQ(b.to(RVT_QPS_RESET), 0);
		ASSERT_EQ(b.to_init(), 0);
		ASSERT_EQ(b.to_rtr(), 0);
		ASSERT_EQ(b.to_rts(), 0);
	}
	ASSERT_EQ(b.recv(7, {to.sge(0, 40)}), 0);
	ASSERT_EQ(a.post(wr(0)), 0);
	expect_wc(*b.rcq, {.id = 7, .byte_len = 40});
}

TEST_P(Ud, LostMessages)
{
	expect_lost(wr(), RVT_CNT_DROP_NO_RWQE);
	Wr send = wr();

	send.remote_qpn = 0xabcdef;
	expect_lost(send, RVT_CNT_DROP_NO_QP);
	send = wr();
	send.ah->dlid = 0x3000;
	expect_lost(send, RVT_CNT_DROP_NO_QP);
	auto [c, d] = w.pair(RVT_QPT_RC);
	(void)d;
	send = wr();
	send.remote_qpn = c->num;
	expect_lost(send, RVT_CNT_DROP_NO_QP);
	Qp &init = w.add_qp(RVT_QPT_UD);
	ASSERT_EQ(init.to_init(), 0);
	ASSERT_EQ(init.recv(3, {to.sge()}), 0);
	send.remote_qpn = init.num;
	expect_lost(send, RVT_CNT_DROP_NO_QP);
	expect_none(*init.rcq);
}

TEST_P(Ud, ABadReceiveKeyIsTheReceiversError)
{
	ASSERT_EQ(b.recv(7, {{to.iova, 200, to.key ^ 0x4000}}), 0);
	ASSERT_EQ(b.recv(8, {to.sge()}), 0);
	ASSERT_EQ(a.post(wr()), 0);
	expect_wc(*a.scq, {.id = 1});
	expect_wc(*b.rcq, {.id = 7, .status = RVT_WC_LOC_PROT_ERR});
	expect_wc(*b.rcq, {.id = 8, .status = RVT_WC_WR_FLUSH_ERR});
	expect_state(b, RVT_QPS_ERR);
	expect_state(a, RVT_QPS_RTS);
}

TEST_P(Ud, PostErrors)
{
	Wr send = wr(4097);

	EXPECT_EQ(a.post(send), einval);
	for (uint32_t op : {RVT_WR_RDMA_WRITE, RVT_WR_RDMA_WRITE_WITH_IMM, RVT_WR_RDMA_READ,
			    RVT_WR_ATOMIC_CMP_AND_SWP, RVT_WR_ATOMIC_FETCH_AND_ADD,
			    RVT_WR_SEND_WITH_INV, RVT_WR_LOCAL_INV}) {
		send = wr(8);
		send.op = op;
		EXPECT_EQ(a.post(send), einval) << op;
	}
	Pd &other = w.add_pd();
	send = wr(8);
	send.ah_pd = other.raw;
	EXPECT_EQ(a.post(send), einval); /* case 116 */
	expect_none(*a.scq);
}

TEST_P(Ud, Case141_TheAddressIsCopiedWhenPosted)
{
	ASSERT_EQ(a.to(RVT_QPS_SQD), 0);
	ASSERT_EQ(b.recv(7, {to.sge()}), 0);
	{
		Wr send = wr();

		ASSERT_EQ(a.post(send), 0);
		send.ah->dlid = 0x3000;
		send.ah.reset();
	}
	ASSERT_EQ(a.to(RVT_QPS_RTS), 0);
	expect_wc(*a.scq, {.id = 1});
	expect_wc(*b.rcq, {.id = 7});
}

TEST_P(Ud, ToItself)
{
	ASSERT_EQ(a.recv(7, {to.sge()}), 0);
	ASSERT_EQ(a.post(w.ud_to(a, a, 3, {mr.sge(0, 10)})), 0);
	expect_wc(*a.scq, {.id = 3});
	expect_wc(*a.rcq, {.id = 7, .byte_len = 50, .src_qp = a.num});
}

TEST_P(Ud, SolicitedWakes)
{
	ASSERT_EQ(b.recv(7, {to.sge()}), 0);
	ASSERT_EQ(b.recv(8, {to.sge()}), 0);
	b.rcq->arm(true);
	ASSERT_EQ(a.post(wr()), 0);
	w.m.settle();
	EXPECT_EQ(b.rcq->upcalls, 0u);
	Wr send = wr();
	send.flags |= RVT_SEND_SOLICITED;
	ASSERT_EQ(a.post(send), 0);
	w.m.settle();
	EXPECT_EQ(b.rcq->upcalls, 1u);
}

/* The port has one LID: path bits lead nowhere else. */
TEST_P(Ud, TheSlidIsThePortsWhateverThePathBits)
{
	Wr send = wr();

	ASSERT_EQ(b.recv(7, {to.sge()}), 0);
	send.ah->src_path_bits = 5;
	ASSERT_EQ(a.post(send), 0);
	expect_wc(*b.rcq, {.id = 7, .slid = w.dev().lid});
}

TEST_P(Ud, FromAnSrq)
{
	Srq &srq = w.add_srq(8, 4);
	Qp &c = w.add_ud(0x11111111, {.srq = &srq});

	mr.write(0, pattern(100));
	ASSERT_EQ(srq.recv(7, {to.sge(0, 50)}), 0);
	ASSERT_EQ(srq.recv(8, {to.sge(100, 500)}), 0);
	/* The first is too small and kept by this queue pair. */
	ASSERT_EQ(a.post(w.ud_to(a, c, 1, {mr.sge(0, 100)})), 0);
	expect_none(*c.rcq);
	ASSERT_EQ(a.post(w.ud_to(a, c, 2, {mr.sge(0, 10)})), 0);
	expect_wc(*c.rcq, {.id = 7, .byte_len = 50});
	ASSERT_EQ(a.post(w.ud_to(a, c, 3, {mr.sge(0, 100)})), 0);
	expect_wc(*c.rcq, {.id = 8, .byte_len = 140});
	EXPECT_EQ(to.read(140, 100), pattern(100));
}

/* --- management queue pairs ------------------------------------------------------------- */

TEST(Management, GsiTalksToUdAndSmiOnlyToSmi)
{
	World w(false);
	Device &second = w.add_device();
	Pd &pd2 = w.add_pd(second, false);
	Qp &gsi = w.add_qp(RVT_QPT_GSI), &gsi2 = w.add_qp(RVT_QPT_GSI, {}, &pd2);
	Qp &smi = w.add_qp(RVT_QPT_SMI), &smi2 = w.add_qp(RVT_QPT_SMI, {}, &pd2);
	Mr &mr = w.add_mr(1024), &mr2 = w.add_mr(1024, access_all, &pd2);

	for (Qp *qp : {&gsi, &gsi2, &smi, &smi2}) {
		qp->attr.qkey = qp->type == RVT_QPT_GSI ? 0x80010000 : 0;
		ASSERT_EQ(qp->to_init(), 0);
		ASSERT_EQ(qp->to_rtr(), 0);
		ASSERT_EQ(qp->to_rts(), 0);
	}
	Qp &ud = w.add_ud(0x80010000);

	ASSERT_EQ(gsi2.recv(1, {mr2.sge()}), 0);
	Wr wr = w.ud_to(gsi, gsi2, 9, {mr.sge(0, 256)});
	ASSERT_EQ(gsi.post(wr), 0);
	expect_wc(*gsi.scq, {.id = 9});
	expect_wc(*gsi2.rcq, {.id = 1, .byte_len = 296, .src_qp = 1, .slid = w.dev().lid});
	ASSERT_EQ(ud.recv(2, {mr.sge()}), 0);
	ASSERT_EQ(gsi2.post(w.ud_to(gsi2, ud, 9, {mr2.sge(0, 64)})), 0);
	expect_wc(*ud.rcq, {.id = 2, .src_qp = 1});
	ASSERT_EQ(gsi2.recv(3, {mr2.sge()}), 0);
	ASSERT_EQ(ud.post(w.ud_to(ud, gsi2, 9, {mr.sge(0, 64)})), 0);
	expect_wc(*gsi2.rcq, {.id = 3, .src_qp = ud.num});

	ASSERT_EQ(smi2.recv(4, {mr2.sge()}), 0);
	ASSERT_EQ(smi.post(w.ud_to(smi, smi2, 9, {mr.sge(0, 256)})), 0);
	expect_wc(*smi2.rcq, {.id = 4, .src_qp = 0});
	ASSERT_EQ(smi2.recv(5, {mr2.sge()}), 0);
	Wr to_smi = w.ud_to(ud, smi2, 10, {mr.sge(0, 256)});
	ASSERT_EQ(ud.post(to_smi), 0);
	ASSERT_EQ(gsi.post(w.ud_to(gsi, smi2, 10, {mr.sge(0, 256)})), 0);
	expect_none(*smi2.rcq);
}

// Whoever may write to a umad device chooses it.
TEST(Management, ThePKeyIndexOfAMessageIsWithinTheTable)
{
	World w(false);
	Qp &gsi = w.add_qp(RVT_QPT_GSI), &ud = w.add_ud(0x80010000);
	Mr &mr = w.add_mr(64), &to = w.add_mr(1024);

	gsi.attr.qkey = 0x80010000;
	ASSERT_EQ(gsi.to_init(), 0);
	ASSERT_EQ(gsi.to_rtr(), 0);
	ASSERT_EQ(gsi.to_rts(), 0);
	for (unsigned int index : {RVT_MAX_PKEYS + 0u, 0xffffu}) {
		Wr wr = w.ud_to(gsi, ud, 9, {mr.sge()});

		wr.pkey_index = static_cast<uint16_t>(index);
		EXPECT_EQ(gsi.post(wr), einval) << index;
		/* Elsewhere the field means nothing. */
		wr = w.ud_to(ud, ud, 10, {mr.sge()});
		wr.pkey_index = static_cast<uint16_t>(index);
		ASSERT_EQ(ud.recv(1, {to.sge()}), 0);
		EXPECT_EQ(ud.post(wr), 0) << index;
		expect_wc(*ud.rcq, {.id = 1});
		expect_wc(*ud.scq, {.id = 10});
	}
}

/* --- multicast ------------------------------------------------------------------------------ */

class Multicast : public testing::TestWithParam<bool>
{
protected:
	World w{GetParam()};
	Mr &mr = w.add_mr(4096);
	uint8_t mgid[16] = {0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
	static constexpr uint16_t mlid = 0xc001;

	Wr to_group(const Qp &from, uint64_t id, uint32_t n = 64)
	{
		Wr wr = w.ud_to(from, from, id, {mr.sge(0, n)});

		wr.remote_qpn = 0xffffff;
		wr.qkey = 0x11111111;
		wr.ah->dlid = mlid;
		wr.ah->has_grh = true;
		memcpy(wr.ah->dgid, mgid, 16);
		return wr;
	}
};
INSTANTIATE_TEST_SUITE_P(Consumers, Multicast, testing::Bool(),
			 [](const auto &info) { return info.param ? "User" : "Kernel"; });

TEST_P(Multicast, Case143_EveryOtherMemberGetsOneCopy)
{
	Device &second = w.add_device();
	Pd &pd2 = w.add_pd(second, w.user);
	Mr &mr2 = w.add_mr(4096, access_all, &pd2);
	Qp &sender = w.add_ud();
	std::vector<Qp *> members;

	for (int i = 0; i < 5; i++)
		members.push_back(i == 4 ? &w.add_ud(0x11111111, {}, &pd2) : &w.add_ud());
	members.push_back(&sender);
	for (Qp *qp : members) {
		ASSERT_EQ(rvt_core_mcast_attach(qp->raw, mgid, mlid), 0);
		ASSERT_EQ(rvt_core_mcast_attach(qp->raw, mgid, mlid), 0); /* twice is once */
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(qp->recv(i, {qp->dev == &second ? mr2.sge(1000, 500)
								  : mr.sge(1000, 500)}),
				  0);
	}
	mr.write(0, pattern(64));
	ASSERT_EQ(sender.post(to_group(sender, 9)), 0);
	expect_wc(*sender.scq, {.id = 9, .opcode = RVT_WC_SEND});
	for (Qp *qp : members) {
		if (qp == &sender) {
			expect_none(*qp->rcq);
			continue;
		}
		expect_wc(*qp->rcq, {.id = 0,
				     .byte_len = 104,
				     .flags = RVT_WC_GRH,
				     .qp_num = qp->num,
				     .src_qp = sender.num,
				     .slid = w.dev().lid});
		expect_none(*qp->rcq);
		Mr &got = qp->dev == &second ? mr2 : mr;

		EXPECT_EQ(got.read(1040, 64), pattern(64));
		EXPECT_EQ(got.read(1024, 16), std::string(reinterpret_cast<char *>(mgid), 16));
	}
	/* A detached one gets nothing any more. */
	ASSERT_EQ(rvt_core_mcast_detach(members[0]->raw, mgid, mlid), 0);
	EXPECT_EQ(rvt_core_mcast_detach(members[0]->raw, mgid, mlid), einval);
	ASSERT_EQ(sender.post(to_group(sender, 10)), 0);
	w.m.settle();
	expect_none(*members[0]->rcq);
	expect_wc(*members[1]->rcq, {.id = 1});
	for (size_t i = 1; i < members.size(); i++)
		ASSERT_EQ(rvt_core_mcast_detach(members[i]->raw, mgid, mlid), 0);
	ASSERT_EQ(sender.post(to_group(sender, 11)), 0);
	expect_run(*sender.scq, {10, 11}, RVT_WC_SUCCESS);
	expect_none(*members[1]->rcq);
}

TEST_P(Multicast, OneMembersTroubleIsItsOwn)
{
	Qp &sender = w.add_ud(), &good = w.add_ud(), &no_recv = w.add_ud();
	Qp &other_key = w.add_ud(0x999), &small = w.add_ud(), &err = w.add_ud();

	for (Qp *qp : {&no_recv, &other_key, &small, &err, &good})
		ASSERT_EQ(rvt_core_mcast_attach(qp->raw, mgid, mlid), 0);
	ASSERT_EQ(good.recv(1, {mr.sge(1000, 200)}), 0);
	ASSERT_EQ(other_key.recv(1, {mr.sge(1000, 200)}), 0);
	ASSERT_EQ(small.recv(1, {mr.sge(1000, 20)}), 0);
	ASSERT_EQ(err.to(RVT_QPS_ERR), 0);
	ASSERT_EQ(sender.post(to_group(sender, 9)), 0);
	expect_wc(*sender.scq, {.id = 9});
	expect_wc(*good.rcq, {.id = 1});
	expect_none(*other_key.rcq);
	expect_none(*small.rcq);
	expect_state(no_recv, RVT_QPS_RTS);
	for (Qp *qp : {&no_recv, &other_key, &small, &err, &good})
		ASSERT_EQ(rvt_core_mcast_detach(qp->raw, mgid, mlid), 0);
}

TEST_P(Multicast, AttachRules)
{
	uint8_t second[16];
	Qp &ud = w.add_ud(), &reset = w.add_qp(RVT_QPT_UD);
	auto [rc, peer] = w.pair(RVT_QPT_RC);

	(void)peer;
	memcpy(second, mgid, 16);
	second[15] = 2;
	EXPECT_EQ(rvt_core_mcast_attach(rc->raw, mgid, mlid), einval);
	EXPECT_EQ(rvt_core_mcast_attach(reset.raw, mgid, mlid), einval);
	EXPECT_EQ(rvt_core_mcast_detach(ud.raw, mgid, mlid), einval);
	ASSERT_EQ(rvt_core_mcast_attach(ud.raw, mgid, mlid), 0);
	EXPECT_EQ(rvt_core_mcast_attach(ud.raw, mgid, mlid + 1), einval);
	/* One MLID may serve several groups. */
	EXPECT_EQ(rvt_core_mcast_attach(ud.raw, second, mlid), 0);
	EXPECT_EQ(rvt_core_mcast_detach(ud.raw, second, mlid), 0);
	EXPECT_EQ(rvt_core_mcast_detach(ud.raw, mgid, mlid), 0);
	/* Gone with its last member: another MLID is fine now. */
	EXPECT_EQ(rvt_core_mcast_attach(ud.raw, mgid, mlid + 1), 0);
	EXPECT_EQ(rvt_core_mcast_detach(ud.raw, mgid, mlid + 1), 0);
}

TEST_P(Multicast, GroupsHoldTheirMostMembers)
{
	Cq &cq = w.add_cq();
	std::vector<Qp *> members;
	QpOpts opts = {.max_send_wr = 1, .max_recv_wr = 1, .send_cq = &cq, .recv_cq = &cq};

	for (int i = 0; i < RVT_MAX_MCAST_QP; i++) {
		members.push_back(&w.add_ud(0x11111111, opts));
		ASSERT_EQ(rvt_core_mcast_attach(members.back()->raw, mgid, mlid), 0) << i;
	}
	Qp &one_more = w.add_ud(0x11111111, opts);
	EXPECT_EQ(rvt_core_mcast_attach(one_more.raw, mgid, mlid), enomem);
	ASSERT_EQ(rvt_core_mcast_detach(members[5]->raw, mgid, mlid), 0);
	EXPECT_EQ(rvt_core_mcast_attach(one_more.raw, mgid, mlid), 0);
	members[5] = &one_more;
	for (Qp *qp : members)
		EXPECT_EQ(rvt_core_mcast_detach(qp->raw, mgid, mlid), 0);
}

/* As many groups as query_device says; each is found, and none other with it. */
TEST_P(Multicast, ADeviceHoldsItsMostGroups)
{
	Qp &sender = w.add_ud(), &member = w.add_ud(), &other = w.add_ud();
	auto group = [this](unsigned int i) {
		mgid[4] = static_cast<uint8_t>(i >> 8); /* in both halves */
		mgid[15] = static_cast<uint8_t>(i);
		return mgid;
	};
	auto in_group = [&](unsigned int i) -> Qp & { return i % 2 ? other : member; };

	for (unsigned int i = 0; i < RVT_MAX_MCAST_GRP; i++)
		ASSERT_EQ(rvt_core_mcast_attach(in_group(i).raw, group(i), mlid), 0) << i;
	EXPECT_EQ(rvt_core_mcast_attach(member.raw, group(RVT_MAX_MCAST_GRP), mlid), enomem);
	/* To be one of those that exist is still possible. */
	EXPECT_EQ(rvt_core_mcast_attach(other.raw, group(4000), mlid), 0);
	EXPECT_EQ(rvt_core_mcast_detach(other.raw, group(4000), mlid), 0);
	for (unsigned int i :
	     {0u, 1u, 255u, 256u, 8191u, RVT_MAX_MCAST_GRP - 2u, RVT_MAX_MCAST_GRP - 1u}) {
		ASSERT_EQ(in_group(i).recv(i, {mr.sge(1000, 200)}), 0);
		group(i);
		ASSERT_EQ(sender.post(to_group(sender, i)), 0);
		expect_wc(*sender.scq, {.id = i});
		expect_wc(*in_group(i).rcq, {.id = i});
		expect_none(*in_group(i + 1).rcq);
	}
	for (unsigned int i = 0; i < RVT_MAX_MCAST_GRP; i++)
		ASSERT_EQ(rvt_core_mcast_detach(in_group(i).raw, group(i), mlid), 0) << i;
	EXPECT_EQ(rvt_core_mcast_attach(member.raw, group(RVT_MAX_MCAST_GRP), mlid), 0);
	EXPECT_EQ(rvt_core_mcast_detach(member.raw, mgid, mlid), 0);
}

/* --- several devices -------------------------------------------------------------------------- */

class Fabric : public testing::Test
{
protected:
	World w{true, 3};
	Pd &pd(unsigned int i)
	{
		for (auto &p : w.pds)
			if (p->dev == w.devs[i].get())
				return *p;
		return w.add_pd(*w.devs[i], true);
	}
};

TEST_F(Fabric, LidsAndGids)
{
	EXPECT_EQ(w.devs[0]->lid, 1);
	std::set<uint16_t> lids;

	for (auto &dev : w.devs) {
		EXPECT_TRUE(lids.insert(dev->lid).second);
		uint8_t want[16] = {0xfe, 0x80};

		for (int i = 0; i < 8; i++)
			want[8 + i] = static_cast<uint8_t>(dev->guid >> (56 - 8 * i));
		EXPECT_EQ(memcmp(dev->gid, want, 16), 0);
		uint16_t pkey = 0;

		EXPECT_EQ(rvt_core_pkey_get(dev->raw, 0, &pkey), 0);
		EXPECT_EQ(pkey, 0xffff);
		EXPECT_NE(rvt_core_pkey_get(dev->raw, RVT_MAX_PKEYS, &pkey), 0);
		EXPECT_NE(rvt_core_pkey_set(dev->raw, RVT_MAX_PKEYS, 1), 0);
		EXPECT_NE(rvt_core_gid_get(dev->raw, RVT_MAX_GIDS, want), 0);
		EXPECT_NE(rvt_core_gid_set(dev->raw, RVT_MAX_GIDS, want), 0);
		EXPECT_NE(rvt_core_gid_set(dev->raw, 0, want), 0);
	}
}

TEST_F(Fabric, ByLid)
{
	for (rvt_qp_type type : {RVT_QPT_RC, RVT_QPT_UC}) {
		Qp &a = w.add_qp(type, {}, &pd(0)), &b = w.add_qp(type, {}, &pd(1));

		w.connect(a, b);
		expect_works(a, b);
		expect_works(b, a);
		Mr &x = w.add_mr(64, access_all, &pd(0)), &y = w.add_mr(64, access_all, &pd(1));
		x.write(0, "to the other");
		ASSERT_EQ(a.post(wr_write(1, {x.sge()}, y.iova, y.key)), 0);
		expect_wc(*a.scq, {.id = 1});
		EXPECT_EQ(y.read(0, 12), "to the other");
		ASSERT_EQ(b.recv(2, {y.sge()}), 0);
		ASSERT_EQ(a.post(wr_send(3, {x.sge()})), 0);
		expect_wc(*b.rcq, {.id = 2, .src_qp = a.num, .slid = w.devs[0]->lid});
	}
}

TEST_F(Fabric, ByGid)
{
	uint8_t extra[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};

	ASSERT_EQ(rvt_core_gid_set(w.devs[1]->raw, 4, extra), 0);
	for (bool other_gid : {false, true}) {
		Qp &a = w.add_qp(RVT_QPT_RC, {}, &pd(0)), &b = w.add_qp(RVT_QPT_RC, {}, &pd(1));

		a.aim(b);
		b.aim(a);
		a.attr.ah.has_grh = b.attr.ah.has_grh = true;
		memcpy(a.attr.ah.dgid, other_gid ? extra : w.devs[1]->gid, 16);
		memcpy(b.attr.ah.dgid, w.devs[0]->gid, 16);
		b.attr.ah.sgid_index = other_gid ? 4 : 0;
		for (Qp *qp : {&a, &b}) {
			ASSERT_EQ(qp->to_init(), 0);
			ASSERT_EQ(qp->to_rtr(), 0);
			ASSERT_EQ(qp->to_rts(), 0);
		}
		expect_works(a, b);
		expect_works(b, a);
		EXPECT_TRUE(a.query().ah.has_grh);
		EXPECT_EQ(memcmp(a.query().ah.dgid, a.attr.ah.dgid, 16), 0);
	}
	/* A GID that was taken away leads nowhere. */
	Qp &ud = w.add_ud(0x11111111, {}, &pd(0)), &to = w.add_ud(0x11111111, {}, &pd(1));
	Mr &x = w.add_mr(64, access_all, &pd(0)), &y = w.add_mr(640, access_all, &pd(1));
	Wr wr = w.ud_to(ud, to, 1, {x.sge()});

	wr.ah->has_grh = true;
	memcpy(wr.ah->dgid, extra, 16);
	ASSERT_EQ(to.recv(1, {y.sge()}), 0);
	ASSERT_EQ(ud.post(wr), 0);
	expect_wc(*to.rcq, {.id = 1, .flags = RVT_WC_GRH});
	EXPECT_EQ(y.read(24, 16), std::string(reinterpret_cast<char *>(extra), 16));
	ASSERT_EQ(rvt_core_gid_set(w.devs[1]->raw, 4, nullptr), 0);
	ASSERT_EQ(to.recv(2, {y.sge()}), 0);
	ASSERT_EQ(ud.post(wr), 0);
	expect_none(*to.rcq);
}

TEST_F(Fabric, AGidIsOfOnePort)
{
	constexpr int eexist = -17;
	const uint8_t extra[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
	const uint8_t none[16] = {};

	ASSERT_EQ(rvt_core_gid_set(w.devs[1]->raw, 4, extra), 0);
	EXPECT_EQ(rvt_core_gid_set(w.devs[1]->raw, 4, extra), 0);
	EXPECT_EQ(rvt_core_gid_set(w.devs[1]->raw, 5, extra), eexist);
	EXPECT_EQ(rvt_core_gid_set(w.devs[0]->raw, 4, extra), eexist);
	EXPECT_EQ(rvt_core_gid_set(w.devs[0]->raw, 1, w.devs[2]->gid), eexist);
	EXPECT_EQ(rvt_core_gid_set(w.devs[0]->raw, 1, none), 0);
	EXPECT_EQ(rvt_core_gid_set(w.devs[0]->raw, 2, none), 0);
	ASSERT_EQ(rvt_core_gid_set(w.devs[1]->raw, 4, nullptr), 0);
	EXPECT_EQ(rvt_core_gid_set(w.devs[0]->raw, 4, extra), 0);
}

TEST_F(Fabric, UdAcrossDevices)
{
	Qp &a = w.add_ud(0x11111111, {}, &pd(0)), &b = w.add_ud(0x11111111, {}, &pd(2));
	Mr &x = w.add_mr(64, access_all, &pd(0)), &y = w.add_mr(640, access_all, &pd(2));

	ASSERT_EQ(b.recv(1, {y.sge()}), 0);
	ASSERT_EQ(a.post(w.ud_to(a, b, 2, {x.sge()})), 0);
	expect_wc(*b.rcq, {.id = 1, .byte_len = 104, .src_qp = a.num, .slid = w.devs[0]->lid});
}

/* What leaves a port arrives at another; a READ's data goes the other way. */
TEST_F(Fabric, TrafficCountsAtBothPorts)
{
	struct Want {
		uint64_t sent, sent_bytes, received, received_bytes;
	};
	auto expect = [&](int dev, const Want &want) {
		EXPECT_EQ(w.devs[dev]->counter(RVT_CNT_SENT_PKTS), want.sent);
		EXPECT_EQ(w.devs[dev]->counter(RVT_CNT_SENT_BYTES), want.sent_bytes);
		EXPECT_EQ(w.devs[dev]->counter(RVT_CNT_RCVD_PKTS), want.received);
		EXPECT_EQ(w.devs[dev]->counter(RVT_CNT_RCVD_BYTES), want.received_bytes);
		EXPECT_EQ(w.devs[dev]->counter(RVT_CNT_LOOP_PKTS), 0u);
		EXPECT_EQ(w.devs[dev]->counter(RVT_CNT_LOOP_BYTES), 0u);
	};
	Qp &a = w.add_qp(RVT_QPT_RC, {}, &pd(0)), &b = w.add_qp(RVT_QPT_RC, {}, &pd(1));
	Qp &c = w.add_ud(0x11111111, {}, &pd(0)), &d = w.add_ud(0x11111111, {}, &pd(1));
	Mr &x = w.add_mr(4096, access_all, &pd(0)), &y = w.add_mr(4096, access_all, &pd(1));

	w.connect(a, b);
	ASSERT_EQ(b.recv(1, {y.sge()}), 0);
	ASSERT_EQ(a.post(wr_send(2, {x.sge(0, 2049)})), 0); /* MTU 1024: 3 packets */
	expect_wc(*a.scq, {.id = 2});
	expect(0, {3, 2049, 0, 0});
	expect(1, {0, 0, 3, 2049});
	ASSERT_EQ(a.post(wr_read(3, {x.sge(0, 1025)}, y.iova, y.key)), 0);
	expect_wc(*a.scq, {.id = 3});
	expect(0, {3, 2049, 2, 1025});
	expect(1, {2, 1025, 3, 2049});
	ASSERT_EQ(d.recv(4, {y.sge()}), 0);
	ASSERT_EQ(c.post(w.ud_to(c, d, 5, {x.sge(0, 100)})), 0);
	expect_wc(*c.scq, {.id = 5});
	expect(0, {4, 2149, 2, 1025});
	expect(1, {2, 1025, 4, 2149});
	/* They outlive their queue pairs. */
	for (Qp *qp : {&a, &b, &c, &d})
		qp->destroy();
	expect(0, {4, 2149, 2, 1025});
	expect(1, {2, 1025, 4, 2149});
}

TEST_F(Fabric, QueuePairNumbersAreOfADevice)
{
	/* The same number on another device is somebody else. */
	Qp &a = w.add_qp(RVT_QPT_RC, {}, &pd(0)), &b = w.add_qp(RVT_QPT_RC, {}, &pd(1));
	Mr &x = w.add_mr(64, access_all, &pd(0));

	w.connect(a, b);
	a.attr.ah.dlid = w.devs[2]->lid;
	a.attr.timeout = 5;
	ASSERT_EQ(a.to(RVT_QPS_RESET), 0);
	ASSERT_EQ(a.to_init(), 0);
	ASSERT_EQ(a.to_rtr(), 0);
	ASSERT_EQ(a.to_rts(), 0);
	ASSERT_EQ(a.post(wr_send(1, {x.sge()})), 0);
	w.m.advance(sim::second);
	expect_wc(*a.scq, {.id = 1, .status = RVT_WC_RETRY_EXC_ERR});
}

TEST_F(Fabric, ADeviceGoesWhileOthersTalkToIt)
{
	Qp &a = w.add_qp(RVT_QPT_RC, {}, &pd(0)), &b = w.add_qp(RVT_QPT_RC, {}, &pd(1));
	Mr &x = w.add_mr(64, access_all, &pd(0));

	a.attr.timeout = 5;
	w.connect(a, b);
	ASSERT_EQ(a.post(wr_send(1, {x.sge()})), 0); /* waits: RNR */
	b.destroy();
	b.scq->destroy();
	b.rcq->destroy();
	rvt_core_pd_destroy(b.pd->raw);
	b.pd->raw = nullptr;
	EXPECT_EQ(w.devs[1]->destroy(), 0u);
	w.m.advance(100 * sim::second);
	expect_wc(*a.scq, {.id = 1, .status = RVT_WC_RETRY_EXC_ERR});
	expect_state(a, RVT_QPS_ERR);
	/* Its LID is free for the next one. */
	Device &next = w.add_device();
	EXPECT_GT(next.lid, 0);
}

TEST(Devices, AsManyAsPromised)
{
	World w(true, RVT_MAX_DEVICES);
	uint16_t lid = 0;
	const rvt_core_ops ops = {};

	EXPECT_EQ(rvt_core_dev_create(&ops, 1, &lid), nullptr);
}

TEST(AddressHandles, Checks)
{
	World w;
	rvt_ah_attr good = {};
	auto check = [&](auto &&change, bool multicast = false) {
		rvt_ah_attr ah = good;

		change(ah);
		return rvt_core_ah_check(w.dev().raw, &ah, multicast);
	};

	good.dlid = 1;
	good.port_num = 1;
	EXPECT_EQ(check([](auto &) {}), 0);
	EXPECT_EQ(check([](auto &ah) { ah.port_num = 0; }), einval);
	EXPECT_EQ(check([](auto &ah) { ah.port_num = 2; }), einval);
	EXPECT_EQ(check([](auto &ah) { ah.sl = 16; }), einval);
	EXPECT_EQ(check([](auto &ah) { ah.sl = 15; }), 0);
	EXPECT_EQ(check([](auto &ah) { ah.dlid = 0; }), einval);
	EXPECT_EQ(check([](auto &ah) { ah.dlid = 0xc000; }), einval);
	EXPECT_EQ(check([](auto &ah) { ah.dlid = 0xffff; }), 0); /* permissive */
	EXPECT_EQ(check(
			  [](auto &ah) {
				  ah.dlid = 0xc000;
				  ah.has_grh = true;
				  ah.dgid[0] = 0xff;
			  },
			  true),
		  0);
	EXPECT_EQ(check([](auto &ah) { ah.dlid = 0xc000; }, true), einval);
	EXPECT_EQ(check([](auto &ah) {
			  ah.has_grh = true;
			  ah.sgid_index = RVT_MAX_GIDS;
		  }),
		  einval);
	EXPECT_EQ(check([](auto &ah) {
			  ah.has_grh = true;
			  ah.sgid_index = 2;
		  }),
		  einval);
}

} // namespace
