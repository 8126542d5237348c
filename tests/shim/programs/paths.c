// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * All interposed functions that take a path, under all symbol names that
 * binaries use.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "test.h"

#define DEV "/sys/class/infiniband/urxe0"
#define PCI "devices/pci7578:ff/7578:ff:00.0"
#define REAL "/sys/" PCI "/infiniband/urxe0"
#define CDEV "/dev/infiniband/uverbs1000"
#define EMPTY DEV "/ports/1/gid_attrs/types/31"

/* The function that a binary resolves @name to; NULL: not in this libc. */
#define SYMBOL(type, name) ((type)dlsym(RTLD_DEFAULT, name))

static void reads(int fd, const char *want)
{
	char buf[64] = "";

	CHECK(fd >= 0);
	CHECK(read(fd, buf, sizeof(buf) - 1) == (ssize_t)strlen(want));
	CHECK(!strcmp(buf, want));
	CHECK(!close(fd));
}

static void test_open(void)
{
	static const char *const names[] = { "open", "open64", "__open_2",
					     "__open64_2" };
	static const char *const at[] = { "openat", "openat64", "__openat_2",
					  "__openat64_2" };
	int (*f)(const char *, int, ...);
	int (*fat)(int, const char *, int, ...);
	unsigned int i;
	int dir;

	for (i = 0; i < 4; i++) {
		f = SYMBOL(int (*)(const char *, int, ...), names[i]);
		if (f)
			reads(f(DEV "/node_type", O_RDONLY), "1: CA\n");
		fat = SYMBOL(int (*)(int, const char *, int, ...), at[i]);
		if (!fat)
			continue;
		reads(fat(AT_FDCWD, DEV "/node_type", O_RDONLY), "1: CA\n");
		dir = fat(-1, DEV, O_RDONLY | O_DIRECTORY);
		CHECK(dir >= 0);
		reads(fat(dir, "ports/1/pkeys/0", O_RDONLY), "0xffff\n");
		close(dir);
	}
	reads(open("//sys/./class///infiniband/urxe0/./node_type", O_RDONLY),
	      "1: CA\n");
	errno = 0;
	CHECK(open(DEV "/nosuch", O_RDONLY) < 0 && errno == ENOENT);
	CHECK(open(DEV, O_WRONLY) < 0 && errno == EISDIR);
	/* names with the same prefix are not the device's */
	CHECK(open("/sys/class/infiniband_x/urxe0", O_RDONLY) < 0);
	CHECK(open("/sys/class/infiniband/urxe0x", O_RDONLY) < 0);
}

static void test_create(void)
{
	const char *base = getenv("URXE_DIR");
	char path[300];
	struct stat st;
	int fd;

	CHECK(base);
	snprintf(path, sizeof(path), "%s/.file", base);
	fd = open(path, O_CREAT | O_RDWR, 0640);
	CHECK(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777) == 0640);
	close(fd);
	unlink(path);
}

static void test_empty_slot(void)
{
	char buf[16];
	FILE *file;
	int fd, dir;

	fd = open(EMPTY, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(read(fd, buf, sizeof(buf)) < 0 && errno == EINVAL);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	close(fd);
	dir = open(DEV "/ports/1", O_RDONLY | O_DIRECTORY);
	fd = openat(dir, "gid_attrs/ndevs/31", O_RDONLY);
	CHECK(fd >= 0);
	CHECK(read(fd, buf, sizeof(buf)) < 0 && errno == EINVAL);
	CHECK(fcntl(fd, F_GETFD) == 0);
	close(fd);
	close(dir);
	file = fopen(EMPTY, "r");
	CHECK(file);
	CHECK(!fgets(buf, sizeof(buf), file) && ferror(file));
	fclose(file);
}

static void test_fopen(void)
{
	static const char *const names[] = { "fopen", "fopen64" };
	FILE *(*f)(const char *, const char *);
	char buf[64];
	unsigned int i;
	FILE *file;

	for (i = 0; i < 2; i++) {
		f = SYMBOL(FILE * (*)(const char *, const char *), names[i]);
		if (!f)
			continue;
		file = f(DEV "/node_type", "re");
		CHECK(file && fgets(buf, sizeof(buf), file));
		CHECK(!strcmp(buf, "1: CA\n"));
		CHECK(fcntl(fileno(file), F_GETFD) == FD_CLOEXEC);
		fclose(file);
		CHECK(!f(DEV "/nosuch", "r") && errno == ENOENT);
	}
}

static int is_cdev(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && (st->st_mode & 0777) == 0666 &&
	       st->st_rdev == makedev(231, 60000);
}

typedef int stat_fn(const char *, struct stat *);
typedef int xstat_fn(int, const char *, struct stat *);
typedef int fstatat_fn(int, const char *, struct stat *, int);
typedef int fxstatat_fn(int, int, const char *, struct stat *, int);

static void test_stat_names(void)
{
	static const char *const s[] = { "stat", "stat64", "lstat", "lstat64" };
	static const char *const x[] = { "__xstat", "__xstat64", "__lxstat",
					 "__lxstat64" };
	struct stat st;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		stat_fn *f = SYMBOL(stat_fn *, s[i]);
		xstat_fn *fx = SYMBOL(xstat_fn *, x[i]);

		if (f) {
			CHECK(!f(CDEV, &st) && is_cdev(&st));
			CHECK(!f(DEV, &st));
			CHECK(S_ISLNK(st.st_mode) == (i >= 2));
			CHECK(f(DEV "x", &st) && errno == ENOENT);
		}
		if (fx) {
			CHECK(!fx(1, CDEV, &st) && is_cdev(&st));
			CHECK(!fx(1, DEV, &st));
			CHECK(S_ISLNK(st.st_mode) == (i >= 2));
		}
	}
}

