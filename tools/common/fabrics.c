// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Enumerate the fabrics in a directory, for urxe info, the shell completions
 * (urxe info --names) and messages about a fabric that does not exist.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chaos/nearest.h"
#include "commands.h"

/* A fabric is a directory that has a regular file "device". */
static bool is_fabric(const char *base, const char *name)
{
	char path[600];
	struct stat st;

	if (*name == '.')
		return false;
	snprintf(path, sizeof(path), "%s/%s/device", base, name);
	return !stat(path, &st) && S_ISREG(st.st_mode);
}

int fabrics_list(const char *base, char ***names)
{
	struct dirent **list = NULL;
	int i, n, count = 0;

	*names = NULL;
	n = scandir(base, &list, NULL, alphasort);
	if (n < 0)
		return errno == ENOENT ? 0 : -errno;
	*names = calloc((size_t)n + 1, sizeof(**names));
	for (i = 0; i < n; i++) {
		if (*names && is_fabric(base, list[i]->d_name))
			(*names)[count++] = strdup(list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return *names ? count : -ENOMEM;
}

/* Append names to buf at offset n, as many as FABRICS_TEXT bytes hold. */
static void add_names(char *buf, size_t n, char **names, int count)
{
	const char *between = "; existing: ";
	int i;

	for (i = 0; i < count && names[i]; i++) {
		if (n + strlen(names[i]) + 20 > FABRICS_TEXT) {
			snprintf(buf + n, FABRICS_TEXT - n, ", ...");
			return;
		}
		n += (size_t)snprintf(buf + n, FABRICS_TEXT - n, "%s%s",
				      between, names[i]);
		between = ", ";
	}
}

const char *no_fabric_text(const char *dir, char buf[FABRICS_TEXT])
{
	char base[256], meant[NEAREST_TEXT], *name, **names;
	struct nearest near;
	int i, count, n;

	snprintf(base, sizeof(base), "%s", dir);
	name = strrchr(base, '/');
	*name++ = '\0';
	count = fabrics_list(base, &names);
	nearest_begin(&near, name, strlen(name));
	for (i = 0; i < count && names[i]; i++)
		nearest_try(&near, names[i]);
	n = snprintf(buf, FABRICS_TEXT, "no fabric %s in %s%s%s", name, base,
		     nearest_text(&near, meant),
		     count > 0 ? "" : ", nor any other; urxe run creates one");
	if (n < FABRICS_TEXT)
		add_names(buf, (size_t)n, names, count);
	for (i = 0; i < count; i++)
		free(names[i]);
	free(names);
	return buf;
}
