/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A wrapper has a name of its own and takes libc's as its symbol, so that it
 * meets neither the headers' macros nor their prototypes (open64, __xstat,
 * the fortified ones), and compiles where libc lacks the function.
 */
#pragma once

#include "preload/shim.h"

#define WRAP(type, name, params) \
	type wrap_##name params __asm__(#name) \
		__attribute__((visibility("default"))); \
	static _Atomic(void *) next_##name; \
	type wrap_##name params

/* The function that this library stands before. */
#define NEXT(name) \
	((__typeof__(&wrap_##name))shim_next(&next_##name, #name))
