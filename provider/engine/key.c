// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The key table and the file table of a context. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fabric/bitmap.h"
#include "verbs/mr.h"
#include "quiesce.h"
#include "vma.h"

#define KEYS_PER_PAGE (URXE_PAGE / sizeof(struct urxe_key))

static uint64_t arena_offset(struct urxe_arena *a, const void *p)
{
	return (const char *)p - (const char *)a;
}

/* Memory for the table up to index; under the arena's lock. */
static int grow(struct urxe_context *ctx, uint32_t index)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t high = atomic_load_explicit(&a->key_high,
					     memory_order_relaxed);
	int ret;

	while (index >= high) {
		ret = arena_reserve(ctx->cmd_fd, arena_offset(a, &a->key[high]),
				    URXE_PAGE);
		if (ret)
			return ret;
		high += KEYS_PER_PAGE;
		atomic_store_explicit(&a->key_high, high, memory_order_release);
	}
	return 0;
}

struct urxe_key *key_alloc(struct urxe_context *ctx, enum urxe_obj obj,
			   uint32_t *key, int *err)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t i, limit;

	*err = fabric_obj_get(ctx->fabric, ctx->slot, obj);
	if (*err)
		return NULL;
	robust_lock(&a->lock);
	/* go round within what has memory before it grows: keys age */
	limit = atomic_load_explicit(&a->key_high, memory_order_relaxed);
	i = limit ? bitmap_find_next(a->key_map, limit, a->key_next % limit, 1,
				     1) : 0;
	if (i == limit)
		i = bitmap_find(a->key_map, URXE_MAX_KEY, limit, 1, 1);
	*err = i < URXE_MAX_KEY ? grow(ctx, i) : -ENOMEM;
	if (!*err) {
		bitmap_set(a->key_map, i, 1);
		a->key_next = i + 1;
		*key = URXE_KEY(ctx->slot, i, ++a->key_tag[i]);
	}
	robust_unlock(&a->lock);
	if (!*err)
		return &a->key[i];
	fabric_obj_put(ctx->fabric, ctx->slot, obj);
	return NULL;
}

void key_set(struct urxe_key *k, const struct urxe_key *desc)
{
	k->iova = desc->iova;
	k->length = desc->length;
	k->va = desc->va;
	k->pd = desc->pd;
	k->access = desc->access;
	k->pid = desc->pid;
	k->kind = desc->kind;
	k->flags = desc->flags;
	k->file = desc->file;
	k->dm = desc->dm;
	k->file_offset = desc->file_offset;
}

void key_enable(struct urxe_key *k, uint32_t key)
{
	atomic_store_explicit(&k->live, URXE_MR_LIVE(key),
			      memory_order_seq_cst);
}

/*
 * The arena's lock orders this with mw.c: while it is held no window comes
 * or goes.  The tag tells whether another process of this context destroyed
 * the object already: its entry may even be something else by now.
 */
static int end_key(struct urxe_context *ctx, uint32_t key, bool retire)
{
	struct urxe_arena *a = ctx->arena;
	uint32_t i = URXE_KEY_INDEX(key);
	struct urxe_key *k = &a->key[i];
	int ret = 0;

	robust_lock(&a->lock);
	if (!bitmap_test(a->key_map, i) || a->key_tag[i] != URXE_KEY_TAG(key))
		ret = -ENOENT;
	else if (atomic_load_explicit(&k->windows, memory_order_relaxed))
		ret = -EBUSY;
	if (!ret) {
		atomic_store_explicit(&k->live, 0, memory_order_seq_cst);
		if (retire)
			a->key_tag[i]++;
	}
	robust_unlock(&a->lock);
	if (!ret)
		quiesce(ctx);
	return ret;
}

int key_revoke(struct urxe_context *ctx, uint32_t key)
{
	return end_key(ctx, key, false);
}

int key_retire(struct urxe_context *ctx, uint32_t key)
{
	return end_key(ctx, key, true);
}

void key_free(struct urxe_context *ctx, enum urxe_obj obj, uint32_t key)
{
	robust_lock(&ctx->arena->lock);
	bitmap_clear(ctx->arena->key_map, URXE_KEY_INDEX(key), 1);
	robust_unlock(&ctx->arena->lock);
	fabric_obj_put(ctx->fabric, ctx->slot, obj);
}

/* ---------------------------------------------------------- files */

static bool is_memory_fs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC ||
				     fs.f_type == HUGETLBFS_MAGIC);
}

static bool same_file(int fd, const struct vma *v)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == v->ino && st.st_dev == v->dev;
}

/* A descriptor of ours that peers can reach through /proc. */
static int find_own_fd(const struct vma *v, bool any, bool *in_memory)
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
		    !same_file(fd, v))
			continue;
		*in_memory = is_memory_fs(fd);
		if (any || *in_memory)
			found = fd;
	}
	closedir(dir);
	return found;
}

static bool path_works(const struct vma *v, bool any, bool *in_memory)
{
	bool works;
	int fd;

	if (v->path[0] != '/' || strstr(v->path, " (deleted)"))
		return false;
	fd = open(v->path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	*in_memory = is_memory_fs(fd);
	works = same_file(fd, v) && (any || *in_memory);
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

	by_path = path_works(v, any, in_memory);
	if (!by_path)
		fd = find_own_fd(v, any, in_memory);
	if (!by_path && fd < 0)
		return -1;
	robust_lock(&a->lock);
	if (arena_reserve(ctx->cmd_fd, arena_offset(a, a->file),
			  sizeof(a->file)))
		goto out;
	for (i = 0; i < URXE_MAX_FILES; i++) {
		f = &a->file[i];
		/* an entry keeps its file when it is free: peers map it once */
		if (f->ino == v->ino && f->dev == v->dev && f->pid == urxe_pid)
			break;
	}
	for (found = i, i = 0; found == URXE_MAX_FILES && i < URXE_MAX_FILES;
	     i++)
		if (!a->file[i].ino)
			found = i;
	if (found == URXE_MAX_FILES) {
		found = -1;
		goto out;
	}
	f = &a->file[found];
	f->pid = urxe_pid;
	f->fd = fd;
	f->dev = v->dev;
	f->ino = v->ino;
	f->path[0] = 0;
	if (by_path)
		memcpy(f->path, v->path, sizeof(f->path));
	atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
out:
	robust_unlock(&a->lock);
	return found;
}

void file_put(struct urxe_context *ctx, uint32_t index)
{
	atomic_fetch_sub_explicit(&ctx->arena->file[index].refs, 1,
				  memory_order_relaxed);
}
