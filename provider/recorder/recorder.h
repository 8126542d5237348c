/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The recorder: the outermost room before the verbs, entered if URXE_TRACE
 * names a file (kernel-shim/trace).  It writes down what is called, what
 * becomes of each WR, and why something is refused; it changes nothing.
 */
#pragma once

#include "abi/pabi/pabi.h"

struct urxe_context;

/*
 * If URXE_TRACE asks for it put the recorder's verbs in front of those in ops,
 * once in a process.  0 or -errno.
 */
int recorder_wrap(struct pabi_ops *ops);

/* A device was opened. */
void recorder_opened(const struct urxe_context *ctx);

/* A pointer or a number, as a value of a record. */
#define V(x) (uint64_t)(uintptr_t)(x)

/* What each of its files puts there, and the verbs that they stand in front of.
 */
void recorder_wrap_calls(struct pabi_ops *ops);
void recorder_wrap_objects(struct pabi_ops *ops);
void recorder_wrap_posts(struct pabi_ops *ops);
void recorder_wrap_polls(struct pabi_ops *ops);

/* ibv_wr_* and ibv_start_poll ... are in the objects themselves. */
void recorder_wrap_qp_ex(struct ibv_qp *qp);
void recorder_wrap_cq_ex(struct ibv_cq_ex *cq);

/*
 * Payload: how much of it is wanted is in the environment.  payload_begin()
 * returns 0 or -EINVAL; payload_record() writes down w's, its QP's lock held.
 */
int payload_begin(void);
/* How many bytes of each message. */
uint32_t payload_is_wanted(void);
struct urxe_qp;
struct urxe_wqe;
void payload_record(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    uint32_t psn);

/* From now on what the engine does with requests is written down. */
void recorder_watch_engine(void);
