// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page adoption (docs/adoption.md) together with other uses of memory: huge
 * pages, KSM, locked memory, core dumps, changes of the mappings while other
 * threads write, and other kinds of MR.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "adopt.h"
#include "../harness.h"

#define HUGE_PAGE (2u << 20)

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

/*
 * Store the rest of the smaps line that starts with @key, for the mapping
 * that contains @p.  False: there is none.
 */
static bool smaps_line(const void *p, const char *key, char *out, size_t len)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	uintptr_t start, end, at = (uintptr_t)p;
	bool inside = false, found = false;
	char line[512];

	ck_nonnull(f);
	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) ==
		    2)
			inside = at >= start && at < end;
		found = inside && !strncmp(line, key, strlen(key));
	}
	fclose(f);
	if (found)
		snprintf(out, len, "%s", line + strlen(key));
	return found;
}

static bool has_flag(const void *p, const char *flag)
{
	char flags[256];

	ck_assert(smaps_line(p, "VmFlags:", flags, sizeof(flags)));
	return strstr(flags, flag);
}

/*
 * Register and deregister: the bytes stay the same, and the pages are private
 * afterwards.
 */
static void expect_whole(char *p, size_t size)
{
	struct ibv_mr *mr = reg(p, size);

	ck_assert(has_pattern(p, 0, size));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(has_pattern(p, 0, size));
	ck_assert(!is_adopted(p));
}

/* ---------------------------------------------------- kinds of pages */

/*
 * Transparent huge pages are adopted as small pages, also if the MR covers
 * only a part of a huge page.
 */
START_TEST(transparent_huge_pages)
{
	const size_t size = 2 * HUGE_PAGE;
	struct ibv_mr *mr;
	char *all, *p;

	setup();
	all = map_zeros(3 * (size_t)HUGE_PAGE);
	p = (char *)(((uintptr_t)all + HUGE_PAGE - 1) &
		     ~(uintptr_t)(HUGE_PAGE - 1));
	fill_pattern(p, 0, size);
#ifdef MADV_COLLAPSE
	madvise(p, size, MADV_COLLAPSE); /* fails without THP */
#endif
	mr = reg(p + PAGE, size - 2 * PAGE); /* splits two huge pages */
	ck_assert(is_adopted(p + PAGE) && !is_adopted(p) &&
		  !is_adopted(p + size - PAGE));
	ck_assert(has_pattern(p, 0, size));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(has_pattern(p, 0, size));
	expect_whole(p, size);
	ck_ok(munmap(all, 3 * (size_t)HUGE_PAGE));
	teardown();
}
END_TEST

/*
 * Pages of hugetlbfs are not adopted: there may be no free ones for a copy.
 */
START_TEST(reserved_huge_pages)
{
	struct ibv_mr *mr;
	char *p;

	p = mmap(NULL, HUGE_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED) {
		fprintf(stderr, "skipped: no huge pages are reserved\n");
		return;
	}
	setup();
	fill_pattern(p, 0, HUGE_PAGE);
	mr = reg(p, HUGE_PAGE);
	ck_assert_int_eq(kind_of(p), 0);
	ck_assert(has_flag(p, " ht"));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(has_pattern(p, 0, HUGE_PAGE));
	ck_ok(munmap(p, HUGE_PAGE));
	teardown();
}
END_TEST

/*
 * Pages that KSM may merge (MADV_MERGEABLE) are not adopted.  On adopted
 * pages MADV_MERGEABLE has no effect.
 */
