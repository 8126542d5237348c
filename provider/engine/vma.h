/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What lies behind a range of this process's addresses. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "shared/layout.h"

/* One mapping; for file mappings which file, and what of it. */
struct vma {
	uint64_t start, end;
	bool read, write, shared;
	uint64_t offset; /* of start in the file */
	uint64_t page_size;
	uint64_t dev, ino; /* ino 0: anonymous */
	char path[URXE_FILE_PATH];
};

/*
 * Is every byte of [addr, addr + len) mapped, readable, and writable if
 * wanted?  -EFAULT if not.  file->ino is not 0 if the range is one piece of
 * one shared file mapping, which file then describes, offset being addr's.
 * file->shared says whether any of it is shared with others, or may be.
 */
int vma_check(uint64_t addr, uint64_t len, bool write, struct vma *file);
/* The same, and no mapping of a file goes on behind the file's end. */
int vma_check_ends(uint64_t addr, uint64_t len, bool write, struct vma *file);
/* Is all of it mapped, in pages of hugetlbfs? */
bool vma_huge(uint64_t addr, uint64_t len);
