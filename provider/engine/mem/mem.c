// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copy path 2 for file mappings: if a peer's MR lies in a shared mapping of a
 * memfd, tmpfs or hugetlbfs file, this process maps that file once and copies
 * through its own mapping. If the file cannot be opened, the copy uses the
 * address space of the peer (path 3).
 *
 * mem_reach_file() is called by requesters and by pollers, from mem_reach().
 * mem_unmap_unused() is called by the service thread. map_lock serializes
 * mapping and unmapping.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.h"
#include "mem.h"

/*
 * Mapping of file[i] of a peer's arena. `made` is the generation of the file
 * table entry that ptr and size belong to.
 *
 * After the last MR on the file is deregistered, its owner advances the
 * generation of the entry. A mapping of an older generation is unmapped when
 * another file is mapped, or by the service thread.
 *
 * No thread of this process uses the mapping by then. A requester finds the
 * mapping through a key of that file, with its guard raised. The generation
 * advances only after the key was cleared and the guards were waited for
 * (quiesce.c).
 */
struct urxe_mapped_file {
	char *_Atomic ptr; /* NULL: it cannot be mapped */
	_Atomic uint64_t size;
	_Atomic uint32_t made;
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

/*
 * Open the file by its path, or through /proc/PID/fd. If @pid_known is false,
 * the PID is of a foreign PID namespace and is not used. Return a descriptor
 * or -1.
 */
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

static char *file_map_new(const struct urxe_file *file, bool pid_known,
			  uint64_t *size)
{
	void *ptr = NULL;
	struct stat st;
	int fd;

	fd = file_open(file, pid_known);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size > 0)
		sparse_map(fd, st.st_size, NULL, &ptr);
	close(fd);
	if (!ptr)
		return NULL;
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

/*
 * A mapping that another thread of the parent was creating during the fork
 * has not been recorded. The child creates it when it is first used.
 */
void mem_after_fork(void)
{
	pthread_mutex_init(&map_lock, NULL);
	descriptor_after_fork();
}

/*
 * Clear ptr before munmap(): a child forked in between must not unmap the
 * range a second time.
 */
static void file_unmap(struct urxe_mapped_file *m)
{
	char *ptr = exchange_relaxed(&m->ptr, NULL);

	if (ptr)
		munmap(ptr, load_relaxed(&m->size));
}

static uint32_t file_made(const struct urxe_file *file)
{
	return URXE_FILE_MADE(load_acquire(&file->refs));
}

/* Unmap files of older generations. map_lock is held. */
static void files_unmap_old(struct urxe_peer *peer)
{
	struct urxe_mapped_file *t = load_acquire(&peer->files);
	unsigned int i;

	for (i = 0; t && i < URXE_MAX_FILES; i++)
		if (load_relaxed(&t[i].ptr) &&
		    load_relaxed(&t[i].made) !=
			    file_made(&peer->arena->file[i]))
			file_unmap(&t[i]);
}

void mem_unmap_unused(struct urxe_peer *peer)
{
	if (!load_relaxed(&peer->files))
		return;
	pthread_mutex_lock(&map_lock);
	files_unmap_old(peer);
	pthread_mutex_unlock(&map_lock);
}

/* Map a file on first use, or after its table entry changed generation. */
static void file_map(struct urxe_peer *peer, struct urxe_mapped_file *m,
		     const struct urxe_file *file, uint32_t made)
{
	uint64_t size = 0;
	char *ptr;

	pthread_mutex_lock(&map_lock);
	if (load_relaxed(&m->made) != made) {
		files_unmap_old(peer);
		ptr = file_map_new(file, peer_pids_known(peer), &size);
		store_relaxed(&m->size, size);
		store_relaxed(&m->ptr, ptr);
		store_release(&m->made, made);
	}
	pthread_mutex_unlock(&map_lock);
}

void mem_reach_file(struct urxe_peer *peer, const struct urxe_key *k,
		    uint64_t offset, struct urxe_seg *seg)
{
	struct urxe_mapped_file *m = file_table(peer);
	uint64_t at = k->file_offset + offset, size;
	const struct urxe_file *file;
	uint32_t made;
	char *base;

	if (k->file >= URXE_MAX_FILES || !m)
		return;
	m += k->file;
	file = &peer->arena->file[k->file];
	made = file_made(file);
	if (unlikely(load_acquire(&m->made) != made)) {
		peer_note_mapping(peer);
		file_map(peer, m, file, made);
	}
	base = load_relaxed(&m->ptr);
	size = load_relaxed(&m->size);
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
	for (i = 0; i < URXE_MAX_FILES; i++)
		file_unmap(&t[i]);
	free(t);
	store_relaxed(&peer->files, NULL);
}
