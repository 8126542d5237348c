// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The writer of the GID table: it is filled from the addresses of the system,
 * as the kernel does for a RoCE device.
 *
 * Row 0 is the link-local address derived from the MAC of the first Ethernet
 * interface, or from the node GUID if there is none.  The IPv4 addresses
 * (mapped) and IPv6 addresses of all interfaces that are up follow;
 * link-local ones only if they are of that first interface.  If only the
 * loopback has addresses, they are used.  This is the table of device 0.
 *
 * Device k > 0 has two rows, which do not change: the link-local address
 * derived from its node GUID, and 127.0.0.(1 + k).  With a cluster file that
 * applies to all devices, and the addresses are those of the file.
 *
 * On InfiniBand, row 0 of device 0 is derived from the node GUID as well: the
 * GID of a port consists of the prefix of its subnet and its GUID (IB 4.1.1).
 *
 * Processes of several network namespaces (containers) may share a fabric.
 * Each process updates the rows of its own namespace, and empties rows of
 * namespaces that no live process is in.
 *
 * Writers hold the device lock.  Readers take no lock: gid_table.c.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"
#include "internal.h"

struct found {
	struct urxe_gid gid[URXE_GID_ROWS];
	unsigned int n; /* row 0 always exists: the link-local address */
	uint64_t netns;
};

/*
 * True for an entry of getifaddrs() that describes an interface.  It has an
 * AF_PACKET address, or none if the interface has no hardware address (tun,
 * WireGuard).
 */
static bool is_link(const struct ifaddrs *a)
{
	return !a->ifa_addr || a->ifa_addr->sa_family == AF_PACKET;
}

static const struct sockaddr_ll *link_hardware(const struct ifaddrs *a)
{
	if (!a->ifa_addr || a->ifa_addr->sa_family != AF_PACKET)
		return NULL;
	return (const struct sockaddr_ll *)(const void *)a->ifa_addr;
}

static uint32_t link_index(const struct ifaddrs *link)
{
	const struct sockaddr_ll *hardware = link_hardware(link);

	return hardware ? (uint32_t)hardware->sll_ifindex :
			  if_nametoindex(link->ifa_name);
}

/*
 * Find the interface of an address.  The entry of an IPv4 address has a label
 * as its name, which begins with the interface's name (ip-address(8)).  So
 * the longest matching name is the interface.
 */
static const struct ifaddrs *link_find(const struct ifaddrs *all,
				       const char *label)
{
	const struct ifaddrs *a, *best = NULL;
	size_t len, most = 0;

	for (a = all; a; a = a->ifa_next) {
		len = strlen(a->ifa_name);
		if (is_link(a) && len > most &&
		    !strncmp(a->ifa_name, label, len)) {
			best = a;
			most = len;
		}
	}
	return best;
}

static void gid_set_interface(struct urxe_gid *g, const struct ifaddrs *link)
{
	store_relaxed(&g->valid, 1);
	g->ifindex = link_index(link);
	snprintf(g->ifname, sizeof(g->ifname), "%s", link->ifa_name);
}

/* Convert an address to a GID.  False: it is not IPv4 or IPv6. */
static bool gid_from_addr(const struct sockaddr *a, uint8_t raw[16])
{
	if (!a)
		return false;
	memset(raw, 0, 16);
	if (a->sa_family == AF_INET) {
		raw[10] = raw[11] = 0xff;
		memcpy(raw + 12,
		       &((const struct sockaddr_in *)(const void *)a)->sin_addr,
		       4);
		return true;
	}
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(raw, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
	       16);
	return true;
}

/* True for a link-local address of another interface, or equal to row 0. */
static bool gid_is_surplus(const struct urxe_gid *g, uint32_t ifindex,
			   const struct urxe_gid *first)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80 &&
	       (ifindex != first->ifindex || !memcmp(g->raw, first->raw, 16));
}

static unsigned int link_flags(const struct ifaddrs *link)
{
	return link->ifa_flags & (IFF_UP | IFF_LOOPBACK);
}

