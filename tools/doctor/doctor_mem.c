// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: the directory of fabrics, free shared memory, huge pages and
 * resource limits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/madvise.h"
#include "doctor.h"
#include "fabric/fabric.h"

#define HUGE_PAGE (2ul << 20)
#define WANT_FREE 256 /* MiB */
#define NEED_FREE 2 /* MiB: a fabric and one context */

/* Return the existing directory in which fabrics are or will be created. */
static const char *fabric_place(void)
{
	static char dir[256];
	char *slash;

	if (place_choose(dir, sizeof(dir)))
		return "/dev/shm";
	slash = strrchr(dir, '/');
	if (access(dir, F_OK) && slash != dir)
		*slash = 0; /* created on demand */
	return dir;
}

void check_place(void)
{
	char by[128];

	if (place_is_taken(by, sizeof(by)))
		report(WARN, "none",
		       "remove it as root or as its owner, after all programs that use urxe have ended",
		       "%s; fabrics are in %s instead", by, fabric_place());
}

void check_shared_memory(void)
{
	static const char mend[] =
		"mount a tmpfs on /dev/shm (mode 1777), or set URXE_DIR to a directory of this user on a tmpfs";
	const char *dir = fabric_place();
	unsigned long size, avail; /* MiB */
	struct statfs fs;

	if (statfs(dir, &fs) || access(dir, W_OK | X_OK)) {
		report(FAIL, "no fabric, no device", mend, "%s: %s", dir,
		       strerror(errno));
		return;
	}
	size = fs.f_blocks * (unsigned long)fs.f_bsize >> 20;
	avail = fs.f_bavail * (unsigned long)fs.f_bsize >> 20;
	if (fs.f_type != TMPFS_MAGIC)
		report(WARN,
		       "shared state may be written to a disk, and device memory has no huge pages",
		       mend, "%s is not a tmpfs", dir);
	else if (avail < WANT_FREE)
		report(avail < NEED_FREE ? FAIL : WARN,
		       avail < NEED_FREE ?
			       "no device: a fabric and a context do not fit" :
			       "device memory is limited to a quarter of the free memory, and rings of large queues do not fit (ENOMEM)",
		       "remove files from this file system, or enlarge it: docker run --shm-size=1g, or mount -o remount,size=1g",
		       "%s: %lu of %lu MiB are free", dir, avail, size);
	else
		ok("%s: tmpfs, %lu of %lu MiB are free", dir, avail, size);
}

/*
 * Write to mend how to make dir a directory of this user with mode 0700.
 * Return false if it is one.
 */
static bool fabric_dir_mend(const char *dir, const struct stat *st, char *mend,
			    size_t len)
{
	if (!S_ISDIR(st->st_mode))
		snprintf(mend, len, "rm %s", dir);
	else if (st->st_uid != geteuid())
		snprintf(
			mend, len,
			"use another fabric (URXE_FABRIC) or directory (URXE_DIR)");
	else if (st->st_mode & 077)
		snprintf(mend, len, "chmod 700 %s", dir);
	else
		return false;
	return true;
}

void report_closed_fabric(const char *dir, int err)
{
	char mend[400];
	struct stat st;

	if (!lstat(dir, &st) && fabric_dir_mend(dir, &st, mend, sizeof(mend))) {
		report(FAIL, "no device: the directory is refused", mend,
		       "fabric %s: owner %u, mode %04o; it must be a directory of uid %u with mode 0700",
		       dir, st.st_uid, st.st_mode & 07777, geteuid());
	} else {
		snprintf(
			mend, sizeof(mend),
			err == -EPROTO ?
				"rm -r %s, after all programs that use it have ended" :
				"set URXE_DIR to a directory of this user",
			dir);
		report(FAIL, "no device in this fabric", mend, "fabric %s: %s",
		       dir, *fabric_why() ? fabric_why() : strerror(-err));
	}
}

void check_fabric_dir(void)
{
	const char *dir = doctor_fabric;
	struct urxe_fabric *f;
	int ret;

	ret = fabric_open(dir, false, &f);
	if (!ret) {
		ok("fabric %s: owner and mode are correct", dir);
		fabric_close(f);
	} else if (ret == -ENOENT) {
		ok("fabric %s: does not exist yet; the first program creates it",
		   dir);
	} else {
		report_closed_fabric(dir, ret);
	}
}

/*
 * Return the number of free 2 MiB pages of the writable hugetlbfs that has
 * most of them, and its path in buf.  If it returns 0, buf is not set.
 */
