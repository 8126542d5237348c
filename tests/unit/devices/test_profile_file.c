// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Profiles: parsing, profiles in shared memory, and the profile of an existing
 * fabric.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/profile.h"
#include "shared/layout.h"
#include "unit.h"

static int parse(struct urxe_profile *p, const char *text)
{
	char copy[1024];

	profile_init(p);
	strcpy(p->name, "test");
	snprintf(copy, sizeof(copy), "%s", text);
	return profile_parse(p, copy);
}

START_TEST(values)
{
	struct urxe_profile p;

	ck_assert_int_eq(
		parse(&p, "# a comment\n\n  max_sge\t13 EOPNOTSUPP # more\n"
			  "page_size_cap 0x40201000\nqp_types RC UD ENOSYS\n"
			  "access\nfw_ver 1.2.3\nmax_qp 0x100\nmax_cq 010"),
		0);
	ck_assert_uint_eq(p.value[PROFILE_max_sge], 13);
	ck_assert_uint_eq(p.error[PROFILE_max_sge], EOPNOTSUPP);
	ck_assert_uint_eq(p.value[PROFILE_page_size_cap], 0x40201000);
	ck_assert_uint_eq(p.value[PROFILE_qp_types],
			  1 << IBV_QPT_RC | 1 << IBV_QPT_UD);
	ck_assert_uint_eq(p.error[PROFILE_qp_types], ENOSYS);
	ck_assert_uint_eq(p.value[PROFILE_access], 0);
	ck_assert_uint_eq(p.value[PROFILE_max_qp], 256);
	ck_assert_uint_eq(p.value[PROFILE_max_cq], 10); /* not octal */
	ck_assert_str_eq(p.fw_ver, "1.2.3");
	/* others have the values of urxe */
	ck_assert_uint_eq(p.value[PROFILE_max_cqe], URXE_MAX_CQE);
	ck_assert_uint_eq(p.value[PROFILE_features], UINT64_MAX);
	ck_assert_uint_eq(p.value[PROFILE_quirks], 0);
}
END_TEST

static const struct {
	const char *text, *why;
} invalid[] = {
	{ "max_sgee 1", "line 1: unknown key \"max_sgee\"" },
	{ "\nmax_sge", "line 2: max_sge needs one number" },
	{ "max_sge 1 2", "line 1: max_sge needs one number" },
	{ "max_sge -1", "\"-1\" is not a number" },
	{ "max_sge 1x", "\"1x\" is not a number" },
	{ "max_sge 99999999999999999999", "is not a number" },
	{ "max_sge 1 EWHAT", "max_sge needs one number" },
	{ "max_sge EINVAL", "max_sge needs one number" },
	{ "max_sge 08x", "\"08x\" is not a number" },
	{ "local_ca_ack_delay 32", "local_ca_ack_delay must be at most 31" },
	{ "vendor_id 4294967297", "vendor_id must be at most 4294967295" },
	{ "dm_unit 0xffffffffffffffff", "dm_unit must be at most" },
	{ "gid_types ROCE_V1", "gid_types must have ROCE_V2" },
	{ "gid_tbl_len 1", "gid_tbl_len must be at least 2" },
	{ "max_mtu 1024", "active_mtu must be 256 to max_mtu" },
	{ "active_mtu 0", "active_mtu must be 256 to max_mtu" },
	{ "qp_types RC WHAT", "\"WHAT\" is not a name of qp_types" },
	{ "fw_ver", "fw_ver needs one word" },
	{ "fw_ver 1 2", "fw_ver needs one word" },
	{ "board_id 0123456789012345678901234567890123456789012345678901234567890123456789",
	  "board_id needs one word" },
};

START_TEST(invalid_text)
{
	struct urxe_profile p;

	ck_assert_int_eq(parse(&p, invalid[_i].text), -EINVAL);
	ck_assert_msg(strstr(fabric_why(), invalid[_i].why) != NULL, "%s",
		      fabric_why());
}
END_TEST

/* Shared memory may contain anything. */
START_TEST(damaged)
{
	struct urxe_profile p, q;
	unsigned int i;

	memset(&p, 0xff, sizeof(p));
	profile_copy(&q, &p);
	ck_assert_uint_eq(strlen(q.name), sizeof(q.name) - 1);
	ck_assert_uint_eq(strlen(q.fw_ver), sizeof(q.fw_ver) - 1);
	for (i = 0; i < PROFILE_KEYS_COUNT; i++)
		if (profile_keys[i].kind == PROFILE_LIMIT)
			ck_assert_uint_eq(q.value[i], profile_keys[i].own);
		else
			ck_assert_uint_eq(q.value[i], profile_keys[i].most);
	ck_assert_int_eq(profile_error(&q, PROFILE_max_sge, EINVAL), EINVAL);
}
END_TEST

