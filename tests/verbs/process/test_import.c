// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sharing a context: the exporter opens the device and registers memory. The
 * importer receives the descriptor cmd_fd by SCM_RIGHTS, and imports the
 * device, the PD, the MR and the DM.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../harness.h"

#define SIZE 65536

/* What the exporter sends to the importer, with the descriptor. */
struct offer {
	uint32_t pd, mr, dm, lkey, rkey;
	uint64_t addr;
};

static int sock; /* the importer's end */

static void write_all(int s, const void *p, size_t len)
{
	ck_assert_int_eq(send(s, p, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void read_all(int s, void *p, size_t len)
{
	ck_assert_int_eq(recv(s, p, len, MSG_WAITALL), (ssize_t)len);
}

/*
 * Pass the turn to the other process and wait until it passes it back: one
 * byte each way.
 */
static void turn(int s)
{
	char c = 0;

	write_all(s, &c, 1);
	read_all(s, &c, 1);
}

static void wait_turn(int s)
{
	char c;

	read_all(s, &c, 1);
}

static void give_turn(int s)
{
	char c = 0;

	write_all(s, &c, 1);
}

/* ------------------------------------------------------- the exporter */

struct exporter {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	char *buf;
	int sock;
	pid_t pid;
};

/*
 * Fork the importer, then open the device, register memory and allocate DM.
 */
static void start(struct exporter *e, int (*importer)(void *), void *arg)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	int s[2];

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s));
	sock = s[1];
	e->pid = spawn(importer, arg);
	close(s[1]);
	e->sock = s[0];
	e->ctx = open_device();
	e->pd = ibv_alloc_pd(e->ctx);
	ck_nonnull(e->pd);
	e->buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(e->buf != MAP_FAILED);
	memset(e->buf, 5, SIZE);
	e->mr = ibv_reg_mr(e->pd, e->buf, SIZE, ALL_ACCESS);
	ck_nonnull(e->mr);
	e->dm = ibv_alloc_dm(e->ctx, &attr);
	ck_nonnull(e->dm);
}

/* Send the descriptor and the handles to the importer. */
static void offer(struct exporter *e)
{
	struct offer o = {
		.pd = e->pd->handle,
		.mr = e->mr->handle,
		.dm = e->dm->handle,
		.lkey = e->mr->lkey,
		.rkey = e->mr->rkey,
		.addr = (uintptr_t)e->buf,
	};

	send_fd(e->sock, e->ctx->cmd_fd);
	write_all(e->sock, &o, sizeof(o));
}

/* Wait for the importer, then destroy the objects that are not NULL. */
static void finish(struct exporter *e)
{
	ck_assert_int_eq(reap_child(e->pid), 0);
	if (e->mr)
		ck_ok(ibv_dereg_mr(e->mr));
	if (e->dm)
		ck_ok(ibv_free_dm(e->dm));
	if (e->pd)
		ck_ok(ibv_dealloc_pd(e->pd));
	ck_ok(ibv_close_device(e->ctx));
	close(e->sock);
}

/* ------------------------------------------------------- the importer */

struct importer {
	struct offer o;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
};

static void import_all(struct importer *m)
{
	int fd = recv_fd(sock);

	read_all(sock, &m->o, sizeof(m->o));
	m->ctx = ibv_import_device(fd);
	ck_nonnull(m->ctx);
	m->pd = ibv_import_pd(m->ctx, m->o.pd);
	ck_nonnull(m->pd);
	m->mr = ibv_import_mr(m->pd, m->o.mr);
	ck_nonnull(m->mr);
	m->dm = ibv_import_dm(m->ctx, m->o.dm);
	ck_nonnull(m->dm);
}

/* Unimport the objects that are not NULL, and close the context. */
static void unimport_all(struct importer *m)
{
	if (m->dm)
		ibv_unimport_dm(m->dm);
	if (m->mr)
		ibv_unimport_mr(m->mr);
	if (m->pd)
		ibv_unimport_pd(m->pd);
	ck_ok(ibv_close_device(m->ctx));
}

