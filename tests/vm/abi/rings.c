// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rings.c - mapping rings, and nonsense in them */
#include "abi.h"

#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* --- mapping --------------------------------------------------------------- */

/* A completion queue that is not mapped, made without the provider. */
static int bare_create_cq(uint32_t cqe, uint32_t *handle, uint64_t *offset)
{
	struct {
		struct ib_uverbs_create_cq_resp head;
		uint64_t offset;
	} answer = { 0 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_cq cmd;
	} request = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_CREATE_CQ,
			.in_words = sizeof(request) / 4,
			.out_words = sizeof(answer) / 4,
		},
		.cmd = { .response = (uintptr_t)&answer, .cqe = cqe, .comp_channel = -1 },
	};

	if (write(ctx->cmd_fd, &request, sizeof(request)) != sizeof(request))
		return errno;
	*handle = answer.head.cq_handle;
	*offset = answer.offset;
	return 0;
}

static int bare_destroy_cq(uint32_t handle)
{
	struct ib_uverbs_destroy_cq_resp answer;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_destroy_cq cmd;
	} request = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_DESTROY_CQ,
			.in_words = sizeof(request) / 4,
			.out_words = sizeof(answer) / 4,
		},
		.cmd = { .response = (uintptr_t)&answer, .cq_handle = handle },
	};

	return write(ctx->cmd_fd, &request, sizeof(request)) == sizeof(request) ? 0 : errno;
}

static void *map_ring(const struct ibv_context *of, uint64_t offset, size_t bytes, int flags)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, of->cmd_fd, offset);

	return at == MAP_FAILED ? NULL : at;
}

TEST(mapped_once)
{
	struct ibv_context *other = open_device();
	uint32_t handle;
	uint64_t offset;
	char *at;

	is(bare_create_cq(10, &handle, &offset), 0);
	fails(map_ring(other, offset, PAGE, MAP_SHARED), EINVAL);
	fails(map_ring(ctx, offset, PAGE, MAP_PRIVATE), EINVAL);
	fails(map_ring(ctx, offset, 2 * PAGE, MAP_SHARED), EINVAL);
	fails(map_ring(ctx, offset + PAGE, PAGE, MAP_SHARED), EINVAL);
	fails(map_ring(ctx, 0, PAGE, MAP_SHARED), EINVAL);
	at = map_ring(ctx, offset, PAGE, MAP_SHARED);
	yes(at);
	for (size_t i = 0; i < PAGE; i++)
		is(at[i], 0);
	fails(map_ring(ctx, offset, PAGE, MAP_SHARED), EINVAL);
	is(bare_destroy_cq(handle), 0);
	memset(at, 0x55, PAGE); /* the page stays ours */
	is(at[PAGE - 1], 0x55);
	is(munmap(at, PAGE), 0);

	is(bare_create_cq(10, &handle, &offset), 0);
	is(bare_destroy_cq(handle), 0);
	fails(map_ring(ctx, offset, PAGE, MAP_SHARED), EINVAL);
	is(ibv_close_device(other), 0);
}

/* A thread that maps what another makes and destroys. */
#define HELD	8
struct mapper {
	atomic_uint_fast64_t offset, tried;
	atomic_bool stop;
	unsigned long mapped, refused;
};

static void *map_all(void *arg)
{
	char *held[HELD] = { NULL };
	struct mapper *m = arg;
	uint64_t offset, last = 0;

	while (!atomic_load(&m->stop)) {
		char **slot = &held[m->mapped % HELD];
		char *at;

		offset = atomic_load(&m->offset);
		if (offset == last) {
			sched_yield();
			continue;
		}
		last = offset;
		at = map_ring(ctx, offset, PAGE, MAP_SHARED);
		if (at) {
			if (*slot)
				munmap(*slot, PAGE);
			*slot = at;
			m->mapped++;
		} else {
			is(errno, EINVAL);
			m->refused++;
		}
		for (int i = 0; i < HELD; i++) {
			if (held[i])
				memset(held[i], 0x5a, PAGE);
		}
		atomic_store(&m->tried, offset);
	}
	for (int i = 0; i < HELD; i++) {
		if (held[i])
			munmap(held[i], PAGE);
	}
	return NULL;
}

TEST(case_153_map_against_destroy)
{
	struct mapper m = { 0 };
	pthread_t thread;
	uint32_t handle;
	uint64_t offset;

	is(pthread_create(&thread, NULL, map_all, &m), 0);
	for (int i = 0; i < 2000; i++) {
		is(bare_create_cq(10, &handle, &offset), 0);
		atomic_store(&m.offset, offset);
		/* At once, a little later, or when it is surely mapped. */
		if (i % 4 == 0) {
			while (atomic_load(&m.tried) != offset)
				sched_yield();
		} else {
			for (int spin = 0; spin < i % 64 * 16; spin++)
				atomic_load(&m.tried);
		}
		is(bare_destroy_cq(handle), 0);
	}
	atomic_store(&m.stop, true);
	is(pthread_join(thread, NULL), 0);
	printf("%lu mapped, %lu came too late\n", m.mapped, m.refused);
	yes(m.mapped >= 500);
}

