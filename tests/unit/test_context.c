// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contexts: a context is alive while a descriptor or a mapping of its arena
 * is open in any process.  After that its resources are freed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "unit.h"

static uint32_t state_of(const struct urxe_fabric *f, uint32_t slot)
{
	return atomic_load(&f->dev->ctx[slot].state);
}

START_TEST(open_close)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	uint32_t slot, gen;
	struct stat st;
	int fd;

	a = open_arena(f, &fd);
	slot = a->slot;
	gen = a->gen;
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
	ck_assert_uint_eq(state_of(f, slot), URXE_CTX_LIVE);
	ck_assert_int_eq(atomic_load(&f->dev->ctx[slot].pid), getpid());
	ck_assert(fabric_context_alive(f, slot, gen));
	ck_assert(!fabric_context_alive(f, slot, gen + 1));
	ck_assert_int_eq(fabric_reap(f), 0);
	ck_assert(!fabric_reap_one(f, slot, gen));

	/* how the preload library recognizes a cmd_fd */
	ck_assert_int_eq(fstat(fd, &st), 0);
	errno = 1234;
	ck_assert(fabric_is_arena(fd, &st));
	ck_assert_int_eq(errno, 1234);
	ck_assert(!fabric_is_arena(f->dirfd, &st));
	ck_assert_int_eq(errno, 1234);
	st.st_size--;
	ck_assert(!fabric_is_arena(fd, &st));

	arena_unmap(a);
	close(fd);
	ck_assert(!fabric_context_alive(f, slot, gen));
	ck_assert_int_eq(count_entries(f, "ctx", ""), 1);
	ck_assert_int_eq(fabric_reap(f), 1);
	ck_assert_uint_eq(state_of(f, slot), URXE_CTX_FREE);
	ck_assert_int_eq(count_entries(f, "ctx", ""), 0);
	ck_assert_int_eq(fabric_reap(f), 0);
	fabric_close(f);
}
END_TEST

/* A mapping holds the open file, as a descriptor does. */
START_TEST(mapping_keeps_alive)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	uint32_t slot, gen;
	int fd;

	a = open_arena(f, &fd);
	slot = a->slot;
	gen = a->gen;
	close(fd);
	ck_assert(fabric_context_alive(f, slot, gen));
	ck_assert_int_eq(fabric_reap(f), 0);
	arena_unmap(a);
	ck_assert(!fabric_context_alive(f, slot, gen));
	ck_assert_int_eq(fabric_reap(f), 1);
	fabric_close(f);
}
END_TEST

START_TEST(dup_keeps_alive)
{
	struct urxe_fabric *f = new_fabric();
	int fd = open_context(f), copy = dup(fd);

	close(fd);
	ck_assert_int_eq(fabric_reap(f), 0);
	/*
	 * opening the file again and closing it changes nothing (POSIX locks
	 * would be lost)
	 */
	fd = openat(f->dirfd, "ctx/0.1", O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(fabric_reap(f), 0);
	close(copy);
	ck_assert_int_eq(fabric_reap(f), 1);
	fabric_close(f);
}
END_TEST

static int wait_for_end(void *arg)
{
	pause();
	return arg != NULL;
}

START_TEST(fork_keeps_alive)
{
	struct urxe_fabric *f = new_fabric();
	int fd = open_context(f);
	pid_t child = spawn(wait_for_end, NULL);

	close(fd);
	ck_assert_int_eq(fabric_reap(f), 0);
	kill_child(child);
	ck_assert_int_eq(fabric_reap(f), 1);
	fabric_close(f);
}
END_TEST

static int exec_sleep(void *arg)
{
	execl("/bin/sleep", "sleep", "1000", NULL);
	return arg != NULL;
}

/*
 * After exec(2) a child does not keep the context alive: its descriptor is
 * close-on-exec.
 */
START_TEST(exec_does_not_keep_alive)
{
	struct urxe_fabric *f = new_fabric();
	int fd = open_context(f), i;
	pid_t child = spawn(exec_sleep, NULL);

	close(fd);
	for (i = 0; i < 6000 && !fabric_reap(f); i++)
		usleep(10000);
	ck_assert_int_lt(i, 6000);
	kill_child(child);
	fabric_close(f);
}
END_TEST

static void send_fd(int sock, int fd)
{
	char data = 'x', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &data, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ck_assert_int_eq(sendmsg(sock, &msg, 0), 1);
}

START_TEST(fd_passing_keeps_alive)
{
	struct urxe_fabric *f = new_fabric();
	int fd = open_context(f), sock[2];

	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), 0);
	send_fd(sock[0], fd);
	close(fd);
	/* the descriptor is alive in the socket's queue */
	ck_assert_int_eq(fabric_reap(f), 0);
	close(sock[1]);
	ck_assert_int_eq(fabric_reap(f), 1);
	fabric_close(f);
}
END_TEST

