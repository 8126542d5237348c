/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What in a fabric waits, for what, since when, and what would end that.
 */
#pragma once

#include <stdio.h>

#include "view.h"

enum stall_level {
	STALL_IDLE, /* as it is where nobody has anything to say */
	STALL_STALLS,
};

/* One that waits. */
struct stall {
	const char *kind; /* a word, for scripts */
	enum stall_level level;
	struct view_process process; /* whose it is */
	uint32_t tid; /* that is blocked in a call; 0: none */
	uint32_t qpn; /* 0: not of one QP */
	uint32_t cq; /* 0: not of a CQ */
	uint32_t peer; /* QPN that it waits for; 0: none */
	bool has_wr;
	uint64_t wr_id;
	uint32_t queued; /* WRs, with that one */
	uint64_t since; /* clock_now() */
	bool longer; /* than since then: that is when it was first seen */
	uint64_t place; /* with kind and object: what is the same wait */
	char what[800], ends[200];
};

struct stalls {
	struct stall *list;
	uint32_t n;
};

/* What waits at both looks. */
void stalls_find(struct stalls *s, const struct view *before,
		 const struct view *now);
/* What was seen to wait in `old` waits since then. */
void stalls_remember(struct stalls *s, const struct stalls *old);
void stalls_free(struct stalls *s);
/* Is it of process pid (0: any) and QP qpn (0: any)? */
bool stall_is_asked(const struct stall *s, const struct view *v, int32_t pid,
		    uint32_t qpn);
/* "12.3 s": how long, at that view. */
const char *stall_age(const struct stall *s, const struct view *v);
/* Those of process pid (0: any) and QP qpn (0: any), as text; does one stall?
 */
void stalls_print(FILE *to, const struct stalls *s, const struct view *v,
		  int32_t pid, uint32_t qpn);
bool stalls_any(const struct stalls *s, const struct view *v, int32_t pid,
		uint32_t qpn);
/* How many of them have that level? */
uint32_t stalls_count(const struct stalls *s, enum stall_level level);

/* The next one of this kind, of process p; the caller fills the rest. */
struct stall *stall_add(struct stalls *s, const char *kind,
			const struct view_process *p, uint64_t place);
void stall_says(struct stall *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void stall_ends(struct stall *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* "PID 4711 (server)", valid until it was called four times more. */
const char *process_name(const struct view_process *p);
const char *type_word(uint32_t type);

void stalls_of_queues(struct stalls *s, const struct view *v); /* stall_qp.c */
void stalls_of_receives(struct stalls *s, const struct view *v);
/*
 * stall_wire.c, of a QP whose other end is on another host: a WR of it waits
 * for an answer, or for a receive; how that ends by itself.
 */
void stall_of_wire(struct stall *s, const struct view *v,
		   const struct view_qp *q);
void stall_wire_ends(struct stall *s, const struct view *v,
		     const struct view_qp *q);
/* It has n receives posted. */
void stall_of_wire_receives(struct stall *s, const struct view *v,
			    const struct view_qp *q, uint32_t n);
/* "QP 0x2000 of 10.0.0.1" */
const char *wire_peer_name(const struct view_qp *q);
void stalls_of_cm(struct stalls *s, const struct view *v); /* stall_cm.c */
/* What a thread waits for in rdma_get_cm_event of the channel with that inode.
 */
void stall_of_cm_channel(struct stall *out, const struct view *v, uint64_t ino);
void stalls_of_calls(struct stalls *s, const struct view *v); /* stall_call.c */
void stalls_of_failed(struct stalls *s, const struct view *v);

/* A listener of rdma_cm; begin with zeros. */
struct view_listener {
	uint32_t next; /* where to look for the next one */
	uint32_t gen;
	struct view_process process;
	char address[46];
	uint32_t port, backlog, waiting, parked;
};
/* The next one; false: there is none. */
bool view_listener(const struct view *v, struct view_listener *l);
void stalls_of_cqs(struct stalls *s, const struct view *v); /* stall_cq.c */
