// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which MADs the connection manager would send to another host: their types,
 * their sender, and their content (cm->sent in cm.h).
 */
#include <string.h>
#include <unistd.h>

#include "cm.h"

static struct sent {
	uint32_t id; /* ref of the sender's id; 0: no id */
	uint8_t mad[MAD_BYTES];
} sent[16];
static unsigned int sents;

static void note_sent(const struct cm *of, const struct cm_id *from,
		      const uint8_t mad[MAD_BYTES])
{
	struct sent *s = &sent[sents++];
	const uint64_t at = (uint64_t)((char *)from - (char *)cm.t->id);

	ck_assert_ptr_eq(of, &cm);
	ck_assert_uint_lt(sents, 16);
	s->id = at < sizeof(cm.t->id) ? cm_id_ref(&cm, from) : 0;
	memcpy(s->mad, mad, MAD_BYTES);
}

/*
 * Check the types of the messages sent since the last call, and clear them.
 */
static void travels(const char *names)
{
	char all[256] = "";
	unsigned int i;

	for (i = 0; i < sents; i++) {
		strcat(all, i ? " " : "");
		strcat(all, mad_name(mad_message(sent[i].mad)));
	}
	ck_assert_str_eq(all, names);
	sents = 0;
}

static uint64_t field(unsigned int nth, enum mad_field f)
{
	ck_assert_int_eq(mad_message(sent[nth].mad), mad_fields[f].message);
	return mad_get(sent[nth].mad, f);
}

static uint64_t tid(unsigned int nth)
{
	return mad_get(sent[nth].mad, MAD_HEADER_tid);
}

static void watched(void)
{
	setup();
	cm.sent = note_sent;
	sents = 0;
}

START_TEST(messages_of_connection)
{
	uint32_t c_id, s_id;
	struct cm_id *s, *c;

	watched();
	listener(CM_QPT_RC, 5);
	establish(&s, &c);
	ck_assert_int_eq(cm_disconnect(&cm, s), 0);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	c_id = cm_comm_id(&cm, c);
	s_id = cm_comm_id(&cm, s);
	ck_assert_uint_ne(c_id, s_id);
	ck_assert_uint_eq(sent[0].id, cm_id_ref(&cm, c));
	ck_assert_uint_eq(sent[1].id, cm_id_ref(&cm, s));
	ck_assert_uint_eq(field(0, MAD_REQ_local_comm_id), c_id);
	ck_assert_uint_eq(field(0, MAD_REQ_service_id), 0x1060000 + PORT);
	ck_assert_uint_eq(field(0, MAD_REQ_local_qpn), 0x777);
	ck_assert_uint_eq(field(0, MAD_REQ_responder_resources), 5);
	ck_assert_uint_eq(field(0, MAD_REQ_initiator_depth), 6);
	/* each side sends with the starting PSN that its peer requested */
	ck_assert_uint_eq(field(0, MAD_REQ_starting_psn), s->remote_psn);
	ck_assert_uint_eq(field(1, MAD_REP_starting_psn), c->remote_psn);
	ck_assert_mem_eq(sent[0].mad + 24 + 140 + 36, "hi", 3);
	ck_assert_uint_eq(sent[0].mad[24 + 140 + 1], 0x40);
	ck_assert_mem_eq(sent[0].mad + 24 + 140 + 2, &c->src.in.sin_port, 2);
	ck_assert_mem_eq(sent[0].mad + 24 + 140 + 32, &c->dst.in.sin_addr, 4);
	ck_assert_uint_eq(field(1, MAD_REP_local_comm_id), s_id);
	ck_assert_uint_eq(field(1, MAD_REP_remote_comm_id), c_id);
	ck_assert_uint_eq(field(1, MAD_REP_local_qpn), 0x888);
	ck_assert_uint_eq(field(2, MAD_RTU_local_comm_id), c_id);
	ck_assert_uint_eq(field(2, MAD_RTU_remote_comm_id), s_id);
	ck_assert_uint_eq(field(3, MAD_DREQ_remote_qpn), 0x777);
	ck_assert_uint_eq(field(3, MAD_DREQ_remote_comm_id), c_id);
	ck_assert_uint_eq(field(4, MAD_DREP_local_comm_id), c_id);
	ck_assert(tid(0) == tid(1) && tid(1) == tid(2) && tid(2) != tid(3) &&
		  tid(3) == tid(4));
	travels("REQ REP RTU DREQ DREP");
	cm_id_destroy(&cm, c, client_fd);
	cm_id_destroy(&cm, s, server_fd);
	travels("");
	cm_unlock(&cm);
}
END_TEST

