/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A litmus test in memory.  docs/litmus.md describes the language.  read.c
 * parses a file, round.c executes a test once, and main.c counts the results.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_NODES 4
#define MAX_VARS 8 /* of a node */
#define MAX_WINDOWS 2 /* of a node */
#define MAX_OPS 16 /* of a node */
#define MAX_LINKS 2 /* QPs from one node to another */
#define MAX_REGS 16
#define MAX_TERMS 8
#define MAX_OUTCOMES 4
#define NAME 16

#define UNSET UINT64_MAX /* a register without a value */

enum verb {
	STORE,
	LOAD,
	UNTIL,
	WRITE,
	WRITE_IMM,
	READ,
	CAS,
	FAA,
	SEND,
	BIND,
	RECV,
	WAIT,
	WAIT_RECV,
	POLL,
	SIGNAL,
	AWAIT,
};

struct var {
	char name[NAME];
	unsigned int words;
	uint64_t init;
	size_t off; /* in the memory of its node */
};

/* A word of a variable */
struct place {
	int node, var;
	unsigned int word;
};

struct op {
	enum verb verb;
	int line;
	int peer; /* the node at the other end */
	int link; /* index of the QP to that node */
	struct place local, remote;
	uint64_t value, swap;
	/*
	 * Register for the loaded or polled value, or for the status of the
	 * WR; or -1
	 */
	int reg;
	/* Window of the peer, or for BIND of this node; or -1 */
	int window;
	unsigned int flags; /* IBV_SEND_* */
};

struct node_text {
	char name[NAME];
	struct var vars[MAX_VARS];
	char windows[MAX_WINDOWS][NAME];
	struct op ops[MAX_OPS];
	int num_vars, num_windows, num_ops;
};

/* A register, or a word of memory at the end of a round */
struct value {
	char text[2 * NAME + 8];
	int reg; /* -1: use the place */
	struct place place;
};

struct term {
	int value; /* index in the test's values */
	bool equal;
	uint64_t to;
};

enum kind {
	ALLOWED, /* must be observed */
	FORBIDDEN, /* must not be observed */
	UNSEEN, /* a NIC may do this, urxe does not */
};

struct outcome {
	enum kind kind;
	struct term terms[MAX_TERMS];
	int num_terms;
	char text[128];
};

enum transport { RC, UC, UD };

struct test {
	char name[64], title[256], source[256], options[128];
	enum transport transport;
	bool concurrent; /* one thread for each node */
	unsigned int seeds;
	struct node_text nodes[MAX_NODES];
	char regs[MAX_REGS][NAME];
	struct value values[MAX_TERMS];
	struct outcome outcomes[MAX_OUTCOMES];
	int num_nodes, num_regs, num_values, num_outcomes;
};

/* Outcome of a round: the value of each of the test's registers and places */
struct result {
	bool over;
	uint64_t values[MAX_TERMS];
};

/* Parse the file.  On an error, print a message and exit. */
void test_read(struct test *t, const char *path);

struct where_to {
	const char *device; /* NULL: the first one */
	uint8_t port, gid_index;
};

/*
 * Run the test once.  The calling process must not have opened a device yet.
 * @seed determines the order in which the nodes take turns.  Return false if
 * the device lacks a feature that the test needs.
 */
bool round_run(const struct test *t, const struct where_to *where,
	       uint64_t seed, struct result *result);
