/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Exit status and assertion of the programs of the shim tests. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SKIP 77

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (cond)                                                      \
			break;                                                 \
		fprintf(stderr, "%s:%d: %s (errno: %s)\n", __FILE__, __LINE__, \
			#cond, strerror(errno));                               \
		exit(1);                                                       \
	} while (0)
