/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reader of trace files (kernel-shim/trace/format.h). It merges the rings of
 * all threads, of one file or several, into records ordered by time. The
 * files may be written meanwhile. Numbers in a file are checked before they
 * are used.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/* A thread that recorded: one for each ring that was found. */
struct trace_thread {
	const struct trace_input *input;
	uint64_t at; /* offset of its ring in the file */
	uint64_t seen; /* position up to which records were read */
	uint64_t lost; /* number of slots overwritten before they were read */
	uint64_t fabric; /* id of the fabric of its QPNs; 0: not known */
	int32_t pid, tid; /* in the PID namespace of the process */
	/* number of other processes with this PID that were found before */
	int nth;
	/* unique number of the process: its PID if nth is 0 */
	int32_t process;
	/* ns that its CLOCK_MONOTONIC (time namespace) is ahead */
	int64_t ahead;
	char program[TRACE_NAME], thread[TRACE_NAME];
};

/*
 * Name of the thread in text output: program[PID], program[PID/TID], or
 * program[PID#2/TID] for the second process with that PID.
 */
#define TRACE_WHO (TRACE_NAME + 48)
void trace_who(const struct trace_thread *t, char who[TRACE_WHO]);

struct trace_record {
	const struct trace_thread *thread;
	uint64_t time; /* ns, CLOCK_MONOTONIC of the initial time namespace */
	/* enum trace_event; unknown values: written by a later version */
	uint32_t what;
	uint32_t qpn;
	unsigned int n;
	const uint64_t *value;
};

struct trace_input {
	const char *path;
	int fd;
	uint32_t slots;
	uint64_t wall; /* CLOCK_REALTIME when CLOCK_MONOTONIC was 0, ns */
	char boot[TRACE_BOOT]; /* boot id of the kernel; "": not known */
	struct trace_thread **thread;
	unsigned int threads;
};

struct trace_batch {
	struct trace_record *record;
	size_t records;
	void **copy; /* copies of slots; record.value points into them */
	size_t copies;
};

/* Open a trace. Return 0, or the exit code after logging the error. */
int trace_input_open(struct trace_input *in, const char *path);
/* Whether @path is a regular file with a trace of any version. */
bool trace_exists(const char *path);
/*
 * Check that two traces have the same clock. If they are of two machines or
 * two boots, log it and return the exit code. Return 0 if they can be merged.
 */
int trace_input_fits(const struct trace_input *in,
		     const struct trace_input *first);
void trace_input_close(struct trace_input *in);

/*
 * Read what all threads of the inputs recorded since the last call, ordered
 * by time. If something is damaged, log it and return the exit code; the
 * batch then has the records that could be read. Otherwise return 0. The
 * caller frees the batch with trace_batch_free(), also after an error.
 */
int trace_read(struct trace_input *in, unsigned int n, struct trace_batch *b);
void trace_batch_free(struct trace_batch *b);
/* Number of threads that have no ring because there was no room for it. */
uint64_t trace_input_lost(const struct trace_input *in);
