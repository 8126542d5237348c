// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The built-in subnet administrator (IB 15): queries of nodes, ports, links,
 * paths and multicast groups, and joins of groups.  Records are made from the
 * state of the fabric for each query.
 *
 * A record matches a query if all components whose bit is set in the query's
 * component mask are equal (struct component).  A query with a component that
 * is in no table here is invalid.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/profile.h"
#include "sa.h"
#include "wire/field.h"

#define RMPP_VERSION 1
#define RMPP_DATA 1
#define RMPP_WHOLE 7 /* flags: active, first and last segment */
#define RMPP_HEADER 20 /* of the SA header, counted as payload */
#define SELECT_EXACTLY 2
#define MTU_4096 5
#define LIFE_TIME 18 /* default of OpenSM */
#define FULL_MEMBER 1
#define SEND_ONLY_FULL_MEMBER 8

#define NODE_AT 32 /* bit of the NodeInfo in its record; PortInfo as well */
#define PORT_CAPS 7 /* component of the capability mask */
static const struct component port_components[] = {
	{ 0, 0, 16 },
	{ 1, 16, 8 },
	{ 5, NODE_AT + 128, 16 },
	{ 6, NODE_AT + 144, 16 },
	{ 7, NODE_AT + 160, 32 },
	{ 10, NODE_AT + 224, 8 },
};

static bool record_matches(const struct query *q, const struct component *c,
			   size_t n, const uint8_t *record)
{
	uint64_t has, wanted;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!wants(q, c[i].bit))
			continue;
		has = field_get(record, c[i].at, c[i].bits);
		wanted = field_get(q->wanted, c[i].at, c[i].bits);
		if (q->caps && c == port_components && c[i].bit == PORT_CAPS)
			has &= wanted;
		if (has != wanted)
			return false;
	}
	return true;
}

static bool query_is_valid(const struct query *q, const struct component *c,
			   size_t n)
{
	uint64_t known = 0;
	size_t i;

	for (i = 0; i < n; i++)
		known |= 1ull << c[i].bit;
	return !(q->mask & ~known);
}

void record_add(struct query *q, const uint8_t *record)
{
	const size_t at = SA_DATA + q->records * q->stride;
	uint8_t *more;

	if (at + q->stride > q->room) {
		more = realloc(q->out, 2 * q->room + q->stride);
		if (!more) {
			q->failed = true;
			return;
		}
		q->out = more;
		q->room = 2 * q->room + q->stride;
	}
	memcpy(q->out + at, record, q->stride);
	q->records++;
}

/* ------------------------------------------------------- nodes and ports */

static uint16_t lid_of(struct query *q, uint32_t node)
{
	return port_lid(node_subnet(q->f->dev, node));
}

static const struct component node_components[] = {
	{ 0, 0, 16 },
	{ 4, NODE_AT + 16, 8 },
	{ 5, NODE_AT + 24, 8 },
	{ 6, NODE_AT + 32, 64 },
	{ 7, NODE_AT + 96, 64 },
	{ 8, NODE_AT + 160, 64 },
	{ 9, NODE_AT + 224, 16 },
	{ 10, NODE_AT + 240, 16 },
	{ 12, NODE_AT + 288, 8 },
	{ 13, NODE_AT + 296, 24 },
};

static void node_record(struct query *q, uint32_t node, uint32_t port,
			uint8_t *r)
{
	(void)port;
	attr_set(r, ATTR_RECORD_lid, lid_of(q, node));
	sma_node_info(q->f->dev, node, node_is_switch(node) ? 0 : 1, r + 4);
	subnet_node_name(q->f->dev, (char *)r + 44, node);
}

static void port_record(struct query *q, uint32_t node, uint32_t port,
			uint8_t *r)
{
	attr_set(r, ATTR_RECORD_lid, lid_of(q, node));
	attr_set(r, ATTR_RECORD_port, port);
	sma_port_info(q->f, node, port, r + 4);
}

