// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connection manager between two hosts: messages that are delivered, lost
 * or duplicated (two_hosts.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "two_hosts.h"

START_TEST(connection)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *s, *c;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	use_host(1);
	e = expect(server_fd, CM_EV_CONNECT_REQUEST, 0);
	ck_assert_uint_eq(e.param.conn.qp_num, 0x777);
	ck_assert_uint_eq(e.param.conn.responder_resources, 6);
	ck_assert_uint_eq(e.param.conn.initiator_depth, 5);
	ck_assert_uint_eq(e.param.conn.private_data_len, 56);
	ck_assert_mem_eq(e.param.conn.private_data, "hi", 3);
	s = cm_id_at(&cm, e.id + 1);
	use_host(0);
	ck_assert_mem_eq(&s->src, &c->dst, sizeof(s->src));
	ck_assert_mem_eq(&s->dst, &c->src, sizeof(s->dst));
	ck_assert_mem_eq(s->dgid, c->sgid, 16);
	ck_assert_uint_eq(s->path_mtu, 3);
	ck_assert_uint_eq(s->path_tos, 0x20);
	ck_assert_uint_eq(s->path_life, 16);
	ck_assert_uint_eq(s->retry_count, 7);
	ck_assert_uint_eq(s->rnr_retry_count, 6);
	ck_assert_uint_eq(s->remote_qpn, 0x777);
	ck_assert_uint_eq(s->remote_psn, c->psn);
	far_accept(s);
	deliver_sent("REP");
	e = expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	ck_assert_uint_eq(e.param.conn.qp_num, 0x888);
	ck_assert_uint_eq(e.param.conn.responder_resources, 2);
	ck_assert_uint_eq(e.param.conn.initiator_depth, 3);
	ck_assert_mem_eq(e.param.conn.private_data, "well", 5);
	ck_assert_uint_eq(c->remote_psn, s->psn);
	ck_assert_uint_eq(c->rnr_retry_count, 4);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
	deliver_sent("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	deliver_sent("DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	deliver_sent("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	expect_sent("");
	cm_id_destroy(&cm, c, client_fd);
	use_host(1);
	cm_id_destroy(&cm, s, server_fd);
	expect_sent(
		"DREP DREP DREP"); /* sent three times, as one may be lost */
	end_hosts();
}
END_TEST

/*
 * Each message is lost once and retransmitted, or delivered twice.  No
 * duplicate creates an id or an event.
 */
START_TEST(lost_and_duplicated)
{
	struct cm_id *s, *c;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	lose_sent("REQ");
	expire(c);
	expect_sent("REQ");
	deliver_one(&sent[0]);
	deliver_sent("REQ");
	s = far_request();
	use_host(1);
	none(server_fd);
	use_host(0);
	deliver_sent("MRA"); /* the REQ was received, and the server is slow */
	far_accept(s);
	lose_sent("REP");
	expire(c);
	deliver_sent("REQ"); /* the REP is retransmitted */
	lose_sent("REP");
	use_host(1);
	expire(s);
	use_host(0);
	expect_sent("REP");
	ck_assert_uint_eq(mad_get(sent[0].mad, MAD_REP_local_qpn), 0x888);
	ck_assert_uint_eq(mad_get(sent[0].mad, MAD_REP_rnr_retry_count), 4);
	ck_assert_mem_eq(sent[0].mad + 24 + 36, "well", 5);
	deliver_one(&sent[0]);
	deliver_sent("REP");
	deliver_sent("MRA");
	confirm(c);
	none(client_fd);
	lose_sent("RTU RTU RTU"); /* more than one after an MRA */
	use_host(1);
	expire(s);
	use_host(0);
	deliver_sent("REP");
	expect_sent("RTU");
	deliver_one(&sent[0]);
	deliver_sent("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	use_host(1);
	none(server_fd);
	use_host(0);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	lose_sent("DREQ");
	expire(c);
	expect_sent("DREQ");
	deliver_one(&sent[0]);
	deliver_sent("DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	lose_sent("DREP");
	expire(c);
	deliver_sent("DREQ");
	expect_sent("DREP");
	deliver_one(&sent[0]);
	deliver_sent("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	none(client_fd);
	expect_sent("");
	end_hosts();
}
END_TEST

/* A request without a listener, or for another QP type, is rejected. */
START_TEST(no_listener)
{
	struct cm_id *c;

	setup_hosts();
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	deliver_sent("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_INVALID_SERVICE);
	cm_id_destroy(&cm, c, client_fd);
	c = near_client(CM_QPT_UD);
	deliver_sent("SIDR_REQ");
	deliver_sent("SIDR_REP");
	expect(client_fd, CM_EV_UNREACHABLE, CM_SIDR_UNSUPPORTED);
	far_listener(CM_QPT_UC, 5);
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	deliver_sent("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	end_hosts();
}
END_TEST

/*
 * A REQ, REP or DREQ without a response is retransmitted, and then fails with
 * ETIMEDOUT.
 */
START_TEST(no_response)
{
	unsigned int tries = 0;
	struct cm_id *s, *c;

	setup_hosts();
	c = near_client(CM_QPT_RC);
	while (c->cm == CM_REQ_SENT) {
		lose_sent("REQ");
		tries++;
		expire(c);
	}
	ck_assert_uint_ge(tries, 16); /* at least as often as the kernel */
	expect(client_fd, CM_EV_UNREACHABLE, -ETIMEDOUT);
	expect_sent("");
	cm_id_destroy(&cm, c, client_fd);
	expect_sent("");
	/* a server that receives no RTU */
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	s = far_request();
	far_accept(s);
	use_host(1);
	while (s->cm == CM_REP_SENT) {
		lose_sent("REP");
		expire(s);
	}
	use_host(0);
	far_expect(CM_EV_UNREACHABLE, -ETIMEDOUT);
	deliver_sent("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_TIMEOUT);
	/* a peer that does not answer a DREQ */
	connected(&s, &c);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	while (c->cm == CM_DREQ_SENT) {
		lose_sent("DREQ");
		expire(c);
	}
	expect(client_fd, CM_EV_DISCONNECTED, -ETIMEDOUT);
	end_hosts();
}
END_TEST

/* Return how often the REP is sent before the server gives up. */
static unsigned int reps_of(struct cm_id *s)
{
	unsigned int n = 0;

	use_host(1);
	while (s->cm == CM_REP_SENT) {
		lose_sent("REP");
		n++;
		expire(s);
	}
	lose_sent("REJ");
	expect(server_fd, CM_EV_UNREACHABLE, -ETIMEDOUT);
	cm_id_destroy(&cm, s, server_fd);
	use_host(0);
	return n;
}

/*
 * A REP is retransmitted for as long as the local_cm_response_timeout and
 * max_cm_retries of the REQ say.
 */
START_TEST(rep_retransmission_limit)
{
	static const struct {
		uint8_t timeout, retries, messages;
	} cases[] = {
		{ 20, 15, 19 }, /* the first retransmissions are faster */
		{ 0, 0, 1 },	{ 10, 3, 4 }, { 15, 0, 1 }, { 31, 1, 8 },
	};
	struct sent_mad l;
	struct cm_id *s;
	unsigned int i;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		near_client(CM_QPT_RC);
		l = sent[0];
		lose_sent("REQ");
		mad_set(l.mad, MAD_REQ_local_cm_response_timeout,
			cases[i].timeout);
		mad_set(l.mad, MAD_REQ_max_cm_retries, cases[i].retries);
		deliver_one(&l);
		s = far_request();
		far_accept(s);
		ck_assert_uint_eq(reps_of(s), cases[i].messages);
	}
	end_hosts();
}
END_TEST

/*
 * A REQ that is repeated has the REP repeated, but does not count as one of
 * its retransmissions.
 */
START_TEST(repeated_req_is_no_retransmission)
{
	struct sent_mad l;
	struct cm_id *s;
	int i;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	near_client(CM_QPT_RC);
	l = sent[0];
	deliver_sent("REQ");
	s = far_request();
	far_accept(s);
	lose_sent("REP");
	for (i = 0; i < 100; i++) {
		deliver_one(&l);
		lose_sent("REP");
	}
	ck_assert_int_eq(s->cm, CM_REP_SENT);
	ck_assert_uint_eq(s->tries, 0);
	end_hosts();
}
END_TEST

static void send_mra(struct cm_id *from, int to, unsigned int message)
{
	use_host(!to);
	cm_sent_mra(&cm, from, message);
	use_host(0);
	deliver_sent("MRA");
}

/*
 * An MRA extends the timeout of the message that it names, and of no other.
 */
START_TEST(mra_extends_timeout)
{
	struct cm_id *s, *c;
	uint64_t before;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	s = far_request();
	before = c->deadline;
	send_mra(s, 0, MAD_ABOUT_REP);
	send_mra(s, 0, MAD_ABOUT_OTHER);
	ck_assert_uint_eq(c->deadline, before);
	send_mra(s, 0, MAD_ABOUT_REQ);
	ck_assert_uint_gt(c->deadline, before + 60000000000ull);
	far_accept(s);
	deliver_sent("REP");
	expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	before = s->deadline;
	send_mra(c, 1, MAD_ABOUT_REQ);
	ck_assert_uint_eq(s->deadline, before);
	send_mra(c, 1, MAD_ABOUT_REP);
	ck_assert_uint_gt(s->deadline, before + 60000000000ull);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
	deliver_sent("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	ck_assert_uint_eq(s->deadline, 0);
	end_hosts();
}
END_TEST

static struct sent_mad req_of(struct cm_id **c)
{
	struct sent_mad l;

	*c = near_client(CM_QPT_RC);
	l = sent[0];
	deliver_sent("REQ");
	return l;
}

/*
 * A REQ for a remote QP that is connected already: the peer has forgotten
 * that connection.  The REQ is rejected as stale, and the old connection
 * ends.
 */
START_TEST(stale_connection)
{
	struct cm_id *s, *c, *again;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	/* as if the host had been restarted */
	cm_to_idle(&cm, c);
	client_qpn--;
	again = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	use_host(1);
	none(server_fd);
	use_host(0);
	ck_assert_int_eq(s->cm, CM_DREQ_SENT);
	expect_sent("DREQ REJ");
	ck_assert_uint_eq(mad_get(sent[1].mad, MAD_REJ_message), MAD_ABOUT_REQ);
	deliver_sent("DREQ REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_STALE);
	ck_assert_int_eq(again->cm, CM_TIMEWAIT);
	deliver_sent("DREP");
	far_expect(CM_EV_DISCONNECTED, 0);
	ck_assert_int_eq(s->cm, CM_TIMEWAIT);
	/* the same during TIMEWAIT, though the id is destroyed */
	use_host(1);
	cm_id_destroy(&cm, s, server_fd);
	use_host(0);
	client_qpn--;
	near_client(CM_QPT_RC);
	deliver_sent("REQ");
	deliver_sent("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_STALE);
	host[1].cm.t->ended[0].until = 1; /* TIMEWAIT ends */
	client_qpn--;
	near_client(CM_QPT_RC);
	deliver_sent("REQ");
	ck_assert_ptr_nonnull(far_request());
	end_hosts();
}
END_TEST

/*
 * A delayed duplicate REQ of a connection that has ended meanwhile is
 * rejected.
 */
START_TEST(delayed_duplicate_req)
{
	struct cm_id *s, *c;
	struct sent_mad l;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	l = req_of(&c);
	s = far_request();
	far_accept(s);
	deliver_sent("REP");
	confirm(c);
	deliver_sent("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	deliver_sent("DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	deliver_sent("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	use_host(1);
	cm_id_destroy(&cm, s, server_fd);
	lose_sent("DREP DREP DREP");
	use_host(0);
	deliver_one(&l);
	use_host(1);
	none(server_fd);
	use_host(0);
	expect_sent("REJ");
	end_hosts();
}
END_TEST

/*
 * A REP is rejected if its request was given up, or if it names a QP that is
 * connected already.
 */
START_TEST(stale_rep)
{
	struct cm_id *s, *c;
	struct sent_mad l;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	s = far_request();
	far_accept(s);
	l = sent[0];
	lose_sent("REP");
	cm_id_destroy(&cm, c, client_fd);
	lose_sent("REJ REJ REJ");
	deliver_one(&l);
	expect_sent("REJ");
	ck_assert_uint_eq(mad_get(sent[0].mad, MAD_REJ_message), MAD_ABOUT_REP);
	deliver_sent("REJ");
	far_expect(CM_EV_REJECTED, CM_REJ_INVALID_COMM_ID);
	ck_assert_int_eq(s->cm, CM_IDLE);
	connected(&s, &c);
	near_client(CM_QPT_RC);
	deliver_sent("REQ");
	s = far_request();
	server_qpn--;
	far_accept(s); /* the server's QP is in use, which is an error */
	deliver_sent("REP");
	none(client_fd);
	expect_sent("DREQ REJ");
	ck_assert_int_eq(c->cm, CM_DREQ_SENT);
	deliver_sent("DREQ REJ");
	end_hosts();
}
END_TEST

START_TEST(rejection)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *s, *c;
	uint64_t guid;
	size_t len;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	s = far_request();
	use_host(1);
	ck_assert_int_eq(cm_reject(&cm, s, CM_REJ_CONSUMER, "no", 3), 0);
	use_host(0);
	deliver_sent("REJ");
	e = expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	ck_assert_mem_eq(e.param.conn.private_data, "no", 3);
	/*
	 * the client times out before the REP arrives, so it does not know
	 * the server's communication ID
	 */
	c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	s = far_request();
	far_accept(s);
	lose_sent("REP");
	cm_id_destroy(&cm, c, client_fd);
	/* identified by the CA's GUID (IB 12.6.7.2) */
	expect_sent("REJ REJ REJ");
	ck_assert_uint_eq(mad_get(sent[0].mad, MAD_REJ_info_length), 8);
	guid = htobe64(cm.f->dev->hca[0].node_guid);
	ck_assert_mem_eq(mad_bytes(sent[0].mad, MAD_REJ_info, &len), &guid, 8);
	deliver_sent("REJ REJ REJ");
	far_expect(CM_EV_REJECTED, CM_REJ_TIMEOUT);
	end_hosts();
}
END_TEST

/*
 * An id that is destroyed sends its DREQ three times (and later:
 * test_cm_ended.c).
 */
START_TEST(destroy_sends_dreq)
{
	struct cm_id *s, *c;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	cm_id_destroy(&cm, c, client_fd);
	deliver_sent("DREQ DREQ DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	deliver_sent("DREP");
	expect_sent("");
	/* a DREQ for an id that does not exist any more gets a DREP */
	connected(&s, &c);
	use_host(1);
	cm_id_destroy(&cm, s, server_fd);
	use_host(0);
	lose_sent("DREQ DREQ DREQ");
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	deliver_sent("DREQ");
	deliver_sent("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	end_hosts();
}
END_TEST

START_TEST(both_disconnect)
{
	struct cm_id *s, *c;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	far_disconnect(s);
	deliver_sent("DREQ DREQ");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	far_expect(CM_EV_DISCONNECTED, 0);
	deliver_sent("DREP DREP");
	none(client_fd);
	expect_sent("");
	end_hosts();
}
END_TEST

START_TEST(datagrams)
{
	struct rdma_ucm_event_resp e;
	size_t len;
	struct cm_id *s, *c;

	setup_hosts();
	far_listener(CM_QPT_UD, 5);
	c = near_client(CM_QPT_UD);
	lose_sent("SIDR_REQ");
	expire(c);
	expect_sent("SIDR_REQ");
	deliver_one(&sent[0]);
	deliver_sent("SIDR_REQ");
	use_host(1);
	e = expect(server_fd, CM_EV_CONNECT_REQUEST, 0);
	ck_assert_uint_eq(e.param.ud.private_data_len, 180);
	ck_assert_mem_eq(e.param.ud.private_data, "hi", 3);
	none(server_fd);
	s = cm_id_at(&cm, e.id + 1);
	use_host(0);
	ck_assert_mem_eq(&s->dst, &c->src, sizeof(s->dst));
	far_accept(s);
	lose_sent("SIDR_REP");
	expire(c);
	deliver_sent("SIDR_REQ"); /* it does not create a second id */
	use_host(1);
	none(server_fd);
	use_host(0);
	ck_assert_mem_eq(
		mad_bytes(sent[0].mad, MAD_SIDR_REP_private_data, &len), "well",
		5);
	deliver_sent("SIDR_REP");
	e = expect(client_fd, CM_EV_ESTABLISHED, 0);
	ck_assert_uint_eq(e.param.ud.qp_num, 0x888);
	ck_assert_uint_eq(e.param.ud.qkey, CM_UDP_QKEY);
	ck_assert_mem_eq(e.param.ud.ah_attr.grh.dgid, c->dgid, 16);
	expect_sent("");
	c = near_client(CM_QPT_UD);
	deliver_sent("SIDR_REQ");
	s = far_request();
	use_host(1);
	ck_assert_int_eq(cm_reject(&cm, s, CM_REJ_CONSUMER, NULL, 0), 0);
	use_host(0);
	deliver_sent("SIDR_REP");
	expect(client_fd, CM_EV_UNREACHABLE, CM_SIDR_REJECT);
	end_hosts();
}
END_TEST

/*
 * A REQ that exceeds the backlog is dropped.  A retransmitted one is accepted
 * when there is room.
 */
START_TEST(full_backlog)
{
	struct cm_id *c[3], *s;
	int i;

	setup_hosts();
	far_listener(CM_QPT_RC, 2);
	for (i = 0; i < 3; i++)
		c[i] = near_client(CM_QPT_RC);
	deliver_sent("REQ REQ REQ");
	expect_sent("");
	s = far_request();
	far_request();
	use_host(1);
	none(server_fd);
	use_host(0);
	expire(c[2]);
	deliver_sent("REQ");
	ck_assert_ptr_ne(far_request(), s);
	end_hosts();
}
END_TEST

/*
 * Messages from another address, for another connection or QP, or in the
 * wrong state are dropped.
 */
START_TEST(unexpected_messages_dropped)
{
	static const enum mad_message all[] = { MAD_REJ,  MAD_RTU, MAD_DREQ,
						MAD_DREP, MAD_REP, MAD_MRA };
	struct cm_id *s, *c;
	struct sent_mad l;
	unsigned int i;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		l = (struct sent_mad){ .to = 1 };
		memcpy(l.path.sgid, c->sgid, 16);
		memcpy(l.path.dgid, c->dgid, 16);
		mad_begin(l.mad, all[i], 1);
		/*
		 * the communication IDs are at the same place in all of them
		 */
		mad_set(l.mad, MAD_REJ_local_comm_id, s->remote_comm_id + 1);
		mad_set(l.mad, MAD_REJ_remote_comm_id, c->remote_comm_id);
		deliver_one(&l);
		mad_set(l.mad, MAD_REJ_local_comm_id, s->remote_comm_id);
		if (all[i] == MAD_DREQ) /* of another QP */
			mad_set(l.mad, MAD_DREQ_remote_qpn, 0x999);
		l.path.sgid[15] ^= all[i] != MAD_DREQ;
		deliver_one(&l);
	}
	use_host(1);
	none(server_fd);
	ck_assert_int_eq(s->cm, CM_ESTABLISHED);
	end_hosts();
}
END_TEST

/*
 * A restarted host may use the same communication ID again: a REQ with
 * another QP is a new one.
 */
START_TEST(comm_id_reused)
{
	struct cm_id *s, *c;
	struct sent_mad l;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	l = sent[0];
	deliver_sent("REQ");
	s = far_request();
	far_accept(s);
	deliver_sent("REP");
	confirm(c);
	deliver_sent("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	deliver_one(&l);
	use_host(1);
	none(server_fd);
	use_host(0);
	mad_set(l.mad, MAD_REQ_local_qpn, 0x778);
	deliver_one(&l);
	ck_assert_ptr_ne(far_request(), s);
	/* the new REQ has another QP */
	ck_assert_int_eq(s->cm, CM_ESTABLISHED);
	expect_sent("");
	end_hosts();
}
END_TEST

/* Random bytes from the network are handled without a crash. */
START_TEST(random_bytes)
{
	struct cm_id *s, *c;
	struct sent_mad l;
	unsigned int i, j;

	setup_hosts();
	far_listener(CM_QPT_RC, 5);
	far_listener(CM_QPT_UD, 5);
	connected(&s, &c);
	srand(1);
	for (i = 0; i < 20000; i++) {
		l = (struct sent_mad){ .to = 1 };
		memcpy(l.path.sgid, c->sgid, 16);
		memcpy(l.path.dgid, c->dgid, 16);
		mad_begin(l.mad, MAD_REQ + i % 9, (uint64_t)rand());
		for (j = 24; j < MAD_BYTES; j++)
			l.mad[j] = rand() % 4 ? 0 : (uint8_t)rand();
		if (i & 16)
			mad_set(l.mad, MAD_REJ_remote_comm_id,
				c->remote_comm_id);
		if (i & 32)
			mad_set(l.mad,
				i % 9 ? MAD_SIDR_REQ_service_id :
					MAD_REQ_service_id,
				(i % 9 ? 0x1110000 : 0x1060000) + PORT);
		deliver_one(&l);
		n_sent = 0;
	}
	use_host(1);
	ck_assert_uint_le(cm_ids(&cm), CM_MAX_ID);
	ck_assert_uint_lt(chan(server_fd)->events, 64);
	end_hosts();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm_wire");

	add(s, connection);
	add(s, lost_and_duplicated);
	add(s, no_listener);
	add(s, no_response);
	add(s, rep_retransmission_limit);
	add(s, repeated_req_is_no_retransmission);
	add(s, mra_extends_timeout);
	add(s, stale_connection);
	add(s, delayed_duplicate_req);
	add(s, stale_rep);
	add(s, rejection);
	add(s, destroy_sends_dreq);
	add(s, both_disconnect);
	add(s, datagrams);
	add(s, full_backlog);
	add(s, unexpected_messages_dropped);
	add(s, comm_id_reused);
	add(s, random_bytes);
	return run_suite(s);
}
