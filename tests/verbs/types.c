// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * QPs of the types other than RC, and the check of their state tables
 * (types.h).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "types.h"

struct ibv_qp *make_qp(struct node *n, enum ibv_qp_type type,
		       struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = n->scq,
		.recv_cq = n->rcq,
		.srq = srq,
		.cap = n->o.cap,
		.qp_type = type,
		.sq_sig_all = n->o.sq_sig_all,
		.qp_context = n,
	};
	struct ibv_qp *qp = ibv_create_qp(n->pd, &attr);

	ck_nonnull(qp);
	return qp;
}

/* Reduce the mask of an RC transition to the attributes of QP type @type. */
static int mask_of(enum ibv_qp_type type, int mask)
{
	const int responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int requester = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_MAX_QP_RD_ATOMIC;

	switch (type) {
	case IBV_QPT_UD:
		if (mask & IBV_QP_ACCESS_FLAGS)
			return (mask & ~IBV_QP_ACCESS_FLAGS) | IBV_QP_QKEY;
		return mask & (IBV_QP_STATE | IBV_QP_SQ_PSN);
	case IBV_QPT_UC:
		return mask & ~(responder | requester | IBV_QP_TIMEOUT);
	case IBV_QPT_XRC_SEND:
		return mask & ~responder;
	case IBV_QPT_XRC_RECV:
		return mask & ~requester;
	default:
		return mask;
	}
}

int type_attr(struct ibv_qp_attr *attr, enum ibv_qp_type type,
	      enum ibv_qp_state to, const struct opts *o,
	      const struct addr *peer)
{
	static const struct addr no_peer;
	int mask;

	if (!peer) /* a UD QP has no peer */
		peer = &no_peer;
	switch (to) {
	case IBV_QPS_INIT:
		mask = attr_init(attr, o);
		break;
	case IBV_QPS_RTR:
		mask = attr_rtr(attr, o, peer);
		break;
	case IBV_QPS_RTS:
		mask = attr_rts(attr, o);
		break;
	default:
		memset(attr, 0, sizeof(*attr));
		attr->qp_state = to;
		mask = IBV_QP_STATE;
	}
	attr->qkey = QKEY;
	return mask_of(type, mask);
}

void type_to(struct ibv_qp *qp, enum ibv_qp_state to, const struct opts *o,
	     const struct addr *peer)
{
	struct ibv_qp_attr attr;
	int mask = type_attr(&attr, qp->qp_type, to, o, peer);

	ck_ok(ibv_modify_qp(qp, &attr, mask));
}

void type_connect(struct ibv_qp *qp, const struct opts *o,
		  const struct addr *peer)
{
	type_to(qp, IBV_QPS_INIT, o, peer);
	type_to(qp, IBV_QPS_RTR, o, peer);
	type_to(qp, IBV_QPS_RTS, o, peer);
}

struct turn_arg {
	enum ibv_qp_type type;
	struct addr addr;
};

static void do_turn(struct node *n, void *arg)
{
	struct turn_arg *t = arg;

	if (n->qp)
		ck_ok(ibv_destroy_qp(n->qp));
	n->qp = make_qp(n, t->type, NULL);
	t->addr = node_addr(n);
}

static void do_connect(struct node *n, void *arg)
{
	type_connect(n->qp, &n->o, arg);
}

void turn(struct duo *d, enum ibv_qp_type type)
{
	struct turn_arg t = { .type = type };

	do_turn(&d->a, &t);
	d->at_a = t.addr;
	on_b(d, do_turn, &t, sizeof(t));
	d->at_b = t.addr;
	on_b(d, do_connect, &d->at_a, sizeof(d->at_a));
	do_connect(&d->a, &d->at_b);
}

/* ---------------------------------------------------------------- UD */

struct ibv_ah *make_ah(struct node *n, const union ibv_gid *dgid,
		       uint8_t sgid_index)
{
	struct ibv_ah_attr attr = {
		.grh = { .dgid = *dgid,
			 .sgid_index = sgid_index,
			 .flow_label = 0x12345,
			 .hop_limit = 7,
			 .traffic_class = 0x28 },
		.is_global = 1,
		.port_num = 1,
	};
	struct ibv_ah *ah = ibv_create_ah(n->pd, &attr);

	ck_nonnull(ah);
	return ah;
}

