// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * stalls CASE: a server and a client, its child.  One of them waits for
 * something, depending on the case; why.py checks that "urxe why" names the
 * cause.  When the state is reached, one line of JSON on stdout has the pids,
 * QP and CQ numbers of both.
 *
 * Lines on stdin: "go" makes the awaited thing happen, "kill" kills the
 * client.  EOF ends both processes.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define LEN 65536
#define PSN 1000
#define ENTRIES 16
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp, *loop; /* loop: connected to itself */
	union ibv_gid gid;
	uint8_t sgid_index;
	int sock;
};

/* Identifiers for the other process and for the test. */
struct name {
	int pid;
	uint32_t qpn, rkey, cq;
	uint64_t addr;
};

struct stall {
	const char *name;
	void (*client)(struct end *e, const struct name *peer);
	/* NULL: nothing to do, or nothing after the QP was connected */
	void (*server)(struct end *e, const struct name *peer);
	void (*go)(struct end *e, const struct name *peer);
	uint32_t psn; /* error of the server's expected PSN */
	uint8_t timeout;
	enum ibv_qp_state server_state; /* 0: RTS */
	bool channel, other, traced;
	uint8_t sgid_index; /* the server's; index 1 is a GID of RoCE v2 */
	bool later; /* the client starts at "go" */
};

static char memory[LEN] __attribute__((aligned(4096)));

/* ---------------------------------------------------------- objects */

static struct ibv_qp *make_qp(struct end *e)
{
	struct ibv_qp_init_attr a = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { .max_send_wr = ENTRIES,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &a);

	CHECK(qp);
	return qp;
}

static void end_open(struct end *e, const struct stall *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	e->ctx = ibv_open_device(list[0]);
	CHECK(e->ctx && !ibv_query_gid(e->ctx, 1, 0, &e->gid));
	ibv_free_device_list(list);
	e->pd = ibv_alloc_pd(e->ctx);
	if (s->channel)
		e->channel = ibv_create_comp_channel(e->ctx);
	e->cq = ibv_create_cq(e->ctx, ENTRIES, NULL, e->channel, 0);
	e->mr = ibv_reg_mr(e->pd, memory, LEN, ACCESS);
	CHECK(e->pd && e->cq && e->mr);
	e->qp = make_qp(e);
	e->loop = make_qp(e);
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = ACCESS };

	CHECK(!ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS));
}

static void to_rts(struct end *e, struct ibv_qp *qp, uint32_t dest,
		   uint32_t rq_psn, uint8_t timeout)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = rq_psn,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1 },
		.sq_psn = PSN,
		.timeout = timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};

	a.ah_attr.grh.dgid = e->gid;
	a.ah_attr.grh.sgid_index = e->sgid_index;
	CHECK(!ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC));
}

