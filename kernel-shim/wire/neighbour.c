// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "wire/neighbour.h"
#include "wire/socket.h"

#define PORT_DISCARD 9
#define ANSWER_BYTES 16384
#define CHECK_MS 100 /* interval of checks without a notification */
#define NETLINK_MS 1000 /* timeout of a reply; the kernel replies at once */

/* The next hop: the destination, or a router on the route to it. */
struct hop {
	uint8_t family; /* 0: none needed */
	uint8_t bytes; /* length of address */
	uint8_t address[16];
	uint32_t interface;
};

/* ------------------------------------------------------------- netlink */

/* An rtnetlink(7) request: a header of `fixed` bytes, and attributes. */
struct request {
	struct nlmsghdr n;
	union {
		struct rtmsg route;
		struct ndmsg neighbour;
	};
	uint8_t attributes[96];
};

static void request_begin(struct request *r, uint16_t type, uint16_t flags,
			  size_t fixed)
{
	memset(r, 0, sizeof(*r));
	r->n.nlmsg_type = type;
	r->n.nlmsg_flags = NLM_F_REQUEST | flags;
	r->n.nlmsg_len = (uint32_t)NLMSG_LENGTH(fixed);
}

static void request_add(struct request *r, uint16_t type, const void *data,
			size_t bytes)
{
	struct rtattr *a = (void *)((char *)r + NLMSG_ALIGN(r->n.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(a), data, bytes);
	r->n.nlmsg_len =
		(uint32_t)(NLMSG_ALIGN(r->n.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

static int netlink_open(uint32_t groups)
{
	const struct sockaddr_nl own = { .nl_family = AF_NETLINK,
					 .nl_groups = groups };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&own, sizeof(own))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool wait_for(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, fd >= 0, ms) == 1;
}

/*
 * Callback for a reply message; @data is the @bytes bytes after the netlink
 * header.  Return true if no further message is needed.
 */
typedef bool take_fn(void *arg, uint16_t type, const void *data, size_t bytes);

/*
 * Process n bytes of a reply.  Return false if more is to be received.  If
 * the kernel replies with an error, *err is that, or 0 for an
 * acknowledgement.
 */
static bool answer_take(const uint8_t *buf, size_t n, take_fn *take, void *arg,
			int *err)
{
	const struct nlmsghdr *h = (const void *)buf;
	const struct nlmsgerr *e;
	bool multi = false;

	for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		multi = h->nlmsg_flags & NLM_F_MULTI;
		if (h->nlmsg_type == NLMSG_DONE)
			return true;
		if (h->nlmsg_type == NLMSG_ERROR) {
			e = NLMSG_DATA(h);
			*err = h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ?
				       -EIO :
				       e->error;
			return true;
		}
		if (take(arg, h->nlmsg_type, NLMSG_DATA(h),
			 h->nlmsg_len - NLMSG_HDRLEN))
			return true;
	}
	return !multi;
}

/*
 * Send a request and pass the reply to @take.  Return 0; the -errno that the
 * kernel replied; or -EOPNOTSUPP if netlink(7) does not work or there was no
 * reply in NETLINK_MS.
 */
static int netlink_query(const struct request *r, take_fn *take, void *arg)
{
	_Alignas(struct nlmsghdr) uint8_t buf[ANSWER_BYTES];
	int fd = netlink_open(0), err = 0;
	bool answered = false;
	ssize_t n;

	if (fd < 0)
		return -EOPNOTSUPP;
	n = send(fd, r, r->n.nlmsg_len, 0);
	while (n >= 0 && !answered && wait_for(fd, NETLINK_MS)) {
		n = recv(fd, buf, sizeof(buf), 0);
		answered = n >= 0 &&
			   answer_take(buf, (size_t)n, take, arg, &err);
	}
	close(fd);
	return answered ? err : -EOPNOTSUPP;
}

/* ---------------------------------------------------------------- route */

static void hop_set(struct hop *h, uint8_t family, const void *address,
		    size_t bytes)
{
	const size_t want = family == AF_INET ? 4 : 16;

	if ((family != AF_INET && family != AF_INET6) || bytes < want)
		return;
	h->family = family;
	h->bytes = (uint8_t)want;
	memcpy(h->address, address, want);
}

/* Callback: store the gateway and the interface of a route in the hop. */
static bool take_route(void *arg, uint16_t type, const void *data, size_t bytes)
{
	const struct rtmsg *m = data;
	const struct rtattr *a;
	const struct rtvia *via;
	struct hop *h = arg;
	size_t n;

	if (type != RTM_NEWROUTE || bytes < sizeof(*m))
		return false;
	if (m->rtm_type != RTN_UNICAST) { /* local or multicast */
		h->family = 0;
		return true;
	}
	n = bytes - NLMSG_ALIGN(sizeof(*m));
	for (a = RTM_RTA(m); RTA_OK(a, n); a = RTA_NEXT(a, n)) {
		if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) >= 4)
			memcpy(&h->interface, RTA_DATA(a), 4);
		if (a->rta_type == RTA_GATEWAY)
			hop_set(h, m->rtm_family, RTA_DATA(a), RTA_PAYLOAD(a));
		if (a->rta_type == RTA_VIA &&
		    RTA_PAYLOAD(a) > sizeof(via->rtvia_family)) {
			via = RTA_DATA(a);
			hop_set(h, (uint8_t)via->rtvia_family, via->rtvia_addr,
				RTA_PAYLOAD(a) - sizeof(via->rtvia_family));
		}
	}
	return true;
}

