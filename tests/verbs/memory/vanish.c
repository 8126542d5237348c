// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory that a test removes while it is registered (vanish.h). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vanish.h"

const struct vanishing vanishings[VANISHINGS] = {
	{ "munmap", KIND_PRIVATE, WAY_UNMAP },
	{ "PROT_NONE", KIND_PRIVATE, WAY_NONE },
	{ "PROT_READ", KIND_PRIVATE, WAY_READ_ONLY },
	{ "munmap of a shared file", KIND_SHARED, WAY_UNMAP },
	{ "PROT_NONE of a shared file", KIND_SHARED, WAY_NONE },
	{ "PROT_READ of a shared file", KIND_SHARED, WAY_READ_ONLY },
	{ "truncated shared file", KIND_SHARED, WAY_TRUNCATE },
	{ "hole in a shared file", KIND_SHARED, WAY_PUNCH },
	{ "MADV_REMOVE of a shared file", KIND_SHARED, WAY_REMOVE },
	{ "truncated private file", KIND_FILE, WAY_TRUNCATE },
};

/* The memory of a node: node.user. */
struct memory {
	enum kind kind;
	int fd;
	enum way way;
	size_t off, len; /* the pages that were removed last */
};

bool faults_are_caught(void)
{
	const char *value = getenv("URXE_FAULT_HANDLER");

	return dlsym(RTLD_DEFAULT, "urxe_nofault") &&
	       !(value && !strcmp(value, "0"));
}

/* ------------------------------------------------------- mapping */

static void map_at(const struct memory *m, char *at, size_t off, size_t len)
{
	int flags = m->kind == KIND_SHARED ? MAP_SHARED : MAP_PRIVATE;

	if (m->kind == KIND_PRIVATE)
		flags |= MAP_ANONYMOUS;
	ck_assert(mmap(at + off, len, PROT_READ | PROT_WRITE, flags | MAP_FIXED,
		       m->fd, m->fd < 0 ? 0 : (off_t)off) == at + off);
}