START_TEST(mergeable)
{
	struct ibv_mr *mr;
	char *p;

	p = map_pages(SIZE);
	if (madvise(p, SIZE, MADV_MERGEABLE)) {
		fprintf(stderr, "skipped: no KSM\n");
		return;
	}
	setup();
	mr = reg(p, SIZE);
	ck_assert_int_eq(kind_of(p), 0);
	ck_assert(has_flag(p, " mg"));
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(madvise(p, SIZE, MADV_UNMERGEABLE));
	mr = reg(p, SIZE);
	ck_assert(is_adopted(p));
	madvise(p, SIZE, MADV_MERGEABLE); /* has no effect, or fails */
	ck_assert(is_adopted(p) && !has_flag(p, " mg"));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(has_pattern(p, 0, SIZE));
	ck_assert(!is_adopted(p));
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/*
 * Locked pages are not adopted.  Adopted pages that the program locks stay
 * locked and shared after ibv_dereg_mr(), until munlock() and the next
 * registration.
 */
START_TEST(locked)
{
	struct ibv_mr *mr, *other;
	char *p, *q;

	if (under_sanitizer()) /* sanitizers ignore mlock() */
		return;
	setup();
	p = map_pages(SIZE);
	q = map_pages(PAGE);
	ck_ok(mlock(p, SIZE));
	mr = reg(p, SIZE);
	ck_assert_int_eq(kind_of(p), 0);
	ck_assert(has_flag(p, " lo"));
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(munlock(p, SIZE));

	mr = reg(p, SIZE);
	ck_assert(is_adopted(p));
	ck_ok(mlock(p + PAGE, PAGE));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(has_flag(p + PAGE, " lo"));
	ck_assert(has_pattern(p, 0, SIZE));
	ck_ok(munlock(p + PAGE, PAGE));
	other = reg(q, PAGE); /* the next MR, whatever it is, retries */
	ck_ok(ibv_dereg_mr(other));
	ck_assert(!is_adopted(p) && !is_adopted(p + PAGE));
	ck_assert(has_pattern(p, 0, SIZE));
	ck_ok(munmap(p, SIZE));
	ck_ok(munmap(q, PAGE));
	teardown();
}
END_TEST

/*
 * Return whether a core dump would contain the page, according to
 * coredump_filter and smaps.
 */
static bool is_dumped(const void *p)
{
	char kb[64], filter[32];
	unsigned long mask;
	FILE *f = fopen("/proc/self/coredump_filter", "re");

	ck_nonnull(f);
	ck_nonnull(fgets(filter, sizeof(filter), f));
	fclose(f);
	mask = strtoul(filter, NULL, 16);
	ck_assert(smaps_line(p, "Anonymous:", kb, sizeof(kb)));
	if (has_flag(p, " dd"))
		return false;
	/* core(5): bit 0 anonymous private, bit 1 anonymous shared memory */
	return kind_of(p) == 's' ? mask & 2 : mask & 1 && atoi(kb) > 0;
}

_Noreturn static void dump_core(const char *dir)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	static char word[] = "qbcfr-ode"; /* the page has each byte ^ 1 */
	struct ibv_mr *mr;
	unsigned int i;
	char *p;

	setup();
	p = map_zeros(SIZE);
	mr = reg(p, SIZE);
	ck_assert(mr && is_adopted(p) && is_dumped(p));
	for (i = 0; word[i]; i++)
		p[7 * PAGE + i] = (char)(word[i] ^ 1);
	if (chdir(dir) || setrlimit(RLIMIT_CORE, &all))
		_exit(1);
	signal(SIGABRT, SIG_DFL);
	abort();
}

static bool core_has_word(const char *path)
{
	static const char word[] = "qbcfr-ode";
	char want[sizeof(word)] = { 0 }, *map;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t len;
	bool has;
	unsigned int i;

	ck_assert_int_ge(fd, 0);
	for (i = 0; word[i]; i++)
		want[i] = (char)(word[i] ^ 1);
	len = lseek(fd, 0, SEEK_END);
	map = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
	ck_assert(map != MAP_FAILED);
	has = memmem(map, (size_t)len, want, sizeof(want) - 1);
	munmap(map, (size_t)len);
	close(fd);
	return has;
}

static bool cores_are_files(void)
{
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "re");
	char pattern[64] = "";

	if (!f)
		return false;
	if (!fgets(pattern, sizeof(pattern), f))
		pattern[0] = 0;
	fclose(f);
	return !strcmp(pattern, "core\n");
}

