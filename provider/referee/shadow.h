/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shadows of a program's objects: what each is, where it was made, and
 * what findings need to know of it.  All of it is under referee_lock(), but
 * for what an object has from its making on; who uses an object while another
 * thread destroys it is lost anyway.
 */
#pragma once

#include <infiniband/verbs.h>

#include "base/compiler.h"
#include "finding.h"
#include "queue.h"

/* TYPE(name, what it is called) */
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
	struct shadow *next, *prev; /* all of this process, oldest first */
	enum shadow_type type;
	const void *handle; /* the program's pointer */
	struct ibv_context *context;
	uint32_t number; /* of a QP its QPN, of an MR or MW its key */
	uint32_t nth; /* of its type in this process, from 1 */
	uint32_t events, async_events; /* that were given out */
	bool inherited; /* by fork(): the parent uses it, and knows more */
	struct stack made;
};

struct shadow_mr {
	struct shadow s;
	struct ibv_dm *dm; /* or NULL */
	uint64_t addr; /* in this process; of an import 0 */
	uint64_t iova, length; /* as keys name it */
	uint32_t lkey;
	unsigned int access;
	bool imported, null;
	struct shadow_mr *watch_next, **watch_pprev; /* unmapped.c */
	uint64_t watched; /* since this moment */
};

struct shadow_cq {
	struct shadow s;
	struct ibv_cq *cq;
	uint32_t cqe; /* entries that the device granted */
	uint32_t pending; /* WRs in flight that will complete here */
	bool ignores_overrun;
	/* the real calls, if it is an ibv_cq_ex */
	int (*start_poll)(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);
	int (*next_poll)(struct ibv_cq_ex *);
};

struct shadow_srq {
	struct shadow s;
	struct ibv_srq *srq;
	struct shadow_cq *cq; /* of an XRC SRQ, or NULL */
	struct shadow_queue rq;
};

struct shadow_qp {
	struct shadow s;
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	bool sig_all;
	bool opened; /* ibv_open_qp: another handle */
	struct shadow_cq *scq, *rcq; /* or NULL */
	struct shadow_srq *srq; /* or NULL */
	struct shadow_queue sq, rq;
	uint32_t dest_qpn; /* as ibv_modify_qp was asked */
	struct stack connected; /* who brought it to RTR */
	bool reads; /* a READ or an atomic was posted */
	bool looked, looked_reads; /* at the other end; pair.c */
	/* waiting for receives of the other end; limits.c */
	uint32_t rnr_times;
	uint64_t rnr_since, rnr_ns;
	struct stack rnr_at;
	/* ibv_wr_start ... ibv_wr_complete; the real calls are in real */
	struct shadow_wr *batch, **batch_end;
	struct shadow_wr *building; /* its last one, or NULL */
	uint8_t real[512];
};

#define to_shadow_mr(p) container_of(p, struct shadow_mr, s)
#define to_shadow_cq(p) container_of(p, struct shadow_cq, s)
#define to_shadow_qp(p) container_of(p, struct shadow_qp, s)
#define to_shadow_srq(p) container_of(p, struct shadow_srq, s)

/*
 * A shadow of size bytes for an object that was just made, its stack being
 * that of now, in the lists; NULL: no memory, and the object has none.
 */
struct shadow *shadow_add(enum shadow_type type, size_t size,
			  const void *handle, struct ibv_context *context,
			  uint32_t number);
/* NULL: there is none. */
struct shadow *shadow_find(enum shadow_type type, const void *handle);
/* Out of the lists, before the object's address can be another's; and back. */
struct shadow *shadow_take_out(enum shadow_type type, const void *handle);
void shadow_put_back(struct shadow *s);
void shadow_free(struct shadow *s);
/* The oldest, and the newest; the others follow by next, and by prev. */
struct shadow *shadow_first(void);
struct shadow *shadow_last(void);

struct shadow_qp *shadow_qp(const struct ibv_qp *qp);
struct shadow_cq *shadow_cq(const struct ibv_cq *cq);
struct shadow_srq *shadow_srq(const struct ibv_srq *srq);
/* The QP that has this number in the context. */
struct shadow_qp *shadow_qp_numbered(struct ibv_context *context, uint32_t qpn);

/* "QP 0x11", "MR 0x1234 (lkey 0x500)": into name, which is returned. */
const char *shadow_name(const struct shadow *s, char name[FINDING_NAME]);

void shadow_after_fork(void);
