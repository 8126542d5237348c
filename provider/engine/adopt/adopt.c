// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page adoption: which pages are adopted, and the table of adopted memfds.
 *
 * With URXE_ADOPT set, registration turns private pages into a shared mapping
 * of a memfd, which peers map (copy path 2).  After the last deregistration
 * the pages become private again.  pages.c replaces the pages; adopt_fork.c
 * handles fork(); docs/adoption.md lists what a program can observe.
 *
 * Callers are the MR verbs (verbs/mr/mr.c, verbs/mr/rereg.c) and the fork handlers
 * (abi/context.c).  The table is protected by a recursive mutex, which is the
 * outermost lock of the provider.  adopt_begin() takes it, adopt_end()
 * releases it.
 *
 * A range is adopted only if all of these conditions hold:
 *  - It consists of whole pages, so that they contain only bytes of the MR.
 *  - It is private memory, readable and writable, without attributes that a
 *    new mapping would lose (mlock, madvise, ...; smaps.c).
 *  - It overlaps no MR that peers reach by process_vm_*.  A
 *    process_vm_writev(2) in progress has resolved the old pages; bytes
 *    written to them after the replacement would be lost.
 * Otherwise the pages stay private, and the reason is logged.  If pages
 * cannot become private again, they stay shared; adopt_settle() retries.
 *
 * The program may unmap, move and protect adopted pages at any time.  The
 * memfd does not change while it has MRs.  Its mappings are therefore read
 * from /proc/self/smaps when they are needed: when the last MR is
 * deregistered, and at fork().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adopt.h"
#include "adoption.h"
#include "base/compiler.h"
#include "engine/core/log.h"
#include "pages.h"
#include "engine/mem/peer.h"
#include "smaps.h"

/* Each adoption needs a descriptor and one or more mappings. */
#define ADOPT_MAX 256

static struct {
	bool on;
	pthread_mutex_t lock;
	struct adoption table[ADOPT_MAX];
	unsigned int count;
	unsigned int depth; /* nesting of adopt_begin() */
	int cancel_state; /* before the outermost adopt_begin() */
} adoptions;

static void lock_init(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&adoptions.lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

void adopt_init(void)
{
	const char *value = getenv("URXE_ADOPT");

	adoptions.on = value && *value && strcmp(value, "0");
	if (adoptions.on)
		lock_init();
}

/* Disable cancellation: a cancelled thread would leave the lock taken. */
void adopt_begin(void)
{
	int state;

	if (likely(!adoptions.on))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&adoptions.lock);
	if (!adoptions.depth++)
		adoptions.cancel_state = state;
}

void adopt_end(void)
{
	int state, old = PTHREAD_CANCEL_DISABLE;

	if (likely(!adoptions.on))
		return;
	if (!--adoptions.depth)
		old = adoptions.cancel_state;
	pthread_mutex_unlock(&adoptions.lock);
	pthread_setcancelstate(old, &state);
}

struct adoption *adoption_find(uint64_t dev, uint64_t ino)
{
	unsigned int i;

	for (i = 0; i < adoptions.count; i++)
		if (adoptions.table[i].ino == ino &&
		    adoptions.table[i].dev == dev)
			return &adoptions.table[i];
	return NULL;
}

/*
 * Return why mapping @v cannot be adopted, or NULL.  Private anonymous memory
 * can be, and so can a private mapping of a memfd from an earlier adoption.
 */
static const char *vma_refused(const struct smaps_vma *v)
{
	const char name[] = "/memfd:" PAGES_NAME;

	if (v->shared || (v->ino && strncmp(v->path, name, sizeof(name) - 1)))
		return "the memory is a file or a shared mapping";
	if (v->prot != (PROT_READ | PROT_WRITE))
		return "the memory is not both readable and writable";
	if (!v->ordinary)
		return "the mapping is special (mlock, madvise, userfaultfd, a stack; see VmFlags in /proc/self/smaps)";
	return NULL;
}

/* Return why [va, end) cannot be adopted, or NULL. */
static const char *range_refused(uint64_t va, uint64_t end)
{
	const char *why = NULL;
	struct smaps_vma v;
	uint64_t at = va;
	FILE *f;

	f = smaps_open();
	if (!f)
		return "/proc/self/smaps does not exist";
	while (!why && at < end && smaps_next(f, &v)) {
		if (v.end <= at)
			continue;
		why = v.start > at ? "not all pages are mapped" :
				     vma_refused(&v);
		at = v.end;
	}
	if (smaps_close(f) && at < end)
		why = "/proc/self/smaps cannot be read";
	return why || at >= end ? why : "not all pages are mapped";
}

static const char *adopt_refused(uint64_t va, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!len || va % page || len % page)
		return "the MR does not start and end at page boundaries";
	if (adoptions.count == ADOPT_MAX)
		return "the limit of adopted MRs is reached";
	if (peer_has_private_key(va, len))
		return "the pages contain another MR, which is private";
	return range_refused(va, va + len);
}

