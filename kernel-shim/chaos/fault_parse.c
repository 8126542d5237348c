// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Parser for fault rules: faults_parse() (fault.h).  An error message names
 * the wrong word, and a similar valid word if there is one.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "fault.h"
#include "fault_names.h"
#include "nearest.h"
#include "number.h"

/* A part of the text, without a terminating NUL. */
struct word {
	const char *text;
	size_t len;
};

/* The state of the parser. */
struct parse {
	struct fault_rule *r;
	struct word word; /* being parsed */
	const char *wrong; /* error message about word */
	struct nearest near; /* the most similar valid word */
};

/* Store an error message about p->word, and return false. */
static bool refuse(struct parse *p, const char *wrong)
{
	p->wrong = wrong;
	return false;
}

/*
 * Begin the search for a valid word similar to @w.  near_names() and
 * nearest_try() add valid words.
 */
static void near_begin(struct parse *p, struct word w)
{
	nearest_begin(&p->near, w.text, w.len);
}

static void near_names(struct parse *p, const struct fault_name *names)
{
	for (; names->name; names++)
		nearest_try(&p->near, names->name);
}

static bool word_is(struct word w, const char *name)
{
	return strlen(name) == w.len && !memcmp(name, w.text, w.len);
}

/*
 * Return the part of @w before the first @to, and the part after it in *rest.
 * If there is no @to, return @w and set rest->text to NULL.
 */
static struct word word_cut(struct word w, char to, struct word *rest)
{
	const char *at = memchr(w.text, to, w.len);
	size_t len = at ? (size_t)(at - w.text) : w.len;

	rest->text = at ? at + 1 : NULL;
	rest->len = at ? w.len - len - 1 : 0;
	return (struct word){ w.text, len };
}

static bool word_number(struct word w, uint64_t limit, uint64_t *value)
{
	return number_parse(w.text, w.len, limit, value);
}

/* Parse a probability such as 0.25, 1 or .5, and multiply it by 2^32. */
static bool word_chance(struct word w, uint64_t *chance)
{
	struct word fraction, whole = word_cut(w, '.', &fraction);
	uint64_t n = 0, digits = 1, f = 0;
	size_t i;

	if (whole.len && !word_number(whole, 1, &n))
		return false;
	if (fraction.text) {
		if (!fraction.len || fraction.len > 9 ||
		    !word_number(fraction, 999999999, &f))
			return false;
		for (i = 0; i < fraction.len; i++)
			digits *= 10;
	} else if (!whole.len) {
		return false;
	}
	*chance = (n << 32) + (f << 32) / digits;
	return *chance <= 1ull << 32;
}

static bool word_named(struct word w, const struct fault_name *names,
		       uint32_t *value)
{
	for (; names->name; names++)
		if (word_is(w, names->name)) {
			*value = names->value;
			return true;
		}
	return false;
}

/* ------------------------------------------------------- what */

static const struct fault_name kinds[] = {
	{ "wr", FAULT_WR },	{ "qp", FAULT_QP },
	{ "cq", FAULT_CQ },	{ "srq", FAULT_SRQ },
	{ "port", FAULT_PORT }, { "device", FAULT_DEVICE },
	{ "process", FAULT_PROCESS },	{ "packet", FAULT_PACKET },
	{ 0 },
};

/* Parse the name of a call, or a prefix and "*". */
static bool parse_calls(struct parse *p)
{
	struct word w = p->word;
	bool any = w.len && w.text[w.len - 1] == '*', found = false;
	uint32_t i;

	if (any && w.len == 1)
		return refuse(p, "write ibv_* or rdma_*: verbs and rdma_cm "
				 "calls are counted separately");

	for (i = 0; i < FAULT_CALLS; i++) {
		if (any ? strncmp(fault_call_name[i], w.text, w.len - 1) :
			  !word_is(w, fault_call_name[i]))
			continue;
		p->r->calls[i / 64] |= 1ull << i % 64;
		found = true;
	}
	p->r->what = FAULT_CALL;
	if (found)
		return true;
	near_begin(p, w);
	near_names(p, kinds);
	for (i = 0; i < FAULT_CALLS; i++)
		nearest_try(&p->near, fault_call_name[i]);
	return refuse(p, "not a call that a rule can name, nor wr, packet, "
			 "qp, cq, srq, port, device or process");
}

