// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parser for URXE_ADVERSARY (adversary.h). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adversary.h"
#include "nearest.h"
#include "number.h"

const struct adversary_option_info adversary_options[ADV_OPTIONS] = {
#define OPTION(name, hardware, specification, limit, meaning) \
	{ #name, { hardware, specification }, limit, meaning },
	ADVERSARY_OPTION_LIST(OPTION)
#undef OPTION
};

const char *const adversary_levels[ADVERSARY_LEVELS] = {
	[ADVERSARY_HARDWARE] = "hardware",
	[ADVERSARY_SPECIFICATION] = "specification",
};

/*
 * Store an error message about @word, of length @n, in @why, and return
 * false.  If @what ends in ':', append the list of options and the most
 * similar one.
 */
static bool refuse(char *why, size_t len, const char *word, size_t n,
		   const char *what)
{
	const char *is = memchr(word, '=', n);
	char meant[NEAREST_TEXT];
	struct nearest near;
	size_t used;
	int i;

	snprintf(why, len, "\"%.*s\": %s", (int)(n < 64 ? n : 64), word, what);
	if (what[strlen(what) - 1] != ':')
		return false;
	nearest_begin(&near, word, is ? (size_t)(is - word) : n);
	for (i = 0; i < ADV_OPTIONS; i++) {
		used = strlen(why);
		snprintf(why + used, len - used, "%s %s", i ? "," : "",
			 adversary_options[i].name);
		nearest_try(&near, adversary_options[i].name);
	}
	used = strlen(why);
	snprintf(why + used, len - used, "%s", nearest_text(&near, meant));
	return false;
}

/*
 * Report that the first word is not a seed, and the most similar option or
 * level.
 */
static bool refuse_seed(char *why, size_t len, const char *word, size_t n)
{
	char meant[NEAREST_TEXT], what[NEAREST_TEXT + 96];
	const char *is = memchr(word, '=', n);
	struct nearest near;
	int i;

	nearest_begin(&near, word, is ? (size_t)(is - word) : n);
	for (i = 0; i < ADV_OPTIONS; i++)
		nearest_try(&near, adversary_options[i].name);
	for (i = 0; !is && i < ADVERSARY_LEVELS; i++)
		nearest_try(&near, adversary_levels[i]);
	snprintf(what, sizeof(what), "the seed must be a number below 2^64%s%s",
		 nearest_text(&near, meant),
		 is && near.word ? "; put a seed or a comma before an option" :
				   "");
	return refuse(why, len, word, n, what);
}

/*
 * Parse decimal digits at the start of @text.  Return their number; 0: there
 * are none, or the value is too large.
 */
static size_t digits_parse(const char *text, size_t len, uint64_t *value)
{
	size_t n = 0;

	while (n < len && text[n] >= '0' && text[n] <= '9')
		n++;
	return number_parse(text, n, UINT64_MAX, value) ? n : 0;
}

bool adversary_seed_parse(const char *text, size_t len, uint64_t *seed)
{
	return number_parse(text, len, UINT64_MAX, seed);
}

/*
 * Parse a value: N; if @share, also N% and N.N%, which are converted to per
 * mille.
 */
static bool value_parse(const char *text, size_t len, bool share,
			uint64_t *value)
{
	size_t n = digits_parse(text, len, value);
	uint64_t tenth = 0;

	if (!n || n == len)
		return n;
	if (!share || text[len - 1] != '%' || *value > 100)
		return false;
	text += n;
	len -= n + 1;
	if (len && (len != 2 || *text != '.' ||
		    digits_parse(text + 1, 1, &tenth) != 1))
		return false;
	*value = *value * 10 + tenth;
	return true;
}

/* Return the option of that name, or ADV_OPTIONS. */
static int option_find(const char *name, size_t len)
{
	int i;

	for (i = 0; i < ADV_OPTIONS; i++)
		if (strlen(adversary_options[i].name) == len &&
		    !memcmp(adversary_options[i].name, name, len))
			break;
	return i;
}

int adversary_level_find(const char *name, size_t len)
{
	int i;

	for (i = 0; i < ADVERSARY_LEVELS; i++)
		if (strlen(adversary_levels[i]) == len &&
		    !memcmp(adversary_levels[i], name, len))
			break;
	return i;
}

static void options_set(struct adversary *a, int level)
{
	int i;

	for (i = 0; i < ADV_OPTIONS; i++)
		a->option[i] = adversary_options[i].preset[level];
}

/* Turn off all options that are probabilities. */
static void options_clear(struct adversary *a)
{
	int i;

	for (i = 0; i < ADV_OPTIONS; i++)
		if (adversary_options[i].limit == ADVERSARY_SHARE)
			a->option[i] = 0;
}

/*
 * Parse and apply NAME=VALUE, "none" or a level.  Return an error message for
 * refuse(), or NULL.
 */
static const char *option_parse(struct adversary *a, const char *text,
				size_t len)
{
	const char *is = memchr(text, '=', len);
	size_t name = is ? (size_t)(is - text) : len;
	const struct adversary_option_info *info;
	uint64_t value;
	bool share;
	int i;

	if (len == 4 && !memcmp(text, "none", 4)) {
		options_clear(a);
		return NULL;
	}
	i = adversary_level_find(text, len);
	if (i != ADVERSARY_LEVELS) {
		options_set(a, i);
		return NULL;
	}
	i = option_find(text, name);
	if (i == ADV_OPTIONS)
		return "unknown option; valid are none, hardware, "
		       "specification, and NAME=VALUE with one of these names:";
	info = &adversary_options[i];
	share = info->limit == ADVERSARY_SHARE;
	if (!is || !value_parse(is + 1, len - name - 1, share, &value))
		return share ? "the value must be 0 to 1000 (per mille), or a percentage such as 2%" :
			       "the value must be a number";
	if (value > info->limit)
		return share ? "the value must be at most 1000 (100%)" :
			       "the value is too large";
	a->option[i] = (uint32_t)value;
	return NULL;
}

bool adversary_parse(struct adversary *a, const char *text, const char *program,
		     char *why, size_t len)
{
	const char *wrong;
	size_t n;

	options_set(a, ADVERSARY_SPECIFICATION);
	n = strcspn(text, ",");
	if (!adversary_seed_parse(text, n, &a->seed))
		return refuse_seed(why, len, text, n);
	for (text += n; *text; text += n) {
		n = strcspn(++text, ",");
		wrong = option_parse(a, text, n);
		if (wrong)
			return refuse(why, len, text, n, wrong);
	}
	a->random.key = random_mix(a->seed);
	a->random = random_named(a->random, program);
	a->on = true;
	return true;
}

static struct adversary of_process;
static bool understood = true;
static char not_understood[ADVERSARY_WHY];

static void adversary_read(void)
{
	const char *text = getenv("URXE_ADVERSARY");

	if (text && *text)
		understood = adversary_parse(
			&of_process, text, program_invocation_short_name,
			not_understood, sizeof(not_understood));
}

const struct adversary *adversary_of_process(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno;

	pthread_once(&once, adversary_read);
	errno = saved;
	return understood ? &of_process : NULL;
}

const char *adversary_why(void)
{
	return not_understood;
}
