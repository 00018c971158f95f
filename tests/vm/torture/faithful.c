// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* faithful.c - the well-behaved: how they begin and end, see faithful.h */
#include "faithful.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const struct character characters[] = {
	{ "rc, polled, with RDMA",	IBV_QPT_RC, false, false, true, 0 },
	{ "rc, events, SRQ, RDMA",	IBV_QPT_RC, true, true, true, 1 },
	{ "uc, events",			IBV_QPT_UC, true, false, false, 1 },
	{ "ud, events",			IBV_QPT_UD, true, false, false, 0 },
	{ "ud, events, SRQ",		IBV_QPT_UD, true, true, false, 1 },
};
#define PAIRS	ARRAY_SIZE(characters)

/* Seen by the faithful and the main process only. */
static struct control {
	atomic_bool stop;
	struct address address[PAIRS][2];
	atomic_ulong done[PAIRS];
} *control;

static struct {
	pid_t pid;
	unsigned int pair, side;
} process[2 * PAIRS];

/* --- life ------------------------------------------------------------------- */

static void make(struct faithful *f)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 2 * WINDOW, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = 2 * WINDOW,
			.max_send_sge = 2, .max_recv_sge = 1,
		},
		.qp_type = f->is->type,
	};
	struct ibv_port_attr port;
	unsigned int device = f->side && plan.devices > 1 ? f->is->server_device : 0;

	f->ctx = open_named(device_name(device));
	must(f, f->ctx);
	must(f, !ibv_query_port(f->ctx, 1, &port));
	f->pd = ibv_alloc_pd(f->ctx);
	must(f, f->pd);
	f->memory = mmap(NULL, sizeof(*f->memory), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(f, f->memory != MAP_FAILED);
	memset(f->memory->guard, 0x5a, sizeof(f->memory->guard));
	f->mr = ibv_reg_mr(f->pd, f->memory, sizeof(*f->memory), ALL_ACCESS);
	must(f, f->mr);
	if (f->is->events) {
		f->channel = ibv_create_comp_channel(f->ctx);
		must(f, f->channel);
	}
	f->cq = ibv_create_cq(f->ctx, DEPTH + 2 * WINDOW, NULL, f->channel, 0);
	must(f, f->cq);
	if (f->is->srq) {
		f->srq = ibv_create_srq(f->pd, &shared);
		must(f, f->srq);
	}
	init.send_cq = init.recv_cq = f->cq;
	init.srq = f->srq;
	f->qp = ibv_create_qp(f->pd, &init);
	must(f, f->qp);
	f->qkey = mix(plan.seed, f->pair) >> 33; /* nobody guesses it */
	f->mine->lid = port.lid;
	f->mine->qpn = f->qp->qp_num;
	f->mine->key = f->mr->rkey;
	f->mine->at = (uintptr_t)f->memory;
	for (int i = 0; i < 2; i++) {
		struct line *line = i ? &board->faithful_region[2 * f->pair + f->side] :
					&board->faithful_qp[2 * f->pair + f->side];

		atomic_store(&line->device, device);
		atomic_store(&line->type, f->is->type);
		atomic_store(&line->at, (uintptr_t)f->memory);
		atomic_store(&line->bytes, sizeof(*f->memory));
		atomic_store(&line->number, i ? f->mr->rkey : f->qp->qp_num);
	}
}

static void await_stage(struct faithful *f, unsigned int stage)
{
	atomic_store(&f->mine->stage, stage);
	while (atomic_load(&f->peers->stage) < stage)
		usleep(1000);
}

