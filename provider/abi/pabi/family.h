/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Families: the releases of libibverbs that have the same private table. */
#pragma once

#include <stddef.h>

struct pabi_family {
	unsigned int column; /* of slots.h */
	unsigned int number; /* of the private ABI */
	const char *symbol; /* missing in older ones with this number */
	unsigned int count; /* of operations in the table */
	size_t head; /* bytes of verbs_context before the ibv_context */
};

/* Return the family of an opened libibverbs.  NULL: it is unknown. */
const struct pabi_family *family_find(void *lib);

/* Return the function verbs_register_driver_NUMBER of @lib, or NULL. */
void *family_register_driver(void *lib, unsigned int number);

/* Return the number of the private ABI of @lib, or 0. */
unsigned int family_number(void *lib);

/* Return the number of the newest known private ABI. */
unsigned int family_newest(void);
