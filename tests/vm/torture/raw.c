// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* raw.c - to the kernel past the library: commands that are wrong, children of a fork */
#include "torture.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/*
 * Where answers go. The kernel zeroes what it was told there is room for, at most
 * 0xffff words of eight bytes.
 */
static char scratch[1 << 20];
/* What an event of an object made here points to: the library counts there. */
static char nobody[PAGE];

/* --- commands --------------------------------------------------------------- */

#define BODY_WORDS	80
struct command {
	struct ib_uverbs_cmd_hdr hdr;
	uint32_t body[BODY_WORDS];
};

static int submit(int fd, struct command *command, unsigned int number, unsigned int words,
		  unsigned int answer_words)
{
	size_t bytes = sizeof(command->hdr) + words * 4;

	command->hdr.command = number;
	/* Extended ones count differently, behind a second header. */
	command->hdr.in_words = number & IB_USER_VERBS_CMD_FLAG_EXTENDED && words >= 4 ?
				(words - 4) / 2 : bytes / 4;
	command->hdr.out_words = answer_words;
	return write(fd, command, bytes) == (ssize_t)bytes ? 0 : errno;
}

static void put_pointer(uint32_t *at, const void *pointer)
{
	uint64_t value = (uintptr_t)pointer;

	memcpy(at, &value, sizeof(value));
}

int raw_destroy(const struct ibv_context *ctx, enum kind kind, uint32_t handle)
{
	unsigned int number = kind == CQ ? IB_USER_VERBS_CMD_DESTROY_CQ :
			      kind == SRQ ? IB_USER_VERBS_CMD_DESTROY_SRQ :
					    IB_USER_VERBS_CMD_DESTROY_QP;
	struct command command = { .body = { [2] = handle } };

	put_pointer(command.body, scratch);
	return submit(ctx->cmd_fd, &command, number, 4, 4);
}

/* Mostly numbers as handles are, or such as stand at an edge. */
static uint32_t some_word(struct dice *d)
{
	return below(d, 3) ? below(d, 24) : nonsense(d);
}

static bool makes_object(unsigned int number)
{
	return number == IB_USER_VERBS_CMD_CREATE_CQ || number == IB_USER_VERBS_CMD_CREATE_QP ||
	       number == IB_USER_VERBS_CMD_CREATE_SRQ || number == IB_USER_VERBS_CMD_CREATE_XSRQ ||
	       number == IB_USER_VERBS_CMD_OPEN_QP;
}

void garbage(struct dice *d, int fd)
{
	unsigned int number = below(d, IB_USER_VERBS_CMD_THRESHOLD + 12);
	unsigned int words = one_in(d, 4) ? below(d, BODY_WORDS) : 2 * below(d, 20);
	unsigned int answer = one_in(d, 2) ? 64 : nonsense(d) & 0xffff;
	struct command command;

	for (unsigned int i = 0; i < BODY_WORDS; i++)
		command.body[i] = some_word(d);
	if (one_in(d, 4)) {
		number |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		command.body[2] = one_in(d, 4) << 16; /* words for and from the driver */
		command.body[3] = 0;
		put_pointer(command.body + 4, nobody);
	}
	if (one_in(d, 50))
		number = nonsense(d);
	/* Where an answer is to be written; and what events will point to. */
	if (below(d, 10) || makes_object(number & 0xff))
		put_pointer(command.body, scratch);
	if (makes_object(number))
		put_pointer(command.body + 2, nobody);
	submit(fd, &command, number, words, answer);
}

ACT(garbage)
{
	for (int i = 0; i < 10; i++)
		garbage(&t->dice, t->home->ctx->cmd_fd);
	return true;
}

/*
 * Requests as the kernel reads them, to a queue that exists, with counts that lie.
 * Every other time it would be right (one request without a byte) but for a word
 * or two.
 */
static int garbage_send(struct dice *d, int fd, uint32_t handle)
{
	static const unsigned int numbers[] = {
		IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_POST_SEND,
		IB_USER_VERBS_CMD_POST_RECV, IB_USER_VERBS_CMD_POST_SRQ_RECV,
	};
	unsigned int number = one_of(d, numbers), words = 6 + sizeof(struct ib_uverbs_send_wr) / 4;
	bool nearly = one_in(d, 2);
	struct command command = { 0 };

	for (unsigned int i = 0; !nearly && i < BODY_WORDS; i++)
		command.body[i] = some_word(d);
	command.body[3] = nearly ? 1 : one_in(d, 2) ? nonsense(d) : 1; /* requests */
	command.body[4] = nearly ? 0 : one_in(d, 2) ? nonsense(d) : below(d, 4); /* pieces */
	command.body[5] = sizeof(struct ib_uverbs_send_wr);
	if (nearly) { /* opcode and flags */
		number = IB_USER_VERBS_CMD_POST_SEND;
		command.body[9] = below(d, 7);
		command.body[10] = below(d, 16);
		for (unsigned int n = below(d, 3); n; n--)
			command.body[3 + below(d, words - 3)] = some_word(d);
	}
	put_pointer(command.body, scratch);
	command.body[2] = handle;
	return submit(fd, &command, number, one_in(d, 8) ? below(d, BODY_WORDS) : words, 4);
}

