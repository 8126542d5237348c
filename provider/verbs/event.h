/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "cq.h"
#include "qp.h"
#include "shared/event_tag.h"
#include "srq.h"

/* Number + 1 of the context's async FIFO, 0 if it has none. */
uint32_t event_async_fifo(const struct ibv_context *ibv);

/* Have its events read as the object's address: the tag, or -errno. */
int event_watch(const struct ibv_context *ibv, const void *object,
		enum event_kind kind, uint64_t *tag);
/* It was not made after all. */
void event_forget(const struct ibv_context *ibv, uint64_t tag);

/*
 * Before an object is destroyed: take its unread events back and wait until
 * those that were read are acknowledged (man ibv_destroy_cq, ibv_destroy_qp).
 * Nobody may be able to raise another one.
 */
void event_wait_cq(struct urxe_vcq *cq);
void event_wait_qp(struct ibv_qp *qp);
void event_wait_srq(struct ibv_srq *srq);

/* In the child of a fork. */
void event_after_fork(void);
