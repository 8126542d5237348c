/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A streaming JSON writer (RFC 8259).  It writes to a stdio stream; ferror()
 * reports write errors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Write s as a JSON string with its quotes.  s may have any bytes; bytes that
 * are not valid UTF-8 are taken for Latin-1.  The output is also safe in a
 * <script> element of HTML: '<', U+2028 and U+2029 are written as \uXXXX.
 */
void json_string(FILE *to, const char *s);

/* Writer state, with which the functions below insert the commas. */
struct json {
	FILE *to;
	bool more; /* the next member or element needs a comma before it */
};

/*
 * Begin and end an object ('{', '}') or an array ('[', ']'); write a member
 * or an element.  name is the member's, or NULL for an element of an array.
 */
void json_open(struct json *j, const char *name, char bracket);
void json_close(struct json *j, char bracket);
void json_put_string(struct json *j, const char *name, const char *s);
void json_put_number(struct json *j, const char *name, uint64_t n);
void json_put_signed(struct json *j, const char *name, int64_t n);
void json_put_double(struct json *j, const char *name, double x);
void json_put_bool(struct json *j, const char *name, bool is);
void json_put_null(struct json *j, const char *name);

/* Return the length in bytes of the UTF-8 character at s, or 0 if invalid. */
int utf8_length(const char *s);
