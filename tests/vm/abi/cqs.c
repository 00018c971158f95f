// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* cqs.c - completion queues */
#include "abi.h"

/* --- resize of a completion queue ------------------------------------------ */

TEST(resize_cq_waiting)
{
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
	is(ibv_resize_cq(e.scq, 0x30000), EINVAL);
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
	struct producer p = { .e = &e, .total = 3000 };
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
