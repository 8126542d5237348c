// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parser of litmus tests: one statement a line */
#include <ctype.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "litmus.h"

#define MAX_WORDS 24

/* State of the parser */
struct reader {
	struct test *t;
	const char *path;
	int line;
	int thread; /* node of the next operations, or -1 */
	char *words[MAX_WORDS]; /* of this line */
	int num_words, at;
};

__attribute__((noreturn, format(printf, 2, 3))) static void
reader_fail(const struct reader *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "%s:%d: ", r->path, r->line);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(2);
}

static const char *peek(const struct reader *r)
{
	return r->at < r->num_words ? r->words[r->at] : "";
}

static const char *next(struct reader *r)
{
	if (r->at == r->num_words)
		reader_fail(r, "the line is incomplete");
	return r->words[r->at++];
}

static bool accept(struct reader *r, const char *word)
{
	if (strcmp(peek(r), word) != 0)
		return false;
	r->at++;
	return true;
}

static void expect(struct reader *r, const char *word)
{
	if (!accept(r, word))
		reader_fail(r, "found \"%s\", expected \"%s\"", peek(r), word);
}

static uint64_t number(struct reader *r, const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 0);

	if (end == text || *end)
		reader_fail(r, "\"%s\" is not a number", text);
	return v;
}

/* Copy @from, truncated to the size of @to. */
static void text_copy(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	to[len] = 0;
}

static void name_copy(struct reader *r, char *to, const char *from, size_t len)
{
	if (len == 0 || len >= NAME)
		reader_fail(r, "\"%s\": empty or too long name", from);
	memcpy(to, from, len);
	to[len] = 0;
}

static int node_find(struct reader *r, const char *name, size_t len)
{
	int i;

	for (i = 0; i < r->t->num_nodes; i++)
		if (strlen(r->t->nodes[i].name) == len &&
		    !strncmp(r->t->nodes[i].name, name, len))
			return i;
	reader_fail(r, "unknown node \"%.*s\"", (int)len, name);
}

/* Parse a place: x, x[3], or with its node: A.x */
static bool place_parse(struct reader *r, const char *text, int node,
			struct place *p)
{
	const char *dot = strchr(text, '.'), *name = text;
	size_t len;
	int i;

	if (dot) {
		node = node_find(r, text, (size_t)(dot - text));
		name = dot + 1;
	}
	if (node < 0)
		return false;
	len = strcspn(name, "[");
	for (i = 0; i < r->t->nodes[node].num_vars; i++) {
		const struct var *v = &r->t->nodes[node].vars[i];

		if (strlen(v->name) != len || strncmp(v->name, name, len) != 0)
			continue;
		p->node = node;
		p->var = i;
		p->word = name[len] ? (unsigned int)atoi(name + len + 1) : 0;
		if (p->word >= v->words)
			reader_fail(r, "%s: no such word in the variable",
				    text);
		return true;
	}
	if (dot)
		reader_fail(r, "unknown variable %s", text);
	return false;
}

static struct place place(struct reader *r, const char *text, int node)
{
	struct place p;

	if (!place_parse(r, text, node, &p))
		reader_fail(r, "unknown variable %s", text);
	return p;
}

static int reg_find(struct reader *r, const char *name)
{
	struct test *t = r->t;
	int i;

	for (i = 0; i < t->num_regs; i++)
		if (!strcmp(t->regs[i], name))
			return i;
	if (t->num_regs == MAX_REGS)
		reader_fail(r, "too many registers");
	name_copy(r, t->regs[i], name, strlen(name));
	return t->num_regs++;
}

static int window_find(struct reader *r, int node, const char *name)
{
	struct node_text *n = &r->t->nodes[node];
	int i;

	for (i = 0; i < n->num_windows; i++)
		if (!strcmp(n->windows[i], name))
			return i;
	if (n->num_windows == MAX_WINDOWS)
		reader_fail(r, "too many windows");
	name_copy(r, n->windows[i], name, strlen(name));
	return n->num_windows++;
}

/* node A x=1 y data[8]=0 */
static void read_node(struct reader *r)
{
	struct node_text *n;
	size_t off = 0;

	if (r->t->num_nodes == MAX_NODES)
		reader_fail(r, "too many nodes");
	n = &r->t->nodes[r->t->num_nodes++];
	name_copy(r, n->name, peek(r), strlen(peek(r)));
	r->at++;
	while (r->at < r->num_words) {
		struct var *v = &n->vars[n->num_vars++];
		const char *text = next(r), *eq = strchr(text, '=');
		const char *bracket = strchr(text, '[');

		if (n->num_vars > MAX_VARS)
			reader_fail(r, "too many variables");
		name_copy(r, v->name, text, strcspn(text, "[="));
		v->words = bracket ? (unsigned int)atoi(bracket + 1) : 1;
		v->init = eq ? number(r, eq + 1) : 0;
		v->off = off;
		/*
		 * each variable starts a cache line, with a free line after
		 * it
		 */
		off += (v->words * 8 + 63) / 64 * 64 + 64;
	}
}

