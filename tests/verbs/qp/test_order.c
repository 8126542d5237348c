// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The order in which a CPU that polls memory observes the RDMA WRITEs of one
 * QP. It depends on the machine's memory model: x86 keeps much of the order
 * by itself, so missing barriers show on others.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "../harness.h"

#define FLAG 4096 /* offset of the flag in b's buffer */
#define WORDS 63 /* of data, each is the number of the round */
#define AHEAD 64 /* rounds that a is ahead of b at most */
#define BATCH 8 /* rounds until a waits for a completion */
#define DATA(round) ((round) % BATCH * 256) /* offset in a's buffer */

/*
 * Memory that both processes share, besides the device: number of rounds,
 * last round that b has observed, data words older than their flag, torn
 * flags.
 */
struct both {
	_Atomic uint32_t rounds, seen, wrong, torn;
};

/*
 * Return the flag of a round: the low byte of its number in all four bytes,
 * so that b can detect a torn flag.
 */
static uint32_t flag_of(uint32_t round)
{
	return (round & 0xff) * 0x01010101;
}

/* b: wait for flags, and check the data each time. */
static void watch(struct node *b, void *arg)
{
	struct both *s = *(struct both **)arg;
	_Atomic uint32_t *flag =
		(_Atomic uint32_t *)(void *)((char *)b->buf + FLAG);
	_Atomic uint32_t *data = b->buf;
	uint32_t was = 0, now, i, round = 0;

	while (round < atomic_load(&s->rounds)) {
		now = atomic_load_explicit(flag, memory_order_acquire);
		if (now == was) {
			sched_yield();
			continue;
		}
		if (now != flag_of(now))
			atomic_fetch_add(&s->torn, 1);
		/* a may have written several rounds since */
		round += (uint8_t)(now - was);
		was = now;
		for (i = 0; i < WORDS; i++)
			if ((int32_t)(atomic_load_explicit(
					      &data[i], memory_order_relaxed) -
				      round) < 0)
				atomic_fetch_add(&s->wrong, 1);
		atomic_store(&s->seen, round);
	}
}

static void *watcher(void *arg)
{
	void **with = arg;

	on_b(with[0], watch, &with[1], sizeof(with[1]));
	return NULL;
}

/* Post the WRITEs of data and of flag as one list. */
static void write_round(struct duo *d, uint32_t round, unsigned int flags)
{
	uint32_t *data = (uint32_t *)d->a.buf + DATA(round) / 4, i;
	uint32_t flag = flag_of(round), flag_at = FLAG + DATA(round);
	struct ibv_sge sge[2] = { node_sge(&d->a, DATA(round), 4 * WORDS),
				  node_sge(&d->a, flag_at, 4) };
	struct ibv_send_wr wr[2] = {
		rdma_wr(d, IBV_WR_RDMA_WRITE, 0, &sge[0], 1, 0),
		rdma_wr(d, IBV_WR_RDMA_WRITE, round, &sge[1], 1, FLAG),
	};

	for (i = 0; i < WORDS; i++)
		data[i] = round;
	memcpy((char *)d->a.buf + flag_at, &flag, sizeof(flag));
	wr[0].send_flags = 0;
	wr[0].next = &wr[1];
	wr[1].send_flags = flags;
	ck_ok(post_wr(d->a.qp, wr));
}

#define ROUNDS 10000

/*
 * WRITEs of one QP are observed in order: with the flag of a round, b
 * observes the data of that round or of a later one.
 */
START_TEST(data_before_flag)
{
	struct both *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const enum mem mem[] = { MEM_HEAP, MEM_SHARED, MEM_FILE };
	struct opts o = default_opts();
	struct duo d;
	void *with[2] = { &d, s };
	pthread_t t;
	uint32_t i;

	ck_assert(s != MAP_FAILED);
	atomic_store(&s->rounds, ROUNDS);
	o.size = 2 * FLAG;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, mem[_i], &o);
	b_fill(&d, 0, 0, 0);
	memset(d.a.buf, 0, o.size);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 0, 0, o.size, 0, 0));
	expect_ok(d.a.scq, 0, IBV_WC_RDMA_WRITE);
	ck_ok(pthread_create(&t, NULL, watcher, with));
	for (i = 1; i <= ROUNDS; i++) {
		while (i - atomic_load(&s->seen) > AHEAD)
			sched_yield();
		write_round(&d, i, i % BATCH ? 0 : IBV_SEND_SIGNALED);
		if (i % BATCH == 0)
			expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	}
	ck_ok(pthread_join(t, NULL));
	ck_assert_uint_eq(atomic_load(&s->wrong), 0);
	/*
	 * the kernel may be interrupted while it copies the four bytes of a
	 * flag; only the mapped file is written without the kernel
	 */
	if (mem[_i] == MEM_FILE)
		ck_assert_uint_eq(atomic_load(&s->torn), 0);
	duo_close(&d);
	munmap(s, sizeof(*s));
}
END_TEST

int main(void)
{
	Suite *s = suite("order");

	add_loop(s, data_before_flag, 3);
	return run(s);
}
