/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester's window: which PSNs are out, and how many may be (IB 9.7.5.1,
 * go-back-N).  Nothing here sends or waits.
 *
 *	una ... next	out, and not answered
 *	next ... end	begun, and not out (or out, and to be sent again)
 *
 * Nothing from high on was ever out: an answer to that is not ours.
 *
 * It grows by a packet for each window that was answered, and is halved by a
 * loss, once for what was out then.
 *
 * Packets ask for an ACK so often that what is out behind the last one that did
 * is less than half of the window: it cannot be full of packets of which none
 * is answered, also when it was halved since.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/psn.h"

#define WINDOW_FIRST 128u /* as rxe has it, always */
#define WINDOW_LEAST 4u
#define WINDOW_MOST 256u
#define WINDOW_ASK 32u /* for an ACK, at the latest */

struct wire_window {
	uint32_t una, next, high, end; /* PSNs */
	uint32_t size; /* packets */
	uint32_t answered; /* since it grew last */
	uint32_t unasked; /* sent since the last one that asked for an ACK */
	uint32_t cut_at; /* it was halved because of a loss before this PSN */
	bool cut;
};

/* Nothing is out, and the next PSN is psn. */
void window_begin(struct wire_window *w, uint32_t psn);

/* A message of n packets was begun: its first PSN. */
uint32_t window_extend(struct wire_window *w, uint32_t n);

/* How many packets may go out now. */
uint32_t window_room(const struct wire_window *w);

static inline bool window_is_quiet(const struct wire_window *w)
{
	return w->una == w->next;
}

/* Must the next packet ask for an ACK? */
bool window_asks(const struct wire_window *w);

/* n went out; asked: the last one asks for an ACK. */
void window_sent(struct wire_window *w, uint32_t n, bool asked);

/* Was psn out, and is it not answered? */
bool window_has(const struct wire_window *w, uint32_t psn);

/* All before psn is answered, which is behind some that is out.  False: that is
 * no news. */
bool window_answered(struct wire_window *w, uint32_t psn);

/* What is not answered goes out again; lost: because packets were. */
void window_go_back(struct wire_window *w, bool lost);

/* A router is congested: no more than half as much. */
void window_go_slow(struct wire_window *w);
