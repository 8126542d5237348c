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

static const char text[] =
	"usage: urxe run [--fabric NAME] [--with-host-devices] [--] CMD [ARG...]\n"
	"       urxe env [--fabric NAME] [--with-host-devices] [--github]\n"
	"       urxe info [--fabric NAME]\n"
	"       urxe rm FABRIC... | --unused\n"
	"       urxe port down|up [--fabric NAME] [DEVICE]\n"
	"       urxe doctor [--fabric NAME]\n"
	"       urxe --help | --version\n"
	"\n"
	"run     run CMD with the RDMA device urxe0; the host's RDMA devices are\n"
	"        hidden from it unless --with-host-devices is given\n"
	"env     print the environment that run gives CMD, for eval in a shell, or\n"
	"        with --github as lines for the file $GITHUB_ENV\n"
	"info    show fabrics, devices and who uses them; clear up after the dead\n"
	"rm      remove fabrics that nobody uses\n"
	"port    take the device's port down or up, as pulling its cable would\n"
	"doctor  check what this machine gives urxe, and say how to mend it; with\n"
	"        --fabric, check that all that its programs share agrees\n";

int usage(void)
{
	fputs(text, stderr);
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

/* The file `name` in dir, which may be relative to this program's. */
static int full_path(const char *dir, const char *name, char *buf, size_t len)
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
		if (full_path(places[i].preload_dir, PRELOAD, preload, len))
			continue;
		*provider_dir = 0;
		if (places[i].provider_dir)
			full_path(places[i].provider_dir, "", provider_dir,
				  dlen);
		return 0;
	}
	return -ENOENT;
}

static int fail_why(int code, int err, const char *fabric)
{
	return fail(code, "fabric %s: %s", fabric,
		    *fabric_why() ? fabric_why() : strerror(-err));
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

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = {
		{ "run", cmd_run },
		{ "env", cmd_env },
		{ "info", cmd_info },
		{ "rm", cmd_rm },
		{ "port", cmd_port },
		{ "doctor", cmd_doctor },
	};
	unsigned int i;

	if (argc < 2)
		return usage();
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		fputs(text, stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("urxe " URXE_VERSION);
		return 0;
	}
	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			argv[1] = argv[0]; /* getopt's messages begin so */
			return commands[i].run(argc - 1, argv + 1);
		}
	fail(0, "there is no command \"%s\"", argv[1]);
	return usage();
}
