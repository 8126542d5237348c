/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Common part of the fuzzing harnesses.  Each harness defines the two
 * functions that libFuzzer calls.  Without libFuzzer, driver.c calls them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Create a private fabric and set the environment for it.  Return its
 * directory, which is removed when the process exits.
 */
const char *parse_place(void);

/* The rest of an input.  Beyond the end it reads as zeros. */
struct bytes {
	const uint8_t *at;
	size_t left;
};
static inline void bytes_take(struct bytes *b, void *to, size_t n)
{
	size_t k = n < b->left ? n : b->left;

	memset(to, 0, n);
	if (k)
		memcpy(to, b->at, k);
	b->at += k;
	b->left -= k;
}

static inline uint8_t bytes_next(struct bytes *b)
{
	uint8_t v;

	bytes_take(b, &v, 1);
	return v;
}
