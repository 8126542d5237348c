// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Buffers of outstanding WRs that are changed or unmapped.  By chance the
 * device may still transfer the data that these programs expect.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"

/* ------------------------------------------------------- mistakes */

static void source_send(void)
{
	receive(4096, 64);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[17] = 1;
	done(2);
	mine[18] = 1;
}

/* The completion of a WR also completes earlier, unsignaled WRs. */
static void source_unsignaled(void)
{
	request(a, IBV_WR_RDMA_WRITE, 0, 4096, 0, 0);
	request(a, IBV_WR_RDMA_WRITE, 8192, 8, 8192, 0);
	if (wrong)
		mine[4095] = 1;
	request(a, IBV_WR_RDMA_WRITE, 8192, 8, 8192, IBV_SEND_SIGNALED);
	done(1);
	mine[0] = 1;
}

/* The same with ibv_wr_start and ibv_wr_complete */
static void source_wr_api(void)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a);
	struct ibv_sge sge[2] = { sge_of(0, 8), sge_of(512, 40) };

	receive(4096, 64);
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, sge);
	need(!ibv_wr_complete(ex));
	if (wrong)
		mine[512 + 39] = 1;
	done(2);
}

/* One buffer for all WRs, and the CQ is never polled */
static void source_again(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (wrong)
			mine[0] = (char)i;
		request(a, IBV_WR_RDMA_WRITE, 0, 16, 0, 0);
	}
}

/*
 * b has received a message of a, and a the response; the sends are not
 * polled.
 */
static void answered(void)
{
	struct ibv_sge sge = sge_of(8192, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	receive(4096, 64);
	need(!ibv_post_recv(a, &wr, &bad));
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	received(1);
	request(b, IBV_WR_SEND, 16384, 64, 0, IBV_SEND_SIGNALED);
	received(1);
}

static void source_answered(void)
{
	answered();
	if (wrong)
		mine[0] = 1;
	done_of(cq, NULL, 2);
}

static void freed_answered(void)
{
	answered();
	if (wrong)
		need(!munmap(mine, 4096));
	done_of(cq, NULL, 2);
}

/* Peers may write to the buffer, but none did. */
static void source_open(void)
{
	struct ibv_mr *was = my_mr;
	char *where = mine;

	my_mr = their_mr;
	mine = theirs;
	request(b, IBV_WR_RDMA_WRITE, 128, 8, 256, IBV_SEND_SIGNALED);
	done(1);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 4096, IBV_SEND_SIGNALED);
	if (wrong)
		theirs[9] = 1;
	done(1);
	my_mr = was;
	mine = where;
}

/* The same after the device was closed and opened again */
static void source_reopened(void)
{
	void *hole[128];
	size_t i;

	device_close();
	srq = NULL;
	/* new objects are not at the addresses of old ones */
	for (i = 0; i < 128; i++)
		need(hole[i] = malloc(64 * (i + 1)));
	device_open();
	pair_make(&a, &b);
	source_open();
	for (i = 0; i < 128; i++)
		free(hole[i]);
}

/* Inline data is copied before the call returns. */
static void source_inline(void)
{
	unsigned int inl = wrong ? 0 : IBV_SEND_INLINE;

	request(a, IBV_WR_RDMA_WRITE, 0, 32, 0, IBV_SEND_SIGNALED | inl);
	mine[0] = 1;
	done(1);
}

static void source_dm(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);
	struct ibv_mr *mr, *was = my_mr;
	char *where = mine;
	uint64_t one = 1;

	need(dm);
	mr = ibv_reg_dm_mr(pd, dm, 0, 4096, LOCAL | IBV_ACCESS_ZERO_BASED);
	need(mr);
	my_mr = mr;
	mine = NULL;
	request(a, IBV_WR_RDMA_WRITE, 64, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		need(!ibv_memcpy_to_dm(dm, 80, &one, 8));
	done(1);
	my_mr = was;
	mine = where;
	need(!ibv_dereg_mr(mr) && !ibv_free_dm(dm));
}

