// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The kinds of objects for resource tracking, and their attributes (res.h).
 * *_check() decide whether an entry of a table is an object, *_fill() compute
 * the values that the entry does not have.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cm/cm.h"
#include "res.h"
#include "shared/bitmap.h"

/* Ranges of QPNs shown per SRQ, so that an entry fits in a message. */
#define MAX_RUNS 100

/* Load a member of an entry that is atomic. */
#define LOAD(member) load_relaxed(&(member))

#define ATTR(form_, id_) .form = RES_##form_, .id = RDMA_NLDEV_ATTR_##id_
#define IN(type, member)                         \
	.offset = offsetof(struct type, member), \
	.size = sizeof(((struct type *)0)->member)
#define OWN(member) .own = true, IN(res_obj, member)
#define DETAIL(type, name_) \
	.form = RES_##type, .id = RDMA_NLDEV_ATTR_DRIVER_##type, .name = name_
#define DETAIL_TEXT(name_, text_)                                             \
	.form = RES_TEXT, .id = RDMA_NLDEV_ATTR_DRIVER_STRING, .name = name_, \
	.text = text_, .texts = sizeof(text_) / sizeof(*(text_))

/* ---------------------------------------------------------------- contexts */

static const struct res_attr ctx_attrs[] = { { ATTR(U32, RES_CTXN),
					       OWN(number) },
					     { ATTR(OWNER, RES_PID), OWN(pid) },
					     { 0 } };

/* ---------------------------------------------------------------- PDs */

static const struct res_attr pd_attrs[] = {
	{ ATTR(U64, RES_USECNT), IN(urxe_pd_sh, refs) },
	{ ATTR(U32, RES_PDN), OWN(number) },
	{ ATTR(U32, RES_CTXN), OWN(slot) },
	{ ATTR(OWNER, RES_PID), OWN(pid) },
	{ 0 }
};

/* ---------------------------------------------------------------- MRs */

static const struct res_attr mr_attrs[] = {
	{ ATTR(U32, RES_RKEY), OWN(value[0]) },
	{ ATTR(U32, RES_LKEY), IN(urxe_key, live) },
	{ ATTR(U64, RES_MRLEN), IN(urxe_key, length) },
	{ ATTR(U32, RES_MRN), OWN(number) },
	{ ATTR(U32, RES_PDN), IN(urxe_key, pd), .base = URXE_MAX_PD },
	{ ATTR(OWNER, RES_PID), IN(urxe_key, pid) },
	{ 0 }
};

static const char *const mr_memory[] = {
	[URXE_MEM_PRIVATE] = "private", [URXE_MEM_DM] = "dm",
	[URXE_MEM_FILE] = "shared",	[URXE_MEM_NULL] = "null", "unknown",
};

static const struct res_attr mr_details[] = {
	{ DETAIL_TEXT("memory", mr_memory), IN(urxe_key, kind) },
	{ DETAIL(U64, "iova"), IN(urxe_key, iova), .hex = true },
	{ DETAIL(U32, "access"), IN(urxe_key, access), .hex = true },
	{ DETAIL(U32, "windows"), IN(urxe_key, windows) },
	{ 0 }
};

/* Memory windows are not shown. */
static bool mr_check(struct res_obj *o)
{
	const struct urxe_key *k = o->entry;
	const uint64_t live = LOAD(k->live);
	const uint32_t key = (uint32_t)live;

	o->number = URXE_KEY_ENTRY(key);
	return live == URXE_MR_LIVE(key) && URXE_KEY_CTX(key) == o->c->slot &&
	       URXE_KEY_INDEX(key) == o->index && !(k->flags & URXE_MR_IS_MW);
}

static void mr_fill(struct res_obj *o)
{
	const struct urxe_key *k = o->entry;

	/* the null MR has no rkey: it is not accessible remotely */
	o->value[0] = k->kind == URXE_MEM_NULL ? RES_NONE :
						 (uint32_t)LOAD(k->live);
}

/* ---------------------------------------------------------------- QPs */

enum { QP_RQPN, QP_RQ_PSN, QP_SQ_PSN, QP_MIG_STATE, QP_STATE, QP_SRQN };

