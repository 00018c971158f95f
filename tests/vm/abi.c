// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * abi.c - the user ABI, seen by a program that uses the stock provider.
 *
 *	abi DEVICE TEST
 *
 * One test per process; it exits with 0 when all was as expected, and otherwise
 * prints what was expected and what was seen. scripts/abi builds it for a
 * suite's libibverbs and runs it in that suite's virtual machine, by abi.sh.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define PAGE		4096UL
#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |	\
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* How long something that has to happen may take: emulation is slow. */
#define PATIENCE_S	60

/* --- checks ---------------------------------------------------------------- */

static void judge(int line, const char *what, long long seen, long long expected)
{
	if (seen == expected)
		return;
	printf("WRONG: line %d: %s is %lld, expected %lld (errno %d, %s)\n", line, what, seen,
	       expected, errno, strerror(errno));
	fflush(stdout);
	_exit(1);
}

/* Each evaluates its arguments once. */
#define is(seen, expected)	judge(__LINE__, #seen, (long long)(seen), (long long)(expected))
#define yes(condition)		judge(__LINE__, #condition, !!(condition), 1)

/* For calls that return NULL and set errno. */
#define fails(call, error)			\
	do {					\
		errno = 0;			\
		is((call) == NULL, 1);		\
		is(errno, error);		\
	} while (0)

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* --- what every test has --------------------------------------------------- */

static const char *device_name;
static struct ibv_context *ctx;
static struct ibv_pd *pd;

/* Registered memory. */
#define BUF_BYTES	(1UL << 20)
static unsigned char *buf;
static struct ibv_mr *mr;

static void *anonymous(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	yes(at != MAP_FAILED);
	return at;
}

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;

	yes(list);
	for (int i = 0; list[i] && !found; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), device_name))
			found = ibv_open_device(list[i]);
	}
	yes(found);
	ibv_free_device_list(list);
	return found;
}

static void begin(void)
{
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	yes(pd);
	buf = anonymous(BUF_BYTES);
	mr = ibv_reg_mr(pd, buf, BUF_BYTES, ALL_ACCESS);
	yes(mr);
}

static void end(void)
{
	is(ibv_dereg_mr(mr), 0);
	is(ibv_dealloc_pd(pd), 0);
	is(ibv_close_device(ctx), 0);
}

/* Two connected queue pairs: a sends, b receives. */
struct ends {
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *a, *b;
};

static const struct ibv_qp_cap usual = {
	.max_send_wr = 40,
	.max_recv_wr = 40,
	.max_send_sge = 4,
	.max_recv_sge = 4,
	.max_inline_data = 512,
};

static struct ibv_qp *make_qp(struct ends *e, const struct ibv_qp_cap *cap, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = srq,
		.cap = *cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	yes(qp);
	is(init.cap.max_inline_data, cap->max_inline_data);
	return qp;
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
	};

	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			 IBV_QP_ACCESS_FLAGS), 0);
}

/* How often a queue pair tries again. */
static uint8_t retry_cnt = 7, rnr_retry = 7;

static void to_rts(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 14, /* about a millisecond */
	};

	is(ibv_query_port(ctx, 1, &port), 0);
	attr.ah_attr.dlid = port.lid;
	attr.ah_attr.port_num = 1;
	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			 IBV_QP_MIN_RNR_TIMER), 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = retry_cnt,
		.rnr_retry = rnr_retry,
		.max_rd_atomic = 4,
	};
	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), 0);
}

static void connect_ends(struct ends *e)
{
	to_init(e->a);
	to_init(e->b);
	to_rts(e->a, e->b->qp_num);
	to_rts(e->b, e->a->qp_num);
}

static struct ends make_ends(const struct ibv_qp_cap *cap, struct ibv_srq *srq)
{
	struct ends e = {
		.scq = ibv_create_cq(ctx, 128, NULL, NULL, 0),
		.rcq = ibv_create_cq(ctx, 128, NULL, NULL, 0),
	};

	yes(e.scq && e.rcq);
	e.a = make_qp(&e, cap, NULL);
	e.b = make_qp(&e, cap, srq);
	connect_ends(&e);
	return e;
}

static void end_ends(struct ends *e)
{
	is(ibv_destroy_qp(e->a), 0);
	is(ibv_destroy_qp(e->b), 0);
	is(ibv_destroy_cq(e->scq), 0);
	is(ibv_destroy_cq(e->rcq), 0);
}

/* --- work requests --------------------------------------------------------- */

static int post_receive(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)buf + id % 64 * 1024, 1024, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	int ret = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);

	if (ret)
		yes(bad == &wr);
	return ret;
}

static void post_receives(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t first, int count)
{
	for (int i = 0; i < count; i++)
		is(post_receive(qp, srq, first + i), 0);
}

