// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Conversions of connection manager addresses (AF_INET, AF_INET6, AF_IB):
 * port, wildcard, loopback, GID, index in the GID table, address handle.
 *
 * Callers hold the lock of the tables if they pass an address that is stored
 * there.  A damaged table may contain any address family: functions that have
 * no error value treat an unknown family as AF_IB.
 */
#include <endian.h>
#include <string.h>

#include "cm.h"
#include "fabric/profile.h"

size_t cm_addr_size(const union cm_addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return sizeof(a->in);
	case AF_INET6:
		return sizeof(a->in6);
	case CM_AF_IB:
		return sizeof(a->ib);
	default:
		return 0;
	}
}

/*
 * Return whether an IPv4 address has @net as its first octet, or an address
 * of another family consists of 15 zero octets and @last.
 */
static bool addr_is(const union cm_addr *a, uint8_t net, uint8_t last)
{
	const uint8_t want[16] = { [15] = last };
	uint8_t raw[16];

	if (a->sa.sa_family == AF_INET)
		return be32toh(a->in.sin_addr.s_addr) >> 24 == net;
	cm_addr_raw(a, raw);
	return !memcmp(raw, want, 16);
}

bool cm_addr_zero(const union cm_addr *a)
{
	return addr_is(a, 0, 0);
}

bool cm_addr_loopback(const union cm_addr *a)
{
	return addr_is(a, 127, 1);
}

bool cm_addr_any(const struct urxe_dev *dev, const union cm_addr *a)
{
	if (cm_addr_zero(a) || !cm_addr_loopback(a))
		return cm_addr_zero(a);
	return dev->cluster ? !cm_addr_known(dev, a) :
			      !cm_addr_device(dev, 0, a);
}

bool cm_addr_same(const union cm_addr *a, const union cm_addr *b)
{
	uint8_t raw[2][16];

	cm_addr_raw(a, raw[0]);
	cm_addr_raw(b, raw[1]);
	return a->sa.sa_family == b->sa.sa_family &&
	       !memcmp(raw[0], raw[1], 16);
}

static_assert(offsetof(struct sockaddr_in, sin_port) ==
		      offsetof(struct sockaddr_in6, sin6_port),
	      "the port has the same offset in both");

uint16_t cm_addr_port(const union cm_addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
	case AF_INET6:
		return be16toh(a->in.sin_port);
	default:
		return (uint16_t)(be64toh(a->ib.sib_sid) &
				  be64toh(a->ib.sib_sid_mask));
	}
}

void cm_addr_set_port(union cm_addr *a, uint16_t port)
{
	uint64_t sid;

	switch (a->sa.sa_family) {
	case AF_INET:
	case AF_INET6:
		a->in.sin_port = htobe16(port);
		break;
	default:
		sid = be64toh(a->ib.sib_sid) & ~(uint64_t)0xffff;
		a->ib.sib_sid = htobe64(sid | port);
		a->ib.sib_sid_mask = ~0ull;
	}
}

void cm_addr_set_loopback(union cm_addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		a->in.sin_addr.s_addr = htobe32(INADDR_LOOPBACK);
		break;
	case AF_INET6:
		a->in6.sin6_addr = in6addr_loopback;
		break;
	default:
		memset(a->ib.sib_addr, 0, 16);
		a->ib.sib_addr[15] = 1;
	}
}

void cm_addr_raw(const union cm_addr *a, uint8_t gid[16])
{
	switch (a->sa.sa_family) {
	case AF_INET:
		memset(gid, 0, 10);
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &a->in.sin_addr, 4);
		break;
	case AF_INET6:
		memcpy(gid, &a->in6.sin6_addr, 16);
		break;
	default:
		memcpy(gid, a->ib.sib_addr, 16);
	}
}

/*
 * Look up @raw among the addresses of a device, and return the index of its
 * GID.  On Ethernet that is the RoCE v2 entry, the kernel's default for
 * rdma_cm connections; on InfiniBand all addresses lead to GID 0 of the port.
 */
