// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Wrappers of functions on descriptors:
 *
 *	ioctl			verbs on a context (preload/uverbs.h), and
 *				the provider's event tags (shared/event_tag.h),
 *				agents of umad devices (preload/umad/umad.h)
 *	socket, send,		requests on a NETLINK_RDMA socket
 *	sendto, sendmsg		(preload/netlink)
 *	inotify_add_watch	libibverbs' wait for a device (special.h)
 *
 * All other calls go to libc unchanged.
 */
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "preload/event.h"
#include "preload/netlink/netlink.h"
#include "preload/umad/umad.h"
#include "preload/uverbs.h"
#include "special.h"
#include "wrap.h"

WRAP(int, ioctl, (int fd, unsigned long request, ...))
{
	va_list ap;
	void *arg;
	int ret;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if ((request == EVENT_IOC_WATCH || request == EVENT_IOC_FORGET) &&
	    shim_active()) {
		int saved = shim_enter();

		ret = request == EVENT_IOC_WATCH ? event_element_add(arg) :
						   event_element_remove(arg);
		shim_leave(ret ? -ret : saved);
		return ret ? -1 : 0;
	}
	if ((unsigned int)request == RDMA_VERBS_IOCTL && shim_active()) {
		int saved = shim_enter();

		ret = uverbs_ioctl(fd, arg);
		shim_leave(ret < 0 ? -ret : saved);
		if (ret <= 0)
			return ret < 0 ? -1 : 0;
	}
	if (load_relaxed(&umad_used) && _IOC_TYPE(request) == IB_IOCTL_MAGIC &&
	    !shim_inside && umad_ioctl(fd, request, arg, &ret))
		return ret;
	return NEXT(ioctl)(fd, request, arg);
}

WRAP(int, inotify_add_watch, (int fd, const char *path, uint32_t mask))
{
	int err = shim_active() && path ? special_watch(path) : 0;

	if (err) {
		errno = err;
		return -1;
	}
	return NEXT(inotify_add_watch)(fd, path, mask);
}

WRAP(int, socket, (int domain, int type, int protocol))
{
	int fd, saved;

	if (domain == AF_NETLINK && protocol == NETLINK_RDMA &&
	    shim_active()) {
		saved = shim_enter();
		fd = netlink_socket(type);
		shim_leave(fd < 0 ? -fd : saved);
		return fd < 0 ? -1 : fd;
	}
	fd = NEXT(socket)(domain, type, protocol);
	if (fd >= 0 && !shim_inside)
		netlink_forget(fd);
	return fd;
}

/*
 * Maximum size in bytes of a request sent by sendmsg; longer messages go to
 * libc.
 */
#define REQUEST_MAX 4096

/* Answer a request to a stand-in of NETLINK_RDMA; false: it is no such fd. */
static bool send_emulated(int fd, const void *buf, size_t len)
{
	int saved;
	bool is;

	if (!netlink_maybe(fd) || !shim_active())
		return false;
	saved = shim_enter();
	is = netlink_request(fd, buf, len);
	shim_leave(saved);
	return is;
}

WRAP(ssize_t, send, (int fd, const void *buf, size_t len, int flags))
{
	if (send_emulated(fd, buf, len))
		return (ssize_t)len;
	return NEXT(send)(fd, buf, len, flags);
}

WRAP(ssize_t, sendto,
     (int fd, const void *buf, size_t len, int flags,
      const struct sockaddr *to, socklen_t to_len))
{
	if (send_emulated(fd, buf, len))
		return (ssize_t)len;
	return NEXT(sendto)(fd, buf, len, flags, to, to_len);
}

/*
 * The same for a message; returns its length, or -1.  Not inlined: the buffer
 * must not burden sendmsg in threads with small stacks.
 */
static __attribute__((noinline)) ssize_t
send_emulated_msg(int fd, const struct msghdr *msg)
{
	char buf[REQUEST_MAX];
	size_t i, len = 0;

	for (i = 0; i < (size_t)msg->msg_iovlen; i++) {
		const struct iovec *v = &msg->msg_iov[i];

		if (v->iov_len > sizeof(buf) - len)
			return -1;
		memcpy(buf + len, v->iov_base, v->iov_len);
		len += v->iov_len;
	}
	return send_emulated(fd, buf, len) ? (ssize_t)len : -1;
}

WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags))
{
	ssize_t len;

	if (netlink_maybe(fd) && msg) {
		len = send_emulated_msg(fd, msg);
		if (len >= 0)
			return len;
	}
	return NEXT(sendmsg)(fd, msg, flags);
}
