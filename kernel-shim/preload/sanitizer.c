// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * AddressSanitizer refuses to run in a program where another library comes
 * before its own, because that one could have taken malloc.  This one takes
 * nothing that ASan needs, and passes on what it wraps.  ASan asks for options
 * by this function, so it is also told in programs that a shell or a launcher
 * starts with an ASAN_OPTIONS of its own.
 */
const char *__asan_default_options(void) __attribute__((visibility("default")));

const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
