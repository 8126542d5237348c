// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * traced MODE [N]: programs whose trace is tested.  Unless a mode states
 * otherwise, it uses two connected QPs of one process.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "verbs/qp/xrc.h"

static struct duo duo;

static void open_duo(void)
{
	struct opts o = default_opts();

	o.rnr_retry = 1;
	o.min_rnr_timer = 1;
	duo_open(&duo, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
}

static void write_one(uint64_t wr_id)
{
	ck_assert_int_eq(post(&duo, IBV_WR_RDMA_WRITE, wr_id, 0, 8, 0, 0), 0);
	expect(duo.a.scq, wr_id, IBV_WC_SUCCESS);
}

static void writes(unsigned int n)
{
	unsigned int i;

	open_duo();
	for (i = 1; i <= n; i++)
		write_one(i);
	duo_close(&duo);
}

/* Post pairs of SENDs.  Only the second one of a pair is signaled. */
static void sends(unsigned int n)
{
	unsigned int i;

	open_duo();
	for (i = 1; i <= n; i++) {
		b_recv(&duo, i, 0, 8);
		if (i % 2) {
			ck_assert_int_eq(post_unsignaled(&duo, IBV_WR_SEND, i,
							 0, 8, 0, 0),
					 0);
			continue;
		}
		ck_assert_int_eq(post(&duo, IBV_WR_SEND, i, 0, 8, 0, 0), 0);
		expect(duo.a.scq, i, IBV_WC_SUCCESS);
		b_wait_recv(&duo);
		b_wait_recv(&duo);
	}
	duo_close(&duo);
}

/* Write until killed.  The numbers of completed WRs go to standard output. */
static void endless(unsigned int n)
{
	uint64_t i;

	(void)n;
	open_duo();
	for (i = 1;; i++) {
		write_one(i);
		if (write(STDOUT_FILENO, &i, sizeof(i)) != sizeof(i))
			exit(1);
	}
}

/* An invalid rkey, a missing receive, and a full queue */
static void wrong(unsigned int n)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 4, .opcode = IBV_WR_SEND };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 5 };
	struct ibv_sge sge;
	unsigned int i;

	(void)n;
	open_duo();
	ck_assert_int_eq(post(&duo, IBV_WR_SEND, 1, 0, 8, 0, 0), 0);
	expect(duo.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	duo_renew(&duo);
	duo.at_b.rkey ^= 1;
	ck_assert_int_eq(post(&duo, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0), 0);
	expect(duo.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	sge = node_sge(&duo.a, 0, 8);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	duo_renew(&duo);
	for (i = 0; !ibv_post_send(duo.a.qp, &wr, &bad); i++)
		ck_assert_uint_lt(i, 100000);
	/* invalid: the SGEs of a refused WR must not be read */
	wr.sg_list = (struct ibv_sge *)(uintptr_t)4096;
	wr.num_sge = 10;
	recv.sg_list = wr.sg_list;
	recv.num_sge = wr.num_sge;
	ck_assert_int_ne(ibv_post_send(duo.a.qp, &wr, &bad), 0);
	ck_assert_int_ne(ibv_post_recv(duo.b.qp, &recv, &bad_recv), 0);
	_exit(0);
}

/* ibv_wr_* and ibv_start_poll */
static void extended(unsigned int n)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { 4, 4, 1, 1, 16 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq;
	struct ibv_qp_ex *ex;
	struct addr peer;
	struct node *a = &duo.a;
	uint32_t word = 7;

	(void)n;
	open_duo();
	cq = ibv_create_cq_ex(a->ctx, &cq_attr);
	ck_assert_ptr_nonnull(cq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	attr.pd = a->pd;
	ibv_destroy_qp(a->qp);
	a->qp = ibv_create_qp_ex(a->ctx, &attr);
	ck_assert_ptr_nonnull(a->qp);
	peer = node_addr(a);
	ck_assert_int_eq(qp_to(duo.b.qp, IBV_QPS_RESET), 0);
	node_connect(&duo.b, &peer);
	node_connect(a, &duo.at_b);
	ex = ibv_qp_to_qp_ex(a->qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	for (ex->wr_id = 1; ex->wr_id <= 2; ex->wr_id++) {
		ibv_wr_rdma_write(ex, duo.at_b.rkey, duo.at_b.base);
		ibv_wr_set_inline_data(ex, &word, sizeof(word));
	}
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	while (ibv_start_poll(cq, &none))
		;
	ck_assert_int_eq(ibv_next_poll(cq), 0);
	ibv_end_poll(cq);
	ibv_wr_start(ex);
	for (ex->wr_id = 3; ex->wr_id <= 8; ex->wr_id++) {
		ibv_wr_rdma_write(ex, duo.at_b.rkey, duo.at_b.base);
		ibv_wr_set_inline_data(ex, &word, sizeof(word));
	}
	ck_assert_int_eq(ibv_wr_complete(ex), ENOMEM);
	_exit(0);
}

static void *in_thread(void *arg)
{
	(void)arg;
	write_one(2);
	return NULL;
}

/* A child of a process that is traced already, and a thread */
static void apart(unsigned int n)
{
	struct ibv_context *ctx = open_device();
	pthread_t thread;
	pid_t child;

	(void)n;
	ck_assert_ptr_nonnull(ibv_alloc_pd(ctx));
	child = fork();
	open_duo();
	write_one(1);
	ck_assert_int_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	if (!child)
		_exit(0);
	ck_assert_int_eq(reap_child(child), 0);
}

/* The program replaces all descriptors, including the tracer's. */
static void closes(unsigned int n)
{
	pthread_t thread;
	int fd;

	(void)n;
	open_duo();
	for (fd = 3; fd < 1024; fd++)
		dup2(STDIN_FILENO, fd);
	/*
	 * under a limit of 1024 this leaves one for the tracer to reopen its
	 * file
	 */
	close(1023);
	ck_assert_int_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
	pthread_join(thread, NULL);
	_exit(0);
}

static void in_new_thread(void *(*fn)(void *arg))
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, fn, NULL), 0);
	pthread_join(thread, NULL);
}

