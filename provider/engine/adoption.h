/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A memfd that has pages of this program; under adopt_begin(). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct adoption {
	uint64_t dev, ino;
	int fd;
	unsigned int refs; /* MRs */
};

/* NULL: that file is none. */
struct adoption *adoption_find(uint64_t dev, uint64_t ino);
/* Or somebody closed it, and has its number again. */
bool adoption_has_fd(const struct adoption *a);
unsigned int adoptions_count(void);
/* In the child of a fork, where no mapping is one any more. */
void adoptions_forget(void);
