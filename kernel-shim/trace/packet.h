/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Recording of packets that are exchanged with other hosts: the event PACKET
 * (events.h) and the positions of its values.
 */
#pragma once

#include "format.h"

/*
 * Record all packets that this shared object sends and receives from now on,
 * as its wire_watcher (wire/watch.h).  Packets without payload and messages
 * of the CM are recorded whole, others up to `payload` bytes of their
 * payload, each up to TRACE_PACKET_MAX bytes.  Call it after trace_open(),
 * before the first packet.
 */
void trace_watch_packets(uint32_t payload);

enum {
	TRACE_PACKET_IN,
	TRACE_PACKET_REFUSED, /* enum wire_refusal */
	TRACE_PACKET_BYTES, /* length of the packet, BTH to ICRC */
	TRACE_PACKET_SGID,
	TRACE_PACKET_DGID = TRACE_PACKET_SGID + 2,
	/* UDP ports: destination << 16 | source */
	TRACE_PACKET_PORTS = TRACE_PACKET_DGID + 2,
	TRACE_PACKET_TCLASS,
	TRACE_PACKET_HOPS,
	TRACE_PACKET_LABEL,
	TRACE_PACKET_IP_ID,
	TRACE_PACKET_ICRC, /* its four bytes in the order of the packet */
	TRACE_PACKET_AT, /* offset of this record's bytes in the packet */
	TRACE_PACKET_N, /* number of this record's bytes */
	TRACE_PACKET_DATA, /* the bytes */
};

/* Maximum bytes in one record.  One value is kept for a partial word. */
#define TRACE_PACKET_PART \
	((TRACE_VALUES - TRACE_PACKET_DATA - 1) * (uint32_t)sizeof(uint64_t))
/* Maximum recorded bytes of a packet: the largest path MTU and headers */
#define TRACE_PACKET_MAX 4608u
