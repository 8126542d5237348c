/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The carrier of a QP's WRs (engine/flight.h) that the adversary is: what is
 * drawn for a WR when it is begun says when its steps come.  They are, of a
 * WRITE for example:
 *
 *	AWAY		it has left; its memory is read from here on
 *	MOVING		a piece of it is there, or several
 *	MOVED		all are, and who receives was not told
 *	SERVED		he was, and its sender was not
 *	ANSWERED
 *
 * A step is due at a *tick*, and is carried out by the next poll.  Time goes on
 * by the posts and polls of the program, so one of one thread meets the same
 * each time.  When it does something else (quiet.h) the service thread has time
 * go on, and carries out what is due.
 */
#pragma once

#include "chaos/adversary.h"
#include "engine/qp.h"

/* Have qp, which was just made, carried by the adversary.  False: no memory. */
bool carrier_attach(struct urxe_qp *qp, const struct adversary *a);
/* Of a QP that is no more. */
void carrier_free(void *carrier);
