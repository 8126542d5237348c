// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A fabric that another version of urxe left behind.
 *
 * Whoever maps a device segment that it can use holds a shared lock on that
 * file: an open-file-description lock, which a mapping keeps as long as a
 * descriptor does (fabric.c).  Whoever wants to replace a fabric takes the
 * lock for itself alone; that fails while anybody is in there.  Versions that
 * know nothing of this lock are seen by their contexts, each of which has its
 * arena locked.
 *
 * The directory is moved away before it is emptied.  So nobody finds half of
 * a fabric, and who opened the old segment but had not locked it yet sees
 * that it has lost its name, and begins anew.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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

/* Is the other one also about to replace it? */
static bool fabric_being_replaced(int fd)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return !fcntl(fd, F_OFD_GETLK, &lk) && lk.l_type == F_WRLCK;
}

/* Does any context live in there?  If that cannot be told: yes. */
static bool fabric_has_context(struct urxe_fabric *f)
{
	DIR *ctx = dir_open(f->dirfd, "ctx");
	bool alive = false;
	struct dirent *e;
	int fd;

	if (!ctx)
		return errno != ENOENT;
	while (!alive && (e = readdir(ctx))) {
		if (e->d_name[0] == '.')
			continue;
		fd = openat(dirfd(ctx), e->d_name,
			    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		alive = fd < 0 ? errno != ENOENT : arena_fd_alive(fd);
		if (fd >= 0)
			close(fd);
	}
	closedir(ctx);
	return alive;
}

/*
 * To a hidden name, which is no fabric's, and no other directory's: somebody
 * may have died before he had emptied his, and another process may have his
 * number now.  While we have the lock nobody else moves it.
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

/* What is behind dirfd is ours, wherever it is called what by now. */
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
	return ret;
}

int fabric_retire(struct urxe_fabric *f)
{
	int fd, ret;

	fd = openat(f->dirfd, "device", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	ret = fabric_hold(fd, F_WRLCK);
	if (ret == -EAGAIN && !fabric_being_replaced(fd))
		ret = -EBUSY;
	if (!ret && fabric_has_context(f))
		ret = -EBUSY;
	if (!ret)
		ret = fabric_remove(f);
	close(fd);
	return ret;
}
