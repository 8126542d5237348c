// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Global state of the preload library: whether it is active, the fabric of
 * the process, and loading of the provider.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "preload/tree/tree.h"
#include "shim.h"

#define PROVIDER "liburxe-rdmav34.so"
#define GID_REFRESH_MS 100

_Atomic int shim_state;
_Thread_local int shim_inside;
_Atomic int shim_fork_known;

static _Atomic(struct urxe_fabric *) fabric;
/* Stored before shim_state (release) and constant afterwards: */
static char fabric_path[256];
static bool with_host, host_cm;

/*
 * Set errno to 0 at program start (C11 7.5), on which some programs depend
 * (tgtd).  Another constructor, also of this library, may have changed it.
 */
__attribute__((constructor)) static void errno_begin(void)
{
	errno = 0;
}

static void shim_configure(void)
{
	const char *host = getenv("URXE_HOST_DEVICES");
	const char *cm = getenv("URXE_RDMA_CM");

	if (fabric_dir(fabric_path, sizeof(fabric_path)))
		fabric_path[0] = 0;
	with_host = host && *host && strcmp(host, "0");
	host_cm = with_host && cm && !strcmp(cm, "host");
}

int shim_decide(void)
{
	static atomic_flag busy = ATOMIC_FLAG_INIT;
	const char *name;
	int saved, state;

	if (shim_inside)
		return SHIM_OFF;
	saved = shim_enter();
	while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
		;
	state = load_relaxed(&shim_state);
	if (!state) {
		name = getenv("URXE_FABRIC");
		state = name && *name ? SHIM_ON : SHIM_OFF;
		if (state == SHIM_ON)
			shim_configure();
		store_release(&shim_state, state);
	}
	atomic_flag_clear_explicit(&busy, memory_order_release);
	shim_leave(saved);
	return state;
}

bool shim_with_host(void)
{
	return with_host;
}

bool shim_host_cm(void)
{
	return host_cm;
}

const char *shim_dir(void)
{
	return fabric_path;
}

struct urxe_fabric *shim_fabric_opened(void)
{
	return load_acquire(&fabric);
}

bool shim_has_file(const struct stat *st)
{
	struct urxe_fabric *f = shim_fabric_opened();
	struct stat dir;

	return f && !fstat(f->dirfd, &dir) && dir.st_dev == st->st_dev;
}

void shim_complain(const char *what, int err)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	char line[400];
	int n;

	if (atomic_flag_test_and_set(&reported))
		return;
	n = snprintf(line, sizeof(line), "urxe: %s in fabric %s: %s\n", what,
		     fabric_path, fabric_reason(-err));
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void shim_why(const char *fmt, ...)
{
	const char *log = getenv("URXE_LOG");
	struct iovec line;
	int saved = errno;
	char text[400];
	va_list ap;
	size_t n;

	if (!log || !*log || *log == '0')
		return;
	n = (size_t)snprintf(text, sizeof(text), "urxe[%d]: ", (int)getpid());
	va_start(ap, fmt);
	n += (size_t)vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	va_end(ap);
	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	text[n++] = '\n';
	line = (struct iovec){ .iov_base = text, .iov_len = n };
	if (writev(STDERR_FILENO, &line, 1) < 0)
		errno = saved;
}

/* Return the inode of the device segment in directory @dirfd; 0: none. */
static uint64_t segment_ino(int dirfd)
{
	struct stat st;

	return fstatat(dirfd, "device", &st, 0) ? 0 : st.st_ino;
}

/*
 * Reopen the directory of the fabric if the program has closed its
 * descriptor.  Some programs close descriptors that they did not open:
 * daemons, and shells that renumber theirs.  The old number is not closed,
 * because it may be another file of the program by now.
 */
static void fabric_renew_dirfd(struct urxe_fabric *f)
{
	int fd;

	if (segment_ino(f->dirfd) == f->ino)
		return;
	fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (segment_ino(fd) == f->ino)
		f->dirfd = fd;
	else
		close(fd); /* another fabric has this path now */
}

/*
 * If two threads race, both open the fabric; the one whose compare-and-swap
 * fails closes its own.
 */
