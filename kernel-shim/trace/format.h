/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The format of a trace file: a header page, followed by ring buffers of
 * records.  All traced processes map one file and write to it (trace.c).
 * `urxe trace` reads it (tools/trace/trace_file.c), also while they run.
 *
 * A ring has one writer, a thread, and any number of readers.  A thread has
 * up to two rings for each shared object that is linked with trace.c
 * (trace.c, struct recorder).  The writer overwrites its oldest records.
 * There is no lock, and neither side waits for the other.  A record is an
 * event of events.h with its values, in one slot or a few consecutive ones.
 * A position counts slots since the ring was made.  Its slot is position %
 * slots.  Complete records are at positions `oldest` to `written` - 1.
 *
 *	writer					reader
 *	oldest = first record not overwritten	load written
 *	(release fence)				(acquire fence)
 *	write the record			load slots
 *	written += slots (release)		copy the records
 *						(acquire fence)
 *						load oldest, drop what is
 *						before it
 *
 * The release store of written pairs with the first acquire fence: all
 * records before it are complete, and slots is at least as new.  The release
 * fence pairs with the second acquire fence, as in a seqlock: a reader that
 * copied a word of a newer record also loads the value of oldest that the
 * writer stored before, and drops the overwritten record.  The reader uses
 * pread(2).
 *
 * If a thread is killed, its completed records are in the file, and the one
 * that it was writing is not.
 *
 * A ring has a range of the file for the maximum number of slots,
 * trace_file.slots, but starts with TRACE_MIN_SLOTS allocated.  It doubles
 * before it would overwrite a record for the first time, so each position
 * keeps its slot.  If it cannot grow, it keeps its size.
 *
 * A reader must not trust the file: it checks every number.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "base/atomic.h"

#define TRACE_MAGIC 0x0a637274657872ull /* "rxetrc\n" */
#define TRACE_RING_MAGIC 0x676e69727478ull
/* Incremented when this file or events.h changes the meaning of a record. */
#define TRACE_VERSION 3
#define TRACE_PAGE 4096u

#define TRACE_BOOT 40

struct trace_file {
	uint64_t magic;
	uint32_t version;
	uint32_t slots; /* maximum of a ring, a power of two */
	/* CLOCK_REALTIME when the host's CLOCK_MONOTONIC was 0, ns */
	uint64_t wall;
	_Atomic uint64_t end; /* file offset of the next ring, bytes */
	_Atomic uint64_t lost; /* failures to make a ring */
	char boot[TRACE_BOOT]; /* boot_id of the kernel; "": unknown */
};

#define TRACE_NAME 32

struct trace_ring {
	_Atomic uint64_t magic; /* stored (release) after the members below */
	_Atomic uint64_t written, oldest; /* positions */
	_Atomic uint64_t fabric; /* inode of the fabric; 0: unknown */
	_Atomic uint32_t slots; /* current number, a power of two */
	int32_t pid, tid; /* in the process's own PID namespace */
	/*
	 * Inode of the PID namespace and start time (field 22 of
	 * /proc/PID/stat, clock ticks): they tell processes with equal PIDs
	 * apart.  0: unknown
	 */
	uint64_t pidns, began;
	/*
	 * ns by which CLOCK_MONOTONIC in the process's time namespace is
	 * ahead of the host's
	 */
	int64_t ahead;
	char program[TRACE_NAME]; /* NUL-terminated */
	char thread[TRACE_NAME];
};

#define TRACE_FIRST 6 /* values in the first slot of a record */
#define TRACE_MORE 8 /* values in each further slot */
#define TRACE_SLOTS 16 /* maximum slots of a record */
#define TRACE_VALUES (TRACE_FIRST + (TRACE_SLOTS - 1) * TRACE_MORE)

struct trace_slot {
	union {
		struct {
			uint64_t time; /* writer's CLOCK_MONOTONIC, ns */
			uint16_t what; /* enum trace_event */
			uint8_t slots; /* number of slots of this record */
			uint8_t values; /* number of values */
			uint32_t qpn; /* 0: none */
			uint64_t value[TRACE_FIRST];
		};
		uint64_t more[TRACE_MORE];
	};
};
static_assert(sizeof(struct trace_slot) == 64, "a cache line");

/* Number of slots of a record with n values */
#define TRACE_SLOTS_OF(n)     \
	((n) <= TRACE_FIRST ? \
		 1 :          \
		 1 + ((n)-TRACE_FIRST + TRACE_MORE - 1) / TRACE_MORE)
static_assert(TRACE_SLOTS_OF(TRACE_VALUES) == TRACE_SLOTS, "the longest");

#define TRACE_BYTES(slots) ((uint64_t)(slots) * sizeof(struct trace_slot))
#define TRACE_RING_BYTES(slots) (TRACE_PAGE + TRACE_BYTES(slots))
/* Limits of trace_file.slots: 64 KiB to 1 GiB of records */
#define TRACE_MIN_SLOTS (1u << 10)
#define TRACE_MAX_SLOTS (1u << 24)
#define TRACE_DEFAULT_SLOTS (1u << 14)
/* Recorded bytes of each message: maximum, and default of --trace-payload */
#define TRACE_MAX_PAYLOAD (1u << 16)
#define TRACE_DEFAULT_PAYLOAD 256
#define TRACE_MAX_BYTES (1ull << 46) /* limit of the offset of a ring */
