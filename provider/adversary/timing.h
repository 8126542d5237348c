/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A model of the speed of links (URXE_TIMING): a transport (struct
 * urxe_transport, engine/qp/flight.h) that executes each WR when its data would
 * have arrived, and completes it when its response would have.
 *
 * Each port sends and receives one message at a time, at its rate: struct
 * urxe_hca has the times from which it is free. A message of n bytes begins
 * when both ports are free, takes n / rate, at the lower rate of the two, and
 * arrives after the latencies of their links:
 *
 *	WRITE, SEND	executed when it has arrived; RC completes it one
 *			latency later, UC and UD at once
 *	READ		the request takes one latency; executed, and completed,
 *			when the data has arrived
 *	atomic		as a WRITE of 8 bytes
 *
 * Switches add nothing. Steps that are due are carried out in the order of the
 * queue, by threads that post and poll, and by the service thread.
 */
#pragma once

#include "abi/pabi/pabi.h"
#include "engine/qp/qp.h"

/* Does the environment request it? */
bool timing_is_on(void);
/* NULL, or an error message about the environment. */
const char *timing_why(void);
/* Install it in all QPs. Called once in a process. */
void timing_wrap(struct pabi_ops *ops);
