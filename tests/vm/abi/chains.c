// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* chains.c - several requests: lists, unsignalled ones, fences */
#include "abi.h"

#include <sys/mman.h>

/* --- lists of requests ----------------------------------------------------- */

/* Makes a request one that cannot be posted. */
typedef void spoil(struct ibv_send_wr *wr);

/* Request "bad" of "count" cannot be posted: those before it are, none behind it. */
static void one_bad_request(struct ends *e, int count, int bad, spoil *spoil, int error)
{
	struct ibv_send_wr *bad_wr = NULL;
	struct list l;

	make_list(&l, count);
	spoil(&l.wr[bad]);
	is(ibv_post_send(e->a, l.wr, &bad_wr), error);
	is(bad_wr - l.wr, bad);
	for (int i = 0; i < bad; i++) {
		completes(e->scq, i, IBV_WC_SUCCESS);
		is(next_wc(e->rcq).status, IBV_WC_SUCCESS);
	}
	nothing_more(e->scq);
	nothing_more(e->rcq);
	post_receives(e->b, NULL, 0, bad);
}

static void bad_requests(spoil *spoil, int error)
{
	static const int counts[] = { 25, 40 };
	static const int bads[] = { 0, 1, 9, 10, 11, 19, 20, 21, 24, 29, 30, 39 };
	struct ends e = make_ends(&usual, NULL);
	struct ibv_send_wr *bad;

	post_receives(e.b, NULL, 0, 40);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(bads) && bads[k] < counts[i]; k++)
			one_bad_request(&e, counts[i], bads[k], spoil, error);
	}
	is(ibv_post_send(e.a, NULL, &bad), 0);
	end_ends(&e);
}

static void too_long(struct ibv_send_wr *wr)
{
	*wr->sg_list = (struct ibv_sge){ (uintptr_t)buf, 513, 0 };
}

TEST(case_170_too_long)
{
	bad_requests(too_long, EINVAL);
}

static void not_there(struct ibv_send_wr *wr)
{
	void *nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	yes(nothing != MAP_FAILED);
	is(munmap(nothing, PAGE), 0);
	wr->sg_list->addr = (uintptr_t)nothing;
}

TEST(case_170_efault)
{
	bad_requests(not_there, EFAULT);
}

static void no_such_key(struct ibv_send_wr *wr)
{
	*wr->sg_list = (struct ibv_sge){ (uintptr_t)buf, 8, ~mr->lkey };
	wr->send_flags = 0;
}

TEST(case_170_key)
{
	bad_requests(no_such_key, EINVAL);
}

static void outside(struct ibv_send_wr *wr)
{
	*wr->sg_list = (struct ibv_sge){ (uintptr_t)buf + BUF_BYTES - 7, 8, mr->lkey };
	wr->send_flags = 0;
}

TEST(case_170_range)
{
	bad_requests(outside, EINVAL);
}

/* One more than the queue pair was made for. */
static void too_many_pieces(struct ibv_send_wr *wr)
{
	static struct ibv_sge pieces[5];

	for (int i = 0; i < 5; i++)
		pieces[i] = (struct ibv_sge){ (uintptr_t)buf, 8, mr->lkey };
	wr->sg_list = pieces;
	wr->num_sge = 5;
	wr->send_flags = 0;
}

TEST(case_170_pieces)
{
	bad_requests(too_many_pieces, EINVAL);
}

/* UC cannot read. */
static void other_type(struct ibv_send_wr *wr)
{
	wr->opcode = IBV_WR_RDMA_READ;
	*wr->sg_list = (struct ibv_sge){ (uintptr_t)buf, 8, mr->lkey };
	wr->wr.rdma.remote_addr = (uintptr_t)buf;
	wr->wr.rdma.rkey = mr->rkey;
	wr->send_flags = 0;
}

TEST(case_170_opcode)
{
	qp_type = IBV_QPT_UC;
	bad_requests(other_type, EINVAL);
}

