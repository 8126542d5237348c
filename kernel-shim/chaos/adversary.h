/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adversary's seed and knobs, of which the environment tells all processes:
 *
 *	URXE_ADVERSARY=SEED[,LEVEL][,KNOB=VALUE...]
 *
 * SEED is a number.  A level is a set of defaults: "hardware" does what
 * shipping NICs are known to do, "specification" all that is allowed, and is
 * the default.  A knob's value is how many of 1000 meet it, or a percentage
 * (2% or 0.5%).  The word none in place of a knob turns off all knobs that are
 * not named after it, and a level sets all of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "chance.h"

#define ADVERSARY_SHARE 1000 /* the limit of a knob that is a share */
#define ADVERSARY_WHY 512

/*
 * KNOB(name, default of hardware, default of specification, limit, meaning);
 * docs/adversary.md has each
 */
/* clang-format off */
#define ADVERSARY_KNOBS(KNOB)                                                        \
	KNOB(gather, 300, 300, 1000, "sends whose local memory is read late")        \
	KNOB(place, 0, 300, 1000, "messages whose bytes come in pieces")             \
	KNOB(overtake, 500, 500, 1000, "READs and atomics that are overtaken")       \
	KNOB(atomic, 500, 500, 1000, "atomics that are a read and a later write")    \
	KNOB(reread, 200, 200, 1000, "READs that are answered twice")                \
	KNOB(deliver, 300, 300, 1000, "receives that complete late")                 \
	KNOB(complete, 300, 300, 1000, "sends that complete late")                   \
	KNOB(retry, 20, 20, 1000, "messages that come late, as if sent again")       \
	KNOB(loss, 20, 20, 1000, "datagrams and UC messages that are lost")          \
	KNOB(reorder, 0, 100, 1000, "datagrams that are overtaken")                  \
	KNOB(fill, 0, 1000, 1000, "receives and READs with a pattern before")        \
	KNOB(rnr, 50, 50, 1000, "receives that are posted late")                     \
	KNOB(arm, 200, 200, 1000, "armings of a CQ that skip what is there already") \
	KNOB(wake, 100, 100, 1000, "wake-ups of a channel for nothing")              \
	KNOB(async, 300, 300, 1000, "asynchronous events that come late")            \
	KNOB(cm, 300, 300, 1000, "events of rdma_cm that come late")                 \
	KNOB(slow, 5, 5, 1000, "verbs that take their time")                         \
	KNOB(undefined, 1000, 1000, 1000, "failed completions and GRHs with noise")  \
	KNOB(ticks, 16, 16, 10000, "visits that a delay lasts, at most")             \
	KNOB(lines, 300, 0, 1000, "messages that come line by line")                 \
	KNOB(early, 0, 300, 1000, "events of rdma_cm before their command returns")

/* clang-format on */
enum adversary_knob {
#define KNOB(name, ...) KNOB_##name,
	ADVERSARY_KNOBS(KNOB)
#undef KNOB
	KNOBS
};

enum adversary_level { ADVERSARY_HARDWARE, ADVERSARY_SPECIFICATION };
#define ADVERSARY_LEVELS (ADVERSARY_SPECIFICATION + 1)
extern const char *const adversary_levels[ADVERSARY_LEVELS];

struct adversary_knob_info {
	const char *name;
	uint32_t preset[ADVERSARY_LEVELS], limit;
	const char *meaning;
};
extern const struct adversary_knob_info adversary_knobs[KNOBS];

struct adversary {
	bool on;
	uint64_t seed;
	struct chance chance; /* of this program */
	uint32_t knob[KNOBS]; /* per mille, but for ticks */
};

/* The level of that name, or ADVERSARY_LEVELS. */
int adversary_level_find(const char *name, size_t len);

/* Is all of it a seed? */
bool adversary_seed_parse(const char *text, size_t len, uint64_t *seed);

/*
 * What a program of that name is to meet.  False: why, of ADVERSARY_WHY bytes,
 * says what is wrong.
 */
bool adversary_parse(struct adversary *a, const char *text,
		     const char *program, char *why, size_t len);

/*
 * What the environment says for this process, read once; the program's name is
 * as in argv[0] without its folders.  NULL: it cannot be understood, for the
 * reason that adversary_why() has.
 */
const struct adversary *adversary_of_process(void);
const char *adversary_why(void);

/* Does the nth of c meet that knob? */
static inline bool adversary_meets(const struct adversary *a, struct chance c,
				   enum adversary_knob knob, uint64_t nth)
{
	return chance_below(c, knob, nth, 1000) < a->knob[knob];
}
