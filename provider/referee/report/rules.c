// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The table of rules, as an array; rules.h. */
#include "rules.h"

const struct rule_text rules[RULES] = {
#define RULE(name, level, source, meaning, hint) \
	[RULE_##name] = { #name, source, meaning, hint, LEVEL_##level },
	REFEREE_RULES(RULE)
#undef RULE
};
