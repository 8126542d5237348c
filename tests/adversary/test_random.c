// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A correct program that performs random operations and relies only on what
 * is guaranteed, with all options and several seeds.  Each message arrives
 * once, in order and complete, each WR completes once and in order, and
 * nothing hangs.
 */
#include <stdio.h>
#include <string.h>

#include "chaos/random.h"
#include "with.h"

#define WRS 300 /* of one run */
#define DEPTH 40 /* outstanding at most */
#define SLOTS 8 /* of 64 bytes, targets of WRITEs and READs */
#define SLOT 64
#define INBOX 4096 /* b's receive buffers, one for each of RECVS */
#define COUNTER 2048
#define RECVS 32

enum op { WRITE, WRITE_IMM, SEND, SEND_INLINE, READ, ADD, OPS };

struct wr {
	enum op op;
	uint32_t slot;
	bool fence;
	uint64_t low; /* READ: least value to be read; ADD: value before it */
};

struct game {
	struct duo d;
	struct random_stream c;
	uint32_t drawn;
	struct wr wr[WRS];
	uint32_t posted, done, messages, received, receives, adds;
	uint64_t slot[SLOTS]; /* last WR that writes to it */
};

static uint32_t draw(struct game *g, uint32_t n)
{
	return random_below(g->c, 0, g->drawn++, n);
}

static bool takes_receive(enum op op)
{
	return op == WRITE_IMM || op == SEND || op == SEND_INLINE;
}

/*
 * Offset of the source of WR i in a's buffer.  It is not reused until the WR
 * is complete.
 */
static size_t source(uint32_t i)
{
	return 8192 + i % DEPTH * SLOT;
}

static int post_imm(struct game *g, const struct wr *w, uint32_t i,
		    unsigned int flags)
{
	struct ibv_sge sge = node_sge(&g->d.a, source(i), SLOT);
	struct ibv_send_wr wr = rdma_wr(&g->d, IBV_WR_RDMA_WRITE_WITH_IMM, i,
					&sge, 1, w->slot * SLOT);

	wr.imm_data = i;
	wr.send_flags |= flags;
	return post_wr(g->d.a.qp, &wr);
}

static int post_one(struct game *g, struct wr *w, uint32_t i)
{
	static const int ops[] = { [WRITE] = IBV_WR_RDMA_WRITE,
				   [SEND] = IBV_WR_SEND,
				   [SEND_INLINE] = IBV_WR_SEND,
				   [READ] = IBV_WR_RDMA_READ };
	unsigned int flags = w->fence ? IBV_SEND_FENCE : 0;

	if (w->op == WRITE_IMM)
		return post_imm(g, w, i, flags);
	if (w->op == ADD)
		return post_atomic(&g->d, IBV_WR_ATOMIC_FETCH_AND_ADD, i,
				   source(i), COUNTER, 1, 0);
	if (w->op == SEND_INLINE)
		flags |= IBV_SEND_INLINE;
	return post(&g->d, ops[w->op], i, source(i), SLOT, w->slot * SLOT,
		    flags);
}

static void do_post(struct game *g)
{
	uint32_t i = g->posted, j;
	struct wr *w = &g->wr[i];
	uint64_t *p = (uint64_t *)(void *)((char *)g->d.a.buf + source(i));

	w->op = draw(g, OPS);
	w->slot = draw(g, SLOTS);
	w->fence = !draw(g, 4) && w->op != ADD;
	for (j = 0; j < SLOT / 8; j++)
		p[j] = i;
	w->low = w->op == ADD ? g->adds++ : g->slot[w->slot];
	if (w->op == WRITE || w->op == WRITE_IMM)
		g->slot[w->slot] = i;
	g->messages += takes_receive(w->op);
	ck_ok(post_one(g, w, i));
	g->posted++;
}

/*
 * Return the last WR whose data READ i may return: WRITEs behind it may
 * overtake it, up to a fence.
 */
static uint64_t highest(const struct game *g, uint32_t i)
{
	const struct wr *r = &g->wr[i], *w;
	uint64_t high = r->low;

	for (i++; i < g->posted && !g->wr[i].fence; i++) {
		w = &g->wr[i];
		if (w->op <= WRITE_IMM && w->slot == r->slot)
			high = i;
	}
	return high;
}

