// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/sender.h"

#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#include "wire/watch.h"

wire_tx_fault_fn *wire_tx_fault;

uint8_t *wire_sender_add(struct wire_sender *s, const struct wire_path *path,
			 const struct wire_packet *p)
{
	unsigned int parts = wire_parts(p->bth.opcode);
	uint8_t *const start = s->bytes + s->used;
	struct wire_outgoing *o = &s->packet[s->n];
	uint32_t known, pad;
	uint8_t *payload, *end;

	if (wire_sender_is_full(s) || !parts || p->length > WIRE_MAX_PAYLOAD)
		return NULL;
	payload = end = wire_put_headers(p, start);
	if (parts & WIRE_HAS(PAYLOAD)) {
		known = p->known < p->length ? p->known : p->length;
		pad = wire_pad(p->length);
		if (p->payload && known)
			memcpy(payload, p->payload, known);
		if (p->payload)
			memset(payload + known, 0, p->length - known);
		memset(payload + p->length, 0, pad);
		end += p->length + pad;
	}
	o->path = *path;
	o->at = s->used;
	o->bytes = (uint32_t)(end - start);
	o->fault = wire_tx_fault ? wire_tx_fault(p) : WIRE_NO_FAULT;
	s->used += o->bytes + WIRE_ICRC_BYTES;
	s->n++;
	return payload;
}

void wire_sender_drop(struct wire_sender *s)
{
	if (s->n)
		s->used = s->packet[--s->n].at;
}

/* ------------------------------------------------------- datagrams */

/* GSO limits of one message: bytes, and segments (UDP_MAX_SEGMENTS) */
#define MAX_BYTES 65000u
#define MAX_SEGMENTS 64u

#define LABEL_MASK 0xfffffu

/* All packets duplicated, and a delayed one */
#define MAX_MESSAGES (2 * WIRE_SENDER_PACKETS + 1)

#define CONTROL_BYTES (4 * CMSG_SPACE(sizeof(int)))

/*
 * One message of sendmmsg(2): n packets from index first on.  If n > 1 the
 * kernel cuts it into segments (GSO).
 */
struct message {
	unsigned int first, n;
	uint32_t segment;
	union wire_sockaddr to;
	struct iovec iov;
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
};

struct flush {
	struct wire_sender *s;
	const struct wire_socket *socket;
	struct wire_front front;
	const struct wire_path *of; /* path of `front` */
	bool singly; /* no GSO: one packet a message */
	bool unlabelled; /* the kernel refuses flow labels */
	uint32_t leased; /* flow label of the last lease request */
	/* packet to delay to the next flush, or WIRE_SENDER_PACKETS */
	unsigned int late;
	unsigned int n; /* number of messages */
	struct message message[MAX_MESSAGES];
	struct mmsghdr header[MAX_MESSAGES];
};

/* Return whether packets of two paths may be in one message. */
static bool same_path(const struct wire_path *a, const struct wire_path *b)
{
	return !memcmp(a->dgid, b->dgid, 16) && a->port == b->port &&
	       a->traffic_class == b->traffic_class &&
	       a->flow_label == b->flow_label && a->hop_limit == b->hop_limit;
}

/* Return the length of the UDP payload: BTH to ICRC. */
static uint32_t datagram(const struct wire_outgoing *o)
{
	return o->bytes + WIRE_ICRC_BYTES;
}

/*
 * Return how many packets from index first on can be one message: equal path
 * and length, where the last may be shorter.
 */
static unsigned int alike(const struct flush *f, unsigned int first)
{
	const struct wire_outgoing *o = &f->s->packet[first];
	unsigned int n = 1, most = f->s->n - first;
	uint32_t bytes = datagram(o);

	if (f->singly || o->fault != WIRE_NO_FAULT)
		return 1;
	if (most > MAX_SEGMENTS)
		most = MAX_SEGMENTS;
	for (; n < most && same_path(&o->path, &o[n].path) &&
	       o[n].fault == WIRE_NO_FAULT;
	     n++) {
		bytes += datagram(&o[n]);
		if (o[n].bytes > o->bytes || bytes > MAX_BYTES)
			break;
		if (o[n].bytes < o->bytes)
			return n + 1;
	}
	return n;
}

/* Append the ICRCs to the packets of a message. */
static void put_icrcs(struct flush *f, const struct message *m)
{
	struct wire_outgoing *o = &f->s->packet[m->first];
	struct wire_path path = o->path;
	unsigned int i;
	uint8_t *at;

	if (!f->of || !same_path(f->of, &path)) {
		memcpy(path.sgid, f->socket->gid, 16);
		path.source_port = f->socket->port;
		path.v1 = false;
		wire_front_begin(&f->front, &path);
		f->of = &o->path;
	}
	/* the kernel numbers the IPv4 IDs of the segments from 0 */
	for (i = 0; i < m->n; i++) {
		at = f->s->bytes + o[i].at;
		wire_put_icrc(
			wire_front_icrc(&f->front, (uint16_t)i, at, o[i].bytes),
			at + o[i].bytes);
		if (o[i].fault == WIRE_DAMAGED)
			at[o[i].bytes - 1] ^= 1;
	}
}

