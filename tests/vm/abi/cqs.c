// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* cqs.c - completion queues */
#include "abi.h"

#include <poll.h>

/* --- resize of a completion queue ------------------------------------------ */

TEST(resize_cq_waiting)
{
	struct ibv_device_attr limits;
	struct ends e = make_ends(&usual, NULL);
	unsigned long long offset = newest_ring().offset;

	post_receives(e.b, NULL, 0, 5);
	for (int i = 0; i < 5; i++)
		is(post_send(e.a, 100 + i, buf, 8, 0), 0);
	is(ibv_resize_cq(e.scq, 4), EINVAL);
	is(e.scq->cqe, 128);
	is(ibv_resize_cq(e.scq, 5), 0);
	is(e.scq->cqe, 5);
	yes(newest_ring().offset > offset);
	offset = newest_ring().offset;
	is(ibv_resize_cq(e.scq, 100), 0);
	yes(newest_ring().offset > offset);
	for (int i = 0; i < 5; i++)
		completes(e.scq, 100 + i, IBV_WC_SUCCESS);
	nothing_more(e.scq);
	is(ibv_resize_cq(e.scq, 0), EINVAL);
	is(ibv_query_device(ctx, &limits), 0);
	is(ibv_resize_cq(e.scq, limits.max_cqe + 1), EINVAL);
	post_receives(e.b, NULL, 0, 1);
	is(post_send(e.a, 1, buf, 8, 0), 0);
	completes(e.scq, 1, IBV_WC_SUCCESS);
	end_ends(&e);
}

/* A thread that completes into a queue which its consumer resizes. */
struct producer {
	struct ends *e;
	uint64_t total;
	atomic_uint_fast64_t polled;
};

static void *produce(void *arg)
{
	struct producer *p = arg;

	for (uint64_t i = 0; i < p->total; i++) {
		struct ibv_send_wr wr = {
			.wr_id = i,
			.opcode = IBV_WR_RDMA_WRITE,
		}, *bad;

		while (i - atomic_load(&p->polled) >= 32)
			sched_yield();
		is(ibv_post_send(p->e->a, &wr, &bad), 0);
	}
	return NULL;
}

TEST(resize_cq_producer)
{
	struct ends e = make_ends(&usual, NULL);
	struct producer p = { .e = &e, .total = 1500 };
	pthread_t thread;
	int resized = 0;

	is(pthread_create(&thread, NULL, produce, &p), 0);
	for (uint64_t i = 0; i < p.total; i++) {
		completes(e.scq, i, IBV_WC_SUCCESS);
		atomic_store(&p.polled, i + 1);
		if (!(i % 5)) {
			is(ibv_resize_cq(e.scq, 40 + i % 97), 0);
			resized++;
		}
	}
	is(pthread_join(thread, NULL), 0);
	nothing_more(e.scq);
	printf("%d resizes during %d completions\n", resized, (int)p.total);
	end_ends(&e);
}

/* --- completion vectors ------------------------------------------------------------ */

TEST(completion_vectors)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);

	yes(channel);
	is(ctx->num_comp_vectors, cpus);
	for (int v = 0; v < cpus; v++) {
		struct ends e = { .rcq = ibv_create_cq(ctx, 10, NULL, NULL, 0),
				  .scq = ibv_create_cq(ctx, 10, NULL, channel, v) };
		struct ibv_cq *told;
		void *cookie;

		yes(e.scq && e.rcq);
		e.a = make_qp(&e, &usual, NULL);
		e.b = make_qp(&e, &usual, NULL);
		connect_ends(&e);
		is(ibv_req_notify_cq(e.scq, 0), 0);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 0, 0, 0), 0);
		is(ibv_get_cq_event(channel, &told, &cookie), 0);
		yes(told == e.scq);
		ibv_ack_cq_events(told, 1);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		end_ends(&e);
	}
	fails(ibv_create_cq(ctx, 10, NULL, channel, cpus), EINVAL);
	is(ibv_destroy_comp_channel(channel), 0);
}

/* --- overrun --------------------------------------------------------------------- */

