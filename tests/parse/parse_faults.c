// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* URXE_FAULTS: each field of an accepted rule must be within its bounds. */
#include "chaos/fault.h"
#include "parse.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Check the properties on which the provider and the preload library rely. */
static void check_rule(const struct fault_rule *r)
{
	static const struct fault_subject none;

	if (r->what > FAULT_PROCESS || r->at > FAULT_AT_MS ||
	    r->effect > FAULT_SILENT || r->probability > 1ull << 32 ||
	    !r->times || !memchr(r->text, 0, sizeof(r->text)) ||
	    !memchr(r->prog, 0, sizeof(r->prog)))
		abort();
	if (!!r->nth + !!r->every > 1 || r->ms > 1000000000)
		abort();
	if ((r->effect == FAULT_STATUS) != (r->what == FAULT_WR))
		abort();
	if (r->what < FAULT_QP && r->effect == FAULT_EVENT)
		abort();
	fault_rule_matches(r, &none);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct fault_subject none;
	static struct faults f;
	char *text = malloc(size + 1), why[200];
	unsigned int i, n;
	bool good;

	memcpy(text, data, size);
	text[size] = 0;
	memset(&f, 0, sizeof(f));
	memset(why, 'x', sizeof(why));
	good = faults_parse(&f, text, why, sizeof(why));
	if (!good && (!memchr(why, 0, sizeof(why)) || !*why))
		abort();
	if (f.n > FAULT_RULES)
		abort();
	for (i = 0; i < f.n; i++)
		check_rule(&f.rule[i]);
	n = f.n;
	faults_begin(&f, "program", 1);
	if (f.n > n)
		abort();
	for (i = 0; i < 8; i++) {
		fault_of_wr(&f, &none);
		fault_of_call(&f, i % FAULT_CALLS, &none);
	}
	free(text);
	return 0;
}
