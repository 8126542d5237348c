// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe info: print fabrics, their devices, and the processes that use them
 * with their numbers of objects.  Contexts of dead processes are reaped
 * first.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/plural.h"
#include "fabric/fabric.h"
#include "fabric/profile.h"
#include "common/commands.h"
#include "info.h"

static void show_bytes(uint64_t n)
{
	static const char *const unit[] = { "bytes", "KiB", "MiB", "GiB" };
	unsigned int u = 0;
	double v = (double)n;

	while (v >= 1024 && u < 3) {
		v /= 1024;
		u++;
	}
	printf(u ? "%.1f %s" : "%.0f %s", v, unit[u]);
}

/* The port of an InfiniBand device: LIDs, P_Keys, GID and addresses. */
static void show_subnet(const struct urxe_hca *hca)
{
	const struct urxe_subnet *s = &hca->subnet;
	char text[INET6_ADDRSTRLEN];
	struct urxe_gid gid;
	uint32_t i;

	printf("  port 1: %s, InfiniBand, LID %u, LMC %u, subnet manager at LID %u\n",
	       hca_is_up(hca) ? "ACTIVE" : "DOWN", port_lid(s), port_lmc(s),
	       port_sm_lid(s));
	printf("  P_Keys:");
	for (i = 0; i < URXE_MAX_PKEY; i++)
		if (port_pkey(s, i))
			printf(" %u: 0x%04x", i, port_pkey(s, i));
	printf("\n");
	for (i = 0; i < URXE_GID_ROWS; i++)
		if (gid_row_get(&hca->gid[i], &gid) &&
		    inet_ntop(AF_INET6, gid.raw, text, sizeof(text)))
			printf("  %s: %s\n", i ? "address" : "GID 0", text);
}

static void show_device(const struct urxe_dev *dev, uint32_t k)
{
	const struct urxe_hca *hca = &dev->hca[k];
	const uint64_t g = hca->node_guid;
	char text[INET6_ADDRSTRLEN], name[64];
	struct urxe_profile p;
	struct urxe_gid gid;
	uint32_t i, v2;

	profile_copy(&p, &hca->profile);
	node_name(dev, k, name);
	printf("  device %s: firmware %s, node GUID %04x:%04x:%04x:%04x%s%s\n",
	       name, p.fw_ver, (unsigned int)(g >> 48),
	       (unsigned int)(g >> 32 & 0xffff),
	       (unsigned int)(g >> 16 & 0xffff), (unsigned int)(g & 0xffff),
	       p.name[0] ? ", profile " : "", p.name);
	if (hca->infiniband) {
		show_subnet(hca);
		return;
	}
	printf("  port 1: %s, Ethernet, RoCE %sv2\n",
	       hca_is_up(hca) ? "ACTIVE" : "DOWN",
	       gid_entries(hca) == 2 ? "v1 and " : "");
	for (i = 0; i < URXE_GID_ROWS; i++) {
		v2 = gid_index_v2(hca, i);
		if (!fabric_get_gid(hca, v2, &gid) ||
		    !inet_ntop(AF_INET6, gid.raw, text, sizeof(text)))
			continue;
		if (gid_entries(hca) == 2)
			printf("  GID %u (v1), %u (v2): ", v2 - 1, v2);
		else
			printf("  GID %u (v2): ", v2);
		printf("%s (%s)\n", text, gid.ifname);
	}
}

const struct urxe_process *info_socket_owner(struct urxe_fabric *f)
{
	const uint32_t id = load_acquire(&f->dev->wire.socket_owner);

	return id && !process_is_dead(f, id) ?
		       &f->dev->process[URXE_PROCESS_NUMBER(id)] :
		       NULL;
}

static void show_socket_owner(struct urxe_fabric *f)
{
	const struct urxe_process *p = info_socket_owner(f);

	if (p)
		printf("  wire: socket owner is PID %d (%.15s)\n",
		       load_relaxed(&p->pid), p->comm);
}

