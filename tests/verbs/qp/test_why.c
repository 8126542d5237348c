// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * URXE_LOG=1: the messages that explain frequent mistakes, with the values
 * that are wrong.  The test reads what the provider writes to stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness.h"
#include "shared/layout.h"

static FILE *said;

/* Redirect stderr to a temporary file and enable the log. */
static void listen(void)
{
	said = tmpfile();
	ck_nonnull(said);
	ck_assert_int_eq(dup2(fileno(said), STDERR_FILENO), STDERR_FILENO);
	setenv("URXE_LOG", "1", 1);
}

/* Expect @text in what was logged since the last call. */
static void expect_said(const char *text)
{
	static off_t from;
	char buf[8192];
	ssize_t n = pread(fileno(said), buf, sizeof(buf) - 1, from);

	ck_assert_int_ge(n, 0);
	buf[n] = 0;
	from += n;
	ck_assert_msg(strstr(buf, text), "not \"%s\" but: %s", text, buf);
}

/*
 * Wait until @text is in the log, which may be written by another thread or
 * process.
 */
static void expect_said_somewhen(const char *text)
{
	const double end = now_ms() + WAIT_MS;
	char buf[8192];
	ssize_t n;

	do {
		n = pread(fileno(said), buf, sizeof(buf) - 1, 0);
		ck_assert_int_ge(n, 0);
		buf[n] = 0;
		if (strstr(buf, text))
			return;
		sleep_ms(1);
	} while (now_ms() < end);
	ck_abort_msg("not \"%s\" but: %s", text, buf);
}

/*
 * WRs that ibv_post_send and ibv_post_recv refuse, a missing state
 * transition, and objects that are busy.
 */
START_TEST(refused_by_the_verb)
{
	struct ibv_recv_wr recv = { .num_sge = 0 }, *bad_recv;
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct duo d;

	listen();
	o.cap.max_inline_data = 16;
	duo_open_unconnected(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 2048);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	expect_said("not yet in RTS");
	ck_assert_int_eq(ibv_post_recv(d.a.qp, &recv, &bad_recv), EINVAL);
	expect_said("not yet in INIT");
	ck_assert_int_eq(qp_to(d.a.qp, IBV_QPS_RTS), EINVAL);
	expect_said("invalid transition from RESET to RTS");
	duo_connect(&d);
	wr.opcode = (enum ibv_wr_opcode)IBV_WR_TSO;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	expect_said("opcode");
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_INLINE;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	expect_said("max_inline_data");
	wr.send_flags = 0;
	wr.num_sge = 1000;
	ck_assert_int_eq(post_wr(d.a.qp, &wr), EINVAL);
	expect_said("max_send_sge");
	recv.num_sge = 1000;
	ck_assert_int_eq(ibv_post_recv(d.a.qp, &recv, &bad_recv), EINVAL);
	expect_said("max_sge");
	ck_assert_int_eq(ibv_dealloc_pd(d.a.pd), EBUSY);
	expect_said("ibv_dealloc_pd");
	ck_assert_int_eq(ibv_destroy_cq(d.a.scq), EBUSY);
	expect_said("ibv_destroy_cq");
	duo_close(&d);
}
END_TEST

/* An address without GRH, in ibv_create_ah and in ibv_modify_qp. */
START_TEST(address_without_grh)
{
	struct ibv_ah_attr ah = { .port_num = 1, .dlid = 1 };
	struct opts o = default_opts();
	struct ibv_qp_attr attr;
	struct addr peer;
	struct node n;
	int mask;

	listen();
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_errno(ibv_create_ah(n.pd, &ah), EINVAL);
	expect_said("RoCE needs a GRH: set is_global to 1");
	peer = node_addr(&n);
	qp_to_init(n.qp, &o);
	mask = attr_rtr(&attr, &o, &peer);
	attr.ah_attr.is_global = 0;
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, mask), EINVAL);
	expect_said("RoCE needs a GRH: set is_global to 1");
	node_close(&n);
}
END_TEST

