// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Options "wake", "arm" and "slow": extra events of a completion channel, no
 * event for completions that are already in the CQ, and verbs that return
 * late.
 */
#include "with.h"

static void do_send(struct node *b, void *arg)
{
	struct ibv_sge sge = node_sge(b, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };

	(void)arg;
	ck_ok(post_wr(b->qp, &wr));
	wait_wc(b->scq);
}

static void fetch_event(struct node *a)
{
	struct ibv_cq *cq;
	void *context;

	ck_assert_msg(fd_readable(a->chan->fd, WAIT_MS), "no event");
	ck_ok(ibv_get_cq_event(a->chan, &cq, &context));
	ck_assert_ptr_eq(cq, a->rcq);
	ibv_ack_cq_events(cq, 1);
}

static void open_armed(struct duo *d, int where, const char *options)
{
	struct opts o = default_opts();
	int i;

	o.channel = true;
	with_options(options);
	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 60; i++)
		ck_ok(post_recv(&d->a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d->a.rcq, 0));
}

/*
 * Do the steps of ibv_get_cq_event(3) for one message.  Return whether an
 * extra event follows.
 */
static bool extra_event(struct duo *d)
{
	struct ibv_wc wc;

	on_b(d, do_send, NULL, 0);
	fetch_event(&d->a);
	ck_ok(ibv_req_notify_cq(d->a.rcq, 0));
	wait_wc(d->a.rcq);
	ck_assert_int_eq(ibv_poll_cq(d->a.rcq, 1, &wc), 0);
	return fd_readable(d->a.chan->fd, 0);
}

/*
 * With "wake", a channel gets an extra event for a completion that was
 * polled.
 */
START_TEST(option_wake)
{
	struct ibv_wc wc;
	struct duo d;
	int i;

	open_armed(&d, _i, "wake=1000");
	for (i = 0; i < 20; i++) {
		ck_assert(extra_event(&d));
		/* the CQ is empty; arming it again raises no event */
		fetch_event(&d.a);
		ck_assert_int_eq(ibv_poll_cq(d.a.rcq, 1, &wc), 0);
		ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
		ck_assert(!fd_readable(d.a.chan->fd, 0));
	}
	duo_close(&d);
}
END_TEST

/* Without "wake" it does not. */
START_TEST(no_extra_events_without_wake)
{
	struct duo d;
	int i;

	open_armed(&d, _i, "rnr=1");
	for (i = 0; i < 20; i++)
		ck_assert(!extra_event(&d));
	duo_close(&d);
}
END_TEST

/*
 * Receive two messages after one arming, and poll only the first.  Return
 * whether arming again raises an event for the second one.
 */
static bool second_event(struct duo *d)
{
	bool event;

	on_b(d, do_send, NULL, 0);
	on_b(d, do_send, NULL, 0);
	fetch_event(&d->a);
	wait_wc(d->a.rcq);
	ck_ok(ibv_req_notify_cq(d->a.rcq, 0));
	event = fd_readable(d->a.chan->fd, 0);
	wait_wc(d->a.rcq);
	if (event)
		fetch_event(&d->a);
	ck_ok(ibv_req_notify_cq(d->a.rcq, 0));
	ck_assert(!fd_readable(d->a.chan->fd, 0));
	return event;
}

/* With "arm", arming raises no event for completions already in the CQ. */
START_TEST(option_arm)
{
	struct duo d;
	int i;

	open_armed(&d, _i, "arm=1000");
	for (i = 0; i < 20; i++)
		ck_assert(!second_event(&d));
	duo_close(&d);
}
END_TEST

/* Without "arm" it does. */
START_TEST(arm_announces_present_without_arm)
{
	struct duo d;
	int i;

	open_armed(&d, _i, "rnr=1");
	for (i = 0; i < 20; i++)
		ck_assert(second_event(&d));
	duo_close(&d);
}
END_TEST

/*
 * A CQ that is armed for solicited events gets no extra event for an
 * unsolicited message.
 */
START_TEST(no_extra_event_for_unsolicited)
{
	struct duo d;

	open_armed(&d, _i, "wake=1000");
	on_b(&d, do_send, NULL, 0);
	fetch_event(&d.a);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	ck_assert(!fd_readable(d.a.chan->fd, QUIET_MS));
	duo_close(&d);
}
END_TEST

/* A CQ can be destroyed while its extra event is not fetched. */
START_TEST(cq_destroyed_with_extra_event)
{
	struct duo d;

	open_armed(&d, _i, "wake=1000");
	ck_assert(extra_event(&d));
	duo_close(&d);
}
END_TEST

/*
 * The loop of ibv_get_cq_event(3) is woken by each message.  At most two
 * extra events are left at the end.
 */
