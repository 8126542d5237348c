// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Side effects that a library must not have on its program: leaked or
 * inherited descriptors, a changed errno on success, output, leaked mappings,
 * changed signal handlers.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../harness.h"

static uint8_t before[4096];

/* Set open_fds[fd] for each open descriptor, and return their number. */
static int list_fds(uint8_t *open_fds)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *de;
	int n = 0, fd;

	ck_assert_ptr_nonnull(dir);
	memset(open_fds, 0, sizeof(before));
	while ((de = readdir(dir))) {
		fd = atoi(de->d_name);
		if (de->d_name[0] == '.' || fd == dirfd(dir) ||
		    fd >= (int)sizeof(before))
			continue;
		open_fds[fd] = 1;
		n++;
	}
	closedir(dir);
	return n;
}

static int count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n++;
	fclose(f);
	return n;
}

/* Connect two contexts, send, write, and close them. */
static void use_everything(void)
{
	struct ibv_device_attr attr;
	struct opts o = default_opts();
	struct duo d;

	o.channel = true;
	duo_open(&d, SAME_PROCESS, MEM_SHARED, MEM_DM, &o);
	b_recv(&d, 1, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	ck_ok(ibv_query_device(d.a.ctx, &attr));
	duo_close(&d);
}

/* Each descriptor that the library opens has FD_CLOEXEC. */
START_TEST(close_on_exec)
{
	uint8_t after[sizeof(before)];
	struct opts o = default_opts();
	char link[64], target[300];
	struct duo d;
	ssize_t n;
	int fd;

	list_fds(before);
	o.channel = true;
	duo_open(&d, SAME_PROCESS, MEM_SHARED, MEM_DM, &o);
	b_recv(&d, 1, 0, 64);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect_ok(d.a.scq, 1, IBV_WC_SEND);
	list_fds(after);
	for (fd = 0; fd < (int)sizeof(after); fd++) {
		if (!after[fd] || before[fd])
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		ck_assert_msg(fcntl(fd, F_GETFD) & FD_CLOEXEC,
			      "fd %d (%s) is inherited by exec", fd, target);
	}
	duo_close(&d);
}
END_TEST

/* Contexts that are closed leave neither descriptors nor mappings. */
START_TEST(nothing_leaks)
{
	uint8_t after[sizeof(before)];
	int n, maps, i, rounds = under_sanitizer() ? 100 : 1000;
	struct ibv_context *ctx;

	/* the first use may create state of the process that stays */
	use_everything();
	n = list_fds(before);
	maps = count_maps();
	for (i = 0; i < rounds; i++) {
		ctx = open_device();
		ck_ok(ibv_close_device(ctx));
	}
	for (i = 0; i < 50; i++)
		use_everything();
	ck_assert_int_le(list_fds(after), n);
	/* less than one per round; ASan returns freed memory late */
	ck_assert_int_le(count_maps(), maps + (under_sanitizer() ? 40 : 8));
}
END_TEST

static void do_ping(struct node *b, void *arg)
{
	(void)arg;
	ck_ok(post_recv(b, 1, 0, 64));
}

/*
 * Peers that exit leave neither descriptors nor mappings in other processes.
 */
START_TEST(nothing_leaks_from_peers)
{
	uint8_t after[sizeof(before)];
	struct opts o = default_opts();
	struct node stays;
	int n = 0, maps = 0, i, fd;
	double end;
	struct duo d;

	node_open(&stays, NULL, MEM_HEAP, &o);
	for (i = 0; i < 30; i++) {
		duo_open(&d, TWO_PROCESSES, MEM_HEAP, i % MEM_COUNT, &o);
		on_b(&d, do_ping, NULL, 0);
		ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
		expect_ok(d.a.scq, 1, IBV_WC_SEND);
		duo_close(&d);
		if (i == 5) {
			n = list_fds(before);
			maps = count_maps();
		}
	}
	end = now_ms() + WAIT_MS;
	/*
	 * what belongs to the last peer is released when its exit is detected
	 */
	while ((list_fds(after) > n || count_maps() > maps + 8) &&
	       now_ms() < end)
		sleep_ms(10);
	for (fd = 0; fd < (int)sizeof(after); fd++)
		if (after[fd] && !before[fd])
			fprintf(stderr, "new fd %d\n", fd);
	ck_assert_int_le(list_fds(after), n);
	ck_assert_int_le(count_maps(), maps + 8);
	node_close(&stays);
}
END_TEST

/* Assert that @expr, which succeeds, leaves errno unchanged. */
#define KEEPS(expr)                                                        \
	do {                                                               \
		errno = 4711;                                              \
		expr;                                                      \
		ck_assert_msg(errno == 4711, "%s: errno is now %d", #expr, \
			      errno);                                      \
	} while (0)

/* Verbs that succeed leave errno unchanged. */
START_TEST(errno_is_kept)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 4096 };
	struct ibv_device_attr_ex dev;
	struct opts o = default_opts();
	struct ibv_qp_init_attr init = { .cap = o.cap, .qp_type = IBV_QPT_RC };
	struct ibv_comp_channel *chan;
	struct ibv_mr *mr, *dm_mr;
	struct ibv_qp_attr attr;
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	char buf[4096];
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_dm *dm;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct duo d;

	duo_open(&d, SAME_PROCESS, MEM_HEAP, MEM_HEAP, &o);
	ctx = d.a.ctx;
	/*
	 * these calls run hardly any code of libibverbs itself, which may
	 * change errno
	 */
	KEEPS(pd = ibv_alloc_pd(ctx));
	KEEPS(mr = ibv_reg_mr(pd, buf, sizeof(buf), ALL_ACCESS));
	KEEPS(dm = ibv_alloc_dm(ctx, &dm_attr));
	KEEPS(dm_mr = ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	KEEPS(ibv_memcpy_to_dm(dm, 0, buf, 64));
	KEEPS(ibv_memcpy_from_dm(buf, dm, 0, 64));
	chan = ibv_create_comp_channel(ctx);
	KEEPS(cq = ibv_create_cq(ctx, 10, NULL, chan, 0));
	KEEPS(ibv_req_notify_cq(cq, 0));
	init.send_cq = init.recv_cq = cq;
	KEEPS(qp = ibv_create_qp(pd, &init));
	KEEPS(qp_to_init(qp, &o));
	KEEPS(qp_to_rtr(qp, &o, &d.at_b));
	KEEPS(qp_to_rts(qp, &o));
	KEEPS(ibv_query_qp(qp, &attr, -1, &init));
	KEEPS(ibv_query_device_ex(ctx, NULL, &dev));
	KEEPS(ibv_query_port(ctx, 1, &port));
	KEEPS(post_recv(&d.a, 1, 0, 8));
	KEEPS(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	KEEPS(post(&d, IBV_WR_SEND, 2, 0, 8, 0, 0));
	sleep_ms(5);
	KEEPS(ibv_poll_cq(d.a.scq, 1, &wc));
	KEEPS(ibv_poll_cq(d.a.scq, 1, &wc));
	KEEPS(qp_to(qp, IBV_QPS_ERR));
	KEEPS(ibv_destroy_qp(qp));
	KEEPS(ibv_destroy_cq(cq));
	KEEPS(ibv_dereg_mr(dm_mr));
	KEEPS(ibv_free_dm(dm));
	KEEPS(ibv_dereg_mr(mr));
	KEEPS(ibv_dealloc_pd(pd));
	ck_ok(ibv_destroy_comp_channel(chan));
	duo_close(&d);
}
END_TEST

/* The library writes nothing to standard output. */
START_TEST(nothing_is_printed)
{
	char path[] = "/tmp/urxe-out-XXXXXX";
	int out = mkstemp(path), saved = dup(1);
	struct stat st;

	ck_assert_int_ge(out, 0);
	unlink(path);
	fflush(stdout);
	dup2(out, 1);
	use_everything();
	fflush(stdout);
	dup2(saved, 1);
	ck_ok(fstat(out, &st));
	ck_assert_int_eq(st.st_size, 0);
}
END_TEST

/* Signal handlers and the signal mask are unchanged after use. */
START_TEST(signals_are_left_alone)
{
	struct sigaction act[65], now;
	sigset_t mask, mask_now;
	int sig;

	for (sig = 1; sig < 65; sig++)
		if (sigaction(sig, NULL, &act[sig]))
			act[sig].sa_handler = SIG_ERR;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	use_everything();
	for (sig = 1; sig < 65; sig++) {
		if (sigaction(sig, NULL, &now))
			continue;
		ck_assert(now.sa_handler == act[sig].sa_handler);
	}
	sigprocmask(SIG_BLOCK, NULL, &mask_now);
	for (sig = 1; sig < 65; sig++)
		ck_assert_int_eq(sigismember(&mask, sig),
				 sigismember(&mask_now, sig));
}
END_TEST

int main(void)
{
	Suite *s = suite("fd_hygiene");

	add(s, close_on_exec);
	add(s, nothing_leaks);
	add(s, nothing_leaks_from_peers);
	add(s, errno_is_kept);
	add(s, nothing_is_printed);
	add(s, signals_are_left_alone);
	return run(s);
}
