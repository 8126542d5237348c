// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA WRITEs and SENDs, one after the other and in lists, for which the
 * cached results of the previous WR are not valid: the keys refer to other
 * memory by now, the WR has other keys, or it fails.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.h"

#define PIECE 64
#define COUNT 8

/*
 * Combinations of the place of b and the kind of memory.  From ENDS on, the
 * same with WRs that are built by ibv_wr_*().
 */
#define ENDS (WHERE_COUNT * MEM_COUNT)

static void open_ends(struct duo *d, int i)
{
	enum mem mem = i % ENDS / WHERE_COUNT;
	struct opts o = default_opts();

	o.cap.max_send_wr = COUNT;
	o.built = i >= ENDS;
	duo_open(d, i % WHERE_COUNT, mem, mem, &o);
}

static void write_ok(struct duo *d, uint64_t remote, uint32_t rkey, size_t off)
{
	struct ibv_sge sge = node_sge(&d->a, off, PIECE);
	struct ibv_send_wr wr = rdma_wr(d, IBV_WR_RDMA_WRITE, 5, &sge, 1, 0);

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	ck_ok(post_list(&d->a, &wr));
	expect_ok(d->a.scq, 5, IBV_WC_RDMA_WRITE);
}

/*
 * Fill the requester's cache: the first WR looks the responder up, the second
 * one uses the result.
 */
static void warm_up(struct duo *d)
{
	write_ok(d, d->at_b.base, d->at_b.rkey, 0);
	write_ok(d, d->at_b.base, d->at_b.rkey, 0);
}

/* ------------------------------------------------- same key, other memory */

struct move {
	uint64_t off;
	uint64_t at; /* address of its first byte in WRs */
};

