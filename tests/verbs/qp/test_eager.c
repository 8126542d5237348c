// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Eager buffers (provider/engine/cq/eager.h): SENDs of 81 to 8192 bytes to
 * private memory of another process, which the poller copies to the receive.
 *
 * This program defines process_vm_writev() and posix_fallocate().  The
 * provider calls them instead of those of libc.  The first counts its calls:
 * a SEND through an eager buffer makes none.  The second can fail.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "xrc.h"

/* as in kernel-shim/shared/arena.h and provider/engine/cq/eager.c */
#define SLOTS 64
#define SLOT_BYTES 8192
#define BUFFER (SLOTS * SLOT_BYTES)
#define BUFFERS 4
/* a SEND uses the buffer if fewer messages than this are not polled */
#define SURE (SLOTS / 2)

static atomic_long copies; /* calls of process_vm_writev() */
static atomic_bool full; /* posix_fallocate() fails */

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n,
			  const struct iovec *remote, unsigned long m,
			  unsigned long flags)
{
	atomic_fetch_add(&copies, 1);
	return syscall(SYS_process_vm_writev, pid, local, n, remote, m, flags);
}

int posix_fallocate(int fd, off_t off, off_t len)
{
	if (atomic_load(&full))
		return ENOSPC;
	return fallocate(fd, 0, off, len) ? errno : 0;
}

/* ------------------------------------------------------------ connections */

enum kind { RC, UC, UD, SRQ, XRC, KINDS };

static const enum ibv_qp_type send_type[] = { IBV_QPT_RC, IBV_QPT_UC,
					      IBV_QPT_UD, IBV_QPT_RC,
					      IBV_QPT_XRC_SEND };

/* A duo of two processes.  a sends, b receives. */
struct pair {
	struct duo d;
	enum kind kind;
	uint32_t parts; /* SGEs of each WR */
	struct ibv_ah *ah;
	uint32_t srqn;
	bool counts; /* a message that is too long is counted in `copies` */
};

/* b's objects of the kinds that have them */
struct far {
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
};

struct far_arg {
	enum kind kind;
	struct addr addr;
	uint32_t srqn;
};

static void do_open_kind(struct node *b, void *arg)
{
	static struct far far;
	struct far_arg *a = arg;

	b->user = &far;
	ck_ok(ibv_destroy_qp(b->qp));
	switch (a->kind) {
	case SRQ:
		far.srq = make_srq(b, b->o.cap.max_recv_wr, 4);
		b->qp = make_qp(b, IBV_QPT_RC, far.srq);
		break;
	case XRC:
		far.xrcd = open_xrcd(b->ctx, -1, O_CREAT);
		ck_nonnull(far.xrcd);
		far.srq = make_xsrq(b, far.xrcd, b->o.cap.max_recv_wr, 4);
		a->srqn = srqn(far.srq);
		b->qp = make_target(b, far.xrcd);
		break;
	default:
		b->qp = make_qp(b, send_type[a->kind], NULL);
	}
	a->addr = node_addr(b);
}

static void do_connect(struct node *b, void *arg)
{
	type_connect(b->qp, &b->o, arg);
}

static void pair_open(struct pair *p, enum kind kind, const struct opts *o)
{
	struct far_arg far = { .kind = kind };
	struct duo *d = &p->d;

	memset(p, 0, sizeof(*p));
	p->kind = kind;
	p->parts = 1;
	duo_open_unconnected(d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, o);
	on_b(d, do_open_kind, &far, sizeof(far));
	d->at_b = far.addr;
	p->srqn = far.srqn;
	ck_ok(ibv_destroy_qp(d->a.qp));
	d->a.qp = make_qp(&d->a, send_type[kind], NULL);
	d->at_a = node_addr(&d->a);
	on_b(d, do_connect, &d->at_a, sizeof(d->at_a));
	type_connect(d->a.qp, o, &d->at_b);
	if (kind == UD)
		p->ah = make_ah(&d->a, &d->at_b.gid, 0);
}

static void do_close_kind(struct node *b, void *arg)
{
	struct far *far = b->user;

	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
	if (far->srq)
		ck_ok(ibv_destroy_srq(far->srq));
	if (far->xrcd)
		ck_ok(ibv_close_xrcd(far->xrcd));
}

static void pair_close(struct pair *p)
{
	if (p->ah)
		ck_ok(ibv_destroy_ah(p->ah));
	on_b(&p->d, do_close_kind, NULL, 0);
	duo_close(&p->d);
}