/* Shared with a program that is killed; slot, gen and qpn are its own. */
struct victim {
	struct urxe_fabric *f;
	_Atomic int ready;
	uint32_t slot, gen, qpn[3];
};

static int be_killed(void *arg)
{
	struct victim *v = arg;
	struct urxe_fabric *f = again(v->f);
	struct urxe_arena *a;
	uint32_t n;
	int fd, i;

	a = open_arena(f, &fd);
	v->slot = a->slot;
	v->gen = a->gen;
	for (i = 0; i < URXE_OBJ_COUNT; i++)
		if (fabric_obj_get(f, a->slot, i) ||
		    fabric_obj_get(f, a->slot, i))
			return 1;
	for (i = 0; i < 3; i++) {
		if (qpn_alloc(f, a->slot, a->gen, &v->qpn[i]))
			return 2;
		atomic_store(&a->qp[qpn_index(v->qpn[i])].conn,
			     URXE_CONN(v->qpn[i], 5, 3));
		if (fifo_create(f, a, &n) < 0)
			return 3;
	}
	i = dm_heap_alloc(f, a->slot, a->gen, 100000, 0);
	if (i < 0)
		return 4;
	if (dm_heap_hold(f, i, URXE_DM_MADE(atomic_load(&f->dev->dm[i].refs))))
		return 5;
	atomic_store(&f->dev->mcast[0].qpn[2], v->qpn[0]);
	atomic_store(&f->dev->mcast[0].count, 1);
	atomic_store(&v->ready, 1);
	pause();
	return 6;
}

START_TEST(killed_and_reaped)
{
	struct victim *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct urxe_fabric *f = new_fabric();
	uint32_t i, slot, gen;
	struct urxe_arena *a;
	pid_t child;
	int fd;

	v->f = f;
	child = spawn(be_killed, v);
	while (!atomic_load(&v->ready))
		usleep(1000);
	ck_assert_int_eq(arena_map_peer(f, v->slot, v->gen, &a, &fd), 0);
	kill_child(child);
	ck_assert(fabric_reap_one(f, v->slot, v->gen));

	for (i = 0; i < URXE_OBJ_COUNT; i++) {
		ck_assert_uint_eq(atomic_load(&f->dev->used[i]), 0);
		ck_assert_uint_eq(atomic_load(&f->dev->ctx[v->slot].used[i]),
				  0);
	}
	for (i = 0; i < 3; i++) {
		ck_assert(!qpn_lookup(f->dev, v->qpn[i], &slot, &gen));
		/* a peer that has the arena mapped sees it, too */
		ck_assert(!atomic_load(&a->qp[qpn_index(v->qpn[i])].conn));
	}
	for (i = 0; i < dm_slots(f->dev); i++)
		ck_assert_uint_eq(atomic_load(&f->dev->dm[i].used), 0);
	for (i = 0; i < sizeof(f->dev->dm_map) / 8; i++)
		ck_assert(f->dev->dm_map[i] == 0);
	ck_assert_uint_eq(atomic_load(&f->dev->mcast[0].count), 0);
	ck_assert_uint_eq(atomic_load(&f->dev->mcast[0].qpn[2]), 0);
	ck_assert_int_eq(count_entries(f, "ctx", ""), 0);
	ck_assert_int_eq(count_entries(f, "ev", ""), 0);
	ck_assert_uint_eq(state_of(f, v->slot), URXE_CTX_FREE);
	fabric_close(f);
}
END_TEST

