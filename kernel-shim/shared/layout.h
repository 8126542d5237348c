/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What lies in shared memory, byte for byte.
 *
 * A fabric is a directory:
 *
 *   device          struct urxe_dev: the device segment, one per fabric
 *   procs           empty: its locks say which processes live (process.h)
 *   dm              the device-memory heap (or a file on a hugetlbfs mount)
 *   ctx/S.G         struct urxe_arena: one per opened context; slot S,
 *                   generation G.  The file descriptor of it is the verbs
 *                   "cmd_fd", and its OFD lock says that the context lives
 *   ev/S.G.N        FIFOs: completion channels and async event channels
 *   sys/, dev/      what sysfs and /dev would show (written by the preload
 *                   library)
 *
 * Only offsets and indices, never pointers.  Every value a reader takes from here
 * may have been written by a process that is dying or broken: bound it before
 * use.
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
 * Every change of what is shared makes another version: the build makes it
 * from the text of all headers in kernel-shim/shared and kernel-shim/base.
 * So what is shared, and how it is used, is said there and nowhere else.
 */
extern const uint32_t urxe_layout_version;

#define URXE_LINE 64 /* keeps writers apart; a hint, not an assumption */
#define URXE_PAGE 4096 /* unit of both allocators, whatever the CPU's page */

/*
 * Device limits.  What ibv_query_device reports is what is enforced: of QPs,
 * XRC domains and device memory for the fabric, of other objects for each
 * context.
 */
#define URXE_MAX_CTX 512 /* 9 bits of every lkey and rkey */
#define URXE_MAX_PROCESS 4096 /* 12 bits of a process's id */
#define URXE_GEN_MASK 0x7fffffffu /* generations of a slot have 31 bits */
#define URXE_MAX_QP 8192 /* 13 bits of every QPN */
#define URXE_MAX_CQ 8192
#define URXE_MAX_SRQ 4096
#define URXE_MAX_PD 8192
#define URXE_MAX_KEY 32768 /* MRs and MWs of one context: 15 bits of a key */
#define URXE_MAX_MR (URXE_MAX_KEY - 1) /* fewer if there are MWs ... */
#define URXE_MAX_MW (URXE_MAX_KEY - 1) /* ... and the other way round */
#define URXE_MAX_AH INT32_MAX /* they are in no table */
#define URXE_MAX_XRCD 256
#define URXE_MAX_COMP_CNTR 4096
#define URXE_MAX_DM 16384 /* as many as the heap has units: URXE_DM_UNIT */
#define URXE_MAX_GID 256 /* as ConnectX: 2 for each address */
#define URXE_MAX_MCAST_GRP 256
#define URXE_MAX_MCAST_ATTACH 64 /* QPs per group */
#define URXE_MAX_QP_WR 16384
#define URXE_MAX_CQE 262144 /* what libfabric asks for by default */
#define URXE_MAX_SRQ_WR 16384
#define URXE_MAX_SGE 32
#define URXE_MAX_INLINE 1024
#define URXE_MAX_RD_ATOM 16
#define URXE_MAX_MSG (1u << 30)
#define URXE_NUM_COMP_VECTORS 8
#define URXE_QPN_MASK 0xffffffu /* QP numbers have 24 bits ... */
#define URXE_PSN_MASK 0xffffffu /* ... and so have packet sequence numbers */
#define URXE_MCAST_QPN 0xffffffu /* IB 10.5: datagrams to a multicast group */
#define URXE_DM_MAX_BYTES (1ull << 30)
/* In pages: device memory is used up before its slots are, of any heap */
#define URXE_DM_UNIT(heap_pages) \
	(((uint32_t)(heap_pages) + URXE_MAX_DM - 1) / URXE_MAX_DM)
#define URXE_DM_FIRST 1024 /* slots that have memory from the first on */

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

/* How fstat knows a channel of the CM, stand-ins, unreadable attributes. */
#define CM_FIFO_MODE (S_IFIFO | 01600)
#define TREE_CDEV_MODE (S_IFREG | 01600)
#define TREE_CDEV_SIZE 0x7578
#define TREE_CM_SIZE 0x7579 /* /dev/infiniband/rdma_cm */
#define TREE_EINVAL_MODE (S_IFREG | 01400) /* an empty GID slot */
#define URXE_ARENA_NAME "ctx/%u.%u" /* slot, generation */
#define URXE_FIFO_NAME "ev/%u.%u.%u" /* ... and number */
#define URXE_FIFO_NASCENT '+' /* behind that: nobody reads it yet */

/* ------------------------------------------------ the device segment */

#define URXE_DEV_MAGIC "urxe device seg" /* 16 bytes with its NUL */

/* OPENING, REAPING: by process `worker`; if that is dead, another one reaps. */
enum urxe_ctx_state {
	URXE_CTX_FREE,
	URXE_CTX_OPENING,
	URXE_CTX_LIVE,
	URXE_CTX_REAPING,
};

/*
 * One opened context.  It is claimed, to be opened or reaped, under dev.lock;
 * readers without the lock compare gen before and after.  used[] counts this
 * context's objects so that a reaper can give them back to dev.used[].
 */
