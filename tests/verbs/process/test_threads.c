// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several threads, with objects of their own and with shared ones;
 * destruction of objects during traffic; cancellation.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../harness.h"

#define THREADS 4
#define ROUNDS turns_of(5000)

static void start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	ck_ok(pthread_create(t, NULL, fn, arg));
}

static void join(pthread_t t)
{
	ck_ok(pthread_join(t, NULL));
}

static struct ibv_send_wr self_write(struct node *n, struct ibv_sge *sge,
				     uint64_t wr_id, size_t from, size_t to,
				     uint32_t len)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };

	*sge = node_sge(n, from, len);
	wr.wr.rdma.remote_addr = n->base + to;
	wr.wr.rdma.rkey = n->mr->rkey;
	return wr;
}

/*
 * Open a node in context @arg (NULL: a new one), connect its QP to itself,
 * and execute ROUNDS WRITEs.
 */
static void *own_everything(void *arg)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct addr addr;
	struct node n;
	int i;

	node_open(&n, arg, MEM_HEAP, &o);
	addr = node_addr(&n);
	node_connect(&n, &addr);
	for (i = 0; i < ROUNDS; i++) {
		wr = self_write(&n, &sge, i, 0, 4096, 64);
		ck_ok(post_wr(n.qp, &wr));
		expect_ok(n.scq, i, IBV_WC_RDMA_WRITE);
	}
	node_close(&n);
	return NULL;
}

/*
 * Threads with objects of their own work concurrently, each in a new context
 * (_i = 0) or all in one context (_i = 1).
 */
START_TEST(objects_of_each_thread)
{
	struct ibv_context *ctx = _i ? open_device() : NULL;
	pthread_t t[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		start(&t[i], own_everything, ctx);
	for (i = 0; i < THREADS; i++)
		join(t[i]);
	if (ctx)
		ck_ok(ibv_close_device(ctx));
}
END_TEST

struct shared {
	struct duo *d;
	_Atomic int posted, done;
};

static void *post_and_poll(void *arg)
{
	struct shared *s = arg;
	double end = now_ms() + 3 * WAIT_MS;
	struct ibv_wc wc;
	int ret;

	while (s->done < THREADS * ROUNDS) {
		ck_assert(now_ms() < end);
		if (s->posted < THREADS * ROUNDS) {
			ret = post(s->d, IBV_WR_RDMA_WRITE, 7, 0, 64, 0, 0);
			ck_assert(ret == 0 || ret == ENOMEM);
			if (!ret)
				s->posted++;
		}
		ret = ibv_poll_cq(s->d->a.scq, 1, &wc);
		ck_assert_int_ge(ret, 0);
		if (ret) {
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
			ck_assert_uint_eq(wc.wr_id, 7);
			s->done++;
		} else {
			sched_yield();
		}
	}
	return NULL;
}

/*
 * Threads post to one QP and poll one CQ: no completion is lost or polled
 * twice.
 */
START_TEST(one_qp_for_all)
{
	struct opts o = default_opts();
	pthread_t t[THREADS];
	struct shared s = { 0 };
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	s.d = &d;
	for (i = 0; i < THREADS; i++)
		start(&t[i], post_and_poll, &s);
	for (i = 0; i < THREADS; i++)
		join(t[i]);
	for (i = s.done; i < s.posted; i++)
		expect_ok(d.a.scq, 7, IBV_WC_RDMA_WRITE);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

#define QPS 4

struct fan {
	struct node *n[QPS];
	_Atomic uint32_t next;
	uint64_t count[QPS];
};

static void *feed_own_qp(void *arg)
{
	struct fan *f = arg;
	struct node *n = f->n[f->next++];
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint64_t i = 0;

	while (i < (uint64_t)ROUNDS) {
		wr = self_write(n, &sge, i, 0, 4096, 64);
		if (post_wr(n->qp, &wr))
			sched_yield();
		else
			i++;
	}
	return NULL;
}

/*
 * Threads post to a QP each, with one CQ and one poller: the completions of
 * each QP are in order.
 */
START_TEST(qps_of_many_threads_one_cq)
{
	struct opts o = default_opts();
	struct node n[QPS];
	struct fan f = { 0 };
	pthread_t t[QPS];
	struct ibv_cq *cq;
	struct addr addr;
	struct ibv_wc wc;
	int i, k;

	may_leak();
	for (i = 0; i < QPS; i++) {
		node_open(&n[i], i ? n[0].ctx : NULL, _i, &o);
		if (i) {
			cq = n[i].scq;
			n[i].scq = n[0].scq;
			ck_ok(ibv_destroy_qp(n[i].qp));
			node_make_qp(&n[i]);
			ck_ok(ibv_destroy_cq(cq));
		}
		addr = node_addr(&n[i]);
		node_connect(&n[i], &addr);
		f.n[i] = &n[i];
	}
	for (i = 0; i < QPS; i++)
		start(&t[i], feed_own_qp, &f);
	for (i = 0; i < QPS * ROUNDS; i++) {
		wc = wait_wc(n[0].scq);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		for (k = 0; n[k].qp->qp_num != wc.qp_num; k++)
			ck_assert_int_lt(k, QPS - 1);
		ck_assert_uint_eq(wc.wr_id, f.count[k]++);
	}
	for (i = 0; i < QPS; i++)
		join(t[i]);
	expect_none(n[0].scq, QUIET_MS);
}
END_TEST

/* ---------------------------------------- destruction during traffic */

/*
 * b executes requests on a's MR until one fails.  do_storm() runs where b
 * lives: in a thread of this process or in another process.
 */
struct storm {
	struct addr target;
	enum ibv_wc_status status;
	uint64_t done;
	enum ibv_wr_opcode op;
	uint32_t len;
};

static void do_storm(struct node *b, void *arg)
{
	struct storm *s = arg;
	double end = now_ms() + WAIT_MS;
	struct ibv_sge sge = node_sge(b, 0, s->len);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = s->op,
				  .send_flags = IBV_SEND_SIGNALED };
	uint64_t posted = 0;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = s->target.base;
	wr.wr.rdma.rkey = s->target.rkey;
	for (s->done = 0; now_ms() < end;) {
		while (posted - s->done < 16) {
			ck_ok(post_wr(b->qp, &wr));
			posted++;
		}
		if (ibv_poll_cq(b->scq, 1, &wc) != 1)
			continue;
		s->status = wc.status;
		if (wc.status != IBV_WC_SUCCESS)
			return;
		s->done++;
	}
	ck_abort_msg("the region is gone and WRITE still succeeds");
}

struct stormer {
	struct duo *d;
	struct storm s;
};

static void *storm_thread(void *arg)
{
	struct stormer *st = arg;

	on_b(st->d, do_storm, &st->s, sizeof(st->s));
	return NULL;
}

#define RECVS 32

struct poster {
	struct node *n;
	_Atomic bool stop;
};

static int post_recvs(struct ibv_qp *qp, uint64_t wr_id, int count)
{
	struct ibv_recv_wr wr[RECVS], *bad;
	int i;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < count; i++) {
		wr[i].wr_id = wr_id + i;
		wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
	}
	return ibv_post_recv(qp, wr, &bad);
}

