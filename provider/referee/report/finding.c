// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reporting of findings: deduplication, suppression, and output.
 *
 * A finding is formatted when it is found, and queued in a list of the thread
 * (struct held).  The thread reports it later, without referee_lock().  Equal
 * findings are counted in struct reported: those with the same rule and the
 * same stack, which is that of the post or creation, else the current one.
 *
 *	lock	guards the list of struct reported, and its counts and numbers
 *	writing	guards left_at_exit and told.suppressed; held while a finding
 *		is written, which may block for as long as the output is not
 *		read; taken before lock
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/plural.h"
#include "base/compiler.h"
#include "engine/core/process.h"
#include "finding.h"
#include "suppress.h"

#define CALLS 12 /* calls of a stack that are reported */

/* A rule and a stack for which there was a finding, and the count. */
struct reported {
	struct reported *next;
	enum rule rule;
	struct stack at;
	unsigned int number; /* 0: suppressed, or not reported yet */
	bool may_be_handled;
	unsigned int count;
	bool suppressed;
};

static const char *const level_name[] = { "error", "warning", "note" };

/* What is reported, and the findings so far; guarded as described above. */
static struct {
	enum rule_level lowest;
	bool leaks; /* objects left at exit have the level of their rule */
	pthread_mutex_t lock, writing;
	struct reported *all;
	unsigned int numbers, left_at_exit;
} reports = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.writing = PTHREAD_MUTEX_INITIALIZER,
};

int finding_init(const char *level)
{
	const char *wanted = getenv("URXE_CHECK_LEAKS");
	unsigned int i;

	reports.leaks = wanted && *wanted;
	for (i = 0; i < sizeof(level_name) / sizeof(*level_name); i++)
		if (!strcmp(level, level_name[i])) {
			reports.lowest = i;
			return 0;
		}
	return -EINVAL;
}

static enum rule_level finding_level(const struct finding *f)
{
	return f->at_exit && !reports.leaks ? LEVEL_note : rules[f->rule].level;
}

void finding_after_fork(void)
{
	struct reported *t;

	pthread_mutex_init(&reports.lock, NULL);
	pthread_mutex_init(&reports.writing, NULL);
	for (t = reports.all; t; t = t->next)
		t->count = 1; /* the parent reports its own count */
}

/* ------------------------------------------------------- output */

/* Use one write(2), so that the output of processes is not interleaved. */
static void write_whole(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len && ((n = write(fd, text, len)) > 0 || errno == EINTR)) {
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
}

/*
 * Write to stderr without raising SIGPIPE: if stderr is a pipe without a
 * reader, the program must not be terminated by the referee's output.
 */
