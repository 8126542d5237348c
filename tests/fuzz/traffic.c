// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fuzz-traffic SEED MS [clean]
 *
 * Two processes call verbs at random for MS milliseconds, and then destroy
 * everything.  fuzz.c starts it and damages the shared files of the fabric.
 *
 * Until both processes are connected, every verb must succeed.  With `clean`
 * a SEND in each direction must succeed, too.  From then on any verb may
 * fail, but each must return.
 *
 * When both processes are connected, a byte is written to stdout.  The exit
 * status is 0, FUZZ_BUS, or EXIT_FAILURE if a process failed or crashed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "fuzz.h"

#define SIZE 65536 /* of each buffer */
#define DEPTH 32
#define CQE 128
#define QKEY 7

#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)
#define REMOTE                                              \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum { HEAP, MEMFD, DM, MEMS };
enum { RC, RC_SRQ, UC, UD, QPS };

static const enum ibv_qp_type types[QPS] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC,
					     IBV_QPT_UD };

/*
 * Connection data of one process.  It is in anonymous shared memory, which
 * fuzz.c does not damage.
 */
struct told {
	_Atomic int ready; /* 1: objects created; 2: QPs connected */
	uint32_t qpn[QPS];
	uint32_t rkey[MEMS];
	uint64_t base[MEMS];
	union ibv_gid gid;
};

struct page {
	struct told end[2];
	_Atomic uint32_t epoch; /* when it changes, all QPs reconnect */
};

struct end {
	struct page *page;
	struct told *mine, *peer;
	struct dice dice;
	uint32_t epoch;
	uint64_t renewed; /* now_ms() of the last check by renew() */
	bool clean;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *chan;
	struct ibv_cq *scq, *rcq;
	struct ibv_cq_ex *ecq; /* of the UC QP */
	struct ibv_srq *srq;
	struct ibv_qp *qp[QPS];
	struct ibv_ah *ah;
	struct ibv_dm *dm;
	char *buf[MEMS];
	struct ibv_mr *mr[MEMS];
	uint64_t base[MEMS];
	struct ibv_mw *mw;
};

/* Exit with a message if something failed that must succeed. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz-traffic: %s: %s\n", what, strerror(errno));
	_exit(EXIT_FAILURE);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ------------------------------------------------------------ opening */

static void open_device(struct end *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(list && list[0], "no device");
	e->ctx = ibv_open_device(list[0]);
	must(e->ctx, "ibv_open_device");
	ibv_free_device_list(list);
}

static void *map(int fd)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		       fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd,
		       0);

	must(p != MAP_FAILED, "mmap");
	return p;
}

static void open_memory(struct end *e)
{
	struct ibv_alloc_dm_attr attr = { .length = SIZE };
	int i, fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && !ftruncate(fd, SIZE), "memfd");
	e->buf[HEAP] = map(-1);
	e->buf[MEMFD] = map(fd);
	e->dm = ibv_alloc_dm(e->ctx, &attr);
	must(e->dm, "ibv_alloc_dm");
	for (i = HEAP; i <= MEMFD; i++) {
		e->mr[i] = ibv_reg_mr(e->pd, e->buf[i], SIZE, ACCESS);
		e->base[i] = (uintptr_t)e->buf[i];
	}
	e->mr[DM] = ibv_reg_dm_mr(e->pd, e->dm, 0, SIZE,
				  ACCESS | IBV_ACCESS_ZERO_BASED);
	for (i = 0; i < MEMS; i++)
		must(e->mr[i], "ibv_reg_mr");
}

static struct ibv_qp *new_qp(struct end *e, int kind)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = e->scq,
		.recv_cq = kind == UC ? ibv_cq_ex_to_cq(e->ecq) : e->rcq,
		.srq = kind == RC_SRQ ? e->srq : NULL,
		.cap = { DEPTH, DEPTH, 4, 4, 64 },
		.qp_type = types[kind],
	};

	return ibv_create_qp(e->pd, &attr);
}

