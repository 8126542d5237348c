// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* MADs of the communication manager: offsets of fields, and validation. */
#include <stdio.h>
#include <string.h>

#include "unit_base.h"
#include "wire/mad.h"

static uint8_t mad[MAD_BYTES];

/* Check the bytes from offset @at; @text is hexadecimal. */
static void expect(unsigned int at, const char *text)
{
	unsigned int byte;

	for (; sscanf(text, "%2x", &byte) == 1; text += 2, at++)
		ck_assert_msg(mad[at] == byte, "byte %u: %02x, not %02x", at,
			      mad[at], byte);
}

/* The bytes of a REQ that kernel rxe accepted. */
START_TEST(req_bytes)
{
	const uint8_t gid[16] = { [10] = 0xff, 0xff, 192, 168, 77, 1 };

	mad_begin(mad, MAD_REQ, 0x1234);
	expect(0, "01070203000000000000000000001234001000000000");
	mad_set(mad, MAD_REQ_local_comm_id, 0x55667788);
	mad_set(mad, MAD_REQ_service_id, 0x1061c06);
	mad_set(mad, MAD_REQ_local_ca_guid, 0x0200000000000001);
	mad_set(mad, MAD_REQ_local_qpn, 0xabc2);
	mad_set(mad, MAD_REQ_responder_resources, 1);
	mad_set(mad, MAD_REQ_initiator_depth, 2);
	mad_set(mad, MAD_REQ_remote_cm_response_timeout, 20);
	mad_set(mad, MAD_REQ_transport_service, 3);
	mad_set(mad, MAD_REQ_end_to_end_flow_control, 1);
	mad_set(mad, MAD_REQ_starting_psn, 0x777000);
	mad_set(mad, MAD_REQ_local_cm_response_timeout, 20);
	mad_set(mad, MAD_REQ_retry_count, 7);
	mad_set(mad, MAD_REQ_pkey, 0xffff);
	mad_set(mad, MAD_REQ_path_mtu, 3);
	mad_set(mad, MAD_REQ_rnr_retry_count, 7);
	mad_set(mad, MAD_REQ_max_cm_retries, 15);
	mad_set(mad, MAD_REQ_srq, 1);
	mad_set(mad, MAD_REQ_local_lid, 0xffff);
	mad_set(mad, MAD_REQ_remote_lid, 0xffff);
	mad_set_bytes(mad, MAD_REQ_local_gid, 0, gid, 16);
	mad_set(mad, MAD_REQ_flow_label, 0x12345);
	mad_set(mad, MAD_REQ_packet_rate, 17);
	mad_set(mad, MAD_REQ_hop_limit, 64);
	mad_set(mad, MAD_REQ_local_ack_timeout, 19);
	mad_set_bytes(mad, MAD_REQ_private_data, 1, "\x40", 1);
	expect(24, "55667788000000000000000001061c060200000000000001"
		   "000000000000000000abc20100000002000000a7777000a7"
		   "ffff37f8ffffffff00000000000000000000ffffc0a84d01");
	expect(24 + 88, "123450110040009800");
	expect(24 + 140, "0040");
	/* setting a field again does not change its neighbors */
	mad_set(mad, MAD_REQ_transport_service, 1);
	expect(24 + 43, "a3");
	ck_assert_uint_eq(mad_get(mad, MAD_REQ_starting_psn), 0x777000);
	ck_assert_int_eq(mad_message(mad), MAD_REQ);
}
END_TEST

