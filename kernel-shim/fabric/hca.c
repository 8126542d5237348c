// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The devices of a fabric (struct urxe_hca).  Their number is URXE_DEVICES, or
 * 1, their profiles are those of URXE_PROFILE, or none, and their link layers
 * those of URXE_LINK_LAYER, or Ethernet, when the fabric is created.  None of
 * these changes.  A fabric without users that has other devices is replaced
 * (fabric.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/plural.h"
#include "internal.h"
#include "profile.h"

int hcas_by_env(uint32_t *n)
{
	const char *env = getenv("URXE_DEVICES");

	*n = 0;
	if (!env || !*env)
		return 0;
	if (env[0] < '1' || env[0] > '0' + URXE_MAX_HCA || env[1])
		return fabric_fail(
			EINVAL,
			"URXE_DEVICES=%s is not a number of devices: 1 to %d",
			env, URXE_MAX_HCA);
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
			URXE_DEVICE_NAME
			"%u of the fabric %s has the link layer %s; choose another fabric, or urxe rm it when no process uses it",
			k, f->dir, hca_link_layer(hca));
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
			URXE_DEVICE_NAME
			"%u of the fabric %s has %s%.31s, not %s as it is now; choose another fabric, or urxe rm it when no process uses it",
			k, f->dir, has->name[0] ? "the profile " : "no profile",
			has->name, want.name);
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

int hcas_are_wanted(const struct urxe_fabric *f)
{
	uint32_t want;
	int ret = hcas_by_env(&want);

	if (!ret)
		ret = link_layers_differ(f);
	if (!ret)
		ret = sm_differs(f);
	if (!ret)
		ret = profiles_differ(f);
	if (ret < 0)
		return ret;
	return !ret && f->hcas == (want ? want : 1);
}

int hcas_agree(const struct urxe_fabric *f)
{
	const char *profile = getenv("URXE_PROFILE");
	const char *link_layer = getenv("URXE_LINK_LAYER");
	const char *sm = getenv("URXE_SM");
	uint32_t want;
	int ret = hcas_by_env(&want);

	if (ret)
		return ret;
	if (want && want != f->hcas)
		return fabric_fail(
			EINVAL,
			"the fabric %s has %u device%s, not %u; choose another fabric, or urxe rm it when no process uses it",
			f->dir, f->hcas, plural(f->hcas), want);
	if (link_layer && *link_layer)
		ret = link_layers_differ(f);
	if (!ret && sm && *sm)
		ret = sm_differs(f);
	if (!ret && profile && *profile)
		ret = profiles_differ(f);
	return ret > 0 ? -EINVAL : ret;
}

int hca_number(const char *name)
{
	const size_t n = strlen(URXE_DEVICE_NAME);
	const char *digit = name + n;

	if (strncmp(name, URXE_DEVICE_NAME, n) || *digit < '0' ||
	    *digit >= '0' + URXE_MAX_HCA || digit[1])
		return -1;
	return *digit - '0';
}

int hcas_init(struct urxe_dev *dev, uint32_t n, uint64_t guid)
{
	uint32_t k;
	int ret;

	dev->hcas = n;
	for (k = 0; k < n; k++) {
		ret = profile_by_env(&dev->hca[k].profile, k);
		if (!ret)
			ret = link_layer_by_env(&dev->hca[k].infiniband, k);
		if (ret)
			return ret;
		/* only the low 24 bits differ */
		dev->hca[k].node_guid = (guid & ~0xffffffull) |
					((guid + k) & 0xffffff);
		store_relaxed(&dev->hca[k].port_state, URXE_PORT_ACTIVE);
	}
	ret = subnet_init(dev);
	if (ret)
		return ret;
	paths_update(dev);
	gid_table_init(dev);
	return 0;
}
