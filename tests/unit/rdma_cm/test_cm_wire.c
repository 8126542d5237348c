// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connection manager between two hosts: two fabrics in one process, and
 * messages between them that are delivered, lost or duplicated.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cm.h"
#include "cm/wire.h"

#define MOST 64

/*
 * The state of the host that is not current; cm, server_fd and client_fd
 * belong to the current one.
 */
static struct {
	struct cm cm;
	int server_fd, client_fd;
} host[2];
static int here;
/* QP numbers of the next client and server */
static uint32_t client_qpn, server_qpn;

static struct letter {
	int to;
	struct wire_path path;
	uint8_t mad[MAD_BYTES];
} letters[MOST];
static unsigned int n_letters;

static void be(int which)
{
	if (which == here)
		return;
	host[here].cm = cm;
	host[here].server_fd = server_fd;
	host[here].client_fd = client_fd;
	here = which;
	cm = host[here].cm;
	server_fd = host[here].server_fd;
	client_fd = host[here].client_fd;
}

/* The host's address: 10.1.2.3 or 10.1.2.4. */
static union cm_addr addr_of(int which, uint16_t port)
{
	union cm_addr a = ip4(port);

	a.in.sin_addr.s_addr = htonl(0x0a010203 + (uint32_t)which);
	return a;
}

static void transmit(const struct cm_id *from, const uint8_t mad[MAD_BYTES])
{
	struct letter *l = &letters[n_letters++];

	ck_assert_uint_le(n_letters, MOST);
	*l = (struct letter){ .to = !here };
	memcpy(l->path.sgid, from->sgid, 16);
	memcpy(l->path.dgid, from->dgid, 16);
	memcpy(l->mad, mad, MAD_BYTES);
}

/* Check the types of the messages on their way, and leave them there. */
static void travels(const char *names)
{
	char all[256] = "";
	unsigned int i;

	for (i = 0; i < n_letters; i++) {
		strcat(all, i ? " " : "");
		strcat(all, mad_name(mad_message(letters[i].mad)));
	}
	ck_assert_str_eq(all, names);
}

static void get_lost(const char *names)
{
	travels(names);
	n_letters = 0;
}

static void deliver(const struct letter *l)
{
	const int was = here;

	be(l->to);
	cm_wire_take(&cm, &l->path, l->mad, MAD_BYTES);
	cm_settle(&cm);
	be(was);
}

/*
 * Check the types of the messages on their way, and deliver them.  Responses
 * are on their way afterwards.
 */
static void arrives(const char *names)
{
	static struct letter now[MOST];
	const unsigned int n = n_letters;
	unsigned int i;

	travels(names);
	memcpy(now, letters, sizeof(now));
	n_letters = 0;
	for (i = 0; i < n; i++)
		deliver(&now[i]);
}

static void hosts(void)
{
	setup();
	cm.transmit = transmit;
	host[0].cm = cm;
	host[0].server_fd = server_fd;
	host[0].client_fd = client_fd;
	setup();
	cm.transmit = transmit;
	here = 1;
	n_letters = 0;
	client_qpn = 0x777;
	server_qpn = 0x888;
	be(0);
}

static void done(void)
{
	cm_unlock(&host[!here].cm);
	cm_unlock(&cm);
}

/* Create a listener on host 1. */
static struct cm_id *far_listener(uint8_t type, uint32_t backlog)
{
	struct cm_id *id;

	be(1);
	id = new_id(server_fd, UID_L, type);
	id->src = addr_of(1, PORT);
	ck_assert_int_eq(cm_port_bind(&cm, id, false), 0);
	ck_assert_int_eq(cm_listen(&cm, id, backlog), 0);
	be(0);
	return id;
}

/* Create a client on host 0 that has sent its request. */
static struct cm_id *near_client(uint8_t type)
{
	struct rdma_ucm_conn_param p = { .qp_num = client_qpn++,
					 .valid = 1,
					 .private_data_len = 3,
					 .private_data = "hi",
					 .responder_resources = 5,
					 .initiator_depth = 6,
					 .retry_count = 7,
					 .rnr_retry_count = 6 };
	struct cm_id *id = new_id(client_fd, UID_C, type);

