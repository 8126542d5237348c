// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Find the descriptor of a mapped file, for registration (engine/mr/file.c).
 *
 * Only a scan of /proc/self/fd tells which descriptor refers to a file, and a
 * program may have thousands.  So a scan enters all regular files that it
 * meets in a hash table, keyed by device and inode.  An entry is verified
 * with fstat() before it is used, because the program may have closed or
 * reused the descriptor.  For a file without a descriptor, the scan is
 * repeated at its 1st, 2nd, 4th, 8th ... registration: it may have been
 * opened since.
 *
 * The table is protected by a mutex, which is made anew in a forked child.
 * Without memory for the table each registration costs a scan.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "descriptor.h"
#include "vma.h"

#define NO_FD (-1)
#define LATELY 64 /* below the lowest free descriptor, see find_lately() */
#define MAX_KNOWN (1u << 18) /* entries; a larger table is emptied */

struct known {
	uint64_t dev, ino; /* ino 0: free */
	int fd; /* NO_FD: the scan found none */
	uint32_t lookups; /* registrations without a descriptor */
};

/* Hash table with open addressing, at most half full. */
static struct known *table;
static uint32_t mask, count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void descriptor_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* Return the file's entry, or the free one to use for it. */
static struct known *table_at(uint64_t dev, uint64_t ino)
{
	uint32_t i = (uint32_t)((dev ^ ino) * 0x9e3779b97f4a7c15u >> 32);

	while (table[i & mask].ino &&
	       (table[i & mask].ino != ino || table[i & mask].dev != dev))
		i++;
	return &table[i & mask];
}

static bool table_grow(void)
{
	uint32_t i, size = table ? 2 * (mask + 1) : 256;
	struct known *old = table, *t;
	uint32_t n = table ? mask + 1 : 0;

	if (size > MAX_KNOWN) {
		memset(table, 0, n * sizeof(*table));
		count = 0;
		return true;
	}
	t = calloc(size, sizeof(*t));
	if (!t)
		return false;
	table = t;
	mask = size - 1;
	for (i = 0; i < n; i++)
		if (old[i].ino)
			*table_at(old[i].dev, old[i].ino) = old[i];
	free(old);
	return true;
}

/* Enter a file; without memory it is not entered. */
static void table_put(uint64_t dev, uint64_t ino, int fd)
{
	struct known *k;

	if ((!table || 2 * (count + 1) > mask) && !table_grow())
		return;
	k = table_at(dev, ino);
	count += !k->ino;
	if (!k->ino || fd >= 0)
		k->lookups = 1;
	k->dev = dev;
	k->ino = ino;
	k->fd = fd;
}

bool descriptor_is(int fd, const struct vma *v)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == v->ino && st.st_dev == v->dev;
}

/*
 * The kernel returns the lowest free descriptor, so a file that was opened
 * recently is likely to be just below it.
 */
static int find_lately(int lowest_free, const struct vma *v)
{
	int fd;

	for (fd = lowest_free - 1; fd >= 0 && fd >= lowest_free - LATELY; fd--)
		if (descriptor_is(fd, v))
			return fd;
	return NO_FD;
}

/* Enter all regular files in the table; return one that is @v's or NO_FD. */
static int walk(DIR *dir, const struct vma *v)
{
	int fd, found = NO_FD;
	struct dirent *de;
	struct stat st;

	while ((de = readdir(dir))) {
		fd = atoi(de->d_name);
		if (de->d_name[0] == '.' || fd == dirfd(dir) ||
		    fstat(fd, &st) || !st.st_ino)
			continue;
		if (S_ISREG(st.st_mode))
			table_put(st.st_dev, st.st_ino, fd);
		if (found < 0 && st.st_ino == v->ino && st.st_dev == v->dev)
			found = fd;
	}
	return found;
}

static int find_anew(const struct vma *v)
{
	DIR *dir = opendir("/proc/self/fd");
	int fd;

	if (!dir)
		return NO_FD;
	fd = find_lately(dirfd(dir), v);
	if (fd < 0)
		fd = walk(dir, v);
	closedir(dir);
	table_put(v->dev, v->ino, fd);
	return fd;
}

/*
 * Whether it is shared anonymous memory or System V shared memory, which has
 * no descriptor.
 */
static bool is_nameless(const struct vma *v)
{
	return !strcmp(v->path, "/dev/zero (deleted)") ||
	       !strncmp(v->path, "/SYSV", 5);
}

/* Whether @lookups is a power of two. */
static bool is_power_of_two(uint32_t lookups)
{
	return !(lookups & (lookups - 1));
}

int descriptor_find(const struct vma *v, bool sure)
{
	int fd = NO_FD, saved = errno;
	struct known *k = NULL;

	if (is_nameless(v))
		return NO_FD;
	pthread_mutex_lock(&lock);
	if (table)
		k = table_at(v->dev, v->ino);
	if (k && k->ino && k->fd >= 0 && descriptor_is(k->fd, v))
		fd = k->fd;
	else if (!k || !k->ino || k->fd >= 0 || sure ||
		 is_power_of_two(++k->lookups))
		fd = find_anew(v);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return fd;
}