/* An sgid_index whose GID table entry is empty. */
START_TEST(no_such_gid)
{
	struct opts o = default_opts();
	struct ibv_qp_attr attr;
	struct addr peer;
	struct node n;
	int mask;

	listen();
	node_open(&n, NULL, MEM_HEAP, &o);
	peer = node_addr(&n);
	qp_to_init(n.qp, &o);
	mask = attr_rtr(&attr, &o, &peer);
	attr.ah_attr.grh.sgid_index = URXE_MAX_GID - 1;
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, mask), EINVAL);
	expect_said("sgid_index 255 has no GID");
	node_close(&n);
}
END_TEST

/*
 * GIDs of different RoCE versions: sgid_index 0 of one QP and 1 of the other
 * are the same address.
 */
START_TEST(roce_version_mismatch)
{
	struct opts o = default_opts();
	struct ibv_qp_attr attr;
	struct duo d;
	int mask;

	listen();
	o.timeout = 10;
	o.retry_cnt = 1;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
	qp_to_init(d.a.qp, &o);
	mask = attr_rtr(&attr, &o, &d.at_b);
	attr.ah_attr.grh.sgid_index = 1;
	ck_ok(ibv_modify_qp(d.a.qp, &attr, mask));
	qp_to_rts(d.a.qp, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	expect_said("is a GID of RoCE v2, but QP");
	duo_close(&d);
}
END_TEST

/* Post @wr, expect @status and the message @why, and create new QPs. */
static void fails(struct duo *d, struct ibv_send_wr *wr,
		  enum ibv_wc_status status, const char *why)
{
	ck_ok(post_wr(d->a.qp, wr));
	expect(d->a.scq, wr->wr_id, status);
	expect_said(why);
	duo_renew(d);
}

/* An invalid rkey, and a SEND without a receive. */
START_TEST(refused_by_the_responder)
{
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct duo d;

	listen();
	o.rnr_retry = 0;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 8);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	wr.wr.rdma.rkey ^= 1;
	fails(&d, &wr, IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR");
	ck_ok(post(&d, IBV_WR_SEND, 2, 0, 8, 0, 0));
	expect(d.a.scq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_said("RNR");
	duo_close(&d);
}
END_TEST

/*
 * WRITE 8 bytes to @addr by @rkey, which fails with message @why; create new
 * QPs.
 */
static void write_by_key(struct duo *d, uint32_t rkey, uint64_t addr,
			 const char *why)
{
	struct ibv_sge sge = node_sge(&d->a, 0, 8);
	struct ibv_send_wr wr = rdma_wr(d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = addr;
	fails(d, &wr, IBV_WC_REM_ACCESS_ERR, why);
}

/*
 * The message names the check that a key failed, and the two values that
 * differ.
 */
START_TEST(key_checks)
{
	struct opts o = default_opts();
	struct ibv_mr *mr, *next;
	struct ibv_pd *pd;
	uint64_t base;
	char why[160];
	struct duo d;

	listen();
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	base = (uintptr_t)d.b.buf;
	snprintf(
		why, sizeof(why),
		"the key covers 0x%llx to 0x%llx, but the access needs 0x%llx to 0x%llx",
		(unsigned long long)base, (unsigned long long)(base + o.size),
		(unsigned long long)(base + o.size - 7),
		(unsigned long long)(base + o.size + 1));
	write_by_key(&d, d.at_b.rkey, base + o.size - 7, why);
	mr = ibv_reg_mr(d.b.pd, d.b.buf, 64,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	write_by_key(
		&d, mr->rkey, base,
		"the key allows LOCAL_WRITE and REMOTE_READ, but REMOTE_WRITE is required");
	write_by_key(&d, mr->rkey + (1u << 8), base, "no such key");
	write_by_key(&d, mr->rkey ^ (1u << 31), base,
		     "not a key of device context");
	pd = ibv_alloc_pd(d.b.ctx);
	next = ibv_reg_mr(pd, d.b.buf, 64, ALL_ACCESS);
	snprintf(why, sizeof(why),
		 "the key is of PD %u, but the QP is of PD %u", pd->handle,
		 d.b.pd->handle);
	write_by_key(&d, next->rkey, base, why);
	ck_ok(ibv_dereg_mr(next));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_dereg_mr(mr));
	duo_close(&d);
}
END_TEST

/*
 * Keys of a disabled and of a deregistered MR, and of a memory window that is
 * not bound, bound with another rkey, or deallocated.
 */
START_TEST(invalidated_keys)
{
	struct opts o = default_opts();
	struct ibv_send_wr bind = { .opcode = IBV_WR_BIND_MW,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t first, key;
	uint64_t base;
	char why[160];
	struct duo d;

	listen();
	o.mr_access |= IBV_ACCESS_MW_BIND;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	base = (uintptr_t)d.b.buf;
	mr = ibv_reg_mr(d.b.pd, d.b.buf, 64, ALL_ACCESS);
	key = mr->rkey;
	ck_assert_int_ne(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      (void *)4096, 64, 0),
			 0);
	write_by_key(&d, key, base, "the MR is disabled");
	ck_ok(ibv_dereg_mr(mr));
	write_by_key(&d, key, base, "the MR was deregistered");
	mw = ibv_alloc_mw(d.b.pd, IBV_MW_TYPE_2);
	ck_nonnull(mw);
	first = mw->rkey;
	write_by_key(&d, first, base,
		     "the memory window at this key index is not bound");
	bind.bind_mw.mw = mw;
	bind.bind_mw.rkey = ibv_inc_rkey(first);
	bind.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ d.b.mr, base, 64,
					   IBV_ACCESS_REMOTE_WRITE };
	ck_ok(ibv_post_send(d.b.qp, &bind, &bad));
	wait_wc(d.b.scq);
	snprintf(
		why, sizeof(why),
		"the memory window at this key index is bound with another rkey, 0x%x",
		bind.bind_mw.rkey);
	write_by_key(&d, first, base, why);
	ck_ok(ibv_dealloc_mw(mw));
	write_by_key(&d, bind.bind_mw.rkey, base,
		     "the memory window deallocated");
	duo_close(&d);
}
END_TEST

/* An rkey whose table entry is used by a later key. */
START_TEST(reused_key_entry)
{
	struct opts o = default_opts();
	struct ibv_mr *mr;
	uint32_t first;
	unsigned int i;
	char why[160];
	struct duo d;

	listen();
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	mr = ibv_reg_mr(d.b.pd, d.b.buf, 64, ALL_ACCESS);
	ck_nonnull(mr);
	first = mr->rkey;
	/* an entry is reused after all other entries were used */
	for (i = 0; mr->rkey == first || mr->rkey >> 8 != first >> 8; i++) {
		ck_ok(ibv_dereg_mr(mr));
		mr = ibv_reg_mr(d.b.pd, d.b.buf, 64, ALL_ACCESS);
		ck_nonnull(mr);
		ck_assert_uint_lt(i, URXE_MAX_KEY + 2);
	}
	snprintf(
		why, sizeof(why),
		"deregistered or never issued; this key index is in use by key 0x%x",
		mr->rkey);
	write_by_key(&d, first, (uintptr_t)d.b.buf, why);
	ck_ok(ibv_dereg_mr(mr));
	duo_close(&d);
}
END_TEST

/* An atomic with max_rd_atomic 0, a misaligned address, or a wrong length. */
START_TEST(atomics)
{
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct duo d;

	listen();
	o.max_rd_atomic = 0;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_atomic(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 1, 0));
	expect(d.a.scq, 1, IBV_WC_LOC_QP_OP_ERR);
	expect_said("max_rd_atomic is 0");
	duo_close(&d);
	o.max_rd_atomic = 1;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_atomic(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 4, 1, 0));
	expect(d.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	expect_said("multiple of 8");
	duo_renew(&d);
	sge = node_sge(&d.a, 0, 4);
	wr = rdma_wr(&d, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, &sge, 1, 0);
	wr.wr.atomic.remote_addr = d.at_b.base;
	wr.wr.atomic.rkey = d.at_b.rkey;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 3, IBV_WC_LOC_LEN_ERR);
	expect_said("the SGEs of an atomic have 4 bytes");
	duo_close(&d);
}
END_TEST

