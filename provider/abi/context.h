/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include "pabi/pabi.h"

extern const struct pabi_ops urxe_ops; /* ops.c */

/*
 * The same with the rooms before them that the environment asks for (rooms.c).
 * NULL and errno: it cannot be understood.
 */
const struct pabi_ops *rooms_ops(void);
/* A context was opened with them. */
struct urxe_context;
void rooms_opened(struct urxe_context *ctx);
/* It is about to be closed; it is in the child of a fork. */
void rooms_closing(struct urxe_context *ctx);
void rooms_after_fork(struct urxe_context *ctx);

/* Both return core's verbs_context, or NULL and errno. */
void *urxe_alloc_context(struct ibv_device *device, int cmd_fd, void *priv);
void *urxe_import_context(struct ibv_device *device, int cmd_fd);

/* Count what fails, and say so at the end (tally.c). */
void tally_begin(void);
void tally_after_fork(void);

/* pthread_atfork's three. */
void context_before_fork(void);
void context_after_fork_parent(void);
void context_after_fork_child(void);
