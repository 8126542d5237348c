// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two contexts of one process, and many threads that use them as verbs
 * programs do.  Each thread posts to a QP of its own.  All threads of a
 * context poll one CQ, two QPs share an SRQ, and the poller of a receive
 * posts it again.  Meanwhile CQs and SRQs are resized, and keys and QPs are
 * created and destroyed.  ThreadSanitizer checks for races; the test checks
 * the content of messages.
 */
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "engine/core/av.h"
#include "engine/exec/sq_post.h"
#include "engine/poll/cq_arm.h"
#include "../threads.h"
#include "engine/poll/cq_resize.h"

/* SENDs, or pairs of WRITE and READ, outstanding at an end */
#define SLOTS 8u
#define SLOT 256u
#define MESSAGES 2000u /* per poster */
#define STRANGER 1000u /* wr_id of WRs that belong to no end */
#define CQE 128u /* more than can be outstanding */

struct message {
	uint32_t end, seq, len;
	char bytes[];
};

/* The ends of each side: three RC, of which two use the SRQ, and one UD. */
enum { OWN_RECEIVES, SHARED_0, SHARED_1, DATAGRAMS, ENDS };

struct end {
	struct urxe_qp *qp;
	struct side *side;
	struct end *peer;
	unsigned int id;
	uint64_t state; /* of its poster's random numbers */
	_Atomic uint32_t busy; /* slots in use, a bit each */
	_Atomic uint32_t seq, received;
	_Atomic uint8_t seen[MESSAGES]; /* messages that it received */
	uint32_t seed[SLOTS], len[SLOTS]; /* of the data that a slot wrote */
	_Alignas(uint64_t) char out[SLOTS][SLOT], back[SLOTS][SLOT];
	char target[SLOTS][SLOT], in[ENGINE_DEPTH][SLOT];
};

struct side {
	struct urxe_context *ctx;
	struct urxe_cq *cq;
	struct urxe_srq *srq;
	struct urxe_ah ah;
	uint32_t key; /* of the variable world */
	/* one thread sleeps on it and polls; -1: all threads poll */
	int channel;
	char in[ENGINE_DEPTH][SLOT]; /* of the SRQ */
	struct end end[ENDS];
};

static struct {
	struct side side[2];
	_Alignas(uint64_t) uint64_t counter;
	/* FETCH_AND_ADDs, and the sum of their results */
	_Atomic uint64_t adds, olds;
	_Atomic uint32_t posting; /* posters that are not done */
	_Atomic uint32_t left; /* outstanding WRs, without datagrams */
	_Atomic bool done;
} world;

/* ------------------------------------------------------- receiving */

static struct end *end_of(struct side *s, uint32_t qpn)
{
	unsigned int i;

	for (i = 0; i < ENDS && s->end[i].qp->qpn != qpn; i++)
		;
	sure(i < ENDS);
	return &s->end[i];
}

static bool is_shared(const struct end *e)
{
	return e->qp->srq != NULL;
}

static char *buffer_of(struct end *e, uint64_t i)
{
	sure(i < ENGINE_DEPTH);
	return is_shared(e) ? e->side->in[i] : e->in[i];
}

static void give_receive(struct end *e, uint64_t i)
{
	struct ibv_sge sge = { (uintptr_t)buffer_of(e, i), SLOT, e->side->key };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	sure(!(is_shared(e) ? srq_post_recv(e->qp->srq, &wr, &bad) :
			      rq_post_recv(e->qp, &wr, &bad)));
}

static void note_received(struct end *e, uint32_t seq)
{
	sure(seq < MESSAGES && !atomic_exchange(&e->seen[seq], 1));
	atomic_fetch_add(&e->received, 1);
	if (e->id != DATAGRAMS)
		atomic_fetch_sub(&world.left, 1);
}

static void received(struct end *e, const struct ibv_wc *wc)
{
	const uint32_t grh = e->id == DATAGRAMS ? 40 : 0;
	const char *p = buffer_of(e, wc->wr_id) + grh;
	struct message m;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		note_received(e, wc->imm_data);
	} else {
		sure(wc->opcode == IBV_WC_RECV);
		memcpy(&m, p, sizeof(m));
		sure(m.end == e->id && wc->byte_len == grh + m.len);
		sure(bytes_are(p + sizeof(m), m.len - sizeof(m), m.seq));
		note_received(e, m.seq);
	}
	give_receive(e, wc->wr_id);
}

