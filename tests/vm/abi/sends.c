// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* sends.c - what each kind of send does, with many bytes, few, or none */
#include "abi.h"

#include <sys/mman.h>

/* --- inline data ----------------------------------------------------------- */

/* Pages that nobody touched yet are read as zeros, in one request and in a list. */
TEST(inline_unfaulted)
{
	struct ends e = make_ends(&usual, NULL);
	unsigned char *fresh = anonymous(64 * PAGE);
	struct list l;
	struct ibv_send_wr *bad;

	memset(buf, 0xff, BUF_BYTES);
	make_list(&l, 25);
	for (int i = 0; i < 25; i++) /* each across two pages */
		l.sge[i] = (struct ibv_sge){ (uintptr_t)fresh + (2 * i + 1) * PAGE - 200, 512, 0 };
	post_receives(e.b, NULL, 0, 25);
	is(ibv_post_send(e.a, l.wr, &bad), 0);
	for (int i = 0; i < 25; i++) {
		struct ibv_wc wc = next_wc(e.rcq);

		is(wc.status, IBV_WC_SUCCESS);
		is(wc.byte_len, 512);
		completes(e.scq, i, IBV_WC_SUCCESS);
		for (int at = 0; at < 512; at++)
			is(buf[i * 1024 + at], 0);
		is(buf[i * 1024 + 512], 0xff);
	}
	end_ends(&e);
}

/* The peer is not ready, so the data waits in the device while it changes here. */
TEST(inline_kept)
{
	struct ends e = make_ends(&usual, NULL);
	unsigned char data[512];

	for (int i = 0; i < 10; i++) {
		memset(data, i + 1, sizeof(data));
		is(post_send(e.a, i, data, sizeof(data), IBV_SEND_INLINE), 0);
		memset(data, 0xee, sizeof(data));
	}
	post_receives(e.b, NULL, 0, 10);
	for (int i = 0; i < 10; i++) {
		completes(e.rcq, i, IBV_WC_SUCCESS);
		completes(e.scq, i, IBV_WC_SUCCESS);
		is(buf[i * 1024], i + 1);
		is(buf[i * 1024 + 511], i + 1);
	}
	end_ends(&e);
}

TEST(inline_limit)
{
	static const uint32_t limits[] = { 512, 100, 1 };
	struct ibv_qp_init_attr too_much = { .qp_type = IBV_QPT_RC, .cap = usual };
	struct ends e;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct ibv_qp_cap cap = usual;

		cap.max_inline_data = limits[i];
		e = make_ends(&cap, NULL);
		post_receives(e.b, NULL, 0, 2);
		is(post_send(e.a, 1, buf, limits[i] + 1, IBV_SEND_INLINE), EINVAL);
		is(post_send(e.a, 2, buf, limits[i], IBV_SEND_INLINE), 0);
		completes(e.scq, 2, IBV_WC_SUCCESS);
		nothing_more(e.scq);
		end_ends(&e);
	}
	e = make_ends(&usual, NULL);
	too_much.send_cq = e.scq;
	too_much.recv_cq = e.rcq;
	too_much.cap.max_inline_data = 513;
	fails(ibv_create_qp(pd, &too_much), EINVAL);
	end_ends(&e);
}

