/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Opcodes of the BTH (IB 9.2.1): the transport service in the upper three
 * bits, the operation in the lower five; and the extension headers that
 * packets of each opcode have.
 */
#pragma once

#include <stddef.h>

#include "wire/transport.h"

enum wire_transport {
	WIRE_RC = 0x00,
	WIRE_UC = 0x20,
	WIRE_UD = 0x60,
	WIRE_XRC = 0xa0,
};
#define WIRE_TRANSPORT 0xe0

/*
 * Congestion notification packet (annex A17.9.3): an opcode of no transport
 * service, with a BTH and 16 reserved bytes
 */
#define WIRE_CNP_OPCODE 0x81

/* Payload of an ATOMIC WRITE */
#define WIRE_ATOMIC_WRITE_BYTES 8u

/* The parts of a packet after the BTH; WIRE_HAS() is the bit of a part. */
enum wire_part_number {
#define HEADER(name, NAME, bytes) WIRE_PART_##NAME,
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
		WIRE_PART_PAYLOAD,
};
#define WIRE_HAS(NAME) (1u << WIRE_PART_##NAME)

/* OPCODE(name, low five bits, parts of an RC packet) */
#define WIRE_OPCODES(OPCODE)                                                   \
	OPCODE(SEND_FIRST, 0x00, WIRE_HAS(PAYLOAD))                            \
	OPCODE(SEND_MIDDLE, 0x01, WIRE_HAS(PAYLOAD))                           \
	OPCODE(SEND_LAST, 0x02, WIRE_HAS(PAYLOAD))                             \
	OPCODE(SEND_LAST_IMM, 0x03, WIRE_HAS(IMMDT) | WIRE_HAS(PAYLOAD))       \
	OPCODE(SEND_ONLY, 0x04, WIRE_HAS(PAYLOAD))                             \
	OPCODE(SEND_ONLY_IMM, 0x05, WIRE_HAS(IMMDT) | WIRE_HAS(PAYLOAD))       \
	OPCODE(WRITE_FIRST, 0x06, WIRE_HAS(RETH) | WIRE_HAS(PAYLOAD))          \
	OPCODE(WRITE_MIDDLE, 0x07, WIRE_HAS(PAYLOAD))                          \
	OPCODE(WRITE_LAST, 0x08, WIRE_HAS(PAYLOAD))                            \
	OPCODE(WRITE_LAST_IMM, 0x09, WIRE_HAS(IMMDT) | WIRE_HAS(PAYLOAD))      \
	OPCODE(WRITE_ONLY, 0x0a, WIRE_HAS(RETH) | WIRE_HAS(PAYLOAD))           \
	OPCODE(WRITE_ONLY_IMM, 0x0b,                                           \
	       WIRE_HAS(RETH) | WIRE_HAS(IMMDT) | WIRE_HAS(PAYLOAD))           \
	OPCODE(READ_REQUEST, 0x0c, WIRE_HAS(RETH))                             \
	OPCODE(READ_FIRST, 0x0d, WIRE_HAS(AETH) | WIRE_HAS(PAYLOAD))           \
	OPCODE(READ_MIDDLE, 0x0e, WIRE_HAS(PAYLOAD))                           \
	OPCODE(READ_LAST, 0x0f, WIRE_HAS(AETH) | WIRE_HAS(PAYLOAD))            \
	OPCODE(READ_ONLY, 0x10, WIRE_HAS(AETH) | WIRE_HAS(PAYLOAD))            \
	OPCODE(ACKNOWLEDGE, 0x11, WIRE_HAS(AETH))                              \
	OPCODE(ATOMIC_ACKNOWLEDGE, 0x12, WIRE_HAS(AETH) | WIRE_HAS(ATOMICACK)) \
	OPCODE(COMPARE_SWAP, 0x13, WIRE_HAS(ATOMICETH))                        \
	OPCODE(FETCH_ADD, 0x14, WIRE_HAS(ATOMICETH))                           \
	OPCODE(SEND_LAST_INV, 0x16, WIRE_HAS(IETH) | WIRE_HAS(PAYLOAD))        \
	OPCODE(SEND_ONLY_INV, 0x17, WIRE_HAS(IETH) | WIRE_HAS(PAYLOAD))        \
	OPCODE(FLUSH, 0x1c, WIRE_HAS(FETH) | WIRE_HAS(RETH))                   \
	OPCODE(ATOMIC_WRITE, 0x1d, WIRE_HAS(RETH) | WIRE_HAS(PAYLOAD))

enum wire_opcode {
#define OPCODE(name, low, parts) WIRE_##name = low,
	WIRE_OPCODES(OPCODE)
#undef OPCODE
};

/*
 * Return the parts of packets of an opcode, WIRE_HAS(...); 0 if the opcode is
 * not defined or not supported.
 */
unsigned int wire_parts(uint8_t opcode);
/* Return the length of the extension headers, between BTH and payload. */
size_t wire_parts_bytes(unsigned int parts);
