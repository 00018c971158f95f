// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* qps.c - queue pairs: made, connected, changed at random, brought to an error */
#include "torture.h"

/* --- making ----------------------------------------------------------------- */

static struct ibv_qp_cap some_cap(struct dice *d)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = 1 + below(d, 40),
		.max_recv_wr = 1 + below(d, 40),
		.max_send_sge = 1 + below(d, 4),
		.max_recv_sge = 1 + below(d, 4),
		.max_inline_data = one_in(d, 2) ? 0 : below(d, 513),
	};
	uint32_t *const field[] = {
		&cap.max_send_wr, &cap.max_recv_wr, &cap.max_send_sge, &cap.max_recv_sge,
		&cap.max_inline_data,
	};

	/* Unreasonable, but not so large in two ways that a small machine has no room. */
	if (one_in(d, 8)) {
		*one_of(d, field) = nonsense(d);
		if (one_in(d, 6))
			*one_of(d, field) = nonsense(d);
	}
	return cap;
}

ACT(make_qp)
{
	struct slot *pd = use(t, PD), *send_cq = pd ? use(t, CQ) : NULL;
	struct slot *recv_cq = send_cq ? use(t, CQ) : NULL;
	struct slot *srq = recv_cq && one_in(&t->dice, 4) ? use(t, SRQ) : NULL;
	struct slot *slot = recv_cq ? vacant(t, QP) : NULL;
	struct ibv_qp_init_attr init = {
		.cap = some_cap(&t->dice),
		.sq_sig_all = one_in(&t->dice, 2),
	};
	int type = one_in(&t->dice, 15) ? (int)nonsense(&t->dice) : -1;
	bool done = false;

	if (slot) {
		init.qp_type = type == -1 ? type_of_pair(slot->line) : (enum ibv_qp_type)type;
		init.send_cq = send_cq->it;
		init.recv_cq = recv_cq->it;
		init.srq = srq ? srq->it : NULL;
		pthread_mutex_lock(&making_ring);
		slot->it = ibv_create_qp(pd->it, &init);
		done = slot->it;
		if (done && !srq)
			note_ring(slot);
		else
			slot->blind = true; /* it has none */
		pthread_mutex_unlock(&making_ring);
		if (done) {
			struct line *line = &board->qp[slot->line];

			atomic_store(&line->device, t->home->device);
			atomic_store(&line->number, ((struct ibv_qp *)slot->it)->qp_num);
		}
	}
	release(slot);
	release(srq);
	release(recv_cq);
	release(send_cq);
	release(pd);
	return done;
}

/* --- connecting ------------------------------------------------------------- */

static int to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int to_init(struct thread *t, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = one_in(&t->dice, 10) ? below(&t->dice, 16) : 0,
		.port_num = 1,
		.qkey = 0x1111111,
		.qp_access_flags = one_in(&t->dice, 10) ? 0 : ALL_ACCESS,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

/* One that has a peer already; of this type, as others would not even be looked at. */
static const struct line *some_faithful(struct dice *d, enum ibv_qp_type type)
{
	const unsigned int count = ARRAY_SIZE(board->faithful_qp);
	unsigned int from = below(d, count);

	for (unsigned int i = 0; i < count; i++) {
		struct line *line = &board->faithful_qp[(from + i) % count];

		if (atomic_load(&line->number) && atomic_load(&line->type) == type)
			return line;
	}
	return &board->faithful_qp[0];
}

/* To the partner, if there is one; now and then to itself or to one that did not ask. */
static int to_rtr(struct thread *t, struct slot *slot, struct ibv_qp *qp)
{
	const struct line *peer = &board->qp[partner_of(slot->line)];
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = 1 + below(&t->dice, 5),
		.rq_psn = psn_of_pair(slot->line),
		.max_dest_rd_atomic = one_in(&t->dice, 10) ? 0 : 4,
		.min_rnr_timer = one_in(&t->dice, 4) ? below(&t->dice, 32) : 1,
		.ah_attr.port_num = 1,
	};
	int mask = IBV_QP_STATE;

	if (qp->qp_type == IBV_QPT_UD)
		return ibv_modify_qp(qp, &attr, mask);
	if (one_in(&t->dice, 12))
		peer = &board->qp[slot->line];
	else if (one_in(&t->dice, 10))
		peer = some_faithful(&t->dice, qp->qp_type);
	attr.dest_qp_num = atomic_load(&peer->number);
	if (!attr.dest_qp_num)
		return -1;
	attr.ah_attr.dlid = atomic_load(&board->lid[atomic_load(&peer->device) % DEVICES_MAX]);
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

static int to_rts(struct thread *t, struct slot *slot, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		/* Now and then for ever. */
		.timeout = one_in(&t->dice, 10) ? 0 : 1 + below(&t->dice, 12),
		.retry_cnt = below(&t->dice, 8),
		.rnr_retry = below(&t->dice, 8),
		.sq_psn = one_in(&t->dice, 20) ? nonsense(&t->dice) : psn_of_pair(slot->line),
		.max_rd_atomic = one_in(&t->dice, 10) ? 0 : 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &attr, mask);
}

