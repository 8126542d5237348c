// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The reason that the calling thread has noted. See why_note.h. */
#include <string.h>

#include "base/compiler.h"
#include "why_note.h"

static thread_own struct urxe_reason noted;

void why_note_values(enum reason code, const uint64_t *value, size_t n)
{
	memset(&noted, 0, sizeof(noted));
	noted.code = code;
	memcpy(noted.value, value, n * sizeof(*value));
}

void why_noted(struct urxe_reason *r)
{
	*r = noted;
}

void why_recall(const struct urxe_reason *r)
{
	noted = *r;
}

void why_settled(void)
{
	noted.code = REASON_NONE;
}