static const struct component lid_components[] = { { 0, 0, 16 } };

static void switch_record(struct query *q, uint32_t node, uint32_t port,
			  uint8_t *r)
{
	(void)port;
	attr_set(r, ATTR_RECORD_lid, lid_of(q, node));
	sma_switch_info(q->f->dev, node, r + 4);
}

static void sm_record(struct query *q, uint32_t node, uint32_t port, uint8_t *r)
{
	(void)port;
	attr_set(r, ATTR_RECORD_lid, lid_of(q, node));
	sma_sm_info(q->f->dev, r + 4);
}

static const struct component guid_components[] = { { 0, 0, 16 },
						    { 1, 16, 8 } };

static void guid_record(struct query *q, uint32_t node, uint32_t port,
			uint8_t *r)
{
	(void)port;
	attr_set(r, ATTR_RECORD_lid, lid_of(q, node));
	sma_guids(q->f->dev, node, r + 8);
}

static const struct component pkey_components[] = { { 0, 0, 16 },
						    { 1, 16, 16 },
						    { 2, 32, 8 } };

static void pkey_record(struct query *q, uint32_t node, uint32_t port,
			uint8_t *r)
{
	attr_set(r, ATTR_RECORD_lid, lid_of(q, node));
	attr_set(r, ATTR_RECORD_pkey_port, port);
	sma_pkeys(q->f->dev, node, r + 8);
}

static const struct component lft_components[] = { { 0, 0, 16 },
						   { 1, 16, 16 } };

static void lft_record(struct query *q, uint32_t node, uint32_t block,
		       uint8_t *r)
{
	attr_set(r, ATTR_RECORD_lid, lid_of(q, node));
	attr_set(r, ATTR_RECORD_block, block);
	sma_lft(q->f->dev, node, block, r + 8);
}

static const struct component link_components[] = {
	{ 0, 0, 16 }, { 1, 16, 8 }, { 2, 24, 8 }, { 3, 32, 16 }
};

static void link_record(struct query *q, uint32_t node, uint32_t port,
			uint8_t *r)
{
	uint32_t other = node, other_port = port;

	port_cross(q->f->dev, &other, &other_port);
	attr_set(r, ATTR_LINK_from_lid, lid_of(q, node));
	attr_set(r, ATTR_LINK_from_port, port);
	attr_set(r, ATTR_LINK_to_port, other_port);
	attr_set(r, ATTR_LINK_to_lid, lid_of(q, other));
}

/* Which nodes, and which ports of these, have a record. */
enum extent {
	EACH_NODE,
	EACH_PORT, /* port 0 of the switch as well */
	EACH_LINK, /* ports that are connected */
	EACH_DEVICE_PORT,
	EACH_SWITCH,
	EACH_SM,
	EACH_BLOCK, /* of the forwarding table that has an entry */
};

#define C(name) \
	name##_components, sizeof(name##_components) / sizeof(struct component)
static const struct record {
	uint16_t attribute;
	uint8_t stride; /* a multiple of 8 */
	enum extent extent;
	void (*make)(struct query *q, uint32_t node, uint32_t port,
		     uint8_t *record);
	const struct component *components;
	size_t n;
} records[] = {
	{ RECORD_NODE, 112, EACH_NODE, node_record, C(node) },
	{ RECORD_PORT_INFO, 72, EACH_PORT, port_record, C(port) },
	{ RECORD_SWITCH_INFO, 24, EACH_SWITCH, switch_record, C(lid) },
	{ RECORD_SM_INFO, 32, EACH_SM, sm_record, C(lid) },
	{ RECORD_LINK, 8, EACH_LINK, link_record, C(link) },
	{ RECORD_GUID_INFO, 72, EACH_NODE, guid_record, C(guid) },
	{ RECORD_PKEY_TABLE, 72, EACH_DEVICE_PORT, pkey_record, C(pkey) },
	{ RECORD_LFT, 72, EACH_BLOCK, lft_record, C(lft) },
};
#define RECORDS (sizeof(records) / sizeof(*records))

