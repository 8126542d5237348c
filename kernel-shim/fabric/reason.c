// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reasons of failed WRs (shared/reason.h): storing them in shared memory, and
 * formatting them with the texts of shared/reasons.h.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/plural.h"
#include "reason.h"
#include "shared/layout.h"
#include "shared/opcode.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const struct reason_words {
	const char *message, *source, *cause;
} reasons[] = {
	[REASON_NONE] = { "the reason is not recorded", "-", "-" },
#define REASON(name, message, source, cause) \
	[REASON_##name] = { message, source, cause },
#include "shared/reasons.h"
#undef REASON
};

/* ------------------------------------------------------- storing */

enum { KEPT_NONE, KEPT_WRITTEN, KEPT_THERE };

void reason_keep(struct urxe_kept_reason *to, const struct urxe_reason *r)
{
	uint64_t word[REASON_WORDS];
	uint32_t none = KEPT_NONE;
	unsigned int i;

	if (!cas_acquire(&to->state, &none, KEPT_WRITTEN))
		return;
	memcpy(word, r, sizeof(word));
	for (i = 0; i < REASON_WORDS; i++)
		store_relaxed(&to->word[i], word[i]);
	store_release(&to->state, KEPT_THERE);
}

bool reason_kept(const struct urxe_kept_reason *from, struct urxe_reason *r)
{
	uint64_t word[REASON_WORDS];
	unsigned int i;

	if (load_acquire(&from->state) != KEPT_THERE)
		return false;
	for (i = 0; i < REASON_WORDS; i++)
		word[i] = load_relaxed(&from->word[i]);
	memcpy(r, word, sizeof(word));
	return true;
}

void reason_forget(struct urxe_kept_reason *of)
{
	store_relaxed(&of->state, KEPT_NONE);
}

/* ------------------------------------------------------- formatting */

static const char *name_of(const char *const *name, size_t n, uint64_t i)
{
	return i < n && name[i] ? name[i] : "?";
}

const char *reason_state_name(uint64_t state)
{
	static const char *const name[] = { "RESET", "INIT", "RTR", "RTS",
					    "SQD",   "SQE",  "ERR" };

	return name_of(name, COUNT(name), state);
}

const char *reason_cm_event_name(uint64_t event)
{
	static const char *const name[] = {
		"ADDR_RESOLVED",  "ADDR_ERROR",	       "ROUTE_RESOLVED",
		"ROUTE_ERROR",	  "CONNECT_REQUEST",   "CONNECT_RESPONSE",
		"CONNECT_ERROR",  "UNREACHABLE",       "REJECTED",
		"ESTABLISHED",	  "DISCONNECTED",      "DEVICE_REMOVAL",
		"MULTICAST_JOIN", "MULTICAST_ERROR",   "ADDR_CHANGE",
		"TIMEWAIT_EXIT",  "ADDRINFO_RESOLVED", "ADDRINFO_ERROR",
		"USER",		  "INTERNAL",
	};

	return name_of(name, COUNT(name), event);
}

const char *reason_op_name(uint64_t op)
{
	static const char *const name[] = {
		[IBV_WR_RDMA_WRITE] = "RDMA_WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA_WRITE_WITH_IMM",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
		[IBV_WR_RDMA_READ] = "RDMA_READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "ATOMIC_CMP_AND_SWP",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "ATOMIC_FETCH_AND_ADD",
		[IBV_WR_LOCAL_INV] = "LOCAL_INV",
		[IBV_WR_BIND_MW] = "BIND_MW",
		[IBV_WR_SEND_WITH_INV] = "SEND_WITH_INV",
		[URXE_WR_FLUSH] = "FLUSH",
		[URXE_WR_ATOMIC_WRITE] = "ATOMIC_WRITE",
	};

	return name_of(name, COUNT(name), op);
}

const char *reason_status_name(uint64_t status)
{
#define STATUS(name) [IBV_WC_##name] = #name
	static const char *const name[] = {
		STATUS(SUCCESS),	   STATUS(LOC_LEN_ERR),
		STATUS(LOC_QP_OP_ERR),	   STATUS(LOC_EEC_OP_ERR),
		STATUS(LOC_PROT_ERR),	   STATUS(WR_FLUSH_ERR),
		STATUS(MW_BIND_ERR),	   STATUS(BAD_RESP_ERR),
		STATUS(LOC_ACCESS_ERR),	   STATUS(REM_INV_REQ_ERR),
		STATUS(REM_ACCESS_ERR),	   STATUS(REM_OP_ERR),
		STATUS(RETRY_EXC_ERR),	   STATUS(RNR_RETRY_EXC_ERR),
		STATUS(LOC_RDD_VIOL_ERR),  STATUS(REM_INV_RD_REQ_ERR),
		STATUS(REM_ABORT_ERR),	   STATUS(INV_EECN_ERR),
		STATUS(INV_EEC_STATE_ERR), STATUS(FATAL_ERR),
		STATUS(RESP_TIMEOUT_ERR),  STATUS(GENERAL_ERR),
	};
#undef STATUS

	return name_of(name, COUNT(name), status);
}

struct text {
	char *buf;
	size_t n, room;
};

static void __attribute__((format(printf, 2, 3)))
text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->n, t->room - t->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->n += n;
	if (t->n >= t->room)
		t->n = t->room - 1;
}

