/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parser of /proc/self/smaps (proc_pid_smaps(5)): the mappings of this
 * process with their VmFlags.  Used by page adoption.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct smaps_vma {
	uint64_t start, end;
	uint64_t offset, dev, ino; /* ino 0: anonymous */
	int prot; /* PROT_* */
	bool shared;
	bool ordinary; /* no VmFlags beyond those of plain memory */
	bool no_fork; /* MADV_DONTFORK */
	char path[64]; /* may be truncated */
};

/* Open the file; NULL if that fails, as without /proc. */
FILE *smaps_open(void);
/* Read the next mapping; false at the end of the file, or on an error. */
bool smaps_next(FILE *f, struct smaps_vma *v);
/* Close it.  0, or -EIO if smaps_next() stopped because of an error. */
int smaps_close(FILE *f);