/*
 * An id that is destroyed sends DREQ, DREP or REJ, depending on its state.
 * The peer's id may be destroyed, too.
 */
START_TEST(messages_of_destroy)
{
	struct cm_id *s, *c;

	watched();
	listener(CM_QPT_RC, 5);
	establish(&s, &c);
	travels("REQ REP RTU");
	cm_id_destroy(&cm, c, client_fd);
	travels("DREQ");
	cm_id_destroy(&cm, s, server_fd);
	ck_assert_uint_ne(field(0, MAD_DREP_remote_comm_id), 0);
	travels("DREP");
	client(CM_QPT_RC);
	cm_id_destroy(&cm, request(), server_fd);
	travels("REQ REJ");
	c = client(CM_QPT_RC);
	cm_id_destroy(&cm, c, client_fd);
	ck_assert_uint_eq(field(1, MAD_REJ_reason), CM_REJ_TIMEOUT);
	travels("REQ REJ");
	cm_unlock(&cm);
}
END_TEST

START_TEST(messages_of_reject)
{
	struct cm_id *s, *c;
	uint32_t next = 0;

	watched();
	client(CM_QPT_RC);
	travels("REQ");
	c = listener(CM_QPT_RC, 5);
	s = request();
	ck_assert_int_eq(cm_reject(&cm, s, CM_REJ_CONSUMER, "no", 3), 0);
	ck_assert_uint_eq(field(0, MAD_REJ_reason), CM_REJ_CONSUMER);
	ck_assert_uint_eq(field(0, MAD_REJ_message), 0);
	ck_assert_uint_eq(field(0, MAD_REJ_local_comm_id), 0);
	ck_assert_uint_eq(field(0, MAD_REJ_remote_comm_id), s->remote_comm_id);
	ck_assert_mem_eq(sent[0].mad + 24 + 84, "no", 3);
	travels("REJ");
	/*
	 * only a REJ: the parked REQ was delivered when the listener was
	 * created, and is not sent a second time
	 */
	cm_id_destroy(&cm, c, server_fd);
	c = client(CM_QPT_RC);
	c->deadline = 1;
	cm_tick(&cm, getpid(), &next);
	ck_assert_uint_eq(field(1, MAD_REJ_reason), CM_REJ_INVALID_SERVICE);
	ck_assert_uint_eq(field(1, MAD_REJ_remote_comm_id), cm_comm_id(&cm, c));
	ck_assert_uint_eq(sent[1].id, 0);
	ck_assert_uint_eq(tid(1), tid(0));
	travels("REQ REJ");
	/* the client rejects a REP */
	listener(CM_QPT_RC, 5);
	c = client(CM_QPT_RC);
	accept_it(request());
	ck_assert_int_eq(cm_reject(&cm, c, CM_REJ_CONSUMER, NULL, 0), 0);
	ck_assert_uint_eq(field(2, MAD_REJ_message), 1);
	ck_assert_uint_eq(tid(2), tid(0));
	travels("REQ REP REJ");
	cm_unlock(&cm);
}
END_TEST

START_TEST(messages_of_sidr)
{
	struct cm_id *c;

	watched();
	listener(CM_QPT_UD, 5);
	c = client(CM_QPT_UD);
	accept_it(request());
	ck_assert_uint_eq(field(0, MAD_SIDR_REQ_request_id),
			  cm_comm_id(&cm, c));
	ck_assert_uint_eq(field(0, MAD_SIDR_REQ_service_id), 0x1110000 + PORT);
	ck_assert_mem_eq(sent[0].mad + 24 + 16 + 36, "hi", 3);
	ck_assert_uint_eq(field(1, MAD_SIDR_REP_request_id),
			  cm_comm_id(&cm, c));
	ck_assert_uint_eq(field(1, MAD_SIDR_REP_qpn), 0x888);
	ck_assert_uint_eq(field(1, MAD_SIDR_REP_qkey), CM_UDP_QKEY);
	ck_assert_uint_eq(field(1, MAD_SIDR_REP_service_id), 0x1110000 + PORT);
	ck_assert_uint_eq(tid(1), tid(0));
	travels("SIDR_REQ SIDR_REP");
	client(CM_QPT_UD);
	ck_assert_int_eq(cm_reject(&cm, request(), CM_REJ_CONSUMER, NULL, 0),
			 0);
	ck_assert_uint_eq(field(1, MAD_SIDR_REP_status), CM_SIDR_REJECT);
	ck_assert_uint_eq(field(1, MAD_SIDR_REP_qpn), 0);
	travels("SIDR_REQ SIDR_REP");
	client(CM_QPT_UD);
	cm_id_destroy(&cm, request(), server_fd);
	travels("SIDR_REQ SIDR_REP");
	cm_unlock(&cm);
}
END_TEST