static int post(struct ibv_qp *qp, const struct end *e, const struct name *peer,
		enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t length,
		unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)memory, length, e->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = flags,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer->addr;
		wr.wr.atomic.rkey = peer->rkey;
	} else {
		wr.wr.rdma.remote_addr = peer->addr;
		wr.wr.rdma.rkey = peer->rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

static void post_write(struct end *e, const struct name *peer, uint64_t wr_id)
{
	CHECK(!post(e->qp, e, peer, IBV_WR_RDMA_WRITE, wr_id, 8,
		    IBV_SEND_SIGNALED));
}

static void post_recv(struct end *e, const struct name *peer)
{
	struct ibv_sge sge = { (uintptr_t)memory, LEN, e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	(void)peer;
	CHECK(!ibv_post_recv(e->qp, &wr, &bad));
}

static void modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
}

/* ---------------------------------------------------------- cases */

static void send_one(struct end *e, const struct name *peer)
{
	CHECK(!post(e->qp, e, peer, IBV_WR_SEND, 77, 8, IBV_SEND_SIGNALED));
}

static void send_three(struct end *e, const struct name *peer)
{
	send_one(e, peer);
	send_one(e, peer);
	send_one(e, peer);
}

static void drain(struct end *e, const struct name *peer)
{
	modify(e->qp, IBV_QPS_SQD);
	send_one(e, peer);
}

static void fill_unsignaled(struct end *e, const struct name *peer)
{
	while (!post(e->qp, e, peer, IBV_WR_RDMA_WRITE, 1, 8, 0))
		;
}

static void fill_unpolled(struct end *e, const struct name *peer)
{
	while (!post(e->qp, e, peer, IBV_WR_RDMA_WRITE, 1, 8,
		     IBV_SEND_SIGNALED))
		;
}

static void overrun(struct end *e, const struct name *peer)
{
	struct ibv_qp *qp[2] = { e->qp, e->loop };
	struct name own = { .addr = (uintptr_t)memory, .rkey = e->mr->rkey };
	int i;

	to_init(e->loop);
	to_rts(e, e->loop, e->loop->qp_num, PSN, 14);
	for (i = 0; i < 2 * ENTRIES; i++)
		post(qp[i % 2], e, i % 2 ? &own : peer, IBV_WR_RDMA_WRITE, 1, 8,
		     IBV_SEND_SIGNALED);
}

/*
 * Fill the send queue of the QP that is connected to itself, after one WR
 * that was polled.
 */
static void fill_own(struct end *e, unsigned int flags)
{
	struct name own = { .addr = (uintptr_t)memory, .rkey = e->mr->rkey };
	struct ibv_wc wc;

	to_init(e->loop);
	to_rts(e, e->loop, e->loop->qp_num, PSN, 14);
	CHECK(!post(e->loop, e, &own, IBV_WR_RDMA_WRITE, 1, 8,
		    IBV_SEND_SIGNALED));
	while (!ibv_poll_cq(e->cq, 1, &wc))
		;
	while (!post(e->loop, e, &own, IBV_WR_RDMA_WRITE, 1, 8, flags))
		;
}

static void fill_own_unsignaled(struct end *e, const struct name *peer)
{
	(void)peer;
	fill_own(e, 0);
}

static void fill_own_unpolled(struct end *e, const struct name *peer)
{
	(void)peer;
	fill_own(e, IBV_SEND_SIGNALED);
}

static void write_twice(struct end *e, const struct name *peer)
{
	post_write(e, peer, 5);
	post_write(e, peer, 6);
}

/* The bug: the CQ is not armed. */
static void write_and_sleep(struct end *e, const struct name *peer)
{
	struct ibv_cq *cq;
	void *context;

	write_twice(e, peer);
	CHECK(send(e->sock, "", 1, 0) == 1);
	ibv_get_cq_event(e->channel, &cq, &context);
}

static void write_and_wake(struct end *e, const struct name *peer)
{
	CHECK(!ibv_req_notify_cq(e->cq, 0));
	write_twice(e, peer);
}

static void write_unsolicited(struct end *e, const struct name *peer)
{
	CHECK(!ibv_req_notify_cq(e->cq, 1));
	write_twice(e, peer);
}

/* Moderation of 10 completions without a period; only two arrive. */
static void write_moderated(struct end *e, const struct name *peer)
{
	struct ibv_modify_cq_attr a = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					.moderate = { .cq_count = 10 } };

	CHECK(!ibv_modify_cq(e->cq, &a));
	write_and_wake(e, peer);
}

/*
 * The process stops, with its service thread, before the WRs complete: why.py
 * uses the adversary's option "complete" to delay them.
 */
static void write_and_stop(struct end *e, const struct name *peer)
{
	post_write(e, peer, 5);
	post_write(e, peer, 6);
	CHECK(send(e->sock, "", 1, 0) == 1);
	raise(SIGSTOP);
}

static void write_long(struct end *e, const struct name *peer)
{
	CHECK(!post(e->qp, e, peer, IBV_WR_RDMA_WRITE, 5, LEN, 0));
}

static void fetch_add(struct end *e, const struct name *peer)
{
	post(e->qp, e, peer, IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 8, 0);
}

