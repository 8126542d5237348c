// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fault injection: the rules of this process, and the decision whether a rule
 * strikes (fault.h).  Counters are relaxed atomics: threads that race for the
 * nth event each get a number of their own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adversary.h"
#include "fault.h"
#include "fault_tally.h"
#include "number.h"

void faults_begin(struct faults *f, const char *program, uint64_t seed)
{
	unsigned int i, kept = 0;

	for (i = 0; i < f->n; i++) {
		if (*f->rule[i].prog && strcmp(f->rule[i].prog, program))
			continue;
		if (kept != i)
			memcpy(&f->rule[kept], &f->rule[i],
			       sizeof(f->rule[kept]));
		kept++;
	}
	f->n = kept;
	f->random.key = random_mix(seed);
	f->random = random_named(f->random, program);
}

bool faults_have(const struct faults *f, enum fault_what what)
{
	unsigned int i;

	for (i = 0; i < f->n; i++)
		if (f->rule[i].what == what)
			return true;
	return false;
}

static bool rule_has_call(const struct fault_rule *r, enum fault_call call)
{
	return r->what == FAULT_CALL && r->calls[call / 64] >> (call % 64) & 1;
}

bool faults_have_call(const struct faults *f, enum fault_call call)
{
	unsigned int i;

	for (i = 0; i < f->n; i++)
		if (rule_has_call(&f->rule[i], call))
			return true;
	return false;
}

bool fault_rule_matches(const struct fault_rule *r,
			const struct fault_subject *s)
{
	return (!r->one_qp || r->qpn == s->qpn) &&
	       (!r->types || r->types & s->type) &&
	       (!r->ops || r->ops & s->op) &&
	       (!r->one_wr_id || (s->has_wr_id && r->wr_id == s->wr_id)) &&
	       (!*r->host ||
		(s->host && !strncmp(r->host, s->host, sizeof(r->host)))) &&
	       (!*r->device || (s->device && !strncmp(r->device, s->device,
						      sizeof(r->device))));
}

/* Decide whether the rule strikes its match number @nth, from 1. */
static bool fault_is_due(const struct faults *f, const struct fault_rule *r,
			 uint64_t nth)
{
	if (r->nth)
		return nth >= r->nth && nth - r->nth < r->times;
	if (r->every)
		return !(nth % r->every);
	return random_draw(f->random, r->index, nth) >> 32 < r->probability;
}

/* Count @s if it matches, and decide whether this match is due. */
static bool fault_counts(const struct faults *f, struct fault_rule *r,
			 const struct fault_subject *s)
{
	if (!fault_rule_matches(r, s))
		return false;
	if (f->tally)
		fetch_add_relaxed(&f->tally[r->index].matched, 1);
	return fault_is_due(f, r, fetch_add_relaxed(&r->seen, 1) + 1);
}

/* Count a strike.  False: the limit `times` is reached. */
static bool fault_rule_count(const struct faults *f, struct fault_rule *r)
{
	uint64_t struck = load_relaxed(&r->struck);

	do {
		if (struck >= r->times)
			return false;
	} while (!cas_relaxed(&r->struck, &struck, struck + 1));
	if (f->tally)
		fetch_add_relaxed(&f->tally[r->index].struck, 1);
	return true;
}

bool fault_rule_strikes(const struct faults *f, struct fault_rule *r,
			const struct fault_subject *s)
{
	return fault_counts(f, r, s) && fault_rule_count(f, r);
}

bool fault_rule_has_turn(const struct fault_rule *r)
{
	return load_relaxed(&r->struck) < r->times &&
	       (r->times > 1 || !load_relaxed(&r->seen));
}

bool fault_turn_strikes(const struct faults *f, struct fault_rule *r,
			bool matches)
{
	const uint64_t nth = fetch_add_relaxed(&r->seen, 1) + 1;

	return matches && fault_is_due(f, r, nth) && fault_rule_count(f, r);
}

static bool rule_is_of(const struct fault_rule *r, enum fault_what what,
		       enum fault_call call)
{
	return what == FAULT_CALL ? rule_has_call(r, call) : r->what == what;
}

/*
 * Count @s for each rule that matches, and return the first one that strikes.
 * For the others no strike is counted.
 */
static const struct fault_rule *fault_first(struct faults *f,
					    enum fault_what what,
					    enum fault_call call,
					    const struct fault_subject *s)
{
	const struct fault_rule *first = NULL;
	struct fault_rule *r;

	for (r = f->rule; r != f->rule + f->n; r++)
		if (rule_is_of(r, what, call) && fault_counts(f, r, s) &&
		    !first && fault_rule_count(f, r))
			first = r;
	return first;
}

const struct fault_rule *fault_of_call(struct faults *f, enum fault_call call,
				       const struct fault_subject *s)
{
	return fault_first(f, FAULT_CALL, call, s);
}

const struct fault_rule *fault_of_wr(struct faults *f,
				     const struct fault_subject *s)
{
	return fault_first(f, FAULT_WR, 0, s);
}

const struct fault_rule *fault_of_packet(struct faults *f,
					 const struct fault_subject *s)
{
	return fault_first(f, FAULT_PACKET, 0, s);
}

/* ------------------------------------------------------- this process */

static struct faults of_process;
static char wrong[512];

/* In the child of a fork, counting restarts at 0. */
static void faults_after_fork(void)
{
	unsigned int i;

	for (i = 0; i < of_process.n; i++) {
		store_relaxed(&of_process.rule[i].seen, 0);
		store_relaxed(&of_process.rule[i].struck, 0);
	}
}

/*
 * Get the seed: URXE_FAULT_SEED, or else the seed of the adversary, or else
 * 0.  False: URXE_FAULT_SEED is invalid.
 */
static bool faults_seed(uint64_t *seed)
{
	const char *text = getenv("URXE_FAULT_SEED");
	const struct adversary *a;

	*seed = 0;
	if (!text || !*text) {
		a = adversary_of_process();
		*seed = a && a->on ? a->seed : 0;
		return true;
	}
	if (number_parse(text, strlen(text), UINT64_MAX, seed))
		return true;
	snprintf(
		wrong, sizeof(wrong),
		"URXE_FAULT_SEED: \"%.64s\": the seed must be a number below 2^64",
		text);
	return false;
}

static void faults_read(void)
{
	const char *text = getenv("URXE_FAULTS"), *tally = getenv(FAULT_TALLY);
	char why[512];
	uint64_t seed;

	if (!text || !*text)
		return;
	if (!faults_parse(&of_process, text, why, sizeof(why))) {
		snprintf(wrong, sizeof(wrong), "%s", why);
		return;
	}
	if (!faults_seed(&seed))
		return;
	faults_begin(&of_process, program_invocation_short_name, seed);
	if (tally && of_process.n)
		of_process.tally = fault_tally_map(tally);
	if (of_process.n)
		pthread_atfork(NULL, NULL, faults_after_fork);
}

struct faults *faults_of_process(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno;

	pthread_once(&once, faults_read);
	errno = saved;
	return *wrong ? NULL : &of_process;
}

const char *faults_why(void)
{
	return wrong;
}
