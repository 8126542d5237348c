/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Headers as they are on the wire, each described once: a list of its fields,
 * FIELD(type, name, at, bits), of which WIRE_HEADER() makes a structure, what
 * writes it and what reads it.  Bit 0 is the highest one of the first byte;
 * what no field names is 0.
 */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The byte with the field's last bit, and the bits behind that one in it. */
#define FIELD_LAST(at, bits) (((at) + (bits)-1) / 8)
#define FIELD_BEHIND(at, bits) (7 - ((at) + (bits)-1) % 8)

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
 * A whole header is made and read in words of 64 bits, whose highest bit comes
 * first; where a field is, and how many words there are, is constant.
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
 * struct wire_NAME, of so many bytes; wire_put_NAME() and wire_get_NAME()
 * return what is behind them.
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
