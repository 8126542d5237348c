// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * urxe doctor: netlink, libibverbs, the libraries of urxe, other preload
 * libraries, host devices, and the values of URXE_ADVERSARY and URXE_FAULTS.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/pabi/family.h"
#include "chaos/adversary.h"
#include "chaos/fault.h"
#include "doctor.h"
#include "common/commands.h"

#define PROVIDER "liburxe-rdmav34.so"

static bool has_netlink(int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	return fd >= 0 && !close(fd);
}

void check_netlink(void)
{
	if (!has_netlink(NETLINK_USERSOCK))
		report(WARN,
		       "libibverbs finds the device through sysfs; rdma(8) does not work",
		       "use a sandbox that permits NETLINK_USERSOCK",
		       "netlink: cannot create a NETLINK_USERSOCK socket");
	else if (!has_netlink(NETLINK_ROUTE))
		report(WARN,
		       "the GID table lacks the addresses of this machine",
		       "use a sandbox that permits NETLINK_ROUTE",
		       "netlink: cannot create a NETLINK_ROUTE socket");
	else
		ok("netlink: works");
}

static void *verbs; /* kept open: the provider registers with it */

void check_libibverbs(void)
{
	char path[PATH_MAX];
	struct link_map *map;
	unsigned int number;

	verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!verbs) {
		report(FAIL, "verbs programs cannot start",
		       "apt install libibverbs1, or the package rdma-core of this system",
		       "libibverbs: %s", dlerror());
		return;
	}
	if (dlinfo(verbs, RTLD_DI_LINKMAP, &map) ||
	    !realpath(map->l_name, path))
		snprintf(path, sizeof(path), "libibverbs.so.1");
	number = family_number(verbs);
	if (family_find(verbs))
		ok("libibverbs: %s, private ABI %u", path, number);
	else if (number > family_newest())
		report(FAIL, "no program finds the device",
		       "install a newer urxe, or add a column to provider/abi/pabi/slots.h (docs/contributing.md)",
		       "libibverbs: %s has private ABI %u; this urxe supports up to %u",
		       path, number, family_newest());
	else
		report(FAIL, "no program finds the device",
		       "install rdma-core 36 or newer",
		       "libibverbs: %s has no private ABI that this urxe supports",
		       path);
}

void check_libraries(void)
{
	char preload[PATH_MAX], dir[PATH_MAX], path[2 * PATH_MAX];

	if (find_libraries(preload, sizeof(preload), dir, sizeof(dir))) {
		report(FAIL, "no device",
		       "meson install, or run urxe from its build tree",
		       "liburxe-kshim.so: found neither relative to this program nor in " URXE_LIBDIR);
		return;
	}
	ok("preload library: %s", preload);
	if (!*dir) {
		strcpy(dir, preload);
		*strrchr(dir, '/') = 0;
	}
	snprintf(path, sizeof(path), "%s/" PROVIDER, dir);
	if (access(path, R_OK))
		report(FAIL, "libibverbs lists no device",
		       "meson install, or build all targets",
		       "provider: %s: %s", path, strerror(errno));
	else if (verbs && !dlopen(path, RTLD_NOW | RTLD_LOCAL))
		report(FAIL, "libibverbs lists no device", NULL, "provider: %s",
		       dlerror());
	else
		ok("provider: %s", path);
}

/* Write to buf the entries of a preload list that are not liburxe-kshim. */
static void list_foreign(const char *list, char *buf, size_t len)
{
	size_t n, used = 0;

	*buf = 0;
	for (; *list; list += n) {
		list += strspn(list, ": \t\n");
		n = strcspn(list, ": \t\n");
		if (!n || memmem(list, n, "liburxe-kshim", 13))
			continue;
		used += (size_t)snprintf(buf + used, len - used, "%s%.*s",
					 used ? " " : "", (int)n, list);
		if (used >= len)
			return;
	}
}

void check_other_preload(void)
{
	const char *env = getenv("LD_PRELOAD");
	const char *from = "/etc/ld.so.preload";
	char file[1024] = "", names[1024];
	ssize_t n;
	int fd;

	fd = open(from, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, file, sizeof(file) - 1);
		file[n > 0 ? n : 0] = 0;
		close(fd);
	}
	list_foreign(file, names, sizeof(names));
	if (!*names) {
		from = "LD_PRELOAD";
		list_foreign(env ? env : "", names, sizeof(names));
	}
	if (*names)
		report(WARN,
		       "if this library wraps open, stat, socket or ioctl and does not forward calls, the device is not found",
		       "run without this library", "%s: %s", from, names);
	else
		ok("no other preload library");
}

void check_host_devices(void)
{
	char names[256] = "";
	struct dirent *de;
	size_t used = 0;
	DIR *dir;
	int fd;

	/* a raw system call: the preload library redirects this path */
	fd = (int)syscall(SYS_openat, AT_FDCWD, "/sys/class/infiniband",
			  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	while (dir && (de = readdir(dir)) && used < sizeof(names))
		if (de->d_name[0] != '.')
			used += (size_t)snprintf(names + used,
						 sizeof(names) - used, " %s",
						 de->d_name);
	if (dir)
		closedir(dir);
	if (*names)
		ok("devices of the host:%s; hidden by urxe run, shown with --with-host-devices",
		   names);
	else
		ok("devices of the host: none");
}

void check_adversary(void)
{
	const char *value = getenv("URXE_ADVERSARY");
	char why[ADVERSARY_WHY];
	struct adversary a;

	if (!value || !*value)
		ok("adversary: none configured");
	else if (adversary_parse(&a, value, "", why, sizeof(why)))
		report(WARN,
		       "the device delays, reorders and loses what it may, and is slower",
		       "unset URXE_ADVERSARY, unless this is intended",
		       "adversary: URXE_ADVERSARY is %s", value);
	else
		report(FAIL, "no program can open the device",
		       "unset URXE_ADVERSARY, or see urxe run --adversary=help",
		       "adversary: URXE_ADVERSARY: %s", why);
}

void check_faults(void)
{
	const char *value = getenv("URXE_FAULTS");
	static struct faults f;
	char why[400];

	if (!value || !*value)
		ok("faults: none configured");
	else if (faults_parse(&f, value, why, sizeof(why)))
		report(WARN, "faults are injected into programs",
		       "unset URXE_FAULTS, unless this is intended",
		       "faults: URXE_FAULTS is %s", value);
	else
		report(FAIL, "no program can open the device",
		       "unset URXE_FAULTS, or see urxe run --fault=help",
		       "faults: URXE_FAULTS: %s", why);
}
