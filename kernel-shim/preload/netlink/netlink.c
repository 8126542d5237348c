// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Emulated NETLINK_RDMA sockets (rdma-netlink): transport of requests and
 * responses.  nldev.c executes the requests.
 *
 * An emulated socket, called stand-in, is a NETLINK_USERSOCK socket.  The
 * send wrappers pass its requests to netlink_request() in place of the
 * kernel.  The responses are sent from the stand-in to its own port, so the
 * program receives them with the kernel's recvmsg, and bind, getsockname,
 * poll and close need no wrapper.
 *
 * A bitmap by descriptor number records which sockets are stand-ins.  close
 * is not intercepted, so a set bit is only a hint; SO_DOMAIN and SO_PROTOCOL
 * of the socket decide.
 */
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "libnl.h"
#include "netlink.h"
#include "nldev.h"

#define MAX_FD 65536
/*
 * Responses stay in the receive buffer of the stand-in until the program
 * reads them.  If the buffer is full, it is enlarged to ANSWER_ROOM bytes, of
 * which LAST_ROOM are reserved for the last message of a response.
 * MAX_MESSAGE is less than what clients read at a time, and such a message
 * takes one page.
 */
#define ANSWER_ROOM (2 << 20)
#define LAST_ROOM (16 << 10)
#define MAX_MESSAGE 3584

static _Atomic uint64_t emulated[MAX_FD / 64];

bool netlink_maybe(int fd)
{
	return fd >= 0 && fd < MAX_FD &&
	       load_relaxed(&emulated[fd / 64]) >> (fd % 64) & 1;
}

void netlink_forget(int fd)
{
	if (netlink_maybe(fd))
		atomic_fetch_and_explicit(&emulated[fd / 64],
					  ~(1ull << (fd % 64)),
					  memory_order_relaxed);
}

int netlink_socket(int type)
{
	int fd;

	/* libibverbs searches its list of drivers after this */
	shim_load_provider();
	if (!libnl_load())
		return -EPROTONOSUPPORT; /* as from a kernel without RDMA */
	fd = socket(AF_NETLINK, type, NETLINK_USERSOCK);
	if (fd < 0)
		return -errno;
	if (fd >= MAX_FD) {
		close(fd);
		return -EPROTONOSUPPORT;
	}
	atomic_fetch_or_explicit(&emulated[fd / 64], 1ull << (fd % 64),
				 memory_order_relaxed);
	return fd;
}

/* ---------------------------------------------------------------- answers */

/*
 * Enlarge the receive buffer, up to the limit of the system
 * (net.core.rmem_max).  @last: use the whole buffer; otherwise leave
 * LAST_ROOM bytes for the last message.
 */
static void nl_make_room(int fd, bool last)
{
	int room = ANSWER_ROOM;
	socklen_t len = sizeof(room);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	/* getsockopt returns twice the value that was set: socket(7) */
	if (last || getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, &len))
		return;
	room = room / 2 - LAST_ROOM;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
}

/*
 * Queue a message on the stand-in: 0, or -errno; -ENOBUFS: it is full.  Do
 * not block: the reader may be this thread, which then would wait forever.
 */
static int nl_try_answer(struct nl_request *r, const struct nlmsghdr *h)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK, .nl_pid = r->port };

	if (sendto(r->emulated, h, h->nlmsg_len, MSG_DONTWAIT,
		   (struct sockaddr *)&to, sizeof(to)) >= 0)
		return 0;
	return errno == EAGAIN ? -ENOBUFS : -errno;
}

/*
 * Queue a message that is not the last one.  The first error is stored in
 * r->err.  After -ENOBUFS, no further messages are queued.
 */
static void nl_answer(struct nl_request *r, const struct nlmsghdr *h)
{
	int ret;

	if (r->err == -ENOBUFS)
		return;
	ret = nl_try_answer(r, h);
	if (ret == -ENOBUFS) {
		nl_make_room(r->emulated, false);
		ret = nl_try_answer(r, h);
	}
	if (ret && !r->err)
		r->err = ret;
}

/*
 * Queue the last message of a response.  It may use the reserved part of the
 * buffer, because the program waits for it.
 */
static void nl_answer_last(struct nl_request *r, const struct nlmsghdr *h)
{
	if (nl_try_answer(r, h) == -ENOBUFS) {
		nl_make_room(r->emulated, true);
		nl_try_answer(r, h);
	}
}

struct nl_msg *nl_reply_new(struct nl_request *r, int op)
{
	struct nl_msg *msg = nl()->nlmsg_alloc_size(MAX_MESSAGE);
	int type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op);

	if (msg && !nl()->nlmsg_put(msg, r->port, r->hdr->nlmsg_seq, type, 0,
				    nl_is_dump(r) ? NLM_F_MULTI : 0)) {
		nl()->nlmsg_free(msg);
		msg = NULL;
	}
	if (!msg && !r->err)
		r->err = -ENOMEM;
	return msg;
}

void nl_reply_send(struct nl_request *r, struct nl_msg *msg, bool failed)
{
	if (!failed)
		nl_answer(r, nl()->nlmsg_hdr(msg));
	else if (!r->err)
		r->err = -EMSGSIZE;
	nl()->nlmsg_free(msg);
}

