// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_modify_qp: the QP state machine of the IB specification, 10.3.1, with
 * the required and optional attributes of each transition, 11.2.5.2.
 *
 * The state is part of the connection word, qp->sh->conn, in shared memory.
 * The owner changes it under qp->lock; a requester in another process may set
 * it to ERR at any time, which is why qp_step() is a compare-and-swap.
 */
#include <errno.h>
#include <string.h>

#include "access.h"
#include "ah.h"
#include "engine/copy/bounce.h"
#include "engine/qp/flush.h"
#include "engine/core/log.h"
#include "engine/mem/peer.h"
#include "engine/exec/requester.h"
#include "engine/qp/wait.h"
#include "engine/qp/why.h"
#include "profile.h"
#include "qp.h"
#include "verbs.h"

struct transition {
	uint8_t from, to;
	int required, optional;
};

#define CONNECT (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define ENABLE (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define REQUESTER                                               \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define RESPONDER (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define STATE_ACCESS (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)
#define STATE_QKEY (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define PKEY_ACCESS (IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS)

enum {
	R = IBV_QPS_RESET,
	I = IBV_QPS_INIT,
	TR = IBV_QPS_RTR,
	TS = IBV_QPS_RTS,
	D = IBV_QPS_SQD,
	SE = IBV_QPS_SQE,
};

/*
 * The transitions of each QP type; {0} terminates a table.  Transitions to
 * RESET and to ERR are allowed from all states and not listed.  XRC QPs use
 * the table of RC, without the attributes that qp_absent() returns.
 */
static const struct transition rc[] = {
	{ R, I, ENABLE, 0 },
	{ I, I, 0, ENABLE },
	{ I, TR, CONNECT | RESPONDER, PKEY_ACCESS },
	{ TR, TS, REQUESTER | IBV_QP_SQ_PSN,
	  STATE_ACCESS | IBV_QP_MIN_RNR_TIMER },
	{ TS, TS, 0, STATE_ACCESS | IBV_QP_MIN_RNR_TIMER },
	{ TS, D, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ D, TS, 0, STATE_ACCESS | IBV_QP_MIN_RNR_TIMER },
	{ D, D, 0,
	  IBV_QP_PORT | IBV_QP_AV | REQUESTER | RESPONDER | STATE_ACCESS |
		  IBV_QP_PKEY_INDEX },
	{ 0 }
};

static const struct transition uc[] = {
	{ R, I, ENABLE, 0 },
	{ I, I, 0, ENABLE },
	{ I, TR, CONNECT, PKEY_ACCESS },
	{ TR, TS, IBV_QP_SQ_PSN, STATE_ACCESS },
	{ TS, TS, 0, STATE_ACCESS },
	{ TS, D, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ D, TS, 0, STATE_ACCESS },
	{ D, D, 0, IBV_QP_AV | STATE_ACCESS | IBV_QP_PKEY_INDEX },
	{ SE, TS, 0, STATE_ACCESS },
	{ 0 }
};

static const struct transition ud[] = {
	{ R, I, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ I, I, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ I, TR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ TR, TS, IBV_QP_SQ_PSN, STATE_QKEY },
	{ TS, TS, 0, STATE_QKEY },
	{ TS, D, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ D, TS, 0, STATE_QKEY },
	{ D, D, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ SE, TS, 0, STATE_QKEY },
	{ 0 }
};

static const struct transition *qp_transitions(enum ibv_qp_type type)
{
	return type == IBV_QPT_UC ? uc : type == IBV_QPT_UD ? ud : rc;
}

/*
 * Return the attributes of RC QPs that an XRC QP of this type does not have.
 */
static int qp_absent(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND ? RESPONDER :
	       type == IBV_QPT_XRC_RECV ? REQUESTER & ~IBV_QP_TIMEOUT :
					  0;
}

/* Flags that apply only to MRs are accepted and have no effect on a QP. */
#define ACCESS_FLAGS (MR_ACCESS | IBV_ACCESS_OPTIONAL_RANGE)

/* Return the table entry of a transition, {0} if it is not allowed. */
static struct transition qp_transition(enum ibv_qp_type type,
				       enum ibv_qp_state from,
				       enum ibv_qp_state to)
{
	const struct transition *t;
	struct transition found;

