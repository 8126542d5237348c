// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers of calls that unmap or discard memory: munmap, mmap(MAP_FIXED),
 * mremap and madvise.  They report successful calls to the referee (urxe run
 * --check), if it has registered (base/map_watch.h), and otherwise only call
 * libc.  The referee finds MRs whose memory is gone.  Any thread may call
 * these functions, even with locks of an allocator held.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "base/map_watch.h"
#include "wrap.h"

/* MADV_DONTNEED_LOCKED of linux/mman.h, which some systems lack */
#define DONTNEED_LOCKED 24

static _Atomic(const struct map_watch *) watch;

/*
 * Exported functions, which the referee in the provider finds with dlsym(3).
 *
 * urxe_fork_is_known: whether the program asked libibverbs for fork support,
 * or called madvise(MADV_DONTFORK) itself.
 * urxe_watch_maps: register the callbacks; *w must stay valid.
 */
bool urxe_fork_is_known(void) __attribute__((visibility("default")));
bool urxe_fork_is_known(void)
{
	return load_relaxed(&shim_fork_known);
}

void urxe_watch_maps(const struct map_watch *w)
	__attribute__((visibility("default")));
void urxe_watch_maps(const struct map_watch *w)
{
	store_release(&watch, w);
}

/* Return the callbacks; NULL: none, or the call is the library's own. */
static inline const struct map_watch *watcher(void)
{
	const struct map_watch *w = load_acquire(&watch);

	return w && !shim_inside ? w : NULL;
}

#define CALLER __builtin_return_address(0)

WRAP(int, munmap, (void *at, size_t len))
{
	const struct map_watch *w = watcher();
	const uint64_t since = w ? w->now() : 0;
	const int ret = NEXT(munmap)(at, len);

	if (w && !ret)
		w->gone("munmap", at, len, since, CALLER);
	return ret;
}

#define WRAP_MMAP(name)                                                       \
	WRAP(void *, name,                                                    \
	     (void *at, size_t len, int prot, int flags, int fd, off_t from)) \
	{                                                                     \
		const struct map_watch *w = flags & MAP_FIXED ? watcher() :   \
								NULL;         \
		const uint64_t since = w ? w->now() : 0;                      \
		void *p = NEXT(name)(at, len, prot, flags, fd, from);         \
                                                                              \
		if (w && p != MAP_FAILED)                                     \
			w->gone(#name, at, len, since, CALLER);               \
		return p;                                                     \
	}
WRAP_MMAP(mmap)
WRAP_MMAP(mmap64)

WRAP(void *, mremap, (void *at, size_t was, size_t len, int flags, ...))
{
	const struct map_watch *w = watcher();
	const uint64_t since = w ? w->now() : 0;
	void *to = NULL, *p;
	va_list ap;

	va_start(ap, flags);
	if (flags & MREMAP_FIXED)
		to = va_arg(ap, void *);
	va_end(ap);
	p = NEXT(mremap)(at, was, len, flags, to);
	if (!w || p == MAP_FAILED)
		return p;
	if (p != at)
		w->gone("mremap", at, was, since, CALLER);
	else if (len < was)
		w->gone("mremap", (char *)at + len, was - len, since, CALLER);
	if (flags & MREMAP_FIXED)
		w->gone("mremap", p, len, since, CALLER);
	return p;
}

/*
 * Return whether the caller is the provider or this library.  The provider
 * calls madvise(MADV_DONTFORK) for memory of its own.
 */
static bool is_ours(const void *caller)
{
	Dl_info info;

	return shim_inside || (dladdr(caller, &info) && info.dli_fname &&
			       strstr(info.dli_fname, "/liburxe-"));
}

WRAP(int, madvise, (void *at, size_t len, int advice))
{
	const char *call = advice == MADV_DONTNEED || advice == MADV_FREE ||
					   advice == DONTNEED_LOCKED ?
				   "madvise" :
			   advice == MADV_REMOVE ? "madvise(MADV_REMOVE)" :
						   NULL;
	const struct map_watch *w = call ? watcher() : NULL;
	const uint64_t since = w ? w->now() : 0;
	const int ret = NEXT(madvise)(at, len, advice);

	if (advice == MADV_DONTFORK && !is_ours(CALLER))
		store_relaxed(&shim_fork_known, 1);
	if (w && !ret)
		w->gone(call, at, len, since, CALLER);
	return ret;
}

/*
 * Resolve libc's functions in advance.  Allocators call the wrappers with
 * locks held, and dlsym may allocate, or wait for a thread that loads a
 * library and allocates: a deadlock.
 */
__attribute__((constructor)) static void map_resolve(void)
{
	shim_next(&next_munmap, "munmap");
	shim_next(&next_mmap, "mmap");
	shim_next(&next_mmap64, "mmap64");
	shim_next(&next_mremap, "mremap");
	shim_next(&next_madvise, "madvise");
}
