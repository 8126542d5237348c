// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion channels: when ibv_req_notify_cq(3) leads to an event, how many
 * events there are, and that ibv_destroy_cq() waits for their
 * acknowledgement.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "../harness.h"

static void open_with_channel(struct duo *d, int where)
{
	struct opts o = default_opts();

	o.channel = true;
	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
}

/* Let b send one message.  It is complete at both ends on return. */
struct message {
	unsigned int flags;
	uint32_t len;
};

static void do_send(struct node *b, void *arg)
{
	struct message *m = arg;
	struct ibv_sge sge = node_sge(b, 0, m->len);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = m->flags | IBV_SEND_SIGNALED };

	ck_ok(post_wr(b->qp, &wr));
	wait_wc(b->scq);
}

static void send_to_a(struct duo *d, unsigned int flags, uint32_t len)
{
	struct message m = { flags, len };

	on_b(d, do_send, &m, sizeof(m));
}

static void expect_event(struct ibv_comp_channel *chan, struct ibv_cq *cq,
			 void *cq_context)
{
	void *got_context = NULL;
	struct ibv_cq *got;

	ck_assert_msg(fd_readable(chan->fd, WAIT_MS), "no completion event");
	ck_ok(ibv_get_cq_event(chan, &got, &got_context));
	ck_assert_ptr_eq(got, cq);
	ck_assert_ptr_eq(got_context, cq_context);
	ibv_ack_cq_events(got, 1);
}

static void expect_no_event(struct ibv_comp_channel *chan)
{
	ck_assert(!fd_readable(chan->fd, QUIET_MS));
}

/* A channel that a CQ uses cannot be destroyed: EBUSY. */
START_TEST(create_destroy)
{
	struct ibv_context *ctx = open_device();
	struct ibv_comp_channel *chan = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq;

	ck_nonnull(chan);
	ck_assert_ptr_eq(chan->context, ctx);
	cq = ibv_create_cq(ctx, 10, ctx, chan, 0);
	ck_nonnull(cq);
	ck_assert_ptr_eq(cq->channel, chan);
	ck_assert_int_eq(ibv_destroy_comp_channel(chan), EBUSY);
	ck_ok(ibv_destroy_cq(cq));
	ck_ok(ibv_destroy_comp_channel(chan));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * An armed CQ raises one event, for the next completion.  Until it is armed
 * again it raises no other one.
 */
START_TEST(armed_once)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 10; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	/* not armed: no event */
	send_to_a(&d, IBV_SEND_SOLICITED, 8);
	expect_no_event(d.a.chan);
	expect(d.a.rcq, 0, IBV_WC_SUCCESS);
	/* armed: one event for any number of completions */
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_no_event(d.a.chan);
	send_to_a(&d, 0, 8);
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	expect_no_event(d.a.chan);
	/* armed again: another event */
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	for (i = 1; i < 4; i++)
		expect(d.a.rcq, i, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/*
 * Arming a CQ raises an event immediately if the CQ has completions that were
 * neither polled nor announced by an event.
 */
START_TEST(older_completions_raise_event)
{
	struct duo d;

	open_with_channel(&d, _i);
	ck_ok(post_recv(&d.a, 1, 0, 64));
	ck_ok(post_recv(&d.a, 2, 0, 64));
	send_to_a(&d, 0, 8);
	expect_no_event(d.a.chan);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	/* that event has disarmed the CQ */
	send_to_a(&d, 0, 8);
	expect_no_event(d.a.chan);
	expect_ok(d.a.rcq, 1, IBV_WC_RECV);
	expect_ok(d.a.rcq, 2, IBV_WC_RECV);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_no_event(d.a.chan);
	duo_close(&d);
}
END_TEST

/*
 * If the CQ is armed after its event was fetched and before the completion is
 * polled, that completion is not announced again.
 */
START_TEST(armed_before_the_poll)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 6; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	for (i = 0; i < 6; i++) {
		send_to_a(&d, 0, 8);
		expect_event(d.a.chan, d.a.rcq, &d.a);
		ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
		expect_no_event(d.a.chan);
		expect_ok(d.a.rcq, i, IBV_WC_RECV);
	}
	duo_close(&d);
}
END_TEST

/*
 * A completion that arrives while the CQ is not armed is announced when it is
 * armed.
 */
START_TEST(completion_while_not_armed)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 3; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_no_event(d.a.chan);
	expect_ok(d.a.rcq, 0, IBV_WC_RECV);
	expect_ok(d.a.rcq, 1, IBV_WC_RECV);
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	duo_close(&d);
}
END_TEST

