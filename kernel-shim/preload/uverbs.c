// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Emulation of RDMA_VERBS_IOCTL, for the ioctls that libibverbs itself sends
 * on cmd_fd (uverbs.h).  The provider implements everything else of a
 * context, in shared memory.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"
#include "uverbs.h"

struct request {
	int fd;
	struct ib_uverbs_ioctl_hdr *hdr;
	struct urxe_fabric *f;
	uint32_t device;
};

static struct ib_uverbs_attr *uverbs_find(const struct request *r, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < r->hdr->num_attrs; i++)
		if (r->hdr->attrs[i].attr_id == id)
			return &r->hdr->attrs[i];
	return NULL;
}

/* Read a number that is passed by value.  False: missing, or too long. */
static bool uverbs_number(const struct request *r, uint16_t id, uint64_t *out)
{
	const struct ib_uverbs_attr *a = uverbs_find(r, id);

	if (!a || a->len > sizeof(a->data))
		return false;
	*out = a->data;
	if (a->len && a->len < sizeof(*out))
		*out &= (1ull << a->len * 8) - 1;
	return true;
}

/* Write an output attribute: 0, or -EINVAL (missing, or no space). */
static int uverbs_put(struct ib_uverbs_attr *a, const void *from, size_t len)
{
	if (!a || a->len < len)
		return -EINVAL;
	memcpy((void *)(uintptr_t)a->data, from, len);
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return 0;
}

/*
 * Create an event channel, a FIFO, and return the descriptor of its read end,
 * or -errno.  @async: record it in the arena as the channel for port events.
 */
static int uverbs_new_fifo(const struct request *r, bool async)
{
	struct urxe_arena *a;
	uint32_t nr;
	int fd;

	fd = arena_map(r->fd, &a);
	if (fd)
		return fd;
	fd = fifo_create(r->f, a, &nr);
	if (fd >= 0 && async)
		store_release(&a->async_fifo, nr + 1);
	arena_unmap(a);
	return fd;
}

static int uverbs_create_comp_channel(const struct request *r)
{
	struct ib_uverbs_attr *out = uverbs_find(r, UVERBS_ATTR_CORE_OUT);
	uint32_t resp;
	int fd, ret;

	fd = uverbs_new_fifo(r, false);
	if (fd < 0)
		return fd;
	resp = (uint32_t)fd;
	ret = uverbs_put(out, &resp, sizeof(resp));
	if (ret)
		close(fd);
	return ret;
}

/*
 * Legacy write commands, sent by ioctl.  libibverbs probes for them with
 * QUERY_DEVICE and no space for the response.  ENOSPC, as from the kernel,
 * tells it that they are supported.
 */
static int uverbs_invoke_write(const struct request *r)
{
	uint64_t cmd;

	if (!uverbs_number(r, UVERBS_ATTR_WRITE_CMD, &cmd))
		return -EINVAL;
	switch (cmd) {
	case IB_USER_VERBS_CMD_QUERY_DEVICE:
		return -ENOSPC;
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		return uverbs_create_comp_channel(r);
	default:
		return -EOPNOTSUPP;
	}
}

