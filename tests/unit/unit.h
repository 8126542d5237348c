/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A fabric of its own for every test. */
#pragma once

#include "fabric/fabric.h"
#include "unit_base.h"

/* A fabric in a new directory. */
struct urxe_fabric *new_fabric(void);
/* The same fabric once more, as another process would see it. */
struct urxe_fabric *again(const struct urxe_fabric *f);

/* Open the device; the descriptor is the context's life. */
int open_context(struct urxe_fabric *f);
/* The same, with the arena mapped. */
struct urxe_arena *open_arena(struct urxe_fabric *f, int *fd);

/* Entries in a directory of the fabric whose name starts with prefix. */
int count_entries(const struct urxe_fabric *f, const char *sub,
		  const char *prefix);
