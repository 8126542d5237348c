/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is in a trace.
 *
 * One file is shared by all processes that are traced.  Its first page says
 * what it is; then come rings, one for each thread of each process, which the
 * thread alone writes and whose oldest records it overwrites.  A record is one
 * slot or a few, an event of events.h and its values.  Positions count slots
 * since the ring's beginning: whole records are there from `oldest` to
 * `written`.  A writer raises oldest, then (release fence) overwrites, then
 * raises written (release): what a killed thread did last is there, and what it
 * was writing is not.  A reader loads written, then (acquire fence) slots,
 * copies, then (acquire fence) loads oldest, and drops what is before that.
 *
 * A ring has its place for all the slots that it may get, and begins with few:
 * it doubles before it would overwrite a record for the first time, so that no
 * position moves.  Where there is no room it stays as it is.
 *
 * Nothing in a file can be trusted: who reads it checks every number.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "base/atomic.h"

#define TRACE_MAGIC 0x0a637274657872ull /* "rxetrc\n" */
#define TRACE_RING_MAGIC 0x676e69727478ull
/* Is raised when this file or events.h changes what a record means. */
#define TRACE_VERSION 3
#define TRACE_PAGE 4096u

#define TRACE_BOOT 40

struct trace_file {
	uint64_t magic;
	uint32_t version;
	uint32_t slots; /* that a ring has place for, a power of two */
	/* CLOCK_REALTIME when the machine's CLOCK_MONOTONIC was 0, ns */
	uint64_t wall;
	_Atomic uint64_t end; /* bytes; where the next ring begins */
	_Atomic uint64_t lost; /* threads that found no room for a ring */
	char boot[TRACE_BOOT]; /* the kernel's name of it; "": not known */
};

#define TRACE_NAME 32

struct trace_ring {
	_Atomic uint64_t magic; /* stored (release) when the rest is there */
	_Atomic uint64_t written, oldest;
	_Atomic uint64_t fabric; /* that QPNs are of; 0: not known */
	_Atomic uint32_t slots; /* so far, a power of two */
	int32_t pid, tid; /* as the process itself sees them */
	/* Of those with that PID it is the one in this namespace (an inode)
	 * that began then (/proc/PID/stat); 0: not known */
	uint64_t pidns, began;
	/* ns that its CLOCK_MONOTONIC, in its time namespace, is ahead of the
	 * machine's */
	int64_t ahead;
	char program[TRACE_NAME]; /* their last byte is 0 */
	char thread[TRACE_NAME];
};

#define TRACE_FIRST 6 /* values in a record's first slot */
#define TRACE_MORE 8 /* in each slot after it */
#define TRACE_SLOTS 16 /* that one record may have */
#define TRACE_VALUES (TRACE_FIRST + (TRACE_SLOTS - 1) * TRACE_MORE)

struct trace_slot {
	union {
		struct {
			uint64_t time; /* its CLOCK_MONOTONIC, ns */
			uint16_t what; /* enum trace_event */
			uint8_t slots; /* of this record */
			uint8_t values;
			uint32_t qpn; /* or 0 */
			uint64_t value[TRACE_FIRST];
		};
		uint64_t more[TRACE_MORE];
	};
};
static_assert(sizeof(struct trace_slot) == 64, "a cache line");

/* Slots of a record with n values */
#define TRACE_SLOTS_OF(n)     \
	((n) <= TRACE_FIRST ? \
		 1 :          \
		 1 + ((n)-TRACE_FIRST + TRACE_MORE - 1) / TRACE_MORE)
static_assert(TRACE_SLOTS_OF(TRACE_VALUES) == TRACE_SLOTS, "the longest");

#define TRACE_BYTES(slots) ((uint64_t)(slots) * sizeof(struct trace_slot))
#define TRACE_RING_BYTES(slots) (TRACE_PAGE + TRACE_BYTES(slots))
/* 64 KiB to 1 GiB of records */
#define TRACE_MIN_SLOTS (1u << 10)
#define TRACE_MAX_SLOTS (1u << 24)
#define TRACE_DEFAULT_SLOTS (1u << 14)
/* Bytes of each message; and if nobody says how many */
#define TRACE_MAX_PAYLOAD (1u << 16)
#define TRACE_DEFAULT_PAYLOAD 256
#define TRACE_MAX_BYTES (1ull << 46) /* of a file */
