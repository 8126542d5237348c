/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fixture of the tests that need a fabric: each test creates its own. */
#pragma once

#include "fabric/fabric.h"
#include "unit_base.h"

/* Create a fabric in a new directory. */
struct urxe_fabric *new_fabric(void);
/* Open the same fabric once more, as another process does. */
struct urxe_fabric *again(const struct urxe_fabric *f);

/* Open the device.  The context is alive while the descriptor is open. */
int open_context(struct urxe_fabric *f);
/* Open the device and map its arena. */
struct urxe_arena *open_arena(struct urxe_fabric *f, int *fd);

/*
 * Count the entries of directory @sub of the fabric whose names start with
 * @prefix.  Names that start with a dot do not count.
 */
int count_entries(const struct urxe_fabric *f, const char *sub,
		  const char *prefix);
