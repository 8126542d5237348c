// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fabric's directory and its device segment: opening, creation and
 * mapping.  The preload library, the provider and the tools call
 * fabric_open().
 *
 * Concurrent creators and removers are serialized by locks.  A creator holds
 * a shared flock(2) on the directory until the segment is linked; a remover
 * holds it exclusively (stale.c).  A user holds a shared OFD lock on the
 * segment.  If the directory is replaced while it is opened, fabric_open()
 * starts again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cluster.h"
#include "internal.h"

static thread_own char why[256];

const char *fabric_why(void)
{
	return why;
}

void fabric_why_clear(void)
{
	why[0] = 0;
}

/* After EMFILE, append the limit to the reason. */
static void add_limit(int err)
{
	size_t n = strlen(why);
	struct rlimit r;

	if (err == EMFILE && !getrlimit(RLIMIT_NOFILE, &r))
		snprintf(why + n, sizeof(why) - n, ": ulimit -n allows %llu",
			 (unsigned long long)r.rlim_cur);
}

int fabric_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	add_limit(err);
	return -err;
}

const char *fabric_reason(int err)
{
	if (!why[0])
		fabric_fail(err, "%s", strerror(err));
	return why;
}

int fabric_dir(char *buf, size_t len)
{
	const char *name = getenv("URXE_FABRIC");
	char place[256];
	int ret, n;

	if (!name || !*name)
		name = "default";
	if (strchr(name, '/') || *name == '.')
		return fabric_fail(
			EINVAL,
			"URXE_FABRIC=%s is not a valid name: a name has no slash and does not begin with a dot",
			name);
	ret = place_choose(place, sizeof(place));
	if (ret)
		return ret;
	n = snprintf(buf, len, "%s/%s", place, name);
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

/*
 * Open the fabric's directory.  It must be no symbolic link, belong to the
 * effective user and be accessible by that user only (-EPERM).
 */
static int fabric_open_dir(const char *dir, bool create)
{
	const char *name = strrchr(dir, '/') + 1;
	int fd, err, place = place_open(dir, create);
	struct stat st;

	if (place < 0)
		return place;
	if (create && mkdirat(place, name, 0700) && errno != EEXIST) {
		err = errno;
		close(place);
		if (err == ENOENT)
			return -EAGAIN; /* the parent was just removed */
		return fabric_fail(err, "mkdir %s: %s", dir, strerror(err));
	}
	fd = openat(place, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = errno;
	close(place);
	if (fd < 0 && err == ENOENT && create)
		return -EAGAIN; /* it was removed again */
	if (fd < 0 && err != ENOTDIR && err != ELOOP && err != EACCES)
		return -err;
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() &&
	    !(st.st_mode & 077))
		return fd;
	if (fd >= 0)
		close(fd);
	return fabric_fail(EPERM, "%s must be a directory of uid %u, mode 0700",
			   dir, (unsigned int)geteuid());
}

int fabric_lock(struct urxe_fabric *f)
{
	int ret = robust_lock(f, &f->dev->lock, "the device lock");

	if (ret > 0) {
		dm_heap_recover(f);
		/* the holder may have changed a port, and not its paths */
		paths_update(f->dev);
	}
	return ret < 0 ? ret : 0;
}

void fabric_unlock(struct urxe_fabric *f)
{
	robust_unlock(f, &f->dev->lock);
}

int dm_size_by_env(uint64_t *bytes)
{
	const char *env = getenv("URXE_DM_SIZE");
	unsigned int shift = 0;
	uint64_t n = 0;
	char *end = NULL;

	*bytes = 0;
	if (!env || !*env)
		return 0;
	if (*env >= '0' && *env <= '9')
		n = strtoull(env, &end, 0);
	if (n && *end) {
		shift = *end == 'G' || *end == 'g' ? 30 :
			*end == 'M' || *end == 'm' ? 20 :
			*end == 'K' || *end == 'k' ? 10 :
						     64;
		end++;
	}
	if (!n || *end || shift > 30)
		return fabric_fail(
			EINVAL,
			"URXE_DM_SIZE=%s is not a size, like 8388608 or 64M",
			env);
	*bytes = n > URXE_DM_MAX_BYTES >> shift ? URXE_DM_MAX_BYTES :
						  n << shift;
	return 0;
}

/*
 * Size of the DM heap, a multiple of 2 MiB: URXE_DM_SIZE if it is set; else
 * 64 MiB, but at most a quarter of the file system's free space.
 */
static int choose_dm_bytes(int dirfd, uint64_t *bytes)
{
	const uint64_t unit = 2ull << 20;
	uint64_t want, room;
	struct statvfs vfs;
	int ret;

	ret = dm_size_by_env(&want);
	if (ret)
		return ret;
	if (!want) {
		want = 64ull << 20;
		if (!fstatvfs(dirfd, &vfs)) {
			room = (uint64_t)vfs.f_bavail * vfs.f_frsize / 4;
			if (room < want)
				want = room;
		}
	}
	want = want / unit * unit;
	*bytes = want < unit ? unit : want;
	return 0;
}

/*
 * A stable GUID: a locally administered EUI-64, hashed (FNV-1a) from
 * machine-id and directory.
 */
static uint64_t choose_guid(const char *dir)
{
	uint64_t h = 0xcbf29ce484222325ull;
	const char *p;
	char id[64];

	file_read(AT_FDCWD, "/etc/machine-id", id, sizeof(id));
	for (p = id; *p; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3ull;
	for (p = dir; *p; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3ull;
	return (h & 0x00ffff0000ffffffull) | 0x020000fffe000000ull;
}

/* Give elements of an array of the segment memory, if there are any. */
static int allocate_range(int fd, size_t offset, size_t len)
{
	return len ? posix_fallocate(fd, (off_t)offset, (off_t)len) : 0;
}

#define ALLOCATE(fd, array, n)                               \
	allocate_range(fd, offsetof(struct urxe_dev, array), \
		       (n) * sizeof(((struct urxe_dev *)NULL)->array[0]))

/*
 * Give a new device segment its size, and memory where it is used: -errno.
 * Memory that is missing later would be a SIGBUS.
 */
static int device_allocate(struct urxe_fabric *f, int fd,
			   const struct cluster *c)
{
	bool infiniband = false;
	uint32_t k;
	int ret;

	for (k = 0; k < c->hcas; k++)
		infiniband |= c->hca[k].infiniband;
	ret = allocate_range(fd, 0, offsetof(struct urxe_dev, dm));
	if (!ret && ftruncate(fd, sizeof(struct urxe_dev)))
		ret = errno;
	if (!ret)
		ret = ALLOCATE(fd, dm, URXE_DM_FIRST);
	if (!ret && infiniband)
		ret = ALLOCATE(fd, umad, URXE_MAX_UMAD);
	if (!ret && infiniband)
		ret = ALLOCATE(fd, sa_service, URXE_MAX_SA_SERVICE);
	if (!ret)
		ret = ALLOCATE(fd, host, c->hosts);
	if (!ret)
		ret = ALLOCATE(fd, hca, c->hcas);
	if (!ret)
		ret = ALLOCATE(fd, sw, c->switches);
	if (ret)
		return fabric_fail(ret, "no room for %zu bytes in %s",
				   offsetof(struct urxe_dev, dm), f->dir);
	return 0;
}

static int device_fill(struct urxe_fabric *f, int fd, const struct cluster *c,
		       uint64_t dm_bytes)
{
	struct urxe_dev *dev;
	uint64_t procs;
	int ret;

	ret = sparse_allowed(sizeof(*dev));
	if (!ret)
		ret = process_file_make(f, &procs);
	if (!ret)
		ret = device_allocate(f, fd, c);
	if (ret)
		return ret;
	dev = mmap(NULL, sizeof(*dev), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	if (dev == MAP_FAILED)
		return -errno;
	memcpy(dev->magic, URXE_DEV_MAGIC, sizeof(dev->magic));
	dev->version = urxe_layout_version;
	dev->size = sizeof(*dev);
	dev->procs_ino = procs;
	ret = hcas_init(dev, c, choose_guid(f->dir));
	dev->dm_bytes = dm_bytes;
	store_relaxed(&dev->dm_high, URXE_DM_FIRST);
	munmap(dev, sizeof(*dev));
	return ret;
}

static int device_init(struct urxe_fabric *f, int fd)
{
	uint64_t dm_bytes;
	struct cluster c;
	int ret;

	ret = choose_dm_bytes(f->dirfd, &dm_bytes);
	if (!ret)
		ret = cluster_by_env(&c);
	if (ret)
		return ret;
	ret = host_by_env(f->dir, c.host, c.hosts);
	if (ret >= 0)
		ret = device_fill(f, fd, &c, dm_bytes);
	cluster_free(&c);
	return ret;
}

/*
 * Create the file with O_TMPFILE, so that nothing remains if the process is
 * killed.  -ENOTSUP: the system cannot do that.
 */
static int make_unnamed(struct urxe_fabric *f, const char *name,
			int (*init)(struct urxe_fabric *f, int fd))
{
	char path[32];
	int fd, ret;

	fd = openat(f->dirfd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0)
		return -ENOTSUP;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = init(f, fd);
	if (!ret && linkat(AT_FDCWD, path, f->dirfd, name, AT_SYMLINK_FOLLOW) &&
	    errno != EEXIST) /* without /proc, for example */
		ret = -ENOTSUP;
	close(fd);
	return ret;
}

static int make_named(struct urxe_fabric *f, const char *name,
		      int (*init)(struct urxe_fabric *f, int fd))
{
	char tmp[64];
	int fd, ret;

	/* a PID alone is not unique across PID namespaces */
	snprintf(tmp, sizeof(tmp), "%s.%d.%llx", name, (int)getpid(),
		 (unsigned long long)clock_now());
	fd = openat(f->dirfd, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return fabric_fail(errno, "cannot create %s/%s: %s", f->dir,
				   tmp, strerror(errno));
	ret = init(f, fd);
	if (!ret && linkat(f->dirfd, tmp, f->dirfd, name, 0) && errno != EEXIST)
		ret = -errno;
	unlinkat(f->dirfd, tmp, 0);
	close(fd);
	return ret;
}

int fabric_make_file(struct urxe_fabric *f, const char *name,
		     int (*init)(struct urxe_fabric *f, int fd))
{
	int ret = make_unnamed(f, name, init);

	return ret == -ENOTSUP ? make_named(f, name, init) : ret;
}

static int device_make_dirs(struct urxe_fabric *f)
{
	static const char *const subdir[] = { "ctx", "ev", "sys", "dev" };
	unsigned int i;

	for (i = 0; i < sizeof(subdir) / sizeof(*subdir); i++)
		if (mkdirat(f->dirfd, subdir[i], 0700) && errno != EEXIST)
			return fabric_fail(errno, "mkdir %s/%s: %s", f->dir,
					   subdir[i], strerror(errno));
	return 0;
}

static int device_create_locked(struct urxe_fabric *f)
{
	/* before the sweep: a directory without them is not a fabric */
	int ret = device_make_dirs(f);

	/* free the memory of fabrics whose jobs have ended */
	fabric_sweep(f->dir, true, NULL);
	if (ret)
		ret = device_make_dirs(f);
	return ret ? ret : fabric_make_file(f, "device", device_init);
}

static int device_create(struct urxe_fabric *f)
{
	int ret;

	/* excludes removers until the segment exists; see stale.c */
	if (flock(f->dirfd, LOCK_SH | LOCK_NB))
		return -EAGAIN;
	ret = fabric_in_place(f) ? device_create_locked(f) : -ESTALE;
	flock(f->dirfd, LOCK_UN);
	return ret;
}

/* Map the segment without its lock.  On success, device_hold() closes *fd. */
static int device_map(struct urxe_fabric *f, int *fd)
{
	struct urxe_dev *dev;
	struct stat st;
	void *map;
	int ret;

	*fd = openat(f->dirfd, "device", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	ret = layout_map(*fd, sizeof(*dev), URXE_DEV_MAGIC, &map);
	if (ret)
		goto err_close;
	dev = map;
	f->dm_bytes = dev->dm_bytes;
	f->dev = dev;
	if (dev->size != sizeof(*dev) || f->dm_bytes > URXE_DM_MAX_BYTES ||
	    !dev->hcas || dev->hcas > URXE_MAX_HCA || host_set(f, 0) ||
	    dev->dm_path[sizeof(dev->dm_path) - 1])
		ret = -EPROTO;
	else if (fstat(*fd, &st))
		ret = -errno;
	if (ret) {
		munmap(dev, sizeof(*dev));
		goto err_close;
	}
	f->ino = st.st_ino;
	why[0] = 0;
	return 0;
err_close:
	close(*fd);
	if (ret == -EPROTO)
		fabric_fail(
			EPROTO,
			"%s was created by another version of urxe, or is damaged; when no process uses it, the next program replaces it",
			f->dir);
	return ret;
}

/*
 * If the fabric has other devices than this process wants, retire it, unless it
 * is used, a port was taken down or changed, or URXE_KEEP is set.  The segment
 * is mapped without the lock: otherwise two processes that want to retire it
 * would take each other for users.
 */
static int fabric_check_devices(struct urxe_fabric *f)
{
	const char *keep = getenv("URXE_KEEP");
	int ret = hcas_are_wanted(f);

	if (ret)
		return ret < 0 ? ret : 0;
	ret = -EBUSY;
	if (!keep || !*keep || !strcmp(keep, "0"))
		ret = fabric_retire(f, true);
	if (!ret)
		return -ESTALE; /* the next try makes a new one */
	if (ret == -EAGAIN || ret == -ESTALE)
		return ret;
	flock(f->dirfd, LOCK_UN);
	why[0] = 0;
	return hcas_agree(f);
}

/*
 * Check the devices if @create is set, take the lock of a user, and close @fd;
 * the mapping keeps the lock held (stale.c).  Unmap the segment on error.
 */
static int device_hold(struct urxe_fabric *f, int fd, bool create)
{
	int ret = create ? fabric_check_devices(f) : 0;

	if (!ret)
		ret = fabric_hold(fd, F_RDLCK);
	if (ret)
		munmap(f->dev, sizeof(*f->dev));
	close(fd);
	return ret;
}

/*
 * No segment was made, for example since there is no host URXE_HOST: remove the
 * directory, unless another process has made one.  Return @ret.
 */
static int fabric_drop_incomplete(struct urxe_fabric *f, int ret)
{
	close(f->dirfd);
	fabric_remove_unused(f->dir, true);
	return ret;
}

/* Open once.  -EAGAIN, -ESTALE: the fabric is being replaced; try again. */
static int fabric_try_open(struct urxe_fabric *f, bool create)
{
	int ret, fd;

	ret = f->dirfd = fabric_open_dir(f->dir, create);
	if (ret < 0)
		return ret;
	ret = device_map(f, &fd);
	if (create && fabric_is_broken(f, ret)) {
		if (!ret) {
			munmap(f->dev, sizeof(*f->dev));
			close(fd);
		}
		ret = fabric_rename_broken(f);
		close(f->dirfd);
		return ret;
	}
	if (ret == -ENOENT && create) {
		ret = device_create(f);
		if (!ret)
			ret = device_map(f, &fd);
		else if (ret != -EAGAIN && ret != -ESTALE)
			return fabric_drop_incomplete(f, ret);
	}
	if (ret == -EPROTO && create) {
		ret = fabric_retire(f, false);
		if (!ret)
			ret = -ESTALE; /* the next try makes a new one */
		else if (ret != -EAGAIN && ret != -ESTALE)
			ret = -EPROTO;
	}
	if (!ret)
		ret = device_hold(f, fd, create);
	/* it may have been renamed or removed since it was opened */
	if (!fabric_in_place(f)) {
		if (!ret)
			munmap(f->dev, sizeof(*f->dev));
		ret = -ESTALE;
	}
	if (!ret) {
		ret = host_choose(f);
		if (ret)
			munmap(f->dev, sizeof(*f->dev));
	}
	if (ret)
		close(f->dirfd);
	return ret;
}

#define OPEN_TRIES 5000

int fabric_open(const char *dir, bool create, struct urxe_fabric **out)
{
	struct urxe_fabric *f;
	int ret, tries;

	why[0] = 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->dm_fd = -1;
	ret = process_self_make(f);
	if (ret)
		goto err_free;
	ret = -ENAMETOOLONG;
	if (snprintf(f->dir, sizeof(f->dir), "%s", dir) >= (int)sizeof(f->dir))
		goto err_self;
	for (tries = 0; tries < OPEN_TRIES; tries++) {
		ret = fabric_try_open(f, create);
		if (!ret) {
			process_self_recall(f);
			*out = f;
			return 0;
		}
		if (ret != -EAGAIN && ret != -ESTALE)
			break;
		usleep(1000);
	}
err_self:
	process_self_drop(f);
err_free:
	free(f);
	return ret;
}

void fabric_close(struct urxe_fabric *f)
{
	if (f->dm) {
		munmap(f->dm, f->dm_bytes);
		close(f->dm_fd);
	}
	process_self_drop(f);
	munmap(f->dev, sizeof(*f->dev));
	close(f->dirfd);
	free(f);
}
