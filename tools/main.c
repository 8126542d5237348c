// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The urxe command: dispatch to a subcommand, and help. */
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
#include "common/commands.h"

static const struct command *const commands[] = {
	&command_run,  &command_env,	 &command_info,	 &command_rm,
	&command_port, &command_profile, &command_trace, &command_top,
	&command_why,  &command_doctor,	 &command_bench, &command_lesson,
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const char examples[] =
	"  urxe run ibv_devinfo                 list the device\n"
	"  urxe run                             a shell whose programs have the device\n"
	"  urxe run ib_write_bw -R & urxe run ib_write_bw -R localhost\n"
	"                                       two programs that communicate\n";

static int help_of(const struct command *c)
{
	print_synopsis(stdout, c);
	putchar('\n');
	print_wrapped(stdout, c->what, 0);
	if (c->options) {
		puts("\nOptions, with their defaults in brackets:\n");
		options_print(stdout, c->options);
	}
	if (c->examples)
		printf("\nExamples:\n%s", c->examples);
	puts("\nSee also: man urxe");
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
	puts("\nurxe COMMAND --help lists the options of a command.  See also: man urxe");
	return 0;
}

/* "urxe" without arguments: print an introduction. */
static int greet(void)
{
	fprintf(stderr,
		"urxe: an RDMA device without RDMA hardware.  Try:\n\n%s\n"
		"urxe --help lists all commands, urxe doctor checks this machine\n",
		examples);
	return EXIT_USAGE;
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
			"unknown command \"%s\"; to run this program with the device: urxe run %s",
			word, word);
	return fail(EXIT_USAGE, "unknown %s \"%s\"%s; urxe --help lists all",
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
	current_command = command_named(argv[1]);
	if (!current_command)
		return no_command(argv[1]);
	if (help_asked || (argc > 2 && is_help(argv[2])))
		return help_of(current_command);
	argv[1] = argv[0]; /* getopt_long() starts its messages with it */
	return current_command->run(argc - 1, argv + 1);
}
