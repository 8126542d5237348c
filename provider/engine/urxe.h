/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The provider's own objects: what wraps each thing that libibverbs knows. */
#ifndef URXE_H
#define URXE_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "lock.h"
#include "abi/pabi/pabi.h"

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

struct urxe_context;
struct urxe_qp;

/* This process and its PID namespace; refreshed after fork. */
extern int32_t urxe_pid;
extern uint64_t urxe_pidns;

/*
 * A context as this process sees it: its own (fd -1) or another one, mapped.
 * Reference counted, peer.c.
 */
struct urxe_peer {
	struct urxe_peer *next;
	struct urxe_fabric *fabric;
	struct urxe_arena *arena;
	uint32_t slot, gen;
	int fd;
	unsigned int refs;
	/* other PID namespace: its numbers mean nothing here */
	bool foreign_pids;
	/* what URXE_MR_FOREIGN is in the keys of this process; or never */
	uint8_t my_flag;
	/* process_vm_* is forbidden: its bounce threads copy (bounce.h) */
	_Atomic bool bounce;
	/* files of that context that are mapped here; see mem.c */
	struct urxe_mapped_file *_Atomic files;
};

struct urxe_context {
	struct urxe_context *next; /* context.c: all of this process */
	struct urxe_fabric *fabric;
	struct urxe_peer *self;
	struct urxe_arena *arena; /* self->arena */
	struct ibv_context *ibv;
	int cmd_fd;
	uint32_t slot, gen;
	pthread_mutex_t lock; /* object lists */
	struct urxe_service *service; /* NULL until it is needed */
	struct urxe_bouncing *bouncing; /* bounce_serve.c; the same */
	/* why it would be: others may come, and there is what they may want */
	_Atomic bool exposed, has_private;
	struct urxe_cq *cqs;
	/* by QPN index and by number; pollers look there, see quiesce.h */
	struct urxe_qp *_Atomic qp[URXE_MAX_QP];
	struct urxe_srq *_Atomic srq[URXE_MAX_SRQ];
	uint16_t xrcd_opens[URXE_MAX_XRCD]; /* under the device lock */
	_Atomic uint32_t deaths; /* dev->deaths that were looked into */
	_Atomic uint64_t reaped; /* when a full queue asked for the dead, ns */
};

struct urxe_pd {
	struct ibv_pd pd;
	struct urxe_context *ctx;
	uint32_t live; /* of the PD that this is a handle of; pd.c */
	struct urxe_parent *parent; /* of a parent domain; parent_domain.h */
	_Atomic uint32_t users; /* objects made with this handle, and it */
};

struct urxe_mr {
	struct pabi_mr vmr;
	struct urxe_context *ctx;
	struct urxe_key *key;
	void *map; /* ibv_reg_dmabuf_mr's own mapping, or NULL */
	size_t map_len;
};

struct urxe_mw {
	struct ibv_mw mw;
	struct urxe_context *ctx;
	struct urxe_key *key;
};

struct urxe_dm {
	struct pabi_dm vdm;
	struct urxe_context *ctx;
	char *ptr;
	uint64_t length;
	uint64_t offset; /* in the heap */
	uint32_t slot;
};

/* A completion queue as a producer sees it, its own or a peer's. */
struct urxe_cq_view {
	struct urxe_cq_sh *sh;
	struct urxe_arena *arena; /* peer's */
	uint16_t owner; /* the producer's context slot, for claims */
	struct urxe_peer *peer; /* where it is */
	_Atomic int event_fd; /* its channel's FIFO, opened when first needed */
};

struct urxe_cq {
	struct pabi_cq vcq;
	struct urxe_context *ctx;
	struct urxe_cq *next; /* in ctx->cqs */
	struct urxe_cq_sh *sh;
	uint32_t index;
	pthread_mutex_t lock; /* pollers and resizers, if they are several */
	bool single_threaded;
	struct urxe_gate gate; /* whoever has the lock, at work in the ring */
	/* the poller's, inside the gate */
	struct urxe_cqe *ring;
	uint32_t mask;
	uint32_t head; /* next entry to poll */
	uint32_t stuck; /* polls that met the same claimed entry */
	struct urxe_cqe current; /* of start_poll ... end_poll */
	struct urxe_backlog *backlog; /* what a resize left over, or NULL */
	uint64_t ring_word; /* struct urxe_cq_sh.ring */
	struct urxe_cq_view view; /* for our own requesters and flushes */
	_Atomic uint32_t stalled; /* QPs of this send CQ with a parked WR */
	_Atomic pthread_t batch_thread; /* in start_poll ... end_poll, or 0 */
	struct urxe_qp *send_qps, *recv_qps; /* under ctx->lock */
	struct urxe_pd *parent; /* parent domain it was made in, or NULL */
	uint64_t hold_until; /* moderation: the service thread's, or 0 */
	unsigned int refs; /* QPs, under ctx->lock */
};

