/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lookup of the function at an address, including static functions. */
#pragma once

#include "stack.h"

/*
 * Fill in *out for @pc.  Unknown: the function is "", the module "?".  Not
 * thread-safe: out->module may be a static buffer (finding.c calls it with
 * its lock `writing`).
 */
void symbol_find(const void *pc, struct stack_frame *out);
