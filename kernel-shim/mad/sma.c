// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Subnet management agents: Get and Set of the attributes of a node (IB 14.2.5)
 * by SMPs.  Set is how a subnet manager configures a port: LIDs, P_Keys, its
 * state.  MADs follow the forwarding tables of switches.  Other packets reach
 * each port that links join with their own.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "fabric/profile.h"
#include "mad_device.h"

#define NODE_CA 1
#define NODE_IS_SWITCH 2
#define PHYS_POLLING 2
#define PHYS_DISABLED 3
#define PHYS_LINK_UP 5
#define SM_STATE_MASTER 3
#define MTU_4096 5
#define VL_0 1
#define PKEYS_PER_BLOCK 32

void sma_node_info(const struct urxe_dev *dev, uint32_t node, uint32_t port,
		   uint8_t *out)
{
	const uint64_t guid = node_guid(dev, node);
	const uint32_t k = node_is_switch(node) ? subnet_sm_home(dev) : node;
	const struct urxe_profile *p = &dev->hca[k].profile;

	attr_set(out, ATTR_NODE_base_version, 1);
	attr_set(out, ATTR_NODE_class_version, 1);
	attr_set(out, ATTR_NODE_type,
		 node_is_switch(node) ? NODE_IS_SWITCH : NODE_CA);
	attr_set(out, ATTR_NODE_ports, node_ports(dev, node));
	attr_set(out, ATTR_NODE_system_guid, guid);
	attr_set(out, ATTR_NODE_guid, guid);
	attr_set(out, ATTR_NODE_port_guid, guid);
	attr_set(out, ATTR_NODE_partition_cap, URXE_MAX_PKEY);
	attr_set(out, ATTR_NODE_device_id, p->value[PROFILE_vendor_part_id]);
	attr_set(out, ATTR_NODE_revision, p->value[PROFILE_hw_ver]);
	attr_set(out, ATTR_NODE_local_port, port);
	attr_set(out, ATTR_NODE_vendor_id, p->value[PROFILE_vendor_id]);
}

/*
 * Speeds of struct ibv_port_attr: 1, 2 and 4 are SDR to QDR, 16 and up the
 * extended ones.
 */
static void port_speeds(const struct urxe_hca *hca, uint8_t *out)
{
	uint8_t speed, width, extended, base;

	hca_width_speed(hca, &width, &speed);
	extended = speed >> 4;
	base = extended ? 4 : speed & 7;

	attr_set(out, ATTR_PORT_width_active, width);
	attr_set(out, ATTR_PORT_width_enabled, width | 1);
	attr_set(out, ATTR_PORT_width_supported, width | 1);
	attr_set(out, ATTR_PORT_speed_active, base);
	attr_set(out, ATTR_PORT_speed_enabled, 2 * base - 1);
	attr_set(out, ATTR_PORT_speed_supported, 2 * base - 1);
	attr_set(out, ATTR_PORT_speed_ext_active, extended);
	if (extended) {
		attr_set(out, ATTR_PORT_speed_ext_enabled, 2 * extended - 1);
		attr_set(out, ATTR_PORT_speed_ext_supported, 2 * extended - 1);
	}
}

static uint64_t subnet_prefix(const struct urxe_dev *dev, uint32_t node)
{
	uint64_t prefix;

	if (node_is_switch(node))
		return SUBNET_PREFIX;
	memcpy(&prefix, dev->hca[node].gid[0].raw, sizeof(prefix));
	return be64toh(prefix);
}

/* Port 0 of the switch and the ports of devices have LIDs. */
static void port_addresses(struct urxe_fabric *f, uint32_t node, uint8_t *out)
{
	const struct urxe_subnet *s = node_subnet(f->dev, node);
	uint32_t caps = URXE_PORT_SYS_IMAGE_GUID | URXE_PORT_EXTENDED_SPEEDS;

	if (!node_is_switch(node)) {
		caps = subnet_port_caps(f->dev, &f->dev->hca[node]);
		if (f->dev->sm_external && issm_is_open(f, node))
			caps |= URXE_PORT_SM;
		attr_set(out, ATTR_PORT_pkey_violations,
			 port_violations(f->dev, node, URXE_CNT_BAD_PKEY));
		attr_set(out, ATTR_PORT_qkey_violations,
			 port_violations(f->dev, node, URXE_CNT_BAD_QKEY));
	}
	attr_set(out, ATTR_PORT_gid_prefix, subnet_prefix(f->dev, node));
	attr_set(out, ATTR_PORT_lid, port_lid(s));
	attr_set(out, ATTR_PORT_lmc, port_lmc(s));
	attr_set(out, ATTR_PORT_sm_lid, port_sm_lid(s));
	attr_set(out, ATTR_PORT_sm_sl, port_sm_sl(s));
	attr_set(out, ATTR_PORT_cap_mask, caps);
	attr_set(out, ATTR_PORT_guid_cap, 8);
	attr_set(out, ATTR_PORT_subnet_timeout, SUBNET_TIMEOUT);
	attr_set(out, ATTR_PORT_response_time, 16);
}

