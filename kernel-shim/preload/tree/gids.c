// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The files of the sysfs tree that change: GIDs, port state, network
 * interface of the device, and counters.  The path wrappers
 * (wrap/redirect.c) update them before a program opens or lists them.
 *
 * GID files are replaced by rename(2).  The stamp file has the GID generation
 * and port state of the files, so that a process rewrites them only if they
 * are out of date.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabric/profile.h"
#include "tree.h"

#define STAMP "sys/stamp" /* tree_state() of the files */
#define EMPTY_GID "sys/none/gid"
#define EMPTY_ATTR "sys/none/attr"
#define NET TREE_PCI "/net"

static void gid_text(const uint8_t raw[16], char text[48])
{
	int i, n = 0;

	for (i = 0; i < 16; i += 2)
		n += snprintf(text + n, 48 - (size_t)n, "%02x%02x%c", raw[i],
			      raw[i + 1], i < 14 ? ':' : '\n');
}

/*
 * Most entries of the GID table are empty.  Their files are hard links to
 * these two.
 */
static void tree_make_empty_gid(int dirfd)
{
	static const uint8_t zero[16];
	char text[48];

	gid_text(zero, text);
	tree_put(dirfd, EMPTY_GID, text, 0444);
	tree_put(dirfd, EMPTY_ATTR, "", TREE_EINVAL_MODE);
}

/*
 * Write entry @i of directory @what of a device; @text NULL: link it to
 * @empty.
 */
static void tree_put_gid_file(const struct tree_at *t, const char *what,
			      unsigned int i, const char *text,
			      const char *empty)
{
	char name[128], path[128];

	snprintf(name, sizeof(name), TREE_PORT "%s/%u", what, i);
	tree_expand(path, sizeof(path), name, t);
	if (text)
		tree_put(t->dirfd, path, text, 0444);
	else
		tree_link(t->dirfd, path, empty);
}

static void tree_write_gid(const struct tree_at *t, unsigned int i)
{
	struct urxe_gid g;
	const struct urxe_hca *hca = t->hca;
	bool valid = fabric_get_gid(hca, i, &g);
	const char *type = gid_roce(hca, i) == URXE_ROCE_V2 ? "RoCE v2\n" :
							      "IB/RoCE v1\n";
	char gid[48], ndev[32];

	if (valid) {
		gid_text(g.raw, gid);
		snprintf(ndev, sizeof(ndev), "%.15s\n", g.ifname);
	}
	tree_put_gid_file(t, "gids", i, valid ? gid : NULL, EMPTY_GID);
	tree_put_gid_file(t, "gid_attrs/types", i, valid ? type : NULL,
			  EMPTY_ATTR);
	tree_put_gid_file(t, "gid_attrs/ndevs", i,
			  valid && !hca->infiniband ? ndev : NULL, EMPTY_ATTR);
}

/*
 * Directory device/net: one symbolic link, to the interface of the first IPv4
 * GID, or none.  An interface that the cluster file names does not exist: it is
 * a directory.
 */
static void tree_write_net(const struct tree_at *t)
{
	char net[128], path[160], target[64];
	struct urxe_gid g;
	bool have = !t->hca->infiniband && fabric_main_gid(t->hca, &g) &&
		    !strchr(g.ifname, '/');
	struct dirent *de;
	DIR *dir;

	tree_expand(net, sizeof(net), NET, t);
	mkdirat(t->dirfd, net, 0755);
	dir = dir_open(t->dirfd, net);
	while (dir && (de = readdir(dir)))
		if (de->d_name[0] != '.' &&
		    (!have || strcmp(de->d_name, g.ifname)))
			unlinkat(dirfd(dir), de->d_name, 0);
	if (dir)
		closedir(dir);
	if (!have)
		return;
	snprintf(path, sizeof(path), "%s/%.15s", net, g.ifname);
	if (t->hca->netdev[0]) {
		strcat(path, "/dev_port");
		tree_put(t->dirfd, path, "0\n", 0444);
		return;
	}
	snprintf(target, sizeof(target), "/sys/class/net/%.15s", g.ifname);
	if (symlinkat(target, t->dirfd, path) && errno != EEXIST)
		return;
}

/*
 * Return the generation of the GIDs << 32 | number of changes of LIDs, P_Keys
 * and rates << 24 | the states of the ports, 3 bits each.
 */