static uint8_t *put_control(uint8_t *at, int level, int type, int value,
			    size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)at;

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	if (len == sizeof(uint16_t))
		memcpy(CMSG_DATA(c), &(uint16_t){ (uint16_t)value }, len);
	else
		memcpy(CMSG_DATA(c), &value, len);
	return at + CMSG_SPACE(len);
}

static size_t put_controls(const struct flush *f, const struct wire_path *path,
			   struct message *m)
{
	const struct wire_socket *s = f->socket;
	const int level = s->ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
	uint8_t *at = m->control;

	memset(m->control, 0, sizeof(m->control));
	if (path->traffic_class)
		at = put_control(at, level, s->ipv6 ? IPV6_TCLASS : IP_TOS,
				 path->traffic_class, sizeof(int));
	if (path->hop_limit)
		at = put_control(at, level, s->ipv6 ? IPV6_HOPLIMIT : IP_TTL,
				 path->hop_limit, sizeof(int));
	if (s->ipv6 && path->flow_label && !f->unlabelled)
		at = put_control(at, level, IPV6_FLOWINFO,
				 (int)htonl(path->flow_label & LABEL_MASK),
				 sizeof(int));
	if (m->n > 1)
		at = put_control(at, IPPROTO_UDP, UDP_SEGMENT, (int)m->segment,
				 sizeof(uint16_t));
	return (size_t)(at - m->control);
}

static void add_message(struct flush *f, unsigned int first, unsigned int n)
{
	const struct wire_outgoing *o = &f->s->packet[first];
	struct message *m = &f->message[f->n];
	struct msghdr *h = &f->header[f->n].msg_hdr;
	const uint16_t port = o->path.port ? o->path.port : WIRE_PORT;

	m->first = first;
	m->n = n;
	m->segment = datagram(o);
	m->iov.iov_base = f->s->bytes + o->at;
	m->iov.iov_len = o[n - 1].at + datagram(&o[n - 1]) - o->at;
	memset(h, 0, sizeof(*h));
	h->msg_name = &m->to;
	h->msg_namelen = wire_sockaddr_of(&m->to, o->path.dgid, port,
					  f->socket->interface);
	h->msg_iov = &m->iov;
	h->msg_iovlen = 1;
	h->msg_controllen = put_controls(f, &o->path, m);
	h->msg_control = h->msg_controllen ? m->control : NULL;
	put_icrcs(f, m);
	f->n++;
}

/* Return whether packet i is not sent in this flush: lost or delayed. */
static bool stays(const struct flush *f, unsigned int i)
{
	return f->s->packet[i].fault == WIRE_LOST || i == f->late;
}

/*
 * Make messages of the packets from index first on, and of the packet that
 * was delayed in an earlier flush.
 */
static void cut(struct flush *f, unsigned int first)
{
	unsigned int n;

	f->n = 0;
	for (; first < f->s->n; first += n) {
		n = alike(f, first);
		if (stays(f, first))
			continue;
		add_message(f, first, n);
		if (f->s->packet[first].fault == WIRE_DUPLICATED)
			add_message(f, first, n);
	}
	if (f->s->late)
		add_message(f, WIRE_SENDER_PACKETS, 1);
}

/*
 * Return the index of the first packet to delay, or WIRE_SENDER_PACKETS if
 * there is none or one is already delayed.
 */
static unsigned int delayed_packet(const struct wire_sender *s)
{
	unsigned int i;

	for (i = 0; i < s->n && !s->late; i++)
		if (s->packet[i].fault == WIRE_LATE)
			return i;
	return WIRE_SENDER_PACKETS;
}

/* Keep packet i in the last element of the queue until the next flush. */
static void delay_packet(struct wire_sender *s, unsigned int i)
{
	struct wire_outgoing *o = &s->packet[WIRE_SENDER_PACKETS];

	s->late = i != WIRE_SENDER_PACKETS;
	if (!s->late)
		return;
	*o = s->packet[i];
	o->at = WIRE_SENDER_PACKETS * (WIRE_MAX_TRANSPORT + WIRE_ICRC_BYTES);
	memcpy(s->bytes + o->at, s->bytes + s->packet[i].at, o->bytes);
}

/*
 * Return whether an error may be due to GSO.  The kernel returns these errors
 * if it does not support GSO, and also if a packet exceeds the MTU.  In the
 * latter case single packets fail, too, and no_gso stays unset (count()).
 */
static bool gso_fails(const struct message *m, int err)
{
	return m->n > 1 && (err == EIO || err == EINVAL || err == EOPNOTSUPP);
}

