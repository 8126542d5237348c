// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reasons of failures: keep them with the QP, log them, and record them for
 * `urxe why`. See why.h.
 */
#include "base/clock.h"
#include "engine/core/log.h"
#include "engine/core/process.h"
#include "qp.h"
#include "engine/core/tally.h"
#include "why.h"

#define WHY 400

static void why_of(struct urxe_reason *r, const struct urxe_qp *qp,
		   const struct urxe_wqe *w)
{
	r->qpn = qp->qpn;
	r->pid = urxe_pid;
	r->wr_id = w->wr_id;
	r->opcode = w->opcode;
}

void why_take(struct urxe_qp *qp, uint32_t index)
{
	/* outstanding WRs fail in any order; the oldest one breaks the QP */
	if (!qp->why.code || (int32_t)(index - qp->why_at) < 0) {
		why_noted(&qp->why);
		qp->why_at = index;
	}
	why_settled();
}

/* Record a failure of QP @qpn of arena @a, for `urxe why`. */
static void why_record(struct urxe_arena *a, uint32_t qpn,
		       const struct urxe_reason *r)
{
	const uint32_t nth = fetch_add_relaxed(&a->failed_next, 1);
	struct urxe_failed *f = &a->failed[nth % URXE_FAILED];

	reason_forget(&f->why);
	store_relaxed(&f->qpn, qpn);
	store_relaxed(&f->nth, nth + 1);
	store_relaxed(&f->at, clock_now());
	reason_keep(&f->why, r);
}

/* ------------------------------------------------------- logging */

/*
 * Log an event and its reason, and in a second line the rule that applies and
 * the usual cause.
 */
#define why_log(qpn, r, fmt, ...)                                   \
	do {                                                        \
		char why_buf[WHY];                                  \
                                                                    \
		reason_text(r, why_buf, sizeof(why_buf));           \
		urxe_log_qp(qpn, fmt ": %s", __VA_ARGS__, why_buf); \
		urxe_log_qp(qpn, ": rule: %s; usual cause: %s",     \
			    reason_source(r), reason_cause(r));     \
	} while (0)

static void why_log_wr(const struct urxe_qp *qp, const struct urxe_wqe *w,
		       const char *what)
{
	struct urxe_reason r;

	if (!urxe_log_on)
		return;
	why_noted(&r);
	why_log(qp->qpn, &r, ": wr_id 0x%llx (%s) %s",
		(unsigned long long)w->wr_id, reason_op_name(w->opcode), what);
}

void why_waits(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	why_log_wr(qp, w, "waits");
	why_settled();
}

void why_dropped(const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	why_log_wr(qp, w, "is dropped");
	why_settled();
}

void why_failed(struct urxe_qp *qp, const struct urxe_wqe *w,
		enum ibv_wc_status status)
{
	struct urxe_reason *r = &qp->why;

	fetch_add_relaxed(&urxe_tally.failed, 1);
	why_of(r, qp, w);
	r->status = status;
	if (urxe_log_on)
		why_log(qp->qpn, r, ": wr_id 0x%llx (%s) failed with %s (%d)",
			(unsigned long long)w->wr_id, reason_op_name(w->opcode),
			reason_status_name(status), (int)status);
	reason_keep(&qp->sh->broken, r);
	why_record(qp->ctx->arena, qp->qpn, r);
	r->code = REASON_NONE;
}

/* ------------------------------------------------------- broken QPs */

void why_refused(struct urxe_arena *a, struct urxe_qp_sh *sh,
		 const struct urxe_qp *qp, const struct urxe_wqe *w)
{
	struct urxe_reason r;

	why_noted(&r);
	r.qpn = 0;
	if (qp)
		why_of(&r, qp, w);
	reason_keep(&sh->broken, &r);
	why_record(a, URXE_CONN_QPN(load_relaxed(&sh->conn)), &r);
	if (!qp)
		why_settled();
}

void why_broken(struct urxe_qp *qp, enum reason code)
{
	struct urxe_reason r = { .code = code };

	r.value[0] = qp->qpn;
	reason_keep(&qp->sh->broken, &r);
}

void why_forget(struct urxe_qp *qp)
{
	reason_forget(&qp->sh->broken);
	qp->why.code = REASON_NONE;
	store_relaxed(&qp->reason_logged, false);
}

void why_log_broken(struct urxe_qp *qp)
{
	struct urxe_reason r;

	if (load_relaxed(&qp->reason_logged) ||
	    !reason_kept(&qp->sh->broken, &r) || r.qpn == qp->qpn ||
	    r.code == REASON_MODIFIED ||
	    exchange_relaxed(&qp->reason_logged, true))
		return;
	if (r.qpn && r.pid != urxe_pid)
		fetch_add_relaxed(&urxe_tally.failed, 1);
	if (!urxe_log_on)
		return;
	if (r.qpn)
		why_log(qp->qpn, &r,
			" refused the %s of QP 0x%x (process %d, wr_id 0x%llx)",
			reason_op_name(r.opcode), r.qpn, (int)r.pid,
			(unsigned long long)r.wr_id);
	else
		why_log(qp->qpn, &r, " is in %s",
			reason_state_name(qp_state(qp)));
}

void why_flushed(struct urxe_qp *qp, const char *what, uint32_t n,
		 uint64_t first)
{
	const char *state = reason_state_name(qp_state(qp));
	struct urxe_reason r;
	char why[WHY] = "the reason is not recorded";

	if (!urxe_log_on)
		return;
	if (!reason_kept(&qp->sh->broken, &r))
		r.qpn = 0;
	else
		reason_text(&r, why, sizeof(why));
	if (r.qpn == qp->qpn)
		urxe_log_qp(
			qp->qpn,
			": %u %s flushed, first wr_id 0x%llx; the QP is in %s because wr_id 0x%llx (%s) failed with %s: %s",
			n, what, (unsigned long long)first, state,
			(unsigned long long)r.wr_id, reason_op_name(r.opcode),
			reason_status_name(r.status), why);
	else if (r.qpn)
		urxe_log_qp(
			qp->qpn,
			": %u %s flushed, first wr_id 0x%llx; the QP is in %s because the %s of QP 0x%x was refused: %s",
			n, what, (unsigned long long)first, state,
			reason_op_name(r.opcode), r.qpn, why);
	else
		urxe_log_qp(
			qp->qpn,
			": %u %s flushed, first wr_id 0x%llx; the QP is in %s: %s",
			n, what, (unsigned long long)first, state, why);
}