static bool node_has_records(const struct query *q, const struct record *r,
			     uint32_t node)
{
	if (!node_exists(q->f->dev, node))
		return false;
	switch (r->extent) {
	case EACH_SWITCH:
	case EACH_BLOCK:
		return node_is_switch(node);
	case EACH_DEVICE_PORT:
		return !node_is_switch(node);
	case EACH_SM:
		return node == subnet_sm_home(q->f->dev);
	default:
		return true;
	}
}

/* The first and last value of the third argument of make(). */
static void record_range(struct urxe_dev *dev, const struct record *r,
			 uint32_t node, uint32_t *first, uint32_t *last)
{
	*first = *last = node_is_switch(node) ? 0 : 1;
	if (r->extent == EACH_PORT || r->extent == EACH_LINK)
		*last = node_ports(dev, node);
	if (r->extent == EACH_BLOCK)
		*last = lid_top(dev) / URXE_LFT_BLOCK;
}

static bool block_is_empty(struct urxe_dev *dev, uint32_t node, uint32_t block)
{
	uint32_t i;

	for (i = 0; i < URXE_LFT_BLOCK; i++)
		if (switch_route(dev, node, block * URXE_LFT_BLOCK + i) != 255)
			return false;
	return true;
}

static uint16_t find_records(struct query *q, const struct record *r)
{
	uint8_t record[RECORD_MAX];
	uint32_t node, i, last;

	if (!query_is_valid(q, r->components, r->n))
		return STATUS_REQUEST_INVALID;
	q->stride = r->stride;
	for (node = 0; node < NODES; node++) {
		if (!node_has_records(q, r, node))
			continue;
		record_range(q->f->dev, r, node, &i, &last);
		for (; i <= last; i++) {
			if (r->extent == EACH_LINK &&
			    !port_has_link(q->f->dev, node, i))
				continue;
			if (r->extent == EACH_BLOCK &&
			    block_is_empty(q->f->dev, node, i))
				continue;
			memset(record, 0, sizeof(record));
			r->make(q, node, i, record);
			if (record_matches(q, r->components, r->n, record))
				record_add(q, record);
		}
	}
	return 0;
}

/* ------------------------------------------------------- paths */

static uint32_t node_rate(const struct urxe_dev *dev, uint32_t node)
{
	return node_is_switch(node) ? UINT32_MAX : hca_rate(&dev->hca[node]);
}

static uint8_t node_mtu(const struct urxe_dev *dev, uint32_t node)
{
	return node_is_switch(node) ?
		       MTU_4096 :
		       profile_mtu(dev->hca[node]
					   .profile.value[PROFILE_active_mtu]);
}

/* A P_Key with which two nodes communicate; 0: none. */
static uint16_t shared_pkey(struct urxe_dev *dev, uint32_t a, uint32_t b,
			    uint16_t wanted)
{
	uint32_t i, j;
	uint16_t pa, pb;

	for (i = 0; i < URXE_MAX_PKEY; i++)
		for (j = 0; j < URXE_MAX_PKEY; j++) {
			pa = port_pkey(node_subnet(dev, a), i);
			pb = port_pkey(node_subnet(dev, b), j);
			if (pkeys_match(pa, pb) &&
			    (!wanted || !((pa ^ wanted) & ~PKEY_FULL)))
				return pa;
		}
	return 0;
}

static void node_gid(const struct urxe_dev *dev, uint32_t node,
		     enum attribute_field high, enum attribute_field low,
		     uint8_t *record)
{
	uint64_t prefix = SUBNET_PREFIX;

	if (!node_is_switch(node)) {
		memcpy(&prefix, dev->hca[node].gid[0].raw, sizeof(prefix));
		prefix = be64toh(prefix);
	}
	attr_set(record, high, prefix);
	attr_set(record, low, node_guid(dev, node));
}

