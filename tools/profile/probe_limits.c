// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Limits, QP types, opcodes and access flags, which no attribute shows. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "record.h"
#include "shared/layout.h"
#include "shared/opcode.h"

#define MOST_INLINE 8192 /* of the search, bytes */
#define MOST_SGE 64 /* of the search */

/* bits of device_cap_flags_ex that older headers do not define */
#define CAP_FLUSH_GLOBAL (1ull << 38)
#define CAP_FLUSH_PERSISTENT (1ull << 39)
#define CAP_ATOMIC_WRITE (1ull << 40)

#define ATOMICS \
	(1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD)

/*
 * A capability of QPs whose limit is searched between @low, which the device
 * must accept, and @high.
 */
struct search {
	enum profile_key key;
	enum ibv_qp_type type; /* IBV_QPT_DRIVER: recorder.type */
	size_t member; /* of struct ibv_qp_cap */
	uint32_t low, high;
};

static int search_try(const struct recorder *r, const struct search *s,
		      uint32_t value)
{
	enum ibv_qp_type type = s->type == IBV_QPT_DRIVER ? r->type : s->type;
	struct ibv_qp_cap cap = least_cap;

	memcpy((char *)&cap + s->member, &value, sizeof(value));
	return qp_try(r, type, &cap, 0);
}

/* Bisection.  The limit of a QP type that does not exist is 0. */
static void search_run(struct recorder *r, const struct search *s)
{
	uint32_t good = s->low, bad = s->high + 1, middle;
	int err = 0, why = 0;

	if (search_try(r, s, good))
		return;
	while (bad - good > 1) {
		middle = good + (bad - good) / 2;
		err = search_try(r, s, middle);
		if (!err) {
			good = middle;
			continue;
		}
		bad = middle;
		why = err;
	}
	r->p.value[s->key] = good;
	if (why)
		refusal_add(r, s->key, why);
}

void limits_search(struct recorder *r)
{
#define CAP(name) offsetof(struct ibv_qp_cap, name)
#define INLINE(key, type)                                    \
	{                                                    \
		PROFILE_max_inline_##key, IBV_QPT_##type,    \
			CAP(max_inline_data), 0, MOST_INLINE \
	}
	static const struct search searches[] = {
		{ PROFILE_max_sge, IBV_QPT_DRIVER, CAP(max_send_sge), 1,
		  MOST_SGE },
		{ PROFILE_max_recv_sge, IBV_QPT_DRIVER, CAP(max_recv_sge), 1,
		  MOST_SGE },
		INLINE(rc, RC),
		INLINE(uc, UC),
		INLINE(ud, UD),
		INLINE(xrc, XRC_SEND),
	};
#undef INLINE
#undef CAP
	size_t i;

	for (i = 0; i < sizeof(searches) / sizeof(*searches); i++)
		search_run(r, &searches[i]);
}

/* Calls of create verbs with the value of one limit.  0 or errno value */
static int try_qp_wr(const struct recorder *r, uint32_t value)
{
	struct ibv_qp_cap cap = least_cap;

	cap.max_send_wr = value;
	return qp_try(r, r->type, &cap, 0);
}

static int cq_try(const struct recorder *r, uint32_t cqe, uint32_t vector)
{
	struct ibv_cq *cq =
		ibv_create_cq(r->ctx, (int)cqe, NULL, NULL, (int)vector);

	return cq ? ibv_destroy_cq(cq) : last_error();
}

static int try_cqe(const struct recorder *r, uint32_t value)
{
	return cq_try(r, value, 0);
}

static int try_vector(const struct recorder *r, uint32_t value)
{
	return cq_try(r, 1, value - 1); /* vectors are numbered from 0 */
}

int srq_try(const struct recorder *r, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq *srq = srq_create(r, max_wr, max_sge);

	return srq ? ibv_destroy_srq(srq) : last_error();
}

static int try_srq_wr(const struct recorder *r, uint32_t value)
{
	return srq_try(r, value, 1);
}

static int try_srq_sge(const struct recorder *r, uint32_t value)
{
	return srq_try(r, 1, value);
}

int dm_try(const struct recorder *r, uint32_t value)
{
	struct ibv_alloc_dm_attr attr = { .length = value };
	struct ibv_dm *dm = ibv_alloc_dm(r->ctx, &attr);

	return dm ? ibv_free_dm(dm) : last_error();
}

/* Record how the value above each limit that an attribute shows is refused. */
void limits_exceed(struct recorder *r)
{
	static const struct {
		enum profile_key key;
		int (*call)(const struct recorder *r, uint32_t value);
	} limits[] = {
		{ PROFILE_max_qp_wr, try_qp_wr },
		{ PROFILE_max_cqe, try_cqe },
		{ PROFILE_max_srq_wr, try_srq_wr },
		{ PROFILE_max_srq_sge, try_srq_sge },
		{ PROFILE_max_dm_size, dm_try },
		{ PROFILE_comp_vectors, try_vector },
	};
	uint64_t value;
	size_t i;
	int err;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		value = r->p.value[limits[i].key];
		if (!value || value >= INT_MAX)
			continue;
		errno = 0;
		err = limits[i].call(r, (uint32_t)value + 1);
		if (err)
			refusal_add(r, limits[i].key, err);
	}
}