/* A queue that is told of what it has no room for is of no use any more; others are. */
TEST(case_001_overrun)
{
	struct ends e = { .scq = ibv_create_cq(ctx, 4, NULL, NULL, 0),
			  .rcq = ibv_create_cq(ctx, 128, NULL, NULL, 0) };
	struct ends other = make_ends(&usual, NULL);
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	struct ibv_qp *second;

	yes(e.scq && e.rcq);
	e.a = make_qp(&e, &usual, NULL);
	e.b = make_qp(&e, &usual, NULL);
	second = make_qp(&e, &usual, NULL);
	connect_ends(&e);
	for (int i = 0; i < 4; i++)
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 0, 0, 0), 0);
	is(state_of(e.a), IBV_QPS_RTS);
	is(poll(&fd, 1, 0), 0);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 0, 0, 0), 0);
	event = next_event(ctx);
	is(event.event_type, IBV_EVENT_CQ_ERR);
	yes(event.element.cq == e.scq);
	ibv_ack_async_event(&event);
	is(state_of(e.a), IBV_QPS_ERR);
	/* What was there before can be polled, and there is room, but nothing comes. */
	for (int i = 0; i < 4; i++)
		completes(e.scq, 0, IBV_WC_SUCCESS);
	nothing_more(e.scq);
	to_init(second);
	to_state(second, IBV_QPS_ERR);
	is(post_send(second, 1, buf, 8, 0), 0);
	nothing_more(e.scq);
	is(poll(&fd, 1, 0), 0);

	post_receives(other.b, NULL, 0, 5);
	consume(&other, 0, 5);
	end_ends(&other);
	is(ibv_destroy_qp(second), 0);
	end_ends(&e);
}

/* The receiver's queue: the sender is told of success, the receiver ends. */
TEST(overrun_by_receives)
{
	struct ends e = { .scq = ibv_create_cq(ctx, 128, NULL, NULL, 0),
			  .rcq = ibv_create_cq(ctx, 2, NULL, NULL, 0) };
	struct ibv_async_event event;

	yes(e.scq && e.rcq);
	e.a = make_qp(&e, &usual, NULL);
	e.b = make_qp(&e, &usual, NULL);
	connect_ends(&e);
	post_receives(e.b, NULL, 0, 5);
	for (int i = 0; i < 3; i++) {
		is(post_send(e.a, i, buf, 8, 0), 0);
		completes(e.scq, i, IBV_WC_SUCCESS);
	}
	event = next_event(ctx);
	is(event.event_type, IBV_EVENT_CQ_ERR);
	yes(event.element.cq == e.rcq);
	ibv_ack_async_event(&event);
	is(state_of(e.b), IBV_QPS_ERR);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	completes(e.rcq, 1, IBV_WC_SUCCESS);
	nothing_more(e.rcq);
	end_ends(&e);
}

/* --- events of completions --------------------------------------------------------- */

static void no_event(struct ibv_comp_channel *channel)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	is(poll(&fd, 1, 0), 0);
}

static void one_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *told;
	void *cookie;

	is(poll(&fd, 1, PATIENCE_S * 1000), 1);
	is(ibv_get_cq_event(channel, &told, &cookie), 0);
	yes(told == cq);
	yes(cookie == channel);
	ibv_ack_cq_events(cq, 1);
	no_event(channel);
}

static struct ends make_told(struct ibv_comp_channel *channel)
{
	struct ends e = { .scq = ibv_create_cq(ctx, 128, NULL, NULL, 0),
			  .rcq = ibv_create_cq(ctx, 128, channel, channel, 0) };

	yes(e.scq && e.rcq);
	e.a = make_qp(&e, &usual, NULL);
	e.b = make_qp(&e, &usual, NULL);
	connect_ends(&e);
	return e;
}

static void send_one(struct ends *e, int flags)
{
	post_receives(e->b, NULL, 0, 1);
	is(post_send(e->a, 0, buf, 8, flags), 0);
	completes(e->scq, 0, IBV_WC_SUCCESS);
}

