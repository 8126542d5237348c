// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The PCI function of a device in sysfs, read as topology code reads it: by
 * the paths that NCCL, UCX and hwloc use, in their order.
 * Arguments: the device and its NUMA node, if a cluster file has set them.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define DEV "/sys/class/infiniband/urxe0"

static char dev[64] = DEV;
static int numa_node = -1;

/* Return the path of a file of the device, until the next call. */
static const char *of_dev(const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s%s", dev, file);
	return path;
}

/*
 * Read an attribute, which must end with a newline.  False: it cannot be
 * read.
 */
static bool get(const char *dir, const char *name, char *text, size_t room)
{
	char path[PATH_MAX + 64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fread(text, 1, room - 1, f);
	fclose(f);
	text[n] = 0;
	return n && text[n - 1] == '\n';
}

static unsigned long number(const char *dir, const char *name)
{
	char text[64];

	CHECK(get(dir, name, text, sizeof(text)));
	return strtoul(text, NULL, 0);
}

static const char *last(const char *path)
{
	return strrchr(path, '/') + 1;
}

static double link_speed(const char *dir, const char *name)
{
	char text[64], unit[16];
	double speed;

	CHECK(get(dir, name, text, sizeof(text)));
	CHECK(sscanf(text, "%lf%15s", &speed, unit) == 2);
	CHECK(!strcmp(unit, "GT/s"));
	return speed;
}

/*
 * NCCL merges the ports or virtual functions of a NIC: it sets the function
 * number to 0 and looks that function up by its bus.
 */
static void as_nccl(void)
{
	char path[PATH_MAX], bus[64], again[PATH_MAX], text[64], *p;

	CHECK(realpath(of_dev("/device"), path));
	p = path + strlen(path);
	p[-1] = p[-3] = p[-4] = '0';
	snprintf(again, sizeof(again), "%.4000s/subsystem", path);
	p = realpath(again, NULL);
	CHECK(p && !strcmp(last(p), "pci"));
	free(p);
	CHECK(strlen(last(path)) == strlen("0000:00:00.0"));
	snprintf(bus, sizeof(bus), "/sys/class/pci_bus/%.7s/../../%.12s",
		 last(path), last(path));
	CHECK(realpath(bus, again) && !strcmp(again, path));
	CHECK(number(path, "class") == 0x020000);
	CHECK(number(path, "vendor") == number(path, "subsystem_vendor"));
	CHECK(number(path, "device") == number(path, "subsystem_device"));
	CHECK(link_speed(path, "max_link_speed") == 16);
	CHECK(number(path, "max_link_width") == 16);
	/* no port above it, as in many virtual machines */
	CHECK(!get(path, "../max_link_speed", text, sizeof(text)));
	CHECK((int)number(path, "numa_node") == numa_node);
	/* the parent directory is a host bridge, not a function */
	*strrchr(path, '/') = 0;
	CHECK(!strncmp(last(path), "pci", 3));
}

/* UCX: two directories above the device is one with the file "device". */
static void as_ucx(void)
{
	char path[PATH_MAX], link[PATH_MAX], again[PATH_MAX];
	unsigned int domain, bus, slot, function;
	struct stat st;

	CHECK(realpath(dev, path));
	*strrchr(path, '/') = 0;
	*strrchr(path, '/') = 0;
	snprintf(link, sizeof(link), "%.4000s/device", path);
	CHECK(!stat(link, &st) && S_ISREG(st.st_mode));
	CHECK(sscanf(last(path), "%x:%x:%x.%x", &domain, &bus, &slot,
		     &function) == 4);
	CHECK(domain <= 0xffff);
	CHECK(link_speed(path, "current_link_speed") == 16);
	CHECK(number(path, "current_link_width") == 16);
	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%04x:%02x:%02x.%d",
		 domain, bus, slot, (int)function);
	CHECK(realpath(link, again) && !strcmp(again, path));
}

