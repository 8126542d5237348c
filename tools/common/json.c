// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A JSON writer, which also validates UTF-8. */
#include "json.h"

static bool is_between(char c, unsigned char low, unsigned char high)
{
	return (unsigned char)c >= low && (unsigned char)c <= high;
}

/* The ranges of each byte: RFC 3629, section 4. */
int utf8_length(const char *s)
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

/* U+2028 and U+2029, which JavaScript takes for line terminators. */
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

static void json_begin(struct json *j, const char *name)
{
	if (j->more)
		fputc(',', j->to);
	j->more = true;
	if (!name)
		return;
	json_string(j->to, name);
	fputc(':', j->to);
}

void json_open(struct json *j, const char *name, char bracket)
{
	json_begin(j, name);
	fputc(bracket, j->to);
	j->more = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->to);
	j->more = true;
}

void json_put_string(struct json *j, const char *name, const char *s)
{
	json_begin(j, name);
	json_string(j->to, s);
}

void json_put_number(struct json *j, const char *name, uint64_t n)
{
	json_begin(j, name);
	fprintf(j->to, "%llu", (unsigned long long)n);
}

void json_put_signed(struct json *j, const char *name, int64_t n)
{
	json_begin(j, name);
	fprintf(j->to, "%lld", (long long)n);
}

void json_put_double(struct json *j, const char *name, double x)
{
	json_begin(j, name);
	fprintf(j->to, "%.3f", x);
}

void json_put_bool(struct json *j, const char *name, bool is)
{
	json_begin(j, name);
	fputs(is ? "true" : "false", j->to);
}

void json_put_null(struct json *j, const char *name)
{
	json_begin(j, name);
	fputs("null", j->to);
}
