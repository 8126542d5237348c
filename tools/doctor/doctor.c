// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: check this machine, and print a line or a JSON object for each
 * result.  With --fabric, check the shared state of a fabric (inspect.c).
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "doctor.h"
#include "common/commands.h"

char doctor_fabric[256];
/* clang-format off */
static const struct command_option options[] = {
	{ 'f', "fabric", "NAME", "check the shared state of this fabric",
	  "this machine" },
	{ 'j', "json", NULL, "print JSON", "lines" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_doctor(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} checks[] = {
		{ "shared-memory", check_shared_memory },
		{ "place", check_place },
		{ "fabric", check_fabric_dir },
		{ "completion-queues", check_rings },
		{ "huge-pages", check_huge_pages },
		{ "limits", check_limits },
		{ "memlock", check_memlock },
		{ "yama", check_yama },
		{ "process-vm", check_process_vm },
		{ "cpus", check_cpus },
		{ "netlink", check_netlink },
		{ "libibverbs", check_libibverbs },
		{ "libraries", check_libraries },
		{ "other-preload", check_other_preload },
		{ "host-devices", check_host_devices },
		{ "adversary", check_adversary },
		{ "faults", check_faults },
		{ "wire", check_wire },
	};
	const char *fabric = NULL;
	bool json = false;
	unsigned int i;
	int c;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c == 'f')
			fabric = optarg;
		else if (c == 'j')
			json = true;
		else
			return usage();
	}
	if (optind != argc)
		return usage();
	if (choose_fabric(fabric, doctor_fabric))
		return EXIT_USAGE;
	report_begin(json);
	if (fabric) {
		report_check("fabric");
		inspect_fabric(doctor_fabric);
		return report_end();
	}
	for (i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		report_check(checks[i].name);
		checks[i].run();
	}
	return report_end();
}

/* clang-format off */
const struct command command_doctor = {
	.name = "doctor",
	.run = cmd_doctor,
	.operands = "",
	.what = "Check this machine for what urxe needs, and print how to repair problems.",
	.options = options,
};
/* clang-format on */