static int post_send(struct ibv_qp *qp, uint64_t id, const void *from, uint32_t bytes, int flags)
{
	struct ibv_sge sge = { (uintptr_t)from, bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = flags,
	}, *bad = NULL;
	int ret = ibv_post_send(qp, &wr, &bad);

	if (ret)
		yes(bad == &wr);
	return ret;
}

/* READ into or WRITE from the registered memory. */
static int post_rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, void *local, uint32_t bytes,
		     uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)local, bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = bytes ? 1 : 0,
		.opcode = opcode,
		.wr.rdma = { remote, rkey },
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

static struct ibv_wc next_wc(struct ibv_cq *cq)
{
	time_t begun = now();
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc))) {
		yes(now() - begun < PATIENCE_S);
		sched_yield();
	}
	is(n, 1);
	return wc;
}

static void completes(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_wc(cq);

	is(wc.status, status);
	is(wc.wr_id, id);
}

static void nothing_more(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	is(ibv_poll_cq(cq, 1, &wc), 0);
}

/* A list of inline sends of eight bytes; request i sends i. */
#define LIST_MAX	40
struct list {
	struct ibv_send_wr wr[LIST_MAX];
	struct ibv_sge sge[LIST_MAX];
	uint64_t data[LIST_MAX];
};

static void make_list(struct list *l, int count)
{
	memset(l, 0, sizeof(*l));
	for (int i = 0; i < count; i++) {
		l->data[i] = i;
		l->sge[i] = (struct ibv_sge){ (uintptr_t)&l->data[i], sizeof(l->data[i]), 0 };
		l->wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < count ? &l->wr[i + 1] : NULL,
			.sg_list = &l->sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE,
		};
	}
}

/* --- rings ----------------------------------------------------------------- */

struct ring {
	char *at;
	size_t bytes;
	unsigned long long offset;
};

/* This process's mapping of the ring that was made last. */
static struct ring newest_ring(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct ring newest = { 0 };
	char line[512];

	yes(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		unsigned long long offset;

		if (!strstr(line, "/uverbs") ||
		    sscanf(line, "%lx-%lx %*s %llx", &from, &to, &offset) != 3)
			continue;
		if (offset > newest.offset)
			newest = (struct ring){ (char *)from, to - from, offset };
	}
	fclose(maps);
	yes(newest.at);
	return newest;
}

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

static void *map_ring(const struct ibv_context *of, uint64_t offset, size_t bytes, int flags)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, of->cmd_fd, offset);

	return at == MAP_FAILED ? NULL : at;
}

/* --- inline data ----------------------------------------------------------- */

/* Pages that nobody touched yet are read as zeros, in one request and in a list. */
static void inline_unfaulted(void)
{
	struct ends e = make_ends(&usual, NULL);
	unsigned char *fresh = anonymous(64 * PAGE);
	struct list l;
	struct ibv_send_wr *bad;

	memset(buf, 0xff, BUF_BYTES);
	make_list(&l, 25);
	for (int i = 0; i < 25; i++) /* each across two pages */
		l.sge[i] = (struct ibv_sge){ (uintptr_t)fresh + (2 * i + 1) * PAGE - 200, 512, 0 };
	post_receives(e.b, NULL, 0, 25);
	is(ibv_post_send(e.a, l.wr, &bad), 0);
	for (int i = 0; i < 25; i++) {
		struct ibv_wc wc = next_wc(e.rcq);

		is(wc.status, IBV_WC_SUCCESS);
		is(wc.byte_len, 512);
		completes(e.scq, i, IBV_WC_SUCCESS);
		for (int at = 0; at < 512; at++)
			is(buf[i * 1024 + at], 0);
		is(buf[i * 1024 + 512], 0xff);
	}
	end_ends(&e);
}

/* The peer is not ready, so the data waits in the device while it changes here. */
static void inline_kept(void)
{
	struct ends e = make_ends(&usual, NULL);
	unsigned char data[512];

	for (int i = 0; i < 10; i++) {
		memset(data, i + 1, sizeof(data));
		is(post_send(e.a, i, data, sizeof(data), IBV_SEND_INLINE), 0);
		memset(data, 0xee, sizeof(data));
	}
	post_receives(e.b, NULL, 0, 10);
	for (int i = 0; i < 10; i++) {
		completes(e.rcq, i, IBV_WC_SUCCESS);
		completes(e.scq, i, IBV_WC_SUCCESS);
		is(buf[i * 1024], i + 1);
		is(buf[i * 1024 + 511], i + 1);
	}
	end_ends(&e);
}

