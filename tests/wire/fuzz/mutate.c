// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Mutations for libFuzzer that insert, delete and change whole records. */
#include <string.h>

#include "parse.h"
#include "peer.h"

#define BYTES sizeof(struct record)

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b,
				 size_t nb, uint8_t *out, size_t max,
				 unsigned int seed);

static uint64_t state;

static uint32_t rnd(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 16) % below);
}

static void rnd_begin(unsigned int seed)
{
	state = seed * 0x9e3779b97f4a7c15ull + 1;
}

/* Generate a record, most often one of a nearly valid packet. */
static void record_new(uint8_t *to)
{
	struct record r = { .kind = (uint8_t)rnd(256),
			    .qp = (uint8_t)rnd(2 * QPS),
			    .op = (uint8_t)rnd(rnd(4) ? 32 : 256),
			    .key = (uint8_t)rnd(rnd(4) ? 8 : 256),
			    .offset = (int8_t)(rnd(4) ? rnd(8) : rnd(256)),
			    .length = (uint8_t)rnd(rnd(2) ? 16 : 256) };

	if (!rnd(4))
		r.psn = (int8_t)(rnd(2) ? (int)rnd(5) - 2 : (int)rnd(256));
	if (!rnd(2))
		r.flags = (uint8_t)(rnd(2) ? 1u << rnd(7) : rnd(256));
	memcpy(to, &r, BYTES);
}

static size_t change(uint8_t *data, size_t n, size_t most)
{
	uint8_t *at = data + rnd(n ? n : 1) * BYTES;
	const size_t behind = n ? (size_t)(data + n * BYTES - at) : 0;
	const uint32_t what = n ? rnd(8) : 0;

	switch (what) {
	case 0: /* insert a new record */
	case 1: /* duplicate a record */
		if (n == most)
			return n;
		memmove(at + BYTES, at, behind);
		if (!what)
			record_new(at);
		return n + 1;
	case 2:
		memmove(at, at + BYTES, behind - BYTES);
		return n - 1;
	case 3:
		record_new(at);
		return n;
	case 4: /* overwrite it with another record of the input */
		memcpy(at, data + rnd(n) * BYTES, BYTES);
		return n;
	case 5:
		at[rnd(BYTES)] ^= (uint8_t)(1u << rnd(8));
		return n;
	case 6:
		at[rnd(BYTES)] = (uint8_t)rnd(256);
		return n;
	default: /* a mutation by libFuzzer, which knows compared values */
		LLVMFuzzerMutate(at, BYTES, BYTES);
		return n;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed)
{
	size_t n = size / BYTES, most = max / BYTES;
	uint32_t times;

	if (!most)
		return size;
	rnd_begin(seed);
	for (times = 1 + rnd(4); times; times--)
		n = change(data, n, most);
	return n * BYTES;
}

/* Concatenate the first records of a and the last records of b. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b,
				 size_t nb, uint8_t *out, size_t max,
				 unsigned int seed)
{
	size_t from, n;

	rnd_begin(seed);
	n = rnd(na / BYTES + 1);
	from = rnd(nb / BYTES + 1);
	nb = nb / BYTES - from;
	if (n > max / BYTES)
		n = max / BYTES;
	if (nb > max / BYTES - n)
		nb = max / BYTES - n;
	memcpy(out, a, n * BYTES);
	memcpy(out + n * BYTES, b + from * BYTES, nb * BYTES);
	return (n + nb) * BYTES;
}