struct urxe_ctx_slot {
	_Atomic uint32_t state;
	_Atomic uint32_t gen;
	_Atomic uint32_t worker;
	_Atomic int32_t pid;
	_Atomic uint32_t used[URXE_OBJ_COUNT];
	_Atomic uint32_t next_fifo; /* number of the next one it makes */
	char comm[16];
};

/*
 * A process of the fabric, more exactly: an address space of one; a process
 * has two, the provider's and the preload library's.  Its number in the table is
 * its own while it holds the lock of byte `number` of the file procs, as an
 * open file description that only a mapping keeps, which a forked child does
 * not inherit: so the lock falls when the address space ends, whoever has
 * copies of its descriptors.  No PID is compared, for those have a meaning in
 * one PID namespace only and are used again.
 *
 * Who got the lock counts `uses` up: a number that is used again is another id,
 * and that alone says that who had it before is dead.
 */
struct urxe_process {
	alignas(2 * URXE_LINE) _Atomic uint32_t uses; /* 19 bits */
	_Atomic int32_t pid; /* in its own namespace ... */
	_Atomic uint64_t pidns; /* ... which is this one; 0: unknown */
	_Atomic uint64_t netns; /* inode of its network namespace */
	pthread_mutex_t life, exec; /* see process_seems_alive() */
	char comm[16]; /* for messages */
};
static_assert(URXE_PAGE % sizeof(struct urxe_process) == 0,
	      "it is mapped in one page");

/* An id: number (12) | uses (19) << 12; never 0.  Bit 31 is the locks'. */
#define URXE_PROCESS(number, uses) ((uint32_t)(uses) << 12 | (number))
#define URXE_PROCESS_NUMBER(id) ((id) & (URXE_MAX_PROCESS - 1))
#define URXE_PROCESS_USES(id) ((id) >> 12)
#define URXE_PROCESS_MAX_USES (1u << 19)

/*
 * Is that process surely alive?  A thread of it holds `life`, a robust mutex that
 * nobody else ever locks: when the thread ends, and be it killed, the kernel
 * takes its TID out of the word, before its process can be waited for and its
 * PID be used again.  So what a load sees here was true at that moment.  False
 * says nothing if the thread ended and its process did not.
 *
 * `uses` is looked at last: who has the number next wrote it before his TIDs.
 *
 * If that very thread calls exec(2) it has the TID of the process's first thread
 * by the time the kernel looks, and `life` is not found to be its.  So it has
 * `exec`, too, in whose word it writes that other TID.
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

/* The number and 12 bits of uses, where there is no room for more. */
#define URXE_PROCESS_BRIEF(id) ((id) & 0xffffff)

enum urxe_port_state { URXE_PORT_DOWN = 1, URXE_PORT_ACTIVE = 4 };

/*
 * A row of the GID table: an address.  It has two entries, as ConnectX orders
 * them: index 2 * row is its RoCE v1 one and the next its RoCE v2 one.
 * Written under dev.lock; valid is stored last.
 */
struct urxe_gid {
	uint8_t raw[16];
	_Atomic uint32_t valid;
	uint32_t ifindex;
	char ifname[16];
	uint64_t netns; /* where that interface is: inode of the namespace */
};

#define URXE_GID_ROWS (URXE_MAX_GID / 2)
#define URXE_GID_ROW(index) ((uint8_t)(index) / 2)
#define URXE_GID_TYPE(index) ((index) % 2 + 1) /* enum ibv_gid_type */
#define URXE_ROCE_V1 1
#define URXE_ROCE_V2 2
#define URXE_GID_INDEX(row, type) ((row) * 2 + (type) - 1)
static_assert(URXE_MAX_GID - 1 <= UINT8_MAX, "sgid_index has 8 bits");

enum urxe_dm_kind {
	URXE_DM_UNUSED, /* no device memory was allocated yet */
	URXE_DM_HUGETLB,
	URXE_DM_COLLAPSED, /* tmpfs, MADV_COLLAPSE */
	URXE_DM_ADVISED, /* tmpfs, MADV_HUGEPAGE accepted */
	URXE_DM_SMALL
};

/* Where the heap's file is, which the first one decides who needs it. */
enum urxe_dm_home {
	URXE_DM_UNDECIDED,
	URXE_DM_HERE, /* "dm" in the fabric's directory */
	URXE_DM_PATH, /* dm_path, on a hugetlbfs */
};

/*
 * Pages that an MR reaches through an exported descriptor are two pieces: the
 * program's own, and the MR's, which is of the context that registered it.  They
 * go back with the one that goes last.
 */
enum urxe_dm_share {
	URXE_DM_ALONE,
	URXE_DM_SHARED, /* there are, or were, others with the same pages ... */
	URXE_DM_OF_MR, /* ... and it goes with its one MR */
};

/*
 * A piece of device memory.  It is made and given back in two steps under
 * dev.lock, between which its pages are reserved or given to the system: then
 * the slot is used and has its pages, and refs counts 0.
 */
