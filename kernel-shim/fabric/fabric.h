/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fabric: the state that a kernel driver would keep, in shared memory.
 * These are the contexts, the tables of the device, and their lifetimes.
 * shared/layout.h defines the structures.
 *
 * The preload library, the provider, the CM and the tools call these
 * functions.  They return 0 or a negative errno unless stated otherwise.
 * Outputs are written on success only.  One of them is on the data path:
 * mcast_members(), for a multicast datagram.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/layout.h"

/*
 * Device k of a host has the character device uverbs(1000 + k), minor number
 * URXE_DEV_MINOR + k, and the netlink DEV_INDEX URXE_DEV_INDEX + k.  Without a
 * cluster file its name is urxek.
 */
#define URXE_DEVICE_NAME "urxe"
#define URXE_UVERBS_NAME "uverbs"
#define URXE_DEV_INDEX 1000 /* also the number of the first uverbs */
#define URXE_DEV_MAJOR 231
#define URXE_DEV_MINOR 60000
/* The character device rdma_cm. */
#define URXE_CM_MAJOR 10
#define URXE_CM_MINOR 60001
#define URXE_UMAD_MINOR 50 /* + number of the device; issm: 8 more */
#define URXE_PCI_BUS 0x7578ffu /* domain and bus, if none is given */

/*
 * This process's id in the fabric.  It is in a page that is zero in a forked
 * child (MADV_WIPEONFORK), which therefore takes an id of its own.
 */
struct process_self {
	_Atomic uint32_t id; /* 0: none yet */
	void *lock; /* the mapping that keeps the lock on procs */
	/* this process's row, mapped until the process ends, or NULL */
	struct urxe_process *_Atomic published_row;
	_Atomic bool publishing; /* a thread is in process_publish_liveness() */
	/* a thread is socket owner of the wire, or is becoming it */
	_Atomic bool is_socket_owner;
	uint64_t ino; /* inode of procs */
	struct process_self *next;
};

/* One process's mapping of a fabric. */
struct urxe_fabric {
	struct process_self *self;
	/* of procs; liveness checks work even if no descriptor is free */
	int procs_fd;
	int dirfd;
	char dir[256];
	uint64_t ino; /* inode of the device segment */
	struct urxe_dev *dev;
	/*
	 * the host of this process, and its devices, [first, first + hcas), as
	 * they were when it was mapped
	 */
	uint32_t host, first, hcas;
	uint64_t dm_bytes; /* dev->dm_bytes when it was mapped */
	char *dm; /* the whole heap, 2 MiB aligned; NULL until mapped */
	int dm_fd;
};

/* Device k < f->hcas of the host of this process. */
static inline struct urxe_hca *fabric_hca(const struct urxe_fabric *f,
					  uint32_t k)
{
	return hca_at(f->dev, f->first + k);
}

/* fabric.c ------------------------------------------------------------- */

/*
 * The fabric's directory according to the environment: URXE_FABRIC (default
 * "default") in the directory of place_choose().  -ENAMETOOLONG; -EINVAL: the
 * name contains '/' or starts with '.'; or an error of place_choose().
 */
int fabric_dir(char *buf, size_t len);

/*
 * Map the fabric at dir; with create, make it if it does not exist, and
 * replace it if it is broken or an unused one of another version.  -ENOENT;
 * -EINVAL: with create, URXE_CLUSTER, URXE_DEVICES or URXE_PROFILE do not
 * describe its devices; or it has no host URXE_HOST;
 * -EPERM: the directory belongs to another user, is accessible by others, or
 * is a symbolic link; -EPROTO: another layout version, in use; -EAGAIN,
 * -ESTALE: it was being replaced all the time; or an error of the system.
 */
int fabric_open(const char *dir, bool create, struct urxe_fabric **out);
void fabric_close(struct urxe_fabric *f);
/*
 * hca.c: the number of the device with that name, of this host, or with the
 * name of its host, as in alice/mlx5_0; or -1.
 */
int hca_find(const struct urxe_fabric *f, const char *name);
/*
 * The end of a link with that name: a device as for hca_find(), also with /1
 * after it, a port of a switch, as in leaf0/3, or a switch for all its links.
 * False: there is none.
 */
bool link_end_find(const struct urxe_fabric *f, const char *name,
		   struct urxe_link_end *end);
