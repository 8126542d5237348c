/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waits of a fabric: what is blocked, on what, since when, and what would end
 * the wait. Used by urxe why, urxe top, and by urxe run when its --timeout
 * expires.
 *
 * stalls_find() compares two views (view.h), taken a short time apart, and
 * keeps only the waits that are in both. Each stalls_of_...() function adds
 * the waits of one kind with stall_add(). Nothing is locked and no shared
 * memory is written.
 *
 * A wait has a level. STALL_STALLS: something is stuck or needs attention.
 * STALL_IDLE: a normal wait, such as a listener without a request. WRs that
 * failed recently are in the list too, with level STALL_IDLE.
 */
#pragma once

#include <stdio.h>

#include "view.h"

enum stall_level {
	STALL_IDLE, /* a normal wait, not a problem */
	STALL_STALLS,
};

/* One wait. */
struct stall {
	const char *kind; /* keyword, for scripts: docs/why.md */
	enum stall_level level;
	struct view_process process; /* owner of the object that waits */
	uint32_t tid; /* thread that is blocked in a call; 0: none */
	uint32_t qpn; /* 0: not about a single QP */
	uint32_t cq; /* 0: not about a CQ */
	uint32_t peer; /* QPN of the QP that it waits for; 0: none */
	bool has_wr;
	uint64_t wr_id;
	uint32_t queued; /* number of WRs queued, including this one */
	uint64_t since; /* clock_now() */
	/*
	 * `since` is when the wait was first seen; it may have begun earlier
	 */
	bool longer;
	/*
	 * identifies the wait, together with kind and object: it is the same
	 * in two views if the wait has not ended between them
	 */
	uint64_t place;
	char what[800], ends[200];
};

struct stalls {
	struct stall *list;
	uint32_t n;
};

/*
 * Set @s to the waits that are in both views. `since` of a wait whose start
 * is not recorded is the time of @before.
 */
void stalls_find(struct stalls *s, const struct view *before,
		 const struct view *now);
/* Keep the earlier `since` of waits that @old, an older list, has as well. */
void stalls_remember(struct stalls *s, const struct stalls *old);
void stalls_free(struct stalls *s);
/* Whether the wait concerns process @pid (0: any) and QP @qpn (0: any). */
bool stall_matches(const struct stall *s, const struct view *v, int32_t pid,
		   uint32_t qpn);
/*
 * Duration of the wait at the time of @v: "12.3 s", or ">12.3 s" if it may be
 * longer. The text is valid until the next call.
 */
const char *stall_age(const struct stall *s, const struct view *v);
/*
 * Print the waits of process @pid (0: any) and QP @qpn (0: any) as text.
 * stalls_any() returns whether one of them has level STALL_STALLS.
 */
void stalls_print(FILE *to, const struct stalls *s, const struct view *v,
		  int32_t pid, uint32_t qpn);
bool stalls_any(const struct stalls *s, const struct view *v, int32_t pid,
		uint32_t qpn);
/* Number of waits with that level. */
uint32_t stalls_count(const struct stalls *s, enum stall_level level);

/*
 * Append a wait of process @p with level STALL_STALLS. The caller sets the
 * other members. The result is valid until the next stall_add(). stall_append()
 * appends to `what`, stall_ends() to `ends`.
 */
struct stall *stall_add(struct stalls *s, const char *kind,
			const struct view_process *p, uint64_t place);
void stall_append(struct stall *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void stall_ends(struct stall *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Append that the port of device @k is down, and what ends that. */
void stall_port_down(struct stall *s, const struct view *v, uint32_t k);
/* Is there a path from the port of a device to that of another one? */
bool stall_has_path(const struct view *v, uint32_t own, uint32_t other);
/* Append why there is none: a port is down, or no links join the two. */
void stall_no_path(struct stall *s, const struct view *v, uint32_t own,
		   uint32_t other);
/*
 * "PID 4711 (server)". The text is valid until the fourth call after this
 * one.
 */
const char *process_name(const struct view_process *p);
const char *type_word(uint32_t type);

void stalls_of_queues(struct stalls *s, const struct view *v); /* stall_qp.c */
void stalls_of_receives(struct stalls *s, const struct view *v);
/*
 * stall_wire.c, for a QP whose peer is on another host: the reason why a WR
 * waits for a response or for a receive, and when its retries end.
 */
void stall_of_wire(struct stall *s, const struct view *v,
		   const struct view_qp *q);
void stall_wire_ends(struct stall *s, const struct view *v,
		     const struct view_qp *q);
/* The QP has @n receives posted and no message arrives. */
void stall_of_wire_receives(struct stall *s, const struct view *v,
			    const struct view_qp *q, uint32_t n);
/* "QP 0x2000 of 10.0.0.1" */
const char *wire_peer_name(const struct view_qp *q);
void stalls_of_cm(struct stalls *s, const struct view *v); /* stall_cm.c */
/*
 * Describe which events a thread in rdma_get_cm_event() may get. The event
 * channel is the one whose FIFO has inode @ino.
 */
void stall_of_cm_channel(struct stall *out, const struct view *v, uint64_t ino);
void stalls_of_calls(struct stalls *s, const struct view *v); /* stall_call.c */
void stalls_of_failed(struct stalls *s, const struct view *v);

/* An rdma_cm listener. The caller of view_listener() starts with zeros. */
struct view_listener {
	uint32_t next; /* id number that the last call returned */
	uint32_t gen;
	struct view_process process;
	char address[46];
	uint32_t port, backlog, waiting, parked;
};
/*
 * Find the next listener of a live process. Return false if there are no
 * more. `waiting` counts connection requests that rdma_get_cm_event() has not
 * returned, `parked` those that exceed the backlog.
 */
bool view_listener(const struct view *v, struct view_listener *l);
void stalls_of_cqs(struct stalls *s, const struct view *v); /* stall_cq.c */
