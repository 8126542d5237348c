// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * failover server|client SOCKET RAILS FAILURES: a client that sends messages
 * over several devices, and continues over the others when one of them fails.
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

#include "rail.h"

#define DEPTH 16 /* messages in flight on a rail */
#define LENGTH 256 /* of a message: its number, repeated */
#define MESSAGES (1u << 24) /* at most */

struct lane {
	struct rail rail;
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

static struct lane lane[RAILS];
static unsigned int rails;
static bool is_server;
static int peer; /* the socket */

/* ------------------------------------------------------- a rail */

static uint64_t *lane_slot(struct lane *l, uint64_t slot)
{
	return (uint64_t *)(void *)(l->rail.buffer + slot * LENGTH);
}

static void lane_open(struct lane *l, struct ibv_device *device)
{
	int flags;

	rail_open(&l->rail, device, DEPTH, DEPTH * LENGTH);
	flags = fcntl(l->rail.ctx->async_fd, F_GETFL);
	check(!fcntl(l->rail.ctx->async_fd, F_SETFL, flags | O_NONBLOCK),
	      "fcntl");
	l->free = (1ull << DEPTH) - 1;
}

static void lane_receive(struct lane *l, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)lane_slot(l, slot), LENGTH,
			       l->rail.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	check(!ibv_post_recv(l->rail.qp, &wr, &bad), "ibv_post_recv");
	l->posted++;
}

static void lane_init(struct lane *l)
{
	uint64_t slot;

	rail_init(&l->rail);
	for (slot = 0; is_server && slot < DEPTH; slot++)
		lane_receive(l, slot);
}

/* Read the events, and count losses of the port. */
static void lane_events(struct lane *l)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(l->rail.ctx, &event)) {
		l->losses += event.event_type == IBV_EVENT_PORT_ERR;
		ibv_ack_async_event(&event);
	}
}

static void rails_print(void)
{
	unsigned int i;

	for (i = 0; i < rails; i++)
		printf("rail %u: %u times down, %u completions with an error\n",
		       i, lane[i].losses, lane[i].failures);
}

/* ------------------------------------------------------- the socket */

static struct word word_of(unsigned int i)
{
	struct word w = { .rail = i };

	if (i == RAILS)
		return w;
	w.qpn = lane[i].rail.qp->qp_num;
	rail_gid(&lane[i].rail, &w.gid);
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
static void server_poll(struct lane *l, bool again)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(l->rail.cq, 1, &wc) > 0) {
		l->posted--;
		if (wc.status != IBV_WC_SUCCESS) {
			l->failures++;
			continue;
		}
		message_take(lane_slot(l, wc.wr_id));
		if (again)
			lane_receive(l, wc.wr_id);
	}
}

/* Connect a rail again; what has arrived before is not lost. */
static void server_connect(const struct word *w)
{
	struct lane *l = &lane[w->rail];

	if (l->connected) {
		rail_modify(&l->rail, IBV_QPS_ERR);
		while (l->posted)
			server_poll(l, false);
		rail_modify(&l->rail, IBV_QPS_RESET);
		lane_init(l);
	}
	rail_connect(&l->rail, w->qpn, &w->gid);
	l->connected = true;
	word_send(w->rail);
}

static int server(void)
{
	struct word w;
	unsigned int i;
	uint64_t n;

	for (;;) {
		for (i = 0; i < rails; i++) {
			server_poll(&lane[i], true);
			lane_events(&lane[i]);
		}
		if (!word_receive(&w, false))
			continue;
		if (w.rail >= rails)
			break;
		server_connect(&w);
	}
	for (i = 0; i < rails; i++)
		server_poll(&lane[i], false);
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

static void client_post(struct lane *l, uint64_t message)
{
	const unsigned int slot = (unsigned int)__builtin_ctzll(l->free);
	struct ibv_sge sge = { (uintptr_t)lane_slot(l, slot), LENGTH,
			       l->rail.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;
	unsigned int i;

	for (i = 0; i < LENGTH / 8; i++)
		lane_slot(l, slot)[i] = message;
	check(!ibv_post_send(l->rail.qp, &wr, &bad), "ibv_post_send");
	l->free &= ~(1ull << slot);
	l->posted++;
}

static void client_poll(struct lane *l)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(l->rail.cq, 1, &wc) > 0) {
		l->posted--;
		l->free |= 1ull << wc.wr_id;
		if (wc.status == IBV_WC_SUCCESS)
			continue;
		if (wc.status != IBV_WC_RETRY_EXC_ERR &&
		    wc.status != IBV_WC_WR_FLUSH_ERR) {
			fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
			exit(1);
		}
		l->connected = false;
		l->failures++;
		again[agains++] = *lane_slot(l, wc.wr_id);
	}
}

/* Connect a rail whose port is up, and whose messages have all ended. */
static void client_connect(unsigned int i)
{
	struct lane *l = &lane[i];
	struct ibv_port_attr attr;
	struct word w;

	check(!ibv_query_port(l->rail.ctx, 1, &attr), "ibv_query_port");
	if (attr.state != IBV_PORT_ACTIVE)
		return;
	rail_modify(&l->rail, IBV_QPS_RESET);
	lane_init(l);
	word_send(i);
	word_receive(&w, true);
	rail_connect(&l->rail, w.qpn, &w.gid);
	l->connected = true;
}

static void client_fill(struct lane *l, bool more)
{
	while (l->free && agains)
		client_post(l, again[--agains]);
	while (l->free && more && next < MESSAGES)
		client_post(l, next++);
}

static int client(unsigned int failures)
{
	uint32_t lost, posted;
	unsigned int i;

	do {
		lost = posted = 0;
		for (i = 0; i < rails; i++)
			lost += lane[i].losses;
		for (i = 0; i < rails; i++) {
			lane_events(&lane[i]);
			client_poll(&lane[i]);
			if (!lane[i].connected && !lane[i].posted)
				client_connect(i);
			if (lane[i].connected)
				client_fill(&lane[i], lost < failures);
			posted += lane[i].posted;
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
		lane_open(&lane[i], devices[i]);
		lane_init(&lane[i]);
	}
	ibv_free_device_list(devices);
	socket_open(argv[2]);
	ret = is_server ? server() : client((unsigned int)atoi(argv[4]));
	for (i = 0; i < rails; i++)
		rail_close(&lane[i].rail);
	return ret;
}
