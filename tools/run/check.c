// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/plural.h"
#include "check.h"
#include "common/commands.h"
#include "relay.h"
#include "report.h"
#include "common/../run/source.h"

static const char *const levels[] = { "error", "warning", "note", NULL };

int check_choose(struct check *c, const char *level)
{
	size_t i;

	if (!level)
		level = "warning";
	for (i = 0; levels[i]; i++)
		if (!strcmp(level, levels[i])) {
			c->level = level;
			return CHECK_CHOSEN;
		}
	return fail_word("--check", level, levels);
}

int check_set_exitcode(struct check *c, const char *value)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (end == value || *end || n < 0 || n > 255)
		return fail(EXIT_USAGE,
			    "--exitcode: \"%s\": use a number from 0 to 255",
			    value);
	c->exitcode = (int)n;
	c->asked = true;
	return CHECK_CHOSEN;
}

int check_set_leaks(struct check *c)
{
	c->leaks = true;
	c->asked = true;
	return CHECK_CHOSEN;
}

int check_set_suppressions(struct check *c, const char *value)
{
	if (access(value, R_OK))
		return fail_file(EXIT_USAGE, "--suppressions: ", value, errno,
				 "");
	/* absolute: the programs may have other working directories */
	c->suppressions = realpath(value, NULL);
	c->asked = true;
	if (!c->suppressions)
		return fail(1, "no memory");
	/* URXE_CHECK_SUPPRESSIONS is a list separated by colons */
	if (strchr(c->suppressions, ':'))
		return fail(
			EXIT_USAGE,
			"--suppressions: %s: the path must not contain a colon",
			c->suppressions);
	return CHECK_CHOSEN;
}

/* Add a report.  value is FORMAT or FORMAT:FILE. */
int check_add_report(struct check *c, const char *value)
{
	static const char *const formats[] = { "json", "junit", "github",
					       NULL };
	const char *colon = strchr(value, ':');
	char *format = strndup(value, strcspn(value, ":"));
	int ret;

	if (!format)
		return fail(1, "no memory");
	if (!report_named(format)) {
		ret = fail_word("--report", format, formats);
		goto err_free_format;
	}
	if ((colon && !colon[1]) || c->reports == CHECK_REPORTS) {
		ret = fail(EXIT_USAGE,
			   "--report: \"%s\": use json, junit or github, "
			   "optionally followed by :FILE; at most %d reports",
			   value, CHECK_REPORTS);
		goto err_free_format;
	}
	c->report[c->reports].format = format;
	c->report[c->reports++].file = colon ? colon + 1 : NULL;
	c->asked = true;
	return CHECK_CHOSEN;

err_free_format:
	free(format);
	return ret;
}

int check_complete(const struct check *c)
{
	if (!c->level && c->asked)
		return fail(EXIT_USAGE,
			    "--exitcode, --leaks, --suppressions and --report "
			    "require --check");
	return CHECK_CHOSEN;
}

void check_set_environment(const struct check *c)
{
	char where[48];
	struct stat st;

	if (!c->level)
		return;
	setenv("URXE_CHECK", c->level, 1);
	if (c->leaks)
		setenv("URXE_CHECK_LEAKS", "1", 1);
	if (c->suppressions)
		setenv("URXE_CHECK_SUPPRESSIONS", c->suppressions, 1);
	if (!c->notes[0])
		return;
	setenv("URXE_CHECK_FOUND", c->notes, 1);
	if (!fstat(STDERR_FILENO, &st)) {
		snprintf(where, sizeof(where), "%llu:%llu",
			 (unsigned long long)st.st_dev,
			 (unsigned long long)st.st_ino);
		setenv("URXE_CHECK_STDERR", where, 1);
	}
}

/*
 * Open the report files.  This is done before the first run, so that a file
 * that cannot be written is reported before any program has run.
 */
static int check_open_reports(struct check *c)
{
	struct check_report *r;

	for (r = c->report; r != c->report + c->reports; r++) {
		r->to = r->file ? fopen(r->file, "we") : stderr;
		if (!r->to)
			return fail(EXIT_USAGE, "--report: %s: %s", r->file,
				    strerror(errno));
	}
	return 0;
}

int check_begin(struct check *c)
{
	const char *tmp = getenv("TMPDIR");
	int fd, ret;

	if (!c->level)
		return 0;
	ret = check_open_reports(c);
	if (ret)
		return ret;
	if (!tmp || strlen(tmp) > sizeof(c->notes) - 20)
		tmp = "/tmp";
	snprintf(c->notes, sizeof(c->notes), "%s/urxe-check-XXXXXX", tmp);
	fd = mkostemp(c->notes, O_CLOEXEC);
	if (fd < 0)
		return fail(1, "%s: %s", tmp, strerror(errno));
	close(fd);
	ret = notes_open(&c->all, c->notes);
	if (ret)
		return fail(1, "%s: %s", c->notes, strerror(-ret));
	check_set_environment(c);
	return 0;
}

/* Find the source lines of the calls of n, as far as possible (source.h). */
static void find_sources(struct note *n)
{
	size_t i;

	for (i = 0; i < n->calls; i++)
		source_find(&n->call[i]);
}

/*
 * Print n in the format of provider/referee/report/finding.c, which the process
 * itself prints if its stderr is another file.
 */
