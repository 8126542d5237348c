/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Reasons (shared/reason.h): kept in shared memory, and in words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "shared/reason.h"

/* Unless there is one. */
void reason_keep(struct urxe_kept_reason *to, const struct urxe_reason *r);
/* False: there is none, or nobody knows it. */
bool reason_kept(const struct urxe_kept_reason *from, struct urxe_reason *r);
void reason_forget(struct urxe_kept_reason *of);

/* All of them may be damaged. */
void reason_text(const struct urxe_reason *r, char *buf, size_t room);
const char *reason_source(const struct urxe_reason *r);
const char *reason_cause(const struct urxe_reason *r);

/* Names, also of values that do not exist. */
const char *reason_state_name(uint64_t ibv_qp_state);
const char *reason_op_name(uint64_t ibv_wr_opcode);
const char *reason_status_name(uint64_t ibv_wc_status);
/* "DISCONNECTED" of RDMA_CM_EVENT_DISCONNECTED */
const char *reason_cm_event_name(uint64_t rdma_cm_event_type);
