/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A soak: processes that do all verbs to each other, while a conductor kills,
 * stops and starves them.  They meet in memory that the conductor made, in
 * which each has a slot and, for each other one, a door.
 */
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SLOTS 8
#define LIMIT_MS 60000 /* only a hang takes longer */
#define WAITS_FOR_ALL UINT32_MAX

enum kind { RC, RC_SRQ, UC, XRC, KINDS };
extern const char *const kind_name[KINDS];

/*
 * The end of a link: how the other end reaches it.  The lower slot leads: it
 * chooses the kind, and the other one makes its end for that very epoch.
 */
struct door {
	_Atomic uint32_t epoch; /* 0: closed; else never the same again */
	_Atomic uint32_t joined; /* epoch of the other end it is for */
	_Atomic uint32_t ready; /* epoch of the other end it can hear */
	uint32_t kind;
	uint32_t send_qpn, recv_qpn; /* they differ with XRC */
	uint32_t srqn, rkey;
	uint64_t base;
};

struct slot {
	/* the conductor's */
	_Atomic uint32_t pid;
	_Atomic uint32_t starts;
	_Atomic uint32_t disturbed; /* counts: it was stopped, killed ... */
	_Atomic uint32_t starved; /* it has limits */
	_Atomic uint32_t limits; /* counts them */
	/* the worker's */
	_Atomic uint64_t beats; /* turns of its loop */
	_Atomic uint64_t cycles; /* of its own objects' life */
	/* 1 + the slot whose requester it may have to wait for */
	_Atomic uint32_t waits_for;
	const char *_Atomic doing; /* for who looks on */
	_Atomic uint64_t jobs[KINDS], datagrams, connections, children;
	_Atomic uint64_t broken, refused;
	_Atomic uint32_t epochs; /* given out */
	_Atomic uint32_t ud_qpn;
	_Atomic uint32_t port;
	struct door door[SLOTS];
	char said[300]; /* what is wrong */
};

struct shared {
	_Atomic uint32_t quit;
	_Atomic uint32_t stops; /* and their ends: odd while one is stopped */
	uint32_t n;
	char xrcd[200]; /* a file that names a domain */
	struct slot slot[SLOTS];
};

extern struct shared *sh; /* worker.c */
extern struct slot *me;
extern uint32_t my_slot;

/* This process's random numbers. */
uint32_t rnd(uint32_t below);
void rnd_seed(uint64_t seed);
uint64_t now_ms(void);
/* An invariant does not hold: says so, and ends this process. */
void broken(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The state when a call began. */
struct before {
	uint32_t starved, stops;
};
struct before call_begins(const char *what);
/* Did the call fail because the holder of a lock is stopped? */
bool timed_out(const struct before *b);
/* Has a call failed so, and the process has not been continued since? */
bool lock_is_stopped(void);
#define must(what, ok)                                               \
	do {                                                         \
		struct before b_ = call_begins(what);                \
		while (!(ok))                                        \
			if (!timed_out(&b_))                         \
				broken("%s: errno %d", what, errno); \
	} while (0)
/*
 * Did a verb that makes something work?  While there are limits, or the holder
 * of a lock is stopped, it need not.
 * made(what, p = verb(...)) counts a refusal and is false, or is true.
 */
bool made_or_refused(const char *what, bool ok, const struct before *b);
#define made(what, expr)                              \
	({                                            \
		struct before b_ = call_begins(what); \
		made_or_refused(what, (expr), &b_);   \
	})

/* A send queue gets its memory with its first WR: until there is some. */
void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr);

/* Bytes that are a function of a seed. */
void fill(void *p, uint32_t len, uint32_t seed);
bool filled(const void *p, uint32_t len, uint32_t seed);

/* What begins a message. */
struct message {
	uint32_t from, starts, epoch, seq;
	uint32_t len, seed; /* of the bytes that follow */
	uint32_t what, window; /* enum message_what; an rkey */
	uint64_t addr;
};
enum message_what { M_DATA, M_WINDOW, M_WRITTEN };
#define MESSAGE_MAX 2048

/* All that a worker has opened. */
struct worker {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	/*
	 * Of SRQs and UD QPs: a sender that is stopped in a SEND may block
	 * ibv_dereg_mr of each MR in this PD.
	 */
	struct ibv_pd *many_pd;
	struct ibv_comp_channel *chan; /* NULL: it polls */
	struct ibv_cq *cq;
	struct ibv_srq *srq, *xsrq;
	struct ibv_xrcd *xrcd;
	union ibv_gid gid;
	bool tired; /* it opens everything anew */
	bool imported; /* somebody else has the context, too */
};
extern struct worker w;

/* link.c: connected to each of the others, and to itself. */
void links_step(void);
void links_got(const struct ibv_wc *wc);
void links_close(void);
/* A message came; false: there is no such QP. */
bool link_message(const struct ibv_wc *wc, const char *bytes);

/* pool.c: receives that several senders share. */
bool pool_open(void);
void pool_step(void);
bool pool_got(const struct ibv_wc *wc);
void pool_close(void);

/* datagram.c */
bool datagrams_open(void);
void datagrams_step(void);
bool datagrams_got(const struct ibv_wc *wc);
void datagrams_close(void);

/* cycle.c: the life of objects that no other process knows. */
void cycle(void);

/* conn.c: rdma_cm. */
void conns_step(void);
void conns_close(void);

/* child.c: fork, exec and import. */
void children_step(void);
int child_import(int argc, char **argv);

/* Who crashes says where. */
void watch_crashes(void);
int worker_run(uint32_t slot, uint64_t seed);
