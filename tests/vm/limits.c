// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * limits.c - what bounds a device from below, and what a device takes.
 *
 *	limits pipe|eventfd N		two processes exchange 8 bytes
 *	limits refused DEVICE N		post_send system calls that uverbs refuses
 *	limits write DEVICE N PAIRS LIST	8-byte RDMA writes on so many pairs of
 *				queue pairs, each with a process and a processor of its
 *				own, LIST in one post
 *	limits fair DEVICE N	8-byte ping-pong alone, and while another processor
 *				streams RDMA writes of 1 MiB
 *	limits memory DEVICE	kernel memory per queue pair and per registered GiB
 *	limits loop DEVICE WHAT	write, read, fetch_add or send of 8 bytes or ud_send of
 *				1024, posted and polled, or posts that are refused: without
 *				end; says "steady" after the first thousand (for
 *				scripts/profile)
 *
 * Each figure is a line "figure NAME NUMBER": nanoseconds each, operations per
 * second, or bytes. scripts/guest-program builds it for a suite.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define MIB		(1UL << 20)
#define QKEY		0x11111111
#define GRH		40	/* bytes before a datagram */
#define MOST_LIST	64

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void figure(const char *name, double value)
{
	printf("figure %s %.1f\n", name, value);
	fflush(stdout);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % sysconf(_SC_NPROCESSORS_ONLN), &set);
	must(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void *memory(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(mem != MAP_FAILED, "mmap");
	return mem;
}

/* --- the least that an exchange by events can be ------------------------------- */

static void hand_on(int from, int to)
{
	uint64_t word = 1;

	must(read(from, &word, sizeof(word)) == sizeof(word), "read");
	must(write(to, &word, sizeof(word)) == sizeof(word), "write");
}

static void exchange(const char *name, int n, int there[2], int back[2])
{
	uint64_t word = 1, start;
	int i;

	if (!fork()) {
		for (i = 0; i < n; i++)
			hand_on(there[0], back[1]);
		_exit(0);
	}
	start = now();
	must(write(there[1], &word, sizeof(word)) == sizeof(word), "write");
	for (i = 1; i < n; i++)
		hand_on(back[0], there[1]);
	must(read(back[0], &word, sizeof(word)) == sizeof(word), "read");
	figure(name, (double)(now() - start) / n);
	wait(NULL);
}

static void by_pipe(int n)
{
	int there[2], back[2];

	must(!pipe(there) && !pipe(back), "pipe");
	exchange("pipe", n, there, back);
}

static void by_eventfd(int n)
{
	int a = eventfd(0, 0), b = eventfd(0, 0);

	must(a >= 0 && b >= 0, "eventfd");
	exchange("eventfd", n, (int[]){ a, a }, (int[]){ b, b });
}

/* --- verbs -------------------------------------------------------------------------- */

struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct side open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct side s = {};
	int i;

	for (i = 0; list && list[i]; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			s.context = ibv_open_device(list[i]);
	}
	must(s.context != NULL, name);
	s.pd = ibv_alloc_pd(s.context);
	s.cq = ibv_create_cq(s.context, 1000, NULL, NULL, 0);
	must(s.pd && s.cq, "a protection domain and a completion queue");
	return s;
}

static struct ibv_qp *make_qp(struct side *s, enum ibv_qp_type type, int send_wr, int recv_wr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { .max_send_wr = send_wr, .max_recv_wr = recv_wr,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(s->pd, &init);

	must(qp != NULL, "ibv_create_qp");
	return qp;
}

/* The way from the device's port to itself. */
static struct ibv_ah_attr own_port(struct side *s, struct ibv_port_attr *port)
{
	struct ibv_ah_attr ah = { .port_num = 1 };

	must(!ibv_query_port(s->context, 1, port), "ibv_query_port");
	ah.dlid = port->lid;
	if (port->link_layer == IBV_LINK_LAYER_ETHERNET) {
		/* Entry 0 is RoCE v1. */
		ah.is_global = 1;
		ah.grh.sgid_index = 1;
		ah.grh.hop_limit = 1;
		must(!ibv_query_gid(s->context, 1, 1, &ah.grh.dgid), "ibv_query_gid");
	}
	return ah;
}

static void connect_to(struct side *s, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
		.ah_attr = own_port(s, &port),
	};

	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS), "INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = port.active_mtu;
	a.dest_qp_num = peer;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 1;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

