/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fault injection (urxe run --fault): rules that make calls, work requests or
 * packets fail, or raise events.  The environment passes them to all
 * processes, one per line, or separated by ";":
 *
 *	URXE_FAULTS=WHAT[:KEY=VALUE]...:EFFECT
 *	URXE_FAULT_SEED=NUMBER
 *
 * WHAT is a call (ibv_reg_mr, rdma_connect, ibv_create_*), `wr` for work
 * requests, `packet` for packets on the wire, or the object of an event: qp,
 * cq, srq, port, device, process.  The keys select which of them match the
 * rule, and at which matches it strikes.  docs/faults.md is the reference.
 *
 * Each rule has its own counters in each process.  They start at 0 when the
 * process starts or is forked.  Random decisions are a function of the seed,
 * the name of the program, the rule, and the number of the match (random.h).
 *
 * The provider applies rules for verbs, work requests, packets and events
 * (provider/adversary, provider/wire/tx_fault.c).  The preload library applies
 * rules for rdma_cm (preload/ucma/fault.c), with counters of its own.  The
 * functions that count may be called from any thread, without a lock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "random.h"

#define FAULT_RULES 64
#define FAULT_TEXT 160 /* size of the text of a rule, with its NUL */

enum fault_call {
#define VERB(name) FAULT_ibv_##name,
#define RDMA(name) FAULT_rdma_##name,
#include "fault_calls.h"
	FAULT_CALLS
};
#define FAULT_WORDS ((FAULT_CALLS + 63) / 64)

/* The subject of a rule: a call, a work request, an object, or a packet. */
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

/*
 * What triggers a rule for events: posted sends, posted receives,
 * completions, or the time since the process first opened the device.
 */
enum fault_at { FAULT_AT_POST, FAULT_AT_RECV, FAULT_AT_COMPLETION, FAULT_AT_MS };

enum fault_effect {
	FAULT_ERRNO, /* value: errno */
	FAULT_STATUS, /* value: enum ibv_wc_status */
	FAULT_EVENT, /* value: enum ibv_event_type */
	FAULT_DOWN, /* of a link; value: ms; 0: until it is set up again */
	FAULT_UP,
	FAULT_RATE, /* of a link; value: Gb/s; 0: that of the profile */
	FAULT_KILL,
	FAULT_STOP,
	FAULT_SLEEP, /* value: ms */
	/* rdma_cm: */
	FAULT_ADDR_ERROR, /* these three: value is the errno of the event */
	FAULT_ROUTE_ERROR,
	FAULT_UNREACHABLE,
	FAULT_REJECTED, /* value: the reason (IB 12.6.7.2) */
	FAULT_SILENT, /* no response arrives */
	FAULT_TRANSMIT, /* of a packet; value: enum fault_transmit */
};

/* What happens to a packet on the wire. */
enum fault_transmit {
	FAULT_LOST = 1,
	FAULT_DUPLICATED,
	FAULT_LATE,
	FAULT_DAMAGED,
};

/* A bit for each enum ibv_qp_type; all values are less than 32. */
#define FAULT_TYPE(type) (1u << (type))
/* A bit for each enum ibv_wr_opcode. */
#define FAULT_OP(opcode) (1u << (opcode))

struct fault_rule {
	char text[FAULT_TEXT];
	uint32_t index; /* number of the rule in the text, from 0 */
	enum fault_what what;
	uint64_t calls[FAULT_WORDS]; /* bits of enum fault_call */
	/* what matches: */
	char prog[64]; /* "": any program */
	char host[32], device[16]; /* "": any */
	bool one_qp, one_wr_id;
	uint32_t qpn, types, ops; /* types, ops: bits; 0: any */
	uint64_t wr_id;
	/* which match: */
	enum fault_at at;
	uint64_t ms; /* time of the first turn, and between turns */
	uint64_t nth, every; /* 0: not set */
	uint64_t times; /* limit; UINT64_MAX: none */
	uint64_t probability; /* probability * 2^32 */
	enum fault_effect effect;
	uint32_t value;
	char link[64]; /* name of an end of the link; "": that of the port */
	uint32_t ready; /* ms from PORT_ACTIVE until packets pass */
	/* numbers of matches and of strikes in this process */
	_Atomic uint64_t seen, struck;
};

struct faults {
	unsigned int n; /* number of rules */
	struct random_stream random; /* stream of this program */
	struct fault_tally *tally; /* NULL: there is no tally file */
	struct fault_rule rule[FAULT_RULES];
};

/* A call, WR, packet or event, described by what keys can select. */
struct fault_subject {
	uint32_t qpn; /* 0: no QP */
	uint32_t type; /* FAULT_TYPE; 0: unknown */
	uint32_t op; /* FAULT_OP; 0: none */
	bool has_wr_id;
	uint64_t wr_id;
	/* names, in the arrays of struct urxe_host and urxe_hca; NULL: unknown
	 */
	const char *host, *device;
};

/*
 * Add the rules in @text to @f, which is zeroed or has rules already.  False:
 * a rule is invalid; @why, of @len bytes, has an error message with the wrong
 * word.
 */
bool faults_parse(struct faults *f, const char *text, char *why, size_t len);
/*
 * Keep only the rules for a program of name @program, and initialize the
 * random numbers.
 */
void faults_begin(struct faults *f, const char *program, uint64_t seed);

/*
 * Return the rules of this process, from the environment, which is parsed
 * once.  NULL: it is invalid; faults_why() has the error message.  If there
 * is none, `n` is 0.  errno is preserved.
 */
struct faults *faults_of_process(void);
const char *faults_why(void);

/* Return true if there is a rule for that subject or call. */
bool faults_have(const struct faults *f, enum fault_what what);
bool faults_have_call(const struct faults *f, enum fault_call call);

/*
 * Count @s for each rule that it matches.  Return the first rule that
 * strikes, or NULL.
 */
const struct fault_rule *fault_of_call(struct faults *f, enum fault_call call,
				       const struct fault_subject *s);
const struct fault_rule *fault_of_wr(struct faults *f,
				     const struct fault_subject *s);
const struct fault_rule *fault_of_packet(struct faults *f,
					 const struct fault_subject *s);
/* The same for one rule: return true if it strikes. */
bool fault_rule_strikes(const struct faults *f, struct fault_rule *r,
			const struct fault_subject *s);
/*
 * For a rule with ms=, which has a turn every ms: can it strike again, and
 * does it strike in this turn, which is counted?  Not if it does not match.
 */
bool fault_rule_has_turn(const struct fault_rule *r);
bool fault_turn_strikes(const struct faults *f, struct fault_rule *r,
			bool matches);
/* Return true if @s matches the rule.  Nothing is counted. */
bool fault_rule_matches(const struct fault_rule *r,
			const struct fault_subject *s);
