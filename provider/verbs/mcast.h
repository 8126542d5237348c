/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast groups: who is attached. */
#ifndef URXE_MCAST_H
#define URXE_MCAST_H

#include "engine/urxe.h"

#define URXE_MCAST_QPN 0xffffff

/* A multicast GID: ff00::/8, or an IPv4 one in its mapped form. */
bool mcast_is_group(const uint8_t gid[16]);

/*
 * The QPNs attached to a group, at most URXE_MAX_MCAST_ATTACH; how many.
 * Read without a lock: who attaches or detaches meanwhile may be missed.
 */
uint32_t mcast_members(struct urxe_dev *dev, const uint8_t gid[16],
		       uint32_t *qpn);

int urxe_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid);
int urxe_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
		      uint16_t lid);

#endif
