// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* datagrams.c - UD queue pairs: addresses, headers, P_Keys, multicast */
#include "abi.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/wait.h>

#define QKEY		0x1234
#define GRH		40U
#define PAYLOAD		100U

/* --- what these tests have --------------------------------------------------------- */

/* Queue pairs with a receive queue of their own. */
static struct ends make_receiver(uint32_t qkey)
{
	struct ends e = { .scq = ibv_create_cq(ctx, 50, NULL, NULL, 0),
			  .rcq = ibv_create_cq(ctx, 50, NULL, NULL, 0) };

	yes(e.scq && e.rcq);
	e.a = make_ud(&e, qkey);
	return e;
}

static void end_receiver(struct ends *e)
{
	is(ibv_destroy_qp(e->a), 0);
	is(ibv_destroy_cq(e->scq), 0);
	is(ibv_destroy_cq(e->rcq), 0);
}

static union ibv_gid gid_at(int index)
{
	union ibv_gid gid;

	is(ibv_query_gid(ctx, 1, index, &gid), 0);
	return gid;
}

/* Entry "index" of a table of the port's: admin_gids or admin_pkeys. */
static void set_entry(const char *table, int index, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/admin_%s/%d", device_name,
		 table, index);
	is(put(path, text), 0);
}

static struct ibv_ah *make_ah(struct ibv_ah_attr attr)
{
	struct ibv_ah *ah;

	attr.port_num = 1;
	ah = ibv_create_ah(pd, &attr);
	yes(ah);
	return ah;
}

static int post_datagram(struct ends *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)buf + BUF_BYTES / 2, PAYLOAD, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0x01020304,
		.wr.ud = { ah, qpn, qkey },
	}, *bad;

	return ibv_post_send(e->a, &wr, &bad);
}

static void send_datagram(struct ends *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	is(post_datagram(e, ah, qpn, qkey), 0);
	completes(e->scq, 0, IBV_WC_SUCCESS);
}

static void fill_receive(void)
{
	memset(buf, 0xee, 64 * 1024);
	for (unsigned int i = 0; i < PAYLOAD; i++)
		buf[BUF_BYTES / 2 + i] = 7 * i + 1;
}

/* The datagram of fill_receive() is in that receive, from there; with a header or without. */
static struct ibv_wc arrived_in(struct ends *e, const struct ibv_qp *from, bool grh, uint64_t id)
{
	const unsigned char *at = buf + id * 1024 + GRH;
	struct ibv_wc wc = next_wc(e->rcq);

	is(wc.status, IBV_WC_SUCCESS);
	is(wc.wr_id, id);
	is(wc.opcode, IBV_WC_RECV);
	is(wc.byte_len, GRH + PAYLOAD);
	is(wc.wc_flags, IBV_WC_WITH_IMM | (grh ? IBV_WC_GRH : 0));
	is(wc.imm_data, 0x01020304);
	is(wc.qp_num, e->a->qp_num);
	is(wc.src_qp, from->qp_num);
	is(wc.slid, lid_of(from->context));
	is(wc.pkey_index, 0);
	is(wc.dlid_path_bits, 0);
	for (unsigned int i = 0; i < PAYLOAD; i++)
		is(at[i], (unsigned char)(7 * i + 1));
	is(at[PAYLOAD], 0xee);
	return wc;
}

static struct ibv_wc arrived(struct ends *e, const struct ibv_qp *from, bool grh)
{
	return arrived_in(e, from, grh, 0);
}

static void header_is(const struct ibv_grh *grh, const union ibv_gid *from,
		      const union ibv_gid *to, const struct ibv_global_route *route)
{
	is(ntohl(grh->version_tclass_flow),
	   6U << 28 | (uint32_t)route->traffic_class << 20 | route->flow_label);
	/* BTH, DETH, immediate, payload, ICRC */
	is(ntohs(grh->paylen), 12 + 8 + 4 + PAYLOAD + 4);
	is(grh->next_hdr, 0x1b);
	is(grh->hop_limit, route->hop_limit);
	is(memcmp(&grh->sgid, from, sizeof(*from)), 0);
	is(memcmp(&grh->dgid, to, sizeof(*to)), 0);
}

