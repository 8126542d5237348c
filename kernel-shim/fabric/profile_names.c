// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The keys of profiles, the names of their flags, and their output. */
#include <infiniband/verbs.h>
#include <inttypes.h>

#include "profile.h"
#include "shared/layout.h"
#include "shared/opcode.h"

const struct profile_key_info profile_keys[PROFILE_KEYS_COUNT] = {
#define LIMIT(name, own) \
	[PROFILE_##name] = { #name, PROFILE_LIMIT, own, UINT64_MAX },
#define VALUE(name, own, most) \
	[PROFILE_##name] = { #name, PROFILE_VALUE, own, most },
#define MASK(name, own) \
	[PROFILE_##name] = { #name, PROFILE_MASK, own, UINT64_MAX },
#define NAMES(name, own) \
	[PROFILE_##name] = { #name, PROFILE_NAMES, own, UINT64_MAX },
	PROFILE_KEYS(LIMIT, VALUE, MASK, NAMES)
};

#define QP_TYPE(name)                                           \
	{                                                       \
		PROFILE_qp_types, #name, 1ull << IBV_QPT_##name \
	}
#define OP(name)                                               \
	{                                                      \
		PROFILE_send_ops, #name, 1ull << IBV_WR_##name \
	}
#define ACCESS(name)                                     \
	{                                                \
		PROFILE_access, #name, IBV_ACCESS_##name \
	}
#define FEATURE(name) { PROFILE_features, #name, PROFILE_HAS(name) },

const struct profile_name profile_names[] = {
	{ PROFILE_gid_types, "ROCE_V1", 1u << URXE_ROCE_V1 },
	{ PROFILE_gid_types, "ROCE_V2", 1u << URXE_ROCE_V2 },
	QP_TYPE(RC),
	QP_TYPE(UC),
	QP_TYPE(UD),
	QP_TYPE(XRC_SEND),
	QP_TYPE(XRC_RECV),
	OP(RDMA_WRITE),
	OP(RDMA_WRITE_WITH_IMM),
	OP(SEND),
	OP(SEND_WITH_IMM),
	OP(RDMA_READ),
	OP(ATOMIC_CMP_AND_SWP),
	OP(ATOMIC_FETCH_AND_ADD),
	OP(LOCAL_INV),
	OP(BIND_MW),
	OP(SEND_WITH_INV),
	{ PROFILE_send_ops, "FLUSH", 1ull << URXE_WR_FLUSH },
	{ PROFILE_send_ops, "ATOMIC_WRITE", 1ull << URXE_WR_ATOMIC_WRITE },
	ACCESS(LOCAL_WRITE),
	ACCESS(REMOTE_WRITE),
	ACCESS(REMOTE_READ),
	ACCESS(REMOTE_ATOMIC),
	ACCESS(MW_BIND),
	ACCESS(ZERO_BASED),
	ACCESS(ON_DEMAND),
	ACCESS(HUGETLB),
	{ PROFILE_access, "FLUSH_GLOBAL", URXE_ACCESS_FLUSH_GLOBAL },
	{ PROFILE_access, "FLUSH_PERSISTENT", URXE_ACCESS_FLUSH_PERSISTENT },
	PROFILE_FEATURES(FEATURE){ PROFILE_quirks, "MEMLOCK", PROFILE_MEMLOCK },
	{ PROFILE_quirks, "RD_ATOMIC_0_IS_MAX", PROFILE_RD_ATOMIC_0_IS_MAX },
	{ 0 },
};

void profile_key_print(FILE *to, enum profile_key key, uint64_t value,
		       const char *error)
{
	const struct profile_key_info *info = &profile_keys[key];
	const struct profile_name *n;

	fprintf(to, "%-20s", info->name);
	if (info->kind == PROFILE_NAMES) {
		for (n = profile_names; n->name; n++)
			if (n->key == key && (value & n->bits) == n->bits)
				fprintf(to, " %s", n->name);
	} else if (info->kind == PROFILE_MASK || value > UINT32_MAX) {
		fprintf(to, " 0x%" PRIx64, value);
	} else {
		fprintf(to, " %" PRIu64, value);
	}
	if (error)
		fprintf(to, " %s", error);
}
