/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Why a WR failed, in a form that processes share: a reason of reasons.h, its
 * values, and whose WR it was.  Who breaks a QP leaves it there for the process
 * that the QP is of; the first one stays.
 */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

enum reason {
	REASON_NONE,
#define REASON(name, said, source, cause) REASON_##name,
#include "reasons.h"
#undef REASON
	REASONS
};

#define REASON_VALUES 8

struct urxe_reason {
	uint64_t value[REASON_VALUES];
	uint64_t wr_id;
	uint32_t qpn; /* whose WR it was; 0: nobody's */
	int32_t pid;
	uint16_t code; /* enum reason */
	uint8_t opcode; /* enum ibv_wr_opcode */
	uint8_t status; /* enum ibv_wc_status, of its completion */
	uint32_t pad;
};

/* A value of %k: a key, and whose it is. */
#define REASON_KEY(kind, key) ((uint64_t)(kind) << 32 | (key))
enum reason_key {
	REASON_RKEY,
	REASON_LKEY_SEND,
	REASON_LKEY_RECV,
	REASON_KEYS
};

#define REASON_WORDS (sizeof(struct urxe_reason) / sizeof(uint64_t))

/* The same in shared memory */
struct urxe_kept_reason {
	_Atomic uint32_t state; /* 0: none; 1: it is written; 2: it is there */
	_Atomic uint64_t word[REASON_WORDS];
};
