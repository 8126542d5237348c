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
	int32_t pid, tid;
	char program[TRACE_NAME], thread[TRACE_NAME];
};

struct trace_record {
	const struct trace_thread *thread;
	uint64_t time; /* ns, CLOCK_MONOTONIC */
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
void trace_input_close(struct trace_input *in);

/*
 * What all threads of the inputs recorded since the last call, ordered by time.
 * 0, or the exit code: something is damaged, and what is not is there.
 */
int trace_read(struct trace_input *in, unsigned int n, struct trace_batch *b);
void trace_batch_free(struct trace_batch *b);
/* Threads that found no room. */
uint64_t trace_input_lost(const struct trace_input *in);