/* Parse the options of a WR. */
static void read_options(struct reader *r, struct op *o)
{
	while (r->at < r->num_words) {
		if (accept(r, "fence"))
			o->flags |= IBV_SEND_FENCE;
		else if (accept(r, "inline"))
			o->flags |= IBV_SEND_INLINE;
		else if (accept(r, "unsignaled"))
			o->flags &= ~(unsigned int)IBV_SEND_SIGNALED;
		else if (accept(r, "via"))
			o->link = (int)number(r, next(r)) - 1;
		else if (accept(r, "by"))
			o->window = window_find(r, o->peer, next(r));
		else if (accept(r, "as"))
			o->reg = reg_find(r, next(r));
		else
			reader_fail(r, "unknown word \"%s\"", peek(r));
	}
	if (o->link < 0 || o->link >= MAX_LINKS)
		reader_fail(r, "unknown QP: the maximum of via is 2");
}

static const struct {
	const char *name;
	enum verb verb;
	bool to_remote; /* the remote place is left of the arrow */
} rdma_verbs[] = {
	{ "write", WRITE, true }, { "write_imm", WRITE_IMM, true },
	{ "read", READ, false },  { "cas", CAS, false },
	{ "faa", FAA, false },
};

/* write B.y <- x; read x <- B.y; cas x <- B.y 0 1; faa x <- B.y 1 */
static bool read_rdma(struct reader *r, struct op *o)
{
	const char *left, *right;
	size_t i;

	for (i = 0; i < sizeof(rdma_verbs) / sizeof(rdma_verbs[0]); i++)
		if (accept(r, rdma_verbs[i].name))
			break;
	if (i == sizeof(rdma_verbs) / sizeof(rdma_verbs[0]))
		return false;
	o->verb = rdma_verbs[i].verb;
	left = next(r);
	expect(r, "<-");
	right = next(r);
	o->remote = place(r, rdma_verbs[i].to_remote ? left : right, -1);
	o->local = place(r, rdma_verbs[i].to_remote ? right : left, r->thread);
	o->peer = o->remote.node;
	if (o->verb == CAS || o->verb == FAA)
		o->value = number(r, next(r));
	if (o->verb == CAS)
		o->swap = number(r, next(r));
	return true;
}

static int node_named(struct reader *r)
{
	const char *name = next(r);

	return node_find(r, name, strlen(name));
}

/* Parse a WR.  Return false if the statement is not a WR. */
static bool read_wr(struct reader *r, struct op *o)
{
	if (accept(r, "send")) {
		o->verb = SEND;
		o->peer = node_named(r);
		expect(r, "<-");
		o->local = place(r, next(r), r->thread);
	} else if (accept(r, "recv")) {
		o->verb = RECV;
		o->local = place(r, next(r), r->thread);
		expect(r, "<-");
		o->peer = node_named(r);
	} else if (accept(r, "bind")) {
		o->verb = BIND;
		o->window = window_find(r, r->thread, next(r));
		expect(r, "over");
		o->local = place(r, next(r), r->thread);
		expect(r, "for");
		o->peer = node_named(r);
	} else if (!read_rdma(r, o)) {
		return false;
	}
	if (o->peer == r->thread)
		reader_fail(r, "a node has no QP to itself");
	read_options(r, o);
	return true;
}

/* x = 5; r1 = x */
static void read_assignment(struct reader *r, struct op *o)
{
	const char *left = next(r), *right;

	expect(r, "=");
	right = next(r);
	if (place_parse(r, left, r->thread, &o->local)) {
		o->verb = STORE;
		o->value = number(r, right);
	} else {
		o->verb = LOAD;
		o->reg = reg_find(r, left);
		o->local = place(r, right, r->thread);
	}
	if (o->local.node != r->thread)
		reader_fail(r,
			    "a CPU cannot access the memory of another node");
}

static void read_op(struct reader *r)
{
	struct node_text *n = &r->t->nodes[r->thread];
	struct op *o = &n->ops[n->num_ops++];

	if (n->num_ops > MAX_OPS)
		reader_fail(r, "too many operations");
	*o = (struct op){ .line = r->line,
			  .reg = -1,
			  .window = -1,
			  .flags = IBV_SEND_SIGNALED };
	if (read_wr(r, o))
		return;
	if (accept(r, "wait")) {
		o->verb = accept(r, "recv") ? WAIT_RECV : WAIT;
	} else if (accept(r, "poll")) {
		o->verb = POLL;
		o->reg = reg_find(r, next(r));
	} else if (accept(r, "signal") || accept(r, "await")) {
		o->verb = r->words[0][0] == 's' ? SIGNAL : AWAIT;
		o->reg = reg_find(r, next(r));
	} else if (accept(r, "until")) {
		o->verb = UNTIL;
		o->local = place(r, next(r), r->thread);
		expect(r, "=");
		o->value = number(r, next(r));
	} else {
		read_assignment(r, o);
	}
}

