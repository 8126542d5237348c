// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The devices of a fabric (struct urxe_hca) and their hosts.  They are those of
 * the file URXE_CLUSTER when the fabric is created.  Without one there is one
 * host; its number of devices is URXE_DEVICES, or 1, their profiles are those
 * of URXE_PROFILE, or none, and their link layers those of URXE_LINK_LAYER, or
 * Ethernet.  None of these changes.  A fabric without users that has other
 * devices is replaced (fabric.c).
 *
 * A process belongs to the host URXE_HOST, or the first one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plural.h"
#include "cluster.h"
#include "internal.h"
#include "profile.h"

int hcas_by_env(uint32_t *n)
{
	const char *env = getenv("URXE_DEVICES");

	*n = 0;
	if (!env || !*env)
		return 0;
	if (env[0] < '1' || env[0] > '0' + URXE_HOST_HCAS || env[1])
		return fabric_fail(
			EINVAL,
			"URXE_DEVICES=%s is not a number of devices: 1 to %d",
			env, URXE_HOST_HCAS);
	*n = (uint32_t)(env[0] - '0');
	return 0;
}

bool hca_word(const char *list, uint32_t k, char *word, size_t room)
{
	size_t n = strcspn(list, ",");

	for (; k && list[n]; k--) {
		list += n + 1;
		n = strcspn(list, ",");
	}
	if (!n || n >= room)
		return false;
	memcpy(word, list, n);
	word[n] = '\0';
	return true;
}

const char *hca_link_layer(const struct urxe_hca *hca)
{
	return hca->infiniband ? "InfiniBand" : "Ethernet";
}

int link_layer_by_env(uint32_t *infiniband, uint32_t k)
{
	const char *env = getenv("URXE_LINK_LAYER");
	char word[16] = "ethernet";

	if (env && *env && !hca_word(env, k, word, sizeof(word)))
		word[0] = '\0';
	*infiniband = !strcasecmp(word, "infiniband");
	if (*infiniband || !strcasecmp(word, "ethernet"))
		return 0;
	return fabric_fail(
		EINVAL,
		"URXE_LINK_LAYER=%s must be ethernet or infiniband, or a list of these for the devices, separated by commas",
		env);
}

/* The same as profiles_differ() for URXE_LINK_LAYER. */
static int link_layers_differ(const struct urxe_fabric *f)
{
	const struct urxe_hca *hca;
	uint32_t want, k;
	int ret;

	for (k = 0; k < f->hcas; k++) {
		hca = &f->dev->hca[k];
		ret = link_layer_by_env(&want, k);
		if (ret)
			return ret;
		if (hca->infiniband == want)
			continue;
		fabric_fail(
			EINVAL,
			"%.15s of the fabric %s has the link layer %s; choose another fabric, or urxe rm it when no process uses it",
			hca->name, f->dir, hca_link_layer(hca));
		return 1;
	}
	return 0;
}

/*
 * 0 if the devices have the profiles of URXE_PROFILE, 1 with fabric_why() if
 * they do not.  -errno: URXE_PROFILE is invalid.
 */
static int profiles_differ(const struct urxe_fabric *f)
{
	const struct urxe_profile *has;
	struct urxe_profile want;
	uint32_t k;
	int ret;

	for (k = 0; k < f->hcas; k++) {
		has = &f->dev->hca[k].profile;
		ret = profile_by_env(&want, k);
		if (ret)
			return ret;
		if (!memcmp(has, &want, sizeof(want)))
			continue;
		fabric_fail(
			EINVAL,
			"%.15s of the fabric %s has %s%.31s, not %s as it is now; choose another fabric, or urxe rm it when no process uses it",
			f->dev->hca[k].name, f->dir,
			has->name[0] ? "the profile " : "no profile", has->name,
			want.name);
		return 1;
	}
	return 0;
}

/* The same for URXE_SM. */
static int sm_differs(const struct urxe_fabric *f)
{
	uint32_t external;
	int ret = sm_by_env(&external);

	if (ret || f->dev->sm_external == external)
		return ret;
	fabric_fail(
		EINVAL,
		"the fabric %s has %s subnet manager; choose another fabric, or urxe rm it when no process uses it",
		f->dir, external ? "a built-in" : "no built-in");
	return 1;
}

