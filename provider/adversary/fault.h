/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fault injection: rules make verbs, WRs, objects, the port or the process
 * fail (chaos/fault.h has the format of the rules; docs/faults.md describes
 * them).
 *
 *	fault_verbs.c	verbs that fail with an errno value
 *	fault_wr.c	WRs of a send queue that end with an error status
 *	fault_watch.c	counts posts, receives and completions, and calls
 *			fault_strike() when a rule applies
 *	fault_event.c	the effect: events, signals; and the thread that
 *			serves rules with ms=
 *	fault_link.c	links that are taken down and set up again
 *
 * abi/interposers.c calls the first three functions below: fault_wrap() once in
 * a process, before the first device is opened, the others for each context.
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "chaos/fault.h"
#include "engine/core/context.h"
#include "engine/qp/qp.h"

/*
 * Install the interposers that the rules of @f need in @ops. Called once in a
 * process.
 */
void fault_wrap(struct pabi_ops *ops, struct faults *f);
/*
 * Return the errno value with which a rule has opening @ctx fail, or 0.
 * -EINVAL, with fabric_why(): its fabric has no link that a rule names.
 */
int fault_open(struct faults *f, const struct urxe_context *ctx);
/*
 * Register @ctx, which was just opened, for rules with ms= and for events of
 * the port and the device. The first call starts the clock of ms=.
 */
void fault_opened(struct faults *f, struct urxe_context *ctx);

/* ------------------------------------------------------- internal */

void fault_wrap_verbs(struct pabi_ops *ops, struct faults *f);
void fault_wrap_watch(struct pabi_ops *ops, struct faults *f);

/*
 * Match the WRs of @qp against the rules when they are begun: install the
 * transport of fault_wr.c. Return false if there is no memory.
 */
bool fault_watch_wrs(struct faults *f, struct urxe_qp *qp);

/*
 * Count a call of @call and return the errno value with which it is to fail,
 * or 0.
 */
int fault_errno(struct faults *f, enum fault_call call,
		const struct fault_subject *s);

/* The objects of the call in which a rule strikes; NULL or 0 if unknown. */
struct fault_place {
	struct urxe_context *ctx;
	uint32_t qpn; /* 0: none */
	struct urxe_cq *cq;
	struct urxe_srq *srq;
};
/* Carry out the effect of @r. Takes locks and may raise a signal or sleep. */
void fault_strike(const struct fault_rule *r, const struct fault_place *at);
/*
 * Return whether a rule has raised IBV_EVENT_DEVICE_FATAL in this process.
 * From then on verbs that create, modify or query objects fail with EIO.
 */
bool fault_device_is_dead(void);
/*
 * Remove @ctx, which is about to be closed. Sets the port up if a rule took
 * it down and no other context of this process uses that fabric.
 */
void fault_closing(struct urxe_context *ctx);

/* The names of @ctx. Both arrays are of shared memory, and constant. */
static inline struct fault_subject
fault_subject_ctx(const struct urxe_context *ctx)
{
	const struct urxe_dev *dev = ctx->fabric->dev;

	return (struct fault_subject){
		.host = dev->host[ctx->hca->host % URXE_MAX_HOST].name,
		.device = ctx->hca->name,
	};
}

static inline struct fault_subject fault_subject_qp(const struct urxe_qp *qp)
{
	struct fault_subject s = fault_subject_ctx(qp->ctx);

	s.qpn = qp->qpn;
	s.type = FAULT_TYPE(qp->type);
	return s;
}