static struct ibv_srq *new_srq(struct end *e)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = DEPTH, .max_sge = 2 }
	};

	return ibv_create_srq(e->pd, &attr);
}

static void open_end(struct end *e)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = CQE };
	int i;

	open_device(e);
	e->pd = ibv_alloc_pd(e->ctx);
	e->chan = ibv_create_comp_channel(e->ctx);
	must(e->pd && e->chan, "PD and channel");
	fcntl(e->chan->fd, F_SETFL, O_NONBLOCK);
	fcntl(e->ctx->async_fd, F_SETFL, O_NONBLOCK);
	e->scq = ibv_create_cq(e->ctx, CQE, NULL, e->chan, 0);
	e->rcq = ibv_create_cq(e->ctx, CQE, NULL, e->chan, 0);
	ex.wc_flags = IBV_WC_STANDARD_FLAGS;
	e->ecq = ibv_create_cq_ex(e->ctx, &ex);
	must(e->scq && e->rcq && e->ecq, "ibv_create_cq");
	e->srq = new_srq(e);
	must(e->srq, "ibv_create_srq");
	open_memory(e);
	must(!ibv_query_gid(e->ctx, 1, 0, &e->mine->gid), "ibv_query_gid");
	for (i = 0; i < QPS; i++) {
		e->qp[i] = new_qp(e, i);
		must(e->qp[i], "ibv_create_qp");
		e->mine->qpn[i] = e->qp[i]->qp_num;
	}
	for (i = 0; i < MEMS; i++) {
		e->mine->rkey[i] = e->mr[i]->rkey;
		e->mine->base[i] = e->base[i];
	}
}

/*
 * Move the QP through RESET to RTS.  Callers ignore errors once the fabric
 * may be damaged.
 */
static int connect_qp(struct end *e, int kind)
{
	struct ibv_qp *qp = e->qp[kind];
	bool rc = types[kind] == IBV_QPT_RC, ud = types[kind] == IBV_QPT_UD;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };
	int ret, common = IBV_QP_STATE;

	ret = ibv_modify_qp(qp, &a, common);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = rc ? REMOTE : IBV_ACCESS_REMOTE_WRITE,
	};
	ret |= ibv_modify_qp(qp, &a, common | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			     (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = e->peer->qpn[kind],
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e->peer->gid, .hop_limit = 1 } },
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	ret |= ibv_modify_qp(qp, &a,
			     ud ? common :
				  common | IBV_QP_AV | IBV_QP_PATH_MTU |
				  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				  (rc ? IBV_QP_MAX_DEST_RD_ATOMIC |
						IBV_QP_MIN_RNR_TIMER : 0));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 8, /* 1 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	ret |= ibv_modify_qp(qp, &a, common | IBV_QP_SQ_PSN |
			     (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC : 0));
	return ret;
}

static int connect_all(struct end *e)
{
	int i, ret = 0;

	for (i = 0; i < QPS; i++)
		ret |= connect_qp(e, i);
	return ret;
}

/* ------------------------------------------------------------ traffic */

static struct ibv_sge any_sge(struct end *e, uint32_t len)
{
	int mem = (int)roll(&e->dice, MEMS);

	return (struct ibv_sge){
		.addr = e->base[mem] + roll(&e->dice, SIZE / 2) / 8 * 8,
		.length = len,
		.lkey = e->mr[mem] ? e->mr[mem]->lkey : 0,
	};
}

static uint32_t any_length(struct end *e)
{
	static const uint32_t some[] = { 0, 1, 8, 64, 80, 81, 1024, 8192 };

	return some[roll(&e->dice, sizeof(some) / sizeof(*some))];
}

static void post_any_recv(struct end *e)
{
	struct ibv_sge sge[2] = { any_sge(e, 8192), any_sge(e, 64) };
	struct ibv_recv_wr wr = { .sg_list = sge,
				  .num_sge = 1 + (int)roll(&e->dice, 2) },
			   *bad;
	int kind = (int)roll(&e->dice, QPS);

	if (kind == RC_SRQ)
		ibv_post_srq_recv(e->srq, &wr, &bad);
	else if (e->qp[kind])
		ibv_post_recv(e->qp[kind], &wr, &bad);
}