/* The same for URXE_CLUSTER. */
static int cluster_differs(const struct urxe_fabric *f)
{
	uint32_t want;
	int ret = cluster_hash_by_env(&want);

	if (ret || f->dev->cluster == want)
		return ret;
	fabric_fail(
		EINVAL,
		"the fabric %s was made %s cluster file; choose another fabric, or urxe rm it when no process uses it",
		f->dir, f->dev->cluster ? "from another" : "without a");
	return 1;
}

bool env_is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

int hcas_are_wanted(const struct urxe_fabric *f)
{
	uint32_t want;
	int ret = cluster_differs(f);

	if (!ret)
		ret = sm_differs(f);
	if (ret || f->dev->cluster)
		return ret < 0 ? ret : !ret;
	ret = hcas_by_env(&want);
	if (!ret)
		ret = link_layers_differ(f);
	if (!ret)
		ret = profiles_differ(f);
	if (ret < 0)
		return ret;
	return !ret && f->hcas == (want ? want : 1);
}

int hcas_agree(const struct urxe_fabric *f)
{
	uint32_t want;
	int ret = hcas_by_env(&want);

	if (ret)
		return ret;
	if (want && want != f->hcas)
		return fabric_fail(
			EINVAL,
			"the fabric %s has %u device%s, not %u; choose another fabric, or urxe rm it when no process uses it",
			f->dir, f->hcas, plural(f->hcas), want);
	if (env_is_set("URXE_CLUSTER"))
		ret = cluster_differs(f);
	if (!ret && env_is_set("URXE_LINK_LAYER"))
		ret = link_layers_differ(f);
	if (!ret && env_is_set("URXE_SM"))
		ret = sm_differs(f);
	if (!ret && env_is_set("URXE_PROFILE"))
		ret = profiles_differ(f);
	return ret > 0 ? -EINVAL : ret;
}

void node_name(const struct urxe_dev *dev, uint32_t node, char name[64])
{
	const struct urxe_hca *hca;
	const struct urxe_host *host;

	if (node >= URXE_MAX_HCA) {
		snprintf(name, 64, "%.31s",
			 dev->sw[(node - URXE_MAX_HCA) % URXE_MAX_SWITCH].name);
		return;
	}
	hca = &dev->hca[node];
	host = &dev->host[hca->host % URXE_MAX_HOST];
	if (host->name[0])
		snprintf(name, 64, "%.31s/%.15s", host->name, hca->name);
	else
		snprintf(name, 64, "%.15s", hca->name);
}

int hca_find(const struct urxe_fabric *f, const char *name)
{
	const struct urxe_dev *dev = f->dev;
	char full[64];
	uint32_t k;

	for (k = 0; k < dev_hcas(dev); k++) {
		node_name(dev, k, full);
		if (!strcmp(full, name) || (k - f->first < f->hcas &&
					    !strncmp(dev->hca[k].name, name,
						     sizeof(dev->hca[k].name))))
			return (int)k;
	}
	return -1;
}

/* Cut "/PORT" off the name; 0: there is none. */
static uint32_t port_cut(char *name)
{
	char *slash = strrchr(name, '/');
	uint32_t port = 0;

	if (!slash || !slash[1] || strlen(slash) > 4 ||
	    slash[1 + strspn(slash + 1, "0123456789")])
		return 0;
	port = (uint32_t)atoi(slash + 1);
	*slash = '\0';
	return port;
}

static int switch_find(const struct urxe_dev *dev, const char *name)
{
	uint32_t s;

	for (s = 0; s < dev_switches(dev); s++)
		if (!strncmp(dev->sw[s].name, name, sizeof(dev->sw[s].name)))
			return (int)s;
	return -1;
}

bool link_end_find(const struct urxe_fabric *f, const char *name,
		   struct urxe_link_end *end)
{
	char own[64];
	uint32_t port = 1;
	int k = hca_find(f, name);

	if (k < 0) {
		snprintf(own, sizeof(own), "%s", name);
		port = port_cut(own);
		k = port == 1 ? hca_find(f, own) : -1;
	}
	if (k < 0) {
		k = switch_find(f->dev, own);
		k = k < 0 ? -1 : (int)NODE_SWITCH(k);
	}
	*end = (struct urxe_link_end){ .node = (uint16_t)k,
				       .port = (uint16_t)port };
	return k >= 0 && port <= URXE_SWITCH_PORTS &&
	       (port || !strchr(name, '/'));
}