/* --- addresses ---------------------------------------------------------------------------- */

TEST(address_refused)
{
	struct ibv_ah_attr bad[] = {
		{ .dlid = 0, .port_num = 1 },
		{ .dlid = 1, .port_num = 2 },
		{ .dlid = 1, .port_num = 0 },
		{ .dlid = 1, .port_num = 1, .sl = 16 },
		{ .dlid = 1, .port_num = 1, .static_rate = 1 },
		/* Of a group alone; of an entry that the table has not. */
		{ .dlid = 0xc001, .port_num = 1 },
		{ .dlid = 1, .port_num = 1, .is_global = 1, .grh = { .sgid_index = 16 } },
		/* Of an empty entry, which ib_core sees. */
		{ .dlid = 1, .port_num = 1, .is_global = 1, .grh = { .sgid_index = 5 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		fails(ibv_create_ah(pd, &bad[i]), i + 1 < ARRAY_SIZE(bad) ? EINVAL : ENODATA);
}

/* By LID: what the completion says, and that there is no header. */
TEST(datagram_by_lid)
{
	struct ends from = make_receiver(QKEY), to = make_receiver(QKEY);
	struct ibv_ah *ah = make_ah((struct ibv_ah_attr){ .dlid = lid_of(ctx), .sl = 3 });
	struct ibv_wc wc;

	fill_receive();
	post_receives(to.a, NULL, 0, 1);
	is(post_datagram(&from, ah, to.a->qp_num, QKEY), 0);
	/* Its address is in the queue: the handle may go. */
	is(ibv_destroy_ah(ah), 0);
	wc = arrived(&to, from.a, false);
	is(wc.sl, 3);
	for (unsigned int i = 0; i < GRH; i++)
		is(buf[i], 0xee);
	end_receiver(&from);
	end_receiver(&to);
}

/* From each GID of the port to each, and back to where it came from. */
TEST(datagram_by_gid)
{
	struct ends from = make_receiver(QKEY), to = make_receiver(QKEY);
	static const int entries[] = { 0, 3, 15 };

	set_entry("gids", 3, "2001:db8::33");
	set_entry("gids", 15, "2001:db8::ff");
	for (size_t i = 0; i < ARRAY_SIZE(entries) * ARRAY_SIZE(entries); i++) {
		int source = entries[i % ARRAY_SIZE(entries)];
		union ibv_gid sgid = gid_at(source);
		struct ibv_ah_attr attr = {
			.dlid = lid_of(ctx),
			.is_global = 1,
			.grh = {
				.dgid = gid_at(entries[i / ARRAY_SIZE(entries)]),
				.flow_label = 0xabcde - i,
				.sgid_index = source,
				.hop_limit = 64 + i,
				.traffic_class = 0xa0 + i,
			},
		};
		struct ibv_ah *ah = make_ah(attr), *reply;
		struct ibv_grh *grh = (struct ibv_grh *)buf;
		struct ibv_wc wc;

		fill_receive();
		post_receives(to.a, NULL, 0, 1);
		send_datagram(&from, ah, to.a->qp_num, QKEY);
		wc = arrived(&to, from.a, true);
		header_is(grh, &sgid, &attr.grh.dgid, &attr.grh);

		reply = ibv_create_ah_from_wc(pd, &wc, grh, 1);
		yes(reply);
		fill_receive();
		post_receives(from.a, NULL, 0, 1);
		send_datagram(&to, reply, wc.src_qp, QKEY);
		arrived(&from, to.a, true);
		header_is(grh, &attr.grh.dgid, &sgid, &attr.grh);
		is(ibv_destroy_ah(reply), 0);
		is(ibv_destroy_ah(ah), 0);
	}
	set_entry("gids", 3, "::");
	set_entry("gids", 15, "::");
	end_receiver(&from);
	end_receiver(&to);
}

/* From nothing up to the MTU, in pieces that end within the header and behind it. */
TEST(datagram_sizes)
{
	static const uint32_t sizes[] = { 0, 1, 99, 4095, 4096 };
	unsigned char *from = buf + BUF_BYTES / 2;
	struct ends sender = make_receiver(QKEY), to = make_receiver(QKEY);
	struct ibv_ah *ah = make_ah((struct ibv_ah_attr){ .dlid = lid_of(ctx) });
	const uint64_t at = (uintptr_t)buf;
	struct ibv_sge room[4] = {
		{ at, 20, mr->lkey }, { at + 20, 30, mr->lkey }, { at + 50, 1, mr->lkey },
		{ at + 51, 5000, mr->lkey },
	};
	struct ibv_recv_wr recv = { .sg_list = room, .num_sge = 4 }, *bad_recv;

	for (uint32_t i = 0; i < 4096; i++)
		from[i] = i % 251 + 1;
	for (size_t i = 0; i <= ARRAY_SIZE(sizes); i++) {
		uint32_t size = i < ARRAY_SIZE(sizes) ? sizes[i] : 4097;
		struct ibv_sge piece[2] = {
			{ (uintptr_t)from, size / 3, mr->lkey },
			{ (uintptr_t)from + size / 3, size - size / 3, mr->lkey },
		};
		struct ibv_send_wr wr = {
			.sg_list = piece,
			.num_sge = size ? 2 : 0,
			.opcode = IBV_WR_SEND,
			.wr.ud = { ah, to.a->qp_num, QKEY },
		}, *bad;

		if (size > 4096) {
			is(ibv_post_send(sender.a, &wr, &bad), EINVAL);
			break;
		}
		memset(buf, 0, 8192);
		is(ibv_post_recv(to.a, &recv, &bad_recv), 0);
		is(ibv_post_send(sender.a, &wr, &bad), 0);
		is(next_wc(to.rcq).byte_len, GRH + size);
		completes(sender.scq, 0, IBV_WC_SUCCESS);
		is(memcmp(buf + GRH, from, size), 0);
		is(buf[GRH + size], 0);
	}
	is(ibv_destroy_ah(ah), 0);
	end_receiver(&sender);
	end_receiver(&to);
}

TEST(case_116_address_of_another_pd)
{
	struct ibv_pd *mine = pd, *other = ibv_alloc_pd(ctx);
	struct ends from = make_receiver(QKEY), to = make_receiver(QKEY);
	struct ibv_ah *ah;

	yes(other);
	pd = other;
	ah = make_ah((struct ibv_ah_attr){ .dlid = lid_of(ctx) });
	pd = mine;
	post_receives(to.a, NULL, 0, 1);
	is(post_datagram(&from, ah, to.a->qp_num, QKEY), EINVAL);
	nothing_more(from.scq);
	nothing_more(to.rcq);
	is(ibv_destroy_ah(ah), 0);
	is(ibv_dealloc_pd(other), 0);
	end_receiver(&from);
	end_receiver(&to);
}

/* A Q_Key with the high bit stands for the sender's own. */
TEST(case_142_qkey)
{
	struct ends from = make_receiver(QKEY), to = make_receiver(QKEY);
	struct ibv_ah *ah = make_ah((struct ibv_ah_attr){ .dlid = lid_of(ctx) });

	post_receives(to.a, NULL, 0, 1);
	send_datagram(&from, ah, to.a->qp_num, QKEY + 1);
	nothing_more(to.rcq);
	fill_receive();
	send_datagram(&from, ah, to.a->qp_num, 0x80000000 | (QKEY + 1));
	arrived(&to, from.a, false);
	is(ibv_destroy_ah(ah), 0);
	end_receiver(&from);
	end_receiver(&to);
}

/* --- P_Keys ------------------------------------------------------------------------------------- */

/* Entries of the table: the default one, a full member, a limited one, another partition. */
enum { DEFAULT, FULL, LIMITED, OTHER, PKEYS };

static uint16_t pkey_at(int index)
{
	uint16_t pkey;

	is(ibv_query_pkey(ctx, 1, index, &pkey), 0);
	return ntohs(pkey);
}

static void set_pkeys(void)
{
	set_entry("pkeys", FULL, "0x8005");
	set_entry("pkeys", LIMITED, "0x0005");
	set_entry("pkeys", OTHER, "0x8006");
	is(pkey_at(DEFAULT), 0xffff);
	is(pkey_at(FULL), 0x8005);
	is(pkey_at(LIMITED), 0x0005);
	is(pkey_at(PKEYS), 0);
}

static void unset_pkeys(void)
{
	for (int i = FULL; i < PKEYS; i++)
		set_entry("pkeys", i, "0");
	pkey_index = 0;
}

/* Which talk to which: not two limited ones, not two partitions. */
static const bool may_talk[PKEYS][PKEYS] = {
	[DEFAULT] = { [DEFAULT] = true },
	[FULL] = { [FULL] = true, [LIMITED] = true },
	[LIMITED] = { [FULL] = true },
	[OTHER] = { [OTHER] = true },
};

static long long pkey_drops(void)
{
	return count_of("drops_pkey");
}

TEST(pkeys_of_datagrams)
{
	struct ibv_ah *ah = make_ah((struct ibv_ah_attr){ .dlid = lid_of(ctx) });
	long long dropped = pkey_drops();

	set_pkeys();
	for (int i = 0; i < PKEYS * PKEYS; i++) {
		struct ends from, to;

		pkey_index = i % PKEYS;
		from = make_receiver(QKEY);
		pkey_index = i / PKEYS;
		to = make_receiver(QKEY);
		fill_receive();
		post_receives(to.a, NULL, 0, 1);
		send_datagram(&from, ah, to.a->qp_num, QKEY);
		if (may_talk[i % PKEYS][i / PKEYS]) {
			arrived(&to, from.a, false);
		} else {
			nothing_more(to.rcq);
			dropped++;
		}
		end_receiver(&from);
		end_receiver(&to);
	}
	is(pkey_drops(), dropped);
	unset_pkeys();
	is(ibv_destroy_ah(ah), 0);
}

TEST(pkeys_of_connections)
{
	struct ibv_qp_attr beyond = { .qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 16 };
	long long dropped = pkey_drops();
	struct ends e = { 0 };

	retry_cnt = 1;
	timeout = 8; /* a millisecond */
	set_pkeys();
	for (int i = 0; i < PKEYS * PKEYS; i++) {
		e.scq = ibv_create_cq(ctx, 50, NULL, NULL, 0);
		e.rcq = ibv_create_cq(ctx, 50, NULL, NULL, 0);
		yes(e.scq && e.rcq);
		e.a = make_qp(&e, &usual, NULL);
		e.b = make_qp(&e, &usual, NULL);
		pkey_index = i % PKEYS;
		to_init(e.a);
		pkey_index = i / PKEYS;
		to_init(e.b);
		to_rtr(e.a, e.b);
		to_rtr(e.b, e.a);
		to_rts(e.a);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)buf + 8, mr->rkey), 0);
		if (may_talk[i % PKEYS][i / PKEYS]) {
			completes(e.scq, 0, IBV_WC_SUCCESS);
		} else {
			completes(e.scq, 0, IBV_WC_RETRY_EXC_ERR);
			dropped += 2;
		}
		end_ends(&e);
	}
	is(pkey_drops(), dropped);
	unset_pkeys();

	e = make_receiver(QKEY);
	to_state(e.a, IBV_QPS_RESET);
	is(ibv_modify_qp(e.a, &beyond, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			 IBV_QP_QKEY), EINVAL);
	end_receiver(&e);
}