/*
 * If the CQ is armed after its event was raised and before the event is
 * fetched, the completion is not announced again.
 */
START_TEST(armed_with_event_pending)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 2; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	expect_no_event(d.a.chan);
	expect_ok(d.a.rcq, 0, IBV_WC_RECV);
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	duo_close(&d);
}
END_TEST

/*
 * A program that polls one completion after each event gets events for all
 * completions.
 */
START_TEST(one_poll_for_each_event)
{
	const int n = 20;
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < n; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	for (i = 0; i < n / 2; i++)
		send_to_a(&d, 0, 8);
	for (i = 0; i < n; i++) {
		expect_event(d.a.chan, d.a.rcq, &d.a);
		ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
		expect_ok(d.a.rcq, i, IBV_WC_RECV);
		if (i % 5 == 0 && i < n / 2) {
			send_to_a(&d, 0, 8);
			send_to_a(&d, 0, 8);
			send_to_a(&d, 0, 8);
			send_to_a(&d, 0, 8);
			send_to_a(&d, 0, 8);
		}
	}
	expect_no_event(d.a.chan);
	duo_close(&d);
}
END_TEST

/*
 * If the completion that raised an event was polled before the event is
 * fetched, the event announces the completions that are in the CQ then.
 */
START_TEST(event_of_polled_completion)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 2; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	expect_ok(d.a.rcq, 0, IBV_WC_RECV);
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_no_event(d.a.chan);
	expect_ok(d.a.rcq, 1, IBV_WC_RECV);
	duo_close(&d);
}
END_TEST

/*
 * Arming for solicited completions announces solicited ones that arrived
 * before, and no others.
 */
START_TEST(solicited_while_not_armed)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 5; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	send_to_a(&d, 0, 8);
	send_to_a(&d, IBV_SEND_SOLICITED, 8);
	send_to_a(&d, 0, 8);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	/* that event announced the second completion */
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	expect_no_event(d.a.chan);
	for (i = 0; i < 3; i++)
		expect_ok(d.a.rcq, i, IBV_WC_RECV);
	send_to_a(&d, 0, 8);
	expect_no_event(d.a.chan);
	send_to_a(&d, IBV_SEND_SOLICITED, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	duo_close(&d);
}
END_TEST

/*
 * Completions that ibv_resize_cq() copies are announced, or not, as before.
 */
START_TEST(older_completions_of_a_resized_cq)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 4; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(ibv_resize_cq(d.a.rcq, 200));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_no_event(d.a.chan);
	send_to_a(&d, 0, 8);
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(ibv_resize_cq(d.a.rcq, 300));
	expect_ok(d.a.rcq, 0, IBV_WC_RECV);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	expect_no_event(d.a.chan);
	expect_ok(d.a.rcq, 1, IBV_WC_RECV);
	expect_ok(d.a.rcq, 2, IBV_WC_RECV);
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	duo_close(&d);
}
END_TEST

/*
 * Arming for solicited completions raises no event for unsolicited ones that
 * arrived before.
 */
START_TEST(older_completions_are_not_solicited)
{
	struct duo d;

	open_with_channel(&d, _i);
	ck_ok(post_recv(&d.a, 1, 0, 64));
	send_to_a(&d, 0, 8);
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	expect_no_event(d.a.chan);
	duo_close(&d);
}
END_TEST

/*
 * A CQ that is armed for solicited completions raises an event only for
 * these.
 */
