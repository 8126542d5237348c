// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Comparison of the attributes of the two QPs of a connection; pair.h. */
#include "pair.h"
#include "referee.h"
#include "verbs/qp.h"

/* Attributes of this QP and of the peer's. */
struct ends {
	uint32_t qpn; /* of the peer */
	uint8_t mtu, other_mtu; /* enum ibv_mtu */
	/* max_rd_atomic, and max_dest_rd_atomic of the peer */
	uint8_t reads, other_reads;
};

/*
 * Is the peer's QP connected to qp?  It may have been connected to another QP
 * since.
 */
static bool end_is_of(const struct urxe_qp_sh *end, const struct urxe_qp *qp)
{
	uint64_t conn = load_acquire(&end->conn);

	return URXE_CONN_STATE(conn) >= IBV_QPS_RTR &&
	       URXE_CONN_DEST(conn) == qp->qpn;
}

/* Read the attributes.  False: the peer's QP is not known yet. */
static bool pair_read(struct urxe_qp *qp, struct ends *e)
{
	const struct urxe_conn *c = &qp->conn;
	bool known = false;

	urxe_lock_outside(&qp->lock);
	if (c->peer && c->sh && end_is_of(c->sh, qp)) {
		known = true;
		e->qpn = c->qpn;
		e->mtu = qp->attr.path_mtu;
		e->other_mtu = load_relaxed(&c->sh->path_mtu);
		e->reads = qp->attr.max_rd_atomic;
		e->other_reads = load_relaxed(&c->sh->max_dest_rd_atomic);
	}
	urxe_unlock_outside(&qp->lock);
	return known;
}

static void pair_report_mtu(const struct shadow_qp *q, const struct ends *e)
{
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_mtu_mismatch,
			     .at = &q->connected,
			     .at_is = "connected" };

	f.object = shadow_name(&q->s, name);
	finding_report(&f, "path_mtu is %u, but that of QP 0x%x is %u",
		       128u << e->mtu, e->qpn, 128u << e->other_mtu);
}

static void pair_report_reads(const struct shadow_qp *q, const struct ends *e)
{
	char name[FINDING_NAME];
	struct finding f = { .rule = RULE_rd_atomic_mismatch,
			     .at = &q->connected,
			     .at_is = "connected" };

	f.object = shadow_name(&q->s, name);
	finding_report(
		&f,
		"READs or atomics were posted with max_rd_atomic %u, but QP 0x%x has max_dest_rd_atomic %u",
		e->reads, e->qpn, e->other_reads);
}

void pair_check(struct shadow_qp *q)
{
	struct ends e;

	if ((q->type != IBV_QPT_RC && q->type != IBV_QPT_UC) ||
	    q->s.inherited || (q->compared && (q->compared_reads || !q->reads)))
		return;
	if (!pair_read(to_uqp(q->qp), &e))
		return;
	referee_lock();
	if (!q->compared && e.mtu != e.other_mtu && e.other_mtu &&
	    e.other_mtu <= IBV_MTU_4096)
		pair_report_mtu(q, &e);
	q->compared = true;
	if (q->reads && !q->compared_reads) {
		q->compared_reads = true;
		if (e.reads > e.other_reads)
			pair_report_reads(q, &e);
	}
	referee_unlock();
}