static int value_find(struct reader *r, const char *text, size_t len)
{
	struct test *t = r->t;
	struct value *v;
	int i;

	for (i = 0; i < t->num_values; i++)
		if (strlen(t->values[i].text) == len &&
		    !strncmp(t->values[i].text, text, len))
			return i;
	if (t->num_values == MAX_TERMS)
		reader_fail(r, "too many values");
	v = &t->values[t->num_values];
	if (len >= sizeof(v->text))
		reader_fail(r, "name too long: %s", text);
	memcpy(v->text, text, len);
	v->reg = -1;
	if (!place_parse(r, v->text, -1, &v->place))
		v->reg = reg_find(r, v->text);
	return t->num_values++;
}

/* allowed r1=1 B.x!=0 */
static void read_outcome(struct reader *r, enum kind kind)
{
	struct outcome *o = &r->t->outcomes[r->t->num_outcomes++];

	if (r->t->num_outcomes > MAX_OUTCOMES)
		reader_fail(r, "too many outcomes");
	o->kind = kind;
	while (r->at < r->num_words) {
		const char *text = next(r);
		size_t len = strcspn(text, "!=");
		struct term *term = &o->terms[o->num_terms++];

		if (o->num_terms > MAX_TERMS)
			reader_fail(r, "too many terms");
		term->value = value_find(r, text, len);
		term->equal = text[len] == '=';
		text += len + !term->equal;
		if (*text++ != '=')
			reader_fail(r, "expected = or !=");
		term->to = strcmp(text, "-") ? number(r, text) : UNSET;
		snprintf(o->text + strlen(o->text),
			 sizeof(o->text) - strlen(o->text), "%s%s",
			 o->num_terms > 1 ? " " : "", r->words[r->at - 1]);
	}
	if (o->num_terms == 0)
		reader_fail(r, "the outcome has no condition");
}

static void read_transport(struct reader *r)
{
	if (accept(r, "uc"))
		r->t->transport = UC;
	else if (accept(r, "ud"))
		r->t->transport = UD;
	else
		expect(r, "rc");
}

static void read_line(struct reader *r)
{
	if (accept(r, "node"))
		read_node(r);
	else if (accept(r, "transport"))
		read_transport(r);
	else if (accept(r, "concurrent"))
		r->t->concurrent = true;
	else if (accept(r, "thread"))
		r->thread = node_named(r);
	else if (accept(r, "seeds"))
		r->t->seeds = (unsigned int)number(r, next(r));
	else if (accept(r, "options"))
		text_copy(r->t->options, sizeof(r->t->options), next(r));
	else if (accept(r, "allowed"))
		read_outcome(r, ALLOWED);
	else if (accept(r, "forbidden"))
		read_outcome(r, FORBIDDEN);
	else if (accept(r, "unseen"))
		read_outcome(r, UNSEEN);
	else if (r->thread >= 0)
		read_op(r);
	else
		reader_fail(r, "unknown word \"%s\"", peek(r));
}

static void read_words(struct reader *r, char *line)
{
	char *save, *word;

	r->num_words = r->at = 0;
	for (word = strtok_r(line, " \t", &save); word;
	     word = strtok_r(NULL, " \t", &save)) {
		if (r->num_words == MAX_WORDS)
			reader_fail(r, "the line is too long");
		r->words[r->num_words++] = word;
	}
}

/* The first comment that is not the SPDX line is the title. */
static void read_comment(struct test *t, const char *text)
{
	if (!t->title[0] && !strstr(text, "SPDX"))
		text_copy(t->title, sizeof(t->title),
			  text + strspn(text, "# "));
}

static void name_of_path(struct test *t, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dot;

	text_copy(t->name, sizeof(t->name), slash ? slash + 1 : path);
	dot = strrchr(t->name, '.');
	if (dot)
		*dot = 0;
}

void test_read(struct test *t, const char *path)
{
	struct reader r = { .t = t, .path = path, .thread = -1 };
	FILE *f = fopen(path, "r");
	char line[512];

	if (!f) {
		perror(path);
		exit(2);
	}
	memset(t, 0, sizeof(*t));
	name_of_path(t, path);
	while (fgets(line, sizeof(line), f)) {
		r.line++;
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '#')
			read_comment(t, line);
		line[strcspn(line, "#")] = 0;
		if (!strncmp(line, "source ", 7)) {
			text_copy(t->source, sizeof(t->source), line + 7);
			continue;
		}
		read_words(&r, line);
		if (r.num_words)
			read_line(&r);
	}
	fclose(f);
	if (!t->source[0] || !t->num_outcomes || !t->seeds)
		reader_fail(
			&r,
			"the source, the outcomes or the number of seeds are missing");
}
