/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waiting for those who may be using what was taken away; shared/guard.h.
 * They wait asleep, for those alone who are at that very thing, and not for
 * the dead.
 */
#pragma once

#include "context.h"
#include "shared/guard.h"

/* A key of that context is not valid any more: nobody uses it when it returns. */
void quiesce_mr(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		uint32_t pd);
/* False: somebody still may, at that time of clock_now(); 0: wait for ever. */
bool quiesce_mw(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		uint64_t until);
/*
 * The same of a QP: no request is served by it.  from: the QP whose requests
 * alone may be, 0: any.
 */
void quiesce_qp(struct urxe_fabric *f, struct urxe_arena *a, uint32_t qpn,
		uint32_t from);
/* The same of an SRQ or its ring, and of a CQ's ring. */
void quiesce_srq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index);
void quiesce_cq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index);
/* This process's pollers, who may have looked it up, have left. */
void quiesce_pollers(struct urxe_context *ctx);

/*
 * For those who must not wait.  Is the requester of QP peer at QP qpn, which is
 * connected to it?
 */
bool quiesce_qp_busy(struct urxe_fabric *f, uint32_t qpn, uint32_t peer);
/* Who is at that thing leaves in a moment: true, or does not. */
bool quiesce_try(struct urxe_fabric *f, struct urxe_arena *a,
		 const struct guard_thing *t);