/* ------------------------------------------------------- sending */

static void sent(struct end *e, const struct ibv_wc *wc)
{
	const uint32_t i = wc->wr_id;
	uint64_t old;

	sure(i < SLOTS);
	if (wc->opcode == IBV_WC_RDMA_READ) {
		sure(bytes_are(e->back[i], e->len[i], e->seed[i]));
		atomic_fetch_sub(&world.left, 1);
	} else if (wc->opcode == IBV_WC_FETCH_ADD) {
		memcpy(&old, e->back[i], sizeof(old));
		atomic_fetch_add(&world.olds, old);
		atomic_fetch_sub(&world.left, 1);
	}
	atomic_fetch_and(&e->busy, ~(1u << i));
}

static int side_poll(struct side *s)
{
	struct ibv_wc wc[4];
	struct end *e;
	int i, n = poll_cq(s->cq, 4, wc);

	for (i = 0; i < n; i++) {
		sure(wc[i].status == IBV_WC_SUCCESS);
		if (wc[i].wr_id == STRANGER)
			continue;
		e = end_of(s, wc[i].qp_num);
		if (wc[i].opcode & IBV_WC_RECV)
			received(e, &wc[i]);
		else
			sent(e, &wc[i]);
	}
	if (!n)
		sched_yield();
	return n;
}

static void wait_a_bit(struct side *s)
{
	if (s->channel < 0)
		side_poll(s);
	else
		usleep(100);
}

static bool take_slot(struct end *e, uint32_t *slot)
{
	uint32_t busy = atomic_load(&e->busy), i;

	for (i = 0; i < SLOTS && busy & 1u << i; i++)
		;
	*slot = i;
	return i < SLOTS && !(atomic_fetch_or(&e->busy, 1u << i) & 1u << i);
}

static struct ibv_send_wr *fill(struct wr *w, struct end *e, uint32_t slot,
				enum ibv_wr_opcode opcode, char *from,
				uint32_t len)
{
	memset(w, 0, sizeof(*w));
	w->sge = (struct ibv_sge){ (uintptr_t)from, len, e->side->key };
	w->wr.wr_id = slot;
	w->wr.opcode = opcode;
	w->wr.send_flags = IBV_SEND_SIGNALED;
	w->wr.sg_list = &w->sge;
	w->wr.num_sge = 1;
	w->wr.wr.rdma.remote_addr = (uintptr_t)e->peer->target[slot];
	w->wr.wr.rdma.rkey = e->peer->side->key;
	return &w->wr;
}

static void fill_send(struct wr *w, struct end *e, uint32_t slot, uint32_t seq)
{
	static const uint32_t lengths[] = { 16, 64, 80, 81, 200 };
	struct message m = { e->peer->id, seq, lengths[rnd(&e->state, 5)] };

	memcpy(e->out[slot], &m, sizeof(m));
	bytes_make(e->out[slot] + sizeof(m), m.len - sizeof(m), seq);
	fill(w, e, slot, IBV_WR_SEND, e->out[slot], m.len);
	if (m.len <= 64 && rnd(&e->state, 2))
		w->wr.send_flags |= IBV_SEND_INLINE;
	if (e->id != DATAGRAMS)
		return;
	w->wr.wr.ud.ah = &e->side->ah.ah;
	w->wr.wr.ud.remote_qpn = e->peer->qp->qpn;
	w->wr.wr.ud.remote_qkey = ENGINE_QKEY;
}

/* A WRITE, and a READ of the same data. */
static void fill_write(struct wr w[2], struct end *e, uint32_t slot)
{
	uint32_t len = 8 + rnd(&e->state, SLOT - 8);

	e->len[slot] = len;
	e->seed[slot] = rnd(&e->state, 256);
	bytes_make(e->out[slot], len, e->seed[slot]);
	fill(&w[0], e, slot, IBV_WR_RDMA_WRITE, e->out[slot], len);
	fill(&w[1], e, slot, IBV_WR_RDMA_READ, e->back[slot], len);
	w[0].wr.send_flags = 0;
	w[0].wr.next = &w[1].wr;
}

