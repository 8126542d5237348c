// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that is removed while it is registered: unreliable QPs, SRQs, XRC,
 * SEND_WITH_INV, data that the poller places, and a full file system.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "../qp/xrc.h"
#include "vanish.h"

#define S IBV_WR_SEND
#define W IBV_WR_RDMA_WRITE
#define WI IBV_WR_RDMA_WRITE_WITH_IMM
#define R IBV_WR_RDMA_READ

/* Bytes of a message that is copied at once, and of one in the completion */
#define LONG MIDDLE
#define DATAGRAM 900u
#define SHORT 8u

/* Whether the poller places a message of @len bytes. */
static bool is_placed_late(const struct duo *d, uint32_t len)
{
	return d->where == TWO_PROCESSES && len <= INLINE_IN_CQE &&
	       !under_adversary();
}

static void expect_peers(struct duo *d, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = b_wait_recv(d);

	ck_assert_uint_eq(wc.wr_id, id);
	ck_assert_int_eq(wc.status, status);
}

static void do_expect_nothing(struct node *b, void *arg)
{
	(void)arg;
	expect_none(b->rcq, 1);
}

/* ------------------------------------------------------- UC and UD */

static void uc_mine(struct duo *d, enum ibv_wr_opcode op, uint32_t len)
{
	vanish(d, MINE, WAY_UNMAP, MESSAGE, PAGE);
	ck_ok(post(d, op, 2, MESSAGE, len, MESSAGE, 0));
	expect(d->a.scq, 2, IBV_WC_LOC_PROT_ERR);
	on_b(d, do_expect_nothing, NULL, 0);
	ck_assert_int_eq(b_state(d), IBV_QPS_RTS);
	restore(d, MINE);
	/* the receive takes the next message */
	ck_assert_int_eq(qp_state(d->a.qp), IBV_QPS_SQE);
	ck_ok(qp_to(d->a.qp, IBV_QPS_RTS));
	ck_ok(post(d, op, 3, MESSAGE, len, MESSAGE, 0));
	expect(d->a.scq, 3, IBV_WC_SUCCESS);
	if (op != W)
		expect_peers(d, 1, IBV_WC_SUCCESS);
}

static void uc_peers(struct duo *d, enum ibv_wr_opcode op, uint32_t len)
{
	vanish(d, PEERS, WAY_UNMAP, MESSAGE, PAGE);
	ck_ok(post(d, op, 2, MESSAGE, len, MESSAGE, 0));
	expect(d->a.scq, 2, IBV_WC_SUCCESS);
	if (op == S) {
		expect_peers(d, 1, IBV_WC_LOC_PROT_ERR);
		ck_assert_int_eq(b_state(d), IBV_QPS_ERR);
		restore(d, PEERS);
		return;
	}
	/* the message is dropped */
	on_b(d, do_expect_nothing, NULL, 0);
	ck_assert_int_eq(b_state(d), IBV_QPS_RTS);
	restore(d, PEERS);
	ck_ok(post(d, op, 3, MESSAGE, len, MESSAGE, 0));
	expect(d->a.scq, 3, IBV_WC_SUCCESS);
	if (op == WI)
		expect_peers(d, 1, IBV_WC_SUCCESS);
}

/*
 * UC: an error of the requester's memory is LOC_PROT_ERR.  Otherwise the
 * requester has no error; only a receive breaks the responder's QP.
 */
START_TEST(uc)
{
	static const enum ibv_wr_opcode ops[] = { S, W, WI };
	struct opts o = default_opts();
	struct duo d;
	int i;

	if (under_adoption())
		return;
	vanish_open(&d, _i % WHERE_COUNT, KIND_PRIVATE, KIND_PRIVATE, &o);
	for (i = 0; i < 6; i++) {
		turn(&d, IBV_QPT_UC);
		b_recv(&d, 1, MESSAGE, LONG);
		(_i / WHERE_COUNT ? uc_peers : uc_mine)(&d, ops[i % 3],
							i / 3 ? LONG : SHORT);
	}
	turn(&d, IBV_QPT_UC);
	exchange_once(&d);
	vanish_close(&d);
}
END_TEST

static void send_datagram(struct duo *d, struct ibv_ah *ah, uint32_t len)
{
	ck_ok(post_ud(&d->a, 2, MESSAGE, len, ah, d->at_b.qpn, QKEY));
	expect(d->a.scq, 2, IBV_WC_SUCCESS);
}

