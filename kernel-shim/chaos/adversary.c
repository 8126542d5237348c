// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adversary.h"

static const struct {
	const char *name;
	uint32_t preset, limit;
} knobs[KNOBS] = {
#define KNOB(name, preset, limit, meaning) { #name, preset, limit },
	ADVERSARY_KNOBS(KNOB)
#undef KNOB
};

/* A number that goes to the end of the word. */
static bool number_parse(const char *text, size_t len, uint64_t *value)
{
	char word[24], *end;

	if (!len || len >= sizeof(word) || text[0] < '0' || text[0] > '9')
		return false;
	memcpy(word, text, len);
	word[len] = 0;
	errno = 0;
	*value = strtoull(word, &end, 0);
	return !*end && !errno;
}

/* NAME=VALUE, or a word that is not a knob; the reason, NULL: it is set. */
static const char *knob_parse(struct adversary *a, const char *text, size_t len)
{
	const char *is = memchr(text, '=', len);
	size_t name = is ? (size_t)(is - text) : len;
	uint64_t value;
	int i;

	if (len == 4 && !memcmp(text, "none", 4)) {
		for (i = 0; i < KNOBS; i++)
			a->knob[i] = i == KNOB_ticks ? a->knob[i] : 0;
		return NULL;
	}
	for (i = 0; i < KNOBS; i++)
		if (strlen(knobs[i].name) == name &&
		    !memcmp(knobs[i].name, text, name))
			break;
	if (i == KNOBS)
		return "there is no such knob";
	if (!is || !number_parse(is + 1, len - name - 1, &value))
		return "a knob wants a number";
	if (value > knobs[i].limit)
		return "that is too much";
	a->knob[i] = value;
	return NULL;
}

bool adversary_parse(struct adversary *a, const char *text,
		     const char *program, char *why, size_t len)
{
	const char *wrong;
	size_t n;
	int i;

	for (i = 0; i < KNOBS; i++)
		a->knob[i] = knobs[i].preset;
	n = strcspn(text, ",");
	if (!number_parse(text, n, &a->seed)) {
		snprintf(why, len, "\"%.*s\": a seed is a number", (int)n,
			 text);
		return false;
	}
	for (text += n; *text; text += n) {
		n = strcspn(++text, ",");
		wrong = knob_parse(a, text, n);
		if (!wrong)
			continue;
		snprintf(why, len, "\"%.*s\": %s", (int)n, text, wrong);
		return false;
	}
	a->chance.key = chance_mix(a->seed);
	a->chance = chance_named(a->chance, program);
	a->on = true;
	return true;
}

static struct adversary of_process;
static bool understood = true;

static void adversary_read(void)
{
	const char *text = getenv("URXE_ADVERSARY");
	char why[128];

	if (text && *text)
		understood = adversary_parse(&of_process, text,
					     program_invocation_short_name,
					     why, sizeof(why));
}

const struct adversary *adversary_of_process(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno;

	pthread_once(&once, adversary_read);
	errno = saved;
	return understood ? &of_process : NULL;
}