struct urxe_dm_slot {
	_Atomic uint32_t used; /* 0, or 1 + context slot of the owner */
	uint32_t ctx_gen;
	uint64_t offset, length; /* in the heap; offset is page aligned */
	/*
	 * URXE_DM_REFS(): how often the slot was used | 1 + MRs registered on
	 * it, 0 until it is made and from when it is freed.  In one word, so that who registers
	 * has it, or who frees.
	 */
	_Atomic uint64_t refs;
	uint32_t pages; /* heap pages it holds; 0: others have them */
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
 * The port's counters, as sysfs shows them.  Relaxed adds by whoever
 * moves the bytes; only flushed from per-QP counts, never per message.
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
	URXE_CNT_ACK_DEFERRED, /* an answer behind one that is not looked at */
	URXE_CNT_RETRY_EXC,
	URXE_CNT_RNR_EXC,
	URXE_CNT_COMP_RETRY, /* what was out went out again */
	URXE_CNT_SEND_ERR, /* packets that the system did not take */
	URXE_CNT_LINK_DOWNED,
	URXE_CNT_SENDS, /* SENDs that completed, on the wire */
	URXE_CNT_RECVS, /* receives that did */
	URXE_CNT_ICRC,
	URXE_CNT_ECN_MARKED,
	URXE_CNT_CNP_SENT,
	URXE_CNT_CNP_HANDLED,
	URXE_CNT_MALFORMED, /* no packets of RoCE, but for their ICRC */
	URXE_CNT_UNCLAIMED, /* for no QP that hears that host, or a down port */
	URXE_CNT_SOCKET_LOST, /* the socket had no room */
	URXE_CNT_INBOX_LOST, /* a QP's inbox had none */
	URXE_CNT_BAD_PKEY, /* ibv_query_port alone tells: this one ... */
	URXE_CNT_BAD_QKEY, /* ... and that one */
	URXE_CNT_COUNT
};

/*
 * What is counted on the wire, by whom: a process has two rows, one for its
 * requesters and one for what it does as the holder, so that who sends and who
 * receives do not write to one cache line.  Several processes may have the same
 * row.  Relaxed adds; the sum of all rows and of dev.counter[] is the counter
 * (counter_read).  Rows are never cleared.
 */
#define URXE_WIRE_COUNTS 64
struct urxe_wire_counts {
	alignas(URXE_LINE) _Atomic uint64_t of[URXE_CNT_COUNT];
};

/*
 * An XRC domain.  Named by a file, it is one for all who open that file;
 * without a file it is its opener's alone (ino 0).
 */
struct urxe_xrcd_slot {
	_Atomic uint32_t used;
	uint64_t dev, ino;
	uint64_t ctx[URXE_MAX_CTX / 64]; /* contexts that have it open */
};

/* See guard.h.  The owner's alone to write. */
struct urxe_guard {
	alignas(URXE_LINE) struct presence requester;
	_Atomic uint32_t owner; /* id of a process; 0: unknown */
	_Atomic uint32_t uses; /* GUARD_* */
	_Atomic uint32_t dest; /* QPN of the responder; 0: none yet */
	_Atomic uint32_t rx; /* slot of the context that has its receives */
	_Atomic uint32_t srq, cq, pd; /* there */
};

/*
 * Of so many guards a word says whether any may be up; guard.h:
 * GUARD_BUSY | GUARD_DOUBTED | how often it was doubted.
 */
#define URXE_GUARD_GROUP 64
#define URXE_GUARD_GROUPS (URXE_MAX_QP / URXE_GUARD_GROUP)

/*
 * Who reads the fabric's socket of the wire, and does for the requesters of other
 * hosts what those of this one do for themselves; provider/wire/holder.h.  A
 * holder that was stopped has a seat still when the next one has one
 * (provider/wire/seat.h).
 */
#define URXE_WIRE_SEATS 8
struct urxe_wire_seat {
	alignas(URXE_LINE) _Atomic uint32_t owner; /* id of a process; 0: free */
	_Atomic uint32_t tid; /* of its thread that reads, in its namespace */
	_Atomic uint32_t turns; /* changes while it works */
	_Atomic uint32_t at; /* QPN that the packet in work is for; 0: none */
	struct urxe_guard guard; /* in no group: all look at it */
};

struct urxe_wire_dev {
	/* id of its process; 0: nobody.  Candidates sleep here, too */
	alignas(URXE_LINE) _Atomic uint32_t holder;
	/*
	 * How often the members of multicast groups changed, and how many of
	 * these changes the holder's sockets have followed (futex): who
	 * attaches waits for that a moment.
	 */
	alignas(URXE_LINE) _Atomic uint32_t groups;
	_Atomic uint32_t followed;
	struct urxe_wire_seat seat[URXE_WIRE_SEATS];
	struct urxe_wire_counts counts[URXE_WIRE_COUNTS];
};

/*
 * A QP number: index (13) in the directory and in its context's QP table | how
 * often it was used (11), so that a stale number meets nobody for long.
 */
#define URXE_QPN(index, uses) ((uint32_t)(uses) << 13 | (index))
#define URXE_QPN_USES (1u << 11)
static inline uint32_t qpn_index(uint32_t qpn)
{
	return qpn & (URXE_MAX_QP - 1);
}

/* In the directory: QPN (24) | context slot (9) | context generation (31) */
#define URXE_DIR(qpn, slot, gen) \
	((qpn) | (uint64_t)(slot) << 24 | (uint64_t)(gen) << 33)
#define URXE_DIR_QPN(e) ((uint32_t)(e) & URXE_QPN_MASK)
#define URXE_DIR_CTX(e) ((uint32_t)((e) >> 24) & (URXE_MAX_CTX - 1))
#define URXE_DIR_GEN(e) ((uint32_t)((e) >> 33))

