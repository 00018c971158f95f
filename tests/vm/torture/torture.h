/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * torture.h - what the parts of the torture test share.
 *
 * A storm: worker processes, each of several lives, each life of several
 * threads, each of which draws one action after the other from the table in
 * actions.c. What it draws depends on the seed, worker, life, thread and step
 * alone; what comes of it, on all that goes on at the same time. Beside them
 * are the faithful (faithful.c), pairs of well-behaved programs that must
 * notice nothing, and a watcher (watch.c), who looks at everything.
 */
#ifndef TORTURE_H
#define TORTURE_H

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
#include <sys/types.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define PAGE		4096UL
#define ALL_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |	\
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* --- the plan --------------------------------------------------------------- */

#define WORKERS_MAX	16
#define THREADS_MAX	8
#define DEVICES_MAX	8

struct plan {
	uint64_t seed;
	unsigned int workers, threads, devices;
	unsigned long steps;	/* of each worker, all lives and threads together */
	const char *half;	/* a command for when half of the lives are over */
	bool restart;		/* the faithful end before that and begin again after it */
	bool verbose;
};

extern struct plan plan;

/* A source of numbers; each step has its own. */
struct dice {
	uint64_t state;
};

uint64_t mix(uint64_t a, uint64_t b);
uint64_t draw(struct dice *d);
/* 0 .. n - 1 */
uint64_t below(struct dice *d, uint64_t n);
bool one_in(struct dice *d, unsigned int n);
/* Numbers as they stand at the edge of something, or any number. */
uint32_t nonsense(struct dice *d);
#define one_of(d, array)	((array)[below(d, ARRAY_SIZE(array))])

/* --- what a worker holds ---------------------------------------------------- */

enum {
	HOMES = 2,
	PDS = 2,
	REGIONS = 6,
	CHANNELS = 2,
	CQS = 4,
	SRQS = 2,
	QPS = 6,
	AHS = 3,
	SLOTS = PDS + REGIONS + CHANNELS + CQS + SRQS + QPS + AHS,
};

enum kind { PD, REGION, CHANNEL, CQ, SRQ, QP, AH, KINDS };

struct ring {
	char *at;
	size_t bytes;
	uint64_t offset;
	bool gone;		/* the device is */
};

/*
 * Room for one object. Who uses it holds the lock for reading, who makes, ends
 * or unmaps it for writing, so that libibverbs, which is not what is tested,
 * does not see one object ended by one thread and used by another. Nobody waits:
 * what is taken is left alone.
 */
struct slot {
	pthread_rwlock_t lock;
	void *it;		/* the library's object */
	struct ring ring;	/* of a CQ, an SRQ, a QP: where it is mapped */
	bool blind;		/* it is there no more; the library would trip over it */
	void *memory;		/* of a region; NULL when unmapped */
	size_t bytes;
	uint64_t iova;
	unsigned int line;	/* of a QP or region, in the directory */
};

/* An open device and what was made there. */
struct home {
	pthread_rwlock_t lock;	/* for writing: it is opened or closed */
	struct ibv_context *ctx;
	unsigned int device;
	/*
	 * Commands go to the kernel past the library, which then knows its
	 * objects no more: they are ended past it, too, and never freed.
	 */
	bool wild;
	struct slot slot[SLOTS];
};

/* One thread of one life. */
struct thread {
	pthread_t id;
	unsigned int worker, life, number;
	unsigned long step;
	struct dice dice;
	struct home *home;
};

extern struct home homes[HOMES];

struct slot *slots_of(struct home *home, enum kind kind, unsigned int *count);
/*
 * A slot of a kind that holds something, to be used, or to be changed; one that
 * holds nothing, to be filled. NULL: there is none, or others have it.
 */
struct slot *use(struct thread *t, enum kind kind);
struct slot *own(struct thread *t, enum kind kind);
struct slot *vacant(struct thread *t, enum kind kind);
void release(struct slot *slot);

/* --- what all processes see ------------------------------------------------- */

#define ACTIONS_MAX	64
#define STATUSES	24

/* A QP or region of a worker, for the others to connect to; zero: none. */
struct line {
	atomic_uint number;	/* of the QP, or key of the region */
	atomic_uint device;
	atomic_uint type;	/* of the QP */
	atomic_ullong at;	/* the region */
	atomic_uint bytes;
};

/*
 * What they find each other by, and counts of what was done. Workers may write
 * over it while they go mad: only whether the storm was one is judged by it.
 */
