// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A process that is stopped (SIGSTOP) at any instruction does not block other
 * processes of the fabric.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.h"

#define STOPS 40

/* A quarter of the device memory, whose size depends on that of /dev/shm. */
static size_t dm_quarter(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr;

	return ibv_query_device_ex(ctx, NULL, &attr) ? 0 : attr.max_dm_size / 4;
}

/*
 * Use each allocator that the processes of the fabric share: open the device,
 * allocate device memory, create a PD, a CQ and a QP, and destroy all of
 * them.  @arg: bytes of device memory, 0 for a quarter of it.  Returns 0 or
 * errno.
 */
static int use_device(void *arg)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = *(size_t *)arg };
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_dm *dm;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	ctx = ibv_open_device(find_device(&list));
	if (!ctx)
		return errno;
	ibv_free_device_list(list);
	if (!dm_attr.length)
		dm_attr.length = dm_quarter(ctx);
	dm = ibv_alloc_dm(ctx, &dm_attr);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	if (!dm || !pd || !cq)
		return errno;
	qp = ibv_create_qp(
		pd, &(struct ibv_qp_init_attr){
			    .send_cq = cq,
			    .recv_cq = cq,
			    .qp_type = IBV_QPT_RC,
			    .cap = { .max_send_wr = 1, .max_send_sge = 1 } });
	if (!qp || ibv_destroy_qp(qp) || ibv_destroy_cq(cq) ||
	    ibv_dealloc_pd(pd) || ibv_free_dm(dm) || ibv_close_device(ctx))
		return errno;
	return 0;
}

static int use_for_ever(void *arg)
{
	leave_check();
	for (;;)
		if (use_device(arg))
			return 1;
}

/*
 * Return the exit status of @pid, -1 if it was killed by a signal, or
 * -ETIMEDOUT if it does not exit in @ms; then it is killed.
 */
static int await(pid_t pid, int ms)
{
	double end = now_ms() + ms;
	int status;

	while (now_ms() < end) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		usleep(500);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -ETIMEDOUT;
}

/*
 * A process is stopped at random moments, most of them while it allocates
 * device memory.  Another process can use the device, except if the stopped
 * one holds a lock, which is for a few instructions only.  Then the other
 * process gets ETIMEDOUT.
 */
START_TEST(stopped_at_random_points)
{
	size_t quarter = 0, small = 64 << 10;
	pid_t pid, other;
	int i, ret, refused = 0;

	may_leak();
	ck_ok(reap_child(spawn(use_device, &small))); /* creates the fabric */
	pid = spawn(use_for_ever, &quarter);
	for (i = 0; i < STOPS; i++) {
		usleep(1000 + i * 7919 % 20000);
		kill(pid, SIGSTOP);
		ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
		other = spawn(use_device, &small);
		ret = await(other, WAIT_MS);
		ck_assert_msg(!ret || ret == ETIMEDOUT,
			      "round %d: the other one %s (%d)", i,
			      ret == -ETIMEDOUT ? "hangs" : "failed", ret);
		refused += ret != 0;
		kill(pid, SIGCONT);
	}
	ck_assert_int_le(refused, STOPS / 8);
	kill(pid, SIGKILL);
	ck_assert_int_eq(reap_child(pid), -SIGKILL);
	ck_ok(reap_child(spawn(use_device, &small)));
}
END_TEST

int main(void)
{
	Suite *s = suite("stopped");

	add(s, stopped_at_random_points);
	return run(s);
}
