// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page adoption (docs/adoption.md): what the program, its threads, its
 * children and its peers can observe of it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adopt.h"
#include "../harness.h"

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
	ck_assert_int_eq(count_fds(), 0);
	ck_ok(ibv_dealloc_pd(pd));
	ck_ok(ibv_close_device(ctx));
}

static struct ibv_mr *reg(void *p, size_t size)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, p, size, ALL_ACCESS);

	ck_nonnull(mr);
	return mr;
}

/* ---------------------------------------------------- one process */

/*
 * ibv_reg_mr() makes private pages shared and ibv_dereg_mr() makes them
 * private again, with the same bytes.  errno is unchanged, and no descriptor
 * is left.
 */
START_TEST(adopted_and_private_again)
{
	struct ibv_mr *mr;
	char *p;
	int i;

	setup();
	p = map_pages(SIZE);
	for (i = 0; i < 3; i++) {
		errno = 0;
		mr = reg(p, SIZE);
		ck_assert_int_eq(errno, 0);
		ck_assert(is_adopted(p) && is_adopted(p + SIZE - 1));
		ck_assert_int_eq(count_fds(), 1);
		ck_assert(has_pattern(p, 0, SIZE));
		errno = 0;
		ck_ok(ibv_dereg_mr(mr));
		ck_assert_int_eq(errno, 0);
		ck_assert(!is_adopted(p) && !is_adopted(p + SIZE - 1));
		ck_assert_int_eq(count_fds(), 0);
		ck_assert(has_pattern(p, 0, SIZE));
	}
	/* as other private memory */
	ck_ok(madvise(p + PAGE, PAGE, MADV_DONTNEED));
	for (i = 0; i < (int)PAGE; i++)
		ck_assert_int_eq(p[PAGE + i], 0);
	ck_assert(has_pattern(p, 2 * PAGE, SIZE));
	p = mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
	ck_assert(p != MAP_FAILED);
	ck_assert(has_pattern(p, 2 * PAGE, SIZE));
	ck_assert_int_eq(p[2 * SIZE - 1], 0);
	ck_ok(munmap(p, 2 * SIZE));
	teardown();
}
END_TEST

/*
 * Adopted pages become private when the last MR that covers any of them is
 * deregistered, even if it covers only a part of them.
 */
START_TEST(several_mrs)
{
	struct ibv_mr *all, *part, *more;
	char *p;

	setup();
	p = map_pages(2 * SIZE);
	all = reg(p, SIZE);
	part = reg(p + 100, 1000);
	ck_ok(ibv_dereg_mr(all));
	ck_assert(is_adopted(p));
	more = reg(p + PAGE, SIZE); /* covers private pages, too */
	ck_assert(!is_adopted(p + SIZE));
	ck_ok(ibv_dereg_mr(part));
	ck_assert(is_adopted(p));
	ck_ok(ibv_dereg_mr(more));
	ck_assert(!is_adopted(p));
	ck_assert(has_pattern(p, 0, 2 * SIZE));
	/* not adopted: peers of the first MR may use process_vm_writev() */
	part = reg(p + 100, 1000);
	all = reg(p, SIZE);
	ck_assert(!is_adopted(p));
	ck_ok(ibv_dereg_mr(all));
	ck_ok(ibv_dereg_mr(part));
	ck_ok(munmap(p, 2 * SIZE));
	teardown();
}
END_TEST

static void expect_private(char *p, size_t size, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, p, size, access);

	ck_nonnull(mr);
	ck_assert_int_eq(kind_of(p), 0);
	ck_assert_int_eq(kind_of(p + size - 1), 0);
	ck_ok(ibv_dereg_mr(mr));
}

/*
 * These pages are not adopted: unaligned ranges, MRs that no peer can access,
 * the stack, pages with madvise() advice, locked pages, read-only pages.
 */