	id->flags |= CM_F_WIRE | CM_F_PATH;
	id->path_mtu = 3;
	id->path_tos = 0x20;
	id->path_life = 16;
	id->src = addr_of(0, 0);
	id->dst = addr_of(1, PORT);
	cm_addr_raw(&id->src, id->sgid);
	cm_addr_raw(&id->dst, id->dgid);
	ck_assert_int_eq(cm_port_bind(&cm, id, false), 0);
	id->cma = CMA_ROUTE_RESOLVED;
	ck_assert_int_eq(cm_connect(&cm, id, &p, &no_ece), 0);
	return id;
}

static struct cm_id *far_request(void)
{
	struct cm_id *s;

	be(1);
	s = request();
	be(0);
	return s;
}

static void far_accept(struct cm_id *s)
{
	struct rdma_ucm_conn_param p = { .qp_num = server_qpn++,
					 .valid = 1,
					 .responder_resources = 3,
					 .initiator_depth = 2,
					 .rnr_retry_count = 4,
					 .private_data_len = 5,
					 .private_data = "well" };

	be(1);
	ck_assert_int_eq(cm_accept(&cm, s, &p, &no_ece, UID_S), 0);
	be(0);
}

static void far_expect(uint32_t event, int status)
{
	be(1);
	expect(server_fd, event, status);
	be(0);
}

static void confirm(struct cm_id *c)
{
	expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
}

