/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The zoo: small programs with a mistake that people make, each with a
 * corrected twin.  Each is a file of its own, and what they share is here: two
 * ends, connected, in one process and mostly in one thread, so that a run comes
 * again with its seed.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct animal {
	const char *name;
	const char *wrong; /* what is */
	const char *seen; /* where, in public: project and number */
	const char *found; /* by what: a knob, or "any run" */
	const char *rule; /* of the referee, if it is that which finds it */
	bool hangs; /* that is how it is found; else a hang is none */
	void (*live)(bool corrected);
	struct animal *next;
};

void animal_enter(struct animal *a);

/* ANIMAL(.name = ..., ...) { what it does, and does right if (corrected) } */
#define ANIMAL(...)                                                \
	static void live(bool corrected);                          \
	static struct animal self = { .live = live, __VA_ARGS__ }; \
	static __attribute__((constructor)) void enter(void)       \
	{                                                          \
		animal_enter(&self);                               \
	}                                                          \
	static void live(bool corrected)

/* What somebody else writes: nothing is looked at before it by this CPU. */
static inline char seen_byte(char *at)
{
	return atomic_load_explicit((_Atomic char *)at, memory_order_acquire);
}

static inline uint64_t seen_word(void *at)
{
	return atomic_load_explicit((_Atomic uint64_t *)at,
				    memory_order_acquire);
}

/* Else it has met its mistake: says so, and ends this process. */
void expect(bool ok, const char *else_what);

/* ------------------------------------------------------- two ends */

#define BUF 8192

struct end {
	struct ibv_comp_channel *chan; /* if asked for */
	struct ibv_cq *cq, *rcq; /* one, if not asked for two */
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* of buf */
	char *buf; /* BUF bytes, zeros */
	struct end *peer;
};

struct pair {
	struct end a, b;
};

/* How a pair is made; 0 is what most want. */
struct how {
	enum ibv_qp_type type; /* RC */
	int cqe; /* 64 */
	uint32_t sends; /* max_send_wr: 32 */
	uint8_t rnr_retry; /* none */
	uint8_t reads, dest_reads; /* max_rd_atomic, max_dest_rd_atomic: 16 */
	bool channel; /* each end has one */
	const struct pair *beside; /* whose CQs and buffers it shares */
	bool one_send_cq; /* of both ends, and receives have one of their own */
};
void pair_make(struct pair *p, struct how how);
#define PAIR(p, ...) pair_make(p, (struct how){ __VA_ARGS__ })

struct ibv_context *the_device(void);
struct ibv_pd *the_pd(void);
#define QKEY 0x2007

/* ------------------------------------------------------- work */

/* What is posted: len bytes from `from`, to `at` of the other end, or back. */
struct work {
	enum ibv_wr_opcode op;
	uint64_t id;
	size_t from, at;
	uint32_t len;
	unsigned int flags;
	uint64_t add; /* of an atomic, which takes 8 bytes */
	const void *addr; /* in place of from, with its lkey */
	uint32_t lkey;
	uint32_t imm;
	uint32_t rkey; /* in place of the other end's */
};
int post_work(struct end *e, struct work w);
/* It must be accepted. */
#define POST(e, ...) \
	expect(!post_work(e, (struct work){ __VA_ARGS__ }), "a send is refused")
void post_receive(struct end *e, uint64_t id, size_t at, uint32_t len);

/*
 * The next completion, whatever its status; false: it does not come.  Time goes
 * on for the other end, too.
 */
bool next_wc(struct end *e, struct ibv_wc *wc);
bool next_recv_wc(struct end *e, struct ibv_wc *wc); /* of rcq */
/* It comes, and is a success. */
struct ibv_wc wait_for(struct end *e);
struct ibv_wc wait_for_recv(struct end *e);
/* Time goes on for an end that has nothing to poll. */
void look_busy(struct end *e);

/* Are all of the len bytes c? */
bool all_are(const char *p, char c, size_t len);
