// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* talk.c - what the faithful say to each other, and that it arrives, see faithful.h */
#include "faithful.h"

#include <stdarg.h>

/* --- messages --------------------------------------------------------------- */

struct header {
	uint64_t number;
	uint32_t bytes, last;
};

/* The bytes of message "number", which depend on who sends it. */
static uint32_t compose(const struct faithful *f, unsigned int side, uint64_t number, bool last,
			unsigned char *at)
{
	struct dice d = { mix(mix(plan.seed, 2 * f->pair + side), number) };
	struct header header = { number, sizeof(header) + below(&d, ROOM - sizeof(header)), last };

	memcpy(at, &header, sizeof(header));
	for (uint32_t i = sizeof(header); i < header.bytes; i += 8) {
		uint64_t word = draw(&d);

		memcpy(at + i, &word, header.bytes - i < 8 ? header.bytes - i : 8);
	}
	return header.bytes;
}

void bad(const struct faithful *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("WRONG: %s of the faithful (%s), messages %llu and %llu: ",
	       f->side ? "server" : "client", f->is->name,
	       (unsigned long long)f->sent, (unsigned long long)f->got);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(1);
}

/* --- posting ---------------------------------------------------------------- */

void post_receive(struct faithful *f)
{
	struct ibv_sge sge = {
		(uintptr_t)f->memory->in[f->receives % (2 * WINDOW)], GRH + ROOM, f->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = f->receives++, .sg_list = &sge, .num_sge = 1 }, *failed;

	if (f->srq)
		must(f, !ibv_post_srq_recv(f->srq, &wr, &failed));
	else
		must(f, !ibv_post_recv(f->qp, &wr, &failed));
}

static void post(struct faithful *f, struct ibv_send_wr *wr, enum sent kind)
{
	struct ibv_send_wr *failed;

	wr->wr_id = f->posted;
	wr->send_flags |= IBV_SEND_SIGNALED;
	f->kind[f->posted++ % DEPTH] = kind;
	must(f, !ibv_post_send(f->qp, wr, &failed));
}

static void send_message(struct faithful *f, bool last)
{
	unsigned char *at = f->memory->out[f->sent % DEPTH];
	uint32_t bytes = compose(f, f->side, f->sent, last, at);
	struct ibv_sge sge[2] = {
		{ (uintptr_t)at, sizeof(struct header), f->mr->lkey },
		{ (uintptr_t)at + sizeof(struct header), bytes - sizeof(struct header),
		  f->mr->lkey },
	};
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND };

	if (f->is->type == IBV_QPT_UD) {
		wr.wr.ud.ah = f->ah;
		wr.wr.ud.remote_qpn = f->peers->qpn;
		wr.wr.ud.remote_qkey = f->qkey;
	}
	f->sent++;
	f->last_sent = last;
	post(f, &wr, MESSAGE);
}

/* Write a page there, read it back, add one there. */
static void send_rdma(struct faithful *f)
{
	struct dice d = { mix(plan.seed, f->sent) };
	struct ibv_sge sge = { (uintptr_t)f->memory->source, PAGE, f->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };

	for (unsigned int i = 0; i < PAGE; i += 8)
		*(uint64_t *)&f->memory->source[i] = draw(&d);
	wr.wr.rdma.rkey = f->peers->key;
	wr.wr.rdma.remote_addr = f->peers->at + offsetof(struct memory, written);
	post(f, &wr, WRITTEN);
	wr.opcode = IBV_WR_RDMA_READ;
	sge.addr = (uintptr_t)f->memory->read;
	post(f, &wr, READ);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	sge = (struct ibv_sge){ (uintptr_t)&f->memory->fetched, 8, f->mr->lkey };
	wr.wr.atomic.rkey = f->peers->key;
	wr.wr.atomic.remote_addr = f->peers->at;
	wr.wr.atomic.compare_add = 1;
	post(f, &wr, ADDED);
}

/* --- completions ------------------------------------------------------------ */

static void send_completed(struct faithful *f, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode opcode[] = {
		[MESSAGE] = IBV_WC_SEND, [WRITTEN] = IBV_WC_RDMA_WRITE, [READ] = IBV_WC_RDMA_READ,
		[ADDED] = IBV_WC_FETCH_ADD,
	};
	enum sent kind = f->kind[f->completed % DEPTH];

	must(f, wc->wr_id == f->completed);
	must(f, wc->wr_id < f->posted);
	must(f, wc->opcode == opcode[kind]);
	must(f, wc->qp_num == f->qp->qp_num);
	f->completed++;
	if (kind == READ)
		must(f, !memcmp(f->memory->read, f->memory->source, PAGE));
	if (kind == ADDED)
		must(f, f->memory->fetched == f->added++);
}

static void received(struct faithful *f, const struct ibv_wc *wc)
{
	static _Thread_local unsigned char expected[ROOM];
	const unsigned char *at = f->memory->in[f->got % (2 * WINDOW)];
	uint32_t before = f->is->type == IBV_QPT_UD ? GRH : 0, bytes;
	struct header header;

	must(f, wc->wr_id == f->got);
	must(f, wc->opcode == IBV_WC_RECV);
	must(f, wc->qp_num == f->qp->qp_num);
	if (before)
		must(f, wc->src_qp == f->peers->qpn);
	memcpy(&header, at + before, sizeof(header));
	if (header.number != f->got)
		bad(f, "message %llu arrived", (unsigned long long)header.number);
	must(f, !f->last_got);
	bytes = compose(f, !f->side, f->got, header.last, expected);
	must(f, wc->byte_len == before + bytes);
	must(f, !memcmp(at + before, expected, bytes));
	f->last_got = header.last;
	f->got++;
	post_receive(f);
	if (!f->side)
		atomic_fetch_add(f->done, 1);
}

static bool take_one(struct faithful *f)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(f->cq, 1, &wc);

	must(f, n >= 0);
	if (!n)
		return false;
	/* A completion with an error says nothing of its opcode. */
	if (wc.status != IBV_WC_SUCCESS)
		bad(f, "completion %llu: %s", (unsigned long long)wc.wr_id,
		    ibv_wc_status_str(wc.status));
	if (wc.opcode & IBV_WC_RECV)
		received(f, &wc);
	else
		send_completed(f, &wc);
	return true;
}

static void wait_and_take(struct faithful *f)
{
	struct ibv_cq *cq;
	void *context;

	if (take_one(f))
		return;
	if (!f->channel) {
		sched_yield();
		return;
	}
	must(f, !ibv_req_notify_cq(f->cq, 0));
	if (take_one(f))
		return;
	must(f, !ibv_get_cq_event(f->channel, &cq, &context));
	must(f, cq == f->cq);
	ibv_ack_cq_events(cq, 1);
}

/* --- the conversation ------------------------------------------------------- */

static bool may_send(const struct faithful *f)
{
	/* Room for a message and what goes with it. */
	if (f->posted - f->completed > DEPTH - 4)
		return false;
	return f->side ? f->sent < f->got : f->sent < f->got + WINDOW && !f->last_sent;
}

void talk(struct faithful *f)
{
	for (;;) {
		while (may_send(f)) {
			bool last = f->side ? f->last_got && f->sent + 1 == f->got :
					      atomic_load(f->stop);

			send_message(f, last);
			if (!f->side && f->is->rdma && f->sent % 16 == 1)
				send_rdma(f);
			if (!f->side && f->is->rdma && f->sent % 64 == 33)
				have_mishaps(f);
		}
		if (f->last_sent && f->last_got && f->completed == f->posted &&
		    (f->side || f->sent == f->got))
			return;
		wait_and_take(f);
	}
}
