// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "local.h"
#include "wire/psn.h"

static const uint8_t choice[] = {
	IBV_WR_SEND,		    IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_WRITE,	    IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,	    IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,
};

static uint32_t packets_of(const struct host_qp *q, uint32_t length)
{
	return length ? (length + q->mtu - 1) / q->mtu : 1;
}

/* From now on, n bytes at offset @at may change. */
static void receivable(uint32_t at, uint32_t n)
{
	memset(host.receivable + at, 1, n);
}

/*
 * Post a WR.  It is recorded before ibv_post_send(), which may send its
 * packets at once: net_sent() compares their PSNs with q->psn.  Return false
 * if the WR is not posted.
 */
static bool post(int i, struct ibv_send_wr *wr, uint32_t length, int key)
{
	struct host_qp *q = &host.qp[i];
	const bool local = wr->opcode == IBV_WR_LOCAL_INV ||
			   wr->opcode == IBV_WR_BIND_MW;
	const struct posted p = {
		.id = wr->wr_id,
		.psn = q->psn,
		.packets = local ? 0 : packets_of(q, length),
		.length = length,
		.opcode = (uint8_t)wr->opcode,
		.signaled = wr->send_flags & IBV_SEND_SIGNALED,
		.key = key,
	};
	struct ibv_send_wr *bad;

	if (q->sq.n == POSTED)
		return false;
	q->psn = wire_psn_add(q->psn, p.packets);
	if (i != QP_SMALL)
		queue_add(&q->sq, p);
	if (!ibv_post_send(q->qp, wr, &bad))
		return true;
	q->psn = p.psn;
	if (i != QP_SMALL)
		q->sq.n--;
	return false;
}

static unsigned int send_flags(const struct record *r)
{
	return (r->flags & FLAG_ACK ? 0 : IBV_SEND_SIGNALED) |
	       (r->flags & FLAG_SOLICITED ? IBV_SEND_SOLICITED : 0) |
	       (r->flags & FLAG_FAR ? IBV_SEND_FENCE : 0);
}

/* Return the buffer of a WR.  READs and atomics write to it. */
static struct ibv_sge sge_of(const struct record *r, uint8_t op)
{
	const bool atomic = op == IBV_WR_ATOMIC_CMP_AND_SWP ||
			    op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	const bool brings = atomic || op == IBV_WR_RDMA_READ;
	const uint32_t at = places[brings ? AREA_LOCAL : AREA_SRC].at;
	struct ibv_sge sge = {
		.addr = (uintptr_t)host.mem + at,
		.length = atomic ? 8 :
				   r->length * (r->flags & FLAG_BIG ? 8u : 1u),
		.lkey = host.local->lkey,
	};

	if (r->flags & FLAG_ODD) /* an invalid lkey */
		sge.lkey ^= 1;
	else if (brings)
		receivable(at, sge.length);
	return sge;
}

static void send_to(const struct record *r, int i, struct ibv_send_wr *wr)
{
	if (i == QP_UD) {
		wr->opcode = r->op & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
		wr->wr.ud.ah = host.ah;
		wr->wr.ud.remote_qpn = 0x50;
		wr->wr.ud.remote_qkey = 0x1234;
	} else if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = 0x1000;
		wr->wr.atomic.rkey = 7;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->wr.rdma.remote_addr = 0x2000;
		wr->wr.rdma.rkey = 7;
	}
}

void local_send(const struct record *r)
{
	const int i = r->qp % QPS;
	struct ibv_send_wr wr = { .opcode = choice[r->op % sizeof(choice)],
				  .num_sge = 1,
				  .send_flags = send_flags(r) };
	struct ibv_sge sge;

	send_to(r, i, &wr);
	sge = sge_of(r, (uint8_t)wr.opcode);
	wr.sg_list = &sge;
	wr.wr_id = wr_id(i, false);
	if (r->flags & FLAG_RAW && sge.length <= 64)
		wr.send_flags |= IBV_SEND_INLINE;
	post(i, &wr, sge.length, -1);
}