/* Add the addresses of interfaces with these link_flags(). */
static void found_add_addresses(struct urxe_fabric *f, struct found *found,
				const struct ifaddrs *all, unsigned int flags)
{
	const struct ifaddrs *a, *link;
	struct urxe_gid *g;

	for (a = all; a && found->n < URXE_GID_ROWS; a = a->ifa_next) {
		g = &found->gid[found->n];
		if (!gid_from_addr(a->ifa_addr, g->raw) ||
		    fabric_gid_owner(f->dev, g->raw) > 0)
			continue;
		link = link_find(all, a->ifa_name);
		if (!link || link_flags(link) != flags ||
		    gid_is_surplus(g, link_index(link), &found->gid[0]))
			continue;
		gid_set_interface(g, link);
		found->n++;
	}
}

/* fe80:: and the modified EUI-64 of a MAC address (RFC 4291, appendix A). */
static void gid_from_mac(const uint8_t mac[6], uint8_t raw[16])
{
	memset(raw, 0, 16);
	raw[0] = 0xfe;
	raw[1] = 0x80;
	raw[8] = mac[0] ^ 2;
	raw[9] = mac[1];
	raw[10] = mac[2];
	raw[11] = 0xff;
	raw[12] = 0xfe;
	memcpy(raw + 13, mac + 3, 3);
}

static bool link_is_ethernet(const struct ifaddrs *a)
{
	const struct sockaddr_ll *link = link_hardware(a);

	return link && link_flags(a) == IFF_UP &&
	       link->sll_hatype == ARPHRD_ETHER && link->sll_halen == 6;
}

static void gid_from_guid(uint64_t guid, uint8_t raw[16])
{
	int i;

	memset(raw, 0, 16);
	raw[0] = 0xfe;
	raw[1] = 0x80;
	for (i = 0; i < 8; i++)
		raw[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
}

/*
 * ::ffff:127.0.0.(1 + k); with a cluster file 127.(64 + h / 256).(h % 256).
 * (1 + k), of device k of host h
 */
static void gid_from_number(const struct urxe_dev *dev, uint32_t k,
			    uint8_t raw[16])
{
	const uint32_t h = dev->hca[k].host;

	memset(raw, 0, 16);
	raw[10] = raw[11] = 0xff;
	raw[12] = 127;
	if (dev->cluster) {
		raw[13] = (uint8_t)(64 + h / 256);
		raw[14] = (uint8_t)h;
	}
	raw[15] = (uint8_t)(1 + k - dev->host[h].first);
}

static void gid_table_fill(struct urxe_dev *dev, uint32_t k)
{
	struct urxe_hca *hca = &dev->hca[k];
	struct urxe_gid *g = hca->gid;

	gid_from_guid(hca->node_guid, g[0].raw);
	store_relaxed(&g[0].valid, 1);
	if (!load_relaxed(&g[1].valid)) {
		gid_from_number(dev, k, g[1].raw);
		store_relaxed(&g[1].valid, 1);
	}
	for (; load_relaxed(&g->valid); g++) {
		g->ifindex = if_nametoindex("lo");
		snprintf(g->ifname, sizeof(g->ifname), "%s",
			 hca->netdev[0] ? hca->netdev : "lo");
	}
	store_relaxed(&hca->gid_gen, 1);
}

void gid_table_init(struct urxe_dev *dev)
{
	uint32_t k;

	for (k = !dev->cluster; k < dev_hcas(dev); k++)
		gid_table_fill(dev, k);
}

static void found_add_link_local(struct urxe_fabric *f, struct found *found,
				 const struct ifaddrs *all)
{
	const struct ifaddrs *a, *first = NULL;
	struct urxe_gid *g = &found->gid[0];

	for (a = all; a && !f->dev->hca[0].infiniband; a = a->ifa_next)
		if (link_is_ethernet(a) &&
		    (!first ||
		     link_index(a) < link_index(first)))
			first = a;
	found->n = 1;
	if (first) {
		gid_set_interface(g, first);
		gid_from_mac(link_hardware(first)->sll_addr, g->raw);
		return;
	}
	g->ifindex = if_nametoindex("lo");
	strcpy(g->ifname, "lo");
	gid_from_guid(f->dev->hca[0].node_guid, g->raw);
}

static int found_collect(struct urxe_fabric *f, struct found *found)
{
	struct ifaddrs *all;
	int saved = errno;

	if (getifaddrs(&all))
		return -errno;
	found_add_link_local(f, found, all);
	found_add_addresses(f, found, all, IFF_UP);
	if (found->n == 1)
		found_add_addresses(f, found, all, IFF_UP | IFF_LOOPBACK);
	freeifaddrs(all);
	errno = saved;
	return 0;
}

static bool gid_filled(const struct urxe_gid *g)
{
	return load_relaxed(&g->valid);
}

/* Under the lock: store found->gid[n] in row i, or empty it (found NULL). */
static void gid_table_set(struct urxe_dev *dev, unsigned int i,
			  const struct found *found, unsigned int n)
{
	struct urxe_hca *hca = &dev->hca[0];
	struct urxe_gid *e = &hca->gid[i];
	uint32_t gen = load_relaxed(&hca->gid_gen) + 1;

	if (!gen)
		gen = 1;
	store_relaxed(&e->valid, 0);
	/*
	 * pairs with the acquire fence of fabric_get_gid(): a reader that has
	 * copied new bytes does not load the old number after it
	 */
	atomic_thread_fence(memory_order_release);
	if (found) {
		const struct urxe_gid *g = &found->gid[n];

		memcpy(e->raw, g->raw, sizeof(e->raw));
		e->ifindex = g->ifindex;
		memcpy(e->ifname, g->ifname, sizeof(e->ifname));
		e->netns = found->netns;
		store_release(&e->valid, gen);
	}
	store_release(&hca->gid_gen, gen);
}

static bool gid_is(const struct urxe_gid *row, const struct found *found,
		   unsigned int n)
{
	const struct urxe_gid *g = &found->gid[n];

	return gid_filled(row) && row->netns == found->netns &&
	       row->ifindex == g->ifindex && !memcmp(row->raw, g->raw, 16);
}

/*
 * True if the row's address still exists; for a row of another network
 * namespace, if a live process is in it.
 */
static bool gid_row_lasts(struct urxe_fabric *f, const struct urxe_gid *row,
			  const struct found *found)
{
	unsigned int i;

	if (row->netns != found->netns)
		return process_in_netns(f, row->netns);
	for (i = 0; i < found->n; i++)
		if (gid_is(row, found, i))
			return true;
	return false;
}

/* The row that has found[n], or a free one; URXE_GID_ROWS: none is free. */
static unsigned int gid_table_row(const struct urxe_gid *table,
				  const struct found *found, unsigned int n)
{
	unsigned int i;

	if (!n && !gid_filled(&table[0]))
		return 0;
	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_is(&table[i], found, n))
			return i;
	for (i = 1; i < URXE_GID_ROWS; i++)
		if (!gid_filled(&table[i]))
			break;
	return i;
}

