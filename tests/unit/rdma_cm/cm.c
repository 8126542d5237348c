// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cm.h"

const struct rdma_ucm_ece no_ece;
struct cm cm;
int server_fd, client_fd;

struct cm_chan *chan(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return cm_chan_find(&cm, st.st_ino, 0);
}

void setup(void)
{
	memset(&cm, 0, sizeof(cm));
	cm.f = new_fabric();
	ck_assert_int_eq(cm_map(cm.f, &cm.t), 0);
	cm_lock(&cm);
	server_fd = cm_chan_open(&cm);
	client_fd = cm_chan_open(&cm);
	ck_assert_int_ge(server_fd, 0);
	ck_assert_int_ge(client_fd, 0);
}

void next_command(void)
{
	cm_settle(&cm);
	cm_unlock(&cm);
	cm_lock(&cm);
}

union cm_addr ip4(uint16_t port)
{
	union cm_addr a = { .in = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(0x0a010203) } };

	cm_addr_set_port(&a, port);
	return a;
}

struct cm_id *new_id(int fd, uint64_t uid, uint8_t type)
{
	struct cm_id *id = cm_id_new(&cm, chan(fd));

	ck_assert_ptr_nonnull(id);
	id->uid = uid;
	id->qp_type = type;
	id->ps = type == CM_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	id->flags = CM_F_DEVICE;
	return id;
}

struct cm_id *listener(uint8_t type, uint32_t backlog)
{
	struct cm_id *id = new_id(server_fd, UID_L, type);

	id->src = ip4(PORT);
	ck_assert_int_eq(cm_port_bind(&cm, id, false), 0);
	ck_assert_int_eq(cm_listen(&cm, id, backlog), 0);
	return id;
}

struct cm_id *client(uint8_t type)
{
	struct rdma_ucm_conn_param p = { .qp_num = 0x777,
					 .valid = 1,
					 .private_data_len = 3,
					 .private_data = "hi",
					 .responder_resources = 5,
					 .initiator_depth = 6 };
	struct cm_id *id = new_id(client_fd, UID_C, type);

	id->src = ip4(0);
	id->dst = ip4(PORT);
	ck_assert_int_eq(cm_port_bind(&cm, id, false), 0);
	id->cma = CMA_ROUTE_RESOLVED;
	ck_assert_int_eq(cm_connect(&cm, id, &p, &no_ece), 0);
	return id;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

void none(int fd)
{
	struct rdma_ucm_event_resp e;
	struct cm_cause cause;

	ck_assert(!readable(fd));
	ck_assert(!cm_event_pop(&cm, chan(fd), fd, &e, &cause));
}

struct rdma_ucm_event_resp expect(int fd, uint32_t event, int status)
{
	struct rdma_ucm_event_resp e;
	struct cm_cause cause;

	ck_assert_msg(readable(fd), "nothing, not event %u", event);
	ck_assert(cm_event_pop(&cm, chan(fd), fd, &e, &cause));
	ck_assert_uint_eq(cause.thread, 0);
	ck_assert_uint_eq(e.event, event);
	ck_assert_int_eq((int)e.status, status);
	return e;
}

struct cm_id *request(void)
{
	struct rdma_ucm_event_resp e =
		expect(server_fd, CM_EV_CONNECT_REQUEST, 0);
	struct cm_id *id = cm_id_at(&cm, e.id + 1);

	ck_assert_uint_eq(e.uid, UID_L);
	ck_assert_ptr_nonnull(id);
	ck_assert_uint_eq(id->uid, 0);
	return id;
}

void accept_it(struct cm_id *id)
{
	struct rdma_ucm_conn_param p = { .qp_num = 0x888, .valid = 1 };

	ck_assert_int_eq(cm_accept(&cm, id, &p, &no_ece, UID_S), 0);
}

void establish(struct cm_id **s, struct cm_id **c)
{
	*c = client(CM_QPT_RC);
	*s = request();
	accept_it(*s);
	expect(client_fd, CM_EV_CONNECT_RESPONSE, 0);
	ck_assert_int_eq(cm_accept(&cm, *c, NULL, &no_ece, 0), 0);
	expect(server_fd, CM_EV_ESTABLISHED, 0);
}

void expire(struct cm_id *id)
{
	uint32_t next = 0;

	ck_assert_uint_ne(id->deadline, 0);
	id->deadline = 1;
	cm_tick(&cm, getpid(), &next);
}
