// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the subcommands share: error messages, and lookup of the libraries and
 * of the fabric. See commands.h.
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
#include "commands.h"
#include "fabric/fabric.h"

#define PRELOAD "liburxe-kshim.so"

const struct command *current_command;

void print_synopsis(FILE *to, const struct command *c)
{
	fprintf(to, "usage: urxe %s%s%s%s\n", c->name,
		c->options ? " [OPTION...]" : "", *c->operands ? " " : "",
		c->operands);
}

int usage(void)
{
	print_synopsis(stderr, current_command);
	fprintf(stderr, "see urxe %s --help\n", current_command->name);
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
	return fail(EXIT_USAGE, "%s: \"%s\": use %s%s", option, word, list,
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
	return fail(code, "%sno file %s%s%s%s", prefix, dir,
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

int find_relative(const char *dir, const char *name, char *buf, size_t len)
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

int find_helper(const char *name, const char *built, char *path, size_t len)
{
	if (!find_relative(built, name, path, len) ||
	    !find_relative("../" URXE_LIBDIR_REL, name, path, len) ||
	    !find_relative(URXE_LIBDIR, name, path, len))
		return 0;
	return fail(1, "%s is neither next to this program nor in " URXE_LIBDIR,
		    name);
}

int find_libraries(char *preload, size_t len, char *provider_dir, size_t dlen)
{
	unsigned int i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (find_relative(places[i].preload_dir, PRELOAD, preload, len))
			continue;
		*provider_dir = 0;
		if (places[i].provider_dir)
			find_relative(places[i].provider_dir, "", provider_dir,
				      dlen);
		return 0;
	}
	return -ENOENT;
}

/* Report an error of a fabric function, which returned err.  Return code. */
static int fail_why(int code, int err, const char *fabric)
{
	return fail(code, "fabric %s: %s; urxe doctor prints how to repair it",
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
