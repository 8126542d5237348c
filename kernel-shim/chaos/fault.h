/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: what goes wrong in a program on purpose, and when.  The environment
 * tells all processes, a rule a line, or parted by ";":
 *
 *	URXE_FAULTS=WHAT[:KEY=VALUE]...:EFFECT
 *	URXE_FAULT_SEED=NUMBER
 *
 * WHAT is a call (ibv_reg_mr, rdma_connect, ibv_create_*), `wr` for work
 * requests, or what an event is about: qp, cq, srq, port, device, process.  The
 * keys say which of them, and when; docs/faults.md has them all.
 *
 * Each process counts for itself, from its beginning or the fork that made it,
 * and each rule for itself.  What is drawn by chance is a function of the seed,
 * the program's name, the rule and the count (chance.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "chance.h"

#define FAULT_RULES 64
#define FAULT_TEXT 160 /* of a rule, with its end */

enum fault_call {
#define VERB(name) FAULT_ibv_##name,
#define RDMA(name) FAULT_rdma_##name,
#include "fault_calls.h"
	FAULT_CALLS
};
#define FAULT_WORDS ((FAULT_CALLS + 63) / 64)

/* What a rule is about. */
enum fault_what {
	FAULT_CALL,
	FAULT_WR,
	FAULT_QP,
	FAULT_CQ,
	FAULT_SRQ,
	FAULT_PORT,
	FAULT_DEVICE,
	FAULT_PROCESS,
	FAULT_PACKET,
};

/* What is counted for the rules of events. */
enum fault_at { FAULT_AT_POST, FAULT_AT_RECV, FAULT_AT_COMPLETION, FAULT_AT_MS };

enum fault_effect {
	FAULT_ERRNO, /* value: errno */
	FAULT_STATUS, /* value: enum ibv_wc_status */
	FAULT_EVENT, /* value: enum ibv_event_type */
	FAULT_DOWN, /* the port, for so many ms; 0: until somebody ends it */
	FAULT_UP,
	FAULT_KILL,
	FAULT_STOP,
	FAULT_SLEEP, /* for so many ms */
	/* of rdma_cm */
	FAULT_ADDR_ERROR, /* these three: value is the errno of the event */
	FAULT_ROUTE_ERROR,
	FAULT_UNREACHABLE,
	FAULT_REJECTED, /* value: the reason */
	FAULT_SILENT, /* no answer comes */
	FAULT_FATE, /* of a packet; value: enum fault_fate */
};

/* What becomes of a packet on the wire. */
enum fault_fate {
	FAULT_LOST = 1,
	FAULT_DUPLICATED,
	FAULT_LATE,
	FAULT_DAMAGED,
};

/* A bit for each enum ibv_qp_type, which are small. */
#define FAULT_TYPE(type) (1u << (type))
/* A bit for each enum ibv_wr_opcode. */
#define FAULT_OP(opcode) (1u << (opcode))

struct fault_rule {
	char text[FAULT_TEXT];
	uint32_t index; /* in the text, from 0 */
	enum fault_what what;
	uint64_t calls[FAULT_WORDS]; /* bits of enum fault_call */
	/* which: */
	char prog[64]; /* "": any program */
	bool one_qp, one_wr_id;
	uint32_t qpn, types, ops; /* types, ops: bits */
	uint64_t wr_id;
	/* when: */
	enum fault_at at;
	uint64_t ms;
	uint64_t nth, every; /* 0: not said */
	uint64_t times; /* UINT64_MAX: as often as it fits */
	uint64_t chance; /* of 2^32; 2^32: always */
	enum fault_effect effect;
	uint32_t value;
	/* how often it fitted, and how often it struck */
	_Atomic uint64_t seen, struck;
};

struct faults {
	unsigned int n; /* 0: none */
	struct chance chance; /* of this program */
	struct fault_tally *tally; /* NULL: nobody wants to know */
	struct fault_rule rule[FAULT_RULES];
};

/* What a call, a WR or a moment is, for the keys of a rule. */
struct fault_subject {
	uint32_t qpn; /* 0: there is no QP in it */
	uint32_t type; /* FAULT_TYPE, 0: unknown */
	uint32_t op; /* FAULT_OP, 0: there is none */
	bool has_wr_id;
	uint64_t wr_id;
};

/*
 * Add the rules of text to f, which is zeroed or has some.  False: why is a
 * sentence about the word that is wrong.
 */
bool faults_parse(struct faults *f, const char *text, char *why, size_t len);
/* The rules that are for a program of that name, all counts 0. */
void faults_begin(struct faults *f, const char *program, uint64_t seed);

/*
 * What the environment says for this process, read once.  NULL: it cannot be
 * understood, and faults_why() says why.
 */
struct faults *faults_of_process(void);
const char *faults_why(void);

/* Is there a rule of that kind? */
bool faults_have(const struct faults *f, enum fault_what what);
bool faults_have_call(const struct faults *f, enum fault_call call);

/*
 * s comes by: each rule that it fits counts it, and the first one that strikes
 * is returned, or NULL.
 */
const struct fault_rule *fault_of_call(struct faults *f, enum fault_call call,
				       const struct fault_subject *s);
const struct fault_rule *fault_of_wr(struct faults *f,
				     const struct fault_subject *s);
const struct fault_rule *fault_of_packet(struct faults *f,
					 const struct fault_subject *s);
/* The same for one rule: does it strike now? */
bool fault_strikes(const struct faults *f, struct fault_rule *r,
		   const struct fault_subject *s);
/* It strikes for another reason than s: its time has come. */
void fault_struck(const struct faults *f, const struct fault_rule *r);
/* Is s one of those that it is about? */
bool fault_fits(const struct fault_rule *r, const struct fault_subject *s);