/* Opcodes and access flags that the installed header may not name yet. */
#define URXE_WR_FLUSH 14
#define URXE_WR_ATOMIC_WRITE 15
#define URXE_WC_FLUSH 8
#define URXE_WC_ATOMIC_WRITE 9
#define URXE_ACCESS_FLUSH_GLOBAL (1u << 8)
#define URXE_ACCESS_FLUSH_PERSISTENT (1u << 9)
/* placement type and selectivity level of a FLUSH */
#define URXE_FLUSH_GLOBAL (1u << 0)
#define URXE_FLUSH_PERSISTENT (1u << 1)
#define URXE_FLUSH_RANGE 0
#define URXE_FLUSH_MR 1

/* An address vector, as much of an AH as the other side can see. */
struct urxe_av {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class, sl;
};

/* How far the invalidation of a SEND WITH INVALIDATE has come. */
enum urxe_inv { URXE_INV_TO_DO, URXE_INV_DONE, URXE_INV_FAILED };

/* What is in an SQ slot: the WR as posted, then SGEs or inline data. */
struct urxe_wqe {
	uint64_t wr_id;
	uint64_t length; /* sum of the SGEs, or of the inline data */
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			uint32_t qpn, qkey;
			struct urxe_av av;
		} ud;
		struct { /* IBV_WR_BIND_MW */
			uint64_t addr, length;
			uint32_t mw_key, new_key, mr_key, access;
		} bind;
		struct { /* URXE_WR_FLUSH */
			uint32_t type, level;
		} flush;
		uint8_t write_data[8]; /* URXE_WR_ATOMIC_WRITE, no SGE */
	};
	uint32_t rkey;
	uint32_t imm; /* as it goes on the wire, or the rkey to invalidate */
	uint32_t srqn; /* XRC: the remote SRQ */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t flags; /* enum ibv_send_flags */
	uint8_t num_sge;
	uint8_t inv; /* IBV_WR_SEND_WITH_INV: enum urxe_inv */
	struct urxe_sge sge[]; /* or inline bytes */
};

/*
 * The send queue, private to its process.  tail <= comp <= exec <= prod:
 * slots below tail are free (their completion was polled), below comp are
 * completed, below exec executed.
 */
struct urxe_sq {
	char *ring;
	uint32_t mask, stride;
	uint32_t max_wr, max_sge, max_inline;
	uint32_t prod, exec, comp;
	_Atomic uint32_t tail;
	bool signal_all;
	bool custom; /* ring is from the allocator of a parent domain, pd */
	struct urxe_pd *pd;
};

/*
 * What the owner remembers of a receive that several may take, from posting
 * to polling: rq.h.  A struct urxe_recv follows.
 */
struct urxe_kept {
	_Atomic bool out; /* not polled yet; cleared by the poller */
	bool found; /* its completion was found; rq_recover.c */
	uint32_t pos;
};

struct urxe_kept_set {
	uint32_t count, stride;
	char slot[];
};

struct urxe_rq {
	struct urxe_lock lock;
	struct urxe_rq_sh *sh;
	char *ring;
	uint32_t mask, stride, max_wr, max_sge;
	uint32_t prod;
	_Atomic uint32_t tail; /* released by polling */
	struct urxe_kept_set *_Atomic kept; /* NULL: one requester only */
	uint32_t next_ticket;
};

/* A receive queue as a requester sees it. */
struct urxe_rq_view {
	struct urxe_rq_sh *sh;
	struct urxe_arena *arena;
	uint64_t ring_word; /* what ring and mask were made from */
	const char *ring;
	uint32_t mask, stride, max_sge;
};

/*
 * Where messages for a QP are received: its own RQ, or an SRQ, which in XRC
 * may be another process's.
 */
struct urxe_rx {
	struct urxe_peer *peer; /* of the queue */
	uint32_t pd; /* that its lkeys must be of */
	struct urxe_rq_view rq;
	struct urxe_cq_view cq;
	struct urxe_srq_sh *srq; /* NULL: the QP's own RQ */
	bool crowd; /* others take receives, too */
	uint32_t srq_index;
	uint32_t srq_live; /* what srq->live was */
};

/*
 * Another QP as a requester sees it: the other end of a connection, or a
 * destination of datagrams.  Looked up when it is first needed.
 */
struct urxe_conn {
	struct urxe_peer *peer; /* NULL: not resolved */
	struct urxe_qp_sh *sh;
	uint64_t want; /* the low 48 bits sh->conn must have */
	uint32_t qpn, pd;
	uint32_t srqn; /* XRC: the SRQ that rx is a view of */
	struct urxe_rx rx;
};

enum urxe_stall_kind {
	STALL_NONE,
	STALL_RNR, /* the responder has no receive */
	STALL_TRANSPORT, /* nobody answers */
};