static void do_move(struct node *b, void *arg)
{
	struct move *m = arg;

	ck_ok(ibv_rereg_mr(b->mr,
			   IBV_REREG_MR_CHANGE_TRANSLATION |
				   IBV_REREG_MR_CHANGE_ACCESS,
			   NULL, (char *)b->buf + m->off, 4096,
			   ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	m->at = 0;
}

/*
 * After ibv_rereg_mr() has moved the responder's MR, WRITEs with the same
 * rkey change the new memory.
 */
START_TEST(responder_mr_moved)
{
	struct move m;
	struct duo d;
	int i;

	open_ends(&d, _i);
	for (i = 0; i < 4; i++) {
		m.off = 4096 * (i % 2);
		on_b(&d, do_move, &m, sizeof(m));
		node_fill(&d.a, 0, PIECE, i);
		write_ok(&d, m.at, d.at_b.rkey, 0);
		ck_assert(b_has(&d, m.off, PIECE, i));
		write_ok(&d, m.at, d.at_b.rkey, 0);
	}
	duo_close(&d);
}
END_TEST

/*
 * After ibv_rereg_mr() has moved the requester's MR, WRITEs with the same
 * lkey read the new memory.
 */
START_TEST(requester_mr_moved)
{
	struct move m;
	struct duo d;
	int i;

	open_ends(&d, _i);
	node_fill(&d.a, 0, PIECE, 1);
	node_fill(&d.a, 4096, PIECE, 2);
	d.a.base = 0;
	for (i = 0; i < 4; i++) {
		m.off = 4096 * (i % 2);
		do_move(&d.a, &m);
		write_ok(&d, d.at_b.base, d.at_b.rkey, 0);
		ck_assert(b_has(&d, 0, PIECE, 1 + i % 2));
		write_ok(&d, d.at_b.base, d.at_b.rkey, 0);
	}
	duo_close(&d);
}
END_TEST

static void do_move_sink(struct node *b, void *arg)
{
	do_move(b, arg);
	b->base = 0;
}

static void send_ok(struct duo *d, uint64_t wr_id, unsigned int seed, size_t at)
{
	node_fill(&d->a, 0, PIECE, seed);
	ck_ok(post(d, IBV_WR_SEND, wr_id, 0, PIECE, 0, 0));
	expect_ok(d->a.scq, wr_id, IBV_WC_SEND);
	ck_assert_int_eq(b_wait_recv(d).status, IBV_WC_SUCCESS);
	ck_assert(b_has(d, at, PIECE, seed));
}

/*
 * After ibv_rereg_mr() has moved the responder's MR, SENDs go to the new
 * memory of the receives that are posted then.
 */
START_TEST(receive_mr_moved)
{
	struct move m;
	struct duo d;
	int i;

	open_ends(&d, _i);
	for (i = 0; i < 4; i++) {
		m.off = 4096 * (i % 2);
		on_b(&d, do_move_sink, &m, sizeof(m));
		b_recv(&d, 1, 0, PIECE);
		b_recv(&d, 2, PIECE, PIECE);
		send_ok(&d, 1, 2 * i, m.off);
		send_ok(&d, 2, 2 * i + 1, m.off + PIECE);
	}
	duo_close(&d);
}
END_TEST

/* A receive of PIECE bytes at @off, with a given lkey. */
struct sink {
	uint32_t lkey;
	size_t off;
};

static void do_recv(struct node *b, void *arg)
{
	struct sink *s = arg;
	struct ibv_sge sge = node_sge(b, s->off, PIECE);
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	sge.lkey = s->lkey;
	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
}

static void do_reg(struct node *b, void *arg);
static void do_dereg(struct node *b, void *arg);

/*
 * The lkey of a posted receive is deregistered after other SENDs have used
 * it: the next SEND fails at both ends.
 */
START_TEST(receive_mr_deregistered)
{
	struct sink s = { .off = PIECE };
	struct duo d;

	open_ends(&d, _i);
	on_b(&d, do_reg, &s.lkey, sizeof(s.lkey));
	on_b(&d, do_recv, &s, sizeof(s));
	on_b(&d, do_recv, &s, sizeof(s));
	b_recv(&d, 0, 0, PIECE);
	on_b(&d, do_recv, &s, sizeof(s));
	send_ok(&d, 1, 1, PIECE);
	send_ok(&d, 2, 2, PIECE);
	send_ok(&d, 3, 3, 0); /* the other key */
	on_b(&d, do_dereg, NULL, 0);
	ck_ok(post(&d, IBV_WR_SEND, 4, 0, PIECE, 0, 0));
	ck_assert_int_eq(wait_wc(d.a.scq).status, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_PROT_ERR);
	ck_assert(b_has(&d, PIECE, PIECE, 2));
	duo_close(&d);
}
END_TEST

/*
 * After the QP is connected with another one, rkeys of the former peer's PD
 * are refused.
 */
START_TEST(connected_to_another_qp)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct addr mine, other;
	struct node n;
	struct duo d;

	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	node_open(&n, d.a.ctx, MEM_HEAP, &o);
	warm_up(&d);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
	mine = node_addr(&d.a);
	other = node_addr(&n);
	node_connect(&d.a, &other);
	node_connect(&n, &mine);
	write_ok(&d, other.base, other.rkey, 0);
	sge = node_sge(&d.a, 0, PIECE);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	ck_assert_int_eq(wait_wc(d.a.scq).status, IBV_WC_REM_ACCESS_ERR);
	node_close(&n);
	duo_close(&d);
}
END_TEST

/*
 * In a forked child, post a WRITE from the parent's MR.  Its lkey refers to
 * the parent's memory, not to the child's copy.
 */
static int child_writes(void *arg)
{
	struct duo *d = arg;

	memset(d->a.buf, 3, PIECE);
	ck_ok(post_unsignaled(d, IBV_WR_RDMA_WRITE, 0, 0, PIECE, 0, 0));
	return !node_all(&d->b, 0, PIECE, 1);
}

/*
 * A WRITE that a child posts on the parent's QP reads the parent's memory.
 * The parent does not use the connection afterwards, as the child has
 * advanced it.
 */
START_TEST(post_after_fork)
{
	struct opts o = default_opts();
	struct duo d;
	int to[2];
	pid_t child;
	char c;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	memset(d.a.buf, 1, PIECE);
	warm_up(&d);
	ck_ok(pipe(to));
	child = fork();
	if (!child)
		_exit(read(to[0], &c, 1) != 1 || child_writes(&d));
	memset(d.a.buf, 2, PIECE);
	ck_assert_int_eq(write(to[1], "x", 1), 1);
	ck_assert_int_eq(reap_child(child), 0);
	ck_assert(node_all(&d.b, 0, PIECE, 2));
	duo_close(&d);
}
END_TEST

/* Bytes of each WRITE of a list that takes long enough to be interrupted. */
#define LONG (4u << 20)

static void *post_long(void *arg)
{
	struct duo *d = arg;
	struct ibv_send_wr wr[COUNT], *bad;
	struct ibv_sge sge[COUNT];
	int i;

	for (i = 0; i < COUNT; i++) {
		sge[i] = node_sge(&d->a, i * LONG, LONG);
		wr[i] = rdma_wr(d, IBV_WR_RDMA_WRITE, i, &sge[i], 1, i * LONG);
		wr[i].send_flags = 0;
		wr[i].next = i + 1 < COUNT ? &wr[i + 1] : NULL;
	}
	ck_ok(ibv_post_send(d->a.qp, wr, &bad));
	return NULL;
}

/*
 * Post a READ in the child.  The parent has advanced the connection, so it
 * may fail.  But it must complete.
 */
static int child_posts(struct duo *d)
{
	ck_ok(post(d, IBV_WR_RDMA_READ, 7, 0, PIECE, 0, 0));
	return wait_wc(d->a.scq).wr_id != 7;
}

/*
 * fork() while another thread executes a list: a WR that the child posts
 * completes.
 */
START_TEST(fork_during_list)
{
	struct opts o = default_opts();
	const _Atomic char *third;
	pthread_t thread;
	struct duo d;
	int to[2];
	pid_t child;
	char c;

	o.size = COUNT * LONG;
	o.timeout = 8;
	o.retry_cnt = 1;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	warm_up(&d);
	memset(d.a.buf, 1, o.size);
	memset(d.b.buf, 0, o.size);
	third = (const _Atomic char *)d.b.buf + 2 * LONG;
	ck_ok(pipe(to));
	ck_ok(pthread_create(&thread, NULL, post_long, &d));
	while (!atomic_load(third))
		;
	child = fork();
	if (!child)
		_exit(read(to[0], &c, 1) != 1 || child_posts(&d));
	ck_ok(pthread_join(thread, NULL));
	ck_assert_int_eq(write(to[1], "x", 1), 1);
	ck_assert_int_eq(reap_child(child), 0);
	duo_close(&d);
}
END_TEST

/*
 * A QP with max_send_sge 0 executes WRs without SGEs, and refuses others with
 * EINVAL.
 */
START_TEST(no_sges)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	o.cap.max_send_sge = 0;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, NULL, 0, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	sge = node_sge(&d.a, 0, PIECE);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 2, &sge, 1, 0);
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------------- lists */

