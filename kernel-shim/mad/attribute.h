/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Access to the fields of management datagrams and their attributes
 * (attribute_fields.h), and their constants.  Pure functions on the caller's
 * buffer, which has the whole attribute.
 */
#pragma once

#include <stdint.h>

/* Fields are named ATTR_attribute_name, such as ATTR_PORT_lid. */
enum attribute_field {
#define FIELD(attribute, name, at, bits) ATTR_##attribute##_##name,
#include "mad/attribute_fields.h"
	ATTRIBUTE_FIELDS
};

void attr_set(uint8_t *attribute, enum attribute_field f, uint64_t value);
uint64_t attr_get(const uint8_t *attribute, enum attribute_field f);

#define SMP_DATA 64 /* first byte of the attribute in an SMP */
#define SMP_DATA_BYTES 64
#define SMP_INITIAL_PATH 128
#define SMP_RETURN_PATH 192
#define SMP_HOPS 63
#define GMP_DATA 64 /* of a performance MAD */
#define SA_KEY 36
#define SA_DATA 56
#define SA_DATA_BYTES 200
#define NODE_DESCRIPTION_BYTES 64

enum mad_class {
	CLASS_SUBN = 0x01,
	CLASS_SA = 0x03,
	CLASS_PERF = 0x04,
	CLASS_MELLANOX = 0x0a,
	CLASS_SUBN_DIRECTED = 0x81,
};

/* Methods, without the bit for responses; IB 13.4.5 */
enum mad_method {
	METHOD_GET = 1,
	METHOD_SET,
	METHOD_TRAP_REPRESS = 7,
	METHOD_GET_TABLE = 0x12,
	METHOD_DELETE = 0x15,
};

/* Attributes; IB 14.2.5, 15.2.5 and 16.1.3 */
enum mad_attribute {
	ATTRIBUTE_CLASS_PORT_INFO = 0x01,
	ATTRIBUTE_INFORM_INFO = 0x03,
	ATTRIBUTE_NODE_DESCRIPTION = 0x10,
	ATTRIBUTE_NODE_INFO = 0x11,
	ATTRIBUTE_SWITCH_INFO = 0x12,
	ATTRIBUTE_GUID_INFO = 0x14,
	ATTRIBUTE_PORT_INFO = 0x15,
	ATTRIBUTE_PKEY_TABLE = 0x16,
	ATTRIBUTE_SL_TO_VL = 0x17,
	ATTRIBUTE_VL_ARBITRATION = 0x18,
	ATTRIBUTE_LFT = 0x19,
	ATTRIBUTE_MFT = 0x1b,
	ATTRIBUTE_SM_INFO = 0x20,

	PERF_PORT_COUNTERS = 0x12,
	PERF_PORT_COUNTERS_EXTENDED = 0x1d,

	RECORD_NODE = 0x11,
	RECORD_PORT_INFO = 0x12,
	RECORD_SWITCH_INFO = 0x14,
	RECORD_LFT = 0x15,
	RECORD_SM_INFO = 0x18,
	RECORD_LINK = 0x20,
	RECORD_GUID_INFO = 0x30,
	RECORD_SERVICE = 0x31,
	RECORD_PKEY_TABLE = 0x33,
	RECORD_PATH = 0x35,
	RECORD_MC_MEMBER = 0x38,
};

/* Values of the field status; IB 13.4.7 and 15.2.2 */
enum mad_status {
	STATUS_BAD_METHOD = 0x08,
	STATUS_BAD_ATTRIBUTE = 0x0c,
	STATUS_BAD_VALUE = 0x1c,
	STATUS_NO_RESOURCES = 0x0100,
	STATUS_NO_RECORDS = 0x0300,
	STATUS_TOO_MANY_RECORDS = 0x0400,
	STATUS_REQUEST_INVALID = 0x0200,
	STATUS_MISSING_COMPONENTS = 0x0700,
};
