// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connection manager without librdmacm and the preload library: ids and
 * messages between two channels, backlog, timers, channels without a reader,
 * a lock whose holder died, and corrupted tables.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm.h"

static void connect_and_disconnect(uint8_t type)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *l, *s, *c;

	setup();
	l = listener(type, 5);
	c = client(type);
	ck_assert_int_eq(c->cm, CM_REQ_SENT);
	e = expect(server_fd, CM_EV_CONNECT_REQUEST, 0);
	ck_assert_uint_eq(l->events_reported, 1);
	ck_assert_uint_eq(e.param.conn.qp_num, 0x777);
	ck_assert_uint_eq(e.param.conn.responder_resources, 6);
	ck_assert_uint_eq(e.param.conn.initiator_depth, 5);
	ck_assert_mem_eq(e.param.conn.private_data, "hi", 3);
	s = cm_id_at(&cm, e.id + 1);
	ck_assert_int_eq(s->cm, CM_REQ_RCVD);
	ck_assert_uint_eq(s->remote_psn, c->psn);
	accept_it(s);
	ck_assert_int_eq(s->cm, CM_REP_SENT);
	e = expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	ck_assert_uint_eq(e.uid, UID_C);
	ck_assert_uint_eq(e.param.conn.qp_num, 0x888);
	none(server_fd);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
	ck_assert_uint_eq(expect(server_fd, CM_EV_ESTABLISHED, 0).uid, UID_S);
	ck_assert_int_eq(s->cm, CM_ESTABLISHED);
	ck_assert_int_eq(c->cm, CM_ESTABLISHED);
	/* a second accept fails */
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), -EINVAL);

	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	ck_assert_int_eq(c->cm, CM_DREQ_SENT);
	none(client_fd);
	expect(server_fd, CM_EV_DISCONNECTED, 0);
	ck_assert_int_eq(cm_disconnect(&cm, s), 0);
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	ck_assert_int_eq(s->cm, CM_TIMEWAIT);
	ck_assert_int_eq(c->cm, CM_TIMEWAIT);
	expire(s);
	expect(server_fd, CM_EV_TIMEWAIT_EXIT, 0);
	expire(c);
	expect(client_fd, CM_EV_TIMEWAIT_EXIT, 0);
	ck_assert_int_eq(c->cm, CM_IDLE);
	none(client_fd);
	cm_unlock(&cm);
}

START_TEST(rc_connection)
{
	connect_and_disconnect(CM_QPT_RC);
}
END_TEST

START_TEST(uc_connection)
{
	connect_and_disconnect(CM_QPT_UC);
}
END_TEST

START_TEST(datagrams)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *s, *c;

	setup();
	listener(CM_QPT_UD, 5);
	c = client(CM_QPT_UD);
	s = request();
	ck_assert_int_eq(s->cm, CM_SIDR_RCVD);
	accept_it(s);
	e = expect(client_fd, CM_EV_ESTABLISHED, 0);
	ck_assert_uint_eq(e.param.ud.qp_num, 0x888);
	ck_assert_uint_eq(e.param.ud.qkey, CM_UDP_QKEY);
	cm_id_destroy(&cm, c, client_fd);
	c = client(CM_QPT_UD);
	ck_assert_int_eq(cm_reject(&cm, request(), CM_REJ_CONSUMER, NULL, 0),
			 0);
	expect(client_fd, CM_EV_UNREACHABLE, CM_SIDR_REJECT);
	ck_assert_int_eq(c->cm, CM_IDLE);
	cm_unlock(&cm);
}
END_TEST

START_TEST(rejected)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *c, *s;

	setup();
	listener(CM_QPT_RC, 5);
	c = client(CM_QPT_RC);
	s = request();
	ck_assert_int_eq(
		cm_reject(&cm, s, CM_REJ_CONSUMER, "no", CM_REJ_PRIVATE + 1),
		-EINVAL);
	ck_assert_int_eq(cm_reject(&cm, s, CM_REJ_CONSUMER, "no", 3), 0);
	e = expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	ck_assert_mem_eq(e.param.conn.private_data, "no", 3);
	ck_assert_int_eq(c->cm, CM_IDLE);
	ck_assert_int_eq(cm_disconnect(&cm, c), 0);
	/* the server's id is destroyed before it accepts or rejects */
	client(CM_QPT_RC);
	cm_id_destroy(&cm, request(), server_fd);
	expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	none(server_fd);
	cm_unlock(&cm);
}
END_TEST

