// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/mem/mem.h"
#include "engine/mem/peer.h"
#include "journal.h"
#include "shared/journal.h"

/*
 * The referee's journal (journal.h): a ring of seqlocks in shared memory.
 *
 * A process maps the journal of one fabric at a time: that of the first
 * context that joins.  Contexts of other fabrics do not use it.
 *
 * Order.  A writer stores seq = 0, then the other members, then seq =
 * position + 1 (release).  The release fence after the first store orders it
 * before the members.  A reader loads seq (acquire), the members, and seq
 * again after an acquire fence.  If both values are equal and not 0, the
 * members belong to one WR.
 */

/* The journal that this process maps, guarded by referee_lock(). */
static struct {
	/* NULL: no context has joined, or the file could not be mapped */
	struct urxe_journal *journal;
	const struct urxe_fabric *fabric;
	bool joined[URXE_MAX_CTX]; /* by context slot */
	unsigned int num_joined;
	/*
	 * Each entry before this position is done, is overwritten, or belongs
	 * to the process with the id settled_for, so journal_other_writes()
	 * skips it.
	 */
	uint64_t settled;
	uint32_t settled_for;
} mine;

static struct urxe_journal *journal_map(const struct urxe_fabric *f)
{
	void *map = MAP_FAILED;
	int fd;

