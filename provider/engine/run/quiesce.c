// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Grace periods: a destroyer waits here until no requester uses the object
 * that it has invalidated. shared/guard.h has the protocol and its memory
 * order, and lists the destroyers that call these functions.
 *
 * The destroyer scans the guards of all QPs, except those in idle groups, and
 * the guards of the socket owners. It waits for each guard that is raised and
 * names the object. The wait for a guard ends when the guard changes, or when
 * the process that raised it is dead. After that the destroyer waits for
 * bouncers (bounce.h). quiesce_qp() checks a single guard if only one QP can
 * send requests to the QP.
 *
 * tests/model/guard.pml and tests/model/guard_group.pml check the protocol.
 */
#include "engine/copy/bounce.h"
#include "quiesce.h"
#include "service.h"

/* A raised guard, and the object that the destroyer waits for. */
struct busy {
	struct urxe_fabric *f;
	const struct urxe_guard *guard;
	uint64_t entry; /* directory entry of the QP */
	uint32_t own; /* context slot of the guard's QP */
	const struct guard_object *object;
	uint32_t checks; /* number of liveness checks so far */
	struct patience *patience; /* NULL: no limit */
	bool late;
};

/*
 * Return whether the process that raised the guard is dead. If it had no ID,
 * the liveness of its context decides.
 */
static bool busy_is_dead(const struct busy *b)
{
	uint32_t slot, gen, owner = load_relaxed(&b->guard->owner);

	if (owner)
		return process_is_dead(b->f, owner);
	return !qpn_lookup(b->f->dev, URXE_DIR_QPN(b->entry), &slot, &gen) ||
	       !fabric_context_alive(b->f, slot, gen);
}

/*
 * Liveness checks between two requests to the owning process to verify its
 * guards.
 */
#define GUARD_CHECK_INTERVAL 32

/*
 * Wait condition: return true if the guard does not concern the object any
 * more, or its process is dead.
 *
 * If the guard stays raised, its word may be damaged. The owning process is
 * requested to verify its guards (qp_check_guard() in qp.c).
 */
static bool busy_done(void *arg)
{
	struct busy *b = arg;

	if (!guard_concerns(b->guard, b->own, b->object) || busy_is_dead(b))
		return true;
	if (++b->checks % GUARD_CHECK_INTERVAL == 0)
		service_request_guard_check(b->f, b->own);
	return false;
}

/*
 * Load guard @i into @b. Return true if it is raised and may concern the
 * object.
 */
static bool quiesce_load_guard(struct busy *b, uint32_t i)
{
	b->guard = &b->f->dev->guard[i];
	if (!presence_is_inside(&b->guard->requester))
		return false;
	/* the QP stored its entry before it raised the guard */
	b->entry = load_seq_cst(&b->f->dev->qp[i]);
	b->own = URXE_DIR_CTX(b->entry);
	return b->entry && guard_concerns(b->guard, b->own, b->object);
}

/*
 * The same for the guard of socket owner slot @i. It may be that of a former
 * socket owner that is stopped. A socket owner uses nothing of a context of
 * its own.
 */
static bool quiesce_load_wire_guard(struct busy *b, uint32_t i)
{
	b->guard = &b->f->dev->wire.owner_slot[i].guard;
	b->entry = 0;
	b->own = URXE_MAX_CTX;
	return presence_is_inside(&b->guard->requester) &&
	       guard_concerns(b->guard, b->own, b->object);
}

static enum urxe_call_kind busy_call(const struct busy *b)
{
	switch (b->object->kind) {
	case GUARD_OF_MR:
		return URXE_CALL_QUIESCE_MR;
	case GUARD_OF_MW:
		return URXE_CALL_QUIESCE_MW;
	case GUARD_OF_CQ:
		return URXE_CALL_QUIESCE_CQ;
	case GUARD_OF_SRQ:
		return URXE_CALL_QUIESCE_SRQ;
	default:
		return URXE_CALL_QUIESCE_QP;
	}
}

/* Wait for guard @i, counted through the QPs and then the socket owners. */
static void busy_wait(struct busy *b, uint32_t i)
{
	struct urxe_call *call =
		call_begin(b->f, busy_call(b), b->object->slot, i, 0);

	b->late = !presence_wait_within(&b->guard->requester, b->patience,
					busy_done, b);
	call_end(call);
}

static void quiesce_guard(struct busy *b, uint32_t i)
{
	if (quiesce_load_guard(b, i))
		busy_wait(b, i);
}

/*
 * Sum up the sequence counters of a group's guards. Return false if any guard
 * is raised.
 */
static bool group_is_down(const struct urxe_dev *dev, uint32_t group,
			  uint64_t *passed)
{
	const struct urxe_guard *g = &dev->guard[group * URXE_GUARD_GROUP];
	uint32_t i, seq;

	*passed = 0;
	for (i = 0; i < URXE_GUARD_GROUP; i++) {
		seq = load_seq_cst(&g[i].requester.seq);
		if (seq & 1)
			return false;
		*passed += seq;
	}
	return true;
}

