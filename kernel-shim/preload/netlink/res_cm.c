// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connection identifiers; shared/cm_tables.h has their tables. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cm/cm.h"
#include "res.h"

/* enum rdma_cm_state of the kernel, for each enum cma_state */
static const uint8_t states[] = {
	[CMA_IDLE] = 0,		  [CMA_ADDR_BOUND] = 7, [CMA_ADDR_RESOLVED] = 2,
	[CMA_ROUTE_RESOLVED] = 4, [CMA_CONNECT] = 5,	[CMA_DISCONNECT] = 6,
	[CMA_LISTEN] = 8,
};

struct entry {
	const struct cm_id *id;
	const struct cm_chan *chan;
	uint32_t index;
};

static int put_addr(struct nl_msg *m, int attr, const union cm_addr *a)
{
	struct sockaddr_storage s = { 0 };
	size_t len = cm_addr_size(a);

	if (!len)
		return 0;
	memcpy(&s, a, len);
	return nla_put(m, attr, sizeof(s), &s);
}

static int fill(struct nl_msg *m, const void *object)
{
	const struct entry *e = object;
	const struct cm_id *id = e->id;
	int bad = 0;

	if (id->flags & CM_F_DEVICE)
		bad = nla_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	if (id->qpn) {
		bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_LQPN, id->qpn);
		bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_RES_TYPE, id->qp_type);
	}
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_PS, id->ps);
	bad |= nla_put_u8(m, RDMA_NLDEV_ATTR_RES_STATE,
			  id->cma < sizeof(states) ? states[id->cma] : 0);
	bad |= put_addr(m, RDMA_NLDEV_ATTR_RES_SRC_ADDR, &id->src);
	bad |= put_addr(m, RDMA_NLDEV_ATTR_RES_DST_ADDR, &id->dst);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_CM_IDN, e->index);
	bad |= nla_put_u32(m, RDMA_NLDEV_ATTR_RES_PID, (uint32_t)e->chan->pid);
	return bad;
}

/*
 * Tables and lock, after channels of the dead are cleared up; false: there
 * are no tables yet.
 */
static bool open_tables(struct urxe_fabric *f, struct cm *cm)
{
	/* not to make them for the sake of looking */
	if (faccessat(f->dirfd, "cm", F_OK, 0) || cm_map(f, &cm->t))
		return false;
	cm->f = f;
	cm_lock(cm);
	cm_chan_sweep(cm, CM_MAX_CHAN);
	return true;
}

static void close_tables(struct cm *cm)
{
	cm_unlock(cm);
	munmap(cm->t, sizeof(*cm->t));
}

/* Entry `ref`, if it is the device's: it has led there, or listens on all. */
static bool get(struct cm *cm, uint32_t ref, struct entry *e)
{
	const struct cm_id *id = cm_id_at(cm, ref);
	const struct cm_chan *chan = id ? cm_chan_at(cm, id->chan) : NULL;

	if (!chan || chan->state != CM_CHAN_LIVE ||
	    (!(id->flags & CM_F_DEVICE) && id->cma != CMA_LISTEN))
		return false;
	*e = (struct entry){ id, chan, ref - 1 };
	return true;
}

uint32_t res_count_cm_ids(struct urxe_fabric *f)
{
	struct cm cm = { 0 };
	uint32_t i, n = 0;
	struct entry e;

	if (!open_tables(f, &cm))
		return 0;
	for (i = 1; i <= cm_ids(&cm); i++)
		n += get(&cm, i, &e);
	close_tables(&cm);
	return n;
}

static void list_all(struct res_out *o)
{
	struct cm cm = { 0 };
	struct entry e;
	uint32_t i;

	if (!open_tables(o->r->f, &cm))
		return;
	for (i = 1; i <= cm_ids(&cm) && !res_done(o); i++)
		if (get(&cm, i, &e))
			res_put(o, e.index, !!(e.id->flags & CM_F_DEVICE), fill,
				&e);
	close_tables(&cm);
}

const struct res_kind res_kind_cm_id = {
	.op = RDMA_NLDEV_CMD_RES_CM_ID_GET,
	.table = RDMA_NLDEV_ATTR_RES_CM_ID,
	.entry = RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
	.id = RDMA_NLDEV_ATTR_RES_CM_IDN,
	.per_port = true,
	.list_all = list_all,
};
