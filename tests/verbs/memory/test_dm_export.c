// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_dm_export_dmabuf_fd: descriptors of device memory (DM), which
 * ibv_reg_dmabuf_mr accepts in this and in other processes. libibverbs has
 * the verb from release 62; it is looked up with dlsym(), and the program is
 * skipped (status 77) if it is missing.
 *
 * With a duo, node b allocates and exports the DM, and node a registers the
 * descriptor.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../types.h"

#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))

static int (*export_fd)(struct ibv_dm *);

static struct ibv_dm *make_dm(struct ibv_context *ctx, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(ctx, &attr);
}

/* Return whether no device memory is in use: all of it can be allocated. */
static bool heap_is_free(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr;
	struct ibv_dm *all;

	ck_ok(ibv_query_device_ex(ctx, NULL, &attr));
	all = make_dm(ctx, attr.max_dm_size);
	if (all)
		ck_ok(ibv_free_dm(all));
	return all;
}

/*
 * The DM of node b, valid where b runs; the sockets that pass its descriptor.
 */
static struct ibv_dm *theirs;
static int pipes[2];

struct piece {
	uint64_t length;
	uint8_t byte;
};

static void do_export(struct node *b, void *arg)
{
	struct piece *p = arg;
	int fd, flags;

	theirs = make_dm(b->ctx, p->length);
	ck_nonnull(theirs);
	fd = export_fd(theirs);
	ck_assert_msg(fd >= 0, "%s", strerror(errno));
	flags = fcntl(fd, F_GETFD);
	ck_assert(flags & FD_CLOEXEC);
	send_fd(pipes[1], fd);
	close(fd);
}

static int exported(struct duo *d, enum where where, uint64_t length)
{
	struct piece p = { .length = length };
	struct opts o = default_opts();

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes));
	duo_open(d, where, MEM_HEAP, MEM_HEAP, &o);
	on_b(d, do_export, &p, sizeof(p));
	return recv_fd(pipes[0]);
}

static void do_free(struct node *b, void *arg)
{
	(void)b;
	(void)arg;
	ck_ok(ibv_free_dm(theirs));
}

static void unexport(struct duo *d, int fd)
{
	close(fd);
	close(pipes[0]);
	close(pipes[1]);
	duo_close(d);
}

/* Access the DM on b as its owner, by memcpy_to_dm and memcpy_from_dm. */
static void do_put(struct node *b, void *arg)
{
	struct piece *p = arg;
	uint8_t page[64];

	(void)b;
	memset(page, p->byte, sizeof(page));
	ck_ok(theirs->memcpy_to_dm(theirs, PAGE, page, sizeof(page)));
}

static void do_get(struct node *b, void *arg)
{
	struct piece *p = arg;
	uint8_t page[64];

	(void)b;
	ck_ok(theirs->memcpy_from_dm(page, theirs, PAGE, sizeof(page)));
	p->byte = page[0];
	ck_assert(!memcmp(page, page + 1, sizeof(page) - 1));
}

static void move(struct duo *d, enum ibv_wr_opcode op, struct ibv_mr *mr,
		 uint64_t addr, size_t b_off)
{
	struct ibv_sge sge = { .addr = addr, .length = 64, .lkey = mr->lkey };
	struct ibv_send_wr wr = rdma_wr(d, op, 1, &sge, 1, b_off);

	ck_ok(post_wr(d->a.qp, &wr));
	expect(d->a.scq, 1, IBV_WC_SUCCESS);
}

/* An MR of the descriptor and the owner's DM calls access the same memory. */
START_TEST(same_memory)
{
	struct piece p = { .byte = 0x5a };
	const uint64_t iova = 16 * PAGE;
	struct ibv_mr *mr;
	struct duo d;
	int fd;

	fd = exported(&d, _i, 3 * PAGE);
	mr = ibv_reg_dmabuf_mr(d.a.pd, PAGE, PAGE, iova, fd, ALL_ACCESS);
	ck_nonnull(mr);
	on_b(&d, do_put, &p, sizeof(p));
	move(&d, IBV_WR_RDMA_WRITE, mr, iova, 128);
	ck_assert(b_all(&d, 128, 64, 0x5a));
	b_fill(&d, 256, 64, 1);
	move(&d, IBV_WR_RDMA_READ, mr, iova, 256);
	move(&d, IBV_WR_RDMA_WRITE, mr, iova, 512);
	ck_assert(b_has(&d, 512, 64, 1));
	move(&d, IBV_WR_RDMA_READ, mr, iova, 1024); /* reads zeros */
	on_b(&d, do_get, &p, sizeof(p));
	ck_assert_uint_eq(p.byte, 0);
	ck_ok(ibv_dereg_mr(mr));
	on_b(&d, do_free, NULL, 0);
	ck_assert(heap_is_free(d.a.ctx));
	unexport(&d, fd);
}
END_TEST