START_TEST(pages_not_adopted)
{
	static const int advice[] = { MADV_DONTFORK, MADV_HUGEPAGE,
				      MADV_DONTDUMP, MADV_WIPEONFORK };
	char *p, stack[3 * PAGE], *page;
	unsigned int i;

	setup();
	p = map_pages(SIZE);
	expect_private(p + 1, SIZE - 1, ALL_ACCESS);
	expect_private(p, SIZE - 1, ALL_ACCESS);
	expect_private(p, SIZE, 0); /* no access by peers */
	page = (char *)(((uintptr_t)stack + PAGE) & ~(uintptr_t)(PAGE - 1));
	if (!under_sanitizer()) /* sanitizers use other stacks */
		expect_private(page, PAGE, ALL_ACCESS);
	ck_ok(munmap(p, SIZE));
	for (i = 0; i < sizeof(advice) / sizeof(*advice); i++) {
		p = map_pages(SIZE);
		if (!madvise(p + PAGE, PAGE, advice[i]))
			expect_private(p, SIZE, ALL_ACCESS);
		ck_ok(munmap(p, SIZE));
	}
	p = map_pages(SIZE);
	ck_ok(mlock(p, PAGE));
	if (!under_sanitizer()) /* sanitizers ignore mlock() */
		expect_private(p, SIZE, ALL_ACCESS);
	ck_ok(munmap(p, SIZE));
	p = map_pages(SIZE);
	ck_ok(mprotect(p, SIZE, PROT_READ));
	expect_private(p, SIZE, IBV_ACCESS_REMOTE_READ);
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/*
 * Adoption respects resource limits: RLIMIT_FSIZE causes no SIGXFSZ, and only
 * descriptor numbers in the lower half of RLIMIT_NOFILE are used.
 */
START_TEST(limits)
{
	struct rlimit old, limit;
	char *p;
	int fd;

	setup();
	p = map_pages(SIZE);
	ck_ok(getrlimit(RLIMIT_FSIZE, &old));
	limit = old;
	limit.rlim_cur = PAGE;
	ck_ok(setrlimit(RLIMIT_FSIZE, &limit));
	expect_private(p, SIZE, ALL_ACCESS);
	ck_ok(setrlimit(RLIMIT_FSIZE, &old));
	ck_ok(getrlimit(RLIMIT_NOFILE, &old));
	limit = old;
	fd = dup(0);
	ck_ok(close(fd));
	limit.rlim_cur = 2 * (rlim_t)fd; /* numbers below @fd are taken */
	ck_ok(setrlimit(RLIMIT_NOFILE, &limit));
	expect_private(p, SIZE, ALL_ACCESS);
	ck_ok(setrlimit(RLIMIT_NOFILE, &old));
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/*
 * The program unmaps, protects, replaces and moves pages of an MR.
 * ibv_dereg_mr() makes the remaining adopted pages private, wherever they
 * are, and does not change other mappings.
 */
START_TEST(pages_changed_by_program)
{
	char *p, *q, *to;
	struct ibv_mr *mr;

	setup();
	p = map_pages(SIZE);
	mr = reg(p, SIZE);
	ck_assert(is_adopted(p));
	to = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_ok(munmap(p, PAGE));
	ck_ok(mprotect(p + PAGE, PAGE, PROT_READ));
	q = mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(q, p + 2 * PAGE);
	memset(q, 'q', PAGE);
	ck_assert_ptr_eq(mremap(p + 3 * PAGE, PAGE, PAGE,
				MREMAP_MAYMOVE | MREMAP_FIXED, to),
			 to);
	ck_assert(is_adopted(to));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(!is_adopted(to) && !is_adopted(p + PAGE) &&
		  !is_adopted(p + 4 * PAGE));
	/* unmapped; another thread may have mapped something here */
	ck_assert(!kind_of(p) && !kind_of(p + 3 * PAGE));
	ck_assert(has_pattern(p, PAGE, 2 * PAGE));
	ck_assert_int_eq(q[0], 'q');
	ck_assert_int_eq(kind_of(q), 0);
	ck_assert(has_pattern(to - 3 * PAGE, 3 * PAGE, 4 * PAGE));
	ck_assert(has_pattern(p, 4 * PAGE, SIZE));
	ck_ok(munmap(p + PAGE, 2 * PAGE));
	ck_ok(munmap(p + 4 * PAGE, SIZE - 4 * PAGE));
	ck_ok(munmap(to, PAGE));
	teardown();
}
END_TEST

/* ------------------------------------- threads that write during adoption */

#define THREADS 3

struct writer {
	pthread_t thread;
	_Atomic uint64_t *words; /* one in each page, this thread's only */
	uint64_t rounds;
};

static atomic_bool stop;

static void *write_words(void *arg)
{
	struct writer *w = arg;
	unsigned int i;

	for (; !atomic_load(&stop); w->rounds++)
		for (i = 0; i < SIZE / PAGE; i++)
			atomic_fetch_add_explicit(&w->words[i * PAGE / 8], 1,
						  memory_order_relaxed);
	return NULL;
}

static void start_writers(struct writer *w, char *p)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		w[i] = (struct writer){ .words = (void *)(p + 64 * i) };
		ck_ok(pthread_create(&w[i].thread, NULL, write_words, &w[i]));
	}
}

