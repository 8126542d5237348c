/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of the communication manager (CM) in wire format: MADs, which are
 * datagrams of 256 bytes between the QPs 1 of two ports.  IB 12.6 to 12.11
 * define the messages and the meaning of their fields; only mad_check() reads
 * some of them here.
 *
 * kernel-shim/cm makes messages (message.c) and receives them (wire_recv.c),
 * `urxe trace` prints them (tools/trace/trace_mad.c).  Pure functions on the
 * caller's buffer of MAD_BYTES.  tests/unit/test_mad.c tests them.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_BYTES 256
#define MAD_QPN 1
#define MAD_QKEY 0x80010000u

/* The CM messages; the values are their attribute IDs. */
enum mad_message {
	MAD_HEADER, /* no message: the fields common to all */
	MAD_REQ = 0x10,
	MAD_MRA,
	MAD_REJ,
	MAD_REP,
	MAD_RTU,
	MAD_DREQ,
	MAD_DREP,
	MAD_SIDR_REQ,
	MAD_SIDR_REP
};

/* The field message of a REJ or an MRA: the message to which it responds. */
enum { MAD_ABOUT_REQ, MAD_ABOUT_REP, MAD_ABOUT_OTHER };

/* The fields of mad_fields.h: MAD_REQ_local_comm_id and so on */
enum mad_field {
#define FIELD(message, name, byte, bit, bits, form) MAD_##message##_##name,
#include "wire/mad_fields.h"
#undef FIELD
	MAD_FIELDS
};

enum mad_form { MAD_FORM_u, MAD_FORM_x, MAD_FORM_gid, MAD_FORM_data };

struct mad_description {
	const char *name;
	uint16_t bit, bits; /* first bit, counted from the MAD's; length */
	uint8_t message; /* enum mad_message */
	uint8_t form; /* enum mad_form */
};
extern const struct mad_description mad_fields[MAD_FIELDS];

/* Make a message whose fields are 0, except for the header. */
void mad_begin(uint8_t mad[MAD_BYTES], enum mad_message m, uint64_t tid);
/* Set a field of at most 64 bits.  Excess high bits of value are dropped. */
void mad_set(uint8_t mad[MAD_BYTES], enum mad_field f, uint64_t value);
uint64_t mad_get(const uint8_t mad[MAD_BYTES], enum mad_field f);
/*
 * Set len bytes of a GID or data field, starting at byte `at` of the field.
 * Bytes beyond its end are dropped.
 */
void mad_set_bytes(uint8_t mad[MAD_BYTES], enum mad_field f, size_t at,
		   const void *from, size_t len);
const uint8_t *mad_bytes(const uint8_t mad[MAD_BYTES], enum mad_field f,
			 size_t *len);
/* Return which message it is, by the header; MAD_HEADER if none of these. */
enum mad_message mad_message(const uint8_t mad[MAD_BYTES]);
/*
 * Validate n received bytes, from the first byte of the MAD on, which may
 * come from anyone.  Return which message they are.  Return MAD_HEADER if
 * they are none of these, or if the specification does not allow the values:
 *
 *	all		n is not MAD_BYTES
 *	REQ		transport service RD or unknown; path MTU; QPN 0
 *	REP		neither a QPN nor an EE context number
 *	REJ, MRA	value of the field message
 *	REJ, SIDR_REP	info_length exceeds the field info
 *
 * The caller must check all other fields.
 */
enum mad_message mad_check(const uint8_t *mad, size_t n);
/* Return the name, for example "REQ", or NULL. */
const char *mad_name(enum mad_message m);

/*
 * The IP addressing header of rdma_cm at the start of the private data of a
 * REQ or SIDR_REQ (IB annex A11, RDMA IP CM Service).  An IPv4 address is in
 * the last four bytes of src or dst.
 */
struct mad_ip_header {
	uint8_t version; /* 0 */
	uint8_t ip_version; /* 4 or 6, in the upper four bits */
	uint8_t port[2]; /* source port, big-endian */
	uint8_t src[16], dst[16];
};
static_assert(sizeof(struct mad_ip_header) == 36, "size in wire format");

/*
 * Get the IP addressing header of a message that mad_check() accepted.
 * Return false if the message is no REQ or SIDR_REQ, or its private data does
 * not start with such a header.
 */
bool mad_get_ip_header(const uint8_t mad[MAD_BYTES], struct mad_ip_header *h);
