// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The PCI function of a device in the sysfs tree, for programs that query
 * the topology (UCX, NCCL, hwloc).  Unless a cluster file names other ones,
 * real machines have no such PCI domain and bus.  The vendor ID is that of no
 * known vendor.  Without a NUMA node, or one that this machine does not have,
 * all CPUs are local.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/profile.h"
#include "tree.h"

#define CLASS 0x020000 /* Ethernet controller */
#define MAX_CPUS 8192
#define CPULIST_MAX 1024

/* The bandwidth of PCIe 4.0 x16 is somewhat more than the port's rate. */
static const struct {
	const char *name, *text;
} files[] = {
	{ "current_link_speed", "16.0 GT/s PCIe\n" },
	{ "current_link_width", "16\n" },
	{ "max_link_speed", "16.0 GT/s PCIe\n" },
	{ "max_link_width", "16\n" },
	{ "enable", "1\n" },
	{ "irq", "0\n" },
};

static int pci_put(const struct tree_at *t, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), TREE_PCI "/%s", name);
	return tree_put_of(t, path, text, 0444);
}

static int pci_put_number(const struct tree_at *t, const char *name, int digits,
			  uint32_t n)
{
	char text[16];

	snprintf(text, sizeof(text), "0x%0*x\n", digits, n);
	return pci_put(t, name, text);
}

/*
 * IDs of a device without profile as ibv_query_device(3) reports them,
 * truncated to 16 bits.  A device with the profile of another vendor has them
 * as well: libraries that select a driver of that vendor by PCI IDs would
 * otherwise use it.
 */
#define VENDOR (profile_keys[PROFILE_vendor_id].own & 0xffff)
#define PART (profile_keys[PROFILE_vendor_part_id].own & 0xffff)
#define REVISION (profile_keys[PROFILE_hw_ver].own & 0xff)

static int pci_make_ids(const struct tree_at *t)
{
	const uint32_t vendor = VENDOR, device = PART;
	char text[256], modalias[64];
	int ret;

	snprintf(modalias, sizeof(modalias),
		 "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X", vendor, device,
		 vendor, device, CLASS >> 16, CLASS >> 8 & 0xff, CLASS & 0xff);
	snprintf(text, sizeof(text),
		 "DRIVER=urxe\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\n"
		 "PCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=" TREE_PCI_NAME
		 "\nMODALIAS=%s\n",
		 CLASS, vendor, device, vendor, device, modalias);
	ret = pci_put(t, "uevent", text);
	strcat(modalias, "\n");
	if (!ret)
		ret = pci_put(t, "modalias", modalias);
	if (!ret)
		ret = pci_put_number(t, "vendor", 4, vendor);
	if (!ret)
		ret = pci_put_number(t, "device", 4, device);
	if (!ret)
		ret = pci_put_number(t, "subsystem_vendor", 4, vendor);
	if (!ret)
		ret = pci_put_number(t, "subsystem_device", 4, device);
	if (!ret)
		ret = pci_put_number(t, "class", 6, CLASS);
	return ret ? ret : pci_put_number(t, "revision", 2, REVISION);
}

/* Configuration space header, and empty BARs; lspci and hwloc read them. */
static int pci_make_config(const struct tree_at *t)
{
	uint8_t config[256] = {
		[0] = VENDOR & 0xff,
		[1] = VENDOR >> 8,
		[2] = PART & 0xff,
		[3] = PART >> 8,
		[4] = 6, /* memory space, bus master */
		[8] = REVISION,
		[9] = CLASS & 0xff,
		[10] = CLASS >> 8 & 0xff,
		[11] = CLASS >> 16,
	};
	char resource[13 * 57 + 1], path[128];
	int i, n = 0;

	memcpy(config + 44, config, 4); /* subsystem */
	for (i = 0; i < 13; i++)
		n += snprintf(resource + n, sizeof(resource) - (size_t)n,
			      "0x%016x 0x%016x 0x%016x\n", 0, 0, 0);
	tree_expand(path, sizeof(path), TREE_PCI "/resource", t);
	i = tree_put(t->dirfd, path, resource, 0444);
	tree_expand(path, sizeof(path), TREE_PCI "/config", t);
	return i ? i :
		   tree_put_bytes(t->dirfd, path, config, sizeof(config), 0444);
}

/* ---------------------------------------------------------------- CPUs */

/*
 * Parse a CPU list such as "0-3,8" into a bitmap.  Return the highest CPU
 * number + 1.
 */
static unsigned int cpus_parse(const char *list, uint32_t map[MAX_CPUS / 32])
{
	unsigned long from, to, high = 0;
	char *end;

	while (*list >= '0' && *list <= '9') {
		from = to = strtoul(list, &end, 10);
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < MAX_CPUS; from++) {
			map[from / 32] |= 1u << from % 32;
			if (from >= high)
				high = from + 1;
		}
		list = *end == ',' ? end + 1 : end;
	}
	return (unsigned int)high;
}

/*
 * Read a CPU list of the machine.  If there is none, use sysconf(3):
 * _SC_NPROCESSORS_CONF.
 */
static void cpus_list(const char *file, char list[CPULIST_MAX])
{
	file_read(AT_FDCWD, file, list, CPULIST_MAX);
	if (list[0] < '0' || list[0] > '9')
		snprintf(list, CPULIST_MAX, "0-%ld\n",
			 sysconf(_SC_NPROCESSORS_CONF) - 1);
}

static int pci_make_cpus(const struct tree_at *t)
{
	uint32_t map[MAX_CPUS / 32] = { 0 };
	char list[CPULIST_MAX], text[MAX_CPUS / 32 * 9 + 1], path[128];
	unsigned int bits, word;
	int n, ret;

	/* the mask has a bit for each possible CPU, as in the kernel */
	cpus_list("/sys/devices/system/cpu/possible", list);
	bits = cpus_parse(list, map);
	if (!bits)
		bits = 1;
	memset(map, 0, sizeof(map));
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
		 t->hca->numa_node);
	cpus_list(access(path, R_OK) ? "/sys/devices/system/cpu/online" : path,
		  list);
	cpus_parse(list, map);
	tree_expand(path, sizeof(path), TREE_PCI "/local_cpulist", t);
	ret = tree_put(t->dirfd, path, list, 0444);
	word = (bits - 1) / 32;
	n = sprintf(text, "%0*x", (int)((bits - 1) % 32 / 4 + 1), map[word]);
	while (word-- > 0)
		n += sprintf(text + n, ",%08x", map[word]);
	strcpy(text + n, "\n");
	tree_expand(path, sizeof(path), TREE_PCI "/local_cpus", t);
	return ret ? ret : tree_put(t->dirfd, path, text, 0444);
}

int tree_make_pci(const struct tree_at *t)
{
	unsigned int i;
	char text[16];
	int ret = 0;

	for (i = 0; i < sizeof(files) / sizeof(*files) && !ret; i++)
		ret = pci_put(t, files[i].name, files[i].text);
	snprintf(text, sizeof(text), "%d\n", t->hca->numa_node);
	if (!ret)
		ret = pci_put(t, "numa_node", text);
	if (!ret)
		ret = pci_make_ids(t);
	if (!ret)
		ret = pci_make_config(t);
	return ret ? ret : pci_make_cpus(t);
}
