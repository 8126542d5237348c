// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Duos: two nodes in one context, in one process, or in two processes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#include "harness.h"

#define MAX_ARG 4096

/*
 * A call to be run in b's process, and its result.  That process was forked,
 * so the function pointer is valid there.
 */
struct call {
	node_fn *fn;
	size_t len;
	char arg[MAX_ARG];
};

static void serve(int sock)
{
	struct node b = { 0 };
	struct call c;

	while (recv(sock, &c, sizeof(c), 0) > 0) {
		c.fn(&b, c.arg);
		ck_assert_int_gt(send(sock, &c, sizeof(c), MSG_NOSIGNAL), 0);
	}
	/* objects that are still open are released at exit */
	_exit(0);
}

static void start_peer(struct duo *d)
{
	int sock[2];

	ck_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock));
	d->pid = fork_peer();
	ck_assert_int_ge(d->pid, 0);
	if (!d->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sock[0]);
		serve(sock[1]);
	}
	close(sock[1]);
	d->sock = sock[0];
}

/*
 * Reap the peer and fail.  A failed assertion of the peer was reported by the
 * peer itself.
 */
static void peer_died(struct duo *d)
{
	int status = reap_child(d->pid);

	if (status < 0)
		ck_abort_msg("the peer process died of signal %d (%s)", -status,
			     strsignal(-status));
	_exit(EXIT_FAILURE);
}

void on_b(struct duo *d, node_fn *fn, void *arg, size_t len)
{
	const struct timeval tv = { .tv_sec = 3 * WAIT_MS / 1000 };
	struct call c = { .fn = fn, .len = len };
	ssize_t n;

	if (d->where != TWO_PROCESSES) {
		fn(&d->b, arg);
		return;
	}
	ck_assert(len <= MAX_ARG);
	if (len)
		memcpy(c.arg, arg, len);
	if (send(d->sock, &c, sizeof(c), MSG_NOSIGNAL) != sizeof(c))
		peer_died(d);
	/* poll(2) fails if no descriptor is permitted (setrlimit) */
	setsockopt(d->sock, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	do
		n = recv(d->sock, &c, sizeof(c), 0);
	while (n < 0 && errno == EINTR); /* it was stopped, or frozen */
	ck_assert_msg(n >= 0 || errno != EAGAIN, "the peer process hangs");
	if (n != sizeof(c))
		peer_died(d);
	if (len)
		memcpy(arg, c.arg, len);
}

struct open_arg {
	struct opts o;
	enum mem mem;
	struct addr addr;
};

static void do_open(struct node *b, void *arg)
{
	struct open_arg *oa = arg;
	const char *other = device;

	device = device_b;
	node_open(b, NULL, oa->mem, &oa->o);
	device = other;
	oa->addr = node_addr(b);
}

void duo_open_unconnected(struct duo *d, enum where where, enum mem a,
			  enum mem b, const struct opts *o)
{
	struct open_arg oa = { .o = *o, .mem = b };

	memset(d, 0, sizeof(*d));
	d->where = where;
	d->sock = -1;
	if (where == TWO_PROCESSES)
		start_peer(d);
	node_open(&d->a, NULL, a, o);
	d->at_a = node_addr(&d->a);
	if (where == SAME_CONTEXT) {
		node_open(&d->b, d->a.ctx, b, o);
		d->at_b = node_addr(&d->b);
	} else {
		on_b(d, do_open, &oa, sizeof(oa));
		d->at_b = oa.addr;
	}
}

static void do_connect(struct node *b, void *arg)
{
	node_connect(b, arg);
}

void duo_connect(struct duo *d)
{
	on_b(d, do_connect, &d->at_a, sizeof(d->at_a));
	node_connect(&d->a, &d->at_b);
}

void duo_open(struct duo *d, enum where where, enum mem a, enum mem b,
	      const struct opts *o)
{
	duo_open_unconnected(d, where, a, b, o);
	duo_connect(d);
}

static void do_close(struct node *b, void *arg)
{
	(void)arg;
	node_close(b);
}

void duo_close(struct duo *d)
{
	on_b(d, do_close, NULL, 0);
	node_close(&d->a);
	if (d->where == TWO_PROCESSES) {
		close(d->sock);
		ck_assert_int_eq(reap_child(d->pid), 0);
	}
}

static void do_renew(struct node *b, void *arg)
{
	if (b->qp)
		ck_ok(ibv_destroy_qp(b->qp));
	node_make_qp(b);
	*(struct addr *)arg = node_addr(b);
}

void duo_renew(struct duo *d)
{
	do_renew(&d->a, &d->at_a);
	on_b(d, do_renew, &d->at_b, sizeof(d->at_b));
	duo_connect(d);
}

/* ------------------------------------------------------------ descriptors */

void send_fd(int s, int fd)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	char ctl[CMSG_SPACE(sizeof(int))];
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	memset(ctl, 0, sizeof(ctl));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(s, &m, 0), 1);
}

