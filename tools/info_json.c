// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The JSON output of urxe info (urxe info --json). */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/profile.h"
#include "info.h"

static void put_subnet(struct json *j, const struct urxe_subnet *s)
{
	uint32_t i;

	json_put_number(j, "lid", port_lid(s));
	json_put_number(j, "lmc", port_lmc(s));
	json_put_number(j, "sm_lid", port_sm_lid(s));
	json_open(j, "pkeys", '[');
	for (i = 0; i < URXE_MAX_PKEY; i++)
		json_put_number(j, NULL, port_pkey(s, i));
	json_close(j, ']');
}

static void put_gids(struct json *j, const struct urxe_hca *hca)
{
	char text[INET6_ADDRSTRLEN];
	struct urxe_gid gid;
	uint32_t i;

	json_open(j, "gids", '[');
	for (i = 0; i < URXE_MAX_GID; i++) {
		if (!fabric_get_gid(hca, i, &gid) ||
		    !inet_ntop(AF_INET6, gid.raw, text, sizeof(text)))
			continue;
		json_open(j, NULL, '{');
		json_put_number(j, "index", i);
		json_put_string(j, "gid", text);
		if (!hca->infiniband) {
			json_put_number(j, "roce", gid_roce(hca, i));
			json_put_string(j, "interface", gid.ifname);
		}
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_device(struct json *j, const struct urxe_dev *dev, uint32_t k)
{
	const struct urxe_hca *hca = &dev->hca[k];
	struct urxe_profile p;
	char guid[20], name[64];

	profile_copy(&p, &hca->profile);
	snprintf(guid, sizeof(guid), "%016llx",
		 (unsigned long long)hca->node_guid);
	node_name(dev, k, name);
	json_put_string(j, "device", name);
	json_put_string(j, "profile", p.name);
	json_put_string(j, "firmware", p.fw_ver);
	json_put_string(j, "node_guid", guid);
	json_put_string(j, "port", hca_is_up(hca) ? "ACTIVE" : "DOWN");
	json_put_string(j, "link_layer", hca_link_layer(hca));
	if (hca->infiniband)
		put_subnet(j, &hca->subnet);
	put_gids(j, hca);
}

static void put_socket_owner(struct json *j, struct urxe_fabric *f)
{
	const struct urxe_process *p = info_socket_owner(f);

	if (!p) {
		json_put_null(j, "wire");
		return;
	}
	json_open(j, "wire", '{');
	json_put_number(j, "pid", (uint64_t)load_relaxed(&p->pid));
	json_put_string(j, "program", p->comm);
	json_close(j, '}');
}

/* Write all counters, including those that are 0. */
static void put_counters(struct json *j, const struct urxe_dev *dev, uint32_t k)
{
	int i;

	json_open(j, "counters", '{');
	for (i = 0; i < URXE_CNT_COUNT; i++)
		if (counter_name(i))
			json_put_number(j, counter_name(i),
					counter_read(dev, k, i));
	json_close(j, '}');
}

static void put_dm(struct json *j, struct urxe_fabric *f)
{
	uint64_t bytes;
	uint32_t pieces;

	if (info_dm(f, &bytes, &pieces)) {
		json_put_null(j, "device_memory");
		return;
	}
	json_open(j, "device_memory", '{');
	json_put_number(j, "bytes", bytes);
	json_put_number(j, "pieces", pieces);
	json_put_number(j, "size", f->dev->dm_bytes);
	json_put_string(j, "pages",
			dm_kind_name(load_relaxed(&f->dev->dm_kind)));
	json_close(j, '}');
}

/* Write the numbers of objects; used: NULL for the limits. */
static void put_objects(struct json *j, const char *name,
			const _Atomic uint32_t used[URXE_OBJ_COUNT])
{
	int o;

	json_open(j, name, '{');
	for (o = 0; o < URXE_OBJ_COUNT; o++)
		json_put_number(j, fabric_obj_name(o),
				used ? load_relaxed(&used[o]) :
				       fabric_obj_limit(o));
	json_close(j, '}');
}

/* The first device is the fabric's members, the others are a list. */
static void put_more_devices(struct json *j, const struct urxe_dev *dev)
{
	uint32_t k;

	if (dev_hcas(dev) == 1)
		return;
	json_open(j, "more_devices", '[');
	for (k = 1; k < dev_hcas(dev); k++) {
		json_open(j, NULL, '{');
		put_device(j, dev, k);
		put_counters(j, dev, k);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_context(struct json *j, struct urxe_dev *dev, uint32_t slot)
{
	const struct urxe_ctx_slot *c = &dev->ctx[slot];
	char *adversary = info_adversary(load_relaxed(&c->pid));
	char name[64];

	json_open(j, NULL, '{');
	json_put_number(j, "pid", (uint64_t)load_relaxed(&c->pid));
	json_put_string(j, "program", c->comm);
	if (dev_hcas(dev) > 1) {
		node_name(dev, hca_index(dev, hca_of_ctx(dev, slot)), name);
		json_put_string(j, "device", name);
	}
	put_objects(j, "objects", c->used);
	if (adversary)
		json_put_string(j, "adversary", adversary);
	else
		json_put_null(j, "adversary");
	json_close(j, '}');
	free(adversary);
}

void info_put(struct json *j, struct urxe_fabric *f, const char *dir, int dead)
{
	struct urxe_dev *dev = f->dev;
	uint32_t i;

	json_open(j, NULL, '{');
	json_put_string(j, "fabric", strrchr(dir, '/') + 1);
	json_put_string(j, "directory", dir);
	put_device(j, dev, 0);
	put_socket_owner(j, f);
	put_counters(j, dev, 0);
	put_more_devices(j, dev);
	put_dm(j, f);
	json_open(j, "contexts", '[');
	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_acquire(&dev->ctx[i].state) == URXE_CTX_LIVE)
			put_context(j, dev, i);
	json_close(j, ']');
	put_objects(j, "objects", dev->used);
	put_objects(j, "limits", NULL);
	json_put_number(j, "max_contexts", URXE_MAX_CTX);
	json_put_number(j, "dead_contexts", (uint64_t)dead);
	json_close(j, '}');
}