static void connected(struct cm_id **s, struct cm_id **c)
{
	*c = near_client(CM_QPT_RC);
	arrives("REQ");
	*s = far_request();
	far_accept(*s);
	arrives("REP");
	confirm(*c);
	arrives("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
}

static void far_disconnect(struct cm_id *s)
{
	be(1);
	ck_assert_int_eq(cm_disconnect(&cm, s), 0);
	be(0);
}

START_TEST(connection)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *s, *c;

	hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	be(1);
	e = expect(server_fd, CM_EV_CONNECT_REQUEST, 0);
	ck_assert_uint_eq(e.param.conn.qp_num, 0x777);
	ck_assert_uint_eq(e.param.conn.responder_resources, 6);
	ck_assert_uint_eq(e.param.conn.initiator_depth, 5);
	ck_assert_uint_eq(e.param.conn.private_data_len, 56);
	ck_assert_mem_eq(e.param.conn.private_data, "hi", 3);
	s = cm_id_at(&cm, e.id + 1);
	be(0);
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
	arrives("REP");
	e = expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	ck_assert_uint_eq(e.param.conn.qp_num, 0x888);
	ck_assert_uint_eq(e.param.conn.responder_resources, 2);
	ck_assert_uint_eq(e.param.conn.initiator_depth, 3);
	ck_assert_mem_eq(e.param.conn.private_data, "well", 5);
	ck_assert_uint_eq(c->remote_psn, s->psn);
	ck_assert_uint_eq(c->rnr_retry_count, 4);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
	arrives("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	arrives("DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	arrives("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	travels("");
	cm_id_destroy(&cm, c, client_fd);
	be(1);
	cm_id_destroy(&cm, s, server_fd);
	travels("DREP DREP DREP"); /* sent three times, as one may be lost */
	done();
}
END_TEST

/*
 * Each message is lost once and retransmitted, or delivered twice.  No
 * duplicate creates an id or an event.
 */
START_TEST(lost_and_duplicated)
{
	struct cm_id *s, *c;

	hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	get_lost("REQ");
	expire(c);
	travels("REQ");
	deliver(&letters[0]);
	arrives("REQ");
	s = far_request();
	be(1);
	none(server_fd);
	be(0);
	arrives("MRA"); /* the REQ was received, and the server is slow */
	far_accept(s);
	get_lost("REP");
	expire(c);
	arrives("REQ"); /* the REP is retransmitted */
	get_lost("REP");
	be(1);
	expire(s);
	be(0);
	travels("REP");
	ck_assert_uint_eq(mad_get(letters[0].mad, MAD_REP_local_qpn), 0x888);
	ck_assert_uint_eq(mad_get(letters[0].mad, MAD_REP_rnr_retry_count), 4);
	ck_assert_mem_eq(letters[0].mad + 24 + 36, "well", 5);
	deliver(&letters[0]);
	arrives("REP");
	arrives("MRA");
	confirm(c);
	none(client_fd);
	get_lost("RTU");
	be(1);
	expire(s);
	be(0);
	arrives("REP");
	travels("RTU");
	deliver(&letters[0]);
	arrives("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	be(1);
	none(server_fd);
	be(0);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	get_lost("DREQ");
	expire(c);
	travels("DREQ");
	deliver(&letters[0]);
	arrives("DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	get_lost("DREP");
	expire(c);
	arrives("DREQ");
	travels("DREP");
	deliver(&letters[0]);
	arrives("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	none(client_fd);
	travels("");
	done();
}
END_TEST

/* A request without a listener, or for another QP type, is rejected. */
START_TEST(no_listener)
{
	struct cm_id *c;

	hosts();
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	arrives("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_INVALID_SERVICE);
	cm_id_destroy(&cm, c, client_fd);
	c = near_client(CM_QPT_UD);
	arrives("SIDR_REQ");
	arrives("SIDR_REP");
	expect(client_fd, CM_EV_UNREACHABLE, CM_SIDR_UNSUPPORTED);
	far_listener(CM_QPT_UC, 5);
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	arrives("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	done();
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

	hosts();
	c = near_client(CM_QPT_RC);
	while (c->cm == CM_REQ_SENT) {
		get_lost("REQ");
		tries++;
		expire(c);
	}
	ck_assert_uint_ge(tries, 16); /* at least as often as the kernel */
	expect(client_fd, CM_EV_UNREACHABLE, -ETIMEDOUT);
	travels("");
	cm_id_destroy(&cm, c, client_fd);
	travels("");
	/* a server that receives no RTU */
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	s = far_request();
	far_accept(s);
	be(1);
	while (s->cm == CM_REP_SENT) {
		get_lost("REP");
		expire(s);
	}
	be(0);
	far_expect(CM_EV_UNREACHABLE, -ETIMEDOUT);
	arrives("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_TIMEOUT);
	/* a peer that does not answer a DREQ */
	connected(&s, &c);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	while (c->cm == CM_DREQ_SENT) {
		get_lost("DREQ");
		expire(c);
	}
	expect(client_fd, CM_EV_DISCONNECTED, -ETIMEDOUT);
	done();
}
END_TEST

/* Return how often the REP is sent before the server gives up. */
static unsigned int reps_of(struct cm_id *s)
{
	unsigned int n = 0;

	be(1);
	while (s->cm == CM_REP_SENT) {
		get_lost("REP");
		n++;
		expire(s);
	}
	get_lost("REJ");
	expect(server_fd, CM_EV_UNREACHABLE, -ETIMEDOUT);
	cm_id_destroy(&cm, s, server_fd);
	be(0);
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
	struct letter l;
	struct cm_id *s;
	unsigned int i;

	hosts();
	far_listener(CM_QPT_RC, 5);
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		near_client(CM_QPT_RC);
		l = letters[0];
		get_lost("REQ");
		mad_set(l.mad, MAD_REQ_local_cm_response_timeout,
			cases[i].timeout);
		mad_set(l.mad, MAD_REQ_max_cm_retries, cases[i].retries);
		deliver(&l);
		s = far_request();
		far_accept(s);
		ck_assert_uint_eq(reps_of(s), cases[i].messages);
	}
	done();
}
END_TEST

/*
 * A REQ that is repeated has the REP repeated, but does not count as one of
 * its retransmissions.
 */
START_TEST(repeated_req_is_no_retransmission)
{
	struct letter l;
	struct cm_id *s;
	int i;

	hosts();
	far_listener(CM_QPT_RC, 5);
	near_client(CM_QPT_RC);
	l = letters[0];
	arrives("REQ");
	s = far_request();
	far_accept(s);
	get_lost("REP");
	for (i = 0; i < 100; i++) {
		deliver(&l);
		get_lost("REP");
	}
	ck_assert_int_eq(s->cm, CM_REP_SENT);
	ck_assert_uint_eq(s->tries, 0);
	done();
}
END_TEST

static void tell_mra(struct cm_id *from, int to, unsigned int message)
{
	be(!to);
	cm_sent_mra(&cm, from, message);
	be(0);
	arrives("MRA");
}

/*
 * An MRA extends the timeout of the message that it names, and of no other.
 */
START_TEST(mra_extends_timeout)
{
	struct cm_id *s, *c;
	uint64_t before;

	hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	s = far_request();
	before = c->deadline;
	tell_mra(s, 0, MAD_ABOUT_REP);
	tell_mra(s, 0, MAD_ABOUT_OTHER);
	ck_assert_uint_eq(c->deadline, before);
	tell_mra(s, 0, MAD_ABOUT_REQ);
	ck_assert_uint_gt(c->deadline, before + 60000000000ull);
	far_accept(s);
	arrives("REP");
	expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	before = s->deadline;
	tell_mra(c, 1, MAD_ABOUT_REQ);
	ck_assert_uint_eq(s->deadline, before);
	tell_mra(c, 1, MAD_ABOUT_REP);
	ck_assert_uint_gt(s->deadline, before + 60000000000ull);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
	arrives("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	ck_assert_uint_eq(s->deadline, 0);
	done();
}
END_TEST

static struct letter req_of(struct cm_id **c)
{
	struct letter l;

	*c = near_client(CM_QPT_RC);
	l = letters[0];
	arrives("REQ");
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

	hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	/* as if the host had been restarted */
	cm_to_idle(&cm, c);
	client_qpn--;
	again = near_client(CM_QPT_RC);
	arrives("REQ");
	be(1);
	none(server_fd);
	be(0);
	ck_assert_int_eq(s->cm, CM_DREQ_SENT);
	travels("DREQ REJ");
	ck_assert_uint_eq(mad_get(letters[1].mad, MAD_REJ_message),
			  MAD_ABOUT_REQ);
	arrives("DREQ REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_STALE);
	ck_assert_int_eq(again->cm, CM_TIMEWAIT);
	arrives("DREP");
	far_expect(CM_EV_DISCONNECTED, 0);
	ck_assert_int_eq(s->cm, CM_TIMEWAIT);
	/* the same during TIMEWAIT, though the id is destroyed */
	be(1);
	cm_id_destroy(&cm, s, server_fd);
	be(0);
	client_qpn--;
	near_client(CM_QPT_RC);
	arrives("REQ");
	arrives("REJ");
	expect(client_fd, CM_EV_REJECTED, CM_REJ_STALE);
	host[1].cm.t->ended[0].until = 1; /* TIMEWAIT ends */
	client_qpn--;
	near_client(CM_QPT_RC);
	arrives("REQ");
	ck_assert_ptr_nonnull(far_request());
	done();
}
END_TEST

/*
 * A delayed duplicate REQ of a connection that has ended meanwhile is
 * rejected.
 */
START_TEST(delayed_duplicate_req)
{
	struct cm_id *s, *c;
	struct letter l;

	hosts();
	far_listener(CM_QPT_RC, 5);
	l = req_of(&c);
	s = far_request();
	far_accept(s);
	arrives("REP");
	confirm(c);
	arrives("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	arrives("DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	arrives("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	be(1);
	cm_id_destroy(&cm, s, server_fd);
	get_lost("DREP DREP DREP");
	be(0);
	deliver(&l);
	be(1);
	none(server_fd);
	be(0);
	travels("REJ");
	done();
}
END_TEST

/*
 * A REP is rejected if its request was given up, or if it names a QP that is
 * connected already.
 */
START_TEST(stale_rep)
{
	struct cm_id *s, *c;
	struct letter l;

	hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	s = far_request();
	far_accept(s);
	l = letters[0];
	get_lost("REP");
	cm_id_destroy(&cm, c, client_fd);
	get_lost("REJ REJ REJ");
	deliver(&l);
	travels("REJ");
	ck_assert_uint_eq(mad_get(letters[0].mad, MAD_REJ_message),
			  MAD_ABOUT_REP);
	arrives("REJ");
	far_expect(CM_EV_REJECTED, CM_REJ_INVALID_COMM_ID);
	ck_assert_int_eq(s->cm, CM_IDLE);
	connected(&s, &c);
	near_client(CM_QPT_RC);
	arrives("REQ");
	s = far_request();
	server_qpn--;
	far_accept(s); /* the server's QP is in use, which is an error */
	arrives("REP");
	none(client_fd);
	travels("DREQ REJ");
	ck_assert_int_eq(c->cm, CM_DREQ_SENT);
	arrives("DREQ REJ");
	done();
}
END_TEST

START_TEST(rejection)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *s, *c;
	uint64_t guid;
	size_t len;

	hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	s = far_request();
	be(1);
	ck_assert_int_eq(cm_reject(&cm, s, CM_REJ_CONSUMER, "no", 3), 0);
	be(0);
	arrives("REJ");
	e = expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	ck_assert_mem_eq(e.param.conn.private_data, "no", 3);
	/*
	 * the client times out before the REP arrives, so it does not know
	 * the server's communication ID
	 */
	c = near_client(CM_QPT_RC);
	arrives("REQ");
	s = far_request();
	far_accept(s);
	get_lost("REP");
	cm_id_destroy(&cm, c, client_fd);
	/* identified by the CA's GUID (IB 12.6.7.2) */
	travels("REJ REJ REJ");
	ck_assert_uint_eq(mad_get(letters[0].mad, MAD_REJ_info_length), 8);
	guid = htobe64(cm.f->dev->node_guid);
	ck_assert_mem_eq(mad_bytes(letters[0].mad, MAD_REJ_info, &len), &guid,
			 8);
	arrives("REJ REJ REJ");
	far_expect(CM_EV_REJECTED, CM_REJ_TIMEOUT);
	done();
}
END_TEST

/*
 * An id that is destroyed sends its DREQ three times, since it cannot
 * retransmit it later.
 */
START_TEST(destroy_sends_dreq)
{
	struct cm_id *s, *c;

	hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	cm_id_destroy(&cm, c, client_fd);
	arrives("DREQ DREQ DREQ");
	far_expect(CM_EV_DISCONNECTED, 0);
	far_disconnect(s);
	arrives("DREP");
	travels("");
	/* a DREQ for an id that does not exist any more gets a DREP */
	connected(&s, &c);
	be(1);
	cm_id_destroy(&cm, s, server_fd);
	be(0);
	get_lost("DREQ DREQ DREQ");
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	arrives("DREQ");
	arrives("DREP");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	done();
}
END_TEST

START_TEST(both_disconnect)
{
	struct cm_id *s, *c;

	hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	far_disconnect(s);
	arrives("DREQ DREQ");
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	far_expect(CM_EV_DISCONNECTED, 0);
	arrives("DREP DREP");
	none(client_fd);
	travels("");
	done();
}
END_TEST

START_TEST(datagrams)
{
	struct rdma_ucm_event_resp e;
	size_t len;
	struct cm_id *s, *c;

	hosts();
	far_listener(CM_QPT_UD, 5);
	c = near_client(CM_QPT_UD);
	get_lost("SIDR_REQ");
	expire(c);
	travels("SIDR_REQ");
	deliver(&letters[0]);
	arrives("SIDR_REQ");
	be(1);
	e = expect(server_fd, CM_EV_CONNECT_REQUEST, 0);
	ck_assert_uint_eq(e.param.ud.private_data_len, 180);
	ck_assert_mem_eq(e.param.ud.private_data, "hi", 3);
	none(server_fd);
	s = cm_id_at(&cm, e.id + 1);
	be(0);
	ck_assert_mem_eq(&s->dst, &c->src, sizeof(s->dst));
	far_accept(s);
	get_lost("SIDR_REP");
	expire(c);
	arrives("SIDR_REQ"); /* it does not create a second id */
	be(1);
	none(server_fd);
	be(0);
	ck_assert_mem_eq(
		mad_bytes(letters[0].mad, MAD_SIDR_REP_private_data, &len),
		"well", 5);
	arrives("SIDR_REP");
	e = expect(client_fd, CM_EV_ESTABLISHED, 0);
	ck_assert_uint_eq(e.param.ud.qp_num, 0x888);
	ck_assert_uint_eq(e.param.ud.qkey, CM_UDP_QKEY);
	ck_assert_mem_eq(e.param.ud.ah_attr.grh.dgid, c->dgid, 16);
	travels("");
	c = near_client(CM_QPT_UD);
	arrives("SIDR_REQ");
	s = far_request();
	be(1);
	ck_assert_int_eq(cm_reject(&cm, s, CM_REJ_CONSUMER, NULL, 0), 0);
	be(0);
	arrives("SIDR_REP");
	expect(client_fd, CM_EV_UNREACHABLE, CM_SIDR_REJECT);
	done();
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

	hosts();
	far_listener(CM_QPT_RC, 2);
	for (i = 0; i < 3; i++)
		c[i] = near_client(CM_QPT_RC);
	arrives("REQ REQ REQ");
	travels("");
	s = far_request();
	far_request();
	be(1);
	none(server_fd);
	be(0);
	expire(c[2]);
	arrives("REQ");
	ck_assert_ptr_ne(far_request(), s);
	done();
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
	struct letter l;
	unsigned int i;

	hosts();
	far_listener(CM_QPT_RC, 5);
	connected(&s, &c);
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		l = (struct letter){ .to = 1 };
		memcpy(l.path.sgid, c->sgid, 16);
		memcpy(l.path.dgid, c->dgid, 16);
		mad_begin(l.mad, all[i], 1);
		/*
		 * the communication IDs are at the same place in all of them
		 */
		mad_set(l.mad, MAD_REJ_local_comm_id, s->remote_comm_id + 1);
		mad_set(l.mad, MAD_REJ_remote_comm_id, c->remote_comm_id);
		deliver(&l);
		mad_set(l.mad, MAD_REJ_local_comm_id, s->remote_comm_id);
		if (all[i] == MAD_DREQ) /* of another QP */
			mad_set(l.mad, MAD_DREQ_remote_qpn, 0x999);
		l.path.sgid[15] ^= all[i] != MAD_DREQ;
		deliver(&l);
	}
	be(1);
	none(server_fd);
	ck_assert_int_eq(s->cm, CM_ESTABLISHED);
	done();
}
END_TEST

/*
 * A restarted host may use the same communication ID again: a REQ with
 * another QP is a new one.
 */
START_TEST(comm_id_reused)
{
	struct cm_id *s, *c;
	struct letter l;

	hosts();
	far_listener(CM_QPT_RC, 5);
	c = near_client(CM_QPT_RC);
	l = letters[0];
	arrives("REQ");
	s = far_request();
	far_accept(s);
	arrives("REP");
	confirm(c);
	arrives("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
	deliver(&l);
	be(1);
	none(server_fd);
	be(0);
	mad_set(l.mad, MAD_REQ_local_qpn, 0x778);
	deliver(&l);
	ck_assert_ptr_ne(far_request(), s);
	/* the new REQ has another QP */
	ck_assert_int_eq(s->cm, CM_ESTABLISHED);
	travels("");
	done();
}
END_TEST

/* Random bytes from the network are handled without a crash. */
START_TEST(random_bytes)
{
	struct cm_id *s, *c;
	struct letter l;
	unsigned int i, j;

	hosts();
	far_listener(CM_QPT_RC, 5);
	far_listener(CM_QPT_UD, 5);
	connected(&s, &c);
	srand(1);
	for (i = 0; i < 20000; i++) {
		l = (struct letter){ .to = 1 };
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
		deliver(&l);
		n_letters = 0;
	}
	be(1);
	ck_assert_uint_le(cm_ids(&cm), CM_MAX_ID);
	ck_assert_uint_lt(chan(server_fd)->events, 64);
	done();
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