TEST(case_170_all_good)
{
	struct ends e = make_ends(&usual, NULL);
	struct ibv_send_wr *bad;
	struct list l;

	post_receives(e.b, NULL, 0, 40);
	make_list(&l, 40);
	is(ibv_post_send(e.a, l.wr, &bad), 0);
	for (int i = 0; i < 40; i++) {
		completes(e.scq, i, IBV_WC_SUCCESS);
		completes(e.rcq, i, IBV_WC_SUCCESS);
		is(*(uint64_t *)(buf + i * 1024), i);
	}
	end_ends(&e);
}

/* The send queue holds what was asked for, and the list ends there. */
TEST(case_170_full)
{
	struct ibv_qp_cap cap = usual;
	struct ibv_send_wr *bad = NULL;
	struct list l;
	struct ends e;

	cap.max_send_wr = 16;
	e = make_ends(&cap, NULL);
	make_list(&l, 25);
	is(ibv_post_send(e.a, l.wr, &bad), ENOMEM);
	is(bad - l.wr, 16);
	post_receives(e.b, NULL, 0, 40);
	for (int i = 0; i < 16; i++)
		completes(e.scq, i, IBV_WC_SUCCESS);
	nothing_more(e.scq);
	end_ends(&e);
}

/*
 * What no device has, the kernel refuses for the whole piece of the list that
 * the provider hands it: pieces are of 11 requests and then of 3.
 */
TEST(unknown_opcode)
{
	struct ends e = make_ends(&usual, NULL);
	struct ibv_send_wr *bad = NULL;
	struct list l;

	post_receives(e.b, NULL, 0, 40);
	make_list(&l, 25);
	l.wr[15].opcode = 99;
	is(ibv_post_send(e.a, l.wr, &bad), EINVAL);
	yes(bad >= &l.wr[11] && bad <= &l.wr[15]);
	for (int i = 0; i < bad - l.wr; i++)
		completes(e.scq, i, IBV_WC_SUCCESS);
	nothing_more(e.scq);
	end_ends(&e);
}

/* --- requests that complete silently ------------------------------------------------ */

static int post_flagged(struct ends *e, uint64_t id, int flags)
{
	return post_send(e->a, id, buf + BUF_BYTES / 2, 8, flags);
}

/* One signalled request tells of all before it, and all their slots are free. */
TEST(unsignalled)
{
	struct ibv_qp_cap cap = usual;
	struct ends e;

	sq_sig_all = 0;
	cap.max_send_wr = 16;
	e = make_ends(&cap, NULL);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 15; i++)
			is(post_flagged(&e, i, 0), 0);
		is(post_flagged(&e, 15, IBV_SEND_SIGNALED), 0);
		is(post_flagged(&e, 16, 0), ENOMEM);
		is(post_flagged(&e, 16, IBV_SEND_SIGNALED), ENOMEM);
		post_receives(e.b, NULL, 0, 16);
		for (int i = 0; i < 16; i++)
			completes(e.rcq, i, IBV_WC_SUCCESS);
		completes(e.scq, 15, IBV_WC_SUCCESS);
		nothing_more(e.scq);
		nothing_more(e.rcq);
	}
	end_ends(&e);
}

/* With a list, too; each third is signalled. */
TEST(unsignalled_list)
{
	struct ibv_send_wr *bad;
	struct list l;
	struct ends e;

	sq_sig_all = 0;
	e = make_ends(&usual, NULL);
	post_receives(e.b, NULL, 0, 40);
	make_list(&l, 40);
	for (int i = 2; i < 40; i += 3)
		l.wr[i].send_flags |= IBV_SEND_SIGNALED;
	is(ibv_post_send(e.a, l.wr, &bad), 0);
	for (int i = 2; i < 40; i += 3)
		completes(e.scq, i, IBV_WC_SUCCESS);
	nothing_more(e.scq);
	for (int i = 0; i < 40; i++) {
		completes(e.rcq, i, IBV_WC_SUCCESS);
		is(*(uint64_t *)(buf + i * 1024), i);
	}
	end_ends(&e);
}