/* Post receives until @stop is set; errors are expected. */
static void *post_stale(void *arg)
{
	struct poster *p = arg;

	while (!p->stop)
		post_recvs(p->n->qp, 1000, RECVS);
	return NULL;
}

/*
 * A receive that is posted during the transition to RESET is refused or
 * discarded: it does not occupy the receive queue later.
 */
START_TEST(post_recv_while_reset)
{
	struct opts o = default_opts();
	struct poster p = { 0 };
	struct ibv_wc wc;
	pthread_t thread;
	struct node n;
	int round, i;

	o.cap.max_recv_wr = RECVS;
	node_open(&n, NULL, MEM_HEAP, &o);
	p.n = &n;
	for (round = 0; round < 1000; round++) {
		p.stop = false;
		start(&thread, post_stale, &p);
		for (i = 0; i < round % 7; i++)
			sched_yield();
		ck_ok(qp_to(n.qp, IBV_QPS_RESET));
		p.stop = true;
		join(thread);
		qp_to_init(n.qp, &o);
		ck_ok(post_recvs(n.qp, 0, RECVS));
		ck_assert_int_eq(post_recvs(n.qp, 0, 1), ENOMEM);
		ck_ok(qp_to(n.qp, IBV_QPS_ERR));
		for (i = 0; i < RECVS; i++) {
			wc = wait_wc(n.rcq);
			ck_assert_uint_eq(wc.wr_id, i);
			ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
		ck_ok(qp_to(n.qp, IBV_QPS_RESET));
		qp_to_init(n.qp, &o);
	}
	node_close(&n);
}
END_TEST

/*
 * When ibv_dereg_mr has returned, remote WRITEs change no byte of the region
 * and fail with REM_ACCESS_ERR.
 */
START_TEST(dereg_in_traffic)
{
	struct opts o = default_opts();
	struct stormer st;
	pthread_t thread;
	struct duo d;
	int round, k;

	o.timeout = 12;
	duo_open(&d, _i % WHERE_COUNT, _i / WHERE_COUNT, MEM_HEAP, &o);
	b_fill(&d, 0, 65536, 77);
	for (round = 0; round < 10; round++) {
		st.d = &d;
		st.s = (struct storm){ .target = node_addr(&d.a),
				       .op = IBV_WR_RDMA_WRITE,
				       .len = round % 2 ? 64 : 65536 };
		start(&thread, storm_thread, &st);
		sleep_ms(5 + round);
		ck_ok(ibv_dereg_mr(d.a.mr));
		/* from here on only this process writes to the buffer */
		node_fill(&d.a, 0, 65536, round);
		for (k = 0; k < 20; k++) {
			ck_assert(node_has(&d.a, 0, 65536, round));
			sched_yield();
		}
		join(thread);
		ck_assert_int_eq(st.s.status, IBV_WC_REM_ACCESS_ERR);
		ck_assert(node_has(&d.a, 0, 65536, round));
		if (d.a.dm)
			d.a.mr = ibv_reg_dm_mr(d.a.pd, d.a.dm, 0, 65536,
					       ALL_ACCESS |
						       IBV_ACCESS_ZERO_BASED);
		else
			d.a.mr = ibv_reg_mr(d.a.pd, d.a.buf, 65536, ALL_ACCESS);
		ck_nonnull(d.a.mr);
		duo_renew(&d);
	}
	duo_close(&d);
}
END_TEST

/*
 * When ibv_destroy_qp has returned, remote WRITEs over the QP change no byte
 * and fail with RETRY_EXC_ERR.
 */
START_TEST(destroy_qp_in_traffic)
{
	struct opts o = default_opts();
	struct stormer st;
	pthread_t thread;
	struct duo d;
	int round;

	o.timeout = 10; /* 4 ms */
	o.retry_cnt = 1;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (round = 0; round < 5; round++) {
		st.d = &d;
		st.s = (struct storm){ .target = node_addr(&d.a),
				       .op = IBV_WR_RDMA_WRITE,
				       .len = 4096 };
		start(&thread, storm_thread, &st);
		sleep_ms(5 + round);
		ck_ok(ibv_destroy_qp(d.a.qp));
		d.a.qp = NULL;
		node_fill(&d.a, 0, 65536, round);
		join(thread);
		ck_assert_int_eq(st.s.status, IBV_WC_RETRY_EXC_ERR);
		ck_assert(node_has(&d.a, 0, 65536, round));
		duo_renew(&d);
	}
	duo_close(&d);
}
END_TEST

static void *churn_mrs(void *arg)
{
	struct node *n = arg;
	struct ibv_mr *mr;
	int i;

	for (i = 0; i < 3000; i++) {
		mr = ibv_reg_mr(n->pd, n->buf, 4096, ALL_ACCESS);
		ck_nonnull(mr);
		ck_ok(ibv_dereg_mr(mr));
	}
	return NULL;
}

static void *churn_qps(void *arg)
{
	struct node *n = arg;
	struct ibv_qp_init_attr attr = { .send_cq = n->scq,
					 .recv_cq = n->rcq,
					 .cap = n->o.cap,
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp;
	int i;

	for (i = 0; i < 1000; i++) {
		qp = ibv_create_qp(n->pd, &attr);
		ck_nonnull(qp);
		ck_ok(ibv_destroy_qp(qp));
	}
	return NULL;
}

static void *churn_cqs(void *arg)
{
	struct node *n = arg;
	struct ibv_cq *cq;
	int i;

	for (i = 0; i < 1000; i++) {
		cq = ibv_create_cq(n->ctx, 16, NULL, NULL, 0);
		ck_nonnull(cq);
		ck_ok(ibv_destroy_cq(cq));
	}
	return NULL;
}

/*
 * MRs, QPs and CQs are created and destroyed by other threads during traffic.
 */
START_TEST(churn_during_traffic)
{
	void *(*const churn[])(void *) = { churn_mrs, churn_qps, churn_cqs,
					   churn_mrs };
	struct opts o = default_opts();
	pthread_t t[4];
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 4; i++)
		start(&t[i], churn[i], &d.a);
	for (i = 0; i < 20000; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 64, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	}
	for (i = 0; i < 4; i++)
		join(t[i]);
	duo_close(&d);
}
END_TEST

static void *open_and_close(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 50; i++) {
		struct ibv_context *ctx = open_device();
		struct ibv_pd *pd = ibv_alloc_pd(ctx);

		ck_nonnull(pd);
		ck_ok(ibv_dealloc_pd(pd));
		ck_ok(ibv_close_device(ctx));
	}
	return NULL;
}

