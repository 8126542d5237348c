// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Faults that the RC transport detects.  For each: the status at the
 * requester, the asynchronous event and the states of both QPs, and that no
 * data was written.
 */
#include <string.h>
#include <sys/mman.h>

#include "../harness.h"

#define W IBV_WR_RDMA_WRITE
#define WI IBV_WR_RDMA_WRITE_WITH_IMM
#define R IBV_WR_RDMA_READ
#define S IBV_WR_SEND
#define FA IBV_WR_ATOMIC_FETCH_AND_ADD
#define CS IBV_WR_ATOMIC_CMP_AND_SWP

#define NO_EVENT ((enum ibv_event_type) - 1)

enum wrong_key {
	KEY_GOOD,
	KEY_UNKNOWN,
	KEY_ZERO,
	KEY_OF_ANOTHER_PD,
	KEY_OF_ANOTHER_CONTEXT,
};

/*
 * A test case: a WR with one defect.  A valid WR is posted before it, and
 * valid WRs after it.
 */
struct fault {
	const char *what;
	enum ibv_wr_opcode op;
	enum ibv_wc_status status; /* at the requester */
	enum ibv_event_type event; /* at the responder */
	int b_mr; /* access flags of b's MR, 0: ALL_ACCESS */
	int a_mr; /* -1: a's MR has no access flags; 0: ALL_ACCESS */
	int b_qp; /* access flags of b's QP, -1: none; 0: the default */
	uint64_t off; /* into b's buffer of 64 KiB */
	uint32_t len;
	enum wrong_key rkey, lkey;
	uint64_t l_off; /* into a's buffer */
};

#define RAE IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR
#define RIE IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR
#define LPE IBV_WC_LOC_PROT_ERR, NO_EVENT
#define L IBV_ACCESS_LOCAL_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RW IBV_ACCESS_REMOTE_WRITE
#define RA IBV_ACCESS_REMOTE_ATOMIC

