// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: which memory ibv_reg_mr accepts, and which memory the keys
 * give access to.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.h"
#include "shared/layout.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static void setup(void)
{
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	ck_nonnull(pd);
}

static void teardown(void)
{
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}

static char *pages(size_t n, int prot)
{
	char *p =
		mmap(NULL, n * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert(p != MAP_FAILED);
	return p;
}

/* The struct has the address and length of the call; keys are unique. */
START_TEST(fields)
{
	char *buf = pages(1, PROT_READ | PROT_WRITE);
	struct ibv_mr *a, *b;

	setup();
	a = ibv_reg_mr(pd, buf + 3, 100, IBV_ACCESS_LOCAL_WRITE);
	b = ibv_reg_mr(pd, buf + 3, 100, 0);
	ck_nonnull(a);
	ck_nonnull(b);
	ck_assert_ptr_eq(a->addr, buf + 3);
	ck_assert_uint_eq(a->length, 100);
	ck_assert_ptr_eq(a->pd, pd);
	ck_assert_ptr_eq(a->context, ctx);
	ck_assert_uint_ne(a->lkey, b->lkey);
	ck_assert_uint_ne(a->rkey, b->rkey);
	ck_assert_uint_ne(a->lkey, 0);
	ck_ok(ibv_dereg_mr(a));
	ck_ok(ibv_dereg_mr(b));
	teardown();
}
END_TEST

/*
 * Remote write and atomic need local write (man ibv_reg_mr). Unknown flags
 * are EINVAL, except for those in IBV_ACCESS_OPTIONAL_RANGE.
 */
START_TEST(access_rules)
{
	static const int bad[] = {
		IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		1 << 12,
		1 << 19,
		1 << 30 | IBV_ACCESS_LOCAL_WRITE,
	};
	static const int good[] = {
		0,
		IBV_ACCESS_REMOTE_READ,
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
		ALL_ACCESS,
		ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING,
		ALL_ACCESS | IBV_ACCESS_ZERO_BASED,
		/* without ON_DEMAND the pages need not be huge ones */
		ALL_ACCESS | IBV_ACCESS_HUGETLB,
		/* unknown flags of IBV_ACCESS_OPTIONAL_RANGE are ignored */
		ALL_ACCESS | 1 << 25,
	};
	char *buf = pages(1, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;
	size_t i;

	setup();
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		errno = 0;
		mr = ibv_reg_mr(pd, buf, 64, bad[i]);
		ck_assert_msg(!mr, "access %#x was accepted", bad[i]);
		ck_assert_int_eq(errno, EINVAL);
	}
	for (i = 0; i < sizeof(good) / sizeof(*good); i++) {
		mr = ibv_reg_mr(pd, buf, 64, good[i]);
		ck_assert_msg(mr != NULL, "access %#x: %s", good[i],
			      strerror(errno));
		ck_ok(ibv_dereg_mr(mr));
	}
	teardown();
}
END_TEST

/* A range with an unmapped page is EFAULT. */
START_TEST(unmapped)
{
	char *buf = pages(4, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	setup();
	munmap(buf + 2 * PAGE, PAGE);
	ck_errno(ibv_reg_mr(pd, buf, 4 * PAGE, 0), EFAULT);
	ck_errno(ibv_reg_mr(pd, buf + PAGE, PAGE + 1, 0), EFAULT);
	ck_errno(ibv_reg_mr(pd, buf + 2 * PAGE, 1, 0), EFAULT);
	ck_errno(ibv_reg_mr(pd, NULL, PAGE, 0), EFAULT);
	mr = ibv_reg_mr(pd, buf, 2 * PAGE, 0);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	mr = ibv_reg_mr(pd, buf + 3 * PAGE, PAGE, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	teardown();
}
END_TEST

/*
 * Register parts of a mapping that extends beyond the end of its file: EFAULT
 * for the pages that the file does not have.
 */
static void behind_the_end(int flags)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	struct ibv_mr *mr;
	char *buf;

	ck_assert_int_ge(fd, 0);
	ck_ok(ftruncate(fd, PAGE + 100));
	buf = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	ck_assert(buf != MAP_FAILED);
	ck_errno(ibv_reg_mr(pd, buf, 3 * PAGE, ALL_ACCESS), EFAULT);
	ck_errno(ibv_reg_mr(pd, buf, 2 * PAGE + 1, 0), EFAULT);
	ck_errno(ibv_reg_mr(pd, buf + 2 * PAGE, 8, 0), EFAULT);
	/* the last page of the file is mapped as a whole */
	mr = ibv_reg_mr(pd, buf, 2 * PAGE, ALL_ACCESS);
	ck_nonnull(mr);
	ck_assert_int_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      buf, 3 * PAGE, 0),
			 IBV_REREG_MR_ERR_CMD);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ftruncate(fd, 3 * PAGE));
	mr = ibv_reg_mr(pd, buf, 3 * PAGE, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(munmap(buf, 3 * PAGE));
	close(fd);
}