static void connect_peers(struct faithful *f)
{
	bool rc = f->is->type == IBV_QPT_RC, ud = f->is->type == IBV_QPT_UD;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = f->qkey,
		.qp_access_flags = f->is->rdma ? ALL_ACCESS : 0,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = f->peers->qpn,
		.ah_attr = { .dlid = f->peers->lid, .port_num = 1 },
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.timeout = 14,
		.retry_cnt = 7,
	};

	must(f, !ibv_modify_qp(f->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	while (f->receives < 2 * WINDOW)
		post_receive(f);
	attr.qp_state = IBV_QPS_RTR;
	must(f, !ibv_modify_qp(f->qp, &attr, IBV_QP_STATE | (ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU |
			       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			       (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
	attr.qp_state = IBV_QPS_RTS;
	must(f, !ibv_modify_qp(f->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT |
			       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
	if (ud) {
		f->ah = ibv_create_ah(f->pd, &attr.ah_attr);
		must(f, f->ah);
	}
}

/* Nothing is left, nothing was touched, everything can be ended. */
static void end(struct faithful *f)
{
	struct ibv_wc wc;

	must(f, !ibv_poll_cq(f->cq, 1, &wc));
	for (size_t i = 0; i < sizeof(f->memory->guard); i++)
		must(f, f->memory->guard[i] == 0x5a);
	await_stage(f, 3);
	must(f, f->side || !f->memory->counter);
	if (f->ah)
		must(f, !ibv_destroy_ah(f->ah));
	must(f, !ibv_destroy_qp(f->qp));
	if (f->srq)
		must(f, !ibv_destroy_srq(f->srq));
	must(f, !ibv_destroy_cq(f->cq));
	if (f->channel)
		must(f, !ibv_destroy_comp_channel(f->channel));
	must(f, !ibv_dereg_mr(f->mr));
	must(f, !ibv_dealloc_pd(f->pd));
	must(f, !ibv_close_device(f->ctx));
}

static void be_faithful(unsigned int pair, unsigned int side)
{
	static struct faithful f;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	f.is = &characters[pair];
	f.pair = pair;
	f.side = side;
	f.mine = &control->address[pair][side];
	f.peers = &control->address[pair][!side];
	f.stop = &control->stop;
	f.done = &control->done[pair];
	must(&f, fd >= 0 && write(fd, "-1000", 5) == 5 && !close(fd));
	make(&f);
	/* What workers may write to is of no more interest. */
	munmap(board, sizeof(*board));
	await_stage(&f, 1);
	connect_peers(&f);
	await_stage(&f, 2);
	talk(&f);
	end(&f);
	exit(0);
}

/* --- from outside ----------------------------------------------------------- */

void start_faithful(void)
{
	if (!control) {
		control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (control == MAP_FAILED)
			wrong("mmap: %s", strerror(errno));
	}
	atomic_store(&control->stop, false);
	memset(control->address, 0, sizeof(control->address));
	for (unsigned int i = 0; i < 2 * PAIRS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			wrong("fork: %s", strerror(errno));
		if (!pid)
			be_faithful(i / 2, i % 2);
		process[i].pid = pid;
	}
}

/* Workers cannot touch what they do not have. */
void hide_faithful(void)
{
	munmap(control, sizeof(*control));
}

/* Is it one of them? They do not end but by themselves, and well. */
bool faithful_process(pid_t pid, int status)
{
	for (unsigned int i = 0; i < 2 * PAIRS; i++) {
		if (process[i].pid != pid)
			continue;
		process[i].pid = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status) || !atomic_load(&control->stop))
			wrong("one of the faithful (%s) ended with status 0x%x",
			      characters[i / 2].name, status);
		return true;
	}
	return false;
}

void kill_faithful(void)
{
	for (unsigned int i = 0; i < 2 * PAIRS; i++) {
		if (process[i].pid)
			kill(process[i].pid, SIGKILL);
	}
}

unsigned int faithful_left(void)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < 2 * PAIRS; i++)
		left += !!process[i].pid;
	return left;
}

void stop_faithful(void)
{
	atomic_store(&control->stop, true);
}

unsigned long least_progress(void)
{
	unsigned long least = atomic_load(&control->done[0]);

	for (unsigned int i = 1; i < PAIRS; i++) {
		unsigned long n = atomic_load(&control->done[i]);

		least = n < least ? n : least;
	}
	return least;
}

void print_progress(void)
{
	for (unsigned int i = 0; i < PAIRS; i++)
		printf("  %-24s %8lu messages answered\n", characters[i].name,
		       atomic_load(&control->done[i]));
}