/* See atomic_lock.h */
#define URXE_ATOMIC_SHARED (URXE_PAGE / 8)
#define URXE_ATOMIC_PRIVATE 4096

struct urxe_dev {
	char magic[16];
	uint32_t version;
	uint32_t size; /* sizeof(struct urxe_dev) of the creator */
	uint64_t node_guid; /* host order */
	uint64_t procs_ino; /* the file whose locks count */
	uint64_t dm_bytes; /* size of the DM heap = max_dm_size */
	char dm_path[256]; /* written before dm_home says that it is */
	_Atomic uint64_t dm_ino; /* of the heap's file; 0: it has no size yet */
	uint32_t vendor_id, vendor_part_id, hw_ver;
	char fw_ver[16];

	alignas(URXE_LINE) struct robust_lock lock;
	_Atomic uint32_t used[URXE_OBJ_COUNT];
	_Atomic uint32_t port_state; /* enum urxe_port_state */
	_Atomic uint32_t gid_gen; /* raised by each change of gid[] */
	_Atomic uint32_t tree_made; /* counts publications of sys and dev */
	_Atomic uint32_t dm_home; /* enum urxe_dm_home */
	_Atomic uint32_t dm_kind; /* enum urxe_dm_kind */
	uint32_t ctx_next;
	_Atomic uint32_t reap_next; /* the next context an opening asks */
	/* how often a context was reaped, or a receive left (rq_recover.c) */
	_Atomic uint32_t deaths;
	_Atomic uint64_t counter[URXE_CNT_COUNT];
	struct urxe_gid gid[URXE_GID_ROWS];
	struct urxe_ctx_slot ctx[URXE_MAX_CTX];
	_Atomic uint32_t process_next; /* where to look for a free number */
	struct urxe_process process[URXE_MAX_PROCESS];
	_Atomic uint32_t dm_high; /* slots of dm[] that have memory */
	uint64_t dm_map[URXE_DM_MAX_BYTES / URXE_PAGE / 64]; /* pages in use */

