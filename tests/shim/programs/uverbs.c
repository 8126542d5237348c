// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device file (cmd_fd): fstat(), ioctls, and the lifetime of its context.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "test.h"

#define CDEV "/dev/infiniband/uverbs1000"

union frame {
	struct ib_uverbs_ioctl_hdr hdr;
	char room[sizeof(struct ib_uverbs_ioctl_hdr) +
		  4 * sizeof(struct ib_uverbs_attr)];
};

static int call(int fd, union frame *f, int object, int method, int n)
{
	f->hdr.object_id = (uint16_t)object;
	f->hdr.method_id = (uint16_t)method;
	f->hdr.num_attrs = (uint16_t)n;
	f->hdr.length = (uint16_t)(sizeof(f->hdr) +
				   (size_t)n * sizeof(f->hdr.attrs[0]));
	return ioctl(fd, RDMA_VERBS_IOCTL, f) ? errno : 0;
}

static void in(struct ib_uverbs_attr *a, int id, uint64_t value, size_t len)
{
	*a = (struct ib_uverbs_attr){ .attr_id = (uint16_t)id,
				      .len = (uint16_t)len,
				      .data = value };
}

static void out(struct ib_uverbs_attr *a, int id, void *to, size_t len)
{
	in(a, id, (uintptr_t)to, len);
}

static int open_device(void)
{
	int fd = open(CDEV, O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

typedef int fstat_fn(int, struct stat *);
typedef int fxstat_fn(int, int, struct stat *);

static void test_fstat(void)
{
	static const char *const names[] = { "fstat", "fstat64" };
	static const char *const old[] = { "__fxstat", "__fxstat64" };
	const dev_t rdev = makedev(231, 60000);
	int fd = open_device(), i;
	struct statx stx;
	struct stat st;

	for (i = 0; i < 2; i++) {
		fstat_fn *f = (fstat_fn *)dlsym(RTLD_DEFAULT, names[i]);
		fxstat_fn *x = (fxstat_fn *)dlsym(RTLD_DEFAULT, old[i]);

		memset(&st, 0, sizeof(st));
		if (f)
			CHECK(!f(fd, &st) && S_ISCHR(st.st_mode) &&
			      st.st_rdev == rdev);
		memset(&st, 0, sizeof(st));
		if (x)
			CHECK(!x(1, fd, &st) && S_ISCHR(st.st_mode) &&
			      st.st_rdev == rdev);
	}
	CHECK(!fstatat(fd, "", &st, AT_EMPTY_PATH) && S_ISCHR(st.st_mode));
	if (!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx))
		CHECK(S_ISCHR(stx.stx_mode) && stx.stx_rdev_minor == 60000);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	close(fd);
	fd = open(CDEV, O_RDWR);
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == 0);
	close(fd);
	/* other paths of the same device */
	CHECK(!chdir("/dev/infiniband"));
	fd = open("uverbs1000", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st) && S_ISCHR(st.st_mode));
	close(fd);
	CHECK(!chdir("/"));
	fd = open("/dev/char/231:60000", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && !fstat(fd, &st) && S_ISCHR(st.st_mode));
	close(fd);
	/* O_PATH does not create a context */
	fd = open(CDEV, O_PATH);
	CHECK(fd >= 0);
	close(fd);
}

static void test_write_commands(void)
{
	int fd = open_device();
	struct pollfd p;
	uint32_t chan = 0;
	union frame f = { .room = { 0 } };
	uint64_t event = 42;

	in(&f.hdr.attrs[0], UVERBS_ATTR_WRITE_CMD,
	   IB_USER_VERBS_CMD_QUERY_DEVICE, 8);
	CHECK(call(fd, &f, 0, 0, 1) == ENOSPC);

	in(&f.hdr.attrs[0], UVERBS_ATTR_WRITE_CMD,
	   IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 8);
	in(&f.hdr.attrs[1], UVERBS_ATTR_CORE_IN, 0, 8);
	out(&f.hdr.attrs[2], UVERBS_ATTR_CORE_OUT, &chan, sizeof(chan));
	CHECK(!call(fd, &f, 0, 0, 3));
	CHECK(f.hdr.attrs[2].flags & UVERBS_ATTR_F_VALID_OUTPUT);
	CHECK(fcntl((int)chan, F_GETFD) == FD_CLOEXEC);
	p = (struct pollfd){ .fd = (int)chan, .events = POLLIN };
	CHECK(poll(&p, 1, 0) == 0);
	CHECK(write((int)chan, &event, 8) == 8);
	CHECK(poll(&p, 1, 0) == 1 && p.revents == POLLIN);
	CHECK(read((int)chan, &event, 8) == 8 && event == 42);
	close((int)chan);

	/* if the response does not fit, no descriptor is leaked */
	f.hdr.attrs[2].len = 2;
	CHECK(call(fd, &f, 0, 0, 3) == EINVAL);
	CHECK(fcntl((int)chan, F_GETFD) < 0);
	CHECK(call(fd, &f, 0, 0, 0) == EINVAL);
	in(&f.hdr.attrs[0], UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_ALLOC_PD,
	   8);
	CHECK(call(fd, &f, 0, 0, 1) == EOPNOTSUPP);
	close(fd);
}

