/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which line of which source a call is, if addr2line(1) is there to ask. */
#pragma once

#include "notes.h"

/*
 * Fill in c->file, below the working directory if it is there, and c->line; not
 * for a function of a header, which is no place in the program.
 */
void source_find(struct call *c);
/* The header that defines the function inline, or NULL. */
const char *source_header(const char *function);