/* What fails completes in any case, and so does all behind it. */
TEST(unsignalled_error)
{
	struct ends e;

	sq_sig_all = 0;
	e = make_ends(&usual, NULL);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)buf, mr->rkey), 0);
	nothing_more(e.scq);
	/* Three wait for a receive that is too short, and then for nothing. */
	for (int i = 1; i <= 3; i++)
		is(post_send(e.a, i, buf, 1025, 0), 0);
	post_receives(e.b, NULL, 7, 2);
	completes(e.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	completes(e.scq, 2, IBV_WC_WR_FLUSH_ERR);
	completes(e.scq, 3, IBV_WC_WR_FLUSH_ERR);
	completes(e.rcq, 7, IBV_WC_LOC_LEN_ERR);
	completes(e.rcq, 8, IBV_WC_WR_FLUSH_ERR);
	is(state_of(e.a), IBV_QPS_ERR);
	is(state_of(e.b), IBV_QPS_ERR);
	is(post_flagged(&e, 4, 0), 0);
	completes(e.scq, 4, IBV_WC_WR_FLUSH_ERR);
	nothing_more(e.scq);
	end_ends(&e);
}

/* --- fences ---------------------------------------------------------------------------- */

/*
 * READ and FETCH_ADD, and behind each a fenced SEND of what it brings, all
 * posted while the peer does not answer yet.
 */
TEST(fence)
{
	uint64_t *remote = (uint64_t *)(buf + BUF_BYTES / 2), *local = remote + 100;
	struct ibv_sge sge[2] = {
		{ (uintptr_t)&local[0], 8, mr->lkey },
		{ (uintptr_t)&local[1], 8, mr->lkey },
	};
	struct ibv_send_wr wr[4] = {
		{
			.next = &wr[1], .sg_list = &sge[0], .num_sge = 1, .wr_id = 0,
			.opcode = IBV_WR_RDMA_READ,
			.wr.rdma = { (uintptr_t)&remote[0], mr->rkey },
		}, {
			.next = &wr[2], .sg_list = &sge[0], .num_sge = 1, .wr_id = 1,
			.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_FENCE,
		}, {
			.next = &wr[3], .sg_list = &sge[1], .num_sge = 1, .wr_id = 2,
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.wr.atomic = { (uintptr_t)&remote[1], 5, 0, mr->rkey },
		}, {
			.sg_list = &sge[1], .num_sge = 1, .wr_id = 3,
			.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_FENCE,
		},
	}, *bad;
	struct ends e;

	timeout = 18; /* a second, seven times */
	e = make_ends(&usual, NULL);
	to_state(e.b, IBV_QPS_RESET);
	to_init(e.b);
	post_receives(e.b, NULL, 0, 2);
	remote[0] = 1000;
	remote[1] = 2000;
	local[0] = local[1] = 0;
	is(ibv_post_send(e.a, wr, &bad), 0);
	nothing_more(e.scq);
	is(local[0], 0);
	to_rtr(e.b, e.a);
	for (int i = 0; i < 4; i++)
		completes(e.scq, i, IBV_WC_SUCCESS);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	completes(e.rcq, 1, IBV_WC_SUCCESS);
	is(*(uint64_t *)buf, 1000);
	is(*(uint64_t *)(buf + 1024), 2000);
	is(remote[1], 2005);
	end_ends(&e);
}

/* Behind a SEND that waits for a receive, nothing is read before its time. */
TEST(fence_behind_rnr)
{
	uint64_t *remote = (uint64_t *)(buf + BUF_BYTES / 2), *local = remote + 100;
	struct ends e = make_ends(&usual, NULL);

	is(post_send(e.a, 7, remote, 8, 0), 0);
	is(post_rdma(e.a, IBV_WR_RDMA_READ, local, 8, (uintptr_t)remote, mr->rkey), 0);
	is(post_send(e.a, 8, local, 8, IBV_SEND_FENCE), 0);
	nothing_more(e.scq);
	is(*local, 0);
	*remote = 4711;
	post_receives(e.b, NULL, 0, 2);
	completes(e.scq, 7, IBV_WC_SUCCESS);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	completes(e.scq, 8, IBV_WC_SUCCESS);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	completes(e.rcq, 1, IBV_WC_SUCCESS);
	is(*(uint64_t *)(buf + 1024), 4711);
	end_ends(&e);
}