static bool parse_what(struct parse *p)
{
	uint32_t what;

	if (!word_named(p->word, kinds, &what))
		return parse_calls(p);
	p->r->what = what;
	return true;
}

/* ------------------------------------------------------- keys */

static bool key_ops(struct fault_rule *r, struct word list)
{
	struct word w, rest = list;
	uint32_t op;

	do {
		w = word_cut(rest, ',', &rest);
		if (!word_named(w, fault_ops, &op))
			return false;
		r->ops |= FAULT_OP(op);
	} while (rest.text);
	return true;
}

/* Store a name, in a zeroed array. */
static bool word_name(struct word w, char *name, size_t room)
{
	if (!w.len || w.len >= room)
		return false;
	memcpy(name, w.text, w.len);
	return true;
}

static bool key_prog(struct fault_rule *r, struct word w)
{
	return word_name(w, r->prog, sizeof(r->prog));
}

static bool key_host(struct fault_rule *r, struct word w)
{
	return word_name(w, r->host, sizeof(r->host));
}

static bool key_dev(struct fault_rule *r, struct word w)
{
	return word_name(w, r->device, sizeof(r->device));
}

static bool key_link(struct fault_rule *r, struct word w)
{
	return word_name(w, r->link, sizeof(r->link));
}

static bool key_ready(struct fault_rule *r, struct word w)
{
	uint64_t n;

	if (!word_number(w, 3600000, &n) || !n)
		return false;
	r->ready = (uint32_t)n;
	return true;
}

static bool key_at(struct fault_rule *r, struct word w)
{
	static const struct fault_name names[] = {
		{ "post", FAULT_AT_POST },
		{ "recv", FAULT_AT_RECV },
		{ "completion", FAULT_AT_COMPLETION },
		{ 0 },
	};
	uint32_t at;

	if (!word_named(w, names, &at))
		return false;
	r->at = at;
	return true;
}

static bool key_qp(struct fault_rule *r, struct word w)
{
	uint64_t n;

	r->one_qp = word_number(w, 0xffffff, &n);
	r->qpn = r->one_qp ? n : 0;
	return r->one_qp;
}

static bool key_type(struct fault_rule *r, struct word w)
{
	uint32_t type;

	if (!word_named(w, fault_types, &type))
		return false;
	r->types = FAULT_TYPE(type);
	return true;
}

static bool key_wr_id(struct fault_rule *r, struct word w)
{
	r->one_wr_id = word_number(w, UINT64_MAX, &r->wr_id);
	return r->one_wr_id;
}

#define COUNT_MAX (1ull << 48) /* limit of nth=, every= and times= */

static bool count(struct word w, uint64_t *n)
{
	return word_number(w, COUNT_MAX, n) && *n;
}

static bool key_nth(struct fault_rule *r, struct word w)
{
	return count(w, &r->nth);
}

static bool key_every(struct fault_rule *r, struct word w)
{
	return count(w, &r->every);
}

static bool key_times(struct fault_rule *r, struct word w)
{
	return count(w, &r->times);
}

static bool key_p(struct fault_rule *r, struct word w)
{
	return word_chance(w, &r->probability);
}

static bool key_ms(struct fault_rule *r, struct word w)
{
	r->at = FAULT_AT_MS;
	return word_number(w, 1000000000, &r->ms);
}

#define OF(what) (1u << FAULT_##what)
#define EVENTS (OF(QP) | OF(CQ) | OF(SRQ) | OF(PORT) | OF(DEVICE) | OF(PROCESS))