/*
 * The file is renamed before the second thread gets its part of the file, and
 * before the first thread needs a larger part.
 */
static void moved(unsigned int n)
{
	const char *path = getenv("URXE_TRACE");
	char to[256];
	unsigned int i;

	open_duo();
	write_one(1);
	snprintf(to, sizeof(to), "%s.moved", path);
	ck_assert_int_eq(rename(path, to), 0);
	in_new_thread(in_thread);
	for (i = 3; i <= n; i++)
		write_one(i);
	duo_close(&duo);
}

/* Threads that exist one after the other */
static void threads(unsigned int n)
{
	open_duo();
	while (n--)
		in_new_thread(in_thread);
	duo_close(&duo);
}

/* A thread whose first record is made while its cancellation is pending */
static _Atomic bool is_cancelled, came_out;

static struct ibv_sge sge_2;
static struct ibv_send_wr wr_2;

static void *in_cancelled(void *arg)
{
	struct ibv_send_wr *bad;

	(void)arg;
	while (!atomic_load(&is_cancelled))
		;
	if (!ibv_post_send(duo.a.qp, &wr_2, &bad))
		atomic_store(&came_out, true);
	pthread_testcancel();
	return NULL;
}

static void cancelled(unsigned int n)
{
	pthread_t thread;

	(void)n;
	open_duo();
	sge_2 = node_sge(&duo.a, 0, 8);
	wr_2 = (struct ibv_send_wr){
		.wr_id = 2,
		.sg_list = &sge_2,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { duo.at_b.base, duo.at_b.rkey },
	};
	ck_assert_int_eq(pthread_create(&thread, NULL, in_cancelled, NULL), 0);
	pthread_cancel(thread);
	is_cancelled = true;
	pthread_join(thread, NULL);
	ck_assert(came_out);
	expect(duo.a.scq, 2, IBV_WC_SUCCESS);
	duo_close(&duo);
}

/* The last record of a thread is made by the destructor of a key. */
static pthread_key_t key;

static void at_end(void *arg)
{
	in_thread(arg);
}

static void *with_key(void *arg)
{
	(void)arg;
	write_one(1);
	pthread_setspecific(key, &key);
	return NULL;
}

static void destructor(unsigned int n)
{
	(void)n;
	open_duo();
	ck_assert_int_eq(pthread_key_create(&key, at_end), 0);
	in_new_thread(with_key);
	duo_close(&duo);
}