static void test_stat_at(void)
{
	static const char *const s[] = { "fstatat", "fstatat64" };
	static const char *const x[] = { "__fxstatat", "__fxstatat64" };
	struct stat st;
	unsigned int i;
	int dir;

	dir = open("/dev/infiniband", O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0);
	for (i = 0; i < 2; i++) {
		fstatat_fn *f = SYMBOL(fstatat_fn *, s[i]);
		fxstatat_fn *fx = SYMBOL(fxstatat_fn *, x[i]);

		if (f) {
			CHECK(!f(dir, "uverbs1000", &st, 0) && is_cdev(&st));
			CHECK(!f(-1, CDEV, &st, 0) && is_cdev(&st));
			CHECK(!f(-1, DEV, &st, AT_SYMLINK_NOFOLLOW));
			CHECK(S_ISLNK(st.st_mode));
		}
		if (fx)
			CHECK(!fx(1, dir, "uverbs1000", &st, 0) &&
			      is_cdev(&st));
	}
	close(dir);
	CHECK(!stat(EMPTY, &st) && st.st_mode == (S_IFREG | 0444));
	CHECK(!stat("/dev/char/231:60000", &st) && is_cdev(&st));
}

static void test_statx(void)
{
	struct statx stx;

	if (statx(AT_FDCWD, CDEV, 0, STATX_BASIC_STATS, &stx)) {
		CHECK(errno == ENOSYS);
		return;
	}
	CHECK(S_ISCHR(stx.stx_mode) && stx.stx_rdev_major == 231 &&
	      stx.stx_rdev_minor == 60000);
	CHECK(!statx(AT_FDCWD, DEV, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx));
	CHECK(S_ISLNK(stx.stx_mode));
}

static void test_access(void)
{
	CHECK(!access(DEV "/node_type", R_OK));
	CHECK(access(DEV "/nosuch", F_OK) && errno == ENOENT);
	CHECK(!euidaccess(DEV, X_OK));
	CHECK(!eaccess(DEV, X_OK));
	CHECK(!faccessat(AT_FDCWD, CDEV, R_OK | W_OK, 0));
}

