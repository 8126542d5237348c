/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared-memory layout of a fabric: every structure that processes share.
 *
 * A fabric is a directory:
 *
 *   device          struct urxe_dev: the device segment, one per fabric
 *   procs           empty; byte-range locks on it mark live processes
 *                   (fabric/process.c)
 *   dm              the device-memory heap (or a file on a hugetlbfs mount)
 *   ctx/S.G         struct urxe_arena: one per opened context; slot S,
 *                   generation G.  Its file descriptor is the verbs
 *                   "cmd_fd"; an OFD lock on it marks the context live
 *   ev/S.G.N        FIFOs: completion channels and async event channels
 *   cm, cm.d/       the connection manager (cm_tables.h), its FIFOs
 *   journal         writes of checked programs (journal.h)
 *   sys/, dev/      the contents of sysfs and /dev (written by the preload
 *                   library)
 *
 * Shared memory contains offsets and indices, never pointers.  Any value may
 * have been written by a dying or faulty process.  A reader must bound it
 * before use.
 */
#pragma once

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "base/presence.h"
#include "call.h"
#include "gid.h"
#include "reason.h"
#include "robust.h"
#include "wire.h"

/*
 * Version of the shared layout.  The build computes it from the text of all
 * headers in kernel-shim/shared and kernel-shim/base.  All shared structures
 * and the protocols on them must therefore be defined there and nowhere else.
 */
extern const uint32_t urxe_layout_version;

#define URXE_LINE 64 /* cache line for alignment: a hint, not an assumption */
/* unit of both allocators, whatever the CPU's page size */
#define URXE_PAGE 4096

/*
 * Device limits.  The values that ibv_query_device reports are enforced.
 * Limits on QPs, XRC domains and device memory apply to the fabric, the
 * others to each context.
 */
#define URXE_MAX_CTX 512 /* 9 bits of every lkey and rkey */
#define URXE_MAX_PROCESS 4096 /* 12 bits of a process id */
#define URXE_GEN_MASK 0x7fffffffu /* a slot generation has 31 bits */
#define URXE_MAX_QP 8192 /* 13 bits of every QPN */
#define URXE_MAX_CQ 8192
#define URXE_MAX_SRQ 4096
#define URXE_MAX_PD 8192
#define URXE_MAX_KEY 32768 /* MRs and MWs of one context: 15 bits of a key */
#define URXE_MAX_MR (URXE_MAX_KEY - 1) /* MRs and MWs share the key table */
#define URXE_MAX_MW (URXE_MAX_KEY - 1)
#define URXE_MAX_AH INT32_MAX /* AHs are stored in no table */
#define URXE_MAX_XRCD 256
#define URXE_MAX_COMP_CNTR 4096
#define URXE_MAX_DM 16384 /* one per allocation unit: URXE_DM_UNIT */
#define URXE_MAX_GID 256 /* as on ConnectX: 2 for each address */
#define URXE_MAX_MCAST_GRP 256
#define URXE_MAX_MCAST_ATTACH 64 /* QPs per group */
#define URXE_MAX_QP_WR 16384
#define URXE_MAX_CQE 262144 /* the default request of libfabric */
#define URXE_MAX_SRQ_WR 16384
#define URXE_MAX_SGE 32
#define URXE_MAX_INLINE 1024
#define URXE_MAX_RD_ATOM 16
#define URXE_MAX_MSG (1u << 30)
#define URXE_NUM_COMP_VECTORS 8
#define URXE_QPN_MASK 0xffffffu /* QP numbers have 24 bits */
#define URXE_PSN_MASK 0xffffffu /* packet sequence numbers have 24 bits */
/* IB 10.5: destination QP of multicast datagrams */
#define URXE_MCAST_QPN 0xffffffu
#define URXE_DM_MAX_BYTES (1ull << 30)
/*
 * Device-memory allocation unit in pages.  For any heap size, the heap is
 * exhausted before dm[] is.
 */
#define URXE_DM_UNIT(heap_pages) \
	(((uint32_t)(heap_pages) + URXE_MAX_DM - 1) / URXE_MAX_DM)
#define URXE_DM_FIRST 1024 /* dm[] entries that get memory at a time */

enum urxe_obj {
	URXE_OBJ_PD,
	URXE_OBJ_MR,
	URXE_OBJ_MW,
	URXE_OBJ_CQ,
	URXE_OBJ_QP,
	URXE_OBJ_SRQ,
	URXE_OBJ_AH,
	URXE_OBJ_XRCD,
	URXE_OBJ_DM,
	URXE_OBJ_COMP_CNTR,
	URXE_OBJ_COUNT
};

/*
 * File modes and sizes by which fstat() identifies CM channels, stand-ins for
 * character devices, and attributes that cannot be read.
 */
#define CM_FIFO_MODE (S_IFIFO | 01600)
#define TREE_CDEV_MODE (S_IFREG | 01600)
#define TREE_CDEV_SIZE 0x7578
#define TREE_CM_SIZE 0x7579 /* /dev/infiniband/rdma_cm */
/* attribute of an empty GID slot: read fails */
#define TREE_EINVAL_MODE (S_IFREG | 01400)
#define URXE_ARENA_NAME "ctx/%u.%u" /* slot, generation */
#define URXE_FIFO_NAME "ev/%u.%u.%u" /* slot, generation, number */
/* suffix of the name until a reader has opened it */
#define URXE_FIFO_NASCENT '+'

/* ------------------------------------------------ the device segment */

#define URXE_DEV_MAGIC "urxe device seg" /* 16 bytes including the NUL */

/*
 * In OPENING and REAPING, process `worker` is changing the slot.  If that
 * process is dead, another process reaps the slot.
 */
enum urxe_ctx_state {
	URXE_CTX_FREE,
	URXE_CTX_OPENING,
	URXE_CTX_LIVE,
	URXE_CTX_REAPING,
};

/*
 * One opened context.  A process claims a slot for opening or reaping under
 * dev.lock.  A reader without the lock compares gen before and after it
 * reads.  used[] counts the context's objects, so that the reaper can
 * subtract them from dev.used[].
 */
struct urxe_ctx_slot {
	_Atomic uint32_t state;
	_Atomic uint32_t gen;
	_Atomic uint32_t worker;
	_Atomic int32_t pid;
	_Atomic uint32_t used[URXE_OBJ_COUNT];
	/* number of the next FIFO of this context */
	_Atomic uint32_t next_fifo;
	char comm[16];
};