static const struct res_attr qp_attrs[] = {
	{ ATTR(U32, PORT_INDEX), OWN(port), .optional = true },
	{ ATTR(U32, RES_LQPN), OWN(number) },
	{ ATTR(U32, RES_PDN), IN(urxe_qp_sh, pd), .base = URXE_MAX_PD,
	  .optional = true },
	{ ATTR(OWNER, RES_PID), IN(urxe_qp_sh, pid) },
	{ ATTR(U32, RES_RQPN), OWN(value[QP_RQPN]) },
	{ ATTR(U32, RES_RQ_PSN), OWN(value[QP_RQ_PSN]) },
	{ ATTR(U32, RES_SQ_PSN), OWN(value[QP_SQ_PSN]) },
	{ ATTR(U8, RES_PATH_MIG_STATE), OWN(value[QP_MIG_STATE]) },
	{ ATTR(U8, RES_TYPE), IN(urxe_qp_sh, type) },
	{ ATTR(U8, RES_STATE), OWN(value[QP_STATE]) },
	{ 0 }
};

static const struct res_attr qp_details[] = {
	{ DETAIL(U32, "send_cqn"), IN(urxe_qp_sh, send_cq),
	  .base = URXE_MAX_CQ, .optional = true },
	{ DETAIL(U32, "recv_cqn"), IN(urxe_qp_sh, recv_cq),
	  .base = URXE_MAX_CQ, .optional = true },
	{ DETAIL(U32, "srqn"), OWN(value[QP_SRQN]) },
	{ DETAIL(U32, "access"), IN(urxe_qp_sh, access), .hex = true },
	{ 0 }
};

/*
 * Return the QPN in entry @i of the QP directory, or 0 if the QP does not
 * belong to the context.
 */
static uint32_t qp_number(const struct res_ctx *c, uint32_t i)
{
	const uint32_t qpn = URXE_DIR_QPN(load_acquire(&c->f->dev->qp[i]));
	uint32_t slot, gen;

	return qpn_index(qpn) == i &&
			       qpn_lookup(c->f->dev, qpn, &slot, &gen) &&
			       slot == c->slot && gen == c->gen ?
		       qpn :
		       0;
}

static void qp_find(const struct res_ctx *c, uint64_t *map)
{
	const uint32_t high = qp_slots(c->f->dev);
	uint32_t i;

	for (i = 0; i < high; i++)
		if (qp_number(c, i))
			bitmap_set(map, i, 1);
}

/*
 * A QPN is allocated before its QP is created, and freed after it is
 * destroyed, so the directory may have QPNs without a QP.
 */
static bool qp_check(struct res_obj *o)
{
	const struct urxe_qp_sh *sh = o->entry;
	const uint64_t conn = LOAD(sh->conn);

	o->number = qp_number(o->c, o->index);
	/* the port is set by the transition to INIT */
	o->port = URXE_CONN_STATE(conn) != IBV_QPS_RESET;
	return o->number && o->number == URXE_CONN_QPN(conn);
}

/*
 * Return the next send PSN.  If the connected peer is in this fabric, it is
 * the PSN that the peer expects, because no packet is in flight between them.
 * Otherwise it is sq_psn, which the owner of the QP updates only sometimes.
 */
static uint32_t qp_next_psn(const struct res_obj *o, uint32_t dest)
{
	const struct urxe_qp_sh *sh = o->entry;
	uint32_t psn = LOAD(sh->sq_psn), slot, gen;
	struct urxe_qp_sh other;
	struct res_ctx c;
	struct res_obj peer = { .c = &c, .entry = &other };

	peer.index = qpn_index(dest);
	if (!qpn_lookup(o->c->f->dev, dest, &slot, &gen) ||
	    !res_ctx_open(o->c->f, slot, &c))
		return psn;
	if (res_read(&c, offsetof(struct urxe_arena, qp[peer.index]), &other,
		     sizeof(other)) &&
	    qp_check(&peer) && URXE_CONN_DEST(LOAD(other.conn)) == o->number &&
	    URXE_CONN_STATE(LOAD(other.conn)) >= IBV_QPS_RTR)
		psn = LOAD(other.epsn) & URXE_PSN_MASK;
	res_ctx_close(&c);
	return psn;
}