static int look_at_fields(void *arg)
{
	struct importer m;
	char got[8];

	(void)arg;
	import_all(&m);
	ck_assert_uint_eq(m.pd->handle, m.o.pd);
	ck_assert_ptr_eq(m.pd->context, m.ctx);
	ck_assert_uint_eq(m.mr->handle, m.o.mr);
	ck_assert_ptr_eq(m.mr->addr, NULL);
	ck_assert_uint_eq(m.mr->length, SIZE);
	ck_assert_uint_eq(m.mr->lkey, m.o.lkey);
	ck_assert_uint_eq(m.mr->rkey, m.o.rkey);
	ck_assert_ptr_eq(m.mr->pd, m.pd);
	ck_assert_uint_eq(m.dm->handle, m.o.dm);
	ck_ok(ibv_memcpy_from_dm(got, m.dm, 8, 8));
	ck_assert_mem_eq(got, "exported", 8);
	ck_ok(ibv_memcpy_to_dm(m.dm, 16, "imported", 8));
	/* handles of no object */
	ck_errno(ibv_import_pd(m.ctx, 7777), ENOENT);
	ck_errno(ibv_import_pd(m.ctx, UINT32_MAX), ENOENT);
	ck_errno(ibv_import_mr(m.pd, m.o.mr + 1), ENOENT);
	ck_errno(ibv_import_mr(m.pd, 0), ENOENT);
	ck_errno(ibv_import_mr(m.pd, UINT32_MAX), ENOENT);
	ck_errno(ibv_import_dm(m.ctx, m.o.dm + 1), ENOENT);
	ck_errno(ibv_import_dm(m.ctx, UINT32_MAX), ENOENT);
	unimport_all(&m);
	return 0;
}

/*
 * Imported objects have the handles and keys of the exporter's, access the
 * same memory, and can be unimported without an effect on them.
 */
START_TEST(fields)
{
	struct exporter e;
	char got[8];

	start(&e, look_at_fields, NULL);
	ck_ok(ibv_memcpy_to_dm(e.dm, 8, "exported", 8));
	offer(&e);
	ck_assert_int_eq(reap_child(e.pid), 0);
	/* the objects still exist */
	ck_ok(ibv_memcpy_from_dm(got, e.dm, 16, 8));
	ck_assert_mem_eq(got, "imported", 8);
	ck_ok(ibv_dereg_mr(e.mr));
	ck_ok(ibv_free_dm(e.dm));
	ck_ok(ibv_dealloc_pd(e.pd));
	ck_ok(ibv_close_device(e.ctx));
}
END_TEST

/*
 * Importer: create a QP in the shared PD, connect it to one of a context of
 * its own, and access the exporter's memory from both sides.
 */
static int use_memory(void *arg)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr init = { .cap = o.cap, .qp_type = IBV_QPT_RC };
	struct addr to_peer, to_me;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct importer m;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct node peer;

	(void)arg;
	import_all(&m);
	cq = ibv_create_cq(m.ctx, 16, NULL, NULL, 0);
	ck_nonnull(cq);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(m.pd, &init);
	ck_nonnull(qp);
	node_open(&peer, NULL, MEM_HEAP, &o);
	to_peer = node_addr(&peer);
	to_me = to_peer;
	to_me.qpn = qp->qp_num;
	node_connect(&peer, &to_me);
	qp_to_init(qp, &o);
	qp_to_rtr(qp, &o, &to_peer);
	qp_to_rts(qp, &o);
	/* local access to the exporter's memory */
	sge = (struct ibv_sge){ m.o.addr, 100, m.mr->lkey };
	wr = (struct ibv_send_wr){ .wr_id = 1,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED };
	wr.wr.rdma.remote_addr = peer.base;
	wr.wr.rdma.rkey = peer.mr->rkey;
	ck_ok(post_wr(qp, &wr));
	expect_ok(cq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(node_all(&peer, 0, 100, 5));
	/* remote access to it */
	memset(peer.buf, 6, 4096);
	sge = node_sge(&peer, 0, 4096);
	wr.wr.rdma.remote_addr = m.o.addr + 4096;
	wr.wr.rdma.rkey = m.mr->rkey;
	ck_ok(post_wr(peer.qp, &wr));
	expect_ok(peer.scq, 1, IBV_WC_RDMA_WRITE);
	ck_ok(ibv_destroy_qp(qp));
	ck_ok(ibv_destroy_cq(cq));
	node_close(&peer);
	unimport_all(&m);
	return 0;
}

