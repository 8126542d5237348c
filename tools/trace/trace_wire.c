// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Decoding and printing of PACKET records. */
#include <string.h>

#include "base/plural.h"
#include "trace/packet.h"
#include "trace_wire.h"
#include "wire/icrc.h"

bool trace_packet(const struct trace_record *r, struct trace_packet *out)
{
	const uint64_t *v = r->value;
	uint8_t icrc[WIRE_ICRC_BYTES];

	if (r->what != TRACE_PACKET || r->n <= TRACE_PACKET_DATA)
		return false;
	*out = (struct trace_packet){
		.in = v[TRACE_PACKET_IN],
		.refusal = v[TRACE_PACKET_REFUSED] <= WIRE_BAD_ICRC ?
				   (enum wire_refusal)v[TRACE_PACKET_REFUSED] :
				   WIRE_NO_ROCE,
		.path = { .traffic_class = (uint8_t)v[TRACE_PACKET_TCLASS],
			  .hop_limit = (uint8_t)v[TRACE_PACKET_HOPS],
			  .flow_label = v[TRACE_PACKET_LABEL] & 0xfffff,
			  .ip_id = (uint16_t)v[TRACE_PACKET_IP_ID],
			  .source_port = (uint16_t)v[TRACE_PACKET_PORTS],
			  .port = (uint16_t)(v[TRACE_PACKET_PORTS] >> 16) },
		.bytes = (uint32_t)v[TRACE_PACKET_BYTES],
		.at = (uint32_t)v[TRACE_PACKET_AT],
		.n = (uint32_t)v[TRACE_PACKET_N],
		.byte = (const uint8_t *)(v + TRACE_PACKET_DATA),
	};
	memcpy(out->path.sgid, v + TRACE_PACKET_SGID, 16);
	memcpy(out->path.dgid, v + TRACE_PACKET_DGID, 16);
	memcpy(icrc, v + TRACE_PACKET_ICRC, sizeof(icrc));
	out->icrc = wire_get_icrc(icrc);
	return out->n <= (r->n - TRACE_PACKET_DATA) * sizeof(*v) &&
	       out->bytes <= UINT16_MAX && out->at <= out->bytes &&
	       out->n <= out->bytes - out->at;
}

/* ------------------------------------------------------- text */

static const char *opcode_name(uint8_t opcode)
{
	static const char *const names[32] = {
#define OPCODE(name, low, parts) [low] = #name,
		WIRE_OPCODES(OPCODE)
#undef OPCODE
	};
	const char *name = names[opcode & ~WIRE_TRANSPORT];

	if (opcode == WIRE_CNP_OPCODE)
		return "CNP";
	return name ? name : "?";
}

static const char *transport_name(uint8_t opcode)
{
	switch (opcode & WIRE_TRANSPORT) {
	case WIRE_RC:
		return "RC ";
	case WIRE_UC:
		return "UC ";
	case WIRE_UD:
		return "UD ";
	case WIRE_XRC:
		return "XRC ";
	}
	return "";
}

static void print_syndrome(FILE *to, uint8_t syndrome)
{
	static const char *const naks[] = { "PSN sequence error",
					    "invalid request",
					    "remote access error",
					    "remote operational error" };

	if ((syndrome & 0xe0) == WIRE_RNR_NAK)
		fprintf(to, " RNR NAK, timer %u", syndrome & 0x1fu);
	else if (syndrome >= WIRE_NAK_SEQUENCE &&
		 syndrome < WIRE_NAK_SEQUENCE + 4)
		fprintf(to, " NAK 0x%x (%s)", syndrome,
			naks[syndrome - WIRE_NAK_SEQUENCE]);
	else if (syndrome & 0x60)
		fprintf(to, " NAK 0x%x", syndrome);
}

/*
 * Decode the headers in the record. The payload may be missing; its length is
 * that of the packet without headers, ICRC and pad.
 */
static bool headers_get(const struct trace_packet *p, struct wire_packet *out)
{
	unsigned int parts;
	const uint8_t *at;

	memset(out, 0, sizeof(*out));
	if (p->at || p->n < WIRE_BTH_BYTES)
		return false;
	at = wire_get_bth(&out->bth, p->byte);
	parts = wire_parts(out->bth.opcode);
	if (!parts || p->n < WIRE_BTH_BYTES + wire_parts_bytes(parts))
		return false;
#define HEADER(name, NAME, bytes)   \
	if (parts & WIRE_HAS(NAME)) \
		at = wire_get_##name(&out->name, at);
	WIRE_EXTENSIONS(HEADER)
#undef HEADER
	out->length = p->bytes - (uint32_t)(at - p->byte) - WIRE_ICRC_BYTES -
		      out->bth.pad;
	return p->bytes >=
	       (uint32_t)(at - p->byte) + WIRE_ICRC_BYTES + out->bth.pad;
}

static void print_extensions(FILE *to, const struct wire_packet *p)
{
	const unsigned int parts = wire_parts(p->bth.opcode);

	if (parts & WIRE_HAS(RETH))
		fprintf(to, " addr=0x%llx rkey=0x%x dma_length=%u",
			(unsigned long long)p->reth.addr, p->reth.rkey,
			p->reth.length);
	if (parts & WIRE_HAS(ATOMICETH))
		fprintf(to, " addr=0x%llx rkey=0x%x",
			(unsigned long long)p->atomiceth.addr,
			p->atomiceth.rkey);
	if (parts & WIRE_HAS(AETH)) {
		print_syndrome(to, p->aeth.syndrome);
		fprintf(to, " msn=%u", p->aeth.msn);
	}
	if (parts & WIRE_HAS(IMMDT))
		fprintf(to, " imm=0x%x", p->immdt.imm);
	if (parts & WIRE_HAS(DETH))
		fprintf(to, " src_qp=0x%x qkey=0x%x", p->deth.qpn,
			p->deth.qkey);
	if (parts & WIRE_HAS(PAYLOAD))
		fprintf(to, " length=%u", p->length);
}

void trace_packet_print(FILE *to, const struct trace_record *r)
{
	struct trace_packet p;
	struct wire_packet h;

	if (!trace_packet(r, &p)) {
		fputs("?", to);
		return;
	}
	if (p.refusal)
		fprintf(to, "refused (%s): ", wire_refusal_name(p.refusal));
	if (p.at) {
		fprintf(to, "from byte %u on", p.at);
		return;
	}
	if (!headers_get(&p, &h)) {
		fprintf(to, "%u byte%s", p.bytes, plural(p.bytes));
		return;
	}
	fprintf(to, "%s%s to QP 0x%x psn=%u", transport_name(h.bth.opcode),
		opcode_name(h.bth.opcode), h.bth.qpn, h.bth.psn);
	print_extensions(to, &h);
	if (h.bth.ack_request)
		fputs(" AckReq", to);
	if (h.bth.solicited)
		fputs(" solicited", to);
}

bool trace_packet_is_error(const struct trace_record *r)
{
	struct trace_packet p;
	struct wire_packet h;

	if (!trace_packet(r, &p))
		return false;
	if (p.refusal)
		return true;
	return headers_get(&p, &h) &&
	       wire_parts(h.bth.opcode) & WIRE_HAS(AETH) &&
	       h.aeth.syndrome & 0x60 && !(h.aeth.syndrome & 0x80);
}
