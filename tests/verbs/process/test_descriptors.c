// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Descriptors that events need: their number does not grow with the number of
 * QPs, and no event is lost if no descriptor can be opened.
 */
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../harness.h"

#define MANY 50

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	ck_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* false: no descriptor can be opened from now on; true: as before. */
static void allow_fds(bool yes)
{
	static struct rlimit was;
	struct rlimit none;

	if (!was.rlim_max)
		ck_ok(getrlimit(RLIMIT_NOFILE, &was));
	none = was;
	none.rlim_cur = 0;
	ck_ok(setrlimit(RLIMIT_NOFILE, yes ? &was : &none));
}

/* Additional QPs on the CQs of a node: of a in [0], of b in [1]. */
static struct ibv_qp *more[2][MANY];

struct many {
	int side, n;
	struct addr at[MANY];
};

static void do_make(struct node *n, void *arg)
{
	struct many *m = arg;
	struct ibv_qp *first = n->qp;
	int i;

	for (i = 0; i < m->n; i++) {
		node_make_qp(n);
		more[m->side][i] = n->qp;
		m->at[i] = node_addr(n);
	}
	n->qp = first;
}

static void do_connect(struct node *n, void *arg)
{
	struct many *m = arg;
	struct ibv_qp *first = n->qp;
	int i;

	for (i = 0; i < m->n; i++) {
		n->qp = more[m->side][i];
		node_connect(n, &m->at[i]);
	}
	n->qp = first;
}

static void do_end(struct node *n, void *arg)
{
	struct many *m = arg;
	int i;

	(void)n;
	for (i = 0; i < m->n; i++)
		ck_ok(ibv_destroy_qp(more[m->side][i]));
}

/*
 * Create @n pairs of QPs and connect those of b.  The caller connects those
 * of a, with the result.
 */
static struct many open_many(struct duo *d, int n)
{
	struct many a = { .side = 0, .n = n }, b = { .side = 1, .n = n };

	do_make(&d->a, &a);
	on_b(d, do_make, &b, sizeof(b));
	a.side = 1; /* b's QPs, to the addresses of a's */
	on_b(d, do_connect, &a, sizeof(a));
	b.side = 0;
	return b;
}

static void close_many(struct duo *d, int n)
{
	struct many a = { .side = 0, .n = n }, b = { .side = 1, .n = n };

	do_end(&d->a, &a);
	on_b(d, do_end, &b, sizeof(b));
}

/* Post a receive to b's QP number *@arg and arm the CQ. */
static void do_arm(struct node *b, void *arg)
{
	const int *i = arg;
	struct ibv_sge sge = node_sge(b, 0, 64);
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	ck_ok(ibv_post_recv(more[1][*i], &wr, &bad));
	ck_ok(ibv_req_notify_cq(b->rcq, 0));
}

static void do_receive(struct node *b, void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	ck_assert_msg(fd_readable(b->chan->fd, WAIT_MS), "the event is lost");
	ck_ok(ibv_get_cq_event(b->chan, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	expect_ok(b->rcq, 7, IBV_WC_RECV);
}

static void do_receive_error(struct node *b, void *arg)
{
	(void)arg;
	expect_async(b->ctx, IBV_EVENT_QP_ACCESS_ERR, more[1][0]);
}

static void send_on(struct duo *d, int i, enum ibv_wr_opcode op, uint32_t rkey)
{
	struct ibv_sge sge = node_sge(&d->a, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { d->at_b.base, rkey } };

	ck_ok(post_wr(more[0][i], &wr));
}

static void send_and_receive(struct duo *d, int i)
{
	on_b(d, do_arm, &i, sizeof(i));
	send_on(d, i, IBV_WR_SEND, 0);
	expect_ok(d->a.scq, 1, IBV_WC_SEND);
	on_b(d, do_receive, NULL, 0);
}

static void do_open_channel(struct node *b, void *arg)
{
	(void)arg;
	b->chan = ibv_create_comp_channel(b->ctx);
	ck_nonnull(b->chan);
	/* node_open()'s QP keeps its CQ */
	b->user = b->rcq;
	b->rcq = ibv_create_cq(b->ctx, 64, b, b->chan, 0);
	ck_nonnull(b->rcq);
}

static void do_close_channel(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_destroy_cq(b->rcq));
	b->rcq = b->user;
}

/*
 * The number of descriptors for events does not grow with the number of QPs
 * whose CQs have the same channel.
 */
START_TEST(descriptors_per_channel)
{
	struct opts o = default_opts();
	struct many b;
	struct duo d;
	int i, before;

	o.channel = true;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	before = count_fds();
	b = open_many(&d, MANY);
	do_connect(&d.a, &b);
	for (i = 0; i < MANY; i++)
		send_and_receive(&d, i);
	ck_assert_int_le(count_fds(), before + 4);
	close_many(&d, MANY);
	ck_assert_int_le(count_fds(), before + 4);
	duo_close(&d);
}
END_TEST

/*
 * Events are raised even if the sender cannot open a descriptor, not even for
 * the receiver's channel.
 */
START_TEST(no_descriptor_for_event)
{
	struct opts o = default_opts();
	struct many b;
	struct duo d;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	/* maps b's memory now */
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	on_b(&d, do_open_channel, NULL, 0);
	b = open_many(&d, 2);
	allow_fds(false);
	do_connect(&d.a, &b);
	send_and_receive(&d, 0);
	send_and_receive(&d, 1);
	/* an asynchronous event */
	send_on(&d, 0, IBV_WR_RDMA_WRITE, d.at_b.rkey ^ 1);
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	on_b(&d, do_receive_error, NULL, 0);
	allow_fds(true);
	send_and_receive(&d, 1);
	close_many(&d, 2);
	on_b(&d, do_close_channel, NULL, 0);
	duo_close(&d);
}
END_TEST

/*
 * ibv_create_cq() with a channel fails with EMFILE if no descriptor can be
 * opened.
 */
START_TEST(create_cq_emfile)
{
	struct ibv_context *ctx = open_device();
	struct ibv_comp_channel *chan = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq;

	ck_nonnull(chan);
	allow_fds(false);
	cq = ibv_create_cq(ctx, 1, NULL, chan, 0);
	ck_assert_ptr_null(cq);
	ck_assert_int_eq(errno, EMFILE);
	allow_fds(true);
	cq = ibv_create_cq(ctx, 1, NULL, chan, 0);
	ck_nonnull(cq);
	ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_destroy_comp_channel(chan));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

int main(void)
{
	Suite *s = suite("descriptors");

	add_loop(s, descriptors_per_channel, WHERE_COUNT);
	add(s, no_descriptor_for_event);
	add(s, create_cq_emfile);
	return run(s);
}
