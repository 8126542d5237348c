// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>

#include "cq.h"
#include "engine/log.h"
#include "engine/poll.h"
#include "parent_domain.h"
#include "verbs.h"

static struct urxe_vcq *from_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct urxe_vcq, v.cq_ex);
}

/* ------------------------------------------------------- the iterator */

static bool advance(struct urxe_vcq *vcq)
{
	struct urxe_cq *cq = &vcq->cq;
	bool got;

	gate_enter(&cq->gate);
	got = poll_take(cq, &vcq->current);
	gate_leave(&cq->gate);
	if (!got)
		return false;
	vcq->v.cq_ex.wr_id = vcq->current.wr_id;
	vcq->v.cq_ex.status = vcq->current.status;
	return true;
}

/*
 * Other pollers are kept out for the whole batch, but the gate is open in
 * between: the application may do anything there, as destroy a QP.
 */
static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct urxe_vcq *vcq = from_ex(ibcq);

	if (unlikely(attr->comp_mask))
		return EINVAL;
	poll_progress(&vcq->cq);
	cq_lock(&vcq->cq);
	if (!advance(vcq)) {
		cq_unlock(&vcq->cq);
		return ENOENT;
	}
	store_relaxed(&vcq->batch_thread, pthread_self());
	return 0;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	return advance(from_ex(ibcq)) ? 0 : ENOENT;
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct urxe_vcq *vcq = from_ex(ibcq);

	store_relaxed(&vcq->batch_thread, (pthread_t)0);
	cq_unlock(&vcq->cq);
}

/* ------------------------------------------------------- the fields */

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return from_ex(cq)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return poll_vendor_err(&from_ex(cq)->current);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return from_ex(cq)->current.wc_flags & ~URXE_CQE_IPV4;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return from_ex(cq)->current.byte_len;
}

/* or the invalidated rkey: ibv_wc_read_invalidated_rkey is the same call */
static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return from_ex(cq)->current.imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return from_ex(cq)->current.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return from_ex(cq)->current.src_qp;
}

/* There are no LIDs on this link layer. */
static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return poll_sl(&from_ex(cq)->current);
}

static uint8_t read_path_bits(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

/* Device clock and wall clock are one: ns since 1970. */
static uint64_t read_timestamp(struct ibv_cq_ex *cq)
{
	return from_ex(cq)->current.timestamp;
}

#define TIMESTAMP_FLAGS \
	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define WC_FLAGS (IBV_WC_STANDARD_FLAGS | TIMESTAMP_FLAGS)

/* What was not asked for cannot be read (man ibv_create_cq_ex). */
static void cq_ex_set_calls(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = read_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_timestamp;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_timestamp;
}

/* ------------------------------------------------------- creating */

#define CQ_MASKS (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define CQ_FLAGS \
	(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

static int cq_ex_check_attr(const struct ibv_cq_init_attr_ex *a, uint32_t flags,
		      const struct urxe_pd *parent)
{
	if (a->comp_mask & ~CQ_MASKS)
		return fabric_fail(EINVAL, "comp_mask");
	if (a->wc_flags & ~(uint64_t)WC_FLAGS)
		return fabric_fail(EOPNOTSUPP, "wc_flags 0x%llx",
				   (unsigned long long)(a->wc_flags &
							~(uint64_t)WC_FLAGS));
	if (flags & ~CQ_FLAGS)
		return fabric_fail(EOPNOTSUPP, "flags");
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!parent || !parent->parent))
		return fabric_fail(EINVAL, "not a parent domain");
	if (a->cqe > URXE_MAX_CQE || a->comp_vector >= URXE_NUM_COMP_VECTORS)
		return fabric_fail(EINVAL, "cqe or comp_vector");
	return 0;
}

struct ibv_cq_ex *urxe_create_cq_ex(struct ibv_context *ibctx,
				    struct ibv_cq_init_attr_ex *a)
{
	struct cq_request r = { .cqe = (int)a->cqe,
				.vector = (int)a->comp_vector,
				.channel = a->channel };
	struct urxe_pd *parent = NULL;
	int ret, saved = errno;
	struct urxe_vcq *vcq;
	uint32_t flags = 0;

	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		flags = a->flags;
	if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && a->parent_domain)
		parent = to_upd(a->parent_domain);
	ret = cq_ex_check_attr(a, flags, parent);
	if (ret)
		return urxe_fail(ret, "ibv_create_cq_ex");
	if (a->wc_flags & TIMESTAMP_FLAGS)
		r.flags |= URXE_CQ_TIMESTAMP;
	if (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		r.flags |= URXE_CQ_IGNORE_OVERRUN;
	r.single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED ||
			    pd_single_threaded(parent);
	vcq = vcq_create(ibctx, &r);
	if (!vcq)
		return NULL;
	if (parent) {
		pd_get(parent);
		vcq->parent = parent;
	}
	cq_ex_set_calls(&vcq->v.cq_ex, a->wc_flags);
	errno = saved;
	return &vcq->v.cq_ex;
}
