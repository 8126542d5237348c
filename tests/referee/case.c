// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "case.h"

static const struct test_case *chosen;
static bool wrong;

START_TEST(chosen_case)
{
	chosen->run(wrong);
}
END_TEST

/* Run the case in this process.  Return nonzero if it failed. */
static int run_chosen(void)
{
	Suite *s = suite_create(chosen->name);
	TCase *t = tcase_create(chosen->name);
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, chosen_case);
	suite_add_tcase(s, t);
	srunner_set_fork_status(r, CK_NOFORK);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}

int case_main(int argc, char **argv, const struct test_case *cases)
{
	const struct test_case *c;

	if (argc == 2 && !strcmp(argv[1], "-l")) {
		for (c = cases; c->name; c++)
			puts(c->name);
		return 0;
	}
	for (c = cases; argc == 3 && c->name; c++) {
		if (strcmp(c->name, argv[1]))
			continue;
		chosen = c;
		wrong = !strcmp(argv[2], "wrong");
		return run_chosen();
	}
	fprintf(stderr, "usage: %s -l | NAME wrong|right\n", argv[0]);
	return 2;
}
