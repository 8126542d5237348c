// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The tables of libibverbs' private operations: each release has each slot
 * once, in alphabetical order, as its own table has.
 */
#include <check.h>
#include <stdlib.h>

static const struct {
	const char *name;
	int slot[4];
} ops[] = {
#define SLOT(name, v36, v59, v62, v64) { #name, { v36, v59, v62, v64 } },
#include "abi/pabi/slots.h"
#undef SLOT
};
#define OPS ((int)(sizeof(ops) / sizeof(*ops)))

static const int table_size[4] = { 76, 79, 81, 83 };

START_TEST(no_gap)
{
	int i, next = 0;

	for (i = 0; i < OPS; i++) {
		if (ops[i].slot[_i] < 0)
			continue;
		ck_assert_msg(ops[i].slot[_i] == next, "%s is at %d, not %d",
			      ops[i].name, ops[i].slot[_i], next);
		next++;
	}
	ck_assert_int_eq(next, table_size[_i]);
}
END_TEST

START_TEST(alphabetical)
{
	int i;

	for (i = 1; i < OPS; i++)
		ck_assert_str_lt(ops[i - 1].name, ops[i].name);
}
END_TEST

/* What a release has, later ones have. */
START_TEST(nothing_went_away)
{
	int i, k;

	for (i = 0; i < OPS; i++)
		for (k = 1; k < 4; k++)
			ck_assert(ops[i].slot[k] >= ops[i].slot[k - 1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("slots");
	TCase *c = tcase_create("slots");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(c, no_gap, 0, 4);
	tcase_add_test(c, alphabetical);
	tcase_add_test(c, nothing_went_away);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
