/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fabric: what the kernel would keep.  Contexts, tables and their
 * lifetimes in shared memory; layout.h has the bytes.
 *
 * Functions return 0 or a negative errno unless they say otherwise; outputs
 * are written on success only.  None of them is on the data path.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/layout.h"

#define URXE_DEVICE_NAME "urxe0"
#define URXE_UVERBS_NAME "uverbs1000"
#define URXE_DEV_INDEX 1000 /* netlink DEV_INDEX */
#define URXE_DEV_MAJOR 231
#define URXE_DEV_MINOR 60000
/* The character device rdma_cm. */
#define URXE_CM_MAJOR 10
#define URXE_CM_MINOR 60001

/* This process's number there, in a page that is zero in a forked child. */
struct process_self {
	_Atomic uint32_t id; /* 0: none yet */
	void *lock; /* the mapping that keeps the lock */
	struct urxe_process *_Atomic shown; /* mapped for life, or NULL */
	_Atomic bool showing; /* a thread is about it */
	_Atomic bool holding; /* a thread holds the wire, or is about to */
	uint64_t ino; /* of procs */
	struct process_self *next;
};

/* One process's mapping of a fabric. */
struct urxe_fabric {
	struct process_self *self;
	int procs_fd; /* to ask who lives, when none is left to open it */
	int dirfd;
	char dir[256];
	uint64_t ino; /* of the device segment */
	struct urxe_dev *dev;
	uint64_t dm_bytes; /* as dev had it when it was mapped */
	char *dm; /* the whole heap, 2 MiB aligned; NULL until mapped */
	int dm_fd;
};

/* fabric.c ------------------------------------------------------------- */

/*
 * The fabric's directory by the environment: in its place (place.c), named by
 * URXE_FABRIC (default "default").
 * -ENAMETOOLONG, -EINVAL (a fabric name with '/' in it).
 */
int fabric_dir(char *buf, size_t len);

/*
 * Map the fabric at dir; with create, make it if it is not there.
 * -ENOENT, -EPERM (the directory is another user's, open to others, or no
 * directory but a link to one),
 * -EPROTO (another layout version), or what the system says.
 */
int fabric_open(const char *dir, bool create, struct urxe_fabric **out);
void fabric_close(struct urxe_fabric *f);
/* URXE_DM_SIZE; 0: it is not set.  -EINVAL: it is garbage. */
int dm_size_by_env(uint64_t *bytes);
/*
 * The process ends: remove the fabric if nobody else is in it (stale.c).  f can
 * still be used by what runs until then.
 */
void fabric_leave(struct urxe_fabric *f);
/*
 * Remove the fabric at dir if nobody is in it; with only_empty not if its port
 * was taken down.  An empty directory counts as a fabric.  -ENOENT,
 * -EINVAL (that is no fabric), -EBUSY or -EAGAIN (in use), -ENOTEMPTY.
 */
int fabric_remove_unused(const char *dir, bool only_empty);
/*
 * The same with all other fabrics in the place where dir is.  Returns how many
 * there were; removed may be NULL.
 */
int fabric_sweep(const char *dir, bool only_empty,
		 void (*removed)(const char *name));
/*
 * Make file `name` of the fabric: init fills it aside, then it is linked into
 * place.  So nobody sees half of it, and the loser of a race uses the
 * winner's.
 */
int fabric_make_file(struct urxe_fabric *f, const char *name,
		     int (*init)(struct urxe_fabric *f, int fd));

/* Take the lock of the device segment; as robust_lock, but never 1. */
int fabric_lock(struct urxe_fabric *f);
void fabric_unlock(struct urxe_fabric *f);

/*
 * Why the last fabric call of this thread failed, in words; "" if it has
 * nothing to add to the errno.
 */
