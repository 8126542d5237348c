/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the referee knows to be wrong.
 *
 *	RULE(name, level, source, meaning, hint)
 *
 * The name has _ here and - where it is told.  error: a device may lose or
 * damage data, or the program hangs or breaks; warning: it works by luck, or
 * something is lost; note: what a careful program does not do.  docs/referee.md
 * has the same table.
 */
#pragma once

enum rule_level { LEVEL_error, LEVEL_warning, LEVEL_note };

#define REFEREE_RULES(RULE) \
	RULE(object_left, warning, "man ibv_close_device",                   \
	     "an object was still there when the process or its context "    \
	     "ended",                                                        \
	     "destroy it; what uses it goes first")

enum rule {
#define RULE(name, ...) RULE_##name,
	REFEREE_RULES(RULE)
#undef RULE
	RULES
};

struct rule_text {
	const char *name, *source, *meaning, *hint;
	enum rule_level level;
};
extern const struct rule_text rules[RULES];