static struct opts large_opts(void)
{
	struct opts o = default_opts();

	o.size = 1 << 20;
	o.cap.max_recv_wr = 256;
	return o;
}

/* --------------------------------------------------------------- messages */

/*
 * Messages @first to @first + @n - 1.  Number i has @len + i % 64 bytes and
 * is at i % 250 * 4160 in both buffers.
 */
struct batch {
	uint32_t first, n, len, parts;
	uint32_t grh; /* bytes before the message in the receive */
	long calls; /* result of do_send() */
};

#define STRIDE 4160
#define AT(i) ((i) % 250 * STRIDE)
#define LEN(m, i) ((m)->len + (i) % 64)
#define SINGLE 64 /* a message of just @len bytes */
#define UD_BYTES 4096 /* the longest message of UD */

/* Divide @len bytes at @off into @n SGEs. */
static void divide(struct ibv_sge *sge, const struct node *n, size_t off,
		   uint32_t len, uint32_t parts)
{
	uint32_t i, each = len / parts;

	for (i = 0; i < parts; i++)
		sge[i] = node_sge(n, off + i * each,
				  i + 1 < parts ? each : len - i * each);
}

static void do_post(struct node *b, void *arg)
{
	const struct batch *m = arg;
	const struct far *far = b->user;
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_sge sge[4];
	uint32_t i;

	wr.sg_list = sge;
	wr.num_sge = (int)m->parts;
	for (i = m->first; i < m->first + m->n; i++) {
		wr.wr_id = i;
		divide(sge, b, AT(i), LEN(m, i) + m->grh, m->parts);
		if (far && far->srq)
			ck_ok(ibv_post_srq_recv(far->srq, &wr, &bad));
		else
			ck_ok(ibv_post_recv(b->qp, &wr, &bad));
	}
}

/* Poll the messages and check them; @b is a node of either process. */
static void do_poll(struct node *b, void *arg)
{
	const struct batch *m = arg;
	struct ibv_wc wc;
	uint32_t i;

	for (i = m->first; i < m->first + m->n; i++) {
		wc = expect_ok(b->rcq, i, IBV_WC_RECV);
		ck_assert_uint_eq(wc.byte_len, LEN(m, i) + m->grh);
		ck_assert(node_has(b, AT(i) + m->grh, LEN(m, i), i));
		/* the next message there is different */
		node_fill(b, AT(i), LEN(m, i) + m->grh, i + 1);
	}
}

/* Post a list of @n SENDs, from message @i on; wait for them. */
static void send_list(struct pair *p, const struct batch *m, uint32_t first,
		      uint32_t n)
{
	struct ibv_send_wr wr[16], *bad;
	struct ibv_sge sge[16][4];
	uint32_t i, k;

	for (k = 0; k < n; k++) {
		i = first + k;
		node_fill(&p->d.a, AT(i), LEN(m, i), i);
		divide(sge[k], &p->d.a, AT(i), LEN(m, i), m->parts);
		wr[k] = rdma_wr(&p->d, IBV_WR_SEND, i, sge[k], (int)m->parts,
				0);
		if (p->kind == UD)
			wr[k] = ud_wr(i, sge[k], (int)m->parts, p->ah,
				      p->d.at_b.qpn, QKEY);
		else if (p->kind == XRC)
			wr[k].qp_type.xrc.remote_srqn = p->srqn;
		wr[k].next = k + 1 < n ? &wr[k + 1] : NULL;
	}
	ck_ok(ibv_post_send(p->d.a.qp, wr, &bad));
	for (k = 0; k < n; k++)
		expect_ok(p->d.a.scq, first + k, IBV_WC_SEND);
}

static struct batch batch_of(const struct pair *p, uint32_t first, uint32_t n,
			     uint32_t len)
{
	return (struct batch){ .first = first,
			       .n = n,
			       .len = len,
			       .parts = p->parts,
			       .grh = p->kind == UD ? GRH : 0 };
}

/* Post receives and send to them.  Return the calls of process_vm_writev(). */
static long batch_send(struct pair *p, uint32_t first, uint32_t n, uint32_t len)
{
	struct batch m = batch_of(p, first, n, len);
	long before = atomic_load(&copies);
	uint32_t i, k;

	on_b(&p->d, do_post, &m, sizeof(m));
	for (i = 0; i < n; i += k) {
		/* lists of 1 to 16 messages */
		k = 1 + i % 16 < n - i ? 1 + i % 16 : n - i;
		send_list(p, &m, first + i, k);
	}
	return atomic_load(&copies) - before;
}

