/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * urxe-bench: the program behind "urxe bench".  Run it directly to measure a
 * device other than urxe0:
 *
 *   urxe-bench [OPTION...]
 *
 * It has the options of urxe bench (man urxe), and
 *   -d DEVICE, -g GID_INDEX
 *   -t  print only the table, tab separated: name, unit, best, median,
 *       name of the raw limit, its best, its median, ratio of the best values
 *   -w  measure only the row of one process that WRITEs to DM
 *
 * Each round measures every row once: raw limits, verbs and other libraries
 * in turn.  A disturbance of the machine therefore affects all of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "others.h"

#define ONE_ROW "one process: WRITE 8 B to DM, post + poll"
#define PRIORITY 10
/*
 * Seconds of CPU time without a blocking system call after which the kernel
 * kills the process (RLIMIT_RTTIME). Without a limit, a process that spins at
 * real-time priority would block the machine.
 */
#define SPIN_LIMIT 30
#define OTHERS_EVERY 4 /* rounds: most time goes to their start-up */
#define EXIT_USAGE 2

struct bench {
	const char *device;
	int gid_index, shrink;
	bool tabs, one_row;
	struct common *common;
	struct others others;
	struct run run;
	FILE *json, *svg, *markdown; /* NULL: not requested */
};

static pid_t follower_pid;
static _Atomic int finished; /* read by the signal handler */

static int fail(int code, const char *what, const char *why)
{
	fprintf(stderr, "urxe bench: %s: %s\n", what, why);
	return code;
}

int regime_enter(enum regime g)
{
	struct sched_param p = { .sched_priority = PRIORITY };
	struct rlimit limit = { SPIN_LIMIT, SPIN_LIMIT };

	if (g == REGIME_NORMAL) {
		p.sched_priority = 0;
		return sched_setscheduler(0, SCHED_OTHER, &p) ? -errno : 0;
	}
	limit.rlim_cur *= 1000000;
	limit.rlim_max *= 1000000;
	setrlimit(RLIMIT_RTTIME, &limit);
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &p))
		return -errno;
	usleep(1000); /* a blocking call restarts the RLIMIT_RTTIME count */
	return 0;
}

/* Pin the calling process to @cpu.  Do nothing if @cpu is negative. */
static void pin(int cpu)
{
	cpu_set_t one;

	if (cpu < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/*
 * Store the first two CPUs of the affinity mask in @cpu, or -1 in both if it
 * has fewer than two.  Return the number of CPUs in the mask, or 1 if it
 * cannot be read.
 */
static int choose_cpus(int cpu[2])
{
	cpu_set_t may;
	int i, n = 0;

	cpu[0] = cpu[1] = -1;
	if (sched_getaffinity(0, sizeof(may), &may))
		return 1;
	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &may))
			cpu[n++] = i;
	if (n < 2)
		cpu[0] = -1;
	return CPU_COUNT(&may);
}

static void run_row(struct bench *b, struct end *e, enum regime g, int i,
		    int round)
{
	uint32_t n = rows[i].n / (uint32_t)b->shrink;
	double ns;

	e->size = rows[i].size;
	ns = rows[i].fn(e, n ? n : 1);
	if (e->rank != 1)
		sample_set(g, i, round, ns);
}

static void run_rows(struct bench *b, struct end *e, enum regime g,
		     enum where where, int round)
{
	int i;

	regime_enter(g);
	for (i = 0; i < n_rows; i++)
		if (rows[i].where == where)
			run_row(b, e, g, i, round);
	regime_enter(REGIME_NORMAL);
}

/* Show the progress if standard error is a terminal. */
static void say_round(const struct bench *b, int round)
{
	if (isatty(STDERR_FILENO) && !b->tabs)
		fprintf(stderr,
			round < b->run.rounds ? "\rround %d of %d " : "\r\33[K",
			round + 1, b->run.rounds);
}

static bool with_others(const struct bench *b, int round)
{
	int every = b->run.quick ? MAX_ROUNDS : OTHERS_EVERY;

	return !b->tabs && round >= 0 && round % every == 0 && b->run.cpus > 1;
}

