// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * parse-NAME ROUNDS FILE...: replacement for libFuzzer.  Run the files of the
 * corpus, and then ROUNDS mutations of them.  The random numbers have a fixed
 * seed.
 */
#include <stdio.h>

#include "parse.h"

#define INPUT_MAX 4096u
#define FILES 512

static struct input {
	uint8_t bytes[INPUT_MAX];
	size_t len;
} corpus[FILES];
static int files;

static uint32_t rnd(uint32_t below)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

static void load(const char *path)
{
	FILE *in = fopen(path, "rb");
	struct input *i = &corpus[files];

	if (!in || files == FILES - 1) {
		perror(path);
		exit(1);
	}
	i->len = fread(i->bytes, 1, INPUT_MAX, in);
	fclose(in);
	files++;
}

static void change(struct input *i)
{
	static const uint8_t edges[] = { 0, 1, 0x7f, 0x80, 0xff };
	const struct input *other = &corpus[rnd((uint32_t)files)];
	size_t n;

	switch (rnd(5)) {
	case 0:
		i->bytes[rnd(INPUT_MAX)] = edges[rnd(sizeof(edges))];
		break;
	case 1:
		if (i->len)
			i->bytes[rnd((uint32_t)i->len)] ^= 1u << rnd(8);
		break;
	case 2:
		if (i->len)
			i->bytes[rnd((uint32_t)i->len)] = (uint8_t)rnd(256);
		break;
	case 3: /* append another input */
		n = INPUT_MAX - i->len < other->len ? INPUT_MAX - i->len :
						      other->len;
		memcpy(i->bytes + i->len, other->bytes, n);
		i->len += n;
		break;
	default: /* truncate */
		i->len = i->len ? rnd((uint32_t)i->len + 1) : 0;
	}
}

int main(int argc, char **argv)
{
	static struct input now;
	uint32_t round, rounds, n;
	int i;

	if (argc < 3)
		return 2;
	LLVMFuzzerInitialize(&argc, &argv);
	rounds = (uint32_t)strtoul(argv[1], NULL, 0);
	for (i = 2; i < argc; i++)
		load(argv[i]);
	for (i = 0; i < files; i++)
		LLVMFuzzerTestOneInput(corpus[i].bytes, corpus[i].len);
	for (round = 0; round < rounds; round++) {
		now = corpus[rnd((uint32_t)files)];
		for (n = rnd(8) + 1; n; n--)
			change(&now);
		LLVMFuzzerTestOneInput(now.bytes, now.len);
	}
	printf("%d files, %u changes of them\n", files, rounds);
	return 0;
}
