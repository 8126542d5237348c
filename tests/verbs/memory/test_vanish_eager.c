// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Private memory that is removed at either end of a SEND that goes through an
 * eager buffer (provider/engine/cq/eager.h).
 *
 * The provider calls process_vm_writev() of this program, which counts the
 * copies that use no eager buffer.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vanish.h"

#define LONGEST 8192u /* as URXE_EAGER_BYTES */

static atomic_long copies;

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n,
			  const struct iovec *remote, unsigned long m,
			  unsigned long flags)
{
	atomic_fetch_add(&copies, 1);
	return syscall(SYS_process_vm_writev, pid, local, n, remote, m, flags);
}

static void send_one(struct duo *d, uint64_t id, uint32_t len)
{
	side_fill(d, MINE, MESSAGE, len, id + len);
	b_recv(d, id, MESSAGE, len);
	ck_ok(post(d, IBV_WR_SEND, id, MESSAGE, len, 0, 0));
}

static void expect_peers(struct duo *d, uint64_t id, enum ibv_wc_status status)
{
	const struct ibv_wc wc = b_wait_recv(d);

	ck_assert_uint_eq(wc.wr_id, id);
	ck_assert_int_eq(wc.status, status);
}

/* Send until a message goes through the buffer: b allocates it in a poll. */
static void warm_up(struct duo *d, uint32_t len)
{
	const double end = now_ms() + WAIT_MS;
	long before;

	do {
		ck_assert(now_ms() < end);
		before = atomic_load(&copies);
		send_one(d, 1, len);
		expect_ok(d->a.scq, 1, IBV_WC_SEND);
		expect_peers(d, 1, IBV_WC_SUCCESS);
		ck_assert(side_hash(d, MINE, MESSAGE, len) ==
			  side_hash(d, PEERS, MESSAGE, len));
	} while (atomic_load(&copies) != before);
}

/* The receive is not taken, and completes when the message is sent again. */
static void mine_vanishes(struct duo *d, const struct vanishing *v,
			  uint32_t len, size_t gone)
{
	const bool fails = access_fails(d, v, MINE, false);

	vanish(d, MINE, v->way, gone, PAGE);
	b_recv(d, 2, MESSAGE, len);
	ck_ok(post(d, IBV_WR_SEND, 2, MESSAGE, len, 0, 0));
	expect(d->a.scq, 2, fails ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
	if (!fails)
		expect_peers(d, 2, IBV_WC_SUCCESS);
	ck_assert_int_eq(b_state(d), IBV_QPS_RTS);
	ck_assert_int_eq(qp_state(d->a.qp), fails ? IBV_QPS_ERR : IBV_QPS_RTS);
	restore(d, MINE);
}

/* The message is in the buffer when the memory of the receive is removed. */
static void peers_vanishes(struct duo *d, const struct vanishing *v,
			   uint32_t len, size_t gone)
{
	const long before = atomic_load(&copies);

	send_one(d, 2, len);
	expect_ok(d->a.scq, 2, IBV_WC_SEND);
	ck_assert_int_eq(atomic_load(&copies), before);
	vanish(d, PEERS, v->way, gone, PAGE);
	b_recv(d, 3, 0, len);
	expect_peers(d, 2, IBV_WC_LOC_PROT_ERR);
	expect_peers(d, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b_state(d), IBV_QPS_ERR);
	restore(d, PEERS);
}

static void each_end(struct duo *d, const struct vanishing *v, uint32_t len)
{
	/* the first page, or that of the last byte */
	const size_t last = (MESSAGE + len - 1) / PAGE * PAGE;
	int i;

	for (i = 0; i < 4; i++) {
		warm_up(d, len);
		(i / 2 ? peers_vanishes :
			 mine_vanishes)(d, v, len, i % 2 ? last : MESSAGE);
		duo_renew(d);
	}
}

START_TEST(private_memory)
{
	static const uint32_t lengths[] = { INLINE_IN_CQE + 1, 1000, PAGE,
					    LONGEST };
	const struct vanishing *v = &vanishings[_i];
	struct opts o = default_opts();
	struct duo d;
	int i;

	/* the adversary delays messages, which then are not eager */
	if (v->kind == KIND_SHARED || under_adversary() || under_adoption())
		return;
	vanish_open(&d, TWO_PROCESSES, v->kind, v->kind, &o);
	for (i = 0; i < 4; i++)
		each_end(&d, v, lengths[i]);
	exchange_once(&d);
	vanish_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("vanish_eager");

	add_loop(s, private_memory, VANISHINGS);
	return run(s);
}
