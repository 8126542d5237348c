/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs. */
#ifndef URXE_QP_H
#define URXE_QP_H

#include "engine/urxe.h"

/* The state; a peer's NAK may have made it ERR. */
static inline enum ibv_qp_state qp_state(const struct urxe_qp *qp)
{
	return URXE_CONN_STATE(atomic_load_explicit(&qp->sh->conn,
						    memory_order_seq_cst));
}

/* To ERR, or to SQE unless it is in ERR already (then false). */
bool qp_set_error(struct urxe_qp *qp, enum ibv_qp_state state);
/* The same with IBV_EVENT_QP_FATAL: its CQ takes no more completions. */
void qp_fatal(struct urxe_qp *qp);
/* The send queue came to rest in SQD: raise IBV_EVENT_SQ_DRAINED once. */
void qp_drained(struct urxe_qp *qp);
/* Empty both queues and forget the connection (RESET, destroy). */
void qp_forget(struct urxe_qp *qp);

/* Both creating verbs; init->comp_mask says what is there. */
struct ibv_qp *qp_create(struct ibv_context *ctx,
			 struct ibv_qp_init_attr_ex *init);
struct ibv_qp *urxe_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init);
int urxe_destroy_qp(struct ibv_qp *qp);
int urxe_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init);
int urxe_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

#endif
