/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What checked programs write in each other's memory: the referee's, in the
 * file `journal` of a fabric, which is there once a program of it was checked.
 *
 * Who posts a WR that writes at its other end takes the next position, and with
 * it the entry position % URXE_JOURNAL.  Its seq is 0 while it is written, then
 * position + 1; what is read between two looks at seq that find the same is of
 * one WR.  `done` is 0 until its completion was polled, then the position that
 * was next at that time.  An entry is used again URXE_JOURNAL positions later,
 * done or not.
 */
#pragma once

#include "layout.h"

#define URXE_JOURNAL 1024

struct urxe_journal_entry {
	_Atomic uint64_t seq, done;
	_Atomic uint64_t at, end; /* as the rkey names them */
	_Atomic uint32_t rkey, qpn;
	_Atomic uint32_t owner; /* id of the process */
	_Atomic int32_t pid; /* for messages */
};

struct urxe_journal {
	_Atomic uint64_t next;
	/* generation of the contexts whose WRs are written here */
	_Atomic uint32_t checked[URXE_MAX_CTX];
	alignas(URXE_LINE) struct urxe_journal_entry entry[URXE_JOURNAL];
};