START_TEST(solicited_only)
{
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 10; i++)
		ck_ok(post_recv(&d.a, i, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	send_to_a(&d, 0, 8);
	expect_no_event(d.a.chan);
	send_to_a(&d, IBV_SEND_SOLICITED, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	send_to_a(&d, IBV_SEND_SOLICITED, 8);
	expect_no_event(d.a.chan);
	/* arming for all completions includes solicited ones ... */
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	/* ... and is not restricted by arming for solicited ones */
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	send_to_a(&d, 0, 8);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	duo_close(&d);
}
END_TEST

/* A completion with an error is solicited. */
START_TEST(errors_are_solicited)
{
	struct duo d;

	open_with_channel(&d, _i);
	ck_ok(post_recv(&d.a, 7, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	expect(d.a.rcq, 7, IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

/*
 * A receive completion with an error is solicited, whatever the sender has
 * set.
 */
START_TEST(receive_error_is_solicited)
{
	struct duo d;

	open_with_channel(&d, _i);
	ck_ok(post_recv(&d.a, 7, 0, 4));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 1));
	send_to_a(&d, 0, 64);
	expect_event(d.a.chan, d.a.rcq, &d.a);
	expect(d.a.rcq, 7, IBV_WC_LOC_LEN_ERR);
	duo_close(&d);
}
END_TEST

/*
 * An RDMA WRITE raises no event at the responder.  One with immediate data
 * does.
 */
START_TEST(write_with_imm)
{
	struct opts o = default_opts();
	struct duo d;

	/* the events are those of b's channel */
	o.channel = true;
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, 0, 0);
	ck_ok(ibv_req_notify_cq(d.b.rcq, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, IBV_SEND_SOLICITED));
	expect_no_event(d.b.chan);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 64, 0, 0));
	expect_event(d.b.chan, d.b.rcq, &d.b);
	expect_ok(d.b.rcq, 1, IBV_WC_RECV_RDMA_WITH_IMM);
	/* IBV_SEND_SOLICITED applies to it */
	b_recv(&d, 2, 0, 0);
	b_recv(&d, 3, 0, 0);
	ck_ok(ibv_req_notify_cq(d.b.rcq, 1));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 64, 0, 0));
	expect_no_event(d.b.chan);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0, 64, 0,
		   IBV_SEND_SOLICITED));
	expect_event(d.b.chan, d.b.rcq, &d.b);
	duo_close(&d);
}
END_TEST

/* Send completions raise events and are never solicited. */
START_TEST(send_completions)
{
	struct opts o = default_opts();
	struct ibv_comp_channel *chan;
	struct ibv_cq *scq, *old;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	chan = ibv_create_comp_channel(d.a.ctx);
	ck_nonnull(chan);
	scq = ibv_create_cq(d.a.ctx, 64, &o, chan, 3);
	ck_nonnull(scq);
	old = d.a.scq;
	d.a.scq = scq;
	duo_renew(&d);
	ck_ok(ibv_req_notify_cq(scq, 1));
	b_recv(&d, 1, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, IBV_SEND_SOLICITED));
	expect_no_event(chan);
	expect_ok(scq, 1, IBV_WC_SEND);
	ck_ok(ibv_req_notify_cq(scq, 0));
	/* not signaled: no completion, no event */
	ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	expect_no_event(chan);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, 0));
	expect_event(chan, scq, &o);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_ok(ibv_destroy_cq(scq));
	ck_ok(ibv_destroy_comp_channel(chan));
	d.a.scq = old;
	duo_close(&d);
}
END_TEST

