/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 10: datagrams and multicast, between A, B and C */
#include <arpa/inet.h>

#include "lesson.h"

enum {
	GRH = 40, /* bytes in front of each received datagram */
	SIZE = 32,
	QKEY = 0x1234,
	OUT = 1024, /* offset of the message to send */
	GROUP_QPN = 0xffffff, /* QP number of a multicast group */
};

static struct side a, b, c;

/* Create an address handle: the address of a port or of a group. */
static struct ibv_ah *create_ah(struct side *s, union ibv_gid gid)
{
	struct ibv_ah_attr attr = {
		.port_num = PORT,
		.is_global = 1,
		.grh = { .dgid = gid,
			 .sgid_index = GID_INDEX,
			 .hop_limit = 64 },
	};
	struct ibv_ah *ah = ibv_create_ah(s->pd, &attr);

	must_have(ah, "ibv_create_ah");
	return ah;
}

static void send_datagram(struct side *s, struct ibv_ah *ah, uint32_t qpn,
			  uint32_t qkey, const char *text)
{
	struct ibv_sge sge[2] = { part_of(s, OUT, SIZE),
				  part_of(s, 0, MEMORY) };
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = BREAK == 3 ? 2 : 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey },
	};

	snprintf(s->memory + OUT, SIZE, "%s", text);
	post_send(s, &wr);
	printf("%s sends \"%s\": %s\n", s->name, text,
	       ibv_wc_status_str(next_completion(s->cq).status));
}

static void post_receive(struct side *s)
{
	post_recv(s, 0, part_of(s, 0, BREAK == 2 ? SIZE : GRH + SIZE));
}

/* Poll once, and print the received datagram, if any. */
static struct ibv_wc receive(struct side *s)
{
	struct ibv_wc wc = { 0 };

	if (!ibv_poll_cq(s->cq, 1, &wc)) {
		printf("  %s: nothing\n", s->name);
		return wc;
	}
	printf("  %s: %u bytes from %s: \"%s\"\n", s->name, wc.byte_len,
	       wc.src_qp == a.qp->qp_num ? "A" : "B", s->memory + GRH);
	return wc;
}

int main(void)
{
	struct ibv_context *ctx = open_device();
	union ibv_gid gid, group;
	struct ibv_ah *to_b, *to_a, *to_all;
	struct ibv_wc wc;

	side_open_ud(&a, "A", ctx, QKEY);
	side_open_ud(&b, "B", ctx, QKEY);
	side_open_ud(&c, "C", ctx, QKEY);
	must(ibv_query_gid(ctx, PORT, GID_INDEX, &gid), "ibv_query_gid");
	to_b = create_ah(&a, gid);
	send_datagram(&a, to_b, b.qp->qp_num, QKEY, "are you there?");
	receive(&b);
	post_receive(&b);
	send_datagram(&a, to_b, b.qp->qp_num, QKEY + (BREAK == 1), "and now?");
	wc = receive(&b);
	if (BREAK)
		return 0;

	post_receive(&a);
	to_a = ibv_create_ah_from_wc(b.pd, &wc, (void *)b.memory, PORT);
	must_have(to_a, "ibv_create_ah_from_wc");
	send_datagram(&b, to_a, wc.src_qp, QKEY, "I am!");
	receive(&a);

	inet_pton(AF_INET6, "ff0e::ffff:ef01:203", &group);
	must(ibv_attach_mcast(b.qp, &group, 0), "ibv_attach_mcast");
	must(ibv_attach_mcast(c.qp, &group, 0), "ibv_attach_mcast");
	post_receive(&b);
	post_receive(&c);
	to_all = create_ah(&a, group);
	send_datagram(&a, to_all, GROUP_QPN, QKEY, "hello to all");
	receive(&b);
	receive(&c);

	must(ibv_detach_mcast(b.qp, &group, 0), "ibv_detach_mcast");
	must(ibv_detach_mcast(c.qp, &group, 0), "ibv_detach_mcast");
	must(ibv_destroy_ah(to_b), "ibv_destroy_ah");
	must(ibv_destroy_ah(to_a), "ibv_destroy_ah");
	must(ibv_destroy_ah(to_all), "ibv_destroy_ah");
	side_close(&c);
	close_pair(&a, &b);
	return 0;
}
