// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options that delay or split outstanding WRs, each alone.  With the option
 * (_i is 0) its effect is observed, without it (_i is 1) it is not.  Tests
 * that read memory before the completion do so as a buggy program would.
 */
#include <errno.h>
#include <string.h>

#include "../verbs/types.h"
#include "with.h"

#define TRIES 40
#define LEN 200
#define LINE 64
#define NONE "ticks=16"

static void open_with(struct duo *d, const char *options, int without)
{
	struct opts o = default_opts();

	with_options(without ? NONE : options);
	duo_open(d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
}

/* Poll once.  Return whether there was a completion. */
static bool polled(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	ck_assert_int_ge(n, 0);
	if (n)
		ck_assert_int_eq(wc->status, IBV_WC_SUCCESS);
	return n;
}

/*
 * With "gather", a source buffer that is overwritten before the completion
 * may be sent with its new contents.
 */
START_TEST(option_gather)
{
	unsigned int i, late = 0;
	struct duo d;

	open_with(&d, "gather=1000", _i);
	for (i = 0; i < TRIES; i++) {
		node_fill(&d.a, 0, LEN, 1);
		if (i % 2)
			b_recv(&d, i, 0, LEN);
		ck_ok(post(&d, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, 0,
			   LEN, 0, 0));
		node_fill(&d.a, 0, LEN, 2);
		expect(d.a.scq, i, IBV_WC_SUCCESS);
		if (i % 2)
			ck_assert_int_eq(b_wait_recv(&d).status,
					 IBV_WC_SUCCESS);
		late += b_has(&d, 0, LEN, 2);
		ck_assert(b_has(&d, 0, LEN, 2) || b_has(&d, 0, LEN, 1));
	}
	if (_i)
		ck_assert_uint_eq(late, 0);
	else
		ck_assert_uint_gt(late, TRIES / 2);
	/* inline data is read by the post */
	for (i = 0; i < TRIES; i++) {
		node_fill(&d.a, 0, 32, 1);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 32, 0,
			   IBV_SEND_INLINE));
		node_fill(&d.a, 0, 32, 2);
		expect(d.a.scq, i, IBV_WC_SUCCESS);
		ck_assert(b_has(&d, 0, 32, 1));
	}
	duo_close(&d);
}
END_TEST

/*
 * Clear the bytes that have arrived and count each arrival.  A byte that was
 * cleared and is written again is counted twice.
 */
static void take_all(struct duo *d, size_t len)
{
	char *p = d->b.buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i]) {
			ck_assert_int_eq(p[i], 'x');
			p[i] = 0;
			p[4096 + i]++;
		}
}

/*
 * With "place", the last byte of a message may be written before the first.
 */
START_TEST(option_place)
{
	static const int ops[] = { IBV_WR_RDMA_WRITE,
				   IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
				   IBV_WR_RDMA_READ };
	unsigned int i, j, k, apart[4] = { 0 };
	struct ibv_wc wc;
	struct duo d;
	char *at;

	open_with(&d, "place=1000", _i);
	memset(d.a.buf, 'x', LEN);
	for (i = 0; i < 4 * TRIES; i++) {
		j = i % 4;
		at = ops[j] == IBV_WR_RDMA_READ ? d.a.buf : d.b.buf;
		if (ops[j] == IBV_WR_RDMA_READ)
			memset(d.b.buf, 'x', LEN);
		memset(at, 0, LEN);
		if (j == 1 || j == 2)
			b_recv(&d, i, 0, LEN);
		ck_ok(post(&d, ops[j], i, 0, LEN, 0, 0));
		do
			apart[j] += at[LEN - 1] && !at[0];
		while (!polled(d.a.scq, &wc));
		if (j == 1 || j == 2)
			b_wait_recv(&d);
		for (k = 0; k < LEN; k++)
			ck_assert_int_eq(at[k], 'x');
		memset(d.a.buf, 'x', LEN);
	}
	for (j = 0; j < 4; j++)
		ck_assert_msg(_i ? !apart[j] : apart[j] > 0,
			      "opcode %d: %u times in pieces", ops[j],
			      apart[j]);
	duo_close(&d);
}
END_TEST