/* Each CQ of a channel raises its own event, with its own cq_context. */
START_TEST(several_cqs_on_one_channel)
{
	struct opts o = default_opts();
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq[3], *got, *old;
	int i, seen = 0, tag[3];
	struct node n[3];
	struct addr addr;
	void *context;

	node_open(&n[0], NULL, MEM_HEAP, &o);
	node_open(&n[1], n[0].ctx, MEM_HEAP, &o);
	node_open(&n[2], n[0].ctx, MEM_HEAP, &o);
	chan = ibv_create_comp_channel(n[0].ctx);
	ck_nonnull(chan);
	n[0].chan = chan;
	for (i = 0; i < 3; i++) {
		cq[i] = ibv_create_cq(n[0].ctx, 8, &tag[i], chan, 0);
		ck_nonnull(cq[i]);
		ck_ok(ibv_destroy_qp(n[i].qp));
		old = n[i].rcq;
		n[i].rcq = cq[i];
		ck_ok(ibv_destroy_cq(old));
		node_make_qp(&n[i]);
		/* connect the QP with itself */
		addr = node_addr(&n[i]);
		node_connect(&n[i], &addr);
		ck_ok(post_recv(&n[i], i, 0, 64));
		ck_ok(ibv_req_notify_cq(cq[i], 0));
	}
	for (i = 0; i < 3; i++) {
		struct ibv_sge sge = node_sge(&n[i], 0, 8);
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND };

		ck_ok(post_wr(n[i].qp, &wr));
	}
	for (i = 0; i < 3; i++) {
		ck_assert(fd_readable(chan->fd, WAIT_MS));
		ck_ok(ibv_get_cq_event(chan, &got, &context));
		ck_assert_int_ge((int *)context - tag, 0);
		ck_assert_ptr_eq(got, cq[(int *)context - tag]);
		seen |= 1 << ((int *)context - tag);
		ibv_ack_cq_events(got, 1);
	}
	ck_assert_int_eq(seen, 7);
	expect_no_event(chan);
	ck_assert_int_eq(ibv_destroy_comp_channel(chan), EBUSY);
	for (i = 2; i >= 0; i--)
		node_close(&n[i]);
}
END_TEST

/*
 * ibv_get_cq_event() on a non-blocking channel without events fails with
 * EAGAIN.
 */