/*
 * UD: the sender has no error.  If its memory is gone the datagram is lost,
 * and the receive takes the next one.  If that of the receive is gone, the
 * receive completes with LOC_PROT_ERR.
 */
START_TEST(ud)
{
	static const uint32_t lengths[] = { SHORT, DATAGRAM };
	struct opts o = default_opts();
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct duo d;
	int i;

	if (under_adoption())
		return;
	vanish_open(&d, _i, KIND_PRIVATE, KIND_PRIVATE, &o);
	ah = make_ah(&d.a, &d.at_b.gid, 0);
	for (i = 0; i < 4; i++) {
		turn(&d, IBV_QPT_UD);
		b_recv(&d, 1, MESSAGE, GRH + DATAGRAM);
		vanish(&d, i / 2 ? PEERS : MINE, WAY_UNMAP, MESSAGE, PAGE);
		send_datagram(&d, ah, lengths[i % 2]);
		if (i / 2) {
			expect_peers(&d, 1, IBV_WC_LOC_PROT_ERR);
			ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
			restore(&d, PEERS);
			continue;
		}
		on_b(&d, do_expect_nothing, NULL, 0);
		ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
		restore(&d, MINE);
		/* those are lost that come before the receive is posted again
		 */
		do
			send_datagram(&d, ah, lengths[i % 2]);
		while (!b_try_recv(&d, &wc));
		ck_assert_uint_eq(wc.wr_id, 1);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	ck_ok(ibv_destroy_ah(ah));
	duo_renew(&d);
	exchange_once(&d);
	vanish_close(&d);
}
END_TEST

/* ------------------------------------------------------- SRQ and XRC */

/* b's shared receive queue; xrcd is NULL if it is not for XRC. */
static struct {
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd;
} shared;

struct share {
	bool is_xrc;
	uint32_t srqn;
	struct addr addr;
};

static void do_share(struct node *b, void *arg)
{
	struct share *s = arg;

	if (b->qp)
		ck_ok(ibv_destroy_qp(b->qp));
	if (!shared.srq && s->is_xrc) {
		shared.xrcd = open_xrcd(b->ctx, -1, O_CREAT);
		ck_nonnull(shared.xrcd);
		shared.srq = make_xsrq(b, shared.xrcd, 8, 1);
		s->srqn = srqn(shared.srq);
	} else if (!shared.srq) {
		shared.srq = make_srq(b, 8, 1);
	}
	b->qp = s->is_xrc ? make_target(b, shared.xrcd) :
			    make_qp(b, IBV_QPT_RC, shared.srq);
	s->addr = node_addr(b);
}

static void do_connect(struct node *b, void *arg)
{
	type_connect(b->qp, &b->o, arg);
}

/* Replace both QPs. */
static void connect_shared(struct duo *d, struct share *s)
{
	on_b(d, do_share, s, sizeof(*s));
	ck_ok(ibv_destroy_qp(d->a.qp));
	d->a.qp =
		make_qp(&d->a, s->is_xrc ? IBV_QPT_XRC_SEND : IBV_QPT_RC, NULL);
	d->at_a = node_addr(&d->a);
	d->at_b = s->addr;
	on_b(d, do_connect, &d->at_a, sizeof(d->at_a));
	type_connect(d->a.qp, &d->a.o, &d->at_b);
}

static void do_unshare(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_destroy_qp(b->qp));
	b->qp = NULL;
	ck_ok(ibv_destroy_srq(shared.srq));
	if (shared.xrcd)
		ck_ok(ibv_close_xrcd(shared.xrcd));
}

static void do_post_shared(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(post_srq(shared.srq, b, 1, MESSAGE, LONG));
	ck_ok(post_srq(shared.srq, b, 2, 0, LONG));
}

static void send_shared(struct duo *d, const struct share *s, uint32_t len,
			enum ibv_wc_status status)
{
	struct ibv_sge sge = node_sge(&d->a, MESSAGE, len);
	struct ibv_send_wr wr = rdma_wr(d, S, 5, &sge, 1, 0);

	wr.qp_type.xrc.remote_srqn = s->srqn;
	ck_ok(post_wr(d->a.qp, &wr));
	expect(d->a.scq, 5, status);
}

/* Both receives take messages, in any order. */
static void take_both(struct duo *d, const struct share *s)
{
	uint64_t sum = 0;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		send_shared(d, s, SHORT, IBV_WC_SUCCESS);
		wc = b_wait_recv(d);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		sum += wc.wr_id;
	}
	ck_assert_uint_eq(sum, 1 + 2);
}

