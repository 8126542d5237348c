// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Outstanding WRs whose buffers overlap, locally or at the peer */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"

static int child_socket; /* to the second process, in cases that need one */

/* ------------------------------------------------------- two targets */

static void recv_overlap(void)
{
	receive(4096, 64);
	receive(wrong ? 4096 + 32 : 4096 + 64, 64);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	done(4);
}

static void recv_shared(void)
{
	receive(4096, 64);
	receive(wrong ? 4096 : 8192, 64);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	done(4);
}

/* Two READs of different data to one buffer */
static void read_overlap(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_READ, wrong ? 0 : 64, 64, 64, IBV_SEND_SIGNALED);
	done(2);
}

static void read_recv_overlap(void)
{
	receive(4096, 64);
	request(a, IBV_WR_RDMA_READ, wrong ? 4096 : 0, 64, 0,
		IBV_SEND_SIGNALED);
	done(1);
	request(a, IBV_WR_SEND, 0, 8, 0, IBV_SEND_SIGNALED);
	done(2);
}

/* WRITEs of two QPs are not ordered. */
static void remote_overlap(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(c, IBV_WR_RDMA_WRITE, 64, 8, 56, IBV_SEND_SIGNALED);
	/* WRITEs of one QP are ordered */
	request(c, IBV_WR_RDMA_WRITE, 128, 8, 56, IBV_SEND_SIGNALED);
	done(wrong ? 3 : 2);
}

/* The same with an atomic WRITE */
static void remote_overlap_atomic(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	/* IBV_WR_ATOMIC_WRITE, which old headers lack */
	request(c, (enum ibv_wr_opcode)15, 64, 8, 56, IBV_SEND_SIGNALED);
	done(wrong ? 2 : 1);
}

/*
 * The same in two processes: the child WRITEs to the same memory.  The
 * corrected child polls before it sends a message over the socket.
 */
struct place {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static void child_writes(int s)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED };
	struct place to;
	char byte = 0;

	device_open();
	sge = sge_of(0, 64);
	a = qp_make(IBV_QPT_RC);
	need(write(s, &a->qp_num, 4) == 4);
	need(read(s, &to, sizeof(to)) == sizeof(to));
	qp_connect(a, to.qpn);
	need(write(s, &byte, 1) == 1);
	need(read(s, &byte, 1) == 1);
	wr.wr.rdma.rkey = to.rkey;
	wr.wr.rdma.remote_addr = to.addr;
	need(!ibv_post_send(a, &wr, &bad));
	if (!wrong)
		done(1);
	need(write(s, &byte, 1) == 1);
	need(read(s, &byte, 1) == 1);
	if (wrong)
		done(1);
	device_close();
}

static void remote_overlap_processes(void)
{
	struct ibv_qp *end = qp_make(IBV_QPT_RC);
	struct place to = { end->qp_num, their_mr->rkey, (uintptr_t)theirs };
	uint32_t qpn;
	int status;
	char byte;

	need(read(child_socket, &qpn, 4) == 4);
	qp_connect(end, qpn);
	need(write(child_socket, &to, sizeof(to)) == sizeof(to));
	need(read(child_socket, &byte, 1) == 1);
	need(write(child_socket, &byte, 1) == 1);
	need(read(child_socket, &byte, 1) == 1);
	/* to other memory: no overlap */
	request(a, IBV_WR_RDMA_WRITE, 64, 8, 4096, IBV_SEND_SIGNALED);
	done(1);
	request(a, IBV_WR_RDMA_WRITE, 64, 8, 60, IBV_SEND_SIGNALED);
	done(1);
	need(write(child_socket, &byte, 1) == 1);
	need(wait(&status) > 0 && !status);
}

/* ------------------------------------------------------- one is read */

/* The data of a READ is sent. */
static void fence(void)
{
	receive(4096, 64);
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_SEND, 32, 64, 0,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(3);
}