/* Is it still connected to the partner that there is now? */
static bool connected_to(const struct ibv_qp_attr *attr, const struct line *partner)
{
	uint32_t number = atomic_load(&partner->number);

	return !number || attr->dest_qp_num == number;
}

/* As far towards RTS as it goes; from an error, or an old partner, by way of RESET. */
ACT(walk)
{
	struct slot *slot = use(t, QP);
	struct ibv_qp *qp = slot ? slot->it : NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int ret = -1;

	if (!qp || ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		goto out;
	if (attr.qp_state > IBV_QPS_RTS ||
	    (attr.qp_state >= IBV_QPS_RTR && qp->qp_type != IBV_QPT_UD && one_in(&t->dice, 2) &&
	     !connected_to(&attr, &board->qp[partner_of(slot->line)]))) {
		to_reset(qp);
		attr.qp_state = IBV_QPS_RESET;
	}
	ret = 0;
	if (attr.qp_state == IBV_QPS_RESET)
		ret = to_init(t, qp);
	if (!ret && attr.qp_state <= IBV_QPS_INIT)
		ret = to_rtr(t, slot, qp);
	if (!ret && attr.qp_state <= IBV_QPS_RTR)
		ret = to_rts(t, slot, qp);
out:
	release(slot);
	return !ret;
}

/* --- changing --------------------------------------------------------------- */

static void some_address(struct dice *d, struct ibv_ah_attr *ah)
{
	uint64_t *gid = (uint64_t *)&ah->grh.dgid;

	ah->dlid = nonsense(d);
	ah->is_global = below(d, 2);
	gid[0] = draw(d);
	gid[1] = draw(d);
	ah->grh.sgid_index = nonsense(d);
	ah->port_num = one_in(d, 2) ? 1 : nonsense(d);
}

/* Any attributes with any values, and a small chance that it is a thing one does. */
ACT(modify)
{
	static const int masks[] = {
		IBV_QP_STATE, IBV_QP_STATE | IBV_QP_CUR_STATE,
		IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_ACCESS_FLAGS,
		IBV_QP_QKEY, IBV_QP_AV, IBV_QP_ALT_PATH,
		IBV_QP_STATE | IBV_QP_PATH_MIG_STATE, IBV_QP_STATE | IBV_QP_CAP,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX, IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC,
		IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER, IBV_QP_STATE | IBV_QP_PORT,
	};
	struct slot *slot = use(t, QP);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { 0 };
	uint32_t *word = (uint32_t *)&attr;
	int mask = one_in(&t->dice, 2) ? one_of(&t->dice, masks) : (int)draw(&t->dice);
	unsigned int wild = one_in(&t->dice, 4) ? 40 : below(&t->dice, 3);
	bool done = false;

	/* What it is, but for a few values, or for many. */
	if (slot)
		ibv_query_qp(slot->it, &attr, ~0, &init);
	while (wild--)
		word[below(&t->dice, sizeof(attr) / sizeof(*word))] =
			one_in(&t->dice, 2) ? below(&t->dice, 8) : nonsense(&t->dice);
	if (one_in(&t->dice, 4))
		some_address(&t->dice, &attr.ah_attr);
	if (one_in(&t->dice, 4))
		some_address(&t->dice, &attr.alt_ah_attr);
	if (below(&t->dice, 3))
		attr.qp_state = below(&t->dice, 7);
	if (slot)
		done = !ibv_modify_qp(slot->it, &attr, mask);
	release(slot);
	return done;
}

ACT(to_error)
{
	static const enum ibv_qp_state states[] = {
		IBV_QPS_ERR, IBV_QPS_ERR, IBV_QPS_SQD, IBV_QPS_RTS,
	};
	struct slot *slot = use(t, QP);
	struct ibv_qp_attr attr = { .qp_state = one_of(&t->dice, states) };
	bool done = slot && !ibv_modify_qp(slot->it, &attr, IBV_QP_STATE);

	release(slot);
	return done;
}

ACT(query_qp)
{
	struct slot *slot = use(t, QP);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	bool done = slot && !ibv_query_qp(slot->it, &attr, nonsense(&t->dice), &init);

	release(slot);
	return done;
}

/* Groups come and go with those who are attached. */
ACT(attach)
{
	struct slot *slot = use(t, QP);
	union ibv_gid gid = { .raw = { 0xff, 0x12, [15] = below(&t->dice, 3) } };
	uint16_t lid = one_in(&t->dice, 10) ? nonsense(&t->dice) : 0xc001;
	bool leave = one_in(&t->dice, 3), done = false;

	if (one_in(&t->dice, 10))
		gid.raw[0] = nonsense(&t->dice);
	if (slot)
		done = leave ? !ibv_detach_mcast(slot->it, &gid, lid) :
			       !ibv_attach_mcast(slot->it, &gid, lid);
	release(slot);
	return done;
}
