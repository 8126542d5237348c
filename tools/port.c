// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe port down|up: pulling the cable, and putting it back. */
#include <stdio.h>
#include <string.h>

#include "fabric/fabric.h"
#include "commands.h"

int cmd_port(int argc, char **argv)
{
	const char *name = NULL, *word = NULL, *device = URXE_DEVICE_NAME;
	struct urxe_fabric *f;
	char dir[256];
	int i, ret;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--fabric") && i + 1 < argc)
			name = argv[++i];
		else if (*argv[i] == '-')
			return usage();
		else if (!word)
			word = argv[i];
		else
			device = argv[i];
	}
	if (!word || (strcmp(word, "up") && strcmp(word, "down")))
		return usage();
	if (strcmp(device, URXE_DEVICE_NAME))
		return fail(1, "there is no device %s, only " URXE_DEVICE_NAME,
			    device);
	ret = choose_fabric(name, dir);
	if (!ret)
		ret = use_fabric(dir, true, &f); /* down for those who come */
	if (ret)
		return ret;
	if (fabric_set_port(f, !strcmp(word, "up")))
		printf("the port of %s is %s already\n", device, word);
	fabric_close(f);
	return 0;
}