/*
 * A process of the fabric; precisely, an address space.  A process has two
 * entries: one for the provider, one for the preload library.
 *
 * A process owns its table number while it holds a lock on byte `number` of
 * the file procs.  The lock belongs to an open file description that only a
 * mapping keeps open and that a forked child does not inherit.  The kernel
 * therefore releases the lock when the address space ends, even if other
 * processes have copies of its descriptors.  PIDs are not compared: a PID is
 * valid in one PID namespace only and is reused.
 *
 * After a process gets the lock it increments `uses`.  A reused number thus
 * forms a new id, which proves that the previous owner is dead.
 */
struct urxe_process {
	alignas(2 * URXE_LINE) _Atomic uint32_t uses; /* 19 bits */
	_Atomic int32_t pid; /* in the PID namespace pidns */
	_Atomic uint64_t pidns; /* inode of that namespace; 0: unknown */
	_Atomic uint64_t netns; /* inode of its network namespace */
	pthread_mutex_t life, exec; /* see process_seems_alive() */
	char comm[16]; /* for messages */
};
static_assert(URXE_PAGE % sizeof(struct urxe_process) == 0,
	      "an entry lies in one page");

/*
 * A process id: number (12) | uses (19) << 12; never 0.  Bit 31 is used by
 * locks.
 */
#define URXE_PROCESS(number, uses) ((uint32_t)(uses) << 12 | (number))
#define URXE_PROCESS_NUMBER(id) ((id) & (URXE_MAX_PROCESS - 1))
#define URXE_PROCESS_USES(id) ((id) >> 12)
#define URXE_PROCESS_MAX_USES (1u << 19)

/*
 * Return true if process id is certainly alive.
 *
 * A thread of the process holds `life`, a robust mutex that no other thread
 * ever locks.  When the thread ends, even by SIGKILL, the kernel clears the
 * TID in the mutex word.  It does so before the process can be waited for and
 * before its PID can be reused.  A nonzero TID was therefore true at the time
 * of the load.  False proves nothing: the thread may have ended while the
 * process continues.
 *
 * `uses` is loaded last: the next owner of the number stores `uses` before
 * its TIDs.
 *
 * If that thread calls exec(2), the kernel gives it the TID of the thread
 * group leader before it walks the robust list, and does not recognize `life`
 * as held.  The thread therefore also holds `exec`, whose word contains the
 * leader's TID.
 */
static inline _Atomic uint32_t *process_tid(const pthread_mutex_t *m)
{
#ifdef __GLIBC__
	const void *tid = &m->__data.__lock;
#else
	const void *tid = (const int *)(const void *)m + 1;
#endif

	return (_Atomic uint32_t *)(uintptr_t)tid;
}

static inline bool process_seems_alive(const struct urxe_process *p,
				       uint32_t id)
{
	return load_acquire(process_tid(&p->life)) & FUTEX_TID_MASK &&
	       load_acquire(process_tid(&p->exec)) & FUTEX_TID_MASK &&
	       load_relaxed(&p->uses) == URXE_PROCESS_USES(id);
}

/*
 * Short form of a process id: the number and 12 bits of uses, for 24-bit
 * fields.
 */
#define URXE_PROCESS_BRIEF(id) ((id) & 0xffffff)

enum urxe_port_state { URXE_PORT_DOWN = 1, URXE_PORT_ACTIVE = 4 };

/*
 * A row of the GID table: one address.  A row has two entries, in the order
 * of ConnectX: index 2 * row is RoCE v1, the next index is RoCE v2.  Rows are
 * written under dev.lock; `valid` is stored last.
 */
struct urxe_gid {
	uint8_t raw[16];
	_Atomic uint32_t valid;
	uint32_t ifindex;
	char ifname[16];
	uint64_t netns; /* inode of the network namespace of ifname */
};

#define URXE_GID_ROWS (URXE_MAX_GID / 2)
#define URXE_GID_ROW(index) ((uint8_t)(index) / 2)
#define URXE_GID_TYPE(index) ((index) % 2 + 1) /* enum ibv_gid_type */
#define URXE_ROCE_V1 1
#define URXE_ROCE_V2 2
#define URXE_GID_INDEX(row, type) ((row) * 2 + (type) - 1)
static_assert(URXE_MAX_GID - 1 <= UINT8_MAX, "sgid_index has 8 bits");

enum urxe_dm_kind {
	URXE_DM_UNUSED, /* no device memory has been allocated yet */
	URXE_DM_HUGETLB,
	URXE_DM_COLLAPSED, /* tmpfs, MADV_COLLAPSE */
	URXE_DM_ADVISED, /* tmpfs, MADV_HUGEPAGE accepted */
	URXE_DM_SMALL
};

/* Location of the heap's file, decided by the first process that needs it. */
enum urxe_dm_home {
	URXE_DM_UNDECIDED,
	URXE_DM_HERE, /* "dm" in the fabric's directory */
	URXE_DM_PATH, /* dm_path, on a hugetlbfs */
};

/*
 * Sharing of a device-memory allocation.  An MR that is registered through an
 * exported descriptor makes a second entry for the same pages: one belongs to
 * the application, the other to the MR's context.  The pages are freed with
 * the last entry.
 */
enum urxe_dm_share {
	URXE_DM_ALONE,
	URXE_DM_SHARED, /* other entries have, or had, the same pages */
	URXE_DM_OF_MR, /* belongs to one MR and is freed with it */
};

/*
 * A device-memory allocation.  Allocation and release take two steps under
 * dev.lock.  Between them the pages are reserved, or returned to the system;
 * meanwhile the slot is used, owns its pages, and the count in refs is 0.
 */
struct urxe_dm_slot {
	_Atomic uint32_t used; /* 0, or 1 + context slot of the owner */
	uint32_t ctx_gen;
	uint64_t offset, length; /* in the heap; offset is page aligned */
	/*
	 * URXE_DM_REFS(): uses of the slot | 1 + MRs registered on it.  The
	 * count is 0 before allocation completes and once the memory is
	 * freed.  One word holds both, so that registration and release
	 * exclude each other by compare-and-swap.
	 */
	_Atomic uint64_t refs;
	uint32_t pages; /* heap pages it holds; 0: another entry has them */
	uint32_t share; /* enum urxe_dm_share; under dev.lock */
};
#define URXE_DM_REFS(made, refs) ((uint64_t)(made) << 32 | (refs))
#define URXE_DM_MADE(word) ((uint32_t)((word) >> 32))
#define URXE_DM_COUNT(word) ((uint32_t)(word))