/* A signal handler calls a verb while another call is recorded. */
static void on_signal(int nr)
{
	struct ibv_port_attr attr;

	(void)nr;
	ibv_query_port(duo.a.ctx, 1, &attr);
}

static void handler(unsigned int n)
{
	const struct itimerval often = { { 0, 50 }, { 0, 50 } };
	const struct itimerval never = { 0 };
	unsigned int i;

	open_duo();
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 1; i <= n; i++)
		write_one(i);
	setitimer(ITIMER_REAL, &never, NULL);
	duo_close(&duo);
}

/* A WR that a full queue refused is posted again. */
static void again(unsigned int n)
{
	uint64_t id, last;

	(void)n;
	open_duo();
	for (last = 1; !post(&duo, IBV_WR_RDMA_WRITE, last, 0, 8, 0, 0); last++)
		;
	for (id = 1; id < last; id++)
		expect(duo.a.scq, id, IBV_WC_SUCCESS);
	write_one(last);
	printf("%u\n", (unsigned int)last);
	duo_close(&duo);
}

/*
 * A datagram: its address and Q_Key come from the WR, not from the
 * connection.
 */
static void datagram(void)
{
	struct ibv_ah *ah;

	turn(&duo, IBV_QPT_UD);
	ah = make_ah(&duo.a, &duo.b.gid, 0);
	ck_ok(qp_recv(duo.b.qp, &duo.b, 5, 0, 64));
	ck_ok(post_ud(&duo.a, 5, 0, 8, ah, duo.b.qp->qp_num, 0x80000000));
	expect(duo.a.scq, 5, IBV_WC_SUCCESS);
	expect(duo.b.rcq, 5, IBV_WC_SUCCESS);
	ck_ok(ibv_destroy_ah(ah));
}

static void to_srq(void)
{
	int fd = new_file();
	struct ibv_xrcd *xrcd = open_xrcd(duo.b.ctx, fd, O_CREAT);
	struct ibv_srq *srq = make_xsrq(&duo.b, xrcd, 4, 1);

	ck_ok(ibv_destroy_qp(duo.a.qp));
	ck_ok(ibv_destroy_qp(duo.b.qp));
	duo.a.qp = make_qp(&duo.a, IBV_QPT_XRC_SEND, NULL);
	duo.b.qp = make_target(&duo.b, xrcd);
	duo.at_a = node_addr(&duo.a);
	duo.at_b = node_addr(&duo.b);
	type_connect(duo.b.qp, &duo.b.o, &duo.at_a);
	type_connect(duo.a.qp, &duo.a.o, &duo.at_b);
	post_srq(srq, &duo.b, 6, 0, 8);
	post_x(&duo, IBV_WR_SEND, 6, 8, 0, srqn(srq));
	expect(duo.a.scq, 6, IBV_WC_SUCCESS);
	expect(duo.b.rcq, 6, IBV_WC_SUCCESS);
	printf("%x\n", srqn(srq));
}

static void packets(unsigned int n)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	(void)n;
	o.retry_cnt = 1;
	duo_open_unconnected(&duo, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	/* the peer is not in RTR yet */
	node_connect(&duo.a, &duo.at_b);
	ck_ok(post(&duo, IBV_WR_RDMA_WRITE, 1, 0, 3000, 0,
		   IBV_SEND_SOLICITED));
	expect_none(duo.a.scq, QUIET_MS);
	node_connect(&duo.b, &duo.at_a);
	expect(duo.a.scq, 1, IBV_WC_SUCCESS);
	b_store64(&duo, 0, 0x77);
	ck_ok(post_atomic(&duo, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 0, 0, 0x77,
			  0x88));
	expect(duo.a.scq, 2, IBV_WC_SUCCESS);
	b_recv(&duo, 3, 0, 8);
	ck_ok(post(&duo, IBV_WR_SEND, 3, 0, 8, 0, IBV_SEND_SOLICITED));
	expect(duo.a.scq, 3, IBV_WC_SUCCESS);
	b_recv(&duo, 4, 0, 8);
	sge = node_sge(&duo.a, 0, 8);
	wr = rdma_wr(&duo, IBV_WR_SEND_WITH_INV, 4, &sge, 1, 0);
	wr.invalidate_rkey = duo.at_b.rkey ^ 1;
	ck_ok(post_wr(duo.a.qp, &wr));
	expect(duo.a.scq, 4, IBV_WC_RETRY_EXC_ERR);
	datagram();
	to_srq();
	fflush(stdout);
	_exit(0);
}

