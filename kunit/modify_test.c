// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The state machine of modify_qp, against ib_core's own judgement and on
 * living queue pairs.
 *
 * Transitions, required and optional attributes: InfiniBand 10.3.1 and
 * 11.2.5.2. The list here says where to look; ib_modify_qp_is_ok() is asked
 * first whether the list itself is right, to the bit.
 */
#include "harness.h"
#include "suites.h"

#include <rvt/core.h>

#define R(bits) .req = IB_QP_STATE | (bits)
#define O(bits) .opt = (bits)

struct edge {
	enum ib_qp_state from, to;
	enum ib_qp_type type;
	int req, opt;
};

#define EDGE(f, t, y, ...) \
	{ .from = IB_QPS_##f, .to = IB_QPS_##t, .type = IB_QPT_##y, __VA_ARGS__ }
/* From any state that has been set up. */
#define DOWN(y)                                                                                \
	EDGE(RESET, RESET, y, R(0)), EDGE(INIT, RESET, y, R(0)), EDGE(RTR, RESET, y, R(0)),    \
		EDGE(RTS, RESET, y, R(0)), EDGE(SQD, RESET, y, R(0)),                          \
		EDGE(SQE, RESET, y, R(0)), EDGE(ERR, RESET, y, R(0)),                          \
		EDGE(INIT, ERR, y, R(0)), EDGE(RTR, ERR, y, R(0)), EDGE(RTS, ERR, y, R(0)),    \
		EDGE(SQD, ERR, y, R(0)), EDGE(SQE, ERR, y, R(0)), EDGE(ERR, ERR, y, R(0))

#define PATH (IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
#define TUNE_UC (IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE)
#define TUNE_RC (TUNE_UC | IB_QP_MIN_RNR_TIMER)
#define TUNE_UD (IB_QP_CUR_STATE | IB_QP_QKEY)

static const struct edge edges[] = {
	DOWN(RC),
	EDGE(RESET, INIT, RC, R(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)),
	EDGE(INIT, INIT, RC, R(0), O(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)),
	EDGE(INIT, RTR, RC, R(PATH | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER),
	     O(IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX)),
	EDGE(RTR, RTS, RC,
	     R(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
	       IB_QP_MAX_QP_RD_ATOMIC),
	     O(TUNE_RC)),
	EDGE(RTS, RTS, RC, R(0), O(TUNE_RC)),
	EDGE(RTS, SQD, RC, R(0), O(IB_QP_EN_SQD_ASYNC_NOTIFY)),
	EDGE(SQD, RTS, RC, R(0), O(TUNE_RC)),
	EDGE(SQD, SQD, RC, R(0),
	     O(IB_QP_PORT | IB_QP_AV | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
	       IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_ALT_PATH |
	       IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_MIN_RNR_TIMER |
	       IB_QP_PATH_MIG_STATE)),
	EDGE(SQE, RTS, RC, R(0)),

	DOWN(UC),
	EDGE(RESET, INIT, UC, R(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)),
	EDGE(INIT, INIT, UC, R(0), O(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)),
	EDGE(INIT, RTR, UC, R(PATH), O(IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX)),
	EDGE(RTR, RTS, UC, R(IB_QP_SQ_PSN), O(TUNE_UC)),
	EDGE(RTS, RTS, UC, R(0), O(TUNE_UC)),
	EDGE(RTS, SQD, UC, R(0), O(IB_QP_EN_SQD_ASYNC_NOTIFY)),
	EDGE(SQD, RTS, UC, R(0), O(TUNE_UC)),
	EDGE(SQD, SQD, UC, R(0),
	     O(IB_QP_AV | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX |
	       IB_QP_PATH_MIG_STATE)),
	EDGE(SQE, RTS, UC, R(0), O(IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS)),

	DOWN(UD),
	EDGE(RESET, INIT, UD, R(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY)),
	EDGE(INIT, INIT, UD, R(0), O(IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY)),
	EDGE(INIT, RTR, UD, R(0), O(IB_QP_PKEY_INDEX | IB_QP_QKEY)),
	EDGE(RTR, RTS, UD, R(IB_QP_SQ_PSN), O(TUNE_UD)),
	EDGE(RTS, RTS, UD, R(0), O(TUNE_UD)),
	EDGE(RTS, SQD, UD, R(0), O(IB_QP_EN_SQD_ASYNC_NOTIFY)),
	EDGE(SQD, RTS, UD, R(0), O(TUNE_UD)),
	EDGE(SQD, SQD, UD, R(0), O(IB_QP_PKEY_INDEX | IB_QP_QKEY)),
	EDGE(SQE, RTS, UD, R(0), O(TUNE_UD)),
};

static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };

