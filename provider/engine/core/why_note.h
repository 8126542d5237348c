/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reason that a check notes when it fails (shared/reasons.h): one for each
 * thread, in thread-local storage, whether or not the log is enabled.  The
 * code that acts on the failure logs and stores it (why.h).
 */
#pragma once

#include "fabric/reason.h"

/* Note reason REASON_##name of the calling thread, with its values. */
#define WHY_LIST(...)       \
	(const uint64_t[])  \
	{                   \
		__VA_ARGS__ \
	}
#define why_note(name, ...)                                   \
	why_note_values(REASON_##name, WHY_LIST(__VA_ARGS__), \
			sizeof(WHY_LIST(__VA_ARGS__)) / sizeof(uint64_t))
void why_note_values(enum reason code, const uint64_t *value, size_t n)
	__attribute__((cold, noinline));

/* Save and restore the noted reason. */
void why_noted(struct urxe_reason *r);
void why_recall(const struct urxe_reason *r);
/* Discard the noted reason, so that it is not used for a later failure. */
void why_settled(void);
