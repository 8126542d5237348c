// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe env: print the environment that urxe run gives a program, for programs
 * that are started in another way.  The output is for a shell, as in
 * eval "$(urxe env)", or with --github NAME=value lines, as for the file
 * $GITHUB_ENV of a CI.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/commands.h"
#include "record.h"
#include "trial.h"

void print_quoted(FILE *to, const char *word)
{
	fputc('\'', to);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", to);
		else
			fputc(*word, to);
	fputc('\'', to);
}

static void print_sh(const char *name, const char *value)
{
	if (!value) {
		printf("unset %s\n", name);
		return;
	}
	printf("export %s=", name);
	print_quoted(stdout, value);
	putchar('\n');
}

/*
 * Print an unset variable as an empty one: such a file cannot unset a
 * variable, and empty variables of urxe have no effect.
 */
static void print_line(const char *name, const char *value)
{
	printf("%s=%s\n", name, value ? value : "");
}

/* clang-format off */
static const struct command_option options[] = {
	DEVICE_OPTIONS,
	OPTION_HEADING("Adversary"),
	ADVERSARY_OPTIONS,
	RECORD_OPTIONS,
	OPTION_HEADING("Output"),
	{ 'g', "github", NULL, "print NAME=value lines, the format of the file $GITHUB_ENV",
	  "shell commands" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_env(int argc, char **argv)
{
	static const char *const names[] = {
		"LD_PRELOAD",	     "URXE_FABRIC",
		"URXE_PROVIDER_DIR", "URXE_HOST_DEVICES",
		"URXE_DIR",	     "ASAN_OPTIONS",
		"TSAN_OPTIONS",	     "URXE_ADVERSARY",
		"URXE_TRACE",	     "URXE_TRACE_PAYLOAD",
		"URXE_ADOPT",	     "URXE_WIRE",
		"URXE_DEVICES",	     "URXE_PROFILE",
		"URXE_LINK_LAYER",   "URXE_SM",
		"URXE_CLUSTER",	     "URXE_HOST",
		"URXE_TIMING",
	};
	void (*print)(const char *name, const char *value) = print_sh;
	struct device_options device = { 0 };
	const char *value;
	struct record_options record = { 0 };
	struct trial trial = { 0 };
	unsigned int i;
	int c, ret = TRIAL_CHOSEN;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c == 'g')
			print = print_line;
		else
			ret = trial_option(&trial, &device, &record, c, optarg);
		if (ret == TRIAL_OTHER)
			return usage();
		if (ret != TRIAL_CHOSEN)
			return ret;
	}
	if (optind < argc)
		return usage();
	ret = set_environment(device.fabric, device.host);
	if (!ret)
		ret = trial_set_environment(&trial);
	if (!ret)
		ret = record_set_environment(&record);
	if (ret)
		return ret;
	/* print all variables or, if one has a line break, none */
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		value = getenv(names[i]);
		if (print == print_line && value && strchr(value, '\n'))
			return fail(1,
				    "%s contains a line break, which "
				    "--github cannot print",
				    names[i]);
	}
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		print(names[i], getenv(names[i]));
	return fflush(stdout) ? fail(1, "cannot write to standard output") : 0;
}

/* clang-format off */
const struct command command_env = {
	.name = "env",
	.run = cmd_env,
	.operands = "",
	.what = "Print the environment that urxe run gives a command, for programs that are started "
		"in another way.",
	.options = options,
	.examples = "  eval \"$(urxe env)\"\n"
		    "  urxe env --github >>\"$GITHUB_ENV\"\n",
};
/* clang-format on */