/*
 * One datagram that both QPs drop, as they have no receives.  Then two
 * datagrams with the same wr_id, which both QPs receive.
 */
static void multicast(unsigned int n)
{
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };
	struct opts o = default_opts();
	struct ibv_send_wr wr[2];
	struct ibv_sge sge;
	struct ibv_ah *ah;
	int i;

	(void)n;
	duo_open_unconnected(&duo, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	turn(&duo, IBV_QPT_UD);
	ck_ok(ibv_attach_mcast(duo.a.qp, &group, 0));
	ck_ok(ibv_attach_mcast(duo.b.qp, &group, 0));
	ah = make_ah(&duo.a, &group, 0);
	ck_ok(post_ud(&duo.a, 1, 0, 8, ah, 0xffffff, 0x80000000));
	expect(duo.a.scq, 1, IBV_WC_SUCCESS);
	sge = node_sge(&duo.a, 0, 8);
	for (i = 0; i < 2; i++) {
		ck_ok(qp_recv(duo.a.qp, &duo.a, 2, 64, 64));
		ck_ok(qp_recv(duo.b.qp, &duo.b, 2, 64, 64));
		wr[i] = ud_wr(2, &sge, 1, ah, 0xffffff, 0x80000000);
	}
	wr[0].next = &wr[1];
	ck_ok(post_wr(duo.a.qp, wr));
	for (i = 0; i < 2; i++) {
		expect(duo.a.scq, 2, IBV_WC_SUCCESS);
		expect(duo.a.rcq, 2, IBV_WC_SUCCESS);
		expect(duo.b.rcq, 2, IBV_WC_SUCCESS);
	}
	fflush(stdout);
	_exit(0);
}

