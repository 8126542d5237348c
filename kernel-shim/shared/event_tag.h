/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an event says it is about.
 *
 * libibverbs takes the element of an event that it reads from a channel for
 * the address of a struct ibv_cq, ibv_qp or ibv_srq, and every process of the
 * fabric can write into that FIFO.  So what travels is a *tag*.  The process
 * that reads exchanges it for the address, in a table of its own memory, as a
 * kernel does that keeps the user_handle of an object: the preload library
 * has the table and stands before read(2).  A record whose tag is not there,
 * or not of that kind of object, is skipped.
 *
 * The table also counts what was read of each object.  Who destroys one has
 * its tag taken out first, and then waits until that many events were
 * acknowledged (man ibv_destroy_cq): a thread that has a record in its hand
 * by then and did not look it up yet will not find it.
 *
 * The provider asks for both by an ioctl on cmd_fd.
 */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

enum event_kind { EVENT_CQ = 1, EVENT_QP, EVENT_SRQ };

struct event_element {
	uint64_t address;
	uint64_t tag; /* is given out */
	uint32_t kind; /* enum event_kind */
	uint32_t comp_read, async_read; /* are given out at the end */
	uint32_t zero;
};

/* Give it a tag; and take it out. */
#define EVENT_IOC_WATCH _IOWR(0xf5, 1, struct event_element)
#define EVENT_IOC_FORGET _IOWR(0xf5, 2, struct event_element)

/* How fstat knows a completion or async event channel. */
#define EVENT_FIFO_MODE (S_IFIFO | 0700)

/* Records, as libibverbs reads them; an async one is urxe_async_event. */
#define EVENT_COMP_SIZE 8
#define EVENT_ASYNC_SIZE 16
