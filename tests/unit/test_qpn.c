// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The directory of QP numbers. */
#include <unistd.h>

#include "unit.h"

START_TEST(alloc_lookup_free)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t qpn, slot = 0, gen = 0;

	ck_assert(!qpn_lookup(f->dev, 0, &slot, &gen));
	ck_assert(!qpn_lookup(f->dev, 5, &slot, &gen));
	ck_assert_int_eq(qpn_alloc(f, URXE_MAX_CTX - 1, 0x7fffffff, &qpn), 0);
	/* 0 and 1 are the management QPs; a number has 24 bits */
	ck_assert_uint_gt(qpn, 1);
	ck_assert_uint_lt(qpn, 1 << 24);
	ck_assert(qpn_lookup(f->dev, qpn, &slot, &gen));
	ck_assert_uint_eq(slot, URXE_MAX_CTX - 1);
	ck_assert_uint_eq(gen, 0x7fffffff);
	/* the same index with another generation is not this QP */
	ck_assert(!qpn_lookup(f->dev, qpn ^ 1 << 13, &slot, &gen));
	ck_assert(!qpn_lookup(f->dev, qpn | 1 << 24, &slot, &gen));
	qpn_free(f, qpn);
	ck_assert(!qpn_lookup(f->dev, qpn, &slot, &gen));
	fabric_close(f);
}
END_TEST

START_TEST(all_qpns)
{
	static uint8_t seen[URXE_MAX_QP];
	struct urxe_fabric *f = new_fabric();
	const uint32_t max = fabric_obj_limit(URXE_OBJ_QP);
	uint32_t i, qpn, first = 0, slot, gen;

	for (i = 0; i < max; i++) {
		ck_assert_int_eq(qpn_alloc(f, i % URXE_MAX_CTX, i, &qpn), 0);
		ck_assert_uint_ge(qpn_index(qpn), 2);
		ck_assert_uint_eq(seen[qpn_index(qpn)]++, 0);
		if (!i)
			first = qpn;
	}
	ck_assert_int_eq(qpn_alloc(f, 0, 0, &qpn), -ENOMEM);
	/* a freed index is reused with another generation */
	qpn_free(f, first);
	ck_assert_int_eq(qpn_alloc(f, 3, 9, &qpn), 0);
	ck_assert_uint_eq(qpn_index(qpn), qpn_index(first));
	ck_assert_uint_ne(qpn, first);
	ck_assert(!qpn_lookup(f->dev, first, &slot, &gen));
	ck_assert(qpn_lookup(f->dev, qpn, &slot, &gen));
	ck_assert_uint_eq(slot, 3);
	ck_assert_uint_eq(gen, 9);
	ck_assert_int_eq(qpn_alloc(f, 0, 0, &qpn), -ENOMEM);
	fabric_close(f);
}
END_TEST

START_TEST(generations)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t i, qpn, stale;

	ck_assert_int_eq(qpn_alloc(f, 1, 1, &stale), 0);
	qpn_free(f, stale);
	/* 11 bits of generation: a number is not reused soon */
	for (i = 0; i < (1 << 11) - 1; i++) {
		ck_assert_int_eq(qpn_alloc(f, 1, 1, &qpn), 0);
		ck_assert_uint_ne(qpn, stale);
		ck_assert_uint_ne(qpn, 0);
		qpn_free(f, qpn);
	}
	fabric_close(f);
}
END_TEST

#define MINE 500

static int grab(void *arg)
{
	struct urxe_fabric *f = again(arg);
	uint32_t qpn[MINE], i, slot, gen, me = (uint32_t)getpid() & 0xffff;

	for (i = 0; i < MINE; i++)
		if (qpn_alloc(f, 7, me, &qpn[i]))
			return 1;
	for (i = 0; i < MINE; i++)
		if (!qpn_lookup(f->dev, qpn[i], &slot, &gen) || gen != me)
			return 2;
	for (i = 0; i < MINE; i++)
		qpn_free(f, qpn[i]);
	return 0;
}

START_TEST(processes)
{
	struct urxe_fabric *f = new_fabric();
	pid_t pid[8];
	uint32_t i;

	for (i = 0; i < 8; i++)
		pid[i] = spawn(grab, f);
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	for (i = 0; i < URXE_MAX_QP; i++)
		ck_assert(atomic_load(&f->dev->qp[i]) == 0);
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("qpn");

	add(s, alloc_lookup_free);
	add(s, all_qpns);
	add(s, generations);
	add(s, processes);
	return run_suite(s);
}
