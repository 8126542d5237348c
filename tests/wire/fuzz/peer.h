/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The other host: requests and answers that it sends, right ones and others. */
#pragma once

#include "host.h"
#include "wire/packet.h"

/* An input is so many of these; what each means is up to its kind. */
struct record {
	uint8_t kind, qp, op;
	int8_t psn; /* from the right one on */
	uint8_t key;
	int8_t offset; /* 8 bytes each */
	uint8_t length;
	uint8_t flags;
};

enum {
	FLAG_LATER = 1, /* it comes together with the next one */
	FLAG_ACK = 2,
	FLAG_SOLICITED = 4,
	FLAG_ODD = 8, /* a length that does not fit */
	FLAG_FAR = 16, /* psn counts many */
	FLAG_BIG = 32, /* length counts packets */
	FLAG_RAW = 64, /* any opcode */
	FLAG_RARE = 128, /* offset says what is wrong with it */
};

void peer_request(const struct record *r);
void peer_answer(const struct record *r);
void peer_datagram(const struct record *r);
/* For QP 1. */
void peer_mad(const struct record *r, const uint8_t *mad, size_t n);
/* Bytes from the BTH on, with a right ICRC behind them. */
void peer_raw(const struct record *r, const uint8_t *bytes, size_t n);
