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
			 const void *cq_context, const char *rest)
{
	void *got_context = NULL;
	struct ibv_cq *got;

	ck_assert_msg(fd_readable(chan->fd, WAIT_MS),
		      "no completion event; steps: %s", rest);
	ck_ok(ibv_get_cq_event(chan, &got, &got_context));
	ck_assert_ptr_eq(got, cq);
	ck_assert_ptr_eq(got_context, cq_context);
	ibv_ack_cq_events(got, 1);
}

static void expect_no_event(struct ibv_comp_channel *chan, const char *rest)
{
	ck_assert_msg(!fd_readable(chan->fd, QUIET_MS), "an event; steps: %s",
		      rest);
}

/* Two nodes; the events are those of a's receive CQ. */
struct steps {
	struct duo d;
	int polled; /* wr_id of the next completion */
	const char *rest; /* steps that are not done, for failure messages */
};

static void step(struct steps *s, const char *word, size_t n)
{
	const struct node *a = &s->d.a;

#define IS(text) (n == sizeof(text) - 1 && !memcmp(word, text, n))
	if (IS("arm"))
		ck_ok(ibv_req_notify_cq(a->rcq, 0));
	else if (IS("arm_solicited"))
		ck_ok(ibv_req_notify_cq(a->rcq, 1));
	else if (IS("send"))
		send_to_a(&s->d, 0, 8);
	else if (IS("send_solicited"))
		send_to_a(&s->d, IBV_SEND_SOLICITED, 8);
	else if (IS("event"))
		expect_event(a->chan, a->rcq, a, s->rest);
	else if (IS("none"))
		expect_no_event(a->chan, s->rest);
	else if (IS("poll"))
		expect_ok(a->rcq, s->polled++, IBV_WC_RECV);
	else if (IS("resize"))
		ck_ok(ibv_resize_cq(a->rcq, a->rcq->cqe + 100));
	else
		ck_abort_msg("no such step: %s", word);
#undef IS
}

/*
 * Do the steps that the words of @list name: "arm" a's receive CQ for all
 * completions or for solicited ones ("arm_solicited"), "send" a message from
 * b, expect an "event" or "none", "poll" a completion, "resize" the CQ.
 */
static void do_steps(struct steps *s, const char *list)
{
	size_t n;

	for (s->rest = list; *s->rest; s->rest += strspn(s->rest, " ")) {
		n = strcspn(s->rest, " ");
		step(s, s->rest, n);
		s->rest += n;
	}
}

/* Open nodes; a has n receives with wr_id 0, 1, ... */
static void steps_open(struct steps *s, int where, int n)
{
	int i;

	s->polled = 0;
	open_with_channel(&s->d, where);
	for (i = 0; i < n; i++)
		ck_ok(post_recv(&s->d.a, i, 0, 64));
}

static void run_steps(int where, int n, const char *list)
{
	struct steps s;

	steps_open(&s, where, n);
	do_steps(&s, list);
	duo_close(&s.d);
}

/* Let a message raise an event, which is not fetched. */
static void raise_event(struct duo *d)
{
	ck_ok(post_recv(&d->a, 1, 0, 64));
	ck_ok(ibv_req_notify_cq(d->a.rcq, 0));
	send_to_a(d, 0, 8);
	ck_assert(fd_readable(d->a.chan->fd, WAIT_MS));
}

static void destroy_qp_of_a(struct duo *d)
{
	ck_ok(ibv_destroy_qp(d->a.qp));
	d->a.qp = NULL;
}

/* Give a a send CQ with a channel of its own.  Return the CQ that it had. */
static struct ibv_cq *set_send_channel(struct duo *d, void *cq_context,
				       int comp_vector)
{
	struct ibv_cq *old = d->a.scq;

	d->a.chan = ibv_create_comp_channel(d->a.ctx);
	ck_nonnull(d->a.chan);
	d->a.scq =
		ibv_create_cq(d->a.ctx, 64, cq_context, d->a.chan, comp_vector);
	ck_nonnull(d->a.scq);
	duo_renew(d);
	return old;
}

