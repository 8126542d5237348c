// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

struct urxe_fabric *new_fabric(void)
{
	struct urxe_fabric *f;

	ck_assert_int_eq(fabric_open(new_dir(), true, &f), 0);
	return f;
}

struct urxe_fabric *again(const struct urxe_fabric *f)
{
	struct urxe_fabric *g;

	ck_assert_int_eq(fabric_open(f->dir, false, &g), 0);
	return g;
}

int open_context(struct urxe_fabric *f)
{
	int fd = fabric_context_open(f, 0);

	ck_assert_msg(fd >= 0, "context: %s, %s", strerror(-fd), fabric_why());
	return fd;
}

struct urxe_arena *open_arena(struct urxe_fabric *f, int *fd)
{
	struct urxe_arena *a;

	*fd = open_context(f);
	ck_assert_int_eq(arena_map(*fd, &a), 0);
	return a;
}

int count_entries(const struct urxe_fabric *f, const char *sub,
		  const char *prefix)
{
	char path[512];
	struct dirent *de;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", f->dir, sub);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((de = readdir(dir)))
		n += de->d_name[0] != '.' &&
		     !strncmp(de->d_name, prefix, strlen(prefix));
	closedir(dir);
	return n;
}
