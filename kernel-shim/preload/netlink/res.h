/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers to the RDMA_NLDEV_CMD_RES_* commands: the objects of all processes
 * of the fabric.  What is shown of each kind of object is a table of
 * attributes (res_kinds.c); all else is the same for all of them.
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
#pragma once

#include "nldev.h"

/* A QP, or an XRC SRQ: what it uses. */
struct res_user {
	uint32_t qpn;
	uint32_t cq[2]; /* 0: none */
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
	/* where res_kind.prepare needs them */
	struct res_user *user;
	uint32_t users;
};

#define RES_NONE UINT64_MAX /* a value that is not there */

/* An object as it was found. */
struct res_obj {
	const struct res_ctx *c; /* NULL: it is no context's */
	const void *entry; /* of its table: a copy */
	uint32_t index; /* in the table */
	uint32_t number; /* the device's */
	uint32_t port; /* behind which it is; 0: none yet */
	uint32_t slot; /* of its context */
	int32_t pid; /* of its owner, where the entry has none */
	uint64_t value[6]; /* what has to be computed; each kind has its own */
};

/* Told of an object; false: no more of them. */
typedef bool res_fn(const struct res_obj *o, void *arg);

enum res_form {
	RES_END, /* of the table */
	RES_U8,
	RES_U32,
	RES_U64,
	RES_TEXT, /* text[value]; the last one is that of greater values, too */
	RES_OWNER, /* a PID or, if that would mean nothing, the command's name */
	RES_ADDR, /* union cm_addr */
	RES_PUT, /* by a function */
};

/* An attribute: where its value is, and how it is put into a message. */
struct res_attr {
	uint8_t form; /* enum res_form */
	bool own; /* in struct res_obj, not in the entry: */
	uint8_t size;
	uint16_t offset;
	uint16_t base; /* the context's slot * base is added */
	bool optional; /* 0: it is not there, as RES_NONE */
	bool hex; /* a detail is printed so */
	uint8_t texts;
	int id; /* RDMA_NLDEV_ATTR_* */
	const char *name; /* of a detail, which is the device's own */
	const char *const *text;
	/* Nonzero if it did not fit. */
	int (*put)(struct nl_msg *m, const struct res_obj *o);
};

/* A kind of object: where it is, and what is shown. */
struct res_kind {
	const char *name;
	int op; /* RDMA_NLDEV_CMD_* */
	int table, entry, id; /* RDMA_NLDEV_ATTR_* */
	bool per_port; /* it belongs to a port, or will */
	const struct res_attr *attrs, *details;

	/* Its table in the arena; size 0: it is the context itself. */
	enum urxe_obj obj;
	uint32_t max, size;
	size_t offset;
	size_t map; /* bitmap of those in use; 0: there is none */
	/* The same, if it is not in the arena. */
	void (*find)(const struct res_ctx *c, uint64_t *map);
	/*
	 * It is an object if its first word has one of these bits, and its
	 * number begins with the context's slot.  Instead: set number and port,
	 * or it is no such object.
	 */
	uint32_t live;
	bool (*check)(struct res_obj *o);
	/* What fill needs of the context: 0 or -ENOMEM. */
	int (*prepare)(struct res_ctx *c);
	/* The values of an object that is shown. */
	void (*fill)(struct res_obj *o);

	/* Instead, for what is in no context. */
	void (*each)(struct urxe_fabric *f, res_fn *fn, void *arg);
};

/* In the order that the kernel counts them. */
enum {
	RES_PD,
	RES_CQ,
	RES_QP,
	RES_CM_ID,
	RES_MR,
	RES_CTX,
	RES_SRQ,
	RES_KINDS
};
extern const struct res_kind res_kinds[RES_KINDS];
/* The same MRs as an answer to STAT_GET. */
extern const struct res_kind res_kind_mr_stat;

/* res_walk.c ----------------------------------------------------------- */

/* The context in that slot; false: none lives there. */
bool res_ctx_open(struct urxe_fabric *f, uint32_t slot, struct res_ctx *c);
void res_ctx_close(struct res_ctx *c);
/* Each object of a kind in a context. */
void res_each(const struct res_ctx *c, const struct res_kind *kind, res_fn *fn,
	      void *arg);
/* [offset, offset + len) of the arena; false if it is not all there. */
bool res_read(const struct res_ctx *c, uint64_t offset, void *buf, size_t len);

/* res.c ---------------------------------------------------------------- */

/* Carry out the request, a dump or for one object. */
int res_run(struct nl_request *r, const struct res_kind *kind);
/* The commands: RES_GET, and RES_*_GET of each kind. */
int nldev_res_get(struct nl_request *r);
int nldev_res_list(struct nl_request *r);

/* stat.c --------------------------------------------------------------- */

int nldev_stat_get(struct nl_request *r);
int nldev_stat_get_status(struct nl_request *r);
