/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Address handles, and the address vector that a UD work request copies from
 * one.
 */
#pragma once

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>

#include "base/compiler.h"
#include "shared/layout.h"

#define AV_NO_DEVICE 2047

/* An address vector: the part of an AH that the remote side can see. */
struct urxe_av {
	uint8_t dgid[16];
	/*
	 * is_global: InfiniBand: a GRH is sent.  device_or_bits: Ethernet: the
	 * device that has dgid, or AV_NO_DEVICE (a group, or another host);
	 * InfiniBand: low bits of the source LID
	 */
	uint32_t flow_label : 20, is_global : 1, device_or_bits : 11;
	/* source GID: its row of the GID table, and whether it is of RoCE v1 */
	uint8_t gid_row : 7, roce_v1 : 1;
	uint8_t hop_limit, traffic_class, sl;
};
static_assert(URXE_GID_ROWS <= 1 << 7, "gid_row has 7 bits");
static_assert(URXE_MAX_HCA < AV_NO_DEVICE, "device_or_bits has 11 bits");

static inline uint8_t av_roce(const struct urxe_av *av)
{
	return av->roce_v1 ? URXE_ROCE_V1 : URXE_ROCE_V2;
}

/* Does RoCE v2 use IPv4 for this GID?  (An IPv4-mapped IPv6 address.) */
static inline bool gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/*
 * Can packets be sent from sgid to dgid?  RoCE v1 and InfiniBand have no IP
 * header, so that all GIDs fit.  RoCE v2 cannot send from an IPv4 to an IPv6
 * address or vice versa.
 */
static inline bool gids_fit(uint8_t roce, const uint8_t sgid[16],
			    const uint8_t dgid[16])
{
	return roce != URXE_ROCE_V2 || gid_is_ipv4(sgid) == gid_is_ipv4(dgid);
}

struct urxe_ah {
	struct ibv_ah ah;
	struct urxe_context *ctx;
	struct urxe_pd *upd; /* the PD of ibv_create_ah */
	uint32_t pd; /* index of upd */
	uint16_t dlid; /* InfiniBand */
	struct urxe_av av;
};

static inline struct urxe_ah *to_uah(struct ibv_ah *ah)
{
	return container_of(ah, struct urxe_ah, ah);
}