static void fence_atomic(void)
{
	request(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_WRITE, 0, 8, 64,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(2);
}

/* A fence does not delay the copy of inline data. */
static void fence_inline(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 32, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(a, IBV_WR_RDMA_WRITE, 0, 32, 64,
		IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_INLINE);
	done(wrong ? 2 : 1);
}

/* A fence does not wait for a READ of another QP. */
static void fence_other_qp(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(c, IBV_WR_RDMA_WRITE, 0, 64, 128,
		IBV_SEND_SIGNALED | IBV_SEND_FENCE);
	done(wrong ? 2 : 1);
}

/* The source of a READ is overwritten. */
static void write_after_read(void)
{
	request(a, IBV_WR_RDMA_READ, 0, 64, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_WRITE, 512, 8, 8,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(2);
}

static void write_after_atomic(void)
{
	request(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0, IBV_SEND_SIGNALED);
	request(a, IBV_WR_RDMA_WRITE, 512, 64, 0,
		IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE));
	done(2);
}

/* A READ of another QP to the source of an outstanding WRITE */
static void read_over_source(void)
{
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	request(c, IBV_WR_RDMA_READ, 0, 64, 128, IBV_SEND_SIGNALED);
	done(wrong ? 2 : 1);
}

/* The buffer of a receive is the source of an outstanding SEND. */
static void recv_over_source(void)
{
	receive(0, 64);
	request(a, IBV_WR_SEND, wrong ? 0 : 64, 64, 0, IBV_SEND_SIGNALED);
	done(2);
}

/* ------------------------------------------------------- no mistakes */

/* One buffer for all messages, which are equal, as in pingpong programs */
static void one_buffer(void)
{
	int i;

	for (i = 0; i < 8; i++)
		receive(0, 64);
	for (i = 0; i < 8; i++)
		request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	done(16);
}

/* Unused results of atomics, and READs that only confirm a WRITE */
static void one_result(void)
{
	struct ibv_qp *c, *d;
	int i;

	pair_make(&c, &d);
	for (i = 0; i < 4; i++)
		request(i & 1 ? a : c, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, 0,
			IBV_SEND_SIGNALED);
	done(4);
	for (i = 0; i < 4; i++)
		request(a, IBV_WR_RDMA_READ, 0, 8, 64 * (size_t)i,
			IBV_SEND_SIGNALED);
	done(4);
	for (i = 0; i < 4; i++)
		request(a, IBV_WR_RDMA_READ, 0, 4096, 0, IBV_SEND_SIGNALED);
	done(4);
}

/*
 * The peer confirms that a WRITE of one QP has arrived, so a later WRITE of
 * another QP is ordered after it, although the first one was not polled.
 */
static void in_turn(void)
{
	struct ibv_sge sge = sge_of(4096, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp *c, *d;

	pair_make(&c, &d);
	need(!ibv_post_recv(c, &wr, &bad));
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, 0);
	request(d, IBV_WR_SEND, 8192, 64, 0, IBV_SEND_SIGNALED);
	done(2);
	request(c, IBV_WR_RDMA_WRITE, 64, 8, 56, IBV_SEND_SIGNALED);
	done(1);
}

/* ------------------------------------------------------- cases */

static void child_start(void)
{
	int s[2];

	need(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s));
	if (!fork()) {
		alarm(60);
		child_writes(s[1]);
		_exit(EXIT_SUCCESS);
	}
	close(s[1]);
	child_socket = s[0];
}

static const struct device_case cases[] = {
	DEVICE_CASE("targets-overlap+receives", recv_overlap),
	DEVICE_CASE("targets-overlap+reads", read_overlap),
	DEVICE_CASE("targets-overlap+both", read_recv_overlap),
	DEVICE_CASE("targets-shared+receives", recv_shared),
	DEVICE_CASE("remote-overlap+qps", remote_overlap),
	DEVICE_CASE("remote-overlap+atomic", remote_overlap_atomic),
	{ "remote-overlap+processes", remote_overlap_processes, child_start },
	DEVICE_CASE("fence-missing+read", fence),
	DEVICE_CASE("fence-missing+atomic", fence_atomic),
	DEVICE_CASE("fetch-not-done+inline", fence_inline),
	DEVICE_CASE("fetch-not-done+qps", fence_other_qp),
	DEVICE_CASE("write-after-read+read", write_after_read),
	DEVICE_CASE("write-after-read+atomic", write_after_atomic),
	DEVICE_CASE("source-fetched+read", read_over_source),
	DEVICE_CASE("source-received+receive", recv_over_source),
	DEVICE_CASE("none+one_buffer", one_buffer),
	DEVICE_CASE("none+one_result", one_result),
	DEVICE_CASE("none+in_turn", in_turn),
	DEVICE_CASE(NULL, NULL),
};

int main(int argc, char **argv)
{
	return device_main(argc, argv, cases);
}
