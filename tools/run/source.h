/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Source file and line of a call in a stack, from addr2line(1) if it is
 * installed.
 */
#pragma once

#include "run/notes.h"

/*
 * Set c->file and c->line. c->file is allocated, and relative to the working
 * directory if the file is below it. Both stay unset if the location is
 * unknown, or if c->function is an inline function of a header
 * (source_header()).
 */
void source_find(struct call *c);
/* Header that defines @function inline, or NULL. */
const char *source_header(const char *function);