/* --- multicast --------------------------------------------------------------------------------------- */

#define MLID	0xc123

static const union ibv_gid group = {
	.raw = { 0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x47, 0x11 },
};

static struct ibv_ah *group_ah(void)
{
	return make_ah((struct ibv_ah_attr){
		.dlid = MLID,
		.is_global = 1,
		.grh = { .dgid = group, .hop_limit = 1, .flow_label = 77 },
	});
}

static void arrived_by_group(struct ends *e, const struct ends *from, uint64_t id)
{
	const struct ibv_global_route route = { .hop_limit = 1, .flow_label = 77 };
	struct place home = here();
	union ibv_gid sgid;

	arrived_in(e, from->a, true, id);
	ctx = from->a->context;
	sgid = gid_at(0);
	go(&home);
	header_is((struct ibv_grh *)(buf + id * 1024), &sgid, &group, &route);
}

TEST(multicast_refused)
{
	struct ends e = make_receiver(QKEY), connected = make_ends(&usual, NULL);
	union ibv_gid unicast = gid_at(0);
	union ibv_gid second = group;

	second.raw[15]++;
	is(ibv_attach_mcast(connected.a, &group, MLID), EINVAL);
	is(ibv_attach_mcast(e.a, &unicast, MLID), EINVAL);
	is(ibv_attach_mcast(e.a, &group, 0xbfff), EINVAL);
	is(ibv_attach_mcast(e.a, &group, 0xffff), EINVAL);
	is(ibv_detach_mcast(e.a, &group, MLID), EINVAL);
	to_state(e.a, IBV_QPS_RESET);
	is(ibv_attach_mcast(e.a, &group, MLID), EINVAL);
	is(ibv_destroy_qp(e.a), 0);
	e.a = make_ud(&e, QKEY);

	is(ibv_attach_mcast(e.a, &group, MLID), 0);
	/* Again is no second time; a group has one LID, a LID may have many groups. */
	is(ibv_attach_mcast(e.a, &group, MLID), 0);
	is(ibv_attach_mcast(e.a, &group, MLID + 1), EINVAL);
	is(ibv_attach_mcast(e.a, &second, MLID), 0);
	is(ibv_detach_mcast(e.a, &second, MLID + 1), EINVAL);
	is(ibv_destroy_qp(e.a), EBUSY);
	is(ibv_detach_mcast(e.a, &group, MLID), 0);
	is(ibv_detach_mcast(e.a, &group, MLID), EINVAL);
	is(ibv_detach_mcast(e.a, &second, MLID), 0);
	end_receiver(&e);
	end_ends(&connected);
}

