// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* life.c - objects in use, processes that die, devices that go */
#include "abi.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* --- life and death -------------------------------------------------------- */

TEST(busy)
{
	struct ends e = make_ends(&usual, NULL);
	struct ibv_srq *srq = make_srq(10);
	struct ibv_qp *qp = make_qp(&e, &usual, srq);

	is(ibv_destroy_cq(e.scq), EBUSY);
	is(ibv_destroy_cq(e.rcq), EBUSY);
	is(ibv_destroy_srq(srq), EBUSY);
	is(ibv_dealloc_pd(pd), EBUSY);
	post_receives(e.b, NULL, 0, 5);
	consume(&e, 0, 5);
	is(ibv_destroy_qp(qp), 0);
	is(ibv_destroy_srq(srq), 0);
	end_ends(&e);
	is(ibv_dealloc_pd(pd), EBUSY); /* the memory region */
}

/* Everything open and sends waiting, then a byte to say so, then for ever. */
static void open_all_and_wait(int ready)
{
	struct ibv_comp_channel *channel;
	struct ibv_async_event event;
	struct ends e;

	begin();
	channel = ibv_create_comp_channel(ctx);
	yes(channel && ibv_create_cq(ctx, 10, NULL, channel, 0));
	make_srq(100);
	e = make_ends(&usual, NULL);
	for (int i = 0; i < 10; i++)
		is(post_send(e.a, i, buf, 8, 0), 0);
	is(write(ready, "x", 1), 1);
	for (;;)
		ibv_get_async_event(ctx, &event);
}

TEST(killed)
{
	int ready[2], status;
	char byte;
	pid_t child;

	is(pipe(ready), 0);
	for (int i = 0; i < 5; i++) {
		child = fork();
		yes(child >= 0);
		if (!child)
			open_all_and_wait(ready[1]);
		is(read(ready[0], &byte, 1), 1);
		is(kill(child, SIGKILL), 0);
		is(waitpid(child, &status, 0), child);
		yes(WIFSIGNALED(status));
	}
}

/* --- the device is removed ------------------------------------------------- */

/*
 * A thread in a blocking read of events, and how it ended. The last asynchronous
 * event is that the device is gone (uverbs has the next read wait); a completion
 * channel's reads fail.
 */
struct reader {
	pthread_t thread;
	struct ibv_comp_channel *channel; /* NULL: asynchronous events */
	atomic_int tid;
	bool fatal;
	int error;
};

static void *read_events(void *arg)
{
	struct reader *r = arg;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	atomic_store(&r->tid, syscall(SYS_gettid));
	if (r->channel) {
		while (!ibv_get_cq_event(r->channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
	} else {
		while (!r->fatal && !ibv_get_async_event(ctx, &event)) {
			r->fatal = event.event_type == IBV_EVENT_DEVICE_FATAL;
			ibv_ack_async_event(&event);
		}
	}
	r->error = errno;
	return NULL;
}

static bool sleeps(int tid)
{
	char path[64], line[256], state = 0;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	stat = fopen(path, "r");
	if (stat && fgets(line, sizeof(line), stat))
		sscanf(strrchr(line, ')'), ") %c", &state);
	if (stat)
		fclose(stat);
	return state == 'S';
}

static void start_reader(struct reader *r)
{
	time_t begun = now();

	is(pthread_create(&r->thread, NULL, read_events, r), 0);
	while (!atomic_load(&r->tid) || !sleeps(atomic_load(&r->tid))) {
		yes(now() - begun < PATIENCE_S);
		sched_yield();
	}
}

static void join_reader(struct reader *r)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	is(pthread_timedjoin_np(r->thread, NULL, &until), 0);
}

static void remove_device(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rdma link delete %s", device_name);
	puts(command);
	fflush(stdout);
	is(system(command), 0);
}

/* Whatever is asked of a device that has gone. */
static void everything_fails(struct ends *e, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 10, .max_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_ah_attr to = { .dlid = 1, .port_num = 1 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = usual,
		.qp_type = IBV_QPT_RC,
	};

	fails(ibv_alloc_pd(ctx), EIO);
	fails(ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_LOCAL_WRITE), EIO);
	fails(ibv_create_cq(ctx, 10, NULL, NULL, 0), EIO);
	fails(ibv_create_srq(pd, &srq), EIO);
	fails(ibv_create_qp(pd, &init), EIO);
	fails(ibv_create_ah(pd, &to), EIO);
	is(ibv_modify_qp(e->a, &attr, IBV_QP_STATE), EIO);
	is(ibv_query_qp(e->a, &attr, IBV_QP_STATE, &init), EIO);
	is(ibv_resize_cq(cq, 20), EIO);
	is(ibv_req_notify_cq(cq, 0), EIO);
	yes(list);
	for (int i = 0; list[i]; i++)
		yes(strcmp(ibv_get_device_name(list[i]), device_name));
	ibv_free_device_list(list);
}

