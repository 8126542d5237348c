/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 15: errors, and how to connect again after one */
#include "lesson.h"

enum { SIZE = 32 };

static struct side a, b, d; /* d's QP is of type UD */

static void write_to_b(uint64_t wr_id, uint32_t rkey)
{
	struct ibv_sge sge = part_of(&a, 0, SIZE);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)b.memory, .rkey = rkey },
	};

	post_send(&a, &wr);
}

static void print_states(void)
{
	printf("A is in %s, B in %s\n", state_of(a.qp), state_of(b.qp));
}

static void print_event(void)
{
	struct ibv_async_event event;

	must(ibv_get_async_event(b.qp->context, &event) ? errno : 0,
	     "ibv_get_async_event");
	printf("event of %s: %s\n", event.element.qp == b.qp ? "B" : "A",
	       ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

/* Move the QP to a state that requires no other attributes. */
static void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

/*
 * Reset and connect both QPs, with other PSNs: old packets are not accepted.
 */
static void reconnect(void)
{
	struct ibv_qp_attr attr = usual_attr();

	attr.sq_psn = attr.rq_psn = 1000;
	if (BREAK != 2)
		set_state(a.qp, IBV_QPS_RESET);
	if (BREAK != 1) {
		set_state(b.qp, IBV_QPS_RESET);
		connect_sides(&a, &b, attr);
		return;
	}
	qp_to_init(a.qp, attr);
	qp_to_rtr(a.qp, b.qp->qp_num, attr);
	qp_to_rts(a.qp, attr);
}

/* D sends a datagram to itself, with this lkey. */
static void send_to_d(struct ibv_ah *ah, uint64_t wr_id, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)d.memory, SIZE, lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = d.qp->qp_num },
	};

	post_send(&d, &wr);
}

static struct ibv_ah *open_d(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = PORT };
	struct ibv_ah_attr ah = { .port_num = PORT,
				  .is_global = 1,
				  .grh = { .sgid_index = GID_INDEX } };
	struct ibv_qp_init_attr init;

	side_open(&d, "D", a.pd->context, IBV_ACCESS_LOCAL_WRITE);
	init = usual_qp(&d);
	init.qp_type = IBV_QPT_UD;
	d.qp = ibv_create_qp(d.pd, &init);
	must_have(d.qp, "ibv_create_qp");
	must(ibv_modify_qp(d.qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_QKEY),
	     "ibv_modify_qp to INIT");
	set_state(d.qp, IBV_QPS_RTR);
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(d.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
	     "ibv_modify_qp to RTS");
	must(ibv_query_gid(d.pd->context, PORT, GID_INDEX, &ah.grh.dgid),
	     "ibv_query_gid");
	return ibv_create_ah(d.pd, &ah);
}

static void datagrams(void)
{
	struct ibv_ah *ah = open_d();

	must_have(ah, "ibv_create_ah");
	post_recv(&d, 20, part_of(&d, 0, 40 + SIZE));
	send_to_d(ah, 5, d.mr->lkey + 1);
	send_to_d(ah, 6, d.mr->lkey);
	print_completion(&d);
	print_completion(&d);
	printf("D is in %s\n", state_of(d.qp));
	if (BREAK != 4)
		set_state(d.qp, IBV_QPS_RTS);
	send_to_d(ah, 7, d.mr->lkey);
	print_completion(&d);
	if (BREAK != 4)
		print_completion(&d);
	must(ibv_destroy_ah(ah), "ibv_destroy_ah");
	side_close(&d);
}

int main(void)
{
	struct ibv_wc wc[3];

	make_pair(&a, &b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	post_recv(&b, 10, part_of(&b, 0, SIZE));
	write_to_b(1, b.mr->rkey);
	write_to_b(2, b.mr->rkey + 1);
	write_to_b(3, b.mr->rkey);
	if (BREAK != 3) {
		print_completion(&a);
		print_completion(&a);
		print_completion(&a);
		print_completion(&b);
	}
	print_event();
	print_states();
	reconnect();
	print_states();
	if (BREAK == 3)
		printf("completions of A: %d\n", ibv_poll_cq(a.cq, 3, wc));
	write_to_b(4, b.mr->rkey);
	if (print_completion(&a).status == IBV_WC_SUCCESS)
		datagrams();
	close_pair(&a, &b);
	return 0;
}
