// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/opcode.h"

static const uint16_t parts[32] = {
#define OPCODE(name, low, parts) [low] = (parts),
	WIRE_OPCODES(OPCODE)
#undef OPCODE
};

unsigned int wire_parts(uint8_t opcode)
{
	unsigned int low = opcode & ~WIRE_TRANSPORT;

	if (opcode == WIRE_CNP_OPCODE)
		return WIRE_HAS(CNP);
	switch (opcode & WIRE_TRANSPORT) {
	case WIRE_RC:
		return parts[low];
	case WIRE_UC: /* no READ, no atomics, no responses */
		return low <= WIRE_WRITE_ONLY_IMM ? parts[low] : 0;
	case WIRE_UD:
		return low == WIRE_SEND_ONLY || low == WIRE_SEND_ONLY_IMM ?
			       parts[low] | WIRE_HAS(DETH) :
			       0;
	case WIRE_XRC: /* requests have an XRCETH, responses do not */
		if (!parts[low] || parts[low] & WIRE_HAS(AETH) ||
		    low == WIRE_READ_MIDDLE)
			return parts[low];
		return parts[low] | WIRE_HAS(XRCETH);
	}
	return 0;
}

size_t wire_parts_bytes(unsigned int parts)
{
	size_t n = 0;

#define HEADER(name, NAME, bytes) n += parts & WIRE_HAS(NAME) ? (bytes) : 0;
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	return n;
}