/* What brings data cannot be inline. */
TEST(inline_refused)
{
	struct ibv_sge sge = { (uintptr_t)buf, 8, mr->lkey };
	struct ends e = make_ends(&usual, NULL);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_INLINE,
		.wr.rdma = { (uintptr_t)buf, mr->rkey },
	}, *bad;

	is(ibv_post_send(e.a, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.rkey = mr->rkey;
	is(ibv_post_send(e.a, &wr, &bad), EINVAL);
	/* Its remote key is the responder's business, though. */
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.rkey = mr->rkey;
	memset(buf, 9, 8);
	wr.wr.rdma.remote_addr = (uintptr_t)buf + BUF_BYTES / 2;
	is(ibv_post_send(e.a, &wr, &bad), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(memcmp(buf, buf + BUF_BYTES / 2, 8), 0);
	end_ends(&e);
}

/* --- immediate data ------------------------------------------------------------ */

static const enum ibv_qp_type connected[] = { IBV_QPT_RC, IBV_QPT_UC };

/* The 32 bits arrive as they were given. */
TEST(immediate)
{
	static const uint32_t values[] = { 0, 1, 0x01020304, 0x80000000, 0xffffffff };

	for (size_t t = 0; t < ARRAY_SIZE(connected); t++) {
		struct ends e;

		qp_type = connected[t];
		e = make_ends(&usual, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
			struct ibv_sge sge = { (uintptr_t)buf, 100 + i, mr->lkey };
			struct ibv_send_wr wr = {
				.wr_id = i,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_SEND_WITH_IMM,
				.imm_data = values[i],
			}, *bad;
			struct ibv_wc wc;

			post_receives(e.b, NULL, i, 1);
			is(ibv_post_send(e.a, &wr, &bad), 0);
			wc = next_wc(e.rcq);
			is(wc.status, IBV_WC_SUCCESS);
			is(wc.wr_id, i);
			is(wc.opcode, IBV_WC_RECV);
			is(wc.wc_flags, IBV_WC_WITH_IMM);
			is(wc.imm_data, values[i]);
			is(wc.byte_len, 100 + i);
			is(wc.qp_num, e.b->qp_num);
			is(wc.src_qp, e.a->qp_num);
			wc = next_wc(e.scq);
			is(wc.status, IBV_WC_SUCCESS);
			is(wc.opcode, IBV_WC_SEND);
			is(wc.qp_num, e.a->qp_num);
		}
		end_ends(&e);
	}
}

static int post_write_imm(struct ends *e, unsigned char *to, uint32_t bytes, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)buf + BUF_BYTES / 4, bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = bytes,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = ~bytes,
		.wr.rdma = { (uintptr_t)to, rkey },
	}, *bad;

	return ibv_post_send(e->a, &wr, &bad);
}

static void told_of_write(struct ends *e, uint64_t id, uint32_t bytes)
{
	struct ibv_wc wc = next_wc(e->rcq);

	is(wc.status, IBV_WC_SUCCESS);
	is(wc.wr_id, id);
	is(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	is(wc.wc_flags, IBV_WC_WITH_IMM);
	is(wc.imm_data, ~bytes);
	is(wc.byte_len, bytes);
	wc = next_wc(e->scq);
	is(wc.status, IBV_WC_SUCCESS);
	is(wc.opcode, IBV_WC_RDMA_WRITE);
}

/* It takes a receive, whatever its size, and leaves its memory alone; a plain WRITE takes none. */
TEST(write_with_imm)
{
	unsigned char *to = buf + BUF_BYTES / 2;

	for (size_t t = 0; t < ARRAY_SIZE(connected); t++) {
		struct ends e;

		qp_type = connected[t];
		e = make_ends(&usual, NULL);
		memset(buf, 0x11, 64 * 1024);
		memset(buf + BUF_BYTES / 4, 0x22, 100 * 1000);
		memset(to, 0, 200 * 1000);
		post_receives(e.b, NULL, 5, 3);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)to + 110 * 1000, mr->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		nothing_more(e.rcq);
		is(post_write_imm(&e, to, 100 * 1000, mr->rkey), 0);
		told_of_write(&e, 5, 100 * 1000);
		is(memcmp(to, buf + BUF_BYTES / 4, 100 * 1000), 0);
		is(to[100 * 1000], 0);
		/* Nothing to write: no key is looked at. */
		is(post_write_imm(&e, NULL, 0, ~mr->rkey), 0);
		told_of_write(&e, 6, 0);
		is(post_write_imm(&e, to, 1, mr->rkey), 0);
		told_of_write(&e, 7, 1);
		for (int i = 0; i < 64 * 1024; i++)
			is(buf[i], 0x11);
		end_ends(&e);
	}
}

