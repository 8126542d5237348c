// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The devices of a fabric: their number, GUIDs, GIDs, ports, and the paths
 * between the ports.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static struct urxe_fabric *fabric_of(const char *devices)
{
	struct urxe_fabric *f;

	setenv("URXE_DEVICES", devices, 1);
	f = new_fabric();
	unsetenv("URXE_DEVICES");
	return f;
}

START_TEST(number_is_constant)
{
	struct urxe_fabric *f = fabric_of("3"), *g;
	const char *bad[] = { "0", "9", "33", "x", "-1", "3 " };
	unsigned int i;

	ck_assert_uint_eq(f->hcas, 3);
	ck_assert_int_eq(fabric_open(f->dir, true, &g), 0);
	ck_assert_uint_eq(g->hcas, 3);
	fabric_close(g);
	setenv("URXE_DEVICES", "2", 1);
	ck_assert_int_eq(fabric_open(f->dir, true, &g), -EINVAL);
	ck_assert_ptr_nonnull(strstr(fabric_why(), "has 3 devices, not 2"));
	ck_assert_int_eq(fabric_open(f->dir, false, &g), 0);
	fabric_close(g);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("URXE_DEVICES", bad[i], 1);
		ck_assert_int_eq(fabric_open(new_dir(), true, &g), -EINVAL);
	}
	fabric_close(f);
	unsetenv("URXE_DEVICES");
	f = new_fabric();
	ck_assert_uint_eq(f->hcas, 1);
	fabric_close(f);
}
END_TEST

/* A number in shared memory that is out of range is no fabric. */
START_TEST(number_is_validated)
{
	struct urxe_fabric *f = fabric_of("2"), *g;

	f->dev->hcas = URXE_MAX_HCA + 1;
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EPROTO);
	ck_assert_uint_eq(dev_hcas(f->dev), 1);
	f->dev->hcas = 0;
	ck_assert_int_eq(fabric_open(f->dir, false, &g), -EPROTO);
	fabric_close(f);
}
END_TEST

START_TEST(identities)
{
	static const uint8_t loopback[16] = {
		[10] = 0xff, 0xff, 127, [15] = 2
	};
	struct urxe_fabric *f = fabric_of("8");
	const struct urxe_hca *hca = f->dev->hca;
	struct urxe_gid g, first;
	uint32_t k, j;

	ck_assert_int_eq(fabric_refresh_gids(f), 0);
	for (k = 0; k < 8; k++)
		for (j = 0; j < k; j++)
			ck_assert(hca[j].node_guid != hca[k].node_guid);
	ck_assert(fabric_get_gid(&hca[0], 0, &first));
	ck_assert_int_eq(fabric_gid_owner(f->dev, first.raw), 0);
	for (k = 1; k < 8; k++) {
		ck_assert(fabric_get_gid(&hca[k], 1, &g));
		ck_assert_uint_eq(g.raw[0], 0xfe);
		ck_assert_int_eq(fabric_gid_owner(f->dev, g.raw), k);
		ck_assert(fabric_get_gid(&hca[k], 2, &g));
		ck_assert_uint_eq(g.raw[15], 1 + k);
		ck_assert_int_eq(fabric_gid_owner(f->dev, g.raw), k);
		ck_assert(!fabric_get_gid(&hca[k], 4, &g));
	}
	ck_assert_int_eq(fabric_gid_owner(f->dev, loopback), 1);
	memset(first.raw, 0xee, 16);
	ck_assert_int_eq(fabric_gid_owner(f->dev, first.raw), -1);
	fabric_close(f);
}
END_TEST

/* A path is up if both ports are. */
START_TEST(paths)
{
	struct urxe_fabric *f = fabric_of("3");
	uint32_t i, j;

	ck_assert_int_eq(fabric_set_port(f, 1, false), 0);
	ck_assert_int_eq(fabric_set_port(f, 1, false), 1);
	for (i = 0; i < 3; i++)
		for (j = 0; j < 3; j++)
			ck_assert_uint_eq(load_relaxed(&f->dev->hca[i].path[j]),
					  i == 1 || j == 1 ? URXE_PORT_DOWN :
							     URXE_PORT_ACTIVE);
	ck_assert_uint_eq(counter_read(f->dev, 1, URXE_CNT_LINK_DOWNED), 1);
	ck_assert_uint_eq(counter_read(f->dev, 0, URXE_CNT_LINK_DOWNED), 0);
	ck_assert_int_eq(fabric_set_port(f, 2, false), 0);
	ck_assert_int_eq(fabric_set_port(f, 1, true), 0);
	ck_assert_uint_eq(load_relaxed(&f->dev->hca[0].path[1]),
			  URXE_PORT_ACTIVE);
	ck_assert_uint_eq(load_relaxed(&f->dev->hca[1].path[2]),
			  URXE_PORT_DOWN);
	ck_assert_uint_eq(load_relaxed(&f->dev->hca[2].path[1]),
			  URXE_PORT_DOWN);
	/* a process was killed before it stored the path */
	store_relaxed(&f->dev->hca[0].path[1], URXE_PORT_DOWN);
	ck_assert_int_eq(fabric_set_port(f, 2, true), 0);
	ck_assert_uint_eq(load_relaxed(&f->dev->hca[0].path[1]),
			  URXE_PORT_ACTIVE);
	fabric_close(f);
}
END_TEST

/* The device of a context is in its slot and in its arena. */
START_TEST(device_of_context)
{
	struct urxe_fabric *f = fabric_of("4");
	int fd = fabric_context_open(f, 3);
	struct urxe_arena *a;
	struct stat st;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(arena_map(fd, &a), 0);
	ck_assert_ptr_eq(hca_of_ctx(f->dev, a->slot), &f->dev->hca[3]);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(fabric_arena_device(fd, &st), 3);
	store_relaxed(&f->dev->ctx[a->slot].hca, 77);
	ck_assert_ptr_eq(hca_of_ctx(f->dev, a->slot), &f->dev->hca[0]);
	arena_unmap(a);
	close(fd);
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hca");

	add(s, number_is_constant);
	add(s, number_is_validated);
	add(s, identities);
	add(s, paths);
	add(s, device_of_context);
	return run_suite(s);
}
