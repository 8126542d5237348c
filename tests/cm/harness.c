// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "address.h"
#include "harness.h"

struct sockaddr_in ip4(int port)
{
	struct sockaddr_in a = own_ip4();

	a.sin_port = htons((uint16_t)port);
	return a;
}

bool ip6(struct sockaddr_in6 *a, int port)
{
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	bool ok;

	memset(a, 0, sizeof(*a));
	a->sin6_family = AF_INET6;
	if (!find_address(AF_INET6, a, sizeof(*a)))
		a->sin6_addr = in6addr_loopback;
	a->sin6_port = 0;
	ok = fd >= 0 && !bind(fd, SA(a), sizeof(*a));
	close(fd);
	a->sin6_port = htons((uint16_t)port);
	return ok;
}

struct rdma_event_channel *new_channel(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	ck_assert_msg(ch != NULL, "no channel: errno %d", errno);
	return ch;
}

struct rdma_cm_id *new_id(struct rdma_event_channel *ch,
			  enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	ck_ok(rdma_create_id(ch, &id, NULL, ps));
	return id;
}

static bool wait_for(struct rdma_event_channel *ch, int ms)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

struct rdma_cm_event *expect(struct rdma_event_channel *ch,
			     enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e;

	ck_assert_msg(wait_for(ch, PATIENCE_MS), "no %s", rdma_event_str(type));
	ck_ok(rdma_get_cm_event(ch, &e));
	ck_assert_msg(e->event == type, "%s instead of %s",
		      rdma_event_str(e->event), rdma_event_str(type));
	ck_assert_int_eq(e->status, status);
	return e;
}

void pass(struct rdma_event_channel *ch, enum rdma_cm_event_type type,
	  int status)
{
	ck_ok(rdma_ack_cm_event(expect(ch, type, status)));
}

void expect_nothing(struct rdma_event_channel *ch, int ms)
{
	struct rdma_cm_event *e;

	if (!wait_for(ch, ms))
		return;
	ck_ok(rdma_get_cm_event(ch, &e));
	ck_abort_msg("%s, status %d, instead of nothing",
		     rdma_event_str(e->event), e->status);
}

struct rdma_cm_id *listen_on(struct sockaddr *a, enum rdma_port_space ps,
			     int backlog)
{
	struct rdma_cm_id *id = new_id(new_channel(), ps);

	ck_ok(rdma_bind_addr(id, a));
	ck_ok(rdma_listen(id, backlog));
	return id;
}

int port_of(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

struct rdma_cm_id *client_to(struct sockaddr *a, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = new_id(new_channel(), ps);

	ck_ok(rdma_resolve_addr(id, NULL, a, 1000));
	pass(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	ck_ok(rdma_resolve_route(id, 1000));
	pass(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static struct rdma_cm_id *ib_id(struct sockaddr *a, enum ibv_qp_type type,
				int flags)
{
	const socklen_t len =
		a->sa_family == AF_INET	 ? sizeof(struct sockaddr_in) :
		a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
					   sizeof(struct sockaddr_ib);
	struct rdma_addrinfo info = { .ai_flags = flags,
				      .ai_family = a->sa_family,
				      .ai_qp_type = type,
				      .ai_port_space = RDMA_PS_IB };
	struct rdma_cm_id *id;

	if (flags & RAI_PASSIVE) {
		info.ai_src_addr = a;
		info.ai_src_len = len;
	} else {
		info.ai_dst_addr = a;
		info.ai_dst_len = len;
	}
	ck_ok(rdma_create_ep(&id, &info, NULL, NULL));
	ck_ok(rdma_migrate_id(id, new_channel()));
	return id;
}

struct rdma_cm_id *ib_listen_on(struct sockaddr *a, enum ibv_qp_type type)
{
	struct rdma_cm_id *id = ib_id(a, type, RAI_PASSIVE);

	ck_ok(rdma_listen(id, 0));
	return id;
}

struct rdma_cm_id *ib_client_to(struct sockaddr *a, enum ibv_qp_type type)
{
	return ib_id(a, type, 0);
}

void give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	ck_ok(rdma_create_qp(id, NULL, &attr));
}

struct rdma_conn_param param(const void *data, int len)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.responder_resources = 3,
		.initiator_depth = 2,
		.retry_count = 5,
		.rnr_retry_count = 6,
	};
}

void start_connect(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = param(NULL, 0);

	ck_ok(rdma_connect(id, &p));
}

struct rdma_cm_id *next_request(struct rdma_cm_id *listener)
{
	struct rdma_cm_event *e =
		expect(listener->channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *id = e->id;

	ck_assert_ptr_eq(e->listen_id, listener);
	ck_ok(rdma_ack_cm_event(e));
	return id;
}

void accept_it(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = param(NULL, 0);

	ck_ok(rdma_accept(id, &p));
}

void post_inbox(struct rdma_cm_id *id, struct inbox *in)
{
	struct ibv_sge sge = { .addr = (uintptr_t)in->data,
			       .length = sizeof(in->data) };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	in->mr = rdma_reg_msgs(id, in->data, sizeof(in->data));
	ck_assert_ptr_nonnull(in->mr);
	sge.lkey = in->mr->lkey;
	ck_ok(ibv_post_recv(id->qp, &wr, &bad));
}

bool inbox_filled(struct rdma_cm_id *id, int ms)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(id->recv_cq, 1, &wc);
		ck_assert_int_ge(n, 0);
		if (n)
			ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		else
			usleep(1000);
	} while (!n && ms-- > 0);
	return n;
}

