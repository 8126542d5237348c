// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The devices of a fabric (struct urxe_hca).  Their number is URXE_DEVICES, or
 * 1, and their profiles are those of URXE_PROFILE, or none, when the fabric is
 * created.  Neither changes.  A fabric without users that has other devices is
 * replaced (fabric.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int hcas_are_wanted(const struct urxe_fabric *f)
{
	uint32_t want;
	int ret = hcas_by_env(&want);

	if (!ret)
		ret = profiles_differ(f);
	if (ret < 0)
		return ret;
	return !ret && f->hcas == (want ? want : 1);
}

int hcas_agree(const struct urxe_fabric *f)
{
	const char *profile = getenv("URXE_PROFILE");
	uint32_t want;
	int ret = hcas_by_env(&want);

	if (ret)
		return ret;
	if (want && want != f->hcas)
		return fabric_fail(
			EINVAL,
			"the fabric %s has %u device%s, not %u; choose another fabric, or urxe rm it when no process uses it",
			f->dir, f->hcas, plural(f->hcas), want);
	if (!profile || !*profile)
		return 0;
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
	uint32_t k, j;
	int ret;

	dev->hcas = n;
	for (k = 0; k < n; k++) {
		ret = profile_by_env(&dev->hca[k].profile, k);
		if (ret)
			return ret;
		/* only the low 24 bits differ */
		dev->hca[k].node_guid = (guid & ~0xffffffull) |
					((guid + k) & 0xffffff);
		store_relaxed(&dev->hca[k].port_state, URXE_PORT_ACTIVE);
		for (j = 0; j < n; j++)
			store_relaxed(&dev->path[k][j], URXE_PORT_ACTIVE);
	}
	gid_table_init(dev);
	return 0;
}
