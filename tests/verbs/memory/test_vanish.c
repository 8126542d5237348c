// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RC requests whose memory is unmapped, protected or truncated while it is
 * registered: no signal, and the statuses of docs/deviations.md ("When bytes
 * cannot be copied").  The suite bounce runs them again with bounce buffers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vanish.h"

/* Values that older verbs.h do not define. */
#define WR_ATOMIC_WRITE 15

#define S IBV_WR_SEND
#define SI IBV_WR_SEND_WITH_IMM
#define W IBV_WR_RDMA_WRITE
#define WI IBV_WR_RDMA_WRITE_WITH_IMM
#define R IBV_WR_RDMA_READ
#define FA IBV_WR_ATOMIC_FETCH_AND_ADD
#define CS IBV_WR_ATOMIC_CMP_AND_SWP
#define AW ((enum ibv_wr_opcode)WR_ATOMIC_WRITE)

static const enum ibv_wr_opcode ops[] = { S, SI, W, WI, R, FA, CS, AW };
#define OPS (sizeof(ops) / sizeof(*ops))

static bool is_send(enum ibv_wr_opcode op)
{
	return op == S || op == SI;
}

static bool is_atomic(enum ibv_wr_opcode op)
{
	return op == FA || op == CS;
}

static bool is_word(enum ibv_wr_opcode op)
{
	return is_atomic(op) || op == AW;
}

/* A WR, and the page of its memory that is removed. */
struct scene {
	const struct vanishing *v;
	enum side side;
	enum ibv_wr_opcode op;
	uint32_t len;
	bool tail; /* the page of the last byte is removed, else the first */
	bool list; /* it is the second of three WRs */
	bool split; /* it has three SGEs; the second one is in that page */
	bool from_stack; /* IBV_SEND_INLINE */
	bool cold; /* the QPs have not transferred anything before */
	/* computed by scene_prepare() */
	size_t at; /* offset of the message */
	size_t gone; /* offset of the page */
	bool fails;
};

/*
 * Assert, and print the scene if the assertion fails.  Check has no way to
 * name the iteration of a loop.
 */
#define ck_scene(c, got, want)                                                \
	ck_assert_msg((got) == (want),                                        \
		      "%s at side %d: opcode %d, %u bytes%s%s%s%s: %s is %d," \
		      " expected %d",                                         \
		      (c)->v->name, (int)(c)->side, (int)(c)->op, (c)->len,   \
		      (c)->tail ? ", tail" : "", (c)->list ? ", list" : "",   \
		      (c)->split ? ", split" : "",                            \
		      (c)->from_stack ? ", inline" : "", #got, (int)(got),    \
		      (int)(want))

/* Words before and after the message, for the other WRs and SGEs. */
#define FIRST 1024u
#define LAST 2048u
#define WRS 3 /* of a list */
#define SGES 3
#define SPARE (3 * PAGE) /* for receives without a message */
#define OLD 40u /* value of the words before atomics */

/*
 * Post receives: 1 if there is a WR 1, 2 for the message, and 3.  With three
 * SGEs, the second one of the receive 2 is in the page that is removed.
 */
static void do_receives(struct node *b, void *arg)
{
	const struct scene *c = arg;
	struct ibv_sge sge[SGES];
	struct ibv_recv_wr *bad, wr = { .wr_id = 2, .sg_list = sge };

	if (c->list)
		ck_ok(post_recv(b, 1, SPARE, 16));
	sge[0] = node_sge(b, SPARE, 16);
	sge[1] = node_sge(b, is_send(c->op) ? c->at : SPARE, c->len);
	sge[2] = node_sge(b, SPARE + 16, 16);
	wr.num_sge = c->split ? SGES : 1;
	if (!c->split)
		wr.sg_list++;
	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
	ck_ok(post_recv(b, 3, SPARE + 32, 16));
}

static void scene_prepare(struct duo *d, struct scene *c)
{
	const bool loads_mine = c->op != R && !is_atomic(c->op);
	const bool store = c->side == MINE ? !loads_mine : c->op != R;

	c->at = MESSAGE;
	c->gone = MESSAGE;
	if (c->tail) {
		if (c->len <= PAGE)
			c->at += PAGE - c->len / 2;
		c->gone = (c->at + c->len - 1) / PAGE * PAGE;
	}
	c->fails = access_fails(d, c->v, c->side, store);
	on_b(d, do_receives, c, sizeof(*c));
	side_fill(d, MINE, 0, 4 * PAGE, 1);
	side_fill(d, MINE, c->at, c->len, c->len + c->op);
	side_fill(d, PEERS, c->at, c->len, c->len + c->op + 1);
	if (!is_atomic(c->op))
		return;
	b_store64(d, c->at, OLD);
	b_store64(d, FIRST, OLD);
	b_store64(d, LAST, OLD);
}

/* ------------------------------------------------------- posting */

static struct ibv_send_wr make_wr(const struct duo *d, const struct scene *c,
				  struct ibv_sge *sge, uint64_t id, size_t at)
{
	struct ibv_send_wr wr = rdma_wr(d, c->op, id, sge, 1, at);

	if (is_atomic(c->op)) {
		wr.wr.atomic.remote_addr = d->at_b.base + at;
		wr.wr.atomic.rkey = d->at_b.rkey;
		wr.wr.atomic.compare_add = c->op == FA ? 2 : OLD;
		wr.wr.atomic.swap = OLD + 1;
	}
	return wr;
}

/*
 * Post the WR with the ID 2.  In a list it follows the WR 1, and the WR 3
 * follows it.
 */
static void scene_post(struct duo *d, const struct scene *c)
{
	const uint32_t small = is_word(c->op) ? 8 : 16;
	struct ibv_sge sge[SGES], first, last;
	struct ibv_send_wr wr[WRS];

	first = node_sge(&d->a, FIRST, small);
	last = node_sge(&d->a, LAST, small);
	sge[0] = node_sge(&d->a, c->at, c->len);
	wr[0] = make_wr(d, c, &first, 1, FIRST);
	wr[1] = make_wr(d, c, sge, 2, c->at);
	wr[2] = make_wr(d, c, &last, 3, LAST);
	if (c->split) {
		sge[1] = sge[0];
		sge[0] = first;
		sge[2] = last;
		wr[1].num_sge = SGES;
		wr[1].wr.rdma.remote_addr -= c->op == S ? 0 : small;
	}
	if (c->from_stack)
		wr[1].send_flags |= IBV_SEND_INLINE;
	if (c->list) {
		wr[0].next = &wr[1];
		wr[1].next = &wr[2];
	}
	ck_ok(post_list(&d->a, c->list ? wr : wr + 1));
}

/* ------------------------------------------------------- outcome */

static void expect_mine(struct duo *d, const struct scene *c, uint64_t id,
			enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(d->a.scq);

	ck_scene(c, wc.wr_id, id);
	ck_scene(c, wc.status, status);
}

static void expect_peers(struct duo *d, const struct scene *c, uint64_t id,
			 enum ibv_wc_status status)
{
	struct ibv_wc wc = b_wait_recv(d);

	ck_scene(c, wc.wr_id, id);
	/* the adversary may write the data before it takes the receive */
	if (under_adversary() && status == IBV_WC_LOC_ACCESS_ERR &&
	    wc.status == IBV_WC_WR_FLUSH_ERR)
		return;
	ck_scene(c, wc.status, status);
}

/*
 * Return whether the bytes are carried in the completion of the receive, and
 * placed by the poller.
 */
static bool is_placed_late(const struct duo *d, const struct scene *c)
{
	const bool mapped = c->v->kind == KIND_SHARED &&
			    !(c->cold && c->v->way == WAY_TRUNCATE);

	return is_send(c->op) && d->where == TWO_PROCESSES && !mapped &&
	       c->len + (c->split ? 32 : 0) <= INLINE_IN_CQE &&
	       !under_adversary();
}

/* The status of the WR 2. */
static enum ibv_wc_status status_of(const struct duo *d, const struct scene *c)
{
	if (!c->fails || (c->side == PEERS && is_placed_late(d, c)))
		return IBV_WC_SUCCESS;
	return c->side == MINE ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR;
}

/* The status of the receive 2 if the peer's memory is gone. */
static enum ibv_wc_status receive_status_of(const struct scene *c)
{
	if (is_send(c->op))
		return IBV_WC_LOC_PROT_ERR;
	return c->op == WI ? IBV_WC_LOC_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR;
}

static void check_receives(struct duo *d, const struct scene *c)
{
	const bool takes = is_send(c->op) || c->op == WI;

	if (takes && c->list)
		expect_peers(d, c, 1, IBV_WC_SUCCESS);
	if (!c->fails) {
		if (takes)
			expect_peers(d, c, 2, IBV_WC_SUCCESS);
		if (takes && c->list)
			expect_peers(d, c, 3, IBV_WC_SUCCESS);
	} else if (c->side == PEERS) {
		if (c->list && !takes)
			expect_peers(d, c, 1, IBV_WC_WR_FLUSH_ERR);
		expect_peers(d, c, 2, receive_status_of(c));
		expect_peers(d, c, 3, IBV_WC_WR_FLUSH_ERR);
	}
	ck_scene(c, b_state(d),
		 c->fails && c->side == PEERS ? IBV_QPS_ERR : IBV_QPS_RTS);
}

static void check_completions(struct duo *d, const struct scene *c)
{
	const enum ibv_wc_status status = status_of(d, c);

	if (c->list)
		expect_mine(d, c, 1, IBV_WC_SUCCESS);
	expect_mine(d, c, 2, status);
	if (c->list)
		expect_mine(d, c, 3, status ? IBV_WC_WR_FLUSH_ERR : status);
	ck_scene(c, qp_state(d->a.qp), status ? IBV_QPS_ERR : IBV_QPS_RTS);
}

/* The word of an atomic has changed once, unless the word itself is gone. */
static void check_atomic(struct duo *d, const struct scene *c)
{
	const uint64_t now = c->op == FA ? OLD + 2 : OLD + 1;
	uint64_t old;

	if (!c->fails) {
		node_get(&d->a, c->at, &old, 8);
		if (c->side != PEERS || c->v->way < WAY_PUNCH)
			ck_scene(c, old, OLD);
	}
	if (c->side == MINE || (!c->fails && c->v->way < WAY_PUNCH))
		ck_scene(c, b_load64(d, c->at), now);
	else if (c->v->way == WAY_READ_ONLY)
		ck_scene(c, b_load64(d, c->at), OLD);
}

/* Bytes that were copied without an error are the right ones. */
static void check_data(struct duo *d, const struct scene *c)
{
	if (is_atomic(c->op))
		check_atomic(d, c);
	else if (!c->fails)
		ck_scene(c,
			 side_hash(d, MINE, c->at, c->len) ==
				 side_hash(d, PEERS, c->at, c->len),
			 true);
}

/*
 * After a local error that the responder does not know of, its receive and
 * its expected PSN are unchanged: the requester's QP is connected again, and
 * the same WR succeeds.
 */
static void post_again(struct duo *d, struct scene *c)
{
	if (!c->fails || c->side == PEERS || c->list || c->op == R ||
	    is_atomic(c->op))
		return;
	side_fill(d, MINE, c->at, c->len, 77);
	ck_ok(qp_to(d->a.qp, IBV_QPS_RESET));
	d->a.o.psn += c->cold ? 0 : EXCHANGED;
	node_connect(&d->a, &d->at_b);
	d->a.o.psn -= c->cold ? 0 : EXCHANGED;
	scene_post(d, c);
	c->fails = false;
	check_completions(d, c);
	check_receives(d, c);
	check_data(d, c);
}

static void run_scene(struct duo *d, struct scene c)
{
	if (!c.cold)
		exchange_once(d);
	scene_prepare(d, &c);
	vanish(d, c.side, c.v->way, c.gone, PAGE);
	scene_post(d, &c);
	check_completions(d, &c);
	check_receives(d, &c);
	restore(d, c.side);
	check_data(d, &c);
	post_again(d, &c);
	duo_renew(d);
}

/* ------------------------------------------------------- tests */

/*
 * Open the duo of a test: @i selects where b is, and how memory is removed.
 * @built: WRs are posted by ibv_wr_*().
 */
static const struct vanishing *open_scene(struct duo *d, int i, bool built)
{
	const struct vanishing *v = &vanishings[i / WHERE_COUNT];
	struct opts o = default_opts();

	o.built = built;
	vanish_open(d, i % WHERE_COUNT, v->kind, v->kind, &o);
	return v;
}

static void close_scene(struct duo *d)
{
	exchange_once(d);
	expect_none(d->a.scq, 0);
	expect_none(d->a.rcq, 0);
	expect_no_async(d->a.ctx);
	b_expect_no_async(d);
	vanish_close(d);
}

static void each_length(struct duo *d, struct scene c, bool few)
{
	static const uint32_t lengths[] = { 8, MIDDLE, 64, MESSAGE_MAX, PAGE };
	unsigned int i, n = few ? 2 : 4;

	/* a SEND of PAGE bytes is perhaps placed when it is polled */
	if (!few && c.side == MINE)
		n++;
	for (i = 0; i < (is_word(c.op) ? 1 : n); i++) {
		c.len = lengths[i];
		for (c.tail = false;; c.tail = true) {
			run_scene(d, c);
			if (c.tail || is_word(c.op))
				break;
		}
	}
}

static void list_length(struct duo *d, struct scene c, bool built)
{
	(void)built;
	c.len = is_word(c.op) ? 8 : MIDDLE;
	run_scene(d, c);
}

/*
 * Run a test of each operation at each side.  @i selects the duo, and whether
 * WRs are posted by ibv_post_send or by ibv_wr_*().
 */
static void each_op(int i, struct scene c,
		    void (*test)(struct duo *d, struct scene c, bool built))
{
	const bool built = i / (WHERE_COUNT * VANISHINGS);
	unsigned int op;
	struct duo d;

	if (under_adoption())
		return;
	c.v = open_scene(&d, i % (WHERE_COUNT * VANISHINGS), built);
	for (c.side = MINE; c.side < SIDES; c.side++)
		for (op = 0; op < OPS; op++) {
			c.op = ops[op];
			if (!built || (c.op != WI && c.op != AW))
				test(&d, c, built);
		}
	close_scene(&d);
}

/* One WR; of fewer lengths if it is posted by ibv_wr_*(). */
START_TEST(one_wr)
{
	each_op(_i, (struct scene){ .v = NULL }, each_length);
}
END_TEST

/*
 * The second WR of a list fails: the one before it succeeds, the one after it
 * is flushed.
 */
START_TEST(one_of_a_list)
{
	each_op(_i, (struct scene){ .list = true }, list_length);
}
END_TEST

/* The second of three SGEs is in the page, at the sender or the receiver. */
START_TEST(one_of_three_sges)
{
	static const enum ibv_wr_opcode split_ops[] = { S, W, R };
	static const uint32_t lengths[] = { 16, MIDDLE };
	struct scene c = { .split = true };
	unsigned int i;
	struct duo d;

	if (under_adoption())
		return;
	c.v = open_scene(&d, _i, false);
	for (c.side = MINE; c.side < SIDES; c.side++)
		for (i = 0; i < 6; i++) {
			c.op = split_ops[i % 3];
			c.len = lengths[i / 3];
			run_scene(&d, c);
		}
	close_scene(&d);
}
END_TEST

/* Inline data is sent to memory that is gone. */
START_TEST(inline_data)
{
	struct scene c = { .side = PEERS, .from_stack = true };
	struct duo d;
	int i;

	if (under_adoption())
		return;
	c.v = open_scene(&d, _i, false);
	for (i = 0; i < 4; i++) {
		c.op = i % 2 ? W : S;
		c.len = i / 2 ? 64 : 8;
		run_scene(&d, c);
	}
	close_scene(&d);
}
END_TEST

/*
 * The first WR of a connection fails.  A peer that maps a shared file then
 * finds it truncated.
 */
START_TEST(first_wr)
{
	struct scene c = { .cold = true };
	unsigned int i;
	struct duo d;

	if (under_adoption())
		return;
	c.v = open_scene(&d, _i, false);
	for (c.side = MINE; c.side < SIDES; c.side++)
		for (i = 0; i < 2 * OPS; i++) {
			c.op = ops[i / 2];
			c.len = i % 2 && !is_word(c.op) ? MIDDLE : 8;
			run_scene(&d, c);
		}
	close_scene(&d);
}
END_TEST

/*
 * A list in which the peer's memory of WR 2 is gone, and the memory that WR 3
 * reads: the status is that of WR 2.
 */
START_TEST(first_fault_counts)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr[WRS];
	struct ibv_sge sge[WRS];
	struct duo d;
	int i;

	if (under_adoption())
		return;
	vanish_open(&d, _i, KIND_PRIVATE, KIND_PRIVATE, &o);
	vanish(&d, PEERS, WAY_UNMAP, MESSAGE + PAGE, PAGE);
	vanish(&d, MINE, WAY_UNMAP, MESSAGE + 2 * PAGE, PAGE);
	for (i = 0; i < WRS; i++) {
		sge[i] = node_sge(&d.a, MESSAGE + (size_t)i * PAGE, 100);
		wr[i] = rdma_wr(&d, W, (uint64_t)i, &sge[i], 1,
				MESSAGE + (size_t)i * PAGE);
		wr[i].next = i + 1 < WRS ? &wr[i + 1] : NULL;
	}
	ck_ok(post_wr(d.a.qp, wr));
	expect(d.a.scq, 0, IBV_WC_SUCCESS);
	expect(d.a.scq, 1, IBV_WC_REM_OP_ERR);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	vanish_close(&d);
}
END_TEST