/* Threads open and close the device concurrently. */
START_TEST(opening_in_threads)
{
	pthread_t t[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		start(&t[i], open_and_close, NULL);
	for (i = 0; i < THREADS; i++)
		join(t[i]);
}
END_TEST

static pthread_mutex_t program_mutex = PTHREAD_MUTEX_INITIALIZER;

static void *open_only(void *ctx)
{
	*(struct ibv_context **)ctx = open_device();
	return NULL;
}

static void *open_and_close_under_a_mutex(void *arg)
{
	struct ibv_context *ctx;

	(void)arg;
	pthread_mutex_lock(&program_mutex);
	ctx = open_device();
	pthread_mutex_unlock(&program_mutex);
	pthread_mutex_lock(&program_mutex);
	ck_ok(ibv_close_device(ctx));
	pthread_mutex_unlock(&program_mutex);
	return NULL;
}

/*
 * The thread that locked the liveness mutexes of its process ends.  Another
 * one locks them while it holds a mutex of the program.  The order of locks is
 * no error (TSan, in the suite races).
 */
START_TEST(opening_under_a_mutex)
{
	struct ibv_context *kept;
	pthread_t t;
	int i;

	start(&t, open_only, &kept);
	join(t);
	for (i = 0; i < 5; i++) {
		start(&t, open_and_close_under_a_mutex, NULL);
		join(t);
	}
	ck_ok(ibv_close_device(kept));
}
END_TEST

/* --------------------------------------------------------- cancellation */

struct canceled {
	struct node *n;
	int got;
};

static void *poll_canceled(void *arg)
{
	struct canceled *c = arg;
	struct ibv_wc wc;

	pthread_cancel(pthread_self()); /* no ck_ok: it calls write() */
	c->got = ibv_poll_cq(c->n->rcq, 1, &wc);
	pthread_testcancel();
	return NULL;
}

static void do_poll_canceled(struct node *b, void *arg)
{
	struct canceled c = { .n = b, .got = -1 };
	pthread_t t;

	start(&t, poll_canceled, &c);
	join(t);
	*(int *)arg = c.got;
}

/*
 * ibv_poll_cq, which holds a lock, is not a cancellation point (pthreads(7)),
 * even if it uses a system call to place a small message.
 */
START_TEST(cancel_in_poll)
{
	struct opts o = default_opts();
	struct duo d;
	int got;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, 0, 8);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	on_b(&d, do_poll_canceled, &got, sizeof(got));
	ck_assert_int_eq(got, 1);
	duo_close(&d);
}
END_TEST