static void inline_limit(void)
{
	static const uint32_t limits[] = { 512, 100, 1 };
	struct ibv_qp_init_attr too_much = { .qp_type = IBV_QPT_RC, .cap = usual };
	struct ends e;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct ibv_qp_cap cap = usual;

		cap.max_inline_data = limits[i];
		e = make_ends(&cap, NULL);
		post_receives(e.b, NULL, 0, 2);
		is(post_send(e.a, 1, buf, limits[i] + 1, IBV_SEND_INLINE), EINVAL);
		is(post_send(e.a, 2, buf, limits[i], IBV_SEND_INLINE), 0);
		completes(e.scq, 2, IBV_WC_SUCCESS);
		nothing_more(e.scq);
		end_ends(&e);
	}
	e = make_ends(&usual, NULL);
	too_much.send_cq = e.scq;
	too_much.recv_cq = e.rcq;
	too_much.cap.max_inline_data = 513;
	fails(ibv_create_qp(pd, &too_much), EINVAL);
	end_ends(&e);
}

/* --- lists of requests ----------------------------------------------------- */

/* Request "bad" of "count" cannot be posted: those before it are, none behind it. */
static void one_bad_request(struct ends *e, int count, int bad, uint64_t addr, uint32_t bytes,
			    int error)
{
	struct ibv_send_wr *bad_wr = NULL;
	struct list l;

	make_list(&l, count);
	l.sge[bad].addr = addr;
	l.sge[bad].length = bytes;
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

static void bad_requests(uint64_t addr, uint32_t bytes, int error)
{
	static const int counts[] = { 25, 40 };
	static const int bads[] = { 0, 1, 9, 10, 11, 19, 20, 21, 24, 29, 30, 39 };
	struct ends e = make_ends(&usual, NULL);
	struct ibv_send_wr *bad;

	post_receives(e.b, NULL, 0, 40);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(bads) && bads[k] < counts[i]; k++)
			one_bad_request(&e, counts[i], bads[k], addr, bytes, error);
	}
	is(ibv_post_send(e.a, NULL, &bad), 0);
	end_ends(&e);
}

static void case_170_too_long(void)
{
	bad_requests((uintptr_t)buf, 513, EINVAL);
}

static void case_170_efault(void)
{
	void *nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	yes(nothing != MAP_FAILED);
	bad_requests((uintptr_t)nothing, 8, EFAULT);
}

static void case_170_all_good(void)
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
static void case_170_full(void)
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

static void receive_ring_full(void)
{
	receive_ring_holds(1);
	receive_ring_holds(2);
	receive_ring_holds(7);
	receive_ring_holds(40);
}

static void posted_in_reset(void)
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
static void case_169_posted_in_err(void)
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

/* --- resize of a completion queue ------------------------------------------ */

static void resize_cq_waiting(void)
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

static void resize_cq_producer(void)
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

/* --- shared receive queues ------------------------------------------------- */

static struct ibv_srq *make_srq(uint32_t max_wr)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = 3 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	yes(srq);
	is(init.attr.max_wr, max_wr);
	is(init.attr.max_sge, 3);
	return srq;
}

