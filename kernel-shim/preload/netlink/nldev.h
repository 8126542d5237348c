/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Between the transport (netlink.c) and the commands (nldev.c). */
#pragma once

#include <rdma/rdma_netlink.h>

#include "preload/shim.h"
#include "libnl.h"

/* Newer than some kernel headers. */
#define NLDEV_ATTR_DRIVER_DETAILS 99
#define NLDEV_ATTRS 128 /* what is looked at; numbers from here on are not */

struct nl_request {
	const struct nlmsghdr *hdr;
	struct nlattr *attr[NLDEV_ATTRS];
	struct urxe_fabric *f; /* NULL: there is no device of ours */
	int stand_in; /* the socket that asked, and answers */
	uint32_t port; /* of the stand-in: where answers go */
	int err; /* the first answer that did not fit, -errno */
};

static inline bool nl_is_dump(const struct nl_request *r)
{
	return (r->hdr->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
}

/* A message of the request's type with a header of its own; NULL: no memory */
struct nl_msg *nl_reply_new(struct nl_request *r, int op);
/* Sends and frees it; failed: a put into it did not fit. */
void nl_reply_send(struct nl_request *r, struct nl_msg *msg, bool failed);

/*
 * Pass the request to the kernel and its answers on, without the end of a
 * dump or the acknowledgement.  0, or the kernel's -errno.
 */
int nl_ask_host(struct nl_request *r);

/* An attribute of the request; false if it is not there or not one. */
bool nl_get_u32(const struct nl_request *r, int id, uint32_t *out);
bool nl_get_u8(const struct nl_request *r, int id, uint32_t *out);

/* The device's index and name, which answers start with. */
int nldev_put_name(struct nl_msg *m);

/* Carry out the request: 0 or -errno. */
int nldev_run(struct nl_request *r);
