// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Whole pages are adopted, so that nothing but the MR's own bytes is in them,
 * and only private memory for which nothing was asked that would be lost
 * (smaps.c), that no other MR is in which peers reach by process_vm_*: the
 * kernel looks the pages up before it copies, and would copy into those that
 * were just given up.
 *
 * The program may unmap, move and protect its pages as it likes; the file stays
 * what it is while it has MRs.  So where it is mapped is looked up when that is
 * asked, at the end and when it forks.
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
#include "log.h"
#include "pages.h"
#include "peer.h"
#include "smaps.h"

/* Each is a descriptor, and one or more mappings. */
#define ADOPT_MAX 256

static bool adopt_on;
static pthread_mutex_t lock;
static struct adoption table[ADOPT_MAX];
static unsigned int count;
static unsigned int depth; /* of adopt_begin() */
static int cancel_state; /* before the first of them */

static void lock_init(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

void adopt_init(void)
{
	const char *value = getenv("URXE_ADOPT");

	adopt_on = value && *value && strcmp(value, "0");
	if (adopt_on)
		lock_init();
}

/* A thread that is cancelled in here would leave the lock taken. */
void adopt_begin(void)
{
	int state;

	if (likely(!adopt_on))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	if (!depth++)
		cancel_state = state;
}

void adopt_end(void)
{
	int state, old = PTHREAD_CANCEL_DISABLE;

	if (likely(!adopt_on))
		return;
	if (!--depth)
		old = cancel_state;
	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(old, &state);
}

struct adoption *adoption_find(uint64_t dev, uint64_t ino)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (table[i].ino == ino && table[i].dev == dev)
			return &table[i];
	return NULL;
}

/* Private memory that is nobody's but this program's, or once was adopted. */
static const char *vma_refused(const struct smaps_vma *v)
{
	const char name[] = "/memfd:" PAGES_NAME;

	if (v->shared || (v->ino && strncmp(v->path, name, sizeof(name) - 1)))
		return "they are of a file, or shared";
	if (v->prot != (PROT_READ | PROT_WRITE))
		return "they are not readable and writable";
	if (!v->ordinary)
		return "something was asked for them (mlock, madvise, userfaultfd, a stack; VmFlags in /proc/self/smaps)";
	return NULL;
}

static const char *range_refused(uint64_t va, uint64_t end)
{
	const char *why = NULL;
	struct smaps_vma v;
	uint64_t at = va;
	FILE *f;

	f = smaps_open();
	if (!f)
		return "there is no /proc/self/smaps";
	while (!why && at < end && smaps_next(f, &v)) {
		if (v.end <= at)
			continue;
		why = v.start > at ? "they are not all mapped" :
				     vma_refused(&v);
		at = v.end;
	}
	if (smaps_close(f) && at < end)
		why = "/proc/self/smaps cannot be read";
	return why || at >= end ? why : "they are not all mapped";
}

static const char *adopt_refused(uint64_t va, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!len || va % page || len % page)
		return "it does not begin and end with a page";
	if (count == ADOPT_MAX)
		return "there are as many adopted MRs as there may be";
	if (peer_has_private_key(va, len))
		return "another MR is in them that is private";
	return range_refused(va, va + len);
}

static bool adopt_pages(uint64_t va, uint64_t len)
{
	const char *why;
	struct stat st;
	int fd;

	why = adopt_refused(va, len);
	if (why) {
		urxe_note("ibv_reg_mr: its pages stay private: %s", why);
		return false;
	}
	fd = pages_share((void *)(uintptr_t)va, len, &st);
	if (fd < 0) {
		urxe_note("ibv_reg_mr: its pages stay private: %s",
			  strerror(-fd));
		return false;
	}
	table[count++] = (struct adoption){
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

	if (likely(!adopt_on))
		return false;
	adopted = adopt_pages(va, len);
	errno = saved;
	return adopted;
}

bool adopt_has(uint64_t dev, uint64_t ino)
{
	bool has;

	if (likely(!adopt_on))
		return false;
	adopt_begin();
	has = adoption_find(dev, ino);
	adopt_end();
	return has;
}

void adopt_hold(uint64_t dev, uint64_t ino)
{
	struct adoption *a;

	if (likely(!adopt_on))
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

/* What stands in the way of its being private again. */
static const char *adoption_is_held(const struct adoption *a)
{
	const char *why = NULL;
	struct smaps_vma v;
	FILE *f;

	if (!adoption_has_fd(a))
		return "their descriptor was closed";
	f = smaps_open();
	if (!f)
		return "there is no /proc/self/smaps";
	while (!why && smaps_next(f, &v)) {
		if (v.ino != a->ino || v.dev != a->dev || !v.shared)
			continue;
		if (!v.ordinary)
			why = "something was asked for them meanwhile";
		else if (peer_has_private_key(v.start, v.end - v.start))
			why = "another MR is in them";
	}
	if (smaps_close(f))
		why = "/proc/self/smaps cannot be read";
	return why;
}

/* Each mapping of it.  -errno: there may be some that are shared. */
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
			a->shown = true;
	}
	err = smaps_close(f);
	return ret < 0 ? ret : err;
}

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
		urxe_note("ibv_dereg_mr: its pages stay shared: %s", why);
		return;
	}
	if (!a->shown)
		pages_empty(a->fd);
	close(a->fd);
	*a = table[--count];
}

void adopt_settle(void)
{
	int saved = errno;
	unsigned int i;

	if (likely(!adopt_on))
		return;
	adopt_begin();
	for (i = count; i-- > 0;)
		if (!table[i].refs)
			adoption_end(&table[i]);
	adopt_end();
	errno = saved;
}

void adopt_put(uint64_t dev, uint64_t ino)
{
	struct adoption *a;

	if (likely(!adopt_on))
		return;
	adopt_begin();
	a = adoption_find(dev, ino);
	if (a && a->refs)
		a->refs--;
	adopt_end();
}

unsigned int adoptions_count(void)
{
	return count;
}

void adoptions_are_shown(void)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		table[i].shown = true;
}

void adoptions_forget(void)
{
	unsigned int i;

	if (!adopt_on)
		return;
	for (i = 0; i < count; i++)
		if (adoption_has_fd(&table[i]))
			close(table[i].fd);
	count = 0;
	/* other threads, who waited for it, are not here */
	lock_init();
	pthread_mutex_lock(&lock);
	depth = 1;
}