static void path_record(struct query *q, uint32_t from, uint32_t to,
			uint16_t pkey, uint8_t *r)
{
	const struct urxe_dev *dev = q->f->dev;
	const uint32_t a = node_rate(dev, from), b = node_rate(dev, to);
	const uint8_t m = node_mtu(dev, from), n = node_mtu(dev, to);
	const uint32_t slowest = a < b ? a : b;

	node_gid(dev, from, ATTR_PATH_sgid_high, ATTR_PATH_sgid_low, r);
	node_gid(dev, to, ATTR_PATH_dgid_high, ATTR_PATH_dgid_low, r);
	attr_set(r, ATTR_PATH_slid, lid_of(q, from));
	attr_set(r, ATTR_PATH_dlid, lid_of(q, to));
	attr_set(r, ATTR_PATH_reversible, 1);
	attr_set(r, ATTR_PATH_number, 1);
	attr_set(r, ATTR_PATH_pkey, pkey);
	attr_set(r, ATTR_PATH_mtu_selector, SELECT_EXACTLY);
	attr_set(r, ATTR_PATH_mtu, m < n ? m : n);
	attr_set(r, ATTR_PATH_rate_selector, SELECT_EXACTLY);
	attr_set(r, ATTR_PATH_rate,
		 rate_code(slowest == UINT32_MAX ? 2000 : slowest));
	attr_set(r, ATTR_PATH_life_selector, SELECT_EXACTLY);
	attr_set(r, ATTR_PATH_life, LIFE_TIME);
}

/* Components of a PathRecord that are compared; others are hints. */
static const struct component path_components[] = {
	{ 2, 64, 64 },	{ 2, 128, 64 }, { 3, 192, 64 },
	{ 3, 256, 64 }, { 4, 320, 16 }, { 5, 336, 16 },
};
#define PATH_PKEY 13

/* LIDs beyond the base LID lead to the port as well. */
static bool path_matches(const struct query *q, uint32_t from, uint32_t to,
			 uint8_t *r)
{
	const uint16_t slid = (uint16_t)attr_get(q->wanted, ATTR_PATH_slid);
	const uint16_t dlid = (uint16_t)attr_get(q->wanted, ATTR_PATH_dlid);

	if (wants(q, 5) && port_has_lid(node_subnet(q->f->dev, from), slid))
		attr_set(r, ATTR_PATH_slid, slid);
	if (wants(q, 4) && port_has_lid(node_subnet(q->f->dev, to), dlid))
		attr_set(r, ATTR_PATH_dlid, dlid);
	return record_matches(
		q, path_components,
		sizeof(path_components) / sizeof(*path_components), r);
}

/*
 * Does a node exist, and has it the GUID and LID that the query wants at that
 * end of the path?  Records of other nodes are not made.
 */
static bool end_may_match(const struct query *q, uint32_t node,
			  unsigned int gid_bit, size_t guid_at,
			  unsigned int lid_bit, enum attribute_field lid)
{
	struct urxe_dev *dev = q->f->dev;

	return node_exists(dev, node) &&
	       (!wants(q, gid_bit) ||
		field_get(q->wanted, guid_at, 64) == node_guid(dev, node)) &&
	       (!wants(q, lid_bit) ||
		port_has_lid(node_subnet(dev, node),
			     (uint16_t)attr_get(q->wanted, lid)));
}

/* Do links join two nodes?  @d: the distances from the first one. */
static bool nodes_are_joined(const struct urxe_dev *dev, uint32_t a, uint32_t b,
			     const struct distances *d)
{
	if (node_is_switch(a) || node_is_switch(b))
		return distances_reach(dev, d, b);
	return URXE_PATH_STATE(load_acquire(&dev->hca[a].path[b])) !=
	       URXE_PORT_NOP;
}