/*
 * Every member gets one copy, those of other devices too, and nobody else:
 * not the sender, not a queue pair that has left, not one of another Q_Key.
 */
TEST(case_143_multicast)
{
	struct place home = here(), there = begin_on("rvt1");
	struct ends sender = make_receiver(QKEY), member[3], others[3];
	struct ibv_ah *ah = group_ah();

	for (int i = 0; i < 3; i++) {
		go(i == 2 ? &there : &home);
		member[i] = make_receiver(QKEY);
		others[i] = make_receiver(i == 1 ? QKEY + 1 : QKEY);
		is(ibv_attach_mcast(member[i].a, &group, MLID), 0);
	}
	go(&home);
	is(ibv_attach_mcast(sender.a, &group, MLID), 0);
	is(ibv_attach_mcast(others[0].a, &group, MLID), 0);
	is(ibv_detach_mcast(others[0].a, &group, MLID), 0);
	is(ibv_attach_mcast(others[1].a, &group, MLID), 0);
	for (int round = 0; round < 3; round++) {
		post_receives(sender.a, NULL, 0, 1);
		for (int i = 0; i < 3; i++) {
			go(i == 2 ? &there : &home);
			fill_receive();
			post_receives(member[i].a, NULL, i, 1);
			post_receives(others[i].a, NULL, 0, 1);
		}
		go(&home);
		send_datagram(&sender, ah, 0xffffff, QKEY);
		for (int i = 0; i < 3; i++) {
			go(i == 2 ? &there : &home);
			arrived_by_group(&member[i], &sender, i);
			nothing_more(member[i].rcq);
			nothing_more(others[i].rcq);
		}
		go(&home);
		nothing_more(sender.rcq);
	}
	for (int i = 0; i < 3; i++) {
		is(ibv_detach_mcast(member[i].a, &group, MLID), 0);
		end_receiver(&member[i]);
	}
	/* A member that is not ready keeps nobody else from its copy. */
	is(ibv_detach_mcast(others[1].a, &group, MLID), 0);
	is(ibv_detach_mcast(sender.a, &group, MLID), 0);
	post_receives(sender.a, NULL, 0, 1);
	is(ibv_attach_mcast(others[0].a, &group, MLID), 0);
	is(ibv_attach_mcast(others[1].a, &group, MLID), 0);
	to_state(others[0].a, IBV_QPS_ERR);
	go(&there);
	is(ibv_attach_mcast(others[2].a, &group, MLID), 0);
	fill_receive();
	go(&home);
	send_datagram(&sender, ah, 0xffffff, QKEY);
	go(&there);
	arrived_by_group(&others[2], &sender, 0);
	go(&home);
	for (int i = 0; i < 3; i++) {
		is(ibv_detach_mcast(others[i].a, &group, MLID), 0);
		end_receiver(&others[i]);
	}
	is(ibv_destroy_ah(ah), 0);
	end_receiver(&sender);
	end_on(&there);
}