struct urxe_mcast_grp {
	uint8_t mgid[16];
	_Atomic uint32_t count; /* 0: the entry is free */
	_Atomic uint32_t qpn[URXE_MAX_MCAST_ATTACH];
};

/*
 * Port counters, as sysfs shows them.  The process that moves the bytes adds
 * with relaxed order.  It adds per-QP counts in batches, never per message.
 */
enum urxe_counter {
	URXE_CNT_XMIT_DATA,
	URXE_CNT_RCV_DATA,
	URXE_CNT_XMIT_PACKETS,
	URXE_CNT_RCV_PACKETS,
	URXE_CNT_RNR_NAK,
	URXE_CNT_ACK_TIMEOUT,
	URXE_CNT_REM_ERR,
	URXE_CNT_DUPLICATE,
	URXE_CNT_OUT_OF_SEQ,
	URXE_CNT_SEND_RNR,
	URXE_CNT_SEQ_NAK,
	URXE_CNT_ACK_DEFERRED, /* a response queued behind an unread one */
	URXE_CNT_RETRY_EXC,
	URXE_CNT_RNR_EXC,
	URXE_CNT_COMP_RETRY, /* retransmissions (go-back-N) */
	URXE_CNT_SEND_ERR, /* packets that the system refused to send */
	URXE_CNT_LINK_DOWNED,
	URXE_CNT_SENDS, /* SENDs to other hosts that completed */
	URXE_CNT_RECVS, /* receives from other hosts that completed */
	URXE_CNT_ICRC,
	URXE_CNT_ECN_MARKED,
	URXE_CNT_CNP_SENT,
	URXE_CNT_CNP_HANDLED,
	URXE_CNT_MALFORMED, /* not valid RoCE packets, ICRC aside */
	URXE_CNT_UNCLAIMED, /* no matching QP, or the port is down */
	URXE_CNT_SOCKET_LOST, /* the socket buffer was full */
	URXE_CNT_INBOX_LOST, /* a QP's inbox was full */
	URXE_CNT_BAD_PKEY, /* only ibv_query_port reports this one */
	URXE_CNT_BAD_QKEY, /* only ibv_query_port reports this one */
	URXE_CNT_COUNT
};

/*
 * Wire counters of a process.  A process has two rows, one for its requesters
 * and one for its work as socket owner, so that senders and receivers do not
 * write to one cache line.  Several processes may share a row.  Adds are
 * relaxed.  The value of a counter is the sum of all rows and of
 * dev.counter[] (counter_read).  Rows are never cleared.
 */
#define URXE_WIRE_COUNTS 64
struct urxe_wire_counts {
	alignas(URXE_LINE) _Atomic uint64_t of[URXE_CNT_COUNT];
};

/*
 * An XRC domain.  A domain with a file is shared by all processes that open
 * that file.  A domain without a file (ino 0) belongs to its opener only.
 */
struct urxe_xrcd_slot {
	_Atomic uint32_t used;
	uint64_t dev, ino;
	uint64_t ctx[URXE_MAX_CTX / 64]; /* contexts that have it open */
};

/*
 * A guard: a hazard pointer for objects of other processes, see guard.h.
 * Only the owner writes it.
 */
struct urxe_guard {
	alignas(URXE_LINE) struct presence requester;
	_Atomic uint32_t owner; /* process id; 0: unknown */
	_Atomic uint32_t uses; /* GUARD_* */
	_Atomic uint32_t dest; /* QPN of the responder; 0: none yet */
	_Atomic uint32_t rx; /* slot of the context that owns its receives */
	_Atomic uint32_t srq, cq, pd; /* in context rx */
};

/*
 * Number of guards that share a summary word, see guard.h.  The word is
 * GUARD_BUSY | GUARD_RECHECK | count of scans.
 */
#define URXE_GUARD_GROUP 64
#define URXE_GUARD_GROUPS (URXE_MAX_QP / URXE_GUARD_GROUP)

/*
 * Owner slot of the fabric's wire socket.  The socket owner is the process
 * that reads the socket and acts for the requesters of other hosts
 * (provider/wire/socket_owner.h).  A socket owner that was stopped and replaced
 * keeps its owner slot, so several are occupied at a time
 * (provider/wire/socket/owner_slot.h).
 */
#define URXE_OWNER_SLOTS 8
struct urxe_owner_slot {
	alignas(URXE_LINE) _Atomic uint32_t owner; /* process id; 0: free */
	/* TID of the reading thread, in its namespace */
	_Atomic uint32_t tid;
	_Atomic uint32_t batches; /* incremented for each batch of packets */
	_Atomic uint32_t at; /* QPN of the packet being processed; 0: none */
	struct urxe_guard guard; /* in no group: every destroyer reads it */
};

struct urxe_wire_dev {
	/*
	 * Process id of the socket owner; 0: none.  A futex: candidates sleep
	 * on it.
	 */
	alignas(URXE_LINE) _Atomic uint32_t socket_owner;
	/*
	 * Number of changes of multicast membership, and the last change that
	 * the socket owner's sockets follow (a futex).  After an attach, a
	 * process waits on `followed` for a limited time.
	 */
	alignas(URXE_LINE) _Atomic uint32_t groups;
	_Atomic uint32_t followed;
	struct urxe_owner_slot owner_slot[URXE_OWNER_SLOTS];
	struct urxe_wire_counts counts[URXE_WIRE_COUNTS];
};

/*
 * A QP number: index (13) in the directory and in its context's QP table |
 * number of uses (11), so that a stale QPN does not match a new QP soon.
 */
#define URXE_QPN(index, uses) ((uint32_t)(uses) << 13 | (index))
#define URXE_QPN_USES (1u << 11)
static inline uint32_t qpn_index(uint32_t qpn)
{
	return qpn & (URXE_MAX_QP - 1);
}

/* Directory entry: QPN (24) | context slot (9) | context generation (31) */
#define URXE_DIR(qpn, slot, gen) \
	((qpn) | (uint64_t)(slot) << 24 | (uint64_t)(gen) << 33)
#define URXE_DIR_QPN(e) ((uint32_t)(e) & URXE_QPN_MASK)
#define URXE_DIR_CTX(e) ((uint32_t)((e) >> 24) & (URXE_MAX_CTX - 1))
#define URXE_DIR_GEN(e) ((uint32_t)((e) >> 33))

/* Number of locks, see atomic_lock.h */
#define URXE_ATOMIC_SHARED (URXE_PAGE / 8)
#define URXE_ATOMIC_PRIVATE 4096

