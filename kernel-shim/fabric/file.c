// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Helpers for files, directories and mappings of sparse files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fabric.h"

void file_read(int at, const char *path, char *text, size_t room)
{
	int fd = openat(at, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0;

	if (fd >= 0) {
		n = read(fd, text, room - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
}

int file_path(int fd, char *path, size_t room)
{
	char proc[32];
	ssize_t n;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, path, room - 1);
	path[n > 0 ? n : 0] = 0;
	return n < 0 ? -errno : 0;
}

int sparse_allowed(uint64_t size)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY ||
	    r.rlim_cur >= size)
		return 0;
	return fabric_fail(
		EFBIG,
		"a sparse file of %llu KiB is needed, but ulimit -f allows %llu KiB",
		(unsigned long long)size >> 10,
		(unsigned long long)r.rlim_cur >> 10);
}

static int map_fail(int err, size_t size)
{
	struct rlimit r;

	if (err == EAGAIN)
		return fabric_fail(err,
				   "%zu MiB cannot be mapped: the program locks its memory (mlockall) and ulimit -l is too low",
				   size >> 20);
	if (err == ENOMEM && !getrlimit(RLIMIT_AS, &r) &&
	    r.rlim_cur != RLIM_INFINITY)
		return fabric_fail(
			err,
			"%zu MiB more address space (mostly unused) is needed, but ulimit -v allows %llu MiB in total",
			size >> 20, (unsigned long long)r.rlim_cur >> 20);
	return fabric_fail(err, "cannot map %zu MiB: %s", size >> 20,
			   strerror(err));
}

int sparse_map(int fd, size_t size, void *at, void **out)
{
	void *p;
	int err;

	p = mmap(at, size, PROT_NONE,
		 MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0), fd, 0);
	if (p == MAP_FAILED)
		return map_fail(errno, size);
	if (munlock(p, size) || mprotect(p, size, PROT_READ | PROT_WRITE)) {
		err = errno;
		if (!at)
			munmap(p, size);
		return map_fail(err, size);
	}
	*out = p;
	return 0;
}

int layout_map(int fd, size_t size, const char *magic, void **out)
{
	const struct {
		char magic[16];
		uint32_t version;
	} *head;
	struct stat st;
	void *map;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size != (off_t)size)
		return -EPROTO;
	ret = sparse_map(fd, size, NULL, &map);
	if (ret)
		return ret;
	head = map;
	if (memcmp(head->magic, magic, sizeof(head->magic)) ||
	    head->version != urxe_layout_version) {
		munmap(map, size);
		return -EPROTO;
	}
	*out = map;
	return 0;
}

DIR *dir_open(int at, const char *path)
{
	int fd = openat(at, path,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

void dir_clear(int at)
{
	DIR *dir = dir_open(at, ".");
	struct dirent *de;

	while (dir && (de = readdir(dir)))
		if (strcmp(de->d_name, ".") && strcmp(de->d_name, ".."))
			dir_remove(at, de->d_name);
	if (dir)
		closedir(dir);
}

void dir_remove(int at, const char *path)
{
	int fd;

	if (!unlinkat(at, path, 0))
		return;
	fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	dir_clear(fd);
	close(fd);
	unlinkat(at, path, AT_REMOVEDIR);
}

int dir_make_parents(int at, const char *path)
{
	char part[600];
	size_t i;

	for (i = 0; i < sizeof(part) - 1 && path[i]; i++) {
		part[i] = path[i];
		part[i + 1] = 0;
		if (path[i + 1] == '/' && mkdirat(at, part, 0755) &&
		    errno != EEXIST)
			return -errno;
	}
	return 0;
}
