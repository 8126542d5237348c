/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 17: InfiniBand: LIDs, and the subnet manager that assigns them */
#include "lesson.h"

enum {
	GRH = 40, /* bytes in front of each received datagram */
	SIZE = 32,
	QKEY = 0x1234,
	OUT = 1024, /* offset of the message to send */
	NOBODY = 100, /* added to a LID: one that no port has */
};

static struct side a, b;

/* Open two devices, which must be ports of one InfiniBand subnet. */
static void open_two(struct ibv_context *ctx[2])
{
	int i, n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	setvbuf(stdout, NULL, _IOLBF, 0);
	must_have(list, "ibv_get_device_list");
	if (n < 2) {
		printf("this lesson needs two devices\n");
		exit(1);
	}
	for (i = 0; i < 2; i++) {
		ctx[i] = ibv_open_device(list[i]);
		must_have(ctx[i], "ibv_open_device");
	}
	ibv_free_device_list(list);
}

static struct ibv_port_attr port_of(struct ibv_context *ctx)
{
	struct ibv_port_attr port;

	must(ibv_query_port(ctx, PORT, &port), "ibv_query_port");
	return port;
}

static int show_port(const char *name, struct ibv_context *ctx)
{
	struct ibv_port_attr port = port_of(ctx);

	printf("%s: %s, LID %d, subnet manager at LID %d\n", name,
	       ibv_port_state_str(port.state), port.lid, port.sm_lid);
	return port.state == IBV_PORT_ACTIVE &&
	       port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

/* The address of B's port: its LID, and with `global` also its GID */
static struct ibv_ah_attr address_of_b(int global, int other_lid)
{
	struct ibv_ah_attr attr = {
		.dlid = port_of(b.pd->context).lid,
		.port_num = PORT,
		.is_global = global,
		.grh = { .sgid_index = GID_INDEX, .hop_limit = 1 },
	};

	if (other_lid)
		attr.dlid += NOBODY;
	must(ibv_query_gid(b.pd->context, PORT, GID_INDEX, &attr.grh.dgid),
	     "ibv_query_gid");
	return attr;
}

/* Send a datagram to B, and print what B receives. */
static void send_datagram(struct ibv_ah_attr address)
{
	struct ibv_ah *ah = ibv_create_ah(a.pd, &address);
	struct ibv_sge sge = part_of(&a, OUT, SIZE);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah,
			   .remote_qpn = b.qp->qp_num,
			   .remote_qkey = QKEY },
	};
	struct ibv_wc wc;

	must_have(ah, "ibv_create_ah");
	post_recv(&b, 0, part_of(&b, 0, GRH + SIZE));
	post_send(&a, &wr);
	printf("A sends to LID %d%s: %s\n", address.dlid,
	       address.is_global ? " with B's GID" : "",
	       ibv_wc_status_str(next_completion(a.cq).status));
	if (ibv_poll_cq(b.cq, 1, &wc) == 1)
		printf("  B: from LID %d, %s\n", wc.slid,
		       wc.wc_flags & IBV_WC_GRH ? "with GRH" : "no GRH");
	else
		printf("  B: nothing\n");
	must(ibv_destroy_ah(ah), "ibv_destroy_ah");
}

static void connect_to(struct side *s, uint32_t qpn, uint16_t lid)
{
	struct ibv_qp_attr attr = usual_attr();

	qp_to_init(s->qp, attr);
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = qpn;
	attr.ah_attr.port_num = PORT;
	attr.ah_attr.dlid = lid;
	must(ibv_modify_qp(s->qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "ibv_modify_qp to RTR");
	qp_to_rts(s->qp, attr);
}

/* A connection, too, needs only LIDs and QP numbers. */
static void send_connected(uint16_t lid_of_a, uint16_t lid_of_b)
{
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge sge = part_of(&a, OUT, SIZE);

	side_make_qp(&a);
	side_make_qp(&b);
	connect_to(&a, b.qp->qp_num, lid_of_b);
	connect_to(&b, a.qp->qp_num, lid_of_a);
	post_recv(&b, 0, part_of(&b, 0, SIZE));
	wr.sg_list = &sge;
	post_send(&a, &wr);
	printf("A sends on a connection to LID %d: %s\n", lid_of_b,
	       ibv_wc_status_str(next_completion(a.cq).status));
}

int main(void)
{
	struct ibv_context *ctx[2];
	int ready;

	open_two(ctx);
	ready = show_port("A", ctx[0]);
	ready &= show_port("B", ctx[1]);
	if (!ready) {
		printf("the subnet manager has not configured both ports\n");
		return 0;
	}
	side_open_ud(&a, "A", ctx[0], QKEY);
	side_open_ud(&b, "B", ctx[1], QKEY);
	send_datagram(address_of_b(0, BREAK == 1));
	send_datagram(address_of_b(1, BREAK == 2));
	must(ibv_destroy_qp(a.qp), "ibv_destroy_qp");
	must(ibv_destroy_qp(b.qp), "ibv_destroy_qp");
	send_connected(port_of(ctx[0]).lid, address_of_b(0, BREAK == 3).dlid);
	side_close(&a);
	side_close(&b);
	must(ibv_close_device(ctx[0]), "ibv_close_device");
	must(ibv_close_device(ctx[1]), "ibv_close_device");
	return 0;
}
