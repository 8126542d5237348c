// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The list of waits: how it is made from two views, and how it is printed. */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "fabric/reason.h"
#include "shared/atomic_lock.h"
#include "stall.h"

/* ---------------------------------------------------------- words */

const char *process_name(const struct view_process *p)
{
	static char text[4][64];
	static unsigned int next;
	char *t = text[next++ % 4], *c;

	snprintf(t, sizeof(text[0]), "PID %d (%.15s)", p->pid, p->comm);
	for (c = t; *c; c++) /* the name is printed on terminals */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return t;
}

static const char *word_of(const char *const *words, uint32_t n, uint32_t i)
{
	static char text[4][16];
	static unsigned int next;
	char *t;

	if (i < n && words[i])
		return words[i];
	t = text[next++ % 4];
	snprintf(t, sizeof(text[0]), "%u", i);
	return t;
}
#define WORD(words, i) word_of(words, sizeof(words) / sizeof(*(words)), i)

const char *type_word(uint32_t type)
{
	static const char *const words[] = {
		[IBV_QPT_RC] = "RC",
		[IBV_QPT_UC] = "UC",
		[IBV_QPT_UD] = "UD",
		[IBV_QPT_XRC_SEND] = "XRC_SEND",
		[IBV_QPT_XRC_RECV] = "XRC_RECV",
	};

	return WORD(words, type);
}

/* ---------------------------------------------------------- the list */

struct stall *stall_add(struct stalls *s, const char *kind,
			const struct view_process *p, uint64_t place)
{
	/* returned if there is no memory; never printed */
	static struct stall none;
	struct stall *more = realloc(s->list, (s->n + 1) * sizeof(*s->list));

	if (!more)
		return &none;
	s->list = more;
	more += s->n++;
	*more = (struct stall){ .kind = kind,
				.level = STALL_STALLS,
				.process = *p,
				.place = place };
	return more;
}

void stall_append(struct stall *s, const char *fmt, ...)
{
	size_t n = strlen(s->what);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->what + n, sizeof(s->what) - n, fmt, ap);
	va_end(ap);
}

void stall_ends(struct stall *s, const char *fmt, ...)
{
	size_t n = strlen(s->ends);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->ends + n, sizeof(s->ends) - n, fmt, ap);
	va_end(ap);
}

void stall_port_down(struct stall *s, const struct view *v, uint32_t k)
{
	char name[64];

	if (dev_hcas(v->dev) == 1) {
		stall_append(s, ": the port is down");
		stall_ends(s, "urxe port up");
		return;
	}
	node_name(v->dev, k, name);
	stall_append(s, ": the port of %s is down", name);
	if (load_acquire(&v->dev->hca[k].down) & PORT_NO_LINK)
		stall_append(s, ": nothing is connected to it");
	else
		stall_ends(s, "urxe port up %s", name);
}

bool stall_has_path(const struct view *v, uint32_t own, uint32_t other)
{
	const struct urxe_hca *hca = hca_at(v->dev, own);

	return URXE_PATH_STATE(load_acquire(
		       &hca->path[hca_index(v->dev, hca_at(v->dev, other))])) ==
	       URXE_PORT_ACTIVE;
}

void stall_no_path(struct stall *s, const struct view *v, uint32_t own,
		   uint32_t other)
{
	char from[64], to[64];

	if (!hca_is_up(hca_at(v->dev, own))) {
		stall_port_down(s, v, own);
	} else if (!hca_is_up(hca_at(v->dev, other))) {
		stall_port_down(s, v, other);
	} else {
		node_name(v->dev, own, from);
		node_name(v->dev, other, to);
		stall_append(s, ": no links that are up join %s and %s", from,
			     to);
		stall_ends(s, "a link");
	}
}

void stalls_free(struct stalls *s)
{
	free(s->list);
	*s = (struct stalls){ 0 };
}

uint32_t stalls_count(const struct stalls *s, enum stall_level level)
{
	uint32_t i, n = 0;

	for (i = 0; i < s->n; i++)
		n += s->list[i].level == level;
	return n;
}

/*
 * Whether the wait concerns QP @qpn: the QP itself, one of its CQs, or its
 * process as a whole.
 */
static bool stall_is_of_qp(const struct stall *s, const struct view *v,
			   uint32_t qpn)
{
	const struct view_qp *q = view_qp(v, qpn);

	if (s->qpn)
		return s->qpn == qpn;
	if (!q || s->process.pid != q->process.pid)
		return false;
	return !s->cq || s->cq == q->sh.send_cq || s->cq == q->sh.recv_cq;
}

