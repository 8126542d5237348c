/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Releases of libibverbs that have one private table in common. */
#pragma once

#include <stddef.h>

struct pabi_family {
	unsigned int column; /* in slots.h */
	unsigned int number; /* of the private ABI */
	const char *symbol; /* that others of this number do not have */
	unsigned int count; /* operations in the table */
	size_t head; /* bytes of verbs_context before the ibv_context */
};

/* That of an opened libibverbs; NULL: none that is known. */
const struct pabi_family *family_find(void *lib);

/* The function that takes a driver, whose name has the number; NULL: none. */
void *family_register_driver(void *lib, unsigned int number);

/* The private ABI that an opened libibverbs says it has.  0: none. */
unsigned int family_number(void *lib);

/* The newest that is known. */
unsigned int family_newest(void);
