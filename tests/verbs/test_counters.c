// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The port's counters and hw_counters in sysfs: traffic and errors. */
#include <stdio.h>
#include <string.h>

#include "harness.h"

#define PORT "/sys/class/infiniband/" DEVICE "/ports/1/"

static uint64_t counter(const char *name)
{
	unsigned long long v;
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), PORT "%s", name);
	f = fopen(path, "r");
	ck_assert_msg(f != NULL, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(fscanf(f, "%llu", &v), 1);
	fclose(f);
	return v;
}

/*
 * Wait until the counter has grown by @by since it was @from. sysfs may be
 * late by hw_counters/lifespan.
 */
static void grows_by(const char *name, uint64_t from, uint64_t by)
{
	double end = now_ms() + WAIT_MS;
	uint64_t now;

	while ((now = counter(name)) - from < by && now_ms() < end)
		sleep_ms(1);
	ck_assert_msg(now - from == by, "%s grew by %llu, not by %llu", name,
		      (unsigned long long)(now - from), (unsigned long long)by);
}

static const char *const name[] = {
	"counters/port_xmit_data", "counters/port_rcv_data",
	"counters/port_xmit_packets", "counters/port_rcv_packets"
};

/*
 * The data counters count units of 4 bytes.  The packet counters count the
 * packets of each message at the path MTU, at least one.
 */
START_TEST(data_counters)
{
	struct opts o = default_opts(); /* MTU 1024 */
	uint64_t before[4];
	struct duo d;
	int i;

	for (i = 0; i < 4; i++)
		before[i] = counter(name[i]);
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	for (i = 0; i < 10; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4096, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 2, 0, 2, 0, 0));
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 3, 0, 0, 0, 0));
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
		expect_ok(d.a.scq, 2, IBV_WC_RDMA_WRITE);
		expect_ok(d.a.scq, 3, IBV_WC_RDMA_WRITE);
	}
	/* ibv_query_qp() flushes the QP's counts to the port */
	ck_assert_int_eq(qp_state(d.a.qp), IBV_QPS_RTS);
	for (i = 0; i < 2; i++)
		grows_by(name[i], before[i], (10 * 4096 + 20) / 4);
	for (; i < 4; i++)
		grows_by(name[i], before[i], 10 * (4 + 1 + 1));
	/* so do 256 packets, and the destruction of the QP */
	for (i = 0; i < 300; i++) {
		ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 4, 0, 0));
		expect_ok(d.a.scq, 1, IBV_WC_RDMA_WRITE);
	}
	ck_assert_uint_ge(counter(name[2]) - before[2], 60 + 256);
	duo_close(&d);
	for (i = 0; i < 2; i++)
		grows_by(name[i], before[i], (10 * 4096 + 20) / 4 + 300);
	for (; i < 4; i++)
		grows_by(name[i], before[i], 60 + 300);
}
END_TEST

/* Each RNR NAK counts in rcvd_rnr_err. */
START_TEST(rnr_counter)
{
	uint64_t before = counter("hw_counters/rcvd_rnr_err");
	struct opts o = default_opts();
	struct duo d;

	o.rnr_retry = 3;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	ck_ok(post(&d, IBV_WR_SEND, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	grows_by("hw_counters/rcvd_rnr_err", before, 1 + 3);
	duo_close(&d);
}
END_TEST

/* Each timeout counts in local_ack_timeout_err. */
START_TEST(timeout_counter)
{
	uint64_t before = counter("hw_counters/local_ack_timeout_err");
	struct opts o = default_opts();
	struct duo d;

	o.timeout = 10; /* 4 ms */
	o.retry_cnt = 2;
	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	b_destroy_qp(&d);
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	grows_by("hw_counters/local_ack_timeout_err", before, 1 + 2);
	duo_close(&d);
}
END_TEST

/* A remote access error counts in remote_err. */
START_TEST(remote_error_counter)
{
	uint64_t before = counter("hw_counters/remote_err");
	struct opts o = default_opts();
	struct duo d;

	duo_open(&d, _i, MEM_HEAP, MEM_HEAP, &o);
	d.at_b.rkey ^= 0x5500;
	ck_ok(post(&d, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0));
	expect(d.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	grows_by("hw_counters/remote_err", before, 1);
	duo_close(&d);
}
END_TEST

int main(void)
{
	Suite *s = suite("counters");

	add_loop(s, data_counters, WHERE_COUNT);
	add_loop(s, rnr_counter, WHERE_COUNT);
	add_loop(s, timeout_counter, WHERE_COUNT);
	add_loop(s, remote_error_counter, WHERE_COUNT);
	return run(s);
}