static int uverbs_alloc_async_fd(const struct request *r)
{
	struct ib_uverbs_attr *a =
		uverbs_find(r, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
	char failure[32];
	int fd;

	if (!a)
		return -EINVAL;
	fabric_why_clear();
	fd = uverbs_new_fifo(r, true);
	if (fd < 0) {
		/* ibv_open_device() then returns NULL, without a message */
		snprintf(failure, sizeof(failure), "cannot open %.15s",
			 hca_at(r->f->dev, r->device)->name);
		shim_complain(failure, fd);
		return fd;
	}
	a->data_s64 = fd;
	return 0;
}

static bool uverbs_gid_entry(const struct request *r, uint32_t i,
			     struct ibv_gid_entry *e)
{
	const struct urxe_hca *hca = hca_at(r->f->dev, r->device);
	struct urxe_gid g;

	if (!fabric_get_gid(hca, i, &g))
		return false;
	*e = (struct ibv_gid_entry){ .gid_index = i,
				     .port_num = 1,
				     .gid_type = hca->infiniband ?
							 IBV_GID_TYPE_IB :
							 gid_roce(hca, i),
				     .ndev_ifindex =
					     hca->infiniband ? 0 : g.ifindex };
	memcpy(e->gid.raw, g.raw, sizeof(g.raw));
	return true;
}

static int uverbs_query_gid_entry(const struct request *r)
{
	uint64_t port, index, flags = 0;
	struct ibv_gid_entry e;

	if (!uverbs_number(r, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, &port) ||
	    !uverbs_number(r, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, &index))
		return -EINVAL;
	if (uverbs_find(r, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS) &&
	    !uverbs_number(r, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, &flags))
		return -EINVAL;
	if (port != 1 || index >= gid_table_len(hca_at(r->f->dev, r->device)) ||
	    flags)
		return -EINVAL;
	shim_refresh_gids(r->f);
	if (!uverbs_gid_entry(r, (uint32_t)index, &e))
		return -ENODATA;
	return uverbs_put(
		uverbs_find(r, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY), &e,
		sizeof(e));
}

static int uverbs_query_gid_table(const struct request *r)
{
	struct ib_uverbs_attr *out, *count;
	uint64_t size, flags = 0, n = 0;
	struct ibv_gid_entry e;
	uint32_t i;

	out = uverbs_find(r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	count = uverbs_find(r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES);
	if (!out ||
	    !uverbs_number(r, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, &size) ||
	    !size || out->len % size)
		return -EINVAL;
	if (uverbs_find(r, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS) &&
	    !uverbs_number(r, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, &flags))
		return -EINVAL;
	if (flags)
		return -EOPNOTSUPP;
	shim_refresh_gids(r->f);
	for (i = 0; i < URXE_MAX_GID; i++) {
		char *at = (char *)(uintptr_t)out->data + n * size;

		if (!uverbs_gid_entry(r, i, &e))
			continue;
		if (n == out->len / size)
			return -EINVAL;
		memset(at, 0, size);
		memcpy(at, &e, size < sizeof(e) ? size : sizeof(e));
		n++;
	}
	out->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return uverbs_put(count, &n, sizeof(n));
}

static const struct {
	uint16_t object, method;
	int (*run)(const struct request *r);
} methods[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE,
	  uverbs_invoke_write },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY,
	  uverbs_query_gid_entry },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE,
	  uverbs_query_gid_table },
	{ UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC,
	  uverbs_alloc_async_fd },
};

static int uverbs_dispatch(const struct request *r)
{
	unsigned int i;

	for (i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (methods[i].object == r->hdr->object_id &&
		    methods[i].method == r->hdr->method_id)
			return methods[i].run(r);
	/* after ENOTTY, libibverbs would not use ioctls on this context */
	return -EPROTONOSUPPORT;
}

int uverbs_ioctl(int fd, void *arg)
{
	struct request r = { .fd = fd, .hdr = arg };
	struct urxe_fabric *other = NULL;
	char dir[256];
	struct stat st;
	int ret;

	ret = fstat(fd, &st) ? -1 : fabric_arena_device(fd, &st);
	if (ret < 0)
		return 1;
	r.device = (uint32_t)ret;
	if (!arg)
		return -EFAULT;
	if (r.hdr->length !=
	    sizeof(*r.hdr) + r.hdr->num_attrs * sizeof(*r.hdr->attrs))
		return -EINVAL;
	ret = arena_fabric_dir(fd, dir, sizeof(dir));
	if (ret)
		return ret;
	/* the descriptor may be from a process in another fabric */
	r.f = shim_fabric_opened() ? shim_fabric() : NULL;
	if (!r.f || strcmp(r.f->dir, dir)) {
		ret = fabric_open(dir, false, &other);
		if (ret)
			return ret;
		r.f = other;
	}
	ret = uverbs_dispatch(&r);
	if (other)
		fabric_close(other);
	return ret;
}