int recv_fd(int s)
{
	char byte, ctl[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	int fd = -1;

	ck_assert_int_eq(recvmsg(s, &m, MSG_CMSG_CLOEXEC), 1);
	ck_nonnull(CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

/* -------------------------------------------------------- operations of b */

struct range {
	uint64_t wr_id, value;
	size_t off, len;
	unsigned int seed;
	bool yes;
};

static void do_recv(struct node *b, void *arg)
{
	struct range *r = arg;

	ck_ok(post_recv(b, r->wr_id, r->off, (uint32_t)r->len));
}

void b_recv(struct duo *d, uint64_t wr_id, size_t off, uint32_t len)
{
	struct range r = { .wr_id = wr_id, .off = off, .len = len };

	on_b(d, do_recv, &r, sizeof(r));
}

static void do_wait_recv(struct node *b, void *arg)
{
	*(struct ibv_wc *)arg = wait_wc(b->rcq);
}

struct ibv_wc b_wait_recv(struct duo *d)
{
	struct ibv_wc wc;

	memset(&wc, 0, sizeof(wc));
	on_b(d, do_wait_recv, &wc, sizeof(wc));
	return wc;
}

struct maybe {
	struct ibv_wc wc;
	bool got;
};

static void do_try_recv(struct node *b, void *arg)
{
	double end = now_ms() + QUIET_MS;
	struct maybe *m = arg;

	while (!(m->got = ibv_poll_cq(b->rcq, 1, &m->wc)) && now_ms() < end)
		sleep_ms(1);
}

bool b_try_recv(struct duo *d, struct ibv_wc *wc)
{
	struct maybe m;

	on_b(d, do_try_recv, &m, sizeof(m));
	if (m.got)
		*wc = m.wc;
	return m.got;
}

static void do_fill(struct node *b, void *arg)
{
	struct range *r = arg;

	node_fill(b, r->off, r->len, r->seed);
}

void b_fill(struct duo *d, size_t off, size_t len, unsigned int seed)
{
	struct range r = { .off = off, .len = len, .seed = seed };

	on_b(d, do_fill, &r, sizeof(r));
}

static void do_has(struct node *b, void *arg)
{
	struct range *r = arg;

	r->yes = node_has(b, r->off, r->len, r->seed);
}

bool b_has(struct duo *d, size_t off, size_t len, unsigned int seed)
{
	struct range r = { .off = off, .len = len, .seed = seed };

	on_b(d, do_has, &r, sizeof(r));
	return r.yes;
}

static void do_all(struct node *b, void *arg)
{
	struct range *r = arg;

	r->yes = node_all(b, r->off, r->len, (uint8_t)r->seed);
}

bool b_all(struct duo *d, size_t off, size_t len, uint8_t byte)
{
	struct range r = { .off = off, .len = len, .seed = byte };

	on_b(d, do_all, &r, sizeof(r));
	return r.yes;
}

static void do_load64(struct node *b, void *arg)
{
	struct range *r = arg;

	node_get(b, r->off, &r->value, 8);
}

uint64_t b_load64(struct duo *d, size_t off)
{
	struct range r = { .off = off };

	on_b(d, do_load64, &r, sizeof(r));
	return r.value;
}

static void do_store64(struct node *b, void *arg)
{
	struct range *r = arg;

	node_put(b, r->off, &r->value, 8);
}

void b_store64(struct duo *d, size_t off, uint64_t v)
{
	struct range r = { .off = off, .value = v };

	on_b(d, do_store64, &r, sizeof(r));
}

static void do_state(struct node *b, void *arg)
{
	*(enum ibv_qp_state *)arg = qp_state(b->qp);
}

enum ibv_qp_state b_state(struct duo *d)
{
	enum ibv_qp_state s = IBV_QPS_UNKNOWN;

	on_b(d, do_state, &s, sizeof(s));
	return s;
}

static void do_async(struct node *b, void *arg)
{
	expect_async(b->ctx, *(enum ibv_event_type *)arg, b->qp);
}

void b_expect_async(struct duo *d, enum ibv_event_type type)
{
	on_b(d, do_async, &type, sizeof(type));
}

static void do_no_async(struct node *b, void *arg)
{
	(void)arg;
	expect_no_async(b->ctx);
}

void b_expect_no_async(struct duo *d)
{
	on_b(d, do_no_async, NULL, 0);
}

static void do_modify(struct node *b, void *arg)
{
	ck_ok(qp_to(b->qp, *(enum ibv_qp_state *)arg));
}

void b_modify(struct duo *d, enum ibv_qp_state state)
{
	on_b(d, do_modify, &state, sizeof(state));
}

static void do_destroy_qp(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
}

void b_destroy_qp(struct duo *d)
{
	on_b(d, do_destroy_qp, NULL, 0);
}

/* -------------------------------------------------------- operations of a */

struct ibv_send_wr rdma_wr(const struct duo *d, enum ibv_wr_opcode op,
			   uint64_t wr_id, struct ibv_sge *sge, int num_sge,
			   size_t b_off)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = num_sge,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0xabcd0000 | (uint16_t)wr_id),
	};

	if (op != IBV_WR_SEND && op != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.remote_addr = d->at_b.base + b_off;
		wr.wr.rdma.rkey = d->at_b.rkey;
	}
	return wr;
}

int post_unsignaled(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id,
		    size_t a_off, uint32_t len, size_t b_off,
		    unsigned int flags)
{
	struct ibv_sge sge = node_sge(&d->a, a_off, len);
	struct ibv_send_wr wr = rdma_wr(d, op, wr_id, &sge, 1, b_off);

	wr.send_flags = flags;
	return post_list(&d->a, &wr);
}

int post(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id, size_t a_off,
	 uint32_t len, size_t b_off, unsigned int flags)
{
	return post_unsignaled(d, op, wr_id, a_off, len, b_off,
			       flags | IBV_SEND_SIGNALED);
}

int post_atomic(struct duo *d, enum ibv_wr_opcode op, uint64_t wr_id,
		size_t a_off, size_t b_off, uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge sge = node_sge(&d->a, a_off, 8);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = d->at_b.base + b_off,
			       .compare_add = compare_add,
			       .swap = swap,
			       .rkey = d->at_b.rkey },
	};

	return post_list(&d->a, &wr);
}
