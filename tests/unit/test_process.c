// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process of the fabric is dead when its address space has ended, and not
 * before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* A child that has reported its id and lives until it is killed. */
struct living {
	pid_t pid;
	uint32_t id;
	int fd; /* end of file when no process has the pipe any more */
};

struct start {
	struct urxe_fabric *f;
	int flags; /* for unshare(2) */
	bool fork; /* the child forks a child of its own */
	int out;
};

static int live(void *arg)
{
	struct start *s = arg;
	uint32_t id;

	if (s->flags) {
		pid_t child;

		if (unshare(s->flags))
			return 77;
		child = fork();
		if (child) { /* the child has PID 1 there */
			waitpid(child, NULL, 0);
			return 0;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	id = process_id(s->f);
	if (s->fork && !fork()) {
		pause();
		return 0;
	}
	if (write(s->out, &id, sizeof(id)) != sizeof(id))
		return 1;
	pause();
	return 0;
}

static bool start(struct urxe_fabric *f, int flags, bool fork, struct living *l)
{
	struct start s = { .f = f, .flags = flags, .fork = fork };
	int p[2];

	ck_assert_int_eq(pipe(p), 0);
	s.out = p[1];
	l->pid = spawn(live, &s);
	close(p[1]);
	l->fd = p[0];
	return read(l->fd, &l->id, sizeof(l->id)) == sizeof(l->id);
}

/* Wait until process_is_dead() is true, shortly after SIGKILL. */
static void await_death(struct urxe_fabric *f, uint32_t id)
{
	while (!process_is_dead(f, id))
		usleep(1000);
}

START_TEST(one_id_for_each_mapping)
{
	struct urxe_fabric *f = new_fabric(), *g = again(f);
	uint32_t id = process_id(f), other = process_id(g);

	ck_assert_uint_ne(id, 0);
	ck_assert_uint_ne(other, 0);
	ck_assert_uint_ne(id, other);
	ck_assert_uint_eq(process_id(f), id);
	ck_assert(!process_is_dead(f, id));
	ck_assert(!process_is_dead(g, id));
	ck_assert(!process_is_dead(f, other));
	fabric_close(g);
	ck_assert(process_is_dead(f, other));
	ck_assert(!process_is_dead(f, id));
	fabric_close(f);
}
END_TEST

START_TEST(number_reused)
{
	struct urxe_fabric *f = new_fabric(), *g = again(f), *h = again(f);
	uint32_t old = process_id(g), id;

	fabric_close(g);
	atomic_store(&f->dev->process_next, URXE_PROCESS_NUMBER(old));
	id = process_id(h);
	ck_assert_uint_eq(URXE_PROCESS_NUMBER(id), URXE_PROCESS_NUMBER(old));
	ck_assert_uint_ne(id, old);
	ck_assert(process_is_dead(f, old));
	ck_assert(!process_is_dead(f, id));
	fabric_close(h);
	fabric_close(f);
}
END_TEST

/*
 * A forked child has all descriptors, and an id of its own.  When the parent
 * ends, it is dead, although the child lives.
 */
START_TEST(child_does_not_keep_it_alive)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t mine = process_id(f);
	struct living l;

	ck_assert(start(f, 0, true, &l));
	ck_assert_uint_ne(l.id, mine);
	ck_assert(!process_is_dead(f, l.id));
	kill_child(l.pid);
	await_death(f, l.id);
	/* its child lives, has the pipe, and is not waited for */
	ck_assert_int_eq(poll(&(struct pollfd){ .fd = l.fd, .events = POLLIN },
			      1, 0),
			 0);
	ck_assert(!process_is_dead(f, mine));
	fabric_close(f);
}
END_TEST

START_TEST(stopped_is_not_dead)
{
	struct urxe_fabric *f = new_fabric();
	struct living l;
	int status;

	ck_assert(start(f, 0, false, &l));
	ck_assert_int_eq(kill(l.pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(l.pid, &status, WUNTRACED), l.pid);
	ck_assert(!process_is_dead(f, l.id));
	kill_child(l.pid);
	await_death(f, l.id);
	fabric_close(f);
}
END_TEST

/* Two processes that both have PID 1, each in its own PID namespace. */
START_TEST(namespaces)
{
	const int flags = CLONE_NEWUSER | CLONE_NEWPID;
	struct urxe_fabric *f = new_fabric();
	struct living a, b;

	if (!start(f, flags, false, &a)) {
		fprintf(stderr, "skipped: no PID namespaces here\n");
		fabric_close(f);
		return;
	}
	ck_assert(start(f, flags, false, &b));
	ck_assert_uint_ne(a.id, b.id);
	kill_child(a.pid);
	await_death(f, a.id);
	ck_assert(!process_is_dead(f, b.id));
	kill_child(b.pid);
	await_death(f, b.id);
	fabric_close(f);
}
END_TEST

static bool seems_alive(struct urxe_fabric *f, uint32_t id)
{
	return process_seems_alive(
		&f->dev->process[URXE_PROCESS_NUMBER(id)], id);
}

static void *show(void *f)
{
	process_publish_liveness(f);
	return NULL;
}

/*
 * process_seems_alive() is true only while the thread that called
 * process_publish_liveness() is alive.  After its end another thread can call
 * that.
 */
START_TEST(alive_while_thread_lives)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t id = process_id(f);
	pthread_t thread;

	ck_assert(!seems_alive(f, id));
	ck_assert_int_eq(pthread_create(&thread, NULL, show, f), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	while (seems_alive(f, id))
		usleep(1000);
	ck_assert(!process_is_dead(f, id));
	process_publish_liveness(f);
	ck_assert(seems_alive(f, id));
	ck_assert(!seems_alive(f, id + (1 << 12)));
	fabric_close(f);
}
END_TEST

/* A process that opens the fabric again keeps its id. */
START_TEST(id_kept_when_reopened)
{
	struct urxe_fabric *f = new_fabric(), *g = again(f), *h;
	uint32_t id;

	process_publish_liveness(g);
	id = process_id(g);
	fabric_close(g);
	ck_assert(!process_is_dead(f, id));
	ck_assert(seems_alive(f, id));
	g = again(f);
	ck_assert_uint_eq(process_id(g), id);
	h = again(f);
	ck_assert_uint_ne(process_id(h), id);
	fabric_close(h);
	fabric_close(g);
	fabric_close(f);
}
END_TEST

static int show_and_wait(void *arg)
{
	struct start *s = arg;

	process_publish_liveness(s->f);
	return live(arg);
}

/* A process that waitpid() has reported does not seem alive any more. */
START_TEST(not_alive_after_waitpid)
{
	struct urxe_fabric *f = new_fabric();
	struct start s = { .f = f };
	uint32_t id;
	pid_t pid;
	int p[2], i;

	for (i = 0; i < 50; i++) {
		ck_assert_int_eq(pipe(p), 0);
		s.out = p[1];
		pid = spawn(show_and_wait, &s);
		ck_assert_int_eq(read(p[0], &id, sizeof(id)), sizeof(id));
		ck_assert(seems_alive(f, id));
		kill_child(pid);
		ck_assert(!seems_alive(f, id));
		close(p[0]);
		close(p[1]);
	}
	fabric_close(f);
}
END_TEST

static void *show_and_exec(void *arg)
{
	struct start *s = arg;
	uint32_t id = process_id(s->f);

	process_publish_liveness(s->f);
	if (write(s->out, &id, sizeof(id)) != sizeof(id))
		_exit(1);
	execlp("sleep", "sleep", "1000", NULL);
	_exit(1);
}

static int exec_in_a_thread(void *arg)
{
	pthread_t thread;

	pthread_create(&thread, NULL, show_and_exec, arg);
	pause();
	return 1;
}

/*
 * exec(2) gives the calling thread the TID of the thread group leader, so
 * that the kernel does not recognize the mutex `life` as held.
 */
START_TEST(not_alive_after_exec)
{
	struct urxe_fabric *f = new_fabric();
	struct start s = { .f = f };
	uint32_t id;
	pid_t pid;
	int p[2];

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	s.out = p[1];
	pid = spawn(exec_in_a_thread, &s);
	close(p[1]);
	ck_assert_int_eq(read(p[0], &id, sizeof(id)), sizeof(id));
	ck_assert_int_eq(read(p[0], &id, sizeof(id)), 0); /* until exec */
	await_death(f, id);
	ck_assert(!seems_alive(f, id));
	kill_child(pid);
	close(p[0]);
	fabric_close(f);
}
END_TEST

static int show_in_a_child(void *arg)
{
	struct urxe_fabric *f = arg;

	process_publish_liveness(f);
	return !seems_alive(f, process_id(f));
}

/*
 * A forked child does not have its parent's mapping: it shows a life of its
 * own, and its parent's is not affected.
 */
START_TEST(child_has_own_liveness)
{
	struct urxe_fabric *f = new_fabric();

	process_publish_liveness(f);
	ck_assert_int_eq(reap_child(spawn(show_in_a_child, f)), 0);
	ck_assert(seems_alive(f, process_id(f)));
	fabric_close(f);
}
END_TEST

/*
 * If the file procs was removed or replaced, no process is reported dead, and
 * no id is assigned.
 */
START_TEST(procs_file_replaced)
{
	struct urxe_fabric *f = new_fabric(), *g = again(f);
	uint32_t id = process_id(f);

	ck_assert_int_eq(unlinkat(f->dirfd, "procs", 0), 0);
	ck_assert(!process_is_dead(g, id));
	ck_assert_uint_eq(process_id(g), 0);
	ck_assert_ptr_nonnull(strstr(fabric_why(), "procs"));
	close(openat(f->dirfd, "procs", O_RDWR | O_CREAT, 0600));
	ck_assert(!process_is_dead(g, id));
	ck_assert_uint_eq(process_id(g), 0);
	fabric_close(g);
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("process");

	add(s, one_id_for_each_mapping);
	add(s, number_reused);
	add(s, child_does_not_keep_it_alive);
	add(s, stopped_is_not_dead);
	add(s, namespaces);
	add(s, alive_while_thread_lives);
	add(s, id_kept_when_reopened);
	add(s, not_alive_after_waitpid);
	add(s, not_alive_after_exec);
	add(s, child_has_own_liveness);
	add(s, procs_file_replaced);
	return run_suite(s);
}