static void stderr_write(const char *text, size_t len)
{
	const struct timespec now = { 0 };
	sigset_t pipe, pending, was;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &was);
	write_whole(STDERR_FILENO, text, len);
	if (!sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

static bool append_to(const char *path, int create, const char *text,
		      size_t len)
{
	int fd = open(path, O_WRONLY | O_APPEND | create | O_CLOEXEC, 0600);

	if (fd < 0)
		return false;
	write_whole(fd, text, len);
	close(fd);
	return true;
}

static void text_write(const char *text, size_t len)
{
	const char *path = getenv("URXE_CHECK_LOG");

	if (path && *path)
		append_to(path, O_CREAT, text, len);
	else
		stderr_write(text, len);
}

/*
 * Append a note to the file of URXE_CHECK_FOUND.  @create: O_CREAT or 0.
 * False: the variable is not set, or the file cannot be opened.
 */
static bool note_write(int create, const char *text, size_t len)
{
	const char *path = getenv("URXE_CHECK_FOUND");

	return path && *path && append_to(path, create, text, len);
}

/*
 * Is the stderr of this process that of urxe run?  Then urxe run prints the
 * notes, with source files and lines.  Otherwise, as in a test with a log of
 * its own, this process prints its findings itself.
 */
static bool run_prints(void)
{
	const char *log = getenv("URXE_CHECK_LOG");
	const char *there = getenv("URXE_CHECK_STDERR");
	char here[48];
	struct stat st;

	if (!there || (log && *log) || fstat(STDERR_FILENO, &st))
		return false;
	snprintf(here, sizeof(here), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return !strcmp(here, there);
}

/* Was the process started by urxe run, which learns its exit status? */
static bool run_waits(void)
{
	return getenv("URXE_CHECK_STDERR");
}

/*
 * Write the note, and the text if urxe run will not print the note.  @run:
 * urxe run is to print it, so its file is not created again.  If the file is
 * gone because urxe run has exited, the text is written instead, provided
 * that its level was requested.
 */
static void write_out(bool run, enum rule_level level, const char *text,
		      size_t text_len, const char *note, size_t note_len)
{
	if ((!note_write(run ? 0 : O_CREAT, note, note_len) || !run) &&
	    level <= reports.lowest)
		text_write(text, text_len);
}

/* Escape the separators of fields and calls. */
static void note_escape(FILE *to, const char *s)
{
	for (; *s; s++) {
		if (*s == '\t')
			fputs("\\t", to);
		else if (*s == '\n')
			fputs("\\n", to);
		else if (*s == '|')
			fputs("\\p", to);
		else if (*s == '\\')
			fputs("\\\\", to);
		else
			fputc(*s, to);
	}
}

static void note_field(FILE *to, const char *s)
{
	fputc('\t', to);
	note_escape(to, s);
}

/* ------------------------------------------------------- reports */

/* Return the name of the rule, with - in place of _. */
static const char *rule_name(enum rule rule, char name[40])
{
	char *p;

	snprintf(name, 40, "%s", rules[rule].name);
	for (p = name; *p; p++)
		if (*p == '_')
			*p = '-';
	return name;
}

/* The two forms of a finding: for people, and for urxe run. */
struct rendering {
	FILE *text, *note;
};

static void rendering_calls(struct rendering *t, const char *what,
			    const struct stack_frame *f, size_t n)
{
	size_t i;

	fprintf(t->text, "    %s:\n", what);
	for (i = 0; i < n; i++, f++) {
		fprintf(t->text, "    #%zu in %s+0x%lx (%s+0x%lx)\n", i,
			f->function[0] ? f->function : "?",
			(unsigned long)f->offset, f->module,
			(unsigned long)f->address);
		note_field(t->note, i ? "" : what);
		fputc('|', t->note);
		note_escape(t->note, f->function);
		fprintf(t->note, "|%lu|", (unsigned long)f->offset);
		note_escape(t->note, f->module);
		fprintf(t->note, "|%lu", (unsigned long)f->address);
	}
}

static void rendering_head(struct rendering *t, const struct finding *f,
			   const char *text, unsigned int number, char letter)
{
	const struct rule_text *r = &rules[f->rule];
	char name[40];

	rule_name(f->rule, name);
	fprintf(t->text, "urxe[%d]: check: %s: %s: %s: %s [%s]\n",
		(int)urxe_pid, level_name[finding_level(f)], name, f->object,
		text, r->source);
	fprintf(t->note, "%c\t%d.%u\t%s\t%s", letter, (int)urxe_pid, number,
		level_name[finding_level(f)], name);
	note_field(t->note, r->source);
	note_field(t->note, program_invocation_short_name);
	note_field(t->note, f->object);
	note_field(t->note, text);
	note_field(t->note, r->hint);
}

/* The calls of the stack f->at and of the current stack. */
struct calls {
	struct stack_frame at[CALLS], here[CALLS];
	size_t at_n, here_n;
};

static void calls_find(struct calls *c, const struct finding *f,
		       const struct stack *here)
{
	c->at_n = f->at ? stack_frames(f->at, c->at, CALLS) : 0;
	c->here_n = f->here ? stack_frames(here, c->here, CALLS) : 0;
}

static void finding_write(const struct finding *f, const struct calls *c,
			  const char *text, unsigned int number)
{
	const bool open = f->may_be_handled && run_waits();
	const bool run = open || run_prints();
	char *finding_text = NULL, *note_text = NULL;
	size_t finding_text_len = 0, note_text_len = 0;
	struct rendering t = { open_memstream(&finding_text, &finding_text_len),
			       open_memstream(&note_text, &note_text_len) };

	if (t.text && t.note) {
		rendering_head(&t, f, text, number,
			       open ? 'P' :
			       run  ? 'S' :
				      'F');
		if (c->here_n)
			rendering_calls(&t, "here", c->here, c->here_n);
		if (c->at_n)
			rendering_calls(&t, f->at_is, c->at, c->at_n);
		fprintf(t.text, "    hint: %s\n", rules[f->rule].hint);
		fputc('\n', t.note);
	}
	if (t.text)
		fclose(t.text);
	if (t.note)
		fclose(t.note);
	if (t.text && t.note)
		write_out(run, finding_level(f), finding_text, finding_text_len,
			  note_text, note_text_len);
	free(finding_text);
	free(note_text);
}

/* Return the entry of that rule and stack; create it if there is none. */
static struct reported *reported_get(enum rule rule, const struct stack *at)
{
	struct reported *t;

	for (t = reports.all; t; t = t->next)
		if (t->rule == rule && stack_equal(&t->at, at))
			return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->rule = rule;
	t->at = *at;
	t->next = reports.all;
	reports.all = t;
	return t;
}

static unsigned int reported_number(struct reported *t)
{
	unsigned int number;

	pthread_mutex_lock(&reports.lock);
	number = t->number = ++reports.numbers;
	pthread_mutex_unlock(&reports.lock);
	return number;
}

/* Is only the number of such findings reported (objects left at exit)? */
static bool finding_is_counted(const struct finding *f)
{
	return finding_level(f) > reports.lowest && f->at_exit &&
	       rules[f->rule].level <= reports.lowest;
}

/* Report the first finding of its kind, unless it is only counted. */
static void finding_first(const struct finding *f, const char *text,
			  const struct stack *here, struct reported *t)
{
	static struct calls c; /* guarded by writing */
	char name[40];

	calls_find(&c, f, here);
	t->suppressed = suppress(rule_name(f->rule, name), c.at, c.at_n) ||
			suppress(name, c.here, c.here_n);
	if (!t->suppressed && !finding_is_counted(f))
		finding_write(f, &c, text, reported_number(t));
}

/* Count a finding; report it if it is the first of its kind. */
static void finding_count(const struct finding *f, const char *text,
			  const struct stack *here)
{
	struct reported *t;
	bool first;

	pthread_mutex_lock(&reports.lock);
	t = reported_get(f->rule, f->at ? f->at : here);
	if (t)
		t->may_be_handled = f->may_be_handled;
	first = t && !t->count++;
	pthread_mutex_unlock(&reports.lock);
	if (!t || !(first || finding_is_counted(f)))
		return;
	pthread_mutex_lock(&reports.writing);
	if (first)
		finding_first(f, text, here, t);
	if (finding_is_counted(f) && !t->suppressed &&
	    f->rule == RULE_object_left)
		reports.left_at_exit++;
	pthread_mutex_unlock(&reports.writing);
}

/* A finding of this thread that is not reported yet. */
struct held {
	struct held *next;
	struct finding f; /* its pointers point to the members below */
	char object[FINDING_NAME], text[512];
	struct stack at, here;
};

static thread_own struct held *held, *held_last;
static thread_own bool holding;

static bool finding_keep(const struct finding *f, const char *text,
			 const struct stack *here)
{
	struct held *h = calloc(1, sizeof(*h));

	if (!h)
		return false;
	h->f = *f;
	snprintf(h->object, sizeof(h->object), "%s", f->object);
	snprintf(h->text, sizeof(h->text), "%s", text);
	h->f.object = h->object;
	h->here = *here;
	if (f->at) {
		h->at = *f->at;
		h->f.at = &h->at;
	}
	if (held)
		held_last->next = h;
	else
		held = h;
	held_last = h;
	return true;
}

void finding_report(const struct finding *f, const char *fmt, ...)
{
	const bool open = f->may_be_handled && run_waits();
	int saved = errno, cancel;
	struct stack here;
	char text[512];
	va_list ap;

	if (finding_level(f) > reports.lowest && !finding_is_counted(f) &&
	    !open)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	stack_take(&here);
	/*
	 * a finding that may be handled is only written to a file, which
	 * does not block, so it is not queued
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (open || !finding_keep(f, text, &here))
		finding_count(f, text, &here);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

/* Report (tell) or drop the queued findings of this thread. */
static void held_end(bool tell)
{
	int saved = errno, cancel;
	struct held *h;

	/* write(2) is a cancellation point, and locks are held there */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while ((h = held)) {
		held = h->next;
		if (tell)
			finding_count(&h->f, h->text, &h->here);
		free(h);
	}
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

void finding_write_out(void)
{
	if (held && !holding)
		held_end(true);
}

void finding_hold(void)
{
	holding = true;
}

void finding_let_go(bool tell)
{
	holding = false;
	held_end(tell);
}

/* ------------------------------------------------------- process exit */

static void reported_count(const struct reported *t)
{
	const bool open = t->may_be_handled && run_waits();
	const bool run = open || run_prints();
	char line[160], note[80], name[40];
	int n, m;

	n = snprintf(line, sizeof(line),
		     "urxe[%d]: check: %s at the same place: %u time%s\n",
		     (int)urxe_pid, rule_name(t->rule, name), t->count,
		     plural(t->count));
	m = snprintf(note, sizeof(note), "%c\t%d.%u\t%u\n",
		     open ? 'C' :
		     run  ? 'T' :
			    'C',
		     (int)urxe_pid, t->number, t->count);
	write_out(run, rules[t->rule].level, line, (size_t)n, note, (size_t)m);
}

static void left_print(void)
{
	char line[160];
	int n;

	if (!reports.left_at_exit)
		return;
	n = snprintf(
		line, sizeof(line),
		"urxe[%d]: check: objects that still exist when the process ends: %u; run with --check --leaks to list them\n",
		(int)urxe_pid, reports.left_at_exit);
	text_write(line, (size_t)n);
}

void finding_end(void)
{
	struct reported *t;

	pthread_mutex_lock(&reports.writing);
	pthread_mutex_lock(&reports.lock);
	for (t = reports.all; t; t = t->next)
		if (t->count > 1 && t->number)
			reported_count(t);
	left_print();
	pthread_mutex_unlock(&reports.lock);
	pthread_mutex_unlock(&reports.writing);
}