static void shared_mine(struct duo *d, struct share *s, uint32_t len)
{
	vanish(d, MINE, WAY_UNMAP, MESSAGE, PAGE);
	send_shared(d, s, len, IBV_WC_LOC_PROT_ERR);
	on_b(d, do_expect_nothing, NULL, 0);
	ck_assert_int_eq(b_state(d), IBV_QPS_RTS);
	restore(d, MINE);
	connect_shared(d, s);
	take_both(d, s);
}

/*
 * Both receives take messages before they are polled.  The first one cannot be
 * placed, which breaks the QP; the second one is flushed.
 */
static void shared_flushed(struct duo *d, struct share *s, uint32_t len)
{
	send_shared(d, s, SHORT, IBV_WC_SUCCESS);
	send_shared(d, s, len, IBV_WC_SUCCESS);
	vanish(d, PEERS, WAY_UNMAP, MESSAGE, PAGE);
	expect_peers(d, 1, IBV_WC_LOC_PROT_ERR);
	expect_peers(d, 2, IBV_WC_WR_FLUSH_ERR);
	restore(d, PEERS);
	/* both receives can be posted again */
	connect_shared(d, s);
	on_b(d, do_post_shared, NULL, 0);
	take_both(d, s);
}

static void shared_peers(struct duo *d, struct share *s, uint32_t len)
{
	const bool late = is_placed_late(d, len);

	vanish(d, PEERS, WAY_UNMAP, MESSAGE, PAGE);
	send_shared(d, s, len, late ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	expect_peers(d, 1, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(b_state(d), IBV_QPS_ERR);
	if (!s->is_xrc)
		b_expect_async(d, IBV_EVENT_QP_LAST_WQE_REACHED);
	restore(d, PEERS);
	connect_shared(d, s);
	/* the SRQ is not affected */
	send_shared(d, s, len, IBV_WC_SUCCESS);
	expect_peers(d, 2, IBV_WC_SUCCESS);
}

/*
 * SENDs to an SRQ and to an XRC SRQ: the statuses are those of a QP's own
 * receive queue, and other receives of the SRQ can be used.
 */
START_TEST(shared_receive_queue)
{
	static const uint32_t lengths[] = { SHORT, LONG };
	struct share s = { .is_xrc = _i / WHERE_COUNT };
	struct opts o = default_opts();
	struct duo d;
	int i;

	if (under_adoption())
		return;
	vanish_open(&d, _i % WHERE_COUNT, KIND_PRIVATE, KIND_PRIVATE, &o);
	for (i = 0; i < 4; i++) {
		connect_shared(&d, &s);
		on_b(&d, do_post_shared, NULL, 0);
		(i / 2 ? shared_peers : shared_mine)(&d, &s, lengths[i % 2]);
	}
	for (i = 0; i < 2 && is_placed_late(&d, SHORT); i++) {
		connect_shared(&d, &s);
		on_b(&d, do_post_shared, NULL, 0);
		shared_flushed(&d, &s, lengths[i]);
	}
	on_b(&d, do_unshare, NULL, 0);
	vanish_close(&d);
}
END_TEST

/* ------------------------------------------------------- SEND_WITH_INV */

static struct ibv_mw *window; /* of b */

static void do_bind(struct node *b, void *arg)
{
	struct ibv_send_wr wr = { .wr_id = 7,
				  .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED };

	if (!window)
		window = ibv_alloc_mw(b->pd, IBV_MW_TYPE_2);
	ck_nonnull(window);
	wr.bind_mw.mw = window;
	wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.bind_info.mr = b->mr;
	wr.bind_mw.bind_info.addr = b->base;
	wr.bind_mw.bind_info.length = PAGE;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	ck_ok(post_wr(b->qp, &wr));
	expect_ok(b->scq, 7, IBV_WC_BIND_MW);
	*(uint32_t *)arg = window->rkey;
}

static void do_free_window(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	ck_ok(ibv_dealloc_mw(window));
}

static void send_inv(struct duo *d, uint32_t len, uint32_t rkey,
		     enum ibv_wc_status status)
{
	struct ibv_sge sge = node_sge(&d->a, MESSAGE, len);
	struct ibv_send_wr wr = rdma_wr(d, S, 5, &sge, 1, 0);

	wr.opcode = IBV_WR_SEND_WITH_INV;
	wr.invalidate_rkey = rkey;
	ck_ok(post_wr(d->a.qp, &wr));
	expect(d->a.scq, 5, status);
}

static void inv_mine(struct duo *d, uint32_t len, uint32_t rkey)
{
	struct ibv_sge sge = node_sge(&d->a, 0, 8);
	struct ibv_send_wr wr = rdma_wr(d, W, 6, &sge, 1, 0);

	vanish(d, MINE, WAY_UNMAP, MESSAGE, PAGE);
	send_inv(d, len, rkey, IBV_WC_LOC_PROT_ERR);
	on_b(d, do_expect_nothing, NULL, 0);
	ck_assert_int_eq(b_state(d), IBV_QPS_RTS);
	restore(d, MINE);
	/* the request has not reached the responder: the key is valid */
	ck_ok(qp_to(d->a.qp, IBV_QPS_RESET));
	node_connect(&d->a, &d->at_b);
	wr.wr.rdma.rkey = rkey;
	ck_ok(post_wr(d->a.qp, &wr));
	expect(d->a.scq, 6, IBV_WC_SUCCESS);
	send_inv(d, len, rkey, IBV_WC_SUCCESS);
	expect_peers(d, 1, IBV_WC_SUCCESS);
}

static void inv_peers(struct duo *d, uint32_t len, uint32_t rkey)
{
	const bool late = is_placed_late(d, len);

	vanish(d, PEERS, WAY_UNMAP, MESSAGE, PAGE);
	send_inv(d, len, rkey, late ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	expect_peers(d, 1, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(b_state(d), IBV_QPS_ERR);
	restore(d, PEERS);
}

/* SEND_WITH_INV has the statuses of a SEND. */
START_TEST(send_with_inv)
{
	struct opts o = default_opts();
	uint32_t rkey;
	struct duo d;
	int i;

	if (under_adoption())
		return;
	o.mr_access |= IBV_ACCESS_MW_BIND;
	vanish_open(&d, _i, KIND_PRIVATE, KIND_PRIVATE, &o);
	for (i = 0; i < 4; i++) {
		b_recv(&d, 1, MESSAGE, LONG);
		on_b(&d, do_bind, &rkey, sizeof(rkey));
		(i / 2 ? inv_peers : inv_mine)(&d, i % 2 ? LONG : SHORT, rkey);
		duo_renew(&d);
	}
	exchange_once(&d);
	on_b(&d, do_free_window, NULL, 0);
	vanish_close(&d);
}
END_TEST

/* ------------------------------------------------------- the poller */

/* The polling thread: as usual; without the handler; with blocked signals. */
enum poller { POLLER_PLAIN, POLLER_NO_HANDLER, POLLER_BLOCKS, POLLERS };

struct poll {
	enum poller how;
	struct ibv_wc wc;
};

static void do_poll(struct node *b, void *arg)
{
	struct poll *p = arg;
	sigset_t all, old;

	sigfillset(&all);
	if (p->how == POLLER_BLOCKS)
		ck_ok(pthread_sigmask(SIG_SETMASK, &all, &old));
	p->wc = wait_wc(b->rcq);
	if (p->how == POLLER_BLOCKS)
		ck_ok(pthread_sigmask(SIG_SETMASK, &old, NULL));
}

static void expect_poll(struct duo *d, enum poller how, uint64_t id,
			enum ibv_wc_status status)
{
	struct poll p = { .how = how };

	on_b(d, do_poll, &p, sizeof(p));
	ck_assert_uint_eq(p.wc.wr_id, id);
	ck_assert_int_eq(p.wc.status, status);
}

/*
 * Small SENDs are placed by the poller.  If the memory is gone by then, the
 * receive completes with LOC_PROT_ERR, also in a thread that blocks all
 * signals, and without a signal handler (URXE_FAULT_HANDLER=0).  The receives
 * behind it are flushed, whether or not their messages have arrived.
 */
START_TEST(placed_by_the_poller)
{
	static const enum way ways[] = { WAY_UNMAP, WAY_NONE, WAY_READ_ONLY };
	struct opts o = default_opts();
	uint64_t i;
	uint32_t len;
	struct duo d;

	if (under_adversary() || under_adoption()) /* placed at once */
		return;
	if (_i == POLLER_NO_HANDLER)
		setenv("URXE_FAULT_HANDLER", "0", 1);
	vanish_open(&d, TWO_PROCESSES, KIND_PRIVATE, KIND_PRIVATE, &o);
	for (len = 8; len <= INLINE_IN_CQE; len += 8) {
		side_fill(&d, MINE, MESSAGE, len, len);
		b_recv(&d, 1, MESSAGE, len);
		b_recv(&d, 2, MESSAGE + PAGE, len);
		b_recv(&d, 3, MESSAGE, LONG);
		b_recv(&d, 4, MESSAGE, len);
		b_recv(&d, 5, MESSAGE, len);
		for (i = 1; i <= 4; i++) {
			ck_ok(post(&d, S, i, MESSAGE, i == 3 ? LONG : len, 0,
				   0));
			expect_ok(d.a.scq, i, IBV_WC_SEND);
		}
		expect_poll(&d, _i, 1, IBV_WC_SUCCESS);
		ck_assert(side_hash(&d, MINE, MESSAGE, len) ==
			  side_hash(&d, PEERS, MESSAGE, len));
		vanish(&d, PEERS, ways[len / 8 % 3], MESSAGE + PAGE, PAGE);
		expect_poll(&d, _i, 2, IBV_WC_LOC_PROT_ERR);
		for (i = 3; i <= 5; i++)
			expect_poll(&d, _i, i, IBV_WC_WR_FLUSH_ERR);
		ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
		restore(&d, PEERS);
		duo_renew(&d);
	}
	exchange_once(&d);
	vanish_close(&d);
}
END_TEST

/* ------------------------------------------------------- full file system */

#define TINY "size=4m,mode=700"

static int rest; /* a file that takes the rest of the file system */

/* Create two files in a new tmpfs.  Return false if that is not permitted. */
static bool make_files(int fd[2])
{
	char dir[] = "/tmp/urxe-tiny-XXXXXX", path[64];
	int i;

	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	ck_nonnull(mkdtemp(dir));
	if (mount("tiny", dir, "tmpfs", 0, TINY)) {
		ck_ok(rmdir(dir));
		return false;
	}
	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		fd[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		ck_assert_int_ge(fd[i], 0);
	}
	ck_ok(umount2(dir, MNT_DETACH));
	ck_ok(rmdir(dir));
	ck_ok(ftruncate(fd[0], SPAN));
	rest = fd[1];
	return true;
}

static void fill_up(void)
{
	static const char page[PAGE];

	while (write(rest, page, PAGE) == PAGE)
		;
	ck_assert_int_eq(errno, ENOSPC);
}

struct tiny {
	int fd;
	struct addr addr;
};

static void do_remap(struct node *b, void *arg)
{
	struct tiny *t = arg;

	node_remap(b, KIND_SHARED, t->fd, true);
	t->addr = node_addr(b);
}

/* Punch a hole, and fill the file system. */
static void do_punch(struct node *b, void *arg)
{
	(void)arg;
	node_vanish(b, WAY_PUNCH, MESSAGE, PAGE);
	fill_up();
}

/*
 * A hole is filled by the next access.  If the file system is full, that is
 * an error.
 */
START_TEST(hole_in_a_full_file_system)
{
	static const enum ibv_wr_opcode ops[] = { W, R, S };
	struct opts o = default_opts();
	struct tiny t;
	struct duo d;
	int fd[2];

	if (under_adoption() || !make_files(fd))
		return;
	t.fd = fd[0];
	may_leak();
	vanish_open(&d, _i % WHERE_COUNT, KIND_SHARED, KIND_SHARED, &o);
	on_b(&d, do_remap, &t, sizeof(t));
	d.at_b = t.addr;
	exchange_once(&d); /* a maps the file */
	b_recv(&d, 1, MESSAGE, LONG);
	on_b(&d, do_punch, NULL, 0);
	ck_ok(post(&d, ops[_i / WHERE_COUNT], 1, 0, LONG, MESSAGE, 0));
	expect(d.a.scq, 1, IBV_WC_REM_OP_ERR);
	expect_peers(&d, 1,
		     ops[_i / WHERE_COUNT] == S ? IBV_WC_LOC_PROT_ERR :
						  IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	ck_ok(ftruncate(rest, 0));
	duo_renew(&d);
	exchange_once(&d);
	vanish_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("vanish_types");

	add_loop(s, uc, 2 * WHERE_COUNT);
	add_loop(s, ud, WHERE_COUNT);
	add_loop(s, shared_receive_queue, 2 * WHERE_COUNT);
	add_loop(s, send_with_inv, WHERE_COUNT);
	add_loop(s, placed_by_the_poller, POLLERS);
	add_loop(s, hole_in_a_full_file_system, 3 * WHERE_COUNT);
	return run(s);
}
