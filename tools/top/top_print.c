// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The output of urxe top: a table, and JSON. */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "fabric/reason.h"
#include "common/json.h"
#include "why/stall_json.h"
#include "top.h"

static const char *fabric_name(const struct top *t)
{
	const char *slash = strrchr(t->dir, '/');

	return slash ? slash + 1 : t->dir;
}

static const char *port_word(const struct urxe_hca *hca)
{
	return hca_is_up(hca) ? "ACTIVE" : "DOWN";
}

/* "ports ACTIVE, DOWN", in the order of the devices. */
static const char *ports_words(const struct view *v)
{
	static char text[16 + 8 * URXE_HOST_HCAS];
	const uint32_t hcas = dev_hcas(v->dev);
	uint32_t k, up = 0;
	int n;

	for (k = 0; k < hcas; k++)
		up += hca_is_up(&v->dev->hca[k]);
	if (hcas > URXE_HOST_HCAS) {
		snprintf(text, sizeof(text), "%u of %u ports ACTIVE", up, hcas);
		return text;
	}
	n = snprintf(text, sizeof(text), hcas > 1 ? "ports " : "port ");
	for (k = 0; k < hcas; k++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%s",
			      k ? ", " : "", port_word(&v->dev->hca[k]));
	return text;
}

/*
 * "12.3k": at most six characters. The text is valid until the fourth call
 * after this one.
 */
static const char *scaled(double x)
{
	static const char *const unit[] = { "", "k", "M", "G", "T" };
	static char text[4][16];
	static unsigned int next;
	unsigned int u = 0;
	char *to = text[next++ % 4];

	for (; x >= 1000 && u < 4; u++)
		x /= 1000;
	snprintf(to, sizeof(text[0]), "%.*f%s", u && x < 100 ? 1 : 0, x,
		 unit[u]);
	return to;
}

/* ---------------------------------------------------------- the table */

/* Output of lines, limited to the size of the terminal. */
struct page {
	FILE *to;
	int columns, left; /* columns 0: no limit */
};

/*
 * Print one line, cut to the width. Bytes that are not printable ASCII become
 * '?': names may contain escape sequences.
 */
