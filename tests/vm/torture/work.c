// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* work.c - requests of all kinds, right and wrong, and their completions */
#include "torture.h"

#define LIST	12
#define PIECES	8

/* A list of requests and what it refers to; the thread holds the slots meanwhile. */
struct list {
	struct ibv_send_wr wr[LIST];
	struct ibv_sge sge[LIST][PIECES];
	struct slot *ah[LIST];
	unsigned int count;
};

/* --- pieces ----------------------------------------------------------------- */

/* A region of this home, mostly of the domain that will do. */
static struct slot *some_region(struct thread *t, const struct ibv_pd *pd)
{
	for (int tries = 0; ; tries++) {
		struct slot *slot = use(t, REGION);

		if (!slot || ((struct ibv_mr *)slot->it)->pd == pd || tries == 4)
			return slot;
		release(slot);
	}
}

/* What the faithful have registered, mostly on the device where it could be used. */
static const struct line *some_faithful_region(struct dice *d, unsigned int device)
{
	const unsigned int count = ARRAY_SIZE(board->faithful_region);
	unsigned int from = below(d, count);

	for (unsigned int i = 0; i < count; i++) {
		const struct line *line = &board->faithful_region[(from + i) % count];

		if (atomic_load(&line->number) && atomic_load(&line->device) == device)
			return line;
	}
	return &board->faithful_region[0];
}

/* Mostly within a region; sometimes not, or with a key that is no key. */
static struct ibv_sge some_piece(struct thread *t, const struct ibv_pd *pd)
{
	static const uint32_t lengths[] = {
		0, 1, 7, 8, 8, 8, 64, 64, 256, 1024, 1024, 4096, 65536,
	};
	struct slot *slot = some_region(t, pd);
	struct dice *d = &t->dice;
	struct ibv_sge sge = { .length = one_of(d, lengths) };

	if (slot) {
		const struct ibv_mr *mr = slot->it;
		uint64_t room;

		if (sge.length > mr->length && below(d, 8))
			sge.length = mr->length;
		room = mr->length > sge.length ? mr->length - sge.length : 0;
		sge.lkey = mr->lkey;
		sge.addr = slot->iova + (one_in(d, 2) ? 0 : below(d, room + 1));
	}
	release(slot);
	if (one_in(d, 60))
		sge.lkey = nonsense(d);
	if (one_in(d, 60)) {
		const struct line *line = some_faithful_region(d, t->home->device);

		sge.lkey = atomic_load(&line->number);
		sge.addr = atomic_load(&line->at) + below(d, 4 * PAGE);
	}
	if (one_in(d, 60))
		sge.addr = one_in(d, 2) ? draw(d) : sge.addr + nonsense(d);
	if (one_in(d, 60))
		sge.length = nonsense(d);
	return sge;
}

/* Remote memory: mostly of the partner, and mostly such as exists. */
static void some_target(struct thread *t, unsigned int line, uint64_t *at, uint32_t *rkey)
{
	const struct line *region = NULL;
	struct dice *d = &t->dice;
	unsigned int home = partner_of(line) / QPS;

	for (int i = 0; i < 8; i++) {
		if (one_in(d, 16))
			home = below(d, plan.workers * HOMES);
		region = &board->region[home * REGIONS + below(d, REGIONS)];
		if (atomic_load(&region->number))
			break;
	}
	if (one_in(d, 12))
		region = some_faithful_region(d, atomic_load(&board->qp[partner_of(line)].device));
	*rkey = atomic_load(&region->number);
	*at = atomic_load(&region->at);
	if (one_in(d, 3))
		*at += below(d, (uint64_t)atomic_load(&region->bytes) / 2 + 1) & ~7ull;
	if (one_in(d, 40))
		*at += nonsense(d);
	if (one_in(d, 40))
		*rkey = nonsense(d);
}

/* --- sends ------------------------------------------------------------------ */

static bool datagram(struct thread *t, struct ibv_send_wr *wr, struct slot **ah)
{
	const struct line *line = &board->qp[below(&t->dice, qp_lines())];

	*ah = use(t, AH);
	if (!*ah)
		return false;
	wr->wr.ud.ah = (*ah)->it;
	wr->wr.ud.remote_qpn = one_in(&t->dice, 8) ? 0xffffff : atomic_load(&line->number);
	if (one_in(&t->dice, 20))
		wr->wr.ud.remote_qpn = atomic_load(&one_of(&t->dice, board->faithful_qp).number);
	wr->wr.ud.remote_qkey = some_qkey(&t->dice);
	return true;
}

