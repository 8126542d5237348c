// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe profile: list the profiles of NICs, print one, or record that of a
 * device.  urxe-profile-record (profile/record.c) does the latter, since this
 * program is not linked with libibverbs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/commands.h"
#include "common/profiles.h"
#include "fabric/fabric.h"
#include "fabric/profile.h"

/* The first line of a profile, without "# ". */
static void title_print(const char *name)
{
	char path[PATH_MAX], line[256] = "";
	FILE *f;

	if (profile_find(name, path))
		return;
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
	printf("%-16s %s\n", name, !strncmp(line, "# ", 2) ? line + 2 : "");
}

static int cmd_list(void)
{
	int i, n;
	char **names = profiles_list(&n);

	if (!names)
		return 1;
	for (i = 0; i < n; i++)
		title_print(names[i]);
	profiles_free(names, n);
	return 0;
}

/* Print a key as urxe enforces it, and the value of the NIC if that differs. */
static void key_print(const struct urxe_profile *nic,
		      const struct urxe_profile *own, enum profile_key key)
{
	const char *error = profile_error_name(nic->error[key]);

	profile_key_print(stdout, key, own->value[key], error);
	if (nic->value[key] != own->value[key])
		printf("  # the NIC has %" PRIu64, nic->value[key]);
	putchar('\n');
}

static int cmd_show(const char *word)
{
	struct urxe_profile nic, own;
	char path[PATH_MAX];
	unsigned int key;
	int ret;

	ret = profile_find(word, path);
	if (ret)
		return ret;
	if (profile_read(&nic, path))
		return fail(1, "%s", fabric_why());
	profile_copy(&own, &nic);
	printf("%-20s %s\n", "fw_ver", own.fw_ver);
	if (own.board_id[0])
		printf("%-20s %s\n", "board_id", own.board_id);
	for (key = 0; key < PROFILE_KEYS_COUNT; key++)
		key_print(&nic, &own, key);
	return 0;
}

static int cmd_record(char *device)
{
	char path[PATH_MAX], *argv[] = { path, device, NULL };

	if (find_helper("urxe-profile-record", ".", path, sizeof(path)))
		return 1;
	execv(path, argv);
	return cannot_run(path, errno);
}

static int cmd_profile(int argc, char **argv)
{
	static const char *const words[] = { "list", "show", "record", NULL };
	const char *word, *operand;

	if (argc < 2 || argc > 3 || *argv[1] == '-')
		return usage();
	word = argv[1];
	operand = argv[2];
	if (!strcmp(word, "list") && !operand)
		return cmd_list();
	if (!strcmp(word, "show") && operand)
		return cmd_show(operand);
	if (!strcmp(word, "record") && operand)
		return cmd_record(argv[2]);
	if (strcmp(word, "list") && strcmp(word, "show") &&
	    strcmp(word, "record"))
		return fail_word("urxe profile", word, words);
	return usage();
}

/* clang-format off */
const struct command command_profile = {
	.name = "profile",
	.run = cmd_profile,
	.operands = "list | show PROFILE | record DEVICE",
	.what = "List the profiles of NICs, print one as it is enforced, or print the profile of an RDMA device of this machine.",
	.examples = "  urxe profile list\n"
		    "  urxe profile show e810\n"
		    "  urxe profile record mlx5_0 > mine.profile; urxe run --profile ./mine.profile\n",
};
/* clang-format on */
