// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Broken fabrics: a file of the fabric was removed or truncated.
 *
 * A missing file cannot be recreated while processes use the old one.  A new
 * device segment would assign their slots again.  A new heap would make two
 * memories of one device memory.  fabric_open() therefore renames the
 * directory and creates a new fabric.  Processes of the old fabric continue
 * with the files that they have opened; opening another one by name fails.
 * fabric_sweep() removes the renamed directory when it has no users
 * (stale.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "internal.h"
#include "shared/cm_tables.h"

static bool dir_has_files(int at, const char *name)
{
	DIR *dir = dir_open(at, name);
	struct dirent *e;
	bool any = false;

	while (dir && !any && (e = readdir(dir)))
		any = e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

static bool is_dir(int at, const char *name)
{
	struct stat st;

	return !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode);
}

/*
 * True if the segment is missing but other files exist.  They are made after
 * the segment, so it was removed.
 */
static bool device_is_gone(const struct urxe_fabric *f)
{
	struct stat st;

	return (dir_has_files(f->dirfd, "ctx") ||
		dir_has_files(f->dirfd, "ev") ||
		!fstatat(f->dirfd, "dm", &st, AT_SYMLINK_NOFOLLOW)) &&
	       /* last: the segment is made before those files */
	       fstatat(f->dirfd, "device", &st, AT_SYMLINK_NOFOLLOW) &&
	       errno == ENOENT;
}

/*
 * True if the segment is shorter than its header says.  The header has the
 * same format in all versions.
 */
static bool device_is_short(const struct urxe_fabric *f)
{
	struct {
		char magic[16];
		uint32_t version, size;
	} head = { .size = 0 };
	struct stat st;
	bool is = false;
	int fd;

	fd = openat(f->dirfd, "device", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (!fstat(fd, &st))
		is = pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
		     (!memcmp(head.magic, URXE_DEV_MAGIC,
			      sizeof(head.magic)) &&
		      st.st_size < (off_t)head.size);
	close(fd);
	return is;
}

/* True if path is missing, has another inode, or is shorter than size. */
static bool file_is_broken(const struct urxe_fabric *f, const char *path,
			   uint64_t ino, uint64_t size)
{
	struct stat st;

	return fstatat(f->dirfd, path, &st, AT_SYMLINK_NOFOLLOW) ||
	       st.st_ino != ino || st.st_size < (off_t)size;
}

static bool heap_is_broken(const struct urxe_fabric *f)
{
	const struct urxe_dev *dev = f->dev;
	const char *path = load_acquire(&dev->dm_home) == URXE_DM_PATH ?
				   dev->dm_path :
				   "dm";
	uint64_t ino = load_acquire(&dev->dm_ino);

	return ino && file_is_broken(f, path, ino, f->dm_bytes);
}

/* The file "cm" is linked only when it has its full size. */
static bool cm_is_short(const struct urxe_fabric *f)
{
	struct stat st;

	return !fstatat(f->dirfd, "cm", &st, AT_SYMLINK_NOFOLLOW) &&
	       st.st_size < (off_t)sizeof(struct cm_table);
}

bool fabric_is_broken(const struct urxe_fabric *f, int err)
{
	if (err == -ENOENT)
		return device_is_gone(f);
	if (err == -EPROTO)
		return device_is_short(f);
	return !err && (!is_dir(f->dirfd, "ctx") || !is_dir(f->dirfd, "ev") ||
			file_is_broken(f, "procs", f->dev->procs_ino, 0) ||
			heap_is_broken(f) || cm_is_short(f));
}

int fabric_rename_broken(struct urxe_fabric *f)
{
	const char *name = strrchr(f->dir, '/') + 1;
	int ret = -ESTALE, place;
	struct stat st;
	char away[300];

	/* released with the descriptor, which the caller closes */
	if (flock(f->dirfd, LOCK_EX | LOCK_NB))
		return -EAGAIN;
	place = place_open(f->dir, false);
	if (place < 0)
		return place;
	if (!fstat(f->dirfd, &st) && fabric_in_place(f)) {
		snprintf(away, sizeof(away), ".%s.%llx", name,
			 (unsigned long long)st.st_ino);
		if (renameat(place, name, place, away))
			ret = -errno;
	}
	close(place);
	return ret;
}