static const struct edge *find_edge(int from, int to, enum ib_qp_type type)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(edges); i++)
		if (edges[i].from == from && edges[i].to == to && edges[i].type == type)
			return &edges[i];
	return NULL;
}

/* --- the table ------------------------------------------------------------------ */

struct census {
	struct kunit *test;
	int compared, accepted;
};

static bool compare(struct census *c, int from, int to, enum ib_qp_type type, u32 mask)
{
	bool core = ib_modify_qp_is_ok(from, to, type, mask);
	bool rvt = rvt_core_modify_is_ok(from, to, type, mask);

	c->compared++;
	c->accepted += core;
	KUNIT_EXPECT_EQ_MSG(c->test, rvt, core, "%s %s to %s, mask 0x%x", rig_type_name(type),
			    rig_state_name(from), rig_state_name(to), mask);
	return core;
}

static void compare_pair(struct census *c, int from, int to, enum ib_qp_type type)
{
	const struct edge *edge = find_edge(from, to, type);
	int req = edge ? edge->req : IB_QP_STATE;
	int full = edge ? req | edge->opt : IB_QP_STATE;
	u32 random = 0x2545f491u ^ (from << 16 | to << 8 | type);
	int bit, i;

	/* The list is exact: both sets are legal if there is an edge. */
	KUNIT_EXPECT_EQ(c->test, compare(c, from, to, type, req), !!edge);
	KUNIT_EXPECT_EQ(c->test, compare(c, from, to, type, full), !!edge);
	for (bit = 0; bit < 32; bit++) {
		u32 flip = 1u << bit;
		bool needed = edge && (req & flip) && flip != IB_QP_STATE;
		bool known = (full | IB_QP_STATE) & flip;

		if (compare(c, from, to, type, req ^ flip))
			KUNIT_EXPECT_FALSE_MSG(c->test, needed, "not required: bit %d", bit);
		if (!compare(c, from, to, type, full ^ flip) && edge && !needed)
			KUNIT_EXPECT_FALSE_MSG(c->test, known, "not optional: bit %d", bit);
	}
	/* And any mixture. */
	for (i = 0; i < 64; i++) {
		random = random * 1664525 + 1013904223;
		compare(c, from, to, type, random >> 11);
		compare(c, from, to, type, req | (full & (random >> 11)));
	}
}

static void table_against_ib_core(struct kunit *test)
{
	struct census c = { .test = test };
	int from, to, i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		for (from = IB_QPS_RESET; from <= IB_QPS_ERR; from++)
			for (to = IB_QPS_RESET; to <= IB_QPS_ERR; to++)
				compare_pair(&c, from, to, types[i]);
	kunit_info(test, "%d combinations compared with ib_core, %d of them legal\n", c.compared,
		   c.accepted);
}

