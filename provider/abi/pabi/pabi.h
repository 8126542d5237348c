/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The private provider interface of libibverbs, as far as urxe uses it.
 *
 * Its header is not packaged, and its number does not identify the layout:
 * releases 59 and 62 have the same number.  So what differs between releases
 * is data (slots.h), which is selected at run time by the symbols that
 * libibverbs exports, and by its file name for releases before 49.  No private
 * symbol is linked, and one binary supports all releases from 36 to 65.
 */
#pragma once

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pabi_op {
#define SLOT(name, ...) PABI_##name,
#include "slots.h"
	PABI_OP_COUNT
};

struct pabi_sysfs_dev; /* opaque, except for pabi_sysfs_name() */

struct pabi_device;
struct pabi_device_ops {
	const char *name;
	uint32_t match_min_abi_version;
	uint32_t match_max_abi_version;
	const void *match_table;
	const struct pabi_device_ops **static_providers;
	bool (*match_device)(struct pabi_sysfs_dev *);
	void *(*alloc_context)(struct ibv_device *, int cmd_fd, void *);
	void *(*import_context)(struct ibv_device *, int cmd_fd);
	struct pabi_device *(*alloc_device)(struct pabi_sysfs_dev *);
	void (*uninit_device)(struct pabi_device *);
};

struct pabi_device {
	struct ibv_device device;
	const struct pabi_device_ops *ops;
	int refcount;
	void *entry[2];
	void *sysfs;
	uint64_t core_support;
};
#define PABI_CORE_OPTIONAL_MR_ACCESS 1u

enum pabi_mr_type {
	PABI_MR = 0,
	PABI_MR_NULL = 1,
	PABI_MR_IMPORTED = 2,
	PABI_MR_DMABUF = 3,
};

struct pabi_mr {
	struct ibv_mr mr;
	enum pabi_mr_type type;
	int access;
};

struct pabi_dm {
	struct ibv_dm dm;
	uint32_t handle;
};

struct pabi_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex cq_ex;
	};
};

struct pabi_srq {
	struct ibv_srq srq;
	enum ibv_srq_type srq_type;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	uint32_t srq_num;
};

struct pabi_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t comp_mask;
	uint32_t handle;
};

/*
 * verbs_qp: an ibv_qp_ex, then a mask and the XRC domain.  The size of
 * ibv_qp_ex depends on the release; pabi_qp_tail() returns the rest.
 */
struct pabi_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex qp_ex;
		uint8_t room[512];
	};
};
struct pabi_qp_tail {
	uint32_t comp_mask;
	struct ibv_xrcd *xrcd;
};
#define PABI_QP_HAS_XRCD 1u
#define PABI_QP_IS_EX 2u

/*
 * Sizes measured on x86-64.  A struct with a pthread_mutex_t is longer where
 * that has more than 40 bytes (aarch64 with glibc: 48).
 */
#define PABI_MUTEX_MORE (sizeof(pthread_mutex_t) - 40)

#if defined(__x86_64__) || defined(__aarch64__)
static_assert(sizeof(struct pabi_device) == 712, "as measured");
static_assert(sizeof(struct pabi_device_ops) == 72, "as measured");
static_assert(sizeof(struct pabi_mr) == 56, "as measured");
static_assert(sizeof(struct pabi_dm) == 40, "as measured");
static_assert(sizeof(struct pabi_srq) == 160 + PABI_MUTEX_MORE, "as measured");
static_assert(sizeof(struct pabi_xrcd) == 16, "as measured");
static_assert(sizeof(struct ibv_context) == 328 + PABI_MUTEX_MORE,
	      "as measured");
static_assert(offsetof(struct ibv_cq, comp_events_completed) ==
		      120 + PABI_MUTEX_MORE,
	      "as measured");
static_assert(sizeof(struct ibv_qp) == 160 + PABI_MUTEX_MORE, "as measured");
#endif

/* declared by newer headers only */
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

/* The operations of a provider, with their types.  NULL: not supported. */
struct pabi_ops {
#define OP(result, name, arguments) result(*name) arguments;
#include "ops.h"
#undef OP
};

struct pabi {
	unsigned int number; /* of the private ABI, known or not; 0: none */
	size_t context_size; /* of verbs_context */
	size_t qp_tail; /* offset of struct pabi_qp_tail */
	void (*register_driver)(const struct pabi_device_ops *);
	void *(*init_and_alloc_context)(struct ibv_device *, int cmd_fd,
					size_t size, size_t offset,
					uint32_t driver_id);
	void (*set_ops)(void *vctx, const void *ops);
	void (*uninit_context)(void *vctx);
};

extern struct pabi pabi;

/*
 * Find the libibverbs of this process and fill in `pabi`.  Called once.
 * Return 0, -ENOENT if none is loaded, -EPROTO if its layout is unknown.
 */
int pabi_probe(void);

/* Convert @ops to libibverbs' table, and set it in the context. */
void pabi_set_ops(void *vctx, const struct pabi_ops *ops);

/* Has the verbs_context the expected layout?  Else it must not be accessed. */
bool pabi_context_ok(void *vctx, const struct ibv_device *device);

static inline struct ibv_context *pabi_to_ibv(void *vctx)
{
	return (struct ibv_context *)((char *)vctx + pabi.context_size -
				      sizeof(struct ibv_context));
}

static inline void *pabi_to_vctx(struct ibv_context *ctx)
{
	return (char *)ctx + sizeof(struct ibv_context) - pabi.context_size;
}

static inline const char *pabi_sysfs_name(struct pabi_sysfs_dev *dev)
{
	return (const char *)dev + 112;
}

static inline struct pabi_qp_tail *pabi_qp_tail(struct pabi_qp *qp)
{
	return (struct pabi_qp_tail *)(qp->room + pabi.qp_tail);
}
