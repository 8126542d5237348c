// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Emulated NETLINK_RDMA sockets: replies, errors, malformed requests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#define LIBNL "libnl-3.so.200"
#define TYPE(op) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op)

static unsigned int seq;

struct request {
	struct nlmsghdr h;
	char attrs[256];
};

static void put(struct request *r, int type, const void *data, size_t len)
{
	struct nlattr *a = (struct nlattr *)((char *)r + r->h.nlmsg_len);

	a->nla_type = (uint16_t)type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy((char *)a + NLA_HDRLEN, data, len);
	r->h.nlmsg_len += (uint32_t)NLA_ALIGN(a->nla_len);
}

static void start(struct request *r, int op, int flags)
{
	memset(r, 0, sizeof(*r));
	r->h.nlmsg_len = NLMSG_HDRLEN;
	r->h.nlmsg_type = (uint16_t)TYPE(op);
	r->h.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	r->h.nlmsg_seq = ++seq;
}

static int open_socket(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	CHECK(fd >= 0);
	CHECK(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	return fd;
}

/* Receive the next message into @buf.  Return its type, or -errno. */
static int receive(int fd, char *buf, size_t len)
{
	const struct nlmsghdr *h = (struct nlmsghdr *)buf;
	ssize_t n = recv(fd, buf, len, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	CHECK(n >= NLMSG_HDRLEN && h->nlmsg_len <= (size_t)n);
	CHECK(h->nlmsg_seq == seq);
	return h->nlmsg_type;
}

static int error_of(const char *buf)
{
	return ((const struct nlmsgerr *)(buf + NLMSG_HDRLEN))->error;
}

static void ask(int fd, const struct request *r)
{
	CHECK(send(fd, r, r->h.nlmsg_len, 0) == (ssize_t)r->h.nlmsg_len);
}

static void test_dump(void)
{
	_Alignas(8) char buf[4096];
	int fd = open_socket();
	struct request r;

	start(&r, RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) == TYPE(RDMA_NLDEV_CMD_GET));
	CHECK(memmem(buf, sizeof(buf), "urxe0", 6));
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_DONE);
	CHECK(receive(fd, buf, sizeof(buf)) == -EAGAIN);
	close(fd);
}

static void test_single(void)
{
	const uint32_t ours = 1000, other = 0;
	_Alignas(8) char buf[4096];
	int fd = open_socket();
	struct request r;

	start(&r, RDMA_NLDEV_CMD_GET, NLM_F_ACK);
	put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &ours, 4);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) == TYPE(RDMA_NLDEV_CMD_GET));
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_ERROR && !error_of(buf));

	start(&r, RDMA_NLDEV_CMD_GET, 0);
	put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &other, 4);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_ERROR);
	CHECK(error_of(buf) == -ENODEV);

	start(&r, RDMA_NLDEV_CMD_GET, 0);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_ERROR);
	CHECK(error_of(buf) == -EINVAL);

	start(&r, RDMA_NLDEV_CMD_PORT_GET, 0);
	put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &ours, 4);
	put(&r, RDMA_NLDEV_ATTR_PORT_INDEX, &other, 4);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_ERROR);
	CHECK(error_of(buf) == -EINVAL);

	start(&r, 200, 0);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_ERROR);
	CHECK(error_of(buf) == -EOPNOTSUPP);
	CHECK(receive(fd, buf, sizeof(buf)) == -EAGAIN);
	close(fd);
}

static void test_chardev(void)
{
	const uint32_t ours = 1000;
	_Alignas(8) char buf[4096];
	int fd = open_socket();
	struct request r;

	start(&r, RDMA_NLDEV_CMD_GET_CHARDEV, 0);
	put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &ours, 4);
	put(&r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs", 7);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) ==
	      TYPE(RDMA_NLDEV_CMD_GET_CHARDEV));
	CHECK(memmem(buf, sizeof(buf), "uverbs1000", 11));
	start(&r, RDMA_NLDEV_CMD_GET_CHARDEV, 0);
	put(&r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", 8);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) ==
	      TYPE(RDMA_NLDEV_CMD_GET_CHARDEV));
	CHECK(memmem(buf, sizeof(buf), "rdma_cm", 8));
	start(&r, RDMA_NLDEV_CMD_GET_CHARDEV, 0);
	put(&r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "issm", 5);
	ask(fd, &r);
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_ERROR);
	CHECK(error_of(buf) == -ENODEV);
	close(fd);
}