ACT(garbage_send)
{
	struct slot *slot = use(t, QP);
	bool done = slot && !garbage_send(&t->dice, t->home->ctx->cmd_fd,
					  ((struct ibv_qp *)slot->it)->handle);

	release(slot);
	return done;
}

/* --- ioctl ------------------------------------------------------------------ */

#define ATTRS	10
struct ioctl_command {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[ATTRS];
};

static int call(int fd, struct ioctl_command *command, unsigned int object, unsigned int method,
		unsigned int count)
{
	command->hdr.object_id = object;
	command->hdr.method_id = method;
	command->hdr.num_attrs = count;
	command->hdr.length = sizeof(command->hdr) + count * sizeof(command->attr[0]);
	command->hdr.driver_id = RDMA_DRIVER_HFI1;
	return ioctl(fd, RDMA_VERBS_IOCTL, command);
}

/* Whatever has this number, be it of this kind or not. */
static int ioctl_destroy(struct dice *d, int fd)
{
	static const struct {
		uint16_t object, method, answer;
	} kinds[] = {
		{ UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, 0 },
		{ UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, 0 },
		{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, 0 },
		{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, 8 },
		{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, 4 },
		{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, 4 },
	};
	unsigned int kind = below(d, ARRAY_SIZE(kinds));
	struct ioctl_command command = {
		.attr = {
			{ .attr_id = 0, .flags = UVERBS_ATTR_F_MANDATORY, .data = below(d, 24) },
			{ .attr_id = 1, .flags = UVERBS_ATTR_F_MANDATORY, .len = kinds[kind].answer,
			  .data = (uintptr_t)scratch },
		},
	};

	return call(fd, &command, kinds[kind].object, kinds[kind].method,
		    kinds[kind].answer ? 2 : 1);
}

static int garbage_ioctl(struct dice *d, int fd)
{
	struct ioctl_command command = { 0 };
	unsigned int count = below(d, ATTRS + 1);
	unsigned int object = below(d, 18), method = below(d, 10);

	if (one_in(d, 8))
		return ioctl_destroy(d, fd);
	/* The second one of a file makes uverbs of 6.1 leak a task, whatever the device. */
	if (object == UVERBS_OBJECT_DEVICE && method == UVERBS_METHOD_GET_CONTEXT)
		return -1;
	for (unsigned int i = 0; i < count; i++) {
		struct ib_uverbs_attr *a = &command.attr[i];

		a->attr_id = one_in(d, 4) ? 0x1000 + below(d, 3) : below(d, 12);
		a->len = one_in(d, 3) ? nonsense(d) : 4 * below(d, 9);
		a->flags = below(d, 3);
		a->attr_data.reserved = one_in(d, 10) ? nonsense(d) : 0;
		a->data = one_in(d, 2) ? some_word(d) : (uintptr_t)scratch + PAGE;
	}
	if (below(d, 5))
		return call(fd, &command, object, method, count);
	command.hdr.object_id = nonsense(d);
	command.hdr.method_id = nonsense(d);
	command.hdr.num_attrs = nonsense(d);
	command.hdr.length = nonsense(d);
	command.hdr.driver_id = one_in(d, 2) ? nonsense(d) : RDMA_DRIVER_HFI1;
	return ioctl(fd, RDMA_VERBS_IOCTL, &command);
}

ACT(garbage_ioctl)
{
	bool done = false;

	for (int i = 0; i < 20; i++)
		done |= garbage_ioctl(&t->dice, t->home->ctx->cmd_fd) >= 0;
	return done;
}

/* --- right commands at the wrong time --------------------------------------- */

static uint32_t some_handle(struct thread *t, enum kind kind)
{
	struct slot *slot = use(t, kind);
	uint32_t handle = nonsense(&t->dice);

	if (slot && kind == REGION)
		handle = ((struct ibv_mr *)slot->it)->handle;
	else if (slot && kind == PD)
		handle = ((struct ibv_pd *)slot->it)->handle;
	release(slot);
	return handle;
}

/* Whoever has it in hand now finds it gone. */
ACT(raw_end)
{
	static const enum kind kinds[] = { CQ, SRQ, QP };
	unsigned int done = 0;

	for (int i = 0; i < 3; i++)
		done += !raw_destroy(t->home->ctx, one_of(&t->dice, kinds), below(&t->dice, 24));
	return done;
}

