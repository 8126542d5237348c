// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Execution of one round of a litmus test.  Each node has its own device
 * context, memory and QPs.
 *
 * The nodes take turns in one thread.  The result of a round is therefore
 * determined by the seed, if the device is deterministic.  Random numbers
 * select the node for each turn, and whether it executes its next operation
 * or only polls: a test examines what happens in the time between two
 * operations.  In a concurrent test each node has a thread.  Such tests
 * examine what two CPUs do at the same time.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "litmus.h"

#define MEMORY 16384 /* of a node */
#define GRH 40 /* size of the GRH before a datagram's payload */
#define QKEY 0x11111111
#define DEPTH 32
#define SETTLE 300 /* polls after the last completion */
#define HANG 60 /* seconds */
#define PSN 0x123

#define MR_ACCESS                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define QP_ACCESS                                           \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct window {
	struct ibv_mw *mw;
	uint32_t rkey; /* valid when it is bound */
};

/* Seeded random numbers */
struct dice {
	uint64_t seed, drawn;
};

struct node {
	const struct node_text *text;
	struct round *round;
	struct dice dice; /* of its thread, in a concurrent test */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp[MAX_NODES][MAX_LINKS];
	struct ibv_ah *ah[MAX_NODES];
	struct window windows[MAX_WINDOWS];
	union ibv_gid gid;
	uint16_t lid;
	uint8_t *memory;
	int at; /* index of the next operation */
	unsigned int lazy; /* takes one of this many of its turns */
	unsigned int pause; /* turns in which it only polls */
	int posted, completed; /* signaled WRs */
	int received, waited; /* completed receives; receives waited for */
	int order[MAX_OPS], polled; /* WRs in order of completion */
};

struct round {
	const struct test *t;
	struct node nodes[MAX_NODES];
	_Atomic uint64_t regs[MAX_REGS];
	struct dice dice; /* selects the node that takes a turn */
	_Atomic int ready, done; /* number of nodes, in a concurrent test */
};

#define must(expr)                                                             \
	do {                                                                   \
		if (!(expr)) {                                                 \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, \
				#expr, strerror(errno));                       \
			exit(2);                                               \
		}                                                              \
	} while (0)

/* Return the next random number below @below (splitmix64). */
static uint64_t draw(struct dice *d, unsigned int below)
{
	uint64_t x = d->seed + ++d->drawn * 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

/*
 * Factor for pauses in concurrent tests.  There a turn of one thread says
 * nothing about the progress of the others.
 */
#define CONCURRENT_PAUSE 32

/* Return the length of a pause: zero, short or long. */
static unsigned int draw_pause(struct dice *d)
{
	return draw(d, 2) ? (unsigned int)draw(d, 1U << draw(d, 6)) : 0;
}

static _Atomic uint64_t *word(struct round *r, const struct place *p)
{
	struct node *n = &r->nodes[p->node];

	return (_Atomic uint64_t *)(void *)(n->memory + GRH +
					    n->text->vars[p->var].off +
					    8 * p->word);
}

static uint64_t load(struct round *r, const struct place *p)
{
	return atomic_load_explicit(word(r, p), memory_order_acquire);
}

/* ---------------------------------------------------------------- set-up */

static struct ibv_context *device_open(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx) {
		fprintf(stderr, "litmus: device %s not found\n",
			name ? name : "");
		exit(2);
	}
	ibv_free_device_list(list);
	return ctx;
}

static void node_open(struct round *r, struct node *n,
		      const struct where_to *where)
{
	struct ibv_port_attr port;
	unsigned int i;
	int v;

	n->ctx = device_open(where->device);
	must(!ibv_query_port(n->ctx, where->port, &port));
	must(!ibv_query_gid(n->ctx, where->port, where->gid_index, &n->gid));
	n->lid = port.lid;
	must(n->pd = ibv_alloc_pd(n->ctx));
	/* the words start at offset GRH, where they are aligned */
	must(n->memory = aligned_alloc(4096, MEMORY + 4096));
	n->memory += 4096 - GRH;
	memset(n->memory, 0, MEMORY);
	for (v = 0; v < n->text->num_vars; v++)
		for (i = 0; i < n->text->vars[v].words; i++)
			atomic_store(
				word(r, &(struct place){ (int)(n - r->nodes), v,
							 i }),
				n->text->vars[v].init);
	must(n->mr = ibv_reg_mr(
		     n->pd, n->memory, MEMORY,
		     MR_ACCESS |
			     (n->text->num_windows ? IBV_ACCESS_MW_BIND : 0)));
	must(n->scq = ibv_create_cq(n->ctx, 2 * DEPTH, NULL, NULL, 0));
	must(n->rcq = ibv_create_cq(n->ctx, 2 * DEPTH, NULL, NULL, 0));
	n->lazy = 1U << draw(&r->dice, 3);
	n->pause = draw_pause(&r->dice);
}

