/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibverbs' private provider interface, in our own words.
 *
 * Its header is not packaged and its number alone does not tell the layout
 * (releases 59 and 62 share one), so everything that varies is data, chosen
 * at run time by the symbols that are there.  Nothing is linked: one binary
 * serves every release from 36 to 65.
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

struct pabi_sysfs_dev; /* opaque; pabi_sysfs_name() reads the one field */

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
 * Core's verbs_qp: ibv_qp_ex, whose size grew twice, then a mask and the
 * XRC domain.  pabi_qp_tail() finds them.
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
 * Sizes are those of x86-64, measured.  Where pthread_mutex_t has more than 40
 * bytes (aarch64 with glibc: 48) what has one inside is so much longer.
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

/* in newer headers */
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

/* A provider's operations, which the compiler checks; NULL: not supported. */
struct pabi_ops {
#define OP(result, name, arguments) result(*name) arguments;
#include "ops.h"
#undef OP
};

struct pabi {
	unsigned int number; /* that libibverbs says it has, known or not */
	size_t context_size; /* of core's verbs_context */
	size_t qp_tail; /* offset of struct pabi_qp_tail */
	void (*register_driver)(const struct pabi_device_ops *);
	void *(*init_and_alloc_context)(struct ibv_device *, int cmd_fd,
					size_t size, size_t offset,
					uint32_t driver_id);
	void (*set_ops)(void *vctx, const void *ops);
	void (*uninit_context)(void *vctx);
};

extern struct pabi pabi;

/* Find the libibverbs in this process.  -ENOENT none, -EPROTO unknown one. */
int pabi_probe(void);

/* Build core's table from ops and install it. */
void pabi_set_ops(void *vctx, const struct pabi_ops *ops);

/* Is ctx laid out as expected?  An unknown layout must not be touched. */
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
