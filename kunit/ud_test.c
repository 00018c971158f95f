// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Datagrams: the 40 bytes in front, what the completion tells, and what is
 * dropped without a word.
 */
#include <rdma/ib_cache.h>

#include "harness.h"
#include "suites.h"

enum { GRH = 40 };

static struct ib_ah *make_ah(struct rig *rig, bool grh)
{
	struct rdma_ah_attr attr;
	union ib_gid gid;
	struct ib_ah *ah;

	rig_ah_attr(rig, &attr);
	rdma_ah_set_sl(&attr, 2);
	if (grh) {
		KUNIT_ASSERT_EQ(rig->test, 0, rdma_query_gid(rig->dev, rig->port, 0, &gid));
		rdma_ah_set_grh(&attr, &gid, 0x12345, 0, 63, 0x5c);
	}
	ah = rdma_create_ah(rig->pd, &attr, 0);
	KUNIT_ASSERT_FALSE(rig->test, IS_ERR(ah));
	return ah;
}

static void ud_wr_to(struct rig_qp *from, struct rig_wr *wr, struct rig_qp *to, struct ib_ah *ah,
		     u64 id, void *buf, u32 len)
{
	rig_wr(from, wr, IB_WR_SEND, id, buf, len);
	wr->ud.ah = ah;
	wr->ud.remote_qpn = to->num;
	wr->ud.remote_qkey = RIG_QKEY;
}

static void send_to(struct rig_qp *from, struct rig_wr *wr)
{
	KUNIT_ASSERT_EQ(from->rig->test, 0, rig_post(from, wr));
	/* The sender never learns what became of it. */
	rig_expect_wc(from->scq, wr->wr.wr_id, IB_WC_SUCCESS);
}

/* CASES 139. */
static void case_139_payload_at_40(struct kunit *test)
{
	static const u32 sizes[] = { 0, 1, 3, 4, 100, 1024, 2048, 4096 };
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	u8 *src = rig_buf(rig, 4096), *dst = rig_buf(rig, 4096 + GRH + 1);
	struct ib_ah *ah = make_ah(rig, false);
	u32 mtu = ib_mtu_enum_to_int(rig->port_attr.active_mtu);
	struct rig_wr wr;
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (sizes[i] > mtu)
			break;
		rig_fill(src, sizes[i], i);
		memset(dst, 0xa5, 4096 + GRH + 1);
		KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 70 + i, dst, GRH + sizes[i]));
		ud_wr_to(pair.a, &wr, pair.b, ah, i, src, sizes[i]);
		if (i % 2) {
			wr.wr.opcode = IB_WR_SEND_WITH_IMM;
			wr.wr.ex.imm_data = (__force __be32)0x12345678;
		}
		send_to(pair.a, &wr);
		rig_wc(pair.b->rcq, &wc);
		KUNIT_EXPECT_EQ(test, wc.wr_id, 70ull + i);
		KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, (int)wc.opcode, (int)IB_WC_RECV);
		KUNIT_EXPECT_EQ(test, wc.byte_len, GRH + sizes[i]);
		KUNIT_EXPECT_EQ(test, wc.src_qp, pair.a->num);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, pair.b->qp);
		KUNIT_EXPECT_EQ(test, wc.slid, rig->port_attr.lid);
		KUNIT_EXPECT_EQ(test, wc.sl, (u8)2);
		KUNIT_EXPECT_EQ(test, (u32)wc.port_num, rig->port);
		KUNIT_EXPECT_EQ(test, wc.pkey_index, (u16)0);
		KUNIT_EXPECT_EQ(test, wc.dlid_path_bits, (u8)0);
		KUNIT_EXPECT_EQ(test, wc.wc_flags, i % 2 ? (int)IB_WC_WITH_IMM : 0);
		if (i % 2)
			KUNIT_EXPECT_EQ(test, (__force u32)wc.ex.imm_data, 0x12345678u);
		KUNIT_EXPECT_EQ(test, memcmp(dst + GRH, src, sizes[i]), 0);
		KUNIT_EXPECT_EQ(test, dst[GRH + sizes[i]], (u8)0xa5);
	}
	rdma_destroy_ah(ah, 0);
}

