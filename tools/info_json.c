// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The JSON output of urxe info (urxe info --json). */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "info.h"

static void put_gids(struct json *j, const struct urxe_dev *dev)
{
	char text[INET6_ADDRSTRLEN];
	struct urxe_gid gid;
	uint32_t i;

	json_open(j, "gids", '[');
	for (i = 0; i < URXE_MAX_GID; i++) {
		if (!fabric_get_gid(&dev->hca[0], i, &gid) ||
		    !inet_ntop(AF_INET6, gid.raw, text, sizeof(text)))
			continue;
		json_open(j, NULL, '{');
		json_put_number(j, "index", i);
		json_put_string(j, "gid", text);
		json_put_number(j, "roce", i % 2 + 1);
		json_put_string(j, "interface", gid.ifname);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_device(struct json *j, const struct urxe_dev *dev)
{
	const bool up = hca_is_up(&dev->hca[0]);
	char guid[20];

	snprintf(guid, sizeof(guid), "%016llx",
		 (unsigned long long)dev->hca[0].node_guid);
	json_put_string(j, "device", URXE_DEVICE_NAME);
	json_put_string(j, "firmware", dev->fw_ver);
	json_put_string(j, "node_guid", guid);
	json_put_string(j, "port", up ? "ACTIVE" : "DOWN");
	put_gids(j, dev);
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
static void put_counters(struct json *j, const struct urxe_dev *dev)
{
	int i;

	json_open(j, "counters", '{');
	for (i = 0; i < URXE_CNT_COUNT; i++)
		if (counter_name(i))
			json_put_number(j, counter_name(i),
					counter_read(dev, 0, i));
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

static void put_context(struct json *j, const struct urxe_ctx_slot *c)
{
	char *adversary = info_adversary(load_relaxed(&c->pid));

	json_open(j, NULL, '{');
	json_put_number(j, "pid", (uint64_t)load_relaxed(&c->pid));
	json_put_string(j, "program", c->comm);
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
	const struct urxe_dev *dev = f->dev;
	uint32_t i;

	json_open(j, NULL, '{');
	json_put_string(j, "fabric", strrchr(dir, '/') + 1);
	json_put_string(j, "directory", dir);
	put_device(j, dev);
	put_socket_owner(j, f);
	put_counters(j, dev);
	put_dm(j, f);
	json_open(j, "contexts", '[');
	for (i = 0; i < URXE_MAX_CTX; i++)
		if (load_acquire(&dev->ctx[i].state) == URXE_CTX_LIVE)
			put_context(j, &dev->ctx[i]);
	json_close(j, ']');
	put_objects(j, "objects", dev->used);
	put_objects(j, "limits", NULL);
	json_put_number(j, "max_contexts", URXE_MAX_CTX);
	json_put_number(j, "dead_contexts", (uint64_t)dead);
	json_close(j, '}');
}
