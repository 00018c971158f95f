// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* mcast.c - multicast groups; ib_core has checked type, GID and LID */
#include "rvt.h"

int rvt_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return rvt_core_mcast_attach(to_rvt_qp(ibqp)->core, gid->raw, lid);
}

int rvt_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return rvt_core_mcast_detach(to_rvt_qp(ibqp)->core, gid->raw, lid);
}
