/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers for tests of page adoption (docs/adoption.md): memory that can be
 * adopted, and checks of its current state.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../mark.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define NAME "/memfd:urxe-adopted"
#define PAGE 4096u
#define SIZE (64 * PAGE)

/*
 * Return 's' or 'p' if the page at @p is a shared or private mapping of a
 * memfd that adoption has made, else 0.
 */
static inline char kind_of(const void *p)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t start, end, at = (uintptr_t)p;
	char line[512], perm[5], kind = 0;

	ck_assert(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &start, &end,
			   perm) == 3 &&
		    at >= start && at < end && strstr(line, NAME))
			kind = perm[3];
	fclose(maps);
	return kind;
}

static inline bool is_adopted(const void *p)
{
	return kind_of(p) == 's';
}

/*
 * Count the descriptors of such memfds and of userfaultfd.  Each must be
 * close-on-exec.
 */
static inline int count_fds(void)
{
	char path[32], to[64];
	int fd, n = 0;
	ssize_t len;

	for (fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, to, sizeof(to) - 1);
		if (len < 0)
			continue;
		to[len] = 0;
		if (!strstr(to, NAME) && !strstr(to, "userfaultfd"))
			continue;
		ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
		n++;
	}
	return n;
}

#define FAR ((size_t)64 << 30)

/*
 * Map zeroed private memory.  It lies 64 GiB below the other mappings: the
 * kernel places new mappings at the highest free address, so if a test unmaps
 * part of this memory, no other thread's mapping takes its place.
 */
static inline char *map_zeros(size_t size)
{
	const int prot = PROT_READ | PROT_WRITE;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	static uintptr_t below;
	char *p;

	if (!below) {
		p = mmap(NULL, PAGE, prot, flags, -1, 0);
		ck_assert(p != MAP_FAILED && !munmap(p, PAGE));
		below = (uintptr_t)p - FAR;
	}
	below -= (size + PAGE - 1) / PAGE * PAGE + PAGE;
	p = mmap((void *)below, size, prot, flags, -1, 0);
	ck_assert(p != MAP_FAILED);
	return p;
}

static inline void fill_pattern(char *p, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		p[i] = (char)(i * 7 + i / PAGE + 1);
}

static inline char *map_pages(size_t size)
{
	char *p = map_zeros(size);

	fill_pattern(p, 0, size);
	return p;
}

static inline bool has_pattern(const char *p, size_t from, size_t to)
{
	size_t i;

	for (i = from; i < to; i++)
		if (p[i] != (char)(i * 7 + i / PAGE + 1))
			return false;
	return true;
}

/*
 * Return whether userfaultfd with write protection is available.  Without it
 * nothing is adopted, and registration works as if adoption were disabled.
 */
static inline bool can_adopt(void)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	bool can = fd >= 0 && !ioctl(fd, UFFDIO_API, &api);

	if (fd >= 0)
		close(fd);
	return can;
}
