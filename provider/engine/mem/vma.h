/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Query of this process's address space, by the PROCMAP_QUERY ioctl or by
 * parsing /proc/self/maps.  Called at registration.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/layout.h"

/* A mapping, and its file if it has one. */
struct vma {
	uint64_t start, end;
	bool read, write, shared;
	uint64_t offset; /* of start in the file */
	uint64_t page_size;
	uint64_t dev, ino; /* ino 0: anonymous */
	char path[URXE_FILE_PATH];
};

/*
 * Check that all of [addr, addr + len) is mapped and readable, and, if write
 * is set, writable.  0 or -EFAULT.  Without /proc the result is 0, and
 * file->ino is 0.
 *
 * If the range is a contiguous part of one shared file mapping, file->ino is
 * not 0 and *file describes the mapping, with the file offset of addr.
 * file->shared tells whether any of the range is shared, or may be.
 */
int vma_check(uint64_t addr, uint64_t len, bool write, struct vma *file);
/* The same; also fail if part of the range is beyond the end of its file. */
int vma_check_ends(uint64_t addr, uint64_t len, bool write, struct vma *file);
/* Is all of the range mapped with huge pages of hugetlbfs? */
bool vma_huge(uint64_t addr, uint64_t len);
