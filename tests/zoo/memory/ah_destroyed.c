// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "ah-destroyed",
	.wrong =
		"an address handle is destroyed before the send that uses it completes",
	.seen = "linux-rdma/rdma-core#862", .rule = "ah-in-flight")
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .hop_limit = 1 } };
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_sge sge;
	struct pair p;

	PAIR(&p, .type = IBV_QPT_UD);
	ibv_query_gid(the_device(), 1, 0, &attr.grh.dgid);
	sge = (struct ibv_sge){ (uintptr_t)p.a.buf, 64, p.a.mr->lkey };
	wr.sg_list = &sge;
	wr.wr.ud.ah = ibv_create_ah(the_pd(), &attr);
	wr.wr.ud.remote_qpn = p.b.qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	expect(wr.wr.ud.ah && !ibv_post_send(p.a.qp, &wr, &bad),
	       "ibv_post_send fails");
	if (corrected)
		wait_for(&p.a);
	ibv_destroy_ah(wr.wr.ud.ah);
	if (!corrected)
		wait_for(&p.a);
}
