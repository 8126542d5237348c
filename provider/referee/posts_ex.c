// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Interposers of the calls of struct ibv_qp_ex.  The shadows of a batch are
 * built in q->batch while the program builds its WRs.  They are pushed before
 * the real ibv_wr_complete, and freed by ibv_wr_abort.  q->sq.posting is held
 * from ibv_wr_start to ibv_wr_complete or ibv_wr_abort, so q->batch needs no
 * other lock.
 */
#include <string.h>

#include "shared/opcode.h"
#include "fabric/fabric.h"
#include "posts.h"
#include "referee.h"
#include "verbs/qp_ex.h"

typedef void atomic_write_fn(struct ibv_qp_ex *, uint32_t, uint64_t,
			     const void *);
typedef void flush_fn(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t,
		      uint8_t);

/*
 * Return the shadow of the QP.  It exists: the calls are replaced only for a
 * QP with a shadow, before the program has the QP.
 */
static struct shadow_qp *qp_of(struct ibv_qp_ex *qp)
{
	return posts_to(&qp->qp_base);
}

/* Return the real calls, as they were before they were replaced. */
static const struct ibv_qp_ex *real(const struct shadow_qp *q)
{
	return (const struct ibv_qp_ex *)q->real;
}

/* ------------------------------------------------------- batch */

static void batch_drop(struct shadow_qp *q)
{
	struct shadow_wr *wr;

	while ((wr = q->batch)) {
		q->batch = wr->next;
		queue_wr_free(wr);
	}
	q->batch_end = &q->batch;
	q->building = NULL;
}

static void ex_start(struct ibv_qp_ex *qp)
{
	struct shadow_qp *q = qp_of(qp);

	queue_post_begin(&q->sq);
	batch_drop(q);
	real(q)->wr_start(qp);
}

static int ex_complete(struct ibv_qp_ex *qp)
{
	struct shadow_qp *q = qp_of(qp);
	struct shadow_wr *wr;
	uint64_t first;
	int ret;

	referee_lock();
	first = q->sq.posted;
	while ((wr = q->batch)) {
		q->batch = wr->next;
		queue_push(&q->sq, wr);
	}
	q->batch_end = &q->batch;
	q->building = NULL;
	referee_unlock();
	ret = real(q)->wr_complete(qp);
	posts_done(q, first, ret, NULL);
	return ret;
}

static void ex_abort(struct ibv_qp_ex *qp)
{
	struct shadow_qp *q = qp_of(qp);

	batch_drop(q);
	real(q)->wr_abort(qp);
	queue_post_end(&q->sq);
}

/* Append the shadow of a WR to the batch.  NULL: there is no memory. */
static struct shadow_wr *build(struct shadow_qp *q, const struct ibv_qp_ex *qp,
			       uint32_t opcode)
{
	/* the number of SGEs is not known yet */
	struct shadow_wr *wr = queue_wr_new(URXE_MAX_SGE);

	q->building = wr;
	if (!wr)
		return NULL;
	wr->num_sge = 0;
	wr->wr_id = qp->wr_id;
	wr->flags = qp->wr_flags;
	wr->opcode = opcode;
	wr->signaled = q->sig_all || qp->wr_flags & IBV_SEND_SIGNALED;
	*q->batch_end = wr;
	q->batch_end = &wr->next;
	return wr;
}

static struct shadow_wr *build_rdma(struct shadow_qp *q,
				    const struct ibv_qp_ex *qp, uint32_t opcode,
				    uint32_t rkey, uint64_t addr)
{
	struct shadow_wr *wr = build(q, qp, opcode);

	if (wr) {
		wr->rkey = rkey;
		wr->remote_addr = addr;
	}
	return wr;
}

/* ------------------------------------------------------- builders */

static void ex_send(struct ibv_qp_ex *qp)
{
	struct shadow_qp *q = qp_of(qp);

	build(q, qp, IBV_WR_SEND);
	real(q)->wr_send(qp);
}

static void ex_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct shadow_qp *q = qp_of(qp);

	build(q, qp, IBV_WR_SEND_WITH_IMM);
	real(q)->wr_send_imm(qp, imm);
}

static void ex_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct shadow_qp *q = qp_of(qp);

	build_rdma(q, qp, IBV_WR_SEND_WITH_INV, rkey, 0);
	real(q)->wr_send_inv(qp, rkey);
}

static void ex_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct shadow_qp *q = qp_of(qp);

	build_rdma(q, qp, IBV_WR_LOCAL_INV, rkey, 0);
	real(q)->wr_local_inv(qp, rkey);
}

static void ex_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	struct shadow_qp *q = qp_of(qp);

	build_rdma(q, qp, IBV_WR_RDMA_WRITE, rkey, addr);
	real(q)->wr_rdma_write(qp, rkey, addr);
}

static void ex_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	struct shadow_qp *q = qp_of(qp);

	build_rdma(q, qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
	real(q)->wr_rdma_write_imm(qp, rkey, addr, imm);
}

static void ex_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	struct shadow_qp *q = qp_of(qp);

	build_rdma(q, qp, IBV_WR_RDMA_READ, rkey, addr);
	real(q)->wr_rdma_read(qp, rkey, addr);
}

static void ex_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, uint64_t compare, uint64_t swap)
{
	struct shadow_qp *q = qp_of(qp);

	build_rdma(q, qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr);
	real(q)->wr_atomic_cmp_swp(qp, rkey, addr, compare, swap);
}