START_TEST(reaping_keeps_live_contexts)
{
	struct victim *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct urxe_fabric *f = new_fabric();
	uint32_t qpn, slot, gen, n;
	struct urxe_arena *a;
	pid_t child;
	int fd, dm;

	a = open_arena(f, &fd);
	ck_assert_int_eq(fabric_obj_get(f, a->slot, URXE_OBJ_QP), 0);
	ck_assert_int_eq(qpn_alloc(f, a->slot, a->gen, &qpn), 0);
	ck_assert_int_ge(fifo_create(f, a, &n), 0);
	dm = dm_heap_alloc(f, a->slot, a->gen, 4096, 0);
	ck_assert_int_ge(dm, 0);
	v->f = f;
	child = spawn(be_killed, v);
	while (!atomic_load(&v->ready))
		usleep(1000);
	kill_child(child);
	/* opening a device reaps dead contexts */
	open_context(f);
	ck_assert_uint_ne(v->gen, 0);
	ck_assert_uint_eq(atomic_load(&f->dev->used[URXE_OBJ_QP]), 1);
	ck_assert_uint_eq(atomic_load(&f->dev->used[URXE_OBJ_MR]), 0);
	ck_assert(qpn_lookup(f->dev, qpn, &slot, &gen));
	ck_assert_uint_eq(slot, a->slot);
	ck_assert_uint_ne(atomic_load(&f->dev->dm[dm].used), 0);
	ck_assert_int_eq(count_entries(f, "ev", ""), 1);
	fabric_close(f);
}
END_TEST

static bool is_roomy(const struct urxe_fabric *f)
{
	struct statvfs s;

	ck_assert_int_eq(fstatvfs(f->dirfd, &s), 0);
	return s.f_bavail > s.f_blocks / 2 + s.f_blocks / 16;
}

/*
 * An opening checks a few contexts, and the next opening checks the following
 * ones.
 */
START_TEST(opens_check_in_turn)
{
	enum { MANY = 24, DEAD = 20 };
	struct urxe_fabric *f = new_fabric();
	int i, fd[MANY];

	if (!is_roomy(f)) {
		fprintf(stderr, "skipped: %s is nearly half full\n", f->dir);
		fabric_close(f); /* then an opening checks all contexts */
		return;
	}
	for (i = 0; i < MANY; i++)
		fd[i] = open_context(f);
	atomic_store(&f->dev->reap_next, 0);
	close(fd[DEAD]);
	open_context(f);
	ck_assert_uint_eq(state_of(f, DEAD), URXE_CTX_LIVE);
	for (i = 0; i < DEAD / 4; i++)
		open_context(f);
	ck_assert_uint_eq(state_of(f, DEAD), URXE_CTX_FREE);

	/*
	 * if a job was killed as a whole, the first opening reaps all of it
	 */
	atomic_store(&f->dev->reap_next, 0xffffffff); /* damaged */
	for (i = 0; i < DEAD; i++)
		close(fd[i]);
	open_context(f);
	for (i = 0; i < DEAD; i++)
		ck_assert_uint_eq(state_of(f, i), URXE_CTX_FREE);
	fabric_close(f);
}
END_TEST