/* A queue that nobody knows; its ring may be mapped by map_anything(). */
ACT(bare_cq)
{
	struct command command = { .body = { [4] = 1 + below(&t->dice, 300), [6] = -1 } };

	put_pointer(command.body, scratch);
	put_pointer(command.body + 2, nobody);
	return !submit(t->home->ctx->cmd_fd, &command, IB_USER_VERBS_CMD_CREATE_CQ,
		       sizeof(struct ib_uverbs_create_cq) / 4, 16);
}

ACT(map_anything)
{
	uint64_t back = below(&t->dice, 16), offset;
	size_t bytes = (1 + below(&t->dice, one_in(&t->dice, 2) ? 2 : 40)) * PAGE;
	bool done = false;
	char *at;

	/* Whoever makes a ring takes the newest for it. */
	pthread_mutex_lock(&making_ring);
	offset = newest_ring().offset + 4 * PAGE - back * PAGE;
	for (int i = 0; i < 8; i++) {
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  one_in(&t->dice, 20) ? MAP_PRIVATE : MAP_SHARED, t->home->ctx->cmd_fd,
			  offset + i * PAGE);
		if (at != MAP_FAILED) {
			leave_ring((struct ring){ .at = at, .bytes = bytes });
			done = true;
		}
	}
	pthread_mutex_unlock(&making_ring);
	return done;
}

/* The library has no command to change a region. */
ACT(rereg)
{
	struct command command = { 0 };
	struct ib_uverbs_rereg_mr *c = (struct ib_uverbs_rereg_mr *)command.body;
	void *memory = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	c->response = (uintptr_t)scratch;
	c->mr_handle = some_handle(t, REGION);
	c->flags = one_in(&t->dice, 8) ? nonsense(&t->dice) : below(&t->dice, 8);
	c->start = (uintptr_t)memory;
	c->length = (1 + below(&t->dice, 16)) * PAGE;
	c->hca_va = one_in(&t->dice, 4) ? draw(&t->dice) : c->start;
	c->pd_handle = some_handle(t, PD);
	c->access_flags = one_in(&t->dice, 8) ? nonsense(&t->dice) : ALL_ACCESS;
	ret = submit(t->home->ctx->cmd_fd, &command, IB_USER_VERBS_CMD_REREG_MR, sizeof(*c) / 4, 8);
	munmap(memory, 16 * PAGE);
	return !ret;
}

/* --- children --------------------------------------------------------------- */

/* Pin memory of this process for a file that its parent has, too. */
static void register_in_child(struct dice *d, int fd)
{
	struct command command = { 0 };
	struct ib_uverbs_reg_mr *c = (struct ib_uverbs_reg_mr *)command.body;

	c->response = (uintptr_t)scratch;
	c->start = c->hca_va = (uintptr_t)scratch & ~(PAGE - 1);
	c->length = PAGE;
	c->pd_handle = below(d, 24);
	c->access_flags = IBV_ACCESS_REMOTE_READ;
	submit(fd, &command, IB_USER_VERBS_CMD_REG_MR, sizeof(*c) / 4, 8);
}

/*
 * What a process may do that has everything of one with threads but the threads:
 * it must not allocate, nor call the library.
 */
static void childs_step(struct dice *d, const struct ring *rings, unsigned int count)
{
	const struct home *home = &homes[below(d, HOMES)];
	const struct ibv_context *ctx = home->ctx;
	const struct ring *ring = count ? &rings[below(d, count)] : NULL;

	switch (below(d, 6)) {
	case 0: /* the parent's library believes the indices */
		if (ring)
			scribble(d, *ring, 30);
		break;
	case 1:
		if (ring && one_in(d, 4)) {
			void *to = mmap(NULL, ring->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
					-1, 0);

			mremap(ring->at, ring->bytes, ring->bytes,
			       MREMAP_MAYMOVE | MREMAP_FIXED, to);
			mmap(ring->at, ring->bytes, PROT_READ | PROT_WRITE,
			     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
		break;
	case 2:
		if (ctx && home->wild)
			garbage(d, ctx->cmd_fd);
		break;
	case 3:
		if (ctx && home->wild)
			garbage_ioctl(d, ctx->cmd_fd);
		break;
	case 4:
		if (ctx)
			register_in_child(d, ctx->cmd_fd);
		break;
	case 5:
		if (ctx)
			garbage_send(d, ctx->cmd_fd, below(d, 24));
		break;
	}
}

#define CHILDS_RINGS	64
ACT(fork)
{
	struct dice d = t->dice;
	static struct ring rings[CHILDS_RINGS];
	unsigned int count, steps = 1 + below(&d, 60);
	pid_t child = fork();

	if (child)
		return child > 0;
	count = all_rings(rings, CHILDS_RINGS);
	while (steps--)
		childs_step(&d, rings, count);
	/* Now and then it outlives its parent. */
	for (unsigned int i = one_in(&d, 3) ? 2000 : 0; i; i--)
		sched_yield();
	_exit(0);
}
