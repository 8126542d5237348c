/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 9: one queue of receives for many QPs.  B serves three clients. */
#include "lesson.h"

enum { CLIENTS = 3, RECEIVES = 4, SIZE = 32 };

static struct side a = { .name = "A" }, b = { .name = "B" };
static struct ibv_srq *srq;
static struct ibv_qp *client[CLIENTS], *server[CLIENTS];

static void make_srq(void)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = RECEIVES, .max_sge = 1 },
	};

	srq = ibv_create_srq(b.pd, &init);
	must_have(srq, "ibv_create_srq");
}

/* Connect a QP of A and a QP of B, which uses the SRQ. */
static void make_connection(int i)
{
	struct ibv_qp_init_attr at_a = usual_qp(&a), at_b = usual_qp(&b);
	struct ibv_qp_attr attr = usual_attr();

	attr.rnr_retry = 0; /* no retries after an RNR NAK */
	at_b.srq = srq;
	a.qp = client[i] = ibv_create_qp(a.pd, &at_a);
	must_have(a.qp, "ibv_create_qp");
	b.qp = server[i] = ibv_create_qp(b.pd, &at_b);
	must_have(b.qp, "ibv_create_qp");
	connect_sides(&a, &b, attr);
}

static void post_receive(int i)
{
	struct ibv_sge sge = part_of(&b, (size_t)i * SIZE, SIZE);
	struct ibv_recv_wr *bad,
		wr = { .wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1 };

	must(ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
}

/* Request one event, when fewer than two receives are left. */
static void arm_limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };

	must(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), "ibv_modify_srq");
}

/* Client i sends a message.  Print both completions. */
static void send_message(int i)
{
	struct ibv_sge sge = part_of(&a, 0, SIZE);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	snprintf(a.memory, SIZE, "client %d was here", i);
	a.qp = client[i];
	post_send(&a, &wr);
	wc = next_completion(a.cq);
	printf("client %d: %s\n", i, ibv_wc_status_str(wc.status));
	if (wc.status != IBV_WC_SUCCESS)
		return;
	wc = next_completion(b.cq);
	for (i = 0; server[i]->qp_num != wc.qp_num;)
		i++;
	printf("  B: receive %d, by QP %d: \"%s\"\n", (int)wc.wr_id, i,
	       b.memory + wc.wr_id * SIZE);
}

/* Wait for the next asynchronous event, and print it. */
static void print_event(void)
{
	struct ibv_async_event event;

	must(ibv_get_async_event(srq->context, &event) ? errno : 0,
	     "ibv_get_async_event");
	printf("  event: %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

static void break_a_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_wc wc;

	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp to ERR");
	printf("QP 0 is in ERR: %d receives flushed\n",
	       ibv_poll_cq(b.cq, 1, &wc));
	print_event();
}

int main(void)
{
	struct ibv_context *ctx = open_device();
	struct ibv_srq_attr attr;
	int i;

	side_open(&a, "A", ctx, 0);
	side_open(&b, "B", ctx, IBV_ACCESS_LOCAL_WRITE);
	make_srq();
	for (i = 0; i < CLIENTS; i++)
		make_connection(i);
	for (i = 0; i < RECEIVES; i++)
		post_receive(i);
	arm_limit();
	if (BREAK == 2)
		break_a_qp(server[0]);
	if (BREAK == 3) {
		b.qp = server[0];
		post_recv(&b, 4, part_of(&b, 0, SIZE));
	}
	send_message(2);
	send_message(1);
	send_message(2);
	print_event();
	must(ibv_query_srq(srq, &attr), "ibv_query_srq");
	printf("  limit: %u\n", attr.srq_limit);
	for (i = 0; BREAK == 1 && i < 3; i++)
		post_receive(i);
	send_message(0);
	send_message(1);
	return 0;
}
