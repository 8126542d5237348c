// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The last DREQ of a connection between two hosts whose id is destroyed
 * (ended.c): retransmitted until it is answered.
 */
#include <unistd.h>

#include "base/clock.h"
#include "two_hosts.h"

static void tick_ended(void)
{
	uint32_t next = 0;

	if (cm.t->ended[0].dreq_at)
		cm.t->ended[0].dreq_at = 1;
	cm_tick(&cm, getpid(), &next);
}

/* The DREQ of a destroyed id is retransmitted until it is answered. */
START_TEST(last_dreq)
{
	struct cm_id *s, *c;
	unsigned int i;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	cm_id_destroy(&cm, c, client_fd);
	lose_sent("DREQ DREQ DREQ DREQ");
	tick_ended();
	lose_sent("DREQ");
	tick_ended();
	deliver_sent("DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	lose_sent("DREP");
	tick_ended();
	deliver_sent("DREQ");
	deliver_sent("DREP");
	tick_ended();
	expect_sent("");
	/* a DREQ of the peer is an answer, too; without any, it ends */
	connected(&s, &c);
	cm_id_destroy(&cm, c, client_fd);
	lose_sent("DREQ DREQ DREQ");
	cm.t->ended[0] = cm.t->ended[1];
	cm.t->ended[1].dreq_at = 0;
	for (i = 0; i < 5; i++) {
		tick_ended();
		lose_sent("DREQ");
	}
	tick_ended();
	expect_sent("");
	cm.t->ended[0].dreq_at = 1;
	far_disconnect(s);
	deliver_sent("DREQ");
	deliver_sent("DREP");
	far_expect(CM_EV_DISCONNECTED, 0);
	tick_ended();
	expect_sent("");
	end_hosts();
}
END_TEST

/*
 * A process that has waited without an answer, and continues, retransmits the
 * DREQ, but does not wait again.
 */
START_TEST(last_dreq_lingered)
{
	struct cm_id *s, *c;
	uint32_t next = 0;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	cm_id_destroy(&cm, c, client_fd);
	lose_sent("DREQ DREQ DREQ");
	cm_unlock(&cm);
	cm_ended_linger(cm.f);
	ck_assert_int_eq(cm_lock(&cm), 0);
	ck_assert_uint_eq(cm.t->ended[0].left, 1);
	cm.t->ended[0].dreq_at = clock_now() + 1000000000;
	ck_assert_uint_ne(cm_tick(&cm, getpid(), &next), 0);
	tick_ended();
	lose_sent("DREQ");
	/* damaged: not a time of ours */
	cm.t->ended[0].dreq_at = UINT64_MAX;
	ck_assert_uint_eq(cm_tick(&cm, getpid(), &next), 0);
	ck_assert_uint_eq(cm.t->ended[0].dreq_at, 0);
	end_hosts();
}
END_TEST

/* The lock is not held while many DREQs are retransmitted. */
START_TEST(many_last_dreqs)
{
	struct cm_id *s, *c;
	uint32_t next = 0;
	unsigned int i;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	cm_id_destroy(&cm, c, client_fd);
	lose_sent("DREQ DREQ DREQ");
	cm.t->ended[0].dreq_at = 1;
	cm.t->ended[0].tries = 4; /* the next one is the last */
	for (i = 1; i < 40; i++)
		cm.t->ended[i] = cm.t->ended[0];
	ck_assert_uint_eq(cm_tick(&cm, getpid(), &next), 1000000);
	ck_assert_uint_eq(n_sent, 32);
	cm_tick(&cm, getpid(), &next);
	ck_assert_uint_eq(n_sent, 40);
	n_sent = 0;
	end_hosts();
}
END_TEST

/* As many ids as programs close at once keep their records. */
START_TEST(a_thousand_last_dreqs)
{
	struct cm_id *s, *c;
	unsigned int i, n = 0;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	for (i = 0; i < 1000; i++)
		cm_ended_add(&cm, c);
	for (i = 0; i < CM_ENDED; i++)
		n += !!cm.t->ended[i].dreq_at;
	ck_assert_uint_eq(n, 1000);
	end_hosts();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm_ended");

	add(s, last_dreq);
	add(s, last_dreq_lingered);
	add(s, many_last_dreqs);
	add(s, a_thousand_last_dreqs);
	return run_suite(s);
}