static void qp_fill(struct res_obj *o)
{
	const struct urxe_qp_sh *sh = o->entry;
	const uint64_t conn = LOAD(sh->conn);
	const uint32_t dest = URXE_CONN_DEST(conn);
	bool connected = load_relaxed(&sh->type) == IBV_QPT_RC ||
			 load_relaxed(&sh->type) == IBV_QPT_UC;
	uint32_t psn = LOAD(sh->sq_psn);

	if ((connected || load_relaxed(&sh->type) == IBV_QPT_XRC_SEND) &&
	    URXE_CONN_STATE(conn) >= IBV_QPS_RTS)
		psn = qp_next_psn(o, dest);
	o->value[QP_RQPN] = connected ? dest : RES_NONE;
	o->value[QP_RQ_PSN] = connected ? LOAD(sh->epsn) & URXE_PSN_MASK : RES_NONE;
	o->value[QP_SQ_PSN] = psn & URXE_PSN_MASK;
	o->value[QP_MIG_STATE] =
		load_relaxed(&sh->type) == IBV_QPT_UD ? RES_NONE : IBV_MIG_MIGRATED;
	o->value[QP_STATE] = URXE_CONN_STATE(conn);
	o->value[QP_SRQN] = sh->srq ? URXE_SRQN(o->c->slot, sh->srq - 1) :
				      RES_NONE;
}

/* ---------------------------------------------------------------- users */

static bool ctx_note_qp(const struct res_obj *o, void *arg)
{
	const struct urxe_qp_sh *sh = o->entry;
	struct res_ctx *c = arg;

	c->user[c->users++] = (struct res_user){
		o->number, { sh->send_cq, sh->recv_cq }, sh->srq
	};
	return true;
}

/* An XRC SRQ uses a CQ. */
static bool ctx_note_srq(const struct res_obj *o, void *arg)
{
	const struct urxe_srq_sh *sh = o->entry;
	struct res_ctx *c = arg;

	c->user[c->users++] = (struct res_user){ .cq = { sh->cq } };
	return true;
}

/* res_kind.prepare: collect the QPs and SRQs of the context in c->user. */
static int ctx_note_users(struct res_ctx *c)
{
	c->user = calloc(URXE_MAX_QP + URXE_MAX_SRQ, sizeof(*c->user));
	if (!c->user)
		return -ENOMEM;
	res_each(c, &res_kinds[RES_QP], ctx_note_qp, c);
	res_each(c, &res_kinds[RES_SRQ], ctx_note_srq, c);
	return 0;
}

/* ---------------------------------------------------------------- SRQs */

/* Add a range of QPNs.  Nonzero: no space. */
static int srq_put_run(struct nl_msg *m, uint32_t first, uint32_t last)
{
	struct nlattr *entry =
		nl()->nla_nest_start(m, RDMA_NLDEV_ATTR_RES_QP_ENTRY);
	int bad;

	if (!entry)
		return -1;
	if (first == last) {
		bad = nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_RES_LQPN, first);
	} else {
		bad = nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_MIN_RANGE, first);
		bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_MAX_RANGE, last);
	}
	nl()->nla_nest_end(m, entry);
	return bad;
}

/* Add the QPs that use the SRQ, as ranges of consecutive QPNs. */
static int srq_put_qps(struct nl_msg *m, const struct res_obj *o)
{
	const struct res_user *u = o->c->user, *end = u + o->c->users;
	uint32_t first = 0, last = 0, runs = 0;
	struct nlattr *table = NULL;
	int bad = 0;

	for (; u < end && runs < MAX_RUNS; u++) {
		if (u->srq != o->index + 1)
			continue;
		if (!table)
			table = nl()->nla_nest_start(m, RDMA_NLDEV_ATTR_RES_QP);
		if (!table)
			return -1;
		if (first && u->qpn != last + 1) {
			bad |= srq_put_run(m, first, last);
			first = 0;
			runs++;
		}
		first = first ? first : u->qpn;
		last = u->qpn;
	}
	if (!table) /* the attribute is mandatory, even if it is empty */
		return nl()->nla_put(m, RDMA_NLDEV_ATTR_RES_QP, 0, NULL);
	bad |= first && srq_put_run(m, first, last);
	nl()->nla_nest_end(m, table);
	return bad;
}

static const struct res_attr srq_attrs[] = {
	{ ATTR(U32, RES_SRQN), OWN(number) },
	{ ATTR(U8, RES_TYPE), IN(urxe_srq_sh, type) },
	{ ATTR(U32, RES_PDN), IN(urxe_srq_sh, pd),
	  .base = URXE_MAX_PD },
	{ ATTR(U32, RES_CQN), OWN(value[0]) },
	{ ATTR(PUT, RES_QP), .put = srq_put_qps },
	{ ATTR(OWNER, RES_PID), IN(urxe_srq_sh, pid) },
	{ 0 }
};

