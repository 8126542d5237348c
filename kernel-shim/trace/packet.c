// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <string.h>

#include "packet.h"
#include "trace.h"
#include "wire/watch.h"

static uint32_t wanted; /* bytes of each payload to record */

/*
 * Return how many bytes of p to record.  A packet without payload and a
 * message of the CM contain no data of a QP's WRs and are recorded whole.
 */
static uint32_t packet_recorded_bytes(const struct wire_watched *p)
{
	const unsigned int parts =
		p->bytes < WIRE_BTH_BYTES ? 0 : wire_parts(*p->bth);
	size_t headers = WIRE_BTH_BYTES + wire_parts_bytes(parts);
	struct wire_bth bth = { 0 };

	if (parts)
		wire_get_bth(&bth, p->bth);
	/* packets to QP 1 are messages of the CM */
	if (parts && (!(parts & WIRE_HAS(PAYLOAD)) || bth.qpn == 1))
		headers = p->bytes;
	headers += wanted;
	if (headers + WIRE_ICRC_BYTES >= p->bytes)
		headers = p->bytes;
	return headers < TRACE_PACKET_MAX ? (uint32_t)headers :
					    TRACE_PACKET_MAX;
}

/* Return the QPN of the local QP; 0 if it is unknown. */
static uint32_t packet_qpn(const struct wire_watched *p)
{
	struct wire_bth bth;

	if (!p->in)
		return p->path->qpn;
	if (p->refusal || p->bytes < WIRE_BTH_BYTES)
		return 0;
	wire_get_bth(&bth, p->bth);
	return bth.qpn;
}

/* Return the last four bytes of the packet, unconverted, or 0. */
static uint32_t packet_icrc(const struct wire_watched *p)
{
	uint32_t icrc = 0;

	if (p->bytes >= WIRE_ICRC_BYTES)
		memcpy(&icrc, p->bth + p->bytes - WIRE_ICRC_BYTES,
		       sizeof(icrc));
	return icrc;
}

/* Callback of wire_watcher: record a packet, in one or more records. */
static void record_packet(uint64_t when, const struct wire_watched *p)
{
	const struct wire_path *path = p->path;
	const uint32_t shown = packet_recorded_bytes(p), qpn = packet_qpn(p);
	uint32_t off = 0, n;
	uint64_t v[TRACE_VALUES] = {
		[TRACE_PACKET_IN] = p->in,
		[TRACE_PACKET_REFUSED] = p->refusal,
		[TRACE_PACKET_BYTES] = p->bytes,
		[TRACE_PACKET_PORTS] = path->source_port | (uint32_t)path->port
								   << 16,
		[TRACE_PACKET_TCLASS] = path->traffic_class,
		[TRACE_PACKET_HOPS] = path->hop_limit,
		[TRACE_PACKET_LABEL] = path->flow_label,
		[TRACE_PACKET_IP_ID] = path->ip_id,
		[TRACE_PACKET_ICRC] = packet_icrc(p),
	};

	memcpy(v + TRACE_PACKET_SGID, path->sgid, 16);
	memcpy(v + TRACE_PACKET_DGID, path->dgid, 16);
	do {
		n = shown - off < TRACE_PACKET_PART ? shown - off :
						      TRACE_PACKET_PART;
		v[TRACE_PACKET_AT] = off;
		v[TRACE_PACKET_N] = n;
		v[TRACE_PACKET_DATA + n / sizeof(*v)] = 0;
		memcpy(v + TRACE_PACKET_DATA, p->bth + off, n);
		trace_at(when, TRACE_PACKET, qpn, v,
			 TRACE_PACKET_DATA + n / sizeof(*v) + 1);
		off += n;
	} while (off < shown);
}

void trace_watch_packets(uint32_t payload)
{
	static const struct wire_watcher watcher = {
		.now = clock_now,
		.packet = record_packet,
	};

	wanted = payload;
	wire_watcher = &watcher;
}
