// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Create, use and destroy objects that no other process uses.  This must
 * complete in any state of the other processes, even if one is stopped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "soak.h"

#define BYTES 16384
#define ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)

static struct life {
	struct ibv_pd *pd;
	struct ibv_comp_channel *chan;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr, *file_mr, *dm_mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	char *mem, *file;
} o;

static bool life_open(void)
{
	struct ibv_alloc_dm_attr dm = { .length = BYTES };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16,
						   .max_sge = 1 } };
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_RC,
				       .cap = { .max_send_wr = 16,
						.max_recv_wr = 4,
						.max_send_sge = 1,
						.max_recv_sge = 1 } };
	bool ok;
	int fd;

	if (!made("ibv_alloc_pd", o.pd = ibv_alloc_pd(w.ctx)) ||
	    !made("ibv_create_comp_channel",
		  o.chan = ibv_create_comp_channel(w.ctx)) ||
	    !made("ibv_create_cq",
		  o.cq = ibv_create_cq(w.ctx, 64, NULL, o.chan, 0)) ||
	    !made("ibv_create_srq", o.srq = ibv_create_srq(o.pd, &srq)))
		return false;
	qp.send_cq = qp.recv_cq = o.cq;
	if (!made("ibv_create_qp", o.qp[0] = ibv_create_qp(o.pd, &qp)) ||
	    !made("ibv_create_qp", o.qp[1] = ibv_create_qp(o.pd, &qp)))
		return false;
	o.mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd = memfd_create("soak", MFD_CLOEXEC);
	ok = fd >= 0 && !ftruncate(fd, BYTES);
	o.file = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!made("mmap", ok && o.mem != MAP_FAILED && o.file != MAP_FAILED)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	ok = made("ibv_reg_mr",
		  o.file_mr = ibv_reg_mr(o.pd, o.file, BYTES, ACCESS));
	close(fd);
	return ok &&
	       made("ibv_reg_mr",
		    o.mr = ibv_reg_mr(o.pd, o.mem, BYTES, ACCESS)) &&
	       made("ibv_alloc_dm", o.dm = ibv_alloc_dm(w.ctx, &dm)) &&
	       made("ibv_reg_dm_mr",
		    o.dm_mr = ibv_reg_dm_mr(o.pd, o.dm, 0, BYTES,
					    ACCESS | IBV_ACCESS_ZERO_BASED)) &&
	       made("ibv_alloc_mw",
		    o.mw = ibv_alloc_mw(o.pd, IBV_MW_TYPE_1));
}

static void wr_history_end(void)
{
	int i;

	for (i = 0; i < 2; i++)
		if (o.qp[i])
			must("ibv_destroy_qp", !ibv_destroy_qp(o.qp[i]));
	if (o.mw)
		must("ibv_dealloc_mw", !ibv_dealloc_mw(o.mw));
	if (o.dm_mr)
		must("ibv_dereg_mr", !ibv_dereg_mr(o.dm_mr));
	if (o.dm)
		must("ibv_free_dm", !ibv_free_dm(o.dm));
	if (o.mr)
		must("ibv_dereg_mr", !ibv_dereg_mr(o.mr));
	if (o.file_mr)
		must("ibv_dereg_mr", !ibv_dereg_mr(o.file_mr));
	if (o.srq)
		must("ibv_destroy_srq", !ibv_destroy_srq(o.srq));
	if (o.cq)
		must("ibv_destroy_cq", !ibv_destroy_cq(o.cq));
	if (o.chan)
		must("ibv_destroy_comp_channel",
		     !ibv_destroy_comp_channel(o.chan));
	if (o.pd)
		must("ibv_dealloc_pd", !ibv_dealloc_pd(o.pd));
	if (o.mem && o.mem != MAP_FAILED)
		munmap(o.mem, BYTES);
	if (o.file && o.file != MAP_FAILED)
		munmap(o.file, BYTES);
	o = (struct life){ 0 };
}

static void connect_to(struct ibv_qp *qp, struct ibv_qp *to)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qp_num,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = w.gid, .hop_limit = 1 } },
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};

	must("to INIT",
	     !ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	must("to RTR",
	     !ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	must("to RTS",
	     !ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void expect_completion(const char *what)
{
	uint64_t end = now_ms() + LIMIT_MS;
	struct ibv_wc wc;
	int n;

	me->doing = what;
	while (!(n = ibv_poll_cq(o.cq, 1, &wc)) && now_ms() < end)
		sched_yield();
	if (n != 1 || wc.status != IBV_WC_SUCCESS)
		broken("%s: %d completions, status %d", what, n,
		       n == 1 ? (int)wc.status : 0);
}

static void write_to(struct ibv_mr *to, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)o.mem, 256, o.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = to ? to->rkey : rkey;
	post_send(o.qp[0], &wr);
	expect_completion("a WRITE to oneself");
}

static void life_live(void)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = o.mr,
			       .addr = (uintptr_t)o.mem + 8192,
			       .length = 4096,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	};
	uint32_t seed = rnd(UINT32_MAX);
	char back[256];

	connect_to(o.qp[0], o.qp[1]);
	connect_to(o.qp[1], o.qp[0]);
	fill(o.mem, 256, seed);
	write_to(o.file_mr, (uintptr_t)o.file, 0);
	write_to(o.dm_mr, 0, 0);
	must("ibv_memcpy_from_dm",
	     !ibv_memcpy_from_dm(back, o.dm, 0, sizeof(back)));
	must("ibv_bind_mw", !ibv_bind_mw(o.qp[1], o.mw, &bind));
	expect_completion("ibv_bind_mw");
	write_to(NULL, (uintptr_t)o.mem + 8192, o.mw->rkey);
	if (!filled(back, 256, seed) || !filled(o.file, 256, seed) ||
	    !filled(o.mem + 8192, 256, seed))
		broken("what was written to oneself is not there");
}

void cycle(void)
{
	if (life_open())
		life_live();
	wr_history_end();
	me->cycles++;
}
