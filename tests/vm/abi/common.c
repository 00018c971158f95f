// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* common.c - what the tests share, see abi.h */
#include "abi.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

/* --- checks ---------------------------------------------------------------- */

void judge(const char *file, int line, const char *what, long long seen, long long expected)
{
	if (seen == expected)
		return;
	printf("WRONG: %s:%d: %s is %lld, expected %lld (errno %d, %s)\n",
	       strrchr(file, '/') + 1, line, what, seen, expected, errno, strerror(errno));
	fflush(stdout);
	_exit(1);
}

void skip(const char *why)
{
	puts(why);
	exit(77);
}

time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = errno;
	close(fd);
	return ret;
}

/* --- what every test has --------------------------------------------------- */

const char *device_name;
struct ibv_context *ctx;
struct ibv_pd *pd;
unsigned char *buf;
struct ibv_mr *mr;

void *anonymous(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	yes(at != MAP_FAILED);
	return at;
}

struct ibv_context *open_device(void)
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

void begin(void)
{
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	yes(pd);
	buf = anonymous(BUF_BYTES);
	mr = ibv_reg_mr(pd, buf, BUF_BYTES, ALL_ACCESS);
	yes(mr);
}

void end(void)
{
	is(ibv_dereg_mr(mr), 0);
	is(ibv_dealloc_pd(pd), 0);
	is(ibv_close_device(ctx), 0);
}

struct place here(void)
{
	return (struct place){ device_name, ctx, pd, mr, buf };
}

void go(const struct place *to)
{
	device_name = to->name;
	ctx = to->ctx;
	pd = to->pd;
	mr = to->mr;
	buf = to->buf;
}

struct place begin_on(const char *name)
{
	struct place home = here(), there;

	device_name = name;
	begin();
	there = here();
	go(&home);
	return there;
}

void end_on(const struct place *there)
{
	struct place home = here();

	go(there);
	end();
	go(&home);
}

const struct ibv_qp_cap usual = {
	.max_send_wr = 40,
	.max_recv_wr = 40,
	.max_send_sge = 4,
	.max_recv_sge = 4,
	.max_inline_data = 512,
};

enum ibv_qp_type qp_type = IBV_QPT_RC;
int sq_sig_all = 1;
uint16_t pkey_index;
int access_flags = ALL_ACCESS;
uint8_t timeout = 14, retry_cnt = 7, rnr_retry = 7;
uint32_t first_psn;

struct ibv_qp *make_qp(struct ends *e, const struct ibv_qp_cap *cap, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = srq,
		.cap = *cap,
		.qp_type = qp_type,
		.sq_sig_all = sq_sig_all,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	yes(qp);
	is(init.cap.max_inline_data, cap->max_inline_data);
	return qp;
}

void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	is(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = pkey_index,
		.port_num = 1,
		.qp_access_flags = access_flags,
	};

	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			 IBV_QP_ACCESS_FLAGS), 0);
}

uint16_t lid_of(struct ibv_context *device)
{
	struct ibv_port_attr port;

	is(ibv_query_port(device, 1, &port), 0);
	return port.lid;
}

void to_rtr(struct ibv_qp *qp, const struct ibv_qp *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer->qp_num,
		.ah_attr = { .dlid = lid_of(peer->context), .port_num = 1 },
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 14, /* about a millisecond */
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	is(ibv_modify_qp(qp, &attr, mask), 0);
}

void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = timeout,
		.retry_cnt = retry_cnt,
		.rnr_retry = rnr_retry,
		.sq_psn = first_psn,
		.max_rd_atomic = 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	is(ibv_modify_qp(qp, &attr, mask), 0);
}

void connect_ends(struct ends *e)
{
	to_init(e->a);
	to_init(e->b);
	to_rtr(e->a, e->b);
	to_rtr(e->b, e->a);
	to_rts(e->a);
	to_rts(e->b);
}

struct ends make_ends(const struct ibv_qp_cap *cap, struct ibv_srq *srq)
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

void make_ends_across(struct ends *e, const struct place *there)
{
	e->scq = e->rcq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	e->a = make_qp(e, &usual, NULL);
	go(there);
	e->scq = e->rcq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
	e->b = make_qp(e, &usual, NULL);
	e->scq = e->a->send_cq;
	connect_ends(e);
}

void end_ends(struct ends *e)
{
	is(ibv_destroy_qp(e->a), 0);
	is(ibv_destroy_qp(e->b), 0);
	is(ibv_destroy_cq(e->scq), 0);
	is(ibv_destroy_cq(e->rcq), 0);
}

struct ibv_qp *make_ud(struct ends *e, uint32_t qkey)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.cap = usual,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = pkey_index,
		.port_num = 1,
		.qkey = qkey,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	yes(qp);
	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	   0);
	to_state(qp, IBV_QPS_RTR);
	attr.qp_state = IBV_QPS_RTS;
	is(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

struct ibv_srq *make_srq(uint32_t max_wr)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = 3 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	yes(srq);
	is(init.attr.max_wr, max_wr);
	is(init.attr.max_sge, 3);
	return srq;
}

int set_limit(struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

/* --- work requests --------------------------------------------------------- */

int post_receive(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)buf + id % 64 * 1024, 1024, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	int ret = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);

	if (ret)
		yes(bad == &wr);
	return ret;
}

void post_receives(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t first, int count)
{
	for (int i = 0; i < count; i++)
		is(post_receive(qp, srq, first + i), 0);
}

int post_send(struct ibv_qp *qp, uint64_t id, const void *from, uint32_t bytes, int flags)
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

int post_rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, void *local, uint32_t bytes,
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

struct ibv_wc next_wc(struct ibv_cq *cq)
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

void completes(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_wc(cq);

	is(wc.status, status);
	is(wc.wr_id, id);
}

void nothing_more(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	is(ibv_poll_cq(cq, 1, &wc), 0);
}

void make_list(struct list *l, int count)
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

void consume(struct ends *e, uint64_t first, int count)
{
	for (int i = 0; i < count; i++) {
		is(post_send(e->a, first + i, buf, 8, 0), 0);
		completes(e->rcq, first + i, IBV_WC_SUCCESS);
		completes(e->scq, first + i, IBV_WC_SUCCESS);
	}
}

struct ibv_async_event next_event(struct ibv_context *from)
{
	struct pollfd fd = { .fd = from->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	is(poll(&fd, 1, PATIENCE_S * 1000), 1);
	is(ibv_get_async_event(from, &event), 0);
	return event;
}

/* --- rings ----------------------------------------------------------------- */

struct ring newest_ring(void)
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