TEST(case_154_offsets_never_repeat)
{
	uint64_t offset, last = 0;
	uint32_t handle;

	for (int i = 0; i < 2500; i++) {
		is(bare_create_cq(1 + i % 300, &handle, &offset), 0);
		is(offset % PAGE, 0);
		yes(offset > last); /* they count up: none repeats */
		last = offset;
		if (!(i % 100))
			is(munmap(map_ring(ctx, offset, PAGE, MAP_SHARED), PAGE), 0);
		is(bare_destroy_cq(handle), 0);
	}
}

/* A child has a copy of the mapping, whatever happens to the object. */
TEST(fork_and_destroy)
{
	struct ends e = make_ends(&usual, NULL);
	struct ring ring = newest_ring();
	int go[2], status;
	char byte;
	pid_t child;

	is(pipe(go), 0);
	for (int round = 0; round < 2; round++) {
		child = fork();
		yes(child >= 0);
		if (!child) {
			if (round) { /* this one keeps the ring beyond its end */
				if (read(go[0], &byte, 1) != 1)
					_exit(2);
				memset(ring.at, 0x77, ring.bytes);
				_exit(ring.at[ring.bytes - 1] != 0x77);
			}
			_exit(munmap(ring.at, ring.bytes) != 0);
		}
		if (!round) {
			is(waitpid(child, &status, 0), child);
			is(status, 0);
			post_receives(e.b, NULL, 0, 10);
			consume(&e, 0, 10);
		}
	}
	end_ends(&e);
	is(write(go[1], "x", 1), 1);
	is(waitpid(child, &status, 0), child);
	is(status, 0);
}

/* --- nonsense in the rings ------------------------------------------------- */

static uint32_t nonsense(void)
{
	static const uint32_t values[] = {
		0, 1, 2, 39, 40, 41, 42, 127, 128, 129, 0x7fffffff, 0x80000000, 0xffffffff,
	};

	return rand() % 4 ? values[rand() % ARRAY_SIZE(values)] : (uint32_t)rand();
}

/* Overwrite indices, and now and then entries with their num_sge. */
static void scribble(const struct ring *ring)
{
	volatile uint32_t *word = (volatile uint32_t *)ring->at;
	size_t words = ring->bytes / 4;

	word[0] = nonsense();
	word[1] = nonsense();
	for (int i = 0; i < 50; i++)
		word[2 + rand() % (words - 2)] = nonsense();
}

static void scribbler(atomic_bool *stop)
{
	begin();
	while (!atomic_load(stop)) {
		struct ends e = {
			.scq = ibv_create_cq(ctx, 128, NULL, NULL, 0),
		};
		struct ring send_cq = newest_ring();
		struct ring recv_cq, receives;

		e.rcq = ibv_create_cq(ctx, 128, NULL, NULL, 0);
		recv_cq = newest_ring();
		e.a = make_qp(&e, &usual, NULL);
		e.b = make_qp(&e, &usual, NULL);
		receives = newest_ring();
		connect_ends(&e);
		for (int i = 0; i < 20; i++) {
			scribble(&receives);
			post_send(e.a, i, buf, 8, 0);
			scribble(&send_cq);
			scribble(&recv_cq);
			ibv_resize_cq(i % 2 ? e.scq : e.rcq, 100 + i);
			/* A resize that went well moved the ring. */
			if (i % 2)
				send_cq = newest_ring();
			else
				recv_cq = newest_ring();
			if (i == 15)
				to_state(e.b, IBV_QPS_ERR);
		}
		end_ends(&e);
	}
	_exit(0);
}

TEST(scribbled_rings)
{
	struct ends e = make_ends(&usual, NULL);
	atomic_bool *stop = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				 -1, 0);
	time_t until = now() + 5;
	unsigned long messages = 0;
	int status;
	pid_t child;

	yes(stop != MAP_FAILED);
	child = fork();
	yes(child >= 0);
	if (!child)
		scribbler(stop);
	while (now() < until) {
		for (int i = 0; i < 40; i++) {
			*(uint64_t *)(buf + BUF_BYTES / 2) = messages;
			is(post_receive(e.b, NULL, i), 0);
			is(post_send(e.a, i, buf + BUF_BYTES / 2, 8, 0), 0);
			completes(e.rcq, i, IBV_WC_SUCCESS);
			completes(e.scq, i, IBV_WC_SUCCESS);
			is(*(uint64_t *)(buf + i * 1024), messages);
			messages++;
		}
	}
	atomic_store(stop, true);
	is(waitpid(child, &status, 0), child);
	is(status, 0);
	nothing_more(e.rcq);
	printf("%lu messages beside it\n", messages);
	end_ends(&e);
}