static int new_file(void)
{
	const int fd = memfd_create("vanish", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_ok(ftruncate(fd, SPAN));
	return fd;
}

void node_remap(struct node *n, enum kind kind, int fd, bool is_b)
{
	char *at = (char *)(is_b ? 0x210000000000 : 0x200000000000);
	struct memory *m = calloc(1, sizeof(*m));

	ck_nonnull(m);
	ck_ok(ibv_dereg_mr(n->mr));
	ck_ok(munmap(n->buf, n->o.size));
	m->kind = kind;
	m->fd = fd >= 0 || kind == KIND_PRIVATE ? fd : new_file();
	map_at(m, at, 0, SPAN);
	n->o.size = SPAN;
	n->buf = at;
	n->base = (uintptr_t)at;
	n->mr = ibv_reg_mr(n->pd, at, SPAN, n->o.mr_access);
	ck_nonnull(n->mr);
	n->user = m;
}

struct remap {
	enum kind kind;
	struct addr addr;
};

static void do_remap(struct node *b, void *arg)
{
	struct remap *r = arg;

	node_remap(b, r->kind, -1, true);
	r->addr = node_addr(b);
}

void vanish_open(struct duo *d, enum where where, enum kind a, enum kind b,
		 const struct opts *o)
{
	struct remap r = { .kind = b };

	duo_open(d, where, MEM_HEAP, MEM_HEAP, o);
	node_remap(&d->a, a, -1, false);
	d->at_a = node_addr(&d->a);
	on_b(d, do_remap, &r, sizeof(r));
	d->at_b = r.addr;
}

static void do_free(struct node *n, void *arg)
{
	struct memory *m = n->user;

	(void)arg;
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

void vanish_close(struct duo *d)
{
	do_free(&d->a, NULL);
	on_b(d, do_free, NULL, 0);
	duo_close(d);
}

/* ------------------------------------------------------- removal */

void node_vanish(struct node *n, enum way way, size_t off, size_t len)
{
	struct memory *m = n->user;
	char *at = (char *)n->buf + off;

	m->way = way;
	m->off = off;
	m->len = len;
	switch (way) {
	case WAY_UNMAP:
		ck_ok(munmap(at, len));
		break;
	case WAY_NONE:
		ck_ok(mprotect(at, len, PROT_NONE));
		break;
	case WAY_READ_ONLY:
		ck_ok(mprotect(at, len, PROT_READ));
		break;
	case WAY_TRUNCATE:
		ck_ok(ftruncate(m->fd, (off_t)off));
		break;
	case WAY_PUNCH:
		ck_ok(fallocate(m->fd,
				FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)off, (off_t)len));
		break;
	case WAY_REMOVE:
		ck_ok(madvise(at, len, MADV_REMOVE));
		break;
	}
}

void node_restore(struct node *n)
{
	struct memory *m = n->user;

	switch (m->way) {
	case WAY_UNMAP:
		map_at(m, n->buf, m->off, m->len);
		break;
	case WAY_NONE:
	case WAY_READ_ONLY:
		ck_ok(mprotect((char *)n->buf + m->off, m->len,
			       PROT_READ | PROT_WRITE));
		break;
	case WAY_TRUNCATE:
		ck_ok(ftruncate(m->fd, SPAN));
		break;
	default:
		break;
	}
}

struct removal {
	enum way way;
	size_t off, len;
};

static void do_vanish(struct node *n, void *arg)
{
	const struct removal *r = arg;

	node_vanish(n, r->way, r->off, r->len);
}

static void do_restore(struct node *n, void *arg)
{
	(void)arg;
	node_restore(n);
}

static void on_side(struct duo *d, enum side side, node_fn *fn, void *arg,
		    size_t len)
{
	if (side == MINE)
		fn(&d->a, arg);
	else
		on_b(d, fn, arg, len);
}

void vanish(struct duo *d, enum side side, enum way way, size_t off, size_t len)
{
	struct removal r = { .way = way, .off = off, .len = len };

	on_side(d, side, do_vanish, &r, sizeof(r));
}

void restore(struct duo *d, enum side side)
{
	on_side(d, side, do_restore, NULL, 0);
}

bool access_fails(const struct duo *d, const struct vanishing *v,
		  enum side side, bool store)
{
	/* a peer has a mapping of its own */
	if (side == PEERS && d->where == TWO_PROCESSES &&
	    v->kind == KIND_SHARED)
		return v->way == WAY_TRUNCATE;
	return v->way == WAY_READ_ONLY ?
		       store :
		       v->way != WAY_PUNCH && v->way != WAY_REMOVE;
}

/* ------------------------------------------------------- content */

struct content {
	size_t off, len;
	uint64_t word;
};

static uint64_t next_word(uint64_t w)
{
	return w * 6364136223846793005 + 1442695040888963407;
}

static void do_fill(struct node *n, void *arg)
{
	const struct content *c = arg;
	char *p = (char *)n->buf + c->off, *end = p + c->len;
	uint64_t w = next_word(c->word);

	for (; p + 8 <= end; p += 8, w = next_word(w))
		memcpy(p, &w, 8);
	memcpy(p, &w, (size_t)(end - p));
}

static void do_hash(struct node *n, void *arg)
{
	struct content *c = arg;
	const char *p = (char *)n->buf + c->off, *end = p + c->len;
	uint64_t w;

	for (c->word = 0; p < end; p += 8) {
		w = 0;
		memcpy(&w, p, end - p < 8 ? (size_t)(end - p) : 8);
		c->word = next_word(c->word ^ w);
	}
}

void side_fill(struct duo *d, enum side side, size_t off, size_t len,
	       uint64_t seed)
{
	struct content c = { .off = off, .len = len, .word = seed };

	on_side(d, side, do_fill, &c, sizeof(c));
}

uint64_t side_hash(struct duo *d, enum side side, size_t off, size_t len)
{
	struct content c = { .off = off, .len = len };

	on_side(d, side, do_hash, &c, sizeof(c));
	return c.word;
}

void exchange_once(struct duo *d)
{
	node_fill(&d->a, 0, 64, 1);
	b_recv(d, 90, 512, 64);
	ck_ok(post(d, IBV_WR_SEND, 91, 0, 64, 0, 0));
	expect_ok(d->a.scq, 91, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(d).status, IBV_WC_SUCCESS);
	ck_assert(b_has(d, 512, 64, 1));
	node_fill(&d->a, 0, 64, 2);
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 92, 0, 64, 512, 0));
	expect_ok(d->a.scq, 92, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(d, 512, 64, 2));
}