struct urxe_dev {
	char magic[16];
	uint32_t version;
	uint32_t size; /* sizeof(struct urxe_dev) of the creator */
	uint64_t node_guid; /* host order */
	uint64_t procs_ino; /* inode of the file procs */
	uint64_t dm_bytes; /* size of the DM heap = max_dm_size */
	char dm_path[256]; /* valid if dm_home is URXE_DM_PATH */
	/* inode of the heap's file; 0: not sized yet */
	_Atomic uint64_t dm_ino;
	uint32_t vendor_id, vendor_part_id, hw_ver;
	char fw_ver[16];

	alignas(URXE_LINE) struct robust_lock lock;
	_Atomic uint32_t used[URXE_OBJ_COUNT];
	_Atomic uint32_t port_state; /* enum urxe_port_state */
	_Atomic uint32_t gid_gen; /* incremented by each change of gid[] */
	/* number of publications of sys and dev */
	_Atomic uint32_t tree_made;
	_Atomic uint32_t dm_home; /* enum urxe_dm_home */
	_Atomic uint32_t dm_kind; /* enum urxe_dm_kind */
	uint32_t ctx_next;
	_Atomic uint32_t reap_next; /* the next slot that an open checks */
	/*
	 * number of contexts reaped and receives abandoned (rq_recover.c); a
	 * futex
	 */
	_Atomic uint32_t recover_gen;
	_Atomic uint64_t counter[URXE_CNT_COUNT];
	struct urxe_gid gid[URXE_GID_ROWS];
	struct urxe_ctx_slot ctx[URXE_MAX_CTX];
	/* where the search for a free number starts */
	_Atomic uint32_t process_next;
	struct urxe_process process[URXE_MAX_PROCESS];
	_Atomic uint32_t dm_high; /* entries of dm[] that have memory */
	/* pages in use */
	uint64_t dm_map[URXE_DM_MAX_BYTES / URXE_PAGE / 64];

	/*
	 * The QPN directory: qp[i] is 0 or URXE_DIR().  The QP's shared state
	 * is entry i of that context's arena.
	 */
	alignas(URXE_LINE) _Atomic uint64_t qp[URXE_MAX_QP];
	uint16_t qp_gen[URXE_MAX_QP]; /* high bits of the QPN, under lock */
	/* locks for shared memory, then for private memory */
	_Atomic uint64_t atomic_lock[URXE_ATOMIC_SHARED + URXE_ATOMIC_PRIVATE];
	/*
	 * 1: some QP performs, or has performed, atomics as a read and a
	 * later write (struct urxe_qp.atomic_ns).  Atomics on device memory
	 * then also need a lock.
	 */
	_Atomic uint32_t atomics_divided;
	_Atomic uint32_t qp_high; /* no slot from here on was ever used */
	/* a hint: where the search for a free slot starts */
	_Atomic uint32_t qp_low;
	/*
	 * guard[i] is raised while the requester of QP i executes, here or on
	 * its peers.  The destroyer of an MR, QP or DM first invalidates it
	 * and then waits until no raised guard names it (guard.h).
	 */
	struct urxe_guard guard[URXE_MAX_QP];
	alignas(URXE_LINE) _Atomic uint64_t guard_group[URXE_GUARD_GROUPS];
	struct urxe_wire_dev wire;
	struct urxe_mcast_grp mcast[URXE_MAX_MCAST_GRP];
	struct urxe_xrcd_slot xrcd[URXE_MAX_XRCD]; /* under lock */
	struct urxe_call call[URXE_MAX_CALLS]; /* for urxe why */
	struct urxe_dm_slot dm[URXE_MAX_DM]; /* sparse: see dm_high */
};

static inline uint32_t dm_slots(const struct urxe_dev *dev)
{
	uint32_t high = load_acquire(&dev->dm_high);

	return high < URXE_MAX_DM ? high : URXE_MAX_DM;
}

/* An async event in its FIFO, in the format that libibverbs reads. */
struct urxe_async_event {
	uint64_t element; /* its tag, or the port */
	uint32_t type, zero;
};
static_assert(sizeof(struct urxe_async_event) == 16, "as libibverbs reads it");

/*
 * A queued async event, which the arena's owner writes to the FIFO:
 * kept_event.h
 */
#define URXE_KEPT_EVENTS 256
struct urxe_kept_event {
	_Atomic uint64_t word, element;
};

/* ------------------------------------------------ an arena */

#define URXE_ARENA_MAGIC "urxe arena file" /* 16 bytes including the NUL */
/* with the size, identifies a cmd_fd in fstat() */
#define URXE_ARENA_MODE 01600
#define URXE_ARENA_SIZE (1ull << 30) /* sparse; parts are reserved on use */

/*
 * Keys: lkey == rkey == context slot (9) | table index (15) | tag (8).
 * ibv_inc_rkey increments the tag.  Index 0 is never used.
 */
#define URXE_KEY_TAG(key) ((key) & 0xff)
#define URXE_KEY_ENTRY(key) ((key) >> 8) /* the key without its tag */
#define URXE_KEY_INDEX(key) (((key) >> 8) & (URXE_MAX_KEY - 1))
#define URXE_KEY_CTX(key) ((key) >> 23)
#define URXE_KEY_WITH_TAG(key, tag) (((key) & ~0xffu) | URXE_KEY_TAG(tag))
#define URXE_KEY(ctx, index, tag) \
	((uint32_t)(ctx) << 23 | (uint32_t)(index) << 8 | (uint8_t)(tag))

/* Kind of an MR's memory, which decides how it is accessed. */
enum urxe_mem_kind {
	URXE_MEM_PRIVATE, /* memory of process pid, accessed by its address */
	URXE_MEM_DM, /* in the DM heap, at offset va */
	URXE_MEM_FILE, /* shared mapping of a file that peers may map, too */
	/* the null MR: reads return zero, writes are ignored */
	URXE_MEM_NULL,
};

/* Access flags that the installed verbs header may not define yet. */
#define URXE_ACCESS_FLUSH_GLOBAL (1u << 8)
#define URXE_ACCESS_FLUSH_PERSISTENT (1u << 9)

#define URXE_MR_IS_MW 1u /* a memory window */
#define URXE_MR_TYPE_2 2u /* MW of type 2 */
#define URXE_MR_ODP 4u /* on-demand paging: no check at registration */
#define URXE_MR_FILE 8u /* `file` is an index in the file table */
#define URXE_MR_FOREIGN 16u /* pid is in arena.other_pidns, not in pidns */
#define URXE_MR_SHARED 32u /* other processes may map its pages */

