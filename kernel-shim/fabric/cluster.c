// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reading cluster files.  urxe-cluster(5) describes the format:
 *
 *	[defaults]
 *	profile = connectx-7
 *	[hca alice/mlx5_0]	# a device of a host
 *	link = leaf0/1
 *	[switch leaf0]
 *	link = spine0 down
 *
 * Sections are read in their order; links are made at the end, when all nodes
 * exist.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster.h"
#include "internal.h"
#include "profile.h"

#define MOST_BYTES (1 << 20) /* of the text of a cluster file */
#define MOST_LINKS 8192
#define MOST_ADDRESSES 8 /* of a port */

/* ------------------------------------------------------- memory and links */

int cluster_alloc(struct cluster *c, uint32_t hcas, uint32_t hosts,
		  uint32_t switches)
{
	memset(c, 0, sizeof(*c));
	c->hca = aligned_alloc(URXE_LINE, hcas * sizeof(*c->hca));
	c->host = calloc(hosts, sizeof(*c->host));
	c->sw = calloc(switches, sizeof(*c->sw));
	if (c->hca && c->host && c->sw) {
		memset(c->hca, 0, hcas * sizeof(*c->hca));
		return 0;
	}
	cluster_free(c);
	return fabric_fail(ENOMEM, "no memory for the devices of a fabric");
}

void cluster_free(struct cluster *c)
{
	free(c->hca);
	free(c->host);
	free(c->sw);
	memset(c, 0, sizeof(*c));
}

/* of the link of a device: a path takes about 1 us */
#define LATENCY_NS 500

void hca_defaults(struct urxe_hca *hca)
{
	profile_init(&hca->profile);
	hca->numa_node = -1;
	hca->latency = LATENCY_NS;
	hca->peer.node = NODE_NONE;
	store_relaxed(&hca->subnet.pkey[0], PKEY_DEFAULT);
}

static bool is_switch(struct urxe_link_end p)
{
	return p.node >= URXE_MAX_HCA;
}

/* What is connected to a port; it exists. */
static struct urxe_link_end *peer_of(struct cluster *c, struct urxe_link_end p)
{
	return is_switch(p) ? &c->sw[p.node - URXE_MAX_HCA].peer[p.port] :
			      &c->hca[p.node].peer;
}

struct end_name {
	char text[64];
};

/* "SWITCH", or "HOST/DEVICE" */
static struct end_name name_of(const struct cluster *c, struct urxe_link_end p)
{
	const struct urxe_hca *hca;
	struct end_name n;

	if (is_switch(p)) {
		snprintf(n.text, sizeof(n.text), "%.31s",
			 c->sw[p.node - URXE_MAX_HCA].name);
		return n;
	}
	hca = &c->hca[p.node];
	snprintf(n.text, sizeof(n.text), "%.31s/%.15s", c->host[hca->host].name,
		 hca->name);
	return n;
}

/* Find a free port, and check that the named one exists and is free. */
static int port_choose(struct cluster *c, struct urxe_link_end *p)
{
	const uint32_t ports =
		is_switch(*p) ? c->sw[p->node - URXE_MAX_HCA].ports : 1;

	if (!p->port)
		for (p->port = 1; p->port <= ports; p->port++)
			if (peer_of(c, *p)->node == NODE_NONE)
				return 0;
	if (p->port > ports)
		return fabric_fail(EINVAL, "%s has no free port, or no port %u",
				   name_of(c, *p).text, p->port);
	if (peer_of(c, *p)->node != NODE_NONE)
		return fabric_fail(EINVAL, "port %u of %s has a link already",
				   p->port, name_of(c, *p).text);
	return 0;
}

static uint32_t layer_of(const struct cluster *c, struct urxe_link_end p)
{
	return is_switch(p) ? c->sw[p.node - URXE_MAX_HCA].infiniband :
			      c->hca[p.node].infiniband;
}