/* Pages of a mapping beyond the end of its file cannot be registered. */
START_TEST(behind_the_end_of_a_file)
{
	setup();
	behind_the_end(MAP_SHARED);
	behind_the_end(MAP_PRIVATE);
	teardown();
}
END_TEST

/*
 * Create a file in a new tmpfs with mount option @size. Return its
 * descriptor, which keeps the unmounted file system, or -1 if mounting is not
 * permitted.
 */
static int file_in_a_tiny_tmpfs(const char *size)
{
	char dir[] = "/tmp/urxe-tiny-XXXXXX", path[64];
	int fd = -1;

	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	ck_nonnull(mkdtemp(dir));
	if (!mount("tiny", dir, "tmpfs", 0, size)) {
		snprintf(path, sizeof(path), "%s/file", dir);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		ck_ok(umount2(dir, MNT_DETACH));
	}
	ck_ok(rmdir(dir));
	return fd;
}

/*
 * Pages of a file for which there is no space cannot be registered: accessing
 * them would raise SIGBUS.
 */
static void more_than_there_is(int fd, size_t len)
{
	struct ibv_mr *mr;
	char *buf;

	ck_ok(ftruncate(fd, (off_t)len));
	buf = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_NORESERVE, fd, 0);
	ck_assert(buf != MAP_FAILED);
	ck_assert_ptr_null(ibv_reg_mr(pd, buf, len, ALL_ACCESS));
	ck_assert(errno == ENOMEM || errno == EFAULT);
	ck_assert_ptr_null(ibv_reg_mr(pd, buf, len, 0));
	/* with on-demand paging pages may be missing */
	mr = ibv_reg_mr(pd, buf, len, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(munmap(buf, len));
	close(fd);
}

/*
 * A mapping of a file whose file system or pool of huge pages has too little
 * space is ENOMEM or EFAULT.
 */
START_TEST(no_room_for_the_file)
{
	int fd = file_in_a_tiny_tmpfs("size=256k");
	char c = 1;

	setup();
	if (fd >= 0) {
		/* its first and its last page are allocated */
		ck_assert_int_eq(pwrite(fd, &c, 1, 0), 1);
		ck_assert_int_eq(pwrite(fd, &c, 1, (1 << 20) - 1), 1);
		more_than_there_is(fd, 1 << 20);
	}
	fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	if (fd >= 0)
		more_than_there_is(fd, 1ull << 40);
	teardown();
}
END_TEST