void local_receive(const struct record *r)
{
	const int i = r->qp % QPS;
	struct queue *q = host_receives(i);
	const uint32_t slot = r->key % SLOTS;
	const uint32_t at = places[AREA_RECV].at + slot * SLOT_BYTES;
	const uint32_t n = r->flags & FLAG_BIG ? r->length * 3u : r->length;
	struct ibv_sge sge = { .addr = (uintptr_t)host.mem + at,
			       .length = n,
			       .lkey = host.local->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id(i, true),
				  .sg_list = &sge,
				  .num_sge = r->flags & FLAG_RAW ? 0 : 1 },
			   *bad;
	int ret;

	if (q->n == POSTED)
		return;
	if (r->flags & FLAG_ODD)
		sge.lkey ^= 1;
	ret = i == QP_SRQ ? ibv_post_srq_recv(host.srq, &wr, &bad) :
	      i == QP_XRC ? ibv_post_srq_recv(host.xrc_srq, &wr, &bad) :
			    ibv_post_recv(host.qp[i].qp, &wr, &bad);
	if (ret)
		return;
	if (!(r->flags & (FLAG_ODD | FLAG_RAW)))
		receivable(at, n);
	if (i != QP_SMALL)
		queue_add(q, (struct posted){ .id = wr.wr_id, .length = n });
}

/* ------------------------------------------------------- keys */

void local_window(const struct record *r)
{
	struct key *k = &host.key[KEY_WINDOW], *all = &host.key[KEY_ALL];
	const bool bind = r->op & 1 && all->mr;
	struct ibv_send_wr wr = {
		.wr_id = wr_id(QP_RC, false),
		.opcode = bind ? IBV_WR_BIND_MW : IBV_WR_LOCAL_INV,
		.send_flags = send_flags(r),
		.invalidate_rkey = k->rkey,
	};
	const uint32_t rkey = ibv_inc_rkey(k->rkey);

	if (bind) {
		wr.bind_mw.mw = host.window;
		wr.bind_mw.rkey = rkey;
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
			.mr = all->mr,
			.addr = (uintptr_t)host.mem + all->at + 64,
			.length = r->length,
			.mw_access_flags = IBV_ACCESS_REMOTE_READ |
					   IBV_ACCESS_REMOTE_WRITE,
		};
	}
	if (post(QP_RC, &wr, 0, KEY_WINDOW) && bind)
		*k = (struct key){ .rkey = rkey,
				   .at = all->at + 64,
				   .bytes = r->length,
				   .rights = IBV_ACCESS_REMOTE_READ |
					     IBV_ACCESS_REMOTE_WRITE,
				   .qp = QP_RC,
				   .may = true };
}

void local_region(const struct record *r)
{
	const int k = r->key % KEY_WINDOW;
	struct key *key = &host.key[k];

	check_memory();
	if (!key->mr) {
		host_register(k);
		return;
	}
	if (ibv_dereg_mr(key->mr)) { /* a window is bound to it */
		must(k == KEY_ALL);
		return;
	}
	key->mr = NULL;
	key->may = false;
	if (k == KEY_ALL)
		host.key[KEY_WINDOW].may = false;
}

/* ------------------------------------------------------- QPs, time, port */

static void reset(int i)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	must(!ibv_modify_qp(host.qp[i].qp, &a, IBV_QP_STATE));
	queues_forget(i);
}

void local_state(const struct record *r)
{
	const int i = r->qp % QPS;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	switch (r->op % 4) {
	case 0:
		must(!ibv_modify_qp(host.qp[i].qp, &a, IBV_QP_STATE));
		break;
	case 1:
		reset(i);
		break;
	case 2:
		reset(i);
		host_connect(i);
		break;
	case 3:
		host_destroy(i);
		host_create(i);
	}
}

void local_wait(const struct record *r)
{
	net_pass(1000ull << r->length % 32);
	check_polls(r->flags & FLAG_BIG);
}

void local_port(const struct record *r)
{
	if (r->op & 1)
		host_port(r->op & 2);
	else
		host_join(r->op & 2);
}