static const struct key {
	const char *name;
	bool (*take)(struct fault_rule *r, struct word value);
	uint32_t of; /* bits of enum fault_what: rules that allow it */
	const char *wants; /* error message for an invalid value */
} keys[] = {
	{ "at", key_at, EVENTS, "at= must be post, recv or completion" },
	{ "dev", key_dev, ~OF(PACKET), "dev= must be the name of a device" },
	{ "every", key_every, ~0u, "every= must be a number, 1 or more" },
	{ "host", key_host, ~OF(PACKET), "host= must be the name of a host" },
	{ "link", key_link, OF(PORT),
	  "link= must be a device, a switch, or a port of a switch" },
	{ "ms", key_ms, EVENTS, "ms= must be a number of milliseconds" },
	{ "nth", key_nth, ~0u, "nth= must be a number, 1 or more" },
	{ "op", key_ops, EVENTS | OF(WR),
	  "op= must be SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, "
	  "RDMA_WRITE_WITH_IMM, RDMA_READ, ATOMIC_CMP_AND_SWP, "
	  "ATOMIC_FETCH_AND_ADD, LOCAL_INV, BIND_MW, FLUSH or ATOMIC_WRITE, "
	  "or a comma-separated list of these" },
	{ "p", key_p, ~0u, "p= must be a number from 0 to 1" },
	{ "prog", key_prog, ~0u, "prog= must be the name of a program" },
	{ "qp", key_qp, ~0u, "qp= must be a QP number" },
	{ "ready", key_ready, OF(PORT), "ready= must be 1 to 3600000 (ms)" },
	{ "times", key_times, ~0u, "times= must be a number, 1 or more" },
	{ "type", key_type, ~0u,
	  "type= must be RC, UC, UD, XRC_SEND or XRC_RECV" },
	{ "wr_id", key_wr_id, EVENTS | OF(WR), "wr_id= must be a number" },
};

static bool parse_key(struct parse *p)
{
	struct word value, name = word_cut(p->word, '=', &value);
	unsigned int i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!word_is(name, keys[i].name))
			continue;
		if (!(keys[i].of & 1u << p->r->what))
			return refuse(p, "not a key of this kind of rule");
		return (value.text && keys[i].take(p->r, value)) ||
		       refuse(p, keys[i].wants);
	}
	near_begin(p, name);
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		nearest_try(&p->near, keys[i].name);
	return refuse(p, "unknown key; valid are prog, host, dev, link, qp, "
			 "type, op, wr_id, nth, every, p, times, at, ms and "
			 "ready");
}

/* ------------------------------------------------------- effects */

/* Return true if all calls of the rule are in the range @first to @last. */
static bool calls_within(const struct fault_rule *r, uint32_t first,
			 uint32_t last)
{
	uint32_t i;

	for (i = 0; i < FAULT_CALLS; i++)
		if (r->calls[i / 64] >> i % 64 & 1 && (i < first || i > last))
			return false;
	return true;
}

static bool calls_are(const struct fault_rule *r, enum fault_call call)
{
	return calls_within(r, call, call);
}

static bool effect_is(struct parse *p, enum fault_effect effect, uint32_t value)
{
	p->r->effect = effect;
	p->r->value = value;
	return true;
}

