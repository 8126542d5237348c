/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libnl-3, which parses requests and builds answers.  It is loaded for the
 * first NETLINK_RDMA socket and not linked: most programs that are run here
 * open none, and loading it would hold up each one's start.
 */
#pragma once

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* What is used of it. */
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

/* False if it cannot be; then it was said why.  errno stays. */
bool libnl_load(void);

/* There is a stand-in for a socket, so it was loaded. */
static inline const struct libnl *nl(void)
{
	return load_acquire(&libnl_loaded);
}