/* A parked send queue; retry.c. Times are CLOCK_MONOTONIC ns. */
struct urxe_stall {
	enum urxe_stall_kind kind;
	uint8_t left; /* retries; 7 with RNR: endless */
	bool endless;
	uint64_t deadline;
};

/* Sent and not yet in the port's counters; counters.h */
struct urxe_qp_count {
	uint64_t packets, bytes;
};

/* ibv_wr_start ... ibv_wr_complete; qp_ex.c */
struct urxe_wr_batch {
	struct urxe_wqe *wqe; /* being built, not yet counted in sq.prod */
	uint32_t first; /* sq.prod as it was */
	int error; /* the first one: nothing will be posted */
	bool needs_dest; /* the QP type's setter was not called yet */
	bool needs_data; /* a data setter may be called */
	pthread_t thread; /* whose it is, or 0; looked at after a fork */
};

struct urxe_qp {
	struct pabi_qp vqp;
	struct urxe_context *ctx;
	struct urxe_qp_sh *sh;
	struct urxe_guard *guard;
	struct urxe_cq *scq, *rcq;
	struct urxe_qp *scq_next, *rcq_next; /* in their CQs' lists */
	struct urxe_lock lock; /* the send queue and the state machine */
	struct urxe_sq sq;
	struct urxe_wr_batch batch;
	struct urxe_qp_count count;
	struct urxe_rq rq; /* without an SRQ */
	struct urxe_srq *srq;
	struct urxe_xrcd *xrcd;
	struct urxe_conn conn;
	struct urxe_peer *opened; /* ibv_open_qp: the context it lives in */
	struct urxe_conn *dests; /* UD: destinations, by the QPN's low bits */
	uint32_t mcast_groups; /* it is attached to, under the device lock */
	struct urxe_stall stall;
	uint32_t psn; /* of the next request */
	uint8_t mtu_shift;
	bool sqd_notify; /* raise SQ_DRAINED when the queue comes to rest */
	struct ibv_qp_attr attr; /* as modify_qp left it */
	struct ibv_qp_init_attr init;
	uint64_t rq_offset, rq_bytes;
};

struct urxe_srq {
	struct pabi_srq vsrq;
	struct urxe_context *ctx;
	struct urxe_srq_sh *sh;
	struct urxe_rq rq;
	uint32_t index;
	struct urxe_cq *cq; /* XRC */
	struct urxe_xrcd *xrcd;
	unsigned int refs; /* QPs, under ctx->lock */
};

struct urxe_ah {
	struct ibv_ah ah;
	struct urxe_context *ctx;
	struct urxe_av av;
};

struct urxe_xrcd {
	struct pabi_xrcd vxrcd;
	struct urxe_context *ctx;
	uint32_t index;
	_Atomic uint32_t refs; /* QPs and SRQs of this process */
};

static inline struct urxe_pd *to_upd(struct ibv_pd *pd)
{
	return container_of(pd, struct urxe_pd, pd);
}

static inline struct urxe_mr *to_umr(struct ibv_mr *mr)
{
	return container_of(mr, struct urxe_mr, vmr.mr);
}

static inline struct urxe_mw *to_umw(struct ibv_mw *mw)
{
	return container_of(mw, struct urxe_mw, mw);
}

static inline struct urxe_dm *to_udm(struct ibv_dm *dm)
{
	return container_of(dm, struct urxe_dm, vdm.dm);
}

static inline struct urxe_cq *to_ucq(struct ibv_cq *cq)
{
	return container_of(cq, struct urxe_cq, vcq.cq);
}

static inline struct urxe_qp *to_uqp(struct ibv_qp *qp)
{
	return container_of(qp, struct urxe_qp, vqp.qp);
}

static inline struct urxe_srq *to_usrq(struct ibv_srq *srq)
{
	return container_of(srq, struct urxe_srq, vsrq.srq);
}

static inline struct urxe_ah *to_uah(struct ibv_ah *ah)
{
	return container_of(ah, struct urxe_ah, ah);
}

static inline struct urxe_xrcd *to_uxrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct urxe_xrcd, vxrcd.xrcd);
}

static inline struct urxe_context *to_uctx(struct ibv_context *ctx)
{
	return (struct urxe_context *)((char *)pabi_to_vctx(ctx) -
				       sizeof(struct urxe_context));
}

/* ---- log.c: why something failed, on stderr, if URXE_LOG is set */
void urxe_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
extern bool urxe_log_on;
#define urxe_why(...) \
	do { \
		if (unlikely(urxe_log_on)) \
			urxe_log(__VA_ARGS__); \
	} while (0)
/* errno = -err, NULL; says why, too. */
/* Names for messages, also of values that do not exist. */
const char *urxe_state_name(unsigned int ibv_qp_state);
const char *urxe_status_name(unsigned int ibv_wc_status);
void *urxe_fail(int err, const char *what);

#endif