static uint64_t tree_state(const struct urxe_fabric *f)
{
	const struct urxe_hca *hca = fabric_hca(f, 0);
	uint64_t states = 0;
	uint32_t k, changes = 0;

	for (k = 0; k < f->hcas; k++) {
		states |= (uint64_t)(load_acquire(&hca[k].port_state) & 7)
			  << 3 * k;
		changes += load_acquire(&hca[k].subnet.gen);
	}
	return (uint64_t)load_acquire(&hca[0].gid_gen) << 32 |
	       (uint64_t)(changes & 0xff) << 24 | states;
}

static void stamp_text(uint64_t state, char text[32])
{
	snprintf(text, 32, "%llx\n", (unsigned long long)state);
}

__attribute__((format(printf, 3, 4))) static void
tree_put_value(const struct tree_at *t, const char *path, const char *format,
	       ...)
{
	char text[32];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	tree_put_of(t, path, text, 0444);
}

/* What the subnet manager assigns; LIDs of an Ethernet port are 0. */
static void tree_write_subnet(const struct tree_at *t, uint32_t caps)
{
	const struct urxe_hca *hca = t->hca;
	const struct urxe_subnet *s = &hca->subnet;
	char name[TREE_PATH_MAX];
	uint32_t i;

	tree_put_value(t, TREE_PORT "cap_mask", "0x%08x\n", caps);
	tree_put_value(t, TREE_PORT "lid", "0x%x\n", port_lid(s));
	tree_put_value(t, TREE_PORT "lid_mask_count", "%u\n", port_lmc(s));
	tree_put_value(t, TREE_PORT "sm_lid", "0x%x\n", port_sm_lid(s));
	tree_put_value(t, TREE_PORT "sm_sl", "%u\n", port_sm_sl(s));
	for (i = 0; i < port_pkeys(hca); i++) {
		snprintf(name, sizeof(name), TREE_PORT "pkeys/%u", i);
		tree_put_value(t, name, "0x%04x\n", port_pkey(s, i));
	}
}

static void tree_write_port(const struct tree_at *t, uint32_t state)
{
	char rate[48];
	static const char *const texts[] = { "0: NOP\n", "1: DOWN\n",
					     "2: INIT\n", "3: ARMED\n",
					     "4: ACTIVE\n" };

	rate_print(t->hca, rate, sizeof(rate));
	tree_put_of(t, TREE_PORT "rate", rate, 0444);
	tree_put_of(t, TREE_PORT "state",
		    texts[state <= URXE_PORT_ACTIVE ? state : URXE_PORT_DOWN],
		    0444);
	tree_put_of(t, TREE_PORT "phys_state",
		    state > URXE_PORT_DOWN ? "5: LinkUp\n" : "3: Disabled\n",
		    0444);
}

void tree_write_gids(struct urxe_fabric *f, int dirfd, bool all)
{
	const uint64_t state = tree_state(f);
	struct tree_at t;
	char stamp[32];
	unsigned int i;
	uint32_t k;

	stamp_text(state, stamp);
	tree_make_empty_gid(dirfd);
	for (k = 0; k < f->hcas; k++) {
		t = tree_at(f, dirfd, k);
		for (i = 0; i < gid_table_len(t.hca) && (all || !k); i++)
			tree_write_gid(&t, i);
		tree_write_port(&t, state >> 3 * k & 7);
		if (all || t.hca->infiniband)
			tree_write_subnet(&t, subnet_port_caps(f->dev, t.hca));
		if (all || !k)
			tree_write_net(&t);
	}
	tree_put(dirfd, STAMP, stamp, 0444);
}

void tree_refresh(struct urxe_fabric *f)
{
	/* the state of the files when this process last checked them */
	static _Atomic uint64_t seen;
	char stamp[32];
	uint64_t now = tree_state(f);
	int dirfd;

	if (load_relaxed(&seen) == now)
		return;
	dirfd = tree_dirfd(f);
	if (dirfd < 0)
		return;
	/*
	 * Two processes may write at a time, and one of them an outdated
	 * state.  That process then finds that the state has changed, and
	 * repeats.
	 */
	do {
		now = tree_state(f);
		stamp_text(now, stamp);
		if (!tree_has(dirfd, STAMP, stamp))
			tree_write_gids(f, dirfd, false);
	} while (now != tree_state(f));
	tree_dirfd_put(f, dirfd);
	store_relaxed(&seen, now);
}

/* ---------------------------------------------------------------- counters */

/*
 * The counter of each file: URXE_CNT_*; -1: constant 0; -2: constant 10, the
 * interval in ms at which a kernel reads hardware counters.
 */
