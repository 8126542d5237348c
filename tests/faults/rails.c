// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rails server|client SOCKET RAILS FAILURES: a client that sends messages over
 * several devices, and continues over the others when one of them fails.
 *
 * Rail r is an RC connection between device r of both hosts.  A message whose
 * rail has failed is sent again over another one, so the server may get it
 * twice; it checks that it gets each one, undamaged.  A failed rail is
 * connected again, by a request over the socket.  The client ends when its
 * ports have been lost FAILURES times and all messages are delivered.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define RAILS 8
#define DEPTH 16 /* messages in flight on a rail */
#define LENGTH 256 /* of a message: its number, repeated */
#define MESSAGES (1u << 24) /* at most */
#define GID_INDEX 3

struct rail {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t (*buffer)[LENGTH / 8];
	bool connected;
	uint32_t posted; /* not completed yet */
	uint64_t free; /* bits of slots, of the client */
	uint32_t failures,
		losses; /* completions with errors; PORT_ERR events */
};

/* What the two ends tell each other about a rail. */
struct word {
	uint32_t rail; /* RAILS: the end */
	uint32_t qpn;
	union ibv_gid gid;
};

static struct rail rail[RAILS];
static unsigned int rails;
static bool is_server;
static int peer; /* the socket */

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* ------------------------------------------------------- a rail */

static void rail_open(struct rail *r, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
	};
	int flags;

	r->ctx = ibv_open_device(device);
	check(r->ctx, "ibv_open_device");
	flags = fcntl(r->ctx->async_fd, F_GETFL);
	check(!fcntl(r->ctx->async_fd, F_SETFL, flags | O_NONBLOCK), "fcntl");
	r->pd = ibv_alloc_pd(r->ctx);
	r->cq = ibv_create_cq(r->ctx, 2 * DEPTH, NULL, NULL, 0);
	r->buffer = calloc(DEPTH, sizeof(*r->buffer));
	check(r->pd && r->cq && r->buffer, "objects of a rail");
	r->mr = ibv_reg_mr(r->pd, r->buffer, DEPTH * sizeof(*r->buffer),
			   IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = r->cq;
	r->qp = ibv_create_qp(r->pd, &init);
	check(r->mr && r->qp, "QP of a rail");
	r->free = (1ull << DEPTH) - 1;
}

static void rail_close(struct rail *r)
{
	check(!ibv_destroy_qp(r->qp) && !ibv_dereg_mr(r->mr) &&
		      !ibv_destroy_cq(r->cq) && !ibv_dealloc_pd(r->pd) &&
		      !ibv_close_device(r->ctx),
	      "destruction of a rail");
	free(r->buffer);
}

static void rail_receive(struct rail *r, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)r->buffer[slot], LENGTH,
			       r->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	check(!ibv_post_recv(r->qp, &wr, &bad), "ibv_post_recv");
	r->posted++;
}

static void rail_init(struct rail *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	uint64_t slot;

	check(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS),
	      "INIT");
	for (slot = 0; is_server && slot < DEPTH; slot++)
		rail_receive(r, slot);
}

/* A lost message is noticed after about 8 ms. */
static void rail_connect(struct rail *r, const struct word *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to->qpn,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = to->gid,
				      .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};

	check(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 10;
	attr.retry_cnt = 1;
	attr.rnr_retry = 7;
	check(!ibv_modify_qp(r->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
	r->connected = true;
}

static void rail_modify(struct rail *r, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	check(!ibv_modify_qp(r->qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
}

/* Read the events, and count losses of the port. */
static void rail_events(struct rail *r)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(r->ctx, &event)) {
		r->losses += event.event_type == IBV_EVENT_PORT_ERR;
		ibv_ack_async_event(&event);
	}
}

static void rails_print(void)
{
	unsigned int i;

	for (i = 0; i < rails; i++)
		printf("rail %u: %u times down, %u completions with an error\n",
		       i, rail[i].losses, rail[i].failures);
}

/* ------------------------------------------------------- the socket */

static struct word word_of(unsigned int i)
{
	struct word w = { .rail = i };

	if (i == RAILS)
		return w;
	w.qpn = rail[i].qp->qp_num;
	check(!ibv_query_gid(rail[i].ctx, 1, GID_INDEX, &w.gid),
	      "ibv_query_gid");
	return w;
}

static void word_send(unsigned int i)
{
	struct word w = word_of(i);

	check(write(peer, &w, sizeof(w)) == sizeof(w), "write");
}

/* False: no word has arrived. */
static bool word_receive(struct word *w, bool wait)
{
	ssize_t n =
		recv(peer, w, sizeof(*w), wait ? MSG_WAITALL : MSG_DONTWAIT);

	check(n == sizeof(*w) || (n < 0 && !wait), "recv");
	return n > 0;
}

static void socket_open(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	check(fd >= 0, "socket");
	if (!is_server) {
		check(!connect(fd, (struct sockaddr *)&to, sizeof(to)),
		      "connect");
		peer = fd;
		return;
	}
	check(!bind(fd, (struct sockaddr *)&to, sizeof(to)) && !listen(fd, 1),
	      "listen");
	peer = accept(fd, NULL, NULL);
	check(peer >= 0, "accept");
	close(fd);
}

/* ------------------------------------------------------- server */

static uint8_t got[MESSAGES / 8];
static uint64_t received, duplicates, highest;

static void message_take(const uint64_t *data)
{
	const uint64_t n = data[0];
	unsigned int i;

	for (i = 0; i < LENGTH / 8; i++)
		if (data[i] != n || n >= MESSAGES) {
			fprintf(stderr, "message %llu is damaged\n",
				(unsigned long long)n);
			exit(1);
		}
	received++;
	duplicates += got[n / 8] >> n % 8 & 1;
	got[n / 8] |= (uint8_t)(1 << n % 8);
	highest = n > highest ? n : highest;
}

/* Take the messages that have arrived; @again: and post their receives again.
 */
static void server_poll(struct rail *r, bool again)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(r->cq, 1, &wc) > 0) {
		r->posted--;
		if (wc.status != IBV_WC_SUCCESS) {
			r->failures++;
			continue;
		}
		message_take(r->buffer[wc.wr_id]);
		if (again)
			rail_receive(r, wc.wr_id);
	}
}