static void check_config(const char *dir)
{
	unsigned char c[257];
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%.4000s/config", dir);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && read(fd, c, sizeof(c)) == 256);
	close(fd);
	CHECK((c[0] | c[1] << 8) == (int)number(dir, "vendor"));
	CHECK((c[2] | c[3] << 8) == (int)number(dir, "device"));
	CHECK((c[9] | c[10] << 8 | c[11] << 16) == (int)number(dir, "class"));
	CHECK(c[8] == number(dir, "revision"));
	CHECK(!(c[14] & 0x7f)); /* header type 0: not a bridge */
}

/*
 * hwloc: the link in the class names the PCI function, which is listed
 * together with those of the host.
 */
static void as_hwloc(void)
{
	char link[PATH_MAX] = "", path[PATH_MAX];
	const char *slot = NULL;
	struct dirent *de;
	int fd, seen = 0;
	DIR *dir;

	CHECK(readlink(dev, link, sizeof(link) - 1) > 0);
	CHECK(!strstr(link, "/virtual/"));
	slot = strstr(link, "/pci");
	CHECK(slot);
	slot = strchr(slot + 4, '/') + 1;
	dir = opendir("/sys/bus/pci/devices/");
	CHECK(dir);
	while ((de = readdir(dir))) {
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/vendor", de->d_name);
		fd = openat(dirfd(dir), path, O_RDONLY);
		CHECK(fd >= 0);
		close(fd);
		seen += !strncmp(slot, de->d_name, strlen(de->d_name));
	}
	CHECK(seen == 1);
	closedir(dir);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.12s", slot);
	check_config(path);
}

static void check_cpus(void)
{
	char online[1024], list[1024], mask[4096], *p = mask;
	int bits = 0;

	CHECK(get("/sys/devices/system/cpu", "online", online, sizeof(online)));
	CHECK(get(DEV "/device", "local_cpulist", list, sizeof(list)));
	CHECK(!strcmp(list, online));
	CHECK(get(DEV "/device", "local_cpus", mask, sizeof(mask)));
	for (; *p; p++)
		if (*p != ',' && *p != '\n')
			bits += __builtin_popcountl(
				strtoul((char[]){ *p, 0 }, NULL, 16));
	CHECK(bits == sysconf(_SC_NPROCESSORS_ONLN));
}

/* Links from the PCI function and back to it. */
static void check_links(void)
{
	char path[PATH_MAX], text[512];

	CHECK(realpath(DEV "/device/driver", path));
	CHECK(!strcmp(path, "/sys/bus/pci/drivers/urxe"));
	CHECK(!access("/sys/bus/pci/drivers/urxe/7578:ff:00.0/vendor", R_OK));
	CHECK(!access("/sys/class/pci_bus/7578:ff/device", F_OK));
	CHECK(!access(DEV "/device/infiniband/urxe0/node_guid", R_OK));
	CHECK(!access(DEV "/device/infiniband_verbs/uverbs1000/dev", R_OK));
	CHECK(!access("/sys/class/infiniband_verbs/uverbs1000/device/vendor",
		      R_OK));
	CHECK(get(DEV "/device", "uevent", text, sizeof(text)));
	CHECK(strstr(text, "\nPCI_SLOT_NAME=7578:ff:00.0\n"));
	/* other functions and buses do not exist */
	CHECK(access("/sys/bus/pci/devices/7578:ff:00.1", F_OK));
	CHECK(access("/sys/class/pci_bus/7578:fe", F_OK));
	CHECK(access("/sys/devices/pci7578:ff/7578:ff:00.1", F_OK));
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		snprintf(dev, sizeof(dev), "/sys/class/infiniband/%s", argv[1]);
		numa_node = atoi(argv[2]);
	}
	as_nccl();
	as_ucx();
	as_hwloc();
	if (argc > 2)
		return 0;
	check_cpus();
	check_links();
	return 0;
}