static void test_async_fd(void)
{
	int fd = open_device();
	union frame f = { .room = { 0 } };
	uint32_t nr;

	in(&f.hdr.attrs[0], UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, 0);
	CHECK(!call(fd, &f, UVERBS_OBJECT_ASYNC_EVENT,
		    UVERBS_METHOD_ASYNC_EVENT_ALLOC, 1));
	CHECK(!fifo_number((int)f.hdr.attrs[0].data_s64, &nr));
	close((int)f.hdr.attrs[0].data_s64);
	close(fd);
}

static void test_gids(void)
{
	struct ibv_gid_entry one, table[URXE_MAX_GID], tight[1];
	int fd = open_device();
	union frame f = { .room = { 0 } };
	uint64_t n = 0;

	in(&f.hdr.attrs[0], UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 1, 4);
	in(&f.hdr.attrs[1], UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 0, 4);
	in(&f.hdr.attrs[2], UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, 4);
	out(&f.hdr.attrs[3], UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &one,
	    sizeof(one));
	CHECK(!call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_ENTRY, 4));
	CHECK(one.gid.raw[0] == 0xfe && one.gid.raw[1] == 0x80);
	CHECK(one.gid_type == IBV_GID_TYPE_ROCE_V1 && one.port_num == 1 &&
	      one.gid_index == 0);
	f.hdr.attrs[1].data = 1;
	CHECK(!call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_ENTRY, 4));
	CHECK(one.gid_type == IBV_GID_TYPE_ROCE_V2 && one.gid_index == 1);
	f.hdr.attrs[1].data = URXE_MAX_GID - 1;
	CHECK(call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_ENTRY, 4) == ENODATA);
	f.hdr.attrs[1].data = URXE_MAX_GID;
	CHECK(call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_ENTRY, 4) == EINVAL);
	f.hdr.attrs[1].data = 0;
	f.hdr.attrs[0].data = 2;
	CHECK(call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_ENTRY, 4) == EINVAL);
	f.hdr.attrs[0].data = 1;
	f.hdr.attrs[3].len = 8;
	CHECK(call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_ENTRY, 4) == EINVAL);

	memset(&f, 0, sizeof(f));
	in(&f.hdr.attrs[0], UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, sizeof(one),
	   8);
	in(&f.hdr.attrs[1], UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, 4);
	out(&f.hdr.attrs[2], UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, table,
	    sizeof(table));
	out(&f.hdr.attrs[3], UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &n,
	    8);
	CHECK(!call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_TABLE, 4));
	CHECK(n >= 2 && n < URXE_MAX_GID &&
	      !memcmp(&table[1], &one, sizeof(one)));
	if (n > 1) {
		out(&f.hdr.attrs[2], UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES,
		    tight, sizeof(tight));
		CHECK(call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_TABLE, 4) ==
		      EINVAL);
	}
	f.hdr.attrs[0].data = 0;
	CHECK(call(fd, &f, 0, UVERBS_METHOD_QUERY_GID_TABLE, 4) == EINVAL);
	close(fd);
}

static void test_bad_ioctls(void)
{
	int fd = open_device(), other = open("/dev/null", O_RDONLY);
	union frame f = { .room = { 0 } };

	CHECK(call(fd, &f, 7, 0, 0) == EPROTONOSUPPORT);
	CHECK(call(fd, &f, 0, 99, 0) == EPROTONOSUPPORT);
	f.hdr.length = 8;
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, &f) && errno == EINVAL);
	CHECK(call(other, &f, 0, 0, 0) == ENOTTY);
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, NULL) && errno == EFAULT);
	close(other);
	close(fd);
}

/* -------------------------------------------------------------- lifetime */

static struct urxe_fabric *fabric;

struct name {
	uint32_t slot, gen;
};

/*
 * Read slot and generation of the context.  pread() is used since a mapping
 * would keep the open file description and its lock.
 */
static struct name name_of(int fd)
{
	struct name n;

	CHECK(pread(fd, &n.slot, sizeof(n.slot),
		    offsetof(struct urxe_arena, slot)) == sizeof(n.slot));
	CHECK(pread(fd, &n.gen, sizeof(n.gen),
		    offsetof(struct urxe_arena, gen)) == sizeof(n.gen));
	return n;
}

static bool alive(struct name n)
{
	return fabric_context_alive(fabric, n.slot, n.gen);
}

static void send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	CHECK(sendmsg(sock, &m, 0) == 1);
}

static int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd;

	CHECK(recvmsg(sock, &m, MSG_CMSG_CLOEXEC) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
	return fd;
}

