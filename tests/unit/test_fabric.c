// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fabric's directory and device segment: creation by the first process,
 * replacement when they are unusable, and removal by the last process.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

START_TEST(create_and_open)
{
	struct urxe_fabric *f = new_fabric(), *g = again(f);
	struct stat st;

	ck_assert_str_eq(f->dev->magic, URXE_DEV_MAGIC);
	ck_assert_uint_eq(f->dev->version, urxe_layout_version);
	ck_assert_uint_eq(f->dev->size, sizeof(struct urxe_dev));
	ck_assert(f->dev->hca[0].node_guid != 0);
	ck_assert(f->dev->hca[0].node_guid == g->dev->hca[0].node_guid);
	ck_assert_uint_eq(f->dev->hca[0].port_state, URXE_PORT_ACTIVE);
	ck_assert_int_eq(stat(f->dir, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	ck_assert_int_eq(fstatat(f->dirfd, "device", &st, 0), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(fcntl(f->dirfd, F_GETFD), FD_CLOEXEC);

	/* two mappings of the same memory */
	atomic_store(&f->dev->used[URXE_OBJ_PD], 77);
	ck_assert_uint_eq(atomic_load(&g->dev->used[URXE_OBJ_PD]), 77);
	fabric_close(g);
	/* an existing fabric is opened */
	ck_assert_int_eq(fabric_open(f->dir, true, &g), 0);
	ck_assert_uint_eq(atomic_load(&g->dev->used[URXE_OBJ_PD]), 77);
	fabric_close(g);
	fabric_close(f);
}
END_TEST

START_TEST(open_absent)
{
	struct urxe_fabric *f = (void *)1;
	const char *dir = new_dir();

	ck_assert_int_eq(fabric_open(dir, false, &f), -ENOENT);
	ck_assert_ptr_eq(f, (void *)1);
	ck_assert_int_eq(access(dir, F_OK), -1);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	ck_assert_int_eq(fabric_open(dir, false, &f), -ENOENT);
}
END_TEST

static int count_names(const char *dir)
{
	DIR *d = opendir(dir);
	int n = 0;

	ck_assert(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int names_while_made;

static int look_while_made(struct urxe_fabric *f, int fd)
{
	ck_assert_int_eq(write(fd, "half", 4), 4);
	names_while_made = count_names(f->dir);
	return 0;
}

/*
 * A file has no name until it is complete, so that a process that is killed
 * meanwhile leaves nothing.
 */
START_TEST(file_named_when_complete)
{
	struct urxe_fabric *f = new_fabric();
	int before = count_names(f->dir);

	ck_assert_int_eq(fabric_make_file(f, "new", look_while_made), 0);
	ck_assert_int_eq(names_while_made, before);
	ck_assert_int_eq(count_names(f->dir), before + 1);
	/* an existing file is kept */
	ck_assert_int_eq(fabric_make_file(f, "new", look_while_made), 0);
	ck_assert_int_eq(count_names(f->dir), before + 1);
	ck_assert_int_eq(unlinkat(f->dirfd, "new", 0), 0);
	fabric_close(f);
}
END_TEST

START_TEST(two_fabrics_are_two_devices)
{
	struct urxe_fabric *f = new_fabric(), *g = new_fabric();

	ck_assert(f->dev->hca[0].node_guid != g->dev->hca[0].node_guid);
	/* locally administered EUI-64 */
	ck_assert(f->dev->hca[0].node_guid >> 56 & 2);
	atomic_store(&f->dev->used[0], 5);
	ck_assert_uint_eq(atomic_load(&g->dev->used[0]), 0);
	fabric_close(f);
	fabric_close(g);
}
END_TEST

static struct urxe_fabric *new_at(const char *dir)
{
	struct urxe_fabric *f;

	ck_assert_int_eq(fabric_open(dir, true, &f), 0);
	return f;
}

START_TEST(bad_directories)
{
	struct urxe_fabric *f;
	const char *dir = new_dir();
	char link[200], deep[300];

	fabric_close(new_at(dir));
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(fabric_open(dir, true, &f), -EPERM);
	ck_assert_str_ne(fabric_why(), "");
	ck_assert_int_eq(fabric_open(dir, false, &f), -EPERM);
	ck_assert_str_ne(fabric_why(), "");
	ck_assert_int_eq(chmod(dir, 0710), 0);
	ck_assert_int_eq(fabric_open(dir, true, &f), -EPERM);
	ck_assert_int_eq(chmod(dir, 0700), 0);

	/* a symbolic link could lead to a directory of another user */
	strcat(strcpy(link, dir), ".link");
	ck_assert_int_eq(symlink(dir, link), 0);
	ck_assert_int_eq(fabric_open(link, true, &f), -EPERM);
	ck_assert_int_eq(fabric_open(link, false, &f), -EPERM);
	unlink(link);

	close(open(link, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(fabric_open(link, true, &f), -EPERM);

	snprintf(deep, sizeof(deep), "%s/a/b/c/d", dir);
	ck_assert_int_eq(fabric_open(deep, true, &f), -ENOENT);
	if (!geteuid()) {
		ck_assert_int_eq(chown(dir, 12345, 12345), 0);
		ck_assert_int_eq(fabric_open(dir, true, &f), -EPERM);
		ck_assert_int_eq(fabric_open(dir, false, &f), -EPERM);
	}
}
END_TEST

START_TEST(long_name)
{
	struct urxe_fabric *f;
	char name[400];

	memset(name, 'x', sizeof(name) - 1);
	name[0] = '/';
	name[sizeof(name) - 1] = 0;
	ck_assert_int_eq(fabric_open(name, true, &f), -ENAMETOOLONG);
	ck_assert_int_eq(fabric_open(name, false, &f), -ENAMETOOLONG);
}
END_TEST

/* Each of these makes the segment unusable: opening it returns -EPROTO. */
static void break_magic(struct urxe_dev *dev)
{
	dev->magic[3] ^= 1;
}
static void break_version(struct urxe_dev *dev)
{
	dev->version++;
}
static void break_size(struct urxe_dev *dev)
{
	dev->size -= 8;
}
static void break_dm_bytes(struct urxe_dev *dev)
{
	dev->dm_bytes = URXE_DM_MAX_BYTES + 1;
}
static void break_dm_path(struct urxe_dev *dev)
{
	memset(dev->dm_path, '/', sizeof(dev->dm_path));
}

static void (*const breakers[])(struct urxe_dev *) = {
	break_magic, break_version, break_size, break_dm_bytes, break_dm_path,
};

/* An unusable segment that is in use is not opened, nor replaced. */
START_TEST(broken_segment)
{
	struct urxe_fabric *f = new_fabric(), *g;

	breakers[_i](f->dev);
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EPROTO);
	ck_assert_str_ne(fabric_why(), "");
	ck_assert_int_eq(fabric_open(f->dir, true, &g), -EPROTO);
	fabric_close(f);
}
END_TEST

/* An unusable segment without users is replaced and removed completely. */
START_TEST(unusable_segment_replaced)
{
	struct urxe_fabric *f = new_fabric(), *g;
	char dir[256], parent[256];
	struct dirent *e;
	DIR *d;

	strcpy(dir, f->dir);
	breakers[_i](f->dev);
	fabric_close(f);
	ck_assert_int_eq(fabric_open(dir, false, &g), -EPROTO);
	ck_assert_int_eq(fabric_open(dir, true, &g), 0);
	ck_assert_uint_eq(g->dev->version, urxe_layout_version);
	fabric_close(g);
	strcpy(parent, dir);
	*strrchr(parent, '/') = 0;
	d = opendir(parent);
	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d)))
		ck_assert(!strstr(e->d_name, strrchr(dir, '/') + 1) ||
			  e->d_name[0] != '.');
	closedir(d);
}
END_TEST

/* The target of a symbolic link is not removed with the link. */
START_TEST(symlink_target_kept)
{
	struct urxe_fabric *f = new_fabric(), *g;
	char dir[256], out[300], file[320];

	strcpy(dir, f->dir);
	snprintf(out, sizeof(out), "%s.out", dir);
	snprintf(file, sizeof(file), "%s/file", out);
	ck_assert_int_eq(mkdir(out, 0700), 0);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(symlinkat(out, f->dirfd, "ctx/1.1"), 0);
	ck_assert_int_eq(symlinkat(out, f->dirfd, "dm"), 0);
	ck_assert_int_eq(unlinkat(f->dirfd, "ev", AT_REMOVEDIR), 0);
	ck_assert_int_eq(symlinkat(out, f->dirfd, "ev"), 0);
	break_version(f->dev);
	fabric_close(f);
	/* a link is no arena: whether its context is alive is unknown */
	ck_assert_int_eq(fabric_open(dir, true, &g), -EPROTO);
	snprintf(file, sizeof(file), "%s/ctx/1.1", dir);
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(fabric_open(dir, true, &g), 0);
	fabric_close(g);
	snprintf(file, sizeof(file), "%s/file", out);
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(rmdir(out), 0);
}
END_TEST

/* Directories in which another user could replace the fabric are refused. */
START_TEST(bad_places)
{
	struct urxe_fabric *f;
	const char *place = new_dir();
	char dir[256], link[256];

	snprintf(dir, sizeof(dir), "%s/f", place);
	ck_assert_int_eq(mkdir(place, 0700), 0);
	ck_assert_int_eq(chmod(place, 0777), 0);
	ck_assert_int_eq(fabric_open(dir, true, &f), -EPERM);
	ck_assert_str_ne(fabric_why(), "");
	ck_assert_int_eq(fabric_open(dir, false, &f), -EPERM);
	ck_assert_int_eq(access(dir, F_OK), -1);
	ck_assert_int_eq(chmod(place, 01777), 0);
	fabric_close(new_at(dir));
	snprintf(link, sizeof(link), "%s.link", place);
	ck_assert_int_eq(symlink(place, link), 0);
	strcpy(dir, link);
	strcat(dir, "/f");
	ck_assert_int_eq(fabric_open(dir, true, &f), -EPERM);
	/* a symbolic link in the user's own URXE_DIR is followed */
	setenv("URXE_DIR", link, 1);
	setenv("URXE_FABRIC", "f", 1);
	ck_assert_int_eq(fabric_dir(dir, sizeof(dir)), 0);
	fabric_close(new_at(dir));
	unlink(link);
	if (geteuid())
		return;
	ck_assert_int_eq(chmod(place, 0755), 0);
	ck_assert_int_eq(chown(place, 12345, 12345), 0);
	ck_assert_int_eq(fabric_open(dir, true, &f), -EPERM);
	ck_assert_int_eq(fabric_open(dir, false, &f), -EPERM);
}
END_TEST

/*
 * The name for a fabric that is being removed is taken: a process with the
 * same PID in another container died during the removal.
 */
START_TEST(name_of_removed_fabric_exists)
{
	struct urxe_fabric *f = new_fabric(), *g;
	char dir[256], away[300], file[320];
	char *base;

	strcpy(dir, f->dir);
	base = strrchr(dir, '/');
	break_version(f->dev);
	fabric_close(f);
	snprintf(away, sizeof(away), "%.*s/.%s.%d", (int)(base - dir), dir,
		 base + 1, (int)getpid());
	snprintf(file, sizeof(file), "%s/dm", away);
	ck_assert_int_eq(mkdir(away, 0700), 0);
	ck_assert_int_eq(mkdir(file, 0700), 0);
	ck_assert_int_eq(fabric_open(dir, true, &g), 0);
	fabric_close(g);
	rmdir(file);
	rmdir(away);
}
END_TEST

/*
 * The segment is not replaced while a context is alive.  Versions that do not
 * lock the segment may have one.
 */
START_TEST(segment_with_live_context_kept)
{
	struct urxe_fabric *f = new_fabric(), *g;
	int fd = open_context(f);
	char dir[256];

	strcpy(dir, f->dir);
	break_version(f->dev);
	fabric_close(f);
	ck_assert_int_eq(fabric_open(dir, true, &g), -EPROTO);
	ck_assert_str_ne(fabric_why(), "");
	close(fd);
	ck_assert_int_eq(fabric_open(dir, true, &g), 0);
	fabric_close(g);
}
END_TEST

START_TEST(short_segment)
{
	struct urxe_fabric *f = new_fabric(), *g;
	char path[300];

	snprintf(path, sizeof(path), "%s/device", f->dir);
	ck_assert_int_eq(truncate(path, sizeof(struct urxe_dev) - 1), 0);
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EPROTO);
	/* no process can use a truncated segment: it is replaced */
	ck_assert_int_eq(fabric_open(f->dir, true, &g), 0);
	fabric_close(g);
	ck_assert_int_eq(truncate(path, 0), 0);
	ck_assert_int_eq(fabric_open(f->dir, true, &g), 0);
	fabric_close(g);
	fabric_close(f);
}
END_TEST

/*
 * A process that leaves tries again while another one holds the exclusive
 * flock(2) to check whether the fabric is in use.
 */
START_TEST(leave_during_exclusive_lock)
{
	struct urxe_fabric *f = new_fabric();
	int ready[2];
	char c = 0;
	pid_t pid;

	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		/* the inherited descriptor shares the parent's lock */
		int fd = open(f->dir, O_RDONLY | O_DIRECTORY);

		munmap(f->dev, sizeof(*f->dev));
		if (flock(fd, LOCK_EX) || write(ready[1], &c, 1) != 1)
			_exit(1);
		usleep(2000);
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	fabric_leave(f);
	ck_assert_int_eq(reap_child(pid), 0);
	ck_assert_int_eq(access(f->dir, F_OK), -1);
	/* other threads of this process may still access it */
	atomic_fetch_add(&f->dev->used[URXE_OBJ_MR], 1);
	fabric_close(f);
}
END_TEST

/* The last process that leaves removes the fabric. */
START_TEST(last_leaver_removes_fabric)
{
	struct urxe_fabric *f = new_fabric(), *g = again(f);

	fabric_leave(f);
	ck_assert_int_eq(access(g->dir, F_OK), 0);
	/* other users still share the memory */
	atomic_store(&f->dev->used[URXE_OBJ_MR], 7);
	ck_assert_uint_eq(atomic_load(&g->dev->used[URXE_OBJ_MR]), 7);
	ck_assert_int_eq(fabric_remove_unused(g->dir, false), -EBUSY);
	fabric_leave(g);
	ck_assert_int_eq(access(g->dir, F_OK), -1);
	ck_assert_int_eq(fabric_remove_unused(g->dir, false), -ENOENT);
	fabric_close(f);
	fabric_close(g);
}
END_TEST

#define RACERS 16

struct race {
	_Atomic int go;
	_Atomic uint64_t guid;
	const char *dir;
};

static int racer(void *arg)
{
	struct race *r = arg;
	struct urxe_fabric *f;

	atomic_fetch_add(&r->go, 1);
	while (atomic_load(&r->go) < RACERS)
		usleep(10);
	if (fabric_open(r->dir, true, &f))
		return 1;
	atomic_fetch_add(&f->dev->used[URXE_OBJ_MR], 1);
	fabric_close(f);
	return 0;
}

static void race_to(const char *dir)
{
	struct race *r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct urxe_fabric *f;
	pid_t pid[RACERS];
	int i;

	r->dir = dir;
	for (i = 0; i < RACERS; i++)
		pid[i] = spawn(racer, r);
	for (i = 0; i < RACERS; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	ck_assert_int_eq(fabric_open(r->dir, false, &f), 0);
	/* all processes use the same segment */
	ck_assert_uint_eq(atomic_load(&f->dev->used[URXE_OBJ_MR]), RACERS);
	ck_assert_int_eq(count_entries(f, ".", "device"), 1);
	fabric_close(f);
	munmap(r, sizeof(*r));
}

START_TEST(create_race)
{
	race_to(new_dir());
}
END_TEST

START_TEST(replace_race)
{
	struct urxe_fabric *f;
	char dir[256];
	int i;

	for (i = 0; i < 20; i++) {
		f = new_fabric();
		strcpy(dir, f->dir);
		break_version(f->dev);
		fabric_close(f);
		race_to(dir);
	}
}
END_TEST

/*
 * Processes that start at the same time replace an unused fabric with other
 * devices: they do not take each other for its users.
 */
START_TEST(replace_devices_race)
{
	char dir[256];
	int i;

	unsetenv("URXE_KEEP");
	for (i = 0; i < 50; i++) {
		struct urxe_fabric *f = new_fabric();

		strcpy(dir, f->dir);
		fabric_close(f);
		ck_assert_int_eq(setenv("URXE_DEVICES", "2", 1), 0);
		race_to(dir);
		ck_assert_int_eq(unsetenv("URXE_DEVICES"), 0);
	}
}
END_TEST

static int die_with_lock(void *arg)
{
	fabric_lock(arg);
	raise(SIGKILL);
	return 0;
}

/* The device lock is released when its holder dies. */
START_TEST(lock_of_dead_holder)
{
	struct urxe_fabric *f = new_fabric();
	int i;

	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(reap_child(spawn(die_with_lock, f)), -SIGKILL);
		alarm(60);
		fabric_lock(f);
		fabric_unlock(f);
		alarm(0);
	}
	fabric_close(f);
}
END_TEST

static int lock_and_count(void *arg)
{
	struct urxe_fabric *f = again(arg);
	int i;

	for (i = 0; i < 10000; i++) {
		fabric_lock(f);
		f->dev->ctx_next++; /* not atomic: protected by the lock */
		fabric_unlock(f);
	}
	return 0;
}

START_TEST(lock_excludes)
{
	struct urxe_fabric *f = new_fabric();
	pid_t a = spawn(lock_and_count, f), b = spawn(lock_and_count, f);

	ck_assert_int_eq(reap_child(a), 0);
	ck_assert_int_eq(reap_child(b), 0);
	ck_assert_uint_eq(f->dev->ctx_next, 20000);
	fabric_close(f);
}
END_TEST

START_TEST(dir_by_environment)
{
	char buf[256], want[256];

	unsetenv("URXE_DIR");
	unsetenv("URXE_FABRIC");
	ck_assert_int_eq(fabric_dir(buf, sizeof(buf)), 0);
	snprintf(want, sizeof(want), "/dev/shm/urxe-%u/default", geteuid());
	ck_assert_str_eq(buf, want);
	setenv("URXE_FABRIC", "a", 1);
	setenv("URXE_DIR", "/somewhere", 1);
	ck_assert_int_eq(fabric_dir(buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "/somewhere/a");
	ck_assert_int_eq(fabric_dir(buf, 8), -ENAMETOOLONG);
	setenv("URXE_FABRIC", "", 1);
	ck_assert_int_eq(fabric_dir(buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, "/somewhere/default");
	setenv("URXE_FABRIC", "a/b", 1);
	ck_assert_int_eq(fabric_dir(buf, sizeof(buf)), -EINVAL);
	setenv("URXE_FABRIC", "..", 1);
	ck_assert_int_eq(fabric_dir(buf, sizeof(buf)), -EINVAL);
	setenv("URXE_FABRIC", "a", 1);
	setenv("URXE_DIR", "some/where", 1);
	ck_assert_int_eq(fabric_dir(buf, sizeof(buf)), -EINVAL);
	setenv("URXE_DIR", "", 1);
	ck_assert_int_eq(fabric_dir(buf, sizeof(buf)), 0);
	snprintf(want, sizeof(want), "/dev/shm/urxe-%u/a", geteuid());
	ck_assert_str_eq(buf, want);
}
END_TEST

static uint64_t dm_bytes_with(const char *size)
{
	struct urxe_fabric *f;
	uint64_t bytes;

	setenv("URXE_DM_SIZE", size, 1);
	f = new_fabric();
	bytes = f->dev->dm_bytes;
	fabric_close(f);
	return bytes;
}

START_TEST(dm_size_by_environment)
{
	ck_assert_uint_eq(dm_bytes_with("4M"), 4 << 20);
	ck_assert_uint_eq(dm_bytes_with("8192k"), 8 << 20);
	ck_assert_uint_eq(dm_bytes_with("0x600000"), 6 << 20);
	ck_assert_uint_eq(dm_bytes_with("1"), 2 << 20);
	ck_assert_uint_eq(dm_bytes_with("5M"), 4 << 20);
	ck_assert_uint_eq(dm_bytes_with("1G"), 1 << 30);
	ck_assert_uint_eq(dm_bytes_with("99G"), URXE_DM_MAX_BYTES);
}
END_TEST

START_TEST(full_file_system)
{
	const char *dir = tiny_tmpfs(64 << 10);
	struct urxe_fabric *f;
	char path[200];

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/f", dir);
	/* an error, not SIGBUS */
	ck_assert_int_eq(fabric_open(path, true, &f), -ENOSPC);
	ck_assert_str_ne(fabric_why(), "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fabric");
	TCase *tc = tcase_create("broken_segment");

	add(s, create_and_open);
	add(s, file_named_when_complete);
	add(s, open_absent);
	add(s, two_fabrics_are_two_devices);
	add(s, bad_directories);
	add(s, long_name);
	tcase_add_loop_test(tc, broken_segment, 0,
			    sizeof(breakers) / sizeof(*breakers));
	tcase_add_loop_test(tc, unusable_segment_replaced, 0,
			    sizeof(breakers) / sizeof(*breakers));
	suite_add_tcase(s, tc);
	add(s, short_segment);
	add(s, replace_race);
	add(s, replace_devices_race);
	add(s, segment_with_live_context_kept);
	add(s, name_of_removed_fabric_exists);
	add(s, symlink_target_kept);
	add(s, leave_during_exclusive_lock);
	add(s, last_leaver_removes_fabric);
	add(s, bad_places);
	add(s, create_race);
	add(s, lock_of_dead_holder);
	add(s, lock_excludes);
	add(s, dir_by_environment);
	add(s, dm_size_by_environment);
	add(s, full_file_system);
	return run_suite(s);
}
