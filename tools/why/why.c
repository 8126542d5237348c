// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe why: print what each WR that makes no progress waits for. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chaos/number.h"
#include "common/commands.h"
#include "stall_json.h"
#include "why.h"

/*
 * Time between the two views. A wait that is in both is not part of normal
 * progress.
 */
static const struct timespec pause_between = { .tv_nsec = 200000000 };

/*
 * Take two views and find the waits. Return false if there is no fabric; this
 * is logged unless @quiet. The caller frees @s and *now.
 */
static bool why_collect(const char *dir, bool quiet, struct stalls *s,
			struct view **now)
{
	struct view *before = view_take(dir, quiet);

	*now = NULL;
	if (before) {
		nanosleep(&pause_between, NULL);
		*now = view_take(dir, quiet);
	}
	if (*now)
		stalls_find(s, before, *now);
	view_free(before);
	return *now;
}

/* Whether the QP exists, or is named by a wait or a failed WR. */
static bool why_knows(const struct view *v, const struct stalls *s,
		      uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->list[i].qpn == qpn)
			return true;
	return view_qp(v, qpn);
}

/*
 * Interpret the operand. A hexadecimal number is a QPN. Another number is a
 * PID if a process of the fabric has it, else a QPN.
 */
static bool why_choose(const struct view *v, const struct stalls *s,
		       const char *word, int32_t *pid, uint32_t *qpn)
{
	uint64_t n;
	uint32_t i;

	if (!number_parse(word, strlen(word), INT32_MAX, &n))
		return false;
	for (i = 0; i < v->ctxs && strncmp(word, "0x", 2); i++)
		if (v->ctx[i].process.pid == (int32_t)n)
			*pid = (int32_t)n;
	for (i = 0; i < v->qps && strncmp(word, "0x", 2); i++)
		if (v->qp[i].process.pid == (int32_t)n)
			*pid = (int32_t)n;
	if (*pid)
		return true;
	*qpn = (uint32_t)n;
	return n && why_knows(v, s, *qpn);
}

void why_report(const char *dir, FILE *to)
{
	struct stalls s = { 0 };
	struct view *v;

	if (!why_collect(dir, true, &s, &v))
		return;
	if (s.n) {
		fputs("urxe: the time limit expired; waits, as printed by urxe why:\n",
		      to);
		stalls_print(to, &s, v, 0, 0);
	}
	stalls_free(&s);
	view_free(v);
}

static void why_print_json(const char *dir, const struct stalls *s,
			   const struct view *v, int32_t pid, uint32_t qpn)
{
	struct json j = { .to = stdout };

	json_open(&j, NULL, '{');
	json_put_string(&j, "urxe", URXE_VERSION);
	json_put_string(&j, "fabric", strrchr(dir, '/') + 1);
	stalls_put(&j, s, v, pid, qpn);
	json_close(&j, '}');
	putchar('\n');
}

/* clang-format off */
static const struct command_option options[] = {
	{ 'f', "fabric", "NAME", "name of the fabric", "$URXE_FABRIC or default" },
	{ 'j', "json", NULL, "print JSON", "text" },
	OPTIONS_END,
};
/* clang-format on */

static int cmd_why(int argc, char **argv)
{
	const char *fabric = NULL, *word;
	bool json = false;
	struct stalls s = { 0 };
	uint32_t qpn = 0;
	struct view *v;
	int32_t pid = 0;
	char dir[256];
	int c, ret;

	while ((c = option_next(argc, argv, options, 0)) >= 0) {
		if (c == 'f')
			fabric = optarg;
		else if (c == 'j')
			json = true;
		else
			return usage();
	}
	if (argc - optind > 1)
		return usage();
	word = argv[optind];
	ret = choose_fabric(fabric, dir);
	if (ret)
		return ret;
	if (!why_collect(dir, false, &s, &v))
		return EXIT_USAGE;
	if (word && !why_choose(v, &s, word, &pid, &qpn)) {
		ret = fail(
			EXIT_USAGE,
			"no process and no QP %s in fabric %s; urxe top lists them",
			word, dir);
	} else if (json) {
		why_print_json(dir, &s, v, pid, qpn);
		ret = stalls_any(&s, v, pid, qpn);
	} else {
		stalls_print(stdout, &s, v, pid, qpn);
		ret = stalls_any(&s, v, pid, qpn);
		if (!ret)
			puts("nothing stalls");
	}
	stalls_free(&s);
	view_free(v);
	return ret;
}

/* clang-format off */
const struct command command_why = {
	.name = "why",
	.run = cmd_why,
	.operands = "[PID|QPN]",
	.what = "Show each WR that makes no progress: what it waits for, since when, and what "
		"would end the wait.",
	.options = options,
};
/* clang-format on */