/*
 * An invalid range of the requester's buffer and of the responder's receive.
 */
START_TEST(local_keys)
{
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct duo d;
	char why[160];

	listen();
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 8);
	sge.addr += o.size;
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	snprintf(why, sizeof(why),
		 "lkey of a send 0x%x used on QP 0x%x for 8 bytes", sge.lkey,
		 d.a.qp->qp_num);
	expect_said(why);
	duo_renew(&d);
	b_recv(&d, 2, o.size - 4, 8);
	ck_ok(post(&d, IBV_WR_SEND, 3, 0, 8, 0, 0));
	expect(d.a.scq, 3, IBV_WC_REM_OP_ERR);
	snprintf(why, sizeof(why),
		 "lkey of a receive 0x%x used on QP 0x%x for 8 bytes",
		 d.b.mr->lkey, d.b.qp->qp_num);
	expect_said(why);
	duo_close(&d);
}
END_TEST

/* Bind @mw to @mr, which fails with message @why; create new QPs. */
static void bind_refused(struct duo *d, struct ibv_mw *mw, struct ibv_mr *mr,
			 const char *why)
{
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_BIND_MW };

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr,
		.addr = d->a.base,
		.length = 8,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	fails(d, &wr, IBV_WC_MW_BIND_ERR, why);
}

