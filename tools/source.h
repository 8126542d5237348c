/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which line of which source a call is, if addr2line(1) is there to ask. */
#pragma once

#include "notes.h"

/* Fill in c->file, below the working directory if it is there, and c->line. */
void source_find(struct call *c);
