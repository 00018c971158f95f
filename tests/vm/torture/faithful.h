/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * faithful.h - the pairs of well-behaved processes
 *
 * A client sends numbered requests, a server answers each. Every message must
 * arrive once, in order, from the peer, with the bytes that its number says; every
 * request completes in order and successfully. Some RC clients also write to the
 * server's memory, read it back and count there, and make mistakes between queue
 * pairs of their own (mishaps.c). All have memory that nobody may have touched in the
 * end.
 */
#ifndef FAITHFUL_H
#define FAITHFUL_H

#include "torture.h"

#define WINDOW	8	/* requests without an answer */
#define DEPTH	64	/* of the send queue */
#define ROOM	2048	/* of a message */
#define GRH	40

struct character {
	const char *name;
	enum ibv_qp_type type;
	bool events, srq, rdma;
	unsigned int server_device;
};

struct address {
	atomic_uint stage;	/* 1: made, 2: connected */
	uint32_t lid, qpn, key;
	uint64_t at;
};

/* What one of them has. */
struct memory {
	uint64_t counter;
	unsigned char guard[4 * PAGE];	/* never written */
	unsigned char written[PAGE];	/* by the peer */
	unsigned char source[PAGE], read[PAGE];
	unsigned char out[DEPTH][ROOM];
	unsigned char in[2 * WINDOW][GRH + ROOM];
	uint64_t fetched;
};

enum sent { MESSAGE, WRITTEN, READ, ADDED };

struct faithful {
	const struct character *is;
	unsigned int pair, side;	/* side 0: the client */
	atomic_bool *stop;
	atomic_ulong *done;
	struct address *mine, *peers;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	uint32_t qkey;
	struct memory *memory;
	uint64_t posted, completed;	/* of the send queue */
	enum sent kind[DEPTH];
	uint64_t receives, sent, got;	/* receives posted; messages */
	uint64_t added;
	bool last_sent, last_got;
};

void bad(const struct faithful *f, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#define must(f, condition)						\
	do {								\
		if (!(condition))					\
			bad(f, "not so: %s (%s)", #condition, strerror(errno));	\
	} while (0)

/* talk.c */
void post_receive(struct faithful *f);
void talk(struct faithful *f);
/* mishaps.c */
void have_mishaps(struct faithful *f);

#endif
