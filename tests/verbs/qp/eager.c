// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Helpers of the tests of eager buffers, see eager.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "eager.h"
#include "xrc.h"

atomic_long copies;
atomic_bool full;

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

static const enum ibv_qp_type send_type[] = { IBV_QPT_RC, IBV_QPT_UC,
					      IBV_QPT_UD, IBV_QPT_RC,
					      IBV_QPT_XRC_SEND };

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

void pair_open(struct pair *p, enum kind kind, const struct opts *o)
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

void pair_close(struct pair *p)
{
	if (p->ah)
		ck_ok(ibv_destroy_ah(p->ah));
	on_b(&p->d, do_close_kind, NULL, 0);
	duo_close(&p->d);
}

struct opts large_opts(void)
{
	struct opts o = default_opts();

	o.size = 1 << 20;
	o.cap.max_recv_wr = 256;
	return o;
}

/* --------------------------------------------------------------- messages */

/* Divide @len bytes at @off into @n SGEs. */
static void divide(struct ibv_sge *sge, const struct node *n, size_t off,
		   uint32_t len, uint32_t parts)
{
	uint32_t i, each = len / parts;

	for (i = 0; i < parts; i++)
		sge[i] = node_sge(n, off + i * each,
				  i + 1 < parts ? each : len - i * each);
}

void do_post(struct node *b, void *arg)
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
void do_poll(struct node *b, void *arg)
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
long batch_send(struct pair *p, uint32_t first, uint32_t n, uint32_t len)
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

void batch_poll(struct pair *p, uint32_t first, uint32_t n, uint32_t len)
{
	struct batch m = batch_of(p, first, n, len);

	on_b(&p->d, do_poll, &m, sizeof(m));
}

long exchange(struct pair *p, uint32_t len)
{
	long calls = batch_send(p, SINGLE, 1, len);

	batch_poll(p, SINGLE, 1, len);
	return calls;
}

/* The adversary delays messages, which then are not eager. */
bool is_eager(void)
{
	return !under_adversary();
}

/*
 * Exchange messages until one makes no system call: the first one requests
 * the buffer, and the receiver allocates it when it polls.
 */
void warm_up(struct pair *p)
{
	int i;

	/* the messages of UD are smaller than a slot */
	p->counts = is_eager() && p->kind != UD && exchange(p, 3 * SLOT_BYTES);
	for (i = 0; exchange(p, 100) && is_eager(); i++)
		ck_assert_int_lt(i, 4);
}

/* b sends the messages, each alone.  @arg is a struct batch. */
void do_send(struct node *b, void *arg)
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

/* a posts receives, and b sends to them.  Return m->calls. */
long send_back(struct duo *d, struct batch *m)
{
	do_post(&d->a, m);
	on_b(d, do_send, m, sizeof(*m));
	return m->calls;
}
