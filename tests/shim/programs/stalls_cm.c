// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A client that connects, which is a child, and a server that does not
 * answer, for why.py.  One line of JSON on stdout when the request was sent.
 * Lines on stdin:
 *
 *	event	the server fetches the request
 *	keep	the same, without acknowledging the event
 *	accept	the server accepts it
 *	sleep	start a thread that blocks in rdma_get_cm_event()
 *	destroy, migrate, leave
 *		start a thread that blocks in that call
 */
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "test.h"

static struct sockaddr_in address(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static struct rdma_cm_event *fetch(struct rdma_event_channel *c,
				   enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	CHECK(!rdma_get_cm_event(c, &e));
	CHECK(e->event == type);
	return e;
}

static void make_qp(struct rdma_cm_id *id, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr a = { .cap = { 4, 4, 1, 1, 0 },
				      .qp_type = type };

	CHECK(!rdma_create_qp(id, NULL, &a));
}

static void client(int sock)
{
	struct rdma_event_channel *c = rdma_create_event_channel();
	struct rdma_conn_param p = { .retry_count = 7 };
	struct sockaddr_in a = address();
	struct rdma_cm_id *id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "stall-client");
	CHECK(read(sock, &a.sin_port, sizeof(a.sin_port)) ==
	      sizeof(a.sin_port));
	CHECK(c && !rdma_create_id(c, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 5000));
	rdma_ack_cm_event(fetch(c, RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK(!rdma_resolve_route(id, 5000));
	rdma_ack_cm_event(fetch(c, RDMA_CM_EVENT_ROUTE_RESOLVED));
	make_qp(id, IBV_QPT_RC);
	CHECK(!rdma_connect(id, &p));
	CHECK(write(sock, "", 1) == 1);
	pause();
}

static struct rdma_event_channel *c; /* of the server */
static struct rdma_cm_id *listener; /* of the server */

static void *get_event(void *arg)
{
	struct rdma_cm_event *e;

	rdma_get_cm_event(c, &e);
	return arg;
}

static void *destroy(void *arg)
{
	rdma_destroy_id(listener);
	return arg;
}

static void *migrate(void *arg)
{
	rdma_migrate_id(listener, rdma_create_event_channel());
	return arg;
}

/*
 * The MULTICAST_JOIN event is not acknowledged, so rdma_leave_multicast()
 * waits.
 */
static void *leave(void *arg)
{
	struct rdma_event_channel *own = rdma_create_event_channel();
	struct sockaddr_in a = address(), group = a;
	struct rdma_cm_id *id;

	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	CHECK(own && !rdma_create_id(own, &id, NULL, RDMA_PS_UDP));
	CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 5000));
	rdma_ack_cm_event(fetch(own, RDMA_CM_EVENT_ADDR_RESOLVED));
	make_qp(id, IBV_QPT_UD);
	CHECK(!rdma_join_multicast(id, (struct sockaddr *)&group, NULL));
	fetch(own, RDMA_CM_EVENT_MULTICAST_JOIN);
	rdma_leave_multicast(id, (struct sockaddr *)&group);
	return arg;
}

/* Start the thread that @line names.  False: there is none of that name. */
static bool start(const char *line)
{
	static const struct {
		const char *line;
		void *(*run)(void *arg);
	} threads[] = {
		{ "sleep\n", get_event },
		{ "destroy\n", destroy },
		{ "migrate\n", migrate },
		{ "leave\n", leave },
	};
	pthread_t thread;
	size_t i;

	for (i = 0; i < sizeof(threads) / sizeof(*threads); i++)
		if (!strcmp(line, threads[i].line)) {
			CHECK(!pthread_create(&thread, NULL, threads[i].run,
					      NULL));
			return true;
		}
	return false;
}

int main(void)
{
	struct rdma_conn_param p = { .retry_count = 7 };
	struct rdma_cm_id *id = NULL;
	struct sockaddr_in a = address();
	struct rdma_cm_event *e;
	char line[16], go;
	in_port_t port;
	int sock[2];
	pid_t pid;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		client(sock[1]);
		return 0;
	}
	prctl(PR_SET_NAME, "stall-server");
	c = rdma_create_event_channel();
	CHECK(c && !rdma_create_id(c, &listener, NULL, RDMA_PS_TCP));
	CHECK(!rdma_bind_addr(listener, (struct sockaddr *)&a));
	CHECK(!rdma_listen(listener, 1));
	port = rdma_get_src_port(listener);
	CHECK(write(sock[0], &port, sizeof(port)) == sizeof(port));
	CHECK(read(sock[0], &go, 1) == 1);
	printf("{\"server\": {\"pid\": %d}, \"client\": {\"pid\": %d}}\n",
	       getpid(), pid);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "event\n") || !strcmp(line, "keep\n")) {
			e = fetch(c, RDMA_CM_EVENT_CONNECT_REQUEST);
			id = e->id;
			if (*line == 'e')
				rdma_ack_cm_event(e);
		} else if (!start(line)) {
			make_qp(id, IBV_QPT_RC);
			CHECK(!rdma_accept(id, &p));
		}
		printf("done\n");
		fflush(stdout);
	}
	kill(pid, SIGKILL);
	return 0;
}
