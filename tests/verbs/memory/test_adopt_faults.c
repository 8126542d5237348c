// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page adoption if system calls fail: each system call of ibv_reg_mr(),
 * ibv_dereg_mr() and fork() fails in turn.  The verb may fail, and the pages
 * may stay private or shared.  But the memory must contain what the program
 * and its peers have written, immediately and after all later operations.
 *
 * Another thread of the same process, the decider, receives each system call
 * by seccomp's user notification (seccomp_unotify(2)) and decides whether it
 * fails.  It can also imitate an mremap() that runs out of memory late: it
 * unmaps the destination, as the kernel does, before the call fails.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "adopt.h"
#include "../harness.h"

/* How a system call fails. */
static const struct fault {
	int error;
	bool for_good; /* all later calls of the same number fail, too */
	bool late; /* mremap(): after unmapping the destination */
} faults[] = {
	{ ENOMEM, false, false }, { ENOMEM, true, false },
	{ ENOMEM, false, true },  { EPERM, true, false },
	{ EINTR, false, false },
};
#define FAULTS (int)(sizeof(faults) / sizeof(*faults))

/* ------------------------------------------------ decider, in b's process */

static atomic_int listener = -1;
static const struct fault *_Atomic armed; /* NULL: no call fails */
static atomic_int countdown; /* 1: the next one fails */
static atomic_int last; /* call number; a run of one number counts once */
static atomic_int fails_for_good; /* call number, or -1 */
static atomic_bool has_hit;

static bool shall_fail(const struct fault *f, int nr)
{
	if (atomic_load(&fails_for_good) == nr)
		return true;
	if (atomic_exchange(&last, nr) == nr ||
	    atomic_fetch_sub(&countdown, 1) != 1)
		return false;
	atomic_store(&has_hit, true);
	if (f->for_good)
		atomic_store(&fails_for_good, nr);
	return true;
}

static void unmap_target(const struct seccomp_data *d)
{
	if (d->nr == SYS_mremap && d->args[3] & MREMAP_FIXED)
		munmap((void *)d->args[4], d->args[2]);
}

static void decide(int fd, struct seccomp_notif *in,
		   struct seccomp_notif_resp *out)
{
	const struct fault *f = atomic_load(&armed);

	memset(out, 0, sizeof(*out));
	out->id = in->id;
	out->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	if (f && shall_fail(f, in->data.nr)) {
		if (f->late && in->pid == (uint32_t)getpid())
			unmap_target(&in->data);
		out->flags = 0;
		out->error = -f->error;
	}
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, out);
}

static void *decider(void *arg)
{
	struct seccomp_notif_resp out;
	struct seccomp_notif in;
	int fd;

	(void)arg;
	while ((fd = atomic_load(&listener)) < 0)
		sched_yield();
	for (;;) {
		memset(&in, 0, sizeof(in));
		if (!ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &in))
			decide(fd, &in, &out);
		else if (errno != EINTR && errno != ENOENT)
			return NULL;
	}
}

#define ASK(nr)                                              \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##nr, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)

/*
 * Notify the decider of the system calls below, for this thread and all
 * threads and processes that it creates.  False: the kernel does not support
 * it.
 */
static bool ask_decider(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		ASK(mmap),
		ASK(munmap),
		ASK(mremap),
		ASK(madvise),
		ASK(mprotect),
		ASK(ioctl),
		ASK(openat),
		ASK(read),
		ASK(fstat),
		ASK(fallocate),
		ASK(ftruncate),
		ASK(newfstatat),
		ASK(memfd_create),
		ASK(fcntl),
		ASK(userfaultfd),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };
	pthread_t thread;
	int fd;

	ck_ok(pthread_create(&thread, NULL, decider, NULL));
	ck_ok(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
	atomic_store(&listener, fd);
	return fd >= 0;
}

