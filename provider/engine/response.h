/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef URXE_RESPONSE_H
#define URXE_RESPONSE_H

/* What comes back to the requester; IB 9.7.5.2. */
enum response {
	RESP_ACK,
	RESP_RNR, /* no receive is posted */
	RESP_SILENCE, /* nobody there, or somebody else's connection */
	RESP_NAK_SEQUENCE, /* PSN error: retried like silence */
	RESP_NAK_INVALID, /* remote invalid request */
	RESP_NAK_ACCESS, /* remote access error */
	RESP_NAK_OPERATION, /* remote operational error */
	RESP_OTHER, /* it is another one than before: conn_ready only */
};

#endif
