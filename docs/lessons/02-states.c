/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 2: the states of a QP, and what may be posted in each. */
#include "lesson.h"

static struct side a, b;

static const char *answer(int ret)
{
	return ret == 0 ? "accepted" : ret == EINVAL ? "refused" : "?";
}

static int try_recv(struct side *s, uint64_t wr_id)
{
	struct ibv_sge sge = part_of(s, 0, 64);
	struct ibv_recv_wr *bad,
		wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(s->qp, &wr, &bad);
}

static int try_send(struct side *s, uint64_t wr_id)
{
	struct ibv_sge sge = part_of(s, 64, 64);
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	return ibv_post_send(s->qp, &wr, &bad);
}

/* Post a receive and a send to A's QP, in its present state. */
static void try_posts(uint64_t recv_id, uint64_t send_id)
{
	int received = try_recv(&a, recv_id), sent = try_send(&a, send_id);

	printf("%s: receive %d %s", state_of(a.qp), (int)recv_id,
	       answer(received));
	printf(", send %d %s\n", (int)send_id, answer(sent));
}

/* Change the state of A's QP. */
static void a_to(enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	must(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

int main(void)
{
	struct ibv_qp_attr attr = usual_attr();
	struct ibv_context *ctx = open_device();
	struct ibv_wc wc;

	side_open(&a, "A", ctx, IBV_ACCESS_LOCAL_WRITE);
	side_open(&b, "B", ctx, IBV_ACCESS_LOCAL_WRITE);
	side_make_qp(&a);
	side_make_qp(&b);
	try_posts(11, 1);

	attr.port_num = BREAK == 1 ? 2 : PORT;
	qp_to_init(a.qp, attr);
	try_posts(12, 2);
	qp_to_init(b.qp, attr);
	qp_to_rtr(b.qp, a.qp->qp_num, attr);
	qp_to_rts(b.qp, attr);
	must(try_recv(&b, 30), "ibv_post_recv of B");

	/*
	 * In RTR, B's message consumes the receive that was posted in INIT.
	 */
	if (BREAK != 2)
		qp_to_rtr(a.qp, b.qp->qp_num, attr);
	must(try_send(&b, 20), "ibv_post_send of B");
	print_completion(&b);
	if (BREAK != 2)
		print_completion(&a);
	try_posts(13, 3);

	qp_to_rts(a.qp, attr);
	try_posts(14, 4);
	print_completion(&a); /* of the send; two receives are still posted */

	if (BREAK == 3) {
		a_to(IBV_QPS_RESET);
		printf("RESET: %d completions\n", ibv_poll_cq(a.cq, 1, &wc));
		return 0;
	}
	a_to(IBV_QPS_ERR);
	print_completion(&a);
	print_completion(&a);
	try_posts(15, 5);
	print_completion(&a);
	print_completion(&a);
	printf("QP of B: %s\n", state_of(b.qp));

	if (BREAK != 4)
		a_to(IBV_QPS_RESET);
	qp_to_init(a.qp, attr);
	printf("QP of A after RESET: %s\n", state_of(a.qp));
	close_pair(&a, &b);
	return 0;
}
