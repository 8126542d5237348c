// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The option "undefined": fields that the specification leaves undefined have
 * seeded random values.
 *
 * After an error only wr_id, status, qp_num and vendor_err of a completion
 * are valid (ibv_poll_cq(3)). The opcode is that of a random operation.
 *
 * The first 20 of the 40 bytes in front of a datagram are undefined, if it
 * came over IPv4 (Annex A17.4.5.2). ud_spoil_grh() makes them from
 * ctx->grh_noise of the sender's context; if the sender is on another host,
 * of the socket owner's (provider/wire).
 *
 * The interposers of ibv_poll_cq and of the polls of an extended CQ are
 * installed after those of the referee and the recorder, which need the
 * values that the provider wrote.
 */
#include "engine/poll/poller.h"
#include "object_seed.h"
#include "parts.h"
#include "verbs/cq.h"

static struct pabi_ops next;
static const struct adversary *with;

static const uint8_t opcodes[] = {
	IBV_WC_SEND,	  IBV_WC_RDMA_WRITE,
	IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD,
	IBV_WC_BIND_MW,	  IBV_WC_LOCAL_INV,
	IBV_WC_RECV,	  IBV_WC_RECV_RDMA_WITH_IMM,
};

/* Random values for one completion: the nth failed one of its CQ. */
struct noise {
	struct random_stream random;
	uint64_t nth;
	uint32_t draws;
};

static uint32_t noise_next(struct noise *n)
{
	return (uint32_t)random_draw(random_part(n->random, n->draws++),
				     ADV_undefined, n->nth);
}

static bool noise_begin(struct noise *n, const struct ibv_cq *cq)
{
	struct object_seed *m = object_seed_find(with, OBJECT_CQ, cq);

	if (!object_seed_decide(with, m, ADV_undefined, &n->nth))
		return false;
	n->random = object_seed_stream(m);
	n->draws = 0;
	return true;
}

static void spoil_wc(const struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct noise n;

	if (wc->status == IBV_WC_SUCCESS || !noise_begin(&n, cq))
		return;
	wc->opcode = opcodes[noise_next(&n) % sizeof(opcodes)];
	wc->byte_len = noise_next(&n);
	wc->imm_data = noise_next(&n);
	wc->src_qp = noise_next(&n) & 0xffffff;
	wc->wc_flags = noise_next(&n) & (IBV_WC_GRH | IBV_WC_WITH_IMM);
	wc->pkey_index = (uint16_t)noise_next(&n);
	wc->slid = (uint16_t)noise_next(&n);
	wc->sl = noise_next(&n) & 15;
	wc->dlid_path_bits = noise_next(&n) & 127;
}

static int undefined_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	int i, got = next.poll_cq(cq, num, wc);

	for (i = 0; i < got; i++)
		spoil_wc(cq, &wc[i]);
	return got;
}

/* ------------------------------------------------------- ibv_cq_ex */

static struct cq_ex_polls next_ex;

/* Spoil the current completion, which the ibv_wc_read_*() functions read. */
static void spoil_current(struct ibv_cq_ex *cq)
{
	struct urxe_vcq *vcq = container_of(cq, struct urxe_vcq, v.cq_ex);
	struct urxe_cqe *e = &vcq->current;
	struct noise n;

	if (e->status == IBV_WC_SUCCESS || !noise_begin(&n, &vcq->v.cq))
		return;
	e->opcode = opcodes[noise_next(&n) % sizeof(opcodes)];
	e->timestamp = noise_next(&n);
	e->byte_len = noise_next(&n);
	e->imm = noise_next(&n);
	e->src_qp = noise_next(&n) & 0xffffff;
	e->wc_flags = noise_next(&n) & (IBV_WC_GRH | IBV_WC_WITH_IMM);
}

static int undefined_start_poll(struct ibv_cq_ex *cq,
				struct ibv_poll_cq_attr *attr)
{
	int ret = load_relaxed(&next_ex.start)(cq, attr);

	if (!ret)
		spoil_current(cq);
	return ret;
}

static int undefined_next_poll(struct ibv_cq_ex *cq)
{
	int ret = load_relaxed(&next_ex.next)(cq);

	if (!ret)
		spoil_current(cq);
	return ret;
}

static struct ibv_cq_ex *undefined_create_cq_ex(struct ibv_context *ctx,
						struct ibv_cq_init_attr_ex *a)
{
	struct ibv_cq_ex *cq = next.create_cq_ex(ctx, a);

	if (cq)
		cq_ex_polls_replace(cq, &next_ex, undefined_start_poll,
				    undefined_next_poll);
	return cq;
}

void undefined_wrap(struct pabi_ops *ops, const struct adversary *a)
{
	next = *ops;
	with = a;
	if (!a->option[ADV_undefined])
		return;
	ops->poll_cq = undefined_poll_cq;
	ops->create_cq_ex = undefined_create_cq_ex;
}

void undefined_opened(const struct adversary *a, struct urxe_context *ctx)
{
	if (a->option[ADV_undefined])
		ctx->grh_noise = 1 | random_draw(a->random, ADV_undefined, 0);
}
