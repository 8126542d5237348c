// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UD: datagrams to each other worker and to a multicast group.  They may get
 * lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

#define RECVS 64
#define SENDS 16
#define GRH 40
#define BYTES (GRH + MESSAGE_MAX)
#define UD_RECV (1ull << 60)
#define UD_SEND (1ull << 59)
#define QKEY 0x1234

static struct ud {
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char (*buf)[BYTES]; /* the first SENDS are for sending */
	struct ibv_ah *ah, *group_ah;
	bool attached, out[RECVS];
	uint32_t sends, seq;
} ud;

static const union ibv_gid group = {
	.raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 }
};

static void ud_fill(void)
{
	struct ibv_sge sge = { .length = BYTES, .lkey = ud.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	uint32_t i;

	for (i = 0; i < RECVS; i++) {
		if (ud.out[i])
			continue;
		wr.wr_id = UD_RECV | i;
		sge.addr = (uintptr_t)ud.buf[SENDS + i];
		must("ibv_post_recv",
		     !(errno = ibv_post_recv(ud.qp, &wr, &bad)));
		ud.out[i] = true;
	}
}

static void ud_start(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = QKEY };

	must("to INIT",
	     !ibv_modify_qp(ud.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY));
	a.qp_state = IBV_QPS_RTR;
	must("to RTR", !ibv_modify_qp(ud.qp, &a, IBV_QP_STATE));
	a.qp_state = IBV_QPS_RTS;
	must("to RTS",
	     !ibv_modify_qp(ud.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
	me->ud_qpn = ud.qp->qp_num;
}

bool datagrams_open(void)
{
	struct ibv_qp_init_attr a = {
		.send_cq = w.cq,
		.recv_cq = w.cq,
		.cap = { .max_send_wr = SENDS,
			 .max_recv_wr = RECVS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	struct ibv_ah_attr ah = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .dgid = w.gid, .hop_limit = 1 } };
	uint32_t n = SENDS + RECVS;

	ud.buf = calloc(n, BYTES);
	if (!made("calloc", ud.buf) ||
	    !made("ibv_reg_mr",
		  ud.mr = ibv_reg_mr(w.many_pd, ud.buf, (size_t)n * BYTES,
				     IBV_ACCESS_LOCAL_WRITE)) ||
	    !made("ibv_create_ah", ud.ah = ibv_create_ah(w.many_pd, &ah)))
		return false;
	ah.grh.dgid = group;
	if (!made("ibv_create_ah",
		  ud.group_ah = ibv_create_ah(w.many_pd, &ah)) ||
	    !made("ibv_create_qp", ud.qp = ibv_create_qp(w.many_pd, &a)))
		return false;
	ud_start();
	ud.attached = made("ibv_attach_mcast",
			   !ibv_attach_mcast(ud.qp, &group, 0));
	return true;
}

void datagrams_step(void)
{
	struct ibv_sge sge = { .lkey = ud.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	uint32_t to = rnd(sh->n + 1);
	struct message *m;

	ud_fill();
	if (ud.sends == SENDS || rnd(4))
		return;
	m = (void *)ud.buf[ud.seq % SENDS];
	m->from = my_slot;
	m->seq = ud.seq++;
	m->len = rnd(rnd(2) ? 60 : 900);
	m->seed = rnd(UINT32_MAX);
	fill(m + 1, m->len, m->seed);
	sge.addr = (uintptr_t)m;
	sge.length = (uint32_t)sizeof(*m) + m->len;
	wr.wr_id = UD_SEND;
	wr.wr.ud.remote_qkey = QKEY;
	wr.wr.ud.ah = to < sh->n ? ud.ah : ud.group_ah;
	wr.wr.ud.remote_qpn = to < sh->n ? sh->slot[to].ud_qpn : 0xffffff;
	post_send(ud.qp, &wr);
	ud.sends++;
}

static void datagram_receive(const struct ibv_wc *wc)
{
	const uint32_t i = (uint32_t)wc->wr_id;
	const char *bytes = ud.buf[SENDS + i];
	struct message m;

	if (!ud.out[i])
		broken("a receive is completed that was not posted");
	ud.out[i] = false;
	memcpy(&m, bytes + GRH, sizeof(m));
	if (wc->byte_len != GRH + sizeof(m) + m.len || m.from >= sh->n ||
	    !filled(bytes + GRH + sizeof(m), m.len, m.seed))
		broken("a datagram of %u bytes, %u in it, from %u",
		       wc->byte_len, m.len, m.from);
	me->datagrams++;
}

bool datagrams_got(const struct ibv_wc *wc)
{
	if (wc->wr_id & UD_RECV) {
		if (wc->status == IBV_WC_SUCCESS)
			datagram_receive(wc);
		else
			broken("a datagram is received with status %d",
			       (int)wc->status);
		return true;
	}
	if (!(wc->wr_id & UD_SEND))
		return false;
	if (wc->status != IBV_WC_SUCCESS)
		broken("a datagram is sent with status %d", (int)wc->status);
	ud.sends--;
	return true;
}

void datagrams_close(void)
{
	if (ud.attached)
		must("ibv_detach_mcast", !ibv_detach_mcast(ud.qp, &group, 0));
	if (ud.qp)
		must("ibv_destroy_qp", !ibv_destroy_qp(ud.qp));
	if (ud.group_ah)
		must("ibv_destroy_ah", !ibv_destroy_ah(ud.group_ah));
	if (ud.ah)
		must("ibv_destroy_ah", !ibv_destroy_ah(ud.ah));
	if (ud.mr)
		must("ibv_dereg_mr", !ibv_dereg_mr(ud.mr));
	free(ud.buf);
	ud = (struct ud){ 0 };
}
