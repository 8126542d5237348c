/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A carrier (engine/flight.h) that answers when the test says so. */
#pragma once

#include "engine.h"
#include "engine/execute.h"
#include "engine/flight.h"

/* Under the QP's lock. */
struct wire {
	uint32_t flight[ENGINE_DEPTH]; /* slots, in the order they were begun */
	unsigned int n;
	enum verdict verdict; /* what it says to the next WR */
	enum ibv_wc_status status; /* if that is WR_FAILED */
	bool follows;
	bool executes; /* WRITEs, when they are begun */
	bool delivers; /* carries out what it answers */
	bool newest_first;
	unsigned int allowed; /* answers that progress() gives */
	unsigned int begun, cancels, cancelled;
};

extern const struct urxe_carrier wire_carrier;

/* An engine whose QP has this carrier. */
struct engine *wire_new(struct wire *wire);
struct wire *wire_of(const struct urxe_qp *qp);

/* A WR to the QP, signaled. */
void wire_push(struct engine *e, uint8_t opcode, uint64_t wr_id,
	       unsigned int flags);
/* What becomes of the next one. */
void wire_verdict(struct engine *e, enum verdict v, enum ibv_wc_status status);
/* Answer the i-th of those in flight; wire_finish: the lock is held. */
void wire_answer(struct engine *e, unsigned int i, enum ibv_wc_status status);
void wire_finish(struct urxe_qp *qp, unsigned int i, enum ibv_wc_status status);
/* Let progress() give n answers. */
void wire_allow(struct engine *e, unsigned int n);

/* The service thread is there, too: what it uses is looked at so. */
struct wire wire_look(struct engine *e);
unsigned int wire_flying(struct engine *e);
uint32_t wire_stalled(struct engine *e);