static void link_take_down(struct cluster *c, struct urxe_link_end p)
{
	store_relaxed(is_switch(p) ?
			      &c->sw[p.node - URXE_MAX_HCA].down[p.port] :
			      &c->hca[p.node].down,
		      LINK_DOWN | LINK_DOWN_FIRST);
}

/*
 * Join two ports.  Port 0 of a switch stands for its next free port.  -EINVAL:
 * there is no such port, it has a link already, or the link layers differ
 */
static int cluster_link(struct cluster *c, struct urxe_link_end a,
			struct urxe_link_end b, bool down)
{
	int ret;

	if (layer_of(c, a) != layer_of(c, b))
		return fabric_fail(
			EINVAL,
			"%s and %s have different link layers, Ethernet and InfiniBand",
			name_of(c, a).text, name_of(c, b).text);
	ret = port_choose(c, &a);
	if (!ret)
		ret = port_choose(c, &b);
	if (ret)
		return ret;
	if (a.node == b.node && a.port == b.port)
		return fabric_fail(EINVAL, "%s is linked to itself",
				   name_of(c, a).text);
	*peer_of(c, a) = b;
	*peer_of(c, b) = a;
	if (down) {
		link_take_down(c, a);
		link_take_down(c, b);
	}
	c->has_links = 1;
	return 0;
}

/* Add a switch without links. */
static void switch_init(struct cluster *c, const char *name)
{
	struct urxe_switch *sw = &c->sw[c->switches++];
	uint32_t port;

	snprintf(sw->name, sizeof(sw->name), "%s", name);
	sw->ports = URXE_SWITCH_PORTS;
	for (port = 0; port <= URXE_SWITCH_PORTS; port++)
		sw->peer[port].node = NODE_NONE;
}

int cluster_complete(struct cluster *c)
{
	uint32_t k, n = 0;

	for (k = 0; k < c->hcas; k++)
		n += c->hca[k].infiniband;
	if (c->switches && !c->has_links)
		return fabric_fail(EINVAL, "the switches have no links");
	if (c->has_links || !n)
		return 0;
	if (c->hcas > URXE_SWITCH_PORTS)
		return fabric_fail(
			EINVAL,
			"more than %d InfiniBand devices need switches and links",
			URXE_SWITCH_PORTS);
	switch_init(c, "urxe switch");
	c->sw[0].infiniband = 1;
	c->sw[0].ports = c->hcas < 8 ? 8 : c->hcas;
	for (k = 0; k < c->hcas; k++) {
		if (!c->hca[k].infiniband)
			continue;
		/* the number of the port is that of the device + 1 */
		c->hca[k].peer.node = NODE_SWITCH(0);
		c->hca[k].peer.port = (uint16_t)(k + 1);
		c->sw[0].peer[k + 1].node = (uint16_t)k;
		c->sw[0].peer[k + 1].port = 1;
	}
	return 0;
}

/* ------------------------------------------------------- parser */

struct link_line {
	uint16_t node; /* of the section */
	bool down;
	unsigned int line;
	const char *to;
};

struct parser {
	struct cluster *c;
	struct urxe_hca defaults;
	struct urxe_hca *hca; /* of the section; NULL: it is not of devices */
	struct urxe_switch *sw;
	struct link_line *links;
	uint32_t n_links;
	unsigned int line;
};

static bool name_is_valid(const char *name, size_t room)
{
	return *name && strlen(name) < room &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
		       strlen(name) &&
	       *name != '.';
}

/* Is the word a number of at most @most? */
static bool number_is(const char *word, uint64_t most, uint32_t *out)
{
	uint64_t n;

	if (word_number(word, &n) || n > most)
		return false;
	*out = (uint32_t)n;
	return true;
}

/* ------------------------------------------------------- keys of devices */

/* Set what a key says by its words, the first of which is the key: -EINVAL */
typedef int set_fn(struct urxe_hca *hca, const struct line *l);

