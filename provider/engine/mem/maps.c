// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Cache of one open descriptor of /proc/self/maps; see maps.h.
 *
 * The state of the cache is in a page with MADV_WIPEONFORK, so a forked child
 * starts without one. maps_open() holds the cache's try-lock until
 * maps_close(). A thread that does not get the lock opens a descriptor of its
 * own.
 *
 * The program may close the descriptor and reuse its number. Therefore st_dev
 * and st_ino are compared before each use. maps_open(), maps_close() and
 * maps_forget() preserve errno.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "maps.h"

struct maps_kept {
	_Atomic uint32_t busy;
	bool open;
	int fd;
	dev_t dev; /* identity of the file; /proc does not reuse inodes */
	ino_t ino;
};

static struct maps_kept *_Atomic page;
/*
 * Copy of the cache state in ordinary memory: in a forked child it names the
 * inherited descriptor, which the child closes.
 */
static struct maps_kept parents;

void maps_prepare(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct maps_kept *p, *none = NULL;

	if (load_acquire(&page))
		return;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return;
	if (madvise(p, size, MADV_WIPEONFORK) || !cas_acq_rel(&page, &none, p))
		munmap(p, size);
}

/*
 * Return whether the descriptor still is the file that was cached. If not,
 * the program has reused its number.
 */
static bool maps_are(const struct maps_kept *k)
{
	struct stat st;

	return k->open && !fstat(k->fd, &st) && st.st_dev == k->dev &&
	       st.st_ino == k->ino;
}

/*
 * Lock the cache. Return NULL if there is none or another thread holds the
 * lock.
 */
static struct maps_kept *maps_lock(void)
{
	struct maps_kept *k = load_acquire(&page);

	if (!k || exchange_acquire(&k->busy, 1))
		return NULL;
	if (!k->open && maps_are(&parents))
		close(parents.fd);
	parents.open = k->open;
	return k;
}

static void maps_unlock(struct maps_kept *k)
{
	store_release(&k->busy, 0);
}

static void maps_drop(struct maps_kept *k)
{
	k->open = parents.open = false;
}

static void maps_keep(struct maps_kept *k, int fd)
{
	struct stat st;

	if (fstat(fd, &st)) {
		close(fd);
		return;
	}
	k->fd = fd;
	k->dev = st.st_dev;
	k->ino = st.st_ino;
	k->open = true;
	parents.fd = fd;
	parents.dev = st.st_dev;
	parents.ino = st.st_ino;
	parents.open = true;
}

void maps_open(struct maps *m, bool fresh)
{
	int saved = errno;

	m->kept = fresh ? NULL : maps_lock();
	m->lent = m->kept && maps_are(m->kept);
	if (m->lent) {
		m->fd = m->kept->fd;
	} else {
		if (m->kept)
			maps_drop(m->kept);
		m->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	}
	errno = saved;
}

void maps_close(struct maps *m, bool keep)
{
	int saved = errno;

	if (m->fd >= 0 && !m->lent) {
		if (keep && m->kept)
			maps_keep(m->kept, m->fd);
		else
			close(m->fd);
	}
	if (m->kept)
		maps_unlock(m->kept);
	errno = saved;
}

void maps_forget(void)
{
	struct maps_kept *k = maps_lock();
	int saved = errno;

	if (k && maps_are(k))
		close(k->fd);
	if (k) {
		maps_drop(k);
		maps_unlock(k);
	}
	errno = saved;
}
