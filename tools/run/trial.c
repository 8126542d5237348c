// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options --adversary and --timeout of urxe run, and the runs that they ask
 * for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "common/commands.h"
#include "common/profiles.h"
#include "common/wire.h"
#include "record.h"
#include "supervise.h"
#include "trial.h"
#include "why/why.h"

#define SWEEP "sweep:"
#define NS_PER_S 1000000000ull

static int list_options(void)
{
	const struct adversary_option_info *k;
	int i;

	puts("--adversary=[LEVEL,][SEED][,NAME=VALUE...]\n"
	     "--adversary=[LEVEL,]sweep:N|FIRST-LAST[,NAME=VALUE...]\n\n"
	     "LEVEL is hardware: the device does what shipping NICs are known to do;\n"
	     "or specification, the default: it does all that is allowed.  SEED is a\n"
	     "number; the default is random.  NAME is an option of the table below.\n"
	     "VALUE is a probability: 0 to 1000 (per mille), or a percentage such as\n"
	     "2% or 0.5%; for ticks it is a count.  The word none turns off all options\n"
	     "that are not named after it.\n\n"
	     "option    hardware  specification  what it affects");
	for (i = 0; i < ADV_OPTIONS; i++) {
		k = &adversary_options[i];
		printf("%-9s %8u %14u  %s\n", k->name,
		       k->preset[ADVERSARY_HARDWARE],
		       k->preset[ADVERSARY_SPECIFICATION], k->meaning);
	}
	puts("\ndocs/adversary.md describes each option");
	return 0;
}

static uint64_t seed_draw(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)clock_now() ^ (uint32_t)getpid();
	return seed % 999999 + 1; /* short enough to type */
}

/* Parse N or FIRST-LAST, the text after "sweep:". */
static bool sweep_parse(struct trial *t, const char *text, size_t len)
{
	const char *dash = memchr(text, '-', len);
	size_t n = dash ? (size_t)(dash - text) : len;

	if (!adversary_seed_parse(text, n, &t->first))
		return false;
	t->sweep = true;
	if (dash)
		return adversary_seed_parse(dash + 1, len - n - 1, &t->last) &&
		       t->first <= t->last;
	t->last = t->first;
	t->first = 1;
	return t->last;
}

static char *trial_variable(const struct trial *t, uint64_t seed)
{
	char *value;

	if (asprintf(&value, "%llu%s", (unsigned long long)seed, t->options) <
	    0)
		return NULL;
	return value;
}

static int variable_check(const char *value, const char *what)
{
	char why[ADVERSARY_WHY];
	struct adversary a;

	if (adversary_parse(&a, value, "", why, sizeof(why)))
		return TRIAL_CHOSEN;
	return fail(EXIT_USAGE, "%s: %s; see urxe run --adversary=help", what,
		    why);
}

static bool is_first_seed(const char *text, size_t len)
{
	uint64_t seed;

	return !strncmp(text, SWEEP, strlen(SWEEP)) ||
	       adversary_seed_parse(text, len, &seed);
}

/*
 * Rewrite LEVEL[,SEED][,OPTION...] as [SEED],LEVEL[,OPTION...]. Return NULL if
 * there is no memory.
 */
static const char *level_after_seed(const char *value)
{
	static char *text;
	const size_t level = strcspn(value, ",");
	const char *seed = value + level + (value[level] == ',');
	size_t n = strcspn(seed, ",");

	if (adversary_level_find(value, level) == ADVERSARY_LEVELS)
		return value;
	if (!is_first_seed(seed, n)) {
		seed = value + level;
		n = 0;
	}
	free(text);
	if (asprintf(&text, "%.*s,%.*s%s", (int)n, seed, (int)level, value,
		     seed + n) < 0)
		text = NULL;
	return text;
}