/* A relative path is relative to the cluster file. */
static int set_profile(struct urxe_hca *hca, const struct line *l)
{
	const char *word = l->word[1], *file = getenv("URXE_CLUSTER");
	const char *slash = strrchr(file, '/');
	char path[PATH_MAX];

	if (*word == '/' || !strchr(word, '/') || !slash)
		return profile_read(&hca->profile, word);
	if (snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - file), file,
		     word) >= (int)sizeof(path))
		return -EINVAL;
	return profile_read(&hca->profile, path);
}

static int layer_parse(const char *word, uint32_t *infiniband)
{
	*infiniband = !strcmp(word, "infiniband");
	return *infiniband || !strcmp(word, "ethernet") ? 0 : -EINVAL;
}

static int set_layer(struct urxe_hca *hca, const struct line *l)
{
	return layer_parse(l->word[1], &hca->infiniband);
}

static int set_numa(struct urxe_hca *hca, const struct line *l)
{
	uint32_t n;

	if (!number_is(l->word[1], 1023, &n))
		return -EINVAL;
	hca->numa_node = (int32_t)n;
	return 0;
}

static int set_pci(struct urxe_hca *hca, const struct line *l)
{
	unsigned int domain, bus, device, function;
	int end = 0;

	/* sscanf(3) also accepts signs and 0x */
	if (strspn(l->word[1], "0123456789abcdefABCDEF:.") !=
		    strlen(l->word[1]) ||
	    sscanf(l->word[1], "%4x:%2x:%2x.%1x%n", &domain, &bus, &device,
		   &function, &end) != 4 ||
	    l->word[1][end] || device > 31 || function > 7)
		return -EINVAL;
	hca->pci = domain << 16 | bus << 8 | device << 3 | function;
	return hca->pci ? 0 : -EINVAL;
}

static int set_netdev(struct urxe_hca *hca, const struct line *l)
{
	if (!name_is_valid(l->word[1], sizeof(hca->netdev)))
		return -EINVAL;
	strcpy(hca->netdev, l->word[1]);
	return 0;
}

static int set_fw_ver(struct urxe_hca *hca, const struct line *l)
{
	if (strlen(l->word[1]) >= sizeof(hca->profile.fw_ver))
		return -EINVAL;
	strcpy(hca->profile.fw_ver, l->word[1]);
	return 0;
}

static int set_mtu(struct urxe_hca *hca, const struct line *l)
{
	uint32_t n;

	if (!number_is(l->word[1], hca->profile.value[PROFILE_max_mtu], &n) ||
	    n < 256 || n > 4096 || n & (n - 1))
		return -EINVAL;
	hca->profile.value[PROFILE_active_mtu] = n;
	return 0;
}

/* Gb/s, and the number of lanes */
static int set_rate(struct urxe_hca *hca, const struct line *l)
{
	uint32_t rate, lanes = 4;

	if (!number_is(l->word[1], 1200, &rate) ||
	    (l->n > 2 && !number_is(l->word[2], 12, &lanes)) ||
	    !rate_set(&hca->profile, rate * 10, lanes))
		return -EINVAL;
	return 0;
}

static int set_latency(struct urxe_hca *hca, const struct line *l)
{
	return number_is(l->word[1], 1000000000, &hca->latency) ? 0 : -EINVAL;
}

static int set_pkeys(struct urxe_hca *hca, const struct line *l)
{
	uint32_t i, n;

	for (i = 0; i < URXE_MAX_PKEY; i++) {
		n = 0;
		if (i + 1 < l->n && !number_is(l->word[i + 1], UINT16_MAX, &n))
			return -EINVAL;
		store_relaxed(&hca->subnet.pkey[i], (uint16_t)n);
	}
	return 0;
}