/*
 * Return the number of lines that have arrived.  Each line must be complete,
 * and lines must arrive in the order of their addresses.
 */
static unsigned int whole_lines(const char *line, unsigned int n)
{
	unsigned int i, k, there = 0;

	for (i = 0; i < n; i++) {
		for (k = 1; k < LINE; k++)
			ck_assert_int_eq(line[i * LINE + k], line[i * LINE]);
		if (!line[i * LINE])
			continue;
		ck_assert_uint_eq(there, i);
		there++;
	}
	return there;
}

/*
 * With "lines", the first lines of a message may be visible alone, as with
 * NICs.
 */
START_TEST(option_lines)
{
	static const int ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND,
				   IBV_WR_RDMA_READ };
	enum { N = 9, BYTES = N * LINE };
	unsigned int i, j, there, apart[3] = { 0 };
	struct ibv_wc wc;
	struct duo d;
	char *at;

	open_with(&d, "lines=1000", _i);
	for (i = 0; i < 3 * TRIES; i++) {
		j = i % 3;
		at = ops[j] == IBV_WR_RDMA_READ ? d.a.buf : d.b.buf;
		memset(d.a.buf, 'x', BYTES);
		memset(d.b.buf, 'x', BYTES);
		memset(at, 0, BYTES);
		if (ops[j] == IBV_WR_SEND)
			b_recv(&d, i, 0, BYTES);
		ck_ok(post(&d, ops[j], i, 0, BYTES, 0, 0));
		do {
			there = whole_lines(at, N);
			apart[j] += there && there < N;
		} while (!polled(d.a.scq, &wc));
		if (ops[j] == IBV_WR_SEND)
			b_wait_recv(&d);
		ck_assert_uint_eq(whole_lines(at, N), N);
	}
	for (j = 0; j < 3; j++)
		ck_assert_msg(_i ? !apart[j] : apart[j] > 0,
			      "opcode %d: %u times in pieces", ops[j],
			      apart[j]);
	duo_close(&d);
}
END_TEST

/*
 * Each byte of a WRITE is written only once, also if it is written in pieces.
 */
START_TEST(bytes_written_once)
{
	unsigned int i, j;
	struct ibv_wc wc;
	struct duo d;
	char *p;

	open_with(&d, "place=1000,gather=500,complete=500", 0);
	p = d.b.buf;
	memset(d.a.buf, 'x', LEN);
	for (i = 0; i < TRIES; i++) {
		memset(p, 0, 8192);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, LEN, i % 8, 0));
		do
			take_all(&d, LEN + 8);
		while (!polled(d.a.scq, &wc));
		take_all(&d, LEN + 8);
		for (j = 0; j < LEN; j++)
			ck_assert_int_eq(p[4096 + i % 8 + j], 1);
	}
	duo_close(&d);
}
END_TEST

/* Return whether a part of the data has arrived, but not all. */
static bool is_torn(const char *p, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += p[i] == 'x';
	return n && n < len;
}

/* With "place", aligned words are written at once, other words are not. */
START_TEST(aligned_words_not_divided)
{
	static const struct {
		size_t at, len;
		bool torn;
	} word[] = { { 8, 8, false }, { 4, 4, false },	{ 8, 4, false },
		     { 6, 2, false }, { 16, 2, false }, { 4, 8, true },
		     { 6, 8, true },  { 1, 8, true },	{ 3, 2, true } };
	unsigned int i, j, torn;
	struct ibv_wc wc;
	struct duo d;

	open_with(&d, "place=1000", 0);
	memset(d.a.buf, 'x', LEN);
	for (i = 0; i < sizeof(word) / sizeof(*word); i++) {
		for (torn = 0, j = 0; j < TRIES; j++) {
			memset(d.b.buf, 0, LEN);
			ck_ok(post(&d, IBV_WR_RDMA_WRITE, j, 0, word[i].len,
				   word[i].at, 0));
			do
				torn += is_torn((char *)d.b.buf + word[i].at,
						word[i].len);
			while (!polled(d.a.scq, &wc));
		}
		ck_assert_msg(word[i].torn == !!torn,
			      "%zu bytes at %zu: torn %u times", word[i].len,
			      word[i].at, torn);
	}
	duo_close(&d);
}
END_TEST