static void print_note(FILE *to, const struct note *n)
{
	const char *header;
	const struct call *c;
	unsigned int i = 0;

	fprintf(to, "urxe[%.*s]: check: %s: %s: %s: %s [%s]\n",
		(int)strcspn(n->id, "."), n->id, n->level, n->rule, n->object,
		n->text, n->source);
	for (c = n->call; c < n->call + n->calls; c++) {
		if (*c->what) {
			fprintf(to, "    %s:\n", c->what);
			i = 0;
		}
		fprintf(to, "    #%u in %s", i++,
			*c->function ? c->function : "?");
		header = source_header(c->function);
		if (c->file)
			fprintf(to, " (%s:%u)\n", c->file, c->line);
		else if (header)
			fprintf(to, " (%s)\n", header);
		else
			fprintf(to, "+0x%lx (%s+0x%lx)\n", c->offset, c->module,
				c->address);
	}
	fprintf(to, "    hint: %s\n", n->hint);
}

/* The queue of formatted notes that are not printed yet, oldest first. */
struct text {
	struct text *next;
	char *start;
	size_t len, printed;
};

static struct text *first, **last = &first;

/*
 * Print the queue on standard error.  If wait is false, print only what
 * standard error accepts without blocking, and keep the rest.
 */
static void print_texts(bool wait)
{
	struct text *t;
	size_t n;

	while ((t = first)) {
		n = t->len - t->printed;
		if (!wait) {
			if (!relay_takes(STDERR_FILENO, 0))
				return;
			n = n < PIPE_BUF ? n : PIPE_BUF;
		}
		/* stderr is unbuffered: this text is not split further */
		fwrite(t->start + t->printed, 1, n, stderr);
		t->printed += n;
		if (t->printed < t->len)
			continue;
		first = t->next;
		if (!first)
			last = &first;
		free(t->start);
		free(t);
	}
}

/* Append n to the queue; times: its count, or 0 for the note itself. */
static void show_note(struct note *n, unsigned int times)
{
	struct text *t = calloc(1, sizeof(*t));
	FILE *to = t ? open_memstream(&t->start, &t->len) : NULL;

	if (!to) {
		free(t);
		return;
	}
	find_sources(n);
	if (times)
		fprintf(to,
			"urxe[%.*s]: check: %s at the same place: %u time%s\n",
			(int)strcspn(n->id, "."), n->id, n->rule, times,
			plural(times));
	else
		print_note(to, n);
	fclose(to);
	*last = t;
	last = &t->next;
}

void check_show(void *check)
{
	struct check *c = check;

	notes_read(&c->all, show_note);
	print_texts(false);
}

/* Return whether --check=LEVEL includes findings of `level`. */
static bool level_is_included(const struct check *c, const char *level)
{
	int i;

	for (i = 0; strcmp(levels[i], level); i++)
		if (!strcmp(levels[i], c->level))
			return false;
	return true;
}

/*
 * Set the level of the open notes, those of failed calls that a correct
 * program may handle.  If the program failed, it is assumed not to have
 * handled them: they become warnings.  Otherwise they become notes.  Drop
 * those of a level that is not requested.
 */
static void decide(struct check *c, bool failed)
{
	const char *level = failed ? "warning" : "note";
	size_t i;

	for (i = c->seen; i < c->all.count;) {
		if (c->all.note[i].open && !level_is_included(c, level)) {
			notes_remove(&c->all, i);
			continue;
		}
		if (c->all.note[i].open) {
			c->all.note[i].level = (char *)level;
			show_note(&c->all.note[i], 0);
		}
		i++;
	}
}

void check_print_report(struct check *c, struct ending *e)
{
	if (!c->level)
		return;
	check_show(c);
	decide(c, ending_is_failure(e));
	print_texts(true);
	if (c->all.count == c->seen)
		return;
	c->seen = c->all.count;
	if (c->exitcode && !ending_is_failure(e))
		e->status = W_EXITCODE(c->exitcode, 0);
}

static void check_report(const struct check_report *r, const struct notes *n)
{
	bool bad;

	report_named(r->format)(r->to, n);
	bad = ferror(r->to);
	if (r->file && (fclose(r->to) || bad))
		fail(0, "--report: %s: write error", r->file);
}

/* Print the numbers of errors, warnings and notes. */
static void check_print_counts(const struct notes *n)
{
	size_t i, errors = 0, warnings = 0, others;

	for (i = 0; i < n->count; i++) {
		errors += !strcmp(n->note[i].level, "error");
		warnings += !strcmp(n->note[i].level, "warning");
	}
	others = n->count - errors - warnings;
	if (n->count)
		fail(0, "check: %zu error%s, %zu warning%s, %zu note%s", errors,
		     plural(errors), warnings, plural(warnings), others,
		     plural(others));
}

void check_end(struct check *c)
{
	struct notes *n = &c->all;
	unsigned int i;

	if (!n->from)
		return;
	check_show(c);
	print_texts(true);
	check_print_counts(n);
	for (i = 0; i < n->count && c->reports; i++)
		find_sources(&n->note[i]);
	for (i = 0; i < c->reports; i++)
		check_report(&c->report[i], n);
	notes_free(n);
	unlink(c->notes);
}
