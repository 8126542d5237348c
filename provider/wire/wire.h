/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The wire: QPs whose other end is on another host, over RoCE v2.  A room that
 * is entered if URXE_WIRE has an address of this network namespace, and which
 * gives such QPs a carrier (requester.h, datagram.c); those within the fabric
 * go on as they do without it.
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/context.h"

/* The address in URXE_WIRE; NULL: there is none, or it is no address, which
 * wire_why() says then. */
const uint8_t *wire_address(void);
const char *wire_why(void);

/* Put the wire's verbs in front of those in ops, once in a process. */
void wire_wrap(struct pabi_ops *ops);

/* A context was opened; is about to be closed; is in the child of a fork. */
void wire_opened(struct urxe_context *ctx);
void wire_closing(struct urxe_context *ctx);
void wire_after_fork(struct urxe_context *ctx);
