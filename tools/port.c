// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe port down|up: set the state of the port of a device, as unplugging or
 * plugging its cable does.
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

/*
 * Return the number of the device with that name (NULL: the only one), or -1
 * after a message.
 */
static int choose_device(const struct urxe_fabric *f, const char *name)
{
	const int k = name ? hca_number(name) : 0;

	if (!name && f->hcas > 1)
		fail(0,
		     "the fabric has %u devices; name one of them, as in urxe port down urxe1",
		     f->hcas);
	else if (k >= 0 && (uint32_t)k < f->hcas)
		return k;
	else if (f->hcas == 1)
		fail(0, "no device %s; the only device is urxe0", name);
	else
		fail(0, "no device %s; the devices are urxe0 to urxe%u", name,
		     f->hcas - 1);
	return -1;
}

/* Remove the number of the port, as in urxe1/1: a device has one port. */
static const char *name_of_device(char *word)
{
	char *slash = strchr(word, '/');

	if (slash && !strcmp(slash, "/1"))
		*slash = '\0';
	return word;
}

static int cmd_port(int argc, char **argv)
{
	static const char *const words[] = { "down", "up", NULL };
	const char *name = NULL, *word, *device;
	struct urxe_fabric *f;
	char dir[256];
	int c, k, ret;

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
	device = optind + 1 < argc ? name_of_device(argv[optind + 1]) : NULL;
	/* without a fabric, since it would be created */
	if (device && hca_number(device) < 0)
		return fail(
			1, "no device %s; devices are called urxe0, urxe1, ...",
			device);
	ret = choose_fabric(name, dir);
	if (!ret && name)
		print_created(dir);
	if (!ret)
		/* create it, so that later programs find the port down */
		ret = use_fabric(dir, true, &f);
	if (ret)
		return ret;
	k = choose_device(f, device);
	if (k >= 0 && fabric_set_port(f, (uint32_t)k, !strcmp(word, "up")))
		printf("the port of " URXE_DEVICE_NAME "%d is already %s\n", k,
		       word);
	fabric_close(f);
	return k < 0;
}

/* clang-format off */
const struct command command_port = {
	.name = "port",
	.run = cmd_port,
	.operands = "down|up [DEVICE[/1]]",
	.what = "Set the port of a device down or up, as unplugging or plugging its cable would.",
	.options = options,
	.examples = "  urxe port down --fabric test\n"
		    "  urxe port up urxe1\n",
};
/* clang-format on */
