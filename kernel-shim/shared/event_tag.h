/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Event tags: what identifies the object in a completion or async event.
 *
 * libibverbs reads events from a channel and uses their element as the
 * address of a struct ibv_cq, ibv_qp or ibv_srq.  Here a channel is a FIFO
 * that every process of the fabric can write to.  Therefore an event carries
 * a tag instead of an address.  The preload library of the reading process,
 * which intercepts read(2), replaces the tag by the address from a table in
 * its own memory (kernel-shim/preload/event.c).  That is what a kernel does
 * with the user_handle of an object.  A record whose tag is unknown, or
 * belongs to an object of another kind, is skipped.
 *
 * The table also counts the events that were read for each object.  A
 * destroyer first removes the tag, and then waits until that many events have
 * been acknowledged (ibv_destroy_cq(3)).  A thread that has read a record but
 * has not translated it by then no longer finds the tag.
 *
 * The provider adds and removes tags with ioctls on cmd_fd, which the preload
 * library intercepts as well.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum event_kind { EVENT_CQ = 1, EVENT_QP, EVENT_SRQ };

struct event_element {
	uint64_t address;
	uint64_t tag; /* out of WATCH, in of FORGET */
	uint32_t kind; /* enum event_kind */
	uint32_t comp_read, async_read; /* out of FORGET */
	uint32_t zero;
};

/*
 * Add an object to the table (-ENOMEM), and remove it (-ENOENT: no such tag).
 */
#define EVENT_IOC_WATCH _IOWR(0xf5, 1, struct event_element)
#define EVENT_IOC_FORGET _IOWR(0xf5, 2, struct event_element)

/* st_mode by which fstat(2) identifies a completion or async channel. */
#define EVENT_FIFO_MODE (S_IFIFO | 0700)

/* Sizes of the records that libibverbs reads: a tag; urxe_async_event. */
#define EVENT_COMP_SIZE 8
#define EVENT_ASYNC_SIZE 16

/*
 * Return the kind of object in the element of an async event.  0: the port or
 * the device; -1: unknown event type.
 */
static inline int event_async_kind(uint32_t type)
{
	switch (type) {
	case IBV_EVENT_CQ_ERR:
		return EVENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return EVENT_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return EVENT_SRQ;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return 0;
	default:
		return -1;
	}
}
