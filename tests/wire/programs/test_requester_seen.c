// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wire requester: counters, the diagnosis of "urxe why", traces, and the
 * choice of the socket owner.  The remote host is this test (requester.h).
 * own-net runs it; URXE is the path of the urxe command.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "requester.h"

#define COUNTERS(c) (c), sizeof(c) / sizeof(*(c))

/*
 * Counters after a sequence NAK, RNR NAKs, a CNP, and a packet for an unknown
 * QP.
 */
START_TEST(retry_counters)
{
	struct counted c[] = {
		{ .name = "sent_pkts", .by = 3 + 1 + 1 + 1 },
		{ .name = "rcvd_pkts", .by = 6 },
		{ .name = "rcvd_seq_err", .by = 1 },
		{ .name = "completer_retry_err", .by = 1 },
		{ .name = "rcvd_rnr_err", .by = 2 },
		{ .name = "retry_rnr_exceeded_err", .by = 1 },
		{ .name = "retry_exceeded_err", .by = 0 },
		{ .name = "rdma_sends", .by = 3 },
		{ .name = "rp_cnp_handled", .by = 1 },
		{ .name = "send_err", .by = 0 },
		{ .name = "rcvd_unclaimed_pkts", .by = 1 },
	};
	struct opts o = wire_opts();
	struct wire_packet p;
	int i;

	o.rnr_retry = 1;
	open_to_peer(&o);
	counters_begin(COUNTERS(c));
	for (i = 0; i < 3; i++) {
		post_op(IBV_WR_SEND, (uint64_t)i, 0, 10);
		take(WIRE_SEND_ONLY, PSN + (uint32_t)i);
	}
	nak(PSN + 1, WIRE_NAK_SEQUENCE);
	expect_ok(n.scq, 0, IBV_WC_SEND);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN + 1);
	p = answer(WIRE_CNP_OPCODE, 0, 0);
	give(&p);
	ack(PSN + 2);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	expect_ok(n.scq, 2, IBV_WC_SEND);
	p = answer(WIRE_ACKNOWLEDGE, PSN, WIRE_ACK);
	p.bth.qpn ^= 1 << 20;
	give(&p);
	post_op(IBV_WR_SEND, 3, 0, 10);
	take(WIRE_SEND_ONLY, PSN + 3);
	nak(PSN + 3, WIRE_RNR_NAK | 1);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN + 3);
	nak(PSN + 3, WIRE_RNR_NAK | 1);
	expect(n.scq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
	counters_grew(COUNTERS(c));
	close_peer();
}
END_TEST

/* Counters of a SEND without a response. */
START_TEST(timeout_counters)
{
	struct counted c[] = {
		{ .name = "sent_pkts", .by = 3 },
		{ .name = "local_ack_timeout_err", .by = 3 },
		{ .name = "completer_retry_err", .by = 2 },
		{ .name = "retry_exceeded_err", .by = 1 },
		{ .name = "rdma_sends", .by = 0 },
	};
	struct opts o = wire_opts();

	o.timeout = 10; /* 4 ms */
	o.retry_cnt = 2;
	open_to_peer(&o);
	counters_begin(COUNTERS(c));
	post_op(IBV_WR_SEND, 1, 0, 10);
	expect(n.scq, 1, IBV_WC_RETRY_EXC_ERR);
	counters_grew(COUNTERS(c));
	close_peer();
}
END_TEST

/*
 * "urxe why" reports the WR, the PSN and the number of outstanding packets
 * that wait for an ACK.
 */
START_TEST(waits_for_an_ack)
{
	struct opts o = wire_opts();
	int i;

	open_to_peer(&o);
	for (i = 0; i < 2; i++) {
		post_op(IBV_WR_SEND, 77 + (uint64_t)i, 0, 2000);
		take(WIRE_SEND_FIRST, PSN + 2 * (uint32_t)i);
		take(WIRE_SEND_LAST, PSN + 2 * (uint32_t)i + 1);
	}
	why_says("SEND wr_id 77 waits for an ACK of QP 0xabcdef of 10.91.0.2 "
		 "from PSN 0x123456 on (4 packets are outstanding); 1 more "
		 "queued behind it\n    no-answer for ");
	why_says("would end it: a response; no ACK timeout (timeout is 0)");
	nak(PSN, WIRE_NAK_SEQUENCE);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_FIRST, PSN);
	why_says("(4 packets are outstanding; retransmitted 1 time)");
	ack(PSN + 1);
	expect_ok(n.scq, 77, IBV_WC_SEND);
	why_says("SEND wr_id 78 waits for an ACK of QP 0xabcdef of 10.91.0.2 "
		 "from PSN 0x123458 on (2 packets are outstanding)\n");
	ack(PSN + 3);
	expect_ok(n.scq, 78, IBV_WC_SEND);
	why_says("nothing stalls");
	close_peer();
}
END_TEST