/* Asked for solicited ones, only these tell, and errors. One question, one answer. */
TEST(solicited)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ends e;

	yes(channel);
	e = make_told(channel);
	send_one(&e, IBV_SEND_SOLICITED);
	no_event(channel);
	completes(e.rcq, 0, IBV_WC_SUCCESS);

	is(ibv_req_notify_cq(e.rcq, 1), 0);
	send_one(&e, 0);
	no_event(channel);
	send_one(&e, IBV_SEND_SOLICITED);
	one_event(channel, e.rcq);
	send_one(&e, IBV_SEND_SOLICITED);
	no_event(channel);
	for (int i = 0; i < 3; i++)
		completes(e.rcq, 0, IBV_WC_SUCCESS);

	/* Who asked for any keeps that. */
	is(ibv_req_notify_cq(e.rcq, 0), 0);
	is(ibv_req_notify_cq(e.rcq, 1), 0);
	send_one(&e, 0);
	one_event(channel, e.rcq);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	is(ibv_req_notify_cq(e.rcq, 1), 0);
	is(ibv_req_notify_cq(e.rcq, 0), 0);
	send_one(&e, 0);
	one_event(channel, e.rcq);
	completes(e.rcq, 0, IBV_WC_SUCCESS);

	is(ibv_req_notify_cq(e.rcq, 1), 0);
	post_receives(e.b, NULL, 4, 1);
	to_state(e.b, IBV_QPS_ERR);
	one_event(channel, e.rcq);
	completes(e.rcq, 4, IBV_WC_WR_FLUSH_ERR);
	end_ends(&e);
	is(ibv_destroy_comp_channel(channel), 0);
}

/* Destroying a queue waits until its events are acknowledged. */
static void *destroy_cq(void *arg)
{
	is(ibv_destroy_cq(arg), 0);
	return NULL;
}

TEST(unacknowledged)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *told;
	pthread_t thread;
	struct ends e;
	void *cookie;

	yes(channel);
	e = make_told(channel);
	is(ibv_destroy_comp_channel(channel), EBUSY);
	is(ibv_req_notify_cq(e.rcq, 0), 0);
	send_one(&e, 0);
	is(ibv_get_cq_event(channel, &told, &cookie), 0);
	is(ibv_destroy_qp(e.a), 0);
	is(ibv_destroy_qp(e.b), 0);
	is(pthread_create(&thread, NULL, destroy_cq, e.rcq), 0);
	sched_yield();
	ibv_ack_cq_events(told, 1);
	is(pthread_join(thread, NULL), 0);
	is(ibv_destroy_cq(e.scq), 0);
	is(ibv_destroy_comp_channel(channel), 0);
}

/*
 * A consumer that asks, polls until nothing is there and then waits never waits
 * for what is there already, while the producer goes on.
 */
TEST(case_008_ask_and_wait)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ends e = { .scq = ibv_create_cq(ctx, 128, NULL, channel, 0),
			  .rcq = ibv_create_cq(ctx, 128, NULL, NULL, 0) };
	struct producer p = { .e = &e, .total = 2000 };
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	uint64_t next = 0;
	int waits = 0;
	pthread_t thread;

	yes(e.scq && e.rcq);
	e.a = make_qp(&e, &usual, NULL);
	e.b = make_qp(&e, &usual, NULL);
	connect_ends(&e);
	is(ibv_req_notify_cq(e.scq, 0), 0);
	is(pthread_create(&thread, NULL, produce, &p), 0);
	while (next < p.total) {
		struct ibv_cq *told;
		struct ibv_wc wc;
		void *cookie;

		is(poll(&fd, 1, PATIENCE_S * 1000), 1);
		is(ibv_get_cq_event(channel, &told, &cookie), 0);
		ibv_ack_cq_events(told, 1);
		is(ibv_req_notify_cq(told, 0), 0);
		waits++;
		while (ibv_poll_cq(e.scq, 1, &wc) == 1) {
			is(wc.status, IBV_WC_SUCCESS);
			is(wc.wr_id, next++);
			atomic_store(&p.polled, next);
		}
	}
	is(pthread_join(thread, NULL), 0);
	printf("%d events for %d completions\n", waits, (int)next);
	end_ends(&e);
	is(ibv_destroy_comp_channel(channel), 0);
}

/* Sizes that no queue may have. */
TEST(case_013_sizes)
{
	struct ibv_device_attr device;
	struct ibv_cq *cq;

	is(ibv_query_device(ctx, &device), 0);
	fails(ibv_create_cq(ctx, 0, NULL, NULL, 0), EINVAL);
	fails(ibv_create_cq(ctx, device.max_cqe + 1, NULL, NULL, 0), EINVAL);
	fails(ibv_create_cq(ctx, -1, NULL, NULL, 0), EINVAL);
	cq = ibv_create_cq(ctx, device.max_cqe, NULL, NULL, 0);
	yes(cq);
	is(cq->cqe, device.max_cqe);
	is(ibv_destroy_cq(cq), 0);
}