/*
 * Key table entry: a memory region or a memory window, in one cache line.
 *
 * `live` is the key with bit 32 set while the entry may be used, otherwise 0.
 * Registration stores it last (release).  Deregistration clears it first
 * (seq_cst), then waits until no raised guard names the key (guard.h).
 */
struct urxe_key {
	_Atomic uint64_t live;
	uint64_t iova; /* address of the first byte in work requests */
	uint64_t length;
	uint64_t va; /* address in process pid, or offset in the DM heap */
	uint32_t pd; /* PD handle */
	uint32_t access; /* enum ibv_access_flags, URXE_ACCESS_* */
	int32_t pid; /* process that registered it */
	uint8_t kind; /* enum urxe_mem_kind */
	uint8_t flags; /* URXE_MR_* */
	uint16_t file; /* URXE_MR_FILE: index in the arena's file table */
	union {
		_Atomic uint32_t windows; /* MR: number of MWs bound to it */
		uint32_t qpn; /* MW of type 2: the QP it is bound to */
	};
	union {
		uint32_t dm; /* MR, URXE_MEM_DM: 1 + DM slot */
		uint32_t parent; /* MW: key of its MR, 0: not bound */
	};
	uint64_t file_offset; /* URXE_MR_FILE: offset of the first byte */
};
static_assert(sizeof(struct urxe_key) == 64, "one cache line");

#define URXE_MR_LIVE(key) (1ull << 32 | (key))
/*
 * The live word of a window while its unbind waits for requesters.  n makes
 * each unbind distinct.
 */
#define URXE_MR_LEAVING(n) ((uint64_t)(n) << 33)

/* A file whose pages an MR of this arena shares (copy path 2). */
#define URXE_MAX_FILES 1024
#define URXE_FILE_PATH 224 /* including the NUL */
struct urxe_file {
	/*
	 * URXE_FILE_REFS(): made | number of MRs on the file; 0: free.
	 * `made` is 0 if the entry was never used.  It is incremented when
	 * the last MR is gone and no guard protects the pages any more; peers
	 * then unmap the file.
	 */
	_Atomic uint64_t refs;
	int32_t pid, fd; /* opened as /proc/pid/fd/fd */
	uint64_t dev, ino;
	/* opened by this path if it is not empty */
	char path[URXE_FILE_PATH];
};
static_assert(sizeof(struct urxe_file) == 256, "fixed");
#define URXE_FILE_REFS(made, refs) ((uint64_t)(made) << 32 | (refs))
#define URXE_FILE_MADE(word) ((uint32_t)((word) >> 32))
#define URXE_FILE_COUNT(word) ((uint32_t)(word))

/* A completion queue entry.  cq_ring.h describes the protocol of `word`. */
#define URXE_CQE_INLINE 80
#define URXE_CQE_SRQ 0x80 /* a receive from an SRQ */
/*
 * In wc_flags: a datagram that arrived over IPv4; one that arrived by RoCE
 * v1; a completion for which a CQ armed for solicited events only is
 * notified.
 */
#define URXE_CQE_IPV4 0x80
#define URXE_CQE_ROCE_V1 0x20
#define URXE_CQE_SOLICITED 0x40
#define URXE_CQE_OWN_FLAGS \
	(URXE_CQE_IPV4 | URXE_CQE_ROCE_V1 | URXE_CQE_SOLICITED)
struct urxe_cqe {
	_Atomic uint64_t word;
	uint64_t wr_id;
	/* ns, CLOCK_REALTIME; 0 unless the CQ has timestamps */
	uint64_t timestamp;
	uint32_t qpn;
	uint32_t byte_len;
	uint32_t imm; /* network order, or the invalidated rkey */
	uint32_t src_qp;
	uint32_t wqe; /* what it releases: SQ or RQ index, or URXE_WQE_SRQ */
	uint8_t status, opcode;
	uint8_t wc_flags; /* enum ibv_wc_flags and URXE_CQE_OWN_FLAGS */
	uint8_t inline_len; /* bytes in data, and URXE_CQE_SRQ */
	/*
	 * Payload of small messages.  The poller copies it to the receive
	 * buffer.
	 */
	uint8_t data[URXE_CQE_INLINE];
};
static_assert(sizeof(struct urxe_cqe) == 128, "two cache lines");

enum urxe_arm { URXE_ARM_NONE, URXE_ARM_SOLICITED, URXE_ARM_NEXT };
/*
 * State of a CQ's notification request in one word: enum urxe_arm,
 * URXE_ARM_KNOWS, and with that flag the ring position up to which the
 * program had seen completions when it armed the CQ.
 */
#define URXE_ARM_KIND(word) ((word) & 3)
#define URXE_ARM_KNOWS 4u
#define URXE_ARM_KNOWING(pos) (URXE_ARM_NEXT | URXE_ARM_KNOWS | (pos) << 3)
/* True if the CQ was armed after the program saw the completion at pos. */
#define URXE_ARM_KNEW(word, pos) \
	((word) & URXE_ARM_KNOWS && (int32_t)(((pos) << 3) - ((word) & ~7u)) < 0)

/*
 * A CQ ring in one word: offset in the arena | URXE_CQ_PARITY |
 * log2(entries).  The parity changes with each resize and selects the ring's
 * tail_hint, head_seen and head.
 */
#define URXE_CQ_RING(offset, log) ((offset) | (log))
#define URXE_CQ_LOG(word) ((uint32_t)(word) & 31)
#define URXE_CQ_MAX_LOG 18
#define URXE_CQ_PARITY 32u
/* index in tail_hint[] */
#define URXE_CQ_HINT(word) (!!((word) & URXE_CQ_PARITY))
static_assert(URXE_MAX_CQE <= 1 << URXE_CQ_MAX_LOG,
	      "URXE_CQ_MAX_LOG is too small");
#define URXE_CQ_OFFSET(word) ((word) & ~(uint64_t)(URXE_PAGE - 1))