/* Atomic on the same word, by a QP that is connected to itself. */
static void fetch_add_own(struct end *e, const struct name *peer)
{
	struct name own = { .addr = (uintptr_t)memory, .rkey = e->mr->rkey };

	(void)peer;
	to_init(e->loop);
	to_rts(e, e->loop, e->loop->qp_num, PSN, 0);
	CHECK(!post(e->loop, e, &own, IBV_WR_ATOMIC_FETCH_AND_ADD, 9, 8, 0));
}

static void nothing(struct end *e, const struct name *peer)
{
	(void)e;
	(void)peer;
}

static void destroy(struct end *e, const struct name *peer)
{
	(void)peer;
	CHECK(!ibv_destroy_qp(e->qp));
}

static void to_error(struct end *e, const struct name *peer)
{
	(void)peer;
	modify(e->qp, IBV_QPS_ERR);
}

static void to_rts_later(struct end *e, const struct name *peer)
{
	to_rts(e, e->qp, peer->qpn, PSN, 14);
}

static void stop_itself(struct end *e, const struct name *peer)
{
	(void)e;
	(void)peer;
	raise(SIGSTOP);
}

/*
 * An invalid lkey moves this QP to the error state; the peer gets no message.
 */
static void write_wrong(struct end *e, const struct name *peer)
{
	struct ibv_mr *mr = e->mr, wrong = { .lkey = mr->lkey ^ 0x7f00 };

	e->mr = &wrong;
	CHECK(!post(e->qp, e, peer, IBV_WR_RDMA_WRITE, 8, 8, 0));
	e->mr = mr;
}

static void write_on(struct end *e, const struct name *peer)
{
	struct ibv_wc wc;
	uint64_t i;

	for (i = 0;; i++) {
		post_write(e, peer, i);
		CHECK(ibv_poll_cq(e->cq, 1, &wc) == 1 && !wc.status);
		if (i == 1000)
			CHECK(send(e->sock, "", 1, 0) == 1);
	}
}

/* -------------------------------------------------- calls that block */

static void say_ready(const struct end *e)
{
	CHECK(send(e->sock, "", 1, 0) == 1);
}

static void sleep_armed(struct end *e, const struct name *peer)
{
	struct ibv_cq *cq;
	void *context;

	(void)peer;
	CHECK(!ibv_req_notify_cq(e->cq, 0));
	say_ready(e);
	ibv_get_cq_event(e->channel, &cq, &context);
}

static void sleep_async(struct end *e, const struct name *peer)
{
	struct ibv_async_event event;

	(void)peer;
	say_ready(e);
	ibv_get_async_event(e->ctx, &event);
}

/* The bug, from here on: the event is not acknowledged. */
static void destroy_cq(struct end *e, const struct name *peer)
{
	struct ibv_cq *cq;
	void *context;

	write_and_wake(e, peer);
	CHECK(!ibv_get_cq_event(e->channel, &cq, &context));
	CHECK(!ibv_destroy_qp(e->qp) && !ibv_destroy_qp(e->loop));
	say_ready(e);
	ibv_destroy_cq(e->cq);
}

static void await_async(struct end *e, enum ibv_event_type type)
{
	struct ibv_async_event event;

	CHECK(!ibv_get_async_event(e->ctx, &event));
	CHECK(event.event_type == type);
}

