// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * errno is 0 when main() is called.  This program is linked with libc only,
 * so only the preload library could have changed it.
 */
#include "test.h"

int main(void)
{
	CHECK(!errno);
	return 0;
}
