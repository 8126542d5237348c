// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: a line for each thing that can be wrong on a machine, or with
 * --fabric in what a fabric's processes share (inspect.c).
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "doctor.h"
#include "commands.h"

char doctor_fabric[256];
int cmd_doctor(int argc, char **argv)
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
	static const struct option opts[] = {
		{ "fabric", required_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	const char *fabric = NULL;
	bool json = false;
	unsigned int i;
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) >= 0) {
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
