/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The profiles of NICs that are in the source tree or installed, for urxe
 * profile and urxe run --profile.
 */
#pragma once

#include <limits.h>

/*
 * Return the names of all profiles, sorted, and their number in *@n; NULL
 * after a message.  profiles_free() frees them.
 */
char **profiles_list(int *n);
void profiles_free(char **names, int n);

/*
 * Write the absolute path of the profile that a word denotes, a name or a
 * file, to path.  Return 0, or the exit code after a message.
 */
int profile_find(const char *word, char path[PATH_MAX]);

/* Set URXE_PROFILE_DIR, where profiles of a cluster file are found. */
int profiles_set_dir(void);

/*
 * Set URXE_PROFILE for a list of names or files, separated by commas, and
 * check each of them.  Return 0, or the exit code after a message.
 */
int profiles_choose(const char *list);
