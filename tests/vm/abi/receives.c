// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* receives.c - receive rings and shared receive queues */
#include "abi.h"

#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>

/* --- receive rings --------------------------------------------------------- */

static void receive_ring_holds(uint32_t size)
{
	struct ibv_qp_cap cap = usual;
	uint64_t id = 0, next = 0;
	struct ends e;

	cap.max_recv_wr = size;
	e = make_ends(&cap, NULL);
	for (uint32_t round = 0; round < 2 * size + 2; round++) {
		while (id - next < size)
			is(post_receive(e.b, NULL, id++), 0);
		is(post_receive(e.b, NULL, id), ENOMEM);
		for (uint32_t i = 0; i <= round % size; i++) {
			is(post_send(e.a, next, buf, 8, 0), 0);
			completes(e.scq, next, IBV_WC_SUCCESS);
			completes(e.rcq, next++, IBV_WC_SUCCESS);
		}
	}
	end_ends(&e);
}

TEST(receive_ring_full)
{
	receive_ring_holds(1);
	receive_ring_holds(2);
	receive_ring_holds(7);
	receive_ring_holds(40);
}

TEST(posted_in_reset)
{
	struct ends e = make_ends(&usual, NULL);

	to_state(e.b, IBV_QPS_RESET);
	to_state(e.a, IBV_QPS_RESET);
	post_receives(e.b, NULL, 0, 40);
	connect_ends(&e);
	for (int i = 0; i < 40; i++) {
		is(post_send(e.a, i, buf, 8, 0), 0);
		completes(e.rcq, i, IBV_WC_SUCCESS);
		completes(e.scq, i, IBV_WC_SUCCESS);
	}
	end_ends(&e);
}

/* Nobody tells the device of these receives; they come back all the same. */
TEST(case_169_posted_in_err)
{
	struct ends e = make_ends(&usual, NULL);
	uint64_t id = 0;

	to_state(e.b, IBV_QPS_ERR);
	for (int round = 0; round < 20; round++) {
		int count = round % 2 ? 40 : 3;

		post_receives(e.b, NULL, id, count);
		for (int i = 0; i < count; i++)
			completes(e.rcq, id++, IBV_WC_WR_FLUSH_ERR);
	}
	nothing_more(e.rcq);
	end_ends(&e);
}

/* --- shared receive queues ------------------------------------------------- */