/* ib_core's table may not be asked with these: it does not check. */
static void case_052_states_outside_the_table(struct kunit *test)
{
	static const int odd[] = { -1, 7, 8, 255, INT_MAX, INT_MIN };
	int i, state;

	for (i = 0; i < ARRAY_SIZE(odd); i++) {
		for (state = IB_QPS_RESET; state <= IB_QPS_ERR; state++) {
			KUNIT_EXPECT_EQ(test, 0, rvt_core_modify_is_ok(state, odd[i], IB_QPT_RC,
								       IB_QP_STATE));
			KUNIT_EXPECT_EQ(test, 0, rvt_core_modify_is_ok(odd[i], state, IB_QPT_RC,
								       IB_QP_STATE));
		}
		KUNIT_EXPECT_EQ(test, 0, rvt_core_modify_is_ok(IB_QPS_INIT, IB_QPS_RESET, odd[i],
							       IB_QP_STATE));
	}
}

/* --- living queue pairs -------------------------------------------------------------- */

struct snapshot {
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
};

static void take_snapshot(struct rig_qp *qp, struct snapshot *s)
{
	memset(s, 0, sizeof(*s));
	rig_query(qp, &s->attr, &s->init);
}

/* Asks for something that must be refused, and that leaves no trace. */
static void refused(struct rig_qp *qp, struct ib_qp_attr *attr, int mask, int error,
		    const char *what)
{
	struct kunit *test = qp->rig->test;
	struct snapshot *s = kunit_kzalloc(test, 2 * sizeof(*s), GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, s);
	take_snapshot(qp, &s[0]);
	/* ib_core looks up a port's data before the driver can check it. */
	if ((mask & IB_QP_PORT) && !rdma_is_port_valid(qp->rig->dev, attr->port_num))
		ret = qp->rig->dev->ops.modify_qp(qp->qp, attr, mask, NULL);
	else
		ret = ib_modify_qp(qp->qp, attr, mask);
	take_snapshot(qp, &s[1]);
	KUNIT_EXPECT_EQ_MSG(test, ret, error, "%s: %s", rig_type_name(qp->type), what);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(&s[0].attr, &s[1].attr, sizeof(s->attr)), 0,
			    "%s: %s changed something", rig_type_name(qp->type), what);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(&s[0].init, &s[1].init, sizeof(s->init)), 0,
			    "%s: %s changed something", rig_type_name(qp->type), what);
	kunit_kfree(test, s);
}

/* What stops the sends of UC and UD is the end of an RC queue pair. */
static bool reachable(enum ib_qp_state state, enum ib_qp_type type)
{
	return state != IB_QPS_SQE || type != IB_QPT_RC;
}

/* A fresh pair with the first one in @state. */
static struct rig_pair pair_in(struct rig *rig, enum ib_qp_type type, enum ib_qp_state state)
{
	struct rig_pair pair = { .a = rig_qp(rig, type, NULL), .b = rig_qp(rig, type, NULL) };

	rig_bring(pair.a, state, pair.b);
	return pair;
}

static void drop_pair(struct rig *rig, struct rig_pair *pair)
{
	KUNIT_EXPECT_EQ(rig->test, rig_qp_destroy(pair->a), 0);
	KUNIT_EXPECT_EQ(rig->test, rig_qp_destroy(pair->b), 0);
}

static void each_legal_transition(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_qp_attr attr;
	int i, full, done = 0;

	for (i = 0; i < ARRAY_SIZE(edges); i++) {
		const struct edge *edge = &edges[i];

		if (!reachable(edge->from, edge->type))
			continue;
		for (full = 0; full <= 1; full++) {
			struct rig_pair pair = pair_in(rig, edge->type, edge->from);
			int mask = edge->req | (full ? edge->opt : 0);
			int ret;

			rig_attr(pair.a, edge->to, pair.b, &attr);
			attr.cur_qp_state = edge->from;
			ret = ib_modify_qp(pair.a->qp, &attr, mask);
			KUNIT_EXPECT_EQ_MSG(test, ret, 0, "%s %s to %s, mask 0x%x",
					    rig_type_name(edge->type), rig_state_name(edge->from),
					    rig_state_name(edge->to), mask);
			KUNIT_EXPECT_EQ_MSG(test, (int)rig_state(pair.a), (int)edge->to,
					    "%s %s to %s", rig_type_name(edge->type),
					    rig_state_name(edge->from), rig_state_name(edge->to));
			drop_pair(rig, &pair);
			done++;
		}
	}
	kunit_info(test, "%d transitions made\n", done);
}

