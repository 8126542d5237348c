// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Opened devices: to look through, and as objects of their own. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "res.h"

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

uint32_t res_used(const struct res_ctx *c, enum urxe_obj o)
{
	return atomic_load_explicit(&c->f->dev->ctx[c->slot].used[o],
				    memory_order_relaxed);
}

/* The beginning of an arena, which has been there since it was made. */
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
	      "as in layout.h");

static bool is_foreign(uint64_t pidns)
{
	struct stat st;

	return pidns && !stat("/proc/self/ns/pid", &st) && st.st_ino != pidns;
}

static bool read_head(struct res_ctx *c)
{
	struct head h;

	if (!res_read(c, 0, &h, sizeof(h)) ||
	    memcmp(h.magic, URXE_ARENA_MAGIC, sizeof(h.magic)) ||
	    h.version != urxe_layout_version || h.slot != c->slot ||
	    h.gen != c->gen)
		return false;
	c->pid = h.pid;
	c->foreign = is_foreign(h.pidns);
	memcpy(c->comm, h.comm, sizeof(h.comm));
	c->comm[sizeof(h.comm)] = 0;
	return true;
}

static bool open_ctx(struct res_ctx *c)
{
	const struct urxe_ctx_slot *s = &c->f->dev->ctx[c->slot];
	char name[32];

	if (atomic_load_explicit(&s->state, memory_order_acquire) !=
	    URXE_CTX_LIVE)
		return false;
	c->gen = atomic_load_explicit(&s->gen, memory_order_relaxed);
	snprintf(name, sizeof(name), "ctx/%u.%u", c->slot, c->gen);
	c->fd = openat(c->f->dirfd, name, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0)
		return false;
	if (read_head(c))
		return true;
	close(c->fd);
	return false;
}

void res_walk(struct res_out *o)
{
	struct urxe_fabric *f = o->r->f;
	uint32_t slot;

	fabric_reap(f);
	for (slot = 0; slot < URXE_MAX_CTX && !res_done(o); slot++) {
		struct res_ctx c = { .f = f, .slot = slot };

		if (!open_ctx(&c))
			continue;
		o->kind->list(o, &c);
		free(c.qp);
		close(c.fd);
	}
}

/* ---------------------------------------------------------------- objects */

static int fill(struct nl_msg *m, const void *object)
{
	const struct res_ctx *c = object;

	return nla_put_u32(m, RDMA_NLDEV_ATTR_RES_CTXN, c->slot) ||
	       res_put_owner(m, c, c->pid);
}

static void list(struct res_out *o, struct res_ctx *c)
{
	res_put(o, c->slot, 0, fill, c);
}

const struct res_kind res_kind_ctx = {
	.op = RDMA_NLDEV_CMD_RES_CTX_GET,
	.table = RDMA_NLDEV_ATTR_RES_CTX,
	.entry = RDMA_NLDEV_ATTR_RES_CTX_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_CTXN,
	.list = list,
};