	for (t = qp_transitions(type); t->from || t->to; t++)
		if (t->from == from && t->to == to)
			break;
	found = *t;
	found.required &= ~qp_absent(type);
	return found;
}

/* Check the transition and the attribute mask.  errno value */
static int qp_check_transition(const struct urxe_qp *qp, enum ibv_qp_state from,
			       enum ibv_qp_state to, int mask)
{
	struct transition t = { .to = to };

	mask &= ~IBV_QP_STATE;
	if (to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
		t = qp_transition(qp->type, from, to);
		if ((!t.from && !t.to) ||
		    (from == IBV_QPS_RTS && to == IBV_QPS_SQD &&
		     !profile_has(qp->ctx, PROFILE_HAS(SQD)))) {
			urxe_why(
				"ibv_modify_qp: QP 0x%x: invalid transition from %s to %s",
				qp->qpn, reason_state_name(from),
				reason_state_name(to));
			return EINVAL;
		}
	}
	if ((mask & t.required) == t.required &&
	    !(mask & ~(t.required | t.optional)))
		return 0;
	urxe_why(
		"ibv_modify_qp: QP 0x%x: wrong attr_mask from %s to %s: missing bits 0x%x, invalid bits 0x%x",
		qp->qpn, reason_state_name(from), reason_state_name(to),
		t.required & ~mask, mask & ~(t.required | t.optional));
	return EINVAL;
}

/*
 * The range of an attribute, which is checked if @mask has its bit.  `key` is
 * that of its limit in the device's profile, or PROFILE_KEYS_COUNT.
 */
struct range {
	int bit;
	const char *name;
	uint32_t value, min, max;
	enum profile_key key;
};

static int qp_check_range(const struct urxe_qp *qp, const struct range *r,
			  int mask)
{
	if (!(mask & r->bit) || (r->value >= r->min && r->value <= r->max))
		return 0;
	urxe_why("ibv_modify_qp: QP 0x%x: %s is %u, and must be %u to %u",
		 qp->qpn, r->name, r->value, r->min, r->max);
	return r->key == PROFILE_KEYS_COUNT ?
		       EINVAL :
		       profile_error(&qp->ctx->profile, r->key, EINVAL);
}

static int qp_check_values(struct urxe_qp *qp, const struct ibv_qp_attr *a,
			   int mask)
{
#define RANGE_OF(key, bit, field, min, max)                   \
	{                                                     \
		IBV_QP_##bit, #field, a->field, min, max, key \
	}
#define RANGE(...) RANGE_OF(PROFILE_KEYS_COUNT, __VA_ARGS__)
#define LIMIT(key, bit, field, min)              \
	RANGE_OF(PROFILE_##key, bit, field, min, \
		 (uint32_t)profile_limit(qp->ctx, key))
	const struct range ranges[] = {
		RANGE(PORT, port_num, 1, 1),
		RANGE(PKEY_INDEX, pkey_index, 0, port_pkeys(qp->ctx->hca) - 1u),
		RANGE_OF(PROFILE_max_mtu, PATH_MTU, path_mtu, IBV_MTU_256,
			 profile_mtu(profile_limit(qp->ctx, max_mtu))),
		RANGE(DEST_QPN, dest_qp_num, 0, URXE_QPN_MASK),
		RANGE(TIMEOUT, timeout, 0, 31),
		RANGE(RETRY_CNT, retry_cnt, 0, 7),
		RANGE(RNR_RETRY, rnr_retry, 0, 7),
		RANGE(MIN_RNR_TIMER, min_rnr_timer, 0, 31),
		LIMIT(max_qp_init_rd_atom, MAX_QP_RD_ATOMIC, max_rd_atomic, 0),
		LIMIT(max_qp_rd_atom, MAX_DEST_RD_ATOMIC, max_dest_rd_atomic,
		      0),
	};
#undef LIMIT
#undef RANGE
#undef RANGE_OF
	size_t i;
	int ret;

	for (i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		ret = qp_check_range(qp, &ranges[i], mask);
		if (ret)
			return ret;
	}
	if (mask & IBV_QP_ACCESS_FLAGS && a->qp_access_flags & ~ACCESS_FLAGS) {
		urxe_why(
			"ibv_modify_qp: QP 0x%x: qp_access_flags 0x%x are not supported, only those in 0x%x",
			qp->qpn, a->qp_access_flags, ACCESS_FLAGS);
		return EINVAL;
	}
	ret = mask & IBV_QP_AV ? ah_check(qp->ctx, &a->ah_attr) : 0;
	if (ret)
		urxe_fail(ret, "ibv_modify_qp");
	return -ret;
}

