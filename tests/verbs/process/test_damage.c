// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Damage to files and FIFOs of the fabric that another program may cause.
 * tests/fuzz causes it at random.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../harness.h"
#include "shared/layout.h"

/* Write to the FIFO behind @fd as another program would. */
static void write_into(int fd, const void *data, size_t len)
{
	char path[40];
	int wr;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	wr = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	ck_assert_int_ge(wr, 0);
	ck_assert_int_eq(write(wr, data, len), (ssize_t)len);
	close(wr);
}

static void do_not_block(int fd)
{
	ck_ok(fcntl(fd, F_SETFL, O_NONBLOCK));
}

/* Completion events that name no CQ of this process are ignored. */
START_TEST(garbage_in_a_channel)
{
	static const uint64_t garbage[] = { 0, 1, 64, 0x4141414141414141,
					    UINT64_MAX };
	struct opts o = default_opts();
	struct ibv_cq *cq;
	struct duo d;
	void *context;

	o.channel = true;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	do_not_block(d.a.chan->fd);
	write_into(d.a.chan->fd, garbage, sizeof(garbage));
	ck_assert_int_eq(ibv_get_cq_event(d.a.chan, &cq, &context), -1);
	ck_assert_int_eq(errno, EAGAIN);
	/* garbage does not hide valid events */
	write_into(d.a.chan->fd, garbage, sizeof(garbage));
	ck_ok(post_recv(&d.b, 1, 0, 64));
	ck_ok(ibv_req_notify_cq(d.b.rcq, 0));
	write_into(d.b.chan->fd, garbage, sizeof(garbage));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	ck_ok(ibv_get_cq_event(d.b.chan, &cq, &context));
	ck_assert_ptr_eq(cq, d.b.rcq);
	ck_assert_ptr_eq(context, &d.b);
	ibv_ack_cq_events(cq, 1);
	duo_close(&d);
}
END_TEST

/* Asynchronous events that name no object of this process are ignored. */
START_TEST(garbage_among_async_events)
{
	struct {
		uint64_t element;
		uint32_t type, zero;
	} e = { .element = 0x4141414141414141 };
	struct opts o = default_opts();
	struct ibv_async_event ev;
	struct duo d;

	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	do_not_block(d.a.ctx->async_fd);
	for (e.type = 0; e.type < 40; e.type++)
		write_into(d.a.ctx->async_fd, &e, sizeof(e));
	while (!ibv_get_async_event(d.a.ctx, &ev)) {
		/* these types name no object */
		ck_assert(ev.event_type == IBV_EVENT_DEVICE_FATAL ||
			  (ev.event_type >= IBV_EVENT_PORT_ACTIVE &&
			   ev.event_type <= IBV_EVENT_SM_CHANGE) ||
			  ev.event_type == IBV_EVENT_CLIENT_REREGISTER ||
			  ev.event_type == IBV_EVENT_GID_CHANGE);
		ibv_ack_async_event(&ev);
	}
	ck_assert_int_eq(errno, EAGAIN);
	duo_close(&d);
}
END_TEST

/* ------------------------------------------------------------ files */

/*
 * Return the path of a file of the fabric, in the fabric's current directory.
 */
static const char *fabric_file(const char *name)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/%s/%s", getenv("URXE_DIR"),
		 getenv("URXE_FABRIC"), name);
	return path;
}

/*
 * A process that opens the device for the first time, after it has read a
 * byte from the pipe *@arg, unless @arg is NULL.
 */
