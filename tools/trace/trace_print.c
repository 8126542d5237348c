// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Text output of records. trace/events.h describes the values of each event
 * as a string of "name:type" fields, which field_next() parses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/pabi/pabi.h"
#include "common/commands.h"
#include "trace_mad.h"
#include "wire/address.h"
#include "trace_print.h"
#include "trace_wire.h"

static const struct {
	const char *name, *values;
} events[] = {
#define EVENT(name, called, values) { called, values },
#include "trace/events.h"
#undef EVENT
};

/* ------------------------------------------------------- names of values */

struct names {
	const char *type; /* type in events.h */
	bool bits;
	const char *name[25];
};

static const struct names tables[] = {
	{ "op",
	  false,
	  { "RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "SEND", "SEND_WITH_IMM",
	    "RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD",
	    "LOCAL_INV", "BIND_MW", "SEND_WITH_INV", "TSO",
	    "DRIVER1", [14] = "FLUSH", [15] = "ATOMIC_WRITE" } },
	{ "send",
	  true,
	  { "FENCE", "SIGNALED", "SOLICITED", "INLINE", "IP_CSUM" } },
	{ "wc", true, { "GRH", "WITH_IMM", [3] = "WITH_INV" } },
	{ "state",
	  false,
	  { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" } },
	{ "type",
	  false,
	  { [2] = "RC",
	    "UC",
	    "UD",
	    [8] = "RAW_PACKET",
	    "XRC_SEND",
	    "XRC_RECV" } },
	{ "access",
	  true,
	  { "LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC",
	    "MW_BIND", "ZERO_BASED", "ON_DEMAND", "HUGETLB", "FLUSH_GLOBAL",
	    "FLUSH_PERSISTENT" } },
	{ "mtu", false, { [1] = "256", "512", "1024", "2048", "4096" } },
	{ "status", false, { "SUCCESS",		  "LOC_LEN_ERR",
			     "LOC_QP_OP_ERR",	  "LOC_EEC_OP_ERR",
			     "LOC_PROT_ERR",	  "WR_FLUSH_ERR",
			     "MW_BIND_ERR",	  "BAD_RESP_ERR",
			     "LOC_ACCESS_ERR",	  "REM_INV_REQ_ERR",
			     "REM_ACCESS_ERR",	  "REM_OP_ERR",
			     "RETRY_EXC_ERR",	  "RNR_RETRY_EXC_ERR",
			     "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
			     "REM_ABORT_ERR",	  "INV_EECN_ERR",
			     "INV_EEC_STATE_ERR", "FATAL_ERR",
			     "RESP_TIMEOUT_ERR",  "GENERAL_ERR" } },
	{ "event",
	  false,
	  { "CQ_ERR",
	    "QP_FATAL",
	    "QP_REQ_ERR",
	    "QP_ACCESS_ERR",
	    "COMM_EST",
	    "SQ_DRAINED",
	    "PATH_MIG",
	    "PATH_MIG_ERR",
	    "DEVICE_FATAL",
	    "PORT_ACTIVE",
	    "PORT_ERR",
	    "LID_CHANGE",
	    "PKEY_CHANGE",
	    "SM_CHANGE",
	    "SRQ_ERR",
	    "SRQ_LIMIT_REACHED",
	    "QP_LAST_WQE_REACHED",
	    "CLIENT_REREGISTER",
	    "GID_CHANGE",
	    "WQ_FATAL" } },
	{ "cm",
	  false,
	  { "create_id",     "destroy_id",   "bind_ip",	   "resolve_ip",
	    "resolve_route", "query_route",  "connect",	   "listen",
	    "accept",	     "reject",	     "disconnect", "init_qp_attr",
	    "get_event",     "get_option",   "set_option", "notify",
	    "join_ip_mcast", "leave_mcast",  "migrate_id", "query",
	    "bind",	     "resolve_addr", "join_mcast", "resolve_ib_service",
	    "write_cm_event" } },
	{ "cmevent",
	  false,
	  { "ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR",
	    "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR",
	    "UNREACHABLE", "REJECTED", "ESTABLISHED", "DISCONNECTED",
	    "DEVICE_REMOVAL", "MULTICAST_JOIN", "MULTICAST_ERROR",
	    "ADDR_CHANGE", "TIMEWAIT_EXIT" } },
	{ "wait",
	  false,
	  { [1] = "a receive of the responder (RNR)",
	    "a response of the responder" } },
};

static const char *const receives[] = { "RECV", "RECV_RDMA_WITH_IMM" };
static const char *const completions[] = {
	"SEND",	   "RDMA_WRITE", "RDMA_READ", "COMP_SWAP", "FETCH_ADD",
	"BIND_MW", "LOCAL_INV",	 "TSO",	      "FLUSH",	   "ATOMIC_WRITE",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *wc_opcode(uint64_t op)
{
	if (op >= IBV_WC_RECV && op - IBV_WC_RECV < COUNT(receives))
		return receives[op - IBV_WC_RECV];
	return op < COUNT(completions) ? completions[op] : NULL;
}

static void print_bits(FILE *to, const struct names *t, uint64_t value)
{
	const char *between = "";
	unsigned int i;

	for (i = 0; value && i < COUNT(t->name); i++) {
		if (!(value >> i & 1) || !t->name[i])
			continue;
		fprintf(to, "%s%s", between, t->name[i]);
		between = "|";
		value &= ~(1ull << i);
	}
	if (value || !*between)
		fprintf(to, "%s0x%" PRIx64, between, value);
}

static bool print_named(FILE *to, const char *type, uint64_t value)
{
	unsigned int i;

	for (i = 0; i < COUNT(tables); i++) {
		if (strcmp(tables[i].type, type))
			continue;
		if (tables[i].bits) {
			print_bits(to, &tables[i], value);
			return true;
		}
		if (value >= COUNT(tables[i].name) || !tables[i].name[value])
			return false;
		fputs(tables[i].name[value], to);
		return true;
	}
	return false;
}

static void print_gid(FILE *to, const uint64_t value[2])
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr gid;

	memcpy(&gid, value, sizeof(gid));
	fputs(inet_ntop(AF_INET6, &gid, text, sizeof(text)), to);
}

static void print_value(FILE *to, const char *type, const uint64_t *value)
{
	const char *name;

	if (!strcmp(type, "u"))
		fprintf(to, "%" PRIu64, *value);
	else if (!strcmp(type, "d"))
		fprintf(to, "%" PRId64, (int64_t)*value);
	else if (!strcmp(type, "imm"))
		fprintf(to, "0x%x", ntohl((uint32_t)*value));
	else if (!strcmp(type, "gid"))
		print_gid(to, value);
	else if (!strcmp(type, "errno"))
		fprintf(to, "%" PRIu64 " (%s)", *value, strerror((int)*value));
	else if (!strcmp(type, "wcop") && (name = wc_opcode(*value)))
		fputs(name, to);
	else if (!print_named(to, type, *value))
		fprintf(to, "0x%" PRIx64, *value);
}

void trace_print_value(FILE *to, const char *type, uint64_t value)
{
	print_value(to, type, &value);
}

/* ------------------------------------------------------- fields */

/* A value of an event: "name:type", or "name?:type" if 0 means none. */
struct field {
	char name[24], type[12];
	bool optional;
	unsigned int index; /* index of its first value */
};

static unsigned int field_values(const char *type)
{
	if (!strcmp(type, "mad"))
		return MAD_BYTES / sizeof(uint64_t);
	if (!strcmp(type, "name"))
		return TRACE_NAME_ROOM / sizeof(uint64_t);
	return strcmp(type, "gid") ? !!*type : 2;
}

/*
 * Parse the next field of *spec and advance *spec. The caller starts with a
 * zeroed @f.
 */
static bool field_next(const char **spec, struct field *f)
{
	int n = 0;

	f->index += field_values(f->type);
	if (sscanf(*spec, " %23[^: ]:%11[a-z]%n", f->name, f->type, &n) != 2)
		return false;
	*spec += n;
	f->optional = f->name[strlen(f->name) - 1] == '?';
	if (f->optional)
		f->name[strlen(f->name) - 1] = 0;
	return true;
}

bool trace_data(const struct trace_record *r, struct trace_data *d)
{
	unsigned int head = 5; /* wr_id, op, psn, offset, bytes */

	if (r->what != TRACE_DATA || r->n < head ||
	    r->value[4] > (r->n - head) * sizeof(*r->value))
		return false;
	*d = (struct trace_data){
		.wr_id = r->value[0],
		.op = r->value[1],
		.psn = (uint32_t)r->value[2],
		.offset = r->value[3],
		.n = (size_t)r->value[4],
		.byte = (const uint8_t *)(r->value + head),
	};
	return true;
}

/* number of payload bytes printed */
#define DATA_SHOWN 32

static void print_data(FILE *to, const struct trace_record *r)
{
	struct trace_data d;
	size_t i;

	if (!trace_data(r, &d))
		return;
	for (i = 0; i < d.n && i < DATA_SHOWN; i++)
		fprintf(to, "%02x", d.byte[i]);
	if (d.n > DATA_SHOWN)
		fputs("...", to);
}

/*
 * Whether an optional value means none. A GID is none only if both halves are
 * 0: the first half of an IPv4-mapped GID is 0.
 */
static bool field_is_none(const struct trace_record *r, const struct field *f)
{
	return !r->value[f->index] &&
	       (strcmp(f->type, "gid") || !r->value[f->index + 1]);
}

static bool field_is_present(const struct trace_record *r,
			     const struct field *f)
{
	return f->index + field_values(f->type) <= r->n;
}

static bool field_find(const struct trace_record *r, const char *name,
		       struct field *f)
{
	const char *spec;

	if (r->what >= COUNT(events))
		return false;
	spec = events[r->what].values;
	memset(f, 0, sizeof(*f));
	while (field_next(&spec, f))
		if (!strcmp(f->name, name))
			return field_is_present(r, f);
	return false;
}

bool trace_value(const struct trace_record *r, const char *name, uint64_t *out)
{
	struct field f;

	if (!field_find(r, name, &f))
		return false;
	*out = r->value[f.index];
	return true;
}

uint64_t trace_number(const struct trace_record *r, const char *name)
{
	uint64_t v;

	return trace_value(r, name, &v) ? v : 0;
}

bool trace_gid(const struct trace_record *r, const char *name, uint8_t gid[16])
{
	struct field f;

	if (!field_find(r, name, &f) || strcmp(f.type, "gid"))
		return false;
	memcpy(gid, &r->value[f.index], 16);
	return true;
}

bool trace_name(const struct trace_record *r, const char *field,
		char name[TRACE_NAME_ROOM])
{
	struct field f;
	char *c;

	*name = '\0';
	if (!field_find(r, field, &f) || strcmp(f.type, "name"))
		return false;
	memcpy(name, &r->value[f.index], TRACE_NAME_ROOM);
	name[TRACE_NAME_ROOM - 1] = '\0';
	for (c = name; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	return *name;
}

static void print_field(FILE *to, const struct trace_record *r,
			const struct field *f)
{
	char name[TRACE_NAME_ROOM];

	if (!strcmp(f->type, "name") && trace_name(r, f->name, name))
		fputs(name, to);
	else if (!strcmp(f->type, "mad"))
		trace_mad_print(to, (const void *)&r->value[f->index]);
	else if (!strcmp(f->type, "data"))
		print_data(to, r);
	else if (!strcmp(f->type, "packet"))
		trace_packet_print(to, r);
	else
		print_value(to, f->type, &r->value[f->index]);
}

/* Split " name=value name=value", the text of a MAD, into its fields. */
static void each_of_mad(const struct trace_record *r, char *text,
			void (*each)(void *arg, const char *name,
				     const char *text),
			void *arg)
{
	char *rest, *word, *value;

	if (trace_mad_name(r))
		each(arg, "message", trace_mad_name(r));
	for (word = strtok_r(text, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest)) {
		value = strchr(word, '=');
		if (!value)
			continue;
		*value = 0;
		each(arg, word, value + 1);
	}
}

int trace_each_value(const struct trace_record *r,
		     void (*each)(void *arg, const char *name,
				  const char *text),
		     void *arg)
{
	struct field f = { .index = 0 };
	const char *spec;
	char *text;
	size_t n;
	FILE *to = open_memstream(&text, &n);

	if (!to)
		return fail(1, "no memory");
	spec = r->what < COUNT(events) ? events[r->what].values : "";
	while (field_next(&spec, &f) && field_is_present(r, &f)) {
		if (f.optional && field_is_none(r, &f))
			continue;
		rewind(to);
		print_field(to, r, &f);
		fputc(0, to);
		if (fflush(to))
			continue;
		if (strcmp(f.type, "mad"))
			each(arg, f.name, text);
		else
			each_of_mad(r, text, each, arg);
	}
	fclose(to);
	free(text);
	return 0;
}

static void print_fields(FILE *to, const struct trace_record *r)
{
	const char *spec = events[r->what].values;
	struct field f = { .index = 0 };

	while (field_next(&spec, &f) && field_is_present(r, &f)) {
		if (f.optional && field_is_none(r, &f))
			continue;
		/* its fields have names of their own */
		if (strcmp(f.type, "mad"))
			fprintf(to, " %s=", f.name);
		print_field(to, r, &f);
	}
}

/* ------------------------------------------------------- calls */

/* What a verb returns: an error code, an object or NULL, or nothing. */
enum answer { ANSWER_CODE, ANSWER_OBJECT, ANSWER_NONE };

static const struct verb {
	enum pabi_op op;
	enum answer answer;
	const char *name, *params;
} verbs[] = {
#define CODE(name, params, args) { PABI_##name, ANSWER_CODE, #name, #args },
#define MAKE(result, name, params, args) \
	{ PABI_##name, ANSWER_OBJECT, #name, #args },
#define NONE(name, params, args) { PABI_##name, ANSWER_NONE, #name, #args },
#define FAST(name, params, args)
#include "abi/pabi/ops.h"
};

/* Indexes of the values of a CALL record. */
enum { CALL_VERB, CALL_RESULT, CALL_NS, CALL_ARGS };

static const struct verb *verb_of(const struct trace_record *r)
{
	unsigned int i;

	if (r->n < CALL_ARGS)
		return NULL;
	for (i = 0; i < COUNT(verbs); i++)
		if (r->value[CALL_VERB] == (uint64_t)verbs[i].op)
			return &verbs[i];
	return NULL;
}

/*
 * Print an argument. Small numbers are decimal, others (addresses)
 * hexadecimal.
 */
static void print_argument(FILE *to, uint64_t value)
{
	fprintf(to, value < 1u << 16 ? "%" PRIu64 : "0x%" PRIx64, value);
}

static void print_call(FILE *to, const struct trace_record *r)
{
	const struct verb *v = verb_of(r);
	const char *name, *end, *between = "";
	unsigned int i;

	if (!v) {
		fputs(" of an unknown verb", to);
		return;
	}
	fprintf(to, " ibv_%s(", v->name);
	name = v->params + 1; /* "(a, b)" */
	for (i = CALL_ARGS; i < r->n && *name; i++) {
		end = name + strcspn(name, ",)");
		fprintf(to, "%s%.*s=", between, (int)(end - name), name);
		print_argument(to, r->value[i]);
		between = ", ";
		name = end + strspn(end, ", )");
	}
	fputc(')', to);
	if (v->answer == ANSWER_OBJECT && !r->value[CALL_RESULT])
		fputs(" = NULL", to);
	else if (v->answer == ANSWER_OBJECT)
		fprintf(to, " = 0x%" PRIx64, r->value[CALL_RESULT]);
	else if (v->answer == ANSWER_CODE && r->value[CALL_RESULT])
		fprintf(to, " = %s", strerror((int)r->value[CALL_RESULT]));
	else if (v->answer == ANSWER_CODE)
		fputs(" = 0", to);
	fprintf(to, " [%" PRIu64 ".%03" PRIu64 " us]", r->value[CALL_NS] / 1000,
		r->value[CALL_NS] % 1000);
}

bool trace_call_ns(const struct trace_record *r, uint64_t *ns)
{
	if (!verb_of(r))
		return false;
	*ns = r->value[CALL_NS];
	return true;
}

const char *trace_call_name(const struct trace_record *r)
{
	const struct verb *v = verb_of(r);

	return v ? v->name : "?";
}

static bool call_failed(const struct trace_record *r)
{
	const struct verb *v = verb_of(r);

	return v && v->answer != ANSWER_NONE &&
	       !r->value[CALL_RESULT] == (v->answer == ANSWER_OBJECT);
}

/* ------------------------------------------------------- lines */

/* Print a GID as an IPv4 or IPv6 address. */
static void print_address(FILE *to, const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];
	const bool v4 = wire_gid_is_ipv4(gid);

	fputs(inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid + 12 : gid, text,
			sizeof(text)),
	      to);
}

/* Print the text of a WHY record. Control characters become '?'. */
static void print_text(FILE *to, const struct trace_record *r)
{
	const char *text = (const char *)r->value;
	size_t i, n = strnlen(text, r->n * sizeof(*r->value));

	fputs(": ", to);
	for (i = 0; i < n; i++)
		fputc((unsigned char)text[i] < ' ' ? '?' : text[i], to);
}

/* Print direction, source, destination and headers of a packet. */
static void print_packet(FILE *to, const struct trace_record *r)
{
	struct trace_packet p;

	if (!trace_packet(r, &p))
		return;
	fputs(p.in ? " in " : " out ", to);
	print_address(to, p.path.sgid);
	fputs(" > ", to);
	print_address(to, p.path.dgid);
	fputs(": ", to);
	trace_packet_print(to, r);
}

void trace_print_what(FILE *to, const struct trace_record *r)
{
	if (r->qpn)
		fprintf(to, "QP 0x%x ", r->qpn);
	fputs(r->what < COUNT(events) ? events[r->what].name : "?", to);
	if (trace_mad_name(r))
		fprintf(to, " %s", trace_mad_name(r));
	if (r->what == TRACE_CALL)
		print_call(to, r);
	else if (r->what == TRACE_WHY)
		print_text(to, r);
	else if (r->what == TRACE_PACKET)
		print_packet(to, r);
	else if (r->what < COUNT(events))
		print_fields(to, r);
}

void trace_print(FILE *to, const struct trace_record *r, uint64_t start)
{
	/* with --follow, a record older than the first may be read later */
	bool before = r->time < start;
	uint64_t since = before ? start - r->time : r->time - start;
	char who[TRACE_WHO];

	trace_who(r->thread, who);
	fprintf(to, "%*s%" PRIu64 ".%09" PRIu64 " %s ", before ? 4 : 3,
		before ? "-" : "", since / 1000000000, since % 1000000000, who);
	trace_print_what(to, r);
	fputc('\n', to);
}

bool trace_is_error(const struct trace_record *r)
{
	uint64_t status;

	switch (r->what) {
	case TRACE_CALL:
		return call_failed(r);
	case TRACE_WHY:
	case TRACE_WAITS:
	case TRACE_AGAIN:
	case TRACE_REFUSED:
	case TRACE_QP_BROKEN:
		return true;
	case TRACE_CM_CALL:
		return trace_value(r, "error", &status) && status;
	case TRACE_CM_SENT:
		return trace_mad_refuses(r);
	case TRACE_PACKET:
		return trace_packet_is_error(r);
	default:
		return trace_value(r, "status", &status) && status;
	}
}