static void batch_poll(struct pair *p, uint32_t first, uint32_t n, uint32_t len)
{
	struct batch m = batch_of(p, first, n, len);

	on_b(&p->d, do_poll, &m, sizeof(m));
}

static long exchange(struct pair *p, uint32_t len)
{
	long calls = batch_send(p, SINGLE, 1, len);

	batch_poll(p, SINGLE, 1, len);
	return calls;
}

/* The adversary delays messages, which then are not eager. */
static bool is_eager(void)
{
	return !under_adversary();
}

/*
 * Exchange messages until one makes no system call: the first one requests
 * the buffer, and the receiver allocates it when it polls.
 */
static void warm_up(struct pair *p)
{
	int i;

	/* the messages of UD are smaller than a slot */
	p->counts = is_eager() && p->kind != UD && exchange(p, 3 * SLOT_BYTES);
	for (i = 0; exchange(p, 100) && is_eager(); i++)
		ck_assert_int_lt(i, 4);
}

#define ck_eager(calls)                              \
	do {                                         \
		const long number = (calls);         \
		if (is_eager())                      \
			ck_assert_int_eq(number, 0); \
	} while (0)

/* ------------------------------------------------------------------- data */

/*
 * Each kind of QP, with one SGE and with three: messages up to the size of a
 * slot make no system call, and all data is right.
 */
START_TEST(sizes)
{
	static const uint32_t len[] = { 79,   80,   81,	  82,	127,  128,
					1000, 1024, 2047, 4055, 4056, 4057,
					4095, 4096, 4097, 8191, 8192, 8193 };
	struct opts o = large_opts();
	struct pair p;
	size_t i;
	long n;

	pair_open(&p, _i % KINDS, &o);
	warm_up(&p);
	p.parts = _i < KINDS ? 1 : 3;
	for (i = 0; i < sizeof(len) / sizeof(*len); i++) {
		if (p.kind == UD && len[i] > UD_BYTES)
			break;
		n = exchange(&p, len[i]);
		if (len[i] + (p.kind == UD ? GRH : 0) <= SLOT_BYTES)
			ck_eager(n);
		else if (p.counts)
			ck_assert_int_gt(n, 0);
	}
	pair_close(&p);
}
END_TEST

/*
 * Messages that are not polled, in rings that are smaller and larger than the
 * buffer: those that have no slot go another way.
 */
START_TEST(unpolled)
{
	static const int depth[] = { 8, 64, 128, 1024 };
	struct opts o = large_opts();
	uint32_t n, turn;
	struct pair p;
	long calls;

	o.cqe = depth[_i % 4];
	n = o.cqe < 200 ? (uint32_t)o.cqe : 200;
	pair_open(&p, _i < 4 ? RC : SRQ, &o);
	warm_up(&p);
	for (turn = 0; turn < 4; turn++) {
		calls = batch_send(&p, 1000 + turn, n, 500);
		if (n <= SURE)
			ck_eager(calls);
		else if (is_eager())
			ck_assert_int_le(calls, n - SURE);
		if (n > SLOTS && p.counts)
			ck_assert_int_gt(calls, 0);
		batch_poll(&p, 1000 + turn, n, 500);
	}
	pair_close(&p);
}
END_TEST

/* Slots are reused while later messages are not polled. */
START_TEST(polled_in_parts)
{
	uint32_t in = 0, out = 0, i;
	struct opts o = large_opts();
	struct pair p;

	pair_open(&p, _i ? UC : RC, &o);
	warm_up(&p);
	for (i = 0; i < 40; i++) {
		batch_send(&p, in, 1 + i * 7 % 40, 4000);
		in += 1 + i * 7 % 40;
		while (in - out > i * 11 % 80) {
			batch_poll(&p, out, 1, 4000);
			out++;
		}
	}
	batch_poll(&p, out, in - out, 4000);
	pair_close(&p);
}
END_TEST

/* ----------------------------------------------------------------- resize */

static void do_resize(struct node *b, void *arg)
{
	ck_ok(ibv_resize_cq(b->rcq, *(int *)arg));
}

/*
 * Messages that were not polled before ibv_resize_cq, and those after it,
 * whose positions start anew.
 */
