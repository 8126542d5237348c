/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A transport (struct urxe_transport, engine/qp/flight.h) for tests: the test
 * decides when and in which order responses are delivered.
 */
#pragma once

#include "engine.h"
#include "engine/exec/execute.h"
#include "engine/qp/flight.h"

/* Protected by the QP's lock. */
struct wire {
	uint32_t flight[ENGINE_DEPTH]; /* indices of WRs, oldest first */
	unsigned int n;
	enum verdict verdict; /* what begin() returns for a WR */
	enum ibv_wc_status status; /* of a WR with verdict WR_FAILED */
	/* what follows() returns */
	bool follows;
	bool executes; /* begin() executes WRITEs */
	bool delivers; /* a WR is executed when its response is delivered */
	/* progress() delivers the response to the newest WR first */
	bool newest_first;
	unsigned int allowed; /* responses that progress() may deliver */
	/*
	 * begin() calls; cancel() calls with WRs in flight; WRs so cancelled
	 */
	unsigned int begun, cancels, cancelled;
};

extern const struct urxe_transport wire_transport;

/* Create an engine whose QP uses this transport. */
struct engine *wire_new(struct wire *wire);
struct wire *wire_of(const struct urxe_qp *qp);

/* Post a signaled WR. */
void wire_push(struct engine *e, uint8_t opcode, uint64_t wr_id,
	       unsigned int flags);
/* Set the result of begin() for the WRs that follow. */
void wire_verdict(struct engine *e, enum verdict v, enum ibv_wc_status status);
/*
 * Deliver the response to the i-th WR in flight.  The caller of wire_finish()
 * holds the QP's lock.
 */
void wire_answer(struct engine *e, unsigned int i, enum ibv_wc_status status);
void wire_finish(struct urxe_qp *qp, unsigned int i, enum ibv_wc_status status);
/* Let progress() deliver @n more responses. */
void wire_allow(struct engine *e, unsigned int n);

/*
 * Return a copy of the state.  It is taken under the lock, since the service
 * thread may change the state.
 */
struct wire wire_look(struct engine *e);
/* Return the number of WRs in flight. */
unsigned int wire_flying(struct engine *e);
/* Return cq->stalled: the number of send QPs to make progress on. */
uint32_t wire_stalled(struct engine *e);
