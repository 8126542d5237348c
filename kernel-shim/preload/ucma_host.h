/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The host's rdma_cm beside ours.
 *
 * An event channel of this process is our FIFO; beside it a descriptor of the
 * host's device is kept, which the application does not know.  Each id is
 * made in both.  It stays in both until its destination is known: an address
 * of this machine is ours, any other one the host's.  Its number is always
 * ours; cm_id.host has the host's, whose "uid" is a key that leads back.
 *
 * The host's events are fetched as soon as they are there, and wait in the
 * queue of our channel.  So poll, O_NONBLOCK, fork and threads that sleep in
 * GET_EVENT need to know nothing of the host.
 *
 * The lock is not held while the host carries out a command (GET_EVENT, which
 * never blocks, is the exception: it keeps events in order).
 */
#ifndef URXE_SHIM_UCMA_HOST_H
#define URXE_SHIM_UCMA_HOST_H

#include "ucma.h"

#define HOST_COMMAND_MAX 512 /* the longest command; see ucma_wrap.c */
#define HOST_EVENTS_MAX 64 /* more of them wait at the host */

/* An id as a command names it. */
struct host_id {
	int fd; /* of the host, beside the id's channel; -1: none */
	uint64_t key;
	bool there; /* the host has it */
	uint32_t number; /* ... by this number */
	bool chosen; /* ... and it alone */
	bool bound; /* here */
};

/* ucma_host.c ---------------------------------------------------------- */

/* Id `number` of the channel u->fd; what is unknown is not there. */
void host_find(struct ucma *u, uint32_t number, struct host_id *h);
/* The number in u's command. */
uint32_t host_number(const struct ucma *u, uint32_t cmd);
/* u's command to the host, with another number.  0 or -errno. */
int host_forward(struct ucma *u, uint32_t cmd, const struct host_id *h);
/* The id is the host's alone, or not yet. */
void host_choose(struct ucma *u, const struct host_id *h, bool chosen);
/* The id is ours alone. */
void host_drop(struct ucma *u, const struct host_id *h);

/* ucma_host_addr.c: commands, 0 or -errno ------------------------------ */

int host_bind(struct ucma *u, uint32_t cmd);
int host_listen(struct ucma *u);
int host_resolve(struct ucma *u, uint32_t cmd);

/* ucma_host_id.c ------------------------------------------------------- */

/* A command of our own, answered at *out.  0 or -errno. */
int host_send(int fd, uint32_t cmd, const void *in, size_t len, size_t out);
/* DESTROY_ID or LEAVE_MCAST. */
void host_destroy(int fd, uint32_t cmd, uint32_t number);

/* Keys, with the lock held; NULL: it is no more. */
uint64_t host_key(struct cm *cm, const struct cm_id *id);
struct cm_id *host_by_key(struct cm *cm, uint64_t key);

int host_create_id(struct ucma *u);
int host_destroy_id(struct ucma *u);
int host_migrate_id(struct ucma *u);
int host_join(struct ucma *u, uint32_t cmd);
int host_leave(struct ucma *u);

/* ucma_host_chan.c, with the lock held --------------------------------- */

/* The descriptor beside a channel, or -1. */
int host_fd(struct cm *cm, struct cm_chan *c);

/* ucma_host_event.c, with the lock held -------------------------------- */

/*
 * One event from fd into the queue of its id's channel: 1, 0 if there is
 * none, or -errno.
 */
int host_fetch_one(struct cm *cm, int fd);

#endif
