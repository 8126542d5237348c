/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why a WR failed, in a form that processes share: a reason of reasons.h, its
 * values, and the WR.  The process that breaks a QP, its owner or a peer's
 * requester, stores the reason in urxe_qp_sh.broken for the QP's owner; the
 * first reason stays.  kernel-shim/fabric/reason.c stores, loads and formats
 * reasons.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

enum reason {
	REASON_NONE,
#define REASON(name, message, source, cause) REASON_##name,
#include "reasons.h"
#undef REASON
	REASONS
};

#define REASON_VALUES 8

struct urxe_reason {
	uint64_t value[REASON_VALUES];
	uint64_t wr_id;
	uint32_t qpn; /* QP of the WR; 0: no WR */
	int32_t pid;
	uint16_t code; /* enum reason */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t status; /* enum ibv_wc_status of its completion */
	uint32_t pad;
};

/* A value for %k of reasons.h: a key and its kind. */
#define REASON_KEY(kind, key) ((uint64_t)(kind) << 32 | (key))
enum reason_key {
	REASON_RKEY,
	REASON_LKEY_SEND,
	REASON_LKEY_RECV,
	REASON_KEYS
};

#define REASON_WORDS (sizeof(struct urxe_reason) / sizeof(uint64_t))

/*
 * A reason in shared memory.  `state` is 0 (none), 1 (being written) or 2
 * (valid).  0 -> 1 is a compare-and-swap (acquire), so the first writer wins;
 * 2 is stored with release.
 */
struct urxe_kept_reason {
	_Atomic uint32_t state; /* 0, 1, 2: see above */
	_Atomic uint64_t word[REASON_WORDS];
};