static void fill_add(struct wr *w, struct end *e, uint32_t slot)
{
	fill(w, e, slot, IBV_WR_ATOMIC_FETCH_AND_ADD, e->back[slot], 8);
	w->wr.wr.atomic.remote_addr = (uintptr_t)&world.counter;
	w->wr.wr.atomic.rkey = e->peer->side->key;
	w->wr.wr.atomic.compare_add = 1;
	atomic_fetch_add(&world.adds, 1);
}

static void post_one(struct end *e, uint32_t slot)
{
	uint32_t kind = e->id == DATAGRAMS ? 0 : rnd(&e->state, 5);
	struct ibv_send_wr *bad;
	struct wr w[2];

	if (e->id != DATAGRAMS)
		atomic_fetch_add(&world.left, 1);
	if (kind < 2) {
		fill_send(w, e, slot, atomic_fetch_add(&e->seq, 1));
	} else if (kind == 2) {
		fill(w, e, slot, IBV_WR_RDMA_WRITE_WITH_IMM, e->out[slot], 8);
		w->wr.imm_data = atomic_fetch_add(&e->seq, 1);
	} else if (kind == 3) {
		fill_write(w, e, slot);
	} else {
		fill_add(w, e, slot);
	}
	sure(!sq_post(e->qp, &w->wr, &bad));
}

static void *poster(void *arg)
{
	struct end *e = arg;
	uint32_t slot, i;

	e->state = (uintptr_t)e | 1;
	for (i = 0; i < MESSAGES; i++) {
		until(take_slot(e, &slot), wait_a_bit(e->side));
		post_one(e, slot);
		if (rnd(&e->state, 2))
			wait_a_bit(e->side);
	}
	atomic_fetch_sub(&world.posting, 1);
	until(!atomic_load(&world.posting) && !atomic_load(&world.left) &&
		      !atomic_load(&e->busy),
	      wait_a_bit(e->side));
	return NULL;
}

/* ------------------------------------------------------- meanwhile */

static void *resizer(void *arg)
{
	struct side *s = arg;
	struct urxe_cq *cq = s->cq;
	struct urxe_srq *srq = s->srq;
	unsigned int i;

	for (i = 0; !atomic_load(&world.done); i++) {
		cq_lock(cq);
		gate_enter(&cq->gate);
		sure(!cq_resize(cq, i & 1 ? CQE : 2 * CQE));
		gate_leave(&cq->gate);
		cq_unlock(cq);
		urxe_lock(&srq->rq.lock);
		sure(!rq_resize(s->ctx, &srq->rq, srq->index,
				ENGINE_DEPTH + i % 16 * ENGINE_DEPTH));
		urxe_unlock(&srq->rq.lock);
		usleep(500);
	}
	return NULL;
}

/*
 * SENDs of the QP to itself.  Their completions may be polled while the QP is
 * destroyed.
 */
static void talk_to_itself(struct urxe_qp *qp, char *mem, uint32_t key)
{
	struct ibv_sge sge = { (uintptr_t)mem, 8, key };
	struct ibv_send_wr wr = { .wr_id = STRANGER,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		sure(!post_recv(qp, mem + 8, 8, key, STRANGER));
		sure(!sq_post(qp, &wr, &bad));
	}
}

/*
 * Create and destroy objects that no other thread uses, but that are in the
 * same tables and lists.
 */
static void *others(void *arg)
{
	struct side *s = arg;
	struct urxe_srq *srq;
	struct urxe_qp *qp;
	char mem[16];
	uint32_t key;

	while (!atomic_load(&world.done)) {
		key = engine_key(s->ctx, mem, sizeof(mem));
		srq = engine_srq(s->ctx);
		qp = engine_qp(IBV_QPT_RC, s->cq, s->cq, srq);
		engine_qp_close(qp);
		engine_srq_close(srq);
		qp = engine_qp(IBV_QPT_RC, s->cq, s->cq, NULL);
		engine_qp_connect(qp, qp->qpn);
		if (s->channel < 0)
			talk_to_itself(qp, mem, key);
		engine_key_close(s->ctx, key);
		engine_qp_close(qp);
		/*
		 * completions of a destroyed QP are in the CQ until they are
		 * polled
		 */
		while (s->channel < 0 && side_poll(s))
			;
		usleep(500);
	}
	return NULL;
}