/* Everything open, sends waiting, two threads waiting; then the device goes. */
static struct ends removed_under_us(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	struct reader async = { 0 }, comp = { .channel = channel };
	struct ends e = make_ends(&usual, NULL);
	struct ring ring = newest_ring();
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };

	post_receives(e.a, NULL, 0, 5);
	for (int i = 0; i < 10; i++)
		is(post_send(e.a, i, buf, 8, 0), 0);
	is(ibv_req_notify_cq(cq, 0), 0);
	start_reader(&async);
	start_reader(&comp);
	remove_device();
	join_reader(&async);
	yes(async.fatal);
	join_reader(&comp);
	is(comp.error, EIO);
	is(poll(&fd, 1, 0), 1);
	yes(fd.revents & POLLERR);

	/* The rings are memory, no more. */
	post_receives(e.b, NULL, 0, 40);
	while (ibv_poll_cq(e.scq, 1, &(struct ibv_wc){ 0 }) > 0)
		;
	memset(ring.at, 0x55, ring.bytes);
	is(ring.at[ring.bytes - 1], 0x55);
	is(post_send(e.a, 1, buf, 8, 0), EIO);
	everything_fails(&e, cq);
	return e;
}

PART(case_158_removed)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, channel, 0);
	struct ends e;

	yes(channel && cq);
	e = removed_under_us(channel, cq);
	end_ends(&e);
	is(ibv_destroy_cq(cq), 0);
	is(ibv_destroy_comp_channel(channel), 0);
}

/* A thread that writes to a peer, until nobody is there. */
struct writer {
	struct ends *e;
	const struct ibv_mr *to;
	atomic_ulong done;
};

static void *write_until_failed(void *arg)
{
	struct writer *w = arg;
	struct ibv_wc wc;

	do {
		is(post_rdma(w->e->a, IBV_WR_RDMA_WRITE, buf, 64 * 1024, (uintptr_t)w->to->addr,
			     w->to->rkey), 0);
		wc = next_wc(w->e->scq);
		atomic_fetch_add(&w->done, 1);
	} while (wc.status == IBV_WC_SUCCESS);
	is(wc.status, IBV_WC_RETRY_EXC_ERR);
	return NULL;
}

PART(peer_removed)
{
	struct place home = here(), there = begin_on("rvt2");
	struct ends e = {};
	struct writer w = { .e = &e, .to = there.mr };
	pthread_t thread;

	retry_cnt = 1;
	timeout = 8; /* a millisecond */
	make_ends_across(&e, &there);
	go(&home);
	is(pthread_create(&thread, NULL, write_until_failed, &w), 0);
	while (atomic_load(&w.done) < 10)
		sched_yield();
	device_name = there.name;
	remove_device();
	go(&home);
	is(pthread_join(thread, NULL), 0);
	printf("%lu messages until it went\n", atomic_load(&w.done));
	end_ends(&e);
	end_on(&there);
}

/* The module goes while the files are open and the rings mapped. */
PART(case_158_rmmod)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, channel, 0);
	struct ring ring;

	yes(channel && cq);
	removed_under_us(channel, cq);
	ring = newest_ring();
	is(system("rmmod rvt"), 0);
	memset(ring.at, 0xaa, ring.bytes);
	is((unsigned char)ring.at[0], 0xaa);
	exit(0);
}