START_TEST(resize)
{
	static int cqe[] = { 200, 40, 1024, 64 };
	struct opts o = large_opts();
	uint32_t in = 0, out = 0, i;
	struct pair p;

	o.cqe = 64;
	pair_open(&p, _i ? SRQ : RC, &o);
	warm_up(&p);
	for (i = 0; i < 24; i++) {
		ck_eager(batch_send(&p, in, 7, 3000));
		in += 7;
		on_b(&p.d, do_resize, &cqe[i % 4], sizeof(int));
		ck_eager(batch_send(&p, in, 5, 3000));
		in += 5;
		if (i % 3 == 0) /* 2 entries are in both of the rings */
			continue;
		batch_poll(&p, out, in - out - 2 * (i % 3), 3000);
		out = in - 2 * (i % 3);
	}
	batch_poll(&p, out, in - out, 3000);
	pair_close(&p);
}
END_TEST

/* --------------------------------------------------- from b to a, killed b */

/* b sends the messages, each alone.  @arg is a struct batch. */
static void do_send(struct node *b, void *arg)
{
	struct batch *m = arg;
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .num_sge = 1 };
	long before = atomic_load(&copies);
	struct ibv_sge sge;
	uint32_t i;

	for (i = m->first; i < m->first + m->n; i++) {
		node_fill(b, AT(i), LEN(m, i), i);
		sge = node_sge(b, AT(i), LEN(m, i));
		wr.wr_id = i;
		wr.sg_list = &sge;
		ck_ok(post_wr(b->qp, &wr));
		expect_ok(b->scq, i, IBV_WC_SEND);
	}
	m->calls = atomic_load(&copies) - before;
}

static void do_leave_check(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	leave_check();
}

/* a posts receives, and b sends to them.  Return m->calls. */
static long send_back(struct duo *d, struct batch *m)
{
	do_post(&d->a, m);
	on_b(d, do_send, m, sizeof(*m));
	return m->calls;
}

/*
 * Messages that a sender has sent before it was killed are received, in the
 * order and with the data that they were sent with.
 */
START_TEST(killed_sender)
{
	struct batch one = { .first = SINGLE, .n = 1, .len = 100, .parts = 1 };
	struct batch m = { .n = 20, .len = 3000, .parts = 1 };
	struct opts o = large_opts();
	struct duo d;
	int i;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_leave_check, NULL, 0);
	for (i = 0; i < 4; i++) {
		send_back(&d, &one);
		do_poll(&d.a, &one);
	}
	ck_eager(send_back(&d, &m));
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	if (_i)
		ck_ok(ibv_resize_cq(d.a.rcq, 1000));
	do_poll(&d.a, &m);
	expect_none(d.a.rcq, QUIET_MS);
	close(d.sock);
	node_close(&d.a);
}
END_TEST

/* ---------------------------------------------------------------- traffic */

#define WINDOW 64 /* receives of each sender */
#define SENDERS 2

static uint32_t traffic(void)
{
	return (uint32_t)turns_of(10000);
}

static uint32_t traffic_len(uint32_t i)
{
	return 84 + i * 148 % 4012;
}

static struct {
	pthread_t thread;
	int failed;
} sender;

/*
 * Thread of b: send traffic() messages, whose immediate data and whose words
 * are their number.
 */
static void *send_all(void *arg)
{
	struct node *b = arg;
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM };
	struct ibv_sge sge;
	uint32_t i, k;

	for (i = 0; i < traffic() && !sender.failed; i++) {
		sge = node_sge(b, i % 32 * STRIDE, traffic_len(i));
		for (k = 0; k < sge.length; k += 4)
			*(uint32_t *)(uintptr_t)(sge.addr + k) = i;
		wr.wr_id = i;
		wr.imm_data = htobe32(i);
		wr.sg_list = &sge;
		wr.send_flags = i % 16 == 15 ? IBV_SEND_SIGNALED : 0;
		sender.failed |= post_wr(b->qp, &wr);
		if (i % 16 == 15)
			sender.failed |= wait_wc(b->scq).status;
	}
	return NULL;
}

static void do_start(struct node *b, void *arg)
{
	if (*(bool *)arg)
		leave_check();
	ck_ok(pthread_create(&sender.thread, NULL, send_all, b));
}

static void do_join(struct node *b, void *arg)
{
	(void)b;
	pthread_join(sender.thread, NULL);
	*(int *)arg = sender.failed;
}

/* One of the senders, with its QP of the receiver's CQ */
static struct traffic_end {
	struct duo d;
	struct node own; /* d.a before traffic_connect() */
	uint32_t next;
	bool killed;
} ends[SENDERS];

