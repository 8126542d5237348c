// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe port down|up: set the state of the port of a fabric's device, as
 * unplugging or plugging its cable does.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fabric.h"
#include "common/commands.h"

/* clang-format off */
static const struct command_option options[] = {
	{ 'f', "fabric", "NAME", "use this fabric", "$URXE_FABRIC or default" },
	OPTIONS_END,
};
/* clang-format on */

/* Report that the fabric is created, since its name may be misspelt. */
static void print_created(const char *dir)
{
	char text[FABRICS_TEXT];
	struct urxe_fabric *f;
	int ret = fabric_open(dir, false, &f);

	if (!ret)
		fabric_close(f);
	if (ret == -ENOENT)
		fail(0, "%s; creating fabric %s", no_fabric_text(dir, text),
		     strrchr(dir, '/') + 1);
}

static int cmd_port(int argc, char **argv)
{
	static const char *const words[] = { "down", "up", NULL };
	const char *name = NULL, *word, *device = URXE_DEVICE_NAME;
	struct urxe_fabric *f;
	char dir[256];
	int c, ret;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c != 'f')
			return usage();
		name = optarg;
	}
	if (optind == argc || argc - optind > 2)
		return usage();
	word = argv[optind];
	if (strcmp(word, "up") && strcmp(word, "down"))
		return fail_word("urxe port", word, words);
	if (optind + 1 < argc)
		device = argv[optind + 1];
	if (strcmp(device, URXE_DEVICE_NAME))
		return fail(
			1, "no device %s; the only device is " URXE_DEVICE_NAME,
			device);
	ret = choose_fabric(name, dir);
	if (!ret && name)
		print_created(dir);
	if (!ret)
		/* create it, so that later programs find the port down */
		ret = use_fabric(dir, true, &f);
	if (ret)
		return ret;
	if (fabric_set_port(f, 0, !strcmp(word, "up")))
		printf("the port of %s is already %s\n", device, word);
	fabric_close(f);
	return 0;
}

/* clang-format off */
const struct command command_port = {
	.name = "port",
	.run = cmd_port,
	.operands = "down|up [DEVICE]",
	.what = "Set the port of the device down or up, as unplugging or plugging its cable would.",
	.options = options,
	.examples = "  urxe port down --fabric test\n",
};
/* clang-format on */
