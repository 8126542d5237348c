/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Lesson 13: connections with librdmacm.  A is the client, B the server. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "lesson.h"

enum { SIZE = 32 };

struct end {
	const char *name;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char memory[SIZE];
};

static struct end a = { .name = "A" }, b = { .name = "B" };

/* Check a call that returns 0, or -1 and sets errno. */
static void cm_must(int ret, const char *call)
{
	must(ret ? errno : 0, call);
}

static void open_end(struct end *e)
{
	e->channel = rdma_create_event_channel();
	must_have(e->channel, "rdma_create_event_channel");
	cm_must(rdma_create_id(e->channel, &e->id, NULL, RDMA_PS_TCP),
		"rdma_create_id");
}

/*
 * Wait for the next event of this end, and print it.  CONNECT_REQUEST has a
 * new id, which has a device, and the private data of the client.
 */
static void next_event(struct end *e)
{
	struct rdma_cm_event *event;
	const char *data;

	cm_must(rdma_get_cm_event(e->channel, &event), "rdma_get_cm_event");
	printf("%s: %s", e->name,
	       rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"));
	if (event->status)
		printf(", %d", event->status);
	data = event->param.conn.private_data;
	if (data && *data)
		printf(", \"%s\"", data);
	printf("\n");
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		e->id = event->id;
	if (event->status)
		exit(0);
	rdma_ack_cm_event(event);
}

/* librdmacm creates a PD and CQs, and moves the QP through its states. */
static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	cm_must(rdma_create_qp(e->id, NULL, &init), "rdma_create_qp");
	e->mr = ibv_reg_mr(e->id->pd, e->memory, SIZE, IBV_ACCESS_LOCAL_WRITE);
	must_have(e->mr, "ibv_reg_mr");
	printf("%s: QP in %s\n", e->name, state_of(e->id->qp));
}

static void greet(void)
{
	struct ibv_sge sge = { (uintptr_t)a.memory, SIZE, a.mr->lkey };
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	snprintf(a.memory, SIZE, "hello");
	must(ibv_post_send(a.id->qp, &wr, &bad), "ibv_post_send");
	next_completion(a.id->send_cq);
	next_completion(b.id->recv_cq);
	printf("B has \"%s\"\n", b.memory);
}

int main(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct rdma_conn_param param = { .private_data = "let me in",
					 .private_data_len = 10,
					 .rnr_retry_count = 7 };
	struct ibv_sge sge;
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	open_end(&b);
	cm_must(rdma_bind_addr(b.id, (struct sockaddr *)&to), "rdma_bind_addr");
	if (BREAK != 1)
		cm_must(rdma_listen(b.id, 1), "rdma_listen");
	to.sin_port = rdma_get_src_port(b.id); /* the port that was selected */

	open_end(&a);
	cm_must(rdma_resolve_addr(a.id, NULL, (struct sockaddr *)&to, 2000),
		"rdma_resolve_addr");
	next_event(&a);
	if (BREAK != 2) {
		cm_must(rdma_resolve_route(a.id, 2000), "rdma_resolve_route");
		next_event(&a);
	}
	make_qp(&a);
	cm_must(rdma_connect(a.id, &param), "rdma_connect");
	if (BREAK == 1)
		next_event(&a);

	next_event(&b);
	if (BREAK == 3) {
		cm_must(rdma_reject(b.id, "not today", 10), "rdma_reject");
		next_event(&a);
	}
	make_qp(&b);
	sge = (struct ibv_sge){ (uintptr_t)b.memory, SIZE, b.mr->lkey };
	must(ibv_post_recv(b.id->qp, &wr, &bad), "ibv_post_recv");
	param.private_data = "welcome";
	cm_must(rdma_accept(b.id, &param), "rdma_accept");
	next_event(&a);
	next_event(&b);
	printf("A: QP in %s\n", state_of(a.id->qp));
	greet();
	cm_must(rdma_disconnect(a.id), "rdma_disconnect");
	next_event(&b);
	cm_must(rdma_disconnect(b.id), "rdma_disconnect");
	next_event(&a);
	printf("A: QP in %s\n", state_of(a.id->qp));
	return 0;
}