/* Print the counters that are not 0, by their names in hw_counters. */
static void show_counters(const struct urxe_dev *dev, uint32_t k)
{
	const char *before = "  counters: ";
	uint64_t value;
	int i, n = 0;

	for (i = 0; i < URXE_CNT_COUNT; i++) {
		value = counter_name(i) ? counter_read(dev, k, i) : 0;
		if (!value)
			continue;
		n += printf("%s%s %llu", before, counter_name(i),
			    (unsigned long long)value);
		before = n < 60 ? ", " : "\n            ";
		n = n < 60 ? n : 0;
	}
	if (before[0] == ',' || before[0] == '\n')
		putchar('\n');
}

int info_dm(struct urxe_fabric *f, uint64_t *bytes, uint32_t *pieces)
{
	const struct urxe_dev *dev = f->dev;
	uint32_t i;

	*bytes = *pieces = 0;
	if (fabric_lock(f))
		return fail(1, "%s", fabric_why());
	for (i = 0; i < dm_slots(dev); i++) {
		if (!load_relaxed(&dev->dm[i].used))
			continue;
		if (dev->dm[i].share != URXE_DM_OF_MR)
			*bytes += (uint64_t)dev->dm[i].pages * URXE_PAGE;
		++*pieces;
	}
	fabric_unlock(f);
	return 0;
}

static void show_dm(struct urxe_fabric *f)
{
	const struct urxe_dev *dev = f->dev;
	uint64_t bytes;
	uint32_t n;

	if (info_dm(f, &bytes, &n))
		return;
	printf("  device memory: ");
	show_bytes(bytes);
	printf(" in %u piece%s of ", n, plural(n));
	show_bytes(dev->dm_bytes);
	printf("; pages: %s\n", dm_kind_name(load_relaxed(&dev->dm_kind)));
}

/* Print the numbers of objects; used: NULL for the limits. */
static void show_row(const char *a, const char *b,
		     const _Atomic uint32_t used[URXE_OBJ_COUNT])
{
	int o;

	printf("  %8s %-15s", a, b);
	for (o = 0; o < URXE_OBJ_COUNT; o++)
		if (!used && fabric_obj_limit(o) == INT32_MAX)
			printf(" %6s", "-");
		else
			printf(" %6u", used ? load_relaxed(&used[o]) :
					      fabric_obj_limit(o));
	putchar('\n');
}

char *info_adversary(int pid)
{
	static const char name[] = "URXE_ADVERSARY=";
	char path[64], *line = NULL, *found = NULL;
	size_t room = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	while (getdelim(&line, &room, 0, f) > 0)
		if (!found && !strncmp(line, name, strlen(name)) &&
		    line[strlen(name)])
			found = strdup(line + strlen(name));
	free(line);
	fclose(f);
	return found;
}

static void show_adversary(int pid)
{
	char *adversary = info_adversary(pid);

	if (adversary)
		printf("  %8s under the adversary %s\n", "", adversary);
	free(adversary);
}

static void show_contexts(struct urxe_fabric *f)
{
	const struct urxe_dev *dev = f->dev;
	char pid[16], comm[17], name[64];
	uint32_t i, n = 0;
	int o;

	for (i = 0; i < URXE_MAX_CTX; i++)
		n += load_acquire(&dev->ctx[i].state) == URXE_CTX_LIVE;
	printf("  contexts: %u of %u\n", n, URXE_MAX_CTX);
	printf("  %8s %-15s", "PID", "command");
	for (o = 0; o < URXE_OBJ_COUNT; o++)
		printf(" %6s", fabric_obj_name(o));
	putchar('\n');
	for (i = 0; i < URXE_MAX_CTX; i++) {
		const struct urxe_ctx_slot *c = &dev->ctx[i];

		if (load_acquire(&c->state) != URXE_CTX_LIVE)
			continue;
		snprintf(pid, sizeof(pid), "%d", load_relaxed(&c->pid));
		snprintf(comm, sizeof(comm), "%.15s", c->comm);
		show_row(pid, comm, c->used);
		node_name(dev, hca_index(dev, hca_of_ctx(f->dev, i)), name);
		if (dev_hcas(dev) > 1)
			printf("  %8s of %s\n", "", name);
		show_adversary(load_relaxed(&c->pid));
	}
	show_row("", "all", dev->used);
	show_row("", "limit", NULL);
	printf("  %8s %s\n", "",
	       "(limits per fabric: qp, xrcd, dm; per context: the others)");
}

