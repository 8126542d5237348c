/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers to the RDMA_NLDEV_CMD_RES_* commands: the objects of all processes
 * of the fabric.
 *
 * Arenas are read with pread(2), not through a mapping: a part that never got
 * memory reads as zeros and gets none, and a file that shrinks or vanishes is
 * a failed read, not a signal.  What is read may be changing meanwhile, so
 * each entry has to name itself, and indices are bounded.
 *
 * Numbers are the device's, not a context's: those of PDs, CQs and SRQs have
 * the context's slot in their high bits, the number of an MR is its key
 * without the tag, and a context's is its slot.
 */
#ifndef URXE_SHIM_RES_H
#define URXE_SHIM_RES_H

#include "nldev.h"

struct res_out;

/* What the queues of a QP are. */
struct res_qp {
	uint32_t qpn;
	uint32_t send_cq, recv_cq; /* 0: none */
	uint32_t srq; /* index + 1; 0: none */
};

/* A context that lives, or did when it was found. */
struct res_ctx {
	struct urxe_fabric *f;
	uint32_t slot, gen;
	int fd; /* of its arena */
	int32_t pid; /* of its opener */
	bool foreign; /* of another PID namespace: its PIDs mean nothing */
	char comm[17];
	struct res_qp *qp; /* after res_load_qps */
	uint32_t qps;
};

/* Puts the attributes of one object: nonzero if they did not fit. */
typedef int res_fill(struct nl_msg *m, const void *object);

/* A kind of object, and how it is listed. */
struct res_kind {
	int op; /* RDMA_NLDEV_CMD_* */
	int table, entry, id; /* RDMA_NLDEV_ATTR_* */
	bool per_port; /* it belongs to a port, or will */
	/* Either: for each context, or all of them at once. */
	void (*list)(struct res_out *o, struct res_ctx *c);
	void (*list_all)(struct res_out *o);
};

/* Where the objects go. */
struct res_out {
	struct nl_request *r;
	const struct res_kind *kind;
	uint32_t port; /* only what is behind it; 0: everything */
	bool dump; /* else the object `id` only */
	uint32_t id;
	bool details; /* what is the device's own, too */
	bool found;
	struct nl_msg *msg; /* being filled, or NULL */
	struct nlattr *table;
};

/* res.c ---------------------------------------------------------- */

/* Carry out the request, a dump or for one object. */
int res_run(struct nl_request *r, const struct res_kind *kind);
/* There is no use in going on: found, or no room for more. */
bool res_done(const struct res_out *o);
/* Object `number`, behind `port` (0: none yet), into the answer if wanted. */
void res_put(struct res_out *o, uint32_t number, uint32_t port, res_fill *fill,
	     const void *object);
/* PID or, if that would mean nothing, the command's name. */
int res_put_owner(struct nl_msg *m, const struct res_ctx *c, int32_t pid);
/* RDMA_NLDEV_ATTR_DRIVER: end what this returned with nla_nest_end. */
struct nlattr *res_details(struct nl_msg *m);
int res_detail_u32(struct nl_msg *m, const char *name, uint32_t value,
		   bool hex);
int res_detail_u64(struct nl_msg *m, const char *name, uint64_t value,
		   bool hex);
int res_detail_string(struct nl_msg *m, const char *name, const char *value);

/* The commands: RES_GET, and RES_*_GET of each kind. */
int nldev_res_get(struct nl_request *r);
int nldev_res_list(struct nl_request *r);

/* res_ctx.c ------------------------------------------------------ */

extern const struct res_kind res_kind_ctx;
/* kind->list for each context that lives. */
void res_walk(struct res_out *o);
/* [offset, offset + len) of the arena; false if it is not all there. */
bool res_read(const struct res_ctx *c, uint64_t offset, void *buf, size_t len);
uint32_t res_used(const struct res_ctx *c, enum urxe_obj o);

/* res_pd.c, res_mr.c, res_cq.c, res_srq.c ------- */

extern const struct res_kind res_kind_pd, res_kind_mr, res_kind_cq,
	res_kind_srq;
/* The same MRs as an answer to STAT_GET. */
extern const struct res_kind res_kind_mr_stat;

static inline uint32_t res_pdn(const struct res_ctx *c, uint32_t handle)
{
	return c->slot * URXE_MAX_PD + handle;
}

static inline uint32_t res_cqn(const struct res_ctx *c, uint32_t index)
{
	return c->slot * URXE_MAX_CQ + index;
}

/* res_qp.c ------------------------------------------------------- */

extern const struct res_kind res_kind_qp;
/* A copy of the QP in slot i of the directory, if it is the context's. */
bool res_read_qp(const struct res_ctx *c, uint32_t i, struct urxe_qp_sh *out);
/* Fill in c->qp and c->qps: -ENOMEM.  They go with the context. */
int res_load_qps(struct res_ctx *c);

/* res_cm.c ------------------------------------------------------- */

extern const struct res_kind res_kind_cm_id;
/* How many res_kind_cm_id lists. */
uint32_t res_count_cm_ids(struct urxe_fabric *f);

/* stat.c --------------------------------------------------------- */

int nldev_stat_get(struct nl_request *r);
int nldev_stat_get_status(struct nl_request *r);

#endif