/* Return whether each process is in a PID namespace of its own. */
static bool apart(void)
{
	return getenv("URXE_TEST_PIDNS") != NULL;
}

/*
 * If peers are in other PID namespaces, only a thread of this process, the
 * bouncer, can copy its memory. It runs when a QP that other processes can
 * reach goes to RTR: create such a QP.
 */
static void be_reachable(struct exporter *e)
{
	struct ibv_cq *cq = ibv_create_cq(e->ctx, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_UD };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_pd *pd = ibv_alloc_pd(e->ctx);
	struct ibv_qp *qp;

	may_leak();
	ck_assert(cq && pd);
	qp = ibv_create_qp(pd, &init);
	ck_nonnull(qp);
	ck_ok(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_QKEY));
	ck_ok(qp_to(qp, IBV_QPS_RTR));
}

/*
 * Importer in a PID namespace of its own: fork until a child has the same PID
 * there as the exporter, @arg, has in its namespace. Run use_memory() in it.
 */
static int namesake_uses_memory(void *arg)
{
	pid_t want = *(pid_t *)arg, pid;
	int status;

	do {
		pid = fork();
		if (!pid)
			_exit(getpid() == want ? use_memory(NULL) : 0);
		status = pid < 0 ? -1 : reap_child(pid);
	} while (!status && pid < want);
	return pid == want ? status : 1;
}

/*
 * A QP in an imported PD uses the exporter's memory. With _i == 1 the PIDs of
 * exporter and importer are the same number in two namespaces.
 */
START_TEST(qp_in_imported_pd)
{
	pid_t self = getpid();
	struct exporter e;
	int i;

	if (_i && !apart())
		return;
	start(&e, _i ? namesake_uses_memory : use_memory, &self);
	if (apart())
		be_reachable(&e);
	offer(&e);
	ck_assert_int_eq(reap_child(e.pid), 0);
	for (i = 0; i < 4096; i++)
		ck_assert_int_eq(e.buf[4096 + i], 6);
	ck_assert_int_eq(e.buf[4095], 5);
	ck_assert_int_eq(e.buf[8192], 5);
	ck_ok(ibv_dereg_mr(e.mr));
	ck_ok(ibv_free_dm(e.dm));
	ck_ok(ibv_dealloc_pd(e.pd));
	ck_ok(ibv_close_device(e.ctx));
}
END_TEST

/* Importer: destroy the imported objects. */
static int destroy_all(void *arg)
{
	struct importer m;

	(void)arg;
	import_all(&m);
	ck_assert_int_eq(ibv_dealloc_pd(m.pd), EBUSY); /* the MR is in it */
	ck_ok(ibv_dereg_mr(m.mr));
	ck_ok(ibv_free_dm(m.dm));
	ck_ok(ibv_dealloc_pd(m.pd));
	m.mr = NULL;
	m.dm = NULL;
	m.pd = NULL;
	unimport_all(&m);
	return 0;
}

/*
 * Destroying an imported object destroys the object: the exporter's verbs
 * fail with ENOENT.
 */