static void ex_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t addr, uint64_t add)
{
	struct shadow_qp *q = qp_of(qp);

	build_rdma(q, qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr);
	real(q)->wr_atomic_fetch_add(qp, rkey, addr, add);
}

static void ex_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			    const void *data)
{
	struct shadow_qp *q = qp_of(qp);
	atomic_write_fn *call;

	build_rdma(q, qp, URXE_WR_ATOMIC_WRITE, rkey, addr);
	memcpy(&call, q->real + SLOT_ATOMIC_WRITE, sizeof(call));
	call(qp, rkey, addr, data);
}

static void ex_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
		     size_t len, uint8_t type, uint8_t level)
{
	struct shadow_qp *q = qp_of(qp);
	flush_fn *call;

	build_rdma(q, qp, URXE_WR_FLUSH, rkey, addr);
	memcpy(&call, q->real + SLOT_FLUSH, sizeof(call));
	call(qp, rkey, addr, len, type, level);
}

static void ex_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct shadow_qp *q = qp_of(qp);
	struct shadow_wr *wr = build_rdma(q, qp, IBV_WR_BIND_MW, rkey, 0);

	if (wr) {
		wr->mw = mw;
		wr->bind = *info;
	}
	real(q)->wr_bind_mw(qp, mw, rkey, info);
}

/* ------------------------------------------------------- setters */

static void set_sges(struct shadow_qp *q, size_t n, const struct ibv_sge *list)
{
	struct shadow_wr *wr = q->building;

	if (!wr || n > URXE_MAX_SGE)
		return;
	wr->num_sge = (uint32_t)n;
	memcpy(wr->sge, list, n * sizeof(*list));
}

static void set_inline(struct shadow_qp *q, size_t n,
		       const struct ibv_data_buf *list)
{
	struct shadow_wr *wr = q->building;
	size_t i;

	if (!wr)
		return;
	wr->is_inline = true;
	wr->num_sge = 0;
	for (i = 0; i < n && i < URXE_MAX_SGE; i++)
		wr->sge[wr->num_sge++] = (struct ibv_sge){
			.addr = (uintptr_t)list[i].addr,
			.length = (uint32_t)list[i].length,
		};
}

static void ex_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };
	struct shadow_qp *q = qp_of(qp);

	set_sges(q, 1, &sge);
	real(q)->wr_set_sge(qp, lkey, addr, length);
}

static void ex_set_sge_list(struct ibv_qp_ex *qp, size_t n,
			    const struct ibv_sge *list)
{
	struct shadow_qp *q = qp_of(qp);

	set_sges(q, n, list);
	real(q)->wr_set_sge_list(qp, n, list);
}

static void ex_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };
	struct shadow_qp *q = qp_of(qp);

	set_inline(q, 1, &buf);
	real(q)->wr_set_inline_data(qp, addr, length);
}

static void ex_set_inline_data_list(struct ibv_qp_ex *qp, size_t n,
				    const struct ibv_data_buf *list)
{
	struct shadow_qp *q = qp_of(qp);

	set_inline(q, n, list);
	real(q)->wr_set_inline_data_list(qp, n, list);
}

static void ex_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct shadow_qp *q = qp_of(qp);

	if (q->building)
		q->building->ah = ah;
	real(q)->wr_set_ud_addr(qp, ah, qpn, qkey);
}

/* ------------------------------------------------------- installation */

typedef void (*any_call)(void);

/*
 * Replace the call at offset slot, unless it is NULL.  The struct of an older
 * release of libibverbs may end before it.
 */
static void replace_late(struct ibv_qp_ex *ex, size_t slot, any_call with)
{
	any_call is;

	if (slot + sizeof(is) > pabi.qp_tail)
		return;
	memcpy(&is, (char *)ex + slot, sizeof(is));
	if (is)
		memcpy((char *)ex + slot, &with, sizeof(with));
}

#define REPLACE(ex, call)                            \
	do {                                         \
		if ((ex)->wr_##call)                 \
			(ex)->wr_##call = ex_##call; \
	} while (0)

void referee_wrap_qp_ex(struct ibv_qp *qp)
{
	struct pabi_qp *v = container_of(qp, struct pabi_qp, qp);
	struct ibv_qp_ex *ex = &v->qp_ex;
	struct shadow_qp *q = qp_of(ex);

	if (!q)
		return;
	memcpy(q->real, v->room, sizeof(q->real));
	REPLACE(ex, atomic_cmp_swp);
	REPLACE(ex, atomic_fetch_add);
	REPLACE(ex, bind_mw);
	REPLACE(ex, local_inv);
	REPLACE(ex, rdma_read);
	REPLACE(ex, rdma_write);
	REPLACE(ex, rdma_write_imm);
	REPLACE(ex, send);
	REPLACE(ex, send_imm);
	REPLACE(ex, send_inv);
	REPLACE(ex, set_ud_addr);
	REPLACE(ex, set_inline_data);
	REPLACE(ex, set_inline_data_list);
	REPLACE(ex, set_sge);
	REPLACE(ex, set_sge_list);
	REPLACE(ex, start);
	REPLACE(ex, complete);
	REPLACE(ex, abort);
	replace_late(ex, SLOT_ATOMIC_WRITE, (any_call)ex_atomic_write);
	replace_late(ex, SLOT_FLUSH, (any_call)ex_flush);
}