static int resize_srq(struct ibv_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static int set_limit(struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static void srq_is(struct ibv_srq *srq, uint32_t max_wr, uint32_t limit)
{
	struct ibv_srq_attr attr;

	is(ibv_query_srq(srq, &attr), 0);
	is(attr.max_wr, max_wr);
	is(attr.srq_limit, limit);
	is(attr.max_sge, 3);
}

static void consume(struct ends *e, uint64_t first, int count)
{
	for (int i = 0; i < count; i++) {
		is(post_send(e->a, first + i, buf, 8, 0), 0);
		completes(e->rcq, first + i, IBV_WC_SUCCESS);
		completes(e->scq, first + i, IBV_WC_SUCCESS);
	}
}

static void srq_resize(void)
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

static struct ibv_async_event next_event(struct ibv_context *from)
{
	struct pollfd fd = { .fd = from->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	is(poll(&fd, 1, PATIENCE_S * 1000), 1);
	is(ibv_get_async_event(from, &event), 0);
	return event;
}

static void srq_limit(void)
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

/* The new ring's offset cannot be told: nothing may have changed. */
static void case_031_bad_offset_addr(void)
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

/* --- mapping --------------------------------------------------------------- */

static void mapped_once(void)
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

static void case_153_map_against_destroy(void)
{
	struct mapper m = { 0 };
	pthread_t thread;
	uint32_t handle;
	uint64_t offset;

	is(pthread_create(&thread, NULL, map_all, &m), 0);
	for (int i = 0; i < 4000; i++) {
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
	yes(m.mapped >= 1000);
}

static void case_154_offsets_never_repeat(void)
{
	uint64_t offset, last = 0;
	uint32_t handle;

	for (int i = 0; i < 5000; i++) {
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
static void fork_and_destroy(void)
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

static void scribbled_rings(void)
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

/* --- memory regions -------------------------------------------------------- */

static void reg_mr_refused(void)
{
	void *read_only = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *readable;

	yes(read_only != MAP_FAILED);
	fails(ibv_reg_mr(pd, buf, 0, IBV_ACCESS_LOCAL_WRITE), EINVAL);
	fails(ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	fails(ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
	fails(ibv_reg_mr(pd, read_only, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	fails(ibv_reg_mr(pd, (void *)0x1000, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	/* The first byte and the region's own address have to agree within a page. */
	fails(ibv_reg_mr_iova(pd, buf, PAGE, 0x7010, ALL_ACCESS), EINVAL);
	readable = ibv_reg_mr(pd, read_only, PAGE, IBV_ACCESS_REMOTE_READ);
	yes(readable);
	is(ibv_dereg_mr(readable), 0);
}

/* WRITE and READ "bytes" at an odd offset through a region at its own address. */
static void through_iova(struct ends *e, uint64_t iova, size_t start, uint32_t at, uint32_t bytes)
{
	unsigned char *region = buf + BUF_BYTES / 4, *from = buf + BUF_BYTES / 2;
	unsigned char *back = buf + 3 * BUF_BYTES / 4;
	struct ibv_mr *m;

	memset(region, 0, 64 * 1024);
	memset(back, 0, 64 * 1024);
	for (uint32_t i = 0; i < bytes; i++)
		from[i] = i * 7 + 1;
	m = ibv_reg_mr_iova(pd, region + start, 20000, iova, ALL_ACCESS);
	yes(m);
	is(post_rdma(e->a, IBV_WR_RDMA_WRITE, from, bytes, iova + at, m->rkey), 0);
	completes(e->scq, 0, IBV_WC_SUCCESS);
	is(memcmp(region + start + at, from, bytes), 0);
	is(region[start + at - 1], 0);
	is(region[start + at + bytes], 0);
	is(post_rdma(e->a, IBV_WR_RDMA_READ, back, bytes, iova + at, m->rkey), 0);
	completes(e->scq, 0, IBV_WC_SUCCESS);
	is(memcmp(back, from, bytes), 0);
	is(back[bytes], 0);
	is(ibv_dereg_mr(m), 0);
}

static void rdma_through_iova(void)
{
	struct ends e = make_ends(&usual, NULL);

	through_iova(&e, 0x7000, 0, 3, 5000);
	through_iova(&e, 0x7064, 100, 1, 19999 - 1);
	through_iova(&e, 0xfffffffff0000064, 100, 4093, 9001);
	through_iova(&e, 0x10fff, 4095, 8191, 1);
	through_iova(&e, (uintptr_t)buf + 8, 8, 4088, 8);
	end_ends(&e);
}

/* Both ends of a region are its ends. */
static void region_ends(void)
{
	unsigned char *region = buf + BUF_BYTES / 4 + 100;
	const int64_t outside[] = { -1, 5000 - 7, 5000 };
	struct ibv_mr *m = ibv_reg_mr(pd, region, 5000, ALL_ACCESS);

	yes(m);
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		struct ends e = make_ends(&usual, NULL);

		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)region, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)region + 4992, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)region + outside[i],
			     m->rkey), 0);
		completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
		end_ends(&e);
	}
	is(ibv_dereg_mr(m), 0);
}

/* Each page of it holds its own offset; read some of them back. */
static void read_all_over(unsigned char *at, size_t bytes, size_t step)
{
	struct ibv_mr *m = ibv_reg_mr(pd, at, bytes, ALL_ACCESS);
	struct ends e = make_ends(&usual, NULL);

	yes(m);
	for (size_t i = 0; i < bytes; i += step) {
		is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)at + i, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(*(uint64_t *)buf, i);
	}
	is(ibv_dereg_mr(m), 0);
	end_ends(&e);
}

static void fill_pages(unsigned char *at, size_t bytes, size_t first, size_t step)
{
	for (size_t i = first * PAGE; i < bytes; i += step * PAGE)
		*(uint64_t *)(at + i) = i;
}

static void scattered_64_mib(void)
{
	size_t bytes = 64UL << 20;
	unsigned char *at = anonymous(bytes);

	/* Touched out of order, so that neighbours in here are none in memory. */
	is(madvise(at, bytes, MADV_NOHUGEPAGE) && errno != EINVAL, 0);
	for (size_t first = 7; first--; )
		fill_pages(at, bytes, first, 7);
	read_all_over(at, bytes, 61 * PAGE);
}

static void huge_pages(void)
{
	size_t bytes = 4UL << 20;
	unsigned char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (at == MAP_FAILED) {
		printf("no huge pages here: %s\n", strerror(errno));
		exit(77);
	}
	fill_pages(at, bytes, 0, 1);
	read_all_over(at, bytes, 13 * PAGE);
}

/* Memory that may not be written can be read, by peers too. */
static void read_only_region(void)
{
	unsigned char *at = anonymous(3 * PAGE);
	struct ends e = make_ends(&usual, NULL);
	struct ibv_mr *m;

	fill_pages(at, 3 * PAGE, 0, 1);
	is(mprotect(at, 3 * PAGE, PROT_READ), 0);
	m = ibv_reg_mr(pd, at, 3 * PAGE, IBV_ACCESS_REMOTE_READ);
	yes(m);
	for (int i = 0; i < 3; i++) {
		is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)at + i * PAGE, m->rkey), 0);
		completes(e.scq, 0, IBV_WC_SUCCESS);
		is(*(uint64_t *)buf, i * PAGE);
	}
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)at, m->rkey), 0);
	completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
	is(*(uint64_t *)at, 0);
	is(ibv_dereg_mr(m), 0);
	end_ends(&e);
}

