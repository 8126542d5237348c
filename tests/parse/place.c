// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A private fabric for a harness (parse_place()) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "parse.h"

static char place[64];

static void place_remove(void)
{
	dir_remove(AT_FDCWD, place);
}

const char *parse_place(void)
{
	snprintf(place, sizeof(place), "/dev/shm/urxe-parse-XXXXXX");
	if (!mkdtemp(place)) {
		snprintf(place, sizeof(place), "/tmp/urxe-parse-XXXXXX");
		if (!mkdtemp(place))
			abort();
	}
	atexit(place_remove);
	setenv("URXE_DIR", place, 1);
	setenv("URXE_FABRIC", "fuzz", 1);
	unsetenv("URXE_DM_SIZE");
	unsetenv("URXE_HOST_DEVICES");
	return place;
}
