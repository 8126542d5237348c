// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page adoption: fork().
 *
 * Adopted pages are a shared mapping, so fork() shares them with the child,
 * which must get copies instead.  The pthread_atfork() handlers in
 * abi/context.c call:
 *
 *  adopt_before_fork()		copies the pages to private anonymous memory,
 *				which the kernel duplicates for the child
 *  adopt_after_fork_child()	moves the copies to the original addresses
 *  adopt_after_fork_parent()	frees the copies
 *
 * The lock of adopt.c is held from before the first one until the others end.
 * If a copy cannot be made, the child maps the memfd privately, or shares the
 * pages; the memfd is then never emptied (adoption.may_be_read).
 *
 * vfork() and posix_spawn() run no handlers and need none.  clone() and
 * _Fork() run no handlers, so their child shares the pages.
 *
 * The heap may lie in adopted pages.  From the first copy on, nothing is
 * allocated from the heap or freed to it until the child has its copies.  The
 * list of copies is therefore in pages of its own.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "adopt.h"
#include "adoption.h"
#include "engine/core/log.h"
#include "pages.h"
#include "smaps.h"

struct fork_copy {
	struct smaps_vma vma;
	void *copy; /* NULL: there was no memory */
	int fd;
};

static struct fork_copy *copies; /* valid during fork() */
static unsigned int num_copies, max_copies;

/* Make room for one more entry of copies[].  False: no memory. */
static bool fork_copies_grow(void)
{
	size_t old = max_copies * sizeof(*copies);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = (2 * old + page) / page * page;
	void *more;

	if (num_copies < max_copies)
		return true;
	more = copies ? mremap(copies, old, len, MREMAP_MAYMOVE) :
			mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (more == MAP_FAILED)
		return false;
	copies = more;
	max_copies = len / sizeof(*copies);
	return true;
}

static void fork_copy_add(const struct smaps_vma *v, struct adoption *a)
{
	if (!adoption_has_fd(a) || !fork_copies_grow()) {
		urxe_note(
			"fork: the child shares pages of an MR with the parent");
		a->may_be_read = true;
		return;
	}
	copies[num_copies++] = (struct fork_copy){ .vma = *v, .fd = a->fd };
}

void adopt_before_fork(void)
{
	struct adoption *a;
	struct smaps_vma v;
	unsigned int i;
	FILE *f;

	f = adoptions_count() ? smaps_open() : NULL;
	while (f && smaps_next(f, &v)) {
		a = v.shared ? adoption_find(v.dev, v.ino) : NULL;
		if (a && !v.no_fork)
			fork_copy_add(&v, a);
	}
	if (adoptions_count() && (!f || smaps_close(f)))
		adoptions_set_may_be_read();
	for (i = 0; i < num_copies; i++) {
		copies[i].copy = pages_copy(copies[i].fd, &copies[i].vma);
		a = adoption_find(copies[i].vma.dev, copies[i].vma.ino);
		if (!copies[i].copy && a)
			a->may_be_read = true;
	}
}

static void fork_copies_free(void)
{
	if (copies)
		munmap(copies, max_copies * sizeof(*copies));
	copies = NULL;
	num_copies = max_copies = 0;
}

void adopt_after_fork_parent(void)
{
	unsigned int i;

	for (i = 0; i < num_copies; i++)
		if (copies[i].copy)
			munmap(copies[i].copy,
			       copies[i].vma.end - copies[i].vma.start);
	fork_copies_free();
	adopt_end();
}

/*
 * Replace the shared mapping in the child.  Without a copy, map the memfd
 * privately: the child sees the parent's writes to a page until it writes to
 * that page itself.
 */
static void fork_copy_place(const struct fork_copy *c)
{
	size_t len = c->vma.end - c->vma.start;
	void *at = (void *)(uintptr_t)c->vma.start;

	if (c->copy && !mprotect(c->copy, len, c->vma.prot) &&
	    mremap(c->copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) !=
		    MAP_FAILED)
		return;
	mmap(at, len, c->vma.prot, MAP_PRIVATE | MAP_FIXED, c->fd,
	     (off_t)c->vma.offset);
}

void adopt_after_fork_child(void)
{
	unsigned int i;

	for (i = 0; i < num_copies; i++)
		fork_copy_place(&copies[i]);
	fork_copies_free();
	adoptions_forget();
	adopt_end();
}
