// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The commands of the RDMA_NL_NLDEV netlink client, which libibverbs and
 * rdma(8) use, and their dispatch: requests about the emulated device are
 * executed here, requests about other devices are forwarded to the kernel.
 * res.c has the RES_* commands, stat.c the STAT_* commands.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "fabric/profile.h"
#include "res.h"

#define NODE_TYPE_CA 1
#define PHYS_LINK_UP 5
#define PHYS_DISABLED 3
#define CM_ABI 4 /* ABI version of rdma_cm */
#define UVERBS_ABI 1 /* ABI version of the provider, as in sysfs */

bool nl_get_u32(const struct nl_request *r, int id, uint32_t *out)
{
	struct nlattr *a = r->attr[id];

	if (!a || nl()->nla_len(a) < (int)sizeof(*out))
		return false;
	*out = nl()->nla_get_u32(a);
	return true;
}

bool nl_get_u8(const struct nl_request *r, int id, uint32_t *out)
{
	struct nlattr *a = r->attr[id];

	if (!a || nl()->nla_len(a) < 1)
		return false;
	*out = nl()->nla_get_u8(a);
	return true;
}

static bool attr_is_string(struct nlattr *a, const char *s)
{
	size_t n = strlen(s);

	return a && nl()->nla_len(a) >= (int)n &&
	       !memcmp(nl()->nla_data(a), s, n) &&
	       (nl()->nla_len(a) == (int)n || !((char *)nl()->nla_data(a))[n]);
}

/*
 * The device of a request: the emulated device, a device of the host, or no
 * device is named.
 */
enum target { OURS, HOSTS, ALL };

static enum target request_target(struct nl_request *r)
{
	uint32_t index;

	if (!nl_get_u32(r, RDMA_NLDEV_ATTR_DEV_INDEX, &index))
		return ALL;
	r->device = index - URXE_DEV_INDEX;
	return r->f && r->device < r->f->hcas ? OURS : HOSTS;
}

int nldev_put_name(const struct urxe_fabric *f, struct nl_msg *m, uint32_t k)
{
	char name[16];
	int bad;

	snprintf(name, sizeof(name), "%.15s", fabric_hca(f, k)->name);
	bad = nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_DEV_INDEX,
				URXE_DEV_INDEX + k);
	bad |= nl()->nla_put_string(m, RDMA_NLDEV_ATTR_DEV_NAME, name);
	return bad;
}

static int dev_get(struct nl_request *r)
{
	const struct urxe_hca *hca = fabric_hca(r->f, r->device);
	struct nl_msg *m = nl_reply_new(r, RDMA_NLDEV_CMD_GET);
	const uint64_t guid = hca->node_guid;
	struct urxe_profile p;
	int bad;

	if (!m)
		return -ENOMEM;
	profile_copy(&p, &hca->profile);
	bad = nldev_put_name(r->f, m, r->device);
	/* in this message: the number of ports */
	bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	bad |= nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_CAP_FLAGS, 0);
	bad |= nl()->nla_put_string(m, RDMA_NLDEV_ATTR_FW_VERSION, p.fw_ver);
	bad |= nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_NODE_GUID, guid);
	bad |= nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID, guid);
	bad |= nl()->nla_put_u8(m, RDMA_NLDEV_ATTR_DEV_NODE_TYPE, NODE_TYPE_CA);
	bad |= nl()->nla_put_u8(m, RDMA_NLDEV_ATTR_DEV_DIM, 0);
	bad |= nl()->nla_put_string(m, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
				    hca->infiniband ? "ib" : "roce");
	nl_reply_send(r, m, bad);
	return 0;
}

static int port_put_subnet(const struct urxe_dev *dev,
			   const struct urxe_hca *hca, struct nl_msg *m)
{
	const struct urxe_subnet *s = &hca->subnet;
	uint64_t prefix;
	int bad;

	memcpy(&prefix, hca->gid[0].raw, sizeof(prefix));
	bad = nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_CAP_FLAGS,
				subnet_port_caps(dev, hca));
	bad |= nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_SUBNET_PREFIX,
				 be64toh(prefix));
	bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_LID, port_lid(s));
	bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_SM_LID, port_sm_lid(s));
	bad |= nl()->nla_put_u8(m, RDMA_NLDEV_ATTR_LMC, port_lmc(s));
	return bad;
}

static int port_get(struct nl_request *r)
{
	const struct urxe_hca *hca = fabric_hca(r->f, r->device);
	struct nl_msg *m;
	struct urxe_gid g;
	uint32_t port, state;
	int bad;

	if (!nl_is_dump(r) &&
	    (!nl_get_u32(r, RDMA_NLDEV_ATTR_PORT_INDEX, &port) || port != 1))
		return -EINVAL;
	m = nl_reply_new(r, RDMA_NLDEV_CMD_PORT_GET);
	if (!m)
		return -ENOMEM;
	state = load_acquire(&hca->port_state);
	bad = nldev_put_name(r->f, m, r->device);
	bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	bad |= nl()->nla_put_u8(m, RDMA_NLDEV_ATTR_PORT_STATE, (uint8_t)state);
	bad |= nl()->nla_put_u8(m, RDMA_NLDEV_ATTR_PORT_PHYS_STATE,
				state > URXE_PORT_DOWN ? PHYS_LINK_UP :
							 PHYS_DISABLED);
	if (hca->infiniband) {
		bad |= port_put_subnet(r->f->dev, hca, m);
	} else if (fabric_main_gid(hca, &g)) {
		bad |= nl()->nla_put_u32(m, RDMA_NLDEV_ATTR_NDEV_INDEX,
					 g.ifindex);
		bad |= nl()->nla_put_string(m, RDMA_NLDEV_ATTR_NDEV_NAME,
					    g.ifname);
	}
	nl_reply_send(r, m, bad);
	return 0;
}

