// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <linux/udp.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/address.h"
#include "wire/socket.h"

/*
 * Socket buffer size: windows of 128 packets of several peers.  It may exceed
 * rmem_max and wmem_max only with CAP_NET_ADMIN.
 */
#define ROOM (8 << 20)

#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif
#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70
#endif

/*
 * Return whether sockets use IPv4 for the GID.  ff0e::ffff:224.0.0.1 is an
 * IPv6 group for them.
 */
static bool is_ipv4(const uint8_t gid[16])
{
	return wire_gid_is_ipv4(gid) && !gid[0];
}

socklen_t wire_sockaddr_of(union wire_sockaddr *to, const uint8_t gid[16],
			   uint16_t port, uint32_t interface)
{
	memset(to, 0, sizeof(*to));
	if (is_ipv4(gid)) {
		to->in.sin_family = AF_INET;
		to->in.sin_port = htons(port);
		memcpy(&to->in.sin_addr, gid + 12, 4);
		return sizeof(to->in);
	}
	to->in6.sin6_family = AF_INET6;
	to->in6.sin6_port = htons(port);
	memcpy(&to->in6.sin6_addr, gid, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&to->in6.sin6_addr) ||
	    IN6_IS_ADDR_MULTICAST(&to->in6.sin6_addr))
		to->in6.sin6_scope_id = interface;
	return sizeof(to->in6);
}

static bool needs_interface(const union wire_sockaddr *a, unsigned int flags)
{
	return !(flags & WIRE_UNICAST) ||
	       (a->sa.sa_family == AF_INET6 &&
		IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr));
}

static bool has_address(const struct ifaddrs *i, const union wire_sockaddr *a)
{
	const union wire_sockaddr *b = (const void *)i->ifa_addr;

	if (!b || b->sa.sa_family != a->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

/*
 * Return the index of the interface that has the address; 0 if none has it,
 * which is possible for usable addresses (127.0.0.2).
 */
static uint32_t interface_of(const union wire_sockaddr *a)
{
	struct ifaddrs *all, *i;
	uint32_t index = 0;

	if (getifaddrs(&all))
		return 0;
	for (i = all; i && !index; i = i->ifa_next)
		if (has_address(i, a))
			index = if_nametoindex(i->ifa_name);
	freeifaddrs(all);
	return index;
}

#define MTU_MIN 1 /* IBV_MTU_256 */
#define MTU_MAX 5 /* IBV_MTU_4096 */

uint32_t wire_interface_mtu(const uint8_t gid[16], char name[IF_NAMESIZE])
{
	const int saved = errno;
	struct ifreq r = { 0 };
	union wire_sockaddr own;
	int fd;

	wire_sockaddr_of(&own, gid, 0, 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (!if_indextoname(interface_of(&own), name))
		name[0] = 0;
	memcpy(r.ifr_name, name, IF_NAMESIZE);
	if (!name[0] || ioctl(fd, SIOCGIFMTU, &r))
		r.ifr_mtu = 0;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return (uint32_t)r.ifr_mtu;
}

uint8_t wire_active_mtu(const uint8_t gid[16])
{
	uint8_t mtu = MTU_MAX;
	char name[IF_NAMESIZE];
	const uint32_t bytes = wire_interface_mtu(gid, name);

	while (mtu > MTU_MIN && bytes < (128u << mtu) + WIRE_HEADERS)
		mtu--;
	return bytes ? mtu : 0;
}

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno :
								      0;
}

struct option {
	int level, option, value;
};

static const struct option ipv4_options[] = {
	{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO },
	{ IPPROTO_IP, IP_PKTINFO, 1 },
	{ IPPROTO_IP, IP_RECVTOS, 1 },
	{ IPPROTO_IP, IP_RECVTTL, 1 },
	{ SOL_SOCKET, SO_RXQ_OVFL, 1 },
};
/*
 * UDP_NO_CHECK6_RX: accept packets without UDP checksum, as rxe sends them.
 * IPV6_AUTOFLOWLABEL 0: if the path has flow label 0, send 0.
 */
static const struct option ipv6_options[] = {
	{ IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0 },
	{ IPPROTO_IPV6, IPV6_V6ONLY, 1 },
	{ IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO, 1 },
	{ IPPROTO_IPV6, IPV6_RECVTCLASS, 1 },
	{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1 },
	{ IPPROTO_IPV6, IPV6_FLOWINFO, 1 },
	{ IPPROTO_UDP, UDP_NO_CHECK6_RX, 1 },
	{ SOL_SOCKET, SO_RXQ_OVFL, 1 },
};

static int set_all(int fd, const struct option *o, size_t n)
{
	int err = 0;

	for (; n-- && !err; o++)
		err = set(fd, o->level, o->option, o->value);
	return err;
}

/* Let the kernel drop all received packets, by a BPF filter. */
static int take_nothing(int fd)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { 1, &none };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
			  sizeof(filter)) ?
		       -errno :
		       0;
}