static uint16_t find_paths(struct query *q)
{
	struct urxe_dev *dev = q->f->dev;
	const uint16_t wanted =
		wants(q, PATH_PKEY) ?
			(uint16_t)attr_get(q->wanted, ATTR_PATH_pkey) :
			0;
	uint8_t record[RECORD_MAX];
	struct distances d;
	uint32_t from, to;
	uint16_t pkey;

	q->stride = 64;
	for (from = 0; from < NODES; from++) {
		if (!end_may_match(q, from, 3, 256, 5, ATTR_PATH_slid))
			continue;
		distances_from(dev, from, &d);
		for (to = 0; to < NODES; to++) {
			if (!end_may_match(q, to, 2, 128, 4, ATTR_PATH_dlid) ||
			    !nodes_are_joined(dev, from, to, &d))
				continue;
			pkey = shared_pkey(dev, from, to, wanted);
			if (!pkey)
				continue;
			memset(record, 0, sizeof(record));
			path_record(q, from, to, pkey, record);
			if (path_matches(q, from, to, record))
				record_add(q, record);
		}
	}
	return 0;
}

/* ------------------------------------------------------- multicast */

static const struct component member_components[] = {
	{ 0, 0, 64 },	{ 0, 64, 64 },	{ 1, 128, 64 }, { 1, 192, 64 },
	{ 2, 256, 32 }, { 3, 288, 16 }, { 7, 320, 16 }, { 15, 384, 4 },
};
#define MEMBER_MGID 0
#define MEMBER_PORT 1
#define MEMBER_QKEY 2
#define MEMBER_PKEY 7
#define MEMBER_STATE 16

static void member_record(struct query *q, uint32_t i, int k, uint8_t *r)
{
	const struct urxe_mcast_grp *g = &q->f->dev->mcast[i];

	memcpy(r, g->mgid, 16);
	if (k >= 0)
		node_gid(q->f->dev, (uint32_t)k, ATTR_MEMBER_port_gid_high,
			 ATTR_MEMBER_port_gid_low, r);
	attr_set(r, ATTR_MEMBER_qkey, g->qkey);
	attr_set(r, ATTR_MEMBER_mlid, MLID_FIRST + i);
	attr_set(r, ATTR_MEMBER_mtu_selector, SELECT_EXACTLY);
	attr_set(r, ATTR_MEMBER_mtu, MTU_4096);
	attr_set(r, ATTR_MEMBER_pkey, g->pkey);
	attr_set(r, ATTR_MEMBER_rate_selector, SELECT_EXACTLY);
	attr_set(r, ATTR_MEMBER_rate,
		 rate_code(node_rate(q->f->dev, subnet_sm_home(q->f->dev))));
	attr_set(r, ATTR_MEMBER_life_selector, SELECT_EXACTLY);
	attr_set(r, ATTR_MEMBER_life, LIFE_TIME);
	attr_set(r, ATTR_MEMBER_scope, g->mgid[1] & 15);
	attr_set(r, ATTR_MEMBER_join_state,
		 k < 0 || load_relaxed(&q->f->dev->hca[k].joins[i].receives) ?
			 FULL_MEMBER :
			 SEND_ONLY_FULL_MEMBER);
}

/*
 * Groups; or members, if the query has an SM_Key, which only trusted programs
 * know.
 */
static uint16_t find_members(struct query *q)
{
	const bool trusted = query_is_trusted(q);
	const struct urxe_dev *dev = q->f->dev;
	uint8_t record[RECORD_MAX];
	uint32_t i;
	int k;

	q->stride = 56;
	for (i = 0; i < URXE_MAX_MCAST_GRP; i++) {
		if (!load_acquire(&dev->mcast[i].joined))
			continue;
		for (k = trusted ? 0 : -1;
		     k < (trusted ? (int)dev_hcas(dev) : 0); k++) {
			if (k >= 0 &&
			    !load_relaxed(&dev->hca[k].joins[i].receives))
				continue;
			memset(record, 0, sizeof(record));
			member_record(q, i, k, record);
			if (record_matches(q, member_components,
					   sizeof(member_components) /
						   sizeof(struct component),
					   record))
				record_add(q, record);
		}
	}
	return 0;
}