/* Without STATE in the mask the state stays and attributes may change. */
static void attributes_without_a_state(struct kunit *test)
{
	struct rig_pair pair = pair_in(rig_of(test), IB_QPT_RC, IB_QPS_RTS);
	struct ib_qp_attr attr;

	rig_attr(pair.a, IB_QPS_RESET, pair.b, &attr);
	attr.min_rnr_timer = 17;
	KUNIT_EXPECT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr, IB_QP_MIN_RNR_TIMER));
	rig_query(pair.a, &attr, NULL);
	KUNIT_EXPECT_EQ(test, attr.min_rnr_timer, (u8)17);
	KUNIT_EXPECT_EQ(test, (int)attr.qp_state, (int)IB_QPS_RTS);
	/* RTR has no transition to itself. */
	pair = pair_in(rig_of(test), IB_QPT_RC, IB_QPS_RTR);
	rig_attr(pair.a, IB_QPS_RESET, pair.b, &attr);
	refused(pair.a, &attr, IB_QP_MIN_RNR_TIMER, -EINVAL, "MIN_RNR_TIMER in RTR");
}

/* Each required bit missing, each forbidden bit added, each pair that is none. */
static void case_055_wrong_attribute_sets(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	int i, from, to, bit, done = 0;
	struct ib_qp_attr attr;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (from = IB_QPS_RESET; from <= IB_QPS_ERR; from++) {
			struct rig_pair pair;

			if (!reachable(from, types[i]))
				continue;
			pair = pair_in(rig, types[i], from);
			for (to = IB_QPS_RESET; to <= IB_QPS_ERR; to++) {
				const struct edge *edge = find_edge(from, to, types[i]);
				char what[64];

				rig_attr(pair.a, to, pair.b, &attr);
				attr.cur_qp_state = from;
				if (!edge) {
					snprintf(what, sizeof(what), "%s to %s",
						 rig_state_name(from), rig_state_name(to));
					refused(pair.a, &attr, IB_QP_STATE, -EINVAL, what);
					done++;
					continue;
				}
				for (bit = 1; bit <= 20; bit++) {
					int flip = 1 << bit;

					if (!(edge->req & flip) && (edge->opt & flip))
						continue;
					snprintf(what, sizeof(what), "%s to %s, bit %d",
						 rig_state_name(from), rig_state_name(to), bit);
					refused(pair.a, &attr, edge->req ^ flip, -EINVAL, what);
					done++;
				}
			}
			drop_pair(rig, &pair);
		}
	}
	kunit_info(test, "%d requests refused\n", done);
}

/* CASES 52: numbers that are no state. */
static void case_052_no_such_state(struct kunit *test)
{
	static const int odd[] = { 7, 8, 255, -1, INT_MAX };
	struct rig_pair pair = pair_in(rig_of(test), IB_QPT_RC, IB_QPS_RTS);
	struct ib_qp_attr attr;
	int i;

	for (i = 0; i < ARRAY_SIZE(odd); i++) {
		rig_attr(pair.a, IB_QPS_RTS, pair.b, &attr);
		attr.qp_state = odd[i];
		refused(pair.a, &attr, IB_QP_STATE, -EINVAL, "no such new state");
		rig_attr(pair.a, IB_QPS_RTS, pair.b, &attr);
		attr.cur_qp_state = odd[i];
		refused(pair.a, &attr, IB_QP_STATE | IB_QP_CUR_STATE, -EINVAL,
			"no such current state");
	}
}

