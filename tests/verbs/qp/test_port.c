// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The port goes down and comes up again: `urxe port down`, `urxe port up`. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../types.h"

static void port(const char *word)
{
	urxe_port(word, DEVICE);
}

/*
 * Return the state of the port, whose phys_state must be 5 (LinkUp) if it is
 * active, otherwise 3 (Disabled).
 */
static enum ibv_port_state port_state(struct ibv_context *ctx)
{
	struct ibv_port_attr attr;

	ck_ok(ibv_query_port(ctx, 1, &attr));
	ck_assert_int_eq(attr.phys_state,
			 attr.state == IBV_PORT_ACTIVE ? 5 : 3);
	return attr.state;
}

static void do_port_event(struct node *b, void *arg)
{
	enum ibv_event_type type = *(enum ibv_event_type *)arg;
	struct ibv_async_event ev = wait_async(b->ctx, true);

	ck_assert_int_eq(ev.event_type, type);
	ck_assert_int_eq(ev.element.port_num, 1);
	expect_no_async(b->ctx);
	ck_assert_int_eq(port_state(b->ctx), type == IBV_EVENT_PORT_ERR ?
						     IBV_PORT_DOWN :
						     IBV_PORT_ACTIVE);
}

static void both_see(struct duo *d, enum ibv_event_type type)
{
	do_port_event(&d->a, &type);
	if (d->where != SAME_CONTEXT)
		on_b(d, do_port_event, &type, sizeof(type));
}

/* Each context receives one event for each change of the port state. */
START_TEST(events)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_assert_int_eq(port_state(d.a.ctx), IBV_PORT_ACTIVE);
	port("down");
	both_see(&d, IBV_EVENT_PORT_ERR);
	port("down"); /* no change */
	expect_no_async(d.a.ctx);
	port("up");
	both_see(&d, IBV_EVENT_PORT_ACTIVE);
	port("up");
	expect_no_async(d.a.ctx);
	duo_close(&d);
}
END_TEST

/* An RC requester retransmits until the port is active again. */
START_TEST(rc_retransmits)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 64, 1);
	port("down");
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 64, 0));
	expect_none(d.a.scq, QUIET_MS);
	ck_assert(b_all(&d, 0, 128, 0));
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	port("up");
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 64, 64, 1));
	duo_close(&d);
}
END_TEST

/*
 * While the port is down, an RC requester gets RETRY_EXC_ERR after retry_cnt
 * retries.
 */
START_TEST(rc_retry_exceeded)
{
	struct opts o = default_opts();
	struct duo d;

	o.timeout = 10; /* 4 ms */
	o.retry_cnt = 3;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	port("down");
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0));
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 64, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	/* the responder has received nothing */
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	ck_assert(b_all(&d, 0, 128, 0));
	port("up");
	duo_renew(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 64, 0, 0));
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_WRITE);
	duo_close(&d);
}
END_TEST

/* Datagrams are lost while the port is down; their SENDs succeed. */
START_TEST(datagrams_are_lost)
{
	struct opts o = default_opts();
	struct ibv_ah *ah;
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UD);
	ah = make_ah(&d.a, &d.at_b.gid, 0);
	b_recv(&d, 1, 0, 256);
	port("down");
	ck_ok(post_ud(&d.a, 1, 0, 8, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	port("up");
	ck_ok(post_ud(&d.a, 2, 0, 16, ah, d.at_b.qpn, QKEY));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, GRH + 16);
	ck_ok(ibv_destroy_ah(ah));
	duo_close(&d);
}
END_TEST

/* UC messages are lost while the port is down; their SENDs succeed. */
START_TEST(uc_messages_are_lost)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open_unconnected(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	turn(&d, IBV_QPT_UC);
	b_recv(&d, 1, 0, 256);
	port("down");
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	port("up");
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 16, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_SEND);
	ck_assert_uint_eq(b_wait_recv(&d).byte_len, 16);
	duo_close(&d);
}
END_TEST

/*
 * A context that is opened while the port is down reads that state and
 * receives no event for it.
 */
START_TEST(opened_while_down)
{
	struct ibv_context *ctx, *first = open_device();

	port("down");
	ctx = open_device();
	ck_assert_int_eq(port_state(ctx), IBV_PORT_DOWN);
	expect_no_async(ctx);
	expect_async(first, IBV_EVENT_PORT_ERR, NULL);
	port("up");
	expect_async(ctx, IBV_EVENT_PORT_ACTIVE, NULL);
	ck_ok(ibv_close_device(ctx));
	ck_ok(ibv_close_device(first));
}
END_TEST

int main(void)
{
	Suite *s = suite("port");

	add_loop(s, events, WHERE_COUNT);
	add_loop(s, rc_retransmits, WHERE_COUNT);
	add_loop(s, rc_retry_exceeded, WHERE_COUNT);
	add_loop(s, datagrams_are_lost, WHERE_COUNT);
	add_loop(s, uc_messages_are_lost, WHERE_COUNT);
	add(s, opened_while_down);
	return run(s);
}
