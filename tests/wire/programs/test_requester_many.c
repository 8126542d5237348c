// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wire requester: READs of many QPs, which together request more data than
 * the budget has room for (budget.h).  The remote host is this test
 * (requester.h), which knows the QP of a request by its PSN.  own-net runs it.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "requester.h"
#include "wire/psn.h"

#define QPS 120u
#define BYTES 32768u /* of each READ: one request */
#define PACKETS (BYTES / 1024)
#define READS 8u /* of each QP */
#define PSNS 4096u /* the QP of a PSN is psn / PSNS */

static struct ibv_qp *qp[QPS];

static void open_qps(void)
{
	struct opts o = wire_opts();
	uint32_t i;

	o.timeout = 22; /* 17 s: the buffer of the socket may be small */
	o.retry_cnt = 7;
	o.cqe = READS * QPS;
	o.cap.max_send_wr = READS;
	o.size = BYTES;
	o.psn = 0;
	o.mtu = IBV_MTU_1024;
	open_to_peer(&o);
	qp[0] = n.qp;
	for (i = 1; i < QPS; i++) {
		qp[i] = make_qp(&n, IBV_QPT_RC, NULL);
		o.psn = i * PSNS;
		connect_to_peer(qp[i], IBV_QPT_RC, &o);
	}
}

static void close_qps(void)
{
	uint32_t i;

	for (i = 1; i < QPS; i++)
		ck_ok(ibv_destroy_qp(qp[i]));
	close_peer();
}

static void read_on(uint32_t i)
{
	struct ibv_sge sge = node_sge(&n, 0, BYTES);
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = ADDR, .rkey = RKEY },
	};

	ck_assert_int_eq(post_wr(qp[i], &wr), 0);
}

/* Post a READ to each of the first `to` QPs. */
static void read_all(uint32_t to)
{
	uint32_t i;

	for (i = 0; i < to; i++)
		read_on(i);
}

static uint32_t complete(void)
{
	struct ibv_wc wc[16];
	int i, k = ibv_poll_cq(n.scq, 16, wc);

	for (i = 0; i < k; i++)
		ck_assert_int_eq(wc[i].status, IBV_WC_SUCCESS);
	ck_assert_int_ge(k, 0);
	return (uint32_t)k;
}

struct asked {
	uint32_t psn, packets;
};

/* Those to be answered, a ring.  Few requests are repeated. */
#define ASKED 8192u
static struct asked asked[ASKED];
static uint32_t first_asked, end_asked;
/* the READs of each QP that were requested, a bit for each */
static uint32_t seen[QPS];

/* Return the number of the READ, among those of its QP. */
static uint32_t read_of(const struct asked *a)
{
	return a->psn % PSNS / PACKETS;
}

/* Receive the next request, or return false if there is none now. */
static bool take_request(struct asked *a)
{
	struct pollfd p = { .fd = peer.socket.fd, .events = POLLIN };

	if (!wire_received(peer.receiver, &peer.got)) {
		if (!poll(&p, 1, 0))
			return false;
		ck_assert_int_eq(wire_receive(peer.receiver, &peer.socket), 0);
		ck_assert(wire_received(peer.receiver, &peer.got));
	}
	ck_assert_int_eq(peer.got.refusal, WIRE_TAKEN);
	ck_assert_uint_eq(peer.got.packet.bth.opcode, WIRE_READ_REQUEST);
	a->psn = peer.got.packet.bth.psn;
	a->packets = peer.got.packet.reth.length / 1024;
	return true;
}

static void answer_request(const struct asked *a)
{
	static const char bytes[1024];
	struct wire_packet p;
	uint32_t i;

	for (i = 0; i < a->packets; i++) {
		p = answer(a->packets == 1    ? WIRE_READ_ONLY :
			   !i		      ? WIRE_READ_FIRST :
			   i + 1 < a->packets ? WIRE_READ_MIDDLE :
						WIRE_READ_LAST,
			   a->psn + i, WIRE_ACK);
		p.bth.qpn = qp[a->psn / PSNS]->qp_num;
		p.payload = bytes;
		p.length = p.known = sizeof(bytes);
		give(&p);
	}
}

/*
 * The QPs take turns: not all READs fit in the budget at once, and no QP has
 * requested most of its READs before each QP has requested its first one.
 */
