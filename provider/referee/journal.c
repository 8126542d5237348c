// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/mem.h"
#include "engine/peer.h"
#include "journal.h"
#include "shared/journal.h"

/*
 * That of one fabric, while there are contexts of it that joined; NULL: it
 * could not be mapped.
 */
static struct urxe_journal *journal;
static const struct urxe_fabric *journal_of;
static bool joined[URXE_MAX_CTX]; /* by slot */
static unsigned int num_joined;

/*
 * All before this position are done, or are of process settled_for: they need
 * not be looked at any more.
 */
static uint64_t settled;
static uint32_t settled_for;

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

/* referee_lock() is held, so there is one who comes first. */
void journal_join(struct urxe_context *ctx)
{
	if (!journal_of) {
		journal_of = ctx->fabric;
		journal = journal_map(ctx->fabric);
		settled = 0;
	}
	if (journal_of != ctx->fabric)
		return;
	if (!joined[ctx->slot])
		num_joined++;
	joined[ctx->slot] = true;
	if (journal)
		store_release(&journal->checked[ctx->slot], ctx->gen);
}

/* The fabric goes with its last context, and its address can be another's. */
void journal_leave(struct urxe_context *ctx)
{
	if (journal_of != ctx->fabric || !joined[ctx->slot])
		return;
	joined[ctx->slot] = false;
	if (--num_joined)
		return;
	if (journal)
		munmap(journal, sizeof(*journal));
	journal = NULL;
	journal_of = NULL;
}

static bool journal_is_of(const struct urxe_context *ctx)
{
	return journal && journal_of == ctx->fabric;
}

/* ------------------------------------------------------- writing */

uint64_t journal_now(const struct urxe_context *ctx)
{
	return journal_is_of(ctx) ? load_acquire(&journal->next) : 0;
}

uint64_t journal_write(const struct urxe_context *ctx, uint32_t qpn,
		       uint32_t rkey, const struct span *remote)
{
	struct urxe_journal_entry *e;
	uint64_t position;

	if (!journal_is_of(ctx))
		return 0;
	position = fetch_add_acq_rel(&journal->next, 1);
	e = &journal->entry[position % URXE_JOURNAL];
	store_relaxed(&e->seq, 0);
	/* who sees what follows sees that, too */
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
	e = &journal->entry[(written - 1) % URXE_JOURNAL];
	if (load_relaxed(&e->seq) == written)
		store_release(&e->done, load_acquire(&journal->next) + 1);
}

/* ------------------------------------------------------- reading */

struct written {
	uint64_t seq, done;
	struct span span;
	uint32_t rkey, qpn, owner;
	int32_t pid;
};

/* False: there is none, or it is just being written. */
static bool journal_read(const struct urxe_journal_entry *e, struct written *w)
{
	/* acquire: it was whole then */
	w->seq = load_acquire(&e->seq);
	w->done = load_relaxed(&e->done);
	w->span.at = load_relaxed(&e->at);
	w->span.end = load_relaxed(&e->end);
	w->rkey = load_relaxed(&e->rkey);
	w->qpn = load_relaxed(&e->qpn);
	w->owner = load_relaxed(&e->owner);
	w->pid = load_relaxed(&e->pid);
	/* and still is, if seq says so after that */
	atomic_thread_fence(memory_order_acquire);
	return w->seq && load_relaxed(&e->seq) == w->seq;
}

/* Are all written here who have a QP, and so may write to others? */
static bool journal_is_complete(const struct urxe_fabric *f)
{
	uint32_t i, high = load_acquire(&f->dev->qp_high);
	uint64_t e;

	for (i = 0; i < high && i < URXE_MAX_QP; i++) {
		e = load_acquire(&f->dev->qp[i]);
		if (e && load_acquire(&journal->checked[URXE_DIR_CTX(e)]) !=
				 URXE_DIR_GEN(e))
			return false;
	}
	return true;
}

/* Is some of the spans what w writes?  If that is not known it is. */
static bool written_meets(const struct urxe_context *ctx,
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
		if (span_meets(&here, &s->span[i]))
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
		if (!journal_read(&journal->entry[i], &w)) {
			if (w.seq || i < load_acquire(&journal->next))
				return true;
			continue;
		}
		if (w.done && w.done <= since)
			continue;
		if (written_meets(ctx, &w, s))
			return true;
	}
	/* is what was written since then still there? */
	return load_acquire(&journal->next) - since > URXE_JOURNAL / 2;
}

/* Is what was written at position p done, or `me`'s?  If it is just written no.
 */
static bool entry_is_settled(const struct urxe_journal_entry *e, uint64_t p,
			     uint32_t me)
{
	struct written w;

	if (!journal_read(e, &w))
		return false;
	return w.seq > p + 1 || (w.seq == p + 1 && (w.done || w.owner == me));
}

/* The first position to look at: there are at most URXE_JOURNAL till next. */
static uint64_t settled_until(uint64_t next, uint32_t me)
{
	if (settled_for != me || settled > next)
		settled = 0;
	settled_for = me;
	if (next - settled > URXE_JOURNAL)
		settled = next - URXE_JOURNAL;
	return settled;
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
	next = load_acquire(&journal->next);
	for (p = settled_until(next, me); p != next; p++) {
		const struct urxe_journal_entry *e =
			&journal->entry[p % URXE_JOURNAL];

		if (entry_is_settled(e, p, me)) {
			settled += p == settled;
			continue;
		}
		if (!journal_read(e, &w) || w.done || w.rkey != rkey ||
		    w.owner == me || w.seq <= since ||
		    !span_meets(&w.span, remote) ||
		    process_is_dead(ctx->fabric, w.owner))
			continue;
		other->qpn = w.qpn;
		other->pid = w.pid;
		other->span = w.span;
		return true;
	}
	return false;
}
