/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device segment (struct urxe_dev), one for each fabric: devices (struct
 * urxe_hca), contexts, processes, device memory, multicast groups, guards and
 * the QP directory.
 */
#pragma once

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "base/presence.h"
#include "call.h"
#include "cluster.h"
#include "gid.h"
#include "limits.h"
#include "profile.h"
#include "robust.h"
#include "subnet.h"
#include "sa.h"
#include "umad.h"
#include "wire.h"

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
	_Atomic uint32_t hca; /* index of its device; hca_of_ctx() */
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
#define URXE_PROCESS_BRIEF(id) ((id)&0xffffff)

/* Values of enum ibv_port_state; INIT and ARMED: no subnet manager was there */
enum urxe_port_state {
	URXE_PORT_NOP,
	URXE_PORT_DOWN,
	URXE_PORT_INIT,
	URXE_PORT_ARMED,
	URXE_PORT_ACTIVE
};
/* A path in one word: its state | number of changes << 3. */
#define URXE_PATH(state, changes) ((uint32_t)(state) | (uint32_t)(changes) << 3)
#define URXE_PATH_STATE(word) ((word)&7)

/*
 * A row of the GID table: one address.  A row has two entries, in the order
 * of ConnectX: index 2 * row is RoCE v1, the next index is RoCE v2.  If the
 * profile has RoCE v2 only, a row has one entry (gid_row()).  On InfiniBand
 * only row 0, the GUID of the port, is a GID; the others are the addresses of
 * IP over InfiniBand, which select the port in rdma_cm.  Rows are written
 * under dev.lock; `valid` is stored last.
 */
struct urxe_gid {
	uint8_t raw[16];
	_Atomic uint32_t valid;
	uint32_t ifindex;
	char ifname[16];
	uint64_t netns; /* inode of the network namespace of ifname */
};

#define URXE_GID_ROWS (URXE_MAX_GID / 2)
#define URXE_IB_GIDS 8 /* length of the table on InfiniBand, as on ConnectX */
/*
 * The network header of packets: RoCE v1 or v2; on InfiniBand, none or a GRH
 */
#define URXE_ROCE_V1 1
#define URXE_ROCE_V2 2
#define URXE_IB_LOCAL 3
#define URXE_IB_GLOBAL 4
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

/*
 * A multicast group; its entry is free if both count and joined are 0.  On
 * InfiniBand the index of the entry determines the MLID (mcast.c).
 */
struct urxe_mcast_grp {
	uint8_t mgid[16];
	_Atomic uint32_t count; /* QPs attached */
	/* InfiniBand: joins of all ports at the subnet administrator */
	_Atomic uint32_t joined;
	uint32_t qkey; /* of the join that made the group; pkey as well */
	uint16_t pkey;
	_Atomic uint32_t qpn[URXE_MAX_MCAST_ATTACH];
};

/*
 * InfiniBand: the joins of a port to a group that receive; whether one of them
 * was made by a MAD, and whether a MAD made one at all.
 */
