// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe run --adversary, --timeout: which trials there are. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/fabric.h"
#include "commands.h"
#include "supervise.h"
#include "trial.h"
#include "why.h"

#define SWEEP "sweep:"
#define NS_PER_S 1000000000ull

static int list_knobs(void)
{
	const struct adversary_knob_info *k;
	int i;

	puts("--adversary=[SEED][,KNOB=VALUE...]\n"
	     "--adversary=sweep:N|FIRST-LAST[,KNOB=VALUE...]\n\n"
	     "SEED is a number; without it one is drawn.  VALUE is how many of 1000\n"
	     "meet the knob, or a percentage as 2% or 0.5%.  The word none turns off\n"
	     "all knobs that are not named after it.\n\n"
	     "knob      default  what meets it");
	for (i = 0; i < KNOBS; i++) {
		k = &adversary_knobs[i];
		printf("%-8s %8u  %s\n", k->name, k->preset, k->meaning);
	}
	puts("\ndocs/adversary.md says more on each");
	return 0;
}

static uint64_t seed_draw(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint32_t)clock_now() ^ (uint32_t)getpid();
	return seed % 999999 + 1; /* short enough to be typed */
}

/* N, or FIRST-LAST. */
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

	if (asprintf(&value, "%llu%s", (unsigned long long)seed, t->knobs) < 0)
		return NULL;
	return value;
}

static int variable_check(const char *value, const char *what)
{
	char why[ADVERSARY_WHY];
	struct adversary a;

	if (adversary_parse(&a, value, "", why, sizeof(why)))
		return TRIAL_CHOSEN;
	return fail(EXIT_USAGE, "%s: %s; urxe run --adversary=help says more",
		    what, why);
}

int trial_choose(struct trial *t, const char *value)
{
	size_t n = value ? strcspn(value, ",") : 0;
	char *variable;
	int ret;

	if (value && !strcmp(value, "help"))
		return list_knobs();
	t->adversary = true;
	t->sweep = t->drawn = false;
	t->knobs = value ? value + n : "";
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
	return t->adversary || t->limit || t->check.level || faults_are_given();
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
	return fail(
		EXIT_USAGE,
		"--timeout: \"%s\": it is a number of seconds, or as 2m, 1h",
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

	if (!t->adversary) {
		ret = there && *there ?
			      variable_check(there, "URXE_ADVERSARY") :
			      TRIAL_CHOSEN;
		return ret == TRIAL_CHOSEN ? 0 : ret;
	}
	if (t->sweep)
		return fail(EXIT_USAGE, "a sweep wants a command to run");
	if (t->drawn)
		fail(0, "the adversary's seed is %llu",
		     (unsigned long long)t->first);
	return variable_set(t, t->first);
}

/* ---------------------------------------------------------- running */

/* The command line that has the same again. */
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
				(unsigned long long)seed, t->knobs);
		else if (**w && strspn(*w, plain) == strlen(*w))
			fputs(*w, stderr);
		else
			print_quoted(stderr, *w);
		fputs(w == t->words ? " run " : w[1] ? " " : "\n", stderr);
	}
}

static void trial_say_failed(const struct trial *t, uint64_t seed,
			     const struct ending *e)
{
	char how[80];

	ending_describe(e, how, sizeof(how));
	if (!t->adversary) {
		if (e->late)
			fail(0, "it was ended: %s", how);
		return;
	}
	fail(0,
	     "failed under the adversary with seed %llu: %s; the same again:",
	     (unsigned long long)seed, how);
	trial_print(t, seed);
}

/* A fabric for this seed alone; what is left of it goes with trial_leave(). */
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

/* Its time is over: why does it hang? */
static void trial_say_why(void)
{
	char dir[256];

	if (!fabric_dir(dir, sizeof(dir)))
		why_report(dir, stderr);
}

static int trial_once(struct trial *t, char **argv, uint64_t seed,
		      struct ending *e)
{
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
	ret = supervise(argv, t->limit, trial_say_why, e);
	if (t->sweep)
		trial_leave(dir);
	if (!ret)
		check_look(&t->check, e);
	return ret ? cannot_run(argv[0], ret) : 0;
}

/* Without the reports. */
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
		/* who ends a run ends all of a sweep */
		if (t->sweep && !ending_is_failure(e))
			e->status = e->signal;
	} else if (ending_is_failure(e)) {
		trial_say_failed(t, seed, e);
	} else if (t->sweep) {
		fail(0, "none of the seeds %llu to %llu failed",
		     (unsigned long long)t->first, (unsigned long long)t->last);
	}
	return 0;
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
		ret = trial_run_seeds(t, argv, &e);
	faults_end_run(!ret);
	check_end(&t->check);
	return ret ? ret : ending_pass_on(&e);
}
