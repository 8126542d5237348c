// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queries of the kernel's IP configuration: local addresses, source address
 * and MTU of a route, bindv6only.  Each uses a UDP socket that is bound or
 * connected and sends nothing.  Commands call these functions with the tables
 * locked.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "command.h"
#include "wire/network.h"

#define MTU_MIN 1 /* IBV_MTU_256 */

static int udp_socket(const union cm_addr *a)
{
	return socket(a->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

bool ucma_is_local(struct urxe_fabric *f, const union cm_addr *a)
{
	union cm_addr any_port = *a;
	bool local;
	int fd;

	/* only bind checks the interface of a link-local address */
	if (cm_addr_known(f->dev, a) &&
	    (cm_addr_device(f->dev, 0, a) ||
	     !(a->sa.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr))))
		return true;
	fd = udp_socket(a);
	if (fd < 0)
		return false;
	cm_addr_set_port(&any_port, 0);
	local = !bind(fd, &any_port.sa, (socklen_t)cm_addr_size(a));
	close(fd);
	return local;
}

/*
 * If @dst is a multicast group and *src an address of the same family, bind
 * to it: it selects the interface, and no route to the group is needed.
 */
static int route_from(const struct urxe_dev *dev, int fd,
		      const union cm_addr *dst, const union cm_addr *src)
{
	union cm_addr from = *src;
	uint8_t gid[16];

	cm_addr_raw(dst, gid);
	if (!mcast_is_group(gid) || cm_addr_any(dev, src) ||
	    src->sa.sa_family != dst->sa.sa_family)
		return 0;
	cm_addr_set_port(&from, 0);
	return bind(fd, &from.sa, (socklen_t)cm_addr_size(&from));
}

int ucma_route(const struct urxe_dev *dev, const union cm_addr *dst,
	       union cm_addr *src)
{
	union cm_addr to = *dst, from;
	socklen_t len = sizeof(from);
	int fd, ret = 0;

	fd = udp_socket(dst);
	if (fd < 0)
		return -errno;
	if (!cm_addr_port(&to))
		cm_addr_set_port(&to, 9); /* discard; must not be 0 */
	if (route_from(dev, fd, dst, src) ||
	    connect(fd, &to.sa, (socklen_t)cm_addr_size(dst)) ||
	    getsockname(fd, &from.sa, &len)) {
		ret = -errno;
	} else {
		cm_addr_set_port(&from, cm_addr_port(src));
		*src = from;
	}
	close(fd);
	return ret;
}

/* Upper bound of the headers of a RoCE packet, from IP on, in bytes */
#define HEADERS 80

uint8_t ucma_path_mtu(const union cm_addr *dst)
{
	union cm_addr to = *dst;
	socklen_t len = sizeof(int);
	int fd, bytes = 0;
	uint8_t mtu;

	if (dst->sa.sa_family == CM_AF_IB)
		return MTU_MIN;
	fd = udp_socket(dst);
	if (fd < 0)
		return MTU_MIN;
	cm_addr_set_port(&to, WIRE_PORT);
	if (!connect(fd, &to.sa, (socklen_t)cm_addr_size(dst)))
		getsockopt(fd,
			   dst->sa.sa_family == AF_INET ? IPPROTO_IP :
							  IPPROTO_IPV6,
			   dst->sa.sa_family == AF_INET ? IP_MTU : IPV6_MTU,
			   &bytes, &len);
	close(fd);
	for (mtu = CM_MTU; mtu > MTU_MIN; mtu--)
		if (bytes >= (128 << mtu) + HEADERS)
			break;
	return mtu;
}

bool ucma_one_family(const union cm_addr *a)
{
	socklen_t len = sizeof(int);
	int fd, only = 0;

	if (a->sa.sa_family != AF_INET6)
		return a->sa.sa_family == AF_INET;
	fd = udp_socket(a); /* IPV6_V6ONLY defaults to sysctl bindv6only */
	if (fd < 0)
		return false;
	getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len);
	close(fd);
	return only;
}

bool ucma_is_privileged(void)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2] = { 0 };

	return !syscall(SYS_capget, &hdr, data) &&
	       data[0].effective & 1u << CAP_NET_BIND_SERVICE;
}
