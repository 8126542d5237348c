// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preload library that follows the one under test in LD_PRELOAD.  It
 * imitates a kernel with one RDMA device, mlx5_9.  NETLINK_RDMA sockets are
 * socket pairs; the reply to a request is written to the other end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int ours[2] = { -1, -1 }; /* the caller's end, this library's end */

int socket(int domain, int type, int protocol)
{
	int (*next)(int, int, int) =
		(int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");

	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return next(domain, type, protocol);
	if (ours[1] >= 0)
		close(ours[1]);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ours))
		return -1;
	return ours[0];
}

static void put(struct nlmsghdr *h, int type, const void *data, size_t len)
{
	struct nlattr *a = (struct nlattr *)((char *)h + h->nlmsg_len);

	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy((char *)a + NLA_HDRLEN, data, len);
	h->nlmsg_len += (uint32_t)NLA_ALIGN(a->nla_len);
}

static void begin(struct nlmsghdr *h, const struct nlmsghdr *req, int type)
{
	h->nlmsg_len = NLMSG_HDRLEN;
	h->nlmsg_type = (uint16_t)type;
	h->nlmsg_flags = req->nlmsg_flags & NLM_F_DUMP ? NLM_F_MULTI : 0;
	h->nlmsg_seq = req->nlmsg_seq;
	h->nlmsg_pid = 4711;
}

static void answer(const struct nlmsghdr *req)
{
	const uint32_t index = 0, ports = 1;
	const int get = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET);
	const int dump = (req->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	struct nlmsgerr err = { .error = 0, .msg = *req };
	_Alignas(8) char buf[1024] = { 0 };
	struct nlmsghdr *h = (struct nlmsghdr *)buf;

	if (req->nlmsg_type == get) {
		begin(h, req, get);
		put(h, RDMA_NLDEV_ATTR_DEV_INDEX, &index, 4);
		put(h, RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_9", 7);
		put(h, RDMA_NLDEV_ATTR_PORT_INDEX, &ports, 4);
		put(h, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, "\001", 1);
		send(ours[1], buf, h->nlmsg_len, 0);
	} else {
		err.error = -EOPNOTSUPP;
	}
	begin(h, req, dump && !err.error ? NLMSG_DONE : NLMSG_ERROR);
	memcpy(buf + NLMSG_HDRLEN, &err, sizeof(err));
	h->nlmsg_len += (uint32_t)sizeof(err);
	send(ours[1], buf, h->nlmsg_len, 0);
}

ssize_t sendto(int fd, const void *buf, size_t len, int flags,
	       const struct sockaddr *to, socklen_t to_len)
{
	ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *,
			socklen_t) =
		(ssize_t(*)(int, const void *, size_t, int,
			    const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT,
								      "sendto");
	socklen_t domain_len = sizeof(int);
	int domain = 0;

	/* the descriptor may have been closed and reused */
	if (fd != ours[0] || len < NLMSG_HDRLEN ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) ||
	    domain != AF_UNIX)
		return next(fd, buf, len, flags, to, to_len);
	answer(buf);
	return (ssize_t)len;
}
