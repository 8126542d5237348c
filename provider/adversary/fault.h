/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults on purpose (chaos/fault.h has the rules): verbs that fail
 * (fault_verbs.c), WRs that end with an error (fault_wr.c), and what befalls
 * objects, the port and the process at a moment (fault_watch.c sees the moment,
 * fault_event.c has what happens then).
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "chaos/fault.h"
#include "engine/context.h"
#include "engine/qp.h"

/* Put what the rules need in front of the verbs in ops, once in a process. */
void fault_wrap(struct pabi_ops *ops, struct faults *f);
/* Does opening the device fail?  An errno, 0: no. */
int fault_open(struct faults *f);
/* A context was opened. */
void fault_opened(struct faults *f, struct urxe_context *ctx);

/* ------------------------------------------------------- among its files */

void fault_wrap_verbs(struct pabi_ops *ops, struct faults *f);
void fault_wrap_watch(struct pabi_ops *ops, struct faults *f);

/* Have qp's WRs asked after when they are begun; false: no memory. */
bool fault_watch_wrs(struct faults *f, struct urxe_qp *qp);

/* The errno that a rule has for a call, or 0. */
int fault_errno(struct faults *f, enum fault_call call,
		const struct fault_subject *s);

/* Where a rule strikes; what is not known is NULL. */
struct fault_place {
	struct urxe_context *ctx;
	uint32_t qpn; /* 0: none */
	struct urxe_cq *cq;
	struct urxe_srq *srq;
};
void fault_strike(const struct fault_rule *r, const struct fault_place *at);
/* After IBV_EVENT_DEVICE_FATAL: nothing is made any more. */
bool fault_device_is_dead(void);
/* A context is about to be closed. */
void fault_closing(struct urxe_context *ctx);

static inline struct fault_subject fault_subject_qp(const struct urxe_qp *qp)
{
	return (struct fault_subject){ .qpn = qp->qpn,
				       .type = FAULT_TYPE(qp->type) };
}
