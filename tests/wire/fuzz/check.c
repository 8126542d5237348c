// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Invariants of memory and of completions, for all inputs. */
#include <string.h>

#include "host.h"
#include "wire/psn.h"

/* ------------------------------------------------------- memory */

static bool writable(uint32_t at)
{
	const struct key *k;

	if (host.receivable[at])
		return true;
	for (k = host.key; k < host.key + KEYS; k++)
		if (k->may && !k->foreign &&
		    k->rights & (IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_ATOMIC) &&
		    at >= k->at && at - k->at < k->bytes)
			return true;
	return false;
}

void check_memory(void)
{
	uint32_t i;

	if (!memcmp(host.mem, host.base, MEM_BYTES))
		return;
	for (i = 0; i < MEM_BYTES; i++)
		if (host.mem[i] != host.base[i]) {
			must(writable(i));
			host.base[i] = host.mem[i];
		}
}

/* ------------------------------------------------------- posted WRs */

enum { RECV = 1 };

/*
 * Bit 0: RECV; bits 1 to 7: QP; bits 8 to 31: generation of the QP;
 * bits 32 to 63: number of the WR
 */
uint64_t wr_id(int i, bool recv)
{
	return (uint64_t)host.next_id++ << 32 |
	       (host.qp[i].generation & 0xffffff) << 8 | (uint32_t)i << 1 |
	       recv;
}

void queue_add(struct queue *q, struct posted p)
{
	must(q->n < POSTED);
	q->wr[(q->first + q->n++) % POSTED] = p;
}

/* Reset and destruction of a QP may lose a receive taken from its SRQ. */
void queues_forget(int i)
{
	if (i == QP_SRQ || i == QP_XRC)
		host_receives(i)->lost++;
	host.qp[i].sq.n = host.qp[i].rq.n = 0;
	host.qp[i].generation++;
}

static struct posted queue_take(struct queue *q)
{
	struct posted p;

	must(q->n);
	p = q->wr[q->first];
	q->first = (q->first + 1) % POSTED;
	q->n--;
	return p;
}

/* ------------------------------------------------------- completions */

/*
 * Check that the peer sent a response to the WR before it completed.  The
 * response to a READ or an atomic is data for each PSN, and to other WRs an
 * ACK of their last PSN or of a later one.
 */
static void check_answered(const struct host_qp *q, const struct posted *p)
{
	uint32_t i, at = (p->psn - FIRST_PSN) & WIRE_PSN_MASK;

	if (q->type != IBV_QPT_RC || !p->packets)
		return;
	if (p->opcode != IBV_WR_RDMA_READ &&
	    p->opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
	    p->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD) {
		must(wire_psn_minus(q->acked,
				    wire_psn_add(p->psn, p->packets)) >= 0);
		return;
	}
	for (i = at; i < at + p->packets && i < 8 * sizeof(q->data); i++)
		must(q->data[i / 8] >> i % 8 & 1);
}

static void key_changed(const struct posted *p, const struct ibv_wc *wc)
{
	if (p->key >= 0 && wc->status == IBV_WC_SUCCESS &&
	    p->opcode == IBV_WR_LOCAL_INV)
		host.key[p->key].may = false;
}

static void check_sent(struct host_qp *q, const struct ibv_wc *wc)
{
	struct posted p;

	/* earlier WRs without a completion are unsignaled and successful */
	for (;;) {
		p = queue_take(&q->sq);
		if (p.id == wc->wr_id)
			break;
		must(!p.signaled);
		check_answered(q, &p);
	}
	if (wc->status == IBV_WC_SUCCESS) {
		must(p.signaled);
		check_answered(q, &p);
	}
	key_changed(&p, wc);
}

static void check_received(int i, const struct ibv_wc *wc)
{
	struct queue *q = host_receives(i);
	struct posted p = queue_take(q);

	for (; p.id != wc->wr_id; p = queue_take(q))
		must(q->lost-- > 0);
	if (wc->status == IBV_WC_SUCCESS &&
	    wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		must(wc->byte_len <= p.length);
}

static void check_completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	const uint32_t word = (uint32_t)wc->wr_id;
	int i;

	for (i = 0; i < QPS; i++)
		if (host.qp[i].qp && host.qp[i].qp->qp_num == wc->qp_num)
			break;
	/*
	 * ibv_destroy_qp() removes the completions of the QP from its CQs.
	 * But receives of an XRC target complete in the CQ of the SRQ, and
	 * those completions remain.
	 */
	if (i == QPS) {
		must(word & RECV && cq == host.qp[QP_XRC].cq);
		check_received(QP_XRC, wc);
		return;
	}
	must(cq == host.qp[i].cq);
	if (i == QP_SMALL) /* its CQ may have overrun */
		return;
	if ((i != QP_SRQ && i != QP_XRC) || !(word & RECV)) {
		must((word >> 1 & 0x7f) == (uint32_t)i);
		must(word >> 8 == (host.qp[i].generation & 0xffffff));
	}
	if (word & RECV)
		check_received(i, wc);
	else
		check_sent(&host.qp[i], wc);
}

static void poll_all(struct ibv_cq *cq)
{
	struct ibv_wc wc[8];
	int i, n;

	while ((n = ibv_poll_cq(cq, 8, wc)) > 0)
		for (i = 0; i < n; i++)
			check_completion(cq, &wc[i]);
	must(n == 0 || cq == host.small_cq);
}

static void take_events(void)
{
	struct ibv_async_event e;

	while (!ibv_get_async_event(host.ctx, &e))
		ibv_ack_async_event(&e);
}

void check_polls(bool small)
{
	take_events();
	poll_all(host.cq);
	if (small)
		poll_all(host.small_cq);
}