struct ibv_send_wr ud_wr(uint64_t wr_id, struct ibv_sge *sge, int num_sge,
			 struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = num_sge,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	};

	return wr;
}

int post_ud(struct node *n, uint64_t wr_id, size_t off, uint32_t len,
	    struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct ibv_sge sge = node_sge(n, off, len);
	struct ibv_send_wr wr = ud_wr(wr_id, &sge, 1, ah, qpn, qkey);

	return post_wr(n->qp, &wr);
}

/* ---------------------------------------------------------------- SRQ */

struct ibv_srq *make_srq(struct node *n, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr init = { .srq_context = n,
					  .attr = { .max_wr = max_wr,
						    .max_sge = max_sge } };
	struct ibv_srq *srq = ibv_create_srq(n->pd, &init);

	ck_nonnull(srq);
	ck_assert_uint_ge(init.attr.max_wr, max_wr);
	return srq;
}

int post_srq(struct ibv_srq *srq, struct node *n, uint64_t wr_id, size_t off,
	     uint32_t len)
{
	struct ibv_sge sge = node_sge(n, off, len);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge,
				  .num_sge = 1 },
			   *bad = NULL;
	int ret = ibv_post_srq_recv(srq, &wr, &bad);

	if (ret)
		ck_assert_ptr_eq(bad, &wr);
	return ret;
}