/* Parse an rdma_cm effect.  @value is the part after "=". */
static bool effect_rdma(struct parse *p, struct word name, struct word value)
{
	const struct fault_rule *r = p->r;
	uint64_t reason = 28; /* IB 12.6.7.2: consumer reject */
	uint32_t err = ETIMEDOUT;

	if (word_is(name, "ADDR_ERROR") && calls_are(r, FAULT_rdma_resolve_addr))
		p->r->effect = FAULT_ADDR_ERROR;
	else if (word_is(name, "ROUTE_ERROR") &&
		 calls_are(r, FAULT_rdma_resolve_route))
		p->r->effect = FAULT_ROUTE_ERROR;
	else if (!calls_are(r, FAULT_rdma_connect))
		return refuse(p, "not an errno name; rdma_resolve_addr also "
				 "has ADDR_ERROR, rdma_resolve_route "
				 "ROUTE_ERROR, and rdma_connect REJECTED, "
				 "UNREACHABLE and SILENT");
	else if (word_is(name, "UNREACHABLE"))
		p->r->effect = FAULT_UNREACHABLE;
	else if (word_is(name, "SILENT") && !value.text)
		return effect_is(p, FAULT_SILENT, 0);
	else if (word_is(name, "REJECTED"))
		return !value.text || word_number(value, 255, &reason) ?
			       effect_is(p, FAULT_REJECTED, reason) :
			       refuse(p, "REJECTED= must be 0 to 255");
	else
		return refuse(p, "not an errno name, REJECTED, UNREACHABLE or "
				 "SILENT");
	if (value.text && !word_named(value, fault_errnos, &err))
		return refuse(p, "the value after = must be an errno name");
	p->r->value = err;
	return true;
}

static bool effect_call(struct parse *p, struct word name, struct word value)
{
	struct fault_rule *r = p->r;
	uint32_t err;

	if (!value.text && word_named(name, fault_errnos, &err)) {
		/* a kernel reports these by an event, the call succeeds */
		r->effect = FAULT_ERRNO;
		if (err == ETIMEDOUT && calls_are(r, FAULT_rdma_resolve_addr))
			r->effect = FAULT_ADDR_ERROR;
		if (err == ETIMEDOUT && calls_are(r, FAULT_rdma_resolve_route))
			r->effect = FAULT_ROUTE_ERROR;
		if (err == ETIMEDOUT && calls_are(r, FAULT_rdma_connect))
			r->effect = FAULT_UNREACHABLE;
		r->value = err;
		return true;
	}
	if (!calls_within(r, FAULT_rdma_accept, FAULT_CALLS - 1)) {
		near_begin(p, name);
		near_names(p, fault_errnos);
		return refuse(p, "the effect must be an errno name, such as "
				 "ENOMEM");
	}
	return effect_rdma(p, name, value);
}

/*
 * Parse a completion status.  If the rule has no op= or type=, restrict it to
 * the WRs that can complete with that status; other WRs are not counted.
 */
static bool effect_status(struct parse *p, struct word name, struct word value)
{
	const struct fault_status *s;
	struct fault_rule *r = p->r;

	for (s = fault_statuses; s->name; s++)
		if (!value.text && word_is(name, s->name))
			break;
	if (!s->name) {
		near_begin(p, name);
		for (s = fault_statuses; s->name; s++)
			nearest_try(&p->near, s->name);
		return refuse(p, "not the status of a work request that fails");
	}
	if (r->ops & ~s->ops)
		return refuse(p, "WRs of this op= cannot have this status");
	if (r->types & ~s->types)
		return refuse(p, "WRs of this type= cannot have this status");
	r->ops = r->ops ? r->ops : s->ops;
	r->types = r->types ? r->types : s->types;
	return effect_is(p, FAULT_STATUS, s->status);
}

static bool effect_packet(struct parse *p, struct word name, struct word value)
{
	uint32_t kind;

	if (value.text || !word_named(name, fault_transmits, &kind)) {
		near_begin(p, name);
		near_names(p, fault_transmits);
		return refuse(p, "the effect must be LOST, DUPLICATED, LATE or "
				 "DAMAGED");
	}
	return effect_is(p, FAULT_TRANSMIT, kind);
}

