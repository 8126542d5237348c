// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reports of WRs that fail and of verbs that fail, with the reasons that
 * URXE_LOG=1 prints.
 *
 * failed_check() is called for each completion with an error, under
 * referee_lock().  refused_report() is called by the log (engine/core/log.h) in
 * the thread whose verb fails, and needs no lock.
 */
#include <stdio.h>
#include <string.h>

#include "engine/core/log.h"
#include "engine/qp/qp.h"
#include "failed.h"
#include "shadow.h"
#include "verbs/qp.h"

/* Report "failed with LOC_PROT_ERR: REASON; usual cause: CAUSE". */
static void failed_report(struct finding *f, const struct urxe_reason *r,
			  const char *status)
{
	char why[300];

	reason_text(r, why, sizeof(why));
	finding_report(f, "%s: %s; usual cause: %s", status, why,
		       reason_cause(r));
}

/*
 * Was the QP broken by the request of another QP?  Then its flushed WRs are
 * reported, because no WR of this QP failed with an error of its own.
 */
static bool flushed_by_peer(const struct urxe_reason *r, uint32_t qpn)
{
	return r->qpn && r->qpn != qpn;
}

void failed_check(const struct shadow_qp *q, const struct shadow_queue *queue,
		  const struct shadow_wr *wr, const struct ibv_wc *wc)
{
	char name[FINDING_NAME], status[80];
	struct finding f = { .rule = RULE_wr_failed,
			     .at = &wr->posted,
			     .at_is = "posted",
			     .may_be_handled = true };
	bool flushed = wc->status == IBV_WC_WR_FLUSH_ERR;
	struct urxe_reason r;
	bool known;

	if (!q || q->opened)
		return;
	known = reason_kept(&to_uqp(q->qp)->sh->broken, &r);
	if (flushed && !(known && flushed_by_peer(&r, q->s.number)))
		return;
	f.object = queue_wr_name(queue, wr, name);
	if (flushed)
		snprintf(status, sizeof(status),
			 "was flushed: the %s of QP 0x%x was refused",
			 reason_op_name(r.opcode), r.qpn);
	else
		snprintf(status, sizeof(status), "failed with %s",
			 reason_status_name(wc->status));
	if (known)
		failed_report(&f, &r, status);
	else
		finding_report(&f, "%s", status);
}

/*
 * Find the name of the verb in a message of the log, and return the rest.
 * Messages are "VERB: reason".  Those of injected faults (URXE_FAULTS) have
 * the verb elsewhere, and are returned whole.  If there is none, verb[] is
 * kept.
 */
static const char *verb_in(const char *text, char verb[FINDING_NAME])
{
	static const char in_name[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	const char *name = strstr(text, "ibv_");
	int n;

	if (!name)
		return text;
	n = (int)strspn(name, in_name);
	snprintf(verb, FINDING_NAME, "%.*s", n, name);
	return name == text && !strncmp(text + n, ": ", 2) ? text + n + 2 :
							     text;
}

static void refused_report(uint32_t qpn, bool refusal, const char *text)
{
	char verb[FINDING_NAME] = "a verb";
	const struct finding f = { .rule = RULE_verb_refused,
				   .object = verb,
				   .here = true,
				   .may_be_handled = true };

	(void)qpn;
	if (!refusal)
		return;
	text = verb_in(text, verb);
	finding_report(&f, "%s", text);
}

void failed_watch(void)
{
	urxe_log_also(refused_report);
}