/* Not the wildcard, a group, or the loopback address, which names no port. */
static bool gid_is_usable(const uint8_t raw[16])
{
	static const uint8_t none[][16] = {
		{ 0 },
		{ [15] = 1 },
		{ [10] = 0xff, 0xff },
		{ [10] = 0xff, 0xff, 127, [15] = 1 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(none) / sizeof(*none); i++)
		if (!memcmp(raw, none[i], 16))
			return false;
	return !mcast_is_group(raw);
}

/* An IPv4 or IPv6 address: the next row of the GID table. */
static int set_address(struct urxe_hca *hca, const struct line *l)
{
	struct urxe_gid *g = &hca->gid[1];
	uint8_t raw[16] = { [10] = 0xff, 0xff };

	if (inet_pton(AF_INET, l->word[1], raw + 12) != 1 &&
	    inet_pton(AF_INET6, l->word[1], raw) != 1)
		return -EINVAL;
	if (!gid_is_usable(raw))
		return -EINVAL;
	while (load_relaxed(&g->valid))
		g++;
	if (g > &hca->gid[MOST_ADDRESSES])
		return -EINVAL;
	memcpy(g->raw, raw, sizeof(raw));
	store_relaxed(&g->valid, 1);
	return 0;
}

static int set_state(struct urxe_hca *hca, const struct line *l)
{
	const bool down = !strcmp(l->word[1], "down");

	store_relaxed(&hca->down, down ? LINK_DOWN | LINK_DOWN_FIRST : 0);
	return down || !strcmp(l->word[1], "up") ? 0 : -EINVAL;
}

static const struct {
	const char *name;
	set_fn *set;
	bool is_of_one; /* not of [defaults] */
	unsigned int most; /* words after the key */
	const char *what;
} keys[] = {
	{ "profile", set_profile, false, 1, "the name or file of a profile" },
	{ "link_layer", set_layer, false, 1, "ethernet or infiniband" },
	{ "numa_node", set_numa, false, 1, "a number" },
	{ "pci", set_pci, true, 1, "an address such as 0000:18:00.0" },
	{ "netdev", set_netdev, true, 1, "a name of at most 15 characters" },
	{ "fw_ver", set_fw_ver, false, 1, "a version" },
	{ "mtu", set_mtu, false, 1,
	  "256, 512, 1024, 2048 or 4096, at most the max_mtu of the profile" },
	{ "rate", set_rate, false, 2,
	  "a rate that InfiniBand has in Gb/s, and the number of lanes (4)" },
	{ "latency", set_latency, false, 1, "0 to 1000000000 (ns)" },
	{ "pkeys", set_pkeys, false, URXE_MAX_PKEY, "1 to 32 numbers" },
	{ "address", set_address, true, 1,
	  "the IPv4 or IPv6 address of one port, which has at most 8" },
	{ "state", set_state, false, 1, "up or down" },
};
#define KEYS (sizeof(keys) / sizeof(*keys))

/* ------------------------------------------------------- sections */

static struct urxe_host *host_get(struct cluster *c, const char *name)
{
	struct urxe_host *last = &c->host[c->hosts];

	/* the devices of a host follow each other */
	if (c->hosts && !strcmp(last[-1].name, name))
		return &last[-1];
	for (last = c->host; last < &c->host[c->hosts]; last++)
		if (!strcmp(last->name, name))
			return NULL;
	snprintf(last->name, sizeof(last->name), "%s", name);
	last->first = c->hcas;
	c->hosts++;
	return last;
}

static int begin_hca(struct parser *p, char *host_name)
{
	char *name = strchr(host_name, '/');
	struct cluster *c = p->c;
	struct urxe_host *host;
	uint32_t k;

	if (name)
		*name++ = '\0';
	if (!name || !name_is_valid(name, sizeof(p->hca->name)) ||
	    !name_is_valid(host_name, sizeof(host->name)))
		return fabric_fail(
			EINVAL,
			"a device is called HOST/NAME, with at most 31 and 15 letters, digits, _, . and -");
	host = c->hcas == URXE_MAX_HCA ? NULL : host_get(c, host_name);
	if (!host || host->hcas == URXE_HOST_HCAS)
		return fabric_fail(
			EINVAL,
			"too many devices (%d, %d of a host), or the devices of %s do not follow each other",
			URXE_MAX_HCA, URXE_HOST_HCAS, host_name);
	for (k = host->first; k < c->hcas; k++)
		if (!strcmp(c->hca[k].name, name))
			return fabric_fail(EINVAL, "%s/%s is there twice",
					   host_name, name);
	p->hca = &c->hca[c->hcas++];
	memcpy(p->hca, &p->defaults, sizeof(*p->hca));
	strcpy(p->hca->name, name);
	p->hca->host = (uint32_t)(host - c->host);
	host->hcas++;
	return 0;
}

static int begin_switch(struct parser *p, const char *name)
{
	struct cluster *c = p->c;
	uint32_t s;

	if (!name_is_valid(name, sizeof(p->sw->name)) ||
	    c->switches == URXE_MAX_SWITCH)
		return fabric_fail(EINVAL,
				   "no valid name of a switch, or more than %d",
				   URXE_MAX_SWITCH);
	for (s = 0; s < c->switches; s++)
		if (!strcmp(c->sw[s].name, name))
			return fabric_fail(EINVAL, "%s is there twice", name);
	p->sw = &c->sw[c->switches];
	switch_init(c, name);
	p->sw->infiniband = p->defaults.infiniband;
	return 0;
}

static int section_begin(struct parser *p, char *text)
{
	char *end = strchr(text, ']'), *name;

	if (!end || end[1 + strspn(end + 1, " \t\r")])
		return fabric_fail(EINVAL, "a section ends with ]");
	*end = '\0';
	name = strchr(text, ' ');
	if (name)
		*name++ = '\0';
	p->hca = NULL;
	p->sw = NULL;
	if (name && !strcmp(text, "hca"))
		return begin_hca(p, name);
	if (name && !strcmp(text, "switch"))
		return begin_switch(p, name);
	if (name || strcmp(text, "defaults"))
		return fabric_fail(
			EINVAL,
			"a section is [defaults], [hca HOST/NAME] or [switch NAME]");
	p->hca = &p->defaults;
	return 0;
}

/* "SWITCH", "SWITCH/PORT" or "HOST/DEVICE", and "down" */
static int link_note(struct parser *p, const struct line *l)
{
	const bool down = l->n == 3 && !strcmp(l->word[2], "down");

	if (p->n_links == MOST_LINKS || (l->n > 2 && !down))
		return fabric_fail(
			EINVAL,
			"more than %d links, or more than a node and \"down\"",
			MOST_LINKS);
	p->links[p->n_links++] = (struct link_line){
		.node = (uint16_t)(p->sw ? NODE_SWITCH(p->sw - p->c->sw) :
					   p->hca - p->c->hca),
		.down = down,
		.line = p->line,
		.to = l->word[1],
	};
	return 0;
}

static int switch_key(struct urxe_switch *sw, const struct line *l)
{
	const bool is_layer = !strcmp(l->word[0], "link_layer");

	if (l->n == 2 && is_layer && !layer_parse(l->word[1], &sw->infiniband))
		return 0;
	if (l->n == 2 && !strcmp(l->word[0], "ports") &&
	    number_is(l->word[1], URXE_SWITCH_PORTS, &sw->ports) && sw->ports)
		return 0;
	return fabric_fail(
		EINVAL,
		"a switch has link = NODE, ports = 1 to %d, and link_layer = ethernet or infiniband",
		URXE_SWITCH_PORTS);
}

static int key_set(struct parser *p, const struct line *l)
{
	const bool is_link = !strcmp(l->word[0], "link");
	unsigned int i;
	int ret;

	if (!p->hca && !p->sw)
		return fabric_fail(EINVAL, "%s is in no section", l->word[0]);
	if (is_link && p->hca != &p->defaults)
		return link_note(p, l);
	if (p->sw)
		return switch_key(p->sw, l);
	for (i = 0; i < KEYS; i++)
		if (!strcmp(keys[i].name, l->word[0]))
			break;
	if (p->hca == &p->defaults &&
	    (is_link || (i < KEYS && keys[i].is_of_one)))
		return fabric_fail(EINVAL,
				   "%s belongs in [hca], not in [defaults]",
				   l->word[0]);
	if (i == KEYS)
		return fabric_fail(EINVAL, "unknown key \"%s\"", l->word[0]);
	ret = l->n - 1 > keys[i].most ? -EINVAL : keys[i].set(p->hca, l);
	/* a profile has reasons of its own */
	if (!ret || keys[i].set == set_profile)
		return ret;
	return fabric_fail(EINVAL, "%s must be %s", l->word[0], keys[i].what);
}

static int line_parse(struct parser *p, char *text)
{
	char *equals;
	struct line l;
	int ret;

	text[strcspn(text, "#")] = '\0';
	text += strspn(text, " \t\r");
	if (*text == '[')
		return section_begin(p, text + 1);
	equals = strchr(text, '=');
	if (equals)
		*equals = ' ';
	ret = line_split(&l, text);
	if (ret || !(l.n || equals))
		return ret;
	if (!equals || l.n < 2)
		return fabric_fail(EINVAL, "neither [SECTION] nor KEY = VALUE");
	return key_set(p, &l);
}

/* ------------------------------------------------------- links of the file */

/* The node with that name, "host/device" or "switch", or -1. */
static int node_find(const struct cluster *c, const char *name)
{
	const char *slash = strchr(name, '/');
	const size_t n = slash ? (size_t)(slash - name) : 0;
	uint32_t i;

	for (i = 0; i < c->switches; i++)
		if (!strcmp(c->sw[i].name, name))
			return (int)NODE_SWITCH(i);
	for (i = 0; slash && i < c->hcas; i++)
		if (!strcmp(c->hca[i].name, slash + 1) &&
		    !strncmp(c->host[c->hca[i].host].name, name, n) &&
		    !c->host[c->hca[i].host].name[n])
			return (int)i;
	return -1;
}

static int link_make(struct cluster *c, const struct link_line *l)
{
	struct urxe_link_end from = { .node = l->node }, to = { 0 };
	const char *slash = strrchr(l->to, '/');
	int node = node_find(c, l->to);
	uint32_t port = 0;
	char name[32];

	if (node < 0 && slash && (size_t)(slash - l->to) < sizeof(name) &&
	    number_is(slash + 1, URXE_SWITCH_PORTS, &port) && port) {
		snprintf(name, sizeof(name), "%.*s", (int)(slash - l->to),
			 l->to);
		node = node_find(c, name);
	}
	if (node < 0)
		return fabric_fail(
			EINVAL,
			"link must be SWITCH, SWITCH/PORT or HOST/DEVICE; there is no %s",
			l->to);
	from.port = from.node < URXE_MAX_HCA;
	to.node = (uint16_t)node;
	to.port = (uint16_t)(to.node < URXE_MAX_HCA ? 1 : port);
	return cluster_link(c, from, to, l->down);
}

/* ------------------------------------------------------- files */

/* Does an earlier device have the address? */
static bool address_is_taken(const struct cluster *c, uint32_t k,
			     const struct urxe_gid *g)
{
	const struct urxe_gid *other;
	uint32_t j;

	for (j = 0; j <= k; j++)
		for (other = &c->hca[j].gid[1];
		     other != g && load_relaxed(&other->valid); other++)
			if (!memcmp(other->raw, g->raw, sizeof(g->raw)))
				return true;
	return false;
}

/* Check a device against the others. */
static int hca_check(const struct cluster *c, uint32_t k)
{
	const struct urxe_hca *hca = &c->hca[k];
	const char *host = c->host[hca->host].name;
	uint32_t i;

	for (i = 1; load_relaxed(&hca->gid[i].valid); i++) {
		if (address_is_taken(c, k, &hca->gid[i]))
			return fabric_fail(
				EINVAL,
				"address %u of %s/%s is that of another port",
				i, host, hca->name);
		if (!hca->infiniband &&
		    gid_index_v2(hca, i) >= gid_table_len(hca))
			return fabric_fail(
				EINVAL,
				"the GID table of the profile of %s/%s has no room for address %u",
				host, hca->name, i);
	}
	for (i = c->host[hca->host].first; i < k; i++)
		if (hca->pci && c->hca[i].pci == hca->pci)
			return fabric_fail(
				EINVAL, "%s/%s and %s/%s have one PCI function",
				host, hca->name, host, c->hca[i].name);
	for (i = 0; i < c->switches; i++)
		if (!strcmp(c->sw[i].name, host))
			return fabric_fail(EINVAL, "%s is a host and a switch",
					   host);
	return 0;
}

static int line_fail(const struct parser *p, int ret)
{
	char reason[200];

	snprintf(reason, sizeof(reason), "%s", fabric_why());
	return fabric_fail(-ret, "cluster file %s, line %u: %s",
			   getenv("URXE_CLUSTER"), p->line, reason);
}

static int text_parse(struct parser *p, char *text)
{
	char *next;
	uint32_t i;
	int ret;

	for (p->line = 1; text; p->line++, text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		ret = line_parse(p, text);
		if (ret)
			return line_fail(p, ret);
	}
	for (i = 0; i < p->n_links; i++) {
		p->line = p->links[i].line;
		ret = link_make(p->c, &p->links[i]);
		if (ret)
			return line_fail(p, ret);
	}
	if (!p->c->hcas)
		return fabric_fail(EINVAL, "cluster file %s has no [hca]",
				   getenv("URXE_CLUSTER"));
	for (i = 0; i < p->c->hcas; i++) {
		ret = hca_check(p->c, i);
		if (ret)
			return ret;
	}
	return cluster_complete(p->c);
}

static uint32_t text_hash(const char *text)
{
	uint32_t h = 0x811c9dc5u;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x01000193u;
	return h ? h : 1;
}

/* Read the file of URXE_CLUSTER: its allocated text, or NULL with *ret. */
static char *text_load(int *ret)
{
	char *text;

	*ret = -ENOMEM;
	text = malloc(MOST_BYTES + 1);
	if (!text)
		return NULL;
	if (env_is_set("URXE_DEVICES") || env_is_set("URXE_PROFILE") ||
	    env_is_set("URXE_LINK_LAYER"))
		*ret = fabric_fail(
			EINVAL,
			"URXE_CLUSTER excludes URXE_DEVICES, URXE_PROFILE and URXE_LINK_LAYER");
	else
		*ret = text_read(getenv("URXE_CLUSTER"), "cluster file", text,
				 MOST_BYTES);
	if (!*ret)
		return text;
	free(text);
	return NULL;
}

int cluster_hash_by_env(uint32_t *hash)
{
	char *text;
	int ret = 0;

	*hash = 0;
	if (!env_is_set("URXE_CLUSTER"))
		return 0;
	text = text_load(&ret);
	if (text)
		*hash = text_hash(text);
	free(text);
	return ret;
}

int cluster_read(struct cluster *c)
{
	struct parser *p =
		aligned_alloc(URXE_LINE, (sizeof(*p) + URXE_LINE - 1) /
						 URXE_LINE * URXE_LINE);
	char *text = NULL;
	int ret = -ENOMEM;

	if (!p)
		return ret;
	memset(p, 0, sizeof(*p));
	p->c = c;
	p->links = calloc(MOST_LINKS, sizeof(*p->links));
	hca_defaults(&p->defaults);
	if (p->links)
		text = text_load(&ret);
	if (text)
		ret = cluster_alloc(c, URXE_MAX_HCA, URXE_MAX_HOST,
				    URXE_MAX_SWITCH);
	if (text && !ret) {
		c->hash = text_hash(text);
		ret = text_parse(p, text);
		if (ret)
			cluster_free(c);
	}
	free(text);
	free(p->links);
	free(p);
	return ret;
}
