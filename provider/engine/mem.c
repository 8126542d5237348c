// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copy path 2 for registered file mappings: when a peer's MR lies in a shared
 * mapping of a memfd, tmpfs or hugetlbfs file, map that file here, once, and
 * copy through our own mapping.  If the file cannot be opened the bytes are
 * still reachable through the peer's address space (path 3).
 */
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

static int file_open_checked(const char *path, const struct urxe_file *file)
{
	struct stat st;
	int fd;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || st.st_dev != file->dev ||
	    st.st_ino != file->ino) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool peer_pids_known(const struct urxe_peer *peer)
{
	return peer->fd < 0 || !peer->foreign_pids;
}

/* Without pid_known the number of its process means nothing here. */
static int file_open(const struct urxe_file *file, bool pid_known)
{
	char path[64];
	int fd = -1;

	if (file->path[0] && !file->path[sizeof(file->path) - 1])
		fd = file_open_checked(file->path, file);
	if (fd < 0 && file->fd >= 0 && pid_known) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)file->pid,
			 (int)file->fd);
		fd = file_open_checked(path, file);
	}
	return fd;
}

static void *file_map_new(const struct urxe_file *file, bool pid_known,
			  uint64_t *size)
{
	void *ptr = MAP_FAILED;
	struct stat st;
	int fd;

	fd = file_open(file, pid_known);
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

	t = load_acquire(&peer->files);
	if (t)
		return t;
	t = calloc(URXE_MAX_FILES, sizeof(*t));
	if (t && !cas_acq_rel(&peer->files, &none, t)) {
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
	ptr = load_acquire(&m->ptr);
	if (ptr == FILE_UNTRIED) {
		pthread_mutex_lock(&map_lock);
		ptr = load_acquire(&m->ptr);
		if (ptr == FILE_UNTRIED) {
			ptr = file_map_new(file, peer_pids_known(peer), size);
			store_relaxed(&m->size, *size);
			store_relaxed(&m->ino, file->ino);
			store_release(&m->ptr, ptr);
		}
		pthread_mutex_unlock(&map_lock);
	}
	if (ptr == FILE_REFUSED || load_relaxed(&m->ino) != file->ino)
		return NULL;
	*size = load_relaxed(&m->size);
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
	fd = file_open(&peer->arena->file[k->file], peer_pids_known(peer));
	if (fd < 0)
		return -EIO;
	ret = fdatasync(fd) ? -errno : 0;
	close(fd);
	errno = saved;
	return ret;
}

void mem_unmap_files(struct urxe_peer *peer)
{
	struct urxe_mapped_file *t = load_acquire(&peer->files);
	unsigned int i;

	if (!t)
		return;
	for (i = 0; i < URXE_MAX_FILES; i++) {
		void *ptr = load_relaxed(&t[i].ptr);

		if (ptr != FILE_UNTRIED && ptr != FILE_REFUSED)
			munmap(ptr, load_relaxed(&t[i].size));
	}
	free(t);
	store_relaxed(&peer->files, NULL);
}
