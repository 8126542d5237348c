// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_cm with a remote host: the application side uses the stock librdmacm,
 * and this program is the remote host (far.h).  It sends MADs as a kernel
 * does, and also ones that no kernel sends.
 *
 * far-net runs it, once for IPv4 and once for IPv6.
 */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cm/harness.h"
#include "far.h"

#define LONG_MS 60000
#define QUIET_MS 50
#define COMM_ID far_qpn

/* Return an id whose address resolution has started. */
static struct rdma_cm_id *resolving(uint8_t last, int timeout_ms)
{
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_storage a = far_address(last, 7000);

	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), timeout_ms));
	return id;
}

/* ------------------------------------------------------------ addresses */

/*
 * If no host answers ARP or NDP, the id gets ADDR_ERROR with status
 * -ETIMEDOUT after the timeout, and has no device.  It may then resolve
 * another address.
 */
START_TEST(address_without_arp_reply)
{
	struct sockaddr_storage a = far_address(2, 7000);
	struct rdma_cm_id *id = resolving(77, 100);

	pass(id->channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	ck_assert_ptr_null(id->verbs);
	/* another address */
	ck_ok(rdma_resolve_addr(id, NULL, SA(&a), LONG_MS));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_assert_ptr_nonnull(id->verbs);
	end_id(id, true);
}
END_TEST

/* Without a route, rdma_resolve_addr() fails with ENETUNREACH. */
START_TEST(address_without_route)
{
	struct rdma_cm_id *id = new_id(new_channel(), RDMA_PS_TCP);
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(0xc0000201) };

	ck_fails(rdma_resolve_addr(id, NULL, SA(&in), LONG_MS), ENETUNREACH);
	end_id(id, true);
}
END_TEST

/*
 * Resolution continues until the timeout of rdma_resolve_addr(): an address
 * that is added meanwhile is resolved.
 */
START_TEST(address_added_later)
{
	struct rdma_cm_id *id = resolving(78, LONG_MS);

	expect_nothing(id->channel, QUIET_MS);
	far_run(far_here[0] ? "ip -6 addr add fd91::4e/64 dev eth0 nodad" :
			      "ip addr add 10.91.0.78/24 dev eth0");
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	end_id(id, true);
}
END_TEST

/*
 * While an address is being resolved, the id allows neither another
 * rdma_resolve_addr() nor rdma_listen() (EINVAL), and can be destroyed.
 */
START_TEST(id_destroyed_while_resolving)
{
	struct rdma_cm_id *id = resolving(79, LONG_MS);
	struct sockaddr_storage a = far_address(2, 7000);

	ck_fails(rdma_resolve_addr(id, NULL, SA(&a), LONG_MS), EINVAL);
	ck_fails(rdma_listen(id, 1), EINVAL);
	expect_nothing(id->channel, 0);
	end_id(id, true);
	id = resolving(2, LONG_MS);
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	end_id(id, true);
}
END_TEST

/* ------------------------------------------- clients in this fabric */

/* Return an id with a resolved address and route. */
static struct rdma_cm_id *client(void)
{
	struct sockaddr_storage a = far_address(2, 7000);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);

	far_meet();
	return c;
}

/* Call rdma_connect() with the private data "hi".  Returns the REQ. */
static const uint8_t *asks(struct rdma_cm_id *c)
{
	struct rdma_conn_param p = param("hi", 3);

	give_qp(c);
	ck_ok(rdma_connect(c, &p));
	return far_receive(MAD_REQ);
}

static uint32_t comm_id_of(const uint8_t *req)
{
	return (uint32_t)mad_get(req, MAD_REQ_local_comm_id);
}

/* The remote host accepts: REP, ESTABLISHED, RTU. */
static void answer(struct rdma_cm_id *c, const uint8_t *req)
{
	uint8_t mad[MAD_BYTES];

	far_rep(mad, req, COMM_ID);
	far_say(mad);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	far_receive(MAD_RTU);
}