static const struct res_attr srq_details[] = {
	{ DETAIL(U32, "posted"), OWN(value[1]) },
	{ DETAIL(U32, "limit"), IN(urxe_srq_sh, limit) },
	{ 0 }
};

static void srq_fill(struct res_obj *o)
{
	const struct urxe_srq_sh *sh = o->entry;

	o->value[0] = sh->type == IBV_SRQT_XRC ?
			      o->c->slot * URXE_MAX_CQ + sh->cq :
			      RES_NONE;
	o->value[1] = LOAD(sh->rq.prod) - LOAD(sh->rq.cons);
}

/* ---------------------------------------------------------------- CQs */

enum { CQ_CQE, CQ_USECNT, CQ_DIM, CQ_ARM };

static const struct res_attr cq_attrs[] = {
	{ ATTR(U32, RES_CQE), OWN(value[CQ_CQE]) },
	{ ATTR(U64, RES_USECNT), OWN(value[CQ_USECNT]) },
	{ ATTR(U8, DEV_DIM), OWN(value[CQ_DIM]) },
	{ ATTR(U32, RES_CQN), OWN(number) },
	{ ATTR(U32, RES_CTXN), OWN(slot) },
	{ ATTR(OWNER, RES_PID), IN(urxe_cq_sh, pid) },
	{ 0 }
};

static const char *const cq_armed[] = {
	[URXE_ARM_NONE] = "none", [URXE_ARM_SOLICITED] = "solicited",
	[URXE_ARM_NEXT] = "next", "unknown",
};
static const char *const no_yes[] = { "no", "yes" };

static const struct res_attr cq_details[] = {
	{ DETAIL_TEXT("armed", cq_armed), OWN(value[CQ_ARM]) },
	{ DETAIL_TEXT("channel", no_yes), IN(urxe_cq_sh, channel) },
	{ DETAIL_TEXT("overrun", no_yes), IN(urxe_cq_sh, error) },
	{ 0 }
};

/*
 * Return the number of users of the CQ.  A QP that uses it for both queues
 * counts twice, as in the kernel.
 */
static uint32_t cq_users(const struct res_obj *o)
{
	const struct res_user *u = o->c->user, *end = u + o->c->users;
	uint32_t n = 0;

	for (; u < end; u++)
		n += (u->cq[0] == o->index) + (u->cq[1] == o->index);
	return n;
}

static void cq_fill(struct res_obj *o)
{
	const struct urxe_cq_sh *sh = o->entry;
	const uint32_t n = 1u << URXE_CQ_LOG(LOAD(sh->ring));

	o->value[CQ_CQE] = n > URXE_MAX_CQE ? URXE_MAX_CQE : n;
	o->value[CQ_USECNT] = cq_users(o);
	o->value[CQ_ARM] = URXE_ARM_KIND(LOAD(sh->arm));
}

/* ---------------------------------------------------------------- cm_ids */

/* enum rdma_cm_state of the kernel, for each enum cma_state */
static const uint8_t cm_id_states[] = {
	[CMA_IDLE] = 0,		  [CMA_ADDR_BOUND] = 7, [CMA_ADDR_RESOLVED] = 2,
	[CMA_ROUTE_RESOLVED] = 4, [CMA_CONNECT] = 5,	[CMA_DISCONNECT] = 6,
	[CMA_LISTEN] = 8,	  [CMA_ROUTE_QUERY] = 3,
	[CMA_ADDR_QUERY] = 1,
};

static const struct res_attr cm_id_attrs[] = {
	{ ATTR(U32, PORT_INDEX), OWN(port), .optional = true },
	{ ATTR(U32, RES_LQPN), IN(cm_id, qpn), .optional = true },
	{ ATTR(U8, RES_TYPE), OWN(value[0]) },
	{ ATTR(U32, RES_PS), IN(cm_id, ps) },
	{ ATTR(U8, RES_STATE), OWN(value[1]) },
	{ ATTR(ADDR, RES_SRC_ADDR), IN(cm_id, src) },
	{ ATTR(ADDR, RES_DST_ADDR), IN(cm_id, dst) },
	{ ATTR(U32, RES_CM_IDN), OWN(number) },
	{ ATTR(U32, RES_PID), OWN(pid) },
	{ 0 }
};

