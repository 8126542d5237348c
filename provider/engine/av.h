/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address handles, and what a work request takes from one. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "shared/layout.h"

/* An address vector, as much of an AH as the other side can see. */
struct urxe_av {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class, sl;
};

/* Which IP its packets are of, on RoCE v2. */
static inline bool gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/*
 * Are there packets from the one to the other?  RoCE v1 has Ethernet only, with
 * GIDs; RoCE v2 none from an IPv4 address to an IPv6 one.
 */
static inline bool gids_fit(uint8_t roce, const uint8_t sgid[16],
			    const uint8_t dgid[16])
{
	return roce == URXE_ROCE_V1 || gid_is_ipv4(sgid) == gid_is_ipv4(dgid);
}

struct urxe_ah {
	struct ibv_ah ah;
	struct urxe_context *ctx;
	struct urxe_pd *upd; /* the handle that it was made with */
	uint32_t pd; /* its index */
	struct urxe_av av;
};

static inline struct urxe_ah *to_uah(struct ibv_ah *ah)
{
	return container_of(ah, struct urxe_ah, ah);
}
