// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * soak [-n PROCESSES] [-t SECONDS] [-s SEED] [-H]: the conductor.
 *
 * The soak runs in rounds.  Worker processes are started.  The conductor
 * kills, stops and starves some of them.  At the end of a round the remaining
 * ones exit by themselves.  Then their shared state must be consistent and
 * empty, as checked by "urxe doctor --fabric".  In every second round each
 * worker is in its own PID namespace, if that is permitted.  With -H the
 * conductor does not check that the others make progress while a process is
 * stopped.
 *
 * The seed determines what the conductor and the workers do, but not the
 * scheduling of the processes.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

#define ROUND_MS 15000
/* Extra time until each kind of link has completed a job */
#define GRACE_MS 600000
#define TICK_MS 20

static bool holds = true, apart;
static uint64_t seed;
static struct {
	uint64_t kills, stops, limits, starts;
} did;

static void say(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	printf("soak: ");
	vprintf(fmt, ap);
	putchar('\n');
	va_end(ap);
	fflush(stdout);
}

static void nap(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

/* ----------------------------------------------------------- the workers */

/* Kill the workers.  No worker outlives the conductor. */
static void kill_all(void)
{
	uint32_t i;

	for (i = 0; i < sh->n; i++)
		if (sh->slot[i].pid)
			kill((pid_t)sh->slot[i].pid, SIGKILL);
}

static void show_where(uint32_t i)
{
	const struct slot *s = &sh->slot[i];
	const uint32_t f = s->waits_for;

	say("slot %u (process %u) is in: %s%s%.0u", i, s->pid,
	    s->doing ? s->doing : "?", f == WAITS_FOR_ALL ? ", may wait for all" :
	    f ? ", may wait for slot " : "", f && f != WAITS_FOR_ALL ? f - 1 : 0);
}

static void __attribute__((noreturn)) give_up(void)
{
	const char *keep = getenv("SOAK_KEEP"); /* seconds for a debugger */
	uint32_t i;

	for (i = 0; i < sh->n; i++)
		show_where(i);
	say("FAILED; again with: -s %llu", (unsigned long long)seed);
	if (keep)
		nap(1000u * (unsigned int)atoi(keep));
	kill_all();
	exit(1);
}

/* Fork a worker, in a new PID namespace if `apart`. */
static pid_t fork_worker(void)
{
	int fd, back = 0;
	pid_t pid;

	if (!apart)
		return fork();
	fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || unshare(CLONE_NEWPID)) {
		apart = false;
		say("no PID namespaces for us: without them");
		return fork();
	}
	pid = fork();
	if (pid)
		back = setns(fd, CLONE_NEWPID);
	close(fd);
	if (back) {
		say("setns does not lead back");
		give_up();
	}
	return pid;
}

static void start(uint32_t i)
{
	struct slot *s = &sh->slot[i];
	uint64_t own = seed ^ (uint64_t)(s->starts + 1) << 20 ^ i << 8;
	uint32_t d;
	pid_t pid;

	for (d = 0; d < SLOTS; d++)
		s->door[d].epoch = 0;
	s->starved = 0;
	s->starts++;
	s->disturbed++;
	did.starts++;
	pid = fork_worker();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(worker_run(i, own));
	}
	if (pid < 0) {
		say("fork: %m");
		give_up();
	}
	s->pid = (uint32_t)pid;
}

/* Reap workers.  They may exit only if @ending. */
static void reap(bool ending)
{
	uint32_t i;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < sh->n && sh->slot[i].pid != (uint32_t)pid; i++)
			;
		if (i == sh->n)
			continue; /* a child whose parent was killed */
		if (WIFEXITED(status) && !WEXITSTATUS(status) && ending) {
			sh->slot[i].pid = 0;
			continue;
		}
		say("slot %u ended with %s %d: %s", i,
		    WIFSIGNALED(status) ? "signal" : "status",
		    WIFSIGNALED(status) ? WTERMSIG(status) :
					  WEXITSTATUS(status),
		    sh->slot[i].said);
		give_up();
	}
}

static void kill_one(uint32_t i)
{
	struct slot *s = &sh->slot[i];
	pid_t pid = (pid_t)s->pid;

	s->pid = 0;
	s->disturbed++;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	did.kills++;
}

/* ------------------------------------------------------------- stopping */

/*
 * Return whether slot @i has made progress since @beats and @cycles, or may
 * legitimately wait for the slot @stopped.
 */