static void open_datagrams(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY), "INIT");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

/* Two queue pairs, connected or (UD) with an address, and memory that both may use. */
struct pair {
	struct side side;
	struct ibv_qp *a, *b;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	char *mem;
};

static struct pair make_pair(const char *device, enum ibv_qp_type type, size_t bytes)
{
	struct pair p = { .side = open_device(device), .mem = memory(2 * bytes) };
	struct ibv_port_attr port;
	struct ibv_ah_attr way;

	p.mr = ibv_reg_mr(p.side.pd, p.mem, 2 * bytes, ALL_ACCESS);
	must(p.mr != NULL, "ibv_reg_mr");
	p.a = make_qp(&p.side, type, MOST_LIST, 16);
	p.b = make_qp(&p.side, type, MOST_LIST, 16);
	if (type == IBV_QPT_UD) {
		open_datagrams(p.a);
		open_datagrams(p.b);
		way = own_port(&p.side, &port);
		p.ah = ibv_create_ah(p.side.pd, &way);
		must(p.ah != NULL, "ibv_create_ah");
	} else {
		connect_to(&p.side, p.a, p.b->qp_num);
		connect_to(&p.side, p.b, p.a->qp_num);
	}
	return p;
}

static void completion(struct pair *p)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(p->side.cq, 1, &wc);
	} while (!n);
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "a completion");
}

/* So many writes in one post, of which the last completes. */
static void write_list(struct pair *p, size_t bytes, int list)
{
	struct ibv_sge sge = { (uintptr_t)p->mem, bytes, p->mr->lkey };
	struct ibv_send_wr wr[MOST_LIST], *bad;
	int i;

	memset(wr, 0, list * sizeof(wr[0]));
	for (i = 0; i < list; i++) {
		wr[i].next = i + 1 < list ? &wr[i + 1] : NULL;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = i + 1 < list ? 0 : IBV_SEND_SIGNALED;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
		wr[i].wr.rdma.remote_addr = (uintptr_t)p->mem + bytes;
		wr[i].wr.rdma.rkey = p->mr->rkey;
	}
	must(!ibv_post_send(p->a, wr, &bad), "ibv_post_send");
	completion(p);
}

/* 8 bytes, to or from the pair's own memory. */
static int post_one(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)p->mem, 8, p->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)p->mem + 64;
		wr.wr.atomic.rkey = p->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)p->mem + 64;
		wr.wr.rdma.rkey = p->mr->rkey;
	}
	return ibv_post_send(p->a, &wr, &bad);
}

static void refused(const char *device, int n)
{
	struct pair p = make_pair(device, IBV_QPT_RC, 4096);
	uint64_t start;
	int i;

	p.a->handle = ~0U;
	start = now();
	for (i = 0; i < n; i++)
		must(post_one(&p, IBV_WR_RDMA_READ) != 0, "to be refused");
	figure("refused-post", (double)(now() - start) / n);
}

/* --- several processors ----------------------------------------------------------------- */

struct shared {
	atomic_int ready, go, stop;
	double per_second[8];
};

static struct shared *share(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(s != MAP_FAILED, "mmap");
	return s;
}

static void writer(struct shared *s, int who, const char *device, int n, int list)
{
	struct pair p;
	uint64_t start;
	int i;

	run_on(who);
	p = make_pair(device, IBV_QPT_RC, 4096);
	write_list(&p, 8, list);
	atomic_fetch_add(&s->ready, 1);
	while (!atomic_load(&s->go))
		sched_yield();
	start = now();
	for (i = 0; i < n; i += list)
		write_list(&p, 8, list);
	s->per_second[who] = 1e9 * i / (now() - start);
}