START_TEST(non_blocking)
{
	struct ibv_context *ctx = open_device();
	struct ibv_comp_channel *chan = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq;
	void *context;

	ck_nonnull(chan);
	ck_ok(fcntl(chan->fd, F_SETFL, fcntl(chan->fd, F_GETFL) | O_NONBLOCK));
	ck_assert_int_eq(ibv_get_cq_event(chan, &cq, &context), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_ok(ibv_destroy_comp_channel(chan));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

struct destroyer {
	struct ibv_cq *cq;
	_Atomic int done;
};

static void *destroy_cq(void *arg)
{
	struct destroyer *d = arg;

	ck_ok(ibv_destroy_cq(d->cq));
	d->done = 1;
	return NULL;
}

/*
 * ibv_destroy_cq() blocks until all events of the CQ are acknowledged
 * (ibv_get_cq_event(3)).
 */
START_TEST(destroy_waits_for_acks)
{
	struct destroyer killer = { 0 };
	struct ibv_cq *got;
	pthread_t thread;
	void *context;
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 2; i++) {
		ck_ok(post_recv(&d.a, 1, 0, 64));
		ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
		send_to_a(&d, 0, 8);
		ck_assert(fd_readable(d.a.chan->fd, WAIT_MS));
		ck_ok(ibv_get_cq_event(d.a.chan, &got, &context));
	}
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	killer.cq = d.a.rcq;
	ck_ok(pthread_create(&thread, NULL, destroy_cq, &killer));
	sleep_ms(QUIET_MS);
	ck_assert_int_eq(killer.done, 0);
	ibv_ack_cq_events(d.a.rcq, 1);
	sleep_ms(QUIET_MS);
	ck_assert_int_eq(killer.done, 0);
	ibv_ack_cq_events(d.a.rcq, 1);
	ck_ok(pthread_join(thread, NULL));
	ck_assert_int_eq(killer.done, 1);
	d.a.rcq = ibv_create_cq(d.a.ctx, 1, NULL, NULL, 0);
	duo_close(&d);
}
END_TEST

/*
 * ibv_destroy_cq() waits as soon as the event was read from the descriptor,
 * even if ibv_get_cq_event() has not returned.
 */
START_TEST(destroy_waits_after_read)
{
	struct destroyer killer = { 0 };
	pthread_t thread;
	char record[8];
	struct duo d;

	open_with_channel(&d, _i);
	ck_ok(post_recv(&d.a, 1, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	ck_assert(fd_readable(d.a.chan->fd, WAIT_MS));
	ck_assert_int_eq(read(d.a.chan->fd, record, sizeof(record)),
			 sizeof(record));
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	killer.cq = d.a.rcq;
	ck_ok(pthread_create(&thread, NULL, destroy_cq, &killer));
	sleep_ms(QUIET_MS);
	ck_assert_int_eq(killer.done, 0);
	ibv_ack_cq_events(d.a.rcq, 1);
	ck_ok(pthread_join(thread, NULL));
	d.a.rcq = ibv_create_cq(d.a.ctx, 1, NULL, NULL, 0);
	duo_close(&d);
}
END_TEST

static void *write_all(void *arg)
{
	struct duo *d = arg;
	struct ibv_sge sge = node_sge(&d->b, 0, (uint32_t)d->b.o.size);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { d->a.base, d->a.mr->rkey } };

	ck_ok(post_wr(d->b.qp, &wr));
	return NULL;
}

/*
 * The transition to ERR flushes a receive and raises the event, although a
 * peer is executing a long WRITE to that QP.
 */
START_TEST(flush_during_long_write)
{
	struct opts o = default_opts();
	_Atomic char *byte;
	pthread_t thread;
	struct duo d;

	o.channel = true;
	o.size = 128 << 20;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	/* memcpy() may copy the first and last bytes last */
	byte = (_Atomic char *)d.a.buf + (1 << 20);
	atomic_store_explicit(byte, 0, memory_order_relaxed);
	memset(d.b.buf, 1, o.size);
	ck_ok(post_recv(&d.a, 7, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	ck_ok(pthread_create(&thread, NULL, write_all, &d));
	while (!atomic_load_explicit(byte, memory_order_relaxed))
		;
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(pthread_join(thread, NULL));
	expect(d.a.rcq, 7, IBV_WC_WR_FLUSH_ERR);
	duo_close(&d);
}
END_TEST

/*
 * Post a list of WRITEs that is long enough to keep b busy until a's QP
 * fails.
 */
static void *write_on_and_on(void *arg)
{
	struct duo *d = arg;
	struct ibv_sge sge = node_sge(&d->b, 0, (uint32_t)d->b.o.size);
	struct ibv_send_wr wr[8];
	int i;

	for (i = 0; i < 8; i++) {
		wr[i] = (struct ibv_send_wr){
			.next = i < 7 ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { d->a.base, d->a.mr->rkey },
		};
	}
	ck_ok(post_wr(d->b.qp, wr));
	return NULL;
}

/*
 * The same if the QP enters ERR because of the RNR timer, while no thread
 * polls.
 */
START_TEST(flush_by_rnr_timer)
{
	struct opts o = default_opts();
	pthread_t thread;
	struct duo d;

	o.channel = true;
	o.size = 128 << 20;
	o.rnr_retry = 1;
	o.min_rnr_timer = 24; /* 41 ms */
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	memset(d.b.buf, 1, o.size);
	ck_ok(post_recv(&d.a, 7, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	ck_ok(post(&d, IBV_WR_SEND, 8, 0, 8, 0, 0));
	ck_ok(pthread_create(&thread, NULL, write_on_and_on, &d));
	expect_event(d.a.chan, d.a.rcq, &d.a);
	ck_ok(pthread_join(thread, NULL));
	expect(d.a.rcq, 7, IBV_WC_WR_FLUSH_ERR);
	expect(d.a.scq, 8, IBV_WC_RNR_RETRY_EXC_ERR);
	duo_close(&d);
}
END_TEST

/* ibv_destroy_cq() removes events of the CQ that were not fetched. */
START_TEST(destroy_with_unread_event)
{
	struct duo d;

	open_with_channel(&d, _i);
	ck_ok(post_recv(&d.a, 1, 0, 64));
	ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
	send_to_a(&d, 0, 8);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_ok(ibv_destroy_cq(d.a.rcq));
	ck_assert(!fd_readable(d.a.chan->fd, QUIET_MS));
	d.a.rcq = ibv_create_cq(d.a.ctx, 1, NULL, d.a.chan, 0);
	duo_close(&d);
}
END_TEST

static void *sleeper(void *arg)
{
	struct ibv_comp_channel *chan = arg;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(chan, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

/* A completion wakes a thread that is blocked in ibv_get_cq_event(). */
START_TEST(blocked_reader_is_woken)
{
	pthread_t thread;
	struct duo d;
	void *ret;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 20; i++) {
		ck_ok(post_recv(&d.a, i, 0, 64));
		ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
		ck_ok(pthread_create(&thread, NULL, sleeper, d.a.chan));
		sleep_ms(i % 4);
		send_to_a(&d, 0, 8);
		ck_ok(pthread_join(thread, &ret));
		ck_assert_ptr_eq(ret, d.a.rcq);
		expect(d.a.rcq, i, IBV_WC_SUCCESS);
	}
	duo_close(&d);
}
END_TEST

/*
 * RNR retries run while the program sleeps: the event of the failed WR is
 * raised although no thread polls.
 */
START_TEST(rnr_retries_while_sleeping)
{
	struct opts o = default_opts();
	struct ibv_comp_channel *chan;
	struct ibv_cq *scq, *old;
	struct duo d;

	o.rnr_retry = 2;
	o.min_rnr_timer = 14; /* 1 ms */
	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	chan = ibv_create_comp_channel(d.a.ctx);
	scq = ibv_create_cq(d.a.ctx, 64, &o, chan, 0);
	ck_nonnull(scq);
	old = d.a.scq;
	d.a.scq = scq;
	duo_renew(&d);
	ck_ok(ibv_req_notify_cq(scq, 0));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	/* no thread polls: only the event reports the error */
	expect_event(chan, scq, &o);
	expect(scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ck_ok(ibv_destroy_qp(d.a.qp));
	d.a.qp = NULL;
	ck_ok(ibv_destroy_cq(scq));
	ck_ok(ibv_destroy_comp_channel(chan));
	d.a.scq = old;
	duo_close(&d);
}
END_TEST

/*
 * Events that are not read block neither the sender nor the receiver, and are
 * not lost.
 */
START_TEST(unread_events_do_not_block)
{
	struct duo d;
	int i, n;

	open_with_channel(&d, _i);
	/* more events than a pipe of 64 KiB holds */
	n = d.where == TWO_PROCESSES ? 9000 : 20000;
	for (i = 0; i < n; i++) {
		ck_ok(post_recv(&d.a, i, 0, 64));
		ck_ok(ibv_req_notify_cq(d.a.rcq, 0));
		send_to_a(&d, 0, 8);
		expect(d.a.rcq, i, IBV_WC_SUCCESS);
	}
	expect_event(d.a.chan, d.a.rcq, &d.a);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("comp_channel");

	add(s, create_destroy);
	add_loop(s, armed_once, WHERE_COUNT);
	add_loop(s, older_completions_raise_event, WHERE_COUNT);
	add_loop(s, older_completions_are_not_solicited, WHERE_COUNT);
	add_loop(s, armed_before_the_poll, WHERE_COUNT);
	add_loop(s, completion_while_not_armed, WHERE_COUNT);
	add_loop(s, armed_with_event_pending, WHERE_COUNT);
	add_loop(s, one_poll_for_each_event, WHERE_COUNT);
	add_loop(s, event_of_polled_completion, WHERE_COUNT);
	add_loop(s, solicited_while_not_armed, WHERE_COUNT);
	add_loop(s, older_completions_of_a_resized_cq, WHERE_COUNT);
	add_loop(s, solicited_only, WHERE_COUNT);
	add_loop(s, errors_are_solicited, WHERE_COUNT);
	add_loop(s, receive_error_is_solicited, WHERE_COUNT);
	add(s, write_with_imm);
	add_loop(s, send_completions, WHERE_COUNT);
	add(s, several_cqs_on_one_channel);
	add(s, non_blocking);
	add_loop(s, destroy_waits_for_acks, WHERE_COUNT);
	add_loop(s, destroy_waits_after_read, WHERE_COUNT);
	add_loop(s, flush_during_long_write, TWO_PROCESSES);
	add(s, flush_by_rnr_timer);
	add_loop(s, destroy_with_unread_event, WHERE_COUNT);
	add_loop(s, blocked_reader_is_woken, WHERE_COUNT);
	add_loop(s, rnr_retries_while_sleeping, WHERE_COUNT);
	add_loop(s, unread_events_do_not_block, WHERE_COUNT);
	return run(s);
}
