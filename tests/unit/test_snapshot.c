// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The referee's snapshots of memory (provider/referee/ranges/snapshot.h), and its
 * table of memory in flight (flight_table.h).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/core/process.h"
#include "referee/ranges/flight_table.h"
#include "referee/ranges/snapshot.h"
#include "unit.h"

#define ROOM (4u << 20)

static unsigned char *bytes;

static void bytes_make(void)
{
	unsigned int i;

	process_identify();
	bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(bytes != MAP_FAILED);
	for (i = 0; i < ROOM; i++)
		bytes[i] = (unsigned char)(i * 2654435761u >> 24);
}

static void spans_add(struct spans *s, uint64_t offset, uint64_t len)
{
	uint64_t at = (uintptr_t)bytes + offset;

	s->span[s->n++] = (struct span){ at, at + len };
	s->len += len;
}

/*
 * Return whether a change of this byte is detected, and check its location.
 */
static bool sees(const struct snapshot *then, const struct spans *s,
		 uint64_t at, uint64_t from)
{
	struct span where;
	bool seen;

	bytes[at]++;
	seen = snapshot_compare(then, s, from, &where) == SNAPSHOT_CHANGED;
	if (seen && s->n == 1) {
		ck_assert_uint_le(where.at, (uintptr_t)bytes + at);
		ck_assert_uint_gt(where.end, (uintptr_t)bytes + at);
	}
	bytes[at]--;
	ck_assert_int_eq(snapshot_compare(then, s, from, &where),
			 SNAPSHOT_SAME);
	return seen;
}

/* Every byte is covered, up to SNAPSHOT_BYTES. */
START_TEST(each_byte)
{
	static const uint32_t sizes[] = {
		1, 7, 8, 9, 64, 100, 2047, 2048, 2049, 4096, 65535, 65536
	};
	struct spans s = { 0 };
	struct snapshot *then;
	uint64_t missing;
	uint32_t at, step;

	bytes_make();
	spans_add(&s, 123, sizes[_i]);
	step = sizes[_i] > 4096 ? 61 : 1;
	then = snapshot_take(&s, &missing);
	ck_assert(then && !missing);
	for (at = 0; at < sizes[_i]; at += step)
		ck_assert(sees(then, &s, 123 + at, 0));
	ck_assert(sees(then, &s, 123 + sizes[_i] - 1, 0));
	ck_assert(!sees(then, &s, 122, 0));
	ck_assert(!sees(then, &s, 123 + sizes[_i], 0));
	free(then);
}
END_TEST

/* Longer memory is sampled, including its first and last bytes. */
START_TEST(long_memory_sampled)
{
	struct spans s = { 0 };
	struct snapshot *then;
	uint64_t missing;

	bytes_make();
	spans_add(&s, 0, ROOM);
	then = snapshot_take(&s, &missing);
	ck_assert(then && !missing);
	ck_assert(sees(then, &s, 0, 0));
	ck_assert(sees(then, &s, 255, 0));
	ck_assert(sees(then, &s, ROOM - 1, 0));
	ck_assert(sees(then, &s, ROOM - 256, 0));
	free(then);
}
END_TEST

/* Memory in several spans; only blocks from offset @from on are compared. */
START_TEST(memory_in_several_spans)
{
	struct spans s = { 0 };
	struct snapshot *then;
	uint64_t missing;

	bytes_make();
	spans_add(&s, 8192, 100);
	spans_add(&s, 0, 3);
	spans_add(&s, 100, 1000);
	then = snapshot_take(&s, &missing);
	ck_assert(then && !missing);
	ck_assert(sees(then, &s, 8192, 0));
	ck_assert(sees(then, &s, 1, 0));
	ck_assert(sees(then, &s, 1099, 0));
	ck_assert(!sees(then, &s, 3, 0));
	ck_assert(!sees(then, &s, 8192, 96));
	ck_assert(!sees(then, &s, 8192 + 99, 104));
	ck_assert(sees(then, &s, 1099, 96));
	free(then);
}
END_TEST

