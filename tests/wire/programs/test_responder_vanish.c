// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Responder: requests for memory that was unmapped or truncated while it is
 * registered get a NAK (remote operational error), and the process that
 * receives the packets does not crash.  The memory is that process's own or
 * another's.  Part of test_responder.c.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other_host.h"

#define PAGE 4096u
#define AT ((uint8_t *)0x200000000000) /* no other mapping is placed there */
#define LONG 200u /* longer than what a completion carries inline */

/* The memory is private, or a shared file. */
enum { PRIVATE, SHARED, KINDS };

static struct {
	uint8_t *buf;
	struct ibv_mr *mr;
} plain; /* of setup() */
static int fd;
static pid_t owner; /* of the socket; 0: this process */

/* Map two pages as `buf`. */
static void map_pages(int kind)
{
	const int flags = kind == SHARED ? MAP_SHARED :
					   MAP_PRIVATE | MAP_ANONYMOUS;

	ck_assert_ptr_eq(mmap(AT, 2 * PAGE, PROT_READ | PROT_WRITE,
			      flags | MAP_FIXED, fd, 0),
			 AT);
}

/* Case @i: the kind of memory, and whether another process has the socket. */
static void begin(int i)
{
	owner = i / KINDS ? start_owner() : 0;
	setup();
	plain.buf = buf;
	plain.mr = mr;
	fd = -1;
	if (i % KINDS == SHARED) {
		fd = memfd_create("vanish", MFD_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(ftruncate(fd, 2 * PAGE), 0);
	}
	map_pages(i % KINDS);
	buf = AT;
	mr = ibv_reg_mr(pd, buf, 2 * PAGE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	ck_assert_ptr_nonnull(mr);
}

static void end(void)
{
	ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	munmap(AT, 2 * PAGE);
	if (fd >= 0)
		close(fd);
	buf = plain.buf;
	mr = plain.mr;
	teardown();
	if (!owner)
		return;
	ck_assert_int_eq(kill(owner, SIGKILL), 0);
	ck_assert_int_eq(waitpid(owner, NULL, 0), owner);
}

/* Remove the pages from @page on; all of them are accessible before. */
static void vanish(uint32_t page)
{
	if (fd >= 0)
		ck_assert_int_eq(ftruncate(fd, (off_t)page * PAGE), 0);
	else
		ck_assert_int_eq(munmap(AT + page * PAGE, (2 - page) * PAGE),
				 0);
}

static void restore(void)
{
	if (fd >= 0)
		ck_assert_int_eq(ftruncate(fd, 2 * PAGE), 0);
	else
		map_pages(PRIVATE);
}

/* Receive ACKs for packets before @psn, and a NAK for @psn. */
static void receive_nak(uint32_t psn)
{
	struct wire_packet p;

	do
		p = receive_packet();
	while (p.bth.psn != (psn & WIRE_PSN_MASK));
	ck_assert_uint_eq(p.bth.opcode, WIRE_ACKNOWLEDGE);
	ck_assert_uint_eq(p.aeth.syndrome, WIRE_NAK_OPERATION);
}

/* A new QP whose first SEND, of LONG bytes to the first page, succeeds. */
static struct ibv_qp *make_warm_qp(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	post_recv(qp, 1, 0, LONG);
	say_send(qp, WIRE_SEND_ONLY, PSN, 0, LONG);
	receive_answer(WIRE_ACK, PSN);
	ck_assert_int_eq(await_completion().status, IBV_WC_SUCCESS);
	ck_assert_int_eq(memcmp(buf, text, LONG), 0);
	return qp;
}

/* The QP is in ERR after a NAK.  Memory is restored, and a new QP works. */
static void check_end(struct ibv_qp *qp, uint32_t psn)
{
	receive_nak(psn);
	ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	restore();
	ck_assert_int_eq(ibv_destroy_qp(make_warm_qp()), 0);
}

static void say_word(const struct ibv_qp *qp, uint32_t psn)
{
	struct wire_packet p = packet(qp->qp_num, WIRE_ATOMIC_WRITE, psn);

	p.reth.addr = (uintptr_t)buf;
	p.reth.rkey = mr->rkey;
	p.reth.length = 8;
	with_bytes(&p, text, 8);
	say(&p);
}

/* Requests of one packet for a page that is gone. */
static void one_packet(void)
{
	struct ibv_qp *qp;
	int i;

	for (i = 0; i < 5; i++) {
		qp = make_warm_qp();
		vanish(0);
		if (i == 0)
			say_rdma(qp, WIRE_WRITE_ONLY, PSN + 1, mr->rkey, 8, 8);
		else if (i == 1)
			say_rdma(qp, WIRE_WRITE_ONLY, PSN + 1, mr->rkey, LONG,
				 LONG);
		else if (i == 2)
			say_rdma(qp, WIRE_READ_REQUEST, PSN + 1, mr->rkey, LONG,
				 0);
		else if (i == 3)
			say_fetch_add(qp, PSN + 1, 0, 1);
		else
			say_word(qp, PSN + 1);
		check_end(qp, PSN + 1);
	}
}

/* A WRITE and a READ whose last packet is in the page that is gone. */
static void several_packets(void)
{
	const uint32_t n = PAGE / MTU;
	struct ibv_qp *qp = make_warm_qp();
	uint32_t i;

	vanish(1);
	say_rdma(qp, WIRE_WRITE_FIRST, PSN + 1, mr->rkey, PAGE + LONG, MTU);
	for (i = 1; i < n; i++)
		say_send(qp, WIRE_WRITE_MIDDLE, PSN + 1 + i, i * MTU, MTU);
	say_send(qp, WIRE_WRITE_LAST, PSN + 1 + n, PAGE, LONG);
	check_end(qp, PSN + 1 + n);
	qp = make_warm_qp();
	vanish(1);
	say_rdma(qp, WIRE_READ_REQUEST, PSN + 1, mr->rkey, PAGE + LONG, 0);
	/* its responses are sent in batches */
	check_end(qp, PSN + 1);
}

/*
 * The memory of a receive is gone.  The message has two packets: one of a
 * single packet may be placed when its completion is polled.
 */
static void a_receive(void)
{
	struct ibv_qp *qp = make_warm_qp();
	struct ibv_wc wc;

	post_recv(qp, 2, 0, MTU + LONG);
	post_recv(qp, 3, 0, LONG);
	vanish(0);
	say_send(qp, WIRE_SEND_FIRST, PSN + 1, 0, MTU);
	wc = await_completion();
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	wc = await_completion();
	ck_assert_uint_eq(wc.wr_id, 3);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	check_end(qp, PSN + 1);
}

/* The same with UC, which has no NAKs. */
static void a_receive_of_uc(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_UC);
	struct ibv_wc wc;

	post_recv(qp, 2, 0, LONG);
	vanish(0);
	say_send(qp, WIRE_UC | WIRE_SEND_ONLY, PSN, 0, LONG);
	wc = await_completion();
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_int_eq(state_of(qp), IBV_QPS_ERR);
	silence();
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	restore();
	ck_assert_int_eq(ibv_destroy_qp(make_warm_qp()), 0);
}

/* Each kind of request, with each kind of memory. */
START_TEST(memory_vanishes)
{
	static void (*const requests[])(void) = { one_packet, several_packets,
						  a_receive, a_receive_of_uc };
	size_t i;

	if (!dlsym(RTLD_DEFAULT, "urxe_nofault"))
		return;
	begin(_i);
	for (i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		requests[i]();
	end();
}
END_TEST

TCase *vanish_case(void)
{
	TCase *t = tcase_create("vanish");

	tcase_set_timeout(t, 0);
	tcase_add_loop_test(t, memory_vanishes, 0, 2 * KINDS);
	return t;
}
