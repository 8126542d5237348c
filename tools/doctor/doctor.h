/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The checks of urxe doctor.  doctor.c calls each of them; each calls
 * report() for its results.
 */
#pragma once

#include <stdbool.h>

enum verdict { OK, WARN, FAIL };

/*
 * Print a result (verdict.c): the verdict and what was found.  cost is the
 * consequence and mend the remedy; both may be NULL, as for OK.
 */
void report(enum verdict v, const char *cost, const char *mend, const char *fmt,
	    ...) __attribute__((format(printf, 4, 5)));

/*
 * Begin the output, name the check that the next results belong to, and end
 * the output.  report_end() returns the exit code: 1 if a result was FAIL
 * (verdict.c).
 */
void report_begin(bool json);
void report_check(const char *name);
int report_end(void);

#define ok(...) report(OK, NULL, NULL, __VA_ARGS__)

extern char doctor_fabric[256]; /* directory of the fabric that is checked */

void check_shared_memory(void); /* doctor_mem.c */
void check_place(void);
void check_fabric_dir(void);
/* Report that the fabric at dir cannot be opened; err is from fabric_open(). */
void report_closed_fabric(const char *dir, int err);
void check_huge_pages(void);
void check_limits(void);
void check_memlock(void);
void check_rings(void); /* doctor_ring.c */
void check_yama(void); /* doctor_proc.c */
void check_process_vm(void);
void check_cpus(void);
void check_netlink(void); /* doctor_libs.c */
void check_libibverbs(void);
void check_libraries(void);
void check_other_preload(void);
void check_host_devices(void);
void check_adversary(void);
void check_faults(void);
void check_wire(void); /* doctor_wire.c */
/*
 * doctor_firewall.c; wanted: URXE_WIRE is set, so that problems are warnings
 */
void check_firewall(bool wanted, bool ipv6);

/* Check the whole shared state of the fabric at dir. */
void inspect_fabric(const char *dir); /* inspect.c */
