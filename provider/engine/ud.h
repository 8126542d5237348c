/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Datagrams. */
#pragma once

#include "responder.h"

/*
 * Send a datagram: src[0] is free for the GRH, the message follows in
 * src[1..].  Nobody answers.  What the last one got is left in *rc, to be
 * published.
 */
void ud_send(struct urxe_qp *qp, const struct urxe_wqe *w, struct urxe_seg *src,
	     struct receipt *rc);