/*
 * A bind of a window of another context or PD, or to an MR of another PD or
 * that does not exist.
 */
START_TEST(window_binds)
{
	struct opts o = default_opts();
	struct ibv_mr *mr, gone;
	struct ibv_pd *pd;
	struct ibv_mw *mw;
	char why[160];
	struct duo d;

	listen();
	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	mw = ibv_alloc_mw(d.b.pd, IBV_MW_TYPE_2);
	ck_nonnull(mw);
	bind_refused(&d, mw, d.a.mr, "cannot be bound");
	ck_ok(ibv_dealloc_mw(mw));
	pd = ibv_alloc_pd(d.a.ctx);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	ck_nonnull(mw);
	snprintf(why, sizeof(why),
		 "the window is of PD %u, but the QP is of PD %u", pd->handle,
		 d.a.pd->handle);
	bind_refused(&d, mw, d.a.mr, why);
	ck_ok(ibv_dealloc_mw(mw));
	mw = ibv_alloc_mw(d.a.pd, IBV_MW_TYPE_2);
	mr = ibv_reg_mr(pd, d.a.buf, 64,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	ck_nonnull(mr);
	snprintf(why, sizeof(why),
		 "the MR is of PD %u, but the window is of PD %u", pd->handle,
		 d.a.pd->handle);
	bind_refused(&d, mw, mr, why);
	gone = *mr;
	ck_ok(ibv_dereg_mr(mr));
	snprintf(why, sizeof(why), "no MR has lkey 0x%x", gone.lkey);
	bind_refused(&d, mw, &gone, why);
	ck_ok(ibv_dealloc_mw(mw));
	ck_ok(ibv_dealloc_pd(pd));
	duo_close(&d);
}
END_TEST

/* sq_psn of the requester is not rq_psn of the responder. */
START_TEST(psn_mismatch)
{
	struct opts o = default_opts();
	char why[160];
	struct duo d;

	listen();
	o.timeout = 10;
	o.retry_cnt = 1;
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(qp_to(d.a.qp, IBV_QPS_RESET));
	o.psn++;
	qp_to_init(d.a.qp, &o);
	qp_to_rtr(d.a.qp, &o, &d.at_b);
	qp_to_rts(d.a.qp, &o);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	snprintf(
		why, sizeof(why),
		"failed with RETRY_EXC_ERR (12): PSN 0x%x is not the PSN 0x%x that QP 0x%x expects",
		o.psn, o.psn - 1, d.b.qp->qp_num);
	expect_said(why);
	duo_close(&d);
}
END_TEST

/*
 * ibv_modify_qp, ibv_create_qp and ibv_create_cq: the message names the
 * attribute and its range, or the missing mask bits.
 */
START_TEST(attribute_errors)
{
	struct opts o = default_opts();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr;
	struct addr peer;
	struct node n;
	int mask;

	listen();
	node_open(&n, NULL, MEM_HEAP, &o);
	peer = node_addr(&n);
	qp_to_init(n.qp, &o);
	mask = attr_rtr(&attr, &o, &peer);
	attr.min_rnr_timer = 32;
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, mask), EINVAL);
	expect_said("min_rnr_timer is 32, and must be 0 to 31");
	attr.min_rnr_timer = 1;
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, mask & ~IBV_QP_RQ_PSN),
			 EINVAL);
	expect_said("from INIT to RTR: missing bits 0x1000, invalid bits 0x0");
	init.send_cq = n.scq;
	init.recv_cq = n.rcq;
	init.cap.max_send_sge = 1000;
	ck_errno(ibv_create_qp(n.pd, &init), EINVAL);
	expect_said("cap.max_send_sge is 1000, and");
	ck_errno(ibv_create_cq(n.ctx, 0, NULL, NULL, 0), EINVAL);
	expect_said("cqe is 0, and must be 1 to");
	node_close(&n);
}
END_TEST

