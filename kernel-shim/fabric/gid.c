// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Filling the GID table from the machine's addresses, as the kernel does for a
 * RoCE device: row 0 is the link-local address that the first Ethernet
 * interface has by its MAC, then come the IPv4 addresses (mapped) and the IPv6
 * ones of all interfaces that are up; of link-local ones only those of the
 * first.  With nothing but the loopback up, its addresses serve.
 *
 * Processes of several network namespaces (containers) may share a fabric: each
 * sees to the rows of its own, and empties those of which no process is left.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"

struct found {
	struct urxe_gid gid[URXE_GID_ROWS];
	unsigned int n; /* row 0 is the link-local one and always there */
	uint64_t netns;
};

static void gid_set_interface(struct urxe_gid *g, struct rtnl_link *l)
{
	const char *name = rtnl_link_get_name(l);

	store_relaxed(&g->valid, 1);
	g->ifindex = (uint32_t)rtnl_link_get_ifindex(l);
	snprintf(g->ifname, sizeof(g->ifname), "%s", name ? name : "");
}

/* Address bytes of a, as a GID; false if it is of no use as one. */
static bool gid_from_addr(struct rtnl_addr *a, uint8_t raw[16])
{
	struct nl_addr *local = rtnl_addr_get_local(a);

	if (!local)
		return false;
	memset(raw, 0, 16);
	if (nl_addr_get_family(local) == AF_INET &&
	    nl_addr_get_len(local) == 4) {
		raw[10] = raw[11] = 0xff;
		memcpy(raw + 12, nl_addr_get_binary_addr(local), 4);
		return true;
	}
	if (nl_addr_get_family(local) != AF_INET6 ||
	    nl_addr_get_len(local) != 16)
		return false;
	memcpy(raw, nl_addr_get_binary_addr(local), 16);
	return true;
}

/* Is it the link-local address of another interface, or row 0 once more? */
static bool gid_is_surplus(const struct urxe_gid *g, int ifindex,
			   const struct urxe_gid *first)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80 &&
	       (ifindex != (int)first->ifindex ||
		!memcmp(g->raw, first->raw, 16));
}

/* Of interfaces that have these of IFF_UP and IFF_LOOPBACK. */
static void found_add_addresses(struct found *found, struct nl_cache *links,
				struct nl_cache *addrs, unsigned int flags)
{
	struct nl_object *o;

	for (o = nl_cache_get_first(addrs); o && found->n < URXE_GID_ROWS;
	     o = nl_cache_get_next(o)) {
		struct rtnl_addr *a = (struct rtnl_addr *)o;
		struct rtnl_link *l =
			rtnl_link_get(links, rtnl_addr_get_ifindex(a));
		struct urxe_gid *g = &found->gid[found->n];

		if (l &&
		    (rtnl_link_get_flags(l) & (IFF_UP | IFF_LOOPBACK)) ==
			    flags &&
		    gid_from_addr(a, g->raw) &&
		    !gid_is_surplus(g, rtnl_addr_get_ifindex(a),
				    &found->gid[0])) {
			gid_set_interface(g, l);
			found->n++;
		}
		rtnl_link_put(l);
	}
}

/* fe80:: and the modified EUI-64 of a MAC address. */
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

static bool link_is_ethernet(struct rtnl_link *l)
{
	struct nl_addr *mac = rtnl_link_get_addr(l);

	return (rtnl_link_get_flags(l) & (IFF_UP | IFF_LOOPBACK)) == IFF_UP &&
	       rtnl_link_get_arptype(l) == 1 && mac &&
	       nl_addr_get_len(mac) == 6;
}

static void found_add_link_local(struct urxe_fabric *f, struct found *found,
				 struct nl_cache *links)
{
	struct urxe_gid *g = &found->gid[0];
	struct rtnl_link *first = NULL;
	struct nl_object *o;
	int i;

	for (o = nl_cache_get_first(links); o; o = nl_cache_get_next(o)) {
		struct rtnl_link *l = (struct rtnl_link *)o;

		if (link_is_ethernet(l) &&
		    (!first ||
		     rtnl_link_get_ifindex(l) < rtnl_link_get_ifindex(first)))
			first = l;
	}
	found->n = 1;
	if (first) {
		gid_set_interface(g, first);
		gid_from_mac(nl_addr_get_binary_addr(rtnl_link_get_addr(first)),
			     g->raw);
		return;
	}
	g->ifindex = if_nametoindex("lo");
	strcpy(g->ifname, "lo");
	g->raw[0] = 0xfe;
	g->raw[1] = 0x80;
	for (i = 0; i < 8; i++)
		g->raw[8 + i] = (uint8_t)(f->dev->node_guid >> (56 - 8 * i));
}