/*
 * A request without a listener is parked.  It is delivered to a listener that
 * is created in time; otherwise it is rejected.
 */
START_TEST(no_listener)
{
	struct cm_id *c;

	setup();
	c = client(CM_QPT_RC);
	ck_assert(c->flags & CM_F_PARKED);
	/*
	 * a parked request is delivered to a listener that is created later
	 */
	listener(CM_QPT_RC, 1);
	request();
	c->dst = ip4(PORT + 1);
	cm_to_idle(&cm, c);
	c = client(CM_QPT_RC);
	expect(server_fd, CM_EV_CONNECT_REQUEST, 0);
	cm_id_destroy(&cm, c, client_fd);

	c = new_id(client_fd, UID_C, CM_QPT_RC);
	c->src = ip4(0);
	c->dst = ip4(PORT + 1);
	c->cma = CMA_ROUTE_RESOLVED;
	ck_assert_int_eq(
		cm_connect(&cm, c, &(struct rdma_ucm_conn_param){ 0 }, &no_ece),
		0);
	none(client_fd);
	expire(c);
	expect(client_fd, CM_EV_REJECTED, CM_REJ_INVALID_SERVICE);
	cm_unlock(&cm);
}
END_TEST

/* Requests that exceed the backlog are parked, and delivered in order. */
START_TEST(backlog)
{
	struct cm_id *c[4], *l;
	int i;

	setup();
	l = listener(CM_QPT_RC, 2);
	for (i = 0; i < 4; i++)
		c[i] = client(CM_QPT_RC);
	ck_assert_uint_eq(l->backlog, 0);
	ck_assert(!(c[1]->flags & CM_F_PARKED));
	ck_assert(c[2]->flags & CM_F_PARKED && c[3]->flags & CM_F_PARKED);
	/*
	 * each request that is fetched makes room for the oldest parked one
	 */
	ck_assert_ptr_eq(cm_deref(&cm, request()->peer), c[0]);
	ck_assert(!(c[2]->flags & CM_F_PARKED));
	ck_assert(c[3]->flags & CM_F_PARKED);
	/* a parked request whose id was destroyed is not delivered */
	cm_id_destroy(&cm, c[3], client_fd);
	ck_assert_ptr_eq(cm_deref(&cm, request()->peer), c[1]);
	ck_assert_ptr_eq(cm_deref(&cm, request()->peer), c[2]);
	none(server_fd);
	ck_assert_uint_eq(l->backlog, 2);
	/* the other requests time out */
	for (i = 0; i < 3; i++)
		c[i] = client(CM_QPT_RC);
	expire(c[2]);
	expect(client_fd, CM_EV_UNREACHABLE, -ETIMEDOUT);
	none(client_fd);
	cm_unlock(&cm);
}
END_TEST

/*
 * If a listener is destroyed, its parked requests are delivered to another
 * listener of the same port.  Those that were delivered already are rejected.
 */
START_TEST(listener_is_replaced)
{
	struct cm_id *l, *other;
	union cm_addr any = { .in = { .sin_family = AF_INET } };

	setup();
	l = listener(CM_QPT_RC, 1);
	l->flags |= CM_F_REUSE;
	other = new_id(client_fd, UID_S, CM_QPT_RC);
	other->flags |= CM_F_REUSE;
	cm_addr_set_port(&any, PORT);
	other->src = any;
	ck_assert_int_eq(cm_port_bind(&cm, other, false), 0);
	client(CM_QPT_RC);
	client(CM_QPT_RC);
	other->flags &= ~(uint32_t)CM_F_REUSE;
	ck_assert_int_eq(cm_listen(&cm, other, 5), 0);
	none(client_fd);
	cm_id_destroy(&cm, l, server_fd);
	ck_assert_uint_eq(expect(client_fd, CM_EV_CONNECT_REQUEST, 0).uid,
			  UID_S);
	expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	none(server_fd);
	cm_unlock(&cm);
}
END_TEST