int host_set(struct urxe_fabric *f, uint32_t host)
{
	const struct urxe_dev *dev = f->dev;

	if (host >= dev->hosts || dev->hosts > URXE_MAX_HOST)
		return -EPROTO;
	f->host = host;
	f->first = dev->host[host].first;
	f->hcas = dev->host[host].hcas;
	return f->hcas && f->hcas <= URXE_HOST_HCAS &&
			       f->first < dev_hcas(dev) &&
			       f->hcas <= dev_hcas(dev) - f->first ?
		       0 :
		       -EPROTO;
}

int host_by_env(const char *dir, const struct urxe_host *h, uint32_t n)
{
	const char *want = getenv("URXE_HOST");
	uint32_t i;

	if (!want || !*want)
		return 0;
	for (i = 0; i < n; i++)
		if (!strncmp(h[i].name, want, sizeof(h[i].name)))
			return (int)i;
	return fabric_fail(EINVAL,
			   "the fabric %s has no host %s, but %s%.31s%s", dir,
			   want, h->name[0] ? "" : "one without a name",
			   h->name, n > 1 ? " and others" : "");
}

int host_choose(struct urxe_fabric *f)
{
	const int host = host_by_env(f->dir, f->dev->host, f->dev->hosts);

	return host < 0 ? host : host_set(f, (uint32_t)host);
}

/* One host without a name; its devices are urxe0, urxe1, ... */
static int cluster_default(struct cluster *c, uint32_t n)
{
	struct urxe_hca *hca;
	uint32_t k;
	int ret = cluster_alloc(c, n, 1, 1);

	if (ret)
		return ret;
	c->hcas = c->host->hcas = n;
	c->hosts = 1;
	for (k = 0; k < n && !ret; k++) {
		hca = &c->hca[k];
		hca_defaults(hca);
		snprintf(hca->name, sizeof(hca->name), URXE_DEVICE_NAME "%u",
			 k);
		ret = profile_by_env(&hca->profile, k);
		if (!ret)
			ret = link_layer_by_env(&hca->infiniband, k);
	}
	if (!ret)
		ret = cluster_complete(c);
	if (ret)
		cluster_free(c);
	return ret;
}

int cluster_by_env(struct cluster *c)
{
	uint32_t n;
	int ret;

	if (env_is_set("URXE_CLUSTER"))
		return cluster_read(c);
	ret = hcas_by_env(&n);
	return ret ? ret : cluster_default(c, n ? n : 1);
}

/* The first state of a port, and what its PCI function is if it has none. */
static void hca_init(struct urxe_dev *dev, uint32_t k, uint64_t guid)
{
	struct urxe_hca *hca = &dev->hca[k];
	uint32_t down = load_relaxed(&hca->down);

	/* only the low 24 bits differ */
	hca->node_guid = (guid & ~0xffffffull) | ((guid + k) & 0xffffff);
	if (!hca->pci)
		hca->pci = URXE_PCI_BUS << 8 | (k - dev->host[hca->host].first)
						       << 3;
	if (dev->has_links && hca->peer.node == NODE_NONE)
		down |= PORT_NO_LINK;
	store_relaxed(&hca->down, down);
	store_relaxed(&hca->port_state,
		      down ? URXE_PORT_DOWN : port_state_up(dev, k));
}

/* An external subnet manager needs an InfiniBand port. */
static int sm_choose(struct urxe_dev *dev, const struct cluster *c)
{
	int ret = sm_by_env(&dev->sm_external);
	uint32_t k;

	if (ret || !dev->sm_external)
		return ret;
	for (k = 0; k < c->hcas; k++)
		if (c->hca[k].infiniband)
			return 0;
	return fabric_fail(
		EINVAL,
		"URXE_SM=external, but no device is InfiniBand; see urxe run --link-layer, or link_layer in urxe-cluster(5)");
}

int hcas_init(struct urxe_dev *dev, const struct cluster *c, uint64_t guid)
{
	uint32_t k;
	int ret = sm_choose(dev, c);

	if (ret)
		return ret;
	dev->hcas = c->hcas;
	dev->hosts = c->hosts;
	dev->switches = c->switches;
	dev->cluster = c->hash;
	dev->has_links = c->has_links;
	memcpy(dev->hca, c->hca, c->hcas * sizeof(*c->hca));
	memcpy(dev->host, c->host, c->hosts * sizeof(*c->host));
	memcpy(dev->sw, c->sw, c->switches * sizeof(*c->sw));
	for (k = 0; k < c->hcas; k++)
		hca_init(dev, k, guid);
	subnet_init(dev);
	paths_update(dev);
	gid_table_init(dev);
	return 0;
}
