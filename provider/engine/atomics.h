/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Read-modify-write of a word, which all atomics agree on. */
#pragma once

#include "responder.h"

/*
 * w's operation on the word at seg, 8 bytes of key's memory; *old gets what
 * was there.  RESP_SILENCE: a process that does not run is at it.
 */
enum response atomics_execute(struct urxe_qp *qp, struct urxe_conn *c,
			      const struct urxe_seg *seg,
			      const struct urxe_key *key,
			      const struct urxe_wqe *w, uint64_t *old);