START_TEST(port_bind_rules)
{
	struct cm_id *a, *b;

	setup();
	a = listener(CM_QPT_RC, 1);
	b = new_id(client_fd, UID_C, CM_QPT_RC);
	b->src = ip4(PORT);
	ck_assert_int_eq(cm_port_bind(&cm, b, false), -EADDRINUSE);
	b->ps = RDMA_PS_UDP; /* another port space */
	ck_assert_int_eq(cm_port_bind(&cm, b, false), 0);
	b->ps = RDMA_PS_TCP;
	b->src = ip4(99);
	ck_assert_int_eq(cm_port_bind(&cm, b, false), -EACCES);
	ck_assert_int_eq(cm_port_bind(&cm, b, true), 0);
	ck_assert_int_eq(cm_port_exclusive(&cm, b), 0);
	b->src.in.sin_addr.s_addr = 0;
	cm_addr_set_port(&b->src, PORT);
	ck_assert_int_eq(cm_port_bind(&cm, b, false), -EADDRNOTAVAIL);
	a->flags |= CM_F_REUSE;
	b->flags |= CM_F_REUSE;
	ck_assert_int_eq(cm_port_bind(&cm, b, false), 0);
	ck_assert_int_eq(cm_port_exclusive(&cm, b), -EADDRNOTAVAIL);
	cm_id_destroy(&cm, a, server_fd);
	ck_assert_int_eq(cm_port_exclusive(&cm, b), 0);
	cm_unlock(&cm);
}
END_TEST

/*
 * Events of a channel are delivered in order, and an id's events can be moved
 * to another channel or dropped.
 */
START_TEST(events_in_order)
{
	struct rdma_ucm_event_resp e;
	struct cm_id *a, *b;
	struct cm_cause cause;
	uint32_t i;

	setup();
	a = new_id(client_fd, 1, CM_QPT_RC);
	b = new_id(client_fd, 2, CM_QPT_RC);
	for (i = 0; i < 300; i++) /* more events than the FIFO holds bytes */
		ck_assert_int_eq(cm_event_post(&cm, i % 3 ? a : b, i, 0), 0);
	for (i = 0; i < 10; i++)
		expect(client_fd, i, 0);
	/* the events of a move with it to another channel; b's are dropped */
	cm_event_move(&cm, a, chan(server_fd), client_fd, server_fd);
	a->chan = cm_chan_ref(&cm, chan(server_fd));
	for (i = 10; i < 100; i++)
		if (i % 3)
			ck_assert_uint_eq(expect(server_fd, i, 0).uid, 1);
	cm_id_destroy(&cm, b, client_fd);
	none(client_fd);
	cm_event_purge(&cm, a, server_fd);
	none(server_fd);
	ck_assert_uint_eq(a->events_reported, 6 + 60);
	/* entries are reused, also those of events to a dying channel */
	ck_assert_uint_eq(cm.t->event_low, 0);
	a->chan = cm_chan_ref(&cm, chan(client_fd));
	chan(client_fd)->state = CM_CHAN_DYING;
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(cm_event_post(&cm, a, i, 0), 0);
	ck_assert_uint_eq(cm_events(&cm), 320);
	/* an event of a new passive id that is not accepted yet is dropped */
	a->uid = 0;
	ck_assert_int_eq(cm_event_post(&cm, a, CM_EV_ESTABLISHED, 0), 0);
	ck_assert(!cm_event_pop(&cm, chan(server_fd), server_fd, &e, &cause));
	cm_unlock(&cm);
}
END_TEST

/* The ids of a dead channel are destroyed by cm_settle(), and not before. */
START_TEST(ids_of_dead_channel)
{
	struct cm_chan *dead;
	struct cm_id *s, *c;
	struct cm looker;

	setup();
	listener(CM_QPT_RC, 5);
	establish(&s, &c);
	dead = chan(server_fd);
	close(server_fd);
	ck_assert(!cm_chan_alive(&cm, dead));
	cm_unlock(&cm);
	looker = cm;
	cm_lock(&looker);
	cm_unlock(&looker);
	cm_lock(&cm);
	ck_assert_int_eq(dead->state, CM_CHAN_DYING);
	ck_assert(s->used);
	none(client_fd);
	cm_unlock(&cm);
	/* not even when the process that found it dead gets the lock again */
	cm_lock(&looker);
	cm_settle(&looker);
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	ck_assert_int_eq(dead->state, CM_CHAN_FREE);
	ck_assert(!s->used);
	ck_assert_int_eq(count_entries(cm.f, "cm.d", ""), 1);
	/* the slot is reused for another channel */
	server_fd = cm_chan_open(&cm);
	ck_assert_ptr_eq(chan(server_fd), dead);
	ck_assert_ptr_null(cm_port_listener(&cm, c));
	cm_unlock(&cm);
}
END_TEST