static void join_writers(struct writer *w)
{
	unsigned int i, j;

	atomic_store(&stop, true);
	for (i = 0; i < THREADS; i++) {
		ck_ok(pthread_join(w[i].thread, NULL));
		for (j = 0; j < SIZE / PAGE; j++)
			ck_assert_uint_eq(w[i].words[j * PAGE / 8],
					  w[i].rounds);
	}
}

/*
 * Stores of other threads are not lost while pages are adopted and made
 * private again.
 */
START_TEST(no_write_is_lost)
{
	struct writer w[THREADS];
	struct ibv_mr *mr;
	char *p;
	int i;

	setup();
	p = map_zeros(SIZE);
	start_writers(w, p);
	for (i = turns_of(100); i; i--) {
		mr = reg(p, SIZE);
		ck_assert(is_adopted(p));
		ck_ok(ibv_dereg_mr(mr));
		ck_assert(!is_adopted(p));
	}
	join_writers(w);
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/* Return whether userfaultfd may also suspend faults in kernel mode. */
static bool holds_kernel(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void *read_file(void *arg)
{
	char *p = arg;
	uint64_t n = 0;
	int fd = memfd_create("source", MFD_CLOEXEC);
	unsigned int i;

	for (i = 0; !atomic_load(&stop); i = (i + 1) % (SIZE / PAGE)) {
		n++;
		ck_assert_int_eq(pwrite(fd, &n, 8, 0), 8);
		ck_assert_int_eq(pread(fd, p + i * PAGE, 8, 0), 8);
		ck_assert(!memcmp(p + i * PAGE, &n, 8));
	}
	close(fd);
	return NULL;
}

/*
 * System calls that write to the pages wait during adoption, as stores do, if
 * userfaultfd may suspend faults in kernel mode.
 */
START_TEST(system_calls_that_write)
{
	pthread_t thread;
	struct ibv_mr *mr;
	char *p;
	int i;

	if (!holds_kernel())
		return; /* system calls may fail with EFAULT */
	setup();
	p = map_pages(SIZE);
	ck_ok(pthread_create(&thread, NULL, read_file, p));
	for (i = turns_of(100); i; i--) {
		mr = reg(p, SIZE);
		ck_assert(is_adopted(p));
		ck_ok(ibv_dereg_mr(mr));
	}
	atomic_store(&stop, true);
	ck_ok(pthread_join(thread, NULL));
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/* ------------------------------------------------------------ fork */

struct family {
	char *p;
	int to_child[2], to_parent[2];
};

static void send_byte(int fd)
{
	ck_assert_int_eq(write(fd, "x", 1), 1);
}

static void await_byte(int fd)
{
	char c;

	ck_assert_int_eq(read(fd, &c, 1), 1);
}

static int be_child(void *arg)
{
	struct family *f = arg;

	if (kind_of(f->p) || kind_of(f->p + SIZE - 1) || count_fds())
		return 1;
	if (!has_pattern(f->p, 0, SIZE))
		return 2;
	f->p[0] = 'c';
	send_byte(f->to_parent[1]);
	await_byte(f->to_child[0]);
	if (f->p[0] != 'c' || !has_pattern(f->p, 1, SIZE))
		return 3;
	return 0;
}

/*
 * A forked child has private copies of adopted pages.  Neither process sees
 * what the other one writes.
 */
START_TEST(child_has_a_copy)
{
	struct family f;
	struct ibv_mr *mr;
	pid_t child;

	setup();
	ck_ok(pipe(f.to_child));
	ck_ok(pipe(f.to_parent));
	f.p = map_pages(SIZE);
	mr = reg(f.p, SIZE);
	ck_assert(is_adopted(f.p));
	child = spawn(be_child, &f);
	close(f.to_parent[1]); /* read() returns 0 if the child dies */
	await_byte(f.to_parent[0]);
	ck_assert(has_pattern(f.p, 0, SIZE));
	f.p[1] = f.p[SIZE - 1] = 'p';
	send_byte(f.to_child[1]);
	ck_assert_int_eq(reap_child(child), 0);
	ck_assert(is_adopted(f.p));
	ck_assert(has_pattern(f.p, 2, SIZE - 1));
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(munmap(f.p, SIZE));
	teardown();
}
END_TEST

static int look_at_pieces(void *arg)
{
	char *p = arg;

	if (kind_of(p) || !msync(p + PAGE, PAGE, MS_ASYNC))
		return 1;
	if (!has_pattern(p, 2 * PAGE, SIZE) || kind_of(p + 2 * PAGE))
		return 2;
	signal(SIGSEGV, SIG_DFL);
	/* read-only in the child, too */
	atomic_store((_Atomic char *)(p + 2 * PAGE), 1);
	return 3;
}

/*
 * Pages of an MR that the parent has unmapped, marked MADV_DONTFORK or
 * protected are unmapped, unmapped and read-only in the child.
 */
START_TEST(child_of_changed_pages)
{
	struct ibv_mr *mr;
	char *p;

	setup();
	p = map_pages(SIZE);
	mr = reg(p, SIZE);
	ck_ok(munmap(p, PAGE));
	ck_ok(madvise(p + PAGE, PAGE, MADV_DONTFORK));
	ck_ok(mprotect(p + 2 * PAGE, PAGE, PROT_READ));
	ck_assert_int_eq(reap_child(spawn(look_at_pieces, p)), -SIGSEGV);
	ck_ok(madvise(p + PAGE, PAGE, MADV_DOFORK));
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(munmap(p + PAGE, SIZE - PAGE));
	teardown();
}
END_TEST

static int child_is_served(void *arg)
{
	(void)arg;
	return 0;
}

/*
 * Find the mapping from which malloc() takes small blocks.  False: this
 * malloc() does not use one.
 */
static bool find_heap(char **start, size_t *len)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	char line[512];
	bool found = false;

	ck_nonnull(maps);
	while (!found && fgets(line, sizeof(line), maps))
		found = strstr(line, "[heap]") &&
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2;
	fclose(maps);
	if (found) {
		*start = (char *)from;
		*len = to - from;
	}
	return found;
}

#define BLOCKS 500

static int use_heap(void *arg)
{
	char *p = arg, *block[BLOCKS];
	int i, n;

	for (n = 0; n < 3; n++) {
		for (i = 0; i < BLOCKS; i++) {
			block[i] = malloc(24 + i % 50 * 40);
			memset(block[i], i, 24);
		}
		for (i = 0; i < BLOCKS; i++) {
			if (block[i][0] != (char)i || block[i][23] != (char)i)
				return 1;
			free(block[i]);
		}
	}
	if (kind_of(p) || count_fds() || !has_pattern(p, 0, SIZE))
		return 2;
	p[0] = 'c';
	return 0;
}

/*
 * The copies for a child are made correctly if the heap itself is adopted: no
 * memory is allocated from it meanwhile.
 */
START_TEST(fork_with_adopted_heap)
{
	struct ibv_mr *all, *mr;
	char *heap, *p;
	size_t len;
	int i;

	setup();
	p = map_pages(SIZE);
	free(malloc(100000)); /* leaves free memory at the end */
	if (find_heap(&heap, &len)) {
		all = reg(heap, len);
		ck_assert(is_adopted(heap));
		mr = reg(p, SIZE);
		for (i = 0; i < 3; i++)
			ck_assert_int_eq(reap_child(spawn(use_heap, p)), 0);
		ck_assert(has_pattern(p, 0, SIZE));
		ck_ok(ibv_dereg_mr(mr));
		ck_ok(ibv_dereg_mr(all));
	}
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/*
 * Stores of threads to adopted pages are not lost in the parent when it
 * forks.
 */
START_TEST(fork_during_writes)
{
	struct writer w[THREADS];
	struct ibv_mr *mr;
	char *p;
	int i;

	setup();
	p = map_zeros(SIZE);
	start_writers(w, p);
	for (i = turns_of(20); i; i--) {
		mr = reg(p, SIZE);
		ck_assert_int_eq(reap_child(spawn(child_is_served, p)), 0);
		ck_ok(ibv_dereg_mr(mr));
	}
	join_writers(w);
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/* ------------------------------------------------------- two processes */

/* A requester maps the memfd of the responder's adopted pages. */
START_TEST(peers_map_adopted_pages)
{
	struct opts o = default_opts();
	struct duo d;
	FILE *maps;
	char line[512];
	int n = 0;

	o.size = SIZE;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	node_fill(&d.a, 0, 4096, 1);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4096, 4096, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_assert(b_has(&d, 4096, 4096, 1));
	maps = fopen("/proc/self/maps", "re");
	ck_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, NAME) != NULL;
	fclose(maps);
	ck_assert_int_eq(n, 2); /* a's own and b's */
	duo_close(&d);
}
END_TEST

static void do_unmap(struct node *b, void *arg)
{
	(void)arg;
	leave_hole(b->buf, b->o.size);
}

static void do_map_again(struct node *b, void *arg)
{
	(void)arg;
	ck_assert_ptr_eq(mmap(b->buf, b->o.size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 b->buf);
}

/*
 * Peers access the pages that were registered even if the program has
 * unmapped them, as on a NIC, which pins pages.  What is mapped there
 * afterwards is not accessed.
 */
START_TEST(unmapped_while_registered)
{
	struct opts o = default_opts();
	struct duo d;

	o.size = SIZE;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	b_fill(&d, 0, 64, 5);
	on_b(&d, do_unmap, NULL, 0);
	node_fill(&d.a, 0, 64, 9);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 1, 0, 64, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_READ);
	ck_assert(node_has(&d.a, 0, 64, 5));
	on_b(&d, do_map_again, NULL, 0);
	node_fill(&d.a, 0, 64, 6);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 64, 4096, 0));
	expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
	node_fill(&d.a, 0, 64, 7);
	ck_ok(post(&d, IBV_WR_RDMA_READ, 3, 0, 64, 4096, 0));
	expect_ok(d.a.scq, 3, IBV_WC_RDMA_READ);
	ck_assert(node_has(&d.a, 0, 64, 6));
	ck_assert(b_all(&d, 0, SIZE, 0));
	duo_close(&d);
}
END_TEST

struct turn {
	uint32_t rkey;
	uint64_t last;
};

static void do_reg_again(struct node *b, void *arg)
{
	struct turn *t = arg;

	b->mr = ibv_reg_mr(b->pd, b->buf, b->o.size, ALL_ACCESS);
	ck_nonnull(b->mr);
	ck_assert(is_adopted(b->buf));
	t->rkey = b->mr->rkey;
}

static void do_dereg(struct node *b, void *arg)
{
	_Atomic uint64_t *word = (void *)((char *)b->buf + 8 * PAGE);
	double end = now_ms() + WAIT_MS;
	struct turn *t = arg;

	while (!atomic_load(word))
		ck_assert(now_ms() < end);
	ck_ok(ibv_dereg_mr(b->mr));
	t->last = atomic_exchange(word, 0);
}

static void *post_until_refused(void *arg)
{
	struct duo *d = arg;
	struct ibv_sge sge = node_sge(&d->a, 0, 8);
	struct ibv_send_wr wr =
		rdma_wr(d, IBV_WR_RDMA_WRITE, 1, &sge, 1, 8 * PAGE);
	uint64_t n = 0;

	for (;;) {
		n++;
		node_put(&d->a, 0, &n, 8);
		ck_ok(post_wr(d->a.qp, &wr));
		if (wait_wc(d->a.scq).status != IBV_WC_SUCCESS)
			return (void *)(uintptr_t)(n - 1);
	}
}

/*
 * All WRITEs that completed before ibv_dereg_mr() are in the memory when it
 * is private again.  Later ones fail.
 */
START_TEST(deregistered_in_traffic)
{
	struct opts o = default_opts();
	pthread_t thread;
	struct turn t;
	struct duo d;
	void *done;
	int i;

	o.size = SIZE;
	duo_open(&d, TWO_PROCESSES, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 20; i++) {
		ck_ok(pthread_create(&thread, NULL, post_until_refused, &d));
		on_b(&d, do_dereg, &t, sizeof(t));
		ck_ok(pthread_join(thread, &done));
		ck_assert_uint_eq(t.last, (uintptr_t)done);
		on_b(&d, do_reg_again, &t, sizeof(t));
		d.at_b.rkey = t.rkey;
		duo_renew(&d);
		d.at_b.rkey = t.rkey;
	}
	duo_close(&d);
}
END_TEST

_Noreturn static void register_again(char *p)
{
	for (;;)
		ibv_dereg_mr(reg(p, SIZE));
}

static int register_for_ever(void *arg)
{
	(void)arg;
	leave_check();
	setup();
	register_again(map_pages(SIZE));
}

/*
 * A process that is killed at any time during registration or deregistration
 * does not affect other processes.
 */
START_TEST(killed_during_adoption)
{
	pid_t child[10];
	struct ibv_mr *mr;
	char *p;
	int i;

	for (i = 0; i < 10; i++)
		child[i] = spawn(register_for_ever, NULL);
	setup();
	p = map_pages(SIZE);
	for (i = 0; i < 10; i++) {
		sleep_ms(5 + i);
		kill(child[i], SIGKILL);
		ck_assert_int_eq(reap_child(child[i]), -SIGKILL);
		mr = reg(p, SIZE);
		ck_ok(ibv_dereg_mr(mr));
	}
	ck_assert(has_pattern(p, 0, SIZE));
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

int main(void)
{
	Suite *s;

	setenv("URXE_ADOPT", "1", 1);
	if (!under_adoption()) {
		printf("pages cannot be adopted here: skipped\n");
		return 77;
	}
	s = suite("adopt");
	add(s, adopted_and_private_again);
	add(s, several_mrs);
	add(s, pages_not_adopted);
	add(s, limits);
	add(s, pages_changed_by_program);
	add(s, no_write_is_lost);
	add(s, system_calls_that_write);
	add(s, child_has_a_copy);
	add(s, child_of_changed_pages);
	add(s, fork_with_adopted_heap);
	add(s, fork_during_writes);
	add(s, peers_map_adopted_pages);
	add(s, unmapped_while_registered);
	add(s, deregistered_in_traffic);
	add(s, killed_during_adoption);
	return run(s);
}
