// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Opens the device and keeps it. */
#include <fcntl.h>
#include <unistd.h>

#include "test.h"

int main(void)
{
	CHECK(open("/dev/infiniband/uverbs1000", O_RDWR) >= 0);
	alarm(600); /* nobody is left behind */
	pause();
	return 0;
}