/* A port of a device is Disabled whenever it is down, as in sysfs. */
static bool port_is_off(const struct urxe_dev *dev, uint32_t node,
			uint32_t port)
{
	return !node_is_switch(node) ||
	       load_acquire(&dev->sw[node - URXE_MAX_HCA].down[port]) &
		       LINK_DOWN;
}

void sma_port_info(struct urxe_fabric *f, uint32_t node, uint32_t port,
		   uint8_t *out)
{
	const struct urxe_dev *dev = f->dev;
	const uint32_t state = port_state_of(dev, node, port);
	const int other = port_device(dev, node, port);
	uint32_t k = node;

	/* a port of a switch has the speed of the device at the other end */
	if (node_is_switch(node))
		k = other < 0 ? subnet_sm_home(dev) : (uint32_t)other;
	if (!node_is_switch(node) || !port)
		port_addresses(f, node, out);
	attr_set(out, ATTR_PORT_local_port, port);
	attr_set(out, ATTR_PORT_state, state);
	attr_set(out, ATTR_PORT_phys_state,
		 state != IBV_PORT_DOWN	      ? PHYS_LINK_UP :
		 port_is_off(dev, node, port) ? PHYS_DISABLED :
						PHYS_POLLING);
	attr_set(out, ATTR_PORT_down_default, PHYS_POLLING);
	attr_set(out, ATTR_PORT_neighbor_mtu, MTU_4096);
	attr_set(out, ATTR_PORT_mtu_cap, MTU_4096);
	attr_set(out, ATTR_PORT_vl_cap, VL_0);
	attr_set(out, ATTR_PORT_operational_vls, VL_0);
	port_speeds(&dev->hca[k], out);
}

void sma_switch_info(struct urxe_dev *dev, uint32_t node, uint8_t *out)
{
	const struct urxe_switch *sw = node_switch(dev, node);

	attr_set(out, ATTR_SWITCH_lft_cap, LID_LAST + 1);
	attr_set(out, ATTR_SWITCH_mft_cap, URXE_MAX_MCAST_GRP);
	attr_set(out, ATTR_SWITCH_lft_top,
		 dev->sm_external ? load_relaxed(&sw->lft_top) : lid_top(dev));
	attr_set(out, ATTR_SWITCH_life_time, 18);
	attr_set(out, ATTR_SWITCH_state_change, load_relaxed(&sw->changed));
}

void sma_sm_info(const struct urxe_dev *dev, uint8_t *out)
{
	attr_set(out, ATTR_SM_guid, dev->hca[subnet_sm_home(dev)].node_guid);
	attr_set(out, ATTR_SM_activity, 1);
	attr_set(out, ATTR_SM_priority, 15);
	attr_set(out, ATTR_SM_state, SM_STATE_MASTER);
}

void sma_guids(const struct urxe_dev *dev, uint32_t node, uint8_t *out)
{
	const uint64_t guid = htobe64(node_guid(dev, node));

	memcpy(out, &guid, sizeof(guid));
}

void sma_pkeys(struct urxe_dev *dev, uint32_t node, uint8_t *out)
{
	const struct urxe_subnet *s = node_subnet(dev, node);
	uint16_t pkey;
	uint32_t i;

	for (i = 0; i < PKEYS_PER_BLOCK; i++) {
		pkey = htobe16(port_pkey(s, i));
		memcpy(out + 2 * i, &pkey, sizeof(pkey));
	}
}

void sma_lft(struct urxe_dev *dev, uint32_t node, uint32_t block, uint8_t *out)
{
	uint32_t i;

	for (i = 0; i < URXE_LFT_BLOCK; i++)
		out[i] = switch_route(dev, node, block * URXE_LFT_BLOCK + i);
}

