// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Identification of a release of libibverbs by its symbols; family.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "family.h"

static const struct pabi_family families[] = {
#define FAMILY(...) { __VA_ARGS__ },
#include "slots.h"
};
#define FAMILIES (sizeof(families) / sizeof(*families))

/* The number of a private ABI is the number of a release. */
#define FIRST_NUMBER 34
#define LAST_NUMBER 255

void *family_register_driver(void *lib, unsigned int number)
{
	char name[40];

	snprintf(name, sizeof(name), "verbs_register_driver_%u", number);
	return dlsym(lib, name);
}

unsigned int family_number(void *lib)
{
	unsigned int number;

	for (number = FIRST_NUMBER; number <= LAST_NUMBER; number++)
		if (family_register_driver(lib, number))
			return number;
	return 0;
}

unsigned int family_newest(void)
{
	return families[FAMILIES - 1].number;
}

const struct pabi_family *family_find(void *lib)
{
	const struct pabi_family *f;

	/* newest first: it also has the symbols of older families */
	for (f = families + FAMILIES; f-- > families;)
		if (family_register_driver(lib, f->number) &&
		    (!f->symbol || dlsym(lib, f->symbol)))
			return f;
	return NULL;
}
