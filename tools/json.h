/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * A string of JSON, with its quotes.  Names and paths may hold any bytes; those
 * that are no UTF-8 are taken for Latin-1.  It can stand in an HTML page's
 * <script>: what would end that, or a line there, is written as a number.
 */
void json_string(FILE *to, const char *s);

/* A text with members and elements; the writer sets the commas. */
struct json {
	FILE *to;
	bool more; /* one was written there already */
};

/* What begins with { or [, and ends so; name is NULL in a list. */
void json_open(struct json *j, const char *name, char bracket);
void json_close(struct json *j, char bracket);
void json_put_string(struct json *j, const char *name, const char *s);
void json_put_number(struct json *j, const char *name, uint64_t n);
void json_put_signed(struct json *j, const char *name, int64_t n);
void json_put_double(struct json *j, const char *name, double x);
void json_put_bool(struct json *j, const char *name, bool is);
void json_put_null(struct json *j, const char *name);

/* Bytes of the character of UTF-8 that s begins with; 0: it is none. */
int utf8_length(const char *s);
