// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descendants.h"

struct process {
	pid_t pid, parent;
	bool ours; /* a descendant of this process */
};

static bool process_read(const char *name, struct process *p)
{
	char path[300], line[512], *end;
	FILE *f;
	size_t n;
	int parent;

	if (!isdigit((unsigned char)*name))
		return false;
	snprintf(path, sizeof(path), "/proc/%s/stat", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = 0;
	/* PID (NAME) STATE PARENT ...; NAME may contain any characters */
	end = strrchr(line, ')');
	if (!end || sscanf(end, ") %*c %d", &parent) != 1)
		return false;
	*p = (struct process){ .pid = atoi(name), .parent = parent };
	return true;
}

static struct process *processes_read(size_t *count)
{
	struct process *list = NULL, *more, p;
	size_t n = 0, room = 0;
	struct dirent *d;
	DIR *dir;

	dir = opendir("/proc");
	while (dir && (d = readdir(dir))) {
		if (!process_read(d->d_name, &p))
			continue;
		if (n == room) {
			room = room * 2 + 64;
			more = realloc(list, room * sizeof(*list));
			if (!more)
				break;
			list = more;
		}
		list[n++] = p;
	}
	if (dir)
		closedir(dir);
	*count = n;
	return list;
}

/* Return whether the parent of p is this process or a known descendant. */
static bool process_is_below(const struct process *p, const struct process *all,
			     size_t n)
{
	size_t i;

	if (p->parent == getpid())
		return true;
	for (i = 0; i < n; i++)
		if (all[i].pid == p->parent)
			return all[i].ours;
	return false;
}

/*
 * Repeat until no more are found: a parent may be after its child in `all`.
 */
void descendants_signal(int sig)
{
	struct process *all;
	bool more = true;
	size_t i, n;

	all = processes_read(&n);
	while (more) {
		more = false;
		for (i = 0; i < n; i++) {
			if (all[i].ours || !process_is_below(&all[i], all, n))
				continue;
			all[i].ours = more = true;
			kill(all[i].pid, sig);
		}
	}
	free(all);
}