/* EFAULT for write access to read-only pages, and for PROT_NONE. */
START_TEST(read_only)
{
	char *buf = pages(2, PROT_READ);
	struct ibv_mr *mr;

	setup();
	ck_errno(ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	ck_errno(ibv_reg_mr(pd, buf, PAGE, ALL_ACCESS), EFAULT);
	mr = ibv_reg_mr(pd, buf, PAGE, IBV_ACCESS_REMOTE_READ);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	/* one page of the range is enough to refuse it */
	mprotect(buf, PAGE, PROT_READ | PROT_WRITE);
	ck_errno(ibv_reg_mr(pd, buf, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	mprotect(buf, PAGE, PROT_NONE);
	ck_errno(ibv_reg_mr(pd, buf, PAGE, 0), EFAULT);
	teardown();
}
END_TEST

/* A range that wraps, in the address space or as iova, is EINVAL. */
START_TEST(overflow)
{
	char *buf = pages(2, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	setup();
	ck_errno(ibv_reg_mr(pd, buf, SIZE_MAX, 0), EINVAL);
	ck_errno(ibv_reg_mr(pd, buf, SIZE_MAX - (uintptr_t)buf + 1, 0), EINVAL);
	ck_errno(ibv_reg_mr_iova(pd, buf, 2 * PAGE, -PAGE, 0), EINVAL);
	mr = ibv_reg_mr(pd, buf, PAGE, 0);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	teardown();
}
END_TEST

/*
 * Length 0, as the kernel's ib_umem_get() counts pages: none at the start of
 * a page (EINVAL), one page elsewhere, which must be mapped.
 */
START_TEST(length_0)
{
	char *buf = pages(2, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	setup();
	ck_errno(ibv_reg_mr(pd, buf, 0, ALL_ACCESS), EINVAL);
	ck_errno(ibv_reg_mr(pd, NULL, 0, 0), EINVAL);
	ck_errno(ibv_reg_mr(pd, buf, 0, IBV_ACCESS_ON_DEMAND), EINVAL);
	mr = ibv_reg_mr(pd, buf + 8, 0, ALL_ACCESS);
	ck_nonnull(mr);
	ck_assert_uint_eq(mr->length, 0);
	ck_ok(ibv_dereg_mr(mr));
	munmap(buf, PAGE);
	ck_errno(ibv_reg_mr(pd, buf + 8, 0, ALL_ACCESS), EFAULT);
	teardown();
}
END_TEST

/* Address and iova must have the same offset in a page. */
START_TEST(iova_page_offset)
{
	char *buf = pages(2, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	setup();
	ck_errno(ibv_reg_mr_iova(pd, buf, PAGE, 8, ALL_ACCESS), EINVAL);
	ck_errno(ibv_reg_mr_iova(pd, buf + 8, PAGE, 0, ALL_ACCESS), EINVAL);
	mr = ibv_reg_mr_iova(pd, buf + 8, PAGE, PAGE + 8, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	teardown();
}
END_TEST

/*
 * With URXE_MEMLOCK=enforce, registered pages are charged to RLIMIT_MEMLOCK
 * as by ib_umem_get() for a process without CAP_IPC_LOCK: ENOMEM above the
 * limit, EPERM if it is 0.
 */
START_TEST(memlock)
{
	char *buf = pages(20, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr, *more, *demand;

	ck_ok(setenv("URXE_MEMLOCK", "enforce", 1));
	setup();
	limit_memlock(16 * PAGE);
	ck_errno(ibv_reg_mr(pd, buf, 17 * PAGE, 0), ENOMEM);
	mr = ibv_reg_mr(pd, buf, 16 * PAGE, 0);
	ck_nonnull(mr);
	demand = ibv_reg_mr(pd, buf, 20 * PAGE, IBV_ACCESS_ON_DEMAND);
	ck_nonnull(demand);
	ck_errno(ibv_reg_mr(pd, buf, 1, 0), ENOMEM);
	ck_ok(ibv_dereg_mr(mr));
	/* partial pages count as pages, and each MR counts its own */
	mr = ibv_reg_mr(pd, buf + PAGE - 1, 6 * PAGE + 2, 0);
	more = ibv_reg_mr(pd, buf + PAGE - 1, 6 * PAGE + 2, 0);
	ck_nonnull(mr);
	ck_nonnull(more);
	ck_errno(ibv_reg_mr(pd, buf, 1, 0), ENOMEM);
	/* a registration that fails is not charged */
	ck_ok(ibv_dereg_mr(more));
	munmap(buf + 19 * PAGE, PAGE);
	ck_errno(ibv_reg_mr(pd, buf + 16 * PAGE, 4 * PAGE, 0), EFAULT);
	/* ibv_rereg_mr charges the new range before the old one is freed */
	ck_assert_int_ne(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      buf, 9 * PAGE, 0),
			 0);
	ck_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf,
			   8 * PAGE, 0));
	more = ibv_reg_mr(pd, buf, 8 * PAGE, 0);
	ck_nonnull(more);
	ck_errno(ibv_reg_mr(pd, buf, 1, 0), ENOMEM);
	ck_ok(ibv_dereg_mr(more));
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dereg_mr(demand));
	limit_memlock(0);
	ck_errno(ibv_reg_mr(pd, buf, 1, 0), EPERM);
	teardown();
}
END_TEST

/* Pages are charged to an address space: a child starts with none. */
START_TEST(memlock_fork)
{
	char *buf = pages(16, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr, *other;
	pid_t pid;

	ck_ok(setenv("URXE_MEMLOCK", "enforce", 1));
	setup();
	limit_memlock(16 * PAGE);
	mr = ibv_reg_mr(pd, buf, 16 * PAGE, 0);
	ck_nonnull(mr);
	pid = fork();
	if (!pid) {
		other = ibv_reg_mr(pd, buf, 16 * PAGE, 0);
		if (!other || ibv_reg_mr(pd, buf, 1, 0) || errno != ENOMEM)
			_exit(1);
		_exit(ibv_dereg_mr(other));
	}
	ck_assert_int_eq(reap_child(pid), 0);
	ck_errno(ibv_reg_mr(pd, buf, 1, 0), ENOMEM);
	ck_ok(ibv_dereg_mr(mr));
	teardown();
}
END_TEST

/* Without URXE_MEMLOCK the limit is not enforced. */
START_TEST(memlock_off)
{
	char *buf = pages(2, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	unsetenv("URXE_MEMLOCK");
	setup();
	limit_memlock(PAGE);
	mr = ibv_reg_mr(pd, buf, 2 * PAGE, 0);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	teardown();
}
END_TEST

/* MRs may overlap; each has a key of its own. */
START_TEST(overlapping_mrs)
{
	char *buf = pages(2, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr[50];
	int i, j;

	setup();
	for (i = 0; i < 50; i++) {
		mr[i] = ibv_reg_mr(pd, buf + i, PAGE, ALL_ACCESS);
		ck_nonnull(mr[i]);
		for (j = 0; j < i; j++)
			ck_assert_uint_ne(mr[i]->rkey, mr[j]->rkey);
	}
	for (i = 0; i < 50; i++)
		ck_ok(ibv_dereg_mr(mr[i]));
	teardown();
}
END_TEST

/*
 * Each context can have URXE_MAX_MR MRs and MWs together; one more is ENOMEM.
 */
START_TEST(max_mrs)
{
	static struct ibv_mr *mr[URXE_MAX_MR + 1];
	char *buf = pages(1, PROT_READ | PROT_WRITE);
	struct ibv_context *other;
	struct ibv_pd *other_pd;
	int i;

	setup();
	other = open_device();
	other_pd = ibv_alloc_pd(other);
	ck_nonnull(other_pd);
	for (i = 0; i < URXE_MAX_MR; i++) {
		mr[i] = ibv_reg_mr(pd, buf, 8, 0);
		ck_nonnull(mr[i]);
	}
	ck_assert_int_ge(i, 20000);
	ck_errno(ibv_reg_mr(pd, buf, 8, 0), ENOMEM);
	ck_errno(ibv_alloc_mw(pd, IBV_MW_TYPE_1), ENOMEM);
	mr[i] = ibv_reg_mr(other_pd, buf, 8, 0);
	ck_nonnull(mr[i]);
	ck_ok(ibv_dereg_mr(mr[5]));
	mr[5] = ibv_reg_mr(pd, buf, 8, 0);
	ck_nonnull(mr[5]);
	for (i = 0; i <= URXE_MAX_MR; i++)
		ck_ok(ibv_dereg_mr(mr[i]));
	ck_ok(ibv_dealloc_pd(other_pd));
	ck_ok(ibv_close_device(other));
	teardown();
}
END_TEST

/* ------------------------------------------------- what the keys reach */

/*
 * Post one RDMA WRITE from a's buffer to @addr by @rkey and return its
 * status. After an error, reconnect.
 */
static enum ibv_wc_status write_to(struct duo *d, uint64_t addr, uint32_t rkey,
				   uint32_t len)
{
	struct ibv_sge sge = node_sge(&d->a, 0, len);
	struct ibv_send_wr wr = rdma_wr(d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	enum ibv_wc_status status;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	ck_ok(post_wr(d->a.qp, &wr));
	status = wait_wc(d->a.scq).status;
	if (status != IBV_WC_SUCCESS)
		duo_renew(d);
	return status;
}

/* The same from local memory at @addr by @lkey to b's buffer. */
static enum ibv_wc_status send_from(struct duo *d, uint64_t addr, uint32_t lkey,
				    uint32_t len)
{
	struct ibv_sge sge = { addr, len, lkey };
	struct ibv_send_wr wr = rdma_wr(d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);
	enum ibv_wc_status status;

	ck_ok(post_wr(d->a.qp, &wr));
	status = wait_wc(d->a.scq).status;
	if (status != IBV_WC_SUCCESS)
		duo_renew(d);
	return status;
}

struct extra {
	struct ibv_mr *mr;
	uint32_t rkey;
	uint64_t addr, iova;
	size_t off, len;
	int access;
	bool with_iova;
};

/* Register a second MR inside of b's buffer. */
static void do_extra(struct node *b, void *arg)
{
	struct extra *e = arg;
	char *p = (char *)b->buf + e->off;

	if (e->with_iova)
		e->mr = ibv_reg_mr_iova(b->pd, p, e->len, e->iova, e->access);
	else
		e->mr = ibv_reg_mr(b->pd, p, e->len, e->access);
	ck_nonnull(e->mr);
	e->rkey = e->mr->rkey;
	e->addr = (uintptr_t)p;
}

static void do_dereg(struct node *b, void *arg)
{
	struct extra *e = arg;

	(void)b;
	ck_ok(ibv_dereg_mr(e->mr));
}

/* An rkey gives access to exactly its range, until ibv_dereg_mr. */
START_TEST(exact_range)
{
	struct extra e = { .off = 1000, .len = 77, .access = ALL_ACCESS };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 4096, 1);
	on_b(&d, do_extra, &e, sizeof(e));
	ck_assert_int_eq(write_to(&d, e.addr, e.rkey, 77), IBV_WC_SUCCESS);
	ck_assert_int_eq(write_to(&d, e.addr + 76, e.rkey, 1), IBV_WC_SUCCESS);
	ck_assert_int_eq(write_to(&d, e.addr, e.rkey, 78),
			 IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(write_to(&d, e.addr + 77, e.rkey, 1),
			 IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(write_to(&d, e.addr - 1, e.rkey, 1),
			 IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(write_to(&d, 0, e.rkey, 1), IBV_WC_REM_ACCESS_ERR);
	/* address + length wraps to a small number */
	ck_assert_int_eq(write_to(&d, UINT64_MAX - 3, e.rkey, 8),
			 IBV_WC_REM_ACCESS_ERR);
	ck_assert(b_all(&d, 0, 1000, 0));
	ck_assert(b_all(&d, 1077, 4096, 0));
	on_b(&d, do_dereg, &e, sizeof(e));
	ck_assert_int_eq(write_to(&d, e.addr, e.rkey, 77),
			 IBV_WC_REM_ACCESS_ERR);
	duo_close(&d);
}
END_TEST

/* With IBV_ACCESS_ZERO_BASED, WRs use offsets in the MR as addresses. */
START_TEST(zero_based)
{
	struct extra e = { .off = 4096 + 24,
			   .len = 100,
			   .access = ALL_ACCESS | IBV_ACCESS_ZERO_BASED };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 100, 3);
	on_b(&d, do_extra, &e, sizeof(e));
	ck_assert_int_eq(write_to(&d, 0, e.rkey, 100), IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 4096 + 24, 100, 3));
	ck_assert_int_eq(write_to(&d, 99, e.rkey, 1), IBV_WC_SUCCESS);
	ck_assert_int_eq(write_to(&d, 99, e.rkey, 2), IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(write_to(&d, e.addr, e.rkey, 1),
			 IBV_WC_REM_ACCESS_ERR);
	on_b(&d, do_dereg, &e, sizeof(e));
	duo_close(&d);
}
END_TEST

/* WRs use the iova of ibv_reg_mr_iova as address, not that of the buffer. */
START_TEST(iova)
{
	const uint64_t iova = 0x7000000000010000ull;
	struct extra e = { .off = 0,
			   .len = 5000,
			   .access = ALL_ACCESS,
			   .with_iova = true,
			   .iova = iova };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 5000, 4);
	on_b(&d, do_extra, &e, sizeof(e));
	ck_assert_int_eq(write_to(&d, iova + 1000, e.rkey, 4000),
			 IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 1000, 4000, 4));
	ck_assert(b_all(&d, 0, 1000, 0));
	ck_assert_int_eq(write_to(&d, iova + 1000, e.rkey, 4001),
			 IBV_WC_REM_ACCESS_ERR);
	ck_assert_int_eq(write_to(&d, e.addr, e.rkey, 1),
			 IBV_WC_REM_ACCESS_ERR);
	on_b(&d, do_dereg, &e, sizeof(e));
	duo_close(&d);
}
END_TEST

/* The same for lkeys. */
START_TEST(iova_for_local_access)
{
	struct opts o = default_opts();
	struct ibv_mr *mr, *zero;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 4096, 4096, 9);
	mr = ibv_reg_mr_iova(d.a.pd, (char *)d.a.buf + 4096, 4096, 0x40000, 0);
	zero = ibv_reg_mr(d.a.pd, (char *)d.a.buf + 4096, 4096,
			  IBV_ACCESS_ZERO_BASED);
	ck_nonnull(mr);
	ck_nonnull(zero);
	ck_assert_int_eq(send_from(&d, 0x40000, mr->lkey, 4096),
			 IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 0, 4096, 9));
	ck_assert_int_eq(send_from(&d, 0x40001, mr->lkey, 4096),
			 IBV_WC_LOC_PROT_ERR);
	node_fill(&d.a, 4096, 4096, 10);
	ck_assert_int_eq(send_from(&d, 0, zero->lkey, 4096), IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 0, 4096, 10));
	ck_assert_int_eq(
		send_from(&d, (uintptr_t)d.a.buf + 4096, zero->lkey, 1),
		IBV_WC_LOC_PROT_ERR);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_dereg_mr(zero));
	duo_close(&d);
}
END_TEST

/* Local read access is always enabled (man ibv_reg_mr). */
START_TEST(local_read_without_any_flag)
{
	struct opts o = default_opts();
	struct ibv_mr *mr;
	uint32_t lkey;
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 64, 2);
	mr = ibv_reg_mr(d.a.pd, d.a.buf, 64, 0);
	ck_nonnull(mr);
	ck_assert_int_eq(send_from(&d, (uintptr_t)d.a.buf, mr->lkey, 64),
			 IBV_WC_SUCCESS);
	ck_assert(b_has(&d, 0, 64, 2));
	lkey = mr->lkey;
	ck_ok(ibv_dereg_mr(mr));
	ck_assert_int_eq(send_from(&d, (uintptr_t)d.a.buf, lkey, 64),
			 IBV_WC_LOC_PROT_ERR);
	duo_close(&d);
}
END_TEST

/*
 * The rkey of a deregistered MR gives no access, also if other MRs are
 * registered afterwards.
 */
START_TEST(stale_keys)
{
	struct extra e = { .off = 0, .len = 64, .access = ALL_ACCESS }, old;
	struct opts o = default_opts();
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_extra, &e, sizeof(e));
	old = e;
	on_b(&d, do_dereg, &e, sizeof(e));
	for (i = 0; i < 20; i++) {
		on_b(&d, do_extra, &e, sizeof(e));
		ck_assert_uint_ne(e.rkey, old.rkey);
		ck_assert_int_eq(write_to(&d, old.addr, old.rkey, 8),
				 IBV_WC_REM_ACCESS_ERR);
		on_b(&d, do_dereg, &e, sizeof(e));
	}
	duo_close(&d);
}
END_TEST

/* More MRs than one page of the key table has; all of them are usable. */
START_TEST(many_mrs_in_use)
{
	struct opts o = default_opts();
	struct extra e[300];
	struct duo d;
	int i;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 300; i++) {
		e[i] = (struct extra){ .off = i * 8,
				       .len = 8,
				       .access = ALL_ACCESS };
		on_b(&d, do_extra, &e[i], sizeof(e[i]));
	}
	for (i = 0; i < 300; i++) {
		node_fill(&d.a, 0, 8, i);
		ck_assert_int_eq(write_to(&d, e[i].addr, e[i].rkey, 8),
				 IBV_WC_SUCCESS);
	}
	for (i = 0; i < 300; i++) {
		ck_assert(b_has(&d, i * 8, 8, i));
		on_b(&d, do_dereg, &e[i], sizeof(e[i]));
	}
	duo_close(&d);
}
END_TEST

