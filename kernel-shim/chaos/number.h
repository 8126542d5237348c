/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Numbers as they are written: 10 or 0xa; 010 is ten. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is all of the text one, and not above the limit? */
bool number_parse(const char *text, size_t len, uint64_t limit,
		  uint64_t *value);
