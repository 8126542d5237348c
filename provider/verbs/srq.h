/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. */
#ifndef URXE_SRQ_H
#define URXE_SRQ_H

#include "engine/urxe.h"

struct ibv_srq *urxe_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *init);
struct ibv_srq *urxe_create_srq_ex(struct ibv_context *ctx,
				   struct ibv_srq_init_attr_ex *init);
int urxe_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int urxe_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int urxe_destroy_srq(struct ibv_srq *srq);
int urxe_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int urxe_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad);

/* Requesters may be parked for want of a receive: have them look again. */
void srq_wake_waiters(struct urxe_srq *srq);

#endif