struct list {
	struct ibv_sge sge[COUNT][2];
	struct ibv_send_wr wr[COUNT];
};

/* Prepare COUNT WRITEs of pieces that are not adjacent, all signaled. */
static void list_init(struct duo *d, struct list *l)
{
	int i;

	memset(l, 0, sizeof(*l));
	for (i = 0; i < COUNT; i++) {
		l->sge[i][0] = node_sge(&d->a, 2 * i * PIECE, PIECE);
		l->wr[i] = rdma_wr(d, IBV_WR_RDMA_WRITE, i, l->sge[i], 1,
				   2 * i * PIECE);
		l->wr[i].next = i + 1 < COUNT ? &l->wr[i + 1] : NULL;
		node_fill(&d->a, 2 * i * PIECE, PIECE, i + 1);
	}
}

/*
 * Post the list: @good WRs succeed, the next one fails with @status, the rest
 * are flushed.
 */
static void list_expect(struct duo *d, struct list *l, int good,
			enum ibv_wc_status status)
{
	struct ibv_wc wc;
	int i;

	warm_up(d);
	ck_ok(post_list(&d->a, l->wr));
	for (i = 0; i < COUNT; i++) {
		wc = wait_wc(d->a.scq);
		ck_assert_uint_eq(wc.wr_id, i);
		ck_assert_int_eq(wc.status, i < good  ? IBV_WC_SUCCESS :
					    i == good ? status :
							IBV_WC_WR_FLUSH_ERR);
	}
	for (i = 0; i < good; i++)
		ck_assert(l->wr[i].opcode != IBV_WR_RDMA_WRITE ||
			  !l->wr[i].num_sge ||
			  b_has(d, 2 * i * PIECE, PIECE, i + 1));
}