static void destroy_qp(struct end *e, const struct name *peer)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD,
				 .en_sqd_async_notify = 1 };

	(void)peer;
	CHECK(!ibv_modify_qp(e->qp, &a,
			     IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	await_async(e, IBV_EVENT_SQ_DRAINED);
	say_ready(e);
	ibv_destroy_qp(e->qp);
}

static void destroy_srq(struct end *e, const struct name *peer)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4,
							.max_sge = 1 } };
	struct ibv_qp_init_attr a = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_sge sge = { (uintptr_t)memory, LEN, e->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_srq *srq = ibv_create_srq(e->pd, &srq_attr);
	struct ibv_qp *qp;

	a.srq = srq;
	qp = ibv_create_qp(e->pd, &a);
	CHECK(srq && qp);
	CHECK(!ibv_post_srq_recv(srq, &wr, &bad));
	CHECK(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	to_init(qp);
	to_rts(e, qp, qp->qp_num, PSN, 14);
	CHECK(!post(qp, e, peer, IBV_WR_SEND, 1, 8, 0));
	await_async(e, IBV_EVENT_SRQ_LIMIT_REACHED);
	CHECK(!ibv_destroy_qp(qp));
	say_ready(e);
	ibv_destroy_srq(srq);
}

static void *deregister(void *mr)
{
	ibv_dereg_mr(mr);
	return NULL;
}

/* Deregister the MR while the client is in the middle of a WRITE to it. */
static void deregister_aside(struct end *e, const struct name *peer)
{
	pthread_t thread;

	(void)peer;
	CHECK(!pthread_create(&thread, NULL, deregister, e->mr));
}

/* A WR fails and its QP is destroyed; "go" destroys the server's QP, too. */
static void write_refused(struct end *e, const struct name *peer)
{
	struct name wrong = *peer;
	struct ibv_wc wc;

	wrong.rkey ^= 0xff;
	post_write(e, &wrong, 21);
	while (!ibv_poll_cq(e->cq, 1, &wc))
		;
	CHECK(wc.status == IBV_WC_REM_ACCESS_ERR);
	CHECK(!ibv_destroy_qp(e->qp));
}

static const struct stall stalls[] = {
	{ "rnr", send_three, .go = post_recv },
	{ "init", send_one, .server_state = IBV_QPS_INIT, .go = to_rts_later },
	{ "err", send_one, .server = to_error },
	{ "gone", send_one, .server = destroy },
	{ "psn", send_one, .psn = 5 },
	{ "other", send_one, .other = true },
	{ "roce", send_one, .sgid_index = 1 },
	{ "later", send_one, .later = true },
	{ "sqd", drain, .timeout = 14 },
	{ "unsignaled", fill_unsignaled, .timeout = 14 },
	{ "unpolled", fill_unpolled, .timeout = 14 },
	{ "own-unsignaled", fill_own_unsignaled, .timeout = 14 },
	{ "own-unpolled", fill_own_unpolled, .timeout = 14 },
	{ "overrun", overrun, .timeout = 14 },
	{ "unread", write_twice, .timeout = 14 },
	{ "unarmed", write_and_sleep, .channel = true, .timeout = 14 },
	{ "event", write_and_wake, .channel = true, .timeout = 14 },
	{ "solicited", write_unsolicited, .channel = true, .timeout = 14 },
	{ "moderated", write_moderated, .channel = true, .timeout = 14 },
	{ "receives", nothing, .server = post_recv, .timeout = 14 },
	{ "broken", post_recv, .timeout = 14, .go = write_wrong },
	{ "traffic", write_on, .timeout = 14 },
	{ "stopped", nothing, .timeout = 14, .go = stop_itself },
	{ "flight", write_and_stop, .timeout = 14 },
	{ "call", write_long, .traced = true, .timeout = 14,
	  .go = deregister_aside },
	{ "armed", sleep_armed, .channel = true, .timeout = 14 },
	{ "async", sleep_async, .timeout = 14 },
	{ "destroy-cq", destroy_cq, .channel = true, .timeout = 14 },
	{ "destroy-qp", destroy_qp, .timeout = 14 },
	{ "destroy-srq", destroy_srq, .timeout = 14 },
	{ "failed", write_refused, .timeout = 14, .go = destroy },
	{ "atomic", fetch_add, .traced = true, .timeout = 14,
	  .go = fetch_add_own },
};

/* ---------------------------------------------------------- running */

static struct name end_name(const struct end *e)
{
	return (struct name){ .pid = getpid(),
			      .qpn = e->qp->qp_num,
			      .rkey = e->mr->rkey,
			      .cq = e->cq->handle,
			      .addr = (uintptr_t)memory };
}

static void client(const struct stall *s, int sock)
{
	struct end e = { .sock = sock };
	struct name own, peer;
	char go;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "stall-client");
	end_open(&e, s);
	own = end_name(&e);
	CHECK(send(sock, &own, sizeof(own), 0) == sizeof(own));
	CHECK(recv(sock, &peer, sizeof(peer), 0) == sizeof(peer));
	to_init(e.qp);
	to_rts(&e, e.qp, peer.qpn, PSN, s->timeout);
	if (s->later || s->traced) {
		CHECK(send(sock, "", 1, 0) == 1);
		CHECK(recv(sock, &go, 1, 0) == 1);
	}
	s->client(&e, &peer);
	CHECK(send(sock, "", 1, 0) == 1);
	pause();
}