static void close_send_channel(struct duo *d, struct ibv_cq *old)
{
	destroy_qp_of_a(d);
	ck_ok(ibv_destroy_cq(d->a.scq));
	ck_ok(ibv_destroy_comp_channel(d->a.chan));
	d->a.chan = NULL;
	d->a.scq = old;
	duo_close(d);
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
	run_steps(_i, 10,
		  /* not armed: no event */
		  "send_solicited none poll "
		  /* armed: one event for any number of completions */
		  "arm none send send event none "
		  /* armed again: another event */
		  "arm send event poll poll poll");
}
END_TEST

/*
 * Arming a CQ raises an event immediately if the CQ has completions that were
 * neither polled nor announced by an event.
 */
START_TEST(older_completions_raise_event)
{
	run_steps(_i, 2,
		  "send none arm event "
		  /* that event has disarmed the CQ */
		  "send none poll poll arm none");
}
END_TEST

/*
 * If the CQ is armed after its event was fetched and before the completion is
 * polled, that completion is not announced again.
 */
START_TEST(armed_before_the_poll)
{
	struct steps s;
	int i;

	steps_open(&s, _i, 6);
	do_steps(&s, "arm");
	for (i = 0; i < 6; i++)
		do_steps(&s, "send event arm none poll");
	duo_close(&s.d);
}
END_TEST

/*
 * A completion that arrives while the CQ is not armed is announced when it is
 * armed.
 */
START_TEST(completion_while_not_armed)
{
	run_steps(_i, 3,
		  "arm send send event arm event arm none "
		  "poll poll send event");
}
END_TEST

/*
 * If the CQ is armed after its event was raised and before the event is
 * fetched, the completion is not announced again.
 */
START_TEST(armed_with_event_pending)
{
	run_steps(_i, 2, "arm send arm event none poll send event");
}
END_TEST

/*
 * A program that polls one completion after each event gets events for all
 * completions.
 */
START_TEST(one_poll_for_each_event)
{
	struct steps s;
	int i;

	steps_open(&s, _i, 20);
	do_steps(&s, "arm send send send send send send send send send send");
	for (i = 0; i < 20; i++) {
		do_steps(&s, "event arm poll");
		if (i % 5 == 0 && i < 10)
			do_steps(&s, "send send send send send");
	}
	do_steps(&s, "none");
	duo_close(&s.d);
}
END_TEST

/*
 * If the completion that raised an event was polled before the event is
 * fetched, the event announces the completions that are in the CQ then.
 */
START_TEST(event_of_polled_completion)
{
	run_steps(_i, 2, "arm send poll send event arm none poll");
}
END_TEST

/*
 * Arming for solicited completions announces solicited ones that arrived
 * before, and no others.
 */
START_TEST(solicited_while_not_armed)
{
	run_steps(_i, 5,
		  "send send_solicited send arm_solicited event "
		  /* that event announced the second completion */
		  "arm_solicited none poll poll poll send none "
		  "send_solicited event");
}
END_TEST

/*
 * Completions that ibv_resize_cq() copies are announced, or not, as before.
 */
START_TEST(older_completions_of_a_resized_cq)
{
	run_steps(_i, 4,
		  "arm send event resize arm none send send event "
		  "resize poll arm event arm none poll poll send event");
}
END_TEST

/*
 * Arming for solicited completions raises no event for unsolicited ones that
 * arrived before.
 */
START_TEST(older_completions_are_not_solicited)
{
	run_steps(_i, 1, "send arm_solicited none");
}
END_TEST

/*
 * A CQ that is armed for solicited completions raises an event only for
 * these.
 */
START_TEST(solicited_only)
{
	run_steps(_i, 10,
		  "arm_solicited send none send_solicited event "
		  "send_solicited none "
		  /* arming for all completions includes solicited ones ... */
		  "arm_solicited arm send event "
		  /* ... and is not restricted by arming for solicited ones */
		  "arm arm_solicited send event");
}
END_TEST

/* A completion with an error is solicited. */
START_TEST(errors_are_solicited)
{
	struct steps s;

	steps_open(&s, _i, 1);
	do_steps(&s, "arm_solicited");
	ck_ok(qp_to(s.d.a.qp, IBV_QPS_ERR));
	do_steps(&s, "event");
	expect(s.d.a.rcq, 0, IBV_WC_WR_FLUSH_ERR);
	duo_close(&s.d);
}
END_TEST

