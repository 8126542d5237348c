// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * without-process-vm [-r | -w] CMD ARGS...
 *
 * Run CMD and its descendants without process_vm_readv (-r),
 * process_vm_writev (-w) or both.  Exit with 77 if the system has no seccomp
 * filters, and with 2 if CMD is missing or cannot be executed.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "forbid.h"

#define SKIP 77
#define USAGE 2

int main(int argc, char **argv)
{
	int err, what = FORBID_READ | FORBID_WRITE;

	if (argc > 1 && !strcmp(argv[1], "-r"))
		what = FORBID_READ;
	else if (argc > 1 && !strcmp(argv[1], "-w"))
		what = FORBID_WRITE;
	if (what != (FORBID_READ | FORBID_WRITE))
		argv++;
	if (argc < 2 || !argv[1])
		return USAGE;
	err = forbid(what);
	if (err) {
		printf("SKIP: no seccomp filter: %s\n", strerror(err));
		return SKIP;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return USAGE;
}