/* A looped GRH is a whole one: InfiniBand 8.3. */
static void global_route_header(struct kunit *test)
{
	static const u32 sizes[] = { 0, 1, 5, 64 };
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	u8 *src = rig_buf(rig, 64), *dst = rig_buf(rig, 64 + GRH);
	struct ib_ah *ah = make_ah(rig, true);
	union ib_gid gid;
	struct rig_wr wr;
	struct ib_wc wc;
	int i, imm;

	KUNIT_EXPECT_EQ(test, 0, rdma_query_gid(rig->dev, rig->port, 0, &gid));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (imm = 0; imm <= 1; imm++) {
			/* BTH 12, DETH 8, immediate 4, payload padded to 4, ICRC 4. */
			u32 length = 12 + 8 + 4 * imm + ALIGN(sizes[i], 4) + 4;

			KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, i, dst, 64 + GRH));
			ud_wr_to(pair.a, &wr, pair.b, ah, i, src, sizes[i]);
			if (imm)
				wr.wr.opcode = IB_WR_SEND_WITH_IMM;
			send_to(pair.a, &wr);
			rig_wc(pair.b->rcq, &wc);
			KUNIT_EXPECT_EQ(test, (int)wc.status, (int)IB_WC_SUCCESS);
			KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_GRH);
			KUNIT_EXPECT_EQ(test, wc.byte_len, GRH + sizes[i]);
			/* Version 6, traffic class 0x5c, flow label 0x12345. */
			KUNIT_EXPECT_EQ(test, dst[0], (u8)0x65);
			KUNIT_EXPECT_EQ(test, dst[1], (u8)0xc1);
			KUNIT_EXPECT_EQ(test, dst[2], (u8)0x23);
			KUNIT_EXPECT_EQ(test, dst[3], (u8)0x45);
			KUNIT_EXPECT_EQ(test, (u32)(dst[4] << 8 | dst[5]), length);
			KUNIT_EXPECT_EQ(test, dst[6], (u8)0x1b);
			KUNIT_EXPECT_EQ(test, dst[7], (u8)63);
			KUNIT_EXPECT_EQ(test, memcmp(dst + 8, &gid, 16), 0);
			KUNIT_EXPECT_EQ(test, memcmp(dst + 24, &gid, 16), 0);
		}
	}
	rdma_destroy_ah(ah, 0);
}

/* Sends a message that must arrive, to show that what was before did not. */
static void expect_dropped(struct rig_pair *pair, struct ib_ah *ah, u8 *dst, const char *why)
{
	struct kunit *test = pair->a->rig->test;
	struct rig_wr wr;
	struct ib_wc wc;

	rig_expect_empty(pair->b->rcq);
	ud_wr_to(pair->a, &wr, pair->b, ah, 1234, NULL, 0);
	send_to(pair->a, &wr);
	rig_wc(pair->b->rcq, &wc);
	KUNIT_EXPECT_EQ_MSG(test, wc.wr_id, 55ull, "%s", why);
	KUNIT_EXPECT_EQ_MSG(test, wc.byte_len, (u32)GRH, "%s", why);
	rig_expect_empty(pair->b->rcq);
}