static int resize_srq(struct ibv_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static void srq_is(struct ibv_srq *srq, uint32_t max_wr, uint32_t limit)
{
	struct ibv_srq_attr attr;

	is(ibv_query_srq(srq, &attr), 0);
	is(attr.max_wr, max_wr);
	is(attr.srq_limit, limit);
	is(attr.max_sge, 3);
}

TEST(srq_resize)
{
	struct ibv_srq *srq = make_srq(10);
	struct ends e = make_ends(&usual, srq);
	unsigned long long offset;

	post_receives(NULL, srq, 0, 10);
	is(post_receive(NULL, srq, 10), ENOMEM);
	consume(&e, 0, 3);
	offset = newest_ring().offset;
	is(resize_srq(srq, 6), EINVAL); /* seven wait */
	is(resize_srq(srq, 0), EINVAL);
	is(resize_srq(srq, 0x20000), EINVAL);
	srq_is(srq, 10, 0);
	consume(&e, 3, 1);
	post_receives(NULL, srq, 10, 1);
	is(resize_srq(srq, 7), 0);
	yes(newest_ring().offset > offset);
	is(post_receive(NULL, srq, 11), ENOMEM);
	is(resize_srq(srq, 300), 0);
	srq_is(srq, 300, 0);
	post_receives(NULL, srq, 11, 293);
	is(post_receive(NULL, srq, 304), ENOMEM);
	consume(&e, 4, 300);
	is(ibv_destroy_qp(e.b), 0);
	is(ibv_destroy_srq(srq), 0);
	e.b = make_qp(&e, &usual, NULL);
	end_ends(&e);
}

TEST(srq_limit)
{
	struct ibv_srq *srq = make_srq(10);
	struct ends e = make_ends(&usual, srq);
	struct ibv_async_event event;

	is(set_limit(srq, 11), EINVAL);
	srq_is(srq, 10, 0);
	post_receives(NULL, srq, 0, 10);
	is(set_limit(srq, 5), 0);
	srq_is(srq, 10, 5);
	is(resize_srq(srq, 20), 0);
	srq_is(srq, 20, 5);
	consume(&e, 0, 6);
	do { /* also the first message is an event */
		event = next_event(ctx);
		ibv_ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	is(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	yes(event.element.srq == srq);
	srq_is(srq, 20, 0);
	end_ends(&e);
	is(ibv_destroy_srq(srq), 0);
}

static bool limit_event(struct ibv_srq *srq)
{
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&fd, 1, 0) == 1) {
		is(ibv_get_async_event(ctx, &event), 0);
		ibv_ack_async_event(&event);
		if (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED)
			continue;
		yes(event.element.srq == srq);
		return true;
	}
	return false;
}

static void limit_event_comes(struct ibv_srq *srq)
{
	time_t begun = now();

	while (!limit_event(srq)) {
		yes(now() - begun < PATIENCE_S);
		sched_yield();
	}
}

/* Told once when fewer than the limit are left, and again only when asked again. */
TEST(srq_limit_again)
{
	struct ibv_srq *srq = make_srq(20);
	struct ends e = make_ends(&usual, srq);

	post_receives(NULL, srq, 0, 20);
	is(set_limit(srq, 15), 0);
	consume(&e, 0, 5); /* 15 left: not below */
	is(limit_event(srq), false);
	srq_is(srq, 20, 15);
	consume(&e, 5, 1);
	limit_event_comes(srq);
	srq_is(srq, 20, 0);
	consume(&e, 6, 4);
	is(limit_event(srq), false);
	/* Ten left. A limit that is passed already tells with the next message. */
	is(set_limit(srq, 12), 0);
	consume(&e, 10, 1);
	limit_event_comes(srq);
	/* Nine. Armed, but never reached; then taken back. */
	is(set_limit(srq, 5), 0);
	post_receives(NULL, srq, 20, 5);
	consume(&e, 11, 9);
	is(limit_event(srq), false);
	is(set_limit(srq, 0), 0);
	consume(&e, 20, 5);
	is(limit_event(srq), false);
	end_ends(&e);
	is(ibv_destroy_srq(srq), 0);
}

/* Two queue pairs take from one ring, while its owner resizes and fills it. */
static void *send_many(void *arg)
{
	struct ends *e = arg;

	for (int i = 0; i < 1000; i++) {
		is(post_send(e->a, i, buf + BUF_BYTES / 2, 8, 0), 0);
		completes(e->scq, i, IBV_WC_SUCCESS);
	}
	return NULL;
}

TEST(srq_resize_under_load)
{
	struct ibv_srq *srq = make_srq(10);
	struct ends e[2];
	pthread_t thread[2];
	uint64_t posted = 0, taken = 0;
	int resized = 0;

	for (int i = 0; i < 2; i++) {
		e[i] = make_ends(&usual, srq);
		is(pthread_create(&thread[i], NULL, send_many, &e[i]), 0);
	}
	while (taken < 2000) {
		struct ibv_wc wc;

		while (posted - taken < 10)
			post_receives(NULL, srq, posted++, 1);
		for (int i = 0; i < 2; i++) {
			while (ibv_poll_cq(e[i].rcq, 1, &wc) == 1) {
				is(wc.status, IBV_WC_SUCCESS);
				is(wc.byte_len, 8);
				yes(wc.wr_id < posted);
				taken++;
			}
		}
		if (taken % 3 == 0) {
			is(resize_srq(srq, 10 + taken % 50), 0);
			resized++;
		}
	}
	for (int i = 0; i < 2; i++)
		is(pthread_join(thread[i], NULL), 0);
	printf("%d resizes during %d receives\n", resized, (int)taken);
	for (int i = 0; i < 2; i++)
		end_ends(&e[i]);
	is(ibv_destroy_srq(srq), 0);
}

/* The last receive of a queue pair with an SRQ is told of, when it goes to ERR. */
TEST(srq_last_receive)
{
	struct ibv_srq *srq = make_srq(10);
	struct ends e = make_ends(&usual, srq);
	struct ibv_async_event event;

	post_receives(NULL, srq, 0, 3);
	to_state(e.b, IBV_QPS_ERR);
	event = next_event(ctx);
	is(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	yes(event.element.qp == e.b);
	ibv_ack_async_event(&event);
	/* Its receives are not that queue pair's alone: they stay. */
	nothing_more(e.rcq);
	is(ibv_destroy_qp(e.b), 0);
	e.b = make_qp(&e, &usual, srq);
	to_state(e.a, IBV_QPS_RESET);
	connect_ends(&e);
	consume(&e, 0, 3);
	end_ends(&e);
	is(ibv_destroy_srq(srq), 0);
}

static int bare_resize_srq(struct ibv_srq *srq, uint32_t max_wr, uint64_t offset_addr)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_srq cmd;
		uint64_t offset_addr;
	} request = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_MODIFY_SRQ,
			.in_words = sizeof(request) / 4,
		},
		.cmd = { .srq_handle = srq->handle, .attr_mask = IBV_SRQ_MAX_WR, .max_wr = max_wr },
		.offset_addr = offset_addr,
	};

	return write(ctx->cmd_fd, &request, sizeof(request)) == sizeof(request) ? 0 : errno;
}

/* The new ring's offset cannot be told: nothing may have changed. */
TEST(case_031_bad_offset_addr)
{
	struct ibv_srq *srq = make_srq(10);
	struct ends e = make_ends(&usual, srq);
	void *read_only = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t bad[] = { 0, 0x1000, (uintptr_t)read_only, 1ULL << 63, ~0ULL - 3 };

	yes(read_only != MAP_FAILED);
	post_receives(NULL, srq, 0, 7);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		is(bare_resize_srq(srq, 20, bad[i]), EFAULT);
		srq_is(srq, 10, 0);
	}
	post_receives(NULL, srq, 7, 3);
	is(post_receive(NULL, srq, 10), ENOMEM);
	consume(&e, 0, 10);
	end_ends(&e);
	is(ibv_destroy_srq(srq), 0);
}