/* Whatever the caller claims, the real state counts. */
static void case_053_false_cur_state(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_qp_attr attr;
	int i, state, claim;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		for (state = IB_QPS_RESET; state <= IB_QPS_ERR; state++) {
			struct rig_pair pair;

			if (!reachable(state, types[i]))
				continue;
			pair = pair_in(rig, types[i], state);
			for (claim = IB_QPS_RESET; claim <= IB_QPS_ERR; claim++) {
				const struct edge *edge = find_edge(claim, IB_QPS_RTS, types[i]);
				char what[64];

				if (claim == state || !edge)
					continue;
				rig_attr(pair.a, IB_QPS_RTS, pair.b, &attr);
				attr.cur_qp_state = claim;
				snprintf(what, sizeof(what), "claims %s in %s",
					 rig_state_name(claim), rig_state_name(state));
				refused(pair.a, &attr, edge->req | IB_QP_CUR_STATE, -EINVAL,
					what);
			}
			drop_pair(rig, &pair);
		}
	}
}

/* --- values out of range ---------------------------------------------------------------- */

struct bad_value {
	const char *what;
	enum ib_qp_type type;
	enum ib_qp_state from, to;
	int extra; /* optional bits to add */
	void (*spoil)(struct rig *rig, struct ib_qp_attr *attr);
	int error;
};

#define SPOIL(name, statement)                                                      \
	static void spoil_##name(struct rig *rig, struct ib_qp_attr *attr)          \
	{                                                                           \
		statement;                                                          \
	}

SPOIL(nothing, (void)attr)
SPOIL(dlid_mcast, rdma_ah_set_dlid(&attr->ah_attr, 0xc000))
SPOIL(dlid_mcast_last, rdma_ah_set_dlid(&attr->ah_attr, 0xfffe))
SPOIL(dlid_permissive, rdma_ah_set_dlid(&attr->ah_attr, 0xffff))
SPOIL(ah_port, rdma_ah_set_port_num(&attr->ah_attr, rig->port + 1))
SPOIL(ah_port0, rdma_ah_set_port_num(&attr->ah_attr, 0))
SPOIL(rate, rdma_ah_set_static_rate(&attr->ah_attr, 200))
SPOIL(sgid_index, rdma_ah_set_grh(&attr->ah_attr, NULL, 0, 255, 1, 0))
SPOIL(sgid_empty, rdma_ah_set_grh(&attr->ah_attr, NULL, 0, rig->port_attr.gid_tbl_len - 1, 1, 0))
SPOIL(alt_dlid, rdma_ah_set_dlid(&attr->alt_ah_attr, 0xc000))
SPOIL(alt_rate, rdma_ah_set_static_rate(&attr->alt_ah_attr, 200))
SPOIL(alt_pkey, attr->alt_pkey_index = rig->port_attr.pkey_tbl_len)
SPOIL(alt_timeout, attr->alt_timeout = 32)
SPOIL(pkey, attr->pkey_index = rig->port_attr.pkey_tbl_len)
SPOIL(pkey_last, attr->pkey_index = U16_MAX)
SPOIL(rnr_timer, attr->min_rnr_timer = 32)
SPOIL(rnr_timer_last, attr->min_rnr_timer = 255)
SPOIL(port0, attr->port_num = 0)
SPOIL(port_more, attr->port_num = rig->dev->phys_port_cnt + 1)
SPOIL(port_last, attr->port_num = 255)
SPOIL(dest_qpn, attr->dest_qp_num = 0x1000000)
SPOIL(dest_qpn_last, attr->dest_qp_num = U32_MAX)
SPOIL(retry, attr->retry_cnt = 8)
SPOIL(rnr_retry, attr->rnr_retry = 8)
SPOIL(timeout, attr->timeout = 32)
SPOIL(timeout_last, attr->timeout = 255)
SPOIL(mtu0, attr->path_mtu = 0)
SPOIL(mtu6, attr->path_mtu = IB_MTU_4096 + 1)
SPOIL(dest_rd, attr->max_dest_rd_atomic = rig->attr.max_qp_rd_atom + 1)
SPOIL(rd, attr->max_rd_atomic = min(rig->attr.max_qp_init_rd_atom + 1, 255))
SPOIL(mig_armed, attr->path_mig_state = IB_MIG_ARMED)
SPOIL(mig_rearm, attr->path_mig_state = IB_MIG_REARM)
SPOIL(mig_odd, attr->path_mig_state = 3)

