// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts of the fabrics that this process has mapped: its own and those of
 * peers. They are reference counted and kept in one list. The list and the
 * reference counts are protected by `lock`.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/log.h"
#include "mem.h"
#include "peer.h"
#include "engine/core/process.h"
#include "shared/bitmap.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct urxe_peer *peers;

void peer_lock(void)
{
	pthread_mutex_lock(&lock);
}

void peer_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * Determine which PIDs in the keys of the context are PIDs of this process's
 * PID namespace.
 */
static void peer_compare_pids(struct urxe_peer *p)
{
	bool own = p->fd < 0;

	p->foreign_pids = urxe_pidns != p->arena->pidns ||
			  (!own && !urxe_pidns);
	p->my_flag = p->foreign_pids ? URXE_MR_FOREIGN : 0;
	if (p->foreign_pids && !own)
		p->my_flag = PEER_NOT_ME;
	store_relaxed(&p->bounce, p->foreign_pids);
	store_relaxed(&p->probed, false);
}

void peer_after_fork(void)
{
	struct urxe_peer *p;

	for (p = peers; p; p = p->next)
		peer_compare_pids(p);
}

/*
 * Register this process's PID namespace with the context. A key has one bit
 * for it, so a context can be used from the namespace of its opener and from
 * one other. Return false if the other one is taken.
 */
static bool peer_joins(struct urxe_arena *a)
{
	uint64_t none = 0;

	return urxe_pidns == a->pidns ||
	       cas_relaxed(&a->other_pidns, &none, urxe_pidns) ||
	       none == urxe_pidns;
}

/* Add a context to the list. The lock is held. */
static struct urxe_peer *peer_add(struct urxe_fabric *f, struct urxe_arena *a,
				  uint32_t slot, uint32_t gen, int fd)
{
	struct urxe_peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fabric = f;
	p->arena = a;
	p->slot = slot;
	p->gen = gen;
	p->hca = hca_at(f->dev, a->hca);
	p->device = hca_index(f->dev, p->hca);
	p->fd = fd;
	store_relaxed(&p->owner, load_relaxed(&a->opener));
	p->process =
		&f->dev->process[URXE_PROCESS_NUMBER(load_relaxed(&p->owner))];
	peer_compare_pids(p);
	p->next = peers;
	peers = p;
	return p;
}

/* Find a context in the list. The lock is held. */
static struct urxe_peer *peer_find(struct urxe_fabric *f, uint32_t slot,
				   uint32_t gen)
{
	struct urxe_peer *p;

	for (p = peers; p; p = p->next)
		if (p->fabric == f && p->slot == slot && p->gen == gen)
			break;
	return p;
}

int peer_new_self(struct urxe_fabric *f, struct urxe_arena *arena,
		  struct urxe_peer **out)
{
	struct urxe_peer *p;

	if (!peer_joins(arena))
		return fabric_fail(
			EPERM,
			"a context can be shared with only one other PID namespace");
	pthread_mutex_lock(&lock);
	p = peer_add(f, arena, arena->slot, arena->gen, -1);
	if (p)
		p->refs++;
	pthread_mutex_unlock(&lock);
	*out = p;
	return p ? 0 : -ENOMEM;
}

static struct urxe_peer *peer_map(struct urxe_fabric *f, uint32_t slot,
				  uint32_t gen)
{
	struct urxe_arena *arena;
	/* errno is preserved: a post to a vanished peer succeeds */
	int fd, ret, saved = errno;
	struct urxe_peer *p;

	ret = arena_map_peer(f, slot, gen, &arena, &fd);
	if (ret) {
		urxe_note("context %u.%u cannot be mapped: %s", slot, gen,
			  strerror(-ret));
		errno = saved;
		return NULL;
	}
	p = peer_add(f, arena, slot, gen, fd);
	if (!p) {
		arena_unmap(arena);
		close(fd);
	}
	return p;
}

struct urxe_peer *peer_get(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	struct urxe_peer *p;

	pthread_mutex_lock(&lock);
	p = peer_find(f, slot, gen);
	if (!p)
		p = peer_map(f, slot, gen);
	if (p)
		p->refs++;
	pthread_mutex_unlock(&lock);
	return p;
}

void peer_hold(struct urxe_peer *p)
{
	pthread_mutex_lock(&lock);
	p->refs++;
	pthread_mutex_unlock(&lock);
}