START_TEST(turns)
{
	uint32_t most = 0, done = 0, firsts = 0, n, i;
	struct asked *a;

	open_qps();
	for (i = 0; i < READS; i++)
		read_all(QPS);
	while (done < READS * QPS) {
		while (take_request(a = &asked[end_asked % ASKED])) {
			ck_assert_uint_lt(end_asked++ - first_asked, ASKED);
			i = a->psn / PSNS;
			firsts += !seen[i];
			seen[i] |= 1u << read_of(a);
			n = (uint32_t)__builtin_popcount(seen[i]);
			if (n > most && firsts < QPS)
				most = n;
		}
		if (first_asked != end_asked)
			answer_request(&asked[first_asked++ % ASKED]);
		done += complete();
	}
	ck_assert_uint_eq(firsts, QPS);
	ck_assert_uint_le(most, 5);
	close_qps();
}
END_TEST

static _Atomic uint32_t polled;

static void *poll_all(void *arg)
{
	while (load_relaxed(&polled) < READS * QPS)
		fetch_add_relaxed(&polled, complete());
	return arg;
}

/* Several threads poll the CQ: each QP still gets its turns. */
START_TEST(several_pollers)
{
	pthread_t thread[3];
	struct asked a;
	uint32_t i;

	open_qps();
	for (i = 0; i < READS; i++)
		read_all(QPS);
	for (i = 0; i < 3; i++)
		ck_ok(pthread_create(&thread[i], NULL, poll_all, NULL));
	while (load_relaxed(&polled) < READS * QPS)
		if (take_request(&a))
			answer_request(&a);
	for (i = 0; i < 3; i++)
		ck_ok(pthread_join(thread[i], NULL));
	close_qps();
}
END_TEST

/* QPs whose requests are not answered do not stop the others for long. */
START_TEST(silent)
{
	const uint32_t silent = QPS / 2;
	uint32_t done = 0;
	struct asked a;

	open_qps();
	read_all(QPS);
	while (done < QPS - silent) {
		if (take_request(&a) && a.psn / PSNS >= silent)
			answer_request(&a);
		done += complete();
	}
	close_qps();
}
END_TEST

/* Answer requests until that many READs are complete. */
static void answer_until(uint32_t done, uint32_t all)
{
	struct asked a;

	while (done < all) {
		if (take_request(&a))
			answer_request(&a);
		done += complete();
	}
}

/* Return whether the last QP waits for its turn according to "urxe why". */
static bool turn_is_seen(void)
{
	char out[4096];

	why(qp[QPS - 1], out, sizeof(out));
	return strstr(out,
		      "RDMA_READ wr_id 119 waits for its turn to request "
		      "data of QP 0xabcdef of 10.91.0.2: other QPs of its "
		      "context have READs outstanding, or wait before it") &&
	       strstr(out, "\n    read-turn for ") &&
	       strstr(out, "would end it: responses to READs of other QPs\n");
}

/*
 * "urxe why" reports that a READ waits for its turn.  It does so for 2 s only,
 * as no request is answered.
 */
START_TEST(seen_to_wait)
{
	const double end = now_ms() + WAIT_MS;
	bool seen;

	do {
		open_qps();
		read_all(QPS);
		seen = turn_is_seen();
		close_qps();
	} while (!seen && now_ms() < end);
	ck_assert(seen);
}
END_TEST

/*
 * A QP that waits may get room, and its READ be completed, while the program
 * does not poll.  Then the others do not wait for it.
 */
START_TEST(completed_meanwhile)
{
	const uint32_t fit = 48, last = fit - 1; /* READs in the budget */
	struct asked first[QPS], a;
	uint32_t round, of, i, done;

	open_qps();
	for (round = 0; round < 10; round++) {
		read_all(fit);
		memset(first, 0, sizeof(first));
		for (i = 0; i < fit;) {
			if (!take_request(&a))
				continue;
			of = a.psn / PSNS;
			if (first[of].packets ||
			    read_of(&a) != (of == last ? 2 : 1) * round)
				continue; /* it is repeated */
			first[of] = a;
			i++;
		}
		read_on(last);
		done = complete();
		answer_request(&first[last]);
		while (!take_request(&a) || a.psn / PSNS != last ||
		       read_of(&a) != 2 * round + 1)
			;
		answer_request(&a);
		sleep_ms(3); /* no event tells that it is processed */
		for (i = 0; i < last; i++)
			answer_request(&first[i]);
		answer_until(done, fit + 1);
		read_on(fit);
		answer_until(0, 1);
	}
	close_qps();
}
END_TEST

int main(void)
{
	Suite *s = suite("wire-requester-many");

	add(s, turns);
	add(s, several_pollers);
	add(s, silent);
	add(s, seen_to_wait);
	add(s, completed_meanwhile);
	return run(s);
}
