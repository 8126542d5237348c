// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* FIFOs of event channels: numbers, writers, absent readers, the sweep. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

START_TEST(create_and_write)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t n = 99, again_n = 98;
	struct urxe_arena *a;
	uint64_t v = 0;
	int fd, r, w;

	a = open_arena(f, &fd);
	r = fifo_create(f, a, &n);
	ck_assert_int_ge(r, 0);
	ck_assert_int_eq(fcntl(r, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(r, F_GETFL) & (O_ACCMODE | O_NONBLOCK), O_RDWR);
	ck_assert_int_eq(fifo_number(r, &again_n), 0);
	ck_assert_uint_eq(again_n, n);
	ck_assert_int_eq(count_entries(f, "ev", ""), 1);

	w = fifo_open_writer(f, a->slot, a->gen, n);
	ck_assert_int_ge(w, 0);
	ck_assert_int_eq(fcntl(w, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(fcntl(w, F_GETFL) & (O_ACCMODE | O_NONBLOCK),
			 O_RDWR | O_NONBLOCK);
	ck_assert_int_eq(write(w, &(uint64_t){ 0x1234 }, 8), 8);
	/* closing a writer causes no end-of-file */
	close(w);
	ck_assert_int_eq(read(r, &v, 8), 8);
	ck_assert(v == 0x1234);
	ck_assert_int_eq(
		poll(&(struct pollfd){ .fd = r, .events = POLLIN }, 1, 0), 0);
	close(r);
	close(fd);
	arena_unmap(a);
	fabric_close(f);
}
END_TEST

START_TEST(full_is_eagain)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	uint64_t v = 1;
	int fd, r, w, sent = 0;
	uint32_t n;

	a = open_arena(f, &fd);
	r = fifo_create(f, a, &n);
	w = fifo_open_writer(f, a->slot, a->gen, n);
	while (write(w, &v, 8) == 8)
		sent++;
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_gt(sent, 100);
	ck_assert_int_eq(read(r, &v, 8), 8);
	fabric_close(f);
}
END_TEST

/*
 * Without a reader, opening a writer fails with ENXIO.  A FIFO of another
 * number or generation does not exist.
 */
START_TEST(no_reader)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	int fd, r, dup_r;
	uint32_t n;

	a = open_arena(f, &fd);
	r = fifo_create(f, a, &n);
	dup_r = dup(r);
	close(r);
	r = fifo_open_writer(f, a->slot, a->gen, n);
	ck_assert_int_ge(r, 0);
	close(r);
	close(dup_r);
	ck_assert_int_eq(fifo_open_writer(f, a->slot, a->gen, n), -ENXIO);
	ck_assert_int_eq(fifo_open_writer(f, a->slot, a->gen, n + 1), -ENXIO);
	ck_assert_int_eq(fifo_open_writer(f, a->slot, a->gen + 1, n), -ENXIO);
	fabric_close(f);
}
END_TEST

START_TEST(not_a_fifo)
{
	struct urxe_fabric *f = new_fabric();
	uint32_t n = 42;
	int fd = open_context(f), p[2];

	ck_assert_int_eq(fifo_number(fd, &n), -EINVAL);
	ck_assert_int_eq(fifo_number(-1, &n), -EINVAL);
	ck_assert_int_eq(pipe(p), 0);
	ck_assert_int_eq(fifo_number(p[0], &n), -EINVAL);
	ck_assert_uint_eq(n, 42);
	fabric_close(f);
}
END_TEST

/* fifo_create() removes FIFOs without a reader, and no others. */
START_TEST(closed_fifos_swept)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	int fd, i, r, kept;
	uint32_t n, kept_n;

	a = open_arena(f, &fd);
	kept = fifo_create(f, a, &kept_n);
	for (i = 0; i < 1000; i++) {
		r = fifo_create(f, a, &n);
		ck_assert_int_ge(r, 0);
		close(r);
	}
	ck_assert_int_le(count_entries(f, "ev", ""), 40);
	r = fifo_open_writer(f, a->slot, a->gen, kept_n);
	ck_assert_int_ge(r, 0);
	close(kept);
	fabric_close(f);
}
END_TEST

#define MAKERS 3
#define MADE 2000

static int make_many(struct urxe_fabric *f, struct urxe_arena *a)
{
	int i, r, w = 0;
	uint32_t n;

	for (i = 0; i < MADE && w >= 0; i++) {
		r = fifo_create(f, a, &n);
		w = r < 0 ? r : fifo_open_writer(f, a->slot, a->gen, n);
		if (r >= 0)
			close(r);
		if (w >= 0)
			close(w);
	}
	return w < 0;
}

/*
 * Several processes of a context create channels and sweep concurrently.  No
 * FIFO in use is removed.
 */
START_TEST(sweep_during_create)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a;
	int fd, i, status;
	pid_t pid;

	a = open_arena(f, &fd);
	for (i = 0; i < MAKERS; i++) {
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (!pid)
			_exit(make_many(f, a));
	}
	for (i = 0; i < MAKERS; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	fabric_close(f);
}
END_TEST

START_TEST(remove_all_keeps_others)
{
	struct urxe_fabric *f = new_fabric();
	struct urxe_arena *a, *b;
	int fda, fdb, i;
	uint32_t n;

	a = open_arena(f, &fda);
	b = open_arena(f, &fdb);
	for (i = 0; i < 5; i++) {
		ck_assert_int_ge(fifo_create(f, a, &n), 0);
		ck_assert_int_ge(fifo_create(f, b, &n), 0);
	}
	ck_assert_int_eq(fifo_remove_all(f, a->slot, a->gen), 0);
	ck_assert_int_eq(count_entries(f, "ev", ""), 5);
	ck_assert_int_eq(fifo_remove_all(f, b->slot, b->gen + 1), 0);
	ck_assert_int_eq(count_entries(f, "ev", ""), 5);
	ck_assert_int_ge(fifo_open_writer(f, b->slot, b->gen, n), 0);
	/* a few are removed by number, many by reading the directory */
	for (i = 0; i < 100; i++)
		ck_assert_int_ge(fifo_create(f, a, &n), 0);
	ck_assert_int_eq(fifo_remove_all(f, a->slot, a->gen), 0);
	ck_assert_int_eq(count_entries(f, "ev", ""), 5);
	ck_assert_int_eq(fifo_remove_all(f, b->slot, b->gen), 0);
	ck_assert_int_eq(count_entries(f, "ev", ""), 0);
	fabric_close(f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fifo");

	add(s, create_and_write);
	add(s, full_is_eagain);
	add(s, no_reader);
	add(s, not_a_fifo);
	add(s, closed_fifos_swept);
	add(s, sweep_during_create);
	add(s, remove_all_keeps_others);
	return run_suite(s);
}