int qp_recv(struct ibv_qp *qp, struct node *n, uint64_t wr_id, size_t off,
	    uint32_t len)
{
	struct ibv_sge sge = node_sge(n, off, len);
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

/* ---------------------------------------------------------------- tables */

static const enum ibv_qp_state states[] = {
	IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
	IBV_QPS_SQD,   IBV_QPS_SQE,	  IBV_QPS_ERR,
};
#define STATES (sizeof(states) / sizeof(*states))
#define NO_CAPABILITY (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

/*
 * Return the row of the transition.  *there: it exists.  RESET and ERR can be
 * entered from every state.
 */
static struct transition row(const struct transition *t, size_t count,
			     enum ibv_qp_state from, enum ibv_qp_state to,
			     bool *there)
{
	struct transition none = { from, to, 0, 0 };
	size_t i;

	*there = true;
	for (i = 0; i < count; i++)
		if (t[i].from == from && t[i].to == to)
			return t[i];
	*there = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
	return none;
}

/* Move the QP to SQE: post a WR with an invalid lkey. */
static void break_sq(struct node *n, struct ibv_qp *qp)
{
	struct ibv_sge sge = { 0, 8, 0xffffff00 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct ibv_ah *ah = NULL;

	if (qp->qp_type == IBV_QPT_UD) {
		ah = make_ah(n, &n->gid, 0);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
	}
	ck_ok(post_wr(qp, &wr));
	expect(n->scq, 0, IBV_WC_LOC_PROT_ERR);
	if (ah)
		ck_ok(ibv_destroy_ah(ah));
}

/* Move @qp from RESET to @to.  False: the QP type has no such state. */
static bool bring(struct node *n, struct ibv_qp *qp, enum ibv_qp_state to)
{
	struct addr self = node_addr(n);
	enum ibv_qp_state s;

	self.qpn = qp->qp_num;
	if (to == IBV_QPS_SQE && qp->qp_type != IBV_QPT_UC &&
	    qp->qp_type != IBV_QPT_UD)
		return false;
	if (to == IBV_QPS_RESET)
		return true;
	for (s = IBV_QPS_INIT; s <= IBV_QPS_RTS && s <= to; s++)
		type_to(qp, s, &n->o, &self);
	if (to == IBV_QPS_SQE)
		break_sq(n, qp);
	else if (to > IBV_QPS_RTS)
		type_to(qp, to, &n->o, &self);
	ck_assert_int_eq(qp_state(qp), to);
	return true;
}

/* ibv_modify_qp with valid values for all attributes of @mask. */
static int try(struct node *n, struct ibv_qp *qp, enum ibv_qp_state from,
	       enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr, more;
	struct addr self = node_addr(n);

	self.qpn = qp->qp_num;
	attr_rtr(&attr, &n->o, &self);
	attr_rts(&more, &n->o);
	attr.sq_psn = more.sq_psn;
	attr.timeout = more.timeout;
	attr.retry_cnt = more.retry_cnt;
	attr.rnr_retry = more.rnr_retry;
	attr.max_rd_atomic = more.max_rd_atomic;
	attr.port_num = 1;
	attr.qp_access_flags = n->o.qp_access;
	attr.qkey = QKEY;
	attr.cur_qp_state = from;
	attr.qp_state = to;
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	attr.cap = n->o.cap;
	return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
}

/*
 * Try one transition with attributes @mask on a new QP.  @good: it succeeds.
 * Otherwise it must fail with EINVAL and change nothing.
 */
static void check_one(struct node *n, struct ibv_qp *(*make)(struct node *n),
		      enum ibv_qp_state from, enum ibv_qp_state to, int mask,
		      bool good)
{
	struct ibv_qp_attr before, after;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = make(n);
	int ret;

	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	if (bring(n, qp, from)) {
		ck_ok(ibv_query_qp(qp, &before, -1, &init));
		ret = try(n, qp, from, to, mask);
		ck_assert_msg(ret == (good ? 0 : EINVAL),
			      "%d -> %d, mask %#x: %s", from, to, mask,
			      strerror(ret));
		ck_assert_int_eq(qp_state(qp), good ? to : from);
		ck_ok(ibv_query_qp(qp, &after, -1, &init));
		if (!good)
			ck_assert_mem_eq(&before, &after, sizeof(before));
	}
	ck_ok(ibv_destroy_qp(qp));
}

/* Try a transition with each attribute added or left out. */
static void check_row(struct node *n, struct ibv_qp *(*make)(struct node *n),
		      const struct transition *r, int ignored)
{
	int bit;

	check_one(n, make, r->from, r->to, r->req, true);
	check_one(n, make, r->from, r->to, r->req | r->opt, true);
	for (bit = IBV_QP_CUR_STATE; bit <= IBV_QP_RATE_LIMIT; bit <<= 1) {
		/* the correct value is harmless */
		if (bit == IBV_QP_CUR_STATE && !(r->opt & bit))
			continue;
		if (r->req & bit)
			check_one(n, make, r->from, r->to, r->req & ~bit,
				  false);
		else
			check_one(n, make, r->from, r->to, r->req | bit,
				  (r->opt | ignored) & bit &&
					  !(bit & NO_CAPABILITY));
	}
}

void check_table(struct node *n, struct ibv_qp *(*make)(struct node *n),
		 const struct transition *t, size_t count, int ignored)
{
	struct transition r;
	size_t i, k;
	bool there;

	for (i = 0; i < STATES; i++) {
		for (k = 0; k < STATES; k++) {
			/* in the specification, not in the kernel */
			if (states[i] == IBV_QPS_RESET &&
			    states[k] == IBV_QPS_ERR)
				continue;
			r = row(t, count, states[i], states[k], &there);
			if (there)
				check_row(n, make, &r, ignored);
			else
				check_one(n, make, states[i], states[k], 0,
					  false);
		}
	}
}

/* A pipe: held processes wait for the end of file at gate[0]. */
static int gate[2] = { -1, -1 };

void *shared_page(void)
{
	void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ck_assert(p != MAP_FAILED);
	return p;
}

struct held {
	int (*fn)(void *arg);
	void *arg;
};

static int wait_and_run(void *arg)
{
	struct held *h = arg;
	char c;

	close(gate[1]);
	if (read(gate[0], &c, 1) != 0)
		return 1;
	return h->fn(h->arg);
}

pid_t spawn_held(int (*fn)(void *arg), void *arg)
{
	struct held h = { fn, arg };

	if (gate[0] < 0)
		ck_ok(pipe2(gate, O_CLOEXEC));
	return spawn(wait_and_run, &h);
}

void release_held(void)
{
	close(gate[0]);
	close(gate[1]);
	gate[0] = gate[1] = -1;
}
