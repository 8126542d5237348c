// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registration with libibverbs: the constructor of the provider, and the
 * operations that libibverbs uses to match and to open the device.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "engine/adopt/adopt.h"
#include "engine/core/log.h"
#include "engine/core/process.h"
#include "pabi/family.h"
#include "pabi/pabi.h"
#include "verbs/mr/memlock.h"

#define URXE_ABI_VERSION 1

/* The type of a device tells, since a cluster file may give it any name. */
static bool match_device(struct pabi_sysfs_dev *dev)
{
	char path[300], type[16];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%.200s/hca_type",
		 pabi_sysfs_name(dev));
	file_read(AT_FDCWD, path, type, sizeof(type));
	return !strcmp(type, "urxe\n");
}

static struct pabi_device *alloc_device(struct pabi_sysfs_dev *dev)
{
	struct pabi_device *d = calloc(1, sizeof(*d));

	(void)dev;
	if (d)
		d->core_support = PABI_CORE_OPTIONAL_MR_ACCESS;
	return d;
}

static void uninit_device(struct pabi_device *d)
{
	free(d);
}

static const struct pabi_device_ops driver = {
	.name = "urxe",
	.match_min_abi_version = URXE_ABI_VERSION,
	.match_max_abi_version = URXE_ABI_VERSION,
	.match_device = match_device,
	.alloc_context = urxe_alloc_context,
	.import_context = urxe_import_context,
	.alloc_device = alloc_device,
	.uninit_device = uninit_device,
};

/*
 * Report on stderr that the private ABI of this libibverbs is unknown, and
 * that there is no device for this reason.
 */
static void print_unknown_abi(void)
{
	if (pabi.number > family_newest())
		fprintf(stderr,
			"urxe: no device: libibverbs has private ABI %u, this "
			"urxe supports up to %u; install a newer urxe, or add "
			"a column to provider/abi/pabi/slots.h "
			"(docs/contributing.md)\n",
			pabi.number, family_newest());
	else
		fprintf(stderr, "urxe: no device: unsupported release of "
				"libibverbs; run \"urxe doctor\" for "
				"details\n");
}

/*
 * Register the driver.  Runs when libibverbs or the preload library loads
 * this file.  If the process has no libibverbs, or one of an unknown layout,
 * register nothing: an unknown layout must not be accessed.
 */
__attribute__((constructor)) static void register_driver(void)
{
	const char *log = getenv("URXE_LOG");
	int ret;

	if (log && *log && *log != '0')
		urxe_log_to_stderr();
	adopt_init();
	memlock_init();
	process_identify();
	ret = pabi_probe();
	if (ret == -EPROTO)
		print_unknown_abi();
	if (ret)
		return;
	pthread_atfork(context_before_fork, context_after_fork_parent,
		       context_after_fork_child);
	pabi.register_driver(&driver);
}
