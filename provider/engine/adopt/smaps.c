// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parser of /proc/self/smaps. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "smaps.h"

/*
 * VmFlags (proc_pid_smaps(5)) that ordinary writable memory may have: access
 * and permitted access, accounting, and state of the kernel. Any other flag
 * was requested by the program, or is newer than this list.
 */
static const char *const ordinary[] = { "rd", "wr", "mr", "mw", "me", "ac",
					"nr", "sd", "nh", "sh", "ms" };

FILE *smaps_open(void)
{
	return fopen("/proc/self/smaps", "re");
}

static bool flag_is_ordinary(const char *flag)
{
	unsigned int i;

	for (i = 0; i < sizeof(ordinary) / sizeof(*ordinary); i++)
		if (!strcmp(flag, ordinary[i]))
			return true;
	return false;
}

static void smaps_flags(char *flags, struct smaps_vma *v)
{
	char *flag, *rest = NULL;

	v->ordinary = true;
	for (flag = strtok_r(flags, " \n", &rest); flag;
	     flag = strtok_r(NULL, " \n", &rest)) {
		if (!flag_is_ordinary(flag))
			v->ordinary = false;
		if (!strcmp(flag, "dc"))
			v->no_fork = true;
	}
}

static bool smaps_head(const char *line, struct smaps_vma *v)
{
	unsigned long long start, end, offset, ino;
	unsigned int major, minor;
	char perm[5];

	memset(v, 0, sizeof(*v));
	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %63[^\n]", &start, &end,
		   perm, &offset, &major, &minor, &ino, v->path) < 7)
		return false;
	v->start = start;
	v->end = end;
	v->prot = (perm[0] == 'r' ? PROT_READ : 0) |
		  (perm[1] == 'w' ? PROT_WRITE : 0) |
		  (perm[2] == 'x' ? PROT_EXEC : 0);
	v->shared = perm[3] == 's';
	v->offset = offset;
	v->dev = makedev(major, minor);
	v->ino = ino;
	return true;
}

/*
 * The VmFlags line is the last one of a mapping. Lines longer than the buffer
 * are those with long paths; the path is truncated.
 */
bool smaps_next(FILE *f, struct smaps_vma *v)
{
	bool head = false;
	char line[256];

	while (fgets(line, sizeof(line), f)) {
		if (!head)
			head = smaps_head(line, v);
		else if (!strncmp(line, "VmFlags:", 8)) {
			smaps_flags(line + 8, v);
			return true;
		}
	}
	return false;
}

int smaps_close(FILE *f)
{
	int ret = ferror(f) ? -EIO : 0;

	fclose(f);
	return ret;
}
