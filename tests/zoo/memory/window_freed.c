// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "../zoo.h"

PROGRAM(.name = "window-freed",
	.wrong = "a memory window is freed while a bind of it is outstanding",
	.seen = "-", .rule = "mw-in-flight")
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;
	struct ibv_mr *mr;
	struct pair p;

	PAIR(&p);
	mr = ibv_reg_mr(the_pd(), p.a.buf, BUF,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	wr.bind_mw.mw = ibv_alloc_mw(the_pd(), IBV_MW_TYPE_2);
	expect(mr && wr.bind_mw.mw, "ibv_reg_mr or ibv_alloc_mw fails");
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
	wr.bind_mw.bind_info.mr = mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)p.a.buf;
	wr.bind_mw.bind_info.length = 64;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	expect(!ibv_post_send(p.a.qp, &wr, &bad), "the bind fails");
	if (corrected)
		wait_for(&p.a);
	ibv_dealloc_mw(wr.bind_mw.mw);
	if (!corrected)
		next_wc(&p.a, &wc);
}