/* Without a receive RC waits with all of it, and UC loses it. */
TEST(write_with_imm_not_ready)
{
	unsigned char *to = buf + BUF_BYTES / 2;

	for (size_t t = 0; t < ARRAY_SIZE(connected); t++) {
		struct ends e;

		qp_type = connected[t];
		e = make_ends(&usual, NULL);
		memset(buf + BUF_BYTES / 4, 0x22, 1000);
		memset(to, 0, 1000);
		is(post_write_imm(&e, to, 1000, mr->rkey), 0);
		if (qp_type == IBV_QPT_UC)
			completes(e.scq, 1000, IBV_WC_SUCCESS);
		nothing_more(e.rcq);
		nothing_more(e.scq);
		is(to[0] | to[999], 0);
		post_receives(e.b, NULL, 1, 1);
		if (qp_type == IBV_QPT_UC)
			is(post_write_imm(&e, to, 1000, mr->rkey), 0);
		told_of_write(&e, 1, 1000);
		is(to[0] & to[999], 0x22);
		end_ends(&e);
	}
}

/* --- send with invalidate ----------------------------------------------------------- */

static int post_send_inv(struct ends *e, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)buf + BUF_BYTES / 2, 8, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_INV,
		.invalidate_rkey = rkey,
	}, *bad;

	return ibv_post_send(e->a, &wr, &bad);
}

/* A process has no region that a peer may invalidate: registered ones stay. */
TEST(case_178_send_with_inv)
{
	struct ibv_mr *mine = ibv_reg_mr(pd, buf + BUF_BYTES / 2, PAGE, ALL_ACCESS);
	const uint32_t keys[] = { mr->rkey, 0, ~mr->rkey };
	struct ends e;

	yes(mine);
	for (size_t i = 0; i <= ARRAY_SIZE(keys); i++) {
		e = make_ends(&usual, NULL);
		post_receives(e.b, NULL, 3, 2);
		is(post_send_inv(&e, i < ARRAY_SIZE(keys) ? keys[i] : mine->rkey), 0);
		completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
		completes(e.rcq, 3, IBV_WC_LOC_PROT_ERR);
		completes(e.rcq, 4, IBV_WC_WR_FLUSH_ERR);
		end_ends(&e);
	}
	e = make_ends(&usual, NULL);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)mine->addr, mine->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	end_ends(&e);
	is(ibv_dereg_mr(mine), 0);

	qp_type = IBV_QPT_UC;
	e = make_ends(&usual, NULL);
	is(post_send_inv(&e, mr->rkey), EINVAL);
	nothing_more(e.scq);
	end_ends(&e);
}

/* --- no bytes ------------------------------------------------------------------------- */

/* How a request can have none: no piece, an empty one with a key of nobody, the same inline. */
enum empty { NO_PIECE, EMPTY_PIECE, EMPTY_INLINE, EMPTIES };

static void empty_message(struct ends *e, enum ibv_wr_opcode opcode, enum empty how)
{
	bool received = opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_READ;
	struct ibv_sge sge = { 0x1000, 0, ~mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = opcode,
		.sg_list = how == NO_PIECE ? NULL : &sge,
		.num_sge = how == NO_PIECE ? 0 : 1,
		.opcode = opcode,
		.send_flags = how == EMPTY_INLINE ? IBV_SEND_INLINE : 0,
		.wr.rdma = { 0x1001, ~mr->rkey },
	}, *bad;
	struct ibv_wc wc;

	if (received)
		post_receives(e->b, NULL, 1, 1);
	is(ibv_post_send(e->a, &wr, &bad), 0);
	wc = next_wc(e->scq);
	is(wc.status, IBV_WC_SUCCESS);
	is(wc.wr_id, opcode);
	if (received) {
		wc = next_wc(e->rcq);
		is(wc.status, IBV_WC_SUCCESS);
		is(wc.byte_len, 0);
	}
	nothing_more(e->rcq);
	nothing_more(e->scq);
}

TEST(zero_length)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
	};

	for (size_t t = 0; t < ARRAY_SIZE(connected); t++) {
		struct ends e;

		qp_type = connected[t];
		e = make_ends(&usual, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
			for (enum empty how = 0; how < EMPTIES; how++) {
				if (opcodes[i] != IBV_WR_RDMA_READ)
					empty_message(&e, opcodes[i], how);
				else if (qp_type == IBV_QPT_RC && how != EMPTY_INLINE)
					empty_message(&e, opcodes[i], how);
			}
		}
		end_ends(&e);
	}
}

