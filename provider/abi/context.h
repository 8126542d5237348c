/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Functions of provider/abi that libibverbs, pthread_atfork() and each other
 * call.
 */
#pragma once

#include "pabi/pabi.h"

/* The verbs without interposers; ops.c. */
extern const struct pabi_ops urxe_ops;

/*
 * interposers.c.  An interposer is a layer of operations in front of the verbs:
 * the wire, the adversary, faults, the referee, the recorder.
 *
 * Return urxe_ops with the interposers that the environment requests in
 * front.  They are installed once in a process.  NULL and errno if an
 * environment variable is invalid, an interposer cannot be installed, or a
 * fault rule makes the opening of the device fail.
 */
const struct pabi_ops *interposers_ops(void);
struct urxe_context;
/*
 * Let the interposers refuse @ctx, which is about to be opened: an errno value
 * that a rule injects, or -errno with fabric_why(); else 0.
 */
int interposers_open(const struct urxe_context *ctx);
/* Notify the interposers that @ctx was opened. */
void interposers_opened(struct urxe_context *ctx);
/* Notify them that @ctx is about to be closed. */
void interposers_closing(struct urxe_context *ctx);
/* Notify them, in the child of a fork, that @ctx was inherited. */
void interposers_after_fork(struct urxe_context *ctx);

/*
 * Open the device that @cmd_fd names.  Return libibverbs' verbs_context, or
 * NULL and errno.  @cmd_fd is owned by the callee, also on failure.
 */
void *urxe_alloc_context(struct ibv_device *device, int cmd_fd, void *priv);
void *urxe_import_context(struct ibv_device *device, int cmd_fd);

/* Arrange that a summary of failures is printed at exit; tally.c. */
void tally_begin(void);
/* Reset the counts in the child of a fork. */
void tally_after_fork(void);

/* The three handlers for pthread_atfork(). */
void context_before_fork(void);
void context_after_fork_parent(void);
void context_after_fork_child(void);