/*
 * Complete the response: NLMSG_DONE after a dump, NLMSG_ERROR if @err or
 * r->err is set, or the acknowledgement if NLM_F_ACK requests one.
 */
static void nl_finish(struct nl_request *r, int err)
{
	struct {
		struct nlmsghdr h;
		union {
			struct nlmsgerr e;
			int done;
		} u;
	} m;
	bool done = nl_is_dump(r) && !err;

	if (!err && r->err)
		err = r->err;
	if (!done && !err && !(r->hdr->nlmsg_flags & NLM_F_ACK))
		return;
	memset(&m, 0, sizeof(m));
	m.h.nlmsg_seq = r->hdr->nlmsg_seq;
	m.h.nlmsg_pid = r->port;
	if (done) {
		m.h.nlmsg_type = NLMSG_DONE;
		m.h.nlmsg_flags = NLM_F_MULTI;
		m.h.nlmsg_len = NLMSG_LENGTH(sizeof(m.u.done));
		m.u.done = err;
	} else {
		m.h.nlmsg_type = NLMSG_ERROR;
		m.h.nlmsg_len = NLMSG_LENGTH(sizeof(m.u.e));
		m.u.e.error = err;
		m.u.e.msg = *r->hdr;
	}
	nl_answer_last(r, &m.h);
}

/* ---------------------------------------------------------------- host */

/*
 * Forward messages that the kernel sent.  1: the response is complete; 0:
 * more messages follow; -errno: the kernel reported it, or sent garbage
 * (-EPROTO).
 */
static int nl_forward(struct nl_request *r, char *buf, int len)
{
	struct nlmsghdr *h;
	struct nlmsgerr *e;

	for (h = (struct nlmsghdr *)buf; nl()->nlmsg_ok(h, len);
	     h = nl()->nlmsg_next(h, &len)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR) {
			if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)))
				return -EPROTO;
			e = nl()->nlmsg_data(h);
			return e->error ? e->error : 1;
		}
		h->nlmsg_pid = r->port;
		nl_answer(r, h);
	}
	return 0;
}

int nl_query_host(struct nl_request *r)
{
	const struct timeval timeout = { .tv_sec = 2 };
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	union {
		struct nlmsghdr align;
		char bytes[16384];
	} buf;
	ssize_t n;
	int fd, ret;

	if (r->hdr->nlmsg_len > sizeof(buf))
		return -EMSGSIZE;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		return -ENODEV; /* a kernel without RDMA has no devices */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	memcpy(&buf, r->hdr, r->hdr->nlmsg_len);
	/* the acknowledgement marks the end of the response */
	if (!nl_is_dump(r))
		buf.align.nlmsg_flags |= NLM_F_ACK;
	buf.align.nlmsg_pid = 0;
	ret = 0;
	if (sendto(fd, &buf, r->hdr->nlmsg_len, 0, (struct sockaddr *)&to,
		   sizeof(to)) < 0)
		ret = -errno;
	while (!ret) {
		n = recv(fd, &buf, sizeof(buf), 0);
		ret = n < 0 ? -errno : nl_forward(r, buf.bytes, (int)n);
	}
	close(fd);
	return ret > 0 ? 0 : ret;
}

/* ---------------------------------------------------------------- requests */

static bool netlink_is_emulated(int fd)
{
	int domain = 0, proto = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) ||
	    domain != AF_NETLINK)
		return false;
	len = sizeof(int);
	return !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &proto, &len) &&
	       proto == NETLINK_USERSOCK;
}

/*
 * Return the netlink port of the stand-in, to which responses are sent; 0 on
 * failure.  If the program did not bind the socket, bind it.
 */
static uint32_t nl_port_of(int fd)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len))
		return 0;
	if (a.nl_pid)
		return a.nl_pid;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return 0;
	len = sizeof(a);
	return getsockname(fd, (struct sockaddr *)&a, &len) ? 0 : a.nl_pid;
}

static void nl_handle(struct nl_request *r, const struct nlmsghdr *h)
{
	int ret;

	r->hdr = h;
	r->err = 0;
	if (nl()->nlmsg_parse((struct nlmsghdr *)h, 0, r->attr, NLDEV_ATTRS - 1,
			      NULL) < 0)
		ret = -EINVAL;
	else
		ret = nldev_run(r);
	nl_finish(r, ret);
}

bool netlink_request(int fd, const void *buf, size_t len)
{
	union {
		struct nlmsghdr h;
		char bytes[4096];
	} copy; /* aligned, and other threads cannot change it */
	struct nl_request r = { 0 };
	struct nlmsghdr *h = &copy.h;
	int left = (int)len;

	if (len > sizeof(copy) || !netlink_is_emulated(fd))
		return false;
	memcpy(&copy, buf, len);
	r.port = nl_port_of(fd);
	/* no second socket: the process may have no free descriptor */
	r.emulated = fd;
	r.f = shim_fabric();
	for (; nl()->nlmsg_ok(h, left); h = nl()->nlmsg_next(h, &left))
		if (h->nlmsg_flags & NLM_F_REQUEST)
			nl_handle(&r, h);
	return true;
}