static void post_window(struct traffic_end *t, uint32_t k)
{
	const uint32_t slot = (uint32_t)(t - ends) * WINDOW + k;

	ck_ok(post_recv(&t->d.a, slot, (size_t)slot * STRIDE, STRIDE));
}

/* Connect a new QP of node @n to b of @t->d, and start the sender. */
static void traffic_connect(struct traffic_end *t, struct node *n, bool killed)
{
	uint32_t k;

	t->own = t->d.a;
	t->d.a = *n;
	node_make_qp(&t->d.a);
	t->d.at_a = node_addr(&t->d.a);
	duo_connect(&t->d);
	for (k = 0; k < WINDOW; k++)
		post_window(t, k);
	on_b(&t->d, do_start, &killed, sizeof(killed));
}

static void traffic_close(struct traffic_end *t)
{
	int failed;

	if (!t->killed) {
		on_b(&t->d, do_join, &failed, sizeof(failed));
		ck_assert_int_eq(failed, 0);
	}
	ck_ok(ibv_destroy_qp(t->d.a.qp));
	t->d.a = t->own;
	if (!t->killed) {
		duo_close(&t->d);
		return;
	}
	close(t->d.sock);
	node_close(&t->d.a);
}

static void traffic_receive(const struct node *n, const struct ibv_wc *wc)
{
	struct traffic_end *t = &ends[wc->wr_id / WINDOW];
	const char *data = (char *)n->buf + wc->wr_id * STRIDE;
	uint32_t k;

	ck_assert_int_eq(wc->status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc->qp_num, t->d.a.qp->qp_num);
	ck_assert_uint_eq(be32toh(wc->imm_data), t->next);
	ck_assert_uint_eq(wc->byte_len, traffic_len(t->next));
	for (k = 0; k < wc->byte_len; k += 4)
		ck_assert_uint_eq(*(const uint32_t *)(const void *)(data + k),
				  t->next);
	t->next++;
	post_window(t, wc->wr_id % WINDOW);
}

static void traffic_kill(struct traffic_end *t)
{
	if (t->killed || t->next < traffic() / 3)
		return;
	kill(t->d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(t->d.pid), -SIGKILL);
	t->killed = true;
}

static bool traffic_continues(bool kills)
{
	return ends[0].next < traffic() ||
	       (kills ? !ends[1].killed : ends[1].next < traffic());
}

/*
 * Two processes send to one CQ, which is resized (bit 0 of _i), while one of
 * them is killed (bit 1).  All data is right, and the order of each sender.
 */
START_TEST(in_traffic)
{
	static const int cqe[] = { 150, 4096, 300, 1000, 129 };
	double end = now_ms() + 6 * WAIT_MS;
	const bool resizes = _i & 1, kills = _i & 2;
	struct opts o = large_opts();
	uint32_t polls = 0;
	struct ibv_wc wc[8];
	struct node n0;
	int i, n;

	o.cqe = SENDERS * WINDOW;
	memset(ends, 0, sizeof(ends));
	for (i = 0; i < SENDERS; i++)
		duo_open_unconnected(&ends[i].d, TWO_PROCESSES, MEM_HEAP,
				     MEM_HEAP, &o);
	node_open(&n0, NULL, MEM_HEAP, &o);
	for (i = 0; i < SENDERS; i++)
		traffic_connect(&ends[i], &n0, kills && i == 1);
	while (traffic_continues(kills)) {
		ck_assert(now_ms() < end);
		n = ibv_poll_cq(n0.rcq, 1 + polls % 8, wc);
		ck_assert_int_ge(n, 0);
		for (i = 0; i < n; i++)
			traffic_receive(&n0, &wc[i]);
		if (kills)
			traffic_kill(&ends[1]);
		if (++polls % 64 || !resizes)
			continue;
		n = ibv_resize_cq(n0.rcq, cqe[polls / 64 % 5]);
		ck_assert(!n || n == EINVAL);
	}
	/* the last messages of a sender that was killed */
	while (kills && ibv_poll_cq(n0.rcq, 1, wc) == 1)
		if (wc->status == IBV_WC_SUCCESS)
			traffic_receive(&n0, wc);
	expect_no_async(n0.ctx);
	/* the second peer inherited the first one's socket */
	for (i = SENDERS - 1; i >= 0; i--)
		traffic_close(&ends[i]);
	node_close(&n0);
}
END_TEST

/* ------------------------------------------------------------ the receiver */

