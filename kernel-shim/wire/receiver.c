// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/udp.h>
#include <string.h>

#include "wire/address.h"
#include "wire/receiver.h"
#include "wire/watch.h"

#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

/* Prepare the header of a message, which recvmmsg(2) changes. */
static void prepare(struct wire_receiver *r, unsigned int i)
{
	r->header[i].msg_hdr = (struct msghdr){
		.msg_name = &r->message[i].from,
		.msg_namelen = sizeof(r->message[i].from),
		.msg_iov = &r->message[i].iov,
		.msg_iovlen = 1,
		.msg_control = r->message[i].control,
		.msg_controllen = WIRE_CONTROL_BYTES,
	};
}

void wire_receiver_begin(struct wire_receiver *r)
{
	unsigned int i;

	memset(r, 0, offsetof(struct wire_receiver, buffer));
	wire_solver_begin(&r->solver);
	for (i = 0; i < WIRE_RECEIVER_MESSAGES; i++) {
		r->message[i].iov.iov_base = r->buffer[i];
		r->message[i].iov.iov_len = WIRE_MESSAGE_BYTES;
		prepare(r, i);
	}
}

int wire_receive(struct wire_receiver *r, const struct wire_socket *s)
{
	const int saved = errno;
	unsigned int i;
	int n, err = 0;

	for (i = 0; i < r->n; i++)
		prepare(r, i);
	r->socket = s;
	r->n = r->next = r->at = r->bytes = 0;
	do
		n = recvmmsg(s->fd, r->header, WIRE_RECEIVER_MESSAGES,
			     MSG_WAITFORONE, NULL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		err = -errno;
	else
		r->n = (unsigned int)n;
	errno = saved;
	return err;
}

/* ------------------------------------------------------- messages */

/* Make the GID of an address; of an IPv4 address ::ffff:a.b.c.d. */
static void gid_of(uint8_t gid[16], const union wire_sockaddr *a)
{
	if (a->sa.sa_family == AF_INET6) {
		memcpy(gid, &a->in6.sin6_addr, 16);
		return;
	}
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &a->in.sin_addr, 4);
}

/* Return the number in a control message. */
static int number(const struct cmsghdr *c)
{
	int value;

	if (c->cmsg_len < CMSG_LEN(sizeof(value))) /* IP_TOS is one byte */
		return *CMSG_DATA(c);
	memcpy(&value, CMSG_DATA(c), sizeof(value));
	return value;
}

static void control_ipv4(struct wire_path *path, const struct cmsghdr *c)
{
	struct in_pktinfo info;

	switch (c->cmsg_type) {
	case IP_PKTINFO:
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(path->dgid + 12, &info.ipi_addr, 4);
		break;
	case IP_TOS:
		path->traffic_class = (uint8_t)number(c);
		break;
	case IP_TTL:
		path->hop_limit = (uint8_t)number(c);
	}
}

static void control_ipv6(struct wire_path *path, const struct cmsghdr *c)
{
	struct in6_pktinfo info;

	switch (c->cmsg_type) {
	case IPV6_PKTINFO:
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(path->dgid, &info.ipi6_addr, 16);
		break;
	case IPV6_TCLASS:
		path->traffic_class = (uint8_t)number(c);
		break;
	case IPV6_HOPLIMIT:
		path->hop_limit = (uint8_t)number(c);
		break;
	case IPV6_FLOWINFO:
		path->flow_label = ntohl((uint32_t)number(c)) & 0xfffff;
	}
}

/* Store what a control message (cmsg(3)) reports about the datagram. */
static void control(struct wire_receiver *r, const struct cmsghdr *c)
{
	if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO)
		r->segment = (uint32_t)number(c);
	else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
		r->dropped = (uint32_t)number(c);
	else if (c->cmsg_level == IPPROTO_IP)
		control_ipv4(&r->path, c);
	else if (c->cmsg_level == IPPROTO_IPV6)
		control_ipv6(&r->path, c);
}

/*
 * Begin the next message, which may be empty.  Return false if none is left.
 */
static bool begin_message(struct wire_receiver *r)
{
	struct msghdr *h;
	struct cmsghdr *c;
	unsigned int i;

	if (r->next == r->n)
		return false;
	i = r->next++;
	h = &r->header[i].msg_hdr;
	r->at = 0;
	r->bytes = r->segment = r->header[i].msg_len;
	r->has_front = false;
	memset(&r->path, 0, sizeof(r->path));
	gid_of(r->path.sgid, &r->message[i].from);
	r->path.source_port = ntohs(r->message[i].from.in.sin_port);
	r->path.port = r->socket->port;
	memcpy(r->path.dgid, r->socket->gid, 16);
	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		control(r, c);
	if (!r->segment)
		r->segment = r->bytes;
	return true;
}

/* ------------------------------------------------------- packets */

/*
 * Check the ICRC of n bytes from the BTH to the pad; solve for the IPv4 ID.
 */
static enum wire_refusal check_icrc(struct wire_receiver *r,
				    struct wire_received *to, uint32_t n)
{
	const uint32_t icrc = wire_get_icrc(to->bth + n);
	int32_t id;

	if (!r->has_front) {
		wire_front_begin(&r->front, &r->path);
		r->has_front = true;
	}
	if (!r->front.ipv4)
		return wire_front_icrc(&r->front, 0, to->bth, n) == icrc ?
			       WIRE_TAKEN :
			       WIRE_BAD_ICRC;
	id = wire_solve_id(&r->solver, &r->front, to->bth, n, icrc);
	if (id < 0)
		return WIRE_BAD_ICRC;
	to->path.ip_id = (uint16_t)id;
	return WIRE_TAKEN;
}

/* Parse and check the packet to->bth of to->bytes bytes. */
static enum wire_refusal take(struct wire_receiver *r, struct wire_received *to)
{
	enum wire_refusal refusal;
	uint32_t n;

	if (to->bytes < WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return WIRE_SHORT;
	n = to->bytes - WIRE_ICRC_BYTES;
	refusal = wire_parse(&to->packet, to->bth, n);
	return refusal ? refusal : check_icrc(r, to, n);
}

/* Pass a received packet to wire_watcher. */
static void __attribute__((cold, noinline)) watch(const struct wire_received *p)
{
	wire_watcher->packet(wire_watch_time(), &(struct wire_watched){
							.in = true,
							.refusal = p->refusal,
							.path = &p->path,
							.bth = p->bth,
							.bytes = p->bytes,
						});
}

bool wire_received(struct wire_receiver *r, struct wire_received *to)
{
	uint32_t left;

	while (r->at >= r->bytes)
		if (!begin_message(r))
			return false;
	left = r->bytes - r->at;
	to->bytes = r->segment < left ? r->segment : left;
	to->bth = r->buffer[r->next - 1] + r->at;
	to->path = r->path;
	r->at += to->bytes;
	to->refusal = take(r, to);
	if (wire_watcher)
		watch(to);
	return true;
}

void wire_put_grh(const struct wire_received *r, uint8_t grh[WIRE_GRH_BYTES])
{
	const size_t bytes = WIRE_UDP_BYTES + r->bytes;

	if (wire_path_is_ipv4(&r->path)) {
		memset(grh, 0, WIRE_IPV6_BYTES - WIRE_IPV4_BYTES);
		grh += WIRE_IPV6_BYTES - WIRE_IPV4_BYTES;
	}
	wire_put_ip(&r->path, bytes, grh);
}