struct urxe_cq_sh {
	/* read-mostly line */
	_Atomic uint32_t live; /* 0: free, else 1 */
	uint32_t channel; /* FIFO number + 1; 0: no completion channel */
	_Atomic uint64_t ring;
	uint64_t tag; /* tag in its events: event_tag.h */
	/* 1: a peer changed a QP; the poller checks all of them */
	_Atomic uint32_t attention;
	_Atomic uint32_t error; /* 1: overrun, no more completions */
	uint32_t flags; /* URXE_CQ_* */
	int32_t pid;
	uint32_t async_fifo; /* FIFO number + 1 */
	/* event moderation: URXE_MODERATE(); 0: off */
	_Atomic uint32_t moderate;
	_Atomic uint64_t next_ring; /* successor of a ring that was resized */
	/* written by producers; of both rings, see URXE_CQ_HINT() */
	alignas(URXE_LINE) _Atomic uint32_t tail_hint[2];
	_Atomic uint32_t head_seen[2];
	/* URXE_ARM_KIND() and more */
	alignas(URXE_LINE) _Atomic uint32_t arm;
	/* events that the owner must write to the FIFO */
	_Atomic uint32_t pending_events;
	_Atomic uint32_t comp_events; /* events written to the FIFO so far */
	_Atomic uint32_t comp_fetched; /* events read from the FIFO so far */
	_Atomic uint32_t held_back; /* completions held back by moderation */
	/* written by the poller */
	alignas(URXE_LINE) _Atomic uint32_t head[2];
};
#define URXE_MODERATE(count, us) ((uint32_t)(us) << 16 | (uint16_t)(count))
#define URXE_MODERATE_COUNT(m) ((uint16_t)(m))
#define URXE_MODERATE_US(m) ((m) >> 16)
#define URXE_CQ_TIMESTAMP 1u
#define URXE_CQ_IGNORE_OVERRUN 2u
static_assert(sizeof(struct urxe_cq_sh) == 256, "an index is a shift");

/*
 * A posted receive.  A slot is this header and max_sge SGEs.  The owner may
 * repost into the slot while another process reads it: see rq_ring.h.
 */
struct urxe_recv_sge {
	_Atomic uint64_t addr;
	_Atomic uint32_t length, lkey;
};
struct urxe_recv {
	_Atomic uint64_t wr_id;
	_Atomic uint16_t num_sge;
	/* used where several consumers take receives */
	_Atomic uint16_t ticket;
	struct urxe_recv_sge sge[];
};

/* A receive ring: the RQ of a QP, or an SRQ.  See rq_ring.h. */
struct urxe_rq_sh {
	/* offset in the arena | log2(slots); 0: no receive queue */
	_Atomic uint64_t ring;
	/* SGEs of each receive, which gives the slot size */
	uint32_t max_sge;
	/*
	 * Waiting requesters, to be woken by the next post: 0, 1 + slot of
	 * the context to wake, or URXE_WAIT_MANY.  It is rarely written and
	 * so is kept off the cache lines that are written for each message.
	 */
	_Atomic uint32_t waiter;
	alignas(URXE_LINE) _Atomic uint32_t prod; /* written by the owner */
	/* written by the process that delivers */
	alignas(URXE_LINE) _Atomic uint32_t cons;
	_Atomic uint32_t done; /* delivered and published */
};
static_assert(sizeof(struct urxe_rq_sh) == 192, "fixed");

/*
 * The shared state of a QP, which peers read.
 *
 * conn tells in one word whether a requester may execute on this QP, and
 * which requester: own QPN (24) | destination QPN (24) << 24 | state (8) <<
 * 48.  It is 0 if the slot is free.  The owner stores it.  A requester that
 * must break the connection (a NAK) changes the state to IBV_QPS_ERR by
 * compare-and-swap.
 */
#define URXE_CONN(qpn, dest, state) \
	((uint64_t)(qpn) | (uint64_t)(dest) << 24 | (uint64_t)(state) << 48)
#define URXE_CONN_QPN(c) ((uint32_t)((c) & URXE_QPN_MASK))
#define URXE_CONN_DEST(c) ((uint32_t)((c) >> 24 & URXE_QPN_MASK))
#define URXE_CONN_STATE(c) ((uint8_t)((c) >> 48))
#define URXE_CONN_ENDS ((1ull << 48) - 1) /* both QPNs */
#define URXE_CONN_WITH(c, state) \
	(((c) & URXE_CONN_ENDS) | (uint64_t)(state) << 48)

/*
 * Operations that completion counters count, with libibverbs' numbers of the
 * mask bits.
 */
enum urxe_cntr_op {
	URXE_CNTR_SEND,
	URXE_CNTR_RECV,
	URXE_CNTR_READ,
	URXE_CNTR_REMOTE_READ,
	URXE_CNTR_WRITE,
	URXE_CNTR_REMOTE_WRITE,
	URXE_CNTR_OPS
};
#define URXE_CNTR_ALL ((1u << URXE_CNTR_OPS) - 1)

/*
 * A completion counter of the arena.  The process that completes an operation
 * of an attached QP, its owner or a requester, adds to it.  It adds after the
 * bytes are in place (release) and before the completion is published.
 */
struct urxe_comp_cntr {
	alignas(URXE_LINE) _Atomic uint64_t done; /* WRs or bytes */
	_Atomic uint64_t failed; /* WRs */
	uint32_t bytes; /* 1: counts the bytes of successful operations */
};

/*
 * What the send queue of a QP waits for.  It is read by diagnostic tools only
 * and controls nothing.  The owner writes it under the QP's lock, and only
 * while the queue waits.  Before head, wr_id, opcode and since change, `what`
 * is set to 0; it is stored after them (release).  The other members change
 * during the wait.
 */
enum urxe_wait_for {
	URXE_WAIT_NOTHING,
	URXE_WAIT_RECEIVE, /* RNR: the responder has none */
	URXE_WAIT_ANSWER, /* the responder does not respond */
	URXE_WAIT_SQD, /* for the QP to leave SQD */
	URXE_WAIT_FLIGHT, /* its transport has it in flight */
	URXE_WAIT_KINDS
};

/*
 * Whether the last ibv_post_send failed because the send queue was full, and
 * why.
 */
enum urxe_full {
	URXE_FULL_NOT,
	URXE_FULL_UNPOLLED, /* unpolled completions occupy the slots */
	URXE_FULL_UNSIGNALED, /* unsignaled WRs: no completion frees a slot */
};

#define URXE_WAIT_ENDLESS 255 /* value of left */
#define URXE_WAIT_FENCED 1u /* flags: the first WR not begun has a fence */
struct urxe_wait {
	_Atomic uint32_t what; /* enum urxe_wait_for */
	_Atomic uint32_t head; /* ordinal of the WR that waits */
	_Atomic uint32_t queued; /* number of WRs from head on */
	_Atomic uint8_t opcode, left, flags; /* left: remaining retries */
	_Atomic uint64_t wr_id;
	/* clock_now(); until: the next retry */
	_Atomic uint64_t since, until;
	_Atomic uint32_t full; /* enum urxe_full */
	_Atomic uint32_t full_at; /* ordinal of the WR that was refused */
	_Atomic uint64_t full_since;
};
static_assert(sizeof(struct urxe_wait) == 56, "fixed");

