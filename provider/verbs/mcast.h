/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_MCAST_H
#define URXE_MCAST_H

#include <infiniband/verbs.h>

int urxe_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid);
int urxe_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid);

#endif
