/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Does all that a fabric's processes share agree with itself?
 *
 * What is looked at are copies, made with pread(), which allocates nothing and
 * cannot fault; whatever is in them, an index is bounded before it is used.
 * Nothing is locked for it: of a fabric that is in use only what is found at
 * each of several looks counts.
 */
#pragma once

#include <stdbool.h>

#include "fabric/fabric.h"
#include "shared/cm_tables.h"

/* What is wrong, a line each. */
struct findings {
	char **line;
	unsigned int n;
};

void found(struct findings *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* One look at a fabric. */
struct look {
	struct urxe_fabric *f;
	struct findings *out;
	struct urxe_dev *dev; /* copies */
	struct urxe_arena *arena; /* of one context after the other */
	uint32_t live; /* contexts */
	uint32_t dm_mrs[URXE_MAX_DM]; /* as the arenas have them */
};

/* From the file at fd; false: it is not that long. */
bool copy_out(int fd, uint64_t offset, void *buf, size_t len);
/* The connection manager's tables into cm->t, as far as they are in use. */
struct cm;
bool cm_copy_out(int fd, struct cm *cm);
/* Is (slot, gen) a context that is open? */
bool look_is_context(const struct look *l, uint32_t slot, uint32_t gen);
uint32_t bits_count(const uint64_t *map, uint32_t bits);

void inspect_device(struct look *l); /* inspect_dev.c */
void inspect_device_memory(struct look *l); /* after the arenas */
void inspect_files(struct look *l);
void inspect_arena(struct look *l, uint32_t slot); /* inspect_arena.c */
void inspect_cm(struct look *l); /* inspect_cm.c */