/* CASES 142. */
static void case_142_qkey(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	struct ib_ah *ah = make_ah(rig, false);
	u8 *buf = rig_buf(rig, 256);
	struct ib_qp_attr attr;
	struct rig_wr wr;

	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 55, buf, 128));
	ud_wr_to(pair.a, &wr, pair.b, ah, 1, buf, 8);
	wr.ud.remote_qkey = RIG_QKEY + 1;
	send_to(pair.a, &wr);
	expect_dropped(&pair, ah, buf, "wrong Q_Key");

	/* With the high bit the sender's own Q_Key counts. */
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 56, buf, 128));
	ud_wr_to(pair.a, &wr, pair.b, ah, 2, buf, 8);
	wr.ud.remote_qkey = 0x80000000 | 0x777;
	send_to(pair.a, &wr);
	rig_expect_wc(pair.b->rcq, 56, IB_WC_SUCCESS);
	rig_attr(pair.a, IB_QPS_RTS, NULL, &attr);
	attr.qkey = RIG_QKEY + 1;
	KUNIT_EXPECT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr, IB_QP_QKEY));
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 55, buf, 128));
	send_to(pair.a, &wr);
	expect_dropped(&pair, ah, buf, "own Q_Key wrong");
	rdma_destroy_ah(ah, 0);
}

static void no_receiver(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	struct rig_qp *rc = rig_qp(rig, IB_QPT_RC, NULL), *init = rig_qp(rig, IB_QPT_UD, NULL);
	struct ib_ah *ah = make_ah(rig, false);
	u8 *buf = rig_buf(rig, 128);
	struct rig_wr wr;

	rig_bring(rc, IB_QPS_RTS, rc);
	rig_bring(init, IB_QPS_INIT, NULL);
	/* Nothing posted. */
	ud_wr_to(pair.a, &wr, pair.b, ah, 1, buf, 8);
	send_to(pair.a, &wr);
	/* Nobody there. */
	wr.ud.remote_qpn = 0xfffffe;
	send_to(pair.a, &wr);
	/* Of another kind. */
	wr.ud.remote_qpn = rc->num;
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(rc, 1, buf, 128));
	send_to(pair.a, &wr);
	rig_expect_empty(rc->rcq);
	/* Not ready. */
	wr.ud.remote_qpn = init->num;
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(init, 1, buf, 128));
	send_to(pair.a, &wr);
	rig_expect_empty(init->rcq);
	KUNIT_EXPECT_EQ(test, (int)rig_state(pair.b), (int)IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 55, buf, 128));
	expect_dropped(&pair, ah, buf, "none of these");
	rdma_destroy_ah(ah, 0);
}

/* Too long for the receive: dropped, and the receive serves the next one. */
static void too_long_then_short(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	struct ib_ah *ah = make_ah(rig, false);
	u8 *src = rig_buf(rig, 128), *dst = rig_buf(rig, 128);
	struct rig_wr wr;

	rig_fill(src, 128, 4);
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 55, dst, GRH + 8));
	ud_wr_to(pair.a, &wr, pair.b, ah, 1, src, 9);
	send_to(pair.a, &wr);
	ud_wr_to(pair.a, &wr, pair.b, ah, 2, src, 100);
	send_to(pair.a, &wr);
	expect_dropped(&pair, ah, dst, "too long");
	KUNIT_EXPECT_EQ(test, dst[GRH + 8], (u8)0);
	KUNIT_EXPECT_EQ(test, (int)rig_state(pair.b), (int)IB_QPS_RTS);
	rdma_destroy_ah(ah, 0);
}

static void length_against_the_mtu(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	u32 mtu = ib_mtu_enum_to_int(rig->port_attr.active_mtu);
	struct ib_ah *ah = make_ah(rig, false);
	u8 *src = rig_buf(rig, mtu + 64), *dst = rig_buf(rig, mtu + 64);
	struct rig_wr wr;

	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 1, dst, GRH + mtu));
	ud_wr_to(pair.a, &wr, pair.b, ah, 1, src, mtu);
	send_to(pair.a, &wr);
	rig_expect_wc(pair.b->rcq, 1, IB_WC_SUCCESS);
	ud_wr_to(pair.a, &wr, pair.b, ah, 2, src, mtu + 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, rig_post(pair.a, &wr));
	rdma_destroy_ah(ah, 0);
}