static void poll_flushed(struct node *b, void *arg)
{
	(void)arg;
	expect(b->rcq, 7, IBV_WC_WR_FLUSH_ERR);
}

/*
 * The requester executes the responder's part of a request.  The responder's
 * process logs the refused request as well, as the reason why its receives
 * are flushed.
 */
START_TEST(logged_at_both_ends)
{
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	char why[200];
	struct duo d;

	listen();
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 7, 0, 8);
	sge = node_sge(&d.a, 0, 8);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 0x17, &sge, 1, 0);
	wr.wr.rdma.rkey += 1u << 8;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 0x17, IBV_WC_REM_ACCESS_ERR);
	snprintf(
		why, sizeof(why),
		"QP 0x%x: wr_id 0x17 (RDMA_WRITE) failed with REM_ACCESS_ERR (10): rkey 0x%x used on QP 0x%x for 8 bytes at",
		d.a.qp->qp_num, wr.wr.rdma.rkey, d.at_b.qpn);
	expect_said(why);
	on_b(&d, poll_flushed, NULL, 0);
	snprintf(
		why, sizeof(why),
		"QP 0x%x refused the RDMA_WRITE of QP 0x%x (process %d, wr_id 0x17): rkey 0x%x used on",
		d.at_b.qpn, d.a.qp->qp_num, (int)getpid(), wr.wr.rdma.rkey);
	expect_said_somewhen(why);
	duo_close(&d);
}
END_TEST

/*
 * The message about flushed WRs has the reason why the QP is in ERR: the WR
 * that failed first, or ibv_modify_qp.
 */
START_TEST(reason_of_flush)
{
	struct opts o = default_opts();
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	char why[200];
	struct duo d;

	listen();
	duo_open(&d, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	sge = node_sge(&d.a, 0, 8);
	wr = rdma_wr(&d, IBV_WR_RDMA_WRITE, 0x11, &sge, 1, 0);
	wr.wr.rdma.rkey ^= 1;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 0x11, IBV_WC_REM_ACCESS_ERR);
	wr.wr_id = 0x12;
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 0x12, IBV_WC_WR_FLUSH_ERR);
	snprintf(
		why, sizeof(why),
		"QP 0x%x: 1 sends flushed, first wr_id 0x12; the QP is in ERR because wr_id 0x11 (RDMA_WRITE) failed with REM_ACCESS_ERR: rkey",
		d.a.qp->qp_num);
	expect_said(why);
	duo_renew(&d);
	ck_ok(qp_to(d.a.qp, IBV_QPS_ERR));
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 0x12, IBV_WC_WR_FLUSH_ERR);
	expect_said("in ERR: ibv_modify_qp moved the QP to ERR");
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("why");

	add(s, refused_by_the_verb);
	add(s, address_without_grh);
	add(s, no_such_gid);
	add(s, roce_version_mismatch);
	add(s, refused_by_the_responder);
	add(s, key_checks);
	add(s, invalidated_keys);
	add(s, reused_key_entry);
	add(s, local_keys);
	add(s, atomics);
	add_loop(s, logged_at_both_ends, WHERE_COUNT);
	add(s, reason_of_flush);
	add(s, window_binds);
	add(s, psn_mismatch);
	add(s, attribute_errors);
	return run_unloaded(s);
}
