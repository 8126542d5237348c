/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address handles, and what a work request takes from one. */
#pragma once

#include <infiniband/verbs.h>

#include "base/compiler.h"

/* An address vector, as much of an AH as the other side can see. */
struct urxe_av {
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t sgid_index, hop_limit, traffic_class, sl;
};

struct urxe_ah {
	struct ibv_ah ah;
	struct urxe_context *ctx;
	struct urxe_av av;
};

static inline struct urxe_ah *to_uah(struct ibv_ah *ah)
{
	return container_of(ah, struct urxe_ah, ah);
}