static void wait_for(int children)
{
	int status;

	while (children--) {
		must(wait(&status) > 0, "wait");
		must(WIFEXITED(status) && !WEXITSTATUS(status), "a child");
	}
}

static void by_pairs(const char *device, int n, int pairs, int list)
{
	struct shared *s = share();
	double sum = 0;
	char name[32];
	int i;

	must(pairs <= 8 && list >= 1 && list <= MOST_LIST, "PAIRS and LIST in range");
	for (i = 0; i < pairs; i++) {
		if (!fork()) {
			writer(s, i, device, n, list);
			_exit(0);
		}
	}
	while (atomic_load(&s->ready) < pairs)
		sched_yield();
	atomic_store(&s->go, 1);
	wait_for(pairs);
	for (i = 0; i < pairs; i++)
		sum += s->per_second[i];
	snprintf(name, sizeof(name), "write-8-pairs-%d-list-%d", pairs, list);
	figure(name, sum);
	if (pairs == 1 && list == 1)
		figure("write-8", 1e9 / sum);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* From the first bytes of the pair's memory to its second half. */
static void send_one(struct pair *p, struct ibv_qp *from, struct ibv_qp *to, size_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)p->mem, bytes, p->mr->lkey };
	struct ibv_sge into = { (uintptr_t)p->mem + p->mr->length / 2, bytes, p->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &into, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (p->ah) {
		into.length += GRH;
		send.wr.ud.ah = p->ah;
		send.wr.ud.remote_qpn = to->qp_num;
		send.wr.ud.remote_qkey = QKEY;
	}
	must(!ibv_post_recv(to, &recv, &bad_recv), "ibv_post_recv");
	must(!ibv_post_send(from, &send, &bad), "ibv_post_send");
	completion(p);
	completion(p);
}

/* Without end: whoever watches ends it. */
static void loop(const char *device, const char *name)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		enum ibv_qp_type type;
		size_t bytes;
	} all[] = {
		{ "write", IBV_WR_RDMA_WRITE, IBV_QPT_RC, 8 },
		{ "read", IBV_WR_RDMA_READ, IBV_QPT_RC, 8 },
		{ "fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QPT_RC, 8 },
		{ "send", IBV_WR_SEND, IBV_QPT_RC, 8 },
		{ "ud_send", IBV_WR_SEND, IBV_QPT_UD, 1024 },
		{ "refused", IBV_WR_RDMA_READ, IBV_QPT_RC, 8 },
	};
	const size_t known = sizeof(all) / sizeof(all[0]);
	int refused = !strcmp(name, "refused");
	unsigned long done;
	size_t which = 0;
	struct pair p;

	while (which < known && strcmp(all[which].name, name))
		which++;
	must(which < known, name);
	p = make_pair(device, all[which].type, 4096);
	if (refused)
		p.a->handle = ~0U;
	for (done = 0;; done++) {
		if (done == 1000)
			must(puts("steady") >= 0 && !fflush(stdout), "output");
		if (all[which].opcode == IBV_WR_SEND) {
			send_one(&p, p.a, p.b, all[which].bytes);
			continue;
		}
		must((post_one(&p, all[which].opcode) != 0) == refused, "ibv_post_send");
		if (!refused)
			completion(&p);
	}
}

static double median_round_trip(struct pair *p, int n)
{
	uint64_t *took = calloc(n, sizeof(*took)), start;
	double median;
	int i;

	must(took != NULL, "memory");
	for (i = 0; i < n; i++) {
		start = now();
		send_one(p, p->a, p->b, 8);
		send_one(p, p->b, p->a, 8);
		took[i] = now() - start;
	}
	qsort(took, n, sizeof(*took), by_value);
	median = took[n / 2];
	free(took);
	return median;
}

