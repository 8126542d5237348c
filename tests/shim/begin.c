// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a program finds when it begins.  It is linked with libc only. */
#include "test.h"

int main(void)
{
	CHECK(!errno);
	return 0;
}
