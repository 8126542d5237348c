// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * plugins A B C: load plug-ins with RTLD_LOCAL.  Their librdmacm has another
 * SONAME, or is part of the plug-in, as in Python wheels.  Each plug-in must
 * call its own librdmacm, not that of another one.
 */
#include <dlfcn.h>

#include "test.h"

int main(int argc, char **argv)
{
	int (*call)(void), i;
	void *plugin[8];

	for (i = 1; i < argc; i++) {
		plugin[i] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		CHECK(plugin[i]);
	}
	for (i = argc - 1; i; i--) {
		*(void **)&call = dlsym(plugin[i], "plugin_call");
		CHECK(call && call() == i);
	}
	return 0;
}
