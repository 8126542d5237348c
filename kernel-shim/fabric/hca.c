// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The devices of a fabric (struct urxe_hca).  Their number is URXE_DEVICES, or
 * 1, when the fabric is created, and does not change.  A fabric without users
 * that has another number is replaced (fabric.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "internal.h"

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

bool hcas_are_wanted(const struct urxe_fabric *f)
{
	uint32_t want;

	return !hcas_by_env(&want) && f->hcas == (want ? want : 1);
}

int hcas_agree(const struct urxe_fabric *f)
{
	uint32_t want;
	int ret = hcas_by_env(&want);

	if (ret || !want || want == f->hcas)
		return ret;
	return fabric_fail(
		EINVAL,
		"the fabric %s has %u device%s, not %u; choose another fabric, or urxe rm it when no process uses it",
		f->dir, f->hcas, plural(f->hcas), want);
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

void hcas_init(struct urxe_dev *dev, uint32_t n, uint64_t guid)
{
	uint32_t k, j;

	dev->hcas = n;
	for (k = 0; k < n; k++) {
		/* only the low 24 bits differ */
		dev->hca[k].node_guid = (guid & ~0xffffffull) |
					((guid + k) & 0xffffff);
		store_relaxed(&dev->hca[k].port_state, URXE_PORT_ACTIVE);
		for (j = 0; j < n; j++)
			store_relaxed(&dev->path[k][j], URXE_PORT_ACTIVE);
	}
	gid_table_init(dev);
}