START_TEST(other_messages)
{
	mad_begin(mad, MAD_REP, 1);
	mad_set(mad, MAD_REP_local_qpn, 0xabc1);
	mad_set(mad, MAD_REP_starting_psn, 0x123456);
	mad_set(mad, MAD_REP_responder_resources, 1);
	mad_set(mad, MAD_REP_initiator_depth, 1);
	mad_set(mad, MAD_REP_rnr_retry_count, 7);
	mad_set(mad, MAD_REP_local_ca_guid, 0x0200000000000001);
	expect(24 + 12, "00abc10000000000123456000101"
			"00e00200000000000001");
	mad_begin(mad, MAD_REJ, 1);
	mad_set(mad, MAD_REJ_message, 1);
	mad_set(mad, MAD_REJ_reason, 28);
	mad_set_bytes(mad, MAD_REJ_private_data, 0, "no", 2);
	expect(24 + 8, "4000001c00");
	expect(24 + 84, "6e6f");
	mad_begin(mad, MAD_MRA, 1);
	mad_set(mad, MAD_MRA_message, 2);
	mad_set(mad, MAD_MRA_service_timeout, 20);
	expect(24 + 8, "80a0");
	mad_begin(mad, MAD_DREQ, 1);
	mad_set(mad, MAD_DREQ_remote_qpn, 0xabc1);
	expect(24 + 8, "00abc100");
	mad_begin(mad, MAD_SIDR_REQ, 1);
	mad_set(mad, MAD_SIDR_REQ_pkey, 0xffff);
	mad_set(mad, MAD_SIDR_REQ_service_id, 0x1111c06);
	expect(24 + 4, "ffff00000000000001111c06");
	mad_begin(mad, MAD_SIDR_REP, 1);
	mad_set(mad, MAD_SIDR_REP_status, 2);
	mad_set(mad, MAD_SIDR_REP_qpn, 0x888);
	mad_set(mad, MAD_SIDR_REP_service_id, 0x1111c06);
	mad_set(mad, MAD_SIDR_REP_qkey, 0x01234567);
	expect(24 + 4, "02000000000888000000000001111c0601234567");
}
END_TEST

/*
 * A value that is set is read back, and the fields of a message do not
 * overlap.
 */
START_TEST(fields)
{
	uint64_t value, most;
	unsigned int f, g;
	size_t len;

	for (f = 0; f < MAD_FIELDS; f++) {
		const struct mad_description *d = &mad_fields[f];

		memset(mad, 0, sizeof(mad));
		mad_bytes(mad, f, &len);
		ck_assert_uint_eq(len, d->bits / 8u);
		if (d->bits > 64)
			memset(mad + d->bit / 8, 0xff, len);
		most = d->bits < 64 ? (1ull << d->bits) - 1 : UINT64_MAX;
		value = most & 0x123456789abcdef1;
		if (d->bits <= 64) {
			mad_set(mad, f, value);
			ck_assert_uint_eq(mad_get(mad, f), value);
			mad_set(mad, f, UINT64_MAX);
			ck_assert_uint_eq(mad_get(mad, f), most);
		}
		for (g = 0; g < MAD_FIELDS; g++)
			if (g != f && mad_fields[g].bits <= 64 &&
			    (mad_fields[g].message == d->message ||
			     mad_fields[g].message == MAD_HEADER))
				ck_assert_msg(!mad_get(mad, g),
					      "%s is in %s (0x%x)", d->name,
					      mad_fields[g].name, d->message);
	}
}
END_TEST

START_TEST(message_type)
{
	unsigned int m;

	for (m = MAD_REQ; m <= MAD_SIDR_REP; m++) {
		mad_begin(mad, m, UINT64_MAX);
		ck_assert_int_eq(mad_message(mad), m);
		ck_assert_ptr_nonnull(mad_name(m));
	}
	mad_begin(mad, MAD_SIDR_REP + 1, 0); /* LAP */
	ck_assert_int_eq(mad_message(mad), MAD_HEADER);
	ck_assert_ptr_null(mad_name(MAD_HEADER));
	for (m = 0; m < 4; m++) {
		mad_begin(mad, MAD_REQ, 0);
		mad[m]++;
		ck_assert_int_eq(mad_message(mad), MAD_HEADER);
	}
}
END_TEST

/* Data is truncated at the end of its field. */
START_TEST(data_truncated)
{
	uint8_t much[300];

	memset(much, 0xee, sizeof(much));
	mad_begin(mad, MAD_REJ, 0);
	mad_set_bytes(mad, MAD_REJ_info, 70, much, sizeof(much));
	expect(24 + 82, "eeee00");
	mad_set_bytes(mad, MAD_REJ_info, 73, much, 1);
	mad_set_bytes(mad, MAD_REJ_private_data, SIZE_MAX, much, SIZE_MAX);
	expect(24 + 84, "0000");
	mad_set_bytes(mad, MAD_REJ_private_data, 0, much, sizeof(much));
	ck_assert_uint_eq(mad[MAD_BYTES - 1], 0xee);
}
END_TEST

