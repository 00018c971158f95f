// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* objects.c - what is made, changed and ended: devices, PDs, CQs, SRQs, AHs */
#include "torture.h"

#include <fcntl.h>

/* --- ending ----------------------------------------------------------------- */

/*
 * The file goes, its number stays taken: by something that refuses whatever the
 * library asks of it.
 */
static void close_under_library(int fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0 || dup3(null, fd, O_CLOEXEC) != fd)
		wrong("dup3: %s", strerror(errno));
	close(null);
}

static uint32_t handle_of(enum kind kind, const void *it)
{
	switch (kind) {
	case CQ:
		return ((const struct ibv_cq *)it)->handle;
	case SRQ:
		return ((const struct ibv_srq *)it)->handle;
	default:
		return ((const struct ibv_qp *)it)->handle;
	}
}

static int end_by_library(enum kind kind, void *it)
{
	switch (kind) {
	case PD:
		return ibv_dealloc_pd(it);
	case REGION:
		return ibv_dereg_mr(it);
	case CHANNEL:
		return ibv_destroy_comp_channel(it);
	case CQ:
		return ibv_destroy_cq(it);
	case SRQ:
		return ibv_destroy_srq(it);
	case QP:
		return ibv_destroy_qp(it);
	default:
		return ibv_destroy_ah(it);
	}
}

static void forget_line(enum kind kind, const struct slot *slot)
{
	if (kind == QP)
		atomic_store(&board->qp[slot->line].number, 0);
	if (kind == REGION)
		atomic_store(&board->region[slot->line].number, 0);
}

void empty_slot(struct slot *slot)
{
	slot->it = NULL;
	slot->ring = (struct ring){ 0 };
	slot->blind = false;
	forget_memory(slot);
}

bool end_object(struct home *home, enum kind kind, struct slot *slot)
{
	bool has_ring = kind == CQ || kind == SRQ || kind == QP;
	int ret;

	if (home->wild && kind == CHANNEL) {
		close_under_library(((struct ibv_comp_channel *)slot->it)->fd);
		ret = 0;
	} else if (home->wild && has_ring) {
		ret = raw_destroy(home->ctx, kind, handle_of(kind, slot->it));
	} else {
		ret = end_by_library(kind, slot->it);
	}
	/* In use. After any other error it is not ours any more. */
	if (ret == EBUSY)
		return false;
	forget_line(kind, slot);
	/* The library has not unmapped it. */
	if (has_ring && !slot->blind && (home->wild || ret))
		leave_ring(slot->ring);
	empty_slot(slot);
	return !ret;
}

static bool end_some(struct thread *t, enum kind kind)
{
	struct slot *slot = own(t, kind);
	bool done = slot && end_object(t->home, kind, slot);

	release(slot);
	return done;
}

ACT(end_pd) { return end_some(t, PD); }
ACT(end_channel) { return end_some(t, CHANNEL); }
ACT(end_cq) { return end_some(t, CQ); }
ACT(end_srq) { return end_some(t, SRQ); }
ACT(end_qp) { return end_some(t, QP); }
ACT(end_ah) { return end_some(t, AH); }

/* A key that nothing belongs to is refused by any queue pair in any state. */
static void try_dead_key(struct thread *t, uint64_t at, uint32_t key)
{
	struct ibv_sge sge = { at, 1, key };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct slot *slot = use(t, QP);

	if (slot && ((struct ibv_qp *)slot->it)->qp_type != IBV_QPT_UD &&
	    !ibv_post_send(slot->it, &wr, &bad))
		wrong("key 0x%x was good after its region had ended", key);
	release(slot);
}

ACT(end_region)
{
	struct slot *slot = own(t, REGION);
	uint64_t at = slot ? slot->iova : 0;
	uint32_t key = slot ? ((struct ibv_mr *)slot->it)->lkey : 0;
	bool done = slot && end_object(t->home, REGION, slot);

	release(slot);
	if (done)
		try_dead_key(t, at, key);
	return done;
}

/* --- the device ------------------------------------------------------------- */

