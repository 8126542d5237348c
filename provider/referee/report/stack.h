/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Call stacks of posts, of the creation of objects, and of findings.  Taking
 * a stack stores return addresses only; functions are looked up when a
 * finding is reported.  Without <execinfo.h>, as with musl, stacks are empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define STACK_DEPTH 24

struct stack {
	uint32_t depth;
	void *pc[STACK_DEPTH];
};

/* A frame with its function and module. */
struct stack_frame {
	const void *pc;
	char function[128]; /* name, or "" if not known */
	uintptr_t offset; /* in the function */
	const char *module; /* path of the program or library, or "?" */
	uintptr_t address; /* in the module, as addr2line(1) takes it */
};

/*
 * Find the libraries whose frames are not reported.  @libibverbs: an address
 * in libibverbs.  Called once, before the first stack_take().
 */
void stack_init(const void *libibverbs);

/* Store the stack of the caller, at most STACK_DEPTH frames. */
void stack_take(struct stack *s);
bool stack_equal(const struct stack *a, const struct stack *b);

/*
 * Store at most @n frames of the program in @out, innermost first, up to
 * main() or a thread's function.  The innermost frames of urxe and libibverbs
 * are skipped.  Return the number of frames.
 */
size_t stack_frames(const struct stack *s, struct stack_frame *out, size_t n);
