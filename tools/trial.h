/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program is tried: under an adversary, with a referee who looks on, for a
 * limited time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "chaos/adversary.h"
#include "check.h"

/* Rows of options that run and env share (options.h). */
/* clang-format off */
#define DEVICE_OPTIONS							\
	OPTION_HEADING("Device"),					\
	{ 'f', "fabric", "NAME", "programs in the same fabric reach each " \
	  "other; it is made if needed", "$URXE_FABRIC or default" },	\
	{ 'H', "with-host-devices", NULL, "show the RDMA devices of the host " \
	  "as well", "hidden" },					\
	{ 'a', "adopt", NULL, "peers map the memory that is registered, which " \
	  "is faster", "the kernel copies" },				\
	{ 'w', "wire", "[=ADDRESS|INTERFACE]", "reach other hosts over RoCE " \
	  "v2, from the default address if none is given", "this host alone" }
#define ADVERSARY_OPTIONS						\
	{ 'A', "adversary", "[=[LEVEL,][SEED|sweep:N][,KNOB=VALUE...]]", \
	  "do all that the specification lets a device do, or, with the " \
	  "LEVEL hardware, all that NICs are known to do; the same SEED "	\
	  "repeats a run, sweep:N tries seeds 1 to N until one fails, "	\
	  "--adversary=help lists the knobs", "off; without a SEED one is drawn" }
/* clang-format on */

struct trial {
	bool adversary;
	bool sweep; /* one run with each seed from first to last */
	bool drawn; /* the seed, by us */
	uint64_t first, last;
	const char *knobs; /* from the comma on, or "" */
	uint64_t limit; /* ns for each run, 0: none */
	struct check check;
	bool own_fabric; /* each run of a sweep is in one of its own */
	bool own_failure; /* the last run's, without what the referee found */
	/* the command line as it was typed, and which word chose the adversary
	 */
	char **words;
	int word;
};

#define TRIAL_CHOSEN (-1)

/*
 * The value of --adversary, or NULL.  TRIAL_CHOSEN, or the exit code if it was
 * help, or was refused.
 */
int trial_choose(struct trial *t, const char *value);
/* The value of --timeout: the same. */
int trial_limit(struct trial *t, const char *value);

/* Has anybody to wait for the program? */
bool trial_is_wanted(const struct trial *t);

/*
 * The variable for one seed, for who executes the program; one that is there
 * already is looked at.  0, or the exit code.
 */
int trial_set_environment(const struct trial *t);

/* Run argv as often as is asked for, say what failed; the exit code. */
int trial_run(struct trial *t, char **argv);
