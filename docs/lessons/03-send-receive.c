/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 3: send and receive, and what happens without a receive (RNR) */
#include "lesson.h"

/* B sends a text, from the start of its memory. */
static void send_text(struct side *b, uint64_t wr_id, const char *text)
{
	struct ibv_sge sge = part_of(b, 0, (uint32_t)strlen(text) + 1);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = BREAK == 4 ? 0 : 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	strcpy(b->memory, text);
	printf("B sends \"%s\"\n", text);
	post_send(b, &wr);
}

/* Wait for both completions of one message.  Exit on an error. */
static void finish(struct side *a, struct side *b)
{
	struct ibv_wc sent = print_completion(b), received;

	if (sent.status == IBV_WC_RNR_RETRY_EXC_ERR) {
		printf("QP of B: %s, QP of A: %s\n", state_of(b->qp),
		       state_of(a->qp));
		exit(1);
	}
	received = print_completion(a);
	if (received.status != IBV_WC_SUCCESS) {
		printf("QP of B: %s, QP of A: %s\n", state_of(b->qp),
		       state_of(a->qp));
		exit(1);
	}
	printf("A received %d bytes: \"%s\"\n", (int)received.byte_len,
	       a->memory);
}

int main(void)
{
	int access = BREAK == 2 ? 0 : IBV_ACCESS_LOCAL_WRITE;
	uint32_t space = BREAK == 1 ? 4 : 64;
	struct ibv_qp_attr attr = usual_attr();
	struct ibv_context *ctx = open_device();
	struct side a = { 0 }, b = { 0 };
	struct ibv_wc wc;

	side_open(&a, "A", ctx, access);
	side_open(&b, "B", ctx, 0);
	side_make_qp(&a);
	side_make_qp(&b);
	attr.rnr_retry = BREAK == 3 ? 2 : 7;
	connect_sides(&a, &b, attr);

	/* A posts a receive, then B sends. */
	post_recv(&a, 11, part_of(&a, 0, space));
	send_text(&b, 1, "hello");
	finish(&a, &b);

	/* B sends before A posts a receive. */
	send_text(&b, 2, "anybody there?");
	usleep(200 * 1000);
	if (BREAK != 3)
		printf("completions of B meanwhile: %d\n",
		       ibv_poll_cq(b.cq, 1, &wc));
	if (BREAK != 3)
		post_recv(&a, 12, part_of(&a, 0, space));
	finish(&a, &b);

	close_pair(&a, &b);
	return 0;
}