/* Use up the XRC domains, the device memory and a multicast group. */
static int have_all(void *arg)
{
	static const uint8_t group[16] = { 0xff };
	struct victim *v = arg;
	struct urxe_fabric *f = again(v->f);
	struct urxe_arena *a;
	uint32_t i, qpn;
	int fd;

	a = open_arena(f, &fd);
	v->slot = a->slot;
	for (i = 0; i < fabric_obj_limit(URXE_OBJ_XRCD); i++)
		if (fabric_obj_get(f, a->slot, URXE_OBJ_XRCD))
			return 1;
	if (dm_heap_alloc(f, a->slot, a->gen, f->dm_bytes, 0) < 0)
		return 2;
	for (i = 0; i < URXE_MAX_MCAST_ATTACH; i++)
		if (qpn_alloc(f, a->slot, a->gen, &qpn) ||
		    mcast_attach(f, group, qpn) != 1)
			return 3;
	atomic_store(&v->ready, 1);
	pause();
	return 4;
}

/*
 * If a resource is used up, all contexts are checked, and what dead ones held
 * is available.
 */
START_TEST(dead_contexts_reaped_when_full)
{
	static const uint8_t group[16] = { 0xff };
	struct victim *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct urxe_fabric *f;
	struct urxe_arena *a;
	uint32_t qpn;
	pid_t child;
	int fd;

	setenv("URXE_DM_SIZE", "4M", 1);
	f = new_fabric();
	a = open_arena(f, &fd);
	ck_assert_int_eq(qpn_alloc(f, a->slot, a->gen, &qpn), 0);
	v->f = f;
	child = spawn(have_all, v);
	while (!atomic_load(&v->ready))
		usleep(1000);
	if (_i == 0)
		ck_assert_int_eq(fabric_obj_get(f, a->slot, URXE_OBJ_XRCD),
				 -ENOMEM);
	else if (_i == 1)
		ck_assert_int_eq(dm_heap_alloc(f, a->slot, a->gen, 4096, 0),
				 -ENOMEM);
	else
		ck_assert_int_eq(mcast_attach(f, group, qpn), -ENOMEM);
	kill_child(child);
	if (_i == 0)
		ck_assert_int_eq(fabric_obj_get(f, a->slot, URXE_OBJ_XRCD), 0);
	else if (_i == 1)
		ck_assert_int_ge(dm_heap_alloc(f, a->slot, a->gen, 4096, 0), 0);
	else
		ck_assert_int_eq(mcast_attach(f, group, qpn), 1);
	ck_assert_uint_eq(state_of(f, v->slot), URXE_CTX_FREE);
	fabric_close(f);
}
END_TEST

START_TEST(generations)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t i, last[URXE_MAX_CTX] = { 0 };
	struct urxe_arena *a;
	int fd;

	for (i = 0; i < 2 * URXE_MAX_CTX + 10; i++) {
		a = open_arena(f, &fd);
		ck_assert_uint_gt(a->gen, last[a->slot]);
		last[a->slot] = a->gen;
		arena_unmap(a);
		close(fd);
	}
	fabric_close(f);
}
END_TEST

START_TEST(half_opened_is_reaped)
{
	struct urxe_fabric *f = new_fabric();

	/* a process was killed in fabric_context_open() */
	atomic_store(&f->dev->ctx[9].gen, 4);
	atomic_store(&f->dev->ctx[9].state, URXE_CTX_OPENING);
	close(openat(f->dirfd, "ctx/9.4", O_CREAT | O_RDWR, 0600));
	ck_assert_int_eq(fabric_reap(f), 1);
	ck_assert_uint_eq(state_of(f, 9), URXE_CTX_FREE);
	ck_assert_int_eq(count_entries(f, "ctx", ""), 0);
	fabric_close(f);
}
END_TEST