START_TEST(destroyed_by_the_importer)
{
	struct ibv_device_attr attr;
	struct exporter e;

	start(&e, destroy_all, NULL);
	offer(&e);
	ck_assert_int_eq(reap_child(e.pid), 0);
	ck_assert_int_eq(ibv_dereg_mr(e.mr), ENOENT);
	ck_assert_int_eq(ibv_free_dm(e.dm), ENOENT);
	ck_assert_int_eq(ibv_dealloc_pd(e.pd), ENOENT);
	ck_errno(ibv_reg_mr(e.pd, e.buf, 8, 0), ENOENT);
	/* these free only the structs of this process */
	ibv_unimport_mr(e.mr);
	ibv_unimport_dm(e.dm);
	ibv_unimport_pd(e.pd);
	ck_ok(ibv_query_device(e.ctx, &attr));
	/* new objects may have the same handles */
	e.pd = ibv_alloc_pd(e.ctx);
	ck_nonnull(e.pd);
	ck_ok(ibv_dealloc_pd(e.pd));
	ck_ok(ibv_close_device(e.ctx));
}
END_TEST

/* Importer: free the DM. */
static int free_the_dm(void *arg)
{
	struct importer m;

	(void)arg;
	import_all(&m);
	ck_ok(ibv_free_dm(m.dm));
	m.dm = NULL;
	unimport_all(&m);
	return 0;
}

/*
 * The importer frees the DM, and a new one gets the same handle. The
 * exporter's old struct does not name the new DM: ENOENT.
 */
START_TEST(stale_dm_in_a_used_slot)
{
	const unsigned int access = IBV_ACCESS_ZERO_BASED;
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *other;
	char got[8];
	struct exporter e;

	start(&e, free_the_dm, NULL);
	offer(&e);
	ck_assert_int_eq(reap_child(e.pid), 0);
	other = ibv_alloc_dm(e.ctx, &attr);
	ck_nonnull(other);
	ck_assert_uint_eq(other->handle, e.dm->handle);
	ck_ok(ibv_memcpy_to_dm(other, 0, "another", 8));
	ck_assert_int_eq(ibv_memcpy_to_dm(e.dm, 0, "missing", 8), ENOENT);
	ck_assert_int_eq(ibv_memcpy_from_dm(got, e.dm, 0, 8), ENOENT);
	ck_errno(ibv_reg_dm_mr(e.pd, e.dm, 0, 8, access), ENOENT);
	ck_assert_int_eq(ibv_free_dm(e.dm), ENOENT);
	ibv_unimport_dm(e.dm);
	ck_ok(ibv_memcpy_from_dm(got, other, 0, 8));
	ck_assert_str_eq(got, "another");
	ck_ok(ibv_free_dm(other));
	ck_ok(ibv_dereg_mr(e.mr));
	ck_ok(ibv_dealloc_pd(e.pd));
	ck_ok(ibv_close_device(e.ctx));
}
END_TEST

/* Importer: use imported objects that the exporter has destroyed. */
static int outlive_objects(void *arg)
{
	struct importer m;
	char buf[64];

	(void)arg;
	import_all(&m);
	turn(sock);
	ck_assert_int_eq(ibv_dereg_mr(m.mr), ENOENT);
	ck_assert_int_eq(ibv_free_dm(m.dm), ENOENT);
	ck_assert_int_eq(ibv_dealloc_pd(m.pd), ENOENT);
	ck_errno(ibv_reg_mr(m.pd, buf, 64, 0), ENOENT);
	ck_errno(ibv_import_mr(m.pd, m.o.mr), ENOENT);
	unimport_all(&m);
	give_turn(sock);
	return 0;
}

/*
 * If the exporter destroys the objects, the importer's verbs fail with
 * ENOENT, and it can still unimport them.
 */
START_TEST(destroyed_by_the_exporter)
{
	struct exporter e;

	start(&e, outlive_objects, NULL);
	offer(&e);
	wait_turn(e.sock);
	ck_ok(ibv_dereg_mr(e.mr));
	ck_ok(ibv_free_dm(e.dm));
	ck_ok(ibv_dealloc_pd(e.pd));
	give_turn(e.sock);
	wait_turn(e.sock);
	e.mr = NULL;
	e.dm = NULL;
	e.pd = NULL;
	finish(&e);
}
END_TEST

/*
 * Importer: use and destroy the objects when the exporter has closed the
 * context.
 */
