// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Formats of urxe run --check --report (report.h). */
#include <string.h>

#include "base/plural.h"
#include "common/json.h"
#include "report.h"

/* ------------------------------------------------------- JSON */

static void json_member(FILE *to, const char *name, const char *value)
{
	fprintf(to, "\"%s\":", name);
	json_string(to, value);
	fputc(',', to);
}

static void json_call(FILE *to, const struct call *c)
{
	fputc('{', to);
	if (*c->what)
		json_member(to, "what", c->what);
	if (*c->function)
		json_member(to, "function", c->function);
	json_member(to, "module", c->module);
	if (c->file) {
		json_member(to, "file", c->file);
		fprintf(to, "\"line\":%u,", c->line);
	}
	fprintf(to, "\"offset\":%lu,\"address\":%lu}", c->offset, c->address);
}

static void json_note(FILE *to, const struct note *n)
{
	size_t i;

	fputc('{', to);
	json_member(to, "rule", n->rule);
	json_member(to, "level", n->level);
	json_member(to, "source", n->source);
	json_member(to, "program", n->program);
	json_member(to, "id", n->id);
	json_member(to, "object", n->object);
	json_member(to, "text", n->text);
	json_member(to, "hint", n->hint);
	fprintf(to, "\"count\":%u,\"calls\":[", n->count);
	for (i = 0; i < n->calls; i++) {
		if (i)
			fputc(',', to);
		json_call(to, &n->call[i]);
	}
	fputs("]}\n", to);
}

void report_json(FILE *to, const struct notes *all)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		json_note(to, &all->note[i]);
}

/* ------------------------------------------------------- JUnit */

static void xml_text(FILE *to, const char *s)
{
	for (; *s; s++) {
		if (strchr("<>&\"", *s))
			fprintf(to, "&#%d;", *s);
		else if ((unsigned char)*s < ' ' || (unsigned char)*s > '~')
			fputc(*s == '\n' || *s == '\t' ? *s : '?', to);
		else
			fputc(*s, to);
	}
}

static void xml_attribute(FILE *to, const char *name, const char *value)
{
	fprintf(to, " %s=\"", name);
	xml_text(to, value);
	fputc('"', to);
}

static void junit_calls(FILE *to, const struct note *n)
{
	const struct call *c;

	for (c = n->call; c < n->call + n->calls; c++) {
		if (*c->what) {
			xml_text(to, c->what);
			fputs(":\n", to);
		}
		fputs("  in ", to);
		xml_text(to, *c->function ? c->function : "?");
		fputs(" (", to);
		xml_text(to, c->file ? c->file : c->module);
		if (c->file)
			fprintf(to, ":%u)\n", c->line);
		else
			fprintf(to, "+0x%lx)\n", c->address);
	}
}

static void junit_note(FILE *to, const struct note *n)
{
	fputs("  <testcase", to);
	xml_attribute(to, "classname", n->program);
	fputs(" name=\"", to);
	xml_text(to, n->rule);
	fputs(": ", to);
	xml_text(to, n->object);
	fputs("\">\n    <failure", to);
	xml_attribute(to, "type", n->level);
	xml_attribute(to, "message", n->text);
	fputc('>', to);
	xml_text(to, n->text);
	fputs(" [", to);
	xml_text(to, n->source);
	fprintf(to, "], %u time%s\n", n->count, plural(n->count));
	junit_calls(to, n);
	fputs("hint: ", to);
	xml_text(to, n->hint);
	fputs("</failure>\n  </testcase>\n", to);
}

void report_junit(FILE *to, const struct notes *all)
{
	size_t i;

	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		"<testsuite name=\"urxe check\" tests=\"%zu\" failures=\"%zu\" "
		"errors=\"0\">\n",
		all->count ? all->count : 1, all->count);
	for (i = 0; i < all->count; i++)
		junit_note(to, &all->note[i]);
	if (!all->count)
		fputs("  <testcase classname=\"urxe\" name=\"check\"/>\n", to);
	fputs("</testsuite>\n</testsuites>\n", to);
}

/* ------------------------------------------------------- GitHub */

/*
 * Write s percent-encoded for a workflow command.  `more` has further
 * characters to encode: in a property, the comma and the colon that end it.
 */
static void github_text(FILE *to, const char *s, const char *more)
{
	for (; *s; s++) {
		if (*s == '%' || *s == '\n' || *s == '\r' || strchr(more, *s))
			fprintf(to, "%%%02X", (unsigned char)*s);
		else
			fputc(*s, to);
	}
}

static void github_note(FILE *to, const struct note *n)
{
	const struct call *at = note_place(n);

	fprintf(to, "::%s ", strcmp(n->level, "note") ? n->level : "notice");
	if (at) {
		fputs("file=", to);
		github_text(to, at->file, ",:");
		fprintf(to, ",line=%u,", at->line);
	}
	fputs("title=", to);
	github_text(to, n->rule, ",:");
	fputs("::", to);
	github_text(to, n->object, "");
	fputs(": ", to);
	github_text(to, n->text, "");
	fputs(" [", to);
	github_text(to, n->source, "");
	fputs("]; ", to);
	github_text(to, n->hint, "");
	fputc('\n', to);
}

void report_github(FILE *to, const struct notes *all)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		github_note(to, &all->note[i]);
}

report_fn *report_named(const char *format)
{
	static const struct {
		const char *name;
		report_fn *report;
	} formats[] = {
		{ "json", report_json },
		{ "junit", report_junit },
		{ "github", report_github },
	};
	size_t i;

	for (i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(format, formats[i].name))
			return formats[i].report;
	return NULL;
}