static void do_unmap(struct node *b, void *arg)
{
	leave_hole((char *)b->buf + *(size_t *)arg, 4096);
}

static void do_expect_error(struct node *b, void *arg)
{
	expect(b->rcq, *(uint32_t *)arg, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(qp_state(b->qp), IBV_QPS_ERR);
}

/*
 * The receiver has unmapped the first or the second page of the receive
 * before it polls: LOC_PROT_ERR, and the QP is in error.
 */
START_TEST(unmapped_receive)
{
	struct opts o = large_opts();
	uint32_t id = 32; /* in the middle of a page */
	size_t hole = AT(32) / 4096 * 4096 + _i % 2 * 4096;
	struct pair p;

	pair_open(&p, _i < 2 ? RC : SRQ, &o);
	warm_up(&p);
	p.parts = 1 + _i % 2;
	if (is_eager() && !under_adoption()) {
		ck_eager(batch_send(&p, id, 1, 4000));
		on_b(&p.d, do_unmap, &hole, sizeof(hole));
		on_b(&p.d, do_expect_error, &id, sizeof(id));
	}
	pair_close(&p);
}
END_TEST

static void do_arm(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_req_notify_cq(b->rcq, 0));
}

static void do_event(struct node *b, void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	ck_assert(fd_readable(b->chan->fd, WAIT_MS));
	ck_ok(ibv_get_cq_event(b->chan, &cq, &context));
	ck_assert_ptr_eq(cq, b->rcq);
	ibv_ack_cq_events(cq, 1);
}

/* A receiver that sleeps until its CQ's event. */
START_TEST(events)
{
	struct opts o = large_opts();
	uint32_t i;
	struct pair p;
	long calls;

	o.channel = true;
	pair_open(&p, RC, &o);
	for (i = 0; i < 8; i++) {
		on_b(&p.d, do_arm, NULL, 0);
		calls = batch_send(&p, i, 1, 2000);
		on_b(&p.d, do_event, NULL, 0);
		batch_poll(&p, i, 1, 2000);
	}
	ck_eager(calls);
	pair_close(&p);
}
END_TEST

/* ---------------------------------------------------------------- buffers */

#define MANY 12

static struct many {
	struct addr addr[MANY];
} many; /* of b's QPs */
static struct ibv_qp *qps[MANY]; /* of this process's end */
static struct ibv_cq *cqs[MANY];

/* QP 0 is that of the node.  The others have a receive CQ each. */
static void do_open_many(struct node *b, void *arg)
{
	struct many *m = arg;
	struct node n = *b;
	int i;

	for (i = 0; i < MANY; i++) {
		if (i) {
			n.rcq = ibv_create_cq(b->ctx, 256, NULL, NULL, 0);
			ck_nonnull(n.rcq);
			n.qp = make_qp(&n, IBV_QPT_RC, NULL);
		}
		qps[i] = n.qp;
		cqs[i] = n.rcq;
		m->addr[i] = node_addr(&n);
	}
}

static void do_connect_many(struct node *b, void *arg)
{
	const struct many *m = arg;
	int i;

	for (i = 1; i < MANY; i++)
		type_connect(qps[i], &b->o, &m->addr[i]);
}

static void open_many(struct pair *p, const struct opts *o)
{
	struct many here;
	struct node n;
	int i;

	pair_open(p, RC, o);
	on_b(&p->d, do_open_many, &many, sizeof(many));
	n = p->d.a;
	for (i = 0; i < MANY; i++) {
		if (i)
			n.qp = make_qp(&n, IBV_QPT_RC, NULL);
		qps[i] = n.qp;
		here.addr[i] = node_addr(&n);
	}
	on_b(&p->d, do_connect_many, &here, sizeof(here));
	do_connect_many(&p->d.a, &many);
}

static void do_use(struct node *b, void *arg)
{
	const int i = *(int *)arg;

	b->qp = qps[i];
	b->rcq = cqs[i];
}

/* The next messages are for QP @i. */
static void use(struct pair *p, int i)
{
	p->d.a.qp = qps[i];
	on_b(&p->d, do_use, &i, sizeof(i));
}

static void do_close_many(struct node *b, void *arg)
{
	int i;

	(void)arg;
	for (i = 1; i < MANY; i++) {
		ck_ok(ibv_destroy_qp(qps[i]));
		if (cqs[i] && cqs[i] != b->rcq)
			ck_ok(ibv_destroy_cq(cqs[i]));
	}
}

