/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Responses with data that arrived before an earlier one, which is lost or
 * late.  They are processed when that one has arrived.  At most EARLY_PSNS are
 * stored, in private memory.  Called with qp->lock held.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/socket/inbox.h"

/* more than can be outstanding: WINDOW_MAX and one request */
#define EARLY_PSNS 512u

struct early_answer; /* a response and its payload */

struct early {
	struct early_answer **table; /* of EARLY_PSNS, by PSN; NULL: none yet */
	uint32_t n; /* responses that are stored */
};

/*
 * Store a copy of a response to a packet in the window, which begins at una.
 * Without memory it is lost, like a packet.
 */
void early_put(struct early *e, uint32_t una, const struct inbox_answer *a);
/*
 * Find the first response from PSN una on.  Returns false if there is none.
 * *a is valid until the next call for e.
 */
bool early_first(const struct early *e, uint32_t una, struct inbox_answer *a);
/* Return true if a response with that PSN is stored. */
bool early_has(const struct early *e, uint32_t psn);
/*
 * Store the PSN of the last response from PSN una on in *psn.  Returns false
 * if there is none.
 */
bool early_last(const struct early *e, uint32_t una, uint32_t *psn);
/* Remove the response with that PSN, if there is one. */
void early_drop(struct early *e, uint32_t psn);
/* Remove all responses. */
void early_clear(struct early *e);
/* Release the memory. */
void early_free(struct early *e);