static void page_line(struct page *p, const char *fmt, ...)
{
	char *text, *c;
	va_list ap;
	int n;

	if (p->columns && !p->left)
		return;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	for (c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	if (p->columns)
		fprintf(p->to, "%.*s\033[K", p->columns, text);
	else
		fputs(text, p->to);
	free(text);
	p->left--;
	if (!p->columns || p->left)
		fputc('\n', p->to);
}

static const char *peer_word(const struct view_qp *q)
{
	static char text[16];
	const uint32_t dest = URXE_CONN_DEST(load_relaxed(&q->sh.conn));

	if (load_relaxed(&q->sh.type) == IBV_QPT_UD || !dest)
		return "-";
	snprintf(text, sizeof(text), "0x%x", dest);
	return text;
}

static void page_row(struct page *p, const struct top *t,
		     const struct top_row *r)
{
	const struct view_qp *q = r->qp;
	const uint32_t state = URXE_CONN_STATE(load_relaxed(&q->sh.conn));
	const struct stall *s = r->waits;
	char qpn[16], on[VIEW_ON], waits[64] = "";

	snprintf(qpn, sizeof(qpn), "0x%x", q->qpn);
	view_qp_on(t->now, q->qpn, on);
	if (s)
		snprintf(waits, sizeof(waits), "%s %s", s->kind,
			 stall_age(s, t->now));
	page_line(
		p,
		"%7d%c %-12.12s %-8s %-4.4s %-5s %-8s %6s %5u %5u %-20s %6s %6s%s%s",
		q->process.pid, process_is_stopped(&q->process) ? 'T' : ' ',
		q->process.comm, qpn, type_word(load_relaxed(&q->sh.type)),
		reason_state_name(state), peer_word(q), scaled(r->packets),
		s && s->has_wr ? s->queued : 0, view_receives(t->now, q), waits,
		scaled(r->bytes), scaled(r->receives), *on ? "  " : "",
		*on ? on + strlen(" at ") : "");
}

static void page_head(struct page *p, const struct top *t)
{
	const struct view *v = t->now;

	page_line(
		p,
		"urxe top: fabric %s, %s; %u QP%s, %u CQ%s, %u context%s; %s of %sB device memory",
		fabric_name(t), ports_words(v), v->qps, plural(v->qps), v->cqs,
		plural(v->cqs), v->ctxs, plural(v->ctxs),
		scaled((double)v->dm_bytes), scaled((double)v->dev->dm_bytes));
	page_line(
		p,
		"%s packets/s, %sB/s, %s RNR NAKs/s, %s timeouts/s; %u stalled",
		scaled(top_counter(t, URXE_CNT_XMIT_PACKETS)),
		scaled(4 * top_counter(t, URXE_CNT_XMIT_DATA)),
		scaled(top_counter(t, URXE_CNT_RNR_NAK)),
		scaled(top_counter(t, URXE_CNT_ACK_TIMEOUT)),
		stalls_count(&t->stalls, STALL_STALLS));
	page_line(p, "");
	page_line(p,
		  "%7s  %-12s %-8s %-4s %-5s %-8s %6s %5s %5s %-20s %6s %6s%s",
		  "PID", "PROGRAM", "QP", "TYPE", "STATE", "PEER", "PKT/S",
		  "SENDQ", "RECVQ", "WAITS", "B/S", "RECV/S",
		  dev_hcas(v->dev) > 1 ? "  DEVICE" : "");
}

static void page_stalls(struct page *p, const struct top *t)
{
	const struct stall *s = t->stalls.list;
	char on[VIEW_ON];

	if (stalls_count(&t->stalls, STALL_STALLS))
		page_line(p, "");
	for (; s < t->stalls.list + t->stalls.n; s++)
		if (s->level == STALL_STALLS && s->qpn) {
			view_qp_on(t->now, s->qpn, on);
			page_line(p, "%s, QP 0x%x%s, for %s: %s",
				  process_name(&s->process), s->qpn, on,
				  stall_age(s, t->now), s->what);
		} else if (s->level == STALL_STALLS)
			page_line(p, "%s, for %s: %s",
				  process_name(&s->process),
				  stall_age(s, t->now), s->what);
}

/* Listeners have rows of their own in the table. */
static void page_listeners(struct page *p, const struct view *v)
{
	struct view_listener l = { 0 };

	while (view_listener(v, &l))
		page_line(p,
			  "%7d%c %-12.12s listens at port %u of %s, backlog %u",
			  l.process.pid,
			  process_is_stopped(&l.process) ? 'T' : ' ',
			  l.process.comm, l.port, l.address, l.backlog);
}

void top_print(const struct top *t, FILE *to, int columns, int lines,
	       uint32_t first)
{
	struct page p = { to, columns, lines };
	uint32_t i, room = UINT32_MAX;

	page_head(&p, t);
	/* waits get at least half of the remaining lines */
	if (columns)
		room = p.left > 1 ? (uint32_t)p.left / 2 : 0;
	if (columns && (int)stalls_count(&t->stalls, STALL_STALLS) + 1 <
			       p.left - (int)room)
		room = (uint32_t)p.left -
		       stalls_count(&t->stalls, STALL_STALLS) - 1;
	for (i = first; i < t->rows && i - first < room; i++)
		page_row(&p, t, &t->row[i]);
	page_listeners(&p, t->now);
	page_stalls(&p, t);
}

/* ---------------------------------------------------------- JSON */

static void json_qp(struct json *j, const struct top *t,
		    const struct top_row *r)
{
	const struct view_qp *q = r->qp;
	const uint64_t conn = load_relaxed(&q->sh.conn);
	const struct stall *s = r->waits;
	char on[VIEW_ON];

	json_open(j, NULL, '{');
	json_put_number(j, "qpn", q->qpn);
	view_qp_on(t->now, q->qpn, on);
	if (*on)
		json_put_string(j, "device", on + strlen(" at "));
	json_put_process(j, &q->process);
	json_put_bool(j, "alive", q->ctx->alive);
	json_put_string(j, "type", type_word(load_relaxed(&q->sh.type)));
	json_put_string(j, "state", reason_state_name(URXE_CONN_STATE(conn)));
	json_put_or_null(j, "peer",
			 load_relaxed(&q->sh.type) != IBV_QPT_UD &&
				 URXE_CONN_DEST(conn),
			 URXE_CONN_DEST(conn));
	json_put_number(j, "send_cq", q->sh.send_cq);
	json_put_number(j, "recv_cq", q->sh.recv_cq);
	json_put_number(j, "sends_queued", s && s->has_wr ? s->queued : 0);
	json_put_number(j, "receives_posted", view_receives(t->now, q));
	json_put_bool(j, "srq", q->sh.srq);
	json_put_double(j, "packets_per_second", r->packets);
	json_put_double(j, "bytes_per_second", r->bytes);
	json_put_double(j, "receives_per_second", r->receives);
	if (s)
		json_put_string(j, "waits", s->kind);
	else
		json_put_null(j, "waits");
	json_close(j, '}');
}

static void json_cq(struct json *j, const struct view_cq *q)
{
	static const char *const armed[] = { "none", "solicited", "next", "?" };
	const uint32_t events = load_relaxed(&q->sh.comp_events) -
				load_relaxed(&q->sh.comp_fetched) +
				load_relaxed(&q->sh.pending_events);

	json_open(j, NULL, '{');
	json_put_number(j, "cq", q->index);
	json_put_process(j, &q->process);
	json_put_number(j, "entries", q->depth);
	json_put_number(j, "unread", q->unread);
	json_put_bool(j, "channel", q->sh.channel);
	json_put_string(j, "armed",
			armed[URXE_ARM_KIND(load_relaxed(&q->sh.arm))]);
	json_put_number(j, "events_unread", events);
	json_put_bool(j, "overrun", load_relaxed(&q->sh.error));
	json_close(j, '}');
}

static void json_fabric(struct json *j, const struct top *t)
{
	const struct view *v = t->now;
	uint32_t k;

	json_put_string(j, "urxe", URXE_VERSION);
	json_put_string(j, "fabric", fabric_name(t));
	json_put_string(j, "port", port_word(&v->dev->hca[0]));
	if (dev_hcas(v->dev) > 1) {
		json_open(j, "ports", '[');
		for (k = 0; k < dev_hcas(v->dev); k++)
			json_put_string(j, NULL, port_word(&v->dev->hca[k]));
		json_close(j, ']');
	}
	json_put_double(j, "seconds", t->seconds);
	json_put_double(j, "packets_per_second",
			top_counter(t, URXE_CNT_XMIT_PACKETS));
	json_put_double(j, "bytes_per_second",
			4 * top_counter(t, URXE_CNT_XMIT_DATA));
	json_put_double(j, "rnr_naks_per_second",
			top_counter(t, URXE_CNT_RNR_NAK));
	json_put_double(j, "timeouts_per_second",
			top_counter(t, URXE_CNT_ACK_TIMEOUT));
	json_put_number(j, "contexts", v->ctxs);
	json_put_number(j, "dm_bytes", v->dm_bytes);
	json_put_number(j, "dm_pieces", v->dm_pieces);
	json_put_number(j, "dm_size", v->dev->dm_bytes);
}

void top_print_json(const struct top *t, FILE *to)
{
	struct json j = { .to = to };
	uint32_t i;

	json_open(&j, NULL, '{');
	json_fabric(&j, t);
	json_open(&j, "qps", '[');
	for (i = 0; i < t->rows; i++)
		json_qp(&j, t, &t->row[i]);
	json_close(&j, ']');
	json_open(&j, "cqs", '[');
	for (i = 0; i < t->now->cqs; i++)
		json_cq(&j, &t->now->cq[i]);
	json_close(&j, ']');
	stalls_put(&j, &t->stalls, t->now, 0, 0);
	listeners_put(&j, t->now);
	json_close(&j, '}');
	fputc('\n', to);
}