bool stall_matches(const struct stall *s, const struct view *v, int32_t pid,
		   uint32_t qpn)
{
	return (!pid || s->process.pid == pid) &&
	       (!qpn || stall_is_of_qp(s, v, qpn));
}

/* ---------------------------------------------------------- processes */

static void stall_of_process(struct stalls *s, const struct view_process *p)
{
	struct stall *out;
	uint32_t i;

	if (!process_is_stopped(p))
		return;
	for (i = 0; i < s->n; i++)
		if (!strcmp(s->list[i].kind, "stopped") &&
		    s->list[i].process.pid == p->pid)
			return;
	out = stall_add(s, "stopped", p, 0);
	stall_append(out, "the process is stopped by a signal, or a debugger");
	stall_ends(out, "SIGCONT, or the debugger");
}

static void stall_of_context(struct stalls *s, const struct view_ctx *c)
{
	struct stall *out;

	stall_of_process(s, &c->process);
	if (!c->alive || !c->kept)
		return;
	out = stall_add(s, "async-kept", &c->process, c->kept);
	stall_append(
		out,
		"%u asynchronous event%s not written to the channel: it is full, or the adversary delays events",
		c->kept, plural_is(c->kept));
	stall_ends(out, "ibv_get_async_event by %s", process_name(&c->process));
}

static void stalls_collect(struct stalls *s, const struct view *v)
{
	uint32_t i;

	stalls_of_calls(s, v); /* blocked calls are listed first */
	for (i = 0; i < v->ctxs; i++)
		stall_of_context(s, &v->ctx[i]);
	for (i = 0; i < v->qps; i++)
		if (v->qp[i].ctx->alive)
			stall_of_process(s, &v->qp[i].process);
	stalls_of_queues(s, v);
	stalls_of_cqs(s, v);
	stalls_of_cm(s, v);
	stalls_of_receives(s, v);
	stalls_of_failed(s, v);
}

static bool stall_is_same(const struct stall *a, const struct stall *b)
{
	return a->place == b->place && a->qpn == b->qpn && a->cq == b->cq &&
	       a->process.pid == b->process.pid && !strcmp(a->kind, b->kind);
}

static const struct stall *stalls_have(const struct stalls *s,
				       const struct stall *one)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (stall_is_same(&s->list[i], one))
			return &s->list[i];
	return NULL;
}

void stalls_find(struct stalls *s, const struct view *before,
		 const struct view *now)
{
	struct stalls old = { 0 };
	struct stall *one;
	uint32_t i, n = 0;

	*s = (struct stalls){ 0 };
	stalls_collect(s, now);
	stalls_collect(&old, before);
	for (i = 0; i < s->n; i++) {
		one = &s->list[i];
		if (!stalls_have(&old, one))
			continue;
		if (!one->since || one->since > now->at) {
			one->since = before->at;
			one->longer = true;
		}
		s->list[n++] = *one;
	}
	s->n = n;
	stalls_free(&old);
}

void stalls_remember(struct stalls *s, const struct stalls *old)
{
	const struct stall *was;
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		was = s->list[i].longer ? stalls_have(old, &s->list[i]) : NULL;
		if (was)
			s->list[i].since = was->since;
	}
}

/* ---------------------------------------------------------- text */

const char *stall_age(const struct stall *s, const struct view *v)
{
	const uint64_t ns = v->at > s->since ? v->at - s->since : 0;
	const double seconds = (double)ns / 1e9;
	static char text[32];

	snprintf(text, sizeof(text), "%s%.*f s", s->longer ? ">" : "",
		 seconds < 10 ? 1 : 0, seconds);
	return text;
}

bool stalls_any(const struct stalls *s, const struct view *v, int32_t pid,
		uint32_t qpn)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->list[i].level == STALL_STALLS &&
		    stall_matches(&s->list[i], v, pid, qpn))
			return true;
	return false;
}

void stalls_print(FILE *to, const struct stalls *s, const struct view *v,
		  int32_t pid, uint32_t qpn)
{
	const struct stall *one;
	char on[VIEW_ON];
	uint32_t i;

	for (i = 0; i < s->n; i++) {
		one = &s->list[i];
		if (!stall_matches(one, v, pid, qpn))
			continue;
		fputs(process_name(&one->process), to);
		view_qp_on(v, one->qpn, on);
		if (one->qpn)
			fprintf(to, ", QP 0x%x%s", one->qpn, on);
		fprintf(to, ": %s\n    %s for %s", one->what, one->kind,
			stall_age(one, v));
		if (*one->ends)
			fprintf(to, "; would end it: %s", one->ends);
		fputc('\n', to);
	}
}
