// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The pcapng writer; block layouts are those of the draft in pcapng.h. */
#include <endian.h>
#include <string.h>

#include "common/json.h"
#include "pcapng.h"

/* Block types: section header, interface description, enhanced packet. */
enum { SECTION = 0x0a0d0d0a, INTERFACE = 1, PACKET = 6 };
/* Option codes: of any block, of a section, of an interface. */
enum { OPT_END = 0, OPT_COMMENT = 1 };
enum { OPT_APPLICATION = 4 };
enum { OPT_NAME = 2, OPT_DESCRIPTION = 3, OPT_RESOLUTION = 9 };

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define VERSION_1_0 1u /* major in the first 16 bits, minor in the others */
#define NANOSECONDS 9 /* 10^-9 */
#define OPTION_MAX 4096u

static void put32(FILE *to, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, to);
}

static uint32_t padded(size_t n)
{
	return (uint32_t)((n + 3) & ~(size_t)3);
}

static void put_padded(FILE *to, const void *bytes, size_t n)
{
	static const char zeros[4];

	fwrite(bytes, 1, n, to);
	fwrite(zeros, 1, padded(n) - n, to);
}

/* A block is: type, length, body, length again. */
static void block_begin(FILE *to, uint32_t type, uint32_t body)
{
	put32(to, type);
	put32(to, body + 12);
}

static void block_end(FILE *to, uint32_t body)
{
	put32(to, body + 12);
}

static size_t text_length(const char *text)
{
	return strnlen(text, OPTION_MAX);
}

static uint32_t option_bytes(size_t n)
{
	return 4 + padded(n);
}

static void put_option(FILE *to, uint16_t code, const void *bytes, size_t n)
{
	const uint16_t head[2] = { code, (uint16_t)n };

	fwrite(head, sizeof(head), 1, to);
	put_padded(to, bytes, n);
}

/*
 * Write a text option.  pcapng requires UTF-8; other bytes, as in names of
 * programs, are replaced by '?'.
 */
static void put_text(FILE *to, uint16_t code, const char *text)
{
	size_t i = 0, length = text_length(text), n;
	char copy[OPTION_MAX];

	memcpy(copy, text, length);
	while (i < length) {
		n = (size_t)utf8_length(text + i);
		if (!n || n > length - i)
			copy[i++] = '?';
		else
			i += n;
	}
	put_option(to, code, copy, length);
}

void pcapng_begin(FILE *to)
{
	static const char application[] = "urxe trace";
	uint32_t body =
		16 + option_bytes(strlen(application)) + option_bytes(0);

	block_begin(to, SECTION, body);
	put32(to, BYTE_ORDER_MAGIC);
	put32(to, VERSION_1_0);
	put32(to, UINT32_MAX); /* section length, 64 bits: unspecified */
	put32(to, UINT32_MAX);
	put_text(to, OPT_APPLICATION, application);
	put_option(to, OPT_END, "", 0);
	block_end(to, body);
}

void pcapng_interface(FILE *to, enum pcapng_link link, const char *name,
		      const char *description)
{
	const uint8_t resolution = NANOSECONDS;
	uint32_t body = 8 + option_bytes(text_length(name)) +
			option_bytes(text_length(description)) +
			option_bytes(1) + option_bytes(0);

	block_begin(to, INTERFACE, body);
	put32(to, link); /* and 16 bits that are reserved */
	put32(to, 0); /* snapshot length: no limit */
	put_text(to, OPT_NAME, name);
	put_text(to, OPT_DESCRIPTION, description);
	put_option(to, OPT_RESOLUTION, &resolution, 1);
	put_option(to, OPT_END, "", 0);
	block_end(to, body);
}

/*
 * Fields of an ERF header: a time in units of 2^-32 s, little-endian; then,
 * big-endian, the type, flags, the lengths of the record and of the packet.
 */
enum { ERF_TYPE = 8, ERF_FLAGS, ERF_RECORD, ERF_PACKET = 14 };
#define ERF_INFINIBAND 21
#define ERF_VARIABLE 0x04 /* records of variable length */
#define SECOND 1000000000u /* ns */

void pcapng_put_erf(uint64_t ns, size_t n, uint8_t to[PCAPNG_ERF_BYTES])
{
	const uint64_t parts = (ns % SECOND << 32) + SECOND / 2;
	const uint64_t time = htole64((ns / SECOND << 32) + parts / SECOND);
	const uint16_t record = htobe16((uint16_t)(PCAPNG_ERF_BYTES + n));
	const uint16_t packet = htobe16((uint16_t)n);

	memset(to, 0, PCAPNG_ERF_BYTES);
	memcpy(to, &time, sizeof(time));
	to[ERF_TYPE] = ERF_INFINIBAND;
	to[ERF_FLAGS] = ERF_VARIABLE;
	memcpy(to + ERF_RECORD, &record, sizeof(record));
	memcpy(to + ERF_PACKET, &packet, sizeof(packet));
}

void pcapng_packet(FILE *to, uint32_t interface, uint64_t ns, const void *bytes,
		   size_t n, const char *comment)
{
	pcapng_part(to, interface, ns, bytes, n, n, comment);
}

void pcapng_part(FILE *to, uint32_t interface, uint64_t ns, const void *bytes,
		 size_t n, size_t all, const char *comment)
{
	uint32_t options =
		comment ? option_bytes(text_length(comment)) + option_bytes(0) :
			  0;
	uint32_t body = 20 + padded(n) + options;

	block_begin(to, PACKET, body);
	put32(to, interface);
	put32(to, (uint32_t)(ns >> 32));
	put32(to, (uint32_t)ns);
	put32(to, (uint32_t)n); /* captured and original length */
	put32(to, (uint32_t)all);
	put_padded(to, bytes, n);
	if (comment) {
		put_text(to, OPT_COMMENT, comment);
		put_option(to, OPT_END, "", 0);
	}
	block_end(to, body);
}
