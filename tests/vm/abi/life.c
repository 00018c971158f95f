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