static const uint8_t *bytes_of(const union wire_sockaddr *a, size_t *bytes)
{
	const bool v4 = a->sa.sa_family == AF_INET;

	*bytes = v4 ? 4 : 16;
	return v4 ? (const void *)&a->in.sin_addr :
		    (const void *)&a->in6.sin6_addr;
}

/* Find the next hop to @to.  Return 0 or an error of netlink_query(). */
static int hop_find(struct hop *h, const union wire_sockaddr *to,
		    const union wire_sockaddr *from)
{
	const uint32_t interface =
		to->sa.sa_family == AF_INET ? 0 : to->in6.sin6_scope_id;
	struct request r;
	const uint8_t *a;
	size_t n;

	a = bytes_of(to, &n);
	*h = (struct hop){ 0 };
	hop_set(h, (uint8_t)to->sa.sa_family, a, n);
	request_begin(&r, RTM_GETROUTE, 0, sizeof(r.route));
	r.route.rtm_family = (uint8_t)to->sa.sa_family;
	r.route.rtm_dst_len = r.route.rtm_src_len = (uint8_t)(8 * n);
	request_add(&r, RTA_DST, a, n);
	request_add(&r, RTA_SRC, bytes_of(from, &n), n);
	if (interface)
		request_add(&r, RTA_OIF, &interface, sizeof(interface));
	return netlink_query(&r, take_route, h);
}

/* ------------------------------------------------------------ neighbour */

/* Return whether the link resolves addresses, by ARP or NDP. */
static bool link_resolves(int fd, uint32_t interface)
{
	struct ifreq r = { .ifr_flags = 0 };

	if (!if_indextoname(interface, r.ifr_name) ||
	    ioctl(fd, SIOCGIFFLAGS, &r))
		return false;
	return !(r.ifr_flags & (IFF_NOARP | IFF_LOOPBACK | IFF_POINTOPOINT));
}

struct search {
	const struct hop *hop;
	uint16_t state; /* NUD_*; 0: the kernel has no entry */
};

/* Callback: store the state if the message is the entry of the hop. */
static bool take_neighbour(void *arg, uint16_t type, const void *data,
			   size_t bytes)
{
	const struct ndmsg *m = data;
	const struct rtattr *a;
	struct search *s = arg;
	size_t n;

	if (type != RTM_NEWNEIGH || bytes < sizeof(*m) ||
	    m->ndm_family != s->hop->family ||
	    m->ndm_ifindex != (int)s->hop->interface)
		return false;
	n = bytes - NLMSG_ALIGN(sizeof(*m));
	a = (const void *)((const char *)m + NLMSG_ALIGN(sizeof(*m)));
	for (; RTA_OK(a, n); a = RTA_NEXT(a, n))
		if (a->rta_type == NDA_DST && RTA_PAYLOAD(a) >= s->hop->bytes &&
		    !memcmp(RTA_DATA(a), s->hop->address, s->hop->bytes)) {
			s->state = m->ndm_state;
			return true;
		}
	return false;
}

