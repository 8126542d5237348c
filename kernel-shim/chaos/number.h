/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers in options and environment variables: decimal, or hexadecimal with
 * prefix 0x.  There is no octal notation: 010 is ten.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Parse all of @text.  False: it is not a number, or more than @limit; *value
 * is unchanged.
 */
bool number_parse(const char *text, size_t len, uint64_t limit,
		  uint64_t *value);