/* The device whose port has the GID of the query's port_gid, or -1. */
static int member_port(const struct query *q)
{
	const struct urxe_dev *dev = q->f->dev;
	uint32_t k;

	for (k = 0; k < dev_hcas(dev); k++)
		if (dev->hca[k].infiniband &&
		    !memcmp(dev->hca[k].gid[0].raw, q->wanted + 16, 16))
			return (int)k;
	return -1;
}

/* An MGID for a group that has none: ff12:a01b:fe80:: and a number. */
static void mgid_choose(struct urxe_dev *dev, uint8_t mgid[16])
{
	static const uint8_t first[16] = { 0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80 };
	uint32_t i;

	memcpy(mgid, first, 16);
	for (i = 1; i < UINT16_MAX; i++) {
		mgid[14] = (uint8_t)(i >> 8);
		mgid[15] = (uint8_t)i;
		if (!mcast_mlid(dev, mgid))
			return;
	}
}

static uint16_t join(struct query *q)
{
	static const uint8_t none[16];
	const uint64_t needed = 1u << MEMBER_MGID | 1u << MEMBER_PORT |
				1u << MEMBER_STATE;
	const uint32_t state =
		(uint32_t)attr_get(q->wanted, ATTR_MEMBER_join_state);
	struct mcast_join j = { 0 };
	uint8_t record[RECORD_MAX] = { 0 };
	uint8_t mgid[16];
	const int k = member_port(q);
	int mlid;

	q->stride = 56;
	memcpy(mgid, q->wanted, 16);
	if ((q->mask & needed) != needed)
		return STATUS_MISSING_COMPONENTS;
	if (k < 0 || !state || (memcmp(mgid, none, 16) && mgid[0] != 0xff))
		return STATUS_REQUEST_INVALID;
	if (!memcmp(mgid, none, 16))
		mgid_choose(q->f->dev, mgid);
	/* the first member makes the group */
	if (!mcast_mlid(q->f->dev, mgid) &&
	    (!wants(q, MEMBER_QKEY) || !wants(q, MEMBER_PKEY)))
		return STATUS_MISSING_COMPONENTS;
	j.mgid = mgid;
	j.device = (uint32_t)k;
	j.receives = state & FULL_MEMBER;
	j.by_mad = true;
	j.qkey = (uint32_t)attr_get(q->wanted, ATTR_MEMBER_qkey);
	j.pkey = (uint16_t)attr_get(q->wanted, ATTR_MEMBER_pkey);
	mlid = mcast_port_join(q->f, &j);
	if (mlid < 0)
		return STATUS_REQUEST_INVALID;
	member_record(q, (uint32_t)mlid - MLID_FIRST, k, record);
	attr_set(record, ATTR_MEMBER_join_state, state);
	record_add(q, record);
	return 0;
}

static uint16_t leave(struct query *q)
{
	uint8_t record[RECORD_MAX] = { 0 };
	const int k = member_port(q);
	uint16_t mlid;

	q->stride = 56;
	mlid = mcast_mlid(q->f->dev, q->wanted);
	if (k < 0 || !mlid || !mcast_mad_leave(q->f, mlid, (uint32_t)k))
		return STATUS_REQUEST_INVALID;
	memcpy(record, q->wanted, q->stride);
	record_add(q, record);
	return 0;
}

/* ------------------------------------------------------- requests */

static uint16_t class_port_info(struct query *q)
{
	uint8_t record[RECORD_MAX] = { 0 };

	q->stride = 72;
	attr_set(record, ATTR_CLASS_base_version, 1);
	attr_set(record, ATTR_CLASS_class_version, 2);
	attr_set(record, ATTR_CLASS_response_time, 16);
	record_add(q, record);
	return 0;
}

