// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Record the completions that the program polls. A poll that finds none is
 * not recorded.
 */
#include "engine/poll/poller.h"
#include "recorder.h"
#include "trace/trace.h"
#include "verbs/cq.h"

static struct pabi_ops next;

static void record_polled(const struct ibv_wc *wc)
{
	bool recv = wc->opcode & IBV_WC_RECV;

	trace_short(POLLED, 3, wc->qp_num, wc->wr_id, wc->opcode, wc->status,
		    wc->byte_len, wc->wc_flags,
		    wc->wc_flags & IBV_WC_WITH_IMM ? wc->imm_data : 0,
		    recv ? wc->src_qp : 0,
		    wc->wc_flags & IBV_WC_WITH_INV ? wc->invalidated_rkey : 0);
}

static int recorder_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int i, got = next.poll_cq(cq, n, wc);

	for (i = 0; i < got; i++)
		record_polled(&wc[i]);
	return got;
}

/* ------------------------------------------------------- ibv_cq_ex */

static struct cq_ex_polls next_ex;

/*
 * Record the current completion of @cq, of an ibv_start_poll or ibv_next_poll
 * that returned 0.
 */
static void record_current(struct ibv_cq_ex *cq)
{
	struct urxe_vcq *vcq = container_of(cq, struct urxe_vcq, v.cq_ex);
	struct ibv_wc wc;

	poll_fill_wc(&vcq->current, &wc);
	record_polled(&wc);
}

static int recorder_start_poll(struct ibv_cq_ex *cq,
			       struct ibv_poll_cq_attr *attr)
{
	int ret = load_relaxed(&next_ex.start)(cq, attr);

	if (!ret)
		record_current(cq);
	return ret;
}

static int recorder_next_poll(struct ibv_cq_ex *cq)
{
	int ret = load_relaxed(&next_ex.next)(cq);

	if (!ret)
		record_current(cq);
	return ret;
}

void recorder_wrap_cq_ex(struct ibv_cq_ex *cq)
{
	cq_ex_polls_replace(cq, &next_ex, recorder_start_poll,
			    recorder_next_poll);
}

void recorder_wrap_polls(struct pabi_ops *ops)
{
	next = *ops;
	ops->poll_cq = recorder_poll_cq;
}
