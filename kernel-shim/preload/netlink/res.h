/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Resource tracking: responses to the RDMA_NLDEV_CMD_RES_* commands, for
 * rdma(8) "resource show".  They list the objects of all processes of the
 * fabric.  A table of attributes defines what is shown of each kind of object
 * (res_kinds.c).  The rest is common to all kinds: res_walk.c finds the
 * objects, res.c builds the messages.
 *
 * Arenas are read with pread(2), not mapped.  A page that was never written
 * reads as zeros and is not allocated.  If a file shrinks or vanishes, a read
 * fails; there is no SIGBUS.  No lock of the context is held, so an entry may
 * change while it is read.  Therefore each entry must identify itself, and
 * indices are bounded.
 *
 * Numbers are unique within the device.  Those of PDs, CQs and SRQs have the
 * context slot in their high bits.  The number of an MR is its key without
 * the tag.  The number of a context is its slot.
 */
#pragma once

#include "nldev.h"

/* The CQs and the SRQ that a QP uses, or the CQ that an SRQ uses (XRC). */
struct res_user {
	uint32_t qpn; /* 0: an SRQ */
	uint32_t cq[2]; /* index; 0: none */
	uint32_t srq; /* index + 1; 0: none */
};

/* A context that was live when it was opened. */
struct res_ctx {
	struct urxe_fabric *f;
	uint32_t slot, gen;
	int fd; /* of its arena */
	int32_t pid; /* of its opener */
	/* in another PID namespace, so that its PIDs have no meaning here */
	bool foreign;
	char comm[17];
	/* allocated by res_kind.prepare, or NULL */
	struct res_user *user;
	uint32_t users;
};

#define RES_NONE UINT64_MAX /* the object has no such value */

/* A copy of an object. */
struct res_obj {
	const struct res_ctx *c; /* NULL: it belongs to no context */
	const void *entry; /* of its table; a copy, except for cm_ids */
	uint32_t index; /* in the table */
	uint32_t number; /* unique within the device */
	uint32_t port; /* 0: it has no port yet */
	uint32_t slot; /* of its context */
	int32_t pid; /* of its owner, if the entry has none */
	uint64_t value[6]; /* computed values; each kind has its own */
};

/* Callback for each object.  False: stop the iteration. */
typedef bool res_fn(const struct res_obj *o, void *arg);

/* Format of an attribute. */
enum res_form {
	RES_END, /* end of the table */
	RES_U8,
	RES_U32,
	RES_U64,
	RES_TEXT, /* text[value]; the last text is for greater values, too */
	RES_OWNER, /* PID; if the context is foreign, the command name */
	RES_ADDR, /* union cm_addr */
	RES_PUT, /* by res_attr.put */
};

/* An attribute: the location of its value, and its format in a message. */
struct res_attr {
	uint8_t form; /* enum res_form */
	bool own; /* offset is in struct res_obj, not in the entry */
	uint8_t size; /* of the value, in bytes */
	uint16_t offset;
	uint16_t base; /* context slot * base is added */
	bool optional; /* value 0: omit the attribute */
	bool hex; /* print a detail in hexadecimal */
	uint8_t texts; /* number of entries of text */
	int id; /* RDMA_NLDEV_ATTR_* */
	const char *name; /* of a detail, a driver-specific attribute */
	const char *const *text; /* for RES_TEXT */
	/* Nonzero: no space in the message. */
	int (*put)(struct nl_msg *m, const struct res_obj *o);
};

/* A kind of object: its location, and its attributes. */
struct res_kind {
	const char *name;
	int op; /* RDMA_NLDEV_CMD_* */
	int table, entry, id; /* RDMA_NLDEV_ATTR_* */
	bool per_port; /* objects belong to a port, now or later */
	const struct res_attr *attrs, *details;

	/* Its table in the arena; size 0: the object is the context. */
	enum urxe_obj obj;
	uint32_t max, size; /* number of entries, bytes of an entry */
	size_t offset;
	size_t map; /* offset of the bitmap of used entries; 0: none */
	/* If the arena has no such bitmap: set the bits of used entries. */
	void (*find)(const struct res_ctx *c, uint64_t *map);
	/*
	 * Without `check`: an entry is an object if its first word has one of
	 * the bits in `live`, and its number is slot * max + index.  `check`
	 * decides by itself, and sets number and port.
	 */
	uint32_t live;
	bool (*check)(struct res_obj *o);
	/* Collect what `fill` needs of the context: 0, or -ENOMEM. */
	int (*prepare)(struct res_ctx *c);
	/* Compute the values of an object that is shown. */
	void (*fill)(struct res_obj *o);

	/* For objects outside of contexts: iterate over those of a device. */
	void (*each)(struct urxe_fabric *f, uint32_t device, res_fn *fn,
		     void *arg);
};

/* In the order of the kernel's summary. */
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
/* The MRs, in the format of STAT_GET. */
extern const struct res_kind res_kind_mr_stat;

/* res_walk.c ----------------------------------------------------------- */

/*
 * Open the arena of the context in @slot.  False: the slot has no live
 * context.
 */
bool res_ctx_open(struct urxe_fabric *f, uint32_t slot, struct res_ctx *c);
void res_ctx_close(struct res_ctx *c);
/* Call @fn for each object of a kind in a context. */
void res_each(const struct res_ctx *c, const struct res_kind *kind, res_fn *fn,
	      void *arg);
/* Read [offset, offset + len) of the arena.  False: the file is shorter. */
bool res_read(const struct res_ctx *c, uint64_t offset, void *buf, size_t len);

/* res.c ---------------------------------------------------------------- */

/*
 * Respond with all objects of a kind (dump), or with the object that the
 * request names.  0, or -errno; -EINVAL: missing or wrong attributes;
 * -ENOENT: no such object.
 */
int res_run(struct nl_request *r, const struct res_kind *kind);
/* The commands RES_GET (numbers of objects) and RES_*_GET (one kind). */
int nldev_res_get(struct nl_request *r);
int nldev_res_list(struct nl_request *r);

/* stat.c --------------------------------------------------------------- */

int nldev_stat_get(struct nl_request *r);
int nldev_stat_get_status(struct nl_request *r);
