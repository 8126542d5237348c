// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * zoo: run each buggy program with one seed after another until its mistake
 * shows, and each corrected program with many seeds (docs/zoo.md).  Each
 * round is a new process, which has not opened the device yet, with the seed
 * in URXE_ADVERSARY.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zoo.h"

static const char usage[] =
	"usage: zoo [-n SEEDS] [-m SEEDS] [-s FIRST] [-p] [-r] [-l] [-q] [NAME...]\n"
	"       zoo -w|-c NAME\n"
	"  -n  maximum number of seeds for each buggy program: 100\n"
	"  -m  number of seeds for each corrected program: 1000\n"
	"  -s  first seed: 1\n"
	"  -p  run without the adversary; buggy programs need not fail\n"
	"  -r  run all programs with the referee, not only those that need it\n"
	"  -l  print the table of the programs\n"
	"  -q  print only unexpected results\n"
	"  -w  run the buggy program once, with URXE_ADVERSARY as it is set\n"
	"  -c  run the corrected program once\n";

#define HANG_S 2 /* time limit of a program that is expected to hang */
#define LIMIT_S 120 /* time limit of all others */

static struct program *programs;
static char *said; /* result of the child, in shared memory */
static char notes[64]; /* path of the referee's findings */
#define SAID 200

void program_add(struct program *a)
{
	struct program **p = &programs;

	while (*p && strcmp((*p)->name, a->name) < 0)
		p = &(*p)->next;
	a->next = *p;
	*p = a;
}

void expect(bool ok, const char *else_what)
{
	if (ok)
		return;
	if (said)
		snprintf(said, SAID, "%s", else_what);
	else
		fprintf(stderr, "%s\n", else_what);
	_exit(1);
}

struct options {
	unsigned int wrong, corrected, first;
	bool plain, referee, quiet;
};

static void child(const struct program *a, const struct options *o,
		  unsigned int seed, bool corrected)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", seed);
	if (o->plain)
		unsetenv("URXE_ADVERSARY");
	else
		setenv("URXE_ADVERSARY", text, 1);
	if (a->rule || o->referee) {
		setenv("URXE_CHECK", "warning", 1);
		setenv("URXE_CHECK_FOUND", notes, 1);
		setenv("URXE_CHECK_LOG", "/dev/null", 1);
	}
	alarm(a->hangs && !corrected ? HANG_S : LIMIT_S);
	a->run(corrected);
	_exit(0); /* the device is closed when the process exits */
}

/*
 * Return whether the referee reported a finding.  The rule is the fourth
 * field of a note.
 */
static bool is_reported(void)
{
	char line[4096], rule[40];
	bool found = false;
	FILE *f;

	f = fopen(notes, "r");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "F\t%*[^\t]\t%*[^\t]\t%39[^\t\n]", rule) ==
			1;
	if (f)
		fclose(f);
	unlink(notes);
	if (found)
		snprintf(said, SAID, "referee: %s", rule);
	return found;
}

/* The program ended in an unexpected way. */
static void __attribute__((noreturn))
broken(const struct program *a, unsigned int seed)
{
	printf("%s, seed %u: %s\n", a->name, seed, said);
	exit(99);
}

/* Run a program once.  Return false if it failed; said has the reason. */
static bool round_run(const struct program *a, const struct options *o,
		      unsigned int seed, bool corrected)
{
	pid_t pid;
	int status;

	said[0] = 0;
	fflush(stdout);
	pid = fork();
	if (!pid)
		child(a, o, seed, corrected);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			exit(99);
	if (WIFSIGNALED(status)) {
		snprintf(said, SAID, "%s", strsignal(WTERMSIG(status)));
		if (!a->hangs || WTERMSIG(status) != SIGALRM)
			broken(a, seed);
		snprintf(said, SAID, "the program hangs");
	} else if (WEXITSTATUS(status) > 1) {
		broken(a, seed);
	}
	if (is_reported())
		return false;
	return !WIFSIGNALED(status) && !WEXITSTATUS(status);
}

/* Return whether the mistake shows within the given number of seeds. */
static bool buggy_run(const struct program *a, const struct options *o)
{
	unsigned int i;

	for (i = 0; i < o->wrong; i++) {
		if (round_run(a, o, o->first + i, false))
			continue;
		if (!o->quiet)
			printf("%-20s seed %-3u %s\n", a->name, o->first + i,
			       said);
		return true;
	}
	if (o->wrong)
		printf("%-20s no failure with %u seeds\n", a->name, o->wrong);
	return !o->wrong;
}

static bool corrected_run(const struct program *a, const struct options *o)
{
	unsigned int i;

	for (i = 0; i < o->corrected; i++) {
		if (round_run(a, o, o->first + i, true))
			continue;
		printf("%-20s corrected, seed %u: %s\n", a->name, o->first + i,
		       said);
		return false;
	}
	return true;
}

static bool is_selected(const struct program *a, char **names)
{
	bool all = !*names;

	for (; *names; names++)
		all |= !strcmp(a->name, *names);
	return all;
}

static void list(void)
{
	const struct program *a;

	for (a = programs; a; a = a->next)
		printf("| `%s` | %s | %s%s | %s |\n", a->name, a->wrong,
		       a->rule ? "referee: " : "", a->rule ? a->rule : a->found,
		       a->seen);
}

/* Run one program in this process. */
static int run(const char *name, bool corrected)
{
	const struct program *a = programs;

	while (a && (!name || strcmp(a->name, name) != 0))
		a = a->next;
	if (!a)
		return fputs(usage, stderr), 2;
	a->run(corrected);
	_exit(0); /* the device is closed when the process exits */
}

static int run_all(const struct options *o, char **names)
{
	const struct program *a;
	bool ok = true;
	int n = 0;

	for (a = programs; a; a = a->next) {
		if (!is_selected(a, names))
			continue;
		ok &= buggy_run(a, o) || o->plain;
		ok &= corrected_run(a, o);
		n++;
	}
	printf("%d programs\n", n);
	return ok && n ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct options o = { .wrong = 100, .corrected = 1000, .first = 1 };
	int c;

	while ((c = getopt(argc, argv, "n:m:s:prlqwc")) >= 0) {
		if (c == 'n')
			o.wrong = (unsigned int)atoi(optarg);
		else if (c == 'm')
			o.corrected = (unsigned int)atoi(optarg);
		else if (c == 's')
			o.first = (unsigned int)atoi(optarg);
		else if (c == 'p')
			o.plain = true;
		else if (c == 'r')
			o.referee = true;
		else if (c == 'q')
			o.quiet = true;
		else if (c == 'l')
			return list(), 0;
		else if (c == 'w' || c == 'c')
			return run(argv[optind], c == 'c');
		else
			return fputs(usage, stderr), 2;
	}
	snprintf(notes, sizeof(notes), "/tmp/urxe-zoo-%d", (int)getpid());
	said = mmap(NULL, SAID, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (said == MAP_FAILED)
		return 99;
	return run_all(&o, argv + optind);
}