	/*
	 * The QP-number directory: qp[i] is 0 or URXE_DIR().  The QP's shared
	 * state is slot i of that context's arena.
	 */
	alignas(URXE_LINE) _Atomic uint64_t qp[URXE_MAX_QP];
	uint16_t qp_gen[URXE_MAX_QP]; /* QPN's high bits, under lock */
	/* of shared memory, then of private memory */
	_Atomic uint64_t atomic_lock[URXE_ATOMIC_SHARED + URXE_ATOMIC_PRIVATE];
	/*
	 * There is, or was, somebody to whom an atomic is a read and a later
	 * write (struct urxe_qp.atomic_ns): device memory's need a lock, too.
	 */
	_Atomic uint32_t atomics_divided;
	_Atomic uint32_t qp_high; /* no slot from here on was ever used */
	_Atomic uint32_t qp_low; /* a hint: where to look for a free slot */
	/*
	 * guard[i]: the requester of QP i executes, here and on its peers.
	 * Whoever takes a thing away from requesters (MR, QP, DM) invalidates
	 * it and then waits until those that are at it have left.
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

/* An async event in its FIFO, as core reads it. */
struct urxe_async_event {
	uint64_t element; /* its tag, or the port */
	uint32_t type, zero;
};
static_assert(sizeof(struct urxe_async_event) == 16, "as core reads it");

/* One that its owner has to write into the FIFO himself: kept_event.h */
#define URXE_KEPT_EVENTS 256
struct urxe_kept_event {
	_Atomic uint64_t word, element;
};

/* ------------------------------------------------ an arena */

#define URXE_ARENA_MAGIC "urxe arena file" /* 16 bytes with its NUL */
#define URXE_ARENA_MODE 01600 /* with the size: how fstat knows a cmd_fd */
#define URXE_ARENA_SIZE (1ull << 30) /* sparse; parts are reserved on use */

/*
 * Keys.  lkey == rkey == context slot (9) | table index (15) | tag (8).
 * The tag is what ibv_inc_rkey advances.  Index 0 is never used.
 */
#define URXE_KEY_TAG(key) ((key) & 0xff)
#define URXE_KEY_ENTRY(key) ((key) >> 8) /* what stays when the tag changes */
#define URXE_KEY_INDEX(key) (((key) >> 8) & (URXE_MAX_KEY - 1))
#define URXE_KEY_CTX(key) ((key) >> 23)
#define URXE_KEY_WITH_TAG(key, tag) (((key) & ~0xffu) | URXE_KEY_TAG(tag))
#define URXE_KEY(ctx, index, tag) \
	((uint32_t)(ctx) << 23 | (uint32_t)(index) << 8 | (uint8_t)(tag))

/* Where the bytes of an MR are, and so how they can be reached. */
enum urxe_mem_kind {
	URXE_MEM_PRIVATE, /* memory of process pid, reached by its address */
	URXE_MEM_DM, /* in the DM heap, at offset va */
	URXE_MEM_FILE, /* shared mapping of a file that peers may map, too */
	URXE_MEM_NULL, /* the null MR: reads zero, ignores writes */
};

/* Access flags that the installed header may not name yet. */
#define URXE_ACCESS_FLUSH_GLOBAL (1u << 8)
#define URXE_ACCESS_FLUSH_PERSISTENT (1u << 9)

#define URXE_MR_IS_MW 1u /* a memory window */
#define URXE_MR_TYPE_2 2u /* MW of type 2 */
#define URXE_MR_ODP 4u /* on demand: nothing was checked at registration */
#define URXE_MR_FILE 8u /* file names an entry of the file table */
#define URXE_MR_FOREIGN 16u /* pid is of arena.other_pidns, not of pidns */
#define URXE_MR_SHARED 32u /* other processes may map its pages, too */

/*
 * What a key names: a memory region or a memory window, in one cache line.
 * `live` is the key with bit 32 set while the entry may be used, else 0; it is
 * stored last at registration (release) and cleared first at deregistration,
 * which then waits until no requester is inside (guard.h).
 */
struct urxe_key {
	_Atomic uint64_t live;
	uint64_t iova; /* what work requests call the first byte */
	uint64_t length;
	uint64_t va; /* address in process pid, or offset in the DM heap */
	uint32_t pd; /* PD handle */
	uint32_t access; /* enum ibv_access_flags, URXE_ACCESS_* */
	int32_t pid; /* of the process that registered it */
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
	uint64_t file_offset; /* URXE_MR_FILE: of the first byte */
};
static_assert(sizeof(struct urxe_key) == 64, "one cache line");

#define URXE_MR_LIVE(key) (1ull << 32 | (key))
/* A bound window's live word while requesters leave it; n tells them apart. */
#define URXE_MR_LEAVING(n) ((uint64_t)(n) << 33)

/* A file whose pages an MR of this arena shares (copy path 2). */
#define URXE_MAX_FILES 1024
#define URXE_FILE_PATH 224 /* with its NUL */
struct urxe_file {
	/*
	 * URXE_FILE_REFS(): made | MRs on it, 0: free.  made is 0 if the entry
	 * was never used, and goes on when the last MR has gone and nobody is
	 * in these pages any more: peers give their mapping back then.
	 */
	_Atomic uint64_t refs;
	int32_t pid, fd; /* reachable as /proc/pid/fd/fd ... */
	uint64_t dev, ino;
	char path[URXE_FILE_PATH]; /* ... or by this path, if not empty */
};
static_assert(sizeof(struct urxe_file) == 256, "fixed");
#define URXE_FILE_REFS(made, refs) ((uint64_t)(made) << 32 | (refs))
#define URXE_FILE_MADE(word) ((uint32_t)((word) >> 32))
#define URXE_FILE_COUNT(word) ((uint32_t)(word))

/* A completion queue entry. The words' protocol stands in cq_ring.h */
#define URXE_CQE_INLINE 80
#define URXE_CQE_SRQ 0x80 /* a receive of an SRQ */
/* in wc_flags: a datagram that came over IPv4, or by RoCE v1; an event that
 * was asked for solicited completions only is for this one, too */
#define URXE_CQE_IPV4 0x80
#define URXE_CQE_ROCE_V1 0x20
#define URXE_CQE_SOLICITED 0x40
#define URXE_CQE_OWN_FLAGS \
	(URXE_CQE_IPV4 | URXE_CQE_ROCE_V1 | URXE_CQE_SOLICITED)
struct urxe_cqe {
	_Atomic uint64_t word;
	uint64_t wr_id;
	uint64_t timestamp; /* ns, CLOCK_REALTIME; 0 unless the CQ asks */
	uint32_t qpn;
	uint32_t byte_len;
	uint32_t imm; /* network order, or the invalidated rkey */
	uint32_t src_qp;
	uint32_t wqe; /* what it releases: SQ or RQ index, or URXE_WQE_SRQ */
	uint8_t status, opcode;
	uint8_t wc_flags; /* enum ibv_wc_flags and URXE_CQE_OWN_FLAGS */
	uint8_t inline_len; /* bytes in data, and URXE_CQE_SRQ */
	/* small messages travel here and are placed when polled */
	uint8_t data[URXE_CQE_INLINE];
};
static_assert(sizeof(struct urxe_cqe) == 128, "two cache lines");

enum urxe_arm { URXE_ARM_NONE, URXE_ARM_SOLICITED, URXE_ARM_NEXT };
/*
 * What a CQ is armed for, in one word: enum urxe_arm; URXE_ARM_KNOWS; and with
 * that the ring's position up to which the program knew what is there when it
 * armed.
 */
#define URXE_ARM_KIND(word) ((word) & 3)
#define URXE_ARM_KNOWS 4u
#define URXE_ARM_KNOWING(pos) (URXE_ARM_NEXT | URXE_ARM_KNOWS | (pos) << 3)
/* Is the arming too late to be for the completion at pos? */
#define URXE_ARM_KNEW(word, pos) \
	((word) & URXE_ARM_KNOWS && (int32_t)(((pos) << 3) - ((word) & ~7u)) < 0)

/*
 * A ring in one word: offset in the arena | URXE_CQ_PARITY | log2(entries).
 * The parity changes with each resize and says which tail_hint, head_seen and
 * head are the ring's.
 */
#define URXE_CQ_RING(offset, log) ((offset) | (log))
#define URXE_CQ_LOG(word) ((uint32_t)(word) & 31)
#define URXE_CQ_MAX_LOG 18
#define URXE_CQ_PARITY 32u
#define URXE_CQ_HINT(word) (!!((word) & URXE_CQ_PARITY)) /* of tail_hint[] */
static_assert(URXE_MAX_CQE <= 1 << URXE_CQ_MAX_LOG, "a ring of every size");
#define URXE_CQ_OFFSET(word) ((word) & ~(uint64_t)(URXE_PAGE - 1))

struct urxe_cq_sh {
	/* read-mostly line */
	_Atomic uint32_t live; /* 0: free, else 1 */
	uint32_t channel; /* FIFO number + 1; 0: no completion channel */
	_Atomic uint64_t ring;
	uint64_t tag; /* of its events: event_tag.h */
	_Atomic uint32_t attention; /* a peer changed a QP: look at them all */
	_Atomic uint32_t error; /* overrun: no more completions */
	uint32_t flags; /* URXE_CQ_* */
	int32_t pid;
	uint32_t async_fifo; /* FIFO number + 1 */
	_Atomic uint32_t moderate; /* events: URXE_MODERATE(); 0: off */
	_Atomic uint64_t next_ring; /* where a ring that was left leads to */
	/* producers; of both rings, see URXE_CQ_HINT() */
	alignas(URXE_LINE) _Atomic uint32_t tail_hint[2];
	_Atomic uint32_t head_seen[2];
	alignas(URXE_LINE) _Atomic uint32_t arm; /* URXE_ARM_KIND() and more */
	_Atomic uint32_t pending_events; /* to be written by the owner */
	_Atomic uint32_t comp_events; /* written to their FIFO so far */
	_Atomic uint32_t comp_fetched; /* read from there so far */
	_Atomic uint32_t held_back; /* completions that moderation waits on */
	/* the poller */
	alignas(URXE_LINE) _Atomic uint32_t head[2];
};
#define URXE_MODERATE(count, us) ((uint32_t)(us) << 16 | (uint16_t)(count))
#define URXE_MODERATE_COUNT(m) ((uint16_t)(m))
#define URXE_MODERATE_US(m) ((m) >> 16)
#define URXE_CQ_TIMESTAMP 1u
#define URXE_CQ_IGNORE_OVERRUN 2u
static_assert(sizeof(struct urxe_cq_sh) == 256, "an index is a shift");

/*
 * A posted receive. The slot is the header and then max_sge of these.  It may be
 * posted anew while it is read: see rq_ring.h.
 */
struct urxe_recv_sge {
	_Atomic uint64_t addr;
	_Atomic uint32_t length, lkey;
};
struct urxe_recv {
	_Atomic uint64_t wr_id;
	_Atomic uint16_t num_sge;
	_Atomic uint16_t ticket; /* where several take receives */
	struct urxe_recv_sge sge[];
};

/*
 * A receive ring: the RQ of a QP, or an SRQ.  See rq_ring.h.
 */
struct urxe_rq_sh {
	/* offset in the arena | log2(slots); 0: no receive queue */
	_Atomic uint64_t ring;
	uint32_t max_sge; /* of each; says how large a slot is */
	/*
	 * A requester is parked on it: wake its arena.  0, 1 + context slot to wake,
	 * or URXE_WAIT_MANY.  It is written seldom, and so not beside what is
	 * written for each message.
	 */
	_Atomic uint32_t waiter;
	alignas(URXE_LINE) _Atomic uint32_t prod; /* owner */
	alignas(URXE_LINE) _Atomic uint32_t cons; /* whoever delivers */
	_Atomic uint32_t done; /* delivered and published */
};
static_assert(sizeof(struct urxe_rq_sh) == 192, "fixed");

/*
 * What peers see of a QP.
 *
 * conn says in one word whether a requester may execute here, and which:
 * own QPN (24) | destination QPN (24) << 24 | state (8) << 48.  It is 0 when
 * the slot is free.  The owner stores it; a requester that must break the
 * connection (a NAK) moves it to IBV_QPS_ERR by compare-and-swap.
 */
#define URXE_CONN(qpn, dest, state) \
	((uint64_t)(qpn) | (uint64_t)(dest) << 24 | (uint64_t)(state) << 48)
#define URXE_CONN_QPN(c) ((uint32_t)((c) & URXE_QPN_MASK))
#define URXE_CONN_DEST(c) ((uint32_t)((c) >> 24 & URXE_QPN_MASK))
#define URXE_CONN_STATE(c) ((uint8_t)((c) >> 48))
#define URXE_CONN_ENDS ((1ull << 48) - 1) /* both QPNs */
#define URXE_CONN_WITH(c, state) \
	(((c) & URXE_CONN_ENDS) | (uint64_t)(state) << 48)

/* What completion counters count, as libibverbs numbers the bits of masks. */
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
 * A completion counter of the arena.  Who completes an operation of a QP that it
 * is attached to adds to it, its owner or a requester: after the bytes are in
 * place (release), and before a completion says so.
 */
struct urxe_comp_cntr {
	alignas(URXE_LINE) _Atomic uint64_t done; /* WRs or bytes */
	_Atomic uint64_t failed; /* WRs */
	uint32_t bytes; /* it counts those of what succeeds */
};

/*
 * What the send queue of a QP waits for, for those who look on; nobody goes by
 * it.  Its owner writes it, under the QP's lock, where the queue waits, and there
 * alone: `what` is 0 before head, wr_id, opcode and since change, and stored
 * after them (release); the others change while it waits.
 */
enum urxe_wait_for {
	URXE_WAIT_NOTHING,
	URXE_WAIT_RECEIVE, /* RNR: the responder has none */
	URXE_WAIT_ANSWER, /* the responder is silent */
	URXE_WAIT_SQD, /* for the QP to leave SQD */
	URXE_WAIT_FLIGHT, /* a carrier has it in flight */
	URXE_WAIT_KINDS
};

/* Its last WR was refused, because the queue was full. */
enum urxe_full {
	URXE_FULL_NOT,
	URXE_FULL_UNPOLLED, /* completions that were not polled have places */
	URXE_FULL_UNSIGNALED, /* no completion will give a place back */
};

#define URXE_WAIT_ENDLESS 255 /* of left */
#define URXE_WAIT_FENCED 1u /* flags: the first WR not begun has a fence */
struct urxe_wait {
	_Atomic uint32_t what; /* enum urxe_wait_for */
	_Atomic uint32_t head; /* ordinal of the WR that waits */
	_Atomic uint32_t queued; /* WRs, from that one on */
	_Atomic uint8_t opcode, left, flags; /* left: tries that count */
	_Atomic uint64_t wr_id;
	_Atomic uint64_t since, until; /* clock_now(); until: the next try */
	_Atomic uint32_t full; /* enum urxe_full */
	_Atomic uint32_t full_at; /* ordinal of the WR that was refused */
	_Atomic uint64_t full_since;
};
static_assert(sizeof(struct urxe_wait) == 56, "fixed");

#define URXE_PATH_QP (1u << 16) /* one more QP of the slot */
#define URXE_PATH_QPS(path) ((path) / URXE_PATH_QP)
struct urxe_qp_sh {
	_Atomic uint64_t conn;
	uint64_t tag; /* of its events: event_tag.h */
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
	_Atomic uint32_t sq_psn; /* for those who look on */
	/* counts the changes of path_mtu, GIDs, access; over all QPs of the slot */
	_Atomic uint32_t path;
	/* written by the connected requester */
	/* the next PSN expected; above it: wire.h */
	alignas(URXE_LINE) _Atomic uint32_t epsn;
	_Atomic uint32_t comm_est; /* 1: the event was raised */
	_Atomic uint32_t last_wqe; /* 1: the event was raised */
	_Atomic uint32_t handles; /* XRC target: its creator's and opened ones */
	_Atomic uint32_t counts; /* 1 << enum urxe_cntr_op: there is a counter */
	/* index in the arena's table; 0: none */
	_Atomic uint16_t cntr[URXE_CNTR_OPS];
	/* handed over with the port's counters; for those who look on */
	_Atomic uint64_t sent_bytes;
	struct urxe_rq_sh rq;
	/* of the path, as its owner has it */
	struct urxe_shared_gid sgid, dgid;
	_Atomic uint8_t roce; /* ... and its version: that of sgid_index */
	_Atomic uint8_t wire; /* 1: arena.wire[] has memory for it */
	struct urxe_kept_reason broken; /* who or what broke it, and why */
	struct urxe_wait wait;
};
static_assert(sizeof(struct urxe_qp_sh) == 512, "an index is a shift");

/* SRQ number: context slot (9) << 12 | index in its SRQ table (12). */
#define URXE_SRQN(ctx, index) ((uint32_t)(ctx) << 12 | (index))
#define URXE_SRQN_CTX(n) ((n) >> 12)
#define URXE_SRQN_INDEX(n) ((n) & (URXE_MAX_SRQ - 1))
#define URXE_WAIT_MANY UINT32_MAX

/*
 * urxe_cqe.wqe of a receive of an SRQ: ticket (20) << 12 | SRQ's index (12).
 * A ticket is less than the SRQ's max_wr, so 14 bits of them are used.
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
	uint64_t tag; /* of its events: event_tag.h */
	uint32_t made; /* SRQs that were made here: a number is used again */
	struct urxe_rq_sh rq;
	uint8_t pad[256];
};
static_assert(sizeof(struct urxe_srq_sh) == 512, "an index is a shift");

