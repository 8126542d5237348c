// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MRs in shared mappings of files. The owner of the MR finds the descriptor
 * of the file among its own. A peer maps the file for its requests, and
 * unmaps it when the MR has been deregistered.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../harness.h"
#include "shared/layout.h"

#define NAME "given-back"
#define SIZE (1u << 20)

/* ------------------------- the requester, which maps the file */

struct part {
	int fd;
	char *buf;
	struct ibv_mr *mr[2];
	uint32_t rkey;
	uint64_t addr;
	char got[8];
};

static void do_reg(struct node *b, void *arg)
{
	struct part *p = arg;
	int i;

	p->fd = memfd_create(NAME, MFD_CLOEXEC);
	ck_assert_int_ge(p->fd, 0);
	ck_ok(ftruncate(p->fd, SIZE));
	p->buf = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	ck_assert(p->buf != MAP_FAILED);
	for (i = 0; i < 2; i++) {
		p->mr[i] = ibv_reg_mr(b->pd, p->buf, SIZE, ALL_ACCESS);
		ck_nonnull(p->mr[i]);
	}
	p->rkey = p->mr[0]->rkey;
	p->addr = (uintptr_t)p->buf;
}

static void do_dereg_one(struct node *b, void *arg)
{
	struct part *p = arg;

	(void)b;
	ck_ok(ibv_dereg_mr(p->mr[1]));
}

static void do_look(struct node *b, void *arg)
{
	struct part *p = arg;

	(void)b;
	memcpy(p->got, p->buf + SIZE - 8, 8);
}

static void do_dereg(struct node *b, void *arg)
{
	struct part *p = arg;

	(void)b;
	ck_ok(ibv_dereg_mr(p->mr[0]));
	ck_ok(munmap(p->buf, SIZE));
	close(p->fd);
}

/* Return the number of mappings of files NAME in this process. */
static int mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	ck_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, NAME) != NULL;
	fclose(maps);
	return n;
}

static void write_there(struct duo *d, struct part *p, const char text[8])
{
	struct ibv_sge sge = node_sge(&d->a, 0, 8);
	struct ibv_send_wr wr = rdma_wr(d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 0);

	node_put(&d->a, 0, text, 8);
	wr.wr.rdma.remote_addr = p->addr + SIZE - 8;
	wr.wr.rdma.rkey = p->rkey;
	ck_ok(post_wr(d->a.qp, &wr));
	expect_ok(d->a.scq, 1, IBV_WC_RDMA_WRITE);
	on_b(d, do_look, p, sizeof(*p));
	ck_assert_mem_eq(p->got, text, 8);
}

/*
 * Return the time in ms from the deregistration of the last MR of a file
 * until the requester has unmapped the file.
 */
static double given_back_ms(int i)
{
	struct opts o = default_opts();
	struct part p;
	struct duo d;
	double begin;

	(void)i;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	on_b(&d, do_reg, &p, sizeof(p));
	write_there(&d, &p, "the 1st");
	ck_assert_int_eq(mapped(), 1);
	on_b(&d, do_dereg_one, &p, sizeof(p));
	write_there(&d, &p, "the 2nd");
	ck_assert_int_eq(mapped(), 1);
	on_b(&d, do_dereg, &p, sizeof(p));
	/* no WR is posted meanwhile */
	for (begin = now_ms(); mapped();) {
		ck_assert_msg(now_ms() < begin + WAIT_MS,
			      "the file is still mapped");
		sleep_ms(1);
	}
	begin = now_ms() - begin;
	duo_close(&d);
	return begin;
}

/*
 * The requester unmaps a file soon after its last MR was deregistered,
 * without posting anything. While another MR of the file exists, WRITEs work.
 */
START_TEST(file_unmapped_after_dereg)
{
	expect_within(1000, given_back_ms, 0);
}
END_TEST

/*
 * With files that are registered one after the other, a WRITE reaches the
 * current file, and only that one is mapped.
 */