/* Poll a CQ that no other thread polls, and sleep on its channel. */
static void *sleeper(void *arg)
{
	struct side *s = arg;
	struct pollfd p = { .fd = s->channel, .events = POLLIN };
	uint64_t tag;

	while (!atomic_load(&world.done)) {
		sure(!cq_arm(s->cq, URXE_ARM_NEXT));
		side_poll(s);
		if (poll(&p, 1, 100) != 1)
			continue;
		sure(read(p.fd, &tag, sizeof(tag)) == sizeof(tag));
		cq_event_fetched(s->cq);
		side_poll(s);
	}
	return NULL;
}

/* ------------------------------------------------------- the world */

static void side_open(struct side *s, struct urxe_fabric *f, bool sleeps)
{
	uint32_t channel = 0;
	unsigned int i;

	s->ctx = engine_open(f);
	s->channel = -1;
	if (sleeps) {
		s->channel = fifo_create(f, s->ctx->arena, &channel);
		ck_assert_int_ge(s->channel, 0);
		channel++;
	}
	s->cq = engine_cq_on(s->ctx, CQE, channel);
	s->srq = engine_srq(s->ctx);
	s->key = engine_key(s->ctx, &world, sizeof(world));
	s->ah = (struct urxe_ah){ .ctx = s->ctx, .pd = ENGINE_PD };
	for (i = 0; i < ENDS; i++) {
		bool shared = i == SHARED_0 || i == SHARED_1;

		s->end[i].id = i;
		s->end[i].side = s;
		s->end[i].qp =
			engine_qp(i == DATAGRAMS ? IBV_QPT_UD : IBV_QPT_RC,
				  s->cq, s->cq, shared ? s->srq : NULL);
	}
}

static void side_connect(struct side *s, struct side *other)
{
	struct end *e;
	unsigned int i, k;

	for (i = 0; i < ENDS; i++) {
		e = &s->end[i];
		e->peer = &other->end[i];
		engine_qp_connect(e->qp, i == DATAGRAMS ? 0 : e->peer->qp->qpn);
		for (k = 0; k < ENGINE_DEPTH && i != SHARED_1; k++)
			give_receive(e, k);
	}
}

static void side_close(struct side *s)
{
	unsigned int i;

	for (i = 0; i < ENDS; i++)
		engine_qp_close(s->end[i].qp);
	engine_srq_close(s->srq);
	engine_key_close(s->ctx, s->key);
	engine_cq_close(s->cq);
	if (s->channel >= 0)
		close(s->channel);
	engine_leave(s->ctx);
}

/* Each message was received once; datagrams may be dropped. */
static void check_counts(void)
{
	const struct end *e;
	unsigned int i;

	for (i = 0; i < 2 * ENDS; i++) {
		e = &world.side[i / ENDS].end[i % ENDS];
		if (e->id == DATAGRAMS)
			sure(e->received && e->received <= e->peer->seq);
		else
			sure(e->received == e->peer->seq);
	}
	sure(world.adds && world.counter == world.adds);
	sure(world.olds == world.adds * (world.adds - 1) / 2);
}

static void run(bool sleeps)
{
	struct urxe_fabric *f = new_fabric();
	struct side *a = &world.side[0], *b = &world.side[1];
	pthread_t post[2 * ENDS], other[5];
	unsigned int i, n = 0;

	side_open(a, f, false);
	side_open(b, f, sleeps);
	side_connect(a, b);
	side_connect(b, a);
	world.posting = 2 * ENDS;
	for (i = 0; i < 2 * ENDS; i++)
		post[i] =
			thread_of(poster, &world.side[i / ENDS].end[i % ENDS]);
	other[n++] = thread_of(resizer, a);
	other[n++] = thread_of(resizer, b);
	other[n++] = thread_of(others, a);
	other[n++] = thread_of(others, b);
	if (sleeps)
		other[n++] = thread_of(sleeper, b);
	for (i = 0; i < 2 * ENDS; i++)
		pthread_join(post[i], NULL);
	atomic_store(&world.done, true);
	for (i = 0; i < n; i++)
		pthread_join(other[i], NULL);
	check_counts();
	side_close(a);
	side_close(b);
	fabric_close(f);
}

START_TEST(all_poll)
{
	run(false);
}
END_TEST

START_TEST(one_sleeps)
{
	run(true);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine, threads that talk");

	threads_add(s, all_poll);
	threads_add(s, one_sleeps);
	return run_suite(s);
}