static void test_dup(void)
{
	int fd = open_device(), copy;
	struct name a = name_of(fd);

	CHECK(alive(a));
	copy = dup(fd);
	close(fd);
	CHECK(alive(a));
	close(copy);
	CHECK(!alive(a));
	CHECK(fabric_reap_one(fabric, a.slot, a.gen));
}

static void test_fork(void)
{
	int fd = open_device(), sync[2];
	struct name a = name_of(fd);
	pid_t pid;
	char c;

	CHECK(!pipe(sync));
	pid = fork();
	if (!pid) {
		close(sync[1]);
		_exit(read(sync[0], &c, 1) != 0);
	}
	close(fd);
	CHECK(alive(a));
	close(sync[0]);
	close(sync[1]);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(!alive(a));
}

/*
 * A descriptor without FD_CLOEXEC is usable in the program that execve()
 * starts.
 */
static void test_exec(void)
{
	int fd = open(CDEV, O_RDWR), status, i;
	char number[12];
	struct name a;
	pid_t pid;

	CHECK(fd >= 0);
	a = name_of(fd);
	snprintf(number, sizeof(number), "%d", fd);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "uverbs", number, (char *)NULL);
		_exit(127);
	}
	close(fd);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(!alive(a));
	/* a descriptor with FD_CLOEXEC does not keep the context */
	fd = open_device();
	a = name_of(fd);
	pid = fork();
	if (!pid) {
		execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(127);
	}
	close(fd);
	for (i = 0; i < 60000 && alive(a); i++)
		usleep(1000);
	CHECK(i < 60000);
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void test_scm_rights(void)
{
	int fd = open_device(), pair[2], got;
	struct name a = name_of(fd);
	struct stat st;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	send_fd(pair[0], fd);
	close(fd);
	CHECK(alive(a)); /* in flight */
	got = receive_fd(pair[1]);
	CHECK(!fstat(got, &st) && S_ISCHR(st.st_mode));
	close(got);
	CHECK(!alive(a));
	close(pair[0]);
	close(pair[1]);
}

static void file_is(const char *path, const char *want)
{
	char buf[64] = "";
	FILE *file = fopen(path, "r");

	CHECK(file && fgets(buf, sizeof(buf), file));
	CHECK(!strcmp(buf, want));
	fclose(file);
}

#define PORT "/sys/class/infiniband/urxe0/ports/1/"

/* Each open of a sysfs file returns the current shared state. */
static void test_current(void)
{
	struct urxe_dev *dev = fabric->dev;
	char buf[64] = "";
	int fd;

	file_is(PORT "state", "4: ACTIVE\n");
	atomic_store(&dev->hca[0].port_state, URXE_PORT_DOWN);
	file_is(PORT "state", "1: DOWN\n");
	file_is(PORT "phys_state", "3: Disabled\n");
	atomic_store(&dev->hca[0].port_state, URXE_PORT_ACTIVE);
	file_is(PORT "state", "4: ACTIVE\n");

	fd = open(PORT "counters/port_xmit_data", O_RDONLY);
	CHECK(fd >= 0);
	atomic_fetch_add(&dev->hca[0].counter[URXE_CNT_XMIT_DATA], 12345678901);
	file_is(PORT "counters/port_xmit_data", "12345678901\n");
	CHECK(read(fd, buf, sizeof(buf)) == 12);
	close(fd);
	atomic_store(&dev->hca[0].counter[URXE_CNT_XMIT_DATA], 7);
	file_is(PORT "counters/port_xmit_data", "7\n");
	file_is(PORT "hw_counters/lifespan", "10\n");
}

/*
 * A program that closes all descriptors it does not know can still open the
 * device.
 */
static void test_closed_behind_our_back(void)
{
	struct stat st;
	int fd;

	for (fd = 3; fd < 64; fd++)
		close(fd);
	CHECK(!stat("/sys/class/infiniband/urxe0/ports/1/gids/0", &st));
	fd = open_device();
	CHECK(!fstat(fd, &st) && S_ISCHR(st.st_mode));
	close(fd);
}

static int inherited(int fd)
{
	union frame f = { .room = { 0 } };
	struct stat st;

	CHECK(!fstat(fd, &st) && S_ISCHR(st.st_mode));
	in(&f.hdr.attrs[0], UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, 0);
	CHECK(!call(fd, &f, UVERBS_OBJECT_ASYNC_EVENT,
		    UVERBS_METHOD_ASYNC_EVENT_ALLOC, 1));
	return 0;
}

int main(int argc, char **argv)
{
	char dir[256];

	if (argc > 1)
		return inherited(atoi(argv[1]));
	test_fstat();
	test_write_commands();
	test_async_fd();
	test_gids();
	test_bad_ioctls();
	CHECK(!fabric_dir(dir, sizeof(dir)) &&
	      !fabric_open(dir, false, &fabric));
	test_dup();
	test_fork();
	test_exec();
	test_scm_rights();
	test_current();
	fabric_close(fabric);
	test_closed_behind_our_back();
	return 0;
}
