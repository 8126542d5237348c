// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "commands.h"

#define PRELOAD "liburxe-kshim.so"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments;
	const char *what; /* lines after the first begin in column 9 */
} commands[] = {
	{ "run", cmd_run,
	  "[--fabric NAME] [--with-host-devices] [--timeout TIME]\n"
	  "                [--adopt] [--wire[=ADDRESS|INTERFACE]]\n"
	  "                [--adversary[=[SEED|sweep:N][,KNOB=VALUE...]]]\n"
	  "                [--fault RULE|@FILE]... [--trace FILE [--trace-records N]\n"
	  "                [--trace-payload[=BYTES]]]\n"
	  "                [--check[=LEVEL] [--exitcode N] [--suppressions FILE]\n"
	  "                [--report FORMAT[:FILE]]] [--] [CMD [ARG...]]",
	  "run CMD, or a shell, with the RDMA device urxe0; the host's RDMA\n"
	  "        devices are hidden unless --with-host-devices is given; with\n"
	  "        --adversary the device does all that the specification allows\n"
	  "        (--adversary=help); with --fault something goes wrong\n"
	  "        (--fault=help); with --check a referee says which rules CMD\n"
	  "        breaks; with --trace all is recorded; with --adopt peers map\n"
	  "        the memory that is registered; with --wire other hosts are\n"
	  "        reached, over RoCE v2" },
	{ "env", cmd_env,
	  "[--fabric NAME] [--with-host-devices] [--adopt]\n"
	  "                [--wire[=ADDRESS|INTERFACE]]\n"
	  "                [--adversary[=[SEED][,KNOB=VALUE...]]] [--github]\n"
	  "                [--trace FILE [--trace-records N] [--trace-payload[=BYTES]]]",
	  "print the environment that run gives CMD, for eval in a shell, or\n"
	  "        with --github as lines for the file $GITHUB_ENV" },
	{ "info", cmd_info, "[--fabric NAME | --names]",
	  "show fabrics, devices and who uses them, and clear up after the\n"
	  "        dead; with --names, the fabrics' names only" },
	{ "rm", cmd_rm, "FABRIC... | --unused",
	  "remove fabrics that nobody uses" },
	{ "port", cmd_port, "down|up [--fabric NAME] [DEVICE]",
	  "take the device's port down or up, as pulling its cable would" },
	{ "trace", cmd_trace,
	  "[--errors] [--qp QPN] [--wr-id N] [--program NAME|PID]\n"
	  "                  [--follow] [--pcap OUT | --perfetto OUT | --html OUT]\n"
	  "                  FILE...",
	  "show what run --trace recorded, as text, or write it as packets for\n"
	  "        Wireshark, as JSON for ui.perfetto.dev, or as a page to look\n"
	  "        at: a ladder diagram" },
	{ "lesson", cmd_lesson, "[[--files] N]",
	  "list the lessons of a course in RDMA, or run one in a fabric of\n"
	  "        its own; with --files, say where its page and source are" },
	{ "top", cmd_top,
	  "[--fabric NAME] [-1] [--json] [--sort KEY] [--delay SECONDS]",
	  "show who does what in a fabric, and what waits there, until q is\n"
	  "        typed; once with -1, or where there is no terminal" },
	{ "why", cmd_why, "[--fabric NAME] [PID|QPN]",
	  "say what each WR that does not go on waits for, since when, and\n"
	  "        what would end it" },
	{ "bench", cmd_bench,
	  "[--quick] [--rounds N] [--rt] [--json FILE] [--svg FILE]\n"
	  "                  [--markdown FILE]",
	  "measure latency, bandwidth and message rate beside the limits of\n"
	  "        the machine, and UCX and libfabric if they are installed" },
	{ "doctor", cmd_doctor, "[--fabric NAME] [--json]",
	  "check what this machine gives urxe, and say how to mend it; with\n"
	  "        --fabric, check that all that its programs share agrees" },
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct command *current; /* the one that runs */

static const char examples[] =
	"  urxe run ibv_devinfo                 see the device\n"
	"  urxe run                             a shell whose programs have it\n"
	"  urxe run ib_write_bw -R & urxe run ib_write_bw -R localhost\n"
	"                                       two programs that talk RDMA\n";

/* The line of one command. */
static void synopsis(FILE *to, const char *before, const struct command *c)
{
	fprintf(to, "%s urxe %s %s\n", before, c->name, c->arguments);
}

static void explain(FILE *to, const struct command *c)
{
	fprintf(to, "%-7s %s\n", c->name, c->what);
}

static int help_of(const struct command *c)
{
	synopsis(stdout, "usage:", c);
	putchar('\n');
	explain(stdout, c);
	puts("\nman urxe has it all");
	return 0;
}

static int help(void)
{
	unsigned int i;

	for (i = 0; i < COMMANDS; i++)
		synopsis(stdout, i ? "      " : "usage:", &commands[i]);
	puts("       urxe --help | --version\n");
	for (i = 0; i < COMMANDS; i++)
		explain(stdout, &commands[i]);
	printf("\nFor example:\n%s", examples);
	return 0;
}

/* Who types nothing but "urxe" has not met it yet. */
static int greet(void)
{
	fprintf(stderr,
		"urxe: an RDMA device without RDMA hardware.  Try:\n\n%s\n"
		"urxe --help shows all commands, urxe doctor what this machine lacks\n",
		examples);
	return EXIT_USAGE;
}

int usage(void)
{
	synopsis(stderr, "usage:", current);
	fprintf(stderr, "urxe %s --help says more\n", current->name);
	return EXIT_USAGE;
}

int fail(int code, const char *fmt, ...)
{
	va_list ap;

	fputs("urxe: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return code;
}

/* A build tree, an installation that was moved, the place of installation. */
static const struct {
	const char *preload_dir; /* relative ones to this program */
	const char *provider_dir; /* NULL: the same */
} places[] = {
	{ "../kernel-shim/preload", "../provider" },
	{ "../" URXE_LIBDIR_REL, NULL },
	{ URXE_LIBDIR, NULL },
};

int find_beside(const char *dir, const char *name, char *buf, size_t len)
{
	char own[4096] = "", path[8192], *real;
	ssize_t n;

	if (*dir != '/') {
		n = readlink("/proc/self/exe", own, sizeof(own) - 1);
		if (n < 0)
			return -ENOENT;
		own[n] = 0;
		strrchr(own, '/')[1] = 0;
	}
	n = snprintf(path, sizeof(path), "%s%s/%s", own, dir, name);
	if (n >= (ssize_t)sizeof(path))
		return -ENAMETOOLONG;
	real = realpath(path, NULL);
	if (!real)
		return -errno;
	n = snprintf(buf, len, "%s", real);
	free(real);
	return (size_t)n < len ? 0 : -ENAMETOOLONG;
}

int find_libraries(char *preload, size_t len, char *provider_dir, size_t dlen)
{
	unsigned int i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (find_beside(places[i].preload_dir, PRELOAD, preload, len))
			continue;
		*provider_dir = 0;
		if (places[i].provider_dir)
			find_beside(places[i].provider_dir, "", provider_dir,
				  dlen);
		return 0;
	}
	return -ENOENT;
}

static int fail_why(int code, int err, const char *fabric)
{
	return fail(code, "fabric %s: %s; urxe doctor says how to mend it",
		    fabric, *fabric_why() ? fabric_why() : strerror(-err));
}

int choose_fabric(const char *name, char dir[256])
{
	const char *env = getenv("URXE_FABRIC");
	int ret;

	if (!name)
		name = env && *env ? env : "default";
	if (!*name || setenv("URXE_FABRIC", name, 1))
		return fail(EXIT_USAGE, "a fabric needs a name");
	ret = fabric_dir(dir, 256);
	return ret ? fail_why(EXIT_USAGE, ret, name) : 0;
}

int use_fabric(const char *dir, bool create, struct urxe_fabric **f)
{
	int ret = fabric_open(dir, create, f);

	return ret ? fail_why(1, ret, dir) : 0;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* "urxe ibv_devinfo" is what many type first. */
static int no_command(const char *word)
{
	char path[4096];

	if (*word == '-')
		return fail(EXIT_USAGE,
			    "there is no option %s; urxe --help shows all",
			    word);
	if (find_program(word, path, sizeof(path)) && !access(path, X_OK))
		return fail(
			EXIT_USAGE,
			"there is no command \"%s\"; to run that program with the device: urxe run %s",
			word, word);
	return fail(EXIT_USAGE,
		    "there is no command \"%s\"; urxe --help shows all", word);
}

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc < 2)
		return greet();
	if (is_help(argv[1]) || !strcmp(argv[1], "help"))
		return help();
	if (!strcmp(argv[1], "--version")) {
		puts("urxe " URXE_VERSION);
		return 0;
	}
	for (i = 0; i < COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		if (argc > 2 && is_help(argv[2]))
			return help_of(&commands[i]);
		current = &commands[i];
		argv[1] = argv[0]; /* getopt's messages begin so */
		return current->run(argc - 1, argv + 1);
	}
	return no_command(argv[1]);
}
