/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One end of the RC connection: its verbs objects and buffers, and the
 * synchronization with the other end
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define PORT 1
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "urxe-bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_device(struct end *e, const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	if (!list)
		die("no list of devices");
	for (i = 0; list[i]; i++)
		if (!device || !strcmp(device, ibv_get_device_name(list[i])))
			break;
	errno = ENODEV;
	if (!list[i])
		die(device ? device : "no device");
	e->ctx = ibv_open_device(list[i]);
	if (!e->ctx)
		die("ibv_open_device");
	ibv_free_device_list(list);
	errno = ibv_query_port(e->ctx, PORT, &e->port);
	if (errno)
		die("ibv_query_port");
	if (ibv_query_gid(e->ctx, PORT, e->gid_index, &e->me.gid))
		die("ibv_query_gid");
}

/*
 * Allocate the buffers and populate them.  The shared one is a memfd mapping,
 * as SPDK and DPDK use for their memory.
 */
static void make_buffers(struct end *e)
{
	const int prot = PROT_READ | PROT_WRITE;
	int fd, k;

	e->buf[BUF_PRIVATE] =
		mmap(NULL, BENCH_BUF, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fd = memfd_create("urxe-bench", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, BENCH_BUF))
		die("memfd");
	e->buf[BUF_SHARED] = mmap(NULL, BENCH_BUF, prot, MAP_SHARED, fd, 0);
	/*
	 * As in SPDK and DPDK, fd stays open: a peer maps memory by opening
	 * its fd.
	 */
	for (k = BUF_PRIVATE; k <= BUF_SHARED; k++) {
		if (e->buf[k] == MAP_FAILED)
			die("mmap");
		memset(e->buf[k], 0, BENCH_BUF);
		e->mr[k] = ibv_reg_mr(e->pd, e->buf[k], BENCH_BUF, ACCESS);
		if (!e->mr[k])
			die("ibv_reg_mr");
		e->me.addr[k] = (uintptr_t)e->buf[k];
		e->me.rkey[k] = e->mr[k]->rkey;
	}
	e->me.va = (uintptr_t)e->buf[BUF_PRIVATE];
	e->me.pid = getpid();
}

static void make_dm(struct end *e)
{
	struct ibv_alloc_dm_attr attr = { .length = BENCH_BUF };
	struct ibv_device_attr_ex dev;

	if (ibv_query_device_ex(e->ctx, NULL, &dev) ||
	    dev.max_dm_size < 4 * (uint64_t)BENCH_BUF)
		return;
	e->dm = ibv_alloc_dm(e->ctx, &attr);
	if (!e->dm)
		die("ibv_alloc_dm");
	e->mr[BUF_DM] = ibv_reg_dm_mr(e->pd, e->dm, 0, BENCH_BUF,
				      ACCESS | IBV_ACCESS_ZERO_BASED);
	if (!e->mr[BUF_DM])
		die("ibv_reg_dm_mr");
	e->me.addr[BUF_DM] = 0;
	e->me.rkey[BUF_DM] = e->mr[BUF_DM]->rkey;
	e->me.has_dm = 1;
}

static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = BENCH_DEPTH,
			 .max_recv_wr = BENCH_DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 8 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = ACCESS,
	};

	e->cq = ibv_create_cq(e->ctx, BENCH_DEPTH, NULL, NULL, 0);
	e->recv_cq = ibv_create_cq(e->ctx, BENCH_DEPTH, NULL, NULL, 0);
	if (!e->cq || !e->recv_cq)
		die("ibv_create_cq");
	init.send_cq = e->cq;
	init.recv_cq = e->recv_cq;
	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		die("ibv_create_qp");
	errno = ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS);
	if (errno)
		die("ibv_modify_qp to INIT");
	e->me.qpn = e->qp->qp_num;
	e->me.psn = e->qp->qp_num;
	e->me.lid = e->port.lid;
	e->me.mtu = e->port.active_mtu;
}

void end_open(struct end *e, const char *device, int gid_index)
{
	e->gid_index = gid_index;
	open_device(e, device);
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd)
		die("ibv_alloc_pd");
	make_buffers(e);
	make_dm(e);
	make_qp(e);
}

/* Barrier: return when both processes have called it. */
void end_barrier(struct end *e)
{
	if (e->rank > 1)
		return;
	e->barrier += 2;
	atomic_fetch_add_explicit(&e->common->arrived, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&e->common->arrived, memory_order_acquire) <
	       e->barrier)
		end_relax(e);
}

static cpu_set_t cpus_before;

bool end_share_cpu(struct end *e)
{
	cpu_set_t one;

	if (e->rank == 0)
		atomic_store_explicit(&e->common->cpu, sched_getcpu(),
				      memory_order_relaxed);
	end_barrier(e);
	CPU_ZERO(&one);
	CPU_SET(atomic_load_explicit(&e->common->cpu, memory_order_relaxed),
		&one);
	return !sched_getaffinity(0, sizeof(cpus_before), &cpus_before) &&
	       !sched_setaffinity(0, sizeof(one), &one);
}

void end_leave_cpu(struct end *e)
{
	sched_setaffinity(0, sizeof(cpus_before), &cpus_before);
	end_barrier(e); /* wait until the other process has left, too */
}

void end_relax(const struct end *e)
{
	if (e->one_cpu)
		sched_yield();
}

/* The follower may wait for seconds, so it polls once a millisecond. */
void end_rest(struct end *e)
{
	_Atomic uint32_t *rested = &e->common->rested;

	e->rests++;
	if (e->rank == 0)
		atomic_store_explicit(rested, e->rests, memory_order_release);
	while (atomic_load_explicit(rested, memory_order_acquire) < e->rests)
		usleep(1000);
}

void end_connect(struct end *e)
{
	struct ibv_qp_attr a = { 0 };

	if (e->rank > 1) {
		e->peer = e->me; /* connected to itself */
	} else {
		e->common->info[e->rank] = e->me;
		end_barrier(e);
		e->peer = e->common->info[!e->rank];
	}
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = e->me.mtu < e->peer.mtu ? e->me.mtu : e->peer.mtu;
	a.dest_qp_num = e->peer.qpn;
	a.rq_psn = e->peer.psn;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 12;
	a.ah_attr.dlid = e->peer.lid;
	a.ah_attr.port_num = PORT;
	a.ah_attr.is_global = e->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	a.ah_attr.grh.dgid = e->peer.gid;
	a.ah_attr.grh.sgid_index = e->gid_index;
	a.ah_attr.grh.hop_limit = 64;
	errno = ibv_modify_qp(e->qp, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	if (errno)
		die("ibv_modify_qp to RTR");
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = e->me.psn;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	errno = ibv_modify_qp(e->qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	if (errno)
		die("ibv_modify_qp to RTS");
	end_barrier(e);
}

void end_close(struct end *e)
{
	int k;

	end_barrier(e);
	if (ibv_destroy_qp(e->qp))
		die("ibv_destroy_qp");
	for (k = 0; k < BUF_COUNT; k++)
		if (e->mr[k] && ibv_dereg_mr(e->mr[k]))
			die("ibv_dereg_mr");
	if (e->dm && ibv_free_dm(e->dm))
		die("ibv_free_dm");
	if (ibv_destroy_cq(e->cq) || ibv_destroy_cq(e->recv_cq) ||
	    ibv_dealloc_pd(e->pd) || ibv_close_device(e->ctx))
		die("close");
	munmap(e->buf[BUF_PRIVATE], BENCH_BUF);
	munmap(e->buf[BUF_SHARED], BENCH_BUF);
}
