// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit_base.h"

static char root[64];

const char *new_dir(void)
{
	static char dir[160];
	static int n;

	snprintf(dir, sizeof(dir), "%s/%d.%d", root, (int)getpid(), n++);
	return dir;
}

pid_t spawn(int (*fn)(void *arg), void *arg)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid)
		_exit(fn(arg));
	return pid;
}

int reap_child(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	ck_assert_int_eq(reap_child(pid), -SIGKILL);
}

/* Defined if the program is linked with LeakSanitizer. */
void __lsan_disable(void) __attribute__((weak));

void may_leak(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	close(fd);
}

const char *tiny_tmpfs(size_t bytes)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	const char *dir = new_dir();
	char text[64];

	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			goto cannot;
		snprintf(text, sizeof(text), "%u %u 1", uid, uid);
		write_file("/proc/self/uid_map", text);
		write_file("/proc/self/setgroups", "deny");
		snprintf(text, sizeof(text), "%u %u 1", gid, gid);
		write_file("/proc/self/gid_map", text);
	}
	snprintf(text, sizeof(text), "mode=0700,size=%zu", bytes);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mkdir(dir, 0700) || mount("tiny", dir, "tmpfs", 0, text))
		goto cannot;
	return dir;

cannot:
	fprintf(stderr, "skipped: no tmpfs of our own: %s\n", strerror(errno));
	return NULL;
}

bool have_room(unsigned long long bytes)
{
	struct statvfs vfs;

	if (!statvfs(root, &vfs) &&
	    (unsigned long long)vfs.f_bavail * vfs.f_frsize > bytes)
		return true;
	fprintf(stderr, "skipped: %s has no room for %llu bytes\n", root,
		bytes);
	return false;
}

static int remove_entry(const char *path, const struct stat *st, int flag,
			struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

int run_suite(Suite *s)
{
	SRunner *sr = srunner_create(s);
	int ret;

	snprintf(root, sizeof(root), "/dev/shm/urxe-unit-XXXXXX");
	if (!mkdtemp(root)) {
		snprintf(root, sizeof(root), "/tmp/urxe-unit-XXXXXX");
		if (!mkdtemp(root)) {
			perror("mkdtemp");
			return EXIT_FAILURE;
		}
	}
	ret = run_cases(sr);
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	return ret;
}
