/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Function table for libnl-3, which parses netlink requests and builds
 * responses.  The library is not linked, but loaded with dlopen(3) when the
 * first NETLINK_RDMA socket is created.  Most programs create none, and
 * loading it would delay the start of each of them.
 */
#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* The functions that are used: F(name). */
#define LIBNL_FUNCTIONS(F)  \
	F(nla_data)         \
	F(nla_get_u32)      \
	F(nla_get_u8)       \
	F(nla_len)          \
	F(nla_nest_cancel)  \
	F(nla_nest_end)     \
	F(nla_nest_start)   \
	F(nla_put)          \
	F(nla_put_string)   \
	F(nla_put_u32)      \
	F(nla_put_u64)      \
	F(nla_put_u8)       \
	F(nlmsg_alloc_size) \
	F(nlmsg_data)       \
	F(nlmsg_free)       \
	F(nlmsg_hdr)        \
	F(nlmsg_next)       \
	F(nlmsg_ok)         \
	F(nlmsg_parse)      \
	F(nlmsg_put)

struct libnl {
#define LIBNL_MEMBER(name) __typeof__(name) *name;
	LIBNL_FUNCTIONS(LIBNL_MEMBER)
#undef LIBNL_MEMBER
};

extern internal _Atomic(const struct libnl *) libnl_loaded;

/*
 * Load the library, if it is not loaded yet.  False: it cannot be loaded; the
 * reason is logged if URXE_LOG is set.  errno is preserved.
 */
bool libnl_load(void);

/*
 * The function table.  It is not NULL once libnl_load() has succeeded, which
 * is so whenever an emulated socket exists.
 */
static inline const struct libnl *nl(void)
{
	return load_acquire(&libnl_loaded);
}
