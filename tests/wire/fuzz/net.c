// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net.h"
#include "wire/address.h"
#include "wire/socket.h"

#define REAL(type, name, params) \
	type __real_##name params; \
	type __wrap_##name params; \
	type __wrap_##name params

const uint8_t net_ipv4[16] = { [10] = 0xff, 0xff, 10, 91, 0, 1 };
const uint8_t net_ipv6[16] = { 0xfd, 0x91, [15] = 1 };
#define INTERFACE 2

/* ------------------------------------------------------- sockets */

#define FDS 4096
static struct net_socket {
	int family; /* 0: not a simulated socket */
	uint16_t port;
	uint8_t gid[16];
} sockets[FDS];

static struct net_socket *ours(int fd)
{
	return fd >= 0 && fd < FDS && sockets[fd].family ? &sockets[fd] : NULL;
}

static void gid_of(const union wire_sockaddr *a, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (a->sa.sa_family == AF_INET6) {
		memcpy(gid, &a->in6.sin6_addr, 16);
		return;
	}
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &a->in.sin_addr, 4);
}

REAL(int, socket, (int family, int type, int protocol))
{
	int fd;

	if ((family != AF_INET && family != AF_INET6) ||
	    (type & 0xf) != SOCK_DGRAM)
		return __real_socket(family, type, protocol);
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd >= FDS)
		abort();
	if (fd >= 0)
		sockets[fd] = (struct net_socket){ .family = family };
	return fd;
}

REAL(int, close, (int fd))
{
	if (ours(fd))
		sockets[fd].family = 0;
	return __real_close(fd);
}

REAL(int, bind, (int fd, const struct sockaddr *a, socklen_t n))
{
	static uint16_t next;
	struct net_socket *s = ours(fd);
	const union wire_sockaddr *at = (const void *)a;

	if (!s)
		return __real_bind(fd, a, n);
	gid_of(at, s->gid);
	s->port = ntohs(at->in.sin_port);
	if (!s->port)
		s->port = (uint16_t)(50000 + next++ % 1000);
	return 0;
}

REAL(int, setsockopt,
     (int fd, int level, int option, const void *value, socklen_t n))
{
	return ours(fd) ? 0 : __real_setsockopt(fd, level, option, value, n);
}

REAL(int, getsockopt,
     (int fd, int level, int option, void *value, socklen_t *n))
{
	if (!ours(fd))
		return __real_getsockopt(fd, level, option, value, n);
	memset(value, 1, *n);
	return 0;
}

REAL(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n))
{
	const struct net_socket *s = ours(fd);

	if (!s)
		return __real_getsockname(fd, a, n);
	*n = wire_sockaddr_of((union wire_sockaddr *)(void *)a, s->gid, s->port,
			      INTERFACE);
	return 0;
}

/* ------------------------------------------------------- receiving */

#define ROOM 64
static struct incoming {
	struct net_packet p;
	uint8_t bytes[WIRE_MAX_BYTES];
} incoming[ROOM];
static unsigned int first, count;

bool net_put(const struct net_packet *p)
{
	struct incoming *i = &incoming[(first + count) % ROOM];

	if (count == ROOM || p->n > sizeof(i->bytes))
		return false;
	i->p = *p;
	memcpy(i->bytes, p->bytes, p->n);
	count++;
	return true;
}

bool net_is_empty(void)
{
	return !count;
}

unsigned int net_waiting(void)
{
	return count;
}

void net_lose(void)
{
	first = (first + 1) % ROOM;
	count--;
}

static struct cmsghdr *put(struct msghdr *h, struct cmsghdr *c, int level,
			   int type, const void *data, size_t n)
{
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(n);
	memcpy(CMSG_DATA(c), data, n);
	return CMSG_NXTHDR(h, c);
}