/* The same pages twice, at two addresses and from two regions. */
static void shared_pages(void)
{
	int fd = memfd_create("shared", 0);
	struct ends e = make_ends(&usual, NULL);
	unsigned char *at[2];
	struct ibv_mr *m[2];

	is(ftruncate(fd, 4 * PAGE), 0);
	for (int i = 0; i < 2; i++) {
		at[i] = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		yes(at[i] != MAP_FAILED);
		m[i] = ibv_reg_mr(pd, at[i], 4 * PAGE, ALL_ACCESS);
		yes(m[i]);
	}
	memset(buf, 0x5a, 3 * PAGE);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 3 * PAGE, (uintptr_t)at[0] + 100, m[0]->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(memcmp(at[1] + 100, buf, 3 * PAGE), 0);
	is(ibv_dereg_mr(m[0]), 0);
	is(post_rdma(e.a, IBV_WR_RDMA_READ, buf + 4 * PAGE, 3 * PAGE, (uintptr_t)at[1] + 100,
		     m[1]->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	is(memcmp(buf + 4 * PAGE, buf, 3 * PAGE), 0);
	is(ibv_dereg_mr(m[1]), 0);
	end_ends(&e);
}

/*
 * A region of 8 GiB, of few pages mapped over and over. That the kernel's
 * watchdogs do not bark is seen in its log.
 */
static void many_gib(void)
{
	const size_t chunk = 32UL << 20, bytes = 8UL << 30;
	int fd = memfd_create("chunk", 0);
	unsigned char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ends e = make_ends(&usual, NULL);
	struct ibv_mr *m;

	yes(at != MAP_FAILED);
	is(ftruncate(fd, chunk), 0);
	for (size_t i = 0; i < bytes; i += chunk)
		yes(mmap(at + i, chunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    at + i);
	fill_pages(at, chunk, 0, 1);
	for (int i = 0; i < 2; i++) {
		m = ibv_reg_mr(pd, at, bytes, ALL_ACCESS);
		yes(m);
		for (size_t where = 5 * PAGE; where < bytes; where += (1UL << 30) + 7 * PAGE) {
			is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 8, (uintptr_t)at + where,
				     m->rkey), 0);
			completes(e.scq, 0, IBV_WC_SUCCESS);
			is(*(uint64_t *)buf, where % chunk);
		}
		is(ibv_dereg_mr(m), 0);
	}
	end_ends(&e);
}

/* --- rereg_mr, which the stock provider does not send ---------------------------- */

static int bare_rereg_mr(struct ibv_mr *m, int flags, void *start, size_t length,
			 struct ibv_pd *to, int access)
{
	struct ib_uverbs_rereg_mr_resp answer = { 0 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr cmd;
	} request = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(request) / 4,
			.out_words = sizeof(answer) / 4,
		},
		.cmd = {
			.response = (uintptr_t)&answer,
			.mr_handle = m->handle,
			.flags = flags,
			.start = (uintptr_t)start,
			.length = length,
			.hca_va = (uintptr_t)start,
			.pd_handle = to->handle,
			.access_flags = access,
		},
	};

	if (write(ctx->cmd_fd, &request, sizeof(request)) != sizeof(request))
		return errno;
	m->lkey = answer.lkey;
	m->rkey = answer.rkey;
	return 0;
}

/* One access from queue pairs that are made in a protection domain for it. */
static void rdma_in(struct ibv_pd *in, enum ibv_wr_opcode opcode, void *at, const struct ibv_mr *m,
		    enum ibv_wc_status status)
{
	struct ibv_pd *usual_pd = pd;
	struct ibv_mr *usual_mr = mr;
	struct ends e;

	pd = in;
	mr = ibv_reg_mr(pd, buf, BUF_BYTES, ALL_ACCESS);
	yes(mr);
	e = make_ends(&usual, NULL);
	is(post_rdma(e.a, opcode, buf, 8, (uintptr_t)at, m->rkey), 0);
	completes(e.scq, 0, status);
	end_ends(&e);
	is(ibv_dereg_mr(mr), 0);
	mr = usual_mr;
	pd = usual_pd;
}

