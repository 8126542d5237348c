/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of memfds that hold adopted pages of this process (adopt.h);
 * internal to adopt.c and adopt_fork.c.  The caller holds the adoption lock,
 * adopt_begin().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct adoption {
	uint64_t dev, ino;
	int fd;
	unsigned int refs; /* MRs */
	/*
	 * A private mapping, here or in a child, may still read pages of the
	 * file until they are copied on write: the file is never emptied.
	 */
	bool may_be_read;
};

/* Return the entry of that file, or NULL. */
struct adoption *adoption_find(uint64_t dev, uint64_t ino);
/* False if the program closed a->fd, or reused its number. */
bool adoption_has_fd(const struct adoption *a);
unsigned int adoptions_count(void);
/* Set shown in all entries: a child may have mappings of them. */
void adoptions_set_may_be_read(void);
/*
 * In the child of a fork, which has no mapping of an adopted file any more:
 * close the descriptors, empty the table, and reinitialize and take the lock.
 */
void adoptions_forget(void);