static int outlive_opener(void *arg)
{
	char buf[64] = "the importer's own", got[8];
	struct ibv_mr *mr;
	struct importer m;

	(void)arg;
	import_all(&m);
	turn(sock);
	ck_ok(ibv_memcpy_from_dm(got, m.dm, 8, 8));
	ck_assert_mem_eq(got, "exported", 8);
	mr = ibv_reg_mr(m.pd, buf, 64, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dereg_mr(m.mr));
	ck_ok(ibv_free_dm(m.dm));
	ck_ok(ibv_dealloc_pd(m.pd));
	ck_ok(ibv_close_device(m.ctx));
	return 0;
}

/*
 * If the process that opened the context closes it first, the context and its
 * objects stay in the importer.
 */
START_TEST(opener_closes_first)
{
	struct exporter e;

	start(&e, outlive_opener, NULL);
	ck_ok(ibv_memcpy_to_dm(e.dm, 8, "exported", 8));
	offer(&e);
	wait_turn(e.sock);
	/* the objects exist until the last process closes the context */
	ibv_unimport_mr(e.mr);
	ibv_unimport_dm(e.dm);
	ibv_unimport_pd(e.pd);
	ck_ok(ibv_close_device(e.ctx));
	give_turn(e.sock);
	ck_assert_int_eq(reap_child(e.pid), 0);
}
END_TEST

/* Importer: import everything and wait for SIGKILL. */
static int be_killed(void *arg)
{
	struct importer m;

	(void)arg;
	import_all(&m);
	give_turn(sock);
	pause();
	return 1;
}

/* If the importer is killed, the objects stay usable for the exporter. */
START_TEST(importer_killed)
{
	struct ibv_context *ctx;
	struct exporter e;
	char got[8];

	start(&e, be_killed, NULL);
	ck_ok(ibv_memcpy_to_dm(e.dm, 8, "exported", 8));
	offer(&e);
	wait_turn(e.sock);
	ck_ok(kill(e.pid, SIGKILL));
	ck_assert_int_eq(reap_child(e.pid), -SIGKILL);
	ctx = open_device(); /* reaps dead processes */
	ck_ok(ibv_close_device(ctx));
	ck_ok(ibv_memcpy_from_dm(got, e.dm, 8, 8));
	ck_assert_mem_eq(got, "exported", 8);
	ck_ok(ibv_dereg_mr(e.mr));
	ck_ok(ibv_free_dm(e.dm));
	ck_ok(ibv_dealloc_pd(e.pd));
	ck_ok(ibv_close_device(e.ctx));
}
END_TEST

/*
 * Import of a duplicate of cmd_fd into the same process. An MR can only be
 * imported into its own PD; an imported MR cannot be reregistered.
 */
START_TEST(same_process)
{
	struct ibv_context *ctx = open_device(), *second;
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *pd2, *other;
	char buf[4096];
	struct ibv_mr *mr, *mr2;

	mr = ibv_reg_mr(pd, buf, sizeof(buf), ALL_ACCESS);
	ck_nonnull(mr);
	second = ibv_import_device(dup(ctx->cmd_fd));
	ck_nonnull(second);
	pd2 = ibv_import_pd(second, pd->handle);
	ck_nonnull(pd2);
	other = ibv_alloc_pd(second);
	ck_nonnull(other);
	ck_assert_uint_ne(other->handle, pd->handle);
	ck_errno(ibv_import_mr(other, mr->handle), EINVAL);
	mr2 = ibv_import_mr(pd2, mr->handle);
	ck_nonnull(mr2);
	ck_assert_int_eq(
		ibv_rereg_mr(mr2, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	ibv_unimport_mr(mr2);
	ibv_unimport_pd(pd2);
	ck_ok(ibv_dealloc_pd(other));
	ck_ok(ibv_close_device(second));
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

int main(void)
{
	Suite *s = suite("import");

	add(s, fields);
	add_loop(s, qp_in_imported_pd, 2);
	add(s, destroyed_by_the_importer);
	add(s, stale_dm_in_a_used_slot);
	add(s, destroyed_by_the_exporter);
	add(s, opener_closes_first);
	add(s, importer_killed);
	add(s, same_process);
	return run(s);
}