static void close_many(struct pair *p)
{
	use(p, 0);
	on_b(&p->d, do_close_many, NULL, 0);
	do_close_many(&p->d.a, NULL);
}

static void do_shared_bytes(struct node *b, void *arg)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->ctx->cmd_fd);
	ck_ok(stat(path, &st));
	*(long *)arg = (long)st.st_blocks * 512;
}

/* The bytes that are allocated for the file of b's context. */
static long shared_bytes(struct pair *p)
{
	long bytes;

	on_b(&p->d, do_shared_bytes, &bytes, sizeof(bytes));
	return bytes;
}

/*
 * A buffer that is not used is freed, and allocated again for the next
 * message.  One that has messages that are not polled is not freed.
 */
START_TEST(returned_when_idle)
{
	double end = now_ms() + WAIT_MS;
	struct opts o = large_opts();
	struct pair p;
	long before;

	open_many(&p, &o);
	before = shared_bytes(&p);
	use(&p, 2);
	warm_up(&p);
	ck_eager(batch_send(&p, 0, 5, 3000));
	use(&p, 1);
	warm_up(&p);
	if (is_eager() && p.counts) {
		ck_assert_int_ge(shared_bytes(&p), before + 2 * BUFFER);
		while (shared_bytes(&p) >= before + 2 * BUFFER) {
			ck_assert(now_ms() < end);
			sleep_ms(20);
		}
		ck_assert_int_ge(shared_bytes(&p), before + BUFFER);
	}
	warm_up(&p);
	ck_eager(batch_send(&p, 0, 5, 3000));
	use(&p, 2);
	batch_poll(&p, 0, 5, 3000);
	use(&p, 1);
	batch_poll(&p, 0, 5, 3000);
	close_many(&p);
	pair_close(&p);
}
END_TEST

/* A context has at most BUFFERS buffers; its other CQs do without. */
START_TEST(more_cqs_than_buffers)
{
	struct opts o = large_opts();
	int i, eager = 0;
	struct pair p;
	long before;

	open_many(&p, &o);
	use(&p, 0);
	p.counts = is_eager() && exchange(&p, 3 * SLOT_BYTES);
	before = shared_bytes(&p);
	for (i = 0; i < MANY; i++) {
		use(&p, i);
		exchange(&p, 1000);
		exchange(&p, 1001);
		eager += !batch_send(&p, 100 + 10 * i, 10, 2000);
	}
	if (p.counts) {
		ck_assert_int_eq(eager, BUFFERS);
		ck_assert_int_eq(shared_bytes(&p), before + BUFFERS * BUFFER);
	}
	for (i = 0; i < MANY; i++) {
		use(&p, i);
		batch_poll(&p, 100 + 10 * i, 10, 2000);
	}
	close_many(&p);
	if (p.counts)
		ck_assert_int_lt(shared_bytes(&p), before + 2 * BUFFER);
	pair_close(&p);
}
END_TEST

static void do_fill_up(struct node *b, void *arg)
{
	(void)b;
	atomic_store(&full, *(bool *)arg);
}

/* No memory for the buffer: messages go another way. */
START_TEST(no_memory)
{
	struct opts o = large_opts();
	bool yes = true, no = false;
	struct pair p;
	long calls = 0;
	int i;

	pair_open(&p, _i ? SRQ : RC, &o);
	p.counts = is_eager() && exchange(&p, 3 * SLOT_BYTES);
	on_b(&p.d, do_fill_up, &yes, sizeof(yes));
	for (i = 0; i < 5; i++)
		calls = exchange(&p, 1000 + i);
	if (p.counts)
		ck_assert_int_gt(calls, 0);
	on_b(&p.d, do_fill_up, &no, sizeof(no));
	exchange(&p, 1000);
	pair_close(&p);
}
END_TEST

/* ------------------------------------------------------------------- fork */

#define LOOP_BYTES 200

/* Child: send on the parent's QP from its own stack. */
static int send_inline(void *arg)
{
	struct node *n = arg;
	uint8_t data[LOOP_BYTES];
	struct ibv_sge sge = { (uintptr_t)data, sizeof(data), 0 };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED |
						IBV_SEND_INLINE };

	node_get(n, 0, data, sizeof(data));
	return post_wr(n->qp, &wr);
}

/*
 * A child sends to a QP of its parent, with one CQ for both completions.  They
 * are in the order of the specification (responder_order_after()), and the
 * data is that of the message.
 */
