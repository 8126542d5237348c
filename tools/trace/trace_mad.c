// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Decoding and printing of CM_SENT records. */
#include "trace_mad.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#define BEFORE 6 /* number of values before the message (events.h) */
#define VALUES (BEFORE + MAD_BYTES / sizeof(uint64_t))

bool trace_mad(const struct trace_record *r, struct trace_mad *out)
{
	if (r->what != TRACE_CM_SENT || r->n < VALUES)
		return false;
	memcpy(out->sgid, r->value, 16);
	memcpy(out->dgid, r->value + 2, 16);
	out->traffic_class = (uint8_t)r->value[4];
	out->flow_label = r->value[5] & 0xfffff;
	memcpy(out->mad, r->value + BEFORE, MAD_BYTES);
	return mad_message(out->mad) != MAD_HEADER;
}

const char *trace_mad_name(const struct trace_record *r)
{
	struct trace_mad m;

	return trace_mad(r, &m) ? mad_name(mad_message(m.mad)) : NULL;
}

bool trace_mad_refuses(const struct trace_record *r)
{
	struct trace_mad m;

	if (!trace_mad(r, &m))
		return false;
	return mad_message(m.mad) == MAD_REJ ||
	       (mad_message(m.mad) == MAD_SIDR_REP &&
		mad_get(m.mad, MAD_SIDR_REP_status));
}

static void print_gid(FILE *to, const char *name, const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];

	fprintf(to, " %s=%s", name,
		inet_ntop(AF_INET6, gid, text, sizeof(text)));
}

/*
 * Print a field of bytes, such as private data, without the zeros that pad
 * it.
 */
static void print_data(FILE *to, const char *name, const uint8_t *data,
		       size_t len)
{
	size_t i;

	while (len && !data[len - 1])
		len--;
	if (len)
		fprintf(to, " %s=", name);
	for (i = 0; i < len; i++)
		fprintf(to, "%02x", data[i]);
}

static void print_field(FILE *to, const uint8_t mad[MAD_BYTES],
			enum mad_field f)
{
	const struct mad_description *d = &mad_fields[f];
	const uint8_t *bytes;
	uint64_t value;
	size_t len;

	if (d->form == MAD_FORM_gid || d->form == MAD_FORM_data) {
		bytes = mad_bytes(mad, f, &len);
		if (d->form == MAD_FORM_gid)
			print_gid(to, d->name, bytes);
		else
			print_data(to, d->name, bytes, len);
		return;
	}
	value = mad_get(mad, f);
	if (value && d->form == MAD_FORM_x)
		fprintf(to, " %s=0x%" PRIx64, d->name, value);
	else if (value)
		fprintf(to, " %s=%" PRIu64, d->name, value);
}

void trace_mad_print(FILE *to, const uint8_t mad[MAD_BYTES])
{
	const enum mad_message m = mad_message(mad);
	unsigned int f;

	print_field(to, mad, MAD_HEADER_tid);
	for (f = 0; f < MAD_FIELDS; f++)
		if (mad_fields[f].message == m && m != MAD_HEADER)
			print_field(to, mad, (enum mad_field)f);
}
