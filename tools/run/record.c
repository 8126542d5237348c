// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The --trace options: create the trace file and set URXE_TRACE*. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/number.h"
#include "common/commands.h"
#include "record.h"
#include "trace/trace.h"

bool record_option(struct record_options *o, int c, const char *arg)
{
	if (c == 'T')
		o->path = arg;
	else if (c == 'R')
		o->records = arg;
	else if (c == 'P')
		o->payload = arg ? arg : "";
	else
		return false;
	return true;
}

/* Parse a number from 1 to limit.  Return 0 if it is invalid. */
static uint64_t number(const char *text, uint64_t limit)
{
	uint64_t n;

	return number_parse(text, strlen(text), limit, &n) ? n : 0;
}

static int set_payload(const char *payload)
{
	char bytes[24];
	uint64_t n = TRACE_DEFAULT_PAYLOAD;

	if (!payload)
		return 0;
	if (*payload)
		n = number(payload, TRACE_MAX_PAYLOAD);
	if (!n)
		return fail(EXIT_USAGE, "--trace-payload: use 1 to %u bytes",
			    TRACE_MAX_PAYLOAD);
	snprintf(bytes, sizeof(bytes), "%u", (unsigned int)n);
	return setenv("URXE_TRACE_PAYLOAD", bytes, 1) ? fail(1, "no memory") :
							0;
}

/* Get the number of records of each thread, rounded up to a power of 2. */
static int slots_of(const char *records, uint32_t *slots)
{
	uint64_t wanted;

	*slots = TRACE_DEFAULT_SLOTS;
	if (!records)
		return 0;
	wanted = number(records, TRACE_MAX_SLOTS);
	if (!wanted)
		return fail(EXIT_USAGE, "--trace-records: use 1 to %u",
			    TRACE_MAX_SLOTS);
	for (*slots = TRACE_MIN_SLOTS; *slots < wanted; *slots *= 2)
		;
	return 0;
}

/*
 * Create the trace file and set URXE_TRACE to its absolute path, since
 * programs may have other working directories.
 */
static int set_trace(const char *path, uint32_t slots)
{
	int ret = trace_make(path, slots);
	char *whole = ret ? NULL : realpath(path, NULL);

	if (!whole)
		return fail(1, "--trace: %s: %s", path,
			    ret == -EINVAL ? "not a regular file" :
					     strerror(ret ? -ret : errno));
	ret = setenv("URXE_TRACE", whole, 1);
	free(whole);
	return ret ? fail(1, "no memory") : 0;
}

int record_set_environment(const struct record_options *o)
{
	uint32_t slots;
	int ret;

	if (!o->path && (o->records || o->payload))
		return fail(EXIT_USAGE, "--trace-%s requires --trace",
			    o->records ? "records" : "payload");
	if (!o->path)
		return 0;
	ret = slots_of(o->records, &slots);
	if (!ret)
		ret = set_payload(o->payload);
	return ret ? ret : set_trace(o->path, slots);
}
