// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_reg_dmabuf_mr on memfds and regular files: each descriptor that can be
 * mapped is accepted (docs/deviations.md).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../access.h"
#include "../harness.h"

#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))
#define SIZE (8 * PAGE)

static int memory_fd(uint64_t size)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_ok(ftruncate(fd, (off_t)size));
	return fd;
}

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

/*
 * addr of the MR is the offset, length that of the call. ibv_rereg_mr refuses
 * the MR.
 */
START_TEST(fields)
{
	int fd = memory_fd(SIZE);
	struct ibv_mr *mr;

	setup();
	mr = ibv_reg_dmabuf_mr(pd, PAGE + 8, 100, 0x10008, fd, ALL_ACCESS);
	ck_nonnull(mr);
	ck_assert_ptr_eq(mr->pd, pd);
	ck_assert_uint_eq(mr->length, 100);
	ck_assert_uint_eq((uintptr_t)mr->addr, PAGE + 8);
	ck_assert_int_eq(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	ck_ok(ibv_dereg_mr(mr));
	close(fd);
	teardown();
}
END_TEST

/*
 * EBADF for a bad descriptor, EACCES for write access by a read-only one,
 * EINVAL for other invalid arguments.
 */
START_TEST(register_errors)
{
	int fd = memory_fd(SIZE), pipefd[2], ro, name;
	struct ibv_mr *mr;
	char path[64];

	setup();
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, -1, 0), EBADF);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, 9999, 0), EBADF);
	/* offset and iova with different page offsets */
	ck_errno(ibv_reg_dmabuf_mr(pd, 8, PAGE, 0, fd, 0), EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 16, fd, 0), EINVAL);
	/* beyond the end of the file; a range that wraps */
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, SIZE + 1, 0, fd, 0), EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, SIZE, 1, 0, fd, 0), EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, UINT64_MAX - PAGE + 1, PAGE, 0, fd, 0),
		 EINVAL);
	/* access flags that are invalid or not supported for this verb */
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, IBV_ACCESS_MW_BIND),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, IBV_ACCESS_ON_DEMAND),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, IBV_ACCESS_ZERO_BASED),
		 EINVAL);
	/* length 0: no page at a page boundary, else one page */
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, 0, 0, fd, ALL_ACCESS), EINVAL);
	mr = ibv_reg_dmabuf_mr(pd, 8, 0, 8, fd, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	/* a pipe cannot be mapped */
	ck_ok(pipe(pipefd));
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, pipefd[0], 0), EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, pipefd[0], ALL_ACCESS),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, pipefd[1], 0), EINVAL);
	close(pipefd[0]);
	close(pipefd[1]);
	/* a read-only descriptor; an O_PATH descriptor */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(ro, 0);
	name = open(path, O_PATH | O_CLOEXEC);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, name, 0), EBADF);
	close(name);
	ck_errno(ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, ro, ALL_ACCESS), EACCES);
	mr = ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, ro, IBV_ACCESS_REMOTE_READ);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	mr = ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd,
			       IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_RELAXED_ORDERING);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	close(ro);
	close(fd);
	teardown();
}
END_TEST

struct buf {
	int fd;
	uint64_t offset, iova;
	uint32_t rkey;
	bool keep_fd;
	char path[64];
};

static void do_reg(struct node *b, void *arg)
{
	struct buf *f = arg;
	struct ibv_mr *mr;

	if (f->path[0])
		f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			     0600);
	else
		f->fd = memfd_create("dmabuf", MFD_CLOEXEC);
	ck_assert_int_ge(f->fd, 0);
	ck_ok(ftruncate(f->fd, (off_t)SIZE));
	mr = ibv_reg_dmabuf_mr(b->pd, f->offset, 2 * PAGE, f->iova, f->fd,
			       ALL_ACCESS);
	ck_nonnull(mr);
	if (!f->keep_fd)
		close(f->fd); /* the MR holds its own reference */
	f->rkey = mr->rkey;
	b->user = mr;
}

/*
 * Read the 64 bytes that a wrote from the file, without the MR, into f->path.
 */
static void do_look(struct node *b, void *arg)
{
	struct buf *f = arg;
	uint8_t got[64];

	(void)b;
	ck_assert_int_eq(pread(f->fd, got, 64, (off_t)(f->offset + 100)), 64);
	memcpy(f->path, got, 64);
}

static void do_dereg(struct node *b, void *arg)
{
	struct buf *f = arg;

	ck_ok(ibv_dereg_mr(b->user));
	if (f->keep_fd)
		close(f->fd);
}

/*
 * WRITEs within the MR change the file (checked if f->keep_fd); WRITEs
 * outside of it, and after ibv_dereg_mr, are REM_ACCESS_ERR.
 */
static void run_traffic(struct duo *d, struct buf *f)
{
	uint8_t want[64];

	node_fill(&d->a, 0, 8192, 7);
	on_b(d, do_reg, f, sizeof(*f));
	ck_write(d, f->iova + 100, f->rkey, 64, IBV_WC_SUCCESS);
	ck_write(d, f->iova + 2 * PAGE, f->rkey, 1, IBV_WC_REM_ACCESS_ERR);
	ck_write(d, f->iova - 1, f->rkey, 1, IBV_WC_REM_ACCESS_ERR);
	if (f->keep_fd) {
		struct buf seen = *f;

		node_get(&d->a, 0, want, 64);
		on_b(d, do_look, &seen, sizeof(seen));
		ck_assert_mem_eq(seen.path, want, 64);
	}
	node_fill(&d->a, 0, 64, 8);
	ck_read(d, f->iova + 100, f->rkey, 64, IBV_WC_SUCCESS);
	ck_assert(node_has(&d->a, 0, 64, 7));
	on_b(d, do_dereg, f, sizeof(*f));
	ck_write(d, f->iova, f->rkey, 1, IBV_WC_REM_ACCESS_ERR);
}

/* Remote access to an MR whose descriptor stays open. */
START_TEST(remote_access)
{
	struct buf f = { .offset = PAGE + 16,
			 .iova = 16 * PAGE + 16,
			 .keep_fd = true };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	run_traffic(&d, &f);
	duo_close(&d);
}
END_TEST

/* The MR works after the program has closed the descriptor. */
START_TEST(descriptor_closed)
{
	struct buf f = { .offset = 0, .iova = PAGE };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	run_traffic(&d, &f);
	duo_close(&d);
}
END_TEST

/* A regular file can be mapped, so it can be registered, too. */
START_TEST(file)
{
	struct buf f = { .offset = PAGE, .iova = 4 * PAGE, .keep_fd = true };
	struct opts o = default_opts();
	struct duo d;

	snprintf(f.path, sizeof(f.path), "/tmp/urxe-test-%d-%d", getpid(), _i);
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	run_traffic(&d, &f);
	unlink(f.path);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("dmabuf");

	add(s, fields);
	add(s, register_errors);
	add_loop(s, remote_access, WHERE_COUNT);
	add_loop(s, descriptor_closed, WHERE_COUNT);
	add_loop(s, file, WHERE_COUNT);
	return run(s);
}