/* Whoever dies as a member is none any more. */
TEST(multicast_member_killed)
{
	struct ends sender = make_receiver(QKEY), member = make_receiver(QKEY);
	struct ibv_ah *ah = group_ah();
	int ready[2], status;
	char byte;

	is(ibv_attach_mcast(member.a, &group, MLID), 0);
	is(pipe(ready), 0);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		yes(child >= 0);
		if (!child) {
			begin();
			member = make_receiver(QKEY);
			post_receives(member.a, NULL, 0, 10);
			is(ibv_attach_mcast(member.a, &group, MLID), 0);
			is(write(ready[1], "x", 1), 1);
			/* One arrives while it lives. */
			next_wc(member.rcq);
			is(write(ready[1], "x", 1), 1);
			for (;;)
				pause();
		}
		for (int message = 0; message < 2; message++) {
			is(read(ready[0], &byte, 1), 1);
			if (message) {
				is(kill(child, SIGKILL), 0);
				is(waitpid(child, &status, 0), child);
				yes(WIFSIGNALED(status));
			}
			fill_receive();
			post_receives(member.a, NULL, 0, 1);
			send_datagram(&sender, ah, 0xffffff, QKEY);
			arrived_by_group(&member, &sender, 0);
		}
	}
	is(ibv_detach_mcast(member.a, &group, MLID), 0);
	is(ibv_destroy_ah(ah), 0);
	end_receiver(&member);
	end_receiver(&sender);
}