static void rereg_mr(void)
{
	const size_t small = 2 * PAGE, large = 5 * PAGE;
	const int readable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	unsigned char *first = anonymous(large), *second = anonymous(large);
	struct ibv_pd *other = ibv_alloc_pd(ctx);

	yes(other);
	for (int flags = 1; flags < 8; flags++) {
		bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		bool writable = flags & IBV_REREG_MR_CHANGE_ACCESS;
		struct ibv_pd *in = flags & IBV_REREG_MR_CHANGE_PD ? other : pd;
		struct ibv_mr *m = ibv_reg_mr(pd, first, small, readable);
		unsigned char *at = moves ? second : first;
		uint64_t *word = (uint64_t *)(at + small - 8);

		yes(m);
		*(uint64_t *)(first + small - 8) = 111;
		*(uint64_t *)(second + small - 8) = 222;
		is(bare_rereg_mr(m, flags, second, large, other, ALL_ACCESS), 0);
		rdma_in(in, IBV_WR_RDMA_READ, word, m, IBV_WC_SUCCESS);
		is(*(uint64_t *)buf, moves ? 222 : 111);
		rdma_in(in == pd ? other : pd, IBV_WR_RDMA_READ, word, m, IBV_WC_REM_ACCESS_ERR);
		/* The new end, and the old place. */
		rdma_in(in, IBV_WR_RDMA_READ, at + large - 8, m,
			moves ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		rdma_in(in, IBV_WR_RDMA_READ, moves ? first : second, m, IBV_WC_REM_ACCESS_ERR);
		*(uint64_t *)buf = 333;
		rdma_in(in, IBV_WR_RDMA_WRITE, word, m,
			writable ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		is(*word, writable ? 333 : moves ? 222 : 111);
		is(ibv_dereg_mr(m), 0);
	}
	is(ibv_dealloc_pd(other), 0);
}

/* What is refused leaves the region as it was. */
static void rereg_mr_refused(void)
{
	unsigned char *at = anonymous(2 * PAGE);
	void *nothing = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *m = ibv_reg_mr(pd, at, PAGE, IBV_ACCESS_REMOTE_READ);

	yes(m && nothing != MAP_FAILED);
	is(munmap(nothing, PAGE), 0);
	*(uint64_t *)at = 77;
	is(bare_rereg_mr(m, 0, at, PAGE, pd, 0), EINVAL);
	is(bare_rereg_mr(m, 8, at, PAGE, pd, 0), EOPNOTSUPP);
	is(bare_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, at, 0, pd, 0), EINVAL);
	is(bare_rereg_mr(m, IBV_REREG_MR_CHANGE_TRANSLATION, nothing, PAGE, pd, 0), EFAULT);
	is(bare_rereg_mr(m, IBV_REREG_MR_CHANGE_ACCESS, at, PAGE, pd, IBV_ACCESS_REMOTE_WRITE),
	   EINVAL);
	rdma_in(pd, IBV_WR_RDMA_READ, at, m, IBV_WC_SUCCESS);
	is(*(uint64_t *)buf, 77);
	is(ibv_dereg_mr(m), 0);
}

/* --- completion vectors ------------------------------------------------------------ */

static void completion_vectors(void)
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

/* --- counters --------------------------------------------------------------------- */

struct counts {
	int n;
	struct {
		char name[256];
		long long value;
	} of[64];
};

static void path_of(char *path, size_t size, const char *counter)
{
	snprintf(path, size, "/sys/class/infiniband/%s/ports/1/hw_counters/%s", device_name,
		 counter);
}

/* They are read anew once a jiffy at most, and this clock counts jiffies. */
static void next_jiffy(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
	do {
		clock_gettime(CLOCK_MONOTONIC_COARSE, &after);
	} while (before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec);
}

static struct counts read_counts(void)
{
	struct counts c = { 0 };
	struct dirent *entry;
	char path[512];
	FILE *file;
	DIR *dir;

	path_of(path, sizeof(path), "lifespan");
	file = fopen(path, "w");
	yes(file && fputs("0", file) >= 0);
	is(fclose(file), 0);
	next_jiffy();
	next_jiffy();
	path_of(path, sizeof(path), "");
	dir = opendir(path);
	yes(dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "lifespan"))
			continue;
		yes(c.n < (int)ARRAY_SIZE(c.of));
		path_of(path, sizeof(path), entry->d_name);
		file = fopen(path, "r");
		yes(file);
		is(fscanf(file, "%lld", &c.of[c.n].value), 1);
		fclose(file);
		snprintf(c.of[c.n].name, sizeof(c.of[c.n].name), "%s", entry->d_name);
		c.n++;
	}
	closedir(dir);
	yes(c.n >= 17);
	return c;
}