static const struct fault faults[] = {
	/* the remote key */
	{ "unknown rkey", W, RAE, .len = 8, .rkey = KEY_UNKNOWN },
	{ "unknown rkey", R, RAE, .len = 8, .rkey = KEY_UNKNOWN },
	{ "unknown rkey", WI, RAE, .len = 8, .rkey = KEY_UNKNOWN },
	{ "unknown rkey", FA, RAE, .len = 8, .rkey = KEY_UNKNOWN },
	{ "rkey 0", W, RAE, .len = 8, .rkey = KEY_ZERO },
	{ "another PD's rkey", W, RAE, .len = 8, .rkey = KEY_OF_ANOTHER_PD },
	{ "another PD's rkey", R, RAE, .len = 8, .rkey = KEY_OF_ANOTHER_PD },
	{ "another PD's rkey", CS, RAE, .len = 8, .rkey = KEY_OF_ANOTHER_PD },
	{ "another context's rkey", W, RAE, .len = 8,
	  .rkey = KEY_OF_ANOTHER_CONTEXT },
	{ "another context's rkey", R, RAE, .len = 8,
	  .rkey = KEY_OF_ANOTHER_CONTEXT },
	/* the address range */
	{ "one byte too far", W, RAE, .off = 65530, .len = 7 },
	{ "one byte too far", R, RAE, .off = 65530, .len = 7 },
	{ "one byte too far", WI, RAE, .off = 65536, .len = 1 },
	{ "before the region", W, RAE, .off = -1ull, .len = 8 },
	{ "before the region", R, RAE, .off = -8ull, .len = 8 },
	{ "behind the region", FA, RAE, .off = 65536, .len = 8 },
	/* the MR's access flags */
	{ "MR not for remote write", W, RAE, .len = 8, .b_mr = L | RR | RA },
	{ "MR not for remote write", WI, RAE, .len = 8, .b_mr = L | RR | RA },
	{ "MR not for remote read", R, RAE, .len = 8, .b_mr = L | RW | RA },
	{ "MR not for atomics", FA, RAE, .len = 8, .b_mr = L | RW | RR },
	{ "MR not for atomics", CS, RAE, .len = 8, .b_mr = L | RW | RR },
	/* the QP's access flags */
	{ "QP not for remote write", W, RIE, .len = 8, .b_qp = RR | RA },
	{ "QP not for remote write", WI, RIE, .len = 8, .b_qp = RR | RA },
	{ "QP not for remote read", R, RIE, .len = 8, .b_qp = RW | RA },
	{ "QP not for atomics", FA, RIE, .len = 8, .b_qp = RW | RR },
	{ "QP not for atomics", CS, RIE, .len = 8, .b_qp = RW | RR },
	{ "QP for nothing", W, RIE, .len = 8, .b_qp = -1 },
	/* the requester's local buffer */
	{ "unknown lkey", S, LPE, .len = 8, .lkey = KEY_UNKNOWN },
	{ "unknown lkey", W, LPE, .len = 8, .lkey = KEY_UNKNOWN },
	{ "unknown lkey", R, LPE, .len = 8, .lkey = KEY_UNKNOWN },
	{ "unknown lkey", FA, LPE, .len = 8, .lkey = KEY_UNKNOWN },
	{ "lkey 0", W, LPE, .len = 8, .lkey = KEY_ZERO },
	{ "another PD's lkey", W, LPE, .len = 8, .lkey = KEY_OF_ANOTHER_PD },
	{ "another PD's lkey", S, LPE, .len = 8, .lkey = KEY_OF_ANOTHER_PD },
	{ "another PD's lkey", R, LPE, .len = 8, .lkey = KEY_OF_ANOTHER_PD },
	{ "another context's lkey", W, LPE, .len = 8,
	  .lkey = KEY_OF_ANOTHER_CONTEXT },
	{ "own range", W, LPE, .len = 8, .l_off = 65529 },
	{ "own range", S, LPE, .len = 8, .l_off = 65529 },
	{ "own range", R, LPE, .len = 8, .l_off = 65529 },
	{ "own range", CS, LPE, .len = 8, .l_off = 65536 },
	{ "READ into a read-only MR", R, LPE, .len = 8, .a_mr = -1 },
	{ "atomic into a read-only MR", FA, LPE, .len = 8, .a_mr = -1 },
	/*
	 * Both keys are invalid.  A WRITE reads the local buffer first.  A
	 * READ and an atomic use it last, so the rkey is reported.
	 */
	{ "both keys", W, LPE, .len = 8, .lkey = KEY_ZERO, .rkey = KEY_ZERO },
	{ "both keys", WI, LPE, .len = 8, .lkey = KEY_ZERO, .rkey = KEY_ZERO },
	{ "both keys", R, RAE, .len = 8, .lkey = KEY_ZERO, .rkey = KEY_ZERO },
	{ "both keys", FA, RAE, .len = 8, .lkey = KEY_ZERO, .rkey = KEY_ZERO },
	{ "both keys", CS, RAE, .len = 8, .lkey = KEY_ZERO, .rkey = KEY_ZERO },
	/* atomics */
	{ "misaligned", FA, RIE, .off = 4, .len = 8 },
	{ "misaligned", CS, RIE, .off = 1, .len = 8 },
};
#define FAULTS (sizeof(faults) / sizeof(*faults))

/*
 * A PD of the same context and a PD of another context of the same process,
 * each with an MR of the node's buffer.
 */
struct strangers {
	struct ibv_context *ctx;
	struct ibv_pd *pd[2];
	struct ibv_mr *mr[2];
};

static void make_strangers(struct strangers *s, struct node *n)
{
	int i;

	s->ctx = open_device();
	s->pd[0] = ibv_alloc_pd(n->ctx);
	s->pd[1] = ibv_alloc_pd(s->ctx);
	for (i = 0; i < 2; i++) {
		s->mr[i] = ibv_reg_mr(s->pd[i], n->buf, n->o.size, ALL_ACCESS);
		ck_nonnull(s->mr[i]);
	}
}

static void end_strangers(struct strangers *s)
{
	int i;

	for (i = 0; i < 2; i++) {
		ck_ok(ibv_dereg_mr(s->mr[i]));
		ck_ok(ibv_dealloc_pd(s->pd[i]));
	}
	ck_ok(ibv_close_device(s->ctx));
}

struct prepare {
	int mr_access, qp_access;
	enum wrong_key rkey;
	struct addr addr;
};

/*
 * Register b's MR again with the access flags of the case, or make an MR that
 * belongs to another PD or context.
 */