/*
 * The client disconnects, and the remote host answers its DREQ with a DREP.
 */
static void disconnects(struct rdma_cm_id *c)
{
	uint8_t mad[MAD_BYTES];

	ck_ok(rdma_disconnect(c));
	far_drep(mad, far_receive(MAD_DREQ));
	far_say(mad);
	pass(c->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/*
 * A REQ is retransmitted until a REP arrives.  A repeated REP is answered
 * with another RTU and raises no event.
 */
START_TEST(client_connects)
{
	struct rdma_cm_id *c = client();
	const uint8_t *req = asks(c);
	uint8_t rep[MAD_BYTES];

	ck_assert_uint_eq(mad_get(req, MAD_REQ_service_id), 0x1060000 + 7000);
	ck_assert_uint_eq(mad_get(req, MAD_REQ_max_cm_retries), 15);
	far_receive_again(MAD_REQ);
	far_rep(rep, req, COMM_ID);
	far_say(rep);
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	far_receive(MAD_RTU);
	far_say(rep);
	far_receive_again(MAD_RTU);
	expect_nothing(c->channel, QUIET_MS);
	disconnects(c);
	end_id(c, true);
}
END_TEST

/*
 * A REJ raises REJECTED.  The status is the reason, and the private data has
 * 148 bytes (IB 12.6.7).  The client sends nothing more.
 */
START_TEST(client_is_rejected)
{
	struct rdma_cm_id *c = client();
	const uint8_t *req = asks(c);
	struct rdma_cm_event *e;
	uint8_t mad[MAD_BYTES];

	far_rej(mad, 0, comm_id_of(req), MAD_ABOUT_REQ, 28);
	mad_set_bytes(mad, MAD_REJ_private_data, 0, "no", 3);
	far_say(mad);
	e = expect(c->channel, RDMA_CM_EVENT_REJECTED, 28);
	ck_assert_uint_eq(e->param.conn.private_data_len, 148);
	ck_assert_str_eq(e->param.conn.private_data, "no");
	ck_ok(rdma_ack_cm_event(e));
	end_id(c, true);
	far_silence(QUIET_MS);
}
END_TEST

/*
 * An id that is destroyed before the REP sends a REJ with reason 4 (timeout).
 * A REP that arrives later is answered with a REJ with reason 6 (invalid
 * communication ID; IB 12.6.7.2).
 */
START_TEST(client_destroys_id)
{
	struct rdma_cm_id *c = client();
	const uint8_t *req = asks(c), *rej;
	uint8_t mad[MAD_BYTES];

	end_id(c, true);
	rej = far_receive(MAD_REJ);
	ck_assert_uint_eq(mad_get(rej, MAD_REJ_reason), 4);
	ck_assert_uint_eq(mad_get(rej, MAD_REJ_info_length), 8);
	/* no MADs are received without an open device: client() opens it */
	c = client();
	far_rep(mad, req, COMM_ID);
	far_say(mad);
	rej = far_receive(MAD_REJ);
	ck_assert_uint_eq(mad_get(rej, MAD_REJ_reason), 6);
	ck_assert_uint_eq(mad_get(rej, MAD_REJ_remote_comm_id), COMM_ID);
	end_id(c, true);
}
END_TEST

/*
 * MADs are ignored if they are from another address or for another id, or if
 * they contain invalid values.
 */
START_TEST(client_ignores_foreign_mads)
{
	struct rdma_cm_id *c = client();
	const uint8_t *req = asks(c);
	uint8_t mad[MAD_BYTES], other[16];

	memcpy(other, far_there, 16);
	other[15] = 3;
	far_run(far_here[0] ? "ip -6 addr add fd91::3/64 dev eth0 nodad" :
			      "ip addr add 10.91.0.3/24 dev eth0");
	far_rej(mad, 0, comm_id_of(req), MAD_ABOUT_REQ, 28);
	far_say_from(other, mad);
	mad_set(mad, MAD_REJ_message, 3);
	far_say(mad);
	far_rej(mad, 0, comm_id_of(req) + 1, MAD_ABOUT_REQ, 28);
	far_say(mad);
	far_rep(mad, req, COMM_ID);
	far_say_from(other, mad);
	mad_set(mad, MAD_REP_local_qpn, 0);
	far_say(mad);
	expect_nothing(c->channel, QUIET_MS);
	answer(c, req);
	disconnects(c);
	end_id(c, true);
}
END_TEST

/* How a process ends that has not disconnected. */
enum end { END_EXIT, END_NOW, END_HANDLER, END_KILLED, ENDS };

static void ends_now(int signal)
{
	(void)signal;
	_exit(0);
}

/*
 * End in a signal handler that probably has interrupted malloc(3) or free(3):
 * too large for the cache of the thread, and not overwritten.
 */
static void ends_in_malloc(void)
{
	const struct itimerval soon = { .it_value.tv_usec = 1000 };
	void *p[64];
	size_t i;

	mallopt(M_PERTURB, 0);
	signal(SIGALRM, ends_now);
	ck_ok(setitimer(ITIMER_REAL, &soon, NULL));
	for (;;) {
		for (i = 0; i < 64; i++)
			p[i] = malloc(3000 + 100 * i);
		for (i = 0; i < 64; i++)
			free(p[i * 37 % 64]);
	}
}

static void connects_and_ends(int fd, void *arg)
{
	const enum end *how = arg;
	struct sockaddr_storage a = far_address(2, 7000);
	struct rdma_cm_id *c = client_to(SA(&a), RDMA_PS_TCP);
	struct rdma_conn_param p = param("hi", 3);

	send_int(fd, 1);
	receive_int(fd);
	give_qp(c);
	ck_ok(rdma_connect(c, &p));
	pass(c->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	send_int(fd, 2);
	receive_int(fd); /* END_KILLED: killed here */
	if (*how == END_EXIT)
		exit(0);
	if (*how == END_HANDLER)
		ends_in_malloc();
	_exit(0);
}

/*
 * A process ends without rdma_disconnect, and is the only one that has the
 * device open.  A DREQ is sent nevertheless: by the process in exit(3) and
 * _exit(2), and by its parent after a SIGKILL.
 */
START_TEST(process_ends)
{
	enum end how = (enum end)_i;
	struct other o = spawn(connects_and_ends, &how);
	uint8_t mad[MAD_BYTES];

	ck_assert_int_eq(receive_int(o.fd), 1);
	far_meet();
	send_int(o.fd, 1);
	far_rep(mad, far_receive(MAD_REQ), COMM_ID);
	far_say(mad);
	far_receive(MAD_RTU);
	ck_assert_int_eq(receive_int(o.fd), 2);
	if (how == END_KILLED) {
		kill_it(o);
	} else {
		send_int(o.fd, 1);
		finish(o);
	}
	ck_assert_uint_eq(
		mad_get(far_receive(MAD_DREQ), MAD_DREQ_remote_comm_id),
		COMM_ID);
}
END_TEST

/* ------------------------------------------- servers in this fabric */

/* Return an id that listens. */
static struct rdma_cm_id *server(int backlog)
{
	struct sockaddr_storage a = far_address(1, 0);
	struct rdma_cm_id *l = listen_on(SA(&a), RDMA_PS_TCP, backlog);

	far_meet();
	return l;
}

/*
 * A REQ that is repeated is answered with an MRA before rdma_accept(), and
 * with the REP after it.  A repeated RTU raises no second event.
 * rdma_disconnect() sends a DREQ with the remote QPN.
 */
START_TEST(server_repeated_req)
{
	struct rdma_cm_id *l = server(5), *s;
	uint8_t req[MAD_BYTES], mad[MAD_BYTES];
	const uint8_t *rep, *dreq;

	far_req(req, (uint16_t)port_of(l), COMM_ID);
	far_say(req);
	s = next_request(l);
	far_say(req); /* not accepted yet */
	ck_assert_uint_eq(
		mad_get(far_receive(MAD_MRA), MAD_MRA_service_timeout), 24);
	give_qp(s);
	accept_it(s);
	rep = far_receive(MAD_REP);
	far_say(req);
	far_receive_again(MAD_REP);
	far_rtu(mad, rep);
	far_say(mad);
	far_say(mad);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	ck_ok(rdma_disconnect(s));
	dreq = far_receive(MAD_DREQ);
	ck_assert_uint_eq(mad_get(dreq, MAD_DREQ_remote_qpn), far_qpn);
	far_drep(mad, dreq);
	far_say(mad);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/*
 * A REQ from a remote QP that already has a connection shows that the
 * connection is stale (IB 12.9.8.3.1).  The connection is disconnected, and
 * the REQ is rejected with reason 10 (stale connection).
 */
START_TEST(server_stale_connection)
{
	struct rdma_cm_id *l = server(5), *s;
	uint8_t req[MAD_BYTES], mad[MAD_BYTES];

	far_req(req, (uint16_t)port_of(l), COMM_ID);
	far_say(req);
	s = next_request(l);
	give_qp(s);
	accept_it(s);
	far_rtu(mad, far_receive(MAD_REP));
	far_say(mad);
	pass(l->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	far_req(req, (uint16_t)port_of(l), COMM_ID + 1);
	far_say(req);
	far_drep(mad, far_receive(MAD_DREQ));
	ck_assert_uint_eq(mad_get(far_receive(MAD_REJ), MAD_REJ_reason), 10);
	far_say(mad);
	pass(l->channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(s, false);
	end_id(l, true);
}
END_TEST

/*
 * REQs from a remote host in excess of the backlog are dropped.  A REQ that
 * is repeated when the backlog has room is accepted.
 */
START_TEST(server_backlog_exceeded)
{
	struct rdma_cm_id *l = server(2), *s[3];
	uint8_t req[MAD_BYTES];
	uint32_t i;

	for (i = 0; i < 50; i++) {
		far_req(req, (uint16_t)port_of(l), COMM_ID + i);
		mad_set(req, MAD_REQ_local_qpn, far_qpn + i);
		far_say(req);
	}
	far_silence(QUIET_MS);
	s[0] = next_request(l);
	s[1] = next_request(l);
	expect_nothing(l->channel, QUIET_MS);
	far_say(req); /* repeat the last one: the backlog has room now */
	s[2] = next_request(l);
	for (i = 0; i < 3; i++) {
		end_id(s[i], false);
		far_receive(MAD_REJ);
	}
	end_id(l, true);
}
END_TEST

#define TEST(name, list) tcase_add_test(list, name)

int main(void)
{
	Suite *s = suite_create("wire cm");
	TCase *t = tcase_create("addresses");

	may_leak();
	tcase_set_timeout(t, 600);
	tcase_add_checked_fixture(t, far_begin, far_end);
	TEST(address_without_arp_reply, t);
	TEST(address_without_route, t);
	TEST(address_added_later, t);
	TEST(id_destroyed_while_resolving, t);
	suite_add_tcase(s, t);
	t = tcase_create("messages");
	tcase_set_timeout(t, 600);
	tcase_add_checked_fixture(t, far_begin, far_end);
	TEST(client_connects, t);
	TEST(client_is_rejected, t);
	TEST(client_destroys_id, t);
	TEST(client_ignores_foreign_mads, t);
	tcase_add_loop_test(t, process_ends, 0, ENDS);
	TEST(server_repeated_req, t);
	TEST(server_stale_connection, t);
	TEST(server_backlog_exceeded, t);
	suite_add_tcase(s, t);
	return run_cases(srunner_create(s));
}