START_TEST(no_wakeup_lost)
{
	struct ibv_wc wc;
	struct duo d;
	int i, got;

	open_armed(&d, _i, "wake=500");
	for (i = 0; i < 50; i++) {
		on_b(&d, do_send, NULL, 0);
		for (got = 0; !got;) {
			fetch_event(&d.a);
			ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
			while (ibv_poll_cq(d.a.rcq, 1, &wc) == 1)
				got++;
		}
		ck_assert_int_eq(got, 1);
	}
	while (fd_readable(d.a.chan->fd, 0)) {
		fetch_event(&d.a);
		ck_assert_int_lt(i++, 52);
	}
	duo_close(&d);
}
END_TEST

/* Return the duration of ten WRITEs and their completions, in ms. */
static double write_ten(const char *options)
{
	struct opts o = default_opts();
	struct duo d;
	double start;
	int i;

	with_options(options);
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	start = now_ms();
	for (i = 0; i < 10; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, i, 0, 8, 0, 0));
		expect_ok(d.a.scq, i, IBV_WC_RDMA_WRITE);
	}
	start = now_ms() - start;
	duo_close(&d);
	return start;
}

/* With "slow", posts and polls take at least 0.1 ms each. */
START_TEST(option_slow)
{
	ck_assert_double_ge(write_ten("slow=1000"), 10 * (0.1 + 0.1));
}
END_TEST

static double write_quickly(int i)
{
	(void)i;
	return write_ten("rnr=1000");
}

/* Without "slow" they do not. */
START_TEST(no_delay_without_slow)
{
	expect_within(10 * (0.1 + 0.1), write_quickly, 0);
}
END_TEST

/* The same with ibv_wr_complete() and ibv_start_poll(). */
static double write_ten_ex(const char *options)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 16 };
	struct ibv_poll_cq_attr start_attr = { 0 };
	struct opts o = default_opts();
	struct ibv_qp_init_attr_ex attr = {
		.cap = o.cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_cq_ex *cq;
	struct ibv_qp_ex *x;
	struct duo d;
	double start;
	int i;

	with_options(options);
	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	cq = ibv_create_cq_ex(d.a.ctx, &cq_attr);
	ck_nonnull(cq);
	ck_ok(ibv_destroy_qp(d.a.qp));
	attr.pd = d.a.pd;
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	d.a.qp = ibv_create_qp_ex(d.a.ctx, &attr);
	ck_nonnull(d.a.qp);
	d.at_a = node_addr(&d.a);
	duo_connect(&d);
	x = ibv_qp_to_qp_ex(d.a.qp);
	start = now_ms();
	for (i = 0; i < 10; i++) {
		ibv_wr_start(x);
		x->wr_id = i;
		x->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(x, d.at_b.rkey, d.at_b.base);
		ibv_wr_set_sge(x, d.a.mr->lkey, d.a.base, 8);
		ck_ok(ibv_wr_complete(x));
		while (ibv_start_poll(cq, &start_attr) == ENOENT)
			;
		ck_assert_uint_eq(cq->wr_id, i);
		ck_assert_int_eq(cq->status, IBV_WC_SUCCESS);
		ibv_end_poll(cq);
	}
	start = now_ms() - start;
	ck_ok(ibv_destroy_qp(d.a.qp));
	ck_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	node_make_qp(&d.a);
	duo_close(&d);
	return start;
}

/* With "slow", the verbs of extended QPs and CQs do so, too. */
START_TEST(option_slow_extended_verbs)
{
	ck_assert_double_ge(write_ten_ex("slow=1000"), 10 * (0.1 + 0.1));
}
END_TEST

static double write_quickly_ex(int i)
{
	(void)i;
	return write_ten_ex("rnr=1000");
}

/* Without "slow" they do not. */
START_TEST(no_delay_without_slow_extended)
{
	expect_within(10 * (0.1 + 0.1), write_quickly_ex, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite("events");

	add_loop(s, option_wake, WHERE_COUNT);
	add_loop(s, no_extra_events_without_wake, WHERE_COUNT);
	add_loop(s, option_arm, WHERE_COUNT);
	add_loop(s, arm_announces_present_without_arm, WHERE_COUNT);
	add_loop(s, no_extra_event_for_unsolicited, WHERE_COUNT);
	add_loop(s, cq_destroyed_with_extra_event, WHERE_COUNT);
	add_loop(s, no_wakeup_lost, WHERE_COUNT);
	add(s, option_slow);
	add(s, no_delay_without_slow);
	add(s, option_slow_extended_verbs);
	add(s, no_delay_without_slow_extended);
	return run(s);
}