static void do_prepare(struct node *b, void *arg)
{
	struct prepare *p = arg;
	static struct strangers s;

	if (p->rkey > KEY_ZERO) {
		make_strangers(&s, b);
		p->addr.rkey = s.mr[p->rkey - KEY_OF_ANOTHER_PD]->rkey;
		return;
	}
	ck_ok(ibv_dereg_mr(b->mr));
	b->mr = ibv_reg_mr(b->pd, b->buf, b->o.size, p->mr_access);
	ck_nonnull(b->mr);
	p->addr = node_addr(b);
}

static uint32_t spoil(uint32_t key, enum wrong_key how,
		      const struct strangers *s)
{
	switch (how) {
	case KEY_GOOD:
		return key;
	case KEY_ZERO:
		return 0;
	case KEY_UNKNOWN:
		return key ^ 0x00004200;
	default:
		return s->mr[how - KEY_OF_ANOTHER_PD]->lkey;
	}
}

static void post_faulty(struct duo *d, const struct fault *f,
			const struct strangers *s, uint32_t stranger_rkey)
{
	struct ibv_sge sge = node_sge(&d->a, f->l_off, f->len);
	struct ibv_send_wr wr = rdma_wr(d, f->op, 2, &sge, 1, f->off);

	sge.lkey = spoil(sge.lkey, f->lkey, s);
	if (f->op == FA || f->op == CS) {
		wr.wr.atomic.remote_addr = d->at_b.base + f->off;
		wr.wr.atomic.compare_add = 0;
		wr.wr.atomic.swap = UINT64_MAX;
		wr.wr.atomic.rkey = d->at_b.rkey;
		if (f->op == FA)
			wr.wr.atomic.compare_add = 1;
	}
	if (f->rkey) {
		uint32_t key = f->rkey > KEY_ZERO ?
				       stranger_rkey :
				       spoil(d->at_b.rkey, f->rkey, s);

		if (f->op == FA || f->op == CS)
			wr.wr.atomic.rkey = key;
		else
			wr.wr.rdma.rkey = key;
	}
	ck_ok(post_wr(d->a.qp, &wr));
}

/*
 * Post a valid SEND, the faulty WR, and two valid WRs that must be flushed.
 */