/* Name of a node, as "host/device", "device" or "switch". */
void node_name(const struct urxe_dev *dev, uint32_t node, char name[64]);
/* Has that variable of the environment a value? */
bool env_is_set(const char *name);
/* The value of URXE_DEVICES, or 0 if it is unset.  -EINVAL: invalid. */
int hcas_by_env(uint32_t *n);
/* Set *external to whether URXE_SM is "external".  -EINVAL: invalid. */
int sm_by_env(uint32_t *external);
/*
 * Set *infiniband to the link layer of device k by URXE_LINK_LAYER: 1 or 0.
 * -EINVAL: invalid.
 */
int link_layer_by_env(uint32_t *infiniband, uint32_t k);
/* "InfiniBand" or "Ethernet", as sysfs shows it. */
const char *hca_link_layer(const struct urxe_hca *hca);
/* The value of URXE_DM_SIZE, or 0 if it is unset.  -EINVAL: invalid size. */
int dm_size_by_env(uint64_t *bytes);
/*
 * At the end of the process: remove the fabric if no other process uses it
 * (stale.c).  Threads that still run may continue to use f.
 */
void fabric_leave(struct urxe_fabric *f);
/*
 * Remove the fabric at dir if it is not in use.  An empty directory counts as
 * a fabric.  -ENOENT; -EINVAL: dir is not a fabric; -EBUSY: it is in use;
 * -EAGAIN, -ESTALE: it is being made or removed; -ENOTEMPTY: only_empty is
 * set and the port was taken down, a state that must be kept for later users.
 */
int fabric_remove_unused(const char *dir, bool only_empty);
/*
 * Remove all other unused fabrics in the parent directory of dir.  Returns
 * the number of fabrics removed, and calls removed() for each unless it is
 * NULL.
 */
int fabric_sweep(const char *dir, bool only_empty,
		 void (*removed)(const char *name));
/*
 * Make file `name` of the fabric.  init() fills a file without that name,
 * which is then linked.  Other processes see the complete file or none.  If
 * another process has linked one first, that one is kept and 0 is returned.
 */
int fabric_make_file(struct urxe_fabric *f, const char *name,
		     int (*init)(struct urxe_fabric *f, int fd));

/*
 * Take the device lock.  Errors are those of robust_lock().  If the holder
 * died, the DM bitmap is rebuilt, and 0 is returned.
 */
int fabric_lock(struct urxe_fabric *f);
void fabric_unlock(struct urxe_fabric *f);

/*
 * Text of this thread's last fabric_fail(); "" if there was none since it was
 * cleared.  fabric_open() clears it.
 */