#define BAD(text, y, f, t, bits, how, err)                                          \
	{ text, IB_QPT_##y, IB_QPS_##f, IB_QPS_##t, bits, spoil_##how, -err }

static const struct bad_value bad_values[] = {
	BAD("bit 21", RC, INIT, RTR, 1 << 21, nothing, EOPNOTSUPP),
	BAD("bit 24", RC, INIT, RTR, 1 << 24, nothing, EOPNOTSUPP),
	BAD("RATE_LIMIT (CASES 59)", RC, RTR, RTS, IB_QP_RATE_LIMIT, nothing, EOPNOTSUPP),
	BAD("bit 30", UD, RESET, INIT, 1 << 30, nothing, EOPNOTSUPP),
	BAD("CAP", RC, RTS, RTS, IB_QP_CAP, nothing, EINVAL),
	BAD("multicast DLID", RC, INIT, RTR, 0, dlid_mcast, EINVAL),
	BAD("last multicast DLID", RC, INIT, RTR, 0, dlid_mcast_last, EINVAL),
	BAD("permissive DLID", UC, INIT, RTR, 0, dlid_permissive, EINVAL),
	BAD("AV of a port that is not there", RC, INIT, RTR, 0, ah_port, EINVAL),
	BAD("AV of port 0", RC, INIT, RTR, 0, ah_port0, EINVAL),
	BAD("AV with an unknown rate", RC, INIT, RTR, 0, rate, EINVAL),
	BAD("AV in SQD", RC, SQD, SQD, IB_QP_AV, dlid_mcast, EINVAL),
	BAD("GID index outside the table", RC, INIT, RTR, 0, sgid_index, EINVAL),
	/* This one is ib_core's own answer. */
	BAD("GID index of an empty entry (CASES 62)", RC, INIT, RTR, 0, sgid_empty, ENODATA),
	BAD("alternate multicast DLID", RC, INIT, RTR, IB_QP_ALT_PATH, alt_dlid, EINVAL),
	BAD("alternate path, unknown rate", RC, INIT, RTR, IB_QP_ALT_PATH, alt_rate, EINVAL),
	BAD("alternate P_Key index", RC, INIT, RTR, IB_QP_ALT_PATH, alt_pkey, EINVAL),
	BAD("alternate P_Key index, UC", UC, RTS, RTS, IB_QP_ALT_PATH, alt_pkey, EINVAL),
	BAD("alternate timeout 32", RC, RTS, RTS, IB_QP_ALT_PATH, alt_timeout, EINVAL),
	BAD("P_Key index", RC, RESET, INIT, 0, pkey, EINVAL),
	BAD("P_Key index 65535", UD, RESET, INIT, 0, pkey_last, EINVAL),
	BAD("P_Key index, INIT", UD, INIT, RTR, IB_QP_PKEY_INDEX, pkey, EINVAL),
	BAD("MIN_RNR_TIMER 32", RC, INIT, RTR, 0, rnr_timer, EINVAL),
	BAD("MIN_RNR_TIMER 255", RC, RTR, RTS, IB_QP_MIN_RNR_TIMER, rnr_timer_last, EINVAL),
	BAD("port 0", RC, RESET, INIT, 0, port0, EINVAL),
	BAD("port too high", UC, RESET, INIT, 0, port_more, EINVAL),
	BAD("port 255", UD, RESET, INIT, 0, port_last, EINVAL),
	BAD("port too high, INIT", UD, INIT, INIT, IB_QP_PORT, port_more, EINVAL),
	BAD("DEST_QPN of 25 bits", RC, INIT, RTR, 0, dest_qpn, EINVAL),
	BAD("DEST_QPN of 32 bits", UC, INIT, RTR, 0, dest_qpn_last, EINVAL),
	BAD("RETRY_CNT 8", RC, RTR, RTS, 0, retry, EINVAL),
	BAD("RNR_RETRY 8", RC, RTR, RTS, 0, rnr_retry, EINVAL),
	BAD("RNR_RETRY 8 in SQD", RC, SQD, SQD, IB_QP_RNR_RETRY, rnr_retry, EINVAL),
	BAD("TIMEOUT 32 (CASES 56)", RC, RTR, RTS, 0, timeout, EINVAL),
	BAD("TIMEOUT 255 (CASES 56)", RC, RTR, RTS, 0, timeout_last, EINVAL),
	BAD("PATH_MTU 0", RC, INIT, RTR, 0, mtu0, EINVAL),
	BAD("PATH_MTU 6", UC, INIT, RTR, 0, mtu6, EINVAL),
	BAD("MAX_DEST_RD_ATOMIC", RC, INIT, RTR, 0, dest_rd, EINVAL),
	BAD("MAX_QP_RD_ATOMIC (CASES 56)", RC, RTR, RTS, 0, rd, EINVAL),
	BAD("PATH_MIG_STATE ARMED", RC, RTR, RTS, IB_QP_PATH_MIG_STATE, mig_armed, EINVAL),
	BAD("PATH_MIG_STATE REARM, SQD", RC, SQD, SQD, IB_QP_PATH_MIG_STATE, mig_rearm, EINVAL),
	BAD("PATH_MIG_STATE 3", UC, RTR, RTS, IB_QP_PATH_MIG_STATE, mig_odd, EINVAL),
};

static void bad_value_describe(const struct bad_value *bad, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s to %s: %s", rig_type_name(bad->type),
		 rig_state_name(bad->from), rig_state_name(bad->to), bad->what);
}