/* Since the last call, these counters rose by so much, and no other did: NAME, BY..., NULL. */
static void rose(const char *what, ...)
{
	static struct counts before;
	struct counts after = read_counts();
	long long wrong = 0;
	va_list args;

	for (int i = 0; i < before.n; i++) {
		long long by = 0;
		const char *name;

		va_start(args, what);
		while ((name = va_arg(args, const char *))) {
			int wanted = va_arg(args, int);

			if (!strcmp(name, after.of[i].name))
				by = wanted;
		}
		va_end(args);
		is(strcmp(before.of[i].name, after.of[i].name), 0);
		if (after.of[i].value - before.of[i].value != by) {
			printf("%s: %s rose by %lld, expected %lld\n", what, after.of[i].name,
			       after.of[i].value - before.of[i].value, by);
			wrong++;
		}
	}
	is(wrong, 0);
	before = after;
}

static void counted_traffic(void)
{
	struct ends e = make_ends(&usual, NULL);

	post_receives(e.b, NULL, 0, 3);
	for (int i = 0; i < 3; i++) {
		is(post_send(e.a, i, buf, 1000, 0), 0);
		completes(e.scq, i, IBV_WC_SUCCESS);
		completes(e.rcq, i, IBV_WC_SUCCESS);
	}
	rose("three sends", "loop_packets", 3, "loop_bytes", 3000, "sends_completed", 3,
	     "receives_completed", 3, NULL);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 10000, (uintptr_t)buf, mr->rkey), 0);
	is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 4097, (uintptr_t)buf, mr->rkey), 0);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 0, 0, 0), 0);
	for (int i = 0; i < 3; i++)
		completes(e.scq, 0, IBV_WC_SUCCESS);
	/* By packets of 4096 bytes; one without any is one, too. */
	rose("write, read, nothing", "loop_packets", 3 + 2 + 1, "loop_bytes", 14097,
	     "sends_completed", 3, NULL);
	end_ends(&e);
	rose("the end of the queue pairs", NULL);
}

static void counted_errors(void)
{
	struct ends e;

	rnr_retry = 1;
	e = make_ends(&usual, NULL);
	is(post_send(e.a, 1, buf, 8, 0), 0);
	is(post_send(e.a, 2, buf, 8, 0), 0);
	completes(e.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	completes(e.scq, 2, IBV_WC_WR_FLUSH_ERR);
	end_ends(&e);
	rose("no receive", "rnr_naks", 2, "errors_retry", 1, "flushed", 1, NULL);

	retry_cnt = 2;
	e = make_ends(&usual, NULL);
	to_state(e.b, IBV_QPS_RESET);
	is(post_send(e.a, 1, buf, 8, 0), 0);
	completes(e.scq, 1, IBV_WC_RETRY_EXC_ERR);
	end_ends(&e);
	rose("no answer", "retries", 2, "drops_no_qp", 3, "errors_retry", 1, NULL);
	retry_cnt = rnr_retry = 7;

	e = make_ends(&usual, NULL);
	post_receives(e.b, NULL, 0, 2);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)buf, ~mr->rkey), 0);
	completes(e.scq, 0, IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 2; i++)
		completes(e.rcq, i, IBV_WC_WR_FLUSH_ERR);
	end_ends(&e);
	rose("a bad key", "errors_remote", 1, "flushed", 2, NULL);

	e = (struct ends){ .scq = ibv_create_cq(ctx, 1, NULL, NULL, 0),
			   .rcq = ibv_create_cq(ctx, 1, NULL, NULL, 0) };
	yes(e.scq && e.rcq);
	e.a = make_qp(&e, &usual, NULL);
	e.b = make_qp(&e, &usual, NULL);
	connect_ends(&e);
	for (int i = 0; i < 2; i++)
		is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 0, 0, 0), 0);
	end_ends(&e);
	rose("a full queue", "loop_packets", 2, "sends_completed", 2, "cq_overruns", 1, NULL);
}

static struct ibv_qp *make_ud(struct ends *e, uint32_t qkey)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.cap = usual,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = qkey };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	yes(qp);
	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	   0);
	to_state(qp, IBV_QPS_RTR);
	attr.qp_state = IBV_QPS_RTS;
	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

static void datagram(struct ends *e, struct ibv_ah *ah, uint32_t bytes, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)buf, bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { ah, qpn, qkey },
	}, *bad;

	is(ibv_post_send(e->a, &wr, &bad), 0);
	completes(e->scq, 0, IBV_WC_SUCCESS);
}

