// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "res.h"

struct qp {
	const struct res_ctx *c;
	const struct urxe_qp_sh *sh;
	uint32_t sq_psn;
	bool details;
};

bool res_read_qp(const struct res_ctx *c, uint32_t i, struct urxe_qp_sh *out)
{
	_Atomic uint64_t *entry = &c->f->dev->qp[i];
	uint64_t e = atomic_load_explicit(entry, memory_order_acquire);
	const uint32_t qpn = e & 0xffffff;
	uint32_t slot, gen;

	if (!e || qpn_index(qpn) != i ||
	    !qpn_lookup(c->f->dev, qpn, &slot, &gen) || slot != c->slot ||
	    gen != c->gen ||
	    !res_read(c, offsetof(struct urxe_arena, qp[i]), out, sizeof(*out)))
		return false;
	/* between its number and its birth, or its death and its number's */
	return URXE_CONN_QPN(atomic_load_explicit(
		       &out->conn, memory_order_relaxed)) == qpn &&
	       atomic_load_explicit(entry, memory_order_relaxed) == e;
}

static uint32_t high(const struct urxe_dev *dev)
{
	uint32_t n = atomic_load_explicit(&dev->qp_high, memory_order_acquire);

	return n < URXE_MAX_QP ? n : URXE_MAX_QP;
}

int res_load_qps(struct res_ctx *c)
{
	const uint32_t n = high(c->f->dev);
	struct urxe_qp_sh sh;
	uint32_t i;

	if (c->qp || !res_used(c, URXE_OBJ_QP))
		return 0;
	c->qp = calloc(n ? n : 1, sizeof(*c->qp));
	if (!c->qp)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (!res_read_qp(c, i, &sh))
			continue;
		c->qp[c->qps++] = (struct res_qp){
			.qpn = URXE_CONN_QPN(atomic_load_explicit(
				&sh.conn, memory_order_relaxed)),
			.send_cq = sh.send_cq,
			.recv_cq = sh.recv_cq,
			.srq = sh.srq,
		};
	}
	return 0;
}

/* ---------------------------------------------------------------- fields */

static bool is_connected(uint8_t type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_UC;
}

/*
 * The next PSN of a connected QP is what its peer expects: nothing is under
 * way between them.  Others have it noted by their owner now and then.
 */
static uint32_t next_psn(const struct res_ctx *c, const struct urxe_qp_sh *sh)
{
	uint64_t conn = atomic_load_explicit(&sh->conn, memory_order_relaxed);
	uint32_t psn = atomic_load_explicit(&sh->sq_psn, memory_order_relaxed);
	const uint32_t dest = URXE_CONN_DEST(conn);
	struct res_ctx peer = { .f = c->f };
	struct urxe_qp_sh other;
	char name[32];

	if ((!is_connected(sh->type) && sh->type != IBV_QPT_XRC_SEND) ||
	    URXE_CONN_STATE(conn) < IBV_QPS_RTS ||
	    !qpn_lookup(c->f->dev, dest, &peer.slot, &peer.gen))
		return psn;
	snprintf(name, sizeof(name), "ctx/%u.%u", peer.slot, peer.gen);
	peer.fd = openat(c->f->dirfd, name, O_RDONLY | O_CLOEXEC);
	if (peer.fd < 0)
		return psn;
	if (res_read_qp(&peer, qpn_index(dest), &other)) {
		conn = atomic_load_explicit(&other.conn, memory_order_relaxed);
		if (URXE_CONN_DEST(conn) ==
			    URXE_CONN_QPN(atomic_load_explicit(
				    &sh->conn, memory_order_relaxed)) &&
		    URXE_CONN_STATE(conn) >= IBV_QPS_RTR)
			psn = atomic_load_explicit(&other.epsn,
						   memory_order_relaxed);
	}
	close(peer.fd);
	return psn;
}

static int put_details(struct nl_msg *m, const struct qp *qp)
{
	const struct urxe_qp_sh *sh = qp->sh;
	struct nlattr *table = res_details(m);
	int bad = 0;

	if (!table)
		return -1;
	if (sh->send_cq)
		bad |= res_detail_u32(m, "send_cqn",
				      res_cqn(qp->c, sh->send_cq), false);
	if (sh->recv_cq)
		bad |= res_detail_u32(m, "recv_cqn",
				      res_cqn(qp->c, sh->recv_cq), false);
	if (sh->srq)
		bad |= res_detail_u32(
			m, "srqn", URXE_SRQN(qp->c->slot, sh->srq - 1), false);
	bad |= res_detail_u32(
		m, "access",
		atomic_load_explicit(&sh->access, memory_order_relaxed), true);
	nla_nest_end(m, table);
	return bad;
}

static int put_connection(struct nl_msg *m, const struct urxe_qp_sh *sh)
{
	uint64_t conn = atomic_load_explicit(&sh->conn, memory_order_relaxed);
	uint32_t epsn = atomic_load_explicit(&sh->epsn, memory_order_relaxed);
	int bad;

	bad = nla_put_u32(m, RDMA_NLDEV_ATTR_RES_RQPN, URXE_CONN_DEST(conn));
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_RQ_PSN, epsn & 0xffffff);
	return bad;
}

static int fill(struct nl_msg *m, const void *object)
{
	const struct qp *qp = object;
	const struct urxe_qp_sh *sh = qp->sh;
	uint64_t conn = atomic_load_explicit(&sh->conn, memory_order_relaxed);
	int bad = 0;

	/* the port is chosen on the way to INIT */
	if (URXE_CONN_STATE(conn) != IBV_QPS_RESET)
		bad = nla_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_LQPN, URXE_CONN_QPN(conn));
	if (sh->pd)
		bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_PDN,
				   res_pdn(qp->c, sh->pd));
	bad |= res_put_owner(m, qp->c, sh->pid);
	if (is_connected(sh->type))
		bad |= put_connection(m, sh);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_SQ_PSN,
			   qp->sq_psn & 0xffffff);
	if (sh->type != IBV_QPT_UD)
		bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_RES_PATH_MIG_STATE,
				  IBV_MIG_MIGRATED);
	bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_RES_TYPE, sh->type);
	bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_RES_STATE, URXE_CONN_STATE(conn));
	return bad || (qp->details && put_details(m, qp));
}

static void list(struct res_out *o, struct res_ctx *c)
{
	const uint32_t n = high(c->f->dev);
	struct urxe_qp_sh sh;
	struct qp qp = { .c = c, .sh = &sh, .details = o->details };
	uint64_t conn;
	uint32_t i;

	if (!res_used(c, URXE_OBJ_QP))
		return;
	for (i = 0; i < n && !res_done(o); i++) {
		if ((!o->dump && qpn_index(o->id) != i) ||
		    !res_read_qp(c, i, &sh))
			continue;
		conn = atomic_load_explicit(&sh.conn, memory_order_relaxed);
		qp.sq_psn = next_psn(c, &sh);
		res_put(o, URXE_CONN_QPN(conn),
			URXE_CONN_STATE(conn) != IBV_QPS_RESET, fill, &qp);
	}
}

const struct res_kind res_kind_qp = {
	.op = RDMA_NLDEV_CMD_RES_QP_GET,
	.table = RDMA_NLDEV_ATTR_RES_QP,
	.entry = RDMA_NLDEV_ATTR_RES_QP_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_LQPN,
	.per_port = true,
	.list = list,
};
