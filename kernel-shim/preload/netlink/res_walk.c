// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Find the objects of a context: open the arena of a context slot, and
 * iterate over the entries of its tables (res.h).
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "res.h"
#include "shared/bitmap.h"

#define AT_ONCE 4096 /* bytes of a table read at a time */

static_assert(!offsetof(struct urxe_pd_sh, live) &&
		      !offsetof(struct urxe_cq_sh, live) &&
		      !offsetof(struct urxe_srq_sh, live) &&
		      URXE_SRQN(1, 0) == URXE_MAX_SRQ &&
		      sizeof(struct urxe_qp_sh) <= AT_ONCE,
	      "kind_is_object() and res_each() rely on this");

bool res_read(const struct res_ctx *c, uint64_t offset, void *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = pread(c->fd, (char *)buf + done, len - done,
			  (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/*
 * The first members of struct urxe_arena, which are written when the arena is
 * created and do not change.
 */
struct head {
	char magic[16];
	uint32_t version;
	uint32_t slot, gen;
	int32_t pid;
	uint64_t pidns;
	char comm[16];
};
static_assert(offsetof(struct head, pidns) ==
			      offsetof(struct urxe_arena, pidns) &&
		      offsetof(struct head, comm) ==
			      offsetof(struct urxe_arena, comm),
	      "struct head is the start of struct urxe_arena");

static bool ctx_read_head(struct res_ctx *c)
{
	const uint64_t own = fabric_pidns();
	struct head h;

	if (!res_read(c, 0, &h, sizeof(h)) ||
	    memcmp(h.magic, URXE_ARENA_MAGIC, sizeof(h.magic)) ||
	    h.version != urxe_layout_version || h.slot != c->slot ||
	    h.gen != c->gen)
		return false;
	c->pid = h.pid;
	c->foreign = h.pidns && own && h.pidns != own;
	memcpy(c->comm, h.comm, sizeof(h.comm));
	return true;
}

bool res_ctx_open(struct urxe_fabric *f, uint32_t slot, struct res_ctx *c)
{
	const struct urxe_ctx_slot *s = &f->dev->ctx[slot];
	char name[32];

	*c = (struct res_ctx){ .f = f, .slot = slot };
	if (load_acquire(&s->state) != URXE_CTX_LIVE)
		return false;
	c->gen = load_relaxed(&s->gen);
	snprintf(name, sizeof(name), URXE_ARENA_NAME, slot, c->gen);
	c->fd = openat(f->dirfd, name, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0)
		return false;
	if (ctx_read_head(c))
		return true;
	close(c->fd);
	return false;
}

void res_ctx_close(struct res_ctx *c)
{
	free(c->user);
	close(c->fd);
}

/*
 * Set the bits of the entries that may be objects.  False: the bitmap cannot
 * be read.
 */
static bool kind_find_used(const struct res_ctx *c, const struct res_kind *kind,
			   uint64_t *map)
{
	memset(map, kind->map || kind->find ? 0 : 0xff, kind->max / 8);
	if (kind->find)
		kind->find(c, map);
	return !kind->map || res_read(c, kind->map, map, kind->max / 8);
}

/*
 * Return true if the entry is an object; set its number.  Tables without
 * kind->check do not use entry 0.
 */
static bool kind_is_object(const struct res_kind *kind, struct res_obj *o)
{
	if (kind->check)
		return kind->check(o);
	o->number = o->c->slot * kind->max + o->index;
	return o->index && *(const uint32_t *)o->entry & kind->live;
}

void res_each(const struct res_ctx *c, const struct res_kind *kind, res_fn *fn,
	      void *arg)
{
	const _Atomic uint32_t *used = &c->f->dev->ctx[c->slot].used[kind->obj];
	const uint32_t room = AT_ONCE / kind->size, n = room < 64 ? room : 64;
	uint64_t map[URXE_MAX_KEY / 64];
	alignas(64) char table[AT_ONCE];
	uint32_t i, k;

	if (!load_relaxed(used) || !kind_find_used(c, kind, map))
		return;
	for (i = 0; i < kind->max; i += n) {
		if (!(map[i / 64] >> i % 64 << (64 - n)))
			continue;
		if (!res_read(c, kind->offset + (size_t)i * kind->size, table,
			      (size_t)n * kind->size))
			return;
		for (k = 0; k < n; k++) {
			struct res_obj o = { .c = c,
					     .slot = c->slot,
					     .pid = c->pid,
					     .index = i + k };

			o.entry = table + (size_t)k * kind->size;
			if (bitmap_test(map, i + k) &&
			    kind_is_object(kind, &o) && !fn(&o, arg))
				return;
		}
	}
}
