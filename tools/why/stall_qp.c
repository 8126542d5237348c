// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waits of QPs: send queues that make no progress, full send queues,
 * requesters inside a guard, and receives without a message.
 *
 * The owner of a QP records what its send queue waits for in struct urxe_wait
 * (shared/layout.h). The reason is derived from the peer's state, with the
 * checks of conn_ready() (provider/engine/qp/conn.c) in the same order.
 */
#include <infiniband/verbs.h>

#include "base/plural.h"
#include "fabric/reason.h"
#include "shared/atomic_lock.h"
#include "stall.h"

/* ---------------------------------------------------------- send queues */

static uint32_t qp_state(const struct view_qp *q)
{
	return URXE_CONN_STATE(load_relaxed(&q->sh.conn));
}

static bool qp_is_connected(const struct view_qp *q)
{
	return load_relaxed(&q->sh.type) == IBV_QPT_RC ||
	       load_relaxed(&q->sh.type) == IBV_QPT_UC ||
	       load_relaxed(&q->sh.type) == IBV_QPT_XRC_SEND;
}

static uint32_t qp_dest(const struct view_qp *q)
{
	return qp_is_connected(q) ? URXE_CONN_DEST(load_relaxed(&q->sh.conn)) :
				    0;
}

static bool is_atomic(uint32_t opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Find a stopped process that holds one of the locks of atomic operations. */
static bool atomic_holder(const struct view *v, struct view_process *p)
{
	uint64_t word;
	uint32_t i;

	for (i = 0; i < URXE_ATOMIC_SHARED + URXE_ATOMIC_PRIVATE; i++) {
		word = load_relaxed(&v->dev->atomic_lock[i]);
		if (ATOMIC_OWNER(word) &&
		    view_process_of(v, ATOMIC_OWNER(word), p) &&
		    process_is_stopped(p))
			return true;
	}
	return false;
}

/* Append the WR that moved the QP to ERR, and why, if it is recorded. */
static void stall_append_broken(struct stall *s, const struct view_qp *q)
{
	char text[240];
	struct urxe_reason r;

	if (!reason_kept(&q->sh.broken, &r))
		return;
	reason_text(&r, text, sizeof(text));
	stall_append(s, "; cause: %s wr_id %llu of QP 0x%x: %s",
		     reason_op_name(r.opcode), (unsigned long long)r.wr_id,
		     r.qpn, text);
}

static bool peer_is_dead(const struct view_qp *peer)
{
	return !peer->ctx->alive || peer->process.state == '-';
}

/*
 * InfiniBand: are GRH, LIDs or P_Keys of the two ends the reason for silence?
 */
static bool subnet_mismatch(struct stall *s, const struct view *v,
			    const struct view_qp *q, const struct view_qp *peer)
{
	const struct urxe_hca *here = hca_of_ctx(v->dev, q->ctx->slot);
	const struct urxe_hca *there = hca_of_ctx(v->dev, peer->ctx->slot);
	const uint16_t to = load_relaxed(&q->sh.dlid);
	const uint16_t back = load_relaxed(&peer->sh.dlid);
	const uint16_t mine =
		port_pkey(&here->subnet, load_relaxed(&q->sh.pkey_index));
	const uint16_t theirs =
		port_pkey(&there->subnet, load_relaxed(&peer->sh.pkey_index));

	if (!here->infiniband && !there->infiniband)
		return false;
	if (here->infiniband != there->infiniband) {
		stall_append(
			s,
			": no link joins an InfiniBand and an Ethernet port");
		stall_ends(s, "QPs of devices with one link layer");
	} else if (load_relaxed(&q->sh.roce) != load_relaxed(&peer->sh.roce)) {
		stall_append(s, ": is_global differs between the two QPs");
		stall_ends(s, "QPs that both send a GRH, or neither");
	} else if (!port_has_lid(&there->subnet, to)) {
		stall_append(
			s,
			": this QP sends to LID %u, the port of the remote QP has LID %u",
			to, port_lid(&there->subnet));
		stall_ends(s, "dlid as the lid of the peer's ibv_query_port");
	} else if (!port_has_lid(&here->subnet, back)) {
		stall_append(
			s,
			": the remote QP expects packets from LID %u, this port has LID %u",
			back, port_lid(&here->subnet));
		stall_ends(
			s,
			"dlid at the peer as the lid of ibv_query_port here");
	} else if (!pkeys_match(mine, theirs)) {
		stall_append(
			s,
			": P_Key 0x%04x of this QP does not match 0x%04x of the remote QP",
			mine, theirs);
		stall_ends(s, "QPs of one partition, not both limited members");
	} else {
		return false;
	}
	return true;
}

/*
 * The peer exists, is in a state in which it responds, and is connected to
 * @q: find out why it does not respond.
 */
static void answer_of_connected(struct stall *s, const struct view *v,
				const struct view_qp *q,
				const struct view_qp *peer)
{
	const struct urxe_qp_sh *a = &q->sh, *b = &peer->sh;
	uint32_t sends = load_relaxed(&a->sq_psn) & URXE_PSN_MASK;
	uint32_t expects = load_relaxed(&b->epsn) & URXE_PSN_MASK;
	struct view_process holder;
	uint8_t sgid[16], dgid[16];

	if (subnet_mismatch(s, v, q, peer))
		return;
	shared_gid_get(&a->sgid, sgid);
	shared_gid_get(&a->dgid, dgid);
	if (load_relaxed(&a->roce) != load_relaxed(&b->roce)) {
		stall_append(
			s,
			": the GID of the remote QP is of RoCE v%u, the GID of this QP of v%u",
			load_relaxed(&b->roce), load_relaxed(&a->roce));
		stall_ends(
			s,
			"QPs connected with GIDs of one RoCE version (sgid_index)");
	} else if (load_relaxed(&a->roce) != URXE_IB_LOCAL &&
		   (!shared_gid_is(&b->dgid, sgid) ||
		    !shared_gid_is(&b->sgid, dgid))) {
		stall_append(
			s,
			": the GIDs of the two QPs (sgid_index, dgid) do not match");
		stall_ends(s, "QPs connected with each other's GIDs");
	} else if (sends != expects) {
		s->kind = "psn";
		stall_append(
			s,
			": this QP sends PSN 0x%x, the remote QP expects PSN 0x%x",
			sends, expects);
		stall_ends(
			s,
			"QPs connected with the sq_psn of each as the rq_psn of the other");
	} else if (process_is_stopped(&peer->process)) {
		s->kind = "peer-stopped";
		stall_append(s, ": %s is stopped",
			     process_name(&peer->process));
		stall_ends(s, "SIGCONT to %s, or its debugger",
			   process_name(&peer->process));
	} else if (is_atomic(load_relaxed(&a->wait.opcode)) &&
		   atomic_holder(v, &holder)) {
		s->kind = "atomic";
		stall_append(
			s,
			": %s is stopped and holds a lock of atomic operations",
			process_name(&holder));
		stall_ends(s, "SIGCONT to %s", process_name(&holder));
	} else {
		stall_ends(s, "a response");
	}
}

static void answer_of_peer(struct stall *s, const struct view *v,
			   const struct view_qp *q, const struct view_qp *peer)
{
	const uint64_t conn = load_relaxed(&peer->sh.conn);
	const uint32_t state = URXE_CONN_STATE(conn);
	const char *name = process_name(&peer->process);

	if (peer_is_dead(peer)) {
		s->kind = "peer-dead";
		stall_append(s, ": its process, %s, is dead", name);
		return;
	}
	if (state < IBV_QPS_RTR || state == IBV_QPS_ERR) {
		s->kind = "peer-state";
		stall_append(s, " of %s: the remote QP is in %s and %s", name,
			     reason_state_name(state),
			     state == IBV_QPS_ERR ?
				     "does not respond" :
				     "receives nothing before RTR");
		stall_ends(s,
			   state == IBV_QPS_ERR ?
				   "both QPs reset and reconnected" :
				   "ibv_modify_qp to RTR by %s",
			   name);
		return;
	}
	if (URXE_CONN_DEST(conn) != q->qpn) {
		s->kind = "peer-other";
		stall_append(
			s,
			" of %s: the remote QP is connected to QP 0x%x, not to this QP",
			name, URXE_CONN_DEST(conn));
		stall_ends(
			s,
			"both QPs reset and connected with each other's dest_qp_num");
		return;
	}
	stall_append(s, " of %s", name);
	answer_of_connected(s, v, q, peer);
}

static void wait_for_answer(struct stall *s, const struct view *v,
			    const struct view_qp *q)
{
	const uint32_t dest = qp_dest(q);
	const struct view_qp *peer = view_qp(v, dest);
	const uint32_t own = hca_index(v->dev, view_hca(v, q));
	const uint32_t other = peer ? hca_index(v->dev, view_hca(v, peer)) :
				      own;

	if (!stall_has_path(v, own, other)) {
		s->kind = "port-down";
		stall_append(s, "for a response");
		stall_no_path(s, v, own, other);
		return;
	}
	stall_append(s, "for a response of QP 0x%x", dest);
	if (peer) {
		answer_of_peer(s, v, q, peer);
		return;
	}
	s->kind = "peer-gone";
	stall_append(
		s,
		": no such QP exists (destroyed, its process is dead, or wrong dest_qp_num)");
}

static void wait_for_receive(struct stall *s, const struct view *v,
			     const struct view_qp *q)
{
	const struct view_qp *peer = view_qp(v, qp_dest(q));

	stall_append(s, "for a receive (RNR): QP 0x%x", qp_dest(q));
	if (peer)
		stall_append(s, " of %s", process_name(&peer->process));
	stall_append(s, " has no receive posted");
	if (!peer)
		return;
	if (process_is_stopped(&peer->process)) {
		stall_append(s, ", and the process is stopped");
		stall_ends(s, "SIGCONT to the process; ");
	}
	stall_ends(s, "ibv_post_%s by %s",
		   peer->sh.srq || load_relaxed(&q->sh.type) ==
					   IBV_QPT_XRC_SEND ?
			   "srq_recv" :
			   "recv",
		   process_name(&peer->process));
}

/* Append when the wait ends by itself: after how many retries, or never. */
static void wait_ends(struct stall *s, const struct view *v,
		      const struct urxe_wait *w)
{
	const uint64_t until = load_relaxed(&w->until);
	const char *status = load_relaxed(&w->what) == URXE_WAIT_RECEIVE ?
				     "RNR_RETRY_EXC_ERR" :
				     "RETRY_EXC_ERR";

	if (*s->ends)
		stall_ends(s, "; ");
	if (load_relaxed(&w->left) != URXE_WAIT_ENDLESS)
		stall_ends(
			s, "%s after %u more retr%s, the next in %llu ms",
			status, load_relaxed(&w->left),
			load_relaxed(&w->left) == 1 ? "y" : "ies",
			(unsigned long long)(until > v->at ?
						     (until - v->at) / 1000000 :
						     0));
	else
		stall_ends(s, "%s",
			   load_relaxed(&w->what) == URXE_WAIT_RECEIVE ?
				   "no retry limit (rnr_retry is 7)" :
				   "no ACK timeout (timeout is 0)");
}

static struct stall *stall_of_wr(struct stalls *s, const struct view_qp *q,
				 const char *kind)
{
	const struct urxe_wait *w = &q->sh.wait;
	struct stall *out =
		stall_add(s, kind, &q->process, load_relaxed(&w->head));

	out->qpn = q->qpn;
	out->peer = qp_dest(q);
	out->has_wr = true;
	out->wr_id = load_relaxed(&w->wr_id);
	out->queued = load_relaxed(&w->queued);
	out->since = load_relaxed(&w->since);
	stall_append(out, "%s wr_id %llu waits ",
		     reason_op_name(load_relaxed(&w->opcode)),
		     (unsigned long long)out->wr_id);
	return out;
}

static void stall_of_queue(struct stalls *s, const struct view *v,
			   const struct view_qp *q)
{
	const struct urxe_wait *w = &q->sh.wait;
	struct stall *out;

	switch (load_relaxed(&w->what)) {
	case URXE_WAIT_RECEIVE:
		out = stall_of_wr(s, q, "rnr");
		if (q->is_remote)
			stall_of_wire(out, v, q);
		else
			wait_for_receive(out, v, q);
		wait_ends(out, v, w);
		break;
	case URXE_WAIT_ANSWER:
		out = stall_of_wr(s, q, "no-answer");
		if (q->is_remote)
			stall_of_wire(out, v, q);
		else
			wait_for_answer(out, v, q);
		wait_ends(out, v, w);
		break;
	case URXE_WAIT_SQD:
		if (qp_state(q) != IBV_QPS_SQD)
			return;
		out = stall_of_wr(s, q, "sqd");
		stall_append(out, "for the QP to leave SQD");
		stall_ends(out, "ibv_modify_qp to RTS by %s",
			   process_name(&q->process));
		break;
	case URXE_WAIT_FLIGHT:
		if (q->is_remote) {
			out = stall_of_wr(s, q, "no-answer");
			stall_of_wire(out, v, q);
			stall_wire_ends(out, v, q);
			break;
		}
		out = stall_of_wr(s, q, "in-flight");
		stall_append(out, "because the adversary or a fault delays it");
		if (load_relaxed(&w->flags) & URXE_WAIT_FENCED)
			stall_append(out, ", and the next WR has a fence");
		stall_ends(out, process_is_stopped(&q->process) ?
					"SIGCONT to the process" :
					"polls, or the end of the delay");
		break;
	default:
		return;
	}
	if (out->queued > 1)
		stall_append(out, "; %u more queued behind it",
			     out->queued - 1);
}

/* ---------------------------------------------------------- full queues */

static void stall_of_full(struct stalls *s, const struct view *v,
			  const struct view_qp *q)
{
	const struct urxe_wait *w = &q->sh.wait;
	const struct view_qp *peer = view_qp(v, qp_dest(q));
	const struct view_cq *cq = view_cq(v, q->ctx, q->sh.send_cq);
	const uint32_t full = load_relaxed(&w->full);
	struct stall *out;

	if (full != URXE_FULL_UNPOLLED && full != URXE_FULL_UNSIGNALED)
		return;
	if (full == URXE_FULL_UNPOLLED &&
	    (!cq || !cq->unread ||
	     (peer && (load_relaxed(&q->sh.sq_psn) & URXE_PSN_MASK) !=
			      load_relaxed(&peer->sh.epsn))))
		return; /* the queue has made progress since */
	out = stall_add(s, "sq-full", &q->process, load_relaxed(&w->full_at));
	out->qpn = q->qpn;
	out->since = load_relaxed(&w->full_since);
	stall_append(out,
		     "the send queue is full, and a WR was refused (ENOMEM): ");
	if (full == URXE_FULL_UNPOLLED) {
		stall_append(out, "%u completion%s in CQ %u %s not polled",
			     cq->unread, plural(cq->unread), cq->index,
			     cq->unread == 1 ? "is" : "are");
		stall_ends(out, "ibv_poll_cq of CQ %u by %s", cq->index,
			   process_name(&q->process));
		return;
	}
	stall_append(
		out,
		"all WRs are done and unsignaled, so no completion frees their entries");
	stall_ends(
		out,
		"ibv_modify_qp to RESET; to prevent it, set IBV_SEND_SIGNALED in at least one of max_send_wr consecutive WRs");
}

/* ---------------------------------------------------------- requests */

/*
 * A requester that uses objects of another process: its guard is raised. The
 * guard's sequence number is the `place`, so the wait is listed only if both
 * views show the same use.
 */
static void stall_of_call(struct stalls *s, const struct view *v,
			  const struct view_qp *q)
{
	const uint32_t dest =
		load_relaxed(&v->dev->guard[qpn_index(q->qpn)].dest);
	const struct view_qp *peer = view_qp(v, dest);
	struct view_process holder;
	struct stall *out;

	if (!q->inside || !q->ctx->alive)
		return;
	out = stall_add(s, "in-call", &q->process, q->turn);
	out->qpn = q->qpn;
	out->peer = dest;
	if (process_is_stopped(&q->process)) {
		stall_append(
			out,
			"%s is stopped while it executes a request to QP 0x%x: ibv_dereg_mr and ibv_destroy_qp of the remote process block",
			process_name(&q->process), dest);
		stall_ends(out, "SIGCONT, or SIGKILL");
		return;
	}
	stall_append(out, "a request to QP 0x%x is in progress", dest);
	if (peer && process_is_stopped(&peer->process)) {
		stall_append(
			out,
			", and %s, which may have to copy for it, is stopped",
			process_name(&peer->process));
		stall_ends(out, "SIGCONT to %s, or a timeout of 0.5 s",
			   process_name(&peer->process));
	} else if (atomic_holder(v, &holder)) {
		stall_append(
			out,
			", and %s is stopped and holds a lock of atomic operations",
			process_name(&holder));
		stall_ends(out, "SIGCONT to %s, or a timeout of 0.5 s",
			   process_name(&holder));
	} else {
		out->level = STALL_IDLE;
		stall_ends(out, "the end of the copy");
	}
}

void stalls_of_queues(struct stalls *s, const struct view *v)
{
	uint32_t i;

	for (i = 0; i < v->qps; i++) {
		if (!v->qp[i].ctx->alive)
			continue;
		stall_of_queue(s, v, &v->qp[i]);
		stall_of_full(s, v, &v->qp[i]);
		stall_of_call(s, v, &v->qp[i]);
	}
}

/* ---------------------------------------------------------- receives */

/* Posted receives of a QP in RTR or later that wait for a message. */
static void stall_of_receives(struct stalls *s, const struct view *v,
			      const struct view_qp *q)
{
	const uint32_t n = view_receives(v, q), state = qp_state(q);
	const struct view_qp *peer = view_qp(v, qp_dest(q));
	uint64_t psn = load_relaxed(&q->sh.epsn) & URXE_PSN_MASK;
	struct stall *out;

	if (!n || state < IBV_QPS_RTR || state == IBV_QPS_ERR)
		return;
	out = stall_add(s, "receives", &q->process,
			psn << 32 | load_relaxed(&q->sh.rq.cons));
	out->qpn = q->qpn;
	out->peer = qp_dest(q);
	out->level = STALL_IDLE;
	if (q->is_remote) {
		stall_of_wire_receives(out, v, q, n);
		return;
	}
	stall_append(out, "%u receive%s posted: no message arrives", n,
		     plural_is(n));
	if (!qp_is_connected(q)) {
		stall_ends(out, "a message");
		return;
	}
	if (peer && !peer_is_dead(peer) && qp_state(peer) != IBV_QPS_ERR &&
	    (qp_state(peer) < IBV_QPS_RTR || qp_dest(peer) == q->qpn)) {
		stall_append(out, " from QP 0x%x of %s, which is in %s",
			     out->peer, process_name(&peer->process),
			     reason_state_name(qp_state(peer)));
		if (process_is_stopped(&peer->process))
			stall_append(out, ", and the process is stopped");
		stall_ends(out, "a message from %s",
			   process_name(&peer->process));
		return;
	}
	out->kind = "no-sender";
	out->level = STALL_STALLS;
	stall_append(out, ", and none can: QP 0x%x %s", out->peer,
		     !peer		? "does not exist" :
		     peer_is_dead(peer) ? "belongs to a dead process" :
		     qp_state(peer) == IBV_QPS_ERR ?
					  "is in ERR" :
					  "is connected to another QP");
	if (peer && qp_state(peer) == IBV_QPS_ERR)
		stall_append_broken(out, peer);
	stall_ends(out, "ibv_modify_qp to ERR, which flushes the receives");
}

void stalls_of_receives(struct stalls *s, const struct view *v)
{
	uint32_t i;

	for (i = 0; i < v->qps; i++)
		if (v->qp[i].ctx->alive)
			stall_of_receives(s, v, &v->qp[i]);
}