/*
 * Allocate the memory windows.  Return false if the device has no windows of
 * type 2.
 */
static bool node_make_windows(struct node *n)
{
	int i;

	for (i = 0; i < n->text->num_windows; i++) {
		n->windows[i].mw = ibv_alloc_mw(n->pd, IBV_MW_TYPE_2);
		if (!n->windows[i].mw)
			return false;
		n->windows[i].rkey = ibv_inc_rkey(n->windows[i].mw->rkey);
	}
	return true;
}

static void qp_make(struct round *r, struct node *n, struct ibv_qp **qp,
		    const struct where_to *where)
{
	static const enum ibv_qp_type types[] = {
		[RC] = IBV_QPT_RC, [UC] = IBV_QPT_UC, [UD] = IBV_QPT_UD
	};
	struct ibv_qp_init_attr init = {
		.send_cq = n->scq,
		.recv_cq = n->rcq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 64 },
		.qp_type = types[r->t->transport],
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = where->port,
		.qkey = QKEY,
		.qp_access_flags = r->t->transport == RC ?
					   QP_ACCESS :
					   IBV_ACCESS_REMOTE_WRITE,
	};

	must(*qp = ibv_create_qp(n->pd, &init));
	must(!ibv_modify_qp(*qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    (r->t->transport == UD ?
					     IBV_QP_QKEY :
					     IBV_QP_ACCESS_FLAGS)));
}

static struct ibv_ah_attr path_to(const struct node *to,
				  const struct where_to *where)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.grh = { .dgid = to->gid,
			 .sgid_index = where->gid_index,
			 .hop_limit = 1 },
		.dlid = to->lid,
		.port_num = where->port,
	};
}

