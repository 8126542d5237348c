// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hold [NETNS]: opens the device and keeps it, and in between goes to a network
 * namespace and looks at the GIDs from there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "test.h"

int main(int argc, char **argv)
{
	CHECK(open("/dev/infiniband/uverbs1000", O_RDWR) >= 0);
	if (argc > 1) {
		CHECK(!setns(open(argv[1], O_RDONLY), CLONE_NEWNET));
		CHECK(!access("/sys/class/infiniband/urxe0/ports/1", F_OK));
		CHECK(puts("moved") >= 0 && !fflush(stdout));
	}
	alarm(600); /* nobody is left behind */
	pause();
	return 0;
}