struct urxe_pd_sh {
	_Atomic uint32_t live; /* counts up: odd while the PD exists */
	_Atomic uint32_t refs; /* objects on it; imports do not count */
};

/*
 * Copy path 4: what requesters that may not reach a process's private memory
 * ask its bounce thread to copy.  The protocol stands in bounce_slot.h.
 */
#define URXE_BOUNCERS 8 /* processes that share a context */
#define URXE_MEMBERS 64 /* the same, where no bouncer is needed */
#define URXE_BOUNCE_SLOTS 8
#define URXE_BOUNCE_BYTES 65536
#define URXE_BOUNCE_RANGES 128

enum urxe_bounce_op {
	URXE_BOUNCE_PING, /* is anybody there? */
	URXE_BOUNCE_WRITE, /* from the slot into memory */
	URXE_BOUNCE_READ, /* from memory into the slot */
	URXE_BOUNCE_PERSIST, /* sync the file of range[0].key */
};

enum urxe_bounce_wanted {
	URXE_BOUNCE_UNWANTED,
	URXE_BOUNCE_WANTED,
	URXE_BOUNCE_REFUSED, /* there was no memory for it */
};

/* A process that copies for others. */
struct urxe_bouncer {
	/* its id (struct urxe_process); 0: nobody, or it has ended */
	alignas(URXE_LINE) _Atomic uint32_t owner;
	_Atomic int32_t pid; /* 0: never used */
	_Atomic uint32_t foreign; /* pid is of other_pidns */
	_Atomic uint32_t gone; /* an owner that was found dead */
	/* requesters ring here */
	alignas(URXE_LINE) struct event_count wake;
	_Atomic uint32_t wanted; /* the ring; enum urxe_bounce_wanted */
	_Atomic uint32_t stuck; /* 1: it does not answer; it clears this */
	/* the thread's */
	alignas(URXE_LINE) _Atomic uint32_t slots; /* of the ring; 0: not yet */
	_Atomic uint32_t beat; /* counts what it did */
	struct presence at_work; /* it touches memory */
	_Atomic uint32_t cpu; /* + 1: it keeps to that one; 0: to none */
};