/* Allocate memory until malloc() fails; return a list of it. */
static void *take_memory(void)
{
	void **head = NULL, **p;
	size_t size;

	for (size = 1 << 20; size >= sizeof(*p); size /= 2)
		while ((p = malloc(size))) {
			*p = head;
			head = p;
		}
	return head;
}

static void give_memory(void *head)
{
	void *next;

	for (; head; head = next) {
		next = *(void **)head;
		free(head);
	}
}

struct late {
	struct duo d;
	pthread_barrier_t ready, go;
	int polled;
};

static void *first_verb(void *arg)
{
	struct late *l = arg;
	struct ibv_wc wc;
	int i;

	pthread_barrier_wait(&l->ready);
	pthread_barrier_wait(&l->go);
	for (i = 0; i < ROUNDS && !l->polled; i++)
		l->polled = ibv_poll_cq(l->d.a.scq, 1, &wc);
	return NULL;
}

/* A thread's first verb succeeds although no memory can be allocated. */
START_TEST(first_verb_without_memory)
{
	struct opts o = default_opts();
	struct rlimit before, none;
	struct late l = { 0 };
	void *taken;
	pthread_t t;
	int joined;

	if (under_sanitizer())
		return;
	duo_open(&l.d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(pthread_barrier_init(&l.ready, NULL, 2));
	ck_ok(pthread_barrier_init(&l.go, NULL, 2));
	start(&t, first_verb, &l);
	pthread_barrier_wait(&l.ready);
	ck_ok(getrlimit(RLIMIT_AS, &before));
	none = before;
	none.rlim_cur = 1;
	ck_ok(setrlimit(RLIMIT_AS, &none));
	taken = take_memory();
	pthread_barrier_wait(&l.go);
	joined = pthread_join(t, NULL); /* Check's macros allocate memory */
	give_memory(taken);
	ck_ok(joined);
	ck_ok(setrlimit(RLIMIT_AS, &before));
	ck_assert_int_eq(l.polled, 0);
	duo_close(&l.d);
}
END_TEST

int main(void)
{
	Suite *s = suite("threads");

	add_loop(s, objects_of_each_thread, 2);
	add_loop(s, one_qp_for_all, WHERE_COUNT);
	add_loop(s, qps_of_many_threads_one_cq, MEM_COUNT);
	add_loop(s, dereg_in_traffic, WHERE_COUNT * MEM_COUNT);
	add_loop(s, destroy_qp_in_traffic, WHERE_COUNT);
	add_loop(s, churn_during_traffic, WHERE_COUNT);
	add(s, opening_in_threads);
	add(s, opening_under_a_mutex);
	add(s, post_recv_while_reset);
	add(s, cancel_in_poll);
	add(s, first_verb_without_memory);
	return run(s);
}