/*
 * The process that finds a peer dead sends the DREQ for it, as the dead
 * process's kernel would.
 */
START_TEST(messages_for_dead_peer)
{
	uint32_t dead;
	struct cm_id *s, *c;

	watched();
	listener(CM_QPT_RC, 5);
	establish(&s, &c);
	travels("REQ REP RTU");
	dead = cm_id_ref(&cm, c);
	close(client_fd);
	cm_chan_sweep(&cm, CM_MAX_CHAN);
	ck_assert_uint_eq(sent[0].id, dead);
	ck_assert_uint_eq(field(0, MAD_DREQ_remote_qpn), 0x888);
	travels("DREQ");
	ck_assert_int_eq(cm_disconnect(&cm, s), 0);
	travels("DREP");
	cm_unlock(&cm);
}
END_TEST

/*
 * A DREQ for a connection that the peer has forgotten is answered with a
 * DREP.  An XRC target's QP may be in use by others, so its id sends no DREQ
 * when it is destroyed.
 */
START_TEST(messages_of_unknown_connection)
{
	struct cm_id *s, *c;

	watched();
	listener(CM_QPT_XRC_RECV, 5);
	c = client(CM_QPT_XRC_SEND);
	s = request();
	accept_it(s);
	ck_assert_uint_eq(field(0, MAD_REQ_transport_service), 3);
	ck_assert_uint_eq(field(0, MAD_REQ_extended_transport), 1);
	ck_assert_uint_eq(field(0, MAD_REQ_responder_resources), 0);
	ck_assert_uint_eq(field(1, MAD_REP_local_eecn), 0x888);
	ck_assert_uint_eq(field(1, MAD_REP_local_qpn), 0);
	ck_assert_uint_eq(field(1, MAD_REP_srq), 1);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
	travels("REQ REP RTU");
	cm_id_destroy(&cm, s, server_fd);
	travels("");
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	ck_assert_uint_eq(sent[1].id, 0);
	ck_assert_uint_eq(field(1, MAD_DREP_remote_comm_id),
			  cm_comm_id(&cm, c));
	travels("DREQ DREP");
	cm_unlock(&cm);
}
END_TEST

/*
 * A --fault rule rejects a REQ or makes it time out: the REQ is sent, and
 * either a REJ is returned or no response arrives.
 */
START_TEST(messages_of_faults)
{
	const struct rdma_ucm_conn_param p = { .qp_num = 0x777 };
	struct cm_id *c;
	int i;

	watched();
	for (i = 0; i < 2; i++) {
		c = new_id(client_fd, UID_C, CM_QPT_RC);
		c->src = ip4(0);
		c->dst = ip4(PORT);
		c->cma = CMA_ROUTE_RESOLVED;
		ck_assert_int_eq(cm_connect_fail(&cm, c, &p, &no_ece), 0);
		travels("REQ");
		if (!i)
			cm_fail_rejected(&cm, c, 17);
		else
			cm_fail_unreachable(&cm, c, -ETIMEDOUT);
		ck_assert(i || field(0, MAD_REJ_reason) == 17);
		travels(i ? "" : "REJ");
	}
	cm_unlock(&cm);
}
END_TEST

/* A request that is parked while the port is down has not been sent. */
START_TEST(no_message_while_port_down)
{
	uint32_t next = 0;
	struct cm_id *c;

	watched();
	listener(CM_QPT_RC, 5);
	fabric_set_port(cm.f, 0, false);
	c = client(CM_QPT_RC);
	cm_id_destroy(&cm, c, client_fd);
	travels("");
	client(CM_QPT_RC);
	fabric_set_port(cm.f, 0, true);
	cm_tick(&cm, getpid(), &next);
	travels("REQ");
	cm_unlock(&cm);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm_sent");

	add(s, messages_of_connection);
	add(s, messages_of_destroy);
	add(s, messages_of_reject);
	add(s, messages_of_sidr);
	add(s, messages_for_dead_peer);
	add(s, messages_of_unknown_connection);
	add(s, messages_of_faults);
	add(s, no_message_while_port_down);
	return run_suite(s);
}