/*
 * Query the kernel's entry of the hop, or dump all entries: before Linux 5.0
 * a query of one entry fails with EOPNOTSUPP.
 */
static int neighbour_query(struct search *s, bool all)
{
	const int interface = (int)s->hop->interface;
	struct request r;

	request_begin(&r, RTM_GETNEIGH, all ? NLM_F_DUMP : 0,
		      sizeof(r.neighbour));
	r.neighbour.ndm_family = s->hop->family;
	if (all) {
		request_add(&r, NDA_IFINDEX, &interface, sizeof(interface));
	} else {
		r.neighbour.ndm_ifindex = interface;
		request_add(&r, NDA_DST, s->hop->address, s->hop->bytes);
	}
	return netlink_query(&r, take_neighbour, s);
}

/* States in which the entry has a link-layer address */
#define KNOWN                                                                \
	(NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | \
	 NUD_DELAY)

/*
 * Return 0 if the link-layer address of the hop is known, not needed, or
 * cannot be queried.  Otherwise make the kernel resolve it, by an empty
 * datagram on the connected socket fd, and return -EINPROGRESS.
 */
static int hop_resolve(const struct hop *h, int fd)
{
	struct search s = { .hop = h };
	int err;

	if (!h->family || !link_resolves(fd, h->interface))
		return 0;
	err = neighbour_query(&s, false);
	if (err == -EOPNOTSUPP)
		err = neighbour_query(&s, true);
	if (err && err != -ENOENT)
		return 0;
	if (s.state & KNOWN)
		return 0;
	/*
	 * An error of send() is ignored: it belongs to an earlier datagram,
	 * or the next call of neighbour_find() finds it as well.
	 */
	if (!(s.state & NUD_INCOMPLETE))
		send(fd, "", 0, MSG_NOSIGNAL);
	return -EINPROGRESS;
}

int neighbour_find(const uint8_t gid[16], const uint8_t from[16],
		   uint32_t interface)
{
	const int saved = errno;
	union wire_sockaddr to, own;
	socklen_t to_len, own_len;
	int fd, err = 0;
	struct hop h;

	to_len = wire_sockaddr_of(&to, gid, PORT_DISCARD, interface);
	own_len = wire_sockaddr_of(&own, from, 0, interface);
	fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return -errno;
	if (bind(fd, &own.sa, own_len) || connect(fd, &to.sa, to_len))
		err = -errno;
	else if (!hop_find(&h, &to, &own))
		err = hop_resolve(&h, fd);
	close(fd);
	errno = saved;
	return err;
}

/* ----------------------------------------------------------------- wait */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Discard notifications: the caller queries the state of the entry. */
static void drain(int fd)
{
	uint8_t some[256];

	while (fd >= 0 && recv(fd, some, sizeof(some), 0) >= 0)
		;
}

int neighbour_wait(const uint8_t gid[16], const uint8_t from[16],
		   uint32_t interface, uint32_t timeout_ms)
{
	const uint64_t end = now_ms() + timeout_ms;
	const int saved = errno;
	int fd, err = neighbour_find(gid, from, interface);
	uint64_t now;

	if (err != -EINPROGRESS)
		return err;
	fd = netlink_open(RTMGRP_NEIGH);
	while ((err = neighbour_find(gid, from, interface)) == -EINPROGRESS) {
		now = now_ms();
		if (now >= end) {
			err = -ETIMEDOUT;
			break;
		}
		wait_for(fd,
			 (int)(end - now < CHECK_MS ? end - now : CHECK_MS));
		drain(fd);
	}
	if (fd >= 0)
		close(fd);
	errno = saved;
	return err;
}