static void set_remote(struct end *e, struct ibv_send_wr *wr)
{
	uint32_t mem = roll(&e->dice, MEMS);
	uint64_t at = e->peer->base[mem] + roll(&e->dice, SIZE / 2) / 8 * 8;

	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->sg_list->length = 8;
		wr->wr.atomic.remote_addr = at;
		wr->wr.atomic.rkey = e->peer->rkey[mem];
		wr->wr.atomic.compare_add = roll(&e->dice, 3);
	} else {
		wr->wr.rdma.remote_addr = at;
		wr->wr.rdma.rkey = e->peer->rkey[mem];
	}
}

static void post_any(struct end *e)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
		IBV_WR_SEND, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_sge sge = any_sge(e, any_length(e));
	struct ibv_send_wr wr = {
		.opcode = ops[roll(&e->dice, sizeof(ops) / sizeof(*ops))],
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = roll(&e->dice, 4) ? IBV_SEND_SIGNALED : 0,
	};
	int kind = (int)roll(&e->dice, QPS);
	struct ibv_send_wr *bad;

	if (!e->qp[kind])
		return;
	if (kind == UD) {
		wr.opcode = IBV_WR_SEND;
		if (sge.length > 1024)
			sge.length = 1024;
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->peer->qpn[UD];
		wr.wr.ud.remote_qkey = QKEY;
	} else if (wr.opcode != IBV_WR_SEND &&
		   wr.opcode != IBV_WR_SEND_WITH_IMM) {
		set_remote(e, &wr);
	}
	ibv_post_send(e->qp[kind], &wr, &bad);
}

/*
 * Every 20 ms: if a QP is not in RTS, increment the epoch.  If the epoch has
 * changed, reconnect all QPs.
 */
static void renew(struct end *e)
{
	uint64_t now = now_ms();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t epoch = e->epoch;
	bool broken = false;
	int i;

	if (now - e->renewed < 20)
		return;
	e->renewed = now;
	for (i = 0; i < QPS; i++)
		broken |= e->qp[i] && !ibv_query_qp(e->qp[i], &attr,
						    IBV_QP_STATE, &init) &&
			  attr.qp_state != IBV_QPS_RTS;
	if (broken)
		cas_seq_cst(&e->page->epoch, &epoch, epoch + 1);
	epoch = load_seq_cst(&e->page->epoch);
	if (epoch == e->epoch)
		return;
	e->epoch = epoch;
	connect_all(e);
}

static int poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, 1, wc);

	if (n == 1)
		(void)ibv_wc_status_str(wc->status);
	return n;
}

static void poll_any(struct end *e)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 16 && poll_one(e->scq, &wc) == 1; i++)
		;
	for (i = 0; i < 16 && poll_one(e->rcq, &wc) == 1; i++)
		;
	if (ibv_start_poll(e->ecq, &attr))
		return;
	do {
		ibv_wc_read_opcode(e->ecq);
		ibv_wc_read_byte_len(e->ecq);
		ibv_wc_read_wc_flags(e->ecq);
	} while (i++ < 64 && !ibv_next_poll(e->ecq));
	ibv_end_poll(e->ecq);
}

static void take_events(struct end *e)
{
	struct ibv_async_event ev;
	struct ibv_cq *cq;
	void *context;
	int i;

	for (i = 0; i < 8 && !ibv_get_cq_event(e->chan, &cq, &context); i++)
		ibv_ack_cq_events(cq, 1);
	for (i = 0; i < 8 && !ibv_get_async_event(e->ctx, &ev); i++)
		ibv_ack_async_event(&ev);
}

