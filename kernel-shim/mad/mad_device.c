// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The open umad devices of a fabric (shared/umad.h): creation, reclamation,
 * agents, and delivery of MADs to them.  Writers of the table hold the device
 * lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mad_device.h"

#define DIRECTORY "mad.d"
#define FIFO_BYTES (1 << 20) /* what the kernel permits without privileges */
#define VENDOR_LIMIT 0x50 /* no class from here on, but 0x81 */
#define VENDOR_FIRST 0x30 /* classes whose MADs have an OUI */
#define VENDOR_LAST 0x4f

static void device_name(const struct urxe_dev *dev, uint32_t index,
			char name[48])
{
	snprintf(name, 48, DIRECTORY "/%u.%u", index, dev->umad[index].gen);
}

/*
 * Open a file of the fabric without the wrapper of openat(), which would take
 * a FIFO of this mode for a umad device.
 */
static int open_at(struct urxe_fabric *f, const char *name, int flags)
{
	const int fd = (int)syscall(SYS_openat, f->dirfd, name,
				    flags | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

static int device_writer(struct urxe_fabric *f, uint32_t index)
{
	char name[48];

	device_name(f->dev, index, name);
	return open_at(f, name, O_WRONLY | O_NONBLOCK);
}

/* Remove the MADs that were not read, of a device that is not open any more. */
static void device_remove_spools(struct urxe_fabric *f, const char *name)
{
	const char *base = name + strlen(DIRECTORY "/");
	char path[300];
	struct dirent *de;
	DIR *dir = dir_open(f->dirfd, DIRECTORY);

	while (dir && (de = readdir(dir))) {
		if (strncmp(de->d_name, base, strlen(base)) ||
		    de->d_name[strlen(base)] != '.')
			continue;
		snprintf(path, sizeof(path), DIRECTORY "/%s", de->d_name);
		unlinkat(f->dirfd, path, 0);
	}
	if (dir)
		closedir(dir);
}

/* Under the device lock: free the entries that no process has open. */
static void devices_sweep(struct urxe_fabric *f)
{
	char name[48];
	uint32_t i;
	int fd;

	for (i = 0; i < URXE_MAX_UMAD; i++) {
		if (!load_acquire(&f->dev->umad[i].used))
			continue;
		fd = device_writer(f, i);
		if (fd >= 0)
			close(fd);
		if (fd != -ENXIO && fd != -ENOENT)
			continue;
		device_name(f->dev, i, name);
		unlinkat(f->dirfd, name, 0);
		device_remove_spools(f, name);
		store_release(&f->dev->umad[i].used, 0);
	}
}

/* Make the FIFO of an entry: a descriptor, or -errno. */
static int device_make_fifo(struct urxe_fabric *f, uint32_t index)
{
	struct urxe_umad *u = &f->dev->umad[index];
	struct stat st;
	char name[48];
	int fd;

	device_name(f->dev, index, name);
	if (mkdirat(f->dirfd, DIRECTORY, 0700) && errno != EEXIST)
		return -errno;
	unlinkat(f->dirfd, name, 0);
	if (mkfifoat(f->dirfd, name, 0600))
		return -errno;
	fd = open_at(f, name, O_RDWR);
	if (fd >= 0 && (fchmod(fd, UMAD_FIFO_MODE & 07777) || fstat(fd, &st))) {
		close(fd);
		fd = -errno;
	}
	if (fd < 0) {
		unlinkat(f->dirfd, name, 0);
		return fd;
	}
	u->ino = st.st_ino;
	/* more records; if that is not permitted, as many as fit */
	fcntl(fd, F_SETPIPE_SZ, FIFO_BYTES);
	return fd;
}

int umad_device_open(struct urxe_fabric *f, uint32_t k)
{
	struct urxe_umad *u;
	uint32_t i;
	int fd = fabric_lock(f);

	if (fd)
		return fd;
	devices_sweep(f);
	fd = -ENOMEM;
	for (i = 0; i < URXE_MAX_UMAD; i++)
		if (!load_relaxed(&f->dev->umad[i].used))
			break;
	if (i < URXE_MAX_UMAD) {
		u = &f->dev->umad[i];
		u->gen++;
		u->device = k;
		u->use_pkey = 0;
		memset(u->agent, 0, sizeof(u->agent));
		memset(u->pending, 0, sizeof(u->pending));
		fd = device_make_fifo(f, i);
		if (fd >= 0)
			store_release(&u->used, 1);
	}
	fabric_unlock(f);
	return fd;
}

int umad_device_find(const struct urxe_dev *dev, uint64_t ino)
{
	int i;

	for (i = 0; i < URXE_MAX_UMAD; i++)
		if (load_acquire(&dev->umad[i].used) && dev->umad[i].ino == ino)
			return i;
	return -1;
}

/* ------------------------------------------------------- delivery */

static void spool_name(const struct urxe_dev *dev, uint32_t index,
		       uint32_t number, char name[64])
{
	char device[48];

	device_name(dev, index, device);
	snprintf(name, 64, "%s.%u", device, number);
}

/* Store the whole MAD in a file; returns its number, or -errno. */
static int spool_put(struct urxe_fabric *f, uint32_t index, const uint8_t *mad,
		     size_t len, uint32_t *number)
{
	char name[64];
	int fd, ret = 0;

	*number = fetch_add_relaxed(&f->dev->umad[index].spools, 1) + 1;
	spool_name(f->dev, index, *number, name);
	fd = open_at(f, name, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return fd;
	if (write(fd, mad, len) != (ssize_t)len) {
		unlinkat(f->dirfd, name, 0);
		ret = -ENOSPC;
	}
	close(fd);
	return ret;
}

static int record_write(int fd, const struct umad_record *rec)
{
	return write(fd, rec, sizeof(*rec)) == sizeof(*rec) ? 0 : -EAGAIN;
}

int umad_device_again(struct urxe_fabric *f, uint32_t index,
		      const struct umad_record *rec)
{
	int fd = device_writer(f, index), ret;

	if (fd < 0)
		return fd;
	ret = record_write(fd, rec);
	close(fd);
	return ret;
}

int umad_device_put(struct urxe_fabric *f, uint32_t index,
		    struct umad_record *rec, const uint8_t *mad, size_t len)
{
	uint32_t number = 0;
	char name[64];
	int fd, ret;

	rec->hdr.length = (uint32_t)len;
	memset(rec->mad, 0, sizeof(rec->mad));
	memcpy(rec->mad, mad, len < sizeof(rec->mad) ? len : sizeof(rec->mad));
	fd = device_writer(f, index);
	if (fd < 0)
		return fd == -ENOENT ? -ENXIO : fd;
	ret = len > sizeof(rec->mad) ? spool_put(f, index, mad, len, &number) :
				       0;
	memset(UMAD_SPOOLED(rec), 0, sizeof(rec->hdr.reserved));
	memcpy(UMAD_SPOOLED(rec), &number, sizeof(number));
	if (!ret)
		ret = record_write(fd, rec);
	if (ret && number) {
		spool_name(f->dev, index, number, name);
		unlinkat(f->dirfd, name, 0);
	}
	close(fd);
	return ret;
}

int umad_device_get(struct urxe_fabric *f, uint32_t index,
		    const struct umad_record *rec, uint8_t *mad, size_t len)
{
	uint32_t number;
	char name[64];
	ssize_t n;
	int fd;

	memcpy(&number, UMAD_SPOOLED(rec), sizeof(number));
	spool_name(f->dev, index, number, name);
	fd = open_at(f, name, O_RDONLY);
	if (fd < 0)
		return fd;
	n = read(fd, mad, len);
	close(fd);
	unlinkat(f->dirfd, name, 0);
	return n == (ssize_t)len ? 0 : -EIO;
}

/* ------------------------------------------------------- agents */

static bool class_is_vendor(uint32_t mgmt_class)
{
	return mgmt_class >= VENDOR_FIRST && mgmt_class <= VENDOR_LAST;
}

static bool agent_takes(const struct urxe_mad_agent *a, uint32_t qpn,
			const uint8_t *mad)
{
	const uint32_t method = (uint32_t)attr_get(mad, ATTR_MAD_method);
	const uint32_t mgmt_class =
		(uint32_t)attr_get(mad, ATTR_MAD_mgmt_class);

	return load_acquire(&a->used) && a->qpn == qpn && a->mgmt_class &&
	       a->mgmt_class == mgmt_class &&
	       a->class_version == attr_get(mad, ATTR_MAD_class_version) &&
	       a->method_mask[method / 64] >> method % 64 & 1 &&
	       (!class_is_vendor(mgmt_class) ||
		attr_get(mad, ATTR_MAD_oui) == ((uint64_t)a->oui[0] << 16 |
						a->oui[1] << 8 | a->oui[2]));
}

bool umad_find_agent(const struct urxe_dev *dev, uint32_t k, uint32_t qpn,
		     const uint8_t *mad, uint32_t *index, uint32_t *agent)
{
	for (*index = 0; *index < URXE_MAX_UMAD; ++*index) {
		if (!load_acquire(&dev->umad[*index].used) ||
		    dev->umad[*index].device != k)
			continue;
		for (*agent = 0; *agent < URXE_UMAD_AGENTS; ++*agent)
			if (agent_takes(&dev->umad[*index].agent[*agent], qpn,
					mad))
				return true;
	}
	return false;
}

static bool class_has_rmpp(uint32_t mgmt_class)
{
	return mgmt_class == CLASS_SA || mgmt_class == 0x10 ||
	       mgmt_class == 0x12 || class_is_vendor(mgmt_class);
}

/* Is that a registration that the kernel refuses, whatever others exist? */
static bool agent_is_invalid(const struct urxe_mad_agent *a)
{
	static const uint8_t none[3];
	const bool subnet = a->mgmt_class == CLASS_SUBN ||
			    a->mgmt_class == CLASS_SUBN_DIRECTED;

	if (!a->mgmt_class)
		return false;
	return (a->mgmt_class >= VENDOR_LIMIT &&
		a->mgmt_class != CLASS_SUBN_DIRECTED) ||
	       subnet != !a->qpn ||
	       (a->rmpp_version && !class_has_rmpp(a->mgmt_class)) ||
	       (class_is_vendor(a->mgmt_class) &&
		!memcmp(a->oui, none, sizeof(none)));
}

/* Have two agents registered for one method of a class? */
static bool agents_conflict(const struct urxe_mad_agent *a,
			    const struct urxe_mad_agent *b)
{
	return load_acquire(&a->used) && a->mgmt_class &&
	       a->mgmt_class == b->mgmt_class && a->qpn == b->qpn &&
	       a->class_version == b->class_version &&
	       (a->method_mask[0] & b->method_mask[0] ||
		a->method_mask[1] & b->method_mask[1]) &&
	       (!class_is_vendor(a->mgmt_class) ||
		!memcmp(a->oui, b->oui, sizeof(a->oui)));
}

/* Under the device lock. */
static bool agent_is_refused(const struct urxe_dev *dev, uint32_t k,
			     const struct urxe_mad_agent *agent)
{
	uint32_t i, j;

	for (i = 0; i < URXE_MAX_UMAD; i++) {
		if (!load_relaxed(&dev->umad[i].used) ||
		    dev->umad[i].device != k)
			continue;
		for (j = 0; j < URXE_UMAD_AGENTS; j++)
			if (agents_conflict(&dev->umad[i].agent[j], agent))
				return true;
	}
	return false;
}

int umad_register(struct urxe_fabric *f, uint32_t index,
		  const struct urxe_mad_agent *agent)
{
	struct urxe_umad *u = &f->dev->umad[index];
	uint32_t id;
	int ret = agent_is_invalid(agent) ? -EINVAL : fabric_lock(f);

	if (ret)
		return ret;
	devices_sweep(f);
	for (id = 0; id < URXE_UMAD_AGENTS; id++)
		if (!load_relaxed(&u->agent[id].used))
			break;
	if (id == URXE_UMAD_AGENTS) {
		ret = -ENOMEM;
	} else if (agent_is_refused(f->dev, u->device, agent)) {
		ret = -EINVAL;
	} else {
		u->agent[id] = *agent;
		store_release(&u->agent[id].used, 1);
		ret = (int)id;
	}
	fabric_unlock(f);
	return ret;
}

int umad_unregister(struct urxe_fabric *f, uint32_t index, uint32_t agent)
{
	uint64_t tid;
	uint32_t i;

	if (agent >= URXE_UMAD_AGENTS ||
	    !exchange_acq_rel(&f->dev->umad[index].agent[agent].used, 0))
		return -EINVAL;
	/* its requests end without a report */
	for (i = 0; i < URXE_UMAD_PENDING; i++) {
		tid = load_acquire(&f->dev->umad[index].pending[i]);
		if (tid >> 32 == umad_tid(f->dev, index, agent))
			umad_pending_end(f->dev, index, tid);
	}
	return 0;
}

/* Replace a TID in one of the slots. */
static bool pending_swap(struct urxe_dev *dev, uint32_t index, uint64_t from,
			 uint64_t to)
{
	_Atomic uint64_t *slot = dev->umad[index].pending;
	uint64_t was;
	uint32_t i;

	for (i = 0; i < URXE_UMAD_PENDING; i++) {
		was = from;
		if (load_acquire(&slot[i]) == from &&
		    cas_seq_cst(&slot[i], &was, to))
			return true;
	}
	return false;
}

bool umad_pending_add(struct urxe_dev *dev, uint32_t index, uint64_t tid)
{
	return pending_swap(dev, index, 0, tid);
}

bool umad_pending_has(const struct urxe_dev *dev, uint32_t index, uint64_t tid)
{
	uint32_t i;

	for (i = 0; i < URXE_UMAD_PENDING; i++)
		if (load_acquire(&dev->umad[index].pending[i]) == tid)
			return true;
	return false;
}

bool umad_pending_end(struct urxe_dev *dev, uint32_t index, uint64_t tid)
{
	return tid && pending_swap(dev, index, tid, 0);
}

bool umad_of_tid(const struct urxe_dev *dev, uint32_t tid, uint32_t *index,
		 uint32_t *agent)
{
	*index = tid >> 8 & 0xff;
	*agent = tid & 0xff;
	return *index < URXE_MAX_UMAD && *agent < URXE_UMAD_AGENTS &&
	       load_acquire(&dev->umad[*index].used) &&
	       load_acquire(&dev->umad[*index].agent[*agent].used) &&
	       umad_tid(dev, *index, *agent) == tid;
}