static void arm(int how, int nth)
{
	atomic_store(&has_hit, false);
	atomic_store(&fails_for_good, -1);
	atomic_store(&last, -1);
	atomic_store(&countdown, nth);
	atomic_store(&armed, &faults[how]);
}

static bool disarm(void)
{
	atomic_store(&armed, NULL);
	return atomic_load(&has_hit);
}

/* -------------------------------------------------------- operations of b */

#define HELD (9 * PAGE) /* read-only in ibv_dereg_mr(): another mapping */

enum step { REGISTER, DEREGISTER, FORK, STEPS };

struct turn {
	int how, nth;
	enum step step;
	bool possible, hit, registered;
	uint32_t rkey;
	uint64_t base;
};

static struct {
	char *p;
	struct ibv_mr *mr;
	pid_t child;
	int to_child;
} b;

static void do_prepare(struct node *n, void *arg)
{
	struct turn *t = arg;

	(void)n;
	b.p = map_pages(SIZE);
	t->base = (uintptr_t)b.p;
	t->possible = ask_decider();
}

static void do_register(struct node *n, void *arg)
{
	struct turn *t = arg;

	if (t->step == REGISTER)
		arm(t->how, t->nth);
	b.mr = ibv_reg_mr(n->pd, b.p, SIZE, ALL_ACCESS);
	if (t->step == REGISTER)
		t->hit = disarm();
	t->registered = b.mr;
	if (t->registered)
		t->rkey = b.mr->rkey;
	else
		ck_assert_int_eq(t->step, REGISTER);
	ck_assert(has_pattern(b.p, 0, SIZE));
}

/*
 * Check the memory, into which a has written 64 bytes, and restore the
 * pattern.
 */
static void do_look(struct node *n, void *arg)
{
	char want[64];

	(void)n;
	(void)arg;
	memset(want, 'w', sizeof(want));
	ck_assert(!memcmp(b.p + 5 * PAGE, want, sizeof(want)));
	ck_assert(has_pattern(b.p, 0, 5 * PAGE));
	ck_assert(has_pattern(b.p, 5 * PAGE + 64, SIZE));
	fill_pattern(b.p, 5 * PAGE, 6 * PAGE);
}

_Noreturn static void live_on(int from, int to)
{
	bool ok = has_pattern(b.p, 0, SIZE);
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	ok &= write(to, "x", 1) == 1;
	ok &= poll(&(struct pollfd){ from, POLLIN, 0 }, 1, -1) == 1;
	ok &= read(from, &c, 1) == 1; /* after the parent's ibv_dereg_mr() */
	ok &= has_pattern(b.p, 0, SIZE);
	_exit(ok ? 0 : 1);
}

static void do_fork(struct node *n, void *arg)
{
	int to_child[2], to_parent[2];
	struct turn *t = arg;

	(void)n;
	ck_ok(pipe2(to_child, O_CLOEXEC));
	ck_ok(pipe2(to_parent, O_CLOEXEC));
	arm(t->how, t->nth);
	b.child = fork();
	if (!b.child)
		live_on(to_child[0], to_parent[1]);
	if (b.child > 0) /* system calls of the child count, too */
		poll(&(struct pollfd){ to_parent[0], POLLIN, 0 }, 1, -1);
	t->hit = disarm();
	ck_assert_int_gt(b.child, 0);
	b.to_child = to_child[1];
	ck_ok(close(to_child[0]));
	ck_ok(close(to_parent[0]));
	ck_ok(close(to_parent[1]));
	ck_assert(has_pattern(b.p, 0, SIZE));
}

static void expect_child(void)
{
	int status;

	ck_assert_int_eq(write(b.to_child, "x", 1), 1);
	ck_ok(close(b.to_child));
	ck_assert_int_eq(waitpid(b.child, &status, 0), b.child);
	ck_assert_int_eq(status, 0);
}

