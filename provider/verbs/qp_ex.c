// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_create_qp_ex, and the calls of struct ibv_qp_ex (ibv_wr_post(3)).
 *
 * The WRs of a batch are built in place, in the send queue.  qp->lock is held
 * from wr_start to wr_complete or wr_abort, so that no other thread sees them
 * before.  The builders and setters cannot return errors.  The first error is
 * stored and wr_complete returns it; then no WR of the batch is posted.
 */
#include <errno.h>

#include "engine/exec/direct.h"
#include "engine/core/log.h"
#include "engine/exec/requester.h"
#include "engine/qp/wait.h"
#include "engine/qp/wqe.h"
#include "context.h"
#include "profile.h"
#include "qp.h"
#include "qp_ex.h"
#include "verbs.h"

static struct urxe_vqp *vqp_from_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct urxe_vqp, v.qp_ex);
}

/* ------------------------------------------------------- the batch */

/* Store the first error of the batch. */
static void batch_fail(struct urxe_vqp *vqp, int error)
{
	if (!vqp->batch.error)
		vqp->batch.error = error;
	vqp->batch.wqe = NULL;
}

/* Complete the WR that is being built, if any: add it to the batch. */
static void batch_finish(struct urxe_vqp *vqp)
{
	struct urxe_wr_batch *b = &vqp->batch;

	if (!b->wqe)
		return;
	if (unlikely(b->needs_dest)) {
		urxe_why("ibv_wr_complete: a WR has no destination (ibv_wr_set_ud_addr, ibv_wr_set_xrc_srqn)");
		batch_fail(vqp, EINVAL);
		return;
	}
	b->wqe = NULL;
	vqp->qp.sq.prod++;
}

/* Complete the last WR and begin another; NULL if the batch has an error. */
static struct urxe_wqe *batch_build(struct ibv_qp_ex *ibqp, uint32_t opcode)
{
	/*
	 * opcodes without data setters: the builder has all their arguments
	 */
	const uint32_t no_data = WQE_BARE_OPS | WQE_BIT(URXE_WR_ATOMIC_WRITE) |
				 WQE_BIT(URXE_WR_FLUSH);
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);
	struct urxe_wr_batch *b = &vqp->batch;
	enum ibv_qp_type type = vqp->qp.type;
	struct urxe_wqe *w;
	int ret;

	batch_finish(vqp);
	if (unlikely(b->error))
		return NULL;
	/* whether data is inline depends on the setter, not on wr_flags */
	ret = wqe_begin(&vqp->qp, opcode, ibqp->wr_flags & ~IBV_SEND_INLINE,
			ibqp->wr_id, &w);
	if (unlikely(ret)) {
		batch_fail(vqp, ret);
		return NULL;
	}
	b->wqe = w;
	b->needs_data = !(no_data & WQE_BIT(opcode));
	b->needs_dest = (type == IBV_QPT_UD || type == IBV_QPT_XRC_SEND) &&
			!(WQE_BARE_OPS & WQE_BIT(opcode));
	return w;
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);

	urxe_lock(&vqp->qp.lock);
	store_relaxed(&vqp->qp.batch_thread, pthread_self());
	vqp->batch.wqe = NULL;
	vqp->batch.error = 0;
	vqp->qp.batch_first = vqp->qp.sq.prod;
}

static void batch_end(struct urxe_vqp *vqp)
{
	store_relaxed(&vqp->qp.batch_thread, (pthread_t)0);
	urxe_unlock(&vqp->qp.lock);
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);
	int ret;

	batch_finish(vqp);
	ret = vqp->batch.error;
	if (unlikely(!ret && qp_state(&vqp->qp) < IBV_QPS_RTS))
		ret = EINVAL;
	if (unlikely(ret)) {
		urxe_why(
			"ibv_wr_complete: QP 0x%x in %s: %s", vqp->qp.qpn,
			reason_state_name(qp_state(&vqp->qp)),
			ret == ENOMEM ?
				"the send queue is full" :
			qp_state(&vqp->qp) < IBV_QPS_RTS ?
				"not yet in RTS" :
				"invalid opcode, number of SGEs, inline data or setter");
		vqp->qp.sq.prod = vqp->qp.batch_first;
		if (ret == ENOMEM)
			wait_full(&vqp->qp);
		errno = ret;
	} else {
		direct_run(&vqp->qp, vqp->qp.batch_first);
		requester_run(&vqp->qp);
	}
	batch_end(vqp);
	return ret;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);

	vqp->qp.sq.prod = vqp->qp.batch_first;
	batch_end(vqp);
}

