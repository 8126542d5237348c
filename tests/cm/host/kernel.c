// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preload library, behind the one under test, that plays a kernel with
 * /dev/infiniband/rdma_cm.  It is the connection manager of urxe once more,
 * over tables of its own in HOSTCM_DIR, and reaches 198.51.100.0/24.  The
 * device that its answers name is urxe0 as well, so that there is a QP.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "preload/shim.h"
#include "preload/ucma.h"

#define DEVICE "/dev/infiniband/rdma_cm"
/* Networks that nobody has: the one, and one where nobody answers. */
#define NETWORK 0xc6336400 /* 198.51.100.0/24 */
#define SILENT 0xcb007100 /* 203.0.113.0/24 */

_Atomic int shim_state = SHIM_ON;
_Thread_local int shim_inside;

/* The GUID by which librdmacm finds the device. */
static uint64_t guid_under_test(void)
{
	uint64_t guid = 0;
	char path[300];
	int fd;

	fabric_dir(path, sizeof(path));
	strcat(path, "/device");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &guid, sizeof(guid),
			    offsetof(struct urxe_dev, node_guid)) < 0)
		abort();
	close(fd);
	return guid;
}

struct urxe_fabric *shim_fabric_opened(void)
{
	return shim_fabric();
}

struct urxe_fabric *shim_fabric(void)
{
	static struct urxe_fabric *fabric;

	if (!fabric) {
		if (fabric_open(getenv("HOSTCM_DIR"), true, &fabric))
			abort();
		fabric->dev->node_guid = guid_under_test();
	}
	return fabric;
}

void shim_refresh_gids(struct urxe_fabric *f)
{
	fabric_refresh_gids(f);
}

int shim_decide(void)
{
	return SHIM_ON;
}

bool special_is_cm_channel(const struct stat *st)
{
	return st->st_mode == CM_FIFO_MODE;
}

/* ------------------------------------------------ instead of ucma_route.c */

static uint32_t network(const union cm_addr *a)
{
	return a->sa.sa_family == AF_INET ?
		       ntohl(a->in.sin_addr.s_addr) & ~0xffu :
		       0;
}

bool ucma_is_local(struct urxe_fabric *f, const union cm_addr *a)
{
	(void)f;
	return network(a) == NETWORK;
}

int ucma_route(const union cm_addr *dst, union cm_addr *src)
{
	if (network(dst) != NETWORK && network(dst) != SILENT)
		return -ENETUNREACH;
	if (cm_addr_any(src)) {
		src->sa.sa_family = AF_INET;
		src->in.sin_addr.s_addr = htonl(NETWORK | 1);
	}
	return 0;
}

bool ucma_is_privileged(void)
{
	return true;
}

bool ucma_one_family(const union cm_addr *a)
{
	return a->sa.sa_family == AF_INET;
}

/* --------------------------------------------------- no host of the host */

_Atomic int ucma_host_used;

bool shim_with_host(void)
{
	return false;
}

void ucma_host_open(int fd)
{
	(void)fd;
}

int ucma_host_run(struct ucma *u, uint32_t cmd)
{
	return ucma_run(u, cmd);
}

void ucma_host_fetch(struct ucma *u)
{
	(void)u;
}

/* -------------------------------------------------------------- wrappers */

#define VISIBLE __attribute__((visibility("default")))
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

VISIBLE int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;
	int fd;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (strcmp(path, DEVICE))
		return NEXT(open)(path, flags, mode);
	shim_inside++;
	fd = ucma_open(flags);
	shim_inside--;
	if (fd < 0)
		errno = -fd;
	return fd < 0 ? -1 : fd;
}

VISIBLE int fstat(int fd, struct stat *st)
{
	int ret = NEXT(fstat)(fd, st);

	if (!ret && st->st_mode == CM_FIFO_MODE && !shim_inside) {
		st->st_mode = S_IFCHR | 0666;
		st->st_rdev = makedev(10, 60);
	}
	return ret;
}

static bool is_channel(int fd)
{
	struct stat st;

	return !NEXT(fstat)(fd, &st) && st.st_mode == CM_FIFO_MODE;
}

static bool is_of_machine(const struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in any_port = *a;
	bool ok;

	any_port.sin_port = 0;
	ok = !bind(fd, (struct sockaddr *)&any_port, sizeof(any_port));
	close(fd);
	return ok;
}

/* To bind to an address of this machine, where no RDMA device has one. */
static bool no_device(const struct rdma_ucm_cmd_hdr *hdr)
{
	const char *in = (const void *)(hdr + 1);
	struct sockaddr_in a;
	size_t at;

	if (hdr->cmd == RDMA_USER_CM_CMD_BIND)
		at = offsetof(struct rdma_ucm_bind, addr);
	else if (hdr->cmd == RDMA_USER_CM_CMD_BIND_IP)
		at = offsetof(struct rdma_ucm_bind_ip, addr);
	else
		return false;
	if (hdr->in < at + sizeof(a))
		return false;
	memcpy(&a, in + at, sizeof(a));
	return a.sin_family == AF_INET && a.sin_addr.s_addr &&
	       is_of_machine(&a);
}

VISIBLE ssize_t write(int fd, const void *buf, size_t len)
{
	ssize_t ret;

	if (len < sizeof(struct rdma_ucm_cmd_hdr) || len > 512 || shim_inside ||
	    !is_channel(fd))
		return NEXT(write)(fd, buf, len);
	if (no_device(buf)) {
		errno = ENODEV;
		return -1;
	}
	ucma_write(fd, buf, len, &ret);
	return ret;
}