/*
 * A range beyond the end of the DM, or one that wraps, is EINVAL: other
 * allocations are next to it in the heap. So is an iova with another page
 * offset than the range.
 */
START_TEST(bounds)
{
	struct ibv_dm *before, *behind;
	struct ibv_mr *mr;
	struct duo d;
	int fd;

	fd = exported(&d, _i, PAGE + 100);
	before = make_dm(d.a.ctx, PAGE);
	behind = make_dm(d.a.ctx, PAGE);
	ck_nonnull(before);
	ck_nonnull(behind);
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), PAGE + 100);
	mr = ibv_reg_dmabuf_mr(d.a.pd, 0, PAGE + 100, 0, fd, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	mr = ibv_reg_dmabuf_mr(d.a.pd, PAGE, 100, 0, fd, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_errno(ibv_reg_dmabuf_mr(d.a.pd, 0, PAGE + 101, 0, fd, ALL_ACCESS),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(d.a.pd, PAGE, PAGE, 0, fd, ALL_ACCESS),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(d.a.pd, 2 * PAGE, 1, 0, fd, ALL_ACCESS),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(d.a.pd, -PAGE, PAGE, 0, fd, ALL_ACCESS),
		 EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(d.a.pd, 0, PAGE, 8, fd, ALL_ACCESS), EINVAL);
	ck_errno(ibv_reg_dmabuf_mr(d.a.pd, 0, PAGE, -PAGE + 8, fd, ALL_ACCESS),
		 EINVAL);
	/* the failed registrations hold nothing */
	ck_ok(ibv_free_dm(before));
	ck_ok(ibv_free_dm(behind));
	on_b(&d, do_free, NULL, 0);
	ck_assert(heap_is_free(d.a.ctx));
	unexport(&d, fd);
}
END_TEST

/*
 * The descriptor gives no access to the file of the heap: mmap, read, write
 * and ftruncate fail. A kernel's dma-buf of device memory cannot be mapped
 * either.
 */
START_TEST(not_mappable)
{
	char byte = 1;
	struct duo d;
	void *p;
	int fd;

	fd = exported(&d, _i, PAGE);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_eq(p, MAP_FAILED);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_eq(p, MAP_FAILED);
	ck_assert_int_eq(pread(fd, &byte, 1, 0), -1);
	ck_assert_int_eq(pwrite(fd, &byte, 1, 0), -1);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	on_b(&d, do_free, NULL, 0);
	unexport(&d, fd);
}
END_TEST

/*
 * A descriptor holds no reference to the DM: after ibv_free_dm it cannot be
 * registered (ENOENT). An MR holds a reference to its part of the DM until it
 * is deregistered.
 */
START_TEST(freed)
{
	struct piece p = { .byte = 0x77 };
	struct ibv_dm *other;
	struct ibv_mr *mr;
	struct duo d;
	int fd;

	fd = exported(&d, _i, 2 * PAGE);
	on_b(&d, do_put, &p, sizeof(p));
	mr = ibv_reg_dmabuf_mr(d.a.pd, PAGE, 64, 0, fd, ALL_ACCESS);
	ck_nonnull(mr);
	on_b(&d, do_free, NULL, 0);
	ck_errno(ibv_reg_dmabuf_mr(d.a.pd, 0, PAGE, 0, fd, ALL_ACCESS), ENOENT);
	ck_assert(!heap_is_free(d.a.ctx));
	other = make_dm(d.a.ctx, 4 * PAGE); /* zeroed; not the MR's pages */
	ck_nonnull(other);
	move(&d, IBV_WR_RDMA_WRITE, mr, 0, 128);
	ck_assert(b_all(&d, 128, 64, 0x77));
	ck_ok(ibv_free_dm(other));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(heap_is_free(d.a.ctx));
	unexport(&d, fd);
}
END_TEST

/*
 * The heap slot of an MR's part of the DM is no DM handle: ibv_import_dm
 * fails with ENOENT.
 */
START_TEST(mr_part_is_no_dm_handle)
{
	struct opts o = default_opts();
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct node n;
	uint32_t i;
	int fd;

	node_open(&n, NULL, MEM_HEAP, &o);
	dm = make_dm(n.ctx, PAGE);
	ck_nonnull(dm);
	fd = export_fd(dm);
	ck_assert_int_ge(fd, 0);
	mr = ibv_reg_dmabuf_mr(n.pd, 0, PAGE, 0, fd, ALL_ACCESS);
	ck_nonnull(mr);
	for (i = 0; i < 16; i++)
		if (i != dm->handle)
			ck_errno(ibv_import_dm(n.ctx, i), ENOENT);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(ibv_free_dm(dm));
	close(fd);
	node_close(&n);
}
END_TEST

/*
 * If the owner of the DM is killed, an MR of the descriptor keeps its part of
 * the DM until it is deregistered.
 */
START_TEST(owner_killed)
{
	struct piece p = { .byte = 0x33 };
	struct opts o = default_opts();
	struct ibv_mr *mr;
	struct node n;
	struct duo d, own;
	int fd;

	fd = exported(&d, TWO_PROCESSES, 2 * PAGE);
	on_b(&d, do_put, &p, sizeof(p));
	mr = ibv_reg_dmabuf_mr(d.a.pd, PAGE, 64, 0, fd, ALL_ACCESS);
	ck_nonnull(mr);
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	node_open(&n, NULL, MEM_HEAP, &o); /* reaps dead contexts */
	ck_assert(!heap_is_free(n.ctx));
	duo_open(&own, SAME_CONTEXT, MEM_HEAP, MEM_HEAP, &o);
	node_close(&n);
	/* connect a new QP in the PD of the MR with own.b */
	ck_ok(ibv_destroy_qp(d.a.qp));
	node_make_qp(&d.a);
	own.at_a = node_addr(&d.a);
	ck_ok(ibv_destroy_qp(own.b.qp));
	node_make_qp(&own.b);
	d.at_b = node_addr(&own.b);
	node_connect(&own.b, &own.at_a);
	node_connect(&d.a, &d.at_b);
	move(&d, IBV_WR_RDMA_WRITE, mr, 0, 0);
	ck_assert(node_all(&own.b, 0, 64, 0x33));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(heap_is_free(d.a.ctx));
	duo_close(&own);
	node_close(&d.a);
	close(fd);
}
END_TEST

/* Register the descriptor that the parent sends, and keep the MR. */
static void do_register(struct node *b, void *arg)
{
	int fd = recv_fd(pipes[1]);

	(void)arg;
	ck_nonnull(ibv_reg_dmabuf_mr(b->pd, 0, PAGE, 0, fd, ALL_ACCESS));
}

/*
 * If the process that registered the descriptor is killed, the owner can
 * still use and free the DM, and no device memory stays in use.
 */
START_TEST(importer_killed)
{
	struct opts o = default_opts();
	struct ibv_dm *dm;
	struct node n;
	struct duo d;
	char byte[4] = "abc", back[4];
	int fd;

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes));
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	dm = make_dm(d.a.ctx, PAGE);
	ck_nonnull(dm);
	fd = export_fd(dm);
	ck_assert_int_ge(fd, 0);
	send_fd(pipes[0], fd);
	close(fd);
	on_b(&d, do_register, NULL, 0);
	ck_ok(dm->memcpy_to_dm(dm, 0, byte, 4));
	kill(d.pid, SIGKILL);
	ck_assert_int_eq(reap_child(d.pid), -SIGKILL);
	node_open(&n, NULL, MEM_HEAP, &o);
	ck_ok(dm->memcpy_from_dm(back, dm, 0, 4));
	ck_assert_mem_eq(back, byte, 4);
	ck_ok(ibv_free_dm(dm));
	ck_assert(heap_is_free(n.ctx));
	node_close(&n);
	node_close(&d.a);
}
END_TEST