KUNIT_ARRAY_PARAM(bad_value, bad_values, bad_value_describe);

static void case_056_value_out_of_range(struct kunit *test)
{
	const struct bad_value *bad = test->param_value;
	struct rig *rig = rig_of(test);
	struct rig_pair pair = pair_in(rig, bad->type, bad->from);
	const struct edge *edge = find_edge(bad->from, bad->to, bad->type);
	struct ib_qp_attr attr;

	KUNIT_ASSERT_NOT_NULL(test, edge);
	if (bad->spoil == spoil_rd && rig->attr.max_qp_init_rd_atom >= 255)
		kunit_skip(test, "the device takes every value");
	rig_attr(pair.a, bad->to, pair.b, &attr);
	attr.rate_limit = 1;
	/* First that it is the value that is refused. */
	bad->spoil(rig, &attr);
	refused(pair.a, &attr, edge->req | bad->extra, bad->error, bad->what);
	if (bad->error == -EOPNOTSUPP || bad->extra == IB_QP_CAP)
		return;
	rig_attr(pair.a, bad->to, pair.b, &attr);
	KUNIT_EXPECT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr, edge->req | bad->extra));
}

/* No request leads to SQE, whatever the type. */
static void sqe_cannot_be_asked_for(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct ib_qp_attr attr;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_pair pair = pair_in(rig, types[i], IB_QPS_RTS);

		rig_attr(pair.a, IB_QPS_SQE, pair.b, &attr);
		refused(pair.a, &attr, IB_QP_STATE, -EINVAL, "RTS to SQE");
		drop_pair(rig, &pair);
	}
}

/* A path MTU above the port's is legal and means the port's. */
static void path_mtu_is_bounded_by_the_port(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	struct rig_pair pair = pair_in(rig, IB_QPT_RC, IB_QPS_INIT);
	struct ib_qp_attr attr;
	int mask = rig_attr(pair.a, IB_QPS_RTR, pair.b, &attr);

	attr.path_mtu = IB_MTU_4096;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(pair.a->qp, &attr, mask));
	rig_query(pair.a, &attr, NULL);
	KUNIT_EXPECT_EQ(test, (int)attr.path_mtu,
			(int)min_t(enum ib_mtu, IB_MTU_4096, rig->port_attr.active_mtu));
}