static void group_number(union ibv_gid *gid, int i)
{
	*gid = group;
	gid->raw[4] = i >> 8;
	gid->raw[5] = i;
}

/* A device takes as many groups as query_device says, and finds each of them. */
TEST(multicast_groups)
{
	struct ends member = make_receiver(QKEY), sender = make_receiver(QKEY);
	struct ibv_ah *ah = group_ah();
	struct ibv_device_attr device;
	union ibv_gid gid;
	int groups;

	is(ibv_query_device(ctx, &device), 0);
	groups = device.max_mcast_grp;
	yes(groups >= 16 && groups < 0x10000);
	for (int i = 0; i <= groups; i++) {
		group_number(&gid, i);
		is(ibv_attach_mcast(member.a, &gid, MLID), i < groups ? 0 : ENOMEM);
	}
	fill_receive();
	post_receives(member.a, NULL, 0, 1);
	send_datagram(&sender, ah, 0xffffff, QKEY); /* to number 0 */
	arrived_by_group(&member, &sender, 0);
	for (int i = 0; i < groups; i++) {
		group_number(&gid, i);
		is(ibv_detach_mcast(member.a, &gid, MLID), 0);
	}
	is(ibv_destroy_ah(ah), 0);
	end_receiver(&member);
	end_receiver(&sender);
}

/* A group takes as many members as query_device says. */
TEST(multicast_limit)
{
	struct ends e = { .scq = ibv_create_cq(ctx, 1, NULL, NULL, 0) };
	struct ibv_device_attr device;
	struct ibv_qp **qps;
	int members;

	yes(e.scq);
	e.rcq = e.scq;
	is(ibv_query_device(ctx, &device), 0);
	members = device.max_mcast_qp_attach;
	yes(members >= 16);
	qps = calloc(members + 1, sizeof(*qps));
	for (int i = 0; i <= members; i++) {
		qps[i] = make_ud(&e, QKEY);
		is(ibv_attach_mcast(qps[i], &group, MLID), i < members ? 0 : ENOMEM);
	}
	is(ibv_detach_mcast(qps[0], &group, MLID), 0);
	is(ibv_attach_mcast(qps[members], &group, MLID), 0);
	for (int i = 0; i <= members; i++) {
		is(ibv_detach_mcast(qps[i], &group, MLID), i ? 0 : EINVAL);
		is(ibv_destroy_qp(qps[i]), 0);
	}
	free(qps);
	is(ibv_destroy_cq(e.scq), 0);
}
