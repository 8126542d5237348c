// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parser for unsigned numbers (number.h). */
#include "number.h"

/* Return the value of a hexadecimal digit, or 16. */
static unsigned int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a' + 10) : 16;
}

bool number_parse(const char *text, size_t len, uint64_t limit, uint64_t *value)
{
	unsigned int base = 10, d;
	uint64_t n = 0;

	if (len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') {
		base = 16;
		text += 2;
		len -= 2;
	}
	if (!len)
		return false;
	for (; len; text++, len--) {
		d = digit_of(*text);
		if (d >= base || d > limit || n > (limit - d) / base)
			return false;
		n = n * base + d;
	}
	*value = n;
	return true;
}
