// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arming a CQ (engine/poll/cq_arm.h), with a producer that is delayed between
 * publishing a completion and raising its event.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"
#include "engine/cq/eager.h"
#include "engine/poll/cq_arm.h"
#include "engine/run/service.h"

#define TAG 5

struct armed {
	struct engine *e;
	struct urxe_cq *cq;
	int fd; /* its channel */
};

static void armed_open(struct armed *a)
{
	struct urxe_context *ctx;
	struct cq_params p = { .cqe = 16, .tag = TAG };

	a->e = engine_new();
	ctx = a->e->ctx;
	a->fd = fifo_create(ctx->fabric, ctx->arena, &p.channel);
	ck_assert_int_ge(a->fd, 0);
	p.channel++;
	a->cq = aligned_alloc(URXE_LINE, sizeof(*a->cq) + URXE_LINE -
						 sizeof(*a->cq) % URXE_LINE);
	ck_assert_ptr_nonnull(a->cq);
	memset(a->cq, 0, sizeof(*a->cq));
	ck_assert_int_eq(cq_open(a->cq, ctx, &p), 0);
}

static void armed_close(struct armed *a)
{
	engine_cq_close(a->cq);
	close(a->fd);
	engine_free(a->e);
}

/* The two steps of a producer: publish a completion, and raise its event. */
static void produce(struct armed *a, struct urxe_cqe_ref *ref)
{
	bool solicited = false;

	ck_assert(cq_begin(&a->cq->view, ref));
	ref->slot.cqe->wr_id = 1;
	ref->slot.cqe->qpn = a->e->qp->qpn;
	ref->slot.cqe->wqe = 1u << 20; /* frees no send queue entry */
	ref->slot.cqe->status = IBV_WC_SUCCESS;
	ref->slot.cqe->opcode = IBV_WC_SEND;
	ref->slot.cqe->wc_flags = 0;
	ref->slot.cqe->inline_len = 0;
	ck_assert(cq_publish(&a->cq->view, ref, &solicited));
}

static void tell(struct armed *a, const struct urxe_cqe_ref *ref)
{
	cq_notify(&a->cq->view, ref->slot.pos, false);
}

static void arm(struct armed *a)
{
	ck_assert_int_eq(cq_arm(a->cq, URXE_ARM_NEXT), 0);
}

static bool event_is_there(struct armed *a)
{
	return poll(&(struct pollfd){ .fd = a->fd, .events = POLLIN }, 1, 0);
}

static void fetch(struct armed *a)
{
	uint64_t tag;

	ck_assert(event_is_there(a));
	ck_assert_int_eq(read(a->fd, &tag, sizeof(tag)), sizeof(tag));
	ck_assert_uint_eq(tag, TAG);
	cq_event_fetched(a->cq);
	ck_assert(!event_is_there(a));
}

/*
 * The arming raised the event, and the program has fetched it and armed
 * again.  The producer does not raise a second one.
 */
START_TEST(no_second_event_after_rearm)
{
	struct urxe_cqe_ref ref, next;
	struct armed a;
	int i;

	armed_open(&a);
	for (i = 0; i < 40; i++) {
		produce(&a, &ref);
		arm(&a);
		fetch(&a);
		arm(&a);
		if (i & 1)
			expect_wc(a.cq, 1, IBV_WC_SUCCESS);
		tell(&a, &ref);
		ck_assert(!event_is_there(&a));
		if (!(i & 1))
			expect_wc(a.cq, 1, IBV_WC_SUCCESS);
		/* the CQ is armed for the next completion */
		produce(&a, &next);
		tell(&a, &next);
		fetch(&a);
		expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	}
	armed_close(&a);
}
END_TEST

START_TEST(no_event_for_polled_completion)
{
	struct urxe_cqe_ref ref;
	struct armed a;

	armed_open(&a);
	produce(&a, &ref);
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	arm(&a);
	tell(&a, &ref);
	ck_assert(!event_is_there(&a));
	armed_close(&a);
}
END_TEST

/*
 * If the CQ was armed before the completion, its event is raised although it
 * was polled meanwhile.  Another thread may have armed, and arms again.
 */
START_TEST(event_if_armed_before)
{
	struct urxe_cqe_ref ref;
	struct armed a;

	armed_open(&a);
	arm(&a);
	produce(&a, &ref);
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	if (_i)
		arm(&a);
	tell(&a, &ref);
	fetch(&a);
	armed_close(&a);
}
END_TEST

/*
 * After cq_arm_forget(), called for a resize, no position suppresses the
 * event, since positions restart.
 */
START_TEST(arm_forget_after_resize)
{
	struct urxe_cqe_ref ref;
	struct armed a;

	armed_open(&a);
	produce(&a, &ref);
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	arm(&a);
	cq_arm_forget(a.cq);
	tell(&a, &ref);
	fetch(&a);
	armed_close(&a);
}
END_TEST

/*
 * A producer wants an eager buffer, and the service thread sees the CQ's
 * attention flag before the poller: the next poll provides the buffer, also
 * if it finds a completion at once.
 */
START_TEST(service_thread_keeps_eager_request)
{
	struct urxe_cqe_ref ref;
	struct urxe_context *ctx;
	struct ibv_wc wc;
	struct armed a;
	int i;

	armed_open(&a);
	ctx = a.e->ctx;
	for (i = 0; i < 2; i++) { /* the first poll checks everything */
		arm(&a);
		produce(&a, &ref);
		if (i) {
			eager_want(&a.cq->view);
			ck_assert(service_need(ctx));
			/* until the thread sleeps after its round */
			while (load_acquire(&ctx->service_at) == UINT64_MAX)
				usleep(1000);
		}
		ck_assert_int_eq(poll_cq(a.cq, 1, &wc), 1);
	}
	ck_assert_uint_ne(load_relaxed(&a.cq->sh->eager), 0);
	armed_close(&a);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("engine arm");

	add(s, no_second_event_after_rearm);
	add(s, no_event_for_polled_completion);
	add_loop(s, event_if_armed_before, 2);
	add(s, arm_forget_after_resize);
	add(s, service_thread_keeps_eager_request);
	return run_suite(s);
}