static void set_profile(const char *name, const char *text)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%s.profile", new_dir(), name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	setenv("URXE_PROFILE", path, 1);
}

/* A fabric that is in use keeps its profile. */
START_TEST(constant)
{
	struct urxe_fabric *f, *g;

	set_profile("one", "max_sge 5\n");
	f = new_fabric();
	ck_assert_uint_eq(f->dev->hca[0].profile.value[PROFILE_max_sge], 5);
	ck_assert_int_eq(fabric_open(f->dir, true, &g), 0);
	fabric_close(g);
	set_profile("two", "max_sge 6\n");
	ck_assert_int_eq(fabric_open(f->dir, true, &g), -EINVAL);
	ck_assert_msg(strstr(fabric_why(), "one, not ") != NULL, "%s",
		      fabric_why());
	/* without a request, any profile is accepted */
	unsetenv("URXE_PROFILE");
	ck_assert_int_eq(fabric_open(f->dir, true, &g), 0);
	ck_assert_uint_eq(g->dev->hca[0].profile.value[PROFILE_max_sge], 5);
	fabric_close(g);
	fabric_close(f);
}
END_TEST

/* A profile that cannot be read does not replace an unused fabric. */
START_TEST(unreadable)
{
	struct urxe_fabric *f = new_fabric(), *g;
	char dir[512], path[600];
	const uint64_t ino = f->ino;
	char *name;

	strcpy(dir, f->dir);
	fabric_close(f);
	setenv("URXE_PROFILE", "/no/such/file", 1);
	ck_assert_int_eq(fabric_open(dir, true, &g), -ENOENT);
	/* no process is to wait for the writer of a FIFO */
	snprintf(path, sizeof(path), "%s.fifo", dir);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	setenv("URXE_PROFILE", path, 1);
	ck_assert_int_eq(fabric_open(dir, true, &g), -EINVAL);
	unlink(path);
	name = calloc(1, 5000);
	ck_assert_ptr_nonnull(name);
	memset(name, 'x', 4999);
	setenv("URXE_PROFILE", name, 1);
	ck_assert_int_eq(fabric_open(dir, true, &g), -EINVAL);
	free(name);
	unsetenv("URXE_PROFILE");
	ck_assert_int_eq(fabric_open(dir, true, &g), 0);
	ck_assert_uint_eq(g->ino, ino);
	fabric_close(g);
}
END_TEST

/* The rate of a port, as the kernel prints it. */
START_TEST(rates)
{
	static const struct {
		uint64_t width, speed;
		uint32_t rate;
		const char *text;
	} rates[] = {
		{ 2, 64, 2000, "200 Gb/sec (4X HDR)\n" },
		{ 1, 1, 25, "2.5 Gb/sec (1X SDR)\n" },
		{ 16, 128, 2000, "200 Gb/sec (2X NDR)\n" },
		{ 2, 32, 1000, "100 Gb/sec (4X EDR)\n" },
		{ 8, 16, 1680, "168 Gb/sec (12X FDR)\n" },
		{ 77, 77, 25, "2.5 Gb/sec (1X SDR)\n" },
	};
	static struct urxe_hca hca;
	char text[64];

	profile_init(&hca.profile);
	hca.profile.value[PROFILE_active_width] = rates[_i].width;
	hca.profile.value[PROFILE_active_speed] = rates[_i].speed;
	ck_assert_uint_eq(hca_rate(&hca), rates[_i].rate);
	rate_print(&hca, text, sizeof(text));
	ck_assert_str_eq(text, rates[_i].text);
	store_relaxed(&hca.rate, 1 | 32 << 8);
	ck_assert_uint_eq(hca_rate(&hca), 250);
	rate_print(&hca, text, sizeof(text));
	ck_assert_str_eq(text, "25 Gb/sec (1X EDR)\n");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("profile_file");

	add(s, values);
	add_loop(s, invalid_text, 20);
	add(s, damaged);
	add(s, constant);
	add(s, unreadable);
	add_loop(s, rates, 6);
	return run_suite(s);
}
