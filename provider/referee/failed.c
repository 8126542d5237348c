// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * WRs that fail and verbs that are refused, with the reasons that URXE_LOG has.
 */
#include <stdio.h>
#include <string.h>

#include "engine/log.h"
#include "engine/qp.h"
#include "failed.h"
#include "shadow.h"
#include "verbs/qp.h"

/* "failed with LOC_PROT_ERR: why; mostly: the usual cause" */
static void failed_tell(struct finding *f, const struct urxe_reason *r,
			const char *status)
{
	char why[300];

	reason_text(r, why, sizeof(why));
	finding_tell(f, "%s: %s; mostly: %s", status, why, reason_cause(r));
}

/* Flushed WRs are of interest if the QP was broken by another one's. */
static bool flushed_by_peer(const struct urxe_reason *r, uint32_t qpn)
{
	return r->qpn && r->qpn != qpn;
}

void failed_look(const struct shadow_qp *q, const struct shadow_queue *queue,
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
			 "is flushed, because the %s of QP 0x%x was refused",
			 reason_op_name(r.opcode), r.qpn);
	else
		snprintf(status, sizeof(status), "failed with %s",
			 reason_status_name(wc->status));
	if (known)
		failed_tell(&f, &r, status);
	else
		finding_tell(&f, "%s", status);
}

/* A line for URXE_LOG, "VERB: why"; what is of a WR is told when it is polled.
 */
static void refused_tell(uint32_t qpn, const char *text)
{
	struct finding f = { .rule = RULE_verb_refused,
			     .here = true,
			     .may_be_handled = true };
	const char *colon = strstr(text, ": ");
	char verb[FINDING_NAME] = "a verb";

	if (qpn)
		return;
	if (colon && (size_t)(colon - text) < sizeof(verb)) {
		snprintf(verb, sizeof(verb), "%.*s", (int)(colon - text), text);
		text = colon + 2;
	}
	f.object = verb;
	finding_tell(&f, "%s", text);
}

void failed_watch(void)
{
	urxe_log_also(refused_tell);
}
