// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The urxe command: dispatch to a subcommand, help, error messages, and
 * lookup of the libraries and of the fabric.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chaos/nearest.h"
#include "fabric/fabric.h"
#include "commands.h"

#define PRELOAD "liburxe-kshim.so"

static const struct command *const commands[] = {
	&command_run,	 &command_env,	 &command_info,	  &command_rm,
	&command_port,	 &command_trace, &command_top,	  &command_why,
	&command_doctor, &command_bench, &command_lesson,
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct command *current; /* the running command */

static const char examples[] =
	"  urxe run ibv_devinfo                 see the device\n"
	"  urxe run                             a shell whose programs have it\n"
	"  urxe run ib_write_bw -R & urxe run ib_write_bw -R localhost\n"
	"                                       two programs that talk RDMA\n";

static void synopsis(FILE *to, const struct command *c)
{
	fprintf(to, "usage: urxe %s%s%s%s\n", c->name,
		c->options ? " [OPTION...]" : "", *c->operands ? " " : "",
		c->operands);
}

static int help_of(const struct command *c)
{
	synopsis(stdout, c);
	putchar('\n');
	print_wrapped(stdout, c->what, 0);
	if (c->options) {
		puts("\nOptions, with their defaults in brackets:\n");
		options_print(stdout, c->options);
	}
	if (c->examples)
		printf("\nExamples:\n%s", c->examples);
	puts("\nman urxe says more");
	return 0;
}

static int help(void)
{
	unsigned int i;

	puts("usage: urxe COMMAND [OPTION...] [ARGUMENT...]\n"
	     "       urxe --help | --version\n"
	     "\nCommands:");
	for (i = 0; i < COMMANDS; i++) {
		printf("  %-8s ", commands[i]->name);
		print_wrapped(stdout, commands[i]->what, 11);
	}
	printf("\nExamples:\n%s", examples);
	puts("\nurxe COMMAND --help shows the options of a command, man urxe says more");
	return 0;
}

/* "urxe" without arguments: print an introduction. */
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
	synopsis(stderr, current);
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

int fail_word(const char *option, const char *word, const char *const *words)
{
	char list[256] = "", meant[NEAREST_TEXT];
	struct nearest near;
	size_t n = 0, i;

	nearest_begin(&near, word, strlen(word));
	for (i = 0; words[i]; i++) {
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
				      !i	   ? "" :
				      words[i + 1] ? ", " :
						     " or ",
				      words[i]);
		nearest_try(&near, words[i]);
	}
	return fail(EXIT_USAGE, "%s: \"%s\": it is %s%s", option, word, list,
		    nearest_text(&near, meant));
}

int fail_file(int code, const char *prefix, const char *path, int err,
	      const char *what)
{
	char dir[4096] = "";

	if (err != ENOENT)
		return fail(code, "%s%s: %s", prefix, path, strerror(err));
	if (!strncmp(path, "./", 2))
		path += 2;
	if (*path != '/' && !getcwd(dir, sizeof(dir)))
		*dir = '\0';
	return fail(code, "%sthere is no file %s%s%s%s", prefix, dir,
		    dir[0] && dir[1] ? "/" : "", path, what);
}

/* The build tree, a relocated installation, the configured installation. */
static const struct {
	const char *preload_dir; /* relative to the executable's directory */
	const char *provider_dir; /* NULL: the same directory */
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

/* Report an error of a fabric function, which returned err.  Return code. */
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
	char text[FABRICS_TEXT];

	if (ret == -ENOENT && !create)
		return fail(1, "%s", no_fabric_text(dir, text));
	return ret ? fail_why(1, ret, dir) : 0;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static const struct command *command_named(const char *word)
{
	unsigned int i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i]->name, word))
			return commands[i];
	return NULL;
}

/*
 * Report an unknown command or option.  If it is a program, suggest urxe run:
 * users often type "urxe ibv_devinfo" first.
 */
static int no_command(const char *word)
{
	char path[4096], meant[NEAREST_TEXT];
	struct nearest near;
	unsigned int i;

	nearest_begin(&near, word, strlen(word));
	for (i = 0; i < COMMANDS; i++)
		nearest_try(&near, commands[i]->name);
	nearest_try(&near, "--help");
	nearest_try(&near, "--version");
	if (*word != '-' && find_program(word, path, sizeof(path)) &&
	    !access(path, X_OK))
		return fail(
			EXIT_USAGE,
			"there is no command \"%s\"; to run that program with the device: urxe run %s",
			word, word);
	return fail(EXIT_USAGE,
		    "there is no %s \"%s\"%s; urxe --help shows all",
		    *word == '-' ? "option" : "command", word,
		    nearest_text(&near, meant));
}

int main(int argc, char **argv)
{
	bool help_asked;

	if (argc < 2)
		return greet();
	if (!strcmp(argv[1], "--version")) {
		puts("urxe " URXE_VERSION);
		return 0;
	}
	help_asked = is_help(argv[1]) || !strcmp(argv[1], "help");
	if (help_asked && argc < 3)
		return help();
	if (help_asked) { /* urxe help run */
		argc--;
		argv++;
	}
	current = command_named(argv[1]);
	if (!current)
		return no_command(argv[1]);
	if (help_asked || (argc > 2 && is_help(argv[2])))
		return help_of(current);
	argv[1] = argv[0]; /* getopt_long() starts its messages with it */
	return current->run(argc - 1, argv + 1);
}