static int found_collect(struct urxe_fabric *f, struct found *found)
{
	struct nl_cache *links, *addrs;
	struct nl_sock *s;
	int ret;

	s = nl_socket_alloc();
	if (!s)
		return -ENOMEM;
	ret = -EIO;
	if (nl_connect(s, NETLINK_ROUTE) < 0 ||
	    rtnl_link_alloc_cache(s, AF_UNSPEC, &links) < 0)
		goto out_free_socket;
	if (rtnl_addr_alloc_cache(s, &addrs) < 0)
		goto out_free_links;
	found_add_link_local(f, found, links);
	found_add_addresses(found, links, addrs, IFF_UP);
	if (found->n == 1)
		found_add_addresses(found, links, addrs, IFF_UP | IFF_LOOPBACK);
	ret = 0;
	nl_cache_free(addrs);
out_free_links:
	nl_cache_free(links);
out_free_socket:
	nl_socket_free(s);
	return ret;
}

static bool gid_filled(const struct urxe_gid *g)
{
	return load_relaxed(&g->valid);
}

/* Row i is found->gid[n], or empty if found is NULL. */
static void gid_table_set(struct urxe_dev *dev, unsigned int i,
			  const struct found *found, unsigned int n)
{
	struct urxe_gid *e = &dev->gid[i];
	uint32_t gen = load_relaxed(&dev->gid_gen) + 1;

	if (!gen)
		gen = 1;
	store_relaxed(&e->valid, 0);
	/* nobody may see new bytes with the old number */
	atomic_thread_fence(memory_order_release);
	if (found) {
		const struct urxe_gid *g = &found->gid[n];

		memcpy(e->raw, g->raw, sizeof(e->raw));
		e->ifindex = g->ifindex;
		memcpy(e->ifname, g->ifname, sizeof(e->ifname));
		e->netns = found->netns;
		store_release(&e->valid, gen);
	}
	store_release(&dev->gid_gen, gen);
}

static bool gid_is(const struct urxe_gid *row, const struct found *found,
		   unsigned int n)
{
	const struct urxe_gid *g = &found->gid[n];

	return gid_filled(row) && row->netns == found->netns &&
	       row->ifindex == g->ifindex && !memcmp(row->raw, g->raw, 16);
}

/* Is there still what this row is for? */
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

/* Where found[n] is, or is to be; URXE_GID_ROWS if the table is full. */
static unsigned int gid_table_row(const struct urxe_dev *dev,
				  const struct found *found, unsigned int n)
{
	unsigned int i;

	if (!n && !gid_filled(&dev->gid[0]))
		return 0;
	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_is(&dev->gid[i], found, n))
			return i;
	for (i = 1; i < URXE_GID_ROWS; i++)
		if (!gid_filled(&dev->gid[i]))
			break;
	return i;
}

/* Under the lock. */
static void gid_table_merge(struct urxe_fabric *f, const struct found *found)
{
	struct urxe_dev *dev = f->dev;
	unsigned int i, n;

	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_filled(&dev->gid[i]) &&
		    !gid_row_lasts(f, &dev->gid[i], found))
			gid_table_set(dev, i, NULL, 0);
	for (n = 0; n < found->n; n++) {
		i = gid_table_row(dev, found, n);
		if (i < URXE_GID_ROWS && !gid_filled(&dev->gid[i]))
			gid_table_set(dev, i, found, n);
	}
}

int fabric_refresh_gids(struct urxe_fabric *f)
{
	struct found found;
	uint32_t gen;
	int ret;

	memset(&found, 0, sizeof(found));
	found.netns = fabric_netns();
	/* it may have moved: others would take its rows for a dead one's */
	process_set_netns(f, found.netns);
	ret = found_collect(f, &found);
	if (ret)
		return fabric_fail(
			-ret,
			"NETLINK_ROUTE does not list the machine's addresses");
	ret = fabric_lock(f);
	if (ret)
		return ret;
	gen = load_relaxed(&f->dev->gid_gen);
	gid_table_merge(f, &found);
	gen -= load_relaxed(&f->dev->gid_gen);
	fabric_unlock(f);
	if (gen)
		fabric_port_event(f, IBV_EVENT_GID_CHANGE);
	return 0;
}