struct board {
	struct line qp[WORKERS_MAX * HOMES * QPS];
	struct line region[WORKERS_MAX * HOMES * REGIONS];
	/* What the faithful have: for the workers to try. */
	struct line faithful_qp[16], faithful_region[16];
	atomic_uint lid[DEVICES_MAX];
	atomic_ulong tried[ACTIONS_MAX], done[ACTIONS_MAX];
	atomic_ulong completions[STATUSES];
	atomic_ulong looks, writes;
	/* The action that each thread is in, for who looks why it hangs. */
	atomic_uint doing[WORKERS_MAX][THREADS_MAX];
};

extern struct board *board;

unsigned int qp_lines(void);
/* The line of the QP that this one wants to be connected to. */
unsigned int partner_of(unsigned int line);
enum ibv_qp_type type_of_pair(unsigned int line);
uint32_t psn_of_pair(unsigned int line);
uint32_t some_qkey(struct dice *d);

/* --- parts ------------------------------------------------------------------ */

struct action {
	const char *name;
	unsigned int weight;
	bool wild;		/* in wild homes only */
	bool (*act)(struct thread *t);
};

extern const struct action actions[];
extern const unsigned int action_count;
const struct action *draw_action(struct thread *t);

/* worker.c: never returns. @stop: a byte there asks to be killed. */
void live(unsigned int worker, unsigned int life, unsigned long steps, int stop)
	__attribute__((noreturn));
void open_home(struct thread *t);
void close_home(struct home *home, bool orderly);

/* How a life is to end; drawn by both sides. */
enum ending { KILLED, ORDERLY, AS_IT_IS, ENDINGS };
enum ending ending_of(unsigned int worker, unsigned int life);

/* rings.c */
struct ring newest_ring(void);
/* Whoever makes a ring holds the lock until it is noted. */
extern pthread_mutex_t making_ring;
void note_ring(struct slot *slot);
void scribble(struct dice *d, struct ring ring, unsigned int words);
/* Nobody but the scribblers knows it any more. */
void leave_ring(struct ring ring);
/* All rings that are mapped; without allocating. */
unsigned int all_rings(struct ring *rings, unsigned int max);

/* raw.c: to the kernel, past the library */
int raw_destroy(const struct ibv_context *ctx, enum kind kind, uint32_t handle);
void garbage(struct dice *d, int fd);

/* objects.c: end what is in the slot, which the caller owns. */
bool end_object(struct home *home, enum kind kind, struct slot *slot);
void empty_slot(struct slot *slot);
/* memory.c */
void forget_memory(struct slot *slot);

/* faithful.c */
void start_faithful(void);
void hide_faithful(void);
bool faithful_process(pid_t pid, int status);
unsigned int faithful_left(void);
void stop_faithful(void);
void kill_faithful(void);
unsigned long least_progress(void);
void print_progress(void);

/* watch.c: looks until it is told to end by SIGTERM */
void watch(void) __attribute__((noreturn));

/* main.c */
const char *device_name(unsigned int device);
struct ibv_context *open_named(const char *name);
/* Say what is wrong and end. */
void wrong(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define ACT(name)	bool act_##name(struct thread *t)

/* objects.c */
ACT(reopen); ACT(close_fd);
ACT(make_pd); ACT(make_channel); ACT(make_cq); ACT(make_srq); ACT(make_ah);
ACT(end_pd); ACT(end_channel); ACT(end_cq); ACT(end_srq); ACT(end_ah); ACT(end_qp);
ACT(resize_cq); ACT(resize_srq); ACT(limit_srq); ACT(query_srq); ACT(query_device);
/* memory.c */
ACT(make_region); ACT(end_region); ACT(take_memory);
/* qps.c */
ACT(make_qp); ACT(walk); ACT(modify); ACT(query_qp); ACT(attach); ACT(to_error);
/* work.c */
ACT(send); ACT(receive); ACT(receive_shared); ACT(poll); ACT(arm); ACT(cq_events);
ACT(async_events);
/* rings.c */
ACT(scribble_cq); ACT(scribble_srq); ACT(scribble_rq); ACT(unmap_ring); ACT(scribble_stale);
ACT(register_ring);
/* raw.c */
ACT(garbage); ACT(garbage_send); ACT(garbage_ioctl); ACT(map_anything); ACT(bare_cq);
ACT(raw_end); ACT(fork); ACT(rereg);

#endif
