// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Consistency checks of one arena (the shared state of a context): keys, PDs,
 * queues, and the allocation of heap pages to rings.  References are counted
 * anew and compared with the stored counts.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/plural.h"
#include "inspect.h"
#include "base/log2.h"
#include "shared/bitmap.h"
#include "shared/cq_ring.h"
#include "shared/rq_ring.h"

struct arena_inspection {
	struct inspection *l;
	const struct urxe_arena *a; /* copy, up to member `ring` */
	int fd; /* of the arena's file */
	uint32_t slot;
	/* heap pages and small units that rings use */
	uint64_t heap[URXE_HEAP_PAGES / 64];
	uint64_t small[URXE_SMALL_UNITS / 64];
	uint32_t refs[URXE_MAX_PD]; /* references on PDs in shared state */
	uint32_t windows[URXE_MAX_KEY]; /* MWs bound to each MR */
	uint32_t files[URXE_MAX_FILES]; /* MRs of each file */
};

#define wrong(al, fmt, ...)                                            \
	found((al)->l->out, "context %u.%u (%.15s): " fmt, (al)->slot, \
	      (al)->a->gen, (al)->a->comm, ##__VA_ARGS__)

static void check_count(struct arena_inspection *al, enum urxe_obj o,
			uint32_t n)
{
	uint32_t used = load_relaxed(&al->l->dev->ctx[al->slot].used[o]);

	if (used != n)
		wrong(al, "%u %s%s counted, %u found", used, fabric_obj_name(o),
		      plural(used), n);
}

/*
 * Mark n bits from `first` in seen, as used by the ring of queue `what`
 * index.  They must not be marked yet, and must be marked in map, the
 * allocator's.
 */
static void heap_mark(struct arena_inspection *al, const char *what,
		      uint32_t index, uint64_t *seen, const uint64_t *map,
		      uint64_t first, uint64_t n)
{
	bool twice = false, lost = false;
	uint64_t p;

	for (p = first; p < first + n; p++) {
		twice |= bitmap_test(seen, (uint32_t)p);
		lost |= !bitmap_test(map, (uint32_t)p);
		bitmap_set(seen, (uint32_t)p, 1);
	}
	if (twice)
		wrong(al, "%s %u: ring overlaps another ring", what, index);
	if (lost)
		wrong(al, "%s %u: ring is marked free in the heap", what,
		      index);
}

/* Account for a small ring.  Return false if offset is not that of one. */
static bool small_add(struct arena_inspection *al, const char *what,
		      uint32_t index, uint64_t offset, uint64_t bytes)
{
	uint64_t at = offset - offsetof(struct urxe_arena, small);
	uint64_t n = pow2_up((uint32_t)(bytes + URXE_SMALL_UNIT - 1) /
			     URXE_SMALL_UNIT);

	if (bytes > URXE_SMALL_MAX || at % (n * URXE_SMALL_UNIT) ||
	    at >= sizeof(al->a->small))
		return false;
	heap_mark(al, what, index, al->small, al->a->small_map,
		  at / URXE_SMALL_UNIT, n);
	return true;
}

/*
 * Account for the ring of queue `what` index.  Return false, after adding a
 * finding, if its position is invalid.
 */
static bool heap_add(struct arena_inspection *al, const char *what,
		     uint32_t index, uint64_t offset, uint64_t bytes)
{
	if (small_add(al, what, index, offset, bytes))
		return true;
	if (offset < URXE_HEAP_OFFSET || offset % URXE_PAGE ||
	    offset > URXE_ARENA_SIZE || bytes > URXE_ARENA_SIZE - offset) {
		wrong(al, "%s %u: invalid ring position", what, index);
		return false;
	}
	heap_mark(al, what, index, al->heap, al->a->heap_map,
		  (offset - URXE_HEAP_OFFSET) / URXE_PAGE,
		  (bytes + URXE_PAGE - 1) / URXE_PAGE);
	return true;
}

/* -------------------------------------------------------------- queues */

static void check_cq_ring(struct arena_inspection *al, uint32_t index,
			  uint64_t word)
{
	const size_t bytes = cq_ring_bytes(URXE_CQ_LOG(word));
	void *copy = aligned_alloc(URXE_LINE, (bytes + URXE_LINE - 1) /
						      URXE_LINE * URXE_LINE);
	struct urxe_cq_sh sh = { 0 };
	const char *why = NULL;
	struct cq_ring r;

	if (copy && copy_out(al->fd, URXE_CQ_OFFSET(word), copy, bytes)) {
		cq_ring_at(&r, copy, URXE_CQ_LOG(word), &sh,
			   URXE_CQ_HINT(word));
		why = cq_ring_invalid(&r);
	}
	free(copy);
	if (why)
		wrong(al, "CQ %u: %s", index, why);
}

static void inspect_cqs(struct arena_inspection *al)
{
	const struct urxe_cq_sh *cq;
	uint32_t i, n = 0;
	uint64_t word;

	for (i = 1; i < URXE_MAX_CQ; i++) {
		cq = &al->a->cq[i];
		if (!bitmap_test(al->a->cq_map, i)) {
			if (load_relaxed(&cq->live))
				wrong(al,
				      "CQ %u is live, but its number is marked free",
				      i);
			continue;
		}
		n++;
		word = load_relaxed(&cq->ring);
		if (!cq_ring_fits(word))
			wrong(al, "CQ %u: invalid ring position", i);
		else if (heap_add(al, "CQ", i, URXE_CQ_OFFSET(word),
				  cq_ring_bytes(URXE_CQ_LOG(word))))
			check_cq_ring(al, i, word);
		if (load_relaxed(&cq->eager_base))
			heap_add(al, "eager buffer of CQ", i,
				 load_relaxed(&cq->eager_base),
				 URXE_EAGER_SIZE);
	}
	check_count(al, URXE_OBJ_CQ, n);
}

static void check_rq(struct arena_inspection *al, const char *what, uint32_t i,
		     const struct urxe_rq_sh *rq)
{
	uint64_t word = load_relaxed(&rq->ring);
	uint32_t log = URXE_RQ_LOG(word), posted;

	if (!word)
		return;
	if (log > URXE_RQ_MAX_LOG || rq->max_sge > URXE_MAX_SGE) {
		wrong(al, "%s %u: invalid ring size", what, i);
		return;
	}
	heap_add(al, what, i, URXE_RQ_OFFSET(word),
		 (uint64_t)rq_stride(rq->max_sge) << log);
	posted = load_relaxed(&rq->prod) - load_relaxed(&rq->cons);
	if (posted > 1u << log)
		wrong(al, "%s %u: %u receive%s posted in a ring of %u", what, i,
		      posted, plural(posted), 1u << log);
}

static void inspect_srqs(struct arena_inspection *al)
{
	const struct urxe_srq_sh *srq;
	uint32_t i, n = 0;

	for (i = 1; i < URXE_MAX_SRQ; i++) {
		srq = &al->a->srq[i];
		if (!bitmap_test(al->a->srq_map, i)) {
			if (load_relaxed(&srq->live))
				wrong(al,
				      "SRQ %u is live, but its number is marked free",
				      i);
			continue;
		}
		n++;
		check_rq(al, "SRQ", i, &srq->rq);
		if (load_relaxed(&srq->live) && srq->pd < URXE_MAX_PD)
			al->refs[srq->pd]++;
	}
	check_count(al, URXE_OBJ_SRQ, n);
}

/* Check that CQ `index` exists.  0: the QP has no such CQ. */
static void check_qp_cq(struct arena_inspection *al, uint32_t qpn,
			uint32_t index)
{
	if (index && (index >= URXE_MAX_CQ ||
		      !bitmap_test(al->a->cq_map, index)))
		wrong(al, "QP 0x%x: CQ %u does not exist", qpn, index);
}

static void check_qp_cntrs(struct arena_inspection *al, uint32_t qpn,
			   const struct urxe_qp_sh *qp)
{
	uint32_t op, index;

	for (op = 0; op < URXE_CNTR_OPS; op++) {
		index = load_relaxed(&qp->cntr[op]);
		if (load_relaxed(&qp->counts) & 1u << op &&
		    (!index || index >= URXE_MAX_COMP_CNTR ||
		     !bitmap_test(al->a->comp_cntr_map, index)))
			wrong(al, "QP 0x%x: counter %u does not exist", qpn,
			      index);
	}
}

static void inspect_qps(struct arena_inspection *al)
{
	const struct urxe_qp_sh *qp;
	uint32_t i, qpn;
	uint64_t e, conn;

	for (i = 2; i < URXE_MAX_QP; i++) {
		qp = &al->a->qp[i];
		e = load_relaxed(&al->l->dev->qp[i]);
		conn = load_relaxed(&qp->conn);
		qpn = URXE_CONN_QPN(conn);
		if (!e || URXE_DIR_CTX(e) != al->slot ||
		    URXE_DIR_GEN(e) != al->a->gen) {
			if (conn)
				wrong(al, "QP 0x%x is not in the QP directory",
				      qpn);
			continue;
		}
		check_rq(al, "receive queue of QP slot", i, &qp->rq);
		if (!conn) /* being created or destroyed */
			continue;
		if (qpn != URXE_DIR_QPN(e))
			wrong(al, "QP 0x%x: the QP directory has QPN 0x%x", qpn,
			      URXE_DIR_QPN(e));
		check_qp_cq(al, qpn, qp->send_cq);
		check_qp_cq(al, qpn, qp->recv_cq);
		if (qp->srq && (qp->srq > URXE_MAX_SRQ ||
				!bitmap_test(al->a->srq_map, qp->srq - 1)))
			wrong(al, "QP 0x%x: SRQ %u does not exist", qpn,
			      qp->srq - 1);
		check_qp_cntrs(al, qpn, qp);
		if (qp->pd < URXE_MAX_PD)
			al->refs[qp->pd]++;
	}
}

static void inspect_cntrs(struct arena_inspection *al)
{
	check_count(al, URXE_OBJ_COMP_CNTR,
		    bits_count(al->a->comp_cntr_map, URXE_MAX_COMP_CNTR) - 1);
}

/* ---------------------------------------------------------------- keys */

static void check_key(struct arena_inspection *al, uint32_t i)
{
	const struct urxe_key *k = &al->a->key[i];
	uint64_t live = load_relaxed(&k->live);
	uint32_t key = URXE_KEY(al->slot, i, load_relaxed(&al->a->key_tag[i]));

	if (live && live != URXE_MR_LIVE(key))
		wrong(al,
		      "key entry %u: live word 0x%llx does not match key 0x%x",
		      i, (unsigned long long)live, key);
	if (k->pd < URXE_MAX_PD)
		al->refs[k->pd]++;
	if (k->flags & URXE_MR_IS_MW) {
		if (k->parent)
			al->windows[URXE_KEY_INDEX(k->parent)]++;
		return;
	}
	if (live && k->flags & URXE_MR_FILE && k->file < URXE_MAX_FILES)
		al->files[k->file]++;
	if (live && k->kind == URXE_MEM_DM && k->dm && k->dm <= URXE_MAX_DM)
		al->l->dm_mrs[k->dm - 1]++;
}

static void inspect_keys(struct arena_inspection *al)
{
	uint32_t i, n[2] = { 0 }, high = load_relaxed(&al->a->key_high), count;
	const struct urxe_key *k;

	for (i = 1; i < URXE_MAX_KEY; i++) {
		k = &al->a->key[i];
		if (!bitmap_test(al->a->key_map, i)) {
			if (load_relaxed(&k->live))
				wrong(al,
				      "key entry %u is live, but its number is marked free",
				      i);
			continue;
		}
		if (i >= high)
			wrong(al, "key entry %u is above the high-water mark",
			      i);
		n[!!(k->flags & URXE_MR_IS_MW)]++;
		check_key(al, i);
	}
	/* an MW that is being created or destroyed may count as an MR here */
	if (n[0] + n[1] != bits_count(al->a->key_map, URXE_MAX_KEY) - 1)
		wrong(al,
		      "key map: entry 0, which is reserved, is marked free");
	check_count(al, URXE_OBJ_MR, n[0]);
	check_count(al, URXE_OBJ_MW, n[1]);
	for (i = 1; i < URXE_MAX_KEY; i++) {
		k = &al->a->key[i];
		if (bitmap_test(al->a->key_map, i) &&
		    !(k->flags & URXE_MR_IS_MW) &&
		    load_relaxed(&k->windows) != al->windows[i])
			wrong(al,
			      "MR entry %u: %u memory window%s counted, %u found",
			      i, load_relaxed(&k->windows),
			      plural(load_relaxed(&k->windows)),
			      al->windows[i]);
	}
	for (i = 0; i < URXE_MAX_FILES; i++) {
		count = URXE_FILE_COUNT(load_relaxed(&al->a->file[i].refs));
		if (count != al->files[i])
			wrong(al, "file %u: %u MR%s counted, %u found", i,
			      count, plural(count), al->files[i]);
	}
}

/*
 * Check the reference counts of PDs.  A stored count may exceed the number
 * found: AHs, which are private to the process, also hold a reference.
 */
static void inspect_pds(struct arena_inspection *al)
{
	uint32_t i, refs, n = 0;

	for (i = 1; i < URXE_MAX_PD; i++) {
		refs = load_relaxed(&al->a->pd[i].refs);
		n += load_relaxed(&al->a->pd[i].live) & 1;
		if (refs < al->refs[i])
			wrong(al,
			      "PD %u: %u object%s counted, at least %u found",
			      i, refs, plural(refs), al->refs[i]);
	}
	check_count(al, URXE_OBJ_PD, n);
}

/* Account for the inboxes of wire QPs, also of QPs that were destroyed. */
static void inspect_inboxes(struct arena_inspection *al)
{
	struct urxe_wire_qp e;
	uint64_t word[2];
	uint32_t i, k;

	for (i = 0; i < URXE_MAX_QP; i++) {
		if (!load_relaxed(&al->a->qp[i].wire) ||
		    !copy_out(al->fd,
			      offsetof(struct urxe_arena, wire) + i * sizeof(e),
			      &e, sizeof(e)))
			continue;
		word[0] = load_relaxed(&e.inbox.ring);
		word[1] = load_relaxed(&e.inbox.first);
		for (k = 0; k < 2; k++)
			if (word[k])
				heap_add(al, "inbox of QP", i,
					 URXE_INBOX_OFFSET(word[k]),
					 1ull << URXE_INBOX_LOG(word[k]));
	}
}

static void arena_check_all(struct arena_inspection *al)
{
	uint32_t marked;

	inspect_cqs(al);
	inspect_srqs(al);
	inspect_cntrs(al);
	inspect_qps(al);
	inspect_keys(al);
	inspect_pds(al);
	inspect_inboxes(al);
	marked = bits_count(al->a->heap_map, URXE_HEAP_PAGES);
	if (memcmp(al->heap, al->a->heap_map, sizeof(al->heap)))
		wrong(al, "%u heap page%s marked used, rings use %u", marked,
		      plural(marked), bits_count(al->heap, URXE_HEAP_PAGES));
	marked = bits_count(al->a->small_map, URXE_SMALL_UNITS);
	if (memcmp(al->small, al->a->small_map, sizeof(al->small)))
		wrong(al, "%u small-ring unit%s marked used, rings use %u",
		      marked, plural(marked),
		      bits_count(al->small, URXE_SMALL_UNITS));
}

static bool arena_copy(struct inspection *l, int fd, uint32_t slot,
		       uint32_t gen)
{
	const struct urxe_arena *a = l->arena;
	struct stat st;

	return !fstat(fd, &st) && st.st_size == (off_t)URXE_ARENA_SIZE &&
	       copy_out(fd, 0, l->arena, offsetof(struct urxe_arena, ring)) &&
	       !memcmp(a->magic, URXE_ARENA_MAGIC, sizeof(a->magic)) &&
	       a->version == urxe_layout_version && a->slot == slot &&
	       a->gen == gen;
}

void inspect_arena(struct inspection *l, uint32_t slot)
{
	uint32_t gen = load_relaxed(&l->dev->ctx[slot].gen);
	struct arena_inspection *al = calloc(1, sizeof(*al));
	char name[32];

	if (!al)
		return;
	snprintf(name, sizeof(name), URXE_ARENA_NAME, slot, gen);
	al->l = l;
	al->a = l->arena;
	al->slot = slot;
	al->fd = openat(l->f->dirfd, name, O_RDONLY | O_CLOEXEC);
	if (al->fd >= 0 && arena_copy(l, al->fd, slot, gen))
		arena_check_all(al);
	else
		found(l->out, "context %u.%u: no valid arena file", slot, gen);
	if (al->fd >= 0)
		close(al->fd);
	free(al);
}
