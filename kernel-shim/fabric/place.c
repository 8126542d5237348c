// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The place: the parent directory of a user's fabrics.
 *
 * It is URXE_DIR, else the default /dev/shm/urxe-UID.  Another user may
 * create the default first and could then replace fabrics in it.  Therefore a
 * default of another user is not used.  A substitute with an unpredictable
 * name is created next to it: /dev/shm/urxe-UID.RANDOM.  /dev/shm is sticky,
 * so only the owner can rename or remove the substitute.  A later process,
 * also in another container, searches for a substitute of its own user and
 * finds the same one.  An flock(2) on /dev/shm keeps two processes from
 * creating two.  Any process can hold that lock for ever, so the wait is
 * limited to a second.
 *
 *	/dev/shm/urxe-UID	removed with its last fabric; a process that
 *				was about to make a fabric in it tries again
 *	substitute		never removed, so that all find the same one
 *	other URXE_DIR		never removed
 *
 * Other users cannot replace entries of the place (place_is_safe).  In
 * addition, fabrics are opened relative to its descriptor and never through a
 * symbolic link.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "internal.h"

#define SHM "/dev/shm"
/* the overflow UID: owner of files of UIDs that a user namespace lacks */
#define UNMAPPED_UID 65534
#define LOCK_TRIES 100 /* every 10 ms */

static int place_open_at(int at, const char *name)
{
	return openat(at, name,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool place_is_ours(int at, const char *name)
{
	struct stat st;

	return !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & S_IWOTH);
}

/* Find the substitute for `name`; of several the first by name. */
static bool place_find(int shm, const char *name, char found[NAME_MAX + 1])
{
	DIR *dir = dir_open(shm, ".");
	size_t n = strlen(name);
	struct dirent *e;

	*found = 0;
	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, name, n) && e->d_name[n] == '.' &&
		    (!*found || strcmp(e->d_name, found) < 0) &&
		    place_is_ours(shm, e->d_name))
			strcpy(found, e->d_name);
	if (dir)
		closedir(dir);
	return *found;
}

static int place_make(int shm, const char *name, char made[NAME_MAX + 1])
{
	unsigned long long secret;
	int tries;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		if (!flock(shm, LOCK_EX | LOCK_NB))
			break;
		usleep(10000);
	}
	if (place_find(shm, name, made))
		return 0;
	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		return -errno;
	snprintf(made, NAME_MAX + 1, "%s.%016llx", name, secret);
	return mkdirat(shm, made, 0700) ? -errno : 0;
}

/* Find or create the substitute for name, which another user owns. */
static int place_substitute(int shm, const char *name, char found[NAME_MAX + 1])
{
	return place_find(shm, name, found) ? 0 : place_make(shm, name, found);
}

static int place_default(char *buf, size_t len)
{
	char name[32], found[NAME_MAX + 1];
	int shm, ret = 0;

	snprintf(name, sizeof(name), "urxe-%u", (unsigned int)geteuid());
	shm = open(SHM, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (shm < 0 || place_is_ours(shm, name)) {
		strcpy(found, name);
	} else if (faccessat(shm, name, F_OK, AT_SYMLINK_NOFOLLOW)) {
		/* it does not exist; an existing substitute stays in use */
		if (!place_find(shm, name, found))
			strcpy(found, name);
	} else {
		ret = place_substitute(shm, name, found);
	}
	if (shm >= 0)
		close(shm);
	if (ret)
		return fabric_fail(
			-ret,
			SHM
			"/%s belongs to another user, and no other directory can be created: %s",
			name, strerror(-ret));
	return snprintf(buf, len, SHM "/%s", found) < (int)len ? 0 :
								 -ENAMETOOLONG;
}

int place_choose(char *buf, size_t len)
{
	const char *dir = getenv("URXE_DIR");
	char *real;
	int n;

	if (!dir || !*dir)
		return place_default(buf, len);
	if (*dir != '/')
		return fabric_fail(EINVAL,
				   "URXE_DIR=%s is not an absolute path", dir);
	/* realpath() fails if the directory does not exist yet */
	real = realpath(dir, NULL);
	n = snprintf(buf, len, "%s", real ? real : dir);
	free(real);
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

bool place_is_taken(char *by, size_t len)
{
	const char *dir = getenv("URXE_DIR");
	char name[64];
	struct stat st;

	snprintf(name, sizeof(name), SHM "/urxe-%u", (unsigned int)geteuid());
	if ((dir && *dir) ||
	    fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    place_is_ours(AT_FDCWD, name))
		return false;
	snprintf(by, len, "%s is %s of uid %u with mode %04o", name,
		 S_ISDIR(st.st_mode) ? "a directory" : "a file",
		 (unsigned int)st.st_uid, st.st_mode & 07777);
	return true;
}

/* True if other users cannot rename or replace this user's entries. */
static bool place_is_safe(const struct stat *st)
{
	const bool sticky = st->st_mode & S_ISVTX;

	if (st->st_mode & S_IWOTH && !sticky)
		return false;
	return st->st_uid == geteuid() || !st->st_uid ||
	       (st->st_uid == UNMAPPED_UID && sticky);
}

int place_open(const char *dir, bool create)
{
	const char *slash = strrchr(dir, '/');
	char place[256];
	struct stat st;
	int fd, n;

	if (!slash)
		return -EINVAL;
	n = slash == dir ? 1 : (int)(slash - dir);
	if (snprintf(place, sizeof(place), "%.*s", n, dir) >=
	    (int)sizeof(place))
		return -ENAMETOOLONG;
	if (create && mkdir(place, 0700) && errno != EEXIST)
		return fabric_fail(errno, "mkdir %s: %s", place,
				   strerror(errno));
	fd = place_open_at(AT_FDCWD, place);
	if (fd < 0 && errno == ENOENT && create)
		return -EAGAIN; /* removed with its last fabric */
	if (fd < 0 && errno != ELOOP && errno != ENOTDIR)
		return -errno;
	if (fd >= 0 && !fstat(fd, &st) && place_is_safe(&st))
		return fd;
	if (fd >= 0)
		close(fd);
	return fabric_fail(
		EPERM,
		"%s must be a directory of uid %u or root, not a symbolic link, and not writable by other users unless it is sticky",
		place, (unsigned int)geteuid());
}

void place_leave(const char *dir)
{
	char name[64];
	size_t n;

	n = (size_t)snprintf(name, sizeof(name), SHM "/urxe-%u",
			     (unsigned int)geteuid());
	if (!strncmp(dir, name, n) && dir[n] == '/')
		rmdir(name);
}
