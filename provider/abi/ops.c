// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table of operations, and their wrappers, which set errno.
 *
 * A verb that fails sets errno to its result as well, as with a kernel
 * driver: libfabric has "if (ret) return -errno".  A verb that succeeds
 * preserves errno.  The operations marked FAST in pabi/ops.h have no wrapper
 * and set errno themselves when they fail.
 */
#include <errno.h>

#include "base/compiler.h"
#include "context.h"
#include "verbs/verbs.h"

#define CODE(name, params, args)                           \
	static int op_##name params                        \
	{                                                  \
		int saved = errno, ret = urxe_##name args; \
                                                           \
		errno = ret ? ret : saved;                 \
		return ret;                                \
	}
#define MAKE(result, name, params, args)        \
	static result op_##name params          \
	{                                       \
		int saved = errno;              \
		result made = urxe_##name args; \
                                                \
		if (made)                       \
			errno = saved;          \
		return made;                    \
	}
#define NONE(name, params, args)     \
	static void op_##name params \
	{                            \
		int saved = errno;   \
                                     \
		urxe_##name args;    \
		errno = saved;       \
	}
#define FAST(name, params, args)
#include "pabi/ops.h"

#define CODE(name, params, args) .name = op_##name,
#define MAKE(result, name, params, args) .name = op_##name,
#define NONE(name, params, args) .name = op_##name,
#define FAST(name, params, args) .name = urxe_##name,

const struct pabi_ops urxe_ops = {
#include "pabi/ops.h"
};
