/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues, as libibverbs has them. */
#ifndef URXE_VERBS_SRQ_H
#define URXE_VERBS_SRQ_H

#include "abi/pabi/pabi.h"
#include "engine/srq.h"

struct urxe_vsrq {
	struct pabi_srq v;
	struct urxe_srq srq;
	struct urxe_xrcd *xrcd; /* XRC, else NULL */
};

static inline struct urxe_vsrq *to_vsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct urxe_vsrq, v.srq);
}

static inline struct urxe_srq *to_usrq(struct ibv_srq *srq)
{
	return &to_vsrq(srq)->srq;
}

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

#endif
