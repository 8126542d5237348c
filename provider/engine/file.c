// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "file.h"
#include "process.h"
#include "vma.h"

static bool file_in_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC ||
				     fs.f_type == HUGETLBFS_MAGIC);
}

static bool file_is(int fd, const struct vma *v)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == v->ino && st.st_dev == v->dev;
}

/* A descriptor of ours that peers can reach through /proc. */
static int file_find_fd(const struct vma *v, bool any, bool *in_memory)
{
	struct dirent *de;
	int fd, found = -1;
	DIR *dir;

	dir = opendir("/proc/self/fd");
	if (!dir)
		return -1;
	while (found < 0 && (de = readdir(dir))) {
		fd = atoi(de->d_name);
		if (de->d_name[0] == '.' || fd == dirfd(dir) ||
		    !file_is(fd, v))
			continue;
		*in_memory = file_in_memory(fd);
		if (any || *in_memory)
			found = fd;
	}
	closedir(dir);
	return found;
}

static bool file_path_works(const struct vma *v, bool any, bool *in_memory)
{
	bool works;
	int fd;

	if (v->path[0] != '/' || strstr(v->path, " (deleted)"))
		return false;
	fd = open(v->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	*in_memory = file_in_memory(fd);
	works = file_is(fd, v) && (any || *in_memory);
	close(fd);
	return works;
}

int file_get(struct urxe_context *ctx, const struct vma *v, bool any,
	     bool *in_memory)
{
	struct urxe_arena *a = ctx->arena;
	int fd = -1, i, found = -1;
	struct urxe_file *f;
	bool by_path;

	by_path = file_path_works(v, any, in_memory);
	if (!by_path)
		fd = file_find_fd(v, any, in_memory);
	if (!by_path && fd < 0)
		return -1;
	if (arena_reserve(ctx->cmd_fd, (char *)a->file - (char *)a,
			  sizeof(a->file)) ||
	    arena_lock(ctx->fabric, a))
		return -1;
	for (i = 0; i < URXE_MAX_FILES; i++) {
		f = &a->file[i];
		/* an entry keeps its file when it is free: peers map it once */
		if (f->ino == v->ino && f->dev == v->dev &&
		    f->pid == urxe_pid) {
			found = i;
			break;
		}
		if (found < 0 && !f->ino)
			found = i;
	}
	if (found < 0)
		goto out;
	f = &a->file[found];
	f->pid = urxe_pid;
	f->fd = fd;
	f->dev = v->dev;
	f->ino = v->ino;
	f->path[0] = 0;
	if (by_path)
		memcpy(f->path, v->path, sizeof(f->path));
	fetch_add_relaxed(&f->refs, 1);
out:
	arena_unlock(ctx->fabric, a);
	return found;
}

void file_put(struct urxe_context *ctx, uint32_t index)
{
	fetch_sub_relaxed(&ctx->arena->file[index].refs, 1);
}
