/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The recorder: interposers and an observer that write a trace
 * (kernel-shim/trace) if URXE_TRACE names a file. It records the calls of
 * verbs, the stages of each WR, and the reasons of refused calls and failed
 * WRs. It changes nothing. docs/trace.md describes the trace.
 *
 *	calls.c		all verbs but those of the data path
 *	objects.c	creation of objects, ibv_modify_qp, events
 *	posts.c		WRs and receives that are posted
 *	polls.c		completions that are polled
 *	engine.c	requests in the engine; reasons of failures
 *	payload.c	the first bytes of messages
 *
 * abi/interposers.c installs the recorder after all other interposers but the
 * adversary's undefined.c, so that it sees the calls of the program, and the
 * values that the provider returned.
 */
#pragma once

#include "abi/pabi/pabi.h"

struct urxe_context;

/*
 * If URXE_TRACE is set, open the trace and install the interposers in @ops.
 * Called once in a process. Return 0 or -errno, after a message on stderr.
 */
int recorder_wrap(struct pabi_ops *ops);

/* Record the fabric of @ctx, which was just opened. */
void recorder_opened(const struct urxe_context *ctx);

/* A pointer or a number as a value of a record. */
#define V(x) (uint64_t)(uintptr_t)(x)

/* Each of these saves *ops and installs the interposers of its file. */
void recorder_wrap_calls(struct pabi_ops *ops);
void recorder_wrap_objects(struct pabi_ops *ops);
void recorder_wrap_posts(struct pabi_ops *ops);
void recorder_wrap_polls(struct pabi_ops *ops);

/*
 * Install the interposers of ibv_wr_complete and of ibv_start_poll and
 * ibv_next_poll, whose pointers are in the QP and the CQ.
 */
void recorder_wrap_qp_ex(struct ibv_qp *qp);
void recorder_wrap_cq_ex(struct ibv_cq_ex *cq);

/*
 * Read URXE_TRACE_PAYLOAD. Return 0, or -EINVAL if it is not a number up to
 * TRACE_MAX_PAYLOAD.
 */
int payload_begin(void);
/* Return how many bytes of each message are to be recorded. */
uint32_t payload_is_wanted(void);
struct urxe_qp;
struct urxe_wqe;
/*
 * Record the first bytes of the data of @w, as far as they can be read. @psn
 * is that of its first packet. The caller holds qp->lock.
 */
void payload_record(const struct urxe_qp *qp, const struct urxe_wqe *w,
		    uint32_t psn);

/*
 * Install the observer of the engine and have the reasons of failures
 * recorded. Called before a QP is used.
 */
void recorder_watch_engine(void);
