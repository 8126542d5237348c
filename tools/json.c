// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdbool.h>

#include "json.h"

static bool is_between(char c, unsigned char low, unsigned char high)
{
	return (unsigned char)c >= low && (unsigned char)c <= high;
}

/* Bytes of the character that s begins with; 0: it is none (RFC 3629, 4). */
static int utf8_length(const char *s)
{
	unsigned char first = (unsigned char)*s;
	int i, n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4 ||
	    !is_between(s[1],
			first == 0xe0 ? 0xa0 :
			first == 0xf0 ? 0x90 :
					0x80,
			first == 0xed ? 0x9f :
			first == 0xf4 ? 0x8f :
					0xbf))
		return 0;
	for (i = 2; i < n; i++)
		if (!is_between(s[i], 0x80, 0xbf))
			return 0;
	return n;
}

/* U+2028 and U+2029, which end a line of JavaScript. */
static bool ends_line(const char *s)
{
	return s[0] == '\xe2' && s[1] == '\x80' &&
	       (s[2] == '\xa8' || s[2] == '\xa9');
}

void json_string(FILE *to, const char *s)
{
	int n;

	fputc('"', to);
	for (; *s; s += n) {
		n = utf8_length(s);
		if (!n || (unsigned char)*s < ' ' || *s == '<') {
			fprintf(to, "\\u%04x", (unsigned char)*s);
			n = 1;
		} else if (ends_line(s)) {
			fprintf(to, "\\u202%c", s[2] == '\xa8' ? '8' : '9');
		} else {
			fprintf(to, "%s%.*s",
				*s == '"' || *s == '\\' ? "\\" : "", n, s);
		}
	}
	fputc('"', to);
}