static bool gid_find_in(const struct urxe_hca *hca, const uint8_t raw[16],
			uint32_t *index)
{
	struct urxe_gid g;
	uint32_t row, i;

	for (row = 0; row < URXE_GID_ROWS; row++) {
		i = hca->infiniband ? 0 : gid_index_v2(hca, row);
		if (gid_has_row(hca, i) && gid_row_get(&hca->gid[row], &g) &&
		    !memcmp(g.raw, raw, 16)) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* Look up @raw in the tables of all devices. */
static bool gid_find(const struct urxe_dev *dev, const uint8_t raw[16],
		     uint32_t *index, uint32_t *device)
{
	for (*device = 0; *device < dev_hcas(dev); ++*device)
		if (gid_find_in(&dev->hca[*device], raw, index))
			return true;
	return false;
}

static uint32_t first_device(const struct urxe_dev *dev, uint32_t host)
{
	const uint32_t k = dev->host[host % URXE_MAX_HOST].first;

	return k < dev_hcas(dev) ? k : 0;
}

uint32_t cm_addr_device(const struct urxe_dev *dev, uint32_t host,
			const union cm_addr *a)
{
	uint32_t index, device;
	uint8_t raw[16];

	/* with one device, addresses need not be compared */
	if (dev_hcas(dev) == 1)
		return 0;
	cm_addr_raw(a, raw);
	return gid_find(dev, raw, &index, &device) ? device :
						     first_device(dev, host);
}

uint32_t cm_addr_host(const struct urxe_dev *dev, uint32_t host,
		      const union cm_addr *a)
{
	return dev->hca[cm_addr_device(dev, host, a)].host % URXE_MAX_HOST;
}

static unsigned int common_bits(const uint8_t a[16], const uint8_t b[16])
{
	unsigned int i;

	for (i = 0; i < 128; i++)
		if ((a[i / 8] ^ b[i / 8]) & 0x80 >> i % 8)
			break;
	return i;
}

/* Store a GID as an address of the family of @like; its port is kept. */
static bool addr_from_raw(const uint8_t raw[16], const union cm_addr *like,
			  union cm_addr *to)
{
	const uint8_t v4[12] = { [10] = 0xff, 0xff };
	const uint16_t port = cm_addr_port(to);

	if (like->sa.sa_family == CM_AF_IB) {
		/* its service ID and P_Key are kept, too */
		to->ib.sib_family = CM_AF_IB;
		memcpy(to->ib.sib_addr, raw, 16);
		return true;
	}
	if (!memcmp(raw, v4, sizeof(v4)) != (like->sa.sa_family == AF_INET))
		return false;
	memset(to, 0, sizeof(*to));
	to->sa.sa_family = like->sa.sa_family;
	if (like->sa.sa_family == AF_INET)
		memcpy(&to->in.sin_addr, raw + 12, 4);
	else
		memcpy(&to->in6.sin6_addr, raw, 16);
	cm_addr_set_port(to, port);
	return true;
}

bool cm_addr_route(const struct urxe_dev *dev, uint32_t host,
		   const union cm_addr *dst, union cm_addr *src)
{
	const uint32_t first = first_device(dev, host);
	unsigned int bits, most = 0;
	uint8_t raw[16];
	struct urxe_gid g;
	uint32_t k, row;
	int peer;

	cm_addr_raw(dst, raw);
	peer = fabric_gid_owner(dev, raw);
	for (k = first; k < dev_hcas(dev) && k < first + URXE_HOST_HCAS &&
			dev->hca[k].host == dev->hca[first].host;
	     k++) {
		/* row 0 has no address of IP */
		for (row = dst->sa.sa_family != CM_AF_IB;
		     row < URXE_GID_ROWS &&
		     gid_row_get(&dev->hca[k].gid[row], &g);
		     row++) {
			bits = 1 + common_bits(g.raw, raw);
			if (peer >= 0 &&
			    URXE_PATH_STATE(load_acquire(
				    &dev->hca[k].path[peer])) != URXE_PORT_NOP)
				bits += 256;
			if (bits > most && addr_from_raw(g.raw, dst, src))
				most = bits;
		}
	}
	return most;
}

bool cm_addr_known(const struct urxe_dev *dev, const union cm_addr *a)
{
	uint32_t index, device;
	uint8_t raw[16];

	cm_addr_raw(a, raw);
	return gid_find(dev, raw, &index, &device);
}

uint32_t cm_default_gid(const struct urxe_hca *hca, uint8_t gid[16])
{
	/* the port's default (link-local) GID is in the first row */
	const uint32_t index = gid_index_v2(hca, 0);
	struct urxe_gid g;

	if (fabric_get_gid(hca, index, &g))
		memcpy(gid, g.raw, 16);
	return index;
}

uint32_t cm_addr_gid(const struct urxe_dev *dev, uint32_t host,
		     const union cm_addr *a, uint8_t gid[16])
{
	uint32_t index, device;

	cm_addr_raw(a, gid);
	if (gid_find(dev, gid, &index, &device)) {
		if (dev->hca[device].infiniband)
			cm_default_gid(&dev->hca[device], gid);
		return index;
	}
	/* no entry (for example 127.0.0.1): use the port's default GID */
	return cm_default_gid(&dev->hca[first_device(dev, host)], gid);
}

bool cm_is_infiniband(const struct cm *cm, const struct cm_id *id)
{
	return cm_hca(cm, id)->infiniband;
}

uint16_t cm_pkey(const struct cm *cm, const struct cm_id *id)
{
	return port_pkey(&cm_hca(cm, id)->subnet, 0) | PKEY_FULL;
}

void cm_path_lids(const struct cm *cm, const struct cm_id *id, uint16_t *slid,
		  uint16_t *dlid)
{
	const int peer = fabric_gid_owner(cm->f->dev, id->dgid);

	*slid = *dlid = 0;
	if (!cm_is_infiniband(cm, id) || peer < 0)
		return;
	*slid = port_lid(&cm_hca(cm, id)->subnet);
	*dlid = port_lid(&cm->f->dev->hca[peer].subnet);
}

uint8_t cm_path_rate(const struct cm *cm, const struct cm_id *id)
{
	const int peer = fabric_gid_owner(cm->f->dev, id->dgid);
	const uint32_t here = hca_rate(cm_hca(cm, id));
	uint32_t there = here;

	if (peer >= 0)
		there = hca_rate(&cm->f->dev->hca[peer]);
	return rate_code(here < there ? here : there);
}

bool cm_has_path(const struct cm *cm, const struct cm_id *id)
{
	const struct urxe_dev *dev = cm->f->dev;
	const int peer = fabric_gid_owner(dev, id->dgid);

	if (!cm_is_infiniband(cm, id) || peer < 0)
		return true;
	return URXE_PATH_STATE(load_acquire(&cm_hca(cm, id)->path[peer])) !=
		       URXE_PORT_NOP &&
	       pkeys_match(port_pkey(&cm_hca(cm, id)->subnet, 0),
			   port_pkey(&dev->hca[peer].subnet, 0));
}

void cm_fill_group_ah(struct ib_uverbs_ah_attr *ah, const struct cm_id *id,
		      const uint8_t gid[16], uint16_t mlid)
{
	memcpy(ah->grh.dgid, gid, 16);
	ah->grh.sgid_index = id->sgid_index;
	if (!mlid) { /* InfiniBand takes them from the record of the group */
		ah->grh.hop_limit = CM_HOP_LIMIT;
		ah->grh.traffic_class = id->tos;
	}
	ah->is_global = 1;
	ah->dlid = mlid;
	ah->port_num = 1;
}

void cm_fill_path_ah(const struct cm *cm, struct ib_uverbs_ah_attr *ah,
		     const struct cm_id *id)
{
	uint16_t slid;

	if (cm_is_infiniband(cm, id)) {
		/* within a subnet, packets have no GRH */
		cm_path_lids(cm, id, &slid, &ah->dlid);
		ah->port_num = 1;
		return;
	}
	cm_fill_group_ah(ah, id, id->dgid, 0);
	ah->grh.traffic_class = id->path_tos;
	ah->grh.flow_label = id->path_flow;
}