const char *fabric_why(void);
void fabric_why_clear(void);
/* The same, or what the errno says; with the limit that was reached. */
const char *fabric_reason(int err);
int fabric_fail(int err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* process.c ------------------------------------------------------------ */

/*
 * This process's id in the fabric (layout.h): of this address space, so the
 * child of a fork has another one.  Taken when it is first asked for.  0 if
 * there is none to have: no descriptor or memory left, or too many processes;
 * fabric_why() has the reason.
 */
uint32_t process_id_take(struct urxe_fabric *f);
/* Is the process surely no more?  False if that cannot be told. */
bool process_is_dead(struct urxe_fabric *f, uint32_t id);
/*
 * Is the thread tid of it (0: the first one) stopped, by a signal or a debugger?
 * False, too, where that cannot be seen: in another PID namespace.
 */
bool process_thread_is_stopped(const struct urxe_fabric *f, uint32_t id, uint32_t tid);
/*
 * Have others see at once when this process dies (process_seems_alive), as long
 * as the calling thread lives.  May be called again, and then takes another
 * thread's place if that has ended.  -ENOMEM: it has no id, and would count as
 * dead.
 */
int process_show_life(struct urxe_fabric *f);
/*
 * Two words that change when process id dies, if it shows its life: the kernel
 * takes the TID out of them, and wakes one who waits for that, because each
 * word says now that somebody does.  False: it is dead, or does not show it.
 */
bool process_watch(struct urxe_fabric *f, uint32_t id,
		   struct futex_word words[2]);
/* The kernel wakes one; he wakes all others that watched one of the dead. */
void process_pass_on(const struct futex_word *words, uint32_t n);
/* Ours is in that network namespace. */
void process_set_netns(struct urxe_fabric *f, uint64_t netns);
/* Does a process of that network namespace live? */
bool process_in_netns(struct urxe_fabric *f, uint64_t netns);
/* Is it alive, and does it have that number in that PID namespace? */
bool process_has_pid(struct urxe_fabric *f, uint32_t id, int32_t pid,
		     uint64_t pidns);
/* The same of URXE_PROCESS_BRIEF(id). */
bool process_brief_is_dead(struct urxe_fabric *f, uint32_t brief);
/* For fabric_open and fabric_close. */
int process_self_make(struct urxe_fabric *f);
void process_self_recall(struct urxe_fabric *f);
void process_self_drop(struct urxe_fabric *f);
/* Make the file procs, if it is not there, and say which it is. */
int process_file_make(struct urxe_fabric *f, uint64_t *ino);

static inline uint32_t process_id(struct urxe_fabric *f)
{
	uint32_t id = load_relaxed(&f->self->id);

	return __builtin_expect(id != 0, 1) ? id : process_id_take(f);
}

/* call.c --------------------------------------------------------------- */

/*
 * Enter a call of this thread that may block in the call table (shared/call.h):
 * its slot, or NULL if there is none.  errno is kept.
 */
struct urxe_call *call_begin(struct urxe_fabric *f, enum urxe_call_kind kind,
			     uint32_t context, uint64_t object,
			     uint32_t events);
/* Remove it; NULL: there is none.  A pthread_cleanup_push() handler, too. */
void call_end(void *call);

/* robust.c ------------------------------------------------------------- */

/*
 * 0: it is ours; 1: it is, and who had it before us died.  -ETIMEDOUT: somebody
 * alive keeps it; fabric_why() has his name, and calls the lock `what`.
 * -ENOMEM: this process has no id.
 */
int robust_lock(struct urxe_fabric *f, struct robust_lock *l, const char *what);
/* The same with another patience than ROBUST_PATIENCE_NS, ns. */
int robust_lock_within(struct urxe_fabric *f, struct robust_lock *l,
		       const char *what, uint64_t patience);
/* The same without waiting: -EBUSY. */
int robust_try(struct urxe_fabric *f, struct robust_lock *l);
void robust_unlock(struct urxe_fabric *f, struct robust_lock *l);

/* place.c -------------------------------------------------------------- */

/* The directory that fabrics are in, by the environment. */
int place_choose(char *buf, size_t len);
/* Is the usual one not ours?  What is there goes to by. */
bool place_is_taken(char *by, size_t len);

/* context.c ------------------------------------------------------------ */

/*
 * Open the device: reclaim some dead contexts, or all of them if a resource
 * runs short, claim a context slot, make its arena and lock it.  Returns the
 * descriptor (O_RDWR | O_CLOEXEC), which is the context's lifetime: when its
 * last copy is closed, and the last mapping made from it is gone (a mapping
 * holds the open file, too), the context is dead. -ENOSPC all slots are live,
 * -ENOMEM no memory for the arena.
 */
int fabric_context_open(struct urxe_fabric *f);

/* Is fd an arena?  st is what the real fstat said.  errno is kept. */
bool fabric_is_arena(int fd, const struct stat *st);

/* Does anybody still hold context (slot, gen), by descriptor or mapping? */
bool fabric_context_alive(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/* Free what dead contexts held.  Returns how many there were. */
int fabric_reap(struct urxe_fabric *f);
/* Have all look for receives that somebody took with it (rq_recover.c). */
void fabric_count_death(struct urxe_fabric *f);
/* The same for one context; true if it was dead and is now free. */
bool fabric_reap_one(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/*
 * Raise or lower the use of an object; -ENOMEM past the device limit, with what
 * the dead had given back.
 */
int fabric_obj_get(struct urxe_fabric *f, uint32_t slot, enum urxe_obj o);
void fabric_obj_put(struct urxe_fabric *f, uint32_t slot, enum urxe_obj o);
uint32_t fabric_obj_limit(enum urxe_obj o);
const char *fabric_obj_name(enum urxe_obj o);

/* arena.c -------------------------------------------------------------- */

/* Inode of this process's PID namespace; 0: unknown. */
uint64_t fabric_pidns(void);
/* The same of its network namespace. */
uint64_t fabric_netns(void);

/* Map the arena behind fd.  -EPROTO if it is not a sound one. */
int arena_map(int fd, struct urxe_arena **out);
void arena_unmap(struct urxe_arena *a);
/*
 * Map another context's arena; fd_out gets a descriptor of it (to test its
 * life by).  -ENXIO if that context is gone.
 */
int arena_map_peer(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		   struct urxe_arena **out, int *fd_out);
/* Does anybody hold the lock of the arena behind this descriptor? */
bool arena_fd_alive(int fd);
/* Directory of the fabric that an arena's descriptor belongs to. */
int arena_fabric_dir(int fd, char *buf, size_t len);

/* A bit of one of the arena's maps that was free, or -ENOMEM. */
int arena_index_take(uint64_t *map, uint32_t bits);
/* The lock of the arena's keys: as fabric_lock. */
int arena_lock(struct urxe_fabric *f, struct urxe_arena *a);
void arena_unlock(struct urxe_fabric *f, struct urxe_arena *a);

/* Reserve memory for a part of the arena: after this no SIGBUS.  -ENOMEM */
int arena_reserve(int fd, uint64_t offset, uint64_t len);

/*
 * Space for rings, zeroed and reserved, page granular.  Returns the offset,
 * 0 when there is none.
 */
uint64_t arena_alloc(struct urxe_arena *a, int fd, uint64_t len);
void arena_free(struct urxe_arena *a, int fd, uint64_t offset, uint64_t len);
/* The same for rings of any size: small ones share pages. */
uint64_t arena_alloc_ring(struct urxe_arena *a, int fd, uint64_t len);
void arena_free_ring(struct urxe_arena *a, int fd, uint64_t offset,
		     uint64_t len);
/* The bytes at offset if [offset, offset + len) is in the heap, or is a small
 * ring's, else NULL. */
void *arena_ptr(struct urxe_arena *a, uint64_t offset, uint64_t len);

/* dm_heap.c ------------------------------------------------------------ */

/* Map the heap into f->dm (once per process). */
int dm_heap_map(struct urxe_fabric *f);
/*
 * Allocate device memory: zeroed, aligned to 1 << log_align (at least 64),
 * its pages reserved.  Returns the DM slot or -ENOMEM, -EINVAL.
 */
int dm_heap_alloc(struct urxe_fabric *f, uint32_t ctx, uint32_t ctx_gen,
		  uint64_t length, uint32_t log_align);
/*
 * An MR on what the slot was when made (URXE_DM_MADE) keeps it there; -ENOENT
 * if it was freed.
 */
int dm_heap_hold(struct urxe_fabric *f, uint32_t slot, uint32_t made);
void dm_heap_put(struct urxe_fabric *f, uint32_t slot);
/* -EBUSY while an MR is on it, -ENOENT if it was freed. */
int dm_heap_free(struct urxe_fabric *f, uint32_t slot, uint32_t made);
const char *dm_kind_name(uint32_t kind);

/* dm_export.c ---------------------------------------------------------- */

/* A descriptor that names what the slot was when made.  -errno */
int dm_export(struct urxe_fabric *f, uint32_t slot, uint32_t made);
/*
 * The device memory that fd names, for an MR of context ctx: a slot that
 * dm_heap_put() gives back.  -ENOTTY: it names none; -errno
 */
int dm_import(struct urxe_fabric *f, int fd, uint32_t ctx, uint32_t ctx_gen);

/* qpn.c ---------------------------------------------------------------- */

/* A new QPN for context (slot, gen), entered in the directory.  -ENOMEM */
int qpn_alloc(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
	      uint32_t *qpn);
void qpn_free(struct urxe_fabric *f, uint32_t qpn);
/* The context that owns qpn; false if there is no such QP. */
bool qpn_lookup(const struct urxe_dev *dev, uint32_t qpn, uint32_t *slot,
		uint32_t *gen);

/* fifo.c --------------------------------------------------------------- */

/*
 * A FIFO for events of a context, read end and life-keeper in one
 * descriptor (O_RDWR | O_CLOEXEC, blocking).  number names it for
 * fifo_open_writer.
 */
int fifo_create(struct urxe_fabric *f, struct urxe_arena *a, uint32_t *number);
/* Number of the FIFO behind a descriptor; -EINVAL if it is not one. */
int fifo_number(int fd, uint32_t *number);
/*
 * A descriptor to write to, O_RDWR | O_NONBLOCK | O_CLOEXEC; -ENXIO when nobody
 * else can read it.
 */
int fifo_open_writer(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		     uint32_t number);
/* To FIFO number fifo - 1; -EAGAIN: it is full, -ENXIO: nobody reads it. */
int fifo_send_async(struct urxe_fabric *f, uint32_t slot, uint32_t gen,
		    uint32_t fifo, uint64_t element, uint32_t type);
/* Remove the FIFOs of a context; -errno: they could not be looked at. */
int fifo_remove_all(struct urxe_fabric *f, uint32_t slot, uint32_t gen);

/* file.c --------------------------------------------------------------- */

/* The beginning of a file as a string; "" if it cannot be read. */
void file_read(int at, const char *path, char *text, size_t room);
/* Where the file behind a descriptor is. */
int file_path(int fd, char *path, size_t room);
/* -EFBIG, and no SIGXFSZ, if the process may not make a file that large. */
int sparse_allowed(uint64_t size);
/*
 * Map a file, for reading and writing; at `at` if that is not NULL, over what is
 * mapped there.  After mlockall(MCL_FUTURE) all of a new mapping gets memory at
 * once, and most of our files is empty: so it is unlocked before it may be
 * accessed.
 */
int sparse_map(int fd, size_t size, void *at, void **out);
/* Map a file of this size that begins with magic and the layout's version. */
int layout_map(int fd, size_t size, const char *magic, void **out);
/* A directory, but not by a link; NULL and errno. */
DIR *dir_open(int at, const char *path);
/* rm -r, for trees of a few levels; what is below a link stays. */
void dir_remove(int at, const char *path);
/* The same with all that is in a directory. */
void dir_clear(int at);
/* mkdir -p of everything before the last slash. */
int dir_make_parents(int at, const char *path);

/* gid_table.c ---------------------------------------------------------- */

/* The row of GID table entry `index`, copied; false if there is none. */
bool fabric_get_gid(const struct urxe_dev *dev, uint32_t index,
		    struct urxe_gid *out);
/* The entry whose interface stands for the device: the first IPv4 one. */
bool fabric_main_gid(const struct urxe_dev *dev, struct urxe_gid *out);

/* mcast.c -------------------------------------------------------------- */

/* A multicast GID: ff00::/8, or an IPv4 one in its mapped form. */
bool mcast_is_group(const uint8_t gid[16]);
/*
 * The QPNs attached to a group, at most URXE_MAX_MCAST_ATTACH; how many.
 * Read without a lock: who attaches or detaches meanwhile may be missed.
 */
uint32_t mcast_members(struct urxe_dev *dev, const uint8_t gid[16],
		       uint32_t *qpn);
bool mcast_has_members(struct urxe_dev *dev, const uint8_t gid[16]);
/*
 * Entry i of the table, below URXE_MAX_MCAST_GRP: its group; false: it has
 * none.  Without a lock, too: one that changes meanwhile is torn, and
 * dev->wire.groups grows afterwards.
 */
bool mcast_group(const struct urxe_dev *dev, uint32_t i, uint8_t gid[16]);
/* 1; 0: it was already; -ENOMEM: too many groups, or too many QPs in it. */
int mcast_attach(struct urxe_fabric *f, const uint8_t gid[16], uint32_t qpn);
int mcast_detach(struct urxe_fabric *f, const uint8_t gid[16], uint32_t qpn);

/* port.c --------------------------------------------------------------- */

/*
 * Take the port down or up.  While it is down nothing is delivered; each
 * change raises IBV_EVENT_PORT_ERR or IBV_EVENT_PORT_ACTIVE in every context.
 * Returns 1 if it was so already.
 */
int fabric_set_port(struct urxe_fabric *f, bool up);
/* Raise an event of the port in every context. */
void fabric_port_event(struct urxe_fabric *f, uint32_t event);

/* counter.c ------------------------------------------------------------ */

/* As hw_counters in sysfs has it; NULL: that is one of the IB's counters/. */
const char *counter_name(enum urxe_counter which);
uint64_t counter_read(const struct urxe_dev *dev, enum urxe_counter which);

enum counter_side { COUNTER_REQUESTER, COUNTER_HOLDER };

/* Of the wire, by this process; any thread may. */
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
 * Bring the GID table up to date with the addresses of this network namespace:
 * known entries keep their index, vanished ones become empty.
 */
int fabric_refresh_gids(struct urxe_fabric *f);
