// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Filling the GID table from the machine's addresses, as a RoCE device's
 * driver does: a link-local GID in slot 0, then every IPv4 address (mapped)
 * and global IPv6 address of interfaces that are up.  With nothing but the
 * loopback up, its addresses serve.
 */
#include <errno.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"

#define GID_TYPE_ROCE_V2 2

struct found {
	struct urxe_gid gid[URXE_MAX_GID];
	unsigned int n; /* slot 0 is the link-local one and always there */
};

static void gid_set_interface(struct urxe_gid *g, struct rtnl_link *l)
{
	const char *name = rtnl_link_get_name(l);

	store_relaxed(&g->valid, 1);
	g->type = GID_TYPE_ROCE_V2;
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

static bool gid_is_link_local(const uint8_t raw[16])
{
	return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}

/* Of interfaces that have these of IFF_UP and IFF_LOOPBACK. */
static void found_add_addresses(struct found *found, struct nl_cache *links,
				struct nl_cache *addrs, unsigned int flags)
{
	struct nl_object *o;

	for (o = nl_cache_get_first(addrs); o && found->n < URXE_MAX_GID;
	     o = nl_cache_get_next(o)) {
		struct rtnl_addr *a = (struct rtnl_addr *)o;
		struct rtnl_link *l =
			rtnl_link_get(links, rtnl_addr_get_ifindex(a));
		struct urxe_gid *g = &found->gid[found->n];

		if (l &&
		    (rtnl_link_get_flags(l) & (IFF_UP | IFF_LOOPBACK)) ==
			    flags &&
		    gid_from_addr(a, g->raw) && !gid_is_link_local(g->raw)) {
			gid_set_interface(g, l);
			found->n++;
		}
		rtnl_link_put(l);
	}
}

/* The real link-local address of an interface, if it has one. */
static bool gid_link_local_of(struct nl_cache *addrs, int ifindex,
			      uint8_t raw[16])
{
	struct nl_object *o;

	for (o = nl_cache_get_first(addrs); o; o = nl_cache_get_next(o)) {
		struct rtnl_addr *a = (struct rtnl_addr *)o;

		if (rtnl_addr_get_ifindex(a) == ifindex &&
		    gid_from_addr(a, raw) && gid_is_link_local(raw))
			return true;
	}
	return false;
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
				 struct nl_cache *links, struct nl_cache *addrs)
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
		if (!gid_link_local_of(addrs, (int)g->ifindex, g->raw))
			gid_from_mac(nl_addr_get_binary_addr(
					     rtnl_link_get_addr(first)),
				     g->raw);
		return;
	}
	g->type = GID_TYPE_ROCE_V2;
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
	found_add_link_local(f, found, links, addrs);
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

static bool gid_same(const struct urxe_gid *a, const struct urxe_gid *b)
{
	return !memcmp(a->raw, b->raw, 16) && a->ifindex == b->ifindex &&
	       a->type == b->type;
}

static bool gid_filled(const struct urxe_gid *g)
{
	return load_relaxed(&g->valid);
}

static void gid_table_set(struct urxe_dev *dev, unsigned int i,
			  const struct urxe_gid *g)
{
	struct urxe_gid *e = &dev->gid[i];
	uint32_t gen = load_relaxed(&dev->gid_gen) + 1;

	if (!gen)
		gen = 1;
	store_relaxed(&e->valid, 0);
	/* nobody may see new bytes with the old number */
	atomic_thread_fence(memory_order_release);
	if (g) {
		memcpy(e->raw, g->raw, sizeof(e->raw));
		e->type = g->type;
		e->ifindex = g->ifindex;
		memcpy(e->ifname, g->ifname, sizeof(e->ifname));
		store_release(&e->valid, gen);
	}
	store_release(&dev->gid_gen, gen);
}

/* Is g one of the n entries, but for the link-local one? */
static bool gid_is_in(const struct urxe_gid *g, const struct urxe_gid *table,
		      unsigned int n)
{
	unsigned int i;

	for (i = 1; i < n; i++)
		if (gid_filled(&table[i]) && gid_same(&table[i], g))
			return true;
	return false;
}

/* Under the lock. */
static void gid_table_merge(struct urxe_dev *dev, const struct found *found)
{
	unsigned int i, slot;

	if (!gid_filled(&dev->gid[0]) ||
	    !gid_same(&dev->gid[0], &found->gid[0]))
		gid_table_set(dev, 0, &found->gid[0]);
	for (slot = 1; slot < URXE_MAX_GID; slot++)
		if (gid_filled(&dev->gid[slot]) &&
		    !gid_is_in(&dev->gid[slot], found->gid, found->n))
			gid_table_set(dev, slot, NULL);
	for (i = 1, slot = 1; i < found->n; i++) {
		if (gid_is_in(&found->gid[i], dev->gid, URXE_MAX_GID))
			continue;
		while (slot < URXE_MAX_GID && gid_filled(&dev->gid[slot]))
			slot++;
		if (slot == URXE_MAX_GID)
			return;
		gid_table_set(dev, slot, &found->gid[i]);
	}
}

int fabric_refresh_gids(struct urxe_fabric *f)
{
	struct found found;
	int ret;

	memset(&found, 0, sizeof(found));
	ret = found_collect(f, &found);
	if (ret)
		return fabric_fail(
			-ret,
			"NETLINK_ROUTE does not list the machine's addresses");
	ret = fabric_lock(f);
	if (ret)
		return ret;
	gid_table_merge(f->dev, &found);
	fabric_unlock(f);
	return 0;
}