ACT(reopen)
{
	if (t->home->ctx)
		close_home(t->home, one_in(&t->dice, 3));
	open_home(t);
	return t->home->ctx;
}

/* The kernel ends all that is open there, while other threads use it. */
ACT(close_fd)
{
	int fd = one_in(&t->dice, 4) ? t->home->ctx->async_fd : t->home->ctx->cmd_fd;

	if (!one_in(&t->dice, 3))
		return false;
	close_under_library(fd);
	return true;
}

ACT(query_device)
{
	struct ibv_device_attr_ex more;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	ibv_query_device_ex(t->home->ctx, NULL, &more);
	ibv_query_port(t->home->ctx, nonsense(&t->dice), &port);
	ibv_query_gid(t->home->ctx, 1, below(&t->dice, 20), &gid);
	ibv_query_pkey(t->home->ctx, 1, below(&t->dice, 20), &pkey);
	return !ibv_query_device(t->home->ctx, &device);
}

/* --- PDs, channels, AHs ----------------------------------------------------- */

ACT(make_pd)
{
	struct slot *slot = vacant(t, PD);

	if (slot)
		slot->it = ibv_alloc_pd(t->home->ctx);
	release(slot);
	return slot && slot->it;
}

ACT(make_channel)
{
	struct slot *slot = vacant(t, CHANNEL);
	struct ibv_comp_channel *channel;
	bool done = false;

	if (slot) {
		channel = ibv_create_comp_channel(t->home->ctx);
		done = channel;
		if (done) /* who takes an event does not wait for one */
			fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
		slot->it = channel;
	}
	release(slot);
	return done;
}

ACT(make_ah)
{
	struct slot *pd = use(t, PD), *slot = pd ? vacant(t, AH) : NULL;
	struct ibv_ah_attr attr = {
		.dlid = atomic_load(&board->lid[below(&t->dice, plan.devices)]),
		.port_num = 1,
	};
	bool done = false;

	if (one_in(&t->dice, 3)) {
		attr.is_global = 1;
		attr.grh.sgid_index = below(&t->dice, 4) ? 0 : nonsense(&t->dice);
		attr.grh.hop_limit = draw(&t->dice);
		ibv_query_gid(t->home->ctx, 1, 0, &attr.grh.dgid);
		if (one_in(&t->dice, 2)) { /* a group */
			memset(&attr.grh.dgid, 0, sizeof(attr.grh.dgid));
			attr.grh.dgid.raw[0] = 0xff;
			attr.grh.dgid.raw[15] = below(&t->dice, 3);
			attr.dlid = 0xc001;
		}
	}
	if (one_in(&t->dice, 15))
		attr.dlid = nonsense(&t->dice);
	if (one_in(&t->dice, 30))
		attr.port_num = nonsense(&t->dice);
	if (slot) {
		slot->it = ibv_create_ah(pd->it, &attr);
		done = slot->it;
	}
	release(slot);
	release(pd);
	return done;
}

/* --- completion queues ------------------------------------------------------ */

static int some_cqe(struct dice *d)
{
	return one_in(d, 15) ? (int)nonsense(d) : 1 + (int)below(d, one_in(d, 2) ? 8 : 300);
}

ACT(make_cq)
{
	struct slot *slot = vacant(t, CQ), *channel = slot ? use(t, CHANNEL) : NULL;
	int cqe = some_cqe(&t->dice);
	int vector = one_in(&t->dice, 20) ? (int)nonsense(&t->dice) : 0;
	bool done = false;

	if (slot) {
		pthread_mutex_lock(&making_ring);
		slot->it = ibv_create_cq(t->home->ctx, cqe, NULL, channel ? channel->it : NULL,
					 vector);
		done = slot->it;
		if (done)
			note_ring(slot);
		pthread_mutex_unlock(&making_ring);
	}
	release(channel);
	release(slot);
	return done;
}