static bool trace_step(pid_t pid, int request)
{
	int status;

	return !ptrace(request, pid, 0, 0) &&
	       waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status);
}

/*
 * Run the client until it enters process_vm_writev() to write to this
 * process.
 */
static void trace_to_copy(pid_t pid)
{
	struct __ptrace_syscall_info info;

	do {
		CHECK(trace_step(pid, PTRACE_SYSCALL));
		memset(&info, 0, sizeof(info));
		CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info),
			     &info) > 0);
	} while (info.op != PTRACE_SYSCALL_INFO_ENTRY ||
		 info.entry.nr != SYS_process_vm_writev);
}

static void trace(const struct end *e, pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) {
		printf("skip: ptrace: %s\n", strerror(errno));
		exit(SKIP);
	}
	CHECK(trace_step(pid, PTRACE_INTERRUPT));
	CHECK(send(e->sock, "", 1, 0) == 1);
	trace_to_copy(pid);
}

static void server_connect(struct end *e, const struct stall *s,
			   const struct name *peer)
{
	if (s->server_state != IBV_QPS_RESET && s->server_state != IBV_QPS_INIT)
		return;
	to_init(e->qp);
	e->sgid_index = s->sgid_index;
	if (s->server_state != IBV_QPS_INIT)
		to_rts(e, e->qp, s->other ? e->qp->qp_num : peer->qpn,
		       PSN + s->psn, 14);
}

static void say(const struct name *server, const struct name *client)
{
	printf("{\"server\": {\"pid\": %d, \"qpn\": %u, \"cq\": %u}, "
	       "\"client\": {\"pid\": %d, \"qpn\": %u, \"cq\": %u}}\n",
	       server->pid, server->qpn, server->cq, client->pid, client->qpn,
	       client->cq);
	fflush(stdout);
}

static void serve(const struct stall *s, int sock, pid_t pid)
{
	struct end e = { .sock = sock };
	struct name own, peer;
	char line[16], c;

	prctl(PR_SET_NAME, "stall-server");
	end_open(&e, s);
	own = end_name(&e);
	CHECK(recv(sock, &peer, sizeof(peer), 0) == sizeof(peer));
	server_connect(&e, s, &peer);
	if (s->server)
		s->server(&e, &peer);
	CHECK(send(sock, &own, sizeof(own), 0) == sizeof(own));
	CHECK(recv(sock, &c, 1, 0) == 1);
	if (s->traced)
		trace(&e, pid);
	say(&own, &peer);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "kill\n")) {
			kill(pid, SIGKILL);
			CHECK(waitpid(pid, NULL, 0) == pid);
		} else if (s->later) {
			CHECK(send(sock, "", 1, 0) == 1);
			CHECK(recv(sock, &c, 1, 0) == 1);
		} else if (s->go) {
			s->go(&e, &peer);
		}
		printf("done\n");
		fflush(stdout);
	}
	kill(pid, SIGKILL);
}

int main(int argc, char **argv)
{
	const struct stall *s = stalls;
	int sock[2];
	pid_t pid;

	CHECK(argc == 2);
	while (strcmp(s->name, argv[1]))
		CHECK(++s < stalls + sizeof(stalls) / sizeof(*stalls));
	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		serve(s, sock[0], pid);
	else
		client(s, sock[1]);
	return 0;
}