static void try_memory(struct end *e)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->buf[HEAP], 4096, ACCESS);
	struct ibv_dm *dm = ibv_alloc_dm(e->ctx, &attr);
	struct ibv_mr *on = NULL;

	if (dm)
		on = ibv_reg_dm_mr(e->pd, dm, 0, 4096,
				   ACCESS | IBV_ACCESS_ZERO_BASED);
	if (on)
		ibv_dereg_mr(on);
	if (dm)
		ibv_free_dm(dm);
	if (mr)
		ibv_dereg_mr(mr);
}

static void try_window(struct end *e)
{
	struct ibv_mw_bind bind = {
		.bind_info = { .mr = e->mr[HEAP],
			       .addr = e->base[HEAP],
			       .length = 4096,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	};

	if (e->mw) {
		ibv_dealloc_mw(e->mw);
		e->mw = NULL;
		return;
	}
	e->mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_1);
	if (e->mw && e->qp[RC])
		ibv_bind_mw(e->qp[RC], e->mw, &bind);
}

/* Create objects and destroy them. */
static void try_objects(struct end *e)
{
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 16, NULL, e->chan, 0);
	struct ibv_qp *qp = new_qp(e, (int)roll(&e->dice, QPS));
	struct ibv_srq *srq = new_srq(e);
	struct ibv_pd *pd = ibv_alloc_pd(e->ctx);

	if (pd)
		ibv_dealloc_pd(pd);
	if (srq)
		ibv_destroy_srq(srq);
	if (qp)
		ibv_destroy_qp(qp);
	if (cq)
		ibv_destroy_cq(cq);
}

static void try_queries(struct end *e)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	struct ibv_srq_attr srq;
	union ibv_gid gid;

	ibv_query_device(e->ctx, &dev);
	ibv_query_port(e->ctx, 1, &port);
	ibv_query_srq(e->srq, &srq);
	ibv_query_gid(e->ctx, 1, (int)roll(&e->dice, 4), &gid);
}

static void try_group(struct end *e)
{
	union ibv_gid gid = { .raw = { 0xff, 0x0e, [15] = 9 } };

	if (!e->qp[UD])
		return;
	if (roll(&e->dice, 2))
		ibv_attach_mcast(e->qp[UD], &gid, 0);
	else
		ibv_detach_mcast(e->qp[UD], &gid, 0);
}

static void resize_any(struct end *e)
{
	struct ibv_srq_attr attr = { .max_wr = 8 + roll(&e->dice, 2 * DEPTH) };

	if (roll(&e->dice, 2))
		ibv_resize_cq(roll(&e->dice, 2) ? e->scq : e->rcq,
			      64 + (int)roll(&e->dice, 256));
	else
		ibv_modify_srq(e->srq, &attr, IBV_SRQ_MAX_WR);
}

/* Call a random verb. */
static void step(struct end *e)
{
	switch (roll(&e->dice, 64)) {
	case 0:
		try_memory(e);
		break;
	case 1:
		try_window(e);
		break;
	case 2:
		try_objects(e);
		break;
	case 3:
		try_queries(e);
		break;
	case 4:
		try_group(e);
		break;
	case 5:
	case 6:
		resize_any(e);
		break;
	case 7 ... 10:
		ibv_req_notify_cq(roll(&e->dice, 2) ? e->scq : e->rcq, 0);
		break;
	case 11 ... 14:
		take_events(e);
		break;
	case 15 ... 24:
		poll_any(e);
		break;
	case 25 ... 40:
		post_any_recv(e);
		break;
	default:
		post_any(e);
	}
	renew(e);
}