static bool got_on(uint32_t i, uint32_t stopped, uint64_t beats,
		   uint64_t cycles)
{
	const struct slot *s = &sh->slot[i];
	uint32_t f = s->waits_for;

	return i == stopped || !s->pid || f == WAITS_FOR_ALL ||
	       f == stopped + 1 ||
	       (s->beats > beats + 1 && s->cycles > cycles);
}

/* While a process is stopped, all others must complete a cycle (cycle.c). */
static void hold(uint32_t stopped)
{
	uint64_t beats[SLOTS], cycles[SLOTS], end = now_ms() + LIMIT_MS;
	bool all = false;
	uint32_t i;

	for (i = 0; i < sh->n; i++) {
		beats[i] = sh->slot[i].beats;
		cycles[i] = sh->slot[i].cycles;
	}
	while (!all && now_ms() < end) {
		nap(TICK_MS);
		reap(false);
		for (i = 0, all = true; i < sh->n; i++)
			all &= got_on(i, stopped, beats[i], cycles[i]);
	}
	if (all)
		return;
	for (i = 0; i < sh->n; i++)
		if (!got_on(i, stopped, beats[i], cycles[i]))
			say("slot %u, which is stopped, holds up slot %u",
			    stopped, i);
	give_up();
}

static void stop_one(uint32_t i)
{
	struct slot *s = &sh->slot[i];

	s->disturbed++;
	sh->stops++;
	kill((pid_t)s->pid, SIGSTOP);
	did.stops++;
	nap(rnd(200));
	if (holds && rnd(2))
		hold(i);
	if (rnd(3) == 0) {
		kill_one(i);
	} else {
		kill((pid_t)s->pid, SIGCONT);
		s->disturbed++;
	}
	sh->stops++;
}

/* ---------------------------------------------------------------- limits */

static void set_limit(pid_t pid, int what, uint64_t value)
{
	struct rlimit r;

	if (prlimit(pid, what, NULL, &r))
		return;
	r.rlim_cur = value < r.rlim_max ? value : r.rlim_max;
	prlimit(pid, what, &r, NULL);
}

/* Limit descriptors, processes or address space for a while. */
static void starve_one(uint32_t i)
{
	static const int what[] = {
		RLIMIT_NOFILE,
		RLIMIT_NPROC,
	/* ASan ends the process if it cannot map memory for itself */
#ifndef __SANITIZE_ADDRESS__
		RLIMIT_AS,
#endif
	};
	struct slot *s = &sh->slot[i];
	struct rlimit before;
	uint32_t k = rnd(sizeof(what) / sizeof(what[0]));

	if (prlimit((pid_t)s->pid, what[k], NULL, &before))
		return;
	s->starved = 1;
	s->limits++;
	s->disturbed++;
	did.limits++;
	set_limit((pid_t)s->pid, what[k], k == 0 ? 4 + rnd(40) : 1);
	nap(rnd(300));
	prlimit((pid_t)s->pid, what[k], &before, NULL);
	nap(200);
	s->disturbed++;
	s->starved = 0;
}

/* ---------------------------------------------------------------- rounds */

static void watch(uint64_t beats[SLOTS], uint64_t since[SLOTS])
{
	uint32_t i;

	for (i = 0; i < sh->n; i++) {
		struct slot *s = &sh->slot[i];

		if (!s->pid || s->beats != beats[i]) {
			beats[i] = s->beats;
			since[i] = now_ms();
		} else if (now_ms() - since[i] > LIMIT_MS) {
			say("slot %u has done nothing for %d ms", i, LIMIT_MS);
			give_up();
		}
	}
}

static void disturb(void)
{
	uint32_t i = rnd(sh->n);

	if (!sh->slot[i].pid) {
		if (rnd(2))
			start(i);
		return;
	}
	switch (rnd(60)) {
	case 0:
	case 1:
		kill_one(i);
		break;
	case 2:
	case 3:
		stop_one(i);
		break;
	case 4:
		starve_one(i);
		break;
	default:
		break;
	}
}

/* End the round: all workers and their children exit by themselves. */
static void end_round(void)
{
	uint64_t end = now_ms() + LIMIT_MS;
	uint32_t i, left;
	pid_t pid;

	sh->quit = 1;
	do {
		nap(TICK_MS);
		reap(true);
		for (i = left = 0; i < sh->n; i++)
			left += sh->slot[i].pid != 0;
	} while (left && now_ms() < end);
	if (left) {
		say("not all end");
		give_up();
	}
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && now_ms() < end)
		if (!pid)
			nap(TICK_MS);
	if (pid >= 0) {
		say("a child of those that ended does not end");
		give_up();
	}
}