/*
 * The sums that this process read last. Only a hint: storing GUARD_RECHECK
 * costs working requesters a read-modify-write.
 */
static _Atomic uint64_t last_passed[URXE_GUARD_GROUPS];

/*
 * Return a busy group to idle if no guard is raised, and none was since this
 * process last read the group. See GUARD_RECHECK in shared/guard.h.
 */
static void group_recheck(struct urxe_dev *dev, uint32_t group)
{
	_Atomic uint64_t *word = &dev->guard_group[group];
	uint64_t passed, recheck;

	if (!group_is_down(dev, group, &passed))
		return;
	if (exchange_relaxed(&last_passed[group], passed) != passed)
		return;
	if (guard_group_recheck(word, &recheck) &&
	    group_is_down(dev, group, &passed))
		guard_group_idle(word, recheck);
}

/*
 * Return @i, or the first guard of the next group that is not idle, or a
 * value >= @high.
 */
static uint32_t quiesce_next(const struct urxe_dev *dev, uint32_t i,
			     uint32_t high)
{
	while (i < high &&
	       !guard_group_is_busy(&dev->guard_group[i / URXE_GUARD_GROUP]))
		i += URXE_GUARD_GROUP;
	return i;
}

static void quiesce_group(struct busy *b, uint32_t first, uint32_t high)
{
	uint32_t i, end = first + URXE_GUARD_GROUP;

	for (i = first; i < end && i < high && !b->late; i++)
		quiesce_guard(b, i);
	group_recheck(b->f->dev, first / URXE_GUARD_GROUP);
}

static void quiesce_wire(struct busy *b)
{
	uint32_t i;

	for (i = 0; i < URXE_OWNER_SLOTS && !b->late; i++)
		if (quiesce_load_wire_guard(b, i))
			busy_wait(b, URXE_MAX_QP + i);
}

/* False: *patience ended before.  NULL waits without a limit. */
static bool quiesce_within(struct urxe_fabric *f, struct urxe_arena *a,
			   const struct guard_object *t,
			   struct patience *patience)
{
	struct busy b = { .f = f, .object = t, .patience = patience };
	uint32_t i, high = qp_slots(f->dev);

	for (i = quiesce_next(f->dev, 0, high); i < high && !b.late;
	     i = quiesce_next(f->dev, i + URXE_GUARD_GROUP, high))
		quiesce_group(&b, i, high);
	if (!b.late)
		quiesce_wire(&b);
	/* copies requested by requesters that died must end, too */
	return !b.late && bounce_quiesce(f, a, patience);
}

static void quiesce_guards(struct urxe_fabric *f, struct urxe_arena *a,
			   const struct guard_object *t)
{
	quiesce_within(f, a, t, NULL);
}

void quiesce_mr(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		uint32_t pd)
{
	quiesce_guards(f, a,
		       &(struct guard_object){ GUARD_OF_MR, a->slot, key, pd });
}

bool quiesce_mw(struct urxe_fabric *f, struct urxe_arena *a, uint32_t key,
		struct patience *patience)
{
	const struct guard_object t = { GUARD_OF_MW, a->slot, key, 0 };

	return quiesce_within(f, a, &t, patience);
}

void quiesce_qp(struct urxe_fabric *f, struct urxe_arena *a, uint32_t qpn,
		uint32_t from)
{
	const struct guard_object t = { GUARD_OF_QP, a->slot, qpn, 0 };
	struct busy b = { .f = f, .object = &t };

	if (!from) {
		quiesce_guards(f, a, &t);
		return;
	}
	quiesce_guard(&b, qpn_index(from));
	bounce_quiesce(f, a, NULL);
}

void quiesce_srq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index)
{
	quiesce_guards(
		f, a,
		&(struct guard_object){ GUARD_OF_SRQ, a->slot, index, 0 });
}

void quiesce_cq(struct urxe_fabric *f, struct urxe_arena *a, uint32_t index)
{
	quiesce_guards(
		f, a, &(struct guard_object){ GUARD_OF_CQ, a->slot, index, 0 });
}

bool quiesce_qp_busy(struct urxe_fabric *f, uint32_t qpn, uint32_t peer)
{
	const struct guard_object t = { GUARD_OF_QP, 0, qpn, 0 };
	struct busy b = { .f = f, .object = &t };
	uint32_t i;

	if (quiesce_load_guard(&b, qpn_index(peer)) && !busy_is_dead(&b))
		return true;
	for (i = 0; i < URXE_OWNER_SLOTS; i++)
		if (quiesce_load_wire_guard(&b, i) && !busy_is_dead(&b))
			return true;
	return false;
}

bool quiesce_try(struct urxe_fabric *f, struct urxe_arena *a,
		 const struct guard_object *t)
{
	struct patience patience = patience_begin(QUIESCE_TRY_NS);

	return quiesce_within(f, a, t, &patience);
}