static bool adopt_pages(uint64_t va, uint64_t len)
{
	const char *why;
	struct stat st;
	int fd;

	why = adopt_refused(va, len);
	if (why) {
		urxe_note("ibv_reg_mr: the pages stay private: %s", why);
		return false;
	}
	fd = pages_share((void *)(uintptr_t)va, len, &st);
	if (fd < 0) {
		urxe_note("ibv_reg_mr: the pages stay private: %s",
			  strerror(-fd));
		return false;
	}
	adoptions.table[adoptions.count++] = (struct adoption){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.fd = fd,
	};
	return true;
}

bool adopt_range(uint64_t va, uint64_t len)
{
	int saved = errno;
	bool adopted;

	if (likely(!adoptions.on))
		return false;
	adopted = adopt_pages(va, len);
	errno = saved;
	return adopted;
}

bool adopt_has(uint64_t dev, uint64_t ino)
{
	bool has;

	if (likely(!adoptions.on))
		return false;
	adopt_begin();
	has = adoption_find(dev, ino);
	adopt_end();
	return has;
}

void adopt_hold(uint64_t dev, uint64_t ino)
{
	struct adoption *a;

	if (likely(!adoptions.on))
		return;
	adopt_begin();
	a = adoption_find(dev, ino);
	if (a)
		a->refs++;
	adopt_end();
}

bool adoption_has_fd(const struct adoption *a)
{
	struct stat st;

	return !fstat(a->fd, &st) && st.st_dev == a->dev && st.st_ino == a->ino;
}

/* Return why the memfd's pages cannot become private again, or NULL. */
static const char *adoption_is_held(const struct adoption *a)
{
	const char *why = NULL;
	struct smaps_vma v;
	FILE *f;

	if (!adoption_has_fd(a))
		return "the descriptor of the memfd was closed";
	f = smaps_open();
	if (!f)
		return "/proc/self/smaps does not exist";
	while (!why && smaps_next(f, &v)) {
		if (v.ino != a->ino || v.dev != a->dev || !v.shared)
			continue;
		if (!v.ordinary)
			why = "the mapping has special flags now (VmFlags in /proc/self/smaps)";
		else if (peer_has_private_key(v.start, v.end - v.start))
			why = "the pages contain another MR";
	}
	if (smaps_close(f))
		why = "/proc/self/smaps cannot be read";
	return why;
}

/*
 * Make all shared mappings of the memfd private.  0 or -errno; after an error
 * some mappings may still be shared.
 */
static int adoption_unmap(struct adoption *a)
{
	FILE *f = smaps_open();
	struct smaps_vma v;
	int ret = 0, err;

	if (!f)
		return -ENOENT;
	while (ret >= 0 && smaps_next(f, &v)) {
		if (v.ino != a->ino || v.dev != a->dev || !v.shared)
			continue;
		ret = pages_unshare(a->fd, &v);
		if (ret > 0)
			a->may_be_read = true;
	}
	err = smaps_close(f);
	return ret < 0 ? ret : err;
}

/* Make the pages private and drop the table entry; if that fails, keep it. */
static void adoption_end(struct adoption *a)
{
	const char *why = adoption_is_held(a);
	int ret = 0;

	if (!why) {
		ret = adoption_unmap(a);
		if (ret)
			why = strerror(-ret);
	}
	if (why) {
		urxe_note("ibv_dereg_mr: the pages stay shared: %s", why);
		return;
	}
	if (!a->may_be_read)
		pages_empty(a->fd);
	close(a->fd);
	*a = adoptions.table[--adoptions.count];
}

void adopt_settle(void)
{
	int saved = errno;
	unsigned int i;

	if (likely(!adoptions.on))
		return;
	adopt_begin();
	for (i = adoptions.count; i-- > 0;)
		if (!adoptions.table[i].refs)
			adoption_end(&adoptions.table[i]);
	adopt_end();
	errno = saved;
}

void adopt_put(uint64_t dev, uint64_t ino)
{
	struct adoption *a;

	if (likely(!adoptions.on))
		return;
	adopt_begin();
	a = adoption_find(dev, ino);
	if (a && a->refs)
		a->refs--;
	adopt_end();
}

unsigned int adoptions_count(void)
{
	return adoptions.count;
}

void adoptions_set_may_be_read(void)
{
	unsigned int i;

	for (i = 0; i < adoptions.count; i++)
		adoptions.table[i].may_be_read = true;
}

void adoptions_forget(void)
{
	unsigned int i;

	if (!adoptions.on)
		return;
	for (i = 0; i < adoptions.count; i++)
		if (adoption_has_fd(&adoptions.table[i]))
			close(adoptions.table[i].fd);
	adoptions.count = 0;
	/*
	 * In the child only this thread exists.  Reinitialize the mutex, and
	 * lock it once, for the adopt_end() of the fork handler.
	 */
	lock_init();
	pthread_mutex_lock(&adoptions.lock);
	adoptions.depth = 1;
}