START_TEST(many_files)
{
	struct opts o = default_opts();
	struct part p;
	char text[8];
	struct duo d;
	int i;

	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 50; i++) {
		on_b(&d, do_reg, &p, sizeof(p));
		on_b(&d, do_dereg_one, &p, sizeof(p));
		snprintf(text, sizeof(text), "no %d", i);
		write_there(&d, &p, text);
		ck_assert_int_eq(mapped(), 1);
		on_b(&d, do_dereg, &p, sizeof(p));
	}
	duo_close(&d);
}
END_TEST

/* --------------------------------------- the owner of the MR */

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

static char *map_new(int *fd)
{
	char *buf;

	*fd = memfd_create(NAME, MFD_CLOEXEC);
	ck_assert_int_ge(*fd, 0);
	ck_ok(ftruncate(*fd, 4096));
	buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	ck_assert(buf != MAP_FAILED);
	return buf;
}

/*
 * Entries of the context's file table are reused: more than URXE_MAX_FILES
 * files can be registered one after the other.
 */
START_TEST(more_files_than_entries)
{
	struct ibv_mr *mr;
	char *buf;
	int i, fd;

	setup();
	for (i = 0; i < URXE_MAX_FILES + 100; i++) {
		buf = map_new(&fd);
		/* this access flag requires the file */
		mr = ibv_reg_mr(pd, buf, 4096,
				IBV_ACCESS_LOCAL_WRITE |
					URXE_ACCESS_FLUSH_PERSISTENT);
		ck_assert_msg(mr != NULL, "file %d: %s", i, strerror(errno));
		ck_ok(ibv_dereg_mr(mr));
		ck_ok(munmap(buf, 4096));
		close(fd);
	}
	teardown();
}
END_TEST

/*
 * The file of the MR: has an open descriptor; is a new one for each MR; is
 * anonymous memory, MAP_SHARED; has a descriptor that was closed.
 */
enum file { FILE_KEPT, FILE_NEW, FILE_NAMELESS, FILE_CLOSED, FILES };

/* Return the shortest of 64 registrations, in microseconds. */
static double registering(enum file file, char *kept)
{
	double start, took, best = 1e9;
	struct ibv_mr *mr;
	char *buf;
	int i, fd;

	for (i = 0; i < 64; i++) {
		buf = kept;
		fd = -1;
		if (file == FILE_NEW)
			buf = map_new(&fd);
		start = now_ms();
		mr = ibv_reg_mr(pd, buf, 4096, ALL_ACCESS);
		took = now_ms() - start;
		ck_nonnull(mr);
		ck_ok(ibv_dereg_mr(mr));
		if (file == FILE_NEW) {
			ck_ok(munmap(buf, 4096));
			close(fd);
		}
		if (took < best)
			best = took;
	}
	return 1000 * best;
}

#define DESCRIPTORS 5000

/* Open up to DESCRIPTORS descriptors. Return their number. */
static int open_many(int *fds)
{
	struct rlimit limit;
	int n = 0;

	ck_ok(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	ck_ok(setrlimit(RLIMIT_NOFILE, &limit));
	while (n < DESCRIPTORS && (fds[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	return n;
}

/*
 * The cost of a registration does not grow with the number of descriptors of
 * the process.
 */
START_TEST(many_descriptors)
{
	int fds[DESCRIPTORS], n, fd;
	double few, many;
	char *buf;

	setup();
	if (_i == FILE_NAMELESS)
		buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	else
		buf = map_new(&fd);
	few = registering(_i, buf);
	ck_ok(munmap(buf, 4096));
	if (_i != FILE_NAMELESS)
		close(fd);
	n = open_many(fds);
	if (_i == FILE_NAMELESS)
		buf = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	else
		buf = map_new(&fd);
	if (_i == FILE_CLOSED)
		close(fd);
	many = registering(_i, buf);
	ck_assert_msg(n < 2000 || many < 8 * few + 100,
		      "%.0f us with a few descriptors, %.0f with %d", few, many,
		      n);
	while (n)
		close(fds[--n]);
	if (_i == FILE_KEPT || _i == FILE_NEW)
		close(fd);
	teardown();
}
END_TEST

int main(void)
{
	Suite *s = suite("files");

	add(s, file_unmapped_after_dereg);
	add(s, many_files);
	add(s, more_files_than_entries);
	add_loop(s, many_descriptors, FILES);
	return run(s);
}
