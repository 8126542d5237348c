// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unused fabrics: they are removed, or replaced if another version of urxe
 * made them.
 *
 *	lock			held by
 *	OFD lock on "device"	shared: a process that uses the segment (the
 *				mapping keeps it held); exclusive: the remover
 *	flock(2) on the		shared: a creator, until the segment is
 *	directory		linked; exclusive: the remover
 *
 * The exclusive OFD lock fails while a process uses the segment.  Users
 * without that lock are versions that do not know it, and processes that were
 * passed a context.  They are detected by the lock on the arena of each
 * context.  Event channels of the CM are detected by their readers.
 *
 * The directory is renamed before it is emptied, so no process finds an
 * incomplete fabric.  A process that has opened the old segment but not yet
 * locked it then finds that its link count is 0 (fabric_hold), or that the
 * directory's name has changed (fabric_in_place), and starts again.
 *
 * The last process that exits removes the fabric (fabric_leave), unless the
 * port was taken down or changed, a state that later processes are to find.
 * Fabrics of processes that were killed, or that exited with the device open,
 * are removed by fabric_sweep(): when a process makes a fabric in the same
 * place, or lacks memory for a context.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

bool fabric_in_place(const struct urxe_fabric *f)
{
	struct stat mine, there;

	return !fstat(f->dirfd, &mine) && !lstat(f->dir, &there) &&
	       mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

int fabric_hold(int fd, short type)
{
	struct flock lk = { .l_type = type, .l_whence = SEEK_SET };
	struct stat st;

	if (fcntl(fd, F_OFD_SETLK, &lk))
		return errno == EACCES ? -EAGAIN : -errno;
	return fstat(fd, &st) ? -errno : st.st_nlink ? 0 : -ESTALE;
}

static bool arena_has_user(int dir, const char *name)
{
	int fd =
		openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool alive = fd < 0 ? errno != ENOENT : arena_fd_alive(fd);

	if (fd >= 0)
		close(fd);
	return alive;
}

static bool channel_has_user(int dir, const char *name)
{
	int fd = openat(dir, name,
			O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (errno != ENXIO && errno != ENOENT);
}

/* The same for a umad device; other files of its directory have no users. */
static bool umad_has_user(int dir, const char *name)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISFIFO(st.st_mode) && channel_has_user(dir, name);
}

/* True if any file of the directory has a user, or if that is unknown. */
static bool dir_has_user(int at, const char *name,
			 bool (*has_user)(int dir, const char *name))
{
	DIR *dir = dir_open(at, name);
	bool found = false;
	struct dirent *e;

	if (!dir)
		return errno != ENOENT;
	while (!found && (e = readdir(dir)))
		found = e->d_name[0] != '.' && has_user(dirfd(dir), e->d_name);
	closedir(dir);
	return found;
}

/*
 * Return whether an arena, an event channel of rdma_cm or a umad device is in
 * use.
 */
static bool fabric_has_user(int dirfd)
{
	return dir_has_user(dirfd, "ctx", arena_has_user) ||
	       dir_has_user(dirfd, "cm.d", channel_has_user) ||
	       dir_has_user(dirfd, "mad.d", umad_has_user);
}

/*
 * Rename the directory to .NAME.INODE, which is never the name of a fabric.
 * The inode makes it unique, even if an earlier remover died before it had
 * emptied its directory; a PID would be reused.  The caller has the directory
 * locked, so no other process renames it.
 */
static int fabric_move_away(struct urxe_fabric *f, int place, char away[300])
{
	const char *name = strrchr(f->dir, '/') + 1;
	struct stat st;

	if (fstat(f->dirfd, &st) || !fabric_in_place(f))
		return -ESTALE;
	snprintf(away, 300, ".%s.%llx", name, (unsigned long long)st.st_ino);
	return renameat(place, name, place, away) ? -errno : 0;
}

/*
 * Rename, empty and remove the directory.  After the rename it is accessed by
 * its descriptor only.
 */
static int fabric_remove(struct urxe_fabric *f)
{
	int ret, place = place_open(f->dir, false);
	char away[300];

	if (place < 0)
		return place;
	ret = fabric_move_away(f, place, away);
	if (!ret) {
		dir_clear(f->dirfd);
		unlinkat(place, away, AT_REMOVEDIR);
	}
	close(place);
	if (!ret)
		place_leave(f->dir);
	return ret;
}

/*
 * Remove the fabric if it has no users.  The caller holds both locks
 * exclusively: no other process makes, removes or uses the fabric.
 * @only_empty: return -ENOTEMPTY if a port was taken down, or its LIDs or
 * P_Keys were changed.
 */
static int fabric_retire_locked(struct urxe_fabric *f, int fd, bool only_empty)
{
	struct urxe_dev *dev = NULL;
	void *map;
	int ret = 0;

	if (fabric_has_user(f->dirfd))
		return -EBUSY;
	/* the segment of another version cannot be read */
	if (fd >= 0 && !layout_map(fd, sizeof(*dev), URXE_DEV_MAGIC, &map))
		dev = map;
	if (dev && only_empty && !ports_are_initial(dev))
		ret = -ENOTEMPTY;
	if (!ret && dev)
		dm_heap_remove(dev);
	if (!ret)
		ret = fabric_remove(f);
	if (dev)
		munmap(dev, sizeof(*dev));
	return ret;
}

int fabric_retire(struct urxe_fabric *f, bool only_empty)
{
	int fd, ret;

	/* these locks are released when their descriptors are closed */
	if (flock(f->dirfd, LOCK_EX | LOCK_NB))
		return -EAGAIN;
	fd = openat(f->dirfd, "device", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	ret = fd < 0 ? 0 : fabric_hold(fd, F_WRLCK);
	if (ret == -EAGAIN)
		ret = -EBUSY;
	if (!ret)
		ret = fabric_retire_locked(f, fd, only_empty);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* ------------------------------------------------------------- removing */

static bool fabric_is_private(int dirfd)
{
	struct stat st;

	return !fstat(dirfd, &st) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

/* True if the directory is a fabric of this user, maybe an incomplete one. */
static bool fabric_is_one(int dirfd)
{
	return fabric_is_private(dirfd) &&
	       (!faccessat(dirfd, "device", F_OK, AT_SYMLINK_NOFOLLOW) ||
		!faccessat(dirfd, "ctx", F_OK, AT_SYMLINK_NOFOLLOW));
}

/*
 * Remove an empty directory, whose creator was killed before it made a file.
 * It may belong to another program, so this is done only for a fabric that
 * the caller named.
 */
static int fabric_remove_empty(struct urxe_fabric *f, int place)
{
	if (!fabric_is_private(f->dirfd))
		return -EINVAL;
	if (flock(f->dirfd, LOCK_EX | LOCK_NB))
		return -EAGAIN;
	if (!fabric_in_place(f))
		return -ESTALE;
	if (unlinkat(place, strrchr(f->dir, '/') + 1, AT_REMOVEDIR))
		return -EINVAL;
	place_leave(f->dir);
	return 0;
}

static int fabric_remove_at(const char *dir, bool only_empty, bool named)
{
	struct urxe_fabric f = { 0 };
	int ret, place;

	if (snprintf(f.dir, sizeof(f.dir), "%s", dir) >= (int)sizeof(f.dir))
		return -ENAMETOOLONG;
	place = place_open(dir, false);
	if (place < 0)
		return place;
	f.dirfd = openat(place, strrchr(dir, '/') + 1,
			 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ret = f.dirfd < 0 ? -errno : 0;
	if (ret)
		goto out;
	if (fabric_is_one(f.dirfd))
		ret = fabric_retire(&f, only_empty);
	else
		ret = named ? fabric_remove_empty(&f, place) : -EINVAL;
	close(f.dirfd);
out:
	close(place);
	return ret;
}

int fabric_remove_unused(const char *dir, bool only_empty)
{
	return fabric_remove_at(dir, only_empty, true);
}

/*
 * Remove a directory .NAME.INODE if it has no users.  Its remover died before
 * it was emptied, or it was a broken fabric that had users (broken.c).
 */
static void fabric_remove_moved(int place, const char *name)
{
	const char *dot = strrchr(name, '.');
	struct stat st;
	int dir;

	if (dot == name || fstatat(place, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    strtoull(dot + 1, NULL, 16) != st.st_ino)
		return;
	dir = openat(place, name,
		     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return;
	if (!fabric_has_user(dir))
		dir_remove(place, name);
	close(dir);
}

int fabric_sweep(const char *dir, bool only_empty,
		 void (*removed)(const char *name))
{
	const int n = (int)(strrchr(dir, '/') - dir);
	int count = 0, place = place_open(dir, false);
	char path[256];
	struct dirent *e;
	DIR *d;

	d = place < 0 ? NULL : dir_open(place, ".");
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			fabric_remove_moved(place, e->d_name);
		if (e->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%.*s/%s", n, dir,
			     e->d_name) >= (int)sizeof(path) ||
		    !strcmp(path, dir) ||
		    fabric_remove_at(path, only_empty, false))
			continue;
		count++;
		if (removed)
			removed(e->d_name);
	}
	if (d)
		closedir(d);
	if (place >= 0)
		close(place);
	return count;
}

/*
 * -EAGAIN: another process has the directory locked.  If it is exiting, too,
 * it may have found the segment in use by this process and then does not
 * remove the fabric.  Retry, so that one of the two removes it.
 */
static void fabric_remove_if_last(const char *dir)
{
	int tries;

	for (tries = 0; tries < 300; tries++) {
		if (fabric_remove_unused(dir, true) != -EAGAIN)
			break;
		usleep(1000);
	}
}

void fabric_leave(struct urxe_fabric *f)
{
	struct stat st;
	int fd;

	/*
	 * Other threads may use the mapping until the process has exited, so
	 * it must stay valid.  Replace it by one of a new open file, without
	 * the lock.
	 */
	fd = openat(f->dirfd, "device", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_ino == f->ino &&
	    mmap(f->dev, sizeof(*f->dev), PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == f->dev)
		fabric_remove_if_last(f->dir);
	close(fd);
}