static void source_freed(void)
{
	request(a, IBV_WR_RDMA_WRITE, 8192, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		need(!munmap(mine + 8192, 4096));
	done(1);
}

/* The memory of an MR is unmapped before a WR that uses it is posted. */
static void unmap_and_post(enum ibv_wr_opcode opcode)
{
	struct ibv_wc wc;

	if (wrong)
		need(!munmap(mine + 8192, 4096));
	request(a, opcode, wrong ? 8192 : 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	else
		need(ibv_poll_cq(cq, 1, &wc) == 1 &&
		     wc.status == IBV_WC_LOC_PROT_ERR);
}

static void unmapped(void)
{
	unmap_and_post(IBV_WR_RDMA_WRITE);
}

static void read_unmapped(void)
{
	unmap_and_post(IBV_WR_RDMA_READ);
}

/* A buffer is cleared although a message may have arrived in it. */
static void recv_cleared(void)
{
	memset(mine + 4096, 7, 256);
	if (!wrong)
		memset(mine + 4096, 0, 256);
	receive(4096, 256);
	if (wrong)
		memset(mine + 4096, 0, 256);
	request(a, IBV_WR_SEND, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
	memset(mine + 4096, 9, 256);
}

/* The program writes to the unused end of a receive buffer. */
static void recv_touched(void)
{
	receive(4096, 256);
	if (wrong)
		mine[4096 + 200] = 1;
	request(a, IBV_WR_SEND, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
}

static void recv_cleared_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8,
						    .max_sge = 2 } };

	while (num_qps)
		need(!ibv_destroy_qp(qps[--num_qps]));
	srq = ibv_create_srq(pd, &init);
	need(srq);
	pair_make(&a, &b);
	recv_cleared();
}

static void read_written(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[8] = 1;
	done(1);
	mine[8] = 2;
}

static void atomic_written(void)
{
	request(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 16, 8, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[16] = 1;
	done(1);
}

/*
 * The finding is written to a pipe that is full: only the thread that reports
 * it waits.
 */
static void *source_changes(void *arg)
{
	(void)arg;
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[9] = 1;
	done_of(cq, NULL, 1);
	return NULL;
}

/* Replace stderr by a full pipe.  Return a duplicate of stderr. */
static int pipe_fill(int ends[2])
{
	char much[4096] = { 0 };
	int was = dup(STDERR_FILENO);

	need(was >= 0 && !pipe(ends) && !fcntl(ends[1], F_SETFL, O_NONBLOCK));
	while (write(ends[1], much, sizeof(much)) > 0)
		;
	need(!fcntl(ends[1], F_SETFL, 0));
	need(dup2(ends[1], STDERR_FILENO) >= 0);
	return was;
}

/*
 * The finding is written to URXE_CHECK_FOUND before it is written to stderr.
 */
static bool is_found(void)
{
	struct stat st;

	return !stat(getenv("URXE_CHECK_FOUND"), &st) && st.st_size;
}

static void source_piped(void)
{
	char much[4096];
	pthread_t thread;
	struct ibv_mr *mr;
	int i, ends[2], was = pipe_fill(ends);

	need(!pthread_create(&thread, NULL, source_changes, NULL));
	alarm(60);
	while (wrong && !is_found())
		sched_yield();
	for (i = 0; i < 100; i++) {
		mr = ibv_reg_mr(pd, mine + 4096, 64, LOCAL);
		need(mr && !ibv_dereg_mr(mr));
	}
	for (i = 0; i < 8; i++)
		need(read(ends[0], much, sizeof(much)) > 0);
	pthread_join(thread, NULL);
	need(dup2(was, STDERR_FILENO) >= 0);
	close(was);
	close(ends[0]);
	close(ends[1]);
}

/* A thread with a pending cancellation reports a finding. */
static void *source_of_cancelled(void *is_cancelled)
{
	struct ibv_wc wc = { 0 };

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (wrong)
		mine[9] = 1;
	while (!__atomic_load_n((bool *)is_cancelled, __ATOMIC_ACQUIRE))
		sched_yield();
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return NULL;
}

static void source_cancelled(void)
{
	bool is_cancelled = false;
	pthread_t thread;
	void *ret;

	need(!pthread_create(&thread, NULL, source_of_cancelled,
			     &is_cancelled));
	alarm(60);
	need(!pthread_cancel(thread));
	__atomic_store_n(&is_cancelled, true, __ATOMIC_RELEASE);
	/* PTHREAD_CANCELED would mean that it was cancelled in the poll */
	need(!pthread_join(thread, &ret) && !ret);
}

/* stderr is a pipe without a reader: the program must continue. */
static void source_unread(void)
{
	int ends[2], was = dup(STDERR_FILENO);

	need(was >= 0 && !pipe(ends) && !close(ends[0]));
	need(dup2(ends[1], STDERR_FILENO) >= 0 && !close(ends[1]));
	source_send();
	need(dup2(was, STDERR_FILENO) >= 0 && !close(was));
}

/* ------------------------------------------------------- no mistakes */

/* A peer writes to the source of an outstanding WR, which is permitted. */
static void peer_writes(void)
{
	struct ibv_mr *was = my_mr;
	char *where = mine;

	my_mr = their_mr;
	mine = theirs;
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 4096, IBV_SEND_SIGNALED);
	my_mr = was;
	mine = where;
	mine[0] = 1;
	request(b, IBV_WR_RDMA_WRITE, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
}

/* Each message is shorter than the previous one in the same buffer. */
static void short_messages(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		receive(4096, 4096);
		mine[0] = (char)i;
		request(a, IBV_WR_SEND, 0, 4000 - (uint32_t)i * 999, 0,
			IBV_SEND_SIGNALED);
		done(2);
	}
}

/* Long messages, of which the referee checks only some bytes */
static void long_messages(void)
{
	int i;

	for (i = 0; i < 4; i++) {
		mine[0] = (char)i;
		request(a, IBV_WR_RDMA_WRITE, 0, SIZE, 0, IBV_SEND_SIGNALED);
		done(1);
		request(a, IBV_WR_RDMA_READ, 0, SIZE, 0, IBV_SEND_SIGNALED);
		done(1);
	}
}

/*
 * Messages for two QPs arrive in one SRQ, and their completions are polled in
 * another order.  All receives have the same wr_id.
 */
static void same_wr_id(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8,
						    .max_sge = 2 } };
	struct ibv_cq *was = rcq, *other = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	struct ibv_qp *c, *d;

	srq = ibv_create_srq(pd, &init);
	need(srq && other);
	memset(mine, 1, 4096);
	pair_make(&a, &b);
	rcq = other;
	pair_make(&c, &d);
	rcq = was;
	receive(4096, 4096);
	receive(8192, 4096);
	request(a, IBV_WR_SEND, 0, 8, 0, IBV_SEND_SIGNALED);
	done_of(cq, NULL, 1);
	request(c, IBV_WR_SEND, 0, 4000, 0, IBV_SEND_SIGNALED);
	done_of(cq, NULL, 1);
	done_of(other, NULL, 1);
	done_of(rcq, NULL, 1);
	while (num_qps)
		need(!ibv_destroy_qp(qps[--num_qps]));
	need(!ibv_destroy_cq(other));
}