static int chardev_put(struct nl_request *r, uint32_t major, uint32_t minor,
		       uint64_t abi, const char *name)
{
	/* encoded as by the kernel's huge_encode_dev() */
	const uint64_t dev = major << 8 | (minor & 0xff) |
			     (uint64_t)(minor & ~0xffu) << 12;
	struct nl_msg *m;
	int bad;

	m = nl_reply_new(r, RDMA_NLDEV_CMD_GET_CHARDEV);
	if (!m)
		return -ENOMEM;
	bad = nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_CHARDEV, dev);
	bad |= nl()->nla_put_u64(m, RDMA_NLDEV_ATTR_CHARDEV_ABI, abi);
	bad |= nl()->nla_put_string(m, RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
	nl_reply_send(r, m, bad);
	return 0;
}

/* Return the uverbs character device of an emulated device. */
static int chardev_get(struct nl_request *r)
{
	char name[24];

	if (!attr_is_string(r->attr[RDMA_NLDEV_ATTR_CHARDEV_TYPE], "uverbs"))
		return -ENODEV;
	snprintf(name, sizeof(name), URXE_UVERBS_NAME "%u",
		 URXE_DEV_INDEX + r->device);
	return chardev_put(r, URXE_DEV_MAJOR, URXE_DEV_MINOR + r->device,
			   UVERBS_ABI, name);
}

static int sys_get(struct nl_request *r)
{
	struct nl_msg *m = nl_reply_new(r, RDMA_NLDEV_CMD_SYS_GET);
	int bad;

	store_relaxed(&shim_fork_known,
		      1); /* libibverbs queries it only for fork support */
	if (!m)
		return -ENOMEM;
	/* 1: devices are visible in every network namespace */
	bad = nl()->nla_put_u8(m, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
	/* registered memory stays shared with the device across fork */
	bad |= nl()->nla_put_u8(m, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
	nl_reply_send(r, m, bad);
	return 0;
}

enum flags {
	DUMPS = 1, /* without a device, dump all devices */
	SYSTEM = 2, /* not about a device */
	BY_TYPE = 4, /* a character device, which its type may identify */
};

static const struct {
	int op;
	int flags;
	int (*run)(struct nl_request *r);
} commands[] = {
	{ RDMA_NLDEV_CMD_GET, DUMPS, dev_get },
	{ RDMA_NLDEV_CMD_PORT_GET, 0, port_get },
	{ RDMA_NLDEV_CMD_SYS_GET, SYSTEM, sys_get },
	{ RDMA_NLDEV_CMD_RES_GET, DUMPS, nldev_res_get },
	{ RDMA_NLDEV_CMD_RES_QP_GET, 0, nldev_res_list },
	{ RDMA_NLDEV_CMD_RES_CM_ID_GET, 0, nldev_res_list },
	{ RDMA_NLDEV_CMD_RES_CQ_GET, 0, nldev_res_list },
	{ RDMA_NLDEV_CMD_RES_MR_GET, 0, nldev_res_list },
	{ RDMA_NLDEV_CMD_RES_PD_GET, 0, nldev_res_list },
	{ RDMA_NLDEV_CMD_RES_CTX_GET, 0, nldev_res_list },
	{ RDMA_NLDEV_CMD_RES_SRQ_GET, 0, nldev_res_list },
	{ RDMA_NLDEV_CMD_STAT_GET, 0, nldev_stat_get },
	{ RDMA_NLDEV_CMD_STAT_GET_STATUS, 0, nldev_stat_get_status },
	{ RDMA_NLDEV_CMD_GET_CHARDEV, BY_TYPE, chardev_get },
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static int query_host(struct nl_request *r)
{
	return shim_with_host() ? nl_query_host(r) : -ENODEV;
}

/*
 * Execute command @i for a request that names no device, if the command
 * allows that: for the devices of the host and the emulated devices.
 */
static int run_all(struct nl_request *r, unsigned int i)
{
	struct nlattr *type = r->attr[RDMA_NLDEV_ATTR_CHARDEV_TYPE];
	int ret;

	if (commands[i].flags & SYSTEM) {
		ret = query_host(r);
		return ret ? commands[i].run(r) : 0;
	}
	if (commands[i].flags & BY_TYPE) { /* rdma_cm belongs to no device */
		if (!r->f || shim_host_cm() || !attr_is_string(type, "rdma_cm"))
			return query_host(r);
		return chardev_put(r, URXE_CM_MAJOR, URXE_CM_MINOR, CM_ABI,
				   "rdma_cm");
	}
	if (!(commands[i].flags & DUMPS) || !nl_is_dump(r))
		return -EINVAL;
	ret = query_host(r);
	if (ret && ret != -ENODEV)
		return ret;
	ret = 0;
	for (r->device = 0; r->f && r->device < r->f->hcas && !ret; r->device++)
		ret = commands[i].run(r);
	return ret;
}

int nldev_run(struct nl_request *r)
{
	const unsigned int type = r->hdr->nlmsg_type;
	enum target target = request_target(r);
	unsigned int i;

	for (i = 0; i < COMMANDS; i++)
		if (type == (unsigned int)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
							   commands[i].op))
			break;
	if (i == COMMANDS)
		return target == OURS || !shim_with_host() ? -EOPNOTSUPP :
							     nl_query_host(r);
	if (target == HOSTS)
		return query_host(r);
	if (r->f)
		shim_refresh_gids(r->f);
	return target == OURS ? commands[i].run(r) : run_all(r, i);
}
