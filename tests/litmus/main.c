// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * litmus: run litmus tests of verbs and count the outcomes (docs/litmus.md).
 *
 * Each round is executed in its own process with its own seed.  The only part
 * that is specific to urxe is the environment variable URXE_ADVERSARY, which
 * passes the seed to the adversary.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "litmus.h"

#define MAX_ROUNDS 100000
#define MAX_STATES 64
#define CANNOT 77 /* exit status if the device lacks a feature */

static const char usage[] =
	"usage: litmus [-x TIMES] [-n SEEDS] [-s FIRST] [-p] [-r] [-c] [-q]\n"
	"              [-d DEVICE] [-g GID_INDEX] [-i PORT] FILE...\n"
	"  -x  multiply the seeds of tests with forbidden or unseen outcomes by TIMES\n"
	"  -n  run SEEDS seeds of each test; allowed outcomes need not be observed\n"
	"  -s  first seed: 1\n"
	"  -p  run without the adversary; allowed outcomes need not be observed\n"
	"  -r  the device is a real one: unseen outcomes are not errors\n"
	"  -c  run each node in its own thread\n"
	"  -q  print only the outcomes that the files name; without -n, end a test\n"
	"      when its allowed outcomes were observed; if it has forbidden or unseen\n"
	"      outcomes, run a quarter of the seeds, or all with -x\n"
	"  -d, -i, -g  device, port and GID index\n";

struct options {
	unsigned int times, seeds, first;
	bool plain, real, concurrent, quiet;
	struct where_to where;
};

/* An outcome, how often it was observed, and the first seed that led to it */
struct state {
	struct result result;
	unsigned int count, first;
};

struct states {
	struct state state[MAX_STATES];
	int num;
};

static bool term_holds(const struct term *term, const struct result *r)
{
	return (r->values[term->value] == term->to) == term->equal;
}

static bool outcome_holds(const struct outcome *o, const struct result *r)
{
	int i;

	for (i = 0; i < o->num_terms; i++)
		if (!term_holds(&o->terms[i], r))
			return false;
	return true;
}

static void state_count(struct states *s, const struct result *r,
			unsigned int seed)
{
	int i;

	for (i = 0; i < s->num; i++)
		if (!memcmp(&s->state[i].result, r, sizeof(*r)))
			break;
	if (i == MAX_STATES) {
		fprintf(stderr, "litmus: too many different outcomes\n");
		exit(2);
	}
	if (i == s->num) {
		s->num++;
		s->state[i] = (struct state){ .result = *r, .first = seed };
	}
	s->state[i].count++;
	if (seed < s->state[i].first)
		s->state[i].first = seed;
}

/* Run a round in a new process, which has not opened a device before. */
static pid_t round_start(const struct test *t, const struct options *o,
			 unsigned int seed, struct result *result)
{
	char text[160];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(text, sizeof(text), "%u%s%s", seed, t->options[0] ? "," : "",
		 t->options);
	if (o->plain)
		unsetenv("URXE_ADVERSARY");
	else
		setenv("URXE_ADVERSARY", text, 1);
	/* the device is closed when the process exits */
	_exit(round_run(t, &o->where, seed, result) ? 0 : CANNOT);
}

/* Run the rounds @next to @seeds - 1.  Return 0, CANNOT, or 2 on an error. */
static int rounds_run(const struct test *t, const struct options *o,
		      unsigned int next, unsigned int seeds,
		      struct result *results)
{
	/* a concurrent test needs all CPUs for its threads */
	long busy = 0, cpus = t->concurrent ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
	int status, worst = 0;

	while ((next < seeds && !worst) || busy > 0) {
		if (next < seeds && !worst && busy < cpus) {
			if (round_start(t, o, o->first + next, &results[next]) <
			    0) {
				perror("fork");
				return 2;
			}
			next++;
			busy++;
			continue;
		}
		if (wait(&status) < 0) {
			perror("wait");
			return 2;
		}
		busy--;
		if (!WIFEXITED(status))
			worst = 2;
		else if (WEXITSTATUS(status))
			worst = WEXITSTATUS(status);
	}
	return worst;
}

static void state_print(const struct test *t, const struct state *s)
{
	int i;

	printf("%8u ", s->count);
	for (i = 0; i < t->num_values; i++) {
		if (s->result.values[i] == UNSET)
			printf(" %s=-", t->values[i].text);
		else
			printf(" %s=%" PRIu64, t->values[i].text,
			       s->result.values[i]);
	}
	printf("\n");
}

/* Return NULL, or the reason why @count fails the test. */
static const char *outcome_judge(const struct outcome *o, unsigned int count,
				 const struct options *opt)
{
	if (o->kind == ALLOWED && !count && !opt->plain && !opt->seeds)
		return "FAILED: this outcome must be observed";
	if (o->kind == FORBIDDEN && count)
		return "FAILED: this outcome is forbidden";
	if (o->kind == UNSEEN && count && !opt->real)
		return "FAILED: urxe does not show this outcome";
	return NULL;
}