static unsigned long free_hugetlb(char *buf, size_t len)
{
	unsigned long best = 0;
	struct mntent *m;
	struct statfs fs;
	FILE *mounts;

	mounts = setmntent("/proc/self/mounts", "re");
	if (!mounts)
		return 0;
	while ((m = getmntent(mounts))) {
		if (strcmp(m->mnt_type, "hugetlbfs") ||
		    statfs(m->mnt_dir, &fs) ||
		    (unsigned long)fs.f_bsize != HUGE_PAGE ||
		    access(m->mnt_dir, W_OK) || fs.f_bfree <= best)
			continue;
		best = fs.f_bfree;
		snprintf(buf, len, "%s", m->mnt_dir);
	}
	endmntent(mounts);
	return best;
}

/*
 * Collapse one huge page of a temporary file in the directory of fabrics with
 * MADV_COLLAPSE.  Return 0 or errno.
 */
static int try_collapse(void)
{
	char *area, *p;
	int fd, ret = 0;

	fd = open(fabric_place(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	/* allocates, unlike ftruncate(): a full tmpfs gives ENOSPC here */
	ret = posix_fallocate(fd, 0, HUGE_PAGE);
	if (ret)
		goto out_close;
	area = mmap(NULL, 2 * HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	if (area == MAP_FAILED) {
		ret = errno;
		goto out_close;
	}
	p = area + (HUGE_PAGE - (size_t)area % HUGE_PAGE) % HUGE_PAGE;
	if (mmap(p, HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, 0) == MAP_FAILED ||
	    madvise(p, HUGE_PAGE, MADV_POPULATE_WRITE) ||
	    madvise(p, HUGE_PAGE, MADV_COLLAPSE))
		ret = errno;
	munmap(area, 2 * HUGE_PAGE);
out_close:
	close(fd);
	return ret;
}

void check_huge_pages(void)
{
	char dir[256];
	unsigned long pages = free_hugetlb(dir, sizeof(dir));
	int err;

	if (access(fabric_place(), W_OK | X_OK))
		return; /* check_shared_memory() reports it */
	err = try_collapse();
	if (err == ENOSPC && pages < 32)
		return; /* check_shared_memory() reports it */
	if (pages >= 32)
		ok("huge pages: %lu MiB free in %s", pages * 2, dir);
	else if (!err)
		ok("huge pages: none reserved, but MADV_COLLAPSE works");
	else
		report(WARN,
		       "device memory has 4 KiB pages: more TLB misses, large transfers are slower",
		       "use Linux 6.1 or newer, or sysctl vm.nr_hugepages=64 and a writable hugetlbfs mount",
		       "huge pages: none reserved, and MADV_COLLAPSE fails: %s",
		       strerror(err));
}

#define WANT_SPACE 4096 /* MiB of address space: a few connected processes */

void check_limits(void)
{
	const unsigned long arena = URXE_ARENA_SIZE >> 20;
	unsigned long space;
	struct rlimit r;
	uint64_t bytes;

	if (dm_size_by_env(&bytes))
		report(FAIL, "no fabric can be created", "unset URXE_DM_SIZE",
		       "%s", fabric_why());
	if (sparse_allowed(URXE_ARENA_SIZE))
		report(FAIL, "the device cannot be opened",
		       "ulimit -f unlimited", "file size: %s", fabric_why());
	else
		ok("file size: the limit is high enough");
	if (getrlimit(RLIMIT_AS, &r))
		return;
	space = r.rlim_cur >> 20;
	if (r.rlim_cur == RLIM_INFINITY || space >= WANT_SPACE)
		ok("address space: the limit is high enough");
	else
		report(space <= arena ? FAIL : WARN,
		       space <= arena ?
			       "the device cannot be opened (ENOMEM)" :
			       "each open device, and each process that it is connected to, needs 1 GiB",
		       "ulimit -v unlimited",
		       "address space: ulimit -v allows %lu MiB", space);
}

void check_memlock(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r))
		return;
	if (geteuid() && r.rlim_cur != RLIM_INFINITY && r.rlim_cur <= 32768)
		report(WARN,
		       "libibverbs prints a warning; urxe itself locks no memory",
		       "ulimit -l 65536", "memlock: %llu KiB",
		       (unsigned long long)r.rlim_cur >> 10);
	else if (r.rlim_cur == RLIM_INFINITY)
		ok("memlock: unlimited");
	else
		ok("memlock: %llu KiB; urxe locks no memory",
		   (unsigned long long)r.rlim_cur >> 10);
}