static void counted_datagrams(void)
{
	struct ends e = { .scq = ibv_create_cq(ctx, 10, NULL, NULL, 0),
			  .rcq = ibv_create_cq(ctx, 10, NULL, NULL, 0) };
	struct ibv_ah_attr to = { .port_num = 1 };
	struct ibv_port_attr port;
	struct ibv_ah *ah;

	is(ibv_query_port(ctx, 1, &port), 0);
	to.dlid = port.lid;
	ah = ibv_create_ah(pd, &to);
	yes(e.scq && e.rcq && ah);
	e.a = make_ud(&e, 0x11);
	e.b = make_ud(&e, 0x22);
	datagram(&e, ah, 8, e.b->qp_num, 0x22);
	rose("no receive", "sends_completed", 1, "drops_no_receive", 1, NULL);
	post_receives(e.b, NULL, 0, 1);
	datagram(&e, ah, 8, e.b->qp_num, 0x23);
	rose("another Q_Key", "sends_completed", 1, "drops_qkey", 1, NULL);
	is(ibv_query_port(ctx, 1, &port), 0);
	yes(port.qkey_viol_cntr >= 1);
	is(port.bad_pkey_cntr, 0);
	datagram(&e, ah, 1024, e.b->qp_num, 0x22);
	rose("too long", "sends_completed", 1, "drops_length", 1, NULL);
	datagram(&e, ah, 8, 0xabcdef, 0x22);
	rose("nobody", "sends_completed", 1, "drops_no_qp", 1, NULL);
	datagram(&e, ah, 8, e.b->qp_num, 0x22);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	rose("all is well", "sends_completed", 1, "receives_completed", 1, "loop_packets", 1,
	     "loop_bytes", 8, NULL);
	end_ends(&e);
	is(ibv_destroy_ah(ah), 0);
}

static void counters(void)
{
	rose("the start", NULL);
	counted_traffic();
	counted_errors();
	counted_datagrams();
}

/* Objects in a known state, for others to look at; until somebody closes standard input. */
static void shown(void)
{
	struct ibv_srq *srq = make_srq(5);
	struct ends e = make_ends(&usual, srq);

	is(set_limit(srq, 2), 0);
	post_receives(NULL, srq, 0, 3);
	post_receives(e.a, NULL, 0, 7);
	is(post_send(e.a, 1, buf, 8, 0), 0);
	is(post_send(e.a, 2, buf, 8, 0), 0);
	is(ibv_req_notify_cq(e.rcq, 1), 0);
	printf("%u %u %u\n", e.a->qp_num, e.b->qp_num, mr->rkey);
	fflush(stdout);
	while (getchar() != EOF)
		;
	end_ends(&e);
	is(ibv_destroy_srq(srq), 0);
}

/* --- life and death -------------------------------------------------------- */

static void busy(void)
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

static void killed(void)
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

static void case_158_removed(void)
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
static void case_158_rmmod(void)
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

/* --- which ----------------------------------------------------------------- */

static const struct test {
	const char *name;
	void (*run)(void);
	bool alone; /* opens and closes the device itself, if at all */
} tests[] = {
	{ "inline_unfaulted", inline_unfaulted },
	{ "inline_kept", inline_kept },
	{ "inline_limit", inline_limit },
	{ "case_170_all_good", case_170_all_good },
	{ "case_170_too_long", case_170_too_long },
	{ "case_170_efault", case_170_efault },
	{ "case_170_full", case_170_full },
	{ "receive_ring_full", receive_ring_full },
	{ "posted_in_reset", posted_in_reset },
	{ "case_169_posted_in_err", case_169_posted_in_err },
	{ "resize_cq_waiting", resize_cq_waiting },
	{ "resize_cq_producer", resize_cq_producer },
	{ "srq_resize", srq_resize },
	{ "srq_limit", srq_limit },
	{ "case_031_bad_offset_addr", case_031_bad_offset_addr },
	{ "mapped_once", mapped_once },
	{ "case_153_map_against_destroy", case_153_map_against_destroy },
	{ "case_154_offsets_never_repeat", case_154_offsets_never_repeat },
	{ "fork_and_destroy", fork_and_destroy },
	{ "scribbled_rings", scribbled_rings },
	{ "reg_mr_refused", reg_mr_refused },
	{ "rdma_through_iova", rdma_through_iova },
	{ "region_ends", region_ends },
	{ "scattered_64_mib", scattered_64_mib },
	{ "huge_pages", huge_pages },
	{ "read_only_region", read_only_region },
	{ "shared_pages", shared_pages },
	{ "many_gib", many_gib },
	{ "rereg_mr", rereg_mr },
	{ "rereg_mr_refused", rereg_mr_refused },
	{ "completion_vectors", completion_vectors },
	{ "counters", counters },
	{ "shown", shown },
	{ "busy", busy },
	{ "killed", killed, true },
	{ "case_158_removed", case_158_removed },
	{ "case_158_rmmod", case_158_rmmod },
};

int main(int argc, char **argv)
{
	const struct test *test = NULL;

	for (size_t i = 0; argc == 3 && i < ARRAY_SIZE(tests); i++) {
		if (!strcmp(argv[2], tests[i].name))
			test = &tests[i];
	}
	if (!test) {
		fprintf(stderr, "usage: %s DEVICE TEST\n", argv[0]);
		return 2;
	}
	device_name = argv[1];
	/* What is left of a removed device may be destroyed in the usual way. */
	setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 1);
	if (!test->alone)
		begin();
	test->run();
	if (!test->alone)
		end();
	puts("all as expected");
	return 0;
}