/*
 * Return this process's descriptor of a file .../maps, or -1. Assert that it
 * has at most one.
 */
static int maps_kept(void)
{
	char path[64], to[256];
	struct dirent *de;
	int found = -1;
	ssize_t n;
	DIR *dir = opendir("/proc/self/fd");

	ck_nonnull(dir);
	while ((de = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%.20s", de->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		if (n <= 5 || memcmp(to + n - 5, "/maps", 5))
			continue;
		ck_assert_int_eq(found, -1);
		found = atoi(de->d_name);
	}
	closedir(dir);
	return found;
}

/* Return whether the page at @at can be registered. */
static bool may_register(char *at)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, PAGE, IBV_ACCESS_LOCAL_WRITE);

	if (!mr) {
		ck_assert_int_eq(errno, EFAULT);
		return false;
	}
	ck_ok(ibv_dereg_mr(mr));
	return true;
}

/*
 * Registration in a child checks the child's address space, not that of the
 * parent, whose descriptor of /proc/self/maps it inherits.
 */
START_TEST(memory_of_a_child)
{
	char *old = pages(1, PROT_READ | PROT_WRITE), *new;
	int status;
	pid_t pid;

	setup();
	ck_assert(may_register(old));
	ck_assert(may_register(old));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		new = pages(1, PROT_READ | PROT_WRITE);
		munmap(old, PAGE);
		if (!may_register(new) || may_register(old))
			_exit(1);
		maps_kept(); /* at most one: the parent's is closed */
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert(may_register(old));
	teardown();
	ck_assert_int_eq(maps_kept(), -1);
}
END_TEST