static int newcomer(void *arg)
{
	struct opts o = default_opts();
	struct duo d;
	char byte;

	leave_check();
	if (arg && read(*(int *)arg, &byte, 1) != 1)
		return 1;
	duo_open(&d, SAME_PROCESS, MEM_DM, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	duo_close(&d);
	return 0;
}

/*
 * If files of the fabric are removed or renamed, processes that have them
 * mapped are not affected, and later processes create new ones.
 */
START_TEST(files_removed_in_use)
{
	static const char *const files[] = { "device", "dm", "ctx" };
	struct opts o = default_opts();
	int i, go[2];
	struct duo d;
	pid_t pid;

	unlink(fabric_file("device")); /* start with a new device */
	ck_ok(pipe(go));
	pid = spawn(newcomer, &go[0]);
	duo_open(&d, TWO_PROCESSES, MEM_DM, MEM_DM, &o);
	if (_i < 2)
		ck_ok(unlink(fabric_file(files[_i])));
	else
		ck_ok(rename(fabric_file("ctx"), fabric_file("other")));
	ck_assert_int_eq(write(go[1], "", 1), 1);
	ck_assert_int_eq(reap_child(pid), 0);
	for (i = 0; i < 100; i++) {
		node_fill(&d.a, 0, 4096, (unsigned int)i);
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 4096, 0, 0));
		expect_ok(d.a.scq, (uint64_t)i, IBV_WC_RDMA_WRITE);
		ck_assert(b_has(&d, 0, 4096, (unsigned int)i));
	}
	duo_close(&d);
}
END_TEST

/*
 * After a file of the fabric was truncated, later processes work.  No process
 * has it mapped here: it would get SIGBUS.
 */
START_TEST(file_truncated)
{
	static const char *const files[] = { "device", "dm" };
	static const int sizes[] = { 0, 20, 4096 };

	ck_assert_int_eq(reap_child(spawn(newcomer, NULL)), 0);
	ck_ok(truncate(fabric_file(files[_i / 3]), sizes[_i % 3]));
	ck_assert_int_eq(reap_child(spawn(newcomer, NULL)), 0);
}
END_TEST

/* ------------------------------------------------------------ CQs */

/* Map the shared part of the CQs of n's context. */
static struct urxe_cq_sh *shared_cqs(const struct node *n)
{
	struct urxe_arena *a;

	a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED,
		 n->ctx->cmd_fd, 0);
	ck_assert_ptr_ne(a, MAP_FAILED);
	return a->cq;
}

/*
 * Poll until IBV_EVENT_CQ_ERR: polling has to detect the damage, and each
 * call has to return.
 */
static void poll_until_error(struct node *n)
{
	struct ibv_async_event ev;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 1000; i++)
		ck_assert_int_ge(ibv_poll_cq(n->scq, 1, &wc), 0);
	ev = wait_async(n->ctx, true);
	ck_assert_int_eq(ev.event_type, IBV_EVENT_CQ_ERR);
	ck_assert_ptr_eq(ev.element.cq, n->scq);
}

static void write_some(struct duo *d, int n)
{
	while (n--)
		ck_ok(post(d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
}

/*
 * head_seen is damaged, so that producers overwrite completions that were not
 * polled.
 */
START_TEST(completions_overwritten)
{
	struct opts o = default_opts();
	struct urxe_cq_sh *cq;
	struct duo d;
	int i;

	o.cqe = 8;
	o.cap.max_send_wr = 32;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	cq = shared_cqs(&d.a);
	write_some(&d, d.a.scq->cqe);
	for (i = 0; i < 4; i++)
		atomic_store(&cq[i].head_seen[0],
			     atomic_load(&cq[i].tail_hint[0]));
	write_some(&d, 2);
	poll_until_error(&d.a);
	duo_close(&d);
}
END_TEST

/* The shared head is damaged, as if another thread had polled. */
START_TEST(damaged_head)
{
	struct opts o = default_opts();
	struct urxe_cq_sh *cq;
	struct duo d;
	int i;

	o.cap.max_send_wr = 32;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	cq = shared_cqs(&d.a);
	write_some(&d, 4);
	for (i = 0; i < 4; i++)
		atomic_fetch_add(&cq[i].head[0], 1 + 7 * _i);
	poll_until_error(&d.a);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("damage");

	add(s, garbage_in_a_channel);
	add(s, garbage_among_async_events);
	add_loop(s, files_removed_in_use, 3);
	add_loop(s, file_truncated, 6);
	add_loop(s, completions_overwritten, WHERE_COUNT);
	add_loop(s, damaged_head, 2);
	return run(s);
}