/* Has the device at the other end of a port joined a group, or may it? */
static bool port_wants_group(struct urxe_dev *dev, uint32_t node, uint32_t port,
			     uint32_t group)
{
	const int k = port_device(dev, node, port);

	return k >= 0 && load_acquire(&dev->hca[k].joins[group].receives);
}

/*
 * Ports that a multicast group is forwarded to, of 16 ports from 16 *
 * position on.  The built-in subnet manager lists those of devices.
 */
static void sma_mft(struct urxe_dev *dev, uint32_t node, uint32_t block,
		    uint32_t position, uint8_t *out)
{
	uint32_t i, bit;
	uint16_t ports;

	for (i = 0; i < URXE_MFT_BLOCK && position < URXE_MFT_POSITIONS; i++) {
		ports = node_switch(dev, node)->mft[position][block][i];
		for (bit = 0; bit < 16 && !dev->sm_external; bit++)
			if (port_wants_group(dev, node, 16 * position + bit,
					     block * URXE_MFT_BLOCK + i))
				ports |= (uint16_t)(1u << bit);
		ports = htobe16(ports);
		memcpy(out + 2 * i, &ports, sizeof(ports));
	}
}

/* ------------------------------------------------------- Get */

struct smp {
	struct urxe_fabric *f;
	uint32_t node, in_port;
	uint32_t modifier;
	uint8_t *data;
};

/* The port that the attribute modifier names; -1: there is none. */
static int smp_port(const struct smp *s)
{
	const uint32_t port = s->modifier & 0xff;

	if (!node_is_switch(s->node))
		return port <= 1 ? 1 : -1;
	return port <= node_ports(s->f->dev, s->node) ? (int)port : -1;
}

static uint16_t get_node_description(struct smp *s)
{
	subnet_node_name(s->f->dev, (char *)s->data, s->node);
	return 0;
}

static uint16_t get_node_info(struct smp *s)
{
	sma_node_info(s->f->dev, s->node, s->in_port, s->data);
	return 0;
}

static uint16_t get_switch_info(struct smp *s)
{
	if (!node_is_switch(s->node))
		return STATUS_BAD_ATTRIBUTE;
	sma_switch_info(s->f->dev, s->node, s->data);
	return 0;
}

static uint16_t get_guids(struct smp *s)
{
	if (!s->modifier)
		sma_guids(s->f->dev, s->node, s->data);
	return 0;
}

static uint16_t get_port_info(struct smp *s)
{
	const int port = smp_port(s);

	if (port < 0)
		return STATUS_BAD_VALUE;
	sma_port_info(s->f, s->node, (uint32_t)port, s->data);
	/* the port that received the SMP */
	attr_set(s->data, ATTR_PORT_local_port, s->in_port);
	return 0;
}

static uint16_t get_pkeys(struct smp *s)
{
	if (s->modifier & 0xffff)
		return STATUS_BAD_VALUE;
	sma_pkeys(s->f->dev, s->node, s->data);
	return 0;
}

static uint16_t get_lft(struct smp *s)
{
	if (!node_is_switch(s->node))
		return STATUS_BAD_ATTRIBUTE;
	if (s->modifier >= URXE_LFT_BLOCKS)
		return STATUS_BAD_VALUE;
	sma_lft(s->f->dev, s->node, s->modifier, s->data);
	return 0;
}

static uint16_t get_mft(struct smp *s)
{
	if (!node_is_switch(s->node))
		return STATUS_BAD_ATTRIBUTE;
	if ((s->modifier & 0x1ff) >= URXE_MFT_BLOCKS)
		return STATUS_BAD_VALUE;
	sma_mft(s->f->dev, s->node, s->modifier & 0x1ff, s->modifier >> 28,
		s->data);
	return 0;
}

static uint16_t get_zeros(struct smp *s)
{
	(void)s;
	return 0;
}

/* ------------------------------------------------------- Set */

