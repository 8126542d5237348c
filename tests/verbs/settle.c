// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Replacement of fork() in tests with ASan.  The run-time of gcc 12 does not
 * take the locks of its allocator at fork().  If another thread holds one at
 * that time, the child waits for it for ever.  Therefore fork() waits until
 * all other threads sleep: the service thread sleeps in a wait for events,
 * outside of the allocator.  The wait ends after 200 checks of 1 ms, for
 * threads that never sleep.
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
	if (!stat) /* the thread has exited */
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

/* Interposes libc's fork(), for the program and the libraries. */
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
