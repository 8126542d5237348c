// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * greet: the program under test in the projects in ctest/, meson/ and pytest/
 *
 *	greet server [PORT]		responds to one client
 *	greet client HOST [PORT]	sends a name, and prints the response
 *	greet				runs both, in two processes
 *
 * Nothing here is specific to urxe.
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE 64

struct greeter {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char in[MESSAGE], out[MESSAGE];
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct rdma_cm_id *endpoint(const char *host, const char *port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	if (!host)
		hints.ai_flags = RAI_PASSIVE;
	if (rdma_getaddrinfo(host, port, &hints, &res))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, res, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(res);
	return id;
}

/* Post a receive; this must happen before the peer sends. */
static void prepare(struct greeter *g)
{
	g->mr = rdma_reg_msgs(g->id, g, sizeof(*g));
	if (!g->mr)
		die("rdma_reg_msgs");
	if (rdma_post_recv(g->id, NULL, g->in, MESSAGE, g->mr))
		die("rdma_post_recv");
}

static void complete(const char *what, int n, const struct ibv_wc *wc)
{
	if (n < 0)
		die(what);
	if (wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc->status));
	exit(1);
}

static void send_message(struct greeter *g)
{
	struct ibv_wc wc;

	if (rdma_post_send(g->id, NULL, g->out, MESSAGE, g->mr, 0))
		die("rdma_post_send");
	complete("send", rdma_get_send_comp(g->id, &wc), &wc);
}

static void receive_message(struct greeter *g)
{
	struct ibv_wc wc;

	complete("receive", rdma_get_recv_comp(g->id, &wc), &wc);
	g->in[MESSAGE - 1] = 0;
}

static void end(struct greeter *g)
{
	rdma_disconnect(g->id);
	rdma_dereg_mr(g->mr);
	rdma_destroy_ep(g->id);
}

/* Serve one client.  @ready is closed when clients may connect. */
static int server(const char *port, int ready)
{
	struct rdma_cm_id *listener = endpoint(NULL, port);
	struct greeter g;

	if (rdma_listen(listener, 1))
		die("rdma_listen");
	puts("listening");
	fflush(stdout);
	close(ready);
	if (rdma_get_request(listener, &g.id))
		die("rdma_get_request");
	prepare(&g);
	if (rdma_accept(g.id, NULL))
		die("rdma_accept");
	receive_message(&g);
	snprintf(g.out, MESSAGE, "Hello, %.50s!", g.in);
	send_message(&g);
	end(&g);
	rdma_destroy_ep(listener);
	return 0;
}

static int client(const char *host, const char *port)
{
	struct greeter g = { .id = endpoint(host, port), .out = "world" };

	prepare(&g);
	if (rdma_connect(g.id, NULL))
		die("rdma_connect");
	send_message(&g);
	receive_message(&g);
	puts(g.in);
	end(&g);
	return strcmp(g.in, "Hello, world!") != 0;
}

static int both(void)
{
	int ready[2], status;
	char byte;
	pid_t pid;

	if (pipe(ready))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		/* the server is killed if this process exits */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		exit(server("7471", ready[1]));
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) < 0)
		die("read");
	status = client("127.0.0.1", "7471");
	if (waitpid(pid, &ready[0], 0) < 0 || ready[0])
		status = 1;
	return status;
}

int main(int argc, char **argv)
{
	const char *role = argc > 1 ? argv[1] : "";

	if (argc == 1)
		return both();
	if (!strcmp(role, "server") && argc <= 3)
		return server(argc > 2 ? argv[2] : "7471", -1);
	if (!strcmp(role, "client") && argc >= 3 && argc <= 4)
		return client(argv[2], argc > 3 ? argv[3] : "7471");
	fprintf(stderr, "usage: %s [server [PORT] | client HOST [PORT]]\n",
		argv[0]);
	return 2;
}
