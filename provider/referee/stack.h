/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Who called: the stack of a post, or of an object's making. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define STACK_DEPTH 24

struct stack {
	uint32_t depth;
	void *pc[STACK_DEPTH];
};

/* One call in it, as it can be named. */
struct stack_frame {
	const void *pc;
	char function[128]; /* empty: not known */
	uintptr_t offset; /* in the function */
	const char *module; /* the file it is in */
	uintptr_t address; /* in that file, as addr2line takes it */
};

/* To be called once, before the first stack: what is ours is known then. */
void stack_init(const void *libibverbs);

void stack_take(struct stack *s);
bool stack_equal(const struct stack *a, const struct stack *b);

/*
 * The calls of the program's own code, inner first, without those of urxe and
 * libibverbs: at most n of them.  How many.
 */
size_t stack_frames(const struct stack *s, struct stack_frame *out, size_t n);
