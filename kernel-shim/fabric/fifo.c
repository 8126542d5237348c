// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event FIFOs: completion channels and async event channels.
 *
 * A channel is a named FIFO, ev/SLOT.GEN.NUMBER (fifo(7)).  Its owner holds
 * it open for reading and writing, so it never reads end-of-file.  A peer
 * opens it by number and writes whole records of less than PIPE_BUF bytes,
 * which are atomic (pipe(7)).
 *
 * Closing a channel gives no notification, but opening a FIFO without a
 * reader for writing fails with ENXIO.  Every SWEEP_EVERY-th channel that a
 * context creates removes those of its FIFOs.  Therefore a new FIFO has
 * URXE_FIFO_NASCENT at the end of its name until its owner has opened it.
 * The reaper of a dead context removes all of its FIFOs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "shared/event_tag.h"

#define SWEEP_EVERY 16

/*
 * Remove a context's FIFOs; with only_unread those that have no reader.
 * -errno: they could not be listed.
 */
static int fifo_remove(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		       bool only_unread)
{
	char prefix[32], path[300];
	DIR *dir = dir_open(f->dirfd, "ev");
	struct dirent *de;
	size_t n;
	int fd;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	n = snprintf(prefix, sizeof(prefix), "%u.%u.", slot, gen);
	while ((de = readdir(dir))) {
		if (strncmp(de->d_name, prefix, n) ||
		    (only_unread && strchr(de->d_name, URXE_FIFO_NASCENT)))
			continue;
		snprintf(path, sizeof(path), "ev/%s", de->d_name);
		if (only_unread) {
			fd = openat(f->dirfd, path,
				    O_WRONLY | O_NONBLOCK | O_CLOEXEC);
			if (fd >= 0)
				close(fd);
			if (fd >= 0 || errno != ENXIO)
				continue;
		}
		unlinkat(f->dirfd, path, 0);
	}
	closedir(dir);
	return 0;
}

static void fifo_name(char path[64], char nascent[64], uint32_t slot,
		      uint32_t gen, uint32_t number)
{
	snprintf(path, 64, URXE_FIFO_NAME, slot, gen, number);
	snprintf(nascent, 64, URXE_FIFO_NAME "%c", slot, gen, number,
		 URXE_FIFO_NASCENT);
}

/* Up to this number, names are tried instead of listing the directory. */
#define TRY_NAMES_MAX 32

int fifo_remove_all(struct urxe_fabric *f, uint32_t slot, uint32_t gen)
{
	uint32_t n = load_relaxed(&f->dev->ctx[slot].next_fifo);
	char path[64], nascent[64];

	if (n > TRY_NAMES_MAX)
		return fifo_remove(f, slot, gen, false);
	while (n--) {
		fifo_name(path, nascent, slot, gen, n);
		/* nascent first: a creator still alive may rename it */
		if ((unlinkat(f->dirfd, nascent, 0) && errno != ENOENT) ||
		    (unlinkat(f->dirfd, path, 0) && errno != ENOENT))
			return -errno;
	}
	return 0;
}

int fifo_create(struct urxe_fabric *f, struct urxe_arena *a, uint32_t *number)
{
	char path[64], nascent[64];
	uint32_t n;
	int fd, ret;

	if (a->slot >= URXE_MAX_CTX)
		return -EINVAL;
	n = fetch_add_relaxed(&f->dev->ctx[a->slot].next_fifo, 1);
	if (n % SWEEP_EVERY == SWEEP_EVERY - 1)
		fifo_remove(f, a->slot, a->gen, true);
	fifo_name(path, nascent, a->slot, a->gen, n);
	if (mkfifoat(f->dirfd, nascent, 0600))
		return fabric_fail(errno, "mkfifo %s/%s: %s", f->dir, nascent,
				   strerror(errno));
	fd = openat(f->dirfd, nascent, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, EVENT_FIFO_MODE & 07777) ||
	    renameat(f->dirfd, nascent, f->dirfd, path)) {
		ret = fabric_fail(errno, "cannot open %s/%s: %s", f->dir,
				  nascent, strerror(errno));
		unlinkat(f->dirfd, nascent, 0);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	*number = n;
	return fd;
}

int fifo_number(int fd, uint32_t *number)
{
	char path[300];
	const char *dot;
	struct stat st;
	int ret;

	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode))
		return -EINVAL;
	ret = file_path(fd, path, sizeof(path));
	if (ret)
		return ret;
	dot = strrchr(path, '.');
	if (!strstr(path, "/ev/") || !dot)
		return -EINVAL;
	*number = (uint32_t)strtoul(dot + 1, NULL, 10);
	return 0;
}

int fifo_open_writer(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		     uint32_t number)
{
	char path[64];
	int fd, probe;

	snprintf(path, sizeof(path), URXE_FIFO_NAME, slot, gen, number);
	probe = openat(f->dirfd, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (probe < 0)
		return errno == ENOENT ? -ENXIO : -errno;
	/* O_RDWR: no SIGPIPE if the reader dies */
	fd = openat(f->dirfd, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fd = errno == ENOENT ? -ENXIO : -errno;
	close(probe);
	return fd;
}

int fifo_send_async(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		    uint32_t fifo, uint64_t element, uint32_t type)
{
	struct urxe_async_event e = { .element = element, .type = type };
	int fd, ret, saved = errno;

	fd = fifo ? fifo_open_writer(f, slot, gen, fifo - 1) : -ENXIO;
	ret = fd < 0 ? fd : write(fd, &e, sizeof(e)) == sizeof(e) ? 0 : -EAGAIN;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return ret;
}
