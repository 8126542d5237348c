// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe run without a command: a shell whose prompt says which fabric it is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

/* What bash and fish run after the user's own files. */
#define BASH_RC                                \
	"[ ! -r ~/.bashrc ] || . ~/.bashrc\n"  \
	"PS1='(urxe:$URXE_FABRIC) '\"$PS1\"\n" \
	"exec %d<&-\n"
#define FISH_INIT                                                  \
	"functions --copy fish_prompt urxe_inner_prompt;"          \
	"function fish_prompt; printf '(urxe:%s) ' $URXE_FABRIC; " \
	"urxe_inner_prompt; end"

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
	/* accounts of services have these, and cannot mean them */
	if (!path || access(path, X_OK) || strstr(path, "nologin") ||
	    !strcmp(name_of(path), "false"))
		return "/bin/sh";
	return path;
}

/* A file that bash reads, and then closes; or NULL. */
static char *bash_rc(void)
{
	char *name;
	int p[2];

	if (!isatty(STDERR_FILENO) || pipe(p)) /* it would not ask */
		return NULL;
	dprintf(p[1], BASH_RC, p[0]);
	close(p[1]);
	if (asprintf(&name, "/dev/fd/%d", p[0]) < 0)
		return NULL;
	return name;
}

/* For shells that take their prompt from the environment, as zsh and dash. */
static void set_prompt(const char *shell, const char *fabric)
{
	const char *old = getenv("PS1"), *name = "$URXE_FABRIC", *rest;
	char *prompt;

	rest = geteuid() ? "$ " : "# ";
	if (!strcmp(shell, "zsh")) {
		/* it expands % where the others expand $ */
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
		"urxe: %s with the device urxe0, in fabric %s; exit ends it\n",
		name, fabric);
	return words;
}
