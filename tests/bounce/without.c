// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * without-process-vm [-r | -w] CMD ARGS...
 *
 * Run CMD, and all it starts, where process_vm_readv and process_vm_writev
 * (with -r or -w only that one) are forbidden.  Exits with 77 where the system
 * has no seccomp filters.
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