/* Channels without a reader are found and destroyed. */
START_TEST(sweep_of_dead_channels)
{
	struct cm_id *s, *c;
	int i;

	setup();
	for (i = 0; i < 200; i++)
		close(cm_chan_open(&cm));
	/* cm_chan_open() sweeps some channels each time */
	ck_assert_uint_le(cm_chans(&cm), 64);
	listener(CM_QPT_RC, 5);
	establish(&s, &c);
	close(client_fd);
	cm_chan_sweep(&cm, CM_MAX_CHAN);
	ck_assert(!c->used);
	expect(server_fd, CM_EV_DISCONNECTED, 0);
	ck_assert_int_eq(count_entries(cm.f, "cm.d", ""), 1);
	cm_unlock(&cm);
}
END_TEST

/* A request for a listener whose channel has no reader is parked. */
START_TEST(listener_is_dead)
{
	struct cm_id *c;

	setup();
	listener(CM_QPT_RC, 5);
	close(server_fd);
	c = client(CM_QPT_RC);
	ck_assert(c->flags & CM_F_PARKED);
	next_command();
	ck_assert_uint_eq(cm.t->dying, 0);
	expire(c);
	expect(client_fd, CM_EV_REJECTED, CM_REJ_INVALID_SERVICE);
	cm_unlock(&cm);
}
END_TEST

/* Run @fn with the lock held in a child that is then killed. */
static void die_with_lock(void (*fn)(void))
{
	pid_t pid;

	cm_unlock(&cm);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		cm_lock(&cm);
		fn();
		kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(reap_child(pid), -SIGKILL);
	cm_lock(&cm);
}

static void lose_queues(void)
{
	uint32_t i;

	for (i = 0; i < cm_chans(&cm); i++)
		cm.t->chan[i].head = cm.t->chan[i].tail = 7;
	for (i = 0; i < cm_events(&cm); i++)
		cm.t->event[i].next = 99;
	for (i = 0; i < cm_ids(&cm); i++)
		cm.t->id[i].backlog = 0;
	cm.t->id_low = cm.t->chan_low = 1000;
}

/* cm_recover() rebuilds the queues of events and the backlogs. */
START_TEST(killed_between_events)
{
	struct cm_id *l;

	setup();
	l = listener(CM_QPT_RC, 3);
	client(CM_QPT_RC);
	client(CM_QPT_RC);
	cm_event_post(&cm, l, CM_EV_ADDR_CHANGE, 0);
	die_with_lock(lose_queues);
	ck_assert_uint_eq(cm.t->id_low, 0);
	ck_assert_uint_eq(l->backlog, 1);
	request();
	request();
	expect(server_fd, CM_EV_ADDR_CHANGE, 0);
	none(server_fd);
	ck_assert_uint_eq(l->backlog, 3);
	cm_unlock(&cm);
}
END_TEST

static struct cm_id *victim;

static void lose_peer(void)
{
	victim->peer.id = 0;
}

/* cm_recover() ends connections of which only one id has changed. */
START_TEST(killed_between_messages)
{
	struct cm_id *s, *c;

	setup();
	listener(CM_QPT_RC, 3);
	establish(&s, &c);
	victim = c;
	die_with_lock(lose_peer);
	/* each id is disconnected, as if its peer were gone */
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	none(server_fd);
	victim = s;
	die_with_lock(lose_peer);
	expect(server_fd, CM_EV_DISCONNECTED, 0);

	victim = client(CM_QPT_RC);
	request();
	die_with_lock(lose_peer);
	expect(client_fd, CM_EV_REJECTED, CM_REJ_CONSUMER);
	cm_unlock(&cm);
}
END_TEST

static void find_dead(void)
{
	ck_assert(!cm_chan_alive(&cm, &cm.t->chan[0]));
	cm.t->dying = 0; /* as if the process had begun to reap */
}

/*
 * A dead channel is destroyed although the process that found it was killed.
 */