#define URXE_PATH_QP (1u << 16) /* one more QP in this slot */
#define URXE_PATH_QPS(path) ((path) / URXE_PATH_QP)
struct urxe_qp_sh {
	_Atomic uint64_t conn;
	uint64_t tag; /* tag in its events: event_tag.h */
	uint32_t pd;
	uint32_t send_cq, recv_cq; /* index in the arena's CQ table */
	uint32_t srq; /* index + 1 in the arena's SRQ table; 0: none */
	_Atomic uint32_t access; /* enum ibv_access_flags */
	_Atomic uint32_t qkey;
	_Atomic uint8_t type; /* enum ibv_qp_type */
	_Atomic uint8_t min_rnr_timer;
	_Atomic uint8_t max_dest_rd_atomic;
	_Atomic uint8_t path_mtu; /* enum ibv_mtu */
	int32_t pid;
	uint32_t async_fifo; /* FIFO number + 1 */
	uint32_t xrcd;
	_Atomic uint32_t sq_psn; /* for diagnostic tools */
	/*
	 * Number of changes of path_mtu, GIDs and access, over all QPs of the
	 * slot.
	 */
	_Atomic uint32_t path;
	/*
	 * Written by the connected requester: the next PSN expected; above
	 * it: wire.h.
	 */
	alignas(URXE_LINE) _Atomic uint32_t epsn;
	_Atomic uint32_t comm_est; /* 1: the event was raised */
	_Atomic uint32_t last_wqe; /* 1: the event was raised */
	/* XRC target: handles of the creator and of openers */
	_Atomic uint32_t handles;
	/* bits 1 << enum urxe_cntr_op: a counter is attached */
	_Atomic uint32_t counts;
	/* index in the arena's table; 0: none */
	_Atomic uint16_t cntr[URXE_CNTR_OPS];
	/* added with the port's counters; for diagnostic tools */
	_Atomic uint64_t sent_bytes;
	struct urxe_rq_sh rq;
	/* GIDs of the path, as its owner set them */
	struct urxe_shared_gid sgid, dgid;
	_Atomic uint8_t roce; /* RoCE version of sgid_index */
	_Atomic uint8_t wire; /* 1: arena.wire[] has memory for it */
	/* what broke the QP, and why */
	struct urxe_kept_reason broken;
	struct urxe_wait wait;
};
static_assert(sizeof(struct urxe_qp_sh) == 512, "an index is a shift");

/* SRQ number: context slot (9) << 12 | index in its SRQ table (12). */
#define URXE_SRQN(ctx, index) ((uint32_t)(ctx) << 12 | (index))
#define URXE_SRQN_CTX(n) ((n) >> 12)
#define URXE_SRQN_INDEX(n) ((n) & (URXE_MAX_SRQ - 1))
#define URXE_WAIT_MANY UINT32_MAX

/*
 * urxe_cqe.wqe of a receive from an SRQ: ticket (20) << 12 | SRQ index (12).
 * A ticket is less than the SRQ's max_wr, so 14 of its bits are used.
 */
#define URXE_WQE_SRQ(index, ticket) ((uint32_t)(ticket) << 12 | (index))
#define URXE_WQE_INDEX(wqe) ((wqe) & (URXE_MAX_SRQ - 1))
#define URXE_WQE_TICKET(wqe) ((wqe) >> 12)
static_assert(URXE_WQE_TICKET(URXE_WQE_SRQ(URXE_MAX_SRQ - 1,
					   URXE_MAX_SRQ_WR - 1)) ==
		      URXE_MAX_SRQ_WR - 1,
	      "fits in urxe_cqe.wqe");
static_assert(URXE_MAX_SRQ_WR - 1 <= UINT16_MAX &&
		      URXE_MAX_QP_WR - 1 <= UINT16_MAX,
	      "fits in urxe_recv.ticket");

struct urxe_srq_sh {
	_Atomic uint32_t live; /* 0: free, else the value of made */
	uint32_t pd;
	uint32_t type; /* enum ibv_srq_type */
	uint32_t xrcd, cq;
	uint32_t async_fifo;
	int32_t pid;
	_Atomic uint32_t limit;
	uint64_t tag; /* tag in its events: event_tag.h */
	/* number of SRQs made in this slot, since SRQ numbers are reused */
	uint32_t made;
	struct urxe_rq_sh rq;
	uint8_t pad[256];
};
static_assert(sizeof(struct urxe_srq_sh) == 512, "an index is a shift");

struct urxe_pd_sh {
	_Atomic uint32_t live; /* counter: odd while the PD exists */
	_Atomic uint32_t refs; /* objects on it; imports do not count */
};

/*
 * Copy path 4: bounce buffers.  If the system denies a requester access to a
 * process's private memory, that process's bouncer copies for it.
 * bounce_slot.h describes the protocol.
 */
#define URXE_BOUNCERS 8 /* processes per context with a bouncer */
#define URXE_MEMBERS 64 /* processes per context without one */
#define URXE_BOUNCE_SLOTS 8
#define URXE_BOUNCE_BYTES 65536
#define URXE_BOUNCE_RANGES 128

enum urxe_bounce_op {
	URXE_BOUNCE_PING, /* check that the thread responds */
	URXE_BOUNCE_WRITE, /* from the slot into memory */
	URXE_BOUNCE_READ, /* from memory into the slot */
	URXE_BOUNCE_PERSIST, /* sync the file of range[0].key */
};

enum urxe_bounce_wanted {
	URXE_BOUNCE_UNWANTED,
	URXE_BOUNCE_WANTED,
	URXE_BOUNCE_REFUSED, /* there was no memory for it */
};

/* The bouncer: a thread that copies for other processes. */
struct urxe_bouncer {
	/* process id (struct urxe_process); 0: none, or it has ended */
	alignas(URXE_LINE) _Atomic uint32_t owner;
	_Atomic int32_t pid; /* 0: never used */
	_Atomic uint32_t foreign; /* 1: pid is in other_pidns */
	/* process id of an owner that was found dead */
	_Atomic uint32_t gone;
	/* written by requesters, which wake the thread here */
	alignas(URXE_LINE) struct event_count wake;
	/* whether a ring is wanted; enum urxe_bounce_wanted */
	_Atomic uint32_t wanted;
	/* 1: it does not respond; the thread clears it */
	_Atomic uint32_t stuck;
	/* Written by the thread: slots of the ring; 0: none yet. */
	alignas(URXE_LINE) _Atomic uint32_t slots;
	_Atomic uint32_t progress; /* number of requests served */
	struct presence at_work; /* in-use flag: it accesses memory */
	_Atomic uint32_t cpu; /* CPU + 1 that it is bound to; 0: none */
};

