/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * urxe run with supervision: a program is run under the adversary, with the
 * referee (check.h), with faults, or with a time limit. A sweep repeats it
 * with one seed after another until a run fails.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "chaos/adversary.h"
#include "check.h"

/* Options that urxe run and urxe env share (options.h). */
/* clang-format off */
#define DEVICE_OPTIONS							\
	OPTION_HEADING("Device"),					\
	{ 'D', "devices", "N", "number of devices, urxe0 to urxe(N-1), of a " \
	  "fabric that is created: 1 to 8", "$URXE_DEVICES or 1" },	\
	{ 'K', "cluster", "FILE", "create the hosts, devices, switches and " \
	  "links of a cluster file: man urxe-cluster", "$URXE_CLUSTER or one host" }, \
	{ 'O', "host", "NAME", "run COMMAND on this host of the cluster file", \
	  "$URXE_HOST or the first one" },				\
	{ 'N', "profile", "NAME|FILE[,...]", "give the devices the limits and " \
	  "features of NICs; urxe profile list prints the names; sweep: run " \
	  "COMMAND once with each", "$URXE_PROFILE or none" },		\
	{ 'L', "link-layer", "ethernet|infiniband[,...]", "link layer of the " \
	  "devices of a fabric that is created", "$URXE_LINK_LAYER or ethernet" }, \
	{ 'S', "sm", "builtin|external", "subnet manager of InfiniBand; external: " \
	  "a program such as OpenSM", "$URXE_SM or builtin" },		\
	{ 'f', "fabric", "NAME", "programs in the same fabric reach each " \
	  "other; it is created if needed", "$URXE_FABRIC or default" },	\
	{ 'H', "with-host-devices", NULL, "show the RDMA devices of the host " \
	  "as well", "hidden" },					\
	{ 'a', "adopt", NULL, "let peers map registered memory, which is " \
	  "faster", "the kernel copies" },				\
	{ 'w', "wire", "[=ADDRESS|INTERFACE]", "reach other hosts over RoCE " \
	  "v2, from the default address if none is given", "this host only" }
#define ADVERSARY_OPTIONS						\
	{ 'I', "timing", NULL, "let messages take the time that the rates and " \
	  "latencies of links imply", "no delay" },			\
	{ 'A', "adversary", "[=[LEVEL,][SEED|sweep:N][,NAME=VALUE...]]", \
	  "do all that the specification lets a device do, or, with the " \
	  "LEVEL hardware, all that NICs are known to do; the same SEED "	\
	  "repeats a run, sweep:N tries seeds 1 to N until one fails, "	\
	  "--adversary=help lists the options", "off; a random SEED if none is given" }
/* clang-format on */

struct trial {
	bool adversary;
	bool sweep; /* one run for each seed from first to last */
	bool drawn; /* the seed was chosen at random */
	uint64_t first, last;
	/* options of the adversary from the comma on, or "" */
	const char *options;
	uint64_t limit; /* time limit of each run in ns, 0: none */
	struct check check;
	bool profiles; /* one run for each profile */
	bool own_fabric; /* each run of a sweep has a fabric of its own */
	/*
	 * the last run failed by itself, before findings of the referee are
	 * counted
	 */
	bool own_failure;
	/*
	 * the command line as typed, and the index of the word that has
	 * --adversary
	 */
	char **words;
	int word;
};

#define TRIAL_CHOSEN (-1)
#define TRIAL_OTHER (-2)

/* What DEVICE_OPTIONS set, besides the environment. */
struct device_options {
	const char *fabric; /* NULL: that of the environment */
	bool host;
};

struct record_options;

/*
 * Handle option c of DEVICE_OPTIONS, ADVERSARY_OPTIONS or RECORD_OPTIONS with
 * its value.  Return TRIAL_CHOSEN, TRIAL_OTHER if it is none of them, or the
 * exit code after printing the error.
 */
int trial_option(struct trial *t, struct device_options *device,
		 struct record_options *record, int c, const char *value);

/*
 * Handle --adversary; @value is NULL if it has none. Return TRIAL_CHOSEN, or
 * the exit code if it was "help" (which is printed) or invalid (which is
 * logged).
 */
int trial_choose(struct trial *t, const char *value);
/*
 * Handle --timeout. Return TRIAL_CHOSEN, or the exit code if @value is
 * invalid.
 */
int trial_limit(struct trial *t, const char *value);

/*
 * Whether the program must be run as a child and waited for. If not, urxe run
 * replaces itself with the program.
 */
bool trial_is_wanted(const struct trial *t);

/*
 * Set URXE_ADVERSARY, for a program or shell that is executed without
 * supervision. Without --adversary, check the value that is set already.
 * Return 0, or the exit code after logging the error.
 */
int trial_set_environment(const struct trial *t);

/*
 * Run argv once, or once for each seed, and report a failure. Return the exit
 * code.
 */
int trial_run(struct trial *t, char **argv);