static void do_deregister(struct node *n, void *arg)
{
	struct turn *t = arg;

	(void)n;
	ck_ok(mprotect(b.p + HELD, PAGE, PROT_READ));
	if (t->step == DEREGISTER)
		arm(t->how, t->nth);
	if (b.mr)
		ck_ok(ibv_dereg_mr(b.mr));
	if (t->step == DEREGISTER)
		t->hit = disarm();
	if (t->step == FORK)
		expect_child();
	ck_assert(has_pattern(b.p, 0, SIZE));
	ck_ok(mprotect(b.p + HELD, PAGE, PROT_READ | PROT_WRITE));
}

/*
 * Register and deregister another MR, which completes what could not be made
 * private before.  Then all pages are private and all descriptors closed.
 */
static void do_settle(struct node *n, void *arg)
{
	struct ibv_mr *mr;
	char *q = map_pages(PAGE);

	(void)arg;
	mr = ibv_reg_mr(n->pd, q, PAGE, ALL_ACCESS);
	ck_nonnull(mr);
	ck_ok(ibv_dereg_mr(mr));
	ck_ok(munmap(q, PAGE));
	ck_assert(has_pattern(b.p, 0, SIZE));
	ck_assert(!is_adopted(b.p) && !is_adopted(b.p + HELD) &&
		  !is_adopted(b.p + SIZE - 1));
	ck_assert_int_eq(count_fds(), 0);
}

static void do_fresh(struct node *n, void *arg)
{
	struct turn *t = arg;

	(void)n;
	ck_ok(munmap(b.p, SIZE));
	b.p = map_pages(SIZE);
	t->base = (uintptr_t)b.p;
}

/* ---------------------------------------------------------------- tests */

static void write_and_read(struct duo *d, const struct turn *t)
{
	char got[64];
	size_t i;

	d->at_b.rkey = t->rkey;
	d->at_b.base = t->base;
	memset(got, 'w', sizeof(got));
	node_put(&d->a, 0, got, sizeof(got));
	ck_ok(post(d, IBV_WR_RDMA_WRITE, 1, 0, 64, 5 * PAGE, 0));
	expect_ok(d->a.scq, 1, IBV_WC_RDMA_WRITE);
	on_b(d, do_look, NULL, 0);
	ck_ok(post(d, IBV_WR_RDMA_READ, 2, 0, 64, 5 * PAGE, 0));
	expect_ok(d->a.scq, 2, IBV_WC_RDMA_READ);
	node_get(&d->a, 0, got, sizeof(got));
	for (i = 5 * PAGE; i < 5 * PAGE + 64; i++)
		ck_assert_int_eq(got[i - 5 * PAGE],
				 (char)(i * 7 + i / PAGE + 1));
}

static void take_turn(struct duo *d, struct turn *t)
{
	on_b(d, do_fresh, t, sizeof(*t));
	on_b(d, do_register, t, sizeof(*t));
	if (t->registered)
		write_and_read(d, t);
	if (t->step == FORK)
		on_b(d, do_fork, t, sizeof(*t));
	on_b(d, do_deregister, t, sizeof(*t));
	on_b(d, do_settle, NULL, 0);
}

/*
 * For one step and one fault, let the nth system call fail, for n = 1, 2, ...
 * until there are fewer than n.  The memory is right at both ends and in the
 * child.
 */
START_TEST(each_call_fails)
{
	struct turn t = { .how = _i % FAULTS, .step = _i / FAULTS };
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, TWO_PROCESSES, MEM_SHARED, MEM_SHARED, &o);
	on_b(&d, do_prepare, &t, sizeof(t));
	if (t.possible) {
		for (t.hit = true, t.nth = 1; t.hit; t.nth++)
			take_turn(&d, &t);
		ck_assert_int_gt(t.nth, 4); /* several calls did fail */
	}
	duo_close(&d);
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
	if (under_sanitizer()) {
		printf("a sanitizer's own calls would fail, too: skipped\n");
		return 77;
	}
	s = suite("adopt_faults");
	add_loop(s, each_call_fails, STEPS * FAULTS);
	return run(s);
}