/*
 * A receive completion with an error is solicited, whatever the sender has
 * set.
 */
START_TEST(receive_error_is_solicited)
{
	struct steps s;

	steps_open(&s, _i, 1);
	do_steps(&s, "arm_solicited");
	send_to_a(&s.d, 0, 128);
	do_steps(&s, "event");
	expect(s.d.a.rcq, 0, IBV_WC_LOC_LEN_ERR);
	duo_close(&s.d);
}
END_TEST

/*
 * An RDMA WRITE raises no event at the responder.  One with immediate data
 * does.
 */
START_TEST(write_with_imm)
{
	struct duo d;

	/* the events are those of b's channel */
	open_with_channel(&d, SAME_PROCESS);
	b_recv(&d, 1, 0, 0);
	ck_ok(ibv_req_notify_cq(d.b.rcq, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, IBV_SEND_SOLICITED));
	expect_no_event(d.b.chan, "");
	ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 64, 0, 0));
	expect_event(d.b.chan, d.b.rcq, &d.b, "");
	expect_ok(d.b.rcq, 1, IBV_WC_RECV_RDMA_WITH_IMM);
	/* IBV_SEND_SOLICITED applies to it */
	b_recv(&d, 2, 0, 0);
	b_recv(&d, 3, 0, 0);
	ck_ok(ibv_req_notify_cq(d.b.rcq, 1));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, 64, 0, 0));
	expect_no_event(d.b.chan, "");
	ck_ok(post(&d, IBV_WR_RDMA_WRITE_WITH_IMM, 4, 0, 64, 0,
		   IBV_SEND_SOLICITED));
	expect_event(d.b.chan, d.b.rcq, &d.b, "");
	duo_close(&d);
}
END_TEST

/* Send completions raise events and are never solicited. */
START_TEST(send_completions)
{
	struct opts o = default_opts();
	struct ibv_cq *old;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	old = set_send_channel(&d, &o, 3);
	ck_ok(ibv_req_notify_cq(d.a.scq, 1));
	b_recv(&d, 1, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, IBV_SEND_SOLICITED));
	expect_no_event(d.a.chan, "");
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(ibv_req_notify_cq(d.a.scq, 0));
	/* not signaled: no completion, no event */
	ck_ok(post_unsignaled(&d, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, 0));
	expect_no_event(d.a.chan, "");
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 8, 0, 0));
	expect_event(d.a.chan, d.a.scq, &o, "");
	close_send_channel(&d, old);
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
	expect_no_event(chan, "");
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
 * Destroy a's receive CQ in another thread, which waits until n events are
 * acknowledged, and close the nodes.
 */
static void destroy_with_acks(struct duo *d, int n)
{
	struct destroyer killer = { .cq = d->a.rcq };
	pthread_t thread;

	destroy_qp_of_a(d);
	ck_ok(pthread_create(&thread, NULL, destroy_cq, &killer));
	while (n--) {
		sleep_ms(QUIET_MS);
		ck_assert_int_eq(killer.done, 0);
		ibv_ack_cq_events(d->a.rcq, 1);
	}
	ck_ok(pthread_join(thread, NULL));
	ck_assert_int_eq(killer.done, 1);
	d->a.rcq = ibv_create_cq(d->a.ctx, 1, NULL, NULL, 0);
	duo_close(d);
}

/*
 * ibv_destroy_cq() blocks until all events of the CQ are acknowledged
 * (ibv_get_cq_event(3)).
 */
START_TEST(destroy_waits_for_acks)
{
	struct ibv_cq *got;
	void *context;
	struct duo d;
	int i;

	open_with_channel(&d, _i);
	for (i = 0; i < 2; i++) {
		raise_event(&d);
		ck_ok(ibv_get_cq_event(d.a.chan, &got, &context));
	}
	destroy_with_acks(&d, 2);
}
END_TEST

/*
 * ibv_destroy_cq() waits as soon as the event was read from the descriptor,
 * even if ibv_get_cq_event() has not returned.
 */
START_TEST(destroy_waits_after_read)
{
	char record[8];
	struct duo d;

	open_with_channel(&d, _i);
	raise_event(&d);
	ck_assert_int_eq(read(d.a.chan->fd, record, sizeof(record)),
			 sizeof(record));
	destroy_with_acks(&d, 1);
}
END_TEST