static void test_links(void)
{
	static const char target[] = "../../" PCI "/infiniband/urxe0";
	ssize_t (*chk)(const char *, char *, size_t, size_t);
	char *(*real_chk)(const char *, char *, size_t);
	char buf[PATH_MAX], *p;
	const ssize_t n = sizeof(target) - 1;

	CHECK(readlink(DEV, buf, sizeof(buf)) == n && !memcmp(buf, target, n));
	CHECK(readlinkat(-1, DEV, buf, sizeof(buf)) == n);
	chk = SYMBOL(ssize_t(*)(const char *, char *, size_t, size_t),
		     "__readlink_chk");
	if (chk)
		CHECK(chk(DEV, buf, sizeof(buf), sizeof(buf)) == n);
	CHECK(realpath(DEV, buf) == buf && !strcmp(buf, REAL));
	p = realpath(DEV "/ports/1/../1", NULL);
	CHECK(p && !strcmp(p, REAL "/ports/1"));
	free(p);
	real_chk = SYMBOL(char *(*)(const char *, char *, size_t),
			  "__realpath_chk");
	if (real_chk)
		CHECK(real_chk(DEV, buf, sizeof(buf)) == buf &&
		      !strcmp(buf, REAL));
	p = canonicalize_file_name("/sys/class/infiniband_verbs/uverbs1000");
	CHECK(p && !strcmp(p, "/sys/" PCI "/infiniband_verbs/uverbs1000"));
	free(p);
	CHECK(!realpath(DEV "/nosuch", buf) && errno == ENOENT);
	/* the resolved path can be used, too */
	CHECK(!access(REAL "/ports/1/state", R_OK));
}

static int visible(const struct dirent *de)
{
	return de->d_name[0] != '.';
}

static void test_dirs(void)
{
	static const char *const names[] = { "scandir", "scandir64" };
	int (*f)(const char *, struct dirent ***,
		 int (*)(const struct dirent *),
		 int (*)(const struct dirent **, const struct dirent **));
	struct dirent **list, *de;
	unsigned int i;
	int n = 0;
	DIR *dir;

	dir = opendir("/sys/class/infiniband");
	CHECK(dir);
	while ((de = readdir(dir)))
		if (visible(de)) {
			CHECK(!strcmp(de->d_name, "urxe0"));
			n++;
		}
	CHECK(n == 1);
	closedir(dir);
	for (i = 0; i < 2; i++) {
		*(void **)&f = dlsym(RTLD_DEFAULT, names[i]);
		if (!f)
			continue;
		CHECK(f(DEV "/ports", &list, visible, alphasort) == 1);
		CHECK(!strcmp(list[0]->d_name, "1"));
		free(list[0]);
		free(list);
	}
	CHECK(!opendir(DEV "/nosuch") && errno == ENOENT);
}

static void test_chdir(void)
{
	char old[PATH_MAX];

	CHECK(getcwd(old, sizeof(old)));
	CHECK(!chdir(DEV));
	reads(open("node_type", O_RDONLY), "1: CA\n");
	CHECK(!chdir("/dev/infiniband"));
	CHECK(!access("uverbs1000", R_OK));
	CHECK(!chdir(old));
}

static void test_glob(void)
{
	glob_t g = { 0 };

	CHECK(!glob("/sys/class/infiniband/*/ports/[0-9]", 0, NULL, &g));
	CHECK(g.gl_pathc == 1 && !strcmp(g.gl_pathv[0], DEV "/ports/1"));
	CHECK(!glob("/dev/infiniband/uverbs*", GLOB_APPEND, NULL, &g));
	CHECK(g.gl_pathc == 2 && !strcmp(g.gl_pathv[1], CDEV));
	globfree(&g);
	CHECK(glob("/sys/class/infiniband/nosuch*", 0, NULL, &g) ==
	      GLOB_NOMATCH);
	globfree(&g);
}

static void test_xattr(void)
{
	char buf[16];

	CHECK(getxattr(DEV, "user.nosuch", buf, sizeof(buf)) < 0 &&
	      errno != ENOENT);
	CHECK(lgetxattr(DEV, "user.nosuch", buf, sizeof(buf)) < 0 &&
	      errno != ENOENT);
}

static void test_errno(void)
{
	struct stat st;
	DIR *dir;
	int fd;

	errno = 4711;
	fd = open(DEV "/ports/1/gids/0", O_RDONLY);
	CHECK(fd >= 0 && errno == 4711);
	CHECK(!fstat(fd, &st) && errno == 4711);
	close(fd);
	CHECK(!stat(CDEV, &st) && errno == 4711);
	fd = open(EMPTY, O_RDONLY);
	CHECK(fd >= 0 && errno == 4711);
	close(fd);
	dir = opendir("/sys/class/infiniband_verbs");
	CHECK(dir && errno == 4711);
	closedir(dir);
	errno = 0;
}

int main(void)
{
	test_open();
	test_create();
	test_empty_slot();
	test_fopen();
	test_stat_names();
	test_stat_at();
	test_statx();
	test_access();
	test_links();
	test_dirs();
	test_chdir();
	test_glob();
	test_xattr();
	test_errno();
	return 0;
}