static void show_text(struct urxe_fabric *f, const char *dir, int dead)
{
	uint32_t k;

	printf("fabric %s (%s)\n", strrchr(dir, '/') + 1, dir);
	for (k = 0; k < dev_hcas(f->dev); k++) {
		show_device(f->dev, k);
		if (!k)
			show_socket_owner(f);
		show_counters(f->dev, k);
	}
	show_dm(f);
	show_contexts(f);
	if (dead)
		printf("  %d dead context%s freed\n", dead, plural_was(dead));
}

/* Print a fabric as an element of json, or as text if json is NULL. */
static int show_fabric(const char *dir, struct json *json)
{
	struct urxe_fabric *f;
	int dead;

	if (use_fabric(dir, false, &f))
		return 1;
	dead = fabric_reap(f);
	if (fabric_refresh_gids(f))
		fail(0, "%s", fabric_why());
	if (json)
		info_put(json, f, dir, dead);
	else
		show_text(f, dir, dead);
	fabric_close(f);
	return 0;
}

/* Output format. */
struct form {
	bool names; /* only names */
	struct json *json; /* NULL: text */
};

static int show_one(const char *base, const char *name, const struct form *as)
{
	char path[600];

	if (as->names)
		return puts(name) < 0;
	snprintf(path, sizeof(path), "%s/%s", base, name);
	return show_fabric(path, as->json);
}

static int show_all(char *base, const struct form *as)
{
	const bool text = !as->names && !as->json;
	char **names;
	int i, ret = 0, n = fabrics_list(base, &names);

	if (n < 0)
		return fail(1, "%s: %s", base, strerror(-n));
	for (i = 0; i < n; i++) {
		if (i && text)
			putchar('\n');
		ret |= show_one(base, names[i], as);
		free(names[i]);
	}
	free(names);
	if (!n && text)
		printf("no fabric in %s; urxe run creates one\n", base);
	return ret;
}

/*
 * Print the fabric at dir, or if `one` is false all fabrics next to it.  dir
 * is modified.  Return the exit code.
 */
static int show_as(char *dir, bool one, const struct form *as)
{
	int ret;

	if (as->json) {
		json_open(as->json, NULL, '{');
		json_put_string(as->json, "urxe", URXE_VERSION);
		json_open(as->json, "fabrics", '[');
	}
	if (one) {
		ret = show_fabric(dir, as->json);
	} else {
		*strrchr(dir, '/') = 0;
		ret = show_all(dir, as);
	}
	if (as->json) {
		json_close(as->json, ']');
		json_close(as->json, '}');
		putchar('\n');
	}
	return ret;
}

/* clang-format off */
static const struct command_option options[] = {
	{ 'f', "fabric", "NAME", "show only this fabric", "all" },
	{ 'j', "json", NULL, "print JSON", "text" },
	{ 'n', "names", NULL, "print only the names of the fabrics", "all" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_info(int argc, char **argv)
{
	struct json json = { .to = stdout };
	struct form as = { 0 };
	const char *fabric = NULL;
	char dir[256];
	int c, ret;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c == 'f')
			fabric = optarg;
		else if (c == 'j')
			as.json = &json;
		else if (c == 'n')
			as.names = true;
		else
			return usage();
	}
	if (optind != argc || (as.names && (fabric || as.json)))
		return usage();
	ret = choose_fabric(fabric ? fabric : "default", dir);
	if (ret)
		return ret;
	return show_as(dir, fabric, &as);
}

/* clang-format off */
const struct command command_info = {
	.name = "info",
	.run = cmd_info,
	.operands = "",
	.what = "Show fabrics, their devices and processes, and free the resources of dead processes.",
	.options = options,
};
/* clang-format on */