static void put_control(struct msghdr *h, const struct net_packet *p)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(h);
	const size_t room = h->msg_controllen;
	const bool v4 = wire_gid_is_ipv4(p->to);
	struct in6_pktinfo info6 = { .ipi6_ifindex = INTERFACE };
	struct in_pktinfo info = { .ipi_ifindex = INTERFACE };
	const int hops = 64, class = p->traffic_class;

	memset(c, 0, room);
	memcpy(&info6.ipi6_addr, p->to, 16);
	memcpy(&info.ipi_addr, p->to + 12, 4);
	if (v4) {
		c = put(h, c, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
		c = put(h, c, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
		put(h, c, IPPROTO_IP, IP_TOS, &p->traffic_class, 1);
		h->msg_controllen = CMSG_SPACE(sizeof(info)) +
				    CMSG_SPACE(sizeof(hops)) + CMSG_SPACE(1);
		return;
	}
	c = put(h, c, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
	c = put(h, c, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
	put(h, c, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof(class));
	h->msg_controllen =
		CMSG_SPACE(sizeof(info6)) + 2 * CMSG_SPACE(sizeof(int));
}

static void take(struct mmsghdr *m)
{
	const struct incoming *i = &incoming[first];
	struct msghdr *h = &m->msg_hdr;
	const size_t n = i->p.n < h->msg_iov->iov_len ? i->p.n :
							h->msg_iov->iov_len;

	memcpy(h->msg_iov->iov_base, i->bytes, n);
	m->msg_len = (unsigned int)n;
	h->msg_namelen = wire_sockaddr_of(h->msg_name, i->p.from, 50000,
					  INTERFACE);
	put_control(h, &i->p);
	net_lose();
}

/* Return true if the oldest queued packet is for socket s. */
static bool is_for(const struct net_socket *s)
{
	return count && s->port == WIRE_PORT &&
	       !memcmp(s->gid, incoming[first].p.to, 16);
}

REAL(int, recvmmsg,
     (int fd, struct mmsghdr *m, unsigned int most, int flags,
      struct timespec *timeout))
{
	const struct net_socket *s = ours(fd);
	unsigned int n = 0;

	if (!s)
		return __real_recvmmsg(fd, m, most, flags, timeout);
	while (n < most && is_for(s))
		take(&m[n++]);
	if (n)
		return (int)n;
	errno = EAGAIN;
	return -1;
}

/* ------------------------------------------------------- sending */

static size_t segment_of(struct msghdr *h)
{
	struct cmsghdr *c;
	uint16_t n;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		if (c->cmsg_level == IPPROTO_UDP &&
		    c->cmsg_type == UDP_SEGMENT) {
			memcpy(&n, CMSG_DATA(c), sizeof(n));
			return n;
		}
	return 0;
}

static void send_cut(const struct net_socket *s, const union wire_sockaddr *to,
		     const uint8_t *bytes, size_t n, size_t segment)
{
	struct net_packet p = { .port = s->port };

	memcpy(p.from, s->gid, 16);
	gid_of(to, p.to);
	while (n) {
		p.bytes = bytes;
		p.n = segment && segment < n ? segment : n;
		net_sent(&p);
		p.ip_id++;
		bytes += p.n;
		n -= p.n;
	}
}

REAL(int, sendmmsg,
     (int fd, struct mmsghdr *m, unsigned int n, int flags))
{
	const struct net_socket *s = ours(fd);
	struct msghdr *h;
	unsigned int i;

	if (!s)
		return __real_sendmmsg(fd, m, n, flags);
	for (i = 0; i < n; i++) {
		h = &m[i].msg_hdr;
		m[i].msg_len = (unsigned int)h->msg_iov->iov_len;
		send_cut(s, h->msg_name, h->msg_iov->iov_base,
			 h->msg_iov->iov_len, segment_of(h));
	}
	return (int)n;
}

REAL(ssize_t, sendto,
     (int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to,
      socklen_t to_n))
{
	const struct net_socket *s = ours(fd);

	if (!s)
		return __real_sendto(fd, bytes, n, flags, to, to_n);
	send_cut(s, (const void *)to, bytes, n, 0);
	return (ssize_t)n;
}

/* ------------------------------------------------------- interface */

static char name[] = "eth0";
static union wire_sockaddr own[2];
static union {
	struct sockaddr sa;
	struct sockaddr_ll ll;
} hardware = {
	.ll = { .sll_family = AF_PACKET,
		.sll_ifindex = INTERFACE,
		.sll_hatype = 1 /* Ethernet */,
		.sll_halen = 6,
		.sll_addr = { 2, 0, 0, 91, 0, 1 } },
};
static struct ifaddrs list[] = {
	{ .ifa_next = &list[1], .ifa_name = name, .ifa_flags = IFF_UP,
	  .ifa_addr = &hardware.sa },
	{ .ifa_next = &list[2], .ifa_name = name, .ifa_flags = IFF_UP,
	  .ifa_addr = &own[0].sa },
	{ .ifa_name = name, .ifa_flags = IFF_UP, .ifa_addr = &own[1].sa },
};

REAL(int, getifaddrs, (struct ifaddrs **all))
{
	wire_sockaddr_of(&own[0], net_ipv4, 0, 0);
	wire_sockaddr_of(&own[1], net_ipv6, 0, 0);
	*all = list;
	return 0;
}

REAL(void, freeifaddrs, (struct ifaddrs *all))
{
	(void)all;
}

REAL(unsigned int, if_nametoindex, (const char *which))
{
	return strcmp(which, name) ? 1 : INTERFACE;
}

/* The link-layer address of each next hop is known. */
REAL(int, neighbour_find,
     (const uint8_t gid[16], const uint8_t from[16], uint32_t interface))
{
	(void)gid;
	(void)from;
	(void)interface;
	return 0;
}

REAL(int, neighbour_wait,
     (const uint8_t gid[16], const uint8_t from[16], uint32_t interface,
      uint32_t timeout_ms))
{
	(void)timeout_ms;
	return __wrap_neighbour_find(gid, from, interface);
}

/* ------------------------------------------------------- time */

static uint64_t passed;

void net_pass(uint64_t ns)
{
	passed += ns;
}

REAL(int, clock_gettime, (clockid_t clock, struct timespec *t))
{
	int ret = __real_clock_gettime(clock, t);
	uint64_t ns;

	if (!ret && clock == CLOCK_MONOTONIC) {
		ns = (uint64_t)t->tv_nsec + passed;
		t->tv_sec += (time_t)(ns / 1000000000);
		t->tv_nsec = (long)(ns % 1000000000);
	}
	return ret;
}

REAL(bool, thread_start, (pthread_t *out, void *(*fn)(void *), void *arg))
{
	(void)out;
	(void)fn;
	(void)arg;
	return false;
}