/* Memory that is not mapped is reported, with its address. */
START_TEST(unmapped_memory)
{
	struct spans s = { 0 };
	struct snapshot *then;
	struct span where;
	uint64_t missing;

	bytes_make();
	spans_add(&s, 4096, 65536);
	then = snapshot_take(&s, &missing);
	ck_assert(then && !missing);
	ck_assert_int_eq(munmap(bytes + 16384, 4096), 0);
	ck_assert_int_eq(snapshot_compare(then, &s, 0, &where),
			 SNAPSHOT_MISSING);
	ck_assert_uint_ge(where.at, (uintptr_t)bytes + 4096);
	ck_assert_uint_lt(where.at, (uintptr_t)bytes + 16384 + 4096);
	free(then);
	ck_assert(!snapshot_take(&s, &missing));
	ck_assert_uint_ne(missing, 0);
}
END_TEST

/* ------------------------------------------------------- in flight */

#define FLIGHTS 500
#define RECEIVES 10000
#define RECEIVE_BYTES 64

static struct span random_span(unsigned int *seed)
{
	uint64_t at = (uint64_t)rand_r(seed) % 100000;
	uint64_t len = 1ull << rand_r(seed) % 18;

	return (struct span){ at, at + (uint64_t)rand_r(seed) % len };
}

/* Return an address that stands for a WR; nothing is read from it. */
static struct memory *wr_number(unsigned int i)
{
	return (struct memory *)&bytes[i];
}

static unsigned int looked(const struct flight_table *t, const struct span *s,
			   uint32_t key, bool *met)
{
	const struct flight_entry *e;
	struct flight_iter l;
	unsigned int n = 0;

	flight_iter_begin(&l, t, s, key);
	while ((e = flight_iter_next(&l))) {
		met[(unsigned char *)e->of - bytes] = true;
		n++;
	}
	return n;
}

/* A lookup finds the spans that a linear search finds, at any length. */
START_TEST(overlap_lookup)
{
	struct flight_table t = { 0 };
	struct span span[FLIGHTS], s;
	unsigned int i, n, turn, seed = 1;

	bytes_make();
	for (i = 0; i < FLIGHTS; i++) {
		span[i] = random_span(&seed);
		ck_assert(flight_table_add(&t, &span[i], i % 2, wr_number(i)));
	}
	for (turn = 0; turn < 2 * FLIGHTS; turn++) {
		bool met[FLIGHTS] = { false };

		if (turn >= FLIGHTS) {
			i = turn - FLIGHTS;
			flight_table_remove(&t, &span[i], wr_number(i));
			span[i].end = span[i].at;
		}
		s = random_span(&seed);
		n = looked(&t, &s, turn % 2, met);
		for (i = 0; i < FLIGHTS; i++) {
			bool is = i % 2 == turn % 2 && s.at != s.end &&
				  span[i].at != span[i].end &&
				  span_overlaps(&span[i], &s);

			ck_assert_int_eq(met[i], is);
			n -= is;
		}
		ck_assert_uint_eq(n, 0); /* no span twice */
	}
	ck_assert_uint_eq(t.n, 0);
	flight_table_clear(&t);
}
END_TEST

/* The cost of a lookup does not grow with the number of spans. */
START_TEST(overlap_lookup_cost)
{
	struct flight_table t = { 0 };
	struct flight_iter l;
	size_t seen = 0;
	struct span s;
	unsigned int i;

	bytes_make();
	for (i = 0; i < RECEIVES; i++) {
		s.at = i * RECEIVE_BYTES;
		s.end = s.at + RECEIVE_BYTES;
		flight_iter_begin(&l, &t, &s, 0);
		ck_assert_ptr_null(flight_iter_next(&l));
		seen += l.seen;
		ck_assert(flight_table_add(&t, &s, 0, wr_number(i)));
	}
	ck_assert_uint_le(seen, 16ul * RECEIVES);
	s.at = 0;
	s.end = UINT64_MAX;
	flight_iter_begin(&l, &t, &s, 0);
	for (i = 0; flight_iter_next(&l); i++)
		;
	ck_assert_uint_eq(i, RECEIVES);
	flight_table_clear(&t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("snapshot");

	add_loop(s, each_byte, 12);
	add(s, long_memory_sampled);
	add(s, memory_in_several_spans);
	add(s, unmapped_memory);
	add(s, overlap_lookup);
	add(s, overlap_lookup_cost);
	return run_suite(s);
}
