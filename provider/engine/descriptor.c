// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Only a walk through /proc/self/fd tells which descriptor leads to a file, and
 * a program may have thousands.  So what a walk finds is kept, of all files
 * that it meets; what is kept is looked at again before it is believed.  A
 * file without a descriptor costs a walk at its 1st, 2nd, 4th, 8th ...
 * registration: it may have been opened since.
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
#define LATELY 64 /* new descriptors: so many below the lowest free one */
#define MAX_KNOWN (1u << 18) /* then all is forgotten */

struct known {
	uint64_t dev, ino; /* ino 0: free */
	int fd; /* NO_FD: there was none */
	uint32_t asked; /* how often, since it had none */
};

/* Open addressing; at most half full. */
static struct known *table;
static uint32_t mask, count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void descriptor_after_fork(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* Its entry, or the free one that is its place. */
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

/* Without memory it is found by a walk, each time. */
static void table_put(uint64_t dev, uint64_t ino, int fd)
{
	struct known *k;

	if ((!table || 2 * (count + 1) > mask) && !table_grow())
		return;
	k = table_at(dev, ino);
	count += !k->ino;
	if (!k->ino || fd >= 0)
		k->asked = 1;
	k->dev = dev;
	k->ino = ino;
	k->fd = fd;
}

bool descriptor_is(int fd, const struct vma *v)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == v->ino && st.st_dev == v->dev;
}

/* Descriptors are given lowest first: what was opened lately is there. */
static int find_lately(int lowest_free, const struct vma *v)
{
	int fd;

	for (fd = lowest_free - 1; fd >= 0 && fd >= lowest_free - LATELY; fd--)
		if (descriptor_is(fd, v))
			return fd;
	return NO_FD;
}

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

/* Memory that only fork hands on, or shmget: it never had a descriptor. */
static bool is_nameless(const struct vma *v)
{
	return !strcmp(v->path, "/dev/zero (deleted)") ||
	       !strncmp(v->path, "/SYSV", 5);
}

static bool is_time(uint32_t asked)
{
	return !(asked & (asked - 1));
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
	else if (!k || !k->ino || k->fd >= 0 || sure || is_time(++k->asked))
		fd = find_anew(v);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return fd;
}
