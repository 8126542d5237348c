// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions of nofault.h for other CPUs.  Their section is empty, so
 * that the preload library installs no handlers.
 */
#include <string.h>

#include "nofault.h"

extern internal const char nofault_code_begin[1], nofault_code_end[1],
	nofault_code_fixup[1];
const char nofault_code_begin[1], nofault_code_end[1], nofault_code_fixup[1];

static const struct nofault done;

/*
 * Copy all but the last word and store that word last, with release order.
 * The buffers may overlap, so the last word is read first.
 */
#define COPY_TAIL(type)                                                   \
	do {                                                              \
		const uint64_t most = len - sizeof(type);                 \
		type end;                                                 \
                                                                          \
		memcpy(&end, src + most, sizeof(end));                    \
		memmove(dst, src, most);                                  \
		store_release((_Atomic type *)(void *)(dst + most), end); \
	} while (0)

struct nofault nofault_code_copy(char *dst, const char *src, uint64_t len)
{
	const uint64_t aligned = len | (uintptr_t)dst;

	if (!(aligned & 7))
		COPY_TAIL(uint64_t);
	else if (!(aligned & 3))
		COPY_TAIL(uint32_t);
	else
		COPY_TAIL(uint8_t);
	return done;
}

struct nofault nofault_code_probe(const char *src)
{
	(void)load_relaxed((const _Atomic char *)(const void *)src);
	return done;
}

struct nofault nofault_code_fetch_add(char *word, uint64_t add)
{
	return (struct nofault){
		.value = fetch_add_acq_rel((_Atomic uint64_t *)(void *)word,
					   add),
	};
}

struct nofault nofault_code_cas(char *word, uint64_t compare, uint64_t swap)
{
	cas_acq_rel((_Atomic uint64_t *)(void *)word, &compare, swap);
	return (struct nofault){ .value = compare };
}
