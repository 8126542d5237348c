// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Order of WRs: what the ordering table of the specification (volume 1,
 * 10.8.3.3) allows is observed, and what it forbids is not.  The options make
 * the second WR of each pair take effect first where that is allowed.  Also:
 * atomics.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../verbs/types.h"
#include "with.h"

#define ROUNDS 60
#define ADV_OPTIONS                                                              \
	"gather=500,place=500,overtake=1000,reread=%d,deliver=500,complete=500," \
	"retry=100"

static void open_duo(struct duo *d, int reread)
{
	struct opts o = default_opts();
	char options[200];

	snprintf(options, sizeof(options), ADV_OPTIONS, reread);
	with_options(options);
	duo_open(d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
}

static uint64_t *word(struct node *n, size_t off)
{
	return (uint64_t *)(void *)((char *)n->buf + off);
}

static void wait_both(struct duo *d)
{
	expect(d->a.scq, 1, IBV_WC_SUCCESS);
	expect(d->a.scq, 2, IBV_WC_SUCCESS);
}

/*
 * Post a READ or an atomic, then a WRITE of 8 bytes to the same address.
 * Return whether the first returned the value of the WRITE.
 */
static bool write_is_seen(struct duo *d, int fetch, unsigned int flags)
{
	*word(&d->b, 0) = 1;
	*word(&d->a, 0) = 0;
	*word(&d->a, 8) = 2;
	if (fetch == IBV_WR_RDMA_READ)
		ck_ok(post(d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
	else
		ck_ok(post_atomic(d, fetch, 1, 0, 0, 0, 0));
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 2, 8, 8, 0, flags));
	wait_both(d);
	ck_assert(*word(&d->a, 0) == 1 || *word(&d->a, 0) == 2);
	ck_assert_uint_eq(*word(&d->b, 0), 2);
	return *word(&d->a, 0) == 2;
}

static const int fetches[] = { IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
			       IBV_WR_ATOMIC_CMP_AND_SWP };

/*
 * A WRITE may take effect before a READ or atomic in front of it, unless it
 * has a fence.
 */
START_TEST(write_overtakes_fetch)
{
	unsigned int i, seen[2] = { 0 };
	struct duo d;

	open_duo(&d, 0);
	for (i = 0; i < ROUNDS; i++) {
		seen[0] += write_is_seen(&d, fetches[_i], 0);
		seen[1] += write_is_seen(&d, fetches[_i], IBV_SEND_FENCE);
	}
	ck_assert_uint_gt(seen[0], 0);
	ck_assert_uint_lt(seen[0], ROUNDS);
	ck_assert_uint_eq(seen[1], 0);
	duo_close(&d);
}
END_TEST

/*
 * A WR with a fence does not start before the READs in front of it are
 * complete, and WRs behind it do not start before it.
 */
START_TEST(fence_between)
{
	unsigned int i, seen[2] = { 0 };
	struct duo d;

	open_duo(&d, 0);
	for (i = 0; i < 2 * ROUNDS; i++) {
		*word(&d.b, 0) = 1;
		*word(&d.a, 8) = 2;
		ck_ok(post_unsignaled(&d, IBV_WR_RDMA_READ, 0, 0, 8, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 16, 8, 16,
			   i % 2 ? IBV_SEND_FENCE : 0));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 8, 8, 0, 0));
		wait_both(&d);
		seen[i % 2] += *word(&d.a, 0) == 2;
	}
	ck_assert_uint_gt(seen[0], 0);
	ck_assert_uint_eq(seen[1], 0);
	duo_close(&d);
}
END_TEST

/*
 * Post a READ, then a SEND of the READ's destination.  Return whether the
 * SEND carried the old value.
 */
static bool old_is_sent(struct duo *d, unsigned int flags)
{
	*word(&d->b, 0) = 2;
	*word(&d->a, 0) = 1;
	*word(&d->b, 64) = 0;
	b_recv(d, 3, 64, 8);
	ck_ok(post(d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
	ck_ok(post(d, IBV_WR_SEND, 2, 0, 8, 0, flags));
	wait_both(d);
	ck_assert_int_eq(b_wait_recv(d).status, IBV_WC_SUCCESS);
	return *word(&d->b, 64) == 1;
}

/*
 * A SEND may read its source before a READ in front of it has written it,
 * unless it has a fence.
 */
START_TEST(send_overtakes_read)
{
	unsigned int i, seen[2] = { 0 };
	struct duo d;

	open_duo(&d, 0);
	for (i = 0; i < ROUNDS; i++) {
		seen[0] += old_is_sent(&d, 0);
		seen[1] += old_is_sent(&d, IBV_SEND_FENCE);
	}
	ck_assert_uint_gt(seen[0], 0);
	ck_assert_uint_eq(seen[1], 0);
	duo_close(&d);
}
END_TEST

/*
 * A READ returns the data of a SEND in front of it, also if that is in
 * private memory of another process.
 */
START_TEST(send_read)
{
	struct opts o = default_opts();
	uint64_t got;
	unsigned int i;
	struct duo d;

	with_options("gather=500,place=500,deliver=500,complete=500");
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	for (i = 1; i <= ROUNDS; i++) {
		*word(&d.a, 0) = i;
		b_recv(&d, 3, 64, 8);
		ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_READ, 2, 8, 8, 64, 0));
		wait_both(&d);
		node_get(&d.a, 8, &got, 8);
		ck_assert_uint_eq(got, i);
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	}
	duo_close(&d);
}
END_TEST