static void run_fault(struct duo *d, const struct fault *f)
{
	struct prepare p = { .mr_access = f->b_mr ? f->b_mr : ALL_ACCESS };
	struct prepare q = { .rkey = f->rkey };
	struct strangers s;

	make_strangers(&s, &d->a);
	on_b(d, do_prepare, &p, sizeof(p));
	d->at_b.rkey = p.addr.rkey;
	if (q.rkey > KEY_ZERO)
		on_b(d, do_prepare, &q, sizeof(q));
	if (f->a_mr) {
		ck_ok(ibv_dereg_mr(d->a.mr));
		d->a.mr = ibv_reg_mr(d->a.pd, d->a.buf, d->a.o.size, 0);
		ck_nonnull(d->a.mr);
	}
	node_fill(&d->a, 0, 65536, 1);
	b_recv(d, 1, 1024, 64);
	b_recv(d, 2, 1024, 64);
	ck_ok(post_recv(&d->a, 11, 0, 8));
	ck_ok(post(d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	post_faulty(d, f, &s, q.addr.rkey);
	/* flushed, whether the fault was detected before or not */
	ck_ok(post(d, IBV_WR_SEND, 3, 0, 8, 0, 0));
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 4, 0, 8, 0, 0));

	expect_ok(d->a.scq, 1, IBV_WC_SEND);
	expect(d->a.scq, 2, f->status);
	expect(d->a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect(d->a.scq, 4, IBV_WC_WR_FLUSH_ERR);
	expect(d->a.rcq, 11, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(qp_state(d->a.qp), IBV_QPS_ERR);
	end_strangers(&s);
}

/*
 * The faulty WR completes with its status, and later WRs are flushed.  The
 * responder's QP is broken only if the responder detected the fault.
 */
START_TEST(each_fault)
{
	const struct fault *f = &faults[_i / WHERE_COUNT];
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;

	may_leak();
	if (f->b_qp)
		o.qp_access = f->b_qp > 0 ? f->b_qp : 0;
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	run_fault(&d, f);
	/*
	 * Only the valid SEND wrote data.  An atomic whose result could not
	 * be placed at the requester was executed.
	 */
	if (f->status == IBV_WC_LOC_PROT_ERR && (f->op == FA || f->op == CS)) {
		ck_assert_uint_eq(b_load64(&d, 0),
				  f->op == FA ? 1 : UINT64_MAX);
		b_store64(&d, 0, 0);
	}
	ck_assert(b_all(&d, 0, 1024, 0));
	ck_assert(b_all(&d, 1032, 60000, 0));
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_uint_eq(wc.wr_id, 1);
	if (f->event != NO_EVENT) {
		b_expect_async(&d, f->event);
		ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
		/*
		 * The responder's receives are flushed.  A WRITE_WITH_IMM
		 * that was refused consumes its receive, which completes with
		 * LOC_ACCESS_ERR.
		 */
		wc = b_wait_recv(&d);
		ck_assert_int_eq(wc.status,
				 f->op == WI && f->status ==
							 IBV_WC_REM_ACCESS_ERR ?
					 IBV_WC_LOC_ACCESS_ERR :
					 IBV_WC_WR_FLUSH_ERR);
		ck_assert_uint_eq(wc.wr_id, 2);
	} else {
		/* a local fault does not affect the peer */
		ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	}
	b_expect_no_async(&d);
	if (f->rkey <= KEY_ZERO)
		duo_close(&d);
}
END_TEST

/*
 * Ranges beyond the end of device memory are refused, at the responder and at
 * the requester.
 */
START_TEST(faults_with_device_memory)
{
	const enum where where = _i % WHERE_COUNT;
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	duo_open(&d, where, MEM_DM, MEM_DM, &o);
	sge = node_sge(&d.a, 0, 16);
	wr = rdma_wr(&d, W, 1, &sge, 1, 65536 - 8);
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	duo_renew(&d);
	sge = node_sge(&d.a, 65536 - 8, 16);
	wr = rdma_wr(&d, W, 1, &sge, 1, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	ck_assert(b_all(&d, 65528, 8, 0));
	duo_close(&d);
}
END_TEST

/* One SGE with an invalid lkey in a list fails the WR. */
START_TEST(bad_sge_in_list)
{
	struct opts o = default_opts();
	struct ibv_sge sge[3];
	struct ibv_send_wr wr;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 300, 1);
	sge[0] = node_sge(&d.a, 0, 100);
	sge[1] = node_sge(&d.a, 100, 100);
	sge[2] = node_sge(&d.a, 200, 100);
	sge[2].lkey ^= 0x4200;
	wr = rdma_wr(&d, W, 1, sge, 3, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	duo_close(&d);
}
END_TEST

/* A local fault is reported as such even if the peer does not respond. */
START_TEST(local_fault_with_a_silent_peer)
{
	struct opts o = default_opts();
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_modify(&d, IBV_QPS_RESET);
	sge = node_sge(&d.a, 0, 8);
	sge.lkey ^= 0x4200;
	wr = rdma_wr(&d, W, 1, &sge, 1, 0);
	ck_ok(post_wr(d.a.qp, &wr));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	duo_close(&d);
}
END_TEST

/* Unmap one page of b's registered buffer. */
static void do_unmap(struct node *b, void *arg)
{
	(void)arg;
	leave_hole((char *)b->buf + 16384, 4096);
}

/*
 * A WRITE or READ of memory that the peer has unmapped fails with REM_OP_ERR;
 * no process crashes.  With adoption it succeeds, since the requester has its
 * own mapping.
 */
START_TEST(unmapped_at_the_peer)
{
	struct opts o = default_opts();
	struct duo d;

	may_leak();
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_unmap, NULL, 0);
	ck_ok(post(&d, W, 1, 0, 8192, 0, 0));
	/* one page of the range is unmapped */
	ck_ok(post(&d, _i ? R : W, 2, 0, 16384, 8192, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	if (under_adoption()) { /* a has its own mapping */
		expect(d.a.scq, 2, IBV_WC_SUCCESS);
		return;
	}
	expect(d.a.scq, 2, IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
}
END_TEST

/* ------------------------------------------------- faults of a receive */

/*
 * A small message is stored in the CQE and copied to the receive buffer when
 * the CQE is polled.  If the buffer became invalid in between, the receive
 * fails.
 *
 *	GONE_PAGE	the page is unmapped
 *	GONE_TAIL	the page of the last byte is unmapped
 *	GONE_WRITE	the page is write-protected
 *	GONE_MR	the MR is deregistered
 */
enum gone { GONE_PAGE, GONE_TAIL, GONE_WRITE, GONE_MR, GONE_COUNT };

struct spoil {
	enum gone how;
	bool resize; /* ibv_resize_cq copies it, not ibv_poll_cq */
};

static void do_spoil(struct node *b, void *arg)
{
	struct spoil *s = arg;

	if (s->how == GONE_MR)
		ck_ok(ibv_dereg_mr(b->mr));
	else if (s->how == GONE_WRITE)
		ck_ok(mprotect((char *)b->buf + 16384, 4096, PROT_READ));
	else
		do_unmap(b, NULL);
	if (s->resize)
		ck_ok(ibv_resize_cq(b->rcq, b->rcq->cqe + 1));
}

/*
 * A small SEND whose receive buffer became invalid before the poll completes
 * at the receiver with LOC_PROT_ERR and breaks the receiver's QP.  The
 * sender's WR has succeeded.
 */
START_TEST(small_send_into_invalid_buffer)
{
	struct spoil s = { .how = _i % GONE_COUNT, .resize = _i / GONE_COUNT };
	size_t off = s.how == GONE_TAIL ? 16384 - 71 : 16384;
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;

	if (under_adversary()) /* the data may be in place already */
		return;
	if (under_adoption()) /* the data is in place already */
		return;
	may_leak();
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	b_recv(&d, 1, off, 72);
	b_recv(&d, 2, 0, 72);
	ck_ok(post(&d, S, 1, 0, 72, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	on_b(&d, do_spoil, &s, sizeof(s));
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	wc = b_wait_recv(&d);
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
}
END_TEST

static void do_resize(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(ibv_resize_cq(b->rcq, b->rcq->cqe + 1));
}

/* A small SEND is received intact if its CQ is resized before the poll. */
START_TEST(small_send_across_cq_resize)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 72, 7);
	b_recv(&d, 1, 4096 - 30, 72);
	ck_ok(post(&d, S, 1, 0, 72, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	on_b(&d, do_resize, NULL, 0);
	ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 4096 - 30, 72, 7));
	ck_assert(b_all(&d, 4096 + 42, 100, 0));
	duo_close(&d);
}
END_TEST

/*
 * A SEND longer than its receive completes with REM_INV_REQ_ERR, the receive
 * with LOC_LEN_ERR.  No byte beyond the receive buffer is written.
 */
START_TEST(receive_too_short)
{
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 100, 1);
	b_recv(&d, 1, 0, 99);
	b_recv(&d, 2, 0, 200);
	ck_ok(post(&d, S, 1, 0, 100, 0, 0));
	ck_ok(post(&d, S, 2, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect(d.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_LEN_ERR);
	ck_assert_uint_eq(wc.wr_id, 1);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	/* nothing is written beyond the buffer */
	ck_assert(b_all(&d, 99, 1000, 0));
	duo_close(&d);
}
END_TEST

enum recv_fault { R_UNKNOWN, R_ANOTHER_PD, R_RANGE, R_READ_ONLY, R_COUNT };

static void do_bad_recv(struct node *b, void *arg)
{
	enum recv_fault how = *(enum recv_fault *)arg;
	struct ibv_sge sge = node_sge(b, 0, 64);
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 },
			   *bad;
	struct strangers s;

	if (how == R_UNKNOWN)
		sge.lkey ^= 0x4200;
	if (how == R_RANGE)
		sge.addr = b->base + b->o.size - 63;
	if (how == R_ANOTHER_PD) {
		make_strangers(&s, b);
		sge.lkey = s.mr[0]->lkey;
	}
	if (how == R_READ_ONLY) {
		ck_ok(ibv_dereg_mr(b->mr));
		b->mr = ibv_reg_mr(b->pd, b->buf, b->o.size,
				   IBV_ACCESS_REMOTE_READ);
		ck_nonnull(b->mr);
		sge.lkey = b->mr->lkey;
	}
	/* a receive's SGEs are checked when a message arrives */
	ck_ok(ibv_post_recv(b->qp, &wr, &bad));
}

/*
 * A receive whose SGE is invalid completes with LOC_PROT_ERR, the SEND with
 * REM_OP_ERR, and nothing is written.
 */
START_TEST(receive_with_invalid_sge)
{
	enum recv_fault how = _i / WHERE_COUNT;
	struct opts o = default_opts();
	struct ibv_wc wc;
	struct duo d;

	may_leak();
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 64, 1);
	on_b(&d, do_bad_recv, &how, sizeof(how));
	b_recv(&d, 2, 0, 64);
	ck_ok(post(&d, S, 1, 0, 64, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_OP_ERR);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	ck_assert_uint_eq(wc.wr_id, 1);
	wc = b_wait_recv(&d);
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	ck_assert(b_all(&d, 0, 65536, 0));
}
END_TEST

/*
 * A READ or an atomic to a QP with max_dest_rd_atomic 0 is a REM_INV_REQ_ERR.
 */
START_TEST(max_dest_rd_atomic_0)
{
	const enum ibv_wr_opcode op = _i / WHERE_COUNT ? FA : R;
	struct opts o = default_opts();
	struct duo d;

	o.max_dest_rd_atomic = 0;
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	if (op == FA)
		ck_ok(post_atomic(&d, FA, 1, 0, 0, 1, 0));
	else
		ck_ok(post(&d, R, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	b_expect_async(&d, IBV_EVENT_QP_REQ_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	ck_assert(b_load64(&d, 0) == 0);
	duo_close(&d);
}
END_TEST

/*
 * Post @n READs and fetch-and-adds as one list.  The WR at index @fence has
 * IBV_SEND_FENCE and waits for all before it; -1: none.
 */
static void post_fetches(struct duo *d, int n, int fence)
{
	struct ibv_sge sge = node_sge(&d->a, 0, 8);
	struct ibv_send_wr wr[32];
	int i;

	for (i = 0; i < n; i++) {
		wr[i] = rdma_wr(d, i % 2 ? FA : R, i, &sge, 1, 0);
		if (i % 2) {
			wr[i].wr.atomic.remote_addr = d->at_b.base;
			wr[i].wr.atomic.rkey = d->at_b.rkey;
			wr[i].wr.atomic.compare_add = 1;
		}
		if (i == fence)
			wr[i].send_flags |= IBV_SEND_FENCE;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	ck_ok(post_wr(d->a.qp, wr));
}

/*
 * More outstanding READs and atomics than the responder's max_dest_rd_atomic
 * are a REM_INV_REQ_ERR.
 */
START_TEST(max_dest_rd_atomic_exceeded)
{
	struct opts o = default_opts();
	struct duo d;
	int i;

	o.max_dest_rd_atomic = 3;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	post_fetches(&d, 5, -1);
	for (i = 0; i < 3; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	expect(d.a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	expect(d.a.scq, 4, IBV_WC_WR_FLUSH_ERR);
	b_expect_async(&d, IBV_EVENT_QP_REQ_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_ERR);
	ck_assert_uint_eq(b_load64(&d, 0), 1);
	duo_close(&d);
}
END_TEST

/*
 * max_dest_rd_atomic READs and atomics succeed repeatedly.  A fence and the
 * requester's max_rd_atomic limit how many are outstanding.
 */
START_TEST(max_dest_rd_atomic_reads_succeed)
{
	struct opts o = default_opts();
	struct duo d;
	int i, round;

	o.max_dest_rd_atomic = 3;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (round = 0; round < 10; round++) {
		post_fetches(&d, 3, -1);
		for (i = 0; i < 3; i++)
			expect(d.a.scq, i, IBV_WC_SUCCESS);
	}
	post_fetches(&d, 6, 3);
	for (i = 0; i < 6; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	duo_close(&d);
	/* max_rd_atomic 3: at most three are outstanding */
	o.max_rd_atomic = 3;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	post_fetches(&d, 32, -1);
	for (i = 0; i < 32; i++)
		expect(d.a.scq, i, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/*
 * A READ or an atomic on a QP with max_rd_atomic 0 completes with
 * LOC_QP_OP_ERR.  Other operations work.
 */
START_TEST(max_rd_atomic_0)
{
	const enum ibv_wr_opcode op = _i / WHERE_COUNT ? FA : R;
	struct opts o = default_opts();
	struct duo d;

	o.max_rd_atomic = 0;
	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &o);
	/* a WRITE needs no resources */
	ck_ok(post(&d, W, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	if (op == FA)
		ck_ok(post_atomic(&d, FA, 2, 0, 0, 1, 0));
	else
		ck_ok(post(&d, R, 2, 0, 8, 0, 0));
	expect(d.a.scq, 2, IBV_WC_LOC_QP_OP_ERR);
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_ERR);
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	ck_assert(b_load64(&d, 0) == 0);
	duo_close(&d);
}
END_TEST

/*
 * An unsignaled WR that fails or is flushed generates a CQE; one that
 * succeeded does not.
 */
START_TEST(unsignaled_fault)
{
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post_unsignaled(&d, W, 1, 0, 8, 0, 0));
	ck_ok(post_unsignaled(&d, W, 2, 0, 8, 65536, 0));
	ck_ok(post_unsignaled(&d, W, 3, 0, 8, 0, 0));
	expect(d.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	/* flushed WRs generate a CQE, signaled or not */
	expect(d.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_none(d.a.scq, QUIET_MS);
	duo_close(&d);
}
END_TEST

/* Set the access flags of b's QP. */
static void do_access(struct node *b, void *arg)
{
	struct ibv_qp_attr attr = { .qp_access_flags = *(int *)arg };

	ck_ok(ibv_modify_qp(b->qp, &attr, IBV_QP_ACCESS_FLAGS));
}

/*
 * QP access flags that change while the QPs are connected apply to later
 * requests.
 */
START_TEST(access_flags_change)
{
	struct opts o = default_opts();
	int access = IBV_ACCESS_REMOTE_READ;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, W, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	on_b(&d, do_access, &access, sizeof(access));
	ck_ok(post(&d, R, 2, 0, 8, 0, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_READ);
	ck_ok(post(&d, W, 3, 0, 8, 0, 0));
	expect(d.a.scq, 3, IBV_WC_REM_INV_REQ_ERR);
	duo_close(&d);
}
END_TEST

#define NUMBER_USES \
	4096 /* at most as many QPs are created until a number repeats */

/*
 * Replace b's QP by a QP of @pd that has the same QP number, in RTS,
 * connected to a.  @psn is the PSN that it expects from a.
 */
static void b_again(struct duo *d, struct ibv_pd *pd, uint32_t psn)
{
	const uint32_t qpn = d->b.qp->qp_num;
	struct ibv_pd *before = d->b.pd;
	struct opts o = d->b.o;
	int i;

	d->b.pd = pd;
	for (i = 0; i < NUMBER_USES; i++) {
		ck_ok(ibv_destroy_qp(d->b.qp));
		node_make_qp(&d->b);
		if (d->b.qp->qp_num == qpn)
			break;
	}
	d->b.pd = before;
	ck_assert_uint_eq(d->b.qp->qp_num, qpn);
	d->at_a.psn = psn;
	qp_to_init(d->b.qp, &o);
	qp_to_rtr(d->b.qp, &o, &d->at_a);
	qp_to_rts(d->b.qp, &o);
}

/*
 * The requester does not mistake a new QP for a destroyed one that had the
 * same QP number and PSN: keys are checked against the PD of the new QP.
 */
START_TEST(qpn_reused)
{
	struct opts o = default_opts();
	struct ibv_pd *pd;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	pd = ibv_alloc_pd(d.b.ctx);
	ck_nonnull(pd);
	ck_ok(post(&d, W, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	b_again(&d, pd, (d.at_a.psn + 1) & 0xffffff);
	ck_ok(post(&d, W, 2, 0, 8, 0, 0));
	expect(d.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	ck_ok(ibv_destroy_qp(d.b.qp));
	node_make_qp(&d.b);
	ck_ok(ibv_dealloc_pd(pd));
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("rc_errors");

	add_loop(s, each_fault, (int)FAULTS * WHERE_COUNT);
	add_loop(s, faults_with_device_memory, WHERE_COUNT);
	add_loop(s, bad_sge_in_list, WHERE_COUNT);
	add_loop(s, local_fault_with_a_silent_peer, WHERE_COUNT);
	add_loop(s, unmapped_at_the_peer, 2);
	add_loop(s, small_send_into_invalid_buffer, 2 * GONE_COUNT);
	add(s, small_send_across_cq_resize);
	add_loop(s, receive_too_short, WHERE_COUNT);
	add_loop(s, receive_with_invalid_sge, R_COUNT * WHERE_COUNT);
	add_loop(s, max_dest_rd_atomic_0, 2 * WHERE_COUNT);
	add_loop(s, max_dest_rd_atomic_exceeded, WHERE_COUNT);
	add_loop(s, max_dest_rd_atomic_reads_succeed, WHERE_COUNT);
	add_loop(s, max_rd_atomic_0, 2 * WHERE_COUNT);
	add_loop(s, unsignaled_fault, WHERE_COUNT);
	add_loop(s, access_flags_change, WHERE_COUNT);
	add_loop(s, qpn_reused, TWO_PROCESSES);
	return run(s);
}