/* The value of max_rd_atomic or max_dest_rd_atomic; 0 may have a meaning. */
static uint8_t rd_atomic_of(const struct urxe_qp *qp, uint8_t value,
			    enum profile_key limit)
{
	const struct urxe_profile *p = &qp->ctx->profile;

	if (value || !(p->value[PROFILE_quirks] & PROFILE_RD_ATOMIC_0_IS_MAX))
		return value;
	return (uint8_t)p->value[limit];
}

static void qp_apply_av(struct urxe_qp *qp, const struct ibv_ah_attr *a)
{
	const struct urxe_hca *hca = qp->ctx->hca;
	const uint8_t index = a->grh.sgid_index;
	struct urxe_qp_sh *sh = qp->sh;

	store_relaxed(&sh->dlid, a->dlid);
	store_relaxed(&sh->roce,
		      a->is_global ? gid_roce(hca, index) : URXE_IB_LOCAL);
	if (!a->is_global)
		return;
	shared_gid_put(&sh->sgid, hca->gid[gid_row(hca, index)].raw);
	shared_gid_put(&sh->dgid, a->grh.dgid.raw);
}

/* Copy the attributes in @mask to the QP and to its shared part. */
static void qp_apply(struct urxe_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *own = &qp->attr;
	struct urxe_qp_sh *sh = qp->sh;

#define TAKE(bit, field)                       \
	do {                                   \
		if (mask & (bit))              \
			own->field = a->field; \
	} while (0)
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
#undef TAKE
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = rd_atomic_of(qp, a->max_rd_atomic,
						  PROFILE_max_qp_init_rd_atom);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = rd_atomic_of(
			qp, a->max_dest_rd_atomic, PROFILE_max_qp_rd_atom);
	if (mask & IBV_QP_SQ_PSN) {
		qp->psn = a->sq_psn & URXE_PSN_MASK;
		store_relaxed(&sh->sq_psn, qp->psn);
	}
	if (mask & IBV_QP_RQ_PSN) {
		own->rq_psn = a->rq_psn & URXE_PSN_MASK;
		store_relaxed(&sh->epsn, own->rq_psn);
	}
	if (qp->type == IBV_QPT_UD)
		qp->mtu_shift =
			profile_mtu(profile_limit(qp->ctx, active_mtu)) + 7;
	if (mask & IBV_QP_QKEY) {
		own->qkey = a->qkey;
		store_relaxed(&sh->qkey, a->qkey);
	}
	/*
	 * Store only the attributes in @mask: the others of an XRC target may
	 * have been set through a handle in another process.
	 */
	if (mask & IBV_QP_MIN_RNR_TIMER)
		store_relaxed(&sh->min_rnr_timer, a->min_rnr_timer);
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		store_relaxed(&sh->max_dest_rd_atomic, own->max_dest_rd_atomic);
	if (mask & IBV_QP_PATH_MTU) {
		qp->mtu_shift = a->path_mtu + 7;
		store_relaxed(&sh->path_mtu, a->path_mtu);
	}
	if (mask & IBV_QP_AV)
		qp_apply_av(qp, &a->ah_attr);
	if (mask & IBV_QP_PKEY_INDEX)
		store_relaxed(&sh->pkey_index, (uint8_t)a->pkey_index);
	if (mask & IBV_QP_ACCESS_FLAGS)
		store_relaxed(&sh->access, a->qp_access_flags);
	/*
	 * Requesters that have checked the path of this QP check it again
	 * when they find another sh->path.
	 */
	if (mask & (IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_ACCESS_FLAGS |
		    IBV_QP_PKEY_INDEX))
		fetch_add_acq_rel(&sh->path, 1);
	if (mask & (IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_PKEY_INDEX))
		qp->conn.path = 0;
}

/*
 * Change the state from that of @from to @to.  False if the connection word
 * has changed, because a requester has set the QP to ERR.
 */