/* All WRITEs of a list succeed. */
START_TEST(list_of_writes)
{
	struct list l;
	struct duo d;

	open_ends(&d, _i);
	list_init(&d, &l);
	list_expect(&d, &l, COUNT, 0);
	duo_close(&d);
}
END_TEST

static void do_reg(struct node *b, void *arg)
{
	uint32_t *rkey = arg;
	struct ibv_mr *mr = ibv_reg_mr(b->pd, b->buf, b->o.size, ALL_ACCESS);

	ck_nonnull(mr);
	b->user = mr;
	*rkey = mr->rkey;
}

static void do_dereg(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_dereg_mr(b->user));
}

/*
 * A list with two rkeys in turn, and WRs with two SGEs, with none, and a
 * READ.
 */
START_TEST(list_of_several_kinds)
{
	struct list l;
	uint32_t rkey;
	struct duo d;
	int i;

	open_ends(&d, _i % 2 * ENDS + _i / 2);
	on_b(&d, do_reg, &rkey, sizeof(rkey));
	list_init(&d, &l);
	for (i = 1; i < COUNT; i += 2)
		l.wr[i].wr.rdma.rkey = rkey;
	l.sge[3][0].length = PIECE / 2;
	l.sge[3][1] = l.sge[3][0];
	l.sge[3][1].addr += PIECE / 2;
	l.wr[3].num_sge = 2;
	l.wr[4].num_sge = 0;
	l.wr[5].opcode = IBV_WR_RDMA_READ;
	list_expect(&d, &l, COUNT, 0);
	on_b(&d, do_dereg, NULL, 0);
	duo_close(&d);
}
END_TEST

/*
 * A list breaks at each position in turn, by a wrong rkey, a range outside of
 * the MR, or a wrong lkey.
 */
START_TEST(list_with_an_error)
{
	struct list l;
	struct duo d;
	int i;

	for (i = 0; i < COUNT; i++) {
		open_ends(&d, _i);
		list_init(&d, &l);
		l.wr[i].wr.rdma.rkey += 1;
		list_expect(&d, &l, i, IBV_WC_REM_ACCESS_ERR);
		duo_renew(&d);
		list_init(&d, &l);
		l.wr[i].wr.rdma.remote_addr = d.at_b.base + d.a.o.size - 1;
		list_expect(&d, &l, i, IBV_WC_REM_ACCESS_ERR);
		duo_renew(&d);
		list_init(&d, &l);
		l.sge[i][0].lkey += 1;
		list_expect(&d, &l, i, IBV_WC_LOC_PROT_ERR);
		duo_close(&d);
	}
}
END_TEST

/* Post a receive with two SGEs, at offset *@arg. */
static void do_recv_two(struct node *b, void *arg)
{
	struct ibv_sge sge[2] = { node_sge(b, *(size_t *)arg, PIECE / 2),
				  node_sge(b, *(size_t *)arg + PIECE / 2,
					   PIECE / 2) };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 2 }, *bad;

	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
}

/*
 * A list with SENDs among WRITEs, some inline or with immediate data, one
 * into a receive with two SGEs.
 */
