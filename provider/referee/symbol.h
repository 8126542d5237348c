/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The function that an address is in, static ones, too. */
#pragma once

#include "stack.h"

/* Fill in out for pc. */
void symbol_find(const void *pc, struct stack_frame *out);
