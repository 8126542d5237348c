/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reasons of failed WRs (shared/reason.h): store, load and format them.
 *
 * The process that breaks a QP, its owner or a peer's requester, stores the
 * reason.  The QP's owner, the referee and urxe why load it.  No lock is
 * needed: the first writer claims the entry by compare-and-swap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "shared/reason.h"

/* Store a reason, unless one is stored or being written. */
void reason_keep(struct urxe_kept_reason *to, const struct urxe_reason *r);
/*
 * Load the reason.  False: none is stored, or it is being written, or its
 * writer died.
 */
bool reason_kept(const struct urxe_kept_reason *from, struct urxe_reason *r);
/* Clear the entry, for its owner. */
void reason_forget(struct urxe_kept_reason *of);

/*
 * Text, rule and usual cause of a reason.  Any member of it may be damaged
 * (it is from shared memory); the result is valid nevertheless.
 */
void reason_text(const struct urxe_reason *r, char *buf, size_t room);
const char *reason_source(const struct urxe_reason *r);
const char *reason_cause(const struct urxe_reason *r);

/* Names of enum values; "?" for unknown ones. */
const char *reason_state_name(uint64_t ibv_qp_state);
const char *reason_op_name(uint64_t ibv_wr_opcode);
const char *reason_status_name(uint64_t ibv_wc_status);
/* "DISCONNECTED" of RDMA_CM_EVENT_DISCONNECTED */
const char *reason_cm_event_name(uint64_t rdma_cm_event_type);