static enum mad_message with(enum mad_field f, uint64_t value)
{
	const uint64_t before = mad_get(mad, f);
	enum mad_message m;

	mad_set(mad, f, value);
	m = mad_check(mad, sizeof(mad));
	mad_set(mad, f, before);
	return m;
}

/*
 * mad_check() rejects messages of a wrong length or method, and values that
 * the specification does not allow.
 */
START_TEST(invalid_mads_rejected)
{
	unsigned int m;

	for (m = MAD_MRA; m <= MAD_SIDR_REP; m++) {
		mad_begin(mad, m, 5);
		if (m == MAD_REP) {
			ck_assert_int_eq(mad_check(mad, MAD_BYTES), MAD_HEADER);
			ck_assert_int_eq(with(MAD_REP_local_eecn, 1), MAD_REP);
			mad_set(mad, MAD_REP_local_qpn, 1);
		}
		ck_assert_int_eq(mad_check(mad, MAD_BYTES), m);
		ck_assert_int_eq(mad_check(mad, MAD_BYTES - 1), MAD_HEADER);
		ck_assert_int_eq(mad_check(mad, 0), MAD_HEADER);
		ck_assert_int_eq(with(MAD_HEADER_method, 4), MAD_HEADER);
	}
	mad_begin(mad, MAD_REQ, 5);
	mad_set(mad, MAD_REQ_path_mtu, 5);
	mad_set(mad, MAD_REQ_local_qpn, 0x800001);
	ck_assert_int_eq(mad_check(mad, MAD_BYTES), MAD_REQ);
	ck_assert_int_eq(with(MAD_REQ_path_mtu, 0), MAD_HEADER);
	ck_assert_int_eq(with(MAD_REQ_path_mtu, 6), MAD_HEADER);
	ck_assert_int_eq(with(MAD_REQ_local_qpn, 0), MAD_HEADER);
	ck_assert_int_eq(with(MAD_REQ_transport_service, 1), MAD_REQ);
	ck_assert_int_eq(with(MAD_REQ_transport_service, 2), MAD_HEADER);
	ck_assert_int_eq(with(MAD_REQ_transport_service, 3), MAD_HEADER);
	mad_set(mad, MAD_REQ_extended_transport, 1);
	ck_assert_int_eq(with(MAD_REQ_transport_service, 3), MAD_REQ);
	mad_begin(mad, MAD_REJ, 5);
	ck_assert_int_eq(with(MAD_REJ_message, 3), MAD_HEADER);
	ck_assert_int_eq(with(MAD_REJ_info_length, 72), MAD_REJ);
	ck_assert_int_eq(with(MAD_REJ_info_length, 73), MAD_HEADER);
	mad_begin(mad, MAD_MRA, 5);
	ck_assert_int_eq(with(MAD_MRA_message, 3), MAD_HEADER);
	mad_begin(mad, MAD_SIDR_REP, 5);
	ck_assert_int_eq(with(MAD_SIDR_REP_info_length, 73), MAD_HEADER);
}
END_TEST

START_TEST(ip_headers)
{
	static const enum mad_message asks[] = { MAD_REQ, MAD_SIDR_REQ };
	static const enum mad_field data[] = { MAD_REQ_private_data,
					       MAD_SIDR_REQ_private_data };
	struct mad_ip_header h = { .ip_version = 6 << 4, .port = { 1, 2 } }, r;
	unsigned int i;

	h.src[0] = h.dst[15] = 7;
	for (i = 0; i < 2; i++) {
		mad_begin(mad, asks[i], 1);
		ck_assert(!mad_get_ip_header(mad, &r));
		mad_set_bytes(mad, data[i], 0, &h, sizeof(h));
		ck_assert(mad_get_ip_header(mad, &r));
		ck_assert_mem_eq(&r, &h, sizeof(h));
		mad_set_bytes(mad, data[i], 0, "\1", 1);
		ck_assert(!mad_get_ip_header(mad, &r));
	}
	mad_begin(mad, MAD_REP, 1);
	ck_assert(!mad_get_ip_header(mad, &r));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mad");

	add(s, req_bytes);
	add(s, other_messages);
	add(s, fields);
	add(s, message_type);
	add(s, data_truncated);
	add(s, invalid_mads_rejected);
	add(s, ip_headers);
	return run_suite(s);
}