/* "urxe why" reports a READ that waits for its response. */
START_TEST(waits_for_data)
{
	struct opts o = wire_opts();
	char bytes[1024] = "";

	open_to_peer(&o);
	post_op(IBV_WR_RDMA_READ, 5, 0, 2048);
	take(WIRE_READ_REQUEST, PSN);
	data(WIRE_READ_FIRST, PSN, bytes, 1024);
	expect_none(n.scq, QUIET_MS);
	why_says("RDMA_READ wr_id 5 waits for the data of QP 0xabcdef of "
		 "10.91.0.2 from PSN 0x123457 on (1 packet is outstanding)");
	data(WIRE_READ_LAST, PSN + 1, bytes, 1024);
	expect_ok(n.scq, 5, IBV_WC_RDMA_READ);
	close_peer();
}
END_TEST

/* "urxe why" reports that the window is full. */
START_TEST(waits_for_a_window)
{
	struct opts o = wire_opts();
	uint32_t i;

	o.mtu = IBV_MTU_256;
	open_to_peer(&o);
	post_op(IBV_WR_RDMA_WRITE, 6, 0, 200 * 256);
	for (i = 0; i < 128; i++)
		take(i ? WIRE_WRITE_MIDDLE : WIRE_WRITE_FIRST, PSN + i);
	why_says("(128 packets are outstanding, and the window of 128 is "
		 "full)");
	close_peer();
}
END_TEST

/* "urxe why" reports an RNR wait. */
START_TEST(waits_for_a_receive)
{
	struct opts o = wire_opts();

	o.rnr_retry = 7;
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 8, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	nak(PSN, WIRE_RNR_NAK | 0); /* 655 ms */
	expect_none(n.scq, QUIET_MS);
	why_says("SEND wr_id 8 waits for a receive (RNR): QP 0xabcdef of "
		 "10.91.0.2 has no receive posted\n    rnr for ");
	why_says("ibv_post_recv by the peer; no retry limit (rnr_retry is 7)");
	close_peer();
}
END_TEST

/*
 * "urxe why" reports a next hop that does not answer ARP, and a missing
 * route.  The address was known when the QP was connected.
 */
START_TEST(waits_for_a_neighbour)
{
	struct opts o = wire_opts();
	struct addr to = { .qpn = QPN, .psn = 5 };
	struct ibv_qp_attr attr;
	int mask;

	ck_assert_int_eq(system("ip route add 10.91.0.77/32 dev eth0 && "
				"ip neigh add 10.91.0.77 dev eth0 "
				"lladdr 02:00:00:00:00:01"),
			 0);
	node_open(&n, NULL, MEM_HEAP, &o);
	memcpy(to.gid.raw, there, 16);
	to.gid.raw[15] = 77;
	qp_to_init(n.qp, &o);
	mask = attr_rtr(&attr, &o, &to);
	attr.ah_attr.grh.sgid_index = own_index();
	ck_assert_int_eq(ibv_modify_qp(n.qp, &attr, mask), 0);
	qp_to_rts(n.qp, &o);
	wait_until_received();
	post_op(IBV_WR_SEND, 9, 0, 10);
	why_says("no-answer for ");
	ck_assert_int_eq(system("ip neigh del 10.91.0.77 dev eth0"), 0);
	why_says("the address of 10.91.0.77, or of the router to it, does not "
		 "resolve");
	ck_assert_int_eq(system("ip route del 10.91.0.77/32"), 0);
	why_says("no route to 10.91.0.77");
	node_close(&n);
}
END_TEST

/*
 * Another program is bound to the UDP port: "urxe why" reports that no
 * process owns the socket.
 */
START_TEST(waits_without_socket_owner)
{
	struct opts o = wire_opts();
	struct wire_socket taken;

	ck_assert_int_eq(wire_socket_open(&taken, here, WIRE_PORT, 0), 0);
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 10, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	why_says("no process of the fabric owns the RoCE socket");
	why_says("no-holder for ");
	close_peer();
	wire_socket_close(&taken);
}
END_TEST