/* LIDs and subnet manager of a port; only changes are made. */
static uint16_t set_addresses(struct smp *s, const uint8_t *in)
{
	const struct urxe_subnet *now = node_subnet(s->f->dev, s->node);
	const uint32_t lid = (uint32_t)attr_get(in, ATTR_PORT_lid);
	const uint32_t lmc = (uint32_t)attr_get(in, ATTR_PORT_lmc);
	const uint16_t sm = (uint16_t)attr_get(in, ATTR_PORT_sm_lid);
	const uint8_t sl = (uint8_t)attr_get(in, ATTR_PORT_sm_sl);

	if ((lid != port_lid(now) || lmc != port_lmc(now)) &&
	    subnet_set_lids(s->f, s->node, lid, lmc))
		return STATUS_BAD_VALUE;
	if ((sm != port_sm_lid(now) || sl != port_sm_sl(now)) &&
	    subnet_set_sm(s->f, s->node, sm, sl))
		return STATUS_BAD_VALUE;
	if (!node_is_switch(s->node) &&
	    attr_get(in, ATTR_PORT_client_reregister))
		fabric_port_event(s->f, s->node, IBV_EVENT_CLIENT_REREGISTER);
	return 0;
}

/* Take the link of a port down or up.  -EINVAL: it has none */
static int link_set(const struct smp *s, uint32_t port, bool up)
{
	const bool is_switch = node_is_switch(s->node);
	const struct urxe_link_end e = { .node = (uint16_t)s->node,
					 .port = is_switch ? (uint16_t)port :
							     1 };

	if (!e.port)
		return -EINVAL;
	return fabric_set_link(s->f, e, up ? FABRIC_LINK_UP : FABRIC_LINK_DOWN);
}

/* The state of a port: INIT to ARMED to ACTIVE, and any to DOWN (IB 14.3.6) */
static uint16_t set_state(struct smp *s, uint32_t port, const uint8_t *in)
{
	const uint32_t want = (uint32_t)attr_get(in, ATTR_PORT_state);
	const uint32_t phys = (uint32_t)attr_get(in, ATTR_PORT_phys_state);
	const uint32_t now = port_state_of(s->f->dev, s->node, port);

	if (!port)
		return 0;
	if (phys == PHYS_DISABLED || want == IBV_PORT_DOWN) {
		if (link_set(s, port, false) < 0)
			return STATUS_BAD_VALUE;
		if (phys != PHYS_DISABLED)
			link_set(s, port, true);
		return 0;
	}
	if (phys == PHYS_POLLING && now == IBV_PORT_DOWN)
		link_set(s, port, true);
	if (!want || want == now)
		return 0;
	if ((want != IBV_PORT_ARMED && want != IBV_PORT_ACTIVE) ||
	    now != want - 1)
		return STATUS_BAD_VALUE;
	if (node_is_switch(s->node))
		store_seq_cst(&node_switch(s->f->dev, s->node)->state[port],
			      want);
	else
		fabric_set_port_state(s->f, s->node, want);
	return 0;
}

static uint16_t set_port_info(struct smp *s)
{
	const int port = smp_port(s);
	uint8_t in[SMP_DATA_BYTES];
	uint16_t status = 0;

	if (port < 0)
		return STATUS_BAD_VALUE;
	memcpy(in, s->data, sizeof(in));
	if (!node_is_switch(s->node) || !port)
		status = set_addresses(s, in);
	if (!status)
		status = set_state(s, (uint32_t)port, in);
	memset(s->data, 0, sizeof(in));
	get_port_info(s);
	return status;
}

static uint16_t set_pkeys(struct smp *s)
{
	uint16_t pkey[PKEYS_PER_BLOCK];
	uint32_t i;

	if (s->modifier & 0xffff)
		return STATUS_BAD_VALUE;
	for (i = 0; i < PKEYS_PER_BLOCK; i++)
		pkey[i] = (uint16_t)(s->data[2 * i] << 8 | s->data[2 * i + 1]);
	if (node_is_switch(s->node))
		return 0;
	return subnet_set_pkeys(s->f, s->node, pkey, PKEYS_PER_BLOCK) ?
		       STATUS_BAD_VALUE :
		       0;
}

static uint16_t set_switch_info(struct smp *s)
{
	struct urxe_switch *sw = node_switch(s->f->dev, s->node);

	if (!node_is_switch(s->node))
		return STATUS_BAD_ATTRIBUTE;
	store_relaxed(&sw->lft_top,
		      (uint32_t)attr_get(s->data, ATTR_SWITCH_lft_top));
	if (attr_get(s->data, ATTR_SWITCH_state_change))
		store_relaxed(&sw->changed, 0);
	memset(s->data, 0, SMP_DATA_BYTES);
	return get_switch_info(s);
}