/*
 * A signal handler may call exit() at any place, most of the time within the
 * referee.  Several children are used, as not each one is in the referee.
 */
static void quit_normally(int sig)
{
	(void)sig;
	exit(3); /* objects left by a failed program are not reported */
}

static void child_works(void)
{
	struct itimerval soon = { .it_value.tv_usec = 50000 };

	device_open();
	pair_make(&a, &b);
	signal(SIGALRM, quit_normally);
	need(!setitimer(ITIMER_REAL, &soon, NULL));
	for (;;) {
		request(a, IBV_WR_RDMA_WRITE, 0, SIZE, 0, IBV_SEND_SIGNALED);
		while (!ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }))
			;
	}
}

static void exit_of_handler(void)
{
	int i, status;

	for (i = 0; i < 8; i++)
		if (!fork())
			child_works();
	alarm(60);
	for (i = 0; i < 8; i++)
		need(wait(&status) > 0 && WIFEXITED(status) &&
		     WEXITSTATUS(status) == 3);
}

/* ------------------------------------------------------- cases */

static void nothing(void)
{
}

static const struct device_case cases[] = {
	DEVICE_CASE("source-changed+send", source_send),
	DEVICE_CASE("source-changed+unsignaled", source_unsignaled),
	DEVICE_CASE("source-changed+wr_api", source_wr_api),
	DEVICE_CASE("source-changed+inline", source_inline),
	DEVICE_CASE("source-changed+dm", source_dm),
	DEVICE_CASE("source-changed+open", source_open),
	DEVICE_CASE("source-changed+again", source_again),
	DEVICE_CASE("source-changed+reopened", source_reopened),
	DEVICE_CASE("source-changed+piped", source_piped),
	DEVICE_CASE("source-changed+cancelled", source_cancelled),
	DEVICE_CASE("source-changed+unread", source_unread),
	DEVICE_CASE("source-reused+answered", source_answered),
	DEVICE_CASE("source-reused+freed", freed_answered),
	DEVICE_CASE("memory-gone+freed", source_freed),
	DEVICE_CASE("memory-gone+unmapped", unmapped),
	DEVICE_CASE("memory-gone+read", read_unmapped),
	DEVICE_CASE("receive-written+cleared", recv_cleared),
	DEVICE_CASE("receive-written+srq", recv_cleared_srq),
	DEVICE_CASE("receive-touched+behind", recv_touched),
	DEVICE_CASE("fetch-written+read", read_written),
	DEVICE_CASE("fetch-written+atomic", atomic_written),
	DEVICE_CASE("none+peer_writes", peer_writes),
	DEVICE_CASE("none+short_messages", short_messages),
	DEVICE_CASE("none+long_messages", long_messages),
	DEVICE_CASE("none+same_wr_id", same_wr_id),
	{ "none+exit_of_handler", nothing, exit_of_handler },
	DEVICE_CASE(NULL, NULL),
};

int main(int argc, char **argv)
{
	return device_main(argc, argv, cases);
}
