// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* counters.c - the counters of the port */
#include "abi.h"

#include <dirent.h>
#include <stdarg.h>

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

long long count_of(const char *name)
{
	struct counts c = read_counts();

	for (int i = 0; i < c.n; i++) {
		if (!strcmp(c.of[i].name, name))
			return c.of[i].value;
	}
	judge(__FILE__, __LINE__, name, 0, 1);
	return 0;
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

static int post_atomic(struct ends *e, uint64_t remote)
{
	struct ibv_sge sge = { (uintptr_t)buf, 8, mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { remote, 1, 0, mr->rkey },
	}, *bad;

	return ibv_post_send(e->a, &wr, &bad);
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
	is(post_atomic(&e, (uintptr_t)buf + 4096), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	rose("an atomic", "loop_packets", 1, "loop_bytes", 8, "sends_completed", 1, NULL);
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

	/* Tried so often again, and once before. */
	for (int again = 0; again < 7; again += 3) {
		rnr_retry = again;
		e = make_ends(&usual, NULL);
		is(post_send(e.a, 1, buf, 8, 0), 0);
		completes(e.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		end_ends(&e);
		rose("attempts", "rnr_naks", again + 1, "errors_retry", 1, NULL);
	}

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

/* The responder expects another number than the requester begins with. */
static void counted_psn(void)
{
	struct ends e;

	retry_cnt = 1;
	first_psn = 5;
	e = make_ends(&usual, NULL);
	is(post_rdma(e.a, IBV_WR_RDMA_WRITE, buf, 8, (uintptr_t)buf + 8, mr->rkey), 0);
	completes(e.scq, 0, IBV_WC_RETRY_EXC_ERR);
	end_ends(&e);
	rose("another PSN", "drops_psn", 2, "retries", 1, "errors_retry", 1, NULL);
	retry_cnt = 7;
	first_psn = 0;
}

static void counted_unreliable(void)
{
	struct ends e;

	qp_type = IBV_QPT_UC;
	e = make_ends(&usual, NULL);
	is(post_send(e.a, 1, buf, 8, 0), 0);
	completes(e.scq, 1, IBV_WC_SUCCESS);
	rose("UC, no receive", "sends_completed", 1, "drops_no_receive", 1, NULL);
	to_state(e.b, IBV_QPS_RESET);
	is(post_send(e.a, 1, buf, 8, 0), 0);
	completes(e.scq, 1, IBV_WC_SUCCESS);
	rose("UC, nobody", "sends_completed", 1, "drops_no_qp", 1, NULL);
	to_init(e.b);
	to_rtr(e.b, e.a);
	post_receives(e.b, NULL, 0, 1);
	is(post_send(e.a, 1, buf, 1000, 0), 0);
	completes(e.scq, 1, IBV_WC_SUCCESS);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	rose("UC", "sends_completed", 1, "receives_completed", 1, "loop_packets", 1, "loop_bytes",
	     1000, NULL);
	end_ends(&e);
	qp_type = IBV_QPT_RC;
}

/* From one device to another: what leaves here arrives there. */
static void counted_between(void)
{
	struct place home = here(), there = begin_on("rvt1");
	struct ends e = {};
	static const struct { const char *name; int by; } theirs[] = {
		{ "received_packets", 2 }, { "received_bytes", 5000 }, { "receives_completed", 1 },
		{ "sent_packets", 1 }, { "sent_bytes", 100 }, { "loop_packets", 0 },
		{ "sends_completed", 0 },
	};
	long long before[ARRAY_SIZE(theirs)];

	make_ends_across(&e, &there);
	post_receives(e.b, NULL, 0, 1);
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		before[i] = count_of(theirs[i].name);
	go(&home);
	{
		struct ibv_sge sge = { (uintptr_t)buf, 5000, mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.wr.rdma = { (uintptr_t)there.buf, there.mr->rkey },
		}, *bad;

		is(ibv_post_send(e.a, &wr, &bad), 0);
	}
	completes(e.scq, 0, IBV_WC_SUCCESS);
	completes(e.rcq, 0, IBV_WC_SUCCESS);
	is(post_rdma(e.a, IBV_WR_RDMA_READ, buf, 100, (uintptr_t)there.buf, there.mr->rkey), 0);
	completes(e.scq, 0, IBV_WC_SUCCESS);
	rose("to the other device", "sends_completed", 2, "sent_packets", 2, "sent_bytes", 5000,
	     "received_packets", 1, "received_bytes", 100, NULL);
	go(&there);
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		is(count_of(theirs[i].name) - before[i], theirs[i].by);
	go(&home);
	end_ends(&e);
	end_on(&there);
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

PART(counters)
{
	rose("the start", NULL);
	counted_traffic();
	counted_errors();
	counted_psn();
	counted_unreliable();
	counted_between();
	counted_datagrams();
}

/* Objects in a known state, for others to look at; until somebody closes standard input. */
PART(shown)
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
