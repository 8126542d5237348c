// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Environment variables: an input has URXE_DIR, URXE_FABRIC and URXE_DM_SIZE.
 */
#include <fcntl.h>
#include <stdio.h>

#include "fabric/fabric.h"
#include "parse.h"

static char base[64], fabric[100];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	snprintf(base, sizeof(base), "%s", parse_place());
	snprintf(fabric, sizeof(fabric), "%s/size", base);
	return 0;
}

/*
 * Set the variable to the bytes before the next NUL or the end of the input.
 * Unset it if there are none.
 */
static void set_next(struct bytes *b, const char *name)
{
	char value[600] = "";
	size_t n;

	for (n = 0; n < sizeof(value) - 1 && b->left; n++) {
		value[n] = (char)bytes_next(b);
		if (!value[n])
			break;
	}
	if (n)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, size };
	struct urxe_fabric *f;
	char dir[256];

	set_next(&b, "URXE_DIR");
	set_next(&b, "URXE_FABRIC");
	set_next(&b, "URXE_DM_SIZE");
	if (!fabric_dir(dir, sizeof(dir)) && *dir != '/')
		abort();
	setenv("URXE_DIR", base, 1);
	/* the fabric is given, so only URXE_DM_SIZE matters */
	if (!fabric_open(fabric, true, &f)) {
		if (f->dev->dm_bytes > URXE_DM_MAX_BYTES || !f->dev->dm_bytes)
			abort();
		fabric_close(f);
	}
	dir_remove(AT_FDCWD, fabric);
	return 0;
}
