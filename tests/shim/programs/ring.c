// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ring WHAT: a context with one CQ, whose ring is "empty", "busy" or damaged,
 * for "urxe doctor" (doctor.sh).  It stays until it is killed.  The rings are
 * created without the provider.
 */
#include <unistd.h>

#include "fabric/fabric.h"
#include "shared/cq_ring.h"
#include "test.h"

#define DEPTH 512u

static struct cq_ring make_cq(struct urxe_arena *a, int fd,
			      struct urxe_cq_sh **out)
{
	const uint64_t bytes = cq_ring_bytes(9);
	int index = arena_index_take(a->cq_map, URXE_MAX_CQ);
	struct urxe_cq_sh *sh;
	struct cq_ring r;
	uint64_t offset;

	CHECK(index == 1);
	sh = &a->cq[index];
	CHECK(!arena_reserve(fd, (char *)sh - (char *)a, sizeof(*sh)));
	offset = arena_alloc(a, fd, bytes);
	CHECK(offset);
	cq_ring_at(&r, arena_ptr(a, offset, bytes), 9, sh, 0);
	cq_ring_init(&r, 0);
	atomic_store_explicit(&sh->ring, offset | 9, memory_order_relaxed);
	atomic_store_explicit(&sh->live, 1, memory_order_release);
	*out = sh;
	return r;
}

/* Post and poll completions continuously. */
static void be_busy(const struct cq_ring *r)
{
	struct cq_slot s;
	uint32_t i, n;

	for (n = 0;; n++) {
		for (i = 0; i <= n % DEPTH; i++) {
			CHECK(cq_ring_claim(r, 3, &s) == CQ_CLAIMED);
			cq_ring_publish(s.cqe, s.pos, memory_order_release);
		}
		for (i = s.pos - n % DEPTH; i != s.pos + 1; i++)
			cq_ring_release(r, i + 1);
	}
}

static void damage(const struct cq_ring *r, struct urxe_cq_sh *sh,
		   const char *what)
{
	uint64_t word = 0;

	if (!strcmp(what, "place")) {
		atomic_store_explicit(&sh->ring, UINT64_MAX,
				      memory_order_relaxed);
		return;
	}
	if (!strcmp(what, "lap"))
		word = cqe_word(7 + 3 * DEPTH, 0, CQE_CLAIMED);
	else if (!strcmp(what, "state"))
		word = cqe_word(7, 0, CQE_MOVED + 1);
	else if (!strcmp(what, "owner"))
		word = cqe_word(7, 1, CQE_MOVED);
	else if (!strcmp(what, "hole"))
		word = cqe_word(7, 0, CQE_CLAIMED);
	else
		CHECK(!"known damage");
	atomic_store_explicit(&r->claim[7], word, memory_order_relaxed);
}

int main(int argc, char **argv)
{
	struct urxe_fabric *f;
	struct urxe_arena *a;
	struct urxe_cq_sh *sh;
	struct cq_ring ring;
	char dir[256];
	int fd;

	alarm(600); /* ends the process if the test does not */
	CHECK(argc == 2);
	CHECK(!fabric_dir(dir, sizeof(dir)));
	CHECK(!fabric_open(dir, true, &f));
	fd = fabric_context_open(f, 0);
	CHECK(fd >= 0);
	CHECK(!arena_map(fd, &a));
	ring = make_cq(a, fd, &sh);
	if (strcmp(argv[1], "empty") && strcmp(argv[1], "busy"))
		damage(&ring, sh, argv[1]);
	puts("ready");
	fflush(stdout);
	if (!strcmp(argv[1], "busy"))
		be_busy(&ring);
	pause();
	return 0;
}
