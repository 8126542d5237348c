// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Opening umad devices, and their ioctls: registration of agents, as in the
 * kernel (drivers/infiniband/core/user_mad.c).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define OLD_HEADER sizeof(struct ib_user_mad_hdr_old)

_Atomic bool umad_used;

bool umad_of_fd(int fd, struct umad *u)
{
	const struct urxe_umad *entry;
	struct stat st;
	int index;

	u->f = shim_fabric_opened() ? shim_fabric() : NULL;
	if (!u->f || fstat(fd, &st) || st.st_mode != UMAD_FIFO_MODE)
		return false;
	index = umad_device_find(u->f->dev, st.st_ino);
	if (index < 0)
		return false;
	entry = &u->f->dev->umad[index];
	u->index = (uint32_t)index;
	u->device = entry->device % URXE_MAX_HCA;
	u->header = entry->use_pkey ? sizeof(struct ib_user_mad_hdr) :
				      OLD_HEADER;
	return true;
}

int umad_open(uint32_t k, int flags)
{
	struct urxe_fabric *f = shim_fabric();
	int fd;

	if (!f || k >= f->hcas)
		return -ENODEV;
	fd = umad_device_open(f, f->first + k);
	if (fd < 0)
		return fd;
	store_relaxed(&umad_used, true);
	if (flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
	return fd;
}

int umad_open_issm(uint32_t k, int flags)
{
	struct urxe_fabric *f = shim_fabric();

	return f && k < f->hcas ? issm_open(f, f->first + k, flags) : -ENODEV;
}

static bool has_agents(const struct urxe_umad *u)
{
	uint32_t i;

	for (i = 0; i < URXE_UMAD_AGENTS; i++)
		if (load_acquire(&u->agent[i].used))
			return true;
	return false;
}

static int umad_do_register(const struct umad *u,
			    struct ib_user_mad_reg_req *req)
{
	struct urxe_mad_agent agent = {
		.qpn = req->qpn,
		.mgmt_class = req->mgmt_class,
		.class_version = req->mgmt_class_version,
		.rmpp_version = req->rmpp_version,
	};
	int ret;

	if (req->qpn > 1 || req->rmpp_version > 1)
		return -EINVAL;
	memcpy(agent.oui, req->oui, sizeof(agent.oui));
	memcpy(agent.method_mask, req->method_mask, sizeof(agent.method_mask));
	ret = umad_register(u->f, u->index, &agent);
	if (ret < 0)
		return ret;
	req->id = (uint32_t)ret;
	return 0;
}

static int umad_do_register2(const struct umad *u,
			     struct ib_user_mad_reg_req2 *req)
{
	struct urxe_mad_agent agent = {
		.qpn = (uint8_t)req->qpn,
		.mgmt_class = req->mgmt_class,
		.class_version = req->mgmt_class_version,
		.rmpp_version = req->rmpp_version,
		.oui = { (uint8_t)(req->oui >> 16), (uint8_t)(req->oui >> 8),
			 (uint8_t)req->oui },
	};
	int ret;

	if (req->qpn > 1 || req->rmpp_version > 1 || req->oui & 0xff000000)
		return -EINVAL;
	if (req->flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP) {
		req->flags = IB_USER_MAD_REG_FLAGS_CAP;
		return -EINVAL;
	}
	memcpy(agent.method_mask, req->method_mask, sizeof(agent.method_mask));
	ret = umad_register(u->f, u->index, &agent);
	if (ret < 0)
		return ret;
	req->id = (uint32_t)ret;
	return 0;
}

static int umad_run(const struct umad *u, unsigned int request, void *arg)
{
	uint32_t id;

	switch (request) {
	case (unsigned int)IB_USER_MAD_REGISTER_AGENT:
		return umad_do_register(u, arg);
	case (unsigned int)IB_USER_MAD_REGISTER_AGENT2:
		return umad_do_register2(u, arg);
	case (unsigned int)IB_USER_MAD_UNREGISTER_AGENT:
		memcpy(&id, arg, sizeof(id));
		return umad_unregister(u->f, u->index, id);
	case (unsigned int)IB_USER_MAD_ENABLE_PKEY:
		if (has_agents(&u->f->dev->umad[u->index]))
			return -EINVAL;
		u->f->dev->umad[u->index].use_pkey = 1;
		return 0;
	default:
		return -ENOTTY;
	}
}

bool umad_ioctl(int fd, unsigned long request, void *arg, int *ret)
{
	const int saved = shim_enter();
	struct umad u;
	int err;

	if (!umad_of_fd(fd, &u)) {
		shim_leave(saved);
		return false;
	}
	err = !arg && (unsigned int)request !=
				      (unsigned int)IB_USER_MAD_ENABLE_PKEY ?
		      -EFAULT :
		      umad_run(&u, (unsigned int)request, arg);
	shim_leave(err ? -err : saved);
	*ret = err ? -1 : 0;
	return true;
}
