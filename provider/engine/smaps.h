/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* /proc/self/smaps: mappings with what the program asked for each of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct smaps_vma {
	uint64_t start, end;
	uint64_t offset, dev, ino; /* ino 0: anonymous */
	int prot; /* PROT_* */
	bool shared;
	bool ordinary; /* nothing was asked for that another would not have */
	bool no_fork; /* MADV_DONTFORK */
	char path[64]; /* its beginning */
};

/* NULL: there is none. */
FILE *smaps_open(void);
/* The next mapping; false at the end, or where it cannot be read on. */
bool smaps_next(FILE *f, struct smaps_vma *v);
/* -EIO: there may be mappings that smaps_next() did not get to. */
int smaps_close(FILE *f);
