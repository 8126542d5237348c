// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: a line for each thing that can be wrong on a machine, or with
 * --fabric in what a fabric's processes share (inspect.c).
 */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>

#include "doctor.h"
#include "commands.h"

char doctor_fabric[256];
static int failures;

void report(enum verdict v, const char *cost, const char *mend, const char *fmt,
	    ...)
{
	static const char *const word[] = { "ok  ", "warn", "FAIL" };
	va_list ap;

	printf("%s  ", word[v]);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	if (cost)
		printf("; cost: %s", cost);
	if (mend)
		printf("; mend: %s", mend);
	putchar('\n');
	failures += v == FAIL;
}

int cmd_doctor(int argc, char **argv)
{
	static void (*const checks[])(void) = {
		check_shared_memory, check_place,	  check_fabric_dir,
		check_rings,	     check_huge_pages,	  check_limits,
		check_memlock,	     check_yama,	  check_process_vm,
		check_cpus,	     check_netlink,	  check_libibverbs,
		check_libraries,     check_other_preload, check_host_devices,
	};
	static const struct option opts[] = {
		{ "fabric", required_argument, NULL, 'f' },
		{ 0 },
	};
	const char *fabric = NULL;
	unsigned int i;
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) >= 0) {
		if (c != 'f')
			return usage();
		fabric = optarg;
	}
	if (optind != argc)
		return usage();
	if (choose_fabric(fabric, doctor_fabric))
		return EXIT_USAGE;
	if (fabric)
		return inspect_fabric(doctor_fabric);
	for (i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		checks[i]();
		fflush(stdout); /* some checks fork */
	}
	return failures ? 1 : 0;
}