struct ibv_ah *group_join(struct rdma_cm_id *id, struct sockaddr *group,
			  int flags, struct rdma_ud_param *out)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = (uint32_t)flags,
		.addr = group,
	};
	struct rdma_cm_event *e;
	struct ibv_ah *ah;

	ck_ok(rdma_join_multicast_ex(id, &attr, NULL));
	e = expect(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ah = ibv_create_ah(id->pd, &e->param.ud.ah_attr);
	ck_assert_ptr_nonnull(ah);
	if (out)
		*out = e->param.ud;
	ck_ok(rdma_ack_cm_event(e));
	return ah;
}

void group_send(struct rdma_cm_id *id, struct ibv_ah *ah, char *text)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, text, strlen(text) + 1);
	struct ibv_sge sge = { .addr = (uintptr_t)text,
			       .length = (uint32_t)strlen(text) + 1 };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;
	int n;

	ck_assert_ptr_nonnull(mr);
	sge.lkey = mr->lkey;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = UDP_QKEY;
	ck_ok(ibv_post_send(id->qp, &wr, &bad));
	do
		n = ibv_poll_cq(id->send_cq, 1, &wc);
	while (!n);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	rdma_dereg_mr(mr);
}

struct both connect_both(void)
{
	struct sockaddr_in a = ip4(0);
	struct both b;

	b.listener = listen_on(SA(&a), RDMA_PS_TCP, 0);
	a = ip4(port_of(b.listener));
	b.client = client_to(SA(&a), RDMA_PS_TCP);
	give_qp(b.client);
	start_connect(b.client);
	b.server = next_request(b.listener);
	ck_ok(rdma_migrate_id(b.server, new_channel()));
	give_qp(b.server);
	accept_it(b.server);
	pass(b.client->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pass(b.server->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	return b;
}

void end_id(struct rdma_cm_id *id, bool channel)
{
	struct rdma_event_channel *ch = id->channel;

	if (id->qp)
		rdma_destroy_qp(id);
	ck_ok(rdma_destroy_id(id));
	if (channel)
		rdma_destroy_event_channel(ch);
}

struct other spawn(void (*fn)(int fd, void *arg), void *arg)
{
	struct other o;
	int pair[2];

	ck_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	o.pid = fork();
	ck_assert_int_ge(o.pid, 0);
	if (!o.pid) {
		close(pair[0]);
		fn(pair[1], arg);
		_exit(0);
	}
	close(pair[1]);
	o.fd = pair[0];
	return o;
}

void send_int(int fd, int number)
{
	ck_assert_int_eq(write(fd, &number, sizeof(number)), sizeof(number));
}

int receive_int(int fd)
{
	int number;

	ck_assert_int_eq(read(fd, &number, sizeof(number)), sizeof(number));
	return number;
}

void finish(struct other o)
{
	int status;

	ck_assert_int_eq(waitpid(o.pid, &status, 0), o.pid);
	ck_assert_msg(!status, "the other process ended with 0x%x", status);
	close(o.fd);
}

void kill_it(struct other o)
{
	ck_ok(kill(o.pid, SIGKILL));
	ck_assert_int_eq(waitpid(o.pid, NULL, 0), o.pid);
	close(o.fd);
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void __lsan_disable(void) __attribute__((weak));

void may_leak(void)
{
	if (__lsan_disable)
		__lsan_disable();
}

int run_suite(Suite *s)
{
	return run_cases(srunner_create(s));
}