START_TEST(child_and_one_cq)
{
	struct opts o = default_opts();
	struct ibv_cq *scq;
	struct ibv_qp *from, *to;
	struct addr at_from, at_to;
	struct node n;
	uint32_t i;

	o.cap.max_inline_data = 256;
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(ibv_destroy_qp(n.qp));
	scq = n.scq;
	n.scq = n.rcq;
	for (i = 0; i < 6; i++) {
		to = make_qp(&n, IBV_QPT_RC, NULL);
		from = make_qp(&n, IBV_QPT_RC, NULL);
		n.qp = to;
		at_to = node_addr(&n);
		n.qp = from;
		at_from = node_addr(&n);
		type_connect(to, &o, &at_from);
		type_connect(from, &o, &at_to);
		ck_ok(qp_recv(to, &n, 2, 1024, LOOP_BYTES));
		node_fill(&n, 0, LOOP_BYTES, i);
		ck_assert_int_eq(reap_child(spawn(send_inline, &n)), 0);
		expect_ok(n.rcq, 1, IBV_WC_SEND);
		expect_ok(n.rcq, 2, IBV_WC_RECV);
		ck_assert(node_has(&n, 1024, LOOP_BYTES, i));
		ck_ok(ibv_destroy_qp(from));
		ck_ok(ibv_destroy_qp(to));
	}
	n.qp = NULL;
	n.scq = scq;
	node_close(&n);
}
END_TEST

struct heir {
	struct ibv_cq *cq;
	int go[2], done[2]; /* pipes */
};

/* Child: poll the parent's CQ, 8 messages at a time, on request. */
static int poll_for_parent(void *arg)
{
	const struct heir *h = arg;
	uint32_t i, n = 0;
	char byte;

	close(h->go[1]);
	while (read(h->go[0], &byte, 1) == 1) {
		for (i = 0; i < 8; i++)
			expect_ok(h->cq, n++, IBV_WC_RECV);
		if (write(h->done[1], "", 1) != 1)
			return 1;
	}
	return 0;
}

/* The bytes that are allocated for the file of the context. */
static long file_bytes(struct node *n)
{
	long bytes;

	do_shared_bytes(n, &bytes);
	return bytes;
}

/*
 * A child polls the CQ of its parent.  The parent, which knows only what it
 * polled itself, does not free the buffer.
 */
START_TEST(child_polls)
{
	struct batch m = { .first = SINGLE, .n = 1, .len = 100, .parts = 1 };
	int i;
	struct opts o = large_opts();
	struct heir heir;
	struct duo d;
	pid_t child;
	double end;
	long bytes;
	char byte;

	o.cqe = 16;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 4; i++) {
		send_back(&d, &m);
		do_poll(&d.a, &m);
	}
	bytes = file_bytes(&d.a);
	m = (struct batch){ .n = 32, .len = 1000, .parts = 1 };
	do_post(&d.a, &m);
	heir.cq = d.a.rcq;
	ck_ok(pipe(heir.go) || pipe(heir.done));
	child = spawn(poll_for_parent, &heir);
	close(heir.go[0]);
	close(heir.done[1]);
	for (m.n = 8; m.first < 32; m.first += 8) {
		on_b(&d, do_send, &m, sizeof(m));
		ck_eager(m.calls);
		/* the last ones wait for two rounds of the service thread */
		end = now_ms() + (m.first == 24 ? 10000 : 0);
		for (; now_ms() < end; sleep_ms(20))
			ck_assert_int_eq(file_bytes(&d.a), bytes);
		ck_assert_int_eq(write(heir.go[1], "", 1), 1);
		ck_assert_int_eq(read(heir.done[0], &byte, 1), 1);
		for (i = (int)m.first; i < (int)m.first + 8; i++)
			ck_assert(node_has(&d.a, AT(i), LEN(&m, i), i));
	}
	close(heir.go[1]);
	close(heir.done[0]);
	ck_assert_int_eq(reap_child(child), 0);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("eager");

	add_loop(s, sizes, 2 * KINDS);
	add_loop(s, unpolled, 8);
	add_loop(s, polled_in_parts, 2);
	add_loop(s, resize, 2);
	add_loop(s, killed_sender, 2);
	add_loop(s, in_traffic, 4);
	add_loop(s, unmapped_receive, 4);
	add_loop(s, events, 1);
	add(s, returned_when_idle);
	add(s, more_cqs_than_buffers);
	add_loop(s, no_memory, 2);
	add(s, child_and_one_cq);
	add(s, child_polls);
	return run(s);
}
