/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The zoo: small programs with a common mistake, each with a corrected
 * version (docs/zoo.md).  Each file has one pair of programs.
 * This header has the parts that they share: two connected endpoints in one
 * process, and mostly in one thread, so that a run is repeatable with its
 * seed.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct program {
	const char *name;
	const char *wrong; /* description of the mistake */
	const char *seen; /* public reports of it: project and number */
	const char *found; /* option of the adversary, or "any run" */
	const char *rule; /* rule of the referee, if the referee finds it */
	bool hangs; /* the buggy program is expected to hang */
	void (*run)(bool corrected);
	struct program *next;
};

void program_add(struct program *a);

/* ANIMAL(.name = ..., ...) { the program, correct if (corrected) } */
#define PROGRAM(...)                                              \
	static void run(bool corrected);                          \
	static struct program self = { .run = run, __VA_ARGS__ }; \
	static __attribute__((constructor)) void enter(void)      \
	{                                                         \
		program_add(&self);                               \
	}                                                         \
	static void run(bool corrected)

/* Load data that a peer writes (acquire). */
static inline char seen_byte(char *at)
{
	return atomic_load_explicit((_Atomic char *)at, memory_order_acquire);
}

static inline uint64_t seen_word(void *at)
{
	return atomic_load_explicit((_Atomic uint64_t *)at,
				    memory_order_acquire);
}

/* If !ok, the mistake has shown: report @else_what and exit. */
void expect(bool ok, const char *else_what);

/* ------------------------------------------------------- two ends */

#define BUF 8192

struct end {
	struct ibv_comp_channel *chan; /* if requested */
	struct ibv_cq *cq, *rcq; /* the same CQ, unless two are requested */
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* of buf */
	char *buf; /* BUF bytes, initially 0 */
	struct end *peer;
};

struct pair {
	struct end a, b;
};

/* Parameters of a pair; 0 selects the default. */
struct how {
	enum ibv_qp_type type; /* default: RC */
	int cqe; /* default: 64 */
	uint32_t sends; /* max_send_wr; default: 32 */
	uint8_t rnr_retry; /* default: 0, no retries */
	uint8_t reads, dest_reads; /* max_(dest_)rd_atomic; default: 16 */
	bool channel; /* create a completion channel for each endpoint */
	const struct pair *same_as; /* share the CQs and buffers of this pair */
	bool one_send_cq; /* shared by both endpoints; a.rcq is separate */
};
void pair_make(struct pair *p, struct how how);
#define PAIR(p, ...) pair_make(p, (struct how){ __VA_ARGS__ })

struct ibv_context *the_device(void);
struct ibv_pd *the_pd(void);
#define QKEY 0x2007

/* ------------------------------------------------------- work */

/*
 * A send WR of @len bytes, between offset @from of this endpoint's buffer and
 * offset @at of the peer's
 */
struct work {
	enum ibv_wr_opcode op;
	uint64_t id;
	size_t from, at;
	uint32_t len;
	unsigned int flags;
	uint64_t add; /* operand of an atomic */
	const void *addr; /* instead of from, with lkey */
	uint32_t lkey;
	uint32_t imm;
	uint32_t rkey; /* instead of the peer's */
};
int post_work(struct end *e, struct work w);
/* Post a WR; the post must succeed. */
#define POST(e, ...)                                        \
	expect(!post_work(e, (struct work){ __VA_ARGS__ }), \
	       "ibv_post_send fails")
void post_receive(struct end *e, uint64_t id, size_t at, uint32_t len);

/*
 * Wait for the next completion, of any status.  Return false if none arrives.
 * Poll the peer, too, so that the adversary's ticks advance for both.
 */
bool next_wc(struct end *e, struct ibv_wc *wc);
bool next_recv_wc(struct end *e, struct ibv_wc *wc); /* from rcq */
/* Wait for the next completion, which must be successful. */
struct ibv_wc wait_for(struct end *e);
struct ibv_wc wait_for_recv(struct end *e);
/* Poll 0 completions: the adversary's ticks advance. */
void look_busy(struct end *e);

/* Return whether all @len bytes are @c. */
bool all_are(const char *p, char c, size_t len);
