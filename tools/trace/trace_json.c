// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* urxe trace --json. */
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "trace_json.h"
#include "trace_print.h"

static const char *event_name(uint32_t what)
{
	static const char *const name[] = {
#define EVENT(name, called, values) #name,
#include "trace/events.h"
#undef EVENT
	};

	return what < sizeof(name) / sizeof(*name) ? name[what] : "?";
}

/*
 * A value that is printed as decimal digits becomes a number, others a
 * string.
 */
static void put_value(void *arg, const char *name, const char *text)
{
	struct json *j = arg;

	if (*text && strlen(text) < 20 && !text[strspn(text, "0123456789")])
		json_put_number(j, name, strtoull(text, NULL, 10));
	else
		json_put_string(j, name, text);
}

/* The text of urxe trace, without process and time. */
static void put_text(struct json *j, const struct trace_record *r)
{
	char *text = NULL;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return;
	trace_print_what(to, r);
	if (!fclose(to))
		json_put_string(j, "text", text);
	free(text);
}

static void put_thread(struct json *j, const struct trace_thread *t)
{
	json_put_number(j, "pid", (uint64_t)t->pid);
	json_put_number(j, "tid", (uint64_t)t->tid);
	json_put_number(j, "process", (uint64_t)t->process);
	json_put_string(j, "program", t->program);
	json_put_string(j, "thread", t->thread);
}

void trace_print_json(FILE *to, const struct trace_record *r, uint64_t start)
{
	struct json j = { .to = to };
	uint64_t ns;

	json_open(&j, NULL, '{');
	json_put_signed(&j, "ns", (int64_t)(r->time - start));
	put_thread(&j, r->thread);
	json_put_string(&j, "event", event_name(r->what));
	json_put_bool(&j, "error", trace_is_error(r));
	if (r->qpn)
		json_put_number(&j, "qpn", r->qpn);
	else
		json_put_null(&j, "qpn");
	if (r->what == TRACE_CALL) {
		json_put_string(&j, "call", trace_call_name(r));
		if (trace_call_ns(r, &ns))
			json_put_number(&j, "call_ns", ns);
	}
	json_open(&j, "values", '{');
	trace_each_value(r, put_value, &j);
	json_close(&j, '}');
	put_text(&j, r);
	json_close(&j, '}');
	fputc('\n', to);
}