static bool qp_step(struct urxe_qp *qp, uint64_t from, enum ibv_qp_state to,
		    int mask)
{
	uint32_t dest = mask & IBV_QP_DEST_QPN ? qp->attr.dest_qp_num :
						 URXE_CONN_DEST(from);

	return cas_seq_cst(&qp->sh->conn, &from, URXE_CONN(qp->qpn, dest, to));
}

static void qp_reset(struct urxe_qp *qp)
{
	qp_forget(qp, URXE_CONN(qp->qpn, 0, IBV_QPS_RESET));
	memset(&qp->attr, 0, sizeof(qp->attr));
	store_relaxed(&qp->sh->min_rnr_timer, 0);
	store_relaxed(&qp->sh->max_dest_rd_atomic, 0);
	store_relaxed(&qp->sh->path_mtu, 0);
	store_relaxed(&qp->sh->access, 0);
	qp->psn = 0;
	qp->sqd_notify = false;
}

/* Return whether the QP has a requester that is connected to one other QP. */
static bool qp_has_dest(const struct urxe_qp *qp)
{
	return qp->type != IBV_QPT_UD && qp->type != IBV_QPT_XRC_RECV;
}

/*
 * Return whether its remote QP may be in another process; true if not known.
 */
static bool qp_is_exposed(const struct urxe_qp *qp)
{
	uint32_t slot, gen;

	return !qp_has_dest(qp) ||
	       !qpn_lookup(qp->ctx->fabric->dev, qp->attr.dest_qp_num, &slot,
			   &gen) ||
	       !peer_is_own(qp->ctx->fabric, slot, gen);
}

/* ibv_modify_qp with qp->lock held.  errno value */
static int qp_modify(struct urxe_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	uint64_t word = load_seq_cst(&qp->sh->conn);
	enum ibv_qp_state from = URXE_CONN_STATE(word), to = from;
	int ret;

	/* the kernel ignores these for XRC QPs, and programs set them */
	mask &= ~qp_absent(qp->type);
	if (mask & IBV_QP_STATE)
		to = a->qp_state;
	if ((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != from) {
		urxe_why(
			"ibv_modify_qp: QP 0x%x: cur_qp_state is %s, but the QP is in %s",
			qp->qpn, reason_state_name(a->cur_qp_state),
			reason_state_name(from));
		return EINVAL;
	}
	ret = qp_check_transition(qp, from, to, mask);
	if (ret)
		return ret;
	ret = qp_check_values(qp, a, mask);
	if (ret)
		return ret;
	if (to == IBV_QPS_RESET) {
		qp_reset(qp);
		return 0;
	}
	if (to == IBV_QPS_ERR) {
		qp_set_error(qp, IBV_QPS_ERR);
		why_broken(qp, REASON_MODIFIED);
		flush_qp(qp);
		return 0;
	}
	qp_apply(qp, a, mask);
	if (to == IBV_QPS_RTR && qp_is_exposed(qp) && bounce_expose(qp->ctx)) {
		urxe_why("ibv_modify_qp: %s", fabric_why());
		fabric_why_clear(); /* log it once, for this failure only */
		return EAGAIN;
	}
	if (!qp_step(qp, word, to, mask)) {
		urxe_why(
			"ibv_modify_qp: QP 0x%x moved to ERR during the call; it was in %s",
			qp->qpn, reason_state_name(from));
		return EINVAL;
	}
	if (from == IBV_QPS_SQE)
		why_forget(qp);
	if (to == IBV_QPS_RTR && qp_has_dest(qp)) {
		/* if the peer is not ready, the requester does this later */
		qp_guard_raise(qp, GUARD_RECEIVE);
		conn_open(qp, &qp->conn, qp->attr.dest_qp_num, qp->qpn);
		guard_lower(qp->guard);
	}
	if (to == IBV_QPS_SQD && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY))
		qp->sqd_notify = a->en_sqd_async_notify;
	if (qp->sqd_notify)
		qp_drained(qp);
	if (from == IBV_QPS_SQD && qp->stall.kind == STALL_NONE)
		wait_end(qp);
	requester_run(qp);
	return 0;
}

int urxe_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct urxe_qp *qp = to_uqp(ibqp);
	int ret;

	if (!qp_is_named(ibqp))
		return ENOENT;
	urxe_lock(&qp->lock);
	ret = qp_modify(qp, attr, mask);
	urxe_unlock(&qp->lock);
	return ret;
}
