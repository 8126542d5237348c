// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Polling of extended CQs: ibv_start_poll and the calls of struct ibv_cq_ex.
 */
#include <errno.h>

#include "cq.h"
#include "engine/poll/cq_arm.h"
#include "engine/poll/poller.h"

static struct urxe_vcq *vcq_from_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct urxe_vcq, v.cq_ex);
}

/* ------------------------------------------------------- the iterator */

/* Take the next completion into vcq->current; false if there is none. */
static bool cq_ex_advance(struct urxe_vcq *vcq)
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
 * The poller's lock is held from start_poll to end_poll, so that no other
 * thread polls.  The gate is entered only within each call: between the calls
 * the application may, for example, destroy a QP, which waits for pollers
 * inside the gate (cq_wait_pollers()).
 */
static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct urxe_vcq *vcq = vcq_from_ex(ibcq);
	bool found;

	if (unlikely(attr->comp_mask)) {
		errno = EINVAL;
		return EINVAL;
	}
	poll_begin(&vcq->cq);
	cq_lock(&vcq->cq);
	found = cq_ex_advance(vcq);
	cq_note_poll(&vcq->cq, found);
	if (!found) {
		cq_unlock(&vcq->cq);
		return ENOENT;
	}
	cq_batch_begin(&vcq->cq);
	return 0;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	return cq_ex_advance(vcq_from_ex(ibcq)) ? 0 : ENOENT;
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct urxe_vcq *vcq = vcq_from_ex(ibcq);

	cq_batch_end(&vcq->cq);
	cq_unlock(&vcq->cq);
}

/* ------------------------------------------------------- the fields */

#define READ(type, name, value)                                       \
	static type read_##name(struct ibv_cq_ex *cq)                 \
	{                                                             \
		const struct urxe_cqe *e = &vcq_from_ex(cq)->current; \
                                                                      \
		return value;                                         \
	}

READ(enum ibv_wc_opcode, opcode, e->opcode)
READ(uint32_t, vendor_err, poll_vendor_err(e))
READ(unsigned int, wc_flags, e->wc_flags & ~URXE_CQE_OWN_FLAGS)
READ(uint32_t, byte_len, e->byte_len)
/* ibv_wc_read_invalidated_rkey uses this call as well, for the rkey */
READ(__be32, imm_data, e->imm)
READ(uint32_t, qp_num, e->qpn)
READ(uint32_t, src_qp, e->src_qp)
READ(uint8_t, sl, poll_sl(e))
READ(uint32_t, slid, poll_slid(e))
READ(uint8_t, path_bits, poll_path_bits(e))
/* The device clock is the wall clock: ns since 1970. */
READ(uint64_t, timestamp, e->timestamp)

void cq_ex_set_calls(struct ibv_cq_ex *cq, uint64_t wc_flags)
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