START_TEST(killed_before_reaping)
{
	struct cm_id *s, *c;

	setup();
	ck_assert_ptr_eq(chan(server_fd), &cm.t->chan[0]);
	listener(CM_QPT_RC, 3);
	establish(&s, &c);
	close(server_fd);
	die_with_lock(find_dead);
	next_command();
	expect(client_fd, CM_EV_DISCONNECTED, 0);
	ck_assert_int_eq(count_entries(cm.f, "cm.d", ""), 1);
	cm_unlock(&cm);
}
END_TEST

/* Indices and references are bounded, whatever the tables contain. */
START_TEST(garbage_indices)
{
	static const uint32_t refs[] = { 0,
					 65,
					 CM_MAX_MC + 1,
					 CM_MAX_ID + 1,
					 CM_MAX_EVENT + 1,
					 INT32_MAX,
					 UINT32_MAX };
	struct cm_ref stale;
	struct cm_id *s, *c;
	unsigned int i;

	setup();
	listener(CM_QPT_RC, 3);
	establish(&s, &c);
	cm.t->id_high = cm.t->chan_high = UINT32_MAX;
	cm.t->event_high = cm.t->mc_high = UINT32_MAX;
	ck_assert_uint_eq(cm_ids(&cm), CM_MAX_ID);
	ck_assert_uint_eq(cm_chans(&cm), CM_MAX_CHAN);
	ck_assert_uint_eq(cm_events(&cm), CM_MAX_EVENT);
	ck_assert_uint_eq(cm_mcs(&cm), CM_MAX_MC);
	for (i = 0; i < sizeof(refs) / sizeof(*refs); i++) {
		ck_assert_ptr_null(cm_id_at(&cm, refs[i]));
		ck_assert_ptr_null(cm_chan_at(&cm, refs[i]));
		ck_assert_ptr_null(cm_event_at(&cm, refs[i]));
		ck_assert_ptr_null(cm_mc_at(&cm, refs[i]));
	}
	cm.t->id_high = cm.t->chan_high = cm.t->event_high = 64;
	cm.t->mc_high = 0;
	stale = cm_ref_to(&cm, s);
	ck_assert_ptr_eq(cm_deref(&cm, stale), s);
	stale.gen++;
	ck_assert_ptr_null(cm_deref(&cm, stale));
	cm_unlock(&cm);
}
END_TEST

/* Corrupted queues and references do not lead to a hang or a crash. */
START_TEST(garbage_queues)
{
	struct cm_event *e;
	struct cm_id *l, *a;

	setup();
	l = listener(CM_QPT_RC, 3);
	a = new_id(server_fd, UID_C, CM_QPT_RC);
	cm_event_post(&cm, l, 1, 0);
	cm_event_post(&cm, l, 2, 0);
	/* a cyclic list without an event of this id */
	e = cm_event_at(&cm, chan(server_fd)->tail);
	e->next = chan(server_fd)->head;
	cm_event_purge(&cm, a, server_fd);
	/* indices out of range */
	e->next = CM_MAX_EVENT + 5;
	e->req = (struct cm_ref){ 77777, 1 };
	e->mc = 88888;
	e->id = 99999;
	expect(server_fd, 1, 0);
	expect(server_fd, 2, 0);
	none(server_fd);
	/* references to channels and peers that do not exist */
	a->chan = 4711;
	a->peer = (struct cm_ref){ UINT32_MAX, 3 };
	a->cma = CMA_CONNECT;
	a->cm = CM_ESTABLISHED;
	ck_assert_int_eq(cm_event_post(&cm, a, 1, 0), 0);
	cm_id_destroy(&cm, a, -1);
	cm_recover(&cm);
	next_command();
	none(server_fd);
	cm_unlock(&cm);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cm");

	add(s, rc_connection);
	add(s, uc_connection);
	add(s, datagrams);
	add(s, rejected);
	add(s, no_listener);
	add(s, backlog);
	add(s, listener_is_replaced);
	add(s, port_bind_rules);
	add(s, events_in_order);
	add(s, ids_of_dead_channel);
	add(s, sweep_of_dead_channels);
	add(s, listener_is_dead);
	add(s, killed_between_events);
	add(s, killed_between_messages);
	add(s, killed_before_reaping);
	add(s, garbage_indices);
	add(s, garbage_queues);
	return run_suite(s);
}
