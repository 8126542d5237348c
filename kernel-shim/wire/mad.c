// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "wire/mad.h"
#include "wire/field.h"

#include <string.h>

#define HEADER_BYTES 24
#define CLASS_CM 7
#define METHOD_SEND 3

#define START(message) ((message) == MAD_HEADER ? 0 : HEADER_BYTES)

const struct mad_description mad_fields[MAD_FIELDS] = {
#define FIELD(message, name, byte, bit, bits, form)                 \
	{ #name, (START(MAD_##message) + (byte)) * 8 + (bit), bits, \
	  MAD_##message, MAD_FORM_##form },
#include "wire/mad_fields.h"
#undef FIELD
};

#define FIELD(message, name, byte, bit, bits, form)                            \
	static_assert((START(MAD_##message) + (byte)) * 8 + (bit) + (bits) <=  \
			      MAD_BYTES * 8,                                   \
		      "exceeds the MAD");                                      \
	static_assert(MAD_FORM_##form < MAD_FORM_gid || !((bit) + (bits) % 8), \
		      "whole bytes");
#include "wire/mad_fields.h"
#undef FIELD

void mad_begin(uint8_t mad[MAD_BYTES], enum mad_message m, uint64_t tid)
{
	memset(mad, 0, MAD_BYTES);
	mad_set(mad, MAD_HEADER_base_version, 1);
	mad_set(mad, MAD_HEADER_mgmt_class, CLASS_CM);
	mad_set(mad, MAD_HEADER_class_version, 2);
	mad_set(mad, MAD_HEADER_method, METHOD_SEND);
	mad_set(mad, MAD_HEADER_tid, tid);
	mad_set(mad, MAD_HEADER_attribute, m);
}

void mad_set(uint8_t mad[MAD_BYTES], enum mad_field f, uint64_t value)
{
	const struct mad_description *d = &mad_fields[f];

	field_put(mad, d->bit, d->bits, value);
}

uint64_t mad_get(const uint8_t mad[MAD_BYTES], enum mad_field f)
{
	return field_get(mad, mad_fields[f].bit, mad_fields[f].bits);
}

void mad_set_bytes(uint8_t mad[MAD_BYTES], enum mad_field f, size_t at,
		   const void *from, size_t len)
{
	const struct mad_description *d = &mad_fields[f];
	const size_t room = d->bits / 8;

	if (at > room)
		at = room;
	if (len > room - at)
		len = room - at;
	if (len)
		memcpy(mad + d->bit / 8 + at, from, len);
}

const uint8_t *mad_bytes(const uint8_t mad[MAD_BYTES], enum mad_field f,
			 size_t *len)
{
	*len = mad_fields[f].bits / 8;
	return mad + mad_fields[f].bit / 8;
}

const char *mad_name(enum mad_message m)
{
	static const char *const name[] = { "REQ",  "MRA",	"REJ",
					    "REP",  "RTU",	"DREQ",
					    "DREP", "SIDR_REQ", "SIDR_REP" };

	return m >= MAD_REQ && m <= MAD_SIDR_REP ? name[m - MAD_REQ] : NULL;
}

enum mad_message mad_message(const uint8_t mad[MAD_BYTES])
{
	const uint64_t attribute = mad_get(mad, MAD_HEADER_attribute);

	if (mad_get(mad, MAD_HEADER_base_version) != 1 ||
	    mad_get(mad, MAD_HEADER_mgmt_class) != CLASS_CM ||
	    mad_get(mad, MAD_HEADER_class_version) != 2 ||
	    mad_get(mad, MAD_HEADER_method) != METHOD_SEND ||
	    attribute < MAD_REQ || attribute > MAD_SIDR_REP)
		return MAD_HEADER;
	return (enum mad_message)attribute;
}

/* ------------------------------------------------------- checks */

#define SERVICE_RD 2
#define SERVICE_EXTENDED 3
#define EXTENDED_XRC 1
#define INFO_BYTES 72 /* size of the field info of REJ and SIDR_REP */
/* Largest value of the field message: REQ, REP, other; in MRA, LAP */
#define LAST_REJECTED 2

static bool check_req(const uint8_t *mad)
{
	const uint64_t service = mad_get(mad, MAD_REQ_transport_service);
	const uint64_t mtu = mad_get(mad, MAD_REQ_path_mtu);

	return service != SERVICE_RD &&
	       (service != SERVICE_EXTENDED ||
		mad_get(mad, MAD_REQ_extended_transport) == EXTENDED_XRC) &&
	       mtu >= 1 && mtu <= 5 && mad_get(mad, MAD_REQ_local_qpn);
}

static bool check(const uint8_t *mad, enum mad_message m)
{
	switch (m) {
	case MAD_REQ:
		return check_req(mad);
	case MAD_REP: /* of an XRC connection the QPN is in local_eecn */
		return mad_get(mad, MAD_REP_local_qpn) ||
		       mad_get(mad, MAD_REP_local_eecn);
	case MAD_REJ:
		return mad_get(mad, MAD_REJ_message) <= LAST_REJECTED &&
		       mad_get(mad, MAD_REJ_info_length) <= INFO_BYTES;
	case MAD_MRA:
		return mad_get(mad, MAD_MRA_message) <= LAST_REJECTED;
	case MAD_SIDR_REP:
		return mad_get(mad, MAD_SIDR_REP_info_length) <= INFO_BYTES;
	default:
		return true;
	}
}

enum mad_message mad_check(const uint8_t *mad, size_t n)
{
	enum mad_message m = n == MAD_BYTES ? mad_message(mad) : MAD_HEADER;

	return m != MAD_HEADER && check(mad, m) ? m : MAD_HEADER;
}

bool mad_get_ip_header(const uint8_t mad[MAD_BYTES], struct mad_ip_header *h)
{
	const bool sidr = mad_message(mad) == MAD_SIDR_REQ;
	size_t len;

	if (!sidr && mad_message(mad) != MAD_REQ)
		return false;
	memcpy(h,
	       mad_bytes(mad,
			 sidr ? MAD_SIDR_REQ_private_data :
				MAD_REQ_private_data,
			 &len),
	       sizeof(*h));
	return !h->version &&
	       (h->ip_version >> 4 == 4 || h->ip_version >> 4 == 6);
}
