/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A memfd that has pages of this program; under adopt_begin(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct adoption {
	uint64_t dev, ino;
	int fd;
	unsigned int refs; /* MRs */
	/*
	 * A private mapping, here or in a child, may show what is in it for as
	 * long as it is not written to: it is never emptied.
	 */
	bool shown;
};

/* NULL: that file is none. */
struct adoption *adoption_find(uint64_t dev, uint64_t ino);
/* Or somebody closed it, and has its number again. */
bool adoption_has_fd(const struct adoption *a);
unsigned int adoptions_count(void);
/* A child may have mappings of any of them. */
void adoptions_are_shown(void);
/* In the child of a fork, where no mapping is one any more. */
void adoptions_forget(void);
