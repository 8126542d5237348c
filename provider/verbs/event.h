/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tags of events, and the wait for events when an object is destroyed. */
#pragma once

#include "cq.h"
#include "qp.h"
#include "shared/event_tag.h"
#include "srq.h"

/* Number + 1 of the context's async FIFO, 0 if it has none. */
uint32_t event_async_fifo(const struct ibv_context *ibv);

/*
 * Allocate a tag for @object and return it in *@tag.  A read of an event with
 * this tag returns the object's address.  0 or -errno
 */
int event_watch(const struct ibv_context *ibv, const void *object,
		enum event_kind kind, uint64_t *tag);
/* Release @tag of an object whose creation failed. */
void event_forget(const struct ibv_context *ibv, uint64_t tag);

/*
 * Called by the destroyer of an object.  Remove its unread events, and wait
 * until the application has acknowledged those that it read
 * (ibv_destroy_cq(3), ibv_destroy_qp(3)).  No process may be able to raise
 * another event of it.
 */
void event_wait_cq(struct urxe_vcq *cq);
void event_wait_qp(struct ibv_qp *qp);
void event_wait_srq(struct ibv_srq *srq);

/* Reinitialise the lock in the child of a fork. */
void event_after_fork(void);
