/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A GID in shared memory that other processes may read while its owner writes
 * it.  It has two words, each stored and loaded relaxed, so a reader may get
 * one old and one new word.  A reader that depends on it reads it again when
 * urxe_qp_sh.path announces a change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

struct urxe_shared_gid {
	_Atomic uint64_t word[2];
};

static inline void shared_gid_put(struct urxe_shared_gid *g,
				  const uint8_t raw[16])
{
	uint64_t w[2];

	memcpy(w, raw, sizeof(w));
	store_relaxed(&g->word[0], w[0]);
	store_relaxed(&g->word[1], w[1]);
}

static inline void shared_gid_get(const struct urxe_shared_gid *g,
				  uint8_t raw[16])
{
	const uint64_t w[2] = { load_relaxed(&g->word[0]),
				load_relaxed(&g->word[1]) };

	memcpy(raw, w, sizeof(w));
}

static inline bool shared_gid_is(const struct urxe_shared_gid *g,
				 const uint8_t raw[16])
{
	uint8_t own[16];

	shared_gid_get(g, own);
	return !memcmp(own, raw, 16);
}