ACT(resize_cq)
{
	struct slot *slot = own(t, CQ);
	int cqe = some_cqe(&t->dice), ret = -1;

	if (slot) {
		pthread_mutex_lock(&making_ring);
		ret = ibv_resize_cq(slot->it, cqe);
		if (!ret)
			note_ring(slot);
		else if (ret != EINVAL || t->home->wild)
			slot->blind = true; /* who knows what the library has now */
		pthread_mutex_unlock(&making_ring);
	}
	release(slot);
	return !ret;
}

ACT(arm)
{
	struct slot *slot = use(t, CQ);
	bool done = slot && !ibv_req_notify_cq(slot->it, one_in(&t->dice, 2));

	release(slot);
	return done;
}

ACT(cq_events)
{
	struct slot *slot = use(t, CHANNEL);
	struct ibv_cq *cq;
	bool done = false;
	void *context;

	for (int i = 0; slot && i < 8 && !ibv_get_cq_event(slot->it, &cq, &context); i++) {
		ibv_ack_cq_events(cq, 1);
		done = true;
	}
	release(slot);
	return done;
}

ACT(async_events)
{
	struct ibv_async_event event;
	bool done = false;

	for (int i = 0; i < 16 && !ibv_get_async_event(t->home->ctx, &event); i++) {
		ibv_ack_async_event(&event);
		done = true;
		if (event.event_type == IBV_EVENT_DEVICE_FATAL)
			break;
	}
	return done;
}

/* --- shared receive queues -------------------------------------------------- */

/* A few of the largest rings are enough for a small machine. */
static uint32_t affordable(struct dice *d, uint64_t wr, uint64_t sge)
{
	return wr <= 0x20000 && sge <= 96 && wr * sge > 0x40000 && !one_in(d, 40) ? wr % 100 : wr;
}

ACT(make_srq)
{
	struct slot *pd = use(t, PD), *slot = pd ? vacant(t, SRQ) : NULL;
	struct ibv_srq_init_attr init = {
		.attr = {
			.max_sge = one_in(&t->dice, 10) ? nonsense(&t->dice) :
							  1 + below(&t->dice, 5),
			.srq_limit = one_in(&t->dice, 4) ? below(&t->dice, 20) : 0,
		},
	};
	bool done = false;

	init.attr.max_wr = one_in(&t->dice, 10) ? nonsense(&t->dice) : 1 + below(&t->dice, 60);
	init.attr.max_wr = affordable(&t->dice, init.attr.max_wr, init.attr.max_sge);
	if (slot) {
		pthread_mutex_lock(&making_ring);
		slot->it = ibv_create_srq(pd->it, &init);
		done = slot->it;
		if (done)
			note_ring(slot);
		pthread_mutex_unlock(&making_ring);
	}
	release(slot);
	release(pd);
	return done;
}

static bool modify_srq(struct thread *t, int mask)
{
	struct slot *slot = own(t, SRQ);
	struct ibv_srq_attr attr = {
		.max_wr = one_in(&t->dice, 10) ? nonsense(&t->dice) : 1 + below(&t->dice, 100),
		.srq_limit = one_in(&t->dice, 10) ? nonsense(&t->dice) : below(&t->dice, 20),
	};
	int ret = -1;

	attr.max_wr = affordable(&t->dice, attr.max_wr, 8);
	if (slot) {
		pthread_mutex_lock(&making_ring);
		ret = ibv_modify_srq(slot->it, &attr, mask);
		if (!ret && mask & IBV_SRQ_MAX_WR)
			note_ring(slot);
		else if (ret && (ret != EINVAL || t->home->wild))
			slot->blind = true;
		pthread_mutex_unlock(&making_ring);
	}
	release(slot);
	return !ret;
}

ACT(resize_srq)
{
	return modify_srq(t, one_in(&t->dice, 20) ? (int)nonsense(&t->dice) : IBV_SRQ_MAX_WR |
			  (one_in(&t->dice, 3) ? IBV_SRQ_LIMIT : 0));
}

ACT(limit_srq)
{
	return modify_srq(t, IBV_SRQ_LIMIT);
}

ACT(query_srq)
{
	struct slot *slot = use(t, SRQ);
	struct ibv_srq_attr attr;
	bool done = slot && !ibv_query_srq(slot->it, &attr);

	release(slot);
	return done;
}
