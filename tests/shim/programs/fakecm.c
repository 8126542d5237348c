// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preload library that follows the one under test in LD_PRELOAD.  It
 * imitates a host with an rdma_cm device of its own: opening
 * /dev/infiniband/rdma_cm opens the file $FAKECM.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static const char *place(const char *path)
{
	return strcmp(path, "/dev/infiniband/rdma_cm") ? path :
							 getenv("FAKECM");
}

#define OPEN(name)                                                       \
	int name(const char *path, int flags, ...)                       \
	{                                                                \
		int (*next)(const char *, int, ...) = (int (*)(          \
			const char *, int, ...))dlsym(RTLD_NEXT, #name); \
		va_list ap;                                              \
		mode_t mode;                                             \
		va_start(ap, flags);                                     \
		mode = va_arg(ap, mode_t);                               \
		va_end(ap);                                              \
		return next(place(path), flags, mode);                   \
	}
OPEN(open)
OPEN(open64)
