/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma_cm on the host under test, with an unmodified librdmacm, and CM
 * messages of the peer.
 */
#pragma once

#include "peer.h"

void rdmacm_begin(void); /* create a listener for each of TCP and UDP */
void rdmacm_end(void);

/* Send a CM message to the host. */
void rdmacm_message(const struct record *r);
/* Connect an id of the host to the peer, or act on an existing id. */
void rdmacm_connect(const struct record *r);
/* Check a MAD that the host sent, and record its IDs. */
void rdmacm_receive(const struct wire_packet *p);