/* Under the lock. */
static void gid_table_merge(struct urxe_fabric *f, const struct found *found)
{
	struct urxe_dev *dev = f->dev;
	const struct urxe_gid *table = dev->hca[0].gid;
	unsigned int i, n;

	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_filled(&table[i]) &&
		    !gid_row_lasts(f, &table[i], found))
			gid_table_set(dev, i, NULL, 0);
	for (n = 0; n < found->n; n++) {
		i = gid_table_row(table, found, n);
		if (i < URXE_GID_ROWS && !gid_filled(&table[i]))
			gid_table_set(dev, i, found, n);
	}
}

int fabric_refresh_gids(struct urxe_fabric *f)
{
	struct found found;
	uint32_t gen;
	int ret;

	if (f->dev->cluster)
		return 0;
	memset(&found, 0, sizeof(found));
	found.netns = fabric_netns();
	/*
	 * the process may have changed namespace; without this, others would
	 * empty its rows
	 */
	process_set_netns(f, found.netns);
	ret = found_collect(f, &found);
	if (ret)
		return fabric_fail(
			-ret,
			"getifaddrs() cannot list the addresses of this host, so the GID table is not updated");
	ret = fabric_lock(f);
	if (ret)
		return ret;
	gen = load_relaxed(&f->dev->hca[0].gid_gen);
	gid_table_merge(f, &found);
	gen -= load_relaxed(&f->dev->hca[0].gid_gen);
	fabric_unlock(f);
	/* addresses are no GIDs on InfiniBand, whose GID does not change */
	if (gen && !f->dev->hca[0].infiniband)
		fabric_port_event(f, 0, IBV_EVENT_GID_CHANGE);
	return 0;
}
