// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Map the tally file of fault rules (fault_tally.h). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_tally.h"

struct fault_tally *fault_tally_map(const char *path)
{
	void *map = MAP_FAILED;
	struct stat st;
	int fd;

	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    st.st_size == FAULT_TALLY_BYTES)
		map = mmap(NULL, FAULT_TALLY_BYTES, PROT_READ | PROT_WRITE,
			   MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}