void peer_put(struct urxe_peer *p)
{
	struct urxe_peer **pp;
	bool last;

	pthread_mutex_lock(&lock);
	last = !--p->refs;
	for (pp = &peers; last && *pp != p; pp = &(*pp)->next)
		;
	if (last)
		*pp = p->next;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	mem_unmap_files(p);
	arena_unmap(p->arena);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

bool peer_is_own(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	struct urxe_peer *p;
	bool own;

	pthread_mutex_lock(&lock);
	p = peer_find(f, slot, gen);
	own = p && p->fd < 0 && p->arena->pid == urxe_pid;
	pthread_mutex_unlock(&lock);
	return own;
}

static bool key_overlaps(const struct urxe_key *k, uint64_t va, uint64_t len)
{
	return k->va <= va ? va - k->va < k->length : k->va - va < len;
}

/* The lock is held. */
static bool peer_key_overlaps(const struct urxe_peer *p, uint64_t va,
			      uint64_t len)
{
	uint32_t i, high = load_acquire(&p->arena->key_high);
	const struct urxe_key *k;

	for (i = 0; i < high && i < URXE_MAX_KEY; i++) {
		k = &p->arena->key[i];
		if (load_acquire(&k->live) && k->kind == URXE_MEM_PRIVATE &&
		    mem_is_mine(p, k) && key_overlaps(k, va, len))
			return true;
	}
	return false;
}

bool peer_has_private_key(uint64_t va, uint64_t len)
{
	struct urxe_peer *p;
	bool has = false;

	pthread_mutex_lock(&lock);
	for (p = peers; p && !has; p = p->next)
		has = p->fd < 0 && peer_key_overlaps(p, va, len);
	pthread_mutex_unlock(&lock);
	return has;
}

bool peer_any_foreign(void)
{
	struct urxe_peer *p;
	bool any = false;

	pthread_mutex_lock(&lock);
	for (p = peers; p && !any; p = p->next)
		any = p->fd >= 0;
	pthread_mutex_unlock(&lock);
	return any;
}

bool peer_check_dead(struct urxe_peer *p)
{
	uint32_t id = load_relaxed(&p->owner);

	if (!process_is_dead(p->fabric, id))
		return false; /* only its thread that showed life ended */
	if (p->fd >= 0 && !arena_fd_alive(p->fd))
		return true;
	store_relaxed(&p->owner, 0); /* another process has the context */
	return false;
}

bool peer_pid_is_alive(struct urxe_peer *p, int32_t pid)
{
	uint32_t i, id = load_relaxed(&p->owner);

	if (likely(id && load_acquire(&p->process->pid) == pid &&
		   process_seems_alive(p->process, id)))
		return true;
	id = load_relaxed(&p->arena->opener);
	for (i = 0; !process_has_pid(p->fabric, id, pid, urxe_pidns); i++) {
		if (i == URXE_MEMBERS)
			return false;
		id = load_relaxed(&p->arena->member[i]);
	}
	return true;
}

void peers_check(void)
{
	struct urxe_peer *p;

	pthread_mutex_lock(&lock);
	for (p = peers; p; p = p->next) {
		if (p->fd >= 0 && !arena_fd_alive(p->fd))
			fabric_reap_one(p->fabric, p->slot, p->gen);
		mem_unmap_unused(p);
	}
	pthread_mutex_unlock(&lock);
}

static bool watch_has(const struct peer_watch *w, const struct futex_word *word)
{
	uint32_t i;

	for (i = 0; i < w->n && w->word[i].word != word->word; i++)
		;
	return i < w->n;
}

static bool watch_process(struct peer_watch *w, struct urxe_fabric *f,
			  uint32_t id)
{
	struct futex_word word[2];

	if (!id || !process_watch(f, id, word))
		return false;
	if (watch_has(w, &word[0]))
		return true;
	if (w->n + 2 > PEER_WATCH_WORDS)
		return false;
	w->word[w->n++] = word[0];
	w->word[w->n++] = word[1];
	return true;
}

bool peer_is_closed(const struct urxe_peer *p)
{
	const struct urxe_ctx_slot *c = &p->fabric->dev->ctx[p->slot];

	return load_acquire(&c->state) == URXE_CTX_FREE ||
	       load_relaxed(&c->gen) != p->gen;
}

/*
 * Return the ID of the process to watch. For an own context this is the
 * calling process: its words change when the thread that shows its life
 * exits.
 */
static uint32_t peer_process(const struct urxe_peer *p)
{
	return p->fd < 0 ? process_id(p->fabric) : load_relaxed(&p->owner);
}

bool peer_watch(struct peer_watch *w)
{
	bool all = event_count_takes_words();
	struct urxe_peer *p;

	w->n = 0;
	pthread_mutex_lock(&lock);
	for (p = peers; p && all; p = p->next)
		all = peer_is_closed(p) ||
		      watch_process(w, p->fabric, peer_process(p));
	pthread_mutex_unlock(&lock);
	if (!all)
		w->n = 0;
	return all;
}

void peer_note_mapping(struct urxe_peer *peer)
{
	struct urxe_peer *p;

	pthread_mutex_lock(&lock);
	for (p = peers; p; p = p->next)
		if (p->fd < 0 && p->fabric == peer->fabric)
			bitmap_set(peer->arena->mappers, p->slot, 1);
	pthread_mutex_unlock(&lock);
}
