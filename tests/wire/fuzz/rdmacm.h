/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* rdma_cm of the host, by a stock librdmacm, and messages for it. */
#pragma once

#include "peer.h"

void rdmacm_begin(void); /* a listener of each kind */
void rdmacm_end(void);

void rdmacm_message(const struct record *r); /* from the other host */
void rdmacm_connect(const struct record *r); /* to it, or what follows */
void rdmacm_heard(const struct wire_packet *p); /* the host sent it */