static void cm_id_fill(struct res_obj *o)
{
	const struct cm_id *id = o->entry;

	o->value[0] = id->qpn ? id->qp_type : RES_NONE;
	o->value[1] = id->cma < sizeof(cm_id_states) ?
			      cm_id_states[id->cma] :
			      0;
}

/*
 * Return true if the id exists and belongs to device @k: it is bound to the
 * device, or listens on all devices.
 */
static bool cm_id_check(struct cm *cm, uint32_t k, struct res_obj *o)
{
	const struct cm_id *id = cm_id_at(cm, o->index + 1);
	const struct cm_chan *chan = id ? cm_chan_at(cm, id->chan) : NULL;

	if (!chan || chan->state != CM_CHAN_LIVE)
		return false;
	o->entry = id;
	o->number = o->index;
	o->port = !!(id->flags & CM_F_DEVICE);
	o->pid = chan->pid;
	return o->port ? cm_hca(cm, id) == fabric_hca(cm->f, k) :
			 id->cma == CMA_LISTEN && id->host == cm->f->host;
}

static void cm_id_each(struct urxe_fabric *f, uint32_t device, res_fn *fn,
		       void *arg)
{
	struct cm cm = { .f = f };
	uint32_t i;

	if (cm_map_existing(f, &cm.t))
		return;
	if (cm_lock(&cm))
		goto out;
	cm_chan_sweep(&cm, CM_MAX_CHAN);
	for (i = 0; i < cm_ids(&cm); i++) {
		struct res_obj o = { .index = i };

		if (cm_id_check(&cm, device, &o) && !fn(&o, arg))
			break;
	}
	cm_settle(&cm);
	cm_unlock(&cm);
out:
	munmap(cm.t, sizeof(*cm.t));
}

/* ---------------------------------------------------------------- kinds */

#define KIND(kind, NAME, id_) \
	.name = #kind, .op = RDMA_NLDEV_CMD_RES_##NAME##_GET, \
	.table = RDMA_NLDEV_ATTR_RES_##NAME, \
	.entry = RDMA_NLDEV_ATTR_RES_##NAME##_ENTRY, \
	.id = RDMA_NLDEV_ATTR_RES_##id_, .attrs = kind##_attrs
#define TABLE(member, NAME) \
	.obj = URXE_OBJ_##NAME, .offset = offsetof(struct urxe_arena, member), \
	.size = sizeof(((struct urxe_arena *)0)->member[0]), \
	.max = sizeof(((struct urxe_arena *)0)->member) / \
	       sizeof(((struct urxe_arena *)0)->member[0])
#define MAP(member) .map = offsetof(struct urxe_arena, member)
#define MR_TABLE \
	TABLE(key, MR), MAP(key_map), .check = mr_check, .fill = mr_fill

const struct res_kind res_kinds[RES_KINDS] = {
	[RES_PD] = { KIND(pd, PD, PDN), TABLE(pd, PD), .live = 1 },
	[RES_CQ] = { KIND(cq, CQ, CQN), .details = cq_details, TABLE(cq, CQ),
		     MAP(cq_map), .live = ~0u, .prepare = ctx_note_users,
		     .fill = cq_fill },
	[RES_QP] = { KIND(qp, QP, LQPN), .details = qp_details, TABLE(qp, QP),
		     .per_port = true, .find = qp_find, .check = qp_check,
		     .fill = qp_fill },
	[RES_CM_ID] = { KIND(cm_id, CM_ID, CM_IDN), .per_port = true,
			.each = cm_id_each, .fill = cm_id_fill },
	[RES_MR] = { KIND(mr, MR, MRN), .details = mr_details, MR_TABLE },
	[RES_CTX] = { KIND(ctx, CTX, CTXN) },
	[RES_SRQ] = { KIND(srq, SRQ, SRQN), .details = srq_details,
		      TABLE(srq, SRQ), MAP(srq_map), .live = ~0u,
		      .prepare = ctx_note_users, .fill = srq_fill },
};

/* The response of kernel drivers that have no counters per MR. */
static const struct res_attr mr_stat_attrs[] = {
	{ ATTR(U32, RES_MRN), OWN(number) },
	{ 0 }
};

const struct res_kind res_kind_mr_stat = {
	.op = RDMA_NLDEV_CMD_STAT_GET,
	.table = RDMA_NLDEV_ATTR_RES_MR,
	.entry = RDMA_NLDEV_ATTR_RES_MR_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_MRN,
	.attrs = mr_stat_attrs,
	MR_TABLE,
};
