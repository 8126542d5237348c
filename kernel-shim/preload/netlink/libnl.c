// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Load libnl-3 on demand (libnl.h). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "libnl.h"
#include "preload/shim.h"

/*
 * The soname that libibverbs is linked with.  If the process has it already,
 * dlopen(3) returns that copy.
 */
#define LIBNL "libnl-3.so.200"

_Atomic(const struct libnl *) libnl_loaded;

static bool libnl_fill(struct libnl *t)
{
	void *lib = dlopen(LIBNL, RTLD_LAZY | RTLD_LOCAL);

	if (!lib)
		return false;
#define LIBNL_FIND(name)                                  \
	t->name = (__typeof__(t->name))dlsym(lib, #name); \
	if (!t->name)                                     \
		return false;
	LIBNL_FUNCTIONS(LIBNL_FIND)
#undef LIBNL_FIND
	return true;
}

/*
 * No mutex and no pthread_once(3): a thread may call this from the
 * constructor of a library, while it holds the lock of the dynamic linker.
 * With a lock here, that could deadlock.  If two threads race, both fill a
 * table; the one whose compare-and-swap fails frees its own.
 */
bool libnl_load(void)
{
	const struct libnl *none = NULL;
	struct libnl *t;
	int saved = errno;
	const char *why;

	if (nl())
		return true;
	t = malloc(sizeof(*t));
	if (!t || !libnl_fill(t)) {
		why = t ? dlerror() : "no memory";
		shim_why("cannot emulate NETLINK_RDMA: %s", why ? why : LIBNL);
		free(t);
		errno = saved;
		return false;
	}
	if (!cas_acq_rel(&libnl_loaded, &none, t))
		free(t);
	errno = saved;
	return true;
}