int trial_choose(struct trial *t, const char *value)
{
	char *variable;
	size_t n;
	int ret;

	if (value && !strcmp(value, "help"))
		return list_options();
	if (value && !(value = level_after_seed(value)))
		return fail(1, "no memory");
	n = value ? strcspn(value, ",") : 0;
	t->adversary = true;
	t->sweep = t->drawn = false;
	t->options = value ? value + n : "";
	if (value && !strncmp(value, SWEEP, strlen(SWEEP))) {
		if (!sweep_parse(t, value + strlen(SWEEP), n - strlen(SWEEP)))
			return fail(EXIT_USAGE,
				    "--adversary: \"%.*s\": a sweep is " SWEEP
				    "N or " SWEEP "FIRST-LAST",
				    (int)n, value);
	} else if (n) {
		if (!adversary_seed_parse(value, n, &t->first))
			return variable_check(value, "--adversary");
		t->last = t->first;
	} else {
		t->drawn = true;
		t->first = t->last = seed_draw();
	}
	variable = trial_variable(t, t->first);
	ret = variable ? variable_check(variable, "--adversary") :
			 fail(1, "no memory");
	free(variable);
	return ret;
}

bool trial_is_wanted(const struct trial *t)
{
	return t->adversary || t->limit || t->profiles || t->check.level ||
	       faults_are_given();
}

int trial_limit(struct trial *t, const char *value)
{
	static const struct {
		char unit;
		unsigned int seconds;
	} units[] = { { 0, 1 }, { 's', 1 }, { 'm', 60 }, { 'h', 3600 } };
	char *end;
	double n = strtod(value, &end);
	unsigned int i;

	for (i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (end != value && *end == units[i].unit &&
		    (!*end || !end[1]) && n > 0 && n < 1e6) {
			t->limit = (uint64_t)(n * units[i].seconds * NS_PER_S);
			if (t->limit)
				return TRIAL_CHOSEN;
		}
	return fail(EXIT_USAGE,
		    "--timeout: \"%s\": use a number of seconds, or as 2m, 1h",
		    value);
}

static int variable_set(const struct trial *t, uint64_t seed)
{
	char *value = trial_variable(t, seed);
	int ret = value ? setenv("URXE_ADVERSARY", value, 1) : -1;

	free(value);
	return ret ? fail(1, "no memory") : 0;
}

int trial_set_environment(const struct trial *t)
{
	const char *there = getenv("URXE_ADVERSARY");
	int ret;

	if (t->profiles)
		return fail(EXIT_USAGE,
			    "--profile sweep requires urxe run with a COMMAND");
	if (!t->adversary) {
		ret = there && *there ?
			      variable_check(there, "URXE_ADVERSARY") :
			      TRIAL_CHOSEN;
		return ret == TRIAL_CHOSEN ? 0 : ret;
	}
	if (t->sweep)
		return fail(
			EXIT_USAGE,
			"--adversary=sweep requires urxe run with a COMMAND");
	if (t->drawn)
		fail(0, "the adversary's seed is %llu",
		     (unsigned long long)t->first);
	return variable_set(t, t->first);
}

/* ---------------------------------------------------------- running */

/* Print the command line that repeats the run with @seed. */
static void trial_print(const struct trial *t, uint64_t seed)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=.,:/@%^";
	char **w;

	fprintf(stderr, "    ");
	for (w = t->words; *w; w++) {
		if (w - t->words == t->word)
			fprintf(stderr, "--adversary=%llu%s",
				(unsigned long long)seed, t->options);
		else if (**w && strspn(*w, plain) == strlen(*w))
			fputs(*w, stderr);
		else
			print_quoted(stderr, *w);
		fputs(w == t->words ? " run " : w[1] ? " " : "\n", stderr);
	}
}