/* ------------------------------------------------------- builders */

static void wr_send(struct ibv_qp_ex *qp)
{
	batch_build(qp, IBV_WR_SEND);
}

/* Begin a WR; @imm is its immediate data, or the rkey to invalidate. */
static void build_imm(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode,
		      uint32_t imm)
{
	struct urxe_wqe *w = batch_build(qp, opcode);

	if (w)
		w->imm = imm;
}

static struct urxe_wqe *build_rdma(struct ibv_qp_ex *qp,
				   enum ibv_wr_opcode opcode, uint32_t rkey,
				   uint64_t addr)
{
	struct urxe_wqe *w = batch_build(qp, opcode);

	if (w)
		wqe_rdma(w, rkey, addr);
	return w;
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	build_imm(qp, IBV_WR_SEND_WITH_IMM, imm);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	build_imm(qp, IBV_WR_SEND_WITH_INV, rkey);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	build_imm(qp, IBV_WR_LOCAL_INV, rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	build_rdma(qp, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	struct urxe_wqe *w = build_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey,
					addr);

	if (w)
		w->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	build_rdma(qp, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, uint64_t compare, uint64_t swap)
{
	struct urxe_wqe *w = batch_build(qp, IBV_WR_ATOMIC_CMP_AND_SWP);

	if (w)
		wqe_atomic(w, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t addr, uint64_t add)
{
	struct urxe_wqe *w = batch_build(qp, IBV_WR_ATOMIC_FETCH_AND_ADD);

	if (w)
		wqe_atomic(w, rkey, addr, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			    const void *data)
{
	struct urxe_wqe *w = batch_build(qp, URXE_WR_ATOMIC_WRITE);

	if (!w)
		return;
	wqe_rdma(w, rkey, addr);
	memcpy(w->write_data, data, sizeof(w->write_data));
	w->length = sizeof(w->write_data);
}

static void wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
		     size_t len, uint8_t type, uint8_t level)
{
	struct urxe_wqe *w = batch_build(qp, URXE_WR_FLUSH);

	if (!w)
		return;
	wqe_rdma(w, rkey, addr);
	w->length = len;
	w->flush.type = type;
	w->flush.level = level;
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct urxe_wqe *w = batch_build(qp, IBV_WR_BIND_MW);
	int ret;

	if (!w)
		return;
	ret = wqe_bind(w, mw, rkey, info);
	if (unlikely(ret))
		batch_fail(vqp_from_ex(qp), ret);
}

/* ------------------------------------------------------- setters */

/*
 * Return the WR that a data setter applies to.  NULL, and the batch fails, if
 * there is none, its opcode has no data, or its data was set already.
 */
static struct urxe_wqe *batch_data(struct urxe_vqp *vqp)
{
	struct urxe_wr_batch *b = &vqp->batch;

	if (unlikely(!b->wqe || !b->needs_data)) {
		batch_fail(vqp, EINVAL);
		return NULL;
	}
	b->needs_data = false;
	return b->wqe;
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t n,
			    const struct ibv_sge *list)
{
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);
	struct urxe_wqe *w = batch_data(vqp);

	if (w && unlikely((w->opcode == IBV_WR_RDMA_READ &&
			   n > vqp->qp.sq.max_sge_rd) ||
			  wqe_sges(&vqp->qp.sq, w, list, n)))
		batch_fail(vqp, EINVAL);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(qp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t n,
				    const struct ibv_data_buf *list)
{
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);
	struct urxe_wqe *w = batch_data(vqp);
	size_t i;
	int ret;

	if (!w)
		return;
	ret = wqe_inline_begin(w);
	for (i = 0; !ret && i < n; i++)
		ret = wqe_inline(&vqp->qp.sq, w, list[i].addr, list[i].length);
	if (unlikely(ret))
		batch_fail(vqp, ret);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(qp, 1, &buf);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);
	struct urxe_wqe *w = vqp->batch.wqe;

	vqp->batch.needs_dest = false;
	if (unlikely(!w || wqe_ud(&vqp->qp, w, ah, qpn, qkey)))
		batch_fail(vqp, EINVAL);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t srqn)
{
	struct urxe_vqp *vqp = vqp_from_ex(ibqp);

	vqp->batch.needs_dest = false;
	if (unlikely(!vqp->batch.wqe))
		batch_fail(vqp, EINVAL);
	else
		vqp->batch.wqe->srqn = srqn;
}

/* ------------------------------------------------------- creating */

/*
 * The builders that send_ops_flags requests.  The last two are late members
 * of struct ibv_qp_ex, and are addressed by offset: the header at compile
 * time may be older or newer than the libibverbs at run time.
 */
#define SLOT(name) offsetof(struct ibv_qp_ex, name)
#define QP_EX_WITH_FLUSH (1u << 11)
#define QP_EX_WITH_ATOMIC_WRITE (1u << 12)

typedef void (*wr_call)(void);

/* Cast @call to wr_call; fails to compile if the member's type differs. */
#define TYPED(call) \
	_Generic(&call, __typeof__(((struct ibv_qp_ex *)0)->call): \
		 (wr_call)call)

static const struct {
	uint32_t flag, opcode;
	size_t slot;
	wr_call fn;
} builders[] = {
#define BUILDER(OP, call) \
	{ IBV_QP_EX_WITH_##OP, IBV_WR_##OP, SLOT(call), TYPED(call) }
	BUILDER(RDMA_WRITE, wr_rdma_write),
	BUILDER(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm),
	BUILDER(SEND, wr_send),
	BUILDER(SEND_WITH_IMM, wr_send_imm),
	BUILDER(RDMA_READ, wr_rdma_read),
	BUILDER(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp),
	BUILDER(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add),
	BUILDER(LOCAL_INV, wr_local_inv),
	BUILDER(BIND_MW, wr_bind_mw),
	BUILDER(SEND_WITH_INV, wr_send_inv),
	{ QP_EX_WITH_FLUSH, URXE_WR_FLUSH, SLOT_FLUSH, (wr_call)wr_flush },
	{ QP_EX_WITH_ATOMIC_WRITE, URXE_WR_ATOMIC_WRITE, SLOT_ATOMIC_WRITE,
	  (wr_call)wr_atomic_write },
};
#define BUILDERS (sizeof(builders) / sizeof(*builders))

/* -EOPNOTSUPP if @type or the running libibverbs has no call for a flag. */
static int qp_ex_check_ops(const struct urxe_context *ctx,
			   enum ibv_qp_type type, uint64_t flags)
{
	const uint32_t ops = qp_ops(ctx, type);
	size_t i;

	for (i = 0; i < BUILDERS; i++)
		if (ops & WQE_BIT(builders[i].opcode) &&
		    builders[i].slot + sizeof(void *) <= pabi.qp_tail)
			flags &= ~(uint64_t)builders[i].flag;
	if (flags)
		return profile_refuse(
			ctx, PROFILE_send_ops, EOPNOTSUPP,
			"send_ops_flags 0x%llx are not supported by this QP type",
			(unsigned long long)flags);
	return 0;
}

static void qp_ex_set_calls(struct urxe_vqp *vqp, uint64_t flags)
{
	struct ibv_qp_ex *ex = &vqp->v.qp_ex;
	enum ibv_qp_type type = vqp->qp.type;
	size_t i;

	for (i = 0; i < BUILDERS; i++)
		if (flags & builders[i].flag)
			memcpy(vqp->v.room + builders[i].slot, &builders[i].fn,
			       sizeof(wr_call));
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (type == IBV_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	pabi_qp_tail(&vqp->v)->comp_mask |= PABI_QP_IS_EX;
}

#define QP_MASKS \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | \
	 IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
#define QP_MASKS_OF_NICS \
	(IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE | \
	 IBV_QP_INIT_ATTR_RX_HASH)

static int qp_ex_check_init(const struct urxe_context *ctx,
			    const struct ibv_qp_init_attr_ex *a)
{
	if (a->comp_mask & QP_MASKS_OF_NICS)
		return fabric_fail(EOPNOTSUPP, "TSO and RSS are not supported");
	if (a->comp_mask & ~QP_MASKS)
		return fabric_fail(EINVAL, "unknown bits in comp_mask");
	if (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    a->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
		return fabric_fail(EOPNOTSUPP,
				   "create_flags 0x%x are not supported",
				   a->create_flags);
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return qp_ex_check_ops(ctx, a->qp_type, a->send_ops_flags);
	return 0;
}

struct ibv_qp *urxe_create_qp_ex(struct ibv_context *ctx,
				 struct ibv_qp_init_attr_ex *a)
{
	struct ibv_qp *qp;
	int ret;

	ret = qp_ex_check_init(to_uctx(ctx), a);
	if (ret)
		return urxe_fail(ret, "ibv_create_qp_ex");
	qp = vqp_create(ctx, a);
	if (qp && a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		to_uqp(qp)->block_own_mcast = a->create_flags;
	if (qp && a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp_ex_set_calls(to_vqp(qp), a->send_ops_flags);
	return qp;
}