struct urxe_bounce_range {
	uint64_t va; /* in the bouncer's process */
	uint32_t length, key;
};

struct urxe_bounce_slot {
	alignas(URXE_LINE) _Atomic uint64_t word;
	struct event_count answered; /* the requester waits for it */
	uint32_t op; /* enum urxe_bounce_op */
	uint32_t count; /* of ranges; their bytes are in data, in order */
	uint32_t error; /* answer: 0 or errno ... */
	uint32_t done; /* ... and the bytes that were copied */
	uint32_t cpu; /* + 1, where the requester waits ... */
	uint64_t posted; /* ... and since when, CLOCK_MONOTONIC; both hints */
	/* it comes after that one, and only if that was done; 0: at once */
	_Atomic uint32_t after_slot;
	_Atomic uint64_t after; /* its BOUNCE_ID */
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
 * Receive rings that are smaller than half a page, in units of which a page
 * has 16: no ring crosses the end of a page.
 */
#define URXE_SMALL_UNIT 256
#define URXE_SMALL_UNITS 32768
#define URXE_SMALL_MOST (URXE_PAGE / 2)

/*
 * The last WRs of the context that failed, and requests of other QPs that its
 * QPs refused, but no flushed ones; for urxe why.  The QP may be gone.
 */
#define URXE_FAILED 16 /* a ring */
struct urxe_failed {
	struct urxe_kept_reason why;
	_Atomic uint32_t qpn; /* of this context */
	_Atomic uint32_t nth; /* counts, from 1 */
	_Atomic uint64_t at; /* clock_now() */
};

struct urxe_arena {
	char magic[16];
	uint32_t version;
	uint32_t slot, gen;
	int32_t pid; /* of the opener */
	uint64_t pidns; /* inode of its PID namespace; 0: unknown */
	char comm[16];
	_Atomic uint32_t opener; /* its id, when it uses the context */
	/* others that registered memory: children, importers; dead or alive */
	_Atomic uint32_t member[URXE_MEMBERS];
	/* of importers in another one, all of them; 0: none came yet */
	_Atomic uint64_t other_pidns;
	alignas(URXE_LINE) struct event_count wake; /* of service threads */
	_Atomic uint32_t check_guards; /* 1: somebody doubts one that is up */
	_Atomic uint32_t look_after; /* 1: a file that it may map is over */
	/* contexts whose processes mapped files of this one */
	uint64_t mappers[URXE_MAX_CTX / 64];
	alignas(URXE_LINE) struct robust_lock lock; /* of the keys */
	/* there are pending_events, or some in kept */
	_Atomic uint32_t kept_events;
	struct urxe_kept_event kept[URXE_KEPT_EVENTS];
	_Atomic uint32_t keeps_async; /* all are kept: its owner writes them */
	_Atomic uint32_t async_fifo; /* number + 1, of the opener */
	_Atomic uint32_t failed_next; /* counts */
	struct urxe_failed failed[URXE_FAILED];
	_Atomic uint32_t key_high; /* key table entries that have memory */
	_Atomic uint32_t keys_made; /* raised before a key gets to be live */
	uint32_t key_next; /* under lock */
	_Atomic uint32_t heap_next;
	uint32_t leaving; /* windows that were unbound so far; under lock */
	_Atomic uint8_t key_tag[URXE_MAX_KEY]; /* written under the lock */
	uint64_t key_map[URXE_MAX_KEY / 64];
	uint64_t
		window_map[URXE_MAX_KEY / 64]; /* MWs; valid where key_map is */
	uint64_t cq_map[URXE_MAX_CQ / 64];
	uint64_t srq_map[URXE_MAX_SRQ / 64];
	uint64_t comp_cntr_map[URXE_MAX_COMP_CNTR / 64];
	uint64_t heap_map[URXE_HEAP_PAGES / 64];
	uint64_t small_map[URXE_SMALL_UNITS / 64];
	struct urxe_pd_sh pd[URXE_MAX_PD];
	struct urxe_bouncer bouncer[URXE_BOUNCERS];
	/* tables below are sparse: pages are reserved when first used */
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
