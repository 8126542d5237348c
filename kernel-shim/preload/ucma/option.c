// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Command SET_OPTION: rdma_set_option(3), and the path that an application or
 * librdmacm resolved itself (RDMA_OPTION_IB_PATH).  ucma.c calls it with the
 * tables locked.  -ENOSYS: unknown level or option.
 */
#include <endian.h>

#include "command.h"

static int id_set_reuse(struct cm_id *id, bool on)
{
	if (!(on && id->cma != CMA_LISTEN) && id->cma != CMA_IDLE)
		return -EINVAL;
	id->flags = on ? id->flags | CM_F_REUSE :
			 id->flags & ~(uint32_t)CM_F_REUSE;
	return 0;
}

static int id_set_afonly(struct cm_id *id, bool on)
{
	if (id->cma != CMA_IDLE && id->cma != CMA_ADDR_BOUND)
		return -EINVAL;
	id->flags = on ? id->flags | CM_F_AFONLY :
			 id->flags & ~(uint32_t)CM_F_AFONLY;
	id->flags |= CM_F_AFONLY_SET;
	return 0;
}

static int id_set_timeout(struct cm_id *id, uint8_t timeout)
{
	if (id->qp_type != CM_QPT_RC && id->qp_type != CM_QPT_XRC_SEND)
		return -EINVAL;
	id->timeout = timeout;
	id->flags |= CM_F_TIMEOUT_SET;
	return 0;
}

static int id_set_option(struct cm_id *id,
			 const struct rdma_ucm_set_option *cmd)
{
	const void *value = (const void *)(uintptr_t)cmd->optval;
	uint8_t byte;
	int number;

	switch (cmd->optname) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (cmd->optlen != sizeof(byte))
			return -EINVAL;
		memcpy(&byte, value, sizeof(byte));
		if (cmd->optname == RDMA_OPTION_ID_ACK_TIMEOUT)
			return id_set_timeout(id, byte);
		id->tos = byte;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (cmd->optlen != sizeof(number))
			return -EINVAL;
		memcpy(&number, value, sizeof(number));
		return cmd->optname == RDMA_OPTION_ID_AFONLY ?
			       id_set_afonly(id, number) :
			       id_set_reuse(id, number);
	default:
		return -ENOSYS;
	}
}

/*
 * Resolve the route with a path record of the application: the first that is
 * GMP, primary and bidirectional.  Only its traffic class, flow label and
 * packet lifetime are used.
 */
static int id_set_ib_path(struct ucma *u, const struct rdma_ucm_set_option *cmd)
{
	const struct ucma_wire_path *path;
	const uint32_t wanted = IB_PATH_GMP | IB_PATH_PRIMARY |
				IB_PATH_BIDIRECTIONAL;
	const struct ib_path_rec_data *p = (const void *)(uintptr_t)cmd->optval;
	size_t i, n = cmd->optlen / sizeof(*p);

	if (cmd->optlen % sizeof(*p))
		return -EINVAL;
	for (i = 0; i < n; i++)
		if (p[i].flags == wanted)
			break;
	if (i == n || !(u->id->flags & CM_F_DEVICE))
		return -EINVAL;
	path = (const void *)p[i].path_rec;
	return ucma_route_resolved(u, path->traffic_class,
				   be32toh(path->flow_hop) >> 8 & 0xfffff,
				   path->life_time & 31);
}

int ucma_set_option(struct ucma *u)
{
	const struct rdma_ucm_set_option *cmd = u->cmd;

	if (!cmd->optval)
		return -EFAULT;
	if (cmd->level == RDMA_OPTION_ID)
		return id_set_option(u->id, cmd);
	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return id_set_ib_path(u, cmd);
	return -ENOSYS;
}
