// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Detection of receive completions that precede a DREQ and were not polled.
 *
 * On a network, CM messages are slower than data: when a program gets
 * DISCONNECTED, it usually has polled its last receive.  Many programs then
 * destroy the QP, and lose the completions that they did not poll.  In this
 * implementation a DREQ within a fabric arrives at once.  Therefore end.c
 * withholds DISCONNECTED (CM_F_HELD) until the earlier receives were polled,
 * but not for ever, since the program may never poll them.
 *
 * A CQ is polled in the order of positions, so it suffices to remember the
 * position of the last such completion (struct cm_mark).
 *
 * Called under the lock of the tables, by the process that handles the DREQ
 * and by cm_tick().  The CQ may belong to another process, which uses it
 * meanwhile and may remove its arena.  It is therefore read with pread(),
 * which fails where a mapping would raise SIGBUS.  Reads are not synchronized
 * with the owner: the position and state in each entry's word are checked.  A
 * wrong result only delays the event, or sends it early.
 *
 * Test: tests/cm/test_last_receive.c.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cm.h"
#include "shared/cq_ring.h"

#define SEARCH_MAX 4096 /* entries searched, of all QPs and opcodes */

/* Snapshot of a CQ in the arena of a context. */
struct ring {
	int fd; /* arena */
	uint64_t word; /* urxe_cq_sh.ring */
	uint32_t mask, head, tail;
};

static bool ring_read(const struct ring *r, uint64_t offset, void *to,
		      size_t len)
{
	return pread(r->fd, to, len, (off_t)offset) == (ssize_t)len;
}

#define RING_READ(r, offset, to) ring_read(r, offset, to, sizeof(*(to)))

/* Read the entry at @pos, without its inline data. */
static bool ring_entry(const struct ring *r, uint32_t pos, struct urxe_cqe *e)
{
	const uint64_t at = URXE_CQ_OFFSET(r->word) +
			    (uint64_t)(pos & r->mask) * sizeof(*e);

	return ring_read(r, at, e, offsetof(struct urxe_cqe, data));
}

static int arena_open(struct cm *cm, const struct cm_mark *m)
{
	char name[32];

	snprintf(name, sizeof(name), URXE_ARENA_NAME, m->slot, m->gen);
	return openat(cm->f->dirfd, name, O_RDONLY | O_CLOEXEC);
}

/* Read location, size, head and tail hint of the ring of @cq. */
static bool ring_find(struct ring *r, uint32_t cq)
{
	struct urxe_cq_sh sh;

	if (cq >= URXE_MAX_CQ ||
	    !RING_READ(r, offsetof(struct urxe_arena, cq) + cq * sizeof(sh),
		       &sh) ||
	    !load_relaxed(&sh.live))
		return false;
	r->word = load_relaxed(&sh.ring);
	if (!cq_ring_fits(r->word))
		return false;
	r->mask = (1u << URXE_CQ_LOG(r->word)) - 1;
	r->tail = load_relaxed(&sh.tail_hint[URXE_CQ_HINT(r->word)]);
	r->head = load_relaxed(&sh.head[URXE_CQ_HINT(r->word)]);
	return true;
}

/* Advance r->tail past claimed entries: the hint may lag behind. */
static bool ring_find_tail(struct ring *r)
{
	uint64_t claim;
	uint32_t n;

	for (n = 0; n <= r->mask; n++, r->tail++) {
		if (!RING_READ(r,
			       URXE_CQ_OFFSET(r->word) +
				       (r->mask + 1ull) *
					       sizeof(struct urxe_cqe) +
				       (r->tail & r->mask) * sizeof(claim),
			       &claim))
			return false;
		if (!cq_ring_is_claimed(claim, r->tail))
			return true;
	}
	return true;
}

static bool entry_is_recv(const struct urxe_cqe *e, uint32_t pos, uint32_t qpn)
{
	return load_relaxed(&e->word) == cqe_word(pos, 0, CQE_READY) &&
	       e->qpn == qpn && e->opcode & CM_WC_RECV && !e->status;
}

/*
 * Search backwards from the tail for the last successful receive completion
 * of @qpn that was not polled.
 */
static bool ring_find_recv(const struct ring *r, uint32_t qpn, uint32_t *pos)
{
	struct urxe_cqe e;
	uint32_t n, p;

	for (n = 0, p = r->tail; p != r->head && n <= r->mask && n < SEARCH_MAX;
	     n++) {
		if (!ring_entry(r, --p, &e))
			return false;
		if (entry_is_recv(&e, p, qpn)) {
			*pos = p;
			return true;
		}
	}
	return false;
}

/* Read the number of the receive CQ of a QP. */
static bool qp_recv_cq(const struct ring *r, uint32_t qpn, uint32_t *cq)
{
	struct urxe_qp_sh qp;

	if (!RING_READ(r,
		       offsetof(struct urxe_arena, qp) +
			       qpn_index(qpn) * sizeof(qp),
		       &qp))
		return false;
	*cq = qp.recv_cq;
	return true;
}

bool cm_recv_mark(struct cm *cm, struct cm_id *id)
{
	struct cm_mark *m = &id->mark;
	struct ring r = { 0 };
	bool found;

	if (!qpn_lookup(cm->f->dev, id->qpn, &m->slot, &m->gen))
		return false;
	r.fd = arena_open(cm, m);
	if (r.fd < 0)
		return false;
	found = qp_recv_cq(&r, id->qpn, &m->cq) && ring_find(&r, m->cq) &&
		ring_find_tail(&r) && ring_find_recv(&r, id->qpn, &m->pos);
	m->ring = r.word;
	close(r.fd);
	return found;
}

bool cm_recv_waits(struct cm *cm, const struct cm_id *id)
{
	const struct cm_mark *m = &id->mark;
	struct ring r = { .fd = arena_open(cm, m) };
	struct urxe_cqe e;
	bool waits;

	if (r.fd < 0)
		return false;
	waits = ring_find(&r, m->cq) && r.word == m->ring &&
		(int32_t)(m->pos - r.head) >= 0 &&
		ring_entry(&r, m->pos, &e) &&
		entry_is_recv(&e, m->pos, id->qpn);
	close(r.fd);
	return waits;
}