/* ------------------------------------------------------- reasons */

/*
 * The log names the process and an address of the page, at whichever side the
 * memory is.
 */
START_TEST(reason_in_the_log)
{
	static const struct vanishing v = { "munmap", KIND_PRIVATE, WAY_UNMAP };
	struct scene c = { .v = &v, .len = MIDDLE };
	struct opts o = default_opts();
	char want[128], said[8192];
	FILE *log = tmpfile();
	struct duo d;
	ssize_t n;

	if (under_adoption())
		return;
	ck_nonnull(log);
	ck_assert_int_eq(dup2(fileno(log), STDERR_FILENO), STDERR_FILENO);
	setenv("URXE_LOG", "1", 1);
	c.side = _i % SIDES;
	c.op = ops[_i / SIDES % OPS];
	if (is_word(c.op))
		c.len = 8;
	vanish_open(&d, _i / (int)(SIDES * OPS), KIND_PRIVATE, KIND_PRIVATE,
		    &o);
	run_scene(&d, c);
	snprintf(want, sizeof(want), "memory of process %d at 0x%llx",
		 d.pid && c.side == PEERS ? (int)d.pid : (int)getpid(),
		 ((c.side == MINE ? d.a.base : d.at_b.base) + MESSAGE) / PAGE +
			 0ull);
	n = pread(fileno(log), said, sizeof(said) - 1, 0);
	ck_assert_int_ge(n, 0);
	said[n] = 0;
	ck_assert_msg(strstr(said, want), "not \"%s\" but: %s", want, said);
	vanish_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("vanish");

	add_loop(s, one_wr, 2 * WHERE_COUNT * VANISHINGS);
	add_loop(s, one_of_a_list, 2 * WHERE_COUNT * VANISHINGS);
	add_loop(s, one_of_three_sges, WHERE_COUNT * VANISHINGS);
	add_loop(s, inline_data, WHERE_COUNT * VANISHINGS);
	add_loop(s, first_wr, WHERE_COUNT * VANISHINGS);
	add_loop(s, first_fault_counts, WHERE_COUNT);
	add_loop(s, reason_in_the_log, WHERE_COUNT * SIDES * (int)OPS);
	return run_unloaded(s);
}
