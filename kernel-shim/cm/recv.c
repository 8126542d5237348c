// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A DREQ does not overtake data.
 *
 * On a wire the messages of the connection manager are slower than data, so a
 * program that hears DISCONNECTED has long had its last receive; many close
 * the QP then, and with it goes what was not polled.  Here a DREQ arrives when
 * it is sent.  So the event is held back until the receives that came before
 * it were polled, but not for ever: their program may not want them.
 *
 * Polling goes by position, so it is enough to remember the last such receive.
 * The arena is read with pread: it may be any process's, and may vanish.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cm.h"
#include "shared/cq_ring.h"

#define LOOK_BACK 4096 /* entries of other QPs, or of sends */

/* A CQ of a context. */
struct ring {
	int fd; /* of the arena */
	uint64_t word;
	uint32_t mask, head, tail;
};

static bool ring_read(const struct ring *r, uint64_t offset, void *to,
		      size_t len)
{
	return pread(r->fd, to, len, (off_t)offset) == (ssize_t)len;
}

#define RING_READ(r, offset, to) ring_read(r, offset, to, sizeof(*(to)))

/* All of an entry but the bytes that travel in it. */
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

/* The ring of that CQ. */
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

/* The hint may lag behind what was claimed. */
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

/* The last receive of that QP which was not polled. */
static bool ring_find_recv(const struct ring *r, uint32_t qpn, uint32_t *pos)
{
	struct urxe_cqe e;
	uint32_t n, p;

	for (n = 0, p = r->tail; p != r->head && n <= r->mask && n < LOOK_BACK;
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

/* The CQ that a QP receives into. */
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
