// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receiving connection requests of other hosts.
 *
 * A listener on the wildcard address opens no device: librdmacm opens one
 * when a request names it.  But packets of other hosts reach only processes
 * that have a device open.  So after its first listen command a process opens
 * the urxe device and keeps it open until it exits.  This is needed only if
 * the wire is on (URXE_WIRE).
 *
 * ucma_note_listen() is called by the LISTEN command, with the tables locked.
 * ucma_keep_device_open() is called after each command, without the lock and
 * outside of the shim, since opening a device calls the wrapped functions
 * again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "cm/wire.h"
#include "command.h"

static _Atomic bool listens;
/* Process that opened the device; a child opens its own after fork. */
static _Atomic int opened_by;

void ucma_note_listen(void)
{
	union cm_addr wire;

	if (cm_wire_address(&wire))
		store_relaxed(&listens, true);
}

static void device_open(void)
{
	struct ibv_device **(*get)(int *);
	void (*release)(struct ibv_device **);
	struct ibv_context *(*open)(struct ibv_device *);
	struct ibv_device **all;
	int i, n;
	/* loaded already: librdmacm depends on it */
	void *verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (!verbs)
		return;
	get = (__typeof__(get))dlsym(verbs, "ibv_get_device_list");
	release = (__typeof__(release))dlsym(verbs, "ibv_free_device_list");
	open = (__typeof__(open))dlsym(verbs, "ibv_open_device");
	all = get && release && open ? get(&n) : NULL;
	for (i = 0; all && i < n; i++)
		if (!strncmp(all[i]->name, "urxe", 4) && open(all[i]))
			break;
	if (all)
		release(all);
	dlclose(verbs);
}

void ucma_keep_device_open(void)
{
	const int self = getpid();
	int pid, saved = errno;

	if (likely(!load_relaxed(&listens)))
		return;
	pid = load_relaxed(&opened_by);
	if (pid != self && cas_acq_rel(&opened_by, &pid, self))
		device_open();
	errno = saved;
}
