// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe rm: remove fabrics that no process uses. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fabric.h"
#include "common/commands.h"

static int rm_fabric(const char *name)
{
	char dir[256], text[FABRICS_TEXT];
	int ret;

	ret = choose_fabric(name, dir);
	if (ret)
		return ret;
	fabric_why_clear();
	ret = fabric_remove_unused(dir, false);
	if (!ret)
		return 0;
	if (ret == -EBUSY || ret == -EAGAIN || ret == -ESTALE)
		return fail(
			1,
			"fabric %s is in use; urxe info --fabric %s lists its processes",
			name, name);
	if (ret == -ENOENT)
		return fail(1, "%s", no_fabric_text(dir, text));
	if (ret == -EINVAL || ret == -ENOTDIR || ret == -ELOOP)
		return fail(1, "%s is not a fabric of this user", dir);
	return fail(1, "fabric %s: %s", name,
		    *fabric_why() ? fabric_why() : strerror(-ret));
}

static void print_removed(const char *name)
{
	printf("removed %s\n", name);
}

/* clang-format off */
static const struct command_option options[] = {
	{ 'u', "unused", NULL, "remove all fabrics that no process uses", "the named fabrics" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_rm(int argc, char **argv)
{
	bool unused = false;
	char dir[256];
	int c, ret = 0;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c != 'u')
			return usage();
		unused = true;
	}
	if (unused == (optind < argc))
		return usage();
	for (; optind < argc; optind++) {
		c = rm_fabric(argv[optind]);
		if (c > ret)
			ret = c;
	}
	if (!unused)
		return ret;
	ret = choose_fabric("default", dir);
	if (ret)
		return ret;
	/* fabric_sweep() omits the fabric that dir names: name none */
	strrchr(dir, '/')[1] = 0;
	fabric_sweep(dir, false, print_removed);
	return 0;
}

/* clang-format off */
const struct command command_rm = {
	.name = "rm",
	.run = cmd_rm,
	.operands = "[FABRIC...]",
	.what = "Remove fabrics that no process uses.",
	.options = options,
};
/* clang-format on */
