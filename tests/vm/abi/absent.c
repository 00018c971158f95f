// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* absent.c - what the stock provider does not offer is refused, and nothing breaks */
#include "abi.h"

static bool not_offered(int error)
{
	return error == EOPNOTSUPP || error == ENOSYS;
}

#define absent(call)					\
	do {						\
		errno = 0;				\
		is((call) == NULL, 1);			\
		yes(not_offered(errno));		\
	} while (0)

TEST(not_offered_by_the_provider)
{
	struct ibv_xrcd_init_attr xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
	};
	struct ibv_cq_init_attr_ex cq_ex = { .cqe = 10, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_flow_attr flow = { .size = sizeof(flow), .port = 1 };
	struct ibv_td_init_attr td = { 0 };
	struct ends e = make_ends(&usual, NULL);
	struct ibv_qp_init_attr_ex qp_ex = {
		.send_cq = e.scq,
		.recv_cq = e.rcq,
		.cap = usual,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_srq_init_attr_ex srq_ex = {
		.attr = { .max_wr = 10, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
	};

	absent(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	absent(ibv_open_xrcd(ctx, &xrcd));
	absent(ibv_create_cq_ex(ctx, &cq_ex));
	absent(ibv_create_qp_ex(ctx, &qp_ex));
	absent(ibv_create_srq_ex(ctx, &srq_ex));
	absent(ibv_create_flow(e.a, &flow));
	absent(ibv_alloc_td(ctx, &td));
	errno = 0;
	yes(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_ACCESS));
	yes(not_offered(errno));

	post_receives(e.b, NULL, 0, 5);
	consume(&e, 0, 5);
	end_ends(&e);
}