struct urxe_mcast_joins {
	_Atomic uint32_t receives;
	_Atomic uint16_t by_mad, by_mad_receives;
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

/* Bits of urxe_hca.down; PORT_NO_LINK: nothing is connected */
#define PORT_NO_LINK 4u

/*
 * A device of the fabric, an HCA with one port.  QPNs, keys, device memory and
 * multicast groups belong to the fabric, and a context to one device.
 */
struct urxe_hca {
	alignas(URXE_LINE) uint64_t node_guid; /* host order */
	_Atomic uint32_t port_state; /* enum urxe_port_state */
	_Atomic uint32_t down; /* LINK_*, PORT_NO_LINK */
	_Atomic uint32_t gid_gen; /* incremented by each change of gid[] */
	/* the following are constant, up to subnet */
	uint32_t infiniband; /* 1: InfiniBand, 0: Ethernet */
	uint32_t host; /* index in urxe_dev.host[] */
	uint32_t pci; /* domain << 16 | bus << 8 | device << 3 | function */
	int32_t numa_node; /* -1: none */
	uint32_t latency; /* of its link, ns */
	char name[16]; /* hca_name() */
	char netdev[16]; /* its network interface; "": that of the GID table */
	struct urxe_link_end peer;
	struct urxe_subnet subnet;
	struct urxe_profile profile; /* constant; profile_copy() */
	/*
	 * active_width | active_speed << 8, in place of those of the profile;
	 * 0: not changed
	 */
	_Atomic uint32_t rate;
	/* times from which the port is free, see adversary/timing.h */
	alignas(URXE_LINE) _Atomic uint64_t sends_at, receives_at;
	_Atomic uint64_t counter[URXE_CNT_COUNT];
	/* values when performance management cleared them (mad/pma.c) */
	_Atomic uint64_t cleared[URXE_CNT_COUNT];
	struct urxe_gid gid[URXE_GID_ROWS];
	struct urxe_mcast_joins joins[URXE_MAX_MCAST_GRP];
	/*
	 * Paths to the port of each device (port.c): URXE_PATH_STATE() is
	 * URXE_PORT_ACTIVE, URXE_PORT_DOWN if either port is down, or
	 * URXE_PORT_NOP if no links join them.  The other bits change with
	 * the LIDs and P_Keys of the two ports.
	 */
	_Atomic uint32_t path[URXE_MAX_HCA];
};

/*
 * Wire counters of a process.  A process has two rows, one for its requesters
 * and one for its work as socket owner, so that senders and receivers do not
 * write to one cache line.  Several processes may share a row.  Adds are
 * relaxed.  The value of a counter is the sum of all rows and of
 * urxe_hca.counter[] of the first device (counter_read): a fabric with a wire
 * has no other one.  Rows are never cleared.
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
	uint32_t hca; /* the device of these contexts */
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
	_Atomic uint32_t acks; /* incremented when all due ACKs were sent */
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
#define URXE_DIR_QPN(e) ((uint32_t)(e)&URXE_QPN_MASK)
#define URXE_DIR_CTX(e) ((uint32_t)((e) >> 24) & (URXE_MAX_CTX - 1))
#define URXE_DIR_GEN(e) ((uint32_t)((e) >> 33))

/* Number of locks, see atomic_lock.h */
#define URXE_ATOMIC_SHARED (URXE_PAGE / 8)
#define URXE_ATOMIC_PRIVATE 4096

struct urxe_dev {
	char magic[16];
	uint32_t version;
	uint32_t size; /* sizeof(struct urxe_dev) of the creator */
	/* numbers of devices, hosts and switches, constant; dev_hcas() */
	uint32_t hcas, hosts, switches;
	/* hash of the cluster file; 0: there was none */
	uint32_t cluster;
	/* 1: ports are joined by links only, 0: each with each other; constant
	 */
	uint32_t has_links;
	/* 1: a program is the subnet manager, none is built in; constant */
	uint32_t sm_external;
	uint64_t procs_ino; /* inode of the file procs */
	uint64_t dm_bytes; /* size of the DM heap = max_dm_size */
	char dm_path[256]; /* valid if dm_home is URXE_DM_PATH */
	/* inode of the heap's file; 0: not sized yet */
	_Atomic uint64_t dm_ino;
	alignas(URXE_LINE) struct robust_lock lock;
	_Atomic uint32_t used[URXE_OBJ_COUNT];
	/* number of changes of ports and links, on which paths depend */
	_Atomic uint32_t port_changes;
	_Atomic uint32_t dm_home; /* enum urxe_dm_home */
	_Atomic uint32_t dm_kind; /* enum urxe_dm_kind */
	uint32_t ctx_next;
	_Atomic uint32_t reap_next; /* the next slot that an open checks */
	/*
	 * number of contexts reaped and receives abandoned (rq_recover.c); a
	 * futex
	 */
	_Atomic uint32_t recover_gen;
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
	/* these have memory as far as they are used (device_allocate) */
	alignas(URXE_PAGE) struct urxe_umad umad[URXE_MAX_UMAD];
	struct urxe_sa_service sa_service[URXE_MAX_SA_SERVICE];
	struct urxe_host host[URXE_MAX_HOST];
	struct urxe_hca hca[URXE_MAX_HCA];
	struct urxe_switch sw[URXE_MAX_SWITCH];
};

static inline uint32_t dev_hcas(const struct urxe_dev *dev)
{
	const uint32_t n = dev->hcas;

	return n && n <= URXE_MAX_HCA ? n : 1;
}

static inline uint32_t dev_switches(const struct urxe_dev *dev)
{
	const uint32_t n = dev->switches;

	return n <= URXE_MAX_SWITCH ? n : URXE_MAX_SWITCH;
}

/* Device k, a number that is read from shared memory. */
static inline struct urxe_hca *hca_at(struct urxe_dev *dev, uint32_t k)
{
	return &dev->hca[k < dev_hcas(dev) ? k : 0];
}

/* The device of the context in a slot; its index is hca_index(). */
static inline struct urxe_hca *hca_of_ctx(struct urxe_dev *dev, uint32_t slot)
{
	return hca_at(dev, load_relaxed(&dev->ctx[slot].hca));
}

static inline uint32_t hca_index(const struct urxe_dev *dev,
				 const struct urxe_hca *hca)
{
	return (uint32_t)(hca - dev->hca);
}

/* Value of enum ibv_port_cap_flags, which sysfs shows as well */
#define URXE_PORT_SM (1u << 1)
#define URXE_PORT_SYS_IMAGE_GUID (1u << 11)
#define URXE_PORT_EXTENDED_SPEEDS (1u << 14)
#define URXE_PORT_CM_SUP (1u << 16)
#define URXE_PORT_CLIENT_REREGISTER (1u << 25)
#define URXE_PORT_IP_BASED_GIDS (1u << 26)
static inline uint32_t port_caps(const struct urxe_hca *hca)
{
	return hca->infiniband ? URXE_PORT_CM_SUP | URXE_PORT_SYS_IMAGE_GUID |
					 URXE_PORT_EXTENDED_SPEEDS |
					 URXE_PORT_CLIENT_REREGISTER :
				 URXE_PORT_CM_SUP | URXE_PORT_IP_BASED_GIDS;
}

/* The length of the P_Key table. */
static inline uint32_t port_pkeys(const struct urxe_hca *hca)
{
	return hca->infiniband ? URXE_MAX_PKEY : 1;
}

/* Entries of a row of the GID table. */
static inline uint32_t gid_entries(const struct urxe_hca *hca)
{
	return !hca->infiniband && hca->profile.value[PROFILE_gid_types] &
					   1u << URXE_ROCE_V1 ?
		       2 :
		       1;
}

/* The length of the GID table; no row has an entry beyond it. */
static inline uint32_t gid_table_len(const struct urxe_hca *hca)
{
	const uint64_t len = hca->profile.value[PROFILE_gid_tbl_len];
	const uint32_t most = hca->infiniband ?
				      URXE_IB_GIDS :
				      URXE_GID_ROWS * gid_entries(hca);

	return len < most ? (uint32_t)len : most;
}

/* Has this index of the GID table a row of its own? */
static inline bool gid_has_row(const struct urxe_hca *hca, uint32_t index)
{
	return index < gid_table_len(hca) && !(hca->infiniband && index);
}

/* Row and network header of an entry; it may be beyond the table. */
static inline uint32_t gid_row(const struct urxe_hca *hca, uint32_t index)
{
	return index / gid_entries(hca) % URXE_GID_ROWS;
}

static inline uint8_t gid_roce(const struct urxe_hca *hca, uint32_t index)
{
	if (hca->infiniband)
		return URXE_IB_GLOBAL;
	return gid_entries(hca) == 1 ? URXE_ROCE_V2 : (uint8_t)(index % 2 + 1);
}

/* The entry of RoCE v2 of a row. */
static inline uint32_t gid_index_v2(const struct urxe_hca *hca, uint32_t row)
{
	return (row + 1) * gid_entries(hca) - 1;
}

static inline bool hca_is_up(const struct urxe_hca *hca)
{
	return load_acquire(&hca->port_state) == URXE_PORT_ACTIVE;
}

/*
 * The entries of qp[] from here on were never used.  seq_cst, as is the load of
 * an entry: a requester whose guard is not scanned looks the object up after
 * this load (engine/run/quiesce.c).
 */
static inline uint32_t qp_slots(const struct urxe_dev *dev)
{
	uint32_t high = load_seq_cst(&dev->qp_high);

	return high < URXE_MAX_QP ? high : URXE_MAX_QP;
}

static inline uint32_t dm_slots(const struct urxe_dev *dev)
{
	uint32_t high = load_acquire(&dev->dm_high);

	return high < URXE_MAX_DM ? high : URXE_MAX_DM;
}
