/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The port's counters, read from sysfs as an application reads them.  Any
 * failure ends the test.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "../../mark.h"

static uint64_t counter(const char *name)
{
	unsigned long long v;
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/urxe0/ports/1/hw_counters/%s", name);
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "there is no %s", path);
	ck_assert_int_eq(fscanf(f, "%llu", &v), 1);
	fclose(f);
	return v;
}

/*
 * The expected increment of a counter.  A thread may count a packet after it
 * has sent it, so the peer may receive the packet first.  Therefore
 * counters_grew() waits.
 */
struct counted {
	const char *name;
	uint64_t by, before;
};

/* Store the present values. */
static void counters_begin(struct counted *c, unsigned int n)
{
	for (; n--; c++)
		c->before = counter(c->name);
}

/*
 * Wait up to 60 s until each counter has grown by @by.  Growth by more is a
 * failure.
 */
static void counters_grew(const struct counted *c, unsigned int n)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	unsigned int left;
	uint64_t now;

	for (; n--; c++) {
		for (left = 60000; left; left--) {
			now = counter(c->name) - c->before;
			if (now >= c->by)
				break;
			nanosleep(&ms, NULL);
		}
		ck_assert_msg(now == c->by, "%s grew by %llu, not by %llu",
			      c->name, (unsigned long long)now,
			      (unsigned long long)c->by);
	}
}
