// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RoCE packets and CM MADs: the first byte of an input selects the kind, the
 * rest is what was received.  If a packet is accepted, the packet that is
 * assembled from its fields must be accepted with equal fields.  The fields
 * of an accepted MAD must lie within it.
 */
#include "parse.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/parse.h"

enum { IP, IP_MENDED, TRANSPORT, MAD, SOLVED, KINDS };

static struct wire_solver solver;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	wire_solver_begin(&solver);
	return 0;
}

static void must(bool right)
{
	if (!right)
		abort();
}

static void again(const struct wire_packet *p)
{
	static uint8_t first[WIRE_MAX_TRANSPORT], second[WIRE_MAX_TRANSPORT];
	struct wire_packet q;
	size_t n;

	must(p->length <= WIRE_MAX_PAYLOAD && p->known == p->length);
	n = (size_t)(wire_put_transport(p, first) - first);
	must(n <= sizeof(first) && !wire_parse(&q, first, n));
	must(q.length == p->length && q.bth.psn == p->bth.psn);
	must((size_t)(wire_put_transport(&q, second) - second) == n);
	must(!memcmp(first, second, n));
}

static void transport(const uint8_t *data, size_t n)
{
	struct wire_packet p;

	if (!wire_parse(&p, data, n))
		again(&p);
}

static void ip(uint8_t *data, size_t n, bool mend)
{
	const size_t least = WIRE_IPV6_BYTES + WIRE_UDP_BYTES + WIRE_BTH_BYTES +
			     WIRE_ICRC_BYTES;
	struct wire_packet p;
	struct wire_path path;

	if (mend && n >= least)
		wire_put_icrc(wire_icrc(data, n - WIRE_ICRC_BYTES),
			      data + n - WIRE_ICRC_BYTES);
	if (!wire_parse_ip(&path, &p, data, n))
		again(&p);
}

/* Find the IP ID with which the last four bytes are the valid ICRC. */
static void solve(const uint8_t *data, size_t n)
{
	const struct wire_path path = { .sgid = { [10] = 0xff, 0xff, 1 },
					.dgid = { [10] = 0xff, 0xff, 2 } };
	struct wire_front front;
	uint32_t icrc;
	int32_t id;

	if (n < WIRE_ICRC_BYTES)
		return;
	n -= WIRE_ICRC_BYTES;
	icrc = wire_get_icrc(data + n);
	wire_front_begin(&front, &path);
	id = wire_solve_id(&solver, &front, data, n, icrc);
	if (id >= 0)
		must(wire_front_icrc(&front, (uint16_t)id, data, n) == icrc);
}

static void mad(const uint8_t *data, size_t n)
{
	struct mad_ip_header h;
	enum mad_message m = mad_check(data, n);
	unsigned int f;
	size_t len;

	if (m == MAD_HEADER)
		return;
	must(mad_name(m));
	for (f = 0; f < MAD_FIELDS; f++)
		if (mad_fields[f].bits <= 64)
			(void)mad_get(data, f);
		else
			must(mad_bytes(data, f, &len) + len <= data + n);
	if (mad_get_ip_header(data, &h))
		must(!h.version);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* exact size, so that a sanitizer detects reads beyond the end */
	uint8_t *copy;

	if (!size--)
		return 0;
	copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	memcpy(copy, data + 1, size);
	switch (*data % KINDS) {
	case IP:
	case IP_MENDED:
		ip(copy, size, *data % KINDS == IP_MENDED);
		break;
	case TRANSPORT:
		transport(copy, size);
		break;
	case MAD:
		mad(copy, size);
		break;
	case SOLVED:
		solve(copy, size);
	}
	free(copy);
	return 0;
}
