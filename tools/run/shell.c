// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe run without a command: a shell whose prompt names the fabric. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/commands.h"

/*
 * Commands that bash and fish run in addition to the user's start-up files.
 * That of bash is a file to be read; its last line closes the descriptor.
 */
#define BASH_RC                                \
	"[ ! -r ~/.bashrc ] || . ~/.bashrc\n"  \
	"PS1='(urxe:$URXE_FABRIC) '\"$PS1\"\n" \
	"exec %d<&-\n"
#define FISH_INIT                                                  \
	"functions --copy fish_prompt urxe_inner_prompt;"          \
	"function fish_prompt; printf '(urxe:%s) ' $URXE_FABRIC; " \
	"urxe_inner_prompt; end"

/* Characters without a special meaning in a prompt of zsh. */
#define PLAIN                        \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789._-"

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *user_shell(void)
{
	const char *path = getenv("SHELL");
	const struct passwd *pw;

	if (!path || !*path) {
		pw = getpwuid(geteuid());
		path = pw ? pw->pw_shell : NULL;
	}
	/* nologin and false: the shells of service accounts */
	if (!path || access(path, X_OK) || strstr(path, "nologin") ||
	    !strcmp(name_of(path), "false"))
		return "/bin/sh";
	return path;
}

/*
 * Return the name of a pipe that holds BASH_RC, for --rcfile, or NULL.  It is
 * valid until the process ends.
 */
static char *bash_rc(void)
{
	char *name;
	int p[2];

	if (!isatty(STDERR_FILENO) || pipe(p)) /* bash is not interactive */
		return NULL;
	dprintf(p[1], BASH_RC, p[0]);
	close(p[1]);
	if (asprintf(&name, "/dev/fd/%d", p[0]) < 0)
		return NULL;
	return name;
}

/* Set PS1, for shells that take their prompt from it, as zsh and dash. */
static void set_prompt(const char *shell, const char *fabric)
{
	const char *old = getenv("PS1"), *name = "$URXE_FABRIC", *rest;
	char *prompt;

	rest = geteuid() ? "$ " : "# ";
	if (!strcmp(shell, "zsh")) {
		/* zsh expands %, not $, in prompts */
		name = strspn(fabric, PLAIN) == strlen(fabric) ? fabric : "";
		rest = "%m%# ";
	}
	if (asprintf(&prompt, "(urxe:%s) %s", name, old && *old ? old : rest) <
	    0)
		return;
	setenv("PS1", prompt, 1);
	free(prompt);
}

char **shell_words(const char *fabric)
{
	static char *words[4];
	const char *path = user_shell(), *name = name_of(path);
	char *rc = NULL;

	words[0] = strdup(path);
	if (!strcmp(name, "bash"))
		rc = bash_rc();
	if (rc) {
		words[1] = strdup("--rcfile");
		words[2] = rc;
	} else if (!strcmp(name, "fish")) {
		words[1] = strdup("--init-command");
		words[2] = strdup(FISH_INIT);
	} else {
		set_prompt(name, fabric);
	}
	fprintf(stderr,
		"urxe: starting %s with the device urxe0 in fabric %s; type exit to leave it\n",
		name, fabric);
	return words;
}
