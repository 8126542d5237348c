/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Configuration of the adversary (urxe run --adversary), the transport that
 * delays, reorders and loses what the InfiniBand specification allows it to.
 * The environment passes it to all processes:
 *
 *	URXE_ADVERSARY=SEED[,LEVEL][,OPTION=VALUE...]
 *
 * SEED is a number for the seeded random numbers (random.h).  LEVEL is a set
 * of defaults: "hardware" does what shipping NICs are known to do;
 * "specification", the default, does all that is allowed.  An option is the
 * probability of one behaviour, in per mille or as a percentage (2%, 0.5%);
 * `ticks` is a number.  Words apply from left to right: a level sets all
 * options, and "none" sets all probabilities to 0.
 *
 * The provider reads the configuration for the data path, and the preload
 * library reads its own copy for rdma_cm.  It does not change after it is
 * parsed.  docs/adversary.md is the reference.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "random.h"

#define ADVERSARY_SHARE 1000 /* limit of options that are probabilities */
#define ADVERSARY_WHY 512 /* size of a buffer for an error message */

/*
 * OPTION(name, default at level hardware, default at level specification,
 * limit, meaning)
 */
/* clang-format off */
#define ADVERSARY_OPTION_LIST(OPTION)                                                  \
	OPTION(gather, 300, 300, 1000, "sends whose payload is read late")             \
	OPTION(place, 0, 300, 1000, "messages written in pieces, in any order")        \
	OPTION(overtake, 500, 500, 1000, "READs and atomics that later WRs overtake")  \
	OPTION(atomic, 500, 500, 1000, "atomics executed as a read and a later write") \
	OPTION(reread, 200, 200, 1000, "READs that are executed twice")                \
	OPTION(deliver, 300, 300, 1000, "receives that complete late")                 \
	OPTION(complete, 300, 300, 1000, "sends that complete late")                   \
	OPTION(retry, 20, 20, 1000, "messages delayed as if retransmitted")            \
	OPTION(loss, 20, 20, 1000, "datagrams and UC messages that are lost")          \
	OPTION(reorder, 0, 100, 1000, "datagrams that later ones overtake")            \
	OPTION(fill, 0, 1000, 1000, "receives and READs whose buffer is overwritten")  \
	OPTION(rnr, 50, 50, 1000, "receives that are posted late")                     \
	OPTION(arm, 200, 200, 1000, "CQ armings that ignore earlier completions")      \
	OPTION(wake, 100, 100, 1000, "CQ armings that raise an extra event")           \
	OPTION(async, 300, 300, 1000, "asynchronous events that come late")            \
	OPTION(cm, 300, 300, 1000, "rdma_cm events that come late")                    \
	OPTION(slow, 5, 5, 1000, "verbs that return late")                             \
	OPTION(undefined, 1000, 1000, 1000, "undefined fields that get random values") \
	OPTION(ticks, 16, 16, 10000, "longest delay, in ticks (polls and posts)")      \
	OPTION(lines, 300, 0, 1000, "messages written line by line (64 bytes)")        \
	OPTION(early, 0, 300, 1000, "rdma_cm events before their command returns")

enum adversary_option {
#define OPTION(name, ...) ADV_##name,
	ADVERSARY_OPTION_LIST(OPTION)
#undef OPTION
	ADV_OPTIONS
};
/* clang-format on */

enum adversary_level { ADVERSARY_HARDWARE, ADVERSARY_SPECIFICATION };
#define ADVERSARY_LEVELS (ADVERSARY_SPECIFICATION + 1)
extern const char *const adversary_levels[ADVERSARY_LEVELS];

struct adversary_option_info {
	const char *name;
	uint32_t preset[ADVERSARY_LEVELS], limit;
	const char *meaning;
};
extern const struct adversary_option_info adversary_options[ADV_OPTIONS];

struct adversary {
	bool on; /* URXE_ADVERSARY is set */
	uint64_t seed;
	struct random_stream random; /* stream of this program */
	uint32_t option[ADV_OPTIONS]; /* per mille, except ticks */
};

/* Return the level of that name, or ADVERSARY_LEVELS. */
int adversary_level_find(const char *name, size_t len);

/*
 * Parse a seed, decimal or hexadecimal.  False: @text is not a number, or not
 * less than 2^64.
 */
bool adversary_seed_parse(const char *text, size_t len, uint64_t *seed);

/*
 * Parse @text, a value of URXE_ADVERSARY, for a program of name @program.
 * False: it is invalid; @why, of @len bytes (ADVERSARY_WHY), has an error
 * message.
 */
bool adversary_parse(struct adversary *a, const char *text,
		     const char *program, char *why, size_t len);

/*
 * Return the configuration of this process, from the environment, which is
 * parsed once.  The name of the program is argv[0] without its directories.
 * NULL: URXE_ADVERSARY is invalid; adversary_why() has the error message.  If
 * it is not set, `on` is false.  errno is preserved.
 */
const struct adversary *adversary_of_process(void);
const char *adversary_why(void);

/*
 * Decide whether event number @nth of stream @c is affected by option @option.
 * The decision is a function of the arguments and the seed.
 */
static inline bool adversary_applies(const struct adversary *a,
				     struct random_stream c,
				     enum adversary_option option, uint64_t nth)
{
	return random_below(c, option, nth, 1000) < a->option[option];
}