/*
 * struct in6_flowlabel_req of linux/in6.h, which conflicts with netinet/in.h
 */
struct label_request {
	uint8_t to[16];
	uint32_t label;
	/* 0: IPV6_FL_A_GET; 255: IPV6_FL_S_ANY, shared with any process */
	uint8_t action, share;
	uint16_t flags; /* 1: IPV6_FL_F_CREATE */
	uint16_t expires, linger; /* seconds */
	uint32_t pad;
};
#ifndef IPV6_FLOWLABEL_MGR
#define IPV6_FLOWLABEL_MGR 32
#endif

/*
 * Lease the flow label of a path for the socket.  Usually sockets may send
 * any label.  While a process in the network namespace holds an exclusive
 * label, the kernel refuses labels that the socket has not leased.  A lease
 * needs no privileges.  Return false if it is refused.
 */
static bool label_lease(const struct flush *f, const struct wire_path *path)
{
	struct label_request r = {
		.label = htonl(path->flow_label & LABEL_MASK),
		.share = 255,
		.flags = 1,
	};

	memcpy(r.to, path->dgid, 16);
	return !setsockopt(f->socket->fd, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &r,
			   sizeof(r));
}

/* Return whether an error may be due to the flow label of the message. */
static bool label_fails(const struct flush *f, const struct message *m, int err)
{
	return err == EINVAL && m->n == 1 && f->socket->ipv6 &&
	       !f->unlabelled && f->s->packet[m->first].path.flow_label;
}

/*
 * Lease the flow label; if that fails or did not help, send without labels.
 */
static void label_settle(struct flush *f, const struct message *m)
{
	const struct wire_path *path = &f->s->packet[m->first].path;

	if (f->leased == path->flow_label || !label_lease(f, path))
		f->unlabelled = true;
	f->leased = path->flow_label;
	f->singly = f->s->no_gso; /* GSO was not the cause */
}

/*
 * Handle an error of message m.  Return true if the packets from m on are to
 * be sent again in another way, for which the messages have been made anew:
 * without GSO, with a leased flow label, or without flow labels.
 */
static bool flush_otherwise(struct flush *f, const struct message *m, int err)
{
	if (gso_fails(m, err))
		f->singly = true;
	else if (label_fails(f, m, err))
		label_settle(f, m);
	else
		return false;
	cut(f, m->first);
	return true;
}

/* Pass the packets of a message to wire_watcher; @when they were sent. */
static void __attribute__((cold, noinline))
watch(const struct flush *f, const struct message *m, uint64_t when)
{
	const struct wire_outgoing *o = &f->s->packet[m->first];
	struct wire_path path;
	unsigned int i;

	for (i = 0; i < m->n; i++) {
		path = o[i].path;
		memcpy(path.sgid, f->socket->gid, 16);
		path.source_port = f->socket->port;
		path.port = path.port ? path.port : WIRE_PORT;
		path.ip_id = f->socket->ipv6 ? 0 : (uint16_t)i;
		wire_watcher->packet(when, &(struct wire_watched){
						   .path = &path,
						   .bth = f->s->bytes + o[i].at,
						   .bytes = datagram(&o[i]),
					   });
	}
}

/*
 * Count message i, which was sent.  If GSO was off or labels were removed,
 * and it worked, do so in later flushes, too.  Return its number of packets.
 */
static unsigned int count(const struct flush *f, unsigned int i, uint64_t when)
{
	if (when)
		watch(f, &f->message[i], when);
	if (f->singly)
		f->s->no_gso = true;
	if (f->unlabelled)
		f->s->no_label = true;
	f->s->sent.packets += f->message[i].n;
	f->s->sent.bytes += f->message[i].iov.iov_len;
	return f->message[i].n;
}

int wire_sender_flush(struct wire_sender *s, const struct wire_socket *socket,
		      unsigned int *sent)
{
	struct flush f;
	const int saved = errno;
	unsigned int done = 0, went = 0;
	uint64_t when;
	int n, err = 0;

	f.s = s;
	f.socket = socket;
	f.of = NULL;
	f.singly = s->no_gso;
	f.unlabelled = s->no_label;
	f.leased = 0;
	f.late = delayed_packet(s);
	cut(&f, 0);
	while (done < f.n) {
		when = wire_watch_time();
		n = sendmmsg(socket->fd, f.header + done, f.n - done, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && flush_otherwise(&f, &f.message[done], errno)) {
			done = 0;
			continue;
		}
		if (n < 0) {
			err = err ? err : -errno;
			s->sent.lost += f.message[done++].n;
		}
		for (; n > 0; n--)
			went += count(&f, done++, when);
	}
	delay_packet(s, f.late);
	s->n = s->used = 0;
	if (sent)
		*sent = went;
	errno = saved;
	return err;
}
