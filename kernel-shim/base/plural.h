/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Endings of nouns in messages, for a number: "1 error", "2 errors". */
#pragma once

/* The ending of a noun that follows the number @n. */
static inline const char *plural(unsigned long long n)
{
	return n == 1 ? "" : "s";
}

/* The same with a verb: "1 event is", "2 events are". */
static inline const char *plural_is(unsigned long long n)
{
	return n == 1 ? " is" : "s are";
}

/* "1 event was", "2 events were". */
static inline const char *plural_was(unsigned long long n)
{
	return n == 1 ? " was" : "s were";
}