static bool outcome_print(const struct outcome *o, const struct states *s,
			  const struct options *opt)
{
	static const char *const kinds[] = { "allowed", "forbidden", "unseen" };
	unsigned int count = 0, first = UINT_MAX;
	const char *wrong;
	int i;

	for (i = 0; i < s->num; i++) {
		if (!outcome_holds(o, &s->state[i].result))
			continue;
		count += s->state[i].count;
		if (s->state[i].first < first)
			first = s->state[i].first;
	}
	printf("  %s %s: %u times", kinds[o->kind], o->text, count);
	if (count)
		printf(", first by seed %u", first);
	wrong = outcome_judge(o, count, opt);
	printf("%s%s\n", wrong ? ": " : "", wrong ? wrong : "");
	return !wrong;
}

/* Print the result.  Return the exit status of this test. */
static int test_judge(const struct test *t, const struct options *opt,
		      const struct states *s, unsigned int seeds)
{
	int i, status = 0;

	printf("%s: %u seeds\n", t->name, seeds);
	for (i = 0; i < s->num && !opt->quiet; i++)
		state_print(t, &s->state[i]);
	for (i = 0; i < t->num_outcomes; i++)
		if (!outcome_print(&t->outcomes[i], s, opt))
			status = 1;
	fflush(stdout);
	return status;
}

static bool forbids(const struct test *t)
{
	int i;

	for (i = 0; i < t->num_outcomes; i++)
		if (t->outcomes[i].kind != ALLOWED)
			return true;
	return false;
}

static bool allowed_are_seen(const struct test *t, const struct states *s)
{
	int i, j;

	for (i = 0; i < t->num_outcomes; i++) {
		if (t->outcomes[i].kind != ALLOWED)
			continue;
		for (j = 0; j < s->num; j++)
			if (outcome_holds(&t->outcomes[i], &s->state[j].result))
				break;
		if (j == s->num)
			return false;
	}
	return true;
}

/* Number of rounds after which an early end is checked */
#define AT_ONCE 20

/*
 * Run the rounds of a test.  Return their number, and set @status.  With -q
 * and without -n, a test ends as soon as each of its allowed outcomes was
 * observed; if it has forbidden or unseen outcomes, not before a quarter of
 * its rounds, and not with -x.
 */
static unsigned int test_rounds(const struct test *t, const struct options *opt,
				unsigned int seeds, struct result *results,
				struct states *s, int *status)
{
	const bool other = forbids(t);
	const bool may_end = opt->quiet && !opt->seeds &&
			     (!other || opt->times == 1);
	const unsigned int least = other ? seeds / 4 : 0;
	unsigned int done = 0, next;

	while (done < seeds) {
		next = may_end && seeds - done > AT_ONCE ? done + AT_ONCE :
							   seeds;
		*status = rounds_run(t, opt, done, next, results);
		if (*status)
			break;
		for (; done < next; done++)
			state_count(s, &results[done], opt->first + done);
		if (may_end && done >= least && allowed_are_seen(t, s))
			break;
	}
	return done;
}

static int test_run(const char *path, const struct options *opt)
{
	static struct test t;
	static struct states s;
	struct result *results;
	unsigned int seeds;
	int status = 0;

	test_read(&t, path);
	t.concurrent |= opt->concurrent;
	seeds = opt->seeds ? opt->seeds : t.seeds;
	if (!opt->seeds && forbids(&t))
		seeds *= opt->times;
	if (seeds > MAX_ROUNDS) {
		fprintf(stderr, "litmus: too many seeds\n");
		return 2;
	}
	results = mmap(NULL, MAX_ROUNDS * sizeof(*results),
		       PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (results == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	fflush(stdout);
	memset(&s, 0, sizeof(s));
	seeds = test_rounds(&t, opt, seeds, results, &s, &status);
	munmap(results, MAX_ROUNDS * sizeof(*results));
	if (status == CANNOT)
		printf("%s: skipped: the device has no memory windows of type 2\n",
		       t.name);
	else if (status)
		printf("%s: FAILED: a round ended with an error\n", t.name);
	else
		status = test_judge(&t, opt, &s, seeds);
	return status == CANNOT ? 0 : status;
}

int main(int argc, char **argv)
{
	struct options o = { .times = 1,
			     .first = 1,
			     .where = { .port = 1, .gid_index = 0 } };
	int c, status = 0, failed = 0, i;

	while ((c = getopt(argc, argv, "x:n:s:prcqd:g:i:")) != -1) {
		switch (c) {
		case 'x':
			o.times = (unsigned int)atoi(optarg);
			break;
		case 'n':
			o.seeds = (unsigned int)atoi(optarg);
			break;
		case 's':
			o.first = (unsigned int)atoi(optarg);
			break;
		case 'p':
			o.plain = true;
			break;
		case 'r':
			o.real = true;
			break;
		case 'c':
			o.concurrent = true;
			break;
		case 'q':
			o.quiet = true;
			break;
		case 'd':
			o.where.device = optarg;
			break;
		case 'g':
			o.where.gid_index = (uint8_t)atoi(optarg);
			break;
		case 'i':
			o.where.port = (uint8_t)atoi(optarg);
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind == argc) {
		fputs(usage, stderr);
		return 2;
	}
	for (i = optind; i < argc; i++) {
		int one = test_run(argv[i], &o);

		failed += one != 0;
		if (one > status)
			status = one;
	}
	printf("%d of %d litmus tests passed\n", argc - optind - failed,
	       argc - optind);
	return status;
}
