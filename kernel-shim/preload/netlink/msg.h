/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of netlink and their attributes, with the names and meanings that
 * libnl-3 has for them.  libnl itself would be loaded into every program that
 * is run here, and most never ask.
 */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

/* Of what was received: is the next message whole? */
static inline bool nlmsg_ok(const struct nlmsghdr *h, int left)
{
	return left >= NLMSG_HDRLEN && h->nlmsg_len >= NLMSG_HDRLEN &&
	       h->nlmsg_len <= (uint32_t)left;
}
static inline struct nlmsghdr *nlmsg_next(struct nlmsghdr *h, int *left)
{
	int step = (int)NLMSG_ALIGN(h->nlmsg_len);

	*left -= step;
	return (struct nlmsghdr *)((char *)h + step);
}
static inline void *nlmsg_data(struct nlmsghdr *h)
{
	return (char *)h + NLMSG_HDRLEN;
}

/* It is sent whole, and no reader asks for more at a time. */
#define MAX_MESSAGE 3584

struct nl_msg; /* one that is written */

/* With its header; NULL: no memory */
struct nl_msg *nlmsg_new(uint32_t port, uint32_t seq, int type, int flags);
void nlmsg_free(struct nl_msg *m);
struct nlmsghdr *nlmsg_hdr(struct nl_msg *m);

/* Not 0: there is no room. */
int nla_put(struct nl_msg *m, int type, int len, const void *data);
int nla_put_u8(struct nl_msg *m, int type, uint8_t v);
int nla_put_u32(struct nl_msg *m, int type, uint32_t v);
int nla_put_u64(struct nl_msg *m, int type, uint64_t v);
int nla_put_string(struct nl_msg *m, int type, const char *s);

/* What is put from here on is in this one; NULL: there is no room. */
struct nlattr *nla_nest_start(struct nl_msg *m, int type);
/* Up to here; one that is empty is taken out again. */
void nla_nest_end(struct nl_msg *m, struct nlattr *nest);
/* It and all that is in it is taken out again. */
void nla_nest_cancel(struct nl_msg *m, const struct nlattr *nest);

/*
 * The attributes of a message that is whole, by type up to max; of one that
 * comes twice the last, NULL for what is not there.
 */
void nlmsg_parse(const struct nlmsghdr *h, struct nlattr **attr, int max);
static inline int nla_len(const struct nlattr *a)
{
	return a->nla_len - NLA_HDRLEN;
}
static inline void *nla_data(const struct nlattr *a)
{
	return (char *)a + NLA_HDRLEN;
}