static void trial_print_failed(const struct trial *t, uint64_t seed,
			       const struct ending *e)
{
	char how[80];

	ending_describe(e, how, sizeof(how));
	if (!t->adversary) {
		if (e->timed_out)
			fail(0, "the command was terminated: %s", how);
		return;
	}
	fail(0,
	     "failed under the adversary with seed %llu: %s; to repeat the run:",
	     (unsigned long long)seed, how);
	trial_print(t, seed);
}

/* Select a fabric for this seed alone. trial_leave() removes it. */
static int trial_enter(uint64_t seed, char dir[256])
{
	char name[64];

	snprintf(name, sizeof(name), "sweep.%d.%llu", (int)getpid(),
		 (unsigned long long)seed);
	return choose_fabric(name, dir);
}

static void trial_leave(const char *dir)
{
	supervise_clear();
	if (*dir)
		fabric_remove_unused(dir, false);
}

/* The time limit expired: print what the fabric waits for. */
static void trial_print_waits(void)
{
	char dir[256];

	if (!fabric_dir(dir, sizeof(dir)))
		why_report(dir, stderr);
}

static int trial_once(struct trial *t, char **argv, uint64_t seed,
		      struct ending *e)
{
	const struct attention a = {
		trial_print_waits,
		t->check.level ? check_show : NULL,
		&t->check,
	};
	char dir[256] = "";
	int ret = 0;

	if (t->adversary)
		ret = variable_set(t, seed);
	if (!ret && t->sweep && t->own_fabric)
		ret = trial_enter(seed, dir);
	if (ret)
		return ret;
	if (t->sweep)
		fail(0, "the adversary's seed is %llu",
		     (unsigned long long)seed);
	ret = supervise(argv, t->limit, &a, e);
	if (t->sweep)
		trial_leave(dir);
	t->own_failure = !ret && ending_is_failure(e);
	if (!ret)
		check_print_report(&t->check, e);
	return ret ? cannot_run(argv[0], ret) : 0;
}

/*
 * A run of a sweep failed by itself, not by a finding of the referee: repeat
 * it with --adversary=hardware and report whether it fails there too. This is
 * skipped if the user gave a level, options or faults.
 */
static void trial_compare(const struct trial *t, char **argv, uint64_t seed)
{
	struct trial hardware = *t;
	struct ending e;

	if (!t->sweep || *t->options || faults_are_given())
		return;
	hardware.options = ",hardware";
	hardware.check.level =
		NULL; /* its findings are in the reports already */
	unsetenv("URXE_CHECK");
	/* the trace must stay that of the reported run */
	unsetenv("URXE_TRACE");
	fail(0, "the same seed with --adversary=hardware:");
	if (trial_once(&hardware, argv, seed, &e) || e.signal)
		return;
	fail(0, "seed %llu %s", (unsigned long long)seed,
	     ending_is_failure(&e) ?
		     "fails with --adversary=hardware, too" :
		     "passes with --adversary=hardware: the failure needs "
		     "behaviour that the specification allows and NICs are not known to have");
}

/* Run the seeds, without the final reports of the referee. */
static int trial_run_seeds(struct trial *t, char **argv, struct ending *e)
{
	uint64_t seed = t->first;
	int ret;

	if (t->drawn)
		fail(0, "the adversary's seed is %llu",
		     (unsigned long long)seed);
	for (;; seed++) {
		ret = trial_once(t, argv, seed, e);
		if (ret)
			return ret;
		if (ending_is_failure(e) || e->signal || seed == t->last)
			break;
	}
	if (e->signal) {
		/*
		 * a signal to urxe run ends the whole sweep, with that signal
		 */
		if (t->sweep && !ending_is_failure(e))
			e->status = e->signal;
	} else if (ending_is_failure(e)) {
		if (t->own_failure)
			trial_compare(t, argv, seed);
		trial_print_failed(t, seed, e);
	} else if (t->sweep) {
		fail(0, "none of the seeds %llu to %llu failed",
		     (unsigned long long)t->first, (unsigned long long)t->last);
	}
	return 0;
}