/* Open the fabric; a failure is reported, unless it does not exist. */
static struct urxe_fabric *shim_open(bool create)
{
	struct urxe_fabric *f = shim_fabric_opened(), *none = NULL;
	int ret;

	if (f) {
		fabric_renew_dirfd(f);
		return f;
	}
	ret = fabric_path[0] ? fabric_open(fabric_path, create, &f) : -EINVAL;
	if (ret && !create)
		return NULL;
	if (!ret) {
		ret = tree_build(f);
		if (ret)
			fabric_close(f);
	}
	if (ret) {
		shim_complain("no device", ret);
		return NULL;
	}
	if (cas_acq_rel(&fabric, &none, f))
		return f;
	fabric_close(f);
	return none;
}

struct urxe_fabric *shim_fabric(void)
{
	return shim_open(true);
}

struct urxe_fabric *shim_fabric_if_any(void)
{
	return shim_open(false);
}

/*
 * Leave the fabric at exit, which removes it if no other process uses it and
 * URXE_KEEP is not set.  The fabric stays mapped, because other threads may
 * use it until the process ends.  The priority makes this the last destructor
 * of the library.
 */
__attribute__((destructor(101))) static void shim_end(void)
{
	struct urxe_fabric *f = shim_fabric_opened();
	const char *keep = getenv("URXE_KEEP");
	int saved = shim_enter();

	if (f && (!keep || !*keep || !strcmp(keep, "0"))) {
		fabric_renew_dirfd(f);
		fabric_leave(f);
	}
	shim_leave(saved);
}

void shim_refresh_gids(struct urxe_fabric *f)
{
	static _Atomic int64_t last; /* ms, CLOCK_MONOTONIC */
	int64_t now = (int64_t)(clock_now() / 1000000), then;

	then = load_relaxed(&last);
	if (then && now - then < GID_REFRESH_MS)
		return;
	if (!cas_relaxed(&last, &then, now))
		return;
	fabric_refresh_gids(f);
}

/*
 * Load the provider from URXE_PROVIDER_DIR, or else from the directory of
 * this library (installed), or from its place in the build tree.  NULL:
 * failure.
 */
static void *provider_open(void)
{
	static const char *const provider_dirs[] = { "", "/../../provider" };
	const char *env = getenv("URXE_PROVIDER_DIR");
	char path[600], own[512];
	unsigned int i;
	Dl_info info;
	char *slash;

	if (env && *env) {
		snprintf(path, sizeof(path), "%s/" PROVIDER, env);
		return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!dladdr((void *)&shim_state, &info) || !info.dli_fname)
		return NULL;
	snprintf(own, sizeof(own), "%s", info.dli_fname);
	slash = strrchr(own, '/');
	if (!slash)
		return NULL;
	*slash = 0;
	for (i = 0; i < sizeof(provider_dirs) / sizeof(*provider_dirs); i++) {
		snprintf(path, sizeof(path), "%s%s/" PROVIDER, own,
			 provider_dirs[i]);
		if (!access(path, F_OK))
			return dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return NULL;
}

void shim_load_provider(void)
{
	static _Atomic int done;
	const char *err;
	void *verbs;

	if (load_relaxed(&done))
		return;
	verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!verbs)
		return;
	dlclose(verbs);
	/* its constructor registers with libibverbs: once per process */
	if (exchange_acq_rel(&done, 1))
		return;
	if (provider_open())
		return;
	err = dlerror();
	fprintf(stderr, "urxe: cannot load the provider: %s\n",
		err ? err :
		      PROVIDER
			" is not in the directory of the preload library");
}

long shim_missing(void)
{
	errno = ENOSYS;
	return -1;
}

void *shim_next(_Atomic(void *) *cache, const char *name)
{
	void *fn = load_relaxed(cache);
	int saved = errno;

	if (fn)
		return fn;
	fn = dlsym(RTLD_NEXT, name);
	if (!fn)
		fn = (void *)shim_missing;
	store_relaxed(cache, fn);
	errno = saved;
	return fn;
}