/* CASES 116 for addresses, and no address at all. */
static void case_116_address_of_another_pd(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	struct ib_pd *other = ib_alloc_pd(rig->dev, 0);
	struct rdma_ah_attr attr;
	struct rig_wr wr;
	struct ib_ah *ah;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	rig_ah_attr(rig, &attr);
	ah = rdma_create_ah(other, &attr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ah));
	ud_wr_to(pair.a, &wr, pair.b, ah, 1, NULL, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, rig_post(pair.a, &wr));
	ud_wr_to(pair.a, &wr, pair.b, NULL, 2, NULL, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, rig_post(pair.a, &wr));
	rig_expect_empty(pair.a->scq);
	rdma_destroy_ah(ah, 0);
	ib_dealloc_pd(other);
}

/* CASES 141: the address is copied when the request is posted. */
static void case_141_address_destroyed_while_queued(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	struct ib_ah *ah = make_ah(rig, true);
	u8 *src = rig_buf(rig, 64), *dst = rig_buf(rig, 64 + GRH);
	struct rig_wr wr;

	rig_fill(src, 64, 8);
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(pair.b, 2, dst, 64 + GRH));
	KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_SQD));
	ud_wr_to(pair.a, &wr, pair.b, ah, 1, src, 64);
	KUNIT_EXPECT_EQ(test, 0, rig_post(pair.a, &wr));
	rdma_destroy_ah(ah, 0);
	KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RTS));
	rig_expect_wc(pair.a->scq, 1, IB_WC_SUCCESS);
	rig_expect_wc(pair.b->rcq, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(dst + GRH, src, 64), 0);
}

/* CASES 145: a datagram to oneself. */
static void case_145_to_itself(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_qp *qp = rig_qp(rig, IB_QPT_UD, NULL);
	struct ib_ah *ah = make_ah(rig, false);
	u8 *src = rig_buf(rig, 64), *dst = rig_buf(rig, 64 + GRH);
	struct rig_wr wr;
	struct ib_wc wc;

	rig_bring(qp, IB_QPS_RTS, NULL);
	rig_fill(src, 64, 6);
	KUNIT_EXPECT_EQ(test, 0, rig_post_recv(qp, 2, dst, 64 + GRH));
	ud_wr_to(qp, &wr, qp, ah, 1, src, 64);
	send_to(qp, &wr);
	rig_wc(qp->rcq, &wc);
	KUNIT_EXPECT_EQ(test, wc.src_qp, qp->num);
	KUNIT_EXPECT_EQ(test, memcmp(dst + GRH, src, 64), 0);
	rdma_destroy_ah(ah, 0);
}

/* A receive with a bad key: the receiver's own fault, and its end. */
static void receive_with_a_bad_key(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = rig_pair(rig, IB_QPT_UD, NULL);
	struct ib_ah *ah = make_ah(rig, false);
	struct ib_sge sge = { .addr = 0x1000, .length = 128, .lkey = 0xdeadbeef };
	struct ib_recv_wr recv = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;
	struct rig_wr wr;

	KUNIT_EXPECT_EQ(test, 0, ib_post_recv(pair.b->qp, &recv, &bad));
	ud_wr_to(pair.a, &wr, pair.b, ah, 1, NULL, 0);
	send_to(pair.a, &wr);
	rig_expect_wc(pair.b->rcq, 3, IB_WC_LOC_PROT_ERR);
	rig_wait_state(pair.b, IB_QPS_ERR);
	rdma_destroy_ah(ah, 0);
}

