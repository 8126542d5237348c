// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A libibverbs.so.1 with an unsupported private ABI, newer or older than
 * those that the provider knows.  The provider must refuse it.
 */
#define CONCAT(a, b) a##b
#define NAMED(number) CONCAT(verbs_register_driver_, number)

void NAMED(NUMBER)(const void *driver);

void NAMED(NUMBER)(const void *driver)
{
	(void)driver;
	__builtin_trap(); /* the provider must not register a driver */
}