static void qp_connect(struct round *r, struct ibv_qp *qp,
		       const struct ibv_qp *to, const struct node *peer,
		       const struct where_to *where)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 8,
		.min_rnr_timer = 1,
		.ah_attr = path_to(peer, where),
	};
	int mask = IBV_QP_STATE;

	if (r->t->transport != UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (r->t->transport == RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	must(!ibv_modify_qp(qp, &attr, mask));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .sq_psn = PSN,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 8 };
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (r->t->transport == RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	must(!ibv_modify_qp(qp, &attr, mask));
}

/* Create and connect the QPs that an operation uses, and their peers. */
static void links_make(struct round *r, const struct where_to *where)
{
	bool used[MAX_NODES][MAX_NODES][MAX_LINKS] = { 0 };
	int a, b, l, i;

	for (a = 0; a < r->t->num_nodes; a++)
		for (i = 0; i < r->t->nodes[a].num_ops; i++) {
			const struct op *o = &r->t->nodes[a].ops[i];

			if (o->verb < WRITE || o->verb > RECV)
				continue;
			used[a][o->peer][o->link] = true;
			used[o->peer][a][o->link] = true;
		}
	for (a = 0; a < r->t->num_nodes; a++)
		for (b = 0; b < r->t->num_nodes; b++)
			for (l = 0; l < MAX_LINKS; l++)
				if (used[a][b][l])
					qp_make(r, &r->nodes[a],
						&r->nodes[a].qp[b][l], where);
	for (a = 0; a < r->t->num_nodes; a++)
		for (b = 0; b < r->t->num_nodes; b++) {
			struct ibv_ah_attr path = path_to(&r->nodes[b], where);

			for (l = 0; l < MAX_LINKS; l++)
				if (used[a][b][l])
					qp_connect(r, r->nodes[a].qp[b][l],
						   r->nodes[b].qp[a][l],
						   &r->nodes[b], where);
			if (used[a][b][0] && r->t->transport == UD)
				must(r->nodes[a].ah[b] = ibv_create_ah(
					     r->nodes[a].pd, &path));
		}
}

/* ------------------------------------------------------------ operations */

static struct ibv_sge sge_of(struct round *r, const struct op *o)
{
	struct node *n = &r->nodes[o->local.node];
	const struct var *v = &n->text->vars[o->local.var];
	bool one = o->verb == CAS || o->verb == FAA;

	return (struct ibv_sge){ .addr = (uintptr_t)word(r, &o->local),
				 .length = one ? 8 : 8 * v->words,
				 .lkey = n->mr->lkey };
}

static void post_recv(struct round *r, struct node *n, const struct op *o)
{
	struct ibv_sge sge = sge_of(r, o);
	struct ibv_recv_wr *bad, wr = { .wr_id = (uint64_t)(o - n->text->ops),
					.sg_list = &sge,
					.num_sge = 1 };

	if (r->t->transport == UD) {
		/* each variable has at least GRH bytes before it */
		sge.addr -= GRH;
		sge.length += GRH;
	}
	must(!ibv_post_recv(n->qp[o->peer][o->link], &wr, &bad));
}

static void wr_remote(struct round *r, const struct op *o,
		      struct ibv_send_wr *wr)
{
	struct node *peer = &r->nodes[o->peer];
	uint64_t addr = (uintptr_t)word(r, &o->remote);
	uint32_t rkey = peer->mr->rkey;

	if (o->window >= 0)
		rkey = peer->windows[o->window].rkey;
	if (o->verb == CAS || o->verb == FAA) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = o->value;
		wr->wr.atomic.swap = o->swap;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

static void wr_bind(struct round *r, struct node *n, const struct op *o,
		    struct ibv_send_wr *wr)
{
	struct ibv_sge sge = sge_of(r, o);

	wr->sg_list = NULL;
	wr->num_sge = 0;
	wr->bind_mw.mw = n->windows[o->window].mw;
	wr->bind_mw.rkey = n->windows[o->window].rkey;
	wr->bind_mw.bind_info =
		(struct ibv_mw_bind_info){ .mr = n->mr,
					   .addr = sge.addr,
					   .length = sge.length,
					   .mw_access_flags = QP_ACCESS };
}

static void post_send(struct round *r, struct node *n, const struct op *o)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[WRITE] = IBV_WR_RDMA_WRITE,
		[WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[READ] = IBV_WR_RDMA_READ,
		[CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[FAA] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[SEND] = IBV_WR_SEND,
		[BIND] = IBV_WR_BIND_MW,
	};
	struct ibv_sge sge = sge_of(r, o);
	struct ibv_send_wr *bad, wr = { .wr_id = (uint64_t)(o - n->text->ops),
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = opcodes[o->verb],
					.send_flags = o->flags };

	if (o->verb == BIND) {
		wr_bind(r, n, o, &wr);
	} else if (o->verb != SEND) {
		wr_remote(r, o, &wr);
	} else if (r->t->transport == UD) {
		wr.wr.ud.ah = n->ah[o->peer];
		wr.wr.ud.remote_qpn = r->nodes[o->peer]
					      .qp[(int)(n - r->nodes)][o->link]
					      ->qp_num;
		wr.wr.ud.remote_qkey = QKEY;
	}
	must(!ibv_post_send(n->qp[o->peer][o->link], &wr, &bad));
	if (o->flags & IBV_SEND_SIGNALED)
		n->posted++;
}

/* Return the number of the WR within the program of its node, from 1. */
static uint64_t ordinal(const struct node *n, uint64_t wr_id)
{
	uint64_t i, count = 0;

	for (i = 0; i <= wr_id; i++)
		count += n->text->ops[i].verb >= WRITE &&
			 n->text->ops[i].verb <= BIND;
	return count;
}

static void node_poll(struct round *r, struct node *n)
{
	struct ibv_wc wc;
	const struct op *o;
	int got;

	while ((got = ibv_poll_cq(n->rcq, 1, &wc)) == 1) {
		o = &n->text->ops[wc.wr_id];
		if (o->reg >= 0)
			r->regs[o->reg] = wc.status;
		n->received++;
	}
	must(got == 0);
	got = ibv_poll_cq(n->scq, 1, &wc);
	must(got >= 0);
	if (!got)
		return;
	o = &n->text->ops[wc.wr_id];
	if (o->reg >= 0)
		r->regs[o->reg] = wc.status;
	n->order[n->completed++] = (int)wc.wr_id;
}

/* Execute an operation.  Return false if it has to wait. */
static bool node_step(struct round *r, struct node *n, const struct op *o)
{
	switch (o->verb) {
	case STORE:
		atomic_store_explicit(word(r, &o->local), o->value,
				      memory_order_release);
		return true;
	case LOAD:
		r->regs[o->reg] = load(r, &o->local);
		return true;
	case UNTIL:
		return load(r, &o->local) == o->value;
	case WAIT:
		return n->completed >= n->posted;
	case WAIT_RECV:
		if (n->received == n->waited)
			return false;
		n->waited++;
		return true;
	case POLL:
		if (n->completed == n->polled)
			return false;
		r->regs[o->reg] = ordinal(n, (uint64_t)n->order[n->polled++]);
		return true;
	case SIGNAL:
		r->regs[o->reg] = 1;
		return true;
	case AWAIT:
		return r->regs[o->reg] == 1;
	case RECV:
		post_recv(r, n, o);
		return true;
	default:
		post_send(r, n, o);
		return true;
	}
}

/*
 * Return whether the operation waits.  It is tried in each turn: no pause
 * precedes it.
 */
static bool op_waits(const struct op *o)
{
	return o->verb == UNTIL || o->verb == WAIT || o->verb == WAIT_RECV ||
	       o->verb == POLL || o->verb == AWAIT;
}

/*
 * Execute operations until a pause or one that waits; if there is none to
 * execute, poll.
 */
static void node_turn(struct node *n, struct dice *d)
{
	int was = n->at;

	while (n->at < n->text->num_ops &&
	       (!n->pause || op_waits(&n->text->ops[n->at])) &&
	       node_step(n->round, n, &n->text->ops[n->at])) {
		n->at++;
		n->pause = draw_pause(d);
		if (n->round->t->concurrent)
			n->pause *= CONCURRENT_PAUSE;
	}
	if (n->at != was)
		return;
	/* do not poll: a poll may sleep, and the node would continue late */
	if (n->round->t->concurrent && n->text->ops[n->at].verb == AWAIT)
		return;
	if (n->pause)
		n->pause--;
	node_poll(n->round, n);
}

static bool node_over(const struct node *n)
{
	return n->at == n->text->num_ops && n->completed == n->posted;
}

static bool all_over(const struct round *r)
{
	int i;

	for (i = 0; i < r->t->num_nodes; i++)
		if (!node_over(&r->nodes[i]))
			return false;
	return true;
}

/* Post the receives at the start of each program before the first turn. */
static void first_receives(struct round *r)
{
	int i;

	for (i = 0; i < r->t->num_nodes; i++) {
		struct node *n = &r->nodes[i];

		while (n->at < n->text->num_ops &&
		       n->text->ops[n->at].verb == RECV)
			post_recv(r, n, &n->text->ops[n->at++]);
	}
}

static void round_hangs(const struct round *r)
{
	int i;

	for (i = 0; i < r->t->num_nodes; i++) {
		const struct node *n = &r->nodes[i];

		fprintf(stderr, "%s: node %s hangs ", r->t->name,
			n->text->name);
		if (n->at < n->text->num_ops)
			fprintf(stderr, "in line %d, ",
				n->text->ops[n->at].line);
		fprintf(stderr, "with %d of %d completions\n", n->completed,
			n->posted);
	}
	exit(2);
}

static void take_turns(struct round *r)
{
	time_t began = time(NULL);
	struct node *n;

	while (!all_over(r)) {
		n = &r->nodes[draw(&r->dice, (unsigned int)r->t->num_nodes)];
		if (draw(&r->dice, n->lazy) == 0)
			node_turn(n, &r->dice);
		if (time(NULL) - began > HANG)
			round_hangs(r);
	}
}

static void *node_thread(void *arg)
{
	struct node *n = arg;
	struct round *r = n->round;
	time_t began = time(NULL);

	/* start the programs as close together as possible */
	atomic_fetch_add(&r->ready, 1);
	while (atomic_load(&r->ready) < r->t->num_nodes)
		sched_yield();
	while (!node_over(n)) {
		if (draw(&n->dice, n->lazy) == 0)
			node_turn(n, &n->dice);
		if (time(NULL) - began > HANG)
			round_hangs(r);
	}
	/* poll: the progress of peers may depend on it */
	atomic_fetch_add(&r->done, 1);
	while (atomic_load(&r->done) < r->t->num_nodes) {
		node_poll(r, n);
		sched_yield();
	}
	return NULL;
}

static void all_at_once(struct round *r)
{
	pthread_t threads[MAX_NODES];
	int i;

	for (i = 0; i < r->t->num_nodes; i++)
		must(!pthread_create(&threads[i], NULL, node_thread,
				     &r->nodes[i]));
	for (i = 0; i < r->t->num_nodes; i++)
		must(!pthread_join(threads[i], NULL));
}

bool round_run(const struct test *t, const struct where_to *where,
	       uint64_t seed, struct result *result)
{
	struct round r = { .t = t, .dice = { .seed = seed } };
	int i;

	for (i = 0; i < MAX_REGS; i++)
		atomic_init(&r.regs[i], UNSET);
	for (i = 0; i < t->num_nodes; i++) {
		r.nodes[i].text = &t->nodes[i];
		r.nodes[i].round = &r;
		r.nodes[i].dice.seed = draw(&r.dice, UINT32_MAX);
		node_open(&r, &r.nodes[i], where);
		if (!node_make_windows(&r.nodes[i]))
			return false;
	}
	links_make(&r, where);
	first_receives(&r);
	if (t->concurrent)
		all_at_once(&r);
	else
		take_turns(&r);
	/*
	 * effects at the peer may become visible after the local completion
	 */
	for (i = 0; i < SETTLE; i++)
		node_poll(&r, &r.nodes[i % t->num_nodes]);
	for (i = 0; i < t->num_values; i++)
		result->values[i] = t->values[i].reg >= 0 ?
					    r.regs[t->values[i].reg] :
					    load(&r, &t->values[i].place);
	result->over = true;
	return true;
}
