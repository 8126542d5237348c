// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two hosts in one process; see two_hosts.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "two_hosts.h"

struct host host[2];
int here;
uint32_t client_qpn, server_qpn;

struct sent_mad sent[SENT_MAX];
unsigned int n_sent;

void use_host(int which)
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

union cm_addr addr_of(int which, uint16_t port)
{
	union cm_addr a = ip4(port);

	a.in.sin_addr.s_addr = htonl(0x0a010203 + (uint32_t)which);
	return a;
}

static void transmit(const struct cm_id *from, const uint8_t mad[MAD_BYTES])
{
	struct sent_mad *l = &sent[n_sent++];

	ck_assert_uint_le(n_sent, SENT_MAX);
	*l = (struct sent_mad){ .to = !here };
	memcpy(l->path.sgid, from->sgid, 16);
	memcpy(l->path.dgid, from->dgid, 16);
	memcpy(l->mad, mad, MAD_BYTES);
}

void expect_sent(const char *names)
{
	char all[256] = "";
	unsigned int i;

	for (i = 0; i < n_sent; i++) {
		strcat(all, i ? " " : "");
		strcat(all, mad_name(mad_message(sent[i].mad)));
	}
	ck_assert_str_eq(all, names);
}

void lose_sent(const char *names)
{
	expect_sent(names);
	n_sent = 0;
}

void deliver_one(const struct sent_mad *l)
{
	const int was = here;

	use_host(l->to);
	cm_wire_take(&cm, &l->path, l->mad, MAD_BYTES);
	cm_settle(&cm);
	use_host(was);
}

void deliver_sent(const char *names)
{
	static struct sent_mad now[SENT_MAX];
	const unsigned int n = n_sent;
	unsigned int i;

	expect_sent(names);
	memcpy(now, sent, sizeof(now));
	n_sent = 0;
	for (i = 0; i < n; i++)
		deliver_one(&now[i]);
}

void setup_hosts(void)
{
	setup();
	cm.transmit = transmit;
	host[0].cm = cm;
	host[0].server_fd = server_fd;
	host[0].client_fd = client_fd;
	setup();
	cm.transmit = transmit;
	here = 1;
	n_sent = 0;
	client_qpn = 0x777;
	server_qpn = 0x888;
	use_host(0);
}

void end_hosts(void)
{
	cm_unlock(&host[!here].cm);
	cm_unlock(&cm);
}

struct cm_id *far_listener(uint8_t type, uint32_t backlog)
{
	struct cm_id *id;

	use_host(1);
	id = new_id(server_fd, UID_L, type);
	id->src = addr_of(1, PORT);
	ck_assert_int_eq(cm_port_bind(&cm, id, false), 0);
	ck_assert_int_eq(cm_listen(&cm, id, backlog), 0);
	use_host(0);
	return id;
}

struct cm_id *near_client(uint8_t type)
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

struct cm_id *far_request(void)
{
	struct cm_id *s;

	use_host(1);
	s = request();
	use_host(0);
	return s;
}

void far_accept(struct cm_id *s)
{
	struct rdma_ucm_conn_param p = { .qp_num = server_qpn++,
					 .valid = 1,
					 .responder_resources = 3,
					 .initiator_depth = 2,
					 .rnr_retry_count = 4,
					 .private_data_len = 5,
					 .private_data = "well" };

	use_host(1);
	ck_assert_int_eq(cm_accept(&cm, s, &p, &no_ece, UID_S), 0);
	use_host(0);
}

void far_expect(uint32_t event, int status)
{
	use_host(1);
	expect(server_fd, event, status);
	use_host(0);
}

void confirm(struct cm_id *c)
{
	expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	ck_assert_int_eq(cm_accept(&cm, c, NULL, &no_ece, 0), 0);
}

void connected(struct cm_id **s, struct cm_id **c)
{
	*c = near_client(CM_QPT_RC);
	deliver_sent("REQ");
	*s = far_request();
	far_accept(*s);
	deliver_sent("REP");
	confirm(*c);
	deliver_sent("RTU");
	far_expect(CM_EV_ESTABLISHED, 0);
}

void far_disconnect(struct cm_id *s)
{
	use_host(1);
	ck_assert_int_eq(cm_disconnect(&cm, s), 0);
	use_host(0);
}
