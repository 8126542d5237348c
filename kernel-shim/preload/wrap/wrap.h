/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Definition of wrappers: exported functions that interpose functions of libc
 * or librdmacm (LD_PRELOAD).
 *
 * A wrapper is a C function wrap_NAME with the symbol NAME.  Therefore it
 * does not conflict with macros and prototypes of the headers (open64,
 * __xstat, fortified functions), and it compiles where libc lacks the
 * function.
 *
 * Wrappers are called in any thread, before constructors and after
 * destructors.  Code of this library that calls wrapped functions itself runs
 * between shim_enter() and shim_leave() (preload/shim.h).
 */
#pragma once

#include "preload/shim.h"

#define WRAP(type, name, params) \
	type wrap_##name params __asm__(#name) \
		__attribute__((visibility("default"))); \
	static _Atomic(void *) next_##name; \
	type wrap_##name params

/* The interposed function: the next definition of NAME (dlsym RTLD_NEXT). */
#define NEXT(name) \
	((__typeof__(&wrap_##name))shim_next(&next_##name, #name))
