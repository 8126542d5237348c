/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The arena (struct urxe_arena), one for each opened context: the key table,
 * CQs, receive queues, QPs, SRQs, bounce buffers and the heap of their rings.
 */
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "base/presence.h"
#include "gid.h"
#include "limits.h"
#include "reason.h"
#include "robust.h"
#include "wire.h"

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

#define URXE_ARENA_MAGIC "urxe arena file" /* 16 bytes including the NUL */
/* with the size, identifies a cmd_fd in fstat() */
#define URXE_ARENA_MODE 01600
#define URXE_ARENA_SIZE (1ull << 30) /* sparse; parts are reserved on use */

/*
 * Keys: lkey == rkey == context slot (9) | table index (15) | tag (8).
 * ibv_inc_rkey increments the tag.  Index 0 is never used.
 */
#define URXE_KEY_TAG(key) ((key)&0xff)
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
#define URXE_CQE_INLINE 72
#define URXE_CQE_SRQ 0x80 /* a receive from an SRQ */
/* in inline_len: byte_len bytes are in the eager slot of the position */
#define URXE_CQE_EAGER 0x7f
/*
 * In wc_flags: a datagram that arrived over IPv4; one that arrived by RoCE
 * v1; one that arrived over InfiniBand (slid, path_bits and sl are valid); a
 * completion for which a CQ armed for solicited events only is notified.
 */
#define URXE_CQE_IPV4 0x80
#define URXE_CQE_ROCE_V1 0x20
#define URXE_CQE_IB 0x10
#define URXE_CQE_SOLICITED 0x40
#define URXE_CQE_OWN_FLAGS \
	(URXE_CQE_IPV4 | URXE_CQE_ROCE_V1 | URXE_CQE_IB | URXE_CQE_SOLICITED)
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
	/* bytes in data or URXE_CQE_EAGER, and URXE_CQE_SRQ */
	uint8_t inline_len;
	/*
	 * Payload of small messages.  The poller copies it to the receive
	 * buffer.
	 */
	uint8_t data[URXE_CQE_INLINE];
	/* URXE_CQE_IB: source LID, low bits of the destination LID, SL */
	uint16_t slid;
	uint8_t path_bits, sl;
};
static_assert(sizeof(struct urxe_cqe) == 128, "two cache lines");

enum urxe_arm { URXE_ARM_NONE, URXE_ARM_SOLICITED, URXE_ARM_NEXT };
/*
 * State of a CQ's notification request in one word: enum urxe_arm,
 * URXE_ARM_KNOWS, and with that flag the ring position up to which the
 * program had seen completions when it armed the CQ.
 */
#define URXE_ARM_KIND(word) ((word)&3)
#define URXE_ARM_KNOWS 4u
#define URXE_ARM_KNOWING(pos) (URXE_ARM_NEXT | URXE_ARM_KNOWS | (pos) << 3)
/* True if the CQ was armed after the program saw the completion at pos. */
#define URXE_ARM_KNEW(word, pos) \
	((word)&URXE_ARM_KNOWS && (int32_t)(((pos) << 3) - ((word) & ~7u)) < 0)

/*
 * A CQ ring in one word: offset in the arena | URXE_CQ_PARITY |
 * log2(entries).  The parity changes with each resize and selects the ring's
 * tail_hint, head_seen and head.
 */
#define URXE_CQ_RING(offset, log) ((offset) | (log))
#define URXE_CQ_LOG(word) ((uint32_t)(word)&31)
#define URXE_CQ_MAX_LOG 18
#define URXE_CQ_PARITY 32u
/* index in tail_hint[] */
#define URXE_CQ_HINT(word) (!!((word)&URXE_CQ_PARITY))
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
	/* offset of the eager buffer for producers, 0: none (eager.h) */
	_Atomic uint64_t eager;
	/* written by producers; of both rings, see URXE_CQ_HINT() */
	alignas(URXE_LINE) _Atomic uint32_t tail_hint[2];
	_Atomic uint32_t head_seen[2];
	/* URXE_ARM_KIND() and more */
	alignas(URXE_LINE) _Atomic uint32_t arm;
	/* events that the owner must write to the FIFO */
	_Atomic uint32_t pending_events;
	_Atomic uint32_t comp_events; /* events written to the FIFO so far */
	_Atomic uint32_t comp_fetched; /* events read from the FIFO so far */
	/*
	 * Armings so far.  If the arm word is URXE_ARM_NONE, as many events
	 * were written or are pending, unless a producer died, or still is,
	 * between its CAS of the arm word and its event.
	 */
	_Atomic uint32_t armings;
	_Atomic uint32_t held_back; /* completions held back by moderation */
	_Atomic uint32_t eager_wanted; /* see eager.h */
	_Atomic uint64_t eager_base; /* offset for the poller */
	/* written by the poller */
	alignas(URXE_LINE) _Atomic uint32_t head[2];
};
/*
 * The eager buffer of a CQ: slots for messages that are too long for a CQE.
 * Position p of the ring has slot p % URXE_EAGER_SLOTS.
 */
#define URXE_EAGER_SLOTS 64
#define URXE_EAGER_BYTES 8192 /* of a slot: the longest message */
#define URXE_EAGER_SIZE (URXE_EAGER_SLOTS * URXE_EAGER_BYTES)
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
#define URXE_CONN_QPN(c) ((uint32_t)((c)&URXE_QPN_MASK))
#define URXE_CONN_DEST(c) ((uint32_t)((c) >> 24 & URXE_QPN_MASK))
#define URXE_CONN_STATE(c) ((uint8_t)((c) >> 48))
#define URXE_CONN_ENDS ((1ull << 48) - 1) /* both QPNs */
#define URXE_CONN_WITH(c, state) \
	(((c)&URXE_CONN_ENDS) | (uint64_t)(state) << 48)

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
	_Atomic uint8_t roce; /* URXE_ROCE_V1 to URXE_IB_GLOBAL */
	_Atomic uint8_t wire; /* 1: arena.wire[] has memory for it */
	/* 1: the bytes of a polled receive could not be placed */
	_Atomic uint8_t unplaced;
	_Atomic uint8_t pkey_index;
	_Atomic uint16_t dlid; /* InfiniBand: of the path */
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
	uint32_t hca; /* index of its device */
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
