/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Definition of packet headers as lists of fields (X macros).  A header is a
 * macro with FIELD(type, name, at, bits) for each field.  WIRE_HEADER() makes
 * a structure of it, and functions that write and read the header in wire
 * format (network.h, transport.h).
 *
 * @at is the first bit of the field.  Bit 0 is the most significant bit of
 * the first byte, as in the figures of the specifications.  Bits without a
 * field are written as 0 and not read.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The byte that has the last bit of a field; the number of bits after it. */
#define FIELD_LAST(at, bits) (((at) + (bits)-1) / 8)
#define FIELD_BEHIND(at, bits) (7 - ((at) + (bits)-1) % 8)

/* Store a field of at most 64 bits; other bits keep their values. */
static inline void field_put(uint8_t *header, unsigned int at,
			     unsigned int bits, uint64_t value)
{
	uint8_t *byte = header + FIELD_LAST(at, bits);
	unsigned int behind = FIELD_BEHIND(at, bits), n, mask;

	for (; bits; bits -= n, value >>= n, behind = 0, byte--) {
		n = bits < 8 - behind ? bits : 8 - behind;
		mask = ((1u << n) - 1) << behind;
		*byte = (uint8_t)((*byte & ~mask) |
				  ((unsigned int)value << behind & mask));
	}
}

/* Return a field; at % 8 + bits is at most 64. */
static inline uint64_t field_get(const uint8_t *header, unsigned int at,
				 unsigned int bits)
{
	unsigned int i, end = at + bits;
	uint64_t value = 0;

	for (i = at / 8; i <= FIELD_LAST(at, bits); i++)
		value = value << 8 |
			(i == at / 8 ? header[i] & 0xff >> at % 8 : header[i]);
	return end % 8 ? value >> (8 - end % 8) : value;
}

/*
 * Whole headers are written and read by way of an array of 64-bit words,
 * whose most significant bit is the first.  The positions of fields and the
 * number of words are constants, so the compiler resolves all conditions
 * below.
 */
#define FIELD_WORDS(bytes) (((bytes) + 7) / 8)

static inline void field_into(uint64_t *words, unsigned int at,
			      unsigned int bits, uint64_t value)
{
	const unsigned int end = at % 64 + bits;
	uint64_t *word = words + at / 64;

	value &= ~0ull >> (64 - bits);
	if (end <= 64) {
		*word |= value << (64 - end);
	} else {
		word[0] |= value >> (end - 64);
		word[1] |= value << (128 - end);
	}
}

static inline uint64_t field_of(const uint64_t *words, unsigned int at,
				unsigned int bits)
{
	const unsigned int end = at % 64 + bits;
	const uint64_t *word = words + at / 64;
	uint64_t value = end <= 64 ?
				 word[0] >> (64 - end) :
				 word[0] << (end - 64) | word[1] >> (128 - end);

	return value & ~0ull >> (64 - bits);
}

static inline void field_words_put(const uint64_t *words, uint8_t *to,
				   unsigned int bytes)
{
	unsigned int i;
	uint64_t word;

	for (i = 0; i < bytes; i += 8) {
		word = htobe64(words[i / 8]);
		memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

static inline void field_words_get(uint64_t *words, const uint8_t *from,
				   unsigned int bytes)
{
	unsigned int i;
	uint64_t word;

	for (i = 0; i < bytes; i += 8) {
		word = 0;
		memcpy(&word, from + i, bytes - i < 8 ? bytes - i : 8);
		words[i / 8] = be64toh(word);
	}
}

#define FIELD_IN_STRUCT(type, name, at, bits) type name;
#define FIELD_PUT(type, name, at, bits) field_into(words, at, bits, h->name);
#define FIELD_GET(type, name, at, bits) \
	h->name = (type)field_of(words, at, bits);

/*
 * Define struct wire_HEADER, and wire_put_HEADER() and wire_get_HEADER(),
 * which convert it to and from the @bytes bytes of the wire format.  They
 * return the address after the header and check no length.
 */
#define WIRE_HEADER(header, fields, bytes)                           \
	struct wire_##header {                                       \
		fields(FIELD_IN_STRUCT)                              \
	};                                                           \
	static inline uint8_t *wire_put_##header(                    \
		const struct wire_##header *h, uint8_t *to)          \
	{                                                            \
		uint64_t words[FIELD_WORDS(bytes)] = { 0 };          \
		fields(FIELD_PUT) field_words_put(words, to, bytes); \
		return to + (bytes);                                 \
	}                                                            \
	static inline const uint8_t *wire_get_##header(              \
		struct wire_##header *h, const uint8_t *from)        \
	{                                                            \
		uint64_t words[FIELD_WORDS(bytes)];                  \
		field_words_get(words, from, bytes);                 \
		fields(FIELD_GET) return from + (bytes);             \
	}