START_TEST(list_with_sends)
{
	size_t two = 2 * 4 * PIECE;
	struct list l;
	struct duo d;
	int i, turn;

	open_ends(&d, _i);
	for (turn = 0; turn < 3; turn++) {
		list_init(&d, &l);
		l.wr[4].opcode = IBV_WR_SEND;
		l.wr[1].opcode = l.wr[5].opcode = IBV_WR_SEND_WITH_IMM;
		l.wr[1].imm_data = 76;
		l.wr[5].imm_data = 77;
		if (d.a.buf) {
			l.wr[2].send_flags |= IBV_SEND_INLINE;
			l.wr[4].send_flags |= IBV_SEND_INLINE;
		}
		b_recv(&d, 1, 2 * 1 * PIECE, PIECE);
		on_b(&d, do_recv_two, &two, sizeof(two));
		b_recv(&d, 5, 2 * 5 * PIECE, PIECE);
		list_expect(&d, &l, COUNT, 0);
		ck_assert_uint_eq(b_wait_recv(&d).imm_data, 76);
		ck_assert_int_eq(b_wait_recv(&d).wc_flags, 0);
		ck_assert_uint_eq(b_wait_recv(&d).imm_data, 77);
		for (i = 0; i < COUNT; i++)
			ck_assert(b_has(&d, 2 * i * PIECE, PIECE, i + 1));
	}
	duo_close(&d);
}
END_TEST

/*
 * A SEND that is longer than its receive breaks the list after SENDs that
 * were not.
 */
START_TEST(list_with_a_long_send)
{
	struct list l;
	struct duo d;
	int i;

	open_ends(&d, _i);
	list_init(&d, &l);
	for (i = 0; i < COUNT; i++) {
		l.wr[i].opcode = IBV_WR_SEND;
		b_recv(&d, i, 2 * i * PIECE, i == 3 ? PIECE - 1 : PIECE);
	}
	list_expect(&d, &l, 3, IBV_WC_REM_INV_REQ_ERR);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_LEN_ERR);
	duo_close(&d);
}
END_TEST

/*
 * WRs that exceed the send queue are refused with ENOMEM.  The WRs before
 * them are executed (ibv_post_send(3)).
 */
START_TEST(list_exceeds_queue)
{
	struct ibv_send_wr *bad = NULL;
	struct list l;
	struct duo d;
	uint32_t depth;
	int i;

	open_ends(&d, _i);
	list_init(&d, &l);
	warm_up(&d);
	ck_ok(ibv_post_send(d.a.qp, &l.wr[COUNT / 2], &bad));
	ck_assert_int_eq(ibv_post_send(d.a.qp, l.wr, &bad), ENOMEM);
	depth = bad - l.wr;
	ck_assert_uint_eq(depth, COUNT / 2);
	for (i = 0; i < COUNT; i++)
		expect_ok(d.a.scq, (i + COUNT / 2) % COUNT, IBV_WC_RDMA_WRITE);
	list_expect(&d, &l, COUNT, 0);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("direct");

	add_loop(s, responder_mr_moved, 2 * WHERE_COUNT);
	add_loop(s, requester_mr_moved, 2 * WHERE_COUNT);
	add_loop(s, receive_mr_moved, 2 * WHERE_COUNT);
	add_loop(s, receive_mr_deregistered, 2 * WHERE_COUNT);
	add(s, connected_to_another_qp);
	add_loop(s, post_after_fork, 2);
	add(s, fork_during_list);
	add(s, no_sges);
	add_loop(s, list_of_writes, 2 * ENDS);
	add_loop(s, list_of_several_kinds, 4 * WHERE_COUNT);
	add_loop(s, list_with_an_error, 2 * ENDS);
	add_loop(s, list_with_sends, 2 * ENDS);
	add_loop(s, list_with_a_long_send, 2 * ENDS);
	add_loop(s, list_exceeds_queue, ENDS);
	return run(s);
}