/* Exchange a SEND in each direction, in a fabric that was not damaged. */
static void clean_message(struct end *e)
{
	struct ibv_sge sge = { e->base[HEAP], 8, e->mr[HEAP]->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *rbad;
	struct ibv_send_wr send = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	uint64_t end = now_ms() + 60000;
	bool sent = false, received = false;
	struct ibv_wc wc;

	must(!ibv_post_recv(e->qp[RC], &recv, &rbad), "ibv_post_recv");
	must(!ibv_post_send(e->qp[RC], &send, &bad), "ibv_post_send");
	while (!(sent && received) && now_ms() < end) {
		if (poll_one(e->scq, &wc) == 1)
			sent = !wc.status;
		if (poll_one(e->rcq, &wc) == 1)
			received = !wc.status;
	}
	errno = ETIMEDOUT;
	must(sent && received, "a message in a fabric that is as new");
}

/* Destroy everything, whatever the verbs return. */
static void close_end(struct end *e)
{
	int i;

	take_events(e);
	if (e->mw)
		ibv_dealloc_mw(e->mw);
	for (i = 0; i < QPS; i++)
		ibv_destroy_qp(e->qp[i]);
	ibv_destroy_srq(e->srq);
	ibv_destroy_ah(e->ah);
	ibv_destroy_cq(e->scq);
	ibv_destroy_cq(e->rcq);
	ibv_destroy_cq(ibv_cq_ex_to_cq(e->ecq));
	for (i = 0; i < MEMS; i++)
		ibv_dereg_mr(e->mr[i]);
	ibv_free_dm(e->dm);
	ibv_destroy_comp_channel(e->chan);
	ibv_dealloc_pd(e->pd);
	ibv_close_device(e->ctx);
}

static void wait_for(_Atomic int *ready, int stage)
{
	uint64_t end = now_ms() + 60000;

	while (load_seq_cst(ready) < stage) {
		errno = ETIMEDOUT;
		must(now_ms() < end, "the other end");
		usleep(200);
	}
}

static void run_end(struct page *page, int me, uint64_t seed, uint64_t ms,
		    bool clean)
{
	struct end e = { .page = page,
			 .mine = &page->end[me],
			 .peer = &page->end[!me],
			 .dice = { seed * 2 + (uint64_t)me },
			 .clean = clean };
	struct ibv_ah_attr ah = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .hop_limit = 1 } };
	uint64_t end;

	open_end(&e);
	store_seq_cst(&e.mine->ready, 1);
	wait_for(&e.peer->ready, 1);
	ah.grh.dgid = e.peer->gid;
	e.ah = ibv_create_ah(e.pd, &ah);
	must(e.ah && !connect_all(&e), "connecting");
	store_seq_cst(&e.mine->ready, 2);
	wait_for(&e.peer->ready, 2);
	if (clean)
		clean_message(&e);
	if (me && write(STDOUT_FILENO, "r", 1) != 1)
		_exit(EXIT_FAILURE);
	for (end = now_ms() + ms; now_ms() < end;)
		step(&e);
	close_end(&e);
	exit(0);
}

/* Return the exit status.  SIGBUS is reported as FUZZ_BUS. */
static int sum_up(const int status[2])
{
	bool bus = false;
	int i;

	for (i = 0; i < 2; i++) {
		if (WIFSIGNALED(status[i]) && WTERMSIG(status[i]) == SIGBUS) {
			bus = true;
		} else if (status[i]) {
			fprintf(stderr, "fuzz-traffic: end %d: %s %d\n", i,
				WIFSIGNALED(status[i]) ? "signal" : "exit",
				WIFSIGNALED(status[i]) ?
					WTERMSIG(status[i]) :
					WEXITSTATUS(status[i]));
			return EXIT_FAILURE;
		}
	}
	return bus ? FUZZ_BUS : 0;
}

int main(int argc, char **argv)
{
	int me, status[2] = { 0 };
	struct page *page;
	uint64_t seed, ms;
	pid_t pid[2];

	if (argc < 3)
		return EXIT_FAILURE;
	seed = strtoull(argv[1], NULL, 0);
	ms = strtoull(argv[2], NULL, 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(page != MAP_FAILED, "mmap");
	for (me = 0; me < 2; me++) {
		pid[me] = fork();
		must(pid[me] >= 0, "fork");
		if (pid[me])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_end(page, me, seed, ms, argc > 3);
	}
	for (me = 0; me < 2; me++)
		waitpid(pid[me], &status[me], 0);
	return sum_up(status);
}