/* Enlarge the socket buffers.  Return the size of the receive buffer. */
static uint32_t make_room(int fd)
{
	socklen_t len = sizeof(int);
	int room = 0;

	if (set(fd, SOL_SOCKET, SO_RCVBUFFORCE, ROOM))
		set(fd, SOL_SOCKET, SO_RCVBUF, ROOM);
	if (set(fd, SOL_SOCKET, SO_SNDBUFFORCE, ROOM))
		set(fd, SOL_SOCKET, SO_SNDBUF, ROOM);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, &len);
	return (uint32_t)room;
}

/* Set the interface and the loopback of multicast packets that are sent. */
static int set_groups(const struct wire_socket *s, bool loops)
{
	const struct ip_mreqn in = { .imr_ifindex = (int)s->interface };
	int err;

	if (s->ipv6) {
		err = set(s->fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, loops);
		return err ? err :
			     set(s->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF,
				 (int)s->interface);
	}
	err = set(s->fd, IPPROTO_IP, IP_MULTICAST_LOOP, loops);
	if (err)
		return err;
	return setsockopt(s->fd, IPPROTO_IP, IP_MULTICAST_IF, &in, sizeof(in)) ?
		       -errno :
		       0;
}

static int set_up(struct wire_socket *s, unsigned int flags)
{
	int err;

	err = s->ipv6 ? set_all(s->fd, ipv6_options,
				sizeof(ipv6_options) / sizeof(*ipv6_options)) :
			set_all(s->fd, ipv4_options,
				sizeof(ipv4_options) / sizeof(*ipv4_options));
	if (!err)
		err = set_groups(s, flags & WIRE_LOOPS);
	if (!err && flags & WIRE_SENDS_ONLY)
		err = take_nothing(s->fd);
	/* UDP_GRO is optional: it requires Linux 5.0 */
	if (!err && !(flags & WIRE_SENDS_ONLY))
		set(s->fd, IPPROTO_UDP, UDP_GRO, 1);
	s->room = make_room(s->fd);
	return err;
}

static int join(const struct wire_socket *s, const union wire_sockaddr *group)
{
	const struct ip_mreqn in = { .imr_multiaddr = group->in.sin_addr,
				     .imr_ifindex = (int)s->interface };
	const struct ipv6_mreq in6 = { .ipv6mr_multiaddr = group->in6.sin6_addr,
				       .ipv6mr_interface = s->interface };
	int err;

	if (s->ipv6)
		err = setsockopt(s->fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &in6,
				 sizeof(in6));
	else
		err = setsockopt(s->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &in,
				 sizeof(in));
	return err ? -errno : 0;
}

/*
 * Open a socket bound to @gid or, if @group is not NULL, to the group.  If no
 * interface has the address, s->interface is 0, and the kernel chooses the
 * interface of the group by its route.
 */
static int open_at(struct wire_socket *s, const uint8_t gid[16],
		   const uint8_t *group, uint16_t port, unsigned int flags)
{
	const int saved = errno;
	union wire_sockaddr own, at;
	socklen_t len = sizeof(at);
	int err;

	memset(s, 0, sizeof(*s));
	memcpy(s->gid, gid, 16);
	s->ipv6 = !is_ipv4(gid);
	wire_sockaddr_of(&own, gid, port, 0);
	if (needs_interface(&own, flags))
		s->interface = interface_of(&own);
	s->fd = socket(own.sa.sa_family,
		       SOCK_DGRAM | SOCK_CLOEXEC |
			       (flags & WIRE_NONBLOCKING ? SOCK_NONBLOCK : 0),
		       0);
	if (s->fd < 0)
		return -errno;
	err = set_up(s, flags);
	if (!err && (group || flags & WIRE_TAKES_OVER))
		err = set(s->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (err)
		goto err_close;
	len = wire_sockaddr_of(&at, group ? group : gid, port, s->interface);
	if (bind(s->fd, &at.sa, len) ||
	    getsockname(s->fd, &own.sa, &(socklen_t){ sizeof(own) })) {
		err = -errno;
		goto err_close;
	}
	/*
	 * The kernel delivers to the socket that was bound last, of several
	 * unconnected ones with equal addresses (socket.h, WIRE_TAKES_OVER).
	 */
	if (flags & WIRE_YIELDS)
		set(s->fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* sin_port and sin6_port have the same offset */
	s->port = ntohs(own.in.sin_port);
	if (group && (err = join(s, &at)))
		goto err_close;
	errno = saved;
	return 0;

err_close:
	wire_socket_close(s);
	return err;
}

int wire_socket_open(struct wire_socket *s, const uint8_t gid[16],
		     uint16_t port, unsigned int flags)
{
	return open_at(s, gid, NULL, port, flags);
}

int wire_socket_open_group(struct wire_socket *s, const uint8_t gid[16],
			   const uint8_t group[16], uint16_t port,
			   unsigned int flags)
{
	if (!wire_gid_is_group(group) || is_ipv4(group) != is_ipv4(gid))
		return -EINVAL;
	return open_at(s, gid, group, port, flags);
}

void wire_socket_close(struct wire_socket *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}