/*
 * Run the seeds with one profile, in a fabric of its own.  Return 0, or the
 * exit code if the command cannot be run.
 */
static int trial_run_profile(struct trial *t, char **argv, const char *profile,
			     struct ending *e)
{
	char name[96], dir[256] = "", how[80];
	int ret;

	ret = profiles_choose(profile);
	snprintf(name, sizeof(name), "sweep.%d.%s", (int)getpid(), profile);
	if (!ret && t->own_fabric)
		ret = choose_fabric(name, dir);
	if (!ret)
		ret = trial_run_seeds(t, argv, e);
	trial_leave(dir);
	if (ret)
		return ret;
	ending_describe(e, how, sizeof(how));
	fail(0, "profile %s: %s", profile,
	     ending_is_failure(e) ? how : "passed");
	return 0;
}

/*
 * Run the command once with each profile.  *e is the ending of the first run
 * that failed.
 */
static int trial_run_profiles(struct trial *t, char **argv, struct ending *e)
{
	struct ending one;
	bool failed = false;
	int i, n, ret = 0;
	char **names = profiles_list(&n);

	if (!names)
		return 1;
	for (i = 0; i < n && !ret; i++) {
		ret = trial_run_profile(t, argv, names[i], &one);
		if (ret)
			break;
		if (!failed)
			*e = one;
		failed = failed || ending_is_failure(&one);
		if (one.signal)
			break;
	}
	profiles_free(names, n);
	return ret;
}

int trial_run(struct trial *t, char **argv)
{
	struct ending e;
	int ret;

	ret = check_begin(&t->check);
	if (ret)
		return ret;
	ret = faults_begin_run();
	if (!ret)
		ret = t->profiles ? trial_run_profiles(t, argv, &e) :
				    trial_run_seeds(t, argv, &e);
	faults_end_run(!ret);
	check_end(&t->check);
	return ret ? ret : ending_pass_on(&e);
}

static int set_devices(const char *value)
{
	uint32_t n;

	setenv("URXE_DEVICES", value, 1);
	if (!hcas_by_env(&n) && n)
		return 0;
	return fail(EXIT_USAGE,
		    "--devices: \"%s\" is not a number of devices: 1 to %d",
		    value, URXE_HOST_HCAS);
}

static int set_profiles(struct trial *t, const char *value)
{
	int ret;

	t->profiles = !strcmp(value, "sweep");
	ret = t->profiles ? 0 : profiles_choose(value);
	return ret ? ret : TRIAL_CHOSEN;
}

int trial_option(struct trial *t, struct device_options *device,
		 struct record_options *record, int c, const char *value)
{
	switch (c) {
	case 'D':
		return set_devices(value) ? EXIT_USAGE : TRIAL_CHOSEN;
	case 'K':
		setenv("URXE_CLUSTER", value, 1);
		return TRIAL_CHOSEN;
	case 'O':
		setenv("URXE_HOST", value, 1);
		return TRIAL_CHOSEN;
	case 'L':
		setenv("URXE_LINK_LAYER", value, 1);
		return TRIAL_CHOSEN;
	case 'S':
		setenv("URXE_SM", value, 1);
		return TRIAL_CHOSEN;
	case 'I':
		setenv("URXE_TIMING", "1", 1);
		return TRIAL_CHOSEN;
	case 'N':
		return set_profiles(t, value);
	case 'f':
		device->fabric = value;
		return TRIAL_CHOSEN;
	case 'H':
		device->host = true;
		return TRIAL_CHOSEN;
	case 'a':
		setenv("URXE_ADOPT", "1", 1);
		return TRIAL_CHOSEN;
	case 'w':
		return set_wire(value) ? EXIT_USAGE : TRIAL_CHOSEN;
	case 'A':
		return trial_choose(t, value);
	default:
		return record_option(record, c, value) ? TRIAL_CHOSEN :
							 TRIAL_OTHER;
	}
}
