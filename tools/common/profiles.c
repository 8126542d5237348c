// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Finding profiles. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos/nearest.h"
#include "commands.h"
#include "fabric/fabric.h"
#include "fabric/profile.h"
#include "profiles.h"

/* Directories of the profiles, in the order of find_libraries(). */
static const char *const places[] = {
	"../profiles/source",
	"../" URXE_DATADIR_REL "/urxe/profiles",
	URXE_DATADIR "/urxe/profiles",
};

static int is_profile(const struct dirent *de)
{
	const size_t n = strlen(de->d_name), suffix = strlen(PROFILE_SUFFIX);

	return n > suffix && *de->d_name != '.' &&
	       !strcmp(de->d_name + n - suffix, PROFILE_SUFFIX);
}

static int profiles_dir(char *dir, size_t len)
{
	unsigned int i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (!find_relative(places[i], "", dir, len))
			return 0;
	return fail(1,
		    "no profiles found relative to this program or in "
		    "%s/urxe/profiles",
		    URXE_DATADIR);
}

int profiles_set_dir(void)
{
	char dir[PATH_MAX];
	int ret = profiles_dir(dir, sizeof(dir));

	if (!ret)
		setenv("URXE_PROFILE_DIR", dir, 1);
	return ret;
}

char **profiles_list(int *n)
{
	struct dirent **list = NULL;
	char dir[PATH_MAX], **names;
	int i;

	if (profiles_dir(dir, sizeof(dir)))
		return NULL;
	*n = scandir(dir, &list, is_profile, alphasort);
	names = calloc(*n > 0 ? (size_t)*n : 1, sizeof(*names));
	for (i = 0; i < *n; i++) {
		if (names && (!i || names[i - 1]))
			names[i] = strndup(list[i]->d_name,
					   strlen(list[i]->d_name) -
						   strlen(PROFILE_SUFFIX));
		free(list[i]);
	}
	free(list);
	if (names && *n > 0 && names[*n - 1])
		return names;
	if (*n > 0)
		fail(1, "no memory");
	else
		fail(1, "no profiles in %s", dir);
	profiles_free(names, names ? *n : 0);
	return NULL;
}

void profiles_free(char **names, int n)
{
	while (n-- > 0)
		free(names[n]);
	free(names);
}

/* Report that there is no profile with that name, and the nearest name. */
static int not_found(const char *word)
{
	char meant[NEAREST_TEXT], **names;
	struct nearest near;
	int i, n;

	names = profiles_list(&n);
	if (!names)
		return 1;
	nearest_begin(&near, word, strlen(word));
	for (i = 0; i < n; i++)
		nearest_try(&near, names[i]);
	fail(0,
	     "no profile \"%s\"%s; urxe profile list prints the names, and a file needs a slash",
	     word, nearest_text(&near, meant));
	profiles_free(names, n);
	return EXIT_USAGE;
}

int profile_find(const char *word, char path[PATH_MAX])
{
	char dir[PATH_MAX], name[PATH_MAX];
	int ret;

	if (strchr(word, '/')) {
		if (!realpath(word, path))
			return fail(EXIT_USAGE, "profile %s: %s", word,
				    strerror(errno));
		return strchr(path, ',') ?
			       fail(EXIT_USAGE,
				    "profile %s: its path has a comma", word) :
			       0;
	}
	ret = profiles_dir(dir, sizeof(dir));
	if (ret)
		return ret;
	snprintf(name, sizeof(name), "%s" PROFILE_SUFFIX, word);
	return find_relative(dir, name, path, PATH_MAX) ? not_found(word) : 0;
}

int profiles_choose(const char *list)
{
	char path[PATH_MAX], word[PATH_MAX], value[2 * PATH_MAX] = "";
	struct urxe_profile p;
	size_t n, used = 0;
	int ret;

	for (;; list += n + 1) {
		n = strcspn(list, ",");
		snprintf(word, sizeof(word), "%.*s", (int)n, list);
		ret = profile_find(word, path);
		if (ret)
			return ret;
		if (profile_read(&p, path))
			return fail(EXIT_USAGE, "--profile: %s", fabric_why());
		used += (size_t)snprintf(value + used, sizeof(value) - used,
					 "%s%s", used ? "," : "", path);
		if (used >= sizeof(value))
			return fail(EXIT_USAGE, "--profile: too many profiles");
		if (!list[n])
			break;
	}
	return setenv("URXE_PROFILE", value, 1) ? fail(1, "no memory") : 0;
}
