// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Source locations of calls: addr2line(1), and a cache of its output. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source.h"

/*
 * Whether @line is in a system header. Inline functions of libibverbs are
 * attributed to the program that calls them, so such frames are skipped.
 */
static bool is_inlined(const char *line)
{
	return !strncmp(line, "/usr/include/", 13);
}

/*
 * Run addr2line -i for @address in @module. The output lists inlined frames,
 * innermost first. Store the first frame that is not in a system header in
 * @out, without its newline; if all are, store the last one. Return false,
 * with @out empty, if addr2line printed nothing.
 */
static bool addr2line(const char *module, unsigned long address, char *out,
		      int len)
{
	char at[32];
	char *argv[] = { "addr2line", "-i", "-e", (char *)module, at, NULL };
	posix_spawn_file_actions_t to;
	FILE *from;
	bool ok;
	pid_t pid;
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return false;
	snprintf(at, sizeof(at), "0x%lx", address);
	posix_spawn_file_actions_init(&to);
	posix_spawn_file_actions_adddup2(&to, p[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&to, STDERR_FILENO, "/dev/null", 1, 0);
	ok = !posix_spawnp(&pid, argv[0], &to, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&to);
	close(p[1]);
	from = fdopen(p[0], "r");
	if (ok) {
		ok = from && fgets(out, len, from);
		while (ok && is_inlined(out) && fgets(out, len, from))
			;
	} else {
		pid = -1;
	}
	if (from)
		fclose(from);
	else
		close(p[0]);
	if (pid > 0) /* its output pipe is closed, so it ends */
		waitpid(pid, NULL, 0);
	out[ok ? strcspn(out, "\n") : 0] = 0;
	return ok;
}

/*
 * Return @path relative to the working directory if it is below it: programs
 * that show a report next to the source expect this.
 */
static const char *below(const char *path)
{
	char cwd[4096];
	size_t n;

	if (!getcwd(cwd, sizeof(cwd)))
		return path;
	n = strlen(cwd);
	return !strncmp(path, cwd, n) && path[n] == '/' ? path + n + 1 : path;
}

/*
 * Without inlining, as in a debug build, these are functions of the program.
 * addr2line then returns a line of the header for their frames; the module is
 * the program's.
 */
const char *source_header(const char *function)
{
	if (!strncmp(function, "ibv_", 4))
		return "infiniband/verbs.h";
	if (!strncmp(function, "rdma_post_", 10) ||
	    !strncmp(function, "rdma_reg_", 9))
		return "rdma/rdma_verbs.h";
	return NULL;
}

/* Cache of addr2line results: many stacks share callers. */
static struct known {
	struct known *next;
	char *module, *file;
	unsigned long address;
	unsigned int line;
} * known;

static struct known *known_get(const char *module, unsigned long address)
{
	struct known *k;

	for (k = known; k; k = k->next)
		if (k->address == address && !strcmp(k->module, module))
			return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->module = strdup(module);
	k->address = address;
	k->next = known;
	known = k;
	return k;
}

static void look_up(struct known *k)
{
	char line[4200], real[4096], *colon;

	if (!addr2line(k->module, k->address, line, sizeof(line)))
		return;
	colon = strrchr(line, ':');
	if (!colon || line[0] == '?' || !atoi(colon + 1))
		return;
	*colon = 0;
	k->file = strdup(below(realpath(line, real) ? real : line));
	k->line = k->file ? (unsigned int)atoi(colon + 1) : 0;
}

void source_find(struct call *c)
{
	struct known *k, *first = known;

	if (c->file || source_header(c->function))
		return;
	k = known_get(c->module, c->address);
	if (!k || !k->module)
		return;
	if (known != first)
		look_up(k);
	c->line = k->line;
	c->file = k->line ? strdup(k->file) : NULL;
}