/* --------------------------------------------------- types and operations */

void types_find(struct recorder *r)
{
	const struct profile_name *n;
	enum ibv_qp_type type;
	int err;

	for (n = profile_names; n->name; n++) {
		if (n->key != PROFILE_qp_types)
			continue;
		type = __builtin_ctzll(n->bits);
		if (type == IBV_QPT_XRC_RECV && !r->xrcd)
			continue;
		err = qp_try(r, type, &least_cap, 0);
		if (err)
			refusal_add(r, n->key, err);
		else
			r->p.value[n->key] |= n->bits;
	}
	r->type = has_type(r, IBV_QPT_RC) ? IBV_QPT_RC : IBV_QPT_UD;
}

/* The bit of an opcode in send_ops_flags.  Older headers lack the last two. */
static uint64_t op_flag(unsigned int opcode)
{
	_Static_assert(IBV_QP_EX_WITH_SEND == 1 << IBV_WR_SEND &&
			       IBV_QP_EX_WITH_SEND_WITH_INV ==
				       1 << IBV_WR_SEND_WITH_INV,
		       "flags are numbered as opcodes");
	if (opcode == URXE_WR_FLUSH)
		return 1 << 11;
	if (opcode == URXE_WR_ATOMIC_WRITE)
		return 1 << 12;
	return 1ull << opcode;
}

/* Return 0 if RC or UD QPs have the operation, else an errno value. */
static int op_try(const struct recorder *r, unsigned int opcode)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UD };
	int err = EOPNOTSUPP;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(*types) && err; i++)
		if (has_type(r, types[i]))
			err = qp_try(r, types[i], &least_cap, op_flag(opcode));
	return err;
}

/* Operations that need no feature which the device lacks. */
static uint64_t ops_possible(const struct recorder *r)
{
	const uint64_t features = r->p.value[PROFILE_features];
	const uint32_t caps = r->attr.orig_attr.device_cap_flags;
	uint64_t ops = UINT64_MAX;

	if (!(features & PROFILE_HAS(ATOMIC)))
		ops &= ~(uint64_t)ATOMICS;
	if (!(features & (PROFILE_HAS(MW_1) | PROFILE_HAS(MW_2))))
		ops &= ~(1ull << IBV_WR_BIND_MW);
	if (!(features & PROFILE_HAS(MW_2)) &&
	    !(caps & IBV_DEVICE_MEM_MGT_EXTENSIONS))
		ops &= ~(1ull << IBV_WR_LOCAL_INV |
			 1ull << IBV_WR_SEND_WITH_INV);
	return ops;
}

static uint64_t ops_tried(struct recorder *r)
{
	const struct profile_name *n;
	uint64_t ops = 0;
	int err;

	for (n = profile_names; n->name; n++) {
		if (n->key != PROFILE_send_ops)
			continue;
		err = op_try(r, __builtin_ctzll(n->bits));
		if (err)
			refusal_add(r, n->key, err);
		else
			ops |= n->bits;
	}
	return ops;
}

/*
 * Operations of ibv_post_send.  libibverbs checks none, so that they are those
 * of the QP type.
 */
static uint64_t ops_assumed(const struct recorder *r)
{
	if (r->type == IBV_QPT_RC)
		return (1ull << (IBV_WR_SEND_WITH_INV + 1)) - 1;
	return 1ull << IBV_WR_SEND | 1ull << IBV_WR_SEND_WITH_IMM;
}

void ops_find(struct recorder *r)
{
	const uint64_t caps = r->attr.device_cap_flags_ex;
	uint64_t *ops = &r->p.value[PROFILE_send_ops];

	if (r->p.value[PROFILE_features] & PROFILE_HAS(QP_EX))
		*ops = ops_tried(r);
	else
		*ops = ops_assumed(r);
	*ops &= ops_possible(r);
	/* an older libibverbs has no calls for them */
	if (caps & (CAP_FLUSH_GLOBAL | CAP_FLUSH_PERSISTENT))
		*ops |= 1ull << URXE_WR_FLUSH;
	if (caps & CAP_ATOMIC_WRITE)
		*ops |= 1ull << URXE_WR_ATOMIC_WRITE;
}

void access_find(struct recorder *r)
{
	const uint64_t caps = r->attr.device_cap_flags_ex;
	const struct profile_name *n;
	int err;

	for (n = profile_names; n->name; n++) {
		if (n->key != PROFILE_access)
			continue;
		/* remote writes and atomics require LOCAL_WRITE */
		err = mr_try(r, r->memory, MEMORY,
			     (unsigned int)n->bits | IBV_ACCESS_LOCAL_WRITE);
		/* the memory is not persistent, which the device may require */
		if (n->bits == URXE_ACCESS_FLUSH_PERSISTENT && err == EINVAL &&
		    caps & CAP_FLUSH_PERSISTENT)
			err = 0;
		if (err)
			refusal_add(r, n->key, err);
		else
			r->p.value[n->key] |= n->bits;
	}
}
