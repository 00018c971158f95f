// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* actions.c - all that a worker may do, and how it is drawn */
#include "torture.h"

const struct action actions[] = {
	/* name			weight	wild	*/
	{ "reopen",		4,	false,	act_reopen },
	{ "close_fd",		1,	false,	act_close_fd },
	{ "make_pd",		20,	false,	act_make_pd },
	{ "end_pd",		4,	false,	act_end_pd },
	{ "make_region",	50,	false,	act_make_region },
	{ "register_ring",	3,	false,	act_register_ring },
	{ "end_region",		20,	false,	act_end_region },
	{ "take_memory",	10,	false,	act_take_memory },
	{ "make_channel",	10,	false,	act_make_channel },
	{ "end_channel",	3,	false,	act_end_channel },
	{ "make_cq",		40,	false,	act_make_cq },
	{ "resize_cq",		15,	false,	act_resize_cq },
	{ "end_cq",		10,	false,	act_end_cq },
	{ "arm",		20,	false,	act_arm },
	{ "cq_events",		20,	false,	act_cq_events },
	{ "poll",		80,	false,	act_poll },
	{ "make_srq",		20,	false,	act_make_srq },
	{ "resize_srq",		10,	false,	act_resize_srq },
	{ "limit_srq",		10,	false,	act_limit_srq },
	{ "query_srq",		5,	false,	act_query_srq },
	{ "end_srq",		5,	false,	act_end_srq },
	{ "make_qp",		60,	false,	act_make_qp },
	{ "walk",		120,	false,	act_walk },
	{ "modify",		20,	false,	act_modify },
	{ "to_error",		10,	false,	act_to_error },
	{ "query_qp",		10,	false,	act_query_qp },
	{ "end_qp",		15,	false,	act_end_qp },
	{ "attach",		10,	false,	act_attach },
	{ "make_ah",		20,	false,	act_make_ah },
	{ "end_ah",		5,	false,	act_end_ah },
	{ "send",		200,	false,	act_send },
	{ "receive",		100,	false,	act_receive },
	{ "receive_shared",	40,	false,	act_receive_shared },
	{ "async_events",	20,	false,	act_async_events },
	{ "query_device",	5,	false,	act_query_device },
	{ "scribble_cq",	15,	false,	act_scribble_cq },
	{ "scribble_srq",	10,	false,	act_scribble_srq },
	{ "scribble_rq",	20,	false,	act_scribble_rq },
	{ "scribble_stale",	10,	false,	act_scribble_stale },
	{ "unmap_ring",		4,	false,	act_unmap_ring },
	{ "fork",		6,	false,	act_fork },
	{ "garbage",		40,	true,	act_garbage },
	{ "garbage_send",	40,	true,	act_garbage_send },
	{ "garbage_ioctl",	40,	true,	act_garbage_ioctl },
	{ "map_anything",	10,	true,	act_map_anything },
	{ "bare_cq",		10,	true,	act_bare_cq },
	{ "rereg",		10,	true,	act_rereg },
	{ "raw_end",		20,	true,	act_raw_end },
};
const unsigned int action_count = ARRAY_SIZE(actions);
_Static_assert(ARRAY_SIZE(actions) <= ACTIONS_MAX, "raise ACTIONS_MAX");

/* The same is drawn in homes of both kinds; what is for wild ones only is left out elsewhere. */
const struct action *draw_action(struct thread *t)
{
	static unsigned int total;
	unsigned int sum = 0, at;

	if (!total) {
		for (unsigned int i = 0; i < action_count; i++)
			sum += actions[i].weight;
		total = sum; /* whoever is first, it is the same */
	}
	at = below(&t->dice, total);
	for (unsigned int i = 0; ; i++) {
		if (at < actions[i].weight)
			return &actions[i];
		at -= actions[i].weight;
	}
}

/* --- dice ------------------------------------------------------------------- */

uint64_t mix(uint64_t a, uint64_t b)
{
	struct dice d = { a ^ b * 0xd1342543de82ef95ull };

	return draw(&d);
}

uint64_t draw(struct dice *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint64_t below(struct dice *d, uint64_t n)
{
	return draw(d) % n;
}

bool one_in(struct dice *d, unsigned int n)
{
	return !below(d, n);
}

uint32_t nonsense(struct dice *d)
{
	static const uint32_t values[] = {
		0, 1, 2, 3, 15, 16, 31, 32, 33, 95, 96, 97, 127, 128, 129, 255, 256, 512, 513,
		0x3fff, 0x4000, 0xffff, 0x10000, 0x1ffff, 0x2ffff, 0x30000, 0xffffff, 0x1000000,
		0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
	};

	return one_in(d, 4) ? (uint32_t)draw(d) : one_of(d, values);
}

/* --- slots ------------------------------------------------------------------ */

struct home homes[HOMES];

struct slot *slots_of(struct home *home, enum kind kind, unsigned int *count)
{
	static const unsigned int counts[KINDS] = {
		[PD] = PDS, [REGION] = REGIONS, [CHANNEL] = CHANNELS, [CQ] = CQS,
		[SRQ] = SRQS, [QP] = QPS, [AH] = AHS,
	};
	struct slot *slot = home->slot;

	for (int k = 0; k < (int)kind; k++)
		slot += counts[k];
	*count = counts[kind];
	return slot;
}

enum want { TO_USE, TO_CHANGE, TO_FILL };

/* The first that will do, from one that the dice say on. */
static struct slot *find(struct thread *t, enum kind kind, enum want want)
{
	unsigned int count, at;
	struct slot *slots = slots_of(t->home, kind, &count);

	at = below(&t->dice, count);
	for (unsigned int i = 0; i < count; i++) {
		struct slot *slot = &slots[(at + i) % count];

		if (want == TO_USE ? pthread_rwlock_tryrdlock(&slot->lock) :
				     pthread_rwlock_trywrlock(&slot->lock))
			continue;
		if ((want == TO_FILL) == !slot->it)
			return slot;
		release(slot);
	}
	return NULL;
}

struct slot *use(struct thread *t, enum kind kind)
{
	return find(t, kind, TO_USE);
}

struct slot *own(struct thread *t, enum kind kind)
{
	return find(t, kind, TO_CHANGE);
}

struct slot *vacant(struct thread *t, enum kind kind)
{
	return find(t, kind, TO_FILL);
}

void release(struct slot *slot)
{
	if (slot)
		pthread_rwlock_unlock(&slot->lock);
}

/* --- who is connected to whom ----------------------------------------------- */

unsigned int qp_lines(void)
{
	return plan.workers * HOMES * QPS;
}

unsigned int partner_of(unsigned int line)
{
	return qp_lines() - 1 - line;
}

static uint64_t of_pair(unsigned int line, uint64_t what)
{
	unsigned int partner = partner_of(line);

	return mix(mix(plan.seed, what), line < partner ? line : partner);
}

enum ibv_qp_type type_of_pair(unsigned int line)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_UD,
	};

	return types[of_pair(line, 1) % ARRAY_SIZE(types)];
}

uint32_t psn_of_pair(unsigned int line)
{
	return of_pair(line, 2) & 0xffffff;
}

uint32_t some_qkey(struct dice *d)
{
	return one_in(d, 20) ? nonsense(d) : 0x1111111 + below(d, 2);
}
