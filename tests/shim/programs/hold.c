// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hold [NETNS]: open the device and keep it open until killed.  With NETNS,
 * enter that network namespace after the open, and check that sysfs of the
 * device can be read from there.
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
	alarm(600); /* ends the process if the test does not */
	pause();
	return 0;
}