/* Addresses that create_ah must refuse. */
static void address_refused(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	int i;

	for (i = 0; i < 4; i++) {
		rig_ah_attr(rig, &attr);
		switch (i) {
		case 0:
			rdma_ah_set_port_num(&attr, rig->port + 1);
			break;
		case 1:
			rdma_ah_set_static_rate(&attr, 200);
			break;
		case 2:
			rdma_ah_set_grh(&attr, NULL, 0, rig->port_attr.gid_tbl_len, 1, 0);
			break;
		case 3: /* a multicast LID wants a GRH */
			rdma_ah_set_dlid(&attr, 0xc001);
			break;
		}
		ah = rdma_create_ah(rig->pd, &attr, 0);
		KUNIT_EXPECT_TRUE_MSG(test, IS_ERR(ah), "row %d", i);
		if (!IS_ERR(ah))
			rdma_destroy_ah(ah, 0);
	}
}

/* CASES 143: each member gets one copy. */
static void case_143_multicast(struct kunit *test)
{
	enum { MEMBERS = 3, MLID = 0xc003 };
	struct rig *rig = rig_of(test);
	struct rig_qp *sender = rig_qp(rig, IB_QPT_UD, NULL), *member[MEMBERS];
	union ib_gid mgid = { .raw = { 0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 7 } };
	u8 *src = rig_buf(rig, 64), *dst = rig_buf(rig, MEMBERS * (64 + GRH));
	struct rdma_ah_attr attr;
	struct rig_wr wr;
	struct ib_ah *ah;
	struct ib_wc wc;
	int i, ret;

	rig_bring(sender, IB_QPS_RTS, NULL);
	rig_fill(src, 64, 12);
	for (i = 0; i < MEMBERS; i++) {
		member[i] = rig_qp(rig, IB_QPT_UD, NULL);
		rig_bring(member[i], IB_QPS_RTS, NULL);
		ret = ib_attach_mcast(member[i]->qp, &mgid, MLID);
		KUNIT_ASSERT_EQ(test, ret, 0);
		KUNIT_EXPECT_EQ(test, 0, rig_post_recv(member[i], i, dst + i * (64 + GRH),
						       64 + GRH));
	}
	rig_ah_attr(rig, &attr);
	rdma_ah_set_dlid(&attr, MLID);
	rdma_ah_set_grh(&attr, &mgid, 0, 0, 1, 0);
	ah = rdma_create_ah(rig->pd, &attr, 0);
	KUNIT_EXPECT_FALSE(test, IS_ERR(ah));
	if (!IS_ERR(ah)) {
		ud_wr_to(sender, &wr, sender, ah, 1, src, 64);
		wr.ud.remote_qpn = 0xffffff;
		send_to(sender, &wr);
		for (i = 0; i < MEMBERS; i++) {
			rig_wc(member[i]->rcq, &wc);
			KUNIT_EXPECT_EQ(test, wc.wr_id, (u64)i);
			KUNIT_EXPECT_PTR_EQ(test, wc.qp, member[i]->qp);
			KUNIT_EXPECT_EQ(test, wc.src_qp, sender->num);
			KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_GRH);
			KUNIT_EXPECT_EQ(test, memcmp(dst + i * (64 + GRH) + GRH, src, 64), 0);
			rig_expect_empty(member[i]->rcq);
		}
		rig_expect_empty(sender->rcq);
		rdma_destroy_ah(ah, 0);
	}
	for (i = 0; i < MEMBERS; i++)
		KUNIT_EXPECT_EQ(test, 0, ib_detach_mcast(member[i]->qp, &mgid, MLID));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_detach_mcast(member[0]->qp, &mgid, MLID));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(case_139_payload_at_40),
	KUNIT_CASE(global_route_header),
	KUNIT_CASE(case_142_qkey),
	KUNIT_CASE(no_receiver),
	KUNIT_CASE(too_long_then_short),
	KUNIT_CASE(length_against_the_mtu),
	KUNIT_CASE(case_116_address_of_another_pd),
	KUNIT_CASE(case_141_address_destroyed_while_queued),
	KUNIT_CASE(case_145_to_itself),
	KUNIT_CASE(receive_with_a_bad_key),
	KUNIT_CASE(address_refused),
	KUNIT_CASE(case_143_multicast),
	{}
};

RIG_SUITE(rvt_ud, cases);
