// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fuzzer of a complete host with a wire.  An input is a list of records
 * (peer.h): packets of the peer, CM messages of the peer, and actions of the
 * program on the host.  Bit 0 of the last byte of an input selects IPv6.
 */
#include <string.h>

#include "rdmacm.h"
#include "local.h"
#include "parse.h"

#define RECORDS 128 /* limit of one input; further records are ignored */
/* The next 1 to RAW_RECORDS records are the bytes of a raw packet. */
#define RAW_RECORDS 8

typedef void (*step)(const struct record *r);

static const step steps[] = {
	peer_request,  peer_request, peer_request,  peer_request,
	peer_request,  peer_request, peer_answer,   peer_answer,
	peer_answer,   peer_answer,  peer_datagram, local_send,
	local_send,    local_send,   local_send,    local_receive,
	local_receive, local_window, local_region,  local_state,
	local_wait,    local_wait,   NULL /* raw() */, rdmacm_message,
	rdmacm_message,    rdmacm_connect,   local_port,
};
#define STEPS (sizeof(steps) / sizeof(*steps))

/* Check that the host executes a valid WRITE: else no input has an effect. */
static void try_it(bool ipv6)
{
	const struct record write = { .op = 6, .length = 8 };
	const uint8_t *to;

	host_begin(ipv6);
	to = host.mem + places[AREA_ALL].at;
	peer_request(&write);
	must(host_epsn(QP_RC) == FIRST_PSN + 1 && to[1] == 0x55);
	host_end();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	host_open();
	try_it(false);
	try_it(true);
	return 0;
}

static size_t raw(const struct record *r, size_t left)
{
	size_t n = r->key % RAW_RECORDS + 1u;

	if (n > left)
		n = left;
	peer_raw(r, (const uint8_t *)(r + 1), n * sizeof(*r));
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct record all[RECORDS];
	size_t n = size / sizeof(all[0]), i;
	const struct record *r;
	step s;

	if (!size)
		return 0;
	if (n > RECORDS)
		n = RECORDS;
	memcpy(all, data, n * sizeof(all[0]));
	host_begin(data[size - 1] & 1);
	for (i = 0; i < n; i++) {
		r = &all[i];
		s = steps[r->kind % STEPS];
		if (s)
			s(r);
		else
			i += raw(r, n - i - 1);
		check_polls(false);
		check_memory();
	}
	host_end();
	return 0;
}
