/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parts of urxe-profile-record. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric/profile.h"

#define PROGRAM "urxe-profile-record"
#define PORT 1
#define MEMORY 65536 /* bytes that are registered */

struct recorder {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd; /* NULL if the device has none */
	int no_xrcd; /* errno value of ibv_open_xrcd, or 0 */
	int fd; /* file of the memory, or -1 */
	void *memory;
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid; /* of RoCE v2 if there is one */
	bool has_gid;
	enum ibv_qp_type type; /* of QPs that are probed: RC if it exists */
	struct urxe_profile p;
	/* errno value of refusals; 0: none, -1: they differ */
	int refused[PROFILE_KEYS_COUNT];
};

/* probe.c: helpers ---------------------------------------------------- */

extern const struct ibv_qp_cap least_cap;
/* Print a message on standard error. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The errno value of a call that failed.  Some providers set none. */
int last_error(void);
/* The errno value of a verb that returned @ret: 0, an errno value, or -1. */
int verb_error(int ret);
/* Note the errno value of a refusal because of a key. */
void refusal_add(struct recorder *r, enum profile_key key, int err);
/* Does the device have that QP type?  After types_find(). */
bool has_type(const struct recorder *r, enum ibv_qp_type type);
/*
 * Create a QP.  @ops are flags of enum ibv_qp_create_send_ops_flags, or 0 for
 * a QP without the extended post verbs.  NULL and errno
 */
struct ibv_qp *qp_create(const struct recorder *r, enum ibv_qp_type type,
			 const struct ibv_qp_cap *cap, uint64_t ops);
/* Return 0, or the errno value of the refusal. */
int qp_try(const struct recorder *r, enum ibv_qp_type type,
	   const struct ibv_qp_cap *cap, uint64_t ops);
struct ibv_srq *srq_create(const struct recorder *r, uint32_t max_wr,
			   uint32_t max_sge);
/* Register memory and deregister it.  0, or the errno value of the refusal. */
int mr_try(const struct recorder *r, void *addr, size_t length,
	   unsigned int access);

/* probe_limits.c, probe_features.c ------------------------------------ */

/* Create an SRQ, or device memory, and release it, as mr_try(). */
int srq_try(const struct recorder *r, uint32_t max_wr, uint32_t max_sge);
int dm_try(const struct recorder *r, uint32_t length);
/* Find the QP types, and the type for probes. */
void types_find(struct recorder *r);
/* Find the access flags of MRs. */
void access_find(struct recorder *r);
/* Find the features, by a call of each verb. */
void features_find(struct recorder *r);
/* Find the opcodes; after types_find() and features_find(). */
void ops_find(struct recorder *r);
/* Find limits that no attribute shows. */
void limits_search(struct recorder *r);
/* Find the errno values of calls that exceed limits. */
void limits_exceed(struct recorder *r);