static uint16_t set_lft(struct smp *s)
{
	if (!node_is_switch(s->node))
		return STATUS_BAD_ATTRIBUTE;
	if (s->modifier >= URXE_LFT_BLOCKS)
		return STATUS_BAD_VALUE;
	memcpy(node_switch(s->f->dev, s->node)->lft[s->modifier], s->data,
	       URXE_LFT_BLOCK);
	return 0;
}

static uint16_t set_mft(struct smp *s)
{
	const uint32_t block = s->modifier & 0x1ff;
	const uint32_t position = s->modifier >> 28;
	uint16_t *mft;
	uint32_t i;

	if (!node_is_switch(s->node))
		return STATUS_BAD_ATTRIBUTE;
	if (block >= URXE_MFT_BLOCKS || position >= URXE_MFT_POSITIONS)
		return STATUS_BAD_VALUE;
	mft = node_switch(s->f->dev, s->node)->mft[position][block];
	for (i = 0; i < URXE_MFT_BLOCK; i++)
		mft[i] = (uint16_t)(s->data[2 * i] << 8 | s->data[2 * i + 1]);
	return 0;
}

/* ------------------------------------------------------- dispatch */

static const struct {
	uint16_t attribute;
	uint16_t (*get)(struct smp *s), (*set)(struct smp *s);
} attributes[] = {
	{ ATTRIBUTE_NODE_DESCRIPTION, get_node_description, NULL },
	{ ATTRIBUTE_NODE_INFO, get_node_info, NULL },
	{ ATTRIBUTE_SWITCH_INFO, get_switch_info, set_switch_info },
	{ ATTRIBUTE_GUID_INFO, get_guids, get_guids },
	{ ATTRIBUTE_PORT_INFO, get_port_info, set_port_info },
	{ ATTRIBUTE_PKEY_TABLE, get_pkeys, set_pkeys },
	{ ATTRIBUTE_SL_TO_VL, get_zeros, get_zeros },
	{ ATTRIBUTE_VL_ARBITRATION, get_zeros, get_zeros },
	{ ATTRIBUTE_LFT, get_lft, set_lft },
	{ ATTRIBUTE_MFT, get_mft, set_mft },
};
#define ATTRIBUTES (sizeof(attributes) / sizeof(*attributes))

static uint16_t sma_run(struct smp *s, uint32_t attribute, bool set)
{
	uint16_t (*run)(struct smp * smp);
	unsigned int i;

	for (i = 0; i < ATTRIBUTES; i++)
		if (attributes[i].attribute == attribute)
			break;
	if (i == ATTRIBUTES)
		return STATUS_BAD_ATTRIBUTE;
	run = set ? attributes[i].set : attributes[i].get;
	if (!run)
		return STATUS_BAD_ATTRIBUTE;
	if (!set)
		memset(s->data, 0, SMP_DATA_BYTES);
	return run(s);
}

/* The built-in subnet manager is at one port, and answers Get only. */
static bool sm_info_answer(const struct urxe_dev *dev, uint32_t node,
			   uint32_t method, uint8_t *data)
{
	if (dev->sm_external || method != METHOD_GET ||
	    node != subnet_sm_home(dev))
		return false;
	memset(data, 0, SMP_DATA_BYTES);
	sma_sm_info(dev, data);
	return true;
}

bool sma_answer(struct urxe_fabric *f, uint32_t node, uint32_t in_port,
		uint8_t mad[MAD_BYTES_MAX])
{
	const uint32_t method = (uint32_t)attr_get(mad, ATTR_MAD_method);
	const uint32_t attribute = (uint32_t)attr_get(mad, ATTR_MAD_attribute);
	struct smp s = {
		.f = f,
		.node = node,
		.in_port = in_port,
		.modifier = (uint32_t)attr_get(mad, ATTR_MAD_modifier),
		.data = mad + SMP_DATA,
	};

	if (attr_get(mad, ATTR_MAD_response) ||
	    (method != METHOD_GET && method != METHOD_SET))
		return false;
	if (attribute == ATTRIBUTE_SM_INFO) {
		if (!sm_info_answer(f->dev, node, method, s.data))
			return false;
		mad_respond(mad, 0);
		return true;
	}
	mad_respond(mad, sma_run(&s, attribute, method == METHOD_SET));
	return true;
}
