// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rounds N: in each of three threads, N times: read sysfs, open and close the
 * device.  No descriptor may be left open.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define DEV "/sys/class/infiniband/urxe0"

static long identity; /* mtime of the ibdev directory */

static void look(void)
{
	struct stat st;
	long was = 0, now;
	int fd;

	/* through the symbolic link, as libibverbs does */
	CHECK(!stat(DEV, &st) && S_ISDIR(st.st_mode));
	now = st.st_mtim.tv_sec * 1000000000l + st.st_mtim.tv_nsec;
	if (!__atomic_compare_exchange_n(&identity, &was, now, 0,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		CHECK(was == now);
	fd = open(DEV "/ports/1/state", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	close(fd);
	fd = open("/dev/infiniband/uverbs1000", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st) && S_ISCHR(st.st_mode));
	close(fd);
}

static void *thread(void *arg)
{
	long n = *(long *)arg;

	while (n--)
		look();
	return NULL;
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;
	pthread_t t[3];
	int i, before;

	look();
	before = open_files();
	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, thread, &n));
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	CHECK(open_files() == before);
	return 0;
}