/* Start a process that becomes the socket owner. */
static pid_t start_holder(void)
{
	struct opts o = wire_opts();
	int ready[2];
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		node_open(&n, NULL, MEM_HEAP, &o);
		wait_until_received();
		c = write(ready[1], "", 1) == 1;
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

/*
 * "urxe why" reports that the socket owner is stopped.  No other process has
 * the device open, so none replaces it.
 */
START_TEST(waits_for_stopped_socket_owner)
{
	struct opts o = wire_opts();
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		open_to_peer(&o);
		post_op(IBV_WR_SEND, 11, 0, 10);
		take(WIRE_SEND_ONLY, PSN);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	why_says(", which owns the RoCE socket, is stopped");
	why_says("holder-stopped for ");
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/*
 * Send ACKs until the WR completes.  ACKs that the old socket received are
 * lost.
 */
static void ack_until_received(uint32_t psn, uint64_t wr_id)
{
	double end = now_ms() + WAIT_MS;
	struct ibv_wc wc;
	int got = 0;

	while (!got && now_ms() < end) {
		ack(psn);
		usleep(10000);
		got = ibv_poll_cq(n.scq, 1, &wc);
	}
	ck_assert_int_eq(got, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.wr_id, wr_id);
}

/*
 * A stopped socket owner is replaced.  When it continues, it closes its
 * socket, and may become the owner again later.
 */
START_TEST(stopped_socket_owner_replaced)
{
	struct opts o = wire_opts();
	pid_t pid = start_holder();
	int status, i;

	open_to_peer(&o);
	for (i = 0; i < 3; i++) {
		post_op(IBV_WR_SEND, 20 + (uint64_t)i, 0, 10);
		take(WIRE_SEND_ONLY, PSN + (uint32_t)i);
		ck_assert_int_eq(kill(pid, i % 2 ? SIGCONT : SIGSTOP), 0);
		ck_assert_int_eq(waitpid(pid, &status, WUNTRACED | WCONTINUED),
				 pid);
		ack_until_received(PSN + (uint32_t)i, 20 + (uint64_t)i);
	}
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	close_peer();
}
END_TEST

/*
 * "urxe why" reports posted receives of a QP that is connected to a remote
 * host as waiting for a message, not as receives that no peer can fill.
 */
START_TEST(waits_for_a_message)
{
	struct opts o = wire_opts();

	open_to_peer(&o);
	ck_assert_int_eq(post_recv(&n, 1, 0, 64), 0);
	why_says("1 receive is posted: no message arrives from QP 0xabcdef of "
		 "10.91.0.2\n    receives for ");
	close_peer();
}
END_TEST

/* Return the number of lines of a trace that contain the text. */
static int lines_with(const char *trace, const char *text)
{
	char command[PATH_MAX + 32], line[1024];
	int lines = 0;
	FILE *f;

	snprintf(command, sizeof(command), "\"$URXE\" trace %s", trace);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		lines += strstr(line, text) != NULL;
	ck_assert_int_eq(pclose(f), 0);
	return lines;
}

/* Send an ACK whose ICRC is wrong for every IPv4 ID. */
static void give_damaged(void)
{
	struct wire_packet p = answer(WIRE_ACKNOWLEDGE, PSN, WIRE_ACK);
	uint8_t bytes[WIRE_MAX_TRANSPORT], *end = wire_put_transport(&p, bytes);
	const size_t n = (size_t)(wire_put_icrc(0x12345678, end) - bytes);
	union wire_sockaddr to;
	socklen_t len = wire_sockaddr_of(&to, here, WIRE_PORT, 0);

	ck_assert_int_eq(sendto(peer.socket.fd, bytes, n, 0, &to.sa, len),
			 (ssize_t)n);
}

/*
 * A trace contains all packets as sent and received: a retransmitted packet
 * twice, and also a received packet that is refused.
 */
START_TEST(packets_traced)
{
	struct opts o = wire_opts();
	char trace[PATH_MAX];

	snprintf(trace, sizeof(trace), "%s/trace", getenv("URXE_DIR"));
	ck_assert_int_eq(setenv("URXE_TRACE", trace, 1), 0);
	open_to_peer(&o);
	post_op(IBV_WR_SEND, 1, 0, 10);
	take(WIRE_SEND_ONLY, PSN);
	nak(PSN, WIRE_NAK_SEQUENCE);
	expect_none(n.scq, QUIET_MS);
	take(WIRE_SEND_ONLY, PSN);
	give_damaged();
	ack(PSN);
	expect_ok(n.scq, 1, IBV_WC_SEND);
	ck_assert_int_eq(
		lines_with(trace,
			   " packet out 10.91.0.1 > 10.91.0.2: RC SEND_ONLY to "
			   "QP 0xabcdef psn=1193046 length=10 AckReq"),
		2);
	ck_assert_int_eq(
		lines_with(
			trace,
			" packet in 10.91.0.2 > 10.91.0.1: RC ACKNOWLEDGE to "),
		2);
	ck_assert_int_eq(lines_with(trace, " psn=1193046 NAK 0x60 (PSN "
					   "sequence error) msn=0"),
			 1);
	ck_assert_int_eq(lines_with(trace, ": refused (bad ICRC): RC "
					   "ACKNOWLEDGE"),
			 1);
	close_peer();
	ck_assert_int_eq(unlink(trace), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite("wire-requester-seen");

	add(s, retry_counters);
	add(s, timeout_counters);
	add(s, waits_for_an_ack);
	add(s, waits_for_data);
	add(s, waits_for_a_window);
	add(s, waits_for_a_receive);
	add(s, waits_for_a_message);
	add(s, waits_for_a_neighbour);
	add(s, waits_without_socket_owner);
	add(s, waits_for_stopped_socket_owner);
	add(s, stopped_socket_owner_replaced);
	add(s, packets_traced);
	return run(s);
}
