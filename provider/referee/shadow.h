/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shadows: the referee's records of the program's objects.  A shadow has the
 * object's type and attributes, the stack of its creation, and what checks
 * need.
 *
 * objects.c adds a shadow after the real create verb, and frees it after the
 * real destroy verb.  An object may have no shadow: there was no memory, or
 * it is being destroyed.
 *
 * Shadows are guarded by referee_lock().  Members that are set at creation
 * and not changed later may be read without it: the object is not destroyed
 * meanwhile, unless the program uses an object that another thread destroys.
 */
#pragma once

#include <infiniband/verbs.h>

#include "base/compiler.h"
#include "referee/report/finding.h"
#include "queue.h"

/* TYPE(name, text in findings) */
#define SHADOW_TYPES(TYPE)            \
	TYPE(PD, "PD")                \
	TYPE(TD, "thread domain")     \
	TYPE(MR, "MR")                \
	TYPE(MW, "MW")                \
	TYPE(DM, "device memory")     \
	TYPE(XRCD, "XRC domain")      \
	TYPE(CQ, "CQ")                \
	TYPE(SRQ, "SRQ")              \
	TYPE(QP, "QP")                \
	TYPE(AH, "AH")                \
	TYPE(COMP_CNTR, "completion counter")

enum shadow_type {
#define TYPE(name, text) SHADOW_##name,
	SHADOW_TYPES(TYPE)
#undef TYPE
	SHADOW_TYPES_COUNT
};

struct shadow {
	struct shadow *hash_next, *number_next;
	struct shadow *next, *prev; /* list of all shadows, oldest first */
	enum shadow_type type;
	const void *handle; /* the program's pointer */
	struct ibv_context *context;
	uint32_t number; /* QP: QPN; MR: lkey; MW: rkey; CQ, SRQ: handle */
	uint32_t nth; /* number among its type in this process, from 1 */
	uint32_t events, async_events; /* events that were delivered */
	bool inherited; /* by fork(2): it belongs to the parent, no checks */
	struct stack made; /* stack of the creation */
};

struct shadow_mr {
	struct shadow s;
	struct ibv_dm *dm; /* or NULL */
	uint64_t addr; /* in this process; 0: not known */
	uint64_t iova, length; /* the range that WRs may name */
	uint32_t lkey;
	unsigned int access;
	bool imported, null;
	/* unmapped.c, under its lock: list, and value of its counter */
	struct shadow_mr *watch_next, **watch_pprev;
	uint64_t watched;
};

struct shadow_cq {
	struct shadow s;
	struct ibv_cq *cq;
	uint32_t cqe; /* entries, as granted by the device */
	uint32_t pending; /* outstanding WRs that will have a CQE here */
	bool ignores_overrun;
	/* the real calls, if it was created by ibv_create_cq_ex */
	int (*start_poll)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);
	int (*next_poll)(struct ibv_cq_ex *);
};

struct shadow_srq {
	struct shadow s;
	struct ibv_srq *srq;
	struct shadow_cq *cq; /* XRC SRQ: its CQ, else NULL */
	struct shadow_queue rq;
};

struct shadow_qp {
	struct shadow s;
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	bool sig_all;
	bool opened; /* by ibv_open_qp: a second handle of a QP */
	struct shadow_cq *scq, *rcq; /* or NULL */
	struct shadow_srq *srq; /* or NULL */
	struct shadow_queue sq, rq;
	uint32_t dest_qpn; /* of ibv_modify_qp */
	struct stack connected; /* stack of the transition to RTR */
	bool reads; /* a READ or an atomic was posted */
	bool compared, compared_reads; /* compared with the peer's QP; pair.c */
	/* waits for receives of the peer (RNR); limits.c */
	uint32_t rnr_times;
	uint64_t rnr_since, rnr_ns; /* begin of a wait, or 0; sum of all */
	struct stack rnr_at; /* stack of the first post that waited */
	/* ibv_wr_start ... ibv_wr_complete; posts_ex.c */
	struct shadow_wr *batch, **batch_end;
	struct shadow_wr *building; /* the last one of the batch, or NULL */
	uint8_t real[512]; /* copy of struct ibv_qp_ex, with the real calls */
};

#define to_shadow_mr(p) container_of(p, struct shadow_mr, s)
#define to_shadow_cq(p) container_of(p, struct shadow_cq, s)
#define to_shadow_qp(p) container_of(p, struct shadow_qp, s)
#define to_shadow_srq(p) container_of(p, struct shadow_srq, s)

/*
 * Add a zeroed shadow of @size bytes, with the current stack, for an object
 * that was just created.  NULL: there is no memory, and the object has no
 * shadow.
 */
struct shadow *shadow_add(enum shadow_type type, size_t size,
			  const void *handle, struct ibv_context *context,
			  uint32_t number);
/* Return the shadow of an object, or NULL. */
struct shadow *shadow_find(enum shadow_type type, const void *handle);
/*
 * Take a shadow out of the lists, before the object is destroyed and its
 * address may be reused.  NULL: there is none.
 */
struct shadow *shadow_take_out(enum shadow_type type, const void *handle);
/* Put it back, as the newest: the destroy verb failed. */
void shadow_put_back(struct shadow *s);
/* Free a shadow that is out of the lists, or NULL, and its queues. */
void shadow_free(struct shadow *s);
/* Return the oldest or the newest shadow, or NULL. */
struct shadow *shadow_first(void);
struct shadow *shadow_last(void);

struct shadow_qp *shadow_qp(const struct ibv_qp *qp);
struct shadow_cq *shadow_cq(const struct ibv_cq *cq);
struct shadow_srq *shadow_srq(const struct ibv_srq *srq);
/*
 * Return the QP with this number in the context, or NULL.  Handles of
 * ibv_open_qp() are ignored.
 */
struct shadow_qp *shadow_qp_numbered(struct ibv_context *context, uint32_t qpn);

/* Format the name of the object, such as "QP 0x11", into name; return it. */
const char *shadow_name(const struct shadow *s, char name[FINDING_NAME]);

/* In a forked child: mark all shadows as inherited. */
void shadow_after_fork(void);
