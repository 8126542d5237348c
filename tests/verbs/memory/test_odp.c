// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* On-demand paging (ODP): MRs whose pages may be unmapped or read-only. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../access.h"
#include "../harness.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define ODP_ACCESS (ALL_ACCESS | IBV_ACCESS_ON_DEMAND)
#define RC_CAPS                                                                \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | \
	 IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC |                       \
	 IBV_ODP_SUPPORT_SRQ_RECV)

/* The capabilities of ODP for each type of QP. */
START_TEST(capabilities)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device_attr_ex a;

	ck_ok(ibv_query_device_ex(ctx, NULL, &a));
	ck_assert_uint_eq(a.odp_caps.general_caps,
			  IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	ck_assert_uint_eq(a.odp_caps.per_transport_caps.rc_odp_caps & RC_CAPS,
			  RC_CAPS);
	ck_assert_uint_eq(a.odp_caps.per_transport_caps.ud_odp_caps,
			  IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				  IBV_ODP_SUPPORT_SRQ_RECV);
	ck_assert_uint_eq(a.xrc_odp_caps & RC_CAPS, RC_CAPS);
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/*
 * Map four pages at n->user, of which the second is unmapped and the third
 * read-only. Their address is one at which no other mmap() fills the hole.
 */
static void make_pages(struct node *n)
{
	char *p = mmap((void *)0x200000000000, 4 * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(p != MAP_FAILED);
	ck_ok(munmap(p + PAGE, PAGE));
	ck_ok(mprotect(p + 2 * PAGE, PAGE, PROT_READ));
	n->user = p;
}

struct odp {
	bool implicit;
	uint64_t addr;
	uint32_t rkey, len;
	size_t off;
	uint64_t value;
};

/*
 * Replace the node's MR by an ODP MR of these pages, or by an implicit one.
 */
static void do_reg(struct node *n, void *arg)
{
	struct odp *o = arg;

	make_pages(n);
	ck_ok(ibv_dereg_mr(n->mr));
	n->mr = o->implicit ? ibv_reg_mr(n->pd, NULL, SIZE_MAX, ODP_ACCESS) :
			      ibv_reg_mr(n->pd, n->user, 4 * PAGE, ODP_ACCESS);
	ck_nonnull(n->mr);
	n->base = (uintptr_t)n->user;
	o->addr = n->base;
	o->rkey = n->mr->rkey;
}

static void do_load(struct node *n, void *arg)
{
	struct odp *o = arg;

	memcpy(&o->value, (char *)n->user + o->off, 8);
}

static void do_map_hole(struct node *n, void *arg)
{
	(void)arg;
	ck_assert(mmap((char *)n->user + PAGE, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		       0) != MAP_FAILED);
}

/* Open a duo whose b has such an MR; WRs of a address b's pages. */
static void open_it(struct duo *d, int where, struct odp *o)
{
	struct opts opts = default_opts();

	duo_open(d, where, MEM_HEAP, MEM_HEAP, &opts);
	node_fill(&d->a, 0, 4 * PAGE, 1);
	on_b(d, do_reg, o, sizeof(*o));
	d->at_b.rkey = o->rkey;
	d->at_b.base = o->addr;
}

/*
 * Remote access faults pages in. REM_OP_ERR if the page is not mapped, or is
 * read-only and would be written.
 */
START_TEST(remote_access)
{
	struct odp o = { .implicit = _i >= WHERE_COUNT };
	struct duo d;
	uint64_t want;

	open_it(&d, _i % WHERE_COUNT, &o);
	ck_write(&d, o.addr + 8, o.rkey, 100, IBV_WC_SUCCESS);
	o.off = 16;
	on_b(&d, do_load, &o, sizeof(o));
	node_get(&d.a, 8, &want, 8);
	ck_assert_uint_eq(o.value, want);
	ck_write(&d, o.addr + PAGE, o.rkey, 8, IBV_WC_REM_OP_ERR);
	ck_write(&d, o.addr + PAGE - 4, o.rkey, 8, IBV_WC_REM_OP_ERR);
	ck_read(&d, o.addr + PAGE, o.rkey, 8, IBV_WC_REM_OP_ERR);
	ck_write(&d, o.addr + 2 * PAGE, o.rkey, 8, IBV_WC_REM_OP_ERR);
	ck_read(&d, o.addr + 2 * PAGE, o.rkey, 8, IBV_WC_SUCCESS);
	ck_assert_int_eq(access_to(&d, IBV_WR_ATOMIC_FETCH_AND_ADD,
				   o.addr + PAGE, o.rkey, 8),
			 IBV_WC_REM_OP_ERR);
	ck_assert_int_eq(access_to(&d, IBV_WR_ATOMIC_FETCH_AND_ADD,
				   o.addr + 3 * PAGE, o.rkey, 8),
			 IBV_WC_SUCCESS);
	o.off = 3 * PAGE;
	on_b(&d, do_load, &o, sizeof(o));
	ck_assert_uint_eq(o.value, 1);
	/* after the page has been mapped the access succeeds */
	on_b(&d, do_map_hole, NULL, 0);
	ck_write(&d, o.addr + PAGE, o.rkey, 100, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

static void do_recv(struct node *b, void *arg)
{
	struct odp *o = arg;

	ck_ok(post_recv(b, 1, o->off, o->len));
}

/*
 * A receive in a page that is not mapped: REM_OP_ERR at the requester,
 * LOC_PROT_ERR at the responder.
 */
START_TEST(receive)
{
	uint32_t len[] = { 8, 64, 2000 };
	struct odp o = { .implicit = _i >= WHERE_COUNT };
	struct duo d;
	uint32_t i;

	open_it(&d, _i % WHERE_COUNT, &o);
	for (i = 0; i < 3; i++) {
		o.len = len[i];
		o.off = PAGE;
		on_b(&d, do_recv, &o, sizeof(o));
		ck_ok(post(&d, IBV_WR_SEND, 2, 0, len[i], 0, 0));
		expect(d.a.scq, 2, IBV_WC_REM_OP_ERR);
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_LOC_PROT_ERR);
		duo_renew(&d);
		o.off = 3 * PAGE;
		on_b(&d, do_recv, &o, sizeof(o));
		ck_ok(post(&d, IBV_WR_SEND, 2, 0, len[i], 0, 0));
		expect(d.a.scq, 2, IBV_WC_SUCCESS);
		ck_assert_int_eq(b_wait_recv(&d).status, IBV_WC_SUCCESS);
	}
	duo_close(&d);
}
END_TEST

/*
 * Local access of the requester: LOC_PROT_ERR if the page is not mapped, or
 * is read-only and would be written.
 */
START_TEST(local_access)
{
	struct odp mine = { .implicit = _i >= WHERE_COUNT };
	struct opts opts = default_opts();
	struct duo d;

	duo_open(&d, _i % WHERE_COUNT, MEM_HEAP, MEM_HEAP, &opts);
	do_reg(&d.a, &mine);
	memset(d.a.user, 9, 8);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	ck_assert(b_all(&d, 0, 8, 9));
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, PAGE, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	duo_renew(&d);
	b_recv(&d, 3, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, PAGE, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	/* the responder's QP is not affected */
	ck_assert_int_eq(b_state(&d), IBV_QPS_RTS);
	duo_renew(&d);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 2 * PAGE, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_LOC_PROT_ERR);
	duo_renew(&d);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 3 * PAGE, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	ck_assert_int_eq(((char *)d.a.user)[3 * PAGE], 9);
	/* a read-only page can be a source */
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 2 * PAGE, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_SUCCESS);
	duo_close(&d);
}
END_TEST

/*
 * The pages of an ODP MR need not be accessible at registration. An implicit
 * MR has address NULL and length SIZE_MAX.
 */
START_TEST(registering)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char *p = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	struct ibv_mr *mr;

	mr = ibv_reg_mr(pd, p, PAGE, ODP_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	/* an implicit MR is the whole address space */
	mr = ibv_reg_mr(pd, NULL, SIZE_MAX, ODP_ACCESS);
	ck_nonnull(mr);
	ck_assert_uint_eq(mr->length, SIZE_MAX);
	ck_ok(ibv_dereg_mr(mr));
	ck_errno(ibv_reg_mr(pd, NULL, SIZE_MAX, ALL_ACCESS), EFAULT);
	ck_errno(ibv_reg_mr(pd, p, SIZE_MAX, ODP_ACCESS), EINVAL);
	ck_errno(ibv_reg_mr(pd, NULL, SIZE_MAX,
			    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND),
		 EINVAL);
	ck_errno(ibv_reg_mr(pd, NULL, SIZE_MAX,
			    IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND),
		 EINVAL);
	/* with ON_DEMAND, HUGETLB requires huge pages */
	ck_errno(ibv_reg_mr(pd, p, PAGE,
			    IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND),
		 EINVAL);
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

/* Huge pages, if the machine has one free, can have IBV_ACCESS_HUGETLB. */
START_TEST(huge_pages)
{
	const size_t huge = 2 << 20;
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;
	char *p;

	p = mmap(NULL, huge, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p != MAP_FAILED) {
		mr = ibv_reg_mr(pd, p, huge, ODP_ACCESS | IBV_ACCESS_HUGETLB);
		ck_nonnull(mr);
		ck_ok(ibv_dereg_mr(mr));
		munmap(p, huge);
	}
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

static int advise(struct ibv_pd *pd, int advice, struct ibv_mr *mr, void *addr,
		  uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)addr, len, mr->lkey };

	return ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

#define READ_IT IBV_ADVISE_MR_ADVICE_PREFETCH
#define WRITE_IT IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define LOOK IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT

static bool resident(void *p)
{
	unsigned char there;

	ck_ok(mincore(p, 1, &there));
	return there & 1;
}

/* Success and errors of ibv_advise_mr. */
START_TEST(advice)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
	struct ibv_mr *mr, *ro, *plain, fake;
	struct ibv_mw *mw;
	struct ibv_sge sge;
	struct node n;
	char *p;

	make_pages(&n);
	p = n.user;
	mr = ibv_reg_mr(pd, p, 4 * PAGE, ODP_ACCESS);
	ro = ibv_reg_mr(pd, p, PAGE, IBV_ACCESS_ON_DEMAND);
	plain = ibv_reg_mr(pd, p, PAGE, ALL_ACCESS);
	ck_nonnull(mr);
	ck_nonnull(ro);
	ck_nonnull(plain);
	ck_ok(advise(pd, READ_IT, mr, p, PAGE));
	ck_ok(advise(pd, READ_IT, mr, p + 2 * PAGE, 2 * PAGE));
	ck_ok(advise(pd, WRITE_IT, mr, p + 3 * PAGE, PAGE));
	ck_assert(resident(p + 3 * PAGE));
	ck_ok(advise(pd, LOOK, mr, p, 10));
	sge = (struct ibv_sge){ (uintptr_t)p, 8, mr->lkey };
	ck_ok(ibv_advise_mr(pd, READ_IT, 0, &sge, 1));
	/* out of bounds; not mapped; not writable */
	ck_assert_int_eq(advise(pd, READ_IT, mr, p + 4 * PAGE, 1), EFAULT);
	ck_assert_int_eq(advise(pd, READ_IT, mr, p, 4 * PAGE + 1), EFAULT);
	ck_assert_int_eq(advise(pd, READ_IT, mr, p + PAGE, 8), EFAULT);
	ck_assert_int_eq(advise(pd, LOOK, mr, p, PAGE + 1), EFAULT);
	ck_assert_int_eq(advise(pd, WRITE_IT, mr, p + 2 * PAGE, 8), EFAULT);
	/* keys that are none, 0, and of an MR without ODP */
	fake.lkey = mr->lkey ^ 1;
	ck_assert_int_eq(advise(pd, READ_IT, &fake, p, 8), ENOENT);
	fake.lkey = 0;
	ck_assert_int_eq(advise(pd, READ_IT, &fake, p, 8), EFAULT);
	ck_assert_int_eq(advise(pd, READ_IT, plain, p, 8), EINVAL);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	fake.lkey = mw->rkey; /* not bound: covers nothing */
	ck_assert_int_eq(advise(pd, READ_IT, &fake, p, 8), EFAULT);
	ck_ok(ibv_dealloc_mw(mw));
	/* an MR of another PD; no write access */
	ck_assert_int_eq(advise(other, READ_IT, mr, p, 8), EPERM);
	ck_assert_int_eq(advise(pd, WRITE_IT, ro, p, 8), EPERM);
	ck_ok(advise(pd, READ_IT, ro, p, 8));
	/* invalid flags, number of SGEs, and advice */
	ck_assert_int_eq(ibv_advise_mr(pd, READ_IT, 2, &sge, 1), EINVAL);
	ck_assert_int_eq(ibv_advise_mr(pd, READ_IT, 0, &sge, 0), EINVAL);
	ck_assert_int_eq(ibv_advise_mr(pd, 17, 0, &sge, 1), ENOTSUP);
	ck_ok(ibv_dereg_mr(plain));
	ck_ok(ibv_dereg_mr(ro));
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dealloc_pd(other));
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}
END_TEST

int main(void)
{
	Suite *s = suite("odp");

	add(s, capabilities);
	add(s, registering);
	add(s, huge_pages);
	add(s, advice);
	add_loop(s, remote_access, 2 * WHERE_COUNT);
	add_loop(s, receive, 2 * WHERE_COUNT);
	add_loop(s, local_access, 2 * WHERE_COUNT);
	return run(s);
}