/* PSNs are 24 bits wide; ib_core cuts a kernel consumer's too. */
static void psn_is_cut_to_24_bits(struct kunit *test)
{
	struct rig_pair pair = pair_in(rig_of(test), IB_QPT_RC, IB_QPS_INIT);
	struct ib_qp_attr attr;
	int mask = rig_attr(pair.a, IB_QPS_RTR, pair.b, &attr);

	attr.rq_psn = 0xff123456;
	KUNIT_ASSERT_EQ(test, 0, pair.a->rig->dev->ops.modify_qp(pair.a->qp, &attr, mask, NULL));
	rig_query(pair.a, &attr, NULL);
	KUNIT_EXPECT_EQ(test, attr.rq_psn, 0x123456u);
}

/* Path migration: REARM in RTS loads, MIGRATED when armed needs the fabric. */
static void case_061_migration_states(struct kunit *test)
{
	struct rig_pair pair = pair_in(rig_of(test), IB_QPT_RC, IB_QPS_RTS);
	struct ib_qp_attr attr;

	rig_attr(pair.a, IB_QPS_RTS, pair.b, &attr);
	attr.path_mig_state = IB_MIG_REARM;
	KUNIT_EXPECT_EQ(test, 0,
			ib_modify_qp(pair.a->qp, &attr, IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE));
	rig_query(pair.a, &attr, NULL);
	KUNIT_EXPECT_NE(test, (int)attr.path_mig_state, (int)IB_MIG_MIGRATED);
	if (attr.path_mig_state == IB_MIG_REARM) {
		rig_attr(pair.a, IB_QPS_RTS, pair.b, &attr);
		attr.path_mig_state = IB_MIG_MIGRATED;
		refused(pair.a, &attr, IB_QP_PATH_MIG_STATE, -EINVAL, "MIGRATED while REARM");
	}
	KUNIT_EXPECT_TRUE(test, rig_saw_event(pair.a, IB_EVENT_PATH_MIG, 0));
}

/* RESET and back to work, on the same queue pair, again and again. */
static void case_067_life_after_reset(struct kunit *test)
{
	struct rig *rig = rig_of(test);
	int i, round;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_pair pair = pair_in(rig, types[i], IB_QPS_RESET);

		for (round = 0; round < 8; round++) {
			rig_bring(pair.a, round % 2 ? IB_QPS_RTS : IB_QPS_SQD, pair.b);
			if (round % 3 == 0)
				KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_ERR));
			KUNIT_EXPECT_EQ(test, 0, rig_set_state(pair.a, IB_QPS_RESET));
			KUNIT_EXPECT_EQ(test, (int)rig_state(pair.a), (int)IB_QPS_RESET);
		}
		drop_pair(rig, &pair);
	}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(table_against_ib_core),
	KUNIT_CASE(case_052_states_outside_the_table),
	KUNIT_CASE(each_legal_transition),
	KUNIT_CASE(attributes_without_a_state),
	KUNIT_CASE(case_055_wrong_attribute_sets),
	KUNIT_CASE(case_052_no_such_state),
	KUNIT_CASE(case_053_false_cur_state),
	KUNIT_CASE_PARAM(case_056_value_out_of_range, bad_value_gen_params),
	KUNIT_CASE(sqe_cannot_be_asked_for),
	KUNIT_CASE(path_mtu_is_bounded_by_the_port),
	KUNIT_CASE(psn_is_cut_to_24_bits),
	KUNIT_CASE(case_061_migration_states),
	KUNIT_CASE(case_067_life_after_reset),
	{}
};

RIG_SUITE(rvt_modify, cases);
