/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * abi.h - what the tests of the user ABI share: checks, and the objects and
 * requests that most of them need. The functions end the test when something
 * is not as it must be.
 */
#ifndef ABI_H
#define ABI_H

#define _GNU_SOURCE

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define PAGE		4096UL
#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |	\
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* How long something that has to happen may take: emulation is slow. */
#define PATIENCE_S	60

/* --- tests ------------------------------------------------------------------- */

struct test {
	const char *name;
	void (*run)(void);
	bool listed;
	struct test *next;
};

void add_test(struct test *test);

#define ADD_TEST(name, listed)						\
	static void name(void);						\
	__attribute__((constructor)) static void add_##name(void)	\
	{								\
		static struct test test = { #name, name, listed, NULL };\
		add_test(&test);					\
	}								\
	static void name(void)

/* "abi DEVICE list" names it, so abi.sh runs it. */
#define TEST(name)	ADD_TEST(name, true)
/* It needs something around it. */
#define PART(name)	ADD_TEST(name, false)

void judge(const char *file, int line, const char *what, long long seen, long long expected);
/* End: this does not apply here. */
void skip(const char *why) __attribute__((noreturn));

/* Each evaluates its arguments once. */
#define is(seen, expected)						\
	judge(__FILE__, __LINE__, #seen, (long long)(seen), (long long)(expected))
#define yes(condition)		judge(__FILE__, __LINE__, #condition, !!(condition), 1)

/* For calls that return NULL and set errno. */
#define fails(call, error)			\
	do {					\
		errno = 0;			\
		is((call) == NULL, 1);		\
		is(errno, error);		\
	} while (0)

time_t now(void);
/* Write to a file of the kernel's: 0 or an errno. */
int put(const char *path, const char *text);

/* --- what every test has ------------------------------------------------------- */

extern const char *device_name;
extern struct ibv_context *ctx;
extern struct ibv_pd *pd;

/* Registered memory. */
#define BUF_BYTES	(1UL << 20)
extern unsigned char *buf;
extern struct ibv_mr *mr;

void *anonymous(size_t bytes);
struct ibv_context *open_device(void);
void begin(void);
void end(void);

/* The device that all functions work on, and what begin() made there. */
struct place {
	const char *name;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	unsigned char *buf;
};

struct place here(void);
/* From now on the functions work there. */
void go(const struct place *to);
struct place begin_on(const char *name);
void end_on(const struct place *there);

/* --- queue pairs ------------------------------------------------------------------ */

/* Two connected queue pairs: a sends, b receives. */
struct ends {
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *a, *b;
};

extern const struct ibv_qp_cap usual;
/* How the next queue pairs are made, and connected. */
extern enum ibv_qp_type qp_type;
extern int sq_sig_all;
extern uint16_t pkey_index;
extern int access_flags;
extern uint8_t timeout, retry_cnt, rnr_retry;
/* Of the first send; the peer expects 0. */
extern uint32_t first_psn;

struct ibv_qp *make_qp(struct ends *e, const struct ibv_qp_cap *cap, struct ibv_srq *srq);
struct ibv_qp *make_ud(struct ends *e, uint32_t qkey);
void to_state(struct ibv_qp *qp, enum ibv_qp_state state);
uint16_t lid_of(struct ibv_context *device);
enum ibv_qp_state state_of(struct ibv_qp *qp);
void to_init(struct ibv_qp *qp);
void to_rtr(struct ibv_qp *qp, const struct ibv_qp *peer);
void to_rts(struct ibv_qp *qp);
void connect_ends(struct ends *e);
struct ends make_ends(const struct ibv_qp_cap *cap, struct ibv_srq *srq);
/* One queue pair here and its peer there, where the caller is afterwards. */
void make_ends_across(struct ends *e, const struct place *there);
void end_ends(struct ends *e);

struct ibv_srq *make_srq(uint32_t max_wr);
int set_limit(struct ibv_srq *srq, uint32_t limit);

/* --- work requests ------------------------------------------------------------------ */

int post_receive(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id);
void post_receives(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t first, int count);
int post_send(struct ibv_qp *qp, uint64_t id, const void *from, uint32_t bytes, int flags);
/* READ into or WRITE from the registered memory. */
int post_rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, void *local, uint32_t bytes,
	      uint64_t remote, uint32_t rkey);

struct ibv_wc next_wc(struct ibv_cq *cq);
void completes(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);
void nothing_more(struct ibv_cq *cq);
/* Send and complete "count" messages. */
void consume(struct ends *e, uint64_t first, int count);
struct ibv_async_event next_event(struct ibv_context *from);

/* A list of inline sends of eight bytes; request i sends i. */
#define LIST_MAX	40
struct list {
	struct ibv_send_wr wr[LIST_MAX];
	struct ibv_sge sge[LIST_MAX];
	uint64_t data[LIST_MAX];
};

void make_list(struct list *l, int count);

/* --- rings -------------------------------------------------------------------------- */

struct ring {
	char *at;
	size_t bytes;
	unsigned long long offset;
};

/* This process's mapping of the ring that was made last. */
struct ring newest_ring(void);

/* --- counters ---------------------------------------------------------------------- */

/* What a counter of the port's is at now. */
long long count_of(const char *name);

#endif
