/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The journal of the referee (urxe run --check): a ring of the WRs of checked
 * programs that write to the responder's memory.  It is the file `journal` of
 * a fabric, made when the first program is checked there.
 * provider/referee/ranges/journal.c writes and reads it.
 *
 * A program that posts such a WR takes the next position, and with it the
 * entry position % URXE_JOURNAL.  An entry is a seqlock: seq is 0 while it is
 * written, then position + 1.  A reader loads seq before and after the other
 * members; if both values are equal and not 0, the members belong to one WR.
 * `done` is 0 until the WR's completion has been polled, then 1 + the value
 * of `next` at that time.  An entry is reused URXE_JOURNAL positions later,
 * whether it is done or not.
 */
#pragma once

#include "layout.h"

#define URXE_JOURNAL 1024

struct urxe_journal_entry {
	_Atomic uint64_t seq, done;
	_Atomic uint64_t at, end; /* addresses of the rkey: [at, end) */
	_Atomic uint32_t rkey, qpn;
	_Atomic uint32_t owner; /* id of the writing process */
	_Atomic int32_t pid; /* its PID, for messages */
};

struct urxe_journal {
	_Atomic uint64_t next;
	/* by context slot: the generation whose WRs are recorded; 0: none */
	_Atomic uint32_t checked[URXE_MAX_CTX];
	alignas(URXE_LINE) struct urxe_journal_entry entry[URXE_JOURNAL];
};
