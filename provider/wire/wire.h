/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire: QPs whose peer is on another host, over RoCE v2 in UDP.  It is an
 * interposer, installed if URXE_WIRE names an address.  It gives such QPs a
 * transport (requester/roce_requester.h; for UD requester/datagram.c).  QPs
 * within the fabric keep their own transport.
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/core/context.h"

/*
 * Return the address in URXE_WIRE, or NULL if it is unset or invalid.  In the
 * latter case wire_why() returns the reason, otherwise "".
 */
const uint8_t *wire_address(void);
const char *wire_why(void);

/* Install the wire's verbs in front of those in ops, once in a process. */
void wire_wrap(struct pabi_ops *ops);

/*
 * Hooks: a context was opened; is about to be closed; is in the child of a
 * fork.
 */
void wire_opened(struct urxe_context *ctx);
void wire_closing(struct urxe_context *ctx);
void wire_after_fork(struct urxe_context *ctx);
