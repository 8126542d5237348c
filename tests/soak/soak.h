/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Soak test: worker processes use all verbs with each other, while a
 * conductor (soak.c) kills, stops and starves them.  They communicate through
 * shared memory of the conductor.  In it each worker has a slot, and in the
 * slot a door for each other worker.
 *
 * A stopped process may delay only the processes that use the same objects.
 * Each worker therefore publishes in waits_for the slot that its current call
 * may wait for.
 */
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SLOTS 8
#define LIMIT_MS 60000 /* exceeded only by a hang */
#define WAITS_FOR_ALL UINT32_MAX

enum kind { RC, RC_SRQ, UC, XRC, KINDS };
extern const char *const kind_name[KINDS];

/*
 * A door: what one end of a link publishes for the other end.  The worker
 * with the lower slot leads: it opens its end first and chooses the kind.
 * The other end opens with `joined` set to the leader's epoch.
 */
struct door {
	_Atomic uint32_t epoch; /* 0: closed; other values are not reused */
	_Atomic uint32_t joined; /* epoch of the peer that this end is for */
	_Atomic uint32_t ready; /* epoch of the peer it can receive from */
	uint32_t kind;
	uint32_t send_qpn, recv_qpn; /* different for XRC */
	uint32_t srqn, rkey;
	uint64_t base;
};

struct slot {
	/* written by the conductor */
	_Atomic uint32_t pid;
	_Atomic uint32_t starts;
	_Atomic uint32_t disturbed; /* counts stops, kills etc. */
	_Atomic uint32_t starved; /* resource limits are in force */
	_Atomic uint32_t limits; /* number of limits so far */
	/* written by the worker */
	_Atomic uint64_t beats; /* iterations of the main loop */
	_Atomic uint64_t cycles; /* calls of cycle() */
	/* 1 + slot whose requester the current call may wait for; 0: none */
	_Atomic uint32_t waits_for;
	const char *_Atomic doing; /* current call, for diagnostics */
	_Atomic uint64_t jobs[KINDS], datagrams, connections, children;
	_Atomic uint64_t broken, refused;
	_Atomic uint32_t epochs; /* number of epochs used */
	_Atomic uint32_t ud_qpn;
	_Atomic uint32_t port;
	struct door door[SLOTS];
	char said[300]; /* error message */
};

struct shared {
	_Atomic uint32_t quit;
	/* Number of stops and continues: odd while a process is stopped */
	_Atomic uint32_t stops;
	uint32_t n;
	char xrcd[200]; /* file that identifies the XRC domain */
	struct slot slot[SLOTS];
};

extern struct shared *sh; /* worker.c */
extern struct slot *me;
extern uint32_t my_slot;

/* Random numbers of this process */
uint32_t rnd(uint32_t below);
void rnd_seed(uint64_t seed);
uint64_t now_ms(void);
/* An invariant is violated: print the message and exit. */
void broken(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* State at the start of a call */
struct before {
	uint32_t starved, stops;
};
struct before call_begins(const char *what);
/* Return whether the call failed because the owner of a lock is stopped. */
bool timed_out(const struct before *b);
/*
 * Return whether a call has timed out and the stopped process was not
 * continued since.
 */
bool lock_is_stopped(void);
#define must(what, ok)                                               \
	do {                                                         \
		struct before b_ = call_begins(what);                \
		while (!(ok))                                        \
			if (!timed_out(&b_))                         \
				broken("%s: errno %d", what, errno); \
	} while (0)
/*
 * Check a verb that creates something.  It may fail only while resource
 * limits are in force, or if the owner of a lock is stopped.
 *
 * made(what, p = verb(...)) returns true if the verb succeeded.  If it failed
 * for one of these reasons it is counted and made() returns false.
 */
bool made_or_refused(const char *what, bool ok, const struct before *b);
#define made(what, expr)                              \
	({                                            \
		struct before b_ = call_begins(what); \
		made_or_refused(what, (expr), &b_);   \
	})

/*
 * Post a WR.  The first WR allocates the memory of a send queue; repeat while
 * that fails with ENOMEM.
 */
void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr);

/* Fill memory with bytes that depend on @seed, or compare it with them. */
void fill(void *p, uint32_t len, uint32_t seed);
bool filled(const void *p, uint32_t len, uint32_t seed);

/* Header of a message */
struct message {
	uint32_t from, starts, epoch, seq;
	uint32_t len, seed; /* of the payload */
	uint32_t what, window; /* enum message_what; an rkey */
	uint64_t addr;
};
enum message_what { M_DATA, M_WINDOW, M_WRITTEN };
#define MESSAGE_MAX 2048

/* Objects of a worker */
struct worker {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	/*
	 * PD of the SRQs and UD QPs, which many senders use.  A sender that
	 * is stopped during a SEND may block ibv_dereg_mr of each MR in this
	 * PD.
	 */
	struct ibv_pd *many_pd;
	struct ibv_comp_channel *chan; /* NULL: it polls */
	struct ibv_cq *cq;
	struct ibv_srq *srq, *xsrq;
	struct ibv_xrcd *xrcd;
	union ibv_gid gid;
	bool tired; /* close and open everything again */
	bool imported; /* another process may have the context, too */
};
extern struct worker w;

/* link.c: connections with each other worker and with itself */
void links_step(void);
void links_got(const struct ibv_wc *wc);
void links_close(void);
/* Handle a received message.  Return false if its QP does not exist. */
bool link_message(const struct ibv_wc *wc, const char *bytes);

/* pool.c: SRQs, which several senders use */
bool pool_open(void);
void pool_step(void);
bool pool_got(const struct ibv_wc *wc);
void pool_close(void);

/* datagram.c: UD */
bool datagrams_open(void);
void datagrams_step(void);
bool datagrams_got(const struct ibv_wc *wc);
void datagrams_close(void);

/* cycle.c: life cycle of objects that no other process uses */
void cycle(void);

/* conn.c: librdmacm */
void conns_step(void);
void conns_close(void);

/* child.c: fork, exec and import */
void children_step(void);
int child_import(int argc, char **argv);

/* Print a stack trace on SIGSEGV and SIGBUS. */
void watch_crashes(void);
int worker_run(uint32_t slot, uint64_t seed);