/* With "deliver", the data arrives before the receive completes. */
START_TEST(option_deliver)
{
	unsigned int i, late[2] = { 0 };
	struct ibv_wc wc;
	struct duo d;
	char *p;

	open_with(&d, "deliver=1000", _i);
	p = d.b.buf;
	memset(d.a.buf, 'x', LEN);
	for (i = 0; i < 2 * TRIES; i++) {
		memset(p, 0, LEN);
		b_recv(&d, i, 0, LEN);
		ck_ok(post(&d, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM,
			   i, 0, LEN, 0, 0));
		while (!p[LEN - 1])
			ck_assert(!polled(d.b.rcq, &wc) || p[LEN - 1]);
		for (; !polled(d.b.rcq, &wc); late[i % 2]++)
			;
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 2; i++)
		ck_assert_msg(_i ? !late[i] : late[i] > TRIES,
			      "%u: late by %u polls", i, late[i]);
	duo_close(&d);
}
END_TEST

/*
 * With "complete", the send completes some time after the receive, never
 * before it.
 */
START_TEST(option_complete)
{
	unsigned int i, late = 0;
	struct ibv_wc wc;
	struct duo d;

	open_with(&d, "complete=1000", _i);
	for (i = 0; i < TRIES; i++) {
		b_recv(&d, i, 0, LEN);
		ck_ok(post(&d, IBV_WR_SEND, i, 0, LEN, 0, 0));
		while (!polled(d.b.rcq, &wc))
			;
		for (; !polled(d.a.scq, &wc); late++)
			;
		b_recv(&d, i, 0, LEN);
		ck_ok(post(&d, IBV_WR_SEND, i, 0, LEN, 0, 0));
		while (!polled(d.a.scq, &wc))
			;
		ck_assert(polled(d.b.rcq, &wc));
	}
	ck_assert_msg(_i ? !late : late > TRIES, "late by %u polls", late);
	duo_close(&d);
}
END_TEST

/*
 * With "retry", a message is delayed as if it was retransmitted, without an
 * error, whatever timeout and retry_cnt are.
 */
START_TEST(option_retry)
{
	struct opts o = default_opts();
	unsigned int i, polls = 0;
	struct ibv_wc wc;
	struct duo d;

	with_options(_i ? NONE : "retry=1000");
	o.timeout = 1;
	o.retry_cnt = 0;
	o.rnr_retry = 0;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < TRIES; i++) {
		b_recv(&d, i, 0, LEN);
		ck_ok(post(&d, IBV_WR_SEND, i, 0, LEN, 0, 0));
		for (; !polled(d.b.rcq, &wc); polls++)
			;
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	ck_assert_msg(_i ? !polls : polls > 16 * TRIES, "%u polls", polls);
	duo_close(&d);
}
END_TEST

/* Polls of another CQ with ibv_start_poll() advance the ticks, too. */
START_TEST(start_poll_advances_ticks)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN
	};
	struct ibv_poll_cq_attr start = { 0 };
	struct ibv_cq_ex *cq;
	unsigned int i, j;
	struct ibv_wc wc;
	struct duo d;

	open_with(&d, "complete=1000", 0);
	cq = ibv_create_cq_ex(d.a.ctx, &attr);
	ck_assert_ptr_nonnull(cq);
	for (i = 0; i < TRIES; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, LEN, 0, 0));
		for (j = 0; j < 100; j++)
			ck_assert_int_eq(ibv_start_poll(cq, &start), ENOENT);
		ck_assert(polled(d.a.scq, &wc));
	}
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("adversary, WRs in flight");

	add_loop(s, option_gather, 2);
	add_loop(s, option_place, 2);
	add_loop(s, option_lines, 2);
	add(s, bytes_written_once);
	add(s, aligned_words_not_divided);
	add_loop(s, option_deliver, 2);
	add_loop(s, option_complete, 2);
	add_loop(s, option_retry, 2);
	add(s, start_poll_advances_ticks);
	return run(s);
}