static const struct {
	const char *name;
	int counter;
} counters[] = {
	{ "counters/VL15_dropped", -1 },
	{ "counters/excessive_buffer_overrun_errors", -1 },
	{ "counters/link_downed", URXE_CNT_LINK_DOWNED },
	{ "counters/link_error_recovery", -1 },
	{ "counters/local_link_integrity_errors", -1 },
	{ "counters/multicast_rcv_packets", -1 },
	{ "counters/multicast_xmit_packets", -1 },
	{ "counters/port_rcv_constraint_errors", -1 },
	{ "counters/port_rcv_data", URXE_CNT_RCV_DATA },
	{ "counters/port_rcv_errors", -1 },
	{ "counters/port_rcv_packets", URXE_CNT_RCV_PACKETS },
	{ "counters/port_rcv_remote_physical_errors", -1 },
	{ "counters/port_rcv_switch_relay_errors", -1 },
	{ "counters/port_xmit_constraint_errors", -1 },
	{ "counters/port_xmit_data", URXE_CNT_XMIT_DATA },
	{ "counters/port_xmit_discards", -1 },
	{ "counters/port_xmit_packets", URXE_CNT_XMIT_PACKETS },
	{ "counters/port_xmit_wait", -1 },
	{ "counters/symbol_error", -1 },
	{ "counters/unicast_rcv_packets", URXE_CNT_RCV_PACKETS },
	{ "counters/unicast_xmit_packets", URXE_CNT_XMIT_PACKETS },
	{ "hw_counters/lifespan", -2 },
};
#define COUNTERS (sizeof(counters) / sizeof(*counters))
/* the other files there are named by counter_name() */
#define HW_COUNTERS "hw_counters/"

static int counter_put(const struct tree_at *t, const char *folder,
		       const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), TREE_PORT "%s%s", folder, name);
	return tree_put_of(t, path, text, 0644);
}

int tree_make_counters(const struct tree_at *t)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < COUNTERS && !ret; i++)
		ret = counter_put(t, "", counters[i].name,
				  counters[i].counter == -2 ? "10\n" : "0\n");
	for (i = 0; i < URXE_CNT_COUNT && !ret; i++)
		if (counter_name(i))
			ret = counter_put(t, HW_COUNTERS, counter_name(i),
					  "0\n");
	return ret;
}

/*
 * The device that has the file of a port at @path, as in
 * ".../infiniband/mlx5_0/ports/1/counters"; the first one if it is unknown.
 */
static uint32_t device_of(const struct urxe_fabric *f, const char *path)
{
	const char *end = strstr(path, "/ports/");
	const char *name;
	uint32_t k;
	size_t n;

	for (k = 0; end && k < f->hcas; k++) {
		name = fabric_hca(f, k)->name;
		n = strnlen(name, sizeof(fabric_hca(f, k)->name));
		if (end > path + n && end[-(ssize_t)n - 1] == '/' &&
		    !strncmp(end - n, name, n))
			return k;
	}
	return 0;
}

/*
 * Return the counter (URXE_CNT_*) of the file at @path, and its path in the
 * tree in @file.  Negative: the file is constant, or not a counter.
 */
static int counter_of(const char *path, char file[160])
{
	const char *hw = strstr(path, "/" HW_COUNTERS), *name;
	unsigned int i;

	for (i = 0; hw && i < URXE_CNT_COUNT; i++) {
		name = counter_name(i);
		if (!name || strcmp(hw + sizeof(HW_COUNTERS), name))
			continue;
		snprintf(file, 160, TREE_PORT HW_COUNTERS "%s", name);
		return (int)i;
	}
	for (i = 0; i < COUNTERS; i++) {
		name = strstr(path, counters[i].name);
		if (!name || name[-1] != '/' || name[strlen(counters[i].name)])
			continue;
		snprintf(file, 160, TREE_PORT "%s", counters[i].name);
		return counters[i].counter;
	}
	return -1;
}

/*
 * Write in place, do not replace the file: a program that keeps it open and
 * reads it again gets the value of the last time that any process opened it.
 */
void tree_refresh_counter(struct urxe_fabric *f, const char *path)
{
	char file[160], own[160], text[32];
	struct tree_at t;
	int which = counter_of(path, file);
	int fd, n;

	if (which < 0)
		return;
	t = tree_at(f, tree_dirfd(f), device_of(f, path));
	n = snprintf(text, sizeof(text), "%llu\n",
		     (unsigned long long)counter_read(f->dev, f->first + t.k,
						      which));
	tree_expand(own, sizeof(own), file, &t);
	fd = openat(t.dirfd, own, O_WRONLY | O_CLOEXEC);
	tree_dirfd_put(f, t.dirfd);
	if (fd < 0)
		return;
	if (pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n))
		n = 0;
	close(fd);
}
