// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Records of connections with other hosts whose ids are destroyed: TIMEWAIT
 * (IB specification, 12.9.8.4), and DREQs that are not answered yet.
 *
 * If the last DREQ is lost and no process is left that retransmits it, the
 * peer waits for ever.  So the DREQ of a destroyed id is retransmitted until
 * the peer answers:
 *
 *	cm_ended_tick()		by any process of the fabric, from cm_tick(),
 *				DREQ_TRIES times
 *	cm_ended_linger()	by the process that destroyed the id, before it
 *				closes the socket or ends, within 0.3 s
 *
 * A program that has the answer, as most have, does not linger.
 */
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cm.h"
#include "wire.h"

/* Retransmissions after the id is destroyed; the interval doubles. */
#define DREQ_FIRST_NS 250000000ull
#define DREQ_TRIES 5
#define DREQ_LONGEST_NS (DREQ_FIRST_NS << DREQ_TRIES)

/*
 * Retransmissions without releasing the lock, and the time until the next
 * ones.  The thread that receives the answers waits for the lock at most 0.1 s.
 */
#define REPEAT_BATCH 32
#define REPEAT_NS 1000000ull

/* The same while a process lingers. */
#define LINGER_FIRST_NS 5000000ull
#define LINGER_NS 315000000ull
#define LINGER_CHECK_NS 1000000l
/* Longest wait for the lock */
#define LINGER_LOCK_NS 100000000ull

/* Return whether destroying @id sends a DREQ; XRC targets send none. */
static bool sends_dreq(const struct cm_id *id)
{
	return id->cm == CM_DREQ_SENT ||
	       (id->cm == CM_ESTABLISHED && id->qp_type != CM_QPT_XRC_RECV);
}

void cm_ended_add(struct cm *cm, const struct cm_id *id)
{
	struct cm_table *t = cm->t;
	struct cm_ended *e = &t->ended[t->ended_next % CM_ENDED];
	const uint64_t now = clock_now();

	if (!cm_is_remote(id) || id->qp_type == CM_QPT_UD)
		return;
	switch (id->cm) {
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
	case CM_DREQ_RCVD:
	case CM_TIMEWAIT:
		break;
	default:
		return;
	}
	*e = (struct cm_ended){
		.until = id->cm == CM_TIMEWAIT ? id->deadline :
						 now + CM_TIMEWAIT_NS,
		.qpn = id->remote_qpn,
		.comm_id = cm_comm_id(cm, id),
		.remote_comm_id = id->remote_comm_id,
		.path_tos = id->path_tos,
	};
	memcpy(e->gid, id->dgid, 16);
	memcpy(e->sgid, id->sgid, 16);
	t->ended_next++;
	if (!sends_dreq(id))
		return;
	e->dreq_at = now + DREQ_FIRST_NS;
	e->pid = getpid();
	cm->watch = true;
}

bool cm_ended_has(const struct cm *cm, const uint8_t gid[16], uint32_t qpn)
{
	const struct cm_ended *e = cm->t->ended;
	const uint64_t now = clock_now();
	unsigned int i;

	for (i = 0; i < CM_ENDED; i++, e++)
		if (e->until > now && e->qpn == qpn && !memcmp(e->gid, gid, 16))
			return true;
	return false;
}

void cm_ended_answered(struct cm *cm, const uint8_t gid[16], uint32_t comm_id)
{
	struct cm_ended *e = cm->t->ended;
	unsigned int i;

	for (i = 0; i < CM_ENDED; i++, e++)
		if (e->comm_id == comm_id && !memcmp(e->gid, gid, 16))
			e->dreq_at = 0;
}

/* ------------------------------------------------------ retransmission */

static void dreq_repeat(struct cm *cm, const struct cm_ended *e)
{
	struct cm_id id = {
		.flags = CM_F_WIRE,
		.remote_comm_id = e->remote_comm_id,
		.remote_qpn = e->qpn,
		.path_tos = e->path_tos,
	};

	memcpy(id.dgid, e->gid, 16);
	memcpy(id.sgid, e->sgid, 16);
	cm_sent_dreq_as(cm, &id, e->comm_id);
}

/* Transmit the DREQ again, and set the time of the next transmission. */
static void dreq_due(struct cm *cm, struct cm_ended *e, uint64_t now)
{
	dreq_repeat(cm, e);
	e->tries++;
	e->dreq_at = e->tries < DREQ_TRIES ? now + (DREQ_FIRST_NS << e->tries) :
					     0;
}

uint64_t cm_ended_tick(struct cm *cm, int32_t pid, uint64_t now)
{
	struct cm_ended *e = cm->t->ended;
	unsigned int i, budget = REPEAT_BATCH;
	uint64_t sleep = UINT64_MAX;

	for (i = 0; i < CM_ENDED; i++, e++) {
		if (e->dreq_at > now + DREQ_LONGEST_NS) /* damaged */
			e->dreq_at = 0;
		if (!e->dreq_at)
			continue;
		if (e->dreq_at <= now && budget) {
			budget--;
			dreq_due(cm, e, now);
		}
		if (e->dreq_at && e->pid == pid)
			sleep = cm_min(sleep, e->dreq_at > now ?
						      e->dreq_at - now :
						      REPEAT_NS);
	}
	return sleep;
}

/*
 * Return whether this process waits for an answer.  Retransmit up to
 * REPEAT_BATCH DREQs from record *@at on.  @leave: wait no longer.
 */
static bool linger_check(struct cm *cm, unsigned int *at, bool leave)
{
	struct cm_ended *e = cm->t->ended;
	unsigned int i, budget = REPEAT_BATCH;
	const int32_t pid = getpid();
	bool waits = false;

	if (cm_lock_within(cm, LINGER_LOCK_NS))
		return !leave;
	for (i = 0; i < CM_ENDED; i++, e++) {
		if (!e->dreq_at || e->pid != pid || e->left)
			continue;
		waits = true;
		if (i >= *at && budget) {
			dreq_repeat(cm, e);
			*at = i + 1;
			budget--;
		}
		e->left = leave;
	}
	cm_unlock(cm);
	if (budget)
		*at = CM_ENDED;
	return waits;
}

static void linger(struct cm *cm)
{
	const struct timespec nap = { .tv_nsec = LINGER_CHECK_NS };
	const uint64_t end = clock_now() + LINGER_NS;
	uint64_t now, due = end - LINGER_NS + LINGER_FIRST_NS;
	unsigned int tries = 0, at = CM_ENDED; /* none */

	while (linger_check(cm, &at, false)) {
		nanosleep(&nap, NULL);
		now = clock_now();
		if (now >= end) {
			at = 0;
			linger_check(cm, &at, true);
			break;
		}
		if (now < due || at < CM_ENDED)
			continue;
		at = 0;
		due = now + (LINGER_FIRST_NS << ++tries);
	}
}

void cm_ended_linger(struct urxe_fabric *f)
{
	struct cm cm = { .f = f };

	if (cm_map_existing(f, &cm.t))
		return;
	linger(&cm);
	munmap(cm.t, sizeof(*cm.t));
}