static bool effect_port(struct parse *p, struct word name, struct word value)
{
	uint64_t ms = 0, gbps = 0;

	if (word_is(name, "DOWN"))
		return !value.text || (word_number(value, 3600000, &ms) && ms) ?
			       effect_is(p, FAULT_DOWN, ms) :
			       refuse(p, "DOWN= must be 1 to 3600000 (ms)");
	if (word_is(name, "UP") && !value.text)
		return effect_is(p, FAULT_UP, 0);
	if (word_is(name, "RATE"))
		return !value.text || (word_number(value, 1200, &gbps) &&
				       gbps) ?
			       effect_is(p, FAULT_RATE, gbps) :
			       refuse(p, "RATE= must be 1 to 1200 (Gb/s)");
	return refuse(p, "the effect must be DOWN, DOWN=MS, UP, RATE=GBPS, "
			 "RATE or an event of the port");
}

static bool effect_process(struct parse *p, struct word name, struct word value)
{
	uint64_t ms;

	if (word_is(name, "KILL") && !value.text)
		return effect_is(p, FAULT_KILL, 0);
	if (word_is(name, "STOP") && !value.text)
		return effect_is(p, FAULT_STOP, 0);
	if (word_is(name, "SLEEP") && word_number(value, 3600000, &ms))
		return effect_is(p, FAULT_SLEEP, ms);
	return refuse(p, "the effect must be KILL, STOP or SLEEP=MS");
}

static bool effect_event(struct parse *p, struct word name, struct word value)
{
	const struct fault_event *e;

	for (e = fault_events; e->name; e++)
		if (!value.text && e->what == p->r->what &&
		    word_is(name, e->name))
			return effect_is(p, FAULT_EVENT, e->event);
	near_begin(p, name);
	for (e = fault_events; e->name; e++)
		if (e->what == p->r->what)
			nearest_try(&p->near, e->name);
	if (p->r->what == FAULT_PORT)
		return effect_port(p, name, value);
	if (p->r->what == FAULT_PROCESS)
		return effect_process(p, name, value);
	return refuse(p, "not an event of this kind of object");
}

static bool parse_effect(struct parse *p)
{
	struct word value, name = word_cut(p->word, '=', &value);

	switch (p->r->what) {
	case FAULT_CALL:
		return effect_call(p, name, value);
	case FAULT_WR:
		return effect_status(p, name, value);
	case FAULT_PACKET:
		return effect_packet(p, name, value);
	default:
		return effect_event(p, name, value);
	}
}

/* ------------------------------------------------------- the whole */

/* Return true if one of the calls has a QP as its first argument. */
static bool calls_have_qp(const struct fault_rule *r)
{
	static const uint32_t with_qp[] = {
#define VERB(name)
#define QP_VERB(name) FAULT_ibv_##name,
#define RDMA(name)
#include "fault_calls.h"
	};
	size_t i;

	for (i = 0; i < sizeof(with_qp) / sizeof(*with_qp); i++)
		if (r->calls[with_qp[i] / 64] >> with_qp[i] % 64 & 1)
			return true;
	return false;
}

/* The same for a rule with ms=. */
static bool parse_check_ms(struct parse *p)
{
	struct fault_rule *r = p->r;
	bool chance = r->probability != 1ull << 32;

	if (r->nth || r->every)
		return refuse(p, "ms= cannot be combined with nth= or every=");
	if (!r->ms && (chance || r->times != UINT64_MAX))
		return refuse(p, "ms= must be 1 or more for p= and times=");
	if (r->effect == FAULT_SLEEP)
		return refuse(p, "ms= cannot be combined with SLEEP, which "
				 "delays a call");
	if (r->one_wr_id || r->ops)
		return refuse(p, "ms= cannot be combined with op= or wr_id=");
	if ((r->one_qp || r->types) && r->what != FAULT_QP)
		return refuse(p, "ms= with qp= or type= requires a qp rule");
	if (!chance && r->times == UINT64_MAX)
		r->times = 1;
	return true;
}

