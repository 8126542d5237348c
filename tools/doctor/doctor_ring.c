// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: check the completion queue rings of all running programs.
 *
 * Shared memory may hold arbitrary data.  Each ring is therefore copied with
 * pread(2), which allocates no pages and cannot fault, and the copy is
 * checked.  No lock is taken, so the copy of a ring in use may be
 * inconsistent.  A defect counts only if it is found in each of LOOKS
 * copies.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "fabric/fabric.h"
#include "shared/bitmap.h"
#include "shared/cq_ring.h"

/* Number of copies of a ring, and the time between them. */
#define PASSES 10
#define PAUSE_NS 10000000

static bool copy_out(int fd, uint64_t offset, void *buf, size_t len)
{
	return pread(fd, buf, len, (off_t)offset) == (ssize_t)len;
}

/*
 * Copy the shared part of CQ `index` to sh and the position of its ring to
 * word.  Return false if the CQ does not exist.
 */
static bool cq_ring_word(int fd, uint32_t index, struct urxe_cq_sh *sh,
			 uint64_t *word)
{
	if (!copy_out(fd, offsetof(struct urxe_arena, cq) + index * sizeof(*sh),
		      sh, sizeof(*sh)))
		return false;
	*word = load_relaxed(&sh->ring);
	return load_relaxed(&sh->live);
}

/* Check one copy of the ring.  Return NULL or the defect. */
static const char *ring_check(int fd, uint64_t word, struct urxe_cq_sh *sh)
{
	const char *why = NULL;
	struct cq_ring r;
	size_t bytes;
	void *copy;

	if (!cq_ring_fits(word))
		return "invalid ring position";
	bytes = cq_ring_bytes(URXE_CQ_LOG(word));
	copy = aligned_alloc(URXE_LINE,
			     (bytes + URXE_LINE - 1) / URXE_LINE * URXE_LINE);
	if (copy && copy_out(fd, URXE_CQ_OFFSET(word), copy, bytes)) {
		cq_ring_at(&r, copy, URXE_CQ_LOG(word), sh, URXE_CQ_HINT(word));
		why = cq_ring_invalid(&r);
	}
	free(copy);
	return why;
}

/* Return NULL, or the last defect if each copy of the ring has one. */
static const char *cq_check(int fd, uint32_t index)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const char *why = NULL;
	struct urxe_cq_sh sh, now;
	uint64_t word, after;
	int i;

	for (i = 0; i < PASSES; i++) {
		if (i)
			nanosleep(&pause, NULL);
		if (!cq_ring_word(fd, index, &sh, &word))
			return NULL;
		why = ring_check(fd, word, &sh);
		/* no defect if the CQ was destroyed or resized meanwhile */
		if (!why || !cq_ring_word(fd, index, &now, &after) ||
		    after != word)
			return NULL;
	}
	return why;
}

/* Numbers of CQs, and of those with a defect. */
struct tally {
	uint32_t cqs, bad;
};

/* Check the CQs of the context in `slot`, if it is alive. */
static void context_check(struct urxe_fabric *f, uint32_t slot, struct tally *t)
{
	const struct urxe_ctx_slot *c = &f->dev->ctx[slot];
	uint32_t i, gen = load_relaxed(&c->gen);
	struct urxe_arena *a;
	const char *why;
	int fd;

	if (!fabric_context_alive(f, slot, gen) ||
	    arena_map_peer(f, slot, gen, &a, &fd))
		return;
	for (i = 1; i < URXE_MAX_CQ; i++) { /* 0: reserved */
		if (!bitmap_test(a->cq_map, i))
			continue;
		t->cqs++;
		why = cq_check(fd, i);
		if (!why)
			continue;
		t->bad++;
		report(FAIL, "completions are lost, or a program waits forever",
		       "end that program; a program has overwritten shared memory, or urxe has a bug",
		       "completion queue %u of %.15s (PID %d): %s", i, c->comm,
		       load_relaxed(&c->pid), why);
	}
	arena_unmap(a);
	close(fd);
}

void check_rings(void)
{
	struct tally t = { 0 };
	struct urxe_fabric *f;
	char dir[256];
	uint32_t i;

	/* check_fabric_dir() reports the errors of these calls */
	if (fabric_dir(dir, sizeof(dir)) || fabric_open(dir, false, &f))
		return;
	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_acquire(&f->dev->ctx[i].state) == URXE_CTX_LIVE)
			context_check(f, i, &t);
	fabric_close(f);
	if (!t.bad)
		report(OK, NULL, NULL,
		       "completion queues: %u in use, all rings are consistent",
		       t.cqs);
}
