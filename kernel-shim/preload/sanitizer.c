// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Default options for AddressSanitizer in preloaded programs.  ASan exits at
 * start if its runtime is not the first library, because another library
 * could have replaced malloc.  The preload library replaces nothing that ASan
 * needs, and forwards the calls that it wraps, so this check is turned off.
 * ASan calls this function in each program, also in one that a shell or a
 * launcher starts with ASAN_OPTIONS of its own.
 */
const char *__asan_default_options(void) __attribute__((visibility("default")));

const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
