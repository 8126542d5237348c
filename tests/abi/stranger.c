// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A libibverbs.so.1 of a release that there is not yet, or not any more. */
#define CONCAT(a, b) a##b
#define NAMED(number) CONCAT(verbs_register_driver_, number)

void NAMED(NUMBER)(const void *driver);

void NAMED(NUMBER)(const void *driver)
{
	(void)driver;
	__builtin_trap(); /* nobody must give it one */
}
