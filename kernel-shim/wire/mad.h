/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages of the communication manager as they travel: datagrams of 256 bytes
 * between the QPs 1 of two ports.  What the fields mean the IB specification's
 * 12.6 to 12.11 say; nothing here looks at them.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_BYTES 256
#define MAD_QPN 1
#define MAD_QKEY 0x80010000u

/* By the attribute ID. */
enum mad_message {
	MAD_HEADER, /* of each of them */
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

/* Which message a REJ or an MRA is about. */
enum { MAD_ABOUT_REQ, MAD_ABOUT_REP, MAD_ABOUT_OTHER };

/* MAD_REQ_local_comm_id and so on */
enum mad_field {
#define FIELD(message, name, byte, bit, bits, form) MAD_##message##_##name,
#include "wire/mad_fields.h"
#undef FIELD
	MAD_FIELDS
};

enum mad_form { MAD_FORM_u, MAD_FORM_x, MAD_FORM_gid, MAD_FORM_data };

struct mad_description {
	const char *name;
	uint16_t bit, bits; /* from the MAD's first byte on */
	uint8_t message; /* enum mad_message */
	uint8_t form; /* enum mad_form */
};
extern const struct mad_description mad_fields[MAD_FIELDS];

/* An empty message, but for its header. */
void mad_begin(uint8_t mad[MAD_BYTES], enum mad_message m, uint64_t tid);
/* A field of at most 64 bits; what of the value has no room is cut off. */
void mad_set(uint8_t mad[MAD_BYTES], enum mad_field f, uint64_t value);
uint64_t mad_get(const uint8_t mad[MAD_BYTES], enum mad_field f);
/* A longer one; at is where in it, and what has no room is cut off. */
void mad_set_bytes(uint8_t mad[MAD_BYTES], enum mad_field f, size_t at,
		   const void *from, size_t len);
const uint8_t *mad_bytes(const uint8_t mad[MAD_BYTES], enum mad_field f,
			 size_t *len);
/* Which message it is, or MAD_HEADER: none of these. */
enum mad_message mad_message(const uint8_t mad[MAD_BYTES]);
/*
 * Which message n bytes are that came, from the MAD's first byte on;
 * MAD_HEADER: none of these, or one whose fields have values that the
 * specification has not: another length, a transport service or a path MTU that
 * does not exist, QPN 0, a rejected or received message that cannot be, more
 * information than there is room for.  What the other fields say is the
 * reader's to judge.
 */
enum mad_message mad_check(const uint8_t *mad, size_t n);
/* "REQ", or NULL */
const char *mad_name(enum mad_message m);

/*
 * What rdma_cm puts before the private data of a REQ or SIDR_REQ between IP
 * addresses; addresses of IPv4 are in the last four bytes.
 */
struct mad_ip_header {
	uint8_t version; /* 0 */
	uint8_t ip_version; /* << 4 */
	uint8_t port[2]; /* of the source */
	uint8_t src[16], dst[16];
};
static_assert(sizeof(struct mad_ip_header) == 36, "as it travels");

/* Of a REQ or a SIDR_REQ that was checked; false: its private data begins with
 * something else. */
bool mad_get_ip_header(const uint8_t mad[MAD_BYTES], struct mad_ip_header *h);
