// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The commands STAT_GET and STAT_GET_STATUS, for rdma(8) "statistic".  They
 * return the hardware counters of the port, which sysfs has in hw_counters.
 * There are no counters per QP or per MR.
 */
#include "res.h"

static bool for_our_port(const struct nl_request *r)
{
	uint32_t port;

	return nl_get_u32(r, RDMA_NLDEV_ATTR_PORT_INDEX, &port) && port == 1;
}

/* Begin a message with device and port.  NULL: no memory. */
static struct nl_msg *stat_begin(struct nl_request *r, int op, int *bad)
{
	struct nl_msg *m = nl_reply_new(r, op);

	if (m) {
		*bad = nldev_put_name(r->f, m, r->device);
		*bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	}
	return m;
}

/* Add counter @i: name, and its value or (@values is false) its index. */
static int stat_put_counter(struct nl_msg *m, const struct nl_request *r,
			    unsigned int i, bool values)
{
	struct nlattr *entry =
		nl()->nla_nest_start(m, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
	int bad;

	if (!entry)
		return -1;
	bad = nl()->nla_put_string(m, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
				   counter_name(i));
	if (values)
		bad |= nl()->nla_put_u64(
			m, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
			counter_read(r->f->dev, r->f->first + r->device, i));
	else
		bad |= nl()->nla_put_u32(
			m, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_INDEX, i);
	nl()->nla_nest_end(m, entry);
	return bad;
}

static int port_counters(struct nl_request *r, int op, bool values)
{
	struct nlattr *table;
	struct nl_msg *m;
	unsigned int i;
	int bad;

	if (!for_our_port(r))
		return -EINVAL;
	m = stat_begin(r, op, &bad);
	if (!m)
		return -ENOMEM;
	table = nl()->nla_nest_start(m, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (i = 0; table && i < URXE_CNT_COUNT; i++)
		if (counter_name(i))
			bad |= stat_put_counter(m, r, i, values);
	if (table)
		nl()->nla_nest_end(m, table);
	nl_reply_send(r, m, bad || !table);
	return 0;
}

/*
 * Return the counter mode: counters are bound to QPs neither manually nor
 * automatically, so a counter id is -ENOENT.
 */
static int qp_mode(struct nl_request *r)
{
	struct nl_msg *m;
	int bad;

	if (r->attr[RDMA_NLDEV_ATTR_STAT_COUNTER_ID])
		return -ENOENT;
	if (!r->attr[RDMA_NLDEV_ATTR_STAT_MODE] || !for_our_port(r))
		return -EINVAL;
	m = stat_begin(r, RDMA_NLDEV_CMD_STAT_GET, &bad);
	if (!m)
		return -ENOMEM;
	bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_STAT_MODE,
				 RDMA_COUNTER_MODE_NONE);
	nl_reply_send(r, m, bad);
	return 0;
}

int nldev_stat_get(struct nl_request *r)
{
	uint32_t res;

	if (!nl_get_u32(r, RDMA_NLDEV_ATTR_STAT_RES, &res))
		return nl_is_dump(r) ? -EINVAL
				     : port_counters(r, RDMA_NLDEV_CMD_STAT_GET,
						     true);
	switch (res) {
	case RDMA_NLDEV_ATTR_RES_QP:
		return nl_is_dump(r) ? 0 : qp_mode(r);
	case RDMA_NLDEV_ATTR_RES_MR:
		return res_run(r, &res_kind_mr_stat);
	default:
		return -EINVAL;
	}
}

int nldev_stat_get_status(struct nl_request *r)
{
	return port_counters(r, RDMA_NLDEV_CMD_STAT_GET_STATUS, false);
}
