// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Objects destroyed or changed while outstanding WRs use them; unmapped MRs
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

static void mr_of_receive(void)
{
	receive(4096, 64);
	if (!wrong) {
		request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
		done(2);
	}
	need(!ibv_dereg_mr(my_mr));
	my_mr = NULL;
}

static struct ibv_xrcd *xrcd_open(void)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(ctx, &domain);

	need(xrcd);
	return xrcd;
}

static struct ibv_srq *xrc_srq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = rcq,
	};
	struct ibv_srq *made = ibv_create_srq_ex(ctx, &init);

	need(made);
	return made;
}

/* Create a target QP of the XRC domain. */
static struct ibv_qp *xrc_target(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &init);

	need(qp);
	qp_receives(qp, a->qp_num);
	return qp;
}

/* The same with an XRC SRQ, which any target QP of its domain may use */
static void mr_of_xrc_receive(void)
{
	struct ibv_xrcd *xrcd = xrcd_open();
	struct ibv_qp *qp = xrc_target(xrcd);

	srq = xrc_srq(xrcd);
	receive(0, 64);
	if (!wrong)
		need(!ibv_destroy_qp(qp));
	need(!ibv_dereg_mr(my_mr));
	my_mr = NULL;
	if (wrong)
		need(!ibv_destroy_qp(qp));
	need(!ibv_destroy_srq(srq) && !ibv_close_xrcd(xrcd));
	srq = NULL;
}

/*
 * An MR is changed while another thread destroys QPs that use it.  The
 * referee must not access destroyed QPs; malloc.perturb makes such accesses
 * fail.
 */
#define RACED 80
static struct ibv_qp *raced[RACED];

static void *raced_destroy(void *done_flag)
{
	int i;

	for (i = 0; i < RACED; i++)
		need(!ibv_destroy_qp(raced[i]));
	__atomic_store_n((bool *)done_flag, true, __ATOMIC_RELEASE);
	return NULL;
}

static void mr_of_other_threads(void)
{
	struct ibv_mr *other = ibv_reg_mr(pd, mine, SIZE, LOCAL);
	struct ibv_mr *mr = wrong ? my_mr : other;
	bool is_done = false;
	pthread_t thread;
	int i;

	need(other && !ibv_resize_cq(rcq, RACED));
	for (i = 0; i < RACED; i++) {
		b = raced[i] = qp_make(IBV_QPT_RC);
		num_qps--;
		qp_connect(b, b->qp_num);
		receive((size_t)i * 64, 64);
	}
	need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   LOCAL));
	need(!pthread_create(&thread, NULL, raced_destroy, &is_done));
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE))
		need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
				   0, LOCAL));
	pthread_join(thread, NULL);
	need(!ibv_dereg_mr(other));
}

/* The same with XRC SRQs, which belong to no QP */
static struct ibv_srq *raced_srq[RACED];

static void *raced_destroy_srqs(void *done_flag)
{
	int i;

	for (i = 0; i < RACED; i++)
		need(!ibv_destroy_srq(raced_srq[i]));
	__atomic_store_n((bool *)done_flag, true, __ATOMIC_RELEASE);
	return NULL;
}

static void mr_of_other_threads_srq(void)
{
	struct ibv_mr *other = ibv_reg_mr(pd, mine, SIZE, LOCAL);
	struct ibv_mr *mr = wrong ? my_mr : other;
	struct ibv_xrcd *xrcd = xrcd_open();
	struct ibv_qp *target = xrc_target(xrcd);
	bool is_done = false;
	pthread_t thread;
	int i;

	need(other && !ibv_resize_cq(rcq, RACED));
	for (i = 0; i < RACED; i++) {
		srq = raced_srq[i] = xrc_srq(xrcd);
		receive((size_t)i * 64, 64);
	}
	srq = NULL;
	need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   LOCAL));
	need(!pthread_create(&thread, NULL, raced_destroy_srqs, &is_done));
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE))
		need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
				   0, LOCAL));
	pthread_join(thread, NULL);
	need(!ibv_dereg_mr(other) && !ibv_destroy_qp(target));
	need(!ibv_close_xrcd(xrcd));
}

static void mr_of_send(void)
{
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	need(!ibv_dereg_mr(my_mr));
	my_mr = NULL;
	if (wrong)
		done(1);
}

