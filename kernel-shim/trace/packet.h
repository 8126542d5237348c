/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets that really travel: where the values of PACKET (events.h) are. */
#pragma once

#include "format.h"

/*
 * From now on this library's packets are recorded (wire/watch.h): all of those
 * that have no payload, of others the headers and so many bytes of it.
 */
void trace_watch_packets(uint32_t payload);

enum {
	TRACE_PACKET_IN,
	TRACE_PACKET_REFUSED, /* enum wire_refusal */
	TRACE_PACKET_BYTES, /* from the BTH to the ICRC, as it travelled */
	TRACE_PACKET_SGID,
	TRACE_PACKET_DGID = TRACE_PACKET_SGID + 2,
	TRACE_PACKET_PORTS = TRACE_PACKET_DGID + 2, /* to << 16 | from */
	TRACE_PACKET_TCLASS,
	TRACE_PACKET_HOPS,
	TRACE_PACKET_LABEL,
	TRACE_PACKET_IP_ID,
	TRACE_PACKET_ICRC, /* its bytes, as they travelled */
	TRACE_PACKET_AT, /* the first of the bytes that are here ... */
	TRACE_PACKET_N, /* ... and how many; the rest is in the next record */
	TRACE_PACKET_DATA,
};

/* Bytes in one record: the value behind the last one may be empty. */
#define TRACE_PACKET_PART \
	((TRACE_VALUES - TRACE_PACKET_DATA - 1) * (uint32_t)sizeof(uint64_t))
/* Bytes of a packet: a path MTU, its headers, and more. */
#define TRACE_PACKET_MOST 4608u