struct urxe_bounce_range {
	uint64_t va; /* in the bouncer's process */
	uint32_t length, key;
};

struct urxe_bounce_slot {
	alignas(URXE_LINE) _Atomic uint64_t word;
	struct event_count answered; /* the requester waits for it */
	uint32_t op; /* enum urxe_bounce_op */
	/* number of ranges; their bytes are in data, in order */
	uint32_t count;
	uint32_t error; /* result: 0 or errno */
	uint32_t done; /* result: bytes copied */
	uint32_t cpu; /* CPU + 1 of the waiting requester; a hint */
	uint64_t posted; /* when it was posted, CLOCK_MONOTONIC; a hint */
	/* index of the predecessor */
	_Atomic uint32_t after_slot;
	/*
	 * BOUNCE_ID of the predecessor, which must have succeeded before this
	 * slot is served; 0: none
	 */
	_Atomic uint64_t after;
	struct urxe_bounce_range range[URXE_BOUNCE_RANGES];
};

struct urxe_bounce_ring {
	struct urxe_bounce_slot slot[URXE_BOUNCE_SLOTS];
	alignas(URXE_PAGE) char data[URXE_BOUNCE_SLOTS][URXE_BOUNCE_BYTES];
};

#define URXE_HEAP_OFFSET (48ull << 20)
#define URXE_HEAP_PAGES ((URXE_ARENA_SIZE - URXE_HEAP_OFFSET) / URXE_PAGE)
static_assert(URXE_HEAP_PAGES % 64 == 0, "whole words");

/*
 * Allocator of receive rings of at most half a page, in units of 1/16 page.
 * No ring crosses the end of a page.
 */
#define URXE_SMALL_UNIT 256
#define URXE_SMALL_UNITS 32768
#define URXE_SMALL_MAX (URXE_PAGE / 2)

/*
 * Ring of recent failures, for urxe why: WRs of this context that failed,
 * except flushed ones, and requests of other QPs that QPs of this context
 * refused.  The QP may be gone.
 */
#define URXE_FAILED 16 /* entries */
struct urxe_failed {
	struct urxe_kept_reason why;
	_Atomic uint32_t qpn; /* QP of this context */
	_Atomic uint32_t nth; /* sequence number, from 1 */
	_Atomic uint64_t at; /* clock_now() */
};

struct urxe_arena {
	char magic[16];
	uint32_t version;
	uint32_t slot, gen;
	int32_t pid; /* PID of the opener */
	uint64_t pidns; /* inode of its PID namespace; 0: unknown */
	char comm[16];
	/* process id of the opener, once it uses the context */
	_Atomic uint32_t opener;
	/*
	 * Process ids of others that registered memory: children and
	 * importers, dead or alive.
	 */
	_Atomic uint32_t member[URXE_MEMBERS];
	/*
	 * PID namespace of importers in another namespace, the same for all
	 * of them; 0: none so far
	 */
	_Atomic uint64_t other_pidns;
	/* wakes service threads */
	alignas(URXE_LINE) struct event_count wake;
	/*
	 * 1: a destroyer has waited long for a guard of this context; recheck
	 * them
	 */
	_Atomic uint32_t check_guards;
	/* 1: a file that the context may have mapped has no MR left */
	_Atomic uint32_t files_unused;
	/* contexts whose processes mapped files of this one */
	uint64_t mappers[URXE_MAX_CTX / 64];
	alignas(URXE_LINE) struct robust_lock lock; /* for the key table */
	/* 1: some pending_events or entries of kept[] wait */
	_Atomic uint32_t kept_events;
	struct urxe_kept_event kept[URXE_KEPT_EVENTS];
	/* 1: all async events go to kept[], and the owner writes them */
	_Atomic uint32_t keeps_async;
	_Atomic uint32_t async_fifo; /* FIFO number + 1, of the opener */
	_Atomic uint32_t failed_next; /* sequence number */
	struct urxe_failed failed[URXE_FAILED];
	_Atomic uint32_t key_high; /* key table entries that have memory */
	/* incremented before a key becomes live */
	_Atomic uint32_t keys_made;
	uint32_t key_next; /* under lock */
	_Atomic uint32_t heap_next;
	uint32_t leaving; /* windows unbound so far; under lock */
	_Atomic uint8_t key_tag[URXE_MAX_KEY]; /* written under the lock */
	uint64_t key_map[URXE_MAX_KEY / 64];
	/* MWs; valid where key_map is */
	uint64_t window_map[URXE_MAX_KEY / 64];
	uint64_t cq_map[URXE_MAX_CQ / 64];
	uint64_t srq_map[URXE_MAX_SRQ / 64];
	uint64_t comp_cntr_map[URXE_MAX_COMP_CNTR / 64];
	uint64_t heap_map[URXE_HEAP_PAGES / 64];
	uint64_t small_map[URXE_SMALL_UNITS / 64];
	struct urxe_pd_sh pd[URXE_MAX_PD];
	struct urxe_bouncer bouncer[URXE_BOUNCERS];
	/* The tables below are sparse: pages are reserved when first used. */
	alignas(URXE_PAGE) struct urxe_file file[URXE_MAX_FILES];
	struct urxe_key key[URXE_MAX_KEY];
	struct urxe_cq_sh cq[URXE_MAX_CQ];
	struct urxe_qp_sh qp[URXE_MAX_QP];
	struct urxe_srq_sh srq[URXE_MAX_SRQ];
	struct urxe_comp_cntr comp_cntr[URXE_MAX_COMP_CNTR];
	alignas(URXE_PAGE) char small[URXE_SMALL_UNITS][URXE_SMALL_UNIT];
	/* ring[i] is reserved when bouncer[i] is first needed */
	alignas(URXE_PAGE) struct urxe_bounce_ring ring[URXE_BOUNCERS];
	struct urxe_wire_qp wire[URXE_MAX_QP]; /* wire.h */
};
static_assert(sizeof(struct urxe_wire_qp) == 1024, "an index is a shift");
static_assert(sizeof(struct urxe_arena) <= URXE_HEAP_OFFSET, "fits");