	fd = openat(f->dirfd, "journal", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return NULL;
	if (!posix_fallocate(fd, 0, sizeof(struct urxe_journal)))
		map = mmap(NULL, sizeof(struct urxe_journal),
			   PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

void journal_join(struct urxe_context *ctx)
{
	if (!mine.fabric) {
		mine.fabric = ctx->fabric;
		mine.journal = journal_map(ctx->fabric);
		mine.settled = 0;
	}
	if (mine.fabric != ctx->fabric)
		return;
	if (!mine.joined[ctx->slot])
		mine.num_joined++;
	mine.joined[ctx->slot] = true;
	if (mine.journal)
		store_release(&mine.journal->checked[ctx->slot], ctx->gen);
}

/*
 * Unmap the journal with the last context.  The fabric is freed then, and its
 * address may be reused, so journal_of is cleared.
 */
void journal_leave(struct urxe_context *ctx)
{
	if (mine.fabric != ctx->fabric || !mine.joined[ctx->slot])
		return;
	mine.joined[ctx->slot] = false;
	if (--mine.num_joined)
		return;
	if (mine.journal)
		munmap(mine.journal, sizeof(*mine.journal));
	mine.journal = NULL;
	mine.fabric = NULL;
}

static bool journal_is_of(const struct urxe_context *ctx)
{
	return mine.journal && mine.fabric == ctx->fabric;
}

/* ------------------------------------------------------- writer */

uint64_t journal_now(const struct urxe_context *ctx)
{
	return journal_is_of(ctx) ? load_acquire(&mine.journal->next) : 0;
}

uint64_t journal_write(const struct urxe_context *ctx, uint32_t qpn,
		       uint32_t rkey, const struct span *remote)
{
	struct urxe_journal_entry *e;
	uint64_t position;

	if (!journal_is_of(ctx))
		return 0;
	position = fetch_add_acq_rel(&mine.journal->next, 1);
	e = &mine.journal->entry[position % URXE_JOURNAL];
	store_relaxed(&e->seq, 0);
	/* a reader that loads a new member then finds seq changed */
	atomic_thread_fence(memory_order_release);
	store_relaxed(&e->done, 0);
	store_relaxed(&e->at, remote->at);
	store_relaxed(&e->end, remote->end);
	store_relaxed(&e->rkey, rkey);
	store_relaxed(&e->qpn, qpn);
	store_relaxed(&e->owner, process_id(ctx->fabric));
	store_relaxed(&e->pid, urxe_pid);
	store_release(&e->seq, position + 1);
	return position + 1;
}

void journal_done(uint64_t written)
{
	struct urxe_journal_entry *e;

	if (!written)
		return;
	e = &mine.journal->entry[(written - 1) % URXE_JOURNAL];
	if (load_relaxed(&e->seq) == written)
		store_release(&e->done, load_acquire(&mine.journal->next) + 1);
}

/* ------------------------------------------------------- reader */

/* A copy of an entry. */
struct written {
	uint64_t seq, done;
	struct span span;
	uint32_t rkey, qpn, owner;
	int32_t pid;
};

/*
 * Copy an entry.  False: it was never used (w->seq is 0), or it is or was
 * being written meanwhile.
 */
static bool journal_read(const struct urxe_journal_entry *e, struct written *w)
{
	/* acquire: the members loaded below are at least as new */
	w->seq = load_acquire(&e->seq);
	w->done = load_relaxed(&e->done);
	w->span.at = load_relaxed(&e->at);
	w->span.end = load_relaxed(&e->end);
	w->rkey = load_relaxed(&e->rkey);
	w->qpn = load_relaxed(&e->qpn);
	w->owner = load_relaxed(&e->owner);
	w->pid = load_relaxed(&e->pid);
	/* and not newer, if seq is unchanged after the fence */
	atomic_thread_fence(memory_order_acquire);
	return w->seq && load_relaxed(&e->seq) == w->seq;
}

/* Is each context that has a QP checked, so that its WRs are recorded? */
static bool journal_is_complete(const struct urxe_fabric *f)
{
	uint32_t i, high = qp_slots(f->dev);
	uint64_t e;

	for (i = 0; i < high; i++) {
		e = load_acquire(&f->dev->qp[i]);
		if (e &&
		    load_acquire(&mine.journal->checked[URXE_DIR_CTX(e)]) !=
			    URXE_DIR_GEN(e))
			return false;
	}
	return true;
}

/*
 * Does the WR w write to one of the spans, or may it?  An rkey of another
 * process does not; an rkey of another context of this process may, and so
 * may an rkey that is no longer valid.
 */
static bool written_overlaps(const struct urxe_context *ctx,
			     const struct written *w, const struct spans *s)
{
	uint32_t slot = URXE_KEY_CTX(w->rkey);
	const struct urxe_key *k;
	struct span here;
	int i;

	if (slot != ctx->slot)
		return peer_is_own(
			ctx->fabric, slot,
			load_relaxed(&ctx->fabric->dev->ctx[slot].gen));
	k = &ctx->arena->key[URXE_KEY_INDEX(w->rkey)];
	if (URXE_KEY_INDEX(w->rkey) >= load_acquire(&ctx->arena->key_high) ||
	    load_acquire(&k->live) != URXE_MR_LIVE(w->rkey))
		return true;
	here.at = span_address(ctx->self, k, w->span.at);
	here.end = here.at + (w->span.end - w->span.at);
	for (i = 0; i < s->n; i++)
		if (span_overlaps(&here, &s->span[i]))
			return true;
	return false;
}

bool journal_may_have_written(const struct urxe_context *ctx,
			      const struct spans *s, uint64_t since)
{
	struct written w;
	uint32_t i;

	if (!journal_is_of(ctx) || !journal_is_complete(ctx->fabric))
		return true;
	for (i = 0; i < URXE_JOURNAL; i++) {
		if (!journal_read(&mine.journal->entry[i], &w)) {
			if (w.seq || i < load_acquire(&mine.journal->next))
				return true;
			continue;
		}
		if (w.done && w.done <= since)
			continue;
		if (written_overlaps(ctx, &w, s))
			return true;
	}
	/*
	 * entries may have been overwritten since: half of the ring is kept
	 * as a margin
	 */
	return load_acquire(&mine.journal->next) - since > URXE_JOURNAL / 2;
}

/*
 * Is the WR of position p done or of process `me`, or its entry overwritten?
 * False as well while the entry is being written.
 */
static bool entry_is_settled(const struct urxe_journal_entry *e, uint64_t p,
			     uint32_t me)
{
	struct written w;

	if (!journal_read(e, &w))
		return false;
	return w.seq > p + 1 || (w.seq == p + 1 && (w.done || w.owner == me));
}

/*
 * Return the first position to read; it is at most URXE_JOURNAL before next.
 */
static uint64_t settled_until(uint64_t next, uint32_t me)
{
	if (mine.settled_for != me || mine.settled > next)
		mine.settled = 0;
	mine.settled_for = me;
	if (next - mine.settled > URXE_JOURNAL)
		mine.settled = next - URXE_JOURNAL;
	return mine.settled;
}

bool journal_other_writes(const struct urxe_context *ctx, uint32_t rkey,
			  const struct span *remote, uint64_t since,
			  struct journal_other *other)
{
	uint64_t p, next;
	struct written w;
	uint32_t me;

	if (!journal_is_of(ctx))
		return false;
	me = process_id(ctx->fabric);
	next = load_acquire(&mine.journal->next);
	for (p = settled_until(next, me); p != next; p++) {
		const struct urxe_journal_entry *e =
			&mine.journal->entry[p % URXE_JOURNAL];

		if (entry_is_settled(e, p, me)) {
			mine.settled += p == mine.settled;
			continue;
		}
		if (!journal_read(e, &w) || w.done || w.rkey != rkey ||
		    w.owner == me || w.seq <= since ||
		    !span_overlaps(&w.span, remote) ||
		    process_is_dead(ctx->fabric, w.owner))
			continue;
		other->qpn = w.qpn;
		other->pid = w.pid;
		other->span = w.span;
		return true;
	}
	return false;
}
