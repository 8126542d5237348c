/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Traces, read (kernel-shim/trace/format.h): what was recorded, in order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "trace/trace.h"

/* Who recorded; one for each ring that was found. */
struct trace_thread {
	const struct trace_input *input;
	uint64_t at; /* where its ring begins in the file */
	uint64_t seen; /* records before this position were read */
	uint64_t lost; /* slots that were overwritten before they were read */
	uint64_t fabric; /* that its QPNs are of; 0: not known */
	int32_t pid, tid; /* as the process itself sees them */
	int nth; /* processes had that PID before, or elsewhere */
	int32_t process; /* its PID if there was none, else a number of its own */
	int64_t ahead; /* of the machine's clock, ns */
	char program[TRACE_NAME], thread[TRACE_NAME];
};

/* As lines have it: program[PID], [PID/TID], or [PID#2/TID] of the second one with that PID. */
#define TRACE_WHO (TRACE_NAME + 48)
void trace_who(const struct trace_thread *t, char who[TRACE_WHO]);

struct trace_record {
	const struct trace_thread *thread;
	uint64_t time; /* ns, the machine's CLOCK_MONOTONIC */
	uint32_t what; /* enum trace_event, or one of a later version */
	uint32_t qpn;
	unsigned int n;
	const uint64_t *value;
};

struct trace_input {
	const char *path;
	int fd;
	uint32_t slots;
	uint64_t wall; /* of CLOCK_MONOTONIC's 0 */
	char boot[TRACE_BOOT]; /* of the machine; "": not known */
	struct trace_thread **thread;
	unsigned int threads;
};

struct trace_batch {
	struct trace_record *record;
	size_t records;
	void **copy; /* of slots, where the values are */
	size_t copies;
};

/* 0, or the exit code, and it was said why. */
int trace_input_open(struct trace_input *in, const char *path);
/* Is what is there a trace, of any version? */
bool trace_is_there(const char *path);
/* Not 0: they are of two machines, or boots, and cannot be put together. */
int trace_input_fits(const struct trace_input *in,
		     const struct trace_input *first);
void trace_input_close(struct trace_input *in);

/*
 * What all threads of the inputs recorded since the last call, ordered by time.
 * 0, or the exit code: something is damaged, and what is not is there.
 */
int trace_read(struct trace_input *in, unsigned int n, struct trace_batch *b);
void trace_batch_free(struct trace_batch *b);
/* Threads that found no room. */
uint64_t trace_input_lost(const struct trace_input *in);
