/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Code that the lessons after the first one share: two sides, A and B, with
 * one QP each, in one process.  It does what lesson 1 does by hand.
 *
 * The source of a lesson contains the changes that its page lists: BREAK == 2
 * is true if the program is compiled with -DBREAK=2.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#ifndef BREAK
#define BREAK 0
#endif

enum {
	PORT = 1,
	GID_INDEX = 0,
	MEMORY = 4096,
};

struct side {
	const char *name;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* of memory */
	char memory[MEMORY];
};

/* Check a verb that returns 0 or an errno value. */
static inline void must(int ret, const char *verb)
{
	if (!ret)
		return;
	printf("%s: %s\n", verb, strerror(ret));
	exit(1);
}

/* Check a verb that returns a pointer, or NULL and sets errno. */
static inline void must_have(const void *object, const char *verb)
{
	if (!object)
		must(errno, verb);
}

/* Open the first device. */
static inline struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	setvbuf(stdout, NULL, _IOLBF, 0); /* print each line at once */
	must_have(list, "ibv_get_device_list");
	if (!list[0]) {
		printf("no RDMA device: start this program with urxe run\n");
		exit(1);
	}
	ctx = ibv_open_device(list[0]);
	must_have(ctx, "ibv_open_device");
	ibv_free_device_list(list);
	return ctx;
}

/* Create a PD and a CQ, and register the memory with `access`. */
static inline void side_open(struct side *s, const char *name,
			     struct ibv_context *ctx, int access)
{
	s->name = name;
	s->pd = ibv_alloc_pd(ctx);
	must_have(s->pd, "ibv_alloc_pd");
	s->cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	must_have(s->cq, "ibv_create_cq");
	s->mr = ibv_reg_mr(s->pd, s->memory, MEMORY, access);
	must_have(s->mr, "ibv_reg_mr");
}

/* Attributes of an RC QP; a lesson may change them. */
static inline struct ibv_qp_init_attr usual_qp(const struct side *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
		.qp_type = IBV_QPT_RC,
	};

	return init;
}

static inline void side_make_qp(struct side *s)
{
	struct ibv_qp_init_attr init = usual_qp(s);

	s->qp = ibv_create_qp(s->pd, &init);
	must_have(s->qp, "ibv_create_qp");
}

/* Create a UD QP.  It has no peer, so it need not be connected. */
static inline void side_open_ud(struct side *s, const char *name,
				struct ibv_context *ctx, uint32_t qkey)
{
	struct ibv_qp_attr attr = { .port_num = PORT, .qkey = qkey };
	struct ibv_qp_init_attr init;

	side_open(s, name, ctx, IBV_ACCESS_LOCAL_WRITE);
	init = usual_qp(s);
	init.qp_type = IBV_QPT_UD;
	s->qp = ibv_create_qp(s->pd, &init);
	must_have(s->qp, "ibv_create_qp");
	attr.qp_state = IBV_QPS_INIT;
	must(ibv_modify_qp(s->qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_QKEY),
	     "ibv_modify_qp to INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), "ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN),
	     "ibv_modify_qp to RTS");
}

/* Attributes of a connection, except the peer; a lesson may change them. */
static inline struct ibv_qp_attr usual_attr(void)
{
	struct ibv_qp_attr attr = {
		/* to INIT */
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
		/* to RTR: for incoming requests */
		.path_mtu = IBV_MTU_1024,
		.rq_psn = 0,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12, /* 0.64 ms */
		/* to RTS: for outgoing requests */
		.sq_psn = 0,
		.timeout = 14, /* 4.096 us << 14: 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7, /* 7: no limit */
		.max_rd_atomic = 4,
	};

	return attr;
}

static inline void qp_to_init(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	attr.qp_state = IBV_QPS_INIT;
	must(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS),
	     "ibv_modify_qp to INIT");
}

/* Ready to receive from QP `dest_qpn` of the same port */
static inline void qp_to_rtr(struct ibv_qp *qp, uint32_t dest_qpn,
			     struct ibv_qp_attr attr)
{
	attr.qp_state = IBV_QPS_RTR;
	attr.dest_qp_num = dest_qpn;
	attr.ah_attr.port_num = PORT;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.grh.sgid_index = GID_INDEX;
	attr.ah_attr.grh.hop_limit = 64;
	must(ibv_query_gid(qp->context, PORT, GID_INDEX,
			   &attr.ah_attr.grh.dgid),
	     "ibv_query_gid");
	must(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "ibv_modify_qp to RTR");
}

/* Ready to send */
static inline void qp_to_rts(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &attr,
			   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_MAX_QP_RD_ATOMIC),
	     "ibv_modify_qp to RTS");
}

/* Connect the two QPs: move both from RESET to RTS. */
static inline void connect_sides(struct side *a, struct side *b,
				 struct ibv_qp_attr attr)
{
	qp_to_init(a->qp, attr);
	qp_to_init(b->qp, attr);
	qp_to_rtr(a->qp, b->qp->qp_num, attr);
	qp_to_rtr(b->qp, a->qp->qp_num, attr);
	qp_to_rts(a->qp, attr);
	qp_to_rts(b->qp, attr);
}

/* Open and connect two sides with the usual attributes. */
static inline void make_pair(struct side *a, struct side *b, int access)
{
	struct ibv_context *ctx = open_device();

	side_open(a, "A", ctx, access);
	side_open(b, "B", ctx, access);
	side_make_qp(a);
	side_make_qp(b);
	connect_sides(a, b, usual_attr());
}

/* SGE of `length` bytes of the side's memory, from `offset` on */
static inline struct ibv_sge part_of(const struct side *s, size_t offset,
				     uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->memory + offset,
		.length = length,
		.lkey = s->mr->lkey,
	};

	return sge;
}

static inline void post_recv(const struct side *s, uint64_t wr_id,
			     struct ibv_sge sge)
{
	struct ibv_recv_wr *bad,
		wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	must(ibv_post_recv(s->qp, &wr, &bad), "ibv_post_recv");
}

static inline void post_send(const struct side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	must(ibv_post_send(s->qp, wr, &bad), "ibv_post_send");
}

/* Wait for one completion. */
static inline struct ibv_wc next_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0);
	if (n < 0)
		must(EIO, "ibv_poll_cq");
	return wc;
}

/* Wait for one completion, and print its WR and status. */
static inline struct ibv_wc print_completion(const struct side *s)
{
	struct ibv_wc wc = next_completion(s->cq);

	printf("%s: wr_id %d: %s\n", s->name, (int)wc.wr_id,
	       ibv_wc_status_str(wc.status));
	return wc;
}

static inline const char *state_of(struct ibv_qp *qp)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS",
					     "SQD",   "SQE",  "ERR" };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	must(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	return attr.qp_state <= IBV_QPS_ERR ? names[attr.qp_state] : "?";
}

/* Destroy the objects in the reverse order of their creation. */
static inline void side_close(struct side *s)
{
	if (s->qp)
		must(ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	must(ibv_dereg_mr(s->mr), "ibv_dereg_mr");
	must(ibv_destroy_cq(s->cq), "ibv_destroy_cq");
	must(ibv_dealloc_pd(s->pd), "ibv_dealloc_pd");
}

static inline void close_pair(struct side *a, struct side *b)
{
	struct ibv_context *ctx = a->pd->context;

	side_close(a);
	side_close(b);
	must(ibv_close_device(ctx), "ibv_close_device");
}