/* Into a receive without room, and between pieces that have bytes. */
TEST(empty_pieces)
{
	struct ends e = make_ends(&usual, NULL);
	struct ibv_sge pieces[3] = {
		{ (uintptr_t)buf + BUF_BYTES / 2, 8, mr->lkey },
		{ 0x1000, 0, ~mr->lkey },
		{ (uintptr_t)buf + BUF_BYTES / 2 + 8, 8, mr->lkey },
	};
	struct ibv_send_wr wr = { .sg_list = pieces, .num_sge = 3, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr recv = { .wr_id = 9 }, *bad_recv;

	is(ibv_post_recv(e.b, &recv, &bad_recv), 0);
	empty_message(&e, IBV_WR_RDMA_WRITE, NO_PIECE);
	is(post_send(e.a, 1, buf, 0, 0), 0);
	completes(e.scq, 1, IBV_WC_SUCCESS);
	completes(e.rcq, 9, IBV_WC_SUCCESS);
	for (int i = 0; i < 16; i++)
		buf[BUF_BYTES / 2 + i] = i + 1;
	post_receives(e.b, NULL, 0, 1);
	is(ibv_post_send(e.a, &wr, &bad), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	is(memcmp(buf, buf + BUF_BYTES / 2, 16), 0);
	end_ends(&e);
}

/* --- many bytes ------------------------------------------------------------------------ */

/* So much address space, of one piece of memory over and over. */
static struct ibv_mr *large_region(size_t bytes)
{
	const size_t chunk = 2UL << 20;
	int fd = memfd_create("chunk", 0);
	char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *region;

	yes(at != MAP_FAILED);
	is(ftruncate(fd, chunk), 0);
	for (size_t i = 0; i < bytes; i += chunk)
		yes(mmap(at + i, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    at + i);
	close(fd);
	region = ibv_reg_mr(pd, at, bytes, ALL_ACCESS);
	yes(region);
	return region;
}

/* Up to 2 GiB in one message, and no byte more, however it is cut. */
TEST(message_limit)
{
	const uint32_t most = 1U << 31;
	struct ends e = make_ends(&usual, NULL);
	struct ibv_mr *from = large_region(most + (2UL << 20)), *to = large_region(most);
	uint64_t local = (uintptr_t)from->addr;
	const struct {
		struct ibv_sge piece[4];
		int pieces;
		int error;
	} messages[] = {
		{ { { local, most + 1, from->lkey } }, 1, EINVAL },
		{ { { local, most, from->lkey }, { local, 1, from->lkey } }, 2, EINVAL },
		/* 2^32 + 8 */
		{ { { local, most, from->lkey }, { local, most, from->lkey },
		    { local, 8, from->lkey } }, 3, EINVAL },
		{ { { local + 1, most - 3, from->lkey }, { local, 3, from->lkey } }, 2, 0 },
	};
	struct ibv_port_attr port;

	is(ibv_query_port(ctx, 1, &port), 0);
	is(port.max_msg_sz, most);
	post_receives(e.b, NULL, 1, 1);
	memset(from->addr, 0x77, PAGE);
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		struct ibv_send_wr wr = {
			.wr_id = most,
			.sg_list = (struct ibv_sge *)messages[i].piece,
			.num_sge = messages[i].pieces,
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.imm_data = ~most,
			.wr.rdma = { (uintptr_t)to->addr, to->rkey },
		}, *bad;

		is(ibv_post_send(e.a, &wr, &bad), messages[i].error);
	}
	told_of_write(&e, 1, most);
	is(((unsigned char *)to->addr)[0], 0x77);
	is(((unsigned char *)to->addr)[most - 1], 0x77);
	/* Both have counted the packets. */
	post_receives(e.b, NULL, 0, 1);
	consume(&e, 0, 1);
	is(ibv_dereg_mr(from), 0);
	is(ibv_dereg_mr(to), 0);
	end_ends(&e);
}