static void fair(const char *device, int n)
{
	struct shared *s = share();
	struct pair p;

	run_on(0);
	if (!fork()) {
		run_on(1);
		p = make_pair(device, IBV_QPT_RC, MIB);
		while (!atomic_load(&s->go))
			usleep(1000);
		while (!atomic_load(&s->stop)) {
			write_list(&p, MIB, 1);
			atomic_store(&s->ready, 1);
		}
		_exit(0);
	}
	p = make_pair(device, IBV_QPT_RC, 4096);
	median_round_trip(&p, n);
	figure("pingpong-8-idle", median_round_trip(&p, n));
	atomic_store(&s->go, 1);
	while (!atomic_load(&s->ready))
		sched_yield();
	figure("pingpong-8-beside-1M", median_round_trip(&p, n));
	atomic_store(&s->stop, 1);
	wait_for(1);
}

/* --- memory --------------------------------------------------------------------------------- */

static double line_of(const char *path, const char *label)
{
	FILE *f = fopen(path, "r");
	double kib = -1;
	char line[256];

	must(f != NULL, path);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, label, strlen(label)))
			kib = atof(line + strlen(label));
	}
	fclose(f);
	must(kib >= 0, label);
	return kib * 1024;
}

/* Bytes in use that are not this process's own. */
static double kernel_memory(void)
{
	FILE *f = fopen("/proc/sys/vm/drop_caches", "w");

	must(f && fputs("3", f) >= 0 && !fclose(f), "drop_caches");
	return -line_of("/proc/meminfo", "MemFree:") - line_of("/proc/self/status", "RssAnon:") -
	       line_of("/proc/self/status", "VmPTE:");
}

static void of_queue_pairs(struct side *s, int n)
{
	struct ibv_qp **qp = calloc(n, sizeof(*qp));
	double before = 0;
	int i, warm = n / 10;

	must(qp != NULL, "memory");
	for (i = 0; i < n; i++) {
		if (i == warm)
			before = kernel_memory();
		/* As ibv_rc_pingpong asks. */
		qp[i] = make_qp(s, IBV_QPT_RC, 1, 500);
		connect_to(s, qp[i], qp[i]->qp_num);
	}
	figure("bytes-per-qp", (kernel_memory() - before) / (n - warm));
	for (i = 0; i < n; i++)
		ibv_destroy_qp(qp[i]);
}

static void of_regions(struct side *s)
{
	const size_t bytes = 256 * MIB;
	const int n = 4;
	struct ibv_mr *mr[4];
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double before;
	int i;

	must(mem != MAP_FAILED, "mmap");
	madvise(mem, bytes, MADV_NOHUGEPAGE);
	memset(mem, 1, bytes);
	before = kernel_memory();
	for (i = 0; i < n; i++) {
		mr[i] = ibv_reg_mr(s->pd, mem, bytes, ALL_ACCESS);
		must(mr[i] != NULL, "ibv_reg_mr");
	}
	figure("bytes-per-GiB", kernel_memory() - before);
	for (i = 0; i < n; i++)
		ibv_dereg_mr(mr[i]);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *device = argc > 2 ? argv[2] : "";
	int n = argc > 3 ? atoi(argv[3]) : 0;
	struct side side;

	if (!strcmp(what, "pipe") && argc == 3) {
		by_pipe(atoi(argv[2]));
	} else if (!strcmp(what, "eventfd") && argc == 3) {
		by_eventfd(atoi(argv[2]));
	} else if (!strcmp(what, "refused") && argc == 4) {
		refused(device, n);
	} else if (!strcmp(what, "write") && argc == 6) {
		by_pairs(device, n, atoi(argv[4]), atoi(argv[5]));
	} else if (!strcmp(what, "loop") && argc == 4) {
		loop(device, argv[3]);
	} else if (!strcmp(what, "fair") && argc == 4) {
		fair(device, n);
	} else if (!strcmp(what, "memory") && argc == 3) {
		side = open_device(device);
		of_queue_pairs(&side, 1000);
		of_regions(&side);
	} else {
		fprintf(stderr, "limits: see the top of limits.c\n");
		return 2;
	}
	return 0;
}
