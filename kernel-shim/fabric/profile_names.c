// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The keys of profiles, the names of their flags, their output, and rates:
 * width and speed of a link (IB 14.2.5.6).
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>

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

/* ------------------------------------------------------- rates */

static const struct {
	uint64_t code;
	uint32_t lane; /* units of 100 Mb/s */
	const char *name;
} speeds[] = {
	{ 1, 25, "SDR" },    { 2, 50, "DDR" },	   { 4, 100, "QDR" },
	{ 8, 100, "FDR10" }, { 16, 140, "FDR" },   { 32, 250, "EDR" },
	{ 64, 500, "HDR" },  { 128, 1000, "NDR" },
};

/* Number of lanes of an active_width; 1 if it is unknown. */
static uint32_t rate_lanes(uint64_t width)
{
	return width == 2  ? 4 :
	       width == 4  ? 8 :
	       width == 8  ? 12 :
	       width == 16 ? 2 :
			     1;
}

/* Index of an active_speed; that of SDR if it is unknown. */
static unsigned int rate_speed(uint64_t speed)
{
	unsigned int i;

	for (i = 0; i < sizeof(speeds) / sizeof(*speeds); i++)
		if (speeds[i].code == speed)
			return i;
	return 0;
}

void hca_width_speed(const struct urxe_hca *hca, uint8_t *width, uint8_t *speed)
{
	const uint32_t now = load_relaxed(&hca->rate);
	const uint64_t *value = hca->profile.value;

	*width = now ? (uint8_t)now : (uint8_t)value[PROFILE_active_width];
	*speed = now ? (uint8_t)(now >> 8) :
		       (uint8_t)value[PROFILE_active_speed];
}

uint32_t hca_rate(const struct urxe_hca *hca)
{
	uint8_t width, speed;

	hca_width_speed(hca, &width, &speed);
	return rate_lanes(width) * speeds[rate_speed(speed)].lane;
}

bool rate_set(struct urxe_profile *p, uint32_t rate, uint32_t lanes)
{
	unsigned int i;
	uint64_t width;

	for (width = 1; width <= 16; width *= 2)
		if (rate_lanes(width) == lanes)
			break;
	for (i = 0; i < sizeof(speeds) / sizeof(*speeds); i++)
		if (speeds[i].lane * lanes == rate)
			break;
	if (width > 16 || i == sizeof(speeds) / sizeof(*speeds))
		return false;
	p->value[PROFILE_active_width] = width;
	p->value[PROFILE_active_speed] = speeds[i].code;
	return true;
}

bool rate_encode(uint32_t rate, uint32_t *code)
{
	static const uint8_t lanes[] = { 4, 1, 2, 8, 12 };
	struct urxe_profile p;
	unsigned int i;

	for (i = 0; i < sizeof(lanes); i++) {
		if (!rate_set(&p, rate, lanes[i]))
			continue;
		*code = (uint32_t)(p.value[PROFILE_active_width] |
				   p.value[PROFILE_active_speed] << 8);
		return true;
	}
	return false;
}

void rate_print(const struct urxe_hca *hca, char *text, size_t room)
{
	const uint32_t rate = hca_rate(hca);
	uint8_t width, speed;

	hca_width_speed(hca, &width, &speed);

	snprintf(text, room, "%u%s Gb/sec (%uX %s)\n", rate / 10,
		 rate % 10 ? ".5" : "", rate_lanes(width),
		 speeds[rate_speed(speed)].name);
}

uint8_t rate_code(uint32_t rate)
{
	static const struct {
		uint32_t rate;
		uint8_t code;
	} codes[] = {
		{ 25, IBV_RATE_2_5_GBPS },   { 50, IBV_RATE_5_GBPS },
		{ 100, IBV_RATE_10_GBPS },   { 200, IBV_RATE_20_GBPS },
		{ 250, IBV_RATE_25_GBPS },   { 400, IBV_RATE_40_GBPS },
		{ 500, IBV_RATE_50_GBPS },   { 560, IBV_RATE_56_GBPS },
		{ 1000, IBV_RATE_100_GBPS }, { 2000, IBV_RATE_200_GBPS },
		{ 4000, IBV_RATE_400_GBPS },
	};
	unsigned int i;
	uint8_t code = IBV_RATE_2_5_GBPS;

	for (i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (codes[i].rate <= rate)
			code = codes[i].code;
	return code;
}