/* A subscription to reports; there are none. */
static uint16_t inform_info(struct query *q)
{
	uint8_t record[RECORD_MAX] = { 0 };

	q->stride = 40;
	memcpy(record, q->wanted, q->stride);
	record_add(q, record);
	return 0;
}

static uint16_t sa_get(struct query *q, uint32_t attribute)
{
	unsigned int i;

	if (attribute == ATTRIBUTE_CLASS_PORT_INFO && !q->table)
		return class_port_info(q);
	if (attribute == RECORD_PATH)
		return find_paths(q);
	if (attribute == RECORD_MC_MEMBER)
		return find_members(q);
	if (attribute == RECORD_SERVICE)
		return services_find(q);
	for (i = 0; i < RECORDS; i++)
		if (records[i].attribute == attribute)
			return find_records(q, &records[i]);
	return STATUS_BAD_ATTRIBUTE;
}

static uint16_t sa_run(struct query *q, uint32_t method, uint32_t attribute)
{
	switch (method) {
	case METHOD_GET:
	case METHOD_GET_TABLE:
		return sa_get(q, attribute);
	case METHOD_SET:
		if (attribute == RECORD_MC_MEMBER)
			return join(q);
		if (attribute == RECORD_SERVICE)
			return service_set(q);
		if (attribute == ATTRIBUTE_INFORM_INFO)
			return inform_info(q);
		return STATUS_BAD_ATTRIBUTE;
	case METHOD_DELETE:
		if (attribute == RECORD_SERVICE)
			return service_delete(q);
		return attribute == RECORD_MC_MEMBER ? leave(q) :
						       STATUS_BAD_ATTRIBUTE;
	default:
		return STATUS_BAD_METHOD;
	}
}

/* Complete the header of the response, and return its length. */
static size_t sa_finish(struct query *q, uint16_t status)
{
	const size_t data = q->records * q->stride;

	if (!q->table && !status && q->records != 1)
		status = q->records ? STATUS_TOO_MANY_RECORDS :
				      STATUS_NO_RECORDS;
	memcpy(q->out, q->mad, SA_DATA);
	mad_respond(q->out, status);
	attr_set(q->out, ATTR_SA_attribute_offset, q->stride / 8);
	if (!q->table || status) {
		if (status)
			memcpy(q->out + SA_DATA, q->wanted, SA_DATA_BYTES);
		return MAD_BYTES_MAX;
	}
	attr_set(q->out, ATTR_SA_rmpp_version, RMPP_VERSION);
	attr_set(q->out, ATTR_SA_rmpp_type, RMPP_DATA);
	attr_set(q->out, ATTR_SA_rmpp_flags, RMPP_WHOLE);
	attr_set(q->out, ATTR_SA_segment, 1);
	attr_set(q->out, ATTR_SA_payload_length, RMPP_HEADER + data);
	return SA_DATA + data;
}

bool sa_answer(struct urxe_fabric *f, uint32_t from,
	       const uint8_t mad[MAD_BYTES_MAX], uint8_t **out, size_t *len)
{
	const uint32_t method = (uint32_t)attr_get(mad, ATTR_MAD_method);
	const uint32_t attribute = (uint32_t)attr_get(mad, ATTR_MAD_attribute);
	struct query q = {
		.f = f,
		.from = from,
		.mad = mad,
		.wanted = mad + SA_DATA,
		.mask = attr_get(mad, ATTR_SA_component_mask),
		.table = method == METHOD_GET_TABLE,
		.caps = attr_get(mad, ATTR_MAD_modifier) >> 31,
		.room = MAD_BYTES_MAX,
	};
	uint16_t status;

	if (attr_get(mad, ATTR_MAD_response))
		return false;
	q.out = calloc(1, q.room);
	if (!q.out)
		return false;
	status = sa_run(&q, method, attribute);
	if (q.failed) {
		free(q.out);
		return false;
	}
	*len = sa_finish(&q, status);
	*out = q.out;
	return true;
}
