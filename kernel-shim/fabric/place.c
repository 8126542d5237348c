// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The place: the directory that fabrics are in.
 *
 * It is URXE_DIR, else /dev/shm/urxe-UID.  Anybody may make a directory of that
 * name before us, and could then put what he likes in our fabrics' place.  So
 * one that is not ours is not used.  Another is made beside it, with a name
 * that nobody can know beforehand: /dev/shm/urxe-UID.RANDOM.  In a directory
 * with the sticky bit a directory stays whose it is; so whoever looks for one
 * that is ours finds the same, also in another container.  Two who make the
 * first one at the same time are kept apart by a lock on /dev/shm.  Somebody
 * may hold that lock for ever, so it is waited for a second and not longer.
 *
 * /dev/shm/urxe-UID goes with its last fabric; who was about to make one in it
 * begins anew.  What stands in for it stays, so that all find the same, and so
 * does a directory that URXE_DIR names.
 *
 * What is in a place of ours nobody else can exchange; fabrics are nevertheless
 * opened relative to its descriptor, and never through a link.
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
#define UNMAPPED_UID 65534 /* how others look in a user namespace */
#define LOCK_TRIES 100 /* of 10 ms */

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

/* The one that stands in for `name`; of several the first by name. */
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

/* What stands in for name, which is taken. */
static int place_beside(int shm, const char *name, char found[NAME_MAX + 1])
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
		/* nobody's yet; but one that was made beside it stays in use */
		if (!place_find(shm, name, found))
			strcpy(found, name);
	} else {
		ret = place_beside(shm, name, found);
	}
	if (shm >= 0)
		close(shm);
	if (ret)
		return fabric_fail(-ret,
				   SHM "/%s is not ours, and another place: %s",
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
	/* the last part may have to be made yet */
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
		 S_ISDIR(st.st_mode) ? "a directory" :
				       "no directory but a file",
		 (unsigned int)st.st_uid, st.st_mode & 07777);
	return true;
}

/* Can nobody else rename or replace what is in there? */
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
		return -EAGAIN; /* its last fabric has just gone */
	if (fd < 0 && errno != ELOOP && errno != ENOTDIR)
		return -errno;
	if (fd >= 0 && !fstat(fd, &st) && place_is_safe(&st))
		return fd;
	if (fd >= 0)
		close(fd);
	return fabric_fail(
		EPERM,
		"%s must be a directory of uid %u or root, and no link, in which others cannot rename what is ours",
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
