/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A request to the built-in subnet administrator, and what the files sa*.c have
 * in common.  Only these include this header.
 */
#pragma once

#include <string.h>

#include "agents.h"

#define RECORD_MAX 176 /* bytes; a multiple of 8 */

struct component {
	uint8_t bit; /* of the component mask */
	uint16_t at, bits; /* in the record */
};

/* A request, and the records found so far. */
struct query {
	struct urxe_fabric *f;
	uint32_t from; /* the device that sent it */
	const uint8_t *mad;
	const uint8_t *wanted; /* the record of the query */
	uint64_t mask;
	bool table; /* GetTable: any number of records */
	/*
	 * the modifier has bit 31: a port matches if it has the set bits of
	 * the capability mask (IB 15.2.5.3)
	 */
	bool caps;
	uint8_t *out; /* SA_DATA bytes for the header, then the records */
	size_t stride, records, room;
	bool failed; /* no memory */
};

static inline bool wants(const struct query *q, unsigned int bit)
{
	return q->mask >> bit & 1;
}

/* Has the request an SM_Key, which only trusted programs know? */
static inline bool query_is_trusted(const struct query *q)
{
	static const uint8_t none[8];

	return memcmp(q->mad + SA_KEY, none, sizeof(none));
}

/* Append a record of q->stride bytes to the response. */
void record_add(struct query *q, const uint8_t *record);

/* Requests return the status of the response; each sets q->stride. */

/* sa_service.c */
uint16_t services_find(struct query *q);
uint16_t service_set(struct query *q);
uint16_t service_delete(struct query *q);