/* sendto(), and sendmsg() with several iovecs, on a socket without bind(). */
static void test_senders(void)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	_Alignas(8) char buf[4096];
	struct iovec v[2];
	struct msghdr m = { .msg_name = &to,
			    .msg_namelen = sizeof(to),
			    .msg_iov = v,
			    .msg_iovlen = 2 };
	struct request r;
	int fd;

	fd = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_RDMA);
	CHECK(fd >= 0);
	start(&r, RDMA_NLDEV_CMD_SYS_GET, 0);
	CHECK(sendto(fd, &r, r.h.nlmsg_len, 0, (struct sockaddr *)&to,
		     sizeof(to)) == (ssize_t)r.h.nlmsg_len);
	CHECK(receive(fd, buf, sizeof(buf)) == TYPE(RDMA_NLDEV_CMD_SYS_GET));
	start(&r, RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	v[0] = (struct iovec){ &r, 7 };
	v[1] = (struct iovec){ (char *)&r + 7, r.h.nlmsg_len - 7 };
	CHECK(sendmsg(fd, &m, 0) == (ssize_t)r.h.nlmsg_len);
	CHECK(receive(fd, buf, sizeof(buf)) == TYPE(RDMA_NLDEV_CMD_GET));
	CHECK(receive(fd, buf, sizeof(buf)) == NLMSG_DONE);
	close(fd);
}

/*
 * A descriptor of an emulated socket that was closed and reused is an
 * ordinary socket.
 */
static void test_reuse(void)
{
	int fd = open_socket(), pair[2];
	char buf[8];

	close(fd);
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(pair[0] == fd || pair[1] == fd);
	CHECK(send(pair[0], "ping", 4, 0) == 4);
	CHECK(send(pair[1], "pong", 4, 0) == 4);
	CHECK(read(pair[0], buf, sizeof(buf)) == 4);
	CHECK(read(pair[1], buf, sizeof(buf)) == 4);
	close(pair[0]);
	close(pair[1]);
}

/* Random requests neither crash the process nor cause endless replies. */
static void test_nonsense(void)
{
	_Alignas(8) char buf[512], in[4096];
	int fd = open_socket(), i, n;
	unsigned int x = 1;
	size_t k, len;

	for (i = 0; i < 20000; i++) {
		struct nlmsghdr *h = (struct nlmsghdr *)buf;

		for (k = 0; k < sizeof(buf); k++) {
			x = x * 1103515245 + 12345;
			buf[k] = (char)(x >> 16);
		}
		len = (x >> 8) % sizeof(buf);
		if (i % 4) { /* close to a valid request */
			h->nlmsg_len = (uint32_t)(i % 2 ? len : len / 2);
			h->nlmsg_type = (uint16_t)TYPE(x % 24);
			h->nlmsg_flags =
				(uint16_t)(NLM_F_REQUEST | (x >> 5 & 0x304));
			for (k = NLMSG_HDRLEN; k + 4 <= len; k += 8) {
				*(uint16_t *)(buf + k) = x >> k % 16 & 15;
				*(uint16_t *)(buf + k + 2) = x >> 3 & 0x7f;
			}
		}
		CHECK(send(fd, buf, len, 0) == (ssize_t)len);
		for (n = 0; recv(fd, in, sizeof(in), MSG_DONTWAIT) > 0; n++)
			CHECK(n < 64);
	}
	close(fd);
}

static pthread_barrier_t together;

static void *ask_first(void *arg)
{
	int fd;

	pthread_barrier_wait(&together);
	errno = E2BIG;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	CHECK(fd >= 0 && errno == E2BIG);
	close(fd);
	return arg;
}

/*
 * libnl is loaded by the first NETLINK_RDMA socket, also if several threads
 * create it at the same time.  errno is preserved.
 */
static void test_loading(void)
{
	enum { THREADS = 4 };
	pthread_t t[THREADS];
	int i;

	CHECK(!dlopen(LIBNL, RTLD_LAZY | RTLD_NOLOAD));
	CHECK(!pthread_barrier_init(&together, NULL, THREADS));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, ask_first, NULL));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(dlopen(LIBNL, RTLD_LAZY | RTLD_NOLOAD));
}

/*
 * "refused": libnl cannot be loaded (nolibnl.sh): socket() fails with
 * EPROTONOSUPPORT, also when repeated.
 */
static void test_refused(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		errno = 0;
		CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA) == -1);
		CHECK(errno == EPROTONOSUPPORT);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "refused")) {
		test_refused();
		return 0;
	}
	test_loading();
	test_dump();
	test_single();
	test_chardev();
	test_senders();
	test_reuse();
	test_nonsense();
	return 0;
}
