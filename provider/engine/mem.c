// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copy path 2 for registered file mappings: when a peer's MR lies in a shared
 * mapping of a memfd, tmpfs or hugetlbfs file, map that file here, once, and
 * copy through our own mapping.  If the file cannot be opened the bytes are
 * still reachable through the peer's address space (path 3).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mem.h"

/* States of an entry's ptr besides a mapping. */
#define FILE_UNTRIED NULL
#define FILE_REFUSED MAP_FAILED

struct urxe_mapped_file {
	void *_Atomic ptr;
	_Atomic uint64_t size, ino;
};

static int open_checked(const char *path, const struct urxe_file *file)
{
	struct stat st;
	int fd;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || st.st_dev != file->dev || st.st_ino != file->ino) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool pids_known(const struct urxe_peer *peer)
{
	return peer->fd < 0 || !peer->foreign_pids;
}

/* Without pid_known the number of its process means nothing here. */
static int open_file(const struct urxe_file *file, bool pid_known)
{
	char path[64];
	int fd = -1;

	if (file->path[0] && !file->path[sizeof(file->path) - 1])
		fd = open_checked(file->path, file);
	if (fd < 0 && file->fd >= 0 && pid_known) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)file->pid,
			 (int)file->fd);
		fd = open_checked(path, file);
	}
	return fd;
}

static void *map_file(const struct urxe_file *file, bool pid_known,
		      uint64_t *size)
{
	void *ptr = MAP_FAILED;
	struct stat st;
	int fd;

	fd = open_file(file, pid_known);
	if (fd < 0)
		return FILE_REFUSED;
	if (!fstat(fd, &st) && st.st_size > 0)
		ptr = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (ptr != MAP_FAILED)
		*size = st.st_size;
	return ptr;
}

static struct urxe_mapped_file *file_table(struct urxe_peer *peer)
{
	struct urxe_mapped_file *t, *none = NULL;

	t = atomic_load_explicit(&peer->files, memory_order_acquire);
	if (t)
		return t;
	t = calloc(URXE_MAX_FILES, sizeof(*t));
	if (t && !atomic_compare_exchange_strong_explicit(
			 &peer->files, &none, t, memory_order_acq_rel,
			 memory_order_acquire)) {
		free(t);
		t = none;
	}
	return t;
}

static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;

/* What a thread of the parent was mapping is still untried. */
void mem_after_fork(void)
{
	pthread_mutex_init(&map_lock, NULL);
}

/*
 * Readers of ptr hold no lock, so a mapping, once published, stays until the
 * peer is dropped; an entry that came to name another file is not remapped
 * but reached by path 3.
 */
static char *file_map(struct urxe_peer *peer, uint32_t index, uint64_t *size)
{
	struct urxe_mapped_file *m = file_table(peer);
	const struct urxe_file *file = &peer->arena->file[index];
	void *ptr;

	if (!m)
		return NULL;
	m += index;
	ptr = atomic_load_explicit(&m->ptr, memory_order_acquire);
	if (ptr == FILE_UNTRIED) {
		pthread_mutex_lock(&map_lock);
		ptr = atomic_load_explicit(&m->ptr, memory_order_acquire);
		if (ptr == FILE_UNTRIED) {
			ptr = map_file(file, pids_known(peer), size);
			atomic_store_explicit(&m->size, *size,
					      memory_order_relaxed);
			atomic_store_explicit(&m->ino, file->ino,
					      memory_order_relaxed);
			atomic_store_explicit(&m->ptr, ptr,
					      memory_order_release);
		}
		pthread_mutex_unlock(&map_lock);
	}
	if (ptr == FILE_REFUSED ||
	    atomic_load_explicit(&m->ino, memory_order_relaxed) != file->ino)
		return NULL;
	*size = atomic_load_explicit(&m->size, memory_order_relaxed);
	return ptr;
}

void mem_reach_file(struct urxe_peer *peer, const struct urxe_key *k,
		    uint64_t offset, struct urxe_seg *seg)
{
	uint64_t at = k->file_offset + offset, size = 0;
	char *base;

	if (k->file >= URXE_MAX_FILES)
		return;
	base = file_map(peer, k->file, &size);
	if (base && at <= size && seg->len <= size - at)
		seg->ptr = base + at;
}

int mem_persist(struct urxe_peer *peer, const struct urxe_key *k)
{
	int fd, ret, saved = errno;

	if (!(k->flags & URXE_MR_FILE) || k->file >= URXE_MAX_FILES)
		return -ENXIO;
	fd = open_file(&peer->arena->file[k->file], pids_known(peer));
	if (fd < 0)
		return -EIO;
	ret = fdatasync(fd) ? -errno : 0;
	close(fd);
	errno = saved;
	return ret;
}

void mem_unmap_files(struct urxe_peer *peer)
{
	struct urxe_mapped_file *t =
		atomic_load_explicit(&peer->files, memory_order_acquire);
	unsigned int i;

	if (!t)
		return;
	for (i = 0; i < URXE_MAX_FILES; i++) {
		void *ptr = atomic_load_explicit(&t[i].ptr,
						 memory_order_relaxed);

		if (ptr != FILE_UNTRIED && ptr != FILE_REFUSED)
			munmap(ptr, atomic_load_explicit(&t[i].size,
							 memory_order_relaxed));
	}
	free(t);
	atomic_store_explicit(&peer->files, NULL, memory_order_relaxed);
}