START_TEST(all_contexts)
{
	static int fd[URXE_MAX_CTX];
	struct urxe_fabric *f;
	struct rlimit nofile;
	int i;

	getrlimit(RLIMIT_NOFILE, &nofile);
	if (nofile.rlim_cur < URXE_MAX_CTX + 64) {
		nofile.rlim_cur = URXE_MAX_CTX + 64;
		if (setrlimit(RLIMIT_NOFILE, &nofile)) {
			fprintf(stderr, "skipped: no %u descriptors: %s\n",
				URXE_MAX_CTX + 64, strerror(errno));
			return;
		}
	}
	if (!have_room(2ull * URXE_MAX_CTX * offsetof(struct urxe_arena, file)))
		return;
	f = new_fabric();
	for (i = 0; i < URXE_MAX_CTX; i++)
		fd[i] = open_context(f);
	ck_assert_int_eq(fabric_context_open(f, 0), -ENOSPC);
	ck_assert_str_ne(fabric_why(), "");
	close(fd[100]);
	fd[100] = open_context(f);
	ck_assert_int_eq(fabric_context_open(f, 0), -ENOSPC);
	for (i = 0; i < URXE_MAX_CTX; i++)
		close(fd[i]);
	ck_assert_int_eq(fabric_reap(f), URXE_MAX_CTX);
	fabric_close(f);
}
END_TEST

static int open_many(void *arg)
{
	struct urxe_fabric *f = again(arg);
	struct urxe_arena *a;
	int i, fd;

	for (i = 0; i < 50; i++) {
		a = open_arena(f, &fd);
		if (a->pid != getpid() ||
		    !fabric_context_alive(f, a->slot, a->gen))
			return 1;
		arena_unmap(a);
		close(fd);
	}
	return 0;
}

START_TEST(open_race)
{
	struct urxe_fabric *f = new_fabric();
	pid_t pid[6];
	int i;

	for (i = 0; i < 6; i++)
		pid[i] = spawn(open_many, f);
	for (i = 0; i < 6; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	fabric_reap(f);
	ck_assert_int_eq(count_entries(f, "ctx", ""), 0);
	fabric_close(f);
}
END_TEST

/* The limit applies to each context separately. */
static void context_limit(struct urxe_fabric *f, enum urxe_obj o)
{
	const uint32_t limit = fabric_obj_limit(o);

	atomic_store(&f->dev->ctx[0].used[o], limit - 1);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), 0);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), -ENOMEM);
	ck_assert_str_ne(fabric_why(), "");
	ck_assert_int_eq(fabric_obj_get(f, 1, o), 0);
	fabric_obj_put(f, 0, o);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), 0);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), -ENOMEM);
	atomic_store(&f->dev->ctx[0].used[o], 0x87654321);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), 0);
}

static int ask_a_full_context(void *arg)
{
	int i;

	for (i = 0; i < 300000; i++)
		if (fabric_obj_get(arg, 0, URXE_OBJ_PD) != -ENOMEM)
			return 1;
	return 0;
}

/* Concurrent requests do not exceed the limit. */
START_TEST(object_limit_race)
{
	struct urxe_fabric *f = new_fabric();
	pid_t pid[3];
	int i;

	open_context(f);
	atomic_store(&f->dev->ctx[0].used[URXE_OBJ_PD],
		     fabric_obj_limit(URXE_OBJ_PD));
	for (i = 0; i < 3; i++)
		pid[i] = spawn(ask_a_full_context, f);
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(reap_child(pid[i]), 0);
	fabric_close(f);
}
END_TEST

