// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sending sockets of the process, see port.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "count.h"
#include "port.h"

struct wire_port {
	struct wire_port *next;
	pthread_mutex_t lock;
	struct wire_socket socket;
	int err; /* first error since port_begin() */
	uint64_t paced; /* the port has sent the unreliable packets by then */
	struct wire_sender sender;
};

static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct wire_port *ports;

static struct wire_port *port_open(const uint8_t sgid[16], int *err)
{
	struct wire_port *p = calloc(1, sizeof(*p));

	if (!p) {
		*err = -ENOMEM;
		return NULL;
	}
	*err = wire_socket_open(&p->socket, sgid, 0, WIRE_SENDS_ONLY);
	if (*err) {
		free(p);
		return NULL;
	}
	pthread_mutex_init(&p->lock, NULL);
	p->next = ports;
	ports = p;
	return p;
}

struct wire_port *port_begin(const uint8_t sgid[16], int *err)
{
	struct wire_port *p;

	pthread_mutex_lock(&ports_lock);
	for (p = ports; p; p = p->next)
		if (!memcmp(p->socket.gid, sgid, 16))
			break;
	if (!p)
		p = port_open(sgid, err);
	pthread_mutex_unlock(&ports_lock);
	if (!p)
		return NULL;
	pthread_mutex_lock(&p->lock);
	p->err = 0;
	return p;
}

static void port_flush(struct wire_port *p)
{
	int err = wire_sender_flush(&p->sender, &p->socket, NULL);

	if (!p->err)
		p->err = err;
}

uint8_t *port_add(struct wire_port *p, const struct wire_path *path,
		  const struct wire_packet *packet)
{
	if (wire_sender_is_full(&p->sender))
		port_flush(p);
	return wire_sender_add(&p->sender, path, packet);
}

/* Time of the packets that may be sent at once, in ns: 128 KiB */
#define PORT_BURST_NS 131072ull

uint64_t port_paced_until(const struct wire_port *p)
{
	return p->paced > PORT_BURST_NS / 2 ? p->paced - PORT_BURST_NS / 2 : 0;
}

uint32_t port_room(const struct wire_port *p, uint32_t bytes, uint64_t now)
{
	const uint64_t ahead = p->paced > now ? p->paced - now : 0;
	const uint64_t each = (uint64_t)bytes * 1000 / PORT_BYTES_PER_US;

	/* half of the burst must be free, so that few wake-ups are needed */
	if (now < port_paced_until(p))
		return 0;
	return (uint32_t)((PORT_BURST_NS - ahead) / each);
}

void port_pace(struct wire_port *p, uint64_t bytes, uint64_t now)
{
	if (p->paced < now)
		p->paced = now;
	p->paced += bytes * 1000 / PORT_BYTES_PER_US;
}

uint32_t port_buffer(const struct wire_port *p)
{
	return p->socket.room / 2;
}

void port_drop(struct wire_port *p)
{
	wire_sender_drop(&p->sender);
}

int port_end(struct wire_port *p, struct urxe_fabric *f)
{
	int err;

	if (p->sender.n)
		port_flush(p);
	count_sent(f, COUNTER_REQUESTER, &p->sender.sent);
	err = p->err;
	pthread_mutex_unlock(&p->lock);
	return err;
}

int port_ring(const uint8_t own[16])
{
	const int saved = errno;
	union wire_sockaddr to;
	struct wire_port *p;
	socklen_t len;
	int err = 0;

	p = port_begin(own, &err);
	if (!p)
		return err;
	len = wire_sockaddr_of(&to, own, WIRE_PORT, p->socket.interface);
	if (sendto(p->socket.fd, "", 0, 0, &to.sa, len))
		err = -errno;
	pthread_mutex_unlock(&p->lock);
	errno = saved;
	return err;
}

void port_after_fork(void)
{
	struct wire_port *p;

	pthread_mutex_init(&ports_lock, NULL);
	while ((p = ports)) {
		ports = p->next;
		wire_socket_close(&p->socket);
		free(p);
	}
}
