// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fork() of tests with ASan.  Its run-time of gcc 12 does not hold the locks of its
 * allocator at fork(): if another thread has one just then, the child waits for
 * it for ever.  So the other threads are to sleep first, which they do outside of
 * the allocator: the service thread waits for events.  One that never sleeps is
 * not waited for long.
 */
#define _GNU_SOURCE
#include "harness.h"

#ifdef __SANITIZE_ADDRESS__

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOKS 200
#define PAUSE_NS 1000000

static bool is_asleep(const char *tid)
{
	char path[64], line[512], *after_name;
	FILE *stat;
	bool asleep = true;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	stat = fopen(path, "re");
	if (!stat) /* it has ended */
		return true;
	if (fgets(line, sizeof(line), stat)) {
		after_name = strrchr(line, ')');
		asleep = after_name && after_name[2] != 'R' &&
			 after_name[2] != 'D';
	}
	fclose(stat);
	return asleep;
}

static bool others_sleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	bool asleep = true;
	struct dirent *d;

	if (!dir)
		return true;
	while (asleep && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]) &&
		    atoi(d->d_name) != gettid())
			asleep = is_asleep(d->d_name);
	closedir(dir);
	return asleep;
}

/* In the place of libc's, for the program and for the libraries. */
pid_t fork(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	pid_t (*next)(void);
	int i;

	for (i = 0; i < LOOKS && !others_sleep(); i++)
		nanosleep(&pause, NULL);
	next = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
	return next();
}

#endif