/* The same for the keys about devices and links. */
static bool parse_check_link(struct parse *p)
{
	const struct fault_rule *r = p->r;

	if (*r->device && r->what == FAULT_CALL &&
	    !calls_within(r, 0, FAULT_rdma_accept - 1))
		return refuse(p, "dev= cannot be combined with calls of "
				 "rdma_cm");
	if (*r->link && r->effect == FAULT_EVENT)
		return refuse(p, "link= requires DOWN, UP or RATE");
	if (r->ready && (r->effect != FAULT_DOWN || !r->value))
		return refuse(p, "ready= requires DOWN=MS");
	return true;
}

/*
 * Check that keys and effect can be combined, and set the default of times.
 * p->word is the whole rule.
 */
static bool parse_check(struct parse *p)
{
	struct fault_rule *r = p->r;
	bool event = 1u << r->what & EVENTS;
	int whens = !!r->nth + !!r->every + (r->probability != 1ull << 32);
	bool one = r->one_qp || r->types || r->one_wr_id || r->ops;

	if (whens > 1)
		return refuse(p, "nth=, every= and p= cannot be combined");
	if (r->what == FAULT_CALL && one && !calls_have_qp(r))
		return refuse(p, "qp= and type= need verbs whose first "
				 "argument is a QP");
	if (!parse_check_link(p))
		return false;
	if (event && r->at == FAULT_AT_MS)
		return parse_check_ms(p);
	if (r->at != FAULT_AT_POST && event && r->ops)
		return refuse(p, "op= requires at=post");
	if (r->what == FAULT_SRQ &&
	    (r->at == FAULT_AT_POST || r->at == FAULT_AT_COMPLETION))
		return refuse(p, "an srq rule counts receives: use at=recv");
	if (r->nth && r->times == UINT64_MAX)
		r->times = 1;
	return true;
}

static bool parse_rule(struct parse *p)
{
	struct word all = p->word, rest;

	*p->r = (struct fault_rule){
		.times = UINT64_MAX,
		.probability = 1ull << 32,
		.at = FAULT_AT_COMPLETION,
	};
	if (all.len >= FAULT_TEXT)
		return refuse(p, "the rule is too long");
	memcpy(p->r->text, all.text, all.len);
	p->word = word_cut(all, ':', &rest);
	if (!rest.text)
		return refuse(p, "a rule is WHAT[:KEY=VALUE]...:EFFECT");
	if (!parse_what(p))
		return false;
	if (p->r->what == FAULT_SRQ)
		p->r->at = FAULT_AT_RECV;
	for (;;) {
		p->word = word_cut(rest, ':', &rest);
		if (!rest.text)
			break;
		if (!parse_key(p))
			return false;
	}
	if (!parse_effect(p))
		return false;
	p->word = all;
	return parse_check(p);
}

static const char blank[] = " \t\r";

/* Remove trailing white space. */
static struct word word_trim(struct word w)
{
	while (w.len && memchr(blank, w.text[w.len - 1], sizeof(blank) - 1))
		w.len--;
	return w;
}

bool faults_parse(struct faults *f, const char *text, char *why, size_t len)
{
	char meant[NEAREST_TEXT];
	struct parse p;
	struct word rule;

	for (; *text; text += *text != 0) {
		text += strspn(text, blank);
		rule.text = text;
		rule.len = strcspn(text, *text == '#' ? "\n" : ";\n");
		text += rule.len;
		rule = word_trim(rule);
		if (!rule.len || *rule.text == '#')
			continue;
		p = (struct parse){ .word = rule };
		if (f->n == FAULT_RULES) {
			p.wrong = "too many rules";
		} else {
			p.r = &f->rule[f->n];
			if (parse_rule(&p)) {
				p.r->index = f->n++;
				continue;
			}
		}
		snprintf(why, len, "\"%.*s\"%s%.*s%s: %s%s", (int)p.word.len,
			 p.word.text, rule.len != p.word.len ? " in \"" : "",
			 rule.len != p.word.len ? (int)rule.len : 0, rule.text,
			 rule.len != p.word.len ? "\"" : "", p.wrong,
			 nearest_text(&p.near, meant));
		return false;
	}
	return true;
}