START_TEST(object_limits)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t o = _i, i, limit = fabric_obj_limit(o);

	ck_assert_uint_gt(limit, 0);
	ck_assert_str_ne(fabric_obj_name(o), "");
	for (i = 0; i < 7; i++)
		open_context(f);
	if (o != URXE_OBJ_QP && o != URXE_OBJ_XRCD && o != URXE_OBJ_DM) {
		context_limit(f, o);
		fabric_close(f);
		return;
	}
	for (i = 0; i < limit; i++)
		ck_assert_int_eq(fabric_obj_get(f, i % 7, o), 0);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), -ENOMEM);
	ck_assert_str_ne(fabric_why(), "");
	ck_assert_uint_eq(atomic_load(&f->dev->used[o]), limit);
	fabric_obj_put(f, 0, o);
	ck_assert_int_eq(fabric_obj_get(f, 3, o), 0);
	ck_assert_int_eq(fabric_obj_get(f, 3, o), -ENOMEM);
	/* a corrupted count does not make allocations fail for ever */
	fabric_obj_put(f, 0, o);
	atomic_store(&f->dev->used[o], 0x87654321);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), 0);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), -ENOMEM);
	atomic_store(&f->dev->ctx[1].used[o], 0xffffffff);
	ck_assert_int_eq(fabric_obj_get(f, 0, o), 0);
	fabric_close(f);
}
END_TEST

static int claim_and_stay(void *arg)
{
	struct urxe_fabric *f = arg;

	atomic_store(&f->dev->ctx[9].worker, process_id(f));
	atomic_store(&f->dev->ctx[9].state, URXE_CTX_REAPING);
	pause();
	return 0;
}

/*
 * A reaper that is stopped keeps its slot until it dies.  Other processes do
 * not wait for it.
 */
START_TEST(reaper_stops_and_dies)
{
	struct urxe_fabric *f = new_fabric();
	pid_t pid;

	process_id(f); /* a child has an id of its own */
	pid = spawn(claim_and_stay, f);
	while (state_of(f, 9) != URXE_CTX_REAPING)
		usleep(100);
	kill(pid, SIGSTOP);
	ck_assert_int_eq(fabric_reap(f), 0);
	close(open_context(f));
	ck_assert_int_eq(fabric_reap(f), 1);
	kill_child(pid);
	ck_assert_int_eq(fabric_reap(f), 1);
	ck_assert_uint_eq(state_of(f, 9), URXE_CTX_FREE);
	fabric_close(f);
}
END_TEST

/*
 * If the FIFOs of a dead context cannot be listed, the context is left to a
 * process that can list them.
 */
START_TEST(fifos_cannot_be_listed)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	uint32_t number;
	int fd, fifo;

	a = open_arena(f, &fd);
	fifo = fifo_create(f, a, &number);
	ck_assert_int_ge(fifo, 0);
	close(fifo);
	arena_unmap(a);
	close(fd);
	ck_assert_int_eq(renameat(f->dirfd, "ev", f->dirfd, "away"), 0);
	ck_assert_int_eq(mknodat(f->dirfd, "ev", S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(fabric_reap(f), 0);
	ck_assert_int_eq(unlinkat(f->dirfd, "ev", 0), 0);
	ck_assert_int_eq(renameat(f->dirfd, "away", f->dirfd, "ev"), 0);
	ck_assert_int_eq(fabric_reap(f), 1);
	ck_assert_int_eq(count_entries(f, "ev", ""), 0);
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("context");
	TCase *used_up = tcase_create("dead_contexts_reaped_when_full");
	TCase *tc = tcase_create("object_limits");

	add(s, open_close);
	add(s, mapping_keeps_alive);
	add(s, dup_keeps_alive);
	add(s, fork_keeps_alive);
	add(s, exec_does_not_keep_alive);
	add(s, fd_passing_keeps_alive);
	add(s, killed_and_reaped);
	add(s, reaping_keeps_live_contexts);
	add(s, opens_check_in_turn);
	tcase_add_loop_test(used_up, dead_contexts_reaped_when_full, 0, 3);
	suite_add_tcase(s, used_up);
	add(s, generations);
	add(s, half_opened_is_reaped);
	add(s, all_contexts);
	add(s, open_race);
	tcase_add_loop_test(tc, object_limits, 0, URXE_OBJ_COUNT);
	add(s, object_limit_race);
	suite_add_tcase(s, tc);
	add(s, reaper_stops_and_dies);
	add(s, fifos_cannot_be_listed);
	return run_suite(s);
}
