// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "mad/attribute.h"
#include "wire/field.h"

static const struct {
	uint16_t at, bits;
} fields[ATTRIBUTE_FIELDS] = {
#define FIELD(attribute, name, at, bits) { at, bits },
#include "mad/attribute_fields.h"
};

void attr_set(uint8_t *attribute, enum attribute_field f, uint64_t value)
{
	field_put(attribute, fields[f].at, fields[f].bits, value);
}

uint64_t attr_get(const uint8_t *attribute, enum attribute_field f)
{
	return field_get(attribute, fields[f].at, fields[f].bits);
}