/* Append access flags, as in "LOCAL_WRITE and REMOTE_READ"; none if 0. */
static void text_add_access(struct text *t, uint64_t access, const char *none)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} rights[] = {
		{ IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE" },
		{ IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE" },
		{ IBV_ACCESS_REMOTE_READ, "REMOTE_READ" },
		{ IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC" },
		{ URXE_ACCESS_FLUSH_GLOBAL, "FLUSH_GLOBAL" },
		{ URXE_ACCESS_FLUSH_PERSISTENT, "FLUSH_PERSISTENT" },
	};
	const char *between = "";
	unsigned int i;

	for (i = 0; i < COUNT(rights); i++)
		if (access & rights[i].bit) {
			text_add(t, "%s%s", between, rights[i].name);
			between = " and ";
		}
	if (!*between)
		text_add(t, "%s", none);
}

static void text_add_key(struct text *t, uint64_t value)
{
	static const char *const whose[] = {
		[REASON_RKEY] = "rkey",
		[REASON_LKEY_SEND] = "lkey of a send",
		[REASON_LKEY_RECV] = "lkey of a receive",
	};

	text_add(t, "%s 0x%" PRIx32, name_of(whose, COUNT(whose), value >> 32),
		 (uint32_t)value);
}

/* The name of an interface, without bytes that a terminal may interpret. */
static void text_add_interface(struct text *t, const uint64_t value[2])
{
	char name[2 * sizeof(*value)];
	size_t i;

	memcpy(name, value, sizeof(name));
	for (i = 0; i < sizeof(name) && name[i]; i++)
		text_add(t, "%c",
			 isgraph((unsigned char)name[i]) ? name[i] : '?');
}

static void text_add_value(struct text *t, char letter, uint64_t value)
{
	switch (letter) {
	case 'u':
		text_add(t, "%" PRIu64, value);
		break;
	case 'b':
		text_add(t, "%" PRIu64 " byte%s", value, plural(value));
		break;
	case 'x':
		text_add(t, "0x%" PRIx64, value);
		break;
	case 'k':
		text_add_key(t, value);
		break;
	case 'a':
		text_add_access(t, value, "only local reads");
		break;
	case 'q':
		text_add_access(t, value, "0");
		break;
	case 's':
		text_add(t, "%s", reason_state_name(value));
		break;
	case 'e':
		text_add(t, "%s", strerror((uint16_t)value));
		break;
	}
}

static const struct reason_words *reason_words(const struct urxe_reason *r)
{
	return &reasons[r->code < REASONS ? r->code : REASON_NONE];
}

void reason_text(const struct urxe_reason *r, char *buf, size_t room)
{
	struct text t = { .buf = buf, .room = room };
	const char *s = reason_words(r)->message;
	unsigned int used = 0;

	buf[0] = 0;
	for (; *s; s++) {
		if (*s != '%') {
			text_add(&t, "%c", *s);
		} else if (s[1] == 'i' && used + 1 < REASON_VALUES) {
			text_add_interface(&t, &r->value[used]);
			used += 2;
			s++;
		} else if (used < REASON_VALUES) {
			text_add_value(&t, *++s, r->value[used++]);
		}
	}
}

const char *reason_source(const struct urxe_reason *r)
{
	return reason_words(r)->source;
}

const char *reason_cause(const struct urxe_reason *r)
{
	return reason_words(r)->cause;
}