/*
 * The leader and the follower execute this loop in step.  Round -1 is the
 * warm-up.
 */
static void run_pair(struct bench *b, struct end *e)
{
	int round, g;

	for (round = -1; round < b->run.rounds; round++) {
		if (e->rank == 0)
			say_round(b, round);
		for (g = 0; g < REGIME_COUNT; g++) {
			if (!b->run.regime[g])
				continue;
			run_rows(b, e, g, IN_PAIR, round);
			if (!with_others(b, round))
				continue;
			if (e->rank == 0)
				others_run(&b->others, g, round);
			end_rest(e);
		}
	}
}

static void run_one(struct bench *b)
{
	struct end e = { .rank = 2, .common = b->common };
	int round, g;

	end_open(&e, b->device, b->gid_index);
	end_connect(&e);
	for (round = -1; round < b->run.rounds; round++)
		for (g = 0; g < REGIME_COUNT; g++) {
			if (!b->run.regime[g])
				continue;
			if (b->one_row)
				run_row(b, &e, g, row_find(ONE_ROW), round);
			else
				run_rows(b, &e, g, IN_ONE, round);
		}
	end_close(&e);
	say_round(b, round);
}

/*
 * SIGCHLD handler.  If the follower exited early, it has printed the reason.
 */
static void on_child(int sig)
{
	siginfo_t info = { 0 };

	(void)sig;
	if (atomic_load_explicit(&finished, memory_order_relaxed))
		return;
	if (!waitid(P_PID, (id_t)follower_pid, &info,
		    WEXITED | WNOHANG | WNOWAIT) &&
	    info.si_pid)
		_exit(1);
}

static int follower(struct bench *b)
{
	struct end e = { .rank = 1,
			 .common = b->common,
			 .one_cpu = b->run.cpus < 2 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(b->others.cpu[1]);
	end_open(&e, b->device, b->gid_index);
	end_connect(&e);
	run_pair(b, &e);
	end_close(&e);
	return 0;
}

static int leader(struct bench *b)
{
	struct end e = { .rank = 0,
			 .common = b->common,
			 .one_cpu = b->run.cpus < 2 };
	int status;

	pin(b->others.cpu[0]);
	end_open(&e, b->device, b->gid_index);
	end_connect(&e);
	run_pair(b, &e);
	atomic_store_explicit(&finished, 1, memory_order_relaxed);
	end_close(&e);
	if (waitpid(follower_pid, &status, 0) != follower_pid || status)
		return 1;
	run_one(b);
	return 0;
}

/* Run the leader and the follower.  Return 0, or the exit code. */
static int run_all(struct bench *b)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signal(SIGCHLD, on_child);
	/*
	 * Under Yama (ptrace_scope 1) a process may by default access only
	 * its descendants.  This lets the follower write into the leader,
	 * too.
	 */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	follower_pid = fork();
	if (follower_pid < 0)
		return fail(1, "fork", strerror(errno));
	sigprocmask(SIG_UNBLOCK, &child, NULL);
	if (!follower_pid)
		exit(follower(b));
	return leader(b);
}

static void try_real_time(struct run *r)
{
	int ret = regime_enter(REGIME_REAL_TIME);

	r->regime[REGIME_REAL_TIME] = !ret;
	r->real_time_error = ret ? strerror(-ret) : NULL;
	regime_enter(REGIME_NORMAL);
}

static void describe_machine(struct run *r)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	time_t now = time(NULL);
	struct utsname u;
	char line[256], *value;

	snprintf(r->cpu, sizeof(r->cpu), "an unknown CPU");
	while (f && fgets(line, sizeof(line), f)) {
		value = strstr(line, ": ");
		if (strncmp(line, "model name", 10) || !value)
			continue;
		value[strcspn(value, "\n")] = 0;
		snprintf(r->cpu, sizeof(r->cpu), "%.79s", value + 2);
		break;
	}
	if (f)
		fclose(f);
	if (!uname(&u))
		snprintf(r->kernel, sizeof(r->kernel), "Linux %.60s",
			 u.release);
	strftime(r->date, sizeof(r->date), "%Y-%m-%d", gmtime(&now));
	if (getloadavg(&r->load, 1) != 1)
		r->load = NAN;
}

