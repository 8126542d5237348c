/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adversary's transport (struct urxe_transport, engine/qp/flight.h). It
 * begins the WRs of a send queue and carries out each of them in steps, some of
 * which are delayed.
 *
 * When a WR is begun, seeded random numbers decide which options apply to it
 * and how long its steps are delayed. The stages are, for example of an RDMA
 * WRITE:
 *
 *	AWAY		begun; its local memory is read from here on
 *	MOVING		its pieces are being copied, one in each step
 *	MOVED		all pieces are copied; no receive is completed yet
 *	SERVED		the responder is done; the requester has no answer yet
 *	ANSWERED	requester_answer() was called
 *
 * A step is due at a tick. The tick counter of a QP is advanced by the posts
 * and the polls of the program, so a program with one thread gets the same
 * steps in each run with the same seed. If the program neither posts nor
 * polls (quiet.h), each run of the service thread advances the ticks by the
 * maximum of a delay (option "ticks"). A step that is due is carried out by
 * the thread that advances the ticks.
 *
 * The operations in struct urxe_transport are called with qp->lock held, by
 * threads that post or poll and by the service thread. transport_early() is
 * called without it; transport_attach() takes it.
 * tests/adversary checks each option alone.
 */
#pragma once

#include "chaos/adversary.h"
#include "engine/qp/qp.h"

/*
 * Install the adversary of this process in @qp, which was just created and has
 * an empty send queue (attach.h). Return false if there is no memory.
 */
bool transport_attach(struct urxe_qp *qp);