/* If the second of two WRITEs is visible, the first is, too. */
START_TEST(write_write)
{
	struct ibv_wc wc;
	unsigned int i, n;
	struct duo d;

	open_duo(&d, 200);
	for (i = 1; i <= ROUNDS; i++) {
		*word(&d.a, 0) = i;
		*word(&d.a, 8) = i;
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 8, 8, 8, 0));
		for (n = 0; n < 2;) {
			/* load the second WRITE's word first */
			uint64_t second =
				atomic_load((_Atomic uint64_t *)word(&d.b, 8));
			uint64_t first =
				atomic_load((_Atomic uint64_t *)word(&d.b, 0));

			ck_assert_uint_ge(first, second);
			n += ibv_poll_cq(d.a.scq, 1, &wc);
		}
	}
	duo_close(&d);
}
END_TEST

/*
 * A READ returns what was written before it, and later READs return nothing
 * older.
 */
START_TEST(write_read_read)
{
	unsigned int i;
	struct duo d;

	open_duo(&d, 500);
	for (i = 1; i <= ROUNDS; i++) {
		*word(&d.a, 0) = i;
		memset((char *)d.a.buf + 64, 0, 256);
		ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, 0, 0, 8, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 64, 8, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_READ, 2, 128, 8, 0, 0));
		*word(&d.b, 0) = 1000 + i; /* before or after a READ */
		wait_both(&d);
		ck_assert(*word(&d.a, 64) == i || *word(&d.a, 64) == 1000 + i);
		ck_assert_uint_ge(*word(&d.a, 128), *word(&d.a, 64));
	}
	duo_close(&d);
}
END_TEST

/* A receive completes after the WRITEs in front of its SEND are visible. */
START_TEST(write_send)
{
	unsigned int i;
	struct ibv_wc wc;
	struct duo d;

	open_duo(&d, 200);
	for (i = 1; i <= ROUNDS; i++) {
		node_fill(&d.a, 0, 512, i);
		b_recv(&d, 7, 2048, 64);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 512, 0, 0));
		ck_ok(post(&d, IBV_WR_SEND, 2, 0, 64, 0, 0));
		while (!ibv_poll_cq(d.b.rcq, 1, &wc))
			;
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert(b_has(&d, 0, 512, i));
		ck_assert(b_has(&d, 2048, 64, i));
		wait_both(&d);
	}
	duo_close(&d);
}
END_TEST

/* Messages arrive, and WRs complete at both ends, in order. */
START_TEST(sends_in_order)
{
	static const int ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM,
				   IBV_WR_SEND_WITH_IMM };
	unsigned int i, j;
	struct duo d;

	open_duo(&d, 200);
	for (i = 0; i < ROUNDS; i++) {
		for (j = 0; j < 30; j++)
			b_recv(&d, j, 64 * j, 64);
		for (j = 0; j < 30; j++) {
			node_fill(&d.a, 64 * j, 64, i + j);
			ck_ok(post(&d, j % 5 ? ops[j % 3] : IBV_WR_RDMA_READ, j,
				   j % 5 ? 64 * j : 8192, 64,
				   j % 3 == 1 ? 64 * j : 8192, 0));
		}
		for (j = 0; j < 30; j++)
			expect(d.a.scq, j, IBV_WC_SUCCESS);
		for (j = 0; j < 24; j++)
			expect(d.b.rcq, j, IBV_WC_SUCCESS);
		duo_renew(&d);
	}
	duo_close(&d);
}
END_TEST

/*
 * An error is reported in the order of the queue, and the WRs behind it are
 * not executed.
 */