static void mr_on_answer(void)
{
	struct ibv_mr *was = my_mr;
	struct ibv_sge sge = sge_of(8192, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	receive(4096, 64);
	need(!ibv_post_recv(a, &wr, &bad));
	my_mr = ibv_reg_mr(pd, mine, SIZE, LOCAL);
	need(my_mr);
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	received(1);
	if (!wrong)
		done_of(cq, NULL, 1);
	sge = sge_of(512, 64);
	sge.lkey = was->lkey;
	need(!ibv_post_send(
		b,
		&(struct ibv_send_wr){ .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED },
		&(struct ibv_send_wr *){ NULL }));
	received(1);
	need(!ibv_dereg_mr(my_mr));
	my_mr = was;
	done_of(cq, NULL, wrong ? 2 : 1);
}

static void mr_moved(void)
{
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	if (!wrong)
		done(1);
	need(!ibv_rereg_mr(my_mr, IBV_REREG_MR_CHANGE_TRANSLATION, pd, theirs,
			   SIZE, 0));
	if (wrong)
		done(1);
}

static void mw_of_bind(void)
{
	struct ibv_mr *mr =
		ibv_reg_mr(pd, theirs, SIZE, REMOTE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = { .wr_id = 3,
					.opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };

	need(mr && mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)theirs;
	wr.bind_mw.bind_info.length = 64;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	need(!ibv_post_send(a, &wr, &bad));
	if (!wrong)
		done(1);
	need(!ibv_dealloc_mw(mw));
	if (wrong)
		done(1);
	need(!ibv_dereg_mr(mr));
}

static void ah_of_send(void)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .grh.dgid = gid,
				    .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	struct ibv_qp *ud = qp_make(IBV_QPT_UD);
	struct ibv_sge sge = sge_of(0, 64);
	struct ibv_send_wr *bad, wr = { .wr_id = 4,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = IBV_SEND_SIGNALED };

	need(ah);
	qp_connect(ud, 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = ud->qp_num;
	wr.wr.ud.remote_qkey = 1;
	need(!ibv_post_send(ud, &wr, &bad));
	if (!wrong)
		done(1);
	need(!ibv_destroy_ah(ah));
	if (wrong)
		done(1);
}

/* An MR whose deregistration or change was refused remains valid. */
static void refused_to_end(void)
{
	struct ibv_mr *was = my_mr;
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW,
					.send_flags = IBV_SEND_SIGNALED };

	my_mr = ibv_reg_mr(pd, mine, SIZE, LOCAL | IBV_ACCESS_MW_BIND);
	need(my_mr && mw);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = my_mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)mine + 4096;
	wr.bind_mw.bind_info.length = 64;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	need(!ibv_post_send(a, &wr, &bad));
	done(1);
	request(a, IBV_WR_RDMA_WRITE, 0, 64, 0, IBV_SEND_SIGNALED);
	need(ibv_dereg_mr(my_mr) == EBUSY);
	need(ibv_rereg_mr(my_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			  IBV_ACCESS_REMOTE_WRITE));
	done(1);
	need(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(my_mr));
	my_mr = was;
}

/* ------------------------------------------------------- cases */

/* ------------------------------------------------------- memory of MRs */

static struct ibv_mr *page_mr(char **page, int flags, int access)
{
	struct ibv_mr *mr;

	*page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS,
		     -1, 0);
	need(*page != MAP_FAILED);
	mr = ibv_reg_mr(pd, *page, 4096, access);
	need(mr);
	return mr;
}

/* The mistake is to do this before the MR is deregistered. */
static void mr_unmapped(int (*take)(char *page))
{
	char *page;
	struct ibv_mr *mr = page_mr(&page, MAP_PRIVATE, LOCAL);

	if (!wrong)
		need(!ibv_dereg_mr(mr));
	need(!take(page));
	if (wrong)
		need(!ibv_dereg_mr(mr));
}

static int take_munmap(char *page)
{
	return munmap(page, 4096);
}

static int take_mremap(char *page)
{
	return mremap(page, 4096, 8192, MREMAP_MAYMOVE | MREMAP_FIXED,
		      mine + 8192) == MAP_FAILED;
}

static int take_mmap(char *page)
{
	return mmap(page, 4096, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == MAP_FAILED;
}

static int take_madvise(char *page)
{
	return madvise(page, 4096, MADV_DONTNEED);
}

static void mr_munmap(void)
{
	mr_unmapped(take_munmap);
}

static void mr_mremap(void)
{
	need(!ibv_dereg_mr(my_mr)); /* its memory was replaced */
	my_mr = NULL;
	mr_unmapped(take_mremap);
}

static void mr_mmap(void)
{
	mr_unmapped(take_mmap);
}

static void mr_madvise(void)
{
	mr_unmapped(take_madvise);
}

/* The MR was moved; its old memory may be unmapped. */
static void mr_unmapped_rereg(void)
{
	char *page;
	struct ibv_mr *mr = page_mr(&page, MAP_PRIVATE, LOCAL);

	need(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mine,
			   4096, 0));
	need(!munmap(page, 4096));
	if (wrong)
		need(!madvise(mine, 4096, MADV_DONTNEED));
	need(!ibv_dereg_mr(mr));
}

/* Calls that unmap nothing of the MR; memory of an on-demand MR */
static void mr_not_unmapped(void)
{
	char *shared, *demand, *next;
	struct ibv_mr *s = page_mr(&shared, MAP_SHARED, LOCAL);
	struct ibv_mr *d =
		page_mr(&demand, MAP_PRIVATE, LOCAL | IBV_ACCESS_ON_DEMAND);
	pid_t pid;

	need(!madvise(shared, 4096, MADV_DONTNEED));
	need(!munmap(demand, 4096));
	next = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(next != MAP_FAILED && !munmap(next, 4096));
	need(munmap(shared + 1, 4096) < 0);
	pid = fork();
	if (!pid)
		_exit(munmap(shared, 4096) || munmap(mine, SIZE));
	need(reap_child(pid) == 0);
	need(!ibv_dereg_mr(s) && !ibv_dereg_mr(d));
}

