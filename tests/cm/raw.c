// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "raw.h"

int raw_open(void)
{
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

int raw_command(int fd, uint32_t nr, const void *body, size_t in, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		char body[400];
	} buf = { .hdr = { nr, (uint16_t)in, (uint16_t)out } };
	ssize_t ret;

	memcpy(buf.body, body, in);
	ret = write(fd, &buf, sizeof(buf.hdr) + in);
	if (ret < 0)
		return -errno;
	ck_assert_int_eq(ret, sizeof(buf.hdr) + in);
	return 0;
}

uint32_t raw_create(int fd, int ps, uint8_t type, uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_create_id cmd = { .uid = uid,
					  .response = raw_to(&resp),
					  .ps = (uint16_t)ps,
					  .qp_type = type };

	ck_ok(raw_send(fd, CREATE_ID, &cmd, sizeof(resp)));
	return resp.id;
}

uint32_t raw_destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct rdma_ucm_destroy_id cmd = { .response = raw_to(&resp),
					   .id = id };

	ck_ok(raw_send(fd, DESTROY_ID, &cmd, sizeof(resp)));
	return resp.events_reported;
}

int raw_bind(int fd, uint32_t id, struct sockaddr_in a)
{
	struct rdma_ucm_bind_ip cmd = { .id = id };

	memcpy(&cmd.addr, &a, sizeof(a));
	return raw_send(fd, BIND_IP, &cmd, 0);
}

int raw_resolve(int fd, uint32_t id, struct sockaddr_in a)
{
	struct rdma_ucm_resolve_ip cmd = { .id = id, .timeout_ms = 1000 };

	memcpy(&cmd.dst_addr, &a, sizeof(a));
	return raw_send(fd, RESOLVE_IP, &cmd, 0);
}

int raw_route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = { .id = id, .timeout_ms = 1000 };

	return raw_send(fd, RESOLVE_ROUTE, &cmd, 0);
}

int raw_listen(int fd, uint32_t id)
{
	struct rdma_ucm_listen cmd = { .id = id, .backlog = 5 };

	return raw_send(fd, LISTEN, &cmd, 0);
}

int raw_connect(int fd, uint32_t id)
{
	struct rdma_ucm_connect cmd = { .id = id, .conn_param.valid = 1 };

	return raw_send(fd, CONNECT, &cmd, 0);
}

int raw_accept(int fd, uint32_t id)
{
	struct rdma_ucm_accept cmd = { .id = id,
				       .uid = 77,
				       .conn_param.valid = 1 };

	return raw_send(fd, ACCEPT, &cmd, 0);
}

/*
 * Confirm a connection as a client does when it gets the REP: ACCEPT without
 * parameters.
 */
int raw_confirm(int fd, uint32_t id)
{
	struct rdma_ucm_accept cmd = { .id = id };

	return raw_send(fd, ACCEPT, &cmd, 0);
}

int raw_reject(int fd, uint32_t id)
{
	struct rdma_ucm_reject cmd = { .id = id };

	return raw_send(fd, REJECT, &cmd, 0);
}

int raw_disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = { .id = id };

	return raw_send(fd, DISCONNECT, &cmd, 0);
}

int raw_notify(int fd, uint32_t id)
{
	struct rdma_ucm_notify cmd = { .id = id, .event = IBV_EVENT_COMM_EST };

	return raw_send(fd, NOTIFY, &cmd, 0);
}

static int qp_attr(int fd, uint32_t id, uint32_t state)
{
	struct ib_uverbs_qp_attr resp;
	struct rdma_ucm_init_qp_attr cmd = { .response = raw_to(&resp),
					     .id = id,
					     .qp_state = state };

	return raw_send(fd, INIT_QP_ATTR, &cmd, sizeof(resp));
}

int raw_attr_init(int fd, uint32_t id)
{
	return qp_attr(fd, id, IBV_QPS_INIT);
}

int raw_attr_rtr(int fd, uint32_t id)
{
	return qp_attr(fd, id, IBV_QPS_RTR);
}

int raw_attr_rts(int fd, uint32_t id)
{
	return qp_attr(fd, id, IBV_QPS_RTS);
}

int raw_join(int fd, uint32_t id)
{
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_ip_mcast cmd = { .response = raw_to(&resp),
					      .id = id };
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(0xef010203) };

	memcpy(&cmd.addr, &a, sizeof(a));
	return raw_send(fd, JOIN_IP_MCAST, &cmd, sizeof(resp));
}

struct rdma_ucm_event_resp raw_next(int fd, uint32_t type)
{
	struct rdma_ucm_event_resp e;
	struct rdma_ucm_get_event cmd = { .response = raw_to(&e) };

	ck_ok(raw_send(fd, GET_EVENT, &cmd, sizeof(e)));
	ck_assert_uint_eq(e.event, type);
	return e;
}

int raw_port(int fd, uint32_t id)
{
	struct rdma_ucm_query_route_resp resp;
	struct rdma_ucm_query cmd = { .response = raw_to(&resp), .id = id };

	ck_ok(raw_send(fd, QUERY_ROUTE, &cmd, sizeof(resp)));
	return ntohs(resp.src_addr.sin6_port);
}
