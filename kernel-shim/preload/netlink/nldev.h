/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Interface between the netlink transport (netlink.c) and the commands of the
 * RDMA_NL_NLDEV client (nldev.c, res.c, stat.c).  A request is executed in
 * the thread that sends it.
 */
#pragma once

#include <rdma/rdma_netlink.h>

#include "preload/shim.h"
#include "libnl.h"

/* RDMA_NLDEV_ATTR_DRIVER_DETAILS; some kernel headers do not have it */
#define NLDEV_ATTR_DRIVER_DETAILS 99
#define NLDEV_ATTRS 128 /* attributes with higher numbers are ignored */

struct nl_request {
	const struct nlmsghdr *hdr;
	struct nlattr *attr[NLDEV_ATTRS];
	struct urxe_fabric *f; /* NULL: there is no emulated device */
	uint32_t device; /* the emulated device that it is about */
	int emulated; /* the emulated socket, for requests and responses */
	uint32_t port; /* netlink port of `emulated` */
	int err; /* -errno of the first response that failed; 0: none */
};

static inline bool nl_is_dump(const struct nl_request *r)
{
	return (r->hdr->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
}

/*
 * Allocate a response message for command @op (RDMA_NLDEV_CMD_*), with its
 * header.  NULL: no memory; r->err is set.
 */
struct nl_msg *nl_reply_new(struct nl_request *r, int op);
/*
 * Send and free @msg.  @failed: an attribute did not fit; set r->err to
 * -EMSGSIZE in place of sending.
 */
void nl_reply_send(struct nl_request *r, struct nl_msg *msg, bool failed);

/*
 * Send the request to the kernel and forward the responses, except the
 * message that ends a dump and the acknowledgement.  0, or -errno from the
 * kernel; -ENODEV if the kernel has no RDMA.  Wait at most 2 s per response.
 */
int nl_query_host(struct nl_request *r);

/* Read an attribute of the request.  False: it is missing, or too short. */
bool nl_get_u32(const struct nl_request *r, int id, uint32_t *out);
bool nl_get_u8(const struct nl_request *r, int id, uint32_t *out);

/*
 * Add index and name of device @k, with which responses start.  Nonzero: no
 * space in @m.
 */
int nldev_put_name(const struct urxe_fabric *f, struct nl_msg *m, uint32_t k);

/* Execute the request: 0, or -errno. */
int nldev_run(struct nl_request *r);
