/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Consistency checks of a fabric's shared state, for urxe doctor --fabric.
 *
 * The checks read copies made with pread(2), which allocates no pages and
 * cannot fault.  The copies may hold arbitrary data: each index is bounded
 * before it is used.  No lock is held during a pass.  A finding counts only
 * if each of several passes has it, since the fabric may be in use
 * (inspect.c).
 */
#pragma once

#include <stdbool.h>

#include "fabric/fabric.h"
#include "shared/cm_tables.h"

/* A defect: a line of text, and the remedy. */
struct finding {
	char *text;
	const char *mend;
};

/* The defects found. */
struct findings {
	struct finding *line;
	unsigned int n;
	const char *mend; /* remedy of the defects that are added next */
};

/* Add a defect, with the remedy out->mend. */
void found(struct findings *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* One pass over a fabric. */
struct inspection {
	struct urxe_fabric *f;
	struct findings *out;
	struct urxe_dev *dev; /* copy of the device segment */
	struct urxe_arena *arena; /* copy of one arena at a time */
	uint32_t live; /* number of live contexts */
	/* MRs on each device memory slot, counted in the arenas */
	uint32_t dm_mrs[URXE_MAX_DM];
};

/*
 * Allocate zeroed memory for a copy; NULL: there is none.  Not by malloc(3),
 * which writes to all of it if MALLOC_PERTURB_ is set, as by meson.
 */
void *copy_space(size_t size);
void copy_space_free(void *at, size_t size);
/*
 * Copy from file fd to private memory.  Return false on an error or if the file
 * is too short.
 */
bool copy_out(int fd, uint64_t offset, void *buf, size_t len);
/*
 * Copy the connection manager's tables to cm->t, up to their high-water
 * marks.  Return as copy_out() does.
 */
struct cm;
bool cm_copy_out(int fd, struct cm *cm);
/* Return whether the copied context table has (slot, gen) in use. */
bool inspection_has_context(const struct inspection *l, uint32_t slot,
			    uint32_t gen);
/* Return the number of bits set; bits is a multiple of 64. */
uint32_t bits_count(const uint64_t *map, uint32_t bits);

/* The checks of a pass, in this order but for inspect_arena(). */
void inspect_device(struct inspection *l); /* inspect_dev.c */
/* needs dm_mrs of all arenas */
void inspect_device_memory(struct inspection *l);
void inspect_files(struct inspection *l);
void inspect_arena(struct inspection *l, uint32_t slot); /* inspect_arena.c */
void inspect_cm(struct inspection *l); /* inspect_cm.c */