/* Connect a rail again; what has arrived before is not lost. */
static void server_connect(const struct word *w)
{
	struct rail *r = &rail[w->rail];

	if (r->connected) {
		rail_modify(r, IBV_QPS_ERR);
		while (r->posted)
			server_poll(r, false);
		rail_modify(r, IBV_QPS_RESET);
		rail_init(r);
	}
	rail_connect(r, w);
	word_send(w->rail);
}

static int server(void)
{
	struct word w;
	unsigned int i;
	uint64_t n;

	for (;;) {
		for (i = 0; i < rails; i++) {
			server_poll(&rail[i], true);
			rail_events(&rail[i]);
		}
		if (!word_receive(&w, false))
			continue;
		if (w.rail >= rails)
			break;
		server_connect(&w);
	}
	for (i = 0; i < rails; i++)
		server_poll(&rail[i], false);
	for (n = 0; n <= highest; n++)
		if (!(got[n / 8] >> n % 8 & 1)) {
			fprintf(stderr, "message %llu is lost\n",
				(unsigned long long)n);
			return 1;
		}
	printf("%llu messages, %llu of them twice\n",
	       (unsigned long long)(highest + 1),
	       (unsigned long long)duplicates);
	rails_print();
	return 0;
}

/* ------------------------------------------------------- client */

/* messages to send again */
static uint64_t again[RAILS * DEPTH];
static unsigned int agains;
static uint64_t next;

static void client_post(struct rail *r, uint64_t message)
{
	const unsigned int slot = (unsigned int)__builtin_ctzll(r->free);
	struct ibv_sge sge = { (uintptr_t)r->buffer[slot], LENGTH,
			       r->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;
	unsigned int i;

	for (i = 0; i < LENGTH / 8; i++)
		r->buffer[slot][i] = message;
	check(!ibv_post_send(r->qp, &wr, &bad), "ibv_post_send");
	r->free &= ~(1ull << slot);
	r->posted++;
}

static void client_poll(struct rail *r)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(r->cq, 1, &wc) > 0) {
		r->posted--;
		r->free |= 1ull << wc.wr_id;
		if (wc.status == IBV_WC_SUCCESS)
			continue;
		if (wc.status != IBV_WC_RETRY_EXC_ERR &&
		    wc.status != IBV_WC_WR_FLUSH_ERR) {
			fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
			exit(1);
		}
		r->connected = false;
		r->failures++;
		again[agains++] = r->buffer[wc.wr_id][0];
	}
}

/* Connect a rail whose port is up, and whose messages have all ended. */
static void client_connect(unsigned int i)
{
	struct rail *r = &rail[i];
	struct ibv_port_attr attr;
	struct word w;

	check(!ibv_query_port(r->ctx, 1, &attr), "ibv_query_port");
	if (attr.state != IBV_PORT_ACTIVE)
		return;
	rail_modify(r, IBV_QPS_RESET);
	rail_init(r);
	word_send(i);
	word_receive(&w, true);
	rail_connect(r, &w);
}

static void client_fill(struct rail *r, bool more)
{
	while (r->free && agains)
		client_post(r, again[--agains]);
	while (r->free && more && next < MESSAGES)
		client_post(r, next++);
}

static int client(unsigned int failures)
{
	uint32_t lost, posted;
	unsigned int i;

	do {
		lost = posted = 0;
		for (i = 0; i < rails; i++)
			lost += rail[i].losses;
		for (i = 0; i < rails; i++) {
			rail_events(&rail[i]);
			client_poll(&rail[i]);
			if (!rail[i].connected && !rail[i].posted)
				client_connect(i);
			if (rail[i].connected)
				client_fill(&rail[i], lost < failures);
			posted += rail[i].posted;
		}
	} while (lost < failures || posted || agains);
	word_send(RAILS);
	rails_print();
	return 0;
}

int main(int argc, char **argv)
{
	struct ibv_device **devices;
	int n, ret;
	unsigned int i;

	if (argc != 5)
		return 2;
	is_server = !strcmp(argv[1], "server");
	rails = (unsigned int)atoi(argv[3]);
	devices = ibv_get_device_list(&n);
	check(devices && rails && rails <= RAILS && (unsigned int)n >= rails,
	      "devices");
	for (i = 0; i < rails; i++) {
		rail_open(&rail[i], devices[i]);
		rail_init(&rail[i]);
	}
	ibv_free_device_list(devices);
	socket_open(argv[2]);
	ret = is_server ? server() : client((unsigned int)atoi(argv[4]));
	for (i = 0; i < rails; i++)
		rail_close(&rail[i]);
	return ret;
}