static bool some_send(struct thread *t, const struct slot *slot, struct list *l)
{
	static const int opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
	};
	const struct ibv_qp *qp = slot->it;
	unsigned int n = l->count++;
	struct ibv_send_wr *wr = &l->wr[n];
	struct dice *d = &t->dice;

	*wr = (struct ibv_send_wr){
		.wr_id = draw(d),
		.sg_list = l->sge[n],
		.num_sge = one_in(d, 8) ? below(d, PIECES + 1) : 1,
		.opcode = one_of(d, opcodes),
		.send_flags = below(d, 4) ? IBV_SEND_SIGNALED : 0,
		.imm_data = draw(d),
	};
	l->ah[n] = NULL;
	if (qp->qp_type == IBV_QPT_UD) {
		if (below(d, 10))
			wr->opcode = one_in(d, 2) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
		if (!datagram(t, wr, &l->ah[n]))
			return false;
	} else {
		uint64_t at;
		uint32_t rkey;

		some_target(t, slot->line, &at, &rkey);
		switch (wr->opcode) {
		case IBV_WR_ATOMIC_CMP_AND_SWP:
		case IBV_WR_ATOMIC_FETCH_AND_ADD:
			wr->wr.atomic.remote_addr = at;
			wr->wr.atomic.rkey = rkey;
			wr->wr.atomic.compare_add = draw(d);
			wr->wr.atomic.swap = draw(d);
			break;
		case IBV_WR_SEND_WITH_INV:
			wr->invalidate_rkey = rkey;
			break;
		default:
			wr->wr.rdma.remote_addr = at;
			wr->wr.rdma.rkey = rkey;
		}
	}
	for (int i = 0; i < wr->num_sge; i++)
		l->sge[n][i] = some_piece(t, qp->pd);
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		if (below(d, 10))
			l->sge[n][0].length = 8;
	}
	if (one_in(d, 8))
		wr->send_flags |= IBV_SEND_INLINE;
	if (one_in(d, 10))
		wr->send_flags |= one_in(d, 2) ? IBV_SEND_SOLICITED : IBV_SEND_FENCE;
	if (one_in(d, 100))
		wr->send_flags = nonsense(d);
	if (one_in(d, 100) && qp->qp_type != IBV_QPT_UD)
		wr->opcode = nonsense(d);
	return true;
}

ACT(send)
{
	struct slot *slot = use(t, QP);
	struct ibv_send_wr *bad;
	struct list l;
	unsigned int count = 1 + below(&t->dice, one_in(&t->dice, 4) ? LIST : 2);
	int ret = -1;

	l.count = 0;
	while (slot && l.count < count) {
		if (!some_send(t, slot, &l)) {
			l.count--;
			break;
		}
		if (l.count > 1)
			l.wr[l.count - 2].next = &l.wr[l.count - 1];
	}
	if (slot && l.count) {
		l.wr[l.count - 1].next = NULL;
		ret = ibv_post_send(slot->it, l.wr, &bad);
	}
	for (unsigned int i = 0; i < l.count; i++)
		release(l.ah[i]);
	release(slot);
	return !ret;
}

/* --- receives --------------------------------------------------------------- */

static unsigned int some_receives(struct thread *t, struct ibv_recv_wr *wr,
				  struct ibv_sge sge[][PIECES], const struct ibv_pd *pd)
{
	unsigned int count = 1 + below(&t->dice, LIST);

	for (unsigned int n = 0; n < count; n++) {
		wr[n] = (struct ibv_recv_wr){
			.wr_id = draw(&t->dice),
			.next = n + 1 < count ? &wr[n + 1] : NULL,
			.sg_list = sge[n],
			.num_sge = one_in(&t->dice, 8) ? below(&t->dice, PIECES + 1) : 1,
		};
		for (int i = 0; i < wr[n].num_sge; i++)
			sge[n][i] = some_piece(t, pd);
	}
	return count;
}

static bool post_receives(struct thread *t, enum kind kind)
{
	struct slot *slot = use(t, kind);
	struct ibv_recv_wr wr[LIST], *bad;
	struct ibv_sge sge[LIST][PIECES];
	int ret = -1;

	if (!slot)
		return false;
	some_receives(t, wr, sge, kind == QP ? ((struct ibv_qp *)slot->it)->pd :
					       ((struct ibv_srq *)slot->it)->pd);
	if (!slot->blind)
		ret = kind == QP ? ibv_post_recv(slot->it, wr, &bad) :
				   ibv_post_srq_recv(slot->it, wr, &bad);
	release(slot);
	return !ret;
}

ACT(receive)
{
	return post_receives(t, QP);
}

ACT(receive_shared)
{
	return post_receives(t, SRQ);
}

/* --- completions ------------------------------------------------------------ */

ACT(poll)
{
	struct slot *slot = use(t, CQ);
	struct ibv_wc wc[16];
	int n = slot && !slot->blind ? ibv_poll_cq(slot->it, 1 + below(&t->dice, 16), wc) : 0;

	for (int i = 0; i < n; i++) {
		if (wc[i].status < STATUSES)
			atomic_fetch_add(&board->completions[wc[i].status], 1);
	}
	release(slot);
	return n > 0;
}