START_TEST(errors_in_order)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	unsigned int i;
	struct duo d;

	open_duo(&d, 200);
	for (i = 0; i < ROUNDS; i++) {
		*word(&d.b, 0) = 5;
		*word(&d.b, 8) = 6;
		*word(&d.a, 0) = 0;
		ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
		sge = node_sge(&d.a, 64, 8);
		wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 2, &sge, 1, 8);
		wr.wr.rdma.rkey ^= 0x40;
		ck_ok(post_wr(d.a.qp, &wr));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 64, 8, 8, 0));
		expect(d.a.scq, 1, IBV_WC_SUCCESS);
		expect(d.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
		expect(d.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(*word(&d.a, 0), 5);
		ck_assert_uint_eq(*word(&d.b, 8), 6);
		duo_renew(&d);
	}
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- reread, fill */

static void open_with(struct duo *d, const char *options, int without)
{
	struct opts o = default_opts();

	with_options(without ? "ticks=16" : options);
	duo_open(d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
}

/*
 * With "reread", the data of a READ is replaced by later values before the
 * completion.
 */
START_TEST(option_reread)
{
	unsigned int i, newer = 0;
	struct ibv_wc wc;
	struct duo d;

	open_with(&d, "reread=1000", _i);
	for (i = 0; i < ROUNDS; i++) {
		*word(&d.b, 0) = 1;
		*word(&d.a, 0) = 0;
		ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
		while (!ibv_poll_cq(d.a.scq, 1, &wc))
			if (*word(&d.a, 0))
				*word(&d.b, 0) = 2;
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		newer += *word(&d.a, 0) == 2;
		ck_assert(*word(&d.a, 0) == 1 || *word(&d.a, 0) == 2);
	}
	ck_assert_uint_eq(newer, _i ? 0 : ROUNDS);
	duo_close(&d);
}
END_TEST

/*
 * With "fill", the destination of a READ is overwritten (0xa5) before the
 * data arrives.
 */
START_TEST(option_fill)
{
	unsigned int i, filled = 0;
	struct ibv_wc wc;
	struct duo d;

	open_with(&d, "fill=1000", _i);
	for (i = 0; i < ROUNDS; i++) {
		*word(&d.b, 0) = 1;
		*word(&d.a, 0) = 3;
		*word(&d.a, 8) = 3;
		ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
		while (!ibv_poll_cq(d.a.scq, 1, &wc))
			filled += *word(&d.a, 0) == 0xa5a5a5a5a5a5a5a5ull;
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(*word(&d.a, 0), 1);
		ck_assert_uint_eq(*word(&d.a, 8), 3);
	}
	ck_assert_msg(_i ? !filled : filled >= ROUNDS, "%u times", filled);
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------- atomics */

static atomic_bool stop;
static atomic_ulong added;

static void *add_by_cpu(void *arg)
{
	_Atomic uint64_t *w = arg;

	while (!atomic_load(&stop)) {
		atomic_fetch_add(w, 1);
		atomic_fetch_add(&added, 1);
	}
	return NULL;
}

/*
 * With "atomic", the device's atomics are not atomic with respect to the CPU:
 * updates of one word are lost.
 */
START_TEST(atomic_and_cpu)
{
	const double until = now_ms() + WAIT_MS;
	unsigned int i, most = _i ? 2000 : UINT32_MAX;
	bool lost = false;
	uint64_t sum;
	pthread_t t;
	struct duo d;

	open_with(&d, "atomic=1000", _i);
	ck_ok(pthread_create(&t, NULL, add_by_cpu, d.b.buf));
	for (i = 1; i <= most && !lost && now_ms() < until; i++) {
		ck_ok(post_atomic(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0, 0, 1,
				  0));
		expect(d.a.scq, i, IBV_WC_SUCCESS);
		sum = i + atomic_load(&added);
		lost = atomic_load((_Atomic uint64_t *)word(&d.b, 0)) < sum;
	}
	ck_assert(lost == !_i);
	atomic_store(&stop, true);
	ck_ok(pthread_join(t, NULL));
	duo_close(&d);
}
END_TEST

/* A compare that fails writes nothing: no update of the CPU is lost. */
START_TEST(failed_compare)
{
	unsigned int i;
	pthread_t t;
	struct duo d;

	open_with(&d, "atomic=1000", 0);
	*word(&d.b, 0) = 1ull << 40;
	ck_ok(pthread_create(&t, NULL, add_by_cpu, d.b.buf));
	for (i = 0; i < 200; i++) {
		ck_ok(post_atomic(&d, IBV_WR_ATOMIC_CMP_AND_SWP, i, 0, 0, 7,
				  9));
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	atomic_store(&stop, true);
	ck_ok(pthread_join(t, NULL));
	ck_assert_uint_eq(*word(&d.b, 0), (1ull << 40) + atomic_load(&added));
	duo_close(&d);
}
END_TEST

#define ADDS 300

static void add_many(struct node *b, void *arg)
{
	struct addr *peer = arg;
	struct ibv_sge sge = node_sge(b, 64, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = peer->base,
			       .rkey = peer->rkey,
			       .compare_add = 1 },
	};
	int i;

	for (i = 0; i < ADDS; i++) {
		wr.wr_id = i;
		ck_ok(post_wr(b->qp, &wr));
		expect(b->scq, i, IBV_WC_SUCCESS);
	}
}

static void *add_on_b(void *arg)
{
	struct duo *d = arg;

	on_b(d, add_many, &d->at_a, sizeof(d->at_a));
	return NULL;
}

static void be_kind(void)
{
	with_options("");
}

/*
 * The device's atomics are atomic with respect to each other: with two
 * processes, one of which may have no adversary, and each kind of memory.
 */
START_TEST(atomics_are_atomic)
{
	struct opts o = default_opts();
	struct addr self, peer;
	uint64_t sum = 0;
	struct node own;
	pthread_t t;
	struct duo d;

	with_options("atomic=1000");
	if (_i / MEM_COUNT)
		ck_ok(pthread_atfork(NULL, NULL, be_kind));
	duo_open(&d, TWO_PROCESSES, _i % MEM_COUNT, MEM_HEAP, &o);
	/* a second QP of a, connected to itself */
	own = d.a;
	own.qp = make_qp(&d.a, IBV_QPT_RC, NULL);
	self = node_addr(&own);
	type_connect(own.qp, &o, &self);
	node_put(&d.a, 0, &sum, 8);
	ck_ok(pthread_create(&t, NULL, add_on_b, &d));
	peer = d.at_a;
	add_many(&own, &peer);
	ck_ok(pthread_join(t, NULL));
	node_get(&d.a, 0, &sum, 8);
	ck_assert_uint_eq(sum, 2 * ADDS);
	ck_ok(ibv_destroy_qp(own.qp));
	duo_close(&d);
}
END_TEST

/* WRs behind a READ or atomic that is refused are not executed. */
START_TEST(nothing_passes_a_refused_wr)
{
	struct duo d;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		open_duo(&d, 0);
		d.at_b.rkey ^= 0x4200;
		if (fetches[_i] == IBV_WR_RDMA_READ)
			ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0));
		else
			ck_ok(post_atomic(&d, fetches[_i], 1, 0, 0, 0, 0));
		d.at_b.rkey ^= 0x4200;
		memset(d.a.buf, 5, 128);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 64, 0));
		b_recv(&d, 3, 256, 64);
		ck_ok(post(&d, IBV_WR_SEND, 4, 0, 64, 0, 0));
		expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
		expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
		expect(d.a.scq, 4, IBV_WC_WR_FLUSH_ERR);
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_WR_FLUSH_ERR);
		ck_assert(b_all(&d, 0, 1024, 0));
		duo_close(&d);
	}
}
END_TEST