/* A list of WRITEs of all of b's memory to a, which keeps b busy. */
struct long_writes {
	struct duo d;
	int n; /* at most 8 */
};

static void *post_long_writes(void *arg)
{
	const struct long_writes *l = arg;
	const struct node *a = &l->d.a, *b = &l->d.b;
	struct ibv_sge sge = node_sge(b, 0, (uint32_t)b->o.size);
	struct ibv_send_wr wr[8];
	int i;

	for (i = 0; i < l->n; i++) {
		wr[i] = (struct ibv_send_wr){
			.next = i < l->n - 1 ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.wr.rdma = { a->base, a->mr->rkey },
		};
	}
	ck_ok(post_wr(b->qp, wr));
	return NULL;
}

/* Open nodes with much memory; a's receive CQ is armed, its receive is 7. */
static void long_writes_open(struct long_writes *l, int where, struct opts *o)
{
	o->channel = true;
	o->size = 128 << 20;
	duo_open(&l->d, where, MEM_HEAP, MEM_HEAP, o);
	memset(l->d.b.buf, 1, o->size);
	ck_ok(post_recv(&l->d.a, 7, 0, 64));
	ck_ok(ibv_req_notify_cq(l->d.a.rcq, 0));
}

/* The event of the receive that is flushed during the WRITEs of @thread. */
static void flush_raises_event(struct duo *d, pthread_t thread)
{
	expect_event(d->a.chan, d->a.rcq, &d->a, "");
	ck_ok(pthread_join(thread, NULL));
	expect(d->a.rcq, 7, IBV_WC_WR_FLUSH_ERR);
}

/*
 * The transition to ERR flushes a receive and raises the event, although a
 * peer is executing a long WRITE to that QP.
 */
START_TEST(flush_during_long_write)
{
	struct long_writes l = { .n = 1 };
	struct opts o = default_opts();
	_Atomic char *byte;
	pthread_t thread;

	long_writes_open(&l, _i, &o);
	/* memcpy() may copy the first and last bytes last */
	byte = (_Atomic char *)l.d.a.buf + (1 << 20);
	atomic_store_explicit(byte, 0, memory_order_relaxed);
	ck_ok(pthread_create(&thread, NULL, post_long_writes, &l));
	while (!atomic_load_explicit(byte, memory_order_relaxed))
		;
	ck_ok(qp_to(l.d.a.qp, IBV_QPS_ERR));
	flush_raises_event(&l.d, thread);
	duo_close(&l.d);
}
END_TEST

/*
 * The same if the QP enters ERR because of the RNR timer, while no thread
 * polls.
 */
START_TEST(flush_by_rnr_timer)
{
	struct long_writes l = { .n = 8 };
	struct opts o = default_opts();
	pthread_t thread;

	o.rnr_retry = 1;
	o.min_rnr_timer = 24; /* 41 ms */
	long_writes_open(&l, SAME_PROCESS, &o);
	ck_ok(post(&l.d, IBV_WR_SEND, 8, 0, 8, 0, 0));
	ck_ok(pthread_create(&thread, NULL, post_long_writes, &l));
	flush_raises_event(&l.d, thread);
	expect(l.d.a.scq, 8, IBV_WC_RNR_RETRY_EXC_ERR);
	duo_close(&l.d);
}
END_TEST

/* ibv_destroy_cq() removes events of the CQ that were not fetched. */
START_TEST(destroy_with_unread_event)
{
	struct duo d;

	open_with_channel(&d, _i);
	raise_event(&d);
	destroy_qp_of_a(&d);
	ck_ok(ibv_destroy_cq(d.a.rcq));
	expect_no_event(d.a.chan, "");
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
	struct ibv_cq *old;
	struct duo d;

	o.rnr_retry = 2;
	o.min_rnr_timer = 14; /* 1 ms */
	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	old = set_send_channel(&d, &o, 0);
	ck_ok(ibv_req_notify_cq(d.a.scq, 0));
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	/* no thread polls: only the event reports the error */
	expect_event(d.a.chan, d.a.scq, &o, "");
	expect(d.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	close_send_channel(&d, old);
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
	expect_event(d.a.chan, d.a.rcq, &d.a, "");
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