static void forked(void)
{
	pid_t pid;

	if (!wrong)
		need(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
	pid = fork();
	if (!pid)
		_exit(0);
	need(reap_child(pid) == 0);
}

/* The log line of a dropped datagram is not a refused verb. */
static void refused_by_name(void)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .grh.dgid = gid,
				    .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);
	struct ibv_qp *ud = qp_make(IBV_QPT_UD);
	struct ibv_send_wr *bad,
		wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };

	need(ah);
	qp_connect(ud, 0);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = ud->qp_num;
	wr.wr.ud.remote_qkey = 1;
	need(!ibv_post_send(ud, &wr, &bad));
	done(1);
	need(!wrong || ibv_attach_mcast(a, &gid, 0) == EINVAL);
	need(!ibv_destroy_ah(ah));
}

/* The call fails at once; it does not wait for an event. */
static void destroy_busy_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8,
						    .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_async_event event;

	srq = ibv_create_srq(pd, &init);
	need(srq);
	pair_make(&a, &b);
	receive(4096, 64);
	need(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	request(a, IBV_WR_SEND, 0, 64, 0, IBV_SEND_SIGNALED);
	done(2);
	need(!ibv_get_async_event(ctx, &event));
	need(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
	need(ibv_destroy_srq(srq) == EBUSY);
	ibv_ack_async_event(&event);
}

/*
 * Lock of an allocator, which its fork handlers take, as those of tcmalloc do
 */
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static atomic_int heap_taken, heap_wanted;

static void heap_lock(void)
{
	atomic_store(&heap_wanted, 1);
	pthread_mutex_lock(&heap);
}

static void heap_unlock(void)
{
	pthread_mutex_unlock(&heap);
}

/* The fork handlers of the referee are newer, and run first. */
static void watch_forks(void)
{
	need(!pthread_atfork(heap_lock, heap_unlock, heap_unlock));
}

static void *unmap_in_fork(void *page)
{
	pthread_mutex_lock(&heap);
	atomic_store(&heap_taken, 1);
	while (!atomic_load(&heap_wanted))
		sched_yield();
	need(!munmap(page, 4096));
	pthread_mutex_unlock(&heap);
	return NULL;
}

/* A thread that holds the lock unmaps memory while another thread forks. */
static void forked_heap(void)
{
	char *page;
	struct ibv_mr *mr = page_mr(&page, MAP_PRIVATE, LOCAL);
	pthread_t other;
	pid_t pid;

	need(!ibv_dereg_mr(mr));
	need(!pthread_create(&other, NULL, unmap_in_fork, page));
	while (!atomic_load(&heap_taken))
		sched_yield();
	alarm(60);
	pid = fork();
	if (!pid)
		_exit(munmap(mine, SIZE));
	need(reap_child(pid) == 0 && !pthread_join(other, NULL));
}

static const struct device_case cases[] = {
	DEVICE_CASE("receive-without-mr+dereg", mr_of_receive),
	DEVICE_CASE("receive-without-mr+xrc", mr_of_xrc_receive),
	DEVICE_CASE("receive-without-mr+threads", mr_of_other_threads),
	DEVICE_CASE("receive-without-mr+threads_srq", mr_of_other_threads_srq),
	DEVICE_CASE("mr-in-flight+dereg", mr_of_send),
	DEVICE_CASE("mr-in-flight+rereg", mr_moved),
	DEVICE_CASE("ended-on-answer+dereg", mr_on_answer),
	DEVICE_CASE("mw-in-flight+dealloc", mw_of_bind),
	DEVICE_CASE("ah-in-flight+destroy", ah_of_send),
	DEVICE_CASE("mr-unmapped+munmap", mr_munmap),
	DEVICE_CASE("mr-unmapped+mremap", mr_mremap),
	DEVICE_CASE("mr-unmapped+mmap", mr_mmap),
	DEVICE_CASE("mr-unmapped+madvise", mr_madvise),
	DEVICE_CASE("mr-unmapped+rereg", mr_unmapped_rereg),
	DEVICE_CASE("none+not_unmapped", mr_not_unmapped),
	DEVICE_CASE("fork-unprepared", forked),
	DEVICE_CASE("verb-refused+name", refused_by_name),
	DEVICE_CASE("none+destroy_busy_srq", destroy_busy_srq),
	{ "none+forked_heap", forked_heap, watch_forks },
	DEVICE_CASE("none+refused_to_end", refused_to_end),
	DEVICE_CASE(NULL, NULL),
};

int main(int argc, char **argv)
{
	return device_main(argc, argv, cases);
}