/* Core dumps contain adopted pages. */
START_TEST(core_dump)
{
	char dir[] = "/tmp/urxe-core-XXXXXX", path[64];
	struct ibv_mr *mr;
	int status;
	pid_t pid;
	char *p;

	if (cores_are_files() && !under_sanitizer()) {
		ck_nonnull(mkdtemp(dir));
		pid = fork();
		if (!pid) {
			leave_check();
			dump_core(dir);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert(WIFSIGNALED(status));
		snprintf(path, sizeof(path), "%s/core", dir);
		if (access(path, F_OK))
			snprintf(path, sizeof(path), "%s/core.%d", dir, pid);
		if (WCOREDUMP(status)) {
			ck_assert(core_has_word(path));
			ck_ok(unlink(path));
		}
		ck_ok(rmdir(dir));
	}
	setup();
	p = map_pages(SIZE);
	mr = reg(p, SIZE);
	ck_assert(is_adopted(p) && is_dumped(p));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(!is_adopted(p) && is_dumped(p));
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/* -------------------------------------------- changes to registered pages */

/*
 * On adopted pages MADV_DONTNEED keeps the bytes, and MADV_FREE and
 * MADV_WIPEONFORK fail with EINVAL.  After ibv_dereg_mr(), MADV_DONTNEED
 * zeroes them.
 */
START_TEST(advice)
{
	struct ibv_mr *mr;
	size_t i;
	char *p;

	setup();
	p = map_pages(SIZE);
	mr = reg(p, SIZE);
	ck_ok(madvise(p, PAGE, MADV_DONTNEED)); /* the bytes stay */
	ck_assert_int_eq(madvise(p, PAGE, MADV_FREE), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(madvise(p, PAGE, MADV_WIPEONFORK), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert(has_pattern(p, 0, SIZE));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(has_pattern(p, 0, SIZE));
	ck_ok(madvise(p, SIZE, MADV_DONTNEED));
	for (i = 0; i < SIZE; i++)
		ck_assert_int_eq(p[i], 0);
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/*
 * Register, change one page in one of these ways, deregister, and repeat,
 * while threads increment words in the pages that are not changed.  No
 * increment may be lost.
 */
enum change { PUNCHED, REPLACED, PROTECTED, MOVED, NOT_FORKED, CHANGES };

#define KEPT (SIZE / 2) /* bytes that are not changed */

static atomic_bool stop;
static char *shared_p;

static void *count_up(void *arg)
{
	_Atomic uint64_t *word = arg;
	uint64_t n = 0;
	unsigned int i;

	for (; !atomic_load(&stop); n++)
		for (i = 0; i < KEPT / PAGE; i++)
			if (atomic_fetch_add(&word[i * PAGE / 8], 1) != n)
				return (void *)UINTPTR_MAX;
	return (void *)(uintptr_t)n;
}

static void change(enum change how, char *q, char *to)
{
	char *new;

	switch (how) {
	case PUNCHED:
		ck_ok(munmap(q, PAGE));
		break;
	case REPLACED:
		new = mmap(q, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		ck_assert_ptr_eq(new, q);
		memset(q, 'r', PAGE);
		break;
	case PROTECTED:
		ck_ok(mprotect(q, PAGE, PROT_READ));
		break;
	case MOVED:
		ck_assert_ptr_eq(mremap(q, PAGE, PAGE,
					MREMAP_MAYMOVE | MREMAP_FIXED, to),
				 to);
		break;
	default:
		ck_ok(madvise(q, PAGE, MADV_DONTFORK));
	}
}

static void look_after(enum change how, char *q, char *to)
{
	size_t off = (size_t)(q - shared_p);

	switch (how) {
	case PUNCHED:
		ck_assert_int_eq(msync(q, PAGE, MS_ASYNC), -1);
		break;
	case REPLACED:
		ck_assert_int_eq(kind_of(q), 0);
		ck_assert(q[0] == 'r' && q[PAGE - 1] == 'r');
		break;
	case PROTECTED:
		ck_assert(has_pattern(shared_p, off, off + PAGE));
		ck_assert(!is_adopted(q));
		break;
	case MOVED:
		ck_assert(has_pattern(to - off, off, off + PAGE));
		ck_assert(!is_adopted(to));
		break;
	default:
		ck_ok(madvise(q, PAGE, MADV_DOFORK));
	}
}

static void change_and_back(enum change how, char *to)
{
	char *q = shared_p + KEPT + 5 * PAGE, *new, *p;
	struct ibv_mr *mr, *other;

	new = mmap(shared_p + KEPT, SIZE - KEPT, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	ck_assert_ptr_eq(new, shared_p + KEPT);
	fill_pattern(shared_p, KEPT, SIZE);
	mr = reg(shared_p, SIZE);
	ck_assert(is_adopted(shared_p) && is_adopted(q));
	change(how, q, to);
	ck_ok(ibv_dereg_mr(mr));
	look_after(how, q, to);
	if (how == NOT_FORKED) { /* stayed shared; the next MR retries */
		p = map_pages(PAGE);
		other = reg(p, PAGE);
		ck_ok(ibv_dereg_mr(other));
		ck_ok(munmap(p, PAGE));
	}
	ck_assert(!is_adopted(shared_p) && !is_adopted(q));
	ck_assert(has_pattern(shared_p, KEPT, KEPT + 5 * PAGE));
	ck_assert(has_pattern(shared_p, KEPT + 6 * PAGE, SIZE));
}

/*
 * Stores to the other pages of the MR are not lost, whatever is done to one
 * of its pages meanwhile.  _i is the enum change.
 */
START_TEST(changes_during_writes)
{
	pthread_t thread[2];
	char *to;
	int i;

	setup();
	shared_p = map_zeros(SIZE);
	to = map_zeros(PAGE);
	for (i = 0; i < 2; i++)
		ck_ok(pthread_create(&thread[i], NULL, count_up,
				     shared_p + 64 * i));
	for (i = turns_of(30); i; i--)
		change_and_back(_i, to);
	atomic_store(&stop, true);
	for (i = 0; i < 2; i++) {
		uint64_t *word = (uint64_t *)(shared_p + 64 * i);
		void *n;
		unsigned int j;

		ck_ok(pthread_join(thread[i], &n));
		for (j = 0; j < KEPT / PAGE; j++)
			ck_assert_uint_eq(word[j * PAGE / 8], (uintptr_t)n);
	}
	teardown();
}
END_TEST

/* ----------------------------------------------- fork during registration */

/*
 * Uses no assertions of Check, whose lock fork() in the other thread would
 * copy.
 */
static void *register_all_the_time(void *arg)
{
	struct ibv_mr *mr;

	do {
		mr = ibv_reg_mr(pd, arg, SIZE, ALL_ACCESS);
		if (!mr || ibv_dereg_mr(mr))
			return NULL;
	} while (!atomic_load(&stop));
	return arg;
}

static int child_looks(void *arg)
{
	char *p = arg;

	if (is_adopted(p) || is_adopted(p + SIZE - 1) || count_fds())
		return 1;
	if (!has_pattern(p, 0, SIZE))
		return 2;
	memset(p, 'c', SIZE); /* private copy */
	return 0;
}

/*
 * fork() in one thread while another one registers and deregisters: the child
 * has private pages with the right bytes.
 */
START_TEST(fork_during_registration)
{
	pthread_t thread;
	void *done;
	char *p;
	int i;

	setup();
	p = map_pages(SIZE);
	ck_ok(pthread_create(&thread, NULL, register_all_the_time, p));
	for (i = turns_of(50); i; i--) {
		ck_assert_int_eq(reap_child(spawn(child_looks, p)), 0);
		ck_assert(has_pattern(p, 0, SIZE));
	}
	atomic_store(&stop, true);
	ck_ok(pthread_join(thread, &done));
	ck_assert_ptr_eq(done, p);
	ck_assert(has_pattern(p, 0, SIZE));
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

/* --------------------------------------------------- other kinds of MR */

/*
 * ibv_rereg_mr() with IBV_REREG_MR_CHANGE_TRANSLATION adopts the new pages
 * and makes the old ones private.
 */
START_TEST(moved_by_rereg)
{
	struct ibv_mr *mr;
	char *p, *q;
	int i;

	setup();
	p = map_pages(SIZE);
	q = map_pages(SIZE);
	mr = reg(p, SIZE);
	for (i = 0; i < 6; i++) {
		char *to = i % 2 ? p : q, *from = i % 2 ? q : p;

		ck_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				   to, SIZE, 0));
		ck_assert(is_adopted(to) && !is_adopted(from));
		ck_assert(has_pattern(p, 0, SIZE) && has_pattern(q, 0, SIZE));
	}
	/* a part of the same pages, then other access: they stay adopted */
	ck_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p + PAGE,
			   PAGE, 0));
	ck_assert(is_adopted(p + PAGE));
	ck_ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
	ck_assert(is_adopted(p + PAGE));
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(!is_adopted(p) && !is_adopted(p + PAGE) && !is_adopted(q));
	ck_assert(has_pattern(p, 0, SIZE) && has_pattern(q, 0, SIZE));
	ck_ok(munmap(p, SIZE));
	ck_ok(munmap(q, SIZE));
	teardown();
}
END_TEST

/*
 * Pages of an on-demand MR are not adopted, also not for another MR.  Pages
 * that were adopted before stay shared until both MRs are deregistered.
 */
START_TEST(on_demand)
{
	struct ibv_mr *odp, *mr;
	char *p;

	setup();
	p = map_pages(SIZE);
	odp = ibv_reg_mr(pd, p, SIZE, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	ck_nonnull(odp);
	ck_assert_int_eq(kind_of(p), 0);
	mr = reg(p, SIZE); /* peers may use process_vm_* there */
	ck_assert_int_eq(kind_of(p), 0);
	ck_ok(ibv_dereg_mr(odp));
	ck_ok(ibv_dereg_mr(mr));
	mr = reg(p, SIZE);
	ck_assert(is_adopted(p));
	odp = ibv_reg_mr(pd, p, SIZE, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	ck_nonnull(odp);
	ck_ok(ibv_dereg_mr(mr));
	ck_assert(is_adopted(p)); /* the on-demand MR covers the pages */
	ck_ok(ibv_dereg_mr(odp));
	ck_assert(!is_adopted(p));
	ck_assert(has_pattern(p, 0, SIZE));
	ck_ok(munmap(p, SIZE));
	teardown();
}
END_TEST

#define MRS 12

/*
 * Many overlapping MRs are deregistered in random order.  The bytes stay
 * right, and the pages are private afterwards.  _i selects the random seed.
 */
START_TEST(overlapping)
{
	struct ibv_mr *mr[MRS];
	bool adopted[MRS];
	unsigned int i, j, n, seed = 1 + (unsigned int)_i;
	char *p;

	setup();
	p = map_pages(SIZE);
	for (n = 0; n < 10; n++) {
		for (i = 0; i < MRS; i++) {
			unsigned int first, pages;

			first = (unsigned int)rand_r(&seed) % (SIZE / PAGE);
			pages = 1 + (unsigned int)rand_r(&seed) %
					    (SIZE / PAGE - first);
			mr[i] = reg(p + first * PAGE,
				    pages * PAGE - rand_r(&seed) % 3);
			adopted[i] = is_adopted(mr[i]->addr);
		}
		ck_assert(has_pattern(p, 0, SIZE));
		for (i = MRS; i > 0; i--) {
			j = (unsigned int)rand_r(&seed) % i;
			ck_ok(ibv_dereg_mr(mr[j]));
			mr[j] = mr[i - 1];
			adopted[j] = adopted[i - 1];
			ck_assert(has_pattern(p, 0, SIZE));
			for (j = 0; j < i - 1; j++) /* others are unchanged */
				ck_assert(is_adopted(mr[j]->addr) ==
					  adopted[j]);
		}
		for (i = 0; i < SIZE / PAGE; i++)
			ck_assert(!is_adopted(p + i * PAGE));
	}
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
	s = suite("adopt_changes");
	add(s, transparent_huge_pages);
	add(s, reserved_huge_pages);
	add(s, mergeable);
	add(s, locked);
	add(s, core_dump);
	add(s, advice);
	add_loop(s, changes_during_writes, CHANGES);
	add(s, fork_during_registration);
	add(s, moved_by_rereg);
	add(s, on_demand);
	add_loop(s, overlapping, 4);
	return run(s);
}
