// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UC requests to another host: their packets, their pace, and completions
 * when they are sent.
 */
#define _GNU_SOURCE
#include <string.h>

#include "requester.h"

#define BYTES (8u << 20)
#define MTU 4096u

/* The pace (socket/port.h), and the bytes that may be ahead of it */
#define BYTES_PER_MS 1e6
#define BURST (128u << 10)

static void open_uc(bool channel)
{
	struct opts o = wire_opts();

	o.size = BYTES;
	o.mtu = IBV_MTU_4096;
	o.channel = channel;
	open_type_to_peer(IBV_QPT_UC, &o);
}

/* A message that fits into the burst is sent at once. */
START_TEST(short_messages)
{
	const struct wire_packet *p;
	uint32_t i;

	open_uc(false);
	node_fill(&n, 0, 3 * MTU, 1);
	post_op(IBV_WR_SEND, 1, 0, 10);
	post_op(IBV_WR_RDMA_WRITE, 2, 0, 2 * MTU + 1);
	post_op(IBV_WR_SEND_WITH_IMM, 3, 0, 0);
	take(WIRE_UC | WIRE_SEND_ONLY, PSN);
	for (i = 0; i < 3; i++) {
		p = take(WIRE_UC | (i == 0 ? WIRE_WRITE_FIRST :
				    i == 1 ? WIRE_WRITE_MIDDLE :
					     WIRE_WRITE_LAST),
			 PSN + 1 + i);
		ck_assert(!p->bth.ack_request);
		ck_assert(has(p->payload, (size_t)i * MTU, i < 2 ? MTU : 1));
	}
	take(WIRE_UC | WIRE_SEND_ONLY_IMM, PSN + 4);
	take_none();
	for (i = 1; i <= 3; i++)
		expect(n.scq, i, IBV_WC_SUCCESS);
	close_peer();
}
END_TEST

static struct ibv_wc next_wc(bool sleeps)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	while (sleeps && !ibv_poll_cq(n.scq, 1, &wc)) {
		ck_ok(ibv_req_notify_cq(n.scq, 0));
		if (ibv_poll_cq(n.scq, 1, &wc))
			return wc;
		ck_ok(ibv_get_cq_event(n.chan, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	return sleeps ? wc : wait_wc(n.scq);
}

/*
 * Long messages are sent at the pace, whether the program polls or sleeps.
 * Each completes when its last packet is sent.
 */
START_TEST(paced)
{
	const uint32_t lengths[] = { BYTES / 2, BYTES / 2, 1 };
	uint64_t bytes = 0, id;
	struct ibv_wc wc;
	double begin;

	open_uc(true);
	begin = now_ms();
	for (id = 0; id < 3; id++)
		post_op(IBV_WR_SEND, id, 0, lengths[id]);
	for (id = 0; id < 3; id++) {
		wc = next_wc(_i);
		ck_assert_uint_eq(wc.wr_id, id);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		bytes += lengths[id];
		ck_assert(now_ms() - begin >=
			  (double)(bytes - BURST) / BYTES_PER_MS);
	}
	close_peer();
}
END_TEST

/* Memory that is gone breaks the send queue, at the first packet or later. */
START_TEST(memory_vanishes)
{
	const uint32_t gone = _i ? 1u << 20 : 0;

	open_uc(false);
	leave_hole((char *)n.buf + gone, MTU);
	post_op(IBV_WR_SEND, 1, BYTES / 2, 10);
	post_op(IBV_WR_SEND, 2, 0, BYTES / 2);
	post_op(IBV_WR_SEND, 3, BYTES / 2, 10);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	expect(n.scq, 2, IBV_WC_LOC_PROT_ERR);
	expect(n.scq, 3, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(n.qp), IBV_QPS_SQE);
	close_peer();
}
END_TEST

/* WRs that are not sent yet are flushed in ERR, or dropped with the QP. */
START_TEST(ended)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct ibv_wc wc;
	uint64_t id;

	open_uc(false);
	for (id = 0; id < 3; id++)
		post_op(IBV_WR_SEND, id, 0, BYTES);
	if (_i)
		ck_ok(qp_to(n.qp, IBV_QPS_ERR));
	for (id = 0; _i && id < 3; id++) {
		wc = wait_wc(n.scq);
		ck_assert_uint_eq(wc.wr_id, id);
		/* some may have been sent before */
		if (wc.status)
			status = IBV_WC_WR_FLUSH_ERR;
		ck_assert_int_eq(wc.status, status);
	}
	if (_i)
		expect_none(n.scq, 0);
	close_peer();
}
END_TEST

int main(void)
{
	Suite *s = suite("wire-requester-uc");

	add(s, short_messages);
	add_loop(s, paced, 2);
	add_loop(s, memory_vanishes, 2);
	add_loop(s, ended, 2);
	return run(s);
}