static void inspect(void)
{
	const char *fabric = getenv("URXE_FABRIC");
	char cmd[600];

	snprintf(cmd, sizeof(cmd), "\"%s\" doctor --fabric %s",
		 getenv("URXE") ? getenv("URXE") : "urxe",
		 fabric ? fabric : "default");
	if (system(cmd))
		give_up();
}

static void one_round(uint32_t n, uint64_t ms)
{
	uint64_t end = now_ms() + ms, beats[SLOTS] = { 0 }, since[SLOTS] = { 0 };
	uint32_t i;

	apart = n % 2;
	sh->quit = 0;
	for (i = 0; i < sh->n; i++) {
		since[i] = now_ms();
		start(i);
	}
	while (now_ms() < end) {
		nap(TICK_MS);
		reap(false);
		watch(beats, since);
		disturb();
	}
	end_round();
	inspect();
}

static uint64_t jobs_done(uint32_t kind)
{
	uint64_t jobs = 0;
	uint32_t i;

	for (i = 0; i < sh->n; i++)
		jobs += sh->slot[i].jobs[kind];
	return jobs;
}

/*
 * Return whether each kind of link has completed a job.  On a busy machine
 * this may take longer than the requested time.
 */
static bool each_kind_is_done(void)
{
	uint32_t k;

	for (k = 0; k < KINDS; k++)
		if (!jobs_done(k))
			return false;
	return true;
}

static void report(void)
{
	uint64_t sum[6] = { 0 };
	uint32_t i, k;

	for (i = 0; i < sh->n; i++) {
		const struct slot *s = &sh->slot[i];

		sum[0] += s->datagrams;
		sum[1] += s->connections;
		sum[2] += s->cycles;
		sum[3] += s->children;
		sum[4] += s->broken;
		sum[5] += s->refused;
	}
	for (k = 0; k < KINDS; k++)
		say("%s: %llu jobs", kind_name[k],
		    (unsigned long long)jobs_done(k));
	say("%llu datagrams, %llu connections, %llu lives of objects, %llu children",
	    (unsigned long long)sum[0], (unsigned long long)sum[1],
	    (unsigned long long)sum[2], (unsigned long long)sum[3]);
	say("%llu links broke, %llu verbs were refused",
	    (unsigned long long)sum[4], (unsigned long long)sum[5]);
	say("%llu starts, %llu kills, %llu stops, %llu limits",
	    (unsigned long long)did.starts, (unsigned long long)did.kills,
	    (unsigned long long)did.stops, (unsigned long long)did.limits);
	if (!each_kind_is_done()) {
		say("no job of some kind was done");
		exit(1);
	}
}

static void meet(uint32_t n)
{
	const char *dir = getenv("URXE_DIR");
	int fd;

	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		exit(2);
	sh->n = n;
	snprintf(sh->xrcd, sizeof(sh->xrcd), "%s/xrcd", dir ? dir : "/tmp");
	fd = open(sh->xrcd, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		exit(2);
	close(fd);
	/* reap the children of workers that were killed */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(int argc, char **argv)
{
	uint64_t seconds = 20, round_ms, end;
	uint32_t n = 4, round;
	int c;

	if (argc > 1 && !strcmp(argv[1], "--import"))
		return child_import(argc, argv);
	seed = now_ms() * 7919 + (uint64_t)getpid();
	while ((c = getopt(argc, argv, "n:t:s:H")) >= 0) {
		if (c == 'n')
			n = (uint32_t)atoi(optarg);
		else if (c == 't')
			seconds = strtoull(optarg, NULL, 0);
		else if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'H')
			holds = false;
		else
			return 2;
	}
	if (n < 1 || n > SLOTS)
		return 2;
	meet(n);
	rnd_seed(seed);
	say("%u processes, %llu s, seed %llu", n, (unsigned long long)seconds,
	    (unsigned long long)seed);
	/* one round with and one without PID namespaces */
	round_ms = seconds * 500 < ROUND_MS ? seconds * 500 : ROUND_MS;
	end = now_ms() + seconds * 1000;
	for (round = 0; now_ms() < end ||
			(!each_kind_is_done() && now_ms() < end + GRACE_MS);
	     round++)
		one_round(round, round_ms);
	report();
	return 0;
}