/*
 * More outstanding READs than max_dest_rd_atomic of the responder fail with
 * REM_INV_REQ_ERR.  With a fence not more are outstanding.
 */
START_TEST(rd_atomic_resources)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr[5];
	struct ibv_sge sge;
	struct duo d;
	int i;

	with_options(_i & 1 ? "overtake=1000,complete=1000" : "place=1000");
	o.max_dest_rd_atomic = 3;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 64);
	for (i = 0; i < 5; i++) {
		wr[i] = rdma_wr(&d, IBV_WR_RDMA_READ, i, &sge, 1, 0);
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	if (_i & 2)
		wr[3].send_flags |= IBV_SEND_FENCE;
	ck_ok(post_wr(d.a.qp, wr));
	for (i = 0; i < 3; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	expect(d.a.scq, 3,
	       _i & 2 ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
	expect(d.a.scq, 4, _i & 2 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("adversary, order and atomics");

	add_loop(s, write_overtakes_fetch, 3);
	add(s, fence_between);
	add(s, send_overtakes_read);
	add(s, send_read);
	add_loop(s, nothing_passes_a_refused_wr, 3);
	add_loop(s, rd_atomic_resources, 4);
	add(s, write_write);
	add(s, write_read_read);
	add(s, write_send);
	add(s, sends_in_order);
	add(s, errors_in_order);
	add_loop(s, option_reread, 2);
	add_loop(s, option_fill, 2);
	add_loop(s, atomic_and_cpu, 2);
	add(s, failed_compare);
	add_loop(s, atomics_are_atomic, 2 * MEM_COUNT);
	return run(s);
}