const char *fabric_why(void);
void fabric_why_clear(void);
/* fabric_why(), or strerror(err) if that is empty; with the EMFILE limit. */
const char *fabric_reason(int err);
/* Store the text for fabric_why() and return -err. */
int fabric_fail(int err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* process.c ------------------------------------------------------------ */

/*
 * Assign an id to this process (struct urxe_process in layout.h) and return
 * it.  Call process_id() instead, which does so on first use.  An id belongs
 * to an address space, so a forked child has another one.  0: no id, because
 * descriptors, memory or process numbers are exhausted; fabric_why() has the
 * reason.
 */
uint32_t process_id_take(struct urxe_fabric *f);
/* True if process id is certainly dead.  False if that is unknown. */
bool process_is_dead(struct urxe_fabric *f, uint32_t id);
/*
 * True if thread tid (0: the first one) of process id is stopped by a signal
 * or a debugger.  False if that is unknown: it is in another PID namespace.
 */
bool process_thread_is_stopped(const struct urxe_fabric *f, uint32_t id, uint32_t tid);
/*
 * Lock the robust mutexes of this process's row, by which other processes
 * detect its death at once (process_seems_alive).  They stay locked while the
 * calling thread lives.  Another call replaces a thread that has ended, and
 * does nothing otherwise.  If robust mutexes do not work, or the row cannot
 * be mapped, others use process_is_dead().  -ENOMEM: the process has no id,
 * and would count as dead.
 */
int process_publish_liveness(struct urxe_fabric *f);
/*
 * Return in words[] two futex words that change when process id dies: the
 * TIDs of its robust mutexes.  The call sets FUTEX_WAITERS in them, so that
 * the kernel wakes one waiter of each when it clears the TID.  False: the
 * process is dead, or no thread of it holds the mutexes
 * (process_publish_liveness).
 */
bool process_watch(struct urxe_fabric *f, uint32_t id,
		   struct futex_word words[2]);
/*
 * To be called after a wait for words of process_watch(): for each word
 * whose process died, wake the other waiters.  The kernel wakes one only.
 */
void process_wake_others(const struct futex_word *words, uint32_t n);
/* Store the network namespace that this process is in. */
void process_set_netns(struct urxe_fabric *f, uint64_t netns);
/* Is a process of that network namespace alive? */
bool process_in_netns(struct urxe_fabric *f, uint64_t netns);
/* True if process id is alive and has that PID in that PID namespace. */
bool process_has_pid(struct urxe_fabric *f, uint32_t id, int32_t pid,
		     uint64_t pidns);
/* process_is_dead() for URXE_PROCESS_BRIEF(id). */
bool process_brief_is_dead(struct urxe_fabric *f, uint32_t brief);
/*
 * For fabric_open() and fabric_close(): make f->self; replace it by the one
 * that an earlier mapping of the same fabric left; release or keep it.
 */
int process_self_make(struct urxe_fabric *f);
void process_self_recall(struct urxe_fabric *f);
void process_self_drop(struct urxe_fabric *f);
/* Make the file procs if it does not exist, and return its inode. */
int process_file_make(struct urxe_fabric *f, uint64_t *ino);

static inline uint32_t process_id(struct urxe_fabric *f)
{
	uint32_t id = load_relaxed(&f->self->id);

	return __builtin_expect(id != 0, 1) ? id : process_id_take(f);
}

/* call.c --------------------------------------------------------------- */

/*
 * Enter a call of this thread that may block in the call table
 * (shared/call.h).  Returns its slot, or NULL if none is free.  errno is
 * preserved.
 */
struct urxe_call *call_begin(struct urxe_fabric *f, enum urxe_call_kind kind,
			     uint32_t context, uint64_t object,
			     uint32_t events);
/* Remove the entry, unless NULL.  Also a pthread_cleanup_push() handler. */
void call_end(void *call);

/* robust.c ------------------------------------------------------------- */

/*
 * Take a lock (shared/robust.h).  Returns 0, or 1 if the previous holder died
 * with the lock held.  -ETIMEDOUT: a live process holds it; fabric_why()
 * names that process, and the lock as `what`.  -ENOMEM: this process has no
 * id.
 */
int robust_lock(struct urxe_fabric *f, struct robust_lock *l, const char *what);
/* The same with a timeout in ns instead of ROBUST_TIMEOUT_NS. */
int robust_lock_within(struct urxe_fabric *f, struct robust_lock *l,
		       const char *what, uint64_t limit);
/* The same without waiting.  -EBUSY: a live process holds it. */
int robust_try(struct urxe_fabric *f, struct robust_lock *l);
void robust_unlock(struct urxe_fabric *f, struct robust_lock *l);

/* place.c -------------------------------------------------------------- */

/*
 * The parent directory of the fabrics, according to the environment.
 * -EINVAL: URXE_DIR is not absolute; -ENAMETOOLONG; or an error of the
 * system.
 */
int place_choose(char *buf, size_t len);
/*
 * True if the default directory exists but is not used: it belongs to another
 * user, is writable by all users, or is no directory.  by describes it.
 * False if URXE_DIR is set.
 */
bool place_is_taken(char *by, size_t len);

/* context.c ------------------------------------------------------------ */

/*
 * Open device k: reap some dead contexts, or all of them if memory or slots
 * are short, claim a context slot, create its arena and lock it.  Returns the
 * arena's descriptor (O_RDWR | O_CLOEXEC).  The context is alive until the
 * last copy of the descriptor is closed and the last mapping made from it is
 * unmapped.  -ENOSPC: all slots are live; -ENOMEM: no memory for the arena;
 * or another error of the system.
 */
int fabric_context_open(struct urxe_fabric *f, uint32_t k);

/* Is fd an arena?  st is the result of libc's fstat().  errno is kept. */
bool fabric_is_arena(int fd, const struct stat *st);
/* The same: the number of its device, or -1. */
int fabric_arena_device(int fd, const struct stat *st);

/*
 * True if context (slot, gen) is alive: a descriptor or mapping of it exists.
 * True as well if that is unknown.
 */
bool fabric_context_alive(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/* Reap all dead contexts.  Returns their number.  errno is preserved. */
int fabric_reap(struct urxe_fabric *f);
/*
 * Increment dev->deaths and wake the service threads.  Owners then recover
 * receives that a dead requester took or a live one returned (rq_recover.c).
 */
void fabric_request_recovery(struct urxe_fabric *f);
/* Reap one context.  True: it was dead and is free now. */
bool fabric_reap_one(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/*
 * Increment or decrement the number of objects of a context.  -ENOMEM: the
 * limit of the context or the device is reached.  For limits of the device,
 * dead contexts are reaped first.
 */
int fabric_obj_get(struct urxe_fabric *f, uint32_t slot, enum urxe_obj o);
void fabric_obj_put(struct urxe_fabric *f, uint32_t slot, enum urxe_obj o);
uint32_t fabric_obj_limit(enum urxe_obj o);
const char *fabric_obj_name(enum urxe_obj o);

/* arena.c -------------------------------------------------------------- */

/* Inode of this process's PID namespace; 0: unknown. */
uint64_t fabric_pidns(void);
/* Inode of this process's network namespace; 0: unknown. */
uint64_t fabric_netns(void);

/* Map the arena behind fd.  -EPROTO: its size or header is wrong. */
int arena_map(int fd, struct urxe_arena **out);
void arena_unmap(struct urxe_arena *a);
/*
 * Map another context's arena.  *fd_out is a descriptor of it, for
 * arena_fd_alive().  -ENXIO: that context does not exist any more.
 */
int arena_map_peer(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		   struct urxe_arena **out, int *fd_out);
/* True if the lock of the arena behind fd is held, or if that is unknown. */
bool arena_fd_alive(int fd);
/* Directory of the fabric that an arena's descriptor belongs to. */
int arena_fabric_dir(int fd, char *buf, size_t len);

/* Set a clear bit in one of the arena's maps; its index, or -ENOMEM. */
int arena_index_take(uint64_t *map, uint32_t bits);
/* Take the lock of the arena's key table.  Errors of robust_lock(). */
int arena_lock(struct urxe_fabric *f, struct urxe_arena *a);
void arena_unlock(struct urxe_fabric *f, struct urxe_arena *a);

/*
 * Reserve memory for a range of the file, so that accesses raise no SIGBUS.
 * -ENOMEM
 */
int arena_reserve(int fd, uint64_t offset, uint64_t len);

/*
 * Allocate zeroed and reserved memory in pages, for rings.  Returns the
 * offset, or 0 if there is none.
 */
uint64_t arena_alloc(struct urxe_arena *a, int fd, uint64_t len);
void arena_free(struct urxe_arena *a, int fd, uint64_t offset, uint64_t len);
/* The same for rings of any size.  Those of up to half a page share pages. */
uint64_t arena_alloc_ring(struct urxe_arena *a, int fd, uint64_t len);
void arena_free_ring(struct urxe_arena *a, int fd, uint64_t offset,
		     uint64_t len);
/*
 * Address of [offset, offset + len).  NULL: that is not within the heap or
 * the area of small rings, or offset is not aligned to URXE_LINE.
 */
void *arena_ptr(struct urxe_arena *a, uint64_t offset, uint64_t len);

/* dm_heap.c ------------------------------------------------------------ */

/* Map the heap at f->dm, unless it is mapped already. */
int dm_heap_map(struct urxe_fabric *f);
/*
 * Allocate device memory for context (ctx, ctx_gen): zeroed, reserved, page
 * aligned and aligned to 1 << log_align.  Returns the DM slot.  -ENOMEM;
 * -EINVAL: length is 0 or log_align above 63; or another error.
 */
int dm_heap_alloc(struct urxe_fabric *f, uint32_t ctx, uint32_t ctx_gen,
		  uint64_t length, uint32_t log_align);
/*
 * Count an MR on the allocation `made` (URXE_DM_MADE) of a slot, which then
 * cannot be freed.  -ENOENT: it was freed.  dm_heap_put() drops the MR, and
 * frees the slot if it is the MR's own (URXE_DM_OF_MR).
 */
int dm_heap_hold(struct urxe_fabric *f, uint32_t slot, uint32_t made);
void dm_heap_put(struct urxe_fabric *f, uint32_t slot);
/* Free an allocation.  -EBUSY: it has an MR; -ENOENT: it was freed. */
int dm_heap_free(struct urxe_fabric *f, uint32_t slot, uint32_t made);
const char *dm_kind_name(uint32_t kind);

/* dm_export.c ---------------------------------------------------------- */

/* A descriptor that names the allocation `made` of the slot.  -errno */
int dm_export(struct urxe_fabric *f, uint32_t slot, uint32_t made);
/*
 * Make a slot for the device memory that fd names, for an MR of context ctx.
 * dm_heap_put() frees it.  Returns the slot.  -ENOTTY: fd names no device
 * memory; -EINVAL: of another fabric; -ENOENT: it was freed; or an error of
 * fabric_obj_get() or fabric_lock().
 */
int dm_import(struct urxe_fabric *f, int fd, uint32_t ctx, uint32_t ctx_gen);

/* qpn.c ---------------------------------------------------------------- */

/*
 * Allocate a QPN for context (slot, gen) and enter it in the directory.
 * -ENOMEM: none is free; or an error of fabric_lock().
 */
int qpn_alloc(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
	      uint32_t *qpn);
void qpn_free(struct urxe_fabric *f, uint32_t qpn);
/* The context that owns qpn.  False: there is no such QP. */
bool qpn_lookup(const struct urxe_dev *dev, uint32_t qpn, uint32_t *slot,
		uint32_t *gen);

/* fifo.c --------------------------------------------------------------- */

/*
 * Create an event FIFO of a context.  Returns a blocking descriptor
 * (O_RDWR | O_CLOEXEC), to read from and to keep the FIFO alive.  *number is
 * for fifo_open_writer().
 */
int fifo_create(struct urxe_fabric *f, struct urxe_arena *a, uint32_t *number);
/* Number of the FIFO behind a descriptor; -EINVAL if it is not one. */
int fifo_number(int fd, uint32_t *number);
/*
 * A descriptor to write to (O_RDWR | O_NONBLOCK | O_CLOEXEC).  -ENXIO: it has
 * no reader.
 */
int fifo_open_writer(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		     uint32_t number);
/*
 * Write an async event to FIFO number fifo - 1.  -EAGAIN: it is full; -ENXIO:
 * it has no reader, or fifo is 0.  errno is preserved.
 */
int fifo_send_async(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		    uint32_t fifo, uint64_t element, uint32_t type);
/* Remove the FIFOs of a context.  -errno: they could not be listed. */
int fifo_remove_all(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/* file.c --------------------------------------------------------------- */

/* Read at most room - 1 bytes as a string; "" if the file cannot be read. */
void file_read(int at, const char *path, char *text, size_t room);
/* Path of the file behind a descriptor, from /proc. */
int file_path(int fd, char *path, size_t room);
/*
 * Check RLIMIT_FSIZE before ftruncate(2), which would raise SIGXFSZ.  -EFBIG:
 * the limit is below size.
 */
int sparse_allowed(uint64_t size);
/*
 * Map a sparse file for reading and writing.  If `at` is not NULL it replaces
 * the mapping there.  After mlockall(MCL_FUTURE) the kernel would allocate
 * memory for the whole mapping.  Therefore it is mapped PROT_NONE, unlocked,
 * and only then made accessible.
 */
int sparse_map(int fd, size_t size, void *at, void **out);
/*
 * Map a file.  -EPROTO: it has another size, or does not start with magic and
 * the layout's version.
 */
int layout_map(int fd, size_t size, const char *magic, void **out);
/* Open a directory, but not a symbolic link to one.  NULL and errno */
DIR *dir_open(int at, const char *path);
/*
 * Remove a file or a directory tree of a few levels (recursive).  Symbolic
 * links are not followed.  Errors are ignored.
 */
void dir_remove(int at, const char *path);
/* Remove the contents of directory at. */
void dir_clear(int at);
/* Make all directories of path before its last slash, like mkdir -p. */
int dir_make_parents(int at, const char *path);

/* gid_table.c ---------------------------------------------------------- */

/* Copy a row of a GID table.  False: it is empty. */
bool gid_row_get(const struct urxe_gid *g, struct urxe_gid *out);
/* Copy the row of GID table entry `index`.  False: the entry is empty. */
bool fabric_get_gid(const struct urxe_hca *hca, uint32_t index,
		    struct urxe_gid *out);
/*
 * The row whose interface represents the device: the first with an IPv4
 * address outside 127.0.0.0/8, else the first.  False: the table is empty.
 */
bool fabric_main_gid(const struct urxe_hca *hca, struct urxe_gid *out);
/* The device that has a GID, by its number, or -1. */
int fabric_gid_owner(const struct urxe_dev *dev, const uint8_t gid[16]);

/* mcast.c -------------------------------------------------------------- */

/* True for a multicast GID: ff00::/8, or an IPv4-mapped 224.0.0.0/4. */
bool mcast_is_group(const uint8_t gid[16]);
/*
 * Copy the QPNs attached to a group, at most URXE_MAX_MCAST_ATTACH, and
 * return their number.  No lock is taken: a QP that is attached or detached
 * concurrently may or may not be included.
 */
uint32_t mcast_members(struct urxe_dev *dev, const uint8_t gid[16],
		       uint32_t *qpn);
bool mcast_has_members(struct urxe_dev *dev, const uint8_t gid[16]);
/*
 * Copy the group of entry i < URXE_MAX_MCAST_GRP.  False: the entry is free.
 * No lock is taken: if the entry changes concurrently the copy may be torn,
 * and dev->wire.groups is incremented afterwards.
 */
bool mcast_group(const struct urxe_dev *dev, uint32_t i, uint8_t gid[16]);
/*
 * Attach a QP to a group.  Returns 1, or 0 if it was attached already.
 * -ENOMEM: too many groups, or too many QPs in the group.
 */
int mcast_attach(struct urxe_fabric *f, const uint8_t gid[16], uint32_t qpn);
/* Detach a QP.  -EINVAL: it was not attached. */
int mcast_detach(struct urxe_fabric *f, const uint8_t gid[16], uint32_t qpn);

/*
 * InfiniBand: a join of a group by a port.  The port receives until each join
 * with `receives` has been left; the others are joins for sending only.
 */
struct mcast_join {
	const uint8_t *mgid;
	uint32_t device;
	bool receives;
	bool by_mad; /* by a MAD to the subnet administrator: once per port */
	uint32_t qkey; /* of the group, if this join makes it */
	uint16_t pkey;
};
/* Returns the MLID of the group, -ENOMEM, or an error of fabric_lock(). */
int mcast_port_join(struct urxe_fabric *f, const struct mcast_join *j);
void mcast_port_leave(struct urxe_fabric *f, uint16_t mlid, uint32_t k,
		      bool receives);
/*
 * Set the numbers of joins again, from a count of those of rdma_cm; those by
 * MADs are added.  mcast_counts_set() frees the counts.  NULL: no memory.
 */
struct mcast_counts;
struct mcast_counts *mcast_counts_new(void);
void mcast_count(struct mcast_counts *c, uint16_t mlid, uint32_t k,
		 bool receives);
void mcast_counts_set(struct urxe_fabric *f, struct mcast_counts *c);
/* Leave a group that port k has joined by a MAD; false: it has not. */
bool mcast_mad_leave(struct urxe_fabric *f, uint16_t mlid, uint32_t k);
/* The MLID of a group; 0: no port has joined it. */
uint16_t mcast_mlid(struct urxe_dev *dev, const uint8_t gid[16]);
/* Does port k receive packets to that MLID, of that group? */
bool mcast_reaches(struct urxe_dev *dev, uint16_t mlid, const uint8_t gid[16],
		   uint32_t k);

/* subnet.c: InfiniBand -------------------------------------------------- */

/* Has nothing been changed since the fabric was created? */
bool ports_are_initial(const struct urxe_dev *dev);
bool subnet_is_initial(const struct urxe_dev *dev);
/*
 * The device with the built-in subnet manager: the first InfiniBand device
 * whose port had a link when the fabric was created, or the first one.
 */
uint32_t subnet_sm_home(const struct urxe_dev *dev);
/* port_caps(), and URXE_PORT_SM at the port of the built-in subnet manager. */
uint32_t subnet_port_caps(const struct urxe_dev *dev,
			  const struct urxe_hca *hca);
/* NodeDescription of a node.  At most 64 bytes. */
void subnet_node_name(const struct urxe_dev *dev, char name[64], uint32_t node);
/*
 * Change LIDs, P_Key table or subnet manager of the port of a device, or port
 * 0 of a switch, and raise LID_CHANGE, PKEY_CHANGE or SM_CHANGE.
 * -EOPNOTSUPP: it is an Ethernet device; -EINVAL: invalid LIDs, or
 * those of another port; or an error of fabric_lock().
 */
int subnet_set_lids(struct urxe_fabric *f, uint32_t node, uint32_t lid,
		    uint32_t lmc);
int subnet_set_pkeys(struct urxe_fabric *f, uint32_t k, const uint16_t *pkey,
		     uint32_t n);
int subnet_set_sm(struct urxe_fabric *f, uint32_t node, uint16_t lid,
		  uint8_t sl);

/* port.c --------------------------------------------------------------- */

/* FABRIC_LINK_STARTING: its ports are up, but it carries no packets yet */
enum fabric_link_state {
	FABRIC_LINK_DOWN,
	FABRIC_LINK_STARTING,
	FABRIC_LINK_UP
};

/*
 * Set the state of a link, for both ends.  While a device's link is down, its
 * port neither sends nor receives; a change raises IBV_EVENT_PORT_ERR or
 * IBV_EVENT_PORT_ACTIVE in every context of the device.  Port 0 of a switch:
 * all its links.  Returns 1 if all of them had that state already.  -EINVAL:
 * there is no link.
 */
int fabric_set_link(struct urxe_fabric *f, struct urxe_link_end e,
		    enum fabric_link_state state);
/* The same for the port of device k: FABRIC_LINK_UP or FABRIC_LINK_DOWN. */
int fabric_set_port(struct urxe_fabric *f, uint32_t k, bool up);
/*
 * Replace one end of a link by the other one if that is of a lower node, or of
 * a lower port of the same: both ends give the same one.
 */
void link_end_first(const struct urxe_fabric *f, struct urxe_link_end *e);
/*
 * Set the rate of a link in Gb/s, at the devices at its ends; 0: that of their
 * profile.  -EINVAL: there is no such rate, or no link.
 */
int fabric_set_rate(struct urxe_fabric *f, struct urxe_link_end e,
		    uint32_t rate);
/* Set the state of a port (enum urxe_port_state), as a subnet manager sets it.
 */
int fabric_set_port_state(struct urxe_fabric *f, uint32_t k, uint32_t state);
/* Raise a port event (enum ibv_event_type) in every context of device k. */
void fabric_port_event(struct urxe_fabric *f, uint32_t k, uint32_t event);

/* counter.c ------------------------------------------------------------ */

/* A violation counter of a port: 16 bits, saturating (IB 14.2.5.6). */
uint16_t port_violations(const struct urxe_dev *dev, uint32_t k,
			 enum urxe_counter which);

/*
 * Name of the counter's file in sysfs hw_counters/.  NULL: it has none, but
 * is reported by counters/ or ibv_query_port.
 */
const char *counter_name(enum urxe_counter which);
/* Current value of device k: the sum over all rows. */
uint64_t counter_read(const struct urxe_dev *dev, uint32_t k,
		      enum urxe_counter which);

/* the role in which a process counts; HOLDER: as socket owner */
enum counter_side { COUNTER_REQUESTER, COUNTER_HOLDER };

/* Add n to a wire counter, in this process's row.  Any thread may call it. */
static inline void counter_add_wire(struct urxe_fabric *f,
				    enum counter_side side,
				    enum urxe_counter which, uint64_t n)
{
	uint32_t row = (2 * URXE_PROCESS_NUMBER(process_id(f)) + side) %
		       URXE_WIRE_COUNTS;

	fetch_add_relaxed(&f->dev->wire.counts[row].of[which], n);
}

/* gid.c ----------------------------------------------------------------- */

/*
 * Update the GID table from the addresses of this network namespace.  Entries
 * that remain keep their index; entries of removed addresses become empty.
 * If the table changed, IBV_EVENT_GID_CHANGE is raised in every context of the
 * device.  This concerns device 0; the GIDs of the others do not change.
 */
int fabric_refresh_gids(struct urxe_fabric *f);