static void check_completion(struct game *g, const struct ibv_wc *wc)
{
	const struct wr *w = &g->wr[g->done];
	const uint64_t *p;
	uint32_t j;

	ck_assert_uint_eq(wc->wr_id, g->done);
	ck_assert_msg(wc->status == IBV_WC_SUCCESS, "WR %u: %s", g->done,
		      ibv_wc_status_str(wc->status));
	p = (const uint64_t *)(const void *)((char *)g->d.a.buf +
					     source(g->done));
	if (w->op == ADD)
		ck_assert_uint_eq(*p, w->low);
	for (j = 0; w->op == READ && j < SLOT / 8; j++)
		ck_assert_msg(p[j] >= w->low && p[j] <= highest(g, g->done),
			      "READ %u: word %u of slot %u is %d, not %d to %d",
			      g->done, j, w->slot, (int)p[j], (int)w->low,
			      (int)highest(g, g->done));
	g->done++;
}

static void do_poll(struct game *g)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(g->d.a.scq, 1, &wc);

	ck_assert_int_ge(n, 0);
	if (n)
		check_completion(g, &wc);
}

static void do_recv(struct game *g)
{
	if (g->receives - g->received < RECVS && g->receives < WRS) {
		b_recv(&g->d, g->receives,
		       INBOX + g->receives % RECVS * SLOT, SLOT);
		g->receives++;
	}
}

struct got {
	int n;
	struct ibv_wc wc;
};

static void poll_b(struct node *b, void *arg)
{
	struct got *g = arg;

	g->n = ibv_poll_cq(b->rcq, 1, &g->wc);
}

/* Poll b's receive CQ.  Messages must arrive in order. */
static void do_receive(struct game *g)
{
	uint32_t i, n = 0;
	struct got got;
	uint64_t v;

	on_b(&g->d, poll_b, &got, sizeof(got));
	ck_assert_int_ge(got.n, 0);
	if (!got.n)
		return;
	ck_assert_int_eq(got.wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(got.wc.wr_id, g->received);
	for (i = 0; i < g->posted; i++)
		if (takes_receive(g->wr[i].op) && n++ == g->received)
			break;
	ck_assert_uint_lt(i, g->posted);
	if (g->wr[i].op == WRITE_IMM) {
		ck_assert_uint_eq(got.wc.imm_data, i);
		v = b_load64(&g->d, g->wr[i].slot * SLOT + SLOT - 8);
		ck_assert_uint_ge(v, i);
	} else {
		v = b_load64(&g->d, INBOX + g->received % RECVS * SLOT);
		ck_assert_uint_eq(v, i);
	}
	g->received++;
}

static void do_drain(struct game *g)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };

	ck_ok(ibv_modify_qp(g->d.a.qp, &attr, IBV_QP_STATE));
	do_poll(g);
	ck_ok(qp_to(g->d.a.qp, IBV_QPS_RTS));
}

static void step(struct game *g)
{
	switch (draw(g, 12)) {
	case 0:
	case 1:
	case 2:
		if (g->posted < WRS && g->posted - g->done < DEPTH)
			do_post(g);
		break;
	case 3:
	case 4:
	case 5:
		do_recv(g);
		break;
	case 6:
		if (!draw(g, 20))
			sleep_ms(1);
		break;
	case 7:
		if (!draw(g, 10))
			do_drain(g);
		break;
	case 8:
		do_receive(g);
		break;
	default:
		do_poll(g);
	}
}

static void play(struct game *g)
{
	const double until = now_ms() + WAIT_MS;
	uint32_t i;

	while (g->done < WRS || g->received < g->messages) {
		step(g);
		ck_assert_msg(now_ms() < until,
			      "%u posted, %u done, %u of %u received, %u receives",
			      g->posted, g->done, g->received, g->messages,
			      g->receives);
	}
	for (i = 0; i < SLOTS; i++)
		ck_assert_uint_eq(b_load64(&g->d, i * SLOT), g->slot[i]);
	ck_assert_uint_eq(b_load64(&g->d, COUNTER), g->adds);
}

#define SEEDS 6

/* All options of a seed, except "slow", with b at each location. */
START_TEST(all_options)
{
	struct opts o = default_opts();
	static struct game g;
	char text[64];

	snprintf(text, sizeof(text), "%d,slow=0", _i + 1);
	setenv("URXE_ADVERSARY", text, 1);
	o.min_rnr_timer = 1;
	duo_open(&g.d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	g.c = (struct random_stream){ random_mix(_i) };
	play(&g);
	duo_close(&g.d);
}
END_TEST

int main(void)
{
	Suite *s = suite("random");

	add_loop(s, all_options,
		 WHERE_COUNT *
			 (getenv("SEEDS") ? atoi(getenv("SEEDS")) : SEEDS));
	return run(s);
}
