// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables of libibverbs' private operations (abi/pabi/slots.h).  For each
 * private ABI the slots must be numbered without gaps in alphabetical order
 * of the operations, as in the operations structure of libibverbs.
 */
#include <check.h>
#include <stdlib.h>

#include "abi/pabi/family.h"
#include "abi/pabi/slots.h"

static const struct {
	const char *name;
	int slot[PABI_COLUMNS];
} ops[] = {
#define SLOT(name, ...) { #name, { __VA_ARGS__ } },
#include "abi/pabi/slots.h"
};
#define OPS ((int)(sizeof(ops) / sizeof(*ops)))

static const struct pabi_family families[] = {
#define FAMILY(...) { __VA_ARGS__ },
#include "abi/pabi/slots.h"
};
#define FAMILIES ((int)(sizeof(families) / sizeof(*families)))

/* The slots of each private ABI are numbered from 0 without gaps. */
START_TEST(slots_have_no_gap)
{
	unsigned int column = families[_i].column;
	int i, slot, next = 0;

	ck_assert_uint_lt(column, PABI_COLUMNS);
	for (i = 0; i < OPS; i++) {
		slot = ops[i].slot[column];
		if (slot < 0)
			continue;
		ck_assert_msg(slot == next, "%s is at %d, not %d", ops[i].name,
			      slot, next);
		next++;
	}
	ck_assert_uint_eq(next, families[_i].count);
}
END_TEST

/* The operations are in alphabetical order. */
START_TEST(operations_in_alphabetical_order)
{
	int i;

	for (i = 1; i < OPS; i++)
		ck_assert_str_lt(ops[i - 1].name, ops[i].name);
}
END_TEST

/* An operation that a private ABI has is in all later ones. */
START_TEST(later_abis_keep_operations)
{
	int i, k;

	for (i = 0; i < OPS; i++)
		for (k = 1; k < PABI_COLUMNS; k++)
			ck_assert(ops[i].slot[k] >= ops[i].slot[k - 1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("slots");
	TCase *c = tcase_create("slots");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(c, slots_have_no_gap, 0, FAMILIES);
	tcase_add_test(c, operations_in_alphabetical_order);
	tcase_add_test(c, later_abis_keep_operations);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