/*
 * The program closes the library's descriptor of /proc/self/maps and opens a
 * file with the same number. Registration does not use that file, and
 * ibv_close_device does not close it.
 */
START_TEST(proc_maps_descriptor_reused)
{
	char *old = pages(1, PROT_READ | PROT_WRITE), *new, path[64];
	int fd, other;
	struct stat before, after;
	pid_t pid;

	setup();
	ck_assert(may_register(old));
	fd = maps_kept();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid)
		for (;;)
			pause();
	new = pages(1, PROT_READ | PROT_WRITE);
	munmap(old, PAGE);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	other = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(other, 0);
	if (fd >= 0) /* kept since Linux 6.11 */
		ck_assert_int_eq(dup2(other, fd), fd);
	ck_ok(fstat(other, &before));
	ck_assert(may_register(new));
	ck_assert(!may_register(old));
	teardown();
	ck_ok(fstat(fd >= 0 ? fd : other, &after));
	ck_assert_uint_eq(after.st_ino, before.st_ino);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

int main(void)
{
	Suite *s = suite("mr");

	add(s, fields);
	add(s, access_rules);
	add(s, unmapped);
	add(s, behind_the_end_of_a_file);
	add(s, no_room_for_the_file);
	add(s, read_only);
	add(s, overflow);
	add(s, length_0);
	add(s, iova_page_offset);
	add(s, memlock);
	add(s, memlock_fork);
	add(s, memlock_off);
	add(s, overlapping_mrs);
	add(s, memory_of_a_child);
	add(s, proc_maps_descriptor_reused);
	add(s, max_mrs);
	add_loop(s, exact_range, WHERE_COUNT);
	add_loop(s, zero_based, WHERE_COUNT);
	add_loop(s, iova, WHERE_COUNT);
	add_loop(s, iova_for_local_access, WHERE_COUNT);
	add_loop(s, local_read_without_any_flag, WHERE_COUNT);
	add_loop(s, stale_keys, WHERE_COUNT);
	add_loop(s, many_mrs_in_use, WHERE_COUNT);
	return run_unloaded(s);
}
