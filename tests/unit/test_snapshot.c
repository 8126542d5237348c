// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the referee remembers of bytes (provider/referee/snapshot.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/process.h"
#include "referee/snapshot.h"
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

/* Does it see that this byte changes, and where? */
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

/* Each byte counts, up to SNAPSHOT_BYTES. */
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

/* Of more bytes the first and the last do. */
START_TEST(some_bytes)
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

/* They may lie in pieces, and only the end of them count. */
START_TEST(pieces)
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

/* Memory that is not there is said, and where. */
START_TEST(holes)
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

int main(void)
{
	Suite *s = suite_create("snapshot");

	add_loop(s, each_byte, 12);
	add(s, some_bytes);
	add(s, pieces);
	add(s, holes);
	return run_suite(s);
}