/*
 * Open the file before the measurement, which takes a minute.  "-" is
 * standard output.
 */
static FILE *open_output(const char *path)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;

	if (!f)
		exit(fail(1, path, strerror(errno)));
	return f;
}

static bool parse_number(const char *word, int from, int to, int *value)
{
	char *end;
	long v = strtol(word, &end, 10);

	if (end == word || *end || v < from || v > to)
		return false;
	*value = (int)v;
	return true;
}

/*
 * Return false if the option is invalid.  A message has been printed then,
 * here or by getopt.
 */
static bool take_option(struct bench *b, int c)
{
	switch (c) {
	case 'd':
		b->device = optarg;
		return true;
	case 'g':
		return parse_number(optarg, 0, 255, &b->gid_index);
	case 'r':
		if (parse_number(optarg, 1, MAX_ROUNDS, &b->run.rounds))
			return true;
		fprintf(stderr, "urxe bench: 1 to %d rounds\n", MAX_ROUNDS);
		return false;
	case 'q':
		b->run.quick = true;
		return true;
	case 't':
		b->tabs = true;
		return true;
	case 'w':
		b->one_row = b->tabs = true;
		return true;
	case 'R':
		try_real_time(&b->run);
		return true;
	case 'j':
		b->json = open_output(optarg);
		return true;
	case 's':
		b->svg = open_output(optarg);
		return true;
	case 'm':
		b->markdown = open_output(optarg);
		return true;
	default:
		return false;
	}
}

static bool take_options(struct bench *b, int argc, char **argv)
{
	static const struct option opts[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "rt", no_argument, NULL, 'R' },
		{ "json", required_argument, NULL, 'j' },
		{ "svg", required_argument, NULL, 's' },
		{ "markdown", required_argument, NULL, 'm' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "d:g:r:qtw", opts, NULL)) != -1)
		if (!take_option(b, c))
			return false;
	if (!b->run.rounds)
		b->run.rounds = b->run.quick ? 3 : 11;
	b->shrink = b->run.quick ? 4 : 1;
	b->others.shrink = b->shrink;
	return optind == argc;
}

static void close_output(FILE *f)
{
	if (f && (ferror(f) | fclose(f)))
		exit(fail(1, "the output", "cannot be written"));
}

static void print_all(struct bench *b)
{
	struct run *r = &b->run;
	const bool quiet = b->json == stdout || b->svg == stdout ||
			   b->markdown == stdout;

	samples_sort();
	r->missing = b->others.missing;
	if (b->tabs)
		print_tabs(stdout, b->one_row ? row_find(ONE_ROW) : -1);
	else if (!quiet)
		print_text(stdout, r);
	if (b->json)
		print_json(b->json, r);
	if (b->svg)
		print_svg(b->svg, r);
	if (b->markdown)
		print_markdown(b->markdown, r);
	close_output(b->json);
	close_output(b->svg);
	close_output(b->markdown);
}

int main(int argc, char *argv[])
{
	struct bench b = { .run.regime[REGIME_NORMAL] = true };
	int ret = 0;

	argv[0] = "urxe bench"; /* the prefix of getopt's messages */
	if (!take_options(&b, argc, argv))
		return EXIT_USAGE;
	rows_make(b.tabs);
	describe_machine(&b.run);
	b.run.cpus = choose_cpus(b.others.cpu);
	b.common = mmap(NULL, sizeof(*b.common), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (b.common == MAP_FAILED)
		return fail(1, "mmap", strerror(errno));
	if (b.one_row)
		run_one(&b);
	else
		ret = run_all(&b);
	if (!ret)
		print_all(&b);
	return ret;
}