/* The PSN that the responder expects differs from the requester's. */
static void psn(unsigned int n)
{
	struct opts o = default_opts();

	(void)n;
	o.retry_cnt = 1;
	o.timeout = 1;
	duo_open_unconnected(&duo, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	duo.at_a.psn++;
	duo_connect(&duo);
	ck_ok(post(&duo, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect(duo.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	_exit(0);
}

/*
 * Messages with known payload.  If n is 1, the memory of node a is device
 * memory.  The last WR refers to unmapped memory and does not start, as its
 * peer is in RESET.  Only a recorder could read that memory.
 */
static void payload_of_two_sges(void)
{
	struct ibv_sge sge[2] = { node_sge(&duo.a, 0, 3),
				  node_sge(&duo.a, 100, 1997) };
	struct ibv_send_wr wr = rdma_wr(&duo, IBV_WR_RDMA_WRITE, 4, sge, 2, 0);

	ck_ok(post_wr(duo.a.qp, &wr));
	expect(duo.a.scq, 4, IBV_WC_SUCCESS);
}

static void payload_that_is_gone(void)
{
	const size_t size = 1 << 16;
	void *buf = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(duo.a.pd, buf, size, 0);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	ck_nonnull(mr);
	ck_ok(munmap(buf, size));
	duo_renew(&duo);
	ck_ok(qp_to(duo.b.qp, IBV_QPS_RESET));
	sge = (struct ibv_sge){ (uintptr_t)buf, 8, mr->lkey };
	wr = rdma_wr(&duo, IBV_WR_RDMA_WRITE, 6, &sge, 1, 0);
	ck_ok(post_wr(duo.a.qp, &wr));
}

static void payload(unsigned int n)
{
	struct opts o = default_opts();
	struct ibv_ah *ah;
	char text[2200];
	size_t i;

	for (i = 0; i < sizeof(text); i++)
		text[i] = 'a' + i % 26;
	duo_open(&duo, SAME_CONTEXT, n ? MEM_DM : MEM_HEAP, MEM_HEAP, &o);
	node_put(&duo.a, 0, text, sizeof(text));
	node_put(&duo.b, 0, "what b has", 10);
	b_recv(&duo, 1, 3000, 100);
	ck_ok(post(&duo, IBV_WR_SEND, 1, 1, 40, 0, 0));
	expect(duo.a.scq, 1, IBV_WC_SUCCESS);
	if (!n)
		ck_ok(post(&duo, IBV_WR_RDMA_WRITE, 2, 2, 8, 3000,
			   IBV_SEND_INLINE));
	else
		ck_ok(post(&duo, IBV_WR_RDMA_WRITE, 2, 2, 8, 3000, 0));
	expect(duo.a.scq, 2, IBV_WC_SUCCESS);
	ck_ok(post(&duo, IBV_WR_RDMA_READ, 3, 3000, 10, 0, 0));
	expect(duo.a.scq, 3, IBV_WC_SUCCESS);
	payload_of_two_sges();
	turn(&duo, IBV_QPT_UD);
	ah = make_ah(&duo.a, &duo.b.gid, 0);
	ck_ok(post_ud(&duo.a, 5, 5, 8, ah, duo.b.qp->qp_num, QKEY));
	expect(duo.a.scq, 5, IBV_WC_SUCCESS);
	payload_that_is_gone();
	_exit(0);
}

/* Operations that common clients do not use, and a message of many packets */
#define WR_ATOMIC_WRITE 15

static void done(uint64_t wr_id)
{
	expect(duo.a.scq, wr_id, IBV_WC_SUCCESS);
}

static void with_imm(enum ibv_wr_opcode op, uint64_t wr_id, uint32_t len)
{
	struct ibv_sge sge = node_sge(&duo.a, 0, len);
	struct ibv_send_wr wr = rdma_wr(&duo, op, wr_id, &sge, 1, 0);

	wr.imm_data = htobe32(0x12345678);
	b_recv(&duo, wr_id, 0, len);
	ck_ok(post_wr(duo.a.qp, &wr));
	done(wr_id);
}

static void one_of(enum ibv_wr_opcode op, uint64_t wr_id, uint32_t len)
{
	ck_ok(post(&duo, op, wr_id, 0, len, 0, 0));
	done(wr_id);
}

static void kinds(unsigned int n)
{
	struct opts o = default_opts();

	(void)n;
	o.size = 200 << 10;
	duo_open(&duo, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&duo.a, 0, o.size, 1);
	with_imm(IBV_WR_RDMA_WRITE_WITH_IMM, 1, 3000);
	with_imm(IBV_WR_SEND_WITH_IMM, 2, 3000);
	with_imm(IBV_WR_SEND_WITH_IMM, 3, 8);
	with_imm(IBV_WR_RDMA_WRITE_WITH_IMM, 4, 8);
	one_of(IBV_WR_RDMA_READ, 5, 3000);
	ck_ok(post_atomic(&duo, IBV_WR_ATOMIC_CMP_AND_SWP, 6, 8, 8, 1, 2));
	done(6);
	ck_ok(post_atomic(&duo, IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 8, 8, 1, 0));
	done(7);
	one_of(IBV_WR_RDMA_WRITE, 8, 0);
	one_of(IBV_WR_RDMA_READ, 9, 0);
	one_of(WR_ATOMIC_WRITE, 10, 8);
	one_of(IBV_WR_RDMA_WRITE, 11, 200 << 10);
	_exit(0);
}

static struct {
	const char *name;
	void (*run)(unsigned int n);
} modes[] = {
	{ "writes", writes },
	{ "sends", sends },
	{ "endless", endless },
	{ "wrong", wrong },
	{ "extended", extended },
	{ "apart", apart },
	{ "closes", closes },
	{ "moved", moved },
	{ "threads", threads },
	{ "cancelled", cancelled },
	{ "destructor", destructor },
	{ "handler", handler },
	{ "again", again },
	{ "packets", packets },
	{ "multicast", multicast },
	{ "psn", psn },
	{ "payload", payload },
	{ "kinds", kinds },
};

static const char *mode;
static unsigned int times = 1;

/* The harness requires a running test case. */
START_TEST(traced)
{
	unsigned int i;

	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, mode)) {
			modes[i].run(times);
			return;
		}
	ck_abort_msg("no mode %s", mode);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *s = suite_create("traced");
	TCase *tc = tcase_create("traced");
	SRunner *sr;
	int failed;

	if (argc < 2)
		return 2;
	mode = argv[1];
	if (argc > 2)
		times = (unsigned int)atoi(argv[2]);
	tcase_add_test(tc, traced);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_set_fork_status(sr, CK_NOFORK);
	srunner_run_all(sr, CK_SILENT);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