/*
 * memfds with names like those of exported DM. If the name is that of another
 * fabric's DM, registration is EINVAL. If it is not in the format, the memfd
 * is an ordinary one.
 */
START_TEST(other_memfds)
{
	static const struct {
		const char *name;
		int err;
	} bad[] = {
		{ "urxe-dm:1:2:0:1", EINVAL }, /* another fabric's DM */
		{ "urxe-dm:1:2:0", 0 }, /* an ordinary memfd */
	};
	struct opts o = default_opts();
	struct ibv_mr *mr;
	struct node n;
	size_t i;
	int fd;

	node_open(&n, NULL, MEM_HEAP, &o);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		fd = memfd_create(bad[i].name, MFD_CLOEXEC);
		ck_assert_int_ge(fd, 0);
		ck_ok(ftruncate(fd, (off_t)PAGE));
		errno = 0;
		mr = ibv_reg_dmabuf_mr(n.pd, 0, PAGE, 0, fd, ALL_ACCESS);
		ck_assert_int_eq(mr ? 0 : errno, bad[i].err);
		if (mr)
			ck_ok(ibv_dereg_mr(mr));
		close(fd);
	}
	node_close(&n);
}
END_TEST

int main(void)
{
	void *found = dlsym(RTLD_DEFAULT, "ibv_dm_export_dmabuf_fd");
	Suite *s;

	if (!found) {
		printf("skipped: this libibverbs exports no device memory\n");
		return 77;
	}
	memcpy(&export_fd, &found, sizeof(found));
	s = suite("dm_export");
	add_loop(s, same_memory, WHERE_COUNT);
	add_loop(s, bounds, WHERE_COUNT);
	add_loop(s, not_mappable, WHERE_COUNT);
	add_loop(s, freed, WHERE_COUNT);
	add(s, mr_part_is_no_dm_handle);
	add(s, owner_killed);
	add(s, importer_killed);
	add(s, other_memfds);
	return run(s);
}
