// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The consumer of an inbox (provider/wire/socket/inbox.h): the ring for READ
 * replaces one that has records.  The test is the producer
 * (kernel-shim/shared/wire.h).
 */
#include <string.h>

#include "engine.h"
#include "wire/socket/inbox.h"

#define SMALL (1u << URXE_INBOX_SMALL_LOG)

static struct urxe_context *ctx;
static struct urxe_wire_inbox *in;

static void inbox_new(void)
{
	ctx = engine_open(new_fabric());
	in = &ctx->arena->wire[1].inbox;
	ck_assert_uint_eq(inbox_bytes(in), 0);
}

/* Write to a ring, and return the position behind that. */
static uint32_t write_at(uint64_t word, uint32_t pos, const void *from,
			 uint32_t n)
{
	const uint32_t mask = (1u << URXE_INBOX_LOG(word)) - 1;
	char *ring = arena_ptr(ctx->arena, URXE_INBOX_OFFSET(word), mask + 1);
	uint32_t i;

	ck_assert_ptr_nonnull(ring);
	for (i = 0; i < n; i++)
		ring[(pos + i) & mask] = ((const char *)from)[i];
	return pos + n;
}

static uint32_t length_of(uint32_t i)
{
	return i * 997 % 4096;
}

/* Append record i to a ring.  A late producer does not know a newer one. */
static void put(uint64_t word, uint32_t i)
{
	const uint32_t tail = load_relaxed(&in->tail);
	const struct urxe_wire_answer head = {
		.qpn = 77,
		.psn = i,
		.length = (uint16_t)length_of(i),
		.at = URXE_INBOX_AT(tail),
	};
	char bytes[4096];
	uint32_t pos;

	memset(bytes, (int)i, sizeof(bytes));
	pos = write_at(word, tail, &head, sizeof(head));
	pos = write_at(word, pos, bytes, head.length);
	store_release(&in->tail,
		      (pos + URXE_INBOX_ALIGN - 1) & ~(URXE_INBOX_ALIGN - 1));
}

/* Take record i. */
static void take(uint32_t i)
{
	struct inbox_answer a;
	uint32_t k;

	ck_assert(inbox_peek(ctx, in, &a));
	ck_assert_uint_eq(a.head.qpn, 77);
	ck_assert_uint_eq(a.head.psn, i);
	ck_assert_uint_eq(a.head.length, length_of(i));
	ck_assert_uint_eq(a.bytes[0] + a.bytes[1], a.head.length);
	for (k = 0; k < a.bytes[0]; k++)
		ck_assert_int_eq(((const char *)a.piece[0])[k], (char)i);
	for (k = 0; k < a.bytes[1]; k++)
		ck_assert_int_eq(((const char *)a.piece[1])[k], (char)i);
	inbox_drop(in, &a);
}

static void take_none(void)
{
	struct inbox_answer a;

	ck_assert(!inbox_peek(ctx, in, &a));
	ck_assert_uint_eq(load_relaxed(&in->head), load_relaxed(&in->tail));
}

/* Records that are not read are kept, wherever the small ring wraps. */
START_TEST(records_are_kept)
{
	uint32_t i;

	inbox_new();
	ck_assert_int_eq(inbox_open(ctx, in), 0);
	ck_assert_uint_eq(inbox_bytes(in), SMALL);
	store_relaxed(&in->head, (uint32_t)_i * 512);
	store_relaxed(&in->tail, (uint32_t)_i * 512);
	for (i = 1; i <= 12; i++)
		put(load_relaxed(&in->ring), i);
	take(1);
	ck_assert_int_eq(inbox_open_for_read(ctx, in), 0);
	ck_assert_uint_gt(inbox_bytes(in), SMALL);
	for (i = 13; i <= 15; i++)
		put(load_relaxed(&in->ring), i);
	for (i = 2; i <= 15; i++)
		take(i);
	take_none();
	engine_close(ctx);
}
END_TEST

/* A record that is written to the old ring too late is found there. */
START_TEST(late_record)
{
	uint64_t old;
	uint32_t i;

	inbox_new();
	ck_assert_int_eq(inbox_open(ctx, in), 0);
	old = load_relaxed(&in->ring);
	store_relaxed(&in->head, (uint32_t)_i * 512);
	store_relaxed(&in->tail, (uint32_t)_i * 512);
	put(old, 1);
	ck_assert_int_eq(inbox_open_for_read(ctx, in), 0);
	put(old, 2);
	put(load_relaxed(&in->ring), 3);
	put(old, 4);
	put(load_relaxed(&in->ring), 5);
	for (i = 1; i <= 5; i++)
		take(i);
	take_none();
	engine_close(ctx);
}
END_TEST

/* A record without position is discarded. */
START_TEST(empty_record)
{
	struct inbox_answer a;

	inbox_new();
	ck_assert_int_eq(inbox_open_for_read(ctx, in), 0);
	store_relaxed(&in->tail, URXE_INBOX_ALIGN);
	put(load_relaxed(&in->ring), 1);
	ck_assert(inbox_peek(ctx, in, &a));
	ck_assert_uint_eq(a.head.qpn, 0);
	inbox_drop(in, &a);
	take(1);
	take_none();
	engine_close(ctx);
}
END_TEST

/* At most so many QPs of a context get the larger rings. */
START_TEST(large_rings)
{
	uint32_t i;

	inbox_new();
	for (i = 0; i < 2 * URXE_INBOX_READ_MAX; i++) {
		in = &ctx->arena->wire[1 + i].inbox;
		ck_assert_int_eq(inbox_open_for_read(ctx, in), 0);
		ck_assert_uint_eq(
			inbox_bytes(in),
			i < URXE_INBOX_LARGE_MAX ? 1u << URXE_INBOX_LARGE_LOG :
			i < URXE_INBOX_READ_MAX	 ? 1u << URXE_INBOX_READ_LOG :
						   1u << URXE_INBOX_SMALL_LOG);
		/* it is not replaced again */
		ck_assert_int_eq(inbox_open_for_read(ctx, in), 0);
		ck_assert_uint_eq(load_relaxed(&in->first), 0);
	}
	engine_close(ctx);
}
END_TEST

/* A damaged word is not used. */
START_TEST(damaged_word)
{
	static const uint64_t words[] = { 1,
					  63,
					  31,
					  ~0ull,
					  4096,
					  4096 | URXE_INBOX_LARGE_LOG,
					  ~63ull | URXE_INBOX_SMALL_LOG };
	struct inbox_answer a;

	inbox_new();
	store_relaxed(&in->ring, words[_i]);
	ck_assert_uint_le(inbox_bytes(in), 1u << URXE_INBOX_LARGE_LOG);
	store_relaxed(&in->tail, 64);
	if (words[_i] != (4096 | URXE_INBOX_LARGE_LOG))
		ck_assert(!inbox_peek(ctx, in, &a));
	engine_close(ctx);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inbox");

	add_loop(s, records_are_kept, 64);
	add_loop(s, late_record, 64);
	add(s, empty_record);
	add(s, large_rings);
	add_loop(s, damaged_word, 7);
	return run_suite(s);
}
