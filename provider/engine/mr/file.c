// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The file table of a context's arena: shared files that its MRs are in.
 *
 * verbs/mr/mr.c calls file_get() at registration and file_put() at
 * deregistration, when no requester uses the MR any more.  Peers read the
 * table to map the file (mem.c): by its path or, if that does not lead to it,
 * by a descriptor in /proc/PID/fd.
 *
 * Entries are filled under the arena's lock.  The word refs contains the
 * number of MRs and a generation (`made`), which changes with the last
 * deregistration: peers then unmap the file.  Both are changed by one
 * compare-and-swap (acquire and release), because file_put() takes no lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "engine/mem/descriptor.h"
#include "file.h"
#include "engine/core/process.h"
#include "engine/run/service.h"
#include "shared/bitmap.h"
#include "engine/mem/vma.h"

static bool file_in_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

/*
 * Whether the path of the mapping still leads to its file, opened for reading
 * and writing; *in_memory: the file is in tmpfs or hugetlbfs.
 */
static bool file_path_works(const struct vma *v, bool *in_memory)
{
	bool works;
	int fd;

	if (v->path[0] != '/' || strstr(v->path, " (deleted)"))
		return false;
	fd = open(v->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	*in_memory = file_in_memory(fd);
	works = descriptor_is(fd, v);
	close(fd);
	return works;
}

/*
 * Return the index of the file's entry, or of a free one, or -ENOMEM.  The
 * arena's lock is held.  Entries are taken in order, so no entry behind one
 * that was never used is in use.
 */
static int file_find(const struct urxe_arena *a, const struct vma *v)
{
	const struct urxe_file *f;
	int i, found = -ENOMEM;
	uint64_t word;

	for (i = 0; i < URXE_MAX_FILES; i++) {
		f = &a->file[i];
		word = load_relaxed(&f->refs);
		if (URXE_FILE_COUNT(word) && f->ino == v->ino &&
		    f->dev == v->dev && f->pid == urxe_pid)
			return i;
		if (found < 0 && !URXE_FILE_COUNT(word))
			found = i;
		if (!URXE_FILE_MADE(word))
			break;
	}
	return found;
}

/* Count one more MR; the first fills the entry.  The arena's lock is held. */
static void file_hold(struct urxe_file *f, const struct vma *v, int fd,
		      bool by_path)
{
	uint64_t word = load_relaxed(&f->refs);
	uint32_t made;

	do {
		made = URXE_FILE_MADE(word) ? URXE_FILE_MADE(word) : 1;
		if (!URXE_FILE_COUNT(word)) {
			f->pid = urxe_pid;
			f->dev = v->dev;
			f->ino = v->ino;
			memset(f->path, 0, sizeof(f->path));
			if (by_path)
				memcpy(f->path, v->path, sizeof(f->path));
		}
		f->fd = fd; /* the previous one may be closed */
	} while (!cas_acq_rel(&f->refs, &word,
			      URXE_FILE_REFS(made, URXE_FILE_COUNT(word) + 1)));
}

int file_get(struct urxe_context *ctx, const struct vma *v, bool any,
	     bool *in_memory)
{
	struct urxe_arena *a = ctx->arena;
	int fd = -1, i;
	bool by_path;

	by_path = file_path_works(v, in_memory);
	if (!by_path) {
		fd = descriptor_find(v, any);
		if (fd < 0)
			return -ENOENT;
		*in_memory = file_in_memory(fd);
	}
	if (!any && !*in_memory)
		return -ENOENT;
	i = arena_reserve(ctx->cmd_fd, (char *)a->file - (char *)a,
			  sizeof(a->file));
	if (!i)
		i = arena_lock(ctx->fabric, a);
	if (i)
		return i;
	i = file_find(a, v);
	if (i >= 0)
		file_hold(&a->file[i], v, fd, by_path);
	arena_unlock(ctx->fabric, a);
	return i;
}

/* Request other contexts to unmap the files of this context. */
static void file_request_unmap(struct urxe_context *ctx)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t slot;

	for (slot = 0; slot < URXE_MAX_CTX; slot++)
		if (bitmap_test(a->mappers, slot) && slot != ctx->slot &&
		    !service_request_unmap(ctx->fabric, slot))
			bitmap_clear(a->mappers, slot, 1);
}

void file_put(struct urxe_context *ctx, uint32_t index)
{
	struct urxe_file *f = &ctx->arena->file[index];
	uint32_t made, count;
	uint64_t word;

	if (index >= URXE_MAX_FILES)
		return;
	word = load_relaxed(&f->refs);
	do {
		count = URXE_FILE_COUNT(word);
		if (!count)
			return;
		/* last MR: no requester uses these pages now, see mem.c */
		made = URXE_FILE_MADE(word) + (count == 1);
	} while (
		!cas_acq_rel(&f->refs, &word, URXE_FILE_REFS(made, count - 1)));
	if (count == 1)
		file_request_unmap(ctx);
}
